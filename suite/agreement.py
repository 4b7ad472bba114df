"""Whether a file at the end of a turn still is what the turn's tools showed of it.

A snapshot is read when a turn ends.  Where the turn, or anybody else, changed a
file after it was shown, a replay that reads it in other words would be told the
end before the beginning.  Pure: calls and texts in, line numbers out.

Where a tool's way to print is all that differs (numbers before the lines, cut
lines, line ends, blanks at the end, masks, escape sequences), nothing differs.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ..cassette_store import Call
from ..snapshot import KEPT_TOOLS, Workspace, leading_json, split_command, terminal_verdict

__all__ = ["Line", "Shown", "disagrees", "lines_shown"]

#: What stands in a result for something that is not shown.
_MASK = r"«redacted[^»\n]*»|<redacted[^>\n]*>|\*{3,}|\.{3}|…|\[REDACTED[^\]\n]*\]"
#: The beginning of a mask at which a line is cut.
_CUT_MASK = r"(?:«[^»]*|<redacted[^>]*|\*+|\.+|\[REDACTED[^\]]*)\Z"
#: What a terminal passes on otherwise, or swallows.
_UNSEEN = r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-?]*[ -/]*[@-~]?|\x1b.?|[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff]"
_CUT = "... [truncated]"
#: Characters of a line that a search shows.
_ROW = 500
#: Lines of a search's result that are neither paths nor rows.
_MATCH_ROW = r"  (\d+): ?(.*)"
_PAGE_ROW = r"(\d+)\|(.*)"
#: Characters of an output beyond which Hermes may have cut it.
_OUTPUT = 40_000
_PATCHED = r"(?m)^\*\*\*\s*(?:Add|Update|Delete|Move)\s+(?:File:|to:)\s*(.+?)(?:\s+->\s+(.+?))?\s*$"
#: Endings of files that `read_file` shows in another form.
_CONVERTED = (".ipynb", ".docx", ".xlsx", ".pdf", ".db", ".sqlite", ".sqlite3")


class Line(NamedTuple):
    """A line as a tool showed it; `number` counts from 1, `row` says that it is of a search, which cuts long lines."""

    number: int
    text: str
    row: bool = False


class _Seen(NamedTuple):
    """What one result told of one file."""

    path: str  #: as the tool named it
    lines: Sequence[Line] = ()
    size: int | None = None  #: of the whole file, in bytes
    whole: str | None = None  #: all of its text, but for blanks around it


def disagrees(calls: Iterable[Call], path: str, text: str, workspace: Workspace, size: int | None = None) -> int | None:
    """Return a line of a text that a call of a turn showed otherwise; 0 where only the size was; None if none was.

    :param path: the file, in any spelling that leads to it.
    :param text: the file's text at the end, not redacted.
    :param size: its size in bytes, if that is to be compared.
    """
    return Shown(list(calls), workspace).disagrees(path, text, size)


class Shown:
    """What the calls of one turn showed of files, and which files they wrote.

    :param calls: all calls of the turn in their order, those without a result with "".
    """

    def __init__(self, calls: Sequence[Call], workspace: Workspace) -> None:
        self._workspace = workspace
        self._seen: dict[str, list[_Seen]] = {}
        self.written: dict[str, str] = {}  #: paths below the workspace, by what its `fold` makes of them
        self.wrote = False  #: a tool ran that may write
        moved = False  # relative paths may start from another folder
        for call in calls:
            self.wrote |= not _only_reads(call, workspace.windows)
            for name in _written(call):
                inside = workspace.relative(name)
                if inside:
                    self.written[workspace.fold(inside)] = inside
            for seen in _shown(call):
                if not (moved and _is_relative(seen.path)):
                    inside = workspace.relative(seen.path)
                    if inside:
                        self._seen.setdefault(workspace.fold(inside), []).append(seen)
            moved = moved or _moves(call)

    def knows(self, path: str) -> bool:
        """Whether a call showed something of a file, or wrote it."""
        key = self._workspace.fold(self._workspace.relative(path) or "")
        return key in self._seen or key in self.written

    def shows_all(self, path: str, text: str) -> bool:
        """Whether calls showed every line of a text, none of them cut or masked."""
        key = self._workspace.fold(self._workspace.relative(path) or "")
        lines, seen = text.removeprefix("\ufeff").split("\n"), self._seen.get(key, ())
        if key in self.written or not any(one.size is not None or one.whole is not None for one in seen):
            return False  # who saw rows alone does not know that there are no others
        if any(one.whole is not None and one.whole.strip() == text.strip() for one in seen):
            return True
        told = {
            line.number for one in seen for line in one.lines if lines[line.number - 1 : line.number] == [line.text]
        }
        return told >= set(range(1, len(lines) + (lines[-1] != "")))

    def disagrees(self, path: str, text: str, size: int | None = None) -> int | None:
        """Return a line that was shown otherwise; 0 where only the size was, or the file was written; or None."""
        key = self._workspace.fold(self._workspace.relative(path) or "")
        if key in self.written:
            return 0
        found = self._seen.get(key)
        if not found:
            return None
        lines = text.removeprefix("\ufeff").split("\n")
        wrong = next((number for seen in found for number in _wrong_lines(seen, lines)), None)
        if wrong is not None:
            return wrong
        told = (seen.size for seen in found if seen.size is not None)
        return 0 if size is not None and any(one != size for one in told) else None


def _wrong_lines(seen: _Seen, lines: Sequence[str]) -> Iterator[int]:
    for line in seen.lines:
        if not 0 < line.number <= len(lines) or not _fits(line, lines[line.number - 1]):
            yield line.number
    if seen.whole is not None:
        yield from _wrong_in_whole(seen.whole.strip().split("\n"), "\n".join(lines).strip().split("\n"))


def _wrong_in_whole(printed: Sequence[str], kept: Sequence[str]) -> Iterator[int]:
    """The lines that were printed otherwise, of a whole text without the blanks around it."""
    masked = [number for number, line in enumerate(printed) if re.search(_MASK, line)]
    if len(printed) == len(kept) or not masked:
        yield from (at for at, pair in enumerate(zip(printed, kept), 1) if not _fits(Line(at, pair[0]), pair[1]))
        yield from [min(len(printed), len(kept)) + 1] * (len(printed) != len(kept))
        return
    head, tail = masked[0], len(printed) - masked[-1] - 1  # a mask may stand for several lines
    for at in (*range(head), *range(-tail, 0)):
        number = at if at >= 0 else len(kept) + at
        if not 0 <= number < len(kept) or not _fits(Line(number + 1, printed[at]), kept[number]):
            yield number + 1


def _fits(line: Line, kept: str) -> bool:
    """Whether a line of a file may be shown as this."""
    shown, cut = line.text, line.row and len(kept) >= _ROW
    if shown == kept:
        return True
    if shown.endswith(_CUT):
        shown, cut = shown[: -len(_CUT)], True
    shown, kept = _plain(shown), _plain(kept)
    if shown == kept or cut and kept.startswith(shown):
        return True
    if cut:
        shown = re.sub(_CUT_MASK, "", shown)
    pieces = re.split(_MASK, shown)
    if len(pieces) == 1 or not kept.startswith(pieces[0]):
        return cut and len(pieces) == 1 and kept.startswith(shown)
    at = len(pieces[0])
    for piece in pieces[1:]:
        found = kept.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return cut or kept.endswith(pieces[-1])


def _plain(line: str) -> str:
    return re.sub(_UNSEEN, "", line).replace("\ufffd", "").strip()


def lines_shown(call: Call) -> dict[str, list[Line]]:
    """Return which lines of which files a call's result shows, by the names that the result has for them."""
    found: dict[str, list[Line]] = {}
    for seen in _shown(call):
        found.setdefault(seen.path, []).extend(seen.lines)
    return found


def _shown(call: Call) -> Iterator[_Seen]:
    if call.tool not in ("read_file", "search_files", "terminal") or not isinstance(call.args, Mapping):
        return
    value = leading_json(call.result) if isinstance(call.result, str) else call.result
    if isinstance(value, Mapping):
        yield from {"read_file": _in_page, "search_files": _in_rows, "terminal": _in_output}[call.tool](call, value)


def _in_page(call: Call, value: Mapping[str, Any]) -> Iterator[_Seen]:
    path, content, size = call.args.get("path"), value.get("content"), value.get("file_size")
    if not isinstance(path, str) or not isinstance(content, str) or value.get("error"):
        return
    converted = value.get("extracted_document") or str(value.get("hint", "")).startswith("Transcoded")
    if converted or path.lower().endswith(_CONVERTED):
        return
    found = [re.fullmatch(_PAGE_ROW, row, re.DOTALL) for row in content.split("\n")]
    lines = [Line(int(row[1]), row[2]) for row in found if row and len(row[1]) < 10]
    if lines and not lines[-1].text:  # some versions open one more line than they show
        lines.pop()
    yield _Seen(path, lines, size if type(size) is int and size > 0 else None)


def _in_rows(_: Call, value: Mapping[str, Any]) -> Iterator[_Seen]:
    for match in value["matches"] if isinstance(value.get("matches"), list) else ():
        if isinstance(match, Mapping):
            path, number, text = match.get("path"), match.get("line"), match.get("content")
            if isinstance(path, str) and type(number) is int and isinstance(text, str):
                yield _Seen(path, [Line(number, text, True)])
    text, path = value.get("matches_text"), ""
    for row in text.split("\n") if isinstance(text, str) else ():
        found = re.fullmatch(_MATCH_ROW, row, re.DOTALL)
        if found is None:
            path = row
        elif path and len(found[1]) < 10:
            yield _Seen(path, [Line(int(found[1]), found[2], True)])


def _in_output(call: Call, value: Mapping[str, Any]) -> Iterator[_Seen]:
    """A `cat` of one file that went well; what other commands print is not certain enough."""
    command, output = call.args.get("command"), value.get("output")
    if not isinstance(command, str) or not isinstance(output, str) or not 0 < len(output) < _OUTPUT:
        return
    if value.get("exit_code") != 0 or value.get("error") or call.args.get("workdir") or terminal_verdict(call.args):
        return
    words = split_command(command, False)
    if words and len(words) == 2 and words[0].raw == "cat" and not words[1].live:
        name = words[1].text
        if not name.startswith("-") and not name.lower().endswith(_CONVERTED):
            yield _Seen(name, whole=output)


def _only_reads(call: Call, windows: bool) -> bool:
    return call.tool in KEPT_TOOLS or call.tool == "terminal" and terminal_verdict(call.args, windows) is None


def _moves(call: Call) -> bool:
    """Whether relative paths may mean something else after a call."""
    if call.tool != "terminal" or not isinstance(call.args, Mapping):
        return False
    return bool(call.args.get("workdir")) or bool(re.search(r"\b(?:cd|pushd|popd)\b", str(call.args.get("command"))))


def _is_relative(path: str) -> bool:
    return not re.match(r"[/\\~]|[A-Za-z]:", path)


def _written(call: Call) -> Iterator[str]:
    """The files that a call was to write, whether it could or not."""
    if call.tool not in ("write_file", "patch") or not isinstance(call.args, Mapping):
        return
    for name in ("path", "file_path"):
        if isinstance(call.args.get(name), str):
            yield call.args[name]
    if call.tool == "patch" and isinstance(call.args.get("patch"), str):
        for found in re.finditer(_PATCHED, call.args["patch"]):
            yield from filter(None, found.groups())
