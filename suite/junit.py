"""A suite as JUnit XML: one `testcase` a cell, as Jenkins, GitLab and GitHub's readers take it.

Never here: a character that XML 1.0 forbids, an attribute that the schema does not
know, or a run as a test of its own, which would count tries as if they were tests.
"""

from __future__ import annotations

import datetime
import math
import re
import xml.etree.ElementTree as ElementTree

from ..cassette_store import shown as one_line
from . import reports
from .cells import Outcome
from .reports import Graded, Suite, count

#: Characters of an answer, and runs of a cell that are shown.
_ANSWER, _RUNS = 4_000, 10
#: Characters of all cells' failures together, and of one's at most: GitLab takes files of 30 MB.
_ALL, _ONE = 4_000_000, 100_000
#: What XML 1.0 forbids, and the carriage return, which a reader would turn into a new line.
_ILLEGAL = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: The element that tells an outcome; a passing cell has none.
_ELEMENTS: dict[Outcome, str] = {"FAIL": "failure", "DIVERGED": "failure", "INVALID": "error"}


def render(suite: Suite) -> str:
    """Write a suite as JUnit XML, to be saved as UTF-8."""
    cells = suite.worst_first
    elements = [_ELEMENTS.get(each.summary.outcome) for each in cells]
    totals = {
        "name": clean(f"hermes cassette run {suite.id}"),
        "tests": str(len(cells)),
        "failures": str(elements.count("failure")),
        "errors": str(elements.count("error")),
        "time": _time(sum(_seconds(each) for each in cells)),
    }
    root = ElementTree.Element("testsuites", totals)
    told = ElementTree.SubElement(root, "testsuite", {**totals, "skipped": "0", "timestamp": _stamp(suite.created)})
    properties = ElementTree.SubElement(told, "properties")
    for name, value in (("hermes", suite.hermes), ("plugin", suite.plugin), ("require", f"{suite.require:.10g}")):
        ElementTree.SubElement(properties, "property", {"name": name, "value": clean(value)})
    taken: set[str] = set()
    for each in cells:
        _add_case(told, suite, each, taken)
    if not cells:  # a report without any test case breaks some readers
        empty = ElementTree.SubElement(told, "testcase", {"classname": "suite", "name": "no cell", "time": "0.000"})
        ElementTree.SubElement(empty, "error", {"message": "the suite has no cell", "type": "INVALID"})
        for element in (root, told):
            element.set("tests", "1")
            element.set("errors", "1")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def clean(text: str) -> str:
    """Show what XML forbids as `#x1B`, and keep the rest."""
    return _ILLEGAL.sub(lambda found: f"#x{ord(found[0]):02X}", text.replace("\r\n", "\n"))


def _add_case(parent: ElementTree.Element, suite: Suite, each: Graded, taken: set[str]) -> None:
    one = each.summary
    name = clean(reports.cell_name(one.key))
    while name in taken:  # of two with one name, readers keep the first only
        name += " (again)"
    taken.add(name)
    facts = {"classname": clean(one_line(one.key.cassette)), "name": name, "time": _time(_seconds(each))}
    case = ElementTree.SubElement(parent, "testcase", facts)
    said = [f"{reports.tally(one)} PASS", reports.share_text(one, suite.require), reports.others_text(one)]
    said += [reports.in_a_row_fact(one), one.remark]
    message = "; ".join(part for part in [*said, reports.ONE_ANSWER if one.one_answer else ""] if part)
    message = clean(reports.clip(one_line(message), 1_000))
    element = _ELEMENTS.get(one.outcome)
    if element:
        told = ElementTree.SubElement(case, element, {"message": message, "type": one.outcome})
        most = min(_ONE, _ALL // len(suite.cells))
        told.text = clean(reports.clipped("\n".join(_lines(suite, each, min(most, _ANSWER))), most))
    else:
        ElementTree.SubElement(case, "system-out").text = message


def _lines(suite: Suite, each: Graded, most: int) -> list[str]:
    cell, facts = each.cell, suite.cassettes.get(each.cell.key.cassette)
    bad = reports.failing(cell.runs)
    lines = [one_line(reports.clip(cell.trouble, 1_000))] if cell.trouble else []
    lines += [f"request: {one_line(reports.clip(facts.request, 300))}"] if facts else []
    for at, run in bad[:_RUNS]:
        lines += reports.evidence(run, at, most)
    if len(bad) > _RUNS:
        lines.append(f"and {count(len(bad) - _RUNS, 'more run')} that did not pass")
    return lines


def _seconds(each: Graded) -> float:
    return sum(run.seconds for run in each.cell.runs)


def _time(seconds: float) -> str:
    return f"{max(0.0, seconds) if math.isfinite(seconds) else 0.0:.3f}"


def _stamp(created: str) -> str:
    """An ISO time as readers of JUnit know it: UTC, without a zone."""
    try:
        at = datetime.datetime.fromisoformat(created.replace("Z", "+00:00"))
    except ValueError:
        return "1970-01-01T00:00:00"
    if at.tzinfo is not None:
        at = at.astimezone(datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S")
