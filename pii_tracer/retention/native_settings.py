"""How long a table's own settings keep old data, in days. Pure: properties and references in, settings out.

Delta: https://docs.delta.io/latest/table-properties.html. Iceberg: https://iceberg.apache.org/docs/latest/configuration/
and https://iceberg.apache.org/docs/latest/branching/. Hudi: https://hudi.apache.org/docs/cleaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import RefKind
from pii_tracer.model.identities import Format

DAY_MS = 86_400_000
MAIN = "main"

DELTA_FILES = "delta.deletedFileRetentionDuration"
DELTA_LOG = "delta.logRetentionDuration"
ICEBERG_AGE = "history.expire.max-snapshot-age-ms"
ICEBERG_MIN = "history.expire.min-snapshots-to-keep"
ICEBERG_REF_AGE = "history.expire.max-ref-age-ms"
ICEBERG_GC = "gc.enabled"
ICEBERG_TRIM = "write.metadata.delete-after-commit.enabled"
ICEBERG_VERSIONS = "write.metadata.previous-versions-max"
HUDI_POLICY = ("hoodie.clean.policy", "hoodie.cleaner.policy")
HUDI_HOURS = ("hoodie.clean.hours.retained", "hoodie.cleaner.hours.retained")
HUDI_BY_HOURS = "KEEP_LATEST_BY_HOURS"

_DELTA_DEFAULTS = {DELTA_FILES: 7.0, DELTA_LOG: 30.0}
_ICEBERG_AGE_DEFAULT = 5.0
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


@dataclass(frozen=True)
class RefRetention:
    """What one Iceberg reference keeps; ages in milliseconds, None where it has no setting of its own."""

    name: str
    kind: RefKind
    snapshot: int
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None


@dataclass(frozen=True)
class Kept:
    """One setting. value: as it stands in the table, None where the engine's default counts.

    days: how long it keeps old data, None for ever. stored: False where nothing in the table says how long.
    ref: the branch or tag it belongs to. history: it decides how far back main can be read.
    """

    setting: str
    value: str | None
    days: float | None
    note: str = ""
    stored: bool = True
    ref: str | None = None
    history: bool = False


def kept_by(fmt: Format, properties: Mapping[str, str], refs: Sequence[RefRetention] = ()) -> tuple[Kept, ...]:
    """The settings of a table that decide how long old data stays. Formats without history have none."""
    if fmt is DELTA:
        return tuple(_delta(properties))
    if fmt is ICEBERG:
        return tuple(_iceberg(properties, refs))
    if fmt is HUDI:
        return tuple(_hudi(properties))
    return ()


def interval_days(text: str) -> float | None:
    """Days of an interval as Delta writes it (`interval 1 week 2 days`); None when it is none that Delta accepts."""
    body = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE).strip()
    if not body or _PART.sub("", body).strip():
        return None
    return sum(int(number) * _UNIT_DAYS[unit.lower()] for number, unit in _PART.findall(body))


def _delta(properties: Mapping[str, str]) -> Iterator[Kept]:
    for setting, default in _DELTA_DEFAULTS.items():
        value = properties.get(setting)
        days = default if value is None else interval_days(value)
        yield Kept(setting, value, days, "" if days is not None else "the interval cannot be read", history=True)


def _iceberg(properties: Mapping[str, str], refs: Sequence[RefRetention]) -> Iterator[Kept]:
    if _flag(properties, ICEBERG_GC, True) is not True:
        yield Kept(ICEBERG_GC, properties.get(ICEBERG_GC), None, "expiry is refused")
    yield replace(_age(ICEBERG_AGE, properties.get(ICEBERG_AGE), _ICEBERG_AGE_DEFAULT), history=True)
    yield from _count(ICEBERG_MIN, properties.get(ICEBERG_MIN), None)
    if _flag(properties, ICEBERG_TRIM, False) is not True:
        yield Kept(ICEBERG_TRIM, properties.get(ICEBERG_TRIM), None, "old metadata files are never removed")
    else:
        count = properties.get(ICEBERG_VERSIONS, "100")
        yield Kept(ICEBERG_VERSIONS, properties.get(ICEBERG_VERSIONS), 0.0, f"{count} old metadata files stay")
    for ref in refs:
        yield from _ref(ref, properties)


def _ref(ref: RefRetention, properties: Mapping[str, str]) -> Iterator[Kept]:
    """Main lives for ever and only its snapshots expire; a branch or tag also keeps its own head."""
    label = f"{ref.kind.value} {ref.name}"
    if ref.name != MAIN:
        own = None if ref.max_ref_age_ms is None else str(ref.max_ref_age_ms)
        age = _age(f"{label}: max-ref-age-ms", own or properties.get(ICEBERG_REF_AGE), None)
        yield Kept(age.setting, own, age.days, f"keeps snapshot {ref.snapshot}", ref=ref.name)
    if ref.max_snapshot_age_ms is not None:
        days = ref.max_snapshot_age_ms / DAY_MS
        yield Kept(f"{label}: max-snapshot-age-ms", str(ref.max_snapshot_age_ms), days, ref=ref.name)
    if ref.min_snapshots_to_keep is not None:
        yield from _count(f"{label}: min-snapshots-to-keep", str(ref.min_snapshots_to_keep), ref.name)


def _age(setting: str, value: str | None, default: float | None) -> Kept:
    if value is None:
        return Kept(setting, None, default)
    number = value.strip()
    if not (number.isascii() and number.isdigit()):
        return Kept(setting, value, None, "the number cannot be read")
    # Iceberg's default for references is the largest long: for ever
    return Kept(setting, value, None if int(number) >= 2**63 - 1 else int(number) / DAY_MS)


def _count(setting: str, value: str | None, ref: str | None) -> Iterator[Kept]:
    """More than one snapshot kept by number is kept whatever its age."""
    if value is None:
        return
    if not (value.isascii() and value.isdigit()):
        yield Kept(setting, value, None, "the number cannot be read", ref=ref)
    elif int(value) > 1:
        yield Kept(setting, value, None, f"{value} snapshots stay whatever their age", ref=ref)


def _flag(properties: Mapping[str, str], name: str, default: bool) -> bool | None:
    value = properties.get(name)
    if value is None:
        return default
    return {"true": True, "false": False}.get(value.strip().lower())


def _hudi(properties: Mapping[str, str]) -> Iterator[Kept]:
    """Hudi's cleaner is set up by each writer; only what is stored in `hoodie.properties` can be held against it."""
    policy = _first(properties, HUDI_POLICY)
    if policy is None:
        yield Kept(HUDI_POLICY[0], None, None, "not stored with the table: each writer brings its own", stored=False)
    elif policy[1].upper() == HUDI_BY_HOURS:
        hours = _first(properties, HUDI_HOURS)
        if hours is None:
            yield Kept(HUDI_HOURS[0], None, 1.0)
        elif hours[1].isascii() and hours[1].isdigit():
            yield Kept(hours[0], hours[1], int(hours[1]) / 24, history=True)
        else:
            yield Kept(hours[0], hours[1], None, "the number cannot be read")
    else:
        yield Kept(policy[0], policy[1], None, "keeps by number of commits or versions, whatever their age")


def _first(properties: Mapping[str, str], names: Sequence[str]) -> tuple[str, str] | None:
    return next(((name, properties[name]) for name in names if name in properties), None)
