"""What belongs to an estate now and was unknown to a plan: looked at, or told. Else what came after planning is seen by
nobody, and a verification would say "clean" of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalog_only_partitions import PartitionedTable, PlacesOfPartitions, by_names, left_of, place_of
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.s3.archive_versions import dataset_of, s3_clients
from pii_tracer.lake.stores.s3.object_versions import region_of
from pii_tracer.lake.stores.s3.replicas import replicas_of
from pii_tracer.lake.stores.s3.store import store_errors
from pii_tracer.model.datasets import CopyKind, DatasetId, KnownPartitions, Strategy
from pii_tracer.model.gap_kinds import HDFS_PLACES, GapKind
from pii_tracer.model.locations import names_place, object_prefix, object_uri
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.model.waivers import MarkKey
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.refused_places import Refused, waived, with_refused
from pii_tracer.verify.verdicts import NO_COPY, SINCE, ByteVerdict, Residue
from planners.copies.scan_evidence import CatalogEvidence
from planners.gaps.table_descriptions import waived_text, waives_unread

SEEN = frozenset(
    {
        # nothing lies there
        GapKind.MISSING_FILES,
        GapKind.MISSING_TABLE,
        # about how a place can be written or what expires; its files are searched
        GapKind.DELETES_METADATA,
        GapKind.FOLDER_AROUND_TABLES,
        GapKind.MFA_DELETE,
        GapKind.MIXED_COLUMNS,
        GapKind.MIXED_FORMATS,
        GapKind.NESSIE_STATE,
        GapKind.NESTED_TABLE,
        GapKind.REGISTERED_TWICE,
        GapKind.SHARED_FILES,
        GapKind.STAGED_SNAPSHOT,
        GapKind.STRANGE_FILES,
        GapKind.TWO_FORMATS,
        GapKind.WORK_BRANCH_LEFT,
        # looked at in their own right (`lone_files`)
        GapKind.UNKNOWN_FILE,
    }
)
"""Kinds of what discovery cannot tell that keep no bytes from being searched. Any other means a place that may hold
something and that no verification reads."""


def lone_files(inventory: Inventory, patterns: Patterns) -> Iterator[tuple[str, Path]]:
    """Files that belong to no table, as they are now, each with its path as it may be shown."""
    for gap in inventory.gaps:
        if gap.kind == GapKind.UNKNOWN_FILE and gap.dataset is None:
            yield patterns.mask(gap.evidence), Path(gap.evidence)


def unseen(plan: ErasurePlan, inventory: Inventory, patterns: Patterns, marks: MarkKey) -> Iterator[ByteVerdict]:
    """What discovery cannot tell now and could at planning: a catalog that no longer answers, files beyond a table's
    folder, and other objects than then that are in no place. Values of the persons are masked in it."""
    told = {(str(gap.kind), str(gap.dataset or gap.evidence), gap.listed) for gap in plan.gaps if not gap.task}
    left_out = {gap.dataset for gap in plan.gaps if gap.kind == GapKind.LEFT_OUT}
    remote = {place.dataset for place in inventory.remote}  # looked at in their own right
    # so are these
    in_places = {place.location.dataset for place in inventory.hdfs}
    in_places |= {place.location.dataset for place in inventory.object_places}
    read = {copy.dataset for copy in plan.copies} | {item.dataset for item in plan.examined}
    for gap in inventory.gaps:
        evidence = patterns.mask(gap.evidence)
        untold = gap.evidence in inventory.texts.unknown  # its files are searched, and not by the rules of their text
        place = str(gap.dataset or evidence)
        listed = marks.of_file(place, gap.listed) if gap.listed and gap.kind == GapKind.OUTSIDE_ROOTS else ""
        if (gap.kind in SEEN and not untold) or (str(gap.kind), place, listed) in told:
            continue
        if gap.dataset in left_out or (gap.kind == GapKind.REMOTE_TABLE and gap.dataset in remote):
            continue
        if gap.kind in HDFS_PLACES | {GapKind.OBJECT_PLACE} and gap.dataset in in_places:
            continue
        if gap.kind == GapKind.UNREADABLE and gap.dataset in read:
            continue  # what of its bytes cannot be read is told by the look at them
        reason = f"{gap.kind}: {patterns.mask(gap.reason)} ({evidence}); at planning it was not so"
        yield ByteVerdict(copy_id=f"{SINCE}{evidence}", root=evidence, files=(), unverified=(reason,))


def partitions_since(
    plan: ErasurePlan, inventory: Inventory, paths: EstatePaths, patterns: Patterns
) -> Iterator[ByteVerdict]:
    """Datasets of the plan with rows of which the catalog alone says now whose they are, and did not at planning: their
    files show neither that the persons are there, nor that they are not."""
    known, old_keys = {one.names: one for one in plan.partitioned or ()}, _old_keys(plan)
    places = {dataset: str(paths.real_path(dataset) or place_of(dataset)) for dataset in named_in(plan)}
    places |= {copy.dataset: copy.location for copy in plan.copies}
    partitions, told = PlacesOfPartitions(inventory.partitioned), dict[str, str]()
    why = _ALONE if plan.partitioned is not None else _ALONE_BEFORE
    for dataset, place in sorted(places.items()):
        for table, columns in partitions.untold(place):
            names = tuple(map(patterns.mask, table.names))
            new = _maybe_keys(known.get(names), old_keys, columns) - _untold_then(known.get(names), dataset)
            if new:
                told.setdefault(names[0], f"{patterns.mask(place)}: {why.format(', '.join(sorted(new)))}")
    for title, reason in told.items():
        yield ByteVerdict(copy_id=f"{SINCE}{title}", root=reason.partition(": ")[0], files=(), unverified=(reason,))


def left_since(
    plan: ErasurePlan, partitioned: Iterable[PartitionedTable], patterns: Patterns, marks: MarkKey
) -> Iterator[ByteVerdict]:
    """Tables of the plan of which other partitions are a gap now than at planning: whoever waived that gap did not know
    them, and nobody looks at them. partitioned: with what is a gap for its name alone. Plans of before cannot tell."""
    then = {one.names: one for one in plan.partitioned or ()}
    for names, tables in sorted(by_names(partitioned, patterns.mask).items()):
        left = left_of(tables, names, marks)
        if plan.partitioned is not None and left is not None and (names not in then or then[names].left != left):
            yield ByteVerdict(copy_id=f"{SINCE}{names[0]}", root=names[0], files=(), unverified=(_LEFT,))


def catalog_texts_since(plan: ErasurePlan, found: Iterable[CatalogEvidence], marks: MarkKey) -> Iterator[ByteVerdict]:
    """What catalogs keep of tables and namespaces and tells of the persons, or cannot be read: all of it that nobody
    waived. A waiver of an earlier version names no texts, and covers what its gap was about."""
    for one in found:
        gap = waived_text(plan, one.title)
        stays = frozenset(gap.files) if gap else frozenset()
        new = {text for text in one.texts if gap is None or marks.of_file(gap.evidence, text) not in stays}
        waived_whole = gap is not None and not gap.files
        name = f"{NO_COPY if gap else SINCE}{one.title}"
        told = one.places if new and not waived_whole else ()
        residue = tuple(Residue(copy_id=name, file=one.title, where=place, form="text") for place in told)
        unread = [cause for cause in one.unread if not waives_unread(plan, one.title, cause)]
        unverified = tuple(f"{one.title}: texts in the catalog were not read: {cause}" for cause in unread)
        if residue or unverified:
            yield ByteVerdict(copy_id=name, root=one.title, files=(), residue=residue, unverified=unverified)


_LEFT = (
    "other partitions than at planning lie outside the table's folder and are not erased with it; nobody looks at them;"
    " plan again"
)


def _old_keys(plan: ErasurePlan) -> frozenset[str] | None:
    """What a plan of before partitions were recorded finds persons by, in lower case; None of other plans."""
    if plan.partitioned is not None:
        return None
    places = (copy.places for copy in plan.copies)
    return frozenset(column.lower() for place in places if place for column in place.columns)


def _maybe_keys(then: KnownPartitions | None, old_keys: frozenset[str] | None, columns: Iterable[str]) -> set[str]:
    """Those of a table's partition columns that may hold a key of the persons: all of a table that the plan does not
    know. then: the table at planning."""
    if old_keys is not None:
        return {*columns} & old_keys
    return {*columns}.difference(then.no_keys if then else ())


def _untold_then(then: KnownPartitions | None, dataset: DatasetId) -> set[str]:
    return {column for rows in (then.untold if then else ()) if rows.dataset == dataset for column in rows.columns}


_ALONE_BEFORE = (
    "only the catalog says whose the rows of partitions there are ({}): nobody can prove by the files whose rows they"
    " are. The plan was made before partitions were recorded; plan again"
)
_ALONE = (
    "only the catalog says whose the rows of partitions there are ({}), and at planning it was not so: nobody can prove"
    " by the files whose rows they are; plan again"
)


def of_new_partitions(
    verdicts: Iterable[ByteVerdict], plan: ErasurePlan, inventory: Inventory, paths: EstatePaths, patterns: Patterns
) -> Iterator[ByteVerdict]:
    """Verdicts, unverified where partitions lie at, in or around a place that the plan does not know, and the catalog
    can have a person's key of them that no file has."""
    known, partitions = named_in(plan), PlacesOfPartitions(inventory.partitioned)
    then, old_keys = {one.names: one for one in plan.partitioned or ()}, _old_keys(plan)
    for verdict in verdicts:
        place = verdict.place
        if isinstance(place, DatasetId) and verdict.since and place not in known:
            near = partitions.near(str(paths.real_path(place) or place_of(place)))
            may = any(
                _maybe_keys(then.get(tuple(map(patterns.mask, table.names))), old_keys, map(str.lower, table.keys))
                for table in near
            )
            verdict = verdict.model_copy(update={"unverified": (*verdict.unverified, *[_UNPLANNED] * may)})
        yield verdict


_UNPLANNED = (
    "partitions that the plan does not know lie there, and the catalog can have a key of them that no file has; plan"
    " again"
)


def named_in(plan: ErasurePlan) -> set[DatasetId]:
    """All datasets that a plan tells something of."""
    known = {copy.dataset for copy in plan.copies} | {item.dataset for item in plan.examined}
    return known | {gap.dataset for gap in plan.gaps if gap.dataset}


def declared_since(estate: Estate, known: set[DatasetId]) -> Iterator[DatasetId]:
    """Topics and repositories that the estate file declares and the plan does not know."""
    found: list[DatasetId] = []
    if estate.kafka:
        from pii_tracer.lake.streams.kafka.topics import topic_dataset

        found += [topic_dataset(cluster, topic.name) for cluster in estate.kafka for topic in cluster.topics]
    if estate.lakefs:
        from pii_tracer.lake.stores.lakefs.repository_discovery import repository_dataset

        found += [repository_dataset(server, repo) for server in estate.lakefs for repo in server.repositories]
    yield from (dataset for dataset in found if dataset not in known)


def object_places(plan: ErasurePlan, estate: Estate) -> Iterator[Copy | ByteVerdict]:
    """Places of archives, and of what rules copy from objects of the plan's copies, that are no copies of the plan: an
    archive that was empty at planning, a replica since. As copies to look at, or why they are not known.
    """
    if estate.s3 is None:
        return
    places = [(place, copy) for copy in plan.copies if (place := _place(copy))]
    known = {place for place, _ in places} | set(_told(plan))
    roots = {place: copy for place, copy in places if copy.strategy is not Strategy.EXEMPT}
    for copy in _empty_archives(plan, estate):
        place = _place(copy)
        if place is not None and place not in known:
            known.add(place)
            roots[place] = copy
            yield _reached(estate, copy, place[0])
    clients = s3_clients(estate)
    for (bucket, prefix), root in roots.items():
        try:
            with store_errors("its replication cannot be read", root.location, "s3:GetReplicationConfiguration"):
                for target in replicas_of(clients, bucket, prefix):
                    if (target, prefix) not in known:
                        known.add((target, prefix))
                        yield _reached(estate, _as_place(root, target, prefix), target)
        except StoreError as error:
            verdict = ByteVerdict(copy_id=f"{SINCE}replicas of {root.id}", root=root.location, files=())
            refusal = Refused("GetBucketReplication", error.code)
            yield with_refused(verdict, (refusal,), waived(plan, root.location))


def _place(copy: Copy) -> tuple[str, str] | None:
    """Bucket, and what the keys in it begin with; None of what lies in none."""
    if copy.s3_table:
        return copy.s3_table.bucket, copy.s3_table.prefix
    return object_prefix(copy.location)


def _told(plan: ErasurePlan) -> Iterator[tuple[str, str]]:
    """Places in S3 that the plan names and that are no copies, with and without the slash at their end."""
    named = [item.dataset for item in plan.examined] + [gap.dataset for gap in plan.gaps if gap.dataset]
    for dataset in named:
        if store := object_prefix(dataset.namespace):
            yield from ((store.bucket, dataset.name), (store.bucket, f"{dataset.name}/"))


def _empty_archives(plan: ErasurePlan, estate: Estate) -> Iterator[Copy]:
    """Archives of the plan's tables in which nothing was at planning, so that no copy stands for them."""
    for archive in estate.archives:
        for table in plan.copies:
            named = names_place(archive.of, table.table, table.location, table.dataset.name)
            if named and table.origin is None and table.strategy is not Strategy.EXEMPT:
                made = _as_place(table, archive.bucket, archive.prefix)
                yield made.model_copy(update={"format": archive.format or made.format})
                break


def _as_place(of: Copy, bucket: str, prefix: str) -> Copy:
    """A place to look at as a whole, as at a replica: old versions and all. of: whose rows lie there."""
    location = object_uri(bucket, prefix)
    update = {
        "id": f"{SINCE}{location}",
        "kind": CopyKind.REPLICA,
        "dataset": dataset_of(bucket, prefix),
        "location": location,
        "table": None,
        "facts": {},
        "origin": of.id,
    }
    return of.model_copy(update=update)


def _reached(estate: Estate, copy: Copy, bucket: str) -> Copy | ByteVerdict:
    """The place with its region, or that its bucket does not answer."""
    try:
        with store_errors("the bucket cannot be listed", copy.location, "s3:GetBucketLocation"):
            region = region_of(s3_clients(estate)(None), bucket)
    except StoreError as error:
        return ByteVerdict(copy_id=copy.id, root=copy.location, files=(), unverified=(error.what,))
    return copy.model_copy(update={"facts": {"region": region}})
