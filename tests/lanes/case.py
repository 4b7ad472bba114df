"""The base of the tests that run in every lane."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import threading
import unittest
from pathlib import Path
from typing import Any, Iterable, Sequence

from tests.support import REPO, load_demo, temp_folder, write_tree

from .host import HermesHost, Home, run_hermes
from .venvs import lane_folder, lanes

model = load_demo("model")


class LaneCase(unittest.TestCase):
    """Tests against one version of Hermes; `lane_suite` makes a subclass per lane.

    One home, one scripted model and one long-lived process serve all tests of
    a class; a test that must not share them makes its own.  A class that is
    named on the command line runs in the lane that SESSION_CASSETTES_LANE names.
    """

    version = ""
    #: Further lines of the home's config.yaml.
    config = ""
    #: Other plugins of the home, by name: the code of each.
    others: dict[str, str] = {}
    home: Home
    model: Any
    _host: HermesHost | None = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.version = cls.version or os.environ.get("SESSION_CASSETTES_LANE", "")
        if not cls.version:
            raise unittest.SkipTest("set SESSION_CASSETTES_LANE to run this class by its name")
        lane_folder(cls.version)
        cls.model = model.ScriptedModel().__enter__()
        cls.addClassCleanup(cls.model.__exit__)
        cls.home = Home(cls.model.base_url, config=cls.config, others=cls.others)
        cls.addClassCleanup(cls.home.close)

    def setUp(self) -> None:
        self.model.brain = None
        self.model.brains.clear()

    @property
    def host(self) -> HermesHost:
        """The long-lived process of this class; it starts when it is first used."""
        cls = type(self)
        if cls._host is None:
            cls._host = HermesHost(cls.version, cls.home)
            cls.addClassCleanup(cls._stop_host)
        return cls._host

    @classmethod
    def _stop_host(cls) -> None:
        if cls._host is not None:
            cls._host.close()
            cls._host = None

    def workspace(self, files: dict[str, str | bytes] | None = None) -> Path:
        """Return a fresh folder with these files; without any, with the tiny shop."""
        folder = temp_folder(self)
        if files is None:
            return copy_shop(folder / "tinyshop")
        write_tree(folder, files)
        return folder

    def script(self, *steps: Any) -> None:
        """Let the model take these steps, whatever it is asked: `Step`s, the last of them an answer.

        A new turn starts at the first step.
        """

        def brain(messages: Sequence[Any], tools: Sequence[str]) -> Any:
            taken = sum(1 for _ in model.batches(messages))
            return steps[min(taken, len(steps) - 1)]

        self.model.brain = brain

    def hermes(
        self, *args: str, cwd: Path, environment: dict[str, str] | None = None, as_module: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run the `hermes` command in this class's home."""
        return run_hermes(self.version, self.home, *args, cwd=cwd, environment=environment, as_module=as_module)


def copy_shop(folder: Path) -> Path:
    """Copy the tiny shop to a folder that does not exist yet, and return it."""
    shutil.copytree(REPO / "demo" / "fixture-repo", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


class SideBySide(unittest.TestSuite):
    """Suites that run at the same time, in a few threads: each waits for its Hermes much of the time."""

    def run(self, result: unittest.TestResult, debug: bool = False) -> unittest.TestResult:
        lock = threading.Lock()
        left = queue.SimpleQueue[unittest.TestSuite]()
        for part in sorted(self, key=_length, reverse=True):
            left.put(part)

        def work() -> None:
            with contextlib.suppress(queue.Empty):
                while not result.shouldStop:
                    left.get_nowait().run(_Share(result, lock))

        workers = [threading.Thread(target=work, daemon=True) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return result


def _length(part: Any) -> tuple[bool, int]:
    """How long a part may take: by how many tests it has, but for classes that say that they are `LONG`."""
    return any(getattr(test, "LONG", False) for test in part), part.countTestCases()


#: How many tests that drive a Hermes run at the same time.
WORKERS = (os.cpu_count() or 2) + 1


class Pool(unittest.TestSuite):
    """What several modules have to run side by side: all of it runs when the first of them is reached.

    Nothing else of this process runs meanwhile: a unit test may change what all threads see.
    """

    def __init__(self, waiting: list[unittest.TestSuite], parts: Iterable[unittest.TestSuite]) -> None:
        super().__init__(parts)
        self._waiting = waiting
        waiting += self  # type: ignore[arg-type]

    def run(self, result: unittest.TestResult, debug: bool = False) -> unittest.TestResult:
        parts, self._waiting[:] = SideBySide(self._waiting), []
        return parts.run(result)


#: The lanes of all modules that were loaded and have not run.
_WAITING: list[unittest.TestSuite] = []


class _Share(unittest.TestResult):
    """Hands what happened to one thread's tests to the result of all, a whole test at a time."""

    def __init__(self, whole: unittest.TestResult, lock: threading.Lock) -> None:
        super().__init__()
        self._whole, self._lock = whole, lock
        self._told: list[tuple[str, tuple[Any, ...]]] | None = None  # None between tests

    def startTest(self, test: unittest.TestCase) -> None:
        self._told = []

    def stopTest(self, test: unittest.TestCase) -> None:
        told, self._told = self._told or [], None
        with self._lock:
            self._whole.startTest(test)
            for name, args in told:
                getattr(self._whole, name)(*args)
            self._whole.stopTest(test)
            self.shouldStop = self._whole.shouldStop

    def _tell(self, name: str, *args: Any) -> None:
        if self._told is not None:
            self._told.append((name, args))
            return
        with self._lock:  # of a class, not of one test
            getattr(self._whole, name)(*args)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._tell("addSuccess", test)

    def addError(self, test: Any, err: Any) -> None:
        self._tell("addError", test, err)

    def addFailure(self, test: Any, err: Any) -> None:
        self._tell("addFailure", test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        self._tell("addSkip", test, reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self._tell("addExpectedFailure", test, err)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._tell("addUnexpectedSuccess", test)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        self._tell("addSubTest", test, subtest, err)

    def addDuration(self, test: Any, elapsed: float) -> None:
        if hasattr(self._whole, "addDuration"):  # Python 3.12 on
            self._tell("addDuration", test, elapsed)


def lane_suite(loader: unittest.TestLoader, *cases: type[LaneCase], only: str = "") -> unittest.TestSuite:
    """Return the tests of these classes once for every lane, or for one lane only; they run beside others.

    A test module hands it on: `def load_tests(loader, tests, pattern): return
    lane_suite(loader, RecordingInHermes, ...)`.
    """
    made = []
    for version in (one for one in lanes() if only in ("", one)):
        for case in cases:
            name = f"{case.__name__}[{version}]"
            made.append(type(name, (case,), {"version": version, "__module__": case.__module__, "__qualname__": name}))
    return beside_others(loader, *made)


def beside_others(loader: unittest.TestLoader, *cases: type[unittest.TestCase]) -> unittest.TestSuite:
    """Return the tests of these classes, which start processes of their own and change nothing in this one."""
    return Pool(_WAITING, map(loader.loadTestsFromTestCase, cases))
