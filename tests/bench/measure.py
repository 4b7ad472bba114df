"""Takes two times in turns, and tells what came out as a row of a table.

A figure is compared with a reference that was taken in the same run, one right
after the other, in alternating order: what slows the machine slows both, and
the median of the pairs' ratios hardly moves.  Nothing here knows the plugin.
"""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping, Sequence

try:
    import resource
except ImportError:  # Windows: children are left out of the processor time
    resource = None  # type: ignore[assignment]

Action = Callable[[], Any]
#: Called before every measurement; returns what is timed.
Maker = Callable[[], Action]

#: How many of each unit make a second.
UNITS = {"us": 1e6, "ms": 1e3, "s": 1.0}


# --- taking times ---------------------------------------------------------------


@dataclass(frozen=True)
class Time:
    """Seconds that something took: on the clock, and of processors, children included."""

    wall: float
    cpu: float

    def each(self, number: int) -> Time:
        return Time(self.wall / number, self.cpu / number)


def _cpu() -> float:
    if resource is None:
        return time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(action: Action) -> Time:
    """Do it once and say how long it took."""
    wall, cpu = time.perf_counter(), _cpu()
    action()
    return Time(time.perf_counter() - wall, _cpu() - cpu)


@dataclass(frozen=True)
class Pairs:
    """Times of ours and of the reference; those with one index were taken together."""

    ours: tuple[Time, ...]
    reference: tuple[Time, ...]


def interleaved(ours: Maker, reference: Maker, count: int, each: int = 1, each_reference: int = 0) -> Pairs:
    """Time both in turns `count` times, after one round that does not count.

    :param each: how many operations one measurement of ours does; the times are of one.
    :param each_reference: the same for the reference; 0 means as many.
    """
    taken: list[tuple[Time, Time]] = []
    for number in range(count + 1):
        pair = [(0, ours), (1, reference)]
        found: list[Any] = [None, None]
        for place, make in pair if number % 2 else pair[::-1]:
            action = make()
            gc.collect()
            found[place] = timed(action)
        taken.append((found[0].each(each), found[1].each(each_reference or each)))
    return Pairs(*zip(*taken[1:]))  # type: ignore[arg-type]


# --- what came out --------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """What a row should keep to.

    `kind` is "times" (of the reference), "more" (than the reference, in the
    row's unit) or "most" (in the row's unit, whatever the reference).
    """

    kind: str
    limit: float

    def text(self, unit: str) -> str:
        if self.kind == "times":
            return f"<= {self.limit:g} x"
        return f"<= {self.limit:g} {unit}" + (" more" if self.kind == "more" else "")


@dataclass(frozen=True)
class Row:
    """One figure and its reference: pairs of values in `unit`, and what they should keep to.

    `by` says what was counted: "cpu", "wall", or what the unit says.
    """

    what: str
    reference: str
    unit: str
    by: str
    ours: Sequence[float]
    theirs: Sequence[float]
    goals: tuple[Goal, ...] = ()
    lane: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """The median of the pairs' ratios."""
        return statistics.median(a / b if b else float("inf") for a, b in zip(self.ours, self.theirs))

    @property
    def more(self) -> float:
        """The median of the pairs' differences."""
        return statistics.median(a - b for a, b in zip(self.ours, self.theirs))

    def value(self, goal: Goal) -> float:
        """What a goal looks at."""
        return {"times": self.ratio, "more": self.more, "most": statistics.median(self.ours)}[goal.kind]

    def met(self, goal: Goal) -> bool:
        return self.value(goal) <= goal.limit

    def to_dict(self) -> dict[str, Any]:
        goals = [
            {"kind": one.kind, "limit": one.limit, "is": self.value(one), "met": self.met(one)} for one in self.goals
        ]
        return {
            **vars(self),
            "ours": list(self.ours),
            "theirs": list(self.theirs),
            "ratio": self.ratio,
            "more": self.more,
            "goals": goals,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Row:
        goals = tuple(Goal(one["kind"], one["limit"]) for one in value["goals"])
        names = ("what", "reference", "unit", "by", "ours", "theirs", "lane", "notes")
        return cls(**{name: value[name] for name in names}, goals=goals)


def row(what: str, reference: str, pairs: Pairs, unit: str, by: str, *goals: Goal, **notes: Any) -> Row:
    """Make a row of times; the other clock's medians go into its notes."""
    scale = UNITS[unit]
    other = "wall" if by == "cpu" else "cpu"
    ours, theirs = ([getattr(one, by) * scale for one in side] for side in (pairs.ours, pairs.reference))
    beside = [statistics.median(getattr(one, other) * scale for one in side) for side in (pairs.ours, pairs.reference)]
    return Row(what, reference, unit, by, ours, theirs, goals, notes={f"{other} medians": beside, **notes})


@dataclass(frozen=True)
class Curve:
    """How the cost of one unit of work changes with the size of the whole.

    `points` maps a size to values in `unit` per piece of work; `limit` bounds
    the largest size's median over the smallest's.
    """

    what: str
    unit: str
    sizes: str
    points: Mapping[int, Sequence[float]]
    limit: float
    lane: str = ""

    @property
    def growth(self) -> float:
        """The median of the ratios between the largest and the smallest size, taken together."""
        first, last = min(self.points), max(self.points)
        return statistics.median(b / a for a, b in zip(self.points[first], self.points[last]))

    @property
    def met(self) -> bool:
        return self.growth <= self.limit

    def to_dict(self) -> dict[str, Any]:
        points = {str(size): list(values) for size, values in self.points.items()}
        return {**vars(self), "points": points, "growth": self.growth, "met": self.met}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Curve:
        points = {int(size): values for size, values in value["points"].items()}
        return cls(value["what"], value["unit"], value["sizes"], points, value["limit"], value["lane"])


def curve(
    what: str, unit: str, sizes: str, makers: Mapping[int, tuple[Maker, int]], count: int, limit: float, by: str = "cpu"
) -> Curve:
    """Time every size in turns.

    :param makers: maps a size to what is timed, and to how many pieces of work that is.
    """
    points: dict[int, list[float]] = {size: [] for size in makers}
    for number in range(count + 1):
        for size in sorted(makers, reverse=bool(number % 2)):
            make, pieces = makers[size]
            action = make()
            gc.collect()
            taken = timed(action).each(pieces)
            if number:
                points[size].append(getattr(taken, by) * UNITS[unit])
    return Curve(what, unit, sizes, points, limit)


# --- tables ---------------------------------------------------------------------


def table(rows: Iterable[Row]) -> str:
    """Write rows as one table (it is Markdown, too)."""
    cells = [("what", "lane", "by", "median", "min", "max", "reference", "median", "ratio", "goal", "met")]
    for one in rows:
        middle, theirs = statistics.median(one.ours), statistics.median(one.theirs)
        cells.append(
            (
                one.what,
                one.lane or "-",
                one.by,
                f"{_number(middle)} {one.unit}",
                _number(min(one.ours)),
                _number(max(one.ours)),
                one.reference,
                _number(theirs),
                f"{one.ratio:.2f}",
                _goals(one),
                _met(one),
            )
        )
    return _aligned(cells)


def _goals(one: Row) -> str:
    return "; ".join(goal.text(one.unit) for goal in one.goals) or "-"


def _met(one: Row) -> str:
    """Say whether the goals are met, and of those that are not about a ratio what the value is."""
    told = []
    for goal in one.goals:
        value = "" if goal.kind != "more" else f" ({_number(one.value(goal))})"
        told.append(("yes" if one.met(goal) else "NO") + value)
    return "; ".join(told) or "-"


def curves(found: Iterable[Curve]) -> str:
    """Write curves as a table, a line per size."""
    cells = [("what", "lane", "size", "median each", "growth", "goal", "met")]
    for one in found:
        for size, values in sorted(one.points.items()):
            last = size == max(one.points)
            told = (f"{one.growth:.2f}", f"<= {one.limit:g} x", "yes" if one.met else "NO") if last else ("", "", "")
            middle = f"{_number(statistics.median(values))} {one.unit}"
            cells.append((one.what, one.lane or "-", f"{size:,} {one.sizes}", middle, *told))
    return _aligned(cells)


def _number(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _aligned(cells: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ["| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
