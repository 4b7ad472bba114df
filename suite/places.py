"""Where the pinned facts stood in a snapshot, and what stands there today.

Only files that have changed, or are gone, can have lost a fact: the others are
asked no more than whether they still hold it.
"""

from __future__ import annotations

import difflib
from typing import Any, Callable, Iterator, NamedTuple, Sequence

from ..cassette_store import Snapshot
from .pins import pin_holds
from .drift import Change, Drift

__all__ = ["Lost", "Matches", "lost_pins"]

#: Tries regular expressions where that can be stopped: for each in order the index of the
#: first text that it matches or None, or a text that says why it does not compile; those
#: that were not reached in time are left out.
Matches = Callable[[Sequence[str], Sequence[str]], "list[Any]"]

#: Changed files that are searched for a pin, and lines of each that are told of it.
_FILES, _TOLD = 200, 3
#: Lines on either side up to which the counterpart of a line is looked for.
_BLOCK = 400


class Lost(NamedTuple):
    """A fact that stood at a place of the snapshot, and stands there no more.

    `line` is counted from 1 in the recorded text; 0 says that the file's name
    held the fact. `now` is the line that stands there today, None when there is
    none. `elsewhere` is a file of the snapshot that holds the fact today, or "".
    """

    pin: str
    path: str
    line: int
    now: str | None
    elsewhere: str = ""


def lost_pins(pins: Sequence[str], snapshot: Snapshot, drift: Drift, matches: Matches) -> tuple[list[Lost], list[str]]:
    """Tell which pins lost a place where they stood, and which regular expressions could not be tried in time.

    :raises OSError: if no process can be started for the regular expressions.
    :raises ValueError: if what it printed cannot be read.
    """
    touched = [one for one in drift.changes if one.kind in ("changed", "gone") and one.path in snapshot.files]
    touched = touched[:_FILES]
    lost: list[Lost] = []
    for pin in (pin for pin in pins if not pin.startswith("re:")):
        for change in touched:
            old, new = snapshot.files[change.path].text, drift.texts.get(change.path)
            if change.kind == "gone" and pin_holds(pin, change.path):
                lost.append(Lost(pin, change.path, 0, None))
            elif (new is not None or _has_no_text(change)) and pin_holds(pin, old):
                lost += _left(pin, change.path, old, new or "", lambda line: pin_holds(pin, line))
    regexes = [pin for pin in pins if pin.startswith("re:")]
    late: list[str] = []
    if regexes and touched:
        found, late = _lost_regexes(regexes, [one.path for one in touched], snapshot, drift, matches)
        lost += found
    return [_with_elsewhere(one, snapshot, drift) for one in lost], late


def _has_no_text(change: Change) -> bool:
    """Whether a file has no lines any more; one of which they cannot be shown has."""
    return change.kind == "gone" or not change.line


def _left(pin: str, path: str, old: str, new: str, holds: Callable[[str], bool]) -> Iterator[Lost]:
    """The first lines that held a fact and hold it no more; none if as many others do now."""
    before, after = old.split("\n"), new.split("\n")
    held = [at for at, line in enumerate(before) if holds(line)]
    if sum(map(holds, after)) >= len(held):
        return
    told = 0
    for at in held:
        now = _counterpart(before, after, at)
        if now is None or not holds(now):
            yield Lost(pin, path, at + 1, now)
            told += 1
        if told == _TOLD:
            return


def _counterpart(before: Sequence[str], after: Sequence[str], at: int) -> str | None:
    """The line of a changed text that has taken the place of an old one; None when none has."""
    short = min(len(before), len(after))
    head = next((n for n in range(short) if before[n] != after[n]), short)
    room = short - head
    tail = next((n for n in range(room) if before[-1 - n] != after[-1 - n]), room)
    if at < head or at >= len(before) - tail:
        return before[at]
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) == len(new):
        return new[at - head]
    near = new[max(0, at - head - _BLOCK) : at - head + _BLOCK]
    found = difflib.get_close_matches(before[at], near, 1, 0.6)
    return found[0] if found else None


def _lost_regexes(
    regexes: Sequence[str], paths: Sequence[str], snapshot: Snapshot, drift: Drift, matches: Matches
) -> tuple[list[Lost], list[str]]:
    """As `lost_pins`: the first place of each, held against today's text of that file."""
    places = [(path, at, line) for path in paths for at, line in enumerate(snapshot.files[path].text.split("\n"))]
    outcomes = matches(regexes, [line for *_, line in places])
    late = list(regexes[len(outcomes) :])
    by_path: dict[str, dict[str, int]] = {}
    for regex, outcome in zip(regexes, outcomes):
        if isinstance(outcome, int):
            by_path.setdefault(places[outcome][0], {})[regex] = places[outcome][1]
        elif outcome is not None:  # it does not compile
            late.append(regex)
    lost: list[Lost] = []
    for path, asked in by_path.items():
        if path in drift.texts or any(one.path == path and _has_no_text(one) for one in drift.changes):
            after = drift.texts.get(path, "").split("\n")
            outcomes = matches(list(asked), after)
            late += list(asked)[len(outcomes) :]
            before = snapshot.files[path].text.split("\n")
            for (regex, at), outcome in zip(asked.items(), outcomes):
                if outcome is None:
                    lost.append(Lost(regex, path, at + 1, _counterpart(before, after, at)))
    return lost, late


def _with_elsewhere(one: Lost, snapshot: Snapshot, drift: Drift) -> Lost:
    """Add where else the snapshot's files hold a plain fact today."""
    if one.pin.startswith("re:"):
        return one
    touched = {change.path for change in drift.changes if change.path not in drift.texts}
    others = (path for path in snapshot.files if path != one.path and path not in touched)
    texts = ((path, drift.texts.get(path, snapshot.files[path].text)) for path in others)
    return one._replace(elsewhere=next((path for path, text in texts if pin_holds(one.pin, text)), ""))
