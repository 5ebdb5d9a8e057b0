"""The steps that plans have for a place of some kind, made by the planners themselves from an invented copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cache, lru_cache

from pii_tracer.lake.formats.base import Role
from pii_tracer.lake.formats.registry import actions_with
from pii_tracer.lake.inventory import ObjectSet, ObjectVersion, Ref, RemotePlace, TableState
from pii_tracer.lake.listing.listed_place import PlaceKind
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, StoreSettings, VersionState
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Carries, CopyKind, DatasetId, Format, Match, Strategy
from pii_tracer.model.locations import HdfsLocation, ObjectLocation, S3Location
from pii_tracer.model.plan import Copy
from planners.copies.scan_evidence import StoredRead
from planners.formats.registry import planner_of
from planners.schedule.step_dates import writes
from planners.schedule.step_order import order
from planners.step_drafts import CopyDraft, Draft, StoredDraft
from planners.steps import write_steps

_REWRITES = frozenset({Action.S3_REWRITE_ARCHIVE, Action.OBJECT_REWRITE, Action.HDFS_REWRITE})
_WHERE = DatasetId(namespace="estimate", name="/place")
_THEN = "1970-01-01T00:00:00Z"


class Extent(Enum):
    """Which files of a place a step is about."""

    TOUCHED = auto()
    """Those that the persons are in, of whatever version."""
    LIVE = auto()
    COLD = auto()
    OLD = auto()
    EVERYTHING = auto()
    NOTHING = auto()


@dataclass(frozen=True)
class Template:
    """A step without sizes. rewrites: it reads the files and writes them again."""

    draft: Draft
    extent: Extent
    rewrites: bool


@lru_cache(maxsize=1024)  # tables differ in the names of their branches
def templates(
    kind: PlaceKind, name: Format | None, references: tuple[Ref, ...], has_data: bool
) -> tuple[Template, ...]:
    """The working steps of a place, in order. Steps that only wait are left out.

    Hudi's compaction is always among them: whether a table is merge-on-read is not known from listings.
    """
    if not has_data or kind is PlaceKind.SEARCHED:
        return ()
    written = actions_with(Role.ON_ROWS) | actions_with(Role.COUNTS_ROWS) | _REWRITES
    found = []
    for number, item in enumerate(write_steps(tuple(_copies(kind, name, references)), "estimate")):
        for draft in item.drafts:
            verifies = draft.action is Action.VERIFY_COPY
            if verifies or draft.action is Action.S3_RESTORE or writes(draft):
                extent = _extent(draft, item.copy.kind, first=number == 0)
                found.append(Template(_bare(draft), extent, draft.action in written))
    return tuple(found)


@cache
def plan_wide() -> tuple[Draft, ...]:
    """The steps that a plan has once, whatever its copies are."""
    verified = replace(
        CopyDraft(_copy(CopyKind.DERIVED, Format.PARQUET)),
        drafts=tuple(replace(d, after=()) for d in _drafts() if d.action is Action.VERIFY_COPY),
    )
    return tuple(d for d in order((verified,), ("keys",), suppress={"keys": 1}) if d.copy is None)


def _drafts() -> Iterator[Draft]:
    for item in write_steps(tuple(_copies(PlaceKind.FOLDER, None, ())), "estimate"):
        yield from item.drafts


def _bare(draft: Draft) -> Draft:
    """Without what names the invented copy; no step is begun with it."""
    return replace(draft, parameters={}, preconditions=(), files=0, bytes=0, rows=None)


def _extent(draft: Draft, kind: CopyKind, *, first: bool) -> Extent:
    if draft.action is Action.VERIFY_COPY:
        return Extent.EVERYTHING if first else Extent.NOTHING  # every file is looked at once
    if draft.action is Action.S3_RESTORE:
        return Extent.COLD
    if kind is CopyKind.OBJECT_VERSION:
        return Extent.OLD
    return Extent.LIVE if kind is CopyKind.ARCHIVE and draft.executor == "s3" else Extent.TOUCHED


def _copies(kind: PlaceKind, name: Format | None, references: tuple[Ref, ...]) -> Iterator[CopyDraft]:
    """The copies that a plan would have of a place in which a person is."""
    form = name or Format.PARQUET  # bare files of every format are treated alike
    copy = _copy(CopyKind.DERIVED, form)
    if kind is PlaceKind.HDFS_FOLDER:
        place = HdfsLocation(authority="estimate", path="/place")
        yield CopyDraft(copy, hdfs=HdfsPlace(location=place, kind=HdfsKind.FOLDER))
    elif kind is PlaceKind.OBJECTS:
        yield CopyDraft(copy, stored=_stored())
    elif kind is PlaceKind.ARCHIVE:
        yield CopyDraft(_copy(CopyKind.ARCHIVE, form), objects=_objects())
        yield CopyDraft(_copy(CopyKind.OBJECT_VERSION, form), objects=_objects())
    else:
        state = _state(form, references)
        in_bucket = RemotePlace(location=S3Location(bucket="estimate", key="place"))
        yield CopyDraft(copy, state=state, place=in_bucket if kind is PlaceKind.BUCKET_TABLE else None)
        for ref in planner_of(form).history(state):
            history = _copy(CopyKind.TABLE_HISTORY, form)
            facts = {"ref": ref.name, "ref_kind": ref.kind.value}
            yield CopyDraft(history.model_copy(update={"facts": facts}), state=state)


def _copy(kind: CopyKind, name: Format) -> Copy:
    return Copy(
        id="c-estimate",
        kind=kind,
        dataset=_WHERE,
        table=None,
        location="/place",
        format=name,
        carries=Carries.KEY,
        strategy=Strategy.DELETE_BY_KEY,
        columns=(),
        lineage=(),
        reason="",
        match=Match(terms=()),
    )


def _state(name: Format, references: tuple[Ref, ...]) -> TableState:
    return TableState(
        dataset=_WHERE,
        table=None,
        location="/place",
        format=name,
        snapshot="",
        columns=(),
        write_mode="mor",
        refs=references,
    )


def _objects() -> ObjectSet:
    """One object that must be restored, with a version of before."""
    cold = ObjectVersion(key="k", version_id="2", latest=True, size=0, storage_class=_COLD, modified=_THEN)
    old = ObjectVersion(key="k", version_id="1", latest=False, size=0, modified=_THEN)
    return ObjectSet(
        dataset=_WHERE, bucket="estimate", prefix="", region="", of="", versioned=True, versions=(cold, old)
    )


_COLD = "GLACIER"


def _stored() -> StoredDraft:
    """One live object with the person."""
    location = ObjectLocation(store="gs://estimate", key="place")
    live = StoredVersion(key="k", version_id="1", state=VersionState.LIVE, size=0, mark="", modified=_THEN)
    place = ObjectPlace(location=location, versions=(live,), settings=StoreSettings())
    return StoredDraft(place, (StoredRead(live, "", holds=True),), ())
