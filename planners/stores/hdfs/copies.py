"""Places in HDFS as copies: bare folders, and what HDFS kept of deleted files. The others stay gaps (`places`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pii_tracer.lake.formats.plain_files.rewritten_files import ENDINGS
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.model.datasets import BY_ROWS, Carries, CopyKind, Format, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Copy, Examined, Found, Gap
from planners.copies.scan_evidence import HdfsEvidence
from planners.locate.subject_survey import Survey, World
from planners.step_drafts import CopyDraft, slug
from planners.stores.hdfs.places import treated

_WHAT = {
    HdfsKind.SNAPSHOT: "a snapshot keeps files that hold the person",
    HdfsKind.TRASH: "files that hold the person lie in the trash",
    HdfsKind.TEMPORARY: "a job left files that hold the person",
}
_BY_KEY = frozenset(
    {Carries.NONE, Carries.KEY, Carries.COMPUTED_KEY, Carries.BRIDGE, Carries.IDENTIFIERS},
)


@dataclass(frozen=True)
class Kept:
    """What HDFS kept: copies, datasets in which nobody is, and gaps."""

    items: tuple[CopyDraft, ...]
    examined: tuple[Examined, ...]
    gaps: tuple[Gap, ...]


def folder_copy(item: CopyDraft, world: World) -> CopyDraft:
    """A bare folder in HDFS with the files that a step writes again; where no row can be deleted, as it is."""
    if item.copy.strategy not in BY_ROWS or item.copy.mentions:
        return item
    place = next(p for p in world.inventory.hdfs if str(p.location) == item.copy.location)
    return replace(item, hdfs=place, reads=world.hdfs[item.copy.location].touched)


def kept_copies(found: Survey, world: World) -> Kept:
    """Snapshots, trash and what jobs left, with the person in them; and places in which nobody is."""
    items, examined, gaps = list[CopyDraft](), list[Examined](), list[Gap]()
    for place, seen in treated(world.inventory, world.hdfs):
        if seen.state is not None:
            continue  # a bare folder is recognised as tables are
        if seen.strong & found.key_sets.keys():
            items.append(_kept(place, seen))
        elif not seen.strong:
            carriage = found.carriages.get(place.location.dataset)
            if carriage is not None and carriage.carries not in _BY_KEY:
                gaps.append(_no_way(place, carriage.reason))
            reason = f"all {seen.files} files were decoded and hold nothing of the person"
            told = Examined(dataset=place.location.dataset, table=None, carries=Carries.NONE, reason=reason)
            examined.append(told)
    return Kept(tuple(items), tuple(examined), tuple(gaps))


def _kept(place: HdfsPlace, seen: HdfsEvidence) -> CopyDraft:
    location = place.location
    agreed = f"; {place.agreed}" if place.agreed else ""
    copy = Copy(
        id="c-hdfs-" + slug(str(location).removeprefix("hdfs://")),
        kind=CopyKind.DERIVED,
        dataset=location.dataset,
        table=None,
        location=str(location),
        format=_format(place),
        carries=Carries.UNKNOWN,
        strategy=Strategy.DELETE_KEPT,
        columns=(),
        lineage=(str(location),),
        reason=f"{_WHAT[place.kind]}: {seen.holders:,} of {seen.files:,}{agreed}",
        found=Found(
            files_scanned=seen.files, files_with_person=seen.holders, rows=None, bytes=seen.bytes, unread=seen.unread
        ),
    )
    return CopyDraft(copy=copy, hdfs=place, reads=seen.touched)


def _format(place: HdfsPlace) -> Format:
    """The format that most of its files are named by."""
    names = [file.path.lower() for file in place.files]
    return max(ENDINGS, key=lambda kind: sum(name.endswith(ENDINGS[kind]) for name in names))


def _no_way(place: HdfsPlace, reason: str) -> Gap:
    return Gap(
        id=f"gap-{GapKind.CANNOT_BE_PROVED}-{slug(str(place.location).removeprefix('hdfs://'))}",
        dataset=place.location.dataset,
        kind=GapKind.CANNOT_BE_PROVED,
        reason="rows there are made of the person's without a key, and no step in HDFS makes them again: run its job"
        " after the erasure",
        evidence=reason,
    )
