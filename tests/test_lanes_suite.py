"""A suite of real Hermes sessions, one lane per version: overlap, an outcome by cell, and what a kill leaves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Mapping, Sequence

from tests.lanes.case import LaneCase, lane_suite, model
from tests.lanes.host import PATIENCE, kill_with_children
from tests.lanes.trust_case import Pause, Scripts, Step, calls, finish, interrupt, keep_cassette
from tests.lanes.venvs import NEWEST, lane_hermes, scratch

READ = calls(("read_file", {"path": "a.txt"}))
GOOD, BAD = Step(text="the port is 8080"), Step(text="I do not know")


class SuiteCase(LaneCase):
    LONG = True

    def setUp(self) -> None:
        super().setUp()
        self.work = self.workspace({"a.txt": "AUTH_PORT = 8080\n"})
        self.asked = f"{self._testMethodName} in {self.version} {os.getpid()}"  # nobody else asks it
        for name in ("first", "second"):
            self.store = keep_cassette(self.home, name, f"{name} of {self.asked}?", self.work, self.version)
        self.scripts = Scripts()
        self.model.brain = self.scripts
        self.scripts.steps = {"first": [READ, GOOD], "second": [READ, GOOD]}
        for path in (self.store.root / "suites").iterdir():
            path.unlink()

    def suite(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.hermes("cassette", "run", *words, cwd=self.work)

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(lane_hermes(self.version)), "cassette", "run", *words],
            cwd=self.work,
            env=scratch.clean_environment(self.home.path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self.addCleanup(kill_with_children, process)
        return process

    def no_session_is_left(self) -> None:
        """None of this test's sessions runs on, and none waits; what a session forked may still be dying."""
        until = time.monotonic() + 10
        while (left := self.sessions()) and time.monotonic() < until:
            time.sleep(0.1)
        self.assertEqual((left, self.store.arm_path.exists()), ([], False))

    def sessions(self) -> list[bytes]:
        """The command lines of this test's sessions."""
        left = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = entry.read_bytes()
                if b"--query=" in words and f"of {self.asked}?".encode() in words:
                    left.append(words)
        return left

    def runs(self) -> list[Path]:
        return [path for name in ("first", "second") for path in self.store.runs(name).glob("*.json")]


class SuitesInHermes(SuiteCase):
    def test_cells_are_graded_alone_and_sessions_overlap(self) -> None:
        together = threading.Barrier(2)

        def answer(messages: Sequence[Mapping[str, Any]], tools: Sequence[str]) -> Any:
            if not any(model.batches(messages)):
                with contextlib.suppress(threading.BrokenBarrierError):
                    together.wait(PATIENCE if not self.met else 0)  # nobody goes on alone, but at the end
                self.met = True
            return self.scripts(messages, tools)

        self.met = False
        self.model.brain = answer
        self.model.brains["bad"] = lambda *_: BAD
        page = self.work / "report.xml"
        words = ("first", "second", "--model=good", "--model=bad", "--repeat=2", "--jobs=2", "--json")
        done = self.suite(*words, f"--junit={page}")
        told = json.loads(done.stdout)
        self.assertEqual((done.returncode, told["exit_code"], told["left"]), (1, 1, 0), done.stderr)
        self.assertTrue(self.met)
        found = {(one["cassette"], one["model"]): (one["passes"], one["runs"], one["result"]) for one in told["cells"]}
        good, bad = (2, 2, "PASS"), (0, 2, "FAIL")
        wanted = {
            (name, one): {"good": good, "bad": bad}[one] for name in ("first", "second") for one in ("good", "bad")
        }
        self.assertEqual(found, wanted)
        for cell in told["cells"]:
            for file in cell["files"]:
                run = json.loads(Path(file).read_bytes())
                self.assertEqual((run["suite"], run["cell"]["model"]), (told["suite"], cell["model"]))
        self.assertEqual(ElementTree.fromstring(page.read_text("utf-8")).get("failures"), "2")
        again = self.suite("--resume", told["suite"])
        self.assertEqual(again.returncode, 1)
        self.assertTrue(again.stdout.startswith("✗ never passed: first with bad (0 of 2)\n"), again.stdout)
        self.no_session_is_left()


class SuitesThatEnd(SuiteCase):
    @unittest.skipUnless(sys.platform == "linux", "looks into /proc")
    def test_ctrl_c_ends_every_session_and_what_was_done_stays(self) -> None:
        paused = [Pause(READ), Pause(READ)]
        turns = iter([lambda *_: READ, *paused])
        self.scripts.steps["first"] = [lambda *_: next(turns, lambda *_: READ)(), GOOD]
        process = self.start("first", "--repeat=4", "--jobs=2")
        for one in paused:
            one.wait()
        interrupt(process)
        status, text = finish(process)
        for one in paused:
            one.go.set()
        self.assertEqual(status, 130, text)
        self.assertRegex(text, r"interrupted: 1 of 4 runs are kept; hermes cassette run --resume \S+ does the rest\n\Z")
        self.no_session_is_left()
        done = self.suite("--resume", "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["cells"][0]["runs"]), (0, 4), done.stderr)
        self.assertIn("3 of 4 runs left", done.stderr)

    def test_what_was_done_before_a_kill_is_not_made_again(self) -> None:
        paused = Pause(READ)
        turns = iter([lambda *_: READ, paused])
        self.scripts.steps["second"] = [lambda *_: next(turns, lambda *_: READ)(), GOOD]
        process = self.start("first", "second", "--repeat=2")
        paused.wait()
        second = self.suite("--resume")
        self.assertEqual((second.returncode, second.stdout), (2, ""))
        self.assertIn("another command goes on with the suite run", second.stderr)
        os.kill(process.pid, signal.SIGKILL)
        finish(process)
        paused.go.set()  # its session goes on to its end by itself
        before = {path.name: path.read_bytes() for path in self.runs()}
        done = self.suite("--resume", "--json")
        told = json.loads(done.stdout)
        self.assertEqual((done.returncode, [cell["runs"] for cell in told["cells"]]), (0, [2, 2]), done.stderr)
        self.assertIn("1 of 4 runs left", done.stderr)
        after = {path.name: path.read_bytes() for path in self.runs()}
        self.assertEqual({name: after[name] for name in before}, before)


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return unittest.TestSuite((lane_suite(loader, SuitesInHermes), lane_suite(loader, SuitesThatEnd, only=NEWEST)))


if __name__ == "__main__":
    unittest.main()
