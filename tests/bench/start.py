"""Times what loading the plugin adds to a start of Hermes, once, and prints it as JSON.

Run with a lane's Python, `-P`, and the folder of an installed plugin; measured
are the import and `register`, against the import of Hermes's own command.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any


class Context:
    """Takes what is registered, and does nothing with it."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("register_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def load(folder: Path) -> None:
    """Import the plugin as Hermes's loader does, and register it."""
    name = "hermes_plugins_bench"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    module.register(Context())


def main() -> None:
    began = clocks()
    import cli  # noqa: F401  Hermes's own
    import hermes_cli.main  # noqa: F401
    import hermes_cli.plugins  # noqa: F401
    import plugins  # noqa: F401

    hermes = clocks()
    load(Path(sys.argv[1]))
    ours = clocks()
    print(
        "\n"
        + json.dumps({"hermes": [b - a for a, b in zip(began, hermes)], "ours": [b - a for a, b in zip(hermes, ours)]})
    )


if __name__ == "__main__":
    main()
