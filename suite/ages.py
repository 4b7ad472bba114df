"""How old something is, in three characters: the times of `list`."""

from __future__ import annotations

import datetime

__all__ = ["UNKNOWN", "told_age"]

#: What stands for an age that is not known.
UNKNOWN = "-"
#: Seconds by which another machine's clock may be ahead.
_SKEW = 86_400
#: Up to how many of which unit an age is told: its letter, its seconds.
_UNITS = ((60, "s", 1), (60, "m", 60), (48, "h", 3_600), (100, "d", 86_400), (100, "w", 7 * 86_400))
_YEAR = 365.25 * 86_400


def told_age(written: object, now: datetime.datetime) -> str:
    """Say how long before `now` a time was, as in "5m" or "14w"; "-" where that cannot be known.

    :param written: a time in ISO 8601, UTC unless it says otherwise; it may be anything.  What lies in the
        future by less than a day, as another machine's clock would have it, is "0s" old.
    """
    if not isinstance(written, str):
        return UNKNOWN
    try:
        then = datetime.datetime.fromisoformat(written.strip().replace("Z", "+00:00"))
        if then.tzinfo is None:
            then = then.replace(tzinfo=datetime.timezone.utc)
        age = (now - then).total_seconds()
    except (ValueError, OverflowError):
        return UNKNOWN
    if age < -_SKEW:
        return UNKNOWN
    for most, letter, size in _UNITS:
        if age < most * size:
            return f"{max(0, int(age / size))}{letter}"
    return f"{int(age / _YEAR)}y"
