"""Which files of an Iceberg table's folder are referenced, from its metadata tables, and the removal of the others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from executors.context import ExecutionContext
from executors.local import as_local, files_below, local_path
from executors.spark import quote_table
from pii_tracer.errors import RunError

_HINT = "version-hint.text"


def with_deleted_entries(ctx: ExecutionContext, location: str, table: str) -> list[str]:
    """Manifests of the current snapshot that list deleted files, whose bounds they keep (hazard I4b)."""
    name = quote_table(table)
    rows = ctx.spark.sql(
        f"SELECT path FROM {name}.manifests WHERE deleted_data_files_count > 0 OR deleted_delete_files_count > 0"
    ).collect()
    return [row[0] for row in rows]


def untracked(ctx: ExecutionContext, location: str, table: str) -> list[str]:
    """Files in the folder that no snapshot, reference or metadata file of the table names.

    The folder is listed before the references are read: a file that a writer commits in between is then referenced.
    """
    folder = local_path(location)
    refuse_nested(folder)
    there = [str(path) for path in files_below(folder)]
    kept = _referenced(ctx, table)
    return [path for path in there if path not in kept and not _companion(path, kept)]


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
    rows = ctx.spark.sql(f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp, file").collect()
    if not rows:
        raise RunError("the table names no metadata file", where=name, todo="look at the catalog")
    current = Path(as_local(rows[-1][0]))
    try:
        data = current.read_bytes()
        metadata = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
    except (OSError, ValueError):
        raise RunError("the table's metadata file cannot be read", where=str(current), todo="look at it") from None
    entries = [*metadata.get("statistics", []), *metadata.get("partition-statistics", [])]
    return {as_local(entry["statistics-path"]) for entry in entries}


_FOREIGN = ("*/_delta_log", "*/.hoodie", "*/*.metadata.json", "*/*.metadata.json.gz", "*/*.gz.metadata.json")


def refuse_nested(folder: Path) -> None:
    """A table below this table's folder would lose its files to the sweep.

    Raises:
        RunError: there is one.
    """
    for pattern in _FOREIGN:
        for path in folder.glob("**/" + pattern):
            if path.parent != folder / "metadata":
                raise RunError(
                    "another table lies inside this table's folder; sweeping it would remove that table's files",
                    where=str(path.parent),
                    todo="move one of the two tables, then plan again",
                )


def _companion(path: str, kept: set[str]) -> bool:
    """The version hint of a Hadoop catalog, and Hadoop's checksum beside a file that is kept."""
    file = Path(path)
    if file.name == _HINT or file.name == f".{_HINT}.crc":
        return True
    if file.name.startswith(".") and file.name.endswith(".crc"):
        return str(file.with_name(file.name[1:-4])) in kept
    return False


def remove_orphans(ctx: ExecutionContext, location: str, table: str) -> list[str]:
    """Remove every untracked file, hidden ones and old metadata included; returns their paths."""
    removed = untracked(ctx, location, table)
    for path in removed:
        Path(path).unlink(missing_ok=True)
    return removed
