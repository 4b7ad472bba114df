"""Patterns are read as ripgrep and GNU grep read them; where the tools are installed, they are asked."""

from __future__ import annotations

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable

from tests.support import REPO, load_plugin

load_plugin()
from session_cassettes.patterns import (  # noqa: E402
    Matcher,
    PatternError,
    Search,
    TooSlow,
    Untranslatable,
    compile_pattern,
)

#: What a ripgrep that can do PCRE2 says more about a pattern that needs it.
PCRE2_REMARK = "\nConsider enabling PCRE2"


def matching_lines(matcher: Matcher, text: str, limit: int | None = None, seconds: float = 10.0) -> list[int]:
    """The numbers, from 0, of the lines that the live tool would print, of a text on its own."""
    return Search(matcher, seconds).lines(text, limit)


TEXT = (
    "def foo(self):\n"  # 1
    "    return foo|bar\n"  # 2
    "\n"  # 3
    "TODO: café 2024-01-02\n"  # 4
    "a+b a{2} {x} aa\n"  # 5
    "[a] (b) c* ^d$ d\n"  # 6
    "tab\there \\d 7\n"  # 7
    "crlf line\r\n"  # 8
    "Kelvin K ſ Straße\n"  # 9
    "naïve x² a\u0301\n"  # 10
    "user@example.com\n"  # 11
    "last"  # 12
)

ERROR, MISS = "error", "miss"
EVERY = [*range(1, 13)]

# pattern: rg 13, rg 14 and newer, grep, grep -E. Numbers are those of the lines in TEXT that match.
DIALECTS: dict[str, tuple[object, object, object, object]] = {
    r"foo|bar": ([1, 2], [1, 2], [2], [1, 2]),
    r"foo\|bar": ([2], [2], [1, 2], [2]),
    r"\d": ([4, 5, 7], [4, 5, 7], [1, 6, 7], [1, 6, 7]),
    r"\\d": ([7], [7], [7], [7]),
    r"def foo()": ([1], [1], [], [1]),
    r"\(self\)": ([1], [1], [1], [1]),
    r"a{2}": ([5], [5], [5], [5]),
    r"a\{2\}": ([5], [5], [5], [5]),
    r"{x}": (ERROR, ERROR, [5], [5]),
    r"\{x\}": ([5], [5], MISS, [5]),
    r"a+b": ([7], [7], [5], [7]),
    r"a\+b": ([5], [5], [7], [5]),
    r"*": (ERROR, ERROR, [6], MISS),
    r"c*$": (EVERY, EVERY, EVERY, EVERY),
    r"^*d": ([1, 6, 7], [1, 6, 7], [], MISS),
    r"\^d\$": ([6], [6], [6], [6]),
    r"^d$": ([], [], [], []),
    r"a^d": ([], [], [], []),
    r" ^d": ([], [], [6], []),
    r"\bfoo\b": ([1, 2], [1, 2], [1, 2], [1, 2]),
    r"\<foo\>": (ERROR, [1, 2], [1, 2], [1, 2]),
    r"\`def": (ERROR, [], [1], [1]),
    r"\Adef": ([1], [1], [], []),
    r"last\z": ([12], [12], [], []),
    r"last\Z": (ERROR, ERROR, [], []),
    r"(?i)DEF": ([1], [1], [], []),
    r"(?=foo)": (ERROR, ERROR, [], []),
    r"(.)\1": (ERROR, ERROR, MISS, MISS),
    r"(?P<n>foo)": ([1, 2], [1, 2], [], []),
    r"(?<n>foo)": (ERROR, [1, 2], [], []),
    r"[[:digit:]]{4}": ([4], [4], [], [4]),
    r"[\d]{4}": ([4], [4], [], []),
    r"[a\]": (ERROR, ERROR, [2, 4, 5, 6, 7, 9, 10, 11, 12], [2, 4, 5, 6, 7, 9, 10, 11, 12]),
    r"[]a] (": (ERROR, ERROR, [6], ERROR),
    r"[a-f&&[^b-e]]b": ([7], [7], [], []),
    r"line$": ([], [], [], []),
    r"line\r$": ([8], [8], [], []),
    r"\w²": ([10], [10], MISS, MISS),
    r"a\W": ([5, 6], [5, 6], MISS, MISS),
    r"\p{Lu}\w+ K": ([9], [9], [], []),
    r"(?i)k ſ": ([9], [9], [], []),
    r"(?i)STRASSE": ([], [], [], []),
    r"\/|\"": (ERROR, [], [], []),
    r"foo)": (ERROR, ERROR, [], MISS),
    r"foo(": (ERROR, ERROR, [1], ERROR),
    r"a{,2}b": (ERROR, ERROR, [], [2, 5, 6, 7]),
    r"foo\n": (ERROR, ERROR, [], []),
    r"[^\n]foo": ([1, 2], [1, 2], [1, 2], [1, 2]),
}

# pattern: what rg 13 says, then rg 14 and newer.
RG_ERRORS = {
    "(unclosed": (
        "regex parse error:\n    (unclosed\n    ^\nerror: unclosed group",
        "rg: regex parse error:\n    (?:(unclosed)\n    ^\nerror: unclosed group",
    ),
    "a[b": (
        "regex parse error:\n    a[b\n     ^\nerror: unclosed character class",
        "rg: regex parse error:\n    (?:a[b)\n        ^\nerror: unclosed character class",
    ),
    "*a": (
        "regex parse error:\n    *a\n    ^\nerror: repetition operator missing expression",
        "rg: regex parse error:\n    (?:*a)\n       ^\nerror: repetition operator missing expression",
    ),
    "a{": (
        "regex parse error:\n    a{\n     ^\nerror: unclosed counted repetition",
        "rg: regex parse error:\n    (?:a{)\n         ^\nerror: repetition quantifier expects a valid decimal",
    ),
    "é\\q": (
        "regex parse error:\n    é\\q\n     ^^\nerror: unrecognized escape sequence",
        "rg: regex parse error:\n    (?:é\\q)\n        ^^\nerror: unrecognized escape sequence",
    ),
    "[z-a]": (
        "regex parse error:\n    [z-a]\n     ^^^\nerror: invalid character class range, the start must be <= the end",
        "rg: regex parse error:\n    (?:[z-a])\n        ^^^\nerror: invalid character class range, "
        "the start must be <= the end",
    ),
    "(?P<n>a)(?P<n>b)": (
        "regex parse error:\n    (?P<n>a)(?P<n>b)\n        ^       ^\nerror: duplicate capture group name",
        "rg: regex parse error:\n    (?:(?P<n>a)(?P<n>b))\n           ^       ^\nerror: duplicate capture group name",
    ),
    "(?=a)": (
        "regex parse error:\n    (?=a)\n    ^^^\nerror: look-around, including look-ahead and look-behind, is "
        "not supported\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\n"
        "and look-around.",
        "rg: regex parse error:\n    (?:(?=a))\n       ^^^\nerror: look-around, including look-ahead and "
        "look-behind, is not supported\nConsider enabling PCRE2 with the --pcre2 flag, which can handle "
        "backreferences\nand look-around.",
    ),
    "a\\nb": (
        "the literal '\"\\n\"' is not allowed in a regex\nConsider enabling multiline mode with the "
        "--multiline flag (or -U for short).\nWhen multiline mode is enabled, new line characters can be matched.",
        'rg: the literal "\\n" is not allowed in a regex\nConsider enabling multiline mode with the '
        "--multiline flag (or -U for short).\nWhen multiline mode is enabled, new line characters can be matched.",
    ),
}

REALISTIC = r"""
def \w+\(
class \w+\(.*Error\)
import (os|sys|re)
from .* import
TODO|FIXME|XXX
(?i)todo
^\s*def test_
\bhandler\b
self\.\w+\s*=
logger\.(info|debug|warning|error)\(
[A-Z][A-Z_]+\s*=
https?://[^\s"']+
\d{4}-\d{2}-\d{2}
v?\d+\.\d+\.\d+
const\s+\w+\s*=\s*\(.*\)\s*=>
async def .*\bawait\b
#\s*type:\s*ignore
\.get\(["']\w+["']
@(app|router)\.(get|post)\(
os\.environ(\.get)?\(?
^(export )?(default )?function
fn \w+<.*>\(
\$\{[^}]+\}
<div[^>]*class="[^"]*"
password|secret|token|api[_-]?key
if __name__ == .__main__.
raise \w*Error
AUTH_PORT
config\[['"]\w+['"]\]
print\(.*\)$
^\s*$
^$
\s+$
.*
\w+@\w+\.\w+
\b[A-Z]{2,}\b
(get|set)_[a-z]+
\{\{.*?\}\}
def handler(
foo[
{foo}
"key": \{
interface\{\}
func (s \*Server) \w+
*args
\$HOME
\<word\>
\"key\"
it\'s
#include <.*>
=\s*\[
\t\w+
(?P<name>\w+)=(?P<value>\w+)
(?<name>\w+)=
[[:upper:]]{3}
\p{Lu}\w+
[一-龥]+
café
(a|b|[cd])*(e+f?)+
x{2,3}y{0,1}
(?x) a \s b
(?s)foo.*bar
foo[^\n]*bar
[^a-z\s]+[\w.-]*
""".strip("\n").split("\n")

LINES = (
    "",
    "a",
    "b",
    "ab",
    "aab",
    "abc abc",
    "foo(bar)",
    "  foo = bar[0]",
    "def foo_bar(self, x):",
    "class Foo(Bar):",
    "\tindent",
    "trail  ",
    "é",
    "Été x",
    "naïve café",
    "Straße",
    "ſ",
    "K k",
    "İ ı i I",
    "ǅ Ǆ ǆ",
    "Σ ς σ",
    "日本 x",
    "x²y",
    "a\u0301b",
    "٣4",
    "a_b",
    "a-b",
    "a.b",
    "a*b",
    "a+b?",
    "{a}",
    "a{2}",
    "[a]",
    "^a$",
    "a\\b",
    "\"q\" 's'",
    "#c",
    "a|b",
    "123",
    "2024-01-02",
    "aaaa",
    "abababab",
    "x\r",
    "TODO: fix",
    "import os, sys",
    "if x == 1 and y != 2:",
    "\x0b",
    "http://a.b/c?d=e&f",
    "user@example.com",
    "\x85n",
    "\xa0nb",
    "\u200d",
    "😀 a",
    "~`!@#$%^&*()_+-=",
    "café AUTH_PORT = 1",
)
ATOMS = {
    "rg": [
        *"abxsKiI1 _=.",
        "foo",
        "é",
        "ſ",
        "ß",
        "日",
        r"\d",
        r"\w",
        r"\s",
        r"\D",
        r"\W",
        r"\S",
        "[ab]",
        "[^a]",
        "[a-z]",
        "[[:alpha:]]",
        "[[:^digit:]]",
        "[a-z&&[^b]]",
        r"[\w--[a-c]]",
        "[a-f~~d-h]",
        "[é-ö]",
        r"[^\W\d]",
        "[]a]",
        "[-a]",
        r"\p{L}",
        r"\P{Lu}",
        r"\x41",
        r"\u00e9",
        r"\t",
        r"\.",
        r"\(",
        r"\[",
        r"\{",
        "^",
        "$",
        r"\b",
        r"\B",
        r"\A",
        r"\z",
        "(?i)",
        "(?s)",
        r"[^\n]",
        r"\"",
        r"\<",
        r"\q",
        "(",
        ")",
        "[",
        "{",
        "*",
    ],
    "grep": [
        *"abx1 _=.",
        "foo",
        "é",
        "日",
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        "[ab]",
        "[^a]",
        "[a-z]",
        "[[:alpha:]]",
        "[[:digit:]]",
        "[^[:space:]]",
        "[]a]",
        r"[a\]",
        "[-a]",
        r"\.",
        r"\*",
        r"\[",
        r"\d",
        r"\"",
        "^",
        "$",
        r"\b",
        r"\B",
        r"\<",
        r"\>",
        "(",
        ")",
        "{",
        "|",
        "+",
        "*",
        "[",
        r"\(",
        r"\)",
        r"\{",
    ],
}


def lines(pattern: str, dialect: str, text: str = TEXT, **options: Any) -> object:
    """Return the 1-based numbers of the lines that match, or ERROR, or MISS."""
    try:
        return [number + 1 for number in matching_lines(compile_pattern(pattern, dialect, **options), text)]
    except PatternError:
        return ERROR
    except Untranslatable:
        return MISS


def run(command: list[str], text: str, path: Path) -> object:
    """Return the numbers of the lines that the real tool prints, or its message as the host keeps it."""
    path.write_text(text, encoding="utf-8", newline="")
    done = subprocess.run(
        [*command, str(path)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    if done.returncode == 2:
        return "\n".join(line for line in (done.stdout + done.stderr).split("\n") if line.strip()).strip()
    return [int(line.split(":", 1)[0]) for line in done.stdout.split("\n") if line]


def rg_major() -> int | None:
    rg = shutil.which("rg")
    if not rg:
        return None
    said = subprocess.run([rg, "--version"], capture_output=True, text=True).stdout
    return int(re.match(r"ripgrep (\d+)", said)[1])


RG = rg_major()
GNU_GREP = (
    bool(shutil.which("grep")) and "GNU" in subprocess.run(["grep", "--version"], capture_output=True, text=True).stdout
)


def rg_command(pattern: str, *flags: str) -> list[str]:
    return ["rg", "--no-config", "--line-number", "--no-heading", "--no-filename", "--text", *flags, "--", pattern]


def random_pattern(rng: random.Random, dialect: str, depth: int = 0) -> str:
    basic = dialect == "grep-bre"
    opened, closed, bar = (r"\(", r"\)", r"\|") if basic else ("(", ")", "|")
    repeats = ["*", r"\+", r"\?", r"\{2\}", r"\{1,3\}"] if basic else ["*", "+", "?", "{2}", "{1,3}", "{2,}"]
    pattern = ""
    for _ in range(rng.choice((1, 1, 2, 3))):
        chance = rng.random()
        if chance < 0.75 or depth > 2:
            pattern += rng.choice(ATOMS[dialect[:4].rstrip("-")])
        else:
            inner = [random_pattern(rng, dialect, depth + 1) for _ in range(1 + (chance > 0.9))]
            pattern += opened + bar.join(inner) + closed
        if rng.random() < 0.3:
            pattern += rng.choice(repeats)
    return pattern


def mutated(rng: random.Random, pattern: str) -> str:
    at = rng.randrange(len(pattern) + 1)
    return pattern[:at] + rng.choice(["", rng.choice("()[]{}*+?|\\^$.-,:a1 ")]) + pattern[at + rng.choice((0, 1)) :]


def random_text(rng: random.Random) -> str:
    return "\n".join(rng.choice(LINES) for _ in range(60)) + rng.choice(("\n", "\n", "", "\n\n"))


class DialectsTest(unittest.TestCase):
    def test_each_pattern_means_what_its_own_tool_makes_of_it(self) -> None:
        for pattern, wanted in DIALECTS.items():
            with self.subTest(pattern):
                got = (
                    lines(pattern, "rg", rg_major=13),
                    lines(pattern, "rg", rg_major=15),
                    lines(pattern, "grep-bre"),
                    lines(pattern, "grep-ere"),
                )
                self.assertEqual(got, wanted)

    def test_without_the_version_only_what_all_versions_agree_on_is_answered(self) -> None:
        for pattern, (old, new, _, _) in DIALECTS.items():
            with self.subTest(pattern):
                self.assertEqual(lines(pattern, "rg"), new if old == new and new != ERROR else MISS)

    def test_an_error_has_the_words_and_marks_of_the_tool(self) -> None:
        for pattern, texts in RG_ERRORS.items():
            for major, text in zip((13, 15), texts):
                with self.subTest(pattern, rg=major), self.assertRaises(PatternError) as caught:
                    compile_pattern(pattern, "rg", rg_major=major)
                self.assertEqual(caught.exception.message, text)
                self.assertEqual(caught.exception.exact, "PCRE2" not in text)

    def test_an_error_of_grep_is_named_only_when_it_is_the_only_one(self) -> None:
        for pattern, text in {
            "a(b": "grep: Unmatched ( or \\(",
            "a[b": "grep: Unmatched [, [^, [:, [., or [=",
            "[z-a]": "grep: Invalid range end",
            "a\\": "grep: Trailing backslash",
            "x{}": "grep: Invalid content of \\{\\}",
        }.items():
            with self.subTest(pattern), self.assertRaises(PatternError) as caught:
                compile_pattern(pattern, "grep-ere")
            self.assertEqual(caught.exception.message, text)
        self.assertEqual(lines("(a[b", "grep-ere"), MISS)

    def test_an_unknown_dialect_is_refused_with_the_list_of_the_known(self) -> None:
        with self.assertRaisesRegex(ValueError, "'pcre'.*rg, grep-bre, grep-ere"):
            compile_pattern("a", "pcre")


class LinesTest(unittest.TestCase):
    def test_a_final_newline_opens_no_line_and_an_empty_text_has_none(self) -> None:
        for text, wanted in (("", []), ("\n", [0]), ("a", [0]), ("a\n", [0]), ("a\n\n", [0, 1])):
            for pattern in ("", "^", "x*", "()", "$"):
                with self.subTest(pattern, text=text):
                    self.assertEqual(matching_lines(compile_pattern(pattern, "rg"), text), wanted)

    def test_no_set_reaches_over_the_end_of_a_line(self) -> None:
        for pattern in (r"a\sb", "a[^x]b", r"a\Wb", "(?s)a.b", "a[\\n]?b"):
            with self.subTest(pattern):
                self.assertEqual(lines(pattern, "rg", "a\nb\n", rg_major=15), MISS if "n" in pattern else [])

    def test_a_match_over_several_lines_gives_each_line_that_it_touches(self) -> None:
        text = "a\nfoo\nbar\nb\nfoo\n\nbar"
        self.assertEqual(lines(r"foo\nbar", "rg", text, multiline=True), [2, 3])
        self.assertEqual(lines(r"foo\s+bar", "rg", text, multiline=True), [2, 3, 5, 6, 7])
        self.assertEqual(lines(r"foo\n+?", "rg", text, multiline=True), [2, 5])
        self.assertEqual(lines(r"o[^\n]", "rg", text, multiline=True), [2, 5])

    def test_matches_over_lines_that_share_a_line_are_one_stretch(self) -> None:
        text = "a\nfoo\nbar\nb\nfoo\n\nbar"
        for pattern, wanted in ((r"foo\nbar", 1), (r"foo\s+bar", 2), (r"foo\n|bar", 4), (r"o\n|b|r\n", 5), ("q\\n", 0)):
            with self.subTest(pattern):
                search = Search(compile_pattern(pattern, "rg", multiline=True), 10.0)
                self.assertEqual(search.stretches(text), wanted)

    def test_limit_ends_the_search_in_a_text(self) -> None:
        matcher = compile_pattern("a", "rg")
        self.assertEqual(matching_lines(matcher, "a\na\na", 2), [0, 1])
        search = Search(matcher, 10.0)
        self.assertEqual([search.lines(text, 1) for text in ("a\na\n", "b\na", "b")], [[0], [1], []])

    def test_a_letter_that_the_tool_may_class_otherwise_makes_a_miss_only_where_it_counts(self) -> None:
        new = "\U0001e030"  # a letter since Unicode 15
        self.assertEqual(lines(r"foo.*\d", "rg", f"foo {new} 1\n"), MISS)
        self.assertEqual(lines(r"foo \d", "rg", f"foo 1 {new}\n{new}\n"), [1])
        self.assertEqual(lines("foo.1", "rg", f"foo{new}1\n"), [1])
        self.assertEqual(lines(r"(?-u)x\W", "rg", "x é\n"), MISS)
        self.assertEqual(lines("[a-z][0-9]", "grep-ere", "é\na1\n"), [2])  # é may be in the set; no digit follows
        self.assertEqual(lines("[a-z][0-9]", "grep-ere", "é1\na1\n"), MISS)
        self.assertEqual(lines(r"\bx", "rg", f"{new}\n x\n"), [2])
        self.assertEqual(lines(r"\bx", "rg", f"{new}x\n"), MISS)

    def test_realistic_patterns_are_almost_never_a_miss(self) -> None:
        for dialect, most in (("rg", 0), ("grep-ere", 4), ("grep-bre", 4)):
            major = {"rg_major": 15} if dialect == "rg" else {}
            ascii_text = TEXT.encode("ascii", "ignore").decode()
            missed = [pattern for pattern in REALISTIC if lines(pattern, dialect, ascii_text, **major) == MISS]
            with self.subTest(dialect):
                self.assertLessEqual(len(missed), most, missed)


class TimeTest(unittest.TestCase):
    def test_patterns_that_hang_a_backtracking_engine_are_answered(self) -> None:
        line = "a" * (1 << 19)
        for pattern, wanted in {
            "(a+)+$": [0],
            "(a+)+c$": [],
            "(a|aa)*b": [],
            "(a|aa)*[bc]$": [],
            "(.*)*x": [],
            ".*.*.*.*=": [],
            r"(\w+\s*)+;$": [],
            "(a*)*(a|b)*[cd]$": [],
            r"(a|a)+\d": [],
        }.items():
            with self.subTest(pattern):
                self.assertEqual(matching_lines(compile_pattern(pattern, "rg"), line), wanted)

    def test_the_bound_ends_a_search_that_is_too_slow(self) -> None:
        rng = random.Random(1)
        text = "".join(rng.choice("ab") for _ in range(1 << 19))
        started = time.monotonic()
        with self.assertRaises(TooSlow):
            matching_lines(compile_pattern("a.{300}[cd]e?$", "rg"), text + "c", seconds=0.2)
        self.assertLess(time.monotonic() - started, 10)
        with self.assertRaises(TooSlow):
            matching_lines(compile_pattern("a", "rg"), "a", seconds=-1)

    def test_other_threads_go_on_during_a_search(self) -> None:
        beats, searching = 0, threading.Event()

        def beat() -> None:
            nonlocal beats
            while not searching.is_set():
                beats += 1
                time.sleep(0)

        thread = threading.Thread(target=beat)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-4)
        thread.start()
        try:
            matching_lines(compile_pattern(r"(a|\w)+\b(a|b)*\w$", "rg"), "ab" * (1 << 20))
        finally:
            searching.set()
            thread.join()
            sys.setswitchinterval(interval)
        self.assertGreater(beats, 3)

    def test_no_room_of_ours_and_nothing_that_starts_a_process_is_imported(self) -> None:
        tree = ast.parse((REPO / "patterns.py").read_text(encoding="utf-8"))
        imported = {
            name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
        }
        self.assertLessEqual(
            imported, {"__future__", "bisect", "functools", "itertools", "re", "time", "typing", "unicodedata"}
        )


class LiveToolTest(unittest.TestCase):
    """Seeded random patterns, the same for all, against the real tools: not one wrong answer."""

    def compare(self, dialect: str, count: int, command: Callable[[str], list[str]], **options: Any) -> None:
        rng = random.Random(f"{dialect}{options}")
        path = Path(self.folder()) / "text.txt"
        wrong = []
        for index in range(count):
            if index % 20 == 0:
                text = random_text(rng)
            pattern = random_pattern(rng, dialect) if index % 3 else mutated(rng, rng.choice(REALISTIC))
            try:
                matcher = compile_pattern(pattern, dialect, **options)
                mine: object = [number + 1 for number in matching_lines(matcher, text)]
            except PatternError as error:
                mine = error.message if error.exact else error.message.partition(PCRE2_REMARK)[0]
            except Untranslatable:
                continue
            live = run(command(pattern), text, path)
            if isinstance(live, str):
                live = live.partition(PCRE2_REMARK)[0]
            if mine != live:
                wrong.append((pattern, mine, live))
        self.assertEqual(wrong, [])

    def folder(self) -> str:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        return made.name

    @unittest.skipUnless(RG, "NOT CHECKED against ripgrep: it is not installed")
    def test_ripgrep_finds_the_same_lines_and_says_the_same_errors(self) -> None:
        self.compare("rg", 150, rg_command, rg_major=RG)

    @unittest.skipUnless(RG, "NOT CHECKED against ripgrep: it is not installed")
    def test_ripgrep_over_several_lines_finds_the_same(self) -> None:
        self.compare("rg", 40, lambda pattern: rg_command(pattern, "--multiline"), rg_major=RG, multiline=True)

    @unittest.skipUnless(RG, "NOT CHECKED against ripgrep: it is not installed")
    def test_ripgrep_ignoring_case_finds_the_same(self) -> None:
        self.compare("rg", 40, lambda pattern: rg_command(pattern, "-i"), rg_major=RG, ignore_case=True)

    @unittest.skipUnless(GNU_GREP, "NOT CHECKED against grep: GNU grep is not installed")
    def test_grep_finds_the_same_lines_and_says_the_same_errors(self) -> None:
        self.compare("grep-bre", 80, lambda pattern: ["grep", "-nha", "--", pattern])

    @unittest.skipUnless(GNU_GREP, "NOT CHECKED against grep: GNU grep is not installed")
    def test_extended_grep_finds_the_same_lines_and_says_the_same_errors(self) -> None:
        self.compare("grep-ere", 80, lambda pattern: ["grep", "-nhaE", "--", pattern])


if __name__ == "__main__":
    unittest.main()
