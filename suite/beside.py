"""Which files lie in a folder today beside those that a recording of the whole folder knew.

Names only: nothing is opened but ignore files, and no link is followed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Container, Iterator

from ..hooks import in_git
from ..snapshot import Folder, IgnoreRules, Workspace

__all__ = ["NAMES_LOOKED_AT", "new_files", "recorded_names"]

#: Names that are looked at; beyond, it is not known what is new.
NAMES_LOOKED_AT = 20_000
#: A name that no ignore rule speaks of: a folder is ignored if such a file in it is.
_ANY_FILE = "a file of any name"


def recorded_names(snapshot: Any) -> tuple[set[str], set[str]] | None:
    """All names that the recording of a whole folder knew, and its folders of which it did not list the names.

    :param snapshot: a `Snapshot`; one without `whole` knew only what its turn named.
    :returns: None if it did not know all of them.
    """
    if not getattr(snapshot, "whole", False):
        return None
    names = getattr(snapshot, "names", None)
    if names is not None:
        return set(names), {path for path, name in names.items() if name.inside is not None}
    if sum(snapshot.skipped.values()) != len(snapshot.skipped_paths):
        return None
    return {*snapshot.files, *snapshot.skipped_paths, *snapshot.links}, set()


def new_files(known: Container[str], closed: Container[str], workspace: Workspace) -> tuple[list[str], bool]:
    """The files, links among them, that are neither known nor hidden nor ignored, in order; and whether these are all.

    :param known: names and
    :param closed: folders that are not looked into, both as `Workspace.fold` writes them.
    """
    folder = Folder(workspace.root, workspace.fold_case)
    try:
        rules = IgnoreRules(folder.text, folder.has_git, in_git(Path(folder.root).parent))
        found: list[str] = []
        for number, path in enumerate(_walk(folder.root, rules, workspace, closed)):
            if number >= NAMES_LOOKED_AT:
                return sorted(found), False
            if workspace.fold(path) not in known and not rules.ignored(path):
                found.append(path)
        return sorted(found), True
    finally:
        folder.close()


def _walk(root: str, rules: IgnoreRules, workspace: Workspace, closed: Container[str]) -> Iterator[str]:
    """The names of files; hidden and ignored folders, and those that are links, are passed over."""
    waiting = [""]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(os.path.join(root, here)) as entries:
                listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:  # gone meanwhile, or not to be listed
            continue
        for name, is_folder in listed:
            path = f"{here}/{name}" if here else name
            if name.startswith("."):
                continue
            if not is_folder:
                yield path
            elif workspace.fold(path) not in closed and not rules.ignored(f"{path}/{_ANY_FILE}"):
                waiting.append(path)
