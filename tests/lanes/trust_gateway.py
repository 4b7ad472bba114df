"""A real Hermes that hosts many sessions: its TUI gateway, spoken to as the attaching clients of 0.23 would.

The gateway is Hermes's own (`tui_gateway.entry`, JSON-RPC over stdio).  What
stands in is the client (`trust_client.py`) and the broker here, which makes one
gateway session per client, with `source` "cli" as a command-line client gives
it, and passes prompts, plugin commands and answers on.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socketserver
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any
from collections.abc import Callable, Mapping

from .host import PATIENCE, Home
from .venvs import lane_python, scratch

#: A second plugin, which reaches into the gateway's process for the tests.
PROBE = """
import os


def register(ctx):
    ctx.register_command("trustprobe", lambda raw: probe(ctx, raw), "for tests")


def probe(ctx, raw):
    word, _, rest = raw.partition(" ")
    if word == "reload":
        from hermes_cli.plugins import discover_plugins
        discover_plugins(force=True)
        return "reloaded"
    if word == "yolo":
        os.environ.pop("HERMES_YOLO_MODE", None)
        if rest:
            os.environ["HERMES_YOLO_MODE"] = rest
        return "set"
    if word == "dispatch":
        return str(ctx.dispatch_tool("write_file", {"path": rest, "content": "by another plugin"}))
    return "pid %d" % os.getpid()
"""

#: 0.22 forgets this import on Python 3.11.
_START = "import builtins, pathlib; builtins.Path = pathlib.Path\nfrom tui_gateway.entry import main\nmain()\n"


def install_probe(home: Home) -> None:
    """Put the second plugin into a home and enable it beside ours."""
    folder = home.path / "plugins" / "trust-probe"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: trust-probe\nversion: 1.0.0\ndescription: for tests\nkind: standalone\n")
    (folder / "__init__.py").write_text(PROBE)
    config = home.path / "config.yaml"
    text = config.read_text(encoding="utf-8")
    text = text.replace("enabled: [session-cassettes]", "enabled: [session-cassettes, trust-probe]")
    config.write_text(text.replace("enabled: []", "enabled: [trust-probe]"), encoding="utf-8")


class Gone(Exception):
    """The gateway ended before it answered."""


class Gateway:
    """One gateway process and the broker in front of it.  Use it in a `with` block.

    `gate`, when set, is called with each prompt before it is submitted: a test
    can hold a client there.
    """

    def __init__(self, version: str, home: Home, cwd: Path, environment: Mapping[str, str] | None = None) -> None:
        self.version, self.home = version, home
        self.gate: Callable[[str], None] | None = None
        self.sessions: list[tuple[str, str]] = []  # (id in the gateway, stored id), oldest first
        self.served: queue.Queue[str] = queue.Queue()  # what clients asked, once it is done
        self._log = tempfile.TemporaryFile()
        self._lock = threading.Lock()
        self._last = 0
        self._waiting: dict[Any, queue.Queue[Any]] = {}  # id of a call, or of a session -> who waits for it
        self._child = subprocess.Popen(
            [str(lane_python(version)), "-P", "-c", _START],
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**scratch.clean_environment(home.path), **(environment or {})},
            text=True,
            encoding="utf-8",
        )
        self.pid = self._child.pid
        threading.Thread(target=self._read, daemon=True).start()
        gateway = self

        class Client(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                asked = json.loads(self.rfile.readline())
                try:
                    answer = gateway.serve(asked["query"], asked["cwd"], asked["model"])
                except Gone as error:
                    answer = {"failure": f"the gateway is gone: {error}"}
                gateway.served.put(asked["query"])
                with contextlib.suppress(OSError):  # the client may be dead
                    self.wfile.write((json.dumps(answer) + "\n").encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Client)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.address = "{}:{}".format(*self._server.server_address)

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and the broker."""
        self._server.shutdown()
        self._server.server_close()
        self.kill()
        for stream in (self._child.stdin, self._child.stdout):
            if stream:
                try:
                    stream.close()
                except OSError:
                    pass
        self._log.close()

    def kill(self) -> None:
        """Kill the gateway as an out-of-memory killer would."""
        self._child.kill()
        self._child.wait()

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    def warm_up(self, cwd: Path) -> None:
        """Run a turn that nobody grades: the first one loads all of Hermes."""
        for _ in range(4):
            try:
                self.prompt(self.create(cwd)[0], "are you there?")
                return
            except Gone as error:  # it gives an agent 30 s to come up, which a busy machine exceeds
                told = error
        raise told

    # what clients ask

    def serve(self, query: str, cwd: str, model: str = "") -> dict[str, Any]:
        """Do what an attaching client asked: a fresh session, then a command or a prompt in it."""
        session, stored = self.create(cwd, model)
        if query.startswith("/"):
            text = self.slash(session, query)
        else:
            if self.gate:
                self.gate(query)
            text = self.prompt(session, query)
        return {"text": text, "session": stored}

    def create(self, cwd: str | Path, model: str = "") -> tuple[str, str]:
        """Make a session; return its id in the gateway and its stored id."""
        wanted = {"cols": 80, "cwd": str(cwd), "source": "cli", **({"model": model} if model else {})}
        made = self.call("session.create", **wanted)
        self.sessions.append((made["session_id"], made["stored_session_id"]))
        return self.sessions[-1]

    def slash(self, session: str, text: str) -> str:
        """Type a plugin's slash command."""
        name, _, rest = text.removeprefix("/").partition(" ")
        said = self.call("command.dispatch", session_id=session, name=name, arg=rest)
        return str(said.get("output") or said)

    def prompt(self, session: str, text: str) -> str:
        """Run a turn and return its answer."""
        done = self._await(session)
        self.call("prompt.submit", session_id=session, text=text)
        said = self._take(done, f"a turn of {session}")
        if said["kind"] == "error":
            raise Gone(str(said))
        return str(said.get("text", ""))

    # JSON-RPC

    def call(self, method: str, **params: Any) -> Any:
        with self._lock:
            self._last += 1
            number = self._last
        waiting = self._await(number)
        try:
            assert self._child.stdin is not None
            with self._lock:
                self._child.stdin.write(
                    json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
                )
                self._child.stdin.flush()
        except (OSError, ValueError) as error:
            raise Gone(repr(error)) from error
        answer = self._take(waiting, method)
        if answer.get("error"):
            raise Gone(f"{method}: {answer['error']}")
        return answer["result"]

    def _await(self, key: Any) -> queue.Queue[Any]:
        with self._lock:
            return self._waiting.setdefault(key, queue.Queue())

    @staticmethod
    def _take(waiting: queue.Queue[Any], what: str) -> Any:
        try:
            found = waiting.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"the gateway did not finish {what}") from None
        if found is None:
            waiting.put(None)
            raise Gone(what)
        return found

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if told.get("method") == "event":
                params = told["params"]
                if params.get("type") in ("message.complete", "error"):
                    self._await(params["session_id"]).put({"kind": params["type"], **(params.get("payload") or {})})
            elif "id" in told:
                self._await(told["id"]).put(told)
        with self._lock:
            for waiting in self._waiting.values():
                waiting.put(None)


def write_client(folder: Path) -> Path:
    """Make an executable `hermes` that is the attaching client; return the folder to put on PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "hermes"
    path.write_text(
        f"#!{sys.executable}\nimport runpy\n"
        f"runpy.run_path({str(Path(__file__).with_name('trust_client.py'))!r}, run_name='__main__')\n"
    )
    path.chmod(0o755)
    return folder


def start_cli(
    python: Path, home: Home, *words: str, cwd: Path, bin_folder: Path, **environment: str
) -> subprocess.Popen[str]:
    """Start one `hermes cassette` command whose children are the `hermes` of `bin_folder`."""
    env = {**scratch.clean_environment(home.path), **environment}
    env["PATH"] = os.pathsep.join([str(bin_folder), env.get("PATH", "")])
    return subprocess.Popen(
        [str(python), "-P", str(Path(__file__).with_name("trust_cli.py")), *words],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
