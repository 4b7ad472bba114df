"""Pins and the lines that held them: what stands there today."""

from __future__ import annotations

import re
import unittest
from typing import Any, Sequence

from tests.support import load_plugin

load_plugin()
from session_cassettes.cassette_store import Snapshot, SnapshotFile  # noqa: E402
from session_cassettes.suite.drift import Change, Drift  # noqa: E402
from session_cassettes.suite.places import Lost, lost_pins  # noqa: E402

AUTH = "import os\n\nAUTH_PORT = 8080\nTTL = 60\n"


def matches(regexes: Sequence[str], texts: Sequence[str]) -> list[Any]:
    """Try them here: those of these tests end."""
    found: list[Any] = []
    for regex in regexes:
        if regex == "re:slow":
            return found
        if regex == "re:(":
            found.append("missing )")
            continue
        found.append(next((at for at, text in enumerate(texts) if re.search(regex[3:], text, re.IGNORECASE)), None))
    return found


def nobody(regexes: Sequence[str], texts: Sequence[str]) -> list[Any]:
    raise AssertionError("a process was started for nothing")


class PlacesCase(unittest.TestCase):
    def lost(self, pins: Sequence[str], old: dict[str, str], new: dict[str, str | None], tried: Any = matches) -> Any:
        """Compare: a file that `new` maps to None is gone, one that it leaves out is the same."""
        changes = tuple(
            Change(path, "gone") if text is None else Change(path, "changed", "", 1) for path, text in new.items()
        )
        snapshot = Snapshot({path: SnapshotFile(text, len(text)) for path, text in old.items()})
        drift = Drift(len(old), changes, {path: text for path, text in new.items() if text is not None})
        return lost_pins(pins, snapshot, drift, tried)


class Places(PlacesCase):
    def test_the_line_that_took_a_facts_place_is_told(self) -> None:
        lost, late = self.lost(["8080"], {"auth.py": AUTH}, {"auth.py": AUTH.replace("8080", "8181")})
        self.assertEqual((lost, late), ([Lost("8080", "auth.py", 3, "AUTH_PORT = 8181")], []))

    def test_it_is_found_where_lines_before_it_came_or_went(self) -> None:
        new = "# new\n# lines\n" + AUTH.replace("8080", "8181").replace("import os\n", "")
        lost, _ = self.lost(["8080"], {"auth.py": AUTH}, {"auth.py": new})
        self.assertEqual(lost, [Lost("8080", "auth.py", 3, "AUTH_PORT = 8181")])

    def test_a_line_that_is_gone(self) -> None:
        lost, _ = self.lost(["8080"], {"auth.py": AUTH}, {"auth.py": AUTH.replace("AUTH_PORT = 8080\n", "")})
        self.assertEqual(lost, [Lost("8080", "auth.py", 3, None)])

    def test_a_fact_that_moved_or_stayed_is_not_lost(self) -> None:
        for new in (AUTH.replace("60", "61"), "# 8080 above\n" + AUTH.replace("8080", "x"), "a\n" * 50 + AUTH):
            with self.subTest(new=new):
                self.assertEqual(self.lost(["8080", "port"], {"auth.py": AUTH}, {"auth.py": new}), ([], []))

    def test_a_file_that_is_gone_loses_its_facts_and_its_name(self) -> None:
        lost, _ = self.lost(["8080", "auth.py"], {"server/auth.py": AUTH}, {"server/auth.py": None})
        self.assertEqual(lost, [Lost("8080", "server/auth.py", 3, None), Lost("auth.py", "server/auth.py", 0, None)])

    def test_another_file_that_holds_the_fact_is_named(self) -> None:
        old = {"auth.py": AUTH, "a.md": "Port 8080\n", "b.md": "port: 8080\n"}
        new: dict[str, str | None] = {"auth.py": AUTH.replace("8080", "8181"), "a.md": "Port 8181\n"}
        lost, _ = self.lost(["8080"], old, new)
        self.assertEqual([(one.path, one.elsewhere) for one in lost], [("auth.py", "b.md"), ("a.md", "b.md")])

    def test_case_and_slashes_do_not_count_as_in_a_verdict(self) -> None:
        lost, _ = self.lost(["SERVER/AUTH.PY"], {"a.md": "see server\\auth.py\n"}, {"a.md": "see server\\x.py\n"})
        self.assertEqual([one.line for one in lost], [1])

    def test_a_pin_that_no_file_held_is_not_looked_for(self) -> None:
        self.assertEqual(self.lost(["answer only"], {"auth.py": AUTH}, {"auth.py": None}), ([], []))

    def test_of_many_lines_in_a_file_three_are_told(self) -> None:
        old = "".join(f"line {n}: 8080\n" for n in range(9))
        lost, _ = self.lost(["8080"], {"a": old}, {"a": old.replace("8080", "8181")})
        self.assertEqual([one.line for one in lost], [1, 2, 3])


class Regexes(PlacesCase):
    def test_they_are_tried_line_by_line(self) -> None:
        lost, late = self.lost(
            [r"re:\b8080\b", "re:TTL"], {"auth.py": AUTH}, {"auth.py": AUTH.replace("8080", "18080")}
        )
        self.assertEqual((lost, late), ([Lost(r"re:\b8080\b", "auth.py", 3, "AUTH_PORT = 18080")], []))

    def test_none_is_tried_where_nothing_changed(self) -> None:
        self.assertEqual(self.lost(["re:8080"], {"auth.py": AUTH}, {}, nobody), ([], []))

    def test_one_that_takes_too_long_or_does_not_compile_is_told(self) -> None:
        _, late = self.lost(["re:(", "re:slow", "re:8080"], {"auth.py": AUTH}, {"auth.py": None})
        self.assertEqual(sorted(late), ["re:(", "re:8080", "re:slow"])


if __name__ == "__main__":
    unittest.main()
