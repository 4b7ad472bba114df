"""A suite as one HTML file: no script, no request, nothing that a cassette holds as anything but text.

Never here: somebody's text outside of `svg.text` or `_marked`, which escape it; an
attribute made of it; an address but a fragment of the page itself.
"""

from __future__ import annotations

import html
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from ..cassette_store import shown as one_line
from . import marks, reports, svg
from .cells import IN_A_ROW, WORST_FIRST, Key, Outcome, Run
from .reports import CassetteFacts, Graded, Suite, clip, count
from .style import STYLE
from .svg import text

#: Bytes of a page; a browser grows slow on more than two millions.
LIMIT = 1_985_000
#: Of these, what comparisons and cells without their runs may take.
_PAIRS, _CELLS = 100_000, 700_000
#: Bytes of a run's details: about what it takes without its texts, what it may take however many there are, at most.
_BARE, _LEAST, _MOST = 900, 1_500, 24_000
#: Bytes that stay free, more than a run and a request take; and runs up to which each dot is a link.
_SPARE, _LINKED = 28_000, 2_000
#: Calls of a path, pins and reasons that are shown at most, and characters that a call's arguments may always take.
_CALLS, _ARGS = 60, 40

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class _Run(NamedTuple):
    """Runs of a cell that went the same way: their numbers from 1, and the first of them."""

    numbers: tuple[int, ...]
    run: Run


def render(suite: Suite) -> str:
    """Write a suite as a page: the verdict, the heat map, the comparisons, each cell with its runs.

    It takes at most `LIMIT` bytes of UTF-8: texts are cut, the runs of the
    best cells left out, and the page says so.
    """
    cells = suite.worst_first
    frames = reports.fitting((_frame(each, suite.require, at) for at, each in enumerate(cells)), _CELLS)
    anchors = {each.cell.key: f"c{at}" for at, each in enumerate(cells[: len(frames)])}
    before, after = _before(suite, anchors), _after(len(cells) - len(frames))
    room = LIMIT - sum(len(part.encode()) + 600 for part in (before, after, *frames))
    details = _details(suite, cells[: len(frames)], room)
    middle = [frame.replace(_HOLE, next(details), 1) for frame in frames]
    return "".join([before, *middle, after])


#: Where a cell's dots and runs go; no text of anybody's can hold it, since each `<` is escaped.
_HOLE = "<!--runs-->"


def _before(suite: Suite, anchors: Mapping[Key, str]) -> str:
    outcome = reports.outcome_of(suite)
    head, _, rest = reports.headline(suite).partition(":")
    tag = _tag(outcome) if outcome else text(head)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">'
        f"<title>{text(reports.headline(suite))}</title><style>{STYLE}</style></head><body>"
        '<a class="skip" href="#cells">Skip to the cells</a>'
        f"<header><h1>{tag} <span>{text(rest.strip() or head)}</span></h1>"
        f'<p class="small">{text(reports.footing(suite))}</p>'
        f'{_never(suite, anchors)}</header><main>{_overview(suite, anchors)}{_pairs(suite)}<section id="cells">'
        '<h2>Cells, worst first</h2><div class="cells">'
    )


def _never(suite: Suite, anchors: Mapping[Key, str]) -> str:
    never = reports.never_passed(suite)
    items = [
        f"<li>never passed: {_link(anchors.get(one.key), reports.cell_name(one.key))} ({reports.tally(one)})</li>"
        for one in (each.summary for each in never[:20])
    ]
    items += [f"<li>and {count(len(never) - 20, 'more cell')} that never passed</li>"] if len(never) > 20 else []
    return f'<ul class="never">{"".join(items)}</ul>' if items else ""


def _link(anchor: str | None, name: str) -> str:
    shown = text(clip(name, 200))
    return f'<a href="#{anchor}">{shown}</a>' if anchor else shown


def _tag(outcome: Outcome, word: str = "") -> str:
    sign = reports.SIGNS[outcome][0]
    return f'<b class="tag {outcome}">{sign} {word or outcome}</b>'


def _overview(suite: Suite, anchors: Mapping[Key, str]) -> str:
    if not suite.cells:
        return ""
    drawn, left = svg.heat_map(suite, anchors)
    more = f"<p>and {count(left, 'more cassette')}, none worse than these</p>" if left else ""
    return (
        '<section id="grid"><h2>Cassettes by model and arm</h2>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="heat map">{drawn}</div>{more}'
        '<p class="small">The fuller a box, the surer: blue where half of the runs pass or more, orange for fewer, '
        "a dashed border where a cell is INVALID.</p></section>"
    )


def _list(items: Sequence[str], kind: str = "") -> str:
    return f'<ul class="{kind}">{"".join(items)}</ul>' if items else ""


def _pairs(suite: Suite) -> str:
    if not suite.pairs:
        return ""
    told = reports.telling(suite.pairs)

    def named(name: str) -> str:
        return one_line(clip(name, 120))

    signs = {True: "<b>! </b>", False: ""}
    rows = (f"<li>{signs[pair.found.differs]}{text(reports.pair_text(pair, named))}</li>" for pair in told)
    kept = reports.fitting(rows, _PAIRS)
    more = f"<li>and {count(len(told) - len(kept), 'more comparison')}</li>" if len(kept) < len(told) else ""
    head = f"{count(len(told), 'comparison')}, p-values adjusted for all of them (Holm)"
    opened = " open" if len(told) <= 12 else ""
    return (
        f'<section id="pairs"><h2>Comparisons</h2><details{opened}><summary>{head}</summary>'
        f"<ul>{''.join(kept)}{more}</ul></details></section>"
    )


# --- a cell ------------------------------------------------------------------------


def _frame(each: Graded, require: float, at: int) -> str:
    """A cell without its runs, with a hole for these."""
    one = each.summary
    known = one.outcome != "INVALID"
    facts = [f"<b>{reports.tally(one)}</b>", reports.share_text(one, require)]
    facts += [("reached" if one.reached else "not reached"), ("shown" if one.shown else "not shown")] if known else []
    facts += [reports.others_text(one), reports.in_a_row_fact(one)]
    facts += [f"median {reports.seconds_text(one.seconds)}" if one.seconds is not None else ""]
    facts += [f"{reports.tokens_text(one.tokens)} tokens" if one.tokens is not None else ""]
    facts += [reports.cost_text(one.cost) if one.cost is not None else ""]
    remarks = [one.remark, reports.ONE_ANSWER if one.one_answer else ""]
    noted = "".join(f'<p class="small">{text(clip(remark, 500))}</p>' for remark in remarks if remark)
    name = text(clip(reports.cell_name(one.key), 300))
    return (
        f'<article id="c{at}" class="cell {one.outcome}"><h3>{_tag(one.outcome)} {name}</h3>'
        f'<div class="facts">{svg.bar(one, require)}<span>{", ".join(fact for fact in facts if fact)}</span></div>'
        f"{noted}{_HOLE}</article>"
    )


class _Room:
    """The bytes that are left for runs, and how many runs wait for their part."""

    def __init__(self, room: int, runs: int) -> None:
        self.left, self._waiting = room - _SPARE, runs
        self._least = _LEAST
        self._rate = 3.0  # bytes that a run took for each character its texts were cut to

    @property
    def is_full(self) -> bool:
        return self.left <= 0

    def take(self, text: str) -> str:
        self.left -= len(text.encode())
        return text

    def run(self, group: _Run, facts: CassetteFacts | None, anchor: str) -> str:
        """Write a run in its part of what is left, its texts cut as far as that takes, or left out."""
        part = max(self._least, min(_MOST, self.left * len(group.numbers) // max(1, self._waiting)))
        self._waiting -= len(group.numbers)
        most = max(_ARGS, int((part - _BARE) / self._rate))
        while True:
            made = _told(group, facts, anchor, most)
            size = len(made.encode())
            self._rate = max(1.5, min(30.0, max((size - _BARE) / most * 1.05, self._rate * 0.9)))
            if size <= part:
                return self.take(made)
            if most == _ARGS:
                break
            most = max(_ARGS, int(most * (part / size) ** 2)) if most > 3 * _ARGS else _ARGS
        self._least = min(_MOST, size + size // 20)  # for the next ones: fewer, but each with its texts
        return self.take(_told(group, None, anchor, 0))


def _details(suite: Suite, cells: Sequence[Graded], bytes_left: int) -> Iterator[str]:
    """Each cell's dots and runs; a run may take its part of the bytes that are left for all of them."""
    runs = sum(len(each.cell.runs) for each in cells)
    linked = runs <= _LINKED
    dots = sum(len(svg.dots(each.cell.runs, {}, linked).encode()) for each in cells) + 60 * linked * runs
    room = _Room(bytes_left - dots, runs)
    for at, each in enumerate(cells):
        facts = suite.cassettes.get(each.cell.key.cassette)
        asked = "" if room.is_full else room.take(_asked(facts))
        parts: list[str] = []
        anchors: dict[int, str] = {}
        for number, group in enumerate([] if room.is_full else _grouped(each.cell.runs)):
            if room.is_full:
                break
            anchor = f"c{at}r{number}"
            parts.append(room.run(group, facts, anchor))
            anchors.update(dict.fromkeys(group.numbers, anchor))
        yield svg.dots(each.cell.runs, anchors, linked) + _unfold(
            each, asked, parts, len(each.cell.runs) - len(anchors)
        )


def _unfold(each: Graded, asked: str, parts: Sequence[str], missing: int) -> str:
    if not each.cell.runs:
        return ""
    cut = (
        f'<p class="small">{count(missing, "run")} not shown, for want of room: see the run files</p>'
        if missing
        else ""
    )
    return f"<details><summary>{_opens(each)}</summary>{asked}{''.join(parts)}{cut}</details>"


def _opens(each: Graded) -> str:
    models = sorted({run.model for run in each.cell.runs if run.model})
    told = f", answered by {text(clip(reports.names_text(models), 200))}" if models else ""
    return f"{count(len(each.cell.runs), 'run')}{told}"


def _asked(facts: CassetteFacts | None) -> str:
    if facts is None:
        return '<p class="small">The cassette is gone, so nothing recorded can be shown.</p>'
    model = f", recorded by {text(clip(facts.model, 100))}" if facts.model else ""
    return f'<p class="small">Request{model}:</p><pre>{html.escape(reports.clipped(facts.request, 600))}</pre>'


def _grouped(runs: Sequence[Run]) -> list[_Run]:
    """Runs by what they did, the worst first; those that did just the same stand together."""
    found: dict[Any, list[int]] = {}
    for number, run in enumerate(runs, 1):
        found.setdefault((run.result, run.answer, run.pins, run.reasons, _calls_key(run)), []).append(number)
    groups = [_Run(tuple(numbers), runs[numbers[0] - 1]) for numbers in found.values()]
    return sorted(groups, key=lambda group: (WORST_FIRST.index(group.run.result), group.numbers))


def _calls_key(run: Run) -> str:
    try:
        return repr(run.calls)
    except RecursionError:
        return f"too deep: {id(run)}"


# --- a run -------------------------------------------------------------------------


def _told(group: _Run, facts: CassetteFacts | None, anchor: str, most: int) -> str:
    """Write a run, each of its texts cut to so many characters; with 0 only that there was one."""
    run = group.run
    head = f'{_tag(run.result)} {_numbers(group)} <span class="small">{text(_gist(run))}</span>'
    body = '<p class="small">Its texts are left out, for want of room: see the run file.</p>'
    if most:
        reasons = [f"<li>{text(clip(reason, most))}</li>" for reason in run.reasons[:_CALLS]]
        pins = [f"<li>{_held(held)} <code>{text(clip(pin, most))}</code></li>" for pin, held in run.pins[:_CALLS]]
        body = f"{_list(reasons)}{_list(pins, 'pins')}{_answers(run, facts, most)}{_path(run, facts, most)}"
    return f'<details class="run"><summary>{head}</summary><div id="{anchor}">{body}</div></details>'


def _held(held: bool) -> str:
    return _tag("PASS", "held") if held else _tag("FAIL", "missing")


def _numbers(group: _Run) -> str:
    shown, many = ", ".join(map(str, group.numbers[:12])), len(group.numbers)
    if many == 1:
        return f"run {shown}"
    return f"runs {shown}{' and more' if many > 12 else ''} ({many} runs that went the same way)"


def _gist(run: Run) -> str:
    """What to know of a run before it is unfolded."""
    missing = [pin for pin, held in run.pins if not held]
    said = [reports.seconds_text(run.seconds)]
    said += [f"missing: {clip(missing[0], 60)}"] if missing else []
    said += [f"and {len(missing) - 1} more"] if len(missing) > 1 else []
    said += [count(len(run.misses), "miss", "misses")] if run.misses else []
    return ", ".join(said)


def _answers(run: Run, facts: CassetteFacts | None, most: int) -> str:
    """The recorded answer and this one, what differs and where pins stand marked."""
    pins = [pin for pin, _ in run.pins[:_CALLS]]
    if facts is not None and facts.answer == run.answer:
        return f"<h4>The recorded answer, word for word</h4><pre>{_marked(run.answer, [], pins, 'ins', most)}</pre>"
    if facts is None:
        return f"<h4>This answer</h4><pre>{_marked(run.answer, [], pins, 'ins', most)}</pre>"
    gone, new = marks.differences(facts.answer[: 2 * most], run.answer[: 2 * most])
    recorded, made = _marked(facts.answer, gone, pins, "del", most), _marked(run.answer, new, pins, "ins", most)
    return (
        f'<div class="two"><div><h4>Recorded answer</h4><pre>{recorded}</pre></div>'
        f"<div><h4>This answer</h4><pre>{made}</pre></div></div>"
    )


def _marked(whole: str, changed: Sequence[marks.Span], pins: Sequence[str], tag: str, most: int) -> str:
    """Escape a text, cut, with its changes in a tag and its pins in `mark`."""
    part = whole[:most]
    found = [span for pin in pins for span in marks.pin_spans(pin, part)]
    edges = sorted({0, len(part), *(min(edge, len(part)) for span in (*changed, *found) for edge in span)})
    inside = _covered(edges, changed), _covered(edges, found)
    pieces = []
    for start, end in zip(edges, edges[1:]):
        piece = html.escape(reports.shown_text(part[start:end]))
        piece = f"<mark>{piece}</mark>" if start in inside[1] else piece
        pieces.append(f"<{tag}>{piece}</{tag}>" if start in inside[0] else piece)
    if len(whole) > most:
        pieces.append(f'<i class="cut">… {count(len(whole) - most, "more character")}: see the run file</i>')
    return "".join(pieces) or '<i class="cut">(empty)</i>'


def _covered(edges: Sequence[int], spans: Sequence[marks.Span]) -> set[int]:
    """Which edges start a piece that lies within a span."""
    steps: dict[int, int] = {}
    for start, end in spans:
        steps[start] = steps.get(start, 0) + 1
        steps[end] = steps.get(end, 0) - 1
    found, depth = set(), 0
    for edge in edges:
        depth += steps.get(edge, 0)
        if depth > 0:
            found.add(edge)
    return found


def _path(run: Run, facts: CassetteFacts | None, most: int) -> str:
    """The recorded calls beside this run's, those that belong together in a row, as many as there is room for."""
    calls = facts.calls if facts else ()
    if not calls and not run.calls:
        return ""
    pairs = marks.paths(calls, run.calls)
    if all(a == b for a, b in pairs) and all(call.get("how") == "hit" for call in run.calls):
        return f'<p class="small">Path: the {count(len(calls), "recorded call")}, in that order, all hit</p>'
    shown = min(_CALLS, max(3, most // 12))
    rows = []
    for a, b in pairs[:shown]:
        one = _call(*calls[a], most, "" if b is not None else "recorded only") if a is not None else "<td></td>"
        made = run.calls[b] if b is not None else {}
        other = _call(str(made.get("tool")), made.get("args"), most, _how(made, most)) if made else "<td></td>"
        rows.append(f"<tr>{one}{other}</tr>")
    more = (
        f'<p class="small">and {count(len(pairs) - shown, "more row")}: see the run file</p>'
        if shown < len(pairs)
        else ""
    )
    heads = '<tr><th scope="col">Recorded path</th><th scope="col">This path</th></tr>'
    return f'<table class="path">{heads}{"".join(rows)}</table>{more}'


def _call(tool: str, args: Any, most: int, note: str) -> str:
    told = f' <b class="how">{text(note)}</b>' if note else ""
    cut = max(_ARGS, most // 4)
    return f"<td><code>{text(clip(tool, cut))} {text(reports.compact(args, cut))}</code>{told}</td>"


def _how(call: Mapping[str, Any], most: int) -> str:
    """How a call was answered; of a miss also why, and which recorded call came nearest."""
    said = [str(call.get("how", ""))]
    if said == ["miss"]:
        said += [clip(str(call[key]), max(_ARGS, most // 4)) for key in ("reason", "nearest") if call.get(key)]
    return "; ".join(said)


# --- below -------------------------------------------------------------------------


def _after(left: int) -> str:
    more = f"<p>and {count(left, 'more cell')}, none worse than these: see --json</p>" if left else ""
    words = "".join(
        f"<dt>{svg.sample(one)} {_tag(one)}</dt><dd>{meaning}</dd>" for one, meaning in reports.MEANINGS.items()
    )
    return (
        f'</div>{more}</section><section id="words"><h2>How to read this</h2><dl>{words}'
        "<dt>share (95 %)</dt><dd>passes of tries, and the Wilson interval: a bar with two ends, its share a dot; "
        "a dashed line is what was required</dd>"
        "<dt>reached, shown</dt><dd>the share is at or above what was required; the interval's lower end is too</dd>"
        f"<dt>{reports.PASS_K}</dt><dd>the chance that {IN_A_ROW} runs, drawn from these, all pass; "
        f"told of more than {IN_A_ROW} tries only</dd>"
        "<dt>no difference shown</dt><dd>there may be one, too small for so few runs to show</dd>"
        "<dt>in answers</dt><dd><mark>a pin</mark>, where it can be found without trying a regular expression; "
        "<del>recorded, and not here</del>; <ins>here, and not recorded</ins></dd></dl></section></main></body></html>"
        "\n"
    )
