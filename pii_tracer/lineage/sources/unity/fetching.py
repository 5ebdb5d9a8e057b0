"""The two system tables of a Databricks workspace, by SQL, into a file of the state folder.

The tables keep rows for about a year. What was read before stays in the file, so that it is longer than that. A file is
replaced only by what was read to its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.lineage import UnityLineage
from pii_tracer.lake.catalogs.unity.client import UnityRefusal
from pii_tracer.lake.catalogs.unity.statements import Row, Warehouse
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.lineage.sources.evidence import iso, micros
from pii_tracer.lineage.sources.unity.flows import (
    COLUMNS,
    ENDS,
    ENTITY,
    OF_COLUMNS,
    TABLES,
    TIME,
    Flow,
    Flows,
    Seen,
    flow_of,
)
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import LineageError
from pii_tracer.model.gap_kinds import LineageGapKind

_GRANT = "USE CATALOG on `system`, USE SCHEMA on `system.access`, and SELECT on its tables {}, and enable this schema"
_CLOSES = "harvest when it is there"


FIRST, LAST, ROWS = "first_time", "last_time", "row_count"
"""Columns of rows that stand for several: times in microseconds."""


class Kept(Frozen):
    """One source as of its last reading, with what earlier ones had. lost: times of which no reading has rows."""

    version: int = 1
    at: str
    lost: tuple[str, ...] = ()
    flows: tuple[tuple[Flow, Seen], ...] = Field(default=())


@dataclass(frozen=True)
class Fetched:
    """flows: by source. gaps: what was not read, or was gone before it was read."""

    flows: Mapping[str, Flows]
    gaps: tuple[LineageGap, ...]


def fetch_unity(
    sources: Sequence[UnityLineage],
    catalogs: Mapping[str, Catalog],
    folder: Path,
    now: str,
    say: Callable[[str], None],
    open_warehouse: Callable[[str, Catalog, str], Warehouse] = Warehouse,
) -> Fetched:
    """Ask every workspace that the estate file names.

    Raises:
        LineageError: a workspace that was never read cannot be; the estate names no such catalog; a file of the state
            folder cannot be read.
    """
    flows: dict[str, Flows] = {}
    gaps: list[LineageGap] = []
    for source in sources:
        if source.catalog is None or source.warehouse is None:
            continue
        name = f"the lineage of the catalog {source.catalog}"
        catalog = catalogs.get(source.catalog)
        if catalog is None or catalog.type != CatalogType.UNITY:
            raise LineageError(
                f"`lineage.unity` names {source.catalog}, which is no catalog of the type `unity`",
                where="the estate file, `lineage`",
                todo="name a catalog of that type, or export the system tables and name the files",
            )
        say(f"reading {name}")
        file = folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', source.catalog)}.json"
        before = _load(file)
        try:
            kept = _joined(before, _read(open_warehouse(source.catalog, catalog, source.warehouse)), now)
            write_atomic(file, kept.model_dump_json().encode(), mode=0o600)
        except UnityRefusal as error:
            if before is None:
                raise LineageError(
                    f"{name} was never read and cannot be: {error.what}", where="the estate file, `lineage`",
                    todo=error.todo,
                ) from None  # fmt: skip
            kept = before
            gaps.append(_gap(LineageGapKind.SOURCE_UNREACHABLE, f"{name} cannot be read: {error.reason}", name, kept))
        gaps += [_gap(LineageGapKind.LOST_EVENTS, f"{name}: {text}", name, kept) for text in kept.lost]
        flows[source.catalog] = Flows(dict(kept.flows))
    return Fetched(flows, tuple(gaps))


def _query(table: str, columns: Sequence[str]) -> str:
    """One row for all that say the same."""
    times = f"unix_micros(min({TIME})) AS {FIRST}, unix_micros(max({TIME})) AS {LAST}, count(*) AS {ROWS}"
    return f"SELECT {', '.join(columns)}, {times} FROM system.access.{table} GROUP BY {', '.join(columns)}"  # noqa: S608


def _read(warehouse: Warehouse) -> Flows:
    flows = Flows()
    for table, more in ((TABLES, ()), (COLUMNS, OF_COLUMNS)):
        columns = (*ENTITY, *ENDS, *more)
        for row in warehouse.rows(_query(table, columns), (*columns, FIRST, LAST, ROWS), _GRANT.format(table)):
            flow, seen = _flow(row)
            if (flow.source or flow.target) and (flow.columns is None or any(flow.columns)):
                flows.add(flow, seen)
    return flows


def _flow(row: Row) -> tuple[Flow, Seen]:
    told = [(value or "").strip() for value in row]
    first, last, rows = (int(value) if value.isdecimal() else 0 for value in told[-3:])
    return flow_of(told[:-3]), Seen(first, last, max(1, rows))


def _joined(before: Kept | None, flows: Flows, now: str) -> Kept:
    """What was read now and before. Times of rows that are there now are theirs; those of others stay."""
    lost = before.lost if before else ()
    if before and flows.since and (read := micros(before.at)) and flows.since > read:
        lost = (
            *lost,
            f"it has no rows between {iso(read)} and {iso(flows.since)}: they were gone before they were read",
        )
    old = dict(before.flows) if before else {}
    merged = {flow: _longer(old.get(flow), seen) for flow, seen in flows.seen.items()}
    merged |= {flow: seen for flow, seen in old.items() if flow not in merged}
    return Kept(at=now, lost=lost, flows=tuple(sorted(merged.items(), key=repr)))


def _longer(old: Seen | None, new: Seen) -> Seen:
    return new if old is None else new.joined(old)._replace(rows=max(old.rows, new.rows))


def _gap(kind: LineageGapKind, reason: str, name: str, kept: Kept) -> LineageGap:
    evidence = f"{name}, read last at {kept.at}"
    closes = _CLOSES if kind is LineageGapKind.SOURCE_UNREACHABLE else "give the SQL of the jobs of that time"
    return LineageGap(dataset=None, kind=kind, reason=reason, evidence=evidence, closes=closes)


def _load(file: Path) -> Kept | None:
    try:
        return Kept.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        raise LineageError(
            "lineage that was fetched before cannot be read",
            where=str(file),
            todo="restore the file, or remove it to read what the workspace still has",
        ) from None
