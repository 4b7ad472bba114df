"""What `list` and `show` tell of the cassettes that there are."""

from __future__ import annotations

import argparse
import datetime
import json
import textwrap
from typing import Any, Iterator, Mapping, Sequence

from ..cassette_store import Cassette, CassetteError, Store, shown
from ..hooks import Plugin
from .ages import told_age
from .door import CELL, JSON_SCHEMA, NOTES, Screen, beginning, block, coloured, compact, shown_lines
from .extent import told_extent

__all__ = ["describe", "list_cassettes", "show"]

#: Characters of a warning that `list` shows, and lines of each run's answer that `show` does.
_NOTE, _RUN_LINES = 500, 3


def list_cassettes(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    store = plugin.store()
    rows = [_row(store, name) for name in store.names()]
    if options.cassette_json:
        screen.print(json.dumps({"schema": JSON_SCHEMA, "cassettes": rows}))
        return 0
    if not rows:
        screen.print("no cassettes yet: hermes cassette record NAME says how to make one")
        return 0
    screen.print(_table(rows, screen))
    return 0


def _row(store: Store, name: str) -> dict[str, Any]:
    """What `list` tells of one cassette; a broken one is told as such."""
    try:
        summary = store.summary(name)
    except CassetteError as error:
        return {"name": name, "error": str(error)}
    last = store.last_result(name)
    return {
        "name": name,
        "calls": summary.calls,
        "files": summary.files,
        "pins": None if summary.pins is None else len(summary.pins),
        "whole": summary.whole,
        "names": summary.names,
        "recorded_at": summary.recorded_at,
        "last": {key: last.get(key, "") for key in ("result", "model", "at")} if last else None,
        "warnings": list(summary.warnings),
    }


_HEADINGS = ("name", "calls", "files", "pins", "last", "model", "kind", "age", "run")


#: Columns of a screen, and those of a name and a model that are shown of it whatever else there is.
_WIDTH, _NAME, _MODEL = 80, 23, 8


def _table(rows: Sequence[Mapping[str, Any]], screen: Screen) -> str:
    now = datetime.datetime.now(datetime.timezone.utc)
    cells = [_HEADINGS] + [
        (
            r["name"],
            r["calls"],
            r["files"],
            r["pins"],
            shown((r["last"] or {}).get("result", "-"), CELL),
            shown((r["last"] or {}).get("model", "-"), CELL),
            "whole" if r["whole"] else "files" if r["names"] is None else "names",
            told_age(r["recorded_at"], now),
            told_age((r["last"] or {}).get("at"), now),
        )
        if "error" not in r
        else (r["name"], "-", "-", "-", "broken", "-", "-", "-", "-")
        for r in rows
    ]
    texts = [["?" if cell is None else str(cell) for cell in row] for row in cells]
    widths = _widths(texts)
    lines = []
    for number, row in enumerate(texts):
        lines += _line(row, widths, screen if number else None)
        if number:
            found = rows[number - 1]
            notes = [found["error"]] if "error" in found else found["warnings"]
            if len(notes) > NOTES:
                notes = [*notes[:NOTES], f"and {len(notes) - NOTES} more: see hermes cassette show {found['name']}"]
            for note in notes:
                lines += textwrap.wrap(shown(note, _NOTE), 76, initial_indent="  ! ", subsequent_indent="    ")
    return "\n".join(lines)


def _widths(texts: Sequence[Sequence[str]]) -> list[int]:
    """The columns' widths: the model gets what the others leave of a screen."""
    widths = [max(len(row[column]) for row in texts) for column in range(len(_HEADINGS))]
    widths[0] = min(widths[0], _NAME)
    room = _WIDTH - 2 * (len(widths) - 1) - sum(widths) + widths[5]
    widths[5] = min(widths[5], max(_MODEL, room))
    return widths


def _line(row: Sequence[str], widths: Sequence[int], screen: Screen | None) -> Iterator[str]:
    """A row's line; a name that is too long for its column has one of its own before it."""
    if len(row[0]) > widths[0]:
        yield row[0]
        row = ["", *row[1:]]
    parts = []
    for column, (text, width) in enumerate(zip(row, widths)):
        padded = text.rjust(width) if 1 <= column <= 3 else shown(text, width).ljust(width)
        parts.append(coloured(padded, text, screen) if column == 4 and screen else padded)
    yield "  ".join(parts).rstrip()


def describe(store: Store, name: str, cassette: Cassette) -> dict[str, Any]:
    """A cassette as `--json` shows it: everything but the texts of results and files."""
    return {
        "name": name,
        "file": str(store.path(name)),
        "path": str(store.path(name)),  # its older name; a run's path is what its calls were
        "request": cassette.request,
        "answer": cassette.answer,
        "model": cassette.model,
        "cwd": cassette.cwd,
        "recorded_at": cassette.recorded_at,
        "recorder": cassette.recorder._asdict(),
        "host": cassette.recorder._asdict(),  # its older name
        "pins": list(cassette.pins),
        "warnings": list(cassette.warnings),
        "calls": [{"tool": call.tool, "args": call.args} for call in cassette.calls],
        "not_kept": list(cassette.not_kept),
        "files": {path: file.size for path, file in cassette.snapshot.files.items()},
        "whole": cassette.snapshot.whole,
        "names": None if cassette.snapshot.names is None else len(cassette.snapshot.names),
        "skipped": dict(cassette.snapshot.skipped),
    }


def show(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    store = plugin.store()
    name = options.cassette
    cassette, _ = store.read(name)
    runs = store.last_runs(name, 5)
    if options.cassette_json:
        described = {"schema": JSON_SCHEMA, **describe(store, name, cassette), "runs": runs}
        if options.cassette_full:
            described["results"] = [call.result for call in cassette.calls]
            described["texts"] = {path: file.text for path, file in cassette.snapshot.files.items()}
        screen.print(json.dumps(described))
        return 0
    screen.print("\n".join(_described(store, name, cassette, runs, options.cassette_full, screen)))
    return 0


def _described(
    store: Store, name: str, cassette: Cassette, runs: Sequence[Mapping[str, Any]], full: bool, screen: Screen
) -> Iterator[str]:
    recorder = cassette.recorder
    hermes, platform = shown(recorder.hermes, CELL), shown(recorder.platform, CELL)
    yield f"{name}, recorded {shown(cassette.recorded_at, CELL)} with {shown(cassette.model, CELL) or 'an unnamed model'}"
    yield f"by Hermes {hermes or 'of unknown version'} on {platform or 'an unknown platform'}"
    yield f"in {shown(cassette.cwd) or 'an unknown folder (no snapshot)'}"
    yield f"keeps {told_extent(cassette)}"
    yield from block("request", [shown(cassette.request)])
    yield from block("answer", ["\n".join(shown_lines(cassette.answer))])
    yield from block(f"pins ({len(cassette.pins)})", map(shown, cassette.pins))
    yield from block(f"calls ({len(cassette.calls)})", _told_calls(cassette, full))
    if cassette.not_kept:
        yield from block(f"calls not kept ({len(cassette.not_kept)})", [shown(", ".join(cassette.not_kept))])
    yield from block(f"snapshot files ({len(cassette.snapshot.files)})", _told_files(cassette, full))
    if skipped := cassette.snapshot.skipped:
        yield from block(
            f"skipped files ({sum(skipped.values())})", [f"{n} {shown(why)}" for why, n in skipped.items()]
        )
    yield from block("warnings", map(shown, cassette.warnings))
    yield from block("last runs", [_told_run(run, full, screen) for run in runs])
    yield f"path {shown(store.path(name))}"
    yield f"runs {shown(store.runs(name))}"


def _told_calls(cassette: Cassette, full: bool) -> list[str]:
    told = []
    for call in cassette.calls:
        line = f"{call.tool} {compact(call.args)}"
        if full:
            told.append(_with_text(line, call.result if isinstance(call.result, str) else compact(call.result)))
        else:
            told.append(shown(line, 110))
    return told


def _with_text(line: str, text: str) -> str:
    return shown(line) + "\n" + textwrap.indent("\n".join(shown_lines(text)), "  ")


def _told_files(cassette: Cassette, full: bool) -> list[str]:
    files = cassette.snapshot.files.items()
    if full:
        return [_with_text(f"{path} ({file.size} bytes)", file.text) for path, file in files]
    return [f"{shown(path)} ({file.size} bytes)" for path, file in files]


def _told_run(run: Mapping[str, Any], full: bool, screen: Screen) -> str:
    at, result, model, path = (shown(run.get(key, ""), CELL) for key in ("at", "result", "model", "path"))
    held = sum(bool(pin.get("ok")) for pin in run.get("pins", ()) if isinstance(pin, dict))
    parts = [at, coloured(result or "?", result, screen), model, f"pins {held}/{len(run.get('pins', ()))}", path]
    answer = str(run.get("answer", ""))
    lines = shown_lines(answer.strip("\n")) if full else beginning(answer, _RUN_LINES, "--full")
    return "  ".join(parts) + "\n" * bool(answer.strip()) + textwrap.indent("\n".join(lines), "  ")
