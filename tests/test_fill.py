"""A turn that is filled: which call is answered from the tape, which runs live, and what can never take it for a replay."""

from __future__ import annotations

import json
import threading
import unittest
from typing import Any

from tests.support import FakeHost
from tests.test_hooks import QUESTION, HookCase

from session_cassettes import hooks
from session_cassettes.cassette_store import CassetteError, parse_arm, parse_cassette, parse_claim, parse_state
from session_cassettes.middleware import MISS
from session_cassettes.suite import launching

LIVE = '{"live": "terminal"}'
LS, LOG = {"command": "ls"}, {"command": "git log -3"}


class FillCase(HookCase):
    """A cassette with one recorded call, `ls`, and a process that was started to fill it."""

    def filling(self, **changes: Any) -> FakeHost:
        arm = self.arm(kind="fill", overwrite=True, **{"cassette_sha": self.keep()[1], "hosting": "process", **changes})
        self.wait()
        return self.load(**({"SESSION_CASSETTES_FILL": arm.id} if arm.hosting == "process" else {}))

    def aside(self) -> Any:
        return self.store.read_value(self.store.aside_path("a" * 24), parse_cassette)

    def claim_error(self) -> str:
        return str(self.store.read_value(self.store.claim_path("a" * 24), parse_claim).error)

    def outcome(self) -> Any:
        return self.store.read_value(self.store.outcome_path("a" * 24), parse_state)


class Answering(FillCase):
    def test_a_recorded_call_is_answered_and_any_other_runs_and_is_put_aside(self) -> None:
        before = self.keep()[0]
        for hosting in ("process", "gateway"):
            with self.subTest(hosting):
                host = self.filling(hosting=hosting)
                host.tools["read_file"] = lambda args: json.dumps({"content": "1|AUTH_PORT = 8080"})
                turn = host.start_turn(QUESTION)
                self.assertEqual((self.claimed(), self.claim_error()), (True, ""))
                self.assertEqual(host.call(turn, "terminal", {"command": "  ls  "}), "recorded")
                self.assertEqual(host.call(turn, "terminal", LOG), LIVE)
                host.call(turn, "read_file", {"path": "server/auth.py"})
                host.call(turn, "write_file", {"path": "x", "content": "y"})
                host.end_turn(turn, "It binds 9090.")
                self.assertEqual([ran.tool for ran in host.ran], ["terminal", "read_file", "write_file"])
                kept = self.aside()
                self.assertEqual([(call.tool, call.args) for call in kept.calls][0], ("terminal", LOG))
                self.assertEqual((kept.answer, len(kept.calls), kept.not_kept), ("It binds 9090.", 2, ("write_file",)))
                self.assertEqual(list(kept.snapshot.files), ["server/auth.py"])
                self.assertEqual(self.outcome().state, "saved")
                self.assertEqual(self.store.read("shop")[0], before)  # until the command has seen how it ended
                self.assertEqual(host.raised, [])
                self.waiting.pop().release()

    def test_the_rules_go_by_the_turn(self) -> None:
        host = self.filling()
        turn = host.start_turn(QUESTION)
        for command in ("git log -1", "make", "git log -2", "ls"):
            host.call(turn, "terminal", {"command": command})
        host.tools["search_files"] = lambda args: {"error": "BLOCKED: again"}
        host.call(turn, "search_files", {"pattern": "x"})
        host.end_turn(turn, "done")
        self.assertEqual([call.args["command"] for call in self.aside().calls], ["git log -1"])
        self.assertEqual(self.aside().not_kept, ("terminal", "terminal", "search_files"))

    def test_a_call_that_is_nested_as_0_19_does_in_a_batch_runs_once_and_is_kept_once(self) -> None:
        host = self.filling()
        turn = host.start_turn(QUESTION)
        self.assertEqual(host.call(turn, "terminal", LS, nested=True), "recorded")
        self.assertEqual(host.call(turn, "terminal", LOG, nested=True), LIVE)
        host.end_turn(turn, "done")
        self.assertEqual((len(host.ran), [call.args for call in self.aside().calls]), (1, [LOG]))

    def test_a_call_in_a_bridge_is_the_call_that_it_wraps(self) -> None:
        host = self.filling()
        turn = host.start_turn(QUESTION)
        self.assertEqual(host.call(turn, "tool_call", {"name": "terminal", "arguments": LS}), "recorded")
        self.assertEqual(host.ran, [])

    def test_calls_of_another_turn_and_of_none_are_live_and_no_part_of_it(self) -> None:
        host = self.filling(hosting="gateway")
        turn = host.start_turn(QUESTION)
        other = host.start_turn("something else")
        for one in (other, None):
            self.assertEqual(host.call(one, "terminal", LS), LIVE)
        host.end_turn(turn, "done")
        self.assertEqual(host.call(turn, "terminal", LS), LIVE)  # after the end it is an ordinary session
        self.assertEqual((self.aside().calls, self.aside().not_kept), ((), ()))

    def test_what_cannot_be_looked_up_runs_live(self) -> None:
        host = self.filling()
        turn = host.start_turn(QUESTION)
        for args in (None, [], "x", {"command": {1, 2}}, {1: object()}, {"command": float("nan")}):
            with self.subTest(args=args):
                self.assertEqual(host.call(turn, "terminal", args), LIVE)
        self.assertEqual(host.raised, [])

    def test_an_error_of_a_tool_goes_to_the_host_as_it_is(self) -> None:
        host = self.filling()

        def broken(_: Any) -> Any:
            raise ZeroDivisionError

        host.tools["read_file"] = broken
        turn = host.start_turn(QUESTION)
        with self.assertRaises(ZeroDivisionError):
            host.call(turn, "read_file", {"path": "a"})
        host.end_turn(turn, "done")
        self.assertEqual((self.aside().not_kept, len(host.ran)), (("read_file",), 1))

    def test_a_relative_path_after_a_cd_is_not_kept(self) -> None:
        """A replay would read it from the workspace."""
        for command, moves in (("cd server && make", True), ("make", False), ("PUSHD server", True)):
            with self.subTest(command=command):
                host = self.filling()
                turn = host.start_turn(QUESTION)
                absolute = {"path": str(self.workspace / "server" / "auth.py")}
                host.call(turn, "terminal", {"command": command})
                host.call(turn, "read_file", {"path": "auth.py"})
                host.call(turn, "read_file", absolute)
                host.end_turn(turn, "done")
                kept = [call.args for call in self.aside().calls]
                self.assertEqual(kept, [absolute] if moves else [{"path": "auth.py"}, absolute])
                self.assertEqual("after a cd was not kept" in " ".join(self.aside().warnings), moves)
                self.assertNotIn("answered by something else", " ".join(self.aside().warnings))
                self.waiting.pop().release()


class Ending(FillCase):
    def test_a_turn_without_an_answer_puts_nothing_aside(self) -> None:
        for end in ({}, {"answer": "x", "interrupted": True}, {"failed": True}, {"answer": "x", "at_limit": True}):
            with self.subTest(end=end):
                host = self.filling()
                turn = host.start_turn(QUESTION)
                host.call(turn, "terminal", LOG)
                host.end_turn(turn, **end)
                self.assertIsNone(self.aside())
                self.waiting.pop().release()

    def test_a_session_that_bypasses_approvals_is_warned_of(self) -> None:
        yolo = {"is_current_session_yolo_enabled": lambda: False, "is_session_yolo_enabled": lambda key: True}
        self.pretend("tools.approval", **yolo)
        host = self.filling()
        host.end_turn(host.start_turn(QUESTION), "done")
        self.assertIn("approvals were bypassed in this session", " ".join(self.aside().warnings))


class Kinds(FillCase):
    """What waits for one kind of session is never taken by another."""

    def test_a_turn_that_cannot_have_its_tape_runs_no_tool(self) -> None:
        for changes, told in (
            ({"cassette_sha": "0" * 64}, "changed between"),
            ({"name": "none", "cassette_sha": "0" * 64}, "failed to load"),
            ({"fingerprint": "0" * 64}, "other plugin code"),
        ):
            with self.subTest(told=told):
                host = self.filling(**changes)
                turn = host.start_turn(QUESTION)
                self.assertEqual(host.call(turn, "terminal", LOG), MISS)
                host.end_turn(turn, "done")
                self.assertIn(told, self.claim_error())
                self.assertEqual((host.ran, self.aside()), ([], None))
                self.waiting.pop().release()

    def test_a_process_that_was_started_for_a_replay_claims_no_fill_and_runs_no_tool(self) -> None:
        self.filling()
        for variables in (
            {"SESSION_CASSETTES_RUN": "a" * 24},
            {"SESSION_CASSETTES_RUN": "b" * 24, "SESSION_CASSETTES_FILL": "a" * 24},
        ):
            host = self.load(**variables)
            turn = host.start_turn(QUESTION)
            self.assertEqual(host.call(turn, "terminal", LOG), MISS)
            self.assertEqual((self.claimed(), host.ran), (False, []))

    def test_no_process_of_another_kind_claims_a_fill_and_no_fill_claims_another_kind(self) -> None:
        for kind in ("run", "record", "fill"):
            for variable in ("RUN", "RECORD", "FILL", "PING"):
                with self.subTest(kind=kind, variable=variable):
                    self.arm(kind=kind, cassette_sha=self.keep()[1])
                    self.wait()
                    self.load(**{f"SESSION_CASSETTES_{variable}": "a" * 24}).start_turn(QUESTION)
                    self.assertEqual(self.claimed(), kind == variable.lower())
                    self.waiting.pop().release()

    def test_a_replay_in_the_same_gateway_stays_one_while_a_fill_goes_on(self) -> None:
        host = self.filling(hosting="gateway")
        filled = host.start_turn(QUESTION)
        arm = self.arm(id="b" * 24, hosting="gateway", request="Again?")
        replayed = host.start_turn("Again?")
        self.assertIsNotNone(self.store.read_value(self.store.claim_path(arm.id), parse_claim))
        self.assertEqual(host.call(replayed, "terminal", LOG), MISS)
        self.assertEqual(host.call(filled, "terminal", LOG), LIVE)
        self.assertEqual(len(host.ran), 1)

    def test_the_session_of_a_fill_whose_command_died_runs_no_tool(self) -> None:
        host = self.filling(hosting="gateway")
        self.waiting.pop().release()
        turn = host.start_turn(QUESTION)
        self.assertEqual(host.call(turn, "terminal", LOG), MISS)
        self.assertEqual((host.ran, self.aside()), ([], None))

    def test_a_fill_that_only_attached_to_a_gateway_runs_no_tool_there(self) -> None:
        self.filling(hosting="process")
        turn = self.host.start_turn(QUESTION)
        self.assertEqual(self.host.call(turn, "terminal", LOG), MISS)
        self.assertEqual(self.host.ran, [])

    def test_a_claim_that_cannot_be_written_lets_no_tool_run(self) -> None:
        host = self.filling(hosting="gateway")
        self.store.claim_path("a" * 24).parent.rmdir()
        turn = host.start_turn(QUESTION)
        self.assertEqual(host.call(turn, "terminal", LOG), MISS)
        self.assertEqual(host.ran, [])

    def test_an_arm_of_a_kind_that_is_not_known_is_refused(self) -> None:
        self.filling()
        data = self.store.arm_path.read_bytes().replace(b'"fill"', b'"other"')
        with self.assertRaisesRegex(CassetteError, "none of 'run', 'record', 'fill'"):
            parse_arm(data, "arm.json")

    def test_a_childs_environment_has_no_arm_but_its_own(self) -> None:
        inherited = dict.fromkeys((*hooks.ARM_VARIABLES.values(), hooks.PING_VARIABLE), "x")
        self.assertFalse(set(inherited) & set(launching.child_environment(inherited)))


class Racing(FillCase):
    def test_the_calls_of_many_threads_are_answered_or_kept_each_once(self) -> None:
        host = self.filling()
        turn = host.start_turn(QUESTION)
        told: list[tuple[Any, Any]] = []

        def ask(number: int) -> None:
            for command in ("ls", f"git log -{number + 1}"):
                told.append((command, host.call(turn, "terminal", {"command": command})))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        host.end_turn(turn, "done")
        self.assertEqual({result for command, result in told if command == "ls"}, {"recorded"})
        self.assertEqual(
            sorted(call.args["command"] for call in self.aside().calls), [f"git log -{n}" for n in range(1, 9)]
        )
        self.assertEqual(len(host.ran), 8)


if __name__ == "__main__":
    unittest.main()
