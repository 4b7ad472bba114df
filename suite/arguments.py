"""What `run` and `check` can be asked for.

Every start of Hermes loads this module, and none of those that make a suite: it
imports nothing that they do not need.
"""

from __future__ import annotations

import argparse
import contextlib
from typing import Any, Callable, Mapping

from ..cassette_store import REPLAY_LIMIT
from .door import add_json, add_name, seconds

__all__ = [
    "MOST_JOBS",
    "MOST_RETRIES",
    "MOST_RUNS",
    "MOST_TRIES",
    "REPORTS",
    "add_arguments",
    "add_check_arguments",
    "add_compared",
    "add_history",
    "add_recalled",
    "add_sessions",
]

#: Tries of a cell, retries of a try, and tries of a whole suite, at most.
MOST_TRIES, MOST_RETRIES, MOST_RUNS = 10_000, 100, 100_000
#: Sessions that go on at a time, at most: a gateway holds so many replays.
MOST_JOBS = REPLAY_LIMIT
#: Each kind of report, and what it is for.
REPORTS: Mapping[str, str] = {
    "junit": "write a JUnit XML file, for a build server",
    "markdown": "write a Markdown file, for a pull request's comment",
    "html": "write an HTML page, with every answer beside the recorded one",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` takes, but for what it shares with `record`."""
    parser.add_argument(
        "cassette_names", metavar="NAME", nargs="*", help="a cassette, or a pattern in quotes such as 'auth-*'"
    )
    parser.add_argument("--all", dest="cassette_all", action="store_true", help="run every cassette")
    parser.add_argument(
        "--model",
        dest="cassette_models",
        metavar="M",
        action="append",
        default=[],
        help="the model (default: Hermes's own); may be repeated",
    )
    parser.add_argument(
        "--arm",
        dest="cassette_arms",
        metavar="LABEL=SKILL[,SKILL]",
        action="append",
        default=[],
        help="a set of skills to preload after those of --skill, none as in plain=; may be repeated",
    )
    _add_suite_arguments(parser)
    for kind, told in REPORTS.items():
        parser.add_argument(f"--{kind}", dest=f"cassette_{kind}", metavar="FILE", help=told)
    parser.add_argument(
        "--resume",
        dest="cassette_resume",
        metavar="ID",
        nargs="?",
        const="",
        help="do what is left of a suite run (default: of the newest that is unfinished)",
    )


def _add_suite_arguments(parser: argparse.ArgumentParser) -> None:
    def add(name: str, metavar: str, kind: Callable[[str], Any], told: str) -> None:
        parser.add_argument(
            f"--{name}", dest=f"cassette_{name.replace('-', '_')}", metavar=metavar, type=kind, help=told
        )

    add("repeat", "N", _whole(1, MOST_TRIES), "how many tries each cell gets (default: 1)")
    add("jobs", "J", _whole(1, MOST_JOBS), "how many sessions go on at a time (default: 1)")
    add("require", "SHARE", _share, "the share of PASS that each cell must reach (default: 1.0)")
    add("budget", "SECONDS", seconds, "start no run after so many seconds")
    add("retry-invalid", "K", _whole(0, MOST_RETRIES), "how often a try that ended INVALID is made again (default: 1)")
    early = "end a cell when no further try could change its outcome"
    parser.add_argument("--stop-early", dest="cassette_stop_early", action="store_true", help=early)
    noise = "compare the first half of each cell's tries with the second too: what differs there is noise"
    parser.add_argument("--noise", dest="cassette_noise", action="store_true", help=noise)


def add_history(parser: argparse.ArgumentParser) -> None:
    """Add what `history` takes."""
    add_name(parser)
    last = "tell only the newest N suites and days"
    parser.add_argument("--last", dest="cassette_last", metavar="N", type=_whole(1, MOST_RUNS), help=last)
    where = "say between which two suites or days a cell fell, and what changed there"
    parser.add_argument("--bisect", dest="cassette_bisect", action="store_true", help=where)
    add_json(parser)


def add_compared(parser: argparse.ArgumentParser) -> None:
    """Add what `compare` takes."""
    parser.add_argument("cassette_one", metavar="A", help="a suite run's id, or a run's id or file")
    other = "another of the same kind; without it, or with A again, what differs within A is told"
    parser.add_argument("cassette_other", metavar="B", nargs="?", help=other)
    add_json(parser)


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        with contextlib.suppress(ValueError):
            if least <= int(text) <= most:
                return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least:,} to {most:,}")

    return read


def _share(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) <= 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a share above 0 and up to 1, such as 0.8")


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `check`."""
    names = "a cassette, or a pattern in quotes such as 'auth-*' (default: all)"
    parser.add_argument("cassette_names", metavar="NAME", nargs="*", help=names)
    parser.add_argument(
        "--in", dest="cassette_in", metavar="DIR", help="the folder to look at (default: the recorded one)"
    )
    add_json(parser)


def add_recalled(parser: argparse.ArgumentParser) -> None:
    """Add what `record` takes in place of a request: a session that is over."""
    session = "record a turn of this session, which is over (see hermes cassette sessions)"
    parser.add_argument("--session", dest="cassette_session", metavar="ID", help=session)
    turn = "which of its turns, from 1 (default: the last with an answer)"
    parser.add_argument("--turn", dest="cassette_turn", metavar="N", type=_from_one, help=turn)


def add_sessions(parser: argparse.ArgumentParser) -> None:
    """Add what `sessions` takes."""
    last = "how many, the newest first (default: 20)"
    parser.add_argument("--last", dest="cassette_last", metavar="N", type=_from_one, default=20, help=last)
    add_json(parser)


def _from_one(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)
