"""How old something is, in three characters."""

from __future__ import annotations

import datetime
import unittest
from typing import Any

from tests.support import load_plugin

load_plugin()
from session_cassettes.suite.ages import told_age  # noqa: E402

NOW = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=datetime.timezone.utc)


class Ages(unittest.TestCase):
    def test_an_age_is_told_in_the_largest_unit_that_says_enough(self) -> None:
        day = 86_400
        for seconds, told in (
            (0, "0s"),
            (59.9, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (3_600, "1h"),
            (47 * 3_600 + 1, "47h"),
            (2 * day, "2d"),
            (99 * day, "99d"),
            (100 * day, "14w"),
            (699 * day, "99w"),
            (700 * day, "1y"),
            (730.5 * day, "2y"),
        ):
            with self.subTest(seconds=seconds):
                then = (NOW - datetime.timedelta(seconds=seconds)).isoformat()
                self.assertEqual(told_age(then, NOW), told)

    def test_other_spellings_of_a_time(self) -> None:
        for written in (
            "2026-11-30T11:00:00Z",
            "2026-11-30T11:00:00",
            "2026-11-30 12:00:00+01:00",
            " 2026-11-30T11:00 ",
        ):
            with self.subTest(written=written):
                self.assertEqual(told_age(written, NOW), "1h")

    def test_what_is_no_time_is_not_known(self) -> None:
        values: tuple[Any, ...] = ("", "day 1", None, 7, "2026-13-01T00:00:00", "\ud800", ["x"], "9" * 5000)
        for written in values:
            with self.subTest(written=written):
                self.assertEqual(told_age(written, NOW), "-")

    def test_a_clock_that_is_ahead_makes_nothing_younger_than_new(self) -> None:
        for written, told in (
            ("2026-11-30T12:05:00+00:00", "0s"),
            ("2026-12-01T11:59:59+00:00", "0s"),
            ("2026-12-01T12:00:01+00:00", "-"),
            ("9999-12-31T23:59:59-23:59", "-"),
            ("0001-01-01T00:00:00+23:59", "2025y"),
        ):
            with self.subTest(written=written):
                self.assertEqual(told_age(written, NOW), told)


if __name__ == "__main__":
    unittest.main()
