"""Records, pins and replays the tiny shop with a real Hermes, and checks every verdict.

    python demo/walkthrough.py

needs Python 3.11 or later and nothing else.  It uses the `hermes` on PATH, or
installs one into `demo/.venv`, and works in a temporary folder with a Hermes
home of its own; the person's own home is not touched, and nothing is left
behind.  It ends with status 0 only if every verdict was the promised one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, Sequence

import scratch
from model import ScriptedModel

HERE = Path(__file__).resolve().parent
OLDEST = (0, 19, 0)
REQUIREMENT = "hermes-agent==0.19.0"
QUESTION = "Where is the auth handler and what port does it bind?"
PINS = ("auth.py", "8080")
#: What the exit statuses of `hermes cassette run` mean.
RESULTS = {0: "PASS", 1: "FAIL", 2: "error", 3: "DIVERGED", 4: "INVALID"}
#: What can be promised of a replay by a model that nobody has scripted.
ANY_VERDICT = "PASS, FAIL or DIVERGED"
WINDOWS = os.name == "nt"


class WalkthroughError(Exception):
    """The walkthrough cannot go on; the text says why and what to do."""


# -- what is printed ----------------------------------------------------------


def typed(words: Sequence[str], windows: bool = WINDOWS) -> str:
    """Write a command as a person types it, in PowerShell on Windows and in a POSIX shell elsewhere."""
    if not windows:
        return shlex.join(words)
    plain = re.compile(r"[\w./:\\-]+")
    return " ".join(word if plain.fullmatch(word) else "'" + word.replace("'", "''") + "'" for word in words)


def typed_variable(name: str, value: str, windows: bool = WINDOWS) -> str:
    """Write how a person sets an environment variable."""
    return f"$env:{name} = '{value}'" if windows else f"export {name}={shlex.quote(value)}"


def typed_path(folder: str, windows: bool = WINDOWS) -> str:
    """Write how a person puts a folder first on PATH."""
    return f"$env:PATH = '{folder};' + $env:PATH" if windows else f"export PATH={shlex.quote(folder)}:$PATH"


def say(text: str = "") -> None:
    print(text, flush=True)


def heading(text: str) -> None:
    say(f"\n{text}\n{'-' * len(text)}")


@dataclass(frozen=True)
class Check:
    """One promise and what came of it."""

    step: str
    promised: str
    got: str

    @property
    def kept(self) -> bool:
        if self.promised == ANY_VERDICT:
            return self.got.split(",")[0] in ("PASS", "FAIL", "DIVERGED")
        return self.got == self.promised


def table(checks: Sequence[Check]) -> str:
    """Return the closing table: one row per promise."""
    rows = [(check.step, check.promised, check.got, "" if check.kept else "  <-- NOT AS PROMISED") for check in checks]
    step, promised = (max(len(row[column]) for row in [("step", "promised"), *rows]) for column in (0, 1))
    lines = [f"{'step':{step}}  {'promised':{promised}}  got"]
    lines += [f"{row[0]:{step}}  {row[1]:{promised}}  {row[2]}{row[3]}" for row in rows]
    return "\n".join(lines)


def verdict(code: int, output: str) -> str:
    """Return what a run came to, such as "PASS" or "FAIL, 1 miss", if its text and status agree."""
    printed = re.search(r"^result (\w+)", output, re.MULTILINE)
    result = RESULTS.get(code, f"status {code}")
    if code == 2 or printed is None or printed[1] != result:
        return f"{printed[1] if printed else 'no verdict'}, exit status {code}"
    misses = re.search(r"^path .*?(\d+) miss", output, re.MULTILINE)
    count = int(misses[1]) if misses else 0
    return result + (f", {count} miss{'es' * (count > 1)}" if count else "")


# -- finding a Hermes -----------------------------------------------------------


@dataclass(frozen=True)
class Hermes:
    """The `hermes` that the walkthrough uses."""

    path: Path
    version: tuple[int, ...]
    origin: str


def find_hermes(folder: Path) -> Hermes:
    """Return the `hermes` on PATH if it is new enough, else one in `demo/.venv`.

    :param folder: a scratch home, so that asking for the version touches no other.
    """
    found = shutil.which("hermes")
    if found and not (WINDOWS and not found.lower().endswith(".exe")):
        version = version_of(Path(found), folder)
        if version >= OLDEST:
            return Hermes(Path(found), version, "found on PATH")
        say(f"the hermes on PATH ({found}) is older than 0.19.0 or does not tell its version")
    else:
        say("there is no hermes on PATH that this walkthrough can use")
    environment = HERE / ".venv" / REQUIREMENT.replace("==", "-")
    ready = scratch.is_ready(environment, REQUIREMENT)
    try:
        scratch.build(environment, REQUIREMENT, lambda text: say(f"  {text}"))
    except scratch.BuildError as error:
        raise WalkthroughError(f"cannot install {REQUIREMENT}: {error}") from error
    path = scratch.hermes_in(environment)
    return Hermes(path, version_of(path, folder), "kept from an earlier time" if ready else "installed just now")


def version_of(hermes: Path, folder: Path) -> tuple[int, ...]:
    """Return a Hermes's version; () if it does not tell it."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        told = subprocess.run(
            [str(hermes), "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            env=scratch.clean_environment(folder),
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        if number := re.search(r"v?(\d+)\.(\d+)\.(\d+)", told.stdout):
            return tuple(int(part) for part in number.groups())
    return ()


# -- the walkthrough --------------------------------------------------------------


@dataclass
class Walkthrough:
    """One scratch folder with a home, a shop and a Hermes, and the promises made so far."""

    hermes: Hermes
    folder: Path
    base_url: str
    model: str
    scripted: ScriptedModel | None = None
    checks: list[Check] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home = self.folder / "hermes-home"
        self.shop = self.folder / "tinyshop"
        self.data = self.home / "plugin-data" / scratch.PLUGIN
        self.environment = scratch.clean_environment(self.home)
        self.environment["PATH"] = os.pathsep.join([str(self.hermes.path.parent), self.environment.get("PATH", "")])

    # preparing

    def prepare(self) -> None:
        """Fill the scratch folder and tell how a person would get the same."""
        heading("A Hermes home and a shop of their own")
        scratch.install_plugin(self.home)
        self.enable_plugin(True)
        shutil.copytree(HERE / "fixture-repo", self.shop, ignore=shutil.ignore_patterns("__pycache__"))
        if not self.hermes.origin.endswith("PATH"):
            say(f"{self.prompt}{typed_path(str(self.hermes.path.parent))}")
        say(f"{self.prompt}{typed_variable('HERMES_HOME', str(self.home))}")
        say(f"  the plugin is in its plugins folder and enabled; its model serves at {self.base_url}")
        say(f"{self.prompt}{typed(['cd', str(self.shop)])}")
        self.make_git_repository()

    def make_git_repository(self) -> None:
        say(f"{self.prompt}git init")
        try:
            subprocess.run(["git", "init", "--quiet"], cwd=self.shop, check=True, capture_output=True)
        except FileNotFoundError:
            say("  git is not installed: the shop stays a plain folder")
        except subprocess.CalledProcessError as error:
            say(f"  git failed ({error.stderr.decode('utf-8', 'replace').strip()}): the shop stays a plain folder")

    def enable_plugin(self, enabled: bool) -> None:
        scratch.write_config(self.home, self.base_url, self.model, enabled=enabled)

    # running

    @property
    def prompt(self) -> str:
        return "PS> " if WINDOWS else "$ "

    def run(self, *words: str) -> tuple[int, str]:
        """Run `hermes` with these words, show the command and its output, and return status and output."""
        say(f"\n{self.prompt}{typed(['hermes', *words])}")
        lines = []
        with subprocess.Popen(
            [str(self.hermes.path), *words],
            cwd=self.shop,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as child:
            assert child.stdout is not None
            try:
                for line in child.stdout:
                    lines.append(line)
                    say(f"  {line.rstrip()}")
            except BaseException:
                stop(child)
                raise
        return child.returncode, "".join(lines)

    def promise(self, step: str, promised: str, *words: str) -> None:
        """Run a command that must end with status 0, or a replay that must come to a verdict."""
        code, output = self.run(*words)
        got = verdict(code, output) if words[:2] == ("cassette", "run") else "done" if code == 0 else f"status {code}"
        self.check(step, promised, got)

    def check(self, step: str, promised: str, got: str) -> None:
        """Note a promise and what came of it."""
        self.checks.append(Check(step, promised, got))
        if not self.checks[-1].kept:
            say(f"  NOT AS PROMISED: {promised} was promised, this is {got}")

    def replay(self, step: str, promised: str, model: str, *more: str) -> None:
        self.promise(step, promised, "cassette", "run", "tinyshop", "--model", model, *more)

    # the steps

    def record_and_pin(self, model: str) -> None:
        heading("Record one good session, and pin what a good answer must hold")
        self.promise(
            "record",
            "done",
            "cassette",
            "record",
            "tinyshop",
            "--query",
            QUESTION,
            "--in",
            str(self.shop),
            "--model",
            model,
        )
        if not self.checks[-1].kept:
            raise WalkthroughError("nothing was recorded, so there is nothing to replay")
        for pin in PINS:
            self.promise(f"pin {pin}", "done", "cassette", "pin", "tinyshop", pin)
        self.promise("list", "done", "cassette", "list")
        self.promise("show", "done", "cassette", "show", "tinyshop")

    def replay_green(self) -> None:
        heading("Replay it")
        self.replay("the recording model", "PASS", "careful")
        say("\nAnother model takes another way; the snapshot answers what was never asked before.")
        self.replay("a model on another way", "PASS", "explorer")

    def change_the_shop(self, port: str) -> None:
        heading("Change the shop: a replay does not look")
        path = self.shop / "server" / "auth.py"
        edit(path, "AUTH_PORT = 8080", f"AUTH_PORT = {port}")
        say(f"  ({path} now says AUTH_PORT = {port})")

    def replay_red(self) -> None:
        heading("See red")
        say("A model that asks for what the recording never saw, and then gives up:")
        self.replay("a model that wanders off", "FAIL, 1 miss", "wanderer")
        say("\nA model that answers right, but read a file on the way that is not on the tape:")
        self.replay("right answer off the record", "DIVERGED, 1 miss", "roamer")
        self.replay_with_wrong_skill()
        say("\nA cassette that somebody tampered with:")
        self.replay_tampered("FAIL", "careful")

    def replay_with_wrong_skill(self) -> None:
        say("\nA skill that is wrong on purpose, and a model that believes it:")
        skill = self.home / "skills" / "software-development" / "tinyshop-layout"
        shutil.copytree(HERE / "skills" / "tinyshop-layout", skill)
        say(f"  (demo/skills/tinyshop-layout is copied to {skill.parent})")
        self.replay("a wrong skill", "FAIL", "believer", "--skill", "tinyshop-layout")
        shutil.rmtree(skill)
        say("  (the skill is removed again)")
        self.replay("the same model without it", "PASS", "believer")

    def replay_tampered(self, promised: str, model: str) -> None:
        path = self.data / "cassettes" / "tinyshop.json"
        original = path.read_bytes()
        changed = tamper(json.loads(original), "8080", "9090")
        path.write_text(json.dumps(changed, ensure_ascii=False, indent=1), encoding="utf-8")
        say(f"  ({path}: 8080 is now 9090 in the recorded results and in the snapshot)")
        self.replay("a tampered cassette", promised, model)
        say(f"  it answered: {self.last_answer()}")
        path.write_bytes(original)
        say("  (the cassette is as it was)")

    def last_answer(self) -> str:
        """Return the answer of the newest run, from its file."""
        runs = sorted((self.data / "runs" / "tinyshop").glob("*.json"))
        return str(json.loads(runs[-1].read_bytes()).get("answer", "")) if runs else ""

    def replay_unclaimed(self) -> None:
        heading("A run that no session claims is live, and never a PASS")
        say("The plugin is switched off after the run is armed and before its session starts.")
        say("The request then runs as an ordinary session, with real tools, and is graded INVALID:")
        with self.switched_off_once_armed() as how:
            self.replay("an unclaimed run", "INVALID", "careful")
        say(f"  ({how[0] if how else 'the run was never armed'}; undone again)")

    def shown(self, text: str) -> str:
        """Tell whether the scripted model has been shown a text by any tool so far."""
        told = (
            (
                message
                for request in self.scripted.requests
                for message in request.get("messages", ())
                if message.get("role") == "tool"
            )
            if self.scripted
            else ()
        )
        return "shown" if any(text in str(message.get("content")) for message in told) else "never shown"

    @contextlib.contextmanager
    def switched_off_once_armed(self) -> Iterator[list[str]]:
        """Keep any session from claiming the run that is armed next; yield what was done, once it is."""
        arm, done, over = self.data / "arm.json", [], threading.Event()

        def watch() -> None:
            while not over.wait(0.005):
                with contextlib.suppress(OSError, ValueError):  # not there yet, or half there
                    host = json.loads(arm.read_bytes()).get("host")
                    if host == "gateway":  # a gateway has loaded the plugin already
                        arm.unlink()
                        done.append("arm.json was removed")
                    else:
                        self.enable_plugin(False)
                        done.append("the plugin was taken out of plugins.enabled")
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield done
        finally:
            over.set()
            watcher.join()
            self.enable_plugin(True)

    # the whole

    def with_scripted_model(self) -> None:
        """Go all the way with the demo's own model, whose every verdict is known."""
        self.record_and_pin("careful")
        self.replay_green()
        self.change_the_shop("8181")
        before = contents(self.shop)
        self.replay("after the shop changed", "PASS", "careful")
        self.replay_red()
        self.check("... says what the tape says", "yes", "yes" if "9090" in self.last_answer() else "no")
        self.check("today's port, in all these replays", "never shown", self.shown("AUTH_PORT = 8181"))
        self.replay_unclaimed()
        self.check("today's port, in the unclaimed run", "shown", self.shown("AUTH_PORT = 8181"))
        self.check(
            "the shop's files afterwards", "untouched", "untouched" if contents(self.shop) == before else "changed"
        )

    def with_own_model(self) -> None:
        """Go the part of the way that makes sense with a model whose answers nobody can promise.

        The unclaimed run is left out: its tools would be live.
        """
        self.record_and_pin(self.model)
        heading("Replay it")
        self.replay("a replay", ANY_VERDICT, self.model)
        self.change_the_shop("8181")
        before = contents(self.shop)
        self.replay("after the shop changed", ANY_VERDICT, self.model)
        say("\nA cassette that somebody tampered with; an answer of 9090 is a FAIL:")
        self.replay_tampered(ANY_VERDICT, self.model)
        self.check(
            "the shop's files afterwards", "untouched", "untouched" if contents(self.shop) == before else "changed"
        )


def stop(child: subprocess.Popen[Any]) -> None:
    """Stop a child: it has had its own Ctrl-C, so give it a moment first."""
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text in a file, byte for byte otherwise."""
    text = path.read_bytes().decode("utf-8")
    if old not in text:
        raise WalkthroughError(f"{path} does not say {old!r}")
    path.write_bytes(text.replace(old, new).encode("utf-8"))


def tamper(cassette: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """Replace a text in the recorded results and the snapshot of a cassette, and nowhere else."""

    def inside(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(old, new)
        if isinstance(value, list):
            return [inside(one) for one in value]
        if isinstance(value, dict):
            return {key: inside(one) for key, one in value.items()}
        return value

    calls = [{**call, "result": inside(call["result"])} for call in cassette["calls"]]
    return {**cassette, "calls": calls, "snapshot": inside(cassette["snapshot"])}


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder but git's own."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


# -- coming and going -------------------------------------------------------------


@contextlib.contextmanager
def scratch_folder(keep: Path | None) -> Iterator[Path]:
    """Yield a folder to work in; remove it afterwards, unless the person wants to keep it."""
    if keep is None:
        folder = Path(tempfile.mkdtemp(prefix="session-cassettes-")).resolve()
    else:
        folder = keep.absolute()
        if folder.exists() and any(folder.iterdir()):
            raise WalkthroughError(f"{folder} is not empty: name a folder that does not exist yet")
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave half of it
        stop_gateway(folder / "hermes-home")
        if keep is None:
            remove(folder)
        else:
            say(f"\nkept: {folder}, with the cassette, its runs and the shop")


def stop_gateway(home: Path) -> None:
    """Stop the gateway that a newer Hermes starts for a home, and only that one."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        os.kill(int(json.loads((home / "gateway.pid").read_bytes())["pid"]), signal.SIGTERM)
        time.sleep(1)


def remove(folder: Path) -> None:
    """Remove a folder, read-only files of git included; wait for files that are still open."""

    def writable(function: Any, path: str, _: Any) -> None:
        os.chmod(path, stat.S_IWRITE)
        function(path)

    for _ in range(10):
        with contextlib.suppress(OSError):
            shutil.rmtree(folder, onerror=writable)
        if not folder.exists():
            return
        time.sleep(0.3)
    say(f"could not remove {folder}: something in it is still open")


def check_server(base_url: str) -> None:
    """Make sure that a person's own model server answers.

    :raises WalkthroughError: if nothing does.
    """
    try:
        with urllib.request.urlopen(f"{base_url.rstrip('/')}/models", timeout=10):
            pass
    except urllib.error.HTTPError:
        pass  # somebody answers, and that is all that is asked
    except (OSError, ValueError) as error:
        raise WalkthroughError(f"nothing answers at {base_url} ({error}): is the model server running?") from error


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Record, pin and replay the tiny shop; check every verdict.")
    parser.add_argument("--model", metavar="NAME", help="use a model of your own instead of the scripted one")
    parser.add_argument("--base-url", metavar="URL", help="where it serves, such as http://127.0.0.1:11434/v1")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="work in this new folder and leave it there")
    options = parser.parse_args(argv)
    if bool(options.model) != bool(options.base_url):
        parser.error("--model and --base-url go together")
    return options


def walk(options: argparse.Namespace) -> int:
    """Walk the whole way; return 0 if every promise was kept, else 1."""
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(options.keep))
        if options.model:
            check_server(options.base_url)
            base_url, model, scripted = options.base_url, options.model, None
        else:
            scripted = stack.enter_context(ScriptedModel())
            base_url, model = scripted.base_url, "careful"
        (folder / "hermes-home").mkdir()
        hermes = find_hermes(folder / "hermes-home")
        say(f"hermes {'.'.join(map(str, hermes.version))}, {hermes.origin}: {hermes.path}")
        steps = Walkthrough(hermes, folder, base_url, model, scripted)
        steps.prepare()
        try:
            if options.model:
                steps.with_own_model()
            else:
                steps.with_scripted_model()
        finally:
            if steps.checks:
                heading("Promised and got")
                say(table(steps.checks))
        broken = [check for check in steps.checks if not check.kept]
    seconds = time.monotonic() - started
    if broken:
        say(f"\n{len(broken)} of {len(steps.checks)} promises were NOT kept ({seconds:.0f} s)")
        return 1
    say(f"\nall {len(steps.checks)} promises were kept ({seconds:.0f} s)")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    if sys.version_info < (3, 11):
        print("the walkthrough needs Python 3.11 or later, as Hermes does", file=sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return walk(parse(argv))
    except WalkthroughError as error:
        print(f"walkthrough: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nwalkthrough: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
