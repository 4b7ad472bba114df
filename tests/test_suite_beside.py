"""New files beside those of a recording of the whole folder: names only."""

from __future__ import annotations

import os
import unittest
from typing import Any, NamedTuple
from unittest import mock

from tests.support import load_plugin, temp_folder, write_tree

load_plugin()
from session_cassettes.cassette_store import Cassette  # noqa: E402
from session_cassettes.snapshot import Workspace  # noqa: E402
from session_cassettes.suite import beside  # noqa: E402
from session_cassettes.suite.beside import new_files, recorded_names  # noqa: E402
from session_cassettes.suite.drift import compare_files  # noqa: E402


class Name(NamedTuple):
    """As far as it is read here, a name of a recording."""

    inside: int | None = None


class Whole(NamedTuple):
    """As far as it is read here, a snapshot of a whole folder."""

    files: Any = {}
    skipped: Any = {}
    skipped_paths: Any = {}
    links: Any = {}
    names: Any = None
    whole: bool = True


class Beside(unittest.TestCase):
    def setUp(self) -> None:
        self.root = temp_folder(self) / "shop"
        write_tree(self.root, {"a.py": "", "d/b.py": "", "logs/old.log": ""})

    def found(self, *known: str, closed: tuple[str, ...] = (), fold: bool = False) -> list[str]:
        found, whole = new_files(set(known), set(closed), Workspace(str(self.root), fold_case=fold))
        self.assertTrue(whole)
        return found

    def test_what_is_not_known_is_new(self) -> None:
        self.assertEqual(self.found("a.py", "d", "d/b.py", "logs", "logs/old.log"), [])
        write_tree(self.root, {"d/e/c.py": "", "z.py": ""})
        self.assertEqual(self.found("a.py", "d", "d/b.py", "logs", "logs/old.log"), ["d/e/c.py", "z.py"])

    def test_hidden_and_ignored_files_and_folders_are_not_told(self) -> None:
        write_tree(
            self.root,
            {
                ".env": "",
                ".git/config": "",
                ".gitignore": "*.log\nbuild/\n",
                "build/x.py": "",
                "new.log": "",
                "n.py": "",
            },
        )
        self.assertEqual(self.found("a.py", "d/b.py", "logs/old.log"), ["n.py"])

    def test_an_ignore_file_of_git_counts_below_a_work_tree_too(self) -> None:
        write_tree(self.root, {".gitignore": "*.log\n", "new.log": ""})
        self.assertEqual(self.found("a.py", "d/b.py", "logs/old.log"), ["new.log"])
        (self.root.parent / ".git").mkdir()
        self.assertEqual(self.found("a.py", "d/b.py", "logs/old.log"), [])

    def test_a_link_is_a_name_and_is_not_followed(self) -> None:
        away = temp_folder(self)
        write_tree(away, {"x.py": ""})
        os.symlink(away, self.root / "away")
        os.symlink(self.root, self.root / "d/circle")
        self.assertEqual(self.found("a.py", "d/b.py", "logs/old.log"), ["away", "d/circle"])

    def test_folders_that_the_recording_did_not_list_are_not_looked_into(self) -> None:
        self.assertEqual(self.found("a.py", "d/b.py", "logs", closed=("logs",)), [])

    def test_another_case_is_the_same_name_where_case_carries_no_meaning(self) -> None:
        (self.root / "a.py").rename(self.root / "A.py")
        known = ("a.py", "d/b.py", "logs/old.log")
        self.assertEqual((self.found(*known), self.found(*known, fold=True)), (["A.py"], []))

    def test_of_too_many_names_it_says_that_there_are_more(self) -> None:
        with mock.patch.object(beside, "NAMES_LOOKED_AT", 2):
            self.assertFalse(new_files(set(), set(), Workspace(str(self.root)))[1])

    def test_check_tells_them_beside_a_recording_of_the_whole_folder(self) -> None:
        def kinds(whole: bool) -> list[tuple[str, str]]:
            kept = Whole(names={"a.py": Name(), "d/b.py": Name(), "logs": Name(1)}, whole=whole)
            cassette: Any = Cassette("c", "q", "a")._replace(snapshot=kept)  # type: ignore[arg-type]
            drift = compare_files(cassette, Workspace(str(self.root)), lambda: None, "")
            return [(one.kind, one.path) for one in drift.changes]

        self.assertEqual(kinds(True), [])
        write_tree(self.root, {"d/new.py": "", "logs/new.log": ""})
        self.assertEqual((kinds(True), kinds(False)), ([("new", "d/new.py")], []))

    def test_only_a_recording_that_knew_all_names_can_tell(self) -> None:
        names = {"a.py": Name(), "keys": Name(3)}
        for snapshot, told in (
            (Whole(names=names), ({"a.py", "keys"}, {"keys"})),
            (Whole(names=names, whole=False), None),
            (Whole(files={"a.py": 1}, skipped={"binary": 1}, skipped_paths={"b": "binary"}), ({"a.py", "b"}, set())),
            (Whole(files={"a.py": 1}, skipped={"binary": 2}, skipped_paths={"b": "binary"}), None),
            (object(), None),
        ):
            with self.subTest(snapshot=snapshot):
                self.assertEqual(recorded_names(snapshot), told)


if __name__ == "__main__":
    unittest.main()
