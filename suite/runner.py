"""Makes a plan's runs, several at a time, and keeps count.

It starts no process itself: `cli` hands it a function that makes one run.  What
is done is kept by that function, run by run; an interrupted suite loses nothing
but the runs that were under way.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from typing import Callable, Protocol, Sequence

from .cells import Cell, Run
from .plan import Plan, PlannedCell, Progress, Try

__all__ = ["CellTrouble", "MakeRun", "Runner", "Stopped"]


class CellTrouble(Exception):
    """A cell can have no answer any more, for the reason that is the text."""


class Stopped(Exception):
    """A run was ended because its suite was."""


class MakeRun(Protocol):
    """Makes and keeps one run.

    :param claimed: to be called once the run's session has taken it: the next
        run may then be started beside this one.
    :param stopped: says that the suite is over; the run has to end soon then.
    :raises CellTrouble: if this cell can have no more runs.
    :raises Stopped: if `stopped` ended it.
    """

    def __call__(
        self, cell: PlannedCell, number: int, claimed: Callable[[], None], stopped: Callable[[], bool]
    ) -> Run: ...


class Runner:
    """One suite under way.

    `jobs` runs go on at a time at most, but only one waits for its session.
    After `budget` seconds no run is started any more; those under way end.
    `changed` is called, from any thread and never at the same time, when a run
    has ended.
    """

    def __init__(
        self,
        plan: Plan,
        done: list[Try],
        make_run: MakeRun,
        *,
        jobs: int = 1,
        budget: float | None = None,
        changed: Callable[["Runner"], None] = lambda runner: None,
    ) -> None:
        self.plan = plan
        self.started = time.monotonic()
        self.out_of_budget = False
        self._make_run, self._jobs, self._budget, self._changed = make_run, jobs, budget, changed
        self._progress = Progress(plan, done)
        self._before = self._progress.counts()[0]
        self._lock = threading.RLock()  # guards the progress, and lets `changed` look at it
        self._arming = threading.Lock()  # held by the one run that waits for its session
        self._stop = threading.Event()
        self._fault: BaseException | None = None

    def run(self) -> list[Cell]:
        """Make all runs that are left; return the cells.

        :raises BaseException: what a run raised, and KeyboardInterrupt, when
            every run under way has ended.
        """
        threads = [  # each in the context of this one: Hermes keeps there which home is meant
            threading.Thread(target=contextvars.copy_context().run, args=(self._work,), name=f"suite-{n}", daemon=True)
            for n in range(self._jobs)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():  # a join without an end would be deaf to Ctrl-C on Windows
                    thread.join(0.2)
        finally:
            self._end(threads)
        if self._fault is not None:
            raise self._fault
        return self.cells()

    def _end(self, threads: Sequence[threading.Thread]) -> None:
        """Wait until every run under way has ended; a second Ctrl-C must not leave its session behind."""
        self._stop.set()
        for thread in threads:
            while thread.is_alive():
                with contextlib.suppress(KeyboardInterrupt):
                    thread.join(0.2)

    def cells(self) -> list[Cell]:
        """The cells as they stand."""
        with self._lock:
            return self._progress.cells()

    def counts(self) -> tuple[int, int]:
        """How many tries are done, and how many there are."""
        with self._lock:
            return self._progress.counts()

    def seconds_left(self) -> float | None:
        """How long the rest may take, going by the tries made by now; None before the first."""
        done, total = self.counts()
        made = done - self._before
        return (time.monotonic() - self.started) / made * (total - done) if made > 0 else None

    def _work(self) -> None:
        try:
            while not self._stop.is_set() and self._one():
                pass
        except BaseException as fault:  # told by the thread that waits, once all have ended
            self._fault = self._fault or fault
            self._stop.set()

    def _one(self) -> bool:
        """Make one run; return False when there is none to start."""
        self._arming.acquire()
        claimed = _Once(self._arming.release)
        try:
            with self._lock:
                found = None if self._stop.is_set() or self._is_late() else self._progress.next()
            if found is None:
                return False
            self._make(*found, claimed)
        finally:
            claimed()
        return True

    def _make(self, cell: PlannedCell, number: int, claimed: "_Once") -> None:
        try:
            run = self._make_run(cell, number, claimed, self._stop.is_set)
        except CellTrouble as trouble:
            with self._lock:
                self._progress.give_up(cell.key, str(trouble))
                self._changed(self)
        except Stopped:
            with self._lock:
                self._progress.drop(cell.key, number)
        else:
            with self._lock:
                self._progress.end(Try(cell.key, number, run))
                self._changed(self)

    def _is_late(self) -> bool:
        if self._budget is not None and time.monotonic() - self.started >= self._budget:
            self.out_of_budget = True
        return self.out_of_budget


class _Once:
    """Calls something the first time it is called itself, in whichever thread."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            action, self._action = self._action, None
        if action is not None:
            action()
