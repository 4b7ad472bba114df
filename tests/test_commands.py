"""Which spellings of a terminal command are one, checked against the programs themselves."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import subprocess
import unittest
from typing import Any, Mapping

from tests.support import temp_folder, write_tree

from session_cassettes.cassette_store import Call, Cassette, Recorder, Snapshot, SnapshotFile
from session_cassettes.middleware import Forms, command_forms
from session_cassettes.snapshot import split_command
from session_cassettes.middleware import CommandKeys
from session_cassettes.snapshot import Workspace, terminal_verdict

ROOT = "/home/me/shop"
OK = json.dumps({"output": "text", "exit_code": 0, "error": None})
FAILED = json.dumps({"output": "cat: nope: No such file or directory", "exit_code": 1, "error": None})
LATE = json.dumps({"output": "[Command timed out after 1s]", "exit_code": 124, "error": None})

Args = Mapping[str, Any]


class Words(unittest.TestCase):
    @unittest.skipUnless(os.name == "posix" and shutil.which("bash"), "needs bash to compare with")
    def test_the_words_are_those_that_bash_makes(self) -> None:
        pieces = ["a", "-b", " ", "  ", "'x y'", '"x y"', "\\ ", '\\"', "''", '"\\\\"', '"a\\b"', "\\|", "=", "#", "~x"]
        rng = random.Random(3)
        commands = ["cat " + "".join(rng.choice(pieces) for _ in range(rng.randint(1, 7))) for _ in range(300)]
        kept = [command for command in commands if split_command(command, False) is not None]
        script = "\n".join(f"printf '%s\\0' {command}; printf '\\1'" for command in kept)
        output = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.decode()
        for command, words in zip(kept, output.split("\1")):
            mine = "".join(word.text + "\0" for word in split_command(command, False))
            self.assertEqual(mine, words, command)
        self.assertGreater(len(kept), 100)


class CommandCase(unittest.TestCase):
    def keys(
        self, *recorded: tuple[Any, Any], hermes: str = "0.22.2", platform: str = "linux", aliases: tuple[str, ...] = ()
    ) -> CommandKeys:
        """The keys of a recording of these calls, each with its result, in a shop with two folders."""
        files = {"app.py": SnapshotFile("x", 1), "server/auth.py": SnapshotFile("y", 1)}
        host = Recorder(hermes, platform, "rg")
        calls = tuple(Call("terminal", _args(args), result) for args, result in recorded)
        cassette = Cassette("c", "q", "a", cwd=ROOT, recorder=host, calls=calls, snapshot=Snapshot(files))
        return CommandKeys(cassette, Workspace(ROOT, aliases), host)

    def check(self, keys: CommandKeys, recorded: Any, same: list[Any], others: list[Any]) -> None:
        key = keys.key(_args(recorded)) or _args(recorded)
        for asked in same:
            with self.subTest(recorded=recorded, same=asked):
                self.assertEqual(keys.key(_args(asked)) or _args(asked), key)
        for asked in others:
            with self.subTest(recorded=recorded, other=asked):
                self.assertNotEqual(keys.key(_args(asked)) or _args(asked), key)


def _args(args: Any) -> dict[str, Any]:
    return {"command": args} if isinstance(args, str) else dict(args)


class TheSameCommand(CommandCase):
    def test_a_file_is_read_by_whichever_words_name_it(self) -> None:
        same = [
            "cat ./app.py",
            "cat  app.py",
            'cat "app.py"',
            "cat 'app.py'",
            "cat -- app.py",
            f"cat {ROOT}/app.py",
            f"cat {ROOT}//./app.py",
            {"command": "cat app.py", "timeout": 60},
            {"command": "cat app.py", "timeout": "60"},
            {"command": "cat app.py", "workdir": "."},
            {"command": "cat app.py", "workdir": ROOT},
            {"command": "cat app.py", "workdir": None},
            {"command": f"cat {ROOT}/app.py", "workdir": "server"},
            {"command": "cat app.py", "background": False, "pty": False, "watch_patterns": [], "notify": None},
            {"command": "cat app.py", "heartbeat": 60},
        ]
        others = [
            "cat App.py",
            "cat app.py app.py",
            "cat -n app.py",
            "cat app.py/",
            "cat server/../app.py",
            "cat *.py",
            "cat app.py; ls",
            "/bin/cat app.py",
            "'cat' app.py",
            {"command": "cat app.py", "workdir": "server"},
            {"command": f"cat {ROOT}/app.py", "workdir": "gone"},
            {"command": "cat app.py", "workdir": "gone/.."},
            {"command": "cat app.py", "background": True},
            {"command": "cat app.py", "pty": True},
            {"command": "cat app.py", "timeout": 0},
            {"command": "cat app.py", "timeout": -5},
            {"command": "cat app.py", "timeout": 601},
            {"command": "cat app.py", "timeout": "soon"},
            {"command": "cat app.py", "new": "thing"},
        ]
        for recorded in ("cat app.py", {"command": "cat ./app.py", "timeout": 9}):
            self.check(self.keys((recorded, OK)), recorded, same, others)

    def test_a_history_is_as_long_as_it_is_told_in_any_way(self) -> None:
        recorded = "git log --oneline -5"
        same = ["-n 5", "-n5", "-5", "--max-count=5", "--max-count 5"]
        told = [f"git log --oneline {count}" for count in same] + [f"git log {count} --oneline" for count in same]
        told += [f"git --no-pager log --oneline {count}" for count in same]
        others = [
            "git log --oneline",
            "git log --oneline -4",
            "git log --oneline -5 -3",
            "git log --oneline -5 --max-count=03",
            "git log --oneline -5 HEAD~1",
            "git log --oneline HEAD -5",
            "git log --author -5 --oneline",
            "git log -5",
            "git show --oneline -5",
            "git log --oneline -- -5",
        ]
        self.check(self.keys((recorded, OK)), recorded, told, others)
        self.check(
            self.keys(), "git log --oneline -- app.py", ["git  log --oneline -- 'app.py'"], ["git log -- app.py"]
        )

    def test_a_listing_of_one_folder_does_not_say_how_that_is_called(self) -> None:
        same = ["ls .", "ls ./", "ls  ./.", {"command": "ls", "workdir": ROOT}, f"ls {ROOT}"]
        others = ["ls -a", "ls *", "ls ./*", "ls -d .", "ls server", "dir", {"command": "ls", "workdir": "server"}]
        self.check(self.keys(("ls", OK)), "ls", same, others)
        same = ["ls ./server", "ls server/", f"ls {ROOT}/server", {"command": "ls", "workdir": "server"}]
        self.check(self.keys(("ls server", OK)), "ls server", same, ["ls server .", "ls app.py", "ls server/.."])
        self.check(self.keys(("ls -la", OK)), "ls -la", ["ls -al", "ls -l -a", "ls -la ./"], ["ls -lA", "ls -laR"])
        # What may be a file, or a link, is printed as it was typed.
        self.check(self.keys(("ls app.py", OK)), "ls app.py", ["ls 'app.py'"], ["ls ./app.py"])
        self.check(self.keys(("ls docs", OK)), "ls docs", [], ["ls ./docs", "ls docs/"])
        linked = self.keys(("ls -l", OK), aliases=("/link",))
        self.check(linked, "ls -l", ["ls -l .", "ls -l /link/"], ["ls -l /link"])

    def test_a_program_that_prints_names_gets_equal_words_or_is_another_command(self) -> None:
        recorded = "rg -n 'AUTH PORT' server"
        same = ['rg -n "AUTH PORT" server', "rg  -n AUTH\\ PORT server", {"command": recorded, "timeout": 30}]
        others = ["rg -n 'AUTH PORT' ./server", "rg -n 'AUTH PORT' server/", "rg 'AUTH PORT' -n server"]
        self.check(self.keys((recorded, OK)), recorded, same, others)
        for other in ("git diff ./app.py", "git diff -- app.py"):
            self.check(self.keys(("git diff app.py", OK)), "git diff app.py", ['git diff "app.py"'], [other])

    def test_a_pattern_is_not_the_name_that_it_looks_like(self) -> None:
        for live, dead in (("*.py", "'*.py'"), ("~/a", "'~/a'"), ("[ab]", '"[ab]"'), ("a?", "a\\?")):
            self.check(
                self.keys((f"cat {live}", OK)), f"cat {live}", [f"cat  {live}"], [f"cat {dead}", f"cat ./{live}"]
            )

    def test_an_option_is_not_the_file_of_its_name(self) -> None:
        self.check(self.keys(("cat -n", OK)), "cat -n", [], ["cat ./-n", "cat -- -n"])
        self.check(self.keys(("cat ./-n", OK)), "cat ./-n", ["cat -- -n", f"cat {ROOT}/-n"], ["cat -n"])
        self.check(self.keys(("cat -", OK)), "cat -", [], ["cat ./-"])

    def test_a_complaint_names_the_file_as_it_was_typed(self) -> None:
        same = ["cat  nope", "cat 'nope'", {"command": "cat nope", "timeout": 60, "workdir": "."}]
        self.check(self.keys(("cat nope", FAILED)), "cat nope", same, ["cat ./nope", f"cat {ROOT}/nope", "cat -- nope"])

    def test_where_time_ran_out_time_counts(self) -> None:
        recorded = {"command": "git log -5", "timeout": 1}
        keys = self.keys((recorded, LATE))
        self.check(keys, recorded, [{"command": "git  log -5", "timeout": "1"}], ["git log -5", "git log -n 5"])

    def test_what_hermes_reads_in_a_commands_text_must_be_the_same_text(self) -> None:
        """Its remarks on an exit status, and how strictly it redacts, go by the text (`_interpret_exit_code`)."""
        for one, other in (
            ("rg 'grep|rg'", 'rg "grep|rg"'),
            ("rg 'a; env'", "rg a\\;\\ env"),
            ("cat .env", "cat ./.env"),
            ("cat server/.env.local", 'cat "server/.env.local"'),
            ("cat config.yaml", "cat ./config.yaml"),
            ("cat 'a .env'", "cat a\\ .env"),
        ):
            self.check(self.keys((one, OK)), one, [one], [other])

    def test_on_windows_only_words_that_every_shell_there_reads_alike_are_equal(self) -> None:
        keys = self.keys(("cat app.py", OK), platform="win32")
        self.check(keys, "cat app.py", ["cat  app.py", 'cat "app.py"'], ["cat ./app.py", "cat 'app.py'", "cat a,pp.py"])

    def test_a_folder_that_an_older_hermes_stays_in_is_nowhere_passed_over(self) -> None:
        """After a call with a `workdir`, 0.19 runs the later ones there too."""
        recorded = (({"command": "ls", "workdir": "server"}, OK), ("cat auth.py", OK))
        old, new = self.keys(*recorded, hermes="0.19.0"), self.keys(*recorded)
        others = ["cat ./auth.py", f"cat {ROOT}/auth.py", {"command": "cat auth.py", "workdir": "."}]
        self.check(old, "cat auth.py", ["cat 'auth.py'"], others)
        self.check(new, "cat auth.py", others, [])

    def test_a_folder_that_an_older_hermes_would_stay_in_makes_another_call_of_it(self) -> None:
        """It moves the calls after it, whose recorded results are those of the workspace."""
        recorded = "cat server/auth.py"
        there = {"command": "cat auth.py", "workdir": "server"}
        self.check(self.keys((recorded, OK)), recorded, [there], [])
        self.check(self.keys((recorded, OK), hermes="0.19.0"), recorded, ["cat ./server/auth.py"], [there])
        self.check(
            self.keys(("ls", OK), hermes="0.19.0"), "ls", ["ls ."], [{"command": f"ls {ROOT}", "workdir": "server"}]
        )

    def test_what_is_no_plain_run_or_no_json_has_no_key(self) -> None:
        keys = self.keys()
        for args in ({}, {"command": None}, {"command": ["ls"]}, {"command": "ls", "workdir": 7}, {"command": "a\nb"}):
            self.assertIsNone(keys.key(args), args)


@unittest.skipUnless(os.name == "posix" and shutil.which("bash") and shutil.which("git"), "needs bash and git")
class AgainstThePrograms(unittest.TestCase):
    """Random commands in a real folder: what has one key prints one output, wherever one of them succeeds."""

    FILES = {
        "app.py": "print(1)\n",
        "-n": "dashed\n",
        "a b": "blank\n",
        "~": "tilde\n",
        "server/auth.py": "AUTH = 8080\n",
        "server/app.py": "other\n",
        "server/deep/x.txt": "deep\n",
        "docs": "a file\n",
    }

    def setUp(self) -> None:
        self.folder = temp_folder(self) / "shop"  # whose parent changes with nobody else's doing
        write_tree(self.folder, self.FILES)
        (self.folder / "lib").symlink_to("server")
        self.git("init", "-q")
        for number in range(7):
            (self.folder / "app.py").write_text(f"print({number})\n")
            self.git("add", ".")
            self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", f"change {number}")
        self.workspace = Workspace.here(str(self.folder))

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.folder, check=True)

    def forms(self, command: str) -> Forms | None:
        folders = {self.workspace.canonical(name) for name in ("server", "server/deep")} | {"."}
        return command_forms(
            command, False, self.workspace.canonical, lambda path: self.workspace.canonical(path) in folders
        )

    def run_it(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        return done.returncode, (done.stdout + done.stderr).strip()

    def spelled(self, rng: random.Random, name: str) -> str:
        """One of many spellings of a name, some of which mean another file."""
        path = rng.choice([name, f"./{name}", f"{self.folder}/{name}", f"{name}/", f"server/../{name}", f".//{name}"])
        return rng.choice([path, f"'{path}'", f'"{path}"', path.replace(" ", "\\ "), path.replace("a", "\\a")])

    def made(self, rng: random.Random) -> str:
        names = [*self.FILES, "nope", "lib", "lib/auth.py", ".", "server", "*.py", "server/*", "-"]
        paths = [self.spelled(rng, rng.choice(names)) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
        if rng.random() < 0.4:
            options = rng.choices(
                ["-l", "-la", "-a", "-al", "-A", "-1", "-d", "-R", "-F", "-p", "-i", "-r"], k=rng.randrange(3)
            )
            return " ".join([rng.choice(["ls", "ls", "dir"]), *options, *paths])
        if rng.random() < 0.5:
            return rng.choice([" ", "  "]).join(["cat", *rng.choices(["-n", "--", "-A"], k=rng.randrange(2)), *paths])
        counts = ["-5", "-n 5", "-n5", "--max-count=5", "--max-count 5", "-2", "-n 2", "--skip=1", "--max-count=02"]
        flags = ["--oneline", "--stat", "-p", "--format=%s", "--reverse", "--author a", "HEAD~2", "-- app.py", "app.py"]
        rest = rng.choices(counts, k=rng.randrange(3)) + rng.choices(flags, k=rng.randrange(3))
        rng.shuffle(rest)
        return " ".join(["git", *rng.choices(["--no-pager"], k=rng.randrange(2)), rng.choice(["log", "show"]), *rest])

    def test_commands_with_one_form_print_one_output(self) -> None:
        rng = random.Random(11)
        groups: dict[Any, set[str]] = {}
        for _ in range(3000):
            command = self.made(rng)
            forms = self.forms(command)
            if forms is None or terminal_verdict({"command": command}) is not None:
                continue
            groups.setdefault(forms.words, set()).add(command)
            groups.setdefault(("outcome", *forms.outcome), set()).add(command)
        printed: dict[str, tuple[int, str]] = {}
        compared = 0
        for form, commands in groups.items():
            for one, other in itertools.pairwise(sorted(commands)):
                results = [printed.setdefault(each, self.run_it(each)) for each in (one, other)]
                if form[0] == "outcome" and all(code for code, _ in results):
                    continue
                compared += 1
                self.assertEqual(results[0], results[1], (one, other))
        self.assertGreater(compared, 150)


if __name__ == "__main__":
    unittest.main()
