"""Compares answers to terminal commands, and to searches over masked lines, with those of a real Hermes.

Run it with the Python of an environment that has Hermes installed:

    python tests/lanes/terminal.py COMMANDS SEARCHES SEED [--no-rg] [--rg-major N]

It makes a small tree of odd files and of files with made-up secrets in a
temporary folder, asks Hermes's own tools and ours, and prints one JSON object:
how many answers were equal (but for an order that the file system decides),
missed, or different, with examples, and which commands were answered that
should not be.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Iterator

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.lanes import differential  # noqa: E402
from tests.lanes.refused import REFUSED, random_refused  # noqa: E402

sys.path.pop(0)

from session_cassettes.cassette_store import Name  # noqa: E402
from session_cassettes.suite.terminal import Terminal  # noqa: E402
from session_cassettes.synth_search import Miss, Synthesizer  # noqa: E402

# --- the tree -------------------------------------------------------------------

TOKEN = "ghp_" + "a1B2c3" * 6
FAKE = "sk-test-example-key-for-the-login-page"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA75\n" * 3 + "-----END RSA PRIVATE KEY-----"
LINES = (
    "import os",
    "import os.path as path",
    "def login(user, password=None):",
    "    return auth.token(user)  # TODO: timeout",
    "class Session:",
    "    timeout = 30",
    "    retries = 5",
    "",
    "    def close(self):",
    "        self.closed = True",
    "if __name__ == '__main__':",
    "    main(sys.argv[1:])",
    "PORT = 8080",
    "key = value  # see README.md",
    "a.b.c(d)[0] + e * f",
    "C:\\path\\to\\file",
    "$HOME/bin && ls | wc -l",
)
SECRETS = (
    f"TOKEN = '{TOKEN}'",
    f"api = connect('{FAKE}', timeout=30)",
    f"header: Authorization: Bearer {'x9Y8z7' * 5}",
    "authorization: str",
    "authorization: Optional[str] = None",
    f"jwt = {JWT}",
    "url = postgres://admin:hunter2@db.example.com/main",
    "call +14155550123 today",
    "x-api-key: abcdefghijklmnopqrstuvwx",
    f"two = {TOKEN} and {'hf_' + 'Q2w3E4r5T6' * 2} here",
    "remote = https://0123456789abcdef@example.com/repo.git",
    "AKIAABCDEFGHIJKLMNOP is an id",
    "bot 123456789:AAEhBP0av28BbK1Zz4XgHh5JjKk7LlMmNnO",
)


def make_tree(folder: Path, rng: random.Random) -> None:
    """Write the files: plain ones in folders, odd ones, and those with made-up secrets."""

    def lines(number: int) -> list[str]:
        return [rng.choice(LINES) for _ in range(number)]

    texts = {name: "\n".join(lines(rng.randint(3, 40))) + "\n" for name in PLAIN}
    texts |= {
        "odd/no end.txt": "first\nsecond\nlast line",
        "odd/empty.txt": "",
        "odd/blank.txt": "\n\n   \n\n",
        "odd/around.txt": "\n\n  in the middle  \n\n\n",
        "odd/crlf.txt": "import os\r\n\r\nclass A:\r\n  timeout\r\n",
        "odd/bom.txt": "\ufeffimport os\nclass B\n",
        "odd/umlaut.txt": "über die Straße\nimport ölig\nplain timeout\n日本語 class\n",
        "odd/fold.txt": "\u212aelvin\nlo\u017ft\nLOST kelvin\n",
        "odd/bell.txt": "ring\x07 the bell\nform\x0cfeed\n",
        "odd/colour.txt": "\x1b[31mred\x1b[0m timeout\n",
        "odd/c1.txt": "next\x85line timeout\n",
        "odd/-dash.txt": "a dash\n",
        "odd/two  blanks.txt": "import blanks\n",
        "odd/it's.txt": "quoted\n",
        "odd/form.txt": "user=ada&token=abcdef\n",
        "odd/trace.txt": "ValueError: {'API_KEY': 'opaque'}\nE     assert {'token': 'zzz'}\n",
        "odd/split.txt": "sk-\nabcdefghijklmnop\nghp_\n",
        "odd/header.txt": "x-api-key:\nnext line\nAuthorization:\n  follows\n",
        "odd/long.txt": "x" * 3000 + " timeout\n" + "y" * 700 + "\n",
        "odd/cut.txt": "".join(f"line {n} of many, with a timeout\n" for n in range(1700)),
        "odd/sk-learn-tutorial-notes.md": "named like a key\n",
        "secret/key.txt": f"before timeout\nkey = '''{KEY}'''\nafter timeout\n",
        "secret/only.txt": KEY + "\n",
    }
    for number, secret in enumerate(SECRETS):
        texts[f"secret/s{number}.py"] = "\n".join([*lines(4), secret, *lines(4), "str Optional None"]) + "\n"
    texts["secret/many.py"] = "\n".join(SECRETS) + "\n"
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())


PLAIN = (
    "app.py",
    "setup.py",
    "src/main.py",
    "src/util.py",
    "src/__init__.py",
    "src/deep/a.py",
    "src/deep/b.txt",
    "src/deep/deeper/c.md",
    "docs/guide.md",
    "docs/index.md",
)


def names_below(folder: Path) -> dict[str, Name]:
    """Return what a recording would know of the names in a folder."""
    return {
        path.relative_to(folder).as_posix(): Name("folder") if path.is_dir() else Name("file", path.stat().st_size)
        for path in sorted(folder.rglob("*"))
    }


# --- what is asked ----------------------------------------------------------------


class Asked:
    """Seeded commands and searches over the files of the tree."""

    def __init__(self, folder: Path, names: dict[str, Name], rng: random.Random) -> None:
        self._folder, self._random = folder, rng
        self._files = [path for path, name in names.items() if name.kind == "file"]
        self._folders = [path for path, name in names.items() if name.kind == "folder"]

    def _quoted(self, word: str) -> str:
        plain = re.fullmatch(r"[\w./,:=+@%-]+", word) and not word.startswith("-") and self._random.random() < 0.6
        if plain:
            return word
        if "'" not in word:
            return f"'{word}'"
        return '"' + re.sub(r'([\\"$`])', r"\\\1", word) + '"'

    def _file(self) -> str:
        name = self._random.choice(self._files)
        return self._quoted(self._random.choice((name, name, name, "./" + name, str(self._folder / name))))

    def _dir(self) -> str:
        name = self._random.choice(self._folders)
        return self._quoted(self._random.choice((name, name, name + "/", "./" + name, ".", "./", str(self._folder))))

    def _number(self) -> int:
        return self._random.choice((0, 1, 2, 3, 5, 8, 40, 5000))

    def command(self) -> str:
        """Return one command that may be answered."""
        pick = self._random.choice
        some = " ".join(self._file() for _ in range(pick((1, 1, 1, 2, 3))))
        made = pick(
            (
                lambda: f"cat {some}",
                lambda: (
                    f"{pick(('head', 'tail'))} {pick(('', '-n %d' % self._number(), '-n%d' % self._number()))} {some}"
                ),
                lambda: f"{pick(('head', 'tail'))} -{self._number()} {self._file()}",
                lambda: f"sed -n {pick((self._range(), repr(self._range())))} {self._file()}",
                lambda: f"wc -l {self._file()}",
                lambda: f"ls {pick(('', '-1', '-a', '-1a'))} {pick(('', self._dir(), self._dir(), self._file()))}",
                lambda: f"find {pick(('', self._dir(), self._dir()))} {self._tests()}",
                self._search,
                self._search,
                self._search,
                self._search,
                lambda: "pwd",
            )
        )()
        return f"cd {pick(('.', str(self._folder)))} && {made}" if self._random.random() < 0.1 else made

    def _range(self) -> str:
        first = max(self._number(), 1)
        return self._random.choice((f"{first}p", f"{first},{self._number() or 1}p", f"{first},{first + 3}p"))

    def _tests(self) -> str:
        glob = self._quoted(self._random.choice(("*.py", "*.txt", "*", "a*", "main.py", "*e*", "s?.py", "deep", ".*")))
        kind = self._random.choice(("", "", " -type f", " -type d"))
        return f"-name '{glob.strip(chr(39))}'{kind}"

    def _search(self) -> str:
        pick = self._random.choice
        program = pick(("grep", "grep", "rg"))
        letters = {letter for letter in ("nilcwF" + "rE" * (program == "grep")) if self._random.random() < 0.2}
        letters |= {"n"} if self._random.random() < 0.4 else set()
        where = pick((self._file(), self._file(), f"{self._file()} {self._file()}", self._dir(), ""))
        if program == "grep" and (where == "" or where.strip("'\"./").split("/")[-1] in ("src", "docs", "odd", "deep")):
            letters.add("r")
        flags = f"-{''.join(sorted(letters))} " if letters else ""
        return f"{program} {flags}{self._quoted(self.pattern())} {where}".strip()

    def pattern(self) -> str:
        """Return a pattern to search for."""
        return self._random.choice(PATTERNS)

    def search(self) -> dict[str, Any]:
        """Return the arguments of one search over files with secrets."""
        pick = self._random.choice
        args: dict[str, Any] = {"pattern": pick(MASKED_PATTERNS + PATTERNS)}
        secrets = [name for name in self._files if name.startswith("secret/")]
        args["path"] = pick(("secret", pick(secrets), pick(secrets), pick(secrets), "."))
        args["limit"] = pick((50, 50, 200, 1000, 3))
        mode = pick(("content", "content", "files_only", "count"))
        if mode != "content":
            args["output_mode"] = mode
        elif self._random.random() < 0.3:
            args["context"] = pick((1, 2))
        return args

    def read(self) -> dict[str, Any]:
        """Return the arguments of one reading of a file with secrets."""
        name = self._random.choice([name for name in self._files if name.startswith(("secret/", "odd/"))])
        return {"path": name, "offset": self._random.choice((1, 1, 2, 5)), "limit": self._random.choice((1, 3, 500))}


PATTERNS = (
    "import",
    "import os",
    "timeout",
    "TIMEOUT",
    "class",
    "def ",
    "^import",
    "os$",
    "Session",
    "zzqq",
    "self.closed",
    r"self\.closed",
    "a.b",
    "r.*n",
    "[0-9]+",
    "[0-9]",
    r"\bos\b",
    "import|class",
    r"import\|class",
    "(import|class)",
    "TODO",
    "e{2}",
    "",
    "^$",
    "über",
    "straße",
    "kelvin",
    "lost",
    "ö",
    r"\w+ing",
    "a*",
    "[",
    "*",
    "$HOME",
    "C:\\path",
    "main(",
    "''",
    ".",
    "^.{3}$",
    "x",
)
MASKED_PATTERNS = (
    "gh[pousr]_[A-Za-z0-9]{30,}",
    "ghp_",
    "ghp_[A-Za-z0-9]+",
    "GHP_",
    "(?i)GHP_",
    "sk-",
    "sk-[a-z-]+",
    "example",
    "login",
    "a1B2",
    "B2c3",
    "Bearer",
    "Bearer .*x9",
    "Bearer [A-Za-z0-9]+",
    "authorization",
    "authorization: str",
    "Optional",
    "str",
    r"\bstr\b",
    "str$",
    "None",
    r"= None$",
    "hunter2",
    "admin:.*@db",
    "postgres://",
    r"\+1415",
    "5550",
    r"\d{7,}",
    "[0-9]{3,}",
    "AKIA",
    "[A-Z]{16}",
    "eyJ",
    r"eyJ\w+\.\w+",
    "PRIVATE",
    "BEGIN",
    "MII",
    "^MII",
    "REDACTED",
    "redacted",
    r"\*\*\*",
    r"\.\.\.",
    "«",
    "two = ",
    "here$",
    "[^a-z]{6}",
    "^[^ ]+$",
    "^TOKEN = '[^']*'$",
    "x-api-key",
    "abcdefgh",
    "follows",
    r"\w{20}",
    ".{80}",
    "^.{10,60}$",
    "'$",
    "before|after",
    r"timeout\n",
    "0123456789abcdef",
    "token",
)


# --- the comparison -----------------------------------------------------------------


def same(program: str, theirs: str, mine: str) -> bool:
    """Whether two results of a command are one, but for an order that the file system decides."""
    one, two = json.loads(theirs), json.loads(mine)
    if program in ("rg", "grep", "find"):
        one["output"], two["output"] = (
            sorted(row.strip() for row in each["output"].split("\n")) for each in (one, two)
        )
    return one == two and list(one) == list(two)


def compare_commands(
    live: differential.Live, ours: Terminal, asked: Asked, number: int
) -> tuple[Counter[str], list[Any]]:
    counts: Counter[str] = Counter()
    examples: list[Any] = []
    for _ in range(number):
        command = asked.command()
        program = re.sub(r"^cd \S+ && ", "", command).split()[0]
        try:
            mine, after = ours({"command": command}, "")
        except Miss as miss:
            counts["miss"] += 1
            counts[f"miss of {program}"] += 1
            examples.append(["miss", command, miss.reason])
            continue
        theirs = live("terminal", {"command": command})
        found = "equal" if same(program, theirs, mine) and after == "" else "different"
        counts[found] += 1
        counts[f"{found} of {program}"] += 1
        if found == "different":
            examples.insert(0, [command, theirs[-700:], mine[-700:]])
    return counts, examples


def walk_about(live: differential.Live, ours: Terminal, folder: Path) -> list[Any]:
    """Compare a few steps of which each one depends on where those before it went; return what differs.

    Blanks make them new to `Live`, which asks for nothing twice.
    """
    steps = ["cd src && cat main.py", " pwd", " ls", " cat util.py", "cd deep && grep -n zzqq a.py", "wc -l a.py"]
    steps += [f"  cd {folder} && pwd", "  cat app.py"]
    different: list[Any] = []
    here = ""
    for step in steps:
        mine, here = ours({"command": step}, here)
        theirs = live("terminal", {"command": step})
        if not same("", theirs, mine):
            different.append([step, theirs[-700:], mine[-700:]])
    for args in ({"command": "cat main.py", "workdir": "src"}, {"command": "  pwd"}):
        mine, here = ours(args, here)
        theirs = live("terminal", args)
        if not same("", theirs, mine):
            different.append([args, theirs[-700:], mine[-700:]])
    live("terminal", {"command": f"cd {folder}"})
    return different


def compare_tool(
    live: differential.Live, synth: Synthesizer, tool: str, calls: Iterator[dict[str, Any]]
) -> tuple[Counter[str], list[Any]]:
    counts: Counter[str] = Counter()
    examples: list[Any] = []
    for args in calls:
        try:
            mine = synth.answer(tool, args)
        except Miss as miss:
            counts["miss"] += 1
            counts["masked"] += "masked secret" in miss.reason
            examples.append(["miss", args, miss.reason])
            continue
        theirs = live(tool, args)
        found = differential.verdict(live, synth.answer, tool, args, theirs, mine)
        counts[found] += 1
        if found == "different":
            examples.insert(0, [args, theirs[:700], mine[:700]])
    return counts, examples


def refused(ours: Terminal, rng: random.Random) -> list[str]:
    """Return the commands that are answered though none of them may be."""
    answered = []
    for command in [*filter(None, REFUSED.split("\n")), *random_refused(rng, 100)]:
        try:
            ours({"command": command}, "")
        except Miss:
            continue
        answered.append(command)
    return answered


def run(workspace: Path, options: argparse.Namespace) -> dict[str, Any]:
    rng = random.Random(options.seed)
    make_tree(workspace, rng)
    live = differential.Live(None)
    names = names_below(workspace)
    synth, snapshot = differential.synthesizer(workspace, not options.no_rg, options.rg_major, names)
    ours = Terminal(synth.source, ())
    asked = Asked(workspace, names, rng)
    commands, odd = compare_commands(live, ours, asked, options.commands)
    searches, seen = compare_tool(live, synth, "search_files", (asked.search() for _ in range(options.searches)))
    reads, read = compare_tool(live, synth, "read_file", (asked.read() for _ in range(options.searches // 2)))
    return {
        "hermes": differential.hermes_version(),
        "files": len(snapshot.files),
        "skipped": dict(snapshot.skipped),
        "terminal": commands,
        "search_files": searches,
        "read_file": reads,
        "moves": walk_about(live, ours, workspace),
        "answered": refused(ours, rng),
        "live_seconds": round(live.seconds, 1),
        "examples": {"terminal": odd, "search_files": seen, "read_file": read},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", type=int)
    parser.add_argument("searches", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--no-rg", action="store_true")
    parser.add_argument("--rg-major", type=int, default=None)
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="cassette-lane-")).resolve()
    try:
        workspace = scratch / "ws"
        workspace.mkdir()
        differential.prepare(workspace, scratch, not options.no_rg)
        result = run(workspace, options)
    finally:
        os.chdir(differential.ROOT)
        shutil.rmtree(scratch, ignore_errors=True)
    print(json.dumps(result, ensure_ascii=False, indent=1))
    sys.stdout.flush()
    os._exit(0)  # Hermes's threads have nothing left to do


if __name__ == "__main__":
    sys.exit(main())
