"""`hermes cassette check`, the note under a run, and the ages in `list`: what is printed, and the exit status."""

from __future__ import annotations

import json
import sys
import unittest
from types import ModuleType
from typing import Any, Sequence
from unittest import mock

from tests.support import load_plugin, temp_folder, write_tree
from tests.test_cli import CliCase
from tests.test_suite_drift import TOKEN, masked

load_plugin()
from session_cassettes import cli  # noqa: E402
from session_cassettes.cassette_store import Cassette, Recorder, Snapshot, SnapshotFile  # noqa: E402
from session_cassettes.cassette_store import write_atomically  # noqa: E402
from session_cassettes.suite import check, door  # noqa: E402

AUTH = "import os\n\nAUTH_PORT = 8080\n"


def redact(text: str, *, force: bool = False, file_read: bool = False, secret_file: bool = False) -> str:
    """Hermes's function, with its switch off."""
    return masked(text) if force else text


class CheckCase(CliCase):
    def setUp(self) -> None:
        super().setUp()
        agent, module = ModuleType("agent"), ModuleType("agent.redact")
        setattr(module, "redact_sensitive_text", redact)
        for patch in (
            mock.patch.dict(sys.modules, {"agent": agent, "agent.redact": module}),
            mock.patch.object(check, "find_ripgrep", return_value="/usr/bin/rg"),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        self.folder = temp_folder(self)

    def record(self, name: str = "shop", **changes: Any) -> Cassette:
        """Keep a cassette of a folder that is as it says."""
        files = {"server/auth.py": AUTH, "README.md": "The shop.\n"}
        write_tree(self.folder, files)
        kept = {
            path: SnapshotFile(text, len(text), (self.folder / path).stat().st_mtime, False, ())
            for path, text in files.items()
        }
        fields: dict[str, Any] = {
            "cwd": str(self.folder),
            "recorder": Recorder("0.19.0", sys.platform, "rg"),
            "snapshot": Snapshot(kept),
            **changes,
        }
        self.store.save(Cassette(name, **{"request": "q", "answer": "8080", "pins": ("8080",), **fields}), True)
        return self.store.read(name)[0]

    def rewrite(self, old: str = "8080", new: str = "8181") -> None:
        (self.folder / "server/auth.py").write_text(AUTH.replace(old, new))

    def told(self, *words: str) -> tuple[int, str]:
        status, out, err = self.run_command("check", *words)
        self.assertEqual(err, "")
        return status, out

    def json(self, *words: str) -> tuple[int, list[dict[str, Any]]]:
        status, out = self.told("--json", *words)
        value = json.loads(out)
        self.assertEqual((value["schema"], value["status"]), (door.JSON_SCHEMA, status))
        return status, value["cassettes"]


class Checking(CheckCase):
    def test_a_world_that_is_as_recorded_takes_one_line(self) -> None:
        self.record()
        self.assertEqual(self.told(), (0, f"shop: as recorded (2 files in {self.folder})\n"))
        self.assertEqual(
            self.json(),
            (
                0,
                [
                    {
                        "name": "shop",
                        "status": 0,
                        "folder": str(self.folder),
                        "files": 2,
                        "changes": [],
                        "pins": [],
                        "inputs": [],
                        "hermes": [],
                        "unknown": [],
                    }
                ],
            ),
        )

    def test_a_changed_file_is_told_with_its_line_and_its_pin(self) -> None:
        self.record()
        self.rewrite()
        self.assertEqual(
            self.told("shop"),
            (
                check.CHANGED,
                f"shop: changed (2 files in {self.folder})\n"
                "  changed  server/auth.py:3\n"
                "             was  AUTH_PORT = 8080\n"
                "             now  AUTH_PORT = 8181\n"
                '  pin      "8080" was in server/auth.py:3; that line now says AUTH_PORT = 8181\n',
            ),
        )
        status, [found] = self.json("shop")
        self.assertEqual(status, 1)
        self.assertEqual(
            found["changes"],
            [
                {
                    "path": "server/auth.py",
                    "kind": "changed",
                    "why": "",
                    "line": 3,
                    "was": "AUTH_PORT = 8080",
                    "now": "AUTH_PORT = 8181",
                }
            ],
        )
        self.assertEqual(found["pins"][0]["now"], "AUTH_PORT = 8181")

    def test_a_regular_expression_is_tried_in_a_child(self) -> None:
        self.record(pins=(r"re:\b8080\b",))
        self.rewrite("8080", "18080")
        self.assertIn(
            r'pin      "re:\b8080\b" was in server/auth.py:3; that line now says AUTH_PORT = 18080', self.told()[1]
        )

    def test_a_file_that_is_gone(self) -> None:
        self.record(pins=("auth.py",))
        (self.folder / "server/auth.py").unlink()
        status, out = self.told()
        self.assertEqual(status, 1)
        self.assertTrue(
            out.endswith('  gone     server/auth.py\n  pin      "auth.py" named server/auth.py, which is gone\n'), out
        )

    def test_secrets_are_never_printed_also_with_hermess_switch_off(self) -> None:
        self.record()
        self.rewrite("8080", f"8080  # {TOKEN}")
        for words in ((), ("--json",)):
            status, out = self.told(*words)
            self.assertEqual((status, TOKEN in out, "redacted:ghp_" in out), (1, False, True))

    def test_without_hermess_redaction_no_text_is_printed(self) -> None:
        self.record()
        self.rewrite()
        with mock.patch.dict(sys.modules, {"agent.redact": None}):
            status, out = self.told()
        self.assertEqual(status, 1)
        self.assertIn("server/auth.py:3 (its text cannot be shown: no redaction)\n", out)
        self.assertNotIn("8181", out)

    def test_what_a_file_says_is_one_printable_line_of_bounded_length(self) -> None:
        self.record()
        self.rewrite("8080", "8080 \x1b[31m\u202e" + "x" * 5000 + "end")
        out = self.told()[1]
        self.assertNotIn("\x1b", out)
        self.assertLess(max(map(len, out.splitlines())), 200)

    def test_of_a_long_line_the_place_is_shown_where_it_differs(self) -> None:
        self.record(
            snapshot=Snapshot({"long.txt": SnapshotFile("a" * 3000 + " port 8080 " + "b" * 3000, 6011, masks=())})
        )
        write_tree(self.folder, {"long.txt": "a" * 3000 + " port 8181 " + "b" * 3000})
        out = self.told()[1]
        self.assertIn("was  ...aaaa", out)
        self.assertIn(" port 8080 b", out)
        self.assertIn(" port 8181 b", out)

    def test_another_hermes_search_and_system_are_told(self) -> None:
        for recorder, told in (
            (Recorder("0.18.0", sys.platform, "rg"), "Hermes 0.18.0 recorded, this is 0.19.0"),
            (Recorder("0.19.0", sys.platform, "grep"), "Hermes searched with grep, and would with rg now"),
            (Recorder("0.19.0", "beos", "rg"), f"recorded on beos, this is {sys.platform}"),
        ):
            with self.subTest(told):
                self.record(recorder=recorder)
                status, out = self.told()
                self.assertEqual((status, out.splitlines()[1:]), (1, [f"  hermes   {told}"]))

    def test_what_a_recording_does_not_know_of_its_hermes_is_no_difference(self) -> None:
        self.record(recorder=Recorder())
        self.assertEqual(self.told()[0], 0)

    def test_what_cannot_be_compared_is_an_error(self) -> None:
        self.record()
        (self.folder / "server/auth.py").unlink()
        (self.folder / "server/auth.py").symlink_to("auth.py")
        status, out = self.told()
        self.assertEqual((status, out.splitlines()[1]), (door.ERROR, "  unknown  server/auth.py (unreadable)"))

    def test_of_many_changes_twenty_are_printed(self) -> None:
        files = {f"f{number:02}": SnapshotFile("a", 1, masks=()) for number in range(30)}
        self.record(snapshot=Snapshot(files))
        out = self.told()[1]
        self.assertEqual(out.count("  gone     f"), 20)
        self.assertIn("  gone     and 10 more: --json names all\n", out)
        self.assertEqual(len(self.json()[1][0]["changes"]), 30)


class Several(CheckCase):
    def test_names_and_patterns_choose_and_none_means_all(self) -> None:
        for name in ("auth-a", "auth-b", "other"):
            self.record(name)
        for words, names in (
            ((), ["auth-a", "auth-b", "other"]),
            (("other", "auth-*", "auth-a"), ["other", "auth-a", "auth-b"]),
            (("other",), ["other"]),
        ):
            with self.subTest(words=words):
                self.assertEqual([one["name"] for one in self.json(*words)[1]], names)

    def test_an_unknown_name_is_an_error_before_anything_is_compared(self) -> None:
        self.record("auth")
        status, out, err = self.run_command("check", "auht")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("did you mean 'auth'?", err)

    def test_a_broken_cassette_is_a_line_and_the_others_are_checked(self) -> None:
        for name in ("a", "b", "c"):
            self.record(name)
        write_atomically(self.store.path("b"), b"{")
        status, out, err = self.run_command("check")
        self.assertEqual((status, [line.partition(":")[0] for line in out.splitlines()]), (2, ["a", "c"]))
        self.assertEqual((err.count("\n"), err.startswith("hermes cassette: b: ")), (1, True))
        status, found = self.json()
        self.assertEqual((status, sorted(found[1]), found[2]["status"]), (2, ["error", "name"], 0))

    def test_a_change_weighs_more_than_none_and_an_error_more_than_a_change(self) -> None:
        self.record("a")
        self.record("b", recorder=Recorder("0.18.0"))
        self.assertEqual(self.told()[0], 1)
        write_atomically(self.store.path("0"), b"{")
        self.assertEqual(self.run_command("check")[0], 2)

    def test_without_any_cassette_it_says_how_to_make_one(self) -> None:
        status, out = self.told()
        self.assertEqual((status, "hermes cassette record" in out), (0, True))
        self.assertEqual(self.json(), (0, []))


class Folders(CheckCase):
    def test_another_folder_can_be_looked_at(self) -> None:
        self.record()
        elsewhere = temp_folder(self)
        write_tree(elsewhere, {"server/auth.py": AUTH, "README.md": "The shop.\n"})
        self.assertEqual(self.told("--in", str(elsewhere)), (0, f"shop: as recorded (2 files in {elsewhere})\n"))

    def test_a_folder_that_is_not_there_is_an_error(self) -> None:
        self.record(cwd=str(self.folder / "gone"))
        status, out, err = self.run_command("check", "shop")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("name another with --in DIR", err)

    def test_without_a_known_folder_one_is_asked_for_where_there_are_files(self) -> None:
        self.record(cwd="")
        self.assertIn("name one with --in DIR", self.run_command("check", "shop")[2])
        self.record(cwd="", snapshot=Snapshot())
        self.assertEqual(self.told("shop"), (0, "shop: as recorded (0 files, no folder known)\n"))


class Inputs(CheckCase):
    """What the last runs were given, as their files tell."""

    def found(self, now: dict[str, Any], *runs: dict[str, Any]) -> list[str]:
        self.record()
        for number, inputs in enumerate(runs):
            run = {"result": "PASS", "at": f"day {number}", "folder": str(self.folder), "pins": [], **inputs}
            self.store.save_run("shop", f"2026010{number}T000000-x", run)
        asked: list[Any] = []

        def inputs_now(folder: str, skills: Sequence[str]) -> dict[str, Any]:
            asked.append((folder, list(skills)))
            return now

        means = check.Means(lambda folder: folder, lambda: 0, lambda regexes, texts: [], inputs_now)
        command = next(one for one in cli.SHELL_COMMANDS if one.name == "check")
        with mock.patch.object(cli, "SHELL_COMMANDS", (command._replace(run=_with(means)),)):
            return list(self.json()[1][0]["inputs"])

    def test_skills_and_prompt_files_are_held_against_the_newest_run_that_saw_them(self) -> None:
        old = {"inputs": {"skills": {"layout": "1", "style": "1"}, "files": {"AGENTS.md": "1"}}}
        new = {"inputs": {"skills": {"layout": "2"}, "files": {"AGENTS.md": "2", "SOUL.md": "1"}}}
        same = {"skills": {"layout": "2", "style": "1"}, "files": {"AGENTS.md": "2", "SOUL.md": "1"}}
        self.assertEqual(self.found(same, old, new), [])
        changed = {"skills": {"layout": "3"}, "files": {"AGENTS.md": "1", "CLAUDE.md": "1"}}
        self.assertEqual(
            self.found(changed, old, new),
            [
                "skill layout has changed since the run of day 1",
                "skill style is gone since the run of day 0",
                "AGENTS.md has changed since the run of day 1",
                "SOUL.md is gone since the run of day 1",
                "CLAUDE.md is new since the last runs",
            ],
        )

    def test_runs_that_noted_nothing_and_runs_elsewhere_tell_nothing_of_prompt_files(self) -> None:
        elsewhere = {"folder": "/elsewhere", "inputs": {"files": {"AGENTS.md": "1"}}}
        odd: list[dict[str, Any]] = [{}, {"inputs": None}, {"inputs": {"skills": [], "files": 7}}, elsewhere]
        self.assertEqual(self.found({"skills": {}, "files": {"AGENTS.md": "2"}}, *odd), [])


def _with(means: check.Means) -> Any:
    return lambda plugin, options, screen: check.check(means, plugin, options, screen)


class UnderARun(CheckCase):
    def noted(self, folder: str = "") -> dict[str, Any] | None:
        cassette = self.store.read("shop")[0]
        return check.changed_files(cassette, folder or str(self.folder), "0.19.0")

    def test_a_run_says_in_a_line_that_its_folder_has_changed(self) -> None:
        self.record()
        self.assertIsNone(self.noted())
        self.rewrite()
        found = self.noted()
        assert found is not None
        self.assertEqual(found, {"changed": 1, "files": 2, "all": True, "in": ""})
        self.assertEqual(
            check.told_changed(found, "shop"),
            "the folder has changed since the recording: 1 of 2 files; hermes cassette check shop",
        )

    def test_in_another_folder_the_command_names_it(self) -> None:
        self.record()
        elsewhere = temp_folder(self)
        found = self.noted(str(elsewhere))
        assert found is not None
        self.assertEqual(found["changed"], 2)
        self.assertTrue(check.told_changed({**found, "all": False}, "shop").endswith(f"check shop --in {elsewhere}"))
        self.assertIn("at least 2 of 2 files", check.told_changed({**found, "all": False}, "shop"))

    def test_it_never_raises(self) -> None:
        self.record()
        with mock.patch("os.lstat", side_effect=MemoryError):
            self.assertIsNone(self.noted())
        self.assertIsNone(check.changed_files(self.store.read("shop")[0], "\0", "0.19.0"))


class Ages(CheckCase):
    def test_list_shows_the_ages_of_a_cassette_and_of_its_last_run(self) -> None:
        self.record(recorded_at="2020-01-01T00:00:00+00:00")
        self.store.save_run("shop", "20260101T000000-x", {"result": "PASS", "model": "m", "at": _now()})
        self.record("unknown", recorded_at="")
        head, *rows = self.run_command("list")[1].splitlines()
        self.assertEqual(head.split(), ["name", "calls", "files", "pins", "last", "model", "kind", "age", "run"])
        first, second = (row.split() for row in rows)
        self.assertRegex(" ".join(first[-2:]), r"^\d+y [0-9]s$")
        self.assertEqual(second[-2:], ["-", "-"])

    def test_json_has_the_times(self) -> None:
        self.record(recorded_at="2026-01-01T00:00:00+00:00")
        self.store.save_run("shop", "20260101T000000-x", {"result": "PASS", "model": "m", "at": "then"})
        [row] = json.loads(self.run_command("list", "--json")[1])["cassettes"]
        self.assertEqual((row["recorded_at"], row["last"]["at"]), ("2026-01-01T00:00:00+00:00", "then"))

    def test_it_fits_eighty_columns_whatever_is_called_how(self) -> None:
        for name in ("n" * 64, "m" * 30, "s"):
            self.record(name, recorded_at="2026-01-01T00:00:00+00:00")
            self.store.save_run(
                name, "20260101T000000-x", {"result": "DIVERGED", "model": "hf.co/" + "m" * 190, "at": _now()}
            )
        lines = self.run_command("list")[1].splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertIn("n" * 64, lines)
        self.assertEqual(sum("DIVERGED  hf.co..." in line for line in lines), 3)


def _now() -> str:
    import datetime

    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


if __name__ == "__main__":
    unittest.main()
