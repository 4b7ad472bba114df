"""Measures what the plugin costs, and prints one table of ratios.

    python tests/bench/run.py [--lane VERSION] [--rows GROUP] [--count N] [--json FILE]

Rows without a lane need nothing but this Python; the others run in the
environments of the tests' lanes, which are built when they are missing (see
`tests/lanes/venvs.py`).  Every figure is taken `--count` times beside its
reference, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import unittest
from datetime import date
from pathlib import Path
from typing import Any, Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)  # the tests are a package of the repository
from tests.bench import commands, core  # noqa: E402
from tests.bench.measure import Curve, Row, curves, table  # noqa: E402
from tests.lanes.venvs import LANES, lane_python, scratch  # noqa: E402

#: Groups that run inside a lane's Python, see `lane.py`.
IN_LANE = ("pass", "snapshot", "search", "whole", "check")
GROUPS = tuple(dict.fromkeys([*core.GROUPS, *IN_LANE, *commands.GROUPS]))


def without_lane(wanted: Sequence[str], count: int) -> Iterator[Row | Curve]:
    for name, measure in core.GROUPS.items():
        if name in wanted:
            told(name)
            core.settle()
            yield from measure(count)


def in_lane(version: str, wanted: Sequence[str], count: int) -> Iterator[Row | Curve]:
    """Measure what a lane is needed for; a lane that cannot be built is told and left out."""
    try:
        python = lane_python(version)
    except unittest.SkipTest as why:
        print(why, file=sys.stderr)
        return
    for name in IN_LANE:
        if name in wanted:
            told(f"{name}, Hermes {version}")
            yield from (_of_lane(one, version) for one in _worker(python, name, count))
    for name, measure in commands.GROUPS.items():
        if name in wanted:
            told(f"{name}, Hermes {version}")
            yield from (_of_lane(one, version) for one in measure(count, version))


def _worker(python: Path, group: str, count: int) -> list[Row | Curve]:
    words = [str(python), "-P", str(ROOT / "tests" / "bench" / "lane.py"), str(count), group]
    environ = scratch.clean_environment(Path(os.devnull))
    done = subprocess.run(
        words, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{group} could not be measured:\n{done.stderr[-4000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return [Curve.from_dict(one) if "points" in one else Row.from_dict(one) for one in found]


def _of_lane(one: Row | Curve, version: str) -> Row | Curve:
    return type(one)(**{**vars(one), "lane": version})


def told(text: str) -> None:
    print(f"measuring {text} ...", file=sys.stderr, flush=True)


def surroundings(count: int) -> dict[str, Any]:
    """What the figures depend on, without any name or path."""
    load = os.getloadavg() if hasattr(os, "getloadavg") else (0.0,)
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": round(load[0], 1),
        "count": count,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--lane", action="append", choices=[*LANES, "none"], help="a Hermes to measure with (default: all)"
    )
    parser.add_argument(
        "--rows", action="append", choices=GROUPS, help="a group of rows (default: all); may be repeated"
    )
    parser.add_argument("--count", type=int, default=15, help="how often each figure is taken (default: 15)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every value there")
    options = parser.parse_args(argv)
    wanted, before = options.rows or GROUPS, surroundings(options.count)
    lanes = [one for one in options.lane or LANES if one != "none"]
    found: list[Row | Curve] = list(without_lane(wanted, options.count))
    for version in lanes:
        found += in_lane(version, wanted, options.count)
    rows = [one for one in found if isinstance(one, Row)]
    grown = [one for one in found if isinstance(one, Curve)]
    print("\n\n".join(text for text, any_ in ((table(rows), rows), (curves(grown), grown)) if any_))
    if options.json:
        value = {
            "schema": 1,
            "before": before,
            "rows": [one.to_dict() for one in rows],
            "curves": [one.to_dict() for one in grown],
        }
        options.json.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
