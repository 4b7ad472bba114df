"""Real processes that fail at every step of a fill, without Hermes: the cassette is the old one or the new one, and never half."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import unittest
from typing import Any

from tests.support import REPO

from .trust_case import finish, keep_cassette
from .trust_faults import NAMES, REQUEST, FaultCase, _Home, adopt_orphans, wait_for_orphans

COPY = "port.before-fill"


class FaultsOfFills(unittest.TestCase):
    """Each process of a fill fails at its first, second, ... use of the data folder."""

    LONG = True

    def test_at_every_step_the_cassette_is_the_old_one_or_the_new_one(self) -> None:
        if os.name != "posix":
            self.skipTest("these stand-ins are POSIX scripts")
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.lanes.trust_fills", kind], cwd=REPO, stdout=subprocess.PIPE, text=True
            )
            for kind in ("process", "gateway")
        ]
        told = [json.loads(worker.communicate()[0]) for worker in workers]
        lines = [f"{key}  {counts}" for one in told for key, counts in one["table"].items()]
        total = sum(sum(counts.values()) for one in told for counts in one["table"].values())
        lines.append(f"{total} faults of fills; the cassette was whole after each")
        print("\n".join(lines), file=sys.stderr)
        self.assertEqual([wrong for one in told for wrong in one["wrong"]], [])
        self.assertGreater(total, 60)


class _Worker(FaultCase):
    """Goes through all steps of one kind of host; `main` runs it in a process of its own."""

    def faults(self, kind: str) -> dict[str, Any]:
        adopted = adopt_orphans()
        self.environment = {
            "TRUST_HOST": kind,
            "TRUST_VERSION": "0.23.1" if kind == "gateway" else "0.22.2",
            "TRUST_COMMAND": "git log -1",
        }
        self.table: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.states: set[tuple[str, ...]] = set()
        self.wrong: list[str] = []
        for role in ("cli", "host"):
            for mode in self.modes(kind, role):
                if role == "cli" and mode == "die" and not adopted:
                    continue  # nothing would tell when the orphan has ended
                for step in range(1, 200):
                    outcome = self.one_fault(role, mode, step)
                    if outcome is None:
                        break
                    self.table[f"{kind:<8} {role:<5} {mode:<5}"][outcome] += 1
        return {"table": self.table, "wrong": self.wrong}

    @staticmethod
    def modes(kind: str, role: str) -> tuple[str, ...]:
        """What to try: both if SESSION_CASSETTES_FAULTS is "all", else what can differ."""
        if os.environ.get("SESSION_CASSETTES_FAULTS") == "all":
            return "die", "full"
        return {
            ("process", "cli"): ("die",),
            ("process", "host"): ("full",),
            ("gateway", "cli"): (),
            ("gateway", "host"): ("die",),
        }[kind, role]

    def keep(self) -> None:
        """Start from a cassette and a copy that an earlier fill kept."""
        version = self.environment["TRUST_VERSION"]
        self.store = keep_cassette(_Home(self.home), "port", REQUEST, self.root / "work", version)
        self.old = self.store.read("port")[0]
        self.earlier = self.old._replace(name=COPY, answer="an earlier one")
        self.store.save(self.earlier, overwrite=True)

    def one_fault(self, role: str, mode: str, step: int) -> str | None:
        """Fill with one fault; return how that ended, or None if there are not so many steps."""
        self.keep()
        fault = f"{role}:{mode}:{step}:plugin-data"
        code, text = finish(self.command("fill", "port", TRUST_FAULT=fault, **self.environment))
        if code == -9:
            wait_for_orphans()
        if not self.hit.exists():
            return None
        where = f"{role} {mode} {step} ({self.hit.read_text()}): {text}"
        self.hit.unlink()
        try:
            self.whole(code, text)
        except AssertionError as error:
            self.wrong.append(f"{where}\n{error}")
        for path in self.live.iterdir():
            path.unlink()
        return NAMES[code] if code else "filled"

    def whole(self, code: int, text: str) -> None:
        self.assertIn(code, (0, 2, -9))
        ran = {path.name.partition("-")[0] for path in self.live.iterdir()}
        self.assertLessEqual(ran, {"terminal"} if code == 0 else {"terminal", "read_file"})
        now, copy = self.store.read("port")[0], self.store.read(COPY)[0]
        filled = len(now.calls) == 2
        self.assertEqual(now._replace(calls=now.calls[:1], warnings=()), self.old)
        if filled:
            self.assertEqual((now.calls[1].args, copy), ({"command": "git log -1"}, self.old._replace(name=COPY)))
        else:
            self.assertIn(copy, (self.earlier, self.old._replace(name=COPY)))
        self.assertTrue(filled or code != 0, "it said that it filled")
        if code == 2:
            self.assertFalse(filled, "it said that it did not fill")
        state = tuple(sorted({path.parent.name for path in self.store.root.rglob("*.json")}))
        if state not in self.states:  # nobody cleans up, and the next command goes as ever
            self.states.add(state)
            code, text = finish(self.command("run", "port", **{**self.environment, "TRUST_COMMAND": ""}))
            self.assertEqual(code, 0, text)


def main() -> None:
    worker = _Worker()
    worker.setUp()
    try:
        print(json.dumps(worker.faults(sys.argv[1])))
    finally:
        worker.doCleanups()


if __name__ == "__main__":
    main()
