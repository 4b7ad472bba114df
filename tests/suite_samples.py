"""Suites to report on: one as a person would have it, one with hostile texts, and large ones."""

from __future__ import annotations

import random
import re
from typing import Any, Sequence

import tests.support  # noqa: F401  (loads the plugin)

from session_cassettes.suite import html, reports
from session_cassettes.suite.cells import Cell, Key, Run

AUTH = (
    "The auth handler is `AuthHandler` in server/auth.py, line 29. It binds port 8080, "
    "the value of `AUTH_PORT` there.\n\nIt is started by `main()` in server/run.py."
)
CALLS: tuple[tuple[str, Any], ...] = (
    ("search_files", {"pattern": "AuthHandler", "path": "."}),
    ("read_file", {"path": "server/auth.py"}),
)
CREATED = "2026-03-01T10:15:00+00:00"
PINS = ("auth.py", r"re:\b8080\b")


def call(tool: str, args: Any, how: str = "hit", reason: str = "", nearest: str = "") -> dict[str, Any]:
    return {"tool": tool, "args": args, "how": how, "reason": reason, "nearest": nearest}


def run(result: str = "PASS", answer: str = AUTH, seconds: float = 12.0, **more: Any) -> Run:
    held = tuple((pin, result != "FAIL" or at == 0) for at, pin in enumerate(PINS))
    more.setdefault("pins", held)
    more.setdefault("calls", tuple(call(tool, args) for tool, args in CALLS))
    return Run(result, answer, seconds, model="gpt-oss:20b", **more)  # type: ignore[arg-type]


def cell(cassette: str, results: str, model: str = "", arm: str = "", answers: Sequence[str] = (), **more: Any) -> Cell:
    """A cell whose runs ended so: a letter a run, as in "PPFDI"."""
    words = {"P": "PASS", "F": "FAIL", "D": "DIVERGED", "I": "INVALID"}
    runs = tuple(
        run(words[letter], answers[at % len(answers)] if answers else f"{AUTH} ({at})", 10.0 + at, **more)
        for at, letter in enumerate(results)
    )
    return Cell(Key(cassette, model, arm), len(results), runs)


def facts(answer: str = AUTH, **more: Any) -> reports.CassetteFacts:
    more.setdefault("calls", CALLS)
    more.setdefault("pins", PINS)
    more.setdefault("request", "Where is the auth handler and what port does it bind?")
    return reports.CassetteFacts(answer=answer, model="careful", **more)


def suite(cells: Sequence[Cell], require: float = 1.0, noise: bool = False, **more: Any) -> reports.Suite:
    cassettes = {each.key.cassette: facts(**more) for each in cells}
    versions = ("0.22.2", "1.0.0")
    return reports.grade_suite("20260301T101500-ab12", CREATED, versions, require, cells, cassettes, noise)


def _likely_cell(cassette: str, arm: str, answers: Sequence[str], **more: Any) -> Cell:
    """A cell graded as `run` would: by the answer's pins, then by misses; an answer of "" is INVALID."""
    pins, runs = LIKELY[cassette].pins, []
    for at, answer in enumerate(answers):
        held = tuple((pin, bool(re.search(pin.removeprefix("re:"), answer, re.IGNORECASE))) for pin in pins)
        made = [call(*one) for one in LIKELY[cassette].calls]
        tried = re.search("tried `(.*?)`", answer)
        if tried:  # a way of its own: a command that was not recorded, and a file that the snapshot holds
            made[1:1] = [
                call("terminal", {"command": tried[1]}, "miss", "this call was not recorded"),
                call("read_file", {"path": "README.md"}, "synthesized"),
            ]
        calls = tuple(made)
        missed = any(one["how"] == "miss" for one in calls)
        result = (
            "INVALID" if not answer else "FAIL" if not all(ok for _, ok in held) else "DIVERGED" if missed else "PASS"
        )
        reasons = () if answer else ("the session ended without an answer",)
        runs.append(run(result, answer, 9.0 + at * 7 % 5, pins=held, calls=calls, reasons=reasons, **more))
    return Cell(Key(cassette, "gpt-oss:20b", arm), len(runs), tuple(runs))


LIKELY = {
    "auth-port": facts(),
    "log-rotation": facts(
        "Logs rotate at 5 MB, three files are kept (`MAX_BYTES` and `BACKUPS` in server/logs.py).",
        request="When are the logs rotated, and how many are kept?",
        calls=(("search_files", {"pattern": "rotat", "path": "."}), ("read_file", {"path": "server/logs.py"})),
        pins=("5 MB", "three"),
    ),
    "retry-limit": facts(
        "A request is tried 4 times, `RETRIES` in client/http.py, with a pause that doubles from 200 ms.",
        request="How often does the client retry?",
        calls=(("read_file", {"path": "client/http.py"}),),
        pins=(r"re:\b4\b", "RETRIES"),
    ),
}


def likely() -> reports.Suite:
    """A suite as a person would have it: three cassettes, two arms, answers that differ."""
    wrong = "The auth handler is `AuthHandler` in server/auth.py, line 29. It binds port 18080."
    short = "`AuthHandler` in server/auth.py binds port 8080 (`AUTH_PORT`)."
    wandered = "AuthHandler in server/auth.py binds port 8080; I also tried `netstat -tlnp`."
    daily = "Logs rotate daily, and three files are kept, as server/logs.py says."
    unsure = "Three files, it seems. I tried `crontab -l` and found no rotation."
    logs, retries = LIKELY["log-rotation"].answer, LIKELY["retry-limit"].answer
    brief = "It tries 4 times (`RETRIES` in client/http.py)."
    cells = (
        _likely_cell(
            "auth-port", "plain", [AUTH, short, AUTH, wrong, short, AUTH, wandered, AUTH, AUTH, short], tokens=4120
        ),
        _likely_cell("auth-port", "skilled", [AUTH, short] * 5, tokens=3310),
        _likely_cell("log-rotation", "plain", [unsure, daily, daily, unsure, daily] * 2, tokens=9800),
        _likely_cell("log-rotation", "skilled", [logs, logs + " Nothing is compressed."] * 5, tokens=5020),
        _likely_cell("retry-limit", "plain", [retries, brief, retries, "", *[brief, retries] * 3], tokens=4400),
        _likely_cell("retry-limit", "skilled", [retries] * 10, tokens=4010),
    )
    return reports.grade_suite("20260301T101500-ab12", CREATED, ("0.22.2", "1.0.0"), 0.8, cells, LIKELY)


#: Texts that mean something to a terminal, to Markdown, to XML or to a browser; each holds the word CANARY.
HOSTILE = (
    "<script>CANARY</script>",
    '"><img src=http://CANARY onerror=CANARY()>',
    "' onmouseover='CANARY' x='",
    "</title></style></pre></details></summary><script>CANARY</script>",
    "<!--CANARY--><!--runs-->]]>&lt;CANARY&gt;&#60;script&#62;",
    '<a href="javascript:CANARY()">url(http://CANARY)</a>',
    "\x1b[2J\x1b]0;CANARY\x07\r\x00\x9b31m",
    "CANARY\u202eevil\u2028\u2029\x85\ufffe\uffff",
    "CANARY\ud800\udfff lone",
    "| CANARY | @someone #12 ` `` ``` ```` \\| \\` |\n\n# CANARY\n\n</details>\n---\n| a |",
    "CANARY\r\n\r\n::error::CANARY\n@everyone",
    "\u65e5\u672c CANARY \U0001f469\u200d\U0001f4bb e\u0301" + "x" * 5_000,
)


def hostile(seed: int, cells: int = 4, runs: int = 4) -> reports.Suite:
    """A suite in which every text is somebody else's and means harm."""
    rng = random.Random(seed)

    def bad() -> str:
        return " ".join(rng.choices(HOSTILE, k=rng.choice((1, 1, 2))))

    def asked() -> dict[str, Any]:
        args: Any = rng.choice((bad(), {bad(): bad()}, [bad(), {bad(): [bad()]}], None, 3))
        return call(bad(), args, rng.choice(("hit", "miss", "synthesized", bad())), bad(), bad())

    def tried() -> Run:
        pins = ((bad(), True), ("re:" + bad(), False), ("CANARY", True))
        result = rng.choice(("PASS", "FAIL", "DIVERGED", "INVALID"))
        calls = tuple(asked() for _ in range(rng.randrange(4)))
        return run(result, bad(), rng.random() * 99, pins=pins, calls=calls, reasons=(bad(),), path=bad())

    made = [
        Cell(
            Key(bad() + str(at // 2), bad(), bad()), runs, tuple(tried() for _ in range(runs)), rng.choice(("", bad()))
        )
        for at in range(cells)
    ]
    made += [Cell(each.key._replace(model=bad()), 3, tuple(tried() for _ in range(3))) for each in made]
    cassettes = {
        each.key.cassette: reports.CassetteFacts(bad(), bad(), ((bad(), {bad(): bad()}),), (bad(),), bad())
        for each in made
    }
    return reports.grade_suite(bad(), bad(), (bad(), bad()), 0.8, made, cassettes, noise=True)


def large(cassettes: int, columns: int, runs: int, size: int = 800, harm: bool = False) -> reports.Suite:
    """A suite of many runs, each with an answer and a path of its own; with harm every character has to be escaped."""
    rng = random.Random(cassettes)
    words = ["<&'>\x1b\ud800"] if harm else [f"word{at}" for at in range(400)]

    def long(most: int) -> str:
        return " ".join(rng.choices(words, k=most // 7))

    def tried() -> Run:
        asked = [call(*rng.choice(CALLS)) for _ in range(4)]
        asked.append(call("terminal", {"command": long(100)}, "miss", "this call was not recorded"))
        result = rng.choice(("PASS", "PASS", "PASS", "FAIL", "DIVERGED", "INVALID"))
        return run(result, long(size), rng.random() * 30, calls=tuple(asked))

    cells = [
        Cell(Key(f"case{one}{long(14)}", f"model{other}", ""), runs, tuple(tried() for _ in range(runs)))
        for one in range(cassettes)
        for other in range(columns)
    ]
    known = {each.key.cassette: facts(long(size)) for each in cells}
    return reports.grade_suite("20260301T101500-ab12", CREATED, ("0.22.2", "1.0.0"), 0.8, cells, known)


if __name__ == "__main__":  # the picture in the README shows this page
    print(html.render(likely()), end="")
