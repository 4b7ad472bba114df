"""What `hermes cassette doctor` finds without asking another process: this Hermes, and the data folder.

Every finding is a line that is told, and where something is to be done, a line
that says so.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Callable, Mapping

from ..cassette_store import CassetteError, Store, hermes_release
from ..hooks import Plugin, hermes_config, hook_words, refuse_foreign_runtime, refuse_isolation, yolo_set
from ..snapshot import hermes_redactor

__all__ = ["Findings", "examine_hermes", "examine_store", "tried"]

#: What is told, and what is to be done.
Findings = tuple[list[str], list[str]]


def tried(check: Callable[[], Any]) -> tuple[Any, str]:
    """What a check returned, or why it refused."""
    try:
        return check(), ""
    except CassetteError as error:
        return None, str(error)


def examine_hermes(plugin: Plugin, before: str) -> Findings:
    """What this Hermes is set to do.

    :param before: what is told of plugins whose middleware stands before ours, "" without any.
    """
    _, foreign = tried(lambda: refuse_foreign_runtime(None, hermes_config()))
    told = [f"runtime    runs its tools {'elsewhere' if foreign else 'in Hermes, where a replay answers them'}"]
    if before:
        told.append(f"before     {before}")
    _, isolated = tried(refuse_isolation)
    told.append(f"plugins    run {'in a process of their own' if isolated else 'where the tools are'}; {hook_words()}")
    redaction = "available" if hermes_redactor() is not None else "missing: recordings keep no snapshot"
    told.append(f"redaction  {redaction}")
    told.append(f"reviews    {_told_reviews(hermes_config(), plugin.facts.hermes)}")
    if yolo_set(os.environ):
        told.append("approvals  HERMES_YOLO_MODE is set here; a replay's session goes without it")
    return told, [fault for fault in (foreign, isolated) if fault]


#: Steps of a turn after which Hermes looks back on it, unless its configuration says otherwise.
_REVIEWED = 10


def _told_reviews(config: Mapping[str, Any], version: str) -> str:
    """Say when Hermes looks back on a turn by itself, in the background: what that costs is no part of a run's turn."""
    skills, auxiliary = config.get("skills"), config.get("auxiliary")
    try:
        steps = int(skills.get("creation_nudge_interval", _REVIEWED)) if isinstance(skills, Mapping) else _REVIEWED
    except (TypeError, ValueError):  # what Hermes does with it
        steps = _REVIEWED
    review = auxiliary.get("background_review") if isinstance(auxiliary, Mapping) else None
    enabled = review.get("enabled", True) if isinstance(review, Mapping) else True
    if steps <= 0 or enabled is False and (hermes_release(version) or (0, 0)) >= (0, 20):
        return "Hermes looks back on no turn by itself"
    return f"after a turn of {steps} steps or more Hermes asks the model again; after a replay no tool of that runs"


def examine_store(store: Store, unwritable: str, age: Callable[[], str]) -> Findings:
    """What the data folder holds.

    :param unwritable: why it cannot be written to, or "".
    :param age: says of a run that waits since when it does.
    """
    told = [f"data       {store.root}{', which cannot be written to' if unwritable else ''}"]
    todo = [unwritable] if unwritable else []
    names, fault = tried(store.names)
    names, todo = names or [], todo or [fault] * bool(fault)
    broken = [fault for name in names if (fault := tried(partial(store.read, name))[1])]
    told.append(f"cassettes  {len(names)}, {len(broken)} broken")
    todo += broken
    if unwritable:  # its lock cannot be tried
        return told, todo
    place = store.waiting()
    if place.try_acquire():
        place.release()
        stale = store.arm_path.exists()
        told.append("waiting    no run" + (", one arm of a dead run (the next run clears it)" if stale else ""))
    else:
        told.append(f"waiting    a run{age()}")
    return told, todo
