"""The hooks: what claims a turn, what must not, and what is kept at its end."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import threading
import time
import types
import unittest
from pathlib import Path
from typing import Any, Mapping, Sequence
from unittest import mock

from tests.support import REPO, FakeContext, FakeHost, Turn, load_plugin, temp_folder, write_tree

plugin_package = load_plugin()
from session_cassettes import hooks  # noqa: E402
from session_cassettes.suite import launching  # noqa: E402
from session_cassettes.cassette_store import (  # noqa: E402
    Arm,
    Call,
    Cassette,
    CassetteError,
    FileLock,
    Recorder,
    Ledger,
    Store,
    parse_cassette,
    parse_claim,
    parse_ledger,
    to_json,
    write_atomically,
)
from session_cassettes.middleware import MISS, RESULT_LIMIT, LiveCall  # noqa: E402

QUESTION = "Where is the auth handler?"


class HookCase(unittest.TestCase):
    """A plugin in a fake host, with a data folder and a workspace of its own."""

    newer = False

    def setUp(self) -> None:
        home, self.workspace = temp_folder(self), temp_folder(self)
        write_tree(self.workspace, {"server/auth.py": "AUTH_PORT = 8080\n"})
        environ = {"HERMES_HOME": str(home), "TERMINAL_CWD": str(self.workspace)}
        patch = mock.patch.dict(os.environ, environ)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("HERMES_YOLO_MODE", None)
        self.pretend("agent.runtime_cwd", resolve_agent_cwd=lambda: Path(os.environ["TERMINAL_CWD"]))
        self.pretend("agent.redact", redact_sensitive_text=lambda text, file_read=False: text)
        self.store = Store(hooks.data_dir())
        self.store.prepare()
        self.waiting: list[FileLock] = []
        self.addCleanup(lambda: [lock.release() for lock in self.waiting])
        self.host = self.load()

    def pretend(self, module: str, **names: Any) -> None:
        """Offer one of Hermes's modules, with these names, as a host would."""
        made = types.ModuleType(module)
        vars(made).update(names)
        patch = mock.patch.dict("sys.modules", {module.partition(".")[0]: types.ModuleType("agent"), module: made})
        patch.start()
        self.addCleanup(patch.stop)

    def load(self, **environ: str) -> FakeHost:
        """Load the plugin into a new fake Hermes, as one process does."""
        host = FakeHost(newer=self.newer)
        with mock.patch.dict(os.environ, environ):
            plugin_package.register(host.ctx)
        return host

    def keep(self, name: str = "shop", **changes: Any) -> tuple[Cassette, str]:
        kept = Cassette(
            name,
            QUESTION,
            "8080",
            cwd=str(self.workspace),
            recorder=Recorder("0.19.0", "linux", "rg"),
            pins=("8080",),
            calls=(Call("terminal", {"command": "ls"}, "recorded"),),
            **changes,
        )
        self.store.save(kept, overwrite=True)
        return self.store.read(name)

    def arm(self, **changes: Any) -> Arm:
        facts = hooks.plugin_facts()
        fields = {
            "id": "a" * 24,
            "kind": "run",
            "name": "shop",
            "request": QUESTION,
            "hosting": "process",
            "created": time.time(),
            "timeout": 900.0,
            "plugin": facts.plugin,
            "fingerprint": facts.fingerprint,
            "folder": str(self.workspace),
            **changes,
        }
        if fields["kind"] == "run" and "cassette_sha" not in fields:
            fields["cassette_sha"] = self.keep(fields["name"])[1]
        arm = Arm(**fields)
        write_atomically(self.store.arm_path, to_json(arm))
        return arm

    def wait(self) -> None:
        """Hold the lock that a waiting command holds."""
        lock = self.store.waiting()
        self.assertTrue(lock.try_acquire())
        self.waiting.append(lock)

    def claimed(self) -> bool:
        return not self.store.arm_path.exists()

    def saved(self, name: str) -> bool:
        return self.store.path(name).exists()


_acquire = FileLock.acquire


def _acquire_soon(lock: FileLock, seconds: float) -> None:
    _acquire(lock, min(seconds, 0.2))


class Claims(HookCase):
    def armed_host(self, **changes: Any) -> FakeHost:
        arm = self.arm(**changes)
        self.wait()
        return self.load(SESSION_CASSETTES_RUN=arm.id)

    def test_the_armed_process_claims_its_turn_and_leaves_a_full_ledger(self) -> None:
        host = self.armed_host()
        turn = host.start_turn(QUESTION)
        self.assertTrue(self.claimed())
        claim = self.store.read_value(self.store.claim_path("a" * 24), parse_claim)
        self.assertEqual((claim.session, claim.turn, claim.error), (turn.session_id, turn.turn_id, ""))
        self.assertEqual(host.call(turn, "terminal", {"command": "ls"}), "recorded")
        host.end_turn(turn, "The port is 8080.")
        ledger: Ledger = self.store.read_value(self.store.ledger_path("a" * 24), parse_ledger)
        self.assertTrue(ledger.finished)
        self.assertEqual((ledger.answer, ledger.sessions, ledger.live), ("The port is 8080.", (turn.session_id,), 0))
        self.assertEqual([call.how for call in ledger.calls], ["hit"])
        self.assertEqual((host.ran, host.raised), ([], []))

    def test_no_other_turn_claims(self) -> None:
        turns: dict[str, dict[str, Any]] = {
            "other words": {"user_message": QUESTION + " Now?"},
            "the same words in another case": {"user_message": QUESTION.upper()},
            "a later turn": {"first": False},
            "another platform": {"platform": "telegram"},
            "a sub-agent": {"platform": "subagent"},
            "a cron job": {"platform": "cron"},
            "an image": {"user_message": [{"type": "text", "text": QUESTION}]},
        }
        host = self.armed_host()
        for title, changed in turns.items():
            with self.subTest(title):
                turn = host.start_turn(**{"user_message": QUESTION, **changed})
                self.assertFalse(self.claimed())
                self.assertEqual(host.call(turn, "terminal", {"command": "ls"}), MISS)
        self.assertEqual(host.ran, [])

    def test_a_newer_hosts_sub_agent_does_not_claim(self) -> None:
        host = self.armed_host()
        host.newer = True
        host.start_turn(QUESTION, parent_session_id="its parent")
        self.assertFalse(self.claimed())

    def test_surrounding_blanks_and_line_ends_do_not_count(self) -> None:
        host = self.armed_host(request="one\ntwo")
        host.start_turn("  one\r\ntwo\n")
        self.assertTrue(self.claimed())

    def test_the_same_words_in_another_process_claim_nothing(self) -> None:
        self.armed_host()
        for environ in ({}, {"SESSION_CASSETTES_RUN": "b" * 24}, {"SESSION_CASSETTES_RECORD": "c" * 24}):
            self.load(**environ).start_turn(QUESTION)
            self.assertFalse(self.claimed())

    def test_a_gateway_claims_only_an_arm_for_a_gateway(self) -> None:
        self.arm(hosting="gateway")
        self.wait()
        self.load(SESSION_CASSETTES_RUN="a" * 24).start_turn(QUESTION)
        self.assertFalse(self.claimed())
        self.host.start_turn(QUESTION)
        self.assertTrue(self.claimed())

    def test_the_arm_of_a_dead_run_is_not_claimed(self) -> None:
        arm = self.arm()
        self.load(SESSION_CASSETTES_RUN=arm.id).start_turn(QUESTION)
        self.assertFalse(self.claimed())

    def test_a_clock_that_jumps_costs_no_claim_while_the_command_waits(self) -> None:
        for created in (time.time() - 100_000, time.time() + 100_000):
            arm = self.arm(created=created)
            self.wait()
            self.load(SESSION_CASSETTES_RUN=arm.id).start_turn(QUESTION)
            self.assertTrue(self.claimed())
            self.waiting.pop().release()

    def test_in_a_gateway_the_session_of_a_command_that_died_runs_no_tool(self) -> None:
        self.arm(hosting="gateway")
        turn = self.host.start_turn(QUESTION)
        self.assertEqual(self.host.call(turn, "terminal", {"command": "ls"}), MISS)
        self.assertFalse(self.store.claim_path("a" * 24).exists())
        later = self.host.start_turn(QUESTION)
        self.assertEqual(self.host.call(later, "terminal", {"command": "ls"}), '{"live": "terminal"}')

    def test_an_old_arm_of_a_dead_command_closes_nobodys_session(self) -> None:
        for created in (time.time() - 1000, time.time() + 1000):
            self.arm(hosting="gateway", created=created)
            turn = self.host.start_turn(QUESTION)
            self.assertEqual(self.host.call(turn, "terminal", {"command": "ls"}), '{"live": "terminal"}')
            self.assertFalse(self.claimed())

    def test_an_awaited_turn_that_cannot_claim_runs_no_tool(self) -> None:
        def lock_the_store() -> None:
            held = self.store.lock()
            held.acquire(1)
            self.waiting.append(held)

        def fill_the_disk() -> None:
            self.store.claim_path("a" * 24).parent.rmdir()

        for harm in (fill_the_disk, lock_the_store):
            with self.subTest(harm.__name__), mock.patch.object(FileLock, "acquire", _acquire_soon):
                self.arm(hosting="gateway")
                self.wait()
                harm()
                turn = self.host.start_turn(QUESTION)
                self.assertEqual(self.host.call(turn, "terminal", {"command": "ls"}), MISS)
                self.assertEqual(self.host.ran, [])
                while self.waiting:
                    self.waiting.pop().release()

    def test_a_cassette_that_is_missing_changed_or_broken_binds_the_turn_to_nothing(self) -> None:
        def remove() -> None:
            self.store.path("shop").unlink()

        def change() -> None:
            self.keep(warnings=("changed",))

        def cut() -> None:
            self.store.path("shop").write_bytes(self.store.path("shop").read_bytes()[:-40])

        for harm, told in ((remove, "failed to load"), (change, "changed between"), (cut, "failed to load")):
            with self.subTest(harm.__name__):
                arm = self.arm()
                self.wait()
                harm()
                host = self.load(SESSION_CASSETTES_RUN=arm.id)
                turn = host.start_turn(QUESTION)
                self.assertEqual(host.call(turn, "terminal", {"command": "ls"}), MISS)
                host.end_turn(turn, "8080")
                claim = self.store.read_value(self.store.claim_path(arm.id), parse_claim)
                ledger = self.store.read_value(self.store.ledger_path(arm.id), parse_ledger)
                self.assertIn(told, claim.error)
                self.assertIn(told, ledger.errors[0])
                self.assertEqual(host.ran, [])
                self.waiting.pop().release()

    def test_other_plugin_code_or_yolo_mode_binds_the_turn_to_nothing(self) -> None:
        host = self.armed_host(fingerprint="0" * 64)
        turn = host.start_turn(QUESTION)
        self.assertEqual(host.call(turn, "terminal", {"command": "ls"}), MISS)
        self.assertIn("other plugin code", self.store.read_value(self.store.claim_path("a" * 24), parse_claim).error)
        self.waiting.pop().release()
        host = self.armed_host()
        with mock.patch.dict(os.environ, {"HERMES_YOLO_MODE": "1"}):
            turn = host.start_turn(QUESTION)
            self.assertEqual(host.call(turn, "terminal", {"command": "ls"}), MISS)
        self.assertIn("YOLO", self.store.read_value(self.store.claim_path("a" * 24), parse_claim).error)
        self.assertEqual(host.ran, [])

    def test_eight_threads_racing_for_one_arm_make_exactly_one_claim(self) -> None:
        self.arm(hosting="gateway")
        self.wait()
        turns: list[Turn] = []
        threads = [threading.Thread(target=lambda: turns.append(self.host.start_turn(QUESTION))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        answers = [self.host.call(turn, "terminal", {"command": "ls"}) for turn in turns]
        self.assertEqual(sorted(answers), ["recorded"] + ['{"live": "terminal"}'] * 7)

    def test_a_ping_that_reaches_a_model_lets_no_tool_run(self) -> None:
        turn = self.host.start_turn("/cassette ping 0123456789abcdef")
        self.assertEqual(self.host.call(turn, "terminal", {"command": "ls"}), MISS)
        told = json.loads(self.store.ping_path("0123456789abcdef").read_bytes())
        self.assertTrue(told["model"])
        self.assertEqual(self.host.ran, [])

    def test_sessions_claimed_before_a_reload_stay_closed(self) -> None:
        self.arm(hosting="gateway")
        self.wait()
        turn = self.host.start_turn(QUESTION)
        reloaded = self.load()
        self.assertEqual(reloaded.call(turn, "terminal", {"command": "ls"}), MISS)
        self.assertEqual(reloaded.ran, [])


class Recordings(HookCase):
    def record(self, turn: Turn, answer: str = "auth.py binds 8080") -> None:
        self.host.tools["read_file"] = lambda args: json.dumps({"content": "1|AUTH_PORT = 8080"})
        self.host.call(turn, "read_file", {"path": "server/auth.py"})
        self.host.end_turn(turn, answer)

    def test_the_next_turn_of_the_only_session_is_recorded_and_no_other(self) -> None:
        self.assertIn("armed", self.host.slash("/cassette record shop"))
        self.record(self.host.start_turn(QUESTION))
        self.assertTrue(self.saved("shop"))
        kept, _ = self.store.read("shop")
        self.assertEqual((kept.request, kept.answer), (QUESTION, "auth.py binds 8080"))
        self.assertEqual([call.tool for call in kept.calls], ["read_file"])
        self.assertEqual((kept.cwd, list(kept.snapshot.files)), (str(self.workspace), ["server/auth.py"]))
        self.store.path("shop").unlink()
        self.record(self.host.start_turn(QUESTION, first=False))
        self.assertFalse(self.saved("shop"))

    def test_an_arm_waits_on_disk_for_its_session_in_another_process(self) -> None:
        with mock.patch.object(hooks, "session_env", return_value="20260101_000000_abcdef"):
            self.host.slash("/cassette record shop")
        self.host = self.load()
        self.record(self.host.start_turn(QUESTION, session_id="20260101_999999_another"))
        self.assertFalse(self.saved("shop"))
        self.record(self.host.start_turn(QUESTION, session_id="20260101_000000_abcdef"))
        self.assertTrue(self.saved("shop"))

    def test_background_turns_do_not_take_a_recording(self) -> None:
        self.host.slash("/cassette record shop")
        for turn in (
            self.host.start_turn(QUESTION, session_id="bg_120000_abcdef"),
            self.host.start_turn(QUESTION, platform="subagent"),
            self.host.start_turn("Review the conversation above and update two things: ..."),
        ):
            self.record(turn)
            self.assertFalse(self.saved("shop"))
        self.record(self.host.start_turn(QUESTION))
        self.assertTrue(self.saved("shop"))

    def test_a_stale_arm_records_nothing_and_says_so(self) -> None:
        self.host.slash("/cassette record shop")
        with mock.patch.object(hooks.time, "time", return_value=time.time() + 3601):
            self.assertIn("more than an hour ago", self.host.slash("/cassette status"))
            self.record(self.host.start_turn(QUESTION))
            self.assertIn("more than an hour", self.host.slash("/cassette status"))
        self.assertFalse(self.saved("shop"))

    def test_stop_cancels_an_arm_and_a_running_recording(self) -> None:
        self.host.slash("/cassette record shop")
        self.assertIn("'shop' is not recorded", self.host.slash("/cassette stop"))
        self.record(self.host.start_turn(QUESTION, session_id="one session"))
        self.host.slash("/cassette record shop")
        turn = self.host.start_turn(QUESTION, session_id="one session", first=False)
        self.assertIn("'shop' is not recorded", self.host.slash("/cassette stop"))
        self.record(turn)
        self.assertFalse(self.saved("shop"))
        self.assertIn("nothing to stop", self.host.slash("/cassette stop"))

    def test_status_tells_each_state(self) -> None:
        self.assertIn("idle", self.host.slash("/cassette status"))
        self.host.slash("/cassette record shop")
        self.assertIn("armed", self.host.slash("/cassette status"))
        turn = self.host.start_turn(QUESTION)
        self.assertIn("recording 'shop'", self.host.slash("/cassette status"))
        self.record(turn)
        self.assertIn("'shop' saved: 1 call", self.host.slash("/cassette status"))

    def test_a_turn_without_an_answer_saves_nothing_and_keeps_what_was_there(self) -> None:
        self.keep("shop")
        before = self.store.path("shop").read_bytes()
        ends = {
            "no answer": {"answer": ""},
            "interrupted": {"answer": "x", "interrupted": True},
            "failed": {"failed": True},
        }
        for title, end in ends.items():
            with self.subTest(title):
                self.host.slash("/cassette record shop --overwrite")
                turn = self.host.start_turn(QUESTION, session_id="one session")
                self.host.call(turn, "read_file", {"path": "server/auth.py"})
                self.host.end_turn(turn, **end)
                self.host.start_turn("next", session_id=turn.session_id, first=False)
                self.assertIn("was not saved: the turn ended without an answer", self.host.slash("/cassette status"))
                self.assertEqual(self.store.path("shop").read_bytes(), before)

    def test_hermess_notice_in_place_of_an_answer_is_no_answer(self) -> None:
        self.host.slash("/cassette record shop")
        turn = self.host.start_turn(QUESTION)
        history = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ""}]
        self.host.fire(
            "post_llm_call",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            assistant_response="No reply",
            conversation_history=history,
        )
        self.assertFalse(self.saved("shop"))

    def test_what_a_replay_could_not_give_again_is_refused(self) -> None:
        refused: dict[str, Any] = {
            "reference '@file:a.py'": "look at @file:a.py",
            "reference '@diff'": "review @diff please",
            "attached context": "see\n\n--- Attached Context ---\n\nfile",
            "image": [{"type": "image_url"}],
        }
        for told, message in refused.items():
            with self.subTest(told):
                self.host.slash("/cassette record shop")
                self.record(self.host.start_turn(message, session_id="one session"))
                self.assertFalse(self.saved("shop"))
                self.assertIn(told, self.host.slash("/cassette status"))

    def test_an_address_is_no_reference(self) -> None:
        for message in ("mail me@file:x", "git@github.com", "use @dataclass", "@difference"):
            self.assertEqual(hooks.check_recordable(message), message)

    def test_a_taken_name_is_refused_at_once_and_at_the_end(self) -> None:
        self.host.slash("/cassette record shop")
        turn = self.host.start_turn(QUESTION)
        self.keep("shop")
        before = self.store.path("shop").read_bytes()
        self.record(turn)
        self.assertEqual(self.store.path("shop").read_bytes(), before)
        self.assertIn("was not saved: there is a cassette 'shop' already", self.host.slash("/cassette status"))
        self.assertIn("--overwrite", self.host.slash("/cassette record shop"))
        self.assertIn("--overwrite", self.host.slash("/cassette record SHOP"))

    def test_a_host_of_many_sessions_that_names_none_is_refused(self) -> None:
        with mock.patch.dict("sys.modules", {"tui_gateway.server": mock.Mock()}):
            self.assertIn("does not tell a command its session", self.host.slash("/cassette record shop"))
            self.record(self.host.start_turn(QUESTION))
        self.assertFalse(self.saved("shop"))

    def test_an_older_host_of_many_sessions_that_names_the_wrong_one_is_refused(self) -> None:
        for version, refused in (("0.19.0", True), ("0.20.1", True), ("0.22.2", False), ("0.23.1", False), ("", True)):
            with (
                mock.patch.object(hooks, "hermes_version", return_value=version),
                mock.patch.dict("sys.modules", {"tui_gateway.server": mock.Mock()}),
                mock.patch.object(hooks, "session_env", return_value="20260101_000000_abcdef"),
            ):
                told = self.host.slash("/cassette record shop")
            self.assertEqual("does not tell" in told, refused, version)

    def test_a_request_in_the_middle_of_a_conversation_carries_a_warning(self) -> None:
        self.host.slash("/cassette record first")
        self.record(self.host.start_turn(QUESTION, session_id="one session"))
        self.host.slash("/cassette record later")
        self.record(self.host.start_turn(QUESTION, session_id="one session", first=False))
        self.assertEqual(self.store.read("first")[0].warnings, ())
        self.assertIn("middle of a conversation", " ".join(self.store.read("later")[0].warnings))

    def test_an_unknown_folder_is_said_and_has_no_snapshot(self) -> None:
        with mock.patch.dict(os.environ, {"TERMINAL_ENV": "docker"}):
            self.host.slash("/cassette record shop")
            self.record(self.host.start_turn(QUESTION))
        kept, _ = self.store.read("shop")
        self.assertEqual((kept.cwd, len(kept.snapshot.files)), ("", 0))
        self.assertIn("the session's working directory is not known: there is no snapshot", kept.warnings)

    def test_a_full_disk_costs_the_recording_and_nothing_else(self) -> None:
        self.host.slash("/cassette record shop")
        turn = self.host.start_turn(QUESTION)
        with mock.patch.object(Store, "save", side_effect=CassetteError("cannot write: disk full")):
            self.record(turn)
        self.assertEqual(self.host.raised, [])
        self.assertIn("disk full", self.host.slash("/cassette status"))

    def test_a_recording_that_replaces_another_keeps_its_pins(self) -> None:
        self.keep("shop")
        self.host.slash("/cassette record shop --overwrite")
        self.record(self.host.start_turn(QUESTION), "a new answer")
        kept, _ = self.store.read("shop")
        self.assertEqual((kept.answer, kept.pins), ("a new answer", ("8080",)))

    def test_an_arm_that_cannot_be_read_costs_no_recording(self) -> None:
        for data in (b"{", b"[]", b'{"id": "x"}'):
            self.store.arm_path.write_bytes(data)
            self.host.slash("/cassette record shop --overwrite")
            self.record(self.host.start_turn(QUESTION, session_id="one session"))
            self.assertTrue(self.saved("shop"), data)
            self.store.path("shop").unlink()

    def test_nothing_is_stored_for_a_session_that_is_not_bound(self) -> None:
        before = sorted(self.store.root.rglob("*"))
        for first in (True, False):
            self.record(self.host.start_turn(QUESTION, session_id="20260101_000000_abcdef", first=first))
        self.assertEqual(sorted(self.store.root.rglob("*")), before)

    def test_a_hook_never_raises_whatever_it_is_given(self) -> None:
        odd: list[Any] = [None, 7, [], {}, object(), "x"]
        for value in odd:
            for hook in ("pre_llm_call", "post_llm_call"):
                self.host.fire(
                    hook,
                    session_id=value,
                    turn_id=value,
                    user_message=value,
                    is_first_turn=value,
                    assistant_response=value,
                    conversation_history=value,
                    platform=value,
                )
        self.assertEqual(self.host.raised, [])


class Hosting(HookCase):
    """Where sessions are hosted, and what a gateway tells of them."""

    newer = True

    def told(self, **variables: str) -> Any:
        """Let the host tell a command these variables."""
        return mock.patch.dict(os.environ, {f"HERMES_SESSION_{name}": value for name, value in variables.items()})

    def gateway(self) -> None:
        self.pretend("gateway.session_context", get_session_env=lambda name, default: os.environ.get(name, default))
        patch = mock.patch.dict(os.environ, {"HERMES_GATEWAY_DETACHED": "1"})
        patch.start()
        self.addCleanup(patch.stop)

    def test_only_signs_that_agree_tell_a_process_for_sure(self) -> None:
        for version, cwd, client, own, hosting in (
            ("0.19.0", False, False, True, "process"),
            ("0.22.2.post1", False, False, True, "process"),
            ("0.23.2", False, False, True, None),
            ("0.22.2", True, False, True, None),
            ("0.22.2", False, True, True, None),
            ("0.22.2", False, False, False, None),
            ("", False, False, True, None),
            ("dev", False, False, True, None),
            ("1.0.0", False, False, True, None),
        ):
            with self.subTest(version=version, cwd=cwd, client=client, own=own):
                self.assertEqual(launching.Signs(version, cwd, client, own).hosting(), hosting)

    def test_a_gateway_names_the_session_as_its_chat(self) -> None:
        self.gateway()
        with self.told(PLATFORM="local", CHAT_ID="local-1", KEY="k", ID=""):
            self.assertIn("armed", self.host.slash("/cassette record shop"))
            self.assertIn("armed", self.host.slash("/cassette status"))
        with self.told(PLATFORM="local", CHAT_ID="local-2", KEY="k", ID=""):
            self.assertIn("idle", self.host.slash("/cassette status"))
            self.host.end_turn(self.host.start_turn(QUESTION, session_id="local-2"), "8080")
        self.assertFalse(self.saved("shop"))
        with self.told(PLATFORM="local", CHAT_ID="local-1", ID="moved-on"):
            turn = self.host.start_turn(QUESTION, session_id="moved-on")
            self.host.end_turn(turn, "8080")
            self.assertIn("saved", self.host.slash("/cassette status"))
        self.assertTrue(self.saved("shop"))

    def test_what_stands_in_a_gateways_environment_is_nobodys_session(self) -> None:
        self.gateway()
        for variables in (
            {"ID": "stale"},
            {"ID": "stale", "CHAT_ID": "local-1"},
            {"PLATFORM": "local", "CHAT_ID": "x"},
        ):
            with self.subTest(variables), self.told(**variables):
                self.assertIn("does not tell a command its session", self.host.slash("/cassette record shop"))

    def test_a_gateway_that_a_runs_child_started_is_not_tied_to_that_run(self) -> None:
        self.gateway()
        host = self.load(SESSION_CASSETTES_RUN="b" * 24)
        self.assertEqual(host.call(host.start_turn("other words"), "write_file", {}), '{"live": "write_file"}')

    def test_the_words_of_a_run_that_waits_for_its_own_child_are_bound_to_nothing_elsewhere(self) -> None:
        self.arm(hosting="process")
        self.wait()
        turn = self.host.start_turn(QUESTION)
        self.assertIn("cassette miss", self.host.call(turn, "write_file", {}))
        self.assertEqual(self.host.ran, [])
        self.assertFalse(self.claimed())
        own = self.load(SESSION_CASSETTES_RUN="a" * 24)
        own.start_turn(QUESTION)
        self.assertTrue(self.claimed())

    def test_a_session_without_approvals_is_no_replay_and_its_recording_says_so(self) -> None:
        yolo = {"is_current_session_yolo_enabled": lambda: False, "is_session_yolo_enabled": lambda key: key == "wild"}
        self.pretend("tools.approval", **yolo)
        arm = self.arm(hosting="gateway")
        self.wait()
        self.host.start_turn(QUESTION, session_id="wild")
        claim = self.store.read_value(self.store.claim_path(arm.id), parse_claim)
        self.assertIn("approvals were bypassed", claim.error)
        hooks.arm_session(self.store, "wild", "recorded")
        self.host.end_turn(self.host.start_turn("Another?", session_id="wild"), "8080")
        self.assertIn("approvals were bypassed", " ".join(self.store.read("recorded")[0].warnings))

    def ping(self) -> Any:
        self.host.slash("/cassette ping 0123456789abcdef")
        return self.store.read_value(self.store.ping_path("0123456789abcdef"), hooks.parse_ping)

    def test_a_hook_that_took_too_long_is_told_as_long_as_hermes_leaves_it_out(self) -> None:
        self.assertEqual(self.ping().muted, 0.0)
        settings = {"plugins": {"hook_callback_timeout": 0.05}}
        self.arm(hosting="gateway")
        self.wait()
        with (
            mock.patch.object(hooks, "hermes_config", return_value=settings),
            mock.patch.object(FileLock, "acquire", _acquire_soon),
            self.store.lock(),
        ):
            self.host.start_turn(QUESTION)
        self.assertAlmostEqual(self.ping().muted, 60.0, delta=2.0)

    def test_plugins_in_a_process_of_their_own_are_refused(self) -> None:
        with mock.patch.dict(os.environ, {"HERMES_PLUGIN_HOST_PROCESS": "1"}):
            self.assertIn("plugins.isolation", self.host.slash("/cassette record shop"))
            self.assertTrue(self.ping().isolated)
        for value, refused in (("host", True), ("in_process", False), ("", False), (None, False)):
            settings = {"plugins": {"isolation": value}}
            with self.subTest(value), mock.patch.object(hooks, "hermes_config", return_value=settings):
                if refused:
                    self.assertRaises(CassetteError, hooks.refuse_isolation)
                else:
                    hooks.refuse_isolation()

    def test_whatever_a_load_time_out_cuts_a_command_that_answers_has_its_hooks(self) -> None:
        order: list[str] = []

        class Context(FakeContext):
            def __getattribute__(self, name: str) -> Any:
                if name.startswith("register_"):
                    order.append(name)
                return super().__getattribute__(name)

        plugin_package.register(Context())
        self.assertEqual(order[:3], ["register_hook", "register_hook", "register_middleware"])
        self.assertEqual(order[3:], ["register_command", "register_cli_command"])


class Judgement(unittest.TestCase):
    """Which of a turn's calls are kept."""

    @staticmethod
    def slot(tool: str, args: Any, result: Any = "out", done: bool = True) -> Any:
        return LiveCall(tool, args, result, done)

    def test_after_a_foreign_command_no_later_terminal_output_is_kept(self) -> None:
        slots = [
            self.slot("terminal", {"command": "git log -3"}),
            self.slot("terminal", {"command": "make clean"}),
            self.slot("terminal", {"command": "git log -3"}),
            self.slot("read_file", {"path": "a"}),
        ]
        calls, not_kept, warnings = hooks.judge_calls(slots)
        self.assertEqual([call.tool for call in calls], ["terminal", "read_file"])
        self.assertEqual(not_kept, ["terminal", "terminal"])
        self.assertIn("may not replay cleanly", warnings[0])

    def test_what_is_not_kept_is_noted_by_name_only(self) -> None:
        calls, not_kept, warnings = hooks.judge_calls([self.slot("write_file", {"path": "SECRET-arg"}, "SECRET-out")])
        self.assertEqual((calls, not_kept), ([], ["write_file"]))
        self.assertNotIn("SECRET", " ".join(warnings))

    def test_a_result_that_never_came_is_not_kept(self) -> None:
        self.assertEqual(hooks.judge_calls([self.slot("read_file", {"path": "a"}, None, done=False)])[0], [])

    def test_the_notice_of_a_repeated_call_is_no_evidence(self) -> None:
        stub = json.dumps(
            {
                "status": "unchanged",
                "message": "File unchanged since last read.",
                "path": "a",
                "dedup": True,
                "content_returned": False,
            }
        )
        calls, _, warnings = hooks.judge_calls([self.slot("read_file", {"path": "a"}, stub)])
        self.assertEqual(calls, [])
        self.assertIn("notice of a repeated call", " ".join(warnings))

    def test_results_beyond_the_turns_limit_are_not_kept(self) -> None:
        text = "x" * (RESULT_LIMIT - 100)
        for result in (text, "é" * (len(text) // 2)):
            with self.subTest(result[0]):
                slots = [self.slot("web_search", {"query": str(n)}, result) for n in range(20)]
                calls, not_kept, warnings = hooks.judge_calls(slots)
                self.assertEqual((len(calls), len(not_kept)), (6, 14))
                self.assertIn("over 12 MB in this turn", warnings[1])


class Answerers(HookCase):
    """Who answered a turn: which model, and whether every call was asked of us."""

    def replayed(self, **end: Any) -> Ledger:
        """Replay a turn with one hit, let the host add what a test wants, and return the ledger."""
        self.keep()
        arm = self.arm()
        self.wait()
        host = self.load(SESSION_CASSETTES_RUN=arm.id)
        turn = host.start_turn(QUESTION, session_id="first", model="cheap")
        host.call(turn, "terminal", {"command": "ls"})
        self.before_the_end(host, turn)
        host.end_turn(turn, "It binds 8080.", **end)
        self.assertEqual(host.raised, [])
        return self.store.read_value(self.store.ledger_path(arm.id), parse_ledger)

    def before_the_end(self, host: FakeHost, turn: Turn) -> None:
        """What a test adds to the conversation."""

    def test_a_turn_that_only_we_and_one_model_answered_has_nothing_to_tell(self) -> None:
        ledger = self.replayed()
        self.assertEqual((ledger.models, ledger.foreign, ledger.steps, ledger.before), (("cheap",), (), 0, ()))
        self.assertNotEqual(ledger.calls[0].id, "")

    def test_the_model_that_took_over_is_told(self) -> None:
        self.assertEqual(self.replayed(model="good").models, ("cheap", "good"))

    def test_the_sessions_row_tells_the_model_that_answered_first(self) -> None:
        row = {"model": "good", "api_call_count": 2, "model_config": '{"max_iterations": 7}'}
        with mock.patch.dict(sys.modules, {"hermes_state": FakeState(row)}):
            self.assertEqual(self.replayed(model="good").models, ("good",))

    def test_a_call_that_something_else_answered_is_told(self) -> None:
        self.before_the_end = lambda host, turn: host.say_call(turn, "terminal", "call_x")
        self.assertEqual(self.replayed().foreign, ("terminal",))

    def test_a_call_that_was_compacted_away_is_found_in_the_database(self) -> None:
        gone = {"role": "assistant", "tool_calls": [{"id": "call_y", "function": {"name": "write_file"}}]}
        with mock.patch.dict(sys.modules, {"hermes_state": FakeState({}, [gone, gone])}):
            self.assertEqual(self.replayed().foreign, ("write_file",))

    def test_a_turn_is_followed_through_sessions_that_only_the_database_knows(self) -> None:
        gone = {"role": "assistant", "tool_calls": [{"id": "call_z", "function": {"name": "patch"}}]}
        state = FakeState({}, parents={"third": "second", "second": "first", "first": "x"}, of={"second": [gone]})
        with mock.patch.dict(sys.modules, {"hermes_state": state}):
            self.assertEqual(self.replayed(session_id="third").foreign, ("patch",))

    def test_a_turn_that_stopped_at_its_limit_tells_the_limit(self) -> None:
        with mock.patch.dict(sys.modules, {"hermes_state": FakeState({"model_config": '{"max_iterations": 90}'})}):
            self.assertEqual(self.replayed(at_limit=True).steps, 90)

    def test_without_the_database_a_turns_own_steps_are_its_limit(self) -> None:
        self.assertEqual(self.replayed(at_limit=True).steps, 1)

    def test_plugins_that_registered_before_are_told(self) -> None:
        loaded = [
            {"name": "aaa", "middleware": 1},
            {"name": "hooks-only", "middleware": 0},
            {"name": "session-cassettes", "middleware": 1},
        ]
        manager = types.SimpleNamespace(list_plugins=lambda: loaded)
        self.pretend("hermes_cli.plugins", get_plugin_manager=lambda: manager)
        self.assertEqual(self.replayed().before, ("aaa",))


class FakeState(types.ModuleType):
    """Hermes's database module, with one row and some messages for every session.

    `parents` are the sessions that others go on from, `of` the messages of single ones.
    """

    def __init__(
        self,
        row: dict[str, Any],
        messages: Sequence[Any] = (),
        parents: Mapping[str, str] = {},
        of: Mapping[str, Sequence[Any]] = {},
    ) -> None:
        super().__init__("hermes_state")

        class SessionDB:
            def __init__(self, read_only: bool = False) -> None:
                pass

            def get_session(self, session: str) -> dict[str, Any]:
                return {"cwd": "", "parent_session_id": parents.get(session), **row}

            def get_messages(self, session: str, include_inactive: bool = False) -> list[Any]:
                return list(of.get(session, messages)) if include_inactive else []

            def close(self) -> None:
                pass

        self.SessionDB = SessionDB


class RecordedAnswerers(HookCase):
    """The same of a recording: a warning, or nothing saved."""

    def recorded(self, tool: str = "", **end: Any) -> str:
        """Record a turn and return what `/cassette status` says of it."""
        self.host.slash("/cassette record shop --overwrite")
        turn = self.host.start_turn(QUESTION, session_id="s", model="cheap")
        self.host.call(turn, "terminal", {"command": "cat a"})
        if tool:
            self.host.say_call(turn, tool, "call_x")
        self.host.end_turn(turn, "It binds 8080.", **end)
        return self.host.slash("/cassette status")

    def test_another_model_is_stored_as_what_it_is_with_a_warning(self) -> None:
        self.assertIn(
            "warning: the turn was answered by cheap and good, not by cheap alone", self.recorded(model="good")
        )
        self.assertEqual(self.store.read("shop")[0].model, "cheap and good")

    def test_a_call_that_something_else_answered_is_not_kept_nor_any_terminals_result(self) -> None:
        said = self.recorded("read_file")
        self.assertIn("1 tool call was not kept: this cassette may not replay cleanly", said)
        self.assertIn("warning: read_file: it was answered by something else", said)
        self.assertEqual([call.tool for call in self.store.read("shop")[0].calls], ["terminal"])
        self.assertIn("terminal", self.recorded("terminal"))
        self.assertEqual(self.store.read("shop")[0].calls, ())

    def test_a_turn_that_stopped_at_its_limit_saves_nothing(self) -> None:
        self.recorded()
        before = self.store.path("shop").read_bytes()
        self.assertIn("not saved: the turn stopped at its limit of 1 step", self.recorded(at_limit=True))
        self.assertEqual(self.store.path("shop").read_bytes(), before)

    def test_calls_of_earlier_turns_are_no_calls_of_this_one(self) -> None:
        old = [{"role": "assistant", "tool_calls": [{"id": "call_0", "function": {"name": "terminal"}}]}]
        turn = Turn("s", "t", "s:t:1", QUESTION)
        request = {"role": "user", "content": QUESTION}
        self.host.slash("/cassette record shop")
        ids = {"session_id": "s", "turn_id": turn.turn_id}
        self.host.fire("pre_llm_call", **ids, user_message=QUESTION, conversation_history=[*old, request], model="m")
        self.host.call(turn, "read_file", {"path": "a"}, tool_call_id="call_0")
        history = [*old, request, *self.host.said[turn.turn_id], {"role": "assistant", "content": "8080"}]
        self.host.fire("post_llm_call", **ids, assistant_response="8080", conversation_history=history, model="m")
        self.assertEqual(self.store.read("shop")[0].not_kept, ())

    def test_a_headless_recording_is_put_aside_and_nothing_is_replaced(self) -> None:
        self.keep()
        before = self.store.path("shop").read_bytes()
        arm = self.arm(kind="record", overwrite=True)
        self.wait()
        host = self.load(SESSION_CASSETTES_RECORD=arm.id)
        turn = host.start_turn(QUESTION)
        host.end_turn(turn, "It binds 9090.")
        self.assertEqual(self.store.path("shop").read_bytes(), before)
        aside = self.store.read_value(self.store.aside_path(arm.id), parse_cassette)
        self.assertEqual((aside.name, aside.answer), ("shop", "It binds 9090."))


class Conversations(unittest.TestCase):
    """What is read of a conversation, as plain values."""

    @staticmethod
    def asks(*calls: tuple[str, str]) -> list[Any]:
        return [{"role": "assistant", "tool_calls": [{"id": one, "function": {"name": tool}} for one, tool in calls]}]

    def test_only_calls_that_were_not_ours_are_foreign(self) -> None:
        unwrapped = [*self.asks(("1", "tool_call")), {"role": "tool", "tool_call_id": "1", "tool_name": "mcp_x"}]
        for history, stored, ours, hermes, foreign in (
            (self.asks(("1", "terminal")), [], ["1"], "0.22.2", ()),
            (self.asks(("1", "terminal"), ("2", "terminal")), [], ["1"], "0.22.2", ("terminal",)),
            (unwrapped, [], [], "0.22.2", ("mcp_x",)),
            # a model that calls all its calls the same
            (self.asks(("c", "ls"), ("c", "cat")), [], ["c", "c"], "0.22.2", ()),
            (self.asks(("c", "ls"), ("c", "cat")), [], ["c"], "0.22.2", ("cat",)),
            (self.asks(("", "ls")), [], [""], "0.22.2", ()),
            # compacted away, and stored again as what it was
            ([], self.asks(("1", "ls"), ("1", "ls")), ["1"], "0.22.2", ()),
            (self.asks(("1", "ls")), self.asks(("1", "ls"), ("2", "rm")), ["1"], "0.22.2", ("rm",)),
            # look-ups that 0.19 answers itself, and nobody else does
            (self.asks(("1", "tool_search"), ("2", "tool_describe")), [], [], "0.19.0", ()),
            (self.asks(("1", "tool_search")), [], [], "0.20.1.2", ("tool_search",)),
            (self.asks(("1", "tool_search")), [], [], "", ("tool_search",)),
            # a batch for a connector, whose calls 0.22 numbers
            (self.asks(("1", "tool_call")), [], ["1#1", "1#2"], "0.22.2", ()),
            (None, None, [], "0.22.2", ()),
            ([None, 1, {"role": "assistant", "tool_calls": "x"}], [{}], [], "0.22.2", ()),
        ):
            with self.subTest(history=history, ours=ours):
                self.assertEqual(hooks.foreign_calls(history, stored, ours, hermes), foreign)

    def test_only_a_last_word_that_was_asked_for_is_a_limit(self) -> None:
        asked = {"role": "user", "content": "Where?"}
        nudge = {"role": "user", "content": "You've reached the maximum number of tool-calling iterations allowed. So."}
        step, last = {"role": "assistant", "content": ""}, {"role": "assistant", "content": "8080"}
        for history, row, steps in (
            ([asked, step, last], {}, 0),
            ([asked, step, step, nudge, last], {}, 2),
            ([asked, step, nudge], {"model_config": '{"max_iterations": 90}'}, 90),
            ([asked, step, nudge, last], {"model_config": "broken"}, 1),
            ([asked, step, nudge, last], {"model_config": '{"max_iterations": "9"}'}, 1),
            ([nudge, last, asked, step, last], {"model_config": '{"max_iterations": 90}'}, 0),
            ([], {}, 0),
            (None, {}, 0),
        ):
            with self.subTest(history=history, row=row):
                self.assertEqual(hooks.steps_at_limit(history, row), steps)

    def test_the_models_that_answered_are_named_in_order(self) -> None:
        for begun, ended, row, models in (
            ("cheap", "cheap", {}, ("cheap",)),
            ("cheap", "good", {}, ("cheap", "good")),
            ("cheap", "good", {"model": "good", "api_call_count": 2}, ("good",)),
            ("cheap", "good", {"model": "cheap", "api_call_count": 2}, ("cheap", "good")),
            ("cheap", "good", {"model": "cheap", "api_call_count": 0}, ("cheap", "good")),
            ("cheap", "", {}, ("cheap",)),
            ("", "", {}, ()),
        ):
            with self.subTest(begun=begun, ended=ended, row=row):
                self.assertEqual(hooks.answering_models(begun, ended, row), models)

    def test_the_words_of_a_model_are_read_as_hermes_reads_them(self) -> None:
        """What a session began with is what was asked for, unless it is a stand-in."""
        config = {
            "model_aliases": {"quick": {"model": "gpt-oss:20b", "provider": "custom"}},
            "model": {"default": "cheap", "aliases": {"ds": "deepseek/deepseek-v4"}},
            "fallback_model": {"provider": "custom", "model": "good"},
            "fallback_providers": [
                {"provider": "x", "model": "vendor/better-4.5"},
                {"provider": "x", "model": "b:20b"},
            ],
        }
        for words, begun, asked in (
            (None, "good", ""),
            ("cheap", "cheap", "cheap"),
            ("CHEAP", "cheap", "cheap"),
            ("cheap", "good", "cheap"),
            ("good", "good", "good"),
            ("custom/good", "good", "good"),
            ("custom:good", "good", "good"),
            ("quick", "gpt-oss:20b", "gpt-oss:20b"),
            ("quick", "quick", "quick"),  # 0.19 knows no aliases here
            ("ds", "deepseek-v4", "deepseek-v4"),
            ("mylab/cheap", "cheap", "cheap"),
            ("gpt-oss:20b", "gpt-oss:20b", "gpt-oss:20b"),
            ("gpt-oss:20b", "b:20b", "gpt-oss:20b"),
            ("claude-sonnet-4.5", "claude-sonnet-4-5", "claude-sonnet-4-5"),
            ("cheap", "better-4-5", "cheap"),
            ("cheap", "what-the-provider-has-instead", "what-the-provider-has-instead"),
        ):
            with self.subTest(words=words, begun=begun):
                self.assertEqual(hooks.asked_model(words, begun, config), asked)
        self.assertEqual(hooks.asked_model("cheap", "good", {}), "good")
        self.assertEqual(hooks.asked_model("cheap", "good", {"model": "cheap", "model_aliases": []}), "good")


class Facts(HookCase):
    def test_the_version_is_the_manifests_and_the_fingerprint_follows_the_code(self) -> None:
        root = REPO
        manifest = (root / "plugin.yaml").read_text("utf-8")
        facts = hooks.plugin_facts()
        self.assertIn(f"version: {facts.plugin}\n", manifest)
        self.assertRegex(facts.fingerprint, r"\A[0-9a-f]{64}\Z")
        self.assertEqual(facts.fingerprint, hooks.plugin_facts().fingerprint)

    def test_the_fingerprint_is_that_of_the_code_which_runs(self) -> None:
        root, copy = REPO, temp_folder(self)
        for path in (*root.glob("*.py"), root / "plugin.yaml"):
            shutil.copy(path, copy)
        shutil.copytree(root / "suite", copy / "suite", ignore=shutil.ignore_patterns("__pycache__"))
        name = "session_cassettes_copy"
        self.addCleanup(lambda: [sys.modules.pop(one) for one in list(sys.modules) if one.split(".")[0] == name])

        def load_again() -> str:
            """As Hermes does it: the package is executed again, its modules are found where they are."""
            spec = importlib.util.spec_from_file_location(
                name, copy / "__init__.py", submodule_search_locations=[str(copy)]
            )
            sys.modules[name] = package = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(package)
            return str(sys.modules[f"{name}.hooks"].plugin_facts().fingerprint)

        first = load_again()
        self.assertEqual(first, hooks.plugin_facts().fingerprint)
        code = (copy / "middleware.py").read_bytes()
        (copy / "middleware.py").write_bytes(code + b"# changed\n")
        self.assertEqual(load_again(), first)
        for data, same in ((code + b"# changed\n", False), (code.replace(b"\n", b"\r\n"), True)):
            (copy / "middleware.py").write_bytes(data)
            for module in [one for one in sys.modules if one.startswith(name + ".")]:  # as 0.22 does
                del sys.modules[module]
            self.assertEqual(load_again() == first, same)

    def test_every_way_of_saying_yes_is_yolo(self) -> None:
        for value in ("1", "true", "YES", "on", "2", "anything"):
            self.assertTrue(hooks.yolo_set({"HERMES_YOLO_MODE": value}), value)
        for value in ("", "0", "false", "No", " off "):
            self.assertFalse(hooks.yolo_set({"HERMES_YOLO_MODE": value}), value)


if __name__ == "__main__":
    unittest.main()
