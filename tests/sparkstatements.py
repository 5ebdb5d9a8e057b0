"""Statements that a Spark of its own runs on an estate of a test, as engines beside pii-tracer do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

_SPARK = """\
import json, sys
from pathlib import Path
from executors.engine.spark_session import open_session
from pii_tracer.config.estate_file import load_estate
file = Path(sys.argv[1])
spark = open_session(load_estate(file), file.parent, stores=[sys.argv[2]])
for statement in json.loads(sys.argv[3]):
    spark.sql(statement)
"""


def in_spark(base: Path, store: str, statements: Sequence[str], more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Run SQL in a Spark of its own, which ends. base: the estate file's folder; store: the scheme of its tables'
    locations; more: environment."""
    command = [sys.executable, "-c", _SPARK, str(base / "pii-tracer.yaml"), store, json.dumps(statements)]
    with (base / "apart.log").open("ab") as log:
        subprocess.run(command, stdout=log, stderr=log, check=True, timeout=400, env={**os.environ, **more})


def values(people: Sequence[tuple[str, str]]) -> str:
    """Rows of an INSERT."""
    return ", ".join(f"('{uid}', '{mail}')" for uid, mail in people)


def merge_on_read(
    table: str, version: int, everybody: Sequence[tuple[str, str]], person: tuple[str, str], *, again: bool
) -> list[str]:
    """The statements of an Iceberg table with delete files, or in version 3 with deletion vectors.

    again: whether the person has a row again after the naive DELETE.
    """
    modes = ", ".join(f"'write.{what}.mode' = 'merge-on-read'" for what in ("delete", "update", "merge"))
    made = [
        f"CREATE TABLE {table} (uid STRING, mail STRING) USING iceberg"
        f" TBLPROPERTIES ('format-version' = '{version}', {modes})",
        f"INSERT INTO {table} VALUES {values(everybody)}",
        f"DELETE FROM {table} WHERE uid = '{person[0]}'",
    ]
    return made + ([f"INSERT INTO {table} VALUES {values([person])}"] if again else [])
