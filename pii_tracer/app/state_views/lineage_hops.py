"""The harvested lineage, one hop at a time: a dataset or column, what is directly beside it, and what is not known.

Expressions are shown without their literals, which can name a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pii_tracer.app.settings import Settings
from pii_tracer.app.state_views.untrusted_files import Broken, Remembered, key_of
from pii_tracer.lineage.graph.edges import Edge, EdgeType, LineageGap
from pii_tracer.lineage.graph.graph_file import load
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.sql.text.literal_redaction import hidden
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.errors import LineageError

MOST_BESIDE = 12
"""Datasets or columns that one hop shows in each direction; those with gaps come first."""
MOST_OPENED = 60
_DEFAULT_CATALOG = "spark_catalog."
At = DatasetId | ColumnId


@dataclass(frozen=True)
class KnownDataset:
    """A dataset of the graph. name: a table's name, else the end of its path."""

    key: str
    name: str
    dataset: DatasetId
    gaps: int


@dataclass(frozen=True)
class HopNode:
    """One dataset or column. tip: its whole name. hidden_up, hidden_down: direct neighbours that are not shown.

    opened: its neighbours are shown. origin_known: something is known to go into it.
    """

    key: str
    dataset_key: str
    name: str
    tip: str
    column: str | None
    opened: bool
    gaps: int
    origin_known: bool
    hidden_up: int
    hidden_down: int


@dataclass(frozen=True)
class HopLink:
    """From one node to another. values: edges along which values go. shown: expressions, without literals.

    where: evidence of the first edge, or of the job.
    """

    source: str
    target: str
    values: int
    masked: int
    shown: tuple[str, ...]
    where: str


@dataclass(frozen=True)
class Hops:
    """What has been opened from a start. gaps: of the shown datasets; elsewhere: how many may lead anywhere."""

    start: HopNode
    nodes: tuple[HopNode, ...]
    links: tuple[HopLink, ...]
    gaps: tuple[LineageGap, ...]
    elsewhere: int
    columns: tuple[str, ...]
    beside: tuple[tuple[str, HopNode], ...]


class KnownLineage:
    """A loaded graph with the names that people know."""

    def __init__(self, graph: LineageGraph) -> None:
        self.graph = graph
        names: dict[DatasetId, str] = {}
        for alias, dataset in graph.aliases().items():
            if (alias.count("."), alias) > (names.get(dataset, "").count("."), names.get(dataset, "")):
                names[dataset] = alias
        self._names = names
        self.elsewhere = tuple(gap for gap in graph.gaps if gap.dataset is None)
        self._gaps: dict[DatasetId, list[LineageGap]] = {}
        for gap in graph.gaps:
            if gap.dataset is not None:
                self._gaps.setdefault(gap.dataset, []).append(gap)
        found = (
            KnownDataset(key_of(str(d)), self.name(d), d, len(self._gaps.get(d, ())))
            for d in {*graph.datasets(), *self._gaps}
        )
        self.datasets = tuple(sorted(found, key=lambda d: (not d.gaps, d.name, str(d.dataset))))
        self._by_key = {one.key: one.dataset for one in self.datasets}

    def name(self, dataset: DatasetId) -> str:
        """A table's name, or the last two parts of a path."""
        parts = [part for part in dataset.name.split("/") if part]
        return self._names.get(dataset, "").removeprefix(_DEFAULT_CATALOG) or "/".join(parts[-2:]) or str(dataset)

    def hops(self, key: str, column: str | None, opened: Sequence[str]) -> Hops | None:
        """What is shown from a start with these keys opened; None where the graph has no such start."""
        dataset = self._by_key.get(key)
        if dataset is None or (column is not None and column not in self.graph.column_names(dataset)):
            return None
        start: At = dataset if column is None else ColumnId(dataset=dataset, column=column)
        wanted, found = set(opened[:MOST_OPENED]), {start: (0, 0)}
        left, done = [start], set()
        while left:
            at = left.pop(0)
            done.add(at)
            up, down = (self._weighty(some) for some in self._beside(at))
            found[at] = max(0, len(up) - MOST_BESIDE), max(0, len(down) - MOST_BESIDE)
            for other in (*up[:MOST_BESIDE], *down[:MOST_BESIDE]):
                if other not in found:
                    found[other] = 0, 0
                    if _key(other) in wanted:
                        left.append(other)
        nodes = {at: self._node(at, at in done, *cut) for at, cut in found.items()}
        datasets = dict.fromkeys(_dataset(at) for at in found)
        ways = zip(("comes from", "goes into"), self._beside(start), strict=True)
        beside = [(way, at) for way, some in ways for at in self._weighty(some)]
        return Hops(
            start=nodes[start],
            nodes=tuple(nodes.values()),
            links=tuple(self._links(nodes)),
            gaps=tuple(gap for d in datasets for gap in self._gaps.get(d, ())),
            elsewhere=len(self.elsewhere),
            columns=tuple(sorted(self.graph.column_names(dataset))),
            beside=tuple((way, self._node(at, False, 0, 0)) for way, at in beside),
        )

    def _beside(self, at: At) -> tuple[Sequence[At], Sequence[At]]:
        if isinstance(at, ColumnId):
            return self.graph.columns_beside(at)
        return self.graph.sources_of(at), self.graph.targets_of(at)

    def _weighty(self, some: Sequence[At]) -> list[At]:
        """Those with gaps first: what is not known is not cut before what is."""
        return sorted(some, key=lambda at: (_dataset(at) not in self._gaps, str(at)))

    def _node(self, at: At, opened: bool, hidden_up: int, hidden_down: int) -> HopNode:
        dataset, column = _dataset(at), at.column if isinstance(at, ColumnId) else None
        name = self.name(dataset)
        return HopNode(
            key=_key(at),
            dataset_key=key_of(str(dataset)),
            name=name if column is None else f"{name}.{column}",
            tip=str(dataset) if column is None else f"{dataset}.{column}",
            column=column,
            opened=opened,
            gaps=len(self._gaps.get(dataset, ())),
            origin_known=bool(self._beside(at)[0] or (column is None and self.graph.jobs_into(dataset))),
            hidden_up=hidden_up,
            hidden_down=hidden_down,
        )

    def _links(self, nodes: dict[At, HopNode]) -> list[HopLink]:
        made = []
        for target, node in nodes.items():
            into = self.graph.edges_into_column(target) if isinstance(target, ColumnId) else ()
            edges = into or self.graph.edges_into(_dataset(target))
            for source in self._beside(target)[0]:
                if source in nodes and source != target:
                    of_it = [
                        e for e in edges if (e.source if isinstance(source, ColumnId) else e.source.dataset) == source
                    ]
                    made.append(self._link(nodes[source].key, node.key, of_it, _dataset(target)))
        return made

    def _link(self, source: str, target: str, edges: list[Edge], into: DatasetId) -> HopLink:
        values = [edge for edge in edges if edge.type is EdgeType.DIRECT]
        proofs = [proof.where for edge in edges for proof in edge.evidence]
        jobs = [] if proofs else [job.where or job.job for job in self.graph.jobs_into(into)]
        shown = dict.fromkeys(hidden(edge.expression) for edge in values if edge.expression)
        return HopLink(
            source=source,
            target=target,
            values=len(values),
            masked=sum(edge.masking for edge in values),
            shown=tuple(shown)[:3],
            where=next(iter([*proofs, *jobs]), ""),
        )


class LineageFile:
    """The graph of the last harvest, loaded again after the next one."""

    def __init__(self, settings: Settings) -> None:
        self._file: Path = settings.state / "lineage.graph"
        self._kept: Remembered[KnownLineage] = Remembered(1)

    def read(self) -> KnownLineage | Broken | None:
        """The lineage; None where nothing was harvested yet."""
        try:
            return self._kept.get(self._file, lambda: KnownLineage(load(self._file)))
        except FileNotFoundError:
            return None
        except (LineageError, OSError) as error:
            what = error.what if isinstance(error, LineageError) else "the lineage graph cannot be read"
            return Broken("lineage", str(self._file), what, "`pii-tracer harvest` writes a new one")


def _dataset(at: At) -> DatasetId:
    return at.dataset if isinstance(at, ColumnId) else at


def _key(at: At) -> str:
    return key_of(f"{at.dataset}\x1f{at.column}" if isinstance(at, ColumnId) else str(at))
