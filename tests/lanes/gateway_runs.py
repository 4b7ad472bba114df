"""Every promise about a gateway, kept behind the stand-in for 0.23: pings, replays, neighbours, races, reloads and deaths."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

from .gateway_case import ANSWER, READ, GatewayCase, Step, calls, gateway_state, stop_gateway
from .host import Home
from .trust_case import MISS, Pause, interrupt
from .venvs import scratch


class GatewayRuns(GatewayCase):
    """`hermes cassette` in a process of its own, and its sessions in the gateway's."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.chat(cls("warm_up"), "are you there?")

    def warm_up(self) -> None:
        """Named by `setUpClass`."""

    def run_cassette(self, name: str, *words: str, **options: Any) -> subprocess.Popen[str]:
        return self.start("cassette", "run", name, *words, **options)

    def restart(self) -> None:
        stop_gateway(self.home)

    def test_a_gateway_that_is_not_ours_is_refused_before_anything_runs(self) -> None:
        name = self.cassette("refused", calls(self.write()), ANSWER)
        self.assertEqual(self.run_hermes("gateway", "ensure").code, 0)
        file = self.home.path / "plugins" / "session-cassettes" / "cli.py"
        kept = file.read_bytes()
        file.write_bytes(kept + b"# another version\n")
        self.check(self.run_cassette(name), 2, "other plugin code", "hermes gateway restart")
        file.write_bytes(kept)
        self.order("do_environment", values={"HERMES_YOLO_MODE": "1"})
        self.check(self.run_cassette(name), 2, "HERMES_YOLO_MODE is set in the gateway")
        self.order("do_environment", values={"HERMES_YOLO_MODE": None})
        bare = Home(self.model.base_url)
        self.addCleanup(bare.close)
        self.addCleanup(stop_gateway, bare)
        scratch.write_config(bare.path, self.model.base_url, "careful", enabled=False)
        self.assertEqual(self.run_hermes("gateway", "ensure", home=bare).code, 0)
        scratch.write_config(bare.path, self.model.base_url, "careful")
        self.cassette("refused", home=bare)
        told = ("did not answer the ping", "Unknown command `/cassette`", "hermes gateway restart")
        self.check(self.run_cassette(name, home=bare), 2, *told)
        self.never_asked("refused")
        self.nothing_ran()
        self.no_litter()

    def test_what_is_recorded_through_a_gateway_replays_and_its_session_stays_closed(self) -> None:
        self.scripts.steps["a whole round"] = [calls(READ), ANSWER]
        command = ("cassette", "record", "round", "--query", "a whole round?")
        self.check(self.run_hermes(*command), 0, "kept 1 call, 1 snapshot file")
        self.check(self.run_hermes("cassette", "pin", "round", "8080"), 0)
        self.check(self.run_cassette("round"), 0, "result PASS", "1 hit")
        session = self.order("do_look")["sessions"][-1]
        self.scripts.steps["and now write"] = [calls(self.write()), Step(text="tried")]
        self.chat("and now write", f"--resume={session}")
        self.assertEqual(self.returned("and now write"), [MISS])
        self.nothing_ran()
        self.live_turn("after a replay")

    def test_neighbours_run_live_while_two_replays_overlap(self) -> None:
        asked = (("terminal", {"command": f"touch {self.made}"}), ("delegate_task", {"goal": "write"}))
        first, second = Pause(calls(READ, self.write(), *asked)), Pause(calls(READ))
        one = self.run_cassette(self.cassette("overlap one", first, ANSWER))
        first.wait()
        two = self.run_cassette(self.cassette("overlap two", second, ANSWER))
        second.wait()
        self.live_turn("during two replays")
        second.go.set()
        self.check(two, 0, "result PASS")
        first.go.set()
        self.check(one, 3, "result DIVERGED", "1 hit", "miss: write_file", "miss: terminal")
        self.nothing_ran()
        self.no_litter()

    def test_a_suite_asks_the_gateway_once_and_its_sessions_overlap_there(self) -> None:
        first, second = Pause(calls(READ, self.write())), Pause(calls(READ))
        self.cassette("suite one", first, ANSWER)
        self.cassette("suite two", second, ANSWER)
        before, served = self.order("do_look")["done"], self.served()
        suite = self.run_cassette("suite-*", "--repeat=2", "--jobs=2")
        first.wait()
        second.wait()
        self.live_turn("during a suite")
        first.go.set()
        second.go.set()
        self.check(suite, 3, "never passed: suite-one with default model (0 of 2)", "DIVERGED: 1 of 2 cells")
        served(6)
        self.assertEqual(self.order("do_look")["done"] - before, 6, "one ping, four turns, and the neighbour's")
        same = self.run_cassette("suite-two", "--repeat=3", "--jobs=3", "--retry-invalid=0")  # the same words at once
        self.check(same, 0, "PASS: the cell reached", "3 of 3")
        self.nothing_ran()
        self.no_litter()

    def test_one_run_waits_at_a_time_and_identical_words_are_a_race_that_no_run_wins_wrongly(self) -> None:
        name = self.cassette("same words", calls(self.write()), ANSWER)
        with self.held("same words") as came:
            waits = self.run_cassette(name)
            came()
            told = ("another run is waiting", "s ago, for 'same-words'")
            self.check(self.run_cassette(self.cassette("too early", ANSWER)), 2, *told)
            claimed = self.chat("same words?").session
            self.nothing_ran()  # the other session took the claim
        text = self.check(waits, 4, "result INVALID", f"but session {claimed} was replayed")
        self.assertNotIn("PASS", text)
        self.assertTrue(self.made.exists(), "the unclaimed run is documented to be live")
        self.no_litter()

    def test_a_plugin_that_is_loaded_again_mid_replay_lets_no_tool_run(self) -> None:
        paused = Pause(calls(READ, self.write(), ("terminal", {"command": f"touch {self.made}"})))
        run = self.run_cassette(self.cassette("loaded again", paused, ANSWER))
        paused.wait()
        self.order("do_reload")
        paused.go.set()
        self.check(run, 4, "result INVALID", "left no record of its tool calls")
        self.nothing_ran()
        self.live_turn("after a reload")
        self.check(self.run_cassette(self.cassette("after the reload", calls(READ), ANSWER)), 0, "result PASS")
        self.no_litter()

    def test_a_cassette_that_changes_before_the_claim_binds_the_turn_to_nothing(self) -> None:
        name = self.cassette("changed meanwhile", calls(READ, self.write()), ANSWER)
        with self.held("changed meanwhile") as came:
            run = self.run_cassette(name)
            came()
            self.check(self.run_hermes("cassette", "pin", name, "port"), 0)
        self.check(run, 4, "result INVALID", "changed between")
        self.nothing_ran()

    def test_a_command_that_dies_before_its_session_starts_leaves_it_without_tools(self) -> None:
        name = self.cassette("left alone", calls(READ, self.write()), ANSWER)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
            with self.subTest(number.name):
                with self.held("left alone") as came:
                    process = self.run_cassette(name)
                    came()
                    served = self.served()
                    interrupt(process, number)
                    text = self.check(process, code)
                    self.assertNotIn("result", text)
                served(1)
                self.nothing_ran()
        self.scripts.steps["left alone"] = [calls(READ), ANSWER]
        self.check(self.run_cassette(name), 0, "result PASS")

    def test_a_client_that_is_stopped_at_its_time_out_leaves_a_replay_that_stays_one(self) -> None:
        paused = Pause(calls(READ, self.write()))
        run = self.run_cassette(self.cassette("takes long", paused, ANSWER), "--timeout=3")
        paused.wait()
        served = self.served()
        self.check(run, 4, "result INVALID", "did not end in time")
        paused.go.set()  # the turn goes on in the gateway
        served(1)
        self.assertEqual(self.returned("takes long"), ["recorded: 8080", MISS])
        self.nothing_ran()
        self.no_litter()

    def test_hermess_own_review_of_a_replay_runs_no_tool_and_is_no_part_of_it(self) -> None:
        memory = ("memory", {"action": "add", "target": "memory", "content": "seen"})
        search = ("search_files", {"pattern": "8080"})
        tried, done = Pause(calls(self.write(), READ, search, memory)), Pause(Step(text="Nothing to save."))
        self.scripts.steps["review of under review"] = [tried, done]
        tried.go.set()
        done.go.set()
        text = self.check(self.run_cassette(self.cassette("under review", calls(READ), ANSWER)), 0, "result PASS")
        done.wait()
        self.assertIn("path 1 call: 1 hit, 0 synthesized, 0 miss", text)
        self.nothing_ran()
        self.assertNotIn("seen", "".join(path.read_text() for path in (self.home.path / "memories").glob("*")))

    def test_another_plugin_that_dispatches_a_tool_itself_is_out_of_reach(self) -> None:
        paused = Pause(calls(READ))
        run = self.run_cassette(self.cassette("another plugin", paused, ANSWER))
        paused.wait()
        self.order("do_dispatch", tool="write_file", args={"path": str(self.made), "content": "by another plugin"})
        paused.go.set()
        self.check(run, 0, "result PASS")
        self.assertTrue(self.made.exists(), "documented: such a call passes no middleware")

    def test_a_gateway_that_is_killed_mid_replay_makes_the_run_invalid_and_the_next_starts_another(self) -> None:
        paused = Pause(calls(READ, self.write()))
        name = self.cassette("killed", paused, ANSWER)
        run = self.run_cassette(name)
        paused.wait()
        os.kill(gateway_state(self.home)["pid"], signal.SIGKILL)
        paused.go.set()
        text = self.check(run, 4, "result INVALID", "exited with status 1", "Gateway connection/read failed")
        self.assertNotIn("PASS", text)
        self.nothing_ran()
        self.scripts.steps["killed"] = [calls(READ), ANSWER]
        self.check(self.run_cassette(name), 0, "result PASS")
        self.no_litter()
