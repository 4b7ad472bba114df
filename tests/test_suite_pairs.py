"""Which sides are compared, and how: never the runs of two cassettes in one table."""

from __future__ import annotations

import unittest

from tests.suite_samples import cell, suite

from session_cassettes.suite import pairs, stats
from session_cassettes.suite.cells import summarize


def compared(*cells: tuple[str, str, str], halves: bool = False) -> tuple[pairs.Pair, ...]:
    made = [cell(cassette, results, model) for cassette, results, model in cells]
    return pairs.compare([summarize(each, 1.0) for each in made], made if halves else ())


class Comparing(unittest.TestCase):
    def test_two_models_on_one_cassette_are_compared_by_their_runs(self) -> None:
        (found,) = compared(("auth", "PPPPP", "one"), ("auth", "FFFFF", "other"))
        self.assertEqual((found.one, found.other), (pairs.Side("one", 5, 5), pairs.Side("other", 0, 5)))
        self.assertEqual(found.found, stats.Comparison("auth", stats.fisher(5, 5, 0, 5), stats.fisher(5, 5, 0, 5)))
        self.assertEqual((found.smallest, found.votes, found.could_find), (1, None, True))

    def test_over_cassettes_each_has_one_vote_however_often_it_ran(self) -> None:
        found = compared(
            *(("auth", "P" * 20, "one"), ("auth", "F" * 20, "other")),
            *(("logs", "P", "one"), ("logs", "P", "other")),
            *(("port", "F", "one"), ("port", "D", "other")),
        )
        over = found[0]
        self.assertEqual(over.votes, pairs.Votes(both=1, only_one=1, only_other=0, neither=1))
        self.assertEqual((over.one.passes, over.one.runs, over.found.chance), (2, 3, 1.0))
        self.assertEqual((over.smallest, over.could_find), (stats.smallest_sweep(4), False))
        self.assertEqual([each.found.label for each in found[1:]], ["auth", "logs", "port"])

    def test_a_cassette_with_an_invalid_side_has_no_vote(self) -> None:
        over = compared(
            *(("auth", "PP", "one"), ("auth", "II", "other")), *(("logs", "PP", "one"), ("logs", "FF", "other"))
        )[0]
        self.assertEqual(over.votes, pairs.Votes(0, 1, 0, 0))
        self.assertEqual(over.found.label, "over 1 of 2 cassettes")

    def test_without_a_try_nothing_is_compared(self) -> None:
        (found,) = compared(("auth", "PP", "one"), ("auth", "II", "other"))
        self.assertIsNone(found.found.adjusted)
        self.assertFalse(found.found.differs)

    def test_all_that_are_shown_together_are_corrected_together(self) -> None:
        alone = compared(("auth", "PPPPP", "one"), ("auth", "FFFFF", "other"))
        more = compared(("auth", "PPPPP", "one"), ("auth", "FFFFF", "other"), ("auth", "PPPPP", "third"), halves=True)
        self.assertEqual(len(more), 6)
        self.assertGreater(more[0].found.adjusted or 0.0, alone[0].found.adjusted or 1.0)
        self.assertLess(more[0].smallest or 0, alone[0].smallest or 0)

    def test_the_halves_of_one_arm_are_the_noise(self) -> None:
        (found,) = compared(("auth", "PPFFF", "one"), halves=True)
        self.assertTrue(found.halves)
        self.assertEqual((found.one[1:], found.other[1:]), ((2, 2), (0, 3)))
        self.assertEqual(compared(("auth", "P", "one"), halves=True), ())

    def test_too_few_runs_are_told_from_too_many_to_search(self) -> None:
        (few,) = compared(("auth", "PPP", "one"), ("auth", "FFF", "other"))
        self.assertEqual((few.smallest, few.could_find), (None, False))
        many = few._replace(one=few.one._replace(runs=3_000), other=few.other._replace(runs=3_000))
        self.assertTrue(many.could_find)


class Names(unittest.TestCase):
    def test_what_columns_share_is_left_out_side_by_side(self) -> None:
        for columns, names in (
            ([("m", ""), ("n", "")], ["m", "n"]),
            ([("m", "plain"), ("m", "skilled")], ["plain", "skilled"]),
            ([("m", ""), ("m", "skilled")], ["no skill", "skilled"]),
            ([("m", "a"), ("", "b")], ["m + a", "default model + b"]),
            ([("", "")], ["default model"]),
            ([("m", "a"), ("n", "a")], ["m", "n"]),
        ):
            with self.subTest(columns=columns):
                self.assertEqual(list(pairs.column_names(columns).values()), names)

    def test_different_columns_have_different_names(self) -> None:
        columns = [(model, arm) for model in ("", "m", "n") for arm in ("", "a")]
        self.assertEqual(len(set(pairs.column_names(columns).values())), len(columns))

    def test_a_suite_carries_what_was_compared(self) -> None:
        made = suite([cell("auth", "PP", "one"), cell("auth", "PP", "other")], noise=True)
        self.assertEqual([each.halves for each in made.pairs], [False, True, True])


if __name__ == "__main__":
    unittest.main()
