"""Removing and renaming cassettes: the commands `rm` and `rename`."""

from __future__ import annotations

import argparse
import sys

from ..cassette_store import CassetteError
from ..hooks import Plugin
from .door import Screen, add_name, write_all

__all__ = ["BEFORE_FILL", "add_removed", "add_renamed", "is_copy", "remove", "rename"]

#: What the name of a cassette ends with that `fill` kept as it was before.
BEFORE_FILL = ".before-fill"


def is_copy(name: str) -> bool:
    """Whether a cassette is what `fill` kept of another."""
    return name.endswith(BEFORE_FILL)


def add_removed(parser: argparse.ArgumentParser) -> None:
    """Add what `rm` takes."""
    add_name(parser)
    parser.add_argument("--yes", dest="cassette_yes", action="store_true", help="do not ask")


def remove(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    """Remove a cassette and its runs, if that is what the person wants."""
    store, name = plugin.store(), options.cassette
    if name not in store.names():
        store.read(name)  # says that there is none, and offers the nearest
    runs = store.count_runs(name)
    what = f"{name!r} and its {runs} run{'s' * (runs != 1)}"
    if not options.cassette_yes and not _agreed(f"remove {what}? [y/N] "):
        raise CassetteError(f"{what} stay: answer y, or use --yes")
    store.remove(name)
    screen.print(f"removed {what}")
    if name + BEFORE_FILL in store.names():
        screen.print(f"note: {name + BEFORE_FILL!r} stays, which is {name!r} as it was before its last fill")
    return 0


def _agreed(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    write_all(sys.stderr, question)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def add_renamed(parser: argparse.ArgumentParser) -> None:
    """Add what `rename` takes."""
    add_name(parser)
    parser.add_argument("cassette_new", metavar="NEW", help="its new name")


def rename(plugin: Plugin, options: argparse.Namespace, screen: Screen) -> int:
    """Give a cassette and its runs another name."""
    plugin.store().rename(options.cassette, options.cassette_new)
    screen.print(f"renamed {options.cassette!r} to {options.cassette_new!r}, its runs with it")
    return 0
