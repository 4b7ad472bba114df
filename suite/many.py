"""The `run` command: one run as ever, or a suite of many.

Sessions are started by functions that `cli` hands in; here is decided which, in
which order, what is kept of them and what is told at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

from ..cassette_store import Cassette, CassetteError, Store
from ..hooks import Plugin
from . import runs, table, ticker
from .cells import Cell, Key, Run, suite_status
from .described import described
from .arguments import MOST_RUNS
from .door import ERROR, Screen, quote
from .housekeeping import is_copy
from .plan import Arm, Plan, PlannedCell, Progress, Try, choose, cross, parse_arms
from .reports import CassetteFacts, Suite, count, grade_suite
from .runner import CellTrouble, Runner, Stopped
from .targets import Target, check_targets, write_reports

__all__ = ["Asked", "MakeOne", "Sessions", "run"]

#: Cassettes that nobody may rename or remove while a suite goes on; of further ones, while a run does.
#: Each takes an open file, and macOS gives a process 256.
_MOST_HELD = 100
#: Lines about run files that count for nothing.
_MOST_FAULTS = 10


class Asked(NamedTuple):
    """One run that is to be made.

    `waits` is called while it waits, with whether its session has claimed it;
    it raises `Stopped` when the suite is over.
    """

    name: str
    cassette: Cassette
    cassette_sha: str
    options: argparse.Namespace
    folder: str
    waits: Callable[[bool], None]


#: Makes one run and returns what its file is to hold; in any thread.
#: It raises CassetteError if no session could be started.
MakeOne = Callable[[Asked], dict[str, Any]]


class Sessions(NamedTuple):
    """What starts sessions.

    `run_one` makes one run, keeps and tells it, and returns its exit status, the
    run and its file.  `check` returns the folder that a cassette's runs work in,
    or says why there can be none.  `open` finds out where sessions are hosted,
    once for all runs.
    """

    run_one: Callable[[Plugin, Store, argparse.Namespace, Screen], tuple[int, dict[str, Any], Path]]
    check: Callable[[str, Cassette, argparse.Namespace], str]
    open: Callable[[Plugin, Store, Asked, Screen], MakeOne]


#: What `--resume` takes from the plan, by the flag that would say otherwise.
_OF_THE_PLAN: Mapping[str, str] = {
    "cassette_all": "--all",
    "cassette_models": "--model",
    "cassette_arms": "--arm",
    "cassette_skills": "--skill",
    "cassette_repeat": "--repeat",
    "cassette_require": "--require",
    "cassette_stop_early": "--stop-early",
    "cassette_retry_invalid": "--retry-invalid",
    "cassette_provider": "--provider",
    "cassette_in": "--in",
}
#: Flags that make a suite of what would be one run.
_OF_SUITES = ("all", "arms", "repeat", "jobs", "require", "stop_early", "budget", "retry_invalid", "noise")


# --- the command -----------------------------------------------------------------------


class _Door(NamedTuple):
    """What the command was called with."""

    plugin: Plugin
    store: Store
    options: argparse.Namespace
    screen: Screen
    sessions: Sessions
    targets: Sequence[Target]


def run(plugin: Plugin, options: argparse.Namespace, screen: Screen, sessions: Sessions) -> int:
    """Run one cassette, or a suite.

    :returns: the exit status: for one run that of its verdict, for a suite that
        of its worst cell.
    """
    store = plugin.store()
    store.prepare()
    store.sweep_handovers(time.time())
    if any(not model.strip() for model in options.cassette_models):
        raise CassetteError("--model names no model: name one, or leave it out")
    if options.cassette_in is not None and not options.cassette_in.strip():
        raise CassetteError("--in names no folder: leave it out, or name one")
    door = _Door(plugin, store, options, screen, sessions, check_targets(options))
    if options.cassette_resume is not None:
        return _resume(door)
    names = _chosen(store, options)
    patterns = any(name not in names for name in options.cassette_names)
    given = any(getattr(options, f"cassette_{flag}") not in (None, False, []) for flag in _OF_SUITES)
    if given or patterns or len(names) > 1 or len(set(options.cassette_models)) > 1:
        return _begin(door, names)
    options.cassette, options.cassette_model = names[0], options.cassette_models[0] if options.cassette_models else None
    status, one, path = sessions.run_one(plugin, store, options, screen)
    if door.targets:
        write_reports(door.targets, _suite_of_one(store, one, path, options.cassette_model or ""))
    return status


def _chosen(store: Store, options: argparse.Namespace) -> list[str]:
    """The names of the cassettes that are asked for.  A name alone is looked up by the run itself."""
    words = options.cassette_names
    if options.cassette_all:
        if words:
            raise CassetteError(f"--all is every cassette: leave out {quote(words[:1])}, or --all")
        if names := _names(store, words):
            return names
        raise CassetteError("there are no cassettes yet: hermes cassette record NAME says how to make one")
    if not words:
        raise CassetteError("run what? Name a cassette ('hermes cassette list' shows them), or use --all or --resume")
    if len(words) == 1 and not any(char in words[0] for char in "*?["):
        return list(words)
    return choose(words, _names(store, words))


def _names(store: Store, words: Sequence[str]) -> list[str]:
    """The names of all cassettes, of those that a fill kept only the ones that are asked for by name."""
    return [name for name in store.names() if not is_copy(name) or name in words]


def _suite_of_one(store: Store, one: Mapping[str, Any], path: Path, model: str) -> Suite:
    """One run as the reports take it."""
    cell = Cell(Key(one["name"], model, ""), 1, (runs.to_run(one, str(path)),))
    facts: dict[str, CassetteFacts] = {}
    with contextlib.suppress(CassetteError):
        cassette, sha = store.read(one["name"])
        facts |= {one["name"]: _facts(cassette)} if sha == one["cassette_sha256"] else {}
    return grade_suite(one["run"], one["at"], (one["hermes"], one["plugin"]), 1.0, [cell], facts)


def _facts(cassette: Cassette) -> CassetteFacts:
    calls = tuple((call.tool, call.args) for call in cassette.calls)
    return CassetteFacts(cassette.request, cassette.answer, calls, cassette.pins, cassette.model)


# --- a suite from its beginning -------------------------------------------------------------


def _begin(door: _Door, names: Sequence[str]) -> int:
    options, store, facts = door.options, door.store, door.plugin.facts
    now = datetime.datetime.now(datetime.timezone.utc)
    skills = [skill.strip() for skill in options.cassette_skills if skill.strip()]
    arms = [Arm(arm.label, tuple(dict.fromkeys([*skills, *arm.skills]))) for arm in parse_arms(options.cassette_arms)]
    shas = {name: store.read(name)[1] for name in names}
    plan = Plan(
        id=runs.new_id(now),
        created=now.isoformat(timespec="seconds"),
        cells=cross(shas, options.cassette_models, arms),
        repeat=options.cassette_repeat or 1,
        require=options.cassette_require or 1.0,
        retries=1 if options.cassette_retry_invalid is None else options.cassette_retry_invalid,
        stop_early=options.cassette_stop_early,
        provider=options.cassette_provider or "",
        folder="" if options.cassette_in is None else os.path.abspath(os.path.expanduser(options.cassette_in)),
        timeout=options.cassette_timeout,
        plugin=facts.plugin,
        fingerprint=facts.fingerprint,
    )
    suite = _SuiteRun(door, plan)
    if suite.total > MOST_RUNS:
        raise CassetteError(f"that would be {suite.total:,} runs, over {MOST_RUNS:,}: ask for fewer")
    with suite.locked():
        suite.prepare(_left(plan, [], shas))
        runs.save_plan(store, plan)
        door.screen.note(f"suite run {plan.id}: {count(suite.total, 'run')} of {count(len(plan.cells), 'cell')}")
        return suite.finish()


# --- what is left of one ---------------------------------------------------------------------


def _resume(door: _Door) -> int:
    options = door.options
    given = [flag for name, flag in _OF_THE_PLAN.items() if getattr(options, name) not in (None, False, [])]
    given += ["--timeout"] * (options.cassette_timeout != Plan._field_defaults["timeout"])
    if options.cassette_names or given:
        what = quote(options.cassette_names[:1]) if options.cassette_names else given[0]
        raise CassetteError(f"--resume does what its suite run was asked for: leave out {what}")
    id = options.cassette_resume or _newest_unfinished(door.store)
    suite = _SuiteRun(door, runs.read_plan(door.store, id))
    with suite.locked():
        left = suite.read()
        door.screen.note(f"suite run {id}: {sum(left.values()):,} of {count(suite.total, 'run')} left")
        suite.prepare(left)
        return suite.finish()


def _newest_unfinished(store: Store) -> str:
    """The newest suite of which runs are left that can still be made.

    :raises CassetteError: if there is none, or a newer one's plan cannot be used.
    """
    files, shas = runs.run_files(store), _Shas(store)
    for id in runs.suite_ids(store):
        plan, tries = runs.read_suite(store, id, among=files)
        if _left(plan, tries, shas):
            return id
    raise CassetteError("no suite run is unfinished: 'hermes cassette run --resume ID' tells the outcome of one")


class _Shas(dict[str, str]):
    """The SHA-256 of each cassette as it is now, "" for one that cannot be read; each is read once."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def __missing__(self, name: str) -> str:
        self[name] = ""
        with contextlib.suppress(CassetteError):
            self[name] = self._store.read(name)[1]
        return self[name]


def _left(plan: Plan, tries: Sequence[Try], shas: Mapping[str, str]) -> dict[Key, int]:
    """How many tries are left of which cell, those of cassettes that are no more as they were left out."""
    progress = Progress(plan, tries)
    for cell in plan.cells:
        if shas[cell.key.cassette] != cell.cassette_sha:
            progress.give_up(cell.key, "changed")
    return progress.left()


# --- a suite that goes on ----------------------------------------------------------------------


class _SuiteRun:
    """One command's work on one suite."""

    def __init__(self, door: _Door, plan: Plan) -> None:
        self._door, self._plan = door, plan
        self._tries: list[Try] = []
        self._folders: dict[str, str] = {}
        self._make: MakeOne | None = None
        self._ticker = ticker.Ticker(door.screen)
        self._runner: Runner | None = None
        self.total = len(plan.cells) * plan.repeat

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other commands off this suite, and everybody off its cassettes' names.

        :raises CassetteError: if another command goes on with it.
        """
        store, id = self._door.store, self._plan.id
        lock = runs.lock_suite(store, id)
        if not lock.try_acquire():
            raise CassetteError(f"another command goes on with the suite run {id}: wait for its end, or end it")
        try:
            with contextlib.ExitStack() as stack:
                for name in list(dict.fromkeys(cell.key.cassette for cell in self._plan.cells))[:_MOST_HELD]:
                    stack.enter_context(store.held(name))
                yield
        finally:
            with contextlib.suppress(OSError):  # before the lock is free: nobody must hold a file that is removed
                lock.path.unlink()
            lock.release()

    def read(self) -> dict[Key, int]:
        """Take over what was made before; return what is left of which cell."""
        faults: list[str] = []
        self._plan, self._tries = runs.read_suite(self._door.store, self._plan.id, faults.append)
        for fault in faults[:_MOST_FAULTS]:
            self._door.screen.note(fault)
        if len(faults) > _MOST_FAULTS:
            self._door.screen.note(
                f"{count(len(faults) - _MOST_FAULTS, 'more run file')} of which each counts for no run"
            )
        facts = self._door.plugin.facts
        if (self._plan.plugin, self._plan.fingerprint) != (facts.plugin, facts.fingerprint):
            self._door.screen.note(f"this suite run began with other plugin code (version {self._plan.plugin})")
        return _left(self._plan, self._tries, _Shas(self._door.store))

    def prepare(self, left: Mapping[Key, int]) -> None:
        """Check what runs are left to be made, and find out where sessions are hosted.

        :raises CassetteError: for what would keep a run from a verdict, before any is made.
        """
        first: Asked | None = None
        models: set[str] = set()
        for cell in self._plan.cells:
            name, model, _ = cell.key
            if not left.get(cell.key) or name in self._folders and model in models:
                continue
            cassette, sha = self._door.store.read(name)
            options = self._options(cell)
            self._folders[name] = self._door.sessions.check(name, cassette, options)
            models.add(model)
            first = first or Asked(name, cassette, sha, options, self._folders[name], lambda claimed: None)
        if first is not None:
            self._make = self._door.sessions.open(self._door.plugin, self._door.store, first, self._door.screen)

    def _options(self, cell: PlannedCell) -> argparse.Namespace:
        """What a run of this cell is asked for."""
        asked = {
            "model": cell.key.model or None,
            "provider": self._plan.provider or None,
            "skills": list(cell.skills),
            "in": self._plan.folder or None,
            "timeout": self._plan.timeout,
        }
        return argparse.Namespace(**{f"cassette_{name}": value for name, value in asked.items()})

    def __call__(self, cell: PlannedCell, number: int, claimed: Callable[[], None], stopped: Callable[[], bool]) -> Run:
        """Make and keep one run, as `runner.MakeRun` has it.

        :raises CassetteError: if it cannot be kept: nor could the next.
        """

        def waits(is_claimed: bool) -> None:
            if stopped():
                raise Stopped
            if is_claimed:
                claimed()
            self._ticker.tick()

        store, name = self._door.store, cell.key.cassette
        with store.held(name):
            cassette = self._as_planned(cell)
            asked = Asked(name, cassette, cell.cassette_sha, self._options(cell), self._folders[name], waits)
            made = runs.mark_run(self._attempt(asked), self._plan, cell.key, number)
            at = datetime.datetime.fromisoformat(made["at"])
            path = store.save_run(name, runs.stamp(self._plan.id, at, made["run"]), made)
        return runs.to_run(made, str(path))

    def _as_planned(self, cell: PlannedCell) -> Cassette:
        try:
            cassette, sha = self._door.store.read(cell.key.cassette)
        except CassetteError as error:
            raise CellTrouble(f"its cassette cannot be used any more: {error}") from error
        if sha != cell.cassette_sha or cell.key.cassette not in self._folders:
            raise CellTrouble("its cassette changed during the suite run: start another")
        return cassette

    def _attempt(self, asked: Asked) -> dict[str, Any]:
        """Make a run; a session that could not be started is tried again as often as an INVALID run."""
        assert self._make is not None  # a cell without a folder has been given up before
        why: CassetteError | None = None
        for _ in range(self._plan.retries + 1):
            try:
                return self._make(asked)
            except CassetteError as error:
                why = error
        raise CellTrouble(str(why)) from why

    # its end

    def finish(self) -> int:
        """Make what is left; write the reports, tell the outcome and return the exit status."""
        options = self._door.options
        self._runner = Runner(
            self._plan,
            self._tries,
            self,
            jobs=options.cassette_jobs or 1,
            budget=options.cassette_budget,
            changed=self._ticker.changed,
        )
        self._ticker.watch(self._runner)
        try:
            cells = self._runner.run()
        except BaseException as fault:
            options.cassette_left = f"interrupted: {self._how_to_resume()}"
            with contextlib.suppress(CassetteError):
                write_reports(self._door.targets, self._graded(self._runner.cells()))
            if isinstance(fault, Exception):
                what = (
                    str(fault)
                    if isinstance(fault, CassetteError)
                    else f"internal error: {type(fault).__name__}: {fault}"
                )
                raise CassetteError(f"{what}; {self._how_to_resume()}") from fault
            raise
        suite = self._graded(cells)
        status = suite_status([each.summary for each in suite.cells]) if any(cell.runs for cell in cells) else ERROR
        unwritten = _written(self._door.targets, suite)
        with contextlib.suppress(OSError):  # graded and kept: whoever stopped reading changes no verdict
            self._door.screen.print(self._text(suite, status))
        if unwritten is not None:
            self._door.screen.error(str(unwritten))
            return ERROR
        return status

    def _graded(self, cells: Sequence[Cell]) -> Suite:
        facts: dict[str, CassetteFacts] = {}
        for cell in self._plan.cells:
            if cell.key.cassette not in facts:
                with contextlib.suppress(CassetteError):
                    cassette, sha = self._door.store.read(cell.key.cassette)
                    if sha == cell.cassette_sha:
                        facts[cell.key.cassette] = _facts(cassette)
        versions = self._door.plugin.facts.hermes, self._door.plugin.facts.plugin
        noise = self._door.options.cassette_noise
        return grade_suite(self._plan.id, self._plan.created, versions, self._plan.require, cells, facts, noise)

    def _text(self, suite: Suite, status: int) -> str:
        assert self._runner is not None
        done, total = self._runner.counts()
        screen = self._door.screen
        if self._door.options.cassette_json:
            skills = {cell.key: cell.skills for cell in self._plan.cells}
            return described(suite, skills, total - done, status)
        text = table.render(suite, screen.width, screen.ascii_only, screen.paint)
        return f"{text}\n\nthe budget was spent: {self._how_to_resume()}" if done < total else text

    def _how_to_resume(self) -> str:
        assert self._runner is not None
        done, total = self._runner.counts()
        command = quote(["hermes", "cassette", "run", "--resume", self._plan.id])
        return f"{done:,} of {count(total, 'run')} are kept; {command} does the rest"


def _written(targets: Sequence[Target], suite: Suite) -> CassetteError | None:
    """Write the reports; return what went wrong."""
    try:
        write_reports(targets, suite)
    except CassetteError as error:
        return error
    return None
