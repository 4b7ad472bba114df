"""Makes a cassette of a turn that is over, from the messages that Hermes kept of it.

Hermes keeps what the model was told, which is not always what the tool had
returned: notices, summaries and pointers stand in for results, advice is added
to them, and a result of the web is wrapped.  What can be taken away for sure is;
any other result is left out by name.  The snapshot is of today's folder, and
holds a file only if nothing says that it is another one by now.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

from ..cassette_store import Cassette, CassetteError, shown
from ..hooks import IN_CONVERSATION, check_replayable, is_review, make_cassette, normal_request, steps_at_limit
from ..middleware import Beyond, Past, Recording, out_of_steps, unwrapped
from ..snapshot import KEPT_TOOLS, IgnoreRules, Listed, NotKept, Tree, Walk
from .sessions import Database, Message, Session

__all__ = [
    "CUT_ARGUMENTS",
    "OTHER_FORM",
    "WRAPPED",
    "Returned",
    "Turn",
    "Wanted",
    "as_returned",
    "choose_turn",
    "folder_of",
    "record_past",
    "told_turns",
]

#: How a message begins that Hermes puts in a person's place.
_NOT_A_PERSON = (
    r"\[(?:System|SYSTEM|IMPORTANT|CONTEXT|PRIOR CONTEXT|Your active task list|OUT-OF-BAND|ASYNC|Note:|Background)"
    r"|You've reached the maximum number of tool-calling iterations|You just executed tool calls but"
)
#: What stands for an image in a request.
_IMAGE = r"(?m)^\[screenshot\]$"
#: How Hermes begins a summary of what it compacted away.
_SUMMARY = r"\[CONTEXT (?:COMPACTION|SUMMARY)|\[PRIOR CONTEXT"
#: What Hermes adds to a result, after a blank line: advice, notes, a folder's own instructions, a person's words.
_ADDED = r"\n\n\[(?:Subdirectory context discovered: |Tool loop (?:warning|hard stop)|hermes note: |(OUT-OF-BAND USER MESSAGE))"
#: What `search_files` itself writes after its answer, before 0.22.
_HINT = r"\n\n\[Hint: Results truncated\. Use offset=\d+ [^\n\]]*\]"
#: How Hermes hands on what comes from the web; its own mark is changed within.
_WRAPPED = r'<untrusted_tool_result source="{}">\n[^\n]*\n\n(.*)\n</untrusted_tool_result>'
_ELISION = r"\n\[hermes note: this result contains provider-side elision markers [^\n]*\]\Z"
_WEB_TOOLS = ("web_search", "web_extract")
#: What stands for the middle of an argument that was compacted.
_CUT_ARGUMENT = "...[truncated]"
#: What Hermes writes in place of a secret.
_MASK = r"«redacted|\*{3}|[A-Za-z0-9_-]{4,}\.\.\.[A-Za-z0-9]{4}"

# Why a result is not kept, beside `NotKept`.
OTHER_FORM = "Hermes kept another text than the tool returned"
WRAPPED = "Hermes changed the result when it wrapped it"
IMAGE = "the result holds more than text"
CUT_ARGUMENTS = "Hermes compacted its arguments"


class Turn(NamedTuple):
    """One request of a session, and what came of it."""

    number: int  #: from 1
    request: Message
    messages: tuple[Message, ...]  #: the request and all that followed it
    why_not: str  #: why it makes no cassette; "" if nothing is known against it


# --- which turns a session has -----------------------------------------------------


def told_turns(messages: Sequence[Message]) -> list[Turn]:
    """Split a session into its turns.

    What Hermes itself says in a person's place belongs to the turn that has no
    answer yet, or begins one that makes no cassette.
    """
    found: list[list[Message]] = []
    for message in messages:
        if message.role == "user" and (not found or not _is_hermes(message) or _answered(found[-1])):
            found.append([message])
        elif found:
            found[-1].append(message)
    return [Turn(number, one[0], tuple(one), _why_not(one)) for number, one in enumerate(found, 1)]


def _is_hermes(message: Message) -> bool:
    """Whether a message of the user is none of a person."""
    text = message.text or ""
    return bool(message.kind or message.summary or re.match(_NOT_A_PERSON, text) or is_review(text))


def _answered(messages: Sequence[Message]) -> bool:
    last = messages[-1]
    said = last.role == "assistant" and last.calls == () and not last.kind
    return said and last.finish == "stop" and bool((last.text or "").strip())


def _why_not(messages: Sequence[Message]) -> str:
    """Say why these messages, of which the texts may be cut, make no cassette; "" if nothing is known against it."""
    request = messages[0]
    if _is_hermes(request):
        return "the request is Hermes's own, not a person's"
    if any(one.summary or re.match(_SUMMARY, one.text or "") for one in messages):
        return "Hermes compacted it, and keeps a summary instead"
    if steps := steps_at_limit(_plain(messages), {}):
        return out_of_steps(steps)
    if not _answered(messages):
        return "it has no answer: it failed, was interrupted, or still runs"
    if any(one.finish == "length" for one in messages):
        return "its answer was cut, and continued in another message"
    return _request_fault(request)


def _request_fault(request: Message) -> str:
    if request.text is None or re.search(_IMAGE, request.text):
        return "the request has an image or another attachment"
    try:
        check_replayable(normal_request(request.text))
    except CassetteError as error:
        return str(error)
    return ""


def _plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [{"role": one.role, "content": one.text} for one in messages]


def choose_turn(turns: Sequence[Turn], number: int | None) -> Turn:
    """Return the turn with a number, or the last that could become a cassette.

    :raises CassetteError: if there is none.
    """
    if number is not None:
        if not 1 <= number <= len(turns):
            raise CassetteError(f"the session has no turn {number}: it has {len(turns)}, counted from 1")
        turn = turns[number - 1]
    elif fit := [one for one in turns if not one.why_not]:
        turn = fit[-1]
    elif turns:
        turn = turns[-1]
    else:
        raise CassetteError("the session holds no request")
    if turn.why_not:
        raise CassetteError(f"turn {turn.number} of the session cannot become a cassette: {turn.why_not}")
    return turn


# --- what a tool returned ------------------------------------------------------------


class Returned(NamedTuple):
    """A stored result: what of it the tool returned, or why that cannot be told."""

    result: str
    why_not: str = ""
    said: bool = False  #: a person's words in the middle of the turn stood in it


def as_returned(tool: str, stored: str) -> Returned:
    """Take away what Hermes added to a result.

    Every tool whose results are kept returns a JSON object, so what follows it is
    not the tool's.  A notice that stands in for a result is left to the rules of
    every recording.
    """
    if tool in _WEB_TOOLS and stored.startswith("<untrusted_tool_result"):
        found = re.match(_WRAPPED.format(tool), stored, re.DOTALL)
        if found is None or "untrusted-tool-result" in found[1].lower():
            return Returned(stored, WRAPPED)
        rest = _after(stored[found.end() :])
        if rest is None:
            return Returned(stored, OTHER_FORM)
        return as_returned("", re.sub(_ELISION, "", found[1]))._replace(said=rest)
    end = _end_of_object(stored)
    if end < 0:
        return Returned(stored, "" if stored.startswith(_NOTICES) else OTHER_FORM)
    if tool == "search_files" and (hint := re.match(_HINT, stored[end:])):
        end += hint.end()
    rest = _after(stored[end:])
    if rest is None:
        return Returned(stored, OTHER_FORM)
    return Returned(stored[:end] if stored[end:].strip() else stored, "", rest)


#: Notices that `is_guard_stub` knows by how they begin.
_NOTICES = ("[hermes note:", "[Tool execution", "<persisted-output>")


def _after(text: str) -> bool | None:
    """Whether a person's words stand in what follows a result; None if it may be the tool's."""
    if not text.strip():
        return False
    if re.match(_ADDED, text) is None:
        return None
    return "[OUT-OF-BAND USER MESSAGE" in text


def _end_of_object(text: str) -> int:
    """Where the JSON object ends that a text begins with; -1 if it begins with none."""
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return -1
    return end if isinstance(value, dict) else -1


# --- a turn becomes a cassette ---------------------------------------------------------


class Wanted(NamedTuple):
    """What the cassette of a turn that is over is to be.

    `whole` and `names` are as for any recording, but as far as the times in the
    folder say that nothing has changed since.
    """

    name: str
    folder: str  #: where the session's folder is today; "" for none
    whole: bool = False
    names: bool = True


def record_past(
    database: Database, session: Session, turn: Turn, wanted: Wanted, plugin: str, beyond: Beyond
) -> Cassette:
    """Make a cassette of a turn that is over.

    :param plugin: the version of this plugin.
    :raises CassetteError: if the turn makes none.
    """
    messages = database.messages(session.id, turn.request.id, turn.messages[-1].id)
    if fault := _why_not(messages) if messages else "it is gone from the database":
        raise CassetteError(f"turn {turn.number} of the session cannot become a cassette: {fault}")
    answer, rewritten, folder = messages[-1], database.rewritten(session), wanted.folder
    moved = session.cwd if folder and folder != session.cwd else ""
    recording = Recording(
        wanted.name,
        "",
        session.id,
        normal_request(messages[0].text or ""),
        faults=_faults(turn, messages, rewritten, wanted.whole),
        whole=wanted.whole,
        names=wanted.names,
        started=min(messages[0].at, database.begun(session)) if rewritten else messages[0].at,
        past=Past(answer.at, _version(database.schema(), messages), moved),
    )
    for tool, args, stored in _calls(messages):
        _recall(recording, tool, args, stored)
    models = (session.model,) if session.model and session.answered else ()
    if folder and beyond.walk is not None:
        beyond = beyond._replace(walk=_as_then(beyond.walk, folder, answer.at))
    return make_cassette(recording, recording.close(), (answer.text or "").strip(), folder, plugin, models, (), beyond)


def _as_then(walk: Walk, folder: str, ended: float) -> Walk:
    """A walk whose names are known only if nothing in the folder changed since the turn ended."""

    def walked(tree: Tree, rules: IgnoreRules, git: IgnoreRules, whole: bool, late: Callable[[], bool]) -> Listed:
        found = walk(tree, rules, git, whole, late)
        times = [one.mtime for one in (found.names or {}).values() if one.inside is None]
        if found.names is None or max(times, default=0.0) <= ended and os.stat(folder).st_mtime <= ended:
            return found
        return found._replace(names=None, fault="the folder has changed since the session: its names are not kept")

    return walked


def _faults(turn: Turn, messages: Sequence[Message], rewritten: bool, whole: bool) -> list[str]:
    """What a cassette of a turn warns of, whatever its calls."""
    faults = [IN_CONVERSATION] * (turn.number > 1 or rewritten)
    if any(one.role == "user" for one in messages[1:]):
        faults.append("Hermes or a person said something in the middle of the turn, which a replay does without")
    if rewritten:
        faults.append(
            "Hermes has compacted this conversation: what it wrote anew of the turn was left out as far as seen"
        )
    if whole:
        faults.append("files that the session did not read are of today, and not changed since by their times")
    if re.search(_MASK, messages[-1].text or ""):
        faults.append("the answer may be Hermes's redacted copy: a pin on what is masked in it will not hold there")
    return faults


def _version(schema: int, messages: Sequence[Message]) -> str:
    """The Hermes that ran a turn, as far as its rows tell; "" where they do not.

    The tables are those of the newest Hermes that opened them.
    """
    results = [one for one in messages if one.role == "tool"]
    if schema == _FIRST:
        return "0.19"
    return "0.22" if _FIRST < schema <= _NEWEST and results and all(one.new for one in results) else ""


#: The forms of Hermes's tables: of 0.19, and the newest that is known (0.22.2).
_FIRST, _NEWEST = 22, 31


def _calls(messages: Sequence[Message]) -> Iterator[tuple[str, Any, Message | None]]:
    """The calls of a turn in their order: the tool, its arguments, and the message with its result."""
    left = [one for one in messages if one.role == "tool"]
    for message in messages:
        for call in message.calls or ():
            function = call.get("function")
            function = function if isinstance(function, Mapping) else {}
            ids = {str(call[key]) for key in ("id", "call_id") if call.get(key)}
            answer = next((one for one in left if one.call_id in ids and one.id > message.id), None)
            if answer is not None:
                left.remove(answer)
            yield str(function.get("name") or "a tool"), _arguments(function.get("arguments")), answer
        if message.calls is None:
            yield "a tool", None, None


def _arguments(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return None


def _recall(recording: Recording, tool: str, args: Any, stored: Message | None) -> None:
    """Note a call with what its tool returned, or with why that is not known."""
    tool, args = unwrapped(tool, args)
    if stored is not None and tool not in KEPT_TOOLS and tool != "terminal":
        return recording.recall(tool, args, stored.text or "")  # nothing of it is kept
    if stored is None:
        return recording.recall(tool, args, None)
    if stored.text is None:
        return recording.recall(tool, args, "", IMAGE)
    if stored.cut:
        return recording.recall(tool, args, "", NotKept.TOO_LARGE)
    returned = as_returned(tool, stored.text)
    why = returned.why_not
    if not why and any(isinstance(value, str) and value.endswith(_CUT_ARGUMENT) for value in _values(args)):
        why = CUT_ARGUMENTS
    if returned.said and _SAID not in recording.faults:
        recording.faults.append(_SAID)
    recording.recall(tool, args, returned.result, why)


_SAID = "a person said something in the middle of the turn, which a replay does without"


def _values(args: Any) -> Iterator[Any]:
    yield from args.values() if isinstance(args, Mapping) else ()


def folder_of(session: Session, wanted: str | None) -> str:
    """Where a session's folder is today.

    :param wanted: where a person says it is, or None.
    :raises CassetteError: if it is nowhere.
    """
    if wanted is not None:
        return wanted
    if str(os.environ.get("TERMINAL_ENV", "local")).strip().lower() not in ("", "local"):
        return ""  # its tools ran in a container or on another machine
    if session.cwd and not os.path.isdir(session.cwd):
        raise CassetteError(f"the session's folder {shown(session.cwd)} is gone: say where it is with --in DIR")
    return session.cwd
