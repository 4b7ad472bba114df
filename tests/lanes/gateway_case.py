"""What the tests behind the stand-in for 0.23's gateway share: a home, the `hermes` on PATH, and the gateway's process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support import load_demo

from .case import LaneCase
from .host import PATIENCE, Home
from .trust_case import Scripts, Step, calls, finish, keep_cassette, model, returned_to_model
from .venvs import lane_python, scratch

HERE = Path(__file__).resolve().parent
READ = ("read_file", {"path": "a.txt"})
ANSWER = Step(text="the port is 8080")
#: The only lane whose agents the stand-in drives.
LANE = "0.22.2.post1"

load_demo("model")


class Ended:
    """How a command ended: its exit status and what it printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        self.text = out + err
        found = re.findall(r"^session_id: (\S+)$", err, re.MULTILINE)
        self.session = found[-1] if found else ""


class GatewayCase(LaneCase):
    """One gateway process for all tests of a class; a test may change it or restart it, and must put it back."""

    #: After each turn Hermes reviews it, with tools, under the id of its session.
    config = "memory:\n  nudge_interval: 1\nskills:\n  creation_nudge_interval: 1\n"
    work: Path
    bin: Path

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="cassettes-gateway-")
        cls.addClassCleanup(folder.cleanup)
        cls.work = Path(folder.name).resolve() / "work"
        cls.work.mkdir()
        (cls.work / "a.txt").write_text("AUTH_PORT = 8080\n")
        cls.bin = write_launcher(Path(folder.name) / "bin", lane_python(cls.version))
        cls.scripts = Scripts()
        cls.addClassCleanup(lambda: stop_gateway(cls.home))

    def setUp(self) -> None:
        self.model.brain = self.scripts
        self.made = self.work / f"{self._testMethodName}.txt"
        self.addCleanup(self.is_like)

    # the stand-in

    def is_like(self, home: Home | None = None, **settings: Any) -> None:
        """Let this Hermes be another one, as `gateway_client.settings` tells; without any, the usual one."""
        path = (home or self.home).path / "stand-in.json"
        path.write_text(json.dumps(settings), encoding="utf-8")

    def start(self, *words: str, home: Home | None = None, cwd: Path | None = None, **more: str) -> Any:
        """Start a `hermes` command, in the environment of a person who has this `hermes` on PATH."""
        env = {**scratch.clean_environment((home or self.home).path), **more}
        env["PATH"] = os.pathsep.join([str(self.bin), env.get("PATH", "")])
        return subprocess.Popen(
            [str(self.bin / "hermes"), *words],
            cwd=cwd or self.work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def run_hermes(self, *words: str, **options: Any) -> Ended:
        """Run a `hermes` command to its end."""
        process = self.start(*words, **options)
        out, err = process.communicate(timeout=PATIENCE)
        return Ended(process.returncode, out, err)

    def chat(self, query: str, *words: str, **options: Any) -> Ended:
        return self.run_hermes("chat", "-Q", f"--query={query}", *words, **options)

    def order(self, what: str, home: Home | None = None, **parameters: Any) -> dict[str, Any]:
        """Give an order to the gateway's process (`gateway_host.py`)."""
        return ask_gateway(home or self.home, what, **parameters)

    # cassettes and what the model does

    def cassette(self, words: str, *steps: Any, home: Home | None = None) -> str:
        """Keep a cassette whose request holds these words, and what the model does when it is asked them."""
        name = words.replace(" ", "-")
        self.scripts.steps[words] = steps
        self.store = keep_cassette(home or self.home, name, f"{words}?", self.work, self.version)
        return name

    def write(self) -> tuple[str, dict[str, Any]]:
        return "write_file", {"path": str(self.made), "content": "a tool ran"}

    def check(self, ended: Ended | Any, code: int, *told: str) -> str:
        """Check a command's status and what it printed, and return that."""
        if isinstance(ended, subprocess.Popen):
            status, text = finish(ended)
        else:
            status, text = ended.code, ended.text
        self.assertEqual(status, code, f"{text}\n{gateway_log(self.home)[-1500:]}")
        for words in told:
            self.assertIn(words, text)
        return text

    def nothing_ran(self) -> None:
        self.assertFalse(self.made.exists(), "a tool ran")

    def never_asked(self, words: str) -> None:
        """No request with these words has come to the model."""
        self.assertEqual([words for body in self.model.requests if words in model.ask(body["messages"]).text], [])

    def returned(self, words: str) -> list[str]:
        """What the tools of the turn with these words gave the model."""
        return returned_to_model(self.model.requests, words)

    def no_litter(self) -> None:
        left = [
            str(path.relative_to(self.store.root))
            for part in ("claims", "ledgers", "pings")
            for path in (self.store.root / part).iterdir()
        ]
        self.assertEqual((left, self.store.arm_path.exists()), ([], False))

    def live_turn(self, words: str) -> None:
        """Let another session of the gateway write a file, and see it there."""
        path = self.work / f"{words}.live"
        self.scripts.steps[words] = [calls(("write_file", {"path": str(path), "content": "live"})), Step(text="done")]
        self.assertEqual(self.chat(words).out, "done\n")
        self.assertTrue(path.exists(), "another session's tool did not run")

    @contextlib.contextmanager
    def held(self, words: str) -> Any:
        """Hold the next client that brings these words at the gateway's door; what is given waits until it is there.

        It is let in at the end of the block.
        """
        self.order("do_hold", words=words)

        def wait() -> None:
            self.assertTrue(self.order("do_held")["came"])

        try:
            yield wait
        finally:
            self.order("do_release")

    def served(self) -> Callable[[int], None]:
        """Return what waits until so many more prompts and commands have been served to their end."""
        before = self.order("do_look")["done"]

        def wait(more: int) -> None:
            self.assertTrue(self.order("do_wait", served=before + more)["done"])

        return wait


def write_launcher(folder: Path, python: Path) -> Path:
    """Make an executable `hermes` that is the stand-in; return the folder to put on PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "hermes"
    path.write_text(f'#!/bin/sh\nexec "{python}" -P "{HERE / "gateway_client.py"}" "$0" "$@"\n')
    path.chmod(0o755)
    return folder


def gateway_state(home: Home) -> dict[str, Any]:
    """The port and the process id of a home's gateway, or {}."""
    try:
        return dict(json.loads((home.path / "gateway-stand-in.json").read_text(encoding="utf-8")))
    except OSError:
        return {}


def ask_gateway(home: Home, what: str, **parameters: Any) -> dict[str, Any]:
    import socket

    with socket.create_connection(("127.0.0.1", gateway_state(home)["port"]), 5) as wire:
        wire.settimeout(PATIENCE)
        with wire.makefile("rw", encoding="utf-8") as lines:
            lines.write(json.dumps({"op": what, **parameters}) + "\n")
            lines.flush()
            answer = dict(json.loads(lines.readline()))
    if "error" in answer:
        raise AssertionError(f"{what}: {answer['error']}\n{gateway_log(home)[-3000:]}")
    return answer


def gateway_log(home: Home) -> str:
    try:
        return (home.path / "gateway-stdio.log").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def stop_gateway(home: Home) -> None:
    """Kill a home's gateway, if it has one, and wait for its end."""
    pid = gateway_state(home).get("pid")
    if not pid:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        gone = threading.Event()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not gone.wait(0.02):
            os.kill(pid, 0)
