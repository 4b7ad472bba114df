"""How much of a workspace a recording keeps: how that is asked for, and how it is told."""

from __future__ import annotations

import argparse
import textwrap

from ..cassette_store import Cassette
from .door import quote

__all__ = ["add_extent", "recording_steps", "told_extent"]


def add_extent(parser: argparse.ArgumentParser) -> None:
    """Add what `record` can be asked for at both doors."""
    parser.add_argument("--overwrite", dest="cassette_overwrite", action="store_true", help="replace a cassette")
    whole = "keep the texts of the whole folder, not only of the files that the turn named"
    parser.add_argument("--whole", dest="cassette_whole", action="store_true", help=whole)
    names = "keep no list of the folder's files"
    parser.add_argument("--no-names", dest="cassette_keep_names", action="store_false", help=names)


def told_extent(cassette: Cassette) -> str:
    """Say of which kind a cassette is: the texts of how much of the workspace it has, and the names."""
    names = cassette.snapshot.names
    listed = "no names" if names is None else f"{len(names):,} name{'s' * (len(names) != 1)}"
    return f"{listed} ({'the whole folder' if cassette.snapshot.whole else 'only the texts of what the turn named'})"


def recording_steps(name: str) -> str:
    """What `record` prints without a request."""
    ask = ["hermes", "cassette", "record", name, "--query", "YOUR REQUEST"]
    return textwrap.dedent(
        f"""\
        To record {name!r}, in the folder that the question is about:

          {quote(ask)}

        Or in a session that you start there: type the first line, then your request
        (a chat that is attached to a gateway may refuse it):

          /cassette record {name}
          YOUR REQUEST

        Then pin the facts a good answer must contain, and replay:

          {quote(["hermes", "cassette", "pin", name, "FACT"])}
          {quote(["hermes", "cassette", "run", name])}"""
    )
