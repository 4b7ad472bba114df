"""Databases of sessions for the tests: the tables as each version of Hermes makes them, and rows in them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

#: The columns that each version's tables have beyond those of 0.19.0, and the number that it gives them.
VERSIONS: dict[str, tuple[int, str, str]] = {
    "0.19.0": (22, "", ""),
    "0.20.1.2": (
        26,
        ", system_prompt_hash TEXT, title_source TEXT, last_activity_at REAL, pinned INTEGER NOT NULL DEFAULT 0",
        ", display_kind TEXT, display_metadata TEXT",
    ),
    "0.22.2": (
        31,
        ", system_prompt_hash TEXT, title_source TEXT, last_activity_at REAL, created_source TEXT, tool_names TEXT",
        ", display_kind TEXT, display_metadata TEXT, _compressed_summary INTEGER NOT NULL DEFAULT 0,"
        " display_identity BLOB, display_order INTEGER, message_uid TEXT, tool_call_uids TEXT, tool_call_uid TEXT",
    ),
}
_SESSIONS = """CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, model TEXT, model_config TEXT,
    system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
    message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT, title TEXT,
    api_call_count INTEGER DEFAULT 0, profile_name TEXT{})"""
_MESSAGES = """CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, effect_disposition TEXT, timestamp REAL NOT NULL,
    token_count INTEGER, finish_reason TEXT, reasoning TEXT, platform_message_id TEXT, observed INTEGER DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT{})"""
_USAGE = """CREATE TABLE session_model_usage (session_id TEXT NOT NULL, model TEXT NOT NULL,
    task TEXT NOT NULL DEFAULT '', api_call_count INTEGER NOT NULL DEFAULT 0)"""


class Sample:
    """A database that is being filled, as Hermes fills it; close it, or keep it open as a Hermes that runs does."""

    def __init__(self, home: Path, version: str = "0.22.2", mode: str = "wal") -> None:
        number, sessions, messages = VERSIONS[version]
        self.version, self.path, self._calls, self.at = version, home / "state.db", 0, 1_000_000.0
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.execute(f"PRAGMA journal_mode = {mode}")
        for line in (_SESSIONS.format(sessions), _MESSAGES.format(messages), _USAGE):
            self.connection.execute(line)
        self.connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        self.connection.execute("INSERT INTO schema_version VALUES (?)", (number,))

    def session(self, name: str, cwd: str = "", **columns: Any) -> str:
        """Add a session."""
        self.at += 10
        row = {"id": name, "source": "cli", "model": "careful", "started_at": self.at, "cwd": cwd, "api_call_count": 1}
        self._insert("sessions", {**row, **columns})
        return name

    def say(self, session: str, role: str, text: Any, **columns: Any) -> None:
        """Add a message."""
        self.at += 1
        row = {"session_id": session, "role": role, "content": text, "timestamp": self.at}
        if self.version == "0.22.2":
            row["message_uid"] = f"{self.at}"
        self._insert("messages", {**row, **columns})

    def call(self, session: str, *calls: tuple[str, Any, str | None], **columns: Any) -> None:
        """Add calls of one batch: a tool, its arguments, and the result as it is stored, None for none."""
        asked, results = [], []
        for tool, args, result in calls:
            self._calls += 1
            written = args if isinstance(args, str) else json.dumps(args)
            asked.append({"id": f"call_{self._calls}", "function": {"name": tool, "arguments": written}})
            results.append((f"call_{self._calls}", tool, result))
        self.say(session, "assistant", "", tool_calls=json.dumps(asked), finish_reason="tool_calls", **columns)
        new = {"tool_call_uid": "u"} if self.version == "0.22.2" else {}
        for call_id, tool, result in results:
            if result is not None:
                self.say(session, "tool", result, tool_call_id=call_id, tool_name=tool, **new)

    def answer(self, session: str, text: str, **columns: Any) -> None:
        """Add an answer."""
        self.say(session, "assistant", text, **{"finish_reason": "stop", **columns})

    def close(self) -> Path:
        """End the Hermes that filled it."""
        self.connection.close()
        return self.path

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        marks = ", ".join("?" * len(row))
        self.connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def page(text: str) -> str:
    """A file's whole text as `read_file` of 0.22 shows it."""
    lines = text.split("\n")[: -1 if text.endswith("\n") else None]
    content = "\n".join(f"{number}|{line}" for number, line in enumerate(lines, 1))
    size = len(text.encode())
    told = {"content": content, "total_lines": len(lines), "file_size": size, "truncated": False}
    return json.dumps({**told, "is_binary": False, "is_image": False, "not_found": False}, ensure_ascii=False)
