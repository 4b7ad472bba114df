"""The pages for build servers: each script, hook and workflow step of docs/CI.md is run as it stands there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any, Mapping, Sequence

from tests.lanes.case import LaneCase, lane_suite, model
from tests.lanes.trust_case import Step, calls, keep_cassette
from tests.lanes.venvs import NEWEST, lane_hermes, lane_python, scratch
from tests.support import REPO, temp_folder, write_tree

PAGE = (REPO / "docs" / "CI.md").read_text("utf-8")
READ, GOOD, BAD = calls(("read_file", {"path": "a.txt"})), Step(text="the port is 8080"), Step(text="I do not know")
#: Stands in for a program that would go to the network, and notes what it was asked.
STUB = '#!/bin/sh\necho "$(basename "$0") $*" >> "$ASKED"\n'


def fence(start: str) -> str:
    """The block of the page that begins so."""
    [found] = [block for block in re.findall(r"^```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if start in block]
    return found


SCRIPT, HOOK, WORKFLOW = fence("# ci/replay.sh"), fence("# .git/hooks/pre-commit"), fence("name: cassettes")


@unittest.skipUnless(os.name == "posix" and shutil.which("git"), "needs a POSIX shell and git")
class ServerCase(LaneCase):
    """A repository with cassettes and `AGENTS.md`, whose model forgets the port when it is told to guess."""

    def setUp(self) -> None:
        super().setUp()
        self.work = self.workspace({"a.txt": "AUTH_PORT = 8080\n", "AGENTS.md": "Be careful.\n"})
        store = keep_cassette(self.home, "port", f"Which port, {self._testMethodName}?", self.work, self.version)
        self.data = store.root
        write_tree(self.work, {"cassettes/port.json": store.path("port").read_bytes(), "ci/replay.sh": SCRIPT})
        store.path("port").unlink()
        self.model.brain = self.answer

    def answer(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[str]) -> Any:
        if not any(model.batches(messages)):
            return READ
        told = " ".join(str(message.get("content")) for message in messages if message.get("role") == "system")
        return BAD if "Guess." in told else GOOD

    def environ(self, **more: str) -> dict[str, str]:
        path = os.pathsep.join([str(lane_hermes(self.version).parent), os.environ["PATH"]])
        return {**scratch.clean_environment(self.home.path), "PATH": path, **more}

    def shell(self, words: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.work,
            env=self.environ(**more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    def git(self, *words: str) -> subprocess.CompletedProcess[str]:
        names = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
        return self.shell(["git", *names, *words])


class OnAServer(ServerCase):
    """The script, and the hook."""

    def test_the_script_tells_worse_from_broken_and_leaves_its_reports(self) -> None:
        done = self.shell(["sh", "ci/replay.sh"], REPEAT="2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("cassettes: every cell reached what was required", done.stdout)
        write_tree(self.work, {"AGENTS.md": "Guess.\n"})
        done = self.shell(["sh", "ci/replay.sh"], REPEAT="2")
        self.assertEqual((done.returncode, "worse: facts are missing" in done.stderr), (1, True), done.stdout)
        reports = self.work / "cassette-reports"
        for name, told in (("junit.xml", "<failure"), ("comment.md", "FAIL"), ("report.html", "I do not know")):
            self.assertIn(told, (reports / name).read_text("utf-8"))
        write_tree(self.work, {"cassettes/port.json": "{}"})
        done = self.shell(["sh", "ci/replay.sh"])
        self.assertEqual((done.returncode, "nothing was graded" in done.stderr), (2, True), done.stdout)

    def test_the_hook_refuses_a_commit_that_makes_it_worse_and_minds_no_other(self) -> None:
        self.git("init", "-q")
        write_tree(self.work, {".git/hooks/pre-commit": HOOK})
        (self.work / ".git" / "hooks" / "pre-commit").chmod(0o755)
        shutil.copy2(self.work / "cassettes" / "port.json", self.data / "cassettes" / "port.json")
        self.git("add", "a.txt")
        self.assertEqual(self.git("commit", "-qm", "Nothing that a model reads").stdout, "")
        self.git("add", ".")
        done = self.git("commit", "-qm", "Careful")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("PASS: the cell reached the required 100 %", done.stdout + done.stderr)
        write_tree(self.work, {"AGENTS.md": "Guess.\n"})
        self.git("add", ".")
        done = self.git("commit", "-qm", "Guess")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("git commit --no-verify", done.stderr)
        self.assertEqual(self.git("rev-list", "--count", "HEAD").stdout.strip(), "2")
        write_tree(self.data / "cassettes", {"port.json": "{}"})
        done = self.git("commit", "-qm", "Guess")
        self.assertEqual((done.returncode, "could not be judged (status 2)" in done.stderr), (0, True), done.stderr)


class InAWorkflow(ServerCase):
    """Every `run:` step, as a runner would execute it, in a home that the workflow makes itself."""

    def parsed(self) -> Any:
        words = [
            str(lane_python(self.version)),
            "-c",
            "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))",
        ]
        return json.loads(subprocess.run(words, input=WORKFLOW, capture_output=True, text=True, check=True).stdout)

    def test_every_step_of_the_workflow_runs_in_its_order(self) -> None:
        told = self.parsed()
        self.assertEqual(told["true"]["pull_request"]["paths"][0], "AGENTS.md")  # YAML 1.1 reads `on` as true
        values = {
            "vars.CASSETTES_PLUGIN": "https://example.invalid/session-cassettes.git",
            "vars.MODEL": "careful",
            "vars.MODEL_URL": self.model.base_url,
            "secrets.MODEL_KEY": "none",
            "github.token": "none",
            "github.event.pull_request.number": "7",
        }
        runner = Runner(self, values)
        for step in told["jobs"]["replay"]["steps"]:
            if "run" in step:
                with self.subTest(step["name"]):
                    runner.step(step)
        asked = runner.asked.read_text("utf-8").splitlines()
        self.assertEqual(asked[0], "pip install hermes-agent")
        self.assertIn("gh pr comment 7 --body-file cassette-reports/comment.md", asked[-1])
        self.assertIn("port", runner.summary.read_text("utf-8"))


class Runner:
    """What GitHub gives a step: its variables, and those that earlier steps set."""

    def __init__(self, case: ServerCase, values: Mapping[str, str]) -> None:
        self.case, self.values = case, values
        self.temp = temp_folder(case)
        self.asked, self.summary, self.set = (self.temp / name for name in ("asked", "summary", "set"))
        for name in ("pip", "gh"):
            write_tree(self.temp, {f"bin/{name}": STUB})
            (self.temp / "bin" / name).chmod(0o755)
        origin = self.temp / "origin"
        origin.mkdir()
        scratch.install_plugin(origin)
        self.origin = origin / "plugins" / scratch.PLUGIN
        for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "The plugin")):
            subprocess.run(
                [
                    "git",
                    "-c",
                    "user.name=t",
                    "-c",
                    "user.email=t@example.invalid",
                    "-c",
                    "commit.gpgsign=false",
                    *words,
                ],
                cwd=self.origin,
                check=True,
                capture_output=True,
            )

    def step(self, step: Mapping[str, Any]) -> None:
        given = {name: self.filled(str(value)) for name, value in step.get("env", {}).items()}
        earlier = dict(line.split("=", 1) for line in self.lines(self.set))
        here = {
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ENV": str(self.set),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "ASKED": str(self.asked),
            "REPEAT": "2",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{self.origin.as_uri()}.insteadOf",
            "GIT_CONFIG_VALUE_0": self.values["vars.CASSETTES_PLUGIN"],
            "PATH": os.pathsep.join([str(self.temp / "bin"), self.case.environ()["PATH"]]),
        }
        self.case.assertNotIn("${{", step["run"], "a step's text is no place for an expression")
        done = self.case.shell(["bash", "-e", "-o", "pipefail", "-c", step["run"]], **{**here, **earlier, **given})
        self.case.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: self.values[found[1]], text)

    @staticmethod
    def lines(path: Path) -> list[str]:
        return path.read_text("utf-8").splitlines() if path.exists() else []


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    workflow = lane_suite(loader, InAWorkflow, only="0.19.0")  # enabling a plugin takes the network in 0.22
    return unittest.TestSuite((lane_suite(loader, OnAServer, only=NEWEST), workflow))


if __name__ == "__main__":
    unittest.main()
