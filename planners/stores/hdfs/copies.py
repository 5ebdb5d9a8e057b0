"""Places in HDFS as copies: tables, bare folders, and what HDFS kept of deleted files. Others stay gaps (`places`)."""

from __future__ import annotations

from dataclasses import replace

from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.model.datasets import BY_ROWS, Carries, Strategy
from pii_tracer.model.hive_text.layout import kept_properties
from pii_tracer.model.plan import Examined, Gap
from planners.copies.partition_values import values_in_catalog
from planners.copies.scan_evidence import HdfsEvidence
from planners.locate.subject_survey import Survey, World
from planners.step_drafts import NO_ROWS, CopyDraft
from planners.stores.hdfs.places import named_for, treated, untreated
from planners.stores.place_gaps_and_copies import BY_KEY, Kept, kept_copy, remade_by_nobody

_WHAT = {
    HdfsKind.SNAPSHOT: "a snapshot retains files that contain the person",
    HdfsKind.TRASH: "the trash has files that contain the person",
    HdfsKind.TEMPORARY: "a job left temporary files that contain the person",
}


def copy_there(item: CopyDraft, world: World) -> CopyDraft:
    """A table or bare folder in HDFS, with the place that it is.

    A table that no step may touch has none (its gap says why). Of a folder the files that a step writes again are told;
    one in which no row can be deleted stays as it is.
    """
    place = next(p for p in world.inventory.hdfs if str(p.location) == item.copy.location)
    if place.kind is HdfsKind.TABLE:
        seen = world.hdfs[item.copy.location]
        if untreated(place, seen, named_for(place, world.inventory, world.hdfs)) is None:
            return replace(item, hdfs=place)
        blocked = {"strategy": Strategy.BLOCKED, **NO_ROWS}
        return replace(item, copy=item.copy.model_copy(update=blocked), hdfs=place)
    if item.copy.strategy not in BY_ROWS or item.copy.mentions:
        return item
    return replace(item, hdfs=place, reads=world.hdfs[item.copy.location].touched)


def kept_copies(found: Survey, world: World) -> Kept:
    """Snapshots, trash and what jobs left, with the person in them; and places in which nobody is."""
    items, examined, gaps = list[CopyDraft](), list[Examined](), list[Gap]()
    for place, seen in treated(world.inventory, world.hdfs):
        if seen.state is not None:
            continue  # tables and bare folders are recognised as those of this machine
        if seen.strong & found.key_sets.keys():
            items.append(_kept(place, seen))
        elif unprovable := values_in_catalog(found, world, str(place.location), place.location.dataset):
            gaps += unprovable
        elif not seen.strong:
            carriage = found.carriages.get(place.location.dataset)
            if carriage is not None and carriage.carries not in BY_KEY:
                gaps.append(remade_by_nobody(place.location, "HDFS", carriage.reason))
            reason = f"the person was not found in {counted(seen.files, 'file')}, each decoded completely"
            told = Examined(dataset=place.location.dataset, table=None, carries=Carries.NONE, reason=reason)
            examined.append(told)
    return Kept(tuple(items), tuple(examined), tuple(gaps))


def _kept(place: HdfsPlace, seen: HdfsEvidence) -> CopyDraft:
    agreed = f"; {place.agreed}" if place.agreed else ""
    reason = f"{_WHAT[place.kind]}: {seen.holders:,} of {seen.files:,}{agreed}"
    names, texts = (file.path for file in place.files), kept_properties(place.texts)
    copy = kept_copy(place.location, "c-hdfs", Strategy.DELETE_KEPT, reason, seen, names, texts)
    return CopyDraft(copy=copy, hdfs=place, reads=seen.touched)
