"""What is too long, too large or too slow, and is told before it costs anything."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import unittest
from typing import Any
from unittest import mock

from tests.support import load_plugin
from tests.test_cli import CliCase

load_plugin()
from session_cassettes import cli, hooks  # noqa: E402
from session_cassettes.cassette_store import CassetteError  # noqa: E402


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
