"""OpenLineage events (NDJSON, plain or gzip) to facts.

Events of one run are united whatever their order: https://openlineage.io/docs/spec/run-cycle. Structure is read
leniently: what is missing is missing, unknown facets are left alone, a line that cannot be read is a gap.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pii_tracer.lineage.edges import DIRECT_SUBTYPES, Edge, EdgeType, Evidence, LineageGap, Membership, Subtype
from pii_tracer.lineage.identity import Identities
from pii_tracer.model import Column, ColumnId, DatasetId

_PER_FIELD = frozenset({*DIRECT_SUBTYPES, Subtype.CONDITIONAL, Subtype.WINDOW})
_SPARK_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
"""The listener's names of types, in DDL's words."""

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")


@dataclass
class Run:
    """What the events of one run say together."""

    job: str
    run: str
    at: str = ""
    states: set[str] = field(default_factory=set)
    inputs: set[DatasetId] = field(default_factory=set)
    outputs: set[DatasetId] = field(default_factory=set)
    with_columns: set[DatasetId] = field(default_factory=set)
    sql: set[str] = field(default_factory=set)
    edges: set[Edge] = field(default_factory=set)
    memberships: set[Membership] = field(default_factory=set)

    @property
    def where(self) -> str:
        return f"run {self.run}"

    @property
    def failed(self) -> bool:
        return bool(self.states & {"FAIL", "ABORT"}) and "COMPLETE" not in self.states


@dataclass
class Events:
    """Everything read from events. renames: (old, new)."""

    runs: dict[str, Run] = field(default_factory=dict)
    schemas: dict[DatasetId, dict[str, tuple[Column, ...]]] = field(default_factory=dict)
    symlinks: dict[str, set[DatasetId]] = field(default_factory=dict)
    renames: set[tuple[DatasetId, DatasetId, str]] = field(default_factory=set)
    gaps: list[LineageGap] = field(default_factory=list)
    read: int = 0


def event_files(place: Path) -> list[Path]:
    """The event files of a file or folder, sorted."""
    if place.is_dir():
        return sorted(p for p in place.rglob("*") if p.is_file() and p.name.lower().endswith(_SUFFIXES))
    return [place]


def lines_of(file: Path, shown: str, gaps: list[LineageGap]) -> Iterator[tuple[int, bytes]]:
    """Lines of a plain or gzip file; where the file breaks off, a gap says so and what was read stays."""
    number = 0
    try:
        with (gzip.open if file.suffix == ".gz" else open)(file, "rb") as stream:
            for number, line in enumerate(stream, 1):
                yield number, line
    except (OSError, EOFError, ValueError) as error:
        gaps.append(_unreadable(f"{shown}:{number + 1}", f"the file breaks off ({type(error).__name__})"))
    except Exception as error:  # zlib's own error class has no stable name
        gaps.append(_unreadable(f"{shown}:{number + 1}", f"the file breaks off ({type(error).__name__})"))


def _unreadable(where: str, reason: str) -> LineageGap:
    return LineageGap(
        dataset=None, kind="unreadable_event", reason=reason, evidence=where, closes="get the whole file again"
    )


def read_events(places: Iterable[tuple[Path, str]], identities: Identities) -> Events:
    """Read event files; shown is how a file is named in evidence."""
    events = Events()
    for place, shown in places:
        for number, line in lines_of(place, shown, events.gaps):
            if not line.strip():
                continue
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                events.gaps.append(_unreadable(f"{shown}:{number}", "the line is not JSON"))
                continue
            if not isinstance(event, dict) or not isinstance(event.get("job"), dict | None):
                events.gaps.append(_unreadable(f"{shown}:{number}", "the line is not an OpenLineage event"))
                continue
            events.read += 1
            _take(event, events, identities)
    return events


def _take(event: Mapping[str, Any], events: Events, identities: Identities) -> None:
    job, at = _map(event.get("job")), str(event.get("eventTime") or "")
    name = ":".join(str(job[k]) for k in ("namespace", "name") if job.get(k))
    run_id = str(_map(event.get("run")).get("runId") or f"{name} at {at}")
    run = events.runs.setdefault(run_id, Run(job=name, run=run_id))
    run.job = max(run.job, name)
    run.at = max(run.at, at)
    run.states.add(str(event.get("eventType") or "OTHER").upper())
    query = _map(_map(job.get("facets")).get("sql")).get("query")
    if isinstance(query, str) and query.strip():
        run.sql.add(query)
    for item in _list(event.get("inputs")):
        dataset = _dataset(item, events, identities)
        if dataset is not None:
            run.inputs.add(dataset)
    for item in _list(event.get("outputs")):
        dataset = _dataset(item, events, identities)
        if dataset is not None:
            run.outputs.add(dataset)
            _columns(item, dataset, run, identities)
            _lifecycle(item, dataset, run, events, identities)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _id(value: Mapping[str, Any], identities: Identities) -> DatasetId | None:
    name = value.get("name")
    if not isinstance(name, str) or not name:
        return None
    return identities.normal(str(value.get("namespace") or ""), name)


def _dataset(item: Mapping[str, Any], events: Events, identities: Identities) -> DatasetId | None:
    dataset = _id(item, identities)
    if dataset is None:
        return None
    facets = _map(item.get("facets"))
    columns = _schema(_map(facets.get("schema")))
    if columns:
        events.schemas.setdefault(dataset, {})[repr(columns)] = columns
    for link in _list(_map(facets.get("symlinks")).get("identifiers")):
        if isinstance(link.get("name"), str) and link["name"]:
            events.symlinks.setdefault(link["name"], set()).add(dataset)
    return dataset


def _schema(facet: Mapping[str, Any]) -> tuple[Column, ...]:
    fields = _list(facet.get("fields"))
    return tuple(Column(name=str(f["name"]), type=_type(f)) for f in fields if f.get("name"))


def _type(item: Mapping[str, Any]) -> str:
    """The DDL type; structs are listed as fields in the facet."""
    inner = _list(item.get("fields"))
    kind = str(item.get("type") or "")
    kind = _SPARK_TYPES.get(kind.lower(), kind)
    if kind.lower() == "struct" and inner:
        return "struct<" + ",".join(f"{f.get('name')}:{_type(f)}" for f in inner) + ">"
    return kind


def _columns(item: Mapping[str, Any], dataset: DatasetId, run: Run, identities: Identities) -> None:
    facet = _map(_map(item.get("facets")).get("columnLineage"))
    for column, entry in _map(facet.get("fields")).items():
        run.with_columns.add(dataset)
        for source in _list(_map(entry).get("inputFields")):
            _edge(source, entry, ColumnId(dataset=dataset, column=str(column)), run, identities)
    for source in _list(facet.get("dataset")):
        run.with_columns.add(dataset)
        origin = _column(source, identities)
        for change in _list(source.get("transformations")):
            subtype = _subtype(change)
            if origin is not None and subtype is not None:
                run.memberships.add(Membership(source=origin, target=dataset, subtype=subtype, evidence=_proof(run)))


def _column(source: Mapping[str, Any], identities: Identities) -> ColumnId | None:
    dataset = _id(source, identities)
    name = source.get("field")
    return ColumnId(dataset=dataset, column=name) if dataset is not None and isinstance(name, str) and name else None


def _edge(
    source: Mapping[str, Any], entry: Mapping[str, Any], target: ColumnId, run: Run, identities: Identities
) -> None:
    origin = _column(source, identities)
    if origin is None:
        return
    changes = _list(source.get("transformations"))
    if not changes:  # facets before version 1.1 say it once for all inputs, or not at all
        old = str(entry.get("transformationType") or "").upper()
        changes = [{"subtype": "IDENTITY" if old == "IDENTITY" else "TRANSFORMATION", "masking": old == "MASKED"}]
    for change in changes:
        subtype = _subtype(change) or (
            Subtype.TRANSFORMATION if change.get("type") != "INDIRECT" else Subtype.CONDITIONAL
        )
        if subtype not in _PER_FIELD:
            run.memberships.add(Membership(source=origin, target=target.dataset, subtype=subtype, evidence=_proof(run)))
            continue
        type_ = EdgeType.DIRECT if subtype in DIRECT_SUBTYPES else EdgeType.INDIRECT
        run.edges.add(
            Edge(
                source=origin,
                target=target,
                type=type_,
                subtype=subtype,
                masking=bool(change.get("masking")),
                evidence=_proof(run),
            )
        )


def _subtype(change: Mapping[str, Any]) -> Subtype | None:
    try:
        return Subtype(str(change.get("subtype") or "").upper())
    except ValueError:
        return None


def _proof(run: Run) -> tuple[Evidence, ...]:
    """By run, not by line: the same events in another order are the same evidence."""
    return (Evidence(source="openlineage", where=run.where, job=run.job),)


def _lifecycle(item: Mapping[str, Any], dataset: DatasetId, run: Run, events: Events, identities: Identities) -> None:
    facet = _map(_map(item.get("facets")).get("lifecycleStateChange"))
    before = _id(_map(facet.get("previousIdentifier")), identities)
    if str(facet.get("lifecycleStateChange") or "").upper() == "RENAME" and before is not None and before != dataset:
        events.renames.add((before, dataset, run.where))
