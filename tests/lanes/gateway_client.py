"""Used in place of `hermes`: the attaching client of Hermes 0.23 as its public source describes it.

`hermes chat` and `hermes gateway` are ours and only talk to the gateway process
(`gateway_host.py`), which the first of them starts; everything else is the real
command of the lane, which calls itself 0.23.  What it is like is read from
`stand-in.json` in the home.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

Json = dict[str, Any]
HERE = Path(__file__).resolve().parent

#: Taken from the environment that the first client gives to the gateway.
STRIPPED = (
    "HERMES_PROFILE",
    "HERMES_YOLO_MODE",
    "HERMES_IGNORE_RULES",
    "HERMES_SAFE_MODE",
    "HERMES_IGNORE_USER_CONFIG",
)
#: Refused before any connection, by generation.
REFUSED = {
    "A": ("skills", "checkpoints", "accept_hooks", "pass_session_id", "image", "worktree", "verbose", "compact"),
    "B": ("image", "worktree", "verbose", "compact"),
}


class Refused(Exception):
    """What the client prints after "Error: "."""


# --- what this Hermes is like ---------------------------------------------------------


def home() -> Path:
    return Path(os.environ["HERMES_HOME"])


def settings_path() -> Path:
    return home() / "stand-in.json"


def settings() -> Json:
    """The switches of the stand-in; a home without the file has the usual ones."""
    usual = {
        "version": "0.23.2",
        "generation": "B",
        "session_cwd": False,  # ctx.session_cwd, which the specification names and nobody else
        "module": True,  # hermes_cli.gateway_chat can be found
        "attaches": True,  # else `hermes chat` is the lane's own, which hosts its session itself
        "keeps_environment": True,  # what the command gives to that one reaches it
        "provider": True,  # one is configured
        "lacks": [],  # creation options that the running gateway does not know
        "yolo": False,  # every session bypasses approvals
    }
    try:
        return {**usual, **json.loads(settings_path().read_text(encoding="utf-8"))}
    except OSError:
        return usual


def be_the_newer_hermes() -> None:
    """Let the Hermes of this process say of itself what 0.23 says; nothing else of it changes."""
    import hermes_cli
    from hermes_cli import plugins

    kind = settings()
    hermes_cli.__version__ = kind["version"]
    if kind["module"]:
        hermes_cli.__path__.append(str(HERE / "gateway_modules"))
    if kind["session_cwd"]:
        from agent.runtime_cwd import resolve_agent_cwd

        plugins.PluginContext.session_cwd = lambda _: str(resolve_agent_cwd())  # type: ignore[attr-defined]


# --- the gateway's process ---------------------------------------------------------------


def state_path() -> Path:
    return home() / "gateway-stand-in.json"


def publish(port: int) -> None:
    """Called by the gateway when it is ready."""
    unfinished = state_path().with_suffix(".new")
    unfinished.write_text(json.dumps({"port": port, "pid": os.getpid()}), encoding="utf-8")
    os.replace(unfinished, state_path())


@contextlib.contextmanager
def connection() -> Iterator[Any]:
    """A way to ask the running gateway.  :raises OSError: if none runs."""
    found = json.loads(state_path().read_text(encoding="utf-8"))
    with socket.create_connection(("127.0.0.1", found["port"]), 5) as wire:
        wire.settimeout(300)
        with wire.makefile("rw", encoding="utf-8") as lines:

            def ask(op: str, **parameters: Any) -> Json:
                lines.write(json.dumps({"op": op, **parameters}) + "\n")
                lines.flush()
                if not (line := lines.readline()):
                    raise ConnectionError("the gateway is gone")
                return dict(json.loads(line))

            yield ask


def ensure() -> bool:
    """Find the gateway or start it; return whether it is ready."""
    with (home() / "gateway-stand-in.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _ready():
            return True
        root = home() / "install-root"
        root.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if name not in STRIPPED}
        with (home() / "gateway-stdio.log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-P", str(HERE / "gateway_host.py"), "gateway", "run", "--quiet"],
                cwd=root,
                env={**kept, "HERMES_GATEWAY_DETACHED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and child.poll() is None:
            if _ready():
                return True
            time.sleep(0.05)
    return False


def _ready() -> bool:
    try:
        with connection() as ask:
            return bool(ask("describe"))
    except (OSError, ValueError):
        return False


def stop() -> None:
    """End the gateway and wait until it is gone."""
    with contextlib.suppress(OSError, ValueError):
        pid = json.loads(state_path().read_text(encoding="utf-8"))["pid"]
        os.kill(pid, signal.SIGTERM)
        for _ in range(200):
            os.kill(pid, 0)
            time.sleep(0.05)
    with contextlib.suppress(OSError):
        state_path().unlink()


# --- hermes chat -----------------------------------------------------------------------------


def chat(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="hermes chat")
    parser.add_argument("-Q", "--quiet", action="store_true")
    parser.add_argument("-q", "--query", default="")
    parser.add_argument("--in", dest="cwd", default="")
    for name in ("resume", "model", "provider", "source", "image"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("-s", "--skills", action="append", default=[])
    for name in ("yolo", "checkpoints", "accept-hooks", "pass-session-id", "worktree", "verbose", "compact"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args(words)
    try:
        return _attached(given)
    except Refused as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2 if "nsupported" in str(error) else 1
    except (OSError, ValueError):
        print("Error: Gateway connection/read failed; no local fallback", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Detached; accepted work continues at the gateway.", file=sys.stderr)
        return 130


def _attached(given: argparse.Namespace) -> int:
    kind = settings()
    refused = [name for name in REFUSED[kind["generation"]] if getattr(given, name)]
    if given.resume and kind["generation"] == "A":
        refused += [name for name in ("model", "provider", "cwd") if getattr(given, name)]
    if refused:
        flags = ", ".join("--" + name.replace("_", "-") for name in refused)
        hints = "".join(f"\n  --{name}: is set where Hermes is configured" for name in refused)
        raise Refused(
            f"Unsupported gateway CLI options: {flags}. No local fallback or policy changes were made.{hints}"
        )
    if not kind["provider"] and not given.resume:
        print("No inference provider is set up yet. Run hermes setup.")
        return 0
    if "HERMES_TUI_GATEWAY_URL" in os.environ:
        raise Refused("the remote gateway cannot be reached")
    if not given.query:
        raise Refused("Noninteractive chat requires --query or --oneshot")
    if not ensure():
        raise Refused("The gateway is not ready")
    with connection() as ask:
        session = _open(ask, given, kind)
        print(f"Session: {session}", file=sys.stderr, flush=True)
        said = ask("submit", session=session, text=given.query)
        print(said["text"], flush=True)
        print(f"\nsession_id: {session}", file=sys.stderr, flush=True)
        return int(said["code"])


def _open(ask: Any, given: argparse.Namespace, kind: Json) -> str:
    """Make or resume the session; return its id."""
    if given.resume:
        found = ask("resume", session=given.resume)
        if "error" in found:
            raise Refused(f"No session found matching '{given.resume}'.")
        return str(found["session"])
    described = ask("describe")
    source = given.source or ("oneshot" if "oneshot" in described["sources"] else "cli")
    if source not in described["sources"]:
        raise Refused(f"Gateway does not support source {source!r}")
    policy = {"cwd": str(Path(given.cwd or os.getcwd()).resolve())}
    policy.update({name: getattr(given, name) for name in ("model", "provider", "skills") if getattr(given, name)})
    if given.yolo or kind["yolo"]:
        policy["yolo"] = True
    if missing := sorted(set(policy) - set(described["parameters"])):
        raise Refused("Gateway does not support creation options: " + ", ".join(missing))
    made = ask("create", policy={**policy, "source": source})
    if "error" in made:
        raise Refused(str(made["error"]))
    return str(made["session"])


# --- hermes gateway, and all the rest ----------------------------------------------------------


def gateway(words: list[str]) -> int:
    if words[:1] == ["stop"]:
        stop()
        return 0
    if words[:1] not in (["ensure"], ["restart"]):
        print(f"hermes gateway: {' '.join(words)!r} is not a `hermes gateway` command.", file=sys.stderr)
        return 2
    if words[0] == "restart":
        stop()
    ready = ensure()
    if "--json" in words:
        print(json.dumps({"state": "ready" if ready else "absent", "pid": _pid()}))
    else:
        print("The gateway is ready." if ready else "The gateway did not start.")
    return 0 if ready else 1


def _pid() -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(json.loads(state_path().read_text(encoding="utf-8"))["pid"])
    return 0


def main() -> int:
    """The first argument is the launcher's own path; the others are a person's."""
    sys.argv = sys.argv[1:]
    kind = settings()
    if sys.argv[1:2] == ["chat"] and kind["attaches"]:
        return chat(sys.argv[2:])
    if not kind["keeps_environment"]:
        for name in [name for name in os.environ if name.startswith("SESSION_CASSETTES_")]:
            del os.environ[name]
    if sys.argv[1:2] == ["gateway"]:
        return gateway(sys.argv[2:])
    sys.path.remove(str(HERE)) if str(HERE) in sys.path else None
    be_the_newer_hermes()
    from hermes_cli.main import main as hermes

    return int(hermes() or 0)


if __name__ == "__main__":
    sys.exit(main())
