"""What a wandering model is told from a recording that knows its folder, against the real tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import unittest
from typing import Any

from tests.lanes.case import LaneCase, lane_suite
from tests.lanes.venvs import lane_python
from tests.lanes.wander import TREES
from tests.support import REPO

#: Calls for each tree with each of ripgrep and grep.  The figures in docs/TESTED.md are of more.
CALLS = int(os.environ.get("SESSION_CASSETTES_CALLS", "30"))


class Wandering(LaneCase):
    def told(self, tree: str, *options: str) -> dict[str, Any]:
        script = REPO / "tests" / "lanes" / "wander.py"
        done = subprocess.run(
            [str(lane_python(self.version)), str(script), tree, str(CALLS), "11", *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return json.loads(done.stdout)[tree]

    def demand(self, shares: tuple[float, ...], *options: str) -> None:
        """None is false, all that is refused stays so, and such a share of each tree's calls is answered."""
        for tree, share in zip(TREES, shares, strict=True):
            with self.subTest(tree=tree):
                told = self.told(tree, *options)
                self.assertEqual(told.get("different", 0), 0, told["examples"].get("different", [])[:3])
                self.assertEqual(told["answered"], [])
                self.assertGreaterEqual(told["good"], share * CALLS, told["examples"].get("miss"))

    def test_with_ripgrep_it_is_what_the_live_tools_say(self) -> None:
        if not shutil.which("rg"):
            self.skipTest("RIPGREP IS NOT INSTALLED: nothing was compared with it")
        # In the last tree each search of all files reads a secret's.
        self.demand((0.9, 0.9, 0.6), "--rg-major", ripgrep_major())

    def test_without_ripgrep_it_is_what_the_live_tools_say(self) -> None:
        # grep reads hidden files, too, of which no recording has the text.
        self.demand((0.8, 0.6, 0.6), "--no-rg")


def ripgrep_major() -> str:
    told = subprocess.run(["rg", "--version"], capture_output=True, text=True, check=True).stdout
    return told.split()[1].partition(".")[0]


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return lane_suite(loader, Wandering)


if __name__ == "__main__":
    unittest.main()
