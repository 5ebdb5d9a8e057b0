"""Harvests of files alone, as most tests want them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pii_tracer.config.estate_file import Relocation
from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.harvest import Given, Summary, harvest_all
from pii_tracer.model.datasets import Column, DatasetId


def harvest(
    sources: LineageSources,
    base: Path,
    relocations: Iterable[Relocation] = (),
    aliases: Mapping[str, DatasetId] | None = None,
    schemas: Mapping[str, Sequence[Column]] | None = None,
) -> LineageGraph:
    """The lineage graph of these files."""
    return harvest_with_summary(sources, base, relocations, aliases, schemas)[0]


def harvest_with_summary(
    sources: LineageSources,
    base: Path,
    relocations: Iterable[Relocation] = (),
    aliases: Mapping[str, DatasetId] | None = None,
    schemas: Mapping[str, Sequence[Column]] | None = None,
) -> tuple[LineageGraph, Summary]:
    """As `harvest`, with the numbers of what was read."""
    found = harvest_all(sources, Given(base, relocations, aliases or {}, schemas or {}))
    return found.graph, found.summary
