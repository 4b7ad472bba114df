"""What redaction hides: where it is kept, and what a search or a reading of such a file may say."""

from __future__ import annotations

import itertools
import json
import random
import re
import time
import unittest
from typing import Any, Iterator

from tests.support import load_plugin, temp_folder, write_tree

load_plugin()
from session_cassettes.cassette_store import Call, CassetteError, Cassette, Recorder, dump_cassette, parse_cassette  # noqa: E402
from session_cassettes.cassette_store import Snapshot, SnapshotFile  # noqa: E402
from session_cassettes.patterns import Search, compile_pattern  # noqa: E402
from session_cassettes.snapshot import Redactor, Workspace, take_snapshot  # noqa: E402
from session_cassettes.suite.masks import masked_values, note_masks, read_masks  # noqa: E402
from session_cassettes.synth_search import Miss, Synthesizer  # noqa: E402

TOKEN = "ghp_" + "a1B2c3" * 6
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA75\n" * 3 + "-----END RSA PRIVATE KEY-----"


def hermes_like(text: str, _: bool = False) -> str:
    """Mask some of what Hermes masks, in its own forms."""
    text = re.sub(r"(?<!\w)ghp_\w{10,}", "«redacted:ghp_…»", text)
    text = re.sub(
        r"(?i)(authorization:\s*)([A-Za-z][\w.+-]*\s+)?([^\s\"']+)", lambda m: m[1] + (m[2] or "") + short(m[3]), text
    )
    text = re.sub(r"(postgres://[^:\s]+:)[^@\s]+@", r"\1***@", text)
    text = re.sub(
        r"-----BEGIN[A-Z ]*PRIVATE KEY-----[\s\S]*?-----END[A-Z ]*PRIVATE KEY-----", "[REDACTED PRIVATE KEY]", text
    )
    return re.sub(r"(\+[1-9]\d{2})\d+(\d{4})(?!\w)", r"\1****\2", text)


def short(value: str) -> str:
    return "***" if len(value) < 18 else f"{value[:6]}...{value[-4:]}"


class MaskCase(unittest.TestCase):
    def taken(self, **texts: str) -> Any:
        """Take a snapshot of files of the given names, which end in `.txt` on disk."""
        root = temp_folder(self)
        write_tree(root, {f"{name}.txt": text for name, text in texts.items()})
        calls = [Call("search_files", {}, json.dumps({"files": [f"{name}.txt" for name in texts]}))]
        redact = Redactor(hermes_like, True)
        return take_snapshot(
            calls, Workspace(str(root)), redact=redact, deadline=time.monotonic() + 20, note_masks=note_masks
        )

    def masks(self, text: str) -> tuple[Any, ...]:
        return self.taken(a=text).files["a.txt"].masks


class WhereItIs(MaskCase):
    def test_each_kind_is_kept_with_its_place_and_neither_letters_nor_length(self) -> None:
        table = (
            ("plain\n", ()),
            (f"t = '{TOKEN}'\n", ((5, 21, "token ghp_"),)),
            (f"t = '{TOKEN}XYZ'\n", ((5, 21, "token ghp_"),)),
            ("postgres://u:hunter2@h\n", ((13, 16, "word"),)),
            ("postgres://u:hunter2@h # hunter2\n", ((13, 16, "word here"),)),
            ("call +14155550123 now\n", ((9, 13, "digits"),)),
            (f"Authorization: Bearer {'x9Y8' * 6}\n", ((28, 31, "inner"),)),
            (f"a\nk = '{KEY}'\nb\n", ((7, 29, "lines"),)),
        )
        for text, masks in table:
            with self.subTest(text=text):
                self.assertEqual(self.masks(text), masks)

    def test_of_two_on_one_line_no_part_is_known(self) -> None:
        text = f"{TOKEN} and postgres://u:p@h"
        self.assertEqual(self.masks(text), ((0, 39, "text"),))

    def test_a_line_that_is_shown_otherwise_alone_or_on_a_page_is_marked(self) -> None:
        masks = self.masks("authorization: str\nnext line\n")
        self.assertEqual(masks, ((0, 0, "nothing apart edge"), (19, 22, "word apart edge")))
        self.assertEqual(self.masks("authorization: str 'x'\n"), ((15, 18, "word"),))
        (mask,) = self.masks("authorization: str\n'quoted'\n")
        self.assertEqual(mask[2], "word edge")

    def test_where_lines_do_not_fit_the_whole_file_is_marked(self) -> None:
        root = temp_folder(self)
        write_tree(root, {"a.txt": "one\ntwo\nthree\n"})
        calls = [Call("read_file", {"path": "a.txt"}, "{}")]
        redact = Redactor(lambda text, _: text.replace("one\n", ""), True)
        taken = take_snapshot(
            calls, Workspace(str(root)), redact=redact, deadline=time.monotonic() + 20, note_masks=note_masks
        )
        self.assertEqual(taken.files["a.txt"].masks, ((0, 10, "file"),))

    def test_a_redaction_that_fails_on_one_line_marks_it(self) -> None:
        def fails(text: str, _: bool) -> str:
            if "\n" not in text:
                raise ValueError(text)
            return hermes_like(text)

        root = temp_folder(self)
        write_tree(root, {"a.txt": f"x\n{TOKEN}\n"})
        calls = [Call("read_file", {"path": "a.txt"}, "{}")]
        taken = take_snapshot(
            calls,
            Workspace(str(root)),
            redact=Redactor(fails, True),
            deadline=time.monotonic() + 20,
            note_masks=note_masks,
        )
        self.assertEqual([kind for _, _, kind in taken.files["a.txt"].masks], ["token ghp_ apart"])

    def test_a_cassette_keeps_them_and_one_without_them_is_read_too(self) -> None:
        file = SnapshotFile("a«redacted:ghp_…»", 41, 1.0, False, ((1, 17, "token ghp_"),))
        kept = Cassette("c", "q", "a", snapshot=Snapshot({"a": file, "b": SnapshotFile("", 0, 1.0)}))
        again = parse_cassette(dump_cassette(kept), "c.json")
        self.assertEqual(again.snapshot, kept.snapshot)
        self.assertEqual(dump_cassette(kept).count(b'"masks"'), 1)

    def test_a_place_out_of_the_text_is_refused(self) -> None:
        for masks in (
            [[0, 9, "word"]],
            [[1, 0, "word"]],
            [[0, 1, "a"], [0, 1, "b"]],
            [[0, 1]],
            ["x"],
            {},
            [[0, True, ""]],
        ):
            with self.subTest(masks=masks):
                kept = Cassette("c", "q", "a", snapshot=Snapshot({"a": SnapshotFile("ab", 2, 1.0, False, masks)}))
                with self.assertRaisesRegex(CassetteError, "masks"):
                    parse_cassette(dump_cassette(kept), "c.json")


class Settling(unittest.TestCase):
    """Whether a line matches whatever its unknown pieces are."""

    def test_it_is_what_trying_all_values_says(self) -> None:
        rng = random.Random(5)
        letters = "ab1"
        atoms = ("a", "b", "1", "x", ".", "[ab]", "[^a]", r"\d", r"\w", r"\b", "^", "$", "a+", "b?", "(ab|1)", "x*")
        undecided = 0
        for number in range(400):
            pattern = "".join(rng.choice(atoms) for _ in range(rng.randint(1, 4)))
            least = rng.randint(0, 2)
            pieces = [rng.choice(("", "x", "ax ")), (letters, least), rng.choice(("", " x", "b"))]
            search = Search(compile_pattern(pattern, "rg", rg_major=13), 10)
            lines = [pieces[0] + value + pieces[2] for value in values(letters, least, 5)]
            found = {bool(search.lines(line, None)) if line else bool(re.search(pattern, "")) for line in lines}
            with self.subTest(number=number, pattern=pattern, pieces=pieces):
                settled = search.settles(pieces)
                if settled is None:
                    undecided += 1  # longer values may decide otherwise than the short ones that are tried
                else:
                    self.assertEqual(found, {settled})
                if len(found) > 1:
                    self.assertIsNone(settled)
        self.assertGreater(undecided, 50)

    def test_what_may_stand_at_each_kind(self) -> None:
        self.assertEqual(masked_values("token ghp_ apart")[::2], ("ghp_", 8))
        self.assertNotIn("-", masked_values("token ghp_")[1])
        self.assertIn("-", masked_values("token sk- here")[1])
        self.assertEqual(masked_values("digits"), ("", "0123456789", 1))
        self.assertEqual(masked_values("nothing apart"), ("", "", 0))


def values(letters: str, least: int, most: int) -> Iterator[str]:
    for length in range(least, most + 1):
        yield from map("".join, itertools.product(letters, repeat=length))


class Searching(MaskCase):
    def synthesizer(self, hermes: str = "0.22.2", search: str = "rg", **texts: str) -> Any:
        return Synthesizer(
            self.taken(**texts), Workspace("/ws"), Recorder(hermes, "linux", search), {"rg_major": 13}, read_masks
        )

    def found(self, synth: Any, pattern: str, **args: Any) -> Any:
        return json.loads(synth.answer("search_files", {"pattern": pattern, **args}))

    def missed(self, synth: Any, pattern: str, **args: Any) -> None:
        with self.assertRaises(Miss) as caught:
            self.found(synth, pattern, **args)
        self.assertRegex(str(caught.exception), r"[ab]\.txt: .*a masked secret")

    def test_what_may_match_or_not_is_a_miss_that_names_the_file(self) -> None:
        synth = self.synthesizer(a=f"one\ntoken = {TOKEN}\n")
        for pattern in ("gh[pousr]_[A-Za-z0-9]{30,}", "a1B2", "[0-9]{2}", "c3$", "A1", r"\d$", "x", "[^a-z]{20}"):
            for more in ({}, {"output_mode": "count"}, {"output_mode": "files_only"}, {"path": "a.txt"}):
                with self.subTest(pattern=pattern, more=more):
                    self.missed(synth, pattern, **more)

    def test_what_matches_whatever_is_masked_is_told_as_the_live_tool_shows_it(self) -> None:
        synth = self.synthesizer(a=f"one\ntoken = {TOKEN}\n")
        row = {"path": "./a.txt", "line": 2, "content": "token = «redacted:ghp_…»"}
        for pattern in ("token", "ghp_", "^token = ghp_", r"ghp_[A-Za-z0-9]{8}", r"= \S+$", "token.*"):
            with self.subTest(pattern=pattern):
                self.assertEqual(self.found(synth, pattern)["matches"], [row])
                self.assertEqual(self.found(synth, pattern, output_mode="count")["counts"], {"./a.txt": 1})

    def test_what_cannot_match_is_not_told(self) -> None:
        synth = self.synthesizer(a=f"one\ntoken = {TOKEN}\n")
        for pattern in ("redacted", "«", "token = $", "x y", "ghp_-", "^ghp_", "def \\w+"):
            with self.subTest(pattern=pattern):
                try:
                    found = self.found(synth, pattern)
                except Miss as miss:  # what it may have meant is not decided
                    self.assertIn("a masked secret", str(miss))
                else:
                    self.assertEqual(found["total_count"], 0)

    def test_a_file_that_another_line_finds_is_found(self) -> None:
        synth = self.synthesizer(a=f"one 1\ntoken = {TOKEN}\n")
        self.assertEqual(self.found(synth, "1", output_mode="files_only")["files"], ["./a.txt"])
        self.missed(synth, "1", output_mode="count")

    def test_a_page_that_is_full_without_it_is_told(self) -> None:
        synth = self.synthesizer(a=f"token = {TOKEN}\n", b="a1B2\n" * 5)
        self.assertEqual(self.found(synth, "a1B2", limit=5)["total_count"], 5)
        self.missed(synth, "a1B2", limit=6)

    def test_a_word_that_stands_elsewhere_rules_out_what_the_file_does_not_say(self) -> None:
        text = "class A:\n    authorization: Optional[str] = None\n    name: Optional[str]\n"
        synth = self.synthesizer(a=text)
        self.assertEqual(self.found(synth, "timeout"), {"total_count": 0})
        self.missed(synth, "Optional")
        self.assertEqual(self.found(synth, "authorization")["matches"][0]["content"], "    authorization: *** = None")

    def test_context_shows_a_masked_line_as_it_is_shown_alone(self) -> None:
        synth = self.synthesizer(a=f"one\ntoken = {TOKEN}\n")
        shown = self.found(synth, "^one", context=1)["matches"]
        self.assertEqual([row["content"] for row in shown], ["one", "token = «redacted:ghp_…»"])
        self.missed(self.synthesizer(a="one \nauthorization: str\nnext\n"), "^one", context=1)

    def test_below_a_key_no_line_has_a_number(self) -> None:
        synth = self.synthesizer(a=f"before it\nk = '{KEY}'\nafter it\n")
        self.assertEqual(self.found(synth, "before it")["total_count"], 1)
        self.missed(synth, "after it")
        self.assertEqual(self.found(synth, "after it", output_mode="count")["total_count"], 1)
        self.missed(synth, "^MII")
        self.missed(synth, "BEGIN")

    def test_probes_do_not_guess_either(self) -> None:
        synth = self.synthesizer(a=f"one\ntoken = {TOKEN}\n")
        self.missed(synth, "TOKEN")

    def test_over_several_lines_nothing_is_decided(self) -> None:
        self.missed(self.synthesizer(a=f"one\ntoken = {TOKEN}\n"), r"one\ntoken")

    def test_grep_decides_no_more_than_ripgrep(self) -> None:
        for hermes in ("0.19.0", "0.20.1", "0.22.2"):
            synth = self.synthesizer(hermes, "grep", a=f"one\ntoken = {TOKEN}\n")
            with self.subTest(hermes=hermes):
                self.missed(synth, "a1B2", path="a.txt")
                self.assertEqual(self.found(synth, "token =", path="a.txt")["total_count"], 1)

    def test_a_byte_order_mark_is_no_letter_to_ripgrep(self) -> None:
        text = f"\ufeff{TOKEN} x\n"
        self.assertEqual(self.found(self.synthesizer(a=text), "^ghp_")["total_count"], 1)
        self.assertEqual(self.found(self.synthesizer(search="grep", a=text), "^ghp_", path="a.txt")["total_count"], 0)

    def test_an_older_recording_is_read_by_the_masks_that_its_text_shows(self) -> None:
        files = {
            "a.txt": SnapshotFile("x = «redacted:ghp_…»\n", 99),
            "b.txt": SnapshotFile("[REDACTED PRIVATE KEY]", 99),
        }
        synth = Synthesizer(
            Snapshot(files), Workspace("/ws"), Recorder("0.22.2", "linux", "rg"), {"rg_major": 13}, read_masks
        )
        self.missed(synth, "gh[pousr]_[A-Za-z0-9]{30,}", path="a.txt")
        self.assertEqual(self.found(synth, "x = ghp", path="a.txt")["total_count"], 1)
        self.missed(synth, "x", path="b.txt")


class Reading(MaskCase):
    def read(self, text: str, **args: Any) -> Any:
        synth = Synthesizer(self.taken(a=text), Workspace("/ws"), Recorder("0.22.2", "linux", "rg"), None, read_masks)
        return json.loads(synth.answer("read_file", {"path": "a.txt", **args}))["content"]

    def test_a_masked_line_is_shown_masked(self) -> None:
        self.assertEqual(self.read(f"t = {TOKEN}\n"), "1|t = «redacted:ghp_…»")

    def test_what_a_page_shows_in_another_way_is_a_miss(self) -> None:
        for text in ("authorization: str\nnext\n", "authorization: str\n'q'\n", f"a\n{KEY}\n"):
            with self.subTest(text=text), self.assertRaisesRegex(Miss, "a.txt: .*a masked secret"):
                self.read(text)
        self.assertEqual(self.read("authorization: str\nnext\nplain\n", offset=3), "3|plain")


if __name__ == "__main__":
    unittest.main()
