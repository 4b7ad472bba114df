"""Runs `hermes cassette ...` as the `hermes` on PATH would: as 0.23, with a context that has `session_cwd`, or as 0.22.

The plugin of the home is loaded the way Hermes loads it, and its command line
runs in this process: with the Python of a lane it meets Hermes's own modules,
with any other none.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class Context:
    """What `register` may use; `session_cwd` is there only where a gateway hosts the sessions."""

    def __init__(self, gateway: bool) -> None:
        self.commands: dict[str, Any] = {}
        if gateway:
            self.session_cwd = os.getcwd

    def register_cli_command(
        self, name: str, help: str, setup_fn: Any, handler_fn: Any = None, description: str = ""
    ) -> None:
        self.commands[name] = (setup_fn, handler_fn)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("register_"):
            return lambda *args, **kwargs: None
        raise AttributeError(name)


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import trust_fault

    folder = Path(os.environ["HERMES_HOME"]) / "plugins" / "session-cassettes"
    spec = importlib.util.spec_from_file_location(
        "hermes_plugin_cassettes", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    gateway = os.environ.get("TRUST_HOST") == "gateway"
    ctx = Context(gateway)
    try:
        hermes = importlib.import_module("hermes_cli")
    except ImportError:
        hermes = sys.modules["hermes_cli"] = ModuleType("hermes_cli")
    setattr(hermes, "__version__", "0.23.1" if gateway else "0.22.2")
    sys.argv[0] = shutil.which("hermes") or sys.argv[0]
    module.register(ctx)
    trust_fault.install("cli")  # what it does at load depends on what earlier faults have left
    setup, handler = ctx.commands["cassette"]
    parser = argparse.ArgumentParser(prog="hermes cassette")
    setup(parser)
    handler(parser.parse_args(sys.argv[1:]))


if __name__ == "__main__":
    main()
