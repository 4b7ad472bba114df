"""Lets a process fail at its n-th use of a folder: TRUST_FAULT is "role:mode:n:folder".

Python's audit events come before each opening, renaming, removal and locking of
a file, in every version.  Modes: "die" kills the process as `kill -9` would,
"eio" fails that one use, "full" fails it and every later one that writes.
Only "eio" counts uses that read: between two that write or lock, the disk is
the same whenever the process dies.  What was hit is noted in the file that
TRUST_HIT names.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

_USES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir", "fcntl.flock"}
_WRITES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}


def install(role: str) -> None:
    """Arm the fault if it is meant for this process."""
    wanted, mode, number, folder = (os.environ.get("TRUST_FAULT") or ":::").split(":", 3)
    if wanted != role:
        return
    left = int(number)
    noting = False

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal left, noting
        if event not in _USES or noting:
            return
        if event != "fcntl.flock":
            try:
                path = os.fspath(args[0])  # type: ignore[arg-type]
            except TypeError:
                return
            if folder not in str(path):
                return
        writes = (
            event in _WRITES or event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if mode == "full" and not writes or mode == "die" and not writes and event != "fcntl.flock":
            return
        left -= 1
        if left > 0 or left < 0 and mode != "full":
            return
        if not os.path.exists(os.environ["TRUST_HIT"]):
            noting = True
            with open(os.environ["TRUST_HIT"], "w") as file:
                file.write(f"{event} {os.path.basename(str(args[0]))}")
            noting = False
        if mode == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(errno.ENOSPC if mode == "full" else errno.EIO, "injected")

    sys.addaudithook(hook)
