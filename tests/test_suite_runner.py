"""The runner of a suite, with runs that are made up: nothing is lost, and only one waits at a time."""

from __future__ import annotations

import threading
import unittest
from typing import Any, Callable

import tests.support  # noqa: F401  (loads the plugin)

from session_cassettes.suite.cells import Run
from session_cassettes.suite.plan import Arm, Plan, PlannedCell, Try, cross
from session_cassettes.suite.runner import CellTrouble, Runner, Stopped

CELLS = cross({"one": "1", "two": "2", "three": "3"}, ["m"], [Arm()])


def plan(**changes: Any) -> Plan:
    return Plan("20261130T120000-0a1b2c", "2026-11-30T12:00:00+00:00", CELLS, **{"repeat": 4, **changes})


class Runs:
    """Makes runs up, and notes how many waited for a session, and went on, at the same time."""

    def __init__(self, result: Callable[[PlannedCell, int], str] = lambda cell, number: "PASS") -> None:
        self.result = result
        self.lock = threading.Lock()
        self.made: list[tuple[str, int]] = []
        self.waiting = self.going = self.most_waiting = self.most_going = 0
        self.together = threading.Barrier(1)

    def __call__(self, cell: PlannedCell, number: int, claimed: Callable[[], None], stopped: Callable[[], bool]) -> Run:
        with self.lock:
            self.waiting += 1
            self.going += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
            self.most_going = max(self.most_going, self.going)
        with self.lock:
            self.waiting -= 1
        claimed()
        claimed()  # a second time does no harm
        self.together.wait(10)
        with self.lock:
            self.going -= 1
            self.made.append((cell.key.cassette, number))
        return Run(self.result(cell, number), "8080", 0.0)  # type: ignore[arg-type]


class Running(unittest.TestCase):
    def test_every_try_is_made_once_and_one_run_waits_at_a_time(self) -> None:
        for jobs in (1, 2, 4):
            runs = Runs()
            runs.together = threading.Barrier(min(jobs, 2))
            cells = Runner(plan(), [], runs, jobs=jobs).run()
            self.assertEqual(sorted(runs.made), sorted((c.key.cassette, n) for c in CELLS for n in (1, 2, 3, 4)))
            self.assertEqual(runs.most_waiting, 1)
            self.assertEqual(runs.most_going >= min(jobs, 2), True)
            self.assertEqual([len(cell.runs) for cell in cells], [4, 4, 4])

    def test_what_was_done_before_is_kept_and_not_made_again(self) -> None:
        runs = Runs()
        before = [Try(CELLS[0].key, number, Run("FAIL", "no", 0.0)) for number in (1, 2)]
        cells = Runner(plan(), before, runs).run()
        self.assertEqual(len(runs.made), 10)
        self.assertEqual([run.result for run in cells[0].runs], ["FAIL", "FAIL", "PASS", "PASS"])

    def test_a_cell_in_trouble_ends_alone(self) -> None:
        def result(cell: PlannedCell, number: int) -> str:
            if cell.key.cassette == "two":
                raise CellTrouble("its cassette changed")
            return "PASS"

        cells = Runner(plan(), [], Runs(result), jobs=2).run()
        self.assertEqual([cell.trouble for cell in cells], ["", "its cassette changed", ""])
        self.assertEqual([len(cell.runs) for cell in cells], [4, 0, 4])

    def test_a_fault_stops_the_suite_when_the_runs_under_way_have_ended(self) -> None:
        def result(cell: PlannedCell, number: int) -> str:
            if number == 2:
                raise KeyboardInterrupt
            return "PASS"

        runner = Runner(plan(), [], Runs(result), jobs=2)
        with self.assertRaises(KeyboardInterrupt):
            runner.run()
        self.assertFalse([one for one in threading.enumerate() if one.name.startswith("suite-")])
        self.assertGreaterEqual(runner.counts()[0], 3)

    def test_a_run_that_was_stopped_is_still_to_be_made(self) -> None:
        def result(cell: PlannedCell, number: int) -> str:
            if number == 1 and cell.key.cassette == "one":
                raise KeyboardInterrupt
            raise Stopped

        runner = Runner(plan(), [], Runs(result))
        with self.assertRaises(KeyboardInterrupt):
            runner.run()
        self.assertEqual(runner.counts(), (0, 12))

    def test_after_its_budget_no_run_starts(self) -> None:
        runs = Runs()
        runner = Runner(plan(), [], runs, budget=0.0)
        self.assertEqual([len(cell.runs) for cell in runner.run()], [0, 0, 0])
        self.assertTrue(runner.out_of_budget)
        self.assertEqual(runs.made, [])

    def test_each_end_is_told_with_the_counts_as_they_stand(self) -> None:
        told: list[tuple[int, int]] = []
        Runner(plan(), [], Runs(), jobs=3, changed=lambda runner: told.append(runner.counts())).run()
        self.assertEqual(told, [(count, 12) for count in range(1, 13)])
