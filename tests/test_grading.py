"""Grading: what a run's evidence must hold for a verdict, and what makes it INVALID."""

from __future__ import annotations

import itertools
import unittest
from typing import Any, Sequence

from tests.test_cassette_store import ARM, CLAIM, FACTS, HIT, LEDGER

from session_cassettes.cassette_store import Answered, Arm, Claim, Ledger
from session_cassettes.middleware import EXIT_CODES, Child, PinResult, describe_path, doubts, grade
from session_cassettes.suite.pins import pin_holds


CHILD_ENDED = Child(0, False, "s2", "auth.py on 8080")


def same(printed: str, answer: str) -> bool:
    return printed == answer


def held(pins: Sequence[str], ledger: Ledger) -> list[PinResult]:
    return [PinResult(pin, pin_holds(pin, ledger.answer)) for pin in pins]


def suspected(arm: Arm, ledger: Ledger | None, claim: Claim | None, child: Child) -> list[str]:
    return doubts(arm, ledger, claim, child, ledger is not None and same(child.printed, ledger.answer), asked="careful")


class Grading(unittest.TestCase):
    def test_invalid_beats_fail_beats_diverged_beats_pass(self) -> None:
        miss = Answered("terminal", {}, "miss")
        for invalid, failing, missing in itertools.product((False, True), repeat=3):
            ledger = LEDGER._replace(calls=(HIT, miss) if missing else (HIT,))
            pins = ("auth.py", "9090") if failing else ("auth.py",)
            verdict = grade(held(pins, ledger), 7, ledger, ["a doubt"] if invalid else [])
            expected = "INVALID" if invalid else "FAIL" if failing else "DIVERGED" if missing else "PASS"
            with self.subTest(expected=expected):
                self.assertEqual(verdict.result, expected)
                self.assertEqual(verdict.exit_code, {"PASS": 0, "FAIL": 1, "DIVERGED": 3, "INVALID": 4}[expected])
                self.assertEqual(verdict.pins, tuple(PinResult(pin, pin == "auth.py") for pin in pins))
                self.assertEqual(verdict.misses, (miss,) if missing else ())
                self.assertEqual(verdict.reasons, ("a doubt",) if invalid else ())

    def test_nothing_pinned_and_nothing_known_never_pass(self) -> None:
        self.assertEqual(grade([], 7, LEDGER, []).result, "FAIL")
        verdict = grade([PinResult("a", False)], 7, None, [])
        self.assertEqual((verdict.result, len(verdict.reasons), verdict.path), ("INVALID", 1, "not known"))
        odd = LEDGER._replace(calls=(HIT._replace(how="live"),))
        self.assertEqual(grade([PinResult("auth.py", True)], 7, odd, []).result, "DIVERGED")
        self.assertNotIn(2, EXIT_CODES.values())

    def test_perfect_evidence_leaves_no_doubt(self) -> None:
        self.assertEqual(suspected(ARM, LEDGER, CLAIM, CHILD_ENDED), [])

    CHANGES: dict[str, tuple[dict[str, Any], ...]] = {
        "arm": ({"id": "a2"}, {"plugin": "2"}, {"fingerprint": "0"}, {"fingerprint": ""}),
        "claim": (
            {"arm": "a2"},
            {"session": "s9"},
            {"session": ""},
            {"turn": "t9"},
            {"model": "m"},
            {"error": "why"},
            {"facts": FACTS._replace(yolo=True)},
            {"facts": FACTS._replace(plugin="2")},
            {"facts": FACTS._replace(fingerprint="0")},
            {"facts": FACTS._replace(pid=1)},
            {"facts": FACTS._replace(hermes="0")},
        ),
        "ledger": (
            {"arm": "a2"},
            {"turn": ""},
            {"sessions": ()},
            {"sessions": ("",)},
            {"sessions": ("s1",)},
            {"sessions": ("s2",)},
            {"model": ""},
            {"answer": ""},
            {"answer": " \n"},
            {"answer": "other"},
            {"live": 1},
            {"live": 2},
            {"live": -1},
            {"finished": False},
            {"truncated": True},
            {"evicted": True},
            {"errors": ("KeyError",)},
            {"models": ("good",)},
            {"models": ("careful", "good")},
            {"foreign": ("terminal",)},
            {"steps": 90},
            {"calls": (HIT._replace(how="live"),)},
            {"facts": FACTS._replace(yolo=True)},
            {"facts": FACTS._replace(pid=1)},
        ),
        "child": (
            {"code": 1},
            {"code": -9},
            {"code": None},
            {"timed_out": True},
            {"session": ""},
            {"session": "s9"},
            {"printed": ""},
            {"printed": "other"},
        ),
    }

    def test_any_single_change_of_the_evidence_makes_the_run_invalid(self) -> None:
        whole = {"arm": ARM, "claim": CLAIM, "ledger": LEDGER, "child": CHILD_ENDED}
        for what, changes in self.CHANGES.items():
            for change in changes:
                with self.subTest(what=what, change=change):
                    self.check_invalid({**whole, what: whole[what]._replace(**change)})
        for what in ("claim", "ledger"):
            self.check_invalid({**whole, what: None})

    def check_invalid(self, evidence: dict[str, Any]) -> None:
        reasons = suspected(evidence["arm"], evidence["ledger"], evidence["claim"], evidence["child"])
        self.assertTrue(reasons)
        for reason in reasons:
            self.assertTrue(reason.isprintable() and reason)
        self.assertEqual(grade([PinResult("auth.py", True)], 7, evidence["ledger"], reasons).result, "INVALID")

    def test_every_field_of_the_evidence_is_changed_above(self) -> None:
        free = {
            "kind",
            "name",
            "request",
            "hosting",
            "created",
            "timeout",
            "folder",
            "cassette_sha",
            "overwrite",
            "rg_major",
            "whole",
            "names",
        }
        told = {"complaint", "before"}  # for the person to read; no evidence
        for what, kind in (("arm", Arm), ("claim", Claim), ("ledger", Ledger), ("child", Child)):
            with self.subTest(what=what, kind=kind):
                changed = {key for change in self.CHANGES[what] for key in change}
                self.assertEqual(changed | (free if kind is Arm else set()), set(kind._fields) - told)

    def test_each_cause_has_a_text_of_its_own(self) -> None:
        def edit(value: Any, **change: Any) -> Any:
            return value._replace(**change)

        causes = {
            "no session claimed": (ARM, None, None, CHILD_ENDED),
            "2 tool calls of the turn ran live before": (ARM, edit(LEDGER, live=2), CLAIM, CHILD_ENDED),
            "left no record": (ARM, None, CLAIM, CHILD_ENDED),
            "record of the tool calls is unfinished": (ARM, edit(LEDGER, finished=False), CLAIM, CHILD_ENDED),
            "printed no session id": (ARM, LEDGER, CLAIM, edit(CHILD_ENDED, session="")),
            "names no session": (ARM, edit(LEDGER, sessions=()), edit(CLAIM, session=""), CHILD_ENDED),
            "printed session s9": (ARM, LEDGER, CLAIM, edit(CHILD_ENDED, session="s9")),
            "no final answer": (ARM, edit(LEDGER, answer=""), CLAIM, CHILD_ENDED),
            "printed another answer": (ARM, LEDGER, CLAIM, edit(CHILD_ENDED, printed="x")),
            "exited with status 3": (ARM, LEDGER, CLAIM, edit(CHILD_ENDED, code=3)),
            "did not end in time": (ARM, LEDGER, CLAIM, edit(CHILD_ENDED, timed_out=True, code=-9)),
            "could not be started": (ARM, LEDGER, CLAIM, edit(CHILD_ENDED, code=None)),
            "failed to load": (ARM, LEDGER, edit(CLAIM, error="the cassette failed to load: x"), CHILD_ENDED),
            "internal error: KeyError": (ARM, edit(LEDGER, errors=("KeyError",)), CLAIM, CHILD_ENDED),
            "more than 5,000 tool calls": (ARM, edit(LEDGER, truncated=True), CLAIM, CHILD_ENDED),
            "more than 16 unfinished replays": (ARM, edit(LEDGER, evicted=True), CLAIM, CHILD_ENDED),
            "belongs to another run": (edit(ARM, id="a2"), LEDGER, CLAIM, CHILD_ENDED),
            "other plugin code": (edit(ARM, plugin="2"), LEDGER, CLAIM, CHILD_ENDED),
            "HERMES_YOLO_MODE": (ARM, LEDGER, edit(CLAIM, facts=edit(FACTS, yolo=True)), CHILD_ENDED),
            "answered by good, not by careful": (ARM, edit(LEDGER, models=("good",)), CLAIM, CHILD_ENDED),
            "answered by something else: terminal, x": (
                ARM,
                edit(LEDGER, foreign=("terminal", "x", "terminal")),
                CLAIM,
                CHILD_ENDED,
            ),
            "at its limit of 90 steps": (ARM, edit(LEDGER, steps=90), CLAIM, CHILD_ENDED),
            "is not about the same turn": (ARM, edit(LEDGER, turn="t9"), CLAIM, CHILD_ENDED),
        }
        for part, (arm, ledger, claim, child) in causes.items():
            with self.subTest(part=part, arm=arm):
                found = suspected(arm, ledger, claim, child)
                self.assertEqual(sum(part in reason for reason in found), 1, (part, found))
        self.assertEqual(len(set(causes)), 23)

    def test_a_turn_at_its_limit_has_that_reason_alone(self) -> None:
        """0.22 exits with 1 at the limit, a turn there may have no last word, and a live call is listed nowhere."""
        out_of_steps = ["the turn stopped at its limit of 1 step"]
        for ledger, child, reasons in (
            (LEDGER._replace(steps=1), CHILD_ENDED._replace(code=1), out_of_steps),
            (LEDGER._replace(steps=1, answer=""), CHILD_ENDED._replace(printed=""), out_of_steps),
            (
                LEDGER._replace(live=1, foreign=("terminal",)),
                CHILD_ENDED,
                ["1 tool call of the turn ran live before the replay took over"],
            ),
        ):
            with self.subTest(ledger=ledger):
                self.assertEqual(suspected(ARM, ledger, CLAIM, child), reasons)

    def test_all_models_that_answered_are_named_and_the_one_that_should_have(self) -> None:
        mixed = LEDGER._replace(models=("careful", "good"))
        self.assertEqual(
            suspected(ARM, mixed, CLAIM, CHILD_ENDED),
            ["the turn was answered by careful and good, not by careful alone"],
        )
        self.assertEqual(doubts(ARM, mixed, CLAIM, CHILD_ENDED, True), [], "nobody asked for a model")
        self.assertEqual(
            doubts(ARM, LEDGER, CLAIM, CHILD_ENDED, True, asked="other"),
            ["the turn was answered by careful, not by other"],
        )

    def test_one_cause_is_one_reason(self) -> None:
        def edit(value: Any, **change: Any) -> Any:
            return value._replace(**change)

        stopped = edit(CHILD_ENDED, timed_out=True, code=-9, printed="", session="")
        failed = edit(CHILD_ENDED, code=1, printed="bad key", session="")
        for what, ledger, claim, child in (
            ("stopped", None, CLAIM, stopped),
            ("stopped after the answer", LEDGER, CLAIM, stopped),
            ("failed", None, CLAIM, failed),
            ("failed after the answer", LEDGER, CLAIM, failed),
            ("unfinished", edit(LEDGER, finished=False, answer=""), CLAIM, edit(CHILD_ENDED, printed="")),
            ("bound to nothing", edit(LEDGER, errors=("why",)), edit(CLAIM, error="why"), CHILD_ENDED),
            ("no session", edit(LEDGER, sessions=()), CLAIM, CHILD_ENDED),
            ("no record", None, CLAIM, CHILD_ENDED),
            ("unclaimed", None, None, CHILD_ENDED),
        ):
            with self.subTest(what=what):
                found = suspected(ARM, ledger, claim, child)
                self.assertEqual(len(found), 1, found)
        for kept in (CLAIM, None):
            with self.subTest(kept=kept):
                why = ["what the session left cannot be trusted"]
                self.assertEqual(doubts(ARM, None, kept, CHILD_ENDED, False, why), why)


class Paths(unittest.TestCase):
    def calls(self, *hows: Any) -> list[Answered]:
        return [Answered("t", {}, "hit", how) if isinstance(how, int) else Answered("t", {}, how) for how in hows]

    def test_the_two_paths_of_the_readme_read_as_there(self) -> None:
        self.assertEqual(
            describe_path(self.calls(3, "synthesized"), 7),
            "2 calls: 1 hit, 1 synthesized, 0 miss; subset of recording, in order (7 recorded)",
        )
        self.assertEqual(
            describe_path(self.calls("miss"), 7), "1 call: 0 hit, 0 synthesized, 1 miss; no recorded call reused"
        )

    def test_order_and_wholeness_are_told(self) -> None:
        for hows, recorded, part in (
            ((0, 1, 2), 3, "the recording's own path (3 recorded)"),
            ((0, 1), 3, "subset of recording, in order"),
            ((1, 0), 3, "subset of recording, in another order"),
            ((0, 0, 2), 3, "subset of recording, in order"),
            ((0, "miss"), 2, "subset of recording, in order"),
            ((), 0, "0 calls: 0 hit, 0 synthesized, 0 miss; no call: nothing of the tape was read"),
            ((2, 1, 0), 3, "in another order (3 recorded)"),
            ((0, 1, "synthesized"), 2, "subset of recording, in order"),
        ):
            with self.subTest(hows=hows):
                self.assertIn(part, describe_path(self.calls(*hows), recorded))


if __name__ == "__main__":
    unittest.main()
