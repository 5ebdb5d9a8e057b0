"""Flows to runs of jobs, as those of events are, with the datasets of the estate.

A row says that a column comes from another one, and not how: such an edge is a TRANSFORMATION without an expression.
Nobody takes its values for the same. A table's row without rows of columns leaves the gap that columns are not told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pii_tracer.lineage.dataset_names import UNRESOLVED, VIEW, is_place, plain_name
from pii_tracer.lineage.graph.edges import LineageGap, Subtype
from pii_tracer.lineage.sources.evidence import Proof, iso
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.openlineage.events import Run
from pii_tracer.lineage.sources.openlineage.run_merging import Ended
from pii_tracer.lineage.sources.unity.flows import End, Flow, Flows, Seen
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.gap_kinds import LineageGapKind

_T = TypeVar("_T")
_SQL_ALONE = frozenset({"DASHBOARD_V3", "DBSQL_DASHBOARD", "DBSQL_QUERY"})
"""Entities whose whole text is SQL: what only reads shows rows to a person, and what has no source writes constants."""
_NO_ENTITY = "a client without an entity"
_OF_WORKSPACE = ("/Volumes/", "dbfs:", "/dbfs/", "/Workspace/")
"""How paths begin that only a workspace understands."""
_NEVER = Seen(0, 0, 0)
_Job = tuple[tuple[str, str], DatasetId]
"""Type and id of what ran, and what it read or wrote."""


@dataclass
class _Told:
    """What the rows of one job tell of one output, or of what it only reads."""

    seen: Seen = _NEVER
    inputs: set[DatasetId] = field(default_factory=set)
    edges: set[tuple[ColumnId, ColumnId]] = field(default_factory=set)


def unity_runs(source: str, flows: Flows, ledger: Ledger, elsewhere: Collection[str] = ()) -> list[Run]:
    """The runs that the flows of a source tell. source: as it is called in evidence. elsewhere: what ran whose flows
    the ledger has already, with more about them; those that it does not have are told all the same.

    Views that catalogs show are left to their own queries.
    """
    known = _Known(ledger) if elsewhere else None
    places = _Places(source, ledger)
    written: dict[_Job, _Told] = {}
    read: dict[_Job, Seen] = {}
    led_on: set[_Job] = set()
    for flow, seen in sorted(flows.seen.items(), key=repr):
        origin = places.of(flow.source) if flow.source else None
        target = places.of(flow.target) if flow.target else None
        if target is None:
            if origin is not None and flow.entity[0] not in _SQL_ALONE:
                read[flow.entity, origin] = seen.joined(read.get((flow.entity, origin), _NEVER))
        elif target.namespace != VIEW:
            if known and _named(flow.entity, elsewhere) and known.tells(flow, origin, target):
                led_on |= {(flow.entity, origin)} if origin is not None else set()
                continue
            one = written.setdefault((flow.entity, target), _Told())
            one.seen = one.seen.joined(seen)
            if origin is not None:
                one.inputs.add(origin)
                led_on.add((flow.entity, origin))
                if flow.columns and all(flow.columns):
                    column, into = flow.columns
                    one.edges.add((ColumnId(dataset=origin, column=column), ColumnId(dataset=target, column=into)))
    made = [_run(source, entity, {target}, one) for (entity, target), one in written.items()]
    nowhere: dict[tuple[str, str], _Told] = defaultdict(_Told)
    for (entity, origin), seen in read.items():
        if (entity, origin) not in led_on:
            nowhere[entity].seen = nowhere[entity].seen.joined(seen)
            nowhere[entity].inputs.add(origin)
    made += [_run(source, entity, set(), one) for entity, one in nowhere.items()]
    ledger.plain_gaps += places.gaps()
    return sorted(made, key=lambda run: (run.proof.job, sorted(run.outputs)))


def _named(entity: tuple[str, str], elsewhere: Collection[str]) -> bool:
    return entity[0] != "" and not {entity[0], " ".join(entity)}.isdisjoint(elsewhere)


class _Known:
    """What other sources tell, also by way of views."""

    def __init__(self, ledger: Ledger) -> None:
        self._columns = ledger.made_of()
        self._tables: dict[DatasetId, set[DatasetId]] = defaultdict(set)
        for source, target in ledger.linked(by_rows=True):
            self._tables[target].add(source)

    def tells(self, flow: Flow, origin: DatasetId | None, target: DatasetId) -> bool:
        """Whether they tell a flow: of a column that goes into another, or of a table. A write without a source is told
        by whatever writes there."""
        if origin is None:
            return bool(self._tables[target])
        if not flow.columns or not all(flow.columns):
            return origin in _behind(self._tables, target, lambda dataset: dataset.namespace == VIEW)
        ends = (ColumnId(dataset=d, column=c.lower()) for d, c in zip((origin, target), flow.columns, strict=True))
        source, into = next(ends), next(ends)
        return source in _behind(self._columns, into, lambda column: column.dataset.namespace == VIEW)


def _behind(made_of: Mapping[_T, set[_T]], target: _T, is_view: Callable[[_T], bool]) -> set[_T]:
    """All that something is directly made of, views looked through."""
    found: set[_T] = set()
    left = [target]
    while left:
        more = made_of.get(left.pop(), set()) - found
        found |= more
        left += filter(is_view, more)
    return found


def unrecorded(source: str, flows: Flows, created: Mapping[str, int], ledger: Ledger) -> Iterator[LineageGap]:
    """A gap for each table that was there before the oldest row: nothing is known of what was written before; and one
    where there is no row. created: when tables were made, in microseconds, by name."""
    since = flows.since
    if not flows.seen:
        yield LineageGap(
            dataset=None,
            kind=LineageGapKind.LOST_EVENTS,
            reason=f"{source} has no row at all",
            evidence=source,
            closes="enable the schema `system.access`, or let the account see its rows",
        )
    for name, at in sorted(created.items()):
        dataset = ledger.identities.aliases.get(plain_name(name))
        if dataset is None or not since or at >= since:
            continue
        yield LineageGap(
            dataset=dataset,
            kind=LineageGapKind.LOST_EVENTS,
            reason=f"the table is from {iso(at)}, and {source} begins at {iso(since)}: nothing shows what was written"
            " into it before",
            evidence=source,
            closes="give the SQL of the jobs that wrote it",
        )


def _job(source: str, entity: tuple[str, str]) -> str:
    return f"{source}: " + (" ".join(filter(None, entity)) or _NO_ENTITY)


def _run(source: str, entity: tuple[str, str], outputs: set[DatasetId], one: _Told) -> Run:
    mark = ", ".join(f"rows about {d}" for d in sorted(outputs)) or "rows without a target"
    code = () if entity[0] in _SQL_ALONE else (entity[0] or "unknown",)
    return Run(
        proof=Proof(
            "unity", _job(source, entity), (one.seen.first, mark), (one.seen.last, mark), max(1, one.seen.rows)
        ),
        ended=Ended.COMPLETE,
        parts=frozenset(),
        inputs=frozenset(one.inputs),
        outputs=frozenset(outputs),
        told=frozenset(outputs) if one.edges else frozenset(),
        edges=tuple((a, b, Subtype.TRANSFORMATION, False) for a, b in sorted(one.edges)),
        members=(),
        sql=(),
        code=code,
        checked=frozenset(),
        kept=frozenset(),
        made=frozenset(),
        unread=(),
        wrong=(),
    )


class _Places:
    """Datasets of the ends of rows, by the whole name that a catalog has, or else by path.

    A name of a catalog may have another path in a row: the table was created again elsewhere, and its old files may be
    there still. Then both are told apart, with a gap.
    """

    def __init__(self, source: str, ledger: Ledger) -> None:
        self._source, self._ledger = source, ledger
        self._known = ledger.identities.aliases
        self._found: dict[End, DatasetId] = {}
        self._moved: set[tuple[str, DatasetId, DatasetId]] = set()
        self._outside: set[DatasetId] = set()
        self._unnamed: set[DatasetId] = set()

    def of(self, end: End) -> DatasetId:
        """The dataset of an end; a name that nothing explains is one of its own, with a gap.

        A name with its catalog means no table of another catalog whose name is shorter.
        """
        found = self._found.get(end)
        if found is None:
            found = self._found[end] = self._placed(end)
        return found

    def _placed(self, end: End) -> DatasetId:
        named = self._known.get(plain_name(end.name)) if end.name else None
        place = self._ledger.identities.of_path(end.path) if end.path else None
        in_store = place is not None and is_place(place) and not end.path.startswith(_OF_WORKSPACE)
        if named is not None:
            if place is None or place == named or not (in_store and is_place(named)):
                return named
            self._moved.add((end.name, named, place))
        elif place is None:
            place = DatasetId(namespace=UNRESOLVED, name=end.name)
            self._unnamed.add(place)
        elif not in_store:
            self._outside.add(place)
        return place

    def gaps(self) -> Iterator[LineageGap]:
        """What names and paths leave open."""
        for name, named, place in sorted(self._moved):
            yield LineageGap(
                dataset=place,
                kind=LineageGapKind.UNRESOLVED_NAME,
                reason=f"rows of lineage call it {name}, which a catalog says is {named}: the table was created"
                " again elsewhere, or these are two",
                evidence=self._source,
                closes=f"erase what is at the former place of {name}, or join the two names by `same` under `lineage`",
                same_as=named,
            )
        for place in sorted(self._outside):
            yield LineageGap(
                dataset=place,
                kind=LineageGapKind.UNRESOLVED_NAME,
                reason="rows of lineage name a path of a workspace, and not the place of its files in a store",
                evidence=self._source,
                closes="join it with that place by `same` under `lineage`",
            )
        for unnamed in sorted(self._unnamed):
            yield LineageGap(
                dataset=unnamed,
                kind=LineageGapKind.UNRESOLVED_NAME,
                reason=f"no catalog lists the table {unnamed.name}, and no row of lineage names its path",
                evidence=self._source,
                closes="declare its catalog in the estate file, and let the account see the table",
            )
