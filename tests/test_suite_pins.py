"""Tests of `suite/pins`: what a pin may be, and which answers hold one."""

from __future__ import annotations

import itertools
import random
import unicodedata
import unittest

import tests.support  # noqa: F401  loads the plugin

from session_cassettes.cassette_store import CassetteError
from session_cassettes.suite.pins import check_pin, pin_holds


class Pins(unittest.TestCase):
    def test_any_part_of_an_answer_holds_in_any_case_and_with_any_slash(self) -> None:
        rng = random.Random(8)
        for _ in range(500):
            answer = "".join(rng.choice("aZ9 äÖßéñΣς/\\.:-中") for _ in range(40))
            start = rng.randrange(39)
            part = answer[start : start + rng.randint(1, 8)].strip()
            for pin in (
                part,
                part.upper(),
                part.lower(),
                part.swapcase(),
                part.replace("\\", "/"),
                part.replace("/", "\\"),
            ):
                with self.subTest(pin=pin):
                    self.assertTrue(pin_holds(pin, answer), (pin, answer))
            self.assertFalse(pin_holds(part + "\u2603", answer))

    def test_case_is_folded_as_unicode_does(self) -> None:
        for pin, answer, holds in (
            ("STRASSE", "Hauptstraße 5", True),
            ("straße", "HAUPTSTRASSE", True),
            ("ΣΊΣΥΦΟΣ", "σίσυφος", True),
            ("İstanbul", "i̇stanbul", True),
            ("istanbul", "İSTANBUL", False),
            ("ı", "I", False),
            ("ﬁ", "FI", True),
            ("K", "\u212a", True),
            ("8080", "18080", True),
            ("8080", "8o80", False),
        ):
            with self.subTest(pin=pin, answer=answer):
                self.assertEqual(pin_holds(pin, answer), holds)

    def test_what_looks_the_same_is_the_same(self) -> None:
        word = "Café/Ångström"
        for one, other in itertools.product(("NFC", "NFD"), repeat=2):
            with self.subTest(one=one, other=other):
                pin, answer = (
                    unicodedata.normalize(one, word),
                    unicodedata.normalize(other, f"see {word.lower()} there"),
                )
                self.assertTrue(pin_holds(pin, answer))
        self.assertFalse(pin_holds("cafe", unicodedata.normalize("NFD", "café")))

    def test_a_pin_is_kept_without_the_spaces_around_it(self) -> None:
        self.assertEqual(check_pin("  auth.py\n"), "auth.py")
        self.assertEqual(check_pin("re: a"), "re: a")

    def test_a_pin_that_is_none_is_refused(self) -> None:
        for pin, part in (
            ("", "cannot be empty"),
            (" \n", "cannot be empty"),
            ("a\nb", "one line"),
            ("a\u2028b", "one line"),
            ("re:(?\nx", "one line"),
            ("re:", "cannot be empty"),
            ("re: ", "cannot be empty"),
            ("x" * 10_001, "at most 10,000 characters"),
            ("caf\udce9", "UTF-8"),
        ):
            with self.subTest(pin=pin[:20]), self.assertRaisesRegex(CassetteError, part):
                check_pin(pin)

    def test_an_expression_is_not_compiled_here_where_nothing_could_stop_it(self) -> None:
        for pin in ("re:(", "re:" + "[a-\U0010ffff]" * 600, "re:" + "(" * 5_000):
            self.assertEqual(check_pin(pin), pin)

    def test_an_expression_that_only_looks_catastrophic_is_taken(self) -> None:
        for pin in (r"re:(?:\d+\.)+\d+", r"re:(a+)+$", "re:(x|x)+y"):
            with self.subTest(pin=pin):
                self.assertEqual(check_pin(pin), pin)


if __name__ == "__main__":
    unittest.main()
