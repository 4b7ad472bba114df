"""A process of its own for the tests of the store: it saves, pins or holds a lock, and may die at a step.

    python store_child.py ROOT save NAME ANSWER      prints "saved" or "refused: WHY"
    python store_child.py ROOT pin NAME WORD COUNT   adds the pins WORD-0, WORD-1, ...
    python store_child.py ROOT hold                  takes the lock, prints "held", waits for its input to end

With STORE_CHILD_STOP=K in the environment the process kills itself at the K-th
step, before a call that changes the disk or in the middle of a write; without,
it prints how many steps there were.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any, Callable

spec = importlib.util.spec_from_file_location("cassette_store", Path(__file__).parent.parent / "cassette_store.py")
store_module = importlib.util.module_from_spec(spec)
sys.modules["cassette_store"] = store_module
spec.loader.exec_module(store_module)


class Steps:
    """Counts steps, and ends this process at one of them as a power cut would."""

    def __init__(self, stop: int) -> None:
        self.stop, self.count = stop, 0

    def step(self) -> None:
        self.count += 1
        if self.count == self.stop:
            if hasattr(signal, "SIGKILL"):
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(9)

    def around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.step()
            return real(*args, **kwargs)

        return call

    def install(self) -> None:
        for name in ("open", "fsync", "replace", "unlink"):
            setattr(os, name, self.around(getattr(os, name)))
        real_open = builtins.open

        def open_in_halves(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            opened = real_open(file, mode, *args, **kwargs)
            return InHalves(opened, self) if mode == "wb" else opened

        builtins.open = open_in_halves


class InHalves:
    """A file whose every write reaches the disk in two halves, with a step between."""

    def __init__(self, file: Any, steps: Steps) -> None:
        self.file, self.steps = file, steps

    def write(self, data: bytes) -> int:
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        self.steps.step()
        self.file.write(data[len(data) // 2 :])
        return len(data)

    def __enter__(self) -> InHalves:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def save(store: Any, name: str, answer: str) -> None:
    try:
        store.save(store_module.Cassette(name, "where?", answer), overwrite=answer.startswith("over"))
    except store_module.CassetteError as error:
        print(f"refused: {error}")
    else:
        print("saved")


def pin(store: Any, name: str, word: str, count: str) -> None:
    for number in range(int(count)):
        store.change_pins(name, lambda pins, pin=f"{word}-{number}": (*pins, pin))


def hold(store: Any) -> None:
    with store.lock():
        print("held", flush=True)
        sys.stdin.read()


def main(root: str, action: str, *words: str) -> None:
    steps = Steps(int(os.environ.get("STORE_CHILD_STOP", "0")))
    steps.install()
    {"save": save, "pin": pin, "hold": hold}[action](store_module.Store(Path(root)), *words)
    print(steps.count)


if __name__ == "__main__":
    main(*sys.argv[1:])
