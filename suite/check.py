"""Is the world still the one that was recorded?  The command `hermes cassette check`.

Without a model and without a tool: a cassette's files, pins, skills and prompt
files are held against today's, and so is the Hermes that recorded.  Nothing is
written.  Exit status 0: as recorded; 1: something changed; 2: an error, also
where something could not be compared.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ..cassette_store import Cassette, CassetteError, Recorder, Store, same_file, shown
from ..hooks import Plugin, find_ripgrep
from ..snapshot import Redactor, Workspace, hermes_redactor
from .door import ERROR, JSON_SCHEMA, Screen, quote
from .drift import Change, Drift, compare_files, count_changed
from .places import Lost, Matches, lost_pins
from .plan import choose

__all__ = ["CHANGED", "Finding", "Means", "changed_files", "check", "told_changed"]

#: Exit status where something changed; `door.ERROR` where something could not be told.
CHANGED = 1
#: Changes of one kind, and characters of a line, that are printed.
_TOLD, _LINE = 20, 100
#: Runs of which it is looked up what went into them.
_RUNS = 10


class Means(NamedTuple):
    """What the command needs of the module that may start processes.

    `inputs` tells what prompt files a run in a folder would be given, and these
    skills, in the form that a run's file has them.
    """

    folder: Callable[[str], str]
    ripgrep: Callable[[], int]
    matches: Matches
    inputs: Callable[[str, Sequence[str]], Mapping[str, Any]] = lambda folder, skills: {}


class Finding(NamedTuple):
    """What was found out about one cassette.

    `hermes` and `inputs` are sentences, `untold` says what could not be compared.
    """

    name: str
    folder: str
    drift: Drift
    lost: tuple[Lost, ...] = ()
    hermes: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The exit status for this cassette alone."""
        if self.untold or any(one.kind == "unknown" for one in self.drift.changes):
            return ERROR
        return CHANGED if self.drift.changes or self.lost or self.hermes or self.inputs else 0


def check(means: Means, plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    """Compare each cassette with the world; print what is not as recorded, and return the exit status."""
    store = plugin.store()
    known = store.names()
    names = choose(options.cassette_names, known) if options.cassette_names else known
    redaction = functools.cache(lambda: hermes_redactor(forced=True))
    status, told = 0, []
    for name in names:
        screen.progress(f"checking {name} ...")
        try:
            found = _find(store, name, means, plugin, options.cassette_in, redaction)
        except CassetteError as error:
            status = ERROR
            told.append({"name": name, "error": str(error)})
            if not options.cassette_json:
                screen.error(f"{name}: {error}")
            continue
        status = max(status, found.status)
        told.append(_as_json(found))
        if not options.cassette_json:
            screen.print("\n".join(_lines(found)))
    if options.cassette_json:
        screen.print(json.dumps({"schema": JSON_SCHEMA, "status": status, "cassettes": told}))
    elif not names:
        screen.print("no cassettes yet: hermes cassette record NAME says how to make one")
    screen.done()
    return status


def _find(
    store: Store, name: str, means: Means, plugin: Plugin, folder: str | None, redaction: Callable[[], Redactor | None]
) -> Finding:
    """Look at one cassette.  :raises CassetteError: if it cannot be read, or its folder is not there."""
    cassette, _ = store.read(name)
    if folder is None and not cassette.cwd and cassette.snapshot.files:
        raise CassetteError("it does not know its folder: name one with --in DIR")
    where = means.folder(folder if folder is not None else cassette.cwd) if folder is not None or cassette.cwd else ""
    version = plugin.facts.hermes
    untold: list[str] = []
    drift, lost = Drift(0, (), {}), list[Lost]()
    if where:
        drift = compare_files(cassette, Workspace.here(where), redaction, version)
        try:
            lost, late = lost_pins(cassette.pins, cassette.snapshot, drift, means.matches)
            untold += [f'the pin "{pin}" could not be tried' for pin in late]
        except (OSError, ValueError) as error:
            untold.append(f"the pins that are regular expressions could not be tried ({error})")
    inputs = _inputs_now(_seen(store.last_runs(name, _RUNS), where), means.inputs, where)
    hermes = _hermes_now(cassette.recorder, version, means.ripgrep)
    return Finding(name, where, drift, tuple(lost), tuple(hermes), tuple(inputs), tuple(untold))


def _hermes_now(recorder: Recorder, version: str, ripgrep: Callable[[], int]) -> Iterator[str]:
    """What of this Hermes is not as it was in the recording's; what either does not know is no difference."""
    if recorder.hermes and version and recorder.hermes != version:
        yield f"Hermes {recorder.hermes} recorded, this is {version}"
    if recorder.platform and recorder.platform != sys.platform:
        yield f"recorded on {recorder.platform}, this is {sys.platform}"
    search = "rg" if find_ripgrep() else "grep"
    if recorder.search and recorder.search != search:
        yield f"Hermes searched with {recorder.search}, and would with {search} now"
    elif search == "rg" and recorder.rg_major and (major := ripgrep()) and major != recorder.rg_major:
        yield f"Hermes searched with ripgrep {recorder.rg_major}, and would with ripgrep {major} now"


#: What runs saw: "skills" and "files", each name to its hash and the time of the newest run that saw it.
_Seen = Mapping[str, Mapping[str, "tuple[Any, object]"]]


def _seen(runs: Iterable[Mapping[str, Any]], folder: str) -> _Seen:
    """Gather what went into runs, the newest first; prompt files are those of the newest one in this folder."""
    seen: dict[str, dict[str, tuple[Any, object]]] = {}
    for run in runs:
        inputs, at = run.get("inputs"), run.get("at", "")
        inputs = inputs if isinstance(inputs, dict) else {}
        skills, files = inputs.get("skills"), inputs.get("files")
        for key, value in skills.items() if isinstance(skills, dict) else ():
            seen.setdefault("skills", {}).setdefault(key, (value, at))
        if isinstance(files, dict) and "files" not in seen and folder and same_file(folder, str(run.get("folder", ""))):
            seen["files"] = {key: (value, at) for key, value in files.items()}
    return seen


def _inputs_now(seen: _Seen, inputs: Callable[[str, Sequence[str]], Mapping[str, Any]], folder: str) -> Iterator[str]:
    """Which skills and prompt files are not as the last runs saw them."""
    now = inputs(folder, list(seen.get("skills", ()))) if seen else {}
    for kind, word in (("skills", "skill "), ("files", "")):
        before, after = seen.get(kind), now.get(kind)
        if before is None or not isinstance(after, Mapping):
            continue
        for key, (value, at) in before.items():
            if after.get(key) != value:
                yield f"{word}{key} {'has changed' if key in after else 'is gone'} since the run of {at}"
        yield from (f"{word}{key} is new since the last runs" for key in after if key not in before)


# --- what is printed -----------------------------------------------------------------


def _lines(found: Finding) -> Iterator[str]:
    files = found.drift.files
    counted = f"{files} file{'s' * (files != 1)}"
    where = f" in {shown(found.folder)}" if found.folder else ", no folder known"
    if found.status == 0:
        yield f"{found.name}: as recorded ({counted}{where})"
        return
    word = "changed" if found.status == CHANGED else "not all could be compared"
    yield f"{found.name}: {word} ({counted}{where})"
    for kind in ("changed", "gone", "new", "unknown"):
        changes = [one for one in found.drift.changes if one.kind == kind]
        for one in changes[:_TOLD]:
            yield from _told_change(one)
        if len(changes) > _TOLD:
            yield f"  {kind:8} and {len(changes) - _TOLD} more: --json names all"
    for lost in found.lost[:_TOLD]:
        yield f"  pin      {_told_pin(lost)}"
    if len(found.lost) > _TOLD:
        yield f"  pin      and {len(found.lost) - _TOLD} more places: --json names all"
    yield from (f"  inputs   {shown(text)}" for text in found.inputs)
    yield from (f"  hermes   {shown(text)}" for text in found.hermes)
    yield from (f"  unknown  {shown(text)}" for text in found.untold)


def _told_change(change: Change) -> Iterator[str]:
    place = f"{change.path}:{change.line}" if change.line else change.path
    yield f"  {change.kind:8} {shown(place)}{f' ({shown(change.why)})' * bool(change.why)}"
    if change.line and (change.was, change.now) != (None, None) and not change.why.startswith("its "):
        was, now = _clipped(change.was, change.now)
        yield f"             was  {was}"
        yield f"             now  {now}"


def _clipped(*lines: str | None) -> list[str]:
    """Two lines, cut such that the place where they part is seen."""
    head = len(os.path.commonprefix([line or "" for line in lines]))
    start = max(0, head - _LINE // 2) if any(len(line or "") > _LINE for line in lines) else 0
    return ["(no such line)" if line is None else "..." * bool(start) + shown(line[start:], _LINE) for line in lines]


def _told_pin(lost: Lost) -> str:
    pin, path = shown(lost.pin, _LINE), shown(lost.path)
    if not lost.line:
        return f'"{pin}" named {path}, which is gone'
    now = "that line is gone" if lost.now is None else f"that line now says {shown(lost.now.strip(), _LINE)}"
    other = f"; {shown(lost.elsewhere)} still holds it" if lost.elsewhere else ""
    return f'"{pin}" was in {path}:{lost.line}; {now}{other}'


def _as_json(found: Finding) -> dict[str, Any]:
    return {
        "name": found.name,
        "status": found.status,
        "folder": found.folder,
        "files": found.drift.files,
        "changes": [one._asdict() for one in found.drift.changes],
        "pins": [one._asdict() for one in found.lost],
        "inputs": list(found.inputs),
        "hermes": list(found.hermes),
        "unknown": list(found.untold),
    }


# --- a line under a run -----------------------------------------------------------------


def changed_files(cassette: Cassette, folder: str, version: str) -> dict[str, Any] | None:
    """Count what has changed in the folder that a run works in, in passing.  Never raises.

    :returns: `changed` of `files`, whether `all` were looked at, and `in`, the folder if it is not the recorded one;
        None if nothing has changed, or that cannot be told.
    """
    try:
        redaction = functools.cache(lambda: hermes_redactor(forced=True))
        changed, whole = count_changed(cassette, Workspace.here(folder), redaction, version)
        files, elsewhere = len(cassette.snapshot.files), "" if folder == cassette.cwd else folder
    except Exception:  # a note on the side must cost no run its verdict
        return None
    return {"changed": changed, "files": files, "all": whole, "in": elsewhere} if changed else None


def told_changed(found: Mapping[str, Any], name: str) -> str:
    """Say what `changed_files` counted."""
    least = "" if found["all"] else "at least "
    way = quote(["hermes", "cassette", "check", name, *(["--in", found["in"]] if found["in"] else [])])
    return f"the folder has changed since the recording: {least}{found['changed']} of {found['files']} files; {way}"
