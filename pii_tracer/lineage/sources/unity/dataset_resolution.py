"""Datasets of the ends of rows, by the whole name that the metastore's catalog lists, or else by path."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pii_tracer.lineage.dataset_names import UNRESOLVED, is_place, plain_name
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.unity.flows import End
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import LineageGapKind


def _in_store(dataset: DatasetId) -> bool:
    """Whether it is a place of files, and none of this machine: a workspace has paths of its own that look so."""
    return is_place(dataset) and dataset.namespace != "file"


@dataclass(frozen=True)
class Listed:
    """Tables and views that the catalogs of a source's metastore list. sure: whether it is known which catalogs these
    are; an export may be any metastore's.
    """

    names: frozenset[str]
    sure: bool

    @staticmethod
    def of(names: Collection[str], *, sure: bool) -> Listed:
        return Listed(frozenset(map(plain_name, names)), sure)


class Places:
    """A name of a catalog may have another path in a row: the table was created again elsewhere, and its old files may
    be there still. Then both are told apart, with a gap.
    """

    def __init__(self, source: str, ledger: Ledger, listed: Listed) -> None:
        self._source, self._ledger, self._listed = source, ledger, listed
        self._known = ledger.identities.aliases
        self._found: dict[End, DatasetId] = {}
        self._moved: set[tuple[str, DatasetId, DatasetId]] = set()
        self._outside: set[DatasetId] = set()
        self._unnamed: set[DatasetId] = set()
        self._unsure: set[tuple[str, DatasetId]] = set()

    def of(self, end: End) -> DatasetId:
        """The dataset of an end; a name that nothing explains is one of its own, with a gap.

        A name with its catalog means no table of another catalog whose name is shorter, and none of another metastore.
        """
        found = self._found.get(end)
        if found is None:
            found = self._found[end] = self._placed(end)
        return found

    def _placed(self, end: End) -> DatasetId:
        plain = plain_name(end.name)
        named = self._known.get(plain) if plain in self._listed.names else None
        place = self._ledger.identities.of_path(end.path) if end.path else None
        stored = place if place is not None and _in_store(place) else None
        if named is not None:
            if stored is not None and is_place(named) and stored != named:
                self._moved.add((end.name, named, stored))
                return stored
            if stored is None and not self._listed.sure:
                self._unsure.add((end.name, named))
            return named
        if stored is not None:
            return stored
        path = self._ledger.identities.without_partitions(end.path)
        made = DatasetId(namespace=UNRESOLVED, name=path or end.name)
        joined = self._ledger.identities.normal(made.namespace, made.name)  # by a line of `same`
        if _in_store(joined):
            return joined
        (self._outside if end.path else self._unnamed).add(made)
        return made

    def gaps(self) -> Iterator[LineageGap]:
        """What names and paths leave open."""
        for name, named, place in sorted(self._moved):
            yield self._gap(
                place,
                f"rows of lineage use the name {name}, which is {named} in a catalog: the table was recreated in a "
                "different place, or these are two tables",
                f"erase the data at the former place of {name}, or join the two names by `same` under `lineage`",
                named,
            )
        for outside in sorted(self._outside):
            yield self._gap(
                outside,
                "rows of lineage have a path of a workspace instead of the place of its files in a store",
                "join the path with that place by `same` under `lineage`",
            )
        for unnamed in sorted(self._unnamed):
            yield self._gap(
                unnamed,
                f"no catalog of the type `unity` lists the table {unnamed.name}, and no row of lineage names its path",
                "declare the table's catalog in the estate file, and let the account see the table",
            )
        for name, named in sorted(self._unsure):
            yield self._gap(
                DatasetId(namespace=UNRESOLVED, name=name),
                f"rows of lineage name {name} without a path. It is {named} in one catalog of the estate file, but "
                "nothing shows from which metastore the rows are",
                "read the rows from the workspace (`catalog` and `warehouse`), or export them with paths",
            )

    def _gap(self, dataset: DatasetId, reason: str, closes: str, same_as: DatasetId | None = None) -> LineageGap:
        return LineageGap(
            dataset=dataset,
            kind=LineageGapKind.UNRESOLVED_NAME,
            reason=reason,
            evidence=self._source,
            closes=closes,
            same_as=same_as,
        )
