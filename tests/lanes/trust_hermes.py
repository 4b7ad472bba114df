"""A `hermes chat -Q` without Hermes: a real process with our hooks, driven as Hermes drives them.

It loads the plugin of its home, takes one turn, lets the model ask for a
recorded read and for a write, prints the answer and the session's id.  A tool
that really runs leaves a file in the folder that TRUST_LIVE names.  TRUST_VERSION
is the Hermes that it says it is, TRUST_COMMAND a command that the model runs too.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.lanes import trust_fault  # noqa: E402
from tests.support import FakeHost  # noqa: E402


def load(home: Path) -> FakeHost:
    """Load the home's plugin into a fake host whose tools leave a trace."""
    if version := os.environ.get("TRUST_VERSION"):
        setattr(sys.modules.setdefault("hermes_cli", ModuleType("hermes_cli")), "__version__", version)
    folder = home / "plugins" / "session-cassettes"
    spec = importlib.util.spec_from_file_location(
        "hermes_plugin_cassettes", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    host = FakeHost(newer=True)
    module.register(host.ctx)

    def live(tool: str) -> str:
        (Path(os.environ["TRUST_LIVE"]) / f"{tool}-{os.getpid()}-{time.monotonic_ns()}").touch()
        return f"live {tool}"

    host.tools = {tool: (lambda _, tool=tool: live(tool)) for tool in ("read_file", "write_file", "terminal")}
    return host


def vanish(when: str) -> None:
    """Remove the hand-over files that TRUST_VANISH names for this moment ("claims/*.json@turn")."""
    pattern, _, moment = os.environ.get("TRUST_VANISH", "").partition("@")
    if moment == when:
        for path in (Path(os.environ["HERMES_HOME"]) / "plugin-data" / "session-cassettes").glob(pattern):
            path.unlink()


def turn(host: FakeHost, query: str) -> tuple[str, list[object]]:
    """Take one turn; return its session and what its tools returned."""
    vanish("start")
    started = host.start_turn(query)
    vanish("turn")
    returned = [host.call(started, "read_file", {"path": "a.txt"}), host.call(started, "read_file", {"path": "a.txt"})]
    if command := os.environ.get("TRUST_COMMAND"):
        returned.append(host.call(started, "terminal", {"command": command}))
    host.end_turn(started, os.environ.get("TRUST_ANSWER", "the port is 8080"))
    vanish("end")
    return started.session_id, returned


def race(host: FakeHost, query: str, count: int) -> None:
    """Start `count` turns with the same words at once when told to, and say what each got."""
    print("ready", flush=True)
    sys.stdin.readline()
    barrier, printing = threading.Barrier(count), threading.Lock()

    def one() -> None:
        barrier.wait()
        started = host.start_turn(query)
        said = host.call(started, "read_file", {"path": "a.txt"})
        with printing:
            print(said, flush=True)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> int:
    query = next(word for word in sys.argv[1:] if word.startswith("--query="))[8:]
    trust_fault.install("ping" if query.startswith("/") else "host")
    if jump := float(os.environ.get("TRUST_CLOCK", "0")):
        now = time.time
        time.time = lambda: now() + jump
    host = load(Path(os.environ["HERMES_HOME"]))
    if count := int(os.environ.get("TRUST_RACE", "0")):
        race(host, query, count)
        return 0
    if query.startswith("/"):
        print(host.slash(query))
        print("\nsession_id: a-ping", file=sys.stderr)
        return 0
    session, returned = turn(host, query)
    print(os.environ.get("TRUST_ANSWER", "the port is 8080"), flush=True)
    print(f"\nsession_id: {session}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
