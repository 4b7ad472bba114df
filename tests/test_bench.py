"""The benchmark: its statistics, and that what it times does what it says.  Nothing here looks at a time."""

from __future__ import annotations

import json
import sys
import unittest
from typing import Any

from tests.bench import core, material
from tests.bench.measure import Curve, Goal, Pairs, Row, Time, curve, curves, interleaved, row, table

PAIRS = Pairs((Time(2.0, 1.0), Time(4.0, 3.0), Time(9.0, 2.0)), (Time(1.0, 1.0), Time(4.0, 1.0), Time(3.0, 1.0)))


class Statistics(unittest.TestCase):
    def test_a_ratio_is_the_median_of_the_pairs_not_the_ratio_of_medians(self) -> None:
        found = row("x", "y", PAIRS, "s", "wall")
        self.assertEqual((found.ratio, found.more), (2.0, 1.0))
        self.assertEqual(found.notes["cpu medians"], [2.0, 1.0])

    def test_goals_look_at_the_ratio_the_difference_or_the_value(self) -> None:
        goals = (Goal("times", 2), Goal("times", 1.9), Goal("more", 1000), Goal("more", 999), Goal("most", 4000))
        found = row("x", "y", PAIRS, "ms", "wall", *goals)
        self.assertEqual([found.met(goal) for goal in goals], [True, False, True, False, True])

    def test_both_are_timed_in_turns_and_the_first_round_does_not_count(self) -> None:
        order: list[str] = []
        pairs = interleaved(lambda: lambda: order.append("a"), lambda: lambda: order.append("b"), 3)
        self.assertEqual("".join(order), "baabbaab")
        self.assertEqual((len(pairs.ours), len(pairs.reference)), (3, 3))

    def test_times_are_of_one_operation(self) -> None:
        self.assertEqual(Time(10.0, 5.0).each(5), Time(2.0, 1.0))

    def test_growth_compares_the_largest_size_with_the_smallest(self) -> None:
        found = Curve("x", "us", "calls", {10: [1.0, 1.0, 2.0], 100: [9.0, 9.0, 9.0], 1000: [1.0, 3.0, 4.0]}, 1.9)
        self.assertEqual((found.growth, found.met), (2.0, False))

    def test_every_size_is_taken_equally_often(self) -> None:
        found = curve("x", "us", "calls", {size: (lambda: lambda: None, size) for size in (1, 10)}, 4, 1.2)
        self.assertEqual({size: len(values) for size, values in found.points.items()}, {1: 4, 10: 4})

    def test_what_is_written_as_json_comes_back(self) -> None:
        one = row("x", "y", PAIRS, "us", "cpu", Goal("times", 2), Goal("most", 5))
        again = Row.from_dict(json.loads(json.dumps(one.to_dict())))
        self.assertEqual(again.to_dict(), one.to_dict())
        grown = Curve("x", "us", "calls", {10: [1.0], 100: [2.0]}, 1.2)
        self.assertEqual(Curve.from_dict(json.loads(json.dumps(grown.to_dict()))).to_dict(), grown.to_dict())

    def test_the_tables_say_what_is_met_and_what_is_not(self) -> None:
        rows = [
            row("good", "y", PAIRS, "s", "wall", Goal("times", 2)),
            row("bad", "y", PAIRS, "s", "wall", Goal("more", 0.5)),
        ]
        lines = table(rows).split("\n")
        self.assertIn("| yes", lines[2])
        self.assertIn("| NO (1.00)", lines[3])
        self.assertEqual(len({len(line) for line in lines}), 1)
        self.assertIn("| NO ", curves([Curve("x", "us", "calls", {1: [1.0], 9: [2.0]}, 1.2)]))


class Material(unittest.TestCase):
    def test_it_is_as_large_as_it_says_and_the_same_each_time(self) -> None:
        self.assertEqual(sum(map(len, material.files(0.25).values())), 256 * 1024)
        self.assertEqual(material.files(0.05), material.files(0.05))
        for size in (1024, 50_000):
            text = material.result(3, size)
            self.assertLess(abs(len(text) - size), size / 30)
            self.assertIn("content", json.loads(text))
        self.assertEqual(len({json.dumps(call.args) for call in material.calls(300, 300)}), 300)


class Rows(unittest.TestCase):
    def test_what_is_timed_as_an_exact_hit_is_one(self) -> None:
        replay = core.replays(10)[0]
        for number, call in enumerate(material.calls(10, 100)):
            self.assertEqual(replay.answer("read_file", material.args(number), "session"), call.result)
        self.assertEqual({call.how for call in replay.finish("session", "8080").calls}, {"hit"})

    def test_recording_a_call_neither_opens_a_file_nor_writes_json(self) -> None:
        callback, recording = core.recorder()
        seen: set[str] = set()

        def profile(frame: Any, event: str, what: Any) -> None:
            if event == "call":
                seen.add(frame.f_code.co_filename)
            elif event == "c_call":
                seen.add(f"{what.__module__}.{what.__name__}")

        sys.setprofile(profile)
        try:
            callback(
                tool_name="read_file",
                args=material.args(1),
                next_call=lambda _: "text",
                turn_id="turn",
                session_id="session",
                tool_call_id="call",
            )
        finally:
            sys.setprofile(None)
        self.assertEqual([slot.result for slot in recording.close()], ["text"])
        touched = [one for one in seen if "json" in one or one.startswith(("posix.", "nt.", "io.", "_io."))]
        self.assertEqual(touched, [])
        self.assertTrue(any(one.endswith("middleware.py") for one in seen))

    def test_the_saved_turn_holds_every_call(self) -> None:
        with core.scratch() as folder:
            store = core.Store(folder)
            store.prepare()
            core.saver(store, [material.result(number, 300) for number in range(core.RECORDED)], 20)()()
            kept, _ = store.read("bench")
        self.assertEqual([call.args for call in kept.calls], core.material_args[:20])

    def test_one_group_makes_its_rows(self) -> None:
        rows = [one for one in core.listing(1, number=2) if isinstance(one, Row)]
        self.assertEqual([len(one.ours) for one in rows], [1])


if __name__ == "__main__":
    unittest.main()
