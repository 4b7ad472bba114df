"""What redaction hides: where it is noted when a file is kept, and what a replay may say of such a file.

The live tool searches a file as it is and masks what it shows; a replay has
the masked text.  A recording notes where something is hidden and what kind of
thing it is, never its letters or its length; a question whose answer depends
on it is left open.
"""

from __future__ import annotations

import math
import os.path
import re
import string
from itertools import accumulate
from typing import Callable, Iterable, Sequence

from ..cassette_store import SnapshotFile
from ..patterns import Matcher, Search
from ..snapshot import Mask
from ..synth_search import READ_BUDGET

__all__ = ["MASK_SHAPES", "Masks", "line_number", "masked_values", "note_masks", "read_masks", "without_keys"]

# --- when a file is kept ----------------------------------------------------------

#: What Hermes puts for a secret, or for the middle of one.
MASK_SHAPES = r"«redacted[^»\n]*»|\*{3,}|\.\.\.|\[REDACTED PRIVATE KEY\]"
_LABEL = "«redacted:(.+)…»"
_KEY_BLOCK = r"-----BEGIN[A-Z ]*PRIVATE KEY-----[\s\S]*?-----END[A-Z ]*PRIVATE KEY-----"
_KEY_MASK = "[REDACTED PRIVATE KEY]"
#: A private key of which each line is known to be of few letters.
_PLAIN_KEY = r"-----BEGIN[A-Z ]*PRIVATE KEY-----\n(?:[A-Za-z0-9+/=]*\n)*-----END[A-Z ]*PRIVATE KEY-----"
_ALNUM = "".join(map(chr, (*range(48, 58), *range(65, 91), *range(97, 123))))
_VISIBLE = "".join(map(chr, range(33, 127)))
#: Vendors' prefixes behind which only letters and digits follow; elsewhere also `_`, `.`, `=` and `-`.
_ALNUM_TOKENS = frozenset(
    "ghp_ gho_ ghu_ ghs_ ghr_ AKIA pplx- fc- sk_live_ sk_test_ rk_live_ hf_ r8_ npm_ dop_v1_ doo_v1_ tvly- exa_ gsk_"
    " syt_ retaindb_ hsk- mem0_ brv_ xai- ntn_ fw- fw_ fpk_".split()
)
#: What may stand in place of the other kinds of mask: of which letters, and how many at least.
_MASKED = {
    "digits": (_ALNUM[:10], 1),
    "inner": (_VISIBLE, 8),
    "word": (_VISIBLE, 1),
    "text": (_VISIBLE + " \t", 0),
    "nothing": ("", 0),
}
#: Words, in lower case, behind which Hermes masks what follows, on the next line too.
_HEADERS = ("authorization", "api-key", "apikey", "-token")
#: Lines that Hermes may mask alone and leave in a file, or the other way round.
_HEADER_LINE = r"(?i)authorization|api-?key|-token|^\s*[a-z_][\w.-]*=[^&\s]*&\S*\s*$"
#: Lines with masks in one file beyond which no place is kept.
_MASKED_LINES = 500
#: The longest line of which a search shows all, in characters.
_SHOWN_LINE = 500


def note_masks(text: str, kept: str, redact: Callable[[str], str | None]) -> tuple[Mask, ...]:
    """Return where a redacted text hides something, and what kind of thing; kinds as in `masked_values`.

    :param text: the file before redaction.
    :param kept: the file after redaction.
    :param redact: redacts what the live tools show, as they do.
    """
    lower = kept.lower()
    headed = any(word in lower for word in _HEADERS)
    if text == kept and not headed and "&" not in kept:
        return ()
    shortened, keys = without_keys(text)
    before, after = shortened.split("\n"), kept.split("\n")
    changed = {number for number, (old, new) in enumerate(zip(before, after)) if old != new or number in keys}
    odd = re.compile(_HEADER_LINE)
    changed.update(number for number, line in enumerate(after) if (headed or "&" in line) and odd.search(line))
    nowhere = ((0, len(kept), "file"),)
    if len(before) != len(after) or len(changed) > _MASKED_LINES:
        return nowhere
    starts = list(accumulate((len(line) + 1 for line in after), initial=0))
    found: list[tuple[Mask, str]] = []
    for number in sorted(changed):
        old, new, here = before[number], after[number], starts[number]
        flags = _shown_otherwise(old, new, redact)
        pair: tuple[Mask, str] | None = ((0, 0, "nothing" + flags), "")
        if number in keys:
            at = new.find(_KEY_MASK)
            pair = ((at, at + len(_KEY_MASK), "lines"), "") if old == new and keys[number] else None
        elif old != new:
            pair = _line_mask(old, new, flags)
        elif not flags:
            continue
        if pair is None:
            return nowhere
        (start, end, kind), value = pair
        found.append(((here + start, here + end, kind), value))
    return _said_elsewhere(kept, found)


def _shown_otherwise(old: str, new: str, redact: Callable[[str], str | None]) -> str:
    """Say where the live tools show a line in another way than the redacted file has it: alone, and on a page."""
    alone, shown = (old[:_SHOWN_LINE], new[:_SHOWN_LINE]) if old == new else (old, new)
    apart = len(alone) > _SHOWN_LINE or redact(alone) != shown
    on_page = redact(f"1|{old}\n2|x") == f"1|{new}\n2|x"
    return (" apart" if apart else "") + ("" if on_page else " edge")


def masked_values(kind: str) -> tuple[str, str, int]:
    """Return what may stand at a mask within a line: a beginning, of which letters it goes on, and how many at least.

    The first word of a kind tells it: "token" and its prefix, the "digits" of
    a number, the "inner" part of a long secret, a "word" without a blank, any
    "text" of one line.  "lines" stands for those of a plain private key, "file" for
    a file in which no place is sure, "nothing" for a line that only the live
    tools mask.  After it, "here" says that all its words are also said
    elsewhere in the kept text, "apart" that the line alone would be shown in
    another way, "edge" that it would be on a page of the file.
    """
    word, _, rest = kind.partition(" ")
    if word != "token":
        return ("", *_MASKED.get(word, _MASKED["text"]))
    label = rest.split(" ")[0]
    return label, _ALNUM if label in _ALNUM_TOKENS else _ALNUM + "_.=-", 8


def without_keys(text: str) -> tuple[str, dict[int, bool]]:
    """Put the mask for each private key, and return the numbers of its lines, with whether the key is a plain one."""
    pieces: list[str] = []
    numbers: dict[int, bool] = {}
    end = number = 0
    for block in re.finditer(_KEY_BLOCK, text) if "PRIVATE KEY" in text else ():
        pieces += [text[end : block.start()], _KEY_MASK]
        number += text.count("\n", end, block.start())
        numbers[number] = number not in numbers and re.fullmatch(_PLAIN_KEY, block[0]) is not None
        end = block.end()
    return "".join(pieces) + text[end:], numbers


def line_number(text: str, index: int) -> int:
    """The number, from 1, of a line in a file; `index` counts from 0 in the redacted text, where a key is one line."""
    end = begun = hidden = 0
    for block in re.finditer(_KEY_BLOCK, text) if "PRIVATE KEY" in text else ():
        begun += text.count("\n", end, block.start())
        if begun >= index:
            break
        end = block.end()
        hidden += block[0].count("\n")
    return index + hidden + 1


def _line_mask(old: str, new: str, flags: str) -> tuple[Mask, str] | None:
    """Return the mask of one line with what it hides, the whole line where there are several; None for anything else."""
    head = len(os.path.commonprefix([old, new]))
    tail = len(os.path.commonprefix([old[head:][::-1], new[head:][::-1]]))
    for shape in re.finditer(MASK_SHAPES, new):
        if shape.start() <= head and len(new) - tail <= shape.end():
            value = old[shape.start() : len(old) - len(new) + shape.end()]
            kind = _mask_kind(shape, value)
            return ((shape.start(), shape.end(), kind + flags), value) if kind else None
    return ((0, len(new), "text" + flags), old) if set(old) <= set(_MASKED["text"][0]) else None


def _mask_kind(shape: re.Match[str], value: str) -> str:
    """Name the kind of a mask that hides `value`, "" when it may be anything."""
    label = re.fullmatch(_LABEL, shape[0])
    number = shape[0] == "****" and re.search(r"\+\d{2,3}\Z", shape.string[: shape.start()])
    kind = f"token {label[1]}" if label else "inner" if shape[0] == "..." else "digits" if number else "word"
    start, letters, least = masked_values(kind)
    rest = value[len(start) :]
    if value.startswith(start) and len(rest) >= least and set(rest) <= set(letters):
        return kind
    return "text" if set(value) <= set(_MASKED["text"][0]) else ""


def _said_elsewhere(kept: str, found: list[tuple[Mask, str]]) -> tuple[Mask, ...]:
    """Mark the masks of which the kept text says every word in the clear."""
    ends = [0, *(end for (_, end, _), _ in found)]
    clear = " ".join(kept[end:start] for end, ((start, _, _), _) in zip(ends, found)) + " " + kept[ends[-1] :]
    words = set(re.findall(r"\w+", clear))
    masks = []
    for (start, end, kind), value in found:
        around = kept[max(start - 1, 0) : start] + kept[end : end + 1]
        here = value and not re.search(r"\w", around) and words.issuperset(re.findall(r"\w+", value))
        masks.append((start, end, kind + " here" if here else kind))
    return tuple(masks)


# --- in a replay ------------------------------------------------------------------


def read_masks(file: SnapshotFile) -> Masks | None:
    """Return what redaction hides in a file, None when that is nothing."""
    masks = _seen_masks(file.text) if file.masks is None else file.masks
    return Masks(file.text, masks) if masks else None


class Masks:
    """What redaction hides in one file, and which questions that leaves open."""

    def __init__(self, text: str, masks: Sequence[Mask]) -> None:
        ends = [0, *(end for _, end, _ in masks)]
        known = [text[end:start] for end, (start, _, _) in zip(ends, masks)] + [text[ends[-1] :]]
        kinds = [kind for _, _, kind in masks]
        self._clear = "\n".join(known)
        self._here = all(" here" in kind or kind.startswith("nothing") for kind in kinds)
        self._nowhere = "file" in kinds
        #: maps the number of a masked line to its known and its unknown pieces
        self._pieces: dict[int, list[str | tuple[str, int]]] = {}
        #: masked lines that a search, and those that a reading, shows in another way
        self._apart: set[int] = set()
        self._keys: dict[int, str] = {}  # the first line of a key to what follows its last
        self._edges: set[int] = set()
        #: the first line from which on no number is sure
        self._loose = 0 if self._nowhere else math.inf
        number = 0
        for before, kind, after in zip(known, kinds, known[1:]):
            number += before.count("\n")
            start, letters, least = masked_values(kind)
            pieces = self._pieces.setdefault(number, [before.rpartition("\n")[2]])
            pieces += [start, (letters, least), after.partition("\n")[0]]
            if kind == "lines":
                self._keys[number] = after.partition("\n")[0]
            if " apart" in kind:
                self._apart.add(number)
            if " edge" in kind:
                self._edges.add(number)
            if kind == "lines":
                self._loose = min(self._loose, number)

    @property
    def countable(self) -> bool:
        """Whether the file has as many lines as its text here."""
        return self._loose == math.inf

    def found(self, search: Search, text: str, bom: bool) -> tuple[list[int], bool]:
        """Return the lines that match whatever is masked, and whether no other line may."""
        ruled_out = self._ruled_out(search.matcher)
        if self._nowhere or search.matcher.multiline:
            return [], ruled_out and not search.lines(text, 1)
        hits = {hit for hit in search.lines(text, None) if hit not in self._pieces}
        certain = True
        for number, pieces in () if ruled_out else self._pieces.items():
            first = pieces[0] if bom or number else str(pieces[0]).lstrip("\ufeff")
            if number in self._keys:
                parts = _key_lines(str(first), self._keys[number])
                certain = certain and not any(search.settles(part) is not False for part in parts)
                continue
            matches = search.settles([first, *pieces[1:]])
            certain = certain and matches is not None
            if matches:
                hits.add(number)
        return sorted(hits), certain

    def _ruled_out(self, matcher: Matcher) -> bool:
        """Say whether no masked line can match: what is masked says only words that the file says elsewhere."""
        if not self._here or not matcher.needles:
            return False
        clear = self._clear.lower().replace("\u017f", "s") if matcher.folded else self._clear
        return all(any(part not in clear for part in re.findall(r"\w+", needle)) for needle in matcher.needles)

    def touch(self, lines: Iterable[int]) -> bool:
        """Say whether something is masked in one of these lines."""
        return any(line in self._pieces for line in lines)

    def stands(self, line: int) -> bool:
        """Say whether a line has the number that it has here."""
        return line < self._loose

    def shown_alike(self, lines: range) -> bool:
        """Say whether these lines stand where they do here, and a search shows them as they are here."""
        return lines.stop <= self._loose and not any(line in lines for line in self._apart)

    def read_alike(self, lines: range, length: int) -> bool:
        """Say whether a reading shows these lines as they are here.

        :param length: of what is shown in all; much of it is cut before it is masked.
        """
        if self._loose < math.inf or any(line in lines for line in self._apart | self._edges):
            return False
        return length < READ_BUDGET // 2 or not any(line in lines for line in self._pieces)


def _key_lines(before: str, after: str) -> list[list[str | tuple[str, int]]]:
    """Return the first line of a private key, those within, and the last."""
    title = (string.ascii_uppercase + " ", 0)
    within = (string.ascii_letters + string.digits + "+/=", 0)
    mark = "PRIVATE KEY-----"
    return [[before + "-----BEGIN", title, mark], [within], ["-----END", title, mark + after]]


def _seen_masks(text: str) -> list[Mask]:
    """Return the masks that a text shows, where the recording did not note them."""
    masks = []
    for shape in re.finditer("«redacted(?::([^»\n]+)…)?[^»\n]*»|\\[REDACTED PRIVATE KEY\\]", text):
        kind = "file" if shape[0][0] == "[" else f"token {shape[1]}" if shape[1] else "text"
        masks.append((shape.start(), shape.end(), kind))
    return masks
