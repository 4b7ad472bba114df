"""What is seen of a suite while it goes on: one line that changes on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from typing import Callable, Sequence

from ..cassette_store import shown
from . import pairs
from .cells import Cell
from .door import Screen
from .runner import Runner

__all__ = ["Ticker", "duration"]

#: Seconds between two looks at a terminal, and between two lines elsewhere.
LIVE, PLAIN = 1.0, 30.0


class Ticker:
    """Tells how far a suite is.  For all threads: those that make runs call `tick` while they wait."""

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen, self._clock = screen, clock
        self._lock = threading.Lock()  # of the screen; nobody waits for the runner while it is held
        self._runner: Runner | None = None
        self._last = clock()

    def watch(self, runner: Runner) -> None:
        """Look at this suite from now on."""
        self._runner = runner

    def changed(self, runner: Runner) -> None:
        """A run has ended."""
        self._tell(runner, PLAIN if not self._screen.live else 0.0)

    def tick(self) -> None:
        """Some time has passed."""
        if self._runner is not None:
            self._tell(self._runner, LIVE if self._screen.live else PLAIN)

    def _tell(self, runner: Runner, pause: float) -> None:
        if self._clock() - self._last < pause:
            return
        text = told(runner)  # takes the runner's lock, and must have let go of it below
        with self._lock:
            if self._clock() - self._last < pause:
                return
            self._last = self._clock()
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more: no reason to end
                if self._screen.live:
                    self._screen.progress(text)
                else:
                    self._screen.note(text)


def told(runner: Runner) -> str:
    """How far a suite is, in a line: what matters most stands first, for a terminal cuts it."""
    done, total = runner.counts()
    left = runner.seconds_left()
    rest = f", about {duration(left)} left" if left is not None and done < total else ""
    passes = ", ".join(_passes(runner.cells()))
    return shown(f"{done:,} of {total:,} runs{rest}" + (f"; PASS: {passes}" if passes else ""))


def _passes(cells: Sequence[Cell]) -> list[str]:
    """Passes of tries by cell, those with the fewest first; what all cells share is left out of their names."""
    columns = pairs.column_names(list(dict.fromkeys((cell.key.model, cell.key.arm) for cell in cells)))
    one_cassette = len({cell.key.cassette for cell in cells}) == 1
    found = []
    for place, cell in enumerate(cells):
        tries = cell.tries
        if tries:
            column = columns[(cell.key.model, cell.key.arm)] if len(columns) > 1 else ""
            name = " ".join(part for part in ("" if one_cassette and column else cell.key.cassette, column) if part)
            passes = sum(run.result == "PASS" for run in tries)
            found.append((passes / len(tries), place, f"{name} {passes}/{len(tries)}"))
    return [text for _, _, text in sorted(found)]


def duration(seconds: float) -> str:
    """A time as a person says it: "40 s", "3 min", "1 h 20 min"."""
    if seconds < 60:
        return f"{max(1, math.ceil(seconds))} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
