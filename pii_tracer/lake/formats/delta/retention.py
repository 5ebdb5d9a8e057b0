"""How long a Delta table's own settings keep old data, in days. Pure: properties in, settings out.

https://docs.delta.io/latest/table-properties.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pii_tracer.lake.formats.retention_terms import Kept

FILES = "delta.deletedFileRetentionDuration"
LOG = "delta.logRetentionDuration"

_DEFAULTS = {FILES: 7.0, LOG: 30.0}
_UNIT_DAYS = {
    "microsecond": 1 / 86_400_000_000,
    "millisecond": 1 / 86_400_000,
    "second": 1 / 86_400,
    "minute": 1 / 1_440,
    "hour": 1 / 24,
    "day": 1.0,
    "week": 7.0,
}
_PART = re.compile(r"(\d+)\s+(microsecond|millisecond|second|minute|hour|day|week)s?", re.IGNORECASE)


def kept_by(properties: Mapping[str, str]) -> Iterator[Kept]:
    """The settings of a table that decide how long old data stays."""
    for setting, default in _DEFAULTS.items():
        value = properties.get(setting)
        days = default if value is None else interval_days(value)
        yield Kept(setting, value, days, "" if days is not None else "the interval cannot be read", history=True)


def value_for(setting: str, days: int) -> str | None:
    """What a setting has to be to keep old data for some days; None where it does not say how long."""
    return f"interval {days} days" if setting in (FILES, LOG) else None


def interval_days(text: str) -> float | None:
    """Days of an interval as Delta writes it (`interval 1 week 2 days`); None when it is none that Delta accepts."""
    body = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE).strip()
    if not body or _PART.sub("", body).strip():
        return None
    return sum(int(number) * _UNIT_DAYS[unit.lower()] for number, unit in _PART.findall(body))
