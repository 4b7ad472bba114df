"""Where a session works, and what its files and commands are called, in a real Hermes, one lane per version."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Sequence

from tests.lanes.case import LaneCase, lane_suite
from tests.lanes.host import HermesHost
from tests.test_lanes import MISS, Step, ToolCall, TurnsCase, hows

#: After ten steps of a turn Hermes reviews it in the background, with tool calls of its own.
NO_REVIEW = "skills:\n  creation_nudge_interval: 0\nmemory:\n  nudge_interval: 0\n"
READ_APP = Step([ToolCall("read_file", {"path": "app.py"})])


class InsideAnotherHermes(LaneCase):
    """The real command, started by a tool of another Hermes: that one's environment is not the child's."""

    def test_the_named_folder_is_recorded_whatever_another_hermes_left_in_the_environment(self) -> None:
        named, other = self.workspace({"app.py": "named\n"}), self.workspace({"app.py": "other\n"})
        gateway = {
            "_HERMES_GATEWAY": "1",
            "TERMINAL_CWD": str(other),
            "MESSAGING_CWD": str(other),
            "HERMES_DESKTOP": "1",
            "HERMES_SESSION_PLATFORM": "telegram",
        }
        self.script(READ_APP, Step(text="read"))
        words = ("cassette", "record", "inside", "--query", "what does it say?", "--in", str(named))
        done = self.hermes(*words, cwd=other, environment=gateway)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        kept = self.home.cassette("inside")
        self.assertEqual(kept["cwd"], str(named))
        self.assertIn("1|named", kept["calls"][0]["result"])
        self.assertEqual(kept["snapshot"]["files"]["app.py"]["text"], "named\n")

    def test_a_session_that_changes_its_shells_folder_still_worked_where_it_should(self) -> None:
        folder = self.workspace({"app.py": "x\n", "server/a.py": "y\n"})
        self.script(READ_APP, Step([ToolCall("terminal", {"command": "cd server"})]), Step(text="read"))
        done = self.hermes(
            "cassette", "record", "moved", "--query", "what does it say?", "--in", str(folder), cwd=folder
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.home.cassette("moved")["cwd"], str(folder))


class WorkingElsewhere(LaneCase):
    """A configuration that moves the session away from the folder that was asked for."""

    config = "worktree: true\n"

    def test_a_session_in_a_worktree_of_its_own_is_not_saved_and_both_folders_are_named(self) -> None:
        folder = self.workspace({"app.py": "x\n"})
        for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm one"):
            subprocess.run(["git", *words.split()], cwd=folder, check=True)
        self.script(READ_APP, Step(text="read"))
        done = self.hermes(
            "cassette", "record", "tree", "--query", "what does it say?", "--in", str(folder), cwd=folder
        )
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stderr, rf"the session worked in {folder}/\.worktrees/\S+, not in {folder}: ")
        self.assertFalse((self.home.data / "cassettes" / "tree.json").exists())


class AFolderBehindALink(LaneCase):
    """The folder is named by a link that leads to it, as everything below /tmp is on macOS."""

    def test_a_path_that_is_spelt_through_the_link_is_the_same_file(self) -> None:
        parent = self.workspace({"real/app.py": "port 8080\n", "real/b.py": "x\n"})
        real, link = parent / "real", parent / "link"
        link.symlink_to("real")

        def read(*paths: Path) -> Step:
            return Step([ToolCall("read_file", {"path": str(path), "limit": 7}) for path in paths])

        self.script(READ_APP, Step([ToolCall("read_file", {"path": f"{real}/b.py"})]), Step(text="port 8080"))
        words = ("cassette", "record", "linked", "--query", "what does it say?", "--in", str(link))
        done = self.hermes(*words, cwd=parent)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(self.home.cassette("linked")["snapshot"]["files"]), ["app.py", "b.py"])
        self.hermes("cassette", "pin", "linked", "8080", cwd=parent)
        self.script(read(link / "app.py", real / "app.py"), read(link / "b.py"), Step(text="port 8080"))
        for folder in ((), ("--in", str(link)), ("--in", str(real))):
            with self.subTest(folder):
                done = self.hermes("cassette", "run", "linked", "--json", *folder, cwd=parent)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual([call["how"] for call in json.loads(done.stdout)["calls"]], ["synthesized"] * 3)


class TheSameCommand(TurnsCase):
    """Commands and arguments that come to the same, each held against what the live tool says of it."""

    config = NO_REVIEW

    RECORDED: tuple[dict[str, Any], ...] = (
        {"command": "cat app.py"},
        {"command": "git log --oneline -5"},
        {"command": "ls"},
        {"command": "rg -n port app.py server"},
        {"command": "cat nope.py"},
    )
    SAME: tuple[dict[str, Any], ...] = (
        {"command": "cat ./app.py"},
        {"command": "cat  app.py"},
        {"command": 'cat "app.py"'},
        {"command": "cat app.py", "timeout": 60},
        {"command": "cat app.py", "workdir": "."},
        {"command": "git log --oneline -n 5"},
        {"command": "git log --oneline -n5"},
        {"command": "git log --oneline --max-count=5"},
        {"command": "git --no-pager log -5 --oneline"},
        {"command": "ls ."},
        {"command": "ls ./", "timeout": 30},
        {"command": "rg -n 'port' app.py server"},
        {"command": "cat 'nope.py'", "workdir": "."},
    )
    OTHERS: tuple[dict[str, Any], ...] = (
        {"command": "cat app.py server/a.py"},
        {"command": "cat ./nope.py"},
        {"command": "cat 'app.p?'"},
        {"command": "rg -n port ./app.py server"},
        {"command": "git log --oneline -4"},
        {"command": "git log -5"},
        {"command": "ls -d ."},
        {"command": "cat app.py", "timeout": -1},
    )
    #: Of these no call was recorded, but the files tell them.
    TOLD: tuple[dict[str, Any], ...] = ({"command": "ls", "workdir": "server"},)

    def steps(self, calls: tuple[dict[str, Any], ...]) -> list[Any]:
        return [*(Step([ToolCall("terminal", args)]) for args in calls), Step(text="port 8080")]

    def test_a_spelling_is_a_hit_where_the_live_tool_answers_it_alike_and_only_there(self) -> None:
        folder = self.workspace({"app.py": "port = 8080\n", "server/a.py": "y\n"})
        for number in range(5):
            (folder / "n.txt").write_text(str(number))
            for words in ("init -q", "add .", f"-c user.name=a -c user.email=a@b commit -qm change-{number}"):
                subprocess.run(["git", *words.split()], cwd=folder, check=True)
        self.script(*self.steps(self.RECORDED))
        _, kept = self.record("spelled", "look around", folder)
        self.assertEqual(len(kept.calls), len(self.RECORDED))
        asked = (*self.SAME, *self.TOLD, *self.OTHERS)
        self.script(*self.steps(asked))
        live = self.host.turn("look again", folder)
        self.script(*self.steps(asked))
        turn, ledger = self.replay("spelled", folder)
        self.assertEqual(turn.ran, [])
        recorded = {call.result for call in kept.calls}
        for args, how, ours, real in zip(asked, hows(ledger), turn.results, live.results):
            with self.subTest(args):
                wanted = "hit" if args in self.SAME else "synthesized" if args in self.TOLD else "miss"
                self.assertEqual(how, wanted)
                self.assertEqual(ours, MISS if how == "miss" else real)
                self.assertEqual(real in recorded, how == "hit")


class ARunThatGoesOn(LaneCase):
    """While the model is asked, another command wants the cassette's name."""

    def test_its_cassette_is_neither_renamed_nor_removed_and_the_run_is_kept(self) -> None:
        folder = self.workspace({"app.py": "port 8080\n"})
        self.script(READ_APP, Step(text="port 8080"))
        self.hermes("cassette", "record", "held", "--query", "which port?", cwd=folder)
        self.hermes("cassette", "pin", "held", "8080", cwd=folder)
        tried: list[subprocess.CompletedProcess[str]] = []

        def meanwhile(messages: Sequence[Any], tools: Sequence[str]) -> Any:
            if not tried:
                tried.append(self.hermes("cassette", "rename", "held", "other", cwd=folder))
                tried.append(self.hermes("cassette", "rm", "held", "--yes", cwd=folder))
            return Step(text="port 8080")

        self.model.brain = meanwhile
        done = self.hermes("cassette", "run", "held", "--timeout", "120", cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for other in tried:
            self.assertEqual(other.returncode, 2, other.stdout)
            self.assertIn("a run of 'held' goes on", other.stderr)
        self.assertEqual(self.hermes("cassette", "rm", "held", "--yes", cwd=folder).returncode, 0)
        self.assertEqual(list((self.home.data / "runs").iterdir()), [])


class PathsThatFail(TurnsCase):
    """A path that is not there, or is no file, fails whatever else is asked of it."""

    RECORDED: tuple[tuple[str, dict[str, Any]], ...] = (
        ("read_file", {"path": "nope.py"}),
        ("read_file", {"path": "server"}),
        ("search_files", {"pattern": "x", "path": "gone"}),
    )
    ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
        ("read_file", {"path": "nope.py", "limit": 10}),
        ("read_file", {"path": "nope.py", "offset": 5}),
        ("read_file", {"path": "server", "limit": 3}),
        ("search_files", {"pattern": "y", "path": "gone", "output_mode": "count"}),
    )

    def test_the_recorded_failure_is_what_the_live_tool_says_of_another_page(self) -> None:
        folder = self.workspace({"app.py": "x\n", "server/a.py": "y\n"})
        steps = [Step([ToolCall(*one)]) for one in self.ASKED]
        for name, names, how in (("fails", False, "hit"), ("known", True, "synthesized")):
            with self.subTest(name):
                self.script(Step([ToolCall(*one) for one in self.RECORDED]), Step(text="nothing there"))
                self.record(name, f"look as {name}", folder, names=names)
                self.script(*steps, Step(text="nothing there"))
                live = self.host.turn("look again", folder)
                self.script(*steps, Step(text="nothing there"))
                turn, ledger = self.replay(name, folder)
                self.assertEqual((turn.results, turn.ran), (live.results, []))
                self.assertEqual(hows(ledger), [how] * len(self.ASKED))


class LinksInTheWorkspace(TurnsCase):
    """`AGENTS.md -> CLAUDE.md` and `lib -> src`, both read: a search answers as the live one does."""

    config = NO_REVIEW
    ENGINE = "rg"
    READ = ("AGENTS.md", "CLAUDE.md", "lib/a.py", "src/a.py", "lib/deep/b.py")
    SEARCHES: tuple[dict[str, Any], ...] = (
        {"pattern": "marker"},
        {"pattern": "marker two", "output_mode": "count"},
        {"pattern": "marker [ab]", "output_mode": "files_only"},
        {"pattern": "*.md", "target": "files"},
        {"pattern": "*.py", "target": "files", "path": "src"},
        {"pattern": "marker a", "path": "lib"},
        {"pattern": "marker b", "path": "lib/deep"},
        {"pattern": "marker o", "path": "AGENTS.md"},
        {"pattern": "*.py", "target": "files", "path": "lib"},
        {"pattern": "*.py", "target": "files", "path": "lib/"},
        {"pattern": "marker a", "path": "lib", "file_glob": "*.py"},
    )
    READS = tuple({"path": path, "limit": 1} for path in ("AGENTS.md", "lib/a.py", "lib/deep/b.py"))

    def test_searches_and_reads_are_answered_as_live(self) -> None:
        folder = self.workspace(
            {"CLAUDE.md": "marker one\nmarker two\n", "src/a.py": "marker a\n", "src/deep/b.py": "marker b\n"}
        )
        (folder / "AGENTS.md").symlink_to("CLAUDE.md")
        (folder / "lib").symlink_to("src")
        self.script(*(Step([ToolCall("read_file", {"path": path})]) for path in self.READ), Step(text="read"))
        _, kept = self.record("links", "look around", folder)
        self.assertEqual(kept.recorder.search, self.ENGINE)
        self.assertEqual(sorted(kept.snapshot.files), ["CLAUDE.md", "src/a.py", "src/deep/b.py"])
        self.assertEqual(kept.snapshot.links, {"AGENTS.md": "CLAUDE.md", "lib": "src"})
        asked = [("search_files", args) for args in self.SEARCHES] + [("read_file", args) for args in self.READS]
        steps = [Step([ToolCall(tool, args)]) for tool, args in asked]
        self.script(*steps, Step(text="done"))
        live = self.host.turn("look again", folder)
        self.script(*steps, Step(text="done"))
        turn, ledger = self.replay("links", folder)
        for (tool, args), how, ours, real in zip(asked, hows(ledger), turn.results, live.results):
            with self.subTest(args):
                self.assertEqual((how, unordered(ours)), ("synthesized", unordered(real)))


class LinksWithoutRipgrep(LinksInTheWorkspace):
    """The same where Hermes searches with grep and find."""

    ENGINE = "grep"

    @property
    def host(self) -> HermesHost:
        cls = type(self)
        if cls._host is None:
            cls._host = HermesHost(cls.version, cls.home, self.without_ripgrep())
            cls.addClassCleanup(cls._stop_host)
        return cls._host

    def without_ripgrep(self) -> dict[str, str]:
        """An environment with every tool of this one but ripgrep."""
        home = Path(tempfile.mkdtemp(prefix="cassettes-test-"))
        self.addClassCleanup(shutil.rmtree, home, ignore_errors=True)
        tools = home / "bin"
        tools.mkdir()
        for tool in (tool for folder in os.environ["PATH"].split(os.pathsep) for tool in Path(folder).glob("*")):
            if tool.name != "rg" and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
        # Hermes starts login shells, whose profile would bring the old PATH back.
        for profile in (".bash_profile", ".profile", ".bashrc"):
            (home / profile).write_text(f"export PATH={tools}\n")
        return {"PATH": str(tools), "HOME": str(home)}


def unordered(text: str) -> Any:
    """A search's result, whatever the order of its files."""
    value = json.loads(text)
    if "matches" in value:
        value["matches"].sort(key=json.dumps)
    if "files" in value:
        value["files"].sort()
    return value


def load_tests(loader: unittest.TestLoader, _: Any, __: Any) -> unittest.TestSuite:
    return lane_suite(
        loader,
        InsideAnotherHermes,
        WorkingElsewhere,
        AFolderBehindALink,
        TheSameCommand,
        ARunThatGoesOn,
        PathsThatFail,
        LinksInTheWorkspace,
        LinksWithoutRipgrep,
    )


if __name__ == "__main__":
    unittest.main()
