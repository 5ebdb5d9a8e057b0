"""Flows to runs of jobs, as those of events are, with the datasets of the estate.

A row says that a column comes from another one, and not how: such an edge is a TRANSFORMATION without an expression.
Nobody takes its values for the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sources.evidence_merging import Proof
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.openlineage.run_merging import Ended, Run
from pii_tracer.lineage.sources.unity.dataset_resolution import Listed, Places
from pii_tracer.lineage.sources.unity.flows import Flow, Flows, Seen
from pii_tracer.model.datasets import ColumnId, DatasetId

_T = TypeVar("_T")
_SQL_ALONE = frozenset({"DASHBOARD_V3", "DBSQL_DASHBOARD", "DBSQL_QUERY"})
"""Entities whose whole text is SQL: what only reads shows rows to a person. What has no source writes constants, or
rows of a file: nobody tells whose."""
_NO_ENTITY = "a client without an entity"
_NEVER = Seen(0, 0, 0)
_Pair = tuple[ColumnId, ColumnId]


@dataclass(frozen=True)
class Noted:
    """A run with what it leaves open. told: inputs of which a column goes into the output. elsewhere: what of that
    another source tells. unsourced: columns of the output that come from no column that is named. by_word: whether the
    owner says that another source tells the job.
    """

    run: Run
    told: frozenset[DatasetId]
    elsewhere: frozenset[_Pair]
    unsourced: tuple[str, ...]
    by_word: bool

    @property
    def nothing_new(self) -> bool:
        """Whether another source tells all of it."""
        return self.by_word and not (self.run.edges or self.unsourced) and self.run.inputs == self.told != frozenset()


@dataclass
class _Told:
    """What the rows of one job tell of one output, or of what it only reads."""

    seen: Seen = _NEVER
    inputs: set[DatasetId] = field(default_factory=set)
    edges: set[_Pair] = field(default_factory=set)
    elsewhere: set[_Pair] = field(default_factory=set)
    told: set[DatasetId] = field(default_factory=set)
    unsourced: set[str] = field(default_factory=set)


def unity_runs(
    source: str, flows: Flows, ledger: Ledger, listed: Listed, elsewhere: Collection[str] = ()
) -> list[Noted]:
    """The runs that the flows of a source tell. source: as it is called in evidence. elsewhere: what ran of which the
    ledger has more already, by the owner's word; what it does not have is told all the same.

    Rows without a source are a run of their own, and so are those without a target: no other row tells where the data
    of these came from, or went. Views that catalogs show are left to their own queries.
    """
    known, places = _Known(ledger), Places(source, ledger, listed)
    written: dict[tuple[tuple[str, str], DatasetId], _Told] = defaultdict(_Told)
    blind: dict[tuple[tuple[str, str], DatasetId], _Told] = defaultdict(_Told)
    nowhere: dict[tuple[str, str], _Told] = defaultdict(_Told)
    for flow, seen in sorted(flows.seen.items(), key=repr):
        origin = places.of(flow.source) if flow.source else None
        target = places.of(flow.target) if flow.target else None
        if target is None:
            if origin is None or flow.entity[0] in _SQL_ALONE:
                continue
            one = nowhere[flow.entity]
            one.inputs.add(origin)
        elif target.namespace == VIEW:
            continue
        elif origin is None:
            one = blind[flow.entity, target]
        else:
            one = written[flow.entity, target]
            _take(one, flow, origin, target, known if named_in(flow.entity, elsewhere) else None)
        one.seen = one.seen.joined(seen)
    made = [
        _noted(source, entity, {target}, one, named_in(entity, elsewhere))
        for rows in (written, blind)
        for (entity, target), one in rows.items()
    ]
    made += [_noted(source, entity, set(), one, named_in(entity, elsewhere)) for entity, one in nowhere.items()]
    ledger.plain_gaps += places.gaps()
    return sorted(made, key=lambda one: (one.run.proof.job, sorted(one.run.outputs), sorted(one.run.inputs)))


def _take(one: _Told, flow: Flow, origin: DatasetId, target: DatasetId, known: _Known | None) -> None:
    """A row with a source and a target. Rows that no entity is told of are not one client's, and tell nothing of each
    other."""
    one.inputs.add(origin)
    column, into = flow.columns or ("", "")
    if column and into:
        pair = ColumnId(dataset=origin, column=column), ColumnId(dataset=target, column=into)
        (one.elsewhere if known and known.column(*pair) else one.edges).add(pair)
    elif into:
        one.unsourced.add(into)
    if flow.entity[1] and ((column and into) or (known and known.table(origin, target))):
        one.told.add(origin)


def named_in(entity: tuple[str, str], elsewhere: Collection[str]) -> bool:
    """Whether the owner says that another source tells what an entity does."""
    return "" not in entity and not {entity[0], " ".join(entity)}.isdisjoint(elsewhere)


class _Known:
    """Whose values go where, as other sources tell, also by way of views."""

    def __init__(self, ledger: Ledger) -> None:
        self._columns = ledger.made_of()
        self._tables: dict[DatasetId, set[DatasetId]] = defaultdict(set)
        for into, sources in self._columns.items():
            self._tables[into.dataset] |= {source.dataset for source in sources}

    def column(self, source: ColumnId, into: ColumnId) -> bool:
        source, into = (ColumnId(dataset=c.dataset, column=c.column.lower()) for c in (source, into))
        return source in _behind(self._columns, into, lambda column: column.dataset.namespace == VIEW)

    def table(self, origin: DatasetId, target: DatasetId) -> bool:
        return origin in _behind(self._tables, target, lambda dataset: dataset.namespace == VIEW)


def _behind(made_of: Mapping[_T, set[_T]], target: _T, is_view: Callable[[_T], bool]) -> set[_T]:
    """All that something is directly made of, views looked through."""
    found: set[_T] = set()
    left = [target]
    while left:
        more = made_of.get(left.pop(), set()) - found
        found |= more
        left += filter(is_view, more)
    return found


def _job(source: str, entity: tuple[str, str]) -> str:
    return f"{source}: " + (" ".join(filter(None, entity)) or _NO_ENTITY)


def _noted(source: str, entity: tuple[str, str], outputs: set[DatasetId], one: _Told, by_word: bool) -> Noted:
    mark = ", ".join(f"rows about {d}" for d in sorted(outputs)) or "rows without a target"
    job, seen = _job(source, entity), one.seen
    run = Run(
        proof=Proof("unity", job, (seen.first, mark), (seen.last, mark), max(1, seen.rows)),
        ended=Ended.COMPLETE,
        parts=frozenset(),
        inputs=frozenset(one.inputs),
        outputs=frozenset(outputs),
        told=frozenset(outputs) if one.edges else frozenset(),
        edges=tuple((a, b, Subtype.TRANSFORMATION, False) for a, b in sorted(one.edges)),
        members=(),
        sql=(),
        code=() if entity[0] in _SQL_ALONE else (entity[0] or "unknown",),
        checked=frozenset(),
        kept=frozenset(),
        grown=frozenset(),
        placed=frozenset(),
        made=frozenset(),
        unread=(),
        wrong=(),
    )
    return Noted(run, frozenset(one.told), frozenset(one.elsewhere), tuple(sorted(one.unsourced)), by_word)
