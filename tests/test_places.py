"""Where a session works, and by which names its folder and files are known."""

from __future__ import annotations

import json
import os
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from tests.support import temp_folder, write_tree
from tests.test_hooks import QUESTION, HookCase

from session_cassettes import hooks
from session_cassettes.cassette_store import (
    Cassette,
    CassetteError,
    Recorder,
    Snapshot,
    SnapshotFile,
    dump_cassette,
    parse_cassette,
)
from session_cassettes.snapshot import Workspace
from session_cassettes.synth_search import Miss, Synthesizer


class ARecordingThatIsToldItsFolder(HookCase):
    """A headless recording: its arm names the folder that the command was given."""

    def record_in(self, folder: Path) -> str:
        """Record one read by a session that works in `self.workspace`; return what was noted."""
        arm = self.arm(kind="record", folder=str(folder))
        self.wait()
        host = self.load(SESSION_CASSETTES_RECORD=arm.id)
        turn = host.start_turn(QUESTION)
        self.assertTrue(self.claimed())
        host.tools["read_file"] = lambda args: json.dumps({"content": "1|AUTH_PORT = 8080"})
        host.call(turn, "read_file", {"path": "server/auth.py"})
        host.end_turn(turn, "8080")
        self.assertEqual(host.raised, [])
        return str(json.loads(self.store.outcome_path(arm.id).read_text())["text"])

    def test_a_session_that_worked_elsewhere_is_not_saved_and_both_folders_are_named(self) -> None:
        other = temp_folder(self)
        self.assertIn(f"the session worked in {self.workspace}, not in {other}: ", self.record_in(other))
        self.assertFalse(self.saved("shop"))

    def test_one_of_two_sources_that_names_another_folder_is_enough(self) -> None:
        other = temp_folder(self)
        with mock.patch.object(hooks, "_session_row", return_value={"cwd": str(other)}):
            self.assertIn(f"the session worked in {other}, not in {self.workspace}: ", self.record_in(self.workspace))

    def test_a_folder_that_cannot_be_known_is_no_other_folder(self) -> None:
        with mock.patch.dict(os.environ, {"TERMINAL_ENV": "docker"}):
            self.assertIn("'shop' saved", self.record_in(temp_folder(self)))

    @unittest.skipUnless(hasattr(os, "symlink"), "needs links")
    def test_the_spelling_that_the_command_was_given_is_known_beside_the_real_one(self) -> None:
        link = temp_folder(self) / "link"
        link.symlink_to(self.workspace)
        self.assertIn("'shop' saved", self.record_in(link))
        [aside] = (self.store.root / "recordings").glob("*.cassette.json")
        kept = self.store.read_value(aside, parse_cassette)
        self.assertEqual((kept.cwd, kept.cwd_aliases), (str(self.workspace), (str(link),)))


@unittest.skipUnless(hasattr(os, "symlink"), "needs links")
class SpellingsOfTheWorkspace(unittest.TestCase):
    def setUp(self) -> None:
        self.real = temp_folder(self)
        write_tree(self.real, {"app.py": "x\n"})
        self.link = temp_folder(self) / "link"
        self.link.symlink_to(self.real)

    def test_the_real_one_the_one_given_and_the_shells_are_one_folder(self) -> None:
        elsewhere = str(temp_folder(self))
        workspace = Workspace.here(str(self.real), (str(self.link), elsewhere, "link", "", str(self.link / "gone")))
        for spelling in (self.real, self.link):
            self.assertEqual(workspace.relative(f"{spelling}/app.py"), "app.py")
        self.assertIsNone(workspace.relative(f"{elsewhere}/app.py"))
        self.assertEqual(workspace.aliases, (str(self.link),))

    def test_a_replay_knows_the_shells_spelling_and_that_of_its_own_folder(self) -> None:
        kept = Cassette("c", "q", "a", cwd="/recorded/here", recorder=Recorder(platform="linux"))
        with mock.patch.dict(os.environ, {"PWD": str(self.link)}):
            workspace = hooks.replay_workspace(kept, str(self.real))
        for spelling in ("/recorded/here", self.real, self.link):
            self.assertEqual(workspace.relative(f"{spelling}/app.py"), "app.py")

    def test_a_shell_that_stands_elsewhere_gives_the_folder_no_name(self) -> None:
        kept = Cassette("c", "q", "a", cwd="/recorded/here", recorder=Recorder(platform="linux"))
        with mock.patch.dict(os.environ, {"PWD": str(self.link.parent)}):
            workspace = hooks.replay_workspace(kept, str(self.real))
        self.assertIsNone(workspace.relative(f"{self.link.parent}/app.py"))


class LinksInTheWorkspace(unittest.TestCase):
    """A file that is known by a link's name is found under its own, as by the live tools, which follow none."""

    LINKS = {"AGENTS.md": "CLAUDE.md", "lib": "src", "src/deep/up": "src", "self": ""}
    FILES = {"CLAUDE.md": "marker one\nmarker two\n", "src/a.py": "marker a\n", "src/deep/b.py": "marker b\n"}

    def synthesizer(
        self, hermes: str = "0.22.2", engine: str = "rg", ignored: bool = False, fold_case: bool = False
    ) -> Synthesizer:
        files = {path: SnapshotFile(text, len(text)) for path, text in self.FILES.items()}
        files["src/gen.log"] = SnapshotFile("marker log\n", 11, ignored=ignored)
        host = Recorder(hermes, "linux", engine, fold_case=fold_case)
        workspace = Workspace("/ws", (), False, fold_case)
        return Synthesizer(Snapshot(files, links=self.LINKS), workspace, host)

    def found(self, hermes: str = "0.22.2", engine: str = "rg", **args: Any) -> dict[str, Any]:
        text = self.synthesizer(hermes, engine).answer("search_files", {"pattern": "marker", **args})
        return dict(json.loads(text))

    def test_each_row_is_shown_once_under_the_files_own_name(self) -> None:
        own = ["./CLAUDE.md", "./src/a.py", "./src/deep/b.py", "./src/gen.log"]
        self.assertEqual(self.found(output_mode="files_only")["files"], own)
        self.assertEqual(self.found(output_mode="count")["total_count"], 5)
        self.assertNotIn("./lib", json.dumps(self.found(pattern="*", target="files")))
        self.assertEqual(self.found(pattern="AGENTS*", target="files"), {"total_count": 0})

    def test_a_link_that_is_named_is_followed_and_shown_as_it_is_named(self) -> None:
        for path, shown in (
            ("lib", ["lib/a.py", "lib/deep/b.py", "lib/gen.log"]),
            ("./lib/", ["./lib/a.py", "./lib/deep/b.py", "./lib/gen.log"]),
            ("lib/deep", ["lib/deep/b.py"]),
            ("lib/deep/up/deep", ["lib/deep/up/deep/b.py"]),
            ("self/lib/deep", ["self/lib/deep/b.py"]),
            ("/ws/lib/deep", ["/ws/lib/deep/b.py"]),
            ("AGENTS.md", ["AGENTS.md"]),
        ):
            with self.subTest(path):
                self.assertEqual(self.found(path=path, output_mode="files_only")["files"], shown)

    def test_a_file_is_read_by_every_name_that_leads_to_it(self) -> None:
        synthesizer = self.synthesizer()
        for path, text in (
            ("AGENTS.md", "1|marker one"),
            ("lib/a.py", "1|marker a"),
            ("self/lib/deep/up/a.py", "1|marker a"),
            ("self/AGENTS.md", "1|marker one"),
        ):
            with self.subTest(path):
                self.assertIn(text, synthesizer.answer("read_file", {"path": path, "limit": 7}))
        for path in ("lib/../CLAUDE.md", "lib/none.py", "AGENTS.md/", "agents.md"):
            with self.subTest(path), self.assertRaises(Miss):
                synthesizer.answer("read_file", {"path": path})
        folding = self.synthesizer(fold_case=True)
        self.assertIn("1|marker a", folding.answer("read_file", {"path": "LIB/Deep/UP/A.py"}))

    def test_the_older_find_sees_a_link_that_is_named_and_nothing_behind_it(self) -> None:
        args = {"pattern": "*", "target": "files"}
        for hermes, files in (
            ("0.19.0", None),
            ("0.20.1", None),
            ("0.22.2", ["lib/a.py", "lib/deep", "lib/deep/b.py"]),
        ):
            with self.subTest(hermes):
                found = self.found(hermes, "grep", path="lib", **args)
                self.assertEqual([f for f in found.get("files", ()) if "gen" not in f] or None, files)
                self.assertIn("lib/a.py", self.found(hermes, "grep", path="lib/", **args)["files"])

    def test_what_rules_and_globs_say_of_a_links_name_is_not_known(self) -> None:
        for args, ignored in (
            ({"file_glob": "src/*.py"}, False),
            ({}, True),
            ({"pattern": "*", "target": "files"}, True),
        ):
            with self.subTest(args), self.assertRaises(Miss):
                self.synthesizer(ignored=ignored).answer("search_files", {"pattern": "marker", "path": "lib", **args})
        self.assertIn("a.py", json.dumps(self.found(path="lib", file_glob="*.py")))

    def test_the_links_are_kept_in_the_cassette_and_an_older_one_has_none(self) -> None:
        kept = Cassette("c", "q", "a", snapshot=Snapshot(links=self.LINKS), recorder=Recorder())
        data = dump_cassette(kept)
        self.assertEqual(parse_cassette(data, "c.json").snapshot.links, self.LINKS)
        older = data.replace(b',"links":' + json.dumps(self.LINKS, separators=(",", ":")).encode(), b"")
        self.assertNotEqual(older, data)
        self.assertEqual(parse_cassette(older, "c.json").snapshot.links, {})
        with self.assertRaisesRegex(CassetteError, "snapshot.links"):
            parse_cassette(data.replace(b'"lib":"src"', b'"lib":7'), "c.json")


if __name__ == "__main__":
    unittest.main()
