"""Answers a search or a read from the snapshot, as the live tool would have.

It never touches a disk, never starts a process and never asks Hermes: the
files are those of the snapshot, the rules are those of the Hermes that made
the recording.  What the snapshot cannot know ends in `Miss`; nothing is
guessed to please a model.
"""

from __future__ import annotations

import fnmatch
import json
import re
import threading
from functools import lru_cache
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from .cassette_store import Call, Recorder, Snapshot, SnapshotFile, hermes_release
from .patterns import Matcher, PatternError, Search, TooSlow, Untranslatable, compile_pattern
from .snapshot import GlobRule, Links, Names, ReadMasks, SkipReason, Workspace

__all__ = [
    "BINARY_ENDINGS",
    "DEADLINE",
    "MOST_WAYS_BACK",
    "FAMILIES",
    "Miss",
    "READ_BUDGET",
    "Source",
    "Synthesizer",
    "Told",
    "coerce_args",
    "learn_shapes",
    "read_page",
]

# --- errors ---------------------------------------------------------------


class Miss(Exception):
    """The snapshot cannot answer this call.

    `reason` is for the person who reads the verdict; a model never sees it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


# --- what differs between versions of Hermes --------------------------------

#: Characters of one line that `read_file` shows.
LINE_LIMIT = 2000
#: Lines that one `read_file` call may ask for.
PAGE_LIMIT = 2000
#: Characters of one `read_file` answer.
READ_BUDGET = 100_000
#: Files over this many bytes earn a remark when a wide read is cut.
LARGE_FILE = 512_000
#: Characters of one search hit.
CLIP = 500
#: From this many hits on, the answer is grouped by path.
GROUP_FROM = 5
#: Raw rows fetched beyond the page when context lines are asked for.
CONTEXT_EXTRA = 200
#: Rows of a probe that runs after a search without hits.
PROBE_ROWS = 50
#: Seconds that one search may take before it is given up as a miss.
DEADLINE = 10.0

_OFFICE = frozenset({".ipynb", ".docx", ".xlsx"})
_ANY_DOCUMENT = _OFFICE | frozenset(
    ".doc .docm .ppt .pps .pot .pptx .pptm .ppsx .ppsm .xls .xlsm .xlsb .odt .ods .odp .rtf .epub .pdf".split()
)
_DATABASES = frozenset({".db", ".sqlite", ".sqlite3"})


class Family(NamedTuple):
    """Versions of Hermes that word their answers alike, and how they do."""

    name: str  #: the first of these versions
    read_limit: int  #: lines of a read that names no limit
    opens_last_line: bool  #: a final newline opens one more, empty line
    passes_cut: bool  #: lines pass `cut`, which ends each with a newline
    counts_unended: bool  #: a last line without newline counts as a line
    explains_empty: bool  #: empty pages explain themselves
    tells_not_found: bool  #: every read carries `not_found`
    blank_is_here: bool  #: a blank search path means "."
    documents: frozenset[str]  #: endings that `read_file` converts first
    spans_lines: bool  #: `\n` in a pattern switches rg to multiline
    probes: str  #: after no hit: "" for none, "plain", or "paths" for those that name files
    splits: str  #: what separates the paths in one string: "" for nothing, "any" or "commas"
    grep_dialect: str  #: dialect when ripgrep is missing
    grep_root: str  #: how grep is given the root: "typed", "absolute" or "pruned"
    lists: str  #: what a listing holds: "files", or "entries" for folders too
    hint_inside: bool  #: the truncation remark is a key of the JSON
    row_length: int  #: characters of one row that are printed; 0 for all


# Measured on 0.19.0, 0.20.1 and 0.22.2; a newer version is taken for 0.22 until someone measures it.
_HERMES_19 = Family(
    name="0.19",
    read_limit=500,
    opens_last_line=True,
    passes_cut=False,
    counts_unended=False,
    explains_empty=False,
    tells_not_found=False,
    blank_is_here=False,
    documents=_OFFICE,
    spans_lines=False,
    probes="",
    splits="",
    grep_dialect="grep-bre",
    grep_root="typed",
    lists="files",
    hint_inside=False,
    row_length=0,
)
_HERMES_20 = _HERMES_19._replace(
    name="0.20",
    passes_cut=True,
    explains_empty=True,
    documents=_ANY_DOCUMENT,
    spans_lines=True,
    probes="plain",
    splits="any",
    grep_dialect="grep-ere",
    grep_root="absolute",
)
_HERMES_22 = _HERMES_20._replace(
    name="0.22",
    read_limit=2000,
    opens_last_line=False,
    counts_unended=True,
    tells_not_found=True,
    blank_is_here=True,
    documents=_ANY_DOCUMENT | _DATABASES,
    probes="paths",
    splits="commas",
    grep_root="pruned",
    lists="entries",
    hint_inside=True,
    row_length=2000,
)
FAMILIES = {family.name: family for family in (_HERMES_19, _HERMES_20, _HERMES_22)}


def _family(hermes: str, learned: Mapping[str, Any] | None = None) -> Family:
    """Choose the table: what the recording shows wins over what it is called."""
    seen = FAMILIES.get(str((learned or {}).get("family", "")))
    if seen is not None:
        return seen
    version = hermes_release(hermes)
    if version is None or version >= (0, 22):
        return _HERMES_22
    return _HERMES_20 if version >= (0, 20) else _HERMES_19


# --- arguments --------------------------------------------------------------

_ALIASES = {"grep": "content", "find": "files"}
#: Keys of `search_files` that only a content search reads, with their defaults.
_CONTENT_ONLY = {"file_glob": None, "output_mode": "content", "context": 0}


def coerce_args(tool: str, args: Mapping[str, Any], hermes: str = "") -> dict[str, Any]:
    """Return the arguments as the live tool would read them.

    Defaults are filled in, numbers in strings become numbers, out-of-range
    numbers are clamped, and keys the tool does not read are dropped.  Two
    calls become equal only when the live tool could not tell them apart; a
    value that it would stumble over is left as it is.  Other tools than
    `read_file` and `search_files` get a plain copy.

    :param hermes: version of the Hermes whose defaults apply.
    """
    return _coerced(tool, args, _family(hermes), hermes_release(hermes))


def _coerced(tool: str, args: Mapping[str, Any], family: Family, version: tuple[int, int] | None) -> dict[str, Any]:
    if tool == "read_file":
        offset = _number(args.get("offset", 1), 1)
        from_the_end = offset < 0 and (version is None or version >= (0, 23))
        limit = _number(args.get("limit", family.read_limit), family.read_limit)
        return {
            "path": args.get("path", ""),
            "offset": offset if from_the_end else _least(offset, 1),
            "limit": _most(_least(limit, 1), PAGE_LIMIT),
        }
    if tool == "search_files":
        return _coerce_search(args, family)
    return dict(args)


def _coerce_search(args: Mapping[str, Any], family: Family) -> dict[str, Any]:
    path = args.get("path", ".")
    if family.blank_is_here and (path is None or isinstance(path, str) and not path.strip()):
        path = "."
    target = args.get("target", "content")
    if isinstance(target, str):
        target = "files" if _ALIASES.get(target, target) == "files" else "content"
    out = {
        "pattern": args.get("pattern", ""),
        "target": target,
        "path": path,
        "limit": _least(_number(args.get("limit", 50), 50), 1),
        "offset": _least(_number(args.get("offset", 0), 0), 0),
    }
    if target == "files":
        order = args.get("order", "discovery") if family.lists == "entries" else "discovery"
        return {**out, **_CONTENT_ONLY, "order": order}
    mode = args.get("output_mode", "content")
    if isinstance(mode, str) and mode not in ("files_only", "count"):
        mode = "content"
    return {
        **out,
        "file_glob": args.get("file_glob") or None,
        "output_mode": mode,
        "context": _context(args.get("context", 0)),
        "order": "discovery",
    }


def _parsed(value: Any) -> Any:
    """Read a string as an integer where the dispatcher would, else leave it."""
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
        return int(number) if number == int(number) else value
    except (ValueError, OverflowError):
        return value


def _number(value: Any, default: int) -> Any:
    """Read a page number: what is no number counts as not given."""
    value = _parsed(value)
    try:
        return int(value)
    except OverflowError:
        return value  # infinity: the live tool fails on it
    except (TypeError, ValueError):
        return default


def _context(value: Any) -> Any:
    value = _parsed(value)
    if isinstance(value, (int, float)) and not value > 0:
        return 0
    return int(value) if isinstance(value, bool) else value


def _least(value: Any, bound: int) -> Any:
    return max(value, bound) if isinstance(value, int) else value


def _most(value: Any, bound: int) -> Any:
    return min(value, bound) if isinstance(value, int) else value


# --- the answer to a call -------------------------------------------------------


class Told(NamedTuple):
    """An answer, and how much of what it is asked of is known."""

    text: str
    known: int = 0  #: of the files that a search reads, those with a text
    files: int = 0  #: all files that it reads


class Synthesizer:
    """Answers `read_file` and `search_files` calls from one snapshot.

    Any number of threads may call `answer` at once: the snapshot is never
    written to, and what is remembered between calls can be worked out twice
    without harm.

    :param learned: what `learn` found; it wins over the recording Hermes's version.
    :param read_masks: what tells where redaction hides something; None takes each text as it is.
    :param names: makes what answers from names alone; None: nothing does.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        workspace: Workspace,
        recorder: Recorder,
        learned: Mapping[str, Any] | None = None,
        read_masks: ReadMasks | None = None,
        names: Callable[[Source], Names] | None = None,
    ) -> None:
        self.source = self._source = Source(snapshot, workspace, recorder, learned or {}, read_masks)
        if names is not None and snapshot.names is not None:
            self.source.names = names(self.source)
        release = hermes_release(recorder.hermes)
        known = release is None or release < (0, 23)
        self._shapes: frozenset[_Shape | None] | None = (
            None if known else _COMMON | (learned or {}).get("shapes", frozenset())
        )
        self._reader = _Reader(self._source)
        self._searcher = _Searcher(self._source)

    def answer(self, tool: str, args: Mapping[str, Any]) -> str:
        """Return the text that the live tool would have returned.

        :raises Miss: if the snapshot cannot tell; never anything else.
        """
        return self.tell(tool, args).text

    def tell(self, tool: str, args: Mapping[str, Any]) -> Told:
        """Return the text that the live tool would have returned, and how much of the files it is made from.

        :raises Miss: if the snapshot cannot tell; never anything else.
        """
        told = self._answer(tool, args)
        if self._shapes is not None and _shape_of(tool, told.text) not in self._shapes:
            raise Miss("the Hermes that recorded may word such an answer otherwise: no recorded result shows it")
        return told

    def _answer(self, tool: str, args: Mapping[str, Any]) -> Told:
        try:
            wanted = _coerced(tool, args, self._source.family, self._source.version)
            if tool == "read_file":
                return Told(self._reader.answer(wanted))
            if tool == "search_files":
                return self._searcher.answer(wanted)
        except Miss:
            raise
        except Untranslatable as error:
            raise Miss(f"this pattern may mean something else to the live tool: {error.reason}") from None
        except TooSlow:
            raise Miss(f"the search was not done within {DEADLINE:g} seconds") from None
        except Exception as error:  # a replay must end in an answer or a miss
            raise Miss(f"the replay could not work out this call: {error!r}") from error
        raise Miss(f"no result of {tool!r} can be made from files")


#: How many `..` of a path are followed, since each takes as long as the path.
MOST_WAYS_BACK = 32

#: Why a masked stretch keeps a question open.
_MASKED = "{}: what the live tool would say depends on a masked secret"


class Source:
    """What every answer is made of: the snapshot, and what is known of the Hermes that took it."""

    def __init__(
        self,
        snapshot: Snapshot,
        workspace: Workspace,
        recorder: Recorder,
        learned: Mapping[str, Any],
        read_masks: ReadMasks | None,
    ) -> None:
        self.snapshot = snapshot
        self.workspace = workspace
        self.recorder = recorder
        self.version = hermes_release(recorder.hermes)
        self.family = _family(recorder.hermes, learned)
        self.rg = (recorder.search or learned.get("search", "rg")) != "grep"
        self.rg_major: int | None = learned.get("rg_major")
        self.windows = recorder.platform == "win32"
        self.links = Links(snapshot.links, recorder.fold_case)
        self.names: Names | None = None
        self._read_masks = read_masks
        self._lock = threading.Lock()
        self._index: _Index | None = None

    @property
    def index(self) -> _Index:
        """The index of the snapshot, made by the first call that needs it."""
        if self._index is None:
            with self._lock:
                if self._index is None:
                    snapshot = self.snapshot if self.names else self.snapshot._replace(names=None)
                    self._index = _Index(snapshot, self.recorder.git, self._read_masks)
        return self._index

    def key(self, path: str, base: str = "") -> str:
        """Return the snapshot's path of what the model named.

        :param base: the folder a relative path starts from, itself relative to the workspace.
        :raises Miss: if that is not in the workspace.
        """
        if not path:
            raise Miss("no path is given")
        rel = self.workspace.relative(path, base)
        if rel is None:
            raise Miss(f"{path}: outside the workspace")
        names = re.split(r"[/\\]" if self.windows else "/", path)
        if self.links and ".." in names:
            raise Miss(f"{path}: it climbs, in a workspace with links")
        if names.count("..") > MOST_WAYS_BACK:
            raise Miss("a path that climbs too often")
        for way in (names[:end] for end, name in enumerate(names) if name == ".."):
            if not {"", ".", ".."}.issuperset(way) and not self._is_folder("/".join(way)):
                raise Miss(f"{path}: it climbs from a folder that may not be there")
        rel, _ = self.links.follow(rel)
        return self.index.folded(rel) if self.recorder.fold_case else rel

    def _is_folder(self, path: str) -> bool:
        rel = self.workspace.relative(path)
        return rel is not None and (self.index.folded(rel) if self.recorder.fold_case else rel) in self.index.folders

    def absence(self, path: str, key: str) -> str:
        """Say why the snapshot does not hold the file at `path`, whose key is `key`."""
        reason = self.snapshot.skipped_paths.get(key)
        if reason:
            return f"{path}: not in the snapshot ({reason})"
        if key in self.index.folders:
            return f"{path}: a folder, and the snapshot holds files"
        return f"{path}: not in the snapshot"


def _dump(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _suffix(path: str) -> str:
    """Return the ending of the last path component, "" for a dot-file's name."""
    name = re.split(r"[/\\]", path)[-1].lstrip(".")
    return "." + name.rsplit(".", 1)[1].lower() if "." in name else ""


# --- read_file ------------------------------------------------------------------

#: Endings that `read_file` refuses by name alone.
BINARY_ENDINGS = frozenset(
    ".png .jpg .jpeg .gif .bmp .ico .webp .tiff .tif .mp4 .mov .avi .mkv .webm .wmv .flv "
    ".m4v .mpeg .mpg .mp3 .wav .ogg .flac .aac .m4a .wma .aiff .opus .zip .tar .gz .bz2 .7z "
    ".rar .xz .z .tgz .iso .exe .dll .so .dylib .bin .o .a .obj .lib .app .msi .deb .rpm .doc "
    ".docx .xls .xlsx .ppt .pptx .odt .ods .odp .ttf .otf .woff .woff2 .eot .pyc .pyo .class "
    ".jar .war .ear .node .wasm .rlib .sqlite .sqlite3 .db .mdb .idx .psd .ai .eps .sketch "
    ".fig .xd .blend .3ds .max .swf .fla .lockb .dat .data".split()
)

#: A page that is sent to a terminal loses these.
_OSC = r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
_FENCE = r"'?\x07?__HERMES_FENCE_[A-Za-z0-9]+__\x07?'?"

_CONFLICT = (r"(?m)^\s*\d+\|<<<<<<< ", r"(?m)^\s*\d+\|>>>>>>> ")


class _Reader:
    """Answers `read_file`."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def answer(self, args: Mapping[str, Any]) -> str:
        path, offset, limit = args["path"], args["offset"], args["limit"]
        if not isinstance(path, str) or not isinstance(offset, int) or not isinstance(limit, int):
            raise Miss("the arguments are not of the kinds read_file takes")
        if offset < 1:
            raise Miss("reading from the end of a file is not synthesized")
        source = self._source
        key = source.key(path)
        file = source.snapshot.files.get(key)
        if path.endswith(("/", "\\")):
            file = None
        if file is None:
            if source.names is None:
                raise Miss(source.absence(path, key))
            source.names.kind(key)
        suffix = _suffix(key)
        if suffix in source.family.documents:
            raise Miss(f"{path}: read_file converts {suffix} files, a snapshot holds their text")
        if suffix in BINARY_ENDINGS:
            return _dump(
                {
                    "error": f"Cannot read binary file '{path}' ({suffix}). Use "
                    "vision_analyze for images, or terminal to inspect binary files."
                }
            )
        if file is None:
            return _dump(source.names.read(path, key))  # type: ignore[union-attr]
        if _looks_binary(file.text, source.family):
            raise Miss(f"{path}: the live tool takes this file for binary")
        page = read_page(file, offset, limit, source.family, source.index.lines(key))
        masks = source.index.masks(key)
        shown = range(offset - 1, offset - 1 + limit)
        if masks and not masks.read_alike(shown, len(page["content"])):
            raise Miss(_MASKED.format(path))
        return _dump(page)


def _looks_binary(text: str, family: Family) -> bool:
    """Say whether the first bytes make the live tool refuse the file."""
    sample = text[:1000]
    if family.passes_cut:
        return "\0" in sample
    odd = sum(1 for char in sample if ord(char) < 32 and char not in "\n\r\t")
    return bool(sample) and odd / len(sample) > 0.30


def read_page(
    file: SnapshotFile, offset: int, limit: int, family: Family, lines: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the decoded answer to one `read_file` call.

    :param lines: the file's lines when the caller has them at hand.
    """
    lines = _split_lines(file.text) if lines is None else lines
    ends = not file.text or file.text.endswith("\n")
    end = offset + limit - 1
    total = len(lines) - (0 if ends or family.counts_unended else 1)
    truncated = total > end
    text = _page_text(lines, ends, offset, end, family)
    if family.passes_cut and not truncated and not ends and text.endswith("\n"):
        text = text[:-1]
    out: dict[str, Any] = {"content": "", "total_lines": total, "file_size": file.size, "truncated": False}
    if family.explains_empty and file.size == 0:
        out["hint"] = "File is empty (0 bytes)."
    elif family.explains_empty and offset > total > 0:
        out["hint"] = (
            f"Note: offset {offset} is beyond the end of the file ({total} lines total). Retry with offset <= {total}."
        )
    else:
        shown = text[:-1] if not family.opens_last_line and text.endswith("\n") else text
        out.update(content=_numbered(shown, offset), truncated=truncated)
        if not family.opens_last_line and any(len(line) > LINE_LIMIT for line in text.split("\n")):
            out["truncated_lines"] = True
        if truncated:
            out["hint"] = f"Use offset={end + 1} to continue reading (showing {offset}-{end} of {total} lines)"
    out.update(is_binary=False, is_image=False)
    if family.tells_not_found:
        out["not_found"] = False
    _fit_budget(out, offset)
    _add_remarks(out, limit, family)
    return out


def _page_text(lines: Sequence[str], ends: bool, offset: int, end: int, family: Family) -> str:
    """Return lines `offset` to `end` as the live tool's shell prints them."""
    page = lines[offset - 1 : end]
    if family.passes_cut:
        text = "".join([_cut_line(line) + "\n" for line in page])
    else:
        text = "".join([line + "\n" for line in page])
        if page and end >= len(lines) and not ends:
            text = text[:-1]
    text = _without_terminal_codes(text)
    return text[1:] if offset == 1 and text.startswith("\ufeff") else text


def _numbered(text: str, start: int) -> str:
    return "\n".join(
        [
            f"{number}|{line if len(line) <= LINE_LIMIT else line[:LINE_LIMIT] + '... [truncated]'}"
            for number, line in enumerate(text.split("\n"), start)
        ]
    )


def _split_lines(text: str) -> list[str]:
    """Split at newlines only; a final newline opens no further line."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _cut_line(line: str) -> str:
    """Cut a line to the bytes that reach `read_file` at all."""
    if len(line) <= LINE_LIMIT:
        return line
    return line.encode("utf-8", "surrogatepass")[: 4 * LINE_LIMIT + 1].decode("utf-8", "replace")


def _without_terminal_codes(text: str) -> str:
    """Drop what the live tool takes for leftovers of its terminal."""
    if "\x07" not in text and "\x1b]" not in text and "__HERMES_FENCE_" not in text:
        return text
    kept = []
    for line in text.splitlines(keepends=True):
        wrapped = "\x1b]" in line or "__HERMES_FENCE_" in line
        clean = re.sub(_FENCE, "", re.sub(_OSC, "", line)).replace("\x07", "")
        if not (wrapped and clean.strip("'\r\n\t ") == ""):
            kept.append(clean)
    return "".join(kept)


def _fit_budget(out: dict[str, Any], offset: int) -> None:
    """Cut the page to whole lines within the character budget."""
    if len(out["content"]) <= READ_BUDGET:
        return
    kept = out["content"].rfind("\n", 0, READ_BUDGET + 1)
    out["content"] = out["content"][:kept]
    count = out["content"].count("\n") + 1
    following = offset + count
    out["truncated"] = True
    out["truncated_by"] = "bytes"
    out["next_offset"] = following
    out["hint"] = (
        f"Output truncated at the {READ_BUDGET:,}-char read budget after {count} line(s) "
        f"(showing lines {offset}-{following - 1} of {out['total_lines']}). "
        f"Use offset={following} to continue."
    )


def _add_remarks(out: dict[str, Any], limit: int, family: Family) -> None:
    if family.tells_not_found:
        opened, closed = (len(re.findall(mark, out["content"])) for mark in _CONFLICT)
        blocks = min(opened, closed)
        if blocks:
            out["conflict_blocks"] = blocks
            out["_hint"] = (
                f"{blocks} unresolved git merge-conflict block(s) (<<<<<<< / ======= / >>>>>>>) "
                "in this range. Resolve them (keep one side or combine, delete the markers) "
                "before editing around them."
            )
    if out["file_size"] > LARGE_FILE and limit > 200 and out["truncated"]:
        out.setdefault(
            "_hint",
            (
                f"This file is large ({out['file_size']:,} bytes). Consider reading only the section "
                "you need with offset and limit to keep context usage efficient."
            ),
        )


# --- search_files: where, and how the answer looks ------------------------------

_GROUPED = (
    "path-grouped: each file path on its own line, followed by indented "
    "'<line>: <content>' rows for matches in that file"
)
#: Names whose results the live tool holds back.
_WITHHELD = frozenset(".env .env.local .env.development .env.production .env.test .env.staging .envrc".split())


class _NotThere(Miss):
    """Where a search was to begin is not there; `reason` is what the live tool says of it."""


class _Root(NamedTuple):
    """Where a search begins: as the model typed it, and what that is."""

    typed: str
    rel: str  #: workspace path, "" for the workspace itself
    is_file: bool
    linked: bool = False  #: the way to it goes through a link
    is_link: bool = False  #: it is itself named by a link


class _Searcher:
    """Answers `search_files`: finds where to search, and words what was found there."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._content = _ContentSearch(source)
        self._listing = _FileListing(source)

    def answer(self, args: Mapping[str, Any]) -> Told:
        path, family = args["path"], self._source.family
        if path is None:
            return Told(_dump({"error": "expected str, bytes or os.PathLike object, not NoneType"}))
        if path == "":
            return Told(_dump({"total_count": 0, "error": "Path not found: "}))
        _check_search(args)
        try:
            roots, note = self._roots(path)
        except _NotThere as gone:
            return Told(_dump({"total_count": 0, "error": gone.reason}))
        if args["target"] == "content" and not isinstance(args["context"], (int, float)):
            kind = type(args["context"]).__name__
            return Told(_dump({"error": f"'>' not supported between instances of '{kind}' and 'int'"}))
        found = self._found(roots[0], args) if not note else self._merged(roots, args)
        if note:
            found.warning = note
        omitted = _withhold(found)
        out = found.to_dict(family)
        if omitted:
            out["_omitted"] = (
                f"{omitted} result(s) omitted because they target credential, "
                "token, cache, or secret-bearing environment files."
            )
        text = _dump(out)
        if found.truncated:
            hint = (
                f"Results truncated. Use offset={args['offset'] + args['limit']} to see more, "
                "or narrow with a more specific pattern or file_glob."
            )
            text = _dump({**out, "_hint": hint}) if family.hint_inside else f"{text}\n\n[Hint: {hint}]"
        return Told(text, len(found.known), len(found.known | found.unread))

    def _found(self, root: _Root, args: Mapping[str, Any]) -> _Found:
        if (root.linked or root.rel) and self._source.rg and not root.is_file:
            index, globbed = self._source.index, root.linked and "/" in (args["file_glob"] or "")
            kept = {_suffix(d.path) for d in index.documents if not d.file.ignored}  # so no rule for all such names
            if globbed or any(d.file.ignored and (root.linked or _suffix(d.path) in kept) for d in index.below(root)):
                raise Miss("behind a link, or where a search begins, a glob or an ignore rule may mean other names")
        return self._listing.find(root, args) if args["target"] == "files" else self._content.find(root, args)

    def _roots(self, path: str) -> tuple[list[_Root], str]:
        """Return where to search; more than one when the path names several.

        :returns: the roots, and the remark that the live tool makes about
            several of them ("" for one).
        """
        try:
            return [self._root(path)], ""
        except Miss as miss:
            parts = self._parts(path)
            if len(parts) < 2 or self._source.names and not isinstance(miss, _NotThere):
                raise
            roots, gone = [], []
            for part in parts:
                try:
                    roots.append(self._root(part))
                except _NotThere:
                    gone.append(self._expanded(part))
                except Miss:
                    raise (Miss(miss.reason) if isinstance(miss, _NotThere) else miss) from None
            if not roots:
                raise
        note = f"path contained {len(parts)} entries; searched {len(roots)} that exist"
        if gone:
            more = f" (+{len(gone) - 3} more)" if len(gone) > 3 else ""
            note += f"; skipped missing: {', '.join(gone[:3])}{more}"
        return roots, note

    def _parts(self, path: str) -> list[str]:
        if self._source.family.splits == "any":
            return path.replace(",", " ").split()
        if self._source.family.splits == "commas":
            parts = path.split(",") if "," in path else path.split()
            return [part.strip() for part in parts if part.strip()]
        return []

    def _root(self, typed: str) -> _Root:
        source = self._source
        key = source.key(typed)
        typed = self._expanded(typed)
        rel = source.workspace.relative(typed) or ""
        real, is_link = source.links.follow(rel)
        slashed = typed.endswith(("/", "\\"))
        if key in source.snapshot.files and not slashed:
            return _Root(typed, key, True, real != rel, is_link)
        kind = source.names.kind(key) if source.names else ""
        if key in source.index.folders:
            return _Root(typed, key, False, real != rel, is_link and not slashed)
        if kind == "file" and not slashed:
            return _Root(typed, key, True, real != rel, is_link)
        if source.names:
            raise _NotThere(source.names.not_found(typed, key))
        raise Miss(source.absence(typed, key))

    def _expanded(self, path: str) -> str:
        return self._source.workspace.home + path[1:] if path.startswith("~") else path

    def _merged(self, roots: Sequence[_Root], args: Mapping[str, Any]) -> _Found:
        """Search several roots as the live tool does: page by page, then cut."""
        family = self._source.family
        if args["target"] == "files" and family.lists == "entries":
            raise Miss("listing several paths at once is not synthesized")
        merged = _Found()
        for root in roots:
            found = self._found(root, args)
            if found.error and family.splits == "commas":
                return found
            if found.error:
                continue
            merged.matches += found.matches
            merged.files += found.files
            merged.counts.update(found.counts)
            merged.total_count += found.total_count
            merged.truncated = merged.truncated or found.truncated
            merged.known |= found.known
            merged.unread |= found.unread
        del merged.matches[args["limit"] :], merged.files[args["limit"] :]
        return merged


def _check_search(args: Mapping[str, Any]) -> None:
    """Refuse what the live tool might read as an option, or fail on."""
    texts = [args["pattern"], args["path"], args["file_glob"] or "", args["output_mode"]]
    if not all(isinstance(text, str) for text in texts):
        raise Miss("the arguments are not of the kinds search_files takes")
    dashed = texts[1:3] if args["target"] == "files" else texts[:3]
    if any(text.startswith("-") for text in dashed):
        raise Miss("the live tool reads an argument that begins with '-' as an option")
    if any("\0" in text for text in texts):
        raise Miss("an argument holds a NUL character")
    numbers = (args["limit"], args["offset"])
    if not all(isinstance(number, int) and number < 10**9 for number in numbers):
        raise Miss("limit and offset are beyond what the live tool takes")
    if isinstance(args["context"], float) or (isinstance(args["context"], int) and args["context"] >= 10**9):
        raise Miss("context is not a number of lines")


class _Found:
    """A search result before it becomes JSON."""

    def __init__(
        self,
        total_count: int = 0,
        matches: list[tuple[str, int, str]] | None = None,
        files: list[str] | None = None,
        counts: dict[str, int] | None = None,
        truncated: bool = False,
        warning: str = "",
        error: str = "",
    ) -> None:
        self.total_count, self.truncated = total_count, truncated
        self.matches, self.files, self.counts = matches or [], files or [], counts or {}
        self.warning, self.error = warning, error
        self.known: set[str] = set()  # of the files that the search reads
        self.unread: set[str] = set()

    def empty(self) -> bool:
        return not (self.total_count or self.matches or self.files or self.counts)

    def to_dict(self, family: Family) -> dict[str, Any]:
        out: dict[str, Any] = {"total_count": self.total_count}
        if len(self.matches) >= GROUP_FROM:
            out["matches_format"] = _GROUPED
            out["matches_text"] = _grouped(self.matches)
        elif self.matches:
            out["matches"] = [{"path": path, "line": line, "content": content} for path, line, content in self.matches]
        for key in ("files", "counts", "truncated"):
            if getattr(self, key):
                out[key] = getattr(self, key)
        if self.truncated and family.hint_inside:
            out["total_count_is_lower_bound"] = True
        for key in ("warning", "error"):
            if getattr(self, key):
                out[key] = getattr(self, key)
        return out


def _grouped(matches: Sequence[tuple[str, int, str]]) -> str:
    rows: list[str] = []
    current = None
    for path, line, content in matches:
        if path != current:
            rows.append(path)
            current = path
        rows.append(f"  {line}: {content.rstrip()}")
    return "\n".join(rows)


def _withhold(found: _Found) -> int:
    """Take out results in secret-bearing files; return how many."""

    def secret(path: str) -> bool:
        return re.split(r"[/\\]", path)[-1] in _WITHHELD

    before = len(found.matches) + len(found.files) + len(found.counts)
    found.matches = [match for match in found.matches if not secret(match[0])]
    found.files = [path for path in found.files if not secret(path)]
    found.counts = {path: n for path, n in found.counts.items() if not secret(path)}
    return before - len(found.matches) - len(found.files) - len(found.counts)


class _Paths:
    """How the answer spells the paths that a search found."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def anchor(self, root: _Root, pruned: bool = False) -> str:
        """Return what stands before the paths of the answer.

        :param pruned: grep ran with its root's hidden folders cut out, see `_ContentSearch`.
        """
        source, typed = self._source, root.typed
        if source.rg:
            return self._native(typed)
        if pruned or source.family.grep_root == "typed":
            return typed
        if re.match(r"/|\\\\|[A-Za-z]:[\\/]", typed):
            return typed
        here = str(source.workspace.root)
        here = _posix_drive(here) if source.windows else here
        short = typed[2:] if typed.startswith("./") else typed
        return here if short in ("", ".") else f"{here}/{short}"

    def _native(self, typed: str) -> str:
        """Spell a path the way Hermes hands it to a Windows program (reasoned)."""
        if not self._source.windows or self._source.family is _HERMES_19:
            return typed
        drive = re.match(_GIT_BASH_DRIVE, typed)
        return f"{drive[1].upper()}:{drive[2] or '/'}" if drive else typed.replace("\\", "/")

    def shown(self, anchor: str, root: _Root, path: str) -> str:
        """Return a path as rg and grep print it: the anchor, then the way down."""
        if root.is_file:
            return anchor
        below = path[len(root.rel) :].lstrip("/")
        mark = "\\" if self._source.windows and self._source.rg else "/"
        joint = "" if anchor.endswith(("/", mark)) else mark
        return f"{anchor}{joint}{below.replace('/', mark)}"

    def by_find(self, root: _Root, path: str) -> str:
        """Return a path as `find` prints it."""
        if root.is_file or path == root.rel:
            return root.typed
        below = path[len(root.rel) :].lstrip("/")
        typed = _posix_drive(root.typed) if self._source.windows else root.typed
        return typed + ("" if typed.endswith("/") else "/") + below


_GIT_BASH_DRIVE = r"(?s)/(?:(?:cygdrive|mnt)/)?([A-Za-z])(/.*)?$"


def _posix_drive(path: str) -> str:
    """Spell a Windows path the way Git Bash prints its working directory (reasoned)."""
    path = path.replace("\\", "/")
    return f"/{path[0].lower()}{path[2:]}" if re.match(r"[A-Za-z]:/", path) else path


# --- search_files, target=content -----------------------------------------------

_MULTILINE_NOTE = (
    "Pattern contains \\n — multiline mode (-U) was enabled automatically "
    "so the regex can match across line boundaries."
)
_LINES_NOTE = (
    "0 results found. Note: search_files content search is line-oriented and does not "
    "run ripgrep with -U/--multiline, so `\\n` in the regex does not match line breaks. "
    "Use context=N to inspect neighboring lines, or escape as `\\\\n` when searching "
    "for a literal backslash+n."
)

#: What the live tool takes for a row of rg or grep, and how it reads one.
_ROW = r"^([A-Za-z]:)?[^\s:][^\n]*?[:\-]\d|^[^\s:][^\s]*$"
_MATCH_ROW = r"^([A-Za-z]:)?(.*?):(\d+):(.*)$"
_CONTEXT_MARK = r"-(\d+)-"

_NEWLINE_ESCAPE = r"(?<!\\)(?:\\\\)*\\n"
_SPECIAL = r"[.\[\](){}?*+^$\\|]"

#: What is looked for after a search without hits, in this order: the pattern in any case, the
#: pattern in hidden and ignored files too, the pattern as plain text.
_ANY_CASE, _HIDDEN_TOO, _AS_TEXT = "any case", "hidden too", "as text"


class _ContentSearch:
    """Searches texts as rg or grep do, and reads their rows as Hermes does."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._paths = _Paths(source)

    def find(self, root: _Root, args: Mapping[str, Any]) -> _Found:
        source, pattern = self._source, args["pattern"]
        if not source.rg and source.recorder.platform == "darwin" and re.search(_SPECIAL, pattern):
            raise Miss("the grep of macOS reads patterns in its own way")
        newline = "\n" in pattern or bool(re.search(_NEWLINE_ESCAPE, pattern))
        multiline = source.rg and newline and source.family.spans_lines
        pruned = not source.rg and self._under_hidden(root)
        try:
            matcher = self._matcher(pattern, multiline)
        except PatternError as error:
            # The remark about PCRE2, which most builds of ripgrep make, is taken for granted.
            if pruned:
                return _Found()
            if self._loses(error.message, args):
                found = _Found()
                found.warning = self._probe(root, pattern, args["file_glob"], found)
                return found
            return _Found(error=f"Search failed: {error.message}")
        searched = self._searched(root, args["file_glob"], pruned)
        rows, cap = self._rows(root, matcher, args, pruned, searched), _fetched(args)
        unread = self._unread(root, searched, cap - len(rows) if args["output_mode"] == "content" else 0)
        if len(rows) < cap or any(source.names.ripgrep_leaves(path) for path in unread if source.names):
            self._demand(unread)
        found = _parse(rows, args)
        found.known, found.unread = {one.path for one in searched if one.known}, set(unread)
        if multiline and args["output_mode"] != "count":
            found.warning = _MULTILINE_NOTE
        if found.empty() and source.rg and source.family.probes:
            hint = self._probe(root, pattern, args["file_glob"], found)
            found.warning = " ".join(filter(None, (found.warning, hint)))
        if found.total_count == 0 and newline and not multiline:
            found.warning = _LINES_NOTE
        return found

    def _matcher(self, pattern: str, multiline: bool = False, ignore_case: bool = False) -> Matcher:
        source = self._source
        if source.rg:
            return compile_pattern(
                pattern, "rg", multiline=multiline, ignore_case=ignore_case, rg_major=source.rg_major
            )
        dialect = source.family.grep_dialect
        opened = re.search(r"(?<!\\)(?:\\\\)*\[\^?$", pattern)
        if opened:
            compile_pattern(pattern[: opened.start()], dialect)
            raise PatternError("grep: Invalid regular expression")
        if dialect == "grep-bre" and "\\}" not in pattern:
            pattern = re.sub(r"^\^?\\\{", lambda found: found[0].replace("\\", ""), pattern)
        return compile_pattern(pattern, dialect)

    def _loses(self, message: str, args: Mapping[str, Any]) -> bool:
        """Say whether 0.22, which stops reading after so many rows, overlooks an error."""
        source = self._source
        native = source.rg and source.family.hint_inside and not source.windows
        return native and message.count("\n") + 1 >= _fetched(args)

    # Which files, with what text.

    def _text(self, document: _Document) -> str:
        """Return a file's text as the engine sees it: ripgrep drops a byte order mark."""
        return document.text if self._source.rg else document.file.text

    def _searched(self, root: _Root, glob: str | None, pruned: bool) -> list[_Document]:
        index = self._source.index
        if self._source.rg:
            return index.visible(root, glob)
        if pruned or self._source.family.grep_root == "pruned" or not self._grep_skips(root):
            return index.walked(root, glob, typed_root=not pruned)
        return []

    def _unread(self, root: _Root, documents: Sequence[_Document], room: int = 0) -> list[str]:
        return self._source.names.unread(root, documents, room) if self._source.names else []

    def _grep_skips(self, root: _Root) -> bool:
        """Say whether `--exclude-dir='.*'` takes the root itself for a hidden folder."""
        if root.is_file:
            return False
        text = root.typed if self._source.family.grep_root == "typed" else self._paths.anchor(root)
        return bool(re.search(r"(?:^|/)\.", text))

    def _under_hidden(self, root: _Root) -> bool:
        """Say whether grep is kept from seeing that its root is below a hidden folder, by pruning."""
        if self._source.family.grep_root != "pruned":
            return False
        whole = f"{self._source.workspace.root}/{root.rel}".replace("\\", "/")
        return any(_dotted(part) for part in whole.split("/"))

    # What rg or grep would print.

    def _rows(
        self, root: _Root, matcher: Matcher, args: Mapping[str, Any], pruned: bool, documents: Sequence[_Document]
    ) -> list[str]:
        """Return the first rows that rg or grep would print, as many as the live tool reads."""
        mode, context, cap = args["output_mode"], args["context"], _fetched(args)
        wanted = {"files_only": 1, "count": None}.get(mode, cap)
        anchor = self._paths.anchor(root, pruned)
        rows: list[str] = []
        open_for: list[str] = []
        search = Search(matcher, DEADLINE)
        for document in documents:
            if not document.known:
                continue
            text = self._text(document)
            hits, certain = self._hits(search, document, wanted, mode, context)
            if not certain:
                open_for.append(document.path)
                continue
            if not hits and (mode != "count" or self._source.rg):
                continue
            path = self._paths.shown(anchor, root, document.path)
            if mode == "files_only":
                rows.append(path)
            elif mode == "count":
                rows.append(f"{path}:{search.stretches(text) if matcher.multiline and hits else len(hits)}")
            else:
                if context and rows:
                    rows.append("--")
                lines = self._source.index.lines(document.path, not self._source.rg)
                found = _document_rows(path, lines, hits, context, cap - len(rows))
                rows += [_cut_row(row, self._source.family.row_length) for row in found]
            if len(rows) >= cap:
                return rows[:cap]
        if open_for:
            raise Miss(_MASKED.format(open_for[0]))
        return rows

    def _demand(self, unread: Sequence[str]) -> None:
        """:raises Miss: if a file is not known of a recording that was to hold the whole workspace."""
        if unread and self._source.snapshot.whole:
            raise Miss(f"{unread[0]}: the recording does not hold its text")

    def _hits(
        self, search: Search, document: _Document, wanted: int | None, mode: str, context: int
    ) -> tuple[list[int], bool]:
        """Return the lines that the live tool finds in a file, and whether what it says of them is certain."""
        masks = self._source.index.masks(document.path)
        if masks is None:
            return search.lines(self._text(document), wanted), True
        found, certain = masks.found(search, self._text(document), bom=not self._source.rg)
        if mode == "files_only" and found:
            return found, True
        if mode == "content":
            around = (range(max(hit - context, 0), hit + context + 1) for hit in found[:wanted])
            certain = certain and all(map(masks.shown_alike, around))
        return found, certain

    # What a search without hits may have meant.

    def _probe(self, root: _Root, pattern: str, glob: str | None, found: _Found) -> str:
        """Say what a search without hits may have meant, as the live tool finds out."""
        index, with_paths = self._source.index, self._source.family.probes == "paths"
        visible = index.visible(root, glob)
        probes = {_ANY_CASE: visible, _HIDDEN_TOO: index.everything(root, glob, with_paths)}
        if re.search(_SPECIAL, pattern):
            probes[_AS_TEXT] = visible
        for probe, documents in probes.items():
            known, unread = [document for document in documents if document.known], self._unread(root, documents)
            found.known.update(document.path for document in known)
            found.unread.update(unread)
            counts = self._counted(probe, pattern, known)
            if counts or probe != _HIDDEN_TOO:  # without any, only that remark stays open
                self._demand(unread)
            if counts:
                anchor = self._paths.anchor(root)
                names = ["" if root.is_file else self._paths.shown(anchor, root, path) for path, _ in counts]
                return _probe_note(probe, sum(number for _, number in counts), names, with_paths)
        return ""

    def _counted(self, probe: str, pattern: str, documents: Sequence[_Document]) -> list[tuple[str, int]]:
        """Count the matches of the first files that have any, as that probe does."""
        kept: list[tuple[str, int]] = []
        as_text = probe == _AS_TEXT
        if as_text and "\n" in pattern:
            return kept
        sought = re.sub(_SPECIAL, r"\\\g<0>", pattern) if as_text else pattern
        try:
            search = Search(self._matcher(sought, ignore_case=probe == _ANY_CASE), DEADLINE)
        except PatternError:
            return kept  # a pattern over several lines fails without multiline mode
        for document in documents:
            if as_text and not self._source.index.masks(document.path):
                number = document.text.count(pattern)
            else:
                hits = self._unmasked_hits(search, document)
                lines = self._source.index.lines(document.path, False) if hits else []
                counts = (
                    lines[hit].count(pattern) if as_text else _occurrences(pattern, lines[hit], probe == _ANY_CASE)
                    for hit in hits
                )
                number = sum(counts)
            if number:
                kept.append((document.path, number))
            if len(kept) == PROBE_ROWS:
                break
        return kept

    def _unmasked_hits(self, search: Search, document: _Document) -> list[int]:
        """Return the lines of a file that match, if that does not depend on what is masked in them."""
        masks = self._source.index.masks(document.path)
        if masks is None:
            return search.lines(document.text, None)
        hits, certain = masks.found(search, document.text, bom=False)
        if not certain or masks.touch(hits):
            raise Miss(_MASKED.format(document.path))
        return hits


def _fetched(args: Mapping[str, Any]) -> int:
    """Return how many rows the live tool reads."""
    return args["limit"] + args["offset"] + (CONTEXT_EXTRA if args["context"] > 0 else 0)


def _document_rows(path: str, lines: Sequence[str], hits: Sequence[int], context: int, cap: int) -> list[str]:
    """Print the hits of one file, with `context` lines around each."""
    if not context:
        return [f"{path}:{hit + 1}:{lines[hit]}" for hit in hits[:cap]]
    rows: list[str] = []
    matched, following = set(hits), 0
    for hit in hits:
        first = max(hit - context, following)
        if following and first > following:
            rows.append("--")
        following = min(hit + context + 1, len(lines))
        for at in range(first, following):
            mark = ":" if at in matched else "-"
            rows.append(f"{path}{mark}{at + 1}{mark}{lines[at]}")
        if len(rows) >= cap:
            break
    return rows


def _cut_row(row: str, length: int) -> str:
    """Cut a row as ripgrep and `cut` do; on text beyond ASCII it may keep some bytes more.

    Only context rows can tell: their path ends at the last mark that is left.
    """
    return row[:length] if length and len(row) > length else row


def _parse(rows: Sequence[str], args: Mapping[str, Any]) -> _Found:
    """Read rows of rg or grep as the live tool does."""
    lines, offset = _payload(rows), args["offset"]
    end = offset + args["limit"]
    if args["output_mode"] == "files_only":
        return _Found(files=lines[offset:end], total_count=len(lines))
    if args["output_mode"] == "count":
        counts = {}
        for line in lines:
            path, _, number = line.rpartition(":")
            if path and number.isdigit():
                counts[path] = int(number)
        return _Found(counts=counts, total_count=sum(counts.values()))
    parsed = [_parsed_row(line, args["context"] > 0) for line in lines]
    matches = [row for row in parsed if row is not None]
    return _Found(matches=matches[offset:end], total_count=len(matches), truncated=len(matches) > end)


def _payload(rows: Iterable[str]) -> list[str]:
    """Keep what the live tool takes for results, as its clean-up leaves it."""
    kept = [
        row
        for row in rows
        if row.strip() and not row.lstrip().startswith(("rg: ", "grep: ")) and (row == "--" or re.match(_ROW, row))
    ]
    return [row for row in "\n".join(kept).strip().split("\n") if row]


def _parsed_row(row: str, context: bool) -> tuple[str, int, str] | None:
    found = re.match(_MATCH_ROW, row)
    if found is not None:
        return (found[1] or "") + found[2], int(found[3]), found[4][:CLIP]
    marks = list(re.finditer(_CONTEXT_MARK, row)) if context and row != "--" else []
    if not marks or marks[-1].start() == 0:
        return None
    mark = marks[-1]
    return row[: mark.start()], int(mark[1]), row[mark.end() :][:CLIP]


def _probe_note(probe: str, total: int, names: Sequence[str], with_paths: bool) -> str:
    """Word the remark about a search without hits."""
    listed = ""
    if with_paths:
        more = len(names) - 5
        listed = ": " + ", ".join(names[:5]) + (f" (+{more} more)" if more > 0 else "")
    if probe == _ANY_CASE:
        return (
            f"0 exact matches, but {total} case-insensitive match(es) in {len(names)} "
            f"file(s){listed} — the pattern's casing may be wrong."
        )
    if probe == _HIDDEN_TOO:
        advice = "" if with_paths else " Search the hidden path explicitly to include them."
        return (
            f"0 matches in visible files, but {total} match(es) in {len(names)} hidden or "
            f"gitignored file(s){listed} — these are excluded by default.{advice}"
        )
    where = f" in {len(names)} file(s){listed}" if with_paths else ""
    return (
        f"0 regex matches, but {total} literal match(es){where} — the pattern contains regex "
        "metacharacters that likely need escaping (or pass a simpler substring)."
    )


#: The part of ripgrep's syntax that `re` reads alike on ASCII text.
_PLAIN = (
    r"(?P<set>\[\^?[\w \-./:,]+\]|\[\[:(?:alpha|digit|alnum|upper|lower|xdigit|word):\]\])"
    r"|(?P<escape>\\[wWdDsSb]|\\[^\w\s<>])|(?P<other>[\w \-/,:;=@#%&!'\"`~])|(?P<any>\.)"
    r"|(?P<edge>[\^$])|(?P<open>\((?:\?:)?)|(?P<close>\)(?![*+?{]))|(?P<or>\|)"
    r"|(?P<many>[*+]|\{\d{1,2},\})|(?P<few>\?|\{\d{1,2}(?:,\d{1,2})?\})"
)
_PLAIN_SETS = {
    "[[:alpha:]]": "[A-Za-z]",
    "[[:digit:]]": "[0-9]",
    "[[:alnum:]]": "[A-Za-z0-9]",
    "[[:upper:]]": "[A-Z]",
    "[[:lower:]]": "[a-z]",
    "[[:xdigit:]]": "[0-9A-Fa-f]",
    "[[:word:]]": r"\w",
}
#: Lines up to this length cannot make one unbounded repetition slow, nor two a tenth of it.
_SHORT_LINE = 2000


@lru_cache(maxsize=256)
def _plain(pattern: str, ignore_case: bool, most: int = 1) -> re.Pattern[str] | None:
    """Compile a simple ripgrep pattern for `re`, to count the matches in a short line.

    With so few unbounded repetitions, each of one character, none takes long.

    :param most: how many unbounded repetitions the pattern may have.
    :returns: None when the pattern is not that simple.
    """
    syntax = re.compile(_PLAIN)
    out, at, many, repeatable = [], 0, 0, False
    while at < len(pattern):
        found = syntax.match(pattern, at)
        if found is None or found.lastgroup in ("many", "few") and not repeatable:
            return None
        kind, text, at = str(found.lastgroup), found[0], found.end()
        many += kind == "many"
        repeatable = kind in ("set", "other", "any") or kind == "escape" and text != "\\b"
        out.append(_PLAIN_SETS.get(text, text))
    if many > most or not pattern.isascii():
        return None
    try:
        return re.compile("".join(out), re.ASCII | (re.IGNORECASE if ignore_case else 0))
    except re.error:
        return None


def _needs_ascii(pattern: str) -> bool:
    """Say whether a simple pattern means something else on text beyond ASCII."""
    return bool(re.search(r"\\[wWdDsSb]", pattern))


def _occurrences(pattern: str, line: str, ignore_case: bool) -> int:
    """Count the matches in one line that is known to have some."""
    if not re.search(_SPECIAL, pattern):
        return len(re.findall(pattern, line, re.IGNORECASE if ignore_case else 0))
    regex = _plain(pattern, ignore_case, 2 if len(line) <= _SHORT_LINE // 10 else 1)
    foreign = not line.isascii() and (_needs_ascii(pattern) or re.search("[\u017f\u212a]", line))
    if regex is None or foreign or len(line) > _SHORT_LINE:
        raise Miss("the matches of this pattern cannot be counted as the live tool would")
    return sum(1 for _ in regex.finditer(line))


# --- search_files, target=files -------------------------------------------------

_OLD_RIPGREP = "Exact modification-time order requires ripgrep 14 or newer; upgrade ripgrep or use order='discovery'."


class _FileListing:
    """Lists files by name, as `rg --files` or `find` do."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._paths = _Paths(source)

    def find(self, root: _Root, args: Mapping[str, Any]) -> _Found:
        source, order = self._source, args["order"]
        if order not in ("discovery", "modified"):
            return _Found(error=f"Invalid file search order {order!r}; expected 'discovery' or 'modified'.")
        name = args["pattern"].split("/")[-1]
        if not source.rg:
            return self._by_find(root, name, args)
        if order == "modified":
            if source.rg_major is None:
                raise Miss("whether ripgrep sorts by time depends on its version")
            if source.rg_major < 14:
                return _Found(error=_OLD_RIPGREP)
        return self._by_ripgrep(root, name if name.startswith("*") else "*" + name, args)

    def _by_ripgrep(self, root: _Root, glob: str, args: Mapping[str, Any]) -> _Found:
        index, offset = self._source.index, args["offset"]
        end = offset + args["limit"]
        listed = sorted(_demand_names(index.listed(root, glob)), key=lambda document: -document.file.mtime)
        anchor = self._paths.anchor(root)
        files = [self._paths.shown(anchor, root, document.path) for document in listed]
        if self._source.family.lists == "files":
            return _Found(files=files[:end][offset:], total_count=min(len(files), end), truncated=len(files) >= end)
        files = files[: end + 1]
        folders = [] if root.is_file else index.matching_folders(root, glob)[: end + 1]
        if folders:
            times = [document.file.mtime for document in listed[: end + 1]]
            entries = list(zip(times, files))
            entries += [(newest, self._paths.by_find(root, folder)) for folder, newest in folders]
            files = [path for _, path in sorted(entries, key=lambda entry: -int(entry[0]))]
        return _Found(files=files[offset:end], total_count=len(files), truncated=len(files) > end)

    def _by_find(self, root: _Root, name: str, args: Mapping[str, Any]) -> _Found:
        source, offset, end = self._source, args["offset"], args["offset"] + args["limit"]
        entries = source.family.lists == "entries"
        if root.is_link and not entries:
            return _Found()  # this `find` sees the link only, which is no file
        if root.is_link and root.is_file:
            raise Miss("the name of a link, and not of its file, must match here")
        if entries and source.workspace.home and source.workspace.relative(source.workspace.home) is not None:
            raise Miss("the live tool lists no folder that holds the home folder")
        listed = self._source.index.found(root, name, entries)
        if not entries or args["order"] == "modified":
            listed.sort(key=lambda entry: -entry[1])
        paths = [self._paths.by_find(root, path) for path, _ in listed]
        if not entries:
            return _Found(files=paths[offset:end], total_count=len(paths[offset:end]))
        paths = paths[: end + 1]
        return _Found(files=paths[offset:end], total_count=len(paths), truncated=len(paths) > end)


def _demand_names(documents: list[_Document]) -> list[_Document]:
    """:raises Miss: if among what is to be listed is a folder of which the names are not known."""
    for document in documents:
        if document.unlisted:
            raise Miss(f"{document.path}: the recording does not know what it holds")
    return documents


# --- the index: which files a search sees ---------------------------------------

#: Folders that the probe for hidden files of 0.22 leaves out.
_PRUNED = frozenset(
    ".git .hg .svn node_modules venv .venv site-packages dist-packages vendor third_party build "
    "dist target out coverage .next .turbo .parcel-cache .nuxt .svelte-kit .archive __pycache__ "
    ".cache .Trash .tox .nox .mypy_cache .pytest_cache .ruff_cache .npm .yarn .pnpm-store .gradle "
    ".m2 .nuget backups backup .backups".split()
)
#: Reasons of a snapshot that do not speak of a file.
_NO_FILE = frozenset({SkipReason.NOT_REGULAR, SkipReason.NOT_FOUND, SkipReason.LINK_OUT, SkipReason.UNREADABLE})


class _Document(NamedTuple):
    """One file of the snapshot, ready to be searched; or a folder of which the names are not known."""

    path: str
    file: SnapshotFile
    text: str  #: as the search engine sees it
    folders: tuple[str, ...]  #: every folder above it, "" left out
    known: bool = True  #: its text is
    unlisted: bool = False  #: it is such a folder; its path ends in "/"

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class _Index:
    """The snapshot in path order, with what its files say about its folders."""

    def __init__(self, snapshot: Snapshot, git: bool, read_masks: ReadMasks | None) -> None:
        kept = [_document(path, snapshot.files[path]) for path in sorted(snapshot.files)]
        self._unkept = _unkept(snapshot)
        self._listed = snapshot.names is not None
        self.documents = [*kept, *self._unkept] if self._listed else kept
        self._by_path = {document.path: document for document in self.documents}
        self.folders = {folder for d in self.documents for folder in d.folders} | ({""} if self.documents else set())
        self._buried = _buried_folders(self.documents)
        #: maps every folder known of to the newest time below it
        self._times: dict[str, float] = {".git": 0.0} if git and not self._listed else {}
        for document in (*kept, *self._unkept):
            for folder in document.folders:
                self._times[folder] = max(self._times.get(folder, 0.0), document.file.mtime)
        if snapshot.names is not None:
            named = {path: name for path, name in snapshot.names.items() if name.kind == "folder"}
            self.folders = {"", *named}
            self._buried = frozenset(path for path, name in named.items() if name.ignored)
            self._times = {path: name.mtime for path, name in named.items()}
        self._folded = {key.casefold(): key for key in (*self.folders, *self._by_path)}
        #: maps a path (and whether its BOM stays) to its lines
        self._lines: dict[tuple[str, bool], list[str]] = {}
        self._read_masks = read_masks
        self._masks: dict[str, Any] = {}
        #: maps a root and a glob to the files a plain ripgrep would search
        self._visible: dict[tuple[str, str | None], list[_Document]] = {}

    def folded(self, key: str) -> str:
        """Return the spelling of a path that the disk showed."""
        return self._folded.get(key.casefold(), key)

    def lines(self, path: str, bom: bool = True) -> list[str]:
        """Return the lines of a file.

        :param bom: whether a byte order mark stays on the first line.
        """
        key = (path, bom)
        lines = self._lines.get(key)
        if lines is None:
            document = self._by_path[path]
            lines = _split_lines(document.file.text if bom else document.text)
            self._lines[key] = lines
        return lines

    def masks(self, path: str) -> Any:
        """Return what redaction hides in a file, None when that is nothing."""
        if self._read_masks is None:
            return None
        if path not in self._masks:
            self._masks[path] = self._read_masks(self._by_path[path].file)
        return self._masks[path]

    def below(self, root: _Root) -> list[_Document]:
        """Return the files below a root; where names are known, also those without a text."""
        if root.is_file:
            return [self._by_path[root.rel]]
        if not root.rel:
            return self.documents
        start = root.rel + "/"
        return [document for document in self.documents if document.path.startswith(start)]

    def visible(self, root: _Root, glob: str | None) -> list[_Document]:
        """Return what a plain ripgrep searches: nothing hidden, nothing ignored.

        A file that is named itself is always searched.
        """
        if root.is_file:
            return self.below(root)
        key = (root.rel, glob)
        chosen = self._visible.get(key)
        if chosen is None:
            override = _override(glob) if glob else None
            chosen = [d for d in self.below(root) if self._lets_in(d, root, override)]
            if len(self._visible) < 256:
                self._visible[key] = chosen
        return chosen

    def _lets_in(self, document: _Document, root: _Root, override: GlobRule | None) -> bool:
        """Walk down from the root as ripgrep does; its globs beat every other rule."""
        for folder in document.folders:
            if len(folder) <= len(root.rel):
                continue
            verdict = override.overrides(folder, True) if override else None
            if verdict is False:
                return False
            if verdict is None and (_dotted(folder.rsplit("/", 1)[-1]) or folder in self._buried):
                return False
        if document.unlisted:
            return True
        verdict = override.overrides(document.path, False) if override else None
        if verdict is not None:
            return verdict
        if _dotted(document.name):
            return False
        return not document.file.ignored or any(f in self._buried for f in document.folders)

    def everything(self, root: _Root, glob: str | None, prune: bool) -> list[_Document]:
        """Return what ripgrep searches when hidden and ignored files count too."""
        if root.is_file:
            return self.below(root)
        override = _override(glob) if glob else None
        return [
            d
            for d in self.below(root)
            if not (prune and _is_pruned(d))
            and (
                override is None
                or not (
                    not d.unlisted
                    and override.overrides(d.path, False) is False
                    or any(
                        override.overrides(folder, True) is False for folder in d.folders if len(folder) > len(root.rel)
                    )
                )
            )
        ]

    def listed(self, root: _Root, glob: str) -> list[_Document]:
        """Return what `rg --files -g` lists, which is also files of unknown text."""
        override = _override(glob)
        return self.visible(root, glob) + [d for d in self._more_below(root) if self._lets_in(d, root, override)]

    def _more_below(self, root: _Root) -> list[_Document]:
        """Return what `below` leaves out: files of unknown text, where not all names are known."""
        more = () if self._listed or root.is_file else self._unkept
        return [document for document in more if _is_below(document.path, root.rel)]

    def walked(self, root: _Root, glob: str | None, typed_root: bool) -> list[_Document]:
        """Return what grep searches: all but hidden folders; a glob sees names only."""
        accepts = _shell_glob(glob) if glob else None
        if root.is_file:
            typed = root.typed if typed_root else root.typed.rsplit("/", 1)[-1]
            names = [typed[at:] for at in range(len(typed)) if at == 0 or typed[at - 1] == "/"]
            return self.below(root) if accepts is None or any(map(accepts, names)) else []
        return [
            d
            for d in self.below(root)
            if not _in_hidden_folder(d, root) and (accepts is None or d.unlisted or accepts(d.name))
        ]

    def matching_folders(self, root: _Root, glob: str) -> list[tuple[str, float]]:
        """Return the folders that 0.22 adds to a listing by ripgrep, and their times.

        When no visible folder has a fitting name, its `find` lists the
        topmost hidden folders instead, whatever their names.  The time of a
        folder is not known; that of its newest file stands in for it.
        """
        accepts = _shell_glob(glob)
        inside = self._folders_below(root)
        _demand_names([d for d in self.below(root) if d.unlisted and not _in_hidden_folder(d, root)])
        hidden = [f for f in inside if _hidden_parts(f, root) == 1 and _dotted(f.rsplit("/", 1)[-1])]
        fitting = [f for f in inside if not _hidden_parts(f, root) and accepts(f.rsplit("/", 1)[-1])]
        if not fitting:
            fitting = [] if any(map(_dotted, root.rel.split("/"))) else hidden
        return [
            (folder, self._times[folder])
            for folder in fitting
            if not any(folder == b or folder.startswith(b + "/") for b in self._buried)
        ]

    def _folders_below(self, root: _Root) -> list[str]:
        return [f for f in sorted(self._times) if f != root.rel and _is_below(f, root.rel)]

    def found(self, root: _Root, name: str, entries: bool) -> list[tuple[str, float]]:
        """Return path and time of what `find -name` lists."""
        accepts = _shell_glob(name)
        known = [
            d
            for d in (*self.below(root), *self._more_below(root))
            if (d.unlisted or accepts(d.name)) and not (_in_hidden_folder(d, root) or _dotted(d.name))
        ]
        _demand_names(known)
        files = [(d.path, d.file.mtime) for d in known]
        if not entries or root.is_file:
            return files
        folders = [
            (f, self._times[f])
            for f in self._folders_below(root)
            if not _hidden_parts(f, root) and accepts(f.rsplit("/", 1)[-1])
        ]
        return sorted(folders + files)


def _unkept(snapshot: Snapshot) -> list[_Document]:
    """Return the files that exist though their text is not kept, and the folders of which the names are not."""
    if snapshot.names is None:
        return [
            _document(path, SnapshotFile("", 0))
            for path, reason in sorted(snapshot.skipped_paths.items())
            if reason not in _NO_FILE and path.rsplit("/", 1)[-1] != ".git"
        ]
    found = []
    for path, name in sorted(snapshot.names.items()):
        file = SnapshotFile("", name.inside or name.size, name.mtime, name.ignored)
        if name.kind == "file" and path not in snapshot.files:
            found.append(_document(path, file)._replace(known=False))
        elif name.inside is not None:
            found.append(_document(path + "/", file)._replace(known=False, unlisted=True))
    return found


def _document(path: str, file: SnapshotFile) -> _Document:
    parts = path.split("/")
    folders = tuple("/".join(parts[:end]) for end in range(1, len(parts)))
    text = file.text[1:] if file.text.startswith("\ufeff") else file.text
    return _Document(path, file, text, folders)


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(folder + "/")


def _dotted(name: str) -> bool:
    return name.startswith(".") and name not in (".", "..")


def _hidden_parts(path: str, root: _Root) -> int:
    """Count the hidden components of a path below the root."""
    return sum(1 for part in path[len(root.rel) :].split("/") if _dotted(part))


def _in_hidden_folder(document: _Document, root: _Root) -> bool:
    below = document.path[len(root.rel) :].rpartition("/")[0]
    return "." in below and any(map(_dotted, below.split("/")))


def _is_pruned(document: _Document) -> bool:
    return any(part in _PRUNED for part in document.path.split("/")[:-1])


def _buried_folders(documents: Sequence[_Document]) -> frozenset[str]:
    """Guess which folders are ignored as folders.

    A snapshot says of each file whether it is ignored, not by which rule.  A folder of which every file is ignored
    counts as ignored itself, unless all of them carry endings that are ignored in other folders, too.
    """
    alive = {folder for d in documents if not d.file.ignored for folder in d.folders}
    ignored = [d for d in documents if d.file.ignored]
    by_name = {_suffix(d.path) for d in ignored if not d.folders or d.folders[-1] in alive}
    endings: dict[str, set[str]] = {}
    for document in ignored:
        for folder in document.folders:
            if folder not in alive:
                endings.setdefault(folder, set()).add(_suffix(document.path))
    return frozenset(folder for folder, found in endings.items() if not found <= by_name)


def _override(glob: str) -> GlobRule:
    rule = GlobRule.read(glob)
    if rule is None:
        raise Miss(f"the glob {glob!r} is not one that every ripgrep reads")
    return rule


def _shell_glob(pattern: str) -> Callable[[str], bool]:
    """Compile a glob the way `find -name` and `grep --include` read it."""
    if "\\" in pattern or "[:" in pattern or "[^" in pattern:
        raise Miss(f"the glob {pattern!r} is beyond what a replay reads")
    return re.compile(fnmatch.translate(pattern)).match  # type: ignore[return-value]


# --- what a recording gives away ---------------------------------------------

#: What an answer is made of: its tool, its keys, whether it was cut, and whether text follows the JSON.
_Shape = tuple[str, frozenset[str], bool, bool]

#: Forms of an answer that are the same in every version that is known.
_COMMON: frozenset[_Shape] = frozenset(
    ("search_files", frozenset({"total_count", *more}), False, False)
    for more in ((), ("matches",), ("matches_format", "matches_text"), ("files",), ("counts",))
)


def _shape_of(tool: str, result: Any) -> _Shape | None:
    """The form of a tool's answer, or None if it is no JSON object."""
    try:
        value, end = json.JSONDecoder().raw_decode(result)
    except (TypeError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return tool, frozenset(value), bool(value.get("truncated")), bool(result[end:].strip())


def learn_shapes(calls: Iterable[Call]) -> frozenset[_Shape | None]:
    """Return the forms of the recorded answers: `learned["shapes"]`."""
    return frozenset(_shape_of(call.tool, call.result) for call in calls)
