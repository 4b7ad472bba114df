"""The commands `compare` and `history`: what they tell of suites and runs that are kept, and of what is no run."""

from __future__ import annotations

import datetime
import json
import unittest
from pathlib import Path
from typing import Any

from tests.suite_samples import HOSTILE
from tests.suite_sessions import SuiteCase
from tests.support import write_tree

from session_cassettes.suite import runs

#: Answers that hold the pin, and that do not.
GOOD, BAD = "port 8080", "port 80"


class KeptCase(SuiteCase):
    def suite(self, *words: str, answers: dict[str, str] | str = GOOD) -> str:
        """Make a suite run; return its id.

        :param answers: one for all, or a letter a try for each cell: P passes, F fails.
        """

        def brain(made: Any, before: int) -> str:
            if isinstance(answers, str):
                return answers
            letters = answers.get(made.cell) or answers.get(made.name, "P")
            return GOOD if letters[(before - self.before.get(made.cell, 0)) % len(letters)] == "P" else BAD

        self.age()
        self.before = {made.cell: sum(one.cell == made.cell for one in self.made) for made in self.made}
        self.brain = brain
        status, out, err = self.run_command("run", *words)
        self.assertIn(status, (0, 1), out + err)
        return self.suite_of(err)

    def age(self) -> None:
        """Let all that is kept be of a day earlier."""
        for name in self.store.names():
            for path in sorted(self.store.runs(name).glob("*.json")):
                run = json.loads(path.read_bytes())
                path.unlink()
                at = datetime.datetime.fromisoformat(run["at"]) - datetime.timedelta(days=1)
                stamp = f"{at:%Y%m%dT%H%M%S}{path.stem[15:]}"
                self.store.save_run(name, stamp, {**run, "at": at.isoformat(timespec="seconds")})

    def told(self, *words: str) -> Any:
        status, out, err = self.run_command(*words, "--json")
        self.assertEqual(err, "")
        return status, json.loads(out)


class TwoSuites(KeptCase):
    def setUp(self) -> None:
        super().setUp()
        for name in ("auth", "logs"):
            self.keep(name)

    def test_a_cell_that_fell_by_more_than_chance_is_told_first_and_is_a_status_of_its_own(self) -> None:
        one = self.suite("auth", "logs", "--repeat=6")
        write_tree(self.home, {"AGENTS.md": "Guess.\n"})
        other = self.suite("auth", "logs", "--repeat=6", answers={"auth": "PPPPPP", "logs": "FFFFFF"})
        status, out, err = self.run_command("compare", one, other)
        self.assertEqual((status, err), (1, ""))
        flat = " ".join(out.split())
        self.assertIn("changed from A to B: AGENTS.md (new)", flat)
        self.assertIn("- logs: A passes more often than B, 6 of 6 against 0 of 6, adjusted p = 0.0065", flat)
        self.assertIn("- auth: no difference shown between A (6 of 6) and B (6 of 6), adjusted p = 1", flat)
        self.assertLess(out.index("- logs"), out.index("- over 2 of 2 cassettes"))
        self.assertNotIn("equal", out)
        self.assertEqual(self.run_command("compare", other, one)[0], 0, "B is better: nothing to complain of")

    def test_json_has_each_cell_with_both_sides_the_chance_and_what_changed(self) -> None:
        one = self.suite("auth", "logs", "--repeat=4", answers={"auth": "PPPP", "logs": "PFPF"})
        other = self.suite("auth", "--repeat=4", "--model=m", answers={"auth m": "FFFF"})
        status, told = self.told("compare", one, other)
        self.assertEqual((status, told["exit_code"]), (1, 1))
        [cell] = told["comparisons"]
        self.assertEqual((cell["cassette"], cell["differs"]), ("auth", True))
        self.assertEqual((cell["one"]["model"], cell["one"]["passes"], cell["one"]["runs"]), ("", 4, 4))
        self.assertEqual((cell["other"]["model"], cell["other"]["passes"], cell["other"]["share"]), ("m", 0, 0.0))
        self.assertEqual(cell["changed"], [{"mark": "model", "before": "careful", "after": "m"}])
        self.assertAlmostEqual(cell["p_adjusted"], 2 / 70)
        self.assertEqual(told["only"], [[{"cassette": "logs", "model": "", "arm": ""}], []])

    def test_models_and_arms_are_compared_with_themselves_and_all_is_corrected_together(self) -> None:
        words = ("auth", "logs", "--model=a", "--model=b", "--arm=plain=", "--arm=tuned=x", "--repeat=3")
        status, told = self.told("compare", self.suite(*words), self.suite(*words, "--model=c"))
        self.assertEqual(status, 0)
        columns = [((each["one"]["model"], each["one"]["arm"]), each["cassette"]) for each in told["comparisons"]]
        expected = [((m, a), c) for m in "ab" for a in ("plain", "tuned") for c in (None, "auth", "logs")]
        self.assertEqual(columns, expected)
        self.assertEqual([len(one) for one in told["only"]], [0, 4])
        self.assertTrue(all(each["p_adjusted"] == 1.0 for each in told["comparisons"]))
        self.assertEqual({each["about"] for each in told["comparisons"] if each["cassette"] == "auth"}.__len__(), 4)

    def test_over_cassettes_each_has_one_vote(self) -> None:
        names = [f"c{at}" for at in range(6)]
        for name in names:
            self.keep(name)
        one, other = self.suite(*names), self.suite(*names, answers=BAD)
        status, told = self.told("compare", one, other)
        over = told["comparisons"][0]
        self.assertEqual((over["cassette"], over["votes"]["only_one"], over["p"]), (None, 6, 0.03125))
        self.assertEqual((status, over["differs"]), (0, False), "seven comparisons are shown")

    def test_a_suite_with_itself_tells_its_noise(self) -> None:
        words = ("auth", "--model=a", "--model=b", "--repeat=4")
        id = self.suite(*words, answers={"auth a": "PPFF", "auth b": "PPPP"})
        for given in ((id,), (id, id)):
            status, told = self.told("compare", *given)
            self.assertEqual(status, 0)
            self.assertEqual([each["halves"] for each in told["comparisons"]], [False, True, True])
        status, out, _ = self.run_command("compare", id)
        self.assertEqual(status, 0)
        self.assertIn("noise: the same arm, its first tries against its last:", out)
        self.assertIn("a (first half)", " ".join(out.split()))
        self.assertEqual(self.run_command("compare", self.suite("auth", "--repeat=1", "--jobs=1"))[0], 2)

    def test_a_cassette_that_is_another_by_now_is_a_mark(self) -> None:
        one = self.suite("auth", "--repeat=2")
        self.run_command("pin", "auth", "port")
        other = self.suite("auth", "--repeat=2")
        _, told = self.told("compare", one, other)
        self.assertEqual([change["mark"] for change in told["comparisons"][0]["changed"]], ["cassette"])

    def test_a_run_file_that_counts_for_nothing_is_told(self) -> None:
        one, other = self.suite("auth", "--repeat=2"), self.suite("auth", "--repeat=2")
        path = next(self.store.runs("auth").glob(f"*{other[-6:]}*"))
        path.write_bytes(path.read_bytes()[:-20])
        status, out, err = self.run_command("compare", one, other)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("counts for no run", " ".join(out.split()))
        self.assertIn("B (1 of 1)", " ".join(out.split()))


class Words(KeptCase):
    def test_what_there_is_not_is_one_line_with_what_there_is(self) -> None:
        self.keep("auth")
        self.assertIn("no suite run was made yet", self.refused("nope", "nope2"))
        id = self.suite("auth", "--repeat=2")
        self.assertIn(f"there is no suite run and no run 'nope': the newest suite runs are {id}", self.refused("nope"))
        for odd in ("", "../x", "/etc/passwd", "*", "\x1b[2J", "20991231T000000-000000", "x.json", "."):
            with self.subTest(odd):
                self.assertNotIn("\x1b", self.refused(id, odd) if odd else "")

    def test_a_run_and_a_suite_are_of_two_kinds(self) -> None:
        self.keep("auth")
        id = self.suite("auth", "--repeat=2")
        run = self.kept("auth")[0]["run"]
        self.assertIn("compare two of one kind", self.refused(id, run))

    def test_suites_without_a_cell_in_common_are_refused(self) -> None:
        for name in ("auth", "logs"):
            self.keep(name)
        one, other = self.suite("auth", "--repeat=2"), self.suite("logs", "--repeat=2")
        self.assertIn("have no cell in common", self.refused(one, other))

    def test_a_suite_is_named_by_the_beginning_of_its_id(self) -> None:
        self.keep("auth")
        one = self.suite("auth", "--repeat=2")
        other = self.suite("auth", "--repeat=2")
        self.assertEqual(self.run_command("compare", one, other[:-1])[0], 0)
        self.assertIn("is the beginning of 2 suite runs", self.refused(one, "2"))

    def refused(self, *words: str) -> str:
        status, out, err = self.run_command("compare", *words)
        self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
        return err


class TwoRuns(KeptCase):
    def setUp(self) -> None:
        super().setUp()
        self.keep()

    def made_run(self, answer: str, *words: str) -> dict[str, Any]:
        self.brain = lambda made, before: answer
        _, out, _ = self.run_command("run", "shop", "--json", *words)
        found: dict[str, Any] = json.loads(out)
        return found

    def test_two_runs_are_told_apart_by_result_pins_path_answer_and_what_went_in(self) -> None:
        one, other = self.made_run(GOOD), self.made_run("astray, port 80", "--model", "m")
        for words in (
            (one["run"], other["run"]),
            (one["file"], other["file"]),
            (one["run"][:8], Path(other["file"]).stem),
        ):
            status, out, err = self.run_command("compare", *words)
            self.assertEqual((status, err), (0, ""))
            for text in (
                "A  shop with careful, ",
                ": PASS\n",
                ": FAIL\n",
                "changed from A to B: model (careful to m)",
                "pin [ok] in A, [--] in B: 8080",
                'only B asked terminal {"command":"ls"}',
                "answer of B:\n  astray, port 80",
                "one run against one can show no difference",
            ):
                self.assertIn(text, out)
        status, told = self.told("compare", one["run"], other["run"])
        self.assertEqual((status, told["same_answer"], told["differs"]), (0, False, False))
        self.assertEqual([run["result"] for run in told["runs"]], ["PASS", "FAIL"])

    def test_runs_of_two_cassettes_are_refused(self) -> None:
        self.keep("other")
        one = self.made_run(GOOD)["run"]
        other = json.loads(self.run_command("run", "other", "--json")[1])["run"]
        status, _, err = self.run_command("compare", one, other)
        self.assertEqual(status, 2)
        self.assertIn("runs of two cassettes", err)

    def test_texts_that_mean_something_to_a_terminal_are_escaped(self) -> None:
        runs_made = [self.made_run(f"{text} {GOOD}")["run"] for text in HOSTILE[:2] + HOSTILE[6:9]]
        for other in runs_made[1:]:
            _, out, err = self.run_command("compare", runs_made[0], other)
            self.assertEqual(err, "")
            self.assertTrue(all(line.isprintable() for line in out.split("\n")), out)


class History(KeptCase):
    def setUp(self) -> None:
        super().setUp()
        self.keep()

    def test_suites_and_days_are_rows_with_marks_where_something_changed(self) -> None:
        first = self.suite("shop", "--repeat=2")
        write_tree(self.home, {"AGENTS.md": "Guess.\n"})
        second = self.suite("shop", "--repeat=2", answers={"shop": "PF"})
        self.age()
        self.run_command("run", "shop", "--model", "m")
        status, out, err = self.run_command("history", "shop")
        self.assertEqual((status, err), (0, ""))
        lines = out.split("\n")
        self.assertTrue(lines[0].startswith("shop: 5 runs, the oldest first"))
        self.assertRegex(lines[1], rf"^{first}  default model  2 of 2, 100 % \(34-100\)$")
        self.assertRegex(lines[2], rf"^{second}  default model  1 of 2, 50 % \([0-9.]+-[0-9.]+\)  \(1 FAIL\)$")
        self.assertEqual(lines[3], "  * AGENTS.md (new)")
        self.assertRegex(lines[4], r"^\d{4}-\d\d-\d\d +m +1 of 1, ")
        _, told = self.told("history", "shop", "--last", "1")
        self.assertEqual([(row["model"], row["runs"]) for row in told["rows"]], [("m", 1)])

    def test_where_a_cell_fell_is_told_with_what_lies_between(self) -> None:
        self.suite("shop", "--repeat=6")
        good = self.suite("shop", "--repeat=6")
        write_tree(self.home, {"AGENTS.md": "Guess.\n"})
        bad = self.suite("shop", "--repeat=6", answers={"shop": "F"})
        status, out, _ = self.run_command("history", "shop", "--bisect")
        self.assertEqual(status, 0)
        self.assertIn(f"fell from 6 of 6 ({good}) to 0 of 6 ({bad}): more than chance, adjusted p = 0.0043", out)
        self.assertIn("  * changed between them: AGENTS.md (new)", out)
        _, told = self.told("history", "shop", "--bisect")
        [fall] = told["falls"]
        self.assertEqual((fall["before"]["group"], fall["after"]["group"], fall["differs"]), (good, bad, True))
        self.assertEqual(fall["changed"], told["rows"][2]["changed"])

    def test_what_did_not_fall_is_told_and_a_fall_that_may_be_chance_is_called_so(self) -> None:
        self.suite("shop", "--repeat=2", "--model=a", "--model=b")
        self.suite("shop", "--repeat=2", "--model=a", "--model=b", answers={"shop a": "PF"})
        _, out, _ = self.run_command("history", "shop", "--bisect")
        self.assertIn("no difference shown, adjusted p = 1", out)
        self.assertIn("changed between them: nothing that a run file tells", out)
        self.assertIn("not below an earlier row: b", out)

    def test_no_runs_and_no_such_cassette_are_one_line(self) -> None:
        for name, told in (("shop", "has no runs yet: hermes cassette run shop"), ("shp", "did you mean 'shop'")):
            status, out, err = self.run_command("history", name)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1))
            self.assertIn(told, err)
        for last in ("0", "-1", "x", "", "1.5", "9" * 30):
            self.assertEqual(self.run_command("history", "shop", "--last", last)[0], 2, last)

    def test_files_that_were_cut_are_counted_for_nothing_and_told(self) -> None:
        self.suite("shop", "--repeat=3", answers="port 8080 " + "x" * 200_000)  # larger than the head that is read
        whole, cut, empty = sorted(self.store.runs("shop").glob("*.json"))
        cut.write_bytes(cut.read_bytes()[:-50])
        empty.write_bytes(b"")
        (self.store.runs("shop") / "notes.json").write_text('{"some": "thing"}')
        _, told = self.told("history", "shop")
        self.assertEqual([row["runs"] for row in told["rows"]], [1])
        self.assertEqual(sorted(told["unreadable"]), sorted([cut.name, empty.name, "notes.json"]))
        _, out, _ = self.run_command("history", "shop")
        self.assertIn("3 files cut off or no run's, which count for nothing", out)

    def test_a_hostile_run_file_neither_breaks_nor_moves_the_screen(self) -> None:
        for at, text in enumerate((*HOSTILE, "x" * 100_000)):
            odd = {
                key: text for key in ("suite", "hermes", "plugin", "fingerprint", "model", "cassette_sha256", "asked")
            }
            inputs = {"system_prompt": text, "skills": {text: text}, "files": {text: text, "n": [text]}}
            run = {"result": "PASS", "at": f"2026-03-01T{at:02}{text}", "inputs": inputs, "cell": {"arm": text}, **odd}
            self.store.save_run("shop", f"20260301T1000{at:02}-x", {**run, "skills": [text] * 300})
        for words in ((), ("--bisect",), ("--json",)):
            status, out, err = self.run_command("history", "shop", *words)
            self.assertEqual((status, err), (0, ""))
            self.assertTrue(all(line.isprintable() for line in out.split("\n")))
            self.assertLess(len(out), 400_000)

    def test_a_renamed_cassette_keeps_its_history(self) -> None:
        self.suite("shop", "--repeat=2")
        self.run_command("rename", "shop", "login")
        _, told = self.told("history", "login")
        self.assertEqual([row["runs"] for row in told["rows"]], [2])

    def test_every_suite_is_found_by_the_id_that_history_shows(self) -> None:
        self.suite("shop", "--repeat=2")
        _, told = self.told("history", "shop")
        self.assertEqual([row["group"] for row in told["rows"]], runs.suite_ids(self.store))


if __name__ == "__main__":
    unittest.main()
