"""The database of Hermes's sessions is read as it is, and left as it is."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import unittest
from unittest import mock

from tests.past_samples import VERSIONS, Sample, page
from tests.support import load_plugin, temp_folder

load_plugin()
from session_cassettes.cassette_store import CassetteError  # noqa: E402
from session_cassettes.suite.sessions import Database, find_database  # noqa: E402


class SessionsCase(unittest.TestCase):
    def setUp(self) -> None:
        self.home = temp_folder(self)

    def sample(self, version: str = "0.22.2", mode: str = "wal") -> Sample:
        sample = Sample(self.home, version, mode)
        self.addCleanup(sample.connection.close)
        return sample

    def filled(self, version: str = "0.22.2", mode: str = "wal") -> Sample:
        sample = self.sample(version, mode)
        sample.session("20261201_101010_aaaaaa", str(self.home))
        sample.say("20261201_101010_aaaaaa", "user", "Which port?")
        sample.call("20261201_101010_aaaaaa", ("read_file", {"path": "a.py"}, page("PORT = 8080\n")))
        sample.answer("20261201_101010_aaaaaa", "8080")
        return sample

    def files(self) -> dict[str, tuple[int, int]]:
        return {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in self.home.iterdir()}


class Reading(SessionsCase):
    def test_each_versions_tables_are_read(self) -> None:
        for version in VERSIONS:
            with self.subTest(version=version):
                self.home = temp_folder(self)
                database = Database(self.filled(version).close())
                [session] = database.sessions(5)
                self.assertEqual((session.model, session.cwd, session.source), ("careful", str(self.home), "cli"))
                told = [(one.role, one.text) for one in database.outline(session.id)]
                self.assertEqual([role for role, _ in told], ["user", "assistant", "tool", "assistant"])
                self.assertEqual(told[-1][1], "8080")
                [result] = [one for one in database.messages(session.id, 1, 4) if one.role == "tool"]
                self.assertEqual((result.text, result.new), (page("PORT = 8080\n"), version == "0.22.2"))

    def test_other_tables_are_refused_by_what_they_lack(self) -> None:
        for table, column, told in (
            ("messages", "finish_reason", "no messages.finish_reason"),
            ("sessions", "cwd", "no sessions.cwd"),
            ("messages", "", "no table messages"),
        ):
            with self.subTest(told=told):
                self.home = temp_folder(self)
                sample = self.filled()
                change = f"ALTER TABLE {table} DROP COLUMN {column}" if column else f"DROP TABLE {table}"
                sample.connection.execute(change)
                with self.assertRaises(CassetteError) as raised:
                    Database(sample.close()).sessions(5)
                self.assertIn(told, str(raised.exception))
                self.assertNotIn("\n", str(raised.exception))

    def test_what_is_no_database_is_told_in_a_line(self) -> None:
        with self.assertRaisesRegex(CassetteError, "no sessions in this profile yet"):
            find_database(self.home)
        for data in (b"", b"no database" * 100, b"SQLite format 3\0" + bytes(200)):
            with self.subTest(data=data[:20]):
                (self.home / "state.db").write_bytes(data)
                with self.assertRaises(CassetteError) as raised:
                    Database(find_database(self.home)).sessions(5)
                self.assertNotIn("\n", str(raised.exception))

    def test_a_session_is_found_by_a_beginning_that_only_it_has(self) -> None:
        sample = self.filled()
        sample.session("20261201_101010_aabbbb")
        database = Database(sample.close())
        self.assertEqual(database.find("20261201_101010_aaa").id, "20261201_101010_aaaaaa")
        for beginning, told in (
            ("20261201", "more than one"),
            ("7", "there is no session"),
            ("", "there is no session"),
        ):
            with self.subTest(beginning=beginning), self.assertRaisesRegex(CassetteError, told):
                database.find(beginning)

    def test_a_session_of_more_than_one_model_names_none(self) -> None:
        sample = self.filled()
        for model, task, calls in (("careful", "", 2), ("titler", "title", 1), ("unused", "", 0)):
            sample.connection.execute(
                "INSERT INTO session_model_usage VALUES ('20261201_101010_aaaaaa', ?, ?, ?)", (model, task, calls)
            )
        database = Database(sample.path)
        self.assertEqual(database.sessions(1)[0].model, "careful")
        sample.connection.execute("INSERT INTO session_model_usage VALUES ('20261201_101010_aaaaaa', 'other', '', 1)")
        self.assertEqual(database.sessions(1)[0].model, "")

    def test_huge_and_odd_rows_are_read_in_part(self) -> None:
        sample = self.filled()
        sample.session("odd", "x" * 100_000, model="m" * 100_000, model_config="{" * 100_000)
        sample.say("odd", "user", b"\xff\xfe")
        sample.say("odd", "user", "\0json:[1]")
        sample.say("odd", "user", "long " * 1_000_000)
        sample.say("odd", "assistant", None, tool_calls="[" * 100_000)
        sample.say("odd", "assistant", 5, tool_calls="[1, {}, null]")
        database = Database(sample.close())
        session = database.find("odd")
        self.assertLess(len("".join(map(str, session))), 10_000)
        outline = database.outline("odd")
        self.assertLess(sum(len(one.text or "") for one in outline), 2_000)
        read = database.messages("odd", outline[0].id, outline[-1].id)
        self.assertEqual([one.text is None for one in read], [True, True, False, False, False])
        self.assertEqual([one.calls for one in read[3:]], [None, ({},)])
        self.assertEqual((read[2].cut, len(read[2].text or "") < 3_000_000), (True, True))


class LeavingAlone(SessionsCase):
    def test_nothing_is_made_or_changed_beside_the_database(self) -> None:
        for mode in ("wal", "delete"):
            for alive in (True, False):
                with self.subTest(mode=mode, alive=alive):
                    self.home = temp_folder(self)
                    sample = self.filled(mode=mode)
                    if not alive:
                        sample.close()
                    before = self.files()
                    database = Database(sample.path)
                    self.assertEqual(len(database.sessions(5)), 1)
                    self.assertEqual(len(database.outline("20261201_101010_aaaaaa")), 4)
                    self.assertEqual(self.files(), before)

    @unittest.skipIf(os.name == "nt" or os.geteuid() == 0, "needs a user whom a folder can refuse")
    def test_a_folder_that_cannot_be_written_is_enough(self) -> None:
        for alive in (True, False):
            with self.subTest(alive=alive):
                self.home = temp_folder(self)
                sample = self.filled()
                if not alive:
                    sample.close()
                self.home.chmod(0o500)
                try:
                    self.assertEqual(len(Database(sample.path).sessions(5)), 1)
                finally:
                    self.home.chmod(0o700)

    def test_a_database_that_a_crash_left_ahead_is_not_mended_here(self) -> None:
        self.filled()
        other = temp_folder(self)
        for name in ("state.db", "state.db-wal"):
            (other / name).write_bytes((self.home / name).read_bytes())
        with self.assertRaisesRegex(CassetteError, "cannot be read"):
            Database(other / "state.db").sessions(5)
        self.assertEqual(sorted(path.name for path in other.iterdir()), ["state.db", "state.db-wal"])

    def test_what_hermes_writes_meanwhile_is_seen_and_does_not_wait(self) -> None:
        for mode in ("wal", "delete"):
            with self.subTest(mode=mode):
                self.home = temp_folder(self)
                sample = self.filled(mode=mode)
                database, lengths = Database(sample.path), []
                stop, faults = threading.Event(), []

                def look() -> None:
                    try:
                        while not stop.is_set():
                            lengths.append(len(database.outline("20261201_101010_aaaaaa")))
                    except Exception as error:
                        faults.append(error)

                looking = threading.Thread(target=look)
                looking.start()
                for number in range(200):
                    sample.say("20261201_101010_aaaaaa", "user", f"more {number}")
                stop.set()
                looking.join()
                self.assertEqual(faults, [])
                self.assertEqual(lengths, sorted(lengths))
                self.assertEqual(len(database.outline("20261201_101010_aaaaaa")), 204)

    def test_a_database_that_is_closed_and_opened_again_meanwhile_is_read_anew(self) -> None:
        sample = self.filled()
        sample.close()
        database = Database(sample.path)
        connect, writers = sqlite3.connect, []

        def connect_late(*args: object, **named: object) -> sqlite3.Connection:
            found = connect(*args, **named)  # type: ignore[call-overload]
            if not writers:
                writers.append(connect(sample.path, isolation_level=None))
                writers[0].execute("INSERT INTO sessions (id, source, started_at) VALUES ('late', 'cli', 9e9)")
                writers[0].close()
            return found

        with mock.patch.object(sqlite3, "connect", connect_late):
            self.assertEqual([one.id for one in database.sessions(5)][0], "late")

    def test_the_locks_that_hermess_own_module_may_hold_are_not_given_up(self) -> None:
        path = self.filled().close()
        closed: list[int] = []
        with mock.patch.object(os, "close", closed.append):
            with mock.patch.dict(sys.modules, {"hermes_state": unittest}):
                Database(path).sessions(1)
        self.assertEqual(closed, [])


if __name__ == "__main__":
    unittest.main()
