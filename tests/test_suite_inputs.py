"""What a run file tells of what went in and what was used: hashes and counts, never a text, never an error."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import unittest
from pathlib import Path
from typing import Any, Mapping
from unittest import mock

from tests.support import temp_folder, write_tree

from session_cassettes.cassette_store import Facts, Ledger
from session_cassettes.suite import inputs

#: How a system prompt ends: with what is another every day.
DAILY = "\nConversation started: Tuesday, December 01, 2026\nSession ID: s1\nModel: careful\n"


class InputsCase(unittest.TestCase):
    def setUp(self) -> None:
        self.home, self.folder = temp_folder(self), temp_folder(self)
        patch = mock.patch.dict(os.environ, {"HERMES_HOME": str(self.home)})
        patch.start()
        self.addCleanup(patch.stop)

    def files(self) -> dict[str, str]:
        return inputs.context_hashes(str(self.folder), self.home)


class ContextFiles(InputsCase):
    def test_those_that_are_there_are_told_and_changes_of_each_are_seen(self) -> None:
        names = ("AGENTS.md", "CLAUDE.md", ".cursorrules", ".hermes.md", ".cursor/rules/a.mdc", "AGENTS.override.md")
        homes = ("SOUL.md", "memories/MEMORY.md", "memories/USER.md")
        write_tree(self.folder, dict.fromkeys((*names, "README.md", ".cursor/rules/a.txt"), "one"))
        write_tree(self.home, dict.fromkeys((*homes, "AGENTS.md"), "one"))
        before = self.files()
        self.assertEqual(set(before), {*names, *homes})
        for name in (*names, *homes):
            with self.subTest(name):
                write_tree(self.home if name in homes else self.folder, {name: "two"})
                after = self.files()
                self.assertEqual({one for one in after if after[one] != before[one]}, {name})
                before = after

    def test_above_the_folder_only_a_git_work_tree_is_looked_at(self) -> None:
        write_tree(self.folder, {"AGENTS.md": "x", "CLAUDE.md": "x", "shop/server/AGENTS.md": "y"})
        deep = str(self.folder / "shop" / "server")
        self.assertEqual(set(inputs.context_hashes(deep, self.home)), {"AGENTS.md"})
        (self.folder / ".git").mkdir()
        self.assertEqual(set(inputs.context_hashes(deep, self.home)), {"AGENTS.md", "../../AGENTS.md"})

    def test_one_file_by_two_names_is_told_once(self) -> None:
        write_tree(self.folder, {"AGENTS.md": "x"})
        os.link(self.folder / "AGENTS.md", self.folder / "agents.md")  # as where case does not count
        self.assertEqual(set(self.files()), {"AGENTS.md"})

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs named pipes")
    def test_what_is_no_file_is_never_waited_for(self) -> None:
        os.mkfifo(self.folder / "AGENTS.md")
        (self.folder / "CLAUDE.md").mkdir()
        (self.folder / ".cursorrules").symlink_to("/dev/zero")
        self.assertEqual(self.files(), {})

    def test_no_text_and_no_path_of_the_machine_is_told(self) -> None:
        write_tree(self.folder, {"AGENTS.md": "PLANTED secret", "skills/x/SKILL.md": "PLANTED"})
        write_tree(self.home, {"skills/x/SKILL.md": "PLANTED too"})
        told = json.dumps(inputs.went_in(str(self.folder), ["x"]))
        self.assertNotIn("PLANTED", told)
        self.assertNotIn(str(self.folder), told)
        self.assertIn('"x"', told)


class Skills(InputsCase):
    def hashes(self, *names: str, roots: tuple[Path, ...] = ()) -> dict[str, str]:
        return inputs.skill_hashes(names, roots or [self.home / "skills"])

    def test_a_skill_is_found_by_its_path_its_folder_and_its_own_name(self) -> None:
        text = "---\nname: shop-layout\n---\nLook into server/.\n"
        write_tree(self.home / "skills", {"web/layout/SKILL.md": text, "web/other/SKILL.md": "---\nname: o\n---\n"})
        found = [self.hashes(name) for name in ("web/layout", "web:layout", "layout", "shop-layout")]
        self.assertEqual(len({value for one in found for value in one.values()}), 1)
        self.assertEqual([list(one) for one in found], [["web/layout"], ["web:layout"], ["layout"], ["shop-layout"]])

    def test_a_change_of_its_text_or_of_the_files_beside_it_is_seen(self) -> None:
        seen = set()
        for files in (
            {"a/SKILL.md": "one"},
            {"a/SKILL.md": "two"},
            {"a/references/api.md": "x"},
            {"a/scripts/run.sh": "x"},
        ):
            write_tree(self.home / "skills", files)
            seen.add(self.hashes("a")["a"])
        self.assertEqual(len(seen), 4)
        write_tree(self.home / "skills", {"a/references/api.md": "y", "a/notes.txt": "not told to the model"})
        self.assertIn(self.hashes("a")["a"], seen)

    def test_a_name_that_several_texts_have_or_none_is_left_out(self) -> None:
        write_tree(self.home / "skills", {"x/same/SKILL.md": "one", "y/same/SKILL.md": "two", "z/copy/SKILL.md": "3"})
        write_tree(self.folder, {"copy/SKILL.md": "3", "SKILL.md": "outside"})
        roots = (self.home / "skills", self.folder)
        self.assertEqual(set(self.hashes("same", "none", "copy", "../z/copy", "", roots=roots)), {"copy"})

    def test_folders_that_lead_back_to_themselves_end(self) -> None:
        write_tree(self.home / "skills", {"x/a/SKILL.md": "one"})
        (self.home / "skills" / "x" / "loop").symlink_to(self.home / "skills", target_is_directory=True)
        self.assertEqual(set(self.hashes("a", "none")), {"a"})


COLUMNS = (
    "id",
    "parent_session_id",
    "system_prompt",
    "api_call_count",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "estimated_cost_usd",
    "actual_cost_usd",
    "cost_status",
)


class Database(InputsCase):
    """Rows as the three versions keep them: 0.19 the prompt's text, later ones its hash and a table of texts."""

    def keep(self, *rows: Mapping[str, Any], columns: tuple[str, ...] = COLUMNS) -> None:
        with contextlib.closing(sqlite3.connect(self.home / "state.db")) as database, database:
            database.execute(f"CREATE TABLE sessions ({', '.join(columns)})")
            for row in rows:
                marks = ", ".join("?" * len(row))
                database.execute(f"INSERT INTO sessions ({', '.join(row)}) VALUES ({marks})", list(row.values()))

    def test_a_prompt_is_the_same_on_every_day_and_in_every_session(self) -> None:
        self.keep(
            {"id": "s1", "system_prompt": "Be careful." + DAILY},
            {"id": "s2", "system_prompt": "Be careful." + DAILY.replace("s1", "s2").replace("01,", "02,")},
            {"id": "s3", "system_prompt": "Be bold." + DAILY},
        )
        first, second, third = (inputs.session_facts([one])[0] for one in ("s1", "s2", "s3"))
        self.assertRegex(first, r"\A[0-9a-f]{64}\Z")
        self.assertEqual(first, second)
        self.assertNotEqual(first, third)

    def test_a_prompt_that_stands_in_a_table_of_its_own_is_found_there(self) -> None:
        self.keep({"id": "s1", "system_prompt": "Be careful." + DAILY})
        as_text = inputs.session_facts(["s1"])[0]
        (self.home / "state.db").unlink()
        self.keep({"id": "s1", "system_prompt_hash": "h"}, columns=(*COLUMNS, "system_prompt_hash"))
        self.assertEqual(inputs.session_facts(["s1"])[0], "")
        with contextlib.closing(sqlite3.connect(self.home / "state.db")) as database, database:
            database.execute("CREATE TABLE system_prompts (hash, prompt)")
            database.execute("INSERT INTO system_prompts VALUES ('h', ?)", ("Be careful." + DAILY,))
        self.assertEqual(inputs.session_facts(["s1"])[0], as_text)

    def test_what_a_turn_used_is_summed_over_the_sessions_that_it_moved_through(self) -> None:
        self.keep(
            {"id": "s0", "api_call_count": 90, "input_tokens": 900},  # another conversation
            {"id": "s1", "parent_session_id": "s0", "api_call_count": 2, "input_tokens": 10, "system_prompt": "one"},
            {"id": "s2", "parent_session_id": "s1", "api_call_count": 1, "output_tokens": 5, "system_prompt": "two"},
            {"id": "s3", "parent_session_id": "s2", "api_call_count": 4, "cache_read_tokens": 7},
            {"id": "child", "parent_session_id": "s1", "api_call_count": 8, "input_tokens": 80},
        )
        prompt, usage = inputs.session_facts(["s1", "s3"])
        self.assertEqual(usage, {"tokens": 22, "calls": 7})
        self.assertEqual(prompt, inputs.system_prompt_hash("one", "s1"))

    def test_what_hermes_does_not_know_is_absent_and_never_zero(self) -> None:
        known = {"api_call_count": 1, "input_tokens": 3, "output_tokens": 4}
        for row, usage in (
            ({}, {}),
            ({"api_call_count": 0, "input_tokens": 0, "estimated_cost_usd": 0.0}, {}),
            ({"api_call_count": 2, "input_tokens": 0, "output_tokens": None}, {"calls": 2}),
            ({"api_call_count": "many", "input_tokens": -5, "output_tokens": 2.5}, {}),
            ({**known, "estimated_cost_usd": 0.0, "cost_status": "unknown"}, {"tokens": 7, "calls": 1}),
            ({**known, "estimated_cost_usd": 0.25, "cost_status": "unknown"}, {"tokens": 7, "calls": 1}),
            ({**known, "estimated_cost_usd": 0.25}, {"tokens": 7, "calls": 1, "cost": 0.25}),
            (
                {**known, "estimated_cost_usd": 0.25, "actual_cost_usd": 0.5, "cost_status": "actual"},
                {"tokens": 7, "calls": 1, "cost": 0.5, "cost_status": "actual"},
            ),
            ({**known, "actual_cost_usd": float("inf")}, {"tokens": 7, "calls": 1}),
        ):
            with self.subTest(row):
                self.assertEqual(inputs.usage_of([row]), usage)
        half = inputs.usage_of([{**known, "actual_cost_usd": 0.5}, known])
        self.assertEqual(half, {"tokens": 14, "calls": 2})  # of a half of it no cost is told

    def test_no_database_or_a_strange_one_tells_nothing_and_none_is_made(self) -> None:
        self.assertEqual(inputs.session_facts(["s1"]), ("", {}))
        self.assertEqual(list(self.home.iterdir()), [])
        (self.home / "state.db").write_bytes(b"no database" * 500)
        self.assertEqual(inputs.session_facts(["s1"]), ("", {}))
        (self.home / "state.db").unlink()
        self.keep({"id": "s1"}, columns=("id",))
        self.assertEqual(inputs.session_facts(["s1"]), ("", {}))
        self.assertEqual(inputs.session_facts(["nobody"]), ("", {}))
        self.assertEqual(inputs.session_facts([]), ("", {}))

    def test_sessions_that_are_each_others_parents_end(self) -> None:
        self.keep(
            {"id": "s1", "parent_session_id": "s3", "api_call_count": 1},
            {"id": "s2", "parent_session_id": "s3", "api_call_count": 1},
            {"id": "s3", "parent_session_id": "s2", "api_call_count": 1},
        )
        self.assertEqual(inputs.session_facts(["s1", "s2"])[1], {"calls": 3})

    def test_a_locked_database_is_waited_for_a_moment_only(self) -> None:
        self.keep({"id": "s1", "system_prompt": "one", "api_call_count": 1})
        with contextlib.closing(sqlite3.connect(self.home / "state.db", isolation_level=None)) as database:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("BEGIN EXCLUSIVE")
            self.assertEqual(inputs.session_facts(["s1"]), ("", {}))

    def test_nothing_is_written_to_the_database_nor_beside_it(self) -> None:
        self.keep({"id": "s1", "system_prompt": "one", "api_call_count": 1})
        path = self.home / "state.db"
        for mode in ("delete", "wal"):
            with self.subTest(mode):
                with contextlib.closing(sqlite3.connect(path)) as database:
                    database.execute(f"PRAGMA journal_mode = {mode}")
                before = path.read_bytes()
                self.assertEqual(inputs.session_facts(["s1"])[1], {"calls": 1})
                self.assertEqual((path.read_bytes(), [one.name for one in self.home.iterdir()]), (before, ["state.db"]))

    def test_what_hermes_wrote_ahead_is_read(self) -> None:
        self.keep({"id": "s1", "system_prompt": "one", "api_call_count": 1})
        with contextlib.closing(sqlite3.connect(self.home / "state.db", isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = wal")
            database.execute("UPDATE sessions SET api_call_count = 2")
            self.assertEqual(inputs.session_facts(["s1"])[1], {"calls": 2})

    def test_a_run_file_has_the_three_and_leaves_out_what_is_not_known(self) -> None:
        ledger = Ledger("a", "t", ("s1",), "m", Facts("1", "f", 1, False))
        given = {"files": {"AGENTS.md": "h"}, "skills": {}}
        self.assertEqual(inputs.run_facts(given, None), {"inputs": given})
        self.assertEqual(inputs.run_facts({}, ledger), {"inputs": {}})
        self.keep({"id": "s1", "system_prompt": "one", "api_call_count": 1})
        found = inputs.run_facts(given, ledger)
        self.assertEqual(found["usage"], {"calls": 1})
        self.assertEqual(set(found["inputs"]), {"system_prompt", "files", "skills"})


if __name__ == "__main__":
    unittest.main()
