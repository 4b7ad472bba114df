"""Git's index: what a real git writes, and what somebody else might have written there."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import unittest
from pathlib import Path
from unittest import mock

from tests.support import temp_folder, write_tree

from session_cassettes.cassette_store import Cassette, dump_cassette, parse_cassette
from session_cassettes.suite import tracked
from tests.test_suite_names import TreeCase

FILES = {"a.py": "x\n", "src/b.py": "y\n", "src/deep/c": "z\n", ".editorconfig": "", "docs/ä.md": "", "new.txt": ""}
TRACKED = {"a.py", "src/b.py", "src/deep/c", ".editorconfig", "docs/ä.md"}


@unittest.skipIf(os.name == "nt" or not shutil.which("git"), "needs git, and a system that is not Windows")
class GitCase(TreeCase):
    def setUp(self) -> None:
        super().setUp()
        cleaned = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        patched = mock.patch.dict(os.environ, cleaned, clear=True)
        patched.start()
        self.addCleanup(patched.stop)

    def git(self, *words: str, cwd: Path | None = None, status: int = 0) -> str:
        me = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
        done = subprocess.run(["git", *me, *words], cwd=cwd or self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def repository(self, *options: str) -> None:
        write_tree(self.folder, FILES)
        self.git("init", "-q", *options)
        self.git("add", *sorted(TRACKED))

    def untracked(self) -> list[str] | None:
        found = self.taken(whole=True).untracked
        return None if found is None else list(found)

    def index(self) -> Path:
        return self.folder / ".git" / "index"


class WhatGitWrites(GitCase):
    def test_the_files_that_git_does_not_track_are_known(self) -> None:
        self.repository()
        self.assertEqual(self.untracked(), ["new.txt"])
        self.git("commit", "-qm", "one")
        (self.folder / "link").symlink_to("a.py")
        self.assertEqual(self.untracked(), ["link", "new.txt"])
        self.git("add", "link", "new.txt")
        self.assertEqual(self.untracked(), [])
        self.git("rm", "-q", "--cached", "a.py")
        self.assertEqual(self.untracked(), ["a.py"])

    def test_every_version_of_an_index_is_read_as_git_reads_it(self) -> None:
        deep = {f"{'long' * n}/{'x' * n}{m}": "" for n in range(1, 40, 3) for m in range(3)}
        write_tree(self.folder, deep)
        self.repository()
        self.git("add", ".")
        for version in (2, 3, 4):
            with self.subTest(version):
                self.git("update-index", "--index-version", str(version))
                if version == 3:
                    self.git("rm", "-q", "--cached", "new.txt")
                    self.git("add", "-N", "new.txt")  # intends to add it: a flag that version 2 has not
                    self.assertEqual(self.index().read_bytes()[7], 3)
                listed = set(self.git("ls-files", "-z").split("\0")) - {""}
                self.assertEqual(tracked.read_index(self.index().read_bytes()), listed)
                self.assertGreater(len(listed), 40)

    def test_a_name_that_is_longer_than_its_flags_can_say_is_read(self) -> None:
        self.repository()
        name = "/".join("d" * 200 for _ in range(24)) + "/f"
        sha = self.git("hash-object", "-w", "a.py").strip()
        for version in ("2", "4"):
            self.git("update-index", "--index-version", version, "--add", "--cacheinfo", f"100644,{sha},{name}")
            self.assertEqual(tracked.read_index(self.index().read_bytes()), {*TRACKED, name})

    def test_a_sum_that_was_left_out_is_none_that_is_wrong(self) -> None:
        self.repository()
        data = self.index().read_bytes()
        self.assertEqual(tracked.read_index(data[:-20] + bytes(20)), TRACKED)
        self.assertIsNone(tracked.read_index(data[:-20] + bytes(19) + b"1"))

    def test_what_is_kept_comes_back(self) -> None:
        self.repository()
        taken = self.taken(whole=True)
        cassette = Cassette("x", request="q", answer="a", cwd=str(self.folder), snapshot=taken)
        kept = parse_cassette(dump_cassette(cassette), "x.json")
        self.assertEqual(kept.snapshot.untracked, ("new.txt",))


class WhatIsNotCertain(GitCase):
    def test_only_the_whole_of_a_folder_has_it_looked_at(self) -> None:
        self.repository()
        self.assertIsNone(self.taken().untracked)
        self.assertIsNone(self.taken(whole=True, names=False).untracked)

    def test_no_repository_or_one_that_lies_elsewhere(self) -> None:
        write_tree(self.folder, FILES)
        self.assertIsNone(self.untracked())
        self.git("init", "-q", "--separate-git-dir", str(temp_folder(self) / "git"))
        self.git("add", "a.py")
        self.assertIsNone(self.untracked())

    def test_what_is_tracked_and_not_named(self) -> None:
        for name in (".github/workflows/ci.yml", "gone.py"):
            with self.subTest(name):
                self.repository()
                write_tree(self.folder, {name: "x"})
                self.git("add", name)
                if name == "gone.py":
                    (self.folder / name).unlink()
                self.assertIsNone(self.untracked())
                self.git("rm", "-q", "--cached", name)
                self.assertEqual(self.untracked(), ["new.txt"])

    def test_a_repository_within_and_a_merge(self) -> None:
        self.repository()
        self.git("commit", "-qm", "one")
        sha = self.git("rev-parse", "HEAD").strip()
        self.git("update-index", "--add", "--cacheinfo", f"160000,{sha},inner")
        self.assertIsNone(tracked.read_index(self.index().read_bytes()))
        self.git("rm", "-q", "--cached", "inner")
        self.git("checkout", "-qb", "other")
        (self.folder / "a.py").write_text("theirs\n")
        self.git("commit", "-qam", "theirs")
        self.git("checkout", "-q", "-")
        (self.folder / "a.py").write_text("ours\n")
        self.git("commit", "-qam", "ours")
        self.assertEqual(self.untracked(), ["new.txt"])
        self.git("merge", "other", status=1)
        self.assertIsNone(self.untracked())

    def test_an_index_of_another_kind(self) -> None:
        self.repository()
        self.git("commit", "-qm", "one")
        self.git("update-index", "--split-index")
        self.assertIsNone(self.untracked())
        self.git("update-index", "--no-split-index")
        self.assertEqual(self.untracked(), ["new.txt"])

    def test_hashes_of_another_kind(self) -> None:
        self.repository("--object-format=sha256")
        self.assertIsNone(self.untracked())
        self.assertIsNone(tracked.read_index(self.index().read_bytes()))

    def test_a_configuration_that_may_lead_elsewhere(self) -> None:
        for name, value in (("core.worktree", "/tmp"), ("core.bare", "true"), ("include.path", "more")):
            with self.subTest(name):
                shutil.rmtree(self.folder / ".git", ignore_errors=True)
                self.repository()
                self.git("config", "--file", str(self.folder / ".git" / "config"), name, value)
                self.assertIsNone(self.untracked())

    def test_variables_that_change_what_git_says(self) -> None:
        self.repository()
        for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_TRACE", "GIT_CONFIG_COUNT", "GIT_NEW_AND_UNKNOWN"):
            with self.subTest(name), mock.patch.dict(os.environ, {name: "1"}):
                self.assertIsNone(self.untracked())
        with mock.patch.dict(
            os.environ, {"GIT_EDITOR": "vi", "GIT_AUTHOR_NAME": "a", "GIT_SSL_CAINFO": "x", "GIT_SSH": "x"}
        ):
            self.assertEqual(self.untracked(), ["new.txt"])

    def test_anothers_repository(self) -> None:
        self.repository()
        with mock.patch("os.geteuid", return_value=os.geteuid() + 1):
            self.assertIsNone(self.untracked())

    def test_no_git_and_windows(self) -> None:
        self.repository()
        with mock.patch("shutil.which", return_value=None):
            self.assertIsNone(self.untracked())
        with mock.patch.object(tracked, "os", mock.Mock(wraps=os, name="nt")) as faked:
            faked.name = "nt"
            self.assertIsNone(self.untracked())


class WhatSomebodyElseWrote(GitCase):
    def test_a_broken_index_is_none_and_ends_at_once(self) -> None:
        self.repository()
        chance = random.Random(7)
        for version in ("2", "4"):
            self.git("update-index", "--index-version", version)
            good = self.index().read_bytes()
            for end in range(0, len(good) - 1, 3):
                self.assertIsNone(tracked.read_index(good[:end]))
            for _ in range(400):
                data = bytearray(good[:-20] + bytes(20))  # with no sum to find it out
                for _ in range(chance.randint(1, 4)):
                    data[chance.randrange(len(data))] = chance.randrange(256)
                found = tracked.read_index(bytes(data))
                self.assertTrue(found is None or all(isinstance(one, str) for one in found))
        self.index().write_bytes(b"DIRC\0\0\0\2\xff\xff\xff\xff" + bytes(20))
        self.assertIsNone(self.untracked())


if __name__ == "__main__":
    unittest.main()
