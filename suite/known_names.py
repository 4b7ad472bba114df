"""Answers from the names in a workspace alone, as the live tools would have.

A recording keeps the names of all files and folders beside the texts of some.
They tell what is not there, what is a folder, and which files a search could
find something in.
"""

from __future__ import annotations

import difflib
import os.path
import posixpath
import re
import unicodedata
from typing import Any, Callable, Iterable, Sequence

from ..cassette_store import Name, Snapshot, SnapshotFile
from ..snapshot import SkipReason, skip_reason
from ..synth_search import BINARY_ENDINGS, Miss, Source

__all__ = ["ENDING_LENGTH", "KnownNames", "locale_orders", "may_hold", "name_ending"]

#: Longer endings of names that are not listed are noted as "...".
ENDING_LENGTH = 8

#: Names that `ls -1 | head` leaves for `similar_files`, and for the paths like one that is not there.
_SIMILAR_FILES, _SIMILAR_PATHS = 50, 20
#: How many of them are told.
_TOLD = 5
#: Names that the live tool refuses to read, whether they are there or not.
_DENIED = r"(?i)\.env(?:\.(?:local|development|production|test|staging))?|\.envrc"
#: What the live tool takes for one character, as people cannot tell them apart.
_CONFUSABLE = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u2019": "'", "\u2018": "'"})
#: Endings of files that hold a NUL in their first bytes.
_NUL_EARLY = frozenset(
    ".png .jpg .jpeg .ico .webp .zip .whl .jar .gz .tgz .so .pyc .class .wasm .woff .woff2 .ttf .otf .exe .dll"
    " .sqlite .sqlite3 .mp4 .xlsx .docx .pptx".split()
)
#: Bytes among which ripgrep and grep look for a NUL before they search a file.
_FIRST_BYTES = 32_768


class KnownNames:
    """What the names of a workspace tell.

    Of the source it makes one that also holds the files that are empty.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._names = source.snapshot.names or {}
        source.snapshot = _with_empty_files(source.snapshot)
        self._inside: dict[str, list[str]] = {"": []}
        for path in self._names:
            folder, _, name = path.rpartition("/")
            self._inside.setdefault(folder, []).append(name)

    def kind(self, key: str) -> str:
        """Return "file", "folder", or "" for what is not there.

        :raises Miss: if the names do not tell: behind a link, or in a folder of which they are not known.
        """
        if self._source.recorder.platform not in ("linux", "darwin"):
            raise Miss(f"what is said of {key} is not known for this platform")
        name = key.rpartition("/")[2]
        if re.fullmatch(_DENIED, name):
            raise Miss(f"{key}: the live tool refuses such names")
        if not key:
            return "folder"
        parts = key.split("/")
        for end in range(1, len(parts) + 1):
            one = self._names.get("/".join(parts[:end]))
            if one is None:
                if self._source.snapshot.skipped_paths.get(key, SkipReason.NOT_FOUND) != SkipReason.NOT_FOUND:
                    raise Miss(self._source.absence(key, key))  # it was there, and went during the turn
                self._demand_plain(parts[end - 1], "/".join(parts[: end - 1]))
                return ""
            if one.kind not in ("file", "folder") or one.inside is not None:
                raise Miss(self._source.absence(key, key))
            if one.kind == "file" and end < len(parts):
                return ""
        return self._names[key].kind

    def _demand_plain(self, name: str, folder: str) -> None:
        """:raises Miss: if a file system may take another name in the folder for this one."""
        if not (name.isprintable() and len(name.encode("utf-8", "surrogatepass")) < 256):
            raise Miss(f"{name!r} is no name that every system takes alike")
        if name.isascii() and not self._source.recorder.fold_case:
            return
        alike = unicodedata.normalize("NFC", name).casefold()
        if any(unicodedata.normalize("NFC", one).casefold() == alike for one in self._inside.get(folder, ())):
            raise Miss(f"{name}: a name that differs in how it is written is there")

    # What is said.

    def read(self, typed: str, key: str) -> dict[str, Any]:
        """Return what a reading says of a path without a text.

        :raises Miss: if there is a file, or if that is not certain.
        """
        kind, family = self.kind(key), self._source.family
        if kind == "file" and not (typed.endswith("/") and family.name != "0.22"):
            raise Miss(self._source.absence(typed, key))
        path = self._expanded(typed)
        if family.name == "0.22":
            path = self._absolute(key)
        if kind == "folder" and family.name != "0.19":
            kinds = "directory, FIFO, " if family.name == "0.20" else "directory, dangling symlink, FIFO, "
            error = f"Cannot read '{path}': not a regular file ({kinds}socket, or device)."
            return self._unread(f"{error} Reading it could block indefinitely.", False, [])
        return self._unread(f"File not found: {path}", True, self._similar_files(path))

    def _unread(self, error: str, gone: bool, similar: list[str]) -> dict[str, Any]:
        out: dict[str, Any] = {"content": "", "total_lines": 0, "file_size": 0, "truncated": False}
        out.update(is_binary=False, is_image=False)
        out["error"] = error
        if self._source.family.tells_not_found:
            out["not_found"] = gone
        if similar:
            out["similar_files"] = similar
        return out

    def not_found(self, typed: str, key: str) -> str:
        """Return the error of a search at a path that is not there.

        :raises Miss: if something is there, or if it is not certain which paths are like it.
        """
        path = self._expanded(typed)
        if self.kind(key) and not (self.kind(key) == "file" and typed.endswith("/")):
            raise Miss(self._source.absence(typed, key))
        folder, name = posixpath.split(path)
        error = f"Path not found: {path}"
        if not name or self.kind(self._source.key(folder or ".")) != "folder":
            return error
        lower = name.lower()

        def like(listed: Sequence[str]) -> list[str]:
            known = [(one, one.lower()) for one in listed[:_SIMILAR_PATHS]]
            return [one for one, low in known if lower in low or low in lower or low.startswith(lower[:3])][:_TOLD]

        similar = self._told_alike(folder, like)
        return f"{error}. Similar paths: {', '.join(similar)}" if similar else error

    def _similar_files(self, path: str) -> list[str]:
        folder, name = posixpath.split(path)
        near = self._source.family.name != "0.19"
        if near and any(_canonical(one) == _canonical(name) for one in self._listed(folder)):
            raise Miss(f"{path}: the live tool may take another name for it")

        def like(listed: Sequence[str]) -> list[str]:
            scored = [(_likeness(name.lower(), one, near), one) for one in listed[:_SIMILAR_FILES]]
            found = sorted(((score, one) for score, one in scored if score), key=lambda pair: -pair[0])
            return [one for _, one in found[:_TOLD]]

        return self._told_alike(folder, like)

    def _told_alike(self, folder: str, choose: Callable[[Sequence[str]], list[str]]) -> list[str]:
        """Return what is chosen of a folder's names in the order of `ls`.

        :raises Miss: if that depends on the locale.
        """
        names = self._listed(folder)
        chosen = [choose(order) for order in locale_orders(names, self._source.recorder.locale)]
        if any(one != chosen[0] for one in chosen):
            raise Miss("which names are like it depends on the locale")
        if len(chosen) > 1 and (len(chosen[0]) > 1 or len(names) > _SIMILAR_PATHS) and not "".join(names).isascii():
            raise Miss("how these names are sorted depends on the locale")
        return [posixpath.join(folder or ".", name) for name in chosen[0]]

    def _listed(self, folder: str) -> list[str]:
        """Return the names that `ls -1` prints of a folder; of a file its path, of nothing none."""
        key = self._source.key(folder or ".")
        if self.kind(key) == "file":
            return [folder]
        reasons = self._source.snapshot.skipped_paths.items()
        if any(why == SkipReason.CHANGED_IN_TURN and path.rpartition("/")[0] == key for path, why in reasons):
            raise Miss(f"{folder or '.'}: something in it was changed during the turn")
        names = [name for name in self._inside.get(key, ()) if not name.startswith(".")]
        if any(not name.isprintable() or name != name.strip() for name in names):
            raise Miss(f"{folder}: names that not every shell prints alike")
        return names

    def _expanded(self, path: str) -> str:
        return self._source.workspace.home + path[1:] if path.startswith("~") else path

    def _absolute(self, key: str) -> str:
        workspace = self._source.workspace
        if workspace.aliases:
            raise Miss("the live tool may call the folder in another way")
        return f"{workspace.root.rstrip('/')}/{key}" if key else workspace.root

    # What a search may find.

    def unread(self, root: Any, documents: Sequence[Any], room: int) -> list[str]:
        """Return those of the files without a text in which a search may find something.

        :param room: how many more rows of files would be told, 0 where none are.
        :raises Miss: if nothing below the root is known.
        """
        without = [one for one in documents if not one.known]
        certain = self._source.rg or len(without) < room  # of each grep may tell in a row that is not shown

        def is_skipped(one: Any) -> bool:
            return not one.unlisted and (not one.file.size or certain and self._is_binary(one.path))

        found = [one.path for one in without if root.is_file or not is_skipped(one)]
        if found and (root.is_file or not any(one.known and one.text for one in self._source.index.below(root))):
            raise Miss(self._source.absence(root.typed, root.rel))
        return found

    def ripgrep_leaves(self, path: str) -> bool:
        """Say whether ripgrep finds nothing in a file that it meets below a folder, as a NUL stands early in it."""
        return self._is_binary(path)

    def _is_binary(self, path: str) -> bool:
        """Say whether a NUL stands so early in a file that no row of it is shown: grep tells of it in another form."""
        name, ending = self._names.get(path, Name("folder")), os.path.splitext(path)[1].lower()
        binary = self._source.snapshot.skipped_paths.get(path) == SkipReason.BINARY
        return ending in _NUL_EARLY or binary and (name.size <= _FIRST_BYTES or ending in BINARY_ENDINGS)


def may_hold(folder: Name, glob: str) -> bool:
    """Say whether a name that fits may be below a folder of which only the endings of names are known."""
    if folder.inside is None or folder.endings is None:
        return True
    tail = re.split(r"[*?\[\]{}\\]", glob)[-1]
    ending = name_ending(tail)
    known = folder.endings.split("/") if folder.inside else []
    if not ending and tail != glob:  # "*e" may be that of "*.e"
        return bool(known)
    return ending in known or "..." in known and len(ending) > ENDING_LENGTH


def name_ending(name: str) -> str:
    """Return what a name ends in, from its last dot on, "" without one."""
    return "." + name.rpartition(".")[2] if "." in name else ""


def _with_empty_files(snapshot: Snapshot) -> Snapshot:
    """Add the files of which the text is known though it was not kept, as there is none."""

    def is_known(path: str, name: Name) -> bool:
        return name.kind == "file" and not name.size and skip_reason(path) is None

    names = (snapshot.names or {}).items()
    empty = {
        path: SnapshotFile("", 0, name.mtime, name.ignored, ())
        for path, name in names
        if is_known(path, name) and path not in snapshot.skipped_paths
    }
    return snapshot._replace(files={**empty, **snapshot.files})


def _likeness(lower: str, name: str, near: bool) -> int:
    """Score a name as the live tool does, 0 for one that is not like it."""
    one = name.lower()
    base, ending = posixpath.splitext(lower)
    other, its_ending = posixpath.splitext(one)
    if one == lower:
        return 100
    if base == other:
        return 90
    if one.startswith(lower) or lower.startswith(one):
        return 70
    if lower in one:
        return 60
    if one in lower and len(one) > 2:
        return 40
    if ending and ending == its_ending and len({*lower} & {*one}) >= max(len(lower), len(one)) * 0.4:
        return 30
    return 50 if near and difflib.SequenceMatcher(None, lower, one).ratio() >= 0.8 else 0


def _canonical(name: str) -> str:
    return unicodedata.normalize("NFC", name).translate(_CONFUSABLE)


def locale_orders(names: Iterable[str], locale: str) -> list[list[str]]:
    """Sort names in each way in which `ls` may.

    :param locale: by which it sorts, "" where that is not known.
    """
    plain = sorted(names)
    if re.fullmatch(r"(?i)(?:C|POSIX)(?:\.UTF-?8)?", locale):
        return [plain]

    def by_letters(name: str, signs: int) -> tuple[list[tuple[bool, bool, int]], str]:
        chars = [(char.isalnum(), char.isalpha(), ord(char)) for char in name.lower()]
        return [(known, letter, code if known else signs * code) for known, letter, code in chars], name.swapcase()

    return [plain, *(sorted(plain, key=lambda name: by_letters(name, signs)) for signs in (1, -1))]
