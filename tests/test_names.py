"""The names of a workspace as a cassette keeps them: written, read, counted, refused."""

from __future__ import annotations

import json
import random
import unittest
from typing import Any

import tests.support  # noqa: F401  loads the plugin
from tests.test_cassette_store import SHOP, StoreCase

from session_cassettes.cassette_store import (
    NAMES_LIMIT,
    Cassette,
    CassetteError,
    Name,
    Snapshot,
    SnapshotFile,
    dump_cassette,
    parse_cassette,
)

NAMES = {
    "server": Name("folder", 0, 2.5),
    "server/auth.py": Name("file", 16, 1.5),
    "server/ä.log": Name("file", 3, 1.25, ignored=True),
    ".git": Name("folder", 0, 3.5, hidden=True, inside=812),
    "keys": Name("folder", inside=0),
    "latest": Name("link", 9, 1.0),
    "pipe": Name("other"),
    "b.txt": Name("file"),
}


def kept(names: Any = NAMES, **more: Any) -> Cassette:
    files = {"server/auth.py": SnapshotFile("PORT = 8080\n", 12, 1.5)}
    return SHOP._replace(calls=SHOP.calls[:1], snapshot=Snapshot(files, names=names, **more))


class Kept(StoreCase):
    def test_names_are_read_as_they_were_written(self) -> None:
        for names in (NAMES, {}, None):
            for whole in (False, True):
                with self.subTest(names=names, whole=whole):
                    self.store.save(kept(names, whole=whole), overwrite=True)
                    self.assertEqual(self.store.read("shop")[0], kept(names, whole=whole))

    def test_a_name_takes_no_more_room_than_it_has_to_say(self) -> None:
        written = json.loads(dump_cassette(kept()))["snapshot"]["names"]
        self.assertEqual(written["b.txt"], ["file"])
        self.assertEqual(written["server/auth.py"], ["file", 16, 1.5])
        self.assertEqual(written[".git"], ["folder", 0, 3.5, True, False, 812])
        self.assertEqual(written["keys"], ["folder", 0, 0.0, False, False, 0])

    def test_a_cassette_without_names_is_written_as_before(self) -> None:
        data = dump_cassette(SHOP)
        self.assertIn(b'"counts": {"calls":3,"files":2,"seal":"', data)
        self.assertNotIn(b"names", data)
        self.assertNotIn(b'"whole"', data)

    def test_a_row_of_the_list_tells_of_names_and_the_whole_without_reading_them(self) -> None:
        for names, whole in ((NAMES, False), (NAMES, True), (None, True), ({}, False), (None, False)):
            with self.subTest(names=names is not None, whole=whole):
                self.store.save(kept(names, whole=whole), overwrite=True)
                found = self.store.summary("shop")
                self.assertEqual((found.names, found.whole), (None if names is None else len(names), whole))
                self.assertEqual((found.calls, found.files), (1, 1))

    def test_a_count_of_names_that_was_edited_is_counted_anew(self) -> None:
        for old, new in ((b'"names":8', b'"names":9'), (b'"whole":true', b'"whole":false'), (b',"names":8', b"")):
            with self.subTest(old=old, new=new):
                data = dump_cassette(kept(whole=True))
                self.assertIn(old, data)
                self.put(data.replace(old, new, 1))
                found = self.store.summary("shop")
                self.assertEqual((found.names, found.whole), (len(NAMES), True))

    def test_pins_and_a_new_name_leave_the_names(self) -> None:
        self.store.save(kept(whole=True), overwrite=False)
        self.store.change_pins("shop", lambda pins: (*pins, "more"))
        self.store.rename("shop", "other")
        self.assertEqual(self.store.read("other")[0].snapshot, kept(whole=True).snapshot)


class Refused(StoreCase):
    def refuse(self, names: Any, *parts: str) -> None:
        """Put such names into a cassette's file, and see it refused by all that read it."""
        whole = json.loads(dump_cassette(kept({})))
        whole["snapshot"]["names"] = names
        self.put(json.dumps(whole).encode())
        for read in (self.store.read, self.store.summary):
            with self.refused("shop.json: field snapshot.names", *parts):
                read("shop")

    def test_what_is_no_name_is_refused_by_its_path(self) -> None:
        for value in (
            None,
            "file",
            [],
            {},
            ["socket"],
            [1],
            [["file"]],
            ["file", -1],
            ["file", 1.0],
            ["file", True],
            ["file", 0, 1],
            ["file", 0, "1.0"],
            ["file", 0, 0.0, 1],
            ["file", 0, 0.0, False, None],
            ["file", 0, 0.0, False, False, 3],
            ["folder", 0, 0.0, False, False, -1],
            ["folder", 0, 0.0, False, False, True],
            ["folder", 0, 0.0, False, False, 1.0],
            ["folder", 0, 0.0, False, False, 1, 1],
        ):
            with self.subTest(value=value):
                self.refuse({"a\nb": value}, r"['a\nb'] should be a list of kind")

    def test_one_odd_name_among_others_is_refused_whichever_field_is_odd(self) -> None:
        def fits(path: str, value: list[Any]) -> bool:
            kind, size, mtime, hidden, ignored, inside, endings = value
            flags = (type(mtime), type(hidden), type(ignored)) == (float, bool, bool)
            counted = inside is None and endings is None or kind == "folder" and type(inside) is int and inside >= 0
            sized = type(size) is int and size >= 0 and type(endings) in (str, type(None))
            known = type(kind) is str and kind in ("file", "folder", "link", "other")
            return flags and counted and sized and known and not {"", ".", ".."} & {*path.split("/")}

        chance = random.Random(11)
        parts = ["file", "folder", "link", "socket", "", 0, 1, -1, 2**63, 0.0, -1.5, True, False, None, [], {}]
        paths = ["a", "b", "a\n", "\n/a", "", ".", "..", "a/", "./a", "e//f", "g/../h", "\n/.", "i\n/\n/j"]
        seen = [0, 0]
        for _ in range(1500):
            names: dict[str, list[Any]] = {path: ["file", 3, 1.5] for path in chance.sample("klmnop", 3)}
            path, odd = chance.choice(paths), ["folder", 0, 2.5, False, False, 4, ".py"]
            odd[chance.randrange(7)] = chance.choice(parts)
            names[path] = odd
            good = fits(path, odd) and "/" not in path
            data = json.loads(dump_cassette(kept()))
            data["snapshot"]["names"] = names
            try:
                found = parse_cassette(json.dumps(data).encode(), "x.json").snapshot.names
            except CassetteError:
                found = None
            self.assertEqual(found is not None, good, names)
            seen[good] += 1
        self.assertGreater(min(seen), 50)

    def test_a_path_that_leads_out_is_refused_for_names_and_for_files(self) -> None:
        for path in ("", "/etc/passwd", "..", "../a", "a/../b", "a/..", ".", "./a", "a/./b", "a//b", "a/"):
            with self.subTest(path=path):
                self.refuse({path: ["file"]}, "is no path below the workspace")
                files = json.loads(dump_cassette(kept()))
                files["snapshot"]["files"] = {path: {"text": ""}}
                self.put(json.dumps(files).encode())
                with self.refused("field snapshot.files", "is no path below the workspace"):
                    self.store.read("shop")

    def test_a_name_lies_in_a_folder_whose_names_are_listed(self) -> None:
        for names in (
            {"a/b": ["file"]},
            {"a": ["file"], "a/b": ["file"]},
            {"a": ["link"], "a/b": ["file"]},
            {"a": ["folder", 0, 0.0, False, False, 1], "a/b": ["file"]},
            {"a": ["folder"], "a/b/c": ["file"]},
        ):
            with self.subTest(names=names):
                self.refuse(names, "lies in no folder whose names are listed")

    def test_a_crowd_of_names_is_refused(self) -> None:
        self.refuse({f"f{number}": ["file"] for number in range(NAMES_LIMIT + 1)}, "has 20,001 entries, over 20,000")

    def test_names_of_another_type_are_refused(self) -> None:
        for value in ([], "x", 1, True, None):
            with self.subTest(value=value):
                self.refuse(value, "should be an object")

    def test_a_whole_of_another_type_is_refused(self) -> None:
        whole = json.loads(dump_cassette(kept()))
        whole["snapshot"]["whole"] = 1
        self.put(json.dumps(whole).encode())
        with self.refused("field snapshot.whole should be a boolean"):
            self.store.read("shop")

    def test_names_that_could_not_be_read_again_are_not_written(self) -> None:
        odd: list[Any] = [
            {"a": Name("file", -1)},
            {"a": ("socket",)},
            {"a": Name("file", 1, 1)},
            {"../a": Name("file")},
        ]
        odd += [{"a": Name("folder", inside=-1)}, {"a/b": Name("file")}, {"a": Name("dir")}, {"a": "file"}]
        odd += [{str(number): Name("file") for number in range(NAMES_LIMIT + 1)}]
        for names in odd:
            with self.subTest(names=list(names.items())[:1]), self.refused():
                self.store.save(kept(names), overwrite=True)
        self.assertFalse(self.store.exists("shop"))


if __name__ == "__main__":
    unittest.main()
