"""From inventory and lineage graph to the facts that a reading compares: coverage, key columns, jobs, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pii_tracer.config.monitoring.readiness import ReadinessSettings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import DatasetId
from pii_tracer.readiness.estate_snapshot import FOR_EVER, Coverage, PlaceFacts, Setting, TableFacts
from pii_tracer.retention.checked_tables import tables_of
from pii_tracer.retention.settings_check import Table


def masked(text: str) -> str:
    """The text itself, where no canary is known whose values could be in it."""
    return text


@dataclass(frozen=True)
class Named:
    """Names and owners of tables and places. mask: takes values of canaries out of names."""

    rules: ReadinessSettings
    mask: Callable[[str], str] = masked

    def of(self, state: TableState) -> str:
        """What people know a table by."""
        return self.mask(state.table or state.location)

    def owner(self, state: TableState) -> str:
        """Who answers for a table."""
        return self.rules.owner_of(state.table, state.location, state.dataset.name)


def table_facts(
    inventory: Inventory,
    graph: LineageGraph,
    paths: EstatePaths,
    sources: frozenset[DatasetId],
    keys: Mapping[DatasetId, frozenset[str]],
    named: Named,
) -> tuple[TableFacts, ...]:
    """The facts of every table. sources: where persons come in. keys: columns into which lineage leads their values."""
    explained = explained_columns(graph)
    settings = {t.location: _kept(t) for t in tables_of(inventory, paths, lambda _: ())}
    seen: dict[str, str] = {}

    def mask(text: str) -> str:
        return seen[text] if text in seen else seen.setdefault(text, named.mask(text))

    feeding = np.diff(np.asarray(graph.columnar.feed_start).astype(np.int64)) > 0
    found = []
    for state in inventory.tables:
        columns = tuple((mask(column.name), mask(column.type)) for column in state.columns)
        into = explained.get(state.dataset, frozenset())
        known = {column.name.lower() for column in state.columns}
        # where the columns of today are not known, those of the lineage count
        count = len(into & known) if known else len(into)
        number = graph.number(state.dataset)
        feeds = number is not None and bool(feeding[number])
        found.append(
            TableFacts(
                name=named.of(state),
                location=mask(state.location),
                owner=named.owner(state),
                coverage=_coverage(state.dataset in sources, count, len(known), feeds),
                columns=columns,
                keys=tuple(sorted(mask(c) for c in keys.get(state.dataset, ()) if c.lower() in known)),
                explained=count,
                jobs=tuple(dict.fromkeys(mask(job.job) for job in graph.jobs_into(state.dataset))),
                # a table that was made again can have the snapshot that it had before
                written=f"{state.snapshot} {state.rows} {state.files} {state.bytes}",
                settings=settings.get(state.location, {}),
            )
        )
    return tuple(sorted(found, key=lambda table: (table.name, table.location)))


def _coverage(source: bool, explained: int, columns: int, feeds: bool) -> Coverage:
    if source:
        return Coverage.SOURCE
    if explained and explained >= columns:
        return Coverage.FULL
    return Coverage.PARTIAL if explained or feeds else Coverage.NONE


def explained_columns(graph: LineageGraph) -> dict[DatasetId, frozenset[str]]:
    """By dataset, the columns into which a value edge leads, in lower case. Goes over the arrays, for large graphs."""
    arrays = graph.columnar
    starts, ends = np.asarray(arrays.edge_start[:-1]), np.asarray(arrays.edge_direct)
    with_values = np.flatnonzero(ends[: len(starts)] > starts)
    owners = np.searchsorted(np.asarray(arrays.column_start), with_values, side="right") - 1
    words = [word.lower() for word in arrays.words]
    names: dict[int, set[str]] = {}
    for owner, word in zip(owners.tolist(), np.asarray(arrays.column_name)[with_values].tolist(), strict=True):
        names.setdefault(owner, set()).add(words[word])
    return {graph.dataset_numbered(number): frozenset(columns) for number, columns in names.items()}


def _kept(table: Table) -> dict[str, Setting]:
    """What a table's own settings keep, and every other property, whose change may keep bytes as well."""
    found = {name: Setting(value) for name, value in table.properties.items()}
    for kept in format_of(table.format).kept_by(table.properties, table.refs):
        name = f"{kept.setting} of {kept.ref}" if kept.ref else kept.setting
        days = FOR_EVER if kept.days is None else kept.days
        found[name] = Setting(kept.value or "the default", days if kept.stored else None)
    return found


def place_facts(inventory: Inventory, named: Named) -> tuple[PlaceFacts, ...]:
    """Buckets, object stores, topics and repositories with the settings that keep bytes."""
    owner = named.rules.owner_of
    found = []
    for objects in inventory.objects:
        settings = {
            "object lock": Setting(str(objects.object_lock)),
            "default retention": lock_setting(objects.default_retention),
            "lifecycle expiry": days_setting(objects.expires_after_days),
            "lifecycle expiry of old versions": Setting(str(objects.noncurrent_days)),
        }
        name = named.mask(objects.location)
        found.append(PlaceFacts(name, owner(objects.of, objects.location), objects.versioned, settings))
    for place in inventory.object_places:
        seconds = place.settings.soft_delete_seconds
        settings = {"soft delete": Setting(f"{seconds} s", seconds / 86_400)}
        name = named.mask(str(place.location))
        found.append(PlaceFacts(name, owner(str(place.location)), settings=settings))
    for topic in inventory.topics:
        kept = {name: Setting(value, _milliseconds(name, value)) for name, value in topic.settings.items()}
        found.append(PlaceFacts(named.mask(topic.location), owner(topic.declared.of, topic.location), settings=kept))
    for repository in inventory.lakefs:
        rules = repository.rules
        longest = max([rules.default_days, *rules.branches.values()]) if rules else FOR_EVER
        settings = {"collection rules": Setting(rules.told() if rules else "none", longest)}
        found.append(PlaceFacts(named.mask(repository.location), repository.declared.owner, settings=settings))
    return tuple(sorted(found, key=lambda place: place.name))


def days_setting(days: int | None) -> Setting:
    """When a rule removes bytes; without one they stay for ever."""
    return Setting("none", FOR_EVER) if days is None else Setting(str(days), days)


def lock_setting(told: str | None) -> Setting:
    """The lock that new objects get, as `GOVERNANCE, 30 days`."""
    if told is None:
        return Setting("none")
    number, unit = told.rpartition(", ")[2].split(" ")
    return Setting(told, int(number) * (366 if unit == "years" else 1)) if number.isdecimal() else Setting(told)


def _milliseconds(name: str, value: str) -> float | None:
    if not name.endswith(".ms") or not value.lstrip("-").isdecimal():
        return None
    return int(value) / 86_400_000 if int(value) >= 0 else FOR_EVER
