"""What a terminal command says: the words that its shell makes of it, and which commands are one.

Pure text: nothing here runs a program or looks at the disk.  What is not
understood has no words, and is only the same as itself.
"""

from __future__ import annotations

import re
from typing import Callable, NamedTuple, Sequence

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


# --- words ------------------------------------------------------------------


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


# --- which commands are one --------------------------------------------------

#: What Hermes itself reads in the text of a command, to word its remarks (`_interpret_exit_code`).
_REMARKED = "[|;&]"
#: Files for which Hermes redacts a command's output more strictly; it goes by the command's text.
_REDACTED = r"\.(?!\.?\Z).*|config\.yaml.*"

#: Letters of `ls` that change what it says of a folder's files, not what it calls the folder.
_LS_LETTERS = frozenset("1AFGSXaghilnoprst")
#: Those of them whose order means nothing.
_LS_FREE = frozenset("ahlrt")
#: Flags of `git log` and `git show` that take no value of their own.
_GIT_FLAGS = frozenset(
    "-p -u -s --patch --no-patch --oneline --stat --shortstat --numstat --summary --graph --decorate --no-decorate"
    " --all --branches --tags --remotes --reverse --merges --no-merges --first-parent --name-only --name-status"
    " --abbrev-commit --no-abbrev-commit --no-color --date-order --topo-order --author-date-order --follow".split()
)
_COUNT = r"(?:-n?|--max-count=)([1-9]\d{0,8})"


class Forms(NamedTuple):
    """What a command comes to, in two degrees.

    Commands with an equal `words` do the same.  Those with an equal `outcome`
    do so where one of them is known to succeed: a file that `cat` cannot open
    is called in its complaint as it was typed.
    """

    words: tuple[str, ...]
    outcome: tuple[str, ...]
    placed: bool  #: `outcome` says where its files are, so where the command runs does not count


def command_forms(
    command: str, windows: bool, place: Callable[[str], str], is_folder: Callable[[str], bool]
) -> Forms | None:
    """Return what a command comes to; None when only the same text is the same command.

    :param place: returns one spelling for all paths that lead from where the
        command runs to the same file.
    :param is_folder: says that a path surely is a folder, and no link to one.
    """
    words = split_command(command, windows) if command.isprintable() else None
    if not words or words[0].raw != words[0].text or words[0].live or re.search(_REMARKED, command):
        return None
    if words[0].text in ("cat", "type") and any(map(_redacts_by_text, words[1:])):
        typed = tuple(f"raw {word.raw}" for word in words)
        return Forms(typed, typed, False)
    if words[0].text == "git" and len(words) > 1 and words[1].raw == "--no-pager":
        del words[1]  # there is no terminal to page on
    said = tuple(_said(word) for word in words)
    outcome = None if windows else _outcome(words, place, is_folder)
    paths = [part for part in outcome or () if part.startswith("path ")]
    others = [part for part in (outcome or said)[1:] if not part.startswith(("path ", "letters ", "word -"))]
    return Forms(said, outcome or said, bool(paths) and not others)


def _redacts_by_text(word: Word) -> bool:
    name = word.text.rpartition("/")[2]
    return re.search(r"[\s\\]", word.raw) is not None or re.fullmatch(_REDACTED, name, re.IGNORECASE) is not None


def _said(word: Word) -> str:
    return f"raw {word.raw}" if word.live else f"word {word.text}"


def _outcome(
    words: Sequence[Word], place: Callable[[str], str], is_folder: Callable[[str], bool]
) -> tuple[str, ...] | None:
    program = words[0].text
    if program == "cat":
        return ("word cat", *_cat(words[1:], place))
    if program in ("ls", "dir"):
        return _listing(words, place, is_folder)
    if program == "git" and len(words) > 1 and words[1].raw in ("log", "show"):
        return _history(words)
    return None


def _cat(words: Sequence[Word], place: Callable[[str], str]) -> list[str]:
    """`cat` prints no names: what leads to the same files is the same."""
    said = []
    options = True
    for word in words:
        if not word.live and options and word.text == "--":
            options = False
        elif word.live or word.text == "-" or options and word.text.startswith("-"):
            said.append(_said(word))
        else:
            steps = word.text.split("/")
            # A folder's name, and one that climbs, may fail where another spelling does not.
            plain = word.text and ".." not in steps and steps[-1] not in ("", ".")
            said.append(f"path {place(_from_here(word.text))}" if plain else _said(word))
    return said


def _from_here(path: str) -> str:
    """A path as the program reads it: a quoted `~` is a name."""
    return path if path.startswith("/") else f"./{path}"


def _listing(
    words: Sequence[Word], place: Callable[[str], str], is_folder: Callable[[str], bool]
) -> tuple[str, ...] | None:
    """`ls` of one folder says nothing of how it is called; None for any other."""
    letters, operands = "", []
    for word in words[1:]:
        if word.live or word.text.startswith("--"):
            return None
        if word.text.startswith("-") and len(word.text) > 1:
            if operands:
                return None
            letters += word.text[1:]
        else:
            operands.append(word.text)
    if not set(letters) <= _LS_LETTERS or len(operands) > 1 or operands and ".." in operands[0].split("/"):
        return None
    path = _from_here(operands[0]) if operands else "."
    if operands and path not in ("./", "./.", "././") and (not operands[0] or not is_folder(path)):
        return None
    if set(letters) <= _LS_FREE:
        letters = "".join(sorted(set(letters)))
    return (f"word {words[0].text}", f"letters {letters}", f"path {place(path)}")


def _history(words: Sequence[Word]) -> tuple[str, ...] | None:
    """`git log` says the same whichever way it is told how many; None when it is not told once."""
    rest = list(words[2:])
    count, flags = "", []
    while rest and rest[0].text.startswith("-") and rest[0].text != "--" and not rest[0].live:
        text = rest.pop(0).text
        if text in ("-n", "--max-count") and rest and not rest[0].live:
            text = f"-n{rest.pop(0).text}"
        if found := re.fullmatch(_COUNT, text, re.ASCII):
            if count:
                return None
            count = found[1]
        elif text in _GIT_FLAGS or re.match(r"--(?!max-|skip)[a-z-]+=", text):
            flags.append(f"word {text}")
        else:
            return None
    if not count:
        return None
    return ("word git", f"word {words[1].text}", f"count {count}", *flags, *map(_said, rest))
