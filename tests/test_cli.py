"""The two front doors: parsing, printing, exit codes, the child's arguments and environment."""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import sys
import unittest
from typing import Any, Sequence
from unittest import mock

from tests.support import FakeHost, be_hermes, load_plugin, temp_folder, write_tree

plugin_package = load_plugin()
from session_cassettes import cli, hooks  # noqa: E402
from session_cassettes.suite import launching  # noqa: E402
from session_cassettes.suite import door  # noqa: E402
from session_cassettes.cassette_store import (
    Answered,
    Call,
    Cassette,
    CassetteError,
    Claim,
    Recorder,
    Ledger,
    Snapshot,
    SnapshotFile,
    Store,
    to_json,
    write_atomically,
)
from session_cassettes.middleware import Child, PinResult, grade

QUESTION = "Where is the auth handler?"
HIT = Answered("read_file", {}, "hit", recorded=1)
PASSED = "result PASS\npins 1/1\n[ok] 8080\npath 1 call: 1 hit, 0 synthesized, 0 miss"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class CliCase(unittest.TestCase):
    def setUp(self) -> None:
        self.home = temp_folder(self)
        patch = mock.patch.dict(os.environ, {"HERMES_HOME": str(self.home), "NO_COLOR": "1"})
        patch.start()
        self.addCleanup(patch.stop)
        be_hermes(self, self.home, "0.19.0")
        self.host = FakeHost()
        plugin_package.register(self.host.ctx)
        self.store = Store(hooks.data_dir())
        self.store.prepare()

    def keep(self, name: str = "shop", **changes: Any) -> Cassette:
        fields: dict[str, Any] = {
            "request": QUESTION,
            "answer": "server/auth.py, port 8080",
            "model": "careful",
            "cwd": str(self.home),
            "recorder": Recorder("0.19.0", "linux", "rg"),
            "pins": ("8080",),
            "calls": (Call("read_file", {"path": "server/auth.py"}, "1|AUTH_PORT = 8080"),),
            "snapshot": Snapshot({"server/auth.py": SnapshotFile("AUTH_PORT = 8080\n", 17)}, {"hidden": 2}),
            **changes,
        }
        if "snapshot" not in changes:  # its folder is as recorded
            write_tree(self.home, {path: file.text for path, file in fields["snapshot"].files.items()})
        self.store.save(Cassette(name, **fields), overwrite=True)
        return self.store.read(name)[0]

    def run_command(self, *words: str, terminal: bool = False) -> tuple[int, str, str]:
        """Run `hermes cassette WORDS` as Hermes 0.19 does; return status, stdout, stderr."""
        command = self.host.ctx.cli_commands["cassette"]
        top = argparse.ArgumentParser(prog="hermes")
        top.add_argument("--model")
        parser = top.add_subparsers(dest="command").add_parser("cassette")
        command.setup(parser)
        made = Terminal if terminal else io.StringIO
        with mock.patch("sys.stdout", made()) as out, mock.patch("sys.stderr", made()) as err:
            try:
                options = top.parse_args(["cassette", *words])
                command.handler(options)  # 0.19 ignores what it returns
                status = 0
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 0
        return status, out.getvalue(), err.getvalue()


class Pinning(CliCase):
    def pins(self) -> tuple[str, ...]:
        return self.store.read("shop")[0].pins

    def test_the_words_of_a_fact_are_one_pin(self) -> None:
        self.keep(pins=())
        self.assertEqual(self.run_command("pin", "shop", "port", "8080")[0], 0)
        self.assertEqual(self.pins(), ("port 8080",))

    def test_a_fact_that_starts_with_a_dash_comes_after_two(self) -> None:
        self.keep(pins=())
        self.assertEqual(self.run_command("pin", "shop", "--", "-Q is quiet")[0], 0)
        self.assertEqual(self.pins(), ("-Q is quiet",))
        self.assertEqual(self.run_command("pin", "shop", "--remove", "--", "-Q is quiet")[0], 0)
        self.assertEqual(self.pins(), ())

    def test_in_a_session_remove_removes(self) -> None:
        for typed, pin in (
            ("--remove 8080", "8080"),
            ("8080 --remove", "8080"),
            ('--remove "auth handler"', "auth handler"),
            ("--remove -- -Q is quiet", "-Q is quiet"),
            ("--remove -- --remove", "--remove"),
            ('--remove "a" and "b"', '"a" and "b"'),
        ):
            with self.subTest(typed=typed):
                self.keep(pins=(pin, "stays"))
                said = self.host.slash(f"/cassette pin shop {typed}")
                self.assertEqual((self.pins(), said), (("stays",), f'unpinned "{pin}"; shop has 1 pin'))
        self.keep(pins=("8080", "stays"))
        self.host.slash("/cassette pin --remove shop 8080")
        self.assertEqual(self.pins(), ("stays",))

    def test_in_a_session_a_fact_about_the_flag_can_still_be_pinned(self) -> None:
        for typed, pin in (
            ("-- --remove", "--remove"),
            ("-- say --remove", "say --remove"),
            ("the flag --remove removes", "the flag --remove removes"),
            ("--removed", "--removed"),
            ("-Q is quiet", "-Q is quiet"),
        ):
            with self.subTest(typed=typed):
                self.keep(pins=())
                self.host.slash(f"/cassette pin shop {typed}")
                self.assertEqual(self.pins(), (pin,))
        self.assertIn("required: FACT", self.host.slash("/cassette pin shop --remove"))

    def test_an_expression_sees_the_answer_and_its_slashed_form(self) -> None:
        for pin, answer, holds in (
            (r"re:\b8080\b", "port 8080.", True),
            (r"re:\b8080\b", "18080", False),
            (r"re:SERVER/auth", "server\\AUTH", True),
            (r"re:server\\auth", "server\\auth", True),
            (r"re:^b", "a\nb", False),
            (r"re:(?m)^b", "a\nb", True),
        ):
            with self.subTest(pin=pin, answer=answer):
                self.assertEqual(cli.hold_pins([pin], answer), ({pin: PinResult(pin, holds)}, []))

    def test_an_expression_that_does_not_compile_is_refused_in_one_line(self) -> None:
        rng = random.Random(9)
        noise = ("".join(rng.choice(r"ab()[]{}?*+|\^$.,<>=!:#PiLaux-019") for _ in range(8)) for _ in range(8))
        broken = ("(", "(?a)(?u)x", "[", "(?L)x", "\\", "a{99999999999999999999}", "(" * 5_000, "(?P<1>x)")
        for number, pattern in enumerate((*broken, *noise)):
            with self.subTest(pattern=pattern[:20]):
                self.keep(pins=())
                status, _, err = self.run_command("pin", "shop", f"re:{pattern}")
                if number < len(broken):
                    self.assertEqual((status, self.pins()), (2, ()))
                    self.assertIn("does not compile", err)
                self.assertEqual((err.count("\n"), status), (0, 0) if self.pins() else (1, 2))

    def test_one_that_came_by_hand_is_refused_before_a_run(self) -> None:
        self.keep(pins=("8080", "re:("))
        with mock.patch.object(cli.subprocess, "Popen", wraps=cli.subprocess.Popen) as started:
            status, out, err = self.run_command("run", "shop")
        self.assertEqual((status, out, err.count("\n")), (2, "", 1))
        self.assertIn("does not compile", err)
        self.assertEqual(started.call_count, 1)  # the pins' own child

    def test_a_pin_is_removed_by_its_text(self) -> None:
        self.keep(pins=("8080", "auth.py"))
        self.assertEqual(self.run_command("pin", "shop", "8080", "--remove")[0], 0)
        self.assertEqual(self.pins(), ("auth.py",))
        status, out, err = self.run_command("pin", "shop", "8080", "--remove")
        self.assertEqual((status, out), (2, ""))
        self.assertIn('no pin "8080": its pins are "auth.py"', err)

    def test_bad_pins_are_refused_in_one_line_and_nothing_changes(self) -> None:
        self.keep()
        before = self.store.path("shop").read_bytes()
        for fact in ("re:(", "re:", "re:.*", "re:a*", "re:|x", "re:^", "  ", "8080", "two\nlines"):
            status, out, err = self.run_command("pin", "shop", "--", fact)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), fact)
        self.assertEqual(self.store.path("shop").read_bytes(), before)

    def test_a_fact_keeps_its_backslashes_and_quotes_in_a_session(self) -> None:
        self.keep(pins=())
        self.host.slash('/cassette pin shop server\\auth.py says "8080"')
        self.host.slash("/cassette pin shop -Q")
        self.host.slash('/cassette pin shop "auth handler"')
        self.assertEqual(self.pins(), ('server\\auth.py says "8080"', "-Q", "auth handler"))

    def test_a_pin_that_the_recorded_answer_does_not_hold_is_noted(self) -> None:
        self.keep(pins=())
        self.assertIn("does not hold", self.run_command("pin", "shop", "9090")[1])
        self.assertNotIn("does not hold", self.run_command("pin", "shop", "8080")[1])

    def test_a_mistyped_name_offers_the_nearest(self) -> None:
        self.keep("tinyshop")
        for words in (("pin", "tinyshpo", "x"), ("show", "tinyshpo"), ("run", "tinyshpo"), ("rm", "tinyshpo", "--yes")):
            status, _, err = self.run_command(*words)
            self.assertEqual(
                (status, err), (2, "hermes cassette: there is no cassette 'tinyshpo': did you mean 'tinyshop'?\n")
            )

    def test_a_pin_that_backtracks_without_end_is_told_and_never_waited_for(self) -> None:
        answer = "a" * 60 + "!"
        with mock.patch.object(cli, "PIN_SECONDS", 1.0):
            held, reasons = cli.hold_pins(["8080", "re:a{60}!", "re:(a+)+$", "re:x"], answer)
        self.assertEqual({pin: one.ok for pin, one in held.items()}, {"8080": False, "re:a{60}!": True})
        self.assertEqual(reasons, ['the pin "re:(a+)+$" could not be tried in 1 s on this answer'])

    def test_a_pin_that_could_never_fail_is_refused_also_when_it_came_by_hand(self) -> None:
        self.keep(pins=("8080", "re:.*"))
        status, _, err = self.run_command("run", "shop")
        self.assertEqual(status, 2)
        self.assertIn('the pin "re:.*" matches even an empty answer', err)

    def test_a_pin_that_takes_for_ever_hangs_neither_the_command_nor_the_session(self) -> None:
        self.keep(pins=())
        with mock.patch.object(cli, "PIN_SECONDS", 1.0):
            self.assertEqual(self.run_command("pin", "shop", "re:(|){40}(?=x)")[0], 2)
            self.assertIn("could not be tried", self.host.slash("/cassette pin shop re:(|){40}(?=x)"))
        self.assertEqual(self.pins(), ())

    def test_expressions_and_plain_pins_are_held_against_one_answer(self) -> None:
        answer = "See server\\auth.py: port 8080 (→ Über \ud800)"
        pins = [
            "re:\\b8080\\b",
            "re:SERVER/auth\\.py",
            "re:server\\\\auth",
            "re:über",
            "re:9090",
            "server/AUTH.py",
            "x",
        ]
        held, reasons = cli.hold_pins(pins, answer)
        self.assertEqual(reasons, [])
        self.assertEqual([held[pin].ok for pin in pins], [True, True, True, True, False, True, False])


class Looking(CliCase):
    def test_list_fits_eighty_columns_and_tells_of_broken_cassettes(self) -> None:
        for number in range(100):
            self.keep(
                f"cassette-{number:03}", warnings=("1 tool call was not kept: this cassette may not replay cleanly",)
            )
        self.store.path("cassette-050").write_bytes(b"{")
        self.store.save_run("cassette-001", "20260101T000000-x", {"result": "PASS", "model": "gpt-oss:20b"})
        status, out, err = self.run_command("list")
        rows = [line for line in out.splitlines() if not line.startswith(" ")]
        self.assertEqual((status, err, len(rows)), (0, "", 101))
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        self.assertIn("PASS", rows[2])
        self.assertIn("gpt-oss:20b", rows[2])
        self.assertIn("broken", rows[51])
        self.assertIn("! 1 tool call was not kept", out)

    def test_list_of_nothing_says_what_to_do(self) -> None:
        self.assertIn("hermes cassette record", self.run_command("list")[1])

    def test_show_tells_all_that_a_cassette_holds(self) -> None:
        self.keep(not_kept=("write_file",), warnings=("a warning",))
        for number in range(7):
            self.store.save_run(
                "shop", f"2026010{number}T000000-x", {"result": "FAIL", "at": f"day {number}", "pins": []}
            )
        out = self.run_command("show", "shop")[1]
        for told in (
            QUESTION,
            "server/auth.py, port 8080",
            "pins (1):\n  8080",
            'read_file {"path":"server/auth.py"}',
            "calls not kept (1):\n  write_file",
            "server/auth.py (17 bytes)",
            "2 hidden",
            "a warning",
            str(self.store.path("shop")),
            "day 6",
            "day 2",
        ):
            self.assertIn(told, out)
        self.assertNotIn("day 1", out)
        self.assertNotIn("1|AUTH_PORT", out)
        self.assertIn("1|AUTH_PORT", self.run_command("show", "shop", "--full")[1])

    def test_json_is_one_object_and_nothing_else(self) -> None:
        self.keep()
        for words in (("list", "--json"), ("show", "shop", "--json"), ("show", "shop", "--full", "--json")):
            status, out, err = self.run_command(*words)
            self.assertEqual((status, err, json.loads(out)["schema"]), (0, "", 1))

    def test_colour_only_on_a_terminal_that_wants_it(self) -> None:
        self.keep()
        self.store.save_run("shop", "20260101T000000-x", {"result": "PASS", "model": "m"})
        self.assertNotIn("\033", self.run_command("list", terminal=True)[1])  # NO_COLOR is set
        with mock.patch.dict(os.environ):
            del os.environ["NO_COLOR"]
            self.assertIn("\033[32mPASS", self.run_command("list", terminal=True)[1])
            self.assertNotIn("\033", self.run_command("list")[1])

    def test_a_console_that_cannot_print_a_character_is_no_error(self) -> None:
        self.keep(answer="Antwort \u2192 \U0001f600 \ud800")
        raw = io.BytesIO()
        screen = door.Screen(io.TextIOWrapper(raw, "cp1252"), io.StringIO(), {})
        screen.print(self.store.read("shop")[0].answer)
        self.assertIn(rb"\u2192", raw.getvalue())
        self.assertIn(rb"\ud800", raw.getvalue())

    def test_progress_is_shown_on_a_terminal_only_and_erased(self) -> None:
        shown, piped = Terminal(), io.StringIO()
        for stream in (shown, piped):
            screen = door.Screen(io.StringIO(), stream, {})
            screen.progress("waiting for a session ...")
            screen.done()
        self.assertEqual(piped.getvalue(), "")
        self.assertTrue(shown.getvalue().endswith("\r" + " " * 25 + "\r"))


class Housekeeping(CliCase):
    def test_rm_asks_and_takes_the_runs_along(self) -> None:
        self.keep()
        self.store.save_run("shop", "20260101T000000-x", {"result": "PASS"})
        status, _, err = self.run_command("rm", "shop")
        self.assertEqual(status, 2)
        self.assertIn("'shop' and its 1 run stay", err)
        self.assertEqual(self.run_command("rm", "shop", "--yes")[0], 0)
        self.assertEqual((self.store.names(), self.store.runs("shop").exists()), ([], False))

    def test_rename_takes_the_runs_along_and_never_replaces(self) -> None:
        self.keep("one")
        self.keep("two")
        self.store.save_run("one", "20260101T000000-x", {"result": "PASS"})
        self.assertEqual(self.run_command("rename", "one", "TWO")[0], 2)
        self.assertEqual(self.run_command("rename", "one", "three")[0], 0)
        self.assertEqual(self.store.names(), ["three", "two"])
        self.assertEqual((self.store.read("three")[0].name, self.store.count_runs("three")), ("three", 1))

    def test_rename_may_change_the_case(self) -> None:
        self.keep("shop")
        self.assertEqual(self.run_command("rename", "shop", "Shop")[0], 0)
        self.assertEqual(self.store.names(), ["Shop"])

    def test_doctor_tells_what_is_wrong_and_what_to_do(self) -> None:
        self.keep()
        self.keep("broken")
        self.store.path("broken").write_bytes(b"[]")
        status, out, _ = self.run_command("doctor")
        self.assertEqual(status, 2)
        self.assertIn("cassettes  2, 1 broken", out)
        self.assertIn("to do: " + str(self.store.path("broken")), out)
        self.assertLessEqual(len(out.splitlines()), 17)


class Running(CliCase):
    """What `run` refuses before it starts anything."""

    def refused(self, *words: str) -> str:
        with mock.patch.object(cli.subprocess, "Popen", side_effect=AssertionError("a process was started")):
            status, out, err = self.run_command("run", *words)
        self.assertEqual((status, out, err.count("\n")), (2, "", 1))
        self.assertFalse(self.store.arm_path.exists())
        return err

    def test_a_cassette_without_a_pin_is_refused(self) -> None:
        self.keep(pins=())
        self.assertIn("hermes cassette pin shop FACT", self.refused("shop"))

    def test_a_request_that_hermes_would_not_take_as_text_is_refused(self) -> None:
        for request in (
            "/help",
            "!ls",
            "see @file:a.py",
            "",
            "./shot.png what?",
            "~/x",
            "'C:\\\\a.png' x",
            "file:///x y",
            "what?\n",
            "a\r\nb",
        ):
            self.keep(request=request)
            self.refused("shop")

    def test_a_folder_that_is_gone_is_refused(self) -> None:
        self.keep(cwd=str(self.home / "gone"))
        self.assertIn("name another with --in DIR", self.refused("shop"))
        self.keep(cwd="")
        self.assertIn("name one with --in DIR", self.refused("shop"))

    def test_a_broken_cassette_is_refused_by_file_and_field(self) -> None:
        self.keep()
        whole = json.loads(self.store.path("shop").read_bytes())
        harms: dict[str, bytes] = {
            "not a JSON file": self.store.path("shop").read_bytes()[:-9],
            "not a JSON file (Expecting value": b"",
            "the file's root should be an object, but it is a list": b"[]",
            "is not UTF-8": json.dumps(whole).encode("utf-16"),
            "schema 2 is not known here": json.dumps({**whole, "schema": 2}).encode(),
            "field calls should be a list, but it is an object": json.dumps({**whole, "calls": {}}).encode(),
            "field calls[0].args should be an object": json.dumps(
                {**whole, "calls": [{"tool": "x", "args": [], "result": ""}]}
            ).encode(),
            "field request is missing": json.dumps({k: v for k, v in whole.items() if k != "request"}).encode(),
        }
        for told, data in harms.items():
            with self.subTest(told):
                self.store.path("shop").write_bytes(data)
                err = self.refused("shop")
                self.assertIn(told, err)
                self.assertIn(str(self.store.path("shop")), err)
                self.assertEqual(self.store.path("shop").read_bytes(), data)

    def test_a_second_run_is_refused_with_the_firsts_age(self) -> None:
        self.keep()
        slot = self.store.waiting()
        self.assertTrue(slot.try_acquire())
        self.addCleanup(slot.release)
        with mock.patch.object(cli, "find_ripgrep", return_value=""):
            self.assertIn("another run is waiting for its session", self.refused("shop"))

    def test_another_run_that_waits_by_then_is_not_this_runs_left_over_arm(self) -> None:
        self.keep()

        def replayed(launch: Any, _: Any) -> Child:
            store, arm, facts = launch.store, launch.arm, launch.plugin.facts
            call = Answered("read_file", {"path": "server/auth.py"}, "hit", recorded=0)
            write_atomically(store.claim_path(arm.id), to_json(Claim(arm.id, "s", "t", "m", facts)))
            ledger = Ledger(arm.id, "t", ("s",), "m", facts, (call,), "port 8080", finished=True)
            write_atomically(store.ledger_path(arm.id), to_json(ledger))
            if self.left:
                write_atomically(store.arm_path, to_json(arm._replace(id=self.left.replace("own", arm.id))))
            else:
                store.arm_path.unlink()
            return Child(0, False, "s", "port 8080\n")

        for self.left, expected, result in (
            ("", 0, "PASS"),
            ("b" * 24, 0, "PASS"),
            ("own", 4, "the request was still waiting"),
        ):
            with (
                mock.patch.object(cli, "_run_child", replayed),
                mock.patch.object(cli, "find_ripgrep", return_value=""),
            ):
                status, out, err = self.run_command("run", "shop")
            self.assertEqual(status, expected, out + err)
            self.assertIn(result, out)
            self.store.arm_path.unlink(missing_ok=True)
            self.assertEqual(
                self.store.last_runs("shop", 1)[0]["calls"],
                [
                    {
                        "tool": "read_file",
                        "args": {"path": "server/auth.py"},
                        "how": "hit",
                        "recorded": 0,
                        "repeat": 1,
                        "reason": "",
                        "nearest": "",
                        "id": "",
                    }
                ],
            )

    def test_a_missing_hermes_is_said(self) -> None:
        self.keep()
        with mock.patch.object(hooks.shutil, "which", return_value=None), mock.patch.object(sys, "argv", ["python"]):
            with self.assertRaises(CassetteError):
                launching.find_hermes("python", which=lambda _: None)

    def test_usage_errors_exit_with_two(self) -> None:
        for words in (
            (),
            ("run",),
            ("run", "a", "--timeout", "x"),
            ("run", "a", "--timeout", "-1"),
            ("nope",),
            ("pin", "a"),
        ):
            self.assertEqual(self.run_command(*words)[0], 2, words)

    def test_runtimes_that_run_their_own_tools_are_refused(self) -> None:
        with self.assertRaises(CassetteError):
            hooks.refuse_foreign_runtime("copilot-acp", {})
        with self.assertRaises(CassetteError):
            hooks.refuse_foreign_runtime(None, {"model": {"provider": "github-copilot-acp"}})
        hooks.refuse_foreign_runtime("openrouter", {"model": {"provider": "copilot-acp"}})
        hooks.refuse_foreign_runtime(None, {"model": "some-name"})
        for config in (
            {"model": {"provider": "openai", "openai_runtime": "codex_app_server"}},
            {"model": {"base_url": "acp://copilot"}},
            {"fallback_providers": [{"provider": "openrouter"}, {"provider": "copilot-acp-agent"}]},
            {"fallback_model": {"provider": "copilot-acp", "model": "x"}},
            {"auxiliary": {"compression": {"provider": "copilot-acp"}}},
            {"model": {"provider": "own"}, "custom_providers": [{"name": "own", "api_mode": "codex_app_server"}]},
            {"model": {"provider": "own"}, "providers": {"own": {"base_url": "acp+tcp://127.0.0.1:9"}}},
            {"model": {"provider": "own"}, "providers": {"own": {"api": "acp://copilot"}}},
            {"model": {"provider": "own"}, "providers": {"Own": {"url": "acp://copilot"}}},
            {
                "model": {"provider": "custom:my-agent"},
                "custom_providers": [{"name": "My Agent", "base_url": "acp://x"}],
            },
            {"model": "m", "fallback_providers": [{"provider": "custom:x"}], "providers": {"x": {"api": "acp://y"}}},
            {"model": "m", "fallback_model": {"model": "custom:x/m"}, "providers": {"x": {"api": "acp://y"}}},
        ):
            with self.subTest(config), self.assertRaisesRegex(CassetteError, "outside Hermes"):
                hooks.refuse_foreign_runtime(None, config)
        for provider, model in (("x", "copilot-acp"), ("x", "copilot-acp:gpt-5"), (None, "fast")):
            with self.subTest(model), self.assertRaisesRegex(CassetteError, "outside Hermes"):
                hooks.refuse_foreign_runtime(provider, {"model_aliases": {"fast": {"provider": "copilot-acp"}}}, model)
        with self.assertRaisesRegex(CassetteError, "outside Hermes"):
            hooks.refuse_foreign_runtime(None, {}, None, {"HERMES_INFERENCE_PROVIDER": "copilot-acp"})
        unused = {
            "providers": {"other": {"base_url": "acp://copilot"}},
            "delegation": {"provider": "copilot-acp"},
            "model": {"provider": "custom", "openai_runtime": "auto"},
        }
        hooks.refuse_foreign_runtime("own", unused, "gpt-oss:20b", {})


class Streams(CliCase):
    """Nobody reads: the status still tells."""

    def test_closed_streams_change_no_status(self) -> None:
        self.keep()
        command = self.host.ctx.cli_commands["cassette"]
        for words, expected in ((["list"], 0), (["run", "nosuch"], 2), (["rm", "shop"], 2)):
            parser = argparse.ArgumentParser()
            command.setup(parser)
            with mock.patch("sys.stdout", None), mock.patch("sys.stderr", None), mock.patch("sys.stdin", None):
                with self.assertRaises(SystemExit) as ended:
                    command.handler(parser.parse_args(words))
            self.assertEqual(ended.exception.code, expected)


class Children(unittest.TestCase):
    def options(self, **changes: Any) -> argparse.Namespace:
        fields = {"cassette_model": None, "cassette_provider": None, "cassette_skills": [], **changes}
        return argparse.Namespace(**fields)

    def test_the_request_is_one_argument_whatever_it_holds(self) -> None:
        for query in ('a "b" c', "$HOME `ls` %PATH% & | ; ^ > <", "-x --yolo", "two\nlines", "--", "ü\u2192"):
            words = cli.chat_arguments(["hermes"], query, self.options(), "/w", "0.19.0")
            self.assertEqual(words, ["hermes", "chat", "-Q", f"--query={query}"])

    def test_flags_are_passed_on_and_never_an_approval(self) -> None:
        options = self.options(cassette_model="m", cassette_provider="p", cassette_skills=["a", "b"])
        words = cli.chat_arguments(["hermes"], "q", options, "/w", "0.22.2")
        self.assertEqual(words[4:], ["--model=m", "--provider=p", "--skills=a", "--skills=b", "--in=/w"])
        self.assertFalse({"-z", "--yolo", "--accept-hooks"} & set(words))

    def test_a_hermes_that_runs_as_a_module_starts_its_children_as_one(self) -> None:
        words = launching.find_hermes("/site/hermes_cli/main.py", lambda _: None, False, module="hermes_cli.main")
        self.assertEqual(words, (sys.executable, "-P", "-m", "hermes_cli.main"))
        child = cli.chat_arguments(words, "q", self.options(), "/w", "0.19.0")
        self.assertEqual(child[:7], [*words, "chat", "-Q", "--query=q"])

    def test_a_nul_in_the_request_is_refused(self) -> None:
        with self.assertRaises(CassetteError):
            cli.chat_arguments(["hermes"], "a\0b", self.options(), "/w", "")

    def test_the_childs_environment_has_no_approval_bypass_and_no_other_session(self) -> None:
        dropped = {
            "HERMES_YOLO_MODE": "1",
            "hermes_yolo_mode": "1",
            "HERMES_ACCEPT_HOOKS": "1",
            "HERMES_INTERACTIVE": "1",
            "HERMES_EXEC_ASK": "1",
            "HERMES_SESSION_ID": "x",
            "HERMES_KANBAN_TASK": "x",
            "HERMES_TUI": "1",
            "HERMES_TUI_TOOLSETS": "x",
            "HERMES_CRON_SESSION": "1",
            "_HERMES_GATEWAY": "1",
            "_HERMES_CRON_EXTERNAL_WORKER": "1",
            "HERMES_DESKTOP": "1",
            "HERMES_RPC_TOKEN": "x",
            "TERMINAL_CWD": "/q",
            "MESSAGING_CWD": "/q",
            "SESSION_CASSETTES_RUN": "old",
            "SESSION_CASSETTES_RECORD": "old",
        }
        kept = {"PATH": "/bin", "HERMES_HOME": "/h", "OPENAI_API_KEY": "k", "HERMES_LANGUAGE": "en"}
        made = launching.child_environment({**dropped, **kept}, SESSION_CASSETTES_RUN="new")
        self.assertEqual({k: made[k] for k in kept}, kept)
        self.assertEqual(made["SESSION_CASSETTES_RUN"], "new")
        self.assertFalse((set(dropped) - {"SESSION_CASSETTES_RUN"}) & set(made))

    def test_a_folder_on_another_machine_is_not_taken_from_the_childs_environment(self) -> None:
        for terminal, kept in (("ssh", "/q"), ("docker", "/q"), ("local", None), (" Local ", None), ("", None)):
            with self.subTest(terminal):
                made = launching.child_environment({"TERMINAL_ENV": terminal, "TERMINAL_CWD": "/q"})
                self.assertEqual(made.get("TERMINAL_CWD"), kept)

    def test_the_running_hermes_is_started_or_else_the_one_on_the_path(self) -> None:
        folder = temp_folder(self)
        for name in ("hermes", "hermesx", "hermes.exe", "hermes.cmd", "python", "hermes.py"):
            (folder / name).write_text("")

        def find(argv0: str, found: str | None = "/bin/hermes", windows: bool = False) -> str:
            (launcher,) = launching.find_hermes(argv0, lambda _: found, windows, module="unittest")
            return launcher

        self.assertEqual(find(str(folder / "hermes")), str(folder / "hermes"))
        self.assertEqual(find(str(folder / "hermesx")), str(folder / "hermesx"))
        self.assertEqual(find(str(folder / "python")), "/bin/hermes")
        self.assertEqual(find(str(folder / "hermes.py")), "/bin/hermes")
        self.assertEqual(find(str(folder / "hermes"), windows=True), str(folder / "hermes.exe"))
        for argv0, found in ((str(folder / "hermes.cmd"), None), ("python", "C:\\bin\\hermes.BAT")):
            with self.assertRaisesRegex(CassetteError, "batch file"):
                find(argv0, found, windows=True)
        with self.assertRaisesRegex(CassetteError, "put it on PATH"):
            find("python", None)

    def test_what_a_failing_session_said_is_told(self) -> None:
        self.assertEqual(launching.complaint("HTTP 404: no model\n\n", "x"), "HTTP 404: no model")
        self.assertEqual(
            launching.complaint("", "\x1b[31mUnknown provider 'nope'\x1b[0m\n\nsession_id: 1\n"),
            "Unknown provider 'nope'",
        )
        self.assertEqual(launching.complaint("", ""), "")

    def test_ripgreps_version_is_asked_of_the_one_that_hermes_runs(self) -> None:
        fake = temp_folder(self) / "rg"
        fake.write_text("#!/bin/sh\necho 'ripgrep 15.2.0 (rev x)'\n")
        fake.chmod(0o755)
        for found, major in ((str(fake), 15 if os.name == "posix" else 0), ("", 0), (str(fake) + "gone", 0)):
            with mock.patch.object(cli, "find_ripgrep", return_value=found):
                self.assertEqual(cli.ripgrep_major(), major)

    def test_printed_commands_are_quoted_for_the_platforms_shell(self) -> None:
        words = ["hermes", "cassette", "pin", "shop", "it's $HOME", "--remove", "-Q", "C:\\a b", ""]
        self.assertEqual(
            door.quote(words, windows=False), "hermes cassette pin shop 'it'\"'\"'s $HOME' --remove -Q 'C:\\a b' ''"
        )
        self.assertEqual(
            door.quote(words, windows=True), "hermes cassette pin shop 'it''s $HOME' --remove -Q 'C:\\a b' ''"
        )


class PrintedAnswers(unittest.TestCase):
    ANSWER = "The handler is in server/auth.py.\n\nIt binds 8080."

    def test_the_answer_itself_is_accepted(self) -> None:
        for printed in (self.ANSWER, self.ANSWER + "\n", "\n" + self.ANSWER + "\n\n"):
            self.assertTrue(launching.same_answer(printed, self.ANSWER))

    def test_known_warning_lines_before_it_are_accepted(self) -> None:
        for banner in (
            "  ⚠ tirith security scanner enabled but not available — command scanning will use pattern matching only\n",
            "⚠️  Reached maximum iterations (2). Requesting summary...\n",
            "  ⟳ compacting context…\n",
            "⚠️  Primary auth failed — switching to fallback: custom / good\n",
            "cli.startup.switching_to_fallback\n",
            "\n⚠  Streaming is not supported for this model/provider. Switching to non-streaming.\n"
            "   To avoid this delay, set display.streaming: false in config.yaml\n\n",
            "🔧 Auto-repaired tool name: 'ReadFile' -> 'read_file'\n",
            "  [tool] (°ロ°) reading\n  [done] read (0.2s)\n",
        ):
            self.assertTrue(launching.same_answer(banner + self.ANSWER + "\n", self.ANSWER), banner)

    FRAME = "\n┌─ Reasoning " + "─" * 66 + "┐\n"
    DIFF = "  ┊ review diff\na/b.txt → b/b.txt\n@@ -0,0 +1,2 @@\n+x\n-y\n z\n… omitted 3 diff line(s)\n"

    def test_what_older_versions_print_of_the_reasoning_is_no_part_of_the_answer(self) -> None:
        thought = self.FRAME + "Is it 9090?\n\n  Perhaps.\nNo."
        for printed in (
            self.FRAME + self.ANSWER,
            thought + "\n" + self.ANSWER,
            "  ⟳ compacting context…\n" + thought + "\n" + self.ANSWER,
            self.DIFF + self.ANSWER,
            self.DIFF + self.FRAME + self.DIFF + "thought\n" + self.ANSWER,
            "\n┌─ Reasoning " + "─" * 18 + "┐\n" + self.ANSWER,
        ):
            with self.subTest(printed=printed):
                for version in ("0.19.0", "0.20.1.2"):
                    self.assertTrue(launching.same_answer(printed + "\n", self.ANSWER, version))
                for version in ("0.22.2", "0.23.1", ""):
                    self.assertFalse(launching.same_answer(printed + "\n", self.ANSWER, version))

    def test_with_a_frame_too_the_answer_is_what_ends_the_output(self) -> None:
        for printed in (
            self.FRAME + self.ANSWER + "\nMore.",
            self.FRAME + "thought " + self.ANSWER,
            self.FRAME + self.ANSWER.replace("8080", "9090"),
            "Before.\n" + self.FRAME + self.ANSWER,
            "┌─ Reasoning ─┐\n" + self.ANSWER,
            "┌─ Hermes " + "─" * 60 + "┐\nthought\n" + self.ANSWER,
            self.DIFF + "Between.\n" + self.ANSWER,
        ):
            with self.subTest(printed=printed):
                self.assertFalse(launching.same_answer(printed, self.ANSWER, "0.19.0"))

    def test_nothing_else_is_accepted(self) -> None:
        for printed in (
            "",
            "8080",
            self.ANSWER[:-1],
            self.ANSWER + " More.",
            "Another line\n" + self.ANSWER,
            "  ┊ review diff\n" + self.ANSWER,
            "⚠ tirith " + self.ANSWER,
            self.ANSWER.lower(),
            self.ANSWER.replace("\n\n", "\n"),
        ):
            self.assertFalse(launching.same_answer(printed, self.ANSWER), printed)
        self.assertFalse(launching.same_answer("", ""))
        self.assertFalse(launching.same_answer("anything", ""))


class VerdictText(unittest.TestCase):
    """The form of the two examples in the specification."""

    def shown(self, verdict: Any, answer: str = "no idea", **more: Any) -> str:
        screen = door.Screen(io.StringIO(), io.StringIO(), {})
        run = {"name": "e2e-probe", "model": "a-model", "seconds": 11.2, "answer": answer, **more}
        return cli.verdict_text(run, verdict, "/runs/1.json", screen)

    def ledger(self, *calls: Answered, answer: str) -> Any:
        facts = hooks.plugin_facts()
        return Ledger("a", "t", ("s",), "a-model", facts, calls, answer, finished=True)

    def graded(self, answer: str, *pins: str, calls: Sequence[Answered] = (HIT,)) -> str:
        """The verdict of a run whose turn gave this answer."""
        held, _ = cli.hold_pins(pins, answer)
        return self.shown(grade([held[pin] for pin in pins], 7, self.ledger(*calls, answer=answer), []), answer)

    def test_a_pass(self) -> None:
        calls = HIT, Answered("search_files", {}, "synthesized")
        self.assertEqual(
            self.graded("server/auth.py, 8080", "auth.py", "8080", calls=calls),
            "e2e-probe with a-model (11s)\nresult PASS\npins 2/2\n[ok] auth.py\n[ok] 8080\n"
            "path 2 calls: 1 hit, 1 synthesized, 0 miss; subset of recording, in order (7 recorded)",
        )

    def test_a_failure_with_a_miss(self) -> None:
        miss = Answered("terminal", {"command": "netstat -tlnp"}, "miss", reason="this call was not recorded")
        self.assertEqual(
            self.graded("no idea", "auth.py", "8080", calls=[miss]),
            "e2e-probe with a-model (11s)\nresult FAIL (also 1 cassette miss)\npins 0/2\n[--] auth.py\n[--] 8080\n"
            "path 1 call: 0 hit, 0 synthesized, 1 miss; no recorded call reused\n"
            'miss: terminal {"command":"netstat -tlnp"}\n      this call was not recorded\n'
            "answer:\n  no idea\nfile /runs/1.json",
        )

    def test_a_pin_that_holds_only_as_rendered_says_so(self) -> None:
        told = self.graded("In `server/auth.py`, port **8080**", "auth.py", "port 8080", "re:port 8\\d+$", "re:`")
        self.assertIn(
            "result PASS\npins 4/4\n[ok] auth.py\n[ok] port 8080 (as rendered)\n"
            "[ok] re:port 8\\d+$ (as rendered)\n[ok] re:`\npath ",
            told,
        )

    def test_a_missing_pin_tells_what_came_nearest(self) -> None:
        told = self.graded("4,183 rows, port: 8080, v2.14.1", "4183", "port 8080", "v2.14.10", "auth.py", "re:9+")
        self.assertIn(
            "pins 0/5\n[--] 4183\n     nearest: `4,183` is there\n"
            "[--] port 8080\n     nearest: `port: 8080`, only marks between\n"
            "[--] v2.14.10\n     nearest: `v2.14.1`\n[--] auth.py\n[--] re:9+\npath ",
            told,
        )

    def test_a_failure_shows_the_beginning_of_a_long_answer_and_how_to_see_the_rest(self) -> None:
        told = self.graded("\n".join(f"line {n}" for n in range(1, 24)), "8080").splitlines()
        self.assertEqual(told[-23:-21], ["answer:", "  line 1"])
        self.assertEqual(
            told[-3:], ["  line 20", "  ... 3 more lines: hermes cassette show e2e-probe --full", "file /runs/1.json"]
        )
        told = self.graded("x" * 5000 + "\nresult PASS", "8080").splitlines()
        self.assertEqual((len(told[-4]), told[-3]), (1002, "  result PASS"))
        self.assertEqual(told[-2], "  ... longer lines: hermes cassette show e2e-probe --full")

    def test_an_answer_without_any_call_is_told_as_such(self) -> None:
        self.assertIn(
            "\npath 0 calls: 0 hit, 0 synthesized, 0 miss; no call: nothing of the tape was read",
            self.graded("8080", "8080", calls=()),
        )

    def test_plugins_that_stand_before_this_one_are_named(self) -> None:
        verdict = grade([PinResult("8080", True)], 0, self.ledger(answer="8080"), [])
        told = self.shown(verdict, plugins_before=["aaa", "bbb"])
        self.assertIn("\nnote: aaa, bbb may answer or change tool calls before this plugin sees them", told)

    def test_an_invalid_run_names_each_reason(self) -> None:
        verdict = grade([PinResult("8080", False)], 1, None, ["first reason", "second reason"])
        self.assertIn("result INVALID\nreason: first reason\nreason: second reason\n", self.shown(verdict))
        self.assertNotIn("answer:", self.shown(verdict))


class RunsThatExplainThemselves(CliCase):
    def answered(self, answer: str, *words: str) -> tuple[int, str, dict[str, Any]]:
        """Run the cassette with a session that gives this answer; its status, its output and its file."""

        def replayed(launch: Any, _: Any) -> Child:
            store, arm, facts = launch.store, launch.arm, launch.plugin.facts
            call = Answered("read_file", {"path": "server/auth.py"}, "hit", recorded=0)
            write_atomically(store.claim_path(arm.id), to_json(Claim(arm.id, "s", "t", "m", facts)))
            ledger = Ledger(arm.id, "t", ("s",), "m", facts, (call,), answer, finished=True)
            write_atomically(store.ledger_path(arm.id), to_json(ledger))
            store.arm_path.unlink()
            return Child(0, False, "s", answer + "\n")

        with mock.patch.object(cli, "_run_child", replayed), mock.patch.object(cli, "find_ripgrep", return_value=""):
            status, out, err = self.run_command("run", "shop", *words)
        self.assertEqual(err, "")
        return status, out, self.store.last_runs("shop", 1)[0]

    def test_the_runs_file_says_how_each_pin_was_held(self) -> None:
        self.keep(pins=("8080", "port 8080", "re:port 80", "4183", "re:99"))
        status, out, run = self.answered("port **8080** and 4,183 rows")
        self.assertEqual(status, 1)
        self.assertEqual(
            run["pins"],
            [
                {"pin": "8080", "ok": True},
                {"pin": "port 8080", "ok": True, "as_rendered": True},
                {"pin": "re:port 80", "ok": True, "as_rendered": True},
                {"pin": "4183", "ok": False, "nearest": "`4,183` is there"},
                {"pin": "re:99", "ok": False},
            ],
        )
        [file] = self.store.runs("shop").glob("*.json")
        self.assertTrue(out.endswith(f"\nanswer:\n  port **8080** and 4,183 rows\nfile {file}\n"), out)

    def test_a_folder_that_has_changed_is_a_note_and_decides_nothing(self) -> None:
        self.keep()
        self.assertIsNone(self.answered("port 8080")[2]["changed_files"])
        write_tree(self.home, {"server/auth.py": "AUTH_PORT = 8181\n"})
        status, out, _ = self.answered("port 8080")
        note = "note: the folder has changed since the recording: 1 of 1 files; hermes cassette check shop\n"
        self.assertEqual((status, out.endswith("\n" + note)), (0, True), out)
        status, out, _ = self.answered("port 8080", "--json")
        counted = {"changed": 1, "files": 1, "all": True, "in": ""}
        self.assertEqual((status, json.loads(out)["changed_files"]), (0, counted))

    def test_a_pass_says_no_more_than_the_specification(self) -> None:
        self.keep()
        status, out, _ = self.answered("port 8080")
        self.assertEqual(status, 0)
        self.assertEqual(out.partition("\n")[2].partition(";")[0], PASSED)

    def test_show_tells_what_the_last_runs_answered(self) -> None:
        self.keep()
        answers = ("port 8080", "\n".join(f"line {n}\n" for n in range(3)))
        for answer in answers:
            self.answered(answer)
        short, full = (self.run_command("show", "shop", *words)[1] for words in ((), ("--full",)))
        self.assertIn("(1 recorded)\n    port 8080\n", short)
        self.assertIn("(1 recorded)\n    line 0\n\n    line 1\n    ... 2 more lines: --full\n", short)
        self.assertIn("(1 recorded)\n    line 0\n\n    line 1\n\n    line 2\n", full)

    def test_a_recorded_answer_that_holds_a_pin_as_rendered_is_not_noted(self) -> None:
        self.keep(pins=(), answer="port **8080**, 4,183 rows")
        self.assertNotIn("note:", self.run_command("pin", "shop", "port 8080")[1])
        self.assertIn('hold "4183" (nearest: `4,183` is there)\n', self.run_command("pin", "shop", "4183")[1])


class Sessions(CliCase):
    def test_unknown_and_empty_commands_answer_with_help(self) -> None:
        for raw in ("", "help", "nope", "run shop"):
            told = self.host.slash(f"/cassette {raw}")
            for name in ("record", "stop", "status", "pin", "list"):
                self.assertIn(f"/cassette {name}", told)
            self.assertNotIn("ping", told)

    def test_mistakes_are_one_line_and_never_end_the_host(self) -> None:
        for raw in (
            "record",
            "record a b",
            "record a --nope",
            "pin",
            "pin a",
            "record ../x",
            "record con",
            "stop now",
            "ping x",
            "record -h",
            "list --help",
        ):
            told = self.host.slash(f"/cassette {raw}")
            self.assertEqual(told.count("\n"), 0, raw)
            self.assertTrue(told, raw)

    def test_every_command_has_help_and_an_example(self) -> None:
        for command in (*cli.SHELL_COMMANDS, *cli.SESSION_COMMANDS):
            if command.name != "ping":
                self.assertIn(f"cassette {command.name}", command.example)
                self.assertTrue(command.help)
        self.assertEqual({c.name for c in cli.SESSION_COMMANDS}, {"record", "stop", "status", "pin", "list", "ping"})
        names = [command.name for command in cli.SHELL_COMMANDS]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual(
            {"record", "pin", "run", "list", "show", "rm", "rename"}, set(names)
        )  # the specification's

    def test_record_without_a_query_prints_the_steps(self) -> None:
        status, out, _ = self.run_command("record", "shop")
        self.assertEqual(status, 0)
        self.assertIn("/cassette record shop", out)
        self.assertIn("hermes cassette record shop --query", out)


if __name__ == "__main__":
    unittest.main()
