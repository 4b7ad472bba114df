"""A cassette's history: rows, what changed between them, and where a model fell."""

from __future__ import annotations

import random
import unittest
from typing import Any

import tests.support  # noqa: F401  (loads the plugin)

from session_cassettes.suite import history


def run(day: int, result: str = "PASS", suite: str = "", model: str = "m", **changes: Any) -> dict[str, Any]:
    return {
        "at": f"2026-11-{day:02}T10:00:00+00:00",
        "result": result,
        "suite": suite,
        "cell": {"model": model, "arm": ""},
        "model": model,
        "hermes": "0.22.2",
        "plugin": "1.0.0",
        "fingerprint": "f",
        "cassette_sha256": "c",
        "inputs": {"system_prompt": "p", "skills": {"layout": "s"}, "files": {"AGENTS.md": "a"}},
        **changes,
    }


def rows(*runs: dict[str, Any], last: int | None = None) -> list[history.Row]:
    return history.rows((one for found in runs if (one := history.entry(found))), last)


class Rows(unittest.TestCase):
    def test_runs_of_a_suite_are_a_row_and_the_others_a_row_a_day(self) -> None:
        found = rows(run(1), run(1, "FAIL"), run(2, suite="s1"), run(3, "INVALID", suite="s1"), run(3))
        self.assertEqual(
            [(row.group, row.passes, row.runs) for row in found],
            [("2026-11-01", 1, 2), ("s1", 1, 1), ("2026-11-03", 1, 1)],
        )
        self.assertEqual(found[1].counts["INVALID"], 1)

    def test_each_kind_of_change_is_marked_on_its_own(self) -> None:
        inputs = run(1)["inputs"]
        for change, mark in (
            ({"hermes": "0.23.1"}, "Hermes"),
            ({"plugin": "1.1.0"}, "plugin"),
            ({"fingerprint": "g"}, "plugin"),
            ({"cassette_sha256": "d"}, "cassette"),
            ({"model": "m:2"}, "model"),
            ({"inputs": {**inputs, "system_prompt": "q"}}, "system prompt"),
            ({"inputs": {**inputs, "skills": {"layout": "t"}}}, "skill layout"),
            ({"inputs": {**inputs, "files": {"AGENTS.md": "b"}}}, "AGENTS.md"),
        ):
            with self.subTest(mark=mark):
                first, second = rows(run(1), {**run(2), **change})
                self.assertEqual((first.changed, second.changed), ((), (mark,)))

    def test_what_an_older_run_does_not_tell_is_no_change(self) -> None:
        bare = {"at": "2026-10-01T10:00:00+00:00", "result": "PASS", "model": "m"}
        self.assertEqual([row.changed for row in rows(bare, run(1), run(2, inputs=None), run(3))], [(), (), (), ()])

    def test_models_have_rows_of_their_own(self) -> None:
        found = rows(run(1, model="a"), run(1, "FAIL", model="b"), run(2, model="a", hermes="x"))
        self.assertEqual([(row.model, row.changed) for row in found], [("a", ()), ("b", ()), ("a", ("Hermes",))])

    def test_the_last_groups_are_kept_and_marks_still_look_at_all(self) -> None:
        found = rows(run(1), run(2, hermes="x"), run(3, hermes="y"), last=1)
        self.assertEqual([(row.group, row.changed) for row in found], [("2026-11-03", ("Hermes",))])
        self.assertEqual(rows(run(1), last=0), [])

    def test_what_is_no_run_is_left_out(self) -> None:
        for bad in (
            {},
            {"at": 5, "result": "PASS"},
            {"at": "2026-11-01", "result": "GREAT"},
            {"at": "x", "result": "PASS"},
        ):
            self.assertIsNone(history.entry(bad))
        rng = random.Random(1)
        for _ in range(300):
            odd = {key: rng.choice((None, 1, "x", [], {}, value)) for key, value in run(1).items()}
            history.entry(odd)


class Falls(unittest.TestCase):
    def test_it_fell_after_the_last_best_row_and_the_marks_between_are_named(self) -> None:
        good = [run(day) for day in (1, 1, 1, 1, 2, 2, 2, 2)]
        bad = [run(3, "FAIL", hermes="0.23.1") for _ in range(4)] + [run(4, "FAIL", hermes="0.23.1")]
        (fall,) = history.falls(rows(*good, *bad))
        self.assertEqual((fall.before.group, fall.after.group), ("2026-11-02", "2026-11-03"))
        self.assertEqual(fall.changed, ("Hermes",))
        self.assertAlmostEqual(fall.chance, 2 / 70)

    def test_the_chance_of_a_fall_is_that_at_any_of_the_places_that_were_looked_at(self) -> None:
        good = [run(day) for day in (1, 1, 1, 1, 2, 2, 2, 2)]
        bad = [run(3, "FAIL") for _ in range(4)]
        others = [run(day, model="n") for day in (1, 2, 3, 4)]
        for runs, places in ((good[:4] + bad, 1), (good + bad, 2), (good + bad + others, 5)):
            (fall,) = history.falls(rows(*runs))
            self.assertAlmostEqual(fall.adjusted, 2 / 70 * places)

    def test_what_did_not_fall_or_came_back_has_no_fall(self) -> None:
        for results in (("PASS", "PASS"), ("FAIL", "PASS"), ("PASS", "FAIL", "PASS"), ("FAIL", "FAIL"), ("PASS",)):
            with self.subTest(results=results):
                found = rows(*(run(day, result) for day, result in enumerate(results, 1)))
                self.assertEqual(history.falls(found), [])

    def test_a_row_of_invalid_runs_only_says_nothing(self) -> None:
        (fall,) = history.falls(rows(run(1), run(2, "INVALID", hermes="x"), run(3, "FAIL", hermes="x")))
        self.assertEqual((fall.before.group, fall.after.group), ("2026-11-01", "2026-11-03"))
        self.assertEqual(fall.changed, ("Hermes",), "what changed with the INVALID runs lies between, too")
