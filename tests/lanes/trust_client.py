"""Stands in for `hermes chat -Q` where a gateway hosts the session: the attaching client, and nothing else.

It hands its arguments to the broker that TRUST_GATEWAY names, prints the answer
on standard output and the stored session's id on standard error, as 0.23 does.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def main() -> int:
    given = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
    host, _, port = os.environ["TRUST_GATEWAY"].partition(":")
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rw", encoding="utf-8") as wire:
        wire.write(json.dumps({"query": given["query"], "model": given.get("model", ""), "cwd": os.getcwd()}) + "\n")
        wire.flush()
        line = wire.readline()
    answer = json.loads(line) if line else {"failure": "the gateway is gone"}
    if "failure" in answer:
        print(answer["failure"], file=sys.stderr)
        return 1
    print(answer["text"], flush=True)
    print(f"\nsession_id: {answer['session']}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
