"""One replay in a real Hermes, seen from outside: its system calls, its network, its arguments and environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import unittest
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Iterator

from tests.support import temp_folder

from .case import LaneCase
from .trust_case import Scripts, Step, Store, calls, keep_cassette, model
from .venvs import lane_hermes, scratch

QUESTION = "Where is the auth handler and what port does it bind?"
#: What no quoting survives by luck.
HOSTILE = (
    'what\'s "this" %PATH% & that | ; ^ $HOME `id` $(id) \\ \\\\ *?[a] ~ ! --yolo -z\n\n  two\tlines  '
    "žluťoučký 漢字 \U0001f600 " + "x" * 100_000
)
BYPASSES = {
    name: "1"
    for name in (
        "HERMES_YOLO_MODE",
        "HERMES_ACCEPT_HOOKS",
        "HERMES_EXEC_ASK",
        "HERMES_CRON_SESSION",
        "HERMES_SINGLE_QUERY_SESSION",
    )
}


class ReplayFromOutside(LaneCase):
    def setUp(self) -> None:
        self.scripts = Scripts()
        self.model.brain = self.scripts
        self.work = self.workspace({"a.txt": "AUTH_PORT = 8080\n"})

    def test_a_hostile_request_arrives_as_it_is_and_no_bypass_with_it(self) -> None:
        self.scripts.steps['what\'s "this"'] = [calls(("read_file", {"path": "a.txt"})), Step(text="8080")]
        keep_cassette(self.home, "hostile", HOSTILE, self.work, self.version)
        done = self.hermes("cassette", "run", "hostile", cwd=self.work, environment=BYPASSES)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("result PASS", done.stdout)
        self.assertIn(HOSTILE.strip(), [model.ask(body["messages"]).text.strip() for body in self.model.requests])

    def test_without_a_network_a_replay_passes(self) -> None:
        if (
            os.name != "posix"
            or not shutil.which("unshare")
            or subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode
        ):
            self.skipTest("OFFLINE REPLAY NOT TESTED: there is no unshare -n here")
        shop = self.workspace()
        self.model.brain = None
        done = self.hermes("cassette", "record", "offline", "--query", QUESTION, cwd=shop)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        Store(self.home.data).change_pins("offline", lambda _: ("8080",))
        env = scratch.clean_environment(self.home.path)
        env["PATH"] = os.pathsep.join([str(lane_hermes(self.version).parent), env.get("PATH", "")])
        done = subprocess.run(
            [
                "unshare",
                "-n",
                sys.executable,
                str(Path(__file__).with_name("trust_offline.py")),
                self.model.base_url,
                str(lane_hermes(self.version)),
                "cassette",
                "run",
                "offline",
            ],
            env=env,
            cwd=shop,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("the network is unreachable", done.stdout)
        self.assertIn("result PASS", done.stdout)

    def test_no_tool_that_hermes_offers_does_anything_that_the_kernel_sees(self) -> None:
        if (
            not shutil.which("strace")
            or subprocess.run(["strace", "-f", "true"], capture_output=True, check=False).returncode
        ):
            self.skipTest("SYSTEM CALLS NOT WATCHED: there is no strace here")
        made = self.work / "made-by-a-tool"
        asked: list[str] = []

        def everything(messages: Any, tools: Any) -> Any:
            asked[:] = [*tools, "no_such_tool"]
            args = _effective(made)
            return calls(*((tool, args) for tool in asked))

        def one_by_one(messages: Any, tools: Any) -> Any:
            taken = sum(1 for _ in model.batches(messages))
            if taken > len(asked):
                return Step(text="8080")
            return calls((asked[taken - 1], {**_effective(made), "path": str(made.with_name(f"made-{taken}"))}))

        self.scripts.steps["watch nothing"] = [Step(text="8080")]
        self.scripts.steps["watch everything"] = [everything, one_by_one]
        for name in ("nothing", "everything"):
            keep_cassette(self.home, name, f"watch {name}?", self.work, self.version)
        quiet = self.traced("nothing", 0)
        busy = self.traced("everything", 4)  # Hermes itself answers for a tool that does not exist
        run = self.store_run("everything")
        self.assertEqual(run["reasons"], ["a tool call was answered by something else: no_such_tool"])
        by_tool = {call["tool"] for call in run["calls"]}
        self.assertEqual({call["how"] for call in run["calls"]} - {"miss", "synthesized"}, set())
        self.assertEqual([path.name for path in self.work.iterdir()], ["a.txt"], "a tool ran")
        self.assertEqual(busy.programs - quiet.programs, set())
        self.assertEqual(busy.peers - quiet.peers, set())
        outside = {
            path
            for path in quiet.written | busy.written
            if not path.startswith((str(self.home.path), str(self.tmp), "/dev/", "/proc/self/"))
        }
        self.assertEqual(outside, set())
        port = self.model.base_url.rpartition(":")[2].partition("/")[0]
        told = [
            f"{self.version}: {len(asked)} tools asked for together and one by one, {len(run['calls'])} calls reached "
            f"the plugin ({len(by_tool)} names; answered before it: {', '.join(sorted(set(asked) - by_tool)) or 'none'})",
            f"  programs started by a tool: 0; by Hermes itself: {', '.join(sorted(quiet.programs)) or 'none'}",
            "  files written outside home and temp folder: 0; inside, beyond a run without calls: "
            + (", ".join(sorted(_stable(busy.written) - _stable(quiet.written))) or "none"),
            f"  peers: {', '.join(sorted(busy.peers)).replace(port, 'the model')}",
        ]
        print("\n".join(told), file=sys.stderr)

    def store_run(self, name: str) -> Any:
        return Store(self.home.data).last_runs(name, 1)[0]

    def traced(self, name: str, code: int) -> Trace:
        """Run one replay under strace and return what its processes did."""
        log = self.work.with_name(self.work.name + f"-{name}.strace")
        self.addCleanup(log.unlink)
        self.tmp = self.work.with_name(self.work.name + "-tmp")
        self.tmp.mkdir(exist_ok=True)
        self.addCleanup(shutil.rmtree, self.tmp, True)
        env = {**scratch.clean_environment(self.home.path), "TMPDIR": str(self.tmp), "PYTHONDONTWRITEBYTECODE": "1"}
        hermes = lane_hermes(self.version)
        env["PATH"] = os.pathsep.join([str(hermes.parent), env.get("PATH", "")])
        done = subprocess.run(
            [
                "strace",
                "-f",
                "-y",
                "-s",
                "400",
                "-o",
                str(log),
                "-e",
                "trace=execve,execveat,open,openat,openat2,creat,connect,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat",
                str(hermes),
                "cassette",
                "run",
                name,
            ],
            env=env,
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return read_trace(log)


def _effective(made: Path) -> dict[str, Any]:
    """Arguments with which any tool would leave a trace."""
    return {
        "path": str(made),
        "content": "x",
        "command": f"touch {made}",
        "code": f"open({str(made)!r}, 'w').close()",
        "goal": f"write {made}",
        "tasks": [{"goal": f"write {made}"}],
        "query": "x",
        "pattern": "x",
        "action": "add",
        "url": "http://127.0.0.1:9/",
        "urls": ["http://127.0.0.1:9/"],
        "name": "x",
        "text": "x",
        "target": "memory",
        "old_string": "a",
        "new_string": "b",
        "mode": "replace",
        "prompt": "x",
        "question": "x?",
        "schedule": "1h",
        "todos": [{"id": "1", "content": "x", "status": "pending"}],
        "image_url": f"file://{made}",
        "message": "x",
    }


class TraceReading(unittest.TestCase):
    """What the log of several threads says."""

    LOG = """7 mkdir("/a", 0777 <unfinished ...>
8 openat(AT_FDCWD</w>, "b", O_WRONLY|O_CREAT <unfinished ...>
9 execve("/bin/x", ["x", "-c"], 0x1 <unfinished ...>
7 <... mkdir resumed>)                   = -1 EEXIST (File exists)
8 <... openat resumed>, 0666)            = 3</w/b>
7 openat(AT_FDCWD</w>, "c", O_RDONLY)    = 3</w/c>
7 openat(AT_FDCWD</w>, "d", O_RDWR)      = -1 ENOENT (No such file or directory)
7 unlink("/e" <unfinished ...>
7 +++ killed by SIGKILL +++
"""

    def test_a_call_counts_by_its_end_and_without_one(self) -> None:
        log = temp_folder(self) / "log"
        log.write_text(self.LOG)
        found = read_trace(log)
        self.assertEqual((found.written, found.programs), ({"/w/b", "/e"}, {"/bin/x -c"}))


@dataclass
class Trace:
    """What the processes of one run did: programs started, files written, peers connected to."""

    programs: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    peers: set[str] = field(default_factory=set)


def read_trace(log: Path) -> Trace:
    """Collect from strace's log what succeeded (a connection also when it is still under way)."""
    found = Trace()
    for call in whole_calls(log.read_text(errors="replace").splitlines()):
        if "= -1 E" in call and "EINPROGRESS" not in call:
            continue
        if match := re.match(r'execve\("([^"]*)", \[(.*?)\]', call):
            words = re.findall(r'"((?:[^"\\]|\\.)*)"', match[2])
            found.programs.add(re.sub(r"nothing|everything", "...", " ".join([match[1], *words[1:]]))[:160])
        elif match := re.match(r"connect\(\d+(?:<[^>]*>)?, \{(.*?)\}", call):
            port, address = (
                re.search(r"htons\((\d+)\)", match[1]),
                re.search(r'(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"', match[1]),
            )
            found.peers.add(f"{address[1]}:{port[1]}" if port and address else match[1])
        elif match := re.match(r'(?:open|openat|openat2|creat)\((?:[^"]*<([^>]*)>, )?"([^"]*)"(.*)', call):
            if call.startswith("creat") or re.search(r"O_(WRONLY|RDWR|CREAT)", match[3]):
                found.written.add(os.path.join(match[1] or "", match[2]))
        elif match := re.match(r'(?:rename|unlink|mkdir)\w*\((?:[^"]*<([^>]*)>, )?"([^"]*)"', call):
            found.written.add(os.path.join(match[1] or "", match[2]))
    return found


def whole_calls(lines: Iterable[str]) -> Iterator[str]:
    """Put the halves together of calls between which strace noted another thread's; one without an end may have succeeded."""
    begun: dict[str, str] = {}
    for line in lines:
        thread, _, call = line.partition(" ")
        call = call.strip()
        if call.endswith("<unfinished ...>"):
            begun[thread] = call.removesuffix("<unfinished ...>")
        elif resumed := re.match(r"<\.\.\. \w+ resumed>", call):
            yield begun.pop(thread, "") + call[resumed.end() :]
        else:
            yield call
    yield from begun.values()


def _stable(paths: set[str]) -> set[str]:
    """Paths without what differs from run to run: ids, dates, process numbers."""
    return {
        re.sub(
            r"nothing|everything",
            "...",
            re.sub(r"(?<=tmp/)\w{8}$|_\w{8}(?=\.tmp$)|[0-9a-f]{6,}|\d+|(?<=tmp)\w{8}\b", "#", path),
        )
        for path in paths
    }
