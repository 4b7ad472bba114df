"""The product in a real Hermes, one lane per version: record, pin, replay, verdicts."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import unittest
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.lanes.case import LaneCase, lane_suite, model
from tests.lanes.host import TurnResult
from tests.lanes.venvs import lane_folder
from tests.support import REPO, load_plugin

load_plugin()
from session_cassettes import hooks  # noqa: E402
from session_cassettes.cassette_store import (  # noqa: E402
    Arm,
    Cassette,
    Ledger,
    Store,
    parse_ledger,
    to_json,
    write_atomically,
)
from session_cassettes.middleware import MISS  # noqa: E402
from session_cassettes.snapshot import SkipReason  # noqa: E402

QUESTION = "Where is the auth handler and what port does it bind?"
ToolCall, Step = model.ToolCall, model.Step


class TurnsCase(LaneCase):
    """Records and replays turns in the long-lived process of its lane."""

    @property
    def store(self) -> Store:
        return Store(self.home.data)

    def record(
        self, name: str, query: str, cwd: Path, temperament: str = "", **kind: bool
    ) -> tuple[TurnResult, Cassette]:
        """Record a turn of a fresh session, armed as a slash command in another process arms it."""
        session = self.host.open(cwd, model=temperament)
        self.store.prepare()
        hooks.arm_session(self.store, session, name, **kind)
        turn = self.host.turn(query, cwd, session)
        return turn, self.store.read(name)[0]

    @contextmanager
    def armed(self, name: str, request: str, folder: Path) -> Iterator[Arm]:
        """Let a run wait for its session, as the command does before it starts one."""
        self.store.prepare()
        facts = hooks.plugin_facts()
        arm = Arm(
            f"arm-{time.monotonic_ns()}",
            "run",
            name,
            request,
            "gateway",
            time.time(),
            60.0,
            facts.plugin,
            facts.fingerprint,
            str(folder),
            self.store.read(name)[1],
        )
        slot = self.store.waiting()
        self.assertTrue(slot.try_acquire())
        try:
            write_atomically(self.store.arm_path, to_json(arm))
            yield arm
        finally:
            slot.release()
            self.store.arm_path.unlink(missing_ok=True)

    def replay(self, name: str, cwd: Path, temperament: str = "") -> tuple[TurnResult, Ledger]:
        """Replay a cassette in a fresh session and return what the model got, and the ledger."""
        request = self.store.read(name)[0].request
        with self.armed(name, request, cwd) as arm:
            turn = self.host.turn(request, cwd, model=temperament)
        ledger = self.store.read_value(self.store.ledger_path(arm.id), parse_ledger)
        self.assertIsNotNone(ledger, "the turn was not claimed, or left no ledger")
        self.assertEqual((ledger.live, ledger.errors, ledger.finished), (0, (), True))
        return turn, ledger


def hows(ledger: Ledger) -> list[str]:
    return [call.how for call in ledger.calls]


class RecordingInHermes(TurnsCase):
    def test_what_the_middleware_gave_hermes_is_what_the_tools_returned(self) -> None:
        shop = self.workspace()
        turn, kept = self.record("recorded", QUESTION, shop, "careful")
        self.assertEqual(kept.request, QUESTION)
        self.assertEqual(kept.answer, turn.response)
        self.assertEqual([call.result for call in kept.calls], turn.results)
        self.assertEqual([call.tool for call in kept.calls], [one.tool for one in turn.returned])
        self.assertEqual(len(turn.ran), len(turn.returned))
        self.assertEqual(kept.cwd, str(shop))
        self.assertEqual(kept.recorder.hermes, self.version)
        self.assertIn("server/auth.py", kept.snapshot.files)
        self.assertEqual(kept.warnings, ())

    def test_a_parallel_batch_is_kept_call_by_call_in_order(self) -> None:
        folder = self.workspace({f"{n}.txt": f"text {n}\n" for n in range(6)})
        batch = [ToolCall("read_file", {"path": f"{n}.txt"}) for n in range(6)]
        self.script(Step(batch), Step(text="six files"))
        _, kept = self.record("batch", "read them", folder)
        self.assertEqual(len(kept.calls), 6)
        for call in kept.calls:
            self.assertIn(f"text {call.args['path'][0]}", call.result)

    def test_one_call_twice_with_different_results_is_replayed_in_that_order(self) -> None:
        folder = self.workspace({"a.txt": "first\n"})
        self.script(
            Step([ToolCall("terminal", {"command": "cat a.txt"})]),
            Step([ToolCall("read_file", {"path": "a.txt"})]),  # 0.22 overwrites only what was read
            Step([ToolCall("write_file", {"path": "a.txt", "content": "second\n"})]),
            Step([ToolCall("terminal", {"command": "cat a.txt"})]),
            Step(text="read twice"),
        )
        _, kept = self.record("twice", "read twice", folder)
        self.assertEqual(["first" in call.result for call in kept.calls], [True, True, False])
        self.assertEqual(kept.not_kept, ("write_file",))
        self.assertIn("may not replay cleanly", kept.warnings[0])
        turn, ledger = self.replay("twice", folder)
        self.assertEqual(
            [one.result for one in turn.returned if one.tool != "write_file"], [call.result for call in kept.calls]
        )
        self.assertEqual((hows(ledger), turn.ran), (["hit", "hit", "miss", "hit"], []))

    def test_errors_are_results_and_a_foreign_command_ends_the_terminals_evidence(self) -> None:
        folder = self.workspace({"a.txt": "x\n"})
        self.script(
            Step([ToolCall("read_file", {"path": "missing.txt"})]),
            Step([ToolCall("terminal", {"command": "ls"})]),
            Step([ToolCall("terminal", {"command": "echo hello"})]),
            Step([ToolCall("terminal", {"command": "ls"})]),
            Step(text="looked"),
        )
        turn, kept = self.record("errors", "look", folder)
        self.assertEqual([call.tool for call in kept.calls], ["read_file", "terminal"])
        self.assertEqual([call.result for call in kept.calls], turn.results[:2])
        self.assertEqual(kept.not_kept, ("terminal", "terminal"))

    def test_the_notice_of_a_repeated_read_is_no_evidence_and_the_snapshot_answers(self) -> None:
        folder = self.workspace({"a.txt": "x\n"})
        read = Step([ToolCall("read_file", {"path": "a.txt"})])
        self.script(read, read, Step(text="read"))
        turn, kept = self.record("repeat", "read it", folder)
        self.assertEqual(len(turn.returned), 2)
        self.assertEqual([call.result for call in kept.calls], turn.results[:1])
        self.assertIn("notice of a repeated call", " ".join(kept.warnings))
        again, ledger = self.replay("repeat", folder)
        self.assertEqual(set(hows(ledger)), {"hit"})
        self.assertEqual(again.returned[0].result, turn.results[0])

    def test_a_turn_that_fails_saves_nothing_and_keeps_what_was_there(self) -> None:
        folder = self.workspace({"a.txt": "x\n"})
        self.script(Step(text="fine"))
        self.record("kept", "answer me", folder)
        before = self.store.path("kept").read_bytes()
        self.script(Step(status=400, text="bad request"))
        session = self.host.open(folder)
        hooks.arm_session(self.store, session, "kept", overwrite=True)
        self.host.turn("answer me", folder, session)
        self.script(Step(text="fine again"))
        self.host.turn("next", folder, session)
        self.assertEqual(self.store.path("kept").read_bytes(), before)

    def test_secret_names_and_hidden_files_never_reach_the_cassette(self) -> None:
        secret = "PLANTED-" + "SECRET"
        folder = self.workspace(
            {name: f"marker {secret}\n" for name in (".hidden", "server.KEY", "id_rsa.txt", ".env")}
        )
        (folder / "plain.txt").write_text("marker\n")
        self.script(
            Step(
                [
                    ToolCall("search_files", {"pattern": "marker"}),
                    ToolCall("search_files", {"pattern": "*", "target": "files"}),
                ]
            ),
            Step(text="found"),
        )
        _, kept = self.record("secrets", "find it", folder)
        self.assertEqual(list(kept.snapshot.files), ["plain.txt"])
        stored = json.loads(self.store.path("secrets").read_bytes())["snapshot"]
        self.assertNotIn(secret, json.dumps(stored["files"]))

    def test_a_config_yaml_is_redacted_strictly_or_not_kept(self) -> None:
        secret = "correct" + "-horse-" + "battery"
        folder = self.workspace({"config.yaml": f"port: 8080\napi_key: {secret}\n", "a.txt": "x\n"})
        self.script(
            Step([ToolCall("read_file", {"path": "config.yaml"}), ToolCall("read_file", {"path": "a.txt"})]),
            Step(text="the port is 8080"),
        )
        _, kept = self.record("config", "which port?", folder)
        self.assertEqual({call.args["path"] for call in kept.calls}, {"config.yaml", "a.txt"})
        if self.version.startswith("0.19."):
            self.assertEqual(list(kept.snapshot.files), ["a.txt"])
            self.assertEqual(kept.snapshot.skipped_paths, {"config.yaml": SkipReason.NO_STRICTER})
            self.assertEqual(kept.snapshot.skipped, {"no stricter redaction": 1})
        else:
            self.assertEqual(kept.snapshot.skipped, {})
            text = kept.snapshot.files["config.yaml"].text
            self.assertIn("port: 8080", text)
            self.assertNotIn(secret, text)


class SlashCommandsInHermes(TurnsCase):
    def test_the_only_session_of_a_process_is_recorded_and_told(self) -> None:
        folder = self.workspace({"a.txt": "x\n"})
        session = self.host.open(folder)
        self.assertIn("armed", self.host.slash("/cassette record typed", session))
        self.assertIn("armed", self.host.slash("/cassette status", session))
        self.script(Step([ToolCall("read_file", {"path": "a.txt"})]), Step(text="it says x"))
        self.host.turn("what does it say?", folder, session)
        self.assertIn("'typed' saved: 1 call, 1 snapshot file", self.host.slash("/cassette status", session))
        self.assertIn('pinned "says x"', self.host.slash("/cassette pin typed says x", session))
        self.assertRegex(self.host.slash("/cassette list", session), r"typed +1 +1 +1")
        self.assertIn("nothing to stop", self.host.slash("/cassette stop", session))


class ReplayingInHermes(TurnsCase):
    def test_the_same_model_takes_the_recordings_own_path(self) -> None:
        shop = self.workspace()
        first, kept = self.record("same", QUESTION, shop, "careful")
        turn, ledger = self.replay("same", shop, "careful")
        self.assertEqual(turn.results, first.results)
        self.assertEqual((turn.ran, turn.response), ([], first.response))
        self.assertEqual(hows(ledger), ["hit"] * len(kept.calls))
        self.assertEqual(ledger.answer, turn.response)

    def test_another_path_is_answered_from_the_snapshot(self) -> None:
        shop = self.workspace()
        self.record("other", QUESTION, shop, "careful")
        turn, ledger = self.replay("other", shop, "explorer")
        self.assertEqual(turn.ran, [])
        self.assertIn("synthesized", hows(ledger))
        self.assertNotIn("miss", hows(ledger), [call for call in ledger.calls if call.how == "miss"])
        self.assertIn("8080", turn.response)

    def test_a_changed_workspace_changes_no_answer(self) -> None:
        shop = self.workspace()
        self.record("changed", QUESTION, shop, "careful")
        before = {who: self.replay("changed", shop, who)[0] for who in ("careful", "explorer")}
        auth = shop / "server" / "auth.py"
        auth.write_text(auth.read_text().replace("8080", "9999"))
        (shop / "server" / "catalog.py").unlink()
        for who, turn in before.items():
            again = self.replay("changed", shop, who)[0]
            self.assertEqual((again.results, again.response), (turn.results, turn.response), who)

    def test_no_tool_that_hermes_offers_runs_nor_one_that_does_not_exist(self) -> None:
        folder = self.workspace({"a.txt": "x\n"})
        self.script(Step(text="fine"))
        self.record("every", "try every tool", folder)
        asked: list[str] = []

        def every(messages: Sequence[Mapping[str, Any]], tools: Sequence[str]) -> Any:
            left = [tool for tool in tools if tool not in asked][:4]
            asked.extend(left)
            calls = [
                ToolCall(
                    tool,
                    {
                        "command": f"touch {folder}/ran",
                        "path": f"{folder}/ran",
                        "content": "x",
                        "code": f"open('{folder}/ran','w')",
                        "goal": "touch ran",
                        "pattern": "x",
                        "query": "x",
                        "url": "x",
                        "action": "list",
                    },
                )
                for tool in left
            ]
            if not left and "no_such_tool" not in asked:
                asked.append("no_such_tool")
                calls = [ToolCall("no_such_tool", {}), ToolCall("terminal", {"command": "true"})]
            return Step(calls) if calls else Step(text="tried them all")

        self.model.brain = every
        turn, ledger = self.replay("every", folder)
        self.assertEqual(turn.ran, [])
        self.assertGreater(len(asked), 12)
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["a.txt"])
        self.assertEqual(turn.response, "tried them all")
        self.assertTrue(all(one.result == MISS for one in turn.returned if one.tool == "terminal"))

    def shown(self, turn: TurnResult) -> list[str]:
        """What the model was shown of the tools' results in its last request."""
        messages = self.model.requests[-1]["messages"]
        if not any(message.get("role") == "tool" for message in messages):
            messages = next(
                r["messages"]
                for r in reversed(self.model.requests)
                if any(m.get("role") == "tool" for m in r["messages"])
            )
        return [str(message["content"]) for message in messages if message.get("role") == "tool"]

    def test_misses_bring_the_model_no_advice_that_the_recording_did_not_have(self) -> None:
        folder = self.workspace({f"{n}.txt": "x\n" for n in range(4)})  # known by their names, not their texts
        self.script(Step(text="fine"))
        self.record("advice", "look around", folder)
        misses = [Step([ToolCall("terminal", {"command": f"netstat -{n}"})]) for n in range(4)]
        others = [Step([ToolCall("read_file", {"path": f"{n}.txt"})]) for n in range(4)]
        self.script(*misses, *others, Step(text="gave up"))
        turn, ledger = self.replay("advice", folder)
        self.assertTrue(all(how == "miss" for how in hows(ledger)))
        self.assertEqual({text for text in self.shown(turn) if "cassette miss" in text}, {MISS})

    def test_a_large_answer_reaches_the_model_as_it_did_live(self) -> None:
        """Hermes puts a large result aside and shows its beginning, wherever it has a terminal's environment."""
        folder = self.workspace({"big.txt": "".join(f"needle {n:06} {'x' * 400}\n" for n in range(400))})
        self.script(Step([ToolCall("search_files", {"pattern": "needle", "limit": 300})]), Step(text="found"))
        first, kept = self.record("large", "find the needles", folder)
        live = self.shown(first)[-1]
        self.assertGreater(len(kept.calls[0].result), 100_000)
        turn, ledger = self.replay("large", folder)
        self.assertEqual((hows(ledger), turn.results), (["hit"], first.results))
        self.assertLess(len(live), 3000)
        self.assertEqual(self.shown(turn)[-1].partition("\n")[0], live.partition("\n")[0])

    def test_another_session_runs_its_tools_and_the_replayed_one_stays_closed(self) -> None:
        folder = self.workspace({"a.txt": "x\n"})
        self.script(Step(text="fine"))
        self.record("closed", "say fine", folder)
        turn, _ = self.replay("closed", folder)
        self.script(Step([ToolCall("terminal", {"command": "cat a.txt"})]), Step(text="done"))
        again = self.host.turn("once more", folder, turn.session_id)
        self.assertEqual((again.results, again.ran), ([MISS], []))
        self.script(Step([ToolCall("terminal", {"command": "cat a.txt"})]), Step(text="done"))
        other = self.host.turn("someone else", folder)
        self.assertEqual(len(other.ran), 1)

    def test_real_source_is_recorded_and_replayed(self) -> None:
        """The source of a package that the lane's own Hermes depends on, and a question about it."""
        site = next(lane_folder(self.version).glob("lib/python*/site-packages"), None) or next(
            lane_folder(self.version).glob("Lib/site-packages")
        )
        folder = self.workspace({"README.txt": "rich\n"})
        shutil.copytree(site / "rich", folder / "rich", ignore=shutil.ignore_patterns("__pycache__"))
        question = "Where are class Console, def cell_len and class Table defined, and with which signatures?"
        first, kept = self.record("rich", question, folder, "reader")
        self.assertIn("rich/cells.py", first.response)
        self.assertIn("def cell_len(text: str", first.response)
        (folder / "rich" / "cells.py").write_text("nothing left\n")
        turn, ledger = self.replay("rich", folder, "reader")
        self.assertEqual((turn.response, turn.results), (first.response, first.results))
        self.assertEqual((turn.ran, hows(ledger)), ([], ["hit"] * len(kept.calls)))


class TheCommand(LaneCase):
    """The real `hermes cassette`, a process each."""

    def command(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return self.hermes("cassette", *words, cwd=cwd)

    def test_record_pin_run_from_the_shell_with_the_right_exit_codes(self) -> None:
        shop = self.workspace()
        self.assertEqual(self.command("run", "shop", cwd=shop).returncode, 2)
        done = self.command("record", "shop", "--query", QUESTION, "--model", "careful", cwd=shop)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("kept ", done.stdout)
        self.assertEqual(self.command("pin", "shop", "8080", cwd=shop).returncode, 0)
        done = self.command("run", "shop", "--model", "careful", cwd=shop)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("result PASS\npins 1/1\n[ok] 8080\npath ", done.stdout)
        requests = len(self.model.requests)
        self.home.data.joinpath("cassettes", "shop.json").write_text("[]")
        done = self.command("run", "shop", cwd=shop)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        self.assertEqual(len(self.model.requests), requests, "the model was asked")

    def test_a_fact_that_is_decorated_holds_as_rendered_and_a_missing_one_is_explained(self) -> None:
        folder = self.workspace({"auth.py": "AUTH_PORT = 8080\n"})
        read = Step([ToolCall("read_file", {"path": "auth.py"})])
        self.script(read, Step(text="The auth server binds port 8080."))
        done = self.command("record", "worded", "--query", "Which port?", cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for fact in ("auth server", "port 8080"):
            self.assertEqual(self.command("pin", "worded", fact, cwd=folder).returncode, 0)
        self.script(read, Step(text="- The `auth`\n  server binds **port\u00a08080**."))
        done = self.command("run", "worded", cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("\npins 2/2\n[ok] auth server (as rendered)\n[ok] port 8080 (as rendered)\npath ", done.stdout)
        self.script(Step(text="The auth server:\n\n80\n\n80, or port: 8,080"))
        done = self.command("run", "worded", cwd=folder)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("[--] port 8080\n     nearest: `port: 8,080`, only marks between\npath 0 calls: ", done.stdout)
        self.assertIn(
            "; no call: nothing of the tape was read\nanswer:\n  The auth server:\n\n  80\n\n  80, or", done.stdout
        )
        self.assertIn(
            "    The auth server:\n\n    80\n    ... 2 more lines: --full\n",
            self.command("show", "worded", cwd=folder).stdout,
        )

    def test_a_hermes_that_runs_as_a_module_records_and_replays(self) -> None:
        words = ("--query", QUESTION, "--in", str(self.workspace()))
        done = self.hermes("cassette", "record", "module", *words, cwd=self.home.path, as_module=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.command("pin", "module", "8080", cwd=self.home.path).returncode, 0)
        done = self.hermes("cassette", "run", "module", cwd=self.home.path, as_module=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Validation(LaneCase):
    def test_hermes_finds_nothing_wrong_with_the_plugin(self) -> None:
        if not self.version.startswith("0.22"):
            self.skipTest(f"Hermes {self.version} has no `plugins validate`")
        clean = self.workspace({}) / "session-cassettes"
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True).stdout
        for name in filter(None, tracked.decode().split("\0")):
            (clean / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPO / name, clean / name)
        done = self.hermes("plugins", "validate", str(clean), cwd=clean.parent)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return lane_suite(loader, RecordingInHermes, SlashCommandsInHermes, ReplayingInHermes, TheCommand, Validation)


if __name__ == "__main__":
    unittest.main()
