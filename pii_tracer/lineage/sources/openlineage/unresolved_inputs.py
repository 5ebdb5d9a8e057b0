"""Inputs that events call by the name of a table which is known elsewhere: nobody tells that they are the same."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from pii_tracer.lineage.dataset_names import is_place
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.openlineage.events import Events
from pii_tracer.lineage.sources.openlineage.run_merging import Run
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import LineageGapKind

_ELSEWHERE = re.compile(
    r"(?:azurecosmos|azurekusto|bigquery|cassandra|crdb|db2|kafka|mongodb|mssql|mysql|oracle|postgres|postgresql|pubsub"
    r"|redshift|snowflake|spanner|sqlserver|teradata)(?::|$)",
    re.IGNORECASE,
)
"""Systems with tables and topics of their own: https://openlineage.io/docs/spec/naming."""


def tell_names(events: Events, ledger: Ledger) -> None:
    """A gap for each input that is no known dataset and has, itself or by a symlink, the name of a known table.

    Not where the same run writes that table: it was loaded from something of its name.
    """
    known = frozenset(ledger.identities.aliases.values())
    symlinks = _symlinks(events.symlinks)
    ledger.plain_gaps += _several_places(events)
    told: set[tuple[DatasetId, DatasetId]] = set()
    for run in events.runs:
        for dataset in sorted(_read(run) - known):
            for name in _names(dataset, symlinks):
                table = ledger.identities.of_rows(name)
                if table in known and table not in run.outputs and (dataset, table) not in told:
                    told.add((dataset, table))
                    ledger.plain_gaps.append(_gap(run, dataset, name, table))
    ledger.plain_gaps += (_could_be(*pair) for pair in sorted(events.doubtful) if told.isdisjoint((pair, pair[::-1])))


def _several_places(events: Events) -> Iterator[LineageGap]:
    """A gap for each further place that symlinks tell for one table of one metastore: it was moved, or there are two.

    Each place is followed for itself, and nothing tells that the rows of one are those of the other.
    """
    for table, places in sorted(events.several_places.items()):
        first, *others = sorted(places)
        for other in others:
            yield LineageGap(
                dataset=other,
                kind=LineageGapKind.UNRESOLVED_NAME,
                reason=(
                    f"symlinks call both {first} and {other} {table}, but nothing shows whether these are the same "
                    "table"
                ),
                evidence=f"symlinks of {table}",
                closes="let the sender of the events report a move by a lifecycleStateChange facet (RENAME), or one"
                " place",
                same_as=first,
            )


def _could_be(one: DatasetId, other: DatasetId) -> LineageGap:
    return LineageGap(
        dataset=other,
        kind=LineageGapKind.UNRESOLVED_NAME,
        reason=f"{one} and {other} may be the same dataset, but nothing shows it",
        evidence=f"names in events: {one}, {other}",
        closes=(
            "let the sender of the events use the name in the catalog. Or, if both are the same dataset, write under "
            f"`lineage` of the estate file: {_joining(other, one)}"
        ),
        same_as=one,
    )


def _joining(one: DatasetId, other: DatasetId) -> str:
    """The line of the estate file that makes two names one dataset."""
    told = {"from": one.namespace, "to": other.namespace}
    if one.name != other.name:
        told = {"from": one.namespace, "name": one.name, "to": other.namespace, "to_name": other.name}
    return f"same: [{json.dumps(told, ensure_ascii=False)}]"


def _read(run: Run) -> set[DatasetId]:
    """Everything that a run reads, also what it names at its columns only."""
    named = {edge[0].dataset for edge in run.edges} | {member[0].dataset for member in run.members}
    return {*run.inputs, *named} - run.outputs


def _symlinks(links: Mapping[str, set[DatasetId]]) -> dict[DatasetId, list[str]]:
    found: dict[DatasetId, list[str]] = defaultdict(list)
    for name in sorted(links):
        for dataset in links[name]:
            found[dataset].append(name)
    return found


def _names(dataset: DatasetId, symlinks: Mapping[DatasetId, list[str]]) -> Iterator[str]:
    """The names of tables that a dataset has."""
    in_store = is_place(dataset) and dataset.namespace != "file"
    if not (_ELSEWHERE.match(dataset.namespace) or "/" in dataset.name or (in_store and "." not in dataset.name)):
        yield dataset.name
    yield from symlinks.get(dataset, ())


def _gap(run: Run, dataset: DatasetId, name: str, table: DatasetId) -> LineageGap:
    return LineageGap(
        dataset=dataset,
        kind=LineageGapKind.UNRESOLVED_NAME,
        reason=(
            f"events read {dataset}, which is also called {name}, like {table}, but nothing shows whether these are "
            "the same table"
        ),
        evidence=run.proof.first[1],
        closes=(
            "let the sender of the events give the table's place by a symlinks facet, or use the table's place as "
            "its name"
        ),
        same_as=table,
    )
