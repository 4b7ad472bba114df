"""Stands between the model and every tool: passes through, records, or replays;
and says what is kept of a recording, and what a replay is worth.

Hermes runs the real tool when a middleware callback raises before `next_call`,
so nothing here may raise before it, and a replayed call never sees it at all:
a `Replay` is not even handed `next_call`.  Nothing here touches the disk.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import itertools
import json
import re
import threading
from collections import Counter, OrderedDict
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from .cassette_store import (
    HOWS,
    REPLAY_LIMIT,
    Answered,
    Arm,
    Call,
    Cassette,
    Claim,
    Facts,
    Ledger,
    Recorder,
    Snapshot,
    hermes_release,
    plain_copy,
    shown,
)
from .snapshot import (
    Evidence,
    FOREGROUND_SECONDS,
    KEPT_TOOLS,
    Names,
    NotKept,
    NoteMasks,
    ReadMasks,
    Walk,
    Word,
    Workspace,
    leading_json,
    split_command,
    terminal_verdict,
)
from .synth_search import (
    FAMILIES,
    MOST_WAYS_BACK,
    Miss,
    Source,
    Synthesizer,
    Told,
    coerce_args,
    learn_shapes,
    read_page,
)

#: Results over this many bytes of UTF-8 are not kept.
RESULT_LIMIT = 2 * 1024 * 1024
#: Results of one turn beyond this many bytes together are not kept.
TURN_LIMIT = 12 * 1024 * 1024
#: Tool calls of one replayed turn after which the log is cut and the run INVALID.
CALL_LIMIT = 5_000

#: What the model sees for a call that the cassette cannot answer.  It is no
#: result, but neither does Hermes's loop guard take it for a failing tool: the
#: guard looks for `"error"` or `"failed"`, and would append advice to the model
#: that the recorded session never had (`agent/tool_guardrails.py`).
MISS = '{"status": "unavailable", "message": "cassette miss"}'

#: The reason of a logged call until it is answered.
_PENDING = "still being answered when the turn ended"

#: Turns whose live calls are remembered, so that a late claim is found out.
SEEN_LIMIT = 10_000

#: The name of a Hermes that recorded, but did not tell its version, and those that it may be.
UNKNOWN, _VERSIONS = "unknown", ("0.19.0", "0.20.1", "0.22.2")

#: Sessions that stay closed after their replay.
_CLOSED_LIMIT = 10_000


# --- recording ---------------------------------------------------------------


class LiveCall:
    """One live call of a recorded turn; `done` turns true with its result.

    `plain` says that the arguments are known to be plain JSON, and `why` why the
    result is not kept whatever the rules say, "" for no such reason.
    """

    __slots__ = ("tool", "args", "plain", "result", "done", "failed", "id", "why")

    def __init__(
        self, tool: str, args: Any, result: Any = None, done: bool = False, plain: bool = False, id: str = ""
    ) -> None:
        self.tool, self.args, self.plain, self.id = tool, args, plain, id
        self.result, self.done, self.failed, self.why = result, done, False, ""


class Past(NamedTuple):
    """What is known of a turn that ended before it was recorded."""

    ended: float  #: in seconds since the epoch
    hermes: str = ""  #: the Hermes that ran it; "" for one that is not known
    folder: str = ""  #: where its session worked, if that is another folder by now


class Recording:
    """The calls of one live turn, in the order in which they started.

    :param arm: the id of the arm that the turn claimed, "" for none.
    :param rg_major: major version of the command's ripgrep; 0 unknown.
    :param folder: where the command said the session works, "" if it did not.
    :param faults: what the cassette must warn of already.
    :param earlier: the ids of the calls that the conversation held before this turn.
    :param resumed: the session had turns before.
    :param past: the turn is over; None for one that runs.
    :param whole: the texts of the whole workspace are to be kept.
    :param names: the names of all in it are to be kept.
    :param started: when the turn began, in seconds since the epoch; 0 unknown.
    """

    def __init__(
        self,
        name: str,
        turn: str,
        session: str,
        request: str = "",
        model: str = "",
        *,
        arm: str = "",
        overwrite: bool = False,
        rg_major: int = 0,
        folder: str = "",
        faults: Iterable[str] = (),
        earlier: tuple[str, ...] = (),
        resumed: bool = False,
        whole: bool = False,
        names: bool = True,
        started: float = 0.0,
        past: Past | None = None,
    ) -> None:
        self.name, self.turn, self.session = name, turn, session
        self.whole, self.names, self.started, self.past = whole, names, started, past
        self.request, self.model = request, model
        self.arm, self.overwrite, self.rg_major, self.folder = arm, overwrite, rg_major, folder
        self.faults = list(faults)
        self.slots: list[LiveCall] = []
        self.passed: list[str] = []  # ids of calls that are none of the recording's
        self.earlier, self.resumed = earlier, resumed
        self._closed = False
        # (tool_call_id) of the live call around this one: 0.19.0 runs the
        # middleware twice, nested, for a call of a parallel batch.
        self._around: contextvars.ContextVar[str] = contextvars.ContextVar("cassette_call", default="")

    def execute(self, tool: str, args: Any, next_call: Callable[..., Any], call_id: str) -> Any:
        """Run the live tool and note what came back; pass its very object on.

        Whatever the tool raises goes to the host untouched.
        """
        slot = self._begin(tool, args, call_id)
        if slot is None:
            return next_call(args)
        token = self._around.set(call_id)
        try:
            result = next_call(args)
        except BaseException:
            slot.failed = True
            raise
        finally:
            self._around.reset(token)
        self._end(slot, result)
        return result

    def recall(self, tool: str, args: Any, result: str | None, why: str = "") -> None:
        """Note a call that was made before.

        :param result: what the tool returned, None if nothing is known of that.
        :param why: why the result is not kept, whatever it is; "" for no such reason.
        """
        slot = self._begin(tool, args, "")
        if slot is not None:
            slot.why = why
            if result is not None:
                self._end(slot, result)

    def _begin(self, tool: str, args: Any, call_id: str) -> LiveCall | None:
        if self._closed or (call_id and self._around.get() == call_id):
            return None
        try:
            tool, args = unwrapped(tool, args)
            copied, plain = _copied(args)  # later layers change the arguments in place
        except Exception as error:
            self.faults.append(f"the arguments of a {tool} call could not be copied ({type(error).__name__})")
            return None
        slot = LiveCall(tool, copied, plain=plain, id=call_id)
        self.slots.append(slot)
        return slot

    def _end(self, slot: LiveCall, result: Any) -> None:
        if self._closed:
            return
        try:
            slot.result = result if isinstance(result, str) else _copied(result)[0]
            slot.done = True
        except Exception as error:
            self.faults.append(f"the result of a {slot.tool} call could not be copied ({type(error).__name__})")

    def close(self) -> list[LiveCall]:
        """End the recording: calls that return later are no part of it."""
        self._closed = True
        return list(self.slots)


# --- what is kept of a recording ---------------------------------------------------


class KeepRules:
    """Judges the calls of one turn, each once and in their order.

    It keeps count of what the turn has kept, and remembers a terminal command
    whose output is not: that may have changed what later commands print.

    :param windows: commands are read as Windows's shells do.
    """

    def __init__(self, windows: bool = False) -> None:
        self._windows = windows
        self._room = TURN_LIMIT  # bytes that may still be kept
        self._foreign = False

    def judge(self, tool: str, args: object, result: object) -> str | None:
        """Say why a result is not kept (one of `NotKept`); None when it is, and counts from now on."""
        reason = NotKept.STUB if is_guard_stub(tool, result) else self._tool_reason(tool, args)
        reason = reason or self._size_reason(result)
        if reason is not None:
            self.pass_over(tool)
        return reason

    def pass_over(self, tool: str) -> None:
        """Note a call that is not kept, whatever it returned."""
        self._foreign |= tool == "terminal"

    def _tool_reason(self, tool: str, args: object) -> str | None:
        if tool == "terminal":
            return terminal_verdict(args, self._windows) or (NotKept.AFTER_FOREIGN if self._foreign else None)
        return None if tool in KEPT_TOOLS else NotKept.FOREIGN_TOOL

    def _size_reason(self, result: object) -> str | None:
        if not isinstance(result, str):
            return NotKept.NOT_TEXT
        size = text_bytes(result)
        if size > RESULT_LIMIT:
            return NotKept.TOO_LARGE
        if size > self._room:
            return NotKept.TOTAL
        self._room -= size
        return None


def text_bytes(text: str) -> int:
    """Return the size of a text in bytes of UTF-8.

    One beyond every limit is not encoded: its length is answer enough.
    """
    if text.isascii() or len(text) > TURN_LIMIT:
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


_STUB_TEXTS = (
    "[hermes note: this result is byte-identical to ",
    "[Tool execution cancelled",
    "[Tool execution skipped",
    "<persisted-output>",
)
_CUT_TEXT = r"\n\[Truncated: tool response was [\d,]+ chars\.[^\n]*\]\s*\Z"
#: Longer results are not stubs: a stub repeats an argument at most.
_STUB_LIMIT = 64 * 1024
_PAYLOAD = ("content", "matches", "matches_text", "files", "counts", "results", "data", "skills", "output")


def is_guard_stub(tool: str, result: object) -> bool:
    """Say whether a result is only Hermes's remark about a result.

    Such as "unchanged since last read", a refusal to repeat a call, a call
    cancelled by the user, or a pointer to a text saved elsewhere.  Judged by
    the keys of the result, so that a file about these words is not one.
    """
    if isinstance(result, str) and result.startswith(_STUB_TEXTS):
        return True
    value = result
    if isinstance(result, str):
        if not _may_be_stub(tool, result):
            return False
        value = leading_json(result) if len(result) <= _STUB_LIMIT else None
        if value is None:
            return re.search(_CUT_TEXT, result[-500:]) is not None
    return isinstance(value, Mapping) and _is_stub_object(tool, value)


def _may_be_stub(tool: str, result: str) -> bool:
    """Whether a result has a stub's word or ending at all; decoding one costs several times as much."""
    return (
        '"error"' in result
        or '"guardrail_refusal"' in result
        or tool in ("read_file", "skill_view")
        and '"dedup"' in result
        or tool == "terminal"
        and '"promoted_from_foreground"' in result
        or result.rstrip().endswith("]")
    )


def _is_stub_object(tool: str, value: Mapping[str, Any]) -> bool:
    if value.get("guardrail_refusal") is True:
        return True
    if tool in ("read_file", "skill_view") and value.get("dedup") is True:
        return value.get("content_returned") is False
    if tool == "terminal" and "promoted_from_foreground" in value:
        return True  # it went on in the background, without its output
    error = value.get("error")
    if not isinstance(error, str) or any(value.get(key) for key in _PAYLOAD):
        return False
    return error.startswith(("BLOCKED", "Tool execution cancelled")) or isinstance(value.get("guardrail"), Mapping)


#: Names that a warning lists, and characters of each and of a tool's name that are kept.
_NAMES, NAME_LENGTH = 10, 100


def listed(names: Sequence[str]) -> str:
    """Names in the order of their first use, those used more than once with their number."""
    counts = Counter(shown(name, NAME_LENGTH) for name in names)
    told = [name if count == 1 else f"{name} ({count})" for name, count in counts.items()]
    more = len(told) - _NAMES
    return ", ".join(told[:_NAMES]) + (f" and {more} more" if more > 0 else "")


# --- a call within a call ----------------------------------------------------------


def unwrapped(tool: Any, args: Any) -> tuple[Any, Any]:
    """A call that `tool_call` wraps, as the call of the tool that it names; any other as it is.

    Most versions unwrap it themselves before they ask a middleware.
    """
    if tool != "tool_call" or not isinstance(args, Mapping):
        return tool, args
    calls = args.get("calls")
    one = calls[0] if isinstance(calls, list) and len(calls) == 1 else args
    if not isinstance(one, Mapping):
        return tool, args
    name, inner = one.get("name"), one.get("arguments")
    if isinstance(inner, str):
        try:
            inner = json.loads(inner)
        except (ValueError, RecursionError):
            return tool, args
    if not isinstance(name, str) or name in ("", "tool_call") or not isinstance(inner, Mapping):
        return tool, args
    return name, inner


# --- copies ----------------------------------------------------------------------


def _copied(value: Any) -> tuple[Any, bool]:
    """A copy that nobody else can change, and whether it is plain JSON.

    Hermes's arguments are, and the general copy of them takes five times as
    long; it does what is anything else.
    """
    try:
        return plain_copy(value), True
    except (TypeError, RecursionError):
        return copy.deepcopy(value), False


def _plain(args: Any) -> Any:
    """A copy of a call's arguments that any JSON writer takes."""
    try:
        return plain_copy(args)
    except (TypeError, RecursionError):
        pass
    try:
        return json.loads(json.dumps(args, default=repr, allow_nan=False))
    except Exception:  # what no JSON can say is told in words
        with contextlib.suppress(RecursionError):
            return repr(args)[:2000]
        return "arguments that are nested too deeply"


# --- what makes two calls the same ---------------------------------------------

#: What Hermes takes for an argument that is left out, of the kept tools whose
#: arguments `coerce_args` does not read.  Equal in 0.19, 0.20 and 0.22, but for
#: `detail` and `char_limit`, which the older ones do not have.  Where it is
#: configured (the `limit` of `tool_search`), null alone is known.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "terminal": {
        "background": False,
        "timeout": 180,
        "workdir": None,
        "pty": False,
        "notify_on_complete": False,
        "watch_patterns": None,
    },
    "web_search": {"limit": 5},
    "web_extract": {"char_limit": 15_000},
    "skill_view": {"file_path": None},
    "skills_list": {"category": None},
    "tool_search": {"limit": None},
    "session_search": {
        "query": None,
        "limit": 3,
        "sort": None,
        "session_id": None,
        "around_message_id": None,
        "window": 5,
        "role_filter": None,
        "profile": None,
        "detail": "adaptive",
    },
}

#: Which arguments of a tool are paths.
_PATH_ARGS = {"read_file": ("path",), "search_files": ("path",), "terminal": ("workdir",)}


def call_key(
    tool: str,
    args: Mapping[str, Any],
    workspace: Workspace | None,
    recorder: Recorder,
    known_way: Callable[[str], bool] = lambda path: True,
) -> str:
    """Return one key for all spellings of a call that the live tool answers alike.

    :param known_way: says of a path whether its names tell where it leads; see `CommandKeys.known_way`.
    :raises ValueError: if the arguments are no JSON.
    """
    if recorder.hermes == UNKNOWN:  # alike to each of them
        recorders = [recorder._replace(hermes=version) for version in _VERSIONS]
        return "\n".join(call_key(tool, args, workspace, one, known_way) for one in recorders)
    plain = _without_defaults(tool, coerce_args(tool, args, recorder.hermes))
    if workspace is not None:
        for name in _PATH_ARGS.get(tool, ()):
            if isinstance(plain.get(name), str) and known_way(plain[name]):
                plain[name] = workspace.canonical(plain[name])
    return _as_said(tool, plain)


_sorted_json = json.JSONEncoder(sort_keys=True, allow_nan=False).encode


def _as_said(tool: str, args: Mapping[str, Any]) -> str:
    """A call in words that only the order of its arguments may change.

    :raises ValueError: if the arguments are no JSON; also TypeError or RecursionError.
    """
    return f"{tool} {_sorted_json(args)}"


def _without_defaults(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """Drop arguments that say what leaving them out says; read numbers in strings."""
    defaults = _DEFAULTS.get(tool)
    if defaults is None:
        return args
    kept = {}
    for name, value in args.items():
        default = defaults.get(name, ...)
        if type(default) is int and isinstance(value, str) and re.fullmatch(r"\s*\d{1,9}\s*", value):
            value = int(value)  # Hermes repairs it too (`coerce_tool_args`)
        if default is ... or type(value) is not type(default) or value != default:
            kept[name] = value
    return kept


#: Makes the one who answers terminal commands from the files, of those files and the recorded terminal calls.
#: It takes a call's arguments and the folder in which it runs, relative to the workspace, and returns the result
#: and the folder in which the next one runs, or raises `Miss`.
_Commands = Callable[[Source, Sequence[Call]], Callable[[Mapping[str, Any], str], tuple[str, str]]]


class Beyond(NamedTuple):
    """What a recording or a replay does beyond the specification; the plugin's entry hands it in.

    `commands` answers terminal commands in replays; None: only those that were
    recorded are answered.  `note_masks` notes in a recording where redaction
    hides something, and `read_masks` tells it to a replay; None: the masked text
    is taken as it is.  `walk` lists the names of a workspace for a recording;
    None: neither names nor a whole are kept.  `evidence` tells which files a
    turn changed; None: each is kept as the turn leaves it.  `names`
    answers from a recording's names alone; None: nothing does.
    """

    commands: _Commands | None = None
    note_masks: NoteMasks | None = None
    read_masks: ReadMasks | None = None
    walk: Walk | None = None
    evidence: Callable[[Sequence[Call], Workspace], Evidence] | None = None
    names: Callable[[Source], Names] | None = None


#: How much of a command's spelling counts, beside what it makes its program do.
_OUTCOME, _WORDS, _SECONDS = range(3)


class CommandKeys:
    """One key for all spellings of a terminal command that end in the same output.

    What was recorded decides how much of a spelling may be passed over: a
    complaint shows how a file was called, and one that ran out of time shows
    that its time counts.
    """

    def __init__(self, cassette: Cassette | None, workspace: Workspace | None, recorder: Recorder) -> None:
        self._workspace, self._recorder = workspace, recorder
        self._snapshot = cassette.snapshot if cassette else Snapshot()
        self._counts: dict[str, int] = {}  # a key -> how much of its spellings counts
        calls = [call for call in cassette.calls if call.tool == "terminal"] if cassette else []
        self._stays = (hermes_release(recorder.hermes) or (0, 0)) < (0, 20)  # where a call's `workdir` is
        self._moved = self._stays and any(self._folder(call.args) for call in calls)
        for call in calls:
            key = self._key(call.args, _OUTCOME)
            if key is not None:
                self._counts[key] = max(self._counts.get(key, _OUTCOME), _spelling_shown(call.result))

    def key(self, args: Mapping[str, Any]) -> str | None:
        """Return the call's key; None when only the same text is the same call.

        :raises ValueError: if the arguments are no JSON; also TypeError or RecursionError.
        """
        key = self._key(args, _OUTCOME)
        counts = self._counts.get(key, _OUTCOME) if key is not None else _OUTCOME
        return self._key(args, counts) if counts else key

    def _key(self, args: Mapping[str, Any], counts: int) -> str | None:
        command, folder = args.get("command"), self._folder(args)
        if not isinstance(command, str) or folder is None or not _is_plain_run(args):
            return None
        forms = command_forms(command, self._recorder.platform == "win32", self._place(args), self._is_folder(args))
        if forms is None:
            return None
        outcome = counts == _OUTCOME and not self._moved and self._workspace is not None
        said: dict[str, Any] = {"words": forms.outcome if outcome else forms.words}
        if folder and (self._stays or not (outcome and forms.placed and folder in self._folders)):
            said["workdir"] = folder
        elif self._moved and args.get("workdir"):  # which leads back
            said["workdir"] = "."
        timeout = _seconds(args.get("timeout"))
        if timeout is None or counts == _SECONDS:
            said["timeout"] = args.get("timeout") if timeout is None else timeout
        return _as_said("terminal", said) + " as it is run"  # nobody's arguments end so

    @property
    def stays(self) -> bool:
        """Whether the shell stays where a call's `workdir` was."""
        return self._stays

    @property
    def moved(self) -> bool:
        """Whether a recorded call may have run in a folder in which an earlier one stayed."""
        return self._moved

    @cached_property
    def _folders(self) -> set[str]:
        """The folders that are known to hold a file."""
        found = {path[:end] for path in self._snapshot.files for end, char in enumerate(path) if char == "/"}
        return {self._workspace.canonical(folder) for folder in found} if self._workspace else set()

    def known_way(self, path: str) -> bool:
        """Whether each `..` in a path leads back from a folder that is known to be there, in a workspace without links.

        From a link it leads back from where that leads; and where there is no folder, nowhere.
        """
        names = re.split(r"[/\\]" if self._recorder.platform == "win32" else "/", path)
        back = names.count("..")
        if self._workspace is None or back > MOST_WAYS_BACK or back and self._snapshot.links:
            return False
        ways = (names[:end] for end, name in enumerate(names) if name == "..")
        named = ["/".join(way) for way in ways if not {"", ".", ".."}.issuperset(way)]
        places = map(self._workspace.canonical, named)
        return all(place == "." or place in self._folders for place in places)

    def _folder(self, args: Mapping[str, Any]) -> str | None:
        """Where a call runs: "" for the workspace itself, None for what is no path."""
        folder = args.get("workdir") or "."
        if not isinstance(folder, str):
            return None
        if self._workspace is None or ".." in folder.split("/"):
            return folder  # a way back needs each folder of it to be there
        place = self._workspace.canonical(folder)
        return "" if place == "." else place

    def _place(self, args: Mapping[str, Any]) -> Callable[[str], str]:
        folder = args.get("workdir") or ""
        return lambda path: path if self._workspace is None else self._workspace.canonical(path, folder)

    def _is_folder(self, args: Mapping[str, Any]) -> Callable[[str], bool]:
        def is_folder(path: str) -> bool:
            place = self._place(args)(path)
            # `ls -l` shows a link that is named as what it is.
            real = not path.startswith("/") or path.endswith("/") or not (self._workspace and self._workspace.aliases)
            return real and (place == "." or place in self._folders)

        return is_folder


def _is_plain_run(args: Mapping[str, Any]) -> bool:
    """Whether a terminal call is a plain foreground run; an argument that is empty says nothing."""
    for name, value in args.items():
        if name == "heartbeat":  # 0.22 reads it of background runs only
            if type(value) is not int or value < 0:
                return False
        elif value and name not in ("command", "timeout", "workdir"):
            return False
    return True


def _is_plain_call(args: Mapping[str, Any]) -> bool:
    """Whether a terminal call is a plain foreground run with a time-out that Hermes takes."""
    return _is_plain_run(args) and _seconds(args.get("timeout")) is not None


def _seconds(value: Any) -> float | None:
    """A time-out that a command which ended kept to, 0 for none; None for what Hermes would not take."""
    if value is None:
        return 0.0
    if isinstance(value, str) and not re.fullmatch(r"\s*\d{1,9}\s*", value) or isinstance(value, bool):
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 < seconds <= FOREGROUND_SECONDS else None


def _spelling_shown(result: Any) -> int:
    """How much of a command's spelling its recorded result may show."""
    value = leading_json(result) if isinstance(result, str) else result
    if not isinstance(value, Mapping):
        return _WORDS
    code = value.get("exit_code")
    if type(code) is int and code == 0 and not value.get("error"):
        return _OUTCOME
    return _SECONDS if code == 124 else _WORDS


# --- which terminal commands are one ---------------------------------------------

#: What Hermes itself reads in the text of a command, to word its remarks (`_interpret_exit_code`).
_REMARKED = "[|;&]"
#: Files for which Hermes redacts a command's output more strictly; it goes by the command's text.
_REDACTED = r"\.(?!\.?\Z).*|config\.yaml.*"

#: Letters of `ls` that change what it says of a folder's files, not what it calls the folder.
_LS_LETTERS = frozenset("1AFGSXaghilnoprst")
#: Those of them whose order means nothing.
_LS_FREE = frozenset("ahlrt")
#: Flags of `git log` and `git show` that take no value of their own.
_GIT_FLAGS = frozenset(
    "-p -u -s --patch --no-patch --oneline --stat --shortstat --numstat --summary --graph --decorate --no-decorate"
    " --all --branches --tags --remotes --reverse --merges --no-merges --first-parent --name-only --name-status"
    " --abbrev-commit --no-abbrev-commit --no-color --date-order --topo-order --author-date-order --follow".split()
)
_COUNT = r"(?:-n?|--max-count=)([1-9]\d{0,8})"


class Forms(NamedTuple):
    """What a command comes to, in two degrees.

    Commands with an equal `words` do the same.  Those with an equal `outcome`
    do so where one of them is known to succeed: a file that `cat` cannot open
    is called in its complaint as it was typed.
    """

    words: tuple[str, ...]
    outcome: tuple[str, ...]
    placed: bool  #: `outcome` says where its files are, so where the command runs does not count


def command_forms(
    command: str, windows: bool, place: Callable[[str], str], is_folder: Callable[[str], bool]
) -> Forms | None:
    """Return what a command comes to; None when only the same text is the same command.

    :param place: returns one spelling for all paths that lead from where the
        command runs to the same file.
    :param is_folder: says that a path surely is a folder, and no link to one.
    """
    words = split_command(command, windows) if command.isprintable() else None
    if not words or words[0].raw != words[0].text or words[0].live or re.search(_REMARKED, command):
        return None
    if words[0].text in ("cat", "type") and any(map(_redacts_by_text, words[1:])):
        typed = tuple(f"raw {word.raw}" for word in words)
        return Forms(typed, typed, False)
    if words[0].text == "git" and len(words) > 1 and words[1].raw == "--no-pager":
        del words[1]  # there is no terminal to page on
    said = tuple(_said(word) for word in words)
    outcome = None if windows else _outcome(words, place, is_folder)
    paths = [part for part in outcome or () if part.startswith("path ")]
    others = [part for part in (outcome or said)[1:] if not part.startswith(("path ", "letters ", "word -"))]
    return Forms(said, outcome or said, bool(paths) and not others)


def _redacts_by_text(word: Word) -> bool:
    name = word.text.rpartition("/")[2]
    return re.search(r"[\s\\]", word.raw) is not None or re.fullmatch(_REDACTED, name, re.IGNORECASE) is not None


def _said(word: Word) -> str:
    return f"raw {word.raw}" if word.live else f"word {word.text}"


def _outcome(
    words: Sequence[Word], place: Callable[[str], str], is_folder: Callable[[str], bool]
) -> tuple[str, ...] | None:
    program = words[0].text
    if program == "cat":
        return ("word cat", *_cat(words[1:], place))
    if program in ("ls", "dir"):
        return _listing(words, place, is_folder)
    if program == "git" and len(words) > 1 and words[1].raw in ("log", "show"):
        return _history(words)
    return None


def _cat(words: Sequence[Word], place: Callable[[str], str]) -> list[str]:
    """`cat` prints no names: what leads to the same files is the same."""
    said = []
    options = True
    for word in words:
        if not word.live and options and word.text == "--":
            options = False
        elif word.live or word.text == "-" or options and word.text.startswith("-"):
            said.append(_said(word))
        else:
            steps = word.text.split("/")
            # A folder's name, and one that climbs, may fail where another spelling does not.
            plain = word.text and ".." not in steps and steps[-1] not in ("", ".")
            said.append(f"path {place(_from_here(word.text))}" if plain else _said(word))
    return said


def _from_here(path: str) -> str:
    """A path as the program reads it: a quoted `~` is a name."""
    return path if path.startswith("/") else f"./{path}"


def _listing(
    words: Sequence[Word], place: Callable[[str], str], is_folder: Callable[[str], bool]
) -> tuple[str, ...] | None:
    """`ls` of one folder says nothing of how it is called; None for any other."""
    letters = ""
    operands: list[str] = []
    for word in words[1:]:
        if word.live or word.text.startswith("--"):
            return None
        if word.text.startswith("-") and len(word.text) > 1:
            if operands:
                return None
            letters += word.text[1:]
        else:
            operands.append(word.text)
    if not set(letters) <= _LS_LETTERS or len(operands) > 1 or operands and ".." in operands[0].split("/"):
        return None
    path = _from_here(operands[0]) if operands else "."
    if operands and path not in ("./", "./.", "././") and (not operands[0] or not is_folder(path)):
        return None
    if set(letters) <= _LS_FREE:
        letters = "".join(sorted(set(letters)))
    return (f"word {words[0].text}", f"letters {letters}", f"path {place(path)}")


def _history(words: Sequence[Word]) -> tuple[str, ...] | None:
    """`git log` says the same whichever way it is told how many; None when it is not told once."""
    rest = list(words[2:])
    count = ""
    flags: list[str] = []
    while rest and rest[0].text.startswith("-") and rest[0].text != "--" and not rest[0].live:
        text = rest.pop(0).text
        if text in ("-n", "--max-count") and rest and not rest[0].live:
            text = f"-n{rest.pop(0).text}"
        if found := re.fullmatch(_COUNT, text, re.ASCII):
            if count:
                return None
            count = found[1]
        elif text in _GIT_FLAGS or re.match(r"--(?!max-|skip)[a-z-]+=", text):
            flags.append(f"word {text}")
        else:
            return None
    if not count:
        return None
    return ("word git", f"word {words[1].text}", f"count {count}", *flags, *map(_said, rest))


def _starts_here(tool: str, args: Mapping[str, Any]) -> bool:
    """Whether what a call names depends on the folder that commands run in."""
    names = _PATH_ARGS.get(tool, ())
    return any(not str(args.get(name) or ".").startswith(("/", "~")) for name in names)


# --- what a recording gives away ---------------------------------------------------


def learn(calls: Sequence[Call], snapshot: Snapshot) -> dict[str, Any]:
    """Return what the recorded results prove about the Hermes that gave them.

    :returns: any of `family` (a table's name), `search` ("rg" or "grep") and
        `rg_major` (13 for ripgrep 13 or older, 14 for newer); a fact is left
        out unless every result that speaks of it agrees.
    """
    seen: dict[str, set[Any]] = {"family": set(), "rg_major": set()}
    for call in calls:
        if call.tool == "read_file":
            seen["family"].update(_reads_like(call, snapshot))
        elif call.tool == "search_files":
            error = re.search(r"Search failed: (rg: )?regex parse error", str(call.result)[:4096])
            seen["rg_major"].update({14 if error[1] else 13} if error else ())
    seen["search"] = {learn_search(calls)} - {""}
    return {fact: values.pop() for fact, values in seen.items() if len(values) == 1}


def _reads_like(call: Call, snapshot: Snapshot) -> set[str]:
    """Name the family whose answer to this read is the recorded one, if only one fits."""
    file = snapshot.files.get(str(call.args.get("path", "")))
    try:
        if file is None and '"not_found"' not in call.result:
            return set()
        result = json.loads(call.result)
        if not isinstance(result, dict) or "content" not in result or file is None:
            return {"0.22"} if isinstance(result, dict) and "not_found" in result else set()
    except (TypeError, ValueError):
        return set()
    fits = set()
    for name, family in FAMILIES.items():
        args = coerce_args("read_file", call.args, name)
        if read_page(file, args["offset"], args["limit"], family) == result:
            fits.add(name)
    return fits if len(fits) == 1 else set()


def learn_search(calls: Iterable[Call]) -> str:
    """Return what ran the recorded searches, "rg" or "grep"; "" unless those that tell agree."""
    seen: set[str] = set()
    for call in calls:
        if call.tool == "search_files":
            seen |= _searches_like(call)
    return seen.pop() if len(seen) == 1 else ""


def _searches_like(call: Call) -> set[str]:
    """Tell ripgrep from grep by the path form of a content search below "."."""
    if str(call.args.get("path", "."))[:1] != ".":
        return set()
    if call.args.get("target", "content") not in ("content", "grep"):
        return set()
    found = re.search(r'"(?:path|matches_text)": "(\./|/|[A-Za-z]:)', str(call.result))
    return set() if found is None else {"rg" if found[1] == "./" else "grep"}


# --- replay ------------------------------------------------------------------


class Replay:
    """One claimed turn, answered from a cassette and from nothing else.

    Without a cassette (`error` says why) every call is a miss.
    """

    def __init__(
        self,
        arm: Arm,
        turn: str,
        session: str,
        model: str,
        facts: Facts,
        cassette: Cassette | None,
        workspace: Workspace | None,
        error: str = "",
        beyond: Beyond = Beyond(),
    ) -> None:
        self.arm, self.turn, self.model, self.facts = arm, turn, model, facts
        self.sessions = [session]
        self.errors = [error] if error else []
        self.evicted = False
        self._lock = threading.Lock()
        self._arrivals = itertools.count()  # every call that came, logged or not
        self._logged = 0
        self._calls: list[Answered] = []  # with the reason PENDING until it is answered
        self._asked: dict[str, int] = {}  # call key -> how often it was asked
        self._truncated = False
        self._finished = False
        self._live = 0
        self._cassette = cassette
        self._recorder = cassette.recorder if cassette else Recorder()
        self._workspace = workspace
        self._index: dict[str, list[int]] = {}  # call key -> recorded calls, in order
        self._keys: dict[str, str] = {}  # a recorded call, word for word -> its call key
        self._commands = CommandKeys(cassette, workspace, self._recorder)
        self._refused: dict[tuple[str, str], int] = {}  # (tool, path) -> the recorded call that it failed
        self._synth: Synthesizer | None = None
        self._others: list[Synthesizer] = []
        self._run_command: Callable[[Mapping[str, Any], str], tuple[str, str]] | None = None
        self._folder = ""  # where a terminal command now runs, relative to the workspace
        if cassette is not None:
            self._load(cassette, beyond)
            if beyond.commands is not None and self._synth and not self._others and not self._commands.moved:
                calls = [call for call in cassette.calls if call.tool == "terminal" and _is_plain_call(call.args)]
                self._run_command = beyond.commands(self._synth.source, calls)

    def _load(self, cassette: Cassette, beyond: Beyond) -> None:
        for number, call in enumerate(cassette.calls):
            key = self._call_key(call.tool, call.args)
            self._index.setdefault(key, []).append(number)
            self._keys[_as_said(call.tool, call.args)] = key
        if self._workspace is not None:
            self._refused = _refused_paths(cassette, self._workspace, self._commands.known_way)
            learned = {**learn(cassette.calls, cassette.snapshot), "shapes": learn_shapes(cassette.calls)}
            if major := self._recorder.rg_major or self.arm.rg_major:
                learned.setdefault("rg_major", major)
            given = (beyond.read_masks, beyond.names)
            self._synth = Synthesizer(cassette.snapshot, self._workspace, self._recorder, learned, *given)
            self._others = self._other_versions(cassette.snapshot, learned, beyond)

    def _other_versions(self, snapshot: Snapshot, learned: Mapping[str, Any], beyond: Beyond) -> list[Synthesizer]:
        """What must answer alike, where neither a name nor a recorded result tells the Hermes that recorded."""
        if self._workspace is None or self._recorder.hermes != UNKNOWN or learned.get("family"):
            return []
        recorders = [self._recorder._replace(hermes=version) for version in _VERSIONS]
        given = (beyond.read_masks, beyond.names)
        return [Synthesizer(snapshot, self._workspace, one, learned, *given) for one in recorders]

    def answer(self, tool: Any, args: Any, session: str, call_id: Any = "") -> Any:
        """Answer one tool call.  Never raises, whatever it is given."""
        next(self._arrivals)
        try:
            tool, args = unwrapped(tool, args)
            return self._answer(str(tool), args, session, str(call_id or ""))
        except Exception as error:
            return self._fault(tool, error)

    def _answer(self, tool: str, args: Any, session: str, call_id: str) -> Any:
        with self._lock:
            if session and session not in self.sessions:
                self.sessions.append(session)
            self._logged += 1
            if self._finished or len(self._calls) >= CALL_LIMIT:
                self._truncated |= not self._finished
                return MISS
            place, plain = len(self._calls), _plain(args)
            self._calls.append(Answered(tool, plain, "miss", reason=_PENDING, id=call_id))
        noted, result = self._look_up(tool, args, plain)
        with self._lock:
            self._calls[place] = noted._replace(id=call_id)
        return result

    def _key(self, tool: str, args: Mapping[str, Any]) -> str:
        """Return the call's key; one that was recorded in the same words has it ready."""
        try:
            ready = self._keys.get(_as_said(tool, args))
        except (TypeError, ValueError, RecursionError):  # no JSON, but the tool may not read what is none
            ready = None
        return ready or self._call_key(tool, args)

    def _call_key(self, tool: str, args: Mapping[str, Any]) -> str:
        one = self._commands.key(args) if tool == "terminal" else None
        return one or call_key(tool, args, self._workspace, self._recorder, self._commands.known_way)

    def _refusal(self, tool: str, path: Any) -> int | None:
        """The recorded call that failed for a path, if any did."""
        if self._workspace is None or not isinstance(path, str) or not self._commands.known_way(path):
            return None
        return self._refused.get((tool, self._workspace.canonical(path)))

    def _look_up(self, tool: str, args: Any, plain: Any) -> tuple[Answered, Any]:
        cassette = self._cassette
        if cassette is None:
            return Answered(tool, plain, "miss", reason="no cassette is loaded"), MISS
        if not isinstance(args, Mapping):
            return Answered(tool, plain, "miss", reason="the arguments are not an object"), MISS
        try:
            key = self._key(tool, args)
        except (TypeError, ValueError, RecursionError):  # so it is none that was recorded
            return Answered(tool, plain, "miss", reason="the arguments are no JSON"), MISS
        moved = self._folder and _starts_here(tool, args)
        recorded = self._index.get(key)
        if recorded and not moved:
            if tool == "terminal" and self._commands.stays and args.get("workdir"):
                self._folder = ""  # the live shell is there now; a replay knows of no recorded call elsewhere
            return self._hit(tool, plain, key, recorded, cassette)
        try:
            if tool == "terminal":
                told = Told(self._run(args))
            elif tool not in ("read_file", "search_files"):
                raise Miss("this call was not recorded")
            elif moved:
                raise Miss("where a relative path leads is not certain after cd")
            elif self._synth is None:
                raise Miss("the recording has no snapshot")
            else:
                told = self._synth.tell(tool, args)
                if any(other.tell(tool, args) != told for other in self._others):
                    raise Miss("the Hermes that recorded is not known, and the known ones answer this differently")
        except Miss as miss:
            number = None if moved else self._refusal(tool, args.get("path"))
            if number is None:
                return Answered(tool, plain, "miss", reason=str(miss)), MISS
            return Answered(tool, plain, "hit", recorded=number), _text(cassette.calls[number])
        return Answered(tool, plain, "synthesized", known=told.known, files=told.files), told.text

    def _run(self, args: Mapping[str, Any]) -> str:
        """Answer a terminal command from the files.  :raises Miss: if they do not tell."""
        if self._run_command is None or not _is_plain_call(args):
            raise Miss("this call was not recorded")
        try:
            text, self._folder = self._run_command(args, self._folder)
        except Miss as miss:
            why = f"; {miss}" if miss.reason else ""
            raise Miss(f"this call was not recorded{why}") from None
        return text

    def _hit(self, tool: str, plain: Any, key: str, recorded: list[int], cassette: Cassette) -> tuple[Answered, Any]:
        with self._lock:
            self._asked[key] = nth = self._asked.get(key, 0) + 1
        number = recorded[min(nth, len(recorded)) - 1]
        reason = f"asked {nth} times, recorded {len(recorded)}: the last result again" if nth > len(recorded) else ""
        return Answered(tool, plain, "hit", recorded=number, repeat=nth, reason=reason), _text(cassette.calls[number])

    def _fault(self, tool: Any, error: Exception) -> str:
        """Note an internal error; the call is a miss and the run INVALID."""
        try:
            self.errors.append(f"{type(error).__name__} while a {tool} call was answered")
        except Exception:  # even the error cannot be told: the flag alone makes the run INVALID
            self.errors.append("an error while a call was answered")
        return MISS

    def known(self, tool: Any, args: Any) -> Any:
        """Return what a replay would answer, logging nothing; None for a miss.

        None also for a search in which a file without a known text might be found, and
        where it would go on in another folder: only a shell that runs can do that.
        """
        tool, args = unwrapped(tool, args)
        noted, result = self._look_up(str(tool), args, None)
        moved, self._folder = self._folder, ""
        return None if moved or noted.how == "miss" or noted.known < noted.files else result

    def note_live_call(self) -> None:
        """Note that a tool ran live in the turn before it was bound; the run is INVALID."""
        self._live = 1

    def evict(self) -> None:
        """Let go of the cassette; every later call is a miss and the run INVALID."""
        self.evicted = True
        self._cassette = self._synth = self._run_command = None
        self._others = []
        self._index, self._keys = {}, {}

    def finish(self, session: str, answer: str) -> Ledger:
        """End the turn and return its ledger; later calls are misses outside it."""
        with self._lock:
            self._finished = True
            calls = list(self._calls)
            if next(self._arrivals) != self._logged:
                self.errors.append("a tool call came that could not be logged")
            if any(call.reason == _PENDING for call in calls):
                self.errors.append("a tool call was " + _PENDING)
            if session and session not in self.sessions:
                self.sessions.append(session)
        return Ledger(
            arm=self.arm.id,
            turn=self.turn,
            sessions=tuple(self.sessions),
            model=self.model,
            facts=self.facts,
            calls=tuple(self._explain(calls)),
            answer=answer,
            live=self._live,
            finished=True,
            truncated=self._truncated,
            evicted=self.evicted,
            errors=tuple(self.errors),
        )

    def _explain(self, calls: list[Answered]) -> Iterable[Answered]:
        """Add to the first misses which recorded call came nearest."""
        left = 50  # the search is quadratic; nobody reads more
        for call in calls:
            if call.how == "miss" and left and self._cassette is not None:
                left -= 1
                call = call._replace(nearest=_nearest(call, self._cassette.calls))
            yield call


#: Words after which a shell may stand in another folder.
_LEAVES = r"\b(?:cd|chdir|pushd|popd|set-location)\b"


class Filling(Recording):
    """A recording whose known calls are answered from a tape, as a replay would; all others run live.

    :param tape: answers the known calls; it is bound to no turn.
    """

    def __init__(self, tape: Replay, *facts: Any, **more: Any) -> None:
        super().__init__(*facts, **more)
        self._tape = tape
        self._left = False  # the live shell may stand in another folder than the tape's

    def execute(self, tool: str, args: Any, next_call: Callable[..., Any], call_id: str) -> Any:
        """Answer a known call; run any other live, and note what came back."""
        if self._closed or call_id and self._around.get() == call_id:
            return next_call(args)
        try:
            if (known := self._tape.known(tool, args)) is not None:
                self.passed.append(call_id)
                return known
            lost = self._is_lost(*unwrapped(tool, args))
        except Exception as error:
            self.faults.append(f"a {shown(tool, NAME_LENGTH)} call could not be looked up ({type(error).__name__})")
            lost = False
        if not lost:
            return super().execute(tool, args, next_call, call_id)
        self.passed.append(call_id)
        return next_call(args)

    def _is_lost(self, tool: str, args: Any) -> bool:
        """Whether a replay could not know which file a call is about, since the shell went elsewhere; a warning says so."""
        if not isinstance(args, Mapping):
            return False
        if self._left and tool != "terminal" and _starts_here(tool, args):
            told = "what was read by a relative path after a cd was not kept"
            self.faults += [told] * (told not in self.faults)
            return True
        if tool == "terminal":
            self._left |= bool(args.get("workdir") or re.search(_LEAVES, str(args.get("command")), re.IGNORECASE))
        return False


#: How the live tools say that a path cannot be read or searched, whatever else was asked of it.
_REFUSALS = {
    "read_file": ("File not found: ", "Cannot read ", "Access denied: ", "Binary file "),
    "search_files": ("Path not found: ",),
}


def _refused_paths(
    cassette: Cassette, workspace: Workspace, known_way: Callable[[str], bool]
) -> dict[tuple[str, str], int]:
    """Return the paths that the tools could not read, by tool, each with the last call that says so.

    A path that another call did read, or that was there in the end, is none of them.
    """
    refused: dict[tuple[str, str], int] = {}
    read = set()
    for number, call in enumerate(cassette.calls):
        path = call.args.get("path")
        if call.tool in _REFUSALS and isinstance(path, str) and known_way(path):
            place = (call.tool, workspace.canonical(path))
            value = leading_json(_text(call))
            error = value.get("error") if isinstance(value, Mapping) else None
            if isinstance(error, str) and error.startswith(_REFUSALS[call.tool]):
                if "_warning" not in value:  # Hermes's remark on how often that very call came
                    refused[place] = number
            else:
                read.add(place)
    if refused:
        files = [workspace.canonical(path) for path in cassette.snapshot.files]
        read |= {(tool, path) for tool in _REFUSALS for path in files}
        read |= {("search_files", path[:end]) for path in files for end, char in enumerate(path) if char == "/"}
    return {place: number for place, number in refused.items() if place not in read}


def _text(call: Call) -> str:
    """A recorded result as a tool returns it: a text, whatever an edited cassette holds."""
    result = call.result
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _nearest(missed: Answered, recorded: Iterable[Call]) -> str:
    """Describe the recorded call of the same tool that is most like a missed one."""
    if not isinstance(missed.args, Mapping):
        return ""
    wanted = json.dumps(missed.args, sort_keys=True)[:2000]
    best, best_ratio = None, -1.0
    for number, call in enumerate(recorded):
        if call.tool == missed.tool and number < 500:
            ratio = SequenceMatcher(None, wanted, json.dumps(call.args, sort_keys=True)[:2000]).quick_ratio()
            if ratio > best_ratio:
                best, best_ratio = call, ratio
    if best is None:
        return ""
    names = sorted(set(missed.args) | set(best.args))
    differing = [name for name in names if missed.args.get(name, ...) != best.args.get(name, ...)]
    told = ", ".join(f"{name} was {_short(best.args.get(name, 'left out'))}" for name in differing)
    return f"nearest recorded call: {told}" if told else "the same call was recorded, under other rules"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


# --- the bindings ---------------------------------------------------------------


class Bindings:
    """Which turns are recorded or replayed in this process.

    `locked` is true in a process that exists for one replay: whatever it asks
    of a tool is answered from the cassette or missed, bound or not.
    """

    def __init__(self, locked: bool = False) -> None:
        self.locked = locked
        self._lock = threading.RLock()
        self._busy = locked  # False: pass everything through
        self._recordings: dict[str, Recording] = {}  # turn id -> its recording
        self._replays: OrderedDict[str, Replay] = OrderedDict()  # turn id -> its replay, oldest first
        self._closed: OrderedDict[str, None] = OrderedDict()  # ids of sessions (or turns) that held a replay
        self._seen: OrderedDict[str, None] = OrderedDict()  # turns with live calls, oldest first

    # the callback

    def tool_execution(
        self,
        tool_name: str = "",
        args: Any = None,
        next_call: Any = None,
        turn_id: str = "",
        session_id: str = "",
        tool_call_id: str = "",
        **_: Any,
    ) -> Any:
        """Answer, record or pass on one tool call (Hermes's `tool_execution`)."""
        try:
            # The mark comes before the look-up: a claim that lands in between
            # finds the mark, or binds in time for the look-up to see it.
            if turn_id not in self._seen:
                self._mark(turn_id)
            recording = None
            if self._busy:
                replay = self._replays.get(turn_id)
                if replay is not None:
                    if session_id not in self._closed:
                        self.close_session(session_id)
                    return replay.answer(tool_name, args, session_id, tool_call_id)
                if self.locked or session_id in self._closed or turn_id in self._closed:
                    return MISS
                recording = self._recordings.get(turn_id)
        except Exception:
            # Raising would run the real tool. Where no replay ever was, that
            # is what the person wants; anywhere else it must not happen.
            if self.locked or self._closed:
                return MISS
            recording = None
        if recording is None:
            return next_call(args)
        return recording.execute(tool_name, args, next_call, tool_call_id)

    def _mark(self, turn: str) -> None:
        with self._lock:
            self._seen[turn] = None
            if len(self._seen) > SEEN_LIMIT:
                self._seen.popitem(last=False)

    # what the hooks bind

    def record(self, recording: Recording) -> None:
        """Record a turn from now on; another recording of its session ends unsaved."""
        with self._lock:
            self._recordings[recording.turn] = recording
            self._busy = True

    def replay(self, replay: Replay) -> None:
        """Answer a turn from its cassette from now on, and close its session.

        A call of the turn that started before this is noted.
        """
        with self._lock:
            self._busy = True
            self.close_session(replay.sessions[0])
            self._replays[replay.turn] = replay
            if replay.turn in self._seen:
                replay.note_live_call()
            holding = [one for one in self._replays.values() if not one.evicted]
            for oldest in holding[: max(0, len(holding) - REPLAY_LIMIT)]:
                oldest.evict()
            while len(self._replays) > SEEN_LIMIT:  # evicted, and never finished
                self._replays.popitem(last=False)

    def close_session(self, session: str) -> None:
        """Let no tool run in this session any more."""
        if not session:
            return
        with self._lock:
            self._busy = True
            self._closed[session] = None
            while len(self._closed) > _CLOSED_LIMIT:
                self._closed.popitem(last=False)

    def close_turn(self, turn: str) -> None:
        """Let no tool run in this turn any more, whatever its session is called."""
        self.close_session(turn)

    def recording_of(self, turn: str) -> Recording | None:
        """The recording of a turn, if it has one."""
        return self._recordings.get(turn)

    def replay_of(self, turn: str) -> Replay | None:
        """The replay of a turn, if it has one."""
        return self._replays.get(turn)

    def recordings_in(self, session: str) -> list[Recording]:
        """The unfinished recordings of a session."""
        with self._lock:
            return [one for one in self._recordings.values() if one.session == session]

    def drop_recording(self, recording: Recording) -> None:
        """Stop recording; the turn's later calls pass through."""
        recording.close()
        with self._lock:
            self._recordings.pop(recording.turn, None)

    def drop_replay(self, turn: str) -> None:
        """Forget a finished replay; its session stays closed."""
        with self._lock:
            self._replays.pop(turn, None)


# --- grading: what a replay is worth ----------------------------------------------------


class Child(NamedTuple):
    """How the child process of a run ended, as its parent saw it."""

    code: int | None  #: exit status; None when it never started
    timed_out: bool = False
    session: str = ""  #: the id it printed, or ""
    printed: str = ""  #: its standard output
    complaint: str = ""  #: the last line that it printed, for the person to read


class PinResult(NamedTuple):
    """Whether an answer holds a pin, and how."""

    pin: str
    ok: bool
    as_rendered: bool = False  #: held only by the answer as a person reads it (see `rendering`)
    nearest: str = ""  #: what in the answer comes nearest to a pin that it lacks, or ""


class Verdict(NamedTuple):
    """The result of a run and everything it rests on."""

    result: str  #: PASS, FAIL, DIVERGED or INVALID
    reasons: tuple[str, ...]  #: why INVALID; empty otherwise
    pins: tuple[PinResult, ...]
    path: str
    misses: tuple[Answered, ...]

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.result]


#: Exit status of `hermes cassette run` for each result; 2 is an error.
EXIT_CODES = {"PASS": 0, "FAIL": 1, "DIVERGED": 3, "INVALID": 4}


def grade(pins: Sequence[PinResult], recorded: int, ledger: Ledger | None, reasons: Sequence[str]) -> Verdict:
    """Turn a run's evidence into its verdict.  Pure: no disk, no clock.

    `reasons` are the causes that make the run INVALID, found by `doubts`; with
    any of them the pins are still shown, but never decide.  What is neither a
    hit nor synthesized counts as a miss.

    :param pins: each pin of the cassette, in order.
    :param recorded: how many calls the cassette holds.
    """
    calls = ledger.calls if ledger else ()
    misses = tuple(call for call in calls if call.how not in ("hit", "synthesized"))
    if ledger is None and not reasons:
        reasons = [because("no ledger")]
    if reasons:
        result = "INVALID"
    elif not pins or not all(one.ok for one in pins):
        result = "FAIL"
    elif misses:
        result = "DIVERGED"
    else:
        result = "PASS"
    path = describe_path(calls, recorded) if ledger else "not known"
    return Verdict(result, tuple(reasons), tuple(pins), path, misses)


def describe_path(calls: Sequence[Answered], recorded: int) -> str:
    """Say in a line how a replay's calls compare with the recording's."""
    counts = [sum(call.how == how for call in calls) for how in HOWS]
    total = f"{len(calls)} call{'' if len(calls) == 1 else 's'}"
    tally = f"{counts[0]} hit, {counts[1]} synthesized, {counts[2]} miss"
    return f"{total}: {tally}; {_compare(calls, recorded)}{_partly(calls)}"


def searches_of_a_part(calls: Iterable[Answered]) -> list[Answered]:
    """Return the searches in which a file without a known text might have been found."""
    return [call for call in calls if call.known < call.files]


def _partly(calls: Iterable[Answered]) -> str:
    partly = searches_of_a_part(calls)
    if not partly:
        return ""
    least = min(partly, key=lambda call: call.known / call.files)
    return f"; searches of a part: {len(partly)} ({least.known} of {least.files} files)"


def _compare(calls: Sequence[Answered], recorded: int) -> str:
    order = [call.recorded for call in calls if call.how == "hit" and call.recorded is not None]
    if not calls:
        return "no call: nothing of the tape was read"
    if not order:
        return "no recorded call reused"
    if order == list(range(recorded)) and len(order) == len(calls):
        return f"the recording's own path ({recorded} recorded)"
    how = "in order" if order == sorted(order) else "in another order"
    return f"subset of recording, {how} ({recorded} recorded)"


#: Every reason that can make a run INVALID, in the reader's words.  The README
#: has a table that tells what to do about each.
REASONS = {
    "nothing ran": "the session could not be started",
    "out of time": "the session did not end in time and was stopped",
    "exit status": "hermes chat exited with status {status}{said}",
    "unclaimed process": "no session claimed the run: unless the plugin was loaded there, in which case no tool ran, its"
    " request ran live, with real tools; see hermes cassette doctor",
    "unclaimed gateway": "no session claimed the run: its request may have run live, with real tools;"
    " see hermes cassette doctor",
    "still waiting": "the request was still waiting for a session after one had answered it",
    "other run": "the session that answered belongs to another run",
    "other code": "the session ran other plugin code than this command's",
    "unknown code": "this command does not know which plugin code it is",
    "yolo": "HERMES_YOLO_MODE was set where the session ran",
    "yolo changed": "HERMES_YOLO_MODE changed during the turn",
    "yolo session": "approvals were bypassed in the session that ran it (yolo)",
    "cassette changed": "the cassette changed between the command and its session",
    "cassette failed": "the cassette failed to load: {error}",
    "untrusted": "what the session left for this command cannot be trusted: {error}",
    "no ledger": "the session left no record of its tool calls: its turn did not end with an answer",
    "unfinished": "the record of the tool calls is unfinished: the turn did not end with an answer",
    "two turns": "what the session said at the turn's start and at its end is not about the same turn",
    "other model": "the turn was answered by {answered}, not by {asked}",
    "foreign call": "a tool call was answered by something else: {tools}",
    "out of steps": "the turn stopped at its limit of {steps}",
    "live": "{count} of the turn ran live before the replay took over",
    "cut short": "the turn made more than {limit:,} tool calls: the list of calls was cut short",
    "evicted": "more than {limit} unfinished replays were in memory: this one's cassette was let go",
    "odd call": "a tool call is listed that was neither answered nor missed",
    "internal": "internal error: {error}",
    "no answer": "no final answer was captured",
    "other answer": "hermes chat printed another answer than the one that the replayed turn gave",
    "no session": "the record of the tool calls names no session",
    "no id printed": "hermes chat printed no session id",
    "other session": "hermes chat printed session {printed}, but session {replayed} was replayed",
    "slow pin": 'the pin "{pin}" could not be tried in {seconds:g} s on this answer',
    "no pin child": "the pins that are regular expressions could not be tried ({error})",
}


def because(key: str, **facts: object) -> str:
    """One of `REASONS`, with its facts."""
    return REASONS[key].format_map(facts)


def doubts(
    arm: Arm,
    ledger: Ledger | None,
    claim: Claim | None,
    child: Child,
    same_answer: bool,
    unreadable: Sequence[str] = (),
    asked: str = "",
) -> list[str]:
    """List every reason why a run cannot be trusted to have been a replay of this cassette by this model.

    One cause is one reason: what only follows from another is left out.

    :param same_answer: what the child printed is the claimed turn's answer.
    :param unreadable: reasons why a claim or ledger that is there is None here.
    :param asked: the model that was asked for, as the host calls it; "" if none was.
    """
    at_limit = ledger is not None and ledger.steps and child.code == 1  # 0.22 exits with 1 for such a turn
    ended_early = [] if at_limit else _child_doubts(child)
    found = [*ended_early, *unreadable]
    if claim is None:
        return found if unreadable else [*found, because(f"unclaimed {arm.hosting}")]
    found += _claim_doubts(arm, claim)
    if ledger is None:
        return found or [because("no ledger")]
    found += _ledger_doubts(claim, ledger)
    found += _turn_doubts(ledger, asked)
    if not ended_early:
        found += _match_doubts(ledger, child, same_answer)
    elif child.session and child.session not in ledger.sessions:
        found.append(because("other session", printed=child.session, replayed="".join(ledger.sessions[-1:])))
    return list(dict.fromkeys(found))


def _child_doubts(child: Child) -> list[str]:
    if child.timed_out:
        return [because("out of time")]
    if child.code is None:
        return [because("nothing ran")]
    if child.code != 0:
        said = f": {child.complaint}" if child.complaint else ""
        return [because("exit status", status=exit_words(child.code), said=said)]
    return []


#: What `hermes chat -Q` means by its exit status.
_EXITS = {
    1: "the turn failed or did not finish",
    2: "it refused its command line",
    3: "it waits for a person, who has to approve or to answer something",
    130: "it was interrupted",
}


def exit_words(code: int | None) -> str:
    """An exit status of `hermes chat`, with what it means."""
    return f"{code} ({_EXITS[code]})" if code in _EXITS else str(code)


def _claim_doubts(arm: Arm, claim: Claim) -> list[str]:
    found = []
    if claim.error:
        found.append(claim.error)
    if claim.arm != arm.id:
        found.append(because("other run"))
    if (claim.facts.plugin, claim.facts.fingerprint) != (arm.plugin, arm.fingerprint):
        found.append(because("other code"))
    if not arm.fingerprint:
        found.append(because("unknown code"))
    if claim.facts.yolo:
        found.append(because("yolo"))
    return found


def _ledger_doubts(claim: Claim, ledger: Ledger) -> list[str]:
    found = []
    if not any(ledger.sessions):
        found.append(because("no session"))
    elif _turn_of(ledger) != _turn_of(claim) or claim.session not in ledger.sessions:
        found.append(because("two turns"))
    if not ledger.finished:
        found.append(because("unfinished"))
    if ledger.live:
        found.append(because("live", count=f"{ledger.live} tool call{'s' * (ledger.live > 1)}"))
    if ledger.truncated:
        found.append(because("cut short", limit=CALL_LIMIT))
    if ledger.evicted:
        found.append(because("evicted", limit=REPLAY_LIMIT))
    if any(call.how not in HOWS for call in ledger.calls):
        found.append(because("odd call"))
    told = (claim.error, REASONS["yolo changed"], REASONS["yolo session"])  # in words of their own
    found += [error if error in told else because("internal", error=error) for error in ledger.errors]
    return found


def _turn_doubts(ledger: Ledger, asked: str) -> list[str]:
    """What the turn's end shows: another model, another answerer, an answer that is none."""
    found = []
    answered = ledger.models or (ledger.model,)
    if asked and set(answered) != {asked}:
        found.append(other_model(answered, asked))
    if ledger.foreign and not (ledger.live or ledger.truncated):  # those two say why calls are not listed
        found.append(because("foreign call", tools=", ".join(dict.fromkeys(ledger.foreign))))
    if ledger.steps:
        found.append(out_of_steps(ledger.steps))
    return found


def other_model(answered: Sequence[str], asked: str) -> str:
    """The reason that names the models that answered, and the one that should have."""
    alone = " alone" if asked in answered else ""
    return because("other model", answered=" and ".join(dict.fromkeys(answered)), asked=asked + alone)


def out_of_steps(steps: int) -> str:
    """The reason that names the limit at which a turn stopped."""
    return because("out of steps", steps=f"{steps} step{'s' * (steps != 1)}")


def _turn_of(value: Ledger | Claim) -> tuple[Any, ...]:
    return value.arm, value.turn, value.model, value.facts


def _match_doubts(ledger: Ledger, child: Child, same_answer: bool) -> list[str]:
    found = []
    if not ledger.finished:
        pass  # that is the reason, and there is no answer because of it
    elif not ledger.answer.strip():
        found += [because("no answer")] * (not ledger.steps)  # at its limit a turn may have no last word
    elif not same_answer:
        found.append(because("other answer"))
    if not child.session:
        found.append(because("no id printed"))
    elif any(ledger.sessions) and child.session not in ledger.sessions:
        found.append(because("other session", printed=child.session, replayed=ledger.sessions[-1]))
    return found
