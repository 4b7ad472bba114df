"""Measures which planted secrets Hermes's own redaction takes out of a snapshot.

Run it with the Python of a Hermes installation; it prints the result as JSON:

    <hermes>/bin/python tests/lanes/secrets_probe.py [FILE_NAME]

The secrets are planted in an ordinary file (`settings.py` unless named), one
file per kind, and read back through a real snapshot.  They are put together
here from pieces, so that nothing in this file looks like a secret.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent.parent


def planted_secrets() -> dict[str, tuple[str, str]]:
    """Return the kinds: a line as it stands in a file, and the part that is secret."""
    body = "Zx9Qw7Lk3Vn5Bt1Rf8Yd2Hs6"
    cloud, openai = "AK" + "IA" + "Q3EXZT7RWJ5LNV2K", "sk-" + "proj-" + body * 2
    anthropic, google = "sk-" + "ant-api03-" + body * 3, "AI" + "za" + "Sy" + (body * 2)[:33]
    token = ".".join("ey" + "J" + part for part in ("hbGciOiJIUzI1NiJ9", "zdWIiOiIxMjM0NTY3ODkwIn0")) + "." + body * 2
    bot, password = "7214" + "598301:AA" + (body * 2)[:33], "correct" + "-horse-" + "battery"
    key = "\n".join(["-----BEGIN RSA " + "PRIVATE KEY-----", *[body * 2] * 4, "-----END RSA " + "PRIVATE KEY-----"])
    return {
        "cloud key (AWS)": (f'AWS_ACCESS_KEY_ID = "{cloud}"', cloud),
        "API key (OpenAI)": (f'client = OpenAI(api_key="{openai}")', openai),
        "API key (Anthropic)": (f'client = Anthropic(api_key="{anthropic}")', anthropic),
        "API key (Google)": (f'genai.configure(api_key="{google}")', google),
        "JSON Web Token": (f'SESSION = "{token}"', token),
        "password=": (f"password={password}", password),
        "bot token (Telegram)": (f'BOT = "{bot}"', bot),
        "private key": (f'KEY = """{key}"""', body * 2),
        "connection string": (f'DB = "postgresql://app:{password}@db.example/app"', password),
    }


def expected(version: str, file_name: str = "settings.py") -> dict[str, str]:
    """Return what `measure` gives in Hermes 0.19.0, 0.20.1.2 and 0.22.2.post1.

    An unmarked password is the one kind that stays; the mode for secret files,
    which 0.22 has, takes it out of a `config.yaml`, and without it that is not kept.
    """
    strict = file_name == "config.yaml" and version.startswith("0.22.")
    if file_name == "config.yaml" and not strict:
        return dict.fromkeys(planted_secrets(), "skipped: no stricter redaction")
    stays = set() if strict else {"password="}
    return {kind: "kept" if kind in stays else "redacted" for kind in planted_secrets()}


def load_snapshot() -> ModuleType:
    """Return the plugin's module `snapshot`, loaded as part of its package."""
    if "session_cassettes" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "session_cassettes", ROOT / "__init__.py", submodule_search_locations=[str(ROOT)]
        )
        assert spec is not None and spec.loader is not None
        sys.modules["session_cassettes"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["session_cassettes"])
    return importlib.import_module("session_cassettes.snapshot")


def measure(file_name: str = "settings.py") -> dict[str, str]:
    """Return what becomes of each kind: "redacted", "kept" or "skipped: <reason>"."""
    snapshot = load_snapshot()
    store = importlib.import_module("session_cassettes.cassette_store")
    secrets = planted_secrets()
    with tempfile.TemporaryDirectory() as root:
        names = [f"{number}/{file_name}" for number in range(len(secrets))]
        for name, (line, _) in zip(names, secrets.values()):
            os.mkdir(os.path.dirname(os.path.join(root, name)))
            Path(root, name).write_text(f"before = 1\n{line}\nafter = 2\n", encoding="utf-8")
        calls = [store.Call("read_file", {"path": name}, "{}") for name in names]
        taken = snapshot.take_snapshot(
            calls, snapshot.Workspace.here(root), redact=snapshot.hermes_redactor(), deadline=time.monotonic() + 60
        )
    return {kind: fate(taken, name, secret) for name, (kind, (_, secret)) in zip(names, secrets.items())}


def fate(taken: object, name: str, secret: str) -> str:
    if name not in taken.files:  # type: ignore[attr-defined]
        return "skipped: " + taken.skipped_paths[name]  # type: ignore[attr-defined]
    return "kept" if secret in taken.files[name].text else "redacted"  # type: ignore[attr-defined]


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:2]), indent=2))
