"""The rows that need Hermes's own code, measured inside a lane's Python.

Started by `run.py` with `-P`, so that Hermes finds its own modules; prints one
JSON object.  The home and the workspace lie in a folder of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the tests are a package of the repository
from tests.bench import material, world  # noqa: E402
from tests.bench.core import ASKED, MEGABYTES, call_noop, scratch, settle  # noqa: E402
from tests.bench.measure import Curve, Goal, Maker, Row, curve, interleaved, row  # noqa: E402
from tests.lanes.differential import hermes_version, prepare  # noqa: E402

sys.path.remove(str(ROOT))  # Hermes has a `cli` and a `hooks` of its own

from session_cassettes.cassette_store import Call, Recorder, Snapshot  # noqa: E402
from session_cassettes.middleware import Bindings  # noqa: E402
from session_cassettes.snapshot import Extent, Workspace, hermes_redactor, take_snapshot  # noqa: E402
from session_cassettes.suite.agreement import Shown  # noqa: E402
from session_cassettes.suite.masks import note_masks, read_masks  # noqa: E402
from session_cassettes.suite.names import list_names  # noqa: E402
from session_cassettes.suite.terminal import Terminal  # noqa: E402
from session_cassettes.synth_search import Synthesizer  # noqa: E402

Found = Iterator["Row | Curve"]
#: What a search is asked: words that some, many and no lines hold, patterns, lists, counts.
SEARCHES: dict[str, dict[str, Any]] = {
    "literal": {"pattern": "supplier_transfer"},
    "literal, many hits": {"pattern": "invoice"},
    "literal, no hit": {"pattern": "supplier_voucher"},
    "regex": {"pattern": r"def \w+_invoice\("},
    "regex, alternatives": {"pattern": r"raise ValueError.*voucher|def invoice_total"},
    "files with hits": {"pattern": "invoice_total", "output_mode": "files_only"},
    "count": {"pattern": "invoice_total", "output_mode": "count"},
    "files by name": {"pattern": "*invoice*.py", "target": "files"},
}


# --- a tool's path ----------------------------------------------------------------


def pass_through(count: int, _: Path) -> Found:
    """An unbound session's calls through Hermes's own chain."""
    run = importlib.import_module("hermes_cli.middleware").run_tool_execution_middleware
    plugins = importlib.import_module("hermes_cli.plugins")
    manager = plugins.get_plugin_manager()
    if hasattr(plugins, "_delivery_manager"):
        manager = plugins._delivery_manager()
    turns = [f"session:{number}" for number in range(ASKED // 10)]
    wanted = material.args(7)

    def calling(callback: Callable[..., Any]) -> Maker:
        def make() -> Callable[[], None]:
            manager._middleware["tool_execution"] = [callback]

            def calls() -> None:
                for turn in turns:
                    for _ in range(10):
                        run(
                            "read_file",
                            wanted,
                            lambda args: "text",
                            session_id="session",
                            turn_id=turn,
                            tool_call_id="call",
                            task_id="task",
                            api_request_id="",
                        )

            return calls

        return make

    pairs = interleaved(calling(Bindings().tool_execution), calling(call_noop), count, ASKED)
    manager._middleware.pop("tool_execution")
    yield row("pass-through of a tool call", "Hermes's chain, a no-op callback", pairs, "us", "cpu", Goal("more", 3))


# --- the snapshot ---------------------------------------------------------------------


def snapshots(count: int, workspace: Path) -> Found:
    """Reading and redacting what a turn named."""
    redact = hermes_redactor()
    if redact is None:
        raise RuntimeError("this Hermes has no redaction")
    place = Workspace.here(str(workspace))
    names = [str(path.relative_to(workspace)) for path in sorted(workspace.rglob("*.py"))]

    def taking(number: int) -> Maker:
        calls = [Call("search_files", {}, json.dumps({"files": names[:number]}))]
        return lambda: (
            lambda: _whole(
                take_snapshot(calls, place, redact=redact, deadline=time.monotonic() + 600, note_masks=note_masks),
                number,
            )
        )

    def reference() -> Callable[[], None]:
        def run() -> None:
            for name in names:
                redact((workspace / name).read_bytes().decode("utf-8"), False)

        return run

    yield row(
        f"snapshot of {len(names):,} files, 8 MB",
        "reading and Hermes's redaction of the same",
        interleaved(taking(len(names)), reference, count),
        "ms",
        "cpu",
        Goal("times", 1.2),
    )
    sizes = {size: (taking(len(names) * size // 8), size) for size in MEGABYTES}
    yield curve("snapshot, a MB", "ms", "MB", sizes, max(3, count // 3), 1.2)


def _whole(taken: Any, number: int) -> None:
    if len(taken.files) != number:
        raise RuntimeError(f"the snapshot has {len(taken.files)} of {number} files: {dict(taken.skipped)}")


def checks(count: int, workspace: Path) -> Found:
    """What has become of a recording's files, with Hermes's redaction."""
    redact = hermes_redactor(forced=True)
    if redact is None:
        raise RuntimeError("this Hermes has no redaction")
    yield from world.beside_redaction(count, workspace, redact, hermes_version())


# --- the whole folder ---------------------------------------------------------------------


def wholes(count: int, workspace: Path) -> Found:
    """The whole folder of 8 MB kept, its names alone, and what a replay of such a cassette costs."""
    redact = hermes_redactor()
    if redact is None:
        raise RuntimeError("this Hermes has no redaction")
    place = Workspace.here(str(workspace))
    names = [str(path.relative_to(workspace)) for path in sorted(workspace.rglob("*.py"))]
    shown: list[Call] = []

    def taking(whole: bool, number: int) -> Maker:
        extent = Extent(whole, True, list_names, Shown(shown, place))

        def run() -> None:
            taken = take_snapshot(
                shown, place, redact=redact, deadline=time.monotonic() + 600, note_masks=note_masks, extent=extent
            )
            _whole(taken, number)
            if taken.names is None or len(taken.names) < len(names):
                raise RuntimeError("there are no names")

        return lambda: run

    def reading() -> None:
        for name in names:
            redact((workspace / name).read_bytes().decode("utf-8"), False)

    def walking() -> None:
        for folder, _, files in os.walk(workspace):
            for name in files:
                os.lstat(os.path.join(folder, name))

    title = "--whole: snapshot and names of 2,048 files, 8 MB"
    pairs = interleaved(taking(True, len(names)), lambda: reading, count)
    yield row(title, "reading and Hermes's redaction of the same", pairs, "ms", "cpu", Goal("times", 1.2))
    pairs = interleaved(taking(False, 0), lambda: walking, count)
    yield row("names of 2,048 files", "os.walk and a status of each", pairs, "ms", "cpu")
    yield from _whole_answers(count, workspace)


def _whole_answers(count: int, workspace: Path) -> Found:
    live = Live()
    importlib.import_module("tools.terminal_tool")

    search, path = SEARCHES["literal"], next(iter(material.files(0.01)))
    searching = interleaved(
        lambda: lambda made=synthesizer(workspace): made.answer("search_files", search),
        lambda: lambda: live("search_files", search),
        count,
    )
    yield row("--whole: first search, 8 MB", "the live search_files", searching, "ms", "wall")
    command, made = {"command": f"cat {path}"}, synthesizer(workspace)
    answer = Terminal(made.source, ())
    answer(command, "")  # makes the index
    printing = interleaved(lambda: lambda: answer(command, ""), lambda: lambda: live("terminal", command), count)
    yield row("--whole: a terminal read", "the live terminal", printing, "ms", "wall", Goal("times", 0.5))


# --- synthesized answers ------------------------------------------------------------------


class Live:
    """The real tools.  A fresh task for each call keeps Hermes's guards against repeats silent."""

    def __init__(self) -> None:
        importlib.import_module("tools.file_tools")
        self._registry = importlib.import_module("tools.registry").registry
        self._coerce = importlib.import_module("model_tools").coerce_tool_args
        self._number = 0

    def __call__(self, tool: str, args: Mapping[str, Any]) -> str:
        self._number += 1
        entry = self._registry.get_entry(tool)
        return str(entry.handler(self._coerce(tool, dict(args)), task_id=f"bench-{self._number}"))


def synthesizer(workspace: Path, megabytes: float = 8) -> Synthesizer:
    """What answers from a snapshot of the first files."""
    place = Workspace.here(str(workspace))
    files = material.snapshot(megabytes).files  # a recording notes that nothing is masked in them
    kept = Snapshot({path: file._replace(masks=()) for path, file in files.items()})
    return Synthesizer(
        kept, place, Recorder(hermes_version(), sys.platform, "rg", False, place.fold_case), None, read_masks
    )


def searches(count: int, workspace: Path) -> Found:
    """Searches and reads that were not recorded, beside the live ones."""
    live, synth = Live(), synthesizer(workspace)
    synth.answer("search_files", {"pattern": "nothing at all"})  # makes the index

    def pair(tool: str, args: Mapping[str, Any], each: int = 1) -> Any:
        if not _alike(json.JSONDecoder().raw_decode(live(tool, args))[0], synth.answer(tool, args)):
            raise RuntimeError(f"the synthesized answer to {dict(args)} is another one than the live one")
        return interleaved(
            lambda: lambda: [synth.answer(tool, args) for _ in range(each)],
            lambda: lambda: [live(tool, args) for _ in range(each)],
            count,
            each,
        )

    for title, args in SEARCHES.items():
        yield row(
            f"synthesized search, {title}",
            "the live search_files",
            pair("search_files", args),
            "ms",
            "wall",
            Goal("times", 1),
        )
    for title, more in (("the whole", {}), ("a slice", {"offset": 40, "limit": 20})):
        args = {"path": next(iter(material.files(0.01))), **more}
        yield row(
            f"synthesized read, {title}",
            "the live read_file",
            pair("read_file", args, 5),
            "ms",
            "wall",
            Goal("times", 0.5),
        )
    yield row(
        "first search of a replay",
        "the live search_files",
        interleaved(
            lambda: lambda made=synthesizer(workspace): made.answer("search_files", SEARCHES["literal"]),
            lambda: lambda: live("search_files", SEARCHES["literal"]),
            count,
        ),
        "ms",
        "wall",
    )
    yield from _search_curves(count, workspace)


def _alike(theirs: dict[str, Any], ours: str) -> bool:
    """Whether both found the same number; their order is ripgrep's own."""
    mine = json.JSONDecoder().raw_decode(ours)[0]
    return list(mine) == list(theirs) and mine.get("total_count") == theirs.get("total_count")


def _search_curves(count: int, workspace: Path) -> Found:
    made = {size: synthesizer(workspace, size) for size in MEGABYTES}
    for title in ("literal", "literal, no hit", "regex", "count"):
        args = SEARCHES[title]
        sizes = {
            size: (
                lambda synth=synth, times=8 // size: lambda: [synth.answer("search_files", args) for _ in range(times)],
                8,
            )
            for size, synth in made.items()
        }
        yield curve(f"synthesized search, {title}, a MB", "ms", "MB", sizes, count, 1.2)


#: Name of a group to what measures it in this process.
GROUPS: dict[str, Callable[[int, Path], Found]] = {
    "pass": pass_through,
    "snapshot": snapshots,
    "search": searches,
    "whole": wholes,
    "check": checks,
}


def main() -> int:
    """Measure the groups `sys.argv[2:]`, each figure `sys.argv[1]` times."""
    count, groups = int(sys.argv[1]), sys.argv[2:]
    with scratch() as folder:
        workspace, own = folder / "workspace", folder / "own"
        workspace.mkdir()
        own.mkdir()
        material.write_files(workspace, material.files(8))
        prepare(workspace, own, True)
        found = []
        for group in groups:
            settle()
            found += [one.to_dict() for one in GROUPS[group](count, workspace)]
        os.chdir(ROOT)
    sys.stdout.write("\n" + json.dumps(found) + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    code = main()
    os._exit(code)  # Hermes's threads have nothing to do here
