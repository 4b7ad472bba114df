"""The pages: what they say of commands, flags, limits, lists and codes is what the code does."""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import re
import unittest
from pathlib import Path

from tests.support import REPO, FakeHost, load_plugin

from session_cassettes import cassette_store, cli, hooks, middleware, snapshot
from session_cassettes.suite import door, plan, runs

README, SPEC, TESTED, PLAN = (
    (REPO / name).read_text("utf-8") for name in ("README.md", "docs/SPEC.md", "docs/TESTED.md", "docs/PLAN.md")
)
AT = datetime.datetime(2026, 11, 30, 12)
PAGES = [REPO / "README.md", *sorted((REPO / "docs").glob("*.md")), *sorted((REPO / "reviews").glob("*.md"))]


def part(page: str, start: str, end: str) -> str:
    """What stands in a page from one text up to the next occurrence of another."""
    begin = page.index(start)
    return page[begin : page.index(end, begin + len(start))]


def flags(command: door.Command) -> set[str]:
    parser = argparse.ArgumentParser(add_help=False)
    command.arguments(parser)
    return {word for action in parser._actions for word in action.option_strings}


def documented(page: str, start: str) -> dict[str, set[str]]:
    """Command name to the flags that a page's tables give for it."""
    rows = re.findall(rf"^\| `{re.escape(start)} ([a-z]+)([^`]*)`", page, re.MULTILINE)
    found: dict[str, set[str]] = {}
    for name, rest in rows:
        found.setdefault(name, set()).update(re.findall(r"--[a-z][a-z-]*", rest))
    return found


class Commands(unittest.TestCase):
    def test_every_command_and_flag_is_documented_and_no_other(self) -> None:
        for title, page in (("README", README), ("SPEC", SPEC)):
            for start, commands in (("hermes cassette", cli.SHELL_COMMANDS), ("/cassette", cli.SESSION_COMMANDS)):
                with self.subTest(page=title, start=start):
                    known = {one.name: flags(one) for one in commands if one.help is not argparse.SUPPRESS}
                    self.assertEqual(documented(page, start), known)

    def test_exit_codes_are_those_of_the_verdicts(self) -> None:
        for result, code in middleware.EXIT_CODES.items():
            for title, page in (("README", README), ("SPEC", SPEC)):
                with self.subTest(page=title, result=result):
                    self.assertRegex(page, rf"(?m)^\| {result} \|.*\| {code} \|$")
        self.assertEqual((door.ERROR, door.INTERRUPTED), (2, 130))

    def test_the_miss_is_quoted_as_it_is(self) -> None:
        self.assertIn(f"`{middleware.MISS}`", SPEC)


class Reasons(unittest.TestCase):
    """The README's table of what to do about an INVALID run."""

    TABLE = dict(
        re.findall(r"^\| `([^`]+)` \| (.+) \|$", part(README, "### INVALID: what to do", "\n## "), re.MULTILINE)
    )

    @staticmethod
    def pattern(reason: str) -> str:
        """A regular expression for what is printed of a reason, whatever its facts are."""
        return ".+".join(re.escape(text) for text in re.split(r"(?:\{[^}]*\})+", reason))

    def test_every_reason_has_one_row_that_says_what_to_do(self) -> None:
        for key, reason in middleware.REASONS.items():
            with self.subTest(key):
                rows = [row for row in self.TABLE if re.fullmatch(self.pattern(reason), row)]
                self.assertEqual(len(rows), 1, reason)

    def test_every_row_is_a_reason(self) -> None:
        patterns = [self.pattern(reason) for reason in middleware.REASONS.values()]
        for row in self.TABLE:
            with self.subTest(row):
                self.assertTrue(any(re.fullmatch(pattern, row) for pattern in patterns))

    def test_every_reason_is_given_by_some_module_and_no_other(self) -> None:
        given: set[str] = set()
        for path in (*REPO.glob("*.py"), *(REPO / "suite").glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "because":
                    given.add(ast.unparse(node.args[0]).strip("'"))
                elif isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "REASONS":
                    given.add(ast.unparse(node.slice).strip("'"))
        by_host = "f'unclaimed {arm.hosting}"  # one for each place that can host a session
        self.assertIn(by_host, given)
        given = given - {by_host, "key"} | {f"unclaimed {hosting}" for hosting in ("process", "gateway")}
        self.assertEqual(given, set(middleware.REASONS))

    def test_the_reference_quotes_the_beginnings_of_reasons(self) -> None:
        printed = [re.sub(r"^\{count\}", "1 tool call", reason) for reason in middleware.REASONS.values()]
        quoted = re.findall(r"`([^`]+)`", part(SPEC, "### What makes a run INVALID", "### The path line"))
        for text in quoted:
            beginning = " ".join(text.split())
            with self.subTest(beginning):
                self.assertTrue([reason for reason in printed if reason.startswith(beginning)])
        self.assertGreater(len(quoted), 10)


class Numbers(unittest.TestCase):
    def test_limits_are_those_of_the_code(self) -> None:
        said = {
            "over 2 MB": middleware.RESULT_LIMIT == 2 * 2**20,
            "beyond 12 MB": middleware.TURN_LIMIT == 12 * 2**20,
            "over 512 KB": snapshot.SNAPSHOT_FILE_LIMIT == 512 * 2**10,
            "beyond 8 MB": snapshot.SNAPSHOT_LIMIT == 8 * 2**20,
            "more than 5,000 tool calls": middleware.CALL_LIMIT == 5000,
            "more than 16 unfinished replays": cassette_store.REPLAY_LIMIT == 16,
            "time-out is 900 s": cli.DEFAULT_TIMEOUT == 900,
            "15 s": hooks.SNAPSHOT_SECONDS == 15,
            "holds for an hour": hooks.ARM_LIFETIME == 3600,
            "up to 64 letters": len(cassette_store.check_name("a" * 64)) == 64,
        }
        flat = " ".join(SPEC.split())
        for text, true in said.items():
            with self.subTest(text):
                self.assertIn(text, flat)
                self.assertTrue(true)

    def test_the_readme_tells_the_same_limits(self) -> None:
        for text in (
            f"{middleware.RESULT_LIMIT // 2**20} MB of a result",
            f"{middleware.TURN_LIMIT // 2**20} MB of a turn",
            f"{snapshot.SNAPSHOT_FILE_LIMIT // 2**10} KB of a file",
            f"{snapshot.SNAPSHOT_LIMIT // 2**20} MB of files",
            f"{middleware.CALL_LIMIT:,} calls in a replay",
            f"may take {hooks.SNAPSHOT_SECONDS:g} s there",
            f"Default time-out {cli.DEFAULT_TIMEOUT:g} s",
        ):
            with self.subTest(text):
                self.assertIn(text, README)

    def test_costs_and_limits_are_ten_lines(self) -> None:
        listed = part(README, "## Costs and limits", "[docs/PERFORMANCE.md]")
        self.assertEqual(re.findall(r"^(- |\S)", listed.partition("\n\n")[2], re.MULTILINE), ["- "] * 10)

    def test_the_lists_of_secret_names_are_whole(self) -> None:
        for title, told in (
            ("SPEC", part(SPEC, "secret-looking names, in any case", "binary and non-UTF-8")),
            ("README", part(README, "a secret-looking name, in any case", "both the name")),
        ):
            with self.subTest(title):
                self.assertEqual(set(re.findall(r"`([^`]+)`", told)), set(snapshot.SECRET_NAMES))

    def test_the_lists_of_what_is_kept_are_whole(self) -> None:
        commands = ("cat", "type", "dir", "ls", "rg", "git log", "git show", "git diff")
        for title, told in (
            ("SPEC", part(SPEC, "Kept are the results of", "The command line is parsed")),
            ("README", part(README, "Kept are the results of", "At the end")),
        ):
            with self.subTest(title):
                self.assertEqual(set(re.findall(r"`(\w+_\w+)`", told)), set(snapshot.KEPT_TOOLS))
                self.assertLessEqual({f"`{command}`" for command in commands}, set(re.findall(r"`[^`]+`", told)))
        for command in commands:
            with self.subTest(command):
                arguments = {"command": command + (" x" if command in ("cat", "type", "rg") else "")}
                self.assertIsNone(snapshot.terminal_verdict(arguments))

    def test_realistic_patterns_are_as_many_as_are_tried(self) -> None:
        from tests.test_patterns import REALISTIC

        self.assertIn(f"Of the {len(REALISTIC)} realistic patterns", TESTED)


class Files(unittest.TestCase):
    """Section 7 of the reference."""

    def test_the_data_folder_is_laid_out_as_told(self) -> None:
        store = cassette_store.Store(Path("root"))
        told = re.findall(r"^\| (`[^|]+`) \|", part(SPEC, "## 7. Files", "A cassette's name"), re.MULTILINE)
        told = [path.replace("<hash>", "[0-9a-f]{32}") for cell in told for path in re.findall(r"`([^`]+)`", cell)]
        patterns = [re.sub(r"<[^>]+>", "[^/]+", path) for path in told]
        for path in (
            store.path("x"),
            store.runs("x") / "y-z.json",
            store.arm_path,
            store.claim_path("x"),
            store.ledger_path("x"),
            store.ping_path("x"),
            store.recording_path("x"),
            store.outcome_path("x"),
            runs.plan_path(store, "20261130T120000-0a1b2c"),
            runs.lock_suite(store, "20261130T120000-0a1b2c").path,
            store.runs("x") / f"{runs.stamp('20261130T120000-0a1b2c', AT, 'z')}.json",
            store.lock().path,
            store.waiting().path,
        ):
            name = path.relative_to("root").as_posix()
            with self.subTest(name):
                self.assertTrue([pattern for pattern in patterns if re.fullmatch(pattern, name)])

    def test_every_field_of_a_file_is_named(self) -> None:
        cassette = json.loads(cassette_store.dump_cassette(cassette_store.Cassette("x", "r", "a")))
        state = cassette_store.RecordingState("saved", "x", "s", 0.0)
        cells = plan.cross({"x": "0"}, [], [plan.Arm()])
        planned = plan.dump_plan(plan.Plan("20261130T120000-0a1b2c", "", cells))
        marked = runs.mark_run({}, plan.Plan("x", "", cells), cells[0].key, 1)
        for section, fields in (
            ("### A cassette", {*cassette, *cassette["counts"], *cassette["host"], *cassette["snapshot"]}),
            ("### A cassette", set(cassette_store.SnapshotFile._fields) | set(cassette_store.Call._fields)),
            ("A recording's state has", set(json.loads(cassette_store.to_json(state)))),
            ("### A run", set(cassette_store.Answered._fields) | set(marked)),
            ("### A plan", {*planned, *planned["cells"][0]}),
        ):
            told = set(re.findall(r"`(\w+)`", part(SPEC, section, "\n\n" if section[0] == "A" else "\n#")))
            with self.subTest(section):
                self.assertLessEqual(fields, told)

    def test_list_is_not_said_to_read_less_than_it_does(self) -> None:
        self.assertIn("`list` reads each file whole", " ".join(PLAN.split()))


class Pages(unittest.TestCase):
    def test_every_link_within_the_repository_leads_somewhere(self) -> None:
        for page in PAGES:
            for target, heading in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text("utf-8")):
                if "://" not in target:
                    with self.subTest(page=page.name, target=target, heading=heading):
                        other = page.parent / target if target else page
                        self.assertTrue(other.exists())
                        if heading:
                            self.assertIn(heading, anchors(other.read_text("utf-8")))

    def test_the_pages_that_the_readme_promises_are_there(self) -> None:
        for name in ("SPEC", "PLAN", "TESTED", "SECURITY", "CONTRIBUTING", "CATALOG", "PERFORMANCE", "SECRETS", "CI"):
            with self.subTest(name):
                self.assertTrue((REPO / "docs" / f"{name}.md").exists())
        self.assertTrue((REPO / "docs" / "VALIDATION.txt").exists())
        self.assertTrue(list((REPO / "reviews").glob("*.md")))

    def test_the_readme_goes_in_the_order_of_a_newcomer(self) -> None:
        wanted = ["Install", "Use", "Verdicts", "Costs and limits", "Safety and disclosures", "Uninstall", "Licence"]
        self.assertEqual(re.findall(r"^## (.+)$", README, re.MULTILINE), wanted)
        for command in ("python demo/walkthrough.py", "python -m unittest discover -s tests"):
            with self.subTest(command):
                self.assertRegex(README, rf"(?m)^    {re.escape(command)}$")

    def test_the_picture_says_in_words_what_it_shows(self) -> None:
        found = re.search(r"!\[([^\]]+)\]\((docs/[\w-]+\.svg)\)", README)
        assert found is not None
        words, picture = found[1], (REPO / found[2]).read_text("utf-8")
        for word in ("Record", "Pin", "Run", "Verdict", *middleware.EXIT_CODES):
            with self.subTest(word):
                self.assertIn(word, words)
                self.assertIn(word, picture)
        self.assertIn("prefers-color-scheme: dark", picture)
        self.assertNotRegex(picture, r"(?:href|src)=|<script")

    def test_the_changelog_opens_with_what_is_not_released(self) -> None:
        text = (REPO / "docs" / "CHANGELOG.md").read_text("utf-8")
        self.assertEqual(re.findall(r"^## (.+)$", text, re.MULTILINE)[0], "Unreleased")
        self.assertIn(f"\n## {hooks.plugin_facts().plugin}\n", text)

    def test_pages_name_no_issue_and_no_folder_of_the_machine_they_were_written_on(self) -> None:
        for page in PAGES:
            with self.subTest(page.name):
                text = page.read_text("utf-8")
                self.assertNotRegex(text, r"(?i)\bissues? #?\d|(?<![\w/(#])#\d+\b")
                self.assertNotRegex(text, r"(?<![\w~.])/(?:work|tmp|root|home/\w+)/\w")

    def test_the_manifest_declares_what_is_registered(self) -> None:
        host = FakeHost()
        load_plugin().register(host.ctx)
        manifest = (REPO / "plugin.yaml").read_text("utf-8")
        for name in (*host.ctx.hooks, *host.ctx.middleware):
            with self.subTest(name):
                self.assertIn(f"  - {name}\n", manifest)
                self.assertIn(f"`{name}`", README)
        self.assertEqual(manifest.count("  - "), len(host.ctx.hooks) + len(host.ctx.middleware))
        self.assertIn('requires_hermes: ">=0.19.0"', manifest)

    def test_versions_that_the_pages_name_are_the_lanes(self) -> None:
        from tests.lanes.venvs import LANES

        for version in LANES:
            with self.subTest(version):
                self.assertIn(version, README)


def anchors(page: str) -> set[str]:
    """The anchors that a page's headings get."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


if __name__ == "__main__":
    unittest.main()
