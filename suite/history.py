"""A cassette's runs over time: how often it passed, and what had changed before it no longer did.

Pure: run files' contents in, values out.  A run of an older version of the
plugin lacks some facts; what is not known is no change.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from . import stats
from .cells import WORST_FIRST, Outcome

__all__ = ["Change", "Entry", "Fall", "Known", "MARKS", "Row", "entry", "falls", "joined", "rows"]

#: What can change between two runs, as `history` calls it; skills and files have their own names besides.
MARKS = ("Hermes", "plugin", "cassette", "model", "system prompt", "skills")
#: Of those, the ones whose values a person can read.
_READABLE = ("Hermes", "plugin", "model", "skills")
#: Characters of a fact, and facts of one kind, that are looked at: a run file may be anybody's.
_LONGEST, _MOST = 200, 200


class Entry(NamedTuple):
    """One run, as far as its history is concerned.

    `group` is the suite's id, or the day of a run that belongs to none.
    `asked` is the model that was asked for, "" for Hermes's own default; `arm`
    the label of its skills, or else their names.  `facts` maps what can change
    to a text that tells it apart: a version, a hash, a name.  `files` maps the
    instructions that were there to their hashes; None if that is not known.
    """

    at: str
    group: str
    asked: str
    arm: str
    result: Outcome
    facts: Mapping[str, str]
    files: Mapping[str, str] | None = None


class Change(NamedTuple):
    """Something that is not as it was; "" stands for a file that is not there."""

    mark: str
    before: str
    after: str

    def told(self) -> str:
        """The change in words; its text is that of names and versions of any origin."""
        if self.mark in _READABLE:
            return f"{self.mark} ({self.before or 'none'} to {self.after or 'none'})"
        return self.mark + (" (new)" if not self.before else " (gone)" if not self.after else "")


class Row(NamedTuple):
    """The runs of one group with one model and one arm.

    `changes` holds what was not as in the row before of the same model and arm.
    """

    group: str
    first: str  #: when its first run was, UTC
    model: str
    arm: str
    passes: int
    runs: int  #: tries, so without INVALID ones
    counts: Mapping[Outcome, int]
    changes: tuple[Change, ...]

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of what changed."""
        return tuple(change.mark for change in self.changes)


class Fall(NamedTuple):
    """Between which two rows a model's share of PASS fell, and what changed there.

    `chance` is the p-value of so great a fall between these two rows, `adjusted`
    that of so great a fall between any two neighbours that were looked at.
    """

    before: Row
    after: Row
    changes: tuple[Change, ...]
    chance: float
    adjusted: float

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of what changed."""
        return tuple(change.mark for change in self.changes)


def entry(run: Mapping[str, Any]) -> Entry | None:
    """Read one run file's content; None if it is none that can be placed in time."""
    result, at = run.get("result"), run.get("at")
    if result not in WORST_FIRST or not isinstance(at, str) or len(at) < 10:
        return None
    cell = run.get("cell")
    suite, inputs = run.get("suite"), run.get("inputs")
    files = inputs.get("files") if isinstance(inputs, Mapping) else None
    skills = _listed(run.get("skills"))
    if isinstance(cell, Mapping):
        asked, arm = cell.get("model", ""), cell.get("arm", "")
    else:
        asked, arm = run.get("asked", run.get("model", "")), "+".join(skills or ())
    return Entry(
        at=at[:_LONGEST],
        group=suite[:_LONGEST] if isinstance(suite, str) and suite else at[:10],
        asked=str(asked or "")[:_LONGEST],
        arm=str(arm or "")[:_LONGEST],
        result=result,
        facts=dict(_facts(run, skills)),
        files=dict(_hashes(files)) if isinstance(files, Mapping) else None,
    )


def _listed(value: Any) -> list[str] | None:
    return [str(one)[:_LONGEST] for one in value[:_MOST]] if isinstance(value, list) else None


def _hashes(value: Any) -> Iterator[tuple[str, str]]:
    for name, one in islice(value.items() if isinstance(value, Mapping) else (), _MOST):
        yield str(name)[:_LONGEST], str(one)[:_LONGEST]


def _facts(run: Mapping[str, Any], skills: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """What went into a run; a fact that is missing is left out."""
    inputs = run.get("inputs")
    inputs = inputs if isinstance(inputs, Mapping) else {}
    plugin = (run.get("plugin"), str(run.get("fingerprint") or "")[:8])
    known = (
        run.get("hermes"),
        " ".join(map(str, plugin)) if all(plugin) else None,
        run.get("cassette_sha256"),
        run.get("model"),
        inputs.get("system_prompt"),
    )
    for mark, value in zip(MARKS, known):
        if isinstance(value, str) and value:
            yield mark, value[:_LONGEST]
    if skills is not None:
        yield "skills", ", ".join(skills)[:_LONGEST]
    yield from ((f"skill {name}", one) for name, one in _hashes(inputs.get("skills")))


class Known:
    """What is known of the runs so far: what was given to the last of them that tells it."""

    def __init__(self) -> None:
        self._facts: dict[str, str] = {}
        self._files: dict[str, str] | None = None

    def take(self, one: Entry) -> Iterator[Change]:
        """Go on to a later run, and say what is not as it was known."""
        for mark, value in one.facts.items():
            if self._facts.get(mark, value) != value:
                yield Change(mark, self._facts[mark], value)
            self._facts[mark] = value
        if one.files is not None:
            before = one.files if self._files is None else self._files
            for name in dict.fromkeys((*before, *one.files)):
                if before.get(name, "") != one.files.get(name, ""):
                    yield Change(name, before.get(name, ""), one.files.get(name, ""))
            self._files = dict(one.files)

    def take_all(self, entries: Iterable[Entry]) -> tuple[Change, ...]:
        """Go on to several later runs; what changed twice is told once, from its first value to its last."""
        return joined(change for one in entries for change in self.take(one))


def joined(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Changes in the order of time, each mark once, from its first value to its last."""
    found: dict[str, Change] = {}
    for one in changes:
        found[one.mark] = one._replace(before=found[one.mark].before) if one.mark in found else one
    return tuple(found.values())


def rows(entries: Iterable[Entry], last: int | None = None) -> list[Row]:
    """Put runs into rows, oldest first.

    :param last: how many groups to keep, the newest of them; None keeps all.
    """
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for one in sorted(entries, key=lambda one: one.at):
        groups.setdefault((one.group, one.asked, one.arm), []).append(one)
    found: list[Row] = []
    known: dict[tuple[str, str], Known] = {}  # by model and arm
    for (group, asked, arm), members in groups.items():
        changes = known.setdefault((asked, arm), Known()).take_all(members)
        counts: dict[Outcome, int] = {one: sum(m.result == one for m in members) for one in WORST_FIRST}
        tries = len(members) - counts["INVALID"]
        found.append(Row(group, members[0].at, asked, arm, counts["PASS"], tries, counts, changes))
    if last is None:
        return found
    kept = set(list(dict.fromkeys(row.group for row in found))[-last:] if last > 0 else ())
    return [row for row in found if row.group in kept]


def falls(found: Sequence[Row]) -> list[Fall]:
    """For each model and arm whose newest row is below an earlier one: where it fell last, and what lies between.

    It fell between the last row whose share was at least as high as any before
    it and the row after that one; rows without a try say nothing.  Since that
    place is searched for, its p-value is corrected for all places there are.
    """
    result, places = [], 0
    for model, arm in dict.fromkeys((row.model, row.arm) for row in found):
        own = [row for row in found if (row.model, row.arm) == (model, arm)]
        places += max(0, sum(row.runs > 0 for row in own) - 1)
        if fall := _last_fall(own):
            result.append(fall)
    return [fall._replace(adjusted=min(1.0, fall.chance * places)) for fall in result]


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
    changes = joined(change for row in between for change in row.changes)
    chance = stats.fisher(before.passes, before.runs, after.passes, after.runs)
    return Fall(before, after, changes, chance, chance)
