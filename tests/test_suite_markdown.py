"""Markdown for a pull request: it fits, and no text of others gets out of its code span or block."""

from __future__ import annotations

import re
import unittest

from tests.suite_samples import HOSTILE, cell, hostile, large, likely, suite

from session_cassettes.suite import markdown


def blocks_of(text: str) -> tuple[str, list[str]]:
    """A text without its fenced blocks, as CommonMark reads them, and these blocks."""
    outside: list[str] = []
    blocks: list[list[str]] = []
    fence = ""
    for line in text.split("\n"):
        found = re.match(r"^ {0,3}(`{3,})[^`]*$", line)
        if fence:
            if found and len(found[1]) >= len(fence) and line.strip() == found[1]:
                fence = ""
            else:
                blocks[-1].append(line)
        elif found:
            fence = found[1]
            blocks.append([])
        else:
            outside.append(line)
    assert not fence, "a block is not closed"
    return "\n".join(outside), ["\n".join(block) for block in blocks]


def outside_of_code(text: str) -> str:
    """A text without its blocks, its code spans and the `code` elements of summaries."""
    bare = re.sub(
        r"<summary>.*?</summary>", lambda found: re.sub("<code>[^<]*</code>", "", found[0]), blocks_of(text)[0]
    )
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", bare)


class Safety(unittest.TestCase):
    def test_texts_of_others_stay_in_code(self) -> None:
        for seed in range(40):
            text = markdown.render(hostile(seed), "CANARY | report`.html")
            bare = outside_of_code(text)
            with self.subTest(seed=seed):
                self.assertNotIn("CANARY", bare)
                self.assertNotRegex(bare, r"@|#\d|(?<!!)\[")
                tags = set(re.findall(r"<[^>]*>", bare))
                self.assertLessEqual(tags, {"<details>", "</details>", "<summary>", "</summary>"})
                self.assertEqual(bare.count("<details>"), bare.count("</details>"))

    def test_every_row_of_the_table_has_as_many_cells_as_its_head(self) -> None:
        for seed in range(40):
            lines = blocks_of(markdown.render(hostile(seed)))[0].split("\n")
            rows = [line for line in lines if line.startswith("|")]
            self.assertGreater(len(rows), 2)
            self.assertEqual(len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}), 1)

    def test_a_code_span_holds_whatever_it_is_given(self) -> None:
        for text in (*HOSTILE, "`", "``", " `a` ", "a`", "`a", "|", "\\", "\\|", "a\nb", "@x", "#1", " x "):
            with self.subTest(text=text[:30]):
                span = markdown.code(text, 10_000)
                self.assertNotRegex(span, r"(?<!\\)\|")
                found = re.fullmatch(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", span)
                assert found is not None
                self.assertTrue(found[2].isprintable())

    def test_a_code_span_of_nothing_is_told(self) -> None:
        self.assertEqual((markdown.code(""), markdown.code("  ")), ("(empty)", "(empty)"))

    def test_a_block_cannot_be_closed_from_within(self) -> None:
        for text in ("```", "````\nx\n```", "a\n```\n# x", "`" * 50):
            self.assertEqual(blocks_of(markdown.block(text)), ("", [text]))

    def test_what_is_escaped_can_be_encoded(self) -> None:
        for seed in range(10):
            markdown.render(hostile(seed)).encode("utf-8")


class Content(unittest.TestCase):
    def test_the_verdict_comes_first_and_details_are_folded(self) -> None:
        text = markdown.render(likely())
        self.assertTrue(text.startswith("### ✗ FAIL: 5 of 6 cells reached the required 80 % (1 FAIL)\n"))
        self.assertIn("- **never passed:** `log-rotation with gpt-oss:20b + plain` (0 of 10)", text)
        self.assertLess(text.index("| result |"), text.index("<details>"))
        self.assertIn("no difference shown", text)
        self.assertIn("`every answer is the same text: n may count for one`", text)
        self.assertIn("[--] 5 MB\n[ok] three", blocks_of(text)[1][0])
        self.assertIn("miss: terminal", "".join(blocks_of(text)[1]))

    def test_a_column_without_a_number_is_left_out(self) -> None:
        self.assertNotIn("tokens", markdown.render(suite([cell("a", "PF")])))
        self.assertIn("tokens", markdown.render(suite([cell("a", "PF", tokens=3)])))

    def test_it_fits_and_says_what_was_cut_and_where_it_is(self) -> None:
        for name, made in (
            ("many runs", large(10, 4, 25)),
            ("many cells", large(1_000, 3, 1)),
            ("harm", large(60, 4, 4, harm=True)),
        ):
            with self.subTest(name):
                text = markdown.render(made, "report.html")
                self.assertLessEqual(len(text.encode("utf-8")), markdown.LIMIT)
                self.assertGreater(len(text.encode("utf-8")), markdown.LIMIT // 2)
                self.assertRegex(text, r"and [\d,]+ more [a-z ]+(, none worse than these)?: see `report.html`")

    def test_hostile_names_fit_too(self) -> None:
        for seed in range(5):
            text = markdown.render(hostile(seed, cells=150))
            self.assertLessEqual(len(text.encode("utf-8")), markdown.LIMIT)

    def test_a_suite_without_cells_is_told(self) -> None:
        self.assertTrue(markdown.render(suite([])).startswith("### nothing graded"))


if __name__ == "__main__":
    unittest.main()
