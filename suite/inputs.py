"""What went into a run, as hashes, and what it used, as Hermes's database of sessions tells it.

Nothing here keeps or shows a text: a hash tells that something changed, not what
it said.  Nothing here raises either, and nothing changes a verdict: what cannot be
read is left out, and what is left out is not known, never zero.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Sequence

from ..cassette_store import Ledger
from ..hooks import hermes_config, hermes_home, lineage
from .database import ask

__all__ = ["context_hashes", "run_facts", "session_facts", "skill_hashes", "system_prompt_hash", "usage_of", "went_in"]

#: Instructions that Hermes 0.19 to 0.22 look for in the folder and, up to the git root, above it.
CHAIN = (".hermes.md", "HERMES.md", "AGENTS.override.md", "AGENTS.md", "agents.md")
#: And those that it looks for in the folder alone; `.cursor/rules/*.mdc` besides.
FOLDER = ("CLAUDE.md", "claude.md", ".cursorrules")
#: And in its home: who it is, and what it remembers.
HOME = ("SOUL.md", "memories/MEMORY.md", "memories/USER.md")

#: Bytes of a file that are hashed, files of one kind, and folders that are looked into for a skill, at most.
_MOST_BYTES, _MOST_FILES, _MOST_FOLDERS = 4 * 2**20, 200, 5_000
#: Seconds that Hermes's database may be busy.
_BUSY = 0.5


# --- before the session -------------------------------------------------------------


def went_in(folder: str, skills: Sequence[str]) -> dict[str, Any]:
    """Hash what a session in a folder is about to be given: instructions, and the skills that are preloaded.

    :returns: `files` and `skills`, each name to hash; one that could not be looked at is left out.
    """
    try:
        home, config = hermes_home(), hermes_config()
        settings = config.get("skills")
        settings = settings if isinstance(settings, Mapping) else {}
        wanted = [*skills, *_texts(settings.get("auto_load"))]
        roots = [home / "skills", *_more_roots(settings, home), *_project_roots(Path(os.path.realpath(folder)))]
        return {"files": context_hashes(folder, home), "skills": skill_hashes(wanted, roots)}
    except Exception:  # nobody's run may fail for want of a hash
        return {}


def context_hashes(folder: str, home: Path) -> dict[str, str]:
    """Hash the instructions that Hermes looks for, whether or not it lets one outrank another.

    :returns: path to hash; those of the folder and above it as seen from there, those of the home by their own.
    """
    here = Path(os.path.realpath(folder))
    places = [(name, home / name) for name in HOME]
    for parent in _up_to_git_root(here):
        names = [*CHAIN, *(FOLDER if parent == here else ())]
        places += [(Path(os.path.relpath(parent / name, here)).as_posix(), parent / name) for name in names]
    with contextlib.suppress(OSError):
        rules = sorted(name for name in os.listdir(here / ".cursor" / "rules") if name.endswith(".mdc"))
        places += [(f".cursor/rules/{name}", here / ".cursor" / "rules" / name) for name in rules[:_MOST_FILES]]
    return dict(_hashed(places))


def _hashed(places: Iterable[tuple[str, Path]]) -> Iterator[tuple[str, str]]:
    seen: set[tuple[int, int]] = set()  # one file by two names, where case does not count
    for name, path in places:
        with contextlib.suppress(OSError, ValueError):
            found = os.stat(path)
            if stat.S_ISREG(found.st_mode) and (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                yield name, hashlib.sha256(_bytes(path)).hexdigest()


def _bytes(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(_MOST_BYTES)


def _git_root(folder: Path) -> Path | None:
    return next((parent for parent in (folder, *folder.parents) if os.path.exists(parent / ".git")), None)


def _up_to_git_root(folder: Path) -> list[Path]:
    """The folder and those above it, up to the root of its git work tree; the folder alone outside one."""
    root = _git_root(folder)
    chain = [folder, *folder.parents]
    return chain[: chain.index(root) + 1] if root else [folder]


# skills

#: Folders of a skill whose files Hermes names beside its text.
_SUPPORT = ("assets", "references", "scripts", "templates")


def skill_hashes(names: Iterable[str], roots: Sequence[Path]) -> dict[str, str]:
    """Hash the text of each skill, and the names of the files that lie beside it.

    :param roots: where skills lie.
    :returns: without those that are not found, or whose name several texts have.
    """
    found: dict[str, str] = {}
    for name in dict.fromkeys(filter(None, map(str.strip, names))):
        hashes = {_skill_hash(path) for path in _skill_files(name, roots)}
        if len(hashes) == 1:
            found[name] = hashes.pop()
    return found


def _skill_hash(path: Path) -> str:
    beside = [Path(at, name) for part in _SUPPORT for at, _, names in _walk(path.parent / part) for name in names]
    named = sorted(one.relative_to(path.parent).as_posix() for one in beside[:_MOST_FILES])
    return hashlib.sha256("\0".join(["", *named]).encode("utf-8", "surrogateescape") + _bytes(path)).hexdigest()


def _skill_files(name: str, roots: Sequence[Path]) -> list[Path]:
    """The files that a skill's name can mean: by its path, by its folder, or by the name that it gives itself."""
    path = name.replace(":", "/", 1)
    if ".." in Path(path).parts:
        return []
    if direct := [one for root in roots for one in (root / path / "SKILL.md", root / f"{path}.md") if one.is_file()]:
        return direct
    files = [Path(at, "SKILL.md") for root in roots for at, _, names in _walk(root) if "SKILL.md" in names]
    files = [one for one in files if one.is_file()]  # no pipe that would be waited for
    own = re.compile(rf"^name:\s*[\"']?{re.escape(name)}[\"']?\s*$".encode(), re.MULTILINE)
    return [one for one in files if one.parent.name == name] or [one for one in files if own.search(_bytes(one))]


def _walk(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk a folder, hidden ones left out; links are followed, but not without end."""
    left = _MOST_FOLDERS
    for at, folders, files in os.walk(root, followlinks=True):
        left -= 1
        if left <= 0:
            return
        deep = len(Path(at).parts) - len(root.parts)
        folders[:] = [one for one in folders if deep < 6 and not one.startswith(".") and one != "node_modules"]
        yield at, folders, files


def _more_roots(settings: Mapping[str, Any], home: Path) -> list[Path]:
    """The folders of skills that the configuration names."""
    named = [*_texts([settings.get("create_dir")]), *_texts(settings.get("external_dirs"))]
    return [home / os.path.expanduser(os.path.expandvars(one)) for one in named]


def _project_roots(folder: Path) -> list[Path]:
    """The folders of skills that a project may bring along (0.22 on)."""
    root = _git_root(folder) or folder
    return [root / ".hermes" / "skills", root / ".agents" / "skills"]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        value = [value]
    return [one for one in value if isinstance(one, str) and one.strip()] if isinstance(value, list) else []


# --- after the session --------------------------------------------------------------


def run_facts(given: Mapping[str, Any], ledger: Ledger | None) -> dict[str, Any]:
    """What a run's file tells of what went into it, and of what it used.

    :param given: what `went_in` found before the session.
    :returns: `inputs`, and `usage` where anything is known of it.
    """
    prompt, usage = session_facts(ledger.sessions if ledger else ())
    inputs = {"system_prompt": prompt, **given} if prompt else dict(given)
    return {"inputs": inputs, **({"usage": usage} if usage else {})}


def session_facts(sessions: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """What Hermes's database tells of a turn's sessions: the hash of the system prompt, and what was used.

    :returns: "" and {} where it tells nothing.
    """
    try:
        return _session_facts(hermes_home() / "state.db", sessions) if sessions else ("", {})
    except Exception:  # no database, a locked or a broken one, or a table of another shape
        return "", {}


def _session_facts(path: Path, sessions: Sequence[str]) -> tuple[str, dict[str, Any]]:
    def read(database: Any) -> tuple[str, dict[str, Any]]:
        def row(session: str) -> Mapping[str, Any]:
            found = database.execute("SELECT * FROM sessions WHERE id = ?", (session,))
            values = found.fetchone()
            return dict(zip((column[0] for column in found.description), values)) if values else {}

        rows = {session: row(session) for session in lineage(sessions, row)}
        first = rows[sessions[0]]
        return system_prompt_hash(_prompt(database, first), sessions[0]), usage_of(list(rows.values()))

    return ask(path.resolve(), read, _BUSY)


def _prompt(database: Any, row: Mapping[str, Any]) -> str:
    """A session's system prompt; from 0.20 on the row has its hash, and the text stands in a table of its own."""
    text, key = row.get("system_prompt"), row.get("system_prompt_hash")
    if not text and key:
        found = database.execute("SELECT prompt FROM system_prompts WHERE hash = ?", (key,)).fetchone()
        text = found[0] if found else None
    return text if isinstance(text, str) else ""


#: Lines that Hermes writes anew for each session or each day.
_PASSING = re.compile(
    r"^(?:Conversation started: |Session ID: |Today's date \(as of the last context rebuild\): ).*\n?", re.MULTILINE
)


def system_prompt_hash(text: str, session: str) -> str:
    """Hash a system prompt without what is another in every session or on every day; "" for none."""
    lasting = _PASSING.sub("", text).replace(session, "") if session else _PASSING.sub("", text)
    return hashlib.sha256(lasting.encode("utf-8", "surrogatepass")).hexdigest() if text else ""


def usage_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum up what a turn's sessions used.

    :param rows: of Hermes's table of sessions.
    :returns: `tokens` (read and written, cached ones too), `calls` of the model
        and `cost` in US dollars, with `cost_status` where Hermes says how sure
        it is; each only if it is known of every session that asked the model.
    """
    asked = [row for row in rows if _count(row.get("api_call_count")) or _tokens(row)]
    found: dict[str, Any] = {}
    for name, values in (
        ("tokens", [_tokens(row) for row in asked]),
        ("calls", [_count(row.get("api_call_count")) for row in asked]),
        ("cost", [_cost(row) for row in asked]),
    ):
        if values and all(values):
            found[name] = sum(values)
    statuses = {row["cost_status"] for row in asked if isinstance(row.get("cost_status"), str)}
    if "cost" in found and len(statuses) == 1:
        found["cost_status"] = statuses.pop()
    return found


def _tokens(row: Mapping[str, Any]) -> int:
    """Tokens of a session; Hermes counts those of a reasoning among those that were written."""
    return sum(_count(row.get(f"{part}_tokens")) for part in ("input", "output", "cache_read", "cache_write"))


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _cost(row: Mapping[str, Any]) -> float:
    """What a session cost, the actual amount before the estimated one; 0 where it is not known."""
    if row.get("cost_status") == "unknown":
        return 0.0
    for name in ("actual_cost_usd", "estimated_cost_usd"):
        value = row.get(name)
        if isinstance(value, (int, float)) and 0 < value < 1e9:
            return float(value)
    return 0.0
