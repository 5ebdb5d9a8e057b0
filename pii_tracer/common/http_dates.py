"""Dates in headers of HTTP: every form that servers write, read in one place, always with a time zone."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

_NAMED_ZONE = re.compile(r"[\d\s]([A-Za-z]{1,5})\s*$")
_KNOWN = frozenset({"GMT", "UTC", "UT", "Z", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT"})


def http_date(text: object) -> datetime | None:
    """The time that a header tells, in UTC; None where it is no date, or in a time zone that nobody knows.

    Read are the three forms of RFC 9110 (section 5.6.7), offsets, `-0000` (RFC 5322: UTC, and nothing of the place),
    and RFC 3339. HTTP knows UTC only: a date without a zone is UTC.
    """
    if not isinstance(text, str):
        return None
    told = text.strip().strip('"').strip()
    named = _NAMED_ZONE.search(told)
    if named and named[1].upper() not in _KNOWN:
        return None
    for read in (parsedate_to_datetime, _rfc3339):
        try:
            found = read(told)
            return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _rfc3339(text: str) -> datetime:
    return datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
