"""Compares what a wandering model is told from a recording that knows its folder with what a real Hermes says.

Run it with the Python of an environment that has Hermes installed:

    python tests/lanes/wander.py CALLS SEED [--no-rg] [--rg-major N] [--part]

It copies packages of the standard library into a temporary folder, adds what
a work tree has beside its sources (hidden and ignored files, an empty folder,
a link, a secret, binaries), asks Hermes's own tools and ours, and prints one
JSON object: how many answers were equal (but for an order that the file system
decides), missed, or different, with examples.  With `--part` the texts of only
a few files are kept, so that searches of them are of a part.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.lanes import differential, terminal  # noqa: E402
from tests.lanes.refused import REFUSED  # noqa: E402

sys.path.pop(0)

from session_cassettes.cassette_store import Call, Name, Recorder, Snapshot  # noqa: E402
from session_cassettes.snapshot import IgnoreRules, Workspace, hermes_redactor, skip_reason, take_snapshot  # noqa: E402
from session_cassettes.suite.masks import note_masks, read_masks  # noqa: E402
from session_cassettes.suite.known_names import ENDING_LENGTH, KnownNames, name_ending  # noqa: E402
from session_cassettes.suite.terminal import Terminal  # noqa: E402
from session_cassettes.synth_search import Miss, Synthesizer  # noqa: E402

#: Packages of the standard library that make a tree each; whether git knows it; whether all in it is plain.
TREES = {
    "mail": ("email", False, True),
    "net": ("urllib json logging html", True, False),
    "tasks": ("asyncio concurrent", False, False),
}
BESIDE = {
    ".gitignore": "*.log\nbuild/\n/private.txt\n__pycache__/\n*.key\ncredentials.json\n",
    ".editorconfig": "root = true\nindent_style = space\n",
    ".github/workflows/ci.yml": "name: tests\non: push\n",
    "README.md": "# The tree\n\nSee docs/guide.md for the timeout.\n",
    "CHANGELOG.md": "1.1\n\nA timeout is kept.\n",
    "setup.cfg": "[metadata]\nname = tree\nversion = 1.1\n",
    "docs/guide.md": "Timeout\n=======\n\nThe timeout is 30 seconds.\n",
    "docs/index.md": "- guide.md\n",
    "docs/images/note.txt": "the picture\n",
    "debug.log": "timeout in line 7\n",
    "build/out.txt": "import built\n",
    "build/lib/copy.py": "import os\n",
    "private.txt": "nobody reads import\n",
    "tests/test_a.py": "import unittest\n\n\nclass A(unittest.TestCase):\n    pass\n",
    "tests/__init__.py": "",
    "tests/data/two words.txt": "two words\n",
    "server.key": "no key, import\n",
    "credentials.json": "{}\n",
}
PLAIN = frozenset(path for path in BESIDE if path.startswith(("docs/", "tests/", "README", "CHANGELOG", "setup")))


def make_tree(folder: Path, name: str) -> None:
    """Write a work tree of real sources and of what stands beside them."""
    packages, git, plain = TREES[name]
    library = Path(sysconfig.get_paths()["stdlib"])
    for package in packages.split():
        shutil.copytree(library / package, folder / "src" / package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in BESIDE.items():
        if plain and path not in PLAIN:
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    (folder / "docs/images/logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 40)
    (folder / "docs/table.bin").write_bytes(b"import\0" * 100)
    (folder / "empty").mkdir()
    (folder / "latest").symlink_to("docs")
    (folder / "gone").symlink_to("nowhere")
    if git:
        subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    clock = time.time() - 100_000
    for number, path in enumerate(sorted(folder.rglob("*"))):
        os.utime(path, (clock + number, clock + number), follow_symlinks=False)


def endings(names: list[str]) -> str:
    found = {name_ending(name) for name in names}
    return "/".join(sorted({ending if len(ending) <= ENDING_LENGTH else "..." for ending in found}))


def names_below(folder: Path) -> dict[str, Name]:
    """Return what a recording knows of the names in a folder."""

    def read(path: str) -> str | None:
        file = folder / path
        return file.read_text(encoding="utf-8") if file.is_file() else None

    rules = IgnoreRules(read, lambda path: (folder / path / ".git").exists())
    found: dict[str, Name] = {}

    def walk(path: Path) -> None:
        for one in sorted(path.iterdir()):
            name, status = one.relative_to(folder).as_posix(), one.lstat()
            hidden = "/." in "/" + name
            if one.is_symlink() or not (one.is_dir() or one.is_file()):
                found[name] = Name("link" if one.is_symlink() else "other", 0, status.st_mtime, hidden)
            elif one.is_file():
                found[name] = Name("file", status.st_size, status.st_mtime, hidden, rules.ignored(name))
            else:
                found[name] = Name("folder", 0, status.st_mtime, hidden, rules.ignored(name + "/zqzq"))
                if skip_reason(name) is None:
                    walk(one)
                    continue
                below = [path.name for path in one.rglob("*")]
                found[name] = found[name]._replace(inside=len(below), endings=endings(below))

    walk(folder)
    return found


def synthesizer(folder: Path, options: argparse.Namespace, rng: random.Random) -> Synthesizer:
    """Take the recording of a tree and return what answers from it."""
    names = names_below(folder)
    files = [path for path, name in names.items() if name.kind == "file" and not name.ignored]
    if options.part:
        files = rng.sample(files, 8)
    calls = [Call("search_files", {}, json.dumps({"files": files}))]
    place = Workspace.here(str(folder))
    deadline = time.monotonic() + 120
    taken = take_snapshot(calls, place, redact=hermes_redactor(), deadline=deadline, note_masks=note_masks)
    recorder = Recorder(
        hermes=differential.hermes_version(),
        platform=sys.platform,
        search="grep" if options.no_rg else "rg",
        rg_major=options.rg_major or 0,
        git=(folder / ".git").exists(),
        locale=next(filter(None, (os.environ.get(name) for name in ("LC_ALL", "LC_COLLATE", "LANG"))), "C"),
    )
    learned = {"rg_major": options.rg_major} if options.rg_major else None
    kept = taken._replace(names=names, whole=not options.part)
    return Synthesizer(kept, place, recorder, learned, read_masks, KnownNames)


# --- what a wandering model asks ----------------------------------------------------------


class Wandering:
    """Seeded calls of a model that looks for its way in a tree."""

    def __init__(self, folder: Path, snapshot: Snapshot, rng: random.Random, ripgrep: bool) -> None:
        self._ripgrep = ripgrep
        self._folder, self._random, self._snapshot = folder, rng, snapshot
        names = snapshot.names or {}
        self._files = sorted(path for path, file in snapshot.files.items() if file.text)
        self._folders = sorted(
            path for path, name in names.items() if name.kind == "folder" and not (name.hidden or name.ignored)
        )
        self._odd = sorted(path for path, name in names.items() if name.kind == "link" or name.hidden or name.ignored)

    def call(self) -> tuple[str, dict[str, Any]]:
        roll = self._random.random()
        if roll < 0.25:
            return "read_file", self._read()
        if roll < 0.45:
            return "search_files", self._listing()
        if roll < 0.75:
            return "search_files", self._search()
        return "terminal", {"command": self._command()}

    def _pick(self, *choices: Any) -> Any:
        chosen = self._random.choice(choices)
        return chosen() if callable(chosen) else chosen

    def _file(self) -> str:
        return self._random.choice(self._files)

    def _a_folder(self) -> str:
        return self._random.choice(self._folders)

    def _missing(self) -> str:
        """A path that is not there, as a model may guess it."""
        name = self._file()
        stem, ending = os.path.splitext(os.path.basename(name))
        return self._pick(
            f"{os.path.dirname(name)}/{stem}s{ending}",
            f"{os.path.dirname(name)}/{stem.upper()}{ending}",
            f"{os.path.dirname(name)}/{stem}.md",
            f"lib/{name}",
            f"{stem}{ending}",
            f"{stem[:-1]}{ending}",
            "main.py",
            "pyproject.toml",
            "docs/README.md",
            "README",
            f"{name}/x.py",
            f"{self._a_folder()}/nope.txt",
            "package.json",
            "Read.me",
        ).lstrip("/")

    def _spelled(self, path: str) -> str:
        return self._pick(path, path, path, f"./{path}", str(self._folder / path))

    def _path(self, file: float, folder: float, missing: float) -> str:
        roll = self._random.random()
        if roll < file:
            return self._spelled(self._file())
        if roll < file + folder:
            return self._spelled(self._a_folder()) + self._pick("", "", "/")
        if roll < file + folder + missing:
            return self._spelled(self._missing())
        return self._pick(*self._odd)

    def _read(self) -> dict[str, Any]:
        args: dict[str, Any] = {"path": self._path(0.55, 0.12, 0.31)}
        if self._random.random() < 0.4:
            args.update(self._pick({"offset": 10}, {"limit": 20}, {"offset": 5, "limit": 50}, {"limit": 2000}))
        return args

    def _word(self) -> str:
        words = re.findall(r"[A-Za-z_]{4,}", self._snapshot.files[self._file()].text)
        return self._random.choice(words or ["import"])

    def _pattern(self) -> str:
        word = self._word()
        return self._pick(
            word,
            word,
            word,
            f"def {word}",
            f"class {word}",
            f"{word}|{self._word()}",
            rf"\b{word}\b",
            f"{word}.*{self._word()}",
            f"import {word}",
            f"{word}zq",
            word.upper(),
            rf"{word}\(",
            "TODO|FIXME",
            "timeout",
        )

    def _search(self) -> dict[str, Any]:
        args: dict[str, Any] = {"pattern": self._pattern()}
        if self._random.random() < 0.6:
            args["path"] = self._pick(".", lambda: self._path(0.35, 0.45, 0.18))
        if self._random.random() < 0.3:
            args["file_glob"] = self._pick("*.py", "*.py", "*.md", "*.txt", "*.{py,md}", "test_*.py", "*.rs")
        if self._random.random() < 0.3:
            args["output_mode"] = self._pick("files_only", "count")
        if self._random.random() < 0.2:
            args["context"] = 2
        if self._random.random() < 0.2:
            args["limit"] = self._pick(5, 10, 200)
        return args

    def _listing(self) -> dict[str, Any]:
        name = os.path.basename(self._file())
        args: dict[str, Any] = {
            "target": "files",
            "pattern": self._pick(
                "*.py",
                "*.md",
                name,
                "*",
                "**/*.py",
                f"*{name[:4]}*",
                "test*",
                "*.toml",
                "*.js",
                "src",
                "*config*",
                "*.log",
            ),
        }
        if self._random.random() < 0.6:
            args["path"] = self._pick(".", lambda: self._path(0.05, 0.75, 0.18))
        if self._random.random() < 0.2:
            args["limit"] = self._pick(5, 200)
        return args

    def _command(self) -> str:
        made = self._any_command()
        return made if self._ripgrep or not made.startswith("rg ") else self._command()

    def _any_command(self) -> str:
        file, folder, word = self._file(), self._pick(".", self._a_folder), self._word()
        quoted = f"'{file}'" if " " in file else file
        return self._pick(
            f"cat {quoted}",
            f"head -n 20 {quoted}",
            f"tail -5 {quoted}",
            f"sed -n 5,20p {quoted}",
            f"wc -l {quoted}",
            "ls",
            f"ls {folder}",
            f"ls -a {folder}",
            f"find {folder} -name '*.py'",
            f"find . -name '{os.path.basename(file)}'",
            f"find {folder} -name '*{word[:3]}*' -type f",
            f"find src -type d -name '{word[:1]}*'",
            f"grep -rn {word} src",
            f"grep -n {word} {quoted}",
            f"grep -rl {word} {folder}",
            f"rg {word}",
            f"rg -n {word} {folder}",
            f"rg -l {word} src",
            "pwd",
        )


# --- the comparison -----------------------------------------------------------------------


def compare(folder: Path, options: argparse.Namespace, seed: int, live: differential.Live) -> dict[str, Any]:
    rng = random.Random(seed)
    synth = synthesizer(folder, options, rng)
    ours = Terminal(synth.source, ())
    asked = Wandering(folder, synth.source.snapshot, rng, not options.no_rg)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[str, list[Any]] = defaultdict(list)
    parts = 0
    for _ in range(options.calls):
        tool, args = asked.call()
        theirs = live(tool, args)
        try:
            if tool == "terminal":
                mine = ours(args, "")[0]
                same = terminal.same(args["command"].split()[0], theirs, mine)
                judged = "equal" if same else "different"
            else:
                told = synth.tell(tool, args)
                mine = told.text
                part = told.known < told.files
                parts += part
                judged = differential.verdict(live, synth.answer, tool, args, theirs, mine)
                if part and judged == "different":
                    judged = "part"
        except Miss as miss:
            counts[tool]["miss"] += 1
            examples["miss"].append([tool, args, miss.reason, theirs[:200]])
            continue
        counts[tool][judged] += 1
        if judged in ("different", "part"):
            examples[judged].append([tool, args, theirs[:700], mine[:700]])
    total = sum(counts.values(), Counter())
    good = total["equal"] + total["order"] + total["capped"]
    out: dict[str, Any] = {
        **total,
        "good": good,
        "parts": parts,
        **{tool: dict(found) for tool, found in counts.items()},
    }
    return {**out, "answered": terminal.refused(ours, rng), "examples": examples}


def run(scratch: Path, options: argparse.Namespace) -> dict[str, Any]:
    out: dict[str, Any] = {"hermes": differential.hermes_version(), "search": "grep" if options.no_rg else "rg"}
    out["refused"] = len([line for line in REFUSED.split("\n") if line])
    folder = scratch / "tree"
    make_tree(folder, options.tree)
    out[options.tree] = compare(folder, options, options.seed, differential.Live(None))
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", choices=list(TREES))
    parser.add_argument("calls", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--no-rg", action="store_true")
    parser.add_argument("--rg-major", type=int, default=None)
    parser.add_argument("--part", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    scratch = Path(tempfile.mkdtemp(prefix="cassette-lane-")).resolve()
    try:
        (scratch / "tree").mkdir()
        differential.prepare(scratch / "tree", scratch, not options.no_rg)
        result = run(scratch, options)
    finally:
        os.chdir(differential.ROOT)
        shutil.rmtree(scratch, ignore_errors=True)
    print(json.dumps(result, ensure_ascii=False, indent=1))
    sys.stdout.flush()
    os._exit(0)  # Hermes's threads have nothing left to do


if __name__ == "__main__":
    sys.exit(main())
