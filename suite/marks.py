"""Where two texts differ, where a pin stands in one, and which calls of two paths belong together.

Pure, and in nearly linear time whatever the texts are: an answer is somebody
else's text.  Never here: a regular expression that could backtrack without end.
"""

from __future__ import annotations

import json
import re
import unicodedata
import warnings
from bisect import bisect_left
from collections import Counter
from functools import lru_cache
from typing import Any, Hashable, Iterator, Mapping, Sequence

#: Start and end of a part of a text, in characters.
Span = tuple[int, int]

_WORD = re.compile(r"\w+|[^\w\s]")
#: What a regular expression is made of that cannot backtrack: characters, classes, `\b`, `.`; no group, no repeat.
_TAME = re.compile(r"(?:[^\\()|*+?{}]|\\[^0-9gkpPNuUx])*", re.DOTALL)
#: How deep blocks between anchors are looked into, and the largest that is compared item by item.
_DEPTH, _SMALL = 8, 300


def differences(one: str, other: str) -> tuple[list[Span], list[Span]]:
    """Say which words of each text the other does not have in that place."""
    words = [list(_WORD.finditer(text)) for text in (one, other)]
    pairs = matched([word[0] for word in words[0]], [word[0] for word in words[1]])
    kept: tuple[set[int], set[int]] = {a for a, _ in pairs}, {b for _, b in pairs}
    first, second = (
        _joined([word.span() for at, word in enumerate(side) if at not in same], text)
        for side, same, text in zip(words, kept, (one, other))
    )
    return first, second


def _joined(spans: Sequence[Span], text: str) -> list[Span]:
    """Join spans with nothing but space between them."""
    found: list[Span] = []
    for start, end in spans:
        if found and not text[found[-1][1] : start].strip():
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found


def matched(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pair equal items of two sequences without crossing, most of them at least.

    Small sequences are compared in full.  In larger ones what stands once on
    both sides is an anchor (patience sorting), and between anchors the same is
    done again.
    """
    return sorted(_matched(one, other, (0, len(one)), (0, len(other)), _DEPTH))


def _matched(
    one: Sequence[Hashable], other: Sequence[Hashable], here: Span, there: Span, depth: int
) -> Iterator[tuple[int, int]]:
    (low, high), (start, end) = here, there
    while low < high and start < end and one[low] == other[start]:
        yield low, start
        low, start = low + 1, start + 1
    while low < high and start < end and one[high - 1] == other[end - 1]:
        high, end = high - 1, end - 1
        yield high, end
    if low == high or start == end or not depth:
        return
    if (high - low) * (end - start) <= _SMALL:
        yield from _common(one, other, (low, high), (start, end))
        return
    anchors = _anchors(one, other, (low, high), (start, end))
    if not anchors:
        return
    yield from anchors
    before = (low - 1, start - 1)
    for a, b in [*anchors, (high, end)]:
        yield from _matched(one, other, (before[0] + 1, a), (before[1] + 1, b), depth - 1)
        before = a, b


def _anchors(one: Sequence[Hashable], other: Sequence[Hashable], here: Span, there: Span) -> list[tuple[int, int]]:
    """The longest run, in both orders, of items that stand once on each side."""
    counts, others = Counter(one[slice(*here)]), Counter(other[slice(*there)])
    place = {other[at]: at for at in range(*there) if others[other[at]] == 1 and counts.get(other[at]) == 1}
    ends: list[int] = []  # of the runs of each length, the smallest last place
    tails: list[int] = []  # and the item of `one` that it belongs to
    before: dict[int, int | None] = {}
    for at in range(*here):
        if one[at] in place:
            length = bisect_left(ends, place[one[at]])
            before[at] = tails[length - 1] if length else None
            ends[length : length + 1], tails[length : length + 1] = [place[one[at]]], [at]
    found, last = [], tails[-1] if tails else None
    while last is not None:
        found.append((last, place[one[last]]))
        last = before[last]
    return found[::-1]


def _common(one: Sequence[Hashable], other: Sequence[Hashable], here: Span, there: Span) -> Iterator[tuple[int, int]]:
    """The longest common subsequence of two small blocks."""
    (low, high), (start, end) = here, there
    best = [[0] * (end - start + 1) for _ in range(high - low + 1)]
    for a in range(high - low - 1, -1, -1):
        for b in range(end - start - 1, -1, -1):
            same = one[low + a] == other[start + b]
            best[a][b] = 1 + best[a + 1][b + 1] if same else max(best[a + 1][b], best[a][b + 1])
    a = b = 0
    while a < high - low and b < end - start:
        if one[low + a] == other[start + b]:
            yield low + a, start + b
            a, b = a + 1, b + 1
        elif best[a + 1][b] >= best[a][b + 1]:
            a += 1
        else:
            b += 1


def paths(
    recorded: Sequence[tuple[str, Any]], calls: Sequence[Mapping[str, Any]]
) -> list[tuple[int | None, int | None]]:
    """Put a run's calls beside the recorded ones, in the order of both: places in each, None where one stands alone.

    A call belongs to the recorded call that answered it (`recorded`), or else to
    the first that is the same.
    """
    first: dict[Hashable, int] = {}
    for at, (tool, args) in enumerate(recorded):
        first.setdefault(_call_key(tool, args), at)
    made = [_answering(call, first, len(recorded)) for call in calls]
    rows: list[tuple[int | None, int | None]] = []
    left = right = 0
    for a, b in matched(range(len(recorded)), made):
        rows += [(at, None) for at in range(left, a)] + [(None, at) for at in range(right, b)] + [(a, b)]
        left, right = a + 1, b + 1
    return rows + [(at, None) for at in range(left, len(recorded))] + [(None, at) for at in range(right, len(calls))]


def _answering(call: Mapping[str, Any], first: Mapping[Hashable, int], recorded: int) -> int:
    """The place of the recorded call behind a call, -1 for none."""
    if call.get("how") != "hit":
        return -1
    at = call.get("recorded")
    if isinstance(at, int) and 0 <= at < recorded:
        return at
    return first.get(_call_key(call.get("tool"), call.get("args")), -1)


def _call_key(tool: object, args: Any) -> Hashable:
    try:
        return tool, json.dumps(args, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return tool, id(args)


def pin_spans(pin: str, text: str) -> list[Span]:
    """Say where a pin stands in a text, as far as that is certain.

    A regular expression with a group or a repeat is not tried: it finds nothing
    here, whatever the run's verdict says of it.
    """
    if pin.startswith("re:"):
        pattern = _tame(pin[3:])
        return [found.span() for found in pattern.finditer(text) if found[0]] if pattern else []
    wanted = "".join(_folded(character) for character in unicodedata.normalize("NFC", pin))
    if not wanted:
        return []
    folded, places = text.casefold().replace("\\", "/"), None
    if len(folded) != len(text):  # some characters fold into several
        parts = [_folded(character) for character in text]
        folded, places = "".join(parts), [at for at, part in enumerate(parts) for _ in part]
    spans, at = [], folded.find(wanted)
    while at >= 0:
        last = at + len(wanted) - 1
        spans.append((places[at], places[last] + 1) if places else (at, last + 1))
        at = folded.find(wanted, last + 1)
    return spans


@lru_cache(maxsize=1_024)
def _tame(pattern: str) -> re.Pattern[str] | None:
    """A regular expression that cannot backtrack, or None."""
    if not _TAME.fullmatch(pattern):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever set the pin was told
        try:
            return re.compile(pattern, re.IGNORECASE)
        except (re.error, OverflowError):
            return None


def _folded(character: str) -> str:
    return character.casefold().replace("\\", "/")
