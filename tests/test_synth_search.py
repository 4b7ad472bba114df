"""Reads and searches are answered from a snapshot as real Hermes answered them."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import threading
import unittest
from pathlib import Path
from typing import Any, Mapping

from tests.support import load_plugin, temp_folder

load_plugin()
from session_cassettes.cassette_store import Call, Recorder, Snapshot, SnapshotFile  # noqa: E402
from session_cassettes.middleware import learn  # noqa: E402
from session_cassettes.snapshot import IgnoreRules, Workspace  # noqa: E402
from session_cassettes.synth_search import Miss, Synthesizer, coerce_args, learn_shapes  # noqa: E402

Case = dict[str, dict[str, Any]]

VERSIONS = {"0.19": "0.19.0", "0.20": "0.20.1", "0.22": "0.22.2"}

#: The files of /ws, oldest first, in a git work tree that ignores *.log.
FILES = {
    "server/auth.py": "AUTH_PORT = 8080\n\ndef handler():\n    return AUTH_PORT\n",
    "server/main.py": "import auth\nprint(auth.handler())  \nno newline at end   ",
    "docs/guide one.md": "auth guide\n",
    "docs/guide.md": "Auth lives in server/auth.py\nsee -5- there\n",
    "empty.txt": "",
    "crlf.txt": "one auth\r\ntwo auth\r\n",
    "bom.txt": "\ufeffauth bom\nx\n",
    "blank.txt": "x\n\n\n",
    "codes.txt": "red \x1b[31mauth\x1b[0m\nbell\x07 \x1b]0;title\x07end\n\x1b]0;gone\x07\nlone\rauth\n",
    "long.txt": "a" * 2100 + "\nshort\n",
    "build/out.log": "auth in a build\n",
    "note.log": "auth in a log\n",
}

#: What each Hermes said, for each tool: a list of arguments, and the answers by the names of those that gave them.
RECORDED: dict[str, list[Case]] = json.loads(
    Path(__file__).with_name("data_synth_search.json").read_text(encoding="utf-8")
)

#: A tree whose names tell globs apart; none of them a name that the live tool drops from its rows.
GLOB_TREE = ("a", "b", "é", "ab", "a-b", "axb", "aé", "b]", "{b}", "a,b", "!a", "[x", "#a", "p/b", "p/x/b", "p/é/a")
GLOB_TREE += tuple(f"{folder}/{name}" for folder in ("a.d", "é.d", "b.d/a.d", "x") for name in ("a", "b", "é", "axb"))
GLOB_ATOMS = (
    *"abéx?*/[]{},\\!-# ",
    *("**", "**/", "/**", "[!a]", "[ab]", "[a-b]", "[^é]", "[é]", "{a,b}", "[!x]", "[]a]", "[a-]", "p/", ".d"),
)
#: glob, file, whether `--glob` lets it in: ripgrep 13 and 15 agree on these, and few others who read globs do
GLOBS = (
    ("?", "é", False),  # one byte
    ("??", "é", True),
    ("[!a]", "é", False),
    ("[!a][!a]", "é", True),
    ("[é]", "é", False),
    ("a?", "aé", False),
    ("![!x]", "é", True),
    ("/a[!x]b", "a/b", True),  # a set may be a slash, a ? may not
    ("a[!x]b", "a/b", True),
    ("a[.-0]b", "a/b", True),
    ("/a?b", "a/b", False),
    ("/a*b", "a/b", False),
    ("[[!x]", "[", True),  # [ is a character of a set
    ("[[!x]", "a", False),
    ("[-[]", "-", True),
    ("[[a-b]*", "ab", True),
    ("[\\]", "\\", True),  # so is the backslash
    ("[a-]", "-", True),
    ("{a,b}/*", "a/b", True),
    ("a/**", "a/b", True),
    ("**/b", "b", True),
    ("a**b", "a/b", False),
    ("!", "a", False),  # shuts out everything
)


# --- helpers ------------------------------------------------------------------


def snapshot_of(texts: Mapping[str, str], skipped: Mapping[str, str] | None = None) -> Any:
    files = {
        path: SnapshotFile(text, len(text.encode()), 1000.0 + age, path.endswith(".log"))
        for age, (path, text) in enumerate(texts.items())
    }
    return Snapshot(files, {}, dict(skipped or {}))


def synthesizer(
    hermes: str = "0.22.2",
    search: str = "rg",
    texts: Mapping[str, str] = FILES,
    *,
    skipped: Mapping[str, str] | None = None,
    git: bool = True,
    root: str = "/ws",
    learned: Mapping[str, Any] | None = None,
    **host: Any,
) -> Any:
    place = Workspace(root, windows=host.get("platform") == "win32", fold_case=host.get("fold_case", False))
    return Synthesizer(
        snapshot_of(texts, skipped),
        place,
        Recorder(**{"hermes": hermes, "platform": "linux", "search": search, "git": git, **host}),
        {"rg_major": 13} if learned is None else learned,
    )


def search(answerer: Any, pattern: str, **args: Any) -> dict[str, Any]:
    return json.loads(answerer.answer("search_files", {"pattern": pattern, **args}))


# --- tests --------------------------------------------------------------------


class RecordedAnswersTest(unittest.TestCase):
    maxDiff = None

    def check(self, tool: str, backends: tuple[str, ...]) -> None:
        made = {
            f"{version} {backend}".strip(): synthesizer(VERSIONS[version], backend or "rg")
            for version in VERSIONS
            for backend in backends
        }
        for case in RECORDED[tool]:
            for names, expected in case["answers"].items():
                for name in names.split(", "):
                    with self.subTest(args=case["args"], hermes=name):
                        self.assertEqual(made[name].answer(tool, case["args"]), expected)

    def test_reads_are_answered_as_each_version_did(self) -> None:
        self.check("read_file", ("",))

    def test_searches_are_answered_as_each_version_and_engine_did(self) -> None:
        self.check("search_files", ("rg", "grep"))


class ReadTest(unittest.TestCase):
    def read(self, text: str, hermes: str = "0.22.2", size: int | None = None, **args: Any) -> Any:
        file = SnapshotFile(text, len(text.encode()) if size is None else size)
        made = Synthesizer(Snapshot({"a.txt": file}), Workspace("/ws"), Recorder(hermes, "linux", "rg"))
        return json.loads(made.answer("read_file", {"path": "a.txt", **args}))

    def test_a_page_over_the_budget_ends_with_a_whole_line_and_says_where_to_go_on(self) -> None:
        out = self.read(("x" * 1499 + "\n") * 100)
        self.assertEqual(out["content"].count("\n") + 1, 66)
        self.assertEqual((out["truncated"], out["truncated_by"], out["next_offset"]), (True, "bytes", 67))
        self.assertEqual(list(out)[-3:], ["truncated_by", "next_offset", "hint"])
        self.assertIn("after 66 line(s) (showing lines 1-66 of 100). Use offset=67", out["hint"])

    def test_a_wide_cut_read_of_a_large_file_is_remarked_on(self) -> None:
        out = self.read("x\n" * 3000, size=512_001, limit=500)
        self.assertIn("This file is large (512,001 bytes).", out["_hint"])
        self.assertNotIn("_hint", self.read("x\n" * 3000, size=512_001, limit=200))

    def test_the_default_page_is_500_lines_before_0_22_and_2000_since(self) -> None:
        for hermes, last in (("0.19.0", 500), ("0.20.1", 500), ("0.22.2", 2000), ("", 2000)):
            with self.subTest(hermes):
                out = self.read("x\n" * 2500, hermes)
                self.assertIn(f"(showing 1-{last} of 2500 lines)", out["hint"])

    def test_merge_conflicts_are_counted_since_0_22(self) -> None:
        text = "a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"
        self.assertEqual(self.read(text)["conflict_blocks"], 1)
        self.assertNotIn("conflict_blocks", self.read(text, "0.19.0"))

    def test_long_lines_are_flagged_since_0_22(self) -> None:
        self.assertIs(self.read("x" * 2001 + "\n")["truncated_lines"], True)
        self.assertNotIn("truncated_lines", self.read("x" * 2001 + "\n", "0.20.1"))

    def test_a_text_with_a_binary_ending_is_refused_by_its_name(self) -> None:
        made = synthesizer(texts={"a.dat": "text\n"})
        self.assertEqual(
            json.loads(made.answer("read_file", {"path": "a.dat"})),
            {
                "error": "Cannot read binary file 'a.dat' (.dat). Use vision_analyze for images, "
                "or terminal to inspect binary files."
            },
        )


class MissTest(unittest.TestCase):
    def missed(self, answerer: Any, tool: str, args: Mapping[str, Any]) -> str:
        with self.assertRaises(Miss) as caught:
            answerer.answer(tool, args)
        return caught.exception.reason

    def test_a_read_the_snapshot_cannot_answer_says_why(self) -> None:
        made = synthesizer(skipped={"key.pem": "secret name"})
        for path, reason in (
            ("../etc/passwd", "outside the workspace"),
            ("nope.py", "not in the snapshot"),
            ("key.pem", "not in the snapshot (secret name)"),
            ("server", "a folder"),
            ("empty.txt/", "not in the snapshot"),
            ("", "no path is given"),
        ):
            with self.subTest(path):
                self.assertIn(reason, self.missed(made, "read_file", {"path": path}))

    def test_a_search_below_what_is_not_kept_is_a_miss(self) -> None:
        made = synthesizer(skipped={"key.pem": "secret name"})
        for path in ("..", "/", "lib", "key.pem", "server lib", "~/x"):
            with self.subTest(path):
                self.missed(made, "search_files", {"pattern": "x", "path": path})

    def test_documents_that_hermes_converts_are_misses(self) -> None:
        made = synthesizer(texts={"a.ipynb": "{}", "a.pdf": "%PDF"})
        self.missed(made, "read_file", {"path": "a.ipynb"})
        self.missed(made, "read_file", {"path": "a.pdf"})
        plain = synthesizer("0.19.0", texts={"a.pdf": "%PDF"})
        self.assertIn("1|%PDF", plain.answer("read_file", {"path": "a.pdf"}))

    def test_what_looks_like_an_option_is_a_miss(self) -> None:
        made = synthesizer()
        self.missed(made, "search_files", {"pattern": "-i"})
        self.missed(made, "search_files", {"pattern": "auth", "file_glob": "-x"})

    def test_reading_from_the_end_is_a_miss_since_0_23(self) -> None:
        args = {"path": "server/auth.py", "offset": -2}
        self.missed(synthesizer("0.23.1"), "read_file", args)
        self.assertIn("1|AUTH", synthesizer("0.22.2").answer("read_file", args))

    def test_an_error_whose_wording_depends_on_ripgrep_is_a_miss_while_its_version_is_unknown(self) -> None:
        self.missed(synthesizer(learned={}), "search_files", {"pattern": "(auth"})

    def test_patterns_for_the_grep_of_macos_are_misses_unless_they_are_plain(self) -> None:
        made = synthesizer(search="grep", platform="darwin")
        self.missed(made, "search_files", {"pattern": "a|b", "path": "server"})
        self.assertEqual(search(made, "def handler", path="server")["total_count"], 1)

    def test_other_tools_are_misses(self) -> None:
        self.missed(synthesizer(), "terminal", {"command": "ls"})

    def test_no_arguments_raise_anything_but_a_miss(self) -> None:
        odd: tuple[Any, ...] = (
            *(None, [], {}, 1.5, float("inf"), float("nan"), 10**30, -(10**30), True, b"x"),
            *(
                "",
                " ",
                "\0",
                "\n",
                "\ud800",
                "a\udc80",
                "1e400",
                "-1",
                "nan",
                "[",
                "[]a-",
                "{",
                "\\",
                "!",
                "#",
                "~",
                "//",
            ),
        )
        keys = ("pattern", "path", "target", "file_glob", "limit", "offset", "output_mode", "context", "order")
        bases = ({"pattern": "auth", "path": "server/auth.py"}, {"pattern": "*", "target": "files"}, {"pattern": "ZZ"})
        for made in (synthesizer("0.19.0", "grep"), synthesizer("0.22.2", "grep"), synthesizer()):
            for tool in ("read_file", "search_files"):
                for args in ({**base, key: value} for base in bases for key in keys for value in odd):
                    with self.subTest(tool=tool, args=args):
                        try:
                            self.assertIsInstance(made.answer(tool, args), str)
                        except Miss as miss:
                            self.assertNotIn("the replay could not work out this call", miss.reason)


class SearchTest(unittest.TestCase):
    def test_a_pattern_that_explodes_elsewhere_ends_at_once(self) -> None:
        made = synthesizer(texts={"a.txt": "a" * 5000 + "!\n"})
        self.assertEqual(search(made, r"(a+)+b|(a|aa)+$")["total_count"], 0)

    def test_ignored_files_are_found_by_name_or_by_a_glob_only(self) -> None:
        made = synthesizer()
        self.assertNotIn("log", json.dumps(search(made, "in a log", file_glob="!*.md").get("matches", "")))
        self.assertEqual(
            search(made, "auth", file_glob="*.log", output_mode="count")["counts"],
            {"./build/out.log": 1, "./note.log": 1},
        )
        self.assertEqual(search(made, "auth", path="note.log")["total_count"], 1)

    def test_a_folder_whose_files_are_all_ignored_counts_as_ignored_itself(self) -> None:
        texts = {"gen/a.log": "auth\n", "gen/b.log": "auth\n", "top.py": "auth\n"}
        made = synthesizer(texts=texts)
        self.assertEqual(search(made, "auth", file_glob="*.log")["total_count"], 0)
        self.assertEqual(search(made, "auth", path="gen")["total_count"], 2)

    def test_what_a_rule_with_a_slash_hides_is_not_certain_where_a_search_begins_below_it(self) -> None:
        files = {"docs/a.md": SnapshotFile("hit\n", 4), "docs/b.md": SnapshotFile("hit\n", 4, 0.0, True)}
        made = Synthesizer(Snapshot(files), Workspace("/ws"), Recorder("0.22.2", "linux", "rg"), {"rg_major": 13})
        for more in ({}, {"output_mode": "files_only"}, {"path": "/ws/docs"}):
            with self.subTest(more=more), self.assertRaisesRegex(Miss, "where a search begins"):
                search(made, "hit", **{"path": "docs", **more})
        self.assertEqual(search(made, "hit")["total_count"], 1)
        self.assertEqual(search(made, "hit", path="docs/b.md")["total_count"], 1)

    def test_names_of_files_that_were_not_kept_are_listed_but_secrets_withheld(self) -> None:
        made = synthesizer(skipped={"logo.png": "binary", ".env": "hidden", "lib": "not a regular file"}, git=False)
        self.assertIn("./logo.png", search(made, "*.png", target="files")["files"])
        listed = search(made, "*.env", target="files")
        self.assertEqual(listed["total_count"], 1)
        self.assertTrue(listed["_omitted"].startswith("1 result(s) omitted"))

    def test_probes_name_the_files_since_0_22(self) -> None:
        self.assertEqual(
            search(synthesizer("0.20.1"), "HANDLER", path="server")["warning"],
            "0 exact matches, but 2 case-insensitive match(es) in 2 file(s) — the pattern's casing may be wrong.",
        )
        self.assertIn(
            "in 2 file(s): server/auth.py, server/main.py —", search(synthesizer(), "HANDLER", path="server")["warning"]
        )

    def test_context_of_two_hits_is_joined_where_it_meets(self) -> None:
        made = synthesizer(texts={"a.txt": "".join(f"line {n}\n" for n in range(1, 21))})
        rows = [
            m.split(":")[0].strip() for m in search(made, "line (3|6|15)$", context=1)["matches_text"].split("\n")[1:]
        ]
        self.assertEqual(rows, ["2", "3", "4", "5", "6", "7", "14", "15", "16"])

    def test_a_case_blind_disk_finds_a_file_under_any_spelling(self) -> None:
        made = synthesizer(fold_case=True)
        self.assertIn("AUTH_PORT", made.answer("read_file", {"path": "Server/AUTH.py"}))
        self.assertEqual(search(made, "def", path="SERVER/auth.py")["matches"][0]["path"], "SERVER/auth.py")

    def test_on_windows_ripgrep_joins_with_backslashes(self) -> None:
        made = synthesizer(platform="win32", root="C:\\ws")
        self.assertEqual(search(made, "def", path="server")["matches"][0]["path"], "server\\auth.py")
        self.assertEqual(search(made, "def")["matches"][0]["path"], ".\\server\\auth.py")
        self.assertEqual(search(made, "def", path="/c/ws/server")["matches"][0]["path"], "C:/ws/server\\auth.py")
        made = synthesizer(search="grep", platform="win32", root="C:\\ws")
        self.assertEqual(search(made, "def")["matches"][0]["path"], "/c/ws/server/auth.py")

    def test_oddities_of_gnu_grep_are_known(self) -> None:
        made = synthesizer("0.19.0", "grep", {"a.txt": "x{y\n{z\n"})
        self.assertEqual(
            search(made, "x[", path="a.txt"),
            {"total_count": 0, "error": "Search failed: grep: Invalid regular expression"},
        )
        self.assertEqual(search(made, "\\{", path="a.txt")["total_count"], 2)
        self.assertEqual(search(made, "^\\{", path="a.txt")["total_count"], 1)

    def test_grep_finds_nothing_under_a_dot_before_0_20(self) -> None:
        old = synthesizer("0.19.0", "grep")
        self.assertEqual(search(old, "auth"), {"total_count": 0})
        self.assertEqual(search(old, "auth", path="./server"), {"total_count": 0})

    def test_the_order_by_time_depends_on_ripgrep(self) -> None:
        args = {"target": "files", "order": "modified", "path": "server"}
        self.assertIn("requires ripgrep 14", search(synthesizer(), "*.py", **args)["error"])
        self.assertEqual(
            search(synthesizer(learned={"rg_major": 14}), "*.py", **args)["files"], ["server/main.py", "server/auth.py"]
        )
        with self.assertRaises(Miss):
            search(synthesizer(learned={}), "*.py", **args)

    def test_sixteen_threads_get_the_answer_of_one(self) -> None:
        calls = [
            ("search_files", {"pattern": p, "path": path})
            for p in ("auth", r"\d+", "A|b", "HANDLER")
            for path in (".", "server")
        ] + [("read_file", {"path": path}) for path in FILES]
        expected = [synthesizer().answer(*call) for call in calls]
        made, wrong = synthesizer(), []

        def work() -> None:
            for _ in range(5):
                for call, answer in zip(calls, expected):
                    if made.answer(*call) != answer:
                        wrong.append(call)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class GlobTest(unittest.TestCase):
    """One reader of globs, for `file_glob` and for the lines of ignore files."""

    def let_in(self, answerer: Any, glob: str) -> set[str] | None:
        """Return the files that a search with this glob sees; None for a miss."""
        try:
            found = search(answerer, "x", file_glob=glob, output_mode="files_only", limit=1000)
        except Miss:
            return None
        return {path.removeprefix("./") for path in found.get("files", [])}

    def ripgrep(self, folder: Path, *options: str) -> set[str] | None:
        """Return the files that ripgrep lists; None for an error."""
        done = subprocess.run(
            ["rg", "--no-config", "--files", *options], cwd=folder, capture_output=True, encoding="utf-8", check=False
        )
        return None if done.returncode == 2 else set(done.stdout.replace("\\", "/").split("\n")) - {"", ".ignore"}

    def glob_folder(self) -> Path:
        folder = temp_folder(self)
        for path in GLOB_TREE:
            if not (folder / path).parent.exists():
                (folder / path).parent.mkdir(parents=True)
            (folder / path).write_text("x\n")
        return folder

    def random_globs(self, seed: int) -> list[str]:
        """Return globs of which most mean something to every ripgrep."""
        rng = random.Random(seed)
        made = ("".join(rng.choice(GLOB_ATOMS) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))) for _ in range(300))
        return [glob for glob in made if not glob.startswith(("-", "#"))]

    def test_globs_mean_what_they_mean_to_ripgrep(self) -> None:
        for glob, path, wanted in GLOBS:
            with self.subTest(glob, path=path):
                let_in = self.let_in(synthesizer(texts={path: "x\n"}, git=False), glob)
                self.assertEqual(let_in, {path} if wanted else set())

    def test_a_glob_that_some_ripgrep_refuses_is_a_miss(self) -> None:
        for glob in ("[", "[b-a]", "{a", "a\\", "{a,{b}}", "a}", "\ud800"):
            with self.subTest(glob):
                self.assertIsNone(self.let_in(synthesizer(), glob))

    @unittest.skipUnless(shutil.which("rg"), "GLOBS WERE NOT CHECKED against ripgrep: it is not installed")
    def test_random_globs_let_in_what_ripgrep_lets_in(self) -> None:
        folder, made = self.glob_folder(), synthesizer(texts=dict.fromkeys(GLOB_TREE, "x\n"), git=False)
        compared = 0
        for glob in self.random_globs(1):
            mine = self.let_in(made, glob)
            if mine is not None:
                compared += 1
                with self.subTest(glob):
                    self.assertEqual(mine, self.ripgrep(folder, "--glob", glob))
        self.assertGreater(compared, 150)

    @unittest.skipUnless(shutil.which("rg"), "IGNORE RULES WERE NOT CHECKED against ripgrep: it is not installed")
    def test_random_lines_of_an_ignore_file_hide_what_they_hide_from_ripgrep(self) -> None:
        folder = self.glob_folder()
        for glob in self.random_globs(2)[:150]:
            (folder / ".ignore").write_text(glob + "\n", encoding="utf-8")
            rules = IgnoreRules({".ignore": glob}.get, lambda _: False)
            mine = {path for path in GLOB_TREE if not rules.ignored(path)}
            with self.subTest(glob):
                if "}" not in glob:  # which ripgrep 13 and newer ones read differently
                    self.assertEqual(mine, self.ripgrep(folder, "--no-require-git"))


class CoerceTest(unittest.TestCase):
    def test_defaults_and_spellings_of_one_call_become_equal(self) -> None:
        plain = coerce_args("search_files", {"pattern": "x"})
        for same in (
            {"path": "."},
            {"limit": "50"},
            {"limit": 50.0},
            {"target": "grep"},
            {"offset": -3},
            {"output_mode": "bogus"},
            {"context": "0"},
            {"file_glob": ""},
            {"order": "modified"},
            {"x": 1},
        ):
            with self.subTest(same):
                self.assertEqual(coerce_args("search_files", {"pattern": "x", **same}), plain)

    def test_calls_of_different_meaning_stay_different(self) -> None:
        plain = coerce_args("search_files", {"pattern": "x"})
        for other in (
            {"path": "./"},
            {"limit": 1},
            {"target": "files"},
            {"offset": 1},
            {"output_mode": "count"},
            {"context": 1},
            {"context": "1.5"},
            {"context": None},
            {"file_glob": "*"},
            {"pattern": "X"},
        ):
            with self.subTest(other):
                self.assertNotEqual(coerce_args("search_files", {"pattern": "x", **other}), plain)

    def test_a_blank_path_is_the_folder_since_0_22_only(self) -> None:
        for blank in ("", " ", None):
            self.assertEqual(coerce_args("search_files", {"pattern": "x", "path": blank}, "0.22.2")["path"], ".")
            self.assertEqual(coerce_args("search_files", {"pattern": "x", "path": blank}, "0.19.0")["path"], blank)

    def test_read_limits_depend_on_the_version_and_are_clamped(self) -> None:
        self.assertEqual(coerce_args("read_file", {"path": "a"}, "0.19.0"), {"path": "a", "offset": 1, "limit": 500})
        self.assertEqual(
            coerce_args("read_file", {"path": "a", "limit": "9999", "offset": "x"}, "0.22.2"),
            {"path": "a", "offset": 1, "limit": 2000},
        )
        self.assertEqual(coerce_args("read_file", {"path": "a", "offset": -5}, "0.23.5")["offset"], -5)

    def test_other_tools_keep_their_arguments(self) -> None:
        args = {"query": "x", "limit": "5"}
        self.assertEqual(coerce_args("web_search", args), args)


class NewerHermesTest(unittest.TestCase):
    """From 0.23 on an answer has a form that the recording shows, or one that every version has."""

    def made(self, *recorded: Call, hermes: str = "0.23.2") -> Any:
        return synthesizer(hermes, learned={"rg_major": 13, "shapes": learn_shapes(recorded)})

    def test_a_read_needs_a_recorded_read_of_its_form(self) -> None:
        whole = {"path": "server/auth.py"}
        older = synthesizer("0.22.2")
        for recorded, wanted, shown in (
            ((), whole, False),
            (({"path": "server/main.py"},), whole, True),
            (({"path": "server/main.py"},), {**whole, "limit": 1}, False),
            (({"path": "server/main.py", "limit": 1},), {**whole, "limit": 1}, True),
            (({"path": "server/main.py", "limit": 1},), whole, False),
        ):
            with self.subTest(recorded=recorded, wanted=wanted):
                calls = [Call("read_file", args, older.answer("read_file", args)) for args in recorded]
                if shown:
                    self.assertEqual(self.made(*calls).answer("read_file", wanted), older.answer("read_file", wanted))
                else:
                    with self.assertRaisesRegex(Miss, "no recorded result shows it"):
                        self.made(*calls).answer("read_file", wanted)
                self.made(*calls, hermes="0.22.9").answer("read_file", wanted)

    def test_a_recorded_read_in_another_form_teaches_only_that_one(self) -> None:
        other = Call("read_file", {"path": "x"}, '{"content": "1|x", "total_lines": 1, "next_offset": 2}')
        with self.assertRaises(Miss):
            self.made(other).answer("read_file", {"path": "server/auth.py"})

    def test_searches_are_answered_in_the_forms_that_every_version_has(self) -> None:
        made, older = self.made(), synthesizer("0.22.2")
        for args in (
            {"pattern": "def"},
            {"pattern": "*.py", "target": "files"},
            {"pattern": "def", "output_mode": "count"},
            {"pattern": "def", "output_mode": "files_only"},
        ):
            with self.subTest(args):
                self.assertEqual(made.answer("search_files", args), older.answer("search_files", args))
        with self.assertRaises(Miss):
            made.answer("search_files", {"pattern": "(auth"})  # the words of an error


class LearnTest(unittest.TestCase):
    def learned(self, hermes: str, backend: str, *calls: tuple[str, dict[str, Any]]) -> dict[str, str]:
        made = synthesizer(hermes, backend)
        recorded = [Call(tool, args, made.answer(tool, args)) for tool, args in calls]
        return learn(recorded, snapshot_of(FILES))

    def test_a_recorded_read_tells_the_family(self) -> None:
        read = ("read_file", {"path": "server/auth.py", "offset": 99})
        for name, hermes in VERSIONS.items():
            self.assertEqual(self.learned(hermes, "rg", read), {"family": name})

    def test_a_read_that_several_families_give_tells_nothing(self) -> None:
        self.assertEqual(self.learned("0.19.0", "rg", ("read_file", {"path": "server/auth.py"})), {})

    def test_a_recorded_search_tells_the_engine(self) -> None:
        for backend in ("rg", "grep"):
            self.assertEqual(self.learned("0.22.2", backend, ("search_files", {"pattern": "def"}))["search"], backend)

    def test_a_recorded_pattern_error_tells_the_ripgrep(self) -> None:
        self.assertEqual(self.learned("0.22.2", "rg", ("search_files", {"pattern": "(auth"})), {"rg_major": 13})

    def test_what_was_seen_wins_over_the_version(self) -> None:
        made = synthesizer("0.19.0", learned={"family": "0.22"})
        self.assertIn("not_found", made.answer("read_file", {"path": "server/auth.py"}))

    def test_results_of_any_shape_are_survived(self) -> None:
        calls = [
            Call("read_file", {"path": "server/auth.py"}, result)
            for result in (None, 5, "", "{", "[]", '{"content": 1}', {"content": "x"})
        ]
        self.assertEqual(learn(calls, snapshot_of(FILES)), {})


if __name__ == "__main__":
    unittest.main()
