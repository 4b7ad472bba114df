"""What a person reads of an answer, and which pins hold in it."""

from __future__ import annotations

import random
import sys
import time
import unicodedata
import unittest
from types import FrameType
from typing import Any, Callable, Iterator

from tests.support import load_module

rendering = load_module("suite.rendering")
nearest, pin_holds_rendered, rendered = rendering.nearest, rendering.pin_holds_rendered, rendering.rendered

Table = tuple[tuple[str, str], ...]


class Rendering(unittest.TestCase):
    def reads(self, table: Table) -> None:
        for answer, read in table:
            with self.subTest(answer=answer):
                self.assertEqual(rendered(answer), read)

    def test_marks_of_emphasis_go(self) -> None:
        self.reads(
            (
                ("port **8080**", "port 8080"),
                ("*port* _8080_ __now__ ***all***", "port 8080 now all"),
                ("**port: `8080`**", "port: 8080"),
                ("**auth.py**: the *handler*", "auth.py: the handler"),
                ("un*frigging*believable", "unfriggingbelievable"),
                ("**a *b* c**", "a b c"),
                ("*a **b***", "a b"),
                ("***a** b*", "a b"),
                ("**Port:** 8080", "Port: 8080"),
                ('*"8080"*', '"8080"'),
            )
        )

    def test_what_only_looks_like_emphasis_stays(self) -> None:
        same = (
            *("snake_case_name", "_private", "**kwargs", "*args, **kwargs", "a * b", "a * b * c", "2 ** 8 ** 2"),
            *("80*80", "8080*", "*8080", "** 8080 **", "_8080", "auth_server_port", "пристаням_стремятся_"),
            *("*.py and *.md", "src/**/test_*.py", "^8080.*", "x*_*y", "f(*)", "foo**", "5 * 3 _ 2"),
            *("~~8080~~", "~8080~", "| port | 8080 |", "a|b", "100% - 5", "#8080", "#hash tag", "8080#", "C:\\tmp\\x"),
            *("[x] done", "[8080]", "a[0][1]", "f(a)[b](", "![", "a < b > c", "x <= 3", "Vec<String>", "<br>"),
            *("&nope;", "& and &amp", 'a_"b"_', "**foo*bar", "auth`server", "``8080`"),
        )
        self.reads(tuple((one, one) for one in same))
        self.reads((("__init__", "init"), ("2*3*4", "234"), ("^a.*b.*$", "^a.b.$"), ("`__init__`", "__init__")))

    def test_marks_of_code_go_and_code_is_read_as_it_stands(self) -> None:
        self.reads(
            (
                ("`auth.py`", "auth.py"),
                ("``a`b``", "a`b"),
                ("`` ` ``", "`"),
                ("`a **b** _c_ [d](e)`", "a **b** _c_ [d](e)"),
                ("`a\nb`", "a b"),
                ("`\\*`", "\\*"),
                ("*a `*` b*", "a * b"),
                ("`a` and `b", "a and `b"),
                ("\\`a`", "`a`"),
                ("`&amp;`", "&amp;"),
                ("```py\nx = **kw\ny_ = *a*\n```", "x = **kw\ny_ = *a*"),
                ("~~~\n`a`\n```\n~~~~", "`a`\n```"),
                ("```\nnever *ended*", "never *ended*"),
                ("text\n\n    a *b*\n      c", "text\na *b*\nc"),
                ("``` a`b ```", "a`b"),
                ("````\n```\n*a*\n````", "```\n*a*"),
            )
        )

    def test_marks_of_links_and_pictures_go_and_their_targets_are_not_read(self) -> None:
        self.reads(
            (
                ("see [auth.py](server/auth.py) there", "see auth.py there"),
                ('[**8080**](http://x/9090 "the *port*")', "8080"),
                ("[a](<b c> 'd') [a](b(c)d) [a]()", "a a a"),
                ("[a](b c)", "[a](b c)"),
                ("[a][b] [b] [b][] [B]\n\n[b]: /9090 'title'", "a b b B"),
                ("[a][c] [c]\n\n[b]: /u", "[a][c] [c]"),
                ("[b]: /u\n*text*", "text"),
                ("[a](u)[b](v)", "ab"),
                ("[a [b](c) d](e)", "[a b d](e)"),
                ("![8080](p.png)80", "8080 80"),
                ("80![](p.png)80", "80 80"),
                ("80![80](p.png)", "80 80"),
                ("<https://x.y/a_b_c> <me@x.y>", "https://x.y/a_b_c me@x.y"),
                ("*[a*](u)", "*a*"),
                ("[a*](u)*b*", "a*b"),
                ("`[a](`b)", "[a](b)"),
                ("\\[a](b)", "[a](b)"),
                ("[a\\](b)", "[a](b)"),
            )
        )

    def test_escapes_and_entities_are_read_as_what_they_stand_for(self) -> None:
        self.reads(
            (
                ("snake\\_case \\*a\\* \\# \\[", "snake_case *a* # ["),
                ("\\8080 \\a", "\\8080 \\a"),
                ("a\\\nb", "a b"),
                ("a &lt; b &amp;&nbsp;&#99;&#X64;", "a < b & cd"),
                ("80&#0;80 80&#1;80", "80\ufffd80 80\ufffd80"),
                ("&amp;lt;", "&lt;"),
                ("\\&lt;", "&lt;"),
            )
        )

    def test_lines_and_blanks_of_a_paragraph_are_one_blank(self) -> None:
        self.reads(
            (
                ("the auth\nserver", "the auth server"),
                ("the auth  \n   server", "the auth server"),
                ("auth\r\nserver\rport", "auth server port"),
                ("auth \t  server", "auth server"),
                ("80\n80", "80 80"),
                ("80\n\n80", "80\n80"),
                ("auth\n \t \nserver", "auth\nserver"),
                ("> auth\n> server", "auth server"),
                ("> auth\nserver", "auth server"),
                ("- auth\n  server\n- port", "auth server\nport"),
                ("1. auth\n   server\n2) port", "auth server\nport"),
                ("- > auth\n  > server", "auth server"),
                ("port\n=====\n8080", "port\n8080"),
                ("## port ##\n8080", "port\n8080"),
                ("port\n***\n8080", "port\n8080"),
                ("port\n- 8080", "port\n8080"),
                ("port\n2. 8080", "port 2. 8080"),
                ("> port\n\n8080", "port\n8080"),
                ("-\n  8080", "8080"),
                ("-\n\n  8080", "8080"),
                ("```\n80\n80\n```", "80\n80"),
                ("80\u202880\u202980", "80\u202880\u202980"),
                ("", ""),
                (" \n\t\n", ""),
            )
        )

    def test_each_row_of_a_table_is_a_line_of_its_own(self) -> None:
        self.reads(
            (
                ("a | auth\n--- | ---\nserver | b", "a | auth\n--- | ---\nserver | b"),
                ("| port | **8080** |\n|:-:|--:|\n| b | `c` |", "| port | 8080 |\n|:-:|--:|\n| b | c |"),
                (
                    "the auth\nserver:\na | b\n-|-\nc | auth\nserver | d",
                    "the auth server:\na | b\n-|-\nc | auth\nserver | d",
                ),
                ("> a | *b\n> --|--\n> c* | d", "a | *b\n--|--\nc* | d"),
                ("auth |\nserver", "auth | server"),
                ("-- | --\nauth\nserver", "-- | -- auth server"),
            )
        )

    def test_html_is_no_mark_and_hides_none(self) -> None:
        self.reads(
            (
                ("80<!-- -->80", "80<!-- -->80"),
                ("80<b></b>80", "80<b></b>80"),
                ("<a title='*'>*a*</a>", "<a title='*'>a</a>"),
                ("<div>\nport **8080**\n</div>\n\n*a*", "<div>\nport **8080**\n</div>\na"),
                ("<!--\n*a*\n\n*b* -->\n*c*", "<!--\n*a*\n*b* -->\nc"),
                ("<pre>\n*a*\n\n*b*\n</pre>\n*c*", "<pre>\n*a*\n*b*\n</pre>\nc"),
                ("*a*\n<b>\n*c*", "a <b> c"),
            )
        )

    def test_what_nobody_sees_goes(self) -> None:
        for hidden in "\u200b\u200c\u200d\u2060\ufeff\xad\u200e\u200f\u2066\u2069\ufe0f\U000e0100\u034f\u061c":
            with self.subTest(hidden=f"{ord(hidden):04x}"):
                self.assertEqual(rendered(f"80{hidden}80"), "8080")
                self.assertTrue(pin_holds_rendered(f"80{hidden}80", "8080"))
                self.assertFalse(pin_holds_rendered(hidden, "8080"))
        for turning in "\u202d\u202e":
            self.assertFalse(pin_holds_rendered("8080", rendered(f"80{turning}80")))

    def test_types_of_the_printer_are_those_of_the_keyboard(self) -> None:
        self.reads(
            (
                ("don’t ‘a’ “b” «c» „d“", 'don\'t \'a\' "b" "c" "d"'),
                ("a‑b a–b a — b −5", "a-b a-b a - b -5"),
                ("port\u00a08080 a\u2009b a\u3000b", "port 8080 a b a b"),
                ("８０８０ ٣ 𝟖", "8080 3 8"),
                ("80²  ⑧  ½", "80² ⑧ ½"),
            )
        )

    def test_no_digit_is_lost_or_made_by_folding(self) -> None:
        decimals = [c for n in range(sys.maxunicode + 1) if (c := chr(n)).isdecimal()]
        read = rendered("".join(decimals))
        self.assertEqual(read, "".join(str(unicodedata.decimal(c)) for c in decimals))

    def test_no_text_is_too_odd_and_nothing_is_read_that_was_not_written(self) -> None:
        rng = random.Random(3)
        for _ in range(3000):
            ranges = (0x80, 0x80, 0x3000, 0x110000)
            text = "".join(chr(rng.randrange(rng.choice(ranges))) for _ in range(rng.randrange(30)))
            read = rendered(text)
            self.assertNotIn("  ", read)
            self.assertNotIn("\n\n", read)
            letters = [c for c in read if c.isascii() and c.isalpha()]
            self.assertLessEqual(len(letters), sum(c.isalpha() for c in text), ascii(text))


class PinsAsRendered(unittest.TestCase):
    def test_a_fact_that_is_decorated_or_broken_holds(self) -> None:
        for pin, answer in (
            ("port 8080", "It binds port **8080**."),
            ("port 8080", "It binds `port` `8080`"),
            ("port 8080", "It binds port\n8080"),
            ("port 8080", "port\u00a08080"),
            ("port 8080", "PORT ８０８０"),
            ("auth server", "> the auth\n> server"),
            ("auth-server", "auth‑server"),
            ("don't", "don’t"),
            ("don’t", "don't"),
            ("8080", "80\u200b80"),
            ("server/auth.py", "*server\\auth*.py"),
            ("port: 8080", "**Port:** 8080"),
            ("1. auth", "about 1\\. **auth**"),
        ):
            with self.subTest(pin=pin, answer=answer):
                self.assertTrue(pin_holds_rendered(pin, rendered(answer)))

    def test_no_fact_is_made_by_taking_marks_away(self) -> None:
        for pin, answer in (
            ("8080", "80\n80"),
            ("8080", "80\n\n80"),
            ("8080", "80*80"),
            ("8080", "80 ** 80"),
            ("8080", "80_80 80__80__80"),
            ("8080", "80~~80~~ ~~80~~80"),
            ("8080", "80[80] 80(80)"),
            ("8080", "80![](x)80"),
            ("8080", "80![80](x)"),
            ("8080", "80<!-- -->80 80<b></b>80"),
            ("8080", "80\\80 80\u202880"),
            ("8080", "- 80\n- 80"),
            ("8080", "| 80 | 80 |"),
            ("8080", "80`` ` ``80"),
            ("80 80", "80\n\n80"),
            ("80 80", "# 80\n80"),
            ("80 80", "80\n***\n80"),
            ("80 80", "1. 80\n2. 80"),
            ("80 80", "```\n80\n80\n```"),
            ("80 80", "    80\n    80"),
            ("8080", "[port](http://localhost/80801/)".replace("8080", "808")),
            ("handler", "![the](handler.png)"),
            ("port **8080**", "port 8080"),
            ("`8080`", "8080"),
            ("\u200b", "anything"),
            ("\xa0\u200b", "any thing"),
        ):
            with self.subTest(pin=pin, answer=answer):
                self.assertFalse(pin_holds_rendered(pin, rendered(answer)))

    def test_a_pin_without_marks_holds_wherever_it_stands_in_plain_text(self) -> None:
        rng = random.Random(12)
        words = ("auth.py", "8080", "snake_case_name", "don’t", "a‑b", "Größe", "८०", "server/x", "C:\\x")
        for _ in range(300):
            chosen = [rng.choice(words) for _ in range(12)]
            answer = "".join(word + rng.choice((" ", " ", "  ", "\n", "\u00a0")) for word in chosen)
            start = rng.randrange(10)
            for pin in (" ".join(chosen[start : start + 3]), " ".join(chosen[start : start + 2]).upper()):
                self.assertTrue(pin_holds_rendered(pin, rendered(answer)), (pin, answer))


class Nearest(unittest.TestCase):
    def test_what_came_nearest_is_named(self) -> None:
        for pin, answer, told in (
            ("4183", "4,183 rows", "`4,183` is there"),
            ("1,234", "1234 rows", "`1234` is there"),
            ("8080", "80\n80", "`80 80` is there"),
            ("AUTH_PORT", "the auth port", "`auth port` is there"),
            ("port 8080", "**port:** 8080", "`port: 8080`, only marks between"),
            ("v2.14.10", "it is v2.14.1, now", "`v2.14.1`"),
            ("v2.14.1", "it is (v2.15.1).", "`v2.15.1`"),
            ("server/auth.py", "`server/auth_handler.py`", "`server/auth_handler.py`"),
            ("timeout is 30 seconds", "the timeout was 30 seconds", "`timeout was 30 seconds`"),
            ("don’t", "dont", "`dont` is there"),
            ("8080", "port 9090", ""),
            ("Paris", "It is Berlin.", ""),
            ("→", "x", ""),
            ("8080", "", ""),
            ("x" * 81, "x" * 80, ""),
        ):
            with self.subTest(pin=pin, answer=answer):
                self.assertEqual(nearest(pin, rendered(answer)), told)

    def test_it_is_one_short_line(self) -> None:
        told = nearest("a" * 79 + "b", " - \n".join("a" * 79 + "b"))
        self.assertEqual((told.count("\n"), told.startswith("`a - a - "), len(told) < 90), (0, True, True))


class Hostile(unittest.TestCase):
    """The work grows with the answer's length and no faster, whatever a model repeats."""

    UNITS = (
        *("*", "_", "**", "_a ", "a*", "*_", "**a_ ", "a**b", "_ _ a", '*a "*'),
        *("`", "``a`", "[", "[a](", "[a](b", "](", "![", "[a][", "[[", "[a](<b", '[a](b "', "[a](b 'c", "[a](b (c"),
        *("[a](\\(", "[[a](b) ", "(((", "<", "<a ", '<a b="', "<!--", "<?", "<!a ", "<![CDATA[", "<a@b", "<a:"),
        *("&", "&amp;", "\\", "> ", ">\n", "- ", "1. ", "- a\n", "- - a\n", "  - a\n", "> - ", "```\n", "~~~a\n", "#"),
        *("[a]: b\n", "[a]:\n", "[a\n", "===\n", "a\n===\n", "* * ", "<div>\n", "<pre>\n", "<b>\n", "\n", " ", "\t"),
        *("\u200b", "\u00a0", "１"),
    )

    def shapes(self) -> Iterator[tuple[str, Callable[[int], str]]]:
        for unit in self.UNITS:
            for before in ("", "[a]: b\n\n- *[`a "):
                yield before + unit, lambda size, unit=unit, before=before: before + unit * (size // len(unit))  # type: ignore[misc]
        yield "items and empty lines", lambda size: "- " * (size // 4) + "a" + "\n" * (size // 2)
        yield "quotes and lines", lambda size: ("> " * (size // 8) + "a\n") * 4
        yield "a link with blanks", lambda size: "[a](" + " " * size

    def steps(self, answer: str) -> int:
        """Lines of ours that run for an answer: a count, the same on every machine."""
        count = 0

        def line(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal count
            if frame.f_code.co_filename != rendering.__file__:
                return None
            count += 1
            return line

        before = sys.gettrace()
        sys.settrace(line)
        try:
            rendered(answer)
        finally:
            sys.settrace(before)
        return count

    def test_the_steps_grow_with_the_length(self) -> None:
        for told, shape in self.shapes():
            with self.subTest(shape=told):
                self.assertLess(self.steps(shape(1600)), 6 * self.steps(shape(400)) + 100)

    def test_the_time_of_patterns_grows_with_the_length(self) -> None:
        for told, shape in self.shapes():
            short, long = (min(self.seconds(shape(size)) for _ in range(3)) for size in (1000, 16000))
            with self.subTest(shape=told):
                self.assertLess(long, 80 * short + 0.1)  # 16 times the text; were it quadratic: 256

    @staticmethod
    def seconds(answer: str) -> float:
        started = time.process_time()
        rendered(answer)
        return time.process_time() - started
