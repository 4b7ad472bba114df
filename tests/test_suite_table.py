"""The terminal's table: it fits, names what never passed first, and lets no escape sequence through."""

from __future__ import annotations

import re
import unittest

from tests.suite_samples import cell, hostile, large, likely, suite

from session_cassettes.suite import table


def painted(text: str, colour: str) -> str:
    return f"<{colour}>{text}</{colour}>"


class Table(unittest.TestCase):
    def test_what_never_passed_stands_first_and_by_name(self) -> None:
        cells = [cell(f"good{at}", "PPPPP") for at in range(49)]
        lines = table.render(suite([*cells, cell("hopeless", "FFFFF")])).splitlines()
        self.assertEqual(lines[0], "✗ never passed: hopeless with default model (0 of 5)")
        self.assertTrue(lines[1].startswith("FAIL: 49 of 50 cells"))

    def test_cells_stand_worst_first(self) -> None:
        text = table.render(suite([cell("a", "PP"), cell("b", "DD"), cell("c", "PF"), cell("d", "II")]), 200)
        rows = [line.split()[1] for line in text.splitlines() if re.match("[✓✗≠?] [A-Z]", line)]
        self.assertEqual(rows, ["FAIL", "DIVERGED", "INVALID", "PASS"])

    def test_a_wide_terminal_shows_all_in_a_row(self) -> None:
        made = suite([cell("auth", "PPFDI", tokens=4_100, cost=0.012)], 0.8)
        head, row = [line for line in table.render(made, 160).splitlines() if "auth" in line or "share" in line]
        names = "PASS share (95 %) reached shown FAIL DIV. INV. pass^3 median tokens cost cell".split()
        self.assertEqual(head.split(), names)
        for part in ("2 of 4", "50 % (15–85)", "12 s", "4,100", "$0.0120", "auth with default model"):
            self.assertIn(part, row)

    def test_what_has_no_room_beside_stands_below(self) -> None:
        made = suite([cell("auth", "PPPFD", tokens=4_100, cost=0.012)], 0.5)
        for width in (30, 60, 80, 100, 160):
            with self.subTest(width=width):
                text = " ".join(table.render(made, width).split())
                for part in ("3 of 5", "60 % (23–88)", "4,100", "$0.0120", "12 s"):
                    self.assertIn(part, text)

    def test_no_line_is_wider_than_the_terminal(self) -> None:
        for made in (likely(), suite([cell("日本語" * 9, "PPFDI", "模型" * 20), cell("b", "PF", "m")])):
            for width in (40, 60, 80, 133, 200):
                for line in table.render(made, width).splitlines():
                    self.assertLessEqual(table.columns(line), width, line)

    def test_a_grid_shows_cassettes_by_arms_where_it_fits(self) -> None:
        wide, narrow = table.render(likely(), 80), table.render(likely(), 40)
        self.assertRegex(wide, r"(?m)^ +plain +skilled$")
        self.assertRegex(wide, r"(?m)^log-rotation +✗ FAIL 0 of 10 +✓ PASS 10 of 10$")
        self.assertNotRegex(narrow, r"(?m)^ +plain +skilled$")

    def test_a_cell_of_the_grid_that_did_not_pass_throughout_has_a_row_too(self) -> None:
        rows = table.render(likely(), 100).split("cell\n", 1)[1].split("\n\n", 1)[0]
        self.assertIn("auth-port with gpt-oss:20b + plain", rows)
        self.assertNotIn("auth-port with gpt-oss:20b + skilled", rows)

    def test_no_outcome_of_an_invalid_cell_is_told_as_reached(self) -> None:
        text = table.render(suite([cell("a", "PPI")], 0.99), 160)
        row = next(line for line in text.splitlines() if line.startswith("? INVALID"))
        self.assertNotIn("yes", row)

    def test_comparisons_stand_below_and_differences_first(self) -> None:
        text = table.render(likely(), 200)
        found = text[text.index("comparisons") :].splitlines()
        self.assertRegex(found[1], r"^  ! log-rotation: skilled passes more often than plain")
        self.assertRegex(found[2], "no difference shown .* adjusted p = 1; .* 8 cassettes")

    def test_one_text_as_every_answer_is_told(self) -> None:
        self.assertIn("every answer is the same text: n may count for one", table.render(likely(), 200))

    def test_large_suites_are_cut_and_say_so(self) -> None:
        text = table.render(large(150, 3, 1))
        self.assertIn("and 250 more cells, none worse than these", text)
        self.assertRegex(text, r"and \d[\d,]* more")

    def test_a_suite_without_cells_is_told(self) -> None:
        self.assertTrue(table.render(suite([])).startswith("nothing graded"))


class Looks(unittest.TestCase):
    def test_nothing_is_coloured_unless_asked_for(self) -> None:
        self.assertNotIn("\x1b", table.render(likely()))

    def test_a_colour_is_never_alone(self) -> None:
        """What is coloured is a word or a sign, and without colour the text is the same."""
        for width in (40, 80, 200):
            text = table.render(likely(), width, paint=painted)
            self.assertEqual(re.sub("</?(?:green|red|yellow|dim)>", "", text), table.render(likely(), width))
            found = set(re.findall("<(?:green|red|yellow|dim)>(.*?)</", text))
            self.assertEqual(found, {"PASS", "FAIL", "FAIL:", "✗"} if width > 40 else {"PASS", "FAIL", "FAIL:", "✗"})

    def test_a_console_of_ascii_gets_ascii_that_still_lines_up(self) -> None:
        for made in (likely(), suite([cell("日本", "PF"), cell("b", "P", "é")])):
            for width in (40, 80, 200):
                text = table.render(made, width, ascii_only=True)
                self.assertTrue(text.isascii())
                self.assertLessEqual(max(map(len, text.splitlines())), max(width, 60))
        self.assertIn("x FAIL", table.render(likely(), ascii_only=True))

    def test_no_text_of_others_breaks_a_line_or_moves_the_cursor(self) -> None:
        for seed in range(30):
            for width in (20, 80, 400):
                for line in table.render(hostile(seed), width, ascii_only=seed % 2 == 0).split("\n"):
                    self.assertTrue(line.isprintable(), line)

    def test_no_name_in_the_grid_moves_the_cursor(self) -> None:
        made = suite([cell(f"{name}\x1b[2J", "P", f"{model}\r\n") for name in "ab" for model in "mn"])
        text = table.render(made, 200)
        self.assertIn("a\\x1b[2J", text)
        self.assertRegex(text, r"(?m)^ +m\\r\\n +n\\r\\n$")
        self.assertTrue(all(line.isprintable() for line in text.split("\n")))


if __name__ == "__main__":
    unittest.main()
