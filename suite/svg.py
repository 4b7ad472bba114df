"""The pictures of the HTML report: a heat map, a bar with its interval, a dot for each run.

Each is an inline SVG without a reference to the outside; its colours come from
classes of the page, and each outcome has a shape and a word of its own beside them.
"""

from __future__ import annotations

import html
from typing import Mapping, Sequence

from ..cassette_store import shown as one_line
from . import reports
from .cells import WORST_FIRST, Key, Outcome, Run, Summary
from .pairs import Column, column_names
from .reports import Suite, clip

#: Pixels of the heat map: names at the left, heads above, a box, and the gap between boxes.
_NAMES, _HEADS, _WIDE, _HIGH, _GAP = 132, 24, 112, 42, 4
#: Cells of the heat map beyond which it shows no more cassettes.
_MOST_BOXES = 1_000
#: Pixels of a bar, dots in a row, pixels from dot to dot, and dots of a cell at most.
_BAR, _ROW, _STEP, _MOST_DOTS = 220, 25, 14, 2_000


def text(value: str) -> str:
    """Escape somebody's text for the page, in one line."""
    return html.escape(one_line(value))


def heat_map(suite: Suite, anchors: Mapping[Key, str]) -> tuple[str, int]:
    """Draw cassettes by models and arms, the worst cassette first.

    :param anchors: the id of each cell that has a place in the page.
    :returns: the picture, and how many cassettes are left out of it.
    """
    columns = suite.columns
    cassettes = list(dict.fromkeys(each.cell.key.cassette for each in suite.worst_first))
    shown = cassettes[: max(1, _MOST_BOXES // max(1, len(columns)))]
    width, height = _NAMES + len(columns) * (_WIDE + _GAP), _HEADS + len(shown) * (_HIGH + _GAP)
    parts = [f'<svg class="heat" width="{width}" height="{height}" viewBox="0 0 {width} {height}">']
    parts.append("<title>Share of PASS by cassette, and by model and arm</title>")
    parts += _heads(columns)
    summaries = {each.cell.key: each.summary for each in suite.cells}
    for row, cassette in enumerate(shown):
        y = _HEADS + row * (_HIGH + _GAP)
        parts.append(_named(cassette, 0, y + 10, _NAMES - 6))
        for at, column in enumerate(columns):
            key = Key(cassette, *column)
            if key in summaries:
                parts.append(_box(summaries[key], _NAMES + at * (_WIDE + _GAP), y, anchors.get(key, "")))
    return "".join([*parts, "</svg>"]), len(cassettes) - len(shown)


def _heads(columns: Sequence[Column]) -> list[str]:
    names = column_names(columns).values()
    return [_named(name, _NAMES + at * (_WIDE + _GAP) + 4, 0, _WIDE - 4) for at, name in enumerate(names)]


def _named(name: str, x: int, y: int, width: int) -> str:
    """A name, cut off where its room ends; a pointer that rests on it shows more of it."""
    title = f"<title>{text(clip(name, 300))}</title>" if len(name) > 12 else ""
    drawn = f'<text y="16">{text(clip(name, 40))}{title}</text>'
    return f'<svg x="{x}" y="{y}" width="{width}" height="22">{drawn}</svg>'


def _box(one: Summary, x: int, y: int, anchor: str) -> str:
    """A cell of the heat map: the surer it passes or fails, the fuller its colour."""
    share = one.share
    kind = "none" if share is None or one.outcome == "INVALID" else "good" if share >= 0.5 else "bad"
    full = 0.0 if share is None else abs(2 * share - 1)
    sign = reports.SIGNS[one.outcome][0]
    place = f'x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="4"'
    drawn = (
        f'<rect class="box {kind}" {place} fill-opacity="{0.08 + 0.4 * full:.2f}"/>'
        f'<text class="word" x="{x + 8}" y="{y + 18}">{sign} {one.outcome}</text>'
        f'<text x="{x + 8}" y="{y + 34}">{reports.tally(one)}</text>'
    )
    return f'<a href="#{anchor}">{drawn}</a>' if anchor else drawn


def bar(one: Summary, require: float) -> str:
    """Draw a share from 0 to 1 with its interval, and what was required as a line."""
    if one.share is None or one.interval is None:
        return ""
    left, right = (4 + end * _BAR for end in one.interval)
    at, wanted = 4 + one.share * _BAR, 4 + require * _BAR
    told = f"{reports.share_text(one, require)}, required {reports.required(require)}"
    return (
        f'<svg class="bar {one.outcome}" width="{_BAR + 8}" height="22" viewBox="0 0 {_BAR + 8} 22" role="img">'
        f'<title>{told}</title><rect class="track" x="4" y="8" width="{_BAR}" height="6" rx="3"/>'
        f'<path class="span" d="M{left:.1f} 11H{right:.1f}M{left:.1f} 6v10M{right:.1f} 6v10"/>'
        f'<path class="wanted" d="M{wanted:.1f} 1v20"/><circle class="share" cx="{at:.1f}" cy="11" r="5"/></svg>'
    )


#: How each outcome of a run is drawn from the middle of its place.
_SHAPES: Mapping[Outcome, str] = {
    "PASS": "h0",  # the style's round end of a line of no length
    "FAIL": "m-4-4l8 8m0-8l-8 8",
    "DIVERGED": "m0-5l5 9h-10z",
    "INVALID": "m-3.5-3.5h7v7h-7z",
}


def dots(runs: Sequence[Run], anchors: Mapping[int, str], linked: bool = True) -> str:
    """Draw each run of a cell as a shape, in the order in which they ended.

    :param anchors: the id of each run that has a place in the page, by its number from 1.
    :param linked: draw each run by itself, so that it can be a link and has a word of its own.
    """
    shown = runs[:_MOST_DOTS]
    width, height = min(len(shown), _ROW) * _STEP, -(-len(shown) // _ROW) * _STEP
    places = [(at % _ROW * _STEP + 7, at // _ROW * _STEP + 7) for at in range(len(shown))]
    counts = ", ".join(f"{n} {one}" for one in reversed(WORST_FIRST) if (n := sum(run.result == one for run in runs)))
    head = f'<svg class="dots" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="group">'
    head += f"<title>{reports.count(len(runs), 'run')}: {counts}</title>"
    if linked:
        drawn = [_dot(run, number, place, anchors) for number, (run, place) in enumerate(zip(shown, places), 1)]
    else:
        lines = {
            one: "".join(_drawn(one, at) for run, at in zip(shown, places) if run.result == one) for one in WORST_FIRST
        }
        drawn = [f'<path class="dot {one}" d="{line}"/>' for one, line in lines.items() if line]
    more = f"and {reports.count(len(runs) - len(shown), 'more run')}" if len(runs) > len(shown) else ""
    return "".join([head, *drawn, "</svg>", more])


def sample(outcome: Outcome) -> str:
    """Draw an outcome's shape alone, for a legend."""
    drawn = f'<path class="dot {outcome}" d="{_drawn(outcome, (7, 7))}"/>'
    return f'<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">{drawn}</svg>'


def _dot(run: Run, number: int, place: tuple[int, int], anchors: Mapping[int, str]) -> str:
    title = f"<title>run {number}: {run.result}</title>"
    drawn = f'<path class="dot {run.result}" d="{_drawn(run.result, place)}">{title}</path>'
    anchor = anchors.get(number)
    return f'<a href="#{anchor}" tabindex="-1">{drawn}</a>' if anchor else drawn


def _drawn(outcome: Outcome, place: tuple[int, int]) -> str:
    return f"M{place[0]} {place[1]}{_SHAPES[outcome]}"
