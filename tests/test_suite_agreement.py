"""Whether a text agrees with what a turn's tools showed of it: in no way of printing is there a difference."""

from __future__ import annotations

import json
import unittest
from typing import Any

import tests.support  # noqa: F401  loads the plugin

from session_cassettes.cassette_store import Call
from session_cassettes.snapshot import Workspace
from session_cassettes.suite.agreement import Line, Shown, disagrees, lines_shown

HERE = Workspace("/ws", home="/home/ada")
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----"


def read(content: str, path: str = "a.py", **more: Any) -> Call:
    return Call("read_file", {"path": path}, json.dumps({"content": content, **more}))


def rows(*matches: tuple[str, int, str]) -> Call:
    found = [{"path": path, "line": line, "content": text} for path, line, text in matches]
    return Call("search_files", {"pattern": "x"}, json.dumps({"total_count": len(found), "matches": found}))


def grouped(text: str) -> Call:
    value = {"total_count": 5, "matches_format": "path-grouped: ...", "matches_text": text}
    return Call("search_files", {"pattern": "x"}, json.dumps(value))


def shell(command: str, output: str = "", code: int = 0, **args: Any) -> Call:
    told = {"output": output, "exit_code": code, "error": None}
    return Call("terminal", {"command": command, **args}, json.dumps(told))


class Agrees(unittest.TestCase):
    """How a tool prints a line is no difference."""

    def agrees(self, call: Call, text: str, size: int | None = None) -> None:
        self.assertTrue(Shown([call], HERE).knows("a.py"), "nothing was shown of the file")
        self.assertIsNone(disagrees([call], "a.py", text, HERE, size))

    def test_pages_of_all_versions(self) -> None:
        for content, text in (
            ("1|x = 1\n2|y = 2\n3|", "x = 1\ny = 2\n"),  # 0.19 and 0.20 open one more line
            ("1|x = 1\n2|y = 2", "x = 1\ny = 2\n"),
            ("1|x = 1\n2|y = 2", "x = 1\ny = 2"),
            ("2|y = 2\n3|", "x = 1\ny = 2\nz = 3\n"),  # a page of one line in 0.19
            ("1|x\r\n2|y\r", "x\r\ny\r\n"),
            ("1|x\n2|y", "x\r\ny\r\n"),
            ("1|x = 1", "\ufeffx = 1\n"),
            ("1|a|b|c\n2|\tq", "a|b|c\n\tq\n"),
            ("1|x\n2|\n3|\n4|", "x\n\n\n"),
            ("1|" + "y" * 2000 + "... [truncated]", "y" * 5000 + "\n"),
            ("1|\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m\n"),
            ("1|title done", "\x1b]0;name\x07title done\n"),
            ("1|a\x0cb", "a\x0cb\n"),
            ("99|", "x\n"),
            ("", "x\n"),
        ):
            with self.subTest(content=content[:30]):
                self.agrees(read(content), text)

    def test_rows_of_all_shapes(self) -> None:
        long = "x = '" + "y" * 600 + "'"
        for call, text in (
            (rows(("a.py", 2, "    y = 2")), "x\n    y = 2   \n"),
            (rows(("./a.py", 1, "x")), "x\r\n"),
            (rows(("/ws/a.py", 1, "x")), "x\n"),
            (rows(("a.py", 1, long[:500])), long + "\n"),
            (rows(("a.py", 1, ("one " * 125).strip())), "one " * 900),
            (rows(("a.py", 1, "x")), "\ufeffx\n"),
            (grouped("./a.py\n  1: \n  3: def handler():\n./b.py\n  1: q"), "\n\ndef handler():\n"),
            (grouped("a.py\n  7:   indented: yes"), "\n" * 6 + "  indented: yes\n"),
        ):
            with self.subTest(call=call.result[:60]):
                self.agrees(call, text)

    def test_a_hint_behind_the_answer_changes_nothing(self) -> None:
        call = rows(("a.py", 1, "x"))
        self.agrees(call._replace(result=call.result + "\n\n[Hint: Results truncated. Use offset=50]"), "x\n")

    def test_masks_hide_whatever_they_like(self) -> None:
        token = "ghp_" + "a" * 36
        for shown, kept in (
            ("TOKEN = «redacted:ghp_…»", f"TOKEN = {token}"),
            ("key = ***", "key = hunter2"),
            ("key: sk-abc...wxyz # old", "key: sk-abcdefghijklmnopqrstuvwxyz # old"),
            ("[REDACTED PRIVATE KEY]", "-----BEGIN RSA PRIVATE KEY-----"),
            ("a = ***, b = ***", "a = 1, b = 2"),
            ("call +49**** now", "call +4915112345678 now"),
        ):
            with self.subTest(shown=shown):
                self.agrees(read(f"1|{shown}"), kept + "\n")
                self.agrees(rows(("a.py", 1, shown)), kept + "\n")

    def test_a_key_of_several_lines_is_one_line_of_a_page(self) -> None:
        self.agrees(read("1|k = 1\n2|[REDACTED PRIVATE KEY]\n6|z = 2"), f"k = 1\n{KEY}\nz = 2\n")
        self.agrees(shell("cat a.py", "k = 1\n[REDACTED PRIVATE KEY]"), f"k = 1\n{KEY}\n")
        printed = shell("cat a.py", "k = 1\n[REDACTED PRIVATE KEY]\nz = 2\ny = 3")
        self.agrees(printed, f"k = 1\n{KEY}\nz = 2\ny = 3\n")
        for text in (f"k = 2\n{KEY}\nz = 2\ny = 3\n", f"k = 1\n{KEY}\nz = 2\ny = 4\n", f"k = 1\n{KEY}\ny = 3\n"):
            self.assertIsNotNone(disagrees([printed], "a.py", text, HERE))

    def test_a_cut_in_the_middle_of_a_mask(self) -> None:
        shown = "x" * 488 + "«redacted:gh"
        self.agrees(rows(("a.py", 1, shown)), "x" * 488 + "ghp_" + "a" * 40 + "\n")

    def test_other_forms_of_a_file_are_not_compared(self) -> None:
        for call in (
            read("1|cell", path="a.ipynb"),
            read("1|cell", extracted_document=True),
            read("1|cell", hint="Transcoded from UTF-16-LE to UTF-8 for display."),
            read("1|cell", error="no"),
        ):
            with self.subTest(call=call):
                self.assertIsNone(disagrees([call], str(call.args["path"]), "{}\n", HERE))

    def test_what_cat_printed(self) -> None:
        for output, text in (("x\ny", "x\ny\n"), ("x", "\n\nx\n\n"), ("x\n\ny", "x\r\n\r\ny\r\n")):
            with self.subTest(output=output):
                self.agrees(shell("cat a.py", output), text)

    def test_what_other_commands_printed_is_not_certain(self) -> None:
        for call in (
            shell("cat a.py b.py", "q"),
            shell("cat -n a.py", "q"),
            shell("head a.py", "q"),
            shell("cat a.py | sort", "q"),
            shell("cat a.py", "q", code=1),
            shell("cat a.py", "q" * 50_000),
            shell("cat a.py", "q", workdir="src"),
            shell("cat a*", "q"),
        ):
            with self.subTest(call=call.args):
                self.assertFalse(Shown([call], HERE).knows("a.py"))

    def test_where_relative_paths_may_lead_elsewhere_they_are_not_compared(self) -> None:
        for moving in (shell("cd src"), shell("cd src && ls"), shell("ls", workdir="src"), shell("pushd x")):
            with self.subTest(moving=moving.args):
                self.assertIsNone(disagrees([moving, read("1|other")], "a.py", "x\n", HERE))
                self.assertEqual(disagrees([moving, read("1|other", path="/ws/a.py")], "a.py", "x\n", HERE), 1)
                self.assertEqual(disagrees([read("1|other"), moving], "a.py", "x\n", HERE), 1)

    def test_nothing_is_shown_by_what_is_no_result(self) -> None:
        for result in (
            None,
            "",
            "no json",
            "[]",
            '{"matches": 5, "matches_text": 7, "content": []}',
            5,
            {"content": 1},
        ):
            for tool in ("read_file", "search_files", "terminal", "web_search"):
                with self.subTest(tool=tool, result=result):
                    self.assertFalse(
                        Shown([Call(tool, {"path": "a.py", "command": "cat a.py"}, result)], HERE).knows("a.py")
                    )


class Disagrees(unittest.TestCase):
    def test_a_line_that_was_shown_otherwise(self) -> None:
        for call, text, number in (
            (read("1|1.4.2\n2|"), "1.5.0\n", 1),
            (read("1|a\n2|b\n3|c"), "a\nb\nd\n", 3),
            (read("1|a\n2|b"), "a\n", 2),
            (read("3|c"), "a\nb\n", 3),
            (read("1|a\n2|b"), "new\na\nb\n", 1),
            (rows(("a.py", 2, "y = 2")), "y = 2\n", 2),
            (rows(("a.py", 2, "y = 2")), "x\ny = 3\n", 2),
            (rows(("a.py", 1, "x" * 500)), "x" * 499 + "y" * 9, 1),
            (grouped("./a.py\n  4: e\n  3: d"), "a\nb\nc\ne\n", 3),
            (read("1|key = *** # old"), "key = hunter2 # new\n", 1),
            (read("1|" + "y" * 2000 + "... [truncated]"), "z" * 5000, 1),
            (shell("cat a.py", "x\ny"), "x\nz\n", 2),
            (shell("cat a.py", "x\ny"), "x\ny\nz\n", 3),
            (shell("cat ./a.py", "1.4.2"), "1.5.0\n", 1),
        ):
            with self.subTest(call=call.result[:60], text=text[:20]):
                self.assertEqual(disagrees([call], "a.py", text, HERE), number)

    def test_any_of_several_calls_can_tell(self) -> None:
        calls = [read("1|a"), rows(("a.py", 1, "a")), read("1|b"), rows(("b.py", 1, "z"))]
        self.assertEqual(disagrees(calls, "./a.py", "a\n", HERE), 1)
        self.assertEqual(disagrees(calls, "a.py", "b\n", HERE), 1)
        self.assertIsNone(disagrees(calls, "b.py", "z\n", HERE))
        self.assertIsNone(disagrees(calls, "c.py", "z\n", HERE))

    def test_a_size_that_was_told_is_the_size(self) -> None:
        call = read("1|a", file_size=2)
        self.assertIsNone(disagrees([call], "a.py", "a\n", HERE, 2))
        self.assertIsNone(disagrees([call], "a.py", "a\nb\n", HERE))
        self.assertEqual(disagrees([call], "a.py", "a\nb\n", HERE, 4), 0)

    def test_what_was_written_agrees_with_nothing(self) -> None:
        patch = (
            "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Move File: b.py -> c.py\n*** Delete File: d.py\n"
        )
        for call, names in (
            (Call("write_file", {"path": "a.py", "content": "x"}, "{}"), {"a.py"}),
            (Call("patch", {"path": "/ws/a.py", "old_string": "x"}, '{"error": "no match"}'), {"a.py"}),
            (Call("patch", {"mode": "patch", "patch": patch}, "{}"), {"a.py", "b.py", "c.py", "d.py"}),
            (Call("write_file", {"path": "../out.py"}, "{}"), set()),
            (Call("write_file", {"path": 5}, "{}"), set()),
        ):
            with self.subTest(call=call.args):
                shown = Shown([call], HERE)
                self.assertEqual(set(shown.written.values()), names)
                self.assertTrue(shown.wrote)
                self.assertEqual(shown.disagrees("a.py", "x"), 0 if names else None)

    def test_only_tools_that_read_leave_a_turn_one_that_reads(self) -> None:
        for call, wrote in (
            (read("1|a"), False),
            (shell("cat a.py"), False),
            (shell("git log"), False),
            (shell("make"), True),
            (shell("cat a.py > b.py"), True),
            (Call("execute_code", {}, ""), True),
            (Call("todo", {}, ""), True),
        ):
            with self.subTest(call=call.args):
                self.assertEqual(Shown([call], HERE).wrote, wrote)

    def test_where_case_means_nothing_a_file_has_one_name(self) -> None:
        mac = Workspace("/ws", fold_case=True)
        self.assertEqual(disagrees([read("1|a", path="A.py")], "a.PY", "b\n", mac), 1)
        self.assertIsNone(disagrees([read("1|a", path="A.py")], "a.PY", "b\n", HERE))


class Lines(unittest.TestCase):
    def test_lines_are_told_by_the_names_that_the_result_has(self) -> None:
        self.assertEqual(
            lines_shown(grouped("./a.py\n  1: x\n  2: y\nb\n  9: z")),
            {"./a.py": [Line(1, "x", True), Line(2, "y", True)], "b": [Line(9, "z", True)]},
        )
        self.assertEqual(lines_shown(read("4|x")), {"a.py": [Line(4, "x")]})


if __name__ == "__main__":
    unittest.main()
