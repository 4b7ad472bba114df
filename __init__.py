"""Session Cassettes: what is registered with Hermes, and where."""

from __future__ import annotations

from typing import Any

from . import cli
from .hooks import Plugin


def register(ctx: Any) -> None:
    """Wire the two hooks, the middleware and both front doors."""
    plugin = Plugin(ctx, cli.BEYOND)
    ctx.register_hook("pre_llm_call", plugin.pre_llm_call)
    ctx.register_hook("post_llm_call", plugin.post_llm_call)
    ctx.register_middleware("tool_execution", plugin.bindings.tool_execution)
    ctx.register_command(
        "cassette",
        lambda raw: cli.slash(plugin, raw),
        "Record this session's next turn, and look after cassettes",
        args_hint="record|stop|status|pin|list",
    )
    ctx.register_cli_command(
        "cassette",
        "Record, pin and replay sessions as regression tests",
        cli.add_arguments,
        lambda args: cli.main(plugin, args),
        "Turn one good session into a regression test.",
    )
