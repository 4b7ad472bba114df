"""A recorded folder against today's: each kind of change on its own, and nothing where nothing has changed."""

from __future__ import annotations

import json
import os
import random
import re
import time
import unittest
from pathlib import Path
from typing import Any, Callable
from unittest import mock

from tests.support import load_plugin, temp_folder, write_tree

load_plugin()
from session_cassettes.cassette_store import Call, Cassette, Recorder, Snapshot, SnapshotFile  # noqa: E402
from session_cassettes.cassette_store import dump_cassette, parse_cassette  # noqa: E402
from session_cassettes.snapshot import SNAPSHOT_FILE_LIMIT, Redactor, Workspace, take_snapshot  # noqa: E402
from session_cassettes.suite.masks import note_masks  # noqa: E402
from session_cassettes.suite.drift import Change, Drift, compare_files, count_changed, read_again  # noqa: E402

VERSION = "0.22.2"
TOKEN = "ghp_" + "a1B2c3" * 6
OTHER_TOKEN = "ghp_" + "Z9y8X7" * 6
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA75\n" * 3 + "-----END RSA PRIVATE KEY-----"
SHOP = {
    "server/auth.py": "import os\n\nAUTH_PORT = 8080\nTTL = 60\n",
    "server/catalog.py": "ITEMS = []\n",
    "README.md": "The shop.\r\nPort 8080.\r\n",
    "bom.txt": "\ufeffwith a mark\n",
    "secret.txt": f"before\ntoken = {TOKEN}\npostgres://u:hunter2@h/db\nafter\n",
    "key.txt": f"head\n{KEY}\nport 8080\n",
}


def masked(text: str, _: bool = False) -> str:
    """Mask some of what Hermes masks, in its own forms."""
    text = re.sub(r"(?<!\w)ghp_\w{10,}", "«redacted:ghp_…»", text)
    text = re.sub(r"(postgres://[^:\s]+:)[^@\s]+@", r"\1***@", text)
    return re.sub(r"-----BEGIN[A-Z ]*PRIVATE KEY-----[\s\S]*?-----END[A-Z ]*KEY-----", "[REDACTED PRIVATE KEY]", text)


def masked_otherwise(text: str, _: bool = False) -> str:
    """Mask the same in other forms, as another version might."""
    return re.sub(r":hunter2@", ":******@", re.sub(r"ghp_\w{10,}", "[token]", text))


def fails(text: str, _: bool = False) -> str:
    raise ValueError("no")


def redactor(how: Callable[[str, bool], str] = masked) -> Callable[[], Redactor | None]:
    return lambda: Redactor(how, True)


class DriftCase(unittest.TestCase):
    def setUp(self) -> None:
        self.root = temp_folder(self) / "shop"
        self.root.mkdir()

    def record(self, files: dict[str, Any] = SHOP, *more: str, masks: bool = True) -> Cassette:
        """Record a turn that read these files, and more that may not be there."""
        write_tree(self.root, files)
        return self.recorded([*files, *more], masks)

    def recorded(self, names: list[str], masks: bool = True) -> Cassette:
        calls = [Call("search_files", {}, json.dumps({"files": names}))]
        workspace = Workspace.here(str(self.root))
        taken = take_snapshot(
            calls, workspace, redact=Redactor(masked, True), deadline=time.monotonic() + 60, note_masks=note_masks
        )
        if not masks:
            old = {path: file._replace(masks=None) for path, file in taken.files.items()}
            taken = taken._replace(files=old)
        kept = Cassette(
            "shop", "q", "a", cwd=str(self.root), recorder=Recorder(VERSION), snapshot=taken, pins=("8080",)
        )
        return parse_cassette(dump_cassette(kept), "shop.json")  # as it comes from the disk

    def drift(self, cassette: Cassette, how: Callable[[str, bool], str] = masked, version: str = VERSION) -> Drift:
        return compare_files(cassette, Workspace.here(str(self.root)), redactor(how), version)

    def changes(self, cassette: Cassette, **how: Any) -> list[tuple[str, str, str]]:
        return [(one.kind, one.path, one.why) for one in self.drift(cassette, **how).changes]

    def count(self, cassette: Cassette, how: Callable[[str, bool], str] = masked, **more: Any) -> tuple[int, bool]:
        return count_changed(cassette, Workspace.here(str(self.root)), redactor(how), VERSION, **more)

    def rewrite(self, name: str, old: str, new: str) -> None:
        """Change a file, and let its time be another."""
        path = self.root / name
        path.write_bytes(path.read_bytes().decode().replace(old, new).encode())
        os.utime(path, (1, 1))

    def touch(self) -> None:
        """Give all files another time, as a fresh clone has it."""
        for path in self.root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                os.utime(path, (5, 5))


class Untouched(DriftCase):
    def test_an_untouched_folder_has_no_changes(self) -> None:
        cassette = self.record()
        self.assertEqual(self.drift(cassette), Drift(6, (), {}))
        self.assertEqual(self.count(cassette), (0, True))

    def test_another_time_alone_is_no_change(self) -> None:
        for masks in (True, False):
            with self.subTest(masks=masks):
                cassette = self.record(masks=masks)
                self.touch()
                self.assertEqual(self.drift(cassette).changes, ())
                self.assertEqual(self.count(cassette), (0, True))

    def test_two_thousand_files_of_every_kind_have_no_changes(self) -> None:
        made = random.Random(16)
        texts = list(SHOP.values())
        files: dict[str, Any] = {}
        for number in range(2000):
            data: Any = made.choice(texts) + f"file {number}\n" * made.randint(0, 40)
            if number % 50 == 0:
                data = data.encode("utf-16") if number % 100 else b"\0\1\2" + data.encode()
            folder = f"d{number % 37}/e{number % 7}"
            files[f"{folder}/{'.' * (number % 61 == 0)}f{number}{'.pem' * (number % 71 == 0)}.txt"] = data
        write_tree(self.root, files)
        outside = temp_folder(self) / "outside.txt"
        outside.write_text("secret\n")
        links = [f"link{number}.txt" for number in range(40)]
        for number, link in enumerate(links):
            os.symlink(outside if number % 4 == 0 else self.root / list(files)[number], self.root / link)
        os.symlink(self.root / "d1", self.root / "into")
        names = [*files, *links, "into/e1/f1.txt", "nowhere.txt", "big.txt"]
        (self.root / "big.txt").write_bytes(b"x" * (SNAPSHOT_FILE_LIMIT + 1))
        cassette = self.recorded(names)
        self.assertGreater(len(cassette.snapshot.files), 1800)
        self.assertEqual(self.drift(cassette).changes, ())
        self.assertEqual(self.count(cassette, clock=lambda: 0.0), (0, True))
        self.touch()
        self.assertEqual(self.drift(cassette).changes, ())
        self.assertEqual(self.drift(cassette, how=masked_otherwise, version="0.23.0").changes, ())

    def test_another_versions_masks_are_no_change(self) -> None:
        cassette = self.record()
        self.touch()
        self.assertEqual(self.changes(cassette, how=masked_otherwise, version="0.23.0"), [])

    def test_nothing_is_written_and_no_time_changes(self) -> None:
        cassette = self.record()
        self.rewrite("server/auth.py", "8080", "8181")
        before = {path: path.lstat() for path in self.root.rglob("*")}
        self.drift(cassette)
        after = {path: path.lstat() for path in self.root.rglob("*")}
        kept = [(one.st_mtime_ns, one.st_size, one.st_mode) for one in before.values()]
        left = [(one.st_mtime_ns, one.st_size, one.st_mode) for one in after.values()]
        self.assertEqual((list(before), kept), (list(after), left))


class EachKind(DriftCase):
    def test_a_changed_line_is_told_with_both_texts_and_its_number(self) -> None:
        cassette = self.record()
        self.rewrite("server/auth.py", "8080", "8181")
        found = self.drift(cassette)
        self.assertEqual(
            found.changes, (Change("server/auth.py", "changed", "", 3, "AUTH_PORT = 8080", "AUTH_PORT = 8181"),)
        )
        self.assertEqual(list(found.texts), ["server/auth.py"])
        self.assertEqual(self.count(cassette), (1, True))

    def test_a_change_with_the_old_size_and_time_is_found_too(self) -> None:
        cassette = self.record()
        path = self.root / "server/auth.py"
        times = path.stat()
        self.rewrite("server/auth.py", "8080", "8181")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.assertEqual(self.changes(cassette), [("changed", "server/auth.py", "")])

    def test_lines_at_the_end_and_missing_ones(self) -> None:
        table = (
            ("TTL = 60\n", "TTL = 60\nMORE = 1\n", 5, None, "MORE = 1"),
            ("TTL = 60\n", "", 4, "TTL = 60", None),
            ("import os\n", "", 1, "import os", ""),
        )
        for old, new, line, was, now in table:
            with self.subTest(new=new):
                cassette = self.record()
                self.rewrite("server/auth.py", old, new)
                self.assertEqual(
                    self.drift(cassette).changes, (Change("server/auth.py", "changed", "", line, was, now),)
                )

    def test_line_ends_and_a_byte_order_mark_are_content(self) -> None:
        table = (
            ("README.md", "\r\n", "\n", "its line ends differ"),
            ("server/auth.py", "\n", "\r\n", "its line ends differ"),
            ("bom.txt", "\ufeff", "", "its byte order mark differs"),
            ("server/catalog.py", "import", "\ufeffimport", None),
            ("server/catalog.py", "[]\n", "[]", "its last line end differs"),
        )
        for name, old, new, why in table:
            with self.subTest(name=name, new=new):
                cassette = self.record()
                self.rewrite(name, old, new)
                self.assertEqual(self.changes(cassette), [("changed", name, why)] if why else [])
                self.assertEqual(self.count(cassette), (1 if why else 0, True))

    def test_a_file_that_is_gone(self) -> None:
        cassette = self.record()
        (self.root / "server/auth.py").unlink()
        self.assertEqual(self.changes(cassette), [("gone", "server/auth.py", "")])
        self.assertEqual(self.count(cassette), (1, True))

    def test_a_folder_that_is_gone_or_a_file_now(self) -> None:
        cassette = self.record()
        (self.root / "server").rename(self.root / "moved")
        gone = [("gone", "server/auth.py", ""), ("gone", "server/catalog.py", "")]
        self.assertEqual(self.changes(cassette), gone)
        (self.root / "server").write_text("a file\n")
        self.assertEqual(self.changes(cassette), gone)
        self.assertEqual(self.count(cassette), (2, True))

    def test_what_was_looked_for_in_vain_and_is_there_now(self) -> None:
        cassette = self.record(SHOP, "docs/ports.md")
        self.assertEqual(self.changes(cassette), [])
        write_tree(self.root, {"docs/ports.md": "8080\n"})
        self.assertEqual(self.changes(cassette), [("new", "docs/ports.md", "it was not there")])

    def test_another_kind_of_file(self) -> None:
        became: tuple[tuple[str, Callable[[Path], Any]], ...] = (
            ("binary now", lambda path: path.write_bytes(b"a\0b")),
            ("not UTF-8 now", lambda path: path.write_bytes(b"\xff\xfea")),
            ("too large for a snapshot now", lambda path: path.write_bytes(b"a" * (SNAPSHOT_FILE_LIMIT + 1))),
            ("not a regular file now", lambda path: (path.unlink(), path.mkdir())),
            ("not a regular file now", lambda path: (path.rmdir(), os.mkfifo(path))),
        )
        cassette = self.record()
        for why, make in became:
            with self.subTest(why):
                make(self.root / "server/auth.py")
                self.assertEqual(self.changes(cassette), [("changed", "server/auth.py", why)])
                self.assertEqual(self.count(cassette), (1, True))

    def test_what_was_no_text_and_is_another_thing_now(self) -> None:
        cassette = self.record({"a.bin": b"\0", "b.bin": b"\0", "c.txt": b"\xff\xff"})
        self.assertEqual(self.changes(cassette), [])
        (self.root / "a.bin").write_text("text")
        (self.root / "b.bin").unlink()
        self.assertEqual(
            self.changes(cassette), [("changed", "a.bin", "it was binary"), ("gone", "b.bin", "it was binary")]
        )

    def test_a_link_in_its_place_is_told_and_never_left_through(self) -> None:
        cassette = self.record()
        outside = temp_folder(self) / "auth.py"
        outside.write_text(SHOP["server/auth.py"])
        path = self.root / "server/auth.py"
        for target, why in (
            (outside, "a link out of the folder now"),
            (self.root / "bom.txt", "a link to bom.txt now"),
            (self.root / ".env", "hidden now, or a link to what is"),
        ):
            with self.subTest(why):
                (self.root / ".env").write_text("SECRET=1")
                path.unlink()
                path.symlink_to(target)
                self.assertEqual(self.changes(cassette), [("changed", "server/auth.py", why)])

    def test_a_folder_that_is_a_link_out_now(self) -> None:
        cassette = self.record()
        away = temp_folder(self) / "server"
        (self.root / "server").rename(away)
        (self.root / "server").symlink_to(away)
        why = "a link out of the folder now"
        self.assertEqual(
            self.changes(cassette), [("changed", "server/auth.py", why), ("changed", "server/catalog.py", why)]
        )

    def test_a_recorded_link_that_leads_elsewhere_or_is_none(self) -> None:
        write_tree(self.root, SHOP)
        link = self.root / "port.py"
        link.symlink_to("server/auth.py")
        cassette = self.recorded(["port.py"])
        self.assertEqual(self.changes(cassette), [])
        link.unlink()
        self.assertEqual(self.changes(cassette), [("gone", "port.py", "it was a link")])
        link.symlink_to("server/catalog.py")
        why = "no link to server/auth.py any more"
        self.assertEqual(self.changes(cassette), [("changed", "port.py", why)])
        link.unlink()
        link.write_text("a file")
        self.assertEqual(self.changes(cassette), [("changed", "port.py", why)])

    def test_what_cannot_be_read_is_unknown(self) -> None:
        cassette = self.record()
        (self.root / "server/auth.py").unlink()
        (self.root / "server/auth.py").symlink_to("auth.py")  # in a circle: so that it cannot be read by root either
        self.assertEqual(self.changes(cassette), [("unknown", "server/auth.py", "unreadable")])

    def test_paths_that_no_recording_gives_are_unknown_and_opened_nowhere(self) -> None:
        outside = temp_folder(self) / "x"
        outside.write_text("secret")
        files = {name: SnapshotFile("a", 1) for name in ("../x", str(outside), "", ".", "\0", "a/../../x")}
        cassette = Cassette("c", "q", "a", cwd=str(self.root), snapshot=Snapshot(files))
        kinds = {(kind, why) for kind, _, why in self.changes(cassette)}
        self.assertEqual(kinds, {("unknown", "outside the folder")})
        self.assertTrue(self.count(cassette)[1])


class Secrets(DriftCase):
    def told(self, cassette: Cassette, **how: Any) -> str:
        return repr(self.drift(cassette, **how))

    def test_another_secret_of_the_same_kind_is_no_change_and_is_never_told(self) -> None:
        for new in (OTHER_TOKEN, OTHER_TOKEN + "longer"):
            for masks in (True, False):
                with self.subTest(new=new, masks=masks):
                    cassette = self.record(masks=masks)
                    self.rewrite("secret.txt", TOKEN, new)
                    self.assertEqual(self.drift(cassette).changes, ())
                    self.assertEqual(self.count(cassette), (0, True))

    def test_a_line_that_holds_a_secret_is_told_masked(self) -> None:
        cassette = self.record()
        self.rewrite("secret.txt", f"token = {TOKEN}", f"key = {OTHER_TOKEN}")
        change = Change("secret.txt", "changed", "", 2, "token = «redacted:ghp_…»", "key = «redacted:ghp_…»")
        self.assertEqual(self.drift(cassette).changes, (change,))
        self.assertNotIn("Z9y8X7", self.told(cassette))

    def test_a_secret_that_a_recording_kept_plain_is_told_masked(self) -> None:
        """Hermes's redaction was switched off while it recorded."""
        write_tree(self.root, SHOP)
        plain = {name: SnapshotFile(text, len(text.encode()), masks=()) for name, text in SHOP.items()}
        cassette = Cassette("c", "q", "a", cwd=str(self.root), recorder=Recorder(VERSION), snapshot=Snapshot(plain))
        self.assertEqual(self.drift(cassette).changes, ())
        self.rewrite("secret.txt", f"token = {TOKEN}", f"key = {TOKEN}")
        (change,) = self.drift(cassette).changes
        self.assertEqual((change.was, change.now), ("token = «redacted:ghp_…»", "key = «redacted:ghp_…»"))

    def test_without_a_redaction_that_works_no_text_is_told(self) -> None:
        for how in (fails, lambda text, _: None):
            with self.subTest(how=how):
                cassette = self.record()
                self.assertEqual(self.drift(cassette, how=how).changes, ())
                self.rewrite("server/auth.py", "8080", "8181")
                self.rewrite("secret.txt", "before", "bef0re")
                why = "its text cannot be shown: redaction failed"
                self.assertEqual(
                    self.drift(cassette, how=how),
                    Drift(
                        6, (Change("secret.txt", "changed", why, 1), Change("server/auth.py", "changed", why, 3)), {}
                    ),
                )

    def test_what_can_be_compared_by_no_means_is_unknown(self) -> None:
        cassette = self.record()
        self.rewrite("secret.txt", TOKEN, TOKEN + "longer")
        self.assertEqual(self.changes(cassette, how=fails), [("unknown", "secret.txt", "redaction failed")])
        no_redaction = compare_files(cassette, Workspace.here(str(self.root)), lambda: None, VERSION)
        self.assertEqual([one.why for one in no_redaction.changes], ["no redaction"])

    def test_a_line_of_two_secrets_is_compared_after_redaction_alone(self) -> None:
        line = f"a = {TOKEN}, b = {TOKEN}, port = 8080"
        cassette = self.record({"two.txt": line + "\n"})
        self.rewrite("two.txt", "8080", "8181")  # as long as before, and all of the line is one mask
        self.assertEqual(self.changes(cassette), [("changed", "two.txt", "")])
        why = "this Hermes masks it otherwise"
        self.assertEqual(self.changes(cassette, how=masked_otherwise, version="0.23.0"), [("unknown", "two.txt", why)])

    def test_such_a_line_is_the_same_where_all_between_its_secrets_is(self) -> None:
        cassette = self.record({"two.txt": f"a = {TOKEN}, b = {TOKEN}, port = 8080\n"})
        self.touch()
        self.assertEqual(self.changes(cassette, how=masked_otherwise, version="0.23.0"), [])

    def test_lines_behind_a_private_key_are_counted_in_the_file_itself(self) -> None:
        cassette = self.record()
        self.rewrite("key.txt", "8080", "8181")
        self.assertEqual(self.drift(cassette).changes, (Change("key.txt", "changed", "", 7, "port 8080", "port 8181"),))

    def test_a_longer_private_key_is_no_change_and_none_in_its_place_is(self) -> None:
        cassette = self.record()
        self.rewrite("key.txt", "75\n-----END", "75\nMIIEp\n-----END")
        self.assertEqual(self.changes(cassette), [])
        self.rewrite("key.txt", "PRIVATE", "PUBLIC")
        self.assertEqual(self.changes(cassette), [("changed", "key.txt", "")])


class InPassing(DriftCase):
    def test_files_of_the_same_size_and_time_are_not_opened(self) -> None:
        cassette = self.record()
        with mock.patch("os.open", side_effect=AssertionError("opened")):
            self.assertEqual(self.count(cassette, how=fails), (0, True))

    def test_it_ends_when_its_time_is_up_and_says_so(self) -> None:
        cassette = self.record()
        for name in SHOP:
            (self.root / name).unlink()
        ticks = iter([0.0, 0.0, 0.1, 0.2, 9.0])
        self.assertEqual(self.count(cassette, clock=lambda: next(ticks)), (3, False))

    def test_what_cannot_be_told_is_not_counted(self) -> None:
        cassette = self.record()
        self.rewrite("secret.txt", TOKEN, TOKEN + "longer")
        self.assertEqual(self.count(cassette, how=fails), (0, True))


class OtherSystems(DriftCase):
    def test_where_case_carries_no_meaning_another_case_is_the_same_file(self) -> None:
        cassette = self.record()
        (self.root / "server/auth.py").rename(self.root / "server/Auth.py")
        folded = Workspace(str(self.root), fold_case=True)
        self.assertEqual(compare_files(cassette, folded, redactor(), VERSION).changes, ())
        self.assertEqual(self.changes(cassette), [("gone", "server/auth.py", "")])

    def test_where_no_folder_can_be_opened_files_are_read_by_their_resolved_paths(self) -> None:
        cassette = self.record(SHOP, "nowhere.md")
        outside = temp_folder(self) / "bom.txt"
        outside.write_text("x")
        with mock.patch("os.supports_dir_fd", set()):
            self.assertEqual(self.changes(cassette), [])
            (self.root / "bom.txt").unlink()
            (self.root / "bom.txt").symlink_to(outside)
            self.rewrite("server/auth.py", "8080", "8181")
            self.assertEqual(
                self.changes(cassette),
                [("changed", "bom.txt", "a link out of the folder now"), ("changed", "server/auth.py", "")],
            )

    def test_windows_names_of_devices_and_streams_are_read_nowhere(self) -> None:
        workspace = Workspace(str(self.root), windows=True, fold_case=True)
        names = ["con", "a.txt:stream", "c:x", "\\\\host\\share\\x", "..\\x", "aux.txt", "d/nul"]
        self.assertEqual([one.reason for one in read_again(names, workspace)], ["outside the folder"] * len(names))


if __name__ == "__main__":
    unittest.main()
