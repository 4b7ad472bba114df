"""The whole folder, its names, and what a turn itself changed, in a real Hermes, one lane per version."""

from __future__ import annotations

import json
import os
import subprocess
import unittest
from pathlib import Path
from typing import Any

from tests.lanes.case import LaneCase, lane_suite
from tests.test_lanes import Step, ToolCall, TurnsCase, hows

from session_cassettes.cassette_store import Cassette, Store
from session_cassettes.snapshot import SkipReason, Workspace
from session_cassettes.suite.agreement import Shown

TOKEN = "ghp_" + "a1B2" * 9
TREE: dict[str, str | bytes] = {
    "app.py": "PORT = 8080\n",
    "src/deep/util.py": f'TOKEN = "{TOKEN}"\n',
    "notes.log": "ignored by git\n",
    ".gitignore": "*.log\n",
    ".env": "KEY=hidden\n",
    "id_rsa": "secret\n",
    "logo.png": b"\x89PNG\0\0",
    "credentials/aws": "secret\n",
}
READ_APP = Step([ToolCall("read_file", {"path": "app.py"})])


class TheWholeFolder(LaneCase):
    """The command, as a person types it."""

    LONG = True

    def record(self, folder: Path, name: str, *flags: str) -> Cassette:
        self.script(READ_APP, Step(text="port 8080"))
        done = self.hermes("cassette", "record", name, "--query", "which port?", *flags, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return Store(self.home.data).read(name)[0]

    def folder(self, git: bool) -> Path:
        folder, outside = self.workspace(TREE), self.workspace({"far.txt": "far\n"})
        os.symlink(outside / "far.txt", folder / "out")
        os.symlink("app.py", folder / "in")
        if git:
            subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        return folder

    def test_all_texts_that_git_would_list_are_kept_and_all_names(self) -> None:
        for git in (True, False):
            with self.subTest(git=git):
                folder = self.folder(git)
                kept = self.record(folder, f"whole-{git}", "--whole").snapshot
                logs = set() if git else {"notes.log"}
                self.assertEqual(set(kept.files), {"app.py", "src/deep/util.py"} | logs)
                self.assertNotIn(TOKEN, str(kept))
                names = kept.names
                assert names is not None
                tree = {path for path in TREE if path != "credentials/aws"} | {"src", "src/deep", "credentials"}
                self.assertEqual(set(names), tree | {"out", "in"} | ({".git"} if git else set()))
                self.assertEqual((names["out"].kind, names["in"].kind), ("link", "link"))
                self.assertEqual(names["notes.log"].ignored, git)
                self.assertEqual((names["credentials"].inside, names["app.py"].size), (1, 12))
                self.assertEqual(kept.skipped.get(SkipReason.IGNORED), 1 if git else None)

    def test_list_and_show_say_which_kind_it_is(self) -> None:
        folder = self.folder(True)
        kinds = (
            ("told-names", (), False, True, "names"),
            ("told-both", ("--whole",), True, True, "whole"),
            ("told-files", ("--no-names",), False, False, "files"),
            ("told-whole", ("--whole", "--no-names"), True, False, "whole"),
        )
        for name, flags, whole, names, _ in kinds:
            with self.subTest(name):
                kept = self.record(folder, name, *flags).snapshot
                self.assertEqual((kept.whole, kept.names is not None), (whole, names))
                self.assertEqual("src/deep/util.py" in kept.files, whole)
        listed = self.hermes("cassette", "list", cwd=folder).stdout
        for name, _, _, _, kind in kinds:
            self.assertRegex(listed, rf"(?m)^{name} .* {kind} ")
        told = json.loads(self.hermes("cassette", "show", "told-both", "--json", cwd=folder).stdout)
        self.assertEqual((told["whole"], told["names"] is not None), (True, True))


class FromASession(TurnsCase):
    def test_the_flags_go_with_a_slash_command_to_its_session(self) -> None:
        folder = self.workspace(TREE)
        session = self.host.open(folder)
        self.assertIn("armed", self.host.slash("/cassette record slashed --whole --no-names", session))
        self.script(READ_APP, Step(text="port 8080"))
        self.host.turn("which port?", folder, session)
        kept = self.store.read("slashed")[0].snapshot
        self.assertEqual((kept.whole, kept.names), (True, None))
        self.assertIn("notes.log", kept.files)

    def test_a_folder_of_many_files_has_no_names_and_its_turn_ends_all_the_same(self) -> None:
        folder = self.workspace({"app.py": "PORT = 8080\n"})
        for number in range(25_000):
            (folder / f"f{number}").touch()
        self.script(READ_APP, Step(text="port 8080"))
        _, kept = self.record("crowded", "which port?", folder)
        self.assertIsNone(kept.snapshot.names)
        self.assertEqual(set(kept.snapshot.files), {"app.py"})
        self.assertTrue([one for one in kept.warnings if one.startswith("too many names")], kept.warnings)


class WhatGitTracks(TurnsCase):
    ASKED = ("git ls-files", "cd src && git ls-files", "git --no-pager ls-files")

    def test_it_is_listed_as_the_live_command_lists_it(self) -> None:
        folder = self.workspace({name: text for name, text in TREE.items() if name != "credentials/aws"})
        for words in (("init", "-q"), ("add", ".gitignore", ".env", "app.py", "src", "logo.png")):
            subprocess.run(["git", *words], cwd=folder, check=True)
        self.script(READ_APP, Step(text="port 8080"))
        _, kept = self.record("tracked", "which port?", folder, whole=True)
        self.assertEqual(kept.snapshot.untracked, ("id_rsa", "notes.log"))
        for command in self.ASKED:
            with self.subTest(command):
                self.script(Step([ToolCall("terminal", {"command": command})]), Step(text="port 8080"))
                live = self.host.turn("look again", folder)
                turn, ledger = self.replay("tracked", folder)
                self.assertEqual((hows(ledger), turn.results, turn.ran), (["synthesized"], live.results, []))
                self.assertIn("util.py", turn.results[0])


class WhatTheTurnChanged(TurnsCase):
    def test_a_version_that_was_read_written_and_read_again_is_told_as_neither(self) -> None:
        folder = self.workspace({"VERSION": "1.4.2\n", "app.py": "PORT = 8080\n"})
        self.script(
            Step([ToolCall("read_file", {"path": "VERSION"})]),
            Step([ToolCall("write_file", {"path": "VERSION", "content": "1.5.0\n"})]),
            Step([ToolCall("read_file", {"path": "VERSION"})]),
            READ_APP,
            Step(text="1.5.0"),
        )
        _, kept = self.record("bumped", "bump it", folder)
        self.assertEqual((folder / "VERSION").read_text(), "1.5.0\n")
        self.assertEqual(set(kept.snapshot.files), {"app.py"})
        self.assertEqual(dict(kept.snapshot.skipped_paths), {"VERSION": SkipReason.CHANGED_IN_TURN})
        told = "\n".join(kept.warnings)
        self.assertIn("not in the snapshot, since it changed during the turn: VERSION", told)
        self.assertIn("write_file: may have changed something, so a run that does the same can only be DIVERGED", told)
        self.script(
            Step([ToolCall("read_file", {"path": "VERSION", "limit": 3})]),
            Step([ToolCall("read_file", {"path": "app.py", "limit": 3})]),
            Step(text="1.4.2"),
        )
        turn, ledger = self.replay("bumped", folder)
        self.assertEqual((hows(ledger), turn.ran), (["miss", "synthesized"], []))


#: Files that each tool prints in a way of its own.
ODD: dict[str, str] = {
    "plain.py": "import os\n\n\ndef handler():\n    return os.name\n",
    "ended.txt": "one\ntwo\nthree",
    "crlf.txt": "one\r\ntwo  \r\n\r\nfour\r\n",
    "bom.txt": "\ufeffone\ntwo\n",
    "tabs.txt": "\tone\t\n  two \n\t\tthree\n",
    "long.txt": "short one\n" + "one " * 900 + "\nlast one\n",
    "blank.txt": "\n\none\n\n\n",
    "wide.txt": "one é 中文 \U0001f600\ntwo \xa0 \u2028 three\n",
    "bars.txt": "1|one\n  2: two\n./plain.py\n",
    "token.py": f"# one\nTOKEN = '{TOKEN}'\npassword = 'hunter2hunter2'\nAuthorization: Bearer {TOKEN}\nlast = 1\n",
    "url.py": "one = 'postgres://ada:hunter2hunter2@db/shop'\nx = 1\n",
    "key.txt": "one\n-----BEGIN RSA PRIVATE KEY-----\nMIIEabcd\nwxyz\n-----END RSA PRIVATE KEY-----\ntwo\nthree\n",
    "dots.py": "def one(*args): ...\n\n\nx = '***'\ny = 1, ...\n",
    "red.txt": "\x1b[31mone\x1b[0m\n\x1b]0;title\x07two\n",
    "form.txt": "one\x0ctwo\rthree\n",
    "empty.txt": "",
}


class AsItIsPrinted(TurnsCase):
    """No file is dropped because of how a tool of this version prints it, and none that changed is kept."""

    LONG = True

    config = "skills:\n  creation_nudge_interval: 0\nmemory:\n  nudge_interval: 0\n"

    def calls(self) -> list[Any]:
        calls = []
        for name in ODD:
            calls.append(ToolCall("read_file", {"path": name}))
            calls.append(ToolCall("read_file", {"path": f"./{name}", "offset": 2, "limit": 1}))
            calls.append(ToolCall("terminal", {"command": f"cat {name}"}))
        for args in (
            {"pattern": "one"},
            {"pattern": "two", "context": 1},
            {"pattern": "."},
            {"pattern": "one", "path": "crlf.txt"},
            {"pattern": "e", "file_glob": "*.py", "limit": 200},
            {"pattern": "e", "file_glob": "*.txt", "limit": 200},
        ):
            calls.append(ToolCall("search_files", args))
        return calls

    def test_what_the_real_tools_print_of_a_file_agrees_with_it(self) -> None:
        folder = self.workspace(dict(ODD))
        calls = self.calls()
        steps = [Step(calls[at : at + 6]) for at in range(0, len(calls), 6)]
        self.script(*steps, Step(text="looked at all"))
        _, kept = self.record("odd", "look at all", folder)
        self.assertEqual(set(kept.snapshot.files), set(ODD), (kept.snapshot.skipped_paths, kept.warnings))
        shown = Shown(kept.calls, Workspace.here(str(folder)))
        self.assertFalse(shown.wrote)
        for name, text in ODD.items():
            lines = text.split("\n")
            for number, line in enumerate(lines):
                if len(line.strip()) > 3 and "hunter2" not in line and TOKEN not in line:
                    changed = "\n".join([*lines[:number], "#" + line[1:].replace("o", "0"), *lines[number + 1 :]])
                    with self.subTest(name, line=number + 1):
                        if name != "key.txt" or number not in range(1, 5):
                            self.assertIsNotNone(shown.disagrees(name, changed))


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None) -> unittest.TestSuite:
    return lane_suite(loader, TheWholeFolder, FromASession, WhatGitTracks, WhatTheTurnChanged, AsItIsPrinted)


if __name__ == "__main__":
    unittest.main()
