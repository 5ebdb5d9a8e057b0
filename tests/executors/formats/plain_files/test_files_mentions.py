"""Files whose rows name two persons: her own rows go, others' rows lose her name, and nothing else changes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    PLAIN,
    Format,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Mask, Mention
from tests.executors.world import EMAIL, Steps, context
from tests.sparksession import SparkEstate

NAMES = ("payer", "payee", "name", "n")
OTHER, THIRD = "b@example.net", "c@example.net"
ROWS: list[dict[str, Any]] = [
    dict(zip(NAMES, row, strict=True))
    for row in [(EMAIL, OTHER, "b", 1), (OTHER, EMAIL, "her", 2), (EMAIL, EMAIL, "her", 3), (OTHER, THIRD, "c", 4)]
]
LEFT = [(OTHER, None, None, 2), (OTHER, THIRD, "c", 4)]


def write(kind: Format, path: Path) -> None:
    schema = pa.schema([(name, pa.int64() if name == "n" else pa.string()) for name in NAMES])
    table = pa.Table.from_pylist(ROWS, schema)
    if kind is Format.PARQUET:
        pq.write_table(table, path, row_group_size=2)
    elif kind is Format.ORC:
        orc.write_table(table, path)
    elif kind is Format.AVRO:
        fields = [{"name": n, "type": ["null", "long" if n == "n" else "string"]} for n in NAMES]
        with path.open("wb") as stream:
            fastavro.writer(stream, {"type": "record", "name": "r", "fields": fields}, ROWS)
    elif kind is Format.JSON:
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        with path.open("w", newline="") as text:
            writer = csv.DictWriter(text, NAMES)
            writer.writeheader()
            writer.writerows(ROWS)


def read(kind: Format, path: Path) -> list[tuple[Any, ...]]:
    if kind is Format.PARQUET:
        found = pq.ParquetFile(path).read().to_pylist()
    elif kind is Format.ORC:
        found = orc.read_table(path).to_pylist()
    elif kind is Format.AVRO:
        with path.open("rb") as stream:
            found = [row for row in fastavro.reader(stream) if isinstance(row, dict)]
    elif kind is Format.JSON:
        found = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        with path.open(newline="") as text:
            found = [{k: v or None for k, v in row.items()} | {"n": int(row["n"])} for row in csv.DictReader(text)]
    return [tuple(row[name] for name in NAMES) for row in found]


def by(column: str) -> Match:
    return Match(terms=(MatchTerm(column=column, key_set="email", type="string"),))


class Mentioned(Steps):
    """A folder in which one column says whose a row is, and another names somebody in it."""

    @property
    def copy(self) -> Copy:
        mask = Mask(columns=("payee", "name"), held=(), found_by=("payer", "n"))
        return super().copy.model_copy(update={"mentions": (Mention(match=by("payee"), mask=mask),)})


@pytest.mark.parametrize("kind", sorted(PLAIN))
def test_others_rows_stay_without_her(spark_estate: SparkEstate, tmp_path: Path, kind: Format) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    write(kind, folder / f"a.{kind.value}")
    steps = Mentioned(context(spark_estate), "files", None, folder, kind, by("payer"))
    mask = (Action.FILES_MASK_ROWS, {"format": kind.value, "mention": 0})
    facts = steps.all(mask)[Action.FILES_MASK_ROWS]
    assert (facts["rows_masked"], facts["files_rewritten"]) == (2, 1)
    assert len(read(kind, folder / f"a.{kind.value}")) == len(ROWS), "nothing goes yet"
    facts = steps.all((Action.FILES_REWRITE, {"format": kind.value}))[Action.FILES_REWRITE]
    assert facts["rows_deleted"] == 2
    assert read(kind, folder / f"a.{kind.value}") == LEFT
    assert EMAIL.encode() not in (folder / f"a.{kind.value}").read_bytes()
    assert steps.all(mask, repeat=True)[Action.FILES_MASK_ROWS]["files_rewritten"] == 0


def test_a_column_that_the_plan_does_not_name_is_refused(spark_estate: SparkEstate, tmp_path: Path) -> None:
    steps = Mentioned(context(spark_estate), "files", None, tmp_path, Format.PARQUET, by("payer"))
    with pytest.raises(RunError, match="does not name the columns to clear"):
        steps.once(Action.FILES_MASK_ROWS, format="parquet", mention=1)
