"""What a cassette is, what it demands of an answer, and how it reaches the disk.

Standard library only: nothing here imports Hermes, so the same code serves the
host, the command line and the unit tests.  Nothing here decides which tool
results are kept (`snapshot`) or how a call is answered (`middleware`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

#: Results over this many bytes of UTF-8 are not kept.
RESULT_LIMIT = 2 * 1024 * 1024
#: Results of one turn beyond this many bytes together are not kept.
TURN_LIMIT = 12 * 1024 * 1024


class CassetteError(Exception):
    """Something a person can act on; its text is one line for stderr."""


@dataclass(frozen=True)
class Call:
    """One tool call and what came back.

    `args` is the argument object as the model sent it; `result` is what the
    tool returned: a string in practice, any JSON value in principle.
    """

    tool: str
    args: Mapping[str, Any]
    result: Any


@dataclass(frozen=True)
class Host:
    """The Hermes that recorded, as far as its answers depend on it."""

    hermes: str = ""          #: version, e.g. "0.19.0"; "" when unknown
    platform: str = ""        #: `sys.platform` there: "linux", "darwin", "win32"
    search: str = ""          #: "rg" or "grep": what `search_files` ran; "" unknown
    git: bool = False         #: the workspace lies in a git work tree
    fold_case: bool = False   #: the workspace's file system ignores case


@dataclass(frozen=True)
class SnapshotFile:
    """One workspace file as the recording left it.

    `text` is the decoded, redacted text, every newline, CR and BOM kept;
    `size` is the file's size on disk in bytes (before redaction), `mtime` its
    modification time in seconds; `ignored` says that git's or ripgrep's ignore
    rules hid it from a plain search.
    """

    text: str
    size: int
    mtime: float = 0.0
    ignored: bool = False


@dataclass(frozen=True)
class Snapshot:
    """The workspace files a recording keeps, by path relative to its root.

    Paths use `/` on every platform and the case the disk shows.  `skipped`
    counts what was left out, by reason; `skipped_paths` names those whose
    absence a replay must be able to explain (path to reason).
    """

    files: Mapping[str, SnapshotFile] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    skipped_paths: Mapping[str, str] = field(default_factory=dict)
