"""One invented person among bystanders, steps as a plan would hold them, and a search that decodes every file."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow.parquet as pq

from executors.context import ExecutionContext
from executors.formats.registry import executor_classes
from executors.formats.table_executor import TableExecutor
from executors.registry import build
from pii_tracer.lake.formats.delta.vocabulary import DELTA_DELETE_ROWS, DELTA_MASK_ROWS
from pii_tracer.lake.formats.hudi.vocabulary import HUDI_DELETE_ROWS, HUDI_MASK_ROWS
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_DELETE_ROWS, ICEBERG_MASK_ROWS
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Format,
    KeySet,
    Match,
    MatchTerm,
    Strategy,
)
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Progress
from tests.review import plans
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UID = 990_000_007
EMAIL = "anita.rao.7731@example.org"
NEEDLES = (EMAIL[:16].encode(), str(UID).encode(), UID.to_bytes(8, "little"))
"""Text cut as Iceberg's bounds cut it, the key as text, and as Parquet, Avro and Iceberg write a long."""

COLUMNS = "id BIGINT, uid BIGINT, email STRING, amount INT"
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
BY_UID = Match(terms=(MatchTerm(column="uid", key_set="uid", type="bigint"),))
BY_ANY = Match(terms=(*BY_UID.terms, MatchTerm(column="email", key_set="email", type="string")))


class Keyring:
    """Two key sets of one person."""

    sets = {
        "uid": KeySet(name="uid", origin="t.uid", weak=True, values=(("subj_1", str(UID)),)),
        "email": KeySet(name="email", origin="t.email", weak=False, values=(("subj_1", EMAIL),)),
        "nobody": KeySet(name="nobody", origin="t.uid", weak=False, values=()),
    }

    def key_set(self, name: str) -> KeySet:
        return self.sets[name]


def context(world: SparkEstate) -> ExecutionContext:
    return ExecutionContext(estate=world.estate, base=world.base, keyring=Keyring(), now=lambda: NOW)


def rows(first: int, count: int, person: Sequence[int] = ()) -> list[tuple[int, int, str, int]]:
    """Bystanders with ids from `first` on; the ids in `person` are the person's. They are extremes, so bounds hold them."""
    made = []
    for n in range(first, first + count):
        mine = n in person
        made.append((n, UID if mine else 1000 + n, EMAIL if mine else f"b{n}@example.net", n * 3))
    return made


def frame(spark: SparkSession, made: list[tuple[int, int, str, int]]) -> DataFrame:
    return frame_of_rows(spark, made, COLUMNS).coalesce(1)


def bystanders(relation: DataFrame) -> list[tuple[Any, ...]]:
    """Every row that is not the person's, in order, without Hudi's own columns."""
    names = [c for c in relation.columns if not c.startswith("_hoodie_")]
    return sorted(tuple(r) for r in relation.select(*names).where(f"uid != {UID}").collect())


@dataclass(frozen=True)
class Steps:
    """Makes and runs the steps of one table."""

    ctx: ExecutionContext
    executor: str
    table: str | None
    location: Path | str
    format: Format
    match: Match | None = BY_UID

    @property
    def copy(self) -> Copy:
        return Copy(
            id="c1",
            kind=CopyKind.DERIVED,
            dataset=DatasetId(namespace="file", name=str(self.location)),
            table=self.table,
            location=str(self.location),
            format=self.format,
            carries=Carries.KEY,
            strategy=Strategy.DELETE_BY_KEY,
            columns=(),
            lineage=(),
            reason="test",
            match=self.match,
        )

    def step(self, action: Action, **parameters: Any) -> Step:
        parameters = {"table": self.table, "location": str(self.location), **parameters}
        return plans.step(f"s-{action.value}", "c1", action=action, executor=self.executor, parameters=parameters)

    def once(self, action: Action, **parameters: Any) -> dict[str, Any]:
        """Check, run and verify one step; returns its facts."""
        step = self.step(action, **parameters)
        executor = build(self.ctx)[self.executor]
        executor.check(step, self.copy)
        facts = executor.run(step, self.copy).facts
        seen = executor.verify(step, self.copy)
        assert seen.ok, (action, seen.findings)
        assert EMAIL not in repr((facts, seen))
        assert str(UID) not in repr((facts, seen))
        return facts

    def probe(self, action: Action, **parameters: Any) -> Progress:
        return build(self.ctx)[self.executor].probe(self.step(action, **parameters), self.copy)

    def all(self, *plan: tuple[Action, dict[str, Any]], repeat: bool = False) -> dict[Action, dict[str, Any]]:
        """Run steps in order. Each is open before and done after.

        For an action of a table `probe` looks as `verify` has just looked: tests/executors/formats/test_table_executor.py.
        """
        facts = {}
        for action, parameters in plan:
            if not repeat and action in ROW_ACTIONS:
                assert self.probe(action, **parameters) is not Progress.DONE, action
            facts[action] = self.once(action, **parameters)
            if action not in self._actions():
                assert self.probe(action, **parameters) is Progress.DONE, action
        return facts

    def _actions(self) -> Collection[Action]:
        """Those that are an act and a look at the table."""
        executor = executor_classes()[self.executor]
        return executor(self.ctx)._actions() if issubclass(executor, TableExecutor) else ()


ROW_ACTIONS = {
    ICEBERG_DELETE_ROWS,
    ICEBERG_MASK_ROWS,
    DELTA_DELETE_ROWS,
    DELTA_MASK_ROWS,
    HUDI_DELETE_ROWS,
    HUDI_MASK_ROWS,
    Action.FILES_REWRITE,
}


def residue(folder: Path) -> list[str]:
    """Files, hidden ones and metadata included, in which the person is found after decoding."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        texts = list(_decoded(path.read_bytes()))
        if any(needle in text for text in texts for needle in NEEDLES):
            found.append(str(path.relative_to(folder)))
    return found


def held(folder: Path, pattern: str) -> list[str]:
    """Files of one kind in which the person stands, or is decoded."""
    return [name for name in residue(folder) if Path(name).match(pattern)]


def _decoded(data: bytes) -> list[bytes]:
    if data[:4] == b"PAR1":
        file = pq.ParquetFile(io.BytesIO(data))
        # the footer's bounds stand plain in the bytes
        return [data, repr(file.read().to_pylist()).encode()]
    if data[:4] == b"Obj\x01":
        out = [data]
        for record in fastavro.reader(io.BytesIO(data)):
            out += _bytes_in(record)
        return out
    if data[:2] == b"\x1f\x8b":
        return [gzip.decompress(data)]
    return [data, *_hfile_blocks(data)]


def _bytes_in(value: Any) -> list[bytes]:
    if isinstance(value, dict):
        return [b for v in value.values() for b in _bytes_in(v)]
    if isinstance(value, list):
        return [b for v in value for b in _bytes_in(v)]
    return [value] if isinstance(value, bytes) else [str(value).encode()]


def _hfile_blocks(data: bytes) -> list[bytes]:
    """HFile blocks are gzip streams behind a 33-byte header (HBase book, appendix HFile format)."""
    out = []
    start = data.find(b"\x1f\x8b\x08")
    while start >= 0:
        with contextlib.suppress(zlib.error):
            out.append(zlib.decompressobj(31).decompress(data[start:]))
        start = data.find(b"\x1f\x8b\x08", start + 3)
    return out
