"""Answers plain terminal commands from the files of a recording, as the live tool would have.

It never runs a program and never looks at the disk.  One command from a short
list is answered, and only where its whole output is known from what the
recording keeps; everything else, and whatever the user's shell or locale may
make of it, is a `Miss`.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
from functools import cached_property
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from ..cassette_store import Call, Name
from ..patterns import Matcher, PatternError, Search, TooSlow, Untranslatable, compile_pattern
from ..snapshot import leading_json, split_command
from ..synth_search import DEADLINE, Miss, Source
from .guards import held_up, refused_folder
from .known_names import locale_orders, may_hold

__all__ = ["Terminal"]

# --- what a command asks ---------------------------------------------------------

#: Flags that are understood, by program.
_LETTERS = {"cat": "", "wc": "l", "ls": "1a", "pwd": "", "grep": "nrilcEFw", "rg": "nilcFw"}
#: Programs that print the same on macOS as on Linux, of those that are answered.
_ALIKE = frozenset({"cat", "head", "tail", "sed", "pwd", "rg"})
_COUNTED = r"-n?(\d{1,9})"
_SED_LINES = r"(\d{1,9})(?:,(\d{1,9}|\$))?p"
#: What is more than a letter to some of the languages of patterns.
_PATTERN_SIGNS = r"[.\[\](){}?*+^$\\|]"
#: Patterns that grep and ripgrep read alike.
_SHARED_PATTERN = r"\^?(?:[\w \-/,:;=@#%&!'\"`~<>]|\.\*?|(?<=[^|])\|(?=[^|]))+\$?"
#: Signs at which some versions of GNU grep warn beside what they find: a backslash before what needs none, in
#: extended patterns also a repetition of nothing.
_STRAY, _OF_NOTHING = r"(?s)\\(?![\\.*\[^$+?(){}|bB<>wWsS`']).", r"(?:^|[(|])[*+?{]"
#: Letters that only grep takes for an `i`, case ignored.
_FOLDED = "[\u0130\u0131]"
#: Folders that are ignored wherever they are, if at all.
_EVERYWHERE = frozenset({"__pycache__", "node_modules"})
#: Characters beyond which Hermes cuts an output and says where it keeps all of it.
_OUTPUT_LIMIT = 50_000
#: Output that Hermes takes for something else: terminal codes, its own marks, a failed sudo.
_UNCERTAIN_OUTPUT = "[\x1b\x80-\x9f]|__HERMES_|(?i:sudo: )"
#: What a redacted file may look like where its recording did not note what is masked.
_MASK_LIKE = r"\*{3}|\.{3}|«redacted|\[REDACTED"
#: More than Hermes masks in an output: names and neighbouring lines may make a secret of what is none in a file.
_SECRET_LIKE = (
    r"(?<![A-Za-z0-9_-])(?:sk[-_]|gh[pousr]_|github_pat_|xapp-|xox[a-z]-|AIza|pplx-|fal_|fc-|f[wp]k?[-_]|bb_live_|gAAAA"
    r"|AKIA|rk_live_|SG\.|hf_|r8_|npm_|pypi-|do[op]_v1_|am_|tvly-|exa_|gsk_|syt_|retaindb_|hsk-|mem0_|brv_|xai-|ntn_"
    r"|gl[a-z]{2,6}-|GR1348941|pk-lf-)[\w.-]{8}|eyJ[\w-]{10}|[0-9a-f]{32}\.[A-Za-z0-9]{16}|\d{8}:[\w-]{30}|\+[1-9]\d{6}"
    r"|(?i:authorization|api-?key|-token)\s*(?::|$)|PRIVATE KEY|://[^\s:@/]{8,}@|://[^:\s]+:[^@\s]+@|«redacted"
    r"|^[ \t]*E[ \t]{2,}.*'\s*:|^[\w.]*(?:Error|Exception|Warning):.*'\s*:"
)
_INVISIBLE = "[\x00-\x1f\x7f\u200b-\u200f\u2028-\u202f\u2060\ufeff]"


class _Request(NamedTuple):
    """One plain command that only reads, as its program understands it."""

    program: str
    letters: str = ""  #: its flags
    paths: tuple[str, ...] = ()
    pattern: str = ""  #: of a search, or the glob of `find`
    first: int = 1  #: of the lines that are shown
    most: int | None = None  #: of the lines that are shown at most; None for all
    kind: str = ""  #: "f" or "d" for `find`
    folder: str = ""  #: what `cd` goes to before


def _read_request(command: str) -> _Request | None:
    """Return what a command asks; None for all that is not one plain command from the list."""
    folder, rest = "", command
    if found := re.fullmatch(r"( *cd +[^&]*)&&([^&].*)", command):
        steps = split_command(found[1], False) or []
        if len(steps) != 2 or steps[1].live or not steps[1].text or steps[1].text.startswith("-"):
            return None
        folder, rest = steps[1].text, found[2]
    words = split_command(rest, False) if command.isprintable() else None
    if not words or any(word.live for word in words) or words[0].raw != words[0].text:
        return None
    program, *texts = [word.text for word in words]
    if program == "git" and texts in (["ls-files"], ["--no-pager", "ls-files"]):
        request: _Request | None = _Request("git ls-files")
    elif program in ("head", "tail"):
        request = _ends(program, texts)
    elif program == "sed":
        request = _lines(texts)
    else:
        request = _walk(texts) if program == "find" else _plain_request(program, texts)
    return request and request._replace(folder=folder)


def _read_on_windows(command: str) -> _Request | None:
    """Return what `type FILE` or `dir /b [FOLDER]` asks; None for all else."""
    words = split_command(command, True) if command.isascii() and command.isprintable() else None
    if not words or any(word.live for word in words):
        return None
    program, *texts = [word.text for word in words]
    if program.lower() == "dir" and texts[:1] in (["/b"], ["/B"]):
        texts, program = texts[1:], "dir"
        fits = len(texts) < 2
    else:
        program = program.lower()
        fits = program == "type" and len(texts) == 1
    if not fits or any(not text or text[0] in "/-" for text in texts):
        return None
    return _Request(program, paths=tuple(texts))


def _plain_request(program: str, words: list[str]) -> _Request | None:
    split = _options(words, _LETTERS.get(program))
    if split is None:
        return None
    letters, operands = split
    search = program in ("grep", "rg")
    if search and not operands:
        return None
    pattern = operands.pop(0) if search else ""
    fits = {
        "cat": bool(operands),
        "wc": letters == "l" and len(operands) == 1,  # of several, it says "total" in the user's language
        "ls": len(operands) < 2,
        "pwd": not operands,
        "grep": bool(operands) or "r" in letters,
        "rg": True,
    }
    if not fits[program] or "" in operands:
        return None
    if {"c", "l"} <= set(letters) or {"E", "F"} <= set(letters):
        return None
    return _Request(program, letters, tuple(operands), pattern)


def _options(words: list[str], known: str | None) -> tuple[str, list[str]] | None:
    """Split off the flags, which stand before everything else; None if one is not known."""
    letters, rest = "", list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        letters += word[1:] or "-"
    else:
        if any(word.startswith("-") for word in rest):  # not all programs find a flag there
            return None
    if known is None or not set(letters) <= set(known) or "-" in rest:
        return None
    return letters, rest


def _ends(program: str, words: list[str]) -> _Request | None:
    """Read `head` or `tail`, with `-n N` or `-N`."""
    count, short = 10, False
    if words[:1] == ["-n"] and re.fullmatch(r"\d{1,9}", "".join(words[1:2])):
        count, words = int(words[1]), words[2:]
    elif words and (found := re.fullmatch(_COUNTED, words[0])):
        count, short, words = int(found[1]), "n" not in words[0], words[1:]
    split = _options(words, "")
    # `tail -1` takes one file.
    if split is None or not split[1] or "" in split[1] or program == "tail" and short and len(split[1]) > 1:
        return None
    return _Request(program, paths=tuple(split[1]), most=count)


def _lines(words: list[str]) -> _Request | None:
    """Read `sed -n A,Bp FILE`."""
    found = re.fullmatch(_SED_LINES, words[1]) if len(words) == 3 and words[0] == "-n" else None
    if found is None or int(found[1]) < 1 or not words[2] or words[2].startswith("-"):
        return None
    first, last = int(found[1]), found[2] or found[1]
    return _Request("sed", paths=(words[2],), first=first, most=None if last == "$" else max(int(last) - first, 0) + 1)


def _walk(words: list[str]) -> _Request | None:
    """Read `find [DIR] -name GLOB [-type f|d]`."""
    path = "." if not words or words[0].startswith("-") else words[0]
    tests = words[1:] if words[:1] == [path] else words
    given = dict(zip(tests[::2], tests[1::2]))
    if len(tests) != 2 * len(given) or "-name" not in given or not set(given) <= {"-name", "-type"}:
        return None
    if not path or given.get("-type", "f") not in ("f", "d"):
        return None
    return _Request("find", paths=(path,), pattern=given["-name"], kind=given.get("-type", ""))


# --- what it is answered --------------------------------------------------------


class Terminal:
    """Answers plain terminal commands from the files of a snapshot, as the live tool would have.

    :param calls: the recorded terminal calls.  A program of which one contradicts
        the answer made here (the user's alias, a file that changed) is not
        answered; with Hermes 0.23 or later only one of which a call confirms it.
    """

    def __init__(self, source: Source, calls: Sequence[Call]) -> None:
        self._source, self._calls = source, calls
        self._old = source.family.name == "0.19"

    def __call__(self, args: Mapping[str, Any], folder: str) -> tuple[str, str]:
        """Return the result of a call, and the folder in which the next one runs.

        :param folder: where this one runs, relative to the workspace.
        :raises Miss: if the snapshot cannot tell; its reason is empty for what is no plain command.
        """
        request, text, after = self._answer(args, folder)
        confirmed, contradicted = self._tried
        if request.program in contradicted:
            raise Miss(f"a recorded result of {request.program} says that it works in another way here")
        version = self._source.version
        newer = version is not None and version >= (0, 23)
        if self._source.windows and request.program not in confirmed:
            raise Miss(f"no recorded result shows what {request.program} is in this shell")
        if newer and (
            request.program not in confirmed or folder != after or '"exit_code": 0, "error": null}' not in text
        ):
            raise Miss("how this Hermes tells it is not known")
        return text, after

    @property
    def contradicted(self) -> bool:
        """Whether a recorded result is not as it is made here."""
        return bool(self._tried[1])

    @cached_property
    def _tried(self) -> tuple[set[str], set[str]]:
        """The programs of which a recorded result is as it is made here, and those of which one is not."""
        found: tuple[set[str], set[str]] = (set(), set())
        folder = ""
        for call in self._calls:
            try:
                request, text, folder = self._answer(call.args, folder)
            except Miss:
                continue
            same = _same_output(call.result, text, request.program in ("rg", "grep", "find"))
            found[not same].add(request.program)
        return found

    def _answer(self, args: Mapping[str, Any], folder: str) -> tuple[_Request, str, str]:
        command, workdir = args.get("command"), args.get("workdir")
        request = _read_request(command) if isinstance(command, str) else None
        if self._source.windows and isinstance(command, str):
            request = _read_on_windows(command) or request
        if request is None:
            raise Miss("")
        if why := held_up(str(command)):
            raise Miss(why)
        platform = self._source.recorder.platform
        theirs = platform == "win32" and request.program in ("type", "dir")
        if (
            platform != "linux"
            and not theirs
            and not (platform == "darwin" and request.program in _ALIKE and len(request.paths) < 2)
        ):
            raise Miss(f"what {request.program} prints is not known for {platform or 'an unknown platform'}")
        start = folder
        if workdir:
            if request.folder or not isinstance(workdir, str) or folder and not workdir.startswith("/"):
                raise Miss("where the command runs is not certain")
            if refused_folder(workdir):
                raise Miss("the live tool may refuse to run a command there")
            start = self._folder(workdir, "")
        here = self._folder(request.folder, start) if request.folder else start
        try:
            output, code = self._printed(request, here)
        except PatternError:
            raise Miss("the program refuses the pattern") from None
        except Untranslatable as error:
            raise Miss(f"this pattern may mean something else to the live tool: {error.reason}") from None
        except TooSlow:
            raise Miss(f"the search was not done within {DEADLINE:g} seconds") from None
        except Miss:
            raise
        except Exception as error:  # a replay must end in an answer or a miss
            raise Miss(f"the replay could not work out this call: {error!r}") from error
        moved = here if request.folder or self._old else folder
        return request, self._told(str(command), request, output, code, here if here != start else None), moved

    def _told(self, command: str, request: _Request, output: str, code: int, moved: str | None) -> str:
        """Word the result; 0.20 and newer say where a command has gone."""
        root = self._source.workspace.root
        if len(output) + len(root) + 200 > _OUTPUT_LIMIT:
            raise Miss("the live tool cuts so long an output, and puts it into a file")
        if re.search(_UNCERTAIN_OUTPUT, output) or _may_be_masked(output):
            raise Miss("the live tool may show some of this output in another way")
        if "|" in command and (request.folder or request.program not in ("grep", "rg")):
            raise Miss("the live tool may remark on this command")
        told: dict[str, Any] = {"output": output.strip(), "exit_code": code, "error": None}
        if moved is not None and not self._old:
            told["cwd"] = self._path(moved)
        program = _last_program(command)
        if code == 1 and program in ("grep", "rg"):
            told["exit_code_meaning"] = "No matches found (not an error)"
        return json.dumps(told, ensure_ascii=False)

    def _printed(self, request: _Request, here: str) -> tuple[str, int]:
        """Return what the program prints, and its exit code."""
        if request.program in ("grep", "rg"):
            return self._search(request, here)
        if request.program in ("head", "tail"):
            return self._ends(request, here), 0
        if request.program in ("cat", "sed"):
            return "".join(self._part(path, here, request.first, request.most) for path in request.paths), 0
        if request.program == "wc":
            key = self._file(request.paths[0], here)
            masks = self._source.index.masks(key)
            if masks and not masks.countable:
                raise Miss(f"{request.paths[0]}: how many lines it has depends on a masked secret")
            return f"{self._source.snapshot.files[key].text.count(chr(10))} {request.paths[0]}\n", 0
        if request.program == "pwd":
            return self._path(here) + "\n", 0
        if request.program == "type":
            return self._typed(request.paths[0], here), 0
        return "".join(f"{name}\n" for name in self._names(request, here)), 0

    def _path(self, folder: str) -> str:
        """Return a folder of the workspace as the shell calls it."""
        root = self._source.workspace.root
        if self._source.workspace.aliases:
            raise Miss("the shell may call the folder in another way")
        return f"{root.rstrip('/')}/{folder}" if folder else root

    # Files.

    def _folder(self, path: str, base: str) -> str:
        """Return the key of a folder that a command goes to, or that it names."""
        key = self._key(path, base)
        typed, place = posixpath.normpath(path), f"/{self._source.workspace.root}/{key}".rstrip("/")
        if self._source.recorder.fold_case and typed != "." and not place.endswith("/" + typed.lstrip("/")):
            raise Miss(f"{path}: how the shell would call this folder is not certain")
        if key and key not in self._source.index.folders:
            raise Miss(self._source.absence(path, key))
        return key

    def _file(self, path: str, base: str) -> str:
        """Return the key of a file of which the text is known."""
        key = self._key(path, base)
        if path.endswith("/") or key not in self._source.snapshot.files:
            raise Miss(self._source.absence(path, key))
        return key

    def _key(self, path: str, base: str) -> str:
        if ".." in path.split("/"):
            raise Miss(f"{path}: it climbs")
        named = path if self._source.windows else _from_here(path)
        key = self._source.key(named, base)
        if self._source.links and self._source.workspace.relative(named, base) != key:
            raise Miss(f"{path}: it leads through a link")
        return key

    def _part(self, path: str, here: str, first: int, count: int | None) -> str:
        """Return lines of a file as they are; `first` counts from 1, or from the end where it is negative."""
        key = self._file(path, here)
        file, masks = self._source.snapshot.files[key], self._source.index.masks(key)
        lines = file.text.split("\n")
        total = len(lines) - (not lines[-1])
        start = min(first - 1, total) if first > 0 else max(total + first, 0)
        end = total if count is None else min(start + count, total)
        shown = "\n".join(lines[start:end]) + ("\n" if start < end < len(lines) else "")
        if masks and (not masks.countable or masks.touch(range(start, end))):
            raise Miss(f"{path}: the live tool shows a masked secret in another way")
        if file.masks is None and re.search(_MASK_LIKE, shown):
            raise Miss(f"{path}: it may hold a masked secret")
        return shown

    def _typed(self, path: str, here: str) -> str:
        """Print a file as `type` of Windows does."""
        text = self._part(path, here, 1, None)
        if re.search(r"[^\t\n -~]", text):
            raise Miss(f"{path}: what type makes of its characters is not certain")
        return text

    def _ends(self, request: _Request, here: str) -> str:
        """Print what `head` and `tail` do: of several files each under its name."""
        count = request.most or 0
        if not count and self._source.recorder.platform == "darwin":
            raise Miss("the program may refuse to show no line")
        if not count and request.program == "tail":
            return ""  # it does not even say the names
        shown: list[str] = []
        for path in request.paths:
            part = (
                self._part(path, here, 1, count) if request.program == "head" else self._part(path, here, -count, None)
            )
            gap = "\n" if shown else ""
            shown.append(f"{gap}==> {path} <==\n{part}" if len(request.paths) > 1 else part)
        return "".join(shown)

    # Searches.

    def _search(self, request: _Request, here: str) -> tuple[str, int]:
        rg = request.program == "rg"
        search = Search(self._matcher(request), DEADLINE)
        files, many = self._searched(request, here)
        rows: list[str] = []
        matched = False
        for name, key in files:
            hits = self._hits(search, request, key)
            matched = matched or bool(hits)
            head = f"{name}:" if many else ""
            if "l" in request.letters:
                rows += [name] if hits else []
            elif "c" in request.letters:
                rows += [f"{head}{len(hits)}"] if hits or not rg else []
            else:
                lines = self._source.index.lines(key, not rg) if hits else []
                numbered = "n" in request.letters
                rows += [f"{head}{hit + 1}:{lines[hit]}" if numbered else f"{head}{lines[hit]}" for hit in hits]
        return "".join(f"{row}\n" for row in rows), 0 if matched else 1

    def _matcher(self, request: _Request) -> Matcher:
        """Return what the pattern means to the program.  :raises Miss: if that is not certain."""
        pattern, letters = request.pattern, request.letters
        if "w" in letters and not re.fullmatch(r"\w+", pattern, re.ASCII):
            raise Miss("what the program takes for whole words is not certain")
        plain = "F" in letters or not re.search(_PATTERN_SIGNS, pattern)
        if request.program == "grep":
            _check_pattern(pattern, letters, plain)
        if plain:
            pattern = re.sub(_PATTERN_SIGNS, r"\\\g<0>", pattern)
            pattern = rf"\b{pattern}\b" if "w" in letters else pattern
        elif request.program == "grep" and "i" in letters:
            pattern = (
                pattern if "E" in letters else re.sub(r"\\\||\|", lambda bar: {"|": "\\|"}.get(bar[0], "|"), pattern)
            )
            if not re.fullmatch(_SHARED_PATTERN, pattern, re.ASCII):
                raise Miss("what grep -i makes of this pattern is not certain")
        if request.program == "rg" or plain or "i" in letters:
            major = self._ripgrep() if request.program == "rg" else None
            return compile_pattern(pattern, "rg", ignore_case="i" in letters, rg_major=major)
        return compile_pattern(pattern, "grep-ere" if "E" in letters else "grep-bre")

    def _ripgrep(self) -> int | None:
        """Return the version of the ripgrep that a command runs; `search_files` of 0.22 may have one of its own."""
        recorder = self._source.recorder
        if not recorder.rg_major and not (recorder.search == "rg" and self._source.family.name in ("0.19", "0.20")):
            raise Miss("whether commands find ripgrep is not known")
        return recorder.rg_major or None

    def _hits(self, search: Search, request: _Request, key: str) -> list[int]:
        index, rg = self._source.index, request.program == "rg"
        file, masks = self._source.snapshot.files[key], index.masks(key)
        text = file.text.removeprefix("\ufeff") if rg else file.text
        hits, certain = masks.found(search, text, not rg) if masks else (search.lines(text, None), True)
        told = set(request.letters) & {"c", "l"}
        shows = (
            masks and not told and (masks.touch(hits) or "n" in request.letters and not all(map(masks.stands, hits)))
        )
        if not certain or shows:
            raise Miss(f"{key}: what the live tool would say depends on a masked secret")
        shown = [] if told else [index.lines(key, not rg)[hit] for hit in hits]
        if file.masks is None and re.search(_MASK_LIKE, "\n".join(shown)):
            raise Miss(f"{key}: it may hold a masked secret")
        if not rg and "i" in request.letters and re.search(_FOLDED, text):
            raise Miss(f"{key}: what grep -i finds in it depends on the locale")
        literal = not re.search(_PATTERN_SIGNS, request.pattern) and not set(request.letters) & {"i", "w"}
        if not (rg or text.isascii() or literal):
            # In a locale without UTF-8, grep takes each byte for a character.
            bytewise = re.sub("[\x80-\xff]", "\xa7", text.encode("utf-8", "surrogatepass").decode("latin-1"))
            if masks or search.lines(bytewise, None) != hits:
                raise Miss(f"{key}: what grep finds in it depends on the locale")
        return hits

    def _searched(self, request: _Request, here: str) -> tuple[list[tuple[str, str]], bool]:
        """Return the files to search, each with the name it is shown by, and whether names are shown."""
        rg = request.program == "rg"
        found: list[tuple[str, str]] = []
        many = len(request.paths) != 1
        for path in request.paths or ("",):
            key = self._key(path, here) if path else here
            if key in self._source.snapshot.files and not path.endswith("/"):
                found.append((path, key))
                continue
            if not (rg or "r" in request.letters):
                raise Miss(self._source.absence(path, key))
            if "//" in path:
                raise Miss(f"{path}: how the program would call what is in it is not certain")
            many = True
            head = path if not path or path.endswith("/") else path + "/"
            start = len(key) + 1 if key else 0
            found += [(head + one[start:], one) for one in self._all_below(path, key, hidden=not rg)]
        if rg and not found and not request.paths:
            raise Miss("ripgrep remarks on it where it has searched nothing")
        return found, many

    # Folders: nothing is told of one of which not every name is known.

    def _all_below(self, path: str, key: str, hidden: bool) -> list[str]:
        """Return the files that a search below a folder reads.

        :param hidden: it reads hidden and ignored ones, too.
        :raises Miss: if the text of one is not known.
        """
        top = (self._source.snapshot.names or {}).get(key)
        if top is not None and top.ignored and not hidden:
            raise Miss(f"{path}: which ignore rules hold below an ignored folder is not known")
        if key and not hidden and self._loses_rules(key):
            raise Miss(f"{path or '.'}: ripgrep before 15 misreads rules with a slash from above where it begins")
        wanted = []
        for name, one in self._named_below(path, key, hidden).items():
            if one.kind == "file" and name in self._source.snapshot.files:
                wanted.append(name)
            elif one.kind == "file" and (hidden or one.size and not self._leaves(name)):
                raise Miss(f"{path or '.'}: the recording does not hold the text of {name}")
        return wanted

    def _loses_rules(self, key: str) -> bool:
        """Say whether an ignore rule for something below a folder may not hold in a search that begins there."""
        if (self._source.recorder.rg_major or 0) >= 15:
            return False
        below = ((name, one) for name, one in (self._source.snapshot.names or {}).items() if name.startswith(f"{key}/"))
        return any(one.ignored and _EVERYWHERE.isdisjoint(name.split("/")) for name, one in below)

    def _leaves(self, name: str) -> bool:
        """Say whether ripgrep passes over a file, whatever is sought."""
        return self._source.names is not None and self._source.names.ripgrep_leaves(name)

    def _named_below(self, path: str, key: str, hidden: bool, glob: str = "*") -> dict[str, Name]:
        """Return all that lies below a folder, by path.  :raises Miss: if not all names that fit are known."""
        names = self._open_folder(path, key)
        start = key + "/" if key else ""
        below = {name: one for name, one in names.items() if name.startswith(start) and name != key}
        if not hidden:
            below = {
                name: one for name, one in below.items() if "/." not in "/" + name[len(start) :] and not one.ignored
            }
        if any(one.inside is not None and may_hold(one, glob) for one in below.values()):
            raise Miss(f"{path or '.'}: the recording does not know all below it")
        return dict(sorted(below.items()))

    def _open_folder(self, path: str, key: str) -> Mapping[str, Name]:
        """Return the names of the workspace.  :raises Miss: if those in a folder are not among them."""
        names = self._source.snapshot.names
        top = (names or {}).get(key)
        if names is None or key and (top is None or top.kind != "folder" or top.inside is not None):
            raise Miss(f"{path or '.'}: the recording does not know all of this folder")
        return names

    def _names(self, request: _Request, here: str) -> list[str]:
        """Return the names that `ls`, `find` or `git ls-files` print."""
        if request.program == "find":
            return self._walked(request, here)
        if request.program == "git ls-files":
            return self._tracked(here)
        path = request.paths[0] if request.paths else ""
        key = self._key(path, here) if path else here
        if key in self._source.snapshot.files and not path.endswith("/"):
            return [path]
        names = self._open_folder(path, key)
        start = len(key) + 1 if key else 0
        inside = [name[start:] for name in names if name.rpartition("/")[0] == key]
        if request.program == "dir":
            return _as_on_ntfs(inside)
        shown = [".", "..", *inside] if "a" in request.letters else [name for name in inside if name[0] != "."]
        return _sorted_by_locale(shown, self._source.recorder.locale)

    def _tracked(self, here: str) -> list[str]:
        """Return what `git ls-files` prints: the tracked files below a folder, in the order of their bytes."""
        if self._source.snapshot.untracked is None:
            raise Miss("which files git tracks is not known")
        names, untracked = self._open_folder(here, here), {*self._source.snapshot.untracked}
        start = here + "/" if here else ""
        found = [
            name[len(start) :]
            for name, one in names.items()
            if one.kind in ("file", "link") and name.startswith(start) and name not in untracked
        ]
        if not all(re.fullmatch(r"[ !#-\[\]-~]*", name) for name in found):
            raise Miss("git writes the names of these files in its own way")
        return sorted(found)

    def _walked(self, request: _Request, here: str) -> list[str]:
        path = request.paths[0]
        key = self._key(path, here)
        below = self._named_below(path, key, True, request.pattern)
        if re.search(r"\\|\[|[^\x00-\x7f]", request.pattern) or "?" in request.pattern and not "".join(below).isascii():
            raise Miss("what find makes of this name is not certain")
        fits = re.compile(fnmatch.translate(request.pattern)).match
        own = re.sub(r".*/(?=.)", "", path.rstrip("/") or "/")
        shown = [(path, own, "folder")]
        head, start = path if path.endswith("/") else path + "/", len(key) + 1 if key else 0
        shown += [(head + name[start:], name.rpartition("/")[2], one.kind) for name, one in below.items()]
        wanted = {"f": "file", "d": "folder"}.get(request.kind, "")
        return [name for name, last, kind in shown if fits(last) and wanted in ("", kind)]


def _check_pattern(pattern: str, letters: str, plain: bool) -> None:
    """Refuse patterns that grep remarks on, or that it folds as no other does.  :raises Miss: for those."""
    pairs = "".join(re.findall(r"(?s)\\.", pattern))
    if not plain and (re.search(_STRAY, pairs) or "E" in letters and re.search(_OF_NOTHING, pattern)):
        raise Miss("some versions of grep warn of this pattern")
    if "i" in letters and not pattern.isascii():
        raise Miss("what grep -i makes of this pattern is not certain")


def _from_here(path: str) -> str:
    """A path as the program reads it: a quoted `~` is a name."""
    return path if path.startswith("/") else f"./{path}"


def _may_be_masked(output: str) -> bool:
    """Say whether Hermes may mask some of an output that its files showed unmasked."""
    shown = output.strip()
    if "&" in shown and "=" in shown and "\n" not in shown:  # it may be taken for the body of a form
        return True
    joined = re.sub(_INVISIBLE, "", shown)
    secret = re.compile(_SECRET_LIKE, re.MULTILINE)
    return bool(secret.search(shown) or len(joined) < len(shown) and secret.search(joined))


def _last_program(command: str) -> str:
    """Return what Hermes takes for the program whose exit code it explains; it does not see quotes."""
    last = re.split(r"\s*(?:\|\||&&|[|;])\s*", command)[-1]
    return next((word.split("/")[-1] for word in last.split() if "=" not in word or word.startswith("-")), "")


def _same_output(recorded: Any, text: str, any_order: bool) -> bool:
    """Whether a recorded result says what an answer does."""
    one, other = leading_json(recorded) if isinstance(recorded, str) else recorded, json.loads(text)
    if any_order and isinstance(one, dict) and isinstance(one.get("output"), str):
        one, other = ({**each, "output": sorted(each["output"].split("\n"))} for each in (one, other))
    return one == other


def _as_on_ntfs(names: Sequence[str]) -> list[str]:
    """Sort names as `dir /b` finds them.  :raises Miss: if one may be hidden, or if there are none."""
    if not names or any(name.startswith(".") or not name.isascii() for name in names):
        raise Miss("what dir shows of these names is not certain")
    return sorted(names, key=str.upper)


def _sorted_by_locale(names: Iterable[str], locale: str) -> list[str]:
    """Sort names as `ls` does.  :raises Miss: if that depends on a locale that is not known."""
    found, *others = locale_orders(names, locale)
    if others and (any(other != found for other in others) or not "".join(found).isascii()):
        raise Miss("how these names are sorted depends on the locale")
    return found
