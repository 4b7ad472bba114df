"""Sessions that are made up: what stands in for `hermes chat` where a suite's command is tested without Hermes."""

from __future__ import annotations

import os
import re
import threading
from typing import Any, Callable, Mapping, Sequence
from unittest import mock

from tests.test_cli import CliCase

from session_cassettes import cli
from session_cassettes.cassette_store import Answered, Claim, Facts, Ledger, parse_arm, to_json, write_atomically


class Made:
    """One session that was started: for which cassette, with which model and skills."""

    def __init__(self, words: Sequence[str], name: str) -> None:
        def given(flag: str) -> list[str]:
            return [word.partition("=")[2] for word in words if word.startswith(f"--{flag}=")]

        self.name, self.words = name, list(words)
        self.model = (given("model") or [""])[0]
        self.skills = given("skills")

    @property
    def cell(self) -> str:
        return " ".join([self.name, self.model, *self.skills]).strip()


#: Answers a session, by what it is and how many sessions of its cell were before it.
Brain = Callable[[Made, int], str]


class SuiteCase(CliCase):
    """Runs `hermes cassette run` with sessions that answer as `brain` says.

    An answer of "" is a session that ends without one; a brain may raise.
    """

    def setUp(self) -> None:
        super().setUp()
        self.brain: Brain = lambda made, before: "port 8080"
        self.made: list[Made] = []
        self.claimed: Callable[[Made], None] = lambda made: None  #: is called when a session has claimed its run
        self.guard = threading.Lock()
        for patch in (
            mock.patch.object(cli, "run_process", self.session),
            mock.patch.object(cli, "find_ripgrep", return_value=""),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def session(
        self, words: Sequence[str], folder: str, environ: Mapping[str, str], timeout: float, waiting: Callable[[], None]
    ) -> cli.Ended:
        waiting()
        arm = self.store.read_value(self.store.arm_path, parse_arm)
        with self.guard:
            made = Made(words, arm.name)
            before = sum(one.cell == made.cell for one in self.made)
            self.made.append(made)
        answer = self.brain(made, before)
        facts = Facts(arm.plugin, arm.fingerprint, os.getpid(), False, "0.19.0")
        model = made.model or "careful"
        write_atomically(self.store.claim_path(arm.id), to_json(Claim(arm.id, "s", "t", model, facts)))
        self.store.arm_path.unlink()
        waiting()
        self.claimed(made)
        calls = (Answered("read_file", {"path": "server/auth.py"}, "hit", recorded=0),)
        if answer.startswith("astray"):
            calls += (Answered("terminal", {"command": "ls"}, "miss", reason="this call was not recorded"),)
        ledger = Ledger(arm.id, "t", ("s",), model, facts, calls, answer, finished=bool(answer))
        write_atomically(self.store.ledger_path(arm.id), to_json(ledger))
        waiting()
        return cli.Ended(0, False, answer + "\n", "session_id: s\n")

    def kept(self, name: str = "shop") -> list[dict[str, Any]]:
        """The run files of a cassette, oldest first."""
        return self.store.last_runs(name, 1_000)[::-1]

    @staticmethod
    def suite_of(err: str) -> str:
        """The id of the suite that a command told of."""
        found = re.search(r"suite run (\S+?):", err)
        assert found is not None, err
        return found[1]
