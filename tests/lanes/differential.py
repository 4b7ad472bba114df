"""Compares synthesized answers with those of a real Hermes, call by call.

Run it with the Python of an environment that has Hermes installed:

    python tests/lanes/differential.py WORKSPACE CALLS SEED [--no-rg] [--rg-major N] [--answers FILE]

It calls Hermes's own tool functions on the folder WORKSPACE (which it never
changes), takes a snapshot of the same files, and prints one JSON object: how
many answers were equal, equal but for the order of files, equal as far as a
capped list can be, missed, or different, with examples.  Everything else it
needs lives in a temporary folder.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the tests are a package of the repository
from tests.support import load_plugin  # noqa: E402

sys.path.remove(str(ROOT))  # Hermes has a `cli` and a `hooks` of its own

load_plugin()
from session_cassettes.cassette_store import Call, Name, Recorder, Snapshot  # noqa: E402
from session_cassettes.snapshot import Workspace, hermes_redactor, take_snapshot  # noqa: E402
from session_cassettes.suite.known_names import KnownNames  # noqa: E402
from session_cassettes.suite.masks import note_masks, read_masks  # noqa: E402
from session_cassettes.synth_search import Miss, Synthesizer  # noqa: E402

#: A limit that no search reaches.
ALL = 1_000_000


# --- the two sides ------------------------------------------------------------


def prepare(workspace: Path, scratch: Path, with_rg: bool) -> None:
    """Point Hermes at a scratch home and at the workspace, before it is imported."""
    os.environ.update(
        HERMES_HOME=str(scratch / "hermes"), TERMINAL_CWD=str(workspace), TERMINAL_ENV="local", HOME=str(scratch)
    )
    (scratch / "hermes").mkdir()
    if not with_rg:
        tools = scratch / "bin"
        tools.mkdir()
        for folder in os.environ["PATH"].split(os.pathsep):
            for tool in Path(folder).glob("*"):
                link = tools / tool.name
                if tool.name != "rg" and not link.exists():
                    link.symlink_to(tool)
        os.environ["PATH"] = str(tools)
        # Hermes starts login shells, whose profile would bring the old PATH back.
        for profile in (".bash_profile", ".profile", ".bashrc"):
            (scratch / profile).write_text(f"export PATH={tools}\n")
    os.chdir(workspace)
    logging.disable(logging.CRITICAL)


class Live:
    """The real tools, made to forget earlier calls so that no repeat guard fires.

    :param answers: a file with answers of an earlier run on the same folder,
        which are not asked for again; None asks for all.
    """

    def __init__(self, answers: Path | None) -> None:
        self._file = answers
        self._answers: dict[str, str] = {}
        if answers is not None and answers.exists():
            self._answers = json.loads(answers.read_text(encoding="utf-8"))
        # A fresh task for each call would do, too, but it looks for rg anew each time.
        self._tracker = getattr(importlib.import_module("tools.file_tools"), "_read_tracker", None)
        self._registry = importlib.import_module("tools.registry").registry
        self._coerce = importlib.import_module("model_tools").coerce_tool_args
        self._number = 0
        self.seconds = 0.0

    def __call__(self, tool: str, args: dict[str, Any]) -> str:
        key = json.dumps([tool, args])
        if key in self._answers:
            return self._answers[key]
        self._number += 1
        entry = self._registry.get_entry(tool)
        task = "lane"
        if self._tracker is None:
            task = f"lane-{self._number}"
        else:
            self._tracker.clear()
        started = time.perf_counter()
        answer = entry.handler(self._coerce(tool, dict(args)), task_id=task)
        self.seconds += time.perf_counter() - started
        self._answers[key] = answer
        if self._number % 50 == 0:
            self.save()
        return answer

    def save(self) -> None:
        if self._file is not None:
            self._file.write_text(json.dumps(self._answers), encoding="utf-8")


def hermes_version() -> str:
    try:
        return importlib.import_module("hermes_cli").__version__
    except AttributeError:
        from importlib.metadata import packages_distributions, version

        return version(packages_distributions()["hermes_cli"][0])


def synthesizer(
    workspace: Path, with_rg: bool, rg_major: int | None, names: Mapping[str, Name] | None = None
) -> tuple[Synthesizer, Snapshot]:
    """Take a snapshot of every file and return what answers from it."""
    files = [str(path.relative_to(workspace)) for path in sorted(workspace.rglob("*")) if path.is_file()]
    calls = [Call("search_files", {}, json.dumps({"files": files}))]
    place = Workspace.here(str(workspace))
    deadline = time.monotonic() + 120
    taken = take_snapshot(calls, place, redact=hermes_redactor(), deadline=deadline, note_masks=note_masks)
    host = Recorder(
        hermes=hermes_version(),
        platform=sys.platform,
        search="rg" if with_rg else "grep",
        rg_major=rg_major or 0,
        git=(workspace / ".git").exists(),
    )
    learned = {"rg_major": rg_major} if rg_major else None
    return Synthesizer(taken._replace(names=names), place, host, learned, read_masks, KnownNames), taken


# --- the calls ----------------------------------------------------------------


class Calls:
    """Seeded calls made of the words, names and lines of the files themselves."""

    def __init__(self, workspace: Path, snapshot: Any, seed: int) -> None:
        self._random = random.Random(seed)
        self._workspace = workspace
        self._paths = sorted(snapshot.files)
        self._folders = sorted({str(Path(path).parent) for path in self._paths} - {"."})
        self._texts = {path: snapshot.files[path].text for path in self._paths}

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        while True:
            roll = self._random.random()
            if roll < 0.25:
                yield "read_file", self._read()
            elif roll < 0.45:
                yield "search_files", self._listing()
            else:
                yield "search_files", self._search()

    def _pick(self, *choices: Any) -> Any:
        chosen = self._random.choice(choices)
        return chosen() if callable(chosen) else chosen

    def _path(self) -> str:
        return self._random.choice(self._paths)

    def _word(self) -> str:
        for _ in range(20):
            words = re.findall(r"[A-Za-z_]{3,}", self._texts[self._path()])
            if words:
                return self._random.choice(words)
        return "import"

    def _line(self) -> str:
        lines = [line.strip() for line in self._texts[self._path()].split("\n") if line.strip()]
        return self._random.choice(lines or ["import"])[:60]

    def _some(self, args: dict[str, Any], key: str, chance: float, *choices: Any) -> None:
        if self._random.random() < chance:
            args[key] = self._pick(*choices)

    def _spelled(self, path: str) -> str:
        return self._pick(path, path, path, "./" + path, str(self._workspace / path))

    def _read(self) -> dict[str, Any]:
        path = self._path()
        lines = self._texts[path].count("\n")
        args: dict[str, Any] = {"path": self._spelled(path)}
        self._some(
            args,
            "offset",
            0.5,
            1,
            2,
            lines,
            lines + 1,
            lines + 2,
            99999,
            0,
            -3,
            "4",
            "x",
            lambda: self._random.randint(1, lines + 1),
        )
        self._some(args, "limit", 0.5, 1, 5, 50, lines, lines + 1, 200, 2000, 5000, 0, -1, "20", None, 3.0)
        return args

    def _root(self, args: dict[str, Any]) -> None:
        roll = self._random.random()
        if roll < 0.4:
            return
        if roll < 0.5:
            args["path"] = self._pick(".", "./", str(self._workspace))
        elif roll < 0.8 and self._folders:
            folder = self._random.choice(self._folders)
            args["path"] = self._pick(self._spelled(folder), folder + "/")
        else:
            args["path"] = self._spelled(self._path())

    def _page(self, args: dict[str, Any]) -> None:
        self._some(args, "limit", 0.4, 1, 2, 3, 5, 10, 200, "7", 0, -1, 5000)
        self._some(args, "offset", 0.15, 1, 2, 5, 40, "3", -2)

    def _pattern(self) -> str:
        word, other, line = self._word(), self._word(), self._line()
        return self._pick(
            word,
            word,
            word,
            lambda: re.escape(line).replace("\\ ", " "),
            line,
            word.swapcase(),
            word.upper(),
            f"{word}|{other}",
            f"{word}|{other}|{self._word()}",
            rf"\b{word}\b",
            rf"def {word}",
            r"def \w+\(",
            rf"class \w*{word[:3]}\w*",
            f"^{word}",
            f"^from .* import {word}",
            f"{word}.*{other}",
            r"\d{3,}",
            f"(?i){word}",
            f"{word}zqzq",
            f"{word}(",
            rf"{word}\(",
            f"{word}()",
            "[A-Z]{4,}",
            rf"\.{word}",
            rf"self\.{word}\s*=",
            "TODO|FIXME",
            f"({word}|{other})s?",
            f"[{word[:3]}]{word[1:3]}+",
            rf"{word}\s+{other}",
            r"\w+@\w+\.\w+",
            "https?://[^ ]+",
            rf"{word}\n",
            rf"{word}.*\n.*{other}",
            "^$",
            r"^\s*$",
            r"\s+$",
            ".",
            "",
            f'"{word}"',
            f"'{word}'",
            f"[{word}",
            f"(?={word})",
            f"{word}\\",
            rf"\{word[:1]}{word}",
            f"{word}$",
            f"{word}{{2}}",
            f"*{word}",
            rf"[^a-z]{word}",
            f"{word[:2]}?{word[2:]}",
            rf"{word}\W",
            f"{word}+",
            f"{word}.",
            f"{word}, {other}",
            f"\\{{{word}",
            f"{{{word}}}",
            f"{word}[",
            f"[[:upper:]]{word[1:]}",
            f"{line[:12]}",
            "é",
            "→",
        )

    def _search(self) -> dict[str, Any]:
        args: dict[str, Any] = {"pattern": self._pattern()}
        self._root(args)
        self._page(args)
        self._some(args, "target", 0.1, "content", "grep", "bogus")
        self._some(args, "file_glob", 0.3, *self._globs())
        self._some(args, "output_mode", 0.35, "files_only", "files_only", "count", "count", "content", "bogus")
        self._some(args, "context", 0.2, 1, 2, 5, "1", 0, -1)
        return args

    def _globs(self) -> list[str]:
        name = Path(self._path())
        return [
            "*.py",
            "*.py",
            "*.{py,md}",
            "!*.py",
            f"{name.stem[:3]}*.py",
            f"{name.parent}/*.py",
            "**/*.py",
            "*.txt",
            "_*.py",
            "[a-m]*.py",
            name.name,
            f"*{name.suffix}",
            "",
            f"**/{name.parent.name}/*",
            "*_*",
        ]

    def _listing(self) -> dict[str, Any]:
        name = Path(self._path())
        args: dict[str, Any] = {
            "target": self._pick("files", "files", "find"),
            "pattern": self._pick(
                "*.py",
                f"*{name.stem[:4]}*",
                name.name,
                "**/*.py",
                f"{name.parent}/*.py",
                name.stem,
                f"*{name.suffix}",
                "*.{py,txt}",
                "_*",
                "?????.py",
                "[a-c]*",
                f"{name.parent.name}",
                f"{name.parent.name}*",
                "*.nope",
                "*_*",
            ),
        }
        self._root(args)
        self._page(args)
        self._some(args, "order", 0.1, "discovery", "bogus")
        self._some(args, "context", 0.1, 2)
        return args


# --- the comparison -------------------------------------------------------------


Row = tuple[Any, ...]


def decoded(answer: str) -> tuple[dict[str, Any], str]:
    """Split an answer into its JSON object and the text after it."""
    value, end = json.JSONDecoder().raw_decode(answer)
    return value, answer[end:]


def rows(value: dict[str, Any]) -> list[Row]:
    """Return what an answer lists, one tuple per hit, file or count."""
    out: list[Row] = [(m["path"], m["line"], m["content"].rstrip()) for m in value.get("matches", ())]
    path = ""
    for line in value.get("matches_text", "").split("\n"):
        found = re.match(r"  (\d+): (.*)$", line, re.DOTALL)
        if found is None:
            path = line
        else:
            out.append((path, int(found[1]), found[2]))
    out += [(path,) for path in value.get("files", ())]
    return out + [(path, count) for path, count in value.get("counts", {}).items()]


def remark(value: dict[str, Any]) -> Any:
    """Return the warning with its list of paths in order, long lists as their length."""
    text = value.get("warning", "")
    found = re.search(r"file\(s\): (.*?)(?: \(\+\d+ more\))? —", text)
    if found is None:
        return text
    names = sorted(found[1].split(", "))
    number = int(re.search(r"in (\d+) ", text)[1])  # type: ignore[index]
    if number >= 50:
        return re.sub(r"\d+", "N", text[:40])
    return text.replace(found[1], ", ".join(names) if number <= 5 else "...")


def verdict(live: Live, ours: Callable[..., str], tool: str, args: dict[str, Any], theirs: str, mine: str) -> str:
    """Say how two answers compare: equal, order, capped or different."""
    if theirs == mine:
        return "equal"
    if tool == "read_file":
        return "different"
    (one, tail), (two, end) = decoded(theirs), decoded(mine)
    lists = {"matches", "matches_text", "files", "counts", "warning"}
    keys = [key for key in one if key not in lists - {"warning"}]
    if tail != end or list(one) != list(two) or remark(one) != remark(two):
        return "different"
    if any(one[key] != two[key] for key in keys if key not in ("warning", "total_count")):
        return "different"
    first, second = rows(one), rows(two)
    same_total = one["total_count"] == two["total_count"]
    if sorted(first) == sorted(second) and same_total:
        return "order"
    if len(first) != len(second):
        return "different"
    everything = set(rows(decoded(whole(live, ours, tool, {**args, "limit": ALL, "offset": 0}))[0]))
    # How many rows a cap lets through depends on the order of files where it
    # also counts the marks between groups of context lines.
    most = max(one["total_count"], two["total_count"])
    context = "counts" not in one and args.get("context") and most < len(everything)
    if not (same_total or "counts" in one or context):
        return "different"
    true = set(first) <= everything and confirmed(live, tool, args, second)
    return "capped" if true else "different"


def whole(live: Live, ours: Callable[..., str], tool: str, args: dict[str, Any]) -> str:
    """Return all of an answer: ours, or the real tool's where a masked secret leaves that open."""
    try:
        return ours(tool, args)
    except Miss:
        return live(tool, args)


def confirmed(live: Live, tool: str, args: dict[str, Any], listed: list[Row]) -> bool:
    """Say whether the real tool gives the same rows when it is asked for less.

    Asking for everything is slow, as it redacts row by row; the first three
    files have to do.
    """
    if args.get("target") in ("files", "find"):
        return set(listed) <= set(rows(decoded(live(tool, {**args, "limit": ALL, "offset": 0}))[0]))
    # A context row may be read, by the real tool as by ours, as a hit in a file that is none.
    for path in [path for path in dict.fromkeys(row[0] for row in listed) if os.path.isfile(path)][:3]:
        one = {**args, "path": path, "limit": 3000, "offset": 0}
        one.pop("file_glob", None)
        if not {row for row in listed if row[0] == path} <= set(rows(decoded(live(tool, one))[0])):
            return False
    return True


def run(
    workspace: Path, number: int, seed: int, with_rg: bool, rg_major: int | None, answers: Path | None
) -> dict[str, Any]:
    live = Live(answers)
    synth, snapshot = synthesizer(workspace, with_rg, rg_major)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[str, list[Any]] = defaultdict(list)
    slow: list[Any] = []
    seconds = 0.0
    for (tool, args), _ in zip(Calls(workspace, snapshot, seed), range(number)):
        theirs = live(tool, args)
        started = time.perf_counter()
        try:
            mine = synth.answer(tool, args)
        except Miss as reason:
            counts[tool]["miss"] += 1
            examples["miss"].append([tool, args, reason.reason, theirs[:300]])
            continue
        finally:
            spent = time.perf_counter() - started
            seconds += spent
            slow.append([round(spent * 1000), tool, args])
        judged = verdict(live, synth.answer, tool, args, theirs, mine)
        counts[tool][judged] += 1
        if judged == "different":
            examples["different"].append([tool, args, theirs[:600], mine[:600]])
    live.save()
    out: dict[str, Any] = {
        "hermes": hermes_version(),
        "search": "rg" if with_rg else "grep",
        "workspace": workspace.name,
        "files": len(snapshot.files),
        "skipped": dict(snapshot.skipped),
        "calls": number,
        "seed": seed,
    }
    for tool, found in sorted(counts.items()):
        good = sum(found[name] for name in ("equal", "order", "capped"))
        out[tool] = {**found, "share": round(good / sum(found.values()), 4)}
    slow.sort(key=lambda item: -item[0])
    return {
        **out,
        "seconds": round(seconds, 2),
        "live_seconds": round(live.seconds, 2),
        "slowest": slow[:5],
        "examples": examples,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("calls", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--no-rg", action="store_true")
    parser.add_argument("--rg-major", type=int, default=None)
    parser.add_argument("--answers", type=lambda path: Path(path).resolve(), default=None)
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="cassette-lane-"))
    try:
        workspace = options.workspace.resolve()
        prepare(workspace, scratch, not options.no_rg)
        result = run(workspace, options.calls, options.seed, not options.no_rg, options.rg_major, options.answers)
    finally:
        os.chdir(ROOT)
        shutil.rmtree(scratch, ignore_errors=True)
    print(json.dumps(result, ensure_ascii=False, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
