"""`hermes cassette fill` behind the stand-in for 0.23: neighbours, deaths, and what is left of the cassette."""

from __future__ import annotations

import os
import signal
from typing import Any

from .gateway_case import ANSWER, READ, GatewayCase, calls, gateway_state
from .trust_case import MISS, Pause, interrupt

LOG = ("terminal", {"command": "git log -1"})


class GatewayFills(GatewayCase):
    def recorded(self, words: str) -> str:
        """Record one read through the gateway, and pin its answer."""
        name = words.replace(" ", "-")
        self.cassette("unused", ANSWER)  # sets the store
        self.scripts.steps[words] = [calls(READ), ANSWER]
        self.check(self.run_hermes("cassette", "record", name, "--query", f"{words}?"), 0, "kept 1 call")
        self.check(self.run_hermes("cassette", "pin", name, "8080"), 0)
        self.before = self.store.path(name).read_bytes()
        return name

    def fill(self, name: str, *words: str) -> Any:
        return self.start("cassette", "fill", name, *words)

    def as_before(self, name: str) -> None:
        self.assertEqual(self.store.path(name).read_bytes(), self.before)
        self.assertFalse(self.store.exists(f"{name}.before-fill"))

    def test_what_was_missed_ends_as_a_hit_while_neighbours_run_live(self) -> None:
        name = self.recorded("filled there")
        self.scripts.steps["filled there"] = [calls(READ, LOG), ANSWER]
        told = self.check(self.start("cassette", "run", name), 3, "1 hit", f"fill: hermes cassette fill {name}")
        self.assertIn("miss: terminal", told)
        paused = Pause(calls(READ, LOG, self.write()))
        self.scripts.steps["filled there"] = [paused, ANSWER]
        fill = self.fill(name)
        paused.wait()
        self.live_turn("during a fill")
        paused.go.set()
        self.check(fill, 0, "1 call, 0 snapshot files added", "write_file: not a read-only tool", "no verdict")
        self.assertTrue(self.made.exists(), "what is not on the tape runs live")
        self.assertEqual([call.tool for call in self.store.read(name)[0].calls], ["read_file", "terminal"])
        self.assertEqual(self.store.path(f"{name}.before-fill").read_bytes().count(b'"tool"'), 1)
        self.made.unlink()
        self.scripts.steps["filled there"] = [calls(READ, LOG), ANSWER]
        self.check(self.start("cassette", "run", name), 0, "2 calls: 2 hit, 0 synthesized, 0 miss")

    def test_a_command_that_is_killed_while_its_turn_goes_on_leaves_the_tape_as_it_was(self) -> None:
        name = self.recorded("killed command")
        for number, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 143)):
            with self.subTest(number.name):
                paused = Pause(calls(LOG))
                self.scripts.steps["killed command"] = [paused, ANSWER]
                fill = self.fill(name)
                paused.wait()
                served = self.served()
                interrupt(fill, number)
                self.check(fill, code)
                paused.go.set()
                served(1)
                self.as_before(name)
        self.scripts.steps["killed command"] = [calls(READ), ANSWER]
        self.check(self.start("cassette", "run", name), 0, "result PASS")

    def test_a_command_that_dies_before_its_session_starts_leaves_it_without_tools(self) -> None:
        name = self.recorded("left alone")
        self.scripts.steps["left alone"] = [calls(READ, self.write()), ANSWER]
        with self.held("left alone") as came:
            fill = self.fill(name)
            came()
            served = self.served()
            interrupt(fill, signal.SIGKILL)
            self.check(fill, -9)
        served(1)
        self.assertEqual(self.returned("left alone")[-1], MISS)
        self.nothing_ran()
        self.as_before(name)

    def test_a_gateway_that_is_killed_leaves_the_tape_as_it_was(self) -> None:
        name = self.recorded("killed gateway")
        paused = Pause(calls(LOG))
        self.scripts.steps["killed gateway"] = [paused, ANSWER]
        fill = self.fill(name)
        paused.wait()
        os.kill(gateway_state(self.home)["pid"], signal.SIGKILL)
        paused.go.set()
        self.check(fill, 2, f"nothing was added to '{name}'")
        self.as_before(name)
        self.scripts.steps["killed gateway"] = [calls(READ), ANSWER]
        self.check(self.start("cassette", "run", name), 0, "result PASS")

    def test_a_tape_that_changes_before_the_claim_lets_no_tool_run(self) -> None:
        name = self.recorded("changed tape")
        self.scripts.steps["changed tape"] = [calls(READ, self.write()), ANSWER]
        with self.held("changed tape") as came:
            fill = self.fill(name)
            came()
            self.check(self.run_hermes("cassette", "pin", name, "port"), 0)
        self.before = self.store.path(name).read_bytes()
        self.check(fill, 2, "the cassette changed between")
        self.nothing_ran()
        self.as_before(name)
