"""What has become of a recording's files: its snapshot against the same folder today.

Files are read by the rules of a snapshot: nothing is written, no program is
started, and no link is followed out of the folder.  What is compared is what a
snapshot may hold, so the text after Hermes's redaction.  Where a recording hides
something and another Hermes would hide it in another way, the noted masks tell
what can be compared; what cannot be told is "unknown", never "same".
"""

from __future__ import annotations

import os
import re
import stat
import time
from itertools import accumulate, zip_longest
from typing import Callable, Container, Iterable, Iterator, Literal, Mapping, NamedTuple, Sequence

from ..cassette_store import Cassette, Snapshot, SnapshotFile
from ..snapshot import SNAPSHOT_FILE_LIMIT, Folder, Redactor, Skip, SkipReason, Workspace, decoded, redacted
from .beside import NAMES_LOOKED_AT, new_files, recorded_names
from .masks import MASK_SHAPES, line_number, masked_values, without_keys

__all__ = ["Change", "Drift", "FileNow", "Redaction", "compare_files", "count_changed", "read_again"]

#: What a file is that is not as it was recorded; "unknown": it could not be compared.
Kind = Literal["changed", "gone", "new", "unknown"]
#: Hermes's redaction, asked for when it is needed; None where there is none.
Redaction = Callable[[], "Redactor | None"]


class FileNow(NamedTuple):
    """A file of the workspace as it is today, by the rules of a snapshot.

    `reason` is the `SkipReason` for which it could not be kept now, "" if it
    could; then `text` is what is in it, before redaction.
    """

    name: str  #: as it was asked for
    path: str  #: without links, in the case the disk shows
    reason: str = ""
    text: str = ""
    size: int = 0  #: bytes on disk
    mtime: float = 0.0


class Change(NamedTuple):
    """One file that is not as it was recorded.

    `line` is the first line that differs, counted from 1 in today's file, 0
    where there is none to show; `was` and `now` are that line, redacted, None
    where the file ends before it.
    """

    path: str
    kind: Kind
    why: str = ""
    line: int = 0
    was: str | None = None
    now: str | None = None


class Drift(NamedTuple):
    """All that is not as a snapshot has it, of `files` that were compared.

    `texts` has today's text, redacted, of each changed file for which there is one.
    """

    files: int
    changes: tuple[Change, ...]
    texts: Mapping[str, str]


# --- the files of today ----------------------------------------------------------


def read_again(names: Iterable[str], workspace: Workspace) -> Iterator[FileNow]:
    """Read files as a snapshot reads them, but for its limit on all of them together.  Never raises."""
    folder = Folder(workspace.root, workspace.fold_case)
    try:
        for name in names:
            yield _file_now(folder, workspace, name)
    finally:
        folder.close()


def _file_now(folder: Folder, workspace: Workspace, name: str) -> FileNow:
    path = name
    try:
        inside = workspace.relative(name)
        if not inside:
            return FileNow(name, name, SkipReason.OUTSIDE)
        path = folder.spelled(inside)
        path, data, status = folder.read(path, SNAPSHOT_FILE_LIMIT)
        return FileNow(name, path, "", decoded(data), status.st_size, status.st_mtime)
    except Skip as skip:
        return FileNow(name, skip.path or path, skip.reason)
    except Exception:  # a name out of a cassette that somebody edited must not end the others' reading
        return FileNow(name, path, SkipReason.UNREADABLE)


def _redacted(file: FileNow, redaction: Redaction) -> tuple[str, str]:
    """Redact a file of today as a snapshot does; return the text, or "" and the `SkipReason` why not."""
    redact = redaction()
    if redact is None:
        return "", SkipReason.NO_REDACTION
    try:
        return redacted(redact, file.text, file.name, file.path), ""
    except Skip as skip:
        return "", skip.reason


# --- one file --------------------------------------------------------------------


#: What a file of a snapshot can be today instead of a text that may be kept.
_BECAME = {
    SkipReason.TOO_LARGE: "too large for a snapshot now",
    SkipReason.BINARY: "binary now",
    SkipReason.NOT_UTF8: "not UTF-8 now",
    SkipReason.NOT_REGULAR: "not a regular file now",
    SkipReason.LINK_OUT: "a link out of the folder now",
    SkipReason.HIDDEN: "hidden now, or a link to what is",
    SkipReason.SECRET_NAME: "a link to a file with a secret name now",
}


def _hides(kept: SnapshotFile) -> bool:
    """Whether the recording may have hidden something in a text."""
    if kept.masks is None:  # an older recording, which noted none
        return re.search(MASK_SHAPES, kept.text) is not None
    return any(end > start for start, end, _ in kept.masks)


def _compare(
    kept: SnapshotFile, now: FileNow, redaction: Redaction, alike: bool
) -> tuple[Kind | Literal["same"], str, str]:
    """Hold a recorded file against today's.

    :param alike: whether this is the Hermes that recorded.
    :returns: "same", "changed", "gone" or "unknown"; why; and today's text,
        redacted, where that had to be made.
    """
    if now.reason:
        if now.reason == SkipReason.NOT_FOUND:
            return "gone", "", ""
        became = _BECAME.get(now.reason)
        return ("changed", became, "") if became else ("unknown", now.reason, "")
    if now.text == kept.text and now.size == kept.size:
        return "same", "", ""
    if not _hides(kept):
        return "changed", "", ""
    fit = _fits(kept, now.text)
    untouched = (now.size, now.mtime) == (kept.size, kept.mtime)
    if fit is not False and (untouched or fit and now.size == kept.size):
        return "same", "", ""
    text, reason = _redacted(now, redaction)
    if not reason and text == kept.text:
        return "same", "", ""
    if fit is False or not reason and alike:
        return "changed", "", text
    if reason:
        return "unknown", reason, ""
    return ("same" if fit else "unknown"), "this Hermes masks it otherwise", ""


def _fits(kept: SnapshotFile, text: str) -> bool | None:
    """Whether a text is the recorded one, whatever stands at its masks; None where the masks do not say."""
    if kept.masks is None or any(kind.startswith("file") for _, _, kind in kept.masks):
        return None
    before, after = kept.text.split("\n"), without_keys(text)[0].split("\n")
    if len(before) != len(after):
        return False
    starts = list(accumulate((len(line) + 1 for line in before), initial=0))
    masks = iter(kept.masks)
    mask, sure = next(masks, None), True
    for start, old, new in zip(starts, before, after):
        while mask is not None and mask[0] < start:
            mask = next(masks, None)
        if old == new:
            continue
        if mask is None or mask[1] > start + len(old):
            return False
        found = _line_fits(old, new, mask[0] - start, mask[1] - start, mask[2])
        if found is False:
            return False
        sure = sure and found is True
    return True if sure else None


def _line_fits(old: str, new: str, start: int, end: int, kind: str) -> bool | None:
    """Whether a line is the recorded one but for what its masks hide; None where that is not certain."""
    if kind.startswith("lines"):  # a private key, which is masked in both
        return False
    label, letters, least = masked_values(kind)
    head, tail = old[:start], old[end:]
    hidden = new[len(head) : len(new) - len(tail)]
    rest = hidden[len(label) :]
    if not new.startswith(head) or not new.endswith(tail) or len(head) + len(tail) > len(new):
        return False
    if not hidden.startswith(label) or len(rest) < least or not set(rest) <= set(letters):
        return False
    return True if head or tail or _pieces_fit(re.split(MASK_SHAPES, old), new) else None


def _pieces_fit(pieces: Sequence[str], text: str) -> bool:
    """Whether a text has these pieces in order, from its beginning to its end, and there is something in them."""
    at, end = len(pieces[0]), len(text) - len(pieces[-1])
    if not any(pieces) or not text.startswith(pieces[0]) or not text.endswith(pieces[-1]):
        return False
    for piece in pieces[1:-1]:
        at = text.find(piece, at) + len(piece)
        if at < len(piece):
            return False
    return at <= end


# --- where two texts part ------------------------------------------------------------


def _changed(
    path: str, kept: SnapshotFile, now: FileNow, why: str, redaction: Redaction, text: str
) -> tuple[Change, str]:
    """Describe a changed file, with today's text, redacted, or "" where that cannot be shown."""
    if now.reason:
        return Change(path, "changed", why), ""
    reason = ""
    if not text:
        text, reason = _redacted(now, redaction)
    was, _ = _redacted(FileNow(path, path, text=kept.text), redaction)
    old, new = kept.text.split("\n"), (without_keys(now.text)[0] if reason else text).split("\n")
    index = next((at for at, pair in enumerate(zip_longest(old, new)) if pair[0] != pair[1]), 0)
    line = line_number(now.text, index)
    if reason:
        return Change(path, "changed", f"its text cannot be shown: {reason}", line), ""
    shown = was.split("\n")
    before = _line_at(shown, index) if len(shown) == len(old) else ""
    return Change(path, "changed", _alike(kept.text, text), line, before, _line_at(new, index)), text


def _line_at(lines: Sequence[str], index: int) -> str | None:
    """A line, or None at the end of a text: what stands behind its last newline is no line."""
    last = index == len(lines) - 1 and not lines[index]
    return None if index >= len(lines) or last else lines[index]


def _alike(old: str, new: str) -> str:
    """Say how little two texts differ, "" if it is more than that."""
    if old.replace("\r\n", "\n") == new.replace("\r\n", "\n"):
        return "its line ends differ"
    if old.removeprefix("\ufeff") == new.removeprefix("\ufeff"):
        return "its byte order mark differs"
    return "its last line end differs" if old.rstrip("\r\n") == new.rstrip("\r\n") else ""


# --- the whole snapshot -------------------------------------------------------------


def compare_files(cassette: Cassette, workspace: Workspace, redaction: Redaction, version: str) -> Drift:
    """Compare each file of a cassette's snapshot with today's.

    :param workspace: the folder to look at.
    :param version: of the Hermes whose redaction is given.
    """
    snapshot = cassette.snapshot
    alike = bool(version) and version == cassette.recorder.hermes
    changes: list[Change] = []
    texts: dict[str, str] = {}
    for now in read_again(snapshot.files, workspace):
        path, kept = now.name, snapshot.files[now.name]
        if not now.reason and workspace.fold(now.path) != workspace.fold(path):
            changes.append(Change(path, "changed", f"a link to {now.path} now"))
            texts[path] = _redacted(now, redaction)[0]
            continue
        found, why, text = _compare(kept, now, redaction, alike)
        if found == "changed":
            change, texts[path] = _changed(path, kept, now, why, redaction, text)
            changes.append(change)
        elif found != "same":
            changes.append(Change(path, found, why))
    changes += _links_now(snapshot, workspace)
    changes += _skipped_now(snapshot, workspace)
    changes += _beside(snapshot, workspace, {change.path for change in changes})
    shown = {path: text for path, text in texts.items() if text}
    return Drift(len(snapshot.files), tuple(sorted(changes)), shown)


def _links_now(snapshot: Snapshot, workspace: Workspace) -> Iterator[Change]:
    """Tell the recorded links that lead elsewhere now, or are none; a link is asked, never opened."""
    root = os.path.realpath(workspace.root)
    for name, target in snapshot.links.items():
        if not workspace.relative(name):
            continue
        full = os.path.join(root, *name.split("/"))
        real = os.path.realpath(full)
        if not os.path.lexists(full):
            yield Change(name, "gone", "it was a link")
        elif workspace.fold(real) != workspace.fold(os.path.join(root, *target.split("/"))):
            yield Change(name, "changed", f"no link to {target} any more")


def _beside(snapshot: Snapshot, workspace: Workspace, told: Container[str]) -> Iterator[Change]:
    """Tell the new files beside those of a recording of the whole folder."""
    recorded = recorded_names(snapshot)
    if recorded is None:
        return
    known, closed = ({workspace.fold(path) for path in paths} for paths in recorded)
    found, whole = new_files(known, closed, workspace)
    yield from (Change(path, "new") for path in found if path not in told)
    if not whole:
        yield Change(".", "unknown", f"more than {NAMES_LOOKED_AT:,} names: not all were looked at")


#: Why a recording kept nothing of a file although it had looked into it.
_LOOKED_AT = frozenset({SkipReason.BINARY, SkipReason.NOT_UTF8, SkipReason.TOO_LARGE, SkipReason.NOT_REGULAR})


def _skipped_now(snapshot: Snapshot, workspace: Workspace) -> Iterator[Change]:
    """Tell the names that the turn used and that are there now, or of another kind."""
    known = _LOOKED_AT | {SkipReason.NOT_FOUND}
    skipped = {path: why for path, why in snapshot.skipped_paths.items() if why in known}
    for now in read_again(skipped, workspace):
        was = skipped[now.name]
        if was == now.reason or now.reason in (SkipReason.UNREADABLE, SkipReason.CHANGED, SkipReason.OUTSIDE):
            continue
        if was == SkipReason.NOT_FOUND:
            yield Change(now.name, "new", "it was not there")
        elif now.reason == SkipReason.NOT_FOUND:
            yield Change(now.name, "gone", f"it was {_WAS[was]}")
        else:
            yield Change(now.name, "changed", f"it was {_WAS[was]}")


_WAS = {
    SkipReason.BINARY: "binary",
    SkipReason.NOT_UTF8: "not UTF-8",
    SkipReason.TOO_LARGE: "too large for a snapshot",
    SkipReason.NOT_REGULAR: "not a regular file",
}


# --- a look in passing ----------------------------------------------------------------

#: Seconds that `count_changed` may take, whatever it meets.
GLANCE_SECONDS = 0.25


def count_changed(
    cassette: Cassette,
    workspace: Workspace,
    redaction: Redaction,
    version: str,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[int, bool]:
    """Count the snapshot's files that are not as recorded, by size and time first; those alone are read that differ there.

    :returns: how many at least, and whether all were looked at within `GLANCE_SECONDS`.
    """
    deadline = clock() + GLANCE_SECONDS
    alike = bool(version) and version == cassette.recorder.hermes
    count, suspects = 0, []
    for path, kept in cassette.snapshot.files.items():
        if clock() > deadline:
            return count, False
        found = _glance(workspace.root, path, kept)
        count += found is True
        suspects += [path] * (found is None)
    for now in read_again(suspects, workspace):
        if clock() > deadline:
            return count, False
        count += _compare(cassette.snapshot.files[now.name], now, redaction, alike)[0] in ("changed", "gone")
    return count, True


def _glance(root: str, path: str, kept: SnapshotFile) -> bool | None:
    """Whether a file has changed, as far as its size and its time tell; None where they do not."""
    if ".." in path or ":" in path or path[:1] in ("/", "\\"):
        return None  # no name that a recording gives
    try:
        status = os.lstat(f"{root}/{path}")
    except (OSError, ValueError) as error:
        return True if isinstance(error, (FileNotFoundError, NotADirectoryError)) else None
    if not stat.S_ISREG(status.st_mode):
        return True
    if (status.st_size, status.st_mtime) == (kept.size, kept.mtime):
        return False
    return True if status.st_size != kept.size and not _hides(kept) else None
