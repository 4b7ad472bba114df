"""What the trust tests share: cassettes made by hand, a model that follows a script per request, and commands."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any
from collections.abc import Callable, Mapping, Sequence

from tests.support import load_demo, load_plugin

from .host import PATIENCE, Home

model = load_demo("model")
load_plugin()
from session_cassettes.cassette_store import Call, Cassette, Recorder, Store  # noqa: E402

Step, ToolCall = model.Step, model.ToolCall
MISS = '{"status": "unavailable", "message": "cassette miss"}'


class Scripts:
    """A brain for `ScriptedModel`: each request has steps of its own, found by the words it starts with.

    Hermes's review of a conversation is asked as "review of " its first request.

    A step is a `Step`, or is called for one; it may wait there.
    """

    def __init__(self) -> None:
        self.steps: dict[str, Sequence[Any]] = {}

    def __call__(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[str]) -> Any:
        asked = model.ask(messages).text
        if asked.startswith("Review the conversation"):
            said = [model.plain_text(message.get("content")) for message in messages if message.get("role") == "user"]
            asked = f"review of {said[0]}"
        steps = next(
            (steps for words, steps in self.steps.items() if asked.startswith(words)), [Step(text="nothing to do")]
        )
        taken = sum(1 for _ in model.batches(messages))
        step = steps[min(taken, len(steps) - 1)]
        return step(messages, tools) if callable(step) else step


class Pause:
    """A step that tells that it was reached, and goes on when it is let."""

    def __init__(self, step: Any) -> None:
        self.step, self.reached, self.go = step, threading.Event(), threading.Event()

    def __call__(self, *_: Any) -> Any:
        self.reached.set()
        self.go.wait(PATIENCE)
        return self.step

    def wait(self) -> None:
        if not self.reached.wait(PATIENCE):
            raise AssertionError("the model was never asked")


def calls(*wanted: tuple[str, Mapping[str, Any]]) -> Any:
    return Step(calls=[ToolCall(tool, args) for tool, args in wanted])


def keep_cassette(home: Home, name: str, request: str, workspace: Path, version: str) -> Store:
    """Put a cassette into a home: one recorded read of a.txt, and the pin 8080."""
    store = Store(home.data)
    store.prepare()
    store.save(
        Cassette(
            name,
            request,
            "it is 8080",
            cwd=str(workspace),
            recorder=Recorder(version, "linux", "rg"),
            pins=("8080",),
            calls=(Call("read_file", {"path": "a.txt"}, "recorded: 8080"),),
        ),
        overwrite=True,
    )
    return store


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a command; return its status and everything it printed."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out + err


def interrupt(process: subprocess.Popen[str], number: int = signal.SIGINT) -> None:
    os.kill(process.pid, number)


def returned_to_model(requests: Sequence[Mapping[str, Any]], words: str) -> list[str]:
    """What the tools of the turn with these words gave the model, from its last request."""
    mine = [body["messages"] for body in requests if body.get("tools") and words in model.ask(body["messages"]).text]
    return [text for batch in model.batches(mine[-1]) for text in batch] if mine else []


Check = Callable[..., None]
