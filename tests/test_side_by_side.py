"""The suite that runs its parts at the same time: nothing that happened is lost, and what failed has failed."""

from __future__ import annotations

import io
import threading
import unittest

from tests.lanes.case import Pool, SideBySide


def run(*cases: type[unittest.TestCase]) -> unittest.TestResult:
    suite = SideBySide(unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in cases)
    return unittest.TextTestRunner(stream=io.StringIO(), verbosity=2).run(suite)


class Parts(unittest.TestCase):
    def test_both_parts_run_at_the_same_time(self) -> None:
        together = threading.Barrier(2)

        class One(unittest.TestCase):
            def test_it(self) -> None:
                together.wait(10)

        class Other(One):
            pass

        result = run(One, Other)
        self.assertEqual((result.testsRun, result.wasSuccessful()), (2, True))

    def test_every_way_to_end_is_told(self) -> None:
        class Ends(unittest.TestCase):
            def test_failure(self) -> None:
                self.fail("as it should")

            def test_error(self) -> None:
                raise ValueError

            def test_skip(self) -> None:
                self.skipTest("not today")

            def test_sub_tests(self) -> None:
                for number in range(3):
                    with self.subTest(number=number):
                        self.assertNotEqual(number, 1)

            @unittest.expectedFailure
            def test_expected(self) -> None:
                self.fail("as expected")

            @unittest.expectedFailure
            def test_unexpected(self) -> None:
                pass

        result = run(Ends)
        counts = (result.testsRun, *map(len, (result.failures, result.errors, result.skipped)))
        self.assertEqual(counts, (6, 2, 1, 1))
        self.assertEqual((len(result.expectedFailures), len(result.unexpectedSuccesses)), (1, 1))
        self.assertFalse(result.wasSuccessful())

    def test_a_class_that_cannot_be_set_up_has_failed_or_is_skipped(self) -> None:
        class Broken(unittest.TestCase):
            @classmethod
            def setUpClass(cls) -> None:
                raise AssertionError("no lane")

            def test_it(self) -> None:
                pass

        class Skipped(Broken):
            @classmethod
            def setUpClass(cls) -> None:
                raise unittest.SkipTest("no lane")

        result = run(Broken, Skipped)
        self.assertEqual((len(result.errors), len(result.skipped), result.wasSuccessful()), (1, 1, False))

    def test_what_several_modules_have_runs_once_when_the_first_of_them_is_reached(self) -> None:
        seen: list[str] = []

        class One(unittest.TestCase):
            def test_it(self) -> None:
                seen.append(type(self).__name__)

        class Two(One):
            pass

        class Three(One):
            def test_it(self) -> None:
                super().test_it()
                self.fail("as it should")

        load = unittest.defaultTestLoader.loadTestsFromTestCase
        waiting: list[unittest.TestSuite] = []
        first, second = Pool(waiting, map(load, (One, Two))), Pool(waiting, [load(Three)])
        self.assertEqual((first.countTestCases(), second.countTestCases()), (2, 1))
        after = unittest.FunctionTestCase(lambda: seen.append("after"))
        result = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.TestSuite((first, after, second)))
        self.assertEqual((result.testsRun, len(result.failures)), (4, 1))
        self.assertEqual((sorted(seen[:3]), seen[3:]), (["One", "Three", "Two"], ["after"]))
