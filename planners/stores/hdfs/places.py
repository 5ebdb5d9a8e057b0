"""Places in HDFS: which of them steps erase, and the gaps of the others, with what reading their files showed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import Inventory, InventoryGap, TableState
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.model.plan import Gap
from planners.copies.scan_evidence import HdfsEvidence
from planners.stores.place_gaps_and_copies import as_shown, place_gap


def untreated(place: HdfsPlace, seen: HdfsEvidence | None, named: frozenset[str] = frozenset()) -> str | None:
    """Why no step erases the person in a place; None where steps do, or nobody is in it.

    named: files that metadata names (`named_for`).
    """
    if seen is None:
        return "the place was not searched"
    if seen.telling:
        return (
            "names of files or folders contain a value of the person, and a plan would print them: rename or delete "
            "them"
        )
    if place.kind is HdfsKind.SNAPSHOT and seen.strong:
        return None if place.agreed else "when the owner agrees, add the place under `hdfs[].deletable`"
    if seen.unread or seen.beyond or (seen.in_digits and not seen.strong and seen.state is None):
        return "its contents are not known for certain"
    if not (seen.strong or seen.in_digits or seen.unseen):
        return None
    if place.encrypted or place.striped:
        return "no step rewrites or deletes encrypted or erasure-coded files"
    if place.kind is HdfsKind.FOLDER:
        return _stuck(place, seen, named)
    if place.kind is HdfsKind.TEMPORARY and not place.agreed:
        return "when nothing writes there, and the owner agrees, add the place under `hdfs[].deletable`"
    if place.kind is HdfsKind.TABLE:
        return _unsafe(place, seen, named)
    return None


def _unsafe(place: HdfsPlace, seen: HdfsEvidence, named: frozenset[str]) -> str | None:
    if seen.state is None:
        return ""  # what stands against it is told by its gap
    if seen.crowded:
        return seen.crowded
    if any(file.path in named for file in place.files):
        return (
            "the metadata of a different table references files in this place, and the erasure would remove these files"
        )
    return None


def named_for(place: HdfsPlace, inventory: Inventory, seen: Mapping[str, HdfsEvidence]) -> frozenset[str]:
    """Files that metadata anywhere in HDFS names; of a table, that of others which are in use."""
    if place.kind is not HdfsKind.TABLE:
        return frozenset[str]().union(*(one.named for one in seen.values()))
    live = (p for p in inventory.hdfs if p.kind in (HdfsKind.TABLE, HdfsKind.FOLDER) and p.location != place.location)
    return frozenset[str]().union(*(seen[str(p.location)].named for p in live if str(p.location) in seen))


def _stuck(place: HdfsPlace, seen: HdfsEvidence, named: frozenset[str]) -> str | None:
    if seen.state is None:
        return f"no step rewrites its files: {seen.stuck}"
    if seen.crowded:
        return seen.crowded
    if any(file.path in named for file in place.files):
        return "the metadata of a table references files in this place, and a rewrite would break that table"
    return None


def treated(inventory: Inventory, seen: Mapping[str, HdfsEvidence]) -> Iterator[tuple[HdfsPlace, HdfsEvidence]]:
    """The places that steps erase, or in which nobody is."""
    for place in inventory.hdfs:
        found = seen.get(str(place.location))
        if found is not None and untreated(place, found, named_for(place, inventory, seen)) is None:
            yield place, found


def folder_states(inventory: Inventory, seen: Mapping[str, HdfsEvidence]) -> tuple[TableState, ...]:
    """Bare folders whose files steps can write again, as tables."""
    folders = (found for place, found in treated(inventory, seen) if place.kind is HdfsKind.FOLDER)
    return tuple(found.state for found in folders if found.state is not None)


def hdfs_gaps(
    gaps: Iterable[InventoryGap], shown: Mapping[str, str], inventory: Inventory, seen: Mapping[str, HdfsEvidence]
) -> list[Gap]:
    """The gaps of places that no step erases. shown: by place, how it may be shown."""
    places = {str(place.location): place for place in inventory.hdfs}
    done = {str(place.location) for place, _ in treated(inventory, seen)}
    found = []
    for gap in gaps:
        if gap.evidence in done:
            continue
        place = places[gap.evidence]
        why = untreated(place, seen.get(gap.evidence), named_for(place, inventory, seen))
        told = as_shown(gap, shown).model_copy(update={"reason": "; ".join(filter(None, (gap.reason, why)))})
        found.append(hdfs_gap(told, seen.get(gap.evidence)))
    return found


def hdfs_gap(gap: InventoryGap, seen: HdfsEvidence | None) -> Gap:
    """The gap of a place, with what was seen there."""
    if seen is None:
        return place_gap(gap, None, "unseen", ())
    left = seen.unread or seen.beyond
    state = "person" if seen.holders else "unread" if left else "digits" if seen.in_digits else "clean"
    return place_gap(gap, seen, state, _told(seen))


def _told(seen: HdfsEvidence) -> list[str]:
    told = [f"the person is in {seen.holders:,} of {counted(seen.files, 'file')}: in {', '.join(seen.places)}"]
    if not seen.holders:
        told = [f"of {counted(seen.files, 'file')}, the readable ones contain no unmistakable value"]
    if seen.unread:
        told.append(f"{counted(len(seen.unread), 'file')} could not be read completely")
    if seen.beyond:
        told.append(
            f"metadata of this place references {counted(seen.beyond, 'file')} outside of the estate's places in HDFS"
        )
    if seen.in_digits:
        told.append(
            f"{counted(seen.in_digits, 'file contains', 'files contain')} digits of a short key, but no other value "
            "of the person"
        )
    short = "in bytes, short numeric keys look like other numbers" if seen.short else None
    told.append(short or "a byte search cannot find rows of the person that have only other keys")
    return told
