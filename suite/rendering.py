"""An answer as a person reads it: Markdown rendered to plain text, by CommonMark's rules (0.31).

Only what decides which characters are read is done here: no tree is built, no HTML
is written.  Every step takes time linear in the answer, whatever a model wrote.
Patterns are kept as texts and compiled when first used: each start of Hermes
imports this module, and few need it.
"""

from __future__ import annotations

import difflib
import heapq
import re
import unicodedata
from typing import Callable

from .pins import pin_holds

__all__ = ["nearest", "pin_holds_rendered", "rendered"]

#: What nobody sees.  The two overrides of direction stay: they change the order of what is read.
_INVISIBLE = (
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202c\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_TYPOGRAPHIC = {
    **dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"),
    **dict.fromkeys("‘’‚‛‹›ʼ´＇", "'"),
    **dict.fromkeys("“”„‟«»＂", '"'),
}


def pin_holds_rendered(pin: str, shown: str) -> bool:
    """Say whether an answer as rendered holds a pin that is plain text.  No Markdown is read in the pin."""
    wanted = _plain(pin).strip()
    return bool(wanted) and pin_holds(wanted, shown)


def rendered(answer: str) -> str:
    """Return an answer as a person reads it.

    What CommonMark takes for marks of emphasis, code, links, headings, quotes and
    lists is gone; within a paragraph a line end or a run of blanks is one blank;
    invisible characters are gone, and typographic quotes, dashes, blanks and
    digits are those of a keyboard.  Each paragraph, heading and line of code is a
    line of its own.  What is no such mark stays: HTML tags, tables (a line each row), `~~`.
    """
    blocks = _Blocks()
    for line in re.split(r"\r\n?|\n", answer):
        blocks.read(line.expandtabs(4))
    blocks.close()
    lines: list[str] = []
    for marked, text in blocks.found:
        lines += [_Marks(text, blocks.labels).read().replace("\n", " ")] if marked else text.split("\n")
    return "\n".join(filter(None, (re.sub(" +", " ", _plain(line)).strip(" ") for line in lines)))


def _plain(text: str) -> str:
    """A text without invisible characters, its quotes, dashes, blanks and digits as a keyboard has them."""
    table = {9: " "}
    for one in set(text):
        if not one.isascii():
            blank = " " if unicodedata.category(one) == "Zs" else one
            digit = str(unicodedata.decimal(one)) if one.isdecimal() else blank
            table[ord(one)] = "" if re.match(_INVISIBLE, one) else _TYPOGRAPHIC.get(one, digit)
    return text.translate(table)


#: What `nearest` looks at, of an answer and of a pin, so that it takes no more than a moment.
_NEAR_TEXT, _NEAR_WORDS, _NEAR_PIN = 50_000, 3_000, 80


def nearest(pin: str, shown: str) -> str:
    """Say in a few words what in an answer, as rendered, comes nearest to a plain pin that it lacks; "" if nothing."""
    wanted = _plain(pin).casefold().split()
    letters = [re.escape(one) for word in wanted for one in word if one.isalnum()]
    if not letters or len(pin) > _NEAR_PIN:
        return ""
    shown = shown[:_NEAR_TEXT]
    if found := re.search(r"[\W_]{0,9}".join(letters), shown, re.IGNORECASE):
        there = _ticked(" ".join(found[0].split()))
        return f"{there}, only marks between" if len(wanted) > 1 else f"{there} is there"
    words = [word.strip(".,:;!?()[]{}'\"`*") for word in shown.split(None, _NEAR_WORDS)[:_NEAR_WORDS]]
    parts = {part.casefold(): part for at in range(len(words)) if (part := " ".join(words[at : at + len(wanted)]))}
    likeness = difflib.SequenceMatcher(None, "", " ".join(wanted))

    def alike(part: str, how: Callable[[], float]) -> float:
        likeness.set_seq1(part)
        return how()

    likely = heapq.nlargest(8, parts, key=lambda part: alike(part[: 2 * _NEAR_PIN], likeness.quick_ratio))
    ratio, best = max(((alike(part[: 2 * _NEAR_PIN], likeness.ratio), part) for part in likely), default=(0.0, ""))
    return _ticked(parts[best]) if ratio >= 0.7 else ""


def _ticked(text: str) -> str:
    return f"`{text if len(text) <= 60 else text[:57] + '...'}`"


# --- blocks ------------------------------------------------------------------------

# Every pattern here and below reads a text in one way only, and stops where the
# next of its kind may begin: that is why a failure costs no time.
_TAG = (
    r"<(?:[A-Za-z][A-Za-z0-9-]*(?:\s+[A-Za-z_:][A-Za-z0-9_.:-]*(?:\s*=\s*(?:[^\s\"'=<>`]+|'[^']*'|\"[^\"]*\"))?)*\s*/?"
    r"|/[A-Za-z][A-Za-z0-9-]*\s*)>"
)
_ELEMENTS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt"
    "|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu"
    "|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr"
    "|track|ul"
)
_LEAF = (
    r"(?i)(?P<heading>#{1,6}(?: |\Z))|(?P<fence>`{3,}(?=[^`]*\Z)|~{3,})|(?P<underline>(?:=+|-+) *\Z)"
    r"|<(?:(?P<raw>(?:script|pre|textarea|style)(?:[\s>]|\Z))|(?P<comment>!--)|(?P<order>\?)|(?P<data>!\[CDATA\[)"
    rf"|(?P<declaration>![a-z])|(?P<element>/?(?:{_ELEMENTS})(?:\s|/?>|\Z)))|(?P<tag>{_TAG}\s*\Z)"
)
#: What ends the HTML that a leaf of these kinds begins; all other HTML ends at a blank line.
_HTML_ENDS = {
    "raw": "(?i)</(?:script|pre|textarea|style)>",
    "comment": "-->",
    "order": r"\?>",
    "data": "]]>",
    "declaration": ">",
}
_RULE = r"(?:(?:\* *){3,}|(?:_ *){3,}|(?:- *){3,})\Z"
_ITEM = r"(?:[*+-]|(?P<number>[0-9]{1,9})[.)])(?:(?P<empty> *\Z)|(?P<pad> {1,4})(?=[^ ])| (?=    ))"
#: What stands between the head and the rows of a table, where it has more than one column.
_TABLE_RULE = r" *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *"
#: Quotes and items within each other that are told apart; what lies deeper is text.
_DEEPEST = 32
_ESCAPE = r"\\[!-/:-@\[-`{-~]|\\(?![!-/:-@\[-`{-~])"
_LABEL = rf"\[((?:[^\\\[\]]|{_ESCAPE}){{0,999}})\]"
_PART = rf"[^()\\\x00-\x20\x7f]|{_ESCAPE}"
_BARE = rf"(?:{_PART}|\((?:{_PART}|\((?:{_PART}|\((?:{_PART})*\))*\))*\))"
_ANGLED = rf"<(?:[^<>\\\n]|{_ESCAPE})*>"
_TITLE = "|".join(rf"{a}(?:[^{a}{b}\\]|{_ESCAPE})*{b}" for a, b in ('""', "''", (r"\(", r"\)")))
_DEFINITION = rf"(?!\[[ \n]*\]){_LABEL}:[ \n]*(?:{_ANGLED}|(?!<){_BARE}+)(?:[ \n]+(?:{_TITLE}))? *(?:\n|\Z)"


class _Blocks:
    """The paragraphs, headings, code and HTML of a Markdown text, read a line at a time.

    `found` holds the text of each, and whether marks are read in it; `labels` are
    those that links may refer to.
    """

    def __init__(self) -> None:
        self.found: list[tuple[bool, str]] = []
        self.labels: set[str] = set()
        self._inside: list[int] = []  # open quotes (0) and list items (their indent, negative before any content)
        self._kind = ""  # of the open block: text, code, fence or html
        self._end = ""  # what ends a fence or HTML
        self._lines: list[str] = []

    def read(self, line: str) -> None:
        """Take the next line, its tabs expanded."""
        at, depth = self._descend(line)
        opened = self._kind if depth == len(self._inside) else ""
        if opened and self._end:
            self._go_on(line[at:])
            return
        while True:
            rest = line[at:].lstrip(" ")
            indent = len(line) - at - len(rest)
            if not rest or indent > 3:
                break
            if self._begins(rest, depth, opened):
                return
            width = _container(rest, opened == "text") if depth < _DEEPEST else 0
            if not width:
                break
            self._cut(depth)
            self._inside.append(0 if rest[0] == ">" else indent + width if len(rest) > width else -indent - width)
            at, depth, opened = min(at + indent + width, len(line)), depth + 1, ""
        if rest and self._kind == "text" or opened == "code" and (indent > 3 or not rest):
            self._lines.append(rest)
        else:
            self._cut(depth)
            self._kind, self._lines = "code" if rest and indent > 3 else "text" if rest else "", [rest]

    def _descend(self, line: str) -> tuple[int, int]:
        """How much of a line belongs to the open quotes and items, and how many of them go on in it."""
        at = 0
        for depth, width in enumerate(self._inside):
            start = len(line) - len(line[at:].lstrip(" "))
            if width and start == len(line):
                if width < 0:
                    return at, depth
            elif width and start - at >= abs(width):
                self._inside[depth] = abs(width)
                at += abs(width)
            elif not width and start - at < 4 and line.startswith(">", start):
                at = start + 1 + line.startswith(" ", start + 1)
            else:
                return at, depth
        return at, len(self._inside)

    def _begins(self, rest: str, depth: int, opened: str) -> bool:
        """Take a line that is a heading or a rule, or that begins a fence or HTML."""
        leaf = re.match(_LEAF, rest)
        kind = leaf.lastgroup if leaf else None
        if kind == "underline" and opened == "text":
            before = len(self.found)
            self.close()
            if len(self.found) > before:
                return True
        if re.match(_RULE, rest):
            self._cut(depth)
            return True
        if not leaf or kind == "underline" or kind == "tag" and self._kind == "text":
            return False
        self._cut(depth)
        if kind == "heading":
            text = rest.lstrip("#").strip(" ")
            bare = text.rstrip("#")
            self.found.append((True, text if bare and not bare.endswith(" ") else bare))
        elif kind == "fence":
            self._kind, self._end = "fence", leaf[0]
        else:
            self._kind, self._end = "html", _HTML_ENDS.get(str(kind), r"\A *\Z")
            self._go_on(rest)
        return True

    def _go_on(self, text: str) -> None:
        """Take a line of a fence or of HTML."""
        bare = text.strip(" ")
        if self._kind == "html":
            self._lines.append(text)
            if re.search(self._end, text):
                self.close()
        elif not text.startswith("    ") and bare.startswith(self._end) and not bare.strip(self._end[0]):
            self.close()
        else:
            self._lines.append(text)

    def _cut(self, depth: int) -> None:
        """End the open block, and all quotes and items but the outer ones."""
        self.close()
        del self._inside[depth:]

    def close(self) -> None:
        """End the open block."""
        text = "\n".join(self._lines)
        if self._kind == "text":
            text = re.sub(" {3,}", "  ", text)
            at, definition = 0, re.compile(_DEFINITION)
            while one := definition.match(text, at):
                self.labels.add(_label(one[1]))
                at = one.end()
            text = text[at:]
        for part in _rows(text) if self._kind == "text" else [text] * bool(self._kind):
            if part.strip(" "):
                self.found.append((self._kind == "text", part))
        self._kind, self._end, self._lines = "", "", []


def _rows(text: str) -> list[str]:
    """A paragraph; or what stands before a table in it, and each of the table's rows."""
    lines = text.split("\n")
    for number, line in enumerate(lines[1:]):
        if "|" in line and re.fullmatch(_TABLE_RULE, line):
            return ["\n".join(lines[:number]), *lines[number:]]
    return [text]


def _container(rest: str, in_text: bool) -> int:
    """How wide the mark of a quote or a list item is that a line begins with, its blank included; 0 for none."""
    if rest[0] == ">":
        return 1 + rest.startswith(" ", 1)
    item = re.match(_ITEM, rest)
    if not item or in_text and (item["empty"] is not None or item["number"] and int(item["number"]) != 1):
        return 0
    return len(item[0].rstrip(" ")) + (len(item["pad"] or " "))


def _label(text: str) -> str:
    return " ".join(text.split()).casefold()


# --- marks in a paragraph or heading -----------------------------------------------------

_TOKEN = (
    r"[^\\`*_\[\]!<&]+|\\(?P<escaped>[!-/:-@\[-`{-~]|\n)|(?P<ticks>`+)|(?P<run>\*+|_+)|(?P<opening>!?\[)|(?P<closing>\])"
    r"|(?P<angle><)|(?P<entity>&(?:#[xX][0-9A-Fa-f]{1,6}|#[0-9]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});)|[\s\S]"
)
_LINK = rf"\([ \n]*(?:{_ANGLED}|(?!<){_BARE}*)(?:[ \n]+(?:{_TITLE}))?[ \n]*\)"
_ANGLE = (
    r"<(?P<auto>[A-Za-z][A-Za-z0-9.+-]{1,31}:[^<>\x00-\x20]*"
    r"|[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)>"
    rf"|<!-->|<!--->|<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<![A-Za-z][^>]*>|<!\[CDATA\[[\s\S]*?\]\]>|{_TAG}"
)
#: Characters after which an HTML tag within a paragraph is none.
_LONGEST_TAG = 500


class _Run:
    """A run of `*` or `_`; `left` of them are still to be read as text, which is piece number `place`."""

    __slots__ = ("mark", "length", "left", "place", "opens", "closes")

    def __init__(self, mark: str, length: int, place: int, opens: bool, closes: bool) -> None:
        self.mark, self.length, self.left, self.place = mark, length, length, place
        self.opens, self.closes = opens, closes

    def pairs(self, closer: _Run) -> bool:
        """Whether emphasis may begin here and end there."""
        if self.mark != closer.mark:
            return False
        odd = (self.length + closer.length) % 3 == 0 and closer.length % 3 != 0
        return not (odd and (self.closes or closer.opens))


class _Marks:
    """Reads the marks within one paragraph or heading."""

    def __init__(self, text: str, labels: set[str]) -> None:
        self._text, self._labels = text, labels
        self._pieces: list[str] = []
        self._runs: list[_Run] = []
        self._brackets: list[tuple[int, int, int]] = []  # open ones: the place after, its piece, the runs before
        self._dead = 0  # so many of them can begin no link, since there is one within
        self._ticks: dict[int, list[int]] = {}  # where runs of so many backticks begin, the first one last
        for run in reversed([*re.finditer("`+", text)]):
            self._ticks.setdefault(len(run[0]), []).append(run.start())

    def read(self) -> str:
        """The text without its marks."""
        text, at, token = self._text, 0, re.compile(_TOKEN)
        while found := token.match(text, at):
            kind, word, start, at = found.lastgroup, found[0], at, found.end()
            if kind == "escaped":
                word = word[1]
            elif kind == "ticks":
                word, at = self._code(word, at)
            elif kind == "run":
                self._runs.append(self._run(start, at))
            elif kind == "opening":
                self._brackets.append((at, len(self._pieces), len(self._runs)))
            elif kind == "closing" and self._brackets:
                word, at = self._link(at)
            elif kind == "angle" and (tag := re.compile(_ANGLE).match(text, start, start + _LONGEST_TAG)):
                word, at = tag["auto"] or tag[0], tag.end()
            elif kind == "entity":
                word = _entity(word)
            self._pieces.append(word)
        self._pair(0)
        return "".join(self._pieces)

    def _code(self, ticks: str, at: int) -> tuple[str, int]:
        """The code after backticks, and the place after it; the backticks themselves if none end it."""
        ends = self._ticks.get(len(ticks), [])
        while ends and ends[-1] < at:
            ends.pop()
        if not ends:
            return ticks, at
        code = self._text[at : ends[-1]].replace("\n", " ")
        if code.strip(" ") and code[0] == code[-1] == " ":
            code = code[1:-1]
        return code, ends.pop() + len(ticks)

    def _run(self, start: int, end: int) -> _Run:
        """What a run of `*` or `_` may do there, by what stands on both sides of it."""
        mark, before, after = self._text[start], self._text[start - 1 : start] or " ", self._text[end : end + 1] or " "
        odd_before, odd_after = (unicodedata.category(one)[0] in "PS" for one in (before, after))
        left = not after.isspace() and (not odd_after or odd_before or before.isspace())
        right = not before.isspace() and (not odd_before or odd_after or after.isspace())
        opens = left and (mark == "*" or not right or odd_before)
        closes = right and (mark == "*" or not left or odd_after)
        return _Run(mark, end - start, len(self._pieces), opens, closes)

    def _link(self, at: int) -> tuple[str, int]:
        """What a closing bracket is read as, and the place after it, or after the link or image that it ends."""
        begun, place, runs = self._brackets.pop()
        image = self._pieces[place] == "!["
        alive = image or len(self._brackets) >= self._dead
        self._dead = min(self._dead, len(self._brackets))
        end = self._target(begun, at) if alive else 0
        if not end:
            return "]", at
        self._pair(runs)
        # A picture stands between what is written before and after it.
        self._pieces[place] = " " if image else ""
        if not image:
            self._dead = len(self._brackets)
        return self._pieces[place], end

    def _target(self, begun: int, at: int) -> int:
        """The place after a link's target, 0 if a bracket is none's end."""
        if inline := re.compile(_LINK).match(self._text, at):
            return inline.end()
        if not self._labels:
            return 0
        label = re.compile(_LABEL)
        after = label.match(self._text, at)
        own = label.match(self._text, begun - 1)
        name = after[1] if after and after[1] else own[1] if own and own.end() == at else ""
        return (after.end() if after else at) if _label(name) in self._labels else 0

    def _pair(self, below: int) -> None:
        """Take away what is emphasis among the runs from number `below` on, by CommonMark's procedure."""
        openers: list[tuple[int, _Run]] = []
        floors: dict[tuple[str, bool, int], int] = {}  # below which a closer of a kind has looked in vain
        for number, closer in enumerate(self._runs[below:]):
            kind = closer.mark, closer.opens, closer.length % 3
            while closer.closes and closer.left:
                place = len(openers) - 1
                while place >= 0 and openers[place][0] >= floors.get(kind, 0) and not openers[place][1].pairs(closer):
                    place -= 1
                if place < 0 or openers[place][0] < floors.get(kind, 0):
                    floors[kind] = number
                    break
                opener = openers[place][1]
                taken = 2 if min(opener.left, closer.left) > 1 else 1
                opener.left, closer.left = opener.left - taken, closer.left - taken
                del openers[place + bool(opener.left) :]
            if closer.opens and closer.left:
                openers.append((number, closer))
        for run in self._runs[below:]:
            self._pieces[run.place] = run.mark * run.left
        del self._runs[below:]


def _entity(word: str) -> str:
    """The character that an entity such as `&amp;` stands for; the word itself where there is none of that name."""
    import html.entities  # a large table, seldom needed

    known = word[1] == "#" or word[1:] in html.entities.html5
    return (html.unescape(word) or "\ufffd") if known else word
