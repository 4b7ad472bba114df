"""The command `run` with many runs: what is made, kept and told, and what it takes to lose none of it."""

from __future__ import annotations

import json
import os
import re
import threading
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from unittest import mock

from tests.support import temp_folder
from tests.suite_samples import HOSTILE
from tests.suite_sessions import Made, SuiteCase
from tests.test_cli import PASSED

from session_cassettes import cli
from session_cassettes.suite import launching  # noqa: E402
from session_cassettes.cassette_store import CassetteError
from session_cassettes.suite import runs


class One(SuiteCase):
    """One cassette, one model, one run: as ever."""

    def test_one_run_prints_and_keeps_what_it_ever_did(self) -> None:
        self.keep()
        for answer, status, told in (("port 8080", 0, PASSED), ("no", 1, "result FAIL\n"), ("", 4, "result INVALID\n")):
            with self.subTest(answer):
                self.brain = lambda made, before: answer
                found, out, err = self.run_command("run", "shop")
                self.assertEqual((found, err), (status, ""))
                self.assertTrue(out.partition("\n")[2].startswith(told), out)
        self.assertEqual(runs.suite_ids(self.store), [])
        self.assertFalse({"suite", "cell", "try"} & set(self.kept()[0]))

    def test_its_json_is_the_run(self) -> None:
        self.keep()
        status, out, _ = self.run_command("run", "shop", "--model", "m", "--json")
        told = json.loads(out)
        self.assertEqual((status, told["result"], told["model"]), (0, "PASS", "m"))
        self.assertEqual({key: told[key] for key in self.kept()[0]}, self.kept()[0])

    def test_a_report_of_one_run_changes_neither_its_output_nor_its_status(self) -> None:
        self.keep()
        folder = temp_folder(self)
        self.brain = lambda made, before: "nothing"
        flags = [f"--{kind}={folder / kind}" for kind in ("junit", "markdown", "html")]
        plain, reported = self.run_command("run", "shop"), self.run_command("run", "shop", *flags)
        self.assertEqual((reported[0], reported[2]), (1, ""))
        self.assertEqual(re.sub("file .*", "", reported[1]), re.sub("file .*", "", plain[1]))
        for kind in ("junit", "markdown", "html"):
            text = (folder / kind).read_text("utf-8")
            self.assertIn("FAIL", text)
            self.assertIn("nothing", text)
            self.assertIn("Where is the auth handler?", text)


class Suites(SuiteCase):
    def setUp(self) -> None:
        super().setUp()
        self.keep("auth")
        self.keep("logs")

    def test_every_cassette_meets_every_model_and_arm_in_rounds(self) -> None:
        words = ("auth", "logs", "--model=a", "--model=b", "--arm=plain=", "--arm=tuned=x,y", "--repeat=2")
        status, out, err = self.run_command("run", *words)
        self.assertEqual(status, 0, out + err)
        cells = [f"{name} {model}{skills}" for name in ("auth", "logs") for model in "ab" for skills in ("", " x y")]
        self.assertEqual([made.cell for made in self.made], cells * 2)
        self.assertIn("PASS: all 8 cells reached the required 100 %", out)
        [id] = runs.suite_ids(self.store)
        self.assertIn(f"suite run {id}: 16 runs of 8 cells", err)
        kept = self.kept("auth") + self.kept("logs")
        self.assertEqual({run["suite"] for run in kept}, {id})
        self.assertEqual(
            sorted((run["name"], run["cell"]["model"], run["cell"]["arm"], run["try"]) for run in kept),
            sorted((n, m, a, t) for n in ("auth", "logs") for m in "ab" for a in ("plain", "tuned") for t in (1, 2)),
        )

    def test_skills_for_all_stand_before_an_arms_own(self) -> None:
        self.run_command("run", "auth", "--skill=base", "--skill=x", "--arm=plain=", "--arm=tuned=x,y")
        self.assertEqual([made.skills for made in self.made], [["base", "x"], ["base", "x", "y"]])

    def test_names_patterns_and_all_choose(self) -> None:
        for words, names in (
            (("a*",), ["auth"]),
            (("logs", "*"), ["logs", "auth"]),
            (("--all",), ["auth", "logs"]),
            (("logs", "--repeat=2", "auth"), ["logs", "auth"] * 2),
        ):
            with self.subTest(words=words):
                self.made.clear()
                self.assertEqual(self.run_command("run", *words)[0], 0)
                self.assertEqual([made.name for made in self.made], names)

    def test_the_status_is_that_of_the_worst_cell(self) -> None:
        for answers, require, status, word in (
            ({"auth": "port 8080", "logs": "port 8080"}, "1", 0, "PASS"),
            ({"auth": "no", "logs": "astray 8080"}, "1", 1, "FAIL"),
            ({"auth": "port 8080", "logs": "astray 8080"}, "1", 3, "DIVERGED"),
            ({"auth": "port 8080", "logs": ""}, "1", 4, "INVALID"),
            ({"auth": "", "logs": "astray 8080"}, "1", 3, "DIVERGED"),
        ):
            with self.subTest(answers=answers):
                self.brain = lambda made, before: answers[made.name]
                found, out, _ = self.run_command("run", "auth", "logs", f"--require={require}")
                self.assertEqual(found, status, out)
                self.assertIn(f"{word}: ", out)

    def test_a_share_that_is_required_may_be_less_than_all(self) -> None:
        self.brain = lambda made, before: "port 8080" if before else "no"
        for require, status in (("0.75", 0), ("0.8", 1)):
            with self.subTest(require):
                self.made.clear()
                found, out, _ = self.run_command("run", "auth", "--repeat=4", f"--require={require}", "--json")
                cell = json.loads(out)["cells"][0]
                self.assertEqual((found, cell["runs"], cell["passes"], cell["share"]), (status, 4, 3, 0.75))
                self.assertEqual((cell["reached"], cell["shown"], len(cell["interval"])), (status == 0, False, 2))

    def test_a_cell_that_always_fails_is_named_first(self) -> None:
        self.brain = lambda made, before: "no" if made.name == "logs" else "port 8080"
        _, out, _ = self.run_command("run", "--all", "--repeat=3")
        self.assertTrue(out.startswith("✗ never passed: logs with default model (0 of 3)\n"), out)

    def test_json_names_cells_and_their_run_files(self) -> None:
        words = ("auth", "logs", "--model=a", "--arm=tuned=x", "--repeat=2", "--json", "--noise")
        status, out, _ = self.run_command("run", *words)
        told = json.loads(out)
        self.assertEqual((status, out.count("\n"), told["exit_code"], told["left"]), (0, 1, 0, 0))
        self.assertEqual(told["suite"], runs.suite_ids(self.store)[0])
        self.assertEqual([cell["cassette"] for cell in told["cells"]], ["auth", "logs"])
        for cell in told["cells"]:
            self.assertEqual((cell["model"], cell["arm"], cell["skills"], cell["runs"]), ("a", "tuned", ["x"], 2))
            self.assertEqual(len(cell["files"]), 2)
            for file in cell["files"]:
                self.assertEqual(json.loads(Path(file).read_bytes())["name"], cell["cassette"])
        self.assertEqual([one["halves"] for one in told["comparisons"]], [True, True])

    def test_an_invalid_try_is_made_again_as_often_as_told(self) -> None:
        for retries, sessions, status in (("0", 1, 4), ("1", 2, 4), ("2", 3, 0), ("5", 3, 0)):
            with self.subTest(retries):
                self.made.clear()
                self.brain = lambda made, before: "port 8080" if before == 2 else ""
                found, out, _ = self.run_command("run", "auth", "--repeat=1", f"--retry-invalid={retries}")
                self.assertEqual((len(self.made), found), (sessions, status), out)

    def test_a_cell_stops_early_only_if_told(self) -> None:
        self.brain = lambda made, before: "no"
        for flags, sessions in (((), 5), (("--stop-early",), 1)):
            with self.subTest(flags):
                self.made.clear()
                self.assertEqual(self.run_command("run", "auth", "--repeat=5", *flags)[0], 1)
                self.assertEqual(len(self.made), sessions)

    def test_without_a_run_nothing_was_graded(self) -> None:
        status, out, err = self.run_command("run", "auth", "logs", "--budget=0.000001")
        self.assertEqual(status, 2, out)
        id = self.suite_of(err)
        self.assertIn(
            f"the budget was spent: 0 of 2 runs are kept; hermes cassette run --resume {id} does the rest", out
        )
        self.assertEqual(self.run_command("run", "--resume")[0], 0)

    def test_a_session_that_cannot_be_started_costs_its_cell_alone(self) -> None:
        def brain(made: Made, before: int) -> str:
            if made.name == "auth":
                raise CassetteError("cannot start hermes (no memory)")
            return "port 8080"

        self.brain = brain
        status, out, _ = self.run_command("run", "auth", "logs", "--repeat=2")
        self.assertEqual(status, 4)
        self.assertIn("cannot start hermes (no memory)", " ".join(out.split()))
        self.assertEqual([made.name for made in self.made].count("logs"), 2)
        self.assertEqual([made.name for made in self.made].count("auth"), 2)  # one try, and its retry

    def test_the_host_and_ripgrep_are_asked_once(self) -> None:
        with (
            mock.patch.object(cli, "hosting_signs", wraps=launching.hosting_signs) as hosts,
            mock.patch.object(cli, "ripgrep_major", return_value=14) as ripgreps,
        ):
            self.assertEqual(self.run_command("run", "auth", "logs", "--repeat=3", "--jobs=2")[0], 0)
        self.assertEqual((hosts.call_count, ripgreps.call_count), (1, 1))

    def test_the_next_session_starts_when_the_one_before_has_claimed(self) -> None:
        together = threading.Barrier(2)
        self.claimed = lambda made: together.wait(10) and None
        status, out, err = self.run_command("run", "auth", "logs", "--jobs=2")
        self.assertEqual(status, 0, out + err)

    def test_another_commands_waiting_run_is_waited_for(self) -> None:
        slot = self.store.waiting()
        self.assertTrue(slot.try_acquire())
        threading.Timer(0.3, slot.release).start()
        self.assertEqual(self.run_command("run", "auth", "logs")[0], 0)


class Changes(SuiteCase):
    """What others do to the cassettes meanwhile and afterwards."""

    def setUp(self) -> None:
        super().setUp()
        self.keep("auth")
        self.keep("logs")

    def test_a_cassette_that_changes_makes_its_cell_invalid_and_the_others_go_on(self) -> None:
        def brain(made: Made, before: int) -> str:
            if made.name == "logs" and before == 0:
                self.store.change_pins("auth", lambda pins: (*pins, "auth.py"))
            return "port 8080"

        self.brain = brain
        status, out, _ = self.run_command("run", "auth", "logs", "--repeat=3")
        self.assertEqual(status, 4)
        self.assertIn("its cassette changed during the suite run: start another", " ".join(out.split()))
        self.assertEqual([made.name for made in self.made], ["auth", "logs", "logs", "logs"])
        status, out, err = self.run_command("run", "--resume")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("no suite run is unfinished", err)

    def test_while_a_suite_goes_on_none_of_its_cassettes_is_renamed_or_removed(self) -> None:
        told: list[str] = []

        def brain(made: Made, before: int) -> str:
            for words in (("rename", "logs", "other"), ("rm", "logs", "--yes")):
                with self.assertRaisesRegex(CassetteError, "a run of 'logs' goes on"):
                    self.store.remove("logs") if words[0] == "rm" else self.store.rename("logs", "other")
                told.append(words[0])
            return "port 8080"

        self.brain = brain
        self.assertEqual(self.run_command("run", "auth", "logs")[0], 0)
        self.assertEqual(told, ["rename", "rm"] * 2)
        self.store.remove("logs")

    def test_after_a_suite_its_runs_follow_a_renamed_cassette_and_go_with_a_removed_one(self) -> None:
        id = self.suite_of(self.run_command("run", "auth", "logs")[2])
        self.store.rename("auth", "login")
        status, out, _ = self.run_command("run", "--resume", id, "--json")
        self.assertEqual((status, [cell["runs"] for cell in json.loads(out)["cells"]]), (0, [1, 1]))
        self.store.remove("login")
        status, out, _ = self.run_command("run", "--resume", id, "--json")
        told = json.loads(out)
        self.assertEqual((status, [cell["runs"] for cell in told["cells"]]), (4, [0, 1]))
        self.assertIn("there is no cassette 'auth'", told["cells"][0]["trouble"])

    def test_a_cassette_gone_before_its_turn_costs_its_cell_alone(self) -> None:
        def brain(made: Made, before: int) -> str:
            self.store.path("logs").unlink(missing_ok=True)  # by hand: the command would have refused
            return "port 8080"

        self.brain = brain
        status, out, _ = self.run_command("run", "auth", "logs")
        self.assertEqual((status, [made.name for made in self.made]), (4, ["auth"]))
        self.assertIn("cannot be used any more", " ".join(out.split()))


class Interrupted(SuiteCase):
    def setUp(self) -> None:
        super().setUp()
        self.keep("auth")
        self.keep("logs")

    def interrupt(self, after: int, *words: str) -> tuple[int, str, str]:
        def brain(made: Made, before: int) -> str:
            if len(self.made) > after:
                raise KeyboardInterrupt
            return "port 8080"

        self.brain = brain
        self.made.clear()
        ended = self.run_command("run", "auth", "logs", "--repeat=3", *words)
        self.brain = lambda made, before: "port 8080"
        self.made.clear()
        return ended

    def test_what_is_left_is_told_and_done_later(self) -> None:
        for named in (True, False):
            with self.subTest(named=named):
                status, out, err = self.interrupt(2)
                id = self.suite_of(err)
                told = f"interrupted: 2 of 6 runs are kept; hermes cassette run --resume {id} does the rest"
                self.assertEqual((status, out, err.splitlines()[1:]), (130, "", [f"hermes cassette: {told}"]))
                self.assertFalse(self.store.arm_path.exists())
                status, out, err = self.run_command("run", "--resume", *[id] * named, "--json")
                self.assertEqual(err, f"hermes cassette: suite run {id}: 4 of 6 runs left\n")
                self.assertEqual((status, [cell["runs"] for cell in json.loads(out)["cells"]]), (0, [3, 3]))
                self.assertEqual([made.name for made in self.made], ["auth", "logs"] * 2)

    def test_a_run_that_did_not_reach_the_disk_whole_is_made_again(self) -> None:
        _, _, err = self.interrupt(4)
        [file] = [path for path in self.store.runs("auth").iterdir() if json.loads(path.read_bytes())["try"] == 1]
        file.write_bytes(file.read_bytes()[:-40])
        status, out, err = self.run_command("run", "--resume", "--json")
        self.assertEqual((status, [cell["runs"] for cell in json.loads(out)["cells"]]), (0, [3, 3]))
        self.assertIn(f"{file} is not a JSON file", err)
        self.assertIn("3 of 6 runs left", err)

    def test_a_finished_suite_is_told_again_and_starts_nothing(self) -> None:
        self.brain = lambda made, before: "no"
        status, out, err = self.run_command("run", "auth", "logs")
        self.made.clear()
        again = self.run_command("run", "--resume", self.suite_of(err))
        self.assertEqual((again[0], again[1], self.made), (status, out, []))
        self.assertIn("no suite run is unfinished", self.run_command("run", "--resume")[2])

    def test_the_second_of_two_that_go_on_with_one_suite_is_refused(self) -> None:
        id = self.suite_of(self.interrupt(1)[2])
        lock = runs.lock_suite(self.store, id)
        self.assertTrue(lock.try_acquire())
        for words in (("--resume",), ("--resume", id)):
            status, out, err = self.run_command("run", *words)
            self.assertEqual((status, out, err.count("\n"), self.made), (2, "", 1, []))
            self.assertIn(f"another command goes on with the suite run {id}", err)
        lock.release()
        self.assertEqual(self.run_command("run", "--resume")[0], 0)

    def test_a_plan_that_was_cut_is_one_line(self) -> None:
        id = self.suite_of(self.interrupt(1)[2])
        path = runs.plan_path(self.store, id)
        path.write_bytes(path.read_bytes()[:100])
        for words in (("--resume",), ("--resume", id)):
            status, out, err = self.run_command("run", *words)
            self.assertEqual((status, out, err.count("\n"), self.made), (2, "", 1, []))
            self.assertIn(str(path), err)

    def test_reports_are_written_as_far_as_it_came(self) -> None:
        file = temp_folder(self) / "report.xml"
        self.assertEqual(self.interrupt(3, f"--junit={file}")[0], 130)
        root = ElementTree.fromstring(file.read_text("utf-8"))
        self.assertEqual((root.get("tests"), root.get("errors")), ("2", "2"))
        told = [str(error.get("message")) for error in root.iter("error")]
        self.assertEqual([one.partition(";")[0] for one in told], ["2 of 2 PASS", "1 of 1 PASS"])

    def test_a_run_that_cannot_be_kept_ends_the_suite_in_one_line(self) -> None:
        with mock.patch.object(type(self.store), "save_run", side_effect=CassetteError("cannot write: no space")):
            status, out, err = self.run_command("run", "auth", "logs", "--repeat=3")
        self.assertEqual((status, out, len(self.made), len(err.splitlines())), (2, "", 1, 2))
        self.assertRegex(
            err, "cannot write: no space; 0 of 6 runs are kept; hermes cassette run --resume .* does the rest"
        )


class Refused(SuiteCase):
    def setUp(self) -> None:
        super().setUp()
        self.keep("auth")
        self.keep("logs")

    def refused(self, *words: str) -> str:
        """A command that is refused in one line before anything is started or kept."""
        status, out, err = self.run_command("run", *words)
        self.assertEqual((status, out, err.count("\n"), self.made), (2, "", 1, []), err)
        self.assertEqual(runs.suite_ids(self.store), [])
        return err

    def test_what_makes_no_sense_is_refused_in_one_line(self) -> None:
        for words, told in (
            ((), "run what?"),
            (("auth", "lgos"), "there is no cassette 'lgos': did you mean 'logs'?"),
            (("auth", "x-*"), "no cassette matches 'x-*'"),
            (("auth", "--all"), "leave out auth, or --all"),
            (("auth", "--arm=tuned"), "--arm 'tuned' is no LABEL=SKILL"),
            (("auth", "--arm==x"), "is no LABEL=SKILL"),
            (("auth", "--arm=a=x", "--arm=a=y"), "--arm a stands twice"),
            (("auth", "--model="), "--model names no model"),
            (("auth", "--model=a", "--model= "), "--model names no model"),
            (("auth", "--repeat=2", "--in="), "--in names no folder"),
            (("--resume", "--timeout=5"), "leave out --timeout"),
            (("auth", "--repeat=0"), "'0' is not a whole number from 1 to 10,000"),
            (("auth", "--repeat=x"), "'x' is not a whole number"),
            (("auth", "--jobs=0"), "'0' is not a whole number from 1 to 16"),
            (("auth", "--jobs=17"), "'17' is not a whole number from 1 to 16"),
            (("auth", "--require=1.5"), "'1.5' is not a share"),
            (("auth", "--require=0"), "'0' is not a share"),
            (("auth", "--require=nan"), "'nan' is not a share"),
            (("auth", "--budget=0"), "'0' is not a number of seconds"),
            (("auth", "--retry-invalid=-1"), "'-1' is not a whole number from 0"),
            (
                ("auth", "logs", "--model=a", "--model=b", "--repeat=10000", "--arm=a=", "--arm=b=", "--arm=c="),
                "runs, over",
            ),
            (("auth", "--nope"), "unrecognized arguments: --nope"),
            (("--resume=nope",), "'nope' is no id of a suite run"),
            (("--resume=20261130T120000-0a1b2c",), "there is no suite run"),
            (("--resume",), "no suite run is unfinished"),
            (("auth", "--resume"), "leave out auth"),
            (("--resume", "--model=a"), "leave out --model"),
            (("--resume", "--repeat=2"), "leave out --repeat"),
            (("--resume", "--all"), "leave out --all"),
        ):
            with self.subTest(words=words):
                self.assertIn(told, self.refused(*words))

    def test_all_of_nothing_says_what_to_do(self) -> None:
        for name in ("auth", "logs"):
            self.store.remove(name)
        self.assertIn("there are no cassettes yet", self.refused("--all"))

    def test_what_could_have_no_verdict_is_found_out_before_the_first_run(self) -> None:
        for changes, told in (
            ({"pins": ()}, "'logs' has no pin"),
            ({"pins": ("re:x*",)}, "could never fail"),
            ({"cwd": str(self.home / "gone")}, "does not exist"),
            ({"request": "/help"}, "starts with '/'"),
        ):
            with self.subTest(changes):
                self.keep("logs", **changes)
                self.assertIn(told, self.refused("auth", "logs", "--repeat=2"))
        self.store.path("logs").write_bytes(b"{")
        self.assertIn("logs.json", self.refused("--all"))

    def test_a_report_that_cannot_be_written_is_found_out_before_the_first_run(self) -> None:
        folder = temp_folder(self)
        (folder / "file").write_text("x")
        for flags, told in (
            (["--junit="], "--junit names no file"),
            (["--html=-"], "--html names no file"),
            ([f"--markdown={folder}"], "is a folder: name a file"),
            ([f"--junit={folder / 'gone' / 'x.xml'}"], f"there is no folder {folder / 'gone'}"),
            ([f"--junit={folder / 'file' / 'x.xml'}"], "there is no folder"),
            ([f"--junit={folder / ('x' * 300)}"], "cannot be written"),
            (["--html=a\0b"], "--html names no file"),
            ([f"--junit={folder / 'x'}", f"--html={folder / '.' / 'x'}"], "--junit and --html name the same file"),
        ):
            for more in ((), ("--repeat=2",)):
                with self.subTest(flags=flags, more=more):
                    self.assertIn(told, self.refused("auth", *flags, *more))
        self.assertEqual(sorted(os.listdir(folder)), ["file"])

    @unittest.skipIf(os.name == "nt", "POSIX")
    def test_a_report_replaces_no_device_and_follows_a_link(self) -> None:
        folder = temp_folder(self)
        self.assertIn("no regular file", self.refused("auth", "--junit=/dev/null"))
        (folder / "link").symlink_to(folder / "real.xml")
        self.assertIn("same file", self.refused("auth", f"--junit={folder / 'link'}", f"--html={folder / 'real.xml'}"))
        self.assertEqual(self.run_command("run", "auth", f"--junit={folder / 'link'}")[0], 0)
        self.assertTrue((folder / "link").is_symlink())
        self.assertIn("<testsuites", (folder / "real.xml").read_text("utf-8"))


class Reports(SuiteCase):
    def test_a_report_that_can_no_longer_be_written_is_an_error_after_all_is_told(self) -> None:
        self.keep("auth")
        folder = temp_folder(self) / "here"
        folder.mkdir()

        def brain(made: Made, before: int) -> str:
            folder.rmdir()
            return "port 8080"

        self.brain = brain
        status, out, err = self.run_command("run", "auth", "--repeat=1", f"--junit={folder / 'x.xml'}")
        self.assertEqual((status, len(err.splitlines())), (2, 2))
        self.assertIn("PASS: the cell reached", out)
        self.assertIn("cannot write", err)

    def test_hostile_answers_are_escaped_wherever_they_are_told(self) -> None:
        folder = temp_folder(self)
        self.keep("auth", answer=HOSTILE[0], request="what?")
        flags = [f"--{kind}={folder / kind}" for kind in ("junit", "markdown", "html")]
        texts = [text.encode("utf-8", "ignore").decode() for text in HOSTILE]
        self.brain = lambda made, before: texts[before % len(texts)]
        status, out, _ = self.run_command("run", "auth", f"--repeat={len(texts)}", *flags, "--jobs=3")
        self.assertEqual(status, 1)
        self.assertRegex(out, r"\A[^\x00-\x09\x0b-\x1f\x7f\x9b\u202e\u2028\u2029]*\Z")
        junit, markdown, html = ((folder / kind).read_text("utf-8") for kind in ("junit", "markdown", "html"))
        ElementTree.fromstring(junit)
        self.assertIn("CANARY", junit)
        self.assertNotRegex(html, r"<(script|img|a href=.http)")
        self.assertNotRegex(html, r"[\x00-\x08\x0b-\x1f\x9b\u202e]")
        self.assertLessEqual(len(markdown.encode()), 60_000)
        self.assertNotRegex(re.sub(r"(?s)```.*?\n```+|<pre>.*?</pre>", "", markdown), r"<script|<img")

    def test_reports_are_for_their_owner_alone(self) -> None:
        self.keep("auth")
        file = temp_folder(self) / "x.html"
        self.run_command("run", "auth", "--repeat=1", f"--html={file}")
        if os.name != "nt":
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)


class Progress(SuiteCase):
    def setUp(self) -> None:
        super().setUp()
        patched = mock.patch.dict(os.environ, {"TERM": "xterm"})
        patched.start()
        self.addCleanup(patched.stop)
        os.environ.pop("CI", None)

    def test_a_terminal_sees_one_line_that_goes_at_the_end(self) -> None:
        self.keep("auth")
        _, _, err = self.run_command("run", "auth", "--repeat=2", terminal=True)
        self.assertIn("1 of 2 runs, about 1 s left; PASS: auth 1/1", err)
        self.assertTrue(err.endswith("\r"))

    def test_a_name_that_would_move_the_cursor_is_shown_escaped(self) -> None:
        self.keep("auth")
        _, _, err = self.run_command("run", "auth", "--model=a\x1b[2J", "--model=b", terminal=True)
        self.assertIn("PASS: a\\x1b[2J 1/1", err)
        self.assertNotIn("\x1b", err)

    def test_elsewhere_nothing_is_told_in_the_first_half_minute(self) -> None:
        self.keep("auth")
        _, _, err = self.run_command("run", "auth", "--repeat=2")
        self.assertEqual(err.count("\n"), 1)
        with mock.patch.dict(os.environ, {"CI": "true"}):
            _, _, err = self.run_command("run", "auth", "--repeat=2", terminal=True)
        self.assertEqual((err.count("\n"), "\r" in err), (1, False))


if __name__ == "__main__":
    unittest.main()
