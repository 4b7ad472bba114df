"""Who answered: models, plugins, limits and reasoning, each seen in a real Hermes, with the right verdict."""

from __future__ import annotations

import json
import sys
import unittest
from typing import Any, Mapping, Sequence

from tests.lanes.case import lane_suite, model
from tests.test_lanes import TurnsCase

from session_cassettes.cassette_store import Call, Cassette, Ledger, Recorder

REQUEST = "Which port does the auth server bind?"
ToolCall, Step = model.ToolCall, model.Step
READ = ToolCall("read_file", {"path": "auth.py"})
LS = ToolCall("terminal", {"command": "ls"})
ANSWER = Step(text="It binds port 8080.")


def steps(*taken: Any) -> Any:
    """A brain that takes these steps, whatever it is asked, and then the last one again."""

    def brain(messages: Sequence[Mapping[str, Any]], _: Sequence[str]) -> Any:
        return taken[min(sum(1 for _ in model.batches(messages)), len(taken) - 1)]

    return brain


class VerdictCase(TurnsCase):
    """Replays one small cassette, `c`: by the command, or (much faster) by a turn of the long-lived process."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = self.workspace({"auth.py": "AUTH_PORT = 8080\n"})
        self.store.prepare()
        page = '{"content": "1|AUTH_PORT = 8080", "total_lines": 1}'
        calls = (Call("read_file", dict(READ.args), page), Call("terminal", dict(LS.args), '{"output": "auth.py"}'))
        recorder = Recorder(self.version, sys.platform, "rg")
        kept = Cassette(
            "c", REQUEST, "8080", "careful", str(self.folder), recorder=recorder, calls=calls, pins=("8080",)
        )
        self.store.save(kept, overwrite=True)

    def run_c(self, *words: str) -> Any:
        """Replay `c` and return the run, as `--json` tells it."""
        done = self.hermes("cassette", "run", "c", "--json", *words, cwd=self.folder)
        self.assertIn(done.returncode, (0, 1, 3, 4), done.stdout + done.stderr)
        run = json.loads(done.stdout)
        self.assertEqual(run["exit_code"], done.returncode)
        return run

    def ledger(self, temperament: str = "") -> Ledger:
        """Replay `c` in the long-lived process and return the ledger."""
        return self.replay("c", self.folder, temperament)[1]

    def check(self, run: Any, result: str, *reasons: str) -> None:
        self.assertEqual((run["result"], run["reasons"]), (result, list(reasons)), run)

    def record(self, name: str, *words: str) -> Any:
        """Record headlessly and return what `--json` tells."""
        query = ("--query", REQUEST, "--json", *words)
        done = self.hermes("cassette", "record", name, *query, cwd=self.folder)
        told = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if told["saved"] else 2, done.stdout + done.stderr)
        return told


class Models(VerdictCase):
    config = (
        "fallback_model:\n  provider: custom\n  model: good\n  base_url: BASE_URL\n  api_key: none\n"
        "agent:\n  api_max_retries: 1\n"
        "model_aliases:\n  quick:\n    model: gpt-oss:20b\n    provider: custom\n    base_url: BASE_URL\n"
    )

    def setUp(self) -> None:
        super().setUp()
        self.model.brains["good"] = self.model.brain = steps(Step([READ]), ANSWER)

    def test_a_fallback_that_answered_is_not_the_model_that_was_asked(self) -> None:
        self.model.brains["cheap"] = steps(Step(status=404, text="no such model"))
        run = self.run_c("--model", "cheap")
        self.check(run, "INVALID", "the turn was answered by good, not by cheap")
        self.assertEqual((run["model"], run["models"]), ("good", ["good"]))
        listed = self.hermes("cassette", "list", cwd=self.folder).stdout
        self.assertRegex(listed, r"(?m)^c .* INVALID +good\b")

    def test_whatever_made_it_fall_back_the_models_that_answered_are_known(self) -> None:
        gone = steps(Step([READ]), Step([LS]), Step(status=503, text="gone"))
        for brain, models in (
            (steps(Step(status=503, text="overloaded")), ("good",)),
            (steps(Step(status=401, text="who are you?")), ("good",)),
            (gone, ("cheap", "good")),
        ):
            with self.subTest(models=models):
                self.model.brains["cheap"] = brain
                ledger = self.ledger("cheap")
                self.assertEqual((ledger.model, ledger.models, ledger.foreign), ("cheap", models, ()))

    def test_without_a_model_that_was_asked_for_the_verdict_names_the_one_that_answered(self) -> None:
        self.model.brains["careful"] = steps(Step(status=404, text="no such model"))
        run = self.run_c()
        self.check(run, "PASS")
        self.assertEqual(run["model"], "good")

    def test_a_fallback_that_took_over_before_the_session_began_is_found_out(self) -> None:
        """Without the provider's key Hermes takes the fallback at once, and says so on standard output."""
        run = self.run_c("--model", "cheap", "--provider", "anthropic")
        self.check(run, "INVALID", "the turn was answered by good, not by cheap")

    def test_an_honest_run_is_never_taken_for_another_models(self) -> None:
        for words in ("quick", "gpt-oss:20b"):
            with self.subTest(words=words):
                self.check(self.run_c("--model", words), "PASS")

    def test_a_recording_stores_what_answered_with_a_warning(self) -> None:
        self.model.brains["cheap"] = steps(Step(status=404, text="no such model"))
        for words in ((), ("--provider", "anthropic")):
            with self.subTest(words=words):
                told = self.record("d", "--model", "cheap", "--overwrite", *words)
                self.assertEqual(told["model"], "good")
                self.assertEqual(told["warnings"], ["the turn was answered by good, not by cheap"])


OUTER = """
def answers(next_call=None, args=None, tool_name="", **_):
    if tool_name == "terminal":
        return '{"output": "8080, from elsewhere", "exit_code": 0, "error": null}'
    return next_call(args)

def register(ctx):
    ctx.register_middleware("tool_execution", answers)
"""
BLOCKER = """
def blocks(tool_name="", **_):
    if tool_name == "terminal":
        return {"action": "block", "message": "by policy: 8080"}

def register(ctx):
    ctx.register_hook("pre_tool_call", blocks)
"""


class OuterPlugin(VerdictCase):
    others = {"aaa": OUTER}

    def test_a_call_that_never_came_by_us_makes_the_run_invalid_and_a_recording_warn(self) -> None:
        self.model.brain = steps(Step([READ]), Step([LS]), ANSWER)
        run = self.run_c()
        self.check(run, "INVALID", "a tool call was answered by something else: terminal")
        self.assertEqual(run["plugins_before"], ["aaa"])
        told = self.record("d")
        self.assertEqual(told["not_kept"], ["terminal"])
        self.assertIn("terminal: it was answered by something else", told["warnings"])
        self.model.brain = steps(Step([READ]), ANSWER)
        self.assertEqual(self.ledger().foreign, ())

    def test_doctor_and_run_name_the_plugins_that_stand_before_ours(self) -> None:
        self.model.brain = steps(Step([READ]), ANSWER)
        named = "aaa may answer or change tool calls before this plugin sees them"
        for words in (("doctor",), ("run", "c")):
            with self.subTest(words=words):
                self.assertIn(named, self.hermes("cassette", *words, cwd=self.folder).stdout)


class BlockingPlugin(VerdictCase):
    others = {"zzz": BLOCKER}

    def test_a_hook_that_blocks_before_we_are_asked_makes_the_run_invalid(self) -> None:
        """0.19 asks the hooks first; later versions ask us, and our answer spares them."""
        self.model.brain = steps(Step([LS, READ]), Step([LS]), ANSWER)
        ledger = self.ledger()
        asked_first = self.version.startswith("0.19")
        self.assertEqual(ledger.foreign, ("terminal", "terminal") if asked_first else ())
        self.assertEqual((len(ledger.calls), ledger.before), (1 if asked_first else 3, ()))


TOOLS = """
def register(ctx):
    for name in ("lab_alpha", "lab_beta"):
        schema = {"name": name, "description": f"Looks up {name}.", "parameters": {"type": "object", "properties": {}}}
        ctx.register_tool(name, "labtools", schema, lambda args, **_: "live")
"""


class DeferredTools(VerdictCase):
    config = "tools:\n  tool_search:\n    enabled: on\n"
    others = {"lab": TOOLS}

    def test_look_ups_among_the_tools_are_answered_like_other_read_only_ones(self) -> None:
        search = ToolCall("tool_search", {"queries": ["alpha"], "query": "alpha"})
        describe = ToolCall("tool_describe", {"names": ["lab_alpha"], "name": "lab_alpha"})
        self.model.brain = steps(Step([search]), Step([describe, READ]), Step([search]), ANSWER)
        told = self.record("d")
        self.assertEqual((told["warnings"], told["not_kept"]), ([], []))
        seen = {call["tool"] for call in told["calls"]}
        asked = set() if self.version.startswith("0.19") else {"tool_search", "tool_describe"}
        self.assertEqual(seen, {"read_file"} | asked)  # 0.19 answers look-ups before any middleware
        self.store.change_pins("d", lambda _: ("8080",))
        done = self.hermes("cassette", "run", "d", "--json", cwd=self.folder)
        self.check(json.loads(done.stdout), "PASS")

    def test_a_deferred_tool_itself_is_answered_like_any_other(self) -> None:
        inner = {"name": "lab_alpha", "arguments": {}}
        bridge = ToolCall("tool_call", {**inner, "calls": [inner, {"name": "lab_beta", "arguments": {}}]})
        self.model.brain = steps(Step([bridge]), Step([READ]), ANSWER)
        ledger = self.ledger()
        self.assertEqual((ledger.calls[0].tool, ledger.calls[0].how, ledger.foreign), ("lab_alpha", "miss", ()))


class Calls(VerdictCase):
    def test_calls_that_hermes_answers_itself_are_not_passed_over(self) -> None:
        for call in (ToolCall("no_such_tool"), ToolCall("terminal", written="[1, 2]")):
            with self.subTest(call=call):
                self.model.brain = steps(Step([READ, call]), ANSWER)
                self.assertEqual(self.ledger().foreign, (call.tool,))

    def test_calls_that_are_all_called_the_same_are_told_apart(self) -> None:
        named = [ToolCall(call.tool, call.args, id="call_0") for call in (READ, LS)]
        left = iter([Step([named[0]]), Step([named[1]])])  # Hermes shows the model only one call of a name
        self.model.brain = lambda _, __: next(left, ANSWER)
        ledger = self.ledger()
        self.assertEqual([call.tool for call in ledger.calls], [READ.tool, LS.tool])
        for call in ledger.calls:  # 0.22 gives the second a name of its own
            self.assertTrue(call.id.startswith("call_0"))
        self.assertEqual(ledger.foreign, ())

    def test_every_tool_that_hermes_offers_comes_by_us(self) -> None:
        asked: list[str] = []

        def every(_: Any, tools: Sequence[str]) -> Any:
            left = [tool for tool in tools if tool not in asked][:4]
            asked.extend(left)
            return (
                Step([ToolCall(tool, {"command": "true", "path": "x", "query": "x"}) for tool in left] or ())
                if left
                else ANSWER
            )

        self.model.brain = every
        self.assertEqual(self.ledger().foreign, ())
        self.assertGreater(len(asked), 12)


class Compaction(VerdictCase):
    """A turn whose conversation is compacted: what came before stands in Hermes's database only."""

    config = "compression:\n  enabled: true\n  threshold: 0.5\n  protect_first_n: 1\n  protect_last_n: 2\n  target_ratio: 0.1\n"
    others = {"aaa": OUTER.replace('tool_name == "terminal"', '(args or {}).get("command") == "ls -x"')}

    def test_a_call_that_was_compacted_away_is_still_compared(self) -> None:
        page = json.dumps({"output": "word " * 3000, "exit_code": 0, "error": None})
        self.store.save(
            self.store.read("c")[0]._replace(calls=(Call("terminal", dict(LS.args), page),)), overwrite=True
        )
        self.model.toolless = lambda _, __: Step(text="The port was asked for. " * 20)
        self.addCleanup(setattr, self.model, "toolless", None)
        other = ToolCall("terminal", {"command": "ls -x"})
        for second, foreign in ((LS, ()), (other, ("terminal",))):
            with self.subTest(second=second):
                large = Step([LS], tokens=110_000)
                left = iter([Step([LS]), Step([second]), Step([LS]), Step([LS]), large, Step([LS]), Step([LS])])
                self.model.brain = lambda _, __, left=left: next(left, ANSWER)
                seen = len(self.model.requests)
                self.assertEqual(self.ledger().foreign, foreign)
                shown = json.dumps(self.model.requests[-1]["messages"])
                self.assertLess(shown.count('"tool_calls"'), 6, "nothing was compacted away")
                self.assertGreater(len(self.model.requests) - seen, 7)


class Limits(VerdictCase):
    config = "agent:\n  max_turns: 2\n"

    def setUp(self) -> None:
        super().setUp()
        many = [Step([ToolCall("terminal", {"command": f"ls -{letter}"})]) for letter in "lart"]

        def endless(messages: Sequence[Mapping[str, Any]], _: Sequence[str]) -> Any:
            if "maximum number of tool-calling iterations" in str(messages[-1].get("content")):
                return Step(text="Let me check auth.py for 8080.")
            return many[sum(1 for _ in model.batches(messages))]

        self.endless, self.model.brain = endless, endless
        self.model.toolless = endless

    def tearDown(self) -> None:
        self.model.toolless = None

    def test_a_turn_that_ran_out_of_steps_is_no_pass_whatever_its_last_word_holds(self) -> None:
        self.check(self.run_c(), "INVALID", "the turn stopped at its limit of 2 steps")

    def test_it_is_not_recorded_and_replaces_nothing(self) -> None:
        before = self.store.path("c").read_bytes()
        told = self.record("c", "--overwrite")
        self.assertEqual(told["why"], "the turn stopped at its limit of 2 steps")
        self.assertEqual(self.store.path("c").read_bytes(), before)

    def test_an_answer_with_the_last_step_is_one(self) -> None:
        self.model.brain = steps(Step([READ]), ANSWER)
        self.assertEqual(self.ledger().steps, 0)


ENDS_BADLY = """
import os

def ends(**_):
    os._exit(3)

def register(ctx):
    ctx.register_hook("on_session_end", ends)
"""


class BadEnds(VerdictCase):
    others = {"ends": ENDS_BADLY}

    def test_a_session_that_ends_with_an_error_replaces_nothing(self) -> None:
        self.model.brain = steps(Step([READ]), Step(text="It binds 9090."))
        before = self.store.path("c").read_bytes()
        told = self.record("c", "--overwrite")
        self.assertIn("hermes chat exited with status 3", told["why"])
        self.assertEqual(self.store.path("c").read_bytes(), before)
        self.assertEqual(list((self.home.data / "recordings").iterdir()), [])


class Reasoning(VerdictCase):
    THOUGHT = "The port?\nPerhaps 9090, or 8080, and this line is longer than any frame of eighty columns could be."

    def test_what_a_model_thought_aloud_is_no_part_of_what_it_printed(self) -> None:
        for field in ("reasoning_content", "reasoning"):
            with self.subTest(field=field):
                self.model.brain = steps(
                    Step([READ], reasoning=self.THOUGHT, reasoning_field=field),
                    Step([LS], reasoning="And then?", reasoning_field=field),
                    Step(text="It binds port 8080.\n\nSure.", reasoning="So it is 8080.\n", reasoning_field=field),
                )
                self.check(self.run_c(), "PASS")

    def test_thoughts_within_the_text_are_none_of_it_either(self) -> None:
        self.model.brain = steps(
            Step([READ], text=f"<think>\n{self.THOUGHT}\n</think>\nLet me look."),
            Step(text="<think>8080, then.</think>\n\nIt binds port 8080."),
        )
        self.check(self.run_c(), "PASS")

    def test_a_fact_that_was_only_thought_is_not_in_the_answer(self) -> None:
        self.model.brain = steps(Step([READ], reasoning="8080!"), Step(text="It binds a port.", reasoning="8080!\n"))
        run = self.run_c()
        self.check(run, "FAIL")
        self.assertEqual(run["answer"], "It binds a port.")

    def test_a_whole_answer_is_read_like_a_streamed_one(self) -> None:
        self.model.streams = False
        self.addCleanup(setattr, self.model, "streams", True)
        self.model.brain = steps(Step([READ], reasoning=self.THOUGHT), Step(text="Port 8080.", reasoning="Aha.\n"))
        self.check(self.run_c(), "PASS")


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return lane_suite(
        loader, Models, OuterPlugin, BlockingPlugin, DeferredTools, Calls, Compaction, Limits, BadEnds, Reasoning
    )


if __name__ == "__main__":
    unittest.main()
