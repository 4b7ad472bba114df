"""Which two sides of a suite are compared, with what, and what was found.

Values and pure functions.  Never here: runs of two cassettes in one table.  On
one cassette two sides are compared by Fisher's exact test; over several, each
cassette has one vote, and the exact sign test counts the votes.
"""

from __future__ import annotations

import itertools
from typing import Iterator, Mapping, NamedTuple, Sequence

from . import stats
from .cells import Cell, Outcome, Summary

#: A model and an arm, as `Key` has them: what two sides of a suite differ in.
Column = tuple[str, str]


class Side(NamedTuple):
    """One of two sides: its name for a person, and its counts.

    `passes` of `runs` are runs on one cassette, or, over several, cassettes
    whose cell passed.
    """

    name: str
    passes: int
    runs: int


class Votes(NamedTuple):
    """How two sides fared over cassettes: each has one vote."""

    both: int
    only_one: int
    only_other: int
    neither: int


class Pair(NamedTuple):
    """Two sides that were compared, and what was found.

    `found.label` is the cassette, or says over how many; its p-values are
    corrected for all pairs of the suite.  `smallest` is the smallest difference
    that could have been found: on one cassette the most passes that `other`
    could have had against a `one` that always passes, over cassettes how many
    must differ, all in one direction; None if no difference could have been, or if
    there are too many runs to say.  `halves` says that both sides are the same
    arm, so that what differs is noise.
    """

    one: Side
    other: Side
    found: stats.Comparison
    smallest: int | None
    votes: Votes | None = None
    halves: bool = False

    @property
    def could_find(self) -> bool:
        """Whether any difference could have been found with so few runs or cassettes."""
        if self.votes is not None:
            return self.smallest is not None and sum(self.votes) >= self.smallest
        return self.smallest is not None or min(self.one.runs, self.other.runs) > _MANY


#: Runs a side from which "all against none" counts, however often one looks.
_MANY = 100


def column_name(column: Sequence[str]) -> str:
    """Name a model and an arm for a person."""
    model, arm = column
    return f"{model or 'default model'} + {arm}" if arm else model or "default model"


def column_names(columns: Sequence[Column]) -> dict[Column, str]:
    """Name columns side by side: what all of them share is left out."""
    models, arms = ({column[at] for column in columns} for at in (0, 1))
    if len(models) > 1 or len(arms) < 2:
        return {column: column_name(column if len(arms) > 1 else (column[0], "")) for column in columns}
    return {column: column[1] or "no skill" for column in columns}


def compare(summaries: Sequence[Summary], halved: Sequence[Cell] = ()) -> tuple[Pair, ...]:
    """Compare each two models or arms on every cassette that both ran, and over all of these.

    All of it is corrected together, since it is shown together.

    :param halved: cells whose first half of tries is compared with the second
        too: what differs there is noise.
    """
    cells = _by_column(summaries)
    names = column_names(list(cells))
    drafts = [
        draft
        for one, other in itertools.combinations(cells, 2)
        for draft in _columns((names[one], cells[one]), (names[other], cells[other]))
    ]
    return _corrected(drafts + [_halves(cell) for cell in halved if len(cell.tries) > 1])


class Matched(NamedTuple):
    """A pair of two suites: the model and arm of each side, and the cassette, "" for one over several."""

    one: Column
    other: Column
    cassette: str
    pair: Pair


def compare_suites(
    one: Sequence[Summary], other: Sequence[Summary], names: tuple[str, str] = ("A", "B")
) -> tuple[Matched, ...]:
    """Compare two suites on every cell that both have, and over the cassettes of each model and arm.

    A model and arm is compared with itself.  If each suite has just one that
    the other has not, those two are compared: that is a change of model or arm.

    :param names: of the two suites, for a person.
    """
    sides = _by_column(one), _by_column(other)
    columns = [(column, column) for column in sides[0] if column in sides[1]]
    left = [[column for column in side if (column, column) not in columns] for side in sides]
    columns += [(left[0][0], left[1][0])] if len(left[0]) == len(left[1]) == 1 else []
    drafts: list[_Draft] = []
    places: list[tuple[Column, Column, str]] = []
    for mine, yours in columns:
        named = f" with {column_name(mine)}" * (len(columns) > 1)
        several = len(set(sides[0][mine]) & set(sides[1][yours])) > 1
        for at, draft in enumerate(_columns((names[0], sides[0][mine]), (names[1], sides[1][yours]))):
            drafts.append(draft._replace(label=draft.label + named))
            places.append((mine, yours, "" if several and not at else draft.label))
    return tuple(Matched(*place, pair) for place, pair in zip(places, _corrected(drafts), strict=True))


def _by_column(summaries: Sequence[Summary]) -> dict[Column, dict[str, Summary]]:
    """The cells of each model and arm, by cassette."""
    cells: dict[Column, dict[str, Summary]] = {}
    for one in summaries:
        cells.setdefault((one.key.model, one.key.arm), {})[one.key.cassette] = one
    return cells


class _Draft(NamedTuple):
    """A pair whose p-value is not corrected yet, for that takes all of them."""

    label: str
    one: Side
    other: Side
    chance: float | None
    votes: Votes | None = None
    halves: bool = False


def _columns(one: tuple[str, Mapping[str, Summary]], other: tuple[str, Mapping[str, Summary]]) -> Iterator[_Draft]:
    """Compare two columns, each its name and its cells by cassette."""
    both = [(cassette, cell, other[1][cassette]) for cassette, cell in one[1].items() if cassette in other[1]]
    if len(both) > 1:
        yield _over_cassettes([(a.outcome, b.outcome) for _, a, b in both], one[0], other[0])
    for cassette, a, b in both:
        yield _on_one_cassette(cassette, Side(one[0], a.passes, a.runs), Side(other[0], b.passes, b.runs))


def _halves(cell: Cell) -> _Draft:
    middle, name = len(cell.tries) // 2, column_name(cell.key[1:])
    sides = (
        Side(f"{name} ({which} half)", sum(run.result == "PASS" for run in part), len(part))
        for which, part in (("first", cell.tries[:middle]), ("second", cell.tries[middle:]))
    )
    return _on_one_cassette(cell.key.cassette, *sides)._replace(halves=True)


def _on_one_cassette(cassette: str, one: Side, other: Side) -> _Draft:
    known = one.runs and other.runs
    chance = stats.fisher(one.passes, one.runs, other.passes, other.runs) if known else None
    return _Draft(cassette, one, other, chance)


def _over_cassettes(outcomes: Sequence[tuple[Outcome, Outcome]], one: str, other: str) -> _Draft:
    """Let each cassette vote; one of which either side is INVALID has no vote."""
    ballots = [(a == "PASS", b == "PASS") for a, b in outcomes if "INVALID" not in (a, b)]
    votes = Votes(*(ballots.count(ballot) for ballot in ((True, True), (True, False), (False, True), (False, False))))
    sides = (
        Side(one, votes.both + votes.only_one, len(ballots)),
        Side(other, votes.both + votes.only_other, len(ballots)),
    )
    chance = stats.sign_test(votes.only_one, votes.only_other) if ballots else None
    return _Draft(f"over {len(ballots)} of {len(outcomes)} cassettes", *sides, chance, votes)


def _corrected(drafts: Sequence[_Draft]) -> tuple[Pair, ...]:
    found = stats.compared([draft.label for draft in drafts], [draft.chance for draft in drafts])
    many = len(drafts)
    sweep = stats.smallest_sweep(many) if many else None
    return tuple(
        Pair(
            draft.one,
            draft.other,
            each,
            sweep if draft.votes else stats.smallest_difference(draft.one.runs, draft.other.runs, many),
            draft.votes,
            draft.halves,
        )
        for draft, each in zip(drafts, found, strict=True)
    )
