"""The rows that start the real `hermes` command of a lane, with a scripted model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

from tests.lanes.case import copy_shop, model
from tests.lanes.host import Home, run_hermes
from tests.lanes.venvs import lane_python, scratch as scratch_home
from tests.support import REPO

from .core import fill, scratch
from .measure import Goal, Maker, Pairs, Row, Time, interleaved, row
from .suites import keep_runs

from session_cassettes.cassette_store import Store

Found = Iterator[Row]
QUESTION = "Where is the auth handler and what port does it bind?"
NOOP_PLUGIN = """
def register(ctx):
    ctx.register_cli_command("bench-noop", "Do nothing", lambda parser: None, lambda args: None, "Does nothing.")
"""


class Commands:
    """The `hermes` of one lane, in a home of its own, with the shop to work in."""

    def __init__(self, version: str, home: Home, folder: Path, served: Any) -> None:
        self.version, self.home, self.served = version, home, served
        self.shop = copy_shop(folder / "tinyshop")

    def run(self, *words: str) -> str:
        """Run one command to its end.  :raises RuntimeError: if it fails."""
        done = run_hermes(self.version, self.home, *words, cwd=self.shop, patience=3_600)
        if done.returncode:
            raise RuntimeError(f"hermes {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def timed(self, *words: str) -> Maker:
        return lambda: lambda: self.run(*words)


@contextmanager
def commands(version: str) -> Iterator[Commands]:
    """Start a model, and make a home with the plugin and a command that does nothing."""
    with model.ScriptedModel() as served, scratch() as folder:
        home = Home(served.base_url)
        try:
            _add_noop(home.path)
            yield Commands(version, home, folder, served)
        finally:
            home.close()


def _add_noop(home: Path) -> None:
    folder = home / "plugins" / "bench-noop"
    folder.mkdir()
    (folder / "plugin.yaml").write_text(
        "name: bench-noop\nversion: 1.0.0\ndescription: Does nothing.\nkind: standalone\n"
    )
    (folder / "__init__.py").write_text(NOOP_PLUGIN)
    config = home / "config.yaml"
    text = config.read_text("utf-8")
    enabled = f"enabled: [{scratch_home.PLUGIN}]"
    if enabled not in text:
        raise RuntimeError("the home's configuration names the plugin in another way")
    config.write_text(text.replace(enabled, f"enabled: [{scratch_home.PLUGIN}, bench-noop]"), "utf-8")


def replaying(count: int, version: str) -> Found:
    """A whole run of the shop's cassette, beside a chat that asks the same."""
    with commands(version) as made:
        made.run("cassette", "record", "shop", "--query", QUESTION)
        made.run("cassette", "pin", "shop", "8080")
        pairs = interleaved(
            made.timed("cassette", "run", "shop"), made.timed("chat", "-Q", f"--query={QUESTION}"), count
        )
        yield row(
            "hermes cassette run",
            "hermes chat -Q, the same turn live",
            pairs,
            "s",
            "wall",
            Goal("times", 1.15),
            Goal("more", 0.7),
        )
        yield row("hermes cassette run, processor time", "hermes chat -Q, the same turn live", pairs, "s", "cpu")


class Overlap:
    """Starts `hermes chat` so that sessions overlap: two at a time, the next when the one before has asked the model.

    That is how a suite's sessions overlap; `free` starts the next at once.
    """

    def __init__(self, made: Commands, served: Any) -> None:
        self._made = made
        self._arming, self._asked = threading.Lock(), threading.Event()
        self._free, self._failed = False, ""
        served.brain = self._think

    def _think(self, messages: Any, tools: Any) -> Any:
        if tools and not any(model.batches(messages)):  # without tools Hermes asks for a title, or the like
            self._asked.set()
        return model.think("careful", messages, tools)

    def _chat(self, *words: str) -> None:
        done = run_hermes(self._made.version, self._made.home, *words, cwd=self._made.shop)
        if done.returncode not in (0, -11):  # a library of Hermes 0.22 now and then crashes when all is done
            self._failed = done.stdout + done.stderr

    def _one(self, words: Sequence[str]) -> None:
        if self._free:
            self._chat(*words)
            return
        with self._arming:
            self._asked.clear()
            running = threading.Thread(target=self._chat, args=words)
            running.start()
            self._asked.wait(300)
        running.join()

    def all(self, sessions: Sequence[Sequence[str]], free: bool) -> None:
        """Run all of them, two at a time."""
        self._free = free
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._one, sessions))
        if self._failed:
            raise RuntimeError(f"a chat failed: {self._failed}")


def suites(count: int, version: str) -> Found:
    """A suite of 24 runs (3 cassettes, 2 arms, 4 tries), beside 24 chats that ask the same with the same overlap."""
    names, skill = ("one", "two", "three"), "tinyshop-layout"
    with commands(version) as made:
        shutil.copytree(REPO / "demo" / "skills" / skill, made.home.path / "skills" / skill)
        for name in names:
            made.run("cassette", "record", name, "--query", QUESTION)
            made.run("cassette", "pin", name, "8080")
        chats = [("chat", "-Q", f"--query={QUESTION}"), ("chat", "-Q", f"--query={QUESTION}", f"--skills={skill}")]
        overlap = Overlap(made, made.served)
        suite = ("cassette", "run", *names, "--arm=plain=", f"--arm=skilled={skill}", "--repeat=4", "--jobs=2")
        for free in (False, True):
            reference = "24 hermes chat -Q, 2 at a time" + ("" if free else ", as they overlap in a suite")
            pairs = interleaved(
                made.timed(*suite), lambda free=free: lambda: overlap.all(chats * 12, free), max(1, count // 8)
            )
            goals = () if free else (Goal("times", 1.1),)
            yield row("a suite run of 24, --jobs 2", reference, pairs, "s", "wall", *goals)


def listing(count: int, version: str) -> Found:
    """`list` over 200 MB of cassettes, beside a command that does nothing."""
    with commands(version) as made:
        fill(Store(made.home.data), 200)
        if made.run("cassette", "list").count("bench-") != 200:
            raise RuntimeError("the list does not name 200 cassettes")
        pairs = interleaved(made.timed("cassette", "list"), made.timed("bench-noop"), count)
        yield row(
            "hermes cassette list, 200 of 1 MB",
            "hermes with a no-op plugin command",
            pairs,
            "s",
            "wall",
            Goal("more", 0.3),
        )


def remembering(count: int, version: str) -> Found:
    """`history` of a thousand runs, beside a command that does nothing."""
    with commands(version) as made:
        store = fill(Store(made.home.data), 1)
        keep_runs(store, "bench-0", 1_000)
        if "1,000 runs" not in made.run("cassette", "history", "bench-0"):
            raise RuntimeError("the history does not tell of 1,000 runs")
        pairs = interleaved(made.timed("cassette", "history", "bench-0"), made.timed("bench-noop"), count)
        reference = "hermes with a no-op plugin command"
        yield row("hermes cassette history, 1,000 runs", reference, pairs, "s", "wall", Goal("more", 0.5))


def starting(count: int, version: str) -> Found:
    """Import and `register`, in a process that has loaded Hermes."""
    home = Home("http://127.0.0.1:9/v1")
    try:
        plugin = home.path / "plugins" / scratch_home.PLUGIN
        environ = scratch_home.clean_environment(home.path)
        words = [str(lane_python(version)), "-P", str(REPO / "tests" / "bench" / "start.py"), str(plugin)]
        found = [_started(words, environ) for _ in range(count + 1)][1:]
    finally:
        home.close()
    pairs = Pairs(*(tuple(Time(*one[name]) for one in found) for name in ("ours", "hermes")))
    yield row("plugin import and register", "Hermes's own imports", pairs, "ms", "cpu", Goal("most", 15))


def _started(words: list[str], environ: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        words,
        cwd=os.path.dirname(words[-1]),
        env=environ,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the plugin could not be loaded: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


#: Name of a group to what measures it.
GROUPS: dict[str, Callable[[int, str], Found]] = {
    "start": starting,
    "list": listing,
    "history": remembering,
    "run": replaying,
    "suite": suites,
}
