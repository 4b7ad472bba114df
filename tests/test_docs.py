"""The pages: what they say of commands, flags, limits, lists and codes is what the code does."""

from __future__ import annotations

import argparse
import re
import unittest
from pathlib import Path

from tests.support import REPO, load_plugin

load_plugin()
from session_cassettes import cassette_store, cli, hooks, middleware, snapshot  # noqa: E402

README, SPEC = ((REPO / name).read_text("utf-8") for name in ("README.md", "docs/SPEC.md"))
PAGES = [REPO / "README.md", *sorted((REPO / "docs").glob("*.md")), *sorted((REPO / "reviews").glob("*.md"))]


def flags(command: cli.Command) -> set[str]:
    parser = argparse.ArgumentParser(add_help=False)
    command.arguments(parser)
    return {word for action in parser._actions for word in action.option_strings}


def documented(page: str, start: str) -> dict[str, set[str]]:
    """Command name to the flags that a page's tables give for it."""
    rows = re.findall(rf"^\| `{re.escape(start)} ([a-z]+)([^`]*)`", page, re.MULTILINE)
    found: dict[str, set[str]] = {}
    for name, rest in rows:
        found.setdefault(name, set()).update(re.findall(r"--[a-z]+", rest))
    return found


class Commands(unittest.TestCase):
    def test_every_command_and_flag_is_documented_and_no_other(self) -> None:
        for title, page in (("README", README), ("SPEC", SPEC)):
            for start, commands in (("hermes cassette", cli.SHELL_COMMANDS), ("/cassette", cli.SESSION_COMMANDS)):
                told = documented(page, start)
                known = {c.name: flags(c) for c in commands if c.help is not argparse.SUPPRESS}
                self.assertEqual(set(told), set(known), (title, start))
                for name, options in known.items():
                    if start == "/cassette" and name in ("pin", "list"):
                        options = set()  # a session shows them bare, as the specification does
                    self.assertEqual(told[name], options, (title, start, name))

    def test_exit_codes_are_those_of_the_verdicts(self) -> None:
        for result, code in cassette_store.EXIT_CODES.items():
            for page in (README, SPEC):
                self.assertRegex(page, rf"(?m)^\| {result} \|.*\| {code} \|$")
        self.assertEqual((cli.ERROR, cli.INTERRUPTED), (2, 130))

    def test_the_miss_is_quoted_as_it_is(self) -> None:
        self.assertIn(f"`{middleware.MISS}`", SPEC)


class Numbers(unittest.TestCase):
    def test_limits_are_those_of_the_code(self) -> None:
        said = {
            "over 2 MB": cassette_store.RESULT_LIMIT == 2 * 2**20,
            "beyond 12 MB": cassette_store.TURN_LIMIT == 12 * 2**20,
            "over 512 KB": snapshot.SNAPSHOT_FILE_LIMIT == 512 * 2**10,
            "beyond 8 MB": snapshot.SNAPSHOT_LIMIT == 8 * 2**20,
            "more than 5,000 tool calls": cassette_store.CALL_LIMIT == 5000,
            "more than 16 unfinished replays": cassette_store.REPLAY_LIMIT == 16,
            "time-out is 900 s": cli.DEFAULT_TIMEOUT == 900,
            "15 s": hooks.SNAPSHOT_SECONDS == 15,
            "holds for an hour": hooks.ARM_LIFETIME == 3600,
            "up to 64 letters": len(cassette_store.check_name("a" * 64)) == 64,
        }
        flat = " ".join(SPEC.split())
        for text, true in said.items():
            self.assertIn(text, flat)
            self.assertTrue(true, text)

    def test_the_list_of_secret_names_is_whole(self) -> None:
        told = SPEC[SPEC.index("secret-looking names, in any case") : SPEC.index("binary and non-UTF-8")]
        names = set(re.findall(r"`([^`]+)`", told))
        self.assertEqual(names, set(snapshot.SECRET_NAMES))

    def test_the_lists_of_what_is_kept_are_whole(self) -> None:
        part = SPEC[SPEC.index("Kept are the results of") : SPEC.index("The command line is parsed")]
        self.assertEqual(set(re.findall(r"`(\w+_\w+)`", part)), set(snapshot.KEPT_TOOLS))
        commands = ("cat", "type", "dir", "ls", "rg", "git log", "git show", "git diff")
        for command in commands:
            self.assertIn(f"`{command}`", part)
            arguments = {"command": command + (" x" if command in ("cat", "type", "rg") else "")}
            self.assertIsNone(snapshot.terminal_verdict(arguments), command)

    def test_the_data_folder_is_laid_out_as_told(self) -> None:
        store = cassette_store.Store(Path("root"))
        paths = [
            store.path("x"),
            store.runs("x") / "y",
            store.arm_path,
            store.claim_path("x"),
            store.ledger_path("x"),
            store.ping_path("x"),
            store.recording_path("x"),
            store.lock().path,
            store.waiting().path,
        ]
        for path in paths:
            first = path.relative_to("root").parts[0]
            self.assertIn(f"`{first}", SPEC)


class Pages(unittest.TestCase):
    def test_every_link_within_the_repository_leads_somewhere(self) -> None:
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
                if "://" not in target:
                    self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")

    def test_the_pages_that_the_readme_promises_are_there(self) -> None:
        for name in ("SPEC", "PLAN", "TESTED", "SECURITY", "CONTRIBUTING", "CATALOG", "PERFORMANCE", "SECRETS"):
            self.assertTrue((REPO / "docs" / f"{name}.md").exists(), name)
        self.assertTrue((REPO / "docs" / "VALIDATION.txt").exists())
        self.assertTrue(list((REPO / "reviews").glob("*.md")))

    def test_the_manifest_declares_what_is_registered(self) -> None:
        from tests.support import FakeHost

        host = FakeHost()
        load_plugin().register(host.ctx)
        manifest = (REPO / "plugin.yaml").read_text("utf-8")
        for name in (*host.ctx.hooks, *host.ctx.middleware):
            self.assertIn(f"  - {name}\n", manifest)
            self.assertIn(f"`{name}`", README)
        self.assertEqual(manifest.count("  - "), len(host.ctx.hooks) + len(host.ctx.middleware))
        self.assertIn('requires_hermes: ">=0.19.0"', manifest)

    def test_versions_that_the_pages_name_are_the_lanes(self) -> None:
        from tests.lanes.venvs import LANES

        for version in LANES:
            self.assertIn(version, README)


if __name__ == "__main__":
    unittest.main()
