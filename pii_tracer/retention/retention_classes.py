"""Which class a table belongs to, and what holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import RetentionClasses
from pii_tracer.model.legal_holds import Hold
from pii_tracer.model.locations import names_place

CLASS_PROPERTY = "pii-tracer.retention-class"
"""The table property that names a table's class at its creation."""

PII = "pii"
DERIVED = "derived"
_SESSION = "spark_catalog."
_NEVER = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class TableClass:
    """The class that a table is held to.

    explicit: named in the estate file or in the table's properties; else the default for what lineage knows.
    floor: days below which nothing may be cut. wrong: why the class that was named cannot stand.
    """

    name: str
    days: int
    explicit: bool
    floor: int = 0
    wrong: str | None = None


def class_of(
    rules: RetentionClasses, names: Sequence[str], properties: Mapping[str, str], pii: Sequence[str]
) -> TableClass:
    """The class of a table known by some names. pii: its columns that lineage knows to hold personal data.

    Two sources that contradict each other, and `derived` on a table with personal data, are wrong; the stricter counts.
    """
    days = rules.days_of_classes()
    floor = max((d for name, d in rules.floors.items() if _among(name, names)), default=0)
    declared = next((c for name, c in rules.tables.items() if _among(name, names)), None)
    stored = properties.get(CLASS_PROPERTY)
    default = PII if pii else DERIVED
    wrong = None
    if stored is not None and stored not in days:
        wrong, stored = f"the table's own property names the class `{stored}`, which does not exist", None
    elif stored and declared and stored != declared:
        wrong = f"the estate file gives the class `{declared}`, but the table's own property gives `{stored}`"
    named = [name for name in (declared, stored) if name]
    name = min(named, key=lambda n: days[n]) if named else default
    if pii and name == DERIVED:
        wrong = (
            wrong
            or f"`{DERIVED}` is for tables without personal data, but lineage shows "
            f"personal data in {', '.join(pii[:5])}"
        )
        name = PII
    if days[name] < floor and not wrong:
        wrong = f"the class allows at most {counted(days[name], 'day')}, but `floors` requires at least {floor}"
    return TableClass(name, max(days[name], floor), bool(named), floor, wrong)


def partitions_of(rules: RetentionClasses, names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """The folders of a table's partitions that have a class of their own, with its days."""
    days = rules.days_of_classes()
    of_table = [kept for name, kept in rules.partitions.items() if _among(name, names)]
    return tuple(sorted((folder, days[name]) for kept in of_table for folder, name in kept.items()))


def hold_on(holds: Sequence[Hold], names: Sequence[str], now: datetime) -> str | None:
    """Why a table's history is left as it is: the hold that lasts longest, also one of single columns, or to come."""
    lasting = [h for h in _lasting(holds, now) if any(_held_by(d, names) for d in h.datasets)]
    hold = max(lasting, key=lambda h: h.ends or _NEVER, default=None)
    if hold is None:
        return None
    return f"hold {hold.id} ({hold.citation}) " + (f"until {hold.ends.date()}" if hold.ends else "without an end")


def unmatched_holds(
    holds: Sequence[Hold], known: Sequence[Sequence[str]], now: datetime
) -> tuple[tuple[str, str], ...]:
    """(hold, dataset) of which nothing is known by that name. known: the names of each thing of the estate."""
    named = [(h.id, d) for h in _lasting(holds, now) for d in h.datasets]
    return tuple((hold, name) for hold, name in named if not any(_held_by(name, names) for names in known))


def unknown_names(rules: RetentionClasses, known: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Tables that the rules name and nobody found."""
    named = [*rules.tables, *rules.floors, *rules.partitions]
    return tuple(sorted({n for n in named if not any(_among(n, names) for names in known)}))


def _lasting(holds: Sequence[Hold], now: datetime) -> list[Hold]:
    return [h for h in holds if h.ends is None or h.ends > now]


def _held_by(name: str, names: Sequence[str]) -> bool:
    """Whether a hold on `name` keeps what goes by `names`: it, with or without the session's catalog, or a folder
    around it."""
    return _among(name, names) or any(names_place(name, n, n, *_folders(n)) for n in names)


def _folders(place: str) -> Iterator[str]:
    while "/" in place:
        place = place.rstrip("/").rpartition("/")[0]
        yield place


def _among(name: str, names: Sequence[str]) -> bool:
    plain = name.removeprefix(_SESSION).rstrip("/").lower()
    return any(plain == other.removeprefix(_SESSION).rstrip("/").lower() for other in names)
