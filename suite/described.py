"""A suite as the plain object that `--json` prints."""

from __future__ import annotations

import json
from typing import Any, Mapping

from .cells import Key, suite_status
from .door import JSON_SCHEMA
from .pairs import Pair
from .reports import Graded, Suite, outcome_of

__all__ = ["described", "pair_json"]


def described(suite: Suite, skills: Mapping[Key, tuple[str, ...]], left: int, status: int) -> str:
    """Write a suite as one JSON object.

    :param skills: what each cell preloads.
    :param left: tries that were not made.
    """
    told = {
        "schema": JSON_SCHEMA,
        "suite": suite.id,
        "created": suite.created,
        "hermes": suite.hermes,
        "plugin": suite.plugin,
        "require": suite.require,
        "result": outcome_of(suite),
        "exit_code": status,
        "left": left,
        "cells": [_cell(each, skills.get(each.cell.key, ())) for each in suite.cells],
        "comparisons": [pair_json(pair) for pair in suite.pairs],
    }
    return json.dumps(told, allow_nan=False)


def _cell(each: Graded, skills: tuple[str, ...]) -> dict[str, Any]:
    one = each.summary
    return {
        **one.key._asdict(),
        "skills": list(skills),
        "result": one.outcome,
        "exit_code": suite_status([one]),
        "planned": one.planned,
        "runs": one.runs,
        "passes": one.passes,
        "counts": dict(one.counts),
        "share": one.share,
        "interval": list(one.interval) if one.interval else None,
        "reached": one.reached,
        "shown": one.shown,
        "in_a_row": one.in_a_row,
        "one_answer": one.one_answer,
        "remark": one.remark,
        "trouble": each.cell.trouble,
        "seconds": one.seconds,
        "tokens": one.tokens,
        "cost": one.cost,
        "files": [run.file for run in each.cell.runs],
    }


def pair_json(pair: Pair) -> dict[str, Any]:
    """A comparison as `--json` tells it."""
    return {
        "about": pair.found.label,
        "sides": [side._asdict() for side in (pair.one, pair.other)],
        "votes": pair.votes._asdict() if pair.votes else None,
        "halves": pair.halves,
        "p": pair.found.chance,
        "p_adjusted": pair.found.adjusted,
        "differs": pair.found.differs,
        "smallest": pair.smallest,
    }
