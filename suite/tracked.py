"""Which files git tracks: its index, read as git's own documents describe it (gitformat-index).

No program is started and nothing is locked.  What is not certain is not known:
an index that lies elsewhere, is split or sparse, or in the middle of a merge.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import struct
from typing import Mapping

from ..cassette_store import Name
from ..snapshot import Tree

__all__ = ["list_untracked", "read_index"]

#: Bytes of an index that is read.
_INDEX_LIMIT = 16 * 1024 * 1024
_CONFIG_LIMIT = 128 * 1024
#: Variables of git's that do not change what it lists, nor add to what it prints.
_HARMLESS = re.compile(
    r"GIT_(?:(?:SEQUENCE_)?EDITOR|PAGER|ASKPASS|TERMINAL_PROMPT|OPTIONAL_LOCKS|MERGE_AUTOEDIT"
    r"|(?:AUTHOR|COMMITTER|SSH|SSL|HTTP|PROXY|LFS|PS1)(?:_\w+)?)\Z"
)
#: What in a repository's own configuration may lead git to other files, or to another kind of index.
_ELSEWHERE = re.compile(r"(?i)worktree|objectformat|bare\s*=\s*true|\[\s*include")


def list_untracked(tree: Tree, names: Mapping[str, Name]) -> tuple[str, ...] | None:
    """Return those files and links among the names of a workspace that git does not track.

    :returns: None if that is not certain, or git tracks something that is not among them.
    """
    if os.name == "nt" or not shutil.which("git") or not _is_ours(tree):
        return None
    if any(name.startswith("GIT_") and not _HARMLESS.match(name) for name in os.environ):
        return None
    config, index = tree.content(".git/config", _CONFIG_LIMIT), tree.content(".git/index", _INDEX_LIMIT)
    if config is None or index is None or _ELSEWHERE.search(config.decode("utf-8", "replace")):
        return None
    tracked = read_index(index)
    if tracked is None or not all(path in names and names[path].kind in ("file", "link") for path in tracked):
        return None
    return tuple(sorted(path for path, one in names.items() if one.kind in ("file", "link") and path not in tracked))


def _is_ours(tree: Tree) -> bool:
    """Whether a repository belongs to who we are; of another's, git says that its ownership is dubious."""
    try:
        return {os.lstat(path).st_uid for path in (tree.root, os.path.join(tree.root, ".git"))} == {os.geteuid()}
    except OSError:
        return False


def read_index(data: bytes) -> set[str] | None:
    """Return the paths of all entries of an index; None for one whose entries are not plain files, or that is broken."""
    try:
        return _read_index(data)
    except (struct.error, ValueError, IndexError):  # it ends too early, or holds what it must not
        return None


def _read_index(data: bytes) -> set[str] | None:
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4) or not _is_whole(data):
        return None
    found: set[str] = set()
    place, path = 12, b""
    for _ in range(count):
        mode, flags = struct.unpack_from(">24xI32xH", data, place)
        start = place + (64 if flags & _EXTENDED else 62)
        if flags & _STAGES or mode >> 12 not in _FILE_MODES:
            return None
        kept = 0  # of the path before
        if version == 4:
            cut, start = _number(data, start)
            kept = len(path) - cut
            if kept < 0:
                return None
        end = data.index(b"\0", start)
        path = path[:kept] + data[start:end]
        found.add(path.decode("utf-8"))
        place = end + 1 if version == 4 else place + (end - place + 8) // 8 * 8
    return found if len(found) == count and _is_plain(data, place) else None


#: Flags of an entry: that more flags follow, and which side of a merge it is; the kinds of mode that are files or links.
_EXTENDED, _STAGES, _FILE_MODES = 0x4000, 0x3000, (0o10, 0o12)
#: Bytes of the sum at the end of an index.
_SUM = 20


def _is_whole(data: bytes) -> bool:
    """Whether the sum at the end is that of all before it, or was left out (`index.skipHash`)."""
    kept = data[-_SUM:]
    return kept == bytes(_SUM) or hashlib.sha1(data[:-_SUM], usedforsecurity=False).digest() == kept


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A number as git's packs have their offsets, and where it ends."""
    byte = data[place]
    value = byte & 0x7F
    while byte & 0x80:
        place += 1
        byte = data[place]
        value = (value + 1) << 7 | byte & 0x7F
    return value, place + 1


def _is_plain(data: bytes, place: int) -> bool:
    """Whether nothing after the entries changes what they mean: the names of such parts begin with a small letter."""
    while place < len(data) - _SUM:
        name, size = struct.unpack_from(">4sI", data, place)
        if not name[:1].isupper():
            return False
        place += 8 + size
    return place == len(data) - _SUM
