"""What ten thousand runs cost to count and to report, and a thousand to tell the history of.

Run as `python -m tests.bench.suites RUNS` it reports once and prints how much
memory that took, in a process of its own.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Iterator

from tests.suite_samples import large

from .measure import Goal, Row, interleaved, row

from session_cassettes.cassette_store import Store
from session_cassettes.suite import html, junit, markdown, reports, table
from session_cassettes.suite.pairs import compare_suites

Found = Iterator[Row]
#: Cells of a suite, models or arms times cassettes.
COLUMNS, CASSETTES = 2, 50


def reporter(runs: int) -> tuple[Callable[[], None], reports.Suite]:
    """What `run` and `compare` do once all runs are made: statistics, every report, and a comparison with another."""
    suite = large(CASSETTES, COLUMNS, runs // (COLUMNS * CASSETTES))
    cells = [each.cell for each in suite.cells]

    def report() -> None:
        graded = reports.grade_suite(
            suite.id, suite.created, (suite.hermes, suite.plugin), suite.require, cells, suite.cassettes, noise=True
        )
        for write in (table.render, markdown.render, junit.render, html.render):
            write(graded)
        summaries = [each.summary for each in graded.cells]
        compare_suites(summaries, summaries)

    return report, suite


def reporting(count: int, runs: int = 10_000) -> Found:
    """Statistics and reports of ten thousand runs, beside their plain JSON."""
    report, suite = reporter(runs)
    plain: list[Any] = [run._asdict() for each in suite.cells for run in each.cell.runs]
    pairs = interleaved(lambda: report, lambda: lambda: json.dumps(plain), count)
    what = f"statistics and reports of {runs:,} runs"
    yield row(what, "json.dumps of the runs", pairs, "s", "cpu", Goal("most", 2))


def keep_runs(store: Store, name: str, number: int) -> None:
    """Keep so many runs of a cassette, ten a day, with a change of what went in now and then."""
    digest = "0123456789abcdef" * 4
    for at in range(number):
        day = f"{2024 + at // 10 // 336}-{at // 280 % 12 + 1:02}-{at // 10 % 28 + 1:02}"
        run = {
            "name": name,
            "run": f"{at:024x}",
            "at": f"{day}T10:00:{at % 10:02}+00:00",
            "seconds": 9.5,
            "asked": "",
            "skills": [],
            "plugin": "1.0.0",
            "fingerprint": digest,
            "cassette_sha256": digest,
            "inputs": {"system_prompt": f"{at // 40:064x}", "files": {"AGENTS.md": digest}, "skills": {}},
            "usage": {"tokens": 4_000, "calls": 3},
            "result": "PASS" if at % 7 else "FAIL",
            "model": "careful",
            "hermes": "0.22.2",
            "reasons": [],
            "pins": [{"pin": "8080", "ok": bool(at % 7)}],
            "answer": f"port 8080 ({at}) " * 50,
            "calls": [{"tool": "read_file", "args": {"path": "server/auth.py"}, "how": "hit"}] * 4,
            "misses": [],
        }
        store.save_run(name, f"{day.replace('-', '')}T1000{at % 10:02}-{at:024x}", run)


def _peak(runs: int) -> dict[str, float]:
    """Megabytes of memory at the most, before and after the reports; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return {"before": 0.0, "after": 0.0}
    scale = 2**20 if sys.platform == "darwin" else 2**10

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale

    report, _ = reporter(runs)
    before = peak()
    report()
    return {"before": before, "after": peak()}


if __name__ == "__main__":
    print(json.dumps(_peak(int(sys.argv[1]))))
