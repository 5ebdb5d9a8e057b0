"""Tables that are told to lie in one folder, or one below the other: the rows of each are rows of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import permutations, product

from pii_tracer.lineage.dataset_names import STORES, UNRESOLVED
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sources.evidence_merging import Proof
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.statement_facts import Told
from pii_tracer.lineage.sql.statement_effects import Effect
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.gap_kinds import LineageGapKind


def tell_shared(told: Iterable[Told], ledger: Ledger) -> None:
    """What goes into one of several tables over the same files is in all.

    A catalog has each of them at a place of its own, or one of them there alone. Two partitions of a folder are two
    places: tables lie side by side in `kind=users` and `kind=shops`.
    """
    at: dict[DatasetId, dict[DatasetId, Proof]] = defaultdict(dict)
    columns: dict[DatasetId, dict[str, str]] = defaultdict(dict)
    partitions: list[tuple[DatasetId, str, Proof]] = []
    for one in told:
        made = one.made
        dataset = (one.own.of(made.output) or ledger.identities.of_table(made.output)) if made.output else None
        if dataset is None or dataset.namespace == UNRESOLVED:
            continue
        if made.partition_at:
            partitions.append((dataset, made.partition_at, one.proof))
        columns[dataset] |= {name.lower(): name for name in made.columns}
        place = ledger.identities.folder(made.location) if made.location else None
        if place is not None and made.effect is not Effect.TEMPORARY:
            at[place].setdefault(dataset, one.proof)
    named = set(ledger.identities.aliases.values())
    for dataset, path, proof in partitions:  # what is written into the partition lies in another table's folder
        for place in filter(None, (ledger.identities.folder(path), ledger.identities.of_path(path))):
            there = {table for folder in (place, *_around(place)) for table in at.get(folder, ())}
            for table in sorted((there | ({place} & named)) - {dataset}):
                _share(dataset, table, columns, proof, ledger)
    for place, tables in at.items():
        proof = min(tables.values(), key=lambda p: p.key)
        over = {*tables, place} if place in named else set(tables)
        for old, new in permutations(sorted(over), 2):
            _share(old, new, columns, proof, ledger)
        for around in _around(place):  # many engines read what lies below a table's folder
            outer = {*at.get(around, ()), *({around} & named)} - over
            for old, new in product(sorted(over), sorted(outer)):
                _share(old, new, columns, proof, ledger)


def _around(place: DatasetId) -> Iterator[DatasetId]:
    """The folders that a folder lies in."""
    root = "" if place.namespace.startswith(STORES) else "/"
    name = place.name
    while name != root:
        name = name.rpartition("/")[0] or root
        yield place.model_copy(update={"name": name})


def _share(
    old: DatasetId, new: DatasetId, columns: dict[DatasetId, dict[str, str]], proof: Proof, ledger: Ledger
) -> None:
    known = {column.name.lower(): column.name for column in ledger.columns.get(old, ())} or columns[old]
    for name in known.values():
        source, target = (ColumnId(dataset=dataset, column=name) for dataset in (old, new))
        ledger.edge(source, target, Subtype.IDENTITY, False, proof)
    ledger.job(proof.job, None, frozenset({old}), new, proof)
    if not known:
        reason = f"a statement gives it the same folder as {old}, whose columns are not known"
        ledger.gap(new, LineageGapKind.NO_COLUMNS, reason, proof, "give the columns of the table in a catalog")
