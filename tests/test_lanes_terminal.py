"""Answers to terminal commands, and to searches over masked lines, against the real tools."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import unittest
from typing import Any

from tests.lanes.case import LaneCase, lane_suite
from tests.lanes.venvs import lane_python
from tests.support import REPO

#: Commands, and half as many searches, for each of ripgrep and grep.  The figures in
#: docs/TESTED.md are of more, which take minutes.
COMMANDS = int(os.environ.get("SESSION_CASSETTES_COMMANDS", "60"))


class TerminalAnswers(LaneCase):
    def told(self, *options: str) -> dict[str, Any]:
        script = REPO / "tests" / "lanes" / "terminal.py"
        done = subprocess.run(
            [str(lane_python(self.version)), str(script), str(COMMANDS), str(COMMANDS // 2), "7", *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return json.loads(done.stdout)

    def demand(self, told: dict[str, Any]) -> None:
        """None is false, all that is refused stays so, and a good part is answered."""
        for tool in ("terminal", "search_files", "read_file"):
            with self.subTest(tool=tool):
                self.assertEqual(told[tool].get("different", 0), 0, told["examples"][tool][:3])
        self.assertEqual(told["moves"], [])
        self.assertEqual(told["answered"], [])
        self.assertGreater(told["terminal"]["equal"], COMMANDS // 3)
        self.assertGreater(told["search_files"]["equal"], COMMANDS // 20)

    def test_with_ripgrep_they_are_what_the_live_tools_say(self) -> None:
        ripgrep = shutil.which("rg")
        if not ripgrep:
            self.skipTest("RIPGREP IS NOT INSTALLED: commands were not compared with it")
        told = subprocess.run([ripgrep, "--version"], capture_output=True, text=True, check=True).stdout
        major = re.match(r"ripgrep (\d+)", told)
        self.demand(self.told(*(["--rg-major", major.group(1)] if major else [])))

    def test_without_ripgrep_they_are_what_the_live_tools_say(self) -> None:
        self.demand(self.told("--no-rg"))


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return lane_suite(loader, TerminalAnswers)


if __name__ == "__main__":
    unittest.main()
