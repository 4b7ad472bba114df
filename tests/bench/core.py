"""The rows that need no Hermes: what the plugin costs in a tool's path, and on the disk."""

from __future__ import annotations

import copy
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator

from tests.support import REPO, FakeHost

from . import material, suites, world
from .measure import Curve, Goal, Maker, Row, curve, interleaved, row

from session_cassettes.cassette_store import NAMES_LIMIT, Cassette, Name, Store
from session_cassettes.hooks import make_cassette
from session_cassettes.middleware import Bindings, Recording, Replay
from session_cassettes.snapshot import Workspace

#: Calls that one measurement asks for.
ASKED = 2_000
#: Calls of the recorded turn.
RECORDED = 1_000
SIZES = (10, 100, 1_000, 5_000)
MEGABYTES = (1, 4, 8)

Found = Iterator["Row | Curve"]


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that vanishes."""
    folder = Path(tempfile.mkdtemp(prefix="cassettes-bench-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def call_noop(next_call: Any = None, args: Any = None, **_: Any) -> Any:
    """The least that a callback can do."""
    return next_call(args)


# --- a tool's path ------------------------------------------------------------------


def pass_through(count: int) -> Found:
    """An unbound session's calls, in turns of ten, through the chain that the tests' host copies."""
    turns = [f"session:{number}" for number in range(ASKED // 10)]
    wanted = material.args(7)

    def calling(callback: Callable[..., Any]) -> Maker:
        def make() -> Callable[[], None]:
            host = FakeHost({"read_file": lambda args: "text"})
            host.ctx.register_middleware("tool_execution", callback)

            def run() -> None:
                for turn in turns:
                    for _ in range(10):
                        host.call(None, "read_file", wanted, "call", session_id="session", turn_id=turn)

            return run

        return make

    pairs = interleaved(calling(Bindings().tool_execution), calling(call_noop), count, ASKED)
    yield row("pass-through of a tool call", "the tests' chain, a no-op callback", pairs, "us", "cpu", Goal("more", 3))


def _record(callback: Callable[..., Any], number: int, results: list[str]) -> None:
    """Let a turn's calls come by, each with its own result."""
    for at in range(number):
        found = results[at % RECORDED]
        callback(
            tool_name="read_file",
            args=material_args[at % RECORDED],
            next_call=lambda _, found=found: found,
            turn_id="turn",
            session_id="session",
            tool_call_id=f"call_{at}",
            task_id="",
            api_request_id="",
        )


material_args = [material.args(number) for number in range(RECORDED)]


def recorder() -> tuple[Callable[..., Any], Recording]:
    """Return the callback of a process in which one turn is recorded."""
    bindings, recording = Bindings(), Recording("bench", "turn", "session", "Which port?")
    bindings.record(recording)
    return bindings.tool_execution, recording


def _deep_copier() -> Callable[..., Any]:
    kept: list[Any] = []

    def callback(tool_name: str = "", args: Any = None, next_call: Any = None, **_: Any) -> Any:
        copied = copy.deepcopy(args)
        result = next_call(args)
        kept.append((tool_name, copied, result))
        return result

    return callback


def recording(count: int) -> Found:
    """A recorded turn's calls, without and with its save."""
    results = [material.result(number, 1024) for number in range(RECORDED)]

    def ours(number: int = RECORDED) -> Maker:
        return lambda: lambda callback=recorder()[0]: _record(callback, number, results)

    def reference() -> Callable[[], None]:
        callback = _deep_copier()
        return lambda: _record(callback, RECORDED, results)

    yield row(
        "record a call of 1 KB, in the tool's path",
        "a deep copy of the arguments, an append",
        interleaved(ours(), reference, count, RECORDED),
        "us",
        "cpu",
        Goal("times", 2),
        Goal("most", 6),
    )
    yield curve(
        "record a call, in the tool's path",
        "us",
        "calls",
        {size: (_repeated(ours(size), ASKED // size or 1), size * (ASKED // size or 1)) for size in SIZES},
        count,
        1.2,
    )
    with scratch() as folder:
        yield from _saving(count, results, folder)


def _repeated(make: Maker, times: int) -> Maker:
    """So much that the clock is fine enough."""

    def many() -> Callable[[], None]:
        actions = [make() for _ in range(times)]

        def run() -> None:
            for action in actions:
                action()

        return run

    return many


def saver(store: Store, results: list[str], number: int = RECORDED) -> Maker:
    """A whole turn: its calls, and at its end the cassette."""

    def make() -> Callable[[], None]:
        callback, recording = recorder()

        def run() -> None:
            _record(callback, number, results)
            cassette = make_cassette(recording, recording.close(), "8080", "", material.FACTS.plugin)
            store.save(cassette, overwrite=True)

        return run

    return make


def _saving(count: int, results: list[str], folder: Path) -> Found:
    store = Store(folder)
    store.prepare()
    saver(store, results)()()
    data = store.path("bench").read_bytes()

    def put(what: bytes) -> None:
        with open(folder / "plain", "wb") as file:
            file.write(what)
            file.flush()
            os.fsync(file.fileno())

    def writing() -> Callable[[], None]:
        return lambda: put(data)

    def least() -> Callable[[], None]:
        """What no JSON file of a recorded turn can do without."""

        def run() -> None:
            callback, recording = recorder()
            _record(callback, RECORDED, results)
            calls = [{"tool": slot.tool, "args": slot.args, "result": slot.result} for slot in recording.close()]
            put(json.dumps(calls, ensure_ascii=False).encode())

        return run

    pairs = interleaved(saver(store, results), writing, count, RECORDED)
    yield row(
        "the same turn with its save, a call",
        "writing the same bytes with a flush to disk",
        pairs,
        "us",
        "wall",
        Goal("times", 2),
        Goal("most", 20),
    )
    pairs = interleaved(saver(store, results), least, count, RECORDED)
    yield row("the same turn with its save, a call", "the recording, one json.dumps, a flush", pairs, "us", "wall")
    size = len(data) / 1e6
    yield Row(
        "the saved turn of 1,000 calls",
        "its results",
        "MB",
        "size",
        [size],
        [sum(map(len, results)) / 1e6],
        (Goal("most", 1.3),),
    )
    yield curve(
        "record a turn and save it, a call",
        "us",
        "calls",
        {size: (saver(store, results, size), size) for size in SIZES[1:]},
        count,
        1.2,
    )


# --- replay ------------------------------------------------------------------------


def replays(number: int) -> list[Replay]:
    """As many replays of a cassette with `number` calls as answer `ASKED` calls once each."""
    kept = material.cassette("bench", material.calls(number, 100))
    workspace = Workspace(kept.cwd)
    return [
        Replay(material.arm(), "turn", "session", "careful", material.FACTS, kept, workspace)
        for _ in range(max(1, ASKED // number))
    ]


def asking(number: int) -> Maker:
    """Ask for recorded calls, none of them twice in one replay."""
    wanted = [material.args(at) for at in range(0, number, max(1, number // ASKED))][:ASKED]

    def make() -> Callable[[], None]:
        made = replays(number)

        def run() -> None:
            for replay in made:
                for one in wanted:
                    replay.answer("read_file", one, "session")

        return run

    return make


def exact_hit(count: int) -> Found:
    """A recorded call asked again, in cassettes of all sizes."""
    for number in SIZES:
        wanted = [material.args(at) for at in range(0, number, max(1, number // ASKED))][:ASKED]
        known = {json.dumps(material.args(at), sort_keys=True): at for at in range(number)}

        def reference(wanted: Any = wanted, known: Any = known, number: int = number) -> Callable[[], None]:
            def run() -> None:
                for _ in range(max(1, ASKED // number)):
                    for one in wanted:
                        known.get(json.dumps(one, sort_keys=True))

            return run

        pairs = interleaved(asking(number), reference, count, max(1, ASKED // number) * len(wanted))
        yield row(
            f"exact hit, {number:,} recorded calls",
            "json.dumps(args, sort_keys=True), a look-up",
            pairs,
            "us",
            "cpu",
            Goal("times", 3),
            Goal("most", 10),
        )
    yield curve(
        "exact hit",
        "us",
        "calls",
        {number: (asking(number), max(1, ASKED // number) * min(number, ASKED)) for number in SIZES},
        count,
        1.2,
    )


# --- the store ---------------------------------------------------------------------


def _kept(megabytes: float) -> Cassette:
    """A cassette with so much snapshot, and half as much again of results."""
    size = 48 * 1024
    return material.cassette(
        f"of-{megabytes}", material.calls(int(megabytes * 1.5 * 1024 * 1024 / size), size), material.snapshot(megabytes)
    )


def loading(count: int) -> Found:
    """A cassette read from disk, as a claim does it."""
    with scratch() as folder:
        store = Store(folder)
        store.prepare()
        names = {}
        for megabytes in MEGABYTES:
            kept = _kept(megabytes)
            store.save(kept, overwrite=True)
            names[megabytes] = kept.name
        name = names[MEGABYTES[-1]]

        def reading(name: str) -> Maker:
            return lambda: lambda: store.read(name)

        def binding() -> Any:
            kept, _ = store.read(name)
            return Replay(material.arm(), "turn", "session", "", material.FACTS, kept, Workspace(kept.cwd))

        def parsing(name: str) -> Maker:
            return lambda: lambda: json.loads(store.path(name).read_bytes())

        reference = parsing(name)
        yield row(
            "load a cassette of 8 MB snapshot, 12 MB results",
            "json.loads of the file",
            interleaved(reading(name), reference, count),
            "ms",
            "cpu",
            Goal("times", 1.5),
        )
        yield row(
            "load it and bind a turn to it",
            "json.loads of the file",
            interleaved(lambda: binding, reference, count),
            "ms",
            "cpu",
        )
        yield curve(
            "load a cassette, a MB of snapshot",
            "ms",
            "MB",
            {size: (reading(name), size) for size, name in names.items()},
            count,
            1.2,
        )
        yield curve(
            "json.loads of its file, a MB of snapshot",
            "ms",
            "MB",
            {size: (parsing(name), size) for size, name in names.items()},
            count,
            1.2,
        )


def loading_whole(count: int) -> Found:
    """Cassettes of a whole folder: 24 MB in files of 4 KB and of 16 KB, and as many names as are kept at most."""
    with scratch() as folder:
        store = Store(folder)
        store.prepare()
        named = {"src": Name("folder", 0, 1.7e9)}
        named |= {f"src/{at % 97}_{at}.py": Name("file", 4_000 + at, 1.7e9 + at / 7) for at in range(NAMES_LIMIT - 1)}
        for title, each, names in (
            ("24 MB in 6,144 files", 4_096, None),
            ("24 MB in 1,536 files", 16_384, None),
            ("24 MB in 1,536 files, 20,000 names", 16_384, named),
            ("20,000 names alone", 0, named),
        ):
            kept = material.snapshot(24, each) if each else material.snapshot(0)
            made = material.cassette("whole", material.calls(20), kept._replace(names=names, whole=True))
            store.save(made, overwrite=True)
            del kept, made
            pairs = interleaved(
                lambda: lambda: store.read("whole"), lambda: lambda: json.loads(store.path("whole").read_bytes()), count
            )
            yield row(f"--whole: load, {title}", "json.loads of the file", pairs, "ms", "cpu", Goal("times", 1.5))
            pairs = interleaved(
                lambda: lambda: store.summary("whole"), lambda: lambda: store.path("whole").read_bytes(), count
            )
            yield row(f"--whole: its row of list, {title}", "reading the file", pairs, "ms", "wall", Goal("most", 50))


def listing(count: int, number: int = 200) -> Found:
    """What `list` reads of 200 cassettes of 1 MB, within one process."""
    with scratch() as folder:
        store = fill(Store(folder), number)

        def summing() -> None:
            for name in store.names():
                store.summary(name)

        def reading() -> None:
            for name in store.names():
                store.path(name).read_bytes()

        pairs = interleaved(lambda: summing, lambda: reading, count)
        yield row(f"the rows of {number} cassettes of 1 MB", "reading the files", pairs, "ms", "wall")


def fill(store: Store, number: int) -> Store:
    """Keep so many cassettes of 1 MB each."""
    store.prepare()
    recorded = material.calls(10, 50_000)
    kept = material.snapshot(0.5)
    for at in range(number):
        store.save(material.cassette(f"bench-{at}", recorded, kept), overwrite=True)
    return store


def checking(count: int) -> Found:
    """What of a recording's files has changed."""
    for measure in world.ROWS:
        with scratch() as folder:
            yield from measure(count, folder)


# --- memory ----------------------------------------------------------------------


def memory(_: int, replayed: int = 1_000) -> Found:
    """What a host has in memory after so many replays, measured in a process of its own."""
    words = [sys.executable, "-m", "tests.bench.memory", str(replayed)]
    with scratch() as folder:
        environ = {**os.environ, "HERMES_HOME": str(folder), "PYTHONPATH": str(REPO)}
        done = subprocess.run(words, cwd=REPO, env=environ, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    kept = {
        "replays": replayed,
        "cassette_bytes": found["cassette"],
        "resident_before_kb": found["resident"][0],
        "resident_after_kb": found["resident"][1],
    }
    yield Row(
        f"memory in use after {replayed:,} replays of 1 MB",
        "after the first 50",
        "KB",
        "size",
        [found["after"]],
        [found["before"]],
        (Goal("more", 500),),
        notes=kept,
    )


def reporting(count: int, runs: int = 10_000) -> Found:
    """A large suite's statistics and reports, and what they take of memory in a process of their own."""
    yield from suites.reporting(count, runs)
    words = [sys.executable, "-m", "tests.bench.suites", str(runs)]
    environ = {**os.environ, "PYTHONPATH": str(REPO)}
    done = subprocess.run(words, cwd=REPO, env=environ, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    yield Row(
        f"memory at the most with these {runs:,} runs",
        "with the runs alone",
        "MB",
        "size",
        [found["after"]],
        [found["before"]],
        (Goal("most", 200),),
    )


#: Name of a group to what measures it.
GROUPS: dict[str, Callable[[int], Found]] = {
    "pass": pass_through,
    "record": recording,
    "hit": exact_hit,
    "load": loading,
    "whole-load": loading_whole,
    "list": listing,
    "check": checking,
    "memory": memory,
    "reports": reporting,
}


def settle() -> None:
    """Take everything made so far out of the collector's sight."""
    gc.collect()
    gc.freeze()
