"""What the names in a workspace tell: what is not there, folders, listings, and searches of a part."""

from __future__ import annotations

import json
import os
import unittest
import unittest.mock
from typing import Any, Mapping

from tests.support import load_plugin
from tests.test_hooks import QUESTION, HookCase

load_plugin()
from session_cassettes.cassette_store import Answered, Arm, Cassette, Facts, Name, Recorder, Snapshot  # noqa: E402
from session_cassettes.cassette_store import Call, CassetteError, SnapshotFile, dump_cassette, parse_cassette  # noqa: E402
from session_cassettes.middleware import Beyond, Replay, describe_path  # noqa: E402
from session_cassettes.snapshot import SkipReason, Workspace  # noqa: E402
from session_cassettes.suite.masks import read_masks  # noqa: E402
from session_cassettes.suite.known_names import KnownNames, locale_orders, may_hold, name_ending  # noqa: E402
from session_cassettes.synth_search import Miss, Synthesizer  # noqa: E402

FILE, FOLDER = Name("file", 9, 5.0), Name("folder", 0, 5.0)
TEXTS = {"app.py": "import os\nPORT = 8080\n", "src/main.py": "import app\n", "src/util.py": "def util():\n"}
NAMES: dict[str, Name] = {
    "README.md": FILE,
    "app.py": FILE,
    "build": Name("folder", 0, 4.0, ignored=True),
    "build/out.py": Name("file", 9, 4.0, ignored=True),
    "docs": FOLDER,
    "docs/guide.md": FILE,
    "docs/guides.md": FILE,
    "empty": FOLDER,
    "latest": Name("link"),
    "logo.png": Name("file", 9_000, 5.0),
    "nothing.txt": Name("file", 0, 5.0),
    "src": FOLDER,
    "src/main.py": FILE,
    "src/util.py": FILE,
    ".git": Name("folder", 0, 6.0, True, False, 40),
    ".github": Name("folder", 0, 6.0, True, False, 2),
    ".gitignore": Name("file", 20, 6.0, True),
    "credentials": Name("folder", 0, 6.0, inside=3),
}
#: As the names above, without what keeps questions open.
OPEN = {path: name for path, name in NAMES.items() if path != "credentials"}
SOURCES = {path: name for path, name in OPEN.items() if path not in ("README.md", "docs/guide.md", "docs/guides.md")}


def synthesizer(
    names: Mapping[str, Name] | None = NAMES,
    texts: Mapping[str, str] = TEXTS,
    whole: bool = False,
    skipped: Mapping[str, str] | None = None,
    hermes: str = "0.22.2",
    **host: Any,
) -> Synthesizer:
    files = {path: SnapshotFile(text, len(text), 5.0, False, ()) for path, text in texts.items()}
    recorder = Recorder(**{"hermes": hermes, "platform": "linux", "search": "rg", "git": True, **host})
    kept = Snapshot(files, skipped_paths=skipped or {}, names=names, whole=whole)
    return Synthesizer(kept, Workspace("/ws"), recorder, {"rg_major": 13}, read_masks, KnownNames)


class NamesCase(unittest.TestCase):
    def read(self, path: str, **more: Any) -> dict[str, Any]:
        return json.loads(synthesizer(**more).answer("read_file", {"path": path}))

    def search(self, made: Synthesizer, pattern: str, **args: Any) -> dict[str, Any]:
        return json.loads(made.answer("search_files", {"pattern": pattern, **args}))

    def missed(self, reason: str, tool: str, made: Synthesizer | None = None, **args: Any) -> None:
        with self.assertRaisesRegex(Miss, reason):
            (made or synthesizer()).answer(tool, args)


class Reading(NamesCase):
    def test_what_is_not_there_is_told_with_what_is_like_it(self) -> None:
        table = (
            ("0.19.0", "docs/guide.txt", "docs/guide.txt", ["docs/guide.md"]),
            ("0.19.0", "ap.py", "ap.py", ["./app.py"]),
            ("0.19.0", "/ws/appp.py", "/ws/appp.py", ["/ws/app.py"]),
            ("0.20.1", "src/mian.py", "src/mian.py", ["src/main.py", "src/util.py"]),
            ("0.22.2", "./src/nope.txt", "/ws/src/nope.txt", []),
            ("0.22.2", "READEM.md", "/ws/READEM.md", ["/ws/README.md"]),
            ("0.22.2", "nowhere/app.py", "/ws/nowhere/app.py", []),
            ("0.19.0", "nowhere/app.py", "nowhere/app.py", []),
        )
        for hermes, path, told, similar in table:
            with self.subTest(hermes=hermes, path=path):
                found = self.read(path, hermes=hermes)
                self.assertEqual(found["error"], f"File not found: {told}")
                self.assertEqual(found.get("similar_files", []), similar)
                self.assertEqual(found.get("not_found"), True if hermes == "0.22.2" else None)

    def test_the_answer_has_the_form_of_the_live_one(self) -> None:
        self.assertEqual(
            synthesizer().answer("read_file", {"path": "xyz"}),
            '{"content": "", "total_lines": 0, "file_size": 0, "truncated": false, "is_binary": false, '
            '"is_image": false, "error": "File not found: /ws/xyz", "not_found": true}',
        )

    def test_a_folder_is_told_as_one(self) -> None:
        self.assertEqual(self.read("docs", hermes="0.19.0")["error"], "File not found: docs")
        self.assertEqual(self.read("docs", hermes="0.19.0")["similar_files"], ["./docs"])
        self.assertIn(
            "Cannot read 'docs': not a regular file (directory, FIFO", self.read("docs", hermes="0.20.1")["error"]
        )
        self.assertIn("Cannot read '/ws/empty': not a regular", self.read("empty/")["error"])
        self.assertIn("Cannot read '/ws': not a regular", self.read(".")["error"])

    def test_a_file_below_a_file_is_not_there(self) -> None:
        self.assertEqual(self.read("app.py/x.py", hermes="0.19.0")["similar_files"], ["app.py/app.py"])
        self.assertEqual(self.read("app.py/x")["error"], "File not found: /ws/app.py/x")

    def test_what_is_there_without_a_text_is_a_miss(self) -> None:
        self.missed("not in the snapshot", "read_file", path="README.md")

    def test_an_empty_file_has_a_text(self) -> None:
        self.assertEqual(self.read("nothing.txt")["hint"], "File is empty (0 bytes).")
        self.assertEqual(self.read("nothing.txt", hermes="0.19.0")["content"], "1|")

    def test_an_empty_file_of_a_hidden_name_or_of_a_reason_has_none(self) -> None:
        names = {".env": Name("file", 0, 1.0, True), "a.txt": Name("file", 0, 1.0)}
        for path in names:
            with self.subTest(path=path), self.assertRaises(Miss):
                self.read(path, names=names, skipped={"a.txt": "changed"})

    def test_a_binary_is_refused_by_its_name(self) -> None:
        self.assertIn("Cannot read binary file 'logo.png' (.png)", self.read("logo.png")["error"])
        self.assertIn("Cannot read binary file 'nope.png' (.png)", self.read("nope.png")["error"])
        self.missed("converts", "read_file", path="nope.pdf")

    def test_what_is_not_known_is_a_miss(self) -> None:
        for path in (".git/config", "credentials/x", "latest", "latest/guide.md", ".env", ".ENV.local", "credentials"):
            with self.subTest(path=path):
                self.missed("", "read_file", path=path)
        self.missed("platform", "read_file", synthesizer(platform="win32"), path="nope")
        self.missed("", "read_file", synthesizer(names=None), path="nope")

    def test_what_went_during_the_turn_is_a_miss(self) -> None:
        went = {"old.py": SkipReason.CHANGED_IN_TURN, "docs/new.md": SkipReason.CHANGED_IN_TURN}
        made = synthesizer(skipped={**went, "src/never.py": SkipReason.NOT_FOUND})
        self.missed("changed during the turn", "read_file", made, path="old.py")
        self.missed("changed during the turn", "search_files", made, pattern="x", path="old.py")
        self.missed("changed during the turn", "read_file", made, path="docs/guid.md")
        self.assertIn("File not found", made.answer("read_file", {"path": "src/never.py"}))

    def test_a_name_that_only_looks_like_it_is_a_miss(self) -> None:
        names = {"it\u2019s.md": FILE, "caf\u00e9.md": FILE}
        for path in ("it's.md", "cafe\u0301.md"):
            with self.subTest(path=path):
                self.missed("name", "read_file", synthesizer(names), path=path)
        self.missed("written", "read_file", synthesizer({"README.md": FILE}, {}, fold_case=True), path="readme.mD/x")

    def test_which_names_are_like_it_may_depend_on_the_locale(self) -> None:
        names = {name: FILE for name in ("B1.py", "a1.py", "a2.py", "a3.py", "a4.py", "a5.py")}
        self.missed("locale", "read_file", synthesizer(names, {}), path="1a.py")
        found = self.read("1a.py", names=names, texts={}, locale="C.UTF-8")
        self.assertEqual(
            found["similar_files"], [f"/ws/{name}" for name in ("B1.py", "a1.py", "a2.py", "a3.py", "a4.py")]
        )

    def test_without_one_who_knows_names_they_tell_nothing(self) -> None:
        kept = Snapshot({}, names=OPEN)
        made = Synthesizer(kept, Workspace("/ws"), Recorder("0.22.2", "linux", "rg"))
        self.missed("not in the snapshot", "read_file", made, path="nope")
        self.missed("not in the snapshot", "search_files", made, pattern="*", target="files", path="docs")


class Roots(NamesCase):
    def error(self, path: str, **more: Any) -> str:
        return self.search(synthesizer(**more), "import", path=path)["error"]

    def test_a_search_that_begins_nowhere_says_so_and_what_is_like_it(self) -> None:
        table = (
            ("nope", "Path not found: nope"),
            ("ap", "Path not found: ap. Similar paths: ./app.py"),
            ("src/main", "Path not found: src/main. Similar paths: src/main.py"),
            ("/ws/doc", "Path not found: /ws/doc. Similar paths: /ws/docs"),
            ("nowhere/app.py", "Path not found: nowhere/app.py"),
            ("nope/", "Path not found: nope/"),
            ("app.py/", "Path not found: app.py/"),
        )
        for path, error in table:
            for hermes in ("0.19.0", "0.20.1", "0.22.2"):
                with self.subTest(path=path, hermes=hermes):
                    self.assertEqual(self.error(path, hermes=hermes), error)

    def test_of_several_paths_those_that_are_there_are_searched(self) -> None:
        found = self.search(synthesizer(OPEN, whole=True), "import", path="src nope", file_glob="*.py")
        self.assertEqual(found["warning"], "path contained 2 entries; searched 1 that exist; skipped missing: nope")
        self.assertEqual(self.error("nope nowhere"), "Path not found: nope nowhere")
        self.assertEqual(
            self.error("src docs", hermes="0.19.0"), "Path not found: src docs. Similar paths: ./docs, ./src"
        )

    def test_what_is_not_known_is_a_miss(self) -> None:
        for path in ("credentials", "latest", ".git/x", "credentials/nope", "src latest"):
            with self.subTest(path=path):
                self.missed("", "search_files", pattern="x", path=path)

    def test_a_folder_without_files_holds_nothing(self) -> None:
        for hermes in ("0.19.0", "0.22.2"):
            self.assertEqual(self.search(synthesizer(hermes=hermes), "x", path="empty"), {"total_count": 0})


class Listings(NamesCase):
    def listed(self, pattern: str, names: Mapping[str, Name] = OPEN, hermes: str = "0.22.2", **more: Any) -> list[str]:
        host = {key: more.pop(key) for key in ("search",) if key in more}
        found = self.search(synthesizer(names, hermes=hermes, **host), pattern, target="files", **more)
        return sorted(found.get("files", []))

    def test_files_without_a_text_are_listed_and_ignored_ones_are_not(self) -> None:
        self.assertEqual(self.listed("*.md", hermes="0.19.0"), ["./README.md", "./docs/guide.md", "./docs/guides.md"])
        self.assertEqual(
            self.listed("*.py", hermes="0.19.0"),
            ["./app.py", "./build/out.py", "./src/main.py", "./src/util.py"][:1] + ["./src/main.py", "./src/util.py"],
        )
        self.assertEqual(self.listed("*", path="docs"), ["docs/guide.md", "docs/guides.md"])
        self.assertEqual(self.listed("*.md", path="README.md"), ["README.md"])
        self.assertEqual(
            self.listed("*.py", search="grep"), ["./app.py", "./build/out.py", "./src/main.py", "./src/util.py"]
        )

    def test_folders_are_listed_with_their_own_time(self) -> None:
        names = {**OPEN, "docs": FOLDER._replace(mtime=9.0), "doc.txt": FILE._replace(mtime=7.0)}
        made = synthesizer(names)
        self.assertEqual(self.search(made, "*doc*", target="files")["files"], ["./docs", "./doc.txt"])

    def test_hidden_folders_are_listed_where_the_live_tool_does(self) -> None:
        self.assertEqual(self.listed("*.toml"), ["./.git", "./.github"])

    def test_what_a_closed_folder_may_hold_is_a_miss(self) -> None:
        self.missed("know what it holds", "search_files", pattern="*.md", target="files")
        self.missed("know what it holds", "search_files", synthesizer(OPEN), pattern="*", target="files")
        self.missed("know what it holds", "search_files", synthesizer(search="grep"), pattern="*.md", target="files")
        self.assertEqual(self.listed("*.md", NAMES, path="docs"), ["docs/guide.md", "docs/guides.md"])

    def test_a_pattern_that_begins_like_an_option_is_told_of_a_listing_only(self) -> None:
        names = {"a-b.txt": FILE, "-x": FILE}
        self.assertEqual(self.listed("-b.txt", names, "0.19.0"), ["./a-b.txt"])
        self.assertEqual(self.listed("-x", names, "0.19.0", search="grep"), ["./-x"])
        self.missed("option", "search_files", pattern="->")

    def test_nothing_is_listed_of_an_empty_folder(self) -> None:
        self.assertEqual(self.listed("*", path="empty"), [])

    def test_whether_a_folder_is_ignored_is_known_and_not_guessed(self) -> None:
        """With `*.log` ignored, a folder of logs alone is none that is passed over as such."""
        names = {
            "gen": FOLDER,
            "gen/a.log": Name("file", 9, 5.0, ignored=True),
            "out": Name("folder", 0, 5.0, ignored=True),
            "out/o.md": Name("file", 9, 5.0, ignored=True),
        }
        made = synthesizer(names=names, texts={})
        listed = self.search(made, "*.log", target="files")
        self.assertIn("gen/a.log", json.dumps(listed))  # the glob beats the rule for it, and no rule is for its folder
        self.assertNotIn("out/o.md", json.dumps(self.search(made, "*.md", target="files")))


class Searches(NamesCase):
    def part(self, made: Synthesizer, pattern: str, **args: Any) -> tuple[int, int]:
        told = made.tell("search_files", {"pattern": pattern, **args})
        return told.known, told.files

    def test_a_search_of_a_part_is_answered_and_counted(self) -> None:
        made = synthesizer(OPEN)
        self.assertEqual(self.search(made, "import")["total_count"], 2)
        self.assertEqual(self.part(made, "import"), (4, 7))  # app, main, util, nothing; README and two guides are not
        self.assertEqual(self.part(made, "import", path="src"), (2, 2))
        self.assertEqual(self.part(made, "import", file_glob="*.py"), (3, 3))

    def test_where_everything_is_known_nothing_is_said(self) -> None:
        made = synthesizer(SOURCES, whole=True)
        self.assertEqual(self.part(made, "import"), (4, 4))
        self.assertEqual(self.search(made, "import")["total_count"], 2)

    def test_a_whole_recording_answers_nothing_that_a_file_without_a_text_may_change(self) -> None:
        made = synthesizer(OPEN, whole=True)
        self.missed("README.md: the recording does not hold its text", "search_files", made, pattern="import")
        self.assertEqual(self.search(made, "import", path="src")["total_count"], 1)
        self.assertEqual(self.search(made, "import", limit=2)["total_count"], 2)  # a full page is one of those it gives

    def test_a_binary_is_passed_over(self) -> None:
        names = {
            "app.py": FILE,
            "a.bin": Name("file", 500),
            "big.bin": Name("file", 90_000),
            "b.txt": Name("file", 500),
        }
        reasons = {"a.bin": SkipReason.BINARY, "big.bin": SkipReason.BINARY, "b.txt": SkipReason.BINARY}
        made = synthesizer(names, {"app.py": "x\n"}, whole=True, skipped=reasons)
        self.assertEqual(self.search(made, "x")["total_count"], 1)
        late = synthesizer(
            {**names, "late.txt": Name("file", 90_000)},
            {"app.py": "x\n"},
            True,
            {**reasons, "late.txt": SkipReason.BINARY},
        )
        self.missed("late.txt", "search_files", late, pattern="x")

    def test_grep_tells_of_a_binary_in_a_row_that_is_not_shown_but_counts(self) -> None:
        names = {"app.py": FILE, "a.bin": Name("file", 500)}
        made = synthesizer(names, {"app.py": "x\n"}, True, {"a.bin": SkipReason.BINARY}, search="grep")
        self.assertEqual(self.search(made, "x")["total_count"], 1)
        texts = synthesizer({"app.py": FILE, "b.txt": FILE}, {"app.py": "x\n"}, True, search="grep")
        self.assertEqual(self.search(texts, "x", limit=1)["total_count"], 1)
        for more in ({"limit": 1}, {"limit": 2}, {"output_mode": "count"}, {"output_mode": "files_only"}):
            with self.subTest(more=more):
                self.missed("a.bin", "search_files", made, pattern="x", **more)

    def test_below_what_nothing_is_known_of_is_a_miss(self) -> None:
        self.missed("a folder, and the snapshot", "search_files", synthesizer(OPEN), pattern="x", path="docs")
        self.missed("README.md: not in", "search_files", synthesizer(OPEN), pattern="x", path="README.md")

    def test_what_a_remark_speaks_of_is_counted_where_it_is_not_known(self) -> None:
        made = synthesizer(SOURCES, whole=True)
        self.assertEqual(self.search(made, "zzqq"), {"total_count": 0})
        known, files = self.part(made, "zzqq")
        self.assertEqual((known, files), (4, 6))  # .gitignore and .github; build, .git and the picture are left out
        self.assertEqual(self.part(made, "zzqq", path="src"), (2, 2))
        self.assertEqual(self.part(synthesizer(SOURCES, whole=True, hermes="0.19.0"), "zzqq"), (4, 4))


class InAReplay(unittest.TestCase):
    def test_the_log_and_the_path_count_searches_of_a_part(self) -> None:
        files = {path: SnapshotFile(text, 9, 5.0, False, ()) for path, text in TEXTS.items()}
        call = Call("read_file", {"path": "app.py"}, "{}")
        kept = Cassette("c", "q", "a", cwd="/ws", recorder=Recorder("0.22.2", "linux", "rg"), calls=(call,))
        kept = kept._replace(snapshot=Snapshot(files, names=OPEN))
        arm = Arm("a" * 24, "run", "c", "q", "process", 0.0, 900.0, "1.0.0", "f" * 64)
        facts, beyond = Facts("1.0.0", "f" * 64, 1, False, "0.22.2"), Beyond(read_masks=read_masks, names=KnownNames)
        replay = Replay(arm, "t", "s", "m", facts, kept, Workspace("/ws"), "", beyond)
        for args in ({"pattern": "import"}, {"pattern": "import", "path": "src"}, {"pattern": "util", "path": "nope"}):
            replay.answer("search_files", args, "s")
        calls = replay.finish("s", "done").calls
        self.assertEqual(
            [(call.how, call.known, call.files) for call in calls],
            [("synthesized", 4, 7), ("synthesized", 2, 2), ("synthesized", 0, 0)],
        )
        self.assertTrue(describe_path(calls, 1).endswith("; searches of a part: 1 (4 of 7 files)"))

    def test_of_several_the_one_of_which_least_is_known_is_told(self) -> None:
        calls = [Answered("search_files", {}, "synthesized", known=known, files=9) for known in (5, 9, 2)]
        self.assertTrue(describe_path(calls, 0).endswith("; searches of a part: 2 (2 of 9 files)"))
        self.assertNotIn("part", describe_path(calls[1:2], 0))


class ClosedFolders(unittest.TestCase):
    """Of a folder of which the names are not listed, their endings may be known."""

    def test_what_ends_in_another_way_is_not_there(self) -> None:
        table = (
            ("/.py/.sample", "*.md", False),
            ("/.py/.sample", "*.py", True),
            ("/.py/.sample", "main.py", True),
            ("/.py/.sample", "HEAD", True),
            (".py/.sample", "HEAD", False),
            (".py", "*", True),
            (".py", "*a*", True),
            (".py", "*y", True),
            (".py", "?.py", True),
            (".py", "*.{py,md}", True),
            (".py", "*.PY", False),
            (".../.py", "*.markdown", True),
            (".../.py", "*.markdow", False),
            (".../.py", "*.rst", False),
        )
        for endings, glob, may in table:
            with self.subTest(endings=endings, glob=glob):
                self.assertEqual(may_hold(Name("folder", inside=9, endings=endings), glob), may)
        self.assertTrue(may_hold(Name("folder", inside=9), "*.md"))
        self.assertFalse(may_hold(Name("folder", inside=0, endings=""), "*"))

    def test_endings_are_from_the_last_dot_on(self) -> None:
        names = {"a.tar.gz": ".gz", ".env": ".env", "HEAD": "", "x.": "."}
        self.assertEqual({name: name_ending(name) for name in names}, names)

    def test_a_cassette_keeps_them(self) -> None:
        names = {".git": Name("folder", 0, 1.0, True, False, 9, "/.sample"), "b": Name("folder", 0, 1.0, inside=1)}
        kept = Cassette("c", "q", "a", recorder=Recorder(locale="C.UTF-8"), snapshot=Snapshot({}, names=names))
        again = parse_cassette(dump_cassette(kept), "c.json")
        self.assertEqual((again.snapshot.names, again.recorder.locale), (names, "C.UTF-8"))
        wrong = kept._replace(snapshot=Snapshot({}, names={"a": Name("folder", endings=".py")}))
        with self.assertRaisesRegex(CassetteError, "names"):
            parse_cassette(dump_cassette(wrong), "c.json")


class Recordings(HookCase):
    """A recording notes by which locale names are sorted."""

    def locale(self, given: Mapping[str, str]) -> str:
        with unittest.mock.patch.dict(os.environ, given):
            for name in {"LC_ALL", "LC_COLLATE", "LANG"} - set(given):
                os.environ.pop(name, None)
            self.host.slash("/cassette record shop")
            turn = self.host.start_turn(QUESTION)
            self.host.end_turn(turn, "done")
        return self.store.read("shop")[0].recorder.locale

    def test_it_is_that_of_the_language(self) -> None:
        self.assertEqual(self.locale({"LANG": "de_DE.UTF-8"}), "de_DE.UTF-8")

    def test_one_for_sorting_comes_before_it(self) -> None:
        self.assertEqual(self.locale({"LC_COLLATE": "C", "LANG": "de_DE.UTF-8"}), "C")

    def test_none_is_that_of_bytes(self) -> None:
        self.assertEqual(self.locale({}), "C")


class Orders(unittest.TestCase):
    def test_names_are_sorted_as_bytes_or_as_letters(self) -> None:
        names = ["B", "_", "a", "-"]
        self.assertEqual(locale_orders(names, "C.UTF-8"), [["-", "B", "_", "a"]])
        self.assertEqual(locale_orders(names, ""), [["-", "B", "_", "a"], ["-", "_", "a", "B"], ["_", "-", "a", "B"]])
        self.assertEqual(len(locale_orders(names, "de_DE.UTF-8")), 3)


if __name__ == "__main__":
    unittest.main()
