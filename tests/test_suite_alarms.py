"""False alarms: of ten thousand suites without any difference, how many does a report say one of?

Simulated is all that is compared and shown together, as the commands do it: the
cassettes one by one and as votes, models and arms, the halves of one arm, two
suites, tries that ended early, and the place at which a history fell.
"""

from __future__ import annotations

import functools
import itertools
import random
import unittest
from typing import Sequence

import tests.support  # noqa: F401  (loads the plugin)

from session_cassettes.suite import history, pairs, stats
from session_cassettes.suite.cells import Cell, Key, Run, Summary

SUITES = 10_000
#: The most that may say a difference: one in twenty.
MOST = SUITES // 20
REQUIRED = 0.8


decided = functools.lru_cache(maxsize=None)(stats.is_decided)


def tries(rng: random.Random, share: float, planned: int, early: bool = False) -> list[bool]:
    """Tries that each pass with the same chance; with `early` they end when the outcome is decided."""
    made: list[bool] = []
    while len(made) < planned and not (early and decided(sum(made), len(made), planned, REQUIRED)):
        made.append(rng.random() < share)
    return made


def summary(key: Key, made: Sequence[bool]) -> Summary:
    """A cell, as far as comparisons look at it."""
    passes, runs = sum(made), len(made)
    reached = stats.reaches(passes, runs, REQUIRED)
    outcome = "PASS" if reached else "FAIL"
    counts = {"PASS": passes, "FAIL": runs - passes, "DIVERGED": 0, "INVALID": 0}
    rest = (None, None, None, reached, False, "", False, None, None, None)
    return Summary(key, outcome, runs, runs, passes, counts, *rest)  # type: ignore[arg-type]


class FalseAlarms(unittest.TestCase):
    """Each cassette has a difficulty of its own, the same for all sides: whatever differs is chance."""

    def check(self, alarms: int) -> None:
        self.assertLessEqual(alarms, MOST)
        self.assertGreater(alarms, 0, "the simulation never came near")

    def shares(self, rng: random.Random, most: int = 4) -> list[float]:
        return [rng.choice((0.1, 0.3, 0.5, 0.7, 0.9)) for _ in range(rng.randint(1, most))]

    def test_two_suites(self) -> None:
        for early in (False, True):
            with self.subTest(early=early):
                rng, alarms = random.Random(1), 0
                for _ in range(SUITES):
                    columns, runs = [("m", ""), ("n", "")][: rng.randint(1, 2)], rng.choice((5, 10, 20))
                    shares = self.shares(rng)
                    one, other = (
                        [
                            summary(Key(f"c{at}", *column), tries(rng, share, runs, early))
                            for at, share in enumerate(shares)
                            for column in columns
                        ]
                        for _ in range(2)
                    )
                    alarms += any(each.pair.found.differs for each in pairs.compare_suites(one, other))
                self.check(alarms)

    def test_many_easy_cassettes_in_which_only_the_votes_could_tell(self) -> None:
        rng, alarms = random.Random(2), 0
        for _ in range(SUITES):
            shares = [rng.random() for _ in range(rng.choice((6, 8, 10)))]
            sides = [
                [summary(Key(f"c{at}", "m", ""), tries(rng, one, 1)) for at, one in enumerate(shares)] for _ in "ab"
            ]
            found = pairs.compare_suites(*sides)
            alarms += any(each.pair.found.chance is not None and each.pair.found.chance <= 0.05 for each in found)
        self.check(alarms)  # even before the correction, since one run against one can show nothing

    def test_models_and_arms_of_one_suite_and_the_halves_of_each(self) -> None:
        rng, alarms = random.Random(3), 0
        result = {True: Run("PASS", "", 0.0), False: Run("FAIL", "", 0.0)}
        for _ in range(SUITES):
            columns = list(itertools.product(("m", "n"), ("", "skilled")))[: rng.randint(2, 4)]
            runs = rng.choice((8, 16))
            made = {
                Key(f"c{at}", *column): tries(rng, share, runs)
                for at, share in enumerate(self.shares(rng, 2))
                for column in columns
            }
            cells = [Cell(key, runs, tuple(result[one] for one in each)) for key, each in made.items()]
            found = pairs.compare([summary(key, each) for key, each in made.items()], cells)
            alarms += any(pair.found.differs for pair in found)
        self.check(alarms)

    def test_the_place_at_which_a_history_fell(self) -> None:
        rng, alarms = random.Random(4), 0
        for _ in range(SUITES):
            rows = []
            for model in ("m", "n")[: rng.randint(1, 2)]:
                share = rng.choice((0.3, 0.5, 0.8, 0.95))
                for at in range(rng.randint(2, 12)):
                    made = tries(rng, share, rng.choice((5, 10, 20)))
                    rows.append(history.Row(f"s{at}", f"{at}", model, "", sum(made), len(made), {}, ()))
            alarms += any(fall.adjusted <= stats.ALPHA for fall in history.falls(rows))
        self.check(alarms)


class Power(unittest.TestCase):
    def test_a_difference_that_is_there_is_seen_mostly(self) -> None:
        """An exact computation gives 80 % at 0.9 against 0.56 with 20 runs a side."""
        rng, seen = random.Random(5), 0
        for _ in range(2_000):
            one, other = ([summary(Key("c", "m", ""), tries(rng, share, 20))] for share in (0.9, 0.56))
            seen += any(each.pair.found.differs for each in pairs.compare_suites(one, other))
        self.assertGreater(seen, 0.55 * 2_000)
        self.assertLess(seen, 0.95 * 2_000)


if __name__ == "__main__":
    unittest.main()
