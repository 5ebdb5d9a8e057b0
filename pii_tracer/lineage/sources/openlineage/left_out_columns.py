"""Columns that a producer's column lineage leaves out although it names others: constants, or values under a new name.

Nothing in the event shows the difference. A column is no constant where an input has a column of its name, or one of
its type whose values are said to go nowhere. The second rule leaves out what jobs note about themselves, by type
(times, dates, truth values) and by name (`load_id`, `source_system`). It leaves out numbers of a table of groups, too,
since most count them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.openlineage.run_merging import Run
from pii_tracer.model.datasets import Column, ColumnId, DatasetId

_FAMILIES = {
    "text": ("string", "varchar", "char", "text", "nvarchar", "nchar", "character", "bpchar", "clob", "uuid"),
    "number": ("int", "bigint", "long", "integer", "smallint", "short", "tinyint", "byte", "decimal", "numeric",
               "number", "double", "float", "real", "int64", "float64", "int32", "bignumeric"),
    "constant": ("date", "timestamp", "datetime", "time", "timestamp_ntz", "timestamptz", "boolean", "bool",
                 "interval"),
}  # fmt: skip
_ABOUT_THE_JOB = frozenset(
    {"load", "loaded", "loader", "etl", "elt", "batch", "run", "job", "dag", "task", "pipeline", "process", "processed",
     "ingest", "ingested", "ingestion", "insert", "inserted", "update", "updated", "created", "source", "src", "origin",
     "system", "env", "environment", "version", "snapshot", "audit", "ds", "dt", "day", "week", "month", "year", "hour",
     "partition", "part", "file", "filename", "flag", "kind", "type", "status", "rn", "rank", "seq", "row"}
)  # fmt: skip
"""Words of names of columns in which a job writes what it knows itself."""
_HOLD_OTHERS = frozenset({"struct", "row", "record", "array", "map", "json", "jsonb", "variant", "object", "super"})
"""Types whose values have values of other types in them."""
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_OF_TYPE = {name: family for family, names in _FAMILIES.items() for name in names}


def _family(type_: str) -> str:
    word = re.match(r"\s*(\w*)", type_)
    plain = word[1].lower() if word else ""
    return _OF_TYPE.get(plain, plain)


@dataclass(frozen=True)
class LeftOut:
    """Columns of an output that nothing is said about, and the input whose values they may hold. renamed: under other
    names.
    """

    source: DatasetId
    columns: tuple[str, ...]
    renamed: bool = False


class LeftOutColumns:
    """Looks for them in what all events and SQL together say."""

    def __init__(self, ledger: Ledger) -> None:
        self._columns: Callable[[DatasetId], Iterable[Column]] = lambda d: ledger.columns.get(d, ())
        self._resolved = ledger.resolved
        self._reached, self._taken, self._grouped = ledger.reached(), ledger.taken(), ledger.grouped()

    def of(self, run: Run, output: DatasetId) -> Iterator[LeftOut]:
        """What the events of a run leave out of an output whose columns they name."""
        missing = [c for c in self._columns(output) if c.name.lower() not in self._reached[output]]
        for source in sorted(run.inputs - {output}) if missing else ():
            if (source, output) in self._resolved:
                continue
            names = {c.name.lower() for c in missing}
            shared = tuple(sorted(c.name for c in self._columns(source) if c.name.lower() in names))
            if shared:
                yield LeftOut(source, shared)
                continue
            renamed = tuple(sorted(c.name for c in missing if self._may_be_of(source, c, output)))
            if renamed:
                yield LeftOut(source, renamed, renamed=True)

    def _may_be_of(self, source: DatasetId, column: Column, output: DatasetId) -> bool:
        """Whether an input has values of the column's type that go into no column of the output. Of an input whose
        columns nobody tells, all are taken to be so.
        """
        family = _family(column.type)
        if family == "constant" or (family == "number" and output in self._grouped):
            return False
        if not _ABOUT_THE_JOB.isdisjoint(word.lower() for word in _WORD.findall(column.name)):
            return False
        given = list(self._columns(source))
        idle = (c for c in given if ColumnId(dataset=source, column=c.name.lower()) not in self._taken[output])
        fits = any(not family or _family(c.type) in ("", family) or _family(c.type) in _HOLD_OTHERS for c in idle)
        return fits or not given
