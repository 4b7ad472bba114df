"""What both doors, and every command behind them, share: the terminal, and what a command is."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import shutil
import textwrap
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Protocol, Sequence

from ..cassette_store import shown
from ..hooks import Plugin

__all__ = [
    "CELL",
    "NOTES",
    "Command",
    "ERROR",
    "INTERRUPTED",
    "JSON_SCHEMA",
    "LINE",
    "Output",
    "Screen",
    "add_json",
    "add_name",
    "beginning",
    "block",
    "coloured",
    "compact",
    "quote",
    "seconds",
    "shown_lines",
    "write_all",
]

#: Version of the objects that `--json` prints.
JSON_SCHEMA = 1
#: Exit statuses of a command that failed and of one that was interrupted.
ERROR, INTERRUPTED = 2, 130
#: Warnings and the like that are listed at most, and characters of a model's name and the like that are shown of it.
NOTES, CELL = 10, 200
#: Characters of a line that is not shown whole.
LINE = 1_000


# --- the terminal -----------------------------------------------------------------


class Output(Protocol):
    """What a `Screen` needs of a stream."""

    def write(self, text: str, /) -> int: ...

    def flush(self) -> None: ...

    def isatty(self) -> bool: ...


class Screen:
    """Prints to standard output and shows progress on standard error.

    What others wrote is made printable (`shown`) before it is printed here.
    Colour is used only on a terminal and never alone; a character that the
    console cannot show is escaped, never an error.
    """

    def __init__(self, out: Output, err: Output, environ: Mapping[str, str]) -> None:
        self._out, self._err = out, err
        terminal = environ.get("TERM") != "dumb"
        self._colour = out.isatty() and not environ.get("NO_COLOR") and terminal
        self._progress = err.isatty() and terminal and not environ.get("CI")
        self._shown = 0

    @property
    def live(self) -> bool:
        """Whether progress is a line that changes: elsewhere each change would be a line of its own."""
        return self._progress

    @property
    def width(self) -> int:
        """Columns that results may take: those of the terminal, 80 where there is none."""
        return shutil.get_terminal_size((80, 24)).columns if self._out.isatty() else 80

    @property
    def ascii_only(self) -> bool:
        """Whether results go where no more than ASCII can be shown for sure."""
        name = (getattr(self._out, "encoding", None) or "utf-8").lower().replace("-", "").replace("_", "")
        return not name.startswith("utf")

    def print(self, text: str) -> None:
        """Print a text and a newline."""
        self.done()
        write_all(self._out, text + "\n")

    def error(self, text: str) -> None:
        """Print one line on standard error; where nobody reads it, the exit status still tells."""
        self.note(text)

    def note(self, text: str) -> None:
        """Print one line on standard error that is no error."""
        with contextlib.suppress(OSError, ValueError):
            self.done()
            write_all(self._err, f"hermes cassette: {shown(text)}\n")

    def paint(self, text: str, colour: str) -> str:
        """Colour a word: "green", "red", "yellow" or "dim"."""
        code = {"green": "32", "red": "31", "yellow": "33", "dim": "2"}[colour]
        return f"\033[{code}m{text}\033[0m" if self._colour else text

    def progress(self, text: str) -> None:
        """Show in one line what is waited for; nothing unless on a terminal."""
        if self._progress:
            self._erase()
            write_all(self._err, text[:78])
            self._shown = min(len(text), 78)

    def done(self) -> None:
        """Erase the progress line."""
        if self._shown:
            self._erase()

    def _erase(self) -> None:
        write_all(self._err, "\r" + " " * self._shown + "\r")
        self._shown = 0


def write_all(stream: Output, text: str) -> None:
    """Write a text at once; a character that the stream cannot show is escaped."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def quote(words: Sequence[str], windows: bool = os.name == "nt") -> str:
    """Write a command line as a person would type it, in PowerShell on Windows."""
    if not windows:
        return shlex.join(words)
    return " ".join(_powershell(word) for word in words)


def _powershell(word: str) -> str:
    if re.fullmatch(r"[\w./:\\=+-]+", word) and not word.startswith("-") or re.fullmatch(r"--?[A-Za-z][\w-]*", word):
        return word
    return "'" + word.replace("'", "''") + "'"


# --- the commands ---------------------------------------------------------------------


class Command(NamedTuple):
    """One command, as both doors know it.

    `arguments` adds its arguments to a parser; `run` returns what to print and
    the exit status.
    """

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Plugin, argparse.Namespace, Screen], int]


def add_name(parser: argparse.ArgumentParser) -> None:
    """Add a cassette's name."""
    parser.add_argument("cassette", metavar="NAME", help="the cassette's name")


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", dest="cassette_json", action="store_true", help="print one JSON object instead")


# --- what is told ------------------------------------------------------------------------

_COLOURS = {"PASS": "green", "FAIL": "red", "DIVERGED": "yellow", "INVALID": "red", "broken": "red"}


def shown_lines(text: str) -> list[str]:
    """The lines of a text that keeps its line ends on the screen, each as `shown` writes it; tabs become blanks."""
    return [shown(line.expandtabs()) for line in text.replace("\r\n", "\n").split("\n")]


def coloured(text: str, result: str, screen: Screen) -> str:
    return screen.paint(text, _COLOURS[result]) if result in _COLOURS else text


def block(title: str, texts: Iterable[str]) -> Iterator[str]:
    """A titled block of texts that are fit to print; nothing without one."""
    for number, text in enumerate(texts):
        if not number:
            yield f"{title}:"
        yield textwrap.indent(text, "  ")


def beginning(text: str, count: int, how: str) -> list[str]:
    """The first lines of a text, no line too long, and how to see what is left out."""
    lines = shown_lines(text.strip("\r\n"))
    told = [shown(line, LINE) for line in lines[:count]]
    more = len(lines) - len(told)
    left = f"{more} more line{'s' * (more != 1)}" if more else "longer lines"
    return told if told == lines else [*told, f"... {left}: {how}"]


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
