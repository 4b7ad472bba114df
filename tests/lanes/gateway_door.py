"""The stand-in itself: that it is what the public source of 0.23 says of a gateway and of the client that attaches."""

from __future__ import annotations

import os
import signal

from .gateway_case import ANSWER, READ, GatewayCase, Step, ask_gateway, calls, gateway_state, stop_gateway
from .host import Home
from .trust_case import Pause, finish, interrupt


class GatewayDoor(GatewayCase):
    def test_a_client_only_attaches_and_the_turn_is_the_gateways(self) -> None:
        stop_gateway(self.home)
        self.scripts.steps["plain words"] = [calls(READ), ANSWER]
        done = self.chat("plain words", "--in", str(self.work), cwd=self.home.path, HERMES_YOLO_MODE="1", MINE="first")
        self.assertEqual((done.code, done.out), (0, "the port is 8080\n"))
        self.assertRegex(done.err, r"\ASession: (local-[0-9a-f]{32})\n\nsession_id: \1\n\Z")
        self.assertIn("AUTH_PORT = 8080", self.returned("plain words")[0])
        self.chat("again", MINE="second")
        process = self.order("do_look")
        self.assertEqual(process["environment"]["MINE"], "first")
        self.assertEqual(process["environment"]["HERMES_GATEWAY_DETACHED"], "1")
        self.assertNotIn("HERMES_YOLO_MODE", process["environment"])
        self.assertNotIn(process["cwd"], (str(self.work), str(self.home.path)))
        self.assertEqual(process["modules"], ["gateway.session_context"], "it has no module of an older gateway")
        for command, id, folder in ((True, "", process["cwd"]), (False, done.session, str(self.work))):
            told = self.order("do_told", session=done.session, command=command)
            variables = [id, done.session, f"agent:main:local:dm:{done.session}", "local"]
            self.assertEqual((told["variables"], told["cwd"]), (variables, folder))

    def test_a_command_is_dispatched_without_a_model_and_an_unknown_one_is_told(self) -> None:
        for words, told in (("/cassette list", "no cassettes yet"), ("/nothing at all", "Unknown command `/nothing`")):
            done = self.chat(words)
            self.assertEqual(done.code, 0)
            self.assertIn(told, done.out)
            self.never_asked(words)

    def test_flags_are_refused_or_taken_as_the_generation_says(self) -> None:
        for settings, words, code, told in (
            ({"generation": "A"}, ("--skills=x",), 2, "Unsupported gateway CLI options: --skills"),
            ({"generation": "A"}, ("--resume=x", "--model=m"), 2, "Unsupported gateway CLI options: --model"),
            ({}, ("--image=x",), 2, "Unsupported gateway CLI options: --image"),
            ({}, ("--skills=no-such-skill",), 1, "unknown_skill"),
            ({"lacks": ["skills"]}, ("--skills=x",), 1, "does not support creation options: skills"),
            ({}, ("--source=mine",), 1, "does not support source 'mine'"),
            ({}, ("--resume=local-0",), 1, "No session found"),
        ):
            with self.subTest(settings=settings, words=words):
                self.is_like(**settings)
                done = self.chat("never asked", *words)
                self.assertEqual(done.code, code, done.err)
                self.assertIn(told, done.err)
                self.assertNotIn("Session:", done.err)
        self.is_like(provider=False)
        self.assertEqual(self.chat("never asked").code, 0, "with nothing run")
        self.never_asked("never asked")

    def test_a_turn_that_fails_or_needs_a_person_or_is_stopped_has_its_own_status(self) -> None:
        self.scripts.steps["it fails"] = [Step(status=400, text="no")]
        self.assertEqual(self.chat("it fails").code, 1)
        self.scripts.steps["it asks"] = [calls(("clarify", {"questions": [{"question": "which?"}]})), ANSWER]
        self.assertEqual(self.chat("it asks").code, 3)
        self.order("do_answer")
        waits = Pause(ANSWER)
        self.scripts.steps["it is stopped"] = [waits]
        process = self.start("chat", "-Q", "--query=it is stopped")
        waits.wait()
        self.order("do_interrupt")
        waits.go.set()
        self.assertEqual(finish(process)[0], 130)

    def test_a_client_that_is_killed_leaves_its_turn_running(self) -> None:
        served = self.served()
        waits = Pause(calls(self.write()))
        self.scripts.steps["it goes on"] = [waits, Step(text="written")]
        process = self.start("chat", "-Q", "--query=it goes on")
        waits.wait()
        interrupt(process, signal.SIGKILL)
        finish(process)
        waits.go.set()
        served(1)
        self.assertTrue(self.made.exists())

    def test_a_session_outlives_a_restart_of_the_gateway(self) -> None:
        done = self.chat("remember this")
        before = gateway_state(self.home)["pid"]
        self.assertEqual(self.run_hermes("gateway", "restart").code, 0)
        again = self.chat("and now", f"--resume={done.session}")
        self.assertEqual((again.code, again.session), (0, done.session), again.err)
        said = [str(one.get("content")) for one in self.model.requests[-1]["messages"]]
        self.assertTrue(any("remember this" in text for text in said), said)
        self.assertNotEqual(gateway_state(self.home)["pid"], before)
        ensured = self.run_hermes("gateway", "ensure", "--json")
        self.assertIn('"state": "ready"', ensured.out)

    def test_one_profile_has_one_gateway_and_another_has_its_own(self) -> None:
        other = Home(self.model.base_url)
        self.addCleanup(other.close)
        self.addCleanup(stop_gateway, other)
        clients = [self.start("chat", "-Q", "--query=at once", home=home) for home in (self.home, other, other)]
        self.assertEqual([finish(one)[0] for one in clients], [0, 0, 0])
        self.assertEqual(len(ask_gateway(other, "do_look")["sessions"]), 2)
        self.assertNotEqual(gateway_state(other)["pid"], gateway_state(self.home)["pid"])
        os.kill(gateway_state(self.home)["pid"], 0)
