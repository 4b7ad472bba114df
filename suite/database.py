"""A database of Hermes's, asked one question at a time: nothing is written to it, nor beside it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable, TypeVar

from ..cassette_store import CassetteError, shown

if TYPE_CHECKING:
    import sqlite3

__all__ = ["ask"]

_T = TypeVar("_T")

#: Tries at a database that changes meanwhile, and seconds between two.
_TRIES, _PAUSE = 20, 0.02
#: How a database is opened: one that may be written meanwhile, and one that nobody writes ahead.
_SHARED, _STILL = "mode=ro&readonly_shm=1", "mode=ro&immutable=1"


def ask(path: Path, question: Callable[[sqlite3.Connection], _T], patience: float) -> _T:
    """Open a database for one question, and ask again if it changed in a way that may have spoiled the answer.

    :param patience: seconds to wait for a lock.
    :raises CassetteError: if it changes all the time.
    :raises sqlite3.Error, OSError: if it cannot be read.
    """
    import sqlite3  # takes some milliseconds to load

    for number in range(_TRIES):
        before, kind = _way(path)
        try:
            answer = _answered(path, kind, question, patience)
            if kind != _STILL or _way(path)[0] == before:
                return answer
        except sqlite3.Error as error:
            spoiled = _way(path)[0] != before or "disk i/o" in str(error).lower()
            if number + 1 == _TRIES or not spoiled:
                raise
        time.sleep(_PAUSE)
    raise CassetteError(f"Hermes's database {shown(path)} changes all the time: try again")


def _answered(path: Path, kind: str, question: Callable[[sqlite3.Connection], _T], patience: float) -> _T:
    import sqlite3

    uri = f"{path.absolute().as_uri()}?{kind}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None)) as connection:
        connection.execute("BEGIN")  # all of the answer is of one moment
        return question(connection)


def _way(path: Path) -> tuple[tuple[int, ...], str]:
    """Say how to open a database so that nothing is written beside it, and by what a change of it is seen.

    While Hermes writes ahead, its index (`-shm`) tells what is new, and is not
    made where it is missing.  A database that could be written ahead, but is
    not, is as it stands in its file, and has to be told so: opened in the usual
    way, SQLite would make both files.  Then a change is looked for afterwards.
    """
    found = path.stat()
    ahead = _size(f"{path}-wal")
    mark = (found.st_size, found.st_mtime_ns, found.st_ino, ahead)
    still = ahead <= 0 and _size(f"{path}-shm") < 0 and _may_be_written_ahead(path)
    return mark, _STILL if still else _SHARED


def _size(path: str) -> int:
    """The size of a file; -1 for none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _may_be_written_ahead(path: Path) -> bool:
    """Whether a database's header says that it is written ahead (`journal_mode` is WAL).

    To close a file gives up the locks that this process has on it; where
    Hermes's own module may have some, it stays open until the process ends.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        return os.read(descriptor, 20)[18:20] == b"\2\2"
    finally:
        if os.name == "nt" or "hermes_state" not in sys.modules:
            os.close(descriptor)
