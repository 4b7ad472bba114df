"""What a plugin written for 0.22 would get wrong in 0.23, point by point, behind the stand-in."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from .gateway_case import ANSWER, READ, GatewayCase, Step, ask_gateway, calls, stop_gateway
from .host import Home
from .trust_case import Pause


class GatewayPoints(GatewayCase):
    def is_another(self, **settings: Any) -> None:
        """Let this Hermes be another one, its gateway too."""
        self.is_like(**settings)
        stop_gateway(self.home)
        self.addCleanup(stop_gateway, self.home)

    def cassette_of(self, name: str) -> Any:
        return self.home.cassette(name)

    def run_file(self, name: str) -> Any:
        """The last run of a cassette, as it was kept."""
        return json.loads(max((self.home.data / "runs" / name).iterdir()).read_text(encoding="utf-8"))

    # where sessions are hosted

    def test_no_run_whose_child_only_attaches_runs_live_whatever_the_signs_say(self) -> None:
        name = self.cassette("signs", calls(READ, self.write()), ANSWER)
        for settings in ({"session_cwd": True}, {"module": False, "version": "dev"}):
            with self.subTest(settings):
                self.is_another(**settings)
                self.check(self.run_hermes("cassette", "run", name), 3, "result DIVERGED", "1 hit")
                self.assertEqual(self.run_file(name)["hosting"], "gateway")
        with self.subTest("every sign is wrong"):
            self.is_another(module=False, version="0.22.2")
            self.check(self.run_hermes("cassette", "run", name), 4, "result INVALID", "no session claimed the run")
        self.nothing_ran()
        self.no_litter()

    def test_a_host_that_is_no_gateway_but_says_so_is_found_out_before_anything_runs(self) -> None:
        name = self.cassette("no gateway", calls(READ, self.write()), ANSWER)
        self.is_like(attaches=False, module=False)
        self.check(self.run_hermes("cassette", "run", name), 3, "result DIVERGED", "1 hit")
        self.assertEqual(self.run_file(name)["hosting"], "process")
        asked = len(self.model.requests)
        self.is_like(attaches=False, module=False, keeps_environment=False)
        self.check(self.run_hermes("cassette", "run", name), 2, "sends slash commands to the model")
        requests = [str(body["messages"][-1].get("content")) for body in self.model.requests[asked:]]
        self.assertEqual([text for text in requests if "no gateway" in text], [])
        self.nothing_ran()
        self.no_litter()

    # sessions

    def test_a_recording_that_a_headless_command_arms_is_of_that_session_and_no_other(self) -> None:
        self.scripts.steps["mine"] = [calls(READ), ANSWER]
        for number, settings in enumerate(({}, {"session_cwd": True, "generation": "A"})):
            with self.subTest(settings):
                self.is_another(**settings)
                name = f"mine-{number}"
                folder = self.work / f"folder {number}"
                folder.mkdir()
                (folder / "a.txt").write_text("AUTH_PORT = 8080\n")
                armed = self.chat(f"/cassette record {name}", cwd=folder)
                self.assertIn("armed", armed.out)
                other = self.chat("another session's words")
                self.order("do_environment", values={"HERMES_SESSION_ID": other.session})
                self.assertIn("idle", self.chat("/cassette status", f"--resume={other.session}").out)
                self.assertIn("armed", self.chat("/cassette status", f"--resume={armed.session}").out)
                self.check(self.chat("mine", f"--resume={armed.session}", cwd=self.home.path), 0)
                kept = self.cassette_of(name)
                self.assertEqual((kept["request"], kept["cwd"], len(kept["calls"])), ("mine", str(folder), 1))
                self.assertEqual(list(kept["snapshot"]["files"]), ["a.txt"])
                self.assertEqual(kept["warnings"], [])
                self.assertIn("saved", self.chat("/cassette status", f"--resume={armed.session}").out)

    def test_a_relative_folder_is_the_one_that_the_person_meant(self) -> None:
        (self.work / "inner").mkdir()
        (self.work / "inner" / "a.txt").write_text("AUTH_PORT = 8080\n")
        self.scripts.steps["relative"] = [calls(READ), ANSWER]
        words = ("cassette", "record", "relative", "--query", "relative", "--in", "inner")
        self.check(self.run_hermes(*words), 0, "1 snapshot file")
        self.assertEqual(self.cassette_of("relative")["cwd"], str(self.work / "inner"))

    def test_a_session_that_bypasses_approvals_is_no_replay_and_a_recording_says_so(self) -> None:
        name = self.cassette("yolo", calls(READ, self.write()), ANSWER)
        self.is_like(yolo=True)
        text = self.check(self.run_hermes("cassette", "run", name), 4, "result INVALID")
        self.assertIn("reason: approvals were bypassed in the session that ran it", text)
        self.nothing_ran()
        self.scripts.steps["bypassed"] = [calls(READ), ANSWER]
        words = ("cassette", "record", "bypassed", "--query", "bypassed")
        self.check(self.run_hermes(*words), 0, "warning: approvals were bypassed in this session")

    def test_a_gateway_that_leaves_the_plugins_hooks_out_is_refused_for_as_long_as_it_does(self) -> None:
        slow = Home(self.model.base_url, config="  hook_callback_timeout: 1\n")  # of the plugins
        self.addCleanup(slow.close)
        self.addCleanup(stop_gateway, slow)
        came = Pause(ANSWER)
        name = self.cassette("left out", came, home=slow)
        self.assertEqual(self.chat("hello", home=slow).code, 0)
        ask_gateway(slow, "do_hold", words="left out")
        run = self.start("cassette", "run", name, home=slow)
        self.assertTrue(ask_gateway(slow, "do_held")["came"])
        with self.store.lock():  # the hook waits for it, and Hermes does not
            ask_gateway(slow, "do_release")
            came.wait()
            time.sleep(1.0)  # by its own clock, too, the hook must have taken too long
        came.go.set()
        self.check(run, 4, "result INVALID", "no session claimed the run")
        asked = len(self.model.requests)
        told = "Hermes does not call this plugin's hooks for another"
        self.check(self.run_hermes("cassette", "run", name, home=slow), 2, told)
        self.assertEqual(len(self.model.requests), asked)

    # how a client ends

    def test_a_session_that_never_began_is_an_error_that_says_what_to_do(self) -> None:
        name = self.cassette("never began", calls(self.write()), ANSWER)
        for settings, words, told in (
            ({"generation": "A"}, ("--skill=x",), ("Unsupported gateway CLI options: --skills", "leave --skill out")),
            ({"lacks": ["skills"]}, ("--skill=x",), ("does not support creation options: skills", "leave --skill out")),
            ({}, ("--skill=no-such-skill",), ("unknown_skill",)),
            ({"provider": False}, (), ("No inference provider is set up yet",)),
        ):
            with self.subTest(settings=settings, words=words):
                self.is_like(**settings)
                text = self.check(self.run_hermes("cassette", "run", name, *words), 2, *told)
                self.assertEqual((text.count("\n"), self.store.count_runs(name)), (1, 0))
                self.no_litter()
        self.is_like(generation="A")
        words = ("cassette", "record", "new", "--query", "never began?", "--skill=x")
        self.check(self.run_hermes(*words), 2, "Unsupported gateway CLI options: --skills", "leave --skill out")
        self.never_asked("never began")
        self.nothing_ran()

    def test_an_exit_status_is_told_in_words(self) -> None:
        run = ("cassette", "run", self.cassette("it fails", Step(status=400, text="no")))
        self.check(self.run_hermes(*run), 4, "exited with status 1 (the turn failed or did not finish)")
        waits = Pause(calls(READ))
        process = self.start("cassette", "run", self.cassette("it is stopped", waits, ANSWER))
        waits.wait()
        self.order("do_interrupt")
        waits.go.set()
        self.check(process, 4, "exited with status 130 (it was interrupted)")
        self.scripts.steps["it asks"] = [calls(("clarify", {"questions": [{"question": "which?"}]})), ANSWER]
        words = ("cassette", "record", "asks", "--query", "it asks")
        self.check(self.run_hermes(*words), 2, "nothing was saved", "status 3 (it waits for a person")
        self.order("do_answer")

    # the self-test

    def test_doctor_says_which_way_this_hermes_goes_and_changes_nothing(self) -> None:
        self.cassette("kept")
        self.check(self.run_hermes("cassette", "doctor"), 0)  # what others have left here is cleared once
        before, asked = self.files(), len(self.model.requests)
        for settings, told in (
            ({}, ("no ctx.session_cwd", "told their session, not its folder", "skills     taken")),
            ({"generation": "A", "session_cwd": True}, ("skills     refused", "ctx.session_cwd")),
        ):
            self.is_like(**settings)
            text = self.check(self.run_hermes("cassette", "doctor"), 0, *told, "hosted in a gateway", "nothing to do")
            self.assertNotIn("turns ", text)
        self.assertEqual((self.files(), len(self.model.requests)), (before, asked))
        self.check(self.run_hermes("cassette", "doctor", "--live"), 0, "turns      are claimed", "nothing to do")
        self.assertGreater(len(self.model.requests), asked)
        self.assertEqual(self.files(), before)

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in Path(self.home.data).rglob("*") if path.is_file()}
