"""What the host tells us about a turn: it starts, it ends.

At a turn's start an arm becomes a claim and a binding; at its end a recording
becomes a cassette and a replay becomes a ledger.  A hook never raises into the
host, and keeps nothing of a session that is neither recorded nor replayed.

The few things that the plugin asks of Hermes itself are asked here.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import logging
import math
import os
import re
import shutil
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .cassette_store import (
    Arm,
    Call,
    Cassette,
    CassetteError,
    Claim,
    Facts,
    Fields,
    Kind,
    Recorder,
    RecordingState,
    Stage,
    Ledger,
    Snapshot,
    Store,
    check_name,
    has_surrogate,
    hermes_release,
    parse_arm,
    parse_claim,
    parse_facts,
    parse_json,
    parse_state,
    same_file,
    to_json,
    write_atomically,
    shown,
)
from .middleware import (
    UNKNOWN,
    Beyond,
    Bindings,
    Filling,
    LiveCall,
    Recording,
    Replay,
    because,
    KeepRules,
    learn_search,
    listed,
    NAME_LENGTH,
    other_model,
    out_of_steps,
)
from .snapshot import (
    SECRET_MARKS,
    Extent,
    NotKept,
    SkipReason,
    Workspace,
    has_secret_name,
    hermes_redactor,
    in_rows,
    leading_json,
    take_snapshot,
    texts_in,
)

__all__ = [
    "remarks",
    "judge_calls",
    "ARM_LIFETIME",
    "ARM_VARIABLES",
    "IN_CONVERSATION",
    "PING_VARIABLE",
    "RECORD_VARIABLE",
    "RUN_VARIABLE",
    "SNAPSHOT_SECONDS",
    "PingAnswer",
    "Plugin",
    "arm_session",
    "check_length",
    "check_recordable",
    "check_replayable",
    "data_dir",
    "find_ripgrep",
    "hermes_config",
    "hermes_home",
    "hermes_version",
    "hook_words",
    "in_git",
    "is_review",
    "lineage",
    "make_cassette",
    "normal_request",
    "parse_ping",
    "plugin_facts",
    "refuse_foreign_runtime",
    "replay_workspace",
    "refuse_isolation",
    "asked_model",
    "foreign_calls",
    "steps_at_limit",
    "answering_models",
    "yolo_set",
]

log = logging.getLogger(__name__)

PLUGIN = "session-cassettes"

#: Environment variable that gives a child of `run` the arm it must claim. Such
#: a process exists for one replay: no tool runs in it, claimed or not.
RUN_VARIABLE = "SESSION_CASSETTES_RUN"
#: The same for a child of `record --query`, where tools run live.
RECORD_VARIABLE = "SESSION_CASSETTES_RECORD"
#: Which variable ties a child to an arm of its kind; in a child of `fill` tools run live, but for what is on the tape.
ARM_VARIABLES: Mapping[Kind, str] = {"run": RUN_VARIABLE, "record": RECORD_VARIABLE, "fill": "SESSION_CASSETTES_FILL"}

#: The same for a ping: a process that has it, and is the very one that was
#: started, hosts its session itself.
PING_VARIABLE = "SESSION_CASSETTES_PING"

#: Seconds after which `/cassette record` no longer holds.
ARM_LIFETIME = 3600.0
#: Seconds that a turn's end may spend on its snapshot.
SNAPSHOT_SECONDS = 15.0
#: Seconds after which the arm of a command that died no longer closes its session.
ORPHAN_SECONDS = 180.0
#: Sessions that one turn can be followed through.
_LINEAGE_LIMIT = 100
#: Seconds after which a hook no longer claims, where the host has no limit of its own.
CLAIM_SECONDS = 20.0
#: Seconds for which Hermes (0.22 on) does not call a hook that took longer than its limit.
_MUTED_SECONDS = 60.0
#: Its limit where the configuration names none.
_HOOK_SECONDS = 30.0


# --- what we ask of Hermes ------------------------------------------------------


def data_dir() -> Path:
    """The plugin's data folder in the active profile; it may not exist yet.

    :raises CassetteError: outside Hermes, unless HERMES_HOME says where it is.
    """
    try:
        from plugins.plugin_storage import plugin_data_dir
    except ImportError:  # Hermes before 0.22
        return hermes_home() / "plugin-data" / PLUGIN
    return Path(plugin_data_dir(PLUGIN))


def hermes_home() -> Path:
    """The home of the active profile.  :raises CassetteError: outside Hermes, unless HERMES_HOME says where it is."""
    try:
        from hermes_constants import get_hermes_home
    except ImportError:
        if home := os.environ.get("HERMES_HOME", "").strip():
            return Path(home)
        raise CassetteError("cannot find Hermes's home: set HERMES_HOME") from None
    return Path(get_hermes_home())


def hermes_version() -> str:
    """The running Hermes's version, or "" outside Hermes."""
    return str(getattr(sys.modules.get("hermes_cli"), "__version__", ""))


def session_env(name: str) -> str:
    """What the host has bound for the session it is serving, or ""."""
    try:
        from gateway.session_context import get_session_env
    except ImportError:
        return ""
    return str(get_session_env(name, "") or "")


def hermes_config() -> Mapping[str, Any]:
    """Hermes's configuration, or {} where it cannot be had."""
    try:
        from hermes_cli.config import load_config

        found = load_config()
    except Exception:  # a broken configuration is the host's to report
        return {}
    return found if isinstance(found, Mapping) else {}


@contextlib.contextmanager
def _session_database() -> Iterator[Any]:
    """Hermes's own database of sessions, opened read-only where the version can."""
    from hermes_state import SessionDB

    database = SessionDB(read_only=True) if _takes(SessionDB, "read_only") else SessionDB()
    try:
        yield database
    finally:
        database.close()


def _takes(function: Callable[..., Any], name: str) -> bool:
    import inspect

    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _session_row(session: str) -> Mapping[str, Any]:
    """A session's row in Hermes's own database; {} where it cannot be read."""
    try:
        with _session_database() as database:
            found = database.get_session(session) if session else None
    except Exception:  # outside Hermes, or a database that is locked or broken
        return {}
    return found if isinstance(found, Mapping) else {}


def lineage(sessions: Sequence[str], row: Callable[[str], Mapping[str, Any]] = _session_row) -> list[str]:
    """A turn's sessions, and those between them that only Hermes knows: compaction can move a turn on.

    :param row: looks a session up in Hermes's own database.
    """
    found, one = list(sessions), sessions[-1]
    for _ in range(_LINEAGE_LIMIT):
        if not one or one == found[0]:
            break
        one = str(row(one).get("parent_session_id") or "")
        found += [one] * (bool(one) and one not in found)
    return found


def _stored_messages(sessions: Iterable[str]) -> list[Any]:
    """All messages of sessions in Hermes's own database, compacted ones too; [] where they cannot be read."""
    try:
        with _session_database() as database:
            return [one for session in sessions for one in database.get_messages(session, include_inactive=True)]
    except Exception:
        return []


def _plugins_before() -> tuple[str, ...]:
    """The plugins with middleware that Hermes has loaded so far: asked while this one registers, those before it."""
    try:
        from hermes_cli.plugins import get_plugin_manager

        loaded = get_plugin_manager().list_plugins()
        return tuple(str(one["name"]) for one in loaded if one.get("middleware") and one.get("name") != PLUGIN)
    except Exception:  # outside Hermes, or a version that does not tell
        return ()


def _plugin_settings() -> Mapping[str, Any]:
    found = hermes_config().get("plugins")
    return found if isinstance(found, Mapping) else {}


def hook_limit() -> float:
    """Seconds after which Hermes goes on without a hook; infinity where it waits for any."""
    release = hermes_release(hermes_version())
    if release is not None and release < (0, 22):
        return math.inf
    limit = _plugin_settings().get("hook_callback_timeout", _HOOK_SECONDS)
    return float(limit) if isinstance(limit, (int, float)) and limit > 0 else math.inf


def hook_words() -> str:
    """What becomes of a hook that takes long, for `doctor`."""
    limit = hook_limit()
    return (
        "hooks are waited for"
        if limit == math.inf
        else f"a hook may take {limit:g} s, then it is left out for a minute"
    )


def _isolated() -> bool:
    """Whether plugins run in a process of their own, where a call cannot be recorded (`plugins.isolation: host`)."""
    if os.environ.get("HERMES_PLUGIN_HOST_PROCESS", "") not in ("", "0"):
        return True
    return str(_plugin_settings().get("isolation", "")).strip().lower() == "host"


def refuse_isolation(found: bool = False) -> None:
    """Refuse a Hermes that keeps plugins out of its process.

    :param found: another process has said so.
    :raises CassetteError: if it does.
    """
    if found or _isolated():
        raise CassetteError(
            "plugins.isolation is 'host': plugins cannot stand before tools there; set it to 'in_process'"
            " and run hermes gateway restart"
        )


def _session_yolo(session: str) -> bool | None:
    """Whether approvals are bypassed in a session that the host is serving (`--yolo`, `/yolo`); None if untold."""
    try:
        from tools.approval import is_current_session_yolo_enabled, is_session_yolo_enabled

        keys = [key for key in (session, session_env("HERMES_SESSION_KEY")) if key]
        return bool(is_current_session_yolo_enabled() or any(is_session_yolo_enabled(key) for key in keys))
    except Exception:  # this version does not tell it, or does no longer
        return None


def find_ripgrep() -> str:
    """The ripgrep that `search_files` runs here, or "": Hermes's own (0.22 on), else the one on PATH."""
    try:
        import pm

        binary = getattr(pm.installed_package("ripgrep"), "binary", None)
    except Exception:  # older versions have no package manager, or this one has a fault
        binary = None
    return str(binary) if binary and os.path.isfile(binary) else shutil.which("rg") or ""


def _read_code() -> tuple[str, str]:
    """The plugin's version and its fingerprint: SHA-256 over its files, whatever their line ends."""
    folder = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.py"), *folder.glob("suite/*.py"), folder / "plugin.yaml"]):
        data = path.read_bytes()
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(folder).as_posix()} {len(data)}\n".encode())
        digest.update(data)
    found = re.search(r"^version:\s*(\S+)", (folder / "plugin.yaml").read_text("utf-8"), re.MULTILINE)
    return found.group(1).strip("\"'") if found else "", digest.hexdigest()


#: Read when this module is loaded, and never again: a host that registers the
#: plugin anew may keep the modules that it has (0.19 does), whatever the disk says by then.
_CODE = _read_code()


def plugin_facts() -> Facts:
    """What this process may say of itself: version, fingerprint, id and approval bypass."""
    return Facts(*_CODE, os.getpid(), yolo_set(os.environ), hermes_version())


def yolo_set(environ: Mapping[str, str]) -> bool:
    """Whether HERMES_YOLO_MODE is set to anything but a plain no."""
    return environ.get("HERMES_YOLO_MODE", "").strip().lower() not in ("", "0", "false", "no", "off")


# --- which runtimes a replay can answer ---------------------------------------------


def refuse_foreign_runtime(
    provider: str | None, config: Mapping[str, Any], model: str | None = None, environ: Mapping[str, str] = os.environ
) -> None:
    """Refuse a runtime that runs its tools outside Hermes, where no middleware sees them.

    Those are the providers that speak ACP to an agent of their own (Copilot's),
    and the Codex app server.  Whatever may stand in for the model within a turn
    is looked at too: fallbacks, auxiliary models, mixtures.

    :param provider: the provider that overrides the configured one, or None.
    :param model: the same for the model.
    :raises CassetteError: if one is in use.
    """
    main = config.get("model")
    main = main if isinstance(main, Mapping) else {}
    named = str(provider or main.get("provider") or environ.get("HERMES_INFERENCE_PROVIDER") or "")
    found = [("provider", named), ("model", re.split("[:/]", model or "")[0])]
    found += [(f"model.{key}", value) for key, value in _settings(main) if key != "provider"]
    for part in ("fallback_model", "fallback_providers", "auxiliary", "moa", "smart_model_routing"):
        found += [(f"{part}.{key}", value) for key, value in _settings(config.get(part))]
    names = [named, model or "", *(value for _, value in found)]
    for _ in range(2):  # an alias may name a provider
        for part in ("providers", "custom_providers", "model_aliases"):
            entries = [(f"{part}.{key}", value) for key, value in _entries_named(config.get(part), names)]
            found += entries
            names += [value for key, value in entries if key.rpartition(".")[2] in ("provider", "model")]
    for key, value in found:
        if _runs_its_own_tools(key, value):
            raise CassetteError(
                f"{key} {value!r} runs its tools outside Hermes, where a replay cannot answer them:"
                " name another with --provider, or change Hermes's configuration"
            )


def _runs_its_own_tools(key: str, value: str) -> bool:
    last, text = key.rpartition(".")[2], value.strip().lower()
    if last in ("api_mode", "openai_runtime", "runtime", "transport"):
        return text == "codex_app_server"
    if last in ("provider", "model", "base_url", "inference_base_url", "api", "url"):
        return "acp" in re.split(r"[^a-z]+", text.partition("://")[0])
    return False


def _normal_provider(name: str) -> str:
    """A custom provider's name as Hermes compares it (`_normalize_custom_provider_name`)."""
    return name.strip().lower().replace(" ", "-")


def _settings(value: Any, depth: int = 6) -> Iterator[tuple[str, str]]:
    """Every text within a setting, by its dotted path."""
    if not depth:
        return
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        if isinstance(inner, str):
            yield str(key), inner
        yield from ((f"{key}.{path}", text) for path, text in _settings(inner, depth - 1))


def _entries_named(value: Any, names: Sequence[str | None]) -> Iterator[tuple[str, str]]:
    """The texts of those entries of a table, or of a list, that have one of these names."""
    plain = {_normal_provider(name).removeprefix("custom:") for name in names if name}
    wanted = plain | {re.split("[:/]", name)[0] for name in plain}
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in pairs:
        name = str(entry.get("name", key)) if isinstance(entry, Mapping) else str(key)
        if {_normal_provider(name), _normal_provider(str(key))} & wanted:
            yield from ((f"{name}.{path}", text) for path, text in _settings(entry))


# --- which model answered -----------------------------------------------------------


def asked_model(words: str | None, begun: str, config: Mapping[str, Any]) -> str:
    """The model that `--model` asks for, in the words in which Hermes names the one that answered.

    Hermes resolves the words by rules of its own: aliases, `provider/model`,
    the names that a provider wants.  What a session began with is taken for
    what was asked, then, unless it is what the configuration lets stand in for
    a model that cannot be reached, and no reading of the words.

    :param words: what `--model` said, or None.
    :param begun: the model with which the session began.
    :returns: "" without words.
    """
    if not words:
        return ""
    aliases = {**_mapping(config.get("model_aliases")), **_mapping(_mapping(config.get("model")).get("aliases"))}
    entry = next((value for name, value in aliases.items() if str(name).lower() == words.strip().lower()), "")
    meant = str(_mapping(entry).get("model") or "") if isinstance(entry, Mapping) else str(entry or "")
    if _readings(begun, "/") & (_readings(words, "/:") | _readings(meant, "/:")):
        return begun
    parts = [config.get("fallback_model"), config.get("fallback_providers")]
    stand_ins = [value for part in parts for key, value in _settings(part) if key.rpartition(".")[2] == "model"]
    return words if any(_readings(begun, "/") & _readings(one, "/:") for one in stand_ins) else begun


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _readings(name: str, marks: str) -> set[str]:
    """A model's name, and what is left of it after each of the marks that end a provider's."""
    plain = name.strip().lower().replace(".", "-")  # some providers want the one for the other
    return {plain, *(plain[place + 1 :] for place, letter in enumerate(plain) if letter in marks)} - {""}


def answering_models(begun: str, ended: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    """The models that answered a turn, in order, as far as the host tells.

    :param begun: the model at the turn's start; it need not have answered.
    :param ended: the model at its end.
    :param row: the row of the turn's own session, which names the first that
        answered, once one did; {} if the session had turns before.
    """
    first = str(row.get("model") or "") if row.get("api_call_count") else ""
    return tuple(dict.fromkeys(name for name in (first or begun, ended) if name))


# --- what a turn's conversation shows -------------------------------------------------

#: How Hermes asks for a last word when a turn has reached its limit of steps.
_LAST_WORD = "You've reached the maximum number of tool-calling iterations allowed."
#: Look-ups among the tools on offer. Hermes 0.19 answers them itself, before any middleware.
_TOOL_LOOK_UPS = ("tool_search", "tool_describe")


def _asked_calls(messages: Any) -> list[tuple[tuple[str, ...], str]]:
    """The tool calls that messages hold: each call's ids, and the tool's name, unwrapped where a bridge was used."""
    tools: dict[str, str] = {}
    found: list[tuple[tuple[str, ...], str]] = []
    for message in messages if isinstance(messages, Sequence) else ():
        message = _mapping(message)
        if message.get("role") == "tool" and message.get("tool_name"):
            tools[str(message.get("tool_call_id") or "")] = str(message["tool_name"])
        calls = message.get("tool_calls") if message.get("role") == "assistant" else None
        for call in map(_mapping, calls if isinstance(calls, list) else ()):
            ids = dict.fromkeys(str(call[name]) for name in ("id", "call_id") if call.get(name))
            found.append((tuple(ids) or ("",), str(_mapping(call.get("function")).get("name") or "a tool")))
    return [(ids, next((tools[one] for one in ids if one and one in tools), tool)) for ids, tool in found]


def _call_ids(messages: Any) -> tuple[str, ...]:
    """The ids of the tool calls that messages hold."""
    return tuple(ids[0] for ids, _ in _asked_calls(messages))


def foreign_calls(history: Any, stored: Any, ours: Iterable[str], hermes: str) -> tuple[str, ...]:
    """Name the tools of calls that a conversation holds and that never came by our middleware.

    :param history: the conversation at the turn's end; a call may stand in it
        as often as it is among `ours`.
    :param stored: more messages of the same turn, such as those that were
        compacted away in it; they may repeat what the history holds.
    :param ours: the ids of the calls that were asked of us, and of those that
        the conversation held before.
    """
    left = Counter(one for call_id in ours for one in {call_id, call_id.partition("#")[0]})  # 0.22 numbers the
    known, found = set(left), []  # calls of a batch for a connector with #1, #2
    excused = _TOOL_LOOK_UPS if (hermes_release(hermes) or (0, 20)) < (0, 20) else ()
    for ids, tool in _asked_calls(history):
        known.update(ids)
        if (match := next((one for one in ids if left[one] > 0), None)) is not None:
            left[match] -= 1
        elif tool not in excused:
            found.append(tool)
    for ids, tool in _asked_calls(stored):
        if any(ids) and not known.intersection(ids) and tool not in excused:
            found.append(tool)
        known.update(ids)
    return tuple(found)


def steps_at_limit(history: Any, row: Mapping[str, Any]) -> int:
    """The limit of steps, if the turn that ends a conversation stopped there, else 0.

    :param row: the session's row, whose `model_config` has the number; without
        it the turn's own steps are counted.
    """
    steps, asked = 0, False
    for message in map(_mapping, reversed(history if isinstance(history, Sequence) else ())):
        text = message.get("content")
        if message.get("role") == "user" and asked:
            break
        if message.get("role") == "user":
            asked = isinstance(text, str) and text.startswith(_LAST_WORD)
            if not asked:
                return 0
        steps += bool(asked and message.get("role") == "assistant")
    if not asked:
        return 0
    with contextlib.suppress(TypeError, ValueError):
        limit = _mapping(json.loads(row.get("model_config") or "{}")).get("max_iterations")
        if type(limit) is int and limit > 0:
            return limit
    return max(steps, 1)


# --- requests ---------------------------------------------------------------------

#: A reference that Hermes expands before the model sees it (`agent/context_references.py`).
_REFERENCE = r"(?<![\w/])@(?:(?:diff|staged)\b|(?:file|folder|git|url):\S)"
#: A path at the beginning, where Hermes looks for an image to attach (`_collect_query_images`).
_PATH = r"""["']?(?:~[\w.-]*[/\\]|\.{1,2}[/\\]|[/\\]\S|file://|[A-Za-z]:[\\/])"""
_ATTACHED = r"(?m)^--- (?:Attached Context|Context Warnings) ---$"


def normal_request(text: str) -> str:
    """The form in which a request is stored and compared."""
    return text.replace("\r\n", "\n").strip()


def check_recordable(message: Any) -> str:
    """Return the request as it is stored, or refuse it.

    :raises CassetteError: if it has an image, an @ reference or attached
        context, whose content a replay could not give again, or if no command
        line can carry it.
    """
    if not isinstance(message, str):
        raise CassetteError("a request with an image or another attachment cannot be recorded: send plain text")
    request = normal_request(message)
    if not request:
        raise CassetteError("an empty request cannot be recorded: send a question")
    if re.search(_ATTACHED, request):
        raise CassetteError("a request with attached context cannot be recorded: let the agent read the files itself")
    if found := re.search(_REFERENCE, request):
        word = request[found.start() :].split()[0]
        raise CassetteError(f"a request with the reference {word!r} cannot be recorded: name the file without '@'")
    if has_surrogate(request):
        raise CassetteError(
            "the request is no UTF-8 text, so no command line can carry it: type it in a UTF-8 terminal"
        )
    check_length(request)
    return request


#: Bytes that Linux takes for one argument (`MAX_ARG_STRLEN`), the NUL at its end included.
_LINUX_ARGUMENT = 131_072
#: Characters that Windows takes for a whole command line, the NUL at its end included.
_WINDOWS_LINE = 32_767
#: What everything on a command line but the request is given room for, in bytes or characters.
_OTHER_WORDS = 2_048


def check_length(request: str, platform: str = sys.platform, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse a request that is too long for the command line of the session that replays it.

    It is one argument there, `--query=REQUEST`.

    :raises CassetteError: with the limit of `platform`.
    """
    word = f"--query={request}"
    if platform == "win32":
        # As it is quoted there: quotes get a backslash each, and the backslashes before them another.
        quoted = len(word.encode("utf-16-le")) // 2 + sum(len(run) for run in re.findall(r'\\*"|\\+\Z', word)) + 2
        size, limit, unit = quoted + _OTHER_WORDS, _WINDOWS_LINE - 1, "characters"
    elif platform == "linux":
        size, limit, unit = len(word.encode()), _LINUX_ARGUMENT - 1, "bytes"
    else:
        most = os.sysconf("SC_ARG_MAX") if hasattr(os, "sysconf") else _LINUX_ARGUMENT
        beside = sum(len(f"{key}={value}".encode("utf-8", "surrogateescape")) + 9 for key, value in environ.items())
        size, limit, unit = len(word.encode()) + beside + _OTHER_WORDS, most, "bytes"
    if size > limit:
        raise CassetteError(
            f"the request is too long to be replayed: with what surrounds it, it takes {size:,} {unit} of a command"
            f" line, and this platform has {limit:,}: ask in fewer words, and let the agent read the rest from a file"
        )


def check_replayable(request: str) -> None:
    """Refuse a request that a headless session would not take as plain text.

    :raises CassetteError: if it starts with `/`, `!` or a path (Hermes attaches
        an image that it finds there, before the turn), is not in the form in
        which requests are compared, or cannot be recorded.
    """
    if check_recordable(request) != request:
        raise CassetteError(
            "the request has blanks around it or CR line ends, so no session could match it: correct it"
        )
    if request[0] in "/!":
        raise CassetteError(
            f"a request that starts with {request[0]!r} cannot be replayed: Hermes would take it for a command"
        )
    if re.match(_PATH, request):
        raise CassetteError(
            "a request that starts with a path cannot be replayed: Hermes may attach that file; put a word before it"
        )


# --- where a session works -----------------------------------------------------------


def session_cwd(ctx: Any, session: str) -> str:
    """The session's working directory, or "" where it cannot be known for sure."""
    told = _told_folders(ctx, session)
    return told[0] if told and all(same_file(told[0], other) for other in told[1:]) else ""


def _worked_elsewhere(ctx: Any, session: str, folder: str) -> str:
    """A folder other than this one that the host names for a session, or ""."""
    return next((told for told in _told_folders(ctx, session) if not same_file(told, folder)), "")


def _told_folders(ctx: Any, session: str) -> list[str]:
    """The folders that the host names for a session; they may contradict each other.

    Asked within a hook.  Some versions tell one (`ctx.session_cwd`).  Where they
    do not, it is what Hermes resolves for the session that it is serving, and
    the session's row in Hermes's database must say the same; a process that
    hosts many sessions must have set it for this one, else only the row counts.
    """
    if str(os.environ.get("TERMINAL_ENV", "local")).strip().lower() not in ("", "local"):
        return []  # tools run in a container or on another machine
    if told := _told_folder(ctx):
        return [told]
    row = _folder(_session_row(session).get("cwd"))
    here = (_folder(_scoped_cwd()) or row) if serves_many_sessions() else _folder(_agent_cwd())
    return list(dict.fromkeys((here, row or here))) if here else []


def _told_folder(ctx: Any) -> str:
    told = getattr(ctx, "session_cwd", None)
    try:
        return _folder(told()) if callable(told) else ""
    except Exception:
        return ""


def _folder(path: Any) -> str:
    return str(path) if path and os.path.isabs(str(path)) and os.path.isdir(str(path)) else ""


def _agent_cwd() -> str:
    try:
        from agent.runtime_cwd import resolve_agent_cwd

        return str(resolve_agent_cwd())
    except Exception:  # a deleted working directory, or a host without the helper
        return ""


def _scoped_cwd() -> str:
    """The folder that the host has set for the session that it is serving, or ""."""
    try:
        from agent.runtime_cwd import scoped_session_cwd

        return str(scoped_session_cwd())
    except Exception:  # a host without the helper
        return ""


#: Modules that only a process with many sessions has, by any name that is known.
_GATEWAYS = (
    "tui_gateway.server",
    "tui_gateway.entry",
    "gateway.run",
    "gateway.session_ingress",
    "gateway.session_authority",
)


def serves_many_sessions() -> bool:
    """Whether this process serves several sessions: a gateway, by whatever name it runs."""
    if _runs_as_gateway() or session_env("HERMES_SESSION_PLATFORM") == _LOCAL:
        return True
    return any(name in sys.modules for name in _GATEWAYS)


def _runs_as_gateway() -> bool:
    """Whether this process was started to be a gateway (`hermes gateway run`)."""
    main = sys.modules.get("__main__")
    running = str(getattr(getattr(main, "__spec__", None), "name", "") or "")
    if running in _GATEWAYS or os.environ.get("HERMES_GATEWAY_DETACHED"):
        return True
    return ("gateway", "run") in zip(sys.argv[1:], sys.argv[2:])


#: The platform of a gateway's own sessions in what it tells a command; its hooks say "cli".
_LOCAL = "local"


def _told_session() -> str:
    """The id of the session that the host is serving, as it tells a command, or "".

    A gateway of 0.23 tells it as the chat's id and may leave the other empty;
    elsewhere a chat is something else, and its id is that of no session.
    """
    if session_env("HERMES_SESSION_PLATFORM") == _LOCAL:
        chat = session_env("HERMES_SESSION_CHAT_ID")
        if chat.startswith("local-") or _session_row(chat):
            return chat
    return session_env("HERMES_SESSION_ID")


#: What a cassette warns of whose request did not begin its conversation.
IN_CONVERSATION = "the request came in the middle of a conversation, which a replay starts without"

_PING = r"/cassette ping ([0-9a-f]{16})"
_YOLO_WARNING = "approvals were bypassed in this session (yolo): its tools ran without asking"


# --- turns -----------------------------------------------------------------------------


class Turn(NamedTuple):
    """The start of a turn, as the host told it."""

    session: str
    id: str
    message: Any
    first: bool
    platform: str
    model: str
    parent: str
    earlier: int  #: messages of the conversation before this turn's request
    asked: tuple[str, ...] = ()  #: ids of the tool calls before this turn


class _TurnEnd(NamedTuple):
    """The end of a turn, as the host told it; `answer` is what it shows the person."""

    session: str
    answer: str
    model: str
    history: Any


class PingAnswer(NamedTuple):
    """What a process that was asked by `/cassette ping` says of itself."""

    facts: Facts
    model: bool = False  #: the ping came to a model instead of to the command
    itself: bool = False  #: it is the process that the ping started: it hosts its own session
    muted: float = 0.0  #: seconds for which Hermes may not call the plugin's hooks
    isolated: bool = False  #: the plugin runs in a process of its own
    tells_yolo: bool = False  #: it can tell whether a session bypasses approvals
    many: bool = False  #: it knows itself for a host of many sessions
    session: str = ""  #: the session that the host told the command
    folder: str = ""  #: the folder that the host told the command

    def told(self, sessions: Sequence[str], folder: str) -> list[str]:
        """What its host tells a command, for `doctor`.

        :param sessions: the ids that the client printed.
        :param folder: where the client was started.
        """
        own = self.session != "" and self.session in sessions
        here = own and self.folder != "" and same_file(self.folder, folder)
        words = "their session and its folder" if here else "their session, not its folder" if own else "no session"
        lines = [f"commands   are told {words}; an attached chat may refuse them, hermes chat -Q does not"]
        if not own:
            lines.append("recording  only by hermes cassette record NAME --query TEXT")
        if not self.many:
            lines.append("gateway    is known by no module or variable that tells it")
        lines.append(f"approvals  whether a session bypasses them is {'told' if self.tells_yolo else 'not told'}")
        return lines


def parse_ping(data: bytes, file: str) -> PingAnswer:
    """Decode a ping's answer.  :raises CassetteError: if a field is missing or mistyped."""
    fields = Fields(parse_json(data, file), file)
    flags = {name: fields.get(name, bool, False) for name in ("model", "itself", "isolated", "tells_yolo", "many")}
    texts = {name: fields.get(name, str, "") for name in ("session", "folder")}
    return PingAnswer(parse_facts(fields), muted=fields.number("muted", 0.0), **flags, **texts)


class Plugin:
    """One loaded plugin: its bindings, its facts, and the host's callbacks.

    :param beyond: what it does beyond the specification.
    """

    def __init__(self, ctx: Any, beyond: Beyond = Beyond(), environ: Mapping[str, str] = os.environ) -> None:
        self.ctx = ctx
        self._beyond = beyond
        self.facts = plugin_facts()
        # A gateway may have its environment from the first client, whose arm is none of its business.
        own = {} if _runs_as_gateway() else environ
        tied = {kind: own.get(variable, "") for kind, variable in ARM_VARIABLES.items()}
        self._tied = {kind: arm for kind, arm in tied.items() if arm}  # what this process was started for
        self.before = _plugins_before()
        self.bindings = Bindings(locked="run" in self._tied)
        self.foreground = ""  # the session of this process's last turn of a person
        self._pending: RecordingState | None = None  # a recording whose session is not known yet
        self._muted_until = 0.0  # on the monotonic clock: Hermes may not call our hooks before
        self._pinged = environ.get(PING_VARIABLE, "")
        self._close_claims_of_a_reload()

    def store(self) -> Store:
        """The data folder of the active profile, looked up anew: profiles change."""
        return Store(data_dir())

    def _close_claims_of_a_reload(self) -> None:
        """Close sessions that this process claimed before the plugin was loaded again.

        Their bindings died with the old module; their tools must not wake up.
        """
        try:
            store = self.store()
            for path in (store.root / "claims").glob("*.json"):
                claim = store.read_value(path, parse_claim)
                if claim and claim.facts.pid == os.getpid():
                    self.bindings.close_session(claim.session)
                    self.bindings.close_turn(claim.turn)  # its session's id may have changed since
        except Exception as error:
            log.debug("earlier claims could not be read: %s", shown(error))

    # the host's callbacks

    def pre_llm_call(
        self,
        session_id: str = "",
        turn_id: str = "",
        user_message: Any = "",
        is_first_turn: bool = False,
        model: str = "",
        platform: str = "",
        parent_session_id: str = "",
        conversation_history: Any = None,
        **_: Any,
    ) -> None:
        """A turn starts: claim what waits for it (Hermes's `pre_llm_call`)."""
        started = time.monotonic()
        try:
            turn = Turn(
                str(session_id or ""),
                str(turn_id or ""),
                user_message,
                bool(is_first_turn),
                str(platform or ""),
                str(model or ""),
                str(parent_session_id or ""),
                earlier_messages(conversation_history),
                _call_ids(conversation_history),
            )
            self._turn_starts(turn, started)
        except Exception as error:  # the host must go on; an unclaimed run is INVALID
            log.warning("session-cassettes could not look at a turn: %s", shown(error))
        self._note_time(started)

    def post_llm_call(
        self,
        session_id: str = "",
        turn_id: str = "",
        assistant_response: Any = "",
        conversation_history: Any = None,
        model: str = "",
        **_: Any,
    ) -> None:
        """A turn ended with an answer: keep what was bound to it (Hermes's `post_llm_call`)."""
        started = time.monotonic()
        try:
            # Hermes's notice in an answer's place must not be graded as one.
            missing = answer_is_missing(conversation_history) or not isinstance(assistant_response, str)
            answer = "" if missing else assistant_response
            end = _TurnEnd(str(session_id or ""), answer, str(model or ""), conversation_history)
            if replayed := self.bindings.replay_of(turn_id):
                self._replay_ends(replayed, end)
            elif recording := self.bindings.recording_of(turn_id):
                self._recording_ends(recording, end)
        except Exception as error:
            log.warning("session-cassettes could not finish a turn: %s", shown(error))
        self._note_time(started)

    def _note_time(self, started: float) -> None:
        """Remember a hook that took so long that Hermes will not call it for a while."""
        with contextlib.suppress(Exception):
            if (taken := time.monotonic() - started) > 0.1 and taken >= (limit := hook_limit()):
                self._muted_until = started + limit + _MUTED_SECONDS

    # a turn starts

    def _turn_starts(self, turn: Turn, started: float) -> None:
        known = dict.fromkeys((turn.session, _told_session()))
        for left in [one for session in known for one in self.bindings.recordings_in(session)]:
            if left.turn != turn.id:
                self._recording_fails(left, "the turn ended without an answer")
        if not turn.id or not turn.session:
            return
        if isinstance(turn.message, str) and (ping := re.fullmatch(_PING, turn.message.strip())):
            return self._ping_reached_a_model(turn, ping.group(1))
        store = self.store()
        if self._claims(store, turn, started):
            return
        person = turn.platform != "subagent" and not turn.parent and not is_review(turn.message)
        if person and not turn.session.startswith(("bg_", "btw_")):
            self.foreground = turn.session
            self._start_armed_recording(store, turn)

    def _claims(self, store: Store, turn: Turn, started: float) -> bool:
        """Whether the turn is a run's; an arm that cannot be read must not cost a recording."""
        try:
            return store.arm_path.exists() and self._claim(store, turn, started)
        except Exception as error:
            log.warning("session-cassettes could not claim a run: %s", shown(error))
            return self.bindings.replay_of(turn.id) is not None

    def _ping_reached_a_model(self, turn: Turn, nonce: str) -> None:
        """This host sends slash commands to the model: let no tool run in the turn."""
        arm = Arm("ping", "run", "", "", "gateway", 0.0, 0.0, self.facts.plugin, self.facts.fingerprint)
        self.bindings.replay(Replay(arm, turn.id, turn.session, turn.model, self.facts, None, None, "a ping"))
        self.answer_ping(nonce, model=True)

    def _claim(self, store: Store, turn: Turn, started: float) -> bool:
        """Claim the waiting arm if it waits for this very turn.

        A turn that an arm waits for, but that cannot claim it, is bound to
        nothing: it must not run live.
        """
        try:
            with store.lock():
                arm = store.read_value(store.arm_path, parse_arm)
                if arm is not None and self._waits_elsewhere(arm, turn) and _command_lives(store):
                    self._bind_to_nothing(arm, turn, "the run waited for a session in another process")
                    return True
                if arm is None or not self._waits_for(arm, turn):
                    return False
                if not _command_lives(store):
                    return self._take_orphan(store, arm, turn)
                if time.monotonic() - started > self._claim_limit():
                    raise CassetteError("the claim came too late: the host may have gone on")
                binds: Mapping[Kind, Callable[[Store, Arm, Turn], str]]
                binds = {"run": self._bind_run, "record": self._bind_record, "fill": self._bind_fill}
                error = binds[arm.kind](store, arm, turn)
                claim = Claim(arm.id, turn.session, turn.id, turn.model, self.facts, error)
                write_atomically(store.claim_path(arm.id), to_json(claim))
                store.arm_path.unlink(missing_ok=True)
        except Exception as failure:
            arm = store.read_value(store.arm_path, parse_arm)
            if arm is not None and arm.kind != "record" and self._waits_for(arm, turn):
                self._bind_to_nothing(arm, turn, f"the arm could not be claimed: {failure}")
            raise
        return True

    def _waits_for(self, arm: Arm, turn: Turn) -> bool:
        return self._tied == ({arm.kind: arm.id} if arm.hosting == "process" else {}) and self._asks(arm, turn)

    def _waits_elsewhere(self, arm: Arm, turn: Turn) -> bool:
        """Whether these words are a run's whose child should have hosted them itself: it only attached to this process."""
        return arm.kind != "record" and arm.hosting == "process" and not self._tied and self._asks(arm, turn)

    @staticmethod
    def _asks(arm: Arm, turn: Turn) -> bool:
        if not (turn.first and turn.platform == "cli" and not turn.parent):
            return False
        return isinstance(turn.message, str) and normal_request(turn.message) == arm.request

    def _take_orphan(self, store: Store, arm: Arm, turn: Turn) -> bool:
        """Let no tool run in the session of a command that died before the claim.

        Its arm lies there a while; later the same words are somebody else's.
        """
        if arm.kind == "record" or arm.hosting != "gateway" or abs(time.time() - arm.created) > ORPHAN_SECONDS:
            return False
        self._bind_to_nothing(arm, turn, "the command that waited for this session is gone")
        store.arm_path.unlink(missing_ok=True)
        return True

    def _bind_to_nothing(self, arm: Arm, turn: Turn, why: str) -> None:
        self.bindings.replay(Replay(arm, turn.id, turn.session, turn.model, self.facts, None, None, why))

    def _claim_limit(self) -> float:
        """Seconds within which a claim is sure to come before the host goes on."""
        return min(CLAIM_SECONDS, 0.7 * hook_limit())

    def _bind_run(self, store: Store, arm: Arm, turn: Turn) -> str:
        """Bind the turn to its cassette, or to nothing; return why."""
        error = because("yolo") if self.facts.yolo or yolo_set(os.environ) else ""  # Hermes keeps what it started with
        bound, error = self._tape(store, arm, turn, because("yolo session") if _session_yolo(turn.session) else error)
        self.bindings.replay(bound)
        return error

    def _tape(self, store: Store, arm: Arm, turn: Turn, refused: str = "") -> tuple[Replay, str]:
        """What answers a turn from its cassette, or from nothing; and why from nothing, "" if it does not."""
        cassette, workspace, error = None, None, ""
        try:
            cassette, sha = store.read(arm.name)
            if sha != arm.cassette_sha:
                error = because("cassette changed")
        except CassetteError as failure:
            error = because("cassette failed", error=failure)
        except Exception as failure:  # not even a lack of memory may let the turn run live
            error = because("cassette failed", error=type(failure).__name__)
        if self.facts.fingerprint != arm.fingerprint:
            error = because("other code")
        try:
            if error := refused or error:
                cassette = None
            elif cassette is not None and cassette.cwd:
                workspace = replay_workspace(cassette, arm.folder)
            bound = Replay(arm, turn.id, turn.session, turn.model, self.facts, cassette, workspace, error, self._beyond)
        except Exception as failure:
            error = because("cassette failed", error=type(failure).__name__)
            bound = Replay(arm, turn.id, turn.session, turn.model, self.facts, None, None, error)
        return bound, error

    def _bind_fill(self, store: Store, arm: Arm, turn: Turn) -> str:
        """Record the turn but for what its cassette answers; without that, bind it to nothing, and return why."""
        bound, error = self._tape(store, arm, turn)
        if error:
            self.bindings.replay(bound)
            return error
        return self._bind_record(store, arm, turn, partial(Filling, bound))

    def _bind_record(self, _: Store, arm: Arm, turn: Turn, make: Callable[..., Recording] = Recording) -> str:
        try:
            check_recordable(turn.message)
        except CassetteError as error:
            return str(error)
        recording = make(
            arm.name,
            turn.id,
            turn.session,
            arm.request,
            turn.model,
            arm=arm.id,
            overwrite=arm.overwrite,
            rg_major=arm.rg_major,
            folder=arm.folder,
            earlier=turn.asked,
            whole=arm.whole,
            names=arm.names,
            started=time.time(),
        )
        self._warn_of_yolo(recording)
        self.bindings.record(recording)
        return ""

    @staticmethod
    def _warn_of_yolo(recording: Recording) -> None:
        if _session_yolo(recording.session) and _YOLO_WARNING not in recording.faults:
            recording.faults.append(_YOLO_WARNING)

    # a replay ends

    def _replay_ends(self, replayed: Replay, end: _TurnEnd) -> None:
        self.bindings.close_session(end.session)
        ledger: Ledger = replayed.finish(end.session, end.answer)
        if yolo_set(os.environ) != ledger.facts.yolo:
            ledger = ledger._replace(errors=(*ledger.errors, because("yolo changed")))
        if _session_yolo(end.session):
            ledger = ledger._replace(errors=(*ledger.errors, because("yolo session")))
        row, ours = _session_row(ledger.sessions[0]), [call.id for call in ledger.calls]
        ledger = ledger._replace(
            models=answering_models(ledger.model, end.model, row),
            foreign=foreign_calls(end.history, _stored_messages(lineage(ledger.sessions)), ours, ledger.facts.hermes),
            steps=steps_at_limit(end.history, row),
            before=self.before,
        )
        store = self.store()
        if store.claim_path(ledger.arm).exists():  # else its command is gone, and nobody would read it
            write_atomically(store.ledger_path(ledger.arm), to_json(ledger))
        self.bindings.drop_replay(replayed.turn)

    # recordings armed from inside a session

    def arm_recording(self, name: str, overwrite: bool, whole: bool = False, names: bool = True) -> str:
        """Arm this session's next turn (`/cassette record`); return what to tell the person.

        :param whole: the texts of the whole workspace are kept.
        :param names: the names of all in it are kept.

        :raises CassetteError: if the name is bad or taken, or the host does
            not tell which session this is.
        """
        check_name(name)
        refuse_isolation()
        store = self.store()
        store.prepare()
        store.check_free(name, overwrite)
        session = self.this_session()
        if session:
            arm_session(store, session, name, overwrite, whole, names)
        else:
            self._pending = RecordingState("armed", name, "", time.time(), overwrite, "", whole, names)
        return f"armed: the next request of this session is recorded as {name!r} (within the hour)"

    def this_session(self) -> str:
        """The id of the session that a slash command came from; "" for the next
        one of an interactive process that has had no turn yet.

        :raises CassetteError: if the host hosts several sessions and does not
            say which one this is.
        """
        told = _told_session()
        if serves_many_sessions():
            if not told or not _session_is_told():
                raise CassetteError(
                    "this host does not tell a command its session: record with"
                    " hermes cassette record NAME --query TEXT, or in a plain hermes session"
                )
            return told
        if told and not told.startswith(("bg_", "btw_")):
            return told
        return self.foreground

    def stop_recording(self) -> str:
        """Cancel this session's recording (`/cassette stop`)."""
        session, store = self.this_session(), self.store()
        stopped = [self._drop(one) for one in self.bindings.recordings_in(session)] if session else []
        if self._pending is not None:
            stopped.append(self._pending.name)
            self._pending = None
        if session and (state := read_state(store, session)) and state.state == "armed":
            stopped.append(state.name)
            store.recording_path(session).unlink(missing_ok=True)
        if not stopped:
            return "nothing to stop: no recording is armed or running in this session"
        return f"stopped: {stopped[0]!r} is not recorded; what was saved before stays"

    def _drop(self, recording: Recording) -> str:
        self._recording_fails(recording, "it was stopped")
        return recording.name

    def status(self) -> str:
        """Say what this session is doing (`/cassette status`)."""
        session = self.this_session()
        if self._pending is not None:
            return _tell_state(self._pending)
        if session:
            for recording in self.bindings.recordings_in(session):
                return f"recording {recording.name!r}: {len(recording.slots)} tool calls so far"
            if state := read_state(self.store(), session):
                return _tell_state(state)
        return "idle: nothing is armed, and nothing was recorded in this session"

    def _start_armed_recording(self, store: Store, turn: Turn) -> None:
        state = self._pending
        if state is not None and not serves_many_sessions():
            self._pending = None
        else:
            state = read_state(store, turn.session)
            if state is None or state.state != "armed":  # a long session's own id may have moved on
                state = read_state(store, _told_session() or turn.session)
        if state is None or state.state != "armed":
            return
        request, why = _armed_request(state, turn)
        recording = Recording(
            state.name,
            turn.id,
            state.session or turn.session,
            request,
            turn.model,
            overwrite=state.overwrite,
            faults=[IN_CONVERSATION] if turn.earlier else (),
            earlier=turn.asked,
            resumed=bool(turn.earlier) or not turn.first,
            whole=state.whole,
            names=state.names,
            started=time.time(),
        )
        if why:
            return self._recording_fails(recording, why)
        self._warn_of_yolo(recording)
        self.bindings.record(recording)
        self._note(recording, "recording", "")

    # the ping

    def answer_ping(self, nonce: str, model: bool = False) -> str:
        """Tell a command which code this process runs (`/cassette ping`).

        :param model: the ping came to a model instead of to the command.
        :raises CassetteError: if the nonce is none of ours.
        """
        if not re.fullmatch(r"[0-9a-f]{16}", nonce):
            raise CassetteError("a ping comes from hermes cassette run")
        store = self.store()
        store.prepare()
        facts = self.facts._replace(pid=os.getpid(), yolo=self.facts.yolo or yolo_set(os.environ))
        answer = PingAnswer(
            facts,
            model,
            itself=model and self._pinged == nonce,
            muted=max(0.0, self._muted_until - time.monotonic()),
            isolated=_isolated(),
            tells_yolo=_session_yolo("") is not None,
            many=serves_many_sessions(),
            session=_told_session() if _session_is_told() else "",
            folder=_told_folder(self.ctx) or _folder(_scoped_cwd()),
        )
        write_atomically(store.ping_path(nonce), to_json({**answer._asdict(), "facts": facts._asdict()}))
        return f"session-cassettes {facts.plugin} {facts.fingerprint[:12]}"

    # a recording ends

    def _recording_ends(self, recording: Recording, end: _TurnEnd) -> None:
        try:
            cassette = self._recorded(recording, end)
            self._keep(recording, cassette)
        except Exception as error:
            known = isinstance(error, CassetteError)
            text = str(error) if known else f"internal error: {type(error).__name__}: {error}"
            return self._recording_fails(recording, text)
        self._note(recording, "saved", saved_text(cassette))

    def _recorded(self, recording: Recording, end: _TurnEnd) -> Cassette:
        """The cassette of a turn that ended.  :raises CassetteError: if the turn is none to keep."""
        row = _session_row(end.session)
        if steps := steps_at_limit(end.history, row):
            raise CassetteError(out_of_steps(steps))
        if not end.answer.strip():
            raise CassetteError("the turn ended without an answer")
        folder = recording.folder
        if folder and (there := _worked_elsewhere(self.ctx, end.session, folder)):
            raise CassetteError(
                f"the session worked in {there}, not in {folder}: switch off what moves it"
                " (worktree in config.yaml, TERMINAL_CWD)"
            )
        slots = recording.close()
        self.bindings.drop_recording(recording)
        self._warn_of_yolo(recording)
        models = answering_models(recording.model, end.model, {} if recording.resumed else row)
        if recording.model and models and set(models) != {recording.model}:
            recording.faults.append(other_model(models, recording.model))
        ours = (*recording.earlier, *recording.passed, *(slot.id for slot in slots))
        return make_cassette(
            recording,
            slots,
            end.answer.strip(),
            session_cwd(self.ctx, end.session),
            self.facts.plugin,
            models,
            foreign_calls(end.history, (), ours, hermes_version()),
            self._beyond,
        )

    def _keep(self, recording: Recording, cassette: Cassette) -> None:
        """Save a cassette, or put it aside for the command that armed it, which sees how its session ends."""
        store = self.store()
        store.prepare()
        if recording.arm:
            store.check_free(recording.name, recording.overwrite)
            store.put_aside(cassette, recording.arm)
        else:
            store.save(cassette, recording.overwrite, keep_pins=True)

    def _recording_fails(self, recording: Recording, why: str) -> None:
        self.bindings.drop_recording(recording)
        self._note(recording, "not saved", why)

    def _note(self, recording: Recording, state: Stage, text: str) -> None:
        """Leave a recording's state where a later process finds it."""
        store = self.store()
        value = RecordingState(state, recording.name, recording.session, time.time(), recording.overwrite, text)
        path = store.outcome_path(recording.arm) if recording.arm else store.recording_path(recording.session)
        try:
            store.prepare()
            write_atomically(path, to_json(value))
        except CassetteError as error:
            log.warning("session-cassettes: %s", error)
        if state == "not saved":
            log.warning("session-cassettes: %r was not saved: %s", recording.name, shown(text))


def _armed_request(state: RecordingState, turn: Turn) -> tuple[str, str]:
    """The request that an armed recording stores, and why it stores none."""
    if not 0 <= time.time() - state.created <= ARM_LIFETIME:
        return "", "it was armed more than an hour before the request: arm it again"
    try:
        return check_recordable(turn.message), ""
    except CassetteError as error:
        return "", str(error)


def _command_lives(store: Store) -> bool:
    """Whether the command that armed still waits: it holds a lock that dies with it."""
    waiting = store.waiting()
    if waiting.try_acquire():
        waiting.release()
        return False
    return True


def earlier_messages(history: Any) -> int:
    """Count what people and assistants said before the request that ends a history."""
    if not isinstance(history, Sequence):
        return 0
    spoken = [one for one in history if isinstance(one, Mapping) and one.get("role") in ("user", "assistant")]
    return max(0, len(spoken) - 1)


def is_review(message: Any) -> bool:
    """Whether a turn is Hermes's own review of the conversation (0.19 and 0.20 call hooks for it)."""
    return isinstance(message, str) and message.startswith("Review the conversation above")


def _session_is_told() -> bool:
    """Whether what a many-session host says of its session is about the one that it is serving.

    Before 0.22 it names the session whose agent it built last; and where it says
    nothing at all, what stands in the process's environment is of that kind.
    """
    if session_env("HERMES_SESSION_PLATFORM") == _LOCAL:
        return True
    release = hermes_release(hermes_version())
    told = any(session_env(f"HERMES_SESSION_{name}") for name in ("PLATFORM", "SOURCE", "KEY"))
    return told and release is not None and release >= (0, 22)


def arm_session(
    store: Store, session: str, name: str, overwrite: bool = False, whole: bool = False, names: bool = True
) -> None:
    """Arm a session's next turn, in whatever process it comes; see `Plugin.arm_recording`."""
    state = RecordingState("armed", name, session, time.time(), overwrite, "", whole, names)
    write_atomically(store.recording_path(session), to_json(state))


def read_state(store: Store, session: str) -> RecordingState | None:
    """The state of a session's recording, or None."""
    state: RecordingState | None = store.read_value(store.recording_path(session), parse_state)
    return state


def _tell_state(state: RecordingState) -> str:
    name = state.name
    if state.state == "armed":
        if not 0 <= time.time() - state.created <= ARM_LIFETIME:
            return f"stale: {name!r} was armed more than an hour ago: arm it again"
        return f"armed: the next request of this session is recorded as {name!r}"
    if state.state == "recording":
        return f"recording {name!r} in another process, or its turn ended without an answer"
    if state.state == "saved":
        return f"last recording: {state.text}"
    return f"last recording: {name!r} was not saved: {state.text}"


# --- from a recording to a cassette ----------------------------------------------------


def answer_is_missing(history: Any) -> bool:
    """Whether the turn's last message of the assistant says nothing.

    Hermes then prints a notice of its own in the answer's place.
    """
    if not isinstance(history, Sequence) or not history:
        return False
    for message in reversed(history):
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            content = message.get("content")
            return not content or (isinstance(content, str) and not content.strip())
        if isinstance(message, Mapping) and message.get("role") == "user":
            return True
    return False


def make_cassette(
    recording: Recording,
    slots: Sequence[LiveCall],
    answer: str,
    cwd: str,
    plugin: str,
    models: Sequence[str] = (),
    foreign: Sequence[str] = (),
    beyond: Beyond = Beyond(),
) -> Cassette:
    """Judge every call of a recorded turn, take the snapshot, and collect the warnings.

    :param models: those that answered.
    :param foreign: the tools of calls that something else answered.
    """
    calls, not_kept, warnings = judge_calls(slots, foreign)
    warnings += recording.faults + remarks(calls)
    recorder, snapshot, aliases, past = _recorder(recording, calls), Snapshot(), tuple[str, ...](), recording.past
    if cwd:
        workspace = Workspace.here(cwd, (recording.folder, os.environ.get("PWD", "")), past.folder if past else "")
        aliases = workspace.aliases
        recorder = recorder._replace(git=in_git(Path(cwd)), fold_case=workspace.fold_case)
        snapshot = _snapshot(recording, slots, workspace, beyond, warnings)
    else:
        warnings.append("the session's working directory is not known: there is no snapshot")
    return Cassette(
        name=recording.name,
        request=recording.request,
        answer=answer,
        model=" and ".join(models),
        cwd=cwd,
        cwd_aliases=aliases,
        recorded_at=_written_time(past.ended if past else time.time()),
        recorder=recorder,
        calls=tuple(calls),
        not_kept=tuple(not_kept),
        snapshot=snapshot,
        warnings=tuple(warnings),
        plugin=plugin,
    )


def _written_time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="seconds")


def _recorder(recording: Recording, calls: Sequence[Call]) -> Recorder:
    """The Hermes that ran the turn, as far as its answers depend on it."""
    search, rg_major = learn_search(calls), recording.rg_major
    if past := recording.past:
        return Recorder(past.hermes or UNKNOWN, sys.platform, search, rg_major=rg_major if search == "rg" else 0)
    search = search or ("rg" if find_ripgrep() else "grep")
    locale = next(filter(None, (os.environ.get(name) for name in ("LC_ALL", "LC_COLLATE", "LANG"))), "C")
    return Recorder(hermes_version(), sys.platform, search, rg_major=rg_major if search == "rg" else 0, locale=locale)


def _snapshot(
    recording: Recording, slots: Sequence[LiveCall], workspace: Workspace, beyond: Beyond, warnings: list[str]
) -> Snapshot:
    """Take the snapshot, and add to the warnings what a person should know of it."""
    deadline = time.monotonic() + SNAPSHOT_SECONDS
    every = [
        Call(slot.tool, slot.args if isinstance(slot.args, dict) else {}, slot.result if slot.done else "")
        for slot in slots
    ]
    calls = [call for call, slot in zip(every, slots) if slot.done and isinstance(slot.args, dict)]
    try:
        evidence = beyond.evidence(every, workspace) if beyond.evidence else None
        extent = Extent(recording.whole, recording.names, beyond.walk, evidence, recording.started, warnings)
        if recording.past is not None:
            extent = extent._replace(ended=recording.past.ended)
        taken = take_snapshot(
            calls, workspace, redact=hermes_redactor(), deadline=deadline, note_masks=beyond.note_masks, extent=extent
        )
    except Exception as error:  # the recorded results are worth keeping without it
        warnings.append(f"the snapshot failed ({type(error).__name__}): only recorded calls can be answered")
        return Snapshot()
    warnings += snapshot_remarks(taken, SNAPSHOT_SECONDS)
    return taken


def in_git(folder: Path) -> bool:
    """Whether a folder lies in a git work tree."""
    return any((parent / ".git").exists() for parent in (folder, *folder.parents))


def replay_workspace(cassette: Cassette, folder: str) -> Workspace:
    """What paths mean in a replay: as recorded, on whatever machine.

    :param folder: where the replay works; a model names files by it, and means
        the recorded ones.
    """
    windows = cassette.recorder.platform == "win32"
    here: tuple[str, ...] = ()
    if folder and windows == (os.name == "nt"):
        here = (folder, *Workspace.here(folder, (os.environ.get("PWD", ""),)).aliases)
    aliases = tuple(dict.fromkeys(path for path in (*cassette.cwd_aliases, *here) if path != cassette.cwd))
    home = os.path.expanduser("~") if here else ""
    return Workspace(cassette.cwd, aliases, windows, cassette.recorder.fold_case, home)


def saved_text(cassette: Cassette) -> str:
    """Say in a line what a recording kept."""
    calls, files = len(cassette.calls), len(cassette.snapshot.files)
    text = f"{cassette.name!r} saved: {calls} call{'s' * (calls != 1)}, {files} snapshot file{'s' * (files != 1)}"
    return text + "".join(f"; warning: {warning}" for warning in cassette.warnings)


# --- what is kept of a recording ---------------------------------------------------


def judge_calls(slots: Sequence[LiveCall], elsewhere: Sequence[str] = ()) -> tuple[list[Call], list[str], list[str]]:
    """Split a turn's calls into those kept, the names of the others, and warnings.

    :param elsewhere: the tools of calls that something else answered; what a
        terminal of theirs changed is not known, so no terminal's result is kept then.
    """
    calls: list[Call] = []
    not_kept: list[str] = []
    reasons: dict[str, list[str]] = {}
    rules = KeepRules(windows=sys.platform == "win32")
    for tool in elsewhere:
        rules.pass_over(tool)
    for slot in slots:
        why = _why_not(slot, rules)
        if why is None:
            calls.append(Call(slot.tool, slot.args, slot.result))
        else:
            not_kept.append(slot.tool[:NAME_LENGTH])
            reasons.setdefault(why, []).append(slot.tool)
    if elsewhere:
        not_kept += [tool[:NAME_LENGTH] for tool in elsewhere]
        reasons["it was answered by something else"] = list(elsewhere)
    warnings = [f"{listed(tools)}: {why}" for why, tools in reasons.items()]
    if writers := [tool for why, tools in reasons.items() if why in _MAY_WRITE for tool in tools]:
        warnings.append(
            f"{listed(writers)}: may have changed something, so a run that does the same can only be DIVERGED"
        )
    if not_kept:
        plural = "s were" if len(not_kept) > 1 else " was"
        warnings.insert(0, f"{len(not_kept)} tool call{plural} not kept: this cassette may not replay cleanly")
    return calls, not_kept, warnings


#: Why calls are not kept that no replay can run again.
_MAY_WRITE = frozenset(
    {NotKept.FOREIGN_TOOL, NotKept.NOT_LISTED, NotKept.SYNTAX, NotKept.LINES, NotKept.ACTS, NotKept.WILD}
    | {NotKept.NOT_FOREGROUND}
)


def snapshot_remarks(taken: Snapshot, seconds: float) -> list[str]:
    """Say what a person should know of a snapshot, a line each.

    :param seconds: how long it might take.
    """
    lines = []
    if late := taken.skipped.get(SkipReason.LATE):
        lines.append(f"{late} files did not make it into the snapshot in {seconds:g} s")
    for reason, why in (
        (SkipReason.REDACTION_SLOW, "not in the snapshot, since Hermes's redaction could take minutes over it"),
        (SkipReason.CHANGED_IN_TURN, "not in the snapshot, since it changed during the turn"),
        (SkipReason.CHANGED_SINCE, "not in the snapshot, since it changed since the session"),
        (SkipReason.WHOLE_TOTAL, "not in the snapshot, since 24 MB are the most"),
    ):
        if names := [path for path, one in taken.skipped_paths.items() if one == reason]:
            more = taken.skipped.get(reason, 0) - len(names)
            lines.append(f"{why}: {listed(names)}" + f" and {more} more" * (more > 0))
    return lines


def _why_not(slot: LiveCall, rules: KeepRules) -> str | None:
    """Say why a call is not kept, and tell the rules of it either way."""
    if slot.why:
        why = slot.why
    elif not slot.done:
        why = NotKept.RAISED if slot.failed else NotKept.NO_RESULT
    elif not isinstance(slot.args, dict) or not (slot.plain or _is_json(slot.args)):
        why = NotKept.NO_ARGUMENTS
    else:
        return rules.judge(slot.tool, slot.args, slot.result)
    rules.pass_over(slot.tool)
    return why


_FAILING = ('"error"', '"success"', '"status"', '"approval_pending"')

_WEB_TOOLS = ("web_search", "web_extract")


#: What Hermes answers in place of a command's output that needs a person's yes.
_APPROVAL = ("pending_approval", "approval_required", "blocked", "denied")


#: How the system and the usual clients word that a host could not be reached.
_NETWORK = (
    r"(?i)\b(?:connection (?:refused|reset|aborted|timed out|error)|(?:network|host) is unreachable|no route to host"
    r"|could not resolve|name or service not known|temporary failure in name resolution|getaddrinfo"
    r"|max retries exceeded|(?:connect|read|request) ?timeout|operation timed out|too many requests"
    r"|service unavailable|bad gateway|(?:ssl|tls) (?:error|handshake))"
)


def remarks(calls: Sequence[Call]) -> list[str]:
    """Say what the kept calls of a recording should be known for, a line each."""
    found: dict[str, list[str]] = {}
    for call in calls:
        if why := _failure(call):
            found.setdefault(why, []).append(call.tool)
    lines = [f"{listed(tools)}: {why}, which every replay gives again" for why, tools in found.items()]
    if names := list(dict.fromkeys(name for call in calls for name in _secret_contents(call))):
        files = f"{len(names)} file{'s' * (len(names) > 1)} with {'' if len(names) > 1 else 'a '}secret-looking"
        lines.append(f"rows of {files} name{'s' * (len(names) > 1)} are in the results: {listed(names)}")
    if not calls:
        lines.append("no tool call was kept: a replay has nothing to answer with")
    return lines


def _failure(call: Call) -> str:
    """Say that a call's result is an error of the network or of an approval; "" when it is none."""
    if isinstance(call.result, str) and not any(word in call.result for word in _FAILING):
        return ""  # decoding it costs several times as much
    value = leading_json(call.result) if isinstance(call.result, str) else call.result
    if not isinstance(value, Mapping):
        return ""
    told = shown(value.get("error") or "", NAME_LENGTH)
    said = f" ({told})" if told else ""
    if value.get("approval_pending") is True or str(value.get("status") or "").lower() in _APPROVAL:
        return f"the result is a command that was not approved{said}"
    if call.tool in _WEB_TOOLS:
        if value.get("success") is False or told:
            return f"the result is a failure{said}"
        found = value.get("results")
        pages = found if isinstance(found, list) else []
        failed = [page for page in pages if isinstance(page, Mapping) and page.get("error")]
        return f"{len(failed)} of {len(pages)} pages in the result could not be fetched" if failed else ""
    return f"the result is an error of the network{said}" if re.search(_NETWORK, told) else ""


_write_json = json.JSONEncoder(allow_nan=False).encode


def _is_json(value: Any) -> bool:
    try:
        _write_json(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _secret_contents(call: Call) -> list[str]:
    """Name the files with secret-looking names of which a call's result holds contents, each once."""
    place = call.args.get("path", "") if call.tool == "read_file" else ""
    told = f"{place}\n{call.args.get('command', '')}\n{call.result}".lower()
    if not any(mark in told for mark in SECRET_MARKS):
        return []
    value = leading_json(call.result) if isinstance(call.result, str) else call.result
    if not isinstance(value, Mapping):
        return []
    names: Iterable[str] = ()
    if call.tool == "read_file" and value.get("content"):
        names = texts_in([place])
    elif call.tool == "search_files":
        names = in_rows(value)
    elif call.tool == "terminal" and isinstance(value.get("output"), str):
        names = _printed(str(call.args.get("command", "")), value["output"])
    return [name for name in dict.fromkeys(names) if has_secret_name(name)]


def _printed(command: str, output: str) -> Iterator[str]:
    """Name the files of which a kept command printed contents: those in its words, and those in its rows."""
    words = [word for word in re.split(r"[\s'\":=]+", command) if not word.startswith("-")]
    if not output.strip() or not words or words[0] in ("ls", "dir"):
        return
    yield from words[2 if words[0] == "rg" else 1 :]
    if words[0] == "rg":
        yield from dict.fromkeys(line.partition(":")[0] for line in output.split("\n"))
    elif words[0] == "git":
        yield from re.findall(r"(?m)^(?:\+\+\+|---) [ab]/(.*)$", output)
