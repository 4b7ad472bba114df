"""A suite as Markdown for a pull request's comment or a step's summary.

Never here: a name or an answer outside of a code span or a fenced block, where it
could mention a person, close a table's cell or become a tag; or more bytes than a
comment takes.
"""

from __future__ import annotations

import html
import re
from typing import Iterator, Sequence

from ..cassette_store import shown as one_line
from . import reports
from .cells import Summary
from .pairs import Pair
from .reports import Graded, Suite, count

#: UTF-8 bytes of a whole report: GitHub's body of a pull request takes 65,536.
LIMIT = 60_000
#: Of these, what the table, then the remarks, then the comparisons may take; details take what is left.
_TABLE, _REMARKS, _PAIRS = 30_000, 4_000, 10_000
#: Characters of a name, of an answer, and runs of a cell in the details; names said before the table.
_NAME, _ANSWER, _RUNS, _FIRST = 120, 1_000, 3, 10
#: Rows that could fit at all.
_ROWS = 500

_HEADS = (
    "result",
    "cell",
    "PASS",
    "share (95 %)",
    "reached",
    "shown",
    "other runs",
    reports.PASS_K,
    "median",
    "tokens",
    "cost",
)
_RULES = ("---", "---", "--:", "---", "---", "---", "---", "--:", "--:", "--:", "--:")


def render(suite: Suite, details: str = "") -> str:
    """Write a suite as Markdown: the verdict, the table worst first, comparisons and failures folded.

    :param details: where all of it can be read, such as the name of the HTML
        report; named wherever something is left out.
    """
    where = f": see {code(details)}" if details else ""
    blocks = [_verdict(suite, where), _table(suite, where), _remarks(suite), _pairs(suite.pairs, where)]
    ending = f"{code(reports.footing(suite), 300)}\n"
    text = "\n\n".join(block for block in blocks if block)
    room = LIMIT - len(f"{text}\n\n{ending}".encode()) - 600  # for the line that says what was cut
    failed = [each for each in suite.worst_first if reports.failing(each.cell.runs) or each.cell.trouble]
    kept = reports.fitting((_detail(suite, each) for each in failed), room)
    return "\n\n".join([text, *kept, *_more(len(failed) - len(kept), "more failing cell", where), ending])


def _more(left: int, what: str, where: str) -> list[str]:
    return [f"and {count(left, what)}{where}"] if left else []


def code(text: str, most: int = _NAME) -> str:
    """Write a text as a code span that holds in a table's cell too, cut to at most so many characters."""
    flat = reports.clip(one_line(text), most)
    if not flat.strip():
        return "(empty)"
    fence = "`" * (1 + max(map(len, re.findall("`+", flat)), default=0))
    space = " " if flat[0] in "` " or flat[-1] in "` " else ""
    return f"{fence}{space}{flat}{space}{fence}".replace("|", "\\|")


def block(text: str) -> str:
    """Write a text as a fenced block that nothing in it can close."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def _verdict(suite: Suite, where: str) -> str:
    outcome = reports.outcome_of(suite)
    never = reports.never_passed(suite)
    names = [f"{code(reports.cell_name(each.summary.key))} ({reports.tally(each.summary)})" for each in never[:_FIRST]]
    lines = [f"- **never passed:** {name}" for name in names]
    lines += [f"- {more}" for more in _more(len(never) - len(names), "more cell", where)]
    head = f"### {reports.SIGNS[outcome][0]} {reports.headline(suite)}" if outcome else f"### {reports.headline(suite)}"
    return "\n".join([head, "", *lines] if lines else [head])


def _table(suite: Suite, where: str) -> str:
    """The cells, without a column that says nothing."""
    rows = [_texts(each.summary, suite.require) for each in suite.worst_first[:_ROWS]]
    said = [at for at in range(len(_HEADS)) if any(row[at] != "-" for row in rows)]
    if not rows:
        return ""
    heads = ["| " + " | ".join(part[at] for at in said) + " |" for part in (_HEADS, _RULES)]
    kept = reports.fitting(("| " + " | ".join(row[at] for at in said) + " |" for row in rows), _TABLE)
    more = _more(len(suite.cells) - len(kept), "more cell", f", none worse than these{where}")
    return "\n".join([*heads, *kept, *([""] if more else []), *more])


def _texts(one: Summary, require: float) -> list[str]:
    """What stands in a cell's row, in the order of the heads."""
    known = one.outcome != "INVALID"
    return [
        f"{reports.SIGNS[one.outcome][0]} {one.outcome}",
        code(reports.cell_name(one.key)),
        reports.tally(one),
        reports.share_text(one, require),
        "-" if not known else "yes" if one.reached else "no",
        "-" if not known else "yes" if one.shown else "no",
        reports.others_text(one) or "-",
        reports.in_a_row_text(one),
        reports.seconds_text(one.seconds),
        reports.tokens_text(one.tokens),
        reports.cost_text(one.cost),
    ]


def _remarks(suite: Suite) -> str:
    rows = []
    for remark, names in reports.remarks(suite):
        told = ", ".join(code(name) for name in names[:2])
        more = f" and {count(len(names) - 2, 'more cell')}" if len(names) > 2 else ""
        rows.append(f"- {told}{more}: {code(remark, 300)}")
    kept = reports.fitting(rows, _REMARKS)
    return "\n".join([*kept, *(f"- {more}" for more in _more(len(rows) - len(kept), "more remark", ""))])


def _pairs(pairs: Sequence[Pair], where: str) -> str:
    if not pairs:
        return ""
    kept = reports.fitting((f"- {reports.pair_text(pair, code)}" for pair in reports.telling(pairs)), _PAIRS)
    more = [f"- {more}" for more in _more(len(pairs) - len(kept), "more comparison", where)]
    found = sum(pair.found.differs for pair in pairs)
    head = f"{count(len(pairs), 'comparison')}, {count(found, 'difference') if found else 'no difference shown'}"
    return _folded(f"{head}; p-values adjusted for all of them", "\n".join([*kept, *more]))


def _folded(head: str, body: str) -> str:
    """Fold a text.

    :param head: HTML, in one line.
    """
    return f"<details><summary>{head}</summary>\n\n{body}\n\n</details>"


def _detail(suite: Suite, each: Graded) -> str:
    """Fold what a cell's failing runs rest on, each result's first runs."""
    one, cell = each.summary, each.cell
    name = html.escape(reports.clip(reports.cell_name(one.key), _NAME))
    head = f"{reports.SIGNS[one.outcome][0]} {one.outcome} <code>{name}</code> {reports.tally(one)}"
    bad = reports.failing(cell.runs)
    lines = [one_line(reports.clip(cell.trouble, 500))] if cell.trouble else []
    for at, run in bad[:_RUNS]:
        lines += reports.evidence(run, at, _ANSWER)
    if len(bad) > _RUNS:
        lines.append(f"and {count(len(bad) - _RUNS, 'more run')} that did not pass")
    return _folded(head, block("\n".join([*_asked(suite.cassettes.get(one.key.cassette)), *lines])))


def _asked(facts: reports.CassetteFacts | None) -> Iterator[str]:
    if facts:
        yield f"request: {one_line(reports.clip(facts.request, 300))}"
