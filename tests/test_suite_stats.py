"""The suite's statistics: against published values, against exact arithmetic, and by simulation."""

from __future__ import annotations

import itertools
import random
import unittest
from fractions import Fraction
from math import comb

import tests.support  # noqa: F401  (loads the plugin)

from session_cassettes.suite import stats


class Wilson(unittest.TestCase):
    #: passes, runs, lower and upper end: R 3.6.2's prop.test, scipy and statsmodels.
    PUBLISHED = (
        (0, 10, 0.0, 0.2775328),
        (10, 10, 0.7224672, 1.0),
        (3, 10, 0.1077913, 0.6032219),
        (0, 20, 0.0, 0.161125158),
        (1, 29, 0.006113214, 0.171755219),
        (15, 148, 0.062386400, 0.160487242),
        (81, 263, 0.255288520, 0.366209577),
        (1, 1, 0.206549314, 1.0),
        (17, 20, 0.639581135, 0.947631254),
    )

    def test_published_intervals_are_met(self) -> None:
        for passes, runs, low, high in self.PUBLISHED:
            with self.subTest(passes=passes, runs=runs):
                found = stats.wilson(passes, runs)
                assert found is not None
                self.assertAlmostEqual(found[0], low, delta=1e-7)
                self.assertAlmostEqual(found[1], high, delta=1e-7)

    def test_no_run_has_no_interval_and_the_ends_are_exact(self) -> None:
        self.assertIsNone(stats.wilson(0, 0))
        for runs in range(1, 300):
            nothing, everything = stats.wilson(0, runs), stats.wilson(runs, runs)
            assert nothing is not None and everything is not None
            self.assertEqual((nothing[0], everything[1]), (0.0, 1.0))

    def test_the_share_lies_within_and_both_directions_mirror(self) -> None:
        for runs in range(1, 60):
            for passes in range(runs + 1):
                found, mirrored = stats.wilson(passes, runs), stats.wilson(runs - passes, runs)
                assert found is not None and mirrored is not None
                self.assertTrue(0 <= found[0] <= passes / runs <= found[1] <= 1)
                self.assertAlmostEqual(found[0], 1 - mirrored[1], delta=1e-12)

    def test_what_is_no_count_is_refused(self) -> None:
        for passes, runs in ((-1, 3), (4, 3), (True, 3), (1.0, 3), (1, "3")):
            with self.subTest(passes=passes, runs=runs), self.assertRaises((ValueError, TypeError)):
                stats.wilson(passes, runs)  # type: ignore[arg-type]


class Fisher(unittest.TestCase):
    #: passes and failures of both sides, and the p-value: R 3.6.2, scipy.
    PUBLISHED = (
        (3, 1, 1, 3, 0.485714286),
        (8, 2, 1, 5, 0.034965035),
        (1, 9, 11, 3, 0.002759456),
        (2, 7, 8, 2, 0.023014137565),
        (100, 2, 1000, 5, 0.130075936343),
        (5, 1, 10, 10, 0.197324414716),
        (345, 260, 455, 345, 0.95667786),
    )

    def test_published_values_are_met(self) -> None:
        for one, two, three, four, chance in self.PUBLISHED:
            with self.subTest(table=(one, two, three, four)):
                self.assertAlmostEqual(stats.fisher(one, one + two, three, three + four), chance, delta=1e-8)
        for table, chance in (((22, 22, 0, 102), 7.17506679e-25), ((94, 142, 3577, 20565), 2.06935634e-37)):
            self.assertAlmostEqual(stats.fisher(*table) / chance, 1.0, delta=1e-6)

    def test_it_is_the_sum_over_tables_no_likelier_by_fractions(self) -> None:
        for runs, other in itertools.product(range(1, 9), repeat=2):
            for passes, other_passes in itertools.product(range(runs + 1), range(other + 1)):
                passed = passes + other_passes
                shares = [
                    Fraction(comb(runs, one) * comb(other, passed - one), comb(runs + other, passed))
                    for one in range(max(0, passed - other), min(runs, passed) + 1)
                ]
                seen = Fraction(comb(runs, passes) * comb(other, other_passes), comb(runs + other, passed))
                self.assertAlmostEqual(
                    stats.fisher(passes, runs, other_passes, other),
                    float(sum(s for s in shares if s <= seen)),
                    places=12,
                )

    def test_it_does_not_matter_which_side_comes_first(self) -> None:
        rng = random.Random(5)
        for _ in range(300):
            runs, other = rng.randint(0, 40), rng.randint(0, 40)
            passes, other_passes = rng.randint(0, runs), rng.randint(0, other)
            self.assertEqual(
                stats.fisher(passes, runs, other_passes, other), stats.fisher(other_passes, other, passes, runs)
            )

    def test_nothing_to_compare_is_no_difference(self) -> None:
        for table in ((0, 0, 3, 5), (3, 5, 0, 0), (5, 5, 7, 7), (0, 5, 0, 7)):
            self.assertEqual(stats.fisher(*table), 1.0)


class Corrections(unittest.TestCase):
    def test_published_adjustments_are_met(self) -> None:
        for chances, adjusted in (
            ((0.01, 0.04, 0.03, 0.005), (0.03, 0.06, 0.06, 0.02)),
            ((0.02, 0.02, 0.02), (0.06, 0.06, 0.06)),
            ((0.04, 0.01, 0.01, 0.5), (0.08, 0.04, 0.04, 0.5)),
            ((0.3,), (0.3,)),
            ((), ()),
        ):
            with self.subTest(chances=chances):
                found = stats.holm(chances)
                self.assertEqual(len(found), len(adjusted))
                for one, other in zip(found, adjusted):
                    self.assertAlmostEqual(one, other, places=12)

    def test_a_side_without_data_counts_as_a_comparison_and_never_differs(self) -> None:
        first, second = stats.compared(["a", "b"], [0.03, None])
        self.assertEqual((first.adjusted, first.differs), (0.06, False))
        self.assertEqual((second.chance, second.adjusted, second.differs), (None, None, False))

    def test_the_sign_test_counts_votes(self) -> None:
        for one, other, chance in ((5, 0, 0.0625), (6, 0, 0.03125), (0, 0, 1.0), (1, 1, 1.0), (1, 9, 0.021484375)):
            self.assertAlmostEqual(stats.sign_test(one, other), chance, places=12)
            self.assertAlmostEqual(stats.sign_test(other, one), chance, places=12)
        self.assertEqual(stats.smallest_sweep(), 6)
        self.assertEqual(stats.smallest_sweep(4), 8)


class Shares(unittest.TestCase):
    def test_pass_all_is_exact_and_not_a_power_of_the_share(self) -> None:
        for runs, passes, tries, chance in ((5, 4, 3, 0.4), (10, 9, 5, 0.5), (10, 8, 3, 7 / 15), (3, 3, 3, 1.0)):
            self.assertAlmostEqual(stats.pass_all(passes, runs, tries) or 0.0, chance, places=12)
        self.assertIsNone(stats.pass_all(2, 3, 4))
        self.assertEqual(stats.pass_all(2, 3, 3), 0.0)

    def test_a_share_is_reached_as_it_is_written(self) -> None:
        for passes, runs, share, reached in (
            (11, 20, 0.55, True),
            (7, 10, 0.7, True),
            (2, 3, 2 / 3, True),
            (6, 10, 0.7, False),
            (0, 0, 0.0, False),
            (0, 5, 0.0, True),
            (4, 5, 1.0, False),
        ):
            with self.subTest(passes=passes, runs=runs, share=share):
                self.assertEqual(stats.reaches(passes, runs, share), reached)

    def test_as_many_runs_as_told_show_a_share_and_one_fewer_does_not(self) -> None:
        for share in (0.0, 0.1, 0.5, 0.7224672, 0.75, 0.8, 0.9, 0.95, 0.99):
            needed = stats.runs_to_show(share)
            assert needed is not None
            shown = stats.wilson(needed, needed)
            assert shown is not None
            self.assertGreaterEqual(shown[0], share)
            if needed > 1:
                before = stats.wilson(needed - 1, needed - 1)
                assert before is not None
                self.assertLess(before[0], share)
        self.assertIsNone(stats.runs_to_show(1.0))

    def test_an_outcome_is_decided_exactly_when_no_rest_can_change_it(self) -> None:
        for planned in range(1, 9):
            for share in (0.0, 0.5, 0.8, 1.0):
                for runs in range(planned + 1):
                    for passes in range(runs + 1):
                        ends = {stats.reaches(passes + more, planned, share) for more in range(planned - runs + 1)}
                        self.assertEqual(stats.is_decided(passes, runs, planned, share), len(ends) == 1)

    def test_the_smallest_difference_is_the_one_that_counts(self) -> None:
        for runs, most in ((3, None), (4, 0), (5, 1), (10, 5), (20, 15), (50, 44), (100, 94)):
            with self.subTest(runs=runs):
                self.assertEqual(stats.smallest_difference(runs, runs), most)
        for runs, comparisons in ((10, 4), (20, 3)):
            most = stats.smallest_difference(runs, runs, comparisons)
            assert most is not None
            self.assertLessEqual(stats.fisher(runs, runs, most, runs) * comparisons, 0.05)
            self.assertGreater(stats.fisher(runs, runs, most + 1, runs) * comparisons, 0.05)


class FalseAlarms(unittest.TestCase):
    def test_of_ten_thousand_suites_without_a_difference_at_most_one_in_twenty_says_one(self) -> None:
        rng = random.Random(2026)
        alarms = 0
        for _ in range(10_000):
            share, runs, sides = rng.choice((0.3, 0.5, 0.7, 0.9)), rng.choice((5, 10, 20)), rng.choice((2, 3, 4))
            passes = [sum(rng.random() < share for _ in range(runs)) for _ in range(sides)]
            pairs = list(itertools.combinations(passes, 2))
            chances = [stats.fisher(one, runs, other, runs) for one, other in pairs]
            alarms += any(found.differs for found in stats.compared([""] * len(pairs), chances))
        self.assertLessEqual(alarms, 500)
        self.assertGreater(alarms, 0, "the simulation never came near")

    def test_over_cassettes_each_has_one_vote_however_often_it_ran(self) -> None:
        rng = random.Random(11)
        alarms = 0
        for _ in range(10_000):
            one = [rng.random() < 0.6 for _ in range(12)]
            other = [rng.random() < 0.6 for _ in range(12)]
            only_one = sum(a and not b for a, b in zip(one, other))
            alarms += stats.sign_test(only_one, sum(b and not a for a, b in zip(one, other))) <= stats.ALPHA
        self.assertLessEqual(alarms, 500)
