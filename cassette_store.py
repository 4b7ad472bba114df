"""What a cassette is, what it demands of an answer, and how it reaches the disk.

Standard library only: nothing here imports Hermes, so the same code serves the
host, the command line and the unit tests.  Nothing here decides which tool
results are kept (`snapshot`) or how a call is answered (`middleware`).

Only here in the plugin annotations are evaluated, not kept as texts: as texts
they cost each `NamedTuple` more than half as much again, in every start of Hermes.
"""

import binascii
import contextlib
import difflib
import errno
import hashlib
import itertools
import json
import math
import os
import re
import secrets
import shutil
import stat
import time
from collections import Counter
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Callable, Iterable, Iterator, Literal, Mapping, NamedTuple, Sequence, TypeVar
from typing import get_args, get_origin

_T = TypeVar("_T")

#: Seconds that a run may take at most; the command line takes no longer `--timeout`.
LONGEST_RUN = 10_000_000
_DAY = 86_400
#: Unfinished replays that one process holds; the oldest is cleared beyond it.
REPLAY_LIMIT = 16


def shown(text: object, limit: int = 0) -> str:
    """A text of any origin as one line for the screen.

    What cannot be printed (line ends, escape sequences, bidirectional
    overrides, lone surrogates) is shown as Python writes it, so that no text of
    a model, a file or a cassette passes for ours.

    :param limit: a longer text is cut to so many characters, escapes uncounted; 0 cuts none.
    """
    told = str(text)
    if limit and len(told) > limit:
        told = told[: limit - 3] + "..."
    return told if told.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in told)


class CassetteError(Exception):
    """Something a person can act on; its text is one line for stderr, as `shown` writes it.

    :param text: with any of the facts below it is a form, with places such as `{file}` for them.
    :param file: the file, folder or hand-over that it is about.
    :param field: where in the file, such as `calls[2].args`.
    :param reason: what is wrong, or what the system said.
    """

    def __init__(self, text: str, *, file: "str | Path" = "", field: str = "", reason: str = "") -> None:
        self.file, self.field, self.reason = str(file), field, reason
        if file or field or reason:
            text = text.format(file=self.file, field=field, reason=reason)
        super().__init__(shown(text))


def hermes_release(version: str) -> tuple[int, int] | None:
    """The first two numbers of a version of Hermes; None for a text that has none."""
    found = re.match(r"\s*v?(\d{1,6})\.(\d{1,6})", version)
    return (int(found[1]), int(found[2])) if found else None


def _quoted(value: object) -> str:
    """A value in quotes for an error's text, at most about a line of it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}...{text[-1]}"


class Call(NamedTuple):
    """One tool call and what came back.

    `args` is the argument object as the model sent it; `result` is what the
    tool returned: a string in practice, any JSON value in principle.
    """

    tool: str
    args: Mapping[str, Any]
    result: Any


class Recorder(NamedTuple):
    """The Hermes that recorded, as far as its answers depend on it."""

    hermes: str = ""  #: version, e.g. "0.19.0"; "" when unknown
    platform: str = ""  #: `sys.platform` there: "linux", "darwin", "win32"
    search: str = ""  #: "rg" or "grep": what `search_files` ran; "" unknown
    git: bool = False  #: the workspace lies in a git work tree
    fold_case: bool = False  #: the workspace's file system ignores case
    rg_major: int = 0  #: ripgrep's major version; 0 unknown
    locale: str = ""  #: by which `ls` sorts, e.g. "C.UTF-8"; "" unknown


class SnapshotFile(NamedTuple):
    """One workspace file as the recording left it.

    `text` is the decoded, redacted text, every newline, CR and BOM kept;
    `size` is the file's size on disk in bytes (before redaction), `mtime` its
    modification time in seconds; `ignored` says that git's or ripgrep's ignore
    rules hid it from a plain search.  `masks` says where the redacted text
    hides something: start, end and kind (`suite.masks`) of each place
    in order; None where an older recording did not note them.
    """

    text: str
    size: int
    mtime: float = 0.0
    ignored: bool = False
    masks: tuple[tuple[int, int, str], ...] | None = None


class Name(NamedTuple):
    """A name in the workspace, whether its text is kept or not."""

    kind: Literal["file", "folder", "link", "other"]
    size: int = 0  #: of a file, in bytes
    mtime: float = 0.0  #: in seconds since the epoch
    hidden: bool = False
    ignored: bool = False  #: as a `SnapshotFile` is
    inside: int | None = None  #: of a folder whose names are not listed: how many names are below it
    endings: str | None = None  #: what the names below it end in, from the last dot on, "/" between; None unknown


_NOTHING = ("", *Name._field_defaults.values())
_NAME_KINDS = frozenset(get_args(Name.__annotations__["kind"]))
_INSIDE = ((type(None), type(None)), (int, type(None)), (int, str))
_NAME_SHAPES = frozenset((str, int, float, bool, bool, *inside) for inside in _INSIDE)
#: Names that a snapshot keeps at most; of a larger workspace it keeps none.
NAMES_LIMIT = 20_000


class Snapshot(NamedTuple):
    """The workspace files a recording keeps, by path relative to its root.

    Paths use `/` on every platform and the case the disk shows.  `skipped`
    counts what was left out, by reason; `skipped_paths` names those whose
    absence a replay must be able to explain (path to reason).  `links` says
    which names, met on the way to a file, are links, and to what: a path that
    has no link in it.  `names` has every file and folder of the workspace, but
    for what is below a folder with `inside`; None when that is not known.
    `whole` says that the texts of the whole workspace were to be kept.
    `untracked` has those files and links among the names that git does not
    track; None where what it tracks is not known.
    """

    files: Mapping[str, SnapshotFile] = MappingProxyType({})
    skipped: Mapping[str, int] = MappingProxyType({})
    skipped_paths: Mapping[str, str] = MappingProxyType({})
    links: Mapping[str, str] = MappingProxyType({})
    names: Mapping[str, Name] | None = None
    whole: bool = False
    untracked: Sequence[str] | None = None


class Cassette(NamedTuple):
    """One recorded turn: what was asked, what came back, what must hold.

    `cwd` is the session's working directory as the recording host named it, or
    "" when it could not be known (then there is no snapshot).  `not_kept` names
    the tools of calls whose results were not kept, in call order.  `pins` are
    the facts as typed.
    """

    name: str
    request: str
    answer: str
    model: str = ""
    cwd: str = ""
    cwd_aliases: tuple[str, ...] = ()  #: other absolute spellings of `cwd`
    recorded_at: str = ""
    recorder: Recorder = Recorder()
    calls: tuple[Call, ...] = ()
    not_kept: tuple[str, ...] = ()
    snapshot: Snapshot = Snapshot()
    pins: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    plugin: str = ""  #: version of this plugin that recorded


class Summary(NamedTuple):
    """What a row of `list` needs, read without parsing calls and snapshot.

    None is what cannot be told at little cost; a warning then says so.
    """

    name: str
    calls: int | None
    files: int | None
    pins: tuple[str, ...] | None
    warnings: tuple[str, ...]
    recorded_at: str = ""
    names: int | None = None  #: how many names are kept; None also where none are
    whole: bool = False


#: What an arm waits for: a replay, a recording, or a recording whose known calls are answered from a cassette.
Kind = Literal["run", "record", "fill"]
#: Where `hermes chat` hosts a session: in its own process, or in a long-lived gateway.
Hosting = Literal["process", "gateway"]


class Arm(NamedTuple):
    """A run, a recording or a fill that waits for its session.

    `hosting` is "process" when the session runs in the child itself, which then
    carries the arm's id in its environment, and "gateway" when a long-lived
    process hosts it.  `created` is seconds since the epoch, `timeout` seconds.
    """

    id: str
    kind: Kind
    name: str
    request: str
    hosting: Hosting
    created: float
    timeout: float
    plugin: str  #: `Facts.plugin` of the command line that armed
    fingerprint: str
    folder: str = ""  #: where the session works
    cassette_sha: str = ""  #: the cassette's content; a run or a fill claims no other
    overwrite: bool = False
    rg_major: int = 0  #: major version of the ripgrep here; 0 unknown
    whole: bool = False  #: of a recording: the texts of the whole workspace are kept
    names: bool = True  #: of a recording: the names of all in it are kept


class Facts(NamedTuple):
    """What a process says of itself before it may host a replay."""

    plugin: str  #: version in plugin.yaml when the code was loaded
    fingerprint: str  #: SHA-256 of the plugin's code when it was loaded
    pid: int
    yolo: bool  #: HERMES_YOLO_MODE is set in its environment
    hermes: str = ""


class Claim(NamedTuple):
    """Which turn of which session, in which process, took an arm."""

    arm: str
    session: str
    turn: str
    model: str
    facts: Facts
    error: str = ""  #: why the turn is bound to nothing, or ""


#: What has become of a recording.
Stage = Literal["armed", "recording", "saved", "not saved"]


class RecordingState(NamedTuple):
    """What has become of a recording, for whatever process asks next.

    `session` is "" while the session is not known.  `created` is when this was
    written, in seconds since the epoch; `text` says more about an end.
    """

    state: Stage
    name: str
    session: str
    created: float
    overwrite: bool = False
    text: str = ""
    whole: bool = False  #: as an arm's
    names: bool = True


#: How a call of a replayed turn can be answered.
_How = Literal["hit", "synthesized", "miss"]
HOWS: tuple[_How, ...] = get_args(_How)


class Answered(NamedTuple):
    """How one call of a replayed turn was answered.

    `recorded` is the index of the recorded call behind a hit; `repeat` counts
    from 1 among equal calls.  `reason` and `nearest` are for the person, never
    for the model.  `id` is the model's own name for the call.  Of a search,
    `files` counts what the live tool reads, and `known` what has a text here.
    """

    tool: str
    args: Any
    how: _How
    recorded: int | None = None
    repeat: int = 1
    reason: str = ""
    nearest: str = ""
    id: str = ""
    known: int = 0
    files: int = 0


class Ledger(NamedTuple):
    """What a claimed turn asked for, and how it ended.

    `sessions` are the ids the host used for the turn, in order (an id can
    change when the host compresses).  `live` counts tool calls of the turn
    that ran before the claim landed.  `finished` is true only when the host
    reported the turn's final answer.  `model` is the one that the turn began
    with, `models` are those that answered, in order.  `foreign` names the tools
    of calls that the conversation holds and that were never asked of us.
    `steps` is the host's limit of steps, if the turn stopped there, else 0.
    `before` names the plugins whose middleware stands before ours.
    """

    arm: str
    turn: str
    sessions: tuple[str, ...]
    model: str
    facts: Facts
    calls: tuple[Answered, ...] = ()
    answer: str = ""
    live: int = 0
    finished: bool = False
    truncated: bool = False
    evicted: bool = False
    errors: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    steps: int = 0
    before: tuple[str, ...] = ()


# --- pins ------------------------------------------------------------------


#: Characters of a pin.
_PIN_LIMIT = 10_000


def kept_pin(text: str) -> str:
    """Return a pin as it is kept.  :raises CassetteError: if it is empty, more than a line, or too long."""
    pin = text.strip()
    if not pin.removeprefix("re:"):
        raise CassetteError("a pin cannot be empty: name a fact that the answer must contain")
    if len(pin.splitlines()) > 1:
        raise CassetteError("a pin is one line: pin each line as a fact of its own")
    if len(pin) > _PIN_LIMIT:
        raise CassetteError(f"a pin has at most {_PIN_LIMIT:,} characters, and this has {len(pin):,}: name less")
    return pin


# --- JSON, read strictly -----------------------------------------------------


def parse_json(data: bytes, what: str) -> Any:
    """Decode JSON bytes, refusing what two readers could take differently.

    :param what: names the file in the error's text.
    :raises CassetteError: if it is not UTF-8 or not JSON, repeats a key, holds
        NaN, an infinity or a number that no reader takes, or is nested too
        deeply.  A byte order mark is skipped.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 (byte {error.start})"
        raise CassetteError("{file} {reason}: restore or record it again", file=what, reason=reason) from None
    _check_crowd(data, what)
    try:
        return json.loads(
            text, object_pairs_hook=_no_twins, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
        )
    except json.JSONDecodeError as error:
        detail = f"{error.msg}, line {error.lineno} column {error.colno}"
    except RecursionError:
        detail = "nested too deeply"
    except ValueError as error:
        detail = str(error).splitlines()[0]
    reason = f"is not a JSON file ({detail})"
    raise CassetteError("{file} {reason}: restore or record it again", file=what, reason=reason)


#: Values that a JSON file may hold; a million take half a second to read.
_VALUES = 1_000_000
#: What stands before each value but the first.
_MARKS = b",[{"


def _check_crowd(data: bytes, what: str) -> None:
    """Refuse a file of so many values that reading it would take a minute and gigabytes.

    Counting outside of strings takes longer than reading, so that it is done
    only where samples of the file, taken where their own contents say, are crowded.
    """
    size, start, marks = 16_384, 0, 0
    if len(data) <= 2 * _VALUES:
        return
    for _ in range(64):
        block = data[start : start + size]
        marks += _count_marks(block)
        start = binascii.crc32(block, start) % (len(data) - size)
    if marks * len(data) < 64 * size * _VALUES:
        return
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")  # each quote that is left begins or ends a string
    if bare.count(b'"') > 4 * _VALUES or _count_marks(b"".join(bare.split(b'"')[::2])) > _VALUES:
        reason = f"holds more than {_VALUES:,} values"
        raise CassetteError("{file} {reason}: restore or record it again", file=what, reason=reason)


def _count_marks(data: bytes) -> int:
    return len(data) - len(data.translate(None, _MARKS))


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        twin = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"key {_quoted(twin)} stands twice")
    return made


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {_quoted(digits)[1:-1]} is too large")
    return number


#: Digits of a whole number; Python itself refuses to read or write more.
_DIGITS = 4_300


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) > _DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits, over {_DIGITS:,}")
    return int(digits)


#: Levels of lists and objects that every reader takes, whatever is around them.
_DEPTH = 64


def plain_copy(value: Any, levels: int = _DEPTH) -> Any:
    """Copy a value made of JSON's own types alone, so that `parse_json` takes what is written.

    Not called plain, though JSON may well hold them: whole numbers over 64
    bits, more than 64 levels, and keys with half a surrogate pair, two of which
    can be the same once they are read.

    :param levels: how many levels of lists and objects it may have.
    :raises TypeError: if it is not plain.
    :raises RecursionError: if little stack is left.
    """
    kind = type(value)
    if kind is dict and levels > 0:
        levels -= 1
        made = {}
        for key, one in value.items():
            if type(key) is not str or not key.isascii() and has_surrogate(key):
                raise TypeError("a key is not plain JSON here")
            made[key] = one if type(one) is str else plain_copy(one, levels)
        return made
    if kind is int and value.bit_length() <= 64 or kind is str or kind is bool or value is None:
        return value
    if kind is list and levels > 0:
        return [one if type(one) is str else plain_copy(one, levels - 1) for one in value]
    if kind is float and math.isfinite(value):
        return value
    raise TypeError(f"a {kind.__name__} is not plain JSON here")


def is_plain_json(value: Any) -> bool:
    """Whether `plain_copy` takes a value.  Never raises."""
    try:
        plain_copy(value)
    except (TypeError, RecursionError):
        return False
    return True


def has_surrogate(text: str) -> bool:
    """Whether a text holds half a surrogate pair, so that no UTF-8 can be made of it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


#: Characters of a text at most, by its field's name; what `show` can live with.
_LENGTHS = dict.fromkeys(("model", "recorded_at", "plugin", "hermes", "platform", "search", "not_kept"), 1_000)
_LENGTHS |= {"pins": _PIN_LIMIT, "warnings": 100_000, "cwd": 40_000, "cwd_aliases": 40_000}
_LENGTHS |= {"text": 12 * 2**20, "result": 12 * 2**20}
_LENGTH = 2 * 2**20
#: Entries of a list at most.
_COUNTS = {"pins": 1_000, "warnings": 1_000, "cwd_aliases": 100}


class Fields:
    """Reads the fields of one JSON object and names what is wrong with them.

    `where` is the path of the object within the file, "" for the root; with
    `item` it is the path of the list or object that holds this one.
    """

    def __init__(self, value: Any, file: str, where: str = "", item: int | str | None = None) -> None:
        self.file, self.where, self.item = file, where, item
        if not isinstance(value, dict):
            raise self.wrong("", "object", value)
        self.value = value

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """Return a field of the given type.

        :raises CassetteError: if it has another type, or is missing and there
            is no default.
        """
        found = self.value.get(key, default)
        if type(found) is kind:
            if kind is str and len(found) > _LENGTHS.get(key, _LENGTH):
                raise self.too_long(key, found)
            return found
        if found is ...:
            raise self.bad(key, "is missing")
        wanted = kind if isinstance(kind, tuple) else (kind,)
        if isinstance(found, bool) and bool not in wanted or not isinstance(found, wanted):
            raise self.wrong(key, "/".join(_KINDS[one] for one in wanted), found)
        return found

    def number(self, key: str, default: Any = ...) -> float:
        """Return a number as a float.  :raises CassetteError: as `get`, or if it is too large for one."""
        found = self.get(key, (int, float), default)
        try:
            return float(found)
        except OverflowError:
            raise self.bad(key, "is too large a number") from None

    def choice(self, key: str, known: Sequence[str], default: Any = ...) -> str:
        """Return one of the known texts.  :raises CassetteError: as `get`, or if it is none of them."""
        found = self.get(key, str, default)
        if found not in known:
            raise self.bad(key, f"is {_quoted(found)}, none of {', '.join(map(repr, known))}")
        return found

    def texts(self, key: str, default: Any = ()) -> tuple[str, ...]:
        """Return a list of strings; a missing one is empty unless `default` is `...`."""
        if key not in self.value and default is not ...:
            return tuple(default)
        found = self.get(key, list)
        for index, item in enumerate(found):
            if not isinstance(item, str):
                raise self.wrong(f"{key}[{index}]", "string", item)
            if len(item) > _LENGTHS.get(key, _LENGTH):
                raise self.too_long(f"{key}[{index}]", item, key)
        if len(found) > _COUNTS.get(key, len(found)):
            raise self.bad(key, f"has {len(found):,} entries, over {_COUNTS[key]:,}")
        return tuple(found)

    def too_long(self, where: str, found: str, key: str = "") -> CassetteError:
        limit = _LENGTHS.get(key or where, _LENGTH)
        return self.bad(where, f"has {len(found):,} characters, over {limit:,}")

    def path(self, key: str) -> str:
        where = self.where if self.item is None else f"{self.where}[{_quoted(self.item)}]"
        return ".".join(part for part in (where, key) if part)

    def wrong(self, key: str, wanted: str, found: Any) -> CassetteError:
        kind = _KINDS.get(type(found), type(found).__name__)
        return self.bad(key, f"should be {_article(wanted)}, but it is {_article(kind)}")

    def bad(self, key: str, what: str) -> CassetteError:
        """The error that says what is wrong with a field ("" for the object itself)."""
        where = self.path(key)
        subject = "field {field}" if where else "the file's root"
        form = "{file}: " + subject + " {reason}: restore or record it again"
        return CassetteError(form, file=self.file, field=where, reason=what)


_KINDS = {
    dict: "object",
    list: "list",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def _article(kind: str) -> str:
    return kind if kind == "null" else f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


# --- a cassette as JSON -----------------------------------------------------

#: The cassette format.  1: the first.
SCHEMA = 1

#: A larger file is refused before it is read: the limits allow about 20 MB of
#: text, and JSON escapes at most multiply that by six.
JSON_FILE_LIMIT = 160 * 1024 * 1024


def dump_cassette(cassette: Cassette) -> bytes:
    """Encode a cassette, one field a line, the small ones first.

    `Store.summary` relies on that order to list a folder of large cassettes
    without parsing them; any JSON that `parse_cassette` accepts is as good.
    `counts` is for that list alone: `seal` ties it to everything after it, so
    that counts a person left stale are found out and counted anew.

    A lone surrogate comes back as it was; the two halves of a pair that stand
    next to each other come back as the one character they are.

    :raises CassetteError: if a value is none that JSON can hold.
    """
    large, snapshot = _large_lines(cassette), cassette.snapshot
    counts: dict[str, Any] = {"calls": len(cassette.calls), "files": len(snapshot.files)}
    if snapshot.names is not None or snapshot.whole:  # older versions know no other counts
        counts |= {"names": None if snapshot.names is None else len(snapshot.names), "whole": snapshot.whole}
    return b"{\n%s,\n%s" % (_small_lines(cassette, {**counts, "seal": _seal(counts, [large])}), large)


def _small_lines(cassette: Cassette, counts: Mapping[str, Any]) -> bytes:
    return _lines(
        cassette.name,
        schema=SCHEMA,
        name=cassette.name,
        counts=counts,
        pins=cassette.pins,
        warnings=cassette.warnings,
        not_kept=cassette.not_kept,
        recorded_at=cassette.recorded_at,
        plugin=cassette.plugin,
        host=cassette.recorder._asdict(),
        model=cassette.model,
        cwd=cassette.cwd,
        cwd_aliases=cassette.cwd_aliases,
        request=cassette.request,
        answer=cassette.answer,
    )


def _large_lines(cassette: Cassette) -> bytes:
    """Calls and snapshot, to the end of the file."""
    calls = [{"tool": call.tool, "args": call.args, "result": call.result} for call in cassette.calls]
    snapshot: dict[str, Any] = {
        "skipped": dict(cassette.snapshot.skipped),
        "skipped_paths": dict(cassette.snapshot.skipped_paths),
        "links": dict(cassette.snapshot.links),
        "files": {
            path: {name: one for name, one in file._asdict().items() if one is not None}
            for path, file in cassette.snapshot.files.items()
        },
    }
    if cassette.snapshot.names is not None:
        snapshot["names"] = {path: _name_list(one) for path, one in cassette.snapshot.names.items()}
    snapshot |= {"whole": True} if cassette.snapshot.whole else {}
    snapshot |= {} if (untracked := cassette.snapshot.untracked) is None else {"untracked": list(untracked)}
    return b"%s\n}\n" % _lines(cassette.name, calls=calls, snapshot=snapshot)


def _name_list(name: Name) -> list[Any]:
    """A name's fields up to the last one that says anything."""
    made = list(name)
    while len(made) > 1 and made[-1] == _NOTHING[len(made) - 1]:
        made.pop()
    return made


def _lines(name: str, /, **fields: Any) -> bytes:
    return b",\n".join(b'"%s": %s' % (key.encode(), _encode(value, repr(name), key)) for key, value in fields.items())


def _seal(counts: Mapping[str, Any], large: Iterable[bytes]) -> str:
    """Tie the counts to the lines they count: a checksum, no protection against intent."""
    found = binascii.crc32(" ".join(map(str, counts.values())).encode())
    for piece in large:
        found = binascii.crc32(piece, found)
    return f"{found:08x}"


def _encode(value: Any, owner: str, field: str = "") -> bytes:
    """Encode a value as JSON in UTF-8.

    :param owner: names what the value, or the field of it, belongs to in the error's text.
    :raises CassetteError: if JSON cannot hold it.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        form = "field {field} {reason}: record again without it" if field else "field {reason}: record again without it"
        reason = f"of {owner} cannot be kept as JSON ({error})"
        raise CassetteError(form, field=field, reason=reason) from None
    return text.encode("utf-8", "backslashreplace")  # a lone surrogate, written as JSON escapes it too


def parse_cassette(data: bytes, file: str) -> Cassette:
    """Decode a cassette, checking every field.

    Keys that this version does not know are ignored, and so is `counts`.

    :param file: names the file in the error's text.
    :raises CassetteError: if anything is not as this version writes it, or was
        written by a newer version.
    """
    fields = Fields(parse_json(data, file), file)
    small = _parse_small(fields)
    return Cassette(calls=tuple(_parse_calls(fields)), snapshot=_parse_snapshot(fields), **small)


def _parse_small(fields: Fields) -> dict[str, Any]:
    """Check the schema and every field but calls and snapshot."""
    schema = fields.get("schema", int)
    if schema != SCHEMA:
        raise CassetteError(
            "{file}: field {field}: {reason}: update the plugin, or record the cassette again",
            file=fields.file,
            field="schema",
            reason=f"schema {_quoted(schema)} is not known here (this version reads {SCHEMA})",
        )
    return {
        "name": fields.get("name", str),
        "request": fields.get("request", str),
        "answer": fields.get("answer", str),
        "model": fields.get("model", str, ""),
        "cwd": fields.get("cwd", str, ""),
        "cwd_aliases": fields.texts("cwd_aliases"),
        "recorded_at": fields.get("recorded_at", str, ""),
        "recorder": _parse_recorder(fields),
        "not_kept": fields.texts("not_kept"),
        "pins": _parse_pins(fields),
        "warnings": fields.texts("warnings"),
        "plugin": fields.get("plugin", str, ""),
    }


#: Bytes of a file that `list` parses, whatever they hold: in about 10 ms.
_HEAD = 128 * 1024
#: Larger files are not read by `list`, only begun.
_SEALED = 64 * 2**20
#: Bytes and values of a file that somebody edited, up to which `list` parses all of it.
_EDITED, _EDITED_VALUES = 4 * 2**20, 50_000
_UNREAD = "it is too large to be counted here: hermes cassette show {name} reads all of it"


def _sum_up(file: IO[bytes], name: str, path: str) -> Summary:
    """Read what a row of `list` needs, in at most 50 ms and a few megabytes.

    Calls and snapshot are parsed only in a small file that is not as it was
    written: cut short, reformatted or edited by a person.

    :raises CassetteError: if what was parsed is wrong.
    """
    size, head = os.fstat(file.fileno()).st_size, file.read(_HEAD)
    start = head.find(b'\n"calls": ') + 1
    unread, small, sealed = (_UNREAD.format(name=name),), None, None
    try:
        fields = Fields(parse_json(head[:start].rstrip().rstrip(b",") + b"}", path), path)
        if "calls" not in fields.value and "snapshot" not in fields.value:  # else twice in the file
            small = _parse_small(fields)
            counts = Fields(fields.get("counts", dict), path, "counts")
            sealed = counts.get("calls", int), counts.get("files", int), counts.get("seal", str)
            names, whole = counts.get("names", (int, type(None)), None), counts.get("whole", bool, False)
            told = {name: value for name, value in counts.value.items() if name != "seal"}
    except CassetteError:
        pass  # whoever parses the whole file learns what is wrong
    if small is not None and sealed is not None and size <= _SEALED:
        calls, files, seal = sealed
        if seal == _seal(told, itertools.chain([head[start:]], iter(lambda: file.read(2**20), b""))):
            at = small["recorded_at"]
            return Summary(small["name"], calls, files, small["pins"], small["warnings"], at, names, whole)
    if size <= _EDITED:
        file.seek(0)
        data = file.read(_EDITED)
        if size <= _HEAD or _count_marks(data) <= _EDITED_VALUES:
            return _summed(parse_cassette(data, path))
    if small is None:
        return Summary(name, None, None, None, unread)
    return Summary(small["name"], None, None, small["pins"], (*small["warnings"], *unread), small["recorded_at"])


def _parse_recorder(fields: Fields) -> Recorder:
    recorder: Recorder = _flat(Recorder, Fields(fields.get("host", dict, {}), fields.file, "host"))  # its older name
    return recorder


def _parse_calls(fields: Fields) -> Iterator[Call]:
    for index, value in enumerate(fields.get("calls", list)):
        if type(value) is dict and type(value.get("tool")) is str and type(value.get("args")) is dict:
            if type(value.get("result")) is str:  # nothing is wrong with it
                yield Call(value["tool"], value["args"], value["result"])
                continue
        call = Fields(value, fields.file, "calls", index)
        yield Call(
            call.get("tool", str),
            call.get("args", dict),
            call.get("result", (str, dict, list, int, float, bool, type(None))),
        )


#: How most files are written.
_FILE_TYPES, _FILE_KEYS = (str, int, float, bool), (SnapshotFile._fields[:4], SnapshotFile._fields)


def _parse_snapshot(fields: Fields) -> Snapshot:
    snapshot = Fields(fields.get("snapshot", dict), fields.file, "snapshot")
    files = {}
    for path, value in snapshot.get("files", dict).items():
        if type(value) is dict and (*value,) in _FILE_KEYS and not value.get("masks") and not _climbs(path):
            text, size, mtime, ignored, *masks = value.values()
            if (type(text), type(size), type(mtime), type(ignored)) == _FILE_TYPES and size >= 0:
                if len(text) <= _LENGTHS["text"] and masks in ([], [[]]):  # nothing is wrong with it
                    files[path] = SnapshotFile(text, size, mtime, ignored, () if masks else None)
                    continue
        one = Fields(value, fields.file, "snapshot.files", path)
        text = one.get("text", str)
        size = one.get("size", int, len(text))
        if size < 0:
            raise one.bad("size", "is negative")
        if _climbs(path):
            raise one.bad("", "is no path below the workspace")
        hidden = _parse_masks(one, len(text)) if "masks" in value else None
        files[path] = SnapshotFile(text, size, one.number("mtime", 0), one.get("ignored", bool, False), hidden)
    counts = Fields(snapshot.get("skipped", dict, {}), fields.file, "snapshot.skipped")
    paths = Fields(snapshot.get("skipped_paths", dict, {}), fields.file, "snapshot.skipped_paths")
    links = Fields(snapshot.get("links", dict, {}), fields.file, "snapshot.links")
    return Snapshot(
        files,
        {reason: counts.get(reason, int) for reason in counts.value},
        {path: paths.get(path, str) for path in paths.value},
        {path: links.get(path, str) for path in links.value},
        _parse_names(snapshot) if "names" in snapshot.value else None,
        snapshot.get("whole", bool, False),
        snapshot.texts("untracked") if "untracked" in snapshot.value else None,
    )


def _climbs(path: str) -> bool:
    """Whether a path is none that leads from the workspace down."""
    whole = f"/{path}/"
    return "//" in whole or "/./" in whole or "/../" in whole


def _parse_names(snapshot: Fields) -> dict[str, Name]:
    found: dict[str, Any] = snapshot.get("names", dict)
    names = {
        path: Name(*value) if type(value) is list and 0 < len(value) < 8 else None for path, value in found.items()
    }
    if fault := _name_fault(names):
        raise Fields({}, snapshot.file, "snapshot.names", fault[0]).bad("", fault[1])
    return names  # type: ignore[return-value]


def _name_fault(names: Mapping[str, Name | None]) -> tuple[str | None, str] | None:
    """The first path at which names are not such as a workspace has (None for all of them), and what is wrong there."""
    if len(names) > NAMES_LIMIT:
        return None, f"has {len(names):,} entries, over {NAMES_LIMIT:,}"
    for path, name in () if _are_plain(names) else names.items():
        if not _are_plain({"-": name}):
            return path, "should be a list of kind, size, time and marks"
        if _climbs(path):
            return path, "is no path below the workspace"
    for path in {path.rpartition("/")[0]: path for path in names}.values():
        above = names.get(path.rpartition("/")[0])
        if "/" in path and (above is None or above.kind != "folder" or above.inside is not None):
            return path, "lies in no folder whose names are listed"
    return None


def _are_plain(names: Mapping[str, Name | None]) -> bool:
    """Whether nothing is wrong with any name by itself: all of them looked at together, column by column."""
    if not names or None in names.values() or _climbs("/\n/".join(names)):
        return False
    columns = list(zip(*names.values()))  # type: ignore[arg-type]
    if not {*zip(*(map(type, column) for column in columns))} <= _NAME_SHAPES:
        return False
    closed = [(kind, inside) for kind, inside in zip(columns[0], columns[5]) if inside is not None]
    return {*columns[0]} <= _NAME_KINDS and min(columns[1]) >= 0 and all(k == "folder" and n >= 0 for k, n in closed)


def _parse_masks(file: Fields, length: int) -> tuple[tuple[int, int, str], ...]:
    done = 0
    masks = []
    for value in file.get("masks", list):
        if (
            type(value) is not list
            or [*map(type, value)] != [int, int, str]
            or not done <= value[0] <= value[1] <= length
        ):
            raise file.bad("masks", f"should be places in the text, but one is {_quoted(value)}")
        masks.append(tuple(value))
        done = value[1]
    return tuple(masks)


def _parse_pins(fields: Fields) -> tuple[str, ...]:
    pins = []
    for index, pin in enumerate(fields.texts("pins")):
        try:
            pins.append(kept_pin(pin))
        except CassetteError as error:
            where = f"pins[{index}]"
            raise CassetteError(
                "{file}: field {field}: {reason}", file=fields.file, field=where, reason=str(error)
            ) from None
    return tuple(pins)


# --- values as JSON -----------------------------------------------------------


def to_json(value: Any) -> bytes:
    """Encode an `Arm`, `Claim`, `Ledger`, `RecordingState` or a plain object for a hand-over file.

    :raises CassetteError: if JSON cannot hold it.
    :raises TypeError: if it is anything else.
    """
    owner = f"a {type(value).__name__.lower()}"
    if isinstance(value, Ledger):
        calls = [call._asdict() for call in value.calls]
        value = {**value._asdict(), "facts": value.facts._asdict(), "calls": calls}
    elif isinstance(value, Claim):
        value = {**value._asdict(), "facts": value.facts._asdict()}
    elif isinstance(value, (Arm, RecordingState)):
        value = value._asdict()
    if not isinstance(value, Mapping):
        raise TypeError(f"{owner} is none of the objects that are handed over")
    return _encode(value, owner) + b"\n"


def parse_arm(data: bytes, file: str) -> Arm:
    """Decode an arm.

    :raises CassetteError: if a field is missing or mistyped, or means nothing
        here: an arm of an unknown kind must bind no turn.
    """
    fields = Fields(parse_json(data, file), file)
    arm: Arm = _flat(Arm, fields)
    if not re.fullmatch(r"[0-9A-Za-z_-]{1,64}", arm.id):
        raise fields.bad("id", f"is {_quoted(arm.id)}, no id of a run")
    return arm


def parse_state(data: bytes, file: str) -> RecordingState:
    """Decode a recording's state.  :raises CassetteError: if a field is missing or mistyped."""
    fields = Fields(parse_json(data, file), file)
    later = {"whole": fields.get("whole", bool, False), "names": fields.get("names", bool, True)}  # than the rest
    state: RecordingState = _flat(RecordingState, fields, strict=True, **later)
    return state


def parse_claim(data: bytes, file: str) -> Claim:
    """Decode a claim.  :raises CassetteError: if a field is missing or mistyped."""
    fields = Fields(parse_json(data, file), file)
    return _flat(Claim, fields, strict=True, facts=parse_facts(fields))


def parse_facts(fields: Fields) -> Facts:
    """Read the `facts` object of a claim, a ledger or a ping's answer."""
    return _flat(Facts, Fields(fields.get("facts", dict), fields.file, "facts"))


def parse_ledger(data: bytes, file: str) -> Ledger:
    """Decode a ledger, which is evidence: what it leaves out is no "nothing happened".

    :raises CassetteError: if a field is missing or mistyped, or a call was
        answered in a way that means nothing here.
    """
    fields = Fields(parse_json(data, file), file)
    return _flat(
        Ledger,
        fields,
        strict=True,
        facts=parse_facts(fields),
        calls=tuple(_parse_answered(fields)),
        **{name: fields.texts(name, ...) for name in ("sessions", "errors", "models", "foreign", "before")},
    )


def _parse_answered(fields: Fields) -> Iterator[Answered]:
    for index, value in enumerate(fields.get("calls", list)):
        yield _flat(Answered, Fields(value, fields.file, "calls", index), strict=True)


_TYPES: dict[Any, Any] = {
    str: str,
    bool: bool,
    int: int,
    int | None: (int, type(None)),
    Any: (dict, list, str, int, float, bool, type(None)),
}


def _flat(kind: Any, fields: Fields, strict: bool = False, **ready: Any) -> Any:
    """Build a value from an object's fields of the same names and types.

    :param strict: every field must be there, also one that has a default.
    """
    for name, wanted in kind.__annotations__.items():
        if name not in ready:
            default = ... if strict else kind._field_defaults.get(name, ...)
            if wanted is float:
                ready[name] = fields.number(name, default)
            elif get_origin(wanted) is Literal:
                ready[name] = fields.choice(name, get_args(wanted), default)
            else:
                ready[name] = fields.get(name, _TYPES[wanted], default)
    return kind(**ready)


# --- files: atomic, locked ------------------------------------------------------


#: Whether files and locks work as Windows's do.
WINDOWS = os.name == "nt"


def _read_whole(path: Path) -> bytes:
    """Read a file.  :raises OSError: as `_read`."""
    return _read(path, lambda file: file.read())


def _read(path: Path, read: Callable[[IO[bytes]], _T]) -> _T:
    """Read from a regular file; a pipe, a device or a folder in its place is refused, never waited for.

    :raises OSError: if it cannot be read, or is over `JSON_FILE_LIMIT`.
    """
    with _patiently(lambda: open(path, "rb", opener=_open_at_once)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if found.st_size > JSON_FILE_LIMIT:
            raise OSError(errno.EFBIG, f"it is over {JSON_FILE_LIMIT // 2**20} MB, larger than any that was recorded")
        return read(file)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _patiently(action: Callable[[], _T]) -> _T:
    """Do it; on Windows, where an open file cannot be replaced, try for a second."""
    for _ in range(50 if WINDOWS else 0):
        try:
            return action()
        except PermissionError:
            time.sleep(0.02)
    return action()


def write_atomically(path: Path, data: bytes) -> None:
    """Put a whole file in place, or leave what was there.

    The bytes reach the disk before the name does.  On POSIX the file is for
    its owner alone.  A link in its place is replaced; what it leads to is not
    touched.

    :raises CassetteError: if it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _patiently(lambda: os.replace(temporary, path))
        _sync_folder(path.parent)
    except OSError as error:
        raise _system_error("cannot write {file} ({reason}): " + _remedy(error), path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _remedy(error: OSError) -> str:
    """What helps against a failed write."""
    space, access = "free some space on its disk", "make its folder writable"
    known = {errno.ENOSPC: space, getattr(errno, "EDQUOT", errno.ENOSPC): space}
    known.update(dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), access))
    return known.get(error.errno or 0, f"{space}, or {access}")


def _sync_folder(folder: Path) -> None:
    """Make a rename durable where the platform and the file system can; it is done either way."""
    if WINDOWS:
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _make_folder(folder: Path) -> None:
    """Make a folder for its owner alone.  :raises CassetteError: if that is impossible."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        form = "cannot make the folder {file} ({reason}): make its place a writable folder"
        raise _system_error(form, folder, error) from error
    with contextlib.suppress(OSError):  # some file systems keep no modes
        if not WINDOWS and stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)


def _remove_litter(folder: Path, before: float = math.inf) -> None:
    """Remove temporary files that a killed writer left, if last written before a time."""
    _remove_old(folder, before, lambda entry: entry.startswith(".") and entry.endswith(".tmp"))


def _remove_old(folder: Path, before: float, chosen: Callable[[str], bool] = lambda entry: True) -> None:
    for path in [folder / entry for entry in _entries(folder) if chosen(entry)]:
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < before:
                path.unlink()


def _remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, if it is there; of a link only the link."""
    if os.path.islink(folder) or getattr(os.path, "isjunction", os.path.islink)(folder):
        (os.rmdir if WINDOWS else os.unlink)(folder)
    elif os.path.exists(folder):
        shutil.rmtree(folder)


def _entries(folder: Path) -> list[str]:
    """The names in a folder; none if it cannot be listed."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


class FileLock:
    """An advisory lock that the operating system frees when its holder dies.

    It keeps threads and processes apart alike, since every `FileLock` opens
    the file anew.  Its file stays for good: removing it while it is held would
    let a second holder in.  It promises nothing on a network drive that
    ignores locks, nor between a process and its fork.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def try_acquire(self) -> bool:
        """Take the lock now, or return False because someone else holds it.

        :raises CassetteError: if the lock file cannot be opened or locked.
        """
        while True:
            file = self._open()
            try:
                taken, there = _lock_now(file), self._is_still(file)
            except OSError as error:
                file.close()
                form = "cannot lock {file} ({reason}): keep it on a drive that has file locks"
                raise _system_error(form, self.path, error) from error
            if taken and there:
                self._file = file
                return True
            file.close()
            if not taken:
                return False

    def _is_still(self, file: IO[bytes]) -> bool:
        """Whether the path still names an open file; a lock on a removed one keeps nobody out."""
        if WINDOWS:  # an open file cannot be removed there
            return True
        try:
            return os.path.samestat(os.fstat(file.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _open(self) -> IO[bytes]:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
            return open(descriptor, "r+b", buffering=0)
        except OSError as error:
            raise _system_error("cannot open {file} ({reason}): make its folder writable", self.path, error) from error

    def acquire(self, seconds: float) -> None:
        """Wait for the lock.  :raises CassetteError: if it takes longer than `seconds`."""
        deadline = time.monotonic() + seconds
        while not self.try_acquire():
            if time.monotonic() >= deadline:
                raise CassetteError(
                    "{file} {reason}: another command is writing; try again",
                    file=self.path,
                    reason=f"has been locked for {seconds:g} s",
                )
            time.sleep(0.01)

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "FileLock":
        self.acquire(10.0)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _lock_now(file: IO[bytes]) -> bool:
    """Lock an open file, or return False because another has.  :raises OSError: if locks do not work here."""
    try:
        if WINDOWS:
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


# --- names ------------------------------------------------------------------------

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"
_DEVICES = r"(?i)(con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9])(\.|\Z)"


def check_name(name: str) -> str:
    """Return a cassette's name, or refuse one that some platform cannot store.

    :raises CassetteError: if it holds anything but letters, digits, `.`, `_`
        and `-`, starts with none of the first two, ends with a dot, is longer
        than 64 characters, or is a device name of Windows.
    """
    if not re.match(_NAME, name) or name.endswith("."):
        raise CassetteError(
            f"{name!r} cannot name a cassette: use up to 64 letters, digits, '.', '_' and '-',"
            " starting with a letter or digit and not ending with a dot"
        )
    if re.match(_DEVICES, name):
        raise CassetteError(f"{name!r} is a device name on Windows: choose another name")
    return name


# --- the store -------------------------------------------------------------------


#: Bytes that are written to see whether a folder can be written to.
_PROBE = 256 * 1024


class Store:
    """The plugin's data folder.

    `cassettes/` and `runs/` are kept; everything else is a hand-over between
    processes and short-lived.  Every write is atomic, every read-then-write is
    done under the folder's lock.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def prepare(self) -> None:
        """Make the folders, for their owner alone on POSIX.

        :raises CassetteError: if they cannot be made.
        """
        for part in ("", "cassettes", "runs", "suites", "recordings", "claims", "ledgers", "pings", "running"):
            _make_folder(self.root / part)

    def check_writable(self) -> None:
        """Write as much as a small cassette takes, and take it away again.

        :raises CassetteError: if that is impossible: a full disk, a folder that is read-only.
        """
        probe = self.root / "writable"
        write_atomically(probe, b"\0" * _PROBE)
        with contextlib.suppress(OSError):
            probe.unlink()

    def lock(self) -> FileLock:
        """The lock for reading and then writing anything in the folder."""
        return FileLock(self.root / "store.lock")

    def waiting(self) -> FileLock:
        """The lock that a command holds while its arm waits to be claimed.

        Whoever can take it knows that an arm lying there belongs to the dead.
        """
        return FileLock(self.root / "waiting.lock")

    # cassettes

    def path(self, name: str) -> Path:
        """Where a cassette of this name is kept.  :raises CassetteError: for a bad name."""
        return self.root / "cassettes" / f"{check_name(name)}.json"

    def exists(self, name: str) -> bool:
        """Whether a cassette has this name, in this or another case."""
        self.path(name)
        return any(name.casefold() == other.casefold() for other in self.names())

    def check_free(self, name: str, overwrite: bool) -> None:
        """Refuse a name that is taken.  :raises CassetteError: unless it may be overwritten."""
        if self.exists(name) and not overwrite:
            raise CassetteError(f"there is a cassette {name!r} already: use --overwrite, or another name")

    def names(self) -> list[str]:
        """The names of all cassettes, sorted."""
        try:
            entries = os.listdir(self.root / "cassettes")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unreadable(self.root / "cassettes", error) from error
        stems = (entry[:-5] for entry in entries if entry.endswith(".json"))
        return sorted((stem for stem in stems if re.match(_NAME, stem)), key=str.casefold)

    def read(self, name: str) -> tuple[Cassette, str]:
        """Load a cassette and the SHA-256 of its bytes.

        :raises CassetteError: if there is none (the nearest name is offered),
            or it cannot be read or trusted.
        """
        path = self.path(name)
        data = self._bytes(path, name)
        cassette = parse_cassette(data, str(path))
        _check_own_name(path, name, cassette.name)
        return cassette, hashlib.sha256(data).hexdigest()

    def _bytes(self, path: Path, name: str) -> bytes:
        return self._reading(path, name, lambda file: file.read())

    def _reading(self, path: Path, name: str, read: Callable[[IO[bytes]], _T]) -> _T:
        try:
            return _read(path, read)
        except FileNotFoundError as error:
            if name in self.names():
                raise CassetteError(
                    "{file} {reason}: restore it or remove the link", file=path, reason="leads to a file that is gone"
                ) from error
            raise self._missing(name) from None
        except OSError as error:
            raise _unreadable(path, error) from error

    def _missing(self, name: str) -> CassetteError:
        names = {one.casefold(): one for one in self.names()}
        near = difflib.get_close_matches(name.casefold(), names, 1)
        hint = f"did you mean {names[near[0]]!r}?" if near else "see 'hermes cassette list'"
        return CassetteError(f"there is no cassette {name!r}: {hint}")

    def _check_present(self, name: str) -> None:
        """Refuse a name that no cassette has, before a lock is made for it."""
        if not self.exists(name):
            raise self._missing(name)

    def save(self, cassette: Cassette, overwrite: bool, keep_pins: bool = False) -> Path:
        """Keep a cassette under its name.

        :param keep_pins: a cassette that is replaced hands its pins on.
        :raises CassetteError: if the name is taken and `overwrite` is false,
            or the file cannot be written; what was there before is there after.
        """
        path = self.path(cassette.name)
        data = _dump_readable(cassette, path)
        with self.lock():
            twin = next((n for n in self.names() if n.casefold() == cassette.name.casefold()), None)
            if twin not in (None, cassette.name):
                raise CassetteError(f"there is a cassette {twin!r}, the same name in another case: choose another name")
            if twin and not overwrite:
                raise CassetteError(f"there is a cassette {twin!r} already: use --overwrite, or another name")
            if twin and keep_pins:
                with contextlib.suppress(CassetteError):  # a broken one has none to give
                    data = _dump_readable(cassette._replace(pins=self.read(twin)[0].pins), path)
            self._put(path, data)
        return path

    @staticmethod
    def _put(path: Path, data: bytes) -> None:
        """Write a cassette; the caller holds the lock, so temporary files are a killed writer's."""
        _remove_litter(path.parent)
        write_atomically(path, data)

    def put_aside(self, cassette: Cassette, arm: str) -> None:
        """Keep a headless recording where the command that armed it finds it, until its session ended well.

        :raises CassetteError: if it could not be read again, or cannot be written.
        """
        path = self.aside_path(arm)
        write_atomically(path, _dump_readable(cassette, path))

    def change_pins(self, name: str, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> tuple[str, ...]:
        """Replace a cassette's pins by `change(pins)`, safe against another writer.

        :raises CassetteError: if the cassette cannot be read or written, or
            `change` refuses.
        """
        self._check_present(name)
        with self.lock():
            cassette, _ = self.read(name)
            pins = tuple(change(cassette.pins))
            path = self.path(name)
            self._put(path, _dump_readable(cassette._replace(pins=pins), path))
        return pins

    @contextlib.contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Let nobody rename or remove a cassette meanwhile: a run of it goes on."""
        hold = FileLock(self.root / "running" / f"{check_name(name)}.{secrets.token_hex(8)}.lock")
        with self.lock():
            hold.acquire(10.0)
        try:
            yield
        finally:
            hold.release()
            with contextlib.suppress(OSError):
                hold.path.unlink()

    def _check_free(self, name: str, what: str) -> None:
        """Refuse while a run holds the cassette; the caller holds the lock."""
        holds = re.compile(rf"(?i:{re.escape(name)})\.[0-9a-f]{{16}}\.lock")
        for entry in filter(holds.fullmatch, _entries(self.root / "running")):
            hold = FileLock(self.root / "running" / entry)
            if not hold.try_acquire():
                raise CassetteError(f"a run of {name!r} goes on: wait for its end, or end it, and {what} then")
            hold.release()
            with contextlib.suppress(OSError):  # a killed run's
                hold.path.unlink()

    def remove(self, name: str) -> None:
        """Remove a cassette's runs, then the cassette; of a link only the link.

        :raises CassetteError: if there is none, a run of it goes on, or it
            cannot be removed; what is left can be removed by another try.
        """
        path = self.path(name)
        self._check_present(name)
        with self.lock():
            self._check_free(name, "remove it")
            if not os.path.lexists(path):
                raise self._missing(name)
            try:
                _remove_tree(self.runs(name))
                path.unlink()
            except OSError as error:
                form = "cannot remove {file} ({reason}): make its folder writable"
                raise _system_error(form, error.filename or path, error) from error

    def rename(self, name: str, new: str) -> None:
        """Give a cassette and its runs another name.

        :raises CassetteError: if there is none, it cannot be read, or the new
            name is bad or taken, or a run of it goes on; nothing is lost.
        """
        old_path, new_path = self.path(name), self.path(new)
        self._check_present(name)
        with self.lock():
            cassette, _ = self.read(name)
            if new == name:
                return
            self._check_free(name, "rename it")
            if any(n.casefold() == new.casefold() and n != name for n in self.names()):
                raise CassetteError(f"there is a cassette {new!r} already: choose another name")
            if os.path.lexists(self.runs(new)) and not same_file(self.runs(name), self.runs(new)):
                raise CassetteError(
                    "{file} {reason}: remove it, or choose another name",
                    file=self.runs(new),
                    reason=f"holds runs of an earlier {new!r}",
                )
            self._put(new_path, _dump_readable(cassette._replace(name=new), new_path))
            try:
                if os.path.lexists(self.runs(name)) and not os.path.lexists(self.runs(new)):
                    self.runs(name).rename(self.runs(new))
                if not same_file(old_path, new_path):
                    old_path.unlink()
            except OSError as error:
                form = f"{new!r} is written, but {name!r} cannot be removed ({{reason}}): remove it"
                raise _system_error(form, error.filename or old_path, error) from error

    def count_runs(self, name: str) -> int:
        """How many runs of a cassette are kept."""
        return sum(entry.endswith(".json") for entry in _entries(self.runs(name)))

    def summary(self, name: str) -> Summary:
        """Read what a row of `list` needs, at little cost whatever the file holds.

        What it tells is what `read` would tell; what it cannot tell is None.

        :raises CassetteError: if `read` would raise it, and the file is small enough to be read here.
        """
        path = self.path(name)
        found = self._reading(path, name, lambda file: _sum_up(file, name, str(path)))
        _check_own_name(path, name, found.name)
        return found

    # hand-overs

    def read_value(self, path: Path, parse: Callable[[bytes, str], Any]) -> Any:
        """Read a hand-over file, or return None when there is none.

        :raises CassetteError: if it is there but cannot be read or trusted.
        """
        try:
            data = _read_whole(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error) from error
        return parse(data, str(path))

    @property
    def arm_path(self) -> Path:
        return self.root / "arm.json"

    def claim_path(self, arm: str) -> Path:
        return self.root / "claims" / f"{arm}.json"

    def ledger_path(self, arm: str) -> Path:
        return self.root / "ledgers" / f"{arm}.json"

    def ping_path(self, nonce: str) -> Path:
        return self.root / "pings" / f"{nonce}.json"

    def outcome_path(self, arm: str) -> Path:
        """Where the state of a recording is kept for the command that armed it."""
        return self.root / "recordings" / f"arm-{arm}.json"

    def aside_path(self, arm: str) -> Path:
        """Where a headless recording lies until its session has ended well."""
        return self.root / "recordings" / f"arm-{arm}.cassette.json"

    def recording_path(self, session: str) -> Path:
        """Where the state of a session's recording is kept."""
        digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
        return self.root / "recordings" / f"{digest[:32]}.json"

    def sweep_handovers(self, now: float) -> None:
        """Remove hand-over files that outlived their processes, and a killed writer's litter.

        What belongs to a run is kept for the longest run, everything else for a
        day.  The arm and the store's own locks are never touched: the next command
        replaces a dead one's arm, and a lock whose file is removed holds no more.
        """
        for part in ("claims", "ledgers", "running"):
            _remove_old(self.root / part, now - LONGEST_RUN - _DAY)
        for part in ("pings", "recordings"):
            _remove_old(self.root / part, now - _DAY)
        kept = (f"runs/{name}" for name in _entries(self.root / "runs"))
        for folder in (self.root, *(self.root / part for part in ("suites", *kept))):
            _remove_litter(folder, now - _DAY)

    # runs

    def runs(self, name: str) -> Path:
        """The folder of a cassette's run files."""
        return self.root / "runs" / check_name(name)

    def save_run(self, name: str, stamp: str, run: Mapping[str, Any]) -> Path:
        """Keep a run's verdict; `stamp` sorts by time and is unique."""
        folder = self.runs(name)
        _make_folder(folder.parent)
        _make_folder(folder)
        path = folder / f"{stamp}.json"
        large = [key for key in ("reasons", "pins", "answer", "misses", "calls") if key in run]
        ordered = {key: run[key] for key in [*(key for key in run if key not in large), *large]}
        write_atomically(path, b"{\n%s\n}\n" % _lines(name, **ordered))  # the head is all that `list` reads
        return path

    def last_result(self, name: str) -> dict[str, Any] | None:
        """The newest run without what is large in it; only the head of its file is read."""
        return next((run for _, run in self.run_heads(name) if run is not None), None)

    def run_heads(self, name: str) -> Iterator[tuple[Path, dict[str, Any] | None]]:
        """Each run file, the newest first, and the run without what is large in it; None for one that cannot be read."""
        folder = self.runs(name)
        for entry in sorted((e for e in _entries(folder) if e.endswith(".json")), reverse=True):
            run = None
            with contextlib.suppress(CassetteError, OSError):
                run = parse_json(_read(folder / entry, _run_head), entry)
            yield folder / entry, run if isinstance(run, dict) else None

    def last_runs(self, name: str, count: int) -> list[dict[str, Any]]:
        """The newest runs, newest first; files that cannot be read, or are no run's, are left out."""
        folder = self.runs(name)
        found: list[dict[str, Any]] = []
        for entry in sorted((e for e in _entries(folder) if e.endswith(".json")), reverse=True):
            if len(found) >= count:
                break
            with contextlib.suppress(CassetteError, OSError):
                run = parse_json(_read_whole(folder / entry), entry)
                if isinstance(run, dict) and isinstance(run.get("pins", []), list):
                    found.append(run)
        return found


def _run_head(file: IO[bytes]) -> bytes:
    """A run file up to what is large in it, or as it is if it was cut off."""
    head = file.read(_HEAD)
    if len(head) < _HEAD:
        return head
    file.seek(-2, os.SEEK_END)
    ends = file.read() == b"}\n"
    # in no text stands such a quote
    return re.split(rb',\s*"reasons":', head, maxsplit=1)[0] + b"}" if ends else head


def _check_own_name(path: Path, name: str, inside: str) -> None:
    if inside.casefold() != name.casefold():
        raise CassetteError(
            "{file}: field {field} {reason}: make them agree",
            file=path,
            field="name",
            reason=f"is {_quoted(inside)}, but the file is called {name!r}",
        )


def _dump_readable(cassette: Cassette, path: Path) -> bytes:
    """Encode a cassette that is sure to be read again.

    :raises CassetteError: if it would not be; better now than at the replay.
    """
    data = dump_cassette(cassette)
    if len(data) > JSON_FILE_LIMIT:
        reason = f"would be over {JSON_FILE_LIMIT // 2**20} MB"
        raise CassetteError("{file} {reason}: record a smaller turn", file=path, reason=reason)
    if _is_plain(cassette.calls, cassette.snapshot):
        # Of these two the types say all that reading them back would.
        parse_cassette(dump_cassette(cassette._replace(calls=(), snapshot=Snapshot())), str(path))
    else:
        parse_cassette(data, str(path))
    return data


def _is_plain(calls: Sequence[Call], snapshot: Snapshot) -> bool:
    """Whether all in calls and snapshot is of the very types that `parse_cassette` wants there."""
    for call in calls:
        if type(call.tool) is not str or type(call.result) is not str:
            return False
        if type(call.args) is not dict or not is_plain_json(call.args):
            return False
    for file in snapshot.files.values():
        if type(file.text) is not str or type(file.size) is not int or file.size < 0 or type(file.ignored) is not bool:
            return False
        if type(file.mtime) is not float or not is_plain_json([file.size, file.mtime]):
            return False
        if file.masks not in (None, ()):  # rare: to parse them costs nothing
            return False
    names = snapshot.names or {}
    if any(map(_climbs, snapshot.files)) or _name_fault(names):
        return False
    counts, reasons, links = dict(snapshot.skipped), dict(snapshot.skipped_paths), dict(snapshot.links)
    return (
        is_plain_json([dict.fromkeys(snapshot.files), counts, reasons, links, dict.fromkeys(names)])
        and all(type(count) is int for count in counts.values())
        and all(type(text) is str for text in (*reasons.values(), *links.values()))
    )


def _summed(cassette: Cassette) -> Summary:
    calls, files = len(cassette.calls), len(cassette.snapshot.files)
    names, told = cassette.snapshot.names, (cassette.pins, cassette.warnings, cassette.recorded_at)
    counted = None if names is None else len(names)
    return Summary(cassette.name, calls, files, *told, counted, cassette.snapshot.whole)


def _unreadable(path: Path, error: OSError) -> CassetteError:
    return _system_error("cannot read {file} ({reason}): make it readable, or remove it", path, error)


def _system_error(form: str, file: "str | Path", error: OSError) -> CassetteError:
    """The error that says what the system refused to do with a file."""
    return CassetteError(form, file=file, reason=error.strerror or str(error))


def same_file(one: "str | Path", other: "str | Path") -> bool:
    """Whether two names are one file: a file system that ignores case has but one."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
