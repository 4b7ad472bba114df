"""`hermes cassette fill` in a real Hermes, one lane per version: what a run missed ends as hits, and nothing else changes."""

from __future__ import annotations

import json
import subprocess
import unittest
from pathlib import Path
from typing import Any

from tests.lanes.case import LaneCase, lane_suite, model
from tests.lanes.venvs import NEWEST
from tests.support import load_plugin

load_plugin()
from session_cassettes.cassette_store import Store  # noqa: E402

ToolCall, Step = model.ToolCall, model.Step
QUESTION = "Which port does it bind?"
KNOWN = ToolCall("read_file", {"path": "auth.py"})
ANSWER = Step(text="auth.py binds port 8080.")
SKILL = "---\nname: {name}\ndescription: About {name}.\n---\n\nIt is about {name}.\n"
#: Twenty calls of four kinds that a recording of `KNOWN` alone cannot answer.
MISSED = {
    "read_file": [{"path": f"notes/{number}.txt"} for number in range(5)],
    "search_files": [{"pattern": f"word{number}", "path": "lib"} for number in range(5)],
    "terminal": [{"command": f"git log -{number} --format=%s"} for number in range(1, 6)],
    "skill_view": [{"name": f"skill-{number}"} for number in range(5)],
}


class FillCase(LaneCase):
    LONG = True

    def command(self, *words: str, cwd: Path, status: int = 0) -> str:
        done: subprocess.CompletedProcess[str] = self.hermes("cassette", *words, cwd=cwd)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def folder(self) -> Path:
        files = {f"notes/{number}.txt": f"note {number}\n" for number in range(5)}
        files |= {f"lib/{number}.py": f"# word{number}\n" for number in range(5)}
        folder = self.workspace({"auth.py": "AUTH_PORT = 8080\n", **files})
        git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder))
        for words in (
            ("init", "-q"),
            ("add", "."),
            ("commit", "-qm", "first"),
            ("commit", "-qm", "two", "--allow-empty"),
        ):
            subprocess.run([*git, *words], check=True, capture_output=True)
        for number in range(5):
            skill = self.home.path / "skills" / "test" / f"skill-{number}"
            skill.mkdir(parents=True, exist_ok=True)
            (skill / "SKILL.md").write_text(SKILL.format(name=skill.name))
        return folder

    def recorded(self, name: str) -> tuple[Path, bytes, Any]:
        folder, store = self.folder(), Store(self.home.data)
        self.script(Step([KNOWN]), ANSWER)
        self.command("record", name, "--query", QUESTION, cwd=folder)
        self.command("pin", name, "8080", cwd=folder)
        return folder, store.path(name).read_bytes(), store


class Filled(FillCase):
    def test_twenty_misses_of_four_kinds_end_as_hits(self) -> None:
        folder, _, store = self.recorded("twenty")
        steps = [Step([ToolCall(tool, args) for args in calls]) for tool, calls in MISSED.items()]
        self.script(Step([KNOWN]), *steps, ANSWER)
        told = self.command("run", "twenty", "--model", "careful", cwd=folder, status=3)
        self.assertIn("path 21 calls: 1 hit, 0 synthesized, 20 miss", told)
        self.assertIn("\nfill: hermes cassette fill twenty --model careful\n", told)
        filled = json.loads(self.command("fill", "twenty", "--model", "careful", "--json", cwd=folder))
        self.assertEqual(
            [call["tool"] for call in filled["added"]["calls"]], [tool for tool in MISSED for _ in range(5)]
        )
        self.assertEqual(
            sorted(filled["added"]["files"]),
            [*(f"lib/{number}.py" for number in range(5)), *(f"notes/{number}.txt" for number in range(5))],
        )
        self.assertEqual(filled["not_kept"], [])
        after, old = store.read("twenty")[0], store.read("twenty.before-fill")[0]
        self.assertEqual((after.pins, after.answer, after.calls[0]), (("8080",), ANSWER.text, old.calls[0]))
        self.assertEqual(store.path("twenty.before-fill").read_bytes().count(b"twenty.before-fill"), 1)
        results = [json.loads(call.result) for call in after.calls if call.tool == "terminal"]
        self.assertEqual([one["output"] for one in results][:2], ["two", "two\nfirst"])
        for name in ("notes", "lib"):  # the tape answers, not the folder
            (folder / name).rename(folder / f"moved {name}")
        told = self.command("run", "twenty", cwd=folder)
        self.assertIn("path 21 calls: 21 hit, 0 synthesized, 0 miss; ", told)
        self.assertEqual(
            self.command("fill", "twenty", cwd=folder).splitlines()[0].partition(":")[0],
            "nothing to add to twenty, which is as it was",
        )


class NotFilled(FillCase):
    def test_what_is_on_the_tape_is_no_live_call_and_what_is_not_kept_is_named(self) -> None:
        folder, _, store = self.recorded("mixed")
        (folder / "auth.py").write_text("AUTH_PORT = 9090\n")
        made = folder / "made.txt"
        write = ToolCall("write_file", {"path": str(made), "content": "live"})
        self.script(Step([KNOWN, write]), Step([ToolCall("terminal", {"command": "git log -1"})]), ANSWER)
        told = self.command("fill", "mixed", cwd=folder)
        self.assertTrue(made.exists(), "a tool that is not on the tape runs live")
        self.assertEqual([call.tool for call in store.read("mixed")[0].calls], ["read_file", "terminal"])
        for text in (
            "1 call, 0 snapshot files added",
            "write_file: not a read-only tool",
            "1 file of the recording had changed, and stay as recorded: auth.py",
        ):
            self.assertIn(text, told)
        asked = [str(body["messages"]) for body in self.model.requests if body.get("tools")]
        self.assertIn("8080", asked[-1])
        self.assertNotIn("9090", asked[-1])

    def test_a_turn_without_an_answer_changes_nothing(self) -> None:
        folder, before, store = self.recorded("empty")
        self.script(Step([ToolCall("terminal", {"command": "git log -1"})]), Step(text=""))
        # 0.22 asks again and again, for minutes, where nothing is said
        done = self.hermes("cassette", "fill", "empty", "--timeout", "25", cwd=folder)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("nothing was added to 'empty'", done.stderr)
        self.assertEqual(store.path("empty").read_bytes(), before)
        self.assertFalse(store.exists("empty.before-fill"))


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return unittest.TestSuite((lane_suite(loader, Filled), lane_suite(loader, NotFilled, only=NEWEST)))


if __name__ == "__main__":
    unittest.main()
