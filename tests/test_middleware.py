"""The middleware: what passes through, what is recorded, what is replayed, and that no tool runs in a replay."""

from __future__ import annotations

import json
import random
import threading
import time
import unittest
from typing import Any, Callable
from unittest import mock

from tests.support import FakeHost

from session_cassettes.cassette_store import (
    REPLAY_LIMIT,
    Arm,
    Call,
    Cassette,
    Facts,
    Recorder,
    Ledger,
    Snapshot,
    SnapshotFile,
)
from session_cassettes.middleware import CALL_LIMIT, MISS, SEEN_LIMIT, Bindings, Recording, Replay, call_key
from session_cassettes.snapshot import Workspace

FACTS = Facts("1.0.0", "f" * 64, 1, False, "0.19.0")
ARM = Arm("a" * 24, "run", "shop", "where?", "process", 0.0, 900.0, "1.0.0", "f" * 64)
ROOT = "/home/me/shop"
AUTH = "AUTH_PORT = 8080\n"
TOOLS = (
    "terminal",
    "write_file",
    "patch",
    "execute_code",
    "delegate_task",
    "read_file",
    "search_files",
    "web_search",
    "web_extract",
    "skill_view",
    "skills_list",
    "session_search",
    "todo",
    "memory",
    "mcp_github_delete",
    "no such tool",
    "",
    "tool_call",
    "process",
    "cronjob",
    "browser_navigate",
)


def cassette(*calls: Call, **changes: Any) -> Cassette:
    snapshot = Snapshot({"server/auth.py": SnapshotFile(AUTH, len(AUTH))})
    made = {
        "request": "where?",
        "answer": "8080",
        "cwd": ROOT,
        "recorder": Recorder("0.19.0", "linux", "rg"),
        **changes,
    }
    return Cassette("shop", calls=calls, snapshot=snapshot, pins=("8080",), **made)


TERMINAL = cassette(Call("terminal", {}, "recorded"))


class Moment(str):
    """A turn's id that does something when it is looked up for the nth time."""

    def __new__(cls, text: str, nth: int, act: Callable[[], Any]) -> Moment:
        made = super().__new__(cls, text)
        made.left, made.act = nth, act
        return made

    left: int
    act: Callable[[], Any]

    def __hash__(self) -> int:
        self.left -= 1
        if self.left == 0:
            self.act()
        return str.__hash__(self)

    __eq__ = str.__eq__


class MiddlewareCase(unittest.TestCase):
    """A fake host with the middleware alone."""

    def setUp(self) -> None:
        self.bindings = Bindings()
        self.host = FakeHost()
        self.host.ctx.register_middleware("tool_execution", lambda **kw: self.bindings.tool_execution(**kw))
        self.turn = self.host.start_turn("where?")

    def replay(self, kept: Cassette | None = None, error: str = "") -> Replay:
        return self.bind(kept, Workspace(kept.cwd) if kept is not None and kept.cwd else None, error)

    def bind(self, kept: Cassette | None, workspace: Workspace | None, error: str = "") -> Replay:
        made = Replay(ARM, self.turn.turn_id, self.turn.session_id, "m", FACTS, kept, workspace, error)
        self.bindings.replay(made)
        return made

    def record(self) -> Recording:
        made = Recording("shop", self.turn.turn_id, self.turn.session_id)
        self.bindings.record(made)
        return made


class PassingThrough(MiddlewareCase):
    def test_an_unbound_session_gets_the_very_object_that_its_tool_returned(self) -> None:
        for result in ("text", {"_multimodal": True}, None, 7, ["a"], b"bytes"):
            with self.subTest(result=result):
                self.host.tools["x"] = lambda _, result=result: result
                self.assertIs(self.host.call(self.turn, "x"), result)

    def test_what_a_tool_raises_reaches_the_host_as_it_is(self) -> None:
        error = ValueError("broken tool")
        self.host.tools["x"] = mock.Mock(side_effect=error)
        for bind in (lambda: None, self.record):
            with self.subTest(bind=bind):
                bind()
                with self.assertRaises(ValueError) as raised:
                    self.host.call(self.turn, "x")
                self.assertIs(raised.exception, error)
        self.assertEqual(len(self.host.ran), 2)

    def test_only_a_bounded_number_of_turns_is_remembered(self) -> None:
        for number in range(SEEN_LIMIT + 7):
            self.host.call(self.turn, "x", turn_id=f"turn-{number}")
        for number, live in ((0, 0), (6, 0), (7, 1), (SEEN_LIMIT + 6, 1)):
            with self.subTest(number=number):
                late = Replay(ARM, f"turn-{number}", f"session-{number}", "m", FACTS, None, None)
                self.bindings.replay(late)
                self.assertEqual(late.finish("", "x").live, live)

    def test_other_sessions_run_their_tools_while_one_is_replayed(self) -> None:
        self.replay(cassette())
        other = self.host.start_turn("something else")
        self.assertEqual(self.host.call(other, "terminal"), '{"live": "terminal"}')
        self.assertEqual(len(self.host.ran), 1)


class Recordings(MiddlewareCase):
    def test_calls_are_kept_in_the_order_in_which_they_started(self) -> None:
        recording = self.record()
        for number in range(5):
            self.host.call(self.turn, "read_file", {"path": f"{number}.txt"})
        self.assertEqual([slot.args["path"] for slot in recording.close()], [f"{n}.txt" for n in range(5)])

    def test_the_nested_second_run_of_a_batched_call_is_no_second_record(self) -> None:
        recording = self.record()
        self.host.call(self.turn, "read_file", {"path": "a"}, tool_call_id="call_1", nested=True)
        self.host.call(self.turn, "read_file", {"path": "a"}, tool_call_id="call_1", nested=True)
        self.assertEqual(len(recording.close()), 2)
        self.assertEqual(len(self.host.ran), 2)

    def test_parallel_calls_that_share_an_id_are_records_of_their_own(self) -> None:
        recording = self.record()
        gate = threading.Barrier(4)
        self.host.tools["x"] = lambda args: (gate.wait(5), str(args["n"]))[1]
        threads = [
            threading.Thread(target=self.host.call, args=(self.turn, "x", {"n": n}, "call_0"), kwargs={"nested": True})
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        slots = recording.close()
        self.assertEqual(sorted((slot.args["n"], slot.result) for slot in slots), [(n, str(n)) for n in range(4)])

    def test_arguments_that_the_host_changes_later_are_kept_as_they_came(self) -> None:
        recording = self.record()
        self.host.tools["x"] = lambda args: args.update(path="changed") or "ok"
        self.host.call(self.turn, "x", {"path": "as asked"})
        self.assertEqual(recording.close()[0].args, {"path": "as asked"})

    def test_a_result_that_the_host_changes_later_is_kept_as_it_came(self) -> None:
        recording, result = self.record(), {"_multimodal": True, "parts": [1]}
        self.host.tools["x"] = lambda _: result
        self.assertIs(self.host.call(self.turn, "x"), result)
        result["parts"].append(2)
        self.assertEqual(recording.close()[0].result["parts"], [1])

    def test_calls_of_other_turns_with_the_same_session_are_not_recorded(self) -> None:
        recording = self.record()
        self.host.call(self.turn, "x", turn_id="the background review")
        self.host.call(None, "x")
        self.assertEqual(recording.close(), [])
        self.assertEqual(len(self.host.ran), 2)

    def test_a_recorder_that_fails_costs_neither_the_result_nor_the_turn(self) -> None:
        class Uncopied:
            def __deepcopy__(self, _: Any) -> Any:
                raise MemoryError

        odd = {"a": Uncopied()}
        for title, args, result in (("arguments", odd, "text"), ("result", {"a": 1}, odd)):
            with self.subTest(title):
                recording = self.record()
                self.host.tools["x"] = lambda _, result=result: result
                self.assertIs(self.host.call(self.turn, "x", args), result)
                self.assertEqual(recording.faults, [f"the {title} of a x call could not be copied (MemoryError)"])
        self.assertEqual(self.host.raised, [])

    def test_what_is_not_plain_json_is_copied_all_the_same(self) -> None:
        recording, inner = self.record(), {"n": [1]}
        loop: list[Any] = []
        loop.append(loop)
        odd = [{"a": (inner,)}, {"a": {1}}, {1: inner}, {"n": float("inf")}, {"n": 10**30}, {"a": loop}]
        self.host.tools["x"] = lambda args: "ok"
        for args in odd:
            self.host.call(self.turn, "x", args)
        inner["n"].append(2)
        kept = [slot.args for slot in recording.close()]
        self.assertEqual(kept[:5], [{"a": ({"n": [1]},)}, {"a": {1}}, {1: {"n": [1]}}, *odd[3:5]])
        self.assertIs(kept[5]["a"][0], kept[5]["a"])
        self.assertEqual(recording.faults, [])

    def test_a_result_that_comes_after_the_end_is_no_part_of_it(self) -> None:
        recording = self.record()
        slots: list[Any] = []
        self.host.tools["x"] = lambda _: slots.extend(recording.close()) or "late"
        self.assertEqual(self.host.call(self.turn, "x"), "late")
        self.assertFalse(slots[0].done)


class Replays(MiddlewareCase):
    def test_no_tool_of_any_name_ever_runs(self) -> None:
        cases = {
            "full": cassette(Call("terminal", {"command": "ls"}, "out")),
            "none": None,
            "no folder": cassette(cwd=""),
        }
        odd_args: list[Any] = [{}, None, [], "text", 7, {"path": object()}, {"path": None}, {"pattern": "("}, {1: 2}]
        for title, kept in cases.items():
            with self.subTest(title):
                self.turn = self.host.start_turn("where?")
                self.replay(kept, "" if kept else "gone")
                for tool in TOOLS:
                    with self.subTest(tool=tool):
                        for args in odd_args:
                            self.assertIsInstance(self.host.call(self.turn, tool, args), str)
        self.assertEqual(self.host.ran, [])
        self.assertEqual(self.host.raised, [])

    def test_an_internal_error_is_a_miss_and_taints_the_ledger(self) -> None:
        class Unreadable(dict[str, Any]):
            def items(self) -> Any:
                raise RuntimeError("boom")

        class Unspeakable:
            def __str__(self) -> str:
                raise RuntimeError("boom")

            __repr__ = __str__

        class Nowhere(Workspace):
            def canonical(self, path: str, base: str = "") -> str:
                raise RuntimeError("boom") if path == "new" else ValueError(path)

        kept = cassette(Call("x", {}, "out"))
        cases: dict[str, tuple[Any, Any, Workspace | None]] = {
            "the tool's name": (Unspeakable(), {}, None),
            "a value among the arguments": ("x", {"a": Unspeakable()}, None),
            "the arguments": ("x", Unreadable(a=1), None),
            "what a path means": ("read_file", {"path": "new"}, Nowhere(ROOT)),
        }
        for title, (tool, args, workspace) in cases.items():
            with self.subTest(title):
                self.turn = self.host.start_turn("where?")
                replay = self.bind(kept, workspace or Workspace(ROOT))
                self.assertEqual(self.host.call(self.turn, tool, args), MISS)
                self.assertEqual(self.host.call(self.turn, "x"), "out")
                self.assertTrue(replay.finish("s", "8080").errors)
        self.assertEqual(self.host.ran, [])
        self.assertEqual(self.host.raised, [])

    def test_a_call_that_could_not_even_be_logged_is_found_out(self) -> None:
        class Nameless:
            def __str__(self) -> str:
                raise RuntimeError("boom")

        replay = self.replay(cassette())
        self.assertEqual(self.host.call(self.turn, Nameless()), MISS)  # type: ignore[arg-type]
        self.assertIn("a tool call came that could not be logged", replay.finish("s", "8080").errors)
        self.assertEqual(self.host.ran, [])

    def test_no_tool_runs_when_the_replay_itself_raises(self) -> None:
        class Broken(Replay):
            def answer(self, tool: Any, args: Any, session: str) -> Any:
                raise RecursionError

        turn = self.turn
        self.bindings.replay(Broken(ARM, turn.turn_id, turn.session_id, "m", FACTS, cassette(), Workspace(ROOT)))
        self.assertEqual(self.host.call(turn, "terminal"), MISS)
        self.assertEqual((self.host.ran, self.host.raised), ([], []))

    def test_ids_that_are_no_strings_run_no_tool_once_a_replay_was_here(self) -> None:
        self.replay(cassette())
        self.assertEqual(self.host.call(self.turn, "terminal", turn_id=[], session_id={}), MISS)  # type: ignore[arg-type]
        self.assertEqual(self.host.ran, [])

    def test_a_hit_returns_the_recorded_result_itself(self) -> None:
        replay = self.replay(cassette(Call("terminal", {"command": "ls"}, "out")))
        self.assertEqual(self.host.call(self.turn, "terminal", {"command": "ls"}), "out")
        logged = replay.finish(self.turn.session_id, "8080").calls[0]
        self.assertEqual((logged.how, logged.recorded, logged.repeat), ("hit", 0, 1))

    def test_the_nth_repeat_gets_the_nth_result_and_then_the_last_again(self) -> None:
        calls = [Call("terminal", {"command": "git log"}, f"out {n}") for n in range(3)]
        replay = self.replay(cassette(*calls))
        got = [self.host.call(self.turn, "terminal", {"command": "git log"}) for _ in range(5)]
        self.assertEqual(got, ["out 0", "out 1", "out 2", "out 2", "out 2"])
        logged = replay.finish(self.turn.session_id, "x").calls
        self.assertEqual([call.repeat for call in logged], [1, 2, 3, 4, 5])
        self.assertEqual(logged[2].reason, "")
        self.assertIn("asked 4 times, recorded 3", logged[3].reason)

    def test_a_read_that_was_not_recorded_is_synthesized_from_the_snapshot(self) -> None:
        replay = self.replay(cassette())
        self.assertIn("8080", self.host.call(self.turn, "read_file", {"path": "server/auth.py"}))
        self.assertEqual(replay.finish("s", "x").calls[0].how, "synthesized")

    def test_a_miss_tells_the_person_the_nearest_call_and_what_differs(self) -> None:
        recorded = [Call("terminal", {"command": "git log -3"}, "a"), Call("terminal", {"command": "ls"}, "b")]
        replay = self.replay(cassette(*recorded))
        self.assertEqual(self.host.call(self.turn, "terminal", {"command": "git log -5"}), MISS)
        miss = replay.finish("s", "x").calls[0]
        self.assertEqual(miss.reason, "this call was not recorded")
        self.assertEqual(miss.nearest, 'nearest recorded call: command was "git log -3"')

    def test_the_miss_is_short_and_no_failure_to_the_loop_guard(self) -> None:
        self.assertIn("cassette miss", MISS)
        self.assertLess(len(MISS), 80)
        self.assertNotIn('"error"', MISS.lower())
        self.assertNotIn("failed", MISS.lower())

    def test_a_turn_is_followed_into_a_new_session_id_and_both_are_closed(self) -> None:
        replay = self.replay(cassette(Call("x", {}, "out")))
        self.assertEqual(self.host.call(self.turn, "x", session_id="after the split"), "out")
        ledger = replay.finish("after the split", "8080")
        self.assertEqual(ledger.sessions, (self.turn.session_id, "after the split"))
        self.bindings.drop_replay(replay.turn)
        for session in ledger.sessions:
            with self.subTest(session=session):
                late = self.host.start_turn("Review the conversation above", session_id=session, first=False)
                self.assertEqual(self.host.call(late, "memory"), MISS)
        self.assertEqual(self.host.ran, [])

    def test_a_call_that_started_before_the_claim_is_found_out(self) -> None:
        self.host.call(self.turn, "terminal")
        self.assertEqual(self.replay(cassette()).finish("s", "x").live, 1)

    def test_a_claim_that_lands_at_any_moment_of_a_call_replays_it_or_finds_it_out(self) -> None:
        for moment in range(1, 9):
            with self.subTest(moment=moment):
                self.setUp()
                replays: list[Replay] = []
                turn_id = Moment(self.turn.turn_id, moment, lambda: replays.append(self.replay(TERMINAL)))
                got = self.host.call(self.turn, "terminal", turn_id=turn_id)
                self.check_noticed(got, replays[0] if replays else self.replay(TERMINAL))

    def test_a_call_that_comes_at_any_moment_of_a_claim_is_replayed_or_found_out(self) -> None:
        for moment in range(1, 9):
            with self.subTest(moment=moment):
                self.setUp()
                got: list[Any] = []
                turn_id = Moment(self.turn.turn_id, moment, lambda: got.append(self.host.call(self.turn, "terminal")))
                replay = Replay(ARM, turn_id, self.turn.session_id, "m", FACTS, TERMINAL, Workspace(ROOT))
                self.bindings.replay(replay)
                self.check_noticed(got[0] if got else self.host.call(self.turn, "terminal"), replay)

    def check_noticed(self, got: Any, replay: Replay) -> None:
        """A call was answered by the replay, or the replay knows of it: it ran live, or met a closed session."""
        ledger = replay.finish("s", "x")
        if got == "recorded":
            self.assertEqual((len(ledger.calls), self.host.ran), (1, []))
        else:
            self.assertEqual(got, '{"live": "terminal"}' if self.host.ran else MISS)
            self.assertEqual((ledger.calls, ledger.live), ((), 1))
        self.assertEqual(self.host.raised, [])

    def test_after_the_limit_every_call_is_a_miss_and_the_log_is_cut(self) -> None:
        for more in (0, 1):
            with self.subTest(more=more):
                self.turn = self.host.start_turn("where?")
                replay = self.replay(cassette(Call("x", {}, "out")))
                for _ in range(CALL_LIMIT):
                    self.assertEqual(self.host.call(self.turn, "x"), "out")
                for _ in range(more):
                    self.assertEqual(self.host.call(self.turn, "x"), MISS)
                ledger = replay.finish("s", "x")
                self.assertEqual((ledger.truncated, len(ledger.calls), ledger.errors), (bool(more), CALL_LIMIT, ()))

    def test_the_oldest_of_too_many_unfinished_replays_lets_go_of_its_cassette(self) -> None:
        turns = [self.host.start_turn("where?") for _ in range(REPLAY_LIMIT + 1)]
        replays = []
        for self.turn in turns:
            replays.append(self.replay(cassette(Call("x", {}, "out"))))
        self.assertEqual([one.evicted for one in replays], [True] + [False] * REPLAY_LIMIT)
        self.assertEqual([self.host.call(turn, "x") for turn in turns], [MISS] + ["out"] * REPLAY_LIMIT)
        self.assertTrue(replays[0].finish("s", "x").evicted)
        self.assertEqual(self.host.ran, [])

    def test_no_arguments_pass_for_the_key_of_a_command(self) -> None:
        output = json.dumps({"output": "x", "exit_code": 0, "error": None})
        made = self.replay(cassette(Call("terminal", {"command": "cat server/auth.py"}, output)))
        self.assertEqual(self.host.call(self.turn, "terminal", {"command": "cat ./server/auth.py"}), output)
        forged = {"words": ["word cat", "path ./server/auth.py"]}
        self.assertEqual(self.host.call(self.turn, "terminal", forged), MISS)
        self.assertEqual(made.finish("s", "x").errors, ())

    def test_arguments_that_are_no_json_are_a_miss_and_no_fault(self) -> None:
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        made = self.replay(cassette(Call("terminal", {"command": "cat server/auth.py"}, "x")))
        for tool, args in (
            ("terminal", {"command": "cat server/auth.py", "timeout": float("nan")}),
            ("terminal", {"command": "rg a | wc", "timeout": float("inf")}),
            ("write_file", {"path": "a", "content": float("nan")}),
            ("web_search", {"query": deep}),
            ("read_file", {"path": "a", "offset": float("nan"), "limit": float("inf")}),
        ):
            with self.subTest(tool=tool):
                self.assertEqual(self.host.call(self.turn, tool, args), MISS)
        ledger = made.finish("s", "x")
        self.assertEqual((len(ledger.calls), ledger.errors), (5, ()))

    def test_a_way_back_is_another_path_where_a_link_or_no_folder_may_lie_on_it(self) -> None:
        files = {"x.py": SnapshotFile("root\n", 5), "src/x.py": SnapshotFile("src\n", 4)}
        linked = Snapshot({**files, "src/deep/y.py": SnapshotFile("y\n", 2)}, links={"lib": "src/deep"})
        listing = json.dumps({"total_count": 1, "matches": [{"path": "x.py", "line": 1, "content": "root"}]})
        gone = json.dumps({"error": "File not found: nope.py"})
        for snapshot, recorded, asked in (
            (linked, Call("read_file", {"path": "x.py"}, "1|root"), {"path": "lib/../x.py"}),
            (linked, Call("read_file", {"path": "nope.py"}, gone), {"path": "lib/../nope.py"}),
            (linked, Call("read_file", {"path": "lib/../nope.py"}, gone), {"path": "nope.py"}),
            (Snapshot(files), Call("read_file", {"path": "x.py"}, "1|root"), {"path": "gone/../x.py"}),
            (
                Snapshot(files),
                Call("search_files", {"pattern": "root"}, listing),
                {"pattern": "root", "path": "gone/.."},
            ),
            (
                Snapshot(files),
                Call("terminal", {"command": "rg 'a|b'", "workdir": "."}, "x"),
                {"command": "rg 'a|b'", "workdir": "gone/.."},
            ),
        ):
            with self.subTest(asked=asked):
                self.turn = self.host.start_turn("where?")
                self.replay(cassette(recorded)._replace(snapshot=snapshot))
                self.assertEqual(self.host.call(self.turn, recorded.tool, asked), MISS)
                self.assertEqual(self.host.call(self.turn, recorded.tool, recorded.args), recorded.result)
        self.replay(cassette(Call("x", {}, "out")))
        before = time.process_time()
        self.assertEqual(self.host.call(self.turn, "read_file", {"path": "server/../" * 50_000 + "x"}), MISS)
        self.assertLess(time.process_time() - before, 5)

    def test_sixteen_threads_get_their_own_answers_and_each_is_logged(self) -> None:
        calls = [Call("x", {"n": n}, f"out {n}") for n in range(50)]
        replay = self.replay(cassette(*calls))
        wrong: list[Any] = []

        def ask(seed: int) -> None:
            order = list(range(50))
            random.Random(seed).shuffle(order)
            for n in order:
                if (got := self.host.call(self.turn, "x", {"n": n})) != f"out {n}":
                    wrong.append(got)

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        ledger: Ledger = replay.finish("s", "x")
        self.assertEqual(wrong, [])
        self.assertEqual(len(ledger.calls), 16 * 50)
        self.assertEqual((ledger.errors, self.host.ran), ((), []))

    def test_parallel_calls_get_the_same_answers_in_every_order_of_arrival(self) -> None:
        calls = [Call("x", {"n": n}, f"out {n}") for n in range(6)]
        for seed in range(20):
            with self.subTest(seed=seed):
                self.turn = self.host.start_turn("where?")
                self.replay(cassette(*calls))
                order = list(range(6))
                random.Random(seed).shuffle(order)
                self.assertEqual([self.host.call(self.turn, "x", {"n": n}) for n in order], [f"out {n}" for n in order])

    def test_a_call_still_being_answered_at_the_end_taints_the_ledger(self) -> None:
        class Ending(Workspace):
            """Lets the turn end while a path is looked up."""

            def canonical(self, path: str, base: str = "") -> str:
                ledgers.append(replay.finish("s", "x"))
                return super().canonical(path, base)

        ledgers: list[Ledger] = []
        replay = self.bind(cassette(), Ending(ROOT))
        self.host.call(self.turn, "read_file", {"path": "a"})
        self.assertIn("a tool call was still being answered when the turn ended", ledgers[0].errors)
        self.assertEqual(ledgers[0].calls[0].how, "miss")


class WrappedCalls(MiddlewareCase):
    """`tool_call` around a tool is that tool's call."""

    FORMS: tuple[Any, ...] = (
        {"name": "read_file", "arguments": {"path": "a.txt"}},
        {"name": "read_file", "arguments": '{"path": "a.txt"}'},
        {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]},
    )

    def test_a_replay_answers_it_as_the_tool_that_it_names(self) -> None:
        made = self.replay(cassette(Call("read_file", {"path": "a.txt"}, "recorded")))
        for form in self.FORMS:
            with self.subTest(form):
                self.assertEqual(self.host.call(self.turn, "tool_call", form), "recorded")
        for form in ({"name": "write_file", "arguments": {}}, {"calls": []}, {"name": "read_file"}, None, {"name": 1}):
            with self.subTest(form):
                self.assertEqual(self.host.call(self.turn, "tool_call", form), MISS)
        self.assertEqual(self.host.ran, [])
        told = [(call.tool, call.how) for call in made.finish("s", "x").calls]
        self.assertEqual(told[:4], [("read_file", "hit")] * 3 + [("write_file", "miss")])
        self.assertEqual({how for _, how in told[4:]}, {"miss"})

    def test_a_recording_keeps_it_under_that_name_and_the_host_gets_what_it_sent(self) -> None:
        made = self.record()
        for form in self.FORMS:
            self.host.call(self.turn, "tool_call", form)
        self.assertEqual([(slot.tool, slot.args) for slot in made.close()], [("read_file", {"path": "a.txt"})] * 3)
        self.assertEqual([one.args for one in self.host.ran], list(self.FORMS))


class RecordedFailures(MiddlewareCase):
    """What could not be read has no text in the snapshot, but it was seen to fail."""

    GONE = json.dumps({"content": "", "error": "File not found: nope.py"})
    FOLDER = json.dumps({"content": "", "error": "Cannot read '/home/me/shop/server': not a regular file"})
    NOWHERE = json.dumps({"total_count": 0, "error": "Path not found: gone"})

    def answers(self, *recorded: Call, asked: tuple[str, dict[str, Any]]) -> Any:
        self.turn = self.host.start_turn("where?")
        self.replay(cassette(*recorded))
        return self.host.call(self.turn, *asked)

    def test_a_path_that_failed_fails_again_whatever_else_is_asked_of_it(self) -> None:
        for tool, recorded, result, asked in (
            ("read_file", {"path": "nope.py"}, self.GONE, {"path": "./nope.py", "offset": 5, "limit": 10}),
            ("read_file", {"path": f"{ROOT}/nope.py", "limit": 3}, self.GONE, {"path": "nope.py"}),
            ("read_file", {"path": "server"}, self.FOLDER, {"path": "server/", "limit": 7}),
            ("read_file", {"path": "/etc/nope"}, self.GONE, {"path": "/etc//nope", "limit": 7}),
            ("search_files", {"pattern": "a", "path": "gone"}, self.NOWHERE, {"pattern": "b", "path": "./gone"}),
            ("search_files", {"pattern": "a", "path": "gone"}, self.NOWHERE, {"target": "files", "path": "gone"}),
        ):
            with self.subTest(recorded=recorded, asked=asked):
                self.assertEqual(self.answers(Call(tool, recorded, result), asked=(tool, asked)), result)

    def test_what_failed_for_another_reason_or_not_always_is_not_known_to_fail(self) -> None:
        again, text = ("read_file", {"path": "nope.py", "limit": 7}), json.dumps({"content": "1|x"})
        for title, calls in {
            "read later": (
                Call("read_file", {"path": "nope.py"}, self.GONE),
                Call("read_file", {"path": "nope.py", "limit": 1}, text),
            ),
            "an error of the call": (Call("read_file", {"path": "nope.py"}, json.dumps({"error": "bad limit"})),),
            "another tool": (Call("skill_view", {"path": "nope.py"}, self.GONE),),
            "another path": (Call("read_file", {"path": "Nope.py"}, self.GONE),),
            "no path": (Call("read_file", {}, self.GONE),),
        }.items():
            with self.subTest(title):
                self.assertEqual(self.answers(*calls, asked=again), MISS)
        self.assertEqual(self.answers(Call("read_file", {}, self.GONE), asked=("read_file", {"path": 7})), MISS)

    def test_a_warning_of_repeats_belongs_to_the_call_that_got_it(self) -> None:
        warned = json.dumps({"total_count": 0, "error": "Path not found: gone", "_warning": "3 times, exactly"})
        calls = [Call("search_files", {"pattern": "a", "path": "gone"}, one) for one in (self.NOWHERE, warned)]
        asked = ("search_files", {"pattern": "b", "path": "gone"})
        self.assertEqual(self.answers(*calls, asked=asked), self.NOWHERE)
        self.assertEqual(self.answers(calls[1], asked=asked), MISS)

    def test_what_the_snapshot_holds_is_not_said_to_be_missing(self) -> None:
        nowhere = json.dumps({"total_count": 0, "error": "Path not found: server"})
        for tool, recorded, result, asked in (
            ("search_files", {"pattern": "a", "path": "server"}, nowhere, {"pattern": "-b", "path": "server"}),
            (
                "search_files",
                {"pattern": "a", "path": "server/auth.py"},
                nowhere,
                {"pattern": "-b", "path": "server/auth.py"},
            ),
        ):
            with self.subTest(asked=asked):
                self.assertEqual(self.answers(Call(tool, recorded, result), asked=(tool, asked)), MISS)
        newer = cassette(Call("read_file", {"path": "server/auth.py"}, self.GONE), recorder=Recorder("0.23.5", "linux"))
        self.turn = self.host.start_turn("where?")
        self.replay(newer)
        self.assertEqual(self.host.call(self.turn, "read_file", {"path": "server/auth.py", "offset": -5}), MISS)

    def test_a_file_that_is_in_the_snapshot_is_read_there(self) -> None:
        asked = ("read_file", {"path": "server/auth.py", "limit": 7})
        found = self.answers(Call("read_file", {"path": "server/auth.py"}, self.GONE), asked=asked)
        self.assertIn("AUTH_PORT", found)


class EditedResults(MiddlewareCase):
    def test_a_recorded_result_that_is_no_text_is_handed_out_as_its_json_text(self) -> None:
        for result, text in (
            ({"a": ["é"]}, '{"a": ["é"]}'),
            (None, "null"),
            (7, "7"),
            (True, "true"),
            ("as is", "as is"),
        ):
            with self.subTest(result):
                self.turn = self.host.start_turn("where?")
                self.replay(cassette(Call("x", {}, result)))
                self.assertEqual(self.host.call(self.turn, "x"), text)


class DedicatedProcess(MiddlewareCase):
    """A process that exists for one replay."""

    def setUp(self) -> None:
        super().setUp()
        self.bindings = Bindings(locked=True)

    def test_no_tool_runs_even_when_nothing_was_claimed(self) -> None:
        for turn in (self.turn, None):
            for tool in TOOLS:
                with self.subTest(tool=tool, bound=turn is not None):
                    self.assertEqual(self.host.call(turn, tool), MISS)
        self.assertEqual(self.host.ran, [])

    def test_a_claimed_turn_is_answered_and_nothing_else(self) -> None:
        self.replay(cassette(Call("x", {}, "out")))
        self.assertEqual(self.host.call(self.turn, "x"), "out")
        self.assertEqual(self.host.call(None, "x"), MISS)
        self.assertEqual(self.host.ran, [])


class CallKeys(unittest.TestCase):
    HOST = Recorder("0.19.0", "linux", "rg")

    def key(self, tool: str, args: Any, workspace: Workspace | None = None) -> str:
        return call_key(tool, args, workspace or Workspace(ROOT, ("/link/shop",)), self.HOST)

    def test_every_spelling_of_one_call_has_one_key(self) -> None:
        spellings = (
            {"path": "server/auth.py"},
            {"path": "./server/auth.py"},
            {"path": f"{ROOT}/server/auth.py"},
            {"path": "/link/shop/server/../server/auth.py"},
            {"path": "server//auth.py", "offset": 1},
            {"limit": "500", "offset": "1", "path": "server/auth.py"},
            {"path": "server/auth.py", "limit": 500},
        )
        self.assertEqual(len({self.key("read_file", args) for args in spellings}), 1)

    def test_every_windows_spelling_of_one_call_has_one_key(self) -> None:
        workspace = Workspace("C:\\me\\shop", windows=True, fold_case=True)
        forms = (
            "server\\auth.py",
            "SERVER/auth.py",
            "c:/me/shop/server/auth.py",
            "/c/me/shop/server/auth.py",
            "C:\\ME\\SHOP\\server\\auth.py",
            ".\\server\\.\\auth.py",
        )
        self.assertEqual(len({self.key("read_file", {"path": form}, workspace) for form in forms}), 1)

    def test_what_carries_meaning_is_never_dropped(self) -> None:
        different = (
            ("read_file", {"path": "a"}),
            ("read_file", {"path": "A"}),
            ("read_file", {"path": "a", "offset": 2}),
            ("read_file", {"path": "a", "limit": 10}),
            ("read_file", {"path": "../a"}),
            ("search_files", {"pattern": "a"}),
            ("search_files", {"pattern": "a "}),
            ("search_files", {"pattern": "a", "output_mode": "count"}),
            ("search_files", {"pattern": "a", "path": "b"}),
            ("web_search", {"query": "x"}),
            ("web_search", {"query": "X"}),
            ("web_search", {"query": "x", "limit": 3}),
            ("session_search", {"query": "1"}),
            ("session_search", {"query": 1}),
            ("skill_view", {"name": "x"}),
            ("terminal", {"command": "ls"}),
            ("terminal", {"command": "ls", "workdir": "/tmp"}),
            ("terminal", {"command": "ls", "timeout": 5}),
            ("mcp_x", {"id": 1}),
            ("mcp_x", {"id": 2}),
            ("mcp_x", {"id": True}),
            ("mcp_x", {"date": "2026-01-01"}),
            ("mcp_x", {"date": "2026-01-02"}),
        )
        keys = [self.key(tool, args) for tool, args in different]
        self.assertEqual(len(set(keys)), len(keys))

    def test_random_orders_and_defaults_never_change_a_key(self) -> None:
        defaults = {"target": "content", "path": ".", "limit": 50, "offset": 0, "output_mode": "content", "context": 0}
        rng = random.Random(7)
        for _ in range(300):
            args = {"pattern": rng.choice("abc"), **{k: v for k, v in defaults.items() if rng.random() < 0.5}}
            items = list(args.items())
            rng.shuffle(items)
            spelled = {k: str(v) if isinstance(v, int) and rng.random() < 0.5 else v for k, v in items}
            self.assertEqual(self.key("search_files", spelled), self.key("search_files", {"pattern": args["pattern"]}))

    def test_a_default_that_is_spelled_out_is_the_call_without_it(self) -> None:
        self.assertEqual(
            self.key("terminal", {"command": "ls", "timeout": "180", "background": False, "workdir": None}),
            self.key("terminal", {"command": "ls"}),
        )
        self.assertEqual(self.key("web_search", {"query": "x", "limit": 5}), self.key("web_search", {"query": "x"}))
        self.assertNotEqual(self.key("mcp_x", {"limit": 5}), self.key("mcp_x", {}))
        self.assertNotEqual(
            self.key("terminal", {"command": "ls", "background": 0}), self.key("terminal", {"command": "ls"})
        )

    def test_a_key_is_json_after_the_tool_name(self) -> None:
        self.assertEqual(json.loads(self.key("mcp_x", {"b": 1, "a": 2}).split(" ", 1)[1]), {"a": 2, "b": 1})


if __name__ == "__main__":
    unittest.main()
