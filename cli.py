"""Two front doors, one set of commands: `hermes cassette ...` and `/cassette ...`.

Commands return text or raise `CassetteError`; the doors print it and turn it
into an exit status.  This is the only module that starts processes, always
from an argument list, never through a shell.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple, NoReturn, Sequence

from .cassette_store import (
    Answered,
    Arm,
    Cassette,
    CassetteError,
    Claim,
    FileLock,
    Hosting,
    Kind,
    Ledger,
    RecordingState,
    Store,
    check_name,
    hermes_release,
    parse_arm,
    parse_cassette,
    parse_claim,
    parse_ledger,
    parse_state,
    shown,
    to_json,
    write_atomically,
)
from .hooks import (
    ARM_VARIABLES,
    PING_VARIABLE,
    PingAnswer,
    Plugin,
    asked_model,
    check_recordable,
    check_replayable,
    find_ripgrep,
    hermes_version,
    parse_ping,
    refuse_foreign_runtime,
    refuse_isolation,
    hermes_config,
)
from .suite.door import (
    CELL,
    NOTES,
    ERROR,
    INTERRUPTED,
    JSON_SCHEMA,
    LINE,
    Command,
    Screen,
    add_json,
    add_name,
    beginning,
    block,
    coloured,
    compact,
    quote,
    seconds,
    shown_lines,
)
from .suite import arguments
from .suite.extent import add_extent, recording_steps, told_extent
from .suite.doctor import examine_hermes, examine_store, tried
from .suite.agreement import Shown
from .suite.launching import (
    child_environment,
    complaint,
    find_hermes,
    hosting_signs,
    own_launcher,
    same_answer,
    sessions_told,
)
from .suite.masks import note_masks, read_masks
from .suite.known_names import KnownNames
from .suite.names import list_names
from .suite.pins import check_pin, pin_holds
from .suite.housekeeping import add_removed, add_renamed, remove, rename
from .suite.rendering import nearest, pin_holds_rendered, rendered
from .suite.shelf import describe, list_cassettes, show
from .suite.terminal import Terminal
from .middleware import (
    Beyond,
    Child,
    PinResult,
    Verdict,
    because,
    doubts,
    exit_words,
    grade,
    other_model,
    searches_of_a_part,
)

if TYPE_CHECKING:
    from .suite import many

__all__ = [
    "BEYOND",
    "DEFAULT_TIMEOUT",
    "Ended",
    "SESSION_COMMANDS",
    "SHELL_COMMANDS",
    "add_arguments",
    "chat_arguments",
    "hold_pins",
    "main",
    "ripgrep_major",
    "slash",
    "verdict_text",
]

#: What the plugin does beyond the specification while Hermes runs.
BEYOND = Beyond(Terminal, note_masks, read_masks, list_names, Shown, KnownNames)
#: Seconds a replay or a recording may take unless `--timeout` says otherwise.
DEFAULT_TIMEOUT = 900.0
#: Seconds a gateway may take to answer a ping.
PING_TIMEOUT = 60.0
#: Seconds between looks at a child that runs.
POLL = 0.05

#: Characters of a pin in an error.
_QUOTED = 200
#: Lines of an answer that are shown under a FAIL.
_FAILED_LINES = 20


# --- the commands ---------------------------------------------------------------------


def _child_arguments(parser: argparse.ArgumentParser, folder: str) -> None:
    parser.add_argument("--in", dest="cassette_in", metavar="DIR", help=folder)
    parser.add_argument("--provider", dest="cassette_provider", metavar="P", help="the model's provider")
    parser.add_argument(
        "--skill",
        dest="cassette_skills",
        metavar="S",
        action="append",
        default=[],
        help="preload a skill; may be repeated",
    )
    parser.add_argument(
        "--timeout",
        dest="cassette_timeout",
        metavar="S",
        type=seconds,
        default=DEFAULT_TIMEOUT,
        help=f"seconds after which the session is stopped (default: {DEFAULT_TIMEOUT:g})",
    )


def _record_arguments(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument("--query", dest="cassette_query", metavar="TEXT", help="record this request now, headlessly")
    arguments.add_recalled(parser)
    add_extent(parser)
    parser.add_argument("--model", dest="cassette_model", metavar="M", help="the model (default: Hermes's own)")
    _child_arguments(parser, "the folder to work in (default: this one, or the session's)")
    add_json(parser)


def _pin_arguments(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument(
        "cassette_fact", metavar="FACT", nargs="+", help="the fact; put -- before one that starts with -"
    )
    parser.add_argument("--remove", dest="cassette_remove", action="store_true", help="remove the pin instead")


def _fill_arguments(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument("--model", dest="cassette_model", metavar="M", help="the model (default: Hermes's own)")
    _child_arguments(parser, "the folder to work in (default: the recorded one)")
    add_json(parser)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_arguments(parser)
    _child_arguments(parser, "the folder to work in (default: the recorded one)")
    add_json(parser)


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    parser.add_argument("--full", dest="cassette_full", action="store_true", help="print results and texts whole")
    add_json(parser)


# record


def _record(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    name = check_name(options.cassette)
    if (options.cassette_session, options.cassette_turn) != (None, None):
        from .suite.recall import record_session

        return record_session(plugin, options, screen, BEYOND, _work_folder, _saved_report, describe)
    if options.cassette_query is None:
        screen.print(recording_steps(name))
        return 0
    request = check_recordable(options.cassette_query)
    check_replayable(request)
    store = plugin.store()
    store.prepare()
    store.check_free(name, options.cassette_overwrite)
    folder = _work_folder(os.getcwd() if options.cassette_in is None else options.cassette_in)
    arm = _new_arm(plugin, "record", name, request, folder, options)
    launch = _with_host(Launch(plugin, store, arm, find_hermes(sys.argv[0]), options, folder, screen))
    child, claim, kept, aside = _recorded(launch)
    saved = _save_aside(launch, child, claim, aside, kept)
    return _tell_recording(launch, child, claim, kept, saved)


def _fill(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    from .suite import filling

    means = filling.Means(_send_fill, _work_folder, describe, _why_nothing_saved, BEYOND)
    return filling.run(means, plugin, options, screen)


def _send_fill(
    plugin: Plugin, store: Store, tape: Cassette, sha: str, folder: str, options: argparse.Namespace, screen: Screen
) -> tuple[Child, Claim | None, RecordingState | None, Cassette | None]:
    """Send a cassette's request in a session that it answers as far as it can; see `_recorded`."""
    arm = _new_arm(plugin, "fill", tape.name, tape.request, folder, options, cassette_sha=sha)
    return _recorded(_with_host(Launch(plugin, store, arm, find_hermes(sys.argv[0]), options, folder, screen)))


def _recorded(launch: Launch) -> tuple[Child, Claim | None, RecordingState | None, Cassette | None]:
    """Send the request of a recording or a fill, and read what its session left.

    :returns: how the child ended, the claim, the state of the recording, and the cassette that was put aside.
    """
    store, arm = launch.store, launch.arm
    with _armed(launch) as place:
        child = _run_child(launch, place)
        claim = store.read_value(store.claim_path(arm.id), parse_claim)
        kept = store.read_value(store.outcome_path(arm.id), parse_state)
        aside = store.read_value(store.aside_path(arm.id), parse_cassette)
    _refuse_unstarted(launch, child, claim)
    return child, claim, kept, aside


def _save_aside(
    launch: Launch, child: Child, claim: Claim | None, aside: Cassette | None, kept: RecordingState | None
) -> Cassette | None:
    """Save a cassette that the session put aside, if that ended well; an old one of its name stays until then."""
    arm = launch.arm
    if aside is None or claim is None or kept is None or kept.state != "saved" or child.code != 0 or child.timed_out:
        return None
    asked = asked_model(launch.options.cassette_model, claim.model, hermes_config())
    if asked != claim.model and asked:  # another took over before the session began
        aside = aside._replace(warnings=(*aside.warnings, other_model([aside.model], asked)))
    launch.store.save(aside, arm.overwrite, keep_pins=True)
    return launch.store.read(arm.name)[0]


def _tell_recording(
    launch: Launch, child: Child, claim: Claim | None, kept: RecordingState | None, saved: Cassette | None
) -> int:
    store, name, screen, as_json = launch.store, launch.arm.name, launch.screen, launch.options.cassette_json
    if saved is not None:
        if as_json:
            screen.print(json.dumps({"schema": JSON_SCHEMA, "saved": True, **describe(store, name, saved)}))
        else:
            screen.print(_saved_report(name, saved))
        return 0
    why = _why_nothing_saved(child, claim, kept)
    if as_json:
        screen.print(json.dumps({"schema": JSON_SCHEMA, "saved": False, "name": name, "why": why}))
        return ERROR
    raise CassetteError(f"nothing was saved as {name!r}: {why}")


def _saved_report(name: str, cassette: Cassette) -> str:
    calls, files = len(cassette.calls), len(cassette.snapshot.files)
    lines = [
        f"recorded {name} with {shown(cassette.model, CELL) or 'the default model'}",
        f"kept {calls} call{'s' * (calls != 1)}, {files} snapshot file{'s' * (files != 1)}",
        f"keeps {told_extent(cassette)}",
        *(f"warning: {shown(warning)}" for warning in cassette.warnings),
        "answer:",
        textwrap.indent("\n".join(shown_lines(cassette.answer)), "  "),
        "next:",
        "  " + quote(["hermes", "cassette", "pin", name, "FACT"]),
        "  " + quote(["hermes", "cassette", "run", name]),
    ]
    return "\n".join(lines)


def _why_nothing_saved(child: Child, claim: Claim | None, kept: RecordingState | None) -> str:
    if kept is not None and kept.state != "saved":
        return kept.text
    if claim is not None and claim.error:
        return claim.error
    if child.timed_out:
        return "the session did not end in time and was stopped"
    if child.code:
        return f"hermes chat exited with status {exit_words(child.code)}: {child.complaint or 'it printed nothing'}"
    if claim is None:
        return "no session took the recording; its tools ran live: is the plugin enabled in this profile?"
    return "the turn ended without an answer"


# pin


def _pin(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    text = " ".join(options.cassette_fact)
    pin = text.strip() if options.cassette_remove else check_pin(text)
    if not options.cassette_remove:
        refuse_empty_pins([pin])

    def change(pins: tuple[str, ...]) -> tuple[str, ...]:
        if options.cassette_remove:
            if pin not in pins:
                raise CassetteError(f'{options.cassette} has no pin "{pin}": its pins are {_listed(pins)}')
            return tuple(one for one in pins if one != pin)
        if pin in pins:
            raise CassetteError(f'{options.cassette} has the pin "{pin}" already')
        return (*pins, pin)

    pins = plugin.store().change_pins(options.cassette, change)
    verb = "unpinned" if options.cassette_remove else "pinned"
    screen.print(f'{verb} "{shown(pin)}"; {options.cassette} has {len(pins)} pin{"s" * (len(pins) != 1)}')
    cassette, _ = plugin.store().read(options.cassette)
    held, _ = hold_pins([] if options.cassette_remove else [pin], cassette.answer)
    if pin in held and not held[pin].ok:
        near = f" (nearest: {shown(held[pin].nearest)})" if held[pin].nearest else ""
        screen.print(f'note: the recorded answer itself does not hold "{shown(pin)}"{near}')
    return 0


def _listed(pins: Sequence[str]) -> str:
    more = f" and {len(pins) - NOTES} more" * (len(pins) > NOTES)
    return ", ".join(f'"{shown(pin, _QUOTED)}"' for pin in pins[:NOTES]) + more or "none"


# check


def _check(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    from .suite.check import Means, check
    from .suite.inputs import went_in

    return check(Means(_work_folder, ripgrep_major, _tried_regexes, went_in), plugin, options, screen)


def _sessions(_: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    from .suite.recall import list_sessions

    return list_sessions(options, screen)


# run


class Launch(NamedTuple):
    """What every step of starting one session carries, from the arm to the verdict.

    `hermes` is the launcher's argument list, `folder` the absolute path of
    where the session works.  `waits` is called while a run of a suite waits, with
    whether its session has claimed it, and may raise to end it; a run without it
    shows its own progress, and does not wait for another's.
    """

    plugin: Plugin
    store: Store
    arm: Arm
    hermes: tuple[str, ...]
    options: argparse.Namespace
    folder: str
    screen: Screen
    waits: Callable[[bool], None] | None = None


class Evidence(NamedTuple):
    """What a run left behind; `unreadable` says why claim or ledger could not be read."""

    child: Child
    claim: Claim | None
    ledger: Ledger | None
    unreadable: tuple[str, ...]
    waits: bool  #: the request still waits for a session


def _run(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    from .suite import many  # what a suite takes is much, and no other command needs it

    return many.run(plugin, options, screen, many.Sessions(_run_one, _check_run, _open_sessions))


def _compare(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    from .suite import compare

    return compare.run(plugin, options, screen)


def _history(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    from .suite import timeline

    return timeline.run(plugin, options, screen)


def _run_one(
    plugin: Plugin, store: Store, options: argparse.Namespace, screen: Screen
) -> tuple[int, dict[str, Any], Path]:
    """Run one cassette, keep the run and print its verdict; return the exit status, the run and its file."""
    name = options.cassette
    with store.held(name):
        cassette, sha = store.read(name)
        folder = _check_run(name, cassette, options)
        arm = _new_arm(plugin, "run", name, cassette.request, folder, options, cassette_sha=sha)
        launch = _with_host(Launch(plugin, store, arm, find_hermes(sys.argv[0]), options, folder, screen))
        run, verdict = _run_launched(launch, cassette)
        path = store.save_run(name, f"{datetime.datetime.fromisoformat(run['at']):%Y%m%dT%H%M%S}-{arm.id}", run)
        told = json.dumps({"schema": JSON_SCHEMA, **run, "file": str(path)}) if options.cassette_json else None
        with contextlib.suppress(OSError):  # graded and kept: whoever stopped reading changes no verdict
            screen.print(told or verdict_text(run, verdict, str(path), screen) + _way_to_fill(options, verdict))
        return verdict.exit_code, run, path


def _way_to_fill(options: argparse.Namespace, verdict: Verdict) -> str:
    if verdict.result != "DIVERGED":
        return ""
    from .suite.filling import told_way

    return "\n" + told_way(options, verdict.misses)


def _check_run(name: str, cassette: Cassette, options: argparse.Namespace) -> str:
    """Return the folder that a run works in.  :raises CassetteError: if there could be no verdict."""
    if not cassette.pins:
        raise CassetteError(f"{name!r} has no pin, so nothing could fail: hermes cassette pin {name} FACT")
    refuse_empty_pins(cassette.pins)
    check_replayable(cassette.request)
    refuse_foreign_runtime(options.cassette_provider, hermes_config(), options.cassette_model)
    return _work_folder(_recorded_folder(cassette) if options.cassette_in is None else options.cassette_in)


def _run_launched(launch: Launch, cassette: Cassette) -> tuple[dict[str, Any], Verdict]:
    """Make the run that is prepared, and grade it."""
    from .suite.inputs import run_facts, went_in

    given = went_in(launch.folder, launch.options.cassette_skills)
    changed = _changed_files(launch, cassette)
    begun, at = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
    evidence = _replay(launch)
    _refuse_unstarted(launch, evidence.child, evidence.claim)
    took = time.monotonic() - begun
    verdict = _graded(launch, cassette, evidence)
    facts = {"changed_files": changed, **run_facts(given, evidence.ledger)}
    return {**_run_head(launch, at, took), **facts, **_run_result(launch, verdict, evidence)}, verdict


def _changed_files(launch: Launch, cassette: Cassette) -> dict[str, Any] | None:
    """What of the snapshot is not as recorded in the folder that a run works in."""
    from .suite.check import changed_files

    return changed_files(cassette, launch.folder, launch.plugin.facts.hermes)


def _open_sessions(plugin: Plugin, store: Store, one: many.Asked, screen: Screen) -> many.MakeOne:
    """Find out once where sessions are hosted; what is returned makes a suite's runs there, in any thread.

    :param one: what the first run is to be.
    """
    arm = _new_arm(plugin, "run", one.name, one.cassette.request, one.folder, one.options)
    hermes = find_hermes(sys.argv[0])
    opened = _with_host(Launch(plugin, store, arm, hermes, one.options, one.folder, screen, one.waits))

    def make(one: many.Asked) -> dict[str, Any]:
        arm = opened.arm._replace(
            id=secrets.token_hex(12),
            name=one.name,
            request=one.cassette.request,
            created=time.time(),
            folder=one.folder,
            cassette_sha=one.cassette_sha,
        )
        launch = opened._replace(arm=arm, options=one.options, folder=one.folder, waits=one.waits)
        return _run_launched(launch, one.cassette)[0]

    return make


def _replay(launch: Launch) -> Evidence:
    """Send the request, and gather what its session left."""
    store, arm = launch.store, launch.arm
    with _armed(launch) as place:
        child = _run_child(launch, place)
        claim, claim_faults = _trusted(store, store.claim_path(arm.id), parse_claim)
        ledger, ledger_faults = _trusted(store, store.ledger_path(arm.id), parse_ledger)
        left, arm_faults = _trusted(store, store.arm_path, parse_arm)
    waits = claim is not None and bool(arm_faults or left is not None and left.id == arm.id)
    return Evidence(child, claim, ledger, (*claim_faults, *ledger_faults), waits)


def _distrusted(launch: Launch, evidence: Evidence) -> list[str]:
    """Every reason why what a session left is not to be trusted."""
    child, claim, ledger, unreadable, waits = evidence
    answer = ledger.answer if ledger else ""
    printed_it = same_answer(child.printed, answer, claim.facts.hermes if claim else "")
    asked = asked_model(launch.options.cassette_model, ledger.model, hermes_config()) if ledger else ""
    reasons = doubts(launch.arm, ledger, claim, child, printed_it, unreadable, asked)
    return reasons + [because("still waiting")] * waits


def _graded(launch: Launch, cassette: Cassette, evidence: Evidence) -> Verdict:
    ledger, reasons = evidence.ledger, _distrusted(launch, evidence)
    held, slow = hold_pins(cassette.pins, ledger.answer if ledger else "")
    pins = [held.get(pin, PinResult(pin, False)) for pin in cassette.pins]
    return grade(pins, len(cassette.calls), ledger, [*reasons, *slow])


def _trusted(store: Store, path: Path, parse: Callable[[bytes, str], Any]) -> tuple[Any, list[str]]:
    """Read a claim or ledger; one that cannot be trusted is a reason, not a crash."""
    try:
        return store.read_value(path, parse), []
    except CassetteError as error:
        return None, [because("untrusted", error=error)]


def _recorded_folder(cassette: Cassette) -> str:
    if not cassette.cwd:
        raise CassetteError(f"{cassette.name!r} does not know its folder: name one with --in DIR")
    return cassette.cwd


def _work_folder(path: str) -> str:
    if not path.strip():
        raise CassetteError("--in names no folder: leave it out, or name one")
    folder = os.path.abspath(os.path.expanduser(path))
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise CassetteError(f"{folder} is a file: name a folder with --in DIR")
    if not os.path.isdir(folder):
        raise CassetteError(f"the folder {folder} does not exist: make it, or name another with --in DIR")
    return folder


def verdict_text(run: Mapping[str, Any], verdict: Verdict, file: str, screen: Screen) -> str:
    """Write a verdict as `run` prints it.

    :param run: what the run's file tells, which lies at `file`.
    """
    misses = len(verdict.misses)
    noted = f" (also {misses} cassette miss{'es' * (misses != 1)})" if verdict.result == "FAIL" and misses else ""
    held = sum(one.ok for one in verdict.pins)
    lines = [f"{run['name']} with {shown(run['model'], CELL)} ({run['seconds']:.0f}s)"]
    lines.append(f"result {coloured(verdict.result, verdict.result, screen)}{noted}")
    lines += [f"reason: {shown(reason)}" for reason in verdict.reasons]
    lines.append(f"pins {held}/{len(verdict.pins)}")
    for one in verdict.pins:
        mark = screen.paint("[ok]", "green") if one.ok else screen.paint("[--]", "red")
        lines.append(f"{mark} {shown(one.pin)}{' (as rendered)' * one.as_rendered}")
        lines += [f"     nearest: {shown(one.nearest)}"] * bool(one.nearest)
    lines.append(f"path {verdict.path}")
    for miss in verdict.misses:
        lines.append(f"miss: {shown(f'{miss.tool} {compact(miss.args)}', LINE)}")
        lines += [f"      {shown(note, LINE)}" for note in (miss.reason, miss.nearest) if note]
    if verdict.result == "FAIL":
        whole = quote(["hermes", "cassette", "show", run["name"], "--full"])
        lines += block("answer", beginning(run["answer"], _FAILED_LINES, whole))
        lines.append(f"file {shown(file)}")
    if run.get("plugins_before"):
        lines.append(f"note: {shown(_told_before(run['plugins_before']))}")
    if run.get("changed_files"):
        from .suite.check import told_changed

        lines.append(f"note: {shown(told_changed(run['changed_files'], run['name']))}")
    return "\n".join(lines)


def _told_before(before: Sequence[str]) -> str:
    return f"{', '.join(before)} may answer or change tool calls before this plugin sees them"


def _run_head(launch: Launch, at: datetime.datetime, took: float) -> dict[str, Any]:
    """What a run was, whatever came of it: everything that explains a result a month later."""
    arm, options = launch.arm, launch.options
    return {
        "name": arm.name,
        "run": arm.id,
        "at": at.isoformat(timespec="seconds"),
        "seconds": round(took, 1),
        "asked": options.cassette_model or "",
        "provider": options.cassette_provider or "",
        "skills": options.cassette_skills,
        "folder": launch.folder,
        "hosting": arm.hosting,
        "host": arm.hosting,  # its older name
        "plugin": arm.plugin,
        "fingerprint": arm.fingerprint,
        "cassette_sha256": arm.cassette_sha,
    }


def _run_result(launch: Launch, verdict: Verdict, evidence: Evidence) -> dict[str, Any]:
    """What came of a run, and what that rests on."""
    child, claim, ledger = evidence[:3]
    asked = launch.options.cassette_model or "the default model"
    models = ledger.models or tuple(filter(None, [ledger.model])) if ledger else ()
    return {
        "result": verdict.result,
        "exit_code": verdict.exit_code,
        "reasons": list(verdict.reasons),
        "pins": [
            {key: value for key, value in one._asdict().items() if key in ("pin", "ok") or value}
            for one in verdict.pins
        ],
        "path": verdict.path,
        "searches_of_a_part": len(searches_of_a_part(ledger.calls)) if ledger else 0,
        "answer": ledger.answer if ledger else "",
        "calls": [_call_fields(call) for call in ledger.calls] if ledger else [],
        "misses": [
            {"tool": miss.tool, "args": miss.args, "reason": miss.reason, "nearest": miss.nearest}
            for miss in verdict.misses
        ],
        "model": " and ".join(models) if models else asked,
        "models": list(models),
        "plugins_before": list(ledger.before) if ledger else [],
        "hermes": claim.facts.hermes if claim else hermes_version(),
        "sessions": list(ledger.sessions) if ledger else [],
        "child": {"code": child.code, "timed_out": child.timed_out, "session": child.session},
    }


def _call_fields(call: Answered) -> dict[str, Any]:
    return {name: value for name, value in call._asdict().items() if call.files or name not in ("known", "files")}


# doctor


def _doctor_arguments(parser: argparse.ArgumentParser) -> None:
    live = "also start a session with one model call, in which no tool can run"
    parser.add_argument("--live", dest="cassette_live", action="store_true", help=live)


def _doctor(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    """Say what is installed, what it found, and what to do; status 2 if something is."""
    told, todo = _examine(plugin, options.cassette_live, screen)
    lines = [*told, *(f"to do: {one}" for one in todo)] if todo else [*told, "nothing to do"]
    screen.print("\n".join(map(shown, lines)))
    return ERROR if todo else 0


def _examine(plugin: Plugin, live: bool, screen: Screen) -> tuple[list[str], list[str]]:
    facts, store = plugin.facts, plugin.store()
    told = [
        f"plugin     session-cassettes {facts.plugin}, code {facts.fingerprint[:12]}",
        f"hermes     {facts.hermes or 'unknown version'}, Python {sys.version.split()[0]} on {sys.platform}",
    ]
    launcher, fault = tried(lambda: find_hermes(sys.argv[0]))
    told.append(f"launcher   {quote(launcher) if launcher else 'missing'}")
    todo = [fault] if fault else []
    _, unwritable = tried(lambda: (store.prepare(), store.check_writable()))
    if launcher:
        hosts, more = _examine_host(plugin, store, launcher, live and not unwritable, bool(unwritable), screen)
        told, todo = told + hosts, todo + more
    here, more = examine_hermes(plugin, _told_before(plugin.before) if plugin.before else "")
    stored, last = examine_store(store, unwritable, lambda: _age(store))
    return [*told, *here, *stored], list(dict.fromkeys([*todo, *more, *last]))


def _examine_host(
    plugin: Plugin, store: Store, launcher: tuple[str, ...], live: bool, mute: bool, screen: Screen
) -> tuple[list[str], list[str]]:
    """Say where sessions are hosted and what that host tells; nothing is changed.

    :param mute: whoever is asked could not answer, for it answers in the data folder.
    """
    signs = hosting_signs(plugin.ctx, own=launcher == own_launcher(sys.argv[0]))
    told = [f"signs      {signs.told()}"]
    if signs.hosting() == "process":
        return [*told, "sessions   hosted in the process of hermes chat itself"], []
    if mute:
        return [*told, "gateway    not asked: it answers in the data folder"], []
    screen.progress("asking the gateway ...")
    if not (live or signs.client or signs.session_cwd or _gateway_ensured(launcher)):
        return [*told, "sessions   hosted nobody knows where"], [
            "run hermes cassette doctor --live, which asks a model"
        ]
    hosting, fault = tried(lambda: _ask_host(plugin, store, launcher, os.getcwd()))
    if fault or hosting == "process":
        where = "gateway    cannot host a run" if fault else "sessions   hosted in the process of hermes chat itself"
        return [*told, where], [fault] if fault else []
    told += ["sessions   hosted in a gateway", "gateway    runs this plugin code", *_examine_commands(store, launcher)]
    if live:
        fault = _examine_turn(plugin, store, launcher, screen)
        told.append(f"turns      are {'not to be trusted' if fault else 'claimed, and leave a record of their calls'}")
    return told, [fault] if fault else []


def _gateway_ensured(launcher: Sequence[str]) -> bool:
    """Whether this Hermes knows `gateway ensure`, which starts the gateway if none runs."""
    words = [*launcher, "gateway", "ensure", "--json"]
    try:
        ended = run_process(words, os.getcwd(), child_environment(os.environ), PING_TIMEOUT, lambda: None)
    except CassetteError:
        return False
    return ended.code == 0 and ended.printed.lstrip().startswith("{")


def _examine_commands(store: Store, launcher: Sequence[str]) -> list[str]:
    """Say what a gateway tells a command, and whether it takes a skill for one session."""
    answer, ended = _ping(store, launcher, os.getcwd())
    told = answer.told(sessions_told(ended.told), os.getcwd()) if answer else ["commands   were answered only once"]
    _, ended = _ping(store, launcher, os.getcwd(), "--skills=session-cassettes-no-such-skill")
    refused = ended.code == 2 or "creation options" in ended.told
    return [*told, f"skills     {'refused' if refused else 'taken'} for a single session (--skill)"]


def _examine_turn(plugin: Plugin, store: Store, launcher: tuple[str, ...], screen: Screen) -> str:
    """Send a request that no cassette answers, so that no tool runs; return what went wrong, or ""."""
    request = f"Answer with the word ready. ({secrets.token_hex(4)})"
    asked = {"model": None, "provider": None, "skills": [], "timeout": PING_TIMEOUT * 5}
    options = argparse.Namespace(**{f"cassette_{name}": value for name, value in asked.items()})
    arm = _new_arm(plugin, "run", _NO_CASSETTE, request, os.getcwd(), options)
    launch = Launch(plugin, store, arm, launcher, options, os.getcwd(), screen)
    evidence, fault = tried(lambda: _replay(launch))
    expected = evidence.claim.error if evidence and evidence.claim else ""
    return fault or next((why for why in _distrusted(launch, evidence) if why != expected), "")


#: A cassette that never is: a turn that is bound to it gets misses only.
_NO_CASSETTE = "doctor--live"


# --- arms --------------------------------------------------------------------------------


def _new_arm(
    plugin: Plugin,
    kind: Kind,
    name: str,
    request: str,
    folder: str,
    options: argparse.Namespace,
    cassette_sha: str = "",
) -> Arm:
    return Arm(
        id=secrets.token_hex(12),
        kind=kind,
        name=name,
        request=request,
        hosting="gateway",  # until it is found out
        created=time.time(),
        timeout=options.cassette_timeout,
        plugin=plugin.facts.plugin,
        fingerprint=plugin.facts.fingerprint,
        folder=folder,
        cassette_sha=cassette_sha,
        overwrite=kind == "fill" or kind == "record" and options.cassette_overwrite,
        rg_major=ripgrep_major(),
        whole=kind == "record" and options.cassette_whole,
        names=kind == "run" or kind == "record" and options.cassette_keep_names,
    )


def ripgrep_major() -> int:
    """The major version of the ripgrep that Hermes searches with, 0 if that cannot be told.

    Which version it is decides how the live tool words its errors.
    """
    ripgrep = find_ripgrep()
    if not ripgrep:
        return 0
    try:
        printed = subprocess.run(
            [ripgrep, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=5.0,
            check=False,
            **_no_window(),
        ).stdout
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0
    found = re.match(rb"ripgrep (\d{1,4})\.", printed)
    return int(found.group(1)) if found else 0


def _with_host(launch: Launch) -> Launch:
    """Find out where the session will run, before anything is armed or started.

    :raises CassetteError: if that cannot be known, or is not fit for it.
    """
    refuse_isolation()
    hosting = hosting_signs(launch.plugin.ctx, own=launch.hermes == own_launcher(sys.argv[0])).hosting()
    if hosting is None:
        _take_place(launch.store, launch.waits).release()  # another run may still come in between: it is refused then
        launch.screen.progress("asking the gateway ...")
        hosting = _ask_host(launch.plugin, launch.store, launch.hermes, launch.folder)
    return launch._replace(arm=launch.arm._replace(hosting=hosting))


def _take_place(store: Store, waits: Callable[[bool], None] | None = None) -> FileLock:
    """Take the one waiting place of the profile.

    :param waits: is called until another run that waits there has gone.
    :raises CassetteError: if another waits there, and this one must not.
    """
    lock = store.waiting()
    while not lock.try_acquire():
        if waits is None:
            raise CassetteError(f"another run is waiting for its session{_age(store)}: try again in a few seconds")
        waits(False)
        time.sleep(POLL)
    return lock


#: What a client says with exit status 1 when it began no session.
_BEGAN_NONE = r"(?i)unsupported|creation options|unknown[ _]skill|\bprovider\b|\bsource\b|not ready"


def _refuse_unstarted(launch: Launch, child: Child, claim: Claim | None) -> None:
    """Tell a session that never began apart from one that went wrong: there is nothing to grade.

    A client that was killed, or failed without saying why it began none, may
    have sent the request all the same: that is for the verdict.

    :raises CassetteError: if the client of a gateway ended before it had a session.
    """
    if launch.arm.hosting != "gateway" or claim is not None or child.timed_out or child.session:
        return
    said = child.complaint or "it printed nothing"
    if child.code not in (0, 2) and not (child.code == 1 and re.search(_BEGAN_NONE, said)):
        return
    way = "run hermes cassette doctor"
    if "skills" in said and launch.options.cassette_skills:
        way = "leave --skill out, this Hermes takes no skill for a single session"
    elif not child.code:
        way = "is a provider set up? run hermes setup"
    raise CassetteError(
        f"no session was started, hermes chat exited with status {exit_words(child.code)}: {said}; {way}"
    )


class WaitingPlace:
    """The one waiting place of the profile, taken by this command.

    `abandoned` says that the child was stopped, or still runs: its session may
    yet start in a gateway, where the arm keeps it from running live.
    """

    def __init__(self, lock: FileLock) -> None:
        self.lock, self.abandoned = lock, False


@contextlib.contextmanager
def _armed(launch: Launch) -> Iterator[WaitingPlace]:
    """Put an arm in the one waiting place of the profile, and clean up after it.

    :raises CassetteError: if another run waits there.
    """
    store, arm = launch.store, launch.arm
    place = WaitingPlace(_take_place(store, launch.waits))
    try:
        if store.waiting().try_acquire():
            raise CassetteError(f"the file system of {store.root} keeps no locks: put Hermes's home on a local disk")
        with store.lock():
            write_atomically(store.arm_path, to_json(arm))  # an arm lying there belongs to the dead
        yield place
    finally:
        _disarm(store, arm, place)


def _disarm(store: Store, arm: Arm, place: WaitingPlace) -> None:
    """Take an arm back, and remove what its session left for this command."""
    with contextlib.suppress(CassetteError), store.lock():
        left = store.read_value(store.arm_path, parse_arm)
        orphan = place.abandoned and arm.hosting == "gateway" and arm.kind != "record"
        if left is not None and left.id == arm.id and not orphan:
            store.arm_path.unlink(missing_ok=True)
    place.lock.release()
    for path in (
        store.claim_path(arm.id),
        store.ledger_path(arm.id),
        store.outcome_path(arm.id),
        store.aside_path(arm.id),
    ):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _age(store: Store) -> str:
    with contextlib.suppress(CassetteError):
        other = store.read_value(store.arm_path, parse_arm)
        if other is not None:
            return f" (armed {max(0.0, time.time() - other.created):.0f} s ago, for {other.name!r})"
    return ""


# --- child processes ------------------------------------------------------------------------


def chat_arguments(
    hermes: Sequence[str], query: str, options: argparse.Namespace, folder: str, version: str
) -> list[str]:
    """The argument list of a `hermes chat -Q` child; the query is one argument."""
    if "\0" in query:
        raise CassetteError("the request holds a NUL character: no command line can carry it")
    words = [*hermes, "chat", "-Q", f"--query={query}"]
    if options.cassette_model:
        words.append(f"--model={options.cassette_model}")
    if options.cassette_provider:
        words.append(f"--provider={options.cassette_provider}")
    for skill in options.cassette_skills:
        words.append(f"--skills={skill}")
    if (hermes_release(version) or (0, 0)) >= (0, 20):
        words.append(f"--in={folder}")
    return words


def _run_child(launch: Launch, place: WaitingPlace) -> Child:
    """Start the session that an arm waits for, and wait for its end."""
    arm, store = launch.arm, launch.store
    added = {ARM_VARIABLES[arm.kind]: arm.id} if arm.hosting == "process" else {}
    words = chat_arguments(launch.hermes, arm.request, launch.options, launch.folder, launch.plugin.facts.hermes)
    started = time.monotonic()

    def waiting() -> None:
        claimed = store.claim_path(arm.id).exists()
        if claimed:
            place.lock.release()  # the next run may arm while this one goes on
        if launch.waits is not None:
            launch.waits(claimed)
            return
        what = "the model" if claimed else "a session"
        launch.screen.progress(f"waiting for {what} ({time.monotonic() - started:.0f} s) ...")

    place.abandoned = True
    ended = run_process(words, launch.folder, child_environment(os.environ, **added), arm.timeout, waiting)
    place.abandoned = ended.timed_out
    sessions = sessions_told(ended.told)
    return Child(
        ended.code,
        ended.timed_out,
        sessions[-1] if sessions else "",
        ended.printed,
        complaint(ended.printed, ended.told),
    )


class Ended(NamedTuple):
    """How a process ended: its exit status, what it wrote on standard output and standard error, and its id."""

    code: int | None
    timed_out: bool
    printed: str
    told: str
    pid: int = 0


def run_process(
    words: Sequence[str], folder: str, environ: Mapping[str, str], timeout: float, waiting: Callable[[], None]
) -> Ended:
    """Run a process to its end.

    Its output goes to two temporary files that vanish with it.  At the time-out
    (seconds), and on any error here, its whole process group is ended.

    :raises CassetteError: if it cannot be started.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                list(words),
                cwd=folder,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                **_own_group(),
            )
        except OSError as error:
            raise CassetteError(f"cannot start {words[0]} ({error.strerror or error})") from error
        deadline, timed_out = time.monotonic() + timeout, False
        try:
            while process.poll() is None and not timed_out:
                timed_out = time.monotonic() >= deadline
                waiting()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL)
        finally:
            if process.poll() is None or timed_out:
                _end_group(process)
        return Ended(process.returncode, timed_out, _text(out), _text(err), process.pid)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace").replace("\r\n", "\n")


def _own_group() -> dict[str, Any]:
    if os.name == "nt":
        return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    return {"start_new_session": True}


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a child and everything it started; first kindly, then for good, also at a second Ctrl-C."""
    if os.name == "nt":
        system = os.path.join(os.environ.get("SystemRoot", r"C:\Windows"), "System32")
        subprocess.run(
            [os.path.join(system, "taskkill.exe"), "/T", "/F", "/PID", str(process.pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    else:
        try:
            _signal_group(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(3.0)
        finally:
            _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _ping(store: Store, hermes: Sequence[str], folder: str, *more: str) -> tuple[PingAnswer | None, Ended]:
    """Ask whoever hosts sessions what it is; return its answer, and how the child ended that asked."""
    nonce = secrets.token_hex(8)
    path = store.ping_path(nonce)
    words = [*hermes, "chat", "-Q", f"--query=/cassette ping {nonce}", *more]
    try:
        environ = child_environment(os.environ, **{PING_VARIABLE: nonce})
        ended = run_process(words, folder, environ, PING_TIMEOUT, lambda: None)
        return store.read_value(path, parse_ping), ended
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _ask_host(plugin: Plugin, store: Store, hermes: Sequence[str], folder: str) -> Hosting:
    """Ask whoever hosts sessions what it runs, and refuse unless it is exactly this plugin.

    :raises CassetteError: at silence, other code, an approval bypass, or a host
        that cannot be told apart.
    """
    answer, ended = _ping(store, hermes, folder)
    if answer is None:
        status = f"status {exit_words(ended.code)}: " if ended.code else ""
        said = complaint(ended.printed, ended.told)
        raise CassetteError(
            f"the gateway did not answer the ping ({status}{said or 'it printed nothing'}): is it running with this"
            " plugin enabled? Run hermes gateway restart"
        )
    _refuse_other_host(plugin, answer)
    if not answer.model:
        return "gateway"
    if answer.itself and answer.facts.pid == ended.pid:
        return "process"
    raise CassetteError("this host sends slash commands to the model: its sessions cannot be checked before a run")


def _refuse_other_host(plugin: Plugin, answer: PingAnswer) -> None:
    facts = answer.facts
    if (facts.plugin, facts.fingerprint) != (plugin.facts.plugin, plugin.facts.fingerprint):
        raise CassetteError(
            f"the gateway runs other plugin code (version {facts.plugin}) than this command ({plugin.facts.plugin}):"
            " run hermes gateway restart"
        )
    if facts.yolo:
        raise CassetteError("HERMES_YOLO_MODE is set in the gateway: unset it and run hermes gateway restart")
    if answer.isolated:
        refuse_isolation(True)
    if answer.muted:
        raise CassetteError(
            f"Hermes does not call this plugin's hooks for another {answer.muted:.0f} s, because one took too long:"
            " wait that long and try again"
        )


# --- pins, in a bounded time -----------------------------------------------------------------------

#: Seconds that the regular expressions among a cassette's pins may take together.
PIN_SECONDS = 5.0
#: Missing pins of which it is looked for what came nearest.
_NEAREST = 20

#: Tries patterns in an interpreter of its own and prints each outcome at once: which
#: text matched, or null, or why it does not compile. Compiling and matching hold the
#: interpreter's lock for as long as they take, so that only another process can bound
#: them; its watchdog ends it even if this one dies.
_PIN_WORKER = """
import faulthandler, json, os, re, sys
job = json.load(sys.stdin)
faulthandler.dump_traceback_later(job["seconds"] + 1, exit=True, file=open(os.devnull, "w"))
for pattern in job["patterns"]:
    try:
        found = re.compile(pattern, re.IGNORECASE).search
    except Exception as error:
        outcome = str(error) or type(error).__name__
    else:
        outcome = next((number for number, text in enumerate(job["texts"]) if found(text)), None)
    print(json.dumps(outcome), flush=True)
"""


def hold_pins(pins: Sequence[str], answer: str) -> tuple[dict[str, PinResult], list[str]]:
    """Say of each pin whether an answer holds it, and why that could not be said of some.

    A pin that the answer lacks as it is written is held against the answer as a
    person reads it.  A regular expression is tried in a child, since one that
    backtracks without end could never be stopped here.

    :raises CassetteError: if one does not compile.
    """
    held = {pin: PinResult(pin, pin_holds(pin, answer)) for pin in pins if not pin.startswith("re:")}
    missing = [pin for pin, one in held.items() if not one.ok]
    regexes = [pin for pin in pins if pin.startswith("re:")]
    read = rendered(answer) if missing or regexes else ""
    for number, pin in enumerate(missing):
        ok = pin_holds_rendered(pin, read)
        held[pin] = PinResult(pin, ok, ok, "" if ok or number >= _NEAREST else nearest(pin, read))
    if not regexes:
        return held, []
    try:
        outcomes = _tried_regexes(regexes, [answer, answer.replace("\\", "/"), read, read.replace("\\", "/")])
    except (OSError, ValueError) as error:
        return held, [because("no pin child", error=error)]
    for pin, outcome in zip(regexes, outcomes, strict=False):
        if isinstance(outcome, str):
            raise CassetteError(f'the pin "{shown(pin, _QUOTED)}" does not compile ({outcome}): correct it')
        held[pin] = PinResult(pin, outcome is not None, outcome is not None and outcome > 1)
    late = regexes[len(outcomes) :]
    return held, [because("slow pin", pin=shown(late[0], _QUOTED), seconds=PIN_SECONDS)] if late else []


def _tried_regexes(regexes: Sequence[str], texts: Sequence[str]) -> list[Any]:
    """What the child printed of each regular expression until time was up: the text that it matches, by its number."""
    job = {"patterns": [pin[3:] for pin in regexes], "texts": texts, "seconds": PIN_SECONDS}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-W", "ignore", "-c", _PIN_WORKER],
            input=json.dumps(job).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PIN_SECONDS,
            check=False,
            **_no_window(),
        )
        printed = done.stdout
    except subprocess.TimeoutExpired as late:
        printed = late.stdout or b""
    whole = printed.decode("utf-8", "replace").rpartition("\n")[0]
    return [json.loads(line) for line in whole.split("\n") if line]


def refuse_empty_pins(pins: Sequence[str]) -> None:
    """Refuse regular expressions that hold even in an empty answer: they could never fail.

    :raises CassetteError: for the first such pin, one that does not compile, or
        one that this cannot be told of in time.
    """
    held, slow = hold_pins([pin for pin in pins if pin.startswith("re:")], "")
    for pin, empty in held.items():
        if empty.ok:
            raise CassetteError(
                f'the pin "{shown(pin, _QUOTED)}" matches even an empty answer, so it could never fail: ask for more'
            )
    if slow:
        raise CassetteError(f"{slow[0]}: write it more simply")


def _no_window() -> dict[str, Any]:
    return {"creationflags": getattr(subprocess, "CREATE_NO_WINDOW", 0)}


# --- commands of a session ------------------------------------------------------------------------


def _session_record(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    extent = options.cassette_whole, options.cassette_keep_names
    screen.print(shown(plugin.arm_recording(options.cassette, options.cassette_overwrite, *extent)))
    return 0


def _session_stop(plugin: Plugin, _: argparse.Namespace, screen: Screen) -> int:
    screen.print(shown(plugin.stop_recording()))
    return 0


def _session_status(plugin: Plugin, _: argparse.Namespace, screen: Screen) -> int:
    screen.print(shown(plugin.status()))
    return 0


def _session_ping(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    screen.print(plugin.answer_ping(options.cassette_nonce))
    return 0


def _session_record_arguments(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    add_extent(parser)


def _nothing(_: argparse.ArgumentParser) -> None:
    pass


def _nonce(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cassette_nonce")


SHELL_COMMANDS = (
    Command(
        "record",
        "Record a request now, or say how to record a session",
        'hermes cassette record login --query "Which port does the auth server bind?"',
        _record_arguments,
        _record,
    ),
    Command(
        "pin",
        "Add a fact that a good answer must contain, or remove one",
        "hermes cassette pin login auth.py",
        _pin_arguments,
        _pin,
    ),
    Command(
        "run",
        "Replay a cassette, or many, against a model, or several, and print the verdict",
        "hermes cassette run login --model gpt-oss:20b",
        _run_arguments,
        _run,
    ),
    Command(
        "fill",
        "Ask again, with what is recorded answered from the cassette, and add what it lacked",
        "hermes cassette fill login --model gpt-oss:20b",
        _fill_arguments,
        _fill,
    ),
    Command(
        "compare",
        "Say what differs between two suite runs or two runs, and whether that is more than chance",
        "hermes cassette compare 20260301T101500-ab12cd 20260308T093000-12ef34",
        arguments.add_compared,
        _compare,
    ),
    Command(
        "history",
        "Show how often a cassette passed over time, and what changed",
        "hermes cassette history login --bisect",
        arguments.add_history,
        _history,
    ),
    Command(
        "sessions",
        "List recent sessions, and say which of them can become a cassette (+)",
        "hermes cassette sessions --last 5",
        arguments.add_sessions,
        _sessions,
    ),
    Command("list", "List the cassettes", "hermes cassette list", add_json, list_cassettes),
    Command(
        "check",
        "Compare cassettes with today's files, skills and Hermes, without a model",
        "hermes cassette check login",
        arguments.add_check_arguments,
        _check,
    ),
    Command("show", "Show what a cassette holds", "hermes cassette show login --full", _show_arguments, show),
    Command("rm", "Remove a cassette and its runs", "hermes cassette rm login", add_removed, remove),
    Command("rename", "Give a cassette another name", "hermes cassette rename login login-port", add_renamed, rename),
    Command(
        "doctor",
        "Say what is installed, what it found, and what to do",
        "hermes cassette doctor",
        _doctor_arguments,
        _doctor,
    ),
)

SESSION_COMMANDS = (
    Command(
        "record",
        "Record this session's next turn",
        "/cassette record login",
        _session_record_arguments,
        _session_record,
    ),
    Command("stop", "Cancel a recording that has not been saved", "/cassette stop", _nothing, _session_stop),
    Command(
        "status",
        "Show what this session is doing, and the outcome of the last save",
        "/cassette status",
        _nothing,
        _session_status,
    ),
    Command(
        "pin",
        "Add a fact that a good answer must contain, or remove one",
        "/cassette pin login auth.py",
        _pin_arguments,
        _pin,
    ),
    Command("list", "List the cassettes", "/cassette list", add_json, list_cassettes),
    Command("ping", argparse.SUPPRESS, "", _nonce, _session_ping),
)


# --- the doors ----------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the commands to the parser that Hermes made for `hermes cassette`."""
    parser.error = partial(_mistyped, parser)  # type: ignore[method-assign]
    commands = parser.add_subparsers(
        dest="cassette_command", metavar="COMMAND", required=True, parser_class=_ShellParser
    )
    for command in SHELL_COMMANDS:
        one = commands.add_parser(
            command.name, help=command.help, description=f"{command.help}.", epilog=f"example: {command.example}"
        )
        command.arguments(one)
        one.set_defaults(cassette_run=command.run)


def main(plugin: Plugin, options: argparse.Namespace) -> NoReturn:
    """Run one `hermes cassette` command and exit with its status.

    Hermes 0.19 ignores what a handler returns, so the status is always raised.
    """
    nowhere = _Lines()
    screen = Screen(sys.stdout or nowhere, sys.stderr or nowhere, os.environ)
    try:
        _end_orderly()
        status = options.cassette_run(plugin, options, screen)
    except CassetteError as error:
        screen.error(str(error))
        status = ERROR
    except KeyboardInterrupt as signalled:
        screen.error(_interrupted(options))
        status = 128 + signalled.args[0] if signalled.args else INTERRUPTED
    except BrokenPipeError:
        status = ERROR
    except Exception as error:  # a traceback would exit with 1, which says FAIL
        screen.error(f"internal error: {type(error).__name__}: {error}")
        status = ERROR
    _forget_deaf_readers()
    sys.exit(status)


def _interrupted(options: argparse.Namespace) -> str:
    """Say what an interrupted command did not do."""
    if told := getattr(options, "cassette_left", ""):
        return str(told)
    if options.cassette_command == "run":
        return "interrupted: nothing was graded"
    if options.cassette_command == "record":
        return f"interrupted: {options.cassette!r} was not recorded"
    return "interrupted"


def _forget_deaf_readers() -> None:
    """Let no last flush into a closed pipe or a full disk change the status."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _end_orderly() -> None:
    """Let a plain kill and a closed terminal end the child and the arm too, as Ctrl-C does."""

    def interrupt(number: int, _: Any) -> NoReturn:
        raise KeyboardInterrupt(number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        with contextlib.suppress(ValueError):  # not the main thread: nobody can be told
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, interrupt)


def _mistyped(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """End a command that was mistyped in a shell with one line, as every other error."""
    told = f"hermes cassette: {message}; usage: {_usage(parser)}"
    parser.exit(ERROR, shown(told) + "\n")


def _usage(parser: argparse.ArgumentParser) -> str:
    parser.color = False  # type: ignore[attr-defined]  # Python 3.14 paints it on a terminal
    return " ".join(parser.format_usage().split()[1:])


class _ShellParser(argparse.ArgumentParser):
    """A command's parser in a shell."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse them all: what is left over would be told in three lines by the parser above this one."""
        options, left = super().parse_known_args(args, namespace)
        if hasattr(options, "cassette_names") and not any(word.startswith("-") for word in left):
            options.cassette_names, left = [*options.cassette_names, *left], []  # names that stand behind a flag
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return options, left

    def error(self, message: str) -> NoReturn:
        _mistyped(self, message)


class _SlashParser(argparse.ArgumentParser):
    """A parser whose mistakes are errors of ours: it must never end the host."""

    def error(self, message: str) -> NoReturn:
        raise CassetteError(f"{message}; usage: {_usage(self)}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise CassetteError(message or "")


def slash(plugin: Plugin, raw: str) -> str:
    """Run one `/cassette` command and return its text.  Never raises."""
    printed = _Lines()
    try:
        _slash(plugin, raw.strip(), Screen(printed, printed, {"NO_COLOR": "1"}))
    except CassetteError as error:
        printed.write(f"{error}\n")
    except Exception as error:
        printed.write(shown(f"internal error: {type(error).__name__}: {error}") + "\n")
    return printed.text.rstrip("\n")


def _slash(plugin: Plugin, raw: str, screen: Screen) -> None:
    word, _, rest = raw.partition(" ")
    command = next((one for one in SESSION_COMMANDS if one.name == word), None)
    if command is None:
        screen.print(_session_help(word))
        return
    parser = _SlashParser(prog=f"/cassette {command.name}", add_help=False)
    command.arguments(parser)
    options = parser.parse_args(_words(command.name, rest))
    command.run(plugin, options, screen)


def _words(command: str, rest: str) -> list[str]:
    r"""Split a slash command's text; a fact keeps its blanks, quotes and `\`.

    `--remove` is the flag as a fact's first or last word, or before the name, and `--` makes all
    that follows it the fact, as in a shell.
    """
    words = rest.split()
    if command != "pin" or len(words) < 2:
        return words
    if words[0] == "--remove":
        rest = " ".join([words[1], "--remove", *rest.split(None, 2)[2:]])
    name, fact = rest.split(None, 1)
    fact, remove = fact.strip(), False
    if fact == "--remove":
        return words
    if fact.split(None, 1)[0] == "--remove":
        fact, remove = fact.split(None, 1)[1], True
    elif fact.rsplit(None, 1)[-1] == "--remove" and words[1] != "--":
        fact, remove = fact.rsplit(None, 1)[0], True
    if fact.split(None, 1)[0] == "--":
        fact = fact[2:].strip()
    if len(fact) > 1 and fact[0] in "\"'" and fact.find(fact[0], 1) == len(fact) - 1:
        fact = fact[1:-1]
    return [name, *["--remove"] * remove, "--", fact]


def _session_help(word: str) -> str:
    known = [command for command in SESSION_COMMANDS if command.help is not argparse.SUPPRESS]
    head = f"there is no /cassette {shown(word, CELL)}; " if word and word != "help" else ""
    width = max(len(command.example) for command in known)
    lines = [f"  {command.example.ljust(width)}  {command.help}" for command in known]
    return head + "commands:\n" + "\n".join(lines)


class _Lines:
    """Collects what a slash command prints."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False
