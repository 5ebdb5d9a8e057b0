"""Tables in S3: what reading every version there showed, in the gap's words. No table is erased there yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import Inventory, InventoryGap, RemotePlace
from pii_tracer.model.datasets import PLAIN
from pii_tracer.model.plan import Gap
from planners.copies.scan_evidence import RemoteEvidence
from planners.step_drafts import slug

_SHORT = "in bytes, short numeric keys (under ten digits) look like other numbers: rows with only such a key may remain"
_NO_LINEAGE = "a byte search cannot find rows of the person that have only other keys"
_SHOWN = 5


def remote_gap(gap: InventoryGap, place: RemotePlace, seen: RemoteEvidence | None) -> Gap:
    """The gap of a place in S3. Its id says what was seen, so that no waiver of a place without the person covers one
    with them.
    """
    if seen is None:
        state, reason, evidence, told = "unseen", gap.reason, gap.evidence, list[str]()
    else:
        state = "person" if seen.found else "unread" if _open(place, seen) else "digits" if seen.in_digits else "clean"
        told = [*seen.places, str(seen.named), *_rest(place, seen), *seen.digits, seen.undeclared or ""]
        reason = "; ".join([gap.reason, _holding(seen), *_rest(place, seen), *_to_declare(place, seen)])
        evidence = "; ".join(filter(None, (gap.evidence, _few(seen.unread, "; "))))
    name = slug(f"{place.location.bucket}-{place.location.key}")
    return Gap(
        id=f"gap-{gap.kind}-{state}-{name}",
        dataset=gap.dataset,
        kind=gap.kind,
        reason=reason,
        evidence=evidence,
        seen="; ".join([gap.reason, *told]),
    )


def has_no_bytes(place: RemotePlace, seen: RemoteEvidence | None, inventory: Inventory) -> bool:
    """Whether a place was listed and searched, and no object of its own has a byte, or was deleted: as Hadoop marks a
    folder, which it makes for each new table and database. Names, tags and metadata of the objects were searched.

    A table of bare files is empty then. One with a log or metadata of its own is not so simple. A root is no place of
    its own where all that has bytes in it is in tables and archives, which count for themselves. Where nothing lies at
    all, the place may be named wrong, and is told.
    """
    if seen is None or place.unlisted or _open(place, seen):
        return False
    if any(version.size or version.delete_marker for version in place.versions):
        return False
    if seen.holders or seen.named or seen.digits:
        return False
    here = place.location
    inside = (p for p in inventory.remote if p.location != here and here.holds(p.location) and len(p.versions))
    if place.tables:  # what is in the folder of another table was left out of this one
        return place.format in PLAIN and len(place.versions) > 0 and next(inside, None) is None
    archives = (o for o in inventory.objects if o.bucket == here.bucket and o.prefix.startswith(here.prefix))
    return any(inside) or any(len(archive.versions) for archive in archives)


def _open(place: RemotePlace, seen: RemoteEvidence) -> bool:
    """Whether something of the place's tables was not searched."""
    return bool(seen.unread or place.uploads or seen.beyond or place.doubt)


def _holding(seen: RemoteEvidence) -> str:
    named = f"the names of {_number(seen.named, 'object')} contain a value" if seen.named else ""
    if not seen.versions:
        return "; ".join(filter(None, ("the place contains no object", named)))
    versions = _number(seen.versions, "version")
    if seen.holders:
        kinds = ", ".join(f"{number} of {kind}" for kind, number in seen.holding.items())
        told = (
            f"{seen.holders} of {_number(seen.objects, 'object')} contain the person, in {sum(seen.holding.values())} "
            f"of {versions} ({kinds}), {seen.noncurrent} of them noncurrent: in {_few(seen.places)}"
        )
        return "; ".join(filter(None, (told, named)))
    read = seen.versions - seen.unread_versions
    told = f"{'all' if not seen.unread_versions else read} {'of ' * bool(seen.unread_versions)}{versions}"
    told = f"{told} of {_number(seen.objects, 'object')} were read, and contain no unmistakable value"
    return "; ".join(filter(None, (told, named)))


def _rest(place: RemotePlace, seen: RemoteEvidence) -> list[str]:
    told = []
    if seen.unread_versions:
        told.append(f"{_number(seen.unread_versions, 'version')} could not be read completely")
    if place.uploads:
        told.append(f"{_number(len(place.uploads), 'unfinished upload')} with bytes that nobody can read")
    if seen.beyond:
        told.append(
            f"{_number(seen.beyond, 'file')} referenced by metadata of this place are outside of it, and were not read"
        )
    if place.doubt:
        told.append(place.doubt)
    if seen.digits:
        alone = counted(seen.in_digits, "version contains", "versions contain")
        told.append(f"digits of a short key are in {_few(seen.digits)}; {alone} nothing else of the person")
    if seen.versions or told:  # where nothing lies, no row can remain
        told.append(_SHORT if seen.short else _NO_LINEAGE)
    return told


def _to_declare(place: RemotePlace, seen: RemoteEvidence) -> Iterator[str]:
    """What to write of a table that needs a name."""
    if seen.undeclared:
        yield (
            "if no other table reads the files of this table, write in the estate file, under `tables` of the "
            f"catalog `spark_catalog` of the type `declared`: {seen.undeclared} (`pii-tracer init --discover "
            f"{place.location}` writes such lines)"
        )


def _few(told: Sequence[str], between: str = ", ") -> str:
    more = [f"{len(told) - _SHOWN} more"] if len(told) > _SHOWN else []
    return between.join([*told[:_SHOWN], *more])


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
