"""What a recording is warned of: failures that it keeps, and rows of files with secret-looking names."""

from __future__ import annotations

import json
import unittest
from typing import Any

from tests.support import load_plugin

load_plugin()
from session_cassettes.cassette_store import Call, Cassette, dump_cassette, parse_cassette  # noqa: E402
from session_cassettes.hooks import judge_calls, remarks  # noqa: E402
from session_cassettes.middleware import LiveCall


def call(tool: str, result: Any, **args: Any) -> Call:
    return Call(tool, args, result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))


READ = call("read_file", {"content": "1|x", "total_lines": 1}, path="a.py")


class Failures(unittest.TestCase):
    """As the tools of 0.19.0 and 0.22.2.post1 answer."""

    def only(self, one: Call) -> str:
        lines = remarks([READ, one])
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def test_a_failed_search_of_the_web_is_told(self) -> None:
        for result in (
            {"success": False, "error": "No web search provider configured"},
            {"error": "Error searching web: HTTPSConnectionPool: Max retries exceeded"},
            {"error": "Interrupted", "success": False},
            {"success": False},
        ):
            with self.subTest(result=result):
                self.assertIn("web_search: the result is a failure", self.only(call("web_search", result, query="x")))

    def test_a_page_that_could_not_be_fetched_is_told(self) -> None:
        pages = [{"url": "a", "content": "text", "error": None}, {"url": "b", "content": "", "error": "timeout"}]
        self.assertIn("1 of 2 pages", self.only(call("web_extract", {"results": pages}, urls=["a", "b"])))
        self.assertEqual(remarks([call("web_extract", {"results": pages[:1]}, urls=["a"])]), [])

    def test_a_command_that_was_not_approved_is_told(self) -> None:
        for result in (
            {"output": "", "exit_code": -1, "error": "User denied this command.", "status": "blocked"},
            {"output": "", "exit_code": -1, "error": "", "status": "pending_approval", "approval_pending": True},
        ):
            with self.subTest(result=result):
                self.assertIn(
                    "terminal: the result is a command that was not approved",
                    self.only(call("terminal", result, command="cat a.py")),
                )

    def test_a_network_that_failed_under_any_tool_is_told(self) -> None:
        for error in (
            "ssh: connect to host box port 22: Connection refused",
            "Failed to read file: [Errno -2] Name or service not known",
            "Connection timed out after 30 s",
        ):
            with self.subTest(error=error):
                self.assertIn("error of the network", self.only(call("read_file", {"error": error}, path="a.py")))

    def test_other_errors_and_good_results_are_not(self) -> None:
        for one in (
            call("read_file", {"error": "File not found: src/connection.py"}, path="src/connection.py"),
            call("read_file", {"content": '1|{"error": "connection refused"}'}, path="a.py"),
            call("read_file", 'Connection refused {"error"'),
            call("search_files", {"total_count": 0}, pattern="x"),
            call("search_files", {"total_count": 0, "error": "Path not found: network"}, pattern="x"),
            call("web_search", {"success": True, "data": {"web": []}}, query="x"),
            call("skill_view", {"success": False, "error": "Skill 'x' not found."}, name="x"),
            call("terminal", {"output": "status: blocked", "exit_code": 0, "error": None}, command="cat a"),
        ):
            with self.subTest(result=one.result):
                self.assertEqual(remarks([one]), [])

    def test_equal_failures_are_one_line(self) -> None:
        failed = call("web_search", {"success": False, "error": "no key"}, query="x")
        self.assertEqual(
            remarks([failed, failed]),
            ["web_search (2): the result is a failure (no key), which every replay gives again"],
        )

    def test_a_cassette_without_any_kept_call_is_told(self) -> None:
        self.assertEqual(remarks([]), ["no tool call was kept: a replay has nothing to answer with"])

    def test_a_result_of_any_kind_is_judged(self) -> None:
        for result in (
            None,
            5,
            True,
            [],
            [1],
            {},
            {"error": 5},
            {"results": 5},
            {"status": []},
            {"content": {}},
            "{",
            "",
        ):
            for tool in ("web_search", "web_extract", "terminal", "read_file", "search_files"):
                for args in ({}, {"path": 5, "command": 5}, {"path": None}):
                    self.assertIsInstance(remarks([Call(tool, args, result)]), list)


class SecretRows(unittest.TestCase):
    NAMES = ("secrets.yaml", "prod.env", "credentials.json", "server.pem", "id_rsa")

    def told(self, *calls: Call) -> str:
        return "\n".join(remarks(calls))

    def test_the_rows_of_a_search_are_told_by_name(self) -> None:
        few = [{"path": f"./{name}", "line": 1, "content": "AUTH=x"} for name in self.NAMES[:2]]
        many = "".join(f"./conf/{name}\n  1: AUTH=x\n" for name in self.NAMES)
        self.assertEqual(
            self.told(call("search_files", {"total_count": 2, "matches": few}, pattern="AUTH")),
            "rows of 2 files with secret-looking names are in the results: ./secrets.yaml, ./prod.env",
        )
        self.assertEqual(
            self.told(call("search_files", {"total_count": 5, "matches_text": many}, pattern="AUTH")),
            "rows of 5 files with secret-looking names are in the results: "
            + ", ".join(f"./conf/{name}" for name in self.NAMES),
        )
        self.assertIn(
            "rows of 1 file with a secret-looking name are",
            self.told(call("search_files", {"matches": few[:1]}, pattern="AUTH")),
        )

    def test_reads_and_commands_are_told_too(self) -> None:
        output = {"output": "secrets.yaml:1:AUTH=x\nb.py:1:AUTH", "exit_code": 0}
        diff = {"output": "--- a/x\n+++ b/conf/server.pem\n+x", "exit_code": 0}
        for one, name in (
            (call("read_file", {"content": "1|x"}, path="Secrets.YAML"), "Secrets.YAML"),
            (call("read_file", {"content": "1|x"}, path="C:\\x\\prod.env"), r"C:\x\prod.env"),
            (call("terminal", {"output": "x"}, command="cat 'conf/id_rsa'"), "conf/id_rsa"),
            (call("terminal", output, command="rg AUTH"), "secrets.yaml"),
            (call("terminal", {"output": "AUTH=x"}, command="rg AUTH secrets.yaml"), "secrets.yaml"),
            (call("terminal", diff, command="git diff"), "conf/server.pem"),
            (call("terminal", {"output": "x"}, command="git show HEAD:token.json"), "token.json"),
        ):
            with self.subTest(args=one.args):
                self.assertEqual(
                    self.told(one), f"rows of 1 file with a secret-looking name are in the results: {name}"
                )

    def test_names_alone_and_other_names_are_not(self) -> None:
        for one in (
            call("search_files", {"files": ["./secrets.yaml"]}, pattern="*", target="files"),
            call("search_files", {"counts": {"./secrets.yaml": 2}}, pattern="AUTH", output_mode="count"),
            call("terminal", {"output": "secrets.yaml\nid_rsa"}, command="ls"),
            call("terminal", {"output": ""}, command="rg AUTH secrets.yaml"),
            call("read_file", {"error": "Access denied: secrets.yaml"}, path="secrets.yaml"),
            call("read_file", {"content": "1|see secrets.yaml and id_rsa"}, path="a.py"),
            call("search_files", {"matches": [{"path": "a.py", "line": 1, "content": "secrets.yaml"}]}, pattern="s"),
            call("search_files", {"matches_text": "a.py\n  1: secrets.yaml\n"}, pattern="s"),
            call("web_search", {"success": True, "data": {"web": [{"title": "secrets.yaml"}]}}, query="x"),
        ):
            with self.subTest(result=one.result):
                self.assertEqual(self.told(one), "")

    def test_many_names_are_cut_and_counted(self) -> None:
        rows = [{"path": f"{n}.pem", "content": "x"} for n in range(500)]
        told = self.told(call("search_files", {"matches": rows}, pattern="x"))
        self.assertIn("rows of 500 files", told)
        self.assertIn("9.pem and 490 more", told)
        self.assertLess(len(told), 300)


class NotKept(unittest.TestCase):
    def test_a_warning_counts_equal_tools_and_stays_short(self) -> None:
        slots = []
        for number in range(3_000):
            slots.append(LiveCall("write_file" if number % 2 else f"tool{number}" + "x" * 500, {}, str(number)))
        for slot in slots:
            slot.done, slot.result = True, "{}"
        _, not_kept, warnings = judge_calls(slots)
        self.assertEqual(len(not_kept), 3_000)
        self.assertIn("write_file (1500)", " ".join(warnings))
        self.assertLess(max(map(len, [*warnings, *not_kept])), 2_000)

    def test_whatever_names_a_model_made_up_the_recording_can_be_kept(self) -> None:
        odd = [chr(0xE0000 + number) * 5_000 for number in range(20)]
        slots = [LiveCall(name, {}, "x", done=True) for name in odd]
        for calls, elsewhere in ((slots, ()), ([], odd)):
            with self.subTest(elsewhere=bool(elsewhere)):
                kept, not_kept, warnings = judge_calls(calls, elsewhere)
                made = Cassette("c", "q", "a", not_kept=tuple(not_kept), warnings=tuple(warnings))
                self.assertEqual(parse_cassette(dump_cassette(made), "c.json").warnings, tuple(warnings))


if __name__ == "__main__":
    unittest.main()
