"""Runs inside a network namespace of its own: brings loopback up, serves the model there, runs one command."""

from __future__ import annotations

import fcntl
import socket
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.support import load_demo  # noqa: E402

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def main(base_url: str, *command: str) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        name = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(control, SIOCGIFFLAGS, name)[:18])[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP))
    try:
        socket.create_connection(("192.0.2.1", 80), 5)
    except OSError as error:
        print(f"the network is unreachable here: {error}", flush=True)
    else:
        return 99
    port = int(base_url.rpartition(":")[2].partition("/")[0])
    with load_demo("model").ScriptedModel(port=port):
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
