"""A cassette's runs over time: how often it passed, and what had changed before it no longer did.

Pure: run files' contents in, values out.  A run of an older version of the
plugin lacks some facts; what is not known is no change.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from . import stats
from .cells import WORST_FIRST, Outcome

__all__ = ["Entry", "Fall", "MARKS", "Row", "entry", "falls", "rows"]

#: What can change between two runs, as `history` calls it.
MARKS = ("Hermes", "plugin", "cassette", "model", "system prompt")


class Entry(NamedTuple):
    """One run, as far as its history is concerned.

    `group` is the suite's id, or the day of a run that belongs to none.
    `asked` is the model that was asked for, "" for Hermes's own default.
    `facts` maps what can change to a text that tells it apart: a version, a
    hash, a name.
    """

    at: str
    group: str
    asked: str
    arm: str
    result: Outcome
    facts: Mapping[str, str]


class Row(NamedTuple):
    """The runs of one group with one model and one arm.

    `changed` names what was not as in the row before of the same model and arm.
    """

    group: str
    first: str  #: when its first run was, UTC
    model: str
    arm: str
    passes: int
    runs: int  #: tries, so without INVALID ones
    counts: Mapping[Outcome, int]
    changed: tuple[str, ...]


class Fall(NamedTuple):
    """Between which two rows a model's share of PASS fell, what changed there, and the p-value of so great a fall."""

    before: Row
    after: Row
    changed: tuple[str, ...]
    chance: float


def entry(run: Mapping[str, Any]) -> Entry | None:
    """Read one run file's content; None if it is none that can be placed in time."""
    result, at = run.get("result"), run.get("at")
    if result not in WORST_FIRST or not isinstance(at, str) or len(at) < 10:
        return None
    cell = run.get("cell")
    cell = cell if isinstance(cell, Mapping) else {}
    suite = run.get("suite")
    asked = cell.get("model", run.get("asked", run.get("model", "")))
    return Entry(
        at=at,
        group=suite if isinstance(suite, str) and suite else at[:10],
        asked=str(asked or ""),
        arm=str(cell.get("arm") or ""),
        result=result,
        facts=dict(_facts(run)),
    )


def _facts(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What went into a run; a fact that is missing is left out."""
    inputs = run.get("inputs")
    inputs = inputs if isinstance(inputs, Mapping) else {}
    plugin = (run.get("plugin"), run.get("fingerprint"))
    known = (
        run.get("hermes"),
        " ".join(map(str, plugin)) if all(plugin) else None,
        run.get("cassette_sha256"),
        run.get("model"),
        inputs.get("system_prompt"),
    )
    for mark, value in zip(MARKS, known, strict=True):
        if isinstance(value, str) and value:
            yield mark, value
    for kind in ("skills", "files"):
        hashes = inputs.get(kind)
        for name, value in hashes.items() if isinstance(hashes, Mapping) else ():
            yield (f"skill {name}" if kind == "skills" else str(name)), str(value)


def rows(entries: Iterable[Entry], last: int | None = None) -> list[Row]:
    """Put runs into rows, oldest first.

    :param last: how many groups to keep, the newest of them; None keeps all.
    """
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for one in sorted(entries, key=lambda one: one.at):
        groups.setdefault((one.group, one.asked, one.arm), []).append(one)
    found: list[Row] = []
    before: dict[tuple[str, str], Mapping[str, str]] = {}  # model and arm -> the facts as last known
    for (group, asked, arm), members in groups.items():
        facts = before.get((asked, arm), {})
        changed: dict[str, None] = {}
        for one in members:
            changed.update(dict.fromkeys(_changed(facts, one.facts)))
            facts = {**facts, **one.facts}
        before[asked, arm] = facts
        counts: dict[Outcome, int] = {one: sum(m.result == one for m in members) for one in WORST_FIRST}
        tries = len(members) - counts["INVALID"]
        found.append(Row(group, members[0].at, asked, arm, counts["PASS"], tries, counts, tuple(changed)))
    if last is None:
        return found
    kept = set(list(dict.fromkeys(row.group for row in found))[-last:] if last > 0 else ())
    return [row for row in found if row.group in kept]


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    return (mark for mark, value in after.items() if before.get(mark, value) != value)


def falls(found: Sequence[Row]) -> list[Fall]:
    """For each model and arm whose newest row is below an earlier one: where it fell last, and what lies between.

    It fell between the last row whose share was at least as high as any before
    it and the row after that one; rows without a try say nothing.
    """
    result = []
    for model, arm in dict.fromkeys((row.model, row.arm) for row in found):
        if fall := _last_fall([row for row in found if (row.model, row.arm) == (model, arm)]):
            result.append(fall)
    return result


def _last_fall(every: Sequence[Row]) -> Fall | None:
    own = [row for row in every if row.runs]
    if len(own) < 2:
        return None
    best = max(row.passes / row.runs for row in own[:-1])
    newest = own[-1]
    if newest.passes / newest.runs >= best:
        return None
    good = max(place for place, row in enumerate(own[:-1]) if row.passes / row.runs == best)
    before, after = own[good], own[good + 1]
    between = every[every.index(before) + 1 : every.index(after) + 1]
    changed = tuple(dict.fromkeys(mark for row in between for mark in row.changed))
    return Fall(before, after, changed, stats.fisher(before.passes, before.runs, after.passes, after.runs))
