"""What a real Hermes tells of what went into a run and what it used; suites compared, and a history of them."""

from __future__ import annotations

import json
import re
import unittest
from pathlib import Path
from typing import Any, Mapping, Sequence

from tests.lanes.case import LaneCase, lane_suite, model
from tests.lanes.trust_case import Step, calls, keep_cassette
from tests.lanes.venvs import NEWEST
from tests.support import write_tree

READ, GOOD, BAD = calls(("read_file", {"path": "a.txt"})), Step(text="the port is 8080"), Step(text="I do not know")


class InputsCase(LaneCase):
    LONG = True

    def setUp(self) -> None:
        super().setUp()
        self.work = self.workspace({"a.txt": "AUTH_PORT = 8080\n", "AGENTS.md": "Be careful.\n"})
        self.store = keep_cassette(self.home, "port", f"Which port, {self._testMethodName}?", self.work, self.version)
        write_tree(
            self.home.path / "skills", {"demo/layout/SKILL.md": "---\nname: layout\ndescription: x\n---\nOne.\n"}
        )
        self.model.brain = self.answer

    def answer(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[str]) -> Any:
        """Forget the port if the instructions say so: they did arrive, then."""
        if not any(model.batches(messages)):
            return READ
        told = " ".join(str(message.get("content")) for message in messages if message.get("role") == "system")
        return BAD if "Guess." in told else GOOD

    def command(self, *words: str, status: int = 0) -> tuple[str, str]:
        done = self.hermes("cassette", *words, cwd=self.work)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def run_once(self, *words: str, status: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.command("run", "port", "--json", *words, status=status)[0])
        return found

    def suite(self, *words: str, status: int = 0) -> str:
        told = self.command("run", "port", "--repeat", "4", "--jobs", "2", *words, status=status)[1]
        return re.findall(r"suite run (\S+):", told)[0]


class WhatWentIn(InputsCase):
    def test_each_run_tells_what_went_in_and_what_it_used(self) -> None:
        first = self.run_once("--skill", "layout")
        again = self.run_once("--skill", "layout")
        self.assertEqual(first["inputs"], again["inputs"], "nothing changed but session and time")
        self.assertRegex(first["inputs"]["system_prompt"], r"\A[0-9a-f]{64}\Z")
        self.assertEqual(set(first["inputs"]["skills"]), {"layout"})
        self.assertLessEqual({"AGENTS.md", "SOUL.md"}, set(first["inputs"]["files"]))
        self.assertEqual((first["asked"], first["usage"]["calls"]), ("", 2))
        self.assertGreater(first["usage"]["tokens"], 0)
        self.assertNotIn("cost", first["usage"])  # a scripted model has no price
        write_tree(self.work, {"AGENTS.md": "Guess.\n"})
        write_tree(
            self.home.path / "skills", {"demo/layout/SKILL.md": "---\nname: layout\ndescription: x\n---\nTwo.\n"}
        )
        changed = self.run_once("--skill", "layout", "--model", "explorer", status=1)
        self.assertEqual(changed["asked"], "explorer")
        for kind, name in (("files", "AGENTS.md"), ("skills", "layout")):
            self.assertNotEqual(changed["inputs"][kind][name], first["inputs"][kind][name])
        self.assertEqual(changed["inputs"]["files"]["SOUL.md"], first["inputs"]["files"]["SOUL.md"])
        self.assertNotEqual(changed["inputs"]["system_prompt"], first["inputs"]["system_prompt"])
        out, _ = self.command("compare", first["run"], changed["run"])
        for text in (
            "changed from A to B: model (careful to explorer)",
            "skill layout",
            "AGENTS.md",
            "pin [ok] in A, [--] in B",
        ):
            self.assertIn(text, " ".join(out.split()))

    def test_nothing_of_the_texts_is_kept(self) -> None:
        write_tree(self.work, {"AGENTS.md": "PLANTED-WORDS\n"})
        write_tree(self.home.path / "skills", {"demo/layout/SKILL.md": "---\nname: layout\n---\nPLANTED-WORDS\n"})
        self.run_once("--skill", "layout")
        for path in Path(self.store.root).rglob("*.json"):
            self.assertNotIn("PLANTED-WORDS", path.read_text("utf-8"))


class WhatChanged(InputsCase):
    def test_a_change_that_made_it_worse_is_found_by_compare_and_by_bisect(self) -> None:
        one = self.suite()
        write_tree(self.work, {"AGENTS.md": "Guess.\n"})
        other = self.suite(status=1)
        told = json.loads(self.command("compare", one, other, "--json", status=1)[0])
        [cell] = told["comparisons"]
        self.assertEqual((cell["one"]["passes"], cell["other"]["passes"], cell["differs"]), (4, 0, True))
        self.assertEqual({change["mark"] for change in cell["changed"]}, {"system prompt", "AGENTS.md"})
        self.assertEqual(json.loads(self.command("compare", one, "--json")[0])["comparisons"][0]["halves"], True)
        told = json.loads(self.command("history", "port", "--bisect", "--json")[0])
        [fall] = told["falls"]
        self.assertEqual((fall["before"]["group"], fall["after"]["group"]), (one, other))
        self.assertEqual({change["mark"] for change in fall["changed"]}, {"system prompt", "AGENTS.md"})
        out, _ = self.command("history", "port")
        self.assertIn("  * system prompt, AGENTS.md", out)


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return unittest.TestSuite((lane_suite(loader, WhatWentIn), lane_suite(loader, WhatChanged, only=NEWEST)))


if __name__ == "__main__":
    unittest.main()
