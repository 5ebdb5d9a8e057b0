"""What is no copy of a plan, looked at after its run: what was examined at planning, and what has come since."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.app.planning.catalog_text_search import telling_catalogs
from pii_tracer.app.planning.value_masking import telling_left
from pii_tracer.app.unplanned_places import (
    catalog_texts_since,
    declared_since,
    left_since,
    lone_files,
    object_places,
    of_new_partitions,
    partitions_since,
    unseen,
)
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.stores.lakefs.repository_state import in_lakefs
from pii_tracer.lake.stores.s3.table_places import is_nameless
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError, ScanError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import below, s3_place
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.verify.byte_search import look_past
from pii_tracer.verify.short_numbers import ShortNumbersThen, short_numbers_in_file, short_numbers_then
from pii_tracer.verify.verdicts import NO_COPY, SINCE, ByteVerdict, no_copy_name
from pii_tracer.verify.waived_files import NOTHING_WAIVED, waived_files

if TYPE_CHECKING:
    from pii_tracer.app.verification import Verification
    from pii_tracer.lake.inventory import Inventory, InventoryGap, RemotePlace
    from pii_tracer.model.hive_text.text_reading_rules import TextPlaces


def _silent(told: str) -> None:
    """Progress is that of the whole look."""


def look_beside(looks: Verification, only: Collection[str] | None = None) -> tuple[ByteVerdict, ...]:
    """What is no copy, looked at: datasets that were examined (whoever was not there may have come), and those that
    have come into being since.

    Of short numbers, those count that were not there at planning (`short_numbers_then`). only: the names of the
    verdicts that are wanted. Two places may have one name (a table and a topic), so every store is looked at.
    """
    from pii_tracer.lake.discovery import discover

    plan, paths = looks.plan, EstatePaths(looks.estate, looks.base)
    places = [(i.dataset, no_copy_name(i)) for i in plan.examined]
    known = {i.dataset for i in plan.examined} | {c.dataset for c in plan.copies}
    told = {gap.dataset for gap in plan.gaps if gap.dataset}
    waived, inventory = waived_files(plan, looks.marks), discover(looks.estate, looks.base)
    known |= {gap.dataset for gap in plan.gaps if gap.dataset and gap.kind == GapKind.LEFT_OUT}
    for state in inventory.tables:
        if state.dataset not in known:
            known_then = f"{NO_COPY}{state.dataset.name}" if state.dataset in told else None
            since = f"{SINCE}{looks.patterns.mask(state.table or state.dataset.name)}"  # nobody refused such a name yet
            places.append((state.dataset, known_then or since))
    beyond = {gap.evidence for gap in plan.gaps if gap.kind == GapKind.EXTERNAL_FILES}
    new = [p for p in inventory.remote if p.dataset not in known and not _is_masked_in(beyond, p, looks)]
    # what nobody names and tells of the persons by its name is looked at with the root that it lies in
    new = [p for p in new if not (is_nameless(p) and looks.patterns.mask(str(p.location)) != str(p.location))]
    unread = _unread_still(looks)  # as it was when it was waived
    known |= {gap.dataset for gap in plan.gaps if gap.dataset and (gap.dataset, gap.kind) in unread and not gap.task}
    seen_apart = {dataset for dataset, _ in places} | {copy.dataset for copy in plan.copies}
    apart = sorted(s.location for s in inventory.tables if s.dataset in seen_apart and not s.remote)  # as at planning
    verdicts = []
    for dataset, name in places:
        place = paths.real_path(dataset)
        if place is None or not place.exists() or (only is not None and name not in only):
            continue
        patterns = looks.patterns_at(dataset)
        root = looks.patterns.mask(str(place))
        inside = [Path(one) for one in below(str(place), apart)]
        found = scan_tree(place, patterns, inside, looks.searchers, inventory.texts).files
        stays = waived.get(dataset, NOTHING_WAIVED)
        short = short_numbers_then(plan, dataset, name, patterns.key_sets)
        verdicts.append(look_past(name, root, found, named=not plan.copies, short=short, waived=stays).at(dataset))
    for shown, file in lone_files(inventory, looks.patterns):
        name = f"{NO_COPY}{shown}"
        if only is None or name in only:
            texts = inventory.texts
            found = scan_tree(file, looks.patterns, (), looks.searchers, texts).files if file.exists() else ()
            stays = waived.get(shown, NOTHING_WAIVED)
            root = looks.patterns.mask(str(file.parent))
            short = short_numbers_in_file(plan, shown, looks.patterns.key_sets)
            verdicts.append(look_past(name, root, found, named=not plan.copies, short=short, waived=stays).at(shown))
    asked = [*(item.dataset for item in plan.examined), *declared_since(looks.estate, known)]
    found_beyond = [
        *(topic.at(dataset) for dataset in asked if (topic := _topic_of(looks, dataset))),
        *(_lakefs_of(looks, dataset).at(dataset) for dataset in asked if in_lakefs(dataset.namespace)),
        *_in_places(looks, inventory),
        *_in_s3(looks, new, inventory.texts),
        *_stored(looks),
        *unseen(plan, inventory, looks.patterns, looks.marks),
        *partitions_since(plan, inventory, paths, looks.patterns),
        *catalog_texts_since(plan, telling_catalogs(looks.estate, looks.base, looks.patterns, _silent), looks.marks),
        *left_since(plan, telling_left(inventory, looks.patterns), looks.patterns, looks.marks),
    ]
    verdicts += (verdict for verdict in found_beyond if only is None or verdict.copy_id in only)
    return tuple(of_new_partitions(verdicts, plan, inventory, paths, looks.patterns))


def _is_masked_in(told: Collection[str], place: RemotePlace, looks: Verification) -> bool:
    """Whether a gap of the plan tells a place whose name holds a value of the persons."""
    shown = looks.patterns.mask(str(place.location))
    return shown != str(place.location) and shown in told


def _unread_still(looks: Verification) -> set[tuple[DatasetId | None, GapKind]]:
    """Topics and repositories that cannot be read now, with the kind of gap, where the plan has gaps of such kinds."""
    kinds = {gap.kind for gap in looks.plan.gaps}
    found: list[InventoryGap] = []
    if looks.estate.kafka and kinds & {GapKind.KAFKA_CLUSTER, GapKind.MISSING_TOPIC, GapKind.KAFKA_TOPIC}:
        from pii_tracer.lake.streams.kafka.topics import discover_topics

        found += discover_topics(looks.estate, looks.base)[1]
    if looks.estate.lakefs and GapKind.LAKEFS_REPOSITORY in kinds:
        from pii_tracer.lake.stores.lakefs.repository_discovery import discover_lakefs

        found += discover_lakefs(looks.estate, looks.base)[1]
    return {(gap.dataset, gap.kind) for gap in found}


def _in_places(looks: Verification, inventory: Inventory) -> Iterator[ByteVerdict]:
    """What was examined in HDFS and in object stores, and places there that have come since."""
    from pii_tracer.app.stored_places import hdfs_reading as hdfs_places
    from pii_tracer.app.stored_places import object_reading as stored_places

    given = (looks.estate, looks.plan, inventory, looks.patterns, looks.marks)
    yield from hdfs_places.elsewhere(*given, looks.searchers)
    yield from stored_places.elsewhere(*given, looks.searchers)


def _stored(looks: Verification) -> Iterator[ByteVerdict]:
    """Archives that were empty at planning, and replicas that came since."""
    for place in object_places(looks.plan, looks.estate):
        if isinstance(place, ByteVerdict):
            yield place
            continue
        try:
            yield looks.objects(place)
        except (ScanError, EstateError) as error:
            yield ByteVerdict(copy_id=place.id, root=place.location, files=(), unverified=(error.what,))


def _in_s3(looks: Verification, new: Sequence[RemotePlace], texts: TextPlaces) -> Iterator[ByteVerdict]:
    """What was examined in S3, and places there that have come since."""
    examined = [(s3_place(i.dataset), no_copy_name(i)) for i in looks.plan.examined]
    places = [(place, name) for place, name in examined if place is not None]
    mask = looks.patterns.mask
    places += [(place.location, f"{SINCE}{mask(', '.join(place.tables) or place.dataset.name)}") for place in new]
    if places:
        from pii_tracer.app.s3_reading import elsewhere

        yield from elsewhere(looks.estate, looks.plan, places, looks.patterns, looks.marks, texts, looks.searchers)


def _topic_of(looks: Verification, dataset: DatasetId) -> ByteVerdict | None:
    if not looks.estate.kafka or not dataset.namespace.startswith("kafka://"):
        return None
    from pii_tracer.app.topic_records import look_elsewhere

    given, short = (looks.estate, looks.base, dataset), _short_in(looks, dataset)
    return look_elsewhere(*given, looks.patterns_at(dataset), named=not looks.plan.copies, short=short)


def _lakefs_of(looks: Verification, dataset: DatasetId) -> ByteVerdict:
    from pii_tracer.app.lakefs_objects import look_elsewhere

    given = (looks.estate, looks.base, dataset, looks.patterns, looks.patterns_at(dataset))
    return look_elsewhere(*given, named=not looks.plan.copies, short=_short_in(looks, dataset))


def _short_in(looks: Verification, dataset: DatasetId) -> ShortNumbersThen | None:
    """Of a topic or a repository; one that was not examined came later."""
    examined = any(item.dataset == dataset for item in looks.plan.examined)
    return short_numbers_then(looks.plan, dataset, NO_COPY if examined else SINCE, looks.patterns.key_sets)
