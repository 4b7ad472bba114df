"""Real processes that fail at every step of the hand-over, without Hermes: no verdict is wrong, nothing must be cleaned up."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Any

from tests.support import REPO, load_plugin, temp_folder

from .trust_case import finish, keep_cassette
from .venvs import scratch

load_plugin()
from session_cassettes import hooks  # noqa: E402
from session_cassettes.cassette_store import Arm, to_json, write_atomically  # noqa: E402

HERE = Path(__file__).resolve().parent
REQUEST = "Which port?"
#: What `hermes cassette run` may exit with when something failed under it.
NAMES = {0: "PASS", 1: "FAIL", 2: "error", 3: "DIVERGED", 4: "INVALID", 130: "interrupted", -9: "killed"}


class FaultCase(unittest.TestCase):
    """A home with one cassette, and a stand-in for `hermes` on PATH."""

    def setUp(self) -> None:
        if os.name != "posix":
            self.skipTest("these stand-ins are POSIX scripts")
        self.root = temp_folder(self)
        self.home = self.make_home("home")
        self.live, self.tmp, self.hit = self.root / "live", self.root / "tmp", self.root / "hit"
        self.live.mkdir()
        self.tmp.mkdir()
        self.bin = self.root / "bin"
        self.bin.mkdir()
        self.stand_in(
            f'exec "{sys.executable}" -P "{HERE / "trust_hermes.py"}" "$@"\n'
            if sys.version_info >= (3, 11)
            else f'exec "{sys.executable}" "{HERE / "trust_hermes.py"}" "$@"\n'
        )

    def make_home(self, name: str) -> Path:
        home = self.root / name
        home.mkdir()
        scratch.install_plugin(home)
        work = self.root / "work"
        work.mkdir(exist_ok=True)
        self.store = keep_cassette(_Home(home), "port", REQUEST, work, "0.19.0")
        return home

    def stand_in(self, script: str) -> None:
        """Make `hermes` a shell script."""
        path = self.bin / "hermes"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)

    def command(self, *words: str, home: Path | None = None, **environment: str) -> subprocess.Popen[str]:
        env = {
            **scratch.clean_environment(home or self.home),
            "TRUST_LIVE": str(self.live),
            "TMPDIR": str(self.tmp),
            "TRUST_HIT": str(self.hit),
            **environment,
        }
        env["PATH"] = os.pathsep.join([str(self.bin), env.get("PATH", "")])
        return subprocess.Popen(
            [sys.executable, str(HERE / "trust_cli.py"), *words],
            env=env,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run_port(self, *words: str, **environment: str) -> tuple[int, str]:
        return finish(self.command("run", "port", *words, **environment))

    def no_tool_ran(self) -> None:
        self.assertEqual(os.listdir(self.live), [], "a tool ran")

    def next_run_passes(self, **environment: str) -> None:
        """Nobody cleans up, and the next run is a full replay."""
        code, text = self.run_port(**environment)
        self.assertEqual(code, 0, text)
        self.assertIn("2 calls: 2 hit", text)
        self.no_tool_ran()


class _Home:
    """The part of a lane's home that `keep_cassette` uses."""

    def __init__(self, path: Path) -> None:
        self.data = path / "plugin-data" / scratch.PLUGIN


def adopt_orphans() -> bool:
    """Become the parent of processes whose own has died, so that they can be waited for (Linux)."""
    return sys.platform == "linux" and ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0


def wait_for_orphans() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


class FaultsAtEveryStep(unittest.TestCase):
    """Each process of a run fails at its first, second, ... use of the data folder, in one of three ways."""

    LONG = True

    def test_no_fault_at_any_step_makes_a_verdict_wrong_or_a_tool_run(self) -> None:
        if os.name != "posix":
            self.skipTest("these stand-ins are POSIX scripts")
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.lanes.trust_faults", kind], cwd=REPO, stdout=subprocess.PIPE, text=True
            )
            for kind in ("process", "gateway")
        ]
        told = [json.loads(worker.communicate()[0]) for worker in workers]
        names = ("INVALID", "error", "killed", "PASS")
        lines = [f"{'session in':<12}{'fails':<6}{'how':<6}" + "".join(f"{name:>9}" for name in names)]
        for one in told:
            lines += [
                key + "".join(f"{counts.get(name, 0):>9}" for name in names) for key, counts in one["table"].items()
            ]
        total = sum(sum(counts.values()) for one in told for counts in one["table"].values())
        lines.append(
            f"{total} faults; {sum(one['left'] for one in told)} different states they left, each followed by a PASS"
        )
        print("\n".join(lines), file=sys.stderr)
        self.assertEqual([wrong for one in told for wrong in one["wrong"]], [])


class _Worker(FaultCase):
    """Goes through all steps of one kind of host; `main` runs it in a process of its own."""

    def faults(self, kind: str) -> dict[str, Any]:
        """Let every step fail; return the table of outcomes, and what was wrong."""
        adopted = adopt_orphans()
        self.table: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.states: set[tuple[str, ...]] = set()
        self.wrong: list[str] = []
        for role in ("cli", "ping", "host") if kind == "gateway" else ("cli", "host"):
            for modes in self.modes(kind, role):
                for step in range(1, 200):
                    mode = modes[step % len(modes)]
                    if role == "cli" and mode == "die" and not adopted:
                        continue  # nothing would tell when the orphan has ended
                    outcome = self.one_fault(kind, role, mode, step)
                    if outcome is None:
                        break
                    self.table[f"{kind:<12}{role:<6}{mode:<6}"][outcome] += 1
        return {"table": self.table, "left": len(self.states), "wrong": self.wrong}

    @staticmethod
    def modes(kind: str, role: str) -> tuple[tuple[str, ...], ...]:
        """What to try at every step: everything if SESSION_CASSETTES_FAULTS is "all", else what can differ, by turns.

        The command does the same in both, but for its ping; one failed use at a
        time matters to a gateway, where no variable keeps the tools shut.
        """
        if os.environ.get("SESSION_CASSETTES_FAULTS") == "all":
            return ("die",), ("full",), ("eio",)
        return {
            ("process", "cli"): (("eio",),),
            ("process", "host"): (("die", "full"),),
            ("gateway", "cli"): (("die", "full"),),
            ("gateway", "ping"): (("die", "full"),),
            ("gateway", "host"): (("die", "full"), ("eio",)),
        }[kind, role]

    def one_fault(self, kind: str, role: str, mode: str, step: int) -> str | None:
        """Run with one fault; return how the run ended, or None if there are not so many steps."""
        before, runs = self.store.path("port").read_bytes(), self.store.count_runs("port")
        code, text = self.run_port(TRUST_HOST=kind, TRUST_FAULT=f"{role}:{mode}:{step}:plugin-data")
        if code == -9:
            wait_for_orphans()
        if not self.hit.exists():
            return None
        where = f"{kind} {role} {mode} {step} ({self.hit.read_text()}): {text}"
        self.hit.unlink()
        try:
            self.assertIn(code, {"die": {"cli": (-9,), "ping": (0, 2), "host": (4,)}[role]}.get(mode, (0, 2, 4)))
            if code == 0:
                self.assertIn("result PASS\npins 1/1\n[ok] 8080\npath 2 calls: 2 hit, 0 synthesized, 0 miss", text)
            if code in (0, 4):
                self.assertEqual(self.store.count_runs("port"), runs + 1)
            self.no_tool_ran()
            self.assertEqual(self.store.path("port").read_bytes(), before)
            state = self.state()
            if state not in self.states:
                self.states.add(state)
                self.next_run_passes(TRUST_HOST=kind)
        except AssertionError as error:
            self.wrong.append(f"{where}\n{error}")
        return NAMES[code]

    def state(self) -> tuple[str, ...]:
        """The hand-over files that lie there, without their ids."""
        files = (path.relative_to(self.store.root) for path in self.store.root.rglob("*") if path.is_file())
        return tuple(sorted({re.sub(r"[0-9a-fT-]{8,}", "#", str(path)) for path in files if path.parts[0] != "runs"}))


class FaultsOfTheWorld(FaultCase):
    def test_hand_over_files_that_vanish_make_the_run_invalid(self) -> None:
        for kind in ("process", "gateway"):
            for vanish, told in (
                ("arm.json@start", "no session claimed the run"),
                ("claims/*.json@turn", "no session claimed the run"),
                ("claims/*.json@end", "no session claimed the run"),
                ("ledgers/*.json@end", "left no record of its tool calls"),
                ("cassettes/*.json@start", "failed to load"),
            ):
                with self.subTest(kind=kind, vanish=vanish):
                    code, text = self.run_port(TRUST_HOST=kind, TRUST_VANISH=vanish)
                    self.assertEqual(code, 4, text)
                    self.assertIn(told, text)
                    if (kind, vanish) == ("gateway", "arm.json@start"):
                        for path in self.live.iterdir():  # documented: nothing tells this session that it is a replay
                            path.unlink()
                    self.no_tool_ran()
                    keep_cassette(_Home(self.home), "port", REQUEST, self.root / "work", "0.19.0")
                    self.next_run_passes(TRUST_HOST=kind)

    def test_a_clock_that_jumps_changes_no_verdict(self) -> None:
        for jump in ("-1000000", "1000000", "-3", "90000"):
            for kind in ("process", "gateway"):
                with self.subTest(jump=jump, kind=kind):
                    self.next_run_passes(TRUST_HOST=kind, TRUST_CLOCK=jump)

    def test_two_profiles_run_at_once_without_meeting(self) -> None:
        other = self.make_home("other")
        for kind in ("process", "gateway"):
            both = [self.command("run", "port", home=home, TRUST_HOST=kind) for home in (self.home, other)]
            for process in both:
                code, text = finish(process)
                self.assertEqual(code, 0, text)
        self.no_tool_ran()

    def test_a_full_disk_is_no_verdict_and_the_next_run_needs_no_help(self) -> None:
        with _tiny_disk(self) as disk:
            home = self.home
            (home / "plugin-data").rename(self.root / "moved")
            (home / "plugin-data").symlink_to(disk)
            keep_cassette(_Home(home), "port", REQUEST, self.root / "work", "0.19.0")
            ballast = disk / "ballast"
            for kind in ("process", "gateway"):
                with self.subTest(kind):
                    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                        while True:
                            file.write(b"x" * 4096)
                    code, text = self.run_port(TRUST_HOST=kind)
                    self.assertEqual(code, 2, text)
                    self.assertRegex(text, "cannot (write|use|open)")
                    self.no_tool_ran()
                    ballast.unlink()
                    self.next_run_passes(TRUST_HOST=kind)

    def test_eight_processes_and_eight_threads_make_one_claim(self) -> None:
        for processes, threads in ((8, 1), (1, 8), (4, 2)):
            with self.subTest(processes=processes, threads=threads):
                claims = self.race(processes, threads)
                self.assertEqual(claims.count("recorded: 8080"), 1, claims)
                self.assertEqual(len(claims), processes * threads)
                self.assertEqual(len(list((self.store.root / "claims").iterdir())), 1)
                for path in (*(self.store.root / "claims").iterdir(), *self.live.iterdir()):
                    path.unlink()

    def race(self, processes: int, threads: int) -> list[str]:
        facts = hooks.plugin_facts()
        _, sha = self.store.read("port")
        arm = Arm(
            id="a" * 24,
            kind="run",
            name="port",
            request=REQUEST,
            hosting="gateway",
            created=time.time(),
            timeout=900.0,
            plugin=facts.plugin,
            fingerprint=facts.fingerprint,
            cassette_sha=sha,
        )
        waiting = self.store.waiting()
        self.assertTrue(waiting.try_acquire())
        try:
            write_atomically(self.store.arm_path, to_json(arm))
            env = {**scratch.clean_environment(self.home), "TRUST_LIVE": str(self.live), "TRUST_RACE": str(threads)}
            racers = [
                subprocess.Popen(
                    [str(self.bin / "hermes"), "chat", "-Q", f"--query={REQUEST}"],
                    env=env,
                    text=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
                for _ in range(processes)
            ]
            for racer in racers:
                assert racer.stdout is not None
                self.assertEqual(racer.stdout.readline(), "ready\n")
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write("go\n")
                racer.stdin.flush()
            return [line for racer in racers for line in racer.communicate()[0].splitlines()]
        finally:
            waiting.release()


def _tiny_disk(case: unittest.TestCase) -> _Disk:
    folder = temp_folder(case)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        case.skipTest("FULL DISK NOT TESTED: this user may not mount a small file system")
    return _Disk(folder)


class _Disk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Path:
        return self.folder

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=False)


class LyingHermes(FaultCase):
    """A `hermes` that prints the pinned words without any plugin, and ends in several ways."""

    def test_printed_words_alone_never_pass(self) -> None:
        for status, reason in (
            (0, "no session claimed the run"),
            (1, "status 1"),
            (75, "status 75"),
            (130, "status 130"),
        ):
            for said in (
                'echo "the port is 8080"',
                'echo "Error: cannot reach :8080" >&2',
                'echo "the port is 8080"; echo "session_id: abc" >&2',
            ):
                with self.subTest(status=status, said=said):
                    self.stand_in(f"{said}\nexit {status}\n")
                    code, text = self.run_port()
                    self.assertEqual(code, 4, text)
                    self.assertIn("result INVALID", text)
                    self.assertIn(reason, text)
        for script, reason in (("kill -9 $$\n", "status -9"), ("", "no session claimed the run")):
            self.stand_in(script)
            code, text = self.run_port()
            self.assertEqual(code, 4, text)
            self.assertIn(reason, text)
        (self.bin / "hermes").write_bytes(b"\x00not a program")
        self.assertEqual(self.run_port()[0], 2)

    def test_a_gateway_client_that_answers_no_ping_is_refused(self) -> None:
        self.stand_in('echo "session-cassettes 1.0.0"; echo "session_id: abc" >&2\n')
        code, text = self.run_port(TRUST_HOST="gateway")
        self.assertEqual((code, "did not answer the ping" in text), (2, True), text)


class Children(FaultCase):
    """What a child is given, and how it is ended."""

    #: A `hermes` with a grandchild that shrugs off SIGTERM; it tells both through a pipe and waits.
    STUBBORN = (
        'trap "" TERM\n( trap "" TERM; exec sleep 600 ) &\necho "$$ $!" > "$TRUST_LIVE/../pids"\nwait\nsleep 600\n'
    )

    def test_a_hostile_request_is_one_argument(self) -> None:
        self.stand_in(f'exec "{sys.executable}" -c "import json, sys; print(json.dumps(sys.argv[1:]))" "$@"\n')
        for text in (
            "\"a\" 'b'",
            "%PATH% & | ; ^ $HOME `id` $(id)",
            "-rf --query=x",
            "--help",
            "one\ntwo\ttab",
            "žluťoučký 漢字 \U0001f600 \u202e",
            '\\ \\\\ \\" C:\\x\\',
            "*?[a]~{b,c}",
            "-" + "x" * 100_000,
        ):
            keep_cassette(_Home(self.home), "port", text, self.root / "work", "0.19.0")
            code, out = self.run_port("--json")
            self.assertEqual(code, 4, out)
            printed = self.printed(text)
            self.assertEqual(printed, ["chat", "-Q", f"--query={text}", f"--in={self.root / 'work'}"])
        keep_cassette(_Home(self.home), "port", "x" * 200_000, self.root / "work", "0.19.0")
        if sys.platform == "linux":
            code, out = self.run_port()
            self.assertEqual((code, "too long to be replayed" in out), (2, True), out)

    def printed(self, text: str) -> Any:
        """The arguments that the stand-in of the last test saw."""
        seen = self.root / "seen"
        self.stand_in(
            f'exec "{sys.executable}" -c "import json, sys; json.dump(sys.argv[1:], open(\'{seen}\', \'w\'))" "$@"\n'
        )
        self.run_port()
        return json.loads(seen.read_text())

    def test_a_child_gets_no_approval_bypass(self) -> None:
        seen = self.root / "seen"
        self.stand_in(f'env > "{seen}"\n')
        bypasses = {
            name: "1"
            for name in (
                "HERMES_YOLO_MODE",
                "HERMES_ACCEPT_HOOKS",
                "HERMES_NONINTERACTIVE",
                "HERMES_INTERACTIVE",
                "HERMES_EXEC_ASK",
                "HERMES_CRON_SESSION",
                "HERMES_SESSION_ID",
                "HERMES_SINGLE_QUERY_SESSION",
                "HERMES_ACP_AUTO_APPROVE",
                "HERMES_GATEWAY_SESSION",
                "HERMES_SAFE_MODE",
                "HERMES_KANBAN_TASK",
                "SESSION_CASSETTES_RECORD",
            )
        }
        self.run_port(**bypasses, SESSION_CASSETTES_RUN="somebody else's")
        given = dict(line.partition("=")[::2] for line in seen.read_text().splitlines())
        self.assertEqual([name for name in bypasses if name in given], [])
        self.assertRegex(given["SESSION_CASSETTES_RUN"], r"\A[0-9a-f]{24}\Z")
        self.assertEqual(given["HERMES_HOME"], str(self.home))

    def test_a_time_out_ends_child_and_grandchild(self) -> None:
        self.adopted = adopt_orphans()
        self.stand_in(self.STUBBORN)
        code, text = self.run_port("--timeout", "1")
        self.assertEqual(code, 4, text)
        self.assertIn("did not end in time", text)
        self.nothing_is_left()
        self.assertFalse(self.store.arm_path.exists())

    def test_ctrl_c_a_kill_and_a_closed_terminal_grade_nothing_and_leave_nothing(self) -> None:
        self.adopted = adopt_orphans()
        self.stand_in(self.STUBBORN)
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            with self.subTest(number.name):
                os.mkfifo(self.root / "pids")
                process = self.command("run", "port")
                pids = (self.root / "pids").read_text()
                (self.root / "pids").unlink()
                (self.root / "pids").write_text(pids)
                process.send_signal(number)
                code, text = finish(process)
                self.assertEqual(code, status, text)
                self.assertIn("nothing was graded", text)
                self.assertFalse(self.store.arm_path.exists())
                self.assertEqual(self.store.count_runs("port"), 0)
                self.nothing_is_left()

    def nothing_is_left(self) -> None:
        wait_for_orphans()
        for pid in map(int, (self.root / "pids").read_text().split() if self.adopted else ()):
            with self.assertRaises(ProcessLookupError):
                os.kill(pid, 0)
        (self.root / "pids").unlink()
        self.assertEqual(os.listdir(self.tmp), [])
        self.assertEqual(
            [path.name for part in ("claims", "ledgers") for path in (self.store.root / part).iterdir()], []
        )

    def test_no_room_for_the_childs_output_is_an_error(self) -> None:
        code, text = self.run_port(TMPDIR=str(self.root / "nowhere"), HOME=str(self.root))
        self.assertIn(code, (0, 2), text)  # Python falls back to /tmp where it may
        self.no_tool_ran()


def main(kind: str) -> None:
    """Go through the faults of one kind of host and print what came of it."""
    worker = _Worker()
    worker.setUp()
    try:
        print(json.dumps(worker.faults(kind)))
    finally:
        worker.doCleanups()


if __name__ == "__main__":
    main(sys.argv[1])
