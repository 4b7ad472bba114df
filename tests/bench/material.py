"""Texts, cassettes and folders that look like those of real work, the same in every run."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Iterator

import tests.support  # noqa: F401  loads the plugin

from session_cassettes.cassette_store import Arm, Call, Cassette, Facts, Recorder, Snapshot, SnapshotFile

HOST = Recorder("0.22.2.post1", "linux", "rg")
FACTS = Facts("1.0.0", "f" * 64, 1, False, HOST.hermes)
CWD = "/home/person/shop"
WORDS = (
    "account address amount archive basket branch cache charge client config count cursor customer "
    "deadline delivery discount driver entry event export factory field filter folder handler header "
    "index invoice item journal ledger limit logger manager message method module number offset order "
    "owner packet parser payment policy price process profile queue receipt record region report "
    "request result schema search section server session signal socket source status storage stream "
    "supplier table target ticket timeout token total transfer update user value vendor version worker"
).split()


def source(seed: int, size: int) -> str:
    """Return about `size` characters that read like a Python module."""
    pick = random.Random(seed)
    lines = [f'"""Handles the {pick.choice(WORDS)} of each {pick.choice(WORDS)}."""', "", "import json", ""]
    length = sum(map(len, lines)) + len(lines)
    while length < size:
        for line in _function(pick):
            lines.append(line)
            length += len(line) + 1
    return "\n".join(lines)[: size - 1] + "\n"


def _function(pick: random.Random) -> Iterator[str]:
    one, two, three, four = (pick.choice(WORDS) for _ in range(4))
    yield f"def {one}_{two}(self, {three}: str, {four}=None):"
    yield f'    """Return the {two} of a {one}, or None."""'
    yield f"    {two} = self.{three}.get({three!r}, {pick.randrange(10_000)})"
    yield f'    if {two} is None or not {four}:  # the "{one}" may be missing'
    yield f'        raise ValueError(f"no {two} for {{{three}!r}} in {one}")'
    yield f"    return json.dumps({{'{one}': {two}, '{four}': {four}}})"
    yield ""


def files(megabytes: float, each: int = 4096) -> dict[str, str]:
    """Return texts by path: 4 KB each unless told otherwise, in folders of twenty."""
    number = int(megabytes * 1024 * 1024 / each)
    return {
        f"{WORDS[n // 20 % len(WORDS)]}/part{n // 2000}/{WORDS[n % len(WORDS)]}_{n}.py": source(n, each)
        for n in range(number)
    }


def write_files(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def args(number: int) -> dict[str, Any]:
    """The arguments of a read that is like no other."""
    return {"path": f"server/handlers/{WORDS[number % len(WORDS)]}_{number}.py", "offset": 1 + number % 7, "limit": 200}


def calls(number: int, size: int = 1024) -> tuple[Call, ...]:
    """Reads whose results have `size` characters, no two alike."""
    return tuple(Call("read_file", args(n), result(n, size)) for n in range(number))


def result(number: int, size: int) -> str:
    """What a read returned: an object whose text has numbered lines."""
    head, lines = '{"content": ', source(number, size).split("\n")
    page = "\n".join(f"{at}|{line}" for at, line in enumerate(lines, 1))
    room = size - len(head) - len(', "total_lines": 100}')
    while len(json.dumps(page)) > room:
        page = page[: len(page) - max(1, len(json.dumps(page)) - room)]
    return f'{head}{json.dumps(page)}, "total_lines": 100}}'


def snapshot(megabytes: float, each: int = 4096) -> Snapshot:
    texts = files(megabytes, each)
    kept = {path: SnapshotFile(text, len(text), 1.7e9 + n) for n, (path, text) in enumerate(texts.items())}
    return Snapshot(kept)


def cassette(name: str, recorded: tuple[Call, ...] = (), kept: Snapshot = Snapshot()) -> Cassette:
    return Cassette(
        name,
        "Which port?",
        "8080",
        "careful",
        CWD,
        (),
        "2025-01-01T00:00:00+00:00",
        HOST,
        recorded,
        (),
        kept,
        ("8080",),
        (),
        FACTS.plugin,
    )


def arm() -> Arm:
    return Arm("a" * 24, "run", "bench", "Which port?", "process", 0.0, 900.0, FACTS.plugin, FACTS.fingerprint)
