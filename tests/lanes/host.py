"""Starts a real Hermes in a home of its own: as a process that runs many turns, or as the command."""

from __future__ import annotations

import contextlib
import json
import os
import re
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

from .venvs import lane_hermes, lane_python, scratch

#: Seconds after which one order, or one `hermes` command, counts as hung.
PATIENCE = 300.0


class Home:
    """A scratch HERMES_HOME with our plugin in it, and nothing of the person's own.

    :param base_url: where the scripted model serves.
    :param config: further lines of `config.yaml`; `BASE_URL` in them is where the model serves.
    :param others: other plugins, by name: the code of each.
    """

    def __init__(
        self,
        base_url: str,
        model: str = "careful",
        config: str = "",
        plugin: bool = True,
        others: Mapping[str, str] = {},
    ) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="cassettes-home-")).resolve()
        self.data = self.path / "plugin-data" / scratch.PLUGIN
        if plugin:
            scratch.install_plugin(self.path)
        for name, code in others.items():
            folder = self.path / "plugins" / name
            folder.mkdir(parents=True)
            (folder / "__init__.py").write_text(code, encoding="utf-8")
            manifest = f"name: {name}\nversion: 1.0.0\ndescription: A test's own.\nkind: standalone\n"
            (folder / "plugin.yaml").write_text(manifest, encoding="utf-8")
        config = config.replace("BASE_URL", base_url)
        scratch.write_config(self.path, base_url, model, enabled=plugin, more=config, others=tuple(others))

    def cassette(self, name: str) -> Any:
        """Return a saved cassette as plain JSON."""
        return json.loads((self.data / "cassettes" / f"{name}.json").read_text(encoding="utf-8"))

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


@dataclass(frozen=True)
class Returned:
    """One tool call as Hermes saw it: what was asked, and what the middleware gave back."""

    tool: str
    args: Any
    result: str
    session_id: str = ""
    turn_id: str = ""
    tool_call_id: str = ""


@dataclass(frozen=True)
class TurnResult:
    """One finished turn; `ran` holds the calls that reached a real tool."""

    response: str
    session_id: str
    returned: list[Returned] = field(default_factory=list)
    ran: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    failed: bool = False

    @property
    def results(self) -> list[str]:
        """What the middleware returned, in the order of the calls."""
        return [one.result for one in self.returned]


class HermesHost:
    """One long-lived Hermes process.  Its first turn costs five seconds or more, later ones half a second.

    Use it in a `with` block or call `close`.
    """

    def __init__(self, version: str, home: Home, environment: Mapping[str, str] | None = None) -> None:
        self.home = home
        self._log = tempfile.TemporaryFile()
        self._lines: queue.Queue[str] = queue.Queue()
        self._child = subprocess.Popen(
            [str(lane_python(version)), "-P", str(Path(__file__).with_name("child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=home.path,
            env={**scratch.clean_environment(home.path), **(environment or {})},
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.started = self._order("start")

    def __enter__(self) -> "HermesHost":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def turn(
        self, query: str, cwd: Path, session_id: str = "", model: str = "", skills: Sequence[str] = ()
    ) -> TurnResult:
        """Run one turn: in a session of this process, in a resumed one, or in a fresh one.

        :param model: "" is the home's default; it counts for a fresh session only.
        """
        said = self._order("turn", query=query, cwd=str(cwd), session_id=session_id, model=model, skills=list(skills))
        return TurnResult(**{**said, "returned": [Returned(**one) for one in said["returned"]]})

    def open(self, cwd: Path, model: str = "", skills: Sequence[str] = ()) -> str:
        """Begin an interactive session and return its id."""
        return str(self._order("open", cwd=str(cwd), model=model, skills=list(skills))["session_id"])

    def slash(self, text: str, session_id: str = "") -> str:
        """Type a slash command in a session and return what it printed."""
        return str(self._order("slash", text=text, session_id=session_id)["text"])

    def set_env(self, **values: str | None) -> None:
        """Set environment variables of the process; None removes one."""
        self._order("env", values=values)

    def close(self) -> None:
        """End the process and wait for it."""
        if self._child.stdin and not self._child.stdin.closed:
            self._child.stdin.close()
        try:
            self._child.wait(20)
        except subprocess.TimeoutExpired:
            kill_with_children(self._child)
        if self._child.stdout:
            self._child.stdout.close()
        self._log.close()

    def log(self) -> str:
        """Return what Hermes has written to stderr, or to stdout past us."""
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _order(self, do: str, **parameters: Any) -> Any:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps({"do": do, **parameters}) + "\n")
            self._child.stdin.flush()
            line = self._lines.get(timeout=PATIENCE)
        except (OSError, queue.Empty) as error:
            kill_with_children(self._child)
            raise AssertionError(f"Hermes did not finish {do!r} ({error!r}):\n{self.log()[-4000:]}") from error
        answer = json.loads(line) if line else {"failure": "the process ended"}
        if "failure" in answer:
            raise AssertionError(f"Hermes failed at {do!r}: {answer['failure']}\n{self.log()[-4000:]}")
        return answer


def run_hermes(
    version: str,
    home: Home,
    *args: str,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    as_module: bool = False,
    patience: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    """Run the real `hermes` command of a lane, as a person would, without a terminal.

    A library of Hermes 0.22 now and then crashes when its process ends, whatever
    ran in it.  That this is no replay is right, and not what the tests are about:
    such a command is given once more, and says so.

    :param as_module: run `python -m hermes_cli.main`, with no `hermes` on PATH.
    :param patience: seconds after which it counts as hung.
    """
    for _ in range(3):
        done = _run_once(version, home, *args, cwd=cwd, environment=environment, as_module=as_module, patience=patience)
        if not re.search(_CRASHED, done.stdout + done.stderr):
            break
        print(f"lane {version}: a session crashed at its end, {' '.join(args[:3])} is run again", file=sys.stderr)
    return done


#: What a command says of a session that ended by SIGSEGV.
_CRASHED = r"exited with status -11\b"


def _run_once(
    version: str,
    home: Home,
    *args: str,
    cwd: Path,
    environment: Mapping[str, str] | None,
    as_module: bool,
    patience: float,
) -> subprocess.CompletedProcess[str]:
    hermes = lane_hermes(version)
    env = {**scratch.clean_environment(home.path), **(environment or {})}
    words = [str(hermes)]
    if as_module:
        words, env["PATH"] = [str(lane_python(version)), "-m", "hermes_cli.main"], os.defpath
    else:
        env["PATH"] = os.pathsep.join([str(hermes.parent), env.get("PATH", "")])
    with subprocess.Popen(
        [*words, *args],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as child:
        try:
            out, err = child.communicate(timeout=patience)
        except BaseException:
            kill_with_children(child)
            raise
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


def kill_with_children(child: subprocess.Popen[str]) -> None:
    """Kill a process and what it started: a session left alive would make its home anew."""
    if os.name == "nt":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(child.pid)], capture_output=True, check=False)
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
