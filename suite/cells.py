"""What a suite is made of: runs, the cells they belong to, and what a cell's runs say.

Values and pure functions: nothing here reads a file, starts a process or knows
how a report looks.  Runs of one cell are tries on that cassette alone; nothing
here ever adds up the runs of two cassettes.
"""

from __future__ import annotations

import statistics
from typing import Any, Literal, Mapping, NamedTuple, Sequence

from . import stats

__all__ = [
    "Cell",
    "IN_A_ROW",
    "Key",
    "Outcome",
    "Run",
    "STATUS",
    "Summary",
    "WORST_FIRST",
    "suite_status",
    "summarize",
    "worst_first",
]

#: How a cell of a suite ends.
Outcome = Literal["PASS", "FAIL", "DIVERGED", "INVALID"]
#: Worst first; a suite's exit status is that of its worst cell.
WORST_FIRST: tuple[Outcome, ...] = ("FAIL", "DIVERGED", "INVALID", "PASS")
#: The k of the pass^k that is told: one and the same for all cells, so that they can be
#: compared.  The k = n of a cell's own n tries could only be 0 or 1.
IN_A_ROW = 3


class Key(NamedTuple):
    """Which cell a run belongs to.

    `model` is "" for Hermes's own default, `arm` the label of a set of
    preloaded skills, "" for none.
    """

    cassette: str
    model: str
    arm: str


class Run(NamedTuple):
    """One finished run, as far as a suite looks at it.

    `seconds` is how long it took, `tokens` and `cost` (US dollars) what Hermes
    keeps of it, None where it keeps nothing.  `file` is the run file's path.
    """

    result: Outcome
    answer: str
    seconds: float
    reasons: tuple[str, ...] = ()
    pins: tuple[tuple[str, bool], ...] = ()
    path: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()  #: each `tool`, `args`, `how`, `reason`, `nearest`
    model: str = ""  #: the model that answered
    tokens: int | None = None
    cost: float | None = None
    at: str = ""
    cassette_sha: str = ""
    file: str = ""

    @property
    def misses(self) -> tuple[Mapping[str, Any], ...]:
        """The calls that the cassette could not answer."""
        return tuple(call for call in self.calls if call.get("how") == "miss")


class Cell(NamedTuple):
    """A cassette with a model and an arm, and its runs so far, in the order in which they ended.

    `planned` is how many tries were asked for; `trouble` says why the cell can
    have no answer although no run failed (its cassette changed, say), or "".
    """

    key: Key
    planned: int
    runs: tuple[Run, ...] = ()
    trouble: str = ""

    @property
    def tries(self) -> tuple[Run, ...]:
        """The runs that count: an INVALID one is no try."""
        return tuple(run for run in self.runs if run.result != "INVALID")


class Summary(NamedTuple):
    """What a cell's runs say.

    `share` and `interval` (95 %, Wilson) are None without a try.  `reached`
    says that the share is at or above what was required, `shown` that the
    interval's lower end is too; `remark` says in words what the numbers cannot
    show.  `in_a_row` is pass^k for k = `IN_A_ROW`: how likely so many runs in a row
    all pass; None with no more tries than that, of which it could say 0 or 1 only.
    `seconds`, `tokens` and `cost` are medians over the tries.
    """

    key: Key
    outcome: Outcome
    planned: int
    runs: int
    passes: int
    counts: Mapping[Outcome, int]
    share: float | None
    interval: tuple[float, float] | None
    in_a_row: float | None
    reached: bool
    shown: bool
    remark: str
    one_answer: bool  #: every answer is the same text, so that the tries may count for one
    seconds: float | None
    tokens: float | None
    cost: float | None


def summarize(cell: Cell, require: float) -> Summary:
    """Say what a cell's runs say.

    A cell whose missing tries could still have changed its outcome is INVALID:
    no share is made of what is not there.

    :param require: the share of PASS that is asked for, from 0 to 1.
    """
    tries = cell.tries
    passes = sum(run.result == "PASS" for run in tries)
    counts: dict[Outcome, int] = {one: sum(run.result == one for run in cell.runs) for one in WORST_FIRST}
    interval = stats.wilson(passes, len(tries))
    reached = stats.reaches(passes, len(tries), require)
    shown = interval is not None and interval[0] >= require
    return Summary(
        key=cell.key,
        outcome=_outcome(cell, passes, reached, require),
        planned=cell.planned,
        runs=len(tries),
        passes=passes,
        counts=counts,
        share=passes / len(tries) if tries else None,
        interval=interval,
        in_a_row=stats.pass_all(passes, len(tries), IN_A_ROW) if len(tries) > IN_A_ROW else None,
        reached=reached,
        shown=shown,
        remark=cell.trouble or _remark(passes, len(tries), reached, shown, require),
        one_answer=len(tries) > 1 and len({run.answer for run in tries}) == 1,
        seconds=_middle([run.seconds for run in tries]),
        tokens=_middle([run.tokens for run in tries if run.tokens is not None]),
        cost=_middle([run.cost for run in tries if run.cost is not None]),
    )


def _outcome(cell: Cell, passes: int, reached: bool, require: float) -> Outcome:
    tries = cell.tries
    if cell.trouble or not tries:
        return "INVALID"
    if len(tries) < cell.planned and not stats.is_decided(passes, len(tries), cell.planned, require):
        return "INVALID"  # runs that stayed INVALID, or were never made, could have changed it
    if reached:
        return "PASS"
    return "FAIL" if any(run.result == "FAIL" for run in tries) else "DIVERGED"


def _remark(passes: int, runs: int, reached: bool, shown: bool, require: float) -> str:
    if not runs:
        return "no data"
    if shown or not reached:
        return ""
    needed = stats.runs_to_show(require)
    if needed is None:
        return f"not shown at n = {runs}: no number of runs can show a share of 1"
    return f"not shown at n = {runs}: {needed} runs without a failure would"


def _middle(values: Sequence[float]) -> float | None:
    return float(statistics.median(values)) if values else None


#: Exit status of a suite run for its worst cell.
STATUS: Mapping[Outcome, int] = {"FAIL": 1, "DIVERGED": 3, "INVALID": 4, "PASS": 0}


def suite_status(summaries: Sequence[Summary]) -> int:
    """The exit status of a suite: that of its worst cell, and 2 without any cell."""
    return next((STATUS[one] for one in WORST_FIRST if any(s.outcome == one for s in summaries)), 2)


def worst_first(summaries: Sequence[Summary]) -> list[Summary]:
    """Sort cells for a person: by outcome, then by share, then by name."""
    return sorted(summaries, key=lambda one: (WORST_FIRST.index(one.outcome), one.share or 0.0, one.key))
