"""The names of a workspace, and the texts of the whole of it, read from real folders."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import unittest
from typing import Any, Sequence

from tests.support import temp_folder, write_tree

from session_cassettes.cassette_store import NAMES_LIMIT, Call, Name, Snapshot
from session_cassettes.snapshot import (
    SNAPSHOT_FILE_LIMIT,
    WHOLE_FILES,
    WHOLE_LIMIT,
    Extent,
    IgnoreRules,
    Listed,
    Redactor,
    SkipReason,
    Workspace,
    take_snapshot,
)
from session_cassettes.suite.agreement import Shown
from session_cassettes.suite.names import list_names

PLAIN = Redactor(lambda text, secret: text.replace("hunter2", "***"), True)
POSIX = os.name == "posix"


class TreeCase(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = temp_folder(self)
        self.faults: list[str] = []

    def taken(
        self, calls: Sequence[Call] = (), redact: Redactor | None = PLAIN, seconds: float = 60.0, **extent: Any
    ) -> Snapshot:
        place = Workspace.here(str(self.folder))
        wanted = Extent(**{"names": True, "walk": list_names, "faults": self.faults, **extent})
        return take_snapshot(calls, place, redact=redact, deadline=time.monotonic() + seconds, extent=wanted)

    def names(self, **extent: Any) -> dict[str, Name]:
        found = self.taken(**extent).names
        assert found is not None, self.faults
        self.assertEqual(self.faults, [])
        return dict(found)


class Names(TreeCase):
    def test_every_file_and_folder_is_named_with_its_size_and_time(self) -> None:
        write_tree(self.folder, {"a.py": "x = 1\n", "src/deep/b.txt": "", "docs/ä b.md": "hi"})
        (self.folder / "empty").mkdir()
        os.utime(self.folder / "a.py", (5.0, 1_234.5))
        found = self.names()
        self.assertEqual(set(found), {"a.py", "src", "src/deep", "src/deep/b.txt", "docs", "docs/ä b.md", "empty"})
        self.assertEqual(found["a.py"], Name("file", 6, 1_234.5))
        self.assertEqual(found["empty"].kind, "folder")
        self.assertIsNone(found["empty"].inside)
        self.assertGreater(found["src"].mtime, 0)

    def test_what_is_hidden_is_marked_and_what_is_below_it_only_counted(self) -> None:
        write_tree(self.folder, {".git/HEAD": "x", ".git/refs/heads/main": "y", ".hidden": "1", "b": ""})
        found = self.names()
        self.assertEqual(set(found), {".git", ".hidden", "b"})
        self.assertEqual(found[".git"][:1] + found[".git"][3:], ("folder", True, False, 4, ""))
        self.assertEqual((found[".hidden"].kind, found[".hidden"].hidden, found[".hidden"].size), ("file", True, 1))

    def test_of_what_is_below_a_hidden_folder_only_the_endings_are_told_besides(self) -> None:
        write_tree(self.folder, {".x/a.py": "", ".x/deep/b.sample": "", ".x/README": "", ".x/c.something-long": ""})
        write_tree(self.folder, {".credentials/a.py": "", ".empty/.keep": ""})
        found = self.names()
        told = {name: found[name].endings for name in (".x", ".credentials", ".empty")}
        self.assertEqual(told, {".x": "/.../.py/.sample", ".credentials": None, ".empty": ".keep"})

    def test_folders_with_secret_names_are_only_counted_and_secret_files_only_named(self) -> None:
        write_tree(self.folder, {"credentials/a/b": "1", "certs.key/x": "", "keys/id_rsa": "s", "prod.env": "p"})
        found = self.names()
        self.assertEqual(set(found), {"credentials", "certs.key", "keys", "keys/id_rsa", "prod.env"})
        self.assertEqual([found[name].inside for name in ("credentials", "certs.key", "keys")], [2, 1, None])

    def test_a_count_is_bounded(self) -> None:
        write_tree(self.folder, {f".cache/{n // 600}/{n}": "" for n in range(5_400)})
        self.assertEqual(self.names()[".cache"].inside, 5_000)

    def test_what_the_ignore_rules_leave_out_is_marked(self) -> None:
        tree = {".git/HEAD": "", ".gitignore": "*.log\nbuild/\n", ".ignore": "vendor\n", "a.log": "", "build/x/y": ""}
        write_tree(self.folder, {**tree, "vendor/v.py": "", "src/a.log": "", "src/a.py": ""})
        found = self.names()
        marked = {path for path, name in found.items() if name.ignored}
        self.assertEqual(marked, {"a.log", "src/a.log", "build", "build/x", "build/x/y", "vendor", "vendor/v.py"})

    @unittest.skipUnless(POSIX, "links need rights on Windows")
    def test_links_and_pipes_are_noted_and_never_followed(self) -> None:
        outside = temp_folder(self)
        write_tree(outside, {"secret.txt": "x"})
        write_tree(self.folder, {"src/a.py": ""})
        for link, target in (("out", outside), ("in", "src"), ("gone", "nowhere"), ("loop", "loop")):
            os.symlink(target, self.folder / link)
        os.mkfifo(self.folder / "pipe")
        found = self.names(whole=True)
        self.assertEqual(
            {path: name.kind for path, name in found.items() if "/" not in path}.items() - {"src": "folder"}.items(),
            {"out": "link", "in": "link", "gone": "link", "loop": "link", "pipe": "other"}.items(),
        )
        self.assertFalse([path for path in found if path.startswith(("out/", "in/"))])

    @unittest.skipUnless(POSIX and os.geteuid() != 0, "root may read every folder")
    def test_a_folder_that_cannot_be_read_is_closed_with_its_count_unknown(self) -> None:
        write_tree(self.folder, {"shut/a": "", "b": ""})
        os.chmod(self.folder / "shut", 0)
        self.addCleanup(os.chmod, self.folder / "shut", 0o700)
        self.assertEqual(self.names()["shut"].inside, 0)

    def test_a_folder_that_cannot_be_listed_is_closed_wherever_it_is(self) -> None:
        class Tree:
            root = "/nowhere"
            folders = {"": ["open", "skipped"], "skipped": ["deep"]}

            def content(self, path: str, limit: int) -> bytes | None:
                return None

            def scan(self, path: str, most: int) -> list[tuple[str, os.stat_result | None]]:
                if path not in self.folders:
                    raise OSError("no")
                return [(name, os.stat(os.curdir)) for name in self.folders[path]]

        rules = IgnoreRules({".ignore": "skipped"}.get, lambda path: False)
        found = list_names(Tree(), rules, rules, False, lambda: False).names
        assert found is not None
        self.assertEqual(
            {path: name.inside for path, name in found.items()}, {"open": 0, "skipped": None, "skipped/deep": 0}
        )

    def test_a_crowded_folder_has_no_names_and_says_so(self) -> None:
        for number in range(NAMES_LIMIT + 1):
            (self.folder / f"f{number}").touch()
        self.assertIsNone(self.taken().names)
        self.assertEqual(
            self.faults, ["too many names: the workspace has more than 20,000 files and folders, so none are kept"]
        )

    def test_a_crowd_that_is_ignored_is_only_counted(self) -> None:
        write_tree(self.folder, {".git/HEAD": "", ".gitignore": "node_modules\n", "a.py": "", "node_modules/m/x": ""})
        for number in range(NAMES_LIMIT):
            (self.folder / "node_modules" / f"f{number}").touch()
        found = self.names()
        self.assertEqual(set(found), {".git", ".gitignore", "a.py", "node_modules"})
        self.assertEqual((found["node_modules"].ignored, found["node_modules"].inside), (True, 5_000))

    def test_without_time_there_are_no_names(self) -> None:
        write_tree(self.folder, {"a": ""})
        self.assertIsNone(self.taken(seconds=0.0).names)
        self.assertEqual(self.faults, ["the names of the workspace could not be listed in time"])

    def test_a_walk_that_is_told_to_stop_has_no_names(self) -> None:
        late = iter([False] + [True] * 9)
        write_tree(self.folder, {"a/b": ""})
        walk = lambda tree, rules, git, whole, _: list_names(tree, rules, git, whole, lambda: next(late))  # noqa: E731
        self.assertIsNone(self.taken(walk=walk).names)
        self.assertEqual(len(self.faults), 1)

    def test_a_folder_that_is_gone_says_so(self) -> None:
        self.folder.rmdir()
        self.assertIsNone(self.taken().names)
        self.assertIn("could not be listed (No such file", self.faults[0])

    def test_without_the_wish_nothing_is_listed(self) -> None:
        def walk(*_: Any) -> Listed:
            raise AssertionError("nobody asked")

        write_tree(self.folder, {"a": ""})
        self.assertIsNone(self.taken(names=False, walk=walk).names)
        self.assertEqual(self.faults, [])

    def test_names_need_no_redaction(self) -> None:
        write_tree(self.folder, {"a": "x"})
        taken = self.taken([Call("read_file", {"path": "a"}, "{}")], redact=None)
        self.assertEqual((list(taken.names or ()), taken.skipped), (["a"], {SkipReason.NO_REDACTION: 1}))


class Whole(TreeCase):
    def whole(self, *calls: Call, **extent: Any) -> Snapshot:
        taken = self.taken(calls, whole=True, **extent)
        self.assertTrue(taken.whole)
        return taken

    def test_all_texts_are_kept_that_git_would_list(self) -> None:
        tree = {".git/HEAD": "", ".gitignore": "*.log\nbuild/\n", ".ignore": "vendor\n", "a.log": "", "build/x": ""}
        write_tree(self.folder, {**tree, "vendor/v.py": "", "src/a.py": "hunter2", ".env": "s", "id_rsa": "s"})
        taken = self.whole()
        self.assertEqual(set(taken.files), {"vendor/v.py", "src/a.py"})
        self.assertEqual(taken.files["src/a.py"].text, "***")
        self.assertTrue(taken.files["vendor/v.py"].ignored)  # by ripgrep, not by git
        self.assertEqual(taken.skipped, {SkipReason.IGNORED: 2})

    def test_without_git_all_texts_are_kept(self) -> None:
        write_tree(self.folder, {".gitignore": "*.log\n", "a.log": "", ".ignore": "b\n", "b": "", "c/d": ""})
        self.assertEqual(set(self.whole().files), {"a.log", "b", "c/d"})

    @unittest.skipUnless(POSIX, "links need rights on Windows")
    def test_the_rules_for_single_files_hold(self) -> None:
        outside = temp_folder(self)
        write_tree(outside, {"x": "x"})
        large = "x" * (SNAPSHOT_FILE_LIMIT + 1)
        write_tree(self.folder, {"bin": b"a\0b", "latin": b"caf\xe9", "large": large, "ok": "ok", ".h/x": ""})
        os.symlink(outside / "x", self.folder / "out")
        os.mkfifo(self.folder / "pipe")
        taken = self.whole()
        self.assertEqual(set(taken.files), {"ok"})
        self.assertEqual(taken.skipped_paths, {"bin": "binary", "latin": "not UTF-8", "large": "too large"})

    def test_named_files_come_first_and_then_the_smaller(self) -> None:
        piece = "x" * (500 * 1024)
        for number in range(52):
            (self.folder / f"f{number:02}").write_text(piece + "y" * (number % 7))
        small = "s" * 1_000
        write_tree(self.folder, {"small": small, "z-named": piece + "z" * 100})
        named = Call("search_files", {}, json.dumps({"files": ["z-named"]}))
        taken = self.whole(named)
        self.assertLessEqual(sum(len(file.text) for file in taken.files.values()), WHOLE_LIMIT)
        self.assertIn("z-named", taken.files)
        self.assertIn("small", taken.files)
        left = {path for path, why in taken.skipped_paths.items() if why == SkipReason.WHOLE_TOTAL}
        self.assertEqual(taken.skipped, {SkipReason.WHOLE_TOTAL: len(left)})
        self.assertEqual(len(left) + len(taken.files), 54)
        kept = [len(taken.files[path].text) for path in taken.files if path != "z-named"]
        self.assertLessEqual(max(kept), min((self.folder / path).stat().st_size for path in left))

    def test_a_crowd_of_texts_is_cut(self) -> None:
        for number in range(WHOLE_FILES + 3):
            (self.folder / f"f{number}").touch()
        taken = self.whole(names=False)
        self.assertEqual((len(taken.files), taken.skipped), (WHOLE_FILES, {SkipReason.WHOLE_TOTAL: 3}))

    def test_names_and_the_whole_do_not_need_each_other(self) -> None:
        write_tree(self.folder, {"a": "1", "b/c": "2"})
        taken = self.whole(names=False)
        self.assertEqual((taken.names, set(taken.files), self.faults), (None, {"a", "b/c"}, []))
        self.assertFalse(self.taken().files)

    def test_what_time_did_not_suffice_for_is_counted(self) -> None:
        write_tree(self.folder, {"a": "1", "b": "2"})
        clock = iter([0.0] * 12)
        place = Workspace.here(str(self.folder))

        def redact(text: str, secret: bool) -> str:
            list(clock)  # the first text takes all the time that there is
            return text

        taken = take_snapshot(
            [],
            place,
            redact=Redactor(redact, True),
            deadline=1.0,
            now=lambda: next(clock, 2.0),
            extent=Extent(True, True, list_names, faults=self.faults),
        )
        self.assertEqual(taken.skipped.get(SkipReason.LATE), 1)
        self.assertEqual(set(taken.names or ()), {"a", "b"})

    def test_no_program_is_started(self) -> None:
        write_tree(self.folder, {".git/HEAD": "", "a": ""})

        def refuse(event: str, args: Any) -> None:
            if watching and event in ("subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.system"):
                raise AssertionError(event)

        watching = True
        sys.addaudithook(refuse)
        try:
            self.assertEqual(set(self.whole().files), {"a"})
        finally:
            watching = False


class Changed(TreeCase):
    """What a turn was shown before it changed the file is no part of the snapshot."""

    def changed(self, *calls: Call, started: float = 0.0, **extent: Any) -> Snapshot:
        evidence = Shown(calls, Workspace.here(str(self.folder)))
        return self.taken(calls, evidence=evidence, started=started, **extent)

    READ = Call("read_file", {"path": "VERSION"}, json.dumps({"content": "1|1.4.2\n2|", "total_lines": 1}))
    WROTE = Call("write_file", {"path": "VERSION", "content": "1.5.0\n"}, "{}")

    def test_a_file_that_was_read_and_then_written_is_left_out(self) -> None:
        write_tree(self.folder, {"VERSION": "1.5.0\n", "b": "b\n"})
        for calls in ((self.READ, self.WROTE), (self.READ,), (self.WROTE,), (self.WROTE, self.READ)):
            for whole in (False, True):
                with self.subTest(calls=[call.tool for call in calls], whole=whole):
                    taken = self.changed(*calls, whole=whole)
                    self.assertEqual(taken.skipped_paths, {"VERSION": SkipReason.CHANGED_IN_TURN})
                    self.assertEqual(set(taken.files), {"b"} if whole else set())
                    self.assertIn("VERSION", taken.names or ())

    def test_a_file_that_stayed_is_kept(self) -> None:
        write_tree(self.folder, {"VERSION": "1.4.2\n"})
        self.assertEqual(set(self.changed(self.READ).files), {"VERSION"})

    def test_a_file_that_was_read_and_removed_is_no_file_that_never_was(self) -> None:
        taken = self.changed(self.READ)
        self.assertEqual(taken.skipped_paths, {"VERSION": SkipReason.CHANGED_IN_TURN})
        never = Call("read_file", {"path": "never"}, '{"error": "File not found: never"}')
        self.assertEqual(self.changed(never).skipped_paths, {"never": SkipReason.NOT_FOUND})

    def test_where_a_tool_wrote_the_time_of_a_file_tells(self) -> None:
        write_tree(self.folder, {"old": "1\n", "new": "2\n"})
        os.utime(self.folder / "old", (1.0, 1_000.0))
        os.utime(self.folder / "new", (1.0, 3_000.0))
        shell = Call("terminal", {"command": "make new"}, '{"output": "", "exit_code": 0}')
        taken = self.changed(shell, started=2_000.0, whole=True)
        self.assertEqual((set(taken.files), taken.skipped_paths), ({"old"}, {"new": SkipReason.CHANGED_IN_TURN}))
        only_read = self.changed(started=2_000.0, whole=True)
        self.assertEqual(set(only_read.files), {"old", "new"})

    @unittest.skipUnless(POSIX, "links need rights on Windows")
    def test_a_file_is_judged_by_each_of_its_names(self) -> None:
        write_tree(self.folder, {"VERSION": "1.5.0\n"})
        os.symlink("VERSION", self.folder / "now")
        by_link = self.READ._replace(args={"path": "now"})
        search = Call("search_files", {}, json.dumps({"matches": [{"path": "now", "line": 1, "content": "1.5.0"}]}))
        self.assertEqual(set(self.changed(search).files), {"VERSION"})
        self.assertEqual(set(self.changed(by_link).files), set())
        self.assertEqual(set(self.changed(search, self.WROTE).files), set())

    def test_a_secret_that_was_written_stays_a_secret(self) -> None:
        wrote = Call("write_file", {"path": ".env", "content": "x"}, "{}")
        self.assertEqual(self.changed(wrote).skipped_paths, {".env": SkipReason.HIDDEN})


class Patience(TreeCase):
    def test_a_disk_that_hangs_is_not_waited_for(self) -> None:
        write_tree(self.folder, {"a": "1"})
        comes_back = threading.Event()
        self.addCleanup(comes_back.set)

        def walk(*_: Any) -> Listed:
            comes_back.wait(60)
            return Listed({})

        self.assertIsNone(self.taken(seconds=0.2, walk=walk).names)
        self.assertFalse(comes_back.is_set())


if __name__ == "__main__":
    unittest.main()
