"""What a fill adds to a cassette: two recordings of one request made into one.

A pure function of values.  Nothing of the older recording, the tape, is removed
or replaced: what it holds of a call, a file or a name stays as it was then, and
what the newer one found otherwise is told in a warning.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Iterable, NamedTuple, Sequence

from ..cassette_store import (
    Arm,
    Call,
    Cassette,
    CassetteError,
    Facts,
    Recorder,
    Snapshot,
    SnapshotFile,
    hermes_release,
    shown,
)
from ..hooks import remarks, replay_workspace
from ..middleware import CALL_LIMIT, TURN_LIMIT, Beyond, CommandKeys, Replay, text_bytes
from ..snapshot import SNAPSHOT_LIMIT, WHOLE_LIMIT, Workspace
from .terminal import Terminal

__all__ = ["Filled", "fill", "refuse_loss", "refuse_other_hermes", "several"]

#: Names that a warning lists.
_NAMES = 10
#: A snapshot explains the absence of at most this many files by name.
_ABSENT = 500
#: Other spellings of a cassette's folder, at most.
_ALIASES = 100


class Filled(NamedTuple):
    """A cassette with what was added to it; without calls and files it is as it was.

    `warnings` are those that are new.
    """

    cassette: Cassette
    calls: tuple[Call, ...] = ()
    files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def refuse_other_hermes(name: str, tape: Recorder, now: Recorder) -> None:
    """Refuse to mix what two kinds of Hermes answer in one cassette.

    :raises CassetteError: if they are not of one release, platform and search, or that is not known.
    """
    then, today = hermes_release(tape.hermes), hermes_release(now.hermes)
    differs = ""
    if then is None or then != today:
        differs = f"by Hermes {tape.hermes or 'of unknown version'}, and this is {now.hermes or 'of unknown version'}"
    elif tape.platform != now.platform:
        differs = f"on {tape.platform or 'an unknown platform'}, and this is {now.platform or 'an unknown one'}"
    elif tape.search not in ("", now.search):
        differs = f"where Hermes searched with {tape.search}, and here it does with {now.search or 'something unknown'}"
    if differs:
        raise CassetteError(
            f"{name!r} was recorded {differs}: a fill must not mix what the two answer; record it again"
        )


def fill(tape: Cassette, live: Cassette, at: str, changed: Sequence[str] = (), beyond: Beyond = Beyond()) -> Filled:
    """Add to a tape what a turn that was answered from it ran live.

    :param live: the recording of that turn: the calls that the tape did not know.
    :param at: when it ended, as the warnings tell it.
    :param changed: files of the tape that are not as recorded in the folder that the turn worked in.
    :param beyond: what a replay of the tape does beyond the specification.
    :raises CassetteError: if another kind of Hermes recorded the tape.
    """
    refuse_other_hermes(tape.name, tape.recorder, live.recorder)
    told = [warning for warning in live.warnings if warning not in remarks(live.calls)]
    snapshot, files, odd = _add_files(tape, live)
    told += odd
    calls, left = _add_calls(tape, live, _Spoilers(tape._replace(snapshot=snapshot), beyond))
    told += [f"{several(tools)}: {why}" for why, tools in left.items()]
    if not calls and not files:
        return Filled(tape, warnings=tuple(told))
    told += [warning for warning in remarks(calls) if warning not in tape.warnings]
    told += _other_world(tape, live, changed)
    added = f"{_count(len(calls), 'call')} and {_count(len(files), 'file')}"
    warnings = [f"{added} were added by a fill of {at} with {shown(live.model) or 'an unnamed model'}"]
    warnings += [f"fill of {at}: {warning}" for warning in dict.fromkeys(told)]
    cassette = tape._replace(
        calls=(*tape.calls, *calls),
        not_kept=(*tape.not_kept, *live.not_kept, *(tool for tools in left.values() for tool in tools)),
        snapshot=snapshot,
        warnings=(*tape.warnings, *warnings),
        cwd_aliases=_aliases(tape, live),
    )
    return Filled(cassette, tuple(calls), tuple(files), tuple(warnings))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def several(names: Iterable[str]) -> str:
    """Names in their order, each once with its number, and how many more there are."""
    counts = Counter(names)
    told = [shown(name, 100) + f" ({count})" * (count > 1) for name, count in counts.items()]
    more = len(told) - _NAMES
    return ", ".join(told[:_NAMES]) + f" and {more} more" * (more > 0)


# --- calls ---------------------------------------------------------------------


def _add_calls(tape: Cassette, live: Cassette, spoilers: _Spoilers) -> tuple[list[Call], dict[str, list[str]]]:
    """The calls that are added, and the tools of those that are not, by the reason.

    The limits hold for the tape and for what is added together.
    """
    room = TURN_LIMIT - sum(text_bytes(call.result) for call in tape.calls if isinstance(call.result, str))
    added: list[Call] = []
    left: dict[str, list[str]] = {}
    for call in live.calls:
        size = text_bytes(call.result) if isinstance(call.result, str) else TURN_LIMIT + 1
        why = ""
        if size > room:
            why = "over 12 MB with what the cassette holds"
        elif len(tape.calls) + len(added) >= CALL_LIMIT:
            why = f"over {CALL_LIMIT:,} calls with those that the cassette holds"
        elif call.tool == "terminal":
            why = spoilers.why(call)
        if why:
            left.setdefault(why, []).append(call.tool)
        else:
            added.append(call)
            room -= size
    return added, left


class _Spoilers:
    """Finds the terminal calls that would cost a tape what it can answer without them.

    :param tape: with the files that are to be added.
    """

    def __init__(self, tape: Cassette, beyond: Beyond) -> None:
        self._tape, self._source = tape, None
        self._workspace = replay_workspace(tape, "") if tape.cwd else None
        if beyond.commands is not None:
            _answers(tape, self._workspace, beyond._replace(commands=self._take))

    def _take(self, source: Any, _: Sequence[Call]) -> Any:
        self._source = source

    def _moved(self, *more: Call) -> bool:
        longer = self._tape._replace(calls=(*self._tape.calls, *more))
        return CommandKeys(longer, self._workspace, self._tape.recorder).moved

    def why(self, call: Call) -> str:
        """Why a terminal call is such a one, "" if it is none."""
        if self._moved(call) and not self._moved():
            return "Hermes stays in its workdir"
        if self._source is not None and Terminal(self._source, [call]).contradicted:
            return "its output is not what the recorded files say"
        return ""


def _answers(tape: Cassette, workspace: Workspace | None, beyond: Beyond) -> Replay:
    """What would answer from a tape; it is bound to no turn."""
    arm = Arm("fill", "fill", tape.name, tape.request, "process", 0.0, 0.0, "", "")
    return Replay(arm, "", "", "", Facts("", "", 0, False), tape, workspace, beyond=beyond)


def refuse_loss(tape: Cassette, filled: Cassette, beyond: Beyond) -> None:
    """Refuse a fill after which a replay would answer a recorded call otherwise than before.

    :raises CassetteError: for the first call of the tape that lost its result.
    """
    workspace = replay_workspace(filled, "") if filled.cwd else None
    before, after = _answers(tape, workspace, beyond), _answers(filled, workspace, beyond)
    for number, call in enumerate(filled.calls[:CALL_LIMIT]):
        told = after.known(call.tool, call.args)
        was = before.known(call.tool, call.args) if number < len(tape.calls) else call.result
        if told != was and isinstance(was, str):
            raise CassetteError(
                f"{tape.name!r} would no longer answer a {call.tool} call as before: nothing was changed; record it again"
            )


# --- files ---------------------------------------------------------------------


def _add_files(tape: Cassette, live: Cassette) -> tuple[Snapshot, list[str], list[str]]:
    """The tape's snapshot with the files that it knew nothing of, their paths, and what is to be warned of."""
    old, new = tape.snapshot, live.snapshot
    if not tape.cwd or not live.cwd:
        told = "the folder of the recording is not known: no file was added" if new.files and not tape.cwd else ""
        return old, [], [told] if told else []
    fold = Workspace(tape.cwd, fold_case=tape.recorder.fold_case).fold
    known = _Known(old, fold)
    files: dict[str, SnapshotFile] = dict(old.files)
    room = (WHOLE_LIMIT if old.whole else SNAPSHOT_LIMIT) - sum(text_bytes(file.text) for file in old.files.values())
    added, large, odd = [], [], []
    for path, file in new.files.items():
        size = text_bytes(file.text)
        if known.at(path):
            continue
        if known.contradicts(path, file.size):
            odd.append(path)
        elif size > room:
            large.append(path)
        else:
            files[path] = file
            added.append(path)
            room -= size
    reasons = {
        f"not in the snapshot, since {'24' if old.whole else '8'} MB are the most": large,
        "not in the snapshot, since it was not there, or not as it is, when the cassette was recorded": odd,
    }
    links = {name: target for name, target in new.links.items() if not known.at(name) and not known.contradicts(name)}
    absent = {path: why for path, why in new.skipped_paths.items() if not known.at(path)}
    kept = dict(list(absent.items())[: max(0, _ABSENT - len(old.skipped_paths))])
    skipped = dict(old.skipped)
    for why in kept.values():
        skipped[why] = skipped.get(why, 0) + 1
    snapshot = old._replace(
        files=files, links={**links, **old.links}, skipped_paths={**old.skipped_paths, **kept}, skipped=skipped
    )
    return snapshot, added, [f"{several(paths)}: {why}" for why, paths in reasons.items() if paths]


class _Known:
    """What a snapshot says of paths."""

    def __init__(self, snapshot: Snapshot, fold: Callable[[str], str]) -> None:
        self._fold = fold
        self._here = {*map(fold, snapshot.files), *map(fold, snapshot.skipped_paths), *map(fold, snapshot.links)}
        self._ends = {*map(fold, snapshot.files), *map(fold, snapshot.links)}  # nothing lies below them
        self._folders = {path[:at] for path in self._ends for at, char in enumerate(path) if char == "/"}
        self._names = None if snapshot.names is None else {fold(path): one for path, one in snapshot.names.items()}

    def at(self, path: str) -> bool:
        """Whether it has a file or a link of this name, or tells why it has none."""
        return self._fold(path) in self._here

    def contradicts(self, path: str, size: int | None = None) -> bool:
        """Whether there was no such file, or one of another size, as far as it knows."""
        folded = self._fold(path)
        above = {folded[:at] for at, char in enumerate(folded) if char == "/"}
        if folded in self._folders or above & self._ends:
            return True
        if self._names is None or any(name in self._names and self._names[name].inside is not None for name in above):
            return False
        found = self._names.get(folded)
        return found is None or size is not None and (found.kind, found.size) != ("file", size)


# --- what is to be warned of ---------------------------------------------------------


def _other_world(tape: Cassette, live: Cassette, changed: Sequence[str]) -> list[str]:
    """Say how what was recorded then and what was found now may differ."""
    told = []
    if changed:
        told.append(
            f"{_count(len(changed), 'file')} of the recording had changed, and stay as recorded: {several(changed)}"
        )
    old, new = tape.recorder, live.recorder
    if old.hermes != new.hermes:
        told.append(f"Hermes {shown(new.hermes)} answered, and {shown(old.hermes)} had recorded")
    if old.rg_major and new.rg_major and old.rg_major != new.rg_major:
        told.append(f"ripgrep {new.rg_major} searched, and {old.rg_major} when it was recorded")
    if tape.cwd and live.cwd and old.git != new.git:
        told.append(f"the folder lay in {'a' if new.git else 'no'} git work tree, unlike when it was recorded")
    if tape.cwd and live.cwd and live.cwd not in (tape.cwd, *tape.cwd_aliases):
        told.append(f"the session worked in {shown(live.cwd)}, not in {shown(tape.cwd)}")
    return told


def _aliases(tape: Cassette, live: Cassette) -> tuple[str, ...]:
    """The spellings of the folder: calls that were made in another one mean the same files there."""
    if not tape.cwd or not live.cwd:
        return tape.cwd_aliases
    found = dict.fromkeys((*tape.cwd_aliases, live.cwd, *live.cwd_aliases))
    return tuple(path for path in found if path != tape.cwd)[:_ALIASES]
