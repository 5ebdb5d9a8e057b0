"""Places of object stores as copies: bare folders, and those of which only old versions hold the person."""

from __future__ import annotations

from dataclasses import replace

from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.model.datasets import BY_ROWS, Carries, Strategy
from pii_tracer.model.hive_text.layout import text_properties
from pii_tracer.model.plan import Examined, Gap
from planners.copies.partition_values import values_in_catalog
from planners.copies.scan_evidence import StoredEvidence
from planners.locate.subject_survey import Survey, World
from planners.step_drafts import NO_ROWS, CopyDraft, StoredDraft
from planners.stores.object_places.places import of_deleted, old, rewritten, stays_soft_deleted, treated, untreated
from planners.stores.place_gaps_and_copies import BY_KEY, Kept, kept_copy, remade_by_nobody


def stored_copy(item: CopyDraft, world: World) -> CopyDraft:
    """A table, or a bare folder with the versions that steps treat; where no row can be deleted, as it is.

    A table that no step may touch is blocked (its gap says why).
    """
    place = next(p for p in world.inventory.object_places if str(p.location) == item.copy.location)
    if place.table:
        draft = StoredDraft(place, (), (), False)
        if untreated(place, world.stored[item.copy.location]) is None:
            return replace(item, stored=draft)
        blocked = {"strategy": Strategy.BLOCKED, **NO_ROWS}
        return replace(item, copy=item.copy.model_copy(update=blocked), stored=draft)
    if item.copy.strategy not in BY_ROWS or item.copy.mentions:
        return item
    return replace(item, stored=_draft(place, world.stored[item.copy.location]))


def kept_versions(found: Survey, world: World) -> Kept:
    """Places whose live objects are free of the person and whose old versions are not, or cannot be read any more; and
    places in which nobody is.
    """
    items, examined, gaps = list[CopyDraft](), list[Examined](), list[Gap]()
    for place, seen in treated(world.inventory, world.stored):
        carriage = found.carriages.get(place.location.dataset)
        if seen.state is None and not seen.strong and carriage is not None and carriage.carries not in BY_KEY:
            gaps.append(remade_by_nobody(place.location, "an object store", carriage.reason))
        waited = not (seen.strong or seen.in_digits or seen.unseen) and stays_soft_deleted(place)
        if seen.state is not None and not waited:
            continue  # tables and bare folders are recognised as those of this machine
        if seen.strong & found.key_sets.keys() or waited:
            items.append(_kept(place, seen))
        elif unprovable := values_in_catalog(found, world, str(place.location), place.location.dataset):
            gaps += unprovable
        elif not seen.strong:
            reason = f"the person was not found in {counted(seen.files, 'version')}, each decoded completely"
            examined.append(Examined(dataset=place.location.dataset, table=None, carries=Carries.NONE, reason=reason))
    return Kept(tuple(items), tuple(examined), tuple(gaps))


def _draft(place: ObjectPlace, seen: StoredEvidence) -> StoredDraft:
    return StoredDraft(place, rewritten(seen) if seen.state else (), old(seen), bool(of_deleted(seen)))


def _kept(place: ObjectPlace, seen: StoredEvidence) -> CopyDraft:
    strategy = Strategy.DELETE_KEPT
    reason = f"old versions of objects contain the person: {seen.holders:,} of {seen.files:,}"
    if not seen.strong:
        strategy = Strategy.LET_LAPSE
        reason = "the store retains deleted objects for a time, and nobody can read whose rows they contain"
    elif place.agreed:
        reason = f"{reason}; {place.agreed}"
    names, texts = (v.key for v in place.versions), text_properties(place.text)
    copy = kept_copy(place.location, "c-objects", strategy, reason, seen, names, texts)
    stored = _draft(place, seen) if seen.strong else StoredDraft(place, (), (), False)
    return CopyDraft(copy=copy, stored=stored)
