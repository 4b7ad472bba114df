"""The plan of a suite: what words mean, what is next, and that its file is read strictly."""

from __future__ import annotations

import json
import random
import unittest
from typing import Any

import tests.support  # noqa: F401  (loads the plugin)

from session_cassettes.cassette_store import CassetteError
from session_cassettes.suite import plan as plans
from session_cassettes.suite.cells import Key, Run
from session_cassettes.suite.plan import Arm, Plan, Progress, Try, choose, cross, dump_plan, parse_arms, parse_plan

NAMES = ["auth-login", "auth-port", "billing"]


def made(**changes: Any) -> Plan:
    cells = cross({"auth-port": "a" * 64, "billing": "b" * 64}, ["m1", "m2"], [Arm("plain"), Arm("tuned", ("layout",))])
    return Plan("20261130T120000-0a1b2c", "2026-11-30T12:00:00+00:00", cells, **changes)


def run(result: Any = "PASS") -> Run:
    return Run(result, "8080", 1.0)


class Words(unittest.TestCase):
    def test_names_and_patterns_choose_each_cassette_once_in_order(self) -> None:
        for words, chosen in (
            (["billing", "auth-*"], ["billing", "auth-login", "auth-port"]),
            (["auth-port", "auth-*"], ["auth-port", "auth-login"]),
            (["*"], NAMES),
            (["auth-[lp]o*"], ["auth-login", "auth-port"]),
        ):
            with self.subTest(words=words):
                self.assertEqual(choose(words, NAMES), chosen)

    def test_an_unknown_name_or_pattern_is_refused_with_a_way_out(self) -> None:
        for word, told in (
            ("auth-prot", "did you mean 'auth-port'?"),
            ("x-*", "cassette list"),
            ("zzz", "cassette list"),
        ):
            with self.subTest(word=word), self.assertRaisesRegex(CassetteError, told.replace("?", r"\?")):
                choose([word], NAMES)

    def test_arms_are_labels_with_skills(self) -> None:
        self.assertEqual(parse_arms([]), [Arm()])
        self.assertEqual(parse_arms(["plain=", "both=one, two"]), [Arm("plain", ()), Arm("both", ("one", "two"))])
        for word in ("skill", "=skill", "a b=skill", "-x=y", "<b>=y", "a" * 40 + "=x", ""):
            with self.subTest(word=word), self.assertRaisesRegex(CassetteError, "LABEL=SKILL"):
                parse_arms([word])
        with self.assertRaisesRegex(CassetteError, "twice"):
            parse_arms(["a=x", "a=y"])

    def test_every_cassette_meets_every_model_and_arm(self) -> None:
        keys = [cell.key for cell in made().cells]
        self.assertEqual((len(keys), len(set(keys))), (8, 8))
        self.assertEqual(cross({"c": "s"}, [], [Arm()])[0].key, Key("c", "", ""))
        self.assertEqual(len(cross({"c": "s"}, ["m", "m"], [Arm()])), 1)


class Files(unittest.TestCase):
    def test_a_plan_comes_back_as_it_was(self) -> None:
        plan = made(repeat=3, require=0.8, stop_early=True, provider="p", folder="/x", timeout=5.5)
        self.assertEqual(parse_plan(json.dumps(dump_plan(plan)).encode(), "f"), plan)

    def test_a_file_that_is_cut_or_changed_is_refused_in_one_line(self) -> None:
        whole = json.dumps(dump_plan(made())).encode()
        for cut in range(0, len(whole), 7):
            with self.subTest(cut=cut), self.assertRaises(CassetteError) as refused:
                parse_plan(whole[:cut], "suites/x.json")
            self.assertTrue(str(refused.exception).startswith("suites/x.json"))
        value = dump_plan(made())
        for key in value:
            with self.subTest(key=key), self.assertRaises(CassetteError):
                parse_plan(json.dumps({**value, key: None}).encode(), "f")
        for name in ("../x", "", "20261130T120000-0a1b2c\n"):
            with self.assertRaisesRegex(CassetteError, "no id"):
                parse_plan(json.dumps({**value, "id": name}).encode(), "f")


class NextTry(unittest.TestCase):
    def test_rounds_are_interleaved(self) -> None:
        progress = Progress(made(repeat=2))
        taken = [progress.next() for _ in range(17)]
        self.assertIsNone(taken[16])
        order = [(one[0].key, one[1]) for one in taken if one]
        self.assertEqual([number for _, number in order], [1] * 8 + [2] * 8)
        self.assertEqual(len(set(order)), 16)

    def test_what_is_done_is_not_made_again_and_what_was_dropped_is(self) -> None:
        plan = made(repeat=1)
        first, second = plan.cells[0].key, plan.cells[1].key
        progress = Progress(plan, [Try(first, 1, run())])
        self.assertEqual(progress.counts(), (1, 8))
        found = progress.next()
        assert found is not None
        self.assertEqual(found[0].key, second)
        progress.drop(second, 1)
        again = progress.next()
        assert again is not None
        self.assertEqual(again[0].key, second)

    def test_an_invalid_run_is_made_again_as_often_as_told(self) -> None:
        for retries in (0, 1, 3):
            progress = Progress(made(repeat=1, retries=retries)._replace(cells=made().cells[:1]))
            asked = 0
            while found := progress.next():
                asked += 1
                progress.end(Try(found[0].key, found[1], run("INVALID")))
            self.assertEqual(asked, retries + 1)
            self.assertEqual(progress.counts(), (1, 1))

    def test_a_cell_that_is_decided_stops_early_only_if_asked(self) -> None:
        for stop_early, asked in ((False, 5), (True, 1)):
            plan = made(repeat=5, stop_early=stop_early)
            progress = Progress(plan._replace(cells=plan.cells[:1]))
            count = 0
            while found := progress.next():
                count += 1
                progress.end(Try(found[0].key, found[1], run("FAIL")))
            self.assertEqual(count, asked)

    def test_a_cell_that_is_given_up_gets_no_more_runs(self) -> None:
        plan = made(repeat=2)
        progress = Progress(plan)
        progress.give_up(plan.cells[0].key, "its cassette changed")
        keys = []
        while found := progress.next():
            keys.append(found[0].key)
        self.assertNotIn(plan.cells[0].key, keys)
        self.assertEqual(progress.cells()[0].trouble, "its cassette changed")

    def test_whatever_order_runs_end_in_every_try_is_made_exactly_once_or_retried(self) -> None:
        rng = random.Random(3)
        for _ in range(200):
            plan = made(repeat=rng.randint(1, 4), retries=rng.randint(0, 2))
            progress, under_way, ended = Progress(plan), [], []
            while True:
                found = progress.next() if len(under_way) < 3 else None
                if found:
                    self.assertNotIn(found, under_way)
                    under_way.append(found)
                elif not under_way:
                    break
                else:
                    cell, number = under_way.pop(rng.randrange(len(under_way)))
                    one = Try(cell.key, number, run(rng.choice(("PASS", "FAIL", "INVALID"))))
                    ended.append(one)
                    progress.end(one)
            for cell in plan.cells:
                for number in range(1, plan.repeat + 1):
                    results = [one.run.result for one in ended if (one.key, one.number) == (cell.key, number)]
                    self.assertTrue(results[:-1] == ["INVALID"] * (len(results) - 1))
                    self.assertTrue(results[-1] != "INVALID" or len(results) == plan.retries + 1)
            self.assertEqual(sum(len(one.runs) for one in plans.gather(plan, ended)), len(ended))
