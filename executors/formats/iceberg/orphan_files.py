"""Which files of an Iceberg table's folder are referenced, from its metadata tables, and the removal of the others."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executors.context import ExecutionContext
from executors.engine.sql_names import quote_table
from executors.formats.base import Sharers
from executors.sweep.store_folder_sweep import Listed
from executors.sweep.table_folders import (
    files_below,
    missing,
    named,
    place_at,
    refuse_tables_inside,
)
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.iceberg.history_loss import lost_columns
from pii_tracer.lake.formats.iceberg.metadata_json import METADATA_ENDS, metadata_json
from pii_tracer.lake.formats.iceberg.snapshot_expiry import referenced
from pii_tracer.lake.formats.iceberg.stray_files import as_written
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.errors import EstateError, RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT = "version-hint.text"


def with_deleted_entries(ctx: ExecutionContext, table: str) -> list[str]:
    """Manifests of the current snapshot that list deleted files, whose bounds they keep (hazard I4b)."""
    name = quote_table(table)
    rows = ctx.spark.sql(
        f"SELECT path FROM {name}.manifests WHERE deleted_data_files_count > 0 OR deleted_delete_files_count > 0"
    ).collect()
    return [row[0] for row in rows]


@dataclass(frozen=True)
class Untracked:
    """Files in a table's folder that nothing names. going: those that may go, listed anew each time. strange: how many
    others lie there, of a table in S3, that are named as no writer of Iceberg names its.
    """

    going: tuple[Listed, ...]
    strange: int = 0


def untracked(ctx: ExecutionContext, folder: AnyPlace, table: str, sharing: Sharers = ()) -> Untracked:
    """Files in the folder that no snapshot, reference or metadata file of the table names, nor of one that shares some.

    The folder is listed before the references are read: a file that a writer commits in between is then referenced.
    While writers run, files that are young stay: theirs are committed after they were written. In S3 files stay that
    may be somebody's: a gap of the plan says so (`strange_files`).

    Raises:
        RunError: a file that the table names is not there, or another table lies inside the folder.
    """
    there = list_table(folder)
    own = _with_links(folder, _referenced(ctx, folder, table))
    # metadata files of the log may be gone: writers remove the oldest
    refuse_missing(folder, there, {p for p in own if not p.endswith(METADATA_ENDS)})
    found = loose(ctx, there, own | _with_links(folder, read_by(ctx, sharing)))
    if isinstance(folder, Path):
        return Untracked(tuple(found))
    going = tuple(file for file in found if as_written(file.parts[-1]))
    return Untracked(going, len(found) - len(going))


def _with_links(folder: AnyPlace, named: Set[str]) -> set[str]:
    """Names as metadata writes them, and with links followed: the folder is listed at its real place."""
    return set(named) | ({str(Path(path).resolve()) for path in named} if isinstance(folder, Path) else set())


def list_table(folder: AnyPlace) -> list[Listed]:
    """Every file in a table's folder.

    Raises:
        RunError: another table lies inside it.
    """
    there = files_below(folder)
    refuse_tables_inside(folder, there, ICEBERG)
    return there


def refuse_missing(folder: AnyPlace, there: Sequence[Listed], named: Iterable[str]) -> None:
    """Nothing is swept where files are missing that the table names.

    Raises:
        RunError: one inside the folder is.
    """
    listed = {file.path for file in there}
    inside = [p for p in named if p not in listed and p.startswith(f"{folder}/")]
    gone = missing(folder, inside) if inside else []
    if gone:
        raise RunError(
            f"{counted(len(gone), 'file')} referenced by the table cannot be found, first {gone[0].rpartition('/')[2]}",
            where=str(folder),
            todo="restore these files from a backup before you sweep",
        )


def loose(ctx: ExecutionContext, there: Sequence[Listed], kept: Set[str]) -> list[Listed]:
    """Of the files in a folder those that nothing keeps; while writers run, only those that are old enough."""
    old = (time.time() - ctx.in_flight_hours * 3600) * 1000
    found = [file for file in there if file.path not in kept and not _companion(file.path, kept)]
    return [file for file in found if not ctx.in_flight_hours or file.modified < old]


def read_by(ctx: ExecutionContext, sharing: Sharers) -> set[str]:
    """Every file that other tables read now. They lie on this machine: in S3 no table that shares files is erased.

    Raises:
        RunError: one of them cannot be asked; nothing may be removed then.
    """
    found: set[str] = set()
    for other in sharing:
        table, location = other["table"], Path(str(other["location"]))
        try:
            found |= _referenced(ctx, location, table) if table else referenced(location, None)
        except Exception as error:  # Spark's and Java's errors for a table that is gone or broken are many
            raise RunError(
                f"a table that shares files with this one cannot be read: {type(error).__name__}",
                where=table or str(location),
                todo="repair that table, then run `pii-tracer resume`; if it was dropped, plan again",
            ) from None
    return found


def forget_snapshots(ctx: ExecutionContext, table: str, older_than: str | None) -> int:
    """Expire snapshots in the metadata alone; returns how many. References and their heads stay.

    The procedure would remove the files that it frees, though other tables may read them, and it refuses tables that
    `snapshot` made for that reason (`gc.enabled=false`).
    """
    spark: Any = ctx.spark
    jvm = spark._jvm
    operations = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        spark._jsparkSession, quote_table(table)
    ).operations()
    base = operations.current()
    heads = {ref.snapshotId() for ref in base.refs().values()}
    until = None if older_than is None else datetime.fromisoformat(older_than).replace(tzinfo=timezone.utc).timestamp()
    gone = jvm.java.util.ArrayList()
    for snapshot in base.snapshots():
        if snapshot.snapshotId() not in heads and (until is None or snapshot.timestampMillis() < until * 1000):
            gone.add(snapshot)
    if gone.size():
        operations.commit(base, jvm.org.apache.iceberg.TableMetadata.buildFrom(base).removeSnapshots(gone).build())
    return int(gone.size())


def lost_columns_of(ctx: ExecutionContext, folder: AnyPlace, table: str, snapshot_id: int) -> tuple[str, ...]:
    """`lost_columns` of a snapshot, by the metadata that Spark would write by.

    Raises:
        RunError: that metadata cannot be read; nothing may be written then.
    """
    metadata = metadata_file(ctx.spark, folder, quote_table(table))
    try:
        return lost_columns(load_iceberg(folder, str(metadata)), snapshot_id)
    except EstateError as error:
        raise RunError(
            error.what, where=table, todo="repair the table's metadata, then run `pii-tracer resume`"
        ) from None


def _referenced(ctx: ExecutionContext, folder: AnyPlace, table: str) -> set[str]:
    name = quote_table(table)
    kept: set[str] = set()
    for column, part in (
        ("file_path", "all_data_files"),
        ("file_path", "all_delete_files"),
        ("path", "all_manifests"),
        ("manifest_list", "snapshots"),
        ("file", "metadata_log_entries"),
    ):
        rows = ctx.spark.sql(f"SELECT {column} FROM {name}.{part}").collect()
        kept |= {named(folder, row[0]) for row in rows}
    return kept | _statistics(ctx, folder, name)


def _statistics(ctx: ExecutionContext, folder: AnyPlace, name: str) -> set[str]:
    """Statistics files (Puffin) and partition statistics: no metadata table lists them, the metadata file does.

    https://iceberg.apache.org/spec/#table-statistics

    Raises:
        RunError: the metadata file cannot be read; nothing may be swept then.
    """
    current = metadata_file(ctx.spark, folder, name)
    try:
        with current.open("rb") as stream:
            metadata = metadata_json(stream.read())
    except (OSError, ValueError):
        raise RunError(
            "the table's metadata file cannot be read",
            where=str(current),
            todo="restore the metadata file, or plan again",
        ) from None
    entries = [*metadata.get("statistics", []), *metadata.get("partition-statistics", [])]
    return {named(folder, entry["statistics-path"]) for entry in entries}


def metadata_file(spark: SparkSession, folder: AnyPlace, name: str) -> AnyPlace:
    """The metadata file that Spark reads and writes by: the last of its log, in the log's own order.

    name: quoted. https://iceberg.apache.org/docs/latest/spark-queries/#metadata-log-entries

    Raises:
        RunError: the table names none.
    """
    rows = spark.sql(f"SELECT file FROM {name}.metadata_log_entries").collect()
    if not rows:
        raise RunError(
            "the table names no metadata file", where=name, todo="repair the table in the catalog, then plan again"
        )
    return place_at(folder, named(folder, rows[-1][0]))


def _companion(path: str, kept: Set[str]) -> bool:
    """The version hint of a Hadoop catalog, and Hadoop's checksum beside a file that is kept."""
    front, slash, name = path.rpartition("/")
    if name in (_HINT, f".{_HINT}.crc"):
        return True
    return name.startswith(".") and name.endswith(".crc") and f"{front}{slash}{name[1:-4]}" in kept
