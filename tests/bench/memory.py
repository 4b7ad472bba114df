"""Replays one cassette over and over in one host, and prints what it holds in memory.

Run as `python -m tests.bench.memory COUNT` in the repository, with a
HERMES_HOME of its own.  Memory in use is what Python's allocator has handed
out; the resident size is printed too, where the system tells it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

from tests.support import FakeHost, load_plugin

from . import material

from session_cassettes.cassette_store import Arm, Store, to_json, write_atomically
from session_cassettes.hooks import data_dir, plugin_facts


def resident() -> int:
    """Kilobytes in the machine's memory, 0 where `/proc` does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


class Replayer:
    """A host in which a waiting command's runs are claimed, one after the other."""

    def __init__(self) -> None:
        self.store = Store(data_dir())
        self.store.prepare()
        self.recorded = material.calls(10, 50_000)
        path = self.store.save(material.cassette("bench", self.recorded, material.snapshot(0.5)), overwrite=True)
        self.size = path.stat().st_size
        self.sha = self.store.read("bench")[1]
        self.facts = plugin_facts()
        self.host = FakeHost()
        load_plugin().register(self.host.ctx)
        self.waiting = self.store.waiting()
        if not self.waiting.try_acquire():
            raise RuntimeError("another command waits in this home")

    def once(self, number: int) -> None:
        """Arm, claim, answer ten calls, write the ledger."""
        arm = Arm(
            f"arm-{number}",
            "run",
            "bench",
            "Which port?",
            "gateway",
            time.time(),
            60.0,
            self.facts.plugin,
            self.facts.fingerprint,
            "",
            self.sha,
        )
        write_atomically(self.store.arm_path, to_json(arm))
        turn = self.host.start_turn(arm.request, session_id=f"session-{number:08}")
        for call in self.recorded:
            if self.host.call(turn, call.tool, dict(call.args)) != call.result:
                raise RuntimeError("a recorded call was not answered")
        self.host.end_turn(turn, "8080")
        for path in (self.store.claim_path(arm.id), self.store.ledger_path(arm.id)):
            path.unlink()
        if self.host.ran or self.host.raised:
            raise RuntimeError(f"a tool ran, or the plugin raised {self.host.raised}")


def main() -> None:
    replayer = Replayer()
    first, count = 50, int(sys.argv[1])
    tracemalloc.start()
    found: list[Any] = []
    for number in range(first + count):
        if number == first:
            found.append(_in_use())
        replayer.once(number)
    found.append(_in_use())
    before, after = found
    print(
        json.dumps(
            {"before": before[0], "after": after[0], "resident": [before[1], after[1]], "cassette": replayer.size}
        )
    )


def _in_use() -> tuple[float, int]:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1024, resident()


if __name__ == "__main__":
    main()
