"""Asking a cassette's request again to record what it lacks: the command `hermes cassette fill`.

It is no replay and gives no verdict: what is on the tape is answered from it, and
every other call runs live, with Hermes's own approvals.  The cassette changes
only when the turn has ended with an answer, from one whole state to the other.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import sys
import textwrap
import time
from typing import Any, Callable, Iterable, Iterator, NamedTuple

from ..cassette_store import (
    JSON_FILE_LIMIT,
    Answered,
    Cassette,
    CassetteError,
    Claim,
    Recorder,
    RecordingState,
    Store,
    check_name,
    dump_cassette,
    parse_cassette,
    same_file,
    shown,
    write_atomically,
)
from ..hooks import Plugin, asked_model, check_replayable, find_ripgrep, hermes_config, refuse_foreign_runtime
from ..middleware import Beyond, Child, other_model
from ..snapshot import KEPT_TOOLS, Workspace, hermes_redactor, terminal_verdict
from .door import ERROR, JSON_SCHEMA, LINE, Screen, compact, quote, shown_lines
from .drift import compare_files
from .fill import Filled, fill, refuse_loss, refuse_other_hermes, several
from .housekeeping import BEFORE_FILL, is_copy

__all__ = ["Means", "replace", "run", "told_way"]

#: How a session of a fill ended: its child, its claim, its state, and what it put aside.
Sent = tuple[Child, "Claim | None", "RecordingState | None", "Cassette | None"]
#: Calls and files that are named.
_TOLD = 20


class Means(NamedTuple):
    """What the command needs of the module that may start processes.

    `send` sends a cassette's request in a folder and returns what its session
    left; `folder` checks a folder; `describe` tells a cassette for `--json`;
    `why` says why a session recorded nothing.
    """

    send: Callable[[Plugin, Store, Cassette, str, str, argparse.Namespace, Screen], Sent]
    folder: Callable[[str], str]
    describe: Callable[[Store, str, Cassette], dict[str, Any]]
    why: Callable[[Child, "Claim | None", "RecordingState | None"], str]
    beyond: Beyond


def run(means: Means, plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    """Fill one cassette and say what was added; return the exit status."""
    store, name = plugin.store(), options.cassette
    store.prepare()
    store.sweep_handovers(time.time())
    options.cassette_left = f"interrupted: {shown(name)!r} was not filled"
    with store.held(name):
        tape, sha = store.read(name)
        copy = _copy_name(store, tape)
        check_replayable(tape.request)
        refuse_foreign_runtime(options.cassette_provider, hermes_config(), options.cassette_model)
        refuse_other_hermes(name, tape.recorder, _recorder_now(plugin))
        if options.cassette_in is None and not tape.cwd:
            raise CassetteError(f"{name!r} does not know its folder: name one with --in DIR")
        folder = means.folder(tape.cwd if options.cassette_in is None else options.cassette_in)
        changed = _changed(tape, folder, plugin)
        child, claim, kept, live = means.send(plugin, store, tape, sha, folder, options, screen)
        if live is None or claim is None or kept is None or kept.state != "saved" or child.code or child.timed_out:
            return _tell_failure(options, screen, means.why(child, claim, kept))
        live = _of_one_folder(tape, _warned(live, claim, options))
        at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        filled = fill(tape, live, at, changed, means.beyond)
        if filled.calls or filled.files:
            refuse_loss(tape, filled.cassette, means.beyond)
            replace(store, tape, filled.cassette, copy)
            options.cassette_left = f"interrupted: {name!r} was filled"
    _tell(means, store, options, screen, filled, live)
    return 0


def _copy_name(store: Store, tape: Cassette) -> str:
    """The name under which the cassette is kept as it is.  :raises CassetteError: if that cannot be."""
    if is_copy(tape.name):
        raise CassetteError(f"{tape.name!r} is what a fill kept of another cassette: rename it, and fill it then")
    copy = tape.name + BEFORE_FILL
    try:
        check_name(copy)
    except CassetteError:
        most = 64 - len(BEFORE_FILL)
        raise CassetteError(
            f"a fill keeps {tape.name!r} as {copy!r}, which is too long for a name: rename it to {most} characters"
        ) from None
    twin = next((one for one in store.names() if one.casefold() == copy.casefold()), "")
    if twin and (twin != copy or store.read(twin)[0].request != tape.request):
        raise CassetteError(f"{twin!r} holds another request than {tape.name!r}: rename or remove it first")
    return copy


def _recorder_now(plugin: Plugin) -> Recorder:
    return Recorder(plugin.facts.hermes, sys.platform, "rg" if find_ripgrep() else "grep")


def _changed(tape: Cassette, folder: str, plugin: Plugin) -> list[str]:
    """The recorded files that are not as recorded in a folder."""
    redaction = functools.cache(lambda: hermes_redactor(forced=True))
    drift = compare_files(tape, Workspace.here(folder), redaction, plugin.facts.hermes)
    return [change.path for change in drift.changes if change.kind != "new" and change.path in tape.snapshot.files]


def _warned(live: Cassette, claim: Claim, options: argparse.Namespace) -> Cassette:
    """Warn of another model than the one that was asked for, which took over before the session began."""
    asked = asked_model(options.cassette_model, claim.model, hermes_config())
    return (
        live._replace(warnings=(*live.warnings, other_model([live.model], asked)))
        if asked != claim.model and asked
        else live
    )


def _of_one_folder(tape: Cassette, live: Cassette) -> Cassette:
    """Call the folder as the tape does, if it is the same."""
    if not (tape.cwd and live.cwd and same_file(tape.cwd, live.cwd)):
        return live
    return live._replace(cwd=tape.cwd, cwd_aliases=(live.cwd, *live.cwd_aliases))


def replace(store: Store, tape: Cassette, filled: Cassette, copy: str) -> None:
    """Put a filled cassette in the place of its tape, and keep that under another name.

    At each moment the cassette is the old or the new one, and where it is the
    new one the copy is the old one.  The pins are those that it has by now.

    :raises CassetteError: if the tape has changed meanwhile in more than its
        pins, or anything cannot be written; then the cassette is as it was.
    """
    with store.lock():
        now, _ = store.read(tape.name)
        if now._replace(pins=tape.pins) != tape:
            raise CassetteError(f"{tape.name!r} was changed while its session ran, and was not filled: fill it again")
        written = []
        for one in (now._replace(name=copy), filled._replace(pins=now.pins)):
            path, data = store.path(one.name), dump_cassette(one)
            if len(data) > JSON_FILE_LIMIT:
                raise CassetteError(f"{tape.name!r} would be over {JSON_FILE_LIMIT // 2**20} MB, and was not filled")
            parse_cassette(data, str(path))  # better now than at the replay
            written.append((path, data))
        for path, data in written:
            write_atomically(path, data)


# --- what is told -----------------------------------------------------------------


def _tell_failure(options: argparse.Namespace, screen: Screen, why: str) -> int:
    name = options.cassette
    if not options.cassette_json:
        raise CassetteError(f"nothing was added to {name!r}: {why}")
    screen.print(json.dumps({"schema": JSON_SCHEMA, "filled": False, "name": name, "why": why}))
    return ERROR


def _tell(
    means: Means, store: Store, options: argparse.Namespace, screen: Screen, filled: Filled, live: Cassette
) -> None:
    name, changed = options.cassette, bool(filled.calls or filled.files)
    why = "" if changed else _why_nothing_new(live)
    if options.cassette_json:
        told = {
            "schema": JSON_SCHEMA,
            "filled": changed,
            "why": why,
            "before": name + BEFORE_FILL if changed else "",
            "added": {"calls": [{"tool": one.tool, "args": one.args} for one in filled.calls], "files": filled.files},
            "new_warnings": filled.warnings,
            "new_answer": live.answer,
        }
        screen.print(json.dumps({**told, **means.describe(store, name, store.read(name)[0])}))
        return
    screen.print("\n".join(_report(name, filled, live, why, options)))


def _why_nothing_new(live: Cassette) -> str:
    if not live.calls and not live.not_kept:
        return "every call of the turn was answered from the tape, or it made none"
    return f"what ran live is not kept: {several([*(call.tool for call in live.calls), *live.not_kept])}"


def _report(name: str, filled: Filled, live: Cassette, why: str, options: argparse.Namespace) -> Iterator[str]:
    calls, files = len(filled.calls), len(filled.files)
    if why:
        yield f"nothing to add to {name}, which is as it was: {why}"
    else:
        yield f"filled {name} with {shown(live.model, LINE) or 'the default model'}: {calls} call{'s' * (calls != 1)}, {files} snapshot file{'s' * (files != 1)} added"
        yield f"before {name + BEFORE_FILL}, until the next fill"
    yield "this was no replay, and there is no verdict: what was not on the tape ran live"
    yield from (f"added: {shown(f'{one.tool} {compact(one.args)}', LINE)}" for one in filled.calls[:_TOLD])
    yield from (f"added: {shown(path, LINE)}" for path in filled.files[:_TOLD])
    if (more := max(0, calls - _TOLD) + max(0, files - _TOLD)) > 0:
        yield f"added: {more} more, see hermes cassette show {name}"
    yield from (f"warning: {shown(warning)}" for warning in filled.warnings[bool(not why) :])
    yield "answer, which is not kept:"
    yield textwrap.indent("\n".join(shown_lines(live.answer)), "  ")
    if not why:
        yield "next:"
        yield "  " + shown(quote(["hermes", "cassette", "run", name, *_words(options)]))


def _words(options: argparse.Namespace) -> list[str]:
    """What a command line says of the session, as `run` and `fill` both take it."""
    words: list[str] = []
    for flag, value in (
        ("--model", options.cassette_model),
        ("--provider", options.cassette_provider),
        *(("--skill", skill) for skill in options.cassette_skills),
        ("--in", options.cassette_in),
    ):
        if value:
            words += [f"{flag}={value}"] if value.startswith("-") else [flag, value]
    return words


def told_way(options: argparse.Namespace, misses: Iterable[Answered]) -> str:
    """Say with which command what a run missed can be added to its cassette, or that none could.

    :param options: those of the run.
    """
    name = options.cassette
    kept = [miss for miss in misses if miss.tool in KEPT_TOOLS or _is_kept_command(miss)]
    if is_copy(name) or not kept:
        return "note: a fill would add nothing of what was missed: " + (
            "this cassette is what one kept" if is_copy(name) else "no result of these calls is kept"
        )
    return f"fill: {shown(quote(['hermes', 'cassette', 'fill', name, *_words(options)]))}"


def _is_kept_command(miss: Answered) -> bool:
    return miss.tool == "terminal" and terminal_verdict(miss.args, sys.platform == "win32") is None
