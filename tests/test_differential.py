"""Synthesized answers against the real tools: the same calls, on the files of real packages."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import unittest
from collections import Counter
from typing import Any

from tests.lanes.case import LaneCase, lane_suite
from tests.lanes.venvs import lane_folder, lane_python
from tests.support import REPO, temp_folder

#: Calls on each tree.  The figures in docs/TESTED.md are of 300 on all three trees,
#: which take minutes; the suite makes a few on one.
CALLS = int(os.environ.get("SESSION_CASSETTES_CALLS", "50"))
TREES = ("rich", "httpx", "openai") if "SESSION_CASSETTES_CALLS" in os.environ else ("rich",)


class SynthesizedAnswers(LaneCase):
    def compare(self, *options: str) -> Counter[str]:
        """Compare on every tree; return how many answers fell into which class, by tool."""
        site = next(path for path in lane_folder(self.version).rglob("site-packages") if path.is_dir())
        found: Counter[str] = Counter()
        for seed, tree in enumerate(TREES):
            folder = temp_folder(self) / tree
            shutil.copytree(site / tree, folder, ignore=shutil.ignore_patterns("__pycache__"))
            script = REPO / "tests" / "lanes" / "differential.py"
            done = subprocess.run(
                [str(lane_python(self.version)), str(script), str(folder), str(CALLS), str(seed), *options],
                capture_output=True,
                text=True,
                check=False,
                timeout=600,
            )
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            found += self.counted(json.loads(done.stdout))
        return found

    def counted(self, told: dict[str, Any]) -> Counter[str]:
        counts = ((tool, kind, n) for tool in ("read_file", "search_files") for kind, n in told[tool].items())
        return Counter({f"{tool} {kind}": n for tool, kind, n in counts if kind != "share"})

    def demand(self, found: Counter[str]) -> None:
        """Every read is equal; of the searches all but one in 100 are, but for order and where a limit cut them.

        Of fewer than 200 one may be off, and then only by a miss.
        """
        reads = {kind: n for kind, n in found.items() if kind.startswith("read_file")}
        self.assertEqual(set(reads), {"read_file equal"}, reads)
        searches = {kind.partition(" ")[2]: n for kind, n in found.items() if kind.startswith("search_files")}
        total = sum(searches.values())
        self.assertGreater(total, CALLS // 3)
        off = total - sum(searches.get(kind, 0) for kind in ("equal", "order", "capped"))
        self.assertLessEqual(off, max(1, total // 100), searches)
        if total < 200:
            self.assertEqual(off, searches.get("miss", 0), searches)

    def test_with_ripgrep_they_are_what_the_live_tools_say(self) -> None:
        ripgrep = shutil.which("rg")
        if not ripgrep:
            self.skipTest("RIPGREP IS NOT INSTALLED: searches were not compared with it")
        told = subprocess.run([ripgrep, "--version"], capture_output=True, text=True, check=True).stdout
        major = re.match(r"ripgrep (\d+)", told)
        self.demand(self.compare(*(["--rg-major", major.group(1)] if major else [])))

    def test_without_ripgrep_they_are_what_the_live_tools_say(self) -> None:
        self.demand(self.compare("--no-rg"))


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return lane_suite(loader, SynthesizedAnswers)


if __name__ == "__main__":
    unittest.main()
