"""What is too long, too large or too slow, and is told before it costs anything."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import shutil
import subprocess
import sys
import time
import tracemalloc
import unittest
from typing import Any, Callable
from unittest import mock

from tests.support import load_plugin
from tests.test_cli import CliCase

load_plugin()
from session_cassettes import cli, hooks  # noqa: E402
from session_cassettes.cassette_store import Call, CassetteError, Snapshot, SnapshotFile, dump_cassette, to_json  # noqa: E402


def least(work: Callable[[], object]) -> float:
    """The processor time that some work takes, in seconds: the least of three, since machines are noisy."""
    spent = []
    for _ in range(3):
        before = time.process_time()
        work()
        spent.append(time.process_time() - before)
    return min(spent)


class Requests(CliCase):
    """A request is one argument of the session that replays it."""

    def refused(self, request: str, platform: str) -> str:
        with self.assertRaises(CassetteError) as raised:
            hooks.check_length(request, platform, {"HOME": "/"})
        return str(raised.exception)

    def test_the_longest_argument_of_linux_is_taken_and_no_longer_one(self) -> None:
        for longest, more in (("x" * 131_063, "x"), ("é" * 65_531, "é"), ("🙂" * 32_765, "🙂")):
            hooks.check_length(longest, "linux")
            self.assertIn("131,071", self.refused(longest + more, "linux"))

    @unittest.skipUnless(sys.platform == "linux", "the limit of Linux")
    def test_that_is_the_limit_of_the_system_itself(self) -> None:
        def start(request: str) -> None:
            subprocess.run([sys.executable, "-S", "-c", "", f"--query={request}"], check=True)

        start("x" * 131_063)
        with self.assertRaises(OSError):
            start("x" * 131_064)

    def test_on_windows_the_whole_line_counts_in_utf_16_as_it_is_quoted(self) -> None:
        rng = random.Random(5)
        for alphabet in ("x", 'x"', "x\\", '\\"', "🙂", 'x "\\é🙂'):
            for length in (7_000, 10_000, 15_000, 20_000, 30_000, 31_000):
                request = "".join(rng.choice(alphabet) for _ in range(length))
                line = subprocess.list2cmdline(["h", f"--query={request}"])
                units = len(line.encode("utf-16-le")) // 2 + 2_048
                with self.subTest(alphabet=alphabet, length=length):
                    if units > 32_766 + 4:
                        self.assertIn("32,766", self.refused(request, "win32"))
                    elif units < 32_766 - 4:
                        hooks.check_length(request, "win32")

    def test_elsewhere_the_environment_counts_too(self) -> None:
        with mock.patch("os.sysconf", return_value=1_048_576):
            hooks.check_length("x" * 1_000_000, "darwin", {"HOME": "/"})
            self.assertIn("1,048,576", self.refused("x" * 1_048_000, "darwin"))
            with self.assertRaises(CassetteError):
                hooks.check_length("x" * 1_000_000, "darwin", {"BIG": "y" * 50_000})

    def test_too_long_a_request_is_refused_when_it_is_recorded_and_before_a_run(self) -> None:
        long = "where? " + "x" * 2_000_000
        with mock.patch.object(cli.subprocess, "Popen", side_effect=AssertionError("a process was started")):
            for words in (("record", "new", "--query", long), ("run", "old")):
                with self.subTest(words=words[:2]):
                    self.keep("old", request=long)
                    status, out, err = self.run_command(*words)
                    self.assertEqual((status, out, err.count("\n")), (2, "", 1))
                    self.assertIn("too long to be replayed", err)
        self.host.slash("/cassette record new")
        self.host.end_turn(self.host.start_turn(long), "done")
        self.assertEqual(self.store.names(), ["old"])

    def test_what_is_no_utf_8_is_refused(self) -> None:
        with self.assertRaises(CassetteError):
            hooks.check_recordable("caf\udce9?")
        status, _, err = self.run_command("record", "new", "--query", "caf\udce9?")
        self.assertEqual((status, "UTF-8" in err, err.count("\n")), (2, True, 1))
        self.keep("shop", pins=())
        status, _, err = self.run_command("pin", "shop", "caf\udce9")
        self.assertEqual((status, "UTF-8" in err, err.count("\n")), (2, True, 1))
        self.assertEqual(self.store.read("shop")[0].pins, ())


class Listing(CliCase):
    """`list` costs little for any file, and `show` refuses what it could not live with."""

    MANY = 30 * 2**20

    def whole(self, **changes: Any) -> bytes:
        """A cassette that somebody edited."""
        return json.dumps({**json.loads(dump_cassette(self.cassette)), "name": "odd", **changes}).encode()

    def setUp(self) -> None:
        super().setUp()
        self.cassette = self.keep("odd")

    def files(self) -> dict[str, tuple[bytes, str]]:
        """Each odd file, and what `list` and `show` say of it."""
        heavy = "[a-\U0010ffff]"
        return {
            "a pattern of 56 KB": (self.whole(pins=["re:" + heavy * 4_000]), "field pins[0] has 20,003 characters"),
            "patterns that compile slowly": (self.whole(pins=["re:" + heavy * 700] * 12), ""),
            "a warning of 10 MB": (self.whole(warnings=["x " * 5_000_000]), "warnings[0] has 10,000,000 characters"),
            "many warnings": (self.whole(warnings=["x"] * 1_001), "field warnings has 1,001 entries, over 1,000"),
            "lists": (b"[" + b"[]," * (self.MANY // 3) + b"1]", "holds more than 1,000,000 values"),
            "numbers": (b"[" + b"1," * (self.MANY // 2) + b"1]", "holds more than 1,000,000 values"),
            "strings": (b"[" + b'"",' * (self.MANY // 3) + b"1]", "holds more than 1,000,000 values"),
            "keys": (b"{" + b'"":1,' * (self.MANY // 5) + b'"":1}', "holds more than 1,000,000 values"),
            "few lists": (b"[" + b"[]," * 40_000 + b"1]", "should be an object, but it is a list"),
            "a long answer": (self.whole(answer="x" * self.MANY), "field answer has 31,457,280 characters"),
            "blanks": (b" " * self.MANY, "is not a JSON file"),
            "quotes": (b'"\\"' * (self.MANY // 3), "is not a JSON file"),
            "brackets": (b"[" * 120_000, "nested too deeply"),
        }

    def test_any_file_costs_little_to_list(self) -> None:
        for name, (data, _) in self.files().items():
            with self.subTest(name=name):
                self.store.path("odd").write_bytes(data)
                tracemalloc.start()
                self.summed()
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                self.assertLess(peak, 50 * 2**20)
                self.assertLess(
                    least(self.summed), 0.5
                )  # 0.03 s on an idle machine, and to decode it all takes over 1 s
                status, out, err = self.run_command("list")
                self.assertEqual((status, err), (0, ""))
                self.assertLess(len(out), 8_000)

    def summed(self) -> None:
        with contextlib.suppress(CassetteError):
            self.store.summary("odd")

    def test_what_could_not_be_shown_is_refused_in_one_line_at_little_cost(self) -> None:
        for name, (data, told) in self.files().items():
            if told:
                with self.subTest(name=name):
                    self.store.path("odd").write_bytes(data)
                    before = time.process_time()
                    status, out, err = self.run_command("show", "odd")
                    self.assertLess(time.process_time() - before, 3.0)
                    self.assertEqual((status, out, err.count("\n")), (2, "", 1))
                    self.assertIn(told, err)

    def test_a_warning_that_names_each_call_as_1_0_0_did_is_no_reason_to_refuse_a_cassette(self) -> None:
        long = ", ".join(["write_file"] * 2_000) + ": not a read-only tool"
        self.keep("old", warnings=(long,))
        for words in (("list",), ("show", "old")):
            with self.subTest(words=words):
                status, out, err = self.run_command(*words)
                self.assertEqual((status, err), (0, ""))
                self.assertNotIn("broken", out)

    def test_a_valid_cassette_of_the_largest_size_loads_and_is_listed(self) -> None:
        rows = "1,2,3,[4],{5}\n" * 140_000  # as crowded as a table, but all of it text
        calls = tuple(Call("read_file", {"path": f"{n}"}, rows[: 2**21]) for n in range(6))
        files = {f"{n}.csv": SnapshotFile(rows[: 2**19], 2**19) for n in range(16)}
        kept = self.keep("large", calls=calls, snapshot=Snapshot(files))
        self.assertEqual(self.store.read("large")[0], kept)
        found = self.store.summary("large")
        self.assertEqual((found.calls, found.files, found.warnings), (6, 16, ()))

    def test_a_large_file_that_somebody_edited_is_told_and_not_read(self) -> None:
        self.keep("odd", calls=(Call("read_file", {}, "x" * 2**21),) * 3)
        data = json.loads(self.store.path("odd").read_bytes())
        self.store.path("odd").write_text(json.dumps(data, indent=1))
        _, out, _ = self.run_command("list")
        self.assertRegex(out, r"(?m)^odd +\? +\? +\? ")
        self.assertIn("hermes cassette show odd", " ".join(out.split()))
        (row,) = json.loads(self.run_command("list", "--json")[1])["cassettes"]
        self.assertEqual((row["calls"], row["files"], row["pins"]), (None, None, None))
        self.assertEqual(self.run_command("show", "odd")[0], 0)

    def test_the_last_run_is_read_by_its_head(self) -> None:
        run = {"name": "odd", "result": "PASS", "model": "m", "pins": [], "reasons": []}
        for answer in ("8080", "x" * 10_000_000):
            with self.subTest(size=len(answer)):
                self.store.save_run(
                    "odd", f"2026010{len(str(len(answer)))}T000000-x", {"calls": [], "answer": answer, **run}
                )
                found = self.store.last_result("odd")
                self.assertEqual((found or {}).get("result"), "PASS")
                self.assertEqual(self.store.last_runs("odd", 1)[0]["answer"], answer)
        older = {"name": "odd", "result": "FAIL", "exit_code": 1, "reasons": [], "answer": "x" * 200_000, "model": "m"}
        (self.store.runs("odd") / "20260301T000000-y.json").write_bytes(to_json(older))  # as 1.0.0 wrote it
        self.assertEqual((self.store.last_result("odd") or {}).get("result"), "FAIL")
        (self.store.runs("odd") / "20260301T000000-y.json").unlink()
        path = self.store.runs("odd") / "20270101T000000-x.json"
        for data in (b"[" * 10_000_000, b'{"result": "FAIL", "x": [' + b"[]," * 10_000_000 + b"1]}", b"", b"[]"):
            with self.subTest(data=data[:20]):
                path.write_bytes(data)
                self.assertEqual((self.store.last_result("odd") or {}).get("result"), "PASS")
                self.assertLess(least(lambda: self.store.last_result("odd")), 0.5)


class Doctor(CliCase):
    """What keeps anything from being written is a thing to do, told once."""

    def examined(self, gateway: bool) -> list[str]:
        if gateway:
            self.host.ctx.session_cwd = lambda: ""  # type: ignore[attr-defined]
        with mock.patch.object(cli.subprocess, "Popen", side_effect=AssertionError("the gateway was asked")):
            status, out, err = self.run_command("doctor")
        self.assertEqual((status, err), (2, ""))
        self.assertIn("which cannot be written to", out)
        self.assertIn("cassettes  1, 0 broken", out)
        return [line for line in out.splitlines() if line.startswith("to do: ")]

    def test_a_full_disk(self) -> None:
        self.keep()
        full = mock.patch("os.fsync", side_effect=OSError(errno.ENOSPC, "No space left on device"))
        for gateway in (False, True):
            with self.subTest(gateway=gateway), full:
                (told,) = self.examined(gateway)
                self.assertIn("(No space left on device): free some space on its disk", told)

    def test_a_read_only_folder(self) -> None:
        self.keep()
        real = os.open

        def open_to_read(path: Any, flags: int, *rest: Any, **more: Any) -> int:
            if flags & os.O_CREAT and str(path).startswith(str(self.store.root)):
                raise OSError(errno.EROFS, "Read-only file system", str(path))
            return real(path, flags, *rest, **more)

        for gateway in (False, True):
            with self.subTest(gateway=gateway), mock.patch("os.open", open_to_read):
                (told,) = self.examined(gateway)
                self.assertIn("(Read-only file system): make its folder writable", told)

    def test_a_file_in_the_folders_place(self) -> None:
        shutil.rmtree(self.store.root)
        self.store.root.write_text("x")
        status, out, _ = self.run_command("doctor")
        self.assertEqual((status, out.count("to do: ")), (2, 1), out)

    def test_a_folder_that_can_be_written_to_is_left_as_it_was(self) -> None:
        self.keep()
        left = {path.name for path in self.store.root.iterdir()} | {"waiting.lock"}
        status, out, _ = self.run_command("doctor")
        self.assertEqual((status, out.splitlines()[-1]), (0, "nothing to do"))
        self.assertEqual({path.name for path in self.store.root.iterdir()}, left)


class Interruptions(CliCase):
    def test_ctrl_c_says_what_was_not_done(self) -> None:
        self.keep()
        for words, told in (
            (("record", "new", "--query", "where?"), "interrupted: 'new' was not recorded"),
            (("record", "shop", "--query", "where?", "--overwrite"), "interrupted: 'shop' was not recorded"),
            (("run", "shop"), "interrupted: nothing was graded"),
        ):
            with (
                self.subTest(words=words),
                mock.patch.object(cli, "find_ripgrep", return_value=""),
                mock.patch.object(cli, "run_process", side_effect=KeyboardInterrupt),
            ):
                status, out, err = self.run_command(*words)
                self.assertEqual((status, out, err), (130, "", f"hermes cassette: {told}\n"))
        self.assertEqual(self.store.names(), ["shop"])


if __name__ == "__main__":
    unittest.main()
