"""How `hermes chat` is started, where it hosts its session, and what its child prints."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import sys
from typing import Any, Callable, Mapping, NamedTuple

from ..cassette_store import CassetteError, Hosting, hermes_release
from ..hooks import ARM_VARIABLES, PING_VARIABLE, hermes_version
from ..snapshot import hermes_redactor

__all__ = [
    "Signs",
    "child_environment",
    "complaint",
    "find_hermes",
    "hosting_signs",
    "own_launcher",
    "same_answer",
    "sessions_told",
]


# --- where `hermes chat` hosts its session ----------------------------------------

#: The module that `python -m` runs in place of the `hermes` launcher.
_HERMES_MODULE = "hermes_cli.main"
#: Taken from the child's environment: approval bypasses, and what ties it to
#: another Hermes: its session, task, front end, tools and folder.
_DROPPED = (
    r"(_HERMES_.*|MESSAGING_CWD|HERMES_(YOLO_MODE|ACCEPT_HOOKS|NONINTERACTIVE|INTERACTIVE|EXEC_ASK|SAFE_MODE"
    r"|SINGLE_QUERY_.*|ONESHOT_.*|APPROVAL.*|ACP_AUTO_APPROVE|PLATFORM|SESSION_.*|UI_SESSION_ID|GATEWAY(_MODE|_SESSION|_DETACHED)?"
    r"|CRON_.*|KANBAN_.*|TENANT|DELEGATED_.*|TUI(_.*)?|DESKTOP(_.*)?|COMPUTE_HOST_.*|DEFER_AGENT_STARTUP|CWD"
    r"|RPC_.*|KERNEL_.*|PLUGIN_HOST_PROCESS))\Z"
)


class Signs(NamedTuple):
    """What tells where `hermes chat` hosts its session: in its own process, or in a gateway (0.23 on)."""

    version: str  #: of the Hermes that runs this command
    session_cwd: bool  #: its plugin context has it, as the gateway's has
    client: bool  #: it has the module of a client that only attaches
    own: bool  #: the child is started as this very command was

    def hosting(self) -> Hosting | None:
        """Where every sign says that sessions are hosted; None where that must be asked (`/cassette ping`).

        A gateway must always be asked, so only a process can be told for sure.
        """
        release = hermes_release(self.version)
        old = release is not None and release < (0, 23)
        return "process" if old and self.own and not self.session_cwd and not self.client else None

    def told(self) -> str:
        """The signs in a line, for `doctor`."""
        words = [f"version {self.version or 'unknown'}"]
        words += ["its client attaches" if self.client else "no attaching client"]
        words += ["ctx.session_cwd" if self.session_cwd else "no ctx.session_cwd"]
        return ", ".join(words + ([] if self.own else ["the hermes on PATH is another program"]))


def hosting_signs(ctx: Any, own: bool) -> Signs:
    """Look for the signs in this process.  :param own: the child is started as this command was."""
    try:
        client = importlib.util.find_spec("hermes_cli.gateway_chat") is not None
    except (ImportError, ValueError):  # outside Hermes
        client = False
    return Signs(hermes_version(), callable(getattr(ctx, "session_cwd", None)), client, own)


def find_hermes(
    argv0: str,
    which: Callable[[str], str | None] = shutil.which,
    windows: bool = os.name == "nt",
    module: str | None = None,
) -> tuple[str, ...]:
    """How to start another `hermes`: as this command was started, or by the one on PATH.

    :param module: the name of the module that the running program is, or None to find it out.
    :raises CassetteError: if there is none, or it is a batch file.
    """
    if own := own_launcher(argv0, windows, module):
        launcher = own
    elif found := which("hermes"):
        launcher = (found,)
    else:
        raise CassetteError("cannot find hermes: put it on PATH and try again")
    if windows and launcher[0].lower().endswith((".bat", ".cmd")):
        raise CassetteError(
            f"{launcher[0]} is a batch file, and cmd.exe would read the request anew: put hermes.exe first on PATH"
        )
    return launcher


def own_launcher(argv0: str, windows: bool = os.name == "nt", module: str | None = None) -> tuple[str, ...]:
    """How this very command was started, or () if it is no `hermes`; see `find_hermes`."""
    if (_running_module() if module is None else module) == _HERMES_MODULE:
        # Not from the folder it is started in, which may hold modules of the same names.
        return (sys.executable, "-P", "-m", _HERMES_MODULE)
    own = os.path.abspath(argv0) if argv0 else ""
    stem = os.path.basename(own).lower().partition(".")[0]
    if windows and own and not os.path.splitext(own)[1]:
        own += ".exe"
    return (own,) if stem.startswith("hermes") and os.path.isfile(own) and not own.endswith(".py") else ()


def _running_module() -> str:
    """The module that `python -m` runs, or ""."""
    return str(getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", "") or "")


def child_environment(environ: Mapping[str, str], **added: str) -> dict[str, str]:
    """The environment of a child: ours, without what is not its own.

    TERMINAL_CWD stays where tools run in a container or on another machine: it names a folder there.
    """
    kept = {k: v for k, v in environ.items() if not re.match(_DROPPED, k.upper())}
    for name in (*ARM_VARIABLES.values(), PING_VARIABLE):
        kept.pop(name, None)
    if kept.get("TERMINAL_ENV", "local").strip().lower() in ("", "local"):
        kept.pop("TERMINAL_CWD", None)
    return {**kept, "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1", **added}


# --- what hermes chat prints --------------------------------------------------------

#: The two lines that tell a session's id: as it begins (0.23 on), and at the end.
_SESSION_LINE = r"(?:Session|session_id): (\S+)\s*$"
#: Lines that some versions print before the answer.
_BANNERS = (
    r"\s*(⚠ tirith security scanner enabled but not available\b.*"
    r"|⚠️?\s+Reached maximum iterations \(\d+\)\. Requesting summary\.\.\."
    r"|⚠️?\s+.*\bswitching to fallback: .+ / .+|cli\.startup\.switching_to_fallback"  # 0.22 may not find its texts
    r"|🔧 Auto-repaired tool name: '.*' -> '.*'"
    r"|🔐 (?:Nous agent key|Anthropic credentials) refreshed after 401\. Retrying request\.\.\."
    r"|💾 Cached context length: [\d,]+ tokens for .+"
    r"|⚠\s+(?:Streaming is not supported for this model/provider|AWS IAM denied bedrock:\w+)\b.*"
    r"|(?:To avoid this delay, set display\.streaming: false|Grant that action to restore streaming)\b.*"
    r"|⟳ compacting context.*"
    r"|\[(?:tool|done)\] .*)?\s*\Z"  # a spinner without a terminal
)


#: The head of the frame in which 0.19 and 0.20 print what a model thought. With
#: `-Q` it comes once and has no foot: the answer is what ends the output.
_REASONING = r"┌─ Reasoning ─{18,}┐\s*\Z"


#: How the same versions print what a call changed in a file: a head, then these lines.
_DIFF_HEAD = r"  ┊ review diff\s*\Z"


_DIFF_LINE = r"[-+ @\\]|\S.* → |… omitted \d+ diff line"


def same_answer(printed: str, answer: str, hermes: str = "") -> bool:
    """Whether what a child printed is the claimed turn's answer.

    Hermes may print its redacted copy, and some versions print known lines
    first: warnings, and before 0.22 the model's reasoning in a frame, and the
    changes of files; nothing else is accepted.

    :param hermes: the version that printed.
    """
    shown = printed.rstrip()
    wanted = [answer.replace("\r\n", "\n").strip()]
    if (redact := hermes_redactor()) is not None:
        with contextlib.suppress(Exception):
            wanted.append(str(redact(wanted[0], False)).strip())
    wanted += [plain for text in list(wanted) if (plain := _redacted_for_print(text)) is not None]
    framed = (hermes_release(hermes) or (0, 22)) < (0, 22)
    return any(
        text and shown.endswith(text) and _is_prelude(shown[: len(shown) - len(text)], framed) for text in wanted
    )


def _redacted_for_print(text: str) -> str | None:
    try:
        from agent.redact import redact_sensitive_text

        return str(redact_sensitive_text(text)).strip()
    except Exception:
        return None


def _is_prelude(text: str, framed: bool) -> bool:
    """Whether a text is what Hermes itself may print before an answer.

    :param framed: this version prints reasoning and changes of files.
    """
    if text.strip() and not text.rstrip(" \t").endswith("\n"):
        return False
    changes = False
    for line in text.split("\n"):
        if framed and re.match(_REASONING, line):
            return True  # whatever follows is reasoning, up to the answer
        changes = framed and bool(re.match(_DIFF_HEAD, line) or changes and re.match(_DIFF_LINE, line))
        if not changes and not re.match(_BANNERS, line):
            return False
    return True


def complaint(*outputs: str) -> str:
    """The first line of a child that says "Error:", or else the last one, without its session's id and colours."""
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", text) for text in outputs]
    if found := re.search(r"^Error: (.+)$", "\n".join(plain), re.MULTILINE):
        return found[1].strip()[:200]
    for text in plain:
        lines = [line.strip() for line in text.splitlines() if not re.match(_SESSION_LINE, line)]
        if told := [line for line in lines if line]:
            return told[-1][:200]
    return ""


def sessions_told(text: str) -> list[str]:
    """The session ids that a child printed on standard error, in order."""
    return re.findall(f"^{_SESSION_LINE}", text, re.MULTILINE)
