"""Tests of what a recording keeps: paths, results, stubs, ignore rules, files."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Iterable, Iterator
from unittest import mock

from tests.support import REPO

from session_cassettes import middleware, snapshot
from session_cassettes.cassette_store import Call, SnapshotFile
from session_cassettes.middleware import RESULT_LIMIT, TURN_LIMIT, KeepRules
from session_cassettes.snapshot import NotKept, Redactor, Workspace

POSIX_ONLY = unittest.skipIf(os.name == "nt", "needs POSIX files: FIFOs, links, devices")
NEEDS_RG = unittest.skipUnless(shutil.which("rg"), "needs ripgrep to compare with")


def redactor(redact: Callable[[str, bool], Any]) -> Redactor:
    """A Hermes that redacts like this, and has the stricter mode."""
    return Redactor(redact, strict=True)


#: Redacts nothing.
AS_IT_IS = redactor(lambda text, _: text)


# --- paths -------------------------------------------------------------------

LINUX = Workspace("/home/jo/ws", ("/data/ws",), home="/home/jo")
WINDOWS = Workspace(r"C:\Users\Jo\ws", (r"D:\real\ws",), windows=True, fold_case=True, home=r"C:\Users\Jo")


class WorkspaceTest(unittest.TestCase):
    """What a path means."""

    def spellings(self, table: Iterable[tuple[str, str | None]], workspace: Any) -> None:
        for path, expected in table:
            with self.subTest(path=path):
                self.assertEqual(workspace.relative(path), expected)

    POSIX_PATHS: list[tuple[str, str | None]] = [
        ("", ""),
        (".", ""),
        ("./", ""),
        ("/home/jo/ws", ""),
        ("/home/jo/ws/", ""),
        ("a", "a"),
        ("./a", "a"),
        ("a/", "a"),
        ("a//b", "a/b"),
        ("a/./b/../c", "a/c"),
        ("/home/jo/ws/a", "a"),
        ("//home/jo//ws/a", "a"),
        ("/home/jo/ws/../ws/a", "a"),
        ("/data/ws/a", "a"),
        ("/data/ws", ""),
        ("../ws/a", "a"),
        ("~/ws/a", "a"),
        ("a/../../ws/b", "b"),
        (" a ", " a "),
        ("a\nb", "a\nb"),
        ("~jo/x", "~jo/x"),
        ("a\\b", "a\\b"),
        ("C:\\x", "C:\\x"),
        ("c:/x", "c:/x"),
        ("A", "A"),
        ("..", None),
        ("../a", None),
        ("a/../..", None),
        ("/", None),
        ("/home/jo/wsx", None),
        ("/home/jo/WS/a", None),
        ("/c/x", None),
        ("//server/share/x", None),
        ("~", None),
        ("~/a", None),
        ("a\0b", None),
        ("/../home/jo/ws/a", "a"),
    ]

    def test_posix_paths_mean_what_the_tools_there_take_them_for(self) -> None:
        self.spellings(self.POSIX_PATHS, LINUX)

    WINDOWS_PATHS: list[tuple[str, str | None]] = [
        ("", ""),
        (".\\", ""),
        ("C:\\Users\\Jo\\ws", ""),
        ("c:/users/jo/ws/", ""),
        ("a", "a"),
        (".\\a", "a"),
        ("a\\b", "a/b"),
        ("a/b\\..\\c", "a/c"),
        ("A\\B", "A/B"),
        ("C:\\Users\\Jo\\ws\\a", "a"),
        ("c:/x/../users/JO/ws/a", "a"),
        ("/c/Users/Jo/ws/a", "a"),
        ("/cygdrive/c/Users/Jo/ws/a", "a"),
        ("/mnt/c/Users/Jo/ws/a", "a"),
        ("\\\\?\\C:\\Users\\Jo\\ws\\a", "a"),
        ("//?/c:/users/jo/ws/a", "a"),
        ("D:\\real\\ws\\a", "a"),
        ("/d/REAL/ws/a", "a"),
        ("\\Users\\Jo\\ws\\a", "a"),
        ("C:a", "a"),
        ("..\\WS\\a", "a"),
        ("~\\ws\\a", "a"),
        ("~/ws/a", "a"),
        ("a.", "a"),
        ("a. .", "a"),
        ("a \\b", "a/b"),
        ("a\\\\b\\", "a/b"),
        ("..", None),
        ("..\\a", None),
        ("C:\\", None),
        ("D:\\x", None),
        ("E:a", None),
        ("/home/jo", None),
        ("\\\\server\\share\\Users\\Jo\\ws\\a", None),
        ("\\\\?\\UNC\\server\\share\\a", None),
        ("\\c\\Users\\Jo\\ws\\a", None),
        ("a.txt:stream", None),
        ("a.txt::$DATA", None),
        ("nul", None),
        ("x\\CON", None),
        ("aux.txt", None),
        ("com1", None),
        ("LPT9.log", None),
        ("...", None),
        ("a\0", None),
        ("console.txt", "console.txt"),
        ("auxiliary", "auxiliary"),
    ]

    def test_windows_paths_mean_what_windows_takes_them_for(self) -> None:
        self.spellings(self.WINDOWS_PATHS, WINDOWS)

    def test_a_share_can_be_the_root(self) -> None:
        share = Workspace(r"\\Server\Share\ws", windows=True, fold_case=True)
        self.spellings(
            [
                ("//server/share/WS/a", "a"),
                (r"\\?\UNC\SERVER\share\ws\a", "a"),
                ("\\ws\\a", "a"),
                (r"\\server\share\a", None),
                ("C:\\ws\\a", None),
                ("..\\..\\..\\ws\\a", "a"),
            ],
            share,
        )

    def test_the_root_of_the_disk_can_be_the_root(self) -> None:
        self.spellings([("/etc/x", "etc/x"), ("..", ""), ("/", "")], Workspace("/"))
        self.spellings([("C:\\x", "x"), ("..", ""), ("/c", "")], Workspace("C:\\", windows=True))

    def test_a_relative_path_starts_from_its_base(self) -> None:
        self.assertEqual(LINUX.relative("b", "a"), "a/b")
        self.assertEqual(LINUX.relative("../b", "a"), "b")
        self.assertEqual(LINUX.relative("/home/jo/ws/b", "a"), "b")
        self.assertEqual(LINUX.relative("b", ".."), None)
        self.assertEqual(WINDOWS.relative("..\\b", "a\\c"), "a/b")

    def test_a_home_path_without_a_home_is_not_usable(self) -> None:
        self.assertIsNone(Workspace("/home/jo/ws").relative("~/ws/a"))

    def test_what_is_no_string_is_outside(self) -> None:
        for value in (None, 3, ["a"], {"a": 1}, b"a", True):
            with self.subTest(value=value):
                self.assertIsNone(LINUX.relative(value))
                self.assertIsInstance(LINUX.canonical(value), str)

    def test_case_counts_only_where_the_file_system_says_so(self) -> None:
        strict = Workspace(r"C:\Ws", windows=True)
        self.assertEqual(strict.relative(r"c:\Ws\A"), "A")
        self.assertIsNone(strict.relative(r"c:\ws\A"))
        self.assertEqual(strict.canonical("A"), "./A")
        mac = Workspace("/Users/jo/Ws", fold_case=True)
        self.assertEqual(mac.relative("/users/JO/ws/Cafe\u0301"), "Cafe\u0301")
        self.assertEqual(mac.canonical("Cafe\u0301"), mac.canonical("CAF\u00c9"))
        self.assertNotEqual(mac.canonical("stra\u00dfe"), mac.canonical("strasse"))

    def test_outside_paths_have_one_spelling_too(self) -> None:
        self.assertEqual(LINUX.canonical("../x//y/."), "/home/jo/x/y")
        self.assertEqual(LINUX.canonical("/home/jo/x/y/"), "/home/jo/x/y")
        self.assertEqual(WINDOWS.canonical("..\\X"), "c:/users/jo/x")
        self.assertEqual(WINDOWS.canonical("/C/Users/Jo/x"), "c:/users/jo/x")
        self.assertEqual(WINDOWS.canonical(r"\\Host\Share\A\..\b"), "//host/share/b")
        self.assertEqual(LINUX.canonical("."), ".")

    def test_hundreds_of_spellings_of_one_path_are_one_path(self) -> None:
        for seed in range(300):
            rng = random.Random(seed)
            names = [rng.choice(["src", "a b", "ü", "x.py", "lib64"]) for _ in range(rng.randint(1, 4))]
            for workspace, spell in ((LINUX, spell_posix), (WINDOWS, spell_windows)):
                path = spell(rng, names)
                with self.subTest(seed=seed, path=path):
                    folded = workspace.fold("/".join(names))
                    self.assertEqual(workspace.fold(workspace.relative(path)), folded)
                    self.assertEqual(workspace.canonical(path), "./" + folded)

    def test_canonical_is_stable(self) -> None:
        letters = ["a", "..", ".", "/", "\\", "C:", "~", " ", "", "ws", "//", "c", "nul", ":"]
        for seed in range(500):
            rng = random.Random(seed)
            path = "".join(rng.choice(letters) for _ in range(rng.randint(0, 8)))
            for workspace in (LINUX, WINDOWS):
                once = workspace.canonical(path)
                with self.subTest(path=path, windows=workspace.windows):
                    self.assertEqual(workspace.canonical(once), once)
                    inside = workspace.relative(path)
                    if inside is not None:
                        self.assertNotIn("..", inside.split("/"))

    def test_here_knows_the_other_spellings_of_the_folder(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            workspace = Workspace.here(folder)
            self.assertEqual(workspace.relative(os.path.join(folder, "a", "b")), "a/b")
            self.assertEqual(workspace.relative(os.path.join(os.path.realpath(folder), "a")), "a")
            self.assertEqual(workspace.windows, os.name == "nt")

    @POSIX_ONLY
    def test_here_sees_through_a_link_to_the_folder(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            real, link = os.path.join(folder, "Real"), os.path.join(folder, "link")
            os.mkdir(real)
            os.symlink(real, link)
            workspace = Workspace.here(link)
            self.assertEqual(workspace.root, link)
            self.assertEqual(workspace.relative(os.path.join(real, "a")), "a")
            self.assertEqual(workspace.relative("../link/a"), "a")
            self.assertEqual(workspace.relative("../Real/a"), "a")


def spell_posix(rng: random.Random, names: list[str]) -> str:
    """Return some spelling of a path in `LINUX`."""
    start = rng.choice(["", "./", "/home/jo/ws/", "/data/ws/", "~/ws/", "../ws/", "//home/./jo/ws//"])
    return start + detours(rng, names, "/")


def spell_windows(rng: random.Random, names: list[str]) -> str:
    """Return some spelling of a path in `WINDOWS`."""
    start = rng.choice(
        [
            "",
            ".\\",
            "C:\\Users\\Jo\\ws\\",
            "c:/users/jo/WS/",
            "/c/Users/Jo/ws/",
            "C:",
            "\\\\?\\C:\\Users\\Jo\\ws\\",
            "D:\\real\\ws\\",
            "..\\ws\\",
            "\\users\\jo\\ws\\",
        ]
    )
    path = start + detours(rng, names, rng.choice("\\/"))
    if rng.random() < 0.3:
        return path.upper()
    return path if path[-1] in "\\/" else path + rng.choice(["", ".", " "])


def detours(rng: random.Random, names: list[str], slash: str) -> str:
    parts: list[str] = []
    for name in names:
        parts += rng.choice([[], [], ["."], ["x", ".."], [""] if parts else []]) + [name]
    return slash.join(parts) + ("" if rng.random() < 0.8 else slash)


# --- terminal ----------------------------------------------------------------

#: Terminal commands by what becomes of their output, each kind of danger a row of its own.
COMMANDS: dict[str, list[str]] = json.loads(Path(__file__).with_name("snapshot_commands.json").read_text("utf-8"))


class TerminalTest(unittest.TestCase):
    """Which commands are one plain command from the list."""

    def verdict(self, command: Any, windows: bool = False, **more: Any) -> str | None:
        return snapshot.terminal_verdict({"command": command, **more}, windows)

    def test_the_output_of_each_command_is_kept_where_it_is_plain(self) -> None:
        refused = [title for title in COMMANDS if title.startswith("refused everywhere: ")]
        self.assertEqual((len(COMMANDS), len(refused)), (3 + len(refused), 4))
        for title, windows, kept in (
            ("kept everywhere", False, True),
            ("kept everywhere", True, True),
            ("kept on POSIX", False, True),
            ("refused on Windows", True, False),
            *((title, windows, False) for title in refused for windows in (False, True)),
        ):
            for command in COMMANDS[title]:
                with self.subTest(title=title, command=command, windows=windows):
                    self.assertEqual(self.verdict(command, windows) is None, kept)

    def test_windows_commands_are_the_same_in_any_case(self) -> None:
        for command in ("DIR", "Type a.txt", "LS", "Rg foo", "GIT log"):
            with self.subTest(command=command):
                self.assertIsNone(self.verdict(command, True), command)
                self.assertEqual(self.verdict(command), "not in the list", command)
        self.assertIsNotNone(self.verdict("RG --pre x y", True))

    def test_no_operator_hides_anywhere_in_a_plain_command(self) -> None:
        hostile = list("|&;<>`\n\r\0(){}!") + ["$(x)", "${x}", "$x", " #", "'", '"', "\\"]
        rng = random.Random(7)
        for _ in range(400):
            words = rng.choice(["cat a b", "rg -n foo src", "git log -1 x", "ls -la"]).split(" ")
            at = rng.randint(0, len(words) - 1)
            words[at] = words[at] + rng.choice(hostile)
            with self.subTest(command=" ".join(words)):
                if words[at].endswith("\\") and at < len(words) - 1 and at > 0:
                    continue  # an escaped blank joins two words, and is harmless
                self.assertIsNotNone(self.verdict(" ".join(words)))

    FOREGROUND: tuple[dict[str, Any], ...] = (
        {"background": False},
        {"pty": False},
        {"timeout": 30},
        {"timeout": "30"},
        {"timeout": None},
        {"workdir": "/tmp/x y"},
        {"cwd": "c:/x"},
        {"notify_on_complete": False},
        {"timeout": 600},
        {"watch_patterns": []},
        {"heartbeat": 0},
        {"persist_on_release": False},
        {"new": None},
    )
    NOT_FOREGROUND: tuple[dict[str, Any], ...] = (
        {"background": True},
        {"background": "true"},
        {"background": "false"},
        {"pty": True},
        {"pty": 1},
        {"notify_on_complete": True},
        {"watch_patterns": ["x"]},
        {"notify": True},
        {"notify": ["x"]},
        {"heartbeat": 60},
        {"persist_on_release": True},
        {"timeout": 601},
        {"timeout": "x"},
        {"timeout": [1]},
        {"timeout": -1},
        {"workdir": "/x; rm y"},
        {"workdir": "$(x)"},
        {"workdir": 1},
        {"workdir": "a\nb"},
        {"stdin": "x"},
        {"env": {"A": "b"}},
        {"timeout": float("nan")},
    )

    def test_only_a_plain_foreground_run_is_kept(self) -> None:
        for rows, verdict in ((self.FOREGROUND, None), (self.NOT_FOREGROUND, "not a plain foreground run")):
            for more in rows:
                with self.subTest(more=more):
                    self.assertEqual(self.verdict("ls", **more), verdict)

    def test_arguments_of_any_shape_get_a_verdict(self) -> None:
        for args in (
            None,
            "ls",
            ["ls"],
            3,
            {},
            {"command": None},
            {"command": ["ls"]},
            {"cmd": "ls"},
            {"command": b"ls"},
        ):
            with self.subTest(args=args):
                self.assertEqual(snapshot.terminal_verdict(args), "no command")
        self.assertIsNotNone(snapshot.terminal_verdict({1: 2, "command": "ls"}))

    def test_a_very_long_command_is_judged_quickly(self) -> None:
        started = time.perf_counter()
        for command in ("cat " + "a" * 50_000, "cat " + "'a" * 20_001, "cat " + "\\" * 30_001, "cat" + " a" * 20_000):
            self.verdict(command)
            self.verdict(command, True)
        self.assertLess(time.perf_counter() - started, 5)


# --- results -----------------------------------------------------------------


class KeepTest(unittest.TestCase):
    """Which results are kept."""

    def verdict(self, tool: str = "read_file", result: Any = "{}", args: Any = None) -> str | None:
        """What a turn's first call is told."""
        return KeepRules().judge(tool, {} if args is None else args, result)

    def test_the_nine_read_only_tools_are_kept(self) -> None:
        self.assertEqual(len(snapshot.KEPT_TOOLS), 9)
        for tool in snapshot.KEPT_TOOLS:
            with self.subTest(tool):
                self.assertIsNone(self.verdict(tool))

    def test_other_tools_are_not_kept(self) -> None:
        for tool in (
            "write_file",
            "patch",
            "execute_code",
            "delegate_task",
            "process",
            "READ_FILE",
            "",
            "mcp_read_file",
        ):
            with self.subTest(tool):
                self.assertEqual(self.verdict(tool), "not a read-only tool")

    def test_terminal_output_follows_the_rule_for_commands(self) -> None:
        self.assertIsNone(self.verdict("terminal", args={"command": "ls"}))
        self.assertEqual(self.verdict("terminal", args={"command": "make"}), "not in the list")

    def test_after_a_terminal_call_that_is_not_kept_no_later_one_is(self) -> None:
        def foreign(rules: KeepRules) -> None:
            self.assertEqual(rules.judge("terminal", {"command": "make"}, ""), NotKept.NOT_LISTED)

        def large(rules: KeepRules) -> None:
            self.assertEqual(rules.judge("terminal", {"command": "ls"}, "x" * (RESULT_LIMIT + 1)), NotKept.TOO_LARGE)

        def stub(rules: KeepRules) -> None:
            text = "[Tool execution cancelled — x]"
            self.assertEqual(rules.judge("terminal", {"command": "ls"}, text), NotKept.STUB)

        for before in (foreign, large, stub, lambda rules: rules.pass_over("terminal")):
            with self.subTest(before=before):
                rules = KeepRules()
                self.assertIsNone(rules.judge("terminal", {"command": "ls"}, ""))
                before(rules)
                self.assertEqual(rules.judge("terminal", {"command": "ls"}, ""), "after a command outside the list")
                self.assertIsNone(rules.judge("read_file", {}, ""))

    def test_other_calls_that_are_not_kept_cost_no_terminal_output(self) -> None:
        rules = KeepRules()
        rules.judge("write_file", {}, "")
        rules.pass_over("read_file")
        self.assertIsNone(rules.judge("terminal", {"command": "ls"}, ""))

    def test_a_result_at_the_limit_is_kept_and_one_byte_more_is_not(self) -> None:
        limit = RESULT_LIMIT
        for text in ("x" * limit, "é" * (limit // 2), "€" * ((limit - 2) // 3) + "xx"):
            with self.subTest(text[0]):
                self.assertEqual(middleware.text_bytes(text), limit)
                self.assertIsNone(self.verdict(result=text))
                self.assertEqual(self.verdict(result=text + "x"), "too large")

    def test_a_turn_at_the_limit_is_kept_and_one_byte_more_is_not(self) -> None:
        for result, kept in (("x" * 10, True), ("é" * 5, True), ("x" * 11, False), ("é" * 6, False)):
            with self.subTest(result=result):
                rules = filled(TURN_LIMIT - 10)
                self.assertEqual(rules.judge("read_file", {}, result), None if kept else "over 12 MB in this turn")
                self.assertEqual(rules.judge("read_file", {}, "x"), "over 12 MB in this turn" if kept else None)

    def test_every_kept_result_counts_by_its_bytes(self) -> None:
        text = "x" * (RESULT_LIMIT - 100)
        for result in (text, "é" * (len(text) // 2)):
            with self.subTest(result[0]):
                rules = KeepRules()
                told = [rules.judge("read_file", {}, result) for _ in range(20)]
                self.assertEqual(told, [None] * 6 + ["over 12 MB in this turn"] * 14)

    def test_what_is_not_kept_takes_no_room(self) -> None:
        rules = filled(TURN_LIMIT - 10)
        for tool, result in (("write_file", "x" * 10), ("read_file", "x" * 11), ("read_file", {1, 2})):
            with self.subTest(tool=tool, result=result):
                self.assertIsNotNone(rules.judge(tool, {}, result))
        self.assertIsNone(rules.judge("read_file", {}, "x" * 10))

    def test_only_a_text_is_kept(self) -> None:
        for result in (None, 7, True, {"a": 1}, ["a"], b"x", object(), float("nan")):
            with self.subTest(kind=type(result).__name__):
                self.assertEqual(self.verdict(result=result), "not a text")

    def test_any_text_is_measured(self) -> None:
        self.assertEqual(middleware.text_bytes("\ud800"), 3)
        self.assertGreater(middleware.text_bytes("é" * (TURN_LIMIT + 1)), TURN_LIMIT)


def filled(size: int) -> KeepRules:
    """Rules of a turn that has kept so many bytes."""
    rules = KeepRules()
    while size:
        part = min(size, RESULT_LIMIT)
        assert rules.judge("read_file", {}, "x" * part) is None
        size -= part
    return rules


UNCHANGED = {
    "status": "unchanged",
    "message": "File unchanged since last read. …",
    "path": "a.py",
    "dedup": True,
    "content_returned": False,
}
#: What Hermes 0.19 to 0.22 put in the place of a result.
STUBS: list[tuple[str, Any]] = [
    ("read_file", UNCHANGED),
    (
        "skill_view",
        {
            "success": True,
            "status": "unchanged",
            "name": "x",
            "file": "SKILL.md",
            "dedup": True,
            "content_returned": False,
            "message": "…",
        },
    ),
    (
        "read_file",
        {
            "error": "BLOCKED: You have called read_file on this exact region 3 times and the file has NOT "
            "changed. STOP …",
            "path": "a.py",
            "already_read": 3,
        },
    ),
    (
        "read_file",
        {
            "error": "BLOCKED: You have read this exact file region 4 times in a row. …",
            "path": "a.py",
            "already_read": 4,
            "guardrail_refusal": True,
        },
    ),
    (
        "search_files",
        {"error": "BLOCKED: You have run this exact search 4 times in a row. …", "pattern": "x", "already_searched": 4},
    ),
    ("terminal", {"output": "", "exit_code": -1, "error": "BLOCKED: User denied this command. …", "status": "blocked"}),
    ("terminal", {"output": "Background process started", "session_id": "proc_1", "promoted_from_foreground": "…"}),
    ("web_search", {"error": "stop", "guardrail": {"action": "block", "code": "idempotent_no_progress_block"}}),
    ("web_search", {"error": "x", "guardrail_refusal": True}),
    ("read_file", {"error": "Tool execution cancelled by user interrupt", "status": "cancelled"}),
    ("terminal", "[Tool execution cancelled — terminal was skipped due to user interrupt]"),
    ("terminal", "[Tool execution skipped — terminal was not started. User sent a new message]"),
    (
        "terminal",
        "[hermes note: this result is byte-identical to the terminal result earlier this turn "
        "(tool_call_id call_1). Refer to that result; it has not changed. Args: {}]",
    ),
    ("session_search", "<persisted-output>\nThis tool result was too large (250,000 characters, 244.1 KB).\n…"),
    (
        "session_search",
        '{"success": true, "results": [{"x": "y\n\n[Truncated: tool response was 250,000 chars. '
        "Full output could not be saved to sandbox.]",
    ),
]
#: Results about the same words that are results.
NOT_STUBS: list[tuple[str, Any]] = [
    ("read_file", {"content": '1|BLOCKED: You have called read_file\n2|"dedup": true', "total_lines": 2}),
    ("read_file", {"content": json.dumps(UNCHANGED), "total_lines": 1}),
    ("read_file", {"error": "File not found: BLOCKED: x", "similar_files": []}),
    ("read_file", {"error": "Access denied: /x/.env is a secret-bearing environment file"}),
    ("search_files", {"total_count": 1, "matches": [{"path": "a", "line": 1, "content": "guardrail_refusal: true"}]}),
    ("search_files", {"total_count": 0}),
    (
        "search_files",
        {"total_count": 3, "matches_text": "a\n  1: x", "_warning": "You have run this exact search 3 times"},
    ),
    ("terminal", {"output": "[Tool execution cancelled — x]", "exit_code": 0, "error": None}),
    ("terminal", {"output": "BLOCKED: by the test", "exit_code": 1, "error": "BLOCKED: see output"}),
    ("web_extract", {"results": [{"url": "x", "content": "<persisted-output>", "error": None}]}),
    ("web_search", {"success": False, "error": "no provider"}),
    ("session_search", {"dedup": True, "content_returned": False, "results": [1]}),
    ("read_file", {"guardrail_refusal": "true", "content": ""}),
    ("read_file", "BLOCKED: a plain text"),
    ("read_file", "the words [hermes note: this result is byte-identical to the last] in a text"),
    ("read_file", "[Truncated: tool response was told] and goes on"),
    ("read_file", ""),
    ("read_file", "[1, 2]"),
    ("read_file", "null"),
    ("read_file", None),
    ("read_file", 3),
]


class StubTest(unittest.TestCase):
    """Which results are only Hermes's remark about a result."""

    def test_stubs_are_known_as_text_and_as_value(self) -> None:
        for tool, result in STUBS:
            with self.subTest(result=result):
                self.assertTrue(middleware.is_guard_stub(tool, result))
                if not isinstance(result, str):
                    self.assertTrue(middleware.is_guard_stub(tool, json.dumps(result)))
                    self.assertTrue(middleware.is_guard_stub(tool, json.dumps(result) + "\n\n[Hint: x]"))

    def test_results_about_stubs_are_no_stubs(self) -> None:
        for tool, result in NOT_STUBS:
            with self.subTest(result=result):
                self.assertFalse(middleware.is_guard_stub(tool, result))
                if not isinstance(result, str):
                    self.assertFalse(middleware.is_guard_stub(tool, json.dumps(result)))

    def test_a_text_is_judged_as_the_value_it_tells(self) -> None:
        rng = random.Random(5)
        words = (
            "error",
            "dedup",
            "guardrail_refusal",
            "promoted_from_foreground",
            "content_returned",
            "content",
            "guardrail",
        )
        values = ("BLOCKED: x", "", True, False, None, {"a": 1}, '"error": "BLOCKED"', 0, ["dedup"])
        found = set()
        for _ in range(5000):
            tool = rng.choice(("read_file", "skill_view", "terminal", "web_search"))
            value = {rng.choice(words): rng.choice(values) for _ in range(rng.randrange(5))}
            told = middleware.is_guard_stub(tool, value)
            hint = rng.choice(("", "\n\n[Hint: x]", " ", "\n\n[Truncated: tool response was 9 chars. x]"))
            self.assertEqual(middleware.is_guard_stub(tool, json.dumps(value) + hint), told, (tool, value, hint))
            found.add(told)
        self.assertEqual(found, {True, False})

    def test_a_search_result_with_a_hint_behind_it_is_read(self) -> None:
        text = '{"total_count": 9}\n\n[Hint: Results truncated. Use offset=3 to see more]'
        self.assertEqual(snapshot.leading_json(text), {"total_count": 9})
        self.assertIsNone(snapshot.leading_json("[" * 100_000))


# --- ignore rules ------------------------------------------------------------


class IgnoreTest(unittest.TestCase):
    """What ripgrep leaves out of a plain search."""

    def rules(self, files: dict[str, str], git: Iterable[str] = ("",), **more: Any) -> Any:
        return snapshot.IgnoreRules(files.get, set(git).__contains__, **more)

    def check(self, lines: str, hidden: str, shown: str) -> None:
        rules = self.rules({".gitignore": lines})
        for path in hidden.split():
            self.assertTrue(rules.ignored(path), path)
        for path in shown.split():
            self.assertFalse(rules.ignored(path), path)

    def test_the_last_line_that_matches_decides(self) -> None:
        self.check("*.log\n!keep.log\n", "a.log b/c.log", "keep.log b/keep.log a.logs")

    def test_a_slash_ties_a_pattern_to_its_folder(self) -> None:
        self.check("/a\nb/c\nd/\n", "a a/x b/c b/c/x d/x e/d/x", "e/a e/b/c d e/d")

    def test_what_lies_in_an_ignored_folder_cannot_be_kept_again(self) -> None:
        self.check("build/\n!build/a\n", "build/a", "a")

    def test_stars_sets_and_braces_are_those_of_ripgrep(self) -> None:
        self.check(
            "**/x\na/**/z\nq/**\n[ab]?.c\n*.{js,ts}\n[!0-9].n\n\\#x\n\\!y\n",
            "x d/x a/z a/b/z a/b/c/z q/r q/r/s a1.c bé1.c".replace("bé1.c", "bx.c") + " m/a.js a.ts z.n #x !y",
            "q c1.c a.rs 5.n a/zz",
        )

    def test_broken_lines_are_left_out_and_the_rest_stays(self) -> None:
        self.check("[\na{b\nx}\n{a,{b,c}}\n*.tmp\n[z-a]\n\\\n", "a.tmp", "[ a{b x} b c")

    def test_blanks_comments_and_line_ends_are_no_pattern(self) -> None:
        self.check("\ufeff# x\n\n  \na.x  \nb\\ \nc.x\r\n", "a.x c.x", "x # b")

    def test_git_rules_count_only_inside_a_work_tree(self) -> None:
        files = {".gitignore": "a", ".ignore": "b", ".rgignore": "c", ".git/info/exclude": "d"}
        rules = self.rules(files, git=())
        self.assertEqual([rules.ignored(name) for name in "abcd"], [False, True, True, False])
        rules = self.rules(files, git=(), in_git=True)
        self.assertEqual([rules.ignored(name) for name in "abcd"], [True] * 4)

    def test_the_files_rank_before_the_folders(self) -> None:
        rules = self.rules({".rgignore": "!a", "s/.ignore": "a", "s/.gitignore": "!b", ".ignore": "b"})
        self.assertFalse(rules.ignored("s/a"))
        self.assertTrue(rules.ignored("s/b"))

    def test_a_work_tree_inside_does_not_inherit(self) -> None:
        rules = self.rules({".gitignore": "a", ".ignore": "b"}, git=("", "sub"))
        self.assertFalse(rules.ignored("sub/a"))
        self.assertTrue(rules.ignored("sub/b"))

    def test_a_search_may_start_below_the_rules(self) -> None:
        rules = self.rules({".gitignore": "/a/b/*.x\nb/"}, start="a/b")
        self.assertTrue(rules.ignored("1.x"))
        self.assertFalse(rules.ignored("1.y"))

    @NEEDS_RG
    def test_generated_trees_look_to_us_as_they_look_to_ripgrep(self) -> None:
        for seed in range(50):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as root:
                rng = random.Random(seed)
                paths = plant(rng, root)
                taken = snapshot.take_snapshot(
                    [search({"files": sorted(paths)})], Workspace(root), redact=AS_IT_IS, deadline=time.monotonic() + 20
                )
                self.assertEqual(len(taken.files) + taken.skipped.get("hidden", 0), len(paths))
                mine = {path for path, file in taken.files.items() if not file.ignored}
                self.assertEqual(mine, ripgrep_files(root))


NAMES = ["a", "b", "ab", "a.c", "b.log", "build", "src", "x1", "x2.c", "é", "a b", "c,d", "[x]"]
LINES = [
    "*",
    "a",
    "/a",
    "a/",
    "*.c",
    "*.log",
    "!*.c",
    "!b.log",
    "b*",
    "?",
    "x[0-9]*",
    "**/a",
    "a/**",
    "src/**/a",
    "/src/*",
    "!src",
    "!src/",
    "build/",
    "!/build",
    "**",
    "a*/b",
    "*/a",
    "{a,b}",
    "*.{c,log}",
    "[!a]",
    "[a-b]",
    "x?.c",
    "a\\ b",
    "\\a",
    "a b",
    "c,d",
    "{c,d}",
    "[[]x]",
    "[]x]",
    "[x",
    "é",
    "??",
    "**/src/",
    "a**",
    "**b",
    "src/**",
    "/**/a",
    "x{1,2.c}",
    "# no",
    "",
    "  ",
    "a ",
    "!",
    "/",
    "//a",
    "a//b",
    "!/src/a",
    "src/a/",
    "/{a,src}/*",
    "[^a]",
    "[a-]b",
    "{,a}",
    "a,b",
]


def plant(rng: random.Random, root: str) -> list[str]:
    """Make a small tree with ignore files in `root`; return its files that are not hidden."""
    folders = [""]
    for _ in range(rng.randint(1, 5)):
        folders.append(os.path.join(rng.choice(folders), rng.choice(NAMES)))
    if rng.random() < 0.7:
        os.makedirs(os.path.join(root, ".git", "info"))
    for folder in folders:
        os.makedirs(os.path.join(root, folder), exist_ok=True)
        for name in rng.sample(NAMES, 5):
            if not os.path.exists(os.path.join(root, folder, name)) and os.path.join(folder, name) not in folders:
                Path(root, folder, name).write_text("x")
        for name in (".gitignore", ".ignore", ".rgignore", ".git/info/exclude"):
            if rng.random() < 0.35 and os.path.isdir(os.path.dirname(os.path.join(root, folder, name))):
                lines = "\n".join(rng.choice(LINES) for _ in range(rng.randint(1, 5)))
                Path(root, folder, name).write_text(lines + "\n")
        if folder and rng.random() < 0.1:
            os.makedirs(os.path.join(root, folder, ".git"), exist_ok=True)
    found = []
    for at, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".")]
        found += [os.path.relpath(os.path.join(at, name), root) for name in names if not name.startswith(".")]
    return [path.replace(os.sep, "/") for path in found]


def ripgrep_files(root: str) -> set[str]:
    """Return the files that ripgrep lists in `root` without any setting of its user."""
    env = {**os.environ, "XDG_CONFIG_HOME": root, "HOME": root, "RIPGREP_CONFIG_PATH": ""}
    command = ["rg", "--no-config", "--no-messages", "--files", "--null", "."]
    output = subprocess.run(command, cwd=root, env=env, capture_output=True).stdout.decode()
    # What a search finds in a hidden folder that a rule shows again is hidden all the same.
    names = (name[2:].replace(os.sep, "/") for name in output.split("\0") if name)
    return {name for name in names if snapshot.skip_reason(name) != "hidden"}


# --- the snapshot ------------------------------------------------------------


def read(path: Any, result: Any = "{}") -> Any:
    return Call("read_file", {"path": path}, result)


def search(result: Any) -> Any:
    return Call("search_files", {"pattern": "x"}, result if isinstance(result, str) else json.dumps(result))


class NamedFilesTest(unittest.TestCase):
    """Which files the calls named."""

    def names(self, *calls: Any, workspace: Any = LINUX) -> list[str]:
        return snapshot.named_files(calls, workspace)[0]

    def test_every_form_of_a_search_result_names_its_files(self) -> None:
        for result in (
            {"matches": [{"path": "./a", "line": 1, "content": "x"}, {"path": "b/c"}, {"path": "./a"}]},
            {"matches_format": "path-grouped", "matches_text": "./a\n  1: x\n  12: b/d\nb/c\n  3: "},
            {"total_count": 2, "files": ["./a", "/home/jo/ws/b/c"]},
            {"total_count": 2, "counts": {"./a": 1, "/data/ws/b/c": 2}},
            json.dumps({"files": ["a", "b/c"]}) + "\n\n[Hint: Results truncated.]",
        ):
            with self.subTest(result=result):
                self.assertEqual(self.names(search(result)), ["a", "b/c"], result)

    def test_reads_come_first_and_every_file_once(self) -> None:
        self.assertEqual(
            self.names(search({"files": ["c", "./a"]}), read("b"), read("./c"), read("b")), ["b", "c", "a"]
        )

    def test_windows_spellings_of_one_file_are_one_file(self) -> None:
        calls = (read("src\\A.py"), search({"files": ["./SRC/a.py", "C:\\Users\\Jo\\ws\\b.py", "/c/users/jo/ws/B.PY"]}))
        self.assertEqual(self.names(*calls, workspace=WINDOWS), ["src/A.py", "b.py"])

    def test_names_outside_the_folder_and_the_folder_itself_are_left_out(self) -> None:
        names, reasons = snapshot.named_files([read("../x"), read("/etc/passwd"), read("."), read("")], LINUX)
        self.assertEqual(names, [])
        self.assertEqual(set(reasons.values()), {"outside the folder"})

    def test_what_hermes_refused_to_show_is_not_kept(self) -> None:
        denied = json.dumps({"error": "Access denied: /home/jo/ws/g.json is a Hermes credential store"})
        names, reasons = snapshot.named_files([read("g.json", denied), search({"files": ["./g.json", "a"]})], LINUX)
        self.assertEqual((names, reasons), (["a"], {"g.json": "refused by Hermes"}))

    def test_a_hidden_file_that_hermes_refused_is_hidden_all_the_same(self) -> None:
        denied = json.dumps({"error": "Access denied: /home/jo/ws/.envrc is a secret-bearing environment file"})
        self.assertEqual(snapshot.named_files([read(".envrc", denied)], LINUX), ([], {".envrc": "hidden"}))

    def test_a_file_about_refusals_is_kept(self) -> None:
        shown = json.dumps({"content": '1|{"error": "Access denied: x"}'})
        self.assertEqual(self.names(read("a", shown)), ["a"])

    def test_calls_of_any_shape_are_read_without_harm(self) -> None:
        hostile = [
            read(None),
            read(3),
            read(["a"]),
            Call("read_file", None, None),
            Call("search_files", {}, None),
            search("no json"),
            search("[]"),
            search({"matches": 3, "files": "a", "counts": ["b"], "matches_text": 5}),
            search({"matches": [None, {"path": 4}, "x"], "files": [None, 1]}),
            search("[" * 99_999),
            Call("terminal", {"command": "cat a"}, "{}"),
        ]
        self.assertEqual(self.names(*hostile), [])


class SnapshotTest(unittest.TestCase):
    """Which files are kept, and as what."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(os.path.realpath(folder.name), "ws")
        os.mkdir(self.root)
        self.outside = os.path.join(os.path.dirname(self.root), "outside")

    def write(self, path: str, content: str | bytes = "text\n") -> str:
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        Path(full).write_bytes(content.encode() if isinstance(content, str) else content)
        return full

    def take(
        self,
        *names: str,
        redact: Any = AS_IT_IS,
        seconds: float = 20,
        calls: Iterable[Any] | None = None,
        **workspace: Any,
    ) -> Any:
        calls = [search({"files": list(names)})] if calls is None else calls
        return snapshot.take_snapshot(
            calls, Workspace(self.root, **workspace), redact=redact, deadline=time.monotonic() + seconds
        )

    def skips(self, reason: str, *names: str, **more: Any) -> None:
        taken = self.take(*names, **more)
        self.assertEqual(taken.files, {})
        self.assertEqual(taken.skipped_paths, {name: reason for name in names})
        self.assertEqual(taken.skipped, {reason: len(names)})

    def test_a_file_is_kept_with_every_character_and_its_facts(self) -> None:
        text = "\ufeffa\r\nb\rc\n\n\u2028é\x0c"
        full = self.write("src/a.py", text)
        os.utime(full, (1000, 1234.5))
        file = self.take("./src/a.py").files["src/a.py"]
        self.assertEqual(file, SnapshotFile(text, len(text.encode()), 1234.5))

    def test_an_empty_file_is_kept(self) -> None:
        self.write("a", "")
        self.assertEqual(self.take("a").files["a"].text, "")

    def test_files_that_rules_hide_are_kept_and_marked(self) -> None:
        self.write(".gitignore", "*.log\n")
        self.write(".ignore", "b.txt\n")
        for name in ("a.log", "a.txt", "b.txt"):
            self.write(name)
        self.assertEqual(
            {name: file.ignored for name, file in self.take("a.log", "a.txt", "b.txt").files.items()},
            {"a.log": False, "a.txt": False, "b.txt": True},
        )
        os.mkdir(os.path.join(self.root, ".git"))
        self.assertTrue(self.take("a.log").files["a.log"].ignored)
        self.assertEqual(set(self.take("a.log").files), {"a.log"})

    def test_hidden_paths_are_skipped(self) -> None:
        names = (".env", ".git/config", "a/.x/b", "a/.b", "...x")
        for name in names:
            self.write(name)
        self.skips("hidden", *names)

    def test_names_that_speak_of_secrets_are_skipped_in_any_case(self) -> None:
        names = [
            "a.pem",
            "a.key",
            "b.p12",
            "b.pfx",
            "c.jks",
            "c.kdbx",
            "c.keystore",
            "id_rsa",
            "id_rsa.pub",
            "id_dsa_x",
            "id_ecdsa",
            "id_ed25519.bak",
            "credentials",
            "credentials.csv",
            "prod.env",
            "secrets.json",
            "secrets.yaml",
            "secrets.yml",
            "secrets.toml",
            "auth.json",
            "token.json",
            "tokens.json",
        ]
        names = [name for lower in names for name in (f"d/{lower}", f"u/{lower.upper()}", f"t/{lower.title()}")]
        for name in names:
            self.write(name)
        self.skips("secret name", *names)

    def test_names_that_only_resemble_secrets_are_kept(self) -> None:
        names = [
            "a.pem.txt",
            "key",
            "id_rs",
            "my_id_rsa",
            "credentials_test",
            "mycredentials",
            "env",
            "secrets.txt",
            "secrets.json5",
            "oauth.json",
            "token.jsonl",
            "tokens",
            "secrets/a",
            "credentials.d2/x",
            "a.environment",
        ]
        for name in names:
            self.write(name)
        self.assertEqual(set(self.take(*names).files), set(names))

    def test_binary_and_other_encodings_are_skipped(self) -> None:
        self.write("a", b"a\0b")
        self.write("b", "é".encode("utf-16"))
        self.skips("binary", "a", "b")
        self.write("c", "é".encode("latin-1"))
        self.write("d", b"\xed\xa0\x80")
        self.skips("not UTF-8", "c", "d")

    def test_folders_and_missing_files_are_skipped(self) -> None:
        self.write("d/a")
        self.skips("not a regular file", "d")
        self.skips("not found", "x", "d/x", "x/y/z", "d/a/b", "n" * 300)

    def test_a_file_at_the_limit_is_kept_and_one_byte_more_is_not(self) -> None:
        self.write("a", "é" * (snapshot.SNAPSHOT_FILE_LIMIT // 2))
        self.assertEqual(set(self.take("a").files), {"a"})
        self.write("a", "é" * (snapshot.SNAPSHOT_FILE_LIMIT // 2) + "x")
        self.skips("too large", "a")

    def test_exactly_eight_megabytes_are_kept(self) -> None:
        names = [f"f{number:02}" for number in range(17)]
        for name in names:
            self.write(name, b"x" * snapshot.SNAPSHOT_FILE_LIMIT)
        self.write("one", "x")
        self.write("zero", "")
        taken = self.take(*names, "one", "zero")
        self.assertEqual(list(taken.files), names[:16] + ["zero"])
        self.assertEqual(taken.skipped, {"over 8 MB in total": 2})

    def test_the_total_counts_what_is_stored(self) -> None:
        names = [f"f{number:02}" for number in range(20)]
        for name in names:
            self.write(name, b"x" * (snapshot.SNAPSHOT_FILE_LIMIT - 10))
        taken = self.take(*names, redact=redactor(lambda text, _: text + "y" * 20))
        self.assertEqual(len(taken.files), 15)

    def test_texts_are_redacted_and_config_yaml_more_strictly(self) -> None:
        for name in ("a.py", "config.yaml", "d/Config.YAML", "config.yml"):
            self.write(name, "secret")
        taken = self.take(
            "a.py",
            "config.yaml",
            "d/Config.YAML",
            "config.yml",
            redact=redactor(lambda text, strict: f"{text} {strict}"),
        )
        self.assertEqual(
            [file.text for file in taken.files.values()], ["secret False", "secret True", "secret True", "secret False"]
        )
        self.assertEqual(taken.files["a.py"].size, 6)

    def test_a_config_yaml_is_kept_only_where_the_stricter_redaction_is(self) -> None:
        for name in ("a.py", "config.yaml", "d/Config.YAML", "config.yml"):
            self.write(name, "api_key: secret")
        names = ("a.py", "config.yaml", "d/Config.YAML", "config.yml")
        newer = self.take(*names, redact=hermes_redactor(redact_of_0_22))
        self.assertEqual((set(newer.files), newer.skipped), (set(names), {}))
        older = self.take(*names, redact=hermes_redactor(redact_of_0_19))
        self.assertEqual(list(older.files), ["a.py", "config.yml"])
        self.assertEqual(older.skipped, {"no stricter redaction": 2})
        self.assertEqual(older.skipped_paths, dict.fromkeys(("config.yaml", "d/Config.YAML"), "no stricter redaction"))
        self.skips("not found", "x/config.yaml", redact=hermes_redactor(redact_of_0_19))

    def test_the_copies_that_hermes_makes_of_its_config_yaml_are_such_files_too(self) -> None:
        names = ("config.yaml.good.20260101", "backups/config/config.yaml.corrupt.1", "config.yaml.md")
        for name in names:
            self.write(name, "secret")
        taken = self.take(*names, redact=redactor(lambda text, strict: f"{text} {strict}"))
        self.assertEqual([file.text for file in taken.files.values()], ["secret True", "secret True", "secret False"])

    @POSIX_ONLY
    def test_a_link_to_a_config_yaml_is_one(self) -> None:
        self.write("config.yaml", "api_key: secret")
        os.symlink("config.yaml", os.path.join(self.root, "settings.txt"))
        taken = self.take("settings.txt", redact=hermes_redactor(redact_of_0_19))
        self.assertEqual((taken.files, taken.skipped_paths), ({}, {"config.yaml": "no stricter redaction"}))

    def test_a_file_that_cannot_be_redacted_is_skipped(self) -> None:
        self.write("a")
        for redact in (
            lambda text, strict: None,
            lambda text, strict: b"x",
            lambda text, strict: 1 / 0,
            lambda text, strict: (_ for _ in ()).throw(RecursionError()),
        ):
            with self.subTest(redact=redact):
                self.skips("redaction failed", "a", redact=redactor(redact))

    def test_without_redaction_nothing_is_read(self) -> None:
        self.write("a")
        with mock.patch.object(os, "open", side_effect=AssertionError):
            self.skips("no redaction", "a", redact=None)

    def test_files_appear_in_the_order_of_the_calls(self) -> None:
        for name in "abcd":
            self.write(name)
        calls = [search({"files": ["d", "./c", "b"]}), read("b"), read("a")]
        self.assertEqual(list(self.take(calls=calls).files), ["b", "a", "d", "c"])

    def test_names_take_the_case_of_the_disk_where_case_means_nothing(self) -> None:
        self.write("Src/Auth.PY")
        taken = self.take("./SRC/auth.py", "src/AUTH.py", fold_case=True)
        self.assertEqual(list(taken.files), ["Src/Auth.PY"])

    def test_only_five_hundred_absences_are_explained(self) -> None:
        taken = self.take(*(f"f{number}" for number in range(600)))
        self.assertEqual(taken.skipped, {"not found": 600})
        self.assertEqual(len(taken.skipped_paths), 500)

    def test_what_lies_outside_is_counted_and_not_named(self) -> None:
        taken = self.take("../x", "/etc/passwd")
        self.assertEqual(taken.skipped, {"outside the folder": 2})
        self.assertEqual(taken.skipped_paths, {})

    def test_a_folder_that_is_gone_costs_nothing(self) -> None:
        os.rmdir(self.root)
        self.skips("not found", "a")

    def test_names_of_any_shape_are_skipped(self) -> None:
        taken = self.take("a\0b", "\ud800", "a" * 10_000, "/".join("a" * 3000), "\n", "*", "a/" * 500 + "b")
        self.assertEqual(taken.files, {})

    # links, devices, races

    @POSIX_ONLY
    def test_pipes_devices_and_sockets_are_never_opened(self) -> None:
        os.mkfifo(os.path.join(self.root, "pipe"))
        for name, device in (("zero", "/dev/zero"), ("null", "/dev/null"), ("tty", "/dev/tty")):
            os.symlink(device, os.path.join(self.root, name))
        self.skips("not a regular file", "pipe")
        self.skips("link out of the folder", "zero", "null", "tty")

    @POSIX_ONLY
    def test_a_device_as_folder_is_skipped(self) -> None:
        taken = snapshot.take_snapshot(
            [read("zero"), read("null")], Workspace("/dev"), redact=AS_IT_IS, deadline=time.monotonic() + 5
        )
        self.assertEqual(taken.skipped, {"not a regular file": 2})

    @POSIX_ONLY
    def test_links_out_of_the_folder_are_skipped(self) -> None:
        os.mkdir(self.outside)
        Path(self.outside, "x").write_text("secret")
        os.symlink(self.outside, os.path.join(self.root, "d"))
        os.symlink("../outside/x", os.path.join(self.root, "f"))
        os.symlink("d/x", os.path.join(self.root, "g"))
        os.symlink("/nowhere", os.path.join(self.root, "h"))
        os.mkdir(self.root + "x")
        os.symlink(self.root + "x", os.path.join(self.root, "i"))
        for by_name in (False, True):
            with self.walking(by_name):
                self.skips("link out of the folder", "d/x", "f", "g", "h", "i", "i/y")

    @POSIX_ONLY
    def test_a_file_behind_links_is_kept_once_under_its_own_name_and_the_links_are_known(self) -> None:
        self.write("real/a", "one")
        self.write("real/deep/c", "three")
        for link, target in (("link", "real"), ("b", "link/a"), ("real/again", "../real"), ("self", ".")):
            os.symlink(target, os.path.join(self.root, link))
        for by_name in (False, True):
            with self.subTest(by_name=by_name):
                with self.walking(by_name):
                    taken = self.take("link/a", "b", "real/a", "link/again/deep/c", "self/link/a", "link/none")
                self.assertEqual(set(taken.files), {"real/a", "real/deep/c"})
                self.assertEqual(taken.skipped_paths, {"link/none": "not found"})
                links = {"link": "real", "b": "real/a", "real/again": "real", "self": ""}
                self.assertEqual(taken.links, links)

    @POSIX_ONLY
    def test_a_way_that_leaves_the_folder_and_comes_back_is_one_link(self) -> None:
        self.write("a", "one")
        os.symlink(self.root, self.outside)
        os.symlink(self.outside, os.path.join(self.root, "out"))
        taken = self.take("out/a")
        self.assertEqual((set(taken.files), taken.links), ({"a"}, {"out": ""}))

    @POSIX_ONLY
    def test_a_file_that_is_read_by_two_names_takes_its_room_once(self) -> None:
        text = "x" * (500 * 1024)
        for number in range(16):
            self.write(f"real/{number}", text)
        os.symlink("real", os.path.join(self.root, "link"))
        names = [f"{folder}/{number}" for number in range(16) for folder in ("link", "real")]
        self.assertEqual(len(self.take(*names).files), 16)

    @POSIX_ONLY
    def test_an_ordinary_link_to_a_skipped_file_is_skipped(self) -> None:
        for name in (".env", "d/id_rsa", ".h/x", "config.yaml"):
            self.write(name, "k")
        for name, target in (("a", ".env"), ("b", "d/id_rsa"), ("c", ".h")):
            os.symlink(target, os.path.join(self.root, name))
        for by_name in (False, True):
            with self.subTest(by_name=by_name):
                with self.walking(by_name):
                    self.assertEqual(
                        self.take("a", "b", "c/x").skipped_paths,
                        {".env": "hidden", "d/id_rsa": "secret name", ".h/x": "hidden"},
                    )
        os.symlink("config.yaml", os.path.join(self.root, "e"))
        self.assertEqual(
            self.take("e", redact=redactor(lambda text, strict: str(strict))).files["config.yaml"].text, "True"
        )

    @POSIX_ONLY
    def test_links_in_a_circle_end(self) -> None:
        os.symlink("b", os.path.join(self.root, "a"))
        os.symlink("a", os.path.join(self.root, "b"))
        self.assertEqual(self.take("a", "b/c").files, {})

    @POSIX_ONLY
    def test_a_file_swapped_for_a_link_before_it_is_opened_is_not_read(self) -> None:
        for by_name in (False, True):
            with self.subTest(by_name=by_name):
                self.write("a", "plain")
                Path(self.outside).write_text("secret")
                with self.walking(by_name), self.before_open("a", lambda full: swap(full, self.outside)) as opened:
                    self.assertEqual(self.take("a").files, {})
                self.assertEqual([os.path.isabs(path) for path in opened], [by_name])
                os.remove(os.path.join(self.root, "a"))

    @POSIX_ONLY
    def test_a_folder_swapped_for_a_link_before_its_file_is_opened_is_not_read(self) -> None:
        os.mkdir(self.outside)
        Path(self.outside, "a").write_text("secret")
        for by_name in (False, True):
            with self.subTest(by_name=by_name):
                self.write("d/a", "plain")

                def move(full: str) -> None:
                    shutil.rmtree(os.path.join(self.root, "d"))
                    os.symlink(self.outside, os.path.join(self.root, "d"))

                with self.walking(by_name), self.before_open("a", move) as opened:
                    self.assertEqual(self.take("d/a").files, {})
                self.assertEqual([os.path.isabs(path) for path in opened], [by_name])
                os.remove(os.path.join(self.root, "d"))

    @POSIX_ONLY
    def test_a_file_swapped_for_another_before_it_is_opened_is_not_read(self) -> None:
        self.write("a", "plain")
        self.write("b", "other")

        def replace(full: str) -> None:
            os.replace(os.path.join(self.root, "b"), os.path.join(self.root, "a"))

        with self.before_open("a", replace) as opened:
            self.skips("changed while read", "a")
        self.assertEqual(len(opened), 1)

    @POSIX_ONLY
    def test_a_file_swapped_for_a_pipe_does_not_block(self) -> None:
        self.write("a", "plain")

        def replace(full: str) -> None:
            os.remove(os.path.join(self.root, "a"))
            os.mkfifo(os.path.join(self.root, "a"))

        with self.before_open("a", replace) as opened:
            self.assertEqual(self.take("a", seconds=5).files, {})
        self.assertEqual(len(opened), 1)

    def test_a_file_that_grows_while_it_is_read_is_not_kept(self) -> None:
        full = self.write("a", "x" * 100)
        real = os.read

        def grow(descriptor: int, count: int) -> bytes:
            if os.path.getsize(full) == 100:
                with open(full, "ab") as file:
                    file.write(b"y")
            return real(descriptor, count)

        with mock.patch.object(os, "read", grow):
            self.skips("changed while read", "a")

    # time

    def test_ten_thousand_names_end_at_the_deadline(self) -> None:
        for number in range(50):
            self.write(f"f{number}")

        def slow(text: str, strict: bool) -> str:
            ticks.append(1)
            return text

        ticks: list[int] = []
        names = [f"f{number}" for number in range(10_000)]
        taken = snapshot.take_snapshot(
            [search({"files": names})],
            Workspace(self.root),
            redact=redactor(slow),
            deadline=10,
            now=lambda: float(len(ticks)),
        )
        self.assertEqual(len(taken.files), 10)
        self.assertEqual(taken.skipped, {"out of time": 9_990})

    def test_ten_thousand_names_of_nothing_take_little_time(self) -> None:
        started = time.perf_counter()
        taken = self.take(*(f"d{number % 99}/f{number}" for number in range(10_000)))
        self.assertEqual(taken.skipped, {"not found": 10_000})
        self.assertLess(time.perf_counter() - started, 5)

    def test_a_deadline_that_never_comes_is_a_deadline(self) -> None:
        self.write("a")
        self.assertEqual(set(self.take("a", seconds=float("inf")).files), {"a"})

    def test_a_deadline_in_the_past_reads_nothing(self) -> None:
        self.write("a")
        self.skips("out of time", "a", seconds=-1)

    def test_a_read_that_hangs_is_left_behind(self) -> None:
        for name in "abc":
            self.write(name)
        stuck, release = threading.Event(), threading.Event()
        real = os.read
        self.addCleanup(release.set)

        def hang(descriptor: int, count: int) -> bytes:
            if not stuck.is_set() and os.fstat(descriptor).st_ino == os.stat(os.path.join(self.root, "b")).st_ino:
                stuck.set()
                release.wait(20)
            return real(descriptor, count)

        with mock.patch.object(os, "read", hang):
            started = time.monotonic()
            taken = self.take("a", "b", "c", seconds=1)
            self.assertLess(time.monotonic() - started, 5)
        self.assertTrue(stuck.is_set())
        self.assertEqual(list(taken.files), ["a"])
        self.assertEqual(taken.skipped_paths, {"b": "out of time", "c": "out of time"})

    def test_what_is_read_too_late_is_not_added(self) -> None:
        for name in "ab":
            self.write(name)
        release = threading.Event()
        self.addCleanup(release.set)
        readers: list[threading.Thread] = []

        def wait(text: str, _: bool) -> str:
            readers.append(threading.current_thread())
            release.wait(20)
            return text

        taken = self.take("a", "b", redact=redactor(wait), seconds=1)
        release.set()
        readers[0].join(20)
        self.assertEqual((len(readers), readers[0].is_alive()), (1, False))
        self.assertEqual((taken.files, taken.skipped), ({}, {"out of time": 2}))

    def test_no_descriptor_stays_open(self) -> None:
        for number in range(150):
            self.write(f"d{number}/e/a")
        before = open_descriptors()
        self.assertEqual(len(self.take(*(f"d{number}/e/a" for number in range(150))).files), 150)
        self.assertEqual(open_descriptors(), before)

    # what the cases above share

    def walking(self, by_name: bool) -> Any:
        """Let this be a platform that cannot open relative to a folder."""
        return mock.patch.object(os, "supports_dir_fd", frozenset()) if by_name else contextlib.nullcontext()

    @contextlib.contextmanager
    def before_open(self, name: str, act: Callable[[str], None]) -> Iterator[list[str]]:
        """Do something between the check and the opening of a file of this name, once; tell by which path."""
        real, done = os.open, []

        def opening(path: Any, flags: int, *rest: Any, **more: Any) -> int:
            if os.path.basename(path) == name and not done:
                done.append(path)
                act(path if os.path.isabs(path) else os.path.join(self.root, path))
            return real(path, flags, *rest, **more)

        able = {*os.supports_dir_fd, opening} if real in os.supports_dir_fd else os.supports_dir_fd
        with mock.patch.object(os, "open", opening), mock.patch.object(os, "supports_dir_fd", able):
            yield done


def swap(full: str, target: str) -> None:
    os.remove(full)
    os.symlink(target, full)


def open_descriptors() -> int:
    """Count this process's open files, 0 where the platform does not tell."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        if os.path.isdir(folder):
            return len(os.listdir(folder))
    return 0


def hermes_redactor(function: Any) -> Redactor | None:
    """What a Hermes with this `redact_sensitive_text` gives."""
    module = ModuleType("agent.redact")
    module.redact_sensitive_text = function  # type: ignore[attr-defined]
    with mock.patch.dict(sys.modules, {"agent": ModuleType("agent"), "agent.redact": module}):
        return snapshot.hermes_redactor()


def redact_of_0_19(text: str, *, force: bool = False, file_read: bool = False) -> str:
    return f"{text} {force} {file_read}"


def redact_of_0_22(text: str, *, force: bool = False, file_read: bool = False, secret_file: bool = False) -> str:
    return f"{text} {force} {file_read} {secret_file}"


class HermesRedactorTest(unittest.TestCase):
    """How Hermes's own redaction is asked."""

    def redactor(self, function: Any) -> Redactor:
        found = hermes_redactor(function)
        assert found is not None
        return found

    def test_without_hermes_there_is_no_redactor(self) -> None:
        with mock.patch.dict(sys.modules, {"agent": None, "agent.redact": None}):
            self.assertIsNone(snapshot.hermes_redactor())

    def test_file_contents_are_asked_for_and_the_switch_is_respected(self) -> None:
        found = self.redactor(redact_of_0_22)
        self.assertTrue(found.strict)
        self.assertEqual(found("a", False), "a False True False")
        self.assertEqual(found("a", True), "a False True True")

    def test_a_hermes_without_the_stricter_mode_says_so_and_is_asked_without_it(self) -> None:
        found = self.redactor(redact_of_0_19)
        self.assertFalse(found.strict)
        self.assertEqual(found("a", True), "a False True")

    def test_a_hermes_from_before_the_mode_for_files_is_asked_without_any(self) -> None:
        found = self.redactor(lambda text: text + "!")
        self.assertEqual((found.strict, found("a", False), found("a", True)), (False, "a!", "a!"))

    def test_a_hermes_without_redaction_gives_none(self) -> None:
        self.assertIsNone(hermes_redactor(None))


class SecretsTableTest(unittest.TestCase):
    """What docs/SECRETS.md promises is what the probe expects to measure."""

    def test_the_documented_table_is_the_expected_one(self) -> None:
        probe = self.probe()
        rows = [
            line.strip("| ").split(" | ")
            for line in (REPO / "docs" / "SECRETS.md").read_text("utf-8").splitlines()
            if line.startswith("| ")
        ][1:]
        columns = [
            ("0.19.0", "a.py"),
            ("0.22.2.post1", "a.py"),
            ("0.19.0", "config.yaml"),
            ("0.22.2.post1", "config.yaml"),
        ]
        for place, (version, name) in enumerate(columns, start=1):
            documented = {row[0]: row[place].strip("*") for row in rows}
            expected = {kind: fate.partition(":")[0] for kind, fate in probe.expected(version, name).items()}
            with self.subTest(version=version, name=name):
                self.assertEqual(documented, expected)

    def test_nine_kinds_are_planted_and_none_stands_in_the_source(self) -> None:
        planted = self.probe().planted_secrets()
        source = (REPO / "tests" / "lanes" / "secrets_probe.py").read_text("utf-8")
        self.assertEqual(len(planted), 9)
        for line, secret in planted.values():
            with self.subTest(line=line, secret=secret):
                self.assertIn(secret, line)
                self.assertNotIn(secret, source)

    def test_without_hermes_every_planted_secret_is_skipped(self) -> None:
        with mock.patch.dict(sys.modules, {"agent": None, "agent.redact": None}):
            self.assertEqual(set(self.probe().measure().values()), {"skipped: no redaction"})

    def probe(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location("secrets_probe", REPO / "tests" / "lanes" / "secrets_probe.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


if __name__ == "__main__":
    unittest.main()
