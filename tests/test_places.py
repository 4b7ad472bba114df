"""Where a session works, and by which names its folder and files are known."""

from __future__ import annotations

import json
import os
import unittest
from pathlib import Path
from unittest import mock

from tests.support import temp_folder, write_tree
from tests.test_hooks import QUESTION, HookCase

from session_cassettes import hooks
from session_cassettes.cassette_store import Cassette, Recorder
from session_cassettes.snapshot import Workspace


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
        with mock.patch.object(hooks, "_cwd_in_database", return_value=str(other)):
            self.assertIn(f"the session worked in {other}, not in {self.workspace}: ", self.record_in(self.workspace))

    def test_a_folder_that_cannot_be_known_is_no_other_folder(self) -> None:
        with mock.patch.dict(os.environ, {"TERMINAL_ENV": "docker"}):
            self.assertIn("'shop' saved", self.record_in(temp_folder(self)))

    @unittest.skipUnless(hasattr(os, "symlink"), "needs links")
    def test_the_spelling_that_the_command_was_given_is_known_beside_the_real_one(self) -> None:
        link = temp_folder(self) / "link"
        link.symlink_to(self.workspace)
        self.assertIn("'shop' saved", self.record_in(link))
        kept, _ = self.store.read("shop")
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


if __name__ == "__main__":
    unittest.main()
