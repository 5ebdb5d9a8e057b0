"""Which files of an Iceberg table's folder are referenced, from its metadata tables, and the removal of the others."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executors.context import ExecutionContext
from executors.local import as_local, files_below, local_path, refuse_nested
from executors.spark import quote_table
from pii_tracer.errors import EstateError, RunError
from pii_tracer.estate.iceberg import load_iceberg
from pii_tracer.estate.iceberg_history import lost_columns
from pii_tracer.estate.iceberg_json import metadata_json
from pii_tracer.retention.iceberg_expiry import referenced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT = "version-hint.text"


def with_deleted_entries(ctx: ExecutionContext, location: str, table: str) -> list[str]:
    """Manifests of the current snapshot that list deleted files, whose bounds they keep (hazard I4b)."""
    name = quote_table(table)
    rows = ctx.spark.sql(
        f"SELECT path FROM {name}.manifests WHERE deleted_data_files_count > 0 OR deleted_delete_files_count > 0"
    ).collect()
    return [row[0] for row in rows]


Sharers = Sequence[Mapping[str, str | None]]
"""Tables that share files with the one at work, as `planners.iceberg.sharers` writes them into steps."""


def untracked(ctx: ExecutionContext, location: str, table: str, sharing: Sharers = ()) -> list[str]:
    """Files in the folder that no snapshot, reference or metadata file of the table names, nor of one that shares some.

    The folder is listed before the references are read: a file that a writer commits in between is then referenced.
    While writers run, files that are young stay: theirs are committed after they were written.

    Raises:
        RunError: a file that the table names is not there, or another table lies inside the folder.
    """
    there = list_table(location)
    own = _with_links(_referenced(ctx, table))
    refuse_missing(location, there, {p for p in own if not p.endswith(".metadata.json")})
    return loose(ctx, there, own | _with_links(read_by(ctx, sharing)))


def _with_links(named: Set[str]) -> set[str]:
    """Names as metadata writes them, and with links followed: the folder is listed at its real place."""
    return set(named) | {str(Path(path).resolve()) for path in named}


def list_table(location: str) -> list[str]:
    """Every file in a table's folder.

    Raises:
        RunError: another table lies inside it.
    """
    folder = local_path(location)
    refuse_nested(folder, own=lambda place: place == folder / "metadata")
    return [str(path) for path in files_below(folder)]


def refuse_missing(location: str, there: Sequence[str], named: Iterable[str]) -> None:
    """Nothing is swept where files are missing that the table names.

    Raises:
        RunError: one inside the folder is.
    """
    listed = set(there)
    inside = (p for p in named if p not in listed and p.startswith(f"{local_path(location)}/"))
    gone = sorted(p for p in inside if not Path(p).exists())
    if gone:
        raise RunError(
            f"{len(gone)} files that the table names are not there, first {Path(gone[0]).name}",
            where=location,
            todo="restore them from a backup before anything is swept",
        )


def loose(ctx: ExecutionContext, there: Sequence[str], kept: Set[str]) -> list[str]:
    """Of the files in a folder those that nothing keeps; while writers run, only those that are old enough."""
    old = time.time() - ctx.in_flight_hours * 3600
    found = [path for path in there if path not in kept and not _companion(path, kept)]
    return [path for path in found if not ctx.in_flight_hours or _written(path) < old]


def _written(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except FileNotFoundError:
        return time.time()


def read_by(ctx: ExecutionContext, sharing: Sharers) -> set[str]:
    """Every file that other tables read now.

    Raises:
        RunError: one of them cannot be asked; nothing may be removed then.
    """
    found: set[str] = set()
    for other in sharing:
        table, location = other["table"], other["location"]
        try:
            found |= _referenced(ctx, table) if table else referenced(Path(str(location)), None)
        except Exception as error:  # Spark's and Java's errors for a table that is gone or broken are many
            raise RunError(
                f"a table that shares files with this one cannot be read: {type(error).__name__}",
                where=table or location,
                todo="look at that table; if it was dropped, plan again",
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


def lost_columns_of(ctx: ExecutionContext, table: str, location: str, snapshot_id: int) -> tuple[str, ...]:
    """`lost_columns` of a snapshot, by the metadata that Spark would write by.

    Raises:
        RunError: that metadata cannot be read; nothing may be written then.
    """
    metadata = metadata_file(ctx.spark, quote_table(table))
    try:
        return lost_columns(load_iceberg(Path(location), str(metadata)), snapshot_id)
    except EstateError as error:
        raise RunError(error.what, where=table, todo="repair the table's metadata, then resume") from None


def _referenced(ctx: ExecutionContext, table: str) -> set[str]:
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
        kept |= {as_local(row[0]) for row in rows}
    return kept | _statistics(ctx, name)


def _statistics(ctx: ExecutionContext, name: str) -> set[str]:
    """Statistics files (Puffin) and partition statistics: no metadata table lists them, the metadata file does.

    https://iceberg.apache.org/spec/#table-statistics

    Raises:
        RunError: the metadata file cannot be read; nothing may be swept then.
    """
    current = metadata_file(ctx.spark, name)
    try:
        metadata = metadata_json(current.read_bytes())
    except (OSError, ValueError):
        raise RunError("the table's metadata file cannot be read", where=str(current), todo="look at it") from None
    entries = [*metadata.get("statistics", []), *metadata.get("partition-statistics", [])]
    return {as_local(entry["statistics-path"]) for entry in entries}


def metadata_file(spark: SparkSession, name: str) -> Path:
    """The metadata file that Spark reads and writes by: the last of its log, in the log's own order.

    name: quoted. https://iceberg.apache.org/docs/latest/spark-queries/#metadata-log-entries

    Raises:
        RunError: the table names none.
    """
    rows = spark.sql(f"SELECT file FROM {name}.metadata_log_entries").collect()
    if not rows:
        raise RunError("the table names no metadata file", where=name, todo="look at the catalog")
    return Path(as_local(rows[-1][0]))


def _companion(path: str, kept: Set[str]) -> bool:
    """The version hint of a Hadoop catalog, and Hadoop's checksum beside a file that is kept."""
    file = Path(path)
    if file.name == _HINT or file.name == f".{_HINT}.crc":
        return True
    if file.name.startswith(".") and file.name.endswith(".crc"):
        return str(file.with_name(file.name[1:-4])) in kept
    return False


def remove_orphans(ctx: ExecutionContext, location: str, table: str, sharing: Sharers = ()) -> list[str]:
    """Remove every untracked file, hidden ones and old metadata included; returns their paths."""
    removed = untracked(ctx, location, table, sharing)
    for path in removed:
        Path(path).unlink(missing_ok=True)
    return removed
