"""What a pin may be when it is added, and which answers hold one that is plain text."""

from __future__ import annotations

import unicodedata

from ..cassette_store import CassetteError, has_surrogate, kept_pin

__all__ = ["check_pin", "pin_holds"]


def check_pin(text: str) -> str:
    """Return a new pin as it is kept, or refuse it.

    What stands after `re:` is not compiled here: even that can take for ever,
    so `cli` does it where it can be stopped.

    :raises CassetteError: if it is empty, more than a line, too long, or no UTF-8.
    """
    pin = kept_pin(text)
    if has_surrogate(pin):
        raise CassetteError("a pin is UTF-8 text, which this is not: type it in a UTF-8 terminal")
    return pin


def pin_holds(pin: str, answer: str) -> bool:
    r"""Say whether an answer holds a pin that is plain text; `re:` pins are `cli`'s, which can stop them.

    Case is ignored as Unicode folds it (`ß` is `ss`; `İ` is `i` with a dot
    above, so not a plain `i`), `\` equals `/`, and what looks the same is the
    same, composed (NFC) or not (NFD).
    """
    return _folded(pin) in _folded(answer)


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFD", text).casefold()
    return unicodedata.normalize("NFC", folded).replace("\\", "/")
