"""Suites to report on: one as a person would have it, one with hostile texts, and large ones."""

from __future__ import annotations

from typing import Any, Sequence

import tests.support  # noqa: F401  (loads the plugin)

from session_cassettes.suite import reports
from session_cassettes.suite.cells import Cell, Key, Run

AUTH = (
    "The auth handler is `AuthHandler` in server/auth.py, line 29. It binds port 8080, "
    "the value of `AUTH_PORT` there.\n\nIt is started by `main()` in server/run.py."
)
CALLS: tuple[tuple[str, Any], ...] = (
    ("search_files", {"pattern": "AuthHandler", "path": "."}),
    ("read_file", {"path": "server/auth.py"}),
)
PINS = ("auth.py", r"re:\b8080\b")


def call(tool: str, args: Any, how: str = "hit", reason: str = "", nearest: str = "") -> dict[str, Any]:
    return {"tool": tool, "args": args, "how": how, "reason": reason, "nearest": nearest}


def run(result: str = "PASS", answer: str = AUTH, seconds: float = 12.0, **more: Any) -> Run:
    held = tuple((pin, result != "FAIL" or at == 0) for at, pin in enumerate(PINS))
    more.setdefault("pins", held)
    more.setdefault("calls", tuple(call(tool, args) for tool, args in CALLS))
    return Run(result, answer, seconds, model="gpt-oss:20b", **more)  # type: ignore[arg-type]


def cell(cassette: str, results: str, model: str = "", arm: str = "", answers: Sequence[str] = (), **more: Any) -> Cell:
    """A cell whose runs ended so: a letter a run, as in "PPFDI"."""
    words = {"P": "PASS", "F": "FAIL", "D": "DIVERGED", "I": "INVALID"}
    runs = tuple(
        run(words[letter], answers[at % len(answers)] if answers else f"{AUTH} ({at})", 10.0 + at, **more)
        for at, letter in enumerate(results)
    )
    return Cell(Key(cassette, model, arm), len(results), runs)


def facts(answer: str = AUTH, **more: Any) -> reports.CassetteFacts:
    more.setdefault("request", "Where is the auth handler and what port does it bind?")
    return reports.CassetteFacts(answer=answer, calls=CALLS, pins=PINS, model="careful", **more)


def suite(cells: Sequence[Cell], require: float = 1.0, noise: bool = False, **more: Any) -> reports.Suite:
    cassettes = {each.key.cassette: facts(**more) for each in cells}
    versions = ("0.22.2", "1.0.0")
    return reports.grade_suite(
        "20260301T101500-ab12", "2026-03-01T10:15:00+00:00", versions, require, cells, cassettes, noise
    )
