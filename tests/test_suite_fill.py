"""What a fill adds to a cassette, as plain values: nothing is lost, the rules hold for both together, and what differs is told."""

from __future__ import annotations

import json
import unittest
from typing import Any

from tests.support import load_plugin

load_plugin()
from session_cassettes.cassette_store import (  # noqa: E402
    Call,
    Cassette,
    CassetteError,
    Name,
    Recorder,
    Snapshot,
    SnapshotFile,
    dump_cassette,
    parse_cassette,
)
from session_cassettes.cli import BEYOND  # noqa: E402
from session_cassettes.middleware import CALL_LIMIT, TURN_LIMIT  # noqa: E402
from session_cassettes.snapshot import SNAPSHOT_LIMIT, WHOLE_LIMIT  # noqa: E402
from session_cassettes.suite.fill import fill, refuse_loss, refuse_other_hermes, several  # noqa: E402

AT = "2026-12-01T10:00:00+00:00"
HERE = Recorder("0.22.2", "linux", "rg")
AUTH = SnapshotFile("AUTH_PORT = 8080\n", 17, 1.0)
READ = Call("read_file", {"path": "auth.py"}, "1|AUTH_PORT = 8080")


def terminal(command: str, output: str, **more: Any) -> Call:
    return Call("terminal", {"command": command, **more}, json.dumps({"output": output, "exit_code": 0, "error": None}))


def tape(**changes: Any) -> Cassette:
    fields: dict[str, Any] = {
        "model": "careful",
        "cwd": "/shop",
        "recorder": HERE,
        "calls": (READ,),
        "snapshot": Snapshot({"auth.py": AUTH}),
        "pins": ("8080",),
        "warnings": ("an old warning",),
        "recorded_at": "2026-11-01T10:00:00+00:00",
        **changes,
    }
    return Cassette("shop", "where?", "8080", **fields)


def live(*calls: Call, **changes: Any) -> Cassette:
    fields = {"model": "cheap", "cwd": "/shop", "recorder": HERE, "calls": calls, **changes}
    return Cassette("shop", "where?", "9090", **fields)


def files(**texts: str) -> Snapshot:
    return Snapshot({name.replace("_", "."): SnapshotFile(text, len(text), 2.0) for name, text in texts.items()})


class Adding(unittest.TestCase):
    def test_calls_and_files_are_added_behind_those_of_the_tape_and_nothing_of_it_changes(self) -> None:
        new = (Call("read_file", {"path": "log.py"}, "1|LOG"), terminal("git log -3", "abc"))
        before = tape(cwd_aliases=("/other",))
        filled = fill(before, live(*new, snapshot=files(log_py="LOG\n"), not_kept=("write_file",)), AT)
        after = filled.cassette
        self.assertEqual((filled.calls, filled.files), (new, ("log.py",)))
        self.assertEqual(after.calls, (READ, *new))
        self.assertEqual(dict(after.snapshot.files), {"auth.py": AUTH, "log.py": SnapshotFile("LOG\n", 4, 2.0)})
        self.assertEqual(after.not_kept, ("write_file",))
        kept = ("name", "request", "answer", "model", "cwd", "cwd_aliases", "recorded_at", "recorder", "pins", "plugin")
        for field in kept:
            self.assertEqual(getattr(after, field), getattr(before, field), field)
        self.assertEqual(
            after.warnings, ("an old warning", f"2 calls and 1 file were added by a fill of {AT} with cheap")
        )
        self.assertEqual(parse_cassette(dump_cassette(after), "x"), after)

    def test_without_anything_new_it_is_the_very_tape(self) -> None:
        for turn in (
            live(),
            live(not_kept=("write_file",), warnings=("1 tool call was not kept",)),
            live(snapshot=files(auth_py="AUTH_PORT = 9090\n")),
        ):
            with self.subTest(turn=turn):
                before = tape()
                filled = fill(before, turn, AT)
                self.assertIs(filled.cassette, before)
                self.assertEqual((filled.calls, filled.files), ((), ()))

    def test_what_a_turn_without_kept_calls_is_warned_of_is_not_said_of_a_tape_that_has_some(self) -> None:
        told = "no tool call was kept: a replay has nothing to answer with"
        self.assertEqual(fill(tape(), live(warnings=(told,)), AT).warnings, ())

    def test_warnings_of_the_turn_say_of_which_fill_they_are_each_once(self) -> None:
        odd = Call("web_search", {"query": "x"}, '{"success": false, "error": "no network"}')
        turn = live(odd, warnings=("terminal: not in the list", "terminal: not in the list"))
        told = fill(tape(), turn, AT).cassette.warnings
        self.assertEqual(told.count(f"fill of {AT}: terminal: not in the list"), 1)
        self.assertTrue([one for one in told if one.startswith(f"fill of {AT}: web_search: the result is a failure")])


class Limits(unittest.TestCase):
    def test_the_bytes_of_results_count_together(self) -> None:
        big = Call("read_file", {"path": "big"}, "x" * (TURN_LIMIT - 10))
        new = (Call("read_file", {"path": "a"}, "y" * 11), Call("read_file", {"path": "b"}, "z" * 10))
        filled = fill(tape(calls=(big,)), live(*new), AT)
        self.assertEqual(filled.calls, new[1:])
        self.assertEqual(filled.cassette.not_kept, ("read_file",))
        self.assertIn(f"fill of {AT}: read_file: over 12 MB with what the cassette holds", filled.cassette.warnings)

    def test_more_calls_than_a_replay_may_make_are_not_kept(self) -> None:
        many = tuple(Call("read_file", {"path": f"f{number}"}, "x") for number in range(CALL_LIMIT - 1))
        new = tuple(Call("read_file", {"path": name}, "y") for name in ("a", "b"))
        self.assertEqual(fill(tape(calls=many), live(*new), AT).calls, new[:1])

    def test_the_bytes_of_files_count_together(self) -> None:
        half = SnapshotFile("x" * (SNAPSHOT_LIMIT - 10), SNAPSHOT_LIMIT - 10)
        turn = live(READ._replace(args={"path": "b"}), snapshot=files(a_py="y" * 11, b_py="z" * 10))
        filled = fill(tape(snapshot=Snapshot({"half": half})), turn, AT)
        self.assertEqual(filled.files, ("b.py",))
        self.assertIn(f"fill of {AT}: a.py: not in the snapshot, since 8 MB are the most", filled.cassette.warnings)

    def test_a_tape_of_the_whole_folder_has_its_own_limit(self) -> None:
        half = SnapshotFile("x" * (WHOLE_LIMIT - 10), WHOLE_LIMIT - 10)
        turn = live(READ._replace(args={"path": "b"}), snapshot=files(a_py="y" * 11, b_py="z" * 10))
        filled = fill(tape(snapshot=Snapshot({"half": half}, whole=True)), turn, AT)
        self.assertEqual((filled.files, filled.cassette.snapshot.whole), (("b.py",), True))
        self.assertIn(f"fill of {AT}: a.py: not in the snapshot, since 24 MB are the most", filled.cassette.warnings)


class OtherWorlds(unittest.TestCase):
    def test_a_file_that_the_tape_knows_of_stays_as_it_was(self) -> None:
        known = Snapshot(
            {"auth.py": AUTH, "lib/a.py": AUTH}, {"not found": 1}, {"gone.py": "not found"}, {"link": "lib"}
        )
        for path, added in (
            ("new.py", True),
            ("lib/b.py", True),
            ("auth.py", False),  # its text
            ("gone.py", False),  # why it has none
            ("link", False),
            ("link/b.py", False),  # what lies below is called by its own name
            ("auth.py/x", False),  # a file then
            ("lib", False),  # a folder then
        ):
            with self.subTest(path=path):
                turn = live(snapshot=Snapshot({path: SnapshotFile("new\n", 4)}))
                filled = fill(tape(snapshot=known), turn, AT)
                self.assertEqual(filled.files, (path,) if added else ())
                for old in known.files:
                    self.assertEqual(filled.cassette.snapshot.files[old], AUTH)

    def test_a_file_that_was_not_there_or_of_another_size_is_not_added_to_a_tape_that_knows_its_names(self) -> None:
        names = {
            "auth.py": Name("file", 17),
            "log.py": Name("file", 4),
            "other.py": Name("file", 9),
            "lib": Name("folder"),
            "far": Name("folder", inside=3),
        }
        for path, added in (
            ("log.py", True),
            ("far/a.py", True),  # below a folder whose names are not known
            ("other.py", False),
            ("lib", False),
            ("lib/a.py", False),
            ("new.py", False),
        ):
            with self.subTest(path=path):
                turn = live(READ._replace(args={"path": path}), snapshot=Snapshot({path: SnapshotFile("LOG\n", 4)}))
                filled = fill(tape(snapshot=Snapshot({"auth.py": AUTH}, names=names)), turn, AT)
                self.assertEqual(filled.files, (path,) if added else ())
                self.assertEqual("was not there, or not as it is" in " ".join(filled.warnings), not added)
                self.assertEqual(filled.cassette.snapshot.names, names)

    def test_names_are_one_where_case_carries_no_meaning(self) -> None:
        turn = live(snapshot=Snapshot({"AUTH.py": SnapshotFile("new\n", 4)}))
        for folds, added in ((False, ("AUTH.py",)), (True, ())):
            recorder = HERE._replace(fold_case=folds)
            turn = turn._replace(recorder=recorder)
            self.assertEqual(fill(tape(recorder=recorder), turn, AT).files, added)

    def test_what_was_not_there_is_explained_by_name(self) -> None:
        turn = live(
            READ._replace(args={"path": "x"}),
            snapshot=Snapshot({}, {"binary": 3}, {"a.png": "binary", "auth.py": "not found"}, {"short": "long"}),
        )
        after = fill(tape(), turn, AT).cassette.snapshot
        self.assertEqual(dict(after.skipped_paths), {"a.png": "binary"})
        self.assertEqual((dict(after.skipped), dict(after.links)), ({"binary": 1}, {"short": "long"}))

    def test_a_tape_without_a_folder_gets_no_file(self) -> None:
        new = READ._replace(args={"path": "log.py"})
        filled = fill(tape(cwd="", snapshot=Snapshot()), live(new, snapshot=files(log_py="LOG\n")), AT)
        self.assertEqual((filled.calls, filled.files), ((new,), ()))
        self.assertIn("the folder of the recording is not known", " ".join(filled.warnings))

    def test_what_differs_is_told(self) -> None:
        recorder = Recorder("0.22.9", "linux", "rg", git=True, rg_major=14)
        new = READ._replace(args={"path": "log.py"})
        turn = live(new, cwd="/copy", cwd_aliases=("/short",), recorder=recorder)
        filled = fill(tape(recorder=HERE._replace(rg_major=13)), turn, AT, ["auth.py", "b.py"])
        told = " ".join(filled.warnings)
        for words in (
            "2 files of the recording had changed, and stay as recorded: auth.py, b.py",
            "Hermes 0.22.9 answered, and 0.22.2 had recorded",
            "ripgrep 14 searched, and 13 when it was recorded",
            "the folder lay in a git work tree",
            "the session worked in /copy, not in /shop",
        ):
            self.assertIn(words, told)
        self.assertEqual(filled.cassette.cwd_aliases, ("/copy", "/short"))
        self.assertEqual(filled.cassette.recorder.rg_major, 13)

    def test_two_kinds_of_hermes_are_never_mixed(self) -> None:
        now = HERE
        refuse_other_hermes("shop", now._replace(hermes="0.22.0", search=""), now)
        for then, told in (
            (now._replace(hermes="0.19.0"), "was recorded by Hermes 0.19.0, and this is 0.22.2"),
            (now._replace(hermes=""), "by Hermes of unknown version"),
            (now._replace(platform="win32"), "was recorded on win32, and this is linux"),
            (now._replace(search="grep"), "where Hermes searched with grep, and here it does with rg"),
        ):
            with self.subTest(told=told), self.assertRaisesRegex(CassetteError, told):
                fill(tape(recorder=then), live(), AT)
        with self.assertRaises(CassetteError):
            refuse_other_hermes("shop", now, now._replace(hermes=""))


class Spoiling(unittest.TestCase):
    """Calls after which a replay could answer less than before are left out."""

    def test_an_output_that_contradicts_the_recorded_files(self) -> None:
        turn = live(
            terminal("cat auth.py log.py", "AUTH_PORT = 9090\nLOG"),
            terminal("cat log.py", "LOG"),
            terminal("git log -3", "abc"),
            snapshot=files(log_py="LOG\n"),
        )
        filled = fill(tape(), turn, AT, beyond=BEYOND)
        self.assertEqual(filled.calls, turn.calls[1:])
        self.assertIn("terminal: its output is not what the recorded files say", " ".join(filled.warnings))
        self.assertEqual(filled.cassette.not_kept, ("terminal",))

    def test_a_workdir_in_which_hermes_0_19_stays(self) -> None:
        old = HERE._replace(hermes="0.19.0")
        calls = (terminal("ls", "a", workdir="lib"), terminal("git log -3", "abc"))
        filled = fill(tape(recorder=old), live(*calls, recorder=old), AT, beyond=BEYOND)
        self.assertEqual(filled.calls, calls[1:])
        filled = fill(tape(), live(*calls), AT, beyond=BEYOND)
        self.assertEqual(filled.calls, calls)

    def test_a_cassette_that_answers_otherwise_than_before_is_refused(self) -> None:
        before = tape(calls=(READ, terminal("ls", "a")))
        refuse_loss(before, before._replace(calls=(*before.calls, terminal("git log -3", "abc"))), BEYOND)
        swapped = before._replace(calls=(READ._replace(result="other"), before.calls[1]))
        with self.assertRaisesRegex(CassetteError, "would no longer answer a read_file call as before"):
            refuse_loss(before, swapped, BEYOND)


class Names(unittest.TestCase):
    def test_many_names_are_told_with_their_numbers(self) -> None:
        self.assertEqual(several(["a", "b", "a"]), "a (2), b")
        self.assertEqual(several(map(str, range(12))), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more")


if __name__ == "__main__":
    unittest.main()
