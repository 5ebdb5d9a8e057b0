"""Lineage's answer for one kind of subject, the keys that come out of it, and the world they are looked for in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from pii_tracer.config.subjects import Subject
from pii_tracer.lake.catalog_only_partitions import PlacesOfPartitions
from pii_tracer.lake.inventory import Inventory, RemotePlace, TableState
from pii_tracer.lake.keys.key_facts import KeyFacts
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import DatasetId, KeySet
from pii_tracer.model.non_key_columns import NotKeys
from pii_tracer.model.plan import Gap
from planners.copies.coinciding_values import may_coincide
from planners.copies.derived_keys import Derived, derive
from planners.copies.match_key_resolution import Keys
from planners.copies.scan_evidence import (
    BesideEvidence,
    CatalogEvidence,
    Evidence,
    HdfsEvidence,
    JobEvidence,
    KeyDigits,
    LakefsEvidence,
    OthersRows,
    RemoteEvidence,
    StoredEvidence,
    TellingText,
    TopicEvidence,
)
from planners.locate.key_location import Carriage

_TELLING = re.compile(r"[0-9@%]")
_LONG = 5


@dataclass(frozen=True)
class Survey:
    """Lineage's answer for one kind of subject, and the keys that come out of it.

    key_sets: everything the scan searches for: the base identifiers and every computed key that a copy carries.
    derived: by (source column, expression), with the number of values other people share.
    """

    subject: Subject
    source: DatasetId
    carriages: Mapping[DatasetId, Carriage]
    keys: Keys
    derived: Mapping[tuple[str, str], Derived]

    @cached_property
    def key_sets(self) -> Mapping[str, KeySet]:
        """By name; names start with the subject's name."""
        return {d.keys.name: d.keys for d in self.derived.values()}

    @cached_property
    def coincide(self) -> Mapping[tuple[str, str], bool]:
        """As `derived`: whether somebody else may have a value in another system, one that rows are found by or one
        that it was made of. The digest of a number that counts is as common as the number.
        """
        plain = {origin for origin, pairs in self.keys.base.items() if any(may_coincide(value) for _, value in pairs)}
        return {
            at: at[0] in plain or any(may_coincide(value) for _, value in made.keys.values)
            for at, made in self.derived.items()
        }

    @cached_property
    def telling_values(self) -> frozenset[str]:
        """Values of the persons that as a name can mean nothing else, in lower case: no words, no tiny numbers."""
        values = {v.lower() for key_set in self.key_sets.values() for _, v in key_set.values}
        return frozenset(v for v in values if _TELLING.search(v) and len(v) >= _LONG)


def survey(
    subject: Subject,
    source: DatasetId,
    carriages: Mapping[DatasetId, Carriage],
    keys: Keys,
    further: Collection[tuple[str, str]] = (),
) -> Survey:
    """Derive the key set of every identifier and of every expression that lineage recorded over one.

    further: expressions (behind their source column) that an earlier plan knew.
    """
    wanted = {(column, "x") for column in keys.base}
    wanted |= {(column, expression) for column, expression in further if column in keys.base}
    for carriage in carriages.values():
        wanted |= {(trace.origin, trace.expression) for _, trace in carriage.found_in}
    derived: dict[tuple[str, str], Derived] = {}
    for column, expression in sorted(wanted):
        made = derive(keys, column, expression)
        named = made.keys.model_copy(update={"name": f"{subject.name}.{made.keys.name}"})
        derived[column, expression] = replace(made, keys=named)
    return Survey(subject, source, carriages, keys, derived)


@dataclass(frozen=True)
class World:
    """What the copies are made from, beside the survey. topics, lakefs: by name of the subject and location.

    keys: by name of a key table. named: by place, how many of its objects' names hold a value of the persons; beside:
    what its objects hold in metadata, headers or tags. masked: paths of lone files whose names do, as they
    may be shown. others: by location, where planning read whose the rows are that hold the persons. digits: by place,
    short numbers that no lineage explains and that look like the key. described: by location, where a table's own
    description holds the persons. catalogs: what catalogs themselves keep of tables, where it holds the persons or was
    not read. remote, hdfs, stored: by location in S3, HDFS or `object_stores`, where places
    there were searched. splits_partitions: of
    `planners.locate.sql.rebuild_statement`. not_keys: columns of another system's numbers; untaken: what stands
    against the owner's word on some. whose: by location or path of a lone file, references of the persons of whom
    anything is there, where each was looked for alone.
    """

    graph: LineageGraph
    inventory: Inventory
    evidence: Mapping[str, Evidence]
    is_dev: Callable[[str], bool]
    topics: Mapping[tuple[str, str], TopicEvidence] = field(default_factory=dict)
    keys: Mapping[str, KeyFacts] = field(default_factory=dict)
    named: Mapping[str, int] = field(default_factory=dict)
    masked: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, BesideEvidence] = field(default_factory=dict)
    lakefs: Mapping[tuple[str, str], LakefsEvidence] = field(default_factory=dict)
    others: Mapping[str, tuple[OthersRows, ...]] = field(default_factory=dict)
    digits: Mapping[str, tuple[KeyDigits, ...]] = field(default_factory=dict)
    described: Mapping[str, tuple[TellingText, ...]] = field(default_factory=dict)
    catalogs: tuple[CatalogEvidence, ...] = ()
    jobs: tuple[JobEvidence, ...] = ()
    remote: Mapping[str, RemoteEvidence] = field(default_factory=dict)
    hdfs: Mapping[str, HdfsEvidence] = field(default_factory=dict)
    stored: Mapping[str, StoredEvidence] = field(default_factory=dict)
    splits_partitions: bool = False
    not_keys: tuple[NotKeys, ...] = ()
    untaken: tuple[Gap, ...] = ()
    whose: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def _titles(self) -> dict[DatasetId, str]:
        return {state.dataset: title(state) for state in reversed(self.inventory.tables)}

    @cached_property
    def _locations(self) -> dict[DatasetId, str]:
        return {state.dataset: state.location for state in reversed(self.inventory.tables)}

    @cached_property
    def states(self) -> dict[str, TableState]:
        """The tables of the inventory, by location."""
        return {state.location: state for state in self.inventory.tables}

    @cached_property
    def partitions(self) -> PlacesOfPartitions:
        """The tables whose partitions their folders do not tell."""
        return PlacesOfPartitions(self.inventory.partitioned)

    def location_of(self, dataset: DatasetId) -> str | None:
        """Where a table of the inventory lies."""
        return self._locations.get(dataset)

    def searched_at(self, gap: Gap) -> str | None:
        """Where the table, folder or lone file of a gap was searched (a key of `evidence`)."""
        if gap.dataset and (found := self.location_of(gap.dataset)):
            return found
        # the gap of a lone file, or of a folder that is no table, shows a path, masked where it has a value
        return next((path for path in self.evidence if self.masked.get(path, path) == gap.evidence), None)

    def is_part(self, name: str) -> bool:
        """Whether a table's name in a statement stands for a branch, a version or the metadata of a table."""
        return self.graph.identities.part_of(name) is not None

    def place_of(self, state: TableState) -> RemotePlace | None:
        """Of a table in S3: its folder there, with all versions."""
        return self._places.get(state.location)

    @cached_property
    def in_stores(self) -> dict[DatasetId, HdfsEvidence | StoredEvidence | RemoteEvidence]:
        """What searches of places in HDFS, object stores and S3 showed, by the place's dataset."""
        found: dict[DatasetId, HdfsEvidence | StoredEvidence | RemoteEvidence] = {}
        for remote in self.inventory.remote:
            if seen := self.remote.get(str(remote.location)):
                found[remote.dataset] = seen
        for folder in self.inventory.hdfs:
            if read := self.hdfs.get(str(folder.location)):
                found[folder.location.dataset] = read
        for place in self.inventory.object_places:
            if stored := self.stored.get(str(place.location)):
                found[place.location.dataset] = stored
        return found

    @cached_property
    def _places(self) -> dict[str, RemotePlace]:
        return {str(place.location): place for place in self.inventory.remote}

    def title_of(self, dataset: DatasetId) -> str:
        """The name people know a dataset by; its own where discovery found no table."""
        return self._titles.get(dataset, dataset.name)


def title(state: TableState) -> str:
    """The name people know a table by."""
    return state.table or state.location.rstrip("/").rsplit("/", 1)[-1]
