"""Replication that brings back what its owner deleted: a rewrite is a new object, and S3 copies it by the rules.

Delete markers travel only where a rule says so, so that an object can be deleted in one bucket and be there in another.
Written again there, it is replicated like every new object, and is live in the bucket where its owner deleted it, with
everybody's rows (https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-what-is-isnot-replicated.html).
Rules in both directions make this of an ordinary delete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import ObjectSet
from pii_tracer.model.actions import Action
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.gaps.copy_gap import gap_of
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft, slug


def echoes(items: Sequence[CopyDraft], world: World) -> tuple[Gap, ...]:
    """A gap for every bucket in which a plan's rewrites elsewhere would bring deleted objects back.

    items: with their drafts, since these say which objects are written.
    """
    known = _Known(world.inventory.objects)
    gaps = []
    for item in items:
        if item.objects is None:
            continue
        written = {
            str(ref["key"])
            for draft in item.drafts
            if draft.action is Action.S3_REWRITE_ARCHIVE
            for ref in draft.parameters["objects"]
        }
        for bucket in sorted({bucket for bucket, _ in item.objects.copied_to}):
            rules = tuple(prefix for name, prefix in item.objects.copied_to if name == bucket)
            copied = {key for key in written if key.startswith(rules)}
            back = known.missing(copied, bucket, item.objects)
            if back:
                gaps.append(_gap(item, item.objects, bucket, len(back)))
    return tuple(gaps)


class _Known:
    """What is in the buckets now."""

    def __init__(self, sets: Iterable[ObjectSet]) -> None:
        self._sets = {objects.location: objects for objects in sets}
        self._live: dict[str, set[str]] = defaultdict(set)
        self._deleted: dict[str, set[str]] = defaultdict(set)
        for objects in self._sets.values():
            for version in objects.versions:
                if version.latest:
                    (self._deleted if version.delete_marker else self._live)[objects.bucket].add(version.key)

    def missing(self, keys: set[str], bucket: str, source: ObjectSet) -> set[str]:
        """Those of the keys of `source` that a bucket does not have because its owner deleted them there.

        A delete marker tells. Where the bucket's own objects were copied to the source, what it lacks was there once,
        as far as anybody can tell, and deleted with every version.
        """
        return keys - self._live[bucket] if self._fed_by(bucket, source) else keys & self._deleted[bucket]

    def _fed_by(self, bucket: str, source: ObjectSet) -> bool:
        ring = (name for o in self._sets.values() if o.bucket == bucket for name, _ in o.copied_to)
        return source.bucket in ring or any(origin.bucket == bucket for origin in self._origins(source))

    def _origins(self, objects: ObjectSet) -> Iterator[ObjectSet]:
        """What an object set is a replica of, step by step; discovery makes no ring of it."""
        while (above := self._sets.get(objects.replica_of or "")) is not None:
            yield above
            objects = above


def _gap(item: CopyDraft, objects: ObjectSet, bucket: str, count: int) -> Gap:
    gap = gap_of(
        item,
        GapKind.S3_REPLICATED_BACK,
        f"{counted(count, 'object is', 'objects are')} still in the bucket {objects.bucket}, but no longer in "
        f"{bucket}. After a rewrite in {objects.bucket}, its replication rule would restore them in {bucket}, with "
        f"the data of all persons. Switch off the rule from {objects.bucket} to {bucket} until the run is over, then "
        f"plan again. Or delete these objects in {objects.bucket}, too (with a waiver, they come back)",
        f"the enabled replication rules of {objects.bucket}, and the objects in {bucket}",
    )
    return gap.model_copy(update={"id": f"{gap.id}-{slug(bucket)}"})
