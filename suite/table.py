"""A suite as a table for a terminal: text in, no escape sequence of anybody else's out.

Never here: a colour that was not asked for, or one that stands alone, or a cell
that never passes hidden behind a total.
"""

from __future__ import annotations

import unicodedata
from typing import Callable, Iterator, NamedTuple, Sequence

from ..cassette_store import shown as one_line  # here "shown" is a word of statistics
from . import reports
from .cells import Key, Outcome, Summary
from .pairs import Pair, column_names
from .reports import Graded, Suite, count

#: Colours a word, by the names "green", "red", "yellow" and "dim"; `cli.Screen.paint` is one.
_Paint = Callable[[str, str], str]

#: Rows and comparisons beyond which a terminal shows no more.
_MOST_ROWS, _MOST_PAIRS = 200, 20
#: Our own signs, where a console knows ASCII only.
_ASCII = str.maketrans({"–": "-", "…": "...", "✓": "+", "✗": "x", "≠": "~", "−": "-"})
_COLOURS: dict[Outcome, str] = {"PASS": "green", "FAIL": "red", "DIVERGED": "yellow", "INVALID": "yellow"}


def _plain(text: str, colour: str) -> str:
    """Paint nothing."""
    return text


class _Style(NamedTuple):
    """How to write: the console's columns, whether it knows ASCII only, and what paints."""

    width: int
    ascii_only: bool
    paint: _Paint

    def text(self, text: str) -> str:
        """A text in one line, in characters that the console knows."""
        flat = one_line(text)
        return flat.translate(_ASCII).encode("ascii", "backslashreplace").decode() if self.ascii_only else flat

    def wrapped(self, text: str, indent: str = "    ", first: str = "") -> Iterator[str]:
        """A text in lines that fit, all but the first indented."""
        line, room = first, False
        for word in self._words(self.text(text), self.width - max(len(indent), len(first))):
            if room and columns(line) + 1 + columns(word) > self.width:
                yield line
                line, room = indent, False
            line, room = f"{line} {word}" if room else line + word, True
        yield line

    def _words(self, text: str, most: int) -> Iterator[str]:
        """The words of a text, those that fit no line cut where it ends."""
        for word in text.split(" "):
            while columns(word) > most:
                cut = most if word.isascii() else most // 2  # a character takes two columns at most
                yield word[:cut]
                word = word[cut:]
            yield word


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_column(character) for character in text)


def _column(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def render(suite: Suite, width: int = 80, ascii_only: bool = False, paint: _Paint = _plain) -> str:
    """Write a suite for a terminal: the verdict, what never passed, the cells, the comparisons.

    The cells are a grid of cassettes by models and arms where that fits, with a
    row for each cell that did not pass throughout; else a row each.

    :param width: columns of the terminal.
    :param paint: colours a word; by default nothing is coloured.
    """
    style = _Style(max(20, width), ascii_only, paint)
    grid = list(_grid(suite, style))
    rows = [each for each in suite.worst_first if not grid or each.summary.passes < len(each.cell.runs)]
    blocks = [list(_head(suite, style)), grid, list(_rows(suite, rows, style))]
    blocks += [list(_remarks(suite, style)), list(_pairs(suite.pairs, style))]
    blocks.append(list(style.wrapped(reports.footing(suite), "  ")))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(suite: Suite, style: _Style) -> Iterator[str]:
    for each in reports.never_passed(suite)[:_MOST_ROWS]:
        name = reports.cell_name(each.summary.key)
        yield from _led("FAIL", f"never passed: {name} ({reports.tally(each.summary)})", style, each.summary.outcome)
    yield from _led(reports.outcome_of(suite), reports.headline(suite), style, None)


def _led(colour: Outcome | None, text: str, style: _Style, sign: Outcome | None) -> Iterator[str]:
    """A text in lines, its first word or its sign coloured."""
    lines = list(style.wrapped(text, "  ", f"{style.text(reports.SIGNS[sign][0])} " if sign else ""))
    head, space, rest = lines[0].partition(" ")
    yield (style.paint(head, _COLOURS[colour]) if colour else head) + space + rest
    yield from lines[1:]


# --- the grid ----------------------------------------------------------------------


def _grid(suite: Suite, style: _Style) -> Iterator[str]:
    """The cells by cassette and column, cassettes with the worst cell first; nothing if it would not fit."""
    cassettes = list(dict.fromkeys(each.cell.key.cassette for each in suite.worst_first))
    if min(len(cassettes), len(suite.columns)) < 2 or len(cassettes) > _MOST_ROWS:
        return
    place = {each.cell.key: _boxed(each.summary, suite.require, style) for each in suite.cells}
    heads = [style.text(name) for name in column_names(suite.columns).values()]
    names = [style.text(name) for name in cassettes]
    wide = max(map(columns, names))
    widths = [max(columns(text) for text in (head, *(t for box in place.values() for t in box))) for head in heads]
    if wide + sum(2 + one for one in widths) > style.width:
        return
    outcomes = {each.cell.key: each.summary.outcome for each in suite.cells}
    yield _padded(["", *heads], [wide, *widths])
    for cassette, name in zip(cassettes, names):
        keys = [Key(cassette, *column) for column in suite.columns]
        boxes = [place.get(key, ["-"]) for key in keys]
        for at in range(max(map(len, boxes))):
            texts = [box[at] if at < len(box) else "" for box in boxes]
            told = [
                _told(t, n, outcomes.get(k), style) if not at else _fill(t, n) for t, n, k in zip(texts, widths, keys)
            ]
            yield "  ".join([_fill(name if not at else "", wide), *told]).rstrip()


def _boxed(summary: Summary, require: float, style: _Style) -> list[str]:
    """A cell of the grid: its outcome and count, its share, its medians."""
    lines = [f"{reports.SIGNS[summary.outcome][0]} {summary.outcome} {reports.tally(summary)}"]
    lines.append("  " + reports.share_text(summary, require))
    medians = ", ".join(fact for fact in _medians(summary) if fact)
    return [style.text(line) for line in (*lines, *(["  " + medians] if medians else []))]


def _told(text: str, width: int, outcome: Outcome | None, style: _Style) -> str:
    """A cell's first line, its word coloured, padded."""
    padded = _fill(text, width)
    return padded.replace(outcome, style.paint(outcome, _COLOURS[outcome]), 1) if outcome else padded


def _medians(summary: Summary) -> list[str]:
    return [
        reports.seconds_text(summary.seconds) if summary.seconds is not None else "",
        f"{reports.tokens_text(summary.tokens)} tokens" if summary.tokens is not None else "",
        reports.cost_text(summary.cost) if summary.cost is not None else "",
    ]


# --- the rows ----------------------------------------------------------------------


class _Column(NamedTuple):
    """A column of the table: its head, its text for a cell, and what a line says of it where it has no room."""

    head: str
    text: Callable[[Summary], str]
    fact: Callable[[Summary], str]
    right: bool = True
    nothing: str = "-"  #: a column of nothing but this says nothing


def _table_columns(require: float) -> list[_Column]:
    """All columns but the cell's name, the ones that give way last first."""

    def number_of(outcome: Outcome, head: str) -> _Column:
        def fact(one: Summary) -> str:
            return f"{one.counts[outcome]} {outcome}" if one.counts[outcome] else ""

        return _Column(head, lambda one: f"{one.counts[outcome]}", fact, nothing="0")

    def whether(one: Summary, true: bool, words: tuple[str, str, str]) -> str:
        return words[2] if one.outcome == "INVALID" else words[0] if true else words[1]

    def column(head: str, true: Callable[[Summary], bool]) -> _Column:
        return _Column(
            head,
            lambda one: whether(one, true(one), ("yes", "no", "-")),
            lambda one: whether(one, true(one), (head, f"not {head}", "")),
        )

    return [
        _Column("", lambda one: f"{reports.SIGNS[one.outcome][0]} {one.outcome}", lambda one: "", False),
        _Column("PASS", reports.tally, reports.tally),
        _Column("share (95 %)", lambda one: reports.share_text(one, require), lambda one: "", False),
        column("reached", lambda one: one.reached),
        column("shown", lambda one: one.shown),
        number_of("FAIL", "FAIL"),
        number_of("DIVERGED", "DIV."),
        number_of("INVALID", "INV."),
        _Column(reports.PASS_K, reports.in_a_row_text, reports.in_a_row_fact),
        _Column("median", lambda one: reports.seconds_text(one.seconds), lambda one: _medians(one)[0]),
        _Column("tokens", lambda one: reports.tokens_text(one.tokens), lambda one: _medians(one)[1]),
        _Column("cost", lambda one: reports.cost_text(one.cost), lambda one: _medians(one)[2]),
    ]


#: Columns that always stand beside a cell's name: its outcome, its count and its share.
_FIRST = 3


def _rows(suite: Suite, cells: Sequence[Graded], style: _Style) -> Iterator[str]:
    """A row for each cell; what does not fit beside stands in a line below it."""
    summaries = [each.summary for each in cells[:_MOST_ROWS]]
    if not summaries:
        return
    names = [style.text(reports.cell_name(one.key)) for one in summaries]
    table = [column for column in _table_columns(suite.require) if _says(column, summaries)]
    widths = [max(columns(style.text(t)) for t in (c.head, *map(c.text, summaries))) for c in table]
    wide, fitting = max(map(columns, names)), len(table)
    while fitting > _FIRST and sum(widths[:fitting]) + 2 * fitting + wide > style.width:
        fitting -= 1
    above = sum(widths[:fitting]) + 2 * fitting + wide > style.width  # not even so: the name has a line of its own
    for at, (name, one) in enumerate(zip(names, summaries)):
        if not at:
            head = [style.text(column.head) for column in table[:fitting]]
            yield _padded([*head, "" if above else "cell"], [*widths[:fitting], 0], table[:fitting])
        if above:
            yield from style.wrapped(name, "  ")
        texts = [style.text(column.text(one)) for column in table[:fitting]]
        line = _padded([*texts, "" if above else name], [*widths[:fitting], 0], table[:fitting])
        yield line.replace(one.outcome, style.paint(one.outcome, _COLOURS[one.outcome]), 1)
        facts = [fact for column in table[fitting:] if (fact := column.fact(one))]
        yield from style.wrapped(", ".join(facts), "  ", "  ") if facts else ()
    if len(cells) > _MOST_ROWS:
        yield f"and {count(len(cells) - _MOST_ROWS, 'more cell')}, none worse than these"


def _says(column: _Column, summaries: Sequence[Summary]) -> bool:
    return any(column.text(one) != column.nothing for one in summaries)


def _padded(texts: Sequence[str], widths: Sequence[int], table: Sequence[_Column] = ()) -> str:
    right = [column.right for column in table] + [False] * len(texts)
    return "  ".join(_fill(text, width, side) for text, width, side in zip(texts, widths, right)).rstrip()


def _fill(text: str, width: int, right: bool = False) -> str:
    space = " " * (width - columns(text))
    return space + text if right else text + space


# --- below the table ---------------------------------------------------------------


def _remarks(suite: Suite, style: _Style) -> Iterator[str]:
    for remark, names in reports.remarks(suite):
        yield from style.wrapped(f"{remark} [{count(len(names), 'cell')}: {reports.names_text(names)}]", "  ")


def _pairs(pairs: Sequence[Pair], style: _Style) -> Iterator[str]:
    if not pairs:
        return
    yield from style.wrapped(f"{count(len(pairs), 'comparison')}, p-values adjusted for all of them:", "  ")
    chosen = reports.telling(pairs)
    for pair in chosen[:_MOST_PAIRS]:
        sign = "! " if pair.found.differs else "  "
        yield from style.wrapped(reports.pair_text(pair), "      ", "  " + sign)
    if len(chosen) > _MOST_PAIRS:
        yield f"  and {len(chosen) - _MOST_PAIRS:,} more" + _rest(chosen[_MOST_PAIRS:])


def _rest(pairs: Sequence[Pair]) -> str:
    return "" if any(pair.found.differs for pair in pairs) else ", no difference shown"
