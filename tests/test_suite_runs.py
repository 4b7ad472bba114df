"""Suites on the disk: what a command leaves, another reads; what was cut, altered or copied counts for nothing."""

from __future__ import annotations

import datetime
import json
import unittest
from pathlib import Path
from typing import Any

from tests.support import load_plugin, temp_folder

load_plugin()
from session_cassettes.cassette_store import Cassette, CassetteError, Store  # noqa: E402
from session_cassettes.suite import runs  # noqa: E402
from session_cassettes.suite.cells import Key  # noqa: E402
from session_cassettes.suite.plan import Arm, Plan, Progress, cross  # noqa: E402

ID = "20261130T120000-0a1b2c"
AT = datetime.datetime(2026, 11, 30, 12, 0, 1, tzinfo=datetime.timezone.utc)
ONE, TWO = Key("auth", "m", "plain"), Key("logs", "m", "plain")


class SuiteOnDisk(unittest.TestCase):
    def setUp(self) -> None:
        self.store = Store(temp_folder(self))
        self.store.prepare()
        cells = cross({"auth": "a" * 64, "logs": "b" * 64}, ["m"], [Arm("plain")])
        self.plan = Plan(ID, AT.isoformat(), cells, repeat=2)
        runs.save_plan(self.store, self.plan)
        self.made = 0

    def run_of(self, key: Key = ONE, **changes: Any) -> dict[str, Any]:
        """A run as `run` writes it."""
        self.made += 1
        return {
            "name": key.cassette,
            "run": f"{self.made:024x}",
            "at": AT.isoformat(),
            "seconds": 1.5,
            "cassette_sha256": {"auth": "a", "logs": "b"}[key.cassette] * 64,
            "result": "PASS",
            "reasons": [],
            "pins": [{"pin": "8080", "ok": True}],
            "path": "1 call",
            "answer": "port 8080",
            "calls": [{"tool": "read_file", "args": {"path": "a"}, "how": "hit", "reason": "", "nearest": ""}],
            "misses": [],
            "model": "m",
            "usage": {"tokens": 120, "calls": 2, "cost": 0.5},
            **changes,
        }

    def keep(self, key: Key = ONE, number: int = 1, at: datetime.datetime = AT, **changes: Any) -> Path:
        run = runs.mark_run(self.run_of(key), self.plan, key, number)
        run = {**run, **changes}
        return self.store.save_run(key.cassette, runs.stamp(ID, at, run["run"]), run)

    def read(self) -> tuple[list[tuple[Key, int, str]], list[str]]:
        """What is read back, and what is told."""
        told: list[str] = []
        plan, tries = runs.read_suite(self.store, ID, told.append)
        self.assertEqual(plan, self.plan)
        return [(one.key, one.number, one.run.result) for one in tries], told


class Reading(SuiteOnDisk):
    def test_a_suite_comes_back_with_its_runs_in_their_order(self) -> None:
        later = AT + datetime.timedelta(hours=1)
        self.keep(TWO, 1, later)
        file = self.keep(ONE, 1)
        self.store.save_run("auth", "20261130T120000-0a1b2d-" + "0" * 24, self.run_of())  # of no suite
        self.store.save_run("auth", "20261130T120000-" + "0" * 24, self.run_of())
        self.assertEqual(self.read(), ([(ONE, 1, "PASS"), (TWO, 1, "PASS")], []))
        _, tries = runs.read_suite(self.store, ID)
        one = tries[0].run
        self.assertEqual((one.answer, one.seconds, one.tokens, one.cost), ("port 8080", 1.5, 120, 0.5))
        self.assertEqual((one.file, one.model, one.pins), (str(file), "m", (("8080", True),)))
        self.assertEqual(Progress(self.plan, tries).counts(), (2, 4))

    def test_its_runs_are_found_under_a_cassettes_new_name_and_gone_with_it(self) -> None:
        self.store.save(Cassette("auth", "q", "a"), overwrite=False)
        self.keep(ONE, 1)
        self.keep(TWO, 1)
        self.store.rename("auth", "login")
        self.assertEqual(self.read(), ([(ONE, 1, "PASS"), (TWO, 1, "PASS")], []))
        self.store.remove("login")
        self.assertEqual(self.read(), ([(TWO, 1, "PASS")], []))

    def test_invalid_runs_of_a_try_are_all_of_it_and_one_that_counts_ends_it(self) -> None:
        broken = {"result": "INVALID", "reasons": ["no final answer was captured"]}
        for seconds in range(2):
            self.keep(ONE, 1, AT + datetime.timedelta(seconds=seconds), **broken)
        self.keep(ONE, 1, AT + datetime.timedelta(seconds=2))
        again = self.keep(ONE, 1, AT + datetime.timedelta(seconds=3))
        found, told = self.read()
        self.assertEqual([result for _, _, result in found], ["INVALID", "INVALID", "PASS"])
        self.assertEqual(len(told), 1)
        self.assertIn(str(again), told[0])

    def test_a_file_cut_anywhere_counts_for_nothing(self) -> None:
        path = self.keep(ONE, 1)
        self.keep(TWO, 1)
        whole = path.read_bytes()
        for size in range(0, len(whole.rstrip()), 13):
            with self.subTest(size=size):
                path.write_bytes(whole[:size])
                found, told = self.read()
                self.assertEqual(found, [(TWO, 1, "PASS")])
                self.assertEqual([(str(path) in one, one.count("\n")) for one in told], [(True, 0)])

    def test_what_cannot_be_counts_for_nothing_whatever_it_says(self) -> None:
        miss = {"tool": "x", "args": {}, "how": "miss", "reason": "", "nearest": ""}
        for title, changes in {
            "a pin is missing": {"pins": [{"pin": "8080", "ok": False}]},
            "no pin": {"pins": []},
            "a pin that holds in a way": {"pins": [{"pin": "8080", "ok": 1}]},
            "a miss": {"misses": [miss]},
            "a call that was missed": {"calls": [miss]},
            "a call that was answered in an unknown way": {"calls": [{**miss, "how": "live"}]},
            "a reason": {"reasons": ["the session could not be started"]},
            "no result": {"result": None},
            "another result": {"result": "pass"},
            "a failure without one": {"result": "FAIL"},
            "no answer": {"answer": None},
            "no list of calls": {"calls": {}},
            "no reasons": {"reasons": None},
            "another cassette": {"cassette_sha256": "c" * 64},
            "another cell": {"cell": {"model": "other", "arm": "plain"}},
            "no cell": {"cell": None},
            "a try too many": {"try": 3},
            "no try": {"try": 0},
            "a try of another kind": {"try": True},
            "another name": {"name": "logs2"},
        }.items():
            with self.subTest(title):
                path = self.keep(ONE, 1, **changes)
                found, told = self.read()
                self.assertEqual((found, len(told)), ([], 1), told)
                self.assertNotIn("\n", told[0])
                path.unlink()

    def test_a_copy_of_a_run_is_no_second_try(self) -> None:
        path = self.keep(ONE, 1)
        run = json.loads(path.read_text("utf-8"))
        other = {**run, "try": 2}
        self.store.save_run("auth", runs.stamp(ID, AT, "f" * 24), other)
        found, told = self.read()
        self.assertEqual((found, len(told)), ([(ONE, 1, "PASS")], 1))
        self.assertIn("copy", told[0])

    def test_a_run_of_another_suite_with_the_same_ending_is_passed_over(self) -> None:
        self.keep(ONE, 1, suite="20250101T000000-0a1b2c")
        self.assertEqual(self.read(), ([], []))

    def test_numbers_that_are_none_are_not_known(self) -> None:
        for usage in (None, [], {"tokens": "9", "cost": True}, {"tokens": -1, "cost": -0.5}, {"cost": 10**400}):
            with self.subTest(usage=usage):
                path = self.keep(ONE, 1, usage=usage, seconds="long")
                _, tries = runs.read_suite(self.store, ID)
                self.assertEqual((tries[0].run.tokens, tries[0].run.cost, tries[0].run.seconds), (None, None, 0.0))
                path.unlink()


class Plans(SuiteOnDisk):
    def test_a_plan_that_was_cut_is_refused_in_one_line(self) -> None:
        path = runs.plan_path(self.store, ID)
        whole = path.read_bytes()
        for size in range(0, len(whole.rstrip()), 17):
            with self.subTest(size=size):
                path.write_bytes(whole[:size])
                with self.assertRaises(CassetteError) as refused:
                    runs.read_plan(self.store, ID)
                self.assertRegex(str(refused.exception), "^the suite's plan .+ start the suite again$")
                self.assertNotIn("\n", str(refused.exception))

    def test_a_plan_that_could_never_be_is_refused(self) -> None:
        path = runs.plan_path(self.store, ID)
        value = json.loads(path.read_bytes())
        for name, wrong in (
            ("id", "20261130T120000-ffffff"),
            ("schema", 2),
            ("repeat", 0),
            ("repeat", 10**9),
            ("require", 1.5),
            ("require", 0),
            ("retries", -1),
            ("timeout", 0),
            ("cells", []),
            ("cells", value["cells"] * 2),
        ):
            with self.subTest(name=name, wrong=wrong):
                path.write_text(json.dumps({**value, name: wrong}), "utf-8")
                with self.assertRaisesRegex(CassetteError, f"field {name} .*start the suite again"):
                    runs.read_plan(self.store, ID)

    def test_an_unknown_suite_is_told_with_the_newest(self) -> None:
        with self.assertRaisesRegex(CassetteError, f"the newest is {ID}"):
            runs.read_plan(self.store, "20261130T120000-ffffff")
        runs.plan_path(self.store, ID).unlink()
        with self.assertRaisesRegex(CassetteError, "none was made yet"):
            runs.read_plan(self.store, ID)

    def test_suites_are_listed_newest_first_and_nothing_else(self) -> None:
        newer = "20261201T000000-000000"
        runs.save_plan(self.store, self.plan._replace(id=newer))
        (self.store.root / "suites" / "notes.json").write_text("x")
        (self.store.root / "suites" / f".{ID}.json.1.tmp").write_text("x")
        self.assertEqual(runs.suite_ids(self.store), [newer, ID])
        self.assertEqual(runs.suite_ids(Store(self.store.root / "nowhere")), [])

    def test_one_command_at_a_time_makes_a_suites_runs(self) -> None:
        first, second = runs.lock_suite(self.store, ID), runs.lock_suite(self.store, ID)
        self.assertTrue(first.try_acquire())
        self.assertFalse(second.try_acquire())
        first.release()
        self.assertTrue(second.try_acquire())
        second.release()

    def test_an_id_sorts_by_time_and_is_one(self) -> None:
        self.assertRegex(runs.new_id(AT), r"\A20261130T120001-[0-9a-f]{6}\Z")
        runs.plan_path(self.store, runs.new_id(AT))


if __name__ == "__main__":
    unittest.main()
