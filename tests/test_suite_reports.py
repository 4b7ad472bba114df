"""What all reports share: the words, and numbers that say neither more nor less than is known."""

from __future__ import annotations

import unittest

from tests.suite_samples import HOSTILE, call, cell, hostile, run, suite

from session_cassettes.cassette_store import shown
from session_cassettes.suite import reports, stats
from session_cassettes.suite.cells import Cell, Key, Summary, summarize


def summary(results: str, require: float = 1.0) -> Summary:
    return summarize(cell("auth", results), require)


class Numbers(unittest.TestCase):
    def test_a_percent_says_nought_and_hundred_only_of_nothing_and_all(self) -> None:
        for passes, runs in ((0, 5), (5, 5), (1, 1_000), (999, 1_000), (4_999, 5_000), (1, 2)):
            with self.subTest(passes=passes, runs=runs):
                found = summary("P" * 1)._replace(share=passes / runs, interval=stats.wilson(passes, runs))
                texts = reports.percents(found, 0.5)
                assert texts is not None and found.interval is not None and found.share is not None
                for text, number in zip(texts, (found.share, *found.interval)):
                    self.assertEqual((float(text) == 0, float(text) == 100), (number == 0, number == 1))
                    self.assertAlmostEqual(float(text) / 100, number, delta=0.01)

    def test_a_lower_end_short_of_what_is_required_looks_short_of_it(self) -> None:
        found = summary("P")._replace(share=0.95, interval=(0.8999, 0.97))
        self.assertEqual(reports.percents(found, 0.9), ("95.00", "89.99", "97.00"))
        self.assertEqual(reports.percents(found, 0.5), ("95", "90", "97"))

    def test_without_a_try_there_is_no_percent(self) -> None:
        self.assertEqual(reports.share_text(summary("III"), 1.0), "no data")
        self.assertEqual((reports.in_a_row_text(summary("")), reports.in_a_row_fact(summary(""))), ("-", ""))

    def test_runs_in_a_row_are_told_of_more_tries_than_these_only(self) -> None:
        for results, told in (
            ("PPP", "-"),
            ("PPF", "-"),
            ("PPPF", "0.25"),
            ("PPPP", "1"),
            ("PPPPF", "0.4"),
            ("PPFFF", "0"),
        ):
            with self.subTest(results):
                self.assertEqual(reports.in_a_row_text(summary(results)), told)

    def test_a_chance_stays_on_its_side_of_what_counts(self) -> None:
        for chance in (0.0499999, 0.05, 0.0500001, 0.0504, 0.0496, 1.0, 0.00012):
            with self.subTest(chance=chance):
                shown = float(reports.chance_text(chance).removeprefix("p = "))
                self.assertEqual(shown <= stats.ALPHA, chance <= stats.ALPHA)
        self.assertEqual(reports.chance_text(1e-9), "p < 0.0001")

    def test_what_is_not_known_is_a_dash(self) -> None:
        for text in (reports.seconds_text(None), reports.tokens_text(None), reports.cost_text(None)):
            self.assertEqual(text, "-")
        self.assertEqual(reports.cost_text(0.0), "$0.00")


class Sentences(unittest.TestCase):
    def test_the_verdicts_word_comes_first_and_is_the_worst(self) -> None:
        for results, head in (
            (("PP", "PP"), "PASS: all 2 cells reached the required 100 %"),
            (("PP",), "PASS: the cell reached the required 100 %"),
            (("PP", "II"), "INVALID: 1 of 2 cells reached the required 100 % (1 INVALID)"),
            (("PD", "II"), "DIVERGED: 0 of 2 cells reached the required 100 % (1 DIVERGED, 1 INVALID)"),
            (("PF", "PD"), "FAIL: 0 of 2 cells reached the required 100 % (1 FAIL, 1 DIVERGED)"),
            ((), "nothing graded: the suite has no cell"),
        ):
            with self.subTest(results=results):
                made = suite([cell(f"c{at}", each) for at, each in enumerate(results)])
                self.assertEqual(reports.headline(made), head)

    def test_no_comparison_is_ever_called_equal(self) -> None:
        made = suite([cell(name, "PPPPP", model) for name in ("a", "b") for model in ("one", "other")], noise=True)
        for pair in made.pairs:
            told = reports.pair_text(pair)
            self.assertIn("no difference shown", told)
            self.assertNotRegex(told, "equal|same")
            self.assertRegex(told, "the least that would show|none could be")

    def test_a_difference_names_the_better_side_first(self) -> None:
        (pair,) = suite([cell("a", "F" * 8, "one"), cell("a", "P" * 8, "other")]).pairs
        self.assertEqual(
            reports.pair_text(pair), "a: other passes more often than one, 8 of 8 against 0 of 8, adjusted p = 0.00016"
        )

    def test_a_cell_that_never_passed_is_named_but_not_one_that_was_never_tried(self) -> None:
        made = suite([cell("a", "FFF"), cell("b", "FFP"), cell("c", "III"), cell("d", "DD")])
        self.assertEqual([each.cell.key.cassette for each in reports.never_passed(made)], ["a", "d"])

    def test_answers_that_are_all_one_text_are_remarked(self) -> None:
        made = suite([cell("a", "PPP", answers=["42"]), cell("b", "PPP"), cell("c", "P")])
        self.assertIn((reports.ONE_ANSWER, ["a with default model"]), reports.remarks(made))

    def test_tries_that_are_missing_are_remarked(self) -> None:
        made = suite([cell("a", "PPPI")])
        self.assertIn("1 of 4 tries missing, which could change the outcome", dict(reports.remarks(made)))

    def test_what_is_wrong_with_a_cell_is_remarked(self) -> None:
        made = suite([Cell(Key("a", "", ""), 1, (run(),), "the cassette\nchanged")])
        self.assertIn("the cassette\\nchanged", dict(reports.remarks(made)))


class Texts(unittest.TestCase):
    def test_a_line_is_one_line_that_can_be_printed(self) -> None:
        for text in HOSTILE:
            with self.subTest(text=text[:40]):
                self.assertTrue(shown(text).isprintable())
                self.assertEqual(shown("a b é日"), "a b é日")

    def test_a_text_keeps_its_lines_and_its_spaces_and_no_other_control(self) -> None:
        self.assertEqual(reports.shown_text("a\r\n\tb\xa0c\r\x1b\u202e"), "a\n\tb\xa0c\\r\\x1b\\u202e")

    def test_what_is_cut_says_so(self) -> None:
        self.assertEqual(reports.clip("abcdef", 4), "abc…")
        self.assertEqual(reports.clipped("abcdef", 4), "abcd…\n(2 more characters: see the run file)")
        self.assertEqual(reports.clipped("abcd", 4), "abcd")

    def test_arguments_that_no_json_can_hold_do_not_stop_a_report(self) -> None:
        deep: list[object] = []
        for _ in range(100_000):
            deep = [deep]
        for value in (deep, {1: object()}, {("a",): 1}, float("nan")):
            self.assertIsInstance(reports.compact(value, 50), str)
            self.assertLessEqual(len(reports.compact(value, 50)), 50)

    def test_evidence_is_bounded_and_holds_pins_misses_and_the_answer(self) -> None:
        misses = tuple(call("terminal", {"command": "x" * 9_999}, "miss", "why", "near") for _ in range(300))
        lines = reports.evidence(run("FAIL", "y" * 99_999, calls=misses, reasons=("r",) * 300), 7, 100)
        text = "\n".join(lines)
        self.assertLess(len(text), 20_000)
        for part in (
            "run 7: FAIL",
            "[ok] auth.py",
            "[--] re:",
            "miss: terminal",
            "280 more misses",
            "280 more reasons",
        ):
            self.assertIn(part, text)
        self.assertIn("99,899 more characters", text)

    def test_runs_that_did_not_pass_come_worst_first_with_their_numbers(self) -> None:
        found = reports.failing(cell("a", "PIDF").runs)
        self.assertEqual([(at, one.result) for at, one in found], [(4, "FAIL"), (3, "DIVERGED"), (2, "INVALID")])

    def test_rows_are_taken_while_they_fit_and_no_further_one_is_made(self) -> None:
        made = []

        def rows():  # type: ignore[no-untyped-def]
            for at in range(100):
                made.append(at)
                yield "é" * 10

        self.assertEqual(len(reports.fitting(rows(), 70)), 3)
        self.assertEqual(len(made), 4)

    def test_a_hostile_suite_has_words_that_can_be_printed(self) -> None:
        for seed in range(20):
            made = hostile(seed)
            for text in (reports.headline(made), reports.footing(made), *(reports.pair_text(p) for p in made.pairs)):
                self.assertTrue(text.isprintable())


if __name__ == "__main__":
    unittest.main()
