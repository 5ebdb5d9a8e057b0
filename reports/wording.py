"""How numbers, dates and the plan's words are written for people. English, UTC, the same in every report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from pii_tracer.common.plurals import counted
from pii_tracer.model.datasets import Carries, CopyKind, Strategy
from pii_tracer.model.plan import Copy

_CURRENCY_SIGNS = {"INR": "₹", "EUR": "€", "USD": "$", "GBP": "£"}
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

KINDS = {
    CopyKind.SOURCE: "source",
    CopyKind.DERIVED: "derived",
    CopyKind.DEV_CLONE: "dev clone",
    CopyKind.REPLICA: "replica",
    CopyKind.TABLE_HISTORY: "table history",
    CopyKind.OBJECT_VERSION: "object versions",
    CopyKind.ARCHIVE: "archive",
    CopyKind.TOPIC: "topic",
    CopyKind.KEY: "key",
    CopyKind.BACKUP: "backup",
}

CARRIES = {
    Carries.KEY: "key",
    Carries.COMPUTED_KEY: "computed key",
    Carries.BRIDGE: "bridge",
    Carries.IDENTIFIERS: "identifiers",
    Carries.AGGREGATE: "aggregate",
    Carries.UNKNOWN: "unknown",
    Carries.NONE: "nothing",
}

CARRIES_MEANING = {
    Carries.KEY: "the person's key is in the rows, renamed or cast",
    Carries.COMPUTED_KEY: "a transform of the key that can be recomputed",
    Carries.BRIDGE: "a key that leads to the person through another table",
    Carries.IDENTIFIERS: "no key, but other identifiers of the person",
    Carries.AGGREGATE: "aggregates with the person's data",
    Carries.UNKNOWN: "not proved",
    Carries.NONE: "nothing of the person",
}

STRATEGIES = {
    Strategy.DELETE_BY_KEY: "delete by key",
    Strategy.DELETE_BY_COMPUTED_KEY: "delete by computed key",
    Strategy.DELETE_THROUGH_BRIDGE: "delete through bridge",
    Strategy.DELETE_BY_IDENTIFIERS: "delete by identifiers",
    Strategy.REBUILD: "rebuild from source",
    Strategy.RECOMPUTED: "computed again by its owner",
    Strategy.REWRITE_REF: "rewrite refs",
    Strategy.RESTORE_REWRITE_ARCHIVE: "rewrite the objects",
    Strategy.DELETE_VERSIONS: "delete versions",
    Strategy.DELETE_ARCHIVES: "delete whole archives",
    Strategy.DESTROY_KEY: "destroy the key",
    Strategy.CONFIRM: "confirmed by its owner",
    Strategy.TOMBSTONE: "tombstone and compact",
    Strategy.REWRITE_TOPIC: "rewrite the topic",
    Strategy.DELETE_PREFIX: "delete a prefix of the topic",
    Strategy.REWRITE_BRANCHES: "rewrite every branch",
    Strategy.DELETE_KEPT: "delete what the store kept",
    Strategy.LET_LAPSE: "let retention end",
    Strategy.CLEAR_MENTIONS: "clear in rows of others",
    Strategy.MASK_COLUMNS: "mask what is not held",
    Strategy.EXEMPT: "exempt",
    Strategy.BLOCKED: "blocked",
}


def number(value: int | None) -> str:
    """`12,345`, or a dash where it is not known."""
    return "–" if value is None else f"{value:,}"


def listed(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)


def money(value: float, currency: str) -> str:
    """`₹1,840`; below ten units with two decimals. Zero means that nothing used has a price in the estate file."""
    if value == 0:
        return "nothing priced"
    amount = f"{value:,.2f}" if 0 < abs(value) < 10 else f"{value:,.0f}"
    sign = _CURRENCY_SIGNS.get(currency)
    return f"{sign}{amount}" if sign else f"{amount} {currency}"


def size(value: int) -> str:
    """Bytes as `512 B`, `1.4 MB` (decimal units)."""
    amount = float(value)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError("unreachable")  # pragma: no cover


def utc(moment: datetime) -> datetime:
    """The moment in UTC; a naive one is taken as UTC."""
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)


def day(moment: datetime) -> str:
    """`29 Nov 2026`, without regard to the locale."""
    at = utc(moment)
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def short_day(moment: datetime) -> str:
    """`29 Nov`."""
    at = utc(moment)
    return f"{at.day} {_MONTHS[at.month - 1]}"


def minute(moment: datetime) -> str:
    """`29 Nov 2026 14:05 UTC`."""
    return f"{day(moment)} {utc(moment):%H:%M} UTC"


def clock(moment: datetime) -> str:
    """`14:05:09`."""
    return f"{utc(moment):%H:%M:%S}"


def span(length: timedelta) -> str:
    """A length of time in its two largest units: `1.4 s`, `3 min 12 s`, `5 h 20 min`, `8 days 2 h`."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for name, unit, lower_name, lower in (("min", 60, "s", 1), ("h", 3600, "min", 60), ("day", 86400, "h", 3600)):
        limit = {"min": 3600, "h": 86400, "day": math.inf}[name]
        if whole < limit:
            many, rest = divmod(whole, unit)
            label = name + ("s" if name == "day" and many != 1 else "")
            return f"{many} {label} {rest // lower} {lower_name}" if rest // lower else f"{many} {label}"
    raise AssertionError("unreachable")  # pragma: no cover


def about(length: timedelta) -> str:
    """An estimate, no more exact than it can be: `about 40 s`, `about 3 min`, `about 5 h 20 min`."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 59.5:
        return f"about {math.ceil(seconds)} s"
    return f"about {span(timedelta(minutes=round(seconds / 60)))}"


def slack(days: float) -> str:
    """Distance to the deadline. Rounded so that it never promises more: `22 days before the deadline`."""
    if days >= 1:
        return f"{counted(math.floor(days), 'day')} before the deadline"
    if days >= 0:
        return f"{counted(math.floor(days * 24), 'hour')} before the deadline"
    return f"{counted(math.ceil(-days), 'day')} after the deadline"


def short_name(table: str | None, name: str) -> str:
    """What people call the dataset: its table name, or the last two parts of its path."""
    if table:
        return table
    parts = [part for part in name.split("/") if part and not part.endswith(":")]
    return "/".join(parts[-2:]) or name


def copy_name(copy: Copy) -> str:
    """`short_name` of a copy; what lies in a bucket is called by its whole location (replicas differ only there)."""
    name = place_name(copy.table, copy.dataset.name, copy.location)
    return f"{name} ({copy.facts['ref_kind']} {copy.facts['ref']})" if "ref" in copy.facts else name


def place_name(table: str | None, name: str, location: str) -> str:
    """As `copy_name`, from the parts."""
    if table is None and "://" in location:
        return location.rstrip("/")
    return short_name(table, name)
