"""What a handful of runs can show, and what it cannot.  Pure: numbers in, numbers out.

Never here: a p-value from an approximation, a zero share for no data, a word such
as "equal" for a difference that was not found.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, sqrt
from statistics import NormalDist
from typing import NamedTuple, Sequence

__all__ = [
    "ALPHA",
    "CONFIDENCE",
    "Comparison",
    "compared",
    "fisher",
    "holm",
    "is_decided",
    "pass_all",
    "reaches",
    "runs_to_show",
    "sign_test",
    "smallest_difference",
    "smallest_sweep",
    "wilson",
]

#: Confidence of every interval, and the chance of a false alarm of every comparison.
CONFIDENCE = 0.95
ALPHA = 1 - CONFIDENCE
_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
#: Runs a side beyond which the smallest difference is not searched for.
_MOST_RUNS = 2_000


def wilson(passes: int, runs: int) -> tuple[float, float] | None:
    """The 95 % interval of a share (Wilson 1927), or None without a run.

    With no pass its lower end is exactly 0, with nothing but passes its upper
    end exactly 1.

    :raises ValueError: if the counts are none.
    """
    _check_counts(passes, runs)
    if runs == 0:
        return None
    square = _Z * _Z
    if passes == 0:
        return 0.0, square / (runs + square)
    if passes == runs:
        return runs / (runs + square), 1.0
    centre = (passes + square / 2) / (runs + square)
    half = _Z * sqrt(passes * (runs - passes) / runs + square / 4) / (runs + square)
    return centre - half, centre + half


def pass_all(passes: int, runs: int, tries: int) -> float | None:
    """pass^k: the chance that `tries` runs, drawn from these without putting back, all pass.

    :returns: None for fewer runs than tries, of which nothing is known.
    :raises ValueError: if the counts are none.
    """
    _check_counts(passes, runs)
    return None if tries > runs else comb(passes, tries) / comb(runs, tries)


def runs_to_show(share: float) -> int | None:
    """How many runs without a failure it takes until the interval's lower end reaches a share.

    :returns: None for a share of 1, which no number of runs can show.
    """
    if share >= 1:
        return None
    needed = max(1, ceil(share * _Z * _Z / (1 - share) - 1e-9))
    while needed > 1 and _lower_end(needed - 1) >= share:
        needed -= 1
    while _lower_end(needed) < share:
        needed += 1
    return needed


def _lower_end(runs: int) -> float:
    return runs / (runs + _Z * _Z)


@lru_cache(maxsize=65_536)
def fisher(passes: int, runs: int, other_passes: int, other_runs: int) -> float:
    """Fisher's exact test, two-sided: how likely so uneven a split is, if nothing differs.

    Counted are all tables with the same margins that are no likelier than the
    one seen; whole numbers are compared, so that no rounding decides.

    :raises ValueError: if the counts are none.
    """
    _check_counts(passes, runs)
    _check_counts(other_passes, other_runs)
    passed, total = passes + other_passes, runs + other_runs
    if not runs or not other_runs or passed in (0, total):
        return 1.0
    seen = comb(runs, passes) * comb(other_runs, other_passes)
    first, last = max(0, passed - other_runs), min(runs, passed)
    weight, extreme = comb(runs, first) * comb(other_runs, passed - first), 0
    for one in range(first, last + 1):
        extreme += weight if weight <= seen else 0
        # the next table's weight out of this one's: exact, and far cheaper than two binomials
        weight = weight * (runs - one) * (passed - one) // ((one + 1) * (other_runs - passed + one + 1))
    return extreme / comb(total, passed)


def sign_test(only_one: int, only_other: int) -> float:
    """The exact sign test, two-sided, over votes that are no ties.

    :raises ValueError: if a count is negative.
    """
    _check_counts(only_one, only_one + only_other)
    votes = only_one + only_other
    tail = sum(comb(votes, count) for count in range(min(only_one, only_other) + 1))
    return min(1.0, 2 * tail / 2**votes)


def holm(chances: Sequence[float]) -> list[float]:
    """Adjust p-values for having looked that often (Holm 1979), in the order given."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    adjusted = [0.0] * len(chances)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = highest
    return adjusted


def smallest_difference(runs: int, other_runs: int, comparisons: int = 1) -> int | None:
    """Against a side whose runs all pass, the most passes of the other side that would still count.

    :param comparisons: how many comparisons are made together; the smallest
        p-value has to hold against all of them.
    :returns: None if not even "all against none" would count, or if there are
        too many runs to search.
    """
    if min(runs, other_runs) < 1 or max(runs, other_runs) > _MOST_RUNS:
        return None

    def counts(passes: int) -> bool:
        return fisher(runs, runs, passes, other_runs) * comparisons <= ALPHA

    if not counts(0):
        return None
    low, high = 0, other_runs - 1  # fewer passes are always the greater difference
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if counts(middle) else (low, middle - 1)
    return low


def smallest_sweep(comparisons: int = 1) -> int:
    """How many cassettes must differ, all the same way, for the sign test to count."""
    votes = 1
    while sign_test(votes, 0) * comparisons > ALPHA:
        votes += 1
    return votes


class Comparison(NamedTuple):
    """One comparison of two sides: what it is about, its p-value, and that after Holm's correction.

    `chance` is None where one side has no run, so that nothing could be compared.
    """

    label: str
    chance: float | None
    adjusted: float | None

    @property
    def differs(self) -> bool:
        """Whether the difference is more than chance."""
        return self.adjusted is not None and self.adjusted <= ALPHA


def compared(labels: Sequence[str], chances: Sequence[float | None]) -> list[Comparison]:
    """Correct all comparisons that are shown together; those without data count too."""
    adjusted = holm([1.0 if chance is None else chance for chance in chances])
    return [
        Comparison(label, chance, None if chance is None else after)
        for label, chance, after in zip(labels, chances, adjusted, strict=True)
    ]


def reaches(passes: int, runs: int, share: float) -> bool:
    """Whether this many passes are at least the share; a share is meant as it is written, 0.55 as 55 in 100.

    :raises ValueError: if the counts are none.
    """
    _check_counts(passes, runs)
    part, whole = _as_written(share)
    return runs > 0 and passes * whole >= part * runs


@lru_cache(maxsize=64)
def _as_written(share: float) -> tuple[int, int]:
    return Fraction(share).limit_denominator(1_000_000).as_integer_ratio()


def is_decided(passes: int, runs: int, planned: int, share: float) -> bool:
    """Whether the runs that are left of those planned can no longer change if the share is reached."""
    return reaches(passes + planned - runs, planned, share) == reaches(passes, planned, share)


def _check_counts(passes: int, runs: int) -> None:
    for count in (passes, runs):
        if type(count) is not int:
            raise ValueError(f"a count is {count!r}, no whole number")
    if not 0 <= passes <= runs:
        raise ValueError(f"{passes} of {runs} is no share")
