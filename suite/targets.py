"""The files that a suite's reports go to: looked at before the first run, written whole at the end."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import secrets
from functools import partial
from pathlib import Path
from typing import Callable, Mapping, NamedTuple, Sequence

from ..cassette_store import CassetteError, write_atomically
from . import html, junit, markdown
from .arguments import REPORTS
from .reports import Suite

__all__ = ["Target", "check_targets", "write_reports"]


class Target(NamedTuple):
    """A report that was asked for: of which kind, and into which file."""

    kind: str
    path: Path


def check_targets(options: argparse.Namespace) -> list[Target]:
    """Return the reports that were asked for, each into a file that can be written.

    What a link leads to is what will be written.

    :raises CassetteError: for the first that cannot be.
    """
    found: list[Target] = []
    for kind in REPORTS:
        text = getattr(options, f"cassette_{kind}")
        if text is None:
            continue
        target = Target(kind, _resolved(kind, text))
        _check(target)
        twin = next((other for other in found if _same(other.path, target.path)), None)
        if twin is not None:
            raise CassetteError(f"--{twin.kind} and --{kind} name the same file {target.path}: name two")
        found.append(target)
    return found


def _resolved(kind: str, text: str) -> Path:
    if text.strip() in ("", "-") or "\0" in text:
        raise CassetteError(f"--{kind} names no file: name one")
    with contextlib.suppress(OSError, ValueError):
        return Path(os.path.realpath(os.path.expanduser(text)))
    raise CassetteError(f"--{kind} names no file that there could be, {text!r}: name another")


def _check(target: Target) -> None:
    kind, path = target
    try:
        if path.is_dir():
            raise CassetteError(f"--{kind}: {path} is a folder: name a file")
        if not path.parent.is_dir():
            raise CassetteError(f"--{kind}: there is no folder {path.parent}: make it, or name another file")
        if path.exists() and not path.is_file():
            raise CassetteError(f"--{kind}: {path} is no regular file: name another")
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "it is read-only")
        probe = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")  # as it will be written
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        probe.unlink()
    except OSError as error:
        why = error.strerror or str(error)
        raise CassetteError(f"--{kind}: {path} cannot be written ({why}): name another file") from error


def _same(one: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        if one.exists() and other.exists():
            return os.path.samefile(one, other)
    return str(one).casefold() == str(other).casefold()


def write_reports(targets: Sequence[Target], suite: Suite) -> None:
    """Write every report.

    :raises CassetteError: for the first that cannot be written any more; the others are.
    """
    page = next((target.path.name for target in targets if target.kind == "html"), "")
    renderers: Mapping[str, Callable[[Suite], str]] = {
        "junit": junit.render,
        "markdown": partial(markdown.render, details=page),
        "html": html.render,
    }
    fault: CassetteError | None = None
    for kind, path in targets:
        try:
            write_atomically(path, renderers[kind](suite).encode("utf-8", "backslashreplace"))
        except CassetteError as error:
            fault = fault or error
    if fault is not None:
        raise fault
