"""What a gap shows, as a digest, and the waivers that hold for it: a waiver is for what its author saw, and no more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.errors import PlanError
from pii_tracer.model.gap_kinds import IN_STORES, OF_PLACES, GapKind
from pii_tracer.model.plan import Gap
from pii_tracer.model.waivers import MarkKey, Waiver
from planners.copies.scan_evidence import NO_HASHES, Evidence, FileHashes, HdfsEvidence, RemoteEvidence, StoredEvidence
from planners.gaps.table_descriptions import catalog_texts
from planners.locate.subject_survey import World

_STAY = frozenset({GapKind.UNEXPECTED_COPY, GapKind.STREAMING_STATE, *IN_STORES})
"""Kinds about a place that is no copy and holds the persons: a waiver says that these files may stay."""
_READ = frozenset({GapKind.UNREADABLE, GapKind.UNKNOWN_FILE, GapKind.NOT_SCANNED, *_STAY})
"""Kinds about files that could not be read, or that hold the persons: a waiver is for their bytes."""


def accepted(
    gap: Gap,
    world: World,
    persons: Collection[str],
    waivers: Mapping[str, Waiver],
    as_of: datetime,
    keyed: MarkKey,
) -> Gap:
    """The gap with the digest of what it shows, and with its waiver where one is given for exactly that.

    persons: references of those whom the gap is about. keyed: makes the digest, and marks of files.

    Raises:
        PlanError: a waiver of what is left out.
    """
    hashes, place = _hashes(gap, world), gap.dataset or gap.evidence

    def marks(digests: Collection[str]) -> tuple[str, ...]:
        return tuple(sorted(keyed.of_file(place, digest) for digest in digests))

    holding = catalog_texts(gap, world) or (hashes.holding if gap.kind in _STAY else ())
    told = {"listed": keyed.of_file(place, gap.listed)} if gap.listed else {}
    shown = gap.model_copy(update={"files": marks(holding), "unread": marks(hashes.unread), **told})
    shown = shown.model_copy(update={"seen": keyed.of_gap(_facts(shown, world, persons))})
    waiver = waivers.get(gap.id)
    if waiver and gap.kind == GapKind.LEFT_OUT:
        raise PlanError(
            f"{gap.id} cannot be waived: the plan would not erase the left-out copies",
            where="the waivers file",
            todo="remove this waiver, or plan without `--only`",
        )
    holds = waiver is not None and waiver.until > as_of and waiver.of == shown.seen
    return shown.model_copy(update={"waiver": waiver}) if holds else shown


def _facts(gap: Gap, world: World, persons: Collection[str]) -> str:
    """All that a waiver of the gap is for, in one text. `gap.seen`: what a planner says that its gap shows, where that
    is not its reason: whole lists, and no totals of what holds nobody."""
    seen, stored = _evidence(gap, world), _stored(gap, world) if gap.kind in IN_STORES else None
    unread = stored.unread if stored else seen.unread if seen else ()
    facts = {
        "kind": str(gap.kind),
        "dataset": str(gap.dataset),
        "reason": gap.seen or gap.reason,
        "evidence": gap.evidence,
        "files": gap.files,
        "unread": [*sorted(unread), *gap.unread],
    }
    if gap.kind in IN_STORES:
        if stored and _holds(stored):
            facts |= {"persons": sorted(set(persons))}
    elif gap.kind == GapKind.UNREADABLE and seen and gap.dataset and not world.location_of(gap.dataset):
        if seen.found or seen.weak:  # a folder that is no table: no step is for what it holds
            held, short = sorted(seen.hashes.holding), sorted(map(repr, seen.short))
            facts |= {"persons": sorted(set(persons)), "places": _places(seen), "holding": held, "short": short}
    elif gap.kind not in OF_PLACES:
        facts |= {"persons": sorted(set(persons)), "places": _places(seen) if seen else ()}
    return canonical(facts).decode()


def _holds(seen: HdfsEvidence | StoredEvidence | RemoteEvidence) -> bool:
    """Whether anything of the persons was seen, or only rows could show it."""
    if seen.holders or seen.in_digits:
        return True
    if isinstance(seen, RemoteEvidence):
        return bool(seen.named or seen.digits)
    old = seen.old_in_digits or seen.beside if isinstance(seen, StoredEvidence) else 0
    return bool(seen.telling or seen.unseen or old)


def _places(seen: Evidence) -> list[str]:
    """Columns, and kinds of place, that have values of the persons, whatever the files are called."""
    rows = {repr((one.key_set, one.column, one.of_path, one.weak)) for one in seen.places}
    kinds = {repr((one.key_set, one.column, one.where)) for one in seen.digits}
    return sorted({*rows, *kinds, *map(repr, seen.contradicted), *seen.strong})


def _hashes(gap: Gap, world: World) -> FileHashes:
    """Of the place that a gap shows. A gap of another kind about the same place waives none of its files."""
    if gap.kind in IN_STORES:
        seen = _stored(gap, world)
        return seen.hashes if seen else NO_HASHES
    here = _evidence(gap, world) if gap.kind in _READ else None
    return here.hashes if here else NO_HASHES


def _stored(gap: Gap, world: World) -> HdfsEvidence | StoredEvidence | RemoteEvidence | None:
    """What the search of a place in a store showed."""
    if gap.dataset is None:
        return None
    return world.in_stores.get(gap.dataset)


def _evidence(gap: Gap, world: World) -> Evidence | None:
    return world.evidence.get(world.searched_at(gap) or "")
