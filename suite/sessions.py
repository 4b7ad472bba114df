"""Hermes's own database of sessions, read and never written: which sessions there were, and what was said in them.

Nothing here waits for Hermes or makes it wait for longer than one short query,
and no file is made beside the database.  What the rows mean is for `past`.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, TypeVar

from ..cassette_store import CassetteError, shown
from ..middleware import RESULT_LIMIT
from .database import ask

__all__ = ["Database", "Message", "Session", "find_database"]

_T = TypeVar("_T")

#: Columns without which a session cannot be told.
_NEEDED = {
    "sessions": ("id", "source", "model", "parent_session_id", "started_at", "end_reason", "cwd", "api_call_count"),
    "messages": (
        *("id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp"),
        *("finish_reason", "active", "compacted"),
    ),
}
#: Columns that newer versions have, and what stands for them where they are missing.
_NEWER = {"display_kind": "NULL", "_compressed_summary": "0", "tool_call_uid": "NULL"}
#: Seconds that a query may wait for a lock.
_PATIENCE = 2.0
#: Bytes of a message that are read: a result that is longer is kept nowhere.
_CONTENT = RESULT_LIMIT + 64 * 1024
#: The same of arguments, and of a text that is only shown.
_CALLS, _TEXT = 4 * 1024 * 1024, 400
#: Messages of one session that are read, and of one turn, and bytes of a turn.
_MESSAGES, _TURN, _TURN_TEXT = 200_000, 20_000, 64 * 1024 * 1024
#: What Hermes writes before a content that is no plain text.
_ENCODED = "\0json:"
#: Sessions that one conversation can be followed back through.
_LINEAGE = 100


class Session(NamedTuple):
    """A session as the database tells it."""

    id: str
    source: str
    model: str  #: "" if more than one answered in it, or none is named
    parent: str
    started: float  #: in seconds since the epoch
    end_reason: str
    cwd: str
    config: Mapping[str, Any]  #: the row's own, for `steps_at_limit`
    answered: bool  #: a model answered in it


class Message(NamedTuple):
    """One row of a session, its texts as far as they were read."""

    id: int
    role: str
    text: str | None  #: None for what is no text
    cut: bool  #: only the beginning of the text was read
    calls: tuple[Mapping[str, Any], ...] | None  #: None where they cannot be read
    call_id: str
    finish: str
    at: float
    kind: str  #: "" for what people, models and tools said
    summary: bool  #: Hermes's own summary of what it compacted away
    new: bool  #: written by Hermes 0.22 or later


def find_database(home: Path) -> Path:
    """Return where the database of a home is.

    :raises CassetteError: if there is none.
    """
    path = home / "state.db"
    if not path.is_file():
        raise CassetteError(f"Hermes has no sessions in this profile yet: there is no {shown(path)}")
    return path


class Database:
    """Hermes's database, opened anew for each question.

    :raises CassetteError: from each method, if it cannot be read, or has no such tables.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def sessions(self, last: int) -> list[Session]:
        """Return the newest sessions, the newest first."""
        return self._ask(lambda reader: reader.sessions("ORDER BY started_at DESC, rowid DESC LIMIT ?", last))

    def find(self, beginning: str) -> Session:
        """Return the session with this id, or the only one whose id begins so."""
        found = self._ask(lambda reader: reader.sessions("WHERE id = ?", beginning))
        if not found and beginning:
            size = len(beginning)
            found = self._ask(lambda reader: reader.sessions("WHERE substr(id, 1, ?) = ? LIMIT 2", size, beginning))
        if not found:
            raise CassetteError(f"there is no session {beginning!r} in this profile: see hermes cassette sessions")
        if len(found) > 1:
            ids = " and ".join(repr(shown(one.id, 100)) for one in found)
            raise CassetteError(f"more than one session begins with {beginning!r}, such as {ids}: give more of the id")
        return found[0]

    def outline(self, session: str) -> list[Message]:
        """Return the messages that stand in a session now, only the beginnings of their texts, and no arguments."""
        return self._ask(lambda reader: reader.messages(session, _TEXT, 0, "LIMIT ?", _MESSAGES))

    def messages(self, session: str, first: int, last: int) -> list[Message]:
        """Return the messages between two of a session, both included, with their texts."""
        size = self._ask(lambda reader: reader.size(session, first, last))
        if size > _TURN_TEXT:
            raise CassetteError(f"the turn holds {size:,} bytes, and {_TURN_TEXT:,} are the most")
        which = "AND id BETWEEN ? AND ? LIMIT ?"
        return self._ask(lambda reader: reader.messages(session, _CONTENT, _CALLS, which, first, last, _TURN))

    def begun(self, session: Session) -> float:
        """When the conversation of a session began, before Hermes moved it on to this one."""
        for _ in range(_LINEAGE):
            before = self._before(session)
            if before is None:
                break
            session = before
        return session.started

    def rewritten(self, session: Session) -> bool:
        """Whether Hermes has rewritten what was said in a session, to compact it."""
        return self._before(session) is not None or self._ask(lambda reader: reader.has_replaced(session.id))

    def _before(self, session: Session) -> Session | None:
        """The session whose conversation Hermes moved on to this one when it compacted it."""
        if not session.parent:
            return None
        found = self._ask(lambda reader: reader.sessions("WHERE id = ?", session.parent))
        return found[0] if found and found[0].end_reason == "compression" else None

    def schema(self) -> int:
        """The version of the tables; 0 where they do not tell it."""
        return self._ask(lambda reader: reader.schema())

    def _ask(self, question: Callable[[_Reader], _T]) -> _T:
        try:
            return ask(self.path, lambda connection: question(_Reader(connection)), _PATIENCE)
        except (sqlite3.Error, OSError) as error:
            raise CassetteError(f"Hermes's database {shown(self.path)} cannot be read: {shown(error, 200)}") from error


class _Reader:
    """What is asked of an open database.

    :raises CassetteError: if it has other tables.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        self._connection = connection
        self._columns = {table: self._names(table) for table in ("sessions", "messages", "session_model_usage")}
        for table, needed in _NEEDED.items():
            lacking = [name for name in needed if name not in self._columns[table]]
            if lacking:
                missing = f"{table}.{lacking[0]}" if self._columns[table] else f"table {table}"
                raise CassetteError(f"this Hermes keeps its sessions in another way: its database has no {missing}")

    def _names(self, table: str) -> set[str]:
        return {str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({table})")}

    def sessions(self, which: str, *values: Any) -> list[Session]:
        config = "substr(model_config, 1, 4000)" if "model_config" in self._columns["sessions"] else "NULL"
        rows = self._connection.execute(
            f"SELECT substr(id, 1, 500), substr(source, 1, 100), substr(model, 1, 500), substr(parent_session_id, 1, 500),"
            f" started_at, substr(end_reason, 1, 100), substr(cwd, 1, 4096), {config}, api_call_count"
            f" FROM sessions {which}",
            values,
        ).fetchall()
        return [self._session(*row) for row in rows]

    def _session(self, *row: Any) -> Session:
        texts = ["" if value is None else str(value) for value in row]
        number = float(row[4]) if isinstance(row[4], (int, float)) else 0.0
        models = self._models(texts[0])
        model = texts[2] if len(models) < 2 else ""
        return Session(
            texts[0], texts[1], model, texts[3], number, texts[5], texts[6], {"model_config": texts[7]}, bool(row[8])
        )

    def _models(self, session: str) -> list[str]:
        """The models that answered in a session, not those that gave it a title and the like."""
        if not {"session_id", "model", "task", "api_call_count"} <= self._columns["session_model_usage"]:
            return []
        return [
            str(row[0])
            for row in self._connection.execute(
                "SELECT DISTINCT substr(model, 1, 500) FROM session_model_usage"
                " WHERE session_id = ? AND task = '' AND api_call_count > 0 LIMIT 3",
                (session,),
            )
        ]

    def messages(self, session: str, texts: int, calls: int, which: str, *values: Any) -> list[Message]:
        newer = [name if name in self._columns["messages"] else missing for name, missing in _NEWER.items()]
        found = f"substr(tool_calls, 1, {calls})" if calls else "CASE WHEN tool_calls IS NULL THEN NULL ELSE '[{}]' END"
        blob = "CAST(content AS BLOB)"  # a text ends at its first NUL for most of SQLite's functions
        rows = self._connection.execute(
            f"SELECT id, role, substr({blob}, 1, {texts}), length({blob}), typeof(content), {found}, length(tool_calls),"
            f" tool_call_id, finish_reason, timestamp, {', '.join(newer)}"
            f" FROM messages WHERE session_id = ? AND active = 1 {which.replace('LIMIT', 'ORDER BY id LIMIT')}",
            (session, *values),
        )
        return [_message(row, calls) for row in rows]

    def size(self, session: str, first: int, last: int) -> int:
        row = self._connection.execute(
            f"SELECT sum(min(coalesce(length(CAST(content AS BLOB)), 0), {_CONTENT}) + min(coalesce(length(tool_calls), 0), {_CALLS}))"
            " FROM messages WHERE session_id = ? AND active = 1 AND id BETWEEN ? AND ?",
            (session, first, last),
        ).fetchone()
        return int(row[0] or 0)

    def has_replaced(self, session: str) -> bool:
        summary = "OR _compressed_summary" if "_compressed_summary" in self._columns["messages"] else ""
        query = f"SELECT 1 FROM messages WHERE session_id = ? AND (compacted {summary}) LIMIT 1"
        return self._connection.execute(query, (session,)).fetchone() is not None

    def schema(self) -> int:
        with contextlib.suppress(sqlite3.Error):
            row = self._connection.execute("SELECT max(version) FROM schema_version").fetchone()
            return int(row[0]) if row and type(row[0]) is int else 0
        return 0


def _message(row: tuple[Any, ...], calls: int) -> Message:
    number, role, data, size, type_of, listed, long, call_id, finish, at, kind, summary, uid = row
    cut = data is not None and size > len(data)
    text = data.decode("utf-8", "ignore" if cut else "replace") if data is not None else ""
    plain = text if type_of in ("text", "null") and not text.startswith(_ENCODED) else None
    return Message(
        number,
        str(role),
        plain,
        cut,
        _calls(listed) if not calls or (long or 0) <= calls else None,
        str(call_id or "")[:500],
        str(finish or "")[:100],
        float(at) if isinstance(at, (int, float)) else 0.0,
        str(kind or "")[:100],
        bool(summary),
        uid is not None,
    )


def _calls(text: Any) -> tuple[Mapping[str, Any], ...] | None:
    """The calls of a message; None where they cannot be read."""
    if text is None:
        return ()
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return tuple(one for one in found if isinstance(one, Mapping)) if isinstance(found, list) else None
