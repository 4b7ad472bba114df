"""Runs inside a real Hermes: many turns in one process, ordered over stdin, told over stdout.

One JSON object per line, each way.  A turn goes the way of `hermes chat -Q`
(`cli.py`: credentials, route, agent, `run_conversation`), without the end of
the process that the command brings.  Started by `host.py` with the Python of
a lane; it imports nothing of ours.
"""

from __future__ import annotations

import contextlib
import contextvars
import io
import json
import os
import sys
import traceback
from typing import Any, Callable

Json = dict[str, Any]


class Spies:
    """See a tool call before any plugin does, and again when every plugin has let it pass."""

    def __init__(self) -> None:
        self.returned: list[Json] = []
        self.ran: list[Json] = []
        # 0.19.0 runs the chain twice, nested, for a call of a parallel batch.
        self._outer: contextvars.ContextVar[str] = contextvars.ContextVar("outer", default="")
        self._inner: contextvars.ContextVar[str] = contextvars.ContextVar("inner", default="")

    def install(self) -> None:
        from hermes_cli.plugins import get_plugin_manager

        chain = get_plugin_manager()._middleware.setdefault("tool_execution", [])
        chain.insert(0, self.outermost)
        chain.append(self.innermost)

    def outermost(self, next_call: Callable[..., Any], args: Any, **ids: Any) -> Any:
        call_id = ids.get("tool_call_id") or ""
        if call_id and self._outer.get() == call_id:
            return next_call(args)
        token = self._outer.set(call_id)
        noted = {
            "tool": ids.get("tool_name"),
            "args": _copy(args),
            "session_id": ids.get("session_id"),
            "turn_id": ids.get("turn_id"),
            "tool_call_id": call_id,
            "result": None,
        }
        self.returned.append(noted)
        try:
            result = next_call(args)
        finally:
            self._outer.reset(token)
        noted["result"] = result if isinstance(result, str) else repr(result)
        return result

    def innermost(self, next_call: Callable[..., Any], args: Any, **ids: Any) -> Any:
        call_id = ids.get("tool_call_id") or ""
        if call_id and self._inner.get() == call_id:
            return next_call(args)
        self.ran.append({"tool": ids.get("tool_name"), "args": _copy(args), "tool_call_id": call_id})
        token = self._inner.set(call_id)
        try:
            return next_call(args)
        finally:
            self._inner.reset(token)

    def take(self, messages: list[Any]) -> Json:
        """Return what was seen since the last time, in the order in which the model asked.

        The calls of a parallel batch arrive in any order.
        """
        asked = [
            call.get("id")
            for message in messages
            if isinstance(message, dict)
            for call in message.get("tool_calls") or ()
        ]
        place = {call_id: number for number, call_id in enumerate(asked)}
        seen = {
            name: sorted(noted, key=lambda one: place.get(one["tool_call_id"], len(place)))
            for name, noted in (("returned", self.returned), ("ran", self.ran))
        }
        self.returned, self.ran = [], []
        return {**seen, "ran": [{"tool": one["tool"], "args": one["args"]} for one in seen["ran"]]}


class Session:
    """One session of the host; `interactive` gives its turns the ids a typed session has."""

    def __init__(self, model: str, skills: list[str], resume: str, interactive: bool) -> None:
        self.shell = _new_shell(model, skills, resume)
        self.shell.tool_progress_mode = "off"
        self.interactive = interactive
        self.history: list[Any] | None = None

    @property
    def id(self) -> str:
        return str(getattr(self.shell.agent, "session_id", None) or self.shell.session_id)

    def turn(self, query: str) -> Json:
        """Run one turn; return the answer and whatever error Hermes reports."""
        shell = self.shell
        if not shell._ensure_runtime_credentials():
            raise RuntimeError("Hermes found no credentials for the scripted model")
        route = shell._resolve_turn_agent_config(query)
        if route["signature"] != shell._active_agent_route_signature:
            shell.agent = None
        if not shell._init_agent(
            model_override=route["model"],
            runtime_override=route["runtime"],
            request_overrides=route.get("request_overrides"),
        ):
            raise RuntimeError("Hermes could not make an agent")
        _quiet(shell.agent)
        known = {"task_id": shell.session_id} if self.interactive else {}
        with _session_key(self.id):
            result = shell.agent.run_conversation(
                user_message=query, conversation_history=self.history or shell.conversation_history, **known
            )
        self.history = result.get("messages") or self.history
        return {
            "response": result.get("final_response") or "",
            "session_id": self.id,
            "error": result.get("error") or "",
            "failed": bool(result.get("failed")),
        }


class Host:
    """Answers the orders of the driver."""

    def __init__(self) -> None:
        self.spies = Spies()
        self.sessions: dict[str, Session] = {}
        self.current: Session | None = None

    def start(self) -> Json:
        """Load Hermes and its plugins, as the command does before a turn."""
        os.environ["HERMES_INTERACTIVE"] = os.environ["HERMES_SINGLE_QUERY_SESSION"] = "1"
        import cli
        from hermes_cli.plugins import discover_plugins, get_plugin_manager

        discover_plugins()
        self.spies.install()
        ours = get_plugin_manager()._plugins.get("session-cassettes")
        return {
            "python": sys.version.split()[0],
            "cli": cli.__file__,
            "loaded": bool(ours and ours.enabled),
            "error": (ours.error or "") if ours else "not found",
        }

    def open(self, cwd: str, model: str = "", skills: list[str] | None = None) -> Json:
        """Begin an interactive session that has had no turn yet."""
        _go(cwd)
        session = self._enter(Session(model, skills or [], "", interactive=True))
        return {"session_id": session.id}

    def turn(
        self, query: str, cwd: str, session_id: str = "", model: str = "", skills: list[str] | None = None
    ) -> Json:
        """Run a turn: in a known session, in a resumed one, or (without an id) in a fresh one."""
        _go(cwd)
        session = self._enter(
            self.sessions.get(session_id) or Session(model, skills or [], session_id, interactive=False)
        )
        said = session.turn(query)
        self.sessions[session.id] = session
        return {**said, **self.spies.take(session.history or [])}

    def slash(self, text: str, session_id: str = "") -> Json:
        """Type a slash command in a session, or (without an id) in a fresh one."""
        session = self._enter(self.sessions.get(session_id) or Session("", [], session_id, interactive=True))
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard), _plain_output(heard):
            session.shell.process_command(text)
        return {"text": heard.getvalue(), "session_id": session.id}

    def _enter(self, session: Session) -> Session:
        """Make a session the current one: the first as a start does, a later one as `/new` or `/resume` does."""
        if self.current not in (None, session):
            from gateway.session_context import set_current_session_id

            set_current_session_id(session.id)
        self.current = self.sessions[session.id] = session
        return session

    def env(self, values: dict[str, str | None]) -> Json:
        """Set environment variables; None removes one."""
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        return {}


def _new_shell(model: str, skills: list[str], resume: str) -> Any:
    """Return Hermes's own shell object, made as `hermes chat` makes it."""
    import cli

    if hasattr(cli, "_build_cli_from_args"):
        return cli._build_cli_from_args(
            model=model or None,
            toolsets=None,
            provider=None,
            reasoning=None,
            api_key=None,
            base_url=None,
            max_turns=None,
            run_budget=None,
            verbose=None,
            compact=False,
            resume=resume or None,
            checkpoints=False,
            pass_session_id=False,
            ignore_rules=False,
            skills=skills or None,
        )
    from agent.coding_context import coding_selection
    from hermes_cli.tools_config import _get_platform_tools

    toolsets = coding_selection(platform="cli", config=cli.CLI_CONFIG)
    if toolsets is None:
        toolsets = sorted(_get_platform_tools(cli.CLI_CONFIG, "cli"))
    shell = cli.HermesCLI(model=model or None, toolsets=toolsets, resume=resume or None)
    if skills:
        prompt, loaded, missing = cli.build_preloaded_skills_prompt(skills, task_id=shell.session_id)
        if missing:
            raise RuntimeError(f"unknown skills: {missing}")
        shell.system_prompt = "\n\n".join(part for part in (shell.system_prompt, prompt) if part).strip()
        shell.preloaded_skills = loaded
    return shell


def _quiet(agent: Any) -> None:
    agent.quiet_mode = agent.suppress_status_output = True
    for name in (
        "stream_delta_callback",
        "tool_gen_callback",
        "tool_progress_callback",
        "tool_start_callback",
        "tool_complete_callback",
    ):
        setattr(agent, name, None)


def _session_key(session_id: str) -> contextlib.AbstractContextManager[Any]:
    try:
        from hermes_cli.quiet_single_query import bind_quiet_session_key
    except ImportError:  # 0.19.0 binds none
        return contextlib.nullcontext()
    return bind_quiet_session_key(session_id)


def _plain_output(heard: io.StringIO) -> contextlib.AbstractContextManager[Any]:
    """Let the host's print function write to a string instead of a terminal."""
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.output.plain_text import PlainTextOutput

    return create_app_session(output=PlainTextOutput(heard))


def _go(cwd: str) -> None:
    """Work in another folder, as a process does that was started there.

    Hermes keeps one shell for the whole process; it would stay in the old folder.
    """
    if os.environ.get("TERMINAL_CWD") == cwd:
        return
    from tools.file_tools import clear_file_ops_cache
    from tools.terminal_tool import cleanup_all_environments

    clear_file_ops_cache()
    cleanup_all_environments()
    os.chdir(cwd)
    os.environ["TERMINAL_CWD"] = cwd


def _copy(args: Any) -> Any:
    return json.loads(json.dumps(args, default=repr))


def main() -> None:
    """Keep stdin and stdout for the driver, and give Hermes the null device and stderr instead."""
    orders = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    host = Host()
    for line in orders:
        order = json.loads(line)
        try:
            answer = getattr(host, order.pop("do"))(**order)
        except (Exception, SystemExit) as error:
            answer = {"failure": f"{error!r}\n{traceback.format_exc()}"}
        answers.write(json.dumps(answer, default=repr) + "\n")
        answers.flush()
    # Hermes's threads and exit handlers have nothing to do here, and may hang.
    os._exit(0)


if __name__ == "__main__":
    main()
