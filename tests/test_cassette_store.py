"""The store: what a cassette may hold, what it demands, and what a disk can do to it."""

from __future__ import annotations

import contextlib
import copy
import errno
import inspect
import json
import math
import os
import random
import stat
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Iterator, Literal, get_args, get_origin
from unittest import mock

from tests.support import temp_folder

from session_cassettes import cassette_store
from session_cassettes.cassette_store import (
    JSON_FILE_LIMIT,
    LONGEST_RUN,
    SCHEMA,
    WINDOWS,
    Answered,
    Arm,
    Call,
    Cassette,
    CassetteError,
    Claim,
    Facts,
    Fields,
    FileLock,
    Recorder,
    Ledger,
    Snapshot,
    SnapshotFile,
    Store,
    Summary,
    check_name,
    dump_cassette,
    is_plain_json,
    parse_arm,
    parse_cassette,
    parse_claim,
    parse_facts,
    parse_json,
    parse_ledger,
    plain_copy,
    to_json,
    write_atomically,
)

POSIX = not WINDOWS
CHILD = Path(__file__).with_name("store_child.py")
DAY = 86_400

SHOP = Cassette(
    name="shop",
    request="Where is the auth handler?",
    answer="In server\\auth.py, on port 8080 – für alle.",
    model="careful",
    cwd="/home/ada/shop",
    cwd_aliases=("/mnt/shop",),
    recorded_at="2026-11-11T10:00:00+00:00",
    recorder=Recorder("0.23.1", "linux", "rg", True, False),
    calls=(
        Call("search_files", {"pattern": "auth", "limit": 5}, '{"matches": ["server/auth.py"]}'),
        Call("read_file", {"path": "server/auth.py"}, "PORT = 8080\r\n\ttab \ud800 lone"),
        Call("skills_list", {}, {"skills": [], "count": 0, "ratio": 0.5, "more": None}),
    ),
    not_kept=("terminal",),
    snapshot=Snapshot(
        {"server/auth.py": SnapshotFile("\ufeffPORT = 8080\r\n", 16, 1.5, False), "b.txt": SnapshotFile("", 0)},
        {"hidden": 2},
        {".env": "hidden"},
    ),
    pins=("auth.py", "re:\\b8080\\b"),
    warnings=("1 tool call was not kept",),
    plugin="1.0.0",
)
FACTS = Facts("1.0.0", "f" * 64, 4711, False, "0.23.1")
ARM = Arm("a1", "run", "shop", "where?", "process", 5.0, 900.0, "1.0.0", "f" * 64, "/home/ada", "c" * 64, False)
CLAIM = Claim("a1", "s1", "t1", "careful", FACTS)
HIT = Answered("read_file", {"path": "a"}, "hit", 0)
LEDGER = Ledger("a1", "t1", ("s1", "s2"), "careful", FACTS, (HIT,), "auth.py on 8080", finished=True)


class Text(str):
    """A text by inheritance only."""


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


class StoreCase(unittest.TestCase):
    """A store in a fresh folder, and what the tests ask of errors and files."""

    def setUp(self) -> None:
        self.root = temp_folder(self) / "data"
        self.store = Store(self.root)
        self.store.prepare()

    def put(self, data: bytes, name: str = "shop") -> Path:
        path = self.root / "cassettes" / f"{name}.json"
        path.write_bytes(data)
        return path

    @contextlib.contextmanager
    def refused(self, *parts: str) -> Iterator[None]:
        """Demand a CassetteError of one line that holds all parts."""
        with self.assertRaises(CassetteError) as caught:
            yield
        text = str(caught.exception)
        self.assertEqual(len(text.splitlines()), 1, text)
        self.assertTrue(text.isprintable(), text)
        for part in parts:
            self.assertIn(part, text)

    def both_refuse(self, *parts: str) -> None:
        for read in (self.store.read, self.store.summary):
            with self.refused(*parts):
                read("shop")

    def told(self, read: Callable[[str], Any]) -> Any:
        """What a reader returns as a summary, or the text of its refusal."""
        try:
            found = read("shop")
        except CassetteError as error:
            self.assertEqual(len(str(error).splitlines()), 1)
            return str(error)
        return found if isinstance(found, Summary) else summed(found[0])

    def free(self, lock: FileLock) -> bool:
        """Whether a lock can be taken; it is given back."""
        taken = lock.try_acquire()
        lock.release()
        return taken

    def no_litter(self) -> None:
        self.assertEqual([path for path in self.root.rglob("*.tmp")], [])


def summed(cassette: Cassette) -> Summary:
    files = len(cassette.snapshot.files)
    return Summary(cassette.name, len(cassette.calls), files, cassette.pins, cassette.warnings, cassette.recorded_at)


# --- a cassette as JSON --------------------------------------------------------


class Format(StoreCase):
    def test_a_cassette_comes_back_as_it_was(self) -> None:
        self.store.save(SHOP, overwrite=False)
        self.assertEqual(self.store.read("shop")[0], SHOP)
        self.assertEqual(self.store.summary("shop"), summed(SHOP))

    def test_lone_surrogates_come_back_in_every_text(self) -> None:
        odd = '\\\ud800x\udfff"\U0001f600\u2028\x00'
        made = SHOP._replace(
            answer=odd,
            request=odd,
            calls=(Call("read_file", {odd: odd}, odd),),
            snapshot=Snapshot({odd: SnapshotFile(odd, 1)}),
            warnings=(odd,),
        )
        self.store.save(made, overwrite=False)
        self.assertEqual(self.store.read("shop")[0], made)

    def test_random_texts_come_back(self) -> None:
        rng = random.Random(1)
        for _ in range(200):
            texts = [
                "".join(
                    chr(rng.choice((rng.randrange(0x250), rng.randrange(0x1FFFF)))) for _ in range(rng.randrange(30))
                )
                .encode("utf-8", "ignore")
                .decode()
                for _ in range(3)
            ]
            made = Cassette("shop", texts[0], texts[1], calls=(Call("t", {texts[2]: texts}, texts),))
            self.assertEqual(parse_cassette(dump_cassette(made), "f"), made)

    def test_a_newer_schema_is_refused_naming_both(self) -> None:
        for schema in (SCHEMA + 1, 10**400, 0, -1):
            with self.subTest(schema=schema):
                self.put(dump_cassette(SHOP).replace(b'"schema": 1', b'"schema": %d' % schema))
                self.both_refuse(
                    "shop.json", "field schema: schema ", f"not known here (this version reads {SCHEMA})", "update"
                )

    def test_each_wrong_type_is_named_with_its_path(self) -> None:
        whole = json.loads(dump_cassette(SHOP))
        for path, value in fields_of(whole):
            changed = copy.deepcopy(whole)
            parent = changed
            for key in path[:-1]:
                parent = parent[key]
            parent[path[-1]] = wrong(value)
            self.put(json.dumps(changed).encode())
            with self.subTest(path=path):
                self.both_refuse("shop.json", f"field {dotted(path)} should be ", "record it again")

    def test_each_missing_field_without_a_default_is_named(self) -> None:
        whole = json.loads(dump_cassette(SHOP))
        needed = [
            ("schema",),
            ("name",),
            ("request",),
            ("answer",),
            ("calls",),
            ("snapshot",),
            ("snapshot", "files"),
            ("snapshot", "files", "b.txt", "text"),
            ("calls", 1, "tool"),
            ("calls", 0, "args"),
            ("calls", 2, "result"),
        ]
        for path in needed:
            changed = copy.deepcopy(whole)
            parent = changed
            for key in path[:-1]:
                parent = parent[key]
            del parent[path[-1]]
            self.put(json.dumps(changed).encode())
            with self.subTest(path=path):
                self.both_refuse("shop.json", f"field {dotted(path)} is missing")

    def test_a_root_of_another_type_is_refused(self) -> None:
        for data, kind in (
            (b"[]", "a list"),
            (b"null", "null"),
            (b'"x"', "a string"),
            (b"5", "a number"),
            (b"true", "a boolean"),
        ):
            with self.subTest(data=data, kind=kind):
                self.put(data)
                self.both_refuse("shop.json: the file's root should be an object", kind)

    def test_what_is_no_strict_json_is_refused_in_a_line(self) -> None:
        text = dump_cassette(SHOP).decode()
        for data, part in {
            b"": "is not a JSON file",
            b" \r\n": "is not a JSON file",
            b"{": "is not a JSON file",
            text.encode("utf-16"): "is not UTF-8",
            text.encode("latin-1", "replace"): "is not UTF-8",
            b'{"a": ' + b"[" * 100_000: "nested too deeply",
            b'{"a\\nb": 1, "a\\nb": 2}': r"key 'a\nb' stands twice",
            b'{"a": NaN}': "NaN is not",
            b'{"a": -Infinity}': "-Infinity is not",
            b'{"a": 1e999}': "1e999 is too large",
            b'{"a": ' + b"9" * 5000 + b"}": "5,000 digits",
            b'{"a": 1} x': "Extra data",
        }.items():
            self.put(data)
            with self.subTest(part=part):
                self.both_refuse("shop.json", part)

    def test_utf_16_without_a_mark_and_raw_control_characters_are_refused(self) -> None:
        text = json.dumps({"schema": 1, "name": "shop"})
        for data in (text.encode("utf-16-le"), b'{"name": "a\nb"}', b"\x00", b"\xed\xa0\x80"):
            with self.subTest(data=data):
                self.put(data)
                self.both_refuse("shop.json")

    def test_numbers_too_large_for_a_float_are_refused_where_one_is_due(self) -> None:
        data = dump_cassette(SHOP).replace(b'"mtime":1.5', b'"mtime":' + b"9" * 400)
        self.put(data)
        self.both_refuse("field snapshot.files['server/auth.py'].mtime is too large")
        with self.refused("field created is too large"):
            parse_arm(to_json({**ARM._asdict(), "created": 10**400}), "arm.json")

    def test_a_mark_or_other_newlines_change_nothing(self) -> None:
        data = dump_cassette(SHOP)
        for changed in (
            b"\xef\xbb\xbf" + data,
            data.replace(b"\n", b"\r\n"),
            json.dumps(json.loads(data), indent=0).encode(),
        ):
            with self.subTest(changed=changed):
                self.put(changed)
                self.assertEqual(self.store.read("shop")[0], SHOP)
                self.assertEqual(self.store.summary("shop"), summed(SHOP))

    def test_unknown_keys_are_ignored(self) -> None:
        self.put(dump_cassette(SHOP).replace(b'"schema": 1,\n', b'"schema": 1,\n"later": [1],\n'))
        self.assertEqual(self.store.read("shop")[0], SHOP)
        self.assertEqual(self.store.summary("shop"), summed(SHOP))

    def test_keys_of_a_file_cannot_write_to_the_terminal(self) -> None:
        snapshot = Snapshot({}, {"a\n\x1b[31mred": 1})
        self.put(dump_cassette(SHOP._replace(snapshot=snapshot)).replace(b'red":1', b'red":null'))
        self.both_refuse(r"snapshot.skipped.a\n\x1b[31mred should be a number")

    def test_many_twin_keys_are_found_at_once(self) -> None:
        keys = ",".join(f'"{n}":1' for n in range(50_000))
        with self.refused("'49999' stands twice"):
            parse_json(f'{{{keys},"49999":2}}'.encode(), "f")

    def test_a_bad_pin_in_the_file_is_named(self) -> None:
        for pin, part in (("re:", "cannot be empty"), (" ", "cannot be empty"), ("x" * 10_001, "has 10,001")):
            with self.subTest(pin=pin[:20], part=part):
                whole = json.loads(dump_cassette(SHOP))
                whole["pins"][1] = pin
                self.put(json.dumps(whole).encode())
                self.both_refuse("field pins[1]", part)

    def test_a_value_that_json_cannot_hold_is_refused_before_anything_is_written(self) -> None:
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        self.store.save(SHOP, overwrite=False)
        for value in (float("nan"), float("inf"), {1, 2}, b"x", 10**5000, deep):
            with self.subTest(value=value):
                made = SHOP._replace(calls=(Call("t", {"a": value}, ""),))
                with self.refused("calls of 'shop'"):
                    self.store.save(made, overwrite=True)
        while deep:
            deep = deep.pop()  # unravelled here: older versions would run out of stack
        self.assertEqual(self.store.read("shop")[0], SHOP)
        self.no_litter()

    def test_what_could_not_be_read_again_is_not_saved(self) -> None:
        for made in (SHOP._replace(pins=("re:",)), SHOP._replace(request=5)):
            with self.subTest(made=made):
                with self.refused("shop.json: field "):
                    self.store.save(made, overwrite=False)
        with mock.patch.object(cassette_store, "JSON_FILE_LIMIT", 100), self.refused("MB"):
            self.store.save(SHOP, overwrite=False)
        self.assertEqual(self.store.names(), [])

    def test_what_is_plain_by_its_types_needs_no_reading_back(self) -> None:
        rng, plain = random.Random(11), 0
        for _ in range(4000):
            value = any_value(rng, 4)
            if is_plain_json(value):
                plain += 1
                again = parse_json(json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace"), "f")
                self.assertEqual(shown(again), shown(value))
        self.assertGreater(plain, 400)

    def test_any_cassette_is_saved_so_that_it_can_be_read_or_is_refused(self) -> None:
        rng, saved = random.Random(12), 0
        for _ in range(400):
            made = any_cassette(rng)
            try:
                self.store.save(made, overwrite=True)
            except CassetteError:
                continue
            saved += 1
            again, _ = self.store.read("shop")
            self.assertEqual(
                shown([call._asdict() for call in again.calls]), shown([call._asdict() for call in made.calls])
            )
            self.assertEqual(list(again.snapshot.files), ["a.py"])
            self.assertEqual(*(shown(one.snapshot.files["a.py"].text) for one in (again, made)))
            self.assertEqual(
                again._replace(calls=(), snapshot=Snapshot()), made._replace(calls=(), snapshot=Snapshot())
            )
        self.assertTrue(40 < saved < 400, saved)

    def test_a_plain_copy_is_equal_and_shares_nothing_that_can_change(self) -> None:
        value = {"a": [1, 2.5, True, None, {"b": ["c"]}], "d": {}, "é": [[]], "": nested(60)}
        made = plain_copy(value)
        self.assertEqual(shown(made), shown(value))
        value["a"][4]["b"].append("later")
        value["d"]["later"] = 1
        value["é"][0].append("later")
        self.assertEqual((made["a"][4], made["d"], made["é"]), ({"b": ["c"]}, {}, [[]]))

    def test_what_is_more_than_plain_is_not_copied(self) -> None:
        class Unspeakable:
            def __repr__(self) -> str:
                raise RuntimeError

        class Whole(int):
            """A number by inheritance only."""

        loop: list[Any] = []
        loop.append(loop)
        odd = [math.nan, math.inf, -math.inf, 2**64, -(2**64), 10**5000, nested(65), {"a": nested(64)}, loop, (1,), b""]
        odd += [{1}, {1: 2}, {None: 1}, {Text("a"): 1}, {"\ud83d": 1}, {"a\udc00": 1}, Text(""), Whole(1)]
        odd += [
            Unspeakable(),
            {Unspeakable(): 1},
            {"a": Unspeakable()},
            type("D", (dict,), {})(),
            type("L", (list,), {})(),
        ]
        for number, value in enumerate(odd):
            for around in (lambda one: one, lambda one: [one], lambda one: {"a": ["b", one]}):
                with self.subTest(number=number):
                    self.assertFalse(is_plain_json(around(value)))
                    with self.assertRaises(TypeError):
                        plain_copy(around(value))
        for value in (2**64 - 1, 1 - 2**64, nested(64), {"a": nested(63)}, "\ud83d", ["\ud83d"], {"é": 5e-324}):
            with self.subTest(value=value):
                self.assertTrue(is_plain_json(value))

    ODD_CALLS: tuple[dict[str, Any], ...] = (
        {"tool": 5},
        {"tool": Text("t")},
        {"args": []},
        {"args": {1: 2}},
        {"args": {"a": (1,)}},
        {"args": {"a": 2**70}},
        {"args": {"a": math.nan}},
        {"args": {Text("a"): 1}},
        {"args": {"\ud83d": 1}},
        {"args": {"\U0001f600": 1, "\ud83d\ude00": 2}},
        {"args": {"a": nested(70)}},
        {"args": {"a": nested(700)}},
        {"result": None},
        {"result": {1}},
        {"result": Text("")},
    )
    ODD_FILES: tuple[dict[str, Any], ...] = (
        {"text": None},
        {"text": Text("")},
        {"size": -1},
        {"size": True},
        {"size": 2**70},
        {"size": 1.0},
        {"mtime": math.inf},
        {"mtime": "1"},
        {"mtime": 10**400},
        {"ignored": 0},
    )
    ODD_SNAPSHOTS = (
        Snapshot({5: SnapshotFile("", 0)}),
        Snapshot({"\udc80": SnapshotFile("", 0)}),
        Snapshot({}, {"a": True}),
        Snapshot({}, {"a": 1.5}),
        Snapshot({}, {1: 1}),
        Snapshot({}, {}, {"a": None}),
        Snapshot({}, {}, {"\ud800": "a"}),
    )

    def test_each_way_to_be_more_than_plain_is_kept_so_that_it_can_be_read_or_refused(self) -> None:
        call, file = Call("t", {}, ""), SnapshotFile("", 0, 0.0)
        made = [SHOP._replace(calls=(call, call._replace(**change))) for change in self.ODD_CALLS]
        snapshots = [Snapshot({"a": file, "b": file._replace(**change)}) for change in self.ODD_FILES]
        made += [SHOP._replace(snapshot=one) for one in (*snapshots, *self.ODD_SNAPSHOTS)]
        outcomes = set()
        for number, one in enumerate(made):
            with self.subTest(number=number):
                outcomes.add(self.saved_or_refused(one))
        self.assertEqual(outcomes, {True, False})

    def saved_or_refused(self, made: Cassette) -> bool:
        """Whether a cassette is saved; then it can be read."""
        try:
            self.store.save(made, overwrite=True)
        except CassetteError:
            return False
        self.assertEqual(self.store.read("shop")[0].name, "shop")
        return True

    def test_a_value_is_judged_with_little_stack_left(self) -> None:
        value, frames = {"a": nested(60)}, sys.getrecursionlimit() - len(inspect.stack())

        def after(levels: int) -> bool:
            return after(levels - 1) if levels else is_plain_json(value)

        told = set()
        for levels in range(frames - 200, frames - 10, 5):
            with contextlib.suppress(RecursionError):  # of our own frames
                told.add(after(levels))
        self.assertEqual(told, {True, False})

    def test_two_keys_that_are_one_when_read_are_refused(self) -> None:
        made = SHOP._replace(calls=(Call("t", {"\U0001f600": 1, "\ud83d\ude00": 2}, ""),))
        with self.refused("stands twice"):
            self.store.save(made, overwrite=False)


def fields_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every field whose type is fixed, with its path."""
    if path[:1] == ("counts",) or path[-1:] == ("result",):
        return
    if path:
        yield path, value
    if path[-1:] != ("args",):
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in pairs:
            yield from fields_of(inner, (*path, key))


def wrong(value: Any) -> Any:
    return {str: 5, int: "5", float: "1.5", bool: 1, list: {}, dict: []}[type(value)]


def dotted(path: tuple[Any, ...]) -> str:
    text = ""
    for index, key in enumerate(path):
        in_files = path[:2] == ("snapshot", "files") and index == 2
        text += f"[{key!r}]" if isinstance(key, int) or in_files else f".{key}"
    return text.removeprefix(".")


def any_value(rng: random.Random, depth: int) -> Any:
    """A value that JSON gives back, gives back changed, or cannot hold."""
    kind = rng.randrange(12 if depth else 7)
    if kind < 3:
        return "".join(rng.choice('a"\\\n\u2028\ud83d\ude00é\U0001f600\x00') for _ in range(rng.randrange(4)))
    if kind == 3:
        return rng.choice((None, True, False, 0, -1, 2**63, 2**64 - 1, 10**30, 1.5, -0.0, 5e-324, 1e308))
    if kind < 7:
        return (
            rng.choice((None, 1, "", 0.5))
            if rng.random() < 0.9
            else rng.choice((math.nan, math.inf, b"", Text("x"), ()))
        )
    if kind < 9:
        return [any_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    keys = [any_value(rng, 0) if rng.random() < 0.9 else rng.choice((1, None, True)) for _ in range(rng.randrange(4))]
    return {key if key.__hash__ else "": any_value(rng, depth - 1) for key in keys}


def any_cassette(rng: random.Random) -> Cassette:
    """A cassette whose calls and files may be anything."""

    def mostly(usual: Any) -> Any:
        return usual if rng.random() < 0.9 else any_value(rng, 2)

    calls = [Call(mostly("t"), mostly({"a": any_value(rng, 3)}), mostly("text")) for _ in range(rng.randrange(4))]
    file = SnapshotFile(mostly("text"), mostly(1), mostly(1.5), mostly(False))
    return SHOP._replace(
        calls=tuple(calls), snapshot=Snapshot({"a.py": file}, {"hidden": mostly(1)}, {"b": mostly("x")})
    )


def shown(value: Any) -> str:
    """A value as JSON shows it; the halves of a surrogate pair that meet are one character."""
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


# --- errors ------------------------------------------------------------------------


class Errors(StoreCase):
    """An error's facts can be read one by one."""

    def caught(self, ask: Callable[..., Any], *args: Any) -> CassetteError:
        with self.assertRaises(CassetteError) as caught:
            ask(*args)
        return caught.exception

    def test_what_is_wrong_in_a_file_is_told_by_file_field_and_reason(self) -> None:
        whole = dump_cassette(SHOP)
        file = str(self.store.path("shop"))
        for old, new, field, reason in (
            (b"{", b"\xff{", "", "is not UTF-8 (byte 0)"),
            (b"{", b"", "", "is not a JSON file (Extra data, line 2 column 9)"),
            (b'"name": "shop"', b'"name": 5', "name", "should be a string, but it is a number"),
            (b'"name": "shop"', b'"name": "other"', "name", "is 'other', but the file is called 'shop'"),
            (b'"answer"', b'"other"', "answer", "is missing"),
            (
                b'"mtime":1.5',
                b'"mtime":1' + b"0" * 400,
                "snapshot.files['server/auth.py'].mtime",
                "is too large a number",
            ),
            (b'"size":16', b'"size":-1', "snapshot.files['server/auth.py'].size", "is negative"),
            (b'"re:', b'"re:' + b"x" * 10_000, "pins[1]", "has 10,011 characters, over 10,000"),
            (b'"schema": 1', b'"schema": 2', "schema", "schema 2 is not known here (this version reads 1)"),
        ):
            with self.subTest(field=field, reason=reason):
                self.put(whole.replace(old, new, 1))
                for read in (self.store.read, self.store.summary):
                    with self.subTest(read=read):
                        error = self.caught(read, "shop")
                        self.assertEqual((error.file, error.field), (file, field))
                        self.assertTrue(error.reason.startswith(reason), error.reason)
                        self.assertIn(error.reason, str(error))
                        self.assertIn(error.file, str(error))
                        self.assertIn(error.field, str(error))

    def test_the_root_of_a_file_is_no_field(self) -> None:
        error = self.caught(parse_arm, b"[]", "arm.json")
        self.assertEqual(
            (error.file, error.field, error.reason), ("arm.json", "", "should be an object, but it is a list")
        )

    def test_what_the_system_refuses_is_told_by_file_and_reason(self) -> None:
        folder = self.root / "cassettes"
        (folder / "shop.json").mkdir()
        cases: dict[str, tuple[Callable[..., Any], Path, str]] = {
            "read": (lambda: self.store.read("shop"), folder / "shop.json", ""),
            "write": (
                lambda: write_atomically(folder / "no" / "a.json", b""),
                folder / "no" / "a.json",
                "No such file",
            ),
            "make": (lambda: Store(self.root / "store.lock").prepare(), self.root / "store.lock", ""),
            "lock": (lambda: FileLock(folder).try_acquire(), folder, ""),
        }
        self.free(self.store.lock())
        for title, (ask, file, reason) in cases.items():
            with self.subTest(title):
                error = self.caught(ask)
                self.assertEqual((error.file, error.field), (str(file), ""))
                self.assertTrue(error.reason.startswith(reason) and error.reason)
                self.assertIn(f"{file} ({error.reason}): ", str(error))

    def test_a_value_that_cannot_be_kept_is_told_by_its_field(self) -> None:
        error = self.caught(dump_cassette, SHOP._replace(model={1}))
        self.assertEqual((error.file, error.field), ("", "model"))
        self.assertTrue(str(error).startswith("field model of 'shop' cannot be kept as JSON ("), error)

    def test_facts_and_texts_with_braces_stay_as_they_are(self) -> None:
        for file in ("a{b}", "{file}", "{", "{0}", "{reason!r}"):
            with self.subTest(file=file):
                error = self.caught(parse_json, b"", file)
                self.assertEqual(error.file, file)
                self.assertTrue(str(error).startswith(f"{file} is not a JSON file"), error)
                self.assertEqual(str(CassetteError(file)), file)

    def test_an_error_without_facts_has_empty_ones(self) -> None:
        error = CassetteError("a text")
        self.assertEqual((error.file, error.field, error.reason), ("", "", ""))


# --- damaged and edited files -----------------------------------------------------


class Damage(StoreCase):
    def test_every_cut_of_a_cassette_is_refused(self) -> None:
        data = dump_cassette(Cassette("shop", "q", "\U0001f600", calls=SHOP.calls[:1], pins=("a",)))
        for length in range(len(data) - 1):
            self.put(data[:length])
            self.both_refuse("shop.json")

    def test_without_its_last_newline_a_cassette_is_still_whole(self) -> None:
        self.put(dump_cassette(SHOP)[:-1])
        self.assertEqual(self.store.read("shop")[0], SHOP)
        self.assertEqual(self.store.summary("shop"), summed(SHOP))

    def test_cuts_of_a_larger_cassette_are_refused(self) -> None:
        big = SHOP._replace(calls=SHOP.calls * 300)
        data, rng = dump_cassette(big), random.Random(2)
        for length in rng.sample(range(len(data) - 1), 25):
            self.put(data[:length])
            self.both_refuse("shop.json")

    def test_any_bytes_are_read_alike_by_list_and_run_or_refused_in_a_line(self) -> None:
        data, rng = dump_cassette(SHOP), random.Random(3)
        for _ in range(500):
            self.put(mutated(data, rng))
            self.assertEqual(self.told(self.store.read), self.told(self.store.summary))

    def test_any_bytes_are_a_cassette_or_refused_in_a_line(self) -> None:
        data, rng = dump_cassette(SHOP), random.Random(10)
        for _ in range(4000):
            try:
                self.assertIsInstance(parse_cassette(mutated(data, rng), "shop.json"), Cassette)
            except CassetteError as error:
                self.assertRegex(str(error), r"\Ashop\.json[^\n]*\Z")

    def test_any_bytes_of_a_hand_over_are_read_or_refused_in_a_line(self) -> None:
        rng = random.Random(4)
        for value, parse in ((ARM, parse_arm), (CLAIM, parse_claim), (LEDGER, parse_ledger)):
            with self.subTest(value=value, parse=parse):
                data = to_json(value)
                for _ in range(1000):
                    try:
                        self.assertIsInstance(parse(mutated(data, rng), "hand.json"), type(value))
                    except CassetteError as error:
                        self.assertRegex(str(error), r"\Ahand\.json[^\n]*\Z")

    def test_any_bytes_of_a_run_are_shown_or_left_out(self) -> None:
        data, rng = to_json({"result": "PASS", "pins": [{"pin": "a", "ok": True}], "model": "m"}), random.Random(5)
        path = self.store.save_run("shop", "one", {})
        for _ in range(150):
            path.write_bytes(mutated(data, rng))
            for run in self.store.last_runs("shop", 5):
                self.assertIsInstance(run.get("pins", []), list)

    def test_a_file_of_random_bytes_is_refused(self) -> None:
        rng = random.Random(6)
        for _ in range(50):
            self.put(rng.randbytes(rng.randrange(1, 60)))
            self.both_refuse("shop.json")


class EditedByHand(StoreCase):
    """`list` never believes counts that a person may have left stale."""

    def edit(self, old: bytes, new: bytes) -> None:
        data = dump_cassette(SHOP)
        self.assertEqual(data.count(old), 1)
        self.put(data.replace(old, new))

    def test_pins_edited_in_the_file_count_at_once(self) -> None:
        self.edit(b'"pins": ["auth.py",', b'"pins": ["  8080  ","auth.py",')
        self.assertEqual(self.store.summary("shop").pins, ("8080", *SHOP.pins))
        self.assertEqual(self.store.read("shop")[0].pins, ("8080", *SHOP.pins))

    def test_a_call_added_by_hand_is_counted(self) -> None:
        self.edit(b'"calls": [', b'"calls": [{"tool":"t","args":{},"result":""},')
        self.assertEqual(self.store.summary("shop").calls, 4)
        self.assertEqual(len(self.store.read("shop")[0].calls), 4)

    def test_counts_edited_by_hand_are_counted_anew(self) -> None:
        self.edit(b'"counts": {"calls":3', b'"counts": {"calls":9')
        self.assertEqual(self.store.summary("shop").calls, 3)

    def test_an_edit_that_keeps_the_length_is_noticed_when_it_breaks_the_file(self) -> None:
        self.edit(b'"skipped":{"hidden":2}', b'"skipped":{"hidden":?}')
        self.both_refuse("is not a JSON file")

    def test_a_second_calls_above_the_real_ones_is_refused(self) -> None:
        self.edit(b'"pins": [', b' "calls": [], "pins": [')
        self.both_refuse("key 'calls' stands twice")

    def test_the_next_pin_counts_anew(self) -> None:
        self.edit(b'"calls": [', b'"calls": [{"tool":"t","args":{},"result":""},')
        self.store.change_pins("shop", lambda pins: (*pins, "8080"))
        self.assertIn(b'"counts": {"calls":4,"files":2,', self.store.path("shop").read_bytes())

    def test_a_file_under_another_name_is_refused(self) -> None:
        self.put(dump_cassette(SHOP), "store")
        for read in (self.store.read, self.store.summary):
            with self.subTest(read=read):
                with self.refused("store.json: field name is 'shop'", "make them agree"):
                    read("store")


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to three random edits, some of them with what breaks readers."""
    tokens = (
        b"null",
        b"-1",
        b"1e999",
        b"NaN",
        b"\\ud800",
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"9" * 400,
        b"\xff",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"true",
        b'"calls": ',
        b'\n"calls": ',
        b'"a":1,"a":1',
        b"\x00",
        b"1.5",
        b"re:(",
    )
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 1, 1, 2, 8, 40)))
        new = rng.choice((b"", rng.choice(tokens), rng.randbytes(1), data[end : end + 20]))
        data = data[:start] + new + data[end:]
    return data


# --- what may lie where a cassette should ----------------------------------------


class OtherThings(StoreCase):
    def test_no_cassette_offers_the_nearest_name(self) -> None:
        self.store.save(SHOP, overwrite=False)
        for name, hint in (("shp", "did you mean 'shop'?"), ("SHOP2", "'shop'"), ("zzz", "hermes cassette list")):
            with self.subTest(name=name, hint=hint):
                for ask in (
                    self.store.read,
                    self.store.summary,
                    self.store.remove,
                    lambda n: self.store.change_pins(n, tuple),
                    lambda n: self.store.rename(n, "new"),
                ):
                    with self.refused(f"there is no cassette {name!r}", hint):
                        ask(name)

    def test_a_store_that_was_never_used_has_no_cassettes(self) -> None:
        store = Store(self.root / "never")
        self.assertEqual(store.names(), [])
        self.assertEqual(store.last_runs("shop", 5), [])
        for ask in (store.read, store.summary, lambda n: store.change_pins(n, tuple)):
            with self.subTest(ask=ask):
                with self.refused("there is no cassette 'shop'"):
                    ask("shop")
        self.assertFalse((self.root / "never").exists())

    def test_a_folder_in_place_of_a_cassette_is_refused(self) -> None:
        (self.root / "cassettes" / "shop.json").mkdir()
        self.both_refuse("shop.json", "remove it")
        with self.refused("shop.json"):
            self.store.save(SHOP, overwrite=True)
        self.no_litter()

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs named pipes")
    def test_a_pipe_is_refused_and_not_waited_for(self) -> None:
        os.mkfifo(self.root / "cassettes" / "shop.json")
        self.both_refuse("shop.json", "not a regular file")
        os.mkfifo(self.root / "arm.json")
        with self.refused("arm.json", "not a regular file"):
            self.store.read_value(self.store.arm_path, parse_arm)
        self.store.save_run("shop", "1", {"result": "PASS"})
        os.mkfifo(self.root / "runs" / "shop" / "2.json")
        self.assertEqual(self.store.last_runs("shop", 5), [{"result": "PASS"}])

    def test_a_file_over_the_limit_is_not_read(self) -> None:
        with open(self.put(b""), "r+b") as file:
            file.truncate(JSON_FILE_LIMIT + 1)
        self.both_refuse("shop.json", "over 160 MB")

    def test_a_file_that_cannot_be_read_is_told(self) -> None:
        self.store.save(SHOP, overwrite=False)
        with mock.patch("os.open", side_effect=PermissionError(errno.EACCES, "Permission denied")):
            self.both_refuse("shop.json", "Permission denied", "make it readable")

    @unittest.skipUnless(POSIX, "needs links")
    def test_a_link_is_read_but_never_written_through(self) -> None:
        target = self.root / "elsewhere.json"
        target.write_bytes(dump_cassette(SHOP))
        self.store.path("shop").symlink_to(target)
        self.assertEqual(self.store.read("shop")[0], SHOP)
        self.store.change_pins("shop", lambda pins: ("8080",))
        self.assertEqual(target.read_bytes(), dump_cassette(SHOP))
        self.assertFalse(self.store.path("shop").is_symlink())
        self.assertEqual(self.store.read("shop")[0].pins, ("8080",))

    @unittest.skipUnless(POSIX, "needs links")
    def test_links_to_nothing_and_to_themselves_are_told(self) -> None:
        self.store.path("shop").symlink_to(self.root / "gone.json")
        self.both_refuse("shop.json leads to a file that is gone")
        self.store.path("loop").symlink_to(self.store.path("loop"))
        with self.refused("loop.json"):
            self.store.read("loop")

    @unittest.skipUnless(POSIX, "Windows has no such names")
    def test_a_data_folder_with_a_newline_in_its_name_stays_on_one_line(self) -> None:
        store = Store(self.root / "a\nb")
        store.prepare()
        store.path("shop").write_bytes(b"{")
        with self.refused(r"a\nb"):
            store.read("shop")

    def test_other_files_beside_the_cassettes_are_no_cassettes(self) -> None:
        for entry in ("my notes.json", ".hidden.json", "shop.txt", ".shop.json.1.ab.tmp"):
            (self.root / "cassettes" / entry).write_bytes(b"{}")
        self.assertEqual(self.store.names(), [])

    def test_a_file_in_place_of_the_folder_is_told(self) -> None:
        store = Store(self.root / "file")
        (self.root / "file").write_bytes(b"")
        with self.refused("cannot make the folder", "file"):
            store.prepare()
        with self.refused("cannot read"):
            store.names()


# --- names ---------------------------------------------------------------------------


class Names(StoreCase):
    def test_good_names_are_taken_as_they_are(self) -> None:
        for name in ("a", "0", "Shop-2.1_x", "a" * 64, "com10", "console", "x.json", "a..b"):
            with self.subTest(name=name):
                self.assertEqual(check_name(name), name)

    def test_bad_names_are_refused(self) -> None:
        bad = (
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "/etc/passwd",
            "C:x",
            "a:b",
            "-x",
            ".x",
            "_x",
            "a.",
            "a ",
            " a",
            "a\n",
            "a" * 65,
            "ä",
            "a\0",
            "\ud800",
            "a*",
            "com¹",
            "٣",
            "a\u202e",
        )
        for name in bad:
            with self.subTest(name=name), self.refused("cannot name a cassette"):
                check_name(name)
        for name in ("con", "NUL", "nul.txt", "Com1", "lpt9.a.b", "aux", "prn", "com0"):
            with self.subTest(name=name), self.refused("device name"):
                check_name(name)

    def test_no_door_of_the_store_takes_a_bad_name(self) -> None:
        store = self.store
        for door in (
            store.path,
            store.exists,
            store.read,
            store.summary,
            store.runs,
            store.remove,
            store.count_runs,
            lambda n: store.last_runs(n, 1),
            lambda n: store.save_run(n, "1", {}),
            lambda n: store.change_pins(n, tuple),
            lambda n: store.rename("shop", n),
            lambda n: store.save(Cassette(n, "", ""), True),
        ):
            with self.subTest(door=door):
                with self.refused("'../x' cannot name a cassette"):
                    door("../x")

    def test_a_twin_in_another_case_is_refused_even_with_overwrite(self) -> None:
        self.store.save(SHOP, overwrite=False)
        self.assertTrue(self.store.exists("SHOP"))
        with self.refused("'shop'", "another case"):
            self.store.save(SHOP._replace(name="SHOP"), overwrite=True)

    def test_an_existing_cassette_is_replaced_only_with_overwrite(self) -> None:
        self.store.save(SHOP, overwrite=False)
        newer = SHOP._replace(answer="new")
        with self.refused("'shop' already", "--overwrite"):
            self.store.save(newer, overwrite=False)
        self.assertEqual(self.store.read("shop")[0], SHOP)
        self.store.save(newer, overwrite=True)
        self.assertEqual(self.store.read("shop")[0], newer)

    def test_a_rename_takes_the_runs_along_and_refuses_a_taken_name(self) -> None:
        self.store.save(SHOP, overwrite=False)
        self.store.save_run("shop", "1", {"result": "PASS"})
        self.store.save(SHOP._replace(name="other"), overwrite=False)
        for taken in ("other", "OTHER"):
            with self.subTest(taken=taken):
                with self.refused("already"):
                    self.store.rename("shop", taken)
        self.store.rename("shop", "Shop")
        self.assertEqual(self.store.names(), ["other", "Shop"])
        self.assertEqual(self.store.read("Shop")[0], SHOP._replace(name="Shop"))
        self.assertEqual(self.store.count_runs("Shop"), 1)

    def test_a_removed_cassette_takes_its_runs_along(self) -> None:
        self.store.save(SHOP, overwrite=False)
        self.store.save_run("shop", "1", {"result": "PASS"})
        self.store.remove("shop")
        self.assertEqual((self.store.names(), os.listdir(self.root / "runs")), ([], []))


# --- modes ----------------------------------------------------------------------------


@unittest.skipUnless(POSIX, "POSIX modes")
class Modes(StoreCase):
    def test_everything_is_for_its_owner_alone_under_any_mask(self) -> None:
        for mask in (0o000, 0o022, 0o277, 0o777):
            with self.subTest(mask=oct(mask)):
                store = Store(self.root / f"{mask}")
                before = os.umask(mask)
                self.addCleanup(os.umask, before)
                store.save_run("early", "1", {}) if mask == 0 else store.prepare()
                store.prepare()
                store.save(SHOP, overwrite=False)
                store.save_run("shop", "1", {})
                write_atomically(store.arm_path, to_json(ARM))
                os.umask(before)
                self.check_modes(store.root)

    def test_folders_left_open_are_closed(self) -> None:
        for part in ("", "cassettes", "runs"):
            (self.root / part).chmod(0o777)
        self.store.prepare()
        self.check_modes(self.root)

    def check_modes(self, root: Path) -> None:
        for path in (root, *root.rglob("*")):
            mode = stat.S_IMODE(path.stat().st_mode)
            self.assertEqual(mode & ~0o600 if path.is_file() else mode, 0 if path.is_file() else 0o700, path)

    def test_a_file_system_without_modes_is_no_obstacle(self) -> None:
        self.root.chmod(0o755)
        with (
            mock.patch("os.chmod", side_effect=PermissionError(1, "Operation not permitted")),
            mock.patch.object(type(self.root), "chmod", side_effect=PermissionError(1, "Operation not permitted")),
        ):
            self.store.prepare()


# --- a disk that fails -------------------------------------------------------------------


class HalfWritten:
    """A file on a disk that is full after half of the bytes."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, data: bytes) -> int:
        self.file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    def __enter__(self) -> HalfWritten:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


real_open, real_os_open = open, os.open


def full_disk(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    opened = real_open(file, mode, *args, **kwargs)
    return HalfWritten(opened) if mode == "wb" else opened


def read_only_disk(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
    if str(path).endswith(".tmp"):
        raise OSError(errno.EROFS, "Read-only file system")
    return real_os_open(path, flags, *args, **kwargs)


class BadDisks(StoreCase):
    FAULTS = {
        "No space left": [
            ("builtins.open", {"side_effect": full_disk}),
            ("os.fsync", {"side_effect": OSError(errno.ENOSPC, "No space left on device")}),
            ("os.replace", {"side_effect": OSError(errno.ENOSPC, "No space left on device")}),
        ],
        "Read-only": [("os.open", {"side_effect": read_only_disk})],
        "denied": [("os.replace", {"side_effect": PermissionError(errno.EACCES, "Permission denied")})],
        "Input/output": [("os.fsync", {"side_effect": OSError(errno.EIO, "Input/output error")})],
    }

    def test_the_old_cassette_stays_and_no_litter_is_left(self) -> None:
        self.store.save(SHOP, overwrite=False)
        before = self.store.path("shop").read_bytes()
        for part, patches in self.FAULTS.items():
            helps = "make its folder writable" if part in ("Read-only", "denied") else "free some space on its disk"
            for target, how in patches:
                for write in (
                    lambda: self.store.save(SHOP._replace(answer="new"), True),
                    lambda: self.store.change_pins("shop", lambda pins: ("new",)),
                    lambda: self.store.save_run("shop", "1", {}),
                ):
                    with self.subTest(part=part, target=target), mock.patch(target, **how):
                        with self.refused("cannot write", ".json", part, helps):
                            write()
                    self.assertEqual(self.store.path("shop").read_bytes(), before)
                    self.no_litter()
        self.assertEqual(self.store.last_runs("shop", 1), [])

    def test_a_folder_that_cannot_be_synced_is_no_failure(self) -> None:
        def no_folders(path: Any, *args: Any, **kwargs: Any) -> int:
            if os.path.isdir(path):
                raise PermissionError(errno.EACCES, "Permission denied")
            return real_os_open(path, *args, **kwargs)

        with mock.patch("os.open", no_folders):
            self.store.save(SHOP, overwrite=False)
        self.assertEqual(self.store.read("shop")[0], SHOP)

    def test_a_folder_that_vanished_is_told(self) -> None:
        os.rmdir(self.root / "cassettes")
        with self.refused("cannot write", "shop.json"):
            self.store.save(SHOP, overwrite=False)
        with self.refused("cannot open", "store.lock"):
            Store(self.root / "gone").save(SHOP, overwrite=False)
        with self.refused("cannot write"):
            write_atomically(self.root / "gone" / "arm.json", b"")

    def test_an_interrupt_leaves_no_litter(self) -> None:
        with mock.patch("os.fsync", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            self.store.save(SHOP, overwrite=False)
        self.no_litter()
        self.assertTrue(self.free(self.store.lock()))

    def test_on_windows_a_file_in_use_is_tried_again(self) -> None:
        """Windows is faked: a flag says so, and the first replaces are denied."""
        denied, real = [PermissionError(13, "in use")] * 3, os.replace

        def replace(*args: Any) -> None:
            if denied:
                raise denied.pop()
            real(*args)

        with (
            mock.patch.object(cassette_store, "WINDOWS", True),
            mock.patch("os.replace", replace),
            mock.patch("time.sleep"),
            mock.patch.dict(sys.modules, {"msvcrt": fake_msvcrt()}),
        ):
            self.store.save(SHOP, overwrite=False)
        self.assertEqual(self.store.read("shop")[0], SHOP)


# --- processes that die or race ---------------------------------------------------------


class Processes(StoreCase):
    def start(self, *words: str, stop: int = 0, root: Path | None = None) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(CHILD), str(root or self.root), *words],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "STORE_CHILD_STOP": str(stop)},
        )
        self.addCleanup(self.reap, child)
        return child

    def reap(self, child: subprocess.Popen[str]) -> None:
        if child.poll() is None:
            child.kill()
        child.communicate(timeout=30)

    def end(self, child: subprocess.Popen[str]) -> list[str]:
        out, err = child.communicate(timeout=60)
        self.assertEqual(err, "")
        return out.splitlines()

    def test_a_kill_at_any_step_of_a_save_leaves_the_old_or_the_new(self) -> None:
        steps = int(self.end(self.start("save", "shop", "over"))[-1])
        self.assertGreater(steps, 6)
        for old, every in (("old", 1), (None, 2)):
            with self.subTest(old=old, every=every):
                stops = range(1, steps + 1, every)
                stores = [self.fresh(old) for _ in stops]
                children = [self.start("save", "shop", "over", stop=n, root=s.root) for n, s in zip(stops, stores)]
                left = [self.after_a_kill(child, one) for child, one in zip(children, stores)]
                self.assertEqual(set(left), {old, "over"})
                self.assertEqual(left, sorted(left, key=lambda answer: answer == "over"))

    def fresh(self, answer: str | None) -> Store:
        store = Store(temp_folder(self) / "data")
        store.prepare()
        if answer:
            store.save(Cassette("shop", "where?", answer), overwrite=False)
        return store

    def after_a_kill(self, child: subprocess.Popen[str], store: Store) -> str | None:
        child.communicate(timeout=60)
        self.assertNotEqual(child.returncode, 0)
        self.assertTrue(self.free(store.lock()))
        left = store.read("shop")[0].answer if store.names() else None
        store.save(Cassette("other", "", "later"), overwrite=False)
        self.assertEqual(list(store.root.rglob("*.tmp")), [])
        return left

    def test_of_two_processes_that_record_one_name_one_wins_and_the_other_is_told(self) -> None:
        children = [self.start("save", "shop", word) for word in ("one", "two", "three")]
        told = [self.end(child)[0] for child in children]
        self.assertEqual(sum(text == "saved" for text in told), 1)
        self.assertEqual(sum("refused: there is a cassette 'shop' already: use --over" in text for text in told), 2)
        winner = ("one", "two", "three")[told.index("saved")]
        self.assertEqual(self.store.read("shop")[0].answer, winner)

    def test_processes_and_threads_that_pin_together_lose_nothing(self) -> None:
        self.store.save(SHOP._replace(pins=()), overwrite=False)
        children = [self.start("pin", "shop", f"child{n}", "3") for n in range(4)]
        threads(8, lambda n: [self.pin(f"thread{n}-{i}") for i in range(3)])
        for child in children:
            self.end(child)
        pinners = [f"child{n}" for n in range(4)] + [f"thread{n}" for n in range(8)]
        expected = {f"{pinner}-{i}" for pinner in pinners for i in range(3)}
        pins = self.store.read("shop")[0].pins
        self.assertEqual((len(pins), set(pins)), (36, expected))

    def pin(self, pin: str) -> None:
        self.store.change_pins("shop", lambda pins: (*pins, pin))

    def test_a_lock_keeps_another_process_out_until_it_is_killed(self) -> None:
        child = self.start("hold")
        self.assertEqual(child.stdout.readline(), "held\n")
        self.assertFalse(self.store.lock().try_acquire())
        with self.refused("store.lock has been locked for 0 s", "try again"):
            self.store.lock().acquire(0)
        child.kill()
        child.wait(30)
        self.assertTrue(self.free(self.store.lock()))


def threads(count: int, work: Callable[[int], Any]) -> None:
    """Run the work in threads that start together; raise what one of them raised."""
    barrier, failed = threading.Barrier(count), []

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    started = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if failed:
        raise failed[0]


def fake_msvcrt(denied: Callable[[], bool] = lambda: False) -> ModuleType:
    """A stand-in for Windows's locks of one byte; `denied` says that another holds it."""
    module = ModuleType("msvcrt")
    module.asked = []

    def locking(descriptor: int, mode: int, count: int) -> None:
        module.asked.append((mode, count))
        if denied():
            raise PermissionError(13, "Permission denied")

    module.locking, module.LK_NBLCK = locking, 2
    return module


class Locks(StoreCase):
    def test_of_eight_threads_one_gets_the_lock(self) -> None:
        locks = [self.store.waiting() for _ in range(8)]
        taken: list[bool] = []
        threads(8, lambda n: taken.append(locks[n].try_acquire()))
        self.assertEqual(sorted(taken), [False] * 7 + [True])
        for lock in locks:
            lock.release()
            lock.release()
        self.assertTrue(self.free(self.store.waiting()))

    def test_of_eight_threads_that_record_one_name_one_wins(self) -> None:
        told: list[str] = []

        def record(number: int) -> None:
            try:
                self.store.save(SHOP._replace(answer=str(number)), overwrite=False)
                told.append("saved")
            except CassetteError as error:
                told.append(str(error))

        threads(8, record)
        self.assertEqual(told.count("saved"), 1)
        self.assertEqual(sum("use --overwrite" in text for text in told), 7)

    @unittest.skipUnless(POSIX, "on Windows an open file cannot be removed")
    def test_a_lock_file_removed_while_free_does_not_split_the_lock(self) -> None:
        lock, real = self.store.lock(), os.fstat
        removed: list[int] = []

        def fstat(descriptor: int) -> os.stat_result:
            if not removed:
                removed.append(descriptor)
                os.unlink(lock.path)  # between the lock and the look at its file
            return real(descriptor)

        with mock.patch("os.fstat", fstat):
            self.assertTrue(lock.try_acquire())
        self.assertFalse(self.store.lock().try_acquire())
        lock.release()

    def test_a_drive_without_locks_is_told_and_not_taken_for_a_held_lock(self) -> None:
        name = "fcntl.flock" if POSIX else "msvcrt.locking"
        with (
            mock.patch(name, side_effect=OSError(errno.ENOLCK, "No locks available")),
            self.refused("cannot lock", "store.lock", "No locks available", "drive"),
        ):
            self.store.lock().try_acquire()

    def test_a_lock_that_cannot_be_opened_is_told(self) -> None:
        (self.root / "store.lock").mkdir()
        with self.refused("cannot open", "store.lock"):
            self.store.lock().try_acquire()

    def test_a_lock_on_windows_keeps_others_out(self) -> None:
        """Windows is faked: a flag says so, and `msvcrt` is a stand-in that denies as it does."""
        module = fake_msvcrt(denied=lambda: len(module.asked) > 1)
        with mock.patch.object(cassette_store, "WINDOWS", True), mock.patch.dict(sys.modules, {"msvcrt": module}):
            first, second = self.store.lock(), self.store.lock()
            self.assertTrue(first.try_acquire())
            self.assertFalse(second.try_acquire())
        self.assertEqual(module.asked, [(2, 1), (2, 1)])
        first.release()


class Sweeping(StoreCase):
    def age(self, path: Path, seconds: float, data: bytes = b"{}") -> Path:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (1e9 - seconds, 1e9 - seconds))
        return path

    def test_only_old_hand_overs_and_litter_go(self) -> None:
        root = self.root
        go = [
            self.age(root / "pings" / "a.json", 2 * DAY),
            self.age(root / "recordings" / "a.json", 2 * DAY),
            self.age(root / "claims" / "a.json", LONGEST_RUN + 2 * DAY),
            self.age(root / ".arm.json.1.ab.tmp", 2 * DAY),
            self.age(root / "runs" / "shop" / ".1.json.2.ab.tmp", 2 * DAY),
        ]
        stay = [
            self.age(root / "pings" / "b.json", 60),
            self.age(root / "claims" / "b.json", 2 * DAY),
            self.age(root / "ledgers" / "b.json", LONGEST_RUN),
            self.age(root / "arm.json", 1e8),
            self.age(root / "store.lock", 1e8),
            self.age(root / "waiting.lock", 1e8),
            self.age(root / ".arm.json.1.cd.tmp", 60),
            self.age(root / "cassettes" / "old.json", 1e8),
            self.age(root / "runs" / "shop" / "1.json", 1e8),
        ]
        self.store.sweep_handovers(1e9)
        self.assertEqual([path.exists() for path in go], [False] * len(go))
        self.assertEqual([path.exists() for path in stay], [True] * len(stay))

    def test_a_held_lock_holds_after_a_sweep_and_a_save(self) -> None:
        waiting = self.store.waiting()
        self.assertTrue(waiting.try_acquire())
        os.utime(waiting.path, (0, 0))
        self.store.save(SHOP, overwrite=False)
        self.store.sweep_handovers(1e12)
        self.assertFalse(self.store.waiting().try_acquire())
        waiting.release()

    def test_a_save_removes_what_a_killed_writer_left(self) -> None:
        for entry in (".shop.json.1.ab.tmp", ".other.json.9.ff.tmp"):
            (self.root / "cassettes" / entry).write_bytes(b"half")
        self.store.save(SHOP, overwrite=False)
        self.no_litter()

    def test_a_folder_that_cannot_be_listed_is_left_alone(self) -> None:
        Store(self.root / "never").sweep_handovers(1e12)
        with mock.patch("os.listdir", side_effect=OSError(errno.EIO, "Input/output error")):
            self.store.sweep_handovers(1e12)


# --- runs and hand-overs --------------------------------------------------------------


class HandOvers(StoreCase):
    def test_values_come_back_as_they_were(self) -> None:
        rng = random.Random(7)
        for _ in range(150):
            arm = random_value(Arm, rng)._replace(id="a1", kind="run", hosting="gateway")
            facts = random_value(Facts, rng)
            claim = random_value(Claim, rng, facts=facts)
            calls = tuple(random_value(Answered, rng, how=rng.choice(cassette_store.HOWS)) for _ in range(3))
            ledger = random_value(Ledger, rng, facts=facts, calls=calls)
            self.assertEqual(parse_arm(to_json(arm), "f"), arm)
            self.assertEqual(parse_claim(to_json(claim), "f"), claim)
            self.assertEqual(parse_ledger(to_json(ledger), "f"), ledger)
            self.assertEqual(parse_facts(Fields(json.loads(to_json({"facts": facts._asdict()})), "f")), facts)

    def test_evidence_that_leaves_a_field_out_is_refused(self) -> None:
        for value, parse in ((CLAIM, parse_claim), (LEDGER, parse_ledger)):
            with self.subTest(value=value, parse=parse):
                whole = json.loads(to_json(value))
                for key in whole:
                    with self.refused(f"f: field {key} is missing"):
                        parse(to_json({k: v for k, v in whole.items() if k != key}), "f")
        for key in HIT._fields:
            with self.subTest(key=key):
                calls = [{k: v for k, v in HIT._asdict().items() if k != key}]
                with self.refused(f"f: field calls[0].{key} is missing"):
                    parse_ledger(to_json({**json.loads(to_json(LEDGER)), "calls": calls}), "f")

    def test_what_means_nothing_here_is_refused(self) -> None:
        for key, value in (("kind", "walk"), ("hosting", "moon"), ("id", ""), ("id", "../x"), ("id", "a\n")):
            with self.subTest(key=key, value=value):
                with self.refused(f"f: field {key} is {value!r}"):
                    parse_arm(to_json({**ARM._asdict(), key: value}), "f")
        live = HIT._replace(how="live")
        with self.refused("field calls[1].how is 'live', none of 'hit', 'synthesized', 'miss'"):
            parse_ledger(to_json(LEDGER._replace(calls=(HIT, live))), "f")

    def test_an_arm_of_an_older_version_is_read(self) -> None:
        arm = {k: v for k, v in ARM._asdict().items() if k not in ("folder", "cassette_sha", "overwrite")}
        self.assertEqual(parse_arm(to_json(arm), "f").id, "a1")

    def test_a_missing_hand_over_is_none_and_a_broken_one_is_told(self) -> None:
        self.assertIsNone(self.store.read_value(self.store.arm_path, parse_arm))
        self.store.arm_path.write_bytes(b"{")
        with self.refused("arm.json is not a JSON file"):
            self.store.read_value(self.store.arm_path, parse_arm)

    def test_any_session_has_a_place(self) -> None:
        paths = {self.store.recording_path(session) for session in ("", "a", "../x", "\ud800", "ä" * 500)}
        self.assertEqual(len(paths), 5)
        self.assertEqual({path.parent for path in paths}, {self.root / "recordings"})

    def test_the_last_runs_come_newest_first(self) -> None:
        for number in range(5):
            self.store.save_run("shop", f"2026010{number}", {"result": "PASS", "number": number})
        for entry, data in (("20260109.json", b"{"), ("20260108.json", b"[]"), ("20260107.json", b'{"pins": 5}')):
            (self.root / "runs" / "shop" / entry).write_bytes(data)
        (self.root / "runs" / "shop" / "20260106.json").mkdir()
        self.assertEqual([run["number"] for run in self.store.last_runs("shop", 2)], [4, 3])
        self.assertEqual(len(self.store.last_runs("shop", 99)), 5)
        self.assertEqual(self.store.last_runs("shop", 0), [])

    def test_a_value_that_json_cannot_hold_is_told(self) -> None:
        with self.refused("cannot be kept as JSON"):
            to_json(CLAIM._replace(model={1}))

    def test_a_value_of_another_class_is_no_hand_over(self) -> None:
        for value in (FACTS, HIT, SHOP, [1], "text"):
            with self.subTest(value=value):
                with self.assertRaises(TypeError):
                    to_json(value)


def random_value(kind: Any, rng: random.Random, **ready: Any) -> Any:
    """A value of one of the hand-over classes, with texts that break writers."""

    def text() -> str:
        return "".join(rng.choice('a"\\\n\u2028\ud800é\U0001f600\x00 /') for _ in range(rng.randrange(6)))

    makers: dict[Any, Callable[[], Any]] = {
        str: text,
        int: lambda: rng.randrange(-5, 10**12),
        bool: lambda: rng.random() < 0.5,
        float: lambda: rng.choice((0.0, 1.5, 3, 1e300)),
        int | None: lambda: rng.choice((None, 0, 7)),
        tuple[str, ...]: lambda: tuple(text() for _ in range(rng.randrange(3))),
        Any: lambda: rng.choice((None, True, 1, 0.5, text(), [text(), {}], {"k" + text(): [1, None]})),
    }

    def make(told: Any) -> Any:
        return rng.choice(get_args(told)) if get_origin(told) is Literal else makers[told]()

    made = {name: make(told) for name, told in kind.__annotations__.items() if name not in ready}
    return kind(**made, **ready)


# --- pins -----------------------------------------------------------------------------


class Pins(StoreCase):
    def test_pins_that_a_change_makes_bad_are_not_written(self) -> None:
        self.store.save(SHOP, overwrite=False)
        with self.refused("field pins[0]"):
            self.store.change_pins("shop", lambda pins: ("re:",))
        self.assertEqual(self.store.read("shop")[0], SHOP)


if __name__ == "__main__":
    unittest.main()
