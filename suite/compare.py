"""The command `compare`: what differs between two suite runs, or two runs, and whether that is more than chance.

Never here: a difference told without its p-value, or the word "equal" for one
that was not found.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import textwrap
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from ..cassette_store import CassetteError, Store, shown
from ..hooks import Plugin
from . import described, runs
from .cells import Cell, Key, Run, Summary, summarize
from .door import JSON_SCHEMA, Screen, beginning, compact
from .history import Change, Entry, Known, joined
from .pairs import Matched, Pair, column_name, compare, compare_suites
from .plan import Plan, gather
from .reports import cell_name, count, names_text, pair_text, telling
from .timeline import change_json, changes_text

__all__ = ["WORSE", "find_run", "run"]

#: Exit status where B passes less often than A, and that is more than chance.
WORSE = 1
#: Lines of an answer, and calls of one side only, that are shown of two runs.
_LINES, _CALLS = 5, 5
#: Characters of a line of theirs.
_LINE = 200


class _Suite(NamedTuple):
    """A suite as one of two sides; `faults` are files that count for no run."""

    plan: Plan
    cells: Sequence[Cell]
    entries: Mapping[Key, Sequence[Entry]]
    faults: Sequence[str]

    @property
    def summaries(self) -> list[Summary]:
        """What each cell's runs say."""
        return [summarize(cell, self.plan.require) for cell in self.cells]


class _One(NamedTuple):
    """A run as one of two sides."""

    key: Key
    run: Run
    entry: Entry | None


def run(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    """Compare two sides (`hermes cassette compare`).

    :returns: `WORSE` if B is shown to pass less often than A, else 0.
    :raises CassetteError: if a side is not there, or the two are of two kinds.
    """
    store, words = plugin.store(), (options.cassette_one, options.cassette_other or options.cassette_one)
    one = _side(store, words[0])
    other = one if words[0] == words[1] else _side(store, words[1])
    if isinstance(one, _Suite) and isinstance(other, _Suite):
        if one.plan.id == other.plan.id:
            return _within(one, options.cassette_json, screen)
        return _suites(one, other, options.cassette_json, screen)
    if isinstance(one, _One) and isinstance(other, _One):
        return _two(one, other, options.cassette_json, screen)
    kinds = ("a suite run" if isinstance(side, _Suite) else "a single run" for side in (one, other))
    told = " and ".join(f"{word!r} is {kind}" for word, kind in zip(words, kinds))
    raise CassetteError(f"{told}: compare two of one kind")


# --- what is compared -------------------------------------------------------------------


def _side(store: Store, word: str) -> _Suite | _One:
    """Find what a word means: a suite by its id, a run by its file or its id."""
    ids = [id for id in runs.suite_ids(store) if word and id.startswith(word)]
    if len(ids) == 1 or word in ids:
        return _read_suite(store, word if word in ids else ids[0])
    path = find_run(store, word) if not ids else None
    if path is not None and (found := runs.read_run(store, path)) is not None:
        return _One(*found)
    if ids:
        raise CassetteError(f"{word!r} is the beginning of {len(ids)} suite runs: {names_text(ids)}")
    newest = runs.suite_ids(store)[:3]
    there = f"the newest suite runs are {', '.join(newest)}" if newest else "no suite run was made yet"
    raise CassetteError(f"there is no suite run and no run {word!r}: {there}; a run is named by its id or its file")


def _read_suite(store: Store, id: str) -> _Suite:
    faults: list[str] = []
    plan, tries = runs.read_suite(store, id, faults.append)
    entries: dict[Key, list[Entry]] = {}
    for one in tries:
        if one.entry is not None:
            entries.setdefault(one.key, []).append(one.entry)
    return _Suite(plan, gather(plan, tries), entries, faults)


def find_run(store: Store, word: str) -> Path | None:
    """Find a run's file by its path, its name, or the run's id or the beginning of that; None if there is none.

    :raises CassetteError: if several runs begin so.
    """
    if word.endswith(".json") and os.path.isfile(word):
        return Path(word)
    stem = word.removesuffix(".json")
    if not re.fullmatch(r"[0-9A-Za-z-]{6,64}", stem):
        return None
    files = [
        Path(at, name) for at, _, names in os.walk(store.root / "runs") for name in names if name.endswith(".json")
    ]
    found = [path for path in files if path.stem == stem or path.stem.rpartition("-")[2].startswith(stem)]
    if len(found) > 1:
        raise CassetteError(f"{word!r} is the beginning of {len(found)} runs: write more of the id")
    return found[0] if found else None


def _changed(one: Sequence[Entry], other: Sequence[Entry]) -> tuple[Change, ...]:
    """What is not in `other` as it was at the end of `one`."""
    known = Known()
    known.take_all(one)
    return known.take_all(other)


# --- two suites ----------------------------------------------------------------------------


class _CellPair(NamedTuple):
    """A comparison, and what had changed between its two sides."""

    matched: Matched
    changes: tuple[Change, ...]


def _suites(one: _Suite, other: _Suite, as_json: bool, screen: Screen) -> int:
    sides = one.summaries, other.summaries
    matched = compare_suites(*sides)
    if not matched:
        raise CassetteError(
            f"{one.plan.id} and {other.plan.id} have no cell in common: a cell is a cassette with a model and an arm"
        )
    pairs = [_CellPair(each, _between(one, other, each)) for each in matched]
    worse = [each.pair for each in matched if _fell(each.pair)]
    alone = _alone(sides[0], matched, 0), _alone(sides[1], matched, 1)
    if as_json:
        told = {
            "schema": JSON_SCHEMA,
            "suites": [_suite_json(one), _suite_json(other)],
            "comparisons": [_cell_json(each, sides) for each in pairs],
            "only": [[key._asdict() for key in keys] for keys in alone],
            "exit_code": WORSE if worse else 0,
        }
        screen.print(json.dumps(told, allow_nan=False))
    else:
        screen.print("\n".join(_told_suites(one, other, pairs, alone)))
    return WORSE if worse else 0


def _between(one: _Suite, other: _Suite, each: Matched) -> tuple[Change, ...]:
    if each.cassette:
        mine, yours = (Key(each.cassette, *column) for column in (each.one, each.other))
        return _changed(one.entries.get(mine, ()), other.entries.get(yours, ()))
    cassettes = dict.fromkeys(key.cassette for key in one.entries if key[1:] == each.one)
    return joined(change for name in cassettes for change in _between(one, other, each._replace(cassette=name)))


def _fell(pair: Pair) -> bool:
    """Whether the second side is shown to pass less often."""
    return pair.found.differs and pair.other.passes * pair.one.runs < pair.one.passes * pair.other.runs


def _alone(summaries: Sequence[Summary], matched: Sequence[Matched], side: int) -> list[Key]:
    """The cells of one side that were not compared."""
    seen = {(each.cassette, *each[side]) for each in matched}
    return [one.key for one in summaries if tuple(one.key) not in seen]


def _told_suites(
    one: _Suite, other: _Suite, pairs: Sequence[_CellPair], alone: tuple[list[Key], list[Key]]
) -> Iterator[str]:
    yield from (_head(letter, side) for letter, side in (("A", one), ("B", other)))
    common = _common(pairs)
    if common:
        yield from _wrapped(f"changed from A to B: {changes_text(common)}")
    order = {id(pair): at for at, pair in enumerate(telling([each.matched.pair for each in pairs]))}
    for each in sorted(pairs, key=lambda each: order[id(each.matched.pair)]):
        yield from _wrapped(pair_text(each.matched.pair), "- ")
        if left := [change for change in each.changes if change not in common]:
            yield from _wrapped(f"changed: {changes_text(left)}", "  * ")
    for letter, keys in zip("AB", alone):
        if keys:
            yield from _wrapped(f"only in {letter}: {names_text([cell_name(key) for key in keys])}")
    for side in (one, other):
        yield from _wrapped(shown(f"note: {names_text(list(side.faults), 2)}")) if side.faults else ()


def _common(pairs: Sequence[_CellPair]) -> list[Change]:
    """What changed with every cell."""
    cells = [each.changes for each in pairs if each.matched.cassette]
    return [change for change in cells[0] if all(change in changes for changes in cells)]


def _head(letter: str, side: _Suite) -> str:
    made = count(sum(len(cell.runs) for cell in side.cells), "run")
    return shown(f"{letter}  suite run {side.plan.id}: {made} of {count(len(side.cells), 'cell')}")


def _wrapped(text: str, first: str = "") -> list[str]:
    return textwrap.wrap(text, 78, initial_indent=first, subsequent_indent=" " * max(2, len(first)))


def _suite_json(side: _Suite) -> dict[str, Any]:
    return {"suite": side.plan.id, "created": side.plan.created, "require": side.plan.require}


def _cell_json(each: _CellPair, sides: tuple[Sequence[Summary], Sequence[Summary]]) -> dict[str, Any]:
    matched = each.matched
    found: dict[str, Any] = {"cassette": matched.cassette or None}
    for name, column, summaries in zip(("one", "other"), (matched.one, matched.other), sides):
        cell = next((one for one in summaries if one.key == Key(matched.cassette, *column)), None)
        counts = {"share": cell.share, "interval": cell.interval, "result": cell.outcome} if cell else {}
        side = matched.pair.one if name == "one" else matched.pair.other
        found[name] = {"model": column[0], "arm": column[1], "passes": side.passes, "runs": side.runs, **counts}
    return {**found, **described.pair_json(matched.pair), "changed": change_json(each.changes)}


# --- within one suite -----------------------------------------------------------------------


def _within(side: _Suite, as_json: bool, screen: Screen) -> int:
    """Compare a suite's models and arms with each other, and each cell's first tries with its last: that is noise."""
    pairs = compare(side.summaries, side.cells)
    if not pairs:
        raise CassetteError(
            f"{side.plan.id} has nothing to compare within: that takes two models or arms, or two tries of a cell"
        )
    if as_json:
        comparisons = [described.pair_json(pair) for pair in pairs]
        told = {"schema": JSON_SCHEMA, "suites": [_suite_json(side)], "comparisons": comparisons, "exit_code": 0}
        screen.print(json.dumps(told, allow_nan=False))
        return 0
    lines = [_head("A", side)]
    for halves, title in ((False, "models and arms"), (True, "noise: the same arm, its first tries against its last")):
        if chosen := [pair for pair in telling(pairs) if pair.halves == halves]:
            lines += [f"{title}:", *(line for pair in chosen for line in _wrapped(pair_text(pair), "- "))]
    screen.print("\n".join(lines))
    return 0


# --- two runs --------------------------------------------------------------------------------


def _two(one: _One, other: _One, as_json: bool, screen: Screen) -> int:
    if one.key.cassette != other.key.cassette:
        names = " and ".join(repr(side.key.cassette) for side in (one, other))
        raise CassetteError(f"these are runs of two cassettes, {names}: compare two runs of one")
    entries = [[side.entry] if side.entry else [] for side in (one, other)]
    changes, asked = _changed(entries[0], entries[1]), [_asked(side.run) for side in (one, other)]
    only = [[call for call in mine if call not in yours] for mine, yours in (asked, asked[::-1])]
    if as_json:
        told = {
            "schema": JSON_SCHEMA,
            "cassette": one.key.cassette,
            "runs": [_run_json(side, calls) for side, calls in zip((one, other), only)],
            "same_answer": one.run.answer == other.run.answer,
            "changed": change_json(changes),
            "differs": False,  # one run against one can show no difference
        }
        screen.print(json.dumps(told, allow_nan=False))
        return 0
    screen.print("\n".join(_told_two(one, other, changes, only)))
    return 0


def _asked(run: Run) -> list[str]:
    return [f"{call.get('tool')} {compact(call.get('args'))}" for call in run.calls]


def _run_json(side: _One, only: Sequence[str]) -> dict[str, Any]:
    run = side.run
    return {
        "file": run.file,
        "at": run.at,
        "model": run.model,
        "arm": side.key.arm,
        "result": run.result,
        "pins": [{"pin": pin, "ok": ok} for pin, ok in run.pins],
        "path": run.path,
        "only": list(only),
        "seconds": run.seconds,
        "tokens": run.tokens,
        "cost": run.cost,
    }


def _told_two(one: _One, other: _One, changes: Sequence[Change], only: Sequence[Sequence[str]]) -> Iterator[str]:
    for letter, side in (("A", one), ("B", other)):
        who = column_name((side.run.model, side.key.arm))
        yield shown(f"{letter}  {one.key.cassette} with {who}, {side.run.at}: {side.run.result}")
    if changes:
        yield from _wrapped(f"changed from A to B: {changes_text(changes)}")
    held = [dict(side.run.pins) for side in (one, other)]
    for pin in dict.fromkeys((*held[0], *held[1])):
        marks = ["[ok]" if pins.get(pin) else "[--]" if pin in pins else "none" for pins in held]
        if marks[0] != marks[1]:
            yield f"pin {marks[0]} in A, {marks[1]} in B: {shown(pin, _LINE)}"
    for letter, side, calls in zip("AB", (one, other), only):
        yield f"path of {letter}: {shown(side.run.path, _LINE)}"
        yield from (f"  only {letter} asked {shown(call, _LINE)}" for call in calls[:_CALLS])
        if len(calls) > _CALLS:
            yield f"  and {count(len(calls) - _CALLS, 'more call')}"
    if one.run.answer == other.run.answer:
        yield "both answered with the same text"
    else:
        for letter, side in (("A", one), ("B", other)):
            yield f"answer of {letter}:"
            yield textwrap.indent("\n".join(beginning(side.run.answer, _LINES, "see the run file")), "  ")
    yield "one run against one can show no difference: run more with --repeat, and compare the suites"
