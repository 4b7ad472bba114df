"""The names of a workspace's files and folders, and which texts `--whole` keeps.

Nothing is opened but folders, and git's index where `--whole` asks for it, none
that a link leads to, and no program is started.  A workspace of too many names
has none: half a list would say of what is missing that it is not there.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from operator import itemgetter
from typing import Callable, Iterator, NamedTuple

from ..cassette_store import NAMES_LIMIT, Name
from ..snapshot import IgnoreRules, Listed, Tree, skip_reason
from .known_names import ENDING_LENGTH, name_ending
from .tracked import list_untracked

__all__ = ["list_names"]

#: Names that are counted below a folder whose names are not listed; more are told as these.
COUNT_LIMIT = 5_000
#: Files that are looked at for their texts.
FILES_LIMIT = 100_000
_HIDDEN_ATTRIBUTE = 2  # FILE_ATTRIBUTE_HIDDEN of Windows


class _Late(Exception):
    """Time is up."""


def list_names(tree: Tree, rules: IgnoreRules, git_rules: IgnoreRules, whole: bool, late: Callable[[], bool]) -> Listed:
    """List a workspace.

    :param rules: what a plain search leaves out: its names are marked.
    :param git_rules: what git leaves out: its texts are not kept.
    :param whole: also say which files have texts to keep.
    """
    try:
        return _Walk(tree, rules, git_rules, whole, late).run()
    except _Late:
        return Listed(None, fault="the names of the workspace could not be listed in time")
    except OSError as error:
        return Listed(None, fault=f"the names of the workspace could not be listed ({error.strerror or error})")


class _Found(NamedTuple):
    path: str
    name: Name
    closed: bool  #: a folder whose names are not listed


class _Walk:
    def __init__(
        self, tree: Tree, rules: IgnoreRules, git_rules: IgnoreRules, whole: bool, late: Callable[[], bool]
    ) -> None:
        self._tree, self._rules, self._git_rules = tree, rules, git_rules
        self._whole, self._late = whole, late
        self._files: list[tuple[int, str]] = []
        self._left_out = 0
        self._most = FILES_LIMIT if whole else NAMES_LIMIT  # names after which the walk ends

    def run(self) -> Listed:
        names: dict[str, Name] = {}
        ignored: list[str] = []
        pending = deque([""])
        while pending and len(names) <= self._most:
            for found in self._entries(pending.popleft(), names):
                if found.name.kind == "folder" and not found.closed:
                    (ignored if found.name.ignored else pending).append(found.path)
        for folder in ignored:
            self._add_ignored(folder, names)
        texts = tuple((path, size) for size, path in sorted(self._files))
        if len(names) > NAMES_LIMIT:
            return Listed(None, texts, self._left_out, _TOO_MANY)
        untracked = list_untracked(self._tree, names) if self._whole else None
        return Listed(names, texts, self._left_out, untracked=untracked)

    def _add_ignored(self, folder: str, names: dict[str, Name]) -> None:
        """Add what is below an ignored folder, or close it where that is too much."""
        below = {folder: names[folder]}
        pending = deque([folder])
        files, left_out = list(self._files), self._left_out
        while pending:
            for found in self._entries(pending.popleft(), below):
                if found.name.kind == "folder" and not found.closed:
                    pending.append(found.path)
            if len(names) + len(below) > NAMES_LIMIT:
                self._files, self._left_out = files, left_out
                names[folder] = names[folder]._replace(inside=min(len(below) - 1, COUNT_LIMIT))
                return
        names.update(below)

    def _entries(self, folder: str, names: dict[str, Name]) -> Iterator[_Found]:
        """Note the names in a folder; one that cannot be read is closed."""
        if self._late():
            raise _Late
        try:
            entries = self._tree.scan(folder, self._most + 1)
        except OSError:
            if not folder:
                raise
            names[folder] = names[folder]._replace(inside=0)
            return
        for title, status in sorted(entries, key=itemgetter(0)):
            path = f"{folder}/{title}" if folder else title
            name = self._name(path, title, status)
            closed = name.kind == "folder" and (name.hidden or skip_reason(path) is not None)
            if closed:
                inside, endings = self._count(path)
                name = name._replace(inside=inside, endings=None if skip_reason(title.strip(".")) else endings)
            names[path] = name
            if name.kind == "file":
                self._note_file(path, name)
            yield _Found(path, name, closed)

    def _name(self, path: str, title: str, status: os.stat_result | None) -> Name:
        if status is None:
            return Name("other", hidden=title.startswith("."))
        hidden = title.startswith(".") or bool(getattr(status, "st_file_attributes", 0) & _HIDDEN_ATTRIBUTE)
        if stat.S_ISDIR(status.st_mode):
            return Name("folder", 0, status.st_mtime, hidden, self._rules.folder_ignored(path))
        kind = "link" if stat.S_ISLNK(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else "other"
        size = status.st_size if kind == "file" else 0
        return Name(kind, size, status.st_mtime, hidden, self._rules.ignored(path))  # type: ignore[arg-type]

    def _note_file(self, path: str, name: Name) -> None:
        if not self._whole or name.hidden or skip_reason(path) is not None:
            return
        if self._git_rules.ignored(path):
            self._left_out += 1
        elif len(self._files) < FILES_LIMIT:
            self._files.append((name.size, path))

    def _count(self, folder: str) -> tuple[int, str | None]:
        """Count the names below a folder, as far as they can be read and are not too many, and say how they end.

        :returns: the count, and the endings, "/" between; None unless all are known.
        """
        found, pending, every = 0, [folder], True
        endings: set[str] = set()
        while pending and found < COUNT_LIMIT:
            if self._late():
                raise _Late
            above = pending.pop()
            try:
                entries = self._tree.scan(above, COUNT_LIMIT)
            except OSError:
                every = False
                continue
            found += len(entries)
            pending += [f"{above}/{title}" for title, status in entries if status and stat.S_ISDIR(status.st_mode)]
            endings |= {name_ending(title) for title, _ in entries}
        if not every or found >= COUNT_LIMIT:
            return min(found, COUNT_LIMIT), None
        return found, "/".join(sorted({one if len(one) <= ENDING_LENGTH else "..." for one in endings}))


_TOO_MANY = f"too many names: the workspace has more than {NAMES_LIMIT:,} files and folders, so none are kept"
