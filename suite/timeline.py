"""The command `history`: a cassette's runs over time, and what changed in between.

Only the heads of run files are read, so that a thousand of them take no time.
What they say is somebody's text, and escaped where it is shown.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any, Iterable, Iterator, Sequence

from ..cassette_store import CassetteError, Store, shown
from ..hooks import Plugin
from . import stats
from .door import JSON_SCHEMA, Screen
from .history import Change, Entry, Fall, Row, entry, falls, rows
from .pairs import column_name
from .reports import chance_text, count, counted_text, names_text

__all__ = ["change_json", "changes_text", "read_history", "run"]

#: Characters of a name that is shown in a row.
_NAME = 40


def read_history(store: Store, name: str) -> tuple[list[Entry], list[str]]:
    """Read a cassette's runs.

    :returns: the runs, the oldest first, and the files that cannot be read or are no run's.
    :raises CassetteError: if there is no cassette of that name.
    """
    if name not in store.names():
        store.read(name)  # says that there is none, and offers the nearest
    found: list[Entry] = []
    odd: list[str] = []
    for path, head in store.run_heads(name):
        one = entry(head) if head is not None else None
        if one is None:
            odd.append(path.name)
        else:
            found.append(one)
    return found[::-1], odd


def changes_text(changes: Iterable[Change]) -> str:
    """Changes in a line that is fit to print, "" for none."""
    return shown(", ".join(change.told() for change in changes))


def change_json(changes: Iterable[Change]) -> list[dict[str, str]]:
    """Changes as `--json` tells them."""
    return [change._asdict() for change in changes]


# --- the command ---------------------------------------------------------------------


def run(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    """Tell a cassette's history (`hermes cassette history`).

    :raises CassetteError: if there is no such cassette, or it has no runs.
    """
    name = options.cassette
    entries, odd = read_history(plugin.store(), name)
    if not entries and not odd:
        raise CassetteError(f"{name!r} has no runs yet: hermes cassette run {name}")
    found = rows(entries, options.cassette_last)
    fallen = falls(found)
    if options.cassette_json:
        screen.print(json.dumps(_told_json(name, found, fallen, odd), allow_nan=False))
        return 0
    lines = _told_falls(found, fallen) if options.cassette_bisect else _told_rows(name, entries, found)
    screen.print("\n".join((*lines, *_told_odd(odd))))
    return 0


def _told_json(name: str, found: Sequence[Row], fallen: Sequence[Fall], odd: Sequence[str]) -> dict[str, Any]:
    return {
        "schema": JSON_SCHEMA,
        "name": name,
        "rows": [_row_json(row) for row in found],
        "falls": [
            {
                "before": _row_json(fall.before),
                "after": _row_json(fall.after),
                "changed": change_json(fall.changes),
                "p": fall.chance,
                "p_adjusted": fall.adjusted,
                "differs": fall.adjusted <= stats.ALPHA,
            }
            for fall in fallen
        ],
        "unreadable": list(odd),
    }


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "group": row.group,
        "first": row.first,
        "model": row.model,
        "arm": row.arm,
        "passes": row.passes,
        "runs": row.runs,
        "counts": dict(row.counts),
        "share": row.passes / row.runs if row.runs else None,
        "interval": stats.wilson(row.passes, row.runs),
        "changed": change_json(row.changes),
    }


def _column(row: Row) -> str:
    return shown(column_name((row.model, row.arm)), _NAME)


def _told_rows(name: str, entries: Sequence[Entry], found: Sequence[Row]) -> Iterator[str]:
    yield f"{name}: {count(len(entries), 'run')}, the oldest first; * says what had changed"
    told = [(shown(row.group, _NAME), _column(row), counted_text(row.passes, row.runs, "-")) for row in found]
    widths = [max((len(one[at]) for one in told), default=0) for at in (0, 1)]
    for row, (group, column, share) in zip(found, told):
        others = ", ".join(f"{number} {one}" for one, number in row.counts.items() if number and one != "PASS")
        yield f"{group.ljust(widths[0])}  {column.ljust(widths[1])}  {share}{f'  ({others})' * bool(others)}"
        if row.changes:
            yield from textwrap.wrap(changes_text(row.changes), 76, initial_indent="  * ", subsequent_indent="    ")


def _told_falls(found: Sequence[Row], fallen: Sequence[Fall]) -> Iterator[str]:
    for fall in fallen:
        before, after = fall.before, fall.after
        sides = " to ".join(f"{one.passes} of {one.runs} ({shown(one.group, _NAME)})" for one in (before, after))
        more = "more than chance" if fall.adjusted <= stats.ALPHA else "no difference shown"
        yield f"{_column(before)} fell from {sides}: {more}, adjusted {chance_text(fall.adjusted)}"
        told = changes_text(fall.changes) or "nothing that a run file tells"
        yield from textwrap.wrap(f"changed between them: {told}", 76, initial_indent="  * ", subsequent_indent="    ")
    columns = dict.fromkeys((row.model, row.arm) for row in found)
    fell = {(fall.before.model, fall.before.arm) for fall in fallen}
    if kept := [shown(column_name(one), _NAME) for one in columns if one not in fell]:
        yield f"not below an earlier row: {names_text(kept)}"


def _told_odd(odd: Sequence[str]) -> Iterator[str]:
    if odd:
        yield f"{count(len(odd), 'file')} cut off or no run's, which count for nothing: {shown(names_text(odd))}"
