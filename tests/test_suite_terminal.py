"""Terminal commands that the files of a recording answer, and those that they must not."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import unittest
from typing import Any, Mapping, Sequence

from tests.lanes.refused import PLAIN, REFUSED, random_refused
from tests.support import load_plugin, temp_folder, write_tree

load_plugin()
from session_cassettes.cassette_store import Arm, Call, Cassette, Facts, Name, Recorder, Snapshot, SnapshotFile  # noqa: E402
from session_cassettes.middleware import MISS, Beyond, Replay  # noqa: E402
from session_cassettes.snapshot import Workspace  # noqa: E402
from session_cassettes.suite.masks import read_masks  # noqa: E402
from session_cassettes.suite.known_names import KnownNames  # noqa: E402
from session_cassettes.suite.terminal import Terminal  # noqa: E402
from session_cassettes.synth_search import Miss, Synthesizer  # noqa: E402

FILES = {
    "app.py": "import os\n\nPORT = 8080  # TODO: Port\nmain()\n",
    "no end.txt": "first\nlast",
    "empty.txt": "",
    "around.txt": "\n\n  in the middle  \n\n",
    "crlf.txt": "a\r\nb\r\n\r\n",
    "bom.txt": "\ufeffbom os\n",
    "fold.txt": "\u212aelvin über\n",
    "-dash": "a dash\n",
    "src/main.py": "import app\n\n\ndef main():\n    app.run()\n",
    "src/deep/a.py": "import os.path\n",
}


def source(
    files: Mapping[str, str] = FILES,
    names: Mapping[str, Name] | None = None,
    untracked: Sequence[str] | None = None,
    **host: Any,
) -> Any:
    kept = {path: SnapshotFile(text, len(text.encode()), 1.0, False, ()) for path, text in files.items()}
    place = Workspace(host.pop("root", "/ws"), host.pop("aliases", ()))
    recorder = Recorder(**{"hermes": "0.22.2", "platform": "linux", "search": "rg", "rg_major": 13, **host})
    return Synthesizer(
        Snapshot(kept, names=names, untracked=untracked), place, recorder, {}, read_masks, KnownNames
    ).source


FILE, FOLDER = Name("file", 1), Name("folder")


def everything(files: Mapping[str, str] = FILES, **more: Name) -> dict[str, Name]:
    """The names of a recording that keeps all of them."""
    folders = {path[:end] for path in files for end, char in enumerate(path) if char == "/"}
    return {**dict.fromkeys(files, FILE), **dict.fromkeys(folders, FOLDER), **more}


class TerminalCase(unittest.TestCase):
    def said(self, terminal: Any, command: str, folder: str = "", **args: Any) -> dict[str, Any]:
        return json.loads(terminal({"command": command, **args}, folder)[0])

    def prints(self, terminal: Any, table: tuple[tuple[str, str], ...], code: int = 0) -> None:
        for command, output in table:
            with self.subTest(command=command):
                said = self.said(terminal, command)
                self.assertEqual((said["output"], said["exit_code"]), (output, code))

    def misses(self, terminal: Any, *commands: str, reason: str = "") -> None:
        for command in commands:
            with self.subTest(command=command), self.assertRaisesRegex(Miss, reason):
                terminal({"command": command}, "")


class OneFile(TerminalCase):
    def test_a_file_is_printed_and_blanks_around_it_go(self) -> None:
        self.prints(
            Terminal(source(), ()),
            (
                ("cat app.py", FILES["app.py"].strip()),
                ("cat ./app.py", FILES["app.py"].strip()),
                ("  cat   /ws/app.py ", FILES["app.py"].strip()),
                ("cat 'no end.txt' app.py", "first\nlastimport os\n\nPORT = 8080  # TODO: Port\nmain()"),
                ("cat empty.txt", ""),
                ("cat around.txt", "in the middle"),
                ("cat crlf.txt", "a\r\nb"),
                ("cat bom.txt", "\ufeffbom os"),
                ("cat -- -dash", "a dash"),
                ("cat ./-dash", "a dash"),
            ),
        )

    def test_the_ends_of_files_are_printed(self) -> None:
        self.prints(
            Terminal(source(), ()),
            (
                ("head -n 1 app.py", "import os"),
                ("head -n1 app.py", "import os"),
                ("head -1 app.py", "import os"),
                ("head app.py", FILES["app.py"].strip()),
                ("head -n 0 app.py", ""),
                ("head -n 1 app.py 'no end.txt'", "==> app.py <==\nimport os\n\n==> no end.txt <==\nfirst"),
                ("tail -n 1 app.py", "main()"),
                ("tail -1 'no end.txt'", "last"),
                ("tail -n 0 app.py", ""),
                ("tail -n 99 'no end.txt'", "first\nlast"),
                ("tail -n 0 app.py crlf.txt", ""),
                ("head -n 0 app.py crlf.txt", "==> app.py <==\n\n==> crlf.txt <=="),
                ("tail -n 1 'no end.txt' ./app.py", "==> no end.txt <==\nlast\n==> ./app.py <==\nmain()"),
                ("sed -n 3,4p app.py", "PORT = 8080  # TODO: Port\nmain()"),
                ("sed -n '4,2p' app.py", "main()"),
                ("sed -n '2,$p' 'no end.txt'", "last"),
                ("sed -n 9p app.py", ""),
                ("wc -l app.py", "4 app.py"),
                ("wc -l './no end.txt'", "1 ./no end.txt"),
            ),
        )

    def test_the_result_has_the_form_of_the_recording_hermes(self) -> None:
        for hermes in ("0.19.0", "0.20.1", "0.22.2"):
            with self.subTest(hermes=hermes):
                terminal = Terminal(source(hermes=hermes), ())
                text, _ = terminal({"command": "cat empty.txt"}, "")
                self.assertEqual(text, '{"output": "", "exit_code": 0, "error": null}')

    def test_without_a_match_the_code_is_explained_as_hermes_reads_the_command(self) -> None:
        terminal = Terminal(source(), ())
        told = {"output": "", "exit_code": 1, "error": None}
        none = {"exit_code_meaning": "No matches found (not an error)"}
        self.assertEqual(self.said(terminal, "grep zz app.py"), {**told, **none})
        self.assertEqual(self.said(terminal, "grep -E 'zz|yy' app.py"), told)  # Hermes takes yy' for the program
        self.assertEqual(self.said(terminal, "grep -c zz app.py"), {**told, "output": "0", **none})

    def test_lines_are_found(self) -> None:
        self.prints(
            Terminal(source(), ()),
            (
                ("grep import app.py", "import os"),
                ("grep -n PORT app.py", "3:PORT = 8080  # TODO: Port"),
                ("grep -in port app.py", "1:import os\n3:PORT = 8080  # TODO: Port"),
                ("grep -ci port app.py", "2"),
                ("grep -l import app.py src/main.py crlf.txt", "app.py\nsrc/main.py"),
                ("grep -c import app.py crlf.txt", "app.py:1\ncrlf.txt:0"),
                ("grep -n os app.py ./bom.txt", "app.py:1:import os\n./bom.txt:1:\ufeffbom os"),
                ("grep -r os app.py", "import os"),
                ("grep -w os app.py src/deep/a.py", "app.py:import os\nsrc/deep/a.py:import os.path"),
                ("grep -F 'main()' app.py", "main()"),
                ("grep 'main()' app.py", "main()"),
                ("grep -E 'main(\\(|x)' app.py", "main()"),
                ("grep 'os\\|main' app.py", "import os\nmain()"),
                ("grep -i 'OS\\|main' app.py", "import os\nmain()"),
                ("grep über fold.txt", "\u212aelvin über"),
                ("rg os bom.txt", "bom os"),
                ("rg -n ^bom bom.txt", "1:bom os"),
                ("rg -c os app.py", "1"),
                ("rg -ni port app.py", "1:import os\n3:PORT = 8080  # TODO: Port"),
                ("rg -F 'main()' app.py", "main()"),
            ),
        )

    def test_where_the_locale_or_the_version_would_count_nothing_is_said(self) -> None:
        self.misses(
            Terminal(source(), ()),
            "grep -i KELVIN fold.txt",
            "grep '^.elvin .ber$' fold.txt",
            "grep -w 'os.path' src/deep/a.py",
            "grep '[' app.py",
            "rg '(' app.py",
            "grep -i '[o]s' app.py",
            reason="locale|whole words|refuses|not certain|something else",
        )

    def test_a_ripgrep_of_hermes_itself_is_not_taken_for_the_shells(self) -> None:
        for hermes, major, known in (("0.19.0", 0, True), ("0.22.2", 0, False), ("0.22.2", 14, True)):
            with self.subTest(hermes=hermes, major=major):
                terminal = Terminal(source(hermes=hermes, rg_major=major), ())
                if known:
                    self.assertEqual(self.said(terminal, "rg os app.py")["output"], "import os")
                else:
                    self.misses(terminal, "rg os app.py", reason="ripgrep")
        self.misses(Terminal(source(search="grep", rg_major=0, hermes="0.19.0"), ()), "rg os app.py", reason="ripgrep")

    def test_what_is_not_in_the_snapshot_is_a_miss_that_says_so(self) -> None:
        self.misses(
            Terminal(source(), ()), "cat nope.py", "wc -l nope.py", "grep x nope.py", reason="not in the snapshot"
        )
        self.misses(Terminal(source(), ()), "cat src", "cat app.py/", "grep x src", reason="snapshot")
        self.misses(Terminal(source(), ()), "cat ../x", "cat src/../app.py", "cat /etc/passwd", reason="climbs|outside")


class MaskedOrCut(TerminalCase):
    def masked(self, text: str, *masks: tuple[int, int, str]) -> Any:
        made = source()
        file = SnapshotFile(text, 99, 1.0, False, masks)
        made.snapshot.files["m.txt"] = file
        return Terminal(made, ())

    def test_a_masked_line_is_never_printed(self) -> None:
        terminal = self.masked("one\nt = «redacted:ghp_…»\nthree\n", (8, 24, "token ghp_"))
        self.prints(
            terminal,
            (
                ("head -1 m.txt", "one"),
                ("tail -1 m.txt", "three"),
                ("sed -n 3p m.txt", "three"),
                ("wc -l m.txt", "3 m.txt"),
            ),
        )
        self.prints(terminal, (("grep -c 't =' m.txt", "1"), ("grep -l 't = ghp' m.txt", "m.txt")))
        self.misses(
            terminal,
            "cat m.txt",
            "head -2 m.txt",
            "tail -2 m.txt",
            "sed -n 2,3p m.txt",
            "grep 't =' m.txt",
            "grep three m.txt",  # a token may say so
            "grep -c '[0-9]' m.txt",
            reason="masked secret",
        )

    def test_below_a_private_key_no_line_is_counted(self) -> None:
        terminal = self.masked("one\n[REDACTED PRIVATE KEY]\n# end\n", (4, 25, "lines"))
        self.misses(terminal, "wc -l m.txt", "sed -n 3p m.txt", "grep -n '# end' m.txt", reason="masked secret")
        self.prints(terminal, (("grep '# end' m.txt", "# end"), ("grep -c '# end' m.txt", "1")))

    def test_an_older_recording_may_hide_something_at_each_sign_of_it(self) -> None:
        made = source()
        made.snapshot.files["m.txt"] = SnapshotFile("plain\nb = ***\nc = abcdef...wxyz\n", 30)
        terminal = Terminal(made, ())
        self.prints(terminal, (("head -1 m.txt", "plain"), ("grep plain m.txt", "plain")))
        self.misses(terminal, "cat m.txt", "sed -n 2p m.txt", "grep abcdef m.txt", reason="masked secret")

    def test_what_an_output_makes_a_secret_of_is_a_miss(self) -> None:
        files = {
            "form.txt": "user=ada&token=abc\n",
            "trace.txt": "ValueError: {'API_KEY': 'opaque'}\n",
            "split.txt": "sk-\nabcdefghijklmnop\n",
            "header.txt": "Authorization:\n",
            "a.py": "x\n",
            "colour.txt": "\x1b[31mred\n",
            "c1.txt": "a\x85b\n",
            "marks.txt": "__HERMES_FENCE_x__\n",
            "sk-learn-tutorial-notes.md": "x\n",
            "long.txt": "x\n" * 30_000,
        }
        terminal = Terminal(source(files, everything(files)), ())
        self.misses(terminal, *(f"cat {name}" for name in files if name not in ("a.py", "sk-learn-tutorial-notes.md")))
        self.misses(terminal, "wc -l sk-learn-tutorial-notes.md", "cat header.txt a.py", "ls", "grep -r x .")
        self.prints(
            terminal, (("cat a.py", "x"), ("head -3 long.txt", "x\nx\nx"), ("wc -l long.txt", "30000 long.txt"))
        )


class Folders(TerminalCase):
    """A folder is only told of where all of it is known."""

    def test_without_all_names_nothing_is_told(self) -> None:
        self.misses(
            Terminal(source(), ()),
            "ls",
            "ls src",
            "find . -name '*.py'",
            "grep -rn import .",
            "grep -r import",
            "rg import",
            "rg import src",
            "git ls-files",
            reason="all of this folder|tracks",
        )

    def test_with_all_names_a_folder_is_listed(self) -> None:
        files = {"b.py": "import a\n", "a.py": "x\n", ".hid": "import\n", "sub/c.py": "import b\n", "sub/d.txt": "y\n"}
        terminal = Terminal(source(files, everything(files)), ())
        self.prints(
            terminal,
            (
                ("ls", "a.py\nb.py\nsub"),
                ("ls -1", "a.py\nb.py\nsub"),
                ("ls -a", ".\n..\n.hid\na.py\nb.py\nsub"),
                ("ls sub/", "c.py\nd.txt"),
                ("ls ./a.py", "./a.py"),
                ("find . -name '*.py'", "./a.py\n./b.py\n./sub/c.py"),
                ("find -name '*.py' -type f", "./a.py\n./b.py\n./sub/c.py"),
                ("find sub/ -name '*'", "sub/\nsub/c.py\nsub/d.txt"),
                ("find . -type d -name '*'", ".\n./sub"),
                ("find . -name '*h*'", "./.hid"),
                ("grep -rn import .", "./.hid:1:import\n./b.py:1:import a\n./sub/c.py:1:import b"),
                ("grep -rc import sub", "sub/c.py:1\nsub/d.txt:0"),
                ("grep -r import", ".hid:import\nb.py:import a\nsub/c.py:import b"),
                ("rg import", "b.py:import a\nsub/c.py:import b"),
                ("rg -c import ./", "./b.py:1\n./sub/c.py:1"),
                ("rg -l import sub/", "sub/c.py"),
            ),
        )
        self.misses(
            terminal, "git ls-files", "ls nope", "find nope -name x", "find . -name '[a]*'", "find . -name '\\*'"
        )

    def test_what_git_tracks_is_told_in_the_order_of_its_bytes(self) -> None:
        files = {"b.py": "", "a/x.py": "", "a.py": "", "new.py": "", ".hid": "", "a/deep/y": ""}
        names = everything(files, **{"a/link": Name("link"), "log": FILE})
        terminal = Terminal(source(files, names, untracked=("log", "new.py")), ())
        self.prints(
            terminal,
            (
                ("git ls-files", ".hid\na.py\na/deep/y\na/link\na/x.py\nb.py"),
                ("git --no-pager ls-files", ".hid\na.py\na/deep/y\na/link\na/x.py\nb.py"),
                ("cd a && git ls-files", "deep/y\nlink\nx.py"),
                ("cd a/deep && git ls-files", "y"),
            ),
        )
        self.misses(terminal, "git ls-files a", "git ls-files -o", "git ls-files | head")
        for name in ("ü", 'a"b', "a\\b"):
            odd = Terminal(source({name: ""}, everything({name: ""}), untracked=()), ())
            self.misses(odd, "git ls-files", reason="in its own way")

    def test_a_part_that_is_not_known_counts_where_it_would_be_read(self) -> None:
        more = {"x.log": Name("file", 1, ignored=True), "bin.dat": FILE, "docs": FOLDER, "docs/l": Name("link")}
        names = everything(**more, **{".git": Name("folder", inside=9)})
        terminal = Terminal(source(FILES, names), ())
        self.misses(terminal, "find . -name '*.py'", "grep -r import .", "rg import", reason="known|not hold|not know")
        self.prints(terminal, (("rg import src", "src/deep/a.py:import os.path\nsrc/main.py:import app"),))
        self.prints(terminal, (("find docs -name l", "docs/l"), ("ls docs", "l")))
        self.prints(terminal, (("grep -r import docs", ""), ("rg import docs", "")), code=1)

    def test_where_ripgrep_begins_below_an_ignore_rule_or_searches_nothing_is_a_miss(self) -> None:
        files = {"docs/a.md": "hit\n", "docs/b.md": "hit\n", "none/.keep": "hit\n", "src/c.py": "hit\n"}
        terminal = Terminal(source(files, {**everything(files), "docs/b.md": FILE._replace(ignored=True)}), ())
        self.misses(terminal, "rg hit docs", "rg hit src ./docs", "cd docs && rg hit", reason="where it begins")
        self.misses(terminal, "cd none && rg hit", reason="searched nothing")
        self.prints(terminal, (("rg hit", "docs/a.md:hit\nsrc/c.py:hit"), ("rg hit src", "src/c.py:hit")))
        self.prints(terminal, (("rg hit none", ""),), code=1)

    def test_names_are_sorted_only_where_every_locale_agrees(self) -> None:
        for names, agree in (
            (("a", "b", "c1", "c2", "ca"), True),
            (("a", "a.b", "a.bc", "ab"), True),
            (("A", "B", "c"), True),
            (("A", "C", "b"), False),
            (("Z", "a"), False),
            (("README.md", "setup.py"), True),
            (("_x", "a"), True),
            (("A", "_x"), False),
            (("a-b", "a.b"), False),
            (("a", "A"), False),
            (("ab", "Ab"), False),
            (("1", "a"), True),
            (("e", "é"), False),
        ):
            with self.subTest(names=names):
                terminal = Terminal(source(dict.fromkeys(names, "x\n"), dict.fromkeys(names, FILE)), ())
                if agree:
                    self.assertEqual(self.said(terminal, "ls")["output"], "\n".join(names))
                else:
                    self.misses(terminal, "ls", reason="locale")


class OnWindows(TerminalCase):
    """The platform is faked: neither was run on Windows."""

    FILES = {"app.py": "import os\n", "Zed.txt": "z\n", "_x.txt": "x\n", "src/main.py": "a\nb\n", "ü.txt": "ü\n"}

    def terminal(self, *recorded: tuple[str, str]) -> Terminal:
        kept = {path: SnapshotFile(text, len(text), 1.0, False, ()) for path, text in self.FILES.items()}
        names = {path: name for path, name in everything(self.FILES).items() if path.isascii()}
        recorder, place = Recorder("0.22.2", "win32", "rg"), Workspace("C:\\ws", (), True, True)
        made = Synthesizer(Snapshot(kept, names=names), place, recorder, {}, read_masks, KnownNames)
        calls = [
            Call("terminal", {"command": command}, json.dumps({"output": output, "exit_code": 0, "error": None}))
            for command, output in recorded
        ]
        return Terminal(made.source, calls)

    def test_files_and_names_are_told_where_a_recorded_result_shows_that_they_are(self) -> None:
        self.prints(
            self.terminal(("type app.py", "import os"), ("dir /b src", "main.py")),
            (
                ("type src\\main.py", "a\nb"),
                ("TYPE C:\\ws\\app.py", "import os"),
                ('type "src/main.py"', "a\nb"),
                ("dir /b", "app.py\nsrc\nZed.txt\n_x.txt"),
                ("dir /B src", "main.py"),
            ),
        )

    def test_without_one_they_may_be_something_else(self) -> None:
        self.misses(self.terminal(), "type app.py", "dir /b", reason="recorded result")
        self.misses(self.terminal(("type app.py", "app.py is a file"), ("dir /b", "")), "type app.py", "dir /b")

    def test_all_else_is_a_miss(self) -> None:
        self.misses(
            self.terminal(("type app.py", "import os"), ("dir /b src", "main.py")),
            *("cat app.py", "dir", "dir /s /b", "dir /b src x", "type app.py src", "type ü.txt", "type *.py", "type"),
            *(
                "type app.py | more",
                "dir /b /a",
                "ls",
                "type nope.py",
                "dir /b nope",
                "type %PATH%",
                "dir /b ..",
                "pwd",
            ),
        )


class Where(TerminalCase):
    """In which folder a command runs, and the next one."""

    def test_cd_to_where_it_is_changes_nothing(self) -> None:
        terminal = Terminal(source(), ())
        for command in ("cd . && pwd", "cd /ws && pwd", "cd /ws/ && pwd", "cd './' && pwd"):
            with self.subTest(command=command):
                text, after = terminal({"command": command}, "")
                self.assertEqual((text, after), ('{"output": "/ws", "exit_code": 0, "error": null}', ""))

    def test_cd_stays_and_newer_versions_say_so(self) -> None:
        for hermes, more in (("0.19.0", {}), ("0.20.1", {"cwd": "/ws/src"}), ("0.22.2", {"cwd": "/ws/src"})):
            with self.subTest(hermes=hermes):
                terminal = Terminal(source(hermes=hermes), ())
                text, after = terminal({"command": "cd src && grep -n zz main.py"}, "")
                meaning = {"exit_code_meaning": "No matches found (not an error)"}
                self.assertEqual(json.loads(text), {"output": "", "exit_code": 1, "error": None, **more, **meaning})
                self.assertEqual(list(json.loads(text))[-1], "exit_code_meaning")
                self.assertEqual(after, "src")
                self.assertEqual(self.said(terminal, "pwd", "src")["output"], "/ws/src")
                self.assertEqual(self.said(terminal, "head -1 main.py", "src")["output"], "import app")
                self.misses(terminal, "cd nope && pwd", "cd src/.. && pwd", "cd .. && pwd")

    def test_a_folder_of_its_own_stays_in_0_19_only(self) -> None:
        for hermes, stays in (("0.19.0", "src"), ("0.22.2", "")):
            with self.subTest(hermes=hermes):
                terminal = Terminal(source(hermes=hermes), ())
                text, after = terminal({"command": "wc -l main.py", "workdir": "src"}, "")
                self.assertEqual(
                    (json.loads(text), after), ({"output": "5 main.py", "exit_code": 0, "error": None}, stays)
                )
                with self.assertRaises(Miss):
                    terminal({"command": "pwd", "workdir": "deep"}, "src")
                with self.assertRaises(Miss):
                    terminal({"command": "cd deep && pwd", "workdir": "src"}, "")

    def test_through_a_link_nothing_is_told(self) -> None:
        self.misses(Terminal(source(aliases=("/data/ws",)), ()), "pwd", "cd src && cat main.py", reason="another way")


class WhatTheLiveToolAddsOrRefuses(TerminalCase):
    """Each of these was answered as if the command had simply run."""

    def test_a_command_that_hermes_may_not_run_is_a_miss(self) -> None:
        files = {"app.py": "import uvicorn\nDROP TABLE users;\n", "uvicorn.py": "x\n", "nodemon.json": "{}\n"}
        self.misses(Terminal(source(files), ()), "cat uvicorn.py", "cat nodemon.json", reason="server")
        self.misses(Terminal(source(files), ()), "grep 'DROP TABLE' app.py", "grep mkfs app.py", reason="ask a person")
        self.prints(Terminal(source(files), ()), (("grep -c 'uvicorn' app.py", "1"),))

    def test_a_folder_that_hermes_may_refuse_is_a_miss(self) -> None:
        made = Terminal(source({"p(1)/x.txt": "x\n", "ü/x.txt": "x\n", "ok/x.txt": "x\n"}), ())
        for folder in ("p(1)", "ü"):
            with self.subTest(folder=folder), self.assertRaisesRegex(Miss, "refuse"):
                made({"command": "cat x.txt", "workdir": folder}, "")
        self.assertEqual(self.said(made, "cat x.txt", workdir="ok")["output"], "x")

    def test_what_looks_like_a_failed_sudo_is_a_miss_in_any_case(self) -> None:
        made = Terminal(source({"a.txt": "Sudo: 3 incorrect password attempts\n"}), ())
        self.misses(made, "cat a.txt", "grep 3 a.txt")

    def test_patterns_of_which_grep_warns_are_misses(self) -> None:
        made = Terminal(source(), ())
        self.misses(
            made, *(f"grep -E '{each}' app.py" for each in ("+os", "*os", "?os", "x|*os", "(+os)", r"\d", r"\-"))
        )
        self.misses(made, r"grep '\d' app.py", r"grep '\@' app.py", reason="warn")
        self.prints(made, ((r"grep '\bos\b' app.py", "import os"), (r"grep -E 'o+s|x\.y' app.py", "import os")))
        self.prints(made, ((r"grep '*os' app.py", ""), (r"grep -F '\d' app.py", "")), code=1)

    def test_letters_that_only_grep_folds_are_misses(self) -> None:
        made = Terminal(source({"a.txt": "\u0131stanbul\n", "b.txt": "istanbul\n"}), ())
        self.misses(
            made, "grep -i istanbul a.txt", "grep -ci i a.txt", "grep -i '\u0130stanbul' b.txt", reason="grep -i"
        )
        self.prints(made, (("grep -i Istanbul b.txt", "istanbul"), ("rg -i istanbul b.txt", "istanbul")))

    def test_a_folder_with_two_slashes_is_a_miss_in_a_search(self) -> None:
        files = {"src/a.py": "x\n"}
        made = Terminal(source(files, everything(files)), ())
        self.misses(made, "grep -r x src//", "rg x .//src", reason="would call")
        self.prints(made, (("grep -r x src/", "src/a.py:x"), ("cat src//a.py", "x")))

    def test_on_a_case_blind_disk_a_folder_is_told_as_it_is_spelled(self) -> None:
        place = source(fold_case=True)
        place.workspace = Workspace("/ws", fold_case=True)
        self.misses(Terminal(place, ()), "cd SRC && pwd", "cd /WS && pwd", "cd Src/deep && pwd", reason="would call")
        self.prints(Terminal(place, ()), (("cd src && pwd", "/ws/src"), ("cd /ws/src/deep/ && pwd", "/ws/src/deep")))

    def test_no_line_is_more_than_the_head_of_macos_shows(self) -> None:
        self.misses(Terminal(source(platform="darwin"), ()), "head -n 0 app.py", "head -0 app.py", reason="no line")
        self.prints(Terminal(source(), ()), (("head -n 0 app.py", ""),))


class OtherPlaces(TerminalCase):
    def test_on_macos_only_what_prints_the_same(self) -> None:
        terminal = Terminal(source(platform="darwin"), ())
        self.prints(terminal, (("cat empty.txt", ""), ("head -n 1 app.py", "import os"), ("pwd", "/ws")))
        self.misses(terminal, "wc -l app.py", "grep os app.py", "head -n 1 app.py crlf.txt", reason="darwin")

    def test_on_windows_and_where_it_is_unknown_nothing(self) -> None:
        for platform in ("win32", ""):
            self.misses(Terminal(source(platform=platform), ()), "cat app.py", "pwd", reason="not known for")

    def test_a_newer_hermes_only_as_its_recording_shows(self) -> None:
        made = source(hermes="0.23.4")
        call = Call("terminal", {"command": "cat empty.txt"}, '{"output": "", "exit_code": 0, "error": null}')
        self.misses(Terminal(made, ()), "cat app.py", reason="this Hermes")
        terminal = Terminal(made, (call,))
        self.assertEqual(self.said(terminal, "cat crlf.txt")["output"], "a\r\nb")
        self.misses(terminal, "head app.py", "cd src && cat main.py", "grep zz app.py", reason="this Hermes")

    def test_a_program_that_the_recording_shows_to_work_otherwise_is_not_answered(self) -> None:
        call = Call("terminal", {"command": "cat app.py"}, '{"output": "1 import os", "exit_code": 0, "error": null}')
        terminal = Terminal(source(), (call,))
        self.misses(terminal, "cat empty.txt", reason="another way")
        self.assertEqual(self.said(terminal, "wc -l app.py")["output"], "4 app.py")


class Refused(TerminalCase):
    def test_a_hundred_other_commands_stay_misses(self) -> None:
        files = {name: text for name, text in FILES.items() if " " not in name}
        files |= {"setup.py": "import app\n", "docs/index.md": "x\n", "src/util.py": "x\n"}
        terminal = Terminal(source(files, everything(files)), ())
        commands = [line for line in REFUSED.split("\n") if line]
        self.assertGreater(len(commands), 100)
        self.misses(terminal, *commands)
        whole = Terminal(source(files, everything(files), untracked=()), ())
        for command in PLAIN:
            self.said(whole, command)  # answered: what is refused of it is what was done to it
        for seed in range(10):
            self.misses(whole, *random_refused(random.Random(seed), 100))

    @unittest.skipUnless(shutil.which("bash"), "NOT CHECKED against bash: it is not installed")
    def test_real_programs_print_the_same(self) -> None:
        root = temp_folder(self)
        write_tree(root, FILES)
        terminal = Terminal(source(FILES, everything(), root=str(root)), ())
        for command in REAL:
            with self.subTest(command=command):
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=root,
                    capture_output=True,
                    check=False,
                    env={"LC_ALL": "C.UTF-8", "PATH": PATH},
                )
                said = self.said(terminal, command)
                printed = done.stdout.decode().strip()
                self.assertEqual(sorted(said["output"].split("\n")), sorted(printed.split("\n")))
                if not command.startswith(("find", "grep -r")):  # their order is the file system's
                    self.assertEqual(said["output"], printed)
                self.assertEqual(said["exit_code"], done.returncode)


PATH = "/usr/local/bin:/usr/bin:/bin"
REAL = (
    "cat app.py 'no end.txt' crlf.txt",
    "head -n 2 app.py crlf.txt around.txt",
    "tail -n 2 crlf.txt 'no end.txt' app.py",
    "tail -n 0 crlf.txt app.py",
    "head -n 0 crlf.txt app.py",
    "sed -n '2,3p' crlf.txt",
    "wc -l around.txt",
    "ls src",
    "find src -name '*'",
    "grep -rc import src",
    "grep -in 'os\\|PORT' app.py src/deep/a.py",
    "grep -nE 'import (os|app)$' app.py src/main.py",
    "grep -wn os app.py",
    "grep -c '' 'no end.txt'",
    "grep -n '^$' app.py",
    "cd src && cat main.py",
)


class InAReplay(unittest.TestCase):
    """The replay knows where commands run, and answers nothing that this leaves open."""

    def setUp(self) -> None:
        kept = {path: SnapshotFile(text, len(text.encode()), 1.0, False, ()) for path, text in FILES.items()}
        self.recorded = json.dumps({"output": FILES["app.py"].strip(), "exit_code": 0, "error": None})
        calls = (
            Call("terminal", {"command": "cat app.py"}, self.recorded),
            Call("read_file", {"path": "app.py"}, "recorded"),
        )
        made = Cassette(
            "c", "q", "a", calls=calls, snapshot=Snapshot(kept), cwd="/ws", recorder=Recorder("0.22.2", "linux", "rg")
        )
        arm = Arm("a" * 24, "run", "c", "q", "process", 0.0, 900.0, "1.0.0", "f" * 64)
        facts = Facts("1.0.0", "f" * 64, 1, False, "0.22.2")
        self.bound = Replay(arm, "t", "s", "m", facts, made, Workspace("/ws"), "", Beyond(Terminal))
        self.plain = Replay(arm, "t", "s", "m", facts, made, Workspace("/ws"))

    def hows(self, *asked: tuple[str, dict[str, Any]]) -> list[tuple[str, str]]:
        for tool, args in asked:
            self.bound.answer(tool, args, "s")
        return [(call.how, call.reason) for call in self.bound.finish("s", "x").calls]

    def test_a_command_is_marked_as_synthesized(self) -> None:
        self.assertEqual(self.hows(("terminal", {"command": "wc -l app.py"})), [("synthesized", "")])

    def test_a_recorded_one_is_a_hit(self) -> None:
        self.assertEqual(self.hows(("terminal", {"command": "cat app.py"})), [("hit", "")])

    def test_after_cd_a_relative_name_is_another_one(self) -> None:
        got = self.hows(
            ("terminal", {"command": "cd src && head -1 main.py"}),
            ("terminal", {"command": "cat app.py"}),
            ("terminal", {"command": "cat main.py"}),
            ("terminal", {"command": "cat /ws/app.py"}),
            ("read_file", {"path": "app.py"}),
            ("search_files", {"pattern": "x"}),
            ("read_file", {"path": "/ws/src/main.py"}),
            ("terminal", {"command": "cd /ws && pwd"}),
            ("terminal", {"command": "cat app.py"}),
            ("read_file", {"path": "app.py"}),
        )
        self.assertEqual(
            [how for how, _ in got],
            [
                "synthesized",
                "miss",
                "synthesized",
                "synthesized",
                "miss",
                "miss",
                "synthesized",
                "synthesized",
                "hit",
                "hit",
            ],
        )
        self.assertIn("after cd", got[4][1])

    def test_in_0_19_a_recorded_call_leads_the_shell_back(self) -> None:
        call = Call("terminal", {"command": "cat app.py", "workdir": "/ws"}, self.recorded)
        for hermes, then in (("0.19.0", "miss"), ("0.22.2", "synthesized")):
            with self.subTest(hermes=hermes):
                self.setUp()
                made = self.bound._cassette._replace(calls=(call,), recorder=Recorder(hermes, "linux", "rg"))
                self.bound = Replay(
                    self.bound.arm, "t", "s", "m", self.bound.facts, made, Workspace("/ws"), "", Beyond(Terminal)
                )
                got = self.hows(
                    ("terminal", {"command": "cd src && pwd"}),
                    ("terminal", {"command": "cat app.py", "workdir": "/ws"}),
                    ("terminal", {"command": "cat main.py"}),
                )
                self.assertEqual([how for how, _ in got], ["synthesized", "hit", then])

    def test_only_a_plain_run_is_answered(self) -> None:
        for more in ({"background": True}, {"pty": True}, {"timeout": -1}, {"timeout": "x"}, {"later": 1}):
            with self.subTest(more=more):
                self.assertEqual(self.bound.answer("terminal", {"command": "wc -l app.py", **more}, "s"), MISS)
        self.assertNotEqual(self.bound.answer("terminal", {"command": "wc -l app.py", "timeout": 5}, "s"), MISS)

    def test_what_is_no_plain_command_is_told_as_before(self) -> None:
        got = self.hows(
            ("terminal", {"command": "make"}), ("terminal", {"command": "cat nope"}), ("terminal", {"command": 5})
        )
        self.assertEqual(got[0][1], "this call was not recorded")
        self.assertEqual(got[1][1], "this call was not recorded; nope: not in the snapshot")
        self.assertEqual(got[2][0], "miss")

    def test_without_one_who_answers_commands_only_recorded_ones_are(self) -> None:
        self.assertEqual(self.plain.answer("terminal", {"command": "wc -l app.py"}, "s"), MISS)


if __name__ == "__main__":
    unittest.main()
