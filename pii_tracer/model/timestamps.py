"""Times: as people write them in estate files, requests, waivers and trusted keys, and as systems tell them."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator


def _written(value: object) -> object:
    # pydantic takes numbers, and strings of them, for seconds since 1970: `20310331` would be a day of that year
    if isinstance(value, date) or (isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d", value)):
        return value
    raise ValueError("this is not a date: write it as 2026-11-21T10:00:00+05:30, with a time zone")


def _zoned(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time zone is missing: write it as 2026-11-21T10:00:00+05:30")
    return value


Moment = Annotated[datetime, BeforeValidator(_written), AfterValidator(_zoned)]
"""A time with a time zone, as ISO 8601 and YAML write it; never a number."""


def instant(told: str) -> datetime:
    """A time that a system, or a plan, tells as ISO 8601; without a time zone it is one of UTC.

    Raises:
        ValueError: it is no time.
    """
    time = datetime.fromisoformat(told.replace("Z", "+00:00"))  # Python 3.10 does not read the letter
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def told_apart(one: datetime, other: datetime) -> tuple[str, str]:
    """Two moments of one sentence in UTC, as days; with the time where the day is the same."""
    first, second = one.astimezone(timezone.utc), other.astimezone(timezone.utc)
    form = "%Y-%m-%d %H:%M:%S UTC" if first.date() == second.date() else "%Y-%m-%d"
    return f"{first:{form}}", f"{second:{form}}"
