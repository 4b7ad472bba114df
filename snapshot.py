"""What a recording keeps of the world outside the conversation: which tool
results, which workspace files, and which it must not.

Nothing here runs a program, opens a connection or reads a file outside the
session's working directory, and nothing here imports Hermes before it is asked
to redact.  Names, arguments and results come from a model: functions that take
them answer with a verdict and do not raise.
"""

from __future__ import annotations

import contextvars
import errno
import importlib
import inspect
import itertools
import json
import os
import re
import stat
import sys
import threading
import time
import unicodedata
from collections import Counter
from fnmatch import translate
from functools import cache
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Protocol, Sequence

from .cassette_store import Call, Name, Snapshot, SnapshotFile, same_file

#: Tools whose results are kept; `terminal` has a rule of its own.
KEPT_TOOLS = frozenset(
    {"read_file", "search_files", "web_search", "web_extract", "skill_view", "skills_list", "session_search"}
    | {"tool_search", "tool_describe"}
)
#: Files over this many bytes on disk are not kept.
SNAPSHOT_FILE_LIMIT = 512 * 1024
#: Kept texts beyond this many bytes of UTF-8 together are not kept.
SNAPSHOT_LIMIT = 8 * 1024 * 1024
#: The same where the texts of the whole workspace are kept, and how many texts those are at most.
WHOLE_LIMIT, WHOLE_FILES = 24 * 1024 * 1024, 20_000
#: A snapshot explains the absence of at most this many files by name.
_SKIPPED_PATHS_LIMIT = 500
#: File names, in lower case, that speak of secrets.
SECRET_NAMES = (
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.kdbx",
    "*.keystore",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "credentials",
    "credentials.*",
    "*.env",
    "secrets.json",
    "secrets.yaml",
    "secrets.yml",
    "secrets.toml",
    "auth.json",
    "token.json",
    "tokens.json",
)


class SkipReason:
    """Why a snapshot has no text of a file: what `Snapshot.skipped` counts by, the same in every cassette."""

    HIDDEN = "hidden"
    SECRET_NAME = "secret name"
    OUTSIDE = "outside the folder"
    LINK_OUT = "link out of the folder"
    NOT_FOUND = "not found"
    NOT_REGULAR = "not a regular file"
    UNREADABLE = "unreadable"
    CHANGED = "changed while read"
    CHANGED_IN_TURN = "changed during the turn"
    CHANGED_SINCE = "changed since the session"
    IGNORED = "ignored by git"
    BINARY = "binary"
    NOT_UTF8 = "not UTF-8"
    TOO_LARGE = "too large"
    TOTAL = "over 8 MB in total"
    WHOLE_TOTAL = "over 24 MB in total"
    LATE = "out of time"
    REFUSED = "refused by Hermes"
    NO_REDACTION = "no redaction"  #: a Hermes that cannot redact
    NO_STRICTER = "no stricter redaction"  #: one that has no mode for a file of secrets, which this is
    REDACTION_FAILED = "redaction failed"
    REDACTION_SLOW = "too slow to redact"  #: its text could hold Hermes's redaction for minutes


class NotKept:
    """Why a call's result is not kept; a recording's warnings say it."""

    RAISED = "it raised an error"
    NO_RESULT = "no result came before the turn ended"
    NO_ARGUMENTS = "its arguments are no JSON object"
    STUB = "the result is only Hermes's notice of a repeated call"
    FOREIGN_TOOL = "not a read-only tool"
    NOT_TEXT = "not a text"
    TOO_LARGE = "too large"
    TOTAL = "over 12 MB in this turn"
    # of a terminal command
    NO_COMMAND = "no command"
    NOT_FOREGROUND = "not a plain foreground run"
    LINES = "more than one line"
    SYNTAX = "shell syntax"
    NOT_LISTED = "not in the list"
    ACTS = "an option that writes or runs"
    WILD = "a pattern that may become an option"
    AFTER_FOREIGN = "after a command outside the list"


@cache
def _secret_name() -> re.Pattern[str]:
    return re.compile("|".join(map(translate, SECRET_NAMES)))


class Redactor:
    """A Hermes's own redaction of file contents.

    Call it with a text, and whether that is a secret file's: it returns the
    text as it may be kept.  `strict` says that this Hermes has the stricter
    mode for such files; without it they are not kept.
    """

    __slots__ = ("_redact", "strict")

    def __init__(self, redact: Callable[[str, bool], Any], strict: bool) -> None:
        self._redact, self.strict = redact, strict

    def __call__(self, text: str, secret_file: bool) -> Any:
        return self._redact(text, secret_file)


# Patterns are kept as text and compiled on first use: every start of Hermes
# loads this module, and few need them.


# --- paths: what a name means inside the working directory -------------------

#: Git Bash, Cygwin and WSL spellings of a drive, as Hermes itself reads them.
_DRIVE_FOLDER = r"(?s)/(?:(?:cygdrive|mnt)/)?([A-Za-z])(/.*)?"
_DRIVE = r"[A-Za-z]:"
_DEVICE = r"(?is)(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3]) *(?:\..*)?"


class _Place(NamedTuple):
    """An absolute path: what it hangs on ("/", "c:/", "//host/share/") and its names."""

    anchor: str
    names: tuple[str, ...]


class Workspace:
    """What a path in a tool argument or a result means in the session's folder.

    Pure string work: the disk is asked by `here` only.  `root` and `aliases`
    are absolute spellings of the same folder; `windows` reads paths as Windows
    does, whatever the platform; `fold_case` says that case carries no meaning.
    `home` is what `~` stands for; when it is empty, a `~` path is not usable.
    """

    def __init__(
        self, root: str, aliases: tuple[str, ...] = (), windows: bool = False, fold_case: bool = False, home: str = ""
    ) -> None:
        self.root, self.aliases, self.home = root, aliases, home
        self.windows, self.fold_case = windows, fold_case
        places = (self._place(spelling, _Place("", ())) for spelling in (root, *aliases))
        self._roots = tuple(place for place in places if place is not None)

    @classmethod
    def here(cls, root: str, others: Sequence[str] = (), once: str = "") -> Workspace:
        """Describe `root` on this machine: its other spellings, and whether case counts.

        :param others: absolute paths that may lead to the same folder through links.
        :param once: a path that led to it before it was moved, or "".
        """
        root = os.path.abspath(root)
        real = os.path.realpath(root)
        # macOS keeps /tmp and /var in /private, and tools name them either way.
        private = sys.platform == "darwin" and real.startswith("/private/")
        short = real[len("/private") :] if private else real
        same = [os.path.normpath(path) for path in others if os.path.isabs(path) and same_file(path, real)]
        aliases = tuple(dict.fromkeys(form for form in (real, short, *same, once) if form not in ("", root)))
        return cls(root, aliases, os.name == "nt", _folds_case(real), os.path.expanduser("~"))

    def relative(self, path: str, base: str = "") -> str | None:
        """Return `path` relative to the root, with `/`; "" is the root itself.

        The case is kept as written.  An empty path names the folder it is
        relative to.  On POSIX a backslash and `C:` are ordinary characters of
        a name, as they are for the tools there; with `windows` they are not.

        :param base: the folder a relative path starts from, itself relative to the root.
        :returns: None when the path lies outside, or is no usable path: not a
            string, with a NUL, `~` without a home, on Windows a device, a
            stream (`a.txt:x`) or a name of dots only.
        """
        for root in self._roots:
            start = self._place(base, root) if base else root
            place = start and self._place(path, start)
            inside = place and self._inside(place)
            if inside is not None:
                return inside
        return None

    def canonical(self, path: str, base: str = "") -> str:
        """Return the one spelling of all paths that mean the same as `path`.

        "." for the root, "./" and the relative path inside it, the normalised
        absolute path outside; folded where case carries no meaning.  What is no
        usable path is returned as it is.  It is a key, not a name to open.
        """
        inside = self.relative(path, base)
        if inside is not None:
            return self.fold("./" + inside if inside else ".")
        start = self._place(base, self._roots[0]) if self._roots else None
        place = start and self._place(path, start)
        return self.fold(place.anchor + "/".join(place.names)) if place else str(path)

    def fold(self, path: str) -> str:
        """Return `path` such that names the file system takes for one are equal."""
        if not self.fold_case:
            return path
        # lower() and not casefold(): no file system takes "ss" for "ß".
        return path.lower() if self.windows else unicodedata.normalize("NFC", path).lower()

    def _inside(self, place: _Place) -> str | None:
        """Return what of `place` lies below a root, None when it is below none."""
        for root in self._roots:
            head, tail = place.names[: len(root.names)], place.names[len(root.names) :]
            if place.anchor == root.anchor and (head == root.names or self._same(head, root.names)):
                return "/".join(tail)
        return None

    def _same(self, one: Sequence[str], other: Sequence[str]) -> bool:
        return self.fold_case and self.fold("/".join(one)) == self.fold("/".join(other))

    def _place(self, path: str, start: _Place) -> _Place | None:
        """Return where `path` leads from `start`, None when it is not usable."""
        if not isinstance(path, str) or "\0" in path:
            return None
        if path[:2] in ("~", "~/") or self.windows and path[:2] == "~\\":
            if not self.home:
                return None
            path = self.home + path[1:]
        anchor, tail = _anchored(path, self.windows)
        before = _before(anchor, start)
        names = _walk(before[1], tail, self.windows) if before else None
        return None if before is None or names is None else _Place(before[0], names)


class Links:
    """The links of a workspace that its snapshot knows of."""

    def __init__(self, links: Mapping[str, str], fold_case: bool) -> None:
        self._fold: Callable[[str], str] = str.casefold if fold_case else str
        self._targets = {self._fold(link): target for link, target in links.items()}

    def __bool__(self) -> bool:
        return bool(self._targets)

    def follow(self, path: str) -> tuple[str, bool]:
        """Return a workspace path without the links on its way, and whether its last name is one."""
        walked, is_link = "", False
        for name in path.split("/") if path and self else ():
            step = f"{walked}/{name}" if walked else name
            target = self._targets.get(self._fold(step))
            walked, is_link = (step, False) if target is None else (target, True)
        return walked or ("" if is_link else path), is_link


def _anchored(path: str, windows: bool) -> tuple[str, str]:
    """Split off what a path hangs on: ("c:/", "x"), ("//host/share/", "x"), ("/", "x"),
    ("c:", "x") for a path relative to a drive, ("", "x") for a relative one."""
    if not windows:
        return ("/", path[1:]) if path.startswith("/") else ("", path)
    path = _without_prefix(path)
    if path.startswith("//"):
        host, _, rest = path[2:].partition("/")
        share, _, tail = rest.partition("/")
        return f"//{host}/{share}/".lower(), tail
    if re.match(_DRIVE, path):
        slash = "/" if path[2:3] == "/" else ""
        return path[:2].lower() + slash, path[2:]
    return ("/", path) if path.startswith("/") else ("", path)


def _without_prefix(path: str) -> str:
    r"""Return a Windows path with `/`, and a plain drive for `/c/` or `\\?\C:\`."""
    bash = re.fullmatch(_DRIVE_FOLDER, path)
    if bash:
        path = f"{bash[1]}:{bash[2] or '/'}"
    path = path.replace("\\", "/")
    if path[:8].lower() == "//?/unc/":
        return "//" + path[8:]
    return path[4:] if path[:4] in ("//?/", "//./") else path


def _before(anchor: str, start: _Place) -> _Place | None:
    """Return where a path with this anchor begins when one stands at `start`."""
    if anchor == "":
        return start
    if anchor == "/" and start.anchor not in ("", "/"):
        return _Place(start.anchor, ())  # Windows: the root of the present drive
    if anchor.endswith("/"):
        return _Place(anchor, ())
    return start if start.anchor == anchor + "/" else None


def _walk(names: tuple[str, ...], tail: str, windows: bool) -> tuple[str, ...] | None:
    """Follow `tail` from `names`; None when a name in it cannot be a file's."""
    walked = list(names)
    for name in tail.split("/"):
        if name == "..":
            del walked[-1:]
        elif name not in ("", "."):
            plain = _windows_name(name) if windows else name
            if not plain:
                return None
            walked.append(plain)
    return tuple(walked)


def _windows_name(name: str) -> str:
    """Return the name that Windows opens for `name`, "" for devices and streams."""
    name = name.rstrip(". ")
    return "" if ":" in name or re.fullmatch(_DEVICE, name) else name


def _folds_case(folder: str) -> bool:
    """Say whether the file system of `folder` ignores case; two stat calls at most."""
    head, name = os.path.split(folder)
    if os.name == "nt" or name.swapcase() == name:
        return os.name == "nt" or sys.platform == "darwin"
    try:
        return os.path.samefile(folder, os.path.join(head, name.swapcase()))
    except OSError:
        return False


# --- results: which terminal output may be kept --------------------------------

_PLAIN_COMMANDS = frozenset({"cat", "type", "dir", "ls", "rg"})
_GIT_COMMANDS = frozenset({"log", "show", "diff"})
#: git options that write a file or start a program (gpg, a pager, a diff driver).
_GIT_ACTS = ("--output", "--ext-diff", "--textconv", "--show-signature", "--alternate-refs", "--exec-path", "--help")
#: Whole git options that begin like one above, and are harmless.
_GIT_HARMLESS = ("--text",)
#: ripgrep options that start a program; `-z` starts gzip and its kin.
_RG_ACTS = ("--pre", "--pre-glob", "--search-zip", "--hostname-bin")
#: ripgrep's short options that take what follows as their value.
_RG_VALUED = "ABCEMTdefgjmrt"
#: The longest foreground run of Hermes, in seconds; beyond, 0.22 runs it in the background.
FOREGROUND_SECONDS = 600

_CONTROL = "[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]"
_LOOSE_WORDS = r"[\s'\",]+"


def terminal_verdict(args: object, windows: bool = False) -> str | None:
    """Say why a terminal call's output is not kept; None when it may be.

    Kept is one foreground command from the list, proven by parsing all of it;
    what is not understood is refused.  What the command's own configuration
    starts (a diff driver of git, RIPGREP_CONFIG_PATH) cannot be seen from here.
    """
    if not isinstance(args, Mapping) or not isinstance(args.get("command"), str):
        return NotKept.NO_COMMAND
    if not all(_is_foreground(name, value) for name, value in args.items()):
        return NotKept.NOT_FOREGROUND
    return _command_reason(args["command"], windows)


def _is_foreground(name: object, value: object) -> bool:
    """Say whether this argument leaves the call a plain foreground run.

    Unknown arguments count only when they are empty: a later Hermes may give
    any name a meaning.
    """
    if name == "command" or value is None:
        return True
    if name == "timeout":
        return _is_foreground_timeout(value)
    if name in ("workdir", "cwd"):
        return isinstance(value, str) and not re.search(r"[\x00-\x1f|&;<>`$\"]", value)
    return not value


def _is_foreground_timeout(value: object) -> bool:
    try:
        return 0 <= float(value) <= FOREGROUND_SECONDS  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def _command_reason(command: str, windows: bool) -> str | None:
    if re.search(_CONTROL, command):
        return NotKept.LINES
    words = split_command(command, windows)
    if words is None:
        return NotKept.SYNTAX
    if not words:
        return NotKept.NO_COMMAND
    program = words[0].raw.lower() if windows else words[0].raw
    if program == "git":
        return _git_reason(words[1:]) or _loose_reason(command, windows, _git_acts)
    if program not in _PLAIN_COMMANDS:
        return NotKept.NOT_LISTED
    if program == "rg":
        return _acting_reason(words[1:], _rg_acts) or _loose_reason(command, windows, _rg_acts)
    return None


def _git_reason(words: list[Word]) -> str | None:
    # The other options before the command choose a repository, a
    # configuration or a program to run.
    if words and words[0].text == "--no-pager":
        words = words[1:]
    if not words or words[0].raw not in _GIT_COMMANDS:
        return NotKept.NOT_LISTED
    return _acting_reason(words[1:], _git_acts)


def _acting_reason(words: list[Word], acts: Callable[[str], bool]) -> str | None:
    """Judge every word, also after `--`: an option may have taken that as its value."""
    if any(acts(word.text) for word in words):
        return NotKept.ACTS
    return NotKept.WILD if any(word.wild for word in words) else None


def _loose_reason(command: str, windows: bool, acts: Callable[[str], bool]) -> str | None:
    """Judge the words again as shells split them that know fewer quotes, or more escapes."""
    spellings = (command, command.replace("\\", "")) if windows else ()
    if any(acts(word) for spelling in spellings for word in re.split(_LOOSE_WORDS, spelling)):
        return NotKept.ACTS
    return None


def _git_acts(word: str) -> bool:
    if "%G" in word:  # signature placeholders of --format: git starts gpg
        return True
    if word.startswith("-o"):
        return True
    return _names_option(word, _GIT_ACTS, _GIT_HARMLESS) or word.startswith("--output-d")


def _rg_acts(word: str) -> bool:
    if word.startswith("-") and not word.startswith("--"):
        flags = re.split(f"[{_RG_VALUED}]", word, maxsplit=1)[0]
        return "z" in flags
    return _names_option(word, _RG_ACTS, ())


def _names_option(word: str, options: Iterable[str], harmless: Iterable[str]) -> bool:
    """Say whether `word` is one of the options, in full or shortened."""
    name = word.partition("=")[0].lower()
    if len(name) < 3 or name in harmless:
        return False
    return any(option.startswith(name) for option in options)


# --- the words of a terminal command ---------------------------------------

_BLANKS = "[ \t]*"
# The pieces of a shell word.  What is not listed (operators, expansions,
# comments, history, braces) ends the match, and with it the word.
_PLAIN_PIECE = r"[^\s'\"\\|&;<>(){}$`!]"
_POSIX_PIECE = _PLAIN_PIECE + r"|'[^']*'|\"(?:[^\"\\$`!]|\\.)*\"|\\."
# Windows may mean Git Bash, cmd or PowerShell: only what all three read alike.
_WINDOWS_PIECE = (
    r"(?![\^@%])" + _PLAIN_PIECE + r"|\\(?!['\"]|\Z)"
    r"|'[^'\"^|&<>()%`]*(?<!\\)'|\"(?:[^\"\\$`!%]|\\(?!\"))*\""
)
#: PowerShell takes curly quotes for quotes.
_CURLY = "[\u2018-\u201f]"
#: A word from which all three shells of Windows make the same one.
_WINDOWS_SETTLED = r"[\w./:=+\\-]+|\"[\w ./:=+-]+\""


class Word(NamedTuple):
    """One word of a command."""

    raw: str  #: as typed
    text: str  #: as the program gets it, but for what `live` says
    wild: bool  #: the shell may turn it into something that starts with a dash
    live: bool  #: the shell may yet make something else of it: file names, a home folder


def split_command(command: str, windows: bool) -> list[Word] | None:
    """Split one simple command; None when it is anything more than that."""
    if windows and re.search(_CURLY, command):
        return None
    pieces, blanks = re.compile(_WINDOWS_PIECE if windows else _POSIX_PIECE), re.compile(_BLANKS)
    words: list[Word] = []
    position = blanks.match(command).end()  # type: ignore[union-attr]
    while position < len(command):
        word = _word(command, position, pieces)
        end = position + len(word.raw)
        # A word that ends at anything but a blank met an operator.
        if not word.raw or word.raw[0] == "#" or command[end : end + 1] not in ("", " ", "\t"):
            return None
        words.append(word._replace(live=not re.fullmatch(_WINDOWS_SETTLED, word.raw)) if windows else word)
        position = blanks.match(command, end).end()  # type: ignore[union-attr]
    return words


def _word(command: str, start: int, pieces: re.Pattern[str]) -> Word:
    """Read the word at `start`, "" when there is none."""
    texts: list[str] = []
    end, wild = start, False
    live = command.startswith(("=", "~"), start)
    while True:
        piece = pieces.match(command, end)
        if piece is None:
            return Word(command[start:end], "".join(texts), wild, live)
        live = live or piece[0] in ("*", "?", "[", "~")
        if piece[0] in ("*", "?", "["):
            head = "".join(texts[:1])
            wild = wild or not head or head.startswith("-")
        text = _unquoted(piece[0])
        if text:
            texts.append(text)
        end = piece.end()


def _unquoted(piece: str) -> str:
    """Return what the program gets for one piece of a word."""
    if len(piece) == 1:
        return piece
    if piece[0] == "\\":
        return piece[1:]
    inner = piece[1:-1]
    return inner if piece[0] == "'" else re.sub(r"\\([\\\"$`])", r"\1", inner)


_DECODER = json.JSONDecoder()


def leading_json(text: str) -> Any:
    """Return the JSON value a text begins with, None when there is none.

    Hermes 0.19 and 0.20 put a hint behind the JSON of a truncated search.
    """
    try:
        return _DECODER.raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError):
        return None


# --- ignore rules: what a plain search does not see --------------------------

#: What `**/` at the start of a glob and `/**` at its end stand for.
_PREFIX = "(?:/?|.*/)"
_SUFFIX = "/.*"
#: By precedence; the place in this list is the kind of a rule file.
_IGNORE_FILES = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
_GIT_KINDS = (2, 3)


class GlobRule(NamedTuple):
    """One line of an ignore file, or one `--glob`, as ripgrep reads both."""

    pattern: str  #: of whole paths, one character per byte
    negated: bool  #: it began with `!`
    folders_only: bool

    @classmethod
    def read(cls, line: str) -> GlobRule | None:
        """Read one line of an ignore file, or one `--glob`, as ripgrep does.

        :returns: None for blanks, comments, and globs that ripgrep refuses; also
            for `{` within `{}`, which ripgrep 13 refuses and newer ones read, and
            for so many stars that matching could take minutes.
        """
        line = line[:-1] if line.endswith("\r") else line
        if line.startswith("#"):
            return None
        line = line if line.endswith("\\ ") else line.rstrip()
        if not line:
            return None
        negated = line.startswith("!")
        if negated or line.startswith(("\\!", "\\#")):
            line = line[1:]
        rooted = line.startswith("/")
        line = line[1:] if rooted else line
        folders_only = line.endswith("/")
        line = line[:-1] if folders_only else line
        pattern = _glob_pattern(_whole_glob(line, rooted))
        return None if pattern is None else cls(pattern, negated, folders_only)

    def matches(self, path: str, is_folder: bool) -> bool:
        """Say whether `path` fits, which is relative to the ignore file, or to where ripgrep runs."""
        return (is_folder or not self.folders_only) and bool(re.fullmatch(self.pattern, _bytewise(path), re.DOTALL))

    def overrides(self, path: str, is_folder: bool) -> bool | None:
        """Say whether the one `--glob` lets `path` in (True), past every ignore rule, or keeps it out; None leaves it."""
        if self.matches(path, is_folder):
            return not self.negated
        return None if is_folder or self.negated else False


class _RuleFile:
    """The rules of one ignore file; the last line that matches decides."""

    def __init__(self, text: str) -> None:
        lines = text.lstrip("\ufeff").split("\n")[::-1]  # of equal lines only the last can decide
        self._rules = [rule for line in dict.fromkeys(lines) if (rule := GlobRule.read(line)) is not None]
        # One test for the usual case that no line matches.
        self._any = re.compile("|".join(rule.pattern for rule in self._rules), re.DOTALL)

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """Return True for ignored, False for kept, None when no line speaks of `path`."""
        if not self._rules or not self._any.fullmatch(_bytewise(path)):
            return None
        for rule in self._rules:
            if rule.matches(path, is_folder):
                return not rule.negated
        return None


class IgnoreRules:
    """What ripgrep leaves out of a plain search of one folder.

    Follows ripgrep where it differs from git (`{a,b}`, `.ignore`, git's rules
    only inside a work tree).  Not read: the user's own excludes file.

    :param read: returns the text of a file below the folder, None when there is none.
    :param has_git: says whether a folder below holds `.git`; "" is the folder itself.
    :param in_git: a folder above holds `.git`.
    :param start: the path from the folder down to where the search starts.
    """

    def __init__(
        self, read: Callable[[str], str | None], has_git: Callable[[str], bool], in_git: bool = False, start: str = ""
    ) -> None:
        self._read, self._has_git, self._in_git = read, has_git, in_git
        self._start = start
        # Folder to what applies in it: (kind, where its paths start, rules), first wins.
        self._applying: dict[str, list[tuple[int, int, _RuleFile]]] = {}
        # Folder to "ignored", and to "in a work tree".
        self._hidden: dict[str, bool] = {start: False}
        self._git: dict[str, bool] = {}

    def ignored(self, path: str) -> bool:
        """Say whether the file at `path`, relative to where the search starts, is left out."""
        full = f"{self._start}/{path}" if self._start else path
        folder, _, name = full.rpartition("/")
        return self._folder_hidden(folder) or self._decide(folder, full, False)

    def folder_ignored(self, path: str) -> bool:
        """Say the same of a folder."""
        return self._folder_hidden(f"{self._start}/{path}" if self._start else path)

    def _folder_hidden(self, folder: str) -> bool:
        pending = []
        while folder not in self._hidden:
            pending.append(folder)
            folder = folder.rpartition("/")[0]
        hidden = self._hidden[folder]
        for folder in reversed(pending):
            above = folder.rpartition("/")[0]
            hidden = self._hidden[folder] = hidden or self._decide(above, folder, True)
        return hidden

    def _decide(self, folder: str, path: str, is_folder: bool) -> bool:
        for _, start, rules in self._applying_in(folder):
            verdict = rules.verdict(path[start:], is_folder)
            if verdict is not None:
                return verdict
        return False

    def _applying_in(self, folder: str) -> list[tuple[int, int, _RuleFile]]:
        """Return the rule files for names in `folder`: by kind, then the deepest first."""
        known = self._applying.get(folder)
        if known is not None:
            return known
        start = len(folder) + 1 if folder else 0
        own = [(kind, start, rules) for kind, rules in self._files_of(folder)]
        above: list[tuple[int, int, _RuleFile]] = []
        if folder:
            above = self._applying_in(folder.rpartition("/")[0])
            if self._has_git(folder):  # another work tree: the outer one's rules end here
                above = [entry for entry in above if entry[0] not in _GIT_KINDS]
        found = sorted(own + above, key=lambda entry: (entry[0], -entry[1]))
        self._applying[folder] = found
        return found

    def _files_of(self, folder: str) -> Iterator[tuple[int, _RuleFile]]:
        in_git = self._work_tree(folder)
        for kind, name in enumerate(_IGNORE_FILES):
            if kind in _GIT_KINDS and not in_git:
                continue
            text = self._read(f"{folder}/{name}" if folder else name)
            if text:
                yield kind, _RuleFile(text)

    def _work_tree(self, folder: str) -> bool:
        if folder not in self._git:
            above = self._work_tree(folder.rpartition("/")[0]) if folder else self._in_git
            self._git[folder] = above or self._has_git(folder)
        return self._git[folder]


def _whole_glob(glob: str, rooted: bool) -> str:
    """Return the glob that matches the whole path below its ignore file."""
    if not rooted and "/" not in glob and not glob.startswith("**/") and glob != "**":
        glob = "**/" + glob
    return glob + "/*" if glob.endswith("/**") else glob


def _glob_pattern(glob: str) -> str | None:
    """Translate a glob as ripgrep reads it; None when it refuses the glob."""
    try:
        return _Glob(_bytewise(glob)).translate()
    except (_BadGlob, UnicodeEncodeError):  # the last: half a surrogate pair, which no program is given
        return None


def _bytewise(text: str) -> str:
    """Return `text` with one character per byte of UTF-8: ripgrep's `?` is one byte."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


class _BadGlob(Exception):
    """A glob that ripgrep refuses, or that could take minutes to match."""


_STAR = "[^/]*"
#: Stars between which matching may go back, within a name and across folders.
_STARS, _DEEP_STARS = 3, 5
_group_numbers = itertools.count()


def _bounded(tokens: list[str]) -> str:
    """Join the tokens of a glob such that matching it takes a bounded time.

    Of a star before single characters and another star only the shortest match
    counts: what comes after can begin nowhere better.  So that one is taken and
    never gone back on, as in `fnmatch.translate`.

    :raises _BadGlob: if too many stars are left that can be gone back on.
    """
    stars = [place for place, token in enumerate(tokens) if token == _STAR]
    made, kept = list(tokens), list(tokens)
    for star, following in itertools.pairwise(stars) if len(stars) > _STARS - 1 else ():
        between = tokens[star + 1 : following]
        if all(_is_one_character(token) for token in between):
            group = f"g{next(_group_numbers)}"
            made[star:following] = [f"(?=(?P<{group}>{_STAR}?{''.join(between)}))(?P={group})", *[""] * len(between)]
            kept[star] = ""
    near = sum(max(part.count(_STAR) for part in re.split(r"(?<!\\)\|", token)) for token in kept)
    if near > _STARS or sum(token.count(".*") for token in kept) > _DEEP_STARS:
        raise _BadGlob
    return "".join(made)


def _is_one_character(token: str) -> bool:
    """Whether a token is for one character, which is no `/` that a star beside it could leave to it."""
    if token.startswith("["):
        return token != _STAR and not re.match(token, "/")
    return len(token) == 1 or len(token) == 2 and token[0] == "\\"


class _Glob:
    """One glob on its way to a regular expression."""

    def __init__(self, glob: str) -> None:
        self._glob, self._at = glob, 0
        # One list of tokens per open brace alternative; the first is the glob.
        self._stack: list[list[list[str]]] = [[[]]]

    def translate(self) -> str:
        handlers = {
            "*": self._star,
            "[": self._set,
            "{": self._open,
            "}": self._close,
            ",": self._comma,
            "\\": self._escape,
        }
        while self._at < len(self._glob):
            char = self._next()
            if char in handlers:
                handlers[char]()
            else:
                self._push("[^/]" if char == "?" else re.escape(char))
        if len(self._stack) > 1:
            raise _BadGlob
        return ".*" if self._tokens == [_PREFIX] else _bounded(self._tokens)

    @property
    def _tokens(self) -> list[str]:
        return self._stack[-1][-1]

    def _next(self) -> str:
        self._at += 1
        return self._glob[self._at - 1]

    def _peek(self) -> str:
        return self._glob[self._at : self._at + 1]

    def _push(self, token: str) -> None:
        self._tokens.append(token)

    def _escape(self) -> None:
        if not self._peek():
            raise _BadGlob
        self._push(re.escape(self._next()))

    def _open(self) -> None:
        if len(self._stack) > 1:  # ripgrep 13 refuses nested alternatives
            raise _BadGlob
        self._stack.append([[]])

    def _close(self) -> None:
        if len(self._stack) < 2:
            raise _BadGlob
        parts = ["".join(tokens) for tokens in self._stack.pop()]
        parts = [part for part in parts if part]
        self._push("(?:" + "|".join(parts) + ")" if parts else "")

    def _comma(self) -> None:
        if len(self._stack) > 1:
            self._stack[-1].append([])
        else:
            self._push(",")

    def _star(self) -> None:
        before = self._glob[self._at - 2 : self._at - 1] if self._at > 1 else ""
        if self._peek() != "*":
            return self._push_star()
        self._next()
        after = self._peek()
        inner = len(self._stack) > 1
        if not self._tokens and after in ("", "/"):
            self._at += 1
            return self._push(_PREFIX)
        if not self._tokens or not (before == "/" or inner and before in (",", "{")):
            return self._push_star()
        if after not in ("", "/") and not (inner and after in (",", "}")):
            return self._push_star()
        return self._between(after)

    def _push_star(self) -> None:
        if self._tokens[-1:] != [_STAR]:  # several say no more than one
            self._push(_STAR)

    def _between(self, after: str) -> None:
        """Replace the slash before `**` by what `/**` or `/**/` stands for."""
        slash = self._tokens.pop()
        if after == "/":
            self._at += 1
        if slash in (_PREFIX, _SUFFIX):
            return self._push(slash)
        return self._push("(?:/|/.*/)" if after == "/" else _SUFFIX)

    def _set(self) -> None:
        negated = self._peek() in ("!", "^") and bool(self._next())
        ranges: list[tuple[str, str]] = []
        open_range, first = False, True
        while True:
            char = self._next() if self._peek() else ""
            if not char:
                raise _BadGlob
            if char == "]" and not first:
                break
            if char == "-" and not first and not open_range:
                open_range = True
            elif open_range:
                ranges[-1] = (ranges[-1][0], char)
                open_range = False
            else:
                ranges.append((char, char))
            first = False
        self._push_set(negated, ranges + ([("-", "-")] if open_range else []))

    def _push_set(self, negated: bool, ranges: list[tuple[str, str]]) -> None:
        if any(low > high for low, high in ranges):
            raise _BadGlob
        body = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges)
        self._push(f"[{'^' if negated else ''}{body}]")


# --- the snapshot: which files are kept --------------------------------------

_MATCH_ROW = r"  \d+: "
#: Files that hold secrets by their purpose, and Hermes's own copies of its: the stricter redaction is for them.
_SECRET_FILE = r"(?i)config\.yaml(?:\.(?:good|corrupt)\..*)?\Z"


def hermes_redactor(forced: bool = False) -> Redactor | None:
    """Return Hermes's own redaction for file contents, None when it is not there.

    Hermes's switch `security.redact_secrets` stays in force: switched off, the
    text comes back as it was.

    :param forced: redact whatever that switch says, for what is printed.
    """
    try:
        redact = importlib.import_module("agent.redact").redact_sensitive_text
        known = inspect.signature(redact).parameters
    except Exception:  # whatever is wrong with this Hermes: without redaction nothing is kept
        return None
    if forced and "force" not in known:
        return None
    options = {"file_read": True} if "file_read" in known else {}
    options |= {"force": True} if forced else {}
    strict = {**options, "secret_file": True} if "secret_file" in known else options
    return Redactor(lambda text, secret: redact(text, **(strict if secret else options)), strict is not options)


# Some of Hermes's patterns take time that grows with the square of a text, or faster,
# and hold the interpreter's lock all the while, so that no other thread could stop
# them: on a file of 500 KB for minutes.  What such a text holds is counted here, in
# time that grows with its length.  Measured on the redaction of 0.19.0, 0.20.1 and
# 0.22.2; one step of a pattern takes about 25 ns.

#: Steps of a pattern that a file's redaction may take, a third of a second.
REDACTION_STEPS = 10_000_000
_KEY_EDGE = r"-----(?=(BEGIN|END)[A-Z ]*PRIVATE KEY-----)"
_DATABASE = r"(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|redis|amqp)://"
_DATABASE_URL = _DATABASE + r"[^:\s]+:[^@\s]*"
_LONG_NUMBER = r"(?<!\d)\d{100,}"
# Only the stricter redaction looks at these.
_LONG_NAME = r"(?<![A-Za-z0-9_.\-])[A-Za-z0-9_.\-]{50,}"
_SECRET_WORD = r"(?i)token|secret|passw|credential|auth|api[_.\-]?key"
_LOUD_WORD = r"KEY|TOKEN|SECRET|PASS|PW|CREDENTIAL|AUTH"
_BACKSLASHES = r"(?<!\\)\\{20,}"


def redaction_steps(text: str, secret: bool) -> int:
    """Bound the steps that Hermes's patterns take beyond those that grow with a text's length alone.

    :param secret: whether the text goes through the stricter mode.
    """
    steps = _steps_for_keys(text) + _steps_for_urls(text)
    if any(text[start : start + 50].isdecimal() for start in range(0, len(text), 50)):  # the search costs more
        steps += sum(len(run) ** 2 // 2 for run in re.findall(_LONG_NUMBER, text))
    if secret:
        named = [run for run in re.findall(_LONG_NAME, text) if re.search(_SECRET_WORD, run)]
        steps += sum(len(run) ** 3 // 100 for run in named)
        steps += sum(len(run) ** 2 for run in re.findall(_BACKSLASHES, text))
        steps += 4_000 * len(re.findall(_LOUD_WORD, text))
    return steps


def _steps_for_keys(text: str) -> int:
    """From each beginning of a private key a pattern runs to its end, or to that of the text."""
    if "-----BEGIN" not in text:
        return 0
    steps, begun = 0, []
    for edge in re.finditer(_KEY_EDGE, text):
        if edge[1] == "BEGIN":
            begun.append(edge.start())
        elif begun:
            steps += edge.start() - begun[0]
            begun = []
    return steps + sum(len(text) - start for start in begun)


def _steps_for_urls(text: str) -> int:
    """From each database's address a pattern runs to the next `@` or blank, and back if that is no `@`."""
    if "://" not in text:
        return 0
    steps, folded = 0, text.lower() if text.isascii() else text.casefold()
    for url in re.finditer(_DATABASE_URL, folded):
        closed = folded[url.end() : url.end() + 1] == "@"
        steps += len(url[0]) * (1 if closed else 2 * len(re.findall(_DATABASE, url[0])))
    return steps


def skip_reason(path: str) -> str | None:
    """Say why a file of this name is never kept, whatever it holds; None when it may be.

    :param path: relative to the root, with `/`.
    """
    if "/." in "/" + path:
        return SkipReason.HIDDEN
    return SkipReason.SECRET_NAME if has_secret_name(path) else None


def has_secret_name(path: str) -> bool:
    """Say whether a file's name speaks of secrets, whatever the folders above it are called."""
    return _secret_name().match(re.split(r"[/\\]", path)[-1].lower()) is not None


#: A result without any of these holds no secret-looking name.
SECRET_MARKS = tuple({name.strip("*") for name in SECRET_NAMES})


def named_files(calls: Iterable[Call], workspace: Workspace) -> tuple[list[str], dict[str, str]]:
    """Return the files that reads and searches named, and why some cannot be kept.

    :returns: relative paths, those of reads first, each once and in the order
        of the calls; and a map from names to reasons for those outside the
        folder or refused by Hermes.
    """
    reads, searches, refused = _names(calls)
    found: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for name in (*reads, *searches):
        inside = workspace.relative(name)
        if inside is None:
            reasons[name] = SkipReason.OUTSIDE
        elif inside:
            found.setdefault(workspace.fold(inside), inside)
    for name in refused:
        inside = workspace.relative(name)
        if inside and found.pop(workspace.fold(inside), None) is not None:
            reasons[inside] = skip_reason(inside) or SkipReason.REFUSED
    return list(found.values()), reasons


def _names(calls: Iterable[Call]) -> tuple[list[str], list[str], list[str]]:
    """Return the names that were read, those that searches found, and those refused."""
    reads: list[str] = []
    searches: list[str] = []
    refused: list[str] = []
    for call in calls:
        if call.tool == "search_files":
            searches.extend(_searched(call.result))
        elif call.tool == "read_file" and isinstance(call.args, Mapping):
            path = call.args.get("path")
            if isinstance(path, str) and path:
                reads.append(path)
                refused.extend([path] if _is_refusal(call.result) else [])
    return reads, searches, refused


def _is_refusal(result: object) -> bool:
    """Say whether Hermes itself would not show this file to the model."""
    if not isinstance(result, str) or "Access denied" not in result[:4096]:
        return False
    value = leading_json(result)
    return isinstance(value, Mapping) and str(value.get("error", "")).startswith("Access denied")


def _searched(result: object) -> Iterator[str]:
    """Return the paths a search result names, in its order."""
    value = leading_json(result) if isinstance(result, str) else result
    if not isinstance(value, Mapping):
        return
    yield from in_rows(value)
    yield from texts_in(_items(value, "files", list))
    yield from texts_in(_items(value, "counts", dict))


def in_rows(value: Mapping[str, Any]) -> Iterator[str]:
    """Return the paths of which a search result has rows."""
    for match in _items(value, "matches", list):
        yield from texts_in([match.get("path")] if isinstance(match, Mapping) else [])
    text = value.get("matches_text")
    for line in text.split("\n") if isinstance(text, str) else ():
        if line and not re.match(_MATCH_ROW, line):
            yield line


def _items(value: Mapping[str, Any], key: str, kind: type) -> Iterable[Any]:
    return value[key] if isinstance(value.get(key), kind) else ()


def texts_in(values: Iterable[Any]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str) and value)


#: Where a redacted text hides something: start, end, and kind.
Mask = tuple[int, int, str]
#: Finds such places, given a text before and after redaction, and what redacts one line as the live tools do.
NoteMasks = Callable[[str, str, Callable[[str], "str | None"]], "tuple[Mask, ...]"]


class Tree(Protocol):
    """Lists folders below one folder, and follows no link."""

    root: str

    def content(self, path: str, limit: int) -> bytes | None:
        """What a file of git's or ripgrep's holds; None if it is larger, or cannot be read."""

    def scan(self, path: str, most: int) -> list[tuple[str, os.stat_result | None]]:
        """Up to so many names in a folder ("" is the root), each with its status, None where that cannot be had.

        :raises OSError: if it cannot be read, or is no folder.
        """


class Listed(NamedTuple):
    """What a walk through a workspace found."""

    names: Mapping[str, Name] | None  #: None where they are not known
    texts: Sequence[tuple[str, int]] = ()  #: files to keep beyond those that were named, the smallest first, and sizes
    ignored: int = 0  #: files that git's rules leave out of those
    fault: str = ""  #: why there are no names
    untracked: Sequence[str] | None = None  #: as in a `Snapshot`


#: Lists a workspace, given what a plain search and what git leaves out, whether texts are to be kept, and what says
#: that time is up.
Walk = Callable[[Tree, IgnoreRules, IgnoreRules, bool, Callable[[], bool]], Listed]


class Evidence(Protocol):
    """What the calls of a turn showed of files, and which files they wrote."""

    wrote: bool  #: a tool ran that may write
    written: Mapping[str, str]  #: paths below the workspace, by what its `fold` makes of them

    def knows(self, path: str) -> bool:
        """Whether a call showed something of a file, or wrote it."""

    def disagrees(self, path: str, text: str, size: int | None = None) -> int | None:
        """The first line of a text that was shown otherwise, 0 for none in particular; None if it agrees."""

    def shows_all(self, path: str, text: str) -> bool:
        """Whether a call showed every line of a text as it is."""


class Extent(NamedTuple):
    """What a snapshot keeps beyond the files that calls named, and leaves out of them."""

    whole: bool = False  #: the texts of all files that git would list
    names: bool = False  #: the names of all
    walk: Walk | None = None  #: what lists the workspace; without it neither is kept
    evidence: Evidence | None = None  #: what tells files that changed during the turn
    started: float = 0.0  #: when that began, in seconds since the epoch; 0 unknown
    faults: list[str] = []  #: where a person is told why there are no names
    ended: float = 0.0  #: when the turn ended, if that was long ago; else 0


#: Tells what is masked in a file, None for nothing (`suite.masks.Masks`).
ReadMasks = Callable[[SnapshotFile], Any]


class Names(Protocol):
    """What is known of the names in a workspace, beside the texts that are kept."""

    def kind(self, key: str) -> str:
        """Return "file", "folder", or "" for what is not there.  :raises Miss: if the names do not tell."""

    def read(self, typed: str, key: str) -> dict[str, Any]:
        """Return what a reading says of a path without a text.  :raises Miss: if that is not certain."""

    def not_found(self, typed: str, key: str) -> str:
        """Return the error of a search there.  :raises Miss: if something is there."""

    def unread(self, root: Any, documents: Sequence[Any], room: int) -> list[str]:
        """Return those of the files without a text in which a search may find something; see `suite.known_names`."""

    def ripgrep_leaves(self, path: str) -> bool:
        """Say whether ripgrep finds nothing in a file that it meets below a folder."""


def take_snapshot(
    calls: Iterable[Call],
    workspace: Workspace,
    *,
    redact: Redactor | None,
    deadline: float,
    note_masks: NoteMasks | None = None,
    extent: Extent = Extent(),
    now: Callable[[], float] = time.monotonic,
) -> Snapshot:
    """Read and redact the workspace files that the calls named, and then what else is wanted.

    The files are read in one daemon thread, so that a disk that hangs costs no
    more than the time until `deadline`; a file that is not done by then is
    skipped, and the thread ends with the file it is at.  A single text's
    redaction cannot be interrupted, so that one that could take long is skipped.

    :param redact: what every text goes through; None keeps nothing.
    :param deadline: when to stop, on the clock `now`, in seconds.
    :param note_masks: what notes where a text hides something; None notes nothing.
    """
    names, reasons = named_files(calls, workspace)
    if extent.evidence is not None:
        written = extent.evidence.written
        reasons |= {path: skip_reason(path) or SkipReason.CHANGED_IN_TURN for path in written.values()}
        names = [name for name in names if workspace.fold(name) not in written]
    gathered = _Gathered(reasons, names, extent.whole)
    reader = _Reader(workspace, redact, gathered, lambda: now() >= deadline, note_masks, extent)
    # Hermes keeps its settings for a session in context variables.
    context = contextvars.copy_context()
    thread = threading.Thread(
        target=context.run, args=(reader.run, names if redact else ()), name="cassette-snapshot", daemon=True
    )
    if deadline > now():
        thread.start()
        thread.join(min(max(0.0, deadline - now()), threading.TIMEOUT_MAX))
    taken = gathered.close(SkipReason.LATE if redact else SkipReason.NO_REDACTION)
    if extent.names and taken.names is None:
        extent.faults.append(gathered.listed.fault)
    return taken


class _Gathered:
    """The files kept and skipped so far; closed once, by the one who waits, and deaf from then on."""

    def __init__(self, reasons: Mapping[str, str], names: Sequence[str], whole: bool) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._files: dict[str, SnapshotFile] = {}
        self._reasons = dict(reasons)
        self._links: dict[str, str] = {}
        self._done: set[str] = set()
        self._wanted = list(names)
        self._whole, self._bytes = whole, 0
        self.listed = Listed(None, fault=_NAMES_LATE)

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def room(self) -> int:
        """How many bytes may still be kept; -1 if not even an empty file may."""
        if len(self._files) >= WHOLE_FILES:
            return -1
        return (WHOLE_LIMIT if self._whole else SNAPSHOT_LIMIT) - self._bytes

    def list(self, listed: Listed) -> list[str]:
        """Note what a walk found, and return which files are wanted beyond those that were named."""
        with self._lock:
            known = {*self._wanted, *self._reasons}
            more = [path for path, _ in listed.texts if path not in known]
            if not self._closed:
                self.listed = listed
                self._wanted += more
        return more

    def keep(self, name: str, path: str, file: SnapshotFile, size: int) -> None:
        """Keep what `name` led to, once, under the path the disk shows; `size` in bytes as stored."""
        with self._lock:
            if not self._closed:
                self._done.add(name)
                if path not in self._files:
                    self._files[path] = file
                    self._bytes += size

    def skip(self, name: str, path: str, reason: str) -> None:
        with self._lock:
            if not self._closed:
                self._done.add(name)
                if path not in self._files:
                    self._reasons[path] = reason

    def link(self, links: Mapping[str, str]) -> None:
        """Note which names on the way to a file are links, and to what."""
        with self._lock:
            if not self._closed:
                self._links.update(links)

    def close(self, reason: str) -> Snapshot:
        """Return the snapshot; files that are wanted and not done yet are skipped for `reason`."""
        with self._lock:
            self._closed = True
            late = {name: reason for name in self._wanted if name not in self._done}
        reasons = {**self._reasons, **late}
        if self._whole:
            total = {name: SkipReason.WHOLE_TOTAL for name, why in reasons.items() if why == SkipReason.TOTAL}
            reasons |= total
        # What lies outside has no place in a map of this folder.
        listed = [name for name in reasons if reasons[name] != SkipReason.OUTSIDE]
        named = {name: reasons[name] for name in listed[:_SKIPPED_PATHS_LIMIT]}
        found = self.listed
        skipped = dict(Counter(reasons.values())) | ({SkipReason.IGNORED: found.ignored} if found.ignored else {})
        return Snapshot(self._files, skipped, named, self._links, found.names, self._whole, found.untracked)


class Skip(Exception):
    """A file that is not kept, and why; `path` is what links led to, "" unless one did."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason, self.path = reason, ""


class _Reader:
    """Reads the files of one snapshot, in a thread that may be left behind."""

    def __init__(
        self,
        workspace: Workspace,
        redact: Redactor | None,
        gathered: _Gathered,
        late: Callable[[], bool],
        note_masks: NoteMasks | None,
        extent: Extent,
    ) -> None:
        self._workspace, self._redact = workspace, redact
        self._gathered, self._late, self._note_masks = gathered, late, note_masks
        self._extent = extent

    def run(self, names: Iterable[str]) -> None:
        """Read the files in order, list the workspace and read what else is wanted, until time is up."""
        folder = Folder(self._workspace.root, self._workspace.fold_case)
        rules = IgnoreRules(folder.text, folder.has_git, _inside_git(folder.root))
        try:
            for name in itertools.chain(names, self._list(folder, rules)):
                if self._gathered.closed or self._late():
                    return
                self._one(folder, rules, name)
        finally:
            folder.close()

    def _list(self, folder: Folder, rules: IgnoreRules) -> Iterator[str]:
        """List the workspace once this is asked for the first file, and return what is wanted of it."""
        extent = self._extent
        if extent.walk is None or not (extent.names or extent.whole) or self._late():
            return
        git_rules = IgnoreRules(lambda path: _git_text(folder, path), folder.has_git, _inside_git(folder.root))
        stop = lambda: self._gathered.closed or self._late()  # noqa: E731
        found = extent.walk(folder, rules, git_rules, extent.whole, stop)
        more = self._gathered.list(found if extent.names else found._replace(names=None, untracked=None))
        yield from more if self._redact else ()

    def _one(self, folder: Folder, rules: IgnoreRules, name: str) -> None:
        path = target = name
        try:
            path = target = folder.spelled(name)
            target, data, status = folder.read(path, self._gathered.room)
            text, masks, size = self._text(data, status.st_mtime, name, path, target)
            file = SnapshotFile(text, status.st_size, status.st_mtime, rules.ignored(target), masks)
            self._gathered.keep(name, target, file, size)
        except Skip as skip:
            target = skip.path or target
            gone = skip.reason == SkipReason.NOT_FOUND and self._extent.evidence is not None
            changed = gone and self._extent.evidence.knows(name)  # type: ignore[union-attr]
            self._gathered.skip(name, target, self._when if changed else skip.reason)
        except Exception:  # a name from a model must not end the snapshot of the others
            self._gathered.skip(name, target, SkipReason.UNREADABLE)
        if target != path:
            self._gathered.link(folder.links(path, target))

    def _text(self, data: bytes, mtime: float, *paths: str) -> tuple[str, tuple[Mask, ...] | None, int]:
        """Return the text as it is kept, what it hides, and its size in bytes as stored."""
        if self._redact is None:
            raise Skip(SkipReason.NO_REDACTION)
        text = decoded(data)
        if why := self._changed(text, len(data), mtime, paths):
            raise Skip(why)
        kept = redacted(self._redact, text, *paths)
        size = len(data) if kept == text else len(kept.encode("utf-8", "surrogatepass"))
        if size > self._gathered.room:
            raise Skip(SkipReason.TOTAL)
        return kept, self._note_masks and self._note_masks(text, kept, self._alone), size

    @property
    def _when(self) -> str:
        """When a file changed that is another one than the turn was shown."""
        return SkipReason.CHANGED_SINCE if self._extent.ended else SkipReason.CHANGED_IN_TURN

    def _changed(self, text: str, size: int, mtime: float, paths: Iterable[str]) -> str:
        """Say when a file changed that is another one by now than the turn was shown, by any of its names; or "".

        After a turn that is long over, only what it was shown as a whole is sure
        to be the same in spite of a later change.
        """
        evidence, started, ended = self._extent.evidence, self._extent.started, self._extent.ended
        if evidence is None:
            return ""
        later, names = 0 < ended < mtime, tuple(dict.fromkeys(paths))
        if evidence.wrote and 0 < started <= mtime:
            return SkipReason.CHANGED_SINCE if later else SkipReason.CHANGED_IN_TURN
        if any(evidence.disagrees(path, text, size) is not None for path in names):
            return self._when
        if later and not any(evidence.shows_all(path, text) for path in names):
            return SkipReason.CHANGED_SINCE
        return ""

    def _alone(self, line: str) -> str | None:
        """Redact one line as the live search does; None when that fails."""
        try:
            return self._redact(line, False) if self._redact else None
        except Exception:  # then nothing is known of what a search shows
            return None


def decoded(data: bytes) -> str:
    """Return the text of a file.  :raises Skip: if it is none."""
    if b"\0" in data:
        raise Skip(SkipReason.BINARY)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Skip(SkipReason.NOT_UTF8) from None


def redacted(redact: Redactor, text: str, *paths: str) -> str:
    """Redact the text of a file that has these names.  :raises Skip: if that fails, or could take long."""
    secret = any(re.match(_SECRET_FILE, path.rpartition("/")[2]) for path in paths)
    if secret and not redact.strict:
        raise Skip(SkipReason.NO_STRICTER)
    if redaction_steps(text, secret) > REDACTION_STEPS:
        raise Skip(SkipReason.REDACTION_SLOW)
    try:
        kept = redact(text, secret)
    except Exception:  # a text that could not be redacted is not kept, whatever the cause
        kept = None
    if not isinstance(kept, str):
        raise Skip(SkipReason.REDACTION_FAILED)
    return kept


#: Why there are no names where the walk was not done in time.
_NAMES_LATE = "the names of the workspace could not be listed in time"


def _git_text(folder: Folder, path: str) -> str | None:
    """The text of an ignore file that git reads, too."""
    return folder.text(path) if path.rpartition("/")[2] in (".gitignore", "exclude") else None


def _inside_git(root: str) -> bool:
    """Say whether a folder above `root` holds `.git`; looks, does not read."""
    above = os.path.dirname(root)
    while True:
        if os.path.lexists(os.path.join(above, ".git")):
            return True
        root, above = above, os.path.dirname(above)
        if root == above:
            return False


# --- the disk: files inside one folder ---------------------------------------

#: What a link, or a file where a folder should be, makes of an open.
_LINK_ERRORS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})
_GONE_ERRORS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_READ_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
)
_FOLDER_FLAGS = (
    getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_LIST_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_HIDDEN_ATTRIBUTE = 2  # FILE_ATTRIBUTE_HIDDEN of Windows
#: How many folders stay open, and how deep a file may lie.
_OPEN_FOLDERS = 64
#: Ignore files over this many bytes are not read.
_RULES_LIMIT = 128 * 1024


class Folder:
    """Reads files inside one folder, and none that a link leads out of.

    Where the platform can open a file relative to an open folder, every name
    of a path is opened on its own and without following links, so nothing can
    be swapped in between; elsewhere the file is opened by its resolved path,
    and what was opened is compared with what was resolved.
    """

    def __init__(self, root: str, fold_case: bool) -> None:
        self.root = os.path.realpath(root)
        self._by_name = os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW")
        self._fold_case = fold_case
        # Relative folder to its descriptor, and to the names on disk by folded name.
        self._open_folders: dict[str, int] = {}
        self._listings: dict[str, dict[str, str]] = {}

    def close(self) -> None:
        """Close the folders that were kept open."""
        while self._open_folders:
            os.close(self._open_folders.popitem()[1])

    def read(self, path: str, room: int) -> tuple[str, bytes, os.stat_result]:
        """Return the resolved path, the content and the status of a file that may be kept.

        :param room: how many bytes may still be kept.
        :raises Skip: if the file may not be kept, is too large or cannot be read.
        """
        self._check(path)
        try:
            if self._by_name:
                return self._read_resolved(path, room)
            return (path, *self._content(self._walk_to(path), SNAPSHOT_FILE_LIMIT, room))
        except OSError as error:
            if self._by_name or error.errno not in _LINK_ERRORS:
                raise Skip(_error_reason(error)) from None
        try:
            return self._read_resolved(path, room)
        except OSError as error:
            changed = error.errno in _LINK_ERRORS and os.path.lexists(os.path.join(self.root, path))
            raise Skip(SkipReason.CHANGED if changed else _error_reason(error)) from None

    def text(self, path: str) -> str | None:
        """Return the text of an ignore file, None when there is none to read."""
        data = self.content(path, _RULES_LIMIT)
        return None if data is None else data.decode("utf-8", "replace")

    def content(self, path: str, limit: int) -> bytes | None:
        """Return what a file holds; see `Tree`."""
        try:
            return self._content(self._by_path(path) if self._by_name else self._walk_to(path), limit, limit)[0]
        except (OSError, Skip):
            return None

    def scan(self, path: str, most: int) -> list[tuple[str, os.stat_result | None]]:
        """List a folder; see `Tree`."""
        if self._by_name or os.scandir not in os.supports_fd:
            full = os.path.join(self.root, *path.split("/")) if path else self.root
            if os.path.realpath(full) != full or os.stat(full).st_dev != os.stat(self.root).st_dev:
                raise OSError(errno.ELOOP, "it lies elsewhere")
            with os.scandir(full) as entries:
                return [(entry.name, _status(entry)) for entry in itertools.islice(entries, most)]
        try:
            descriptor = os.open(".", _LIST_FLAGS, dir_fd=self._folder(path))
        except Skip:
            raise OSError(errno.ENAMETOOLONG, "too deep") from None
        try:
            if os.fstat(descriptor).st_dev != os.fstat(self._folder("")).st_dev:
                raise OSError(errno.EXDEV, "another file system")
            with os.scandir(descriptor) as entries:
                return [(entry.name, _status(entry)) for entry in itertools.islice(entries, most)]
        finally:
            os.close(descriptor)

    def has_git(self, path: str) -> bool:
        """Say whether the folder holds a `.git` of its own."""
        return os.path.lexists(os.path.join(self.root, path, ".git"))

    def spelled(self, path: str) -> str:
        """Return `path` in the case the disk shows, where case carries no meaning."""
        if not self._fold_case:
            return path
        folder = ""
        for name in path.split("/"):
            name = self._listing(folder).get(_folded(name), name)
            folder = f"{folder}/{name}" if folder else name
        return folder

    def _listing(self, folder: str) -> dict[str, str]:
        if folder not in self._listings:
            try:
                names = os.listdir(os.path.join(self.root, folder))
            except OSError:
                names = []
            self._listings[folder] = {_folded(name): name for name in names}
        return self._listings[folder]

    def _check(self, path: str) -> None:
        reason = skip_reason(path)
        if reason is not None:
            raise Skip(reason)

    def _read_resolved(self, path: str, room: int) -> tuple[str, bytes, os.stat_result]:
        target = self._resolve(path)
        try:
            self._check(target)
            opened = self._by_path(target) if self._by_name else self._walk_to(target)
            return (target, *self._content(opened, SNAPSHOT_FILE_LIMIT, room))
        except Skip as skip:
            skip.path = target
            raise

    def links(self, path: str, target: str) -> dict[str, str]:
        """Return which names on the way from `path` to `target` are links, and to what."""
        found: dict[str, str] = {}
        walked = ""
        try:
            for name in path.split("/"):
                step = f"{walked}/{name}" if walked else name
                walked = self._resolve(step)
                if walked != step:
                    found[step] = walked
        except Skip:  # out of the folder, and in again
            walked = ""
        return found if walked == target else {path: target}

    def _resolve(self, path: str) -> str:
        """Return the path without links, relative to the folder."""
        real = os.path.realpath(os.path.join(self.root, path))
        if real == self.root:
            return ""
        head = self.root.rstrip("\\/") + os.sep
        if not real.startswith(head):
            raise Skip(SkipReason.LINK_OUT)
        if os.path.islink(real):  # realpath gives up on links that go in a circle
            raise Skip(SkipReason.UNREADABLE)
        return real[len(head) :].replace(os.sep, "/")

    def _walk_to(self, path: str) -> tuple[int, os.stat_result]:
        """Open a file name by name; links raise an OSError of `_LINK_ERRORS`."""
        folder, _, name = path.rpartition("/")
        descriptor = self._folder(folder)
        expected = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        if stat.S_ISLNK(expected.st_mode):
            raise OSError(errno.ELOOP, "a link")
        _check_kind(expected)
        return os.open(name, _READ_FLAGS, dir_fd=descriptor), expected

    def _folder(self, path: str) -> int:
        """Return a descriptor of a folder, opened name by name from the root."""
        known = self._open_folders.get(path)
        if known is not None:
            return known
        names = path.split("/") if path else []
        if len(names) > _OPEN_FOLDERS:
            raise Skip(SkipReason.UNREADABLE)
        if len(self._open_folders) > _OPEN_FOLDERS:
            self.close()
        if "" not in self._open_folders:
            self._open_folders[""] = os.open(self.root, _FOLDER_FLAGS)
        walked = ""
        for name in names:
            above, walked = walked, f"{walked}/{name}" if walked else name
            if walked not in self._open_folders:
                self._open_folders[walked] = os.open(name, _FOLDER_FLAGS, dir_fd=self._open_folders[above])
        return self._open_folders[walked]

    def _by_path(self, path: str) -> tuple[int, os.stat_result]:
        """Open a resolved path, and make sure that it still is one."""
        full = os.path.join(self.root, *path.split("/"))
        expected = os.lstat(full)
        _check_kind(expected)
        _check_attributes(self.root, path)
        descriptor = os.open(full, _READ_FLAGS)
        if os.path.realpath(full) != full:
            os.close(descriptor)
            raise Skip(SkipReason.CHANGED)
        return descriptor, expected

    def _content(self, opened: tuple[int, os.stat_result], limit: int, room: int) -> tuple[bytes, os.stat_result]:
        """Read what was opened, if it is what was expected; close it in any case."""
        descriptor, expected = opened
        try:
            status = os.fstat(descriptor)
            if (status.st_dev, status.st_ino) != (expected.st_dev, expected.st_ino):
                raise Skip(SkipReason.CHANGED)
            _check_kind(status)
            if status.st_size > limit:
                raise Skip(SkipReason.TOO_LARGE)
            if status.st_size > room:
                raise Skip(SkipReason.TOTAL)
            data = _read_all(descriptor, limit)
            if len(data) != status.st_size:
                raise Skip(SkipReason.TOO_LARGE if len(data) > limit else SkipReason.CHANGED)
            return data, status
        finally:
            os.close(descriptor)


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:  # gone by now, or out of reach
        return None


def _read_all(descriptor: int, limit: int) -> bytes:
    """Read to the end, or one byte past `limit`."""
    chunks: list[bytes] = []
    left = limit + 1
    while left > 0:
        chunk = os.read(descriptor, left)
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def _check_kind(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Skip(SkipReason.NOT_REGULAR)


def _check_attributes(root: str, path: str) -> None:
    """Refuse what Windows hides, the file or a folder above it."""
    full = root
    for name in path.split("/"):
        full = os.path.join(full, name)
        if getattr(os.lstat(full), "st_file_attributes", 0) & _HIDDEN_ATTRIBUTE:
            raise Skip(SkipReason.HIDDEN)


def _error_reason(error: OSError) -> str:
    return SkipReason.NOT_FOUND if error.errno in _GONE_ERRORS else SkipReason.UNREADABLE


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).lower()
