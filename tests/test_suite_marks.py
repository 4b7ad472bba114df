"""What is marked in an answer, and which calls stand side by side."""

from __future__ import annotations

import itertools
import random
import time
import unittest

from tests.suite_samples import HOSTILE, call

from session_cassettes.suite import marks


def cut(text: str, spans: list[marks.Span]) -> list[str]:
    return [text[start:end] for start, end in spans]


class Differences(unittest.TestCase):
    def test_words_that_the_other_does_not_have_there_are_marked(self) -> None:
        for one, other, gone, new in (
            ("It binds port 8080.", "It binds port 18080.", ["8080"], ["18080"]),
            ("a b c", "a b c", [], []),
            ("", "a b", [], ["a b"]),
            ("a b", "", ["a b"], []),
            ("A is 1, B is 2", "A is 2, B is 1", ["1", "2"], ["2", "1"]),
            ("so and so and so", "so and so", ["and so"], []),
            ("x  y", "x\ny", [], []),
        ):
            with self.subTest(one=one, other=other):
                found = marks.differences(one, other)
                self.assertEqual((cut(one, found[0]), cut(other, found[1])), (gone, new))

    def test_what_is_not_marked_is_the_same_in_both(self) -> None:
        rng = random.Random(3)
        for _ in range(300):
            texts = [" ".join(rng.choices("abcdefgh", k=rng.randrange(30))) for _ in range(2)]
            rests = []
            for text, spans in zip(texts, marks.differences(*texts)):
                marked = {at for span in spans for at in range(*span)}
                rests.append("".join(c for at, c in enumerate(text) if at not in marked).split())
            self.assertEqual(*rests)

    def test_pairs_never_cross_and_small_ones_are_the_most_there_are(self) -> None:
        for one, other in itertools.product(itertools.product("ab", repeat=4), itertools.product("abc", repeat=3)):
            found = marks.matched(one, other)
            self.assertEqual(found, sorted(found))
            self.assertTrue(all(a < c and b < d for (a, b), (c, d) in zip(found, found[1:])))
            self.assertTrue(all(one[a] == other[b] for a, b in found))
            most = max(
                size
                for size in range(4)
                if set(itertools.combinations(one, size)) & set(itertools.combinations(other, size))
            )
            self.assertEqual(len(found), most)

    def test_no_text_takes_long(self) -> None:
        rng = random.Random(1)
        words = [str(at) for at in range(5_000)]
        texts = [
            ("a " * 9_000, "b a " * 4_500),
            ("a b " * 5_000, "b a " * 5_000),
            (" ".join(words), " ".join(words[::-1])),
        ]
        texts.append(tuple(" ".join(rng.sample(words, 5_000)) for _ in range(2)))  # type: ignore[arg-type]
        for one, other in texts:
            started = time.process_time()
            marks.differences(one, other)
            self.assertLess(time.process_time() - started, 5.0)


class Pins(unittest.TestCase):
    def test_a_pin_is_found_as_the_verdict_finds_it(self) -> None:
        for pin, text, found in (
            ("auth.py", "in Server\\AUTH.PY and auth.py", ["AUTH.PY", "auth.py"]),
            ("server/auth.py", "in server\\auth.py", ["server\\auth.py"]),
            ("STRASSE", "die Straße", ["Straße"]),
            ("stra", "ß Straße", ["Stra"]),
            ("x", "abc", []),
            (r"re:\b8080\b", "18080 8080", ["8080"]),
            ("re:PORT [0-9][0-9]", "port 80", ["port 80"]),
            ("re:^", "abc", []),
        ):
            with self.subTest(pin=pin):
                self.assertEqual(cut(text, marks.pin_spans(pin, text)), found)

    def test_a_regular_expression_that_could_backtrack_is_not_tried(self) -> None:
        text = "a" * 50_000 + "!"
        for pin in ("re:(a+)+$", "re:a*a*a*b", "re:(a|a)(a|a)b", r"re:(.)\1", "re:a{1,9}{1,9}b", "re:[", "re:(?i)a"):
            with self.subTest(pin):
                self.assertEqual(marks.pin_spans(pin, text), [])

    def test_any_pin_finds_something_within_any_text_or_nothing(self) -> None:
        for pin, text in itertools.product([*HOSTILE, *(f"re:{one}" for one in HOSTILE)], HOSTILE):
            for start, end in marks.pin_spans(pin, text):
                self.assertTrue(0 <= start < end <= len(text))


class Paths(unittest.TestCase):
    READ, FIND = ("read_file", {"path": "a"}), ("search_files", {"pattern": "x", "path": "."})

    def test_calls_stand_beside_those_that_answered_them(self) -> None:
        calls = [call(*self.FIND), call("terminal", {}, "miss"), call(*self.READ)]
        self.assertEqual(marks.paths([self.FIND, self.READ], calls), [(0, 0), (None, 1), (1, 2)])
        self.assertEqual(marks.paths([self.READ, self.FIND], [call(*self.FIND)]), [(0, None), (1, 0)])
        self.assertEqual(marks.paths([], []), [])

    def test_the_order_of_arguments_does_not_matter_and_a_miss_answers_to_none(self) -> None:
        turned = ("search_files", {"path": ".", "pattern": "x"})
        self.assertEqual(marks.paths([self.FIND], [call(*turned)]), [(0, 0)])
        self.assertEqual(marks.paths([self.FIND], [call(*self.FIND, "miss")]), [(0, None), (None, 0)])

    def test_what_the_run_says_of_a_hit_goes_before_its_arguments(self) -> None:
        other = {**call("read_file", {"path": "./a"}), "recorded": 1}
        self.assertEqual(marks.paths([self.FIND, self.READ], [other]), [(0, None), (1, 0)])
        self.assertEqual(marks.paths([self.FIND], [{**other, "recorded": 7}]), [(0, None), (None, 0)])

    def test_every_call_stands_once(self) -> None:
        rng = random.Random(4)
        kinds = [self.READ, self.FIND, ("x", None), ("y", [1])]
        for _ in range(300):
            recorded = rng.choices(kinds, k=rng.randrange(6))
            calls = [call(*rng.choice(kinds), rng.choice(("hit", "miss"))) for _ in range(rng.randrange(6))]
            rows = marks.paths(recorded, calls)
            self.assertEqual([a for a, _ in rows if a is not None], list(range(len(recorded))))
            self.assertEqual([b for _, b in rows if b is not None], list(range(len(calls))))


if __name__ == "__main__":
    unittest.main()
