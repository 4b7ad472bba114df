"""Which runs a suite consists of, and which of them is next.

A plan is a value and a file: `suites/<id>.json` in the plugin's data folder,
written once, before the first run.  Which runs are done is told by the run
files alone, each of which names its suite, cell and try: a run that is kept
is part of its suite, whatever happens to the command afterwards.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ..cassette_store import CassetteError, Fields, parse_json
from . import stats
from .arguments import MOST_RETRIES, MOST_RUNS, MOST_TRIES
from .cells import Cell, Key, Run
from .history import Entry

__all__ = [
    "Arm",
    "Plan",
    "PlannedCell",
    "Progress",
    "SCHEMA",
    "Try",
    "check_id",
    "choose",
    "cross",
    "dump_plan",
    "gather",
    "parse_arms",
    "parse_plan",
]

#: The format of a plan's file.  1: the first.
SCHEMA = 1
#: Labels of arms: what fits into a table, a file name and an attribute of XML.
_LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}\Z"
#: A suite's id, as it stands in file names.
_ID = r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}\Z"


class Arm(NamedTuple):
    """A set of preloaded skills under a label; the label "" is of a suite without arms."""

    label: str = ""
    skills: tuple[str, ...] = ()


class PlannedCell(NamedTuple):
    """A cell before its first run: which cassette, with which content, model and skills."""

    key: Key
    skills: tuple[str, ...]
    cassette_sha: str


class Plan(NamedTuple):
    """All that a suite was asked to do.

    `repeat` is the tries of each cell, `require` the share of PASS that each
    must reach, `retries` how often a try that ended INVALID is made again.
    `provider`, `folder` and `timeout` (seconds) are those of every run; ""
    leaves the first two to Hermes and to the cassette.
    """

    id: str
    created: str  #: UTC, ISO 8601
    cells: tuple[PlannedCell, ...]
    repeat: int = 1
    require: float = 1.0
    retries: int = 1
    stop_early: bool = False
    provider: str = ""
    folder: str = ""
    timeout: float = 900.0
    plugin: str = ""
    fingerprint: str = ""


class Try(NamedTuple):
    """One finished run of a plan: of which cell, for which of its tries, counted from 1."""

    key: Key
    number: int
    run: Run
    entry: Entry | None = None  #: the same, as far as its history is concerned


# --- from words to a plan ----------------------------------------------------------


def choose(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the cassettes that names and shell patterns mean, each once, in the order asked for.

    :raises CassetteError: for a name that there is not (the nearest is
        offered), and a pattern that no name matches.
    """
    found: dict[str, None] = {}
    for word in words:
        if any(char in word for char in "*?["):
            matching = [name for name in names if fnmatch.fnmatchcase(name, word)]
            if not matching:
                raise CassetteError(f"no cassette matches {word!r}: see 'hermes cassette list'")
        elif word in names:
            matching = [word]
        else:
            near = difflib.get_close_matches(word, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else "see 'hermes cassette list'"
            raise CassetteError(f"there is no cassette {word!r}: {hint}")
        found.update(dict.fromkeys(matching))
    return list(found)


def parse_arms(words: Sequence[str]) -> list[Arm]:
    """Read `LABEL=SKILL[,SKILL]` words; `LABEL=` is an arm without a skill.

    :raises CassetteError: for a word without a label or a `=`, and a label
        that comes twice.
    """
    arms: dict[str, Arm] = {}
    for word in words:
        label, equals, skills = word.partition("=")
        if not equals or not re.match(_LABEL, label):
            raise CassetteError(
                f"--arm {word!r} is no LABEL=SKILL[,SKILL]: write for example --arm plain= or --arm tuned=my-skill"
            )
        if label in arms:
            raise CassetteError(f"--arm {label} stands twice: give each arm a label of its own")
        arms[label] = Arm(label, tuple(skill.strip() for skill in skills.split(",") if skill.strip()))
    return list(arms.values()) or [Arm()]


def cross(cassettes: Mapping[str, str], models: Sequence[str], arms: Sequence[Arm]) -> tuple[PlannedCell, ...]:
    """Every cassette with every model and every arm.

    :param cassettes: name to the SHA-256 of its file.
    """
    return tuple(
        PlannedCell(Key(name, model, arm.label), arm.skills, sha)
        for name, sha in cassettes.items()
        for model in dict.fromkeys(models or [""])
        for arm in arms
    )


def check_id(text: str) -> str:
    """Return a suite's id, or refuse it.  :raises CassetteError: if it is none."""
    if not re.match(_ID, text):
        raise CassetteError(f"{text!r} is no id of a suite run: 'hermes cassette history' shows them")
    return text


# --- a plan as JSON -------------------------------------------------------------------


def dump_plan(plan: Plan) -> dict[str, Any]:
    """A plan as its file holds it."""
    cells = [{**cell.key._asdict(), "skills": cell.skills, "cassette_sha256": cell.cassette_sha} for cell in plan.cells]
    return {"schema": SCHEMA, **plan._asdict(), "cells": cells}


def parse_plan(data: bytes, file: str) -> Plan:
    """Decode a plan.

    :raises CassetteError: if anything is not as this version writes it.
    """
    fields = Fields(parse_json(data, file), file)
    if (schema := fields.get("schema", int)) != SCHEMA:
        raise fields.bad("schema", f"is {schema}, not {SCHEMA}")
    plan = Plan(
        id=check_id(fields.get("id", str)),
        created=fields.get("created", str),
        cells=tuple(_parse_cells(fields)),
        repeat=fields.get("repeat", int),
        require=fields.number("require"),
        retries=fields.get("retries", int),
        stop_early=fields.get("stop_early", bool),
        provider=fields.get("provider", str),
        folder=fields.get("folder", str),
        timeout=fields.number("timeout"),
        plugin=fields.get("plugin", str),
        fingerprint=fields.get("fingerprint", str),
    )
    bounds = (
        ("repeat", 1 <= plan.repeat <= MOST_TRIES and plan.repeat * len(plan.cells) <= MOST_RUNS),
        ("require", 0 < plan.require <= 1),
        ("retries", 0 <= plan.retries <= MOST_RETRIES),
        ("timeout", 0 < plan.timeout < 1e7),
        ("cells", 0 < len(plan.cells) == len({cell.key for cell in plan.cells})),
    )
    for name, within in bounds:
        if not within:
            raise fields.bad(name, "is out of bounds")
    return plan


def _parse_cells(fields: Fields) -> Iterator[PlannedCell]:
    for index, value in enumerate(fields.get("cells", list)):
        cell = Fields(value, fields.file, "cells", index)
        key = Key(cell.get("cassette", str), cell.get("model", str), cell.get("arm", str))
        yield PlannedCell(key, cell.texts("skills"), cell.get("cassette_sha256", str))


# --- what is next ---------------------------------------------------------------------


def gather(plan: Plan, tries: Iterable[Try], troubles: Mapping[Key, str] | None = None) -> list[Cell]:
    """The plan's cells with the runs that are done, in the plan's order."""
    runs: dict[Key, list[Run]] = {cell.key: [] for cell in plan.cells}
    for one in tries:
        if one.key in runs:
            runs[one.key].append(one.run)
    told = troubles or {}
    return [Cell(cell.key, plan.repeat, tuple(runs[cell.key]), told.get(cell.key, "")) for cell in plan.cells]


class Progress:
    """Which tries of a plan are done, under way, or still to be made.

    Not for several threads: its owner locks.
    """

    def __init__(self, plan: Plan, tries: Iterable[Try] = ()) -> None:
        self.plan = plan
        self.tries: list[Try] = []
        self.troubles: dict[Key, str] = {}
        self._under_way: set[tuple[Key, int]] = set()
        self._failed: dict[tuple[Key, int], int] = {}  # a try -> how often it ended INVALID
        self._done: set[tuple[Key, int]] = set()
        self._counts = {cell.key: [0, 0] for cell in plan.cells}  # passes and tries of each cell
        for one in tries:
            self.end(one)

    def next(self) -> tuple[PlannedCell, int] | None:
        """Take the next try: a round of every cell, then the next round, so that a slow hour hits all alike.

        :returns: None when nothing is left to start.
        """
        for number in range(1, self.plan.repeat + 1):
            for cell in self.plan.cells:
                place = (cell.key, number)
                if place not in self._done and place not in self._under_way and not self._is_over(cell.key):
                    self._under_way.add(place)
                    return cell, number
        return None

    def end(self, one: Try) -> None:
        """Note a finished run; an INVALID one is made again while retries are left."""
        place = (one.key, one.number)
        self._under_way.discard(place)
        counts = self._counts.get(one.key)
        if counts is None:
            return
        self.tries.append(one)
        if one.run.result == "INVALID":
            self._failed[place] = self._failed.get(place, 0) + 1
            if self._failed[place] <= self.plan.retries:
                return
        else:
            counts[0] += one.run.result == "PASS"
            counts[1] += 1
        self._done.add(place)

    def give_up(self, key: Key, why: str) -> None:
        """Make no more runs of a cell: it can have no answer."""
        self.troubles.setdefault(key, why)
        self._under_way = {place for place in self._under_way if place[0] != key}

    def drop(self, key: Key, number: int) -> None:
        """A try that was under way left no run: it is still to be made."""
        self._under_way.discard((key, number))

    def cells(self) -> list[Cell]:
        """The cells as they stand."""
        return gather(self.plan, self.tries, self.troubles)

    def left(self) -> dict[Key, int]:
        """How many tries are still to be made, of each cell that has some."""
        found = {
            cell.key: sum((cell.key, number) not in self._done for number in range(1, self.plan.repeat + 1))
            for cell in self.plan.cells
            if not self._is_over(cell.key)
        }
        return {key: number for key, number in found.items() if number}

    def counts(self) -> tuple[int, int]:
        """How many tries are done or need not be made, and how many there are."""
        total = len(self.plan.cells) * self.plan.repeat
        return total - sum(self.left().values()), total

    def _is_over(self, key: Key) -> bool:
        if key in self.troubles:
            return True
        passes, tries = self._counts[key]
        return self.plan.stop_early and stats.is_decided(passes, tries, self.plan.repeat, self.plan.require)
