"""What a plain DELETE leaves behind, shown on scratch copies that are thrown away again."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.app.settings import Settings
from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.common.plurals import counted
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import EstateError
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.value_forms import build_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pii_tracer.config.estate_file import Request
    from pii_tracer.config.subjects import Subject
    from reports.run.run_views import NaivePanel

_PLACES = (
    ("delta_log", "commit log: statistics and the statement's own literal", "D5"),
    ("metadata/", "manifests: bounds of the deleted rows' file", "I4b"),
    ("", "data files: the rows are marked deleted, the bytes are there", "I2"),
)

# how the sample estate's columns are called in speech; any other goes by its own name
_SAID = {"pan": "PAN", "phone": "phone number", "aadhaar_ref": "Aadhaar reference"}


def show_naive(
    settings: Settings, request: Request, subject: Subject, out: Path, say: Callable[[str], None]
) -> NaivePanel:
    """Copy the source to a scratch Iceberg and a scratch Delta table, DELETE with a literal, count rows, decode files.

    The scratch tables and their folders are removed afterwards, whatever happens.
    """
    from executors.engine.spark_session import open_session
    from executors.engine.sql_names import quote
    from reports.run.run_views import NaivePanel

    estate, base = settings.estate(), settings.base
    spark = open_session(estate, base)
    catalog = _iceberg_catalog(settings)
    scratch = base / "scratch"
    name, folder = f"{quote(catalog)}.scratch.payments", scratch / "payments_delta"
    warehouse = base / str(estate.catalogs[catalog].warehouse) / "scratch"
    key, value = quote(subject.key), request.subject.of(subject, request.id).replace("'", "''")
    try:
        say("copying the source to scratch tables (Iceberg merge-on-read, Delta)")
        keys = _identifiers(spark, subject, request)
        _make(spark, subject, name, folder)
        say(f"DELETE FROM {subject.source.rpartition('.')[2]} WHERE {subject.key} = …, as everybody writes it")
        tables = (name, f"delta.{quote(str(folder))}")
        begun = time.monotonic()
        for table in tables:
            spark.sql(f"DELETE FROM {table} WHERE {key} = '{value}'")
        seconds = round(time.monotonic() - begun, 1)
        seen = sum(spark.table(t).where(f"{key} = '{value}'").count() for t in tables)
        say("decoding every file of the scratch tables")
        patterns = build_patterns(keys)
        iceberg, delta = scan_tree(warehouse, patterns).files, scan_tree(folder, patterns).files
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name} PURGE")
        spark.sql(f"DROP DATABASE IF EXISTS {quote(catalog)}.scratch")
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(warehouse, ignore_errors=True)
    statement = f"DELETE FROM {subject.source.rpartition('.')[2]} WHERE {subject.key} = ?"
    panel = NaivePanel(
        statement=statement,
        rows_seen_after=seen,
        seconds=seconds,
        readable=_readable(subject, (*iceberg, *delta)),
        left=(*_left("Iceberg", iceberg), *_left("Delta", delta)),
    )
    write_atomic(out, panel.model_dump_json(indent=1).encode())
    return panel


def _iceberg_catalog(settings: Settings) -> str:
    for name, catalog in settings.estate().catalogs.items():
        if catalog.type is CatalogType.ICEBERG_HADOOP:
            return name
    raise EstateError("the estate has no Iceberg catalog for a scratch table", todo="declare one")


def _identifiers(spark: SparkSession, subject: Subject, request: Request) -> tuple[KeySet, ...]:
    """The person's identifiers, to look for; short keys are left out, they prove little in a raw file."""
    from pyspark.sql import functions as f

    columns = [i.column for i in subject.identifiers]
    rows = spark.table(subject.source).where(
        f.col(subject.key).cast("string") == request.subject.of(subject, request.id)
    )
    found = rows.select(*columns).distinct().collect()
    return tuple(
        KeySet(name=c, origin=c, weak=False, values=tuple(sorted({("person", str(r[c])) for r in found if r[c]})))
        for c in columns
    )


def _make(spark: SparkSession, subject: Subject, iceberg: str, delta: Path) -> None:
    frame = spark.table(subject.source)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {iceberg.rpartition('.')[0]}")
    spark.sql(f"DROP TABLE IF EXISTS {iceberg} PURGE")
    options = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    writer = frame.repartition(2).writeTo(iceberg).using("iceberg")
    for key, value in options.items():
        writer = writer.tableProperty(key, value)
    writer.create()
    frame.repartition(2).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(delta))


def _readable(subject: Subject, files: Iterable[FileScan]) -> tuple[str, ...]:
    """Which identifiers were really read in these files, in the estate's order."""
    read = {hit.key_set for file in files for hit in file.strong}
    return tuple(_SAID.get(i.column, i.column) for i in subject.identifiers if i.column in read)


def _left(engine: str, files: Iterable[FileScan]) -> list[Any]:
    from reports.run.run_views import NaiveLeft

    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for file in files:
        if file.strong:
            place, hazard = next((text, hazard) for part, text, hazard in _PLACES if part in file.path)
            hazard = "D2" if engine == "Delta" and hazard == "I2" else hazard
            places[place, hazard].append(file.path)
    return [
        NaiveLeft(dataset=f"scratch copy, {engine}", place=place, files=len(found), example=found[0], hazard=hazard)
        for (place, hazard), found in sorted(places.items())
    ]


def naive_lines(panel: NaivePanel) -> list[str]:
    """The panel for a terminal."""
    from reports import wording

    what = wording.listed(panel.readable) or "the person's identifiers"
    lines = [
        f"{panel.statement} took {panel.seconds:g} s, and SELECT finds"
        f" {counted(panel.rows_seen_after, 'row')}. It looks done.",
        f"But {what} can still be read in {counted(panel.files_left, 'file')}:",
    ]
    for item in panel.left:
        lines.append(f"  {counted(item.files, 'file')}, {item.dataset}: {item.place} [{item.hazard}]")
        lines.append(f"    e.g. {item.example}")
    return lines
