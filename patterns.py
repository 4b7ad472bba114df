"""What a search pattern means to ripgrep and to GNU grep, and which lines it matches, in linear time.

It knows no Hermes and no file, starts no process and no thread, and runs no `re` over the texts: the
pattern is parsed in the tool's own dialect, and the lines run through an automaton that is built as
they need it.  Its time is linear in the text, so no pattern can hang the host; and what is not
certain to be read as the live tool reads it is refused (`Untranslatable`) instead of guessed.
"""

from __future__ import annotations

import re
import time
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from itertools import islice
from typing import Any, Callable, Iterable, Iterator, NamedTuple, NoReturn, Sequence

__all__ = ["Matcher", "PatternError", "Search", "TooSlow", "Untranslatable", "compile_pattern"]

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

    `multiline` is True when a match may span lines; `needles` are strings of which every match
    contains one (empty: nothing known), to be compared in lower case if `folded`; `sure` says that
    a line with a needle matches; `spare` are needles too, which may be the rarer ones in a text.
    """

    node: Node
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
    pattern: str, dialect: str, *, multiline: bool = False, ignore_case: bool = False, rg_major: int | None = None
) -> Matcher:
    """Read `pattern` as the live tool would.

    :param dialect: "rg", "grep-bre" (`grep`) or "grep-ere" (`grep -E`), GNU grep in both cases, in a UTF-8 locale.
    :param multiline: rg ran with `--multiline`.
    :param ignore_case: rg ran with `-i`.
    :param rg_major: major version of rg. None: unknown, so only what 13 and 14 or newer agree on.
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
    return _matcher(node, False, "", _glibc_word)


# --- helpers: sets of characters -----------------------------------------------------------------

#: Name, and the first and last character of each of its ranges.
_ASCII_CLASSES = (
    "alpha=az,AZ digit=09 alnum=az,AZ,09 upper=AZ lower=az word=az,AZ,09,__ xdigit=09,af,AF "
    "punct=!/,:@,[`,{~ graph=!~ ascii=\0\x7f"
)
_ASCII_SETS = {
    name: frozenset(chr(n) for span in spans.split(",") for n in range(ord(span[0]), ord(span[1]) + 1))
    for name, spans in (pair.split("=") for pair in _ASCII_CLASSES.split(" "))
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
#: Unicode's general categories by their long names, as ripgrep compares names.
_CATEGORIES = dict(
    pair.split("=")
    for pair in (
        "letter=L uppercaseletter=Lu lowercaseletter=Ll titlecaseletter=Lt modifierletter=Lm otherletter=Lo "
        "mark=M nonspacingmark=Mn spacingmark=Mc enclosingmark=Me "
        "number=N decimalnumber=Nd letternumber=Nl othernumber=No punctuation=P connectorpunctuation=Pc "
        "symbol=S mathsymbol=Sm currencysymbol=Sc modifiersymbol=Sk othersymbol=So "
        "separator=Z spaceseparator=Zs control=Cc"
    ).split()
)
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
_RARE = 3  # characters of a needle that is worth looking for


def _matcher(node: Node, multiline: bool, ascii_only: str, word: Test) -> Matcher:
    if _steps(node) > _MOST_STEPS:
        raise Untranslatable("the pattern is too large")
    words = _words(node)
    sure = words is not None and not any(folded for _, folded in words)
    spans = multiline and any(
        leaf.kind in "Az" if isinstance(leaf, Look) else leaf.test("\n") for leaf in _leaves(node)
    )
    needles, spare, folded = _needles(node)
    return Matcher(node, spans, needles, folded, sure, ascii_only, word, spare)


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
    demands: list[Words] = [*sorted(_demands(node), key=_worth, reverse=True), (), ()]
    best, second = demands[:2]
    folded = any(fold for _, fold in best)
    if not _worth(best)[0] or folded and not all(text.isascii() for text, _ in best):
        return (), (), False  # the lower case of a letter can depend on those around it
    if _worth(second)[0] < _RARE or not all(text.isascii() and fold <= folded for text, fold in second):
        second = ()
    return _texts(best, folded), _texts(second, folded), folded


def _texts(words: Words, folded: bool) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.lower() if folded else text for text, _ in words))


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
    empty list in `pending`, so that the inner loop needs no test: reading from it raises. To a
    generous one, whatever is doubtful holds: what it does not accept cannot match.
    """

    def __init__(self, matcher: Matcher, alphabet: _Alphabet, deadline: float, role: str) -> None:
        self.alphabet, self.deadline = alphabet, deadline
        self.reverse, self.generous, self.spans = role == "starts", role == "generous", role in ("starts", "end")
        self.anchored = role == "end" or role != "starts" and _anchored(matcher.node)
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
        row, kind = self.pending[id(empty)]
        leaves, hit = self._closure(row[-1], self.alphabet.sides[kind])
        mask, doubt = self.alphabet.masks[kind], self.alphabet.doubts[kind]
        if self.generous:
            mask |= doubt
        elif doubt and any(doubt & bit for bit, _ in leaves) and not (hit and not self.spans):
            raise Untranslatable(self.alphabet.reason)
        del self.pending[id(empty)]
        if hit and not self.spans:
            row[kind] = _MATCHED
            return _MATCHED
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
                if not self.generous:
                    raise Untranslatable(self.alphabet.reason)
                stack.append(step[2])
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

    def settles(self, pieces: Iterable[tuple[bytes, int | None]]) -> bool | None:
        """Tell whether a line matches, None when that depends on pieces of which the kinds and the least number are told."""
        if len(self.rows) > _MOST_STATES // 2:
            self._forget()
        rows = [self.start]
        for kinds, least in pieces:
            kinds = kinds if least is None else bytes(set(kinds))
            for each in [bytes((kind,)) for kind in kinds] if least is None else [kinds] * least:
                rows = self._after(rows, each)
            while least is not None and len(more := self._after(rows, kinds, rows)) > len(rows):
                rows = more
        ends = {row is _MATCHED or (row is not _DEAD and self._ends(row[-1])) for row in rows}
        return ends.pop() if len(ends) == 1 else None

    def _after(self, rows: list[Row], kinds: bytes, kept: Sequence[Row] = ()) -> list[Row]:
        """Return each row that a character of these kinds leads to, and those to be kept, once."""
        found = {id(row): row for row in kept}
        for row in rows:
            for kind in kinds:
                after = row and (row[kind] or self._made(row[kind]))  # an empty row is a verdict, and stays
                found[id(after)] = after
                if len(self.rows) >= _MOST_STATES:
                    raise Untranslatable("a masked secret may stand for too much")
        return list(found.values())

    def _ends(self, state: tuple[tuple[int, ...], int, bool]) -> bool:
        """Tell whether a match ends where a line does that was read up to this state."""
        if state not in self.ends:
            self.ends[state] = self._closure(state, _EDGE)[1]
        return self.ends[state]

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


class Search:
    """One search over several texts, for one thread: its deadline, and tables that are not shared.

    :param seconds: how long the whole search may take.
    """

    def __init__(self, matcher: Matcher, seconds: float) -> None:
        self.matcher = matcher
        self.deadline = time.monotonic() + seconds
        self.alphabet: _Alphabet | None = None
        self.automata: dict[str, _Automaton] = {}

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
        return list(islice(self._numbers(text), limit))

    def settles(self, pieces: Sequence[str | tuple[str, int]]) -> bool | None:
        """Tell whether the live tool prints a line; None when that depends on its unknown pieces.

        :param pieces: texts, and for each unknown one the letters it may be of and how many there are at least.
        :raises Untranslatable, TooSlow: as in `lines`.
        """
        told = [(piece, None) if isinstance(piece, str) else piece for piece in pieces]
        if self.matcher.ascii_only and not "".join(text for text, _ in told).isascii():
            raise Untranslatable(self.matcher.ascii_only)
        self._kinds("".join(text for text, _ in told))  # all of them before the automaton is made
        return self._automaton("line").settles([(self._kinds(text), least) for text, least in told])

    def stretches(self, text: str) -> int:
        """Return how many stretches of lines rg prints for matches that may span lines, each as one match.

        :raises Untranslatable, TooSlow: as in `lines`.
        """
        count, done = 0, -1
        for first, last in self._touched(text):
            count += first > done
            done = max(done, last)
        return count

    def _numbers(self, text: str) -> Iterator[int]:
        matcher = self.matcher
        hay = self._hay(text) if matcher.needles else None
        if matcher.multiline:
            if hay is None or any(needle in hay for needle in matcher.needles):
                yield from self._spanned(text)
        elif hay is not None and (matcher.sure or min(map(len, matcher.needles)) >= _RARE):
            yield from self._likely(text, hay)
        else:
            kinds = self._kinds(text)
            yield from (number for number, line in enumerate(kinds.split(b"\n")) if self._accepts(line))

    def _hay(self, text: str) -> str | None:
        """Return the text in which to look for needles: as it is, or folded; None if that moved letters."""
        if not self.matcher.folded:
            return text
        hay = text.lower().replace("\u017f", "s")  # the one letter that folds to an ASCII one but is lower case
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

    def _accepts(self, kinds: bytes) -> bool:
        """Tell whether one line matches; a doubt counts only where the line could match by it."""
        try:
            return self._automaton("line").accepts(kinds)
        except Untranslatable:
            if self._automaton("generous").accepts(kinds):
                raise
            return False

    def _kinds(self, text: str) -> bytes:
        """Translate text for the automata, which are made anew when it brings kinds they do not know."""
        if self.alphabet is None:
            self.alphabet = _Alphabet(self.matcher)
        known = len(self.alphabet.kinds)
        kinds = self.alphabet.encode(text)
        if len(self.alphabet.kinds) > known:
            self.automata.clear()
        return kinds

    def _automaton(self, role: str) -> _Automaton:
        """Return the automaton for a "line" (or the "generous" one), or that for the "starts" or an "end" of matches."""
        if role not in self.automata:
            assert self.alphabet is not None
            self.automata[role] = _Automaton(self.matcher, self.alphabet, self.deadline, role)
        return self.automata[role]

    def _spanned(self, text: str) -> Iterator[int]:
        """Yield the lines that the successive matches touch, where a match may span lines."""
        done = -1
        for first, last in self._touched(text):
            yield from range(max(first, done + 1), last + 1)
            done = max(done, last)

    def _touched(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the first and the last line of each match."""
        kinds = self._kinds(text)
        number = counted = 0
        for start, end in self._matches(kinds):
            if start == len(kinds) and kinds.endswith(b"\n"):
                return  # behind the last newline is no line to print
            if start == end < len(text) and text[end] >= "\x80":
                raise Untranslatable("rg goes on from within a character after an empty match")
            number += kinds.count(b"\n", counted, start)
            counted = start
            yield number, number + kinds.count(b"\n", start, max(end - 1, start))

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
