"""Places of object stores: which of them steps erase, and the gaps of the others, with what reading them showed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import Inventory, InventoryGap, TableState
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.version_types import VersionState
from pii_tracer.model.datasets import PLAIN
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import is_object_place
from pii_tracer.model.plan import Gap
from planners.copies.scan_evidence import StoredEvidence, StoredRead
from planners.stores.place_gaps_and_copies import as_shown, place_gap

_SHOWN = 5


def in_object_place(state: TableState) -> bool:
    """Whether a table lies in a place of `object_stores`."""
    return is_object_place(state.location)


def by_objects(state: TableState) -> bool:
    """Whether it is a bare folder there: each object is written again by itself."""
    return state.format in PLAIN and in_object_place(state)


class Untreated(NamedTuple):
    """Why no step erases the person in a place."""

    why: str
    kind: GapKind = GapKind.OBJECT_PLACE


def rewritten(seen: StoredEvidence) -> tuple[StoredRead, ...]:
    """Live versions whose rows a step looks at."""
    return tuple(r for r in seen.read if r.version.state is VersionState.LIVE and (r.data or r.holds))


def old(seen: StoredEvidence) -> tuple[StoredRead, ...]:
    """Noncurrent versions that hold the person."""
    return tuple(r for r in seen.read if r.version.state is VersionState.NONCURRENT and r.holds)


def of_deleted(seen: StoredEvidence) -> tuple[StoredRead, ...]:
    """Those of `old` whose object was deleted: what else is in them lies nowhere else."""
    live = {r.version.key for r in seen.read if r.version.state is VersionState.LIVE}
    return tuple(r for r in old(seen) if r.version.key not in live)


def untreated(place: ObjectPlace, seen: StoredEvidence | None) -> Untreated | None:
    """Why no step erases the person in a place; None where steps do, or nobody is in it."""
    if seen is None:
        return Untreated("the place was not searched")
    if seen.telling:
        return Untreated(
            "object keys contain a value of the person, and a plan would print them: rename or delete these objects"
        )
    if seen.beside and not place.table:
        return Untreated(
            f"a value of the person is in the metadata of {counted(seen.beside, 'version')}, and a rewrite keeps "
            "metadata: remove the value from the metadata"
        )
    old_in_digits = seen.old_in_digits and not place.table  # all that is old of a table goes
    if seen.unread or old_in_digits or (seen.in_digits and not seen.strong and seen.state is None):
        return Untreated("its contents are not known for certain")
    if not (seen.strong or seen.in_digits or seen.old_in_digits or seen.unseen):
        return None
    if place.table and seen.state is None:
        return Untreated("")  # what stands against it is told by its gap
    if place.read_by:
        return Untreated(f"tables in other places may read its files: {', '.join(place.read_by[:_SHOWN])}")
    if seen.held:
        return Untreated(
            f"the store rejects changes to objects with the person: {', '.join(seen.held)}; plan again after the "
            "locks end",
            GapKind.OBJECT_HELD,
        )
    if seen.lost:
        return Untreated(
            f"a rewrite would lose properties of objects with the person: {', '.join(seen.lost)}", GapKind.OBJECT_HELD
        )
    return None if place.table else _stuck(place, seen)


def _stuck(place: ObjectPlace, seen: StoredEvidence) -> Untreated | None:
    if seen.state is None and any(r.holds for r in rewritten(seen)):
        return Untreated(f"no step rewrites its objects: {seen.stuck}")
    if of_deleted(seen) and not place.agreed:
        return Untreated(
            f"deleted objects have {counted(len(of_deleted(seen)), 'old version')} with the person. A deletion would "
            "also remove other people's rows, which may exist nowhere else: when the owner agrees, set "
            "`object_stores[].places[].deletable`"
        )
    return None


def treated(inventory: Inventory, seen: Mapping[str, StoredEvidence]) -> Iterator[tuple[ObjectPlace, StoredEvidence]]:
    """The places that steps erase, or in which nobody is."""
    for place in inventory.object_places:
        found = seen.get(str(place.location))
        if found is not None and untreated(place, found) is None:
            yield place, found


def stays_soft_deleted(place: ObjectPlace) -> bool:
    """Whether the store keeps deleted bytes of the place, which nobody can read."""
    return any(place.of_state(VersionState.SOFT_DELETED))


def folder_states(inventory: Inventory, seen: Mapping[str, StoredEvidence]) -> tuple[TableState, ...]:
    """Bare folders whose objects steps can write again, as tables. One that is only waited for is none."""
    return tuple(
        found.state
        for place, found in treated(inventory, seen)
        if not place.table
        and found.state is not None
        and (found.strong or found.in_digits or not stays_soft_deleted(place))
    )


def object_place_gaps(
    gaps: Iterable[InventoryGap], shown: Mapping[str, str], inventory: Inventory, seen: Mapping[str, StoredEvidence]
) -> list[Gap]:
    """The gaps of places that no step erases. shown: by place, how it may be shown."""
    places = {str(place.location): place for place in inventory.object_places}
    found = []
    for gap in gaps:
        why = untreated(places[gap.evidence], seen.get(gap.evidence))
        if why is not None:
            reason = "; ".join(filter(None, (gap.reason, why.why)))
            told = as_shown(gap, shown).model_copy(update={"kind": why.kind, "reason": reason})
            found.append(_gap(told, seen.get(gap.evidence)))
    return found


def _gap(gap: InventoryGap, seen: StoredEvidence | None) -> Gap:
    if seen is None:
        return place_gap(gap, None, "unseen", ())
    digits = seen.in_digits or seen.old_in_digits
    state = "person" if seen.holders else "unread" if seen.unread else "digits" if digits else "clean"
    return place_gap(gap, seen, state, _told(seen))


def _told(seen: StoredEvidence) -> list[str]:
    told = [f"the person is in {seen.holders:,} of {counted(seen.files, 'version')}: in {', '.join(seen.places)}"]
    if not seen.holders:
        told = [f"of {counted(seen.files, 'version')}, the readable ones contain no unmistakable value"]
    if seen.unread:
        told.append(f"{len(seen.unread):,} could not be read completely")
    if seen.in_digits or seen.old_in_digits:
        told.append(
            f"digits of a short key, but no other value of the person, in {seen.in_digits + seen.old_in_digits:,}"
        )
    return told
