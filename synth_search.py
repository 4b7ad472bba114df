"""Answers a search or a read from the snapshot, as the live tool would have.

It never touches a disk, never starts a process and never asks Hermes: the
files are those of the snapshot, the rules are those of the Hermes that made
the recording.  What the snapshot cannot know ends in `Miss`; nothing is
guessed to please a model.
"""

from __future__ import annotations

import fnmatch
import json
import math
import re
import threading
import time
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, NoReturn, Sequence

from .cassette_store import Call, Recorder, Snapshot, SnapshotFile, hermes_release
from .snapshot import Workspace

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


class _F19:
    """Hermes 0.19: how it words its answers, and what a later family changes.

    Measured on 0.19.0, 0.20.1 and 0.22.2; a newer version is taken for 0.22
    until someone measures it.
    """

    name = "0.19"
    read_limit = 500  #: lines when the call names no limit
    phantom = True  #: a final newline opens one more, empty line
    cut = False  #: lines pass `cut`, which ends each with a newline
    counts_last = False  #: a last line without newline counts as a line
    speaks = False  #: empty pages explain themselves
    not_found = False  #: every read carries `not_found`
    blank_path = False  #: a blank search path means "."
    documents = _OFFICE  #: endings that `read_file` converts first
    multiline = False  #: `\\n` in a pattern switches rg to multiline
    probes = ""  #: after no hit: "", "plain" or "paths"
    splits = ""  #: a missing path is several: "", "any" or "commas"
    grep = "grep-bre"  #: dialect when ripgrep is missing
    grep_root = "typed"  #: "typed", "absolute" or "pruned"
    find = "files"  #: file listing: "files" or "entries"
    hint_inside = False  #: the truncation remark is a key of the JSON
    columns = 0  #: bytes of one row that are printed; 0: all


class _F20(_F19):
    """Hermes 0.20."""

    name = "0.20"
    cut = speaks = multiline = True
    documents = _ANY_DOCUMENT
    probes = "plain"
    splits = "any"
    grep = "grep-ere"
    grep_root = "absolute"


class _F22(_F20):
    """Hermes 0.22."""

    name = "0.22"
    read_limit = 2000
    phantom = False
    counts_last = not_found = blank_path = hint_inside = True
    documents = _ANY_DOCUMENT | _DATABASES
    probes = "paths"
    splits = "commas"
    grep_root = "pruned"
    find = "entries"
    columns = 2000


#: Hermes versions that word their answers alike; a class to read from, never made.
Family = type[_F19]
_FAMILIES = {family.name: family for family in (_F19, _F20, _F22)}


def _family(hermes: str, learned: Mapping[str, Any] | None = None) -> Family:
    """Choose the table: what the recording shows wins over what it is called."""
    seen = _FAMILIES.get(str((learned or {}).get("family", "")))
    if seen is not None:
        return seen
    version = hermes_release(hermes)
    if version is None or version >= (0, 22):
        return _F22
    return _F20 if version >= (0, 20) else _F19


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
    if family.blank_path and (path is None or isinstance(path, str) and not path.strip()):
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
        order = args.get("order", "discovery") if family.find == "entries" else "discovery"
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


# --- what a recording gives away ---------------------------------------------


def learn(calls: Sequence[Call], snapshot: Snapshot) -> dict[str, Any]:
    """Return what the recorded results prove about the Hermes that gave them.

    :returns: any of `family` (a table's name), `search` ("rg" or "grep") and
        `rg_major` (13 for ripgrep 13 or older, 14 for newer); a fact is left
        out unless every result that speaks of it agrees.
    """
    seen: dict[str, set[Any]] = {"family": set(), "rg_major": set()}
    for call in calls:
        if call.tool == "read_file":
            seen["family"].update(_reads_like(call, snapshot))
        elif call.tool == "search_files":
            error = re.search(r"Search failed: (rg: )?regex parse error", str(call.result)[:4096])
            seen["rg_major"].update({14 if error[1] else 13} if error else ())
    seen["search"] = {learn_search(calls)} - {""}
    return {fact: values.pop() for fact, values in seen.items() if len(values) == 1}


def learn_search(calls: Iterable[Call]) -> str:
    """Return what ran the recorded searches, "rg" or "grep"; "" unless those that tell agree."""
    seen: set[str] = set()
    for call in calls:
        if call.tool == "search_files":
            seen |= _searches_like(call)
    return seen.pop() if len(seen) == 1 else ""


def _reads_like(call: Call, snapshot: Snapshot) -> set[str]:
    """Name the family whose answer to this read is the recorded one, if only one fits."""
    file = snapshot.files.get(str(call.args.get("path", "")))
    try:
        if file is None and '"not_found"' not in call.result:
            return set()
        result = json.loads(call.result)
        if not isinstance(result, dict) or "content" not in result or file is None:
            return {"0.22"} if isinstance(result, dict) and "not_found" in result else set()
    except (TypeError, ValueError):
        return set()
    fits = set()
    for name, family in _FAMILIES.items():
        args = coerce_args("read_file", call.args, name)
        if _read_page(file, args["offset"], args["limit"], family) == result:
            fits.add(name)
    return fits if len(fits) == 1 else set()


def _searches_like(call: Call) -> set[str]:
    """Tell ripgrep from grep by the path form of a content search below "."."""
    if str(call.args.get("path", "."))[:1] != ".":
        return set()
    if call.args.get("target", "content") not in ("content", "grep"):
        return set()
    found = re.search(r'"(?:path|matches_text)": "(\./|/|[A-Za-z]:)', str(call.result))
    return set() if found is None else {"rg" if found[1] == "./" else "grep"}


# --- globs --------------------------------------------------------------------

_BAD_GLOB = "the glob {!r} is not one ripgrep and the replay read alike"


def _glob_regex(glob: str) -> str:
    """Translate a ripgrep glob into a Python regular expression over whole paths."""
    out: list[str] = []
    depth, at = 0, 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**", at):
            piece, at = _double_star(glob, at)
            out.append(piece)
            continue
        if char == "[":
            piece, at = _glob_class(glob, at)
            out.append(piece)
            continue
        if char == "\\":
            at += 1
            if at == len(glob):
                raise Miss(_BAD_GLOB.format(glob))
            out.append(re.escape(glob[at]))
        elif char == "{":
            if depth:
                raise Miss(_BAD_GLOB.format(glob))
            depth += 1
            out.append("(?:")
        elif char == "}":
            if not depth:
                raise Miss(_BAD_GLOB.format(glob))
            depth -= 1
            out.append(")")
        else:
            out.append({"*": "[^/]*", "?": "[^/]", ",": "|" if depth else ","}.get(char, re.escape(char)))
        at += 1
    if depth:
        raise Miss(_BAD_GLOB.format(glob))
    return "".join(out)


def _double_star(glob: str, at: int) -> tuple[str, int]:
    """Translate `**`, which crosses folders only when it is a whole component."""
    end = at
    while end < len(glob) and glob[end] == "*":
        end += 1
    opens = at == 0 or glob[at - 1] == "/"
    if end - at == 2 and opens and glob.startswith("/", end):
        return "(?:.*/)?", end + 1
    if end - at == 2 and opens and end == len(glob):
        return ".*", end
    return "[^/]*", end


def _glob_class(glob: str, at: int) -> tuple[str, int]:
    start = at + 2 if glob[at + 1 : at + 2] in ("!", "^") else at + 1
    end = glob.find("]", start + 1)
    if end < 0 or "[" in glob[start:end] or "\\" in glob[start:end]:
        raise Miss(_BAD_GLOB.format(glob))
    body = re.sub(r"([&~|^])", r"\\\1", glob[start:end])
    return f"(?!/)[{'^' if start == at + 2 else ''}{body}]", end + 1


class _Override:
    """One `--glob` of ripgrep: what it lets in, past every ignore rule, or keeps out."""

    def __init__(self, glob: str) -> None:
        self.keeps_out = glob.startswith("!")
        text = glob[1:] if self.keeps_out else glob
        text = text if text.endswith("\\ ") else text.rstrip()
        self.folders_only = text.endswith("/")
        text = text.rstrip("/") if self.folders_only else text
        if not text or text.startswith("#"):
            raise Miss(_BAD_GLOB.format(glob))
        if text.startswith("/"):
            text = text[1:]
        elif "/" not in text:
            text = "**/" + text
        if text.endswith("/**"):
            text += "/*"
        try:
            self._regex = re.compile(_glob_regex(text), re.DOTALL)
        except re.error:
            raise Miss(_BAD_GLOB.format(glob)) from None

    def verdict(self, path: str, folder: bool) -> bool | None:
        """Say whether `path` is let in (True), kept out (False) or left to other rules."""
        if (folder or not self.folders_only) and self._regex.fullmatch(path):
            return not self.keeps_out
        return None if folder or self.keeps_out else False


def _shell_glob(pattern: str) -> Callable[[str], bool]:
    """Compile a glob the way `find -name` and `grep --include` read it."""
    if "\\" in pattern or "[:" in pattern or "[^" in pattern:
        raise Miss(f"the glob {pattern!r} is beyond what a replay reads")
    return re.compile(fnmatch.translate(pattern)).match  # type: ignore[return-value]


# --- read_file ------------------------------------------------------------------

#: Endings that `read_file` refuses by name alone.
_BINARY = frozenset(
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


def _suffix(path: str) -> str:
    """Return the ending of the last path component, "" for a dot-file's name."""
    name = re.split(r"[/\\]", path)[-1].lstrip(".")
    return "." + name.rsplit(".", 1)[1].lower() if "." in name else ""


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


def _cut_line(line: str) -> str:
    """Cut a line to the bytes that reach `read_file` at all."""
    if len(line) <= LINE_LIMIT:
        return line
    return line.encode("utf-8", "surrogatepass")[: 4 * LINE_LIMIT + 1].decode("utf-8", "replace")


def _split_lines(text: str) -> list[str]:
    """Split at newlines only; a final newline opens no further line."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _page_text(lines: Sequence[str], ends: bool, offset: int, end: int, family: Family) -> str:
    """Return lines `offset` to `end` as the live tool's shell prints them."""
    page = lines[offset - 1 : end]
    if family.cut:
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


def _read_page(
    file: SnapshotFile, offset: int, limit: int, family: Family, lines: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the decoded answer to one `read_file` call.

    :param lines: the file's lines when the caller has them at hand.
    """
    lines = _split_lines(file.text) if lines is None else lines
    ends = not file.text or file.text.endswith("\n")
    end = offset + limit - 1
    total = len(lines) - (0 if ends or family.counts_last else 1)
    truncated = total > end
    text = _page_text(lines, ends, offset, end, family)
    if family.cut and not truncated and not ends and text.endswith("\n"):
        text = text[:-1]
    out: dict[str, Any] = {"content": "", "total_lines": total, "file_size": file.size, "truncated": False}
    if family.speaks and file.size == 0:
        out["hint"] = "File is empty (0 bytes)."
    elif family.speaks and offset > total > 0:
        out["hint"] = (
            f"Note: offset {offset} is beyond the end of the file ({total} lines total). Retry with offset <= {total}."
        )
    else:
        shown = text[:-1] if not family.phantom and text.endswith("\n") else text
        out.update(content=_numbered(shown, offset), truncated=truncated)
        if not family.phantom and any(len(line) > LINE_LIMIT for line in text.split("\n")):
            out["truncated_lines"] = True
        if truncated:
            out["hint"] = f"Use offset={end + 1} to continue reading (showing {offset}-{end} of {total} lines)"
    out.update(is_binary=False, is_image=False)
    if family.not_found:
        out["not_found"] = False
    _fit_budget(out, offset)
    _add_remarks(out, limit, family)
    return out


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
    if family.not_found:
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


# === patterns: which lines ripgrep or GNU grep would find ===================================
#
# No process, no thread and no `re` over the texts here: the pattern is parsed in the live
# tool's own dialect, and the lines run through a lazily built automaton.  Its time is linear
# in the text, so no pattern can hang the host; and what is not certain to be read as the live
# tool reads it is refused (`Untranslatable`) instead of guessed.

# --- errors --------------------------------------------------------------------------------------


class PatternError(Exception):
    """The live tool refuses this pattern; `message` is what its answer says after "Search failed: ".

    `exact` is False where the text also depends on how the tool was built (PCRE2 or not).
    """

    def __init__(self, message: str, *, exact: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.exact = exact


class Untranslatable(Exception):
    """The pattern, or the pattern on this text, may mean something else to the live tool."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TooSlow(Exception):
    """The search did not end within its seconds."""


# --- values: the parsed pattern ------------------------------------------------------------------

Test = Callable[[str], bool]  # does this one character belong to the set?


class Leaf(NamedTuple):
    """One character out of a set; `char` when the set is one letter (`folded`: in either case)."""

    test: Test
    char: str = ""
    folded: bool = False


class Cat(NamedTuple):
    parts: tuple[Node, ...]


class Alt(NamedTuple):
    branches: tuple[Node, ...]


class Rep(NamedTuple):
    """`body` from `low` to `high` times (None: no bound)."""

    body: Node
    low: int
    high: int | None
    greedy: bool


class Look(NamedTuple):
    """An assertion: ^ $ A z, or the word tests b B < > and the half tests l r."""

    kind: str
    unicode: bool = True


Node = Leaf | Cat | Alt | Rep | Look
EMPTY = Cat(())


class Matcher(NamedTuple):
    """A pattern that is understood. Immutable, so threads may share it.

    `literal` is the text looked for when the pattern is nothing else, otherwise None;
    `multiline` is True when a match may span lines; `needles` are strings of which every match
    contains one (empty: nothing known), to be compared in lower case if `folded`; `sure` says that
    a line with a needle matches; `spare` are needles too, which may be the rarer ones in a text.
    """

    node: Node
    literal: str | None
    multiline: bool
    needles: tuple[str, ...]
    folded: bool
    sure: bool
    ascii_only: str  # why a text with other characters cannot be judged; "" when it can
    word: Test
    spare: tuple[str, ...] = ()


# --- public functions ----------------------------------------------------------------------------

DIALECTS = ("rg", "grep-bre", "grep-ere")


def compile_pattern(
    pattern: str,
    dialect: str,
    *,
    multiline: bool = False,
    ignore_case: bool = False,
    rg_major: int | None = None,
    utf8: bool = True,
) -> Matcher:
    """Read `pattern` as the live tool would.

    :param dialect: "rg", "grep-bre" (`grep`) or "grep-ere" (`grep -E`), GNU grep in both cases.
    :param multiline: rg ran with `--multiline`.
    :param ignore_case: rg ran with `-i`.
    :param rg_major: major version of rg. None: unknown, so only what 13 and 14 or newer agree on.
    :param utf8: the tool's locale (grep only) is a UTF-8 one; otherwise only ASCII texts are judged.
    :raises PatternError: if the live tool would refuse the pattern.
    :raises Untranslatable: if it is not certain what the live tool would find.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"unknown dialect {dialect!r}: expected one of {', '.join(DIALECTS)}")
    if "\0" in pattern or any("\ud800" <= c <= "\udfff" for c in pattern):
        raise Untranslatable("the pattern holds a NUL or half a surrogate pair")
    if dialect == "rg":
        parser = _read_rust(pattern, rg_major, multiline, ignore_case)
        return _matcher(parser.node, multiline, parser.ascii_only, _unicode_word)
    if multiline or ignore_case:
        raise Untranslatable("Hermes runs grep without such flags")
    node = _read_grep(pattern, extended=dialect == "grep-ere")
    return _matcher(node, False, "" if utf8 else "grep's locale is not known to be UTF-8", _glibc_word)


# --- helpers: sets of characters -----------------------------------------------------------------

_ASCII_CLASSES = {
    "alpha": "az AZ",
    "digit": "09",
    "alnum": "az AZ 09",
    "upper": "AZ",
    "lower": "az",
    "word": "az AZ 09 __",
    "xdigit": "09 af AF",
    "punct": "!/ :@ [` {~",
    "graph": "!~",
    "ascii": "\0\x7f",
}
_ASCII_SETS = {
    name: frozenset(chr(n) for span in spec.split() for n in range(ord(span[0]), ord(span[1]) + 1))
    for name, spec in _ASCII_CLASSES.items()
}
_ASCII_SETS |= {
    "blank": frozenset(" \t"),
    "space": frozenset(" \t\n\v\f\r"),
    "print": _ASCII_SETS["graph"] | {" "},
    "cntrl": frozenset(map(chr, range(32))) | {"\x7f"},
}
_WHITE_SPACE = frozenset({*" \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000", *map(chr, range(0x2000, 0x200B))})
#: Circled and squared letters: Alphabetic to Unicode though their category is a symbol.
_OTHER_ALPHABETIC = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
_CATEGORIES = {
    "letter": "L",
    "uppercaseletter": "Lu",
    "lowercaseletter": "Ll",
    "titlecaseletter": "Lt",
    "modifierletter": "Lm",
    "otherletter": "Lo",
    "mark": "M",
    "nonspacingmark": "Mn",
    "spacingmark": "Mc",
    "enclosingmark": "Me",
    "number": "N",
    "decimalnumber": "Nd",
    "letternumber": "Nl",
    "othernumber": "No",
    "punctuation": "P",
    "symbol": "S",
    "mathsymbol": "Sm",
    "currencysymbol": "Sc",
    "modifiersymbol": "Sk",
    "othersymbol": "So",
    "separator": "Z",
    "spaceseparator": "Zs",
    "connectorpunctuation": "Pc",
    "control": "Cc",
}
_CATEGORIES |= {short.lower(): short for short in _CATEGORIES.values()}
del _CATEGORIES["sc"]  # "Script" to older versions


def _category(char: str) -> str:
    """Return the general category, which all versions of the live tool have to agree on."""
    category = unicodedata.category(char)
    if category == "Cn" or bisect_right(_NEWER, ord(char)) % 2:
        raise Untranslatable(f"the class of U+{ord(char):04X} depends on the tool's Unicode version")
    return category


def _unicode_word(char: str) -> bool:
    """Tell whether Rust's `\\w` has `char` (Python's differs: marks, and numbers such as `²`)."""
    if char < "\x80":
        return char in _ASCII_SETS["word"]
    category = _category(char)
    return (
        category[0] in "LM"
        or category in ("Nd", "Nl", "Pc")
        or char in "\u200c\u200d"
        or any(a <= ord(char) <= b for a, b in _OTHER_ALPHABETIC)
    )


def _unicode_digit(char: str) -> bool:
    return char in _ASCII_SETS["digit"] if char < "\x80" else _category(char) == "Nd"


def _glibc_word(char: str) -> bool:
    """Tell whether GNU grep's `\\w` has `char`, where the C libraries cannot but agree."""
    if char < "\x80":
        return char in _ASCII_SETS["word"]
    category = _category(char)
    if category in ("Lu", "Ll", "Lo"):
        return True
    if category[0] in "PSZ" and not any(a <= ord(char) <= b for a, b in _OTHER_ALPHABETIC):
        return False
    raise Untranslatable(f"grep's class of U+{ord(char):04X} depends on the C library")


def _glibc_class(name: str) -> Test:
    """Return the set `[:name:]` of GNU grep, sure of what no C library can but do."""
    ascii_set = _ASCII_SETS[name]

    def test(char: str) -> bool:
        if char < "\x80" or name in ("digit", "xdigit"):
            return char in ascii_set
        if name in ("alpha", "alnum") or (name in ("upper", "lower") and not _glibc_word(char)):
            return _glibc_word(char)
        raise Untranslatable(f"whether [:{name}:] holds U+{ord(char):04X} depends on the C library")

    return test


def _glibc_range(first: str, last: str) -> Test:
    """Return a range of ASCII letters or digits, among which some locales sort other Latin letters."""

    def test(char: str) -> bool:
        sorted_apart = _category(char)[0] in "PSZ" or "\u3000" < char < "\ua000"
        if char >= "\x80" and (
            not sorted_apart
            or any(map(str.isalnum, unicodedata.normalize("NFKD", char)))
            and not "\u3400" <= char < "\ua000"
        ):
            raise Untranslatable(f"whether a range holds U+{ord(char):04X} depends on the locale")
        return first <= char <= last

    return test


def _not(test: Test) -> Test:
    return lambda char: not test(char)


def _any(tests: Sequence[Test]) -> Test:
    return tests[0] if len(tests) == 1 else lambda char: any(test(char) for test in tests)


def _range(first: str, last: str) -> Test:
    return lambda char: first <= char <= last


@lru_cache(maxsize=1)
def _fold_orbits() -> dict[str, tuple[str, ...]]:
    """Map each character that has case to all that are equal to it under simple case folding."""
    orbits: dict[str, list[str]] = {}
    for char in map(chr, [*range(0xD800), *range(0xE000, 0x1F000)]):
        folded = char.casefold()
        if len(folded) > 1:  # the full folding is longer; the simple one, if any, is the lower case
            folded = char.lower() if len(char.lower()) == 1 else char
        if folded != char:
            orbits.setdefault(folded, [folded]).append(char)
    return {char: tuple(orbit) for orbit in orbits.values() for char in orbit}


def _folding(test: Test, unicode: bool) -> Test:
    """Return the set closed under case: Unicode's simple folding, or ASCII's."""

    def closed(char: str) -> bool:
        if not unicode:
            return test(char) or (char < "\x80" and test(char.swapcase()))
        if char in "\u0390\u1fd3\u03b0\u1fe3\ufb05\ufb06":
            raise Untranslatable(f"the case of U+{ord(char):04X} depends on the tool's Unicode version")
        return any(test(other) for other in _fold_orbits().get(char, (char,)))

    return closed


#: Characters that are new, or of another category, in Unicode 14 to 17 as against 13, as hexadecimal
#: borders: a code point with an odd number of borders at or below it is one of them.
_NEWER = tuple(
    int(border, 16)
    for border in (
        "61d 61e 870 8a0 8b5 8b6 8c8 8d3 c3c c3d c5d c5e cdd cde cf3 cf4 ece ecf 170d 170e 1715 1720 1734 "
        "1735 180f 1810 1ac1 1acf 1b4c 1b50 1b7d 1b80 1c89 1c8b 1dfa 1dfb 20c0 20c1 2427 242a 2c2f 2c30 2c5f "
        "2c60 2e53 2e5e 2ffc 3000 31e4 31f0 9ffd a000 a7c0 a7c2 a7cb a7f5 fbc2 fbc3 fd40 fd50 fdcf fdd0 fdfe "
        "fe00 10570 105f4 10780 107bb 10d40 113e3 116b9 11747 11ab0 11bfa 11f00 11f5b 12f90 12ff3 1342f 143fb "
        "16100 1613a 16a70 16aca 16d40 16d7a 18cff 18d00 1aff0 1b156 1cc00 1cfc4 1d1e9 1d2d4 1df00 1e090 "
        "1e290 1e2af 1e4d0 1e7ff 1f6dc 1f6e0 1f774 1f780 1f7d9 1f7da 1f7f0 1f7f1 1f8b2 1f8c2 1f979 1f97a "
        "1f9cc 1f9cd 1fa75 1fa78 1fa7b 1fa7d 1fa87 1fa90 1faa9 1fab0 1fab7 1fac0 1fac3 1fad0 1fad7 1faf9 "
        "1fbcb 1fbf0 2a6de 2a6e0 2b735 2b73a 2ebf0 2ee5e 31350 323b0 "
    ).split()
)


# --- helpers: ripgrep's dialect ------------------------------------------------------------------

_PCRE2 = "\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around."
_NEWLINE_NEW = (
    'rg: the literal "\\n" is not allowed in a regex\n'
    "Consider enabling multiline mode with the --multiline flag (or -U for short).\n"
    "When multiline mode is enabled, new line characters can be matched."
)
_NEWLINE_OLD = _NEWLINE_NEW.removeprefix("rg: ").replace('"\\n"', "'\"\\n\"'")
_META = frozenset("\\.+*?()|[]{}^$#&-~")
_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_PERL = {"d": "digit", "s": "space", "w": "word"}
_HEX = frozenset("0123456789abcdefABCDEF")
_BOUNDARIES = {"start": "<", "end": ">", "start-half": "l", "end-half": "r"}
_BOUNDARY_START = (*map(chr, range(65, 91)), *map(chr, range(97, 123)), "-")


def _read_rust(pattern: str, major: int | None, multiline: bool, ignore_case: bool) -> _Rust:
    """Parse for one version, or for both families where the version is unknown."""
    if major is not None:
        return _Rust(pattern, major, multiline, ignore_case)
    try:
        _Rust(pattern, 13, multiline, ignore_case)
        return _Rust(pattern, 14, multiline, ignore_case)
    except PatternError as error:
        raise Untranslatable("what rg says to this pattern depends on its version") from error


class _Rust:
    """Parser of the `regex` crate's syntax; positions and messages are those of its own parser."""

    def __init__(self, pattern: str, major: int, multiline: bool, ignore_case: bool) -> None:
        self.old = major < 14
        self.shown = pattern if self.old else f"(?:{pattern})"  # newer versions parse, and show, it so
        self.pos = 0
        self.flags = {"i": ignore_case, "m": True, "s": False, "U": False, "u": True, "x": False}
        self.multiline = multiline
        self.ascii_only = ""
        self.newline = False
        self.samples: set[str] = set()  # characters beyond ASCII that sets were written with
        self.names: dict[str, tuple[int, int]] = {}
        self.depth = 0
        self.node = self._alternation()
        if self.pos < len(self.shown):
            self._fail("unopened group", self.pos, self.pos + 1)
        if self.newline and not multiline and "|" in self.shown:
            raise Untranslatable("whether a newline among alternatives is an error depends on what rg makes of them")
        if self.newline and not multiline:  # found by the live tool, too, after it has parsed all
            raise PatternError(_NEWLINE_OLD if self.old else _NEWLINE_NEW)

    # Reading. At the end `char` is "", which is in no set of characters but in every string.

    @property
    def char(self) -> str:
        return self.shown[self.pos : self.pos + 1]

    def _bump(self, *, space: bool = True) -> bool:
        """Step over one character, and over space where the x flag says so; False at the end."""
        self.pos += 1
        if space:
            self._space()
        return self.pos < len(self.shown)

    def _space(self) -> None:
        while self.flags["x"] and self.char:
            if self.char.isspace():
                self.pos += 1
            elif self.char == "#":
                end = self.shown.find("\n", self.pos)
                self.pos = len(self.shown) if end < 0 else end + 1
            else:
                return

    def _take(self, text: str) -> bool:
        if not self.shown.startswith(text, self.pos):
            return False
        self.pos += len(text)
        return True

    def _fail(self, message: str, start: int, end: int, also: tuple[int, int] | None = None) -> NoReturn:
        """Raise the live tool's error with its marks under the pattern.

        :param also: a second stretch to mark, the first use of what is given twice.
        """
        if "\n" in self.shown:
            raise Untranslatable("the tool's message about a pattern of several lines is not kept by the host")
        marks = [" "] * (len(self.shown) + 1)
        for first, last in filter(None, ((start, end), also)):
            marks[first : max(last, first + 1)] = "^" * max(last - first, 1)
        pcre2 = message.startswith(("look-around", "backreferences"))
        raise PatternError(
            f"{'' if self.old else 'rg: '}regex parse error:\n    {self.shown}\n"
            f"    {''.join(marks).rstrip()}\nerror: {message}{_PCRE2 if pcre2 else ''}",
            exact=not pcre2,
        )

    # Structure.

    def _alternation(self) -> Node:
        """Read up to the `)` of this group, or to the end."""
        branches: list[Node] = []
        while True:
            branches.append(self._concatenation())
            if self.char != "|":
                return branches[0] if len(branches) == 1 else Alt(tuple(branches))
            self.pos += 1

    def _concatenation(self) -> Node:
        parts: list[Node | None] = []  # None: flags, which cannot be repeated
        while True:
            self._space()
            char = self.char
            if not char or char in "|)":
                kept = tuple(part for part in parts if part is not None)
                return kept[0] if len(kept) == 1 else Cat(kept)
            if char == "(":
                parts.append(self._group())
            elif char in "*+?":
                parts.append(self._repeat(parts, {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]))
            elif char == "{":
                parts.append(self._repeat(parts, None))
            elif char == "[":
                parts.append(self._set_leaf(self._bracket()))
            else:
                parts.append(self._primitive())

    def _group(self) -> Node | None:
        start = self.pos
        self._bump()
        for prefix in ("?=", "?!", "?<=", "?<!"):
            if self._take(prefix):
                self._fail("look-around, including look-ahead and look-behind, is not supported", start, self.pos)
        saved = dict(self.flags)
        inner = self.pos
        if self._take("?P<") or (not self.old and self._take("?<")):
            self._name()
        elif self._take("?"):
            if not self.char:
                self._fail("unclosed group", start, start + 1)
            if self._flags() == ")":
                if self.pos - inner == 2:
                    self._fail("repetition operator missing expression", inner, inner)
                return None
        self.depth += 1
        if self.depth > 60:
            raise Untranslatable("groups are nested too deeply")
        node = self._alternation()
        if not self.char:
            self._fail("unclosed group", start, start + 1)
        self.pos += 1
        self.depth -= 1
        self.flags = saved
        return node

    def _flags(self) -> str:
        """Read and set flags up to the `:` or `)` that ends them, and return that."""
        seen: dict[str, int] = {}
        value = True
        while self.char not in (":", ")"):
            char = self.char
            if char != "-" and char not in self.flags:
                if char == "R" and not self.old:
                    raise Untranslatable("the R flag")
                self._fail("unrecognized flag", self.pos, self.pos + 1)
            if char in seen:
                self._fail(
                    "flag negation operator repeated" if char == "-" else "duplicate flag",
                    self.pos,
                    self.pos + 1,
                    (seen[char], seen[char] + 1),
                )
            seen[char] = self.pos
            value = value and char != "-"
            if not self._bump(space=False):
                self._fail("expected flag but got end of regex", self.pos, self.pos)
        if seen and max(seen, key=seen.__getitem__) == "-":
            self._fail("dangling flag negation operator", seen["-"], seen["-"] + 1)
        for char, at in seen.items():
            if char != "-":
                self.flags[char] = at < seen.get("-", len(self.shown))
        self.pos += 1
        return self.shown[self.pos - 1]

    def _name(self) -> None:
        start = self.pos
        while self.char and self.char != ">":
            char = self.char
            if not char.isascii():
                raise Untranslatable("a group name beyond ASCII")
            if not (char.isalpha() or char == "_" or (self.pos > start and (char.isdigit() or char in ".[]"))):
                self._fail("invalid capture group character", self.pos, self.pos + 1)
            self.pos += 1
        if not self.char:
            self._fail("unclosed capture group name", self.pos, self.pos)
        name = self.shown[start : self.pos]
        if not name:
            self._fail("empty capture group name", start, start)
        if name in self.names:
            self._fail("duplicate capture group name", start, self.pos, self.names[name])
        self.names[name] = (start, self.pos)
        self.pos += 1

    def _repeat(self, parts: list[Node | None], bounds: tuple[int, int | None] | None) -> Node:
        """Apply an operator to the part before it; `bounds` is None for the counted one."""
        start = self.pos
        body = parts.pop() if parts else None
        if body is None:
            self._fail("repetition operator missing expression", start, start)
        counted = bounds is None
        low, high = self._count(start) if bounds is None else bounds
        greedy = not self.flags["U"]
        if self._bump(space=counted) and self.char == "?":
            greedy = not greedy
            self.pos += 1
        if high is not None and low > high:
            self._fail("invalid repetition count range, the start must be <= the end", start, self.pos)
        if high == 0 and not (isinstance(body, Leaf) and body.char > "\n"):
            raise Untranslatable("a repetition of nothing")
        return Rep(body, low, high, greedy)

    def _count(self, start: int) -> tuple[int, int | None]:
        """Read `{n`, `{n,` or `{n,m` and stop at the `}`."""
        if not self._bump():
            self._fail("unclosed counted repetition", start, self.pos)
        low = self._decimal()
        high: int | None = low
        if self.char == ",":
            if not self._bump():
                self._fail("unclosed counted repetition", start, self.pos)
            high = None if self.char == "}" else self._decimal()
        if self.char != "}":
            self._fail("unclosed counted repetition", start, self.pos)
        return low, high

    def _decimal(self) -> int:
        while self.char.isspace():
            self.pos += 1
        start = self.pos
        digits = ""
        while self.char and self.char in "0123456789":
            digits += self.char
            self._bump()
        end = self.pos
        while self.char.isspace():
            self._bump()
        if not digits:
            self._fail("repetition quantifier expects a valid decimal", start, end)
        if int(digits) >= 1 << 32:
            self._fail("decimal literal invalid", start, end)
        return int(digits)

    # One position of the text.

    def _primitive(self) -> Node:
        char = self.char
        if char == "\\":
            item = self._escape()
            if isinstance(item, Look):
                return item
            return self._char_leaf(item) if isinstance(item, str) else self._set_leaf(item)
        self.pos += 1
        if char == ".":
            self._bytes_too()
            return self._set_leaf((lambda _: True) if self.flags["s"] else "\n".__ne__)
        if char in "^$":
            return Look(char if self.flags["m"] else {"^": "A", "$": "z"}[char])
        return self._char_leaf(char)

    def _bytes_too(self) -> None:
        if not self.flags["u"]:
            self.ascii_only = "the pattern matches bytes, by (?-u)"

    def _char_leaf(self, char: str) -> Node:
        self.newline |= char == "\n"
        if char >= "\x80" and not self.flags["u"]:
            raise Untranslatable("a character beyond ASCII without the u flag")
        if not self.flags["i"] or not char.isalpha():
            return Leaf(char.__eq__, char)
        self._settled(char)
        return Leaf(_folding(char.__eq__, self.flags["u"]), char.lower() if char.isascii() else "", char.isascii())

    def _settled(self, char: str) -> None:
        if char >= "\x80":
            _category(char)

    def _set_leaf(self, test: Test) -> Leaf:
        """Make a leaf of a set, which must hold more than a newline."""
        if not any(test(char) for char in (*map(chr, range(128)), *self.samples) if char != "\n"):
            raise Untranslatable("a class that may be empty, or nothing but a newline")
        if self.multiline:
            return Leaf(test)
        return Leaf(lambda char: char != "\n" and test(char))

    def _escape(self) -> str | Test | Look:
        """Read an escape: a character, a set or an assertion."""
        start = self.pos
        if not self._bump(space=False):
            self._fail("incomplete escape sequence, reached end of pattern prematurely", start, self.pos)
        char = self.char
        if char in "0123456789":
            self._fail("backreferences are not supported", start, self.pos + 1)
        if char in "xuU":
            return self._hex({"x": 2, "u": 4, "U": 8}[char])
        if char in "pP":
            return self._property(start)
        self.pos += 1
        if char.lower() in _PERL:
            return self._perl(char)
        if char in _META or (char == " " and self.flags["x"]):
            return char
        if not self.old and char.isascii() and not char.isalnum() and char not in "<>":
            return char
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in "AzbB" or (not self.old and char in "<>"):
            return self._assertion(char)
        self._fail("unrecognized escape sequence", start, self.pos)

    def _assertion(self, char: str) -> Look:
        kind = char
        following = self.shown[self.pos : self.pos + 2]
        if char == "b" and not self.old and following[:1] == "{" and following[1:] in _BOUNDARY_START:
            end = self.shown.find("}", self.pos)
            if self.shown[self.pos + 1 : end] not in _BOUNDARIES:
                raise Untranslatable("a word boundary of an unknown kind")
            kind = _BOUNDARIES[self.shown[self.pos + 1 : end]]
            self.pos = end + 1
        if kind in "Blr":
            self._bytes_too()
        return Look(kind, self.flags["u"])

    def _perl(self, char: str) -> Test:
        name = _PERL[char.lower()]
        test: Test = _ASCII_SETS[name].__contains__
        if self.flags["u"]:
            test = {"digit": _unicode_digit, "space": _WHITE_SPACE.__contains__, "word": _unicode_word}[name]
        if char.islower():
            return test
        self._bytes_too()
        return _not(test)

    def _hex(self, digits: int) -> str:
        early = "incomplete escape sequence, reached end of pattern prematurely"
        if not self._bump():
            self._fail(early, self.pos, self.pos)
        start = self.pos
        braced = self.char == "{"
        read = ""
        while not braced and len(read) < digits:
            if read and not self._bump():
                self._fail(early, self.pos, self.pos)
            read += self._hex_digit()
        while braced and self._bump() and self.char != "}":
            read += self._hex_digit()
        if braced and not self.char:
            self._fail(early, start, self.pos)
        end = self.pos
        self._bump()
        if not read:
            self._fail("hexadecimal literal empty", start, self.pos)
        value = int(read, 16)
        if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            self._fail("hexadecimal literal is not a Unicode scalar value", start + braced, end if braced else self.pos)
        if value == 0:
            raise Untranslatable("a NUL in the pattern")
        return chr(value)

    def _hex_digit(self) -> str:
        if self.char not in _HEX:
            self._fail("invalid hexadecimal digit", self.pos, self.pos + 1)
        return self.char

    def _property(self, start: int) -> Test:
        negated = self.char == "P"
        early = "incomplete escape sequence, reached end of pattern prematurely"
        if not self._bump():
            self._fail(early, self.pos, self.pos)
        name = self.char
        if name == "{":
            name = ""
            while self._bump() and self.char != "}":
                name += self.char
            if not self.char:
                self._fail(early, self.pos, self.pos)
        self.pos += 1
        if not self.flags["u"]:
            raise Untranslatable("a Unicode class without the u flag")
        test = self._property_test("".join(c for c in name.lower() if c not in "_- "))
        if self.flags["i"]:
            test = _folding(test, True)
        return _not(test) if negated else test

    def _property_test(self, name: str) -> Test:
        if name in ("any", "ascii"):
            return (lambda _: True) if name == "any" else "\x80".__gt__
        short = _CATEGORIES.get(name.removeprefix("gc=").removeprefix("generalcategory="))
        if short is None:
            raise Untranslatable(f"the Unicode class {name!r}")
        return lambda char: _category(char).startswith(short)

    # Bracketed sets.

    def _bracket(self) -> Test:
        """Read `[...]` with its nested sets and its set operations."""
        start = self.pos
        self.depth += 1
        if self.depth > 60:
            raise Untranslatable("classes are nested too deeply")
        negated, tests = self._bracket_open(start)
        opened = self.pos
        left: Test | None = None
        operator = ""
        while True:
            self._space()
            pair = self.shown[self.pos : self.pos + 2]
            if not self.char:
                self._fail("unclosed character class", start, opened)
            elif self.char == "[":
                tests.append(self._posix() or self._bracket())
            elif self.char == "]" or pair in ("&&", "--", "~~"):
                left = self._combine(left, operator, tests)
                self.pos += 1 if self.char == "]" else 2
                if pair[0] == "]":
                    break
                operator, tests = pair, []
            else:
                tests.append(self._range(start, opened))
        self.depth -= 1
        test = _folding(left, self.flags["u"]) if self.flags["i"] else left
        if negated:
            self._bytes_too()
        return _not(test) if negated else test

    def _bracket_open(self, start: int) -> tuple[bool, list[Test]]:
        """Read `[`, `[^` and the characters that are literal only there."""
        unclosed = "unclosed character class"
        tests: list[Test] = []
        if not self._bump():
            self._fail(unclosed, start, self.pos)
        negated = self.char == "^"
        if negated and not self._bump():
            self._fail(unclosed, start, self.pos)
        while self.char == "-":
            tests.append("-".__eq__)
            if not self._bump():
                self._fail(unclosed, start, start)
        if not tests and self.char == "]":
            tests.append("]".__eq__)
            if not self._bump():
                self._fail(unclosed, start, self.pos)
        return negated, tests

    def _combine(self, left: Test | None, operator: str, tests: list[Test]) -> Test:
        """Apply the set operator to what stands left and right of it (all of equal rank)."""
        right = _any(tests) if tests else (lambda _: False)
        if left is None:
            return right
        one, two = left, right
        if self.flags["i"]:
            one, two = _folding(one, self.flags["u"]), _folding(two, self.flags["u"])
        if operator == "&&":
            return lambda char: one(char) and two(char)
        if operator == "--":
            return lambda char: one(char) and not two(char)
        return lambda char: one(char) != two(char)

    def _posix(self) -> Test | None:
        """Read `[:name:]`; None, and nothing read, when it is not one."""
        end = self.shown.find(":", self.pos + 2)
        if not self.shown.startswith("[:", self.pos) or not self.shown.startswith(":]", end):
            return None
        name = self.shown[self.pos + 2 : end]
        test = _ASCII_SETS.get(name.removeprefix("^"))
        if test is None:
            return None
        self.pos = end + 2
        closed = _folding(test.__contains__, self.flags["u"]) if self.flags["i"] else test.__contains__
        if not name.startswith("^"):
            return closed
        self._bytes_too()
        return _not(closed)

    def _range(self, opening: int, opened: int) -> Test:
        """Read one item of a set, or a range of two."""
        start = self.pos
        first = self._item()
        first_end = self.pos
        self._space()
        if not self.char:
            self._fail("unclosed character class", opening, opened)
        if self.char != "-" or self._after_dash() in ("]", "-"):
            if isinstance(first, Look):
                self._fail("invalid escape sequence found in character class", start, first_end)
            return first.__eq__ if isinstance(first, str) else first
        if not self._bump():
            self._fail("unclosed character class", opening, opened)
        second_start = self.pos
        second = self._item()
        if not isinstance(first, str):
            self._fail("invalid range boundary, must be a literal", start, first_end)
        if not isinstance(second, str):
            self._fail("invalid range boundary, must be a literal", second_start, self.pos)
        if first > second:
            self._fail("invalid character class range, the start must be <= the end", start, self.pos)
        return _range(first, second)

    def _after_dash(self) -> str:
        """Return the character after the `-` at hand, and after space if that is skipped."""
        at = self.pos
        self._bump()
        char = self.char
        self.pos = at
        return char

    def _item(self) -> str | Test | Look:
        if self.char == "\\":
            item = self._escape()
        else:
            item = self.char
            self.pos += 1
        if isinstance(item, str) and item >= "\x80":
            self.samples.add(item)
            if not self.flags["u"]:
                raise Untranslatable("a character beyond ASCII without the u flag")
            if self.flags["i"]:
                self._settled(item)
        return item


# --- helpers: GNU grep's dialects ----------------------------------------------------------------


def _read_grep(pattern: str, *, extended: bool) -> Node:
    """Parse a basic or extended expression; each line of it is one of several to match."""
    parsers = [_Grep(line, extended) for line in pattern.split("\n")]
    errors = list(dict.fromkeys(error for parser in parsers for error in parser.errors))
    if errors and (len(parsers) + len(errors) > 2 or parsers[0].warned):
        raise Untranslatable("what grep would say to the errors in it is not certain")
    if errors:
        raise PatternError(f"grep: {errors[0]}")
    return parsers[0].node if len(parsers) == 1 else Alt(tuple(parser.node for parser in parsers))


class _Grep:
    """Parser of GNU grep's expressions. Where its two matchers (or its versions) differ: refused."""

    def __init__(self, pattern: str, extended: bool) -> None:
        self.text = pattern
        self.extended = extended
        self.pos = 0
        self.depth = 0
        self.errors: list[str] = []
        self.warned = False  # newer versions say something, older ones do not
        self.node = self._alternation()

    def _operator(self, at: int | None = None) -> str:
        """Return the operator at a position, without its backslash; "" for anything else.

        In an extended expression `(` is one and `\\(` is a character; in a basic one it is the
        other way round, but for `*`, which always stands alone.
        """
        at = self.pos if at is None else at
        escaped = self.text.startswith("\\", at)
        char = self.text[at + escaped : at + escaped + 1]
        if (char == "*" and not escaped) or (char and char in "(){|+?" and escaped != self.extended):
            return char
        return ""

    def _skip(self) -> None:
        self.pos += 1 + self.text.startswith("\\", self.pos)

    def _alternation(self) -> Node:
        branches = [self._concatenation()]
        while self._operator() == "|":
            self._skip()
            branches.append(self._concatenation())
        return branches[0] if len(branches) == 1 else Alt(tuple(branches))

    def _concatenation(self) -> Node:
        parts: list[Node] = []
        while self.pos < len(self.text):
            operator = self._operator()
            if operator == "|" or (operator == ")" and self.depth):
                break
            if operator == ")":
                self._unopened()
            elif operator == "(":
                parts.append(self._group())
            elif not self._operates(operator, parts):
                parts.append(self._one(first=not parts))
            elif parts:
                parts.append(self._repeat(operator, parts.pop()))
            else:
                self._warned()
        return parts[0] if len(parts) == 1 else Cat(tuple(parts))

    def _operates(self, operator: str, parts: list[Node]) -> bool:
        """Tell whether an operator repeats something here; otherwise it is a character."""
        if operator == "{":
            return self._counts(parts)
        return bool(operator) and self._repeats(operator, parts)

    def _unopened(self) -> None:
        if self.extended:
            raise Untranslatable("a ) that opens nothing is an error or a character, by version")
        self.errors.append("Unmatched ) or \\)")
        self._skip()

    def _warned(self) -> None:
        """Pass over an operator at the start of an extended expression, which grep ignores."""
        self._skip()
        self.warned = True
        if self._operator() in (")", "|") or self.pos == len(self.text):
            raise Untranslatable("an operator with nothing around it")

    def _group(self) -> Node:
        self._skip()
        self.depth += 1
        if self.depth > 60:
            raise Untranslatable("groups are nested too deeply")
        node = self._alternation()
        if self._operator() != ")":
            self.errors.append("Unmatched ( or \\(")
        self._skip()
        self.depth -= 1
        return node if isinstance(node, (Alt, Cat)) else Cat((node,))

    def _repeats(self, operator: str, parts: list[Node]) -> bool:
        """Tell whether `*`, `+` or `?` is an operator here; otherwise it is a character."""
        if parts and not isinstance(parts[-1], Look):
            return True
        if not parts:
            return self.extended
        if operator == "*" and not self.extended and parts == [Look("^")]:
            return False
        raise Untranslatable(f"a {operator} behind an assertion")

    def _counts(self, parts: list[Node]) -> bool:
        """Tell whether `{` opens an interval; otherwise it is a character."""
        following = self.text[self.pos + 1 : self.pos + 2]
        repeatable = bool(parts) and not isinstance(parts[-1], Look)
        if self._interval() and repeatable:
            return True
        if repeatable and (following == "}" if self.extended else "," not in self.text[self.pos :]):
            closes = self.extended or "\\}" in self.text[self.pos :]
            self.errors.append("Invalid content of \\{\\}" if closes else "Unmatched \\{")
            return False
        # grep's two matchers agree on such a { behind something; which of them reads a pattern that
        # begins with one is certain only without brackets and escapes
        if self.extended and repeatable:
            return False
        if self.extended and following not in tuple("})|,0123456789") and not set(self.text) & set("[\\"):
            return False
        raise Untranslatable("a { that may or may not begin an interval")

    def _interval(self) -> tuple[int, int | None, int] | None:
        """Read `{n}`, `{n,}`, `{,m}` or `{n,m}`: bounds, and the position behind it."""
        close = "}" if self.extended else "\\}"
        start = self.pos + 1 + self.text.startswith("\\", self.pos)
        end = self.text.find(close, start)
        low, comma, high = self.text[start:end].partition(",")
        if end < 0 or (not comma and not low) or not all(not n or (n.isascii() and n.isdigit()) for n in (low, high)):
            return None
        least = int(low or 0)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > 255 or (most is not None and least > most) or most == 0:
            raise Untranslatable("an interval that is large or odd")
        return least, most, end + len(close)

    def _repeat(self, operator: str, body: Node) -> Node:
        if any(isinstance(leaf, Look) for leaf in _leaves(body)):
            raise Untranslatable("a repeated assertion")  # the C library does not always get these right
        if operator != "{":
            self._skip()
            return Rep(body, operator == "+", 1 if operator == "?" else None, True)
        interval = self._interval()
        if interval is None:
            raise Untranslatable("an interval that is not one")
        self.pos = interval[2]
        return Rep(body, interval[0], interval[1], True)

    def _one(self, *, first: bool) -> Node:
        """Read what stands for one position: a character, a set or an assertion."""
        char = self.text[self.pos]
        self.pos += 1
        if char == "[":
            return Leaf(self._bracket())
        if char == ".":
            return Leaf(lambda _: True)
        if (char == "^" and (self.extended or first)) or (char == "$" and (self.extended or self._closes())):
            return Look(char)
        if char == "\\":
            return self._escape()
        return Leaf(char.__eq__, char)

    def _closes(self) -> bool:
        """Tell whether a basic expression, or a part of it, ends here."""
        return self.pos == len(self.text) or self._operator() in ("|", ")")

    def _escape(self) -> Node:
        if self.pos == len(self.text):
            self.errors.append("Trailing backslash")
            return EMPTY
        char = self.text[self.pos]
        self.pos += 1
        if char in "bB<>":
            return Look(char)
        if char in "`'":
            return Look({"`": "^", "'": "$"}[char])
        if char in "wWsS":
            test = _glibc_word if char in "wW" else _glibc_space
            return Leaf(test if char in "ws" else _not(test))
        if char in "123456789":
            raise Untranslatable("a back-reference")
        if char >= "\x80":
            raise Untranslatable(f"an escaped {char!r}")
        self.warned |= char not in "\\.*[]^$/+?(){}|"
        return Leaf(char.__eq__, char)  # a stray backslash is ignored

    def _bracket(self) -> Test:
        """Read `[...]`, in which a backslash is a character."""
        negated = self.text.startswith("^", self.pos)
        start = self.pos = self.pos + negated
        tests: list[Test] = []
        if start == len(self.text):
            raise Untranslatable("a [ at the end")  # an error; its text depends on what stands before
        while not self.text.startswith("]", self.pos) or self.pos == start:
            if self.pos >= len(self.text):
                self.errors.append("Unmatched [, [^, [:, [., or [=")
                break
            tests.append(self._bracket_item())
        body = self.text[start : self.pos]
        if not negated and body[:1] == body[-1:] == ":" and len(body) > 1:
            self.errors.append("character class syntax is [[:space:]], not [:space:]")
        self.pos += 1
        test = _any(tests)
        return _not(test) if negated else test

    def _bracket_item(self) -> Test:
        char = self.text[self.pos]
        if self.text.startswith(("[.", "[="), self.pos):
            raise Untranslatable("a collating element")
        if self.text.startswith("[:", self.pos):
            return self._bracket_class()
        self.pos += 1
        if self.text[self.pos : self.pos + 1] != "-" or self.text[self.pos + 1 : self.pos + 2] in ("]", ""):
            return char.__eq__
        last = self.text[self.pos + 1]
        self.pos += 2
        if self._dash():
            raise Untranslatable("an unusual range")
        if (last == "[" and self.text[self.pos : self.pos + 1] in (".", "=", ":")) or last == "-" or char == "-":
            raise Untranslatable("an unusual range")
        return self._bracket_range(char, last)

    def _dash(self) -> bool:
        """Tell whether a `-` is at hand that might be the middle of a range."""
        return self.text.startswith("-", self.pos) and not self.text.startswith("-]", self.pos)

    def _bracket_range(self, first: str, last: str) -> Test:
        if first == last:
            return first.__eq__
        if not any({first, last} <= _ASCII_SETS[name] for name in ("digit", "lower", "upper")):
            raise Untranslatable("a range whose order depends on the locale")
        if first > last:
            self.errors.append("Invalid range end")
        return _glibc_range(first, last)

    def _bracket_class(self) -> Test:
        end = self.text.find(":]", self.pos + 2)
        if end < 0:
            raise Untranslatable("a class that does not end")
        name = self.text[self.pos + 2 : end]
        if name not in _ASCII_SETS or name in ("word", "ascii"):
            raise Untranslatable(f"the class {name!r}")
        self.pos = end + 2
        if self._dash():
            raise Untranslatable("an unusual range")
        return _glibc_space if name == "space" else _glibc_class(name)


def _glibc_space(char: str) -> bool:
    """Tell whether GNU grep's `\\s` has `char`: not the spaces that forbid a line break."""
    if char == "\x85":
        raise Untranslatable("grep's class of U+0085 depends on the C library")
    return char in _WHITE_SPACE and char not in "\xa0\u2007\u202f"


# --- helpers: what a pattern demands -------------------------------------------------------------

#: Places of a pattern with its repetitions written out; ripgrep 13 refuses about 800 times `\w`.
_MOST_STEPS = 600
_MOST_NEEDLES = 16
_WIDEST = 24  # a window's characters
_RARE = 3  # characters of a needle that is worth looking for


def _matcher(node: Node, multiline: bool, ascii_only: str, word: Test) -> Matcher:
    if _steps(node) > _MOST_STEPS:
        raise Untranslatable("the pattern is too large")
    words = _words(node)
    sure = words is not None and not any(folded for _, folded in words)
    literal = words[0][0] if words and sure and len(words) == 1 else None
    spans = multiline and any(
        leaf.kind in "Az" if isinstance(leaf, Look) else leaf.test("\n") for leaf in _leaves(node)
    )
    needles, spare, folded = _needles(node)
    return Matcher(node, literal, spans, needles, folded, sure, ascii_only, word, spare)


def _leaves(node: Node) -> Iterator[Leaf | Look]:
    if isinstance(node, (Leaf, Look)):
        yield node
    else:
        for child in (node.body,) if isinstance(node, Rep) else _children(node):
            yield from _leaves(child)


def _children(node: Cat | Alt) -> tuple[Node, ...]:
    return node.parts if isinstance(node, Cat) else node.branches


def _steps(node: Node) -> int:
    if isinstance(node, Rep):
        return 1 + _steps(node.body) * max(node.low + (node.high is None), node.high or 0)
    if isinstance(node, (Leaf, Look)):
        return 1
    return 1 + sum(map(_steps, _children(node)))


Words = tuple[tuple[str, bool], ...]  # texts, each with whether a letter of it may be in either case


def _needles(node: Node) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Return strings of which every match holds one, others of that kind, and whether both are compared folded."""
    best, second, *_ = [*sorted(_demands(node), key=_worth, reverse=True), (), ()]
    folded = any(fold for _, fold in best)
    if not _worth(best)[0] or folded and not all(text.isascii() for text, _ in best):
        return (), (), False  # the lower case of a letter can depend on those around it
    if _worth(second)[0] < _RARE or not all(text.isascii() and fold <= folded for text, fold in second):
        second = ()
    needles, spare = (dict.fromkeys(text.lower() if folded else text for text, _ in words) for words in (best, second))
    return tuple(needles), tuple(spare), folded


def _worth(demand: Words) -> tuple[int, int]:
    return min((len(text) for text, _ in demand), default=0), -len(demand)


def _words(node: Node) -> Words | None:
    """Return the texts that a match can be, if they are few; None otherwise."""
    if isinstance(node, Leaf):
        return ((node.char, node.folded),) if node.char else None
    if isinstance(node, (Rep, Look)):
        return None
    each = [_words(child) for child in _children(node)]
    known = [words for words in each if words is not None]
    if len(known) < len(each):
        return None
    if isinstance(node, Alt):
        joined = tuple(word for words in known for word in words)
        return joined if len(joined) <= _MOST_NEEDLES else None
    return _product(known)


def _product(each: Iterable[Words]) -> Words | None:
    """Return every way to put one word of each after the other, if they are few."""
    whole: Words = (("", False),)
    for words in each:
        if len(whole) * len(words) > _MOST_NEEDLES:
            return None
        whole = tuple((one + two, either or other) for one, either in whole for two, other in words)
    return whole


def _demands(node: Node) -> Iterator[Words]:
    """Yield what each match must hold one of, read off the parts that cannot be left out."""
    if isinstance(node, Rep) and node.low:
        yield from _demands(node.body)
    elif isinstance(node, Alt):
        each = [sorted(_demands(branch), key=_worth, reverse=True)[:2] for branch in node.branches]
        for rank in (0, -1) if all(each) else ():  # the best of each branch, then the second best where there is one
            demands = [demands[rank] for demands in each]
            if sum(map(len, demands)) <= _MOST_NEEDLES:
                yield tuple(want for demand in demands for want in demand)
    elif isinstance(node, (Cat, Leaf)):
        run: Words = (("", False),)
        for part in _flat(node):
            words = _words(part)
            longer = _product((run, words)) if words else None
            if longer is None:
                yield run
                yield from _demands(part) if words is None and not isinstance(part, Leaf) else ()
            run = longer or words or (("", False),)
        yield run


def _flat(node: Node) -> Iterator[Node]:
    if isinstance(node, Cat):
        for part in node.parts:
            yield from _flat(part)
    else:
        yield node


def _windows(node: Node) -> tuple[list[list[Leaf | Look]], bool]:
    """Return stretches of fixed width that each match holds, and whether a line with the only one matches.

    They are made of characters and line anchors. A repetition lends its least number of copies to
    the stretch before it and to the one behind it; at an end of the pattern no more than those count.
    """
    parts = list(_flat(node))
    items: list[Leaf | Look | None] = []  # None: a break
    for at, part in enumerate(parts):
        if isinstance(part, Rep) and isinstance(part.body, Leaf):
            copies: list[Leaf | Look | None] = [part.body] * min(part.low, _WIDEST)
            fits = len(copies) == part.low
            between = 0 < at < len(parts) - 1
            items += copies if fits and (part.low == part.high or not between) else [*copies, None, *copies]
        else:
            items.append(part if isinstance(part, Leaf) or (isinstance(part, Look) and part.kind in "^$") else None)
    runs: list[list[Leaf | Look]] = [[]]
    for item in items:
        if item is None:
            runs.append([])
        else:
            runs[-1].append(item)
    return [run[:_WIDEST] for run in runs if run], len(runs) == 1 and len(runs[0]) <= _WIDEST


def _anchored(node: Node) -> bool:
    """Tell whether a match can begin at the start of a line only."""
    if isinstance(node, Cat):
        return bool(node.parts) and _anchored(node.parts[0])
    if isinstance(node, Alt):
        return all(map(_anchored, node.branches))
    if isinstance(node, Rep):
        return node.low > 0 and _anchored(node.body)
    return isinstance(node, Look) and node.kind in "^A"


# --- helpers: the automaton ----------------------------------------------------------------------

_WORD, _ASCII_WORD, _NEWLINE_CHAR, _EDGE, _DOUBT = 1, 2, 4, 8, 16  # what an assertion asks of a neighbour
_WORD_TESTS = "bB<>lr"
_MOST_STATES = 5_000  # kept at a time
Row = list[Any]  # rows by kind, then the state
_MATCHED: Row = []  # the row of "it matches, whatever follows"
_DEAD: Row = []  # the row of "it cannot match any more"


def _holds(look: Look, before: int, after: int) -> bool:
    """Tell whether an assertion holds between two neighbours, given by their bits."""
    if look.kind in "^A":
        return bool(before & (_EDGE | _NEWLINE_CHAR if look.kind == "^" else _EDGE))
    if look.kind in "$z":
        return bool(after & (_EDGE | _NEWLINE_CHAR if look.kind == "$" else _EDGE))
    bit = _WORD if look.unicode else _ASCII_WORD
    left, right = bool(before & bit), bool(after & bit)
    return {
        "b": left != right,
        "B": left == right,
        "<": right and not left,
        ">": left and not right,
        "l": not left,
        "r": not right,
    }[look.kind]


_BEYOND_ASCII = "[^\x00-\x7f]"


class _Alphabet(dict[int, str]):
    """Maps code points to kinds (as characters): two of one kind are alike to every set of the pattern.

    Filled as `str.translate` asks. The newline is its own kind, so that lines of kinds are lines.
    """

    def __init__(self, matcher: Matcher) -> None:
        super().__init__()
        found = list(_leaves(matcher.node))
        self.word = matcher.word if any(isinstance(x, Look) and x.kind in _WORD_TESTS for x in found) else None
        leaves = [leaf for leaf in found if isinstance(leaf, Leaf)]
        self.bits: dict[object, int] = {}  # a letter, or a set by identity, to its bit
        for leaf in leaves:
            self.bits.setdefault(self.key(leaf), len(self.bits))
        self.letters = {key: 1 << bit for key, bit in self.bits.items() if isinstance(key, str)}
        self.sets = {self.key(leaf): leaf.test for leaf in leaves if not isinstance(self.key(leaf), str)}
        self.masks = [0] * 11  # kind to the bits of the sets it belongs to
        self.sides = [0] * 11  # kind to what it is to assertions
        self.doubts = [0] * 11  # kind to the bits of the sets to which it may or may not belong
        self.reason = ""  # of the last doubt
        self.kinds: dict[tuple[int, int, int], str] = {}
        self.unused = [*range(9, -1, -1)]
        self.fixed = bytes(map(ord, map(self.__getitem__, range(128)))) + bytes(128)  # for ASCII bytes

    @staticmethod
    def key(leaf: Leaf) -> object:
        return leaf.char if leaf.char and not leaf.folded else id(leaf.test)

    def __missing__(self, code: int) -> str:
        char = chr(code)
        mask, doubt = self.letters.get(char, 0), 0
        for key, test in self.sets.items():
            try:
                mask |= test(char) << self.bits[key]
            except Untranslatable as error:
                doubt |= 1 << self.bits[key]
                self.reason = error.reason
        kind = (mask, self._side(char), doubt)
        if kind not in self.kinds:
            self.kinds[kind] = self._new_kind(char, kind)
        self[code] = self.kinds[kind]
        return self.kinds[kind]

    def _side(self, char: str) -> int:
        if not self.word:
            return _NEWLINE_CHAR if char == "\n" else 0
        try:
            word = self.word(char) * _WORD
        except Untranslatable as error:
            word = _DOUBT
            self.reason = error.reason
        return word | (char in _ASCII_SETS["word"]) * _ASCII_WORD | (char == "\n") * _NEWLINE_CHAR

    def _new_kind(self, char: str, bits: tuple[int, int, int]) -> str:
        if char != "\n" and not self.unused:
            if len(self.masks) > 255:
                raise Untranslatable("the pattern tells too many kinds of character apart")
            self.unused.append(len(self.masks))
            for table in (self.masks, self.sides, self.doubts):
                table.append(0)
        kind = 10 if char == "\n" else self.unused.pop()
        self.masks[kind], self.sides[kind], self.doubts[kind] = bits
        return chr(kind)

    def members(self, leaf: Leaf) -> list[int]:
        """Return the kinds, but for the newline, that belong or may belong to a set."""
        bit = self.bits[self.key(leaf)]
        both = zip(self.masks, self.doubts)
        return [kind for kind, (mask, doubt) in enumerate(both) if (mask | doubt) >> bit & 1 and kind != 10]

    def encode(self, text: str) -> bytes:
        """Return the kind of each character."""
        if text.isascii():
            return text.encode("ascii").translate(self.fixed)
        others = sorted(set(re.findall(_BEYOND_ASCII, text))) if len(text) > 500 else []
        if not 0 < len(others) <= 32 or others[0] < "\xa0":
            return text.translate(self).encode("latin-1")
        table = bytearray(self.fixed)
        for code, char in enumerate(others, 128):  # a few replacements cost less than a look-up for each character
            table[code] = ord(self[ord(char)])
            text = text.replace(char, chr(code))
        return text.encode("latin-1").translate(table)


class _Automaton:
    """Runs a pattern over kinds, one table look-up each; the tables are made when first needed.

    A row is a list, kind to next row, with its state last: the program's steps to go on from, in
    order of preference; what stood before; whether a match ended there. A row not made yet is an
    empty list in `pending`, so that the inner loop needs no test: reading from it raises.
    """

    def __init__(
        self,
        matcher: Matcher,
        alphabet: _Alphabet,
        deadline: float,
        *,
        reverse: bool = False,
        anchored: bool = False,
        spans: bool = False,
    ) -> None:
        self.alphabet, self.deadline = alphabet, deadline
        self.reverse, self.anchored, self.spans = reverse, anchored, spans
        self.size = len(alphabet.masks)
        self.program: list[tuple[Any, ...]] = [("match",)]
        self.entry = self._emit(matcher.node, 0)
        self._forget()

    def _forget(self) -> None:
        self.rows: dict[tuple[tuple[int, ...], int, bool], Row] = {}
        self.pending: dict[int, tuple[Row, int]] = {}  # by identity of the empty list: where it stands
        self.ends: dict[tuple[tuple[int, ...], int, bool], bool] = {}  # state -> a match ends at the line's end
        self.start = self._row((self.entry,), _EDGE, False)

    # The program: steps by number, each with the step that follows.

    def _add(self, *step: object) -> int:
        self.program.append(step)
        return len(self.program) - 1

    def _emit(self, node: Node, after: int) -> int:
        """Add the steps of `node`, going on at `after`, and return the first."""
        if isinstance(node, Leaf):
            return self._add("leaf", 1 << self.alphabet.bits[self.alphabet.key(node)], after)
        if isinstance(node, Look):
            return self._add("look", node, after)
        if isinstance(node, Alt):
            return self._add("split", [self._emit(branch, after) for branch in node.branches])
        if isinstance(node, Rep):
            return self._emit_rep(node, after)
        for part in node.parts if self.reverse else reversed(node.parts):
            after = self._emit(part, after)
        return after

    def _emit_rep(self, node: Rep, after: int) -> int:
        entry, copies = after, node.low
        if node.high is None:
            choices: list[int] = []
            loop = self._add("split", choices)
            body = self._emit(node.body, loop)
            choices += [body, after] if node.greedy else [after, body]
            entry, copies = (body, copies - 1) if copies else (loop, 0)
        else:
            for _ in range(node.high - node.low):
                body = self._emit(node.body, entry)
                entry = self._add("split", [body, after] if node.greedy else [after, body])
        for _ in range(copies):
            entry = self._emit(node.body, entry)
        return entry

    # The rows.

    def _row(self, steps: tuple[int, ...], before: int, hit: bool) -> Row:
        if not steps and not hit:
            return _DEAD
        state = (steps, before, hit)
        row = self.rows.get(state)
        if row is None:
            if len(self.rows) >= _MOST_STATES:
                self._forget()
            row = self.rows[state] = [*([] for _ in range(self.size)), state]
            for kind in range(self.size):
                self.pending[id(row[kind])] = (row, kind)
        return row

    def _made(self, empty: Row) -> Row:
        """Return the row that belongs in the place of an empty one, and put it there."""
        if empty is _MATCHED or empty is _DEAD:
            return empty
        if time.monotonic() > self.deadline:
            raise TooSlow
        row, kind = self.pending.pop(id(empty))
        leaves, hit = self._closure(row[-1], self.alphabet.sides[kind])
        if hit and not self.spans:
            row[kind] = _MATCHED
            return _MATCHED
        mask, doubt = self.alphabet.masks[kind], self.alphabet.doubts[kind]
        if doubt and any(doubt & bit for bit, _ in leaves):
            raise Untranslatable(self.alphabet.reason)
        steps = dict.fromkeys(after for bit, after in leaves if mask & bit)
        if not self.anchored:
            steps.setdefault(self.entry)
        row[kind] = made = self._row(tuple(steps), self.alphabet.sides[kind], hit)
        return made

    def _closure(self, state: tuple[tuple[int, ...], int, bool], after: int) -> tuple[list[tuple[int, int]], bool]:
        """Return the leaves that may take the next character, and whether a match ends before it.

        Leaves less preferred than that match are left out, but not where all starts are wanted.
        """
        steps, before, _ = state
        leaves: list[tuple[int, int]] = []
        seen: set[int] = set()
        stack = list(reversed(steps))
        hit = False
        sides = (after, before) if self.reverse else (before, after)
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            step = self.program[number]
            if step[0] == "leaf":
                leaves.append(step[1:])
            elif step[0] == "split":
                stack.extend(reversed(step[1]))
            elif step[0] == "match":
                hit = True
                if not self.reverse:
                    break
            elif step[1].unicode and step[1].kind in _WORD_TESTS and (before | after) & _DOUBT:
                raise Untranslatable(self.alphabet.reason)
            elif _holds(step[1], *sides):
                stack.append(step[2])
        return leaves, hit

    # Runs over kinds.

    def accepts(self, kinds: bytes) -> bool:
        """Tell whether the pattern matches anywhere in one line."""
        row = self.start
        rest = iter(kinds)
        while True:
            try:
                for kind in rest:
                    row = row[kind]
                break
            except IndexError:
                row = self._made(row)
                if not row:
                    break
                row = row[kind]
        row = row or self._made(row)
        return row is _MATCHED or (row is not _DEAD and self._ends(row[-1]))

    def _ends(self, state: tuple[tuple[int, ...], int, bool]) -> bool:
        """Tell whether a match ends where a line does that was read up to this state."""
        found = self.ends.get(state)
        if found is None:
            found = self.ends[state] = self._closure(state, _EDGE)[1]
        return found

    def hits(self, kinds: bytes, before: int = _EDGE) -> Iterator[int]:
        """Yield, for each place where a match ends, how many kinds were read (needs `spans`).

        :param before: what stands before the first, to assertions.
        """
        row = self.start if before == _EDGE else self._row((self.entry,), before, False)
        for count, kind in enumerate(kinds):
            row = row[kind] or self._made(row[kind])
            if row is _DEAD:
                return
            if row[-1][2]:
                yield count
        if self._closure(row[-1], _EDGE)[1]:
            yield len(kinds)


# --- helpers: the search -------------------------------------------------------------------------


class _Search:
    """One search over several texts: its deadline, and tables that are not shared."""

    def __init__(self, matcher: Matcher, seconds: float) -> None:
        self.matcher = matcher
        self.deadline = time.monotonic() + seconds
        self.alphabet: _Alphabet | None = None
        self.automata: dict[str, _Automaton] = {}
        self.windows, self.window_sure = _windows(matcher.node)
        self.compiled: re.Pattern[bytes] | None = None

    def lines(self, text: str, limit: int | None) -> list[int]:
        """Return the 0-based numbers of the lines of `text` that the live tool would print, ascending.

        Lines end at `\\n` alone; a `\\r` belongs to its line, and a final `\\n` opens no further line.
        The text is what the tool matches on: without a byte order mark that rg drops, and without NUL.

        :param limit: stop after that many lines.
        :raises Untranslatable: if this text holds characters that the tool may class otherwise.
        :raises TooSlow: if the search's time is over.
        """
        if time.monotonic() > self.deadline:
            raise TooSlow
        if self.matcher.ascii_only and not text.isascii():
            raise Untranslatable(self.matcher.ascii_only)
        if not text:
            return []
        if text.endswith("\n") and not self.matcher.multiline:
            text = text[:-1]  # no line begins behind it
        found: list[int] = []
        for number in self._numbers(text):
            if limit is not None and len(found) >= limit:
                break
            found.append(number)
        return found

    def _numbers(self, text: str) -> Iterator[int]:
        matcher = self.matcher
        hay = self._hay(text) if matcher.needles else None
        if matcher.multiline:
            if hay is None or any(needle in hay for needle in matcher.needles):
                yield from self._spanned(text)
        elif hay is not None and (matcher.sure or not self.windows or min(map(len, matcher.needles)) >= _RARE):
            yield from self._likely(text, hay)
        elif self.windows:
            yield from self._windowed(self._kinds(text))
        else:
            kinds = self._kinds(text)
            accepts = self._automaton("line").accepts
            yield from (number for number, line in enumerate(kinds.split(b"\n")) if accepts(line))

    def _hay(self, text: str) -> str | None:
        """Return the text in which to look for needles: as it is, or folded; None if that moved letters."""
        if not self.matcher.folded:
            return text
        hay = text.lower()
        if "\u017f" in hay:
            hay = hay.replace("\u017f", "s")  # the one letter that folds to an ASCII one but is lower case
        return hay if len(hay) == len(text) else None

    def _likely(self, text: str, hay: str) -> Iterator[int]:
        """Try only the lines that hold a needle."""
        sure, needles, spare = self.matcher.sure, self.matcher.needles, self.matcher.spare
        if spare and not sure and sum(map(hay.count, spare)) < sum(map(hay.count, needles)):
            needles = spare
        number = counted = 0
        for start, end in _holding(hay, needles):
            if sure or self._accepts(self._kinds(text[start:end])):
                number += text.count("\n", counted, start)
                counted = start
                yield number

    def _windowed(self, kinds: bytes) -> Iterator[int]:
        """Try only the lines that hold the window."""
        window = self._window()
        assert self.alphabet is not None
        sure = self.window_sure and not any(self.alphabet.doubts)
        number = counted = 0
        end = -1
        while end < len(kinds) and (found := window.search(kinds, end + 1)):
            start = kinds.rfind(b"\n", 0, found.start()) + 1
            end = kinds.find(b"\n", found.start())
            end = len(kinds) if end < 0 else end
            if sure or self._accepts(kinds[start:end]):
                number += kinds.count(b"\n", counted, start)
                counted = start
                yield number

    def _window(self) -> re.Pattern[bytes]:
        """Return the rarest of the windows as an expression over kinds.

        It is of fixed width, without a choice, so that `re` has nothing to try twice.
        """
        if self.compiled is None:
            self.compiled = re.compile(max(map(self._window_source, self.windows))[1], re.MULTILINE)
        return self.compiled

    def _window_source(self, window: list[Leaf | Look]) -> tuple[float, bytes]:
        """Return how rare a window is (in bits), and the expression."""
        assert self.alphabet is not None
        rarity, source = 0.0, b""
        common = self.alphabet.fixed
        for part in window:
            if isinstance(part, Look):
                source += part.kind.encode()
                rarity += 1
            else:
                members = self.alphabet.members(part)
                rarity += 7 - math.log2(sum(map(common.count, members)) + 1)
                source += b"[%b]" % (b"".join(re.escape(bytes([kind])) for kind in members) or b"^\0-\xff")
        return rarity, source

    def _accepts(self, kinds: bytes) -> bool:
        return self._automaton("line").accepts(kinds)

    def _kinds(self, text: str) -> bytes:
        """Translate text for the automata, which are made anew when it brings kinds they do not know."""
        if self.alphabet is None:
            self.alphabet = _Alphabet(self.matcher)
        known = len(self.alphabet.kinds)
        kinds = self.alphabet.encode(text)
        if len(self.alphabet.kinds) > known:
            self.automata.clear()
            self.compiled = None
        return kinds

    def _automaton(self, role: str) -> _Automaton:
        """Return the automaton for lines, or one that finds "starts" or an "end" of matches."""
        if role not in self.automata:
            assert self.alphabet is not None
            self.automata[role] = _Automaton(
                self.matcher,
                self.alphabet,
                self.deadline,
                reverse=role == "starts",
                spans=role != "line",
                anchored=role == "end" or (role == "line" and _anchored(self.matcher.node)),
            )
        return self.automata[role]

    def _spanned(self, text: str) -> Iterator[int]:
        """Yield the lines that the successive matches touch, where a match may span lines."""
        kinds = self._kinds(text)
        done = -1
        number = counted = 0
        for start, end in self._matches(kinds):
            if start == len(kinds) and kinds.endswith(b"\n"):
                return  # behind the last newline is no line to print
            if start == end < len(text) and text[end] >= "\x80":
                raise Untranslatable("rg goes on from within a character after an empty match")
            number += kinds.count(b"\n", counted, start)
            counted = start
            last = number + kinds.count(b"\n", start, max(end - 1, start))
            yield from range(max(number, done + 1), last + 1)
            done = max(done, last)

    def _matches(self, kinds: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each match as rg finds them.

        It takes the rest of the text anew after each match, so there, whatever stands before it,
        `^` and `\\A` hold, and no word has begun.
        """
        assert self.alphabet is not None
        size = len(kinds)
        starts = iter([size - count for count in self._automaton("starts").hits(kinds[::-1])][::-1])
        position = 0
        while position < size:
            start: int | None = position
            end = self._end(kinds, position, _EDGE)
            if end is None:
                start = next((found for found in starts if found > position), None)
                end = self._end(kinds, start, self.alphabet.sides[kinds[start - 1]]) if start is not None else None
            if start is None or end is None:
                return
            yield start, end
            position = max(end, start + 1)

    def _end(self, kinds: bytes, start: int, before: int) -> int | None:
        """Return where the match that begins at `start` ends: the last end that is still preferred."""
        end = None
        for count in self._automaton("end").hits(kinds[start:], before):
            end = start + count
        return end


def _holding(hay: str, needles: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line that holds one of the needles, in order."""
    places = {needle: -1 for needle in needles}
    end = -1
    while True:
        for needle, place in list(places.items()):
            if place <= end:
                places[needle] = hay.find(needle, end + 1)
                if places[needle] < 0:
                    del places[needle]
        if not places:
            return
        first = min(places.values())
        start = hay.rfind("\n", 0, first) + 1
        end = hay.find("\n", first)
        if end < 0:
            yield start, len(hay)
            return
        yield start, end


# --- search_files ---------------------------------------------------------------

_GROUPED = (
    "path-grouped: each file path on its own line, followed by indented "
    "'<line>: <content>' rows for matches in that file"
)
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
_OLD_RIPGREP = "Exact modification-time order requires ripgrep 14 or newer; upgrade ripgrep or use order='discovery'."

#: What the live tool takes for a row of rg or grep, and how it reads one.
_ROW = r"^([A-Za-z]:)?[^\s:][^\n]*?[:\-]\d|^[^\s:][^\s]*$"
_MATCH_ROW = r"^([A-Za-z]:)?(.*?):(\d+):(.*)$"
_CONTEXT_MARK = r"-(\d+)-"

_NEWLINE_ESCAPE = r"(?<!\\)(?:\\\\)*\\n"
_SPECIAL = r"[.\[\](){}?*+^$\\|]"

#: Folders that the probe for hidden files of 0.22 leaves out.
_PRUNED = frozenset(
    ".git .hg .svn node_modules venv .venv site-packages dist-packages vendor third_party build "
    "dist target out coverage .next .turbo .parcel-cache .nuxt .svelte-kit .archive __pycache__ "
    ".cache .Trash .tox .nox .mypy_cache .pytest_cache .ruff_cache .npm .yarn .pnpm-store .gradle "
    ".m2 .nuget backups backup .backups".split()
)
#: Reasons of a snapshot that do not speak of a file.
_NO_FILE = frozenset({"not a regular file", "not found", "link out of the folder", "unreadable"})
#: Names whose results the live tool holds back.
_WITHHELD = frozenset(".env .env.local .env.development .env.production .env.test .env.staging .envrc".split())


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


class _Document(NamedTuple):
    """One file of the snapshot, ready to be searched."""

    path: str
    file: SnapshotFile
    text: str  #: as the search engine sees it
    folders: tuple[str, ...]  #: every folder above it, "" left out

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class _Root(NamedTuple):
    """Where a search begins: as the model typed it, and what that is."""

    typed: str
    rel: str  #: workspace path, "" for the workspace itself
    is_file: bool


def _dotted(name: str) -> bool:
    return name.startswith(".") and name not in (".", "..")


class Synthesizer:
    """Answers `read_file` and `search_files` calls from one snapshot.

    Any number of threads may call `answer` at once: the snapshot is never
    written to, and what is remembered between calls can be worked out twice
    without harm.

    :param learned: what `learn` found; it wins over the host's version.
    """

    def __init__(
        self, snapshot: Snapshot, workspace: Workspace, host: Recorder, learned: Mapping[str, Any] | None = None
    ) -> None:
        self._snapshot = snapshot
        self._workspace = workspace
        self._host = host
        self._family = _family(host.hermes, learned)
        self._rg = (host.search or (learned or {}).get("search", "rg")) != "grep"
        self._windows = host.platform == "win32"
        self._rg_major = (learned or {}).get("rg_major")
        self._lock = threading.Lock()
        self._index: _Index | None = None

    def answer(self, tool: str, args: Mapping[str, Any]) -> str:
        """Return the text that the live tool would have returned.

        :raises Miss: if the snapshot cannot tell; never anything else.
        """
        try:
            read = _coerced(tool, args, self._family, hermes_release(self._host.hermes))
            if tool == "read_file":
                return self._read(read)
            if tool == "search_files":
                return self._search(read)
        except Miss:
            raise
        except Untranslatable as error:
            raise Miss(f"this pattern may mean something else to the live tool: {error.reason}") from None
        except TooSlow:
            raise Miss(f"the search was not done within {DEADLINE:g} seconds") from None
        except Exception as error:  # a replay must end in an answer or a miss
            raise Miss(f"the replay could not work out this call: {error!r}") from error
        raise Miss(f"no result of {tool!r} can be made from files")

    # -- read_file

    def _read(self, args: Mapping[str, Any]) -> str:
        path, offset, limit = args["path"], args["offset"], args["limit"]
        if not isinstance(path, str) or not isinstance(offset, int) or not isinstance(limit, int):
            raise Miss("the arguments are not of the kinds read_file takes")
        if offset < 1:
            raise Miss("reading from the end of a file is not synthesized")
        key = self._key(path)
        file = self._snapshot.files.get(key)
        if file is None or path.endswith(("/", "\\")):
            raise Miss(self._absence(path, key))
        suffix = _suffix(key)
        if suffix in self._family.documents:
            raise Miss(f"{path}: read_file converts {suffix} files, a snapshot holds their text")
        if suffix in _BINARY:
            return _dump(
                {
                    "error": f"Cannot read binary file '{path}' ({suffix}). Use "
                    "vision_analyze for images, or terminal to inspect binary files."
                }
            )
        if _looks_binary(file.text, self._family):
            raise Miss(f"{path}: the live tool takes this file for binary")
        lines = self._all().lines(key)
        return _dump(_read_page(file, offset, limit, self._family, lines))

    def _key(self, path: str) -> str:
        """Return the snapshot's path of what the model named."""
        if not path:
            raise Miss("no path is given")
        rel = self._workspace.relative(path)
        if rel is None:
            raise Miss(f"{path}: outside the workspace")
        return self._all().folded(rel) if self._host.fold_case else rel

    def _absence(self, path: str, key: str) -> str:
        reason = self._snapshot.skipped_paths.get(key)
        if reason:
            return f"{path}: not in the snapshot ({reason})"
        if key in self._all().folders:
            return f"{path}: a folder, and the snapshot holds files"
        return f"{path}: not in the snapshot"

    def _all(self) -> _Index:
        """Return the index of the snapshot, made by the first call that needs it."""
        if self._index is None:
            with self._lock:
                if self._index is None:
                    self._index = _Index(self._snapshot, self._host.git)
        return self._index

    # -- search_files

    def _search(self, args: Mapping[str, Any]) -> str:
        family = self._family
        path, pattern = args["path"], args["pattern"]
        if path is None:
            return _dump({"error": "expected str, bytes or os.PathLike object, not NoneType"})
        if path == "":
            return _dump({"total_count": 0, "error": "Path not found: "})
        self._check(args)
        roots, note = self._roots(path)
        if args["target"] == "content" and not isinstance(args["context"], (int, float)):
            kind = type(args["context"]).__name__
            return _dump({"error": f"'>' not supported between instances of '{kind}' and 'int'"})
        search = self._files if args["target"] == "files" else self._content
        found = search(roots[0], pattern, args) if not note else self._merged(search, roots, args)
        if note:
            found.warning = note
        omitted = _withhold(found)
        out = found.to_dict(family)
        if omitted:
            out["_omitted"] = (
                f"{omitted} result(s) omitted because they target credential, "
                "token, cache, or secret-bearing environment files."
            )
        if not found.truncated:
            return _dump(out)
        hint = (
            f"Results truncated. Use offset={args['offset'] + args['limit']} to see more, "
            "or narrow with a more specific pattern or file_glob."
        )
        if family.hint_inside:
            return _dump({**out, "_hint": hint})
        return f"{_dump(out)}\n\n[Hint: {hint}]"

    def _check(self, args: Mapping[str, Any]) -> None:
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

    def _roots(self, path: str) -> tuple[list[_Root], str]:
        """Return where to search; more than one when the path names several.

        :returns: the roots, and the remark that the live tool makes about
            several of them ("" for one).
        """
        try:
            return [self._root(path)], ""
        except Miss as miss:
            parts = self._parts(path)
            if len(parts) < 2:
                raise
            try:
                roots = [self._root(part) for part in parts]
            except Miss:
                raise miss from None
        return roots, f"path contained {len(parts)} entries; searched {len(parts)} that exist"

    def _parts(self, path: str) -> list[str]:
        if self._family.splits == "any":
            return path.replace(",", " ").split()
        if self._family.splits == "commas":
            parts = path.split(",") if "," in path else path.split()
            return [part.strip() for part in parts if part.strip()]
        return []

    def _root(self, typed: str) -> _Root:
        key = self._key(typed)
        if typed.startswith("~"):
            home = self._workspace.home
            typed = home + typed[1:]
        if key in self._snapshot.files and not typed.endswith(("/", "\\")):
            return _Root(typed, key, True)
        if key in self._all().folders:
            return _Root(typed, key, False)
        raise Miss(self._absence(typed, key))

    def _merged(self, search: Callable[..., _Found], roots: Sequence[_Root], args: Mapping[str, Any]) -> _Found:
        """Search several roots as the live tool does: page by page, then cut."""
        if args["target"] == "files" and self._family.find == "entries":
            raise Miss("listing several paths at once is not synthesized")
        merged = _Found()
        for root in roots:
            found = search(root, args["pattern"], args)
            if found.error and self._family.splits == "commas":
                return found
            if found.error:
                continue
            merged.matches += found.matches
            merged.files += found.files
            merged.counts.update(found.counts)
            merged.total_count += found.total_count
            merged.truncated = merged.truncated or found.truncated
        del merged.matches[args["limit"] :], merged.files[args["limit"] :]
        return merged

    # -- search_files, target=content

    def _content(self, root: _Root, pattern: str, args: Mapping[str, Any]) -> _Found:
        if not self._rg and self._host.platform == "darwin" and re.search(_SPECIAL, pattern):
            raise Miss("the grep of macOS reads patterns in its own way")
        newline = "\n" in pattern or bool(re.search(_NEWLINE_ESCAPE, pattern))
        multiline = self._rg and newline and self._family.multiline
        pruned = not self._rg and self._under_hidden(root)
        try:
            matcher = self._matcher(pattern, multiline)
        except PatternError as error:
            # The remark about PCRE2, which most builds of ripgrep make, is taken for granted.
            if pruned:
                return _Found()
            if self._loses(error.message, args):
                return _Found(warning=self._probe(root, pattern, args["file_glob"]))
            return _Found(error=f"Search failed: {error.message}")
        documents = self._searched(root, args["file_glob"], pruned)
        anchor = self._anchor(root, pruned)
        rows = self._rows(documents, matcher, anchor, root, args, _fetched(args))
        found = _parse(rows, args)
        if multiline and args["output_mode"] != "count":
            found.warning = _MULTILINE_NOTE
        if found.empty() and self._rg and self._family.probes:
            hint = self._probe(root, pattern, args["file_glob"])
            found.warning = " ".join(filter(None, (found.warning, hint)))
        if found.total_count == 0 and newline and not multiline:
            found.warning = _LINES_NOTE
        return found

    def _matcher(self, pattern: str, multiline: bool = False, ignore_case: bool = False) -> Matcher:
        if self._rg:
            return compile_pattern(pattern, "rg", multiline=multiline, ignore_case=ignore_case, rg_major=self._rg_major)
        dialect = self._family.grep
        opened = re.search(r"(?<!\\)(?:\\\\)*\[\^?$", pattern)
        if opened:
            compile_pattern(pattern[: opened.start()], dialect)
            raise PatternError("grep: Invalid regular expression")
        if dialect == "grep-bre" and "\\}" not in pattern:
            pattern = re.sub(r"^\^?\\\{", lambda found: found[0].replace("\\", ""), pattern)
        return compile_pattern(pattern, dialect)

    def _loses(self, message: str, args: Mapping[str, Any]) -> bool:
        """Say whether 0.22, which stops reading after so many rows, overlooks an error."""
        native = self._rg and self._family.hint_inside and not self._windows
        return native and message.count("\n") + 1 >= _fetched(args)

    def _text(self, document: _Document) -> str:
        """Return a file's text as the engine sees it: ripgrep drops a byte order mark."""
        return document.text if self._rg else document.file.text

    def _searched(self, root: _Root, glob: str | None, pruned: bool) -> list[_Document]:
        index = self._all()
        if self._rg:
            return index.visible(root, glob)
        if pruned or self._family.grep_root == "pruned" or not self._grep_skips(root):
            return index.walked(root, glob, typed_root=not pruned)
        return []

    def _grep_skips(self, root: _Root) -> bool:
        """Say whether `--exclude-dir='.*'` takes the root itself for a hidden folder."""
        if root.is_file:
            return False
        text = root.typed if self._family.grep_root == "typed" else self._anchor(root, False)
        return bool(re.search(r"(?:^|/)\.", text))

    def _under_hidden(self, root: _Root) -> bool:
        if self._family.grep_root != "pruned":
            return False
        whole = f"{self._workspace.root}/{root.rel}".replace("\\", "/")
        return any(_dotted(part) for part in whole.split("/"))

    def _anchor(self, root: _Root, pruned: bool) -> str:
        """Return what stands before the paths of the answer."""
        typed = root.typed
        if self._rg:
            return self._native(typed)
        if pruned or self._family.grep_root == "typed":
            return typed
        if re.match(r"/|\\\\|[A-Za-z]:[\\/]", typed):
            return typed
        here = _posix_drive(str(self._workspace.root)) if self._windows else str(self._workspace.root)
        short = typed[2:] if typed.startswith("./") else typed
        return here if short in ("", ".") else f"{here}/{short}"

    def _native(self, typed: str) -> str:
        """Spell a path the way Hermes hands it to a Windows program (reasoned)."""
        if not self._windows or self._family is _F19:
            return typed
        drive = re.match(_GIT_BASH_DRIVE, typed)
        return f"{drive[1].upper()}:{drive[2] or '/'}" if drive else typed.replace("\\", "/")

    def _shown(self, anchor: str, root: _Root, path: str) -> str:
        """Return a path as the answer prints it: the anchor, then the way down."""
        if root.is_file:
            return anchor
        below = path[len(root.rel) :].lstrip("/")
        mark = "\\" if self._windows and self._rg else "/"
        joint = "" if anchor.endswith(("/", mark)) else mark
        return f"{anchor}{joint}{below.replace('/', mark)}"

    def _rows(
        self,
        documents: Sequence[_Document],
        matcher: Matcher,
        anchor: str,
        root: _Root,
        args: Mapping[str, Any],
        cap: int,
    ) -> list[str]:
        """Return the first `cap` rows that rg or grep would print."""
        mode, context = args["output_mode"], args["context"]
        wanted = {"files_only": 1, "count": None}.get(mode, cap)
        rows: list[str] = []
        engine = _Search(matcher, DEADLINE)
        for document in documents:
            hits = engine.lines(self._text(document), wanted)
            number = len(hits)
            if matcher.multiline and mode == "count" and hits:
                number = _stretches(engine, document.text)
            if not hits and (mode != "count" or self._rg):
                continue
            path = self._shown(anchor, root, document.path)
            if mode == "files_only":
                rows.append(path)
            elif mode == "count":
                rows.append(f"{path}:{number}")
            else:
                if context and rows:
                    rows.append("--")
                lines = self._all().lines(document.path, not self._rg)
                found = _document_rows(path, lines, hits, context, cap - len(rows))
                rows += [_cut_row(row, self._family.columns) for row in found]
            if len(rows) >= cap:
                break
        return rows[:cap]

    def _probe(self, root: _Root, pattern: str, glob: str | None) -> str:
        """Say what a search without hits may have meant, as the live tool finds out."""
        index, paths = self._all(), self._family.probes == "paths"
        probes = (index.visible(root, glob), index.everything(root, glob, paths), index.visible(root, glob))
        for kind, documents in enumerate(probes):
            if kind == 2 and not re.search(_SPECIAL, pattern):
                continue
            counts = self._counted(kind, pattern, documents)
            if counts:
                anchor = self._anchor(root, False)
                names = ["" if root.is_file else self._shown(anchor, root, path) for path, _ in counts]
                return _probe_note(kind, sum(n for _, n in counts), names, paths)
        return ""

    def _counted(self, kind: int, pattern: str, documents: Sequence[_Document]) -> list[tuple[str, int]]:
        """Count the matches of the first files that have any, as probe number `kind` does."""
        kept: list[tuple[str, int]] = []
        engine = None
        if kind < 2:
            try:
                engine = _Search(self._matcher(pattern, ignore_case=kind == 0), DEADLINE)
            except PatternError:
                return kept  # a pattern over several lines fails without multiline mode
        for document in documents:
            if engine is None:
                number = 0 if "\n" in pattern else document.text.count(pattern)
            else:
                hits = engine.lines(document.text, None)
                lines = self._all().lines(document.path, False) if hits else []
                number = sum(_occurrences(pattern, lines[hit], kind == 0) for hit in hits)
            if number:
                kept.append((document.path, number))
            if len(kept) == PROBE_ROWS:
                break
        return kept

    # -- search_files, target=files

    def _files(self, root: _Root, pattern: str, args: Mapping[str, Any]) -> _Found:
        order, limit, offset = args["order"], args["limit"], args["offset"]
        if order not in ("discovery", "modified"):
            return _Found(error=f"Invalid file search order {order!r}; expected 'discovery' or 'modified'.")
        name = pattern.split("/")[-1]
        if not self._rg:
            return self._found_by_find(root, name, args)
        if order == "modified" and self._rg_major is None:
            raise Miss("whether ripgrep sorts by time depends on its version")
        if order == "modified" and self._rg_major < 14:
            return _Found(error=_OLD_RIPGREP)
        glob = name if name.startswith("*") else "*" + name
        listed = sorted(self._all().listed(root, glob), key=lambda document: -document.file.mtime)
        anchor = self._anchor(root, False)
        files = [self._shown(anchor, root, document.path) for document in listed]
        end = offset + limit
        if self._family.find == "files":
            return _Found(files=files[:end][offset:], total_count=min(len(files), end), truncated=len(files) >= end)
        files = files[: end + 1]
        folders = [] if root.is_file else self._all().matching_folders(root, glob)[: end + 1]
        if folders:
            times = [document.file.mtime for document in listed[: end + 1]]
            entries = list(zip(times, files))
            entries += [(newest, self._found_path(root, folder)) for folder, newest in folders]
            files = [path for _, path in sorted(entries, key=lambda entry: -int(entry[0]))]
        return _Found(files=files[offset:end], total_count=len(files), truncated=len(files) > end)

    def _found_by_find(self, root: _Root, name: str, args: Mapping[str, Any]) -> _Found:
        limit, offset = args["limit"], args["offset"]
        entries = self._family.find == "entries"
        listed = self._all().found(root, name, entries)
        if not entries or args["order"] == "modified":
            listed.sort(key=lambda entry: -entry[1])
        paths = [self._found_path(root, path) for path, _ in listed]
        if not entries:
            page = paths[offset : offset + limit]
            return _Found(files=page, total_count=len(page))
        paths = paths[: offset + limit + 1]
        return _Found(
            files=paths[offset : offset + limit], total_count=len(paths), truncated=len(paths) > offset + limit
        )

    def _found_path(self, root: _Root, path: str) -> str:
        """Return a path as `find` prints it."""
        if root.is_file or path == root.rel:
            return root.typed
        below = path[len(root.rel) :].lstrip("/")
        typed = _posix_drive(root.typed) if self._windows else root.typed
        return typed + ("" if typed.endswith("/") else "/") + below


def _dump(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _looks_binary(text: str, family: Family) -> bool:
    """Say whether the first bytes make the live tool refuse the file."""
    sample = text[:1000]
    if family.cut:
        return "\0" in sample
    odd = sum(1 for char in sample if ord(char) < 32 and char not in "\n\r\t")
    return bool(sample) and odd / len(sample) > 0.30


_GIT_BASH_DRIVE = r"(?s)/(?:(?:cygdrive|mnt)/)?([A-Za-z])(/.*)?$"


def _posix_drive(path: str) -> str:
    """Spell a Windows path the way Git Bash prints its working directory (reasoned)."""
    path = path.replace("\\", "/")
    return f"/{path[0].lower()}{path[2:]}" if re.match(r"[A-Za-z]:/", path) else path


def _fetched(args: Mapping[str, Any]) -> int:
    """Return how many rows the live tool reads."""
    return args["limit"] + args["offset"] + (CONTEXT_EXTRA if args["context"] > 0 else 0)


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


def _cut_row(row: str, columns: int) -> str:
    """Cut a row as ripgrep and `cut` do; on text beyond ASCII it may keep some bytes more.

    Only context rows can tell: their path ends at the last mark that is left.
    """
    return row[:columns] if columns and len(row) > columns else row


def _probe_note(kind: int, total: int, names: Sequence[str], with_paths: bool) -> str:
    """Word the remark about a search without hits."""
    listed = ""
    if with_paths:
        more = len(names) - 5
        listed = ": " + ", ".join(names[:5]) + (f" (+{more} more)" if more > 0 else "")
    if kind == 0:
        return (
            f"0 exact matches, but {total} case-insensitive match(es) in {len(names)} "
            f"file(s){listed} — the pattern's casing may be wrong."
        )
    if kind == 1:
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


def _withhold(found: _Found) -> int:
    """Take out results in secret-bearing files; return how many."""

    def secret(path: str) -> bool:
        return re.split(r"[/\\]", path)[-1] in _WITHHELD

    before = len(found.matches) + len(found.files) + len(found.counts)
    found.matches = [match for match in found.matches if not secret(match[0])]
    found.files = [path for path in found.files if not secret(path)]
    found.counts = {path: n for path, n in found.counts.items() if not secret(path)}
    return before - len(found.matches) - len(found.files) - len(found.counts)


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


def _stretches(engine: _Search, text: str) -> int:
    """Count the stretches of lines that ripgrep prints as one match over several lines."""
    kinds = engine._kinds(text)
    number = counted = stretches = 0
    done = -1
    for start, end in engine._matches(kinds):
        if start == len(kinds) and kinds.endswith(b"\n"):
            break
        number += kinds.count(b"\n", counted, start)
        counted = start
        stretches += number > done
        done = max(done, number + kinds.count(b"\n", start, max(end - 1, start)))
    return stretches


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


class _Index:
    """The snapshot in path order, with what its files say about its folders."""

    def __init__(self, snapshot: Snapshot, git: bool) -> None:
        self.documents = [_document(path, snapshot.files[path]) for path in sorted(snapshot.files)]
        self._by_path = {document.path: document for document in self.documents}
        self.folders = {folder for d in self.documents for folder in d.folders} | ({""} if self.documents else set())
        self._buried = _buried_folders(self.documents)
        #: files that exist though their text is not kept
        self._unkept = [
            _document(path, SnapshotFile("", 0))
            for path, reason in sorted(snapshot.skipped_paths.items())
            if reason not in _NO_FILE and path.rsplit("/", 1)[-1] != ".git"
        ]
        #: maps every folder known of to the newest time below it
        self._times: dict[str, float] = {".git": 0.0} if git else {}
        for document in (*self.documents, *self._unkept):
            for folder in document.folders:
                self._times[folder] = max(self._times.get(folder, 0.0), document.file.mtime)
        self._folded = {key.casefold(): key for key in (*self.folders, *self._by_path)}
        #: maps a path (and whether its BOM stays) to its lines
        self._lines: dict[tuple[str, bool], list[str]] = {}
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

    def below(self, root: _Root) -> list[_Document]:
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
            override = _Override(glob) if glob else None
            chosen = [d for d in self.below(root) if self._lets_in(d, root, override)]
            if len(self._visible) < 256:
                self._visible[key] = chosen
        return chosen

    def _lets_in(self, document: _Document, root: _Root, override: _Override | None) -> bool:
        """Walk down from the root as ripgrep does; its globs beat every other rule."""
        for folder in document.folders:
            if len(folder) <= len(root.rel):
                continue
            verdict = override.verdict(folder, True) if override else None
            if verdict is False:
                return False
            if verdict is None and (_dotted(folder.rsplit("/", 1)[-1]) or folder in self._buried):
                return False
        verdict = override.verdict(document.path, False) if override else None
        if verdict is not None:
            return verdict
        if _dotted(document.name):
            return False
        return not document.file.ignored or any(f in self._buried for f in document.folders)

    def everything(self, root: _Root, glob: str | None, prune: bool) -> list[_Document]:
        """Return what ripgrep searches when hidden and ignored files count too."""
        if root.is_file:
            return self.below(root)
        override = _Override(glob) if glob else None
        return [
            d
            for d in self.below(root)
            if not (prune and _is_pruned(d))
            and (
                override is None
                or not (
                    override.verdict(d.path, False) is False
                    or any(
                        override.verdict(folder, True) is False for folder in d.folders if len(folder) > len(root.rel)
                    )
                )
            )
        ]

    def listed(self, root: _Root, glob: str) -> list[_Document]:
        """Return what `rg --files -g` lists, which is also files of unknown text."""
        override = _Override(glob)
        return self.visible(root, glob) + [
            document for document in self._unkept_below(root) if self._lets_in(document, root, override)
        ]

    def _unkept_below(self, root: _Root) -> list[_Document]:
        return [] if root.is_file else [d for d in self._unkept if _is_below(d.path, root.rel)]

    def walked(self, root: _Root, glob: str | None, typed_root: bool) -> list[_Document]:
        """Return what grep searches: all but hidden folders; a glob sees names only."""
        accepts = _shell_glob(glob) if glob else None
        if root.is_file:
            typed = root.typed if typed_root else root.typed.rsplit("/", 1)[-1]
            names = [typed[at:] for at in range(len(typed)) if at == 0 or typed[at - 1] == "/"]
            return self.below(root) if accepts is None or any(map(accepts, names)) else []
        return [d for d in self.below(root) if not _in_hidden_folder(d, root) and (accepts is None or accepts(d.name))]

    def matching_folders(self, root: _Root, glob: str) -> list[tuple[str, float]]:
        """Return the folders that 0.22 adds to a listing by ripgrep, and their times.

        When no visible folder has a fitting name, its `find` lists the
        topmost hidden folders instead, whatever their names.  The time of a
        folder is not known; that of its newest file stands in for it.
        """
        accepts = _shell_glob(glob)
        inside = self._folders_below(root)
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
            for d in (*self.below(root), *self._unkept_below(root))
            if accepts(d.name) and not (_in_hidden_folder(d, root) or _dotted(d.name))
        ]
        files = [(d.path, d.file.mtime) for d in known]
        if not entries or root.is_file:
            return files
        folders = [
            (f, self._times[f])
            for f in self._folders_below(root)
            if not _hidden_parts(f, root) and accepts(f.rsplit("/", 1)[-1])
        ]
        return sorted(folders + files)


def _document(path: str, file: SnapshotFile) -> _Document:
    parts = path.split("/")
    folders = tuple("/".join(parts[:end]) for end in range(1, len(parts)))
    text = file.text[1:] if file.text.startswith("\ufeff") else file.text
    return _Document(path, file, text, folders)


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(folder + "/")


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

    A snapshot says of each file whether it is ignored, not by which rule.  A
    folder of which every file is ignored counts as ignored itself, unless all
    of them carry endings that are ignored in other folders, too.
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
