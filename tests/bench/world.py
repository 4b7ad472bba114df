"""The rows of `hermes cassette check`, and of the note that `run` makes in passing.

Those without a lane have no secrets in their files, so that Hermes's redaction
has nothing to say; `beside_redaction` is measured in a lane, with one in ten.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Callable, Iterator

from . import material
from .measure import Goal, Row, interleaved, row

from session_cassettes.cassette_store import Call, Cassette, Recorder, Snapshot, SnapshotFile, Store
from session_cassettes.snapshot import Redactor, Workspace, take_snapshot
from session_cassettes.suite.check import changed_files
from session_cassettes.suite.drift import compare_files

#: What Hermes masks, in its own form of a token.
SECRET = "ghp_" + "a1B2c3" * 6


def folder_of(folder: Path, megabytes: float) -> Cassette:
    """Write files of 4 KB, and return a cassette that kept them as they are."""
    texts = material.files(megabytes)
    material.write_files(folder, texts)
    kept = {
        name: SnapshotFile(text, len(text), (folder / name).stat().st_mtime, False, ()) for name, text in texts.items()
    }
    made = material.cassette("bench", material.calls(20), Snapshot(kept))
    return made._replace(cwd=str(folder))


def touch(folder: Path) -> None:
    """Give all files another time, as a fresh clone has it."""
    for path in folder.rglob("*.py"):
        os.utime(path, (5, 5))


def passing(count: int, folder: Path) -> Iterator[Row]:
    """The note that `run` makes: 100 files as they were, then with another time each."""
    kept = folder_of(folder, 100 / 256)

    def noting() -> None:
        if changed_files(kept, str(folder), "") is not None:
            raise RuntimeError("the folder has changed")

    def looking() -> None:
        for name in kept.snapshot.files:
            os.stat(folder / name)

    def reading() -> None:
        for name in kept.snapshot.files:
            (folder / name).read_bytes()

    for title, reference, doing in (
        (" as they were", "a stat of each", looking),
        (", other times", "reading them", reading),
    ):
        pairs = interleaved(lambda: noting, lambda doing=doing: doing, count)
        yield row(f"the note of a run, 100 files{title}", reference, pairs, "ms", "wall", Goal("most", 5))
        touch(folder)


def checking(count: int, folder: Path) -> Iterator[Row]:
    """All that `check` does for a cassette of 2,048 files from the disk on."""
    files = folder / "files"
    store = Store(folder / "store")
    store.prepare()
    store.save(folder_of(files, 8), overwrite=True)
    paths = [*files.rglob("*.py")]

    def check() -> None:
        kept, _ = store.read("bench")
        drift = compare_files(kept, Workspace.here(kept.cwd), lambda: None, "")
        if drift.changes or drift.files != 2048:
            raise RuntimeError(f"{len(drift.changes)} of {drift.files} files are told as changed")

    def reading() -> None:
        json.loads(store.path("bench").read_bytes())
        for path in paths:
            path.read_bytes()

    pairs = interleaved(lambda: check, lambda: reading, count)
    yield row("check of 2,048 files, 8 MB", "json.loads, reading them", pairs, "ms", "wall", Goal("most", 2000))


def beside_redaction(count: int, workspace: Path, redact: Redactor, version: str) -> Iterator[Row]:
    """`check` in a lane: one file in ten holds a secret; then with another time each, as in a fresh clone."""
    names = [path.relative_to(workspace).as_posix() for path in sorted(workspace.rglob("*.py"))]
    for name in names[::10]:
        with open(workspace / name, "a") as file:
            file.write(f"TOKEN = '{SECRET}'\n")
    calls = [Call("search_files", {}, json.dumps({"files": names}))]
    place = Workspace.here(str(workspace))
    taken = take_snapshot(calls, place, redact=redact, deadline=time.monotonic() + 600)
    kept = Cassette("bench", "q", "a", cwd=str(workspace), recorder=Recorder(version, sys.platform), snapshot=taken)

    def check() -> None:
        drift = compare_files(kept, place, lambda: redact, version)
        if drift.changes or drift.files < len(names) // 2:
            raise RuntimeError(f"{len(drift.changes)} of {drift.files} files are told as changed")

    def reading() -> None:
        for name in names:
            (workspace / name).read_bytes()

    for title in (f"check of {len(taken.files):,} files, one in ten masked", "the same, all of another time"):
        pairs = interleaved(lambda: check, lambda: reading, count)
        goal = Goal("most", 2000)
        yield row(title, "reading them", pairs, "ms", "wall", goal)
        touch(workspace)


#: For the group "check": what is measured in a folder of its own.
ROWS: tuple[Callable[[int, Path], Iterator[Row]], ...] = (passing, checking)
