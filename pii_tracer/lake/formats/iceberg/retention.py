"""How long an Iceberg table's own settings keep old data, in days. Pure: properties and references in, settings out.

https://iceberg.apache.org/docs/latest/configuration/ and https://iceberg.apache.org/docs/latest/branching/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.formats.retention_terms import DAY_MS, MAIN, Kept, RefRetention
from pii_tracer.lake.inventory import RefKind
from pii_tracer.lake.stores.any_place import AnyPlace

AGE = "history.expire.max-snapshot-age-ms"
LEAST = "history.expire.min-snapshots-to-keep"
REF_AGE = "history.expire.max-ref-age-ms"
_GC = "gc.enabled"
_TRIM = "write.metadata.delete-after-commit.enabled"
_VERSIONS = "write.metadata.previous-versions-max"
_AGE_DEFAULT = 5.0


def kept_by(properties: Mapping[str, str], refs: Sequence[RefRetention]) -> Iterator[Kept]:
    """The settings of a table and of its references that decide how long old data stays."""
    if _flag(properties, _GC, True) is not True:
        yield Kept(_GC, properties.get(_GC), None, "expiry is disabled")
    yield replace(_age(AGE, properties.get(AGE), _AGE_DEFAULT), history=True)
    yield from _count(LEAST, properties.get(LEAST), None)
    if _flag(properties, _TRIM, False) is not True:
        yield Kept(_TRIM, properties.get(_TRIM), None, "old metadata files are never removed")
    else:
        count = properties.get(_VERSIONS, "100")
        yield Kept(_VERSIONS, properties.get(_VERSIONS), 0.0, f"{count} old metadata files are retained")
    for ref in refs:
        yield from _ref(ref, properties)


def value_for(setting: str, days: int) -> str | None:
    """What a setting has to be to keep old data for some days; None where that is somebody's decision."""
    name = setting.rsplit(": ", 1)[-1]
    if name in (AGE, "max-ref-age-ms", "max-snapshot-age-ms"):
        # Iceberg refuses an age of nothing
        return str(max(days * DAY_MS, 1))
    if name in (LEAST, "min-snapshots-to-keep"):
        return "1"
    return "true" if name == _TRIM else None


def references(location: AnyPlace, metadata: str | None = None) -> tuple[RefRetention, ...]:
    """References of a table with their own retention, sorted by name. metadata: as its catalog points at.

    Raises:
        EstateError: the metadata cannot be read.
    """
    return tuple(
        RefRetention(
            name=name,
            kind=RefKind.TAG if ref.snapshot_ref_type.value == "tag" else RefKind.BRANCH,
            snapshot=ref.snapshot_id,
            max_ref_age_ms=ref.max_ref_age_ms,
            max_snapshot_age_ms=ref.max_snapshot_age_ms,
            min_snapshots_to_keep=ref.min_snapshots_to_keep,
        )
        for name, ref in sorted(load_iceberg(location, metadata).metadata.refs.items())
    )


def _ref(ref: RefRetention, properties: Mapping[str, str]) -> Iterator[Kept]:
    """Main lives for ever and only its snapshots expire; a branch or tag also keeps its own head."""
    label = f"{ref.kind.value} {ref.name}"
    if ref.name != MAIN:
        own = None if ref.max_ref_age_ms is None else str(ref.max_ref_age_ms)
        age = _age(f"{label}: max-ref-age-ms", own or properties.get(REF_AGE), None)
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
        yield Kept(setting, value, None, f"{value} snapshots are retained, of any age", ref=ref)


def _flag(properties: Mapping[str, str], name: str, default: bool) -> bool | None:
    value = properties.get(name)
    if value is None:
        return default
    return {"true": True, "false": False}.get(value.strip().lower())
