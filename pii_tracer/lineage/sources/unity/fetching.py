"""The two system tables of a Databricks workspace, by SQL, into a file of the state folder.

The tables keep rows for about a year. What was read before stays in the file, so that it is longer than that. A file is
replaced only by what was read to its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import ValidationError, model_validator
from typing_extensions import Self

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.lineage import UnityLineage
from pii_tracer.lake.catalogs.unity.client import UnityRefusal
from pii_tracer.lake.catalogs.unity.statement_execution import Row, Warehouse, workspace
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.lineage.sources.evidence_merging import iso, micros
from pii_tracer.lineage.sources.unity.flows import (
    COLUMNS,
    ENDS,
    ENTITY,
    OF_COLUMNS,
    TABLES,
    TIME,
    End,
    Flow,
    Flows,
    Seen,
    flow_of,
)
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import LineageError
from pii_tracer.model.gap_kinds import LineageGapKind

_GRANT = "USE CATALOG on `system`, USE SCHEMA on `system.access`, and SELECT on its tables {}, and enable this schema"
_CLOSES = "run `pii-tracer harvest` when the source is available"
_YEAR_9999 = 253_370_764_800_000_000
_DIGITS = 20

FIRST, LAST, ROWS = "first_time", "last_time", "row_count"
"""Columns of rows that stand for several: times in microseconds."""


class Kept(Frozen):
    """One source as of its last reading, with what earlier ones had.

    source: a digest of the catalog's key and of its workspace's address. at: by table, when it was read last and had
    rows. lost: times of which no reading has rows.
    """

    version: Literal[1]
    source: str
    at: dict[str, str]
    lost: tuple[str, ...]
    flows: tuple[tuple[Flow, Seen], ...]

    @model_validator(mode="after")
    def _times(self) -> Self:
        if not all(table in (TABLES, COLUMNS) and micros(at) for table, at in self.at.items()):
            raise ValueError("times of other tables, or none")
        if not all(_is_time(seen.first) and seen.first <= seen.last and _is_time(seen.last) for _, seen in self.flows):
            raise ValueError("rows of no time")
        return self


def _is_time(at: int) -> bool:
    return 0 <= at < _YEAR_9999


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
    dataset_path: Callable[[str], str],
    open_warehouse: Callable[[str, Catalog, str], Warehouse] = Warehouse,
) -> Fetched:
    """Ask every workspace that the estate file names. dataset_path: a path without its partitions, whose names are
    values of rows.

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
                f"`lineage.unity` names {source.catalog}, which is not a catalog of the type `unity`",
                where="the estate file, `lineage`",
                todo="use a catalog of that type, or export the system tables and list the files",
            )
        say(f"reading {name}")
        mark = sha256(f"{source.catalog}\n{workspace(catalog)}".encode()).hexdigest()
        file = folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', source.catalog)}-{mark[:16]}.json"
        before = _load(file, mark)
        try:
            rows = _read(open_warehouse(source.catalog, catalog, source.warehouse), name, dataset_path)
            kept = _joined(before or Kept(version=1, source=mark, at={}, lost=(), flows=()), rows, now)
            gaps += [_gap(LineageGapKind.LOST_EVENTS, f"{name}: {text}", name, kept) for text in _gone(kept, rows)]
            write_atomic(file, kept.model_dump_json().encode(), mode=0o600)
        except UnityRefusal as error:
            if before is None:
                raise LineageError(
                    f"{name} was never read, and cannot be read now: {error.what}", where="the estate file, `lineage`",
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


def _read(warehouse: Warehouse, name: str, dataset_path: Callable[[str], str]) -> Flows:
    flows = Flows()
    for table, more in ((TABLES, ()), (COLUMNS, OF_COLUMNS)):
        columns = (*ENTITY, *ENDS, *more)
        for row in warehouse.rows(_query(table, columns), (*columns, FIRST, LAST, ROWS), _GRANT.format(table)):
            flow, seen = _flow(row, name)
            flow = flow._replace(source=_plain(flow.source, dataset_path), target=_plain(flow.target, dataset_path))
            if (flow.source or flow.target) and (flow.columns is None or any(flow.columns)):
                flows.add(flow, seen)
    return flows


def _plain(end: End | None, dataset_path: Callable[[str], str]) -> End | None:
    return end and end._replace(path=dataset_path(end.path) if end.path else "")


def _flow(row: Row, name: str) -> tuple[Flow, Seen]:
    told = [(value or "").strip() for value in row]
    times = [int(value) if len(value) < _DIGITS and value.isdecimal() else -1 for value in told[-3:]]
    first, last, rows = times
    if rows < 1 or not (_is_time(first) and first <= last and _is_time(last)):
        raise UnityRefusal("the Databricks workspace sent a row without a time", name, "check the workspace")
    return flow_of(told[:-3]), Seen(first, last, rows)


def _joined(before: Kept, flows: Flows, now: str) -> Kept:
    """What was read now and before. Times of rows that are there now are theirs; those of others stay."""
    lost, at = before.lost, dict(before.at)
    for table in (TABLES, COLUMNS):
        since, read = flows.of(table).since, micros(at.get(table, ""))
        if not since:
            continue
        if read and since > read:
            gone = f"{table} has no rows between {iso(read)} and {iso(since)}: they expired before they were read"
            lost = (*lost, gone)
        at[table] = now
    old = dict(before.flows)
    merged = {flow: _longer(old.get(flow), seen) for flow, seen in flows.seen.items()}
    merged |= {flow: seen for flow, seen in old.items() if flow not in merged}
    return before.model_copy(update={"at": at, "lost": lost, "flows": tuple(sorted(merged.items(), key=repr))})


def _gone(kept: Kept, flows: Flows) -> Iterator[str]:
    """Tables that had rows before, and have none now. Those that came since may be gone, or the account sees none."""
    for table, at in sorted(kept.at.items()):
        if not flows.of(table).since:
            yield f"{table} had rows when it was read at {at}, but has none now"


def _longer(old: Seen | None, new: Seen) -> Seen:
    return new if old is None else new.joined(old)._replace(rows=max(old.rows, new.rows))


def _gap(kind: LineageGapKind, reason: str, name: str, kept: Kept) -> LineageGap:
    evidence = f"{name}, read last at {max(kept.at.values(), default='a time without rows')}"
    closes = _CLOSES if kind is LineageGapKind.SOURCE_UNREACHABLE else "add the SQL of the jobs of that time"
    return LineageGap(dataset=None, kind=kind, reason=reason, evidence=evidence, closes=closes)


def _load(file: Path, mark: str) -> Kept | None:
    try:
        kept = Kept.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        kept = None
    if kept is None or kept.source != mark:
        raise LineageError(
            "the stored lineage of this source cannot be read",
            where=str(file),
            todo="restore the file, or remove it to read what the workspace still has",
        )
    return kept
