"""The commands about sessions that are over: list them, and make a cassette of a turn of one.

Starts no session, and writes nothing but the cassette.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import textwrap
from typing import Any, Callable, Mapping, Sequence

from ..cassette_store import Cassette, CassetteError, Store, check_name, shown
from ..hooks import Plugin, hermes_home
from ..middleware import Beyond
from .door import JSON_SCHEMA, Command, Screen, add_json
from .past import Turn, choose_turn, folder_of, record_past, told_turns
from .sessions import Database, Session, find_database

__all__ = ["SESSIONS", "add_session_arguments", "record_session", "refuse_with_session"]

#: Sessions that are listed unless told otherwise, and at most.
_LAST, _MOST = 20, 1_000
#: Characters of a request, of a path and of another cell that are shown.
_REQUEST, _PATH, _CELL = 70, 300, 60


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `record` takes beside a request: a session that is over."""
    session = "record a turn of this session, which is over (hermes cassette sessions lists them)"
    parser.add_argument("--session", dest="cassette_session", metavar="ID", help=session)
    turn = "which of its turns, from 1 (default: the last with an answer)"
    parser.add_argument("--turn", dest="cassette_turn", metavar="N", type=_number, help=turn)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= len(text) <= 9 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def refuse_with_session(options: argparse.Namespace, timeout: float) -> None:
    """Refuse what makes no sense for a session that is over, or only for one.

    :param timeout: what `--timeout` says unless it is given.
    :raises CassetteError: with what to leave out.
    """
    if options.cassette_session is None:
        if options.cassette_turn is not None:
            raise CassetteError("--turn names a turn of a session: give --session ID too")
        return
    given = {
        "--query": options.cassette_query is not None,
        "--model": options.cassette_model is not None,
        "--provider": options.cassette_provider is not None,
        "--skill": bool(options.cassette_skills),
        "--timeout": options.cassette_timeout != timeout,
    }
    if wrong := [name for name, there in given.items() if there]:
        raise CassetteError(f"{wrong[0]} does not go with --session, whose session is over: leave one of them out")


# --- list ------------------------------------------------------------------------------


def _sessions_arguments(parser: argparse.ArgumentParser) -> None:
    last = f"how many, the newest first (default: {_LAST})"
    parser.add_argument("--last", dest="cassette_last", metavar="N", type=_number, default=_LAST, help=last)
    add_json(parser)


def _sessions(_: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    if options.cassette_last > _MOST:
        raise CassetteError(f"--last {options.cassette_last}: {_MOST:,} sessions are the most")
    database = Database(find_database(hermes_home()))
    rows = [_row(database, session) for session in database.sessions(options.cassette_last)]
    if options.cassette_json:
        screen.print(json.dumps({"schema": JSON_SCHEMA, "sessions": rows}))
    elif not rows:
        screen.print("Hermes has no sessions in this profile yet")
    else:
        screen.print("\n".join(line for row in rows for line in _told(row)))
    return 0


def _row(database: Database, session: Session) -> dict[str, Any]:
    """What is told of one session."""
    turns = told_turns(database.outline(session.id))
    fit = [turn for turn in turns if not turn.why_not]
    why = _why_not(session, turns, fit)
    requests = [turn.request.text for turn in turns if turn.request.text]
    return {
        "id": session.id,
        "at": _time(session.started),
        "cwd": session.cwd,
        "source": session.source,
        "model": session.model,
        "turns": len(turns),
        "calls": sum(one.role == "tool" for turn in turns for one in turn.messages),
        "request": requests[0] if requests else "",
        "recordable": [] if why else [turn.number for turn in fit],
        "why_not": why,
    }


def _why_not(session: Session, turns: Sequence[Turn], fit: Sequence[Turn]) -> str:
    """Why a session makes no cassette; "" if it does."""
    if session.source == "subagent":
        return "a model asked, not a person"
    if not turns:
        return "it holds no request"
    return "" if fit else turns[-1].why_not


def _time(seconds: float) -> str:
    try:
        found = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    except (OverflowError, OSError, ValueError):
        return ""
    return found.isoformat(timespec="seconds")


def _told(row: Mapping[str, Any]) -> list[str]:
    """A session in lines: those that can become a cassette are marked."""
    turns = f"{row['turns']} turn{'s' * (row['turns'] != 1)}"
    calls = f"{row['calls']} call{'s' * (row['calls'] != 1)}"
    at = row["at"][:16].replace("T", " ")
    head = f"{'-' if row['why_not'] else '+'} {shown(row['id'], _CELL)}  {at}  {turns}, {calls}"
    told = f"{head}  {shown(row['model'] or 'model unknown', _CELL)}"
    gone = "" if os.path.isdir(row["cwd"]) else " (gone: say where it is with --in DIR)"
    folder = f"in {shown(row['cwd'], _PATH)}{gone}" if row["cwd"] else "in an unknown folder: no snapshot"
    lines = [shown(row["request"], _REQUEST), folder]
    if row["why_not"]:
        lines.append(f"! {shown(row['why_not'], _PATH)}")
    return [told, *(textwrap.indent(line, "    ") for line in lines if line)]


SESSIONS = Command(
    "sessions",
    "List recent sessions, and say which of them can become a cassette (+)",
    "hermes cassette sessions --last 5",
    _sessions_arguments,
    _sessions,
)


# --- record ------------------------------------------------------------------------------


def record_session(
    plugin: Plugin,
    options: argparse.Namespace,
    screen: Screen,
    beyond: Beyond,
    work_folder: Callable[[str], str],
    report: Callable[[str, Cassette], str],
    describe: Callable[[Store, str, Cassette], Mapping[str, Any]],
) -> int:
    """Make a cassette of a turn that is over (`record NAME --session ID`).

    :param work_folder: makes a folder of what `--in` says, or refuses it.
    :param report: what is printed of a cassette, and `describe` what `--json` prints.
    """
    name = check_name(options.cassette)
    store = plugin.store()
    store.prepare()
    store.check_free(name, options.cassette_overwrite)
    database = Database(find_database(hermes_home()))
    session = database.find(options.cassette_session.strip())
    if session.source == "subagent":
        raise CassetteError(f"{session.id!r} is a subagent's session: a model asked, not a person")
    turn = choose_turn(told_turns(database.outline(session.id)), options.cassette_turn)
    wanted = options.cassette_in
    folder = folder_of(session, None if wanted is None else os.path.abspath(work_folder(wanted)))
    cassette = record_past(
        database,
        session,
        turn,
        name,
        folder,
        plugin.facts.plugin,
        beyond,
        options.cassette_whole,
        options.cassette_names,
    )
    store.save(cassette, options.cassette_overwrite, keep_pins=True)
    saved = store.read(name)[0]
    if options.cassette_json:
        told = {"session": session.id, "turn": turn.number}
        screen.print(json.dumps({"schema": JSON_SCHEMA, "saved": True, **describe(store, name, saved), **told}))
    else:
        screen.print(f"turn {turn.number} of session {shown(session.id, _CELL)}, of {saved.recorded_at}")
        screen.print(report(name, saved))
    return 0
