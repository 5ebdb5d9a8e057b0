"""Follow canary persons through the estate: keys from the source, one search of all bytes, lineage beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pii_tracer.app.estate_readiness.estate_facts import Named
from pii_tracer.app.planning.folder_search import scan_estate
from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.app.planning.s3_place_search import search_places
from pii_tracer.app.planning.subject_sources import keys_of
from pii_tracer.app.settings import Settings
from pii_tracer.app.stored_places.hdfs_search import search_hdfs
from pii_tracer.app.stored_places.object_search import search_object_places
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.monitoring.readiness import Canary
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.keys.parquet_encryption.master_keys import file_keys
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, DatasetId, KeySet
from pii_tracer.model.errors import ConfigError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.number_keys import is_short_number
from pii_tracer.readiness.canaries import CanaryAnswer, CanarySearch, Searched, places_of
from pii_tracer.scan.search_workers import Searchers
from pii_tracer.scan.value_forms import Patterns, build_patterns
from planners.copies.match_key_resolution import Wanted
from planners.copies.scan_evidence import Evidence
from planners.locate.key_location import Carriage
from planners.locate.subject_survey import Survey, survey

_BY_KEYS = frozenset({Carries.KEY, Carries.COMPUTED_KEY, Carries.BRIDGE, Carries.IDENTIFIERS})
_LEFT_OUT_BY = frozenset({Subtype.FILTER, Subtype.JOIN})


@dataclass(frozen=True)
class Followed:
    """Lineage's answer for one subject of the estate file."""

    subject: Subject
    source: DatasetId
    carriages: Mapping[DatasetId, Carriage]


@dataclass(frozen=True)
class _Sought:
    """One canary with its key sets, whose names begin with the canary's number."""

    canary: Canary
    followed: Followed
    prefix: str
    key_sets: tuple[KeySet, ...] = field(repr=False)
    in_source: bool


@dataclass(frozen=True)
class CanaryPatterns:
    """What is searched for. mask: replaces values of canaries in a text."""

    sought: tuple[_Sought, ...] = ()
    patterns: Patterns | None = None

    def mask(self, text: str) -> str:
        return self.patterns.mask(text) if self.patterns else text


def key_of(canary: Canary, settings: Settings) -> str:
    """The canary's key, out of its reference. In memory only.

    Raises:
        ConfigError: the variable is not set, or the key is too short to be searched for.
        PlanError: the sealed key is of another estate key, or was altered.
    """
    kind, _, reference = canary.key.partition(":")
    where = f"the estate file, `readiness.canaries`, {canary.name}"
    if kind == "env":
        value = os.environ.get(reference, "")
        if not value:
            raise ConfigError(
                f"the environment variable {reference} is not set",
                where=where,
                todo="set the variable to the key of the canary",
            )
    else:
        value = settings.key().open_value(bytes.fromhex(reference), seal_name(canary.name))
    if is_short_number(value):
        raise ConfigError(
            "the key of a canary must not be a short number, because other numbers can equal it by chance",
            where=where,
            todo="plant a canary with a key of ten digits or more, or with letters in it",
        )
    return value


def seal_name(canary: str) -> str:
    """The name under which the key of a canary is sealed: it opens under no other."""
    return f"canary {canary}"


def patterns_of(
    settings: Settings,
    estate: Estate,
    inventory: Inventory,
    paths: EstatePaths,
    followed: Mapping[str, Followed],
    say: Callable[[str], None],
) -> CanaryPatterns:
    """Look the canaries up in their sources, and make the patterns of all their values.

    Raises:
        ConfigError, PlanError: as `key_of`.
        EstateError: a source is not in the estate.
    """
    sought = []
    for number, canary in enumerate(estate.readiness.canaries):
        one = followed[canary.subject]
        say(f"looking up the canary {canary.name} in {one.subject.source}")
        value = key_of(canary, settings)
        reference = settings.key().reference(canary.subject, value)
        wanted = [Wanted(canary.name, reference, value)]
        keys = keys_of(one.subject, wanted, paths, inventory, Readings(), say, source_erased=True)
        made: Survey = survey(one.subject, one.source, one.carriages, keys)
        prefix = f"canary {number}: "
        sets = tuple(k.model_copy(update={"name": prefix + k.name}) for k in made.key_sets.values() if k.values)
        there = not keys.key_only and not keys.unseen
        sought.append(_Sought(canary, one, prefix, sets, there))
    if not sought:
        return CanaryPatterns()
    key_sets = [key_set for one in sought for key_set in one.key_sets]
    return CanaryPatterns(tuple(sought), build_patterns(key_sets, file_keys(estate.parquet_encryption, settings.base)))


def search(
    found: CanaryPatterns,
    estate: Estate,
    inventory: Inventory,
    graph: LineageGraph,
    named: Named,
    searchers: Searchers,
    now: datetime,
    say: Callable[[str], None],
) -> CanarySearch:
    """Search every place that planning searches without a plan, and compare with lineage."""
    if found.patterns is None:
        return CanarySearch()
    readings = Readings()
    patterns = found.patterns
    short = any(key_set.weak for one in found.sought for key_set in one.key_sets)
    in_s3 = search_places(inventory, estate, patterns, short, say, searchers=searchers)
    evidence = {**scan_estate(inventory, patterns, readings, say, searchers), **in_s3.tables}
    hdfs = search_hdfs(inventory, estate, patterns, short, say, searchers=searchers)
    evidence |= {place: seen.evidence for place, seen in hdfs.items() if seen.evidence}
    # of places without tables it is only known that some canary is in them
    others = {place: (seen.found, bool(seen.unread)) for place, seen in in_s3.places.items()}
    others |= {place: (bool(seen.holders), bool(seen.unread)) for place, seen in hdfs.items() if not seen.evidence}
    stored = search_object_places(inventory, estate, patterns, now, say, OtherNumbers(), searchers=searchers)
    others |= {place: (bool(seen.holders), bool(seen.unread)) for place, seen in stored.items()}
    filtered = _filtered(graph, found.sought)
    answers = tuple(
        CanaryAnswer(
            name=one.canary.name,
            subject=one.canary.subject,
            source=named.mask(one.followed.subject.source),
            owner=named.rules.owner_of(one.followed.subject.source),
            in_source=one.in_source,
            places=places_of([*_tables(one, inventory, evidence, filtered, named), *_others(others, named)]),
        )
        for one in found.sought
    )
    return CanarySearch(answers, _not_looked_at(estate, named))


def _tables(
    one: _Sought,
    inventory: Inventory,
    evidence: Mapping[str, Evidence],
    filtered: frozenset[DatasetId],
    named: Named,
) -> Iterable[Searched]:
    by_location = {state.location: state for state in inventory.tables}
    carriages = one.followed.carriages
    away = {name.lower() for name in one.canary.absent_from}
    for state in inventory.tables:
        seen = evidence.get(state.location)
        carriage = _carriage(state, by_location, carriages)
        by_lineage = carriage is not None and carriage.carries in _BY_KEYS
        expected = by_lineage and state.dataset in carriages
        # a table that lineage leads persons to without a key is a gap of its own, and no unknown copy
        known = by_lineage or (carriage is not None and carriage.carries is Carries.UNKNOWN)
        found = seen is not None and _seen(one.prefix, seen, known)
        yield Searched(
            where=named.of(state),
            owner=named.owner(state),
            expected=expected or (found and known),
            seen=found,
            unread=seen is None or bool(seen.unread),
            filtered=carriage is not None and not filtered.isdisjoint((*carriage.hops, state.dataset)),
            absent=bool(away & {name.lower() for name in (state.table, state.location) if name}),
        )
    for gap in inventory.gaps:
        seen = evidence.get(gap.evidence) if gap.kind is GapKind.UNKNOWN_FILE else None
        if seen is not None:
            where, owner = named.mask(gap.evidence), named.rules.owner_of(gap.evidence)
            yield Searched(where, owner, False, _seen(one.prefix, seen, False), bool(seen.unread))


def _carriage(
    state: TableState, by_location: Mapping[str, TableState], carriages: Mapping[DatasetId, Carriage]
) -> Carriage | None:
    """Of the table, or of the one whose files it has."""
    for location in (state.location, state.clone_of, state.same_files_as):
        origin = by_location.get(location) if location else None
        if origin is not None and origin.dataset in carriages:
            return carriages[origin.dataset]
    return None


def _seen(prefix: str, seen: Evidence, known: bool) -> bool:
    """Whether a canary was seen. Short numbers count only where lineage leads: elsewhere they are anybody's."""
    strong = any(name.startswith(prefix) for name in seen.strong)
    return strong or (known and any(digits.key_set.startswith(prefix) for digits in seen.digits))


def _others(others: Mapping[str, tuple[bool, bool]], named: Named) -> Iterable[Searched]:
    for place, (seen, unread) in sorted(others.items()):
        yield Searched(named.mask(place), named.rules.owner_of(place), False, seen, unread)


def _filtered(graph: LineageGraph, sought: Sequence[_Sought]) -> frozenset[DatasetId]:
    """Datasets whose rows a filter or a join decides about."""
    reached = {dataset for one in sought for dataset in one.followed.carriages}
    return frozenset(d for d in reached if any(m.subtype in _LEFT_OUT_BY for m in graph.memberships_into(d)))


def _not_looked_at(estate: Estate, named: Named) -> tuple[str, ...]:
    """What only a plan reads."""
    found = [f"archive {archive.name}" for archive in estate.archives]
    found += [f"topic {topic.name}" for cluster in estate.kafka for topic in cluster.topics]
    found += [f"lakeFS repository {repo.name}" for server in estate.lakefs for repo in server.repositories]
    found += [f"vault {vault.name}" for vault in estate.vaults] + [f"backup {backup.name}" for backup in estate.backups]
    return tuple(map(named.mask, found))
