"""A gateway process as the public source of Hermes 0.23 describes it, around the real agents of 0.22.2.

Only the door is ours: sessions, their ids, where they work and what they may,
how a prompt or a command comes in.  What a turn does is Hermes's own agent
loop, tools, plugin loader, hooks and middleware.  It is started by
`gateway_client.py` with the Python of a lane, detached, and stays until it is
stopped.  What it is like is read from `stand-in.json` in its home.

Besides the requests of a client it takes orders of a test (`do_...`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socketserver
import sys
import threading
from pathlib import Path
from typing import Any, Iterator

Json = dict[str, Any]
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gateway_client as door  # noqa: E402


class Session:
    """One session: what was fixed when it was made, its agent, and its conversation."""

    def __init__(self, number: str, policy: Json) -> None:
        self.id, self.policy = number, policy
        self.key = f"agent:main:local:dm:{number}"
        self.agent: Any = None
        self.history: list[Any] = []
        self.turn = threading.Lock()
        self.asks_a_person = threading.Event()


class Gateway:
    """The sessions of this process, and the requests that they get."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.lock = threading.Lock()
        self.held: list[threading.Event] | None = None
        self.done = 0  # prompts and commands served to their end
        self.changed = threading.Condition()

    # what a client asks

    def describe(self) -> Json:
        kind = door.settings()
        takes = {"cwd", "model", "provider", "yolo", "toolsets", "max_turns", "title"}
        if kind["generation"] == "B":
            takes |= {"skills", "accept_hooks"}
        sources = ["cli", "tui", "gui", "acp", "tool"] + ["oneshot"] * (kind["generation"] == "B")
        return {"parameters": sorted(takes - set(kind["lacks"])), "sources": sources, "pid": os.getpid()}

    def create(self, policy: Json) -> Json:
        folder = policy.get("cwd", "")
        if not (os.path.isabs(folder) and os.path.isdir(folder)):
            return {"error": "invalid_params"}
        if policy.get("skills") and not _skills_prompt(policy["skills"]):
            return {"error": "unknown_skill"}
        number = "local-" + hashlib.sha256(os.urandom(16)).hexdigest()[:32]
        session = self.sessions[number] = Session(number, policy)
        database().create_session(number, policy["source"], model=policy.get("model"), cwd=folder)
        if policy.get("yolo"):
            self.do_yolo(number, True)
        return {"session": session.id}

    def resume(self, session: str) -> Json:
        if session not in self.sessions:
            row = database().get_session(session)
            if not row:
                return {"error": "not_found"}
            self.sessions[session] = one = Session(
                session, {"source": row["source"], "cwd": row["cwd"], "model": row["model"]}
            )
            one.history = database().get_resume_conversations(session)[0]
        return {"session": session}

    def submit(self, session: str, text: str, tell: Any) -> Json:
        """Serve a prompt or a command; the client may be gone before it ends."""
        self._hold(text)
        one = self.sessions[session]
        try:
            if text.startswith("/"):
                return {"text": self._command(one, text), "code": 0}
            return self._turn(one, text, tell)
        finally:
            with self.changed:
                self.done += 1
                self.changed.notify_all()

    def _hold(self, text: str) -> None:
        held = None
        with self.lock:
            if self.held and text.startswith(self.words):
                held, self.held = self.held, None
        if held:
            held[0].set()
            held[1].wait(120)

    def _command(self, session: Session, text: str) -> str:
        """Dispatch a slash command without a model; its handler works where this process does."""
        from hermes_cli.plugins import get_plugin_command_handler

        name, _, rest = text[1:].partition(" ")
        handler = get_plugin_command_handler(name.lower().replace("_", "-"))
        if handler is not None:
            try:
                with _bound(session, command=True):
                    return str(handler(rest.strip()) or "")
            except Exception as error:
                print(f"Plugin command dispatch failed: {error!r}", file=sys.stderr, flush=True)
        return f"Unknown command `/{name}`. Type /help to see what there is."

    def _turn(self, session: Session, text: str, tell: Any) -> Json:
        with session.turn, _bound(session):
            session.agent = session.agent or self._agent(session, tell)
            result = session.agent.run_conversation(
                user_message=text, conversation_history=session.history or None, task_id=session.id
            )
        session.history = result.get("messages") or session.history
        said = str(result.get("final_response") or result.get("error") or "")
        if result.get("interrupted"):
            return {"text": said, "code": 130}
        failed = result.get("failed") or result.get("partial") or result.get("completed") is False
        return {"text": said, "code": 1 if failed else 0}

    def _agent(self, session: Session, tell: Any) -> Any:
        """Make Hermes's agent as its own one-shot command makes it."""
        from hermes_cli.config import load_config
        from hermes_cli.runtime_provider import resolve_runtime_with_fallback
        from hermes_cli.tools_config import _get_platform_tools
        from run_agent import AIAgent
        from tools.terminal_tool import register_task_env_overrides

        config, policy = load_config(), session.policy
        model = policy.get("model") or config["model"]["default"]
        runtime, _ = resolve_runtime_with_fallback(config, requested=policy.get("provider"), target_model=model)
        wanted = ("api_key", "base_url", "provider", "requested_provider", "api_mode", "credential_pool")

        register_task_env_overrides(session.id, {"cwd": policy["cwd"]})

        def clarify(*_: Any, **__: Any) -> Json:
            tell({"code": 3, "text": ""})
            session.asks_a_person.wait(120)
            return {"answers": ["as you like"], "outcome": "answered"}

        agent = AIAgent(
            **{name: runtime.get(name) for name in wanted},
            model=model,
            enabled_toolsets=sorted(_get_platform_tools(config, "cli")),
            quiet_mode=True,
            platform="cli",
            session_db=database(),
            session_id=session.id,
            request_overrides=runtime.get("request_overrides"),
            ephemeral_system_prompt=_skills_prompt(policy.get("skills") or []) or None,
            clarify_callback=clarify,
        )
        agent.suppress_status_output = True
        return agent

    # what a test orders

    def do_environment(self, values: dict[str, str | None]) -> Json:
        """Change this process's environment; return what it was."""
        before = {name: os.environ.get(name) for name in values}
        for name, value in values.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        return {"before": before}

    def do_yolo(self, session: str, on: bool) -> Json:
        from tools.approval import disable_session_yolo, enable_session_yolo

        (enable_session_yolo if on else disable_session_yolo)(self.sessions[session].key)
        return {}

    def do_hold(self, words: str) -> Json:
        """Hold the next prompt or command that starts with these words at the door."""
        with self.lock:
            self.held = self._let = [threading.Event(), threading.Event()]
            self.words = words
        return {}

    def do_held(self) -> Json:
        return {"came": self._let[0].wait(120)}

    def do_release(self) -> Json:
        self._let[1].set()
        return {}

    def do_wait(self, served: int) -> Json:
        """Wait until so many prompts and commands have been served since the process began."""
        with self.changed:
            return {"done": self.changed.wait_for(lambda: self.done >= served, 120)}

    def do_interrupt(self) -> Json:
        for one in self.sessions.values():
            if one.turn.locked() and one.agent is not None:
                one.agent.interrupt("stop")
        return {}

    def do_answer(self) -> Json:
        for one in self.sessions.values():
            one.asks_a_person.set()
        return {}

    def do_reload(self) -> Json:
        from hermes_cli.plugins import discover_plugins

        discover_plugins(force=True)
        return {}

    def do_dispatch(self, tool: str, args: Json) -> Json:
        """Let another plugin call a tool by itself."""
        from model_tools import registry

        return {"result": str(registry.dispatch(tool, args))}

    def do_told(self, session: str, command: bool) -> Json:
        """What Hermes tells a command, or a turn, of this session."""
        from agent.runtime_cwd import resolve_agent_cwd
        from gateway.session_context import get_session_env

        names = ("HERMES_SESSION_ID", "HERMES_SESSION_CHAT_ID", "HERMES_SESSION_KEY", "HERMES_SESSION_PLATFORM")
        with _bound(self.sessions[session], command):
            return {"variables": [get_session_env(name) for name in names], "cwd": str(resolve_agent_cwd())}

    def do_look(self) -> Json:
        watched = ("tui_gateway.server", "gateway.run", "gateway.session_context", "cli")
        return {
            "pid": os.getpid(),
            "cwd": os.getcwd(),
            "sessions": list(self.sessions),
            "done": self.done,
            "modules": [name for name in watched if name in sys.modules],
            "environment": dict(os.environ),
        }


@contextlib.contextmanager
def _bound(session: Session, command: bool = False) -> Iterator[None]:
    """What Hermes tells of a session to whatever runs for it.

    A command gets neither the session's own id nor its folder; a turn gets both.
    """
    from agent.runtime_cwd import clear_session_cwd
    from gateway.session_context import clear_session_vars, set_session_vars
    from tools.approval_context import reset_current_session_key, set_current_session_key

    folder = "" if command else session.policy["cwd"]
    tokens = set_session_vars(
        platform="local",
        chat_id=session.id,
        session_key=session.key,
        session_id="" if command else session.id,
        cwd=folder,
    )
    if command:
        clear_session_cwd()
    token = set_current_session_key(session.key)
    try:
        yield
    finally:
        reset_current_session_key(token)
        clear_session_vars(tokens)


def _skills_prompt(names: list[str]) -> str:
    from hermes_cli.oneshot import _build_preloaded_skills_prompt

    try:
        return str(_build_preloaded_skills_prompt(names) or "") if names else ""
    except Exception:
        return ""


_DATABASE: list[Any] = []


def database() -> Any:
    from hermes_state import SessionDB

    if not _DATABASE:
        _DATABASE.append(SessionDB())
    return _DATABASE[0]


def serve(gateway: Gateway) -> None:
    class Client(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                asked = json.loads(line)
                name = asked.pop("op")
                if name == "stop":
                    self.tell({})
                    os._exit(0)
                if name == "submit":
                    asked["tell"] = self.tell
                try:
                    answer = getattr(gateway, name)(**asked)
                except Exception as error:
                    import traceback

                    traceback.print_exc()
                    answer = {"text": f"{error!r}", "code": 1, "error": repr(error)}
                self.tell(answer)

        def tell(self, answer: Json) -> None:
            with contextlib.suppress(OSError, ValueError):  # the client may have gone: the turn goes on
                self.wfile.write((json.dumps(answer) + "\n").encode())
                self.wfile.flush()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 32

    with Server(("127.0.0.1", 0), Client) as server:
        door.publish(server.server_address[1])
        server.serve_forever(0.05)


def main() -> None:
    sys.argv = [sys.argv[0], "gateway", "run", "--quiet"]
    door.be_the_newer_hermes()
    from hermes_cli.plugins import discover_plugins

    discover_plugins()
    database()
    import run_agent  # noqa: F401  the first turn must not pay for it

    serve(Gateway())


if __name__ == "__main__":
    main()
