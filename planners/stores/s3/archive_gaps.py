"""Archives that reach further than they seem to, so that other people's objects would go along, and archives that no
rewrite can treat: gaps, before anything that cannot be undone is done elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import is_refusal
from pii_tracer.lake.inventory import ObjectSet
from pii_tracer.model.datasets import PLAIN, CopyKind, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.gaps.copy_gap import gap_of
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft
from planners.stores.s3.archives import current_of

_PLACES = (CopyKind.ARCHIVE, CopyKind.REPLICA)
_NAMED = 5
"""So many neighbours are named in a reason; the rest is a number."""


def taken_along(items: Sequence[CopyDraft]) -> list[Gap]:
    """Gaps of archives that reach into a neighbour: a prefix is characters and ends at no folder by itself, and a rule
    can replicate one archive into another's place.
    """
    found: list[Gap] = []
    places = [(item, item.objects) for item in items if item.objects is not None and item.copy.kind in _PLACES]
    for item, objects in places:
        neighbours = _neighbours(objects)
        if neighbours:
            named = ", ".join(
                f"`{name}` ({counted(count, 'object')})" for name, count in sorted(neighbours.items())[:_NAMED]
            )
            more = f" and {len(neighbours) - _NAMED} more" if len(neighbours) > _NAMED else ""
            reason = (
                f"the prefix `{objects.prefix}` does not end with `/`, so it also includes {named}{more}. Add the `/` "
                "in the estate file, then plan again. If these places belong to the archive, waive this gap"
            )
            told = gap_of(item, GapKind.S3_NEIGHBOURS, reason, objects.location)
            found.append(told.model_copy(update={"seen": ", ".join(sorted(neighbours))}))
        around = [o.location for _, o in places if _within(objects, o)]
        if around:
            reason = (
                f"{objects.location} is inside of {', '.join(around)}, the target of a replication rule or a "
                "different declaration: each object would be treated twice. Declare only one of these places, then "
                "plan again"
            )
            found.append(gap_of(item, GapKind.S3_OVERLAP, reason, objects.location))
    return found


def spare_archives(items: Sequence[CopyDraft], world: World) -> tuple[tuple[CopyDraft, ...], tuple[Gap, ...]]:
    """Block archives that would be rewritten and cannot be: their format, no key of a row, a value beside the bytes.

    What its lifecycle removes in time, or goes whole, needs no rewrite. What stands beside the bytes and could not be
    read is a gap that can be waived: the rewrite looks again, perhaps with more rights, and writes nothing without.
    """
    spared, gaps = [], []
    for item in items:
        told = _unrewritable(item, world)
        if told:
            kind, reason = told
            gaps.append(gap_of(item, kind, reason, item.copy.location))
            item = replace(item, copy=item.copy.model_copy(update={"strategy": Strategy.BLOCKED}))
        gaps += _unread_beside(item, world)
        spared.append(item)
    return tuple(spared), tuple(gaps)


def _unrewritable(item: CopyDraft, world: World) -> tuple[GapKind, str] | None:
    """Kind and reason of the gap, or None."""
    objects, copy = _rewritten(item), item.copy
    if objects is None:
        return None
    if copy.format not in PLAIN:
        return GapKind.ARCHIVE_FORMAT, (
            f"objects of the format {copy.format.value} cannot be rewritten without the person; steps rewrite only "
            "Parquet, ORC, Avro, CSV and JSON lines. Convert the objects, or write in the estate file why whole "
            "objects must be deleted (`delete_whole`), then plan again (a waiver does not unblock it)"
        )
    if copy.match is None:
        return GapKind.ARCHIVE_MATCH, (
            "no key separates the person's rows from others in these objects, so no rewrite can leave the person's "
            "rows out. Write in the estate file why whole objects must be deleted (`delete_whole`), then plan again "
            "(a waiver does not unblock it)"
        )
    beside = world.beside.get(objects.location)
    if beside and beside.telling:
        return GapKind.OBJECT_METADATA, (
            f"{counted(beside.telling, 'object contains', 'objects contain')} a value of the person in metadata, a "
            "header or a tag, and a rewrite keeps these. Copy each object onto itself without the value, then plan "
            "again (a waiver does not unblock it)"
        )
    return None


def _unread_beside(item: CopyDraft, world: World) -> list[Gap]:
    objects = _rewritten(item)
    beside = world.beside.get(objects.location) if objects else None
    if objects is None or beside is None or not beside.unread:
        return []
    todo = "Rights are not the cause. Find out why the store does not answer this call, or waive this gap"
    if is_refusal(str(beside.why).rpartition(": ")[2]):
        todo = (
            "Give the planner `s3:GetObjectVersion` and `s3:GetObjectVersionTagging`, then plan again. If only the "
            "run has these rights, waive this gap"
        )
    reason = (
        f"metadata, headers or tags of {counted(beside.unread, 'object')} could not be read ({beside.why}), and may "
        f"contain the person. {todo}: the run checks each object before it writes, and rejects objects that it cannot "
        "read"
    )
    return [gap_of(item, GapKind.BESIDE_UNREAD, reason, objects.location)]


def _rewritten(item: CopyDraft) -> ObjectSet | None:
    """The objects of an archive that would be written anew."""
    objects, strategy = item.objects, item.copy.strategy
    rewrites = objects is not None and strategy is Strategy.RESTORE_REWRITE_ARCHIVE and current_of(objects)
    return objects if rewrites else None


def _within(inner: ObjectSet, outer: ObjectSet) -> bool:
    return inner is not outer and inner.bucket == outer.bucket and inner.prefix.startswith(outer.prefix)


def _neighbours(objects: ObjectSet) -> Counter[str]:
    """How many objects go on with other characters than `/` behind the prefix, by folder; lone ones by the prefix."""
    prefix = objects.prefix
    if not prefix or prefix.endswith("/"):
        return Counter()
    found: Counter[str] = Counter()
    for key in {version.key for version in objects.versions}:
        rest = key[len(prefix) :]
        if rest and not rest.startswith("/"):
            folder, separator, _ = rest.partition("/")
            found[prefix + folder + separator if separator else prefix + "…"] += 1
    return found
