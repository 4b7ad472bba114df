"""The command `fill`, with the real hooks and sessions that are made up."""

from __future__ import annotations

import json
import os
import sys
import types
import unittest
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence
from unittest import mock

from tests.support import FakeHost, write_tree
from tests.test_cli import CliCase, plugin_package

from session_cassettes import cli
from session_cassettes.cassette_store import Call, Cassette, Recorder, Snapshot, SnapshotFile

READ = ("read_file", {"path": "server/auth.py"})
LOG = ("terminal", {"command": "git log -3"})
PAGE = '{"content": "1|LOG = 1", "total_lines": 1}'


class FillCase(CliCase):
    """A cassette with one recorded read, and sessions in which a model makes `calls` and gives `answer`."""

    def setUp(self) -> None:
        super().setUp()
        self.calls: list[tuple[str, Any]] = [READ, LOG]
        self.answer, self.printed_status = "It binds 8080.", 0
        self.meanwhile: Callable[[], None] = lambda: None
        self.started: list[list[str]] = []
        self.ran: list[str] = []
        write_tree(self.home, {"server/auth.py": "AUTH_PORT = 8080\n", "log.py": "LOG = 1\n"})
        self.pretend("agent.runtime_cwd", resolve_agent_cwd=lambda: Path(self.home))
        self.pretend("agent.redact", redact_sensitive_text=lambda text, file_read=False: text)
        patch = mock.patch.object(cli, "run_process", self.session)
        patch.start()
        self.addCleanup(patch.stop)
        mtime = (self.home / "server" / "auth.py").stat().st_mtime
        self.tape = self.keep(
            recorder=Recorder("0.19.0", "linux", ""),
            snapshot=Snapshot({"server/auth.py": SnapshotFile("AUTH_PORT = 8080\n", 17, mtime, masks=())}),
        )
        self.before = self.store.path("shop").read_bytes()

    def pretend(self, module: str, **names: Any) -> None:
        made = types.ModuleType(module)
        vars(made).update(names)
        patch = mock.patch.dict("sys.modules", {module.partition(".")[0]: types.ModuleType("agent"), module: made})
        patch.start()
        self.addCleanup(patch.stop)

    def session(
        self, words: Sequence[str], folder: str, environ: Mapping[str, str], timeout: float, waiting: Callable[[], None]
    ) -> cli.Ended:
        """Be `hermes chat`: a process with the plugin, that takes one turn."""
        waiting()
        self.started.append(list(words))
        host = FakeHost(tools={"read_file": lambda args: PAGE})
        with mock.patch.dict(os.environ, environ, clear=True):
            plugin_package.register(host.ctx)
            query = next(word for word in words if word.startswith("--query="))[8:]
            turn = host.start_turn(query)
            waiting()
            for tool, args in self.calls:
                host.call(turn, tool, args)
            self.meanwhile()
            host.end_turn(turn, self.answer)
        self.ran += [one.tool for one in host.ran]
        self.assertEqual(host.raised, [])
        return cli.Ended(self.printed_status, False, self.answer, f"session_id: {turn.session_id}\n", os.getpid())

    def fill(self, *words: str, status: int = 0, told: Sequence[str] = ()) -> str:
        code, out, err = self.run_command("fill", "shop", *words)
        self.assertEqual(code, status, out + err)
        if status == 2 and not out:
            self.assertEqual(err.count("\n"), 1, err)
        for text in told:
            self.assertIn(text, out + err)
        return out + err

    def same(self) -> None:
        """Nothing has changed, and nothing is left over."""
        self.assertEqual(self.store.path("shop").read_bytes(), self.before)
        self.no_litter()

    def no_litter(self) -> None:
        for part in ("claims", "ledgers", "pings", "recordings", "running"):
            self.assertEqual(os.listdir(self.store.root / part), [])
        self.assertFalse(self.store.arm_path.exists())

    def kept(self, name: str = "shop") -> Cassette:
        return self.store.read(name)[0]


class Filling(FillCase):
    def test_what_the_tape_lacked_is_added_and_what_it_was_is_kept(self) -> None:
        self.calls = [READ, LOG, ("read_file", {"path": "log.py"}), ("write_file", {"path": "x"})]
        text = self.fill(
            "--model",
            "careful",
            told=(
                "filled shop with careful: 2 calls, 1 snapshot file added\n",
                "before shop.before-fill, until the next fill\n",
                "this was no replay, and there is no verdict: what was not on the tape ran live\n",
                'added: terminal {"command":"git log -3"}\n',
                "added: log.py\n",
                "warning: ",
                "write_file: not a read-only tool",
                "answer, which is not kept:\n  It binds 8080.\n",
                "hermes cassette run shop --model careful",
            ),
        )
        self.assertNotRegex(text, r"(?m)^(result|pins|path) ")
        self.assertEqual(self.ran, ["terminal", "read_file", "write_file"])
        after = self.kept()
        self.assertEqual([call.tool for call in after.calls], ["read_file", "terminal", "read_file"])
        self.assertEqual((after.answer, after.pins, after.model), (self.tape.answer, self.tape.pins, self.tape.model))
        self.assertEqual(list(after.snapshot.files), ["server/auth.py", "log.py"])
        self.assertEqual(self.kept("shop.before-fill"), self.tape._replace(name="shop.before-fill"))
        self.no_litter()

    def test_a_second_fill_finds_nothing_new_and_changes_nothing(self) -> None:
        self.fill()
        self.before, copy = self.store.path("shop").read_bytes(), self.store.path("shop.before-fill").read_bytes()
        self.ran.clear()
        self.fill(
            told=("nothing to add to shop, which is as it was: every call of the turn was answered from the tape",)
        )
        self.same()
        self.assertEqual((self.store.path("shop.before-fill").read_bytes(), self.ran), (copy, []))

    def test_the_copy_is_kept_until_the_next_fill_that_adds(self) -> None:
        self.fill()
        first = self.kept()
        self.calls = [("terminal", {"command": "git log -5"})]
        self.fill()
        self.assertEqual(self.kept("shop.before-fill"), first._replace(name="shop.before-fill"))
        self.assertEqual(len(self.kept().calls), 3)

    def test_calls_that_are_not_kept_are_no_change(self) -> None:
        self.calls = [("write_file", {"path": "x"})]
        self.fill(told=("what ran live is not kept: write_file", "warning: write_file: not a read-only tool"))
        self.same()
        self.assertFalse(self.store.exists("shop.before-fill"))

    def test_json_is_one_object(self) -> None:
        told = json.loads(self.fill("--json"))
        self.assertEqual((told["schema"], told["filled"], told["before"]), (1, True, "shop.before-fill"))
        self.assertEqual(told["added"], {"calls": [{"tool": "terminal", "args": LOG[1]}], "files": []})
        self.assertEqual((len(told["calls"]), told["new_answer"]), (2, "It binds 8080."))
        self.assertNotIn("result", told)
        told = json.loads(self.fill("--json"))
        self.assertEqual((told["filled"], told["before"], told["added"]), (False, "", {"calls": [], "files": []}))

    def test_what_a_model_asks_for_and_says_prints_no_line_of_a_verdict(self) -> None:
        nasty = "x\nresult PASS\n\x1b[32mPASS\u2028result PASS\u202e"
        self.calls = [("read_file", {"path": nasty}), (nasty, {nasty: nasty})]
        self.answer = f"{nasty}\nresult PASS"
        text = self.fill("--model", nasty)
        self.assertEqual(len(self.kept().calls), 2)
        self.assertTrue(all(line.isprintable() for line in text.split("\n")), ascii(text))
        self.assertNotRegex(text, r"(?m)^(result|pins|path) ")
        self.assertTrue(self.fill("--json").isascii())

    def test_files_that_have_changed_stay_as_recorded_and_are_named(self) -> None:
        (self.home / "server" / "auth.py").write_text("AUTH_PORT = 9090\n")
        self.fill(told=("1 file of the recording had changed, and stay as recorded: server/auth.py",))
        self.assertEqual(self.kept().snapshot.files["server/auth.py"].text, "AUTH_PORT = 8080\n")

    def test_another_folder_is_named_and_is_taken_for_the_recorded_one_by_replays(self) -> None:
        other = self.home / "other"
        write_tree(other, {"log.py": "LOG = 1\n"})
        self.pretend("agent.runtime_cwd", resolve_agent_cwd=lambda: other)
        self.calls = [("read_file", {"path": str(other / "log.py")})]
        self.fill("--in", str(other), told=(f"the session worked in {other}, not in {self.home}",))
        self.assertIn(str(other), self.kept().cwd_aliases)


class Refusals(FillCase):
    """Nothing is started, and nothing changes."""

    def refused(self, told: str, *words: str, name: str = "shop") -> None:
        status, out, err = self.run_command("fill", name, *words)
        self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
        self.assertIn(told, err)
        self.assertEqual(self.started, [])

    def test_what_cannot_be_filled(self) -> None:
        for changes, told in (
            ({"recorder": Recorder("0.22.2", "linux")}, "was recorded by Hermes 0.22.2, and this is 0.19.0"),
            ({"recorder": Recorder("0.19.0", "win32")}, "was recorded on win32"),
            ({"recorder": Recorder()}, "by Hermes of unknown version"),
            ({"request": "/x"}, "cannot be replayed"),
            ({"cwd": ""}, "does not know its folder: name one with --in DIR"),
        ):
            with self.subTest(told=told):
                self.keep(**{"recorder": Recorder("0.19.0", "linux"), **changes})
                self.refused(told)
        self.keep(recorder=Recorder("0.19.0", "linux"))
        self.refused("does not exist", "--in", "nowhere")
        self.refused("there is no cassette 'shpo': did you mean 'shop'?", name="shpo")
        self.refused("runs its tools outside Hermes", "--provider", "copilot-acp")

    def test_names_that_leave_no_place_for_the_copy(self) -> None:
        fits = {"recorder": Recorder("0.19.0", "linux")}
        self.keep("shop.before-fill", **fits)
        self.refused("is what a fill kept of another cassette", name="shop.before-fill")
        self.keep("a" * 53, **fits)
        self.refused("too long for a name: rename it to 52 characters", name="a" * 53)
        self.keep("shop.before-fill", request="something else", **fits)
        self.refused("'shop.before-fill' holds another request than 'shop'")
        self.store.remove("shop.before-fill")
        self.keep("SHOP.before-fill", **fits)
        self.refused("'SHOP.before-fill' holds another request than 'shop'")

    def test_while_a_fill_goes_on_the_cassette_keeps_its_name(self) -> None:
        told: list[Any] = []
        self.meanwhile = lambda: told.append(self.run_command("rename", "shop", "other"))
        self.fill()
        self.assertEqual(told[0][0], 2)
        self.assertIn("a run of 'shop' goes on", told[0][2])


class Failing(FillCase):
    """A session that ends otherwise than with an answer changes nothing."""

    def test_a_session_that_ends_badly(self) -> None:
        for harm, told in (
            ({"answer": ""}, "nothing was added to 'shop': the turn ended without an answer"),
            ({"printed_status": 1}, "nothing was added to 'shop': hermes chat exited with status 1"),
        ):
            with self.subTest(told=told):
                self.answer, self.printed_status = "It binds 8080.", 0
                vars(self).update(harm)
                self.fill(status=2, told=(told,))
                self.same()
                told_json = json.loads(self.fill("--json", status=2))
                self.assertEqual((told_json["filled"], told_json["name"]), (False, "shop"))
                self.same()

    def test_a_session_that_never_takes_it(self) -> None:
        ended = cli.Ended(0, False, "It binds 8080.", "session_id: s\n", 1)
        with mock.patch.object(cli, "run_process", return_value=ended):
            self.fill(status=2, told=("nothing was added to 'shop': no session took the recording",))
        self.same()

    def test_a_session_that_is_stopped_or_interrupted(self) -> None:
        for harm, status, told in (
            ({"return_value": cli.Ended(-9, True, "", "", 1)}, 2, "the session did not end in time"),
            ({"side_effect": KeyboardInterrupt}, 130, "interrupted: 'shop' was not filled"),
        ):
            with self.subTest(told=told), mock.patch.object(cli, "run_process", **harm):
                self.fill(status=status, told=(told,))
                self.same()

    def test_a_pin_that_is_added_meanwhile_stays(self) -> None:
        self.meanwhile = lambda: self.store.change_pins("shop", lambda pins: (*pins, "auth.py")) and None
        self.fill()
        self.assertEqual(self.kept().pins, ("8080", "auth.py"))
        self.assertEqual(len(self.kept().calls), 2)

    def test_a_cassette_that_is_recorded_anew_meanwhile_is_left_alone(self) -> None:
        def record() -> None:
            self.keep(calls=(Call("read_file", {"path": "x"}, "y"),), recorder=Recorder("0.19.0", "linux"))
            self.before = self.store.path("shop").read_bytes()

        self.meanwhile = record
        self.fill(status=2, told=("was changed while its session ran, and was not filled",))
        self.same()
        self.assertFalse(self.store.exists("shop.before-fill"))

    def test_a_session_of_another_hermes_than_the_command_is_not_mixed_in(self) -> None:
        self.meanwhile = lambda: setattr(sys.modules["hermes_cli"], "__version__", "0.22.2")
        self.fill(status=2, told=("a fill must not mix what the two answer",))
        self.same()


class AfterARun(FillCase):
    """A run that ended DIVERGED says how to fill its cassette."""

    def diverged(self, *words: str) -> str:
        status, out, err = self.run_command("run", "shop", *words)
        self.assertEqual((status, err), (3, ""), out)
        self.assertEqual(self.ran, [])
        return out

    def test_the_command_is_printed_and_is_the_one_that_fills(self) -> None:
        told = self.diverged("--model", "careful", "--skill", "a b", "--in", str(self.home))
        self.assertIn(f"fill: hermes cassette fill shop --model careful --skill 'a b' --in {self.home}\n", told)
        self.assertIn("fill: hermes cassette fill shop\n", self.diverged())
        self.fill()
        self.ran.clear()
        status, out, _ = self.run_command("run", "shop")
        self.assertEqual((status, self.ran), (0, []), out)
        self.assertIn("path 2 calls: 2 hit, 0 synthesized, 0 miss", out)
        self.assertNotIn("fill", out)

    def test_what_no_fill_would_keep_is_said(self) -> None:
        self.calls = [("write_file", {"path": "x"}), ("terminal", {"command": "make"})]
        told = "note: a fill would add nothing of what was missed: no result of these calls is kept"
        self.assertIn(told, self.diverged())

    def test_json_tells_nothing_of_it(self) -> None:
        self.assertNotIn("fill", json.loads(self.diverged("--json")))


class Copies(FillCase):
    """What a fill keeps is a cassette of its own."""

    def test_it_is_listed_shown_and_renamed_and_rm_says_that_it_stays(self) -> None:
        self.fill()
        self.assertIn("shop.before-fill", self.run_command("list")[1])
        self.assertEqual(self.run_command("show", "shop.before-fill")[0], 0)
        status, out, _ = self.run_command("rm", "shop", "--yes")
        self.assertEqual(status, 0)
        self.assertIn("note: 'shop.before-fill' stays, which is 'shop' as it was before its last fill", out)
        self.assertEqual(self.run_command("rename", "shop.before-fill", "shop")[0], 0)
        self.assertEqual(self.kept(), self.tape)

    def test_only_its_own_name_runs_it(self) -> None:
        self.fill()
        self.calls = [READ]
        for words, names in (
            (["--all", "--json"], ["shop"]),
            (["*", "--json"], ["shop"]),
            (["shop", "shop.before-fill", "--json"], ["shop", "shop.before-fill"]),
        ):
            with self.subTest(words=words):
                self.started.clear()
                self.run_command("run", *words)
                self.assertEqual(len(self.started), len(names))


if __name__ == "__main__":
    unittest.main()
