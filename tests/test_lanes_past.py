"""Sessions that are over, in the databases that each real Hermes leaves: what is kept of them is what its tools returned."""

from __future__ import annotations

import json
import random
import threading
import unittest
from pathlib import Path
from typing import Any, Sequence

from tests.lanes.case import lane_suite
from tests.support import load_plugin
from tests.test_lanes import Step, ToolCall, TurnsCase

load_plugin()
from session_cassettes import cli, hooks  # noqa: E402
from session_cassettes.cassette_store import Arm, Cassette, CassetteError, Facts  # noqa: E402
from session_cassettes.middleware import MISS, Replay  # noqa: E402
from session_cassettes.snapshot import NotKept  # noqa: E402
from session_cassettes.suite import past  # noqa: E402
from session_cassettes.suite.sessions import Database  # noqa: E402

FILES: dict[str, str | bytes] = {
    **{f"{number}.txt": f"text {number}\nPORT = {8080 + number}\n" for number in range(6)},
    "app.py": "import os\n\n\ndef main():\n    return os.environ\n" * 20,
    "long.txt": "one long line of text\n" * 60,
    "sub/AGENTS.md": "Be nice in here.\n",
    "sub/x.py": "x = 1\n",
}


def read(*numbers: int) -> Any:
    return Step([ToolCall("read_file", {"path": f"{number}.txt"}) for number in numbers])


class PastCase(TurnsCase):
    @property
    def database(self) -> Database:
        return Database(self.home.path / "state.db")

    def recalled(self, session: str, number: int | None = None) -> Cassette:
        """A turn's cassette as this process makes it: without a snapshot, since only Hermes redacts."""
        found = self.database.find(session)
        turn = past.choose_turn(past.told_turns(self.database.outline(session)), number)
        return past.record_past(self.database, found, turn, past.Wanted("c", found.cwd), "1", cli.BEYOND)

    def why_not(self, session: str) -> str:
        with self.assertRaises(CassetteError) as raised:
            self.recalled(session)
        return str(raised.exception)


class StoredTurns(PastCase):
    def test_what_is_kept_of_any_message_is_what_the_middleware_saw(self) -> None:
        fail = Step([ToolCall("terminal", {"command": "cat nope.txt"})])
        cat = Step([ToolCall("terminal", {"command": "cat long.txt"})])
        search = Step([ToolCall("search_files", {"pattern": "PORT", "limit": "3"})])
        sub = Step([ToolCall("read_file", {"path": "sub/x.py"})])
        odd = Step([ToolCall("no_such_tool", {"a": 1}), ToolCall("read_file", {"path": "0.txt"})])
        web = Step([ToolCall("web_search", {"query": "x"}), ToolCall("web_extract", {"urls": ["http://127.0.0.1:1/"]})])
        other = Step([ToolCall("delegate_task", {"goal": "look"}), ToolCall("execute_code", {"code": "print(1)"})])
        many = Step(
            [ToolCall("search_files", {"pattern": "os", "limit": 2, "context": 1})], text="<think>hm</think>I look"
        )
        for name, steps, kept, left in (
            ("parallel", (read(0, 1, 2), search), 4, ()),
            ("repeated", (read(0), read(0), read(0), search, search, search, search), 4, (NotKept.STUB,)),
            ("failing", (fail, fail, fail), 3, ()),
            ("identical", (cat, cat, cat), 1 if self.version >= "0.22" else 3, ()),
            ("hints", (sub, many), 2, ()),
            ("unknown", (odd,), 1, (NotKept.FOREIGN_TOOL,)),
            ("web", (web,), 2 if self.version >= "0.22" else None, ()),
            ("others", (other, read(3)), 1, (NotKept.FOREIGN_TOOL,)),
        ):
            with self.subTest(name=name):
                folder = self.workspace(FILES)
                self.script(*steps, Step(text="an answer", reasoning="I think"))
                turn = self.host.turn(f"ask {name}", folder)
                cassette = self.recalled(turn.session_id)
                self.assertEqual((cassette.request, cassette.answer), (f"ask {name}", turn.response))
                self.assertEqual((cassette.cwd, cassette.model), (str(folder), "careful"))
                self.assertEqual(cassette.recorder.hermes, self.version[:4])
                seen = [(one.tool, one.result) for one in turn.returned]
                for call in cassette.calls:
                    self.assertIn((call.tool, call.result), seen)
                if kept is not None:
                    self.assertEqual(len(cassette.calls), kept, cassette.warnings)
                for why in left:
                    self.assertIn(why, "\n".join(cassette.warnings))

    def test_turns_that_are_none_are_told_by_what_they_are(self) -> None:
        folder = self.workspace(FILES)
        for told, steps, request in (
            ("no answer", (read(0), Step(status=400, text="bad request")), "it fails"),
            ("no answer", (Step([ToolCall("read_file", {}, written='{"path": ')]),), "bad arguments"),
            ("an image", (Step(text="an image"),), [{"type": "text", "text": "what is it?"}, IMAGE]),
        ):
            with self.subTest(request=request):
                self.script(*steps, Step(text="an answer"))
                turn = self.host.turn(request, folder)  # type: ignore[arg-type]
                self.assertIn(told, self.why_not(turn.session_id))

    def test_each_turn_of_a_conversation_is_there(self) -> None:
        folder = self.workspace(FILES)
        session = ""
        for number in range(3):
            self.script(read(number), Step(text=f"answer {number}"))
            session = self.host.turn(f"question {number}", folder, session).session_id
        for number in range(3):
            cassette = self.recalled(session, number + 1)
            self.assertEqual((cassette.request, cassette.answer), (f"question {number}", f"answer {number}"))
            self.assertEqual([call.args for call in cassette.calls], [{"path": f"{number}.txt"}])
            self.assertEqual(hooks.IN_CONVERSATION in cassette.warnings, number > 0)

    def test_a_session_that_is_still_being_written_is_read_meanwhile(self) -> None:
        folder = self.workspace(FILES)
        self.script(read(0), Step(text="first answer"))
        session = self.host.turn("first", folder).session_id
        before, seen, stop = {path.name for path in self.home.path.glob("state.db*")}, [], threading.Event()

        def look() -> None:
            while not stop.is_set():
                seen.append([turn.why_not for turn in past.told_turns(self.database.outline(session))])

        looking = threading.Thread(target=look)
        looking.start()
        self.script(*(read(number) for number in range(5)), Step(text="second answer"))
        turn = self.host.turn("second", folder, session)
        stop.set()
        looking.join()
        self.assertEqual((turn.response, turn.failed), ("second answer", False))
        self.assertEqual([len(why) for why in seen], sorted(len(why) for why in seen))
        self.assertLessEqual({path.name for path in self.home.path.glob("state.db*")}, before | {"state.db-journal"})
        self.assertEqual(self.recalled(session).answer, "second answer")


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


class CompactedConversations(PastCase):
    """A conversation that Hermes compacts in the middle of its second turn."""

    config = "compression:\n  enabled: true\n  threshold: 0.5\n  protect_first_n: 1\n  protect_last_n: 2\n  target_ratio: 0.1\n"

    def test_what_was_written_anew_is_left_out(self) -> None:
        folder = self.workspace(
            {f"{n}.txt": f"text {n}\n" + "filler line of some length here\n" * 300 for n in range(9)}
        )
        self.model.toolless = lambda _, __: Step(text="What was done. " * 20)
        self.addCleanup(setattr, self.model, "toolless", None)

        def turn(request: str, answer: str, steps: Sequence[Any], session: str = "") -> Any:
            left = iter(steps)
            self.model.brain = lambda _, __: next(left, Step(text=answer))
            return self.host.turn(request, folder, session)

        session = turn("first", "first answer", [read(8)]).session_id
        large = Step([ToolCall("read_file", {"path": "4.txt"})], tokens=110_000)
        second = turn("second", "second answer", [*map(read, range(4)), large, read(5), read(6)], session)
        third = turn("third", "third answer", [read(7)], second.session_id)
        turns = past.told_turns(self.database.outline(third.session_id))
        self.assertEqual([bool(one.why_not) for one in turns], [True, False, False])
        self.assertIn("compacted", turns[0].why_not)
        kept = self.recalled(third.session_id, 2)
        results = {one.args["path"]: one.result for one in second.returned}
        self.assertEqual(
            {call.args["path"]: call.result for call in kept.calls},
            {path: result for path, result in results.items() if path in [call.args["path"] for call in kept.calls]},
        )
        self.assertEqual((len(kept.calls), kept.answer), (6, "second answer"))
        told = "\n".join(kept.warnings)
        self.assertIn(past.OTHER_FORM, told)
        self.assertIn("compacted this conversation", told)
        if second.session_id != session:  # the session before ends with its first turn
            self.assertEqual(self.recalled(session).answer, "first answer")


class MovedConversations(CompactedConversations):
    config = CompactedConversations.config + "  in_place: false\n"


class AsRecorded(PastCase):
    """The same turn, recorded while it ran, and from the database when it was over."""

    def test_both_cassettes_answer_alike(self) -> None:
        folder = self.workspace(FILES)
        self.script(
            read(0, 1),
            Step([ToolCall("search_files", {"pattern": "PORT"}), ToolCall("terminal", {"command": "cat long.txt"})]),
            Step([ToolCall("search_files", {"pattern": "*.py", "target": "files"})]),
            Step([ToolCall("read_file", {"path": "sub/x.py"}), ToolCall("read_file", {"path": "missing.py"})]),
            Step([ToolCall("read_file", {"path": "app.py", "offset": 5, "limit": 10})]),
            Step(text="8080"),
        )
        turn, live = self.record("live", "Which port?", folder)
        self.addCleanup(self.host.close)
        done = self.hermes("cassette", "record", "over", "--session", turn.session_id[:-2], cwd=folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        over = self.store.read("over")[0]
        for field in ("request", "answer", "model", "cwd", "calls", "not_kept", "warnings"):
            self.assertEqual(getattr(over, field), getattr(live, field), field)
        self.assertEqual(over.snapshot, live.snapshot)
        told = self.hermes("cassette", "sessions", "--json", cwd=folder)
        self.assertIn(turn.session_id, [row["id"] for row in json.loads(told.stdout)["sessions"]])
        both = [replay(cassette, folder) for cassette in (live, over)]
        asked = list(calls(random.Random(20261201), 100))
        answers = [[one.answer(tool, args, "s", str(n)) for n, (tool, args) in enumerate(asked)] for one in both]
        for call, (first, second) in zip(asked, zip(*answers)):
            self.assertEqual(first, second, call)
        answered = sum(answer != MISS for answer in answers[0])
        self.assertGreater(answered, 60)
        print(f"lane {self.version}: {answered} of 100 calls are answered, all of them alike")


def replay(cassette: Cassette, folder: Path) -> Replay:
    facts, arm = Facts("1", "f", 1, False, ""), Arm("a", "run", "c", "", "gateway", 0.0, 0.0, "1", "f")
    workspace = hooks.replay_workspace(cassette, str(folder))
    return Replay(arm, "t", "s", "careful", facts, cassette, workspace, "", cli.BEYOND)


def calls(chance: random.Random, count: int) -> Any:
    """Calls such as a model makes that looks for itself."""
    paths = [*FILES, ".", "sub", "missing.py", "./0.txt", "sub/../1.txt"]
    for _ in range(count):
        tool = chance.choice(("read_file", "read_file", "search_files", "search_files", "terminal"))
        if tool == "read_file":
            args: dict[str, Any] = {"path": chance.choice(paths)}
            args |= chance.choice(({}, {"offset": chance.randrange(1, 30)}, {"limit": chance.randrange(1, 30)}))
        elif tool == "search_files":
            args = {"pattern": chance.choice(("PORT", "text [0-3]", "def \\w+", "nothing here", "x =", "80(80|81)"))}
            args |= chance.choice(({}, {"path": chance.choice(paths)}, {"output_mode": "count"}, {"limit": 3}))
            if not chance.randrange(4):
                args = {"pattern": chance.choice(("*.py", "*.txt", "AGENTS.md")), "target": "files"}
        else:
            words = ("cat 0.txt", "cat long.txt", "head -n 2 app.py", "wc -l app.py", "ls", "git status", "rm 0.txt")
            args = {"command": chance.choice(words)}
        yield tool, args


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return lane_suite(loader, StoredTurns, CompactedConversations, MovedConversations, AsRecorded)


if __name__ == "__main__":
    unittest.main()
