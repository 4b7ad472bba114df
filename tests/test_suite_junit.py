"""JUnit XML that strict and loose readers take."""

from __future__ import annotations

import re
import unittest
import xml.etree.ElementTree as ElementTree

from tests.suite_samples import HOSTILE, cell, hostile, large, likely, suite

from session_cassettes.suite import junit
from session_cassettes.suite.cells import Cell, Key

#: The structure that Jenkins's xunit plugin checks (junit-10): attributes asked for, allowed, and children.
SCHEMA: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        set("group time skipped timestamp hostname id package file log url".split()),
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": ({"name"}, {"time", "classname", "group"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    **{name: (set(), {"type", "message"}, set()) for name in ("failure", "error", "skipped")},
    **{name: (set(), set(), set()) for name in ("system-out", "system-err")},
}
#: Elements that may hold text.
TEXT = {"failure", "error", "skipped", "system-out", "system-err"}
TIME = re.compile(r"[0-9]+(\.[0-9]+)?")


def faults(root: ElementTree.Element) -> list[str]:
    """What Jenkins's schema, or a reader stricter than it, would not take."""
    found = [] if root.tag == "testsuites" else [f"the root is {root.tag}"]
    for element in root.iter():
        needed, allowed, children = SCHEMA.get(element.tag, (set(), set(), set()))
        if element.tag not in SCHEMA:
            found.append(f"{element.tag} is unknown")
        found += [f"{element.tag} lacks {name}" for name in needed - set(element.attrib)]
        found += [f"{element.tag} has {name}" for name in set(element.attrib) - needed - allowed]
        found += [f"{element.tag} holds {child.tag}" for child in element if child.tag not in children]
        if element.tag not in TEXT and (element.text or "").strip():
            found.append(f"{element.tag} holds text")
        if "time" in element.attrib and not TIME.fullmatch(element.attrib["time"]):
            found.append(f"the time {element.attrib['time']}")
        for name in {"tests", "failures", "errors", "skipped"} & set(element.attrib):
            if not element.attrib[name].isdecimal():
                found.append(f"{name} is {element.attrib[name]}")
    for told in root.iter("testsuite"):
        cases = list(told.iter("testcase"))
        names = [(case.get("classname"), case.get("name")) for case in cases]
        counts = {"tests": len(cases)}
        counts |= {f"{one}s": sum(case.find(one) is not None for case in cases) for one in ("failure", "error")}
        found += [f"{name} is not {number}" for name, number in counts.items() if told.get(name) != str(number)]
        found += ["two cases have one name"] if len(set(names)) < len(names) else []
        found += ["no test case"] if not cases else []
        found += ["a case has two outcomes"] if any(sum(c.tag in TEXT for c in case) > 1 for case in cases) else []
    return found


def read(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.encode("utf-8"))


class Schema(unittest.TestCase):
    def test_the_helper_finds_what_is_wrong(self) -> None:
        told = '<testsuite name="" tests="1" failures="0" errors="0"><testcase name="a"{}</testsuite>'
        good = f"<testsuites>{told}</testsuites>"
        self.assertEqual(faults(read(good.format("/>"))), [])
        for part in (
            ' file="x"/>',
            "><failure/></testcase>",
            "><properties/></testcase>",
            '/><testcase name="a"/>',
            ' time="1e-05"/>',
            ">text</testcase>",
            "><flakyFailure/></testcase>",
        ):
            with self.subTest(part):
                self.assertNotEqual(faults(read(good.format(part))), [])

    def test_every_report_is_valid(self) -> None:
        for made in (likely(), suite([]), suite([cell("a", "PPP")]), *(hostile(seed) for seed in range(30))):
            self.assertEqual(faults(read(junit.render(made))), [])

    def test_large_reports_stay_small_enough(self) -> None:
        for made in (large(10, 4, 25), large(1_000, 2, 1), large(40, 4, 5, 8_000, harm=True)):
            text = junit.render(made)
            self.assertEqual(faults(read(text)), [])
            self.assertLess(len(text.encode("utf-8")), 30_000_000)


class Content(unittest.TestCase):
    def test_there_is_a_case_a_cell_and_it_says_how_it_ended(self) -> None:
        root = read(junit.render(suite([cell("a", "PP"), cell("b", "PF"), cell("c", "PD"), cell("d", "PI")])))
        cases = {case.get("classname"): case for case in root.iter("testcase")}
        found = {name: [(part.tag, part.get("type")) for part in case] for name, case in cases.items()}
        failure = [("failure", "FAIL")]
        self.assertEqual(
            found,
            {"a": [("system-out", None)], "b": failure, "c": [("failure", "DIVERGED")], "d": [("error", "INVALID")]},
        )
        self.assertEqual((root.get("tests"), root.get("failures"), root.get("errors")), ("4", "2", "1"))

    def test_a_failure_holds_pins_misses_and_the_answer(self) -> None:
        root = read(junit.render(likely()))
        (failure,) = root.iter("failure")
        text = failure.text or ""
        for part in ("[--] 5 MB", "[ok] three", "Logs rotate daily", "request: When are the logs"):
            self.assertIn(part, text)
        self.assertIn("0 of 10 PASS; 0 % (0–28); 10 FAIL", failure.get("message", ""))
        (case,) = (case for case in root.iter("testcase") if case.find("failure") is not None)
        self.assertEqual(case.get("name"), "log-rotation with gpt-oss:20b + plain")

    def test_a_cell_in_trouble_is_an_error_that_says_which(self) -> None:
        made = suite([Cell(Key("a", "", ""), 2, cell("a", "PP").runs, "the cassette changed")])
        (error,) = read(junit.render(made)).iter("error")
        self.assertIn("the cassette changed", error.get("message", ""))

    def test_what_xml_forbids_is_shown(self) -> None:
        for bad, shown in (
            ("\x1b", "#x1B"),
            ("\x00", "#x00"),
            ("\ud800", "#xD800"),
            ("\uffff", "#xFFFF"),
            ("a\r\nb", "a\nb"),
            ("\r", "#x0D"),
            ("\t\n é \U0001f600 \ufffd", "\t\n é \U0001f600 \ufffd"),
        ):
            with self.subTest(shown):
                self.assertEqual(junit.clean(bad), shown)

    def test_any_text_survives_a_reader(self) -> None:
        for text in HOSTILE:
            element = ElementTree.Element("a", {"b": junit.clean(text)})
            element.text = junit.clean(text)
            found = ElementTree.fromstring(ElementTree.tostring(element, "utf-8"))
            self.assertEqual((found.text, found.get("b")), (junit.clean(text), junit.clean(text)))

    def test_times_are_plain_decimals_and_the_stamp_has_no_zone(self) -> None:
        made = suite([cell("a", "P")])
        for created, stamp in (
            ("2026-03-01T10:15:00+02:00", "2026-03-01T08:15:00"),
            ("2026-03-01T10:15:00Z", "2026-03-01T10:15:00"),
            ("whenever", "1970-01-01T00:00:00"),
        ):
            root = read(junit.render(made._replace(created=created)))
            self.assertEqual(root[0].get("timestamp"), stamp)
        for seconds in (1e-9, 1e12, float("nan"), float("inf"), -1.0):
            runs = (cell("a", "P").runs[0]._replace(seconds=seconds),)
            root = read(junit.render(suite([Cell(Key("a", "", ""), 1, runs)])))
            self.assertEqual(faults(root), [])


if __name__ == "__main__":
    unittest.main()
