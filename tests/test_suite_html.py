"""The page: one file that asks nobody for anything, and in which a cassette's texts are only ever texts."""

from __future__ import annotations

import re
import unittest
from html.parser import HTMLParser

from tests.suite_samples import HOSTILE, cell, facts, hostile, large, likely, run, suite

from session_cassettes.suite import html, reports, style, svg
from session_cassettes.suite.cells import Cell, Key

#: Elements that stay open for nothing.
VOID = {"meta"}
#: Each attribute that the page may have, and what it may look like.
ATTRIBUTES = {
    "href": r"#[a-z0-9]+",
    "id": r"c\d+(r\d+)?|grid|pairs|cells|words",
    "class": r"[A-Za-z ]*",
    "d": r"[MmHhVvLlZz0-9. -]*",
    "viewbox": r"[0-9. ]+",
    "lang": "en",
    "charset": "utf-8",
    "name": "viewport|referrer|color-scheme",
    "content": "width=device-width, initial-scale=1|no-referrer|light dark|default-src 'none'; style-src .*",
    "http-equiv": "Content-Security-Policy",
    "role": "img|group|region",
    "scope": "col",
    "aria-label": "heat map",
    "aria-hidden": "true",
    "tabindex": "-1|0",
    "open": "",
    **{name: r"[0-9.]+" for name in ("x", "y", "width", "height", "rx", "cx", "cy", "r", "fill-opacity")},
}
TAGS = set(
    "html head meta title style body a header h1 h2 h3 h4 span p ul li main section div svg text rect path circle b i "
    "details summary article pre code ins del mark table tr th td dl dt dd".split()
)


class Page(HTMLParser):
    """A page as a browser's parser sees it: tags, attributes, texts, and what does not fit together."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"{tag} is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"{tag} closes what is not open")

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] != "style":
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"a comment: {data[:50]}")

    def values(self, name: str) -> list[str]:
        return [value for attribute, value in self.attributes if attribute == name]


def faults(page: Page) -> list[str]:
    """What must not be in a page."""
    found = list(page.faults)
    found += [f"the element {tag}" for tag in set(page.tags) - TAGS]
    for name, value in set(page.attributes):
        if name not in ATTRIBUTES or not re.fullmatch(ATTRIBUTES[name], value):
            found.append(f"the attribute {name}={value[:60]!r}")
    ids = page.values("id")
    found += ["two elements have one id"] if len(ids) > len(set(ids)) else []
    found += [f"{link} leads nowhere" for link in set(page.values("href")) - {f"#{one}" for one in ids}]
    return found


class Safety(unittest.TestCase):
    def test_the_helper_finds_what_is_wrong(self) -> None:
        for bad in (
            "<script>1</script>",
            '<img src="x">',
            '<a href="http://x">a</a>',
            '<a href="#nowhere">a</a>',
            '<p onclick="x">a</p>',
            '<p style="color:red">a</p>',
            "<p><b>a</p></b>",
            "<p>",
            "<!--x-->",
            '<p id="c1">a</p><p id="c1">b</p>',
        ):
            with self.subTest(bad):
                self.assertNotEqual(faults(Page(bad)), [])

    def test_texts_of_others_are_only_ever_texts(self) -> None:
        for seed in range(60):
            text = html.render(hostile(seed))
            page = Page(text)
            with self.subTest(seed=seed):
                self.assertEqual(faults(page), [])
                self.assertNotIn("<script", text.lower())
                self.assertNotRegex(
                    text, r"(?i)\s(?:src|on\w+|style|xlink:href)\s*=\s*[\"'][^\"']*[\"'][^<]*>(?<!&gt;)$"
                )
                self.assertIn("CANARY", "".join(page.texts))
                self.assertFalse([value for _, value in page.attributes if "CANARY" in value])

    def test_every_text_that_is_shown_is_shown_whole_and_as_it_is(self) -> None:
        for text in HOSTILE:
            made = suite([cell("a", "F", answers=[text])], answer=text + " and more", request=text)
            shown = "".join(Page(html.render(made)).texts)
            with self.subTest(text[:30]):
                self.assertGreaterEqual(shown.count(reports.shown_text(text)), 3 if len(text) < 600 else 1)

    def test_no_control_or_turning_character_reaches_the_page(self) -> None:
        for seed in range(20):
            text = html.render(hostile(seed))
            self.assertFalse([c for c in set(text) if not c.isprintable() and c not in "\n\t\xa0"])
            text.encode("utf-8")

    def test_the_page_allows_no_script_and_no_request(self) -> None:
        text = html.render(likely())
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        self.assertIn("default-src 'none'", policy[1])
        self.assertNotIn("script-src", policy[1])
        self.assertLess(text.index("Content-Security-Policy"), text.index("<title>"))
        self.assertNotRegex(style.STYLE, r"url\(|@import|</")
        self.assertNotRegex(text, r"https?:|//")


class Content(unittest.TestCase):
    def test_a_usual_page_is_sound_and_holds_all_that_it_should(self) -> None:
        text = html.render(likely())
        page = Page(text)
        self.assertEqual(faults(page), [])
        shown = " ".join("".join(page.texts).split())
        for part in (
            "5 of 6 cells reached the required 80 % (1 FAIL)",
            "never passed: log-rotation with gpt-oss:20b + plain (0 of 10)",
            "no difference shown between plain",
            "every answer is the same text: n may count for one",
            "runs 2, 3, 5, 7, 8, 10 (6 runs that went the same way)",
            "Path: the 2 recorded calls, in that order, all hit",
            "miss; this call was not recorded",
            "the session ended without an answer",
        ):
            self.assertIn(part, shown)

    def test_cells_stand_worst_first(self) -> None:
        made = likely()
        found = re.findall(
            r'<article id="c\d+" class="cell \w+"><h3><b [^>]*>. \w+</b> ([^<]*)</h3>', html.render(made)
        )
        self.assertEqual(found, [reports.cell_name(each.cell.key) for each in made.worst_first])

    def test_pins_and_differences_are_marked(self) -> None:
        text = html.render(
            suite([cell("a", "F", answers=["It binds port 18080, see auth.py."])], answer="It binds port 8080.")
        )
        self.assertIn("It binds port <del><mark>8080</mark></del>.", text)
        self.assertIn("It binds port <ins>18080, see </ins><ins><mark>auth.py</mark></ins>.", text)

    def test_no_colour_stands_alone(self) -> None:
        """Each outcome has its own shape beside its word; what is marked in a text has a line or a frame."""
        shapes = {svg.sample(one).split(' d="')[1] for one in reports.SIGNS}
        self.assertEqual(len(shapes), 4)
        self.assertEqual(len({signs[0] for signs in reports.SIGNS.values()}), 4)
        for rule in (r"mark\{[^}]*border", r"ins\{[^}]*underline", r"del\{[^}]*wavy"):
            self.assertRegex(style.STYLE, rule)
        text = html.render(likely())
        for outcome, tag in re.findall(r'<b class="tag (\w+)">([^<]*)</b>', text):
            self.assertRegex(tag, rf"^. (?:{outcome}|held|missing)$")

    def test_colours_can_be_read_on_the_page_and_on_a_card(self) -> None:
        for theme in re.findall(r":root\{[^}]*\}", style.STYLE):
            hues = dict(re.findall(r"--(\w+):(#[0-9a-f]{3,6})", theme))
            for name in ("ink", "soft", "good", "bad", "none", "link"):
                for ground in ("page", "card"):
                    with self.subTest(name=name, ground=ground):
                        self.assertGreaterEqual(contrast(hues[name], hues[ground]), 4.5)

    def test_each_dot_leads_to_its_run_and_each_box_to_its_cell(self) -> None:
        text = html.render(suite([cell("a", "PFDI"), cell("b", "PP")]))
        self.assertEqual(len(re.findall(r'<a href="#c\d+r\d+" tabindex="-1"><path class="dot', text)), 6)
        self.assertEqual(len(re.findall(r'<a href="#c\d+"><rect class="box', text)), 2)

    def test_a_cassette_that_is_gone_leaves_the_answer(self) -> None:
        text = html.render(suite([cell("a", "F")])._replace(cassettes={}))
        self.assertEqual(faults(Page(text)), [])
        self.assertIn("The cassette is gone", text)
        self.assertIn("This answer", text)

    def test_a_cell_without_a_run_and_a_suite_without_a_cell_have_a_page(self) -> None:
        for made in (suite([]), suite([Cell(Key("a", "", ""), 3)]), suite([cell("a", "III")])):
            self.assertEqual(faults(Page(html.render(made))), [])

    def test_calls_too_deep_to_be_shown_do_not_stop_it(self) -> None:
        deep: list[object] = []
        for _ in range(100_000):
            deep = [deep]
        runs = (run(calls=({"tool": "x", "args": deep, "how": "miss"},)),)
        made = suite([Cell(Key("a", "", ""), 1, runs)])._replace(cassettes={"a": facts(calls=(("x", deep),))})
        self.assertIn("(cannot be shown)", html.render(made))


class Size(unittest.TestCase):
    def test_a_thousand_runs_stay_under_two_megabytes_and_each_is_there(self) -> None:
        made = large(10, 4, 25, 3_000)
        text = html.render(made)
        self.assertLess(len(text.encode("utf-8")), 2_000_000)
        self.assertEqual(text.count('class="run"'), reports.runs_of(made))
        self.assertIn("more characters: see the run file", text)
        self.assertNotIn("want of room", text)

    def test_whatever_is_in_them_pages_stay_under_the_limit_and_say_what_is_left_out(self) -> None:
        for name, made in (
            ("harm", large(10, 4, 25, 3_000, harm=True)),
            ("many cells", large(900, 4, 1)),
            ("one cell", large(1, 1, 4_000)),
            ("hostile", hostile(1, cells=120, runs=6)),
        ):
            with self.subTest(name):
                text = html.render(made)
                self.assertLessEqual(len(text.encode("utf-8")), html.LIMIT)
                self.assertRegex(text, "want of room|more cells|more characters")
                self.assertEqual(faults(Page(text)), [])


def contrast(one: str, other: str) -> float:
    """How well one colour can be read on another, from 1 to 21 (WCAG 2)."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


if __name__ == "__main__":
    unittest.main()
