"""What the tests share: the plugin as a package, a stand-in for Hermes, temporary folders.

Importing this module loads the plugin from the repository, the way Hermes loads
it; after it, `from session_cassettes import hooks` is an ordinary import.  There
is no other way to load it in this process.

Nothing here starts a process, opens a socket or reads the real home.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
import tempfile
import unittest
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Mapping
from unittest import mock

REPO = Path(__file__).resolve().parent.parent
PACKAGE = "session_cassettes"

# -- loading ------------------------------------------------------------------


def load_plugin() -> ModuleType:
    """Return the plugin as a package; whoever asks again gets the same one."""
    return _load(PACKAGE, REPO / "__init__.py", package=True)


def load_module(name: str) -> Any:
    """Return one of the plugin's modules, such as `snapshot`."""
    return importlib.import_module(f"{PACKAGE}.{name}")


def load_demo(name: str) -> ModuleType:
    """Return one of the demo's modules, such as `model`."""
    return _load(name, REPO / "demo" / f"{name}.py")


def _load(name: str, path: Path, package: bool = False) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        name, path, submodule_search_locations=[str(path.parent)] if package else None
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


load_plugin()

# -- temporary folders ----------------------------------------------------------


def temp_folder(case: unittest.TestCase) -> Path:
    """Return a fresh folder, by its real path, that is removed after the test."""
    folder = Path(tempfile.mkdtemp(prefix="cassettes-test-")).resolve()
    case.addCleanup(shutil.rmtree, folder, ignore_errors=True)
    return folder


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files below a folder by relative path, byte for byte (no newline is translated)."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def be_hermes(case: unittest.TestCase, folder: Path, version: str) -> None:
    """Let this process be the `hermes` command of that version during a test."""
    (folder / "hermes").touch()
    package = ModuleType("hermes_cli")
    setattr(package, "__version__", version)
    for patch in (
        mock.patch.dict(sys.modules, {"hermes_cli": package}),
        mock.patch.object(sys, "argv", [str(folder / "hermes")]),
    ):
        patch.start()
        case.addCleanup(patch.stop)


# -- a stand-in for Hermes --------------------------------------------------------


@dataclass(frozen=True)
class RanTool:
    """One call that reached a real tool."""

    tool: str
    args: Any


@dataclass(frozen=True)
class Turn:
    """The ids that Hermes gives to one turn of one session."""

    session_id: str
    task_id: str
    turn_id: str
    user_message: Any
    platform: str = "cli"
    model: str = "careful"


@dataclass
class CliCommand:
    """What `ctx.register_cli_command` was given."""

    name: str
    help: str
    setup: Callable[[Any], Any]
    handler: Callable[[Any], Any]


class FakeContext:
    """The part of Hermes's plugin context that a plugin may use in `register`.

    It offers what every supported version offers, and nothing more.
    """

    def __init__(self) -> None:
        self.hooks: dict[str, list[Callable[..., Any]]] = {}
        self.middleware: dict[str, list[Callable[..., Any]]] = {}
        self.commands: dict[str, Callable[[str], Any]] = {}
        self.cli_commands: dict[str, CliCommand] = {}

    def register_hook(self, hook_name: str, callback: Callable[..., Any]) -> None:
        self.hooks.setdefault(hook_name, []).append(callback)

    def register_middleware(self, kind: str, callback: Callable[..., Any]) -> None:
        self.middleware.setdefault(kind, []).append(callback)

    def register_command(
        self, name: str, handler: Callable[[str], Any], description: str = "", args_hint: str = ""
    ) -> None:
        self.commands[name] = handler

    def register_cli_command(
        self,
        name: str,
        help: str,
        setup_fn: Callable[[Any], Any],
        handler_fn: Callable[[Any], Any] | None = None,
        description: str = "",
    ) -> None:
        self.cli_commands[name] = CliCommand(name, help, setup_fn, handler_fn or (lambda args: None))


@dataclass
class FakeHost:
    """Hermes as far as a plugin can see it: it fires hooks and runs tools through the middleware.

    Faithful where it hurts: a middleware that raises before `next_call` does not
    stop the real tool, and a hook that raises is skipped.  Both are kept in
    `raised`, so that a test can demand that there were none.

    `tools` holds the real tools by name; a tool that is not in it returns
    '{"live": "<name>"}'.  `ran` holds every call that reached one.
    """

    tools: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    newer: bool = False  #: fire hooks as 0.20 and later do, not as 0.19.0
    ctx: FakeContext = field(default_factory=FakeContext)
    ran: list[RanTool] = field(default_factory=list)
    raised: list[BaseException] = field(default_factory=list)
    said: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  #: the messages of a turn, by its id

    # turns

    def start_turn(
        self,
        user_message: Any,
        session_id: str = "",
        first: bool = True,
        platform: str = "cli",
        model: str = "careful",
        task_id: str = "",
        parent_session_id: str = "",
    ) -> Turn:
        """Begin a turn and fire `pre_llm_call`; "" makes up a session or a task."""
        session_id = session_id or f"session-{uuid.uuid4().hex[:8]}"
        task_id = task_id or str(uuid.uuid4())
        turn = Turn(
            session_id, task_id, f"{session_id}:{task_id}:{uuid.uuid4().hex[:8]}", user_message, platform, model
        )
        history = (
            []
            if first
            else [{"role": "user", "content": "before"}, {"role": "assistant", "content": "that was before"}]
        )
        extra = {"parent_session_id": parent_session_id} if self.newer else {}
        self.fire(
            "pre_llm_call",
            session_id=turn.session_id,
            task_id=turn.task_id,
            turn_id=turn.turn_id,
            user_message=user_message,
            conversation_history=[*history, {"role": "user", "content": user_message}],
            is_first_turn=first,
            model=model,
            platform=platform,
            sender_id="",
            **extra,
        )
        return turn

    def say_call(self, turn: Turn, tool: str, call_id: str, result: str = "") -> None:
        """Put a call and its result into a turn's conversation, whoever answered it; nobody reads its arguments."""
        function = {"name": tool, "arguments": "{}"}
        self.said.setdefault(turn.turn_id, []).extend(
            [
                {"role": "assistant", "content": "", "tool_calls": [{"id": call_id, "function": function}]},
                {"role": "tool", "tool_call_id": call_id, "tool_name": tool, "content": result},
            ]
        )

    def end_turn(
        self,
        turn: Turn,
        answer: str = "",
        interrupted: bool = False,
        failed: bool = False,
        session_id: str = "",
        model: str = "",
        at_limit: bool = False,
    ) -> None:
        """End a turn the way Hermes does.

        `post_llm_call` fires only with an answer; after a failure of the model's
        API nothing fires at all.  `session_id` is the id after a split, `model`
        the one that took over, `at_limit` says that the steps ran out.
        """
        last_word = (
            "You've reached the maximum number of tool-calling iterations allowed. Please provide a final response"
        )
        if failed:
            return
        session = session_id or turn.session_id
        if answer and not interrupted:
            self.fire(
                "post_llm_call",
                session_id=session,
                task_id=turn.task_id,
                turn_id=turn.turn_id,
                user_message=turn.user_message,
                assistant_response=answer,
                conversation_history=[
                    {"role": "user", "content": turn.user_message},
                    *self.said.get(turn.turn_id, []),
                    *([{"role": "user", "content": last_word}] if at_limit else []),
                    {"role": "assistant", "content": answer},
                ],
                model=model or turn.model,
                platform=turn.platform,
            )
        extra: dict[str, Any] = {"failed": False, "turn_exit_reason": "text_response(finish_reason=stop)"}
        self.fire(
            "on_session_end",
            session_id=session,
            task_id=turn.task_id,
            turn_id=turn.turn_id,
            completed=bool(answer) and not interrupted,
            interrupted=interrupted,
            model=turn.model,
            platform=turn.platform,
            **(extra if self.newer else {}),
        )

    def end_session(self, session_id: str, platform: str = "cli") -> None:
        """End a session: fire `on_session_finalize`."""
        self.fire("on_session_finalize", session_id=session_id, platform=platform, reason="shutdown")

    def start_subagent(self, turn: Turn, child_session_id: str) -> None:
        """Tell the plugin that a turn starts a sub-agent, before that one's first call."""
        self.fire(
            "subagent_start",
            parent_session_id=turn.session_id,
            parent_turn_id=turn.turn_id,
            parent_subagent_id=None,
            child_session_id=child_session_id,
            child_subagent_id=f"sa-0-{uuid.uuid4().hex[:8]}",
            child_role="leaf",
            child_goal="look",
        )

    def fire(self, hook_name: str, **kwargs: Any) -> list[Any]:
        """Call every callback of a hook; keep what they raise and go on."""
        kwargs.setdefault("telemetry_schema_version", "hermes.observer.v1")
        results = []
        for callback in self.ctx.hooks.get(hook_name, ()):
            try:
                returned = callback(**kwargs)
            except Exception as error:
                self.raised.append(error)
                continue
            if returned is not None:
                results.append(returned)
        return results

    # tools

    def call(
        self, turn: Turn | None, tool: str, args: Any = None, tool_call_id: str = "", nested: bool = False, **ids: str
    ) -> Any:
        """Let the model of a turn call a tool; return what Hermes would be given.

        Without a turn all ids are empty, as for the calls of a code block.
        `nested` runs the chain twice, as 0.19.0 does in a parallel batch.
        `ids` replaces single ids, such as `session_id` after a split.
        """
        known = (
            {"task_id": turn.task_id, "session_id": turn.session_id, "turn_id": turn.turn_id}
            if turn
            else {"task_id": "", "session_id": "", "turn_id": ""}
        )
        context = {
            **known,
            "tool_call_id": tool_call_id or (f"call_{uuid.uuid4().hex[:8]}" if turn else ""),
            "api_request_id": f"{known['turn_id']}:api:1" if turn else "",
            **ids,
        }
        args = {} if args is None else args
        inner = self._terminal(tool)
        if nested:
            result = self._chain(tool, args, lambda again: self._chain(tool, again, inner, context), context)
        else:
            result = self._chain(tool, args, inner, context)
        if turn:
            self.say_call(turn, tool, context["tool_call_id"], str(result))
        return result

    def _terminal(self, tool: str) -> Callable[[Any], Any]:
        def run(args: Any) -> Any:
            self.ran.append(RanTool(tool, args))
            real = self.tools.get(tool)
            return real(args) if real else f'{{"live": "{tool}"}}'

        return run

    def _chain(self, tool: str, args: Any, terminal: Callable[[Any], Any], context: dict[str, str]) -> Any:
        """Run the middleware as Hermes does (`hermes_cli/middleware.py`, `_run_execution_chain`)."""
        callbacks = list(self.ctx.middleware.get("tool_execution", ()))

        class DownstreamError(Exception):
            def __init__(self, original: BaseException) -> None:
                super().__init__(str(original))
                self.original = original

        def call_at(index: int, payload: Any) -> Any:
            if index >= len(callbacks):
                return terminal(payload)
            called = succeeded = False
            result: Any = None

            def next_call(next_payload: Any = None) -> Any:
                nonlocal called, succeeded, result
                if called:
                    raise RuntimeError("next_call() is single-use")
                called = True
                try:
                    result = call_at(index + 1, payload if next_payload is None else next_payload)
                except Exception as error:
                    raise DownstreamError(error) from error
                succeeded = True
                return result

            try:
                return callbacks[index](
                    tool_name=tool,
                    args=payload,
                    original_args=args,
                    next_call=next_call,
                    telemetry_schema_version="hermes.observer.v1",
                    middleware_schema_version="hermes.middleware.v1",
                    **context,
                )
            except DownstreamError as error:
                raise error.original
            except Exception as error:
                self.raised.append(error)
                if succeeded:
                    return result
                if called:
                    raise
                return call_at(index + 1, payload)  # fail open: the real tool runs

        return call_at(0, args)

    # commands

    def slash(self, text: str) -> str:
        """Type a slash command, such as "/cassette list", and return its text."""
        name, _, rest = text.removeprefix("/").partition(" ")
        return str(self.ctx.commands[name](rest.strip()) or "")
