"""A gateway that hosts many sessions, for real: pings, replays, neighbours, races, reloads and deaths."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

from .case import LaneCase
from .host import Home
from .trust_case import MISS, Pause, Scripts, Step, calls, finish, interrupt, keep_cassette, model, returned_to_model
from .trust_gateway import Gateway, install_probe, start_cli, write_client
from .venvs import lane_python, scratch

READ = ("read_file", {"path": "a.txt"})
ANSWER = Step(text="the port is 8080")


class GatewayHost(LaneCase):
    """One real gateway process for all tests of a lane; `session_cwd` is what 0.23 adds to the command's context."""

    #: After each turn Hermes reviews it, with tools, under the id of its session.
    config = "memory:\n  nudge_interval: 1\nskills:\n  creation_nudge_interval: 1\n"
    gateway: Gateway
    work: Path

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.scripts = Scripts()
        scratch = tempfile.TemporaryDirectory(prefix="cassettes-trust-")
        cls.addClassCleanup(scratch.cleanup)
        cls.work = Path(scratch.name).resolve()
        (cls.work / "a.txt").write_text("AUTH_PORT = 8080\n")
        cls.bin = write_client(cls.work / "bin")
        install_probe(cls.home)
        cls.gateway = Gateway(cls.version, cls.home, cls.work)
        cls.addClassCleanup(lambda: cls.gateway.close())
        cls.model.brain = cls.scripts
        cls.gateway.warm_up(cls.work)

    def setUp(self) -> None:
        self.model.brain = self.scripts
        self.gateway.gate = None
        self.made = self.work / f"{self._testMethodName}.txt"

    # helpers

    def command(self, *words: str, home: Home | None = None, gateway: Gateway | None = None, **environment: str) -> Any:
        return start_cli(
            lane_python(self.version),
            home or self.home,
            *words,
            cwd=self.work,
            bin_folder=self.bin,
            TRUST_HOST="gateway",
            TRUST_GATEWAY=(gateway or self.gateway).address,
            **environment,
        )

    def run_cassette(self, name: str, **options: Any) -> subprocess.Popen[str]:
        return self.command("run", name, **options)

    def cassette(self, words: str, *steps: Any, home: Home | None = None) -> str:
        """Keep a cassette whose request holds these words, and what the model does when it is asked them."""
        name = words.replace(" ", "-")
        self.scripts.steps[words] = steps
        self.store = keep_cassette(home or self.home, name, f"{words}?", self.work, self.version)
        return name

    def write(self) -> tuple[str, dict[str, Any]]:
        return "write_file", {"path": str(self.made), "content": "a tool ran"}

    def live_turn(self, words: str) -> None:
        """Let another session of the gateway write a file, and see it there."""
        path = self.work / f"{words}.live"
        self.scripts.steps[words] = [calls(("write_file", {"path": str(path), "content": "live"})), Step(text="done")]
        session, _ = self.gateway.create(self.work)
        self.assertEqual(self.gateway.prompt(session, words), "done")
        self.assertTrue(path.exists(), "another session's tool did not run")

    def hold(self) -> tuple[threading.Event, threading.Event]:
        """Hold the next client before its prompt; return what tells that it came, and what lets it go."""
        came, go = threading.Event(), threading.Event()

        def gate(_: str) -> None:
            self.gateway.gate = None
            came.set()
            go.wait(120)

        self.gateway.gate = gate
        self.addCleanup(go.set)
        return came, go

    def check(self, process: Any, code: int, *told: str) -> str:
        status, text = finish(process)
        self.assertEqual(status, code, f"{text}\n{self.gateway.log()[-1500:]}")
        for words in told:
            self.assertIn(words, text)
        return text

    def nothing_ran(self) -> None:
        self.assertFalse(self.made.exists(), "a tool ran")

    def no_litter(self) -> None:
        left = [
            str(path.relative_to(self.store.root))
            for part in ("claims", "ledgers", "pings")
            for path in (self.store.root / part).iterdir()
        ]
        self.assertEqual((left, self.store.arm_path.exists()), ([], False))

    # the tests

    def test_a_gateway_that_is_not_ours_is_refused_before_anything_runs(self) -> None:
        name = self.cassette("refused", calls(self.write()), ANSWER)
        file = self.home.path / "plugins" / "session-cassettes" / "cli.py"
        kept = file.read_bytes()
        file.write_bytes(kept + b"# another version\n")
        self.check(self.run_cassette(name), 2, "other plugin code", "hermes gateway restart")
        file.write_bytes(kept)
        self.gateway.slash(self.gateway.create(self.work)[0], "/trustprobe yolo 1")
        self.check(self.run_cassette(name), 2, "HERMES_YOLO_MODE is set in the gateway")
        self.gateway.slash(self.gateway.sessions[-1][0], "/trustprobe yolo")
        bare = Home(self.model.base_url)
        self.addCleanup(bare.close)
        scratch.write_config(bare.path, self.model.base_url, "careful", enabled=False)
        self.cassette("refused", home=bare)
        with Gateway(self.version, bare, self.work) as gateway:
            self.check(self.run_cassette(name, home=bare, gateway=gateway), 2, "did not answer the ping")
        self.assertEqual(returned_to_model(self.model.requests, "refused"), [])
        self.assertNotIn("refused?", [model.ask(body["messages"]).text for body in self.model.requests])
        self.nothing_ran()
        self.no_litter()

    def test_what_is_recorded_through_a_gateway_replays_and_its_session_stays_closed(self) -> None:
        self.scripts.steps["a whole round"] = [calls(READ), ANSWER]
        self.check(self.command("record", "round", "--query", "a whole round?"), 0, "kept 1 call, 1 snapshot file")
        self.check(self.command("pin", "round", "8080"), 0)
        self.check(self.run_cassette("round"), 0, "result PASS", "1 hit")
        session = self.gateway.sessions[-1][0]
        self.scripts.steps["and now write"] = [calls(self.write()), Step(text="tried")]
        self.gateway.prompt(session, "and now write")
        self.assertEqual(returned_to_model(self.model.requests, "and now write"), [MISS])
        self.nothing_ran()
        self.live_turn("after a replay")

    def test_neighbours_run_live_while_two_replays_overlap(self) -> None:
        first = Pause(
            calls(
                READ,
                self.write(),
                ("terminal", {"command": f"touch {self.made}"}),
                ("delegate_task", {"goal": f"write {self.made}"}),
            )
        )
        second = Pause(calls(READ))
        one = self.run_cassette(self.cassette("overlap one", first, ANSWER))
        first.wait()
        two = self.run_cassette(self.cassette("overlap two", second, ANSWER))
        second.wait()
        self.live_turn("during two replays")
        second.go.set()
        self.check(two, 0, "result PASS")
        self.live_turn("during one replay")
        first.go.set()
        self.check(one, 3, "result DIVERGED", "1 hit", "miss: write_file", "miss: terminal")
        self.nothing_ran()
        self.no_litter()

    def test_one_run_waits_at_a_time_and_identical_words_are_a_race_that_no_run_wins_wrongly(self) -> None:
        came, go = self.hold()
        name = self.cassette("same words", calls(self.write()), ANSWER)
        waits = self.run_cassette(name)
        self.assertTrue(came.wait(120))
        self.check(
            self.run_cassette(self.cassette("too early", ANSWER)),
            2,
            "another run is waiting",
            "s ago, for 'same-words'",
        )
        session, claimed = self.gateway.create(self.work)
        self.gateway.prompt(session, "same words?")
        self.nothing_ran()  # the other session took the claim
        go.set()
        text = self.check(waits, 4, "result INVALID", f"but session {claimed} was replayed")
        self.assertNotIn("PASS", text)
        self.assertTrue(self.made.exists(), "the unclaimed run is documented to be live")
        self.no_litter()

    def test_a_plugin_that_is_loaded_again_mid_replay_lets_no_tool_run(self) -> None:
        paused = Pause(calls(READ, self.write(), ("terminal", {"command": f"touch {self.made}"})))
        run = self.run_cassette(self.cassette("loaded again", paused, ANSWER))
        paused.wait()
        other, _ = self.gateway.create(self.work)
        self.assertEqual(self.gateway.slash(other, "/trustprobe reload"), "reloaded")
        paused.go.set()
        self.check(run, 4, "result INVALID", "left no record of its tool calls")
        self.nothing_ran()
        self.live_turn("after a reload")
        self.check(self.run_cassette(self.cassette("after the reload", calls(READ), ANSWER)), 0, "result PASS")
        self.no_litter()

    def test_a_cassette_that_changes_before_the_claim_binds_the_turn_to_nothing(self) -> None:
        came, go = self.hold()
        run = self.run_cassette(self.cassette("changed meanwhile", calls(READ, self.write()), ANSWER))
        self.assertTrue(came.wait(120))
        self.check(self.command("pin", "changed-meanwhile", "port"), 0)
        go.set()
        self.check(run, 4, "result INVALID", "changed between")
        self.nothing_ran()

    def test_a_command_that_dies_before_its_session_starts_leaves_it_without_tools(self) -> None:
        name = self.cassette("left alone", calls(READ, self.write()), ANSWER)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
            with self.subTest(number.name):
                came, go = self.hold()
                process = self.run_cassette(name)
                self.assertTrue(came.wait(120))
                interrupt(process, number)
                status, text = finish(process)
                self.assertEqual(status, code, text)
                self.assertNotIn("result", text)
                go.set()
                while self.gateway.served.get(timeout=120) != "left alone?":
                    pass
                self.nothing_ran()
        self.scripts.steps["left alone"] = [calls(READ), ANSWER]
        self.check(self.run_cassette(name), 0, "result PASS")

    def test_hermess_own_review_of_a_replay_runs_no_tool(self) -> None:
        tried, done = (
            Pause(calls(self.write(), ("memory", {"action": "add", "target": "memory", "content": "seen"}))),
            Pause(Step(text="Nothing to save.")),
        )
        self.scripts.steps["review of under review"] = [tried, done]
        tried.go.set()
        done.go.set()
        self.check(self.run_cassette(self.cassette("under review", calls(READ), ANSWER)), 0, "result PASS")
        done.wait()
        self.nothing_ran()
        self.assertFalse("seen" in "".join(path.read_text() for path in (self.home.path / "memories").glob("*")))

    def test_another_plugin_that_dispatches_a_tool_itself_is_out_of_reach(self) -> None:
        paused = Pause(calls(READ))
        run = self.run_cassette(self.cassette("another plugin", paused, ANSWER))
        paused.wait()
        other, _ = self.gateway.create(self.work)
        self.gateway.slash(other, f"/trustprobe dispatch {self.made}")
        paused.go.set()
        self.check(run, 0, "result PASS")
        self.assertTrue(self.made.exists(), "documented: such a call passes no middleware")

    def test_zz_a_gateway_that_is_killed_mid_replay_makes_the_run_invalid(self) -> None:
        paused = Pause(calls(READ, self.write()))
        name = self.cassette("killed", paused, ANSWER)
        run = self.run_cassette(name)
        paused.wait()
        self.gateway.kill()
        paused.go.set()
        text = self.check(run, 4, "result INVALID", "exited with status 1", "the gateway is gone")
        self.assertNotIn("PASS", text)
        self.nothing_ran()
        self.gateway.close()
        type(self).gateway = Gateway(self.version, self.home, self.work)
        self.gateway.warm_up(self.work)
        self.scripts.steps["killed"] = [calls(READ), ANSWER]
        self.check(self.run_cassette(name), 0, "result PASS")
        self.no_litter()
