"""Makes a Hermes of one's own: a virtual environment with it, and a home that is nobody's.

An environment counts as ready only when the stamp inside it names the
requirement it was built for.  The stamp is written last, so a build that was
cut off leaves none and the next call starts over.  Nothing outside the folder
is written, except a lock file beside it; a home is never the person's own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator, Mapping, Sequence

REPO = Path(__file__).resolve().parent.parent
PLUGIN = "session-cassettes"
STAMP = "built-for.txt"
#: Hermes 0.19.0 runs on these, newest of the well-trodden first.
PYTHONS = ((3, 12), (3, 11), (3, 13))


#: The certificate of an authority that is nobody's, its key thrown away: the model lives on loopback without TLS, a
#: scratch Hermes has no business elsewhere, and it reads all authorities anew a dozen times at each start.
NOBODY = """\
-----BEGIN CERTIFICATE-----
MIIBejCCAR+gAwIBAgIUVBniAQdKnZV1MAVq2WYJ4OocrY0wCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTIwMTEyMTI0M1oYDzIxMjYxMTA3MTIx
MjQzWjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AARQacy8wBCFmwgVHP6Z+NuXQHGw+8bM2uRlY9NDLT6C5gJsDDZUv4OpGJ5T6dsr
HfXgkni9Uh5fTDvxmQQxju2To1MwUTAdBgNVHQ4EFgQUpFg9p74/t23tvCUw1gO5
5JtP5eQwHwYDVR0jBBgwFoAUpFg9p74/t23tvCUw1gO55JtP5eQwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAzut5wOpJ8OpJ+hkEkBAT5ns3Jyxy
4miguhWG1iKN0x4CIQDwaeSdOx1xFCasH5wPhuKs3mY0P0iSg822n18SCQOXZQ==
-----END CERTIFICATE-----
"""
NOBODY_FILE = "no-authority.pem"


# -- an environment -------------------------------------------------------------


class BuildError(Exception):
    """The environment could not be built; the text says why, in a few lines."""


def bin_folder(folder: Path) -> Path:
    """Return where a virtual environment keeps its programs."""
    return folder / ("Scripts" if os.name == "nt" else "bin")


def python_in(folder: Path) -> Path:
    return bin_folder(folder) / ("python.exe" if os.name == "nt" else "python")


def hermes_in(folder: Path) -> Path:
    return bin_folder(folder) / ("hermes.exe" if os.name == "nt" else "hermes")


def find_python() -> tuple[str, str] | None:
    """Return a Python that Hermes runs on, and its version such as "3.12".

    This one if it fits, else one on PATH; None if there is none.  A name on PATH
    proves nothing (it may be a shim without a Python behind it), so each
    candidate is started once.
    """
    if sys.version_info[:2] in PYTHONS:
        return sys.executable, f"{sys.version_info[0]}.{sys.version_info[1]}"
    for major, minor in PYTHONS:
        for command in ([f"python{major}.{minor}"], ["py", f"-{major}.{minor}"]):
            if shutil.which(command[0]):
                said = subprocess.run(
                    [*command, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=False
                )
                if said.returncode == 0:
                    return said.stdout.strip(), f"{major}.{minor}"
    return None


def is_ready(folder: Path, requirement: str) -> bool:
    """Tell whether the folder holds a finished build of the requirement."""
    try:
        built_for = (folder / STAMP).read_text(encoding="utf-8").strip()
    except OSError:
        return False
    return built_for == requirement and python_in(folder).exists() and hermes_in(folder).exists()


def build(folder: Path, requirement: str, say: Callable[[str], None]) -> None:
    """Make the folder ready, whoever else is building it at the moment.

    :param requirement: what pip is given, such as "hermes-agent==0.19.0".
    :param say: is told each thing that takes time.
    :raises BuildError: if no Python fits or pip fails.
    """
    if is_ready(folder, requirement):
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(folder.name + ".lock")):
        if is_ready(folder, requirement):
            return
        python = find_python()
        if python is None:
            wanted = ", ".join(f"{major}.{minor}" for major, minor in sorted(PYTHONS))
            raise BuildError(
                f"Hermes needs Python {wanted}; this is "
                f"{sys.version_info[0]}.{sys.version_info[1]} and no other was found on PATH"
            )
        if folder.exists():
            say(f"removing an unfinished environment at {folder}")
            shutil.rmtree(folder)
        say(f"creating a virtual environment at {folder}")
        _run([python[0], "-m", "venv", str(folder)], say)
        say(f"installing {requirement} into it with pip; this takes a minute or two")
        _run(
            [
                str(python_in(folder)),
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--no-input",
                "--quiet",
                requirement,
            ],
            say,
        )
        (folder / STAMP).write_text(requirement + "\n", encoding="utf-8")


def _run(command: list[str], say: Callable[[str], None]) -> None:
    started = time.monotonic()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as child:
        while True:
            try:
                said, _ = child.communicate(timeout=15)
                break
            except subprocess.TimeoutExpired:
                say(f"still at it after {time.monotonic() - started:.0f} s")
            except BaseException:
                child.kill()
                raise
    if child.returncode != 0:
        told = said.strip().splitlines()[-8:]
        raise BuildError("\n".join([f"{' '.join(command[1:4])} ... ended with status {child.returncode}", *told]))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; the system lets go of it if the process dies."""
    with path.open("a+b") as file:
        if os.name == "nt":
            import msvcrt

            while True:
                try:
                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                    break
                except OSError:
                    time.sleep(0.2)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


# -- a home -----------------------------------------------------------------------


def install_plugin(home: Path) -> None:
    """Copy the plugin's own files into a home: a link would bring the tests and environments along."""
    folder = home / "plugins" / PLUGIN
    folder.mkdir(parents=True)
    for path in (*REPO.glob("*.py"), REPO / "plugin.yaml"):
        shutil.copy2(path, folder / path.name)
    shutil.copytree(REPO / "suite", folder / "suite", ignore=shutil.ignore_patterns("__pycache__"))


def write_config(
    home: Path, base_url: str, model: str, enabled: bool = True, more: str = "", others: Sequence[str] = ()
) -> None:
    """Write a home's `config.yaml`: one model, our plugin if `enabled`, and the `others`.

    The context length is given so that no server is asked for it, the command
    scanner is off because Hermes would fetch it from the network, and so is the
    search for Pythons on this machine, which starts several at each start.
    :param more: further lines, as they are.
    """
    plugins = [PLUGIN] * enabled + [*others]
    agent = "agent:\n  environment_probe: false\n"
    more, found = re.subn("^agent:\n", agent, more, count=1, flags=re.MULTILINE)
    more += "" if found else agent  # at the end: what comes first in `more` may go on with the plugins
    (home / NOBODY_FILE).write_text(NOBODY, encoding="ascii")
    unfinished = home / "config.yaml.new"  # a Hermes that starts meanwhile must not read half of it
    unfinished.write_text(
        f"model:\n  default: {model}\n  provider: custom\n  base_url: {base_url}\n  api_key: none\n"
        f"  context_length: 131072\nsecurity:\n  tirith_enabled: false\n"
        f"plugins:\n  enabled: [{', '.join(plugins)}]\n{more}",
        encoding="utf-8",
    )
    os.replace(unfinished, home / "config.yaml")


#: What steers a Hermes to services, keys and certificates of a person's own, or makes it slow.
_STEERING = (
    *("HERMES_", "TERMINAL_", "SESSION_CASSETTES_", "OPENAI_", "OPENROUTER_", "ANTHROPIC_", "GIT_"),
    *("SSL_CERT_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PYTHONDONTWRITEBYTECODE"),  # each start would compile all
)


def clean_environment(home: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return an environment for this home, without anything that steers a Hermes elsewhere.

    The loopback interface is taken out of any proxy, for the model lives there;
    of certificates the home's own alone is trusted.
    """
    kept = {name: value for name, value in environ.items() if not name.upper().startswith(_STEERING)}
    loopback = ",".join(filter(None, [kept.get("NO_PROXY") or kept.get("no_proxy"), "127.0.0.1", "localhost"]))
    authority = {"SSL_CERT_FILE": str(home / NOBODY_FILE)} if (home / NOBODY_FILE).exists() else {}
    own = {"HERMES_HOME": str(home), "NO_PROXY": loopback, "no_proxy": loopback, "PYTHONIOENCODING": "utf-8"}
    return {**kept, **own, **authority}
