"""What the reports of a suite share: the value that each of them takes, and the words that they use.

A report is a function from a `Suite` to a text.  Nothing here or in a report reads
a file or a clock, starts a process, or tries a pin's regular expression: one that
backtracks without end could never be stopped.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ..cassette_store import shown as one_line  # here "shown" is a word of statistics
from . import stats
from .cells import IN_A_ROW, WORST_FIRST, Cell, Key, Outcome, Run, Summary, summarize, worst_first
from .pairs import Pair, column_name, compare


class CassetteFacts(NamedTuple):
    """What was recorded, as far as a report shows it.

    `calls` are (tool, args) as recorded, `pins` the facts as typed, `model` the
    one that recorded.
    """

    request: str
    answer: str
    calls: tuple[tuple[str, Any], ...] = ()
    pins: tuple[str, ...] = ()
    model: str = ""


class Graded(NamedTuple):
    """A cell, and what its runs say."""

    cell: Cell
    summary: Summary


class Suite(NamedTuple):
    """A suite run, ready to be reported.

    `created` is an ISO time, `hermes` and `plugin` are versions, `require` is the
    share of PASS that each cell had to reach.  `cells` stand in the order in
    which they were planned; `cassettes` holds the facts of each by name (one
    that is gone is left out); `pairs` is what was compared.
    """

    id: str
    created: str
    hermes: str
    plugin: str
    require: float
    cells: tuple[Graded, ...]
    cassettes: Mapping[str, CassetteFacts]
    pairs: tuple[Pair, ...] = ()

    @property
    def worst_first(self) -> list[Graded]:
        """The cells as a person wants them: by outcome, then by share, then by name."""
        place = {one.key: at for at, one in enumerate(worst_first([each.summary for each in self.cells]))}
        return sorted(self.cells, key=lambda each: place[each.summary.key])

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Each model and arm, in the order planned."""
        return list(dict.fromkeys((each.cell.key.model, each.cell.key.arm) for each in self.cells))


def grade_suite(
    id: str,
    created: str,
    versions: tuple[str, str],
    require: float,
    cells: Sequence[Cell],
    cassettes: Mapping[str, CassetteFacts],
    noise: bool = False,
) -> Suite:
    """Say what the cells of a suite say, each alone and against each other.

    :param versions: of Hermes and of the plugin.
    :param noise: compare the two halves of each cell's tries too.
    """
    graded = tuple(Graded(cell, summarize(cell, require)) for cell in cells)
    pairs = compare([each.summary for each in graded], cells if noise else ())
    return Suite(id, created, *versions, require, graded, cassettes, pairs)


# --- words -------------------------------------------------------------------------

#: A sign for each outcome, and its ASCII stand-in; the word always stands beside it.
SIGNS: Mapping[Outcome, tuple[str, str]] = {
    "PASS": ("✓", "+"),
    "FAIL": ("✗", "x"),
    "DIVERGED": ("≠", "~"),
    "INVALID": ("?", "?"),
}
#: What each outcome of a run means, for a legend.
MEANINGS: Mapping[Outcome, str] = {
    "PASS": "every pin is in the answer, and the cassette could answer every call",
    "FAIL": "a pin is missing",
    "DIVERGED": "every pin is there, but a call was not recorded",
    "INVALID": "cannot be trusted to have been a replay; it counts as no try",
}
ONE_ANSWER = "every answer is the same text: n may count for one"


def shown_text(text: str) -> str:
    """Show a text of several lines; of what cannot be printed only new lines, tabs and spaces stay as they are."""
    return _ODD.sub(_shown, text.replace("\r\n", "\n"))


_ODD = re.compile("[^ -~]")


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    stays = character.isprintable() or character in "\n\t" or unicodedata.category(character) == "Zs"
    return character if stays else repr(character)[1:-1]


def clip(text: str, most: int) -> str:
    """Cut a text to at most so many characters, an ellipsis among them."""
    return text if len(text) <= most else text[: max(0, most - 1)] + "…"


def count(number: int, one: str, many: str = "") -> str:
    """Say how many: "1 run", "2 runs"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def cell_name(key: Key) -> str:
    """Name a cell for a person, in one line."""
    return one_line(f"{key.cassette} with {column_name((key.model, key.arm))}")


def tally(summary: Summary) -> str:
    """Passes of tries: "4 of 5"."""
    return f"{summary.passes} of {summary.runs}"


def percents(summary: Summary, require: float) -> tuple[str, str, str] | None:
    """The share and both ends of its interval as percents without sign, or None without a try.

    One precision serves all three, and is as fine as it takes: 0 and 100 stand
    for nothing else, and a lower end short of what is required looks short of it.
    """
    if summary.share is None or summary.interval is None:
        return None
    return _percents(summary.share, *summary.interval, require)


@lru_cache(maxsize=4_096)
def _percents(share: float, low: float, high: float, require: float) -> tuple[str, str, str]:
    for digits in range(4):
        texts = [f"{100 * number:.{digits}f}" for number in (share, low, high)]
        if all(_tells(float(text), number, require) for text, number in zip(texts, (share, low, high))):
            break
    return texts[0], texts[1], texts[2]


def _tells(percent: float, number: float, require: float) -> bool:
    """Whether a rounded percent keeps to the side of 0, of 1 and of what is required."""
    marks = (0.0, 1.0, require)
    return all(
        (percent / 100 >= mark) == (number >= mark) and (percent / 100 > mark) == (number > mark) for mark in marks
    )


def counted_text(passes: int, runs: int, dash: str = "–") -> str:
    """A count with its share and interval: "4 of 5, 80 % (38–96)", or "no data"."""
    interval = stats.wilson(passes, runs)
    if interval is None:
        return "no data"
    share, low, high = _percents(passes / runs, *interval, 1.0)
    return f"{passes} of {runs}, {share} % ({low}{dash}{high})"


def share_text(summary: Summary, require: float, dash: str = "–") -> str:
    """The share with its interval: "80 % (38–96)", or "no data"."""
    found = percents(summary, require)
    return f"{found[0]} % ({found[1]}{dash}{found[2]})" if found else "no data"


def required(require: float) -> str:
    """The required share as a percent."""
    return f"{100 * require:.10g} %"


#: What `in_a_row_text` tells, as a heading.
PASS_K = f"pass^{IN_A_ROW}"


def in_a_row_text(summary: Summary) -> str:
    """pass^k: how likely k runs in a row all pass; "-" with too few tries to say."""
    return "-" if summary.in_a_row is None else f"{summary.in_a_row:.3g}"


def in_a_row_fact(summary: Summary) -> str:
    """The same where no heading stands above: "pass^3 0.4", or ""."""
    return "" if summary.in_a_row is None else f"{PASS_K} {in_a_row_text(summary)}"


def seconds_text(seconds: float | None) -> str:
    """A duration: "12 s", "3.4 s", "-" for None."""
    if seconds is None:
        return "-"
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def tokens_text(tokens: float | None) -> str:
    """A count of tokens, "-" for None."""
    return "-" if tokens is None else f"{tokens:,.0f}"


def cost_text(cost: float | None) -> str:
    """US dollars, "-" for None."""
    return "-" if cost is None else f"${cost:.2f}" if cost >= 0.1 or not cost else f"${cost:.4f}"


def others_text(summary: Summary) -> str:
    """How the runs ended that did not pass: "1 FAIL, 2 INVALID", or ""."""
    counts = summary.counts
    return ", ".join(f"{counts[one]} {one}" for one in WORST_FIRST if one != "PASS" and counts.get(one))


# --- sentences ---------------------------------------------------------------------


def outcome_of(suite: Suite) -> Outcome | None:
    """The outcome of the worst cell, which is the suite's; None without a cell."""
    seen = {each.summary.outcome for each in suite.cells}
    return next((one for one in WORST_FIRST if one in seen), None)


def headline(suite: Suite) -> str:
    """The verdict in a line: its word first."""
    outcome = outcome_of(suite)
    if outcome is None:
        return "nothing graded: the suite has no cell"
    total = len(suite.cells)
    reached = sum(each.summary.outcome == "PASS" for each in suite.cells)
    wanted = f"the required {required(suite.require)}"
    if reached == total:
        return f"PASS: {'the cell' if total == 1 else f'all {total:,} cells'} reached {wanted}"
    rest = ", ".join(
        f"{sum(each.summary.outcome == one for each in suite.cells):,} {one}"
        for one in WORST_FIRST
        if one != "PASS" and any(each.summary.outcome == one for each in suite.cells)
    )
    return f"{outcome}: {reached:,} of {count(total, 'cell')} reached {wanted} ({rest})"


def never_passed(suite: Suite) -> list[Graded]:
    """The cells that were tried and never passed."""
    return [each for each in suite.worst_first if each.summary.runs and not each.summary.passes]


def remarks(suite: Suite) -> list[tuple[str, list[str]]]:
    """What the numbers cannot show, and the names of the cells that it is true of."""
    found: dict[str, list[str]] = {}
    for each in suite.worst_first:
        summary = each.summary
        for remark in (summary.remark, ONE_ANSWER if summary.one_answer else "", _missing(summary)):
            if remark:
                found.setdefault(one_line(remark), []).append(cell_name(summary.key))
    return list(found.items())


def _missing(summary: Summary) -> str:
    left = summary.planned - summary.runs
    if left <= 0 or summary.outcome != "INVALID" or not summary.runs:
        return ""
    return f"{left} of {summary.planned} tries missing, which could change the outcome"


def names_text(names: Sequence[str], most: int = 3) -> str:
    """Name a few, and say how many more there are."""
    if len(names) <= most:
        return "; ".join(names)
    return f"{'; '.join(names[: most - 1])} and {len(names) - most + 1:,} more"


def runs_of(suite: Suite) -> int:
    """How many runs a suite has, INVALID ones among them."""
    return sum(len(each.cell.runs) for each in suite.cells)


def chance_text(chance: float) -> str:
    """A p-value, rounded so that it stays on its side of what counts."""
    if chance < 0.0001:
        return "p < 0.0001"
    texts = (f"{chance:.{digits}g}" for digits in (2, 3, 4, 6))
    return "p = " + next((t for t in texts if (float(t) <= stats.ALPHA) == (chance <= stats.ALPHA)), f"{chance:.9g}")


def pair_text(pair: Pair, named: Callable[[str], str] = one_line) -> str:
    """What a comparison found, in a sentence that begins with what it is about.

    :param named: writes a name, which is somebody else's text.
    """
    return f"{named(pair.found.label)}: {_found(pair, named)}{_votes(pair, named)}"


def _found(pair: Pair, named: Callable[[str], str]) -> str:
    one, other, adjusted = pair.one, pair.other, pair.found.adjusted
    names = named(one.name), named(other.name)
    counts = tuple(f"{side.passes} of {side.runs}" for side in (one, other))
    if adjusted is None:
        return f"{names[0]} ({counts[0]}) and {names[1]} ({counts[1]}) are not compared: a side has no run that counts"
    chance = f"adjusted {chance_text(adjusted)}"
    if not pair.found.differs:
        sides = f"between {names[0]} ({counts[0]}) and {names[1]} ({counts[1]})"
        return f"no difference shown {sides}, {chance}; {_smallest(pair)}"
    if one.passes * other.runs < other.passes * one.runs:
        names, counts = names[::-1], counts[::-1]
    return f"{names[0]} passes more often than {names[1]}, {counts[0]} against {counts[1]}, {chance}"


def _votes(pair: Pair, named: Callable[[str], str]) -> str:
    if pair.votes is None:
        return ""
    one, other = named(pair.one.name), named(pair.other.name)
    both, only_one, only_other, neither = pair.votes
    return f" (both pass on {both}, only {one} on {only_one}, only {other} on {only_other}, neither on {neither})"


def _smallest(pair: Pair) -> str:
    """The smallest difference that so many runs or cassettes could have shown."""
    if pair.votes is not None:
        least = f"{pair.smallest} cassettes that differ, all in one direction"
        return f"the least that would show: {least}" if pair.could_find else f"none could be: that takes {least}"
    one, other = pair.one.runs, pair.other.runs
    if pair.smallest is not None:
        return f"the least that would show: {one} of {one} against {pair.smallest} of {other}"
    if pair.could_find:
        return "too many runs to say which would show"
    return f"none could be with {one} and {other} runs"


def footing(suite: Suite) -> str:
    """What a suite ran on, in a line."""
    models = {each.cell.key.model for each in suite.cells}
    model = f" of {column_name((*models, ''))}" if len(models) == 1 else ""
    runs = count(runs_of(suite), "run")
    return one_line(f"suite {suite.id}, {suite.created}: {runs}{model}, Hermes {suite.hermes}, plugin {suite.plugin}")


def compact(value: Any, most: int) -> str:
    """A call's arguments as JSON in one line, cut to at most so many characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    except (RecursionError, ValueError, TypeError):
        text = "(cannot be shown)"
    return clip(one_line(text[: most + 1]), most)


def clipped(text: str, most: int) -> str:
    """A text of several lines, cut to at most so many characters, with a line that says so."""
    if len(text) <= most:
        return shown_text(text)
    return f"{shown_text(text[:most])}…\n({count(len(text) - most, 'more character')}: see the run file)"


def evidence(run: Run, number: int, most: int) -> list[str]:
    """What a run rests on, in lines: its pins, its path, its misses and its answer.

    :param number: which run of its cell, from 1.
    :param most: characters of the answer.
    """
    lines = [f"run {number}: {run.result}, {seconds_text(run.seconds)}"]
    lines += [f"reason: {one_line(clip(reason, 500))}" for reason in run.reasons[:_MOST]]
    lines += [f"{'[ok]' if held else '[--]'} {one_line(clip(pin, 500))}" for pin, held in run.pins[:_MOST]]
    lines += [f"path {one_line(clip(run.path, 500))}"] if run.path else []
    for miss in run.misses[:_MOST]:
        lines.append(f"miss: {one_line(clip(str(miss.get('tool')), 100))} {compact(miss.get('args'), 300)}")
        lines += [f"      {one_line(clip(str(miss.get(key)), 300))}" for key in ("reason", "nearest") if miss.get(key)]
    lines += [f"and {one}" for one in _cut(run)]
    lines += ["answer:", *(f"    {line}" for line in clipped(run.answer, most).split("\n"))]
    return lines


#: Pins, misses and reasons of a run that are shown at most.
_MOST = 20


def _cut(run: Run) -> Iterator[str]:
    for items, word in ((run.reasons, "reason"), (run.pins, "pin"), (run.misses, "miss")):
        if len(items) > _MOST:
            yield count(len(items) - _MOST, f"more {word}", "more misses" if word == "miss" else "")


def fitting(rows: Iterable[str], budget: int) -> list[str]:
    """Take rows while their UTF-8 bytes, two more for each, fit a budget; no row is made in vain but one."""
    kept: list[str] = []
    for row in rows:
        budget -= len(row.encode("utf-8", "backslashreplace")) + 2
        if budget < 0:
            break
        kept.append(row)
    return kept


def failing(runs: Sequence[Run]) -> list[tuple[int, Run]]:
    """The runs that did not pass with their numbers from 1, the worst first."""
    found = [(at, run) for at, run in enumerate(runs, 1) if run.result != "PASS"]
    return sorted(found, key=lambda each: WORST_FIRST.index(each[1].result))


def telling(pairs: Sequence[Pair]) -> list[Pair]:
    """Comparisons as a person wants them: differences first, then those over cassettes."""
    return sorted(pairs, key=lambda one: (not one.found.differs, one.votes is None))
