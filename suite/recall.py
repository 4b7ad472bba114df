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
from .door import JSON_SCHEMA, Screen
from .past import Turn, Wanted, choose_turn, folder_of, record_past, told_turns
from .sessions import Database, Session, find_database

__all__ = ["list_sessions", "record_session"]

#: Sessions that are listed at most.
_MOST = 1_000
#: Characters of a request, of a path and of another cell that are shown.
_REQUEST, _PATH, _CELL = 70, 300, 60


def _refuse_others(options: argparse.Namespace) -> None:
    """Refuse what makes no sense for a session that is over.

    :raises CassetteError: with what to leave out.
    """
    if options.cassette_session is None:
        raise CassetteError("--turn names a turn of a session: give --session ID too")
    given = {
        "--query": options.cassette_query is not None,
        "--model": options.cassette_model is not None,
        "--provider": options.cassette_provider is not None,
        "--skill": bool(options.cassette_skills),
    }
    if wrong := [name for name, there in given.items() if there]:
        raise CassetteError(f"{wrong[0]} does not go with --session, whose session is over: leave one of them out")


# --- list ------------------------------------------------------------------------------


def list_sessions(options: argparse.Namespace, screen: Screen) -> int:
    """List recent sessions (`hermes cassette sessions`)."""
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
    _refuse_others(options)
    store = plugin.store()
    store.prepare()
    store.check_free(name, options.cassette_overwrite)
    database = Database(find_database(hermes_home()))
    session = database.find(options.cassette_session.strip())
    if session.source == "subagent":
        raise CassetteError(f"{session.id!r} is a subagent's session: a model asked, not a person")
    turn = choose_turn(told_turns(database.outline(session.id)), options.cassette_turn)
    folder = folder_of(session, options.cassette_in and work_folder(options.cassette_in))
    wanted = Wanted(name, folder, options.cassette_whole, options.cassette_keep_names)
    cassette = record_past(database, session, turn, wanted, plugin.facts.plugin, beyond)
    store.save(cassette, options.cassette_overwrite, keep_pins=True)
    saved = store.read(name)[0]
    if options.cassette_json:
        told = {"session": session.id, "turn": turn.number}
        screen.print(json.dumps({"schema": JSON_SCHEMA, "saved": True, **describe(store, name, saved), **told}))
    else:
        screen.print(f"turn {turn.number} of session {shown(session.id, _CELL)}, of {saved.recorded_at}")
        screen.print(report(name, saved))
    return 0
