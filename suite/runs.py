"""Suites on the disk: their plans, and the run files that belong to them.

A suite has no list of its runs: each run file names its suite, its cell and its
try, and carries the end of the suite's id in its name, so that reading one suite
opens no other's files.  A file that was cut, altered or copied counts for
nothing: it is told, and the try is still to be made.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import re
import secrets
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..cassette_store import CassetteError, FileLock, Store, parse_json, to_json, write_atomically
from .cells import WORST_FIRST, Key, Run
from .history import Entry, entry
from .plan import Plan, PlannedCell, Try, check_id, dump_plan, parse_plan

__all__ = [
    "lock_suite",
    "mark_run",
    "new_id",
    "plan_path",
    "read_plan",
    "read_run",
    "read_suite",
    "run_files",
    "save_plan",
    "stamp",
    "suite_ids",
    "to_run",
]


def new_id(now: datetime.datetime) -> str:
    """A suite's id: it sorts by time."""
    return f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def plan_path(store: Store, id: str) -> Path:
    """Where a suite's plan is kept.  :raises CassetteError: if that is no id."""
    return store.root / "suites" / f"{check_id(id)}.json"


def lock_suite(store: Store, id: str) -> FileLock:
    """The lock of the one command that makes a suite's runs."""
    return FileLock(store.root / "running" / f"suite-{check_id(id)}.lock")


def suite_ids(store: Store) -> list[str]:
    """The ids of all suites that are kept, the newest first."""
    found = []
    with contextlib.suppress(OSError):
        for entry in os.listdir(store.root / "suites"):
            with contextlib.suppress(CassetteError):
                if entry.endswith(".json"):
                    found.append(check_id(entry.removesuffix(".json")))
    return sorted(found, reverse=True)


def save_plan(store: Store, plan: Plan) -> None:
    """Keep a plan.  :raises CassetteError: if it cannot be written."""
    write_atomically(plan_path(store, plan.id), to_json(dump_plan(plan)))


def read_plan(store: Store, id: str) -> Plan:
    """Read a plan.

    :raises CassetteError: if there is none of that id, or it cannot be read or trusted.
    """
    path = plan_path(store, id)
    try:
        plan = store.read_value(path, parse_plan)
        if plan is not None and plan.id != id:
            raise CassetteError("", file=path, field="id", reason=f"is {plan.id!r}, but the file is called {id!r}")
    except CassetteError as error:
        if not error.reason:
            raise
        what = f"field {error.field} {error.reason}" if error.field else error.reason
        raise CassetteError(
            "the suite's plan {file} cannot be used ({reason}): remove it, and start the suite again",
            file=path,
            reason=what,
        ) from None
    if plan is None:
        raise CassetteError(f"there is no suite run {id}: {_known(store)}")
    return plan


def _known(store: Store) -> str:
    newest = suite_ids(store)[:1]
    return f"the newest is {newest[0]}" if newest else "none was made yet"


# --- run files ---------------------------------------------------------------------


def stamp(id: str, at: datetime.datetime, run: str) -> str:
    """The name of a suite's run file: it sorts by time, and says which suite it may belong to."""
    return f"{at:%Y%m%dT%H%M%S}-{id[-6:]}-{run}"


def mark_run(run: Mapping[str, Any], plan: Plan, key: Key, number: int) -> dict[str, Any]:
    """A run as it is kept: with its suite, its cell and its try."""
    return {**run, "suite": plan.id, "cell": {"model": key.model, "arm": key.arm}, "try": number}


def _nobody(told: str) -> None:
    """Tell nobody."""


def read_suite(
    store: Store, id: str, tell: Callable[[str], None] = _nobody, among: Mapping[str, Sequence[Path]] | None = None
) -> tuple[Plan, list[Try]]:
    """Read a suite: its plan, and its runs in the order in which they began.

    A cassette's runs are found under whatever name it has now.

    :param tell: is told of each run file that counts for nothing, in one line.
    :param among: what `run_files` found, for whoever reads many suites.
    :raises CassetteError: if the plan cannot be used.
    """
    plan = read_plan(store, id)
    cells = {cell.key: cell for cell in plan.cells}
    tries: list[Try] = []
    done: set[tuple[Key, int]] = set()
    files = (run_files(store) if among is None else among).get(id[-6:], ())
    for path in sorted(files, key=lambda path: path.name):
        try:
            one = store.read_value(path, lambda data, file: _parse_try(data, file, plan, cells))
        except CassetteError as error:
            told = str(error) if not error.reason else f"{error.file} {error.reason}"
            tell(f"{told}: that file counts for no run")
            continue
        if one is None:
            continue
        if one.run.result != "INVALID":
            if (one.key, one.number) in done:
                tell(f"{path}: try {one.number} of this cell stands there twice: that file counts for no run")
                continue
            done.add((one.key, one.number))
        tries.append(one)
    return plan, tries


def run_files(store: Store) -> dict[str, list[Path]]:
    """The run files of all suites, by the end of a suite's id, which they carry in their names."""
    found: dict[str, list[Path]] = {}
    with contextlib.suppress(OSError):
        for folder in os.scandir(store.root / "runs"):
            with contextlib.suppress(OSError):
                for entry in os.listdir(folder.path):
                    if named := _RUN_FILE.fullmatch(entry):
                        found.setdefault(named[1], []).append(Path(folder.path, entry))
    return found


_RUN_FILE = re.compile(r"[0-9]{8}T[0-9]{6}-([0-9a-f]{6})-[0-9a-f]+\.json")


def _parse_try(data: bytes, file: str, plan: Plan, cells: Mapping[Key, PlannedCell]) -> Try | None:
    """Read a run file as a try of a plan; None if it is another suite's.

    :raises CassetteError: if it is none of the plan's tries, or what it says
        cannot be: its `reason` says why.
    """
    run = parse_json(data, file)
    if not isinstance(run, dict):
        raise _fault(file, "is no run")
    if run.get("suite") != plan.id:
        return None
    cell = run.get("cell")
    if not isinstance(cell, dict):
        raise _fault(file, "does not say which cell it belongs to")
    key = Key(*(_text(one, file, name) for one, name in ((run, "name"), (cell, "model"), (cell, "arm"))))
    planned = cells.get(key)
    if planned is None:
        raise _fault(file, "belongs to no cell of its suite")
    number = run.get("try")
    if type(number) is not int or not 1 <= number <= plan.repeat:
        raise _fault(file, "is none of its cell's tries")
    if run.get("cassette_sha256") != planned.cassette_sha:
        raise _fault(file, "is a run of another cassette than the suite's")
    if not Path(file).stem.endswith(f"-{_text(run, file, 'run')}"):
        raise _fault(file, "is a copy of another run's file")
    return Try(key, number, to_run(run, file), entry(run))


def read_run(store: Store, path: Path) -> tuple[Key, Run, Entry | None] | None:
    """Read one run file by itself, whether or not it belongs to a suite; None if there is none.

    :raises CassetteError: if it is no run's, or says what cannot be.
    """

    def parse(data: bytes, file: str) -> tuple[Key, Run, Entry | None]:
        run = parse_json(data, file)
        if not isinstance(run, dict):
            raise _fault(file, "is no run")
        one = entry(run)
        column = (one.asked, one.arm) if one else ("", "")
        return Key(_text(run, file, "name"), *column), to_run(run, file), one

    found: tuple[Key, Run, Entry | None] | None = store.read_value(path, parse)
    return found


def to_run(run: Mapping[str, Any], file: str) -> Run:
    """A run file's content as a suite looks at it.

    :raises CassetteError: if what it says cannot be.
    """
    result = run.get("result")
    if result not in WORST_FIRST:
        raise _fault(file, "has no result that there is")
    pins = tuple(_parse_pin(pin, file) for pin in _listed(run, file, "pins"))
    reasons = tuple(str(reason) for reason in _listed(run, file, "reasons"))
    calls = tuple(_parse_call(call, file) for call in _listed(run, file, "calls"))
    missed = bool(_listed(run, file, "misses")) or any(call["how"] not in ("hit", "synthesized") for call in calls)
    if result != _result(pins, reasons, missed):
        raise _fault(file, f"says {result}, which its pins, calls and reasons do not")
    usage = run.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens = _number(usage.get("tokens"))
    return Run(
        result,
        answer=_text(run, file, "answer"),
        seconds=_number(run.get("seconds")) or 0.0,
        reasons=reasons,
        pins=pins,
        path=_text(run, file, "path"),
        calls=calls,
        model=_text(run, file, "model"),
        tokens=None if tokens is None else int(tokens),
        cost=_number(usage.get("cost")),
        at=_text(run, file, "at"),
        cassette_sha=_text(run, file, "cassette_sha256"),
        file=file,
    )


def _result(pins: Sequence[tuple[str, bool]], reasons: Sequence[str], missed: bool) -> str:
    """The result that goes with what a run rests on, as `grade` gives it."""
    if reasons:
        return "INVALID"
    if not pins or not all(held for _, held in pins):
        return "FAIL"
    return "DIVERGED" if missed else "PASS"


def _fault(file: str, reason: str) -> CassetteError:
    return CassetteError("{file} {reason}", file=file, reason=reason)


def _text(fields: Mapping[str, Any], file: str, name: str) -> str:
    found = fields.get(name)
    if not isinstance(found, str):
        raise _fault(file, f"has no {name}")
    return found


def _listed(run: Mapping[str, Any], file: str, name: str) -> list[Any]:
    found = run.get(name)
    if not isinstance(found, list):
        raise _fault(file, f"has no list of {name}")
    return found


def _parse_pin(pin: Any, file: str) -> tuple[str, bool]:
    if not isinstance(pin, dict) or not isinstance(pin.get("pin"), str) or not isinstance(pin.get("ok"), bool):
        raise _fault(file, "has a pin that is none")
    return pin["pin"], pin["ok"]


def _parse_call(call: Any, file: str) -> dict[str, Any]:
    if not isinstance(call, dict):
        raise _fault(file, "has a call that is none")
    texts = {name: str(call.get(name) or "") for name in ("tool", "how", "reason", "nearest")}
    return {**texts, "args": call.get("args")}


def _number(value: Any) -> float | None:
    """A number that can be counted with, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    with contextlib.suppress(OverflowError):
        found = float(value)
        return found if math.isfinite(found) and found >= 0 else None
    return None
