"""Lineage's answer for one kind of subject, the keys that come out of it, and the world they are looked for in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pii_tracer.config import Subject
from pii_tracer.inventory import Inventory, TableState
from pii_tracer.lineage.graph import LineageGraph
from pii_tracer.model import DatasetId, KeySet
from planners.carriage import Carriage
from planners.evidence import Evidence
from planners.keys import Derived, Keys, derive


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

    @property
    def key_sets(self) -> Mapping[str, KeySet]:
        """By name; names start with the subject's name."""
        return {d.keys.name: d.keys for d in self.derived.values()}


def survey(subject: Subject, source: DatasetId, carriages: Mapping[DatasetId, Carriage], keys: Keys) -> Survey:
    """Derive the key set of every identifier and of every expression that lineage recorded over one."""
    wanted = {(column, "x") for column in keys.base}
    for carriage in carriages.values():
        wanted |= {(trace.origin, trace.expression) for _, trace in carriage.terms}
    derived: dict[tuple[str, str], Derived] = {}
    for column, expression in sorted(wanted):
        made = derive(keys, column, expression)
        named = made.keys.model_copy(update={"name": f"{subject.name}.{made.keys.name}"})
        derived[column, expression] = Derived(named, made.shared)
    return Survey(subject, source, carriages, keys, derived)


@dataclass(frozen=True)
class World:
    """What the copies are made from, beside the survey."""

    graph: LineageGraph
    inventory: Inventory
    evidence: Mapping[str, Evidence]
    is_dev: Callable[[str], bool]


def title(state: TableState) -> str:
    """The name people know a table by."""
    return state.table or state.location.rstrip("/").rsplit("/", 1)[-1]
