"""A cassette that is being run keeps its name, and one that goes leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from unittest import mock

from tests.support import REPO, temp_folder

from session_cassettes.cassette_store import LONGEST_RUN, Cassette, CassetteError, Store

#: Holds a cassette until it is told to go on.
HOLDER = """
import sys
from pathlib import Path
import tests.support
from session_cassettes.cassette_store import Store
with Store(Path(sys.argv[1])).held("shop"):
    print("held", flush=True)
    sys.stdin.readline()
"""


class HoldCase(unittest.TestCase):
    def setUp(self) -> None:
        self.root = temp_folder(self)
        self.store = Store(self.root)
        self.store.prepare()
        for name in ("shop", "shop.v2"):
            self.store.save(Cassette(name, "where?", "8080"), overwrite=False)
            self.store.save_run(name, "1", {"result": "PASS"})

    def held(self) -> list[str]:
        return os.listdir(self.root / "running")


class ARunThatGoesOn(HoldCase):
    def test_its_cassette_is_neither_renamed_nor_removed_until_it_ends(self) -> None:
        with self.store.held("shop"), self.store.held("shop"):  # two runs of one cassette
            for change in (self.store.remove, lambda name: self.store.rename(name, "other")):
                with self.assertRaisesRegex(CassetteError, "a run of 'shop' goes on: wait for its end"):
                    change("shop")
            self.assertEqual((self.store.names(), self.store.count_runs("shop")), (["shop", "shop.v2"], 1))
            self.store.rename("shop.v2", "shopping")  # whose name begins alike
        self.assertEqual(self.held(), [])
        self.store.rename("shop", "other")
        self.assertEqual((self.store.names(), self.store.count_runs("other")), (["other", "shopping"], 1))

    def test_a_run_that_was_killed_holds_nothing(self) -> None:
        words = [sys.executable, "-c", HOLDER, str(self.root)]
        with subprocess.Popen(words, cwd=REPO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout is not None
            self.assertEqual(run.stdout.readline(), "held\n")
            self.store.sweep_handovers(0.0)
            with self.assertRaisesRegex(CassetteError, "goes on"):
                self.store.remove("shop")
            run.kill()
        self.assertEqual(len(self.held()), 1)
        self.store.remove("shop")
        self.assertEqual((self.held(), self.store.names()), ([], ["shop.v2"]))

    def test_what_a_killed_run_left_is_swept_away_after_the_longest_run(self) -> None:
        left = self.root / "running" / f"shop.{'a' * 16}.lock"
        for age, held in ((LONGEST_RUN, [left.name]), (LONGEST_RUN + 3 * 86_400, [])):
            left.write_text("")
            self.store.sweep_handovers(left.stat().st_mtime + age)
            self.assertEqual(self.held(), held)

    def test_a_run_that_fails_lets_go(self) -> None:
        with self.assertRaises(KeyError), self.store.held("shop"):
            raise KeyError
        self.assertEqual(self.held(), [])


@unittest.skipUnless(hasattr(os, "symlink") and os.name != "nt", "needs links")
class ALinkedFolderOfRuns(HoldCase):
    def setUp(self) -> None:
        super().setUp()
        self.elsewhere = temp_folder(self) / "elsewhere"
        (self.root / "runs" / "shop").rename(self.elsewhere)
        (self.root / "runs" / "shop").symlink_to(self.elsewhere)

    def test_the_link_goes_with_the_cassette_and_what_it_leads_to_stays(self) -> None:
        self.store.remove("shop")
        self.assertEqual((self.store.names(), os.listdir(self.root / "runs")), (["shop.v2"], ["shop.v2"]))
        self.assertEqual(os.listdir(self.elsewhere), ["1.json"])

    def test_a_link_to_nothing_is_in_the_way_as_a_folder_is_and_goes_as_one(self) -> None:
        self.elsewhere.rename(self.elsewhere.with_name("moved"))
        self.store.path("shop").unlink()
        with self.assertRaisesRegex(CassetteError, "holds runs of an earlier 'shop'"):
            self.store.rename("shop.v2", "shop")
        self.store.save(Cassette("shop", "where?", "8080"), overwrite=False)
        self.store.remove("shop")
        self.assertEqual(os.listdir(self.root / "runs"), ["shop.v2"])

    def test_a_rename_takes_the_link_along(self) -> None:
        self.store.rename("shop", "other")
        self.assertEqual(self.store.count_runs("other"), 1)
        self.assertTrue((self.root / "runs" / "other").is_symlink())


class RunsThatCannotBeRemoved(HoldCase):
    def test_they_leave_the_cassette_for_another_try(self) -> None:
        with mock.patch("shutil.rmtree", side_effect=PermissionError(13, "Permission denied")):
            with self.assertRaisesRegex(CassetteError, "make its folder writable"):
                self.store.remove("shop")
        self.assertIn("shop", self.store.names())
        self.store.remove("shop")
        self.assertEqual((self.store.names(), os.listdir(self.root / "runs")), (["shop.v2"], ["shop.v2"]))


if __name__ == "__main__":
    unittest.main()
