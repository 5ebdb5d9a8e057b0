"""Toy tables for the verifier: Spark reads each version's file. It shares no code with the executor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.model.plan import Copy
from pii_tracer.verify.formats.base import State, TableReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ToyReader(TableReader):
    """Every file of rows is a state; the one that `.toy/table.json` names is the current one."""

    def states(self, spark: SparkSession, copy: Copy) -> Iterator[State]:
        folder = Path(copy.location)
        told = json.loads((folder / ".toy" / "table.json").read_text(encoding="utf-8"))
        current = folder / f"rows-{told['version']}.jsonl"
        schema = ", ".join(f"`{name}` {kind}" for name, kind in told["columns"].items())

        def load(file: Path) -> DataFrame:
            return spark.read.schema(schema).json(str(file))

        yield State("current", lambda: load(current), kept=True)
        for file in sorted(folder.glob("rows-*.jsonl")):
            if file != current:
                yield State(file.stem, lambda file=file: load(file))
