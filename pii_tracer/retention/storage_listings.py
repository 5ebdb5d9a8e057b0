"""Listings of storage that exist already, instead of listing it again: S3 Inventory, listing files, a local walk.

Whatever the source, the result is one Parquet file with `path, length, isDir, modificationTime` (bytes; milliseconds
since 1970), the columns that Delta's VACUUM … USING INVENTORY asks for
(https://docs.delta.io/latest/delta-utility.html#inventory-table).

S3 Inventory: https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html (manifest, MD5 of
each data file, keys percent-encoded in CSV only).
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

from pii_tracer.lake.stores.s3.inventory_report_files import KINDS, rows
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import Location, S3Location, is_s3, object_uri
from pii_tracer.model.timestamps import instant

_BATCH = 50_000
_COLUMNS = ("path", "length", "isDir", "modificationTime")


@dataclass(frozen=True)
class Item:
    """One file as a listing names it. modified: milliseconds since 1970."""

    path: str
    length: int
    modified: int
    folder: bool = False


@dataclass(frozen=True)
class Listing:
    """A normalised listing: a Parquet file, and how many files and bytes it names. taken: when it was made."""

    file: Path
    files: int
    bytes: int
    taken: datetime | None


def normalise(source: Path | None, walked: Iterable[Item], out: Path, mapped: dict[str, str]) -> Listing:
    """Write a listing in the form that the engines take.

    source: an S3 Inventory `manifest.json`, a listing as CSV (`.csv`, `.csv.gz`) or Parquet, or None for
    what a walk finds (`walk`). mapped: prefixes to replace, longest first, e.g. `s3://lake/` by `/mnt/lake/`.

    Raises:
        EstateError: missing, of an unknown form, damaged (a data file's MD5 differs), or without a needed column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    items, taken = _source(source, walked)
    prefixes = sorted(mapped.items(), key=lambda pair: -len(pair[0]))
    schema = pa.schema(
        [("path", pa.string()), ("length", pa.int64()), ("isDir", pa.bool_()), (_COLUMNS[3], pa.int64())]
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    files = total = 0
    with pq.ParquetWriter(out, schema) as writer:
        stream = iter(items)
        while batch := list(islice(stream, _BATCH)):
            files += sum(not item.folder for item in batch)
            total += sum(item.length for item in batch)
            columns = [
                [_moved(item.path, prefixes) for item in batch],
                [item.length for item in batch],
                [item.folder for item in batch],
                [item.modified for item in batch],
            ]
            writer.write_table(pa.table(columns, schema=schema))
    return Listing(out, files, total, taken)


def _moved(path: str, prefixes: list[tuple[str, str]]) -> str:
    """A path with its prefix replaced; local ones without `file:`, as engines' listings write them (not encoded).

    Those in S3 begin with `s3://`, whichever of its schemes the listing has.
    """
    path = next((new + path[len(old) :] for old, new in prefixes if path.startswith(old)), path)
    if is_s3(path):
        bucket, _, key = path.partition("://")[2].partition("/")
        return object_uri(bucket, key)
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path


def _source(source: Path | None, walked: Iterable[Item]) -> tuple[Iterable[Item], datetime | None]:
    if source is None:
        return walked, datetime.now(timezone.utc)
    if not source.is_file():
        raise EstateError("the inventory is missing", where=str(source), todo="name a manifest.json or a listing file")
    if source.name == "manifest.json":
        return _s3_inventory(source)
    if source.name.endswith((".csv", ".csv.gz")):
        return _guarded(_csv_listing(source), source), None
    if source.suffix == ".parquet":
        return _guarded(_parquet_listing(source), source), None
    raise EstateError(
        "the inventory has an unknown form", where=str(source), todo="use manifest.json, .csv, .csv.gz or .parquet"
    )


def walk(roots: Iterable[Location], clients: ClientFactory) -> Iterator[Item]:
    """Every file below some folders; one that goes while it is looked at is left out. clients: of S3.

    Raises:
        EstateError: S3 or the system refuses.
    """
    for root in roots:
        if isinstance(root, S3Location):
            yield from _objects_below(root, clients)
            continue
        for folder, folders, names in os.walk(root, onerror=_refused):
            folders.sort()
            for name in sorted(names):
                path = Path(folder) / name
                try:
                    seen = path.lstat()
                except FileNotFoundError:
                    continue
                if not path.is_symlink():
                    yield Item(str(path), seen.st_size, seen.st_mtime_ns // 1_000_000)


def _refused(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):
        return
    raise EstateError(
        f"a folder cannot be listed: {error.strerror or type(error).__name__}",
        where=str(error.filename),
        todo="give this account the right to read the folder, because it may contain data",
    )


def _objects_below(root: S3Location, clients: ClientFactory) -> Iterator[Item]:
    try:
        for path, size, modified in S3Path.of(root, clients).walk():
            yield Item(path, size, modified, path.endswith("/"))
    except OSError as error:
        raise EstateError(
            str(error), todo="check the bucket and the account's permissions, then run the command again"
        ) from None


def _guarded(items: Iterator[Item], where: Path) -> Iterator[Item]:
    """Errors of readers as ours, without the content they choked on."""
    try:
        yield from items
    except EstateError:
        raise
    except Exception as error:
        raise EstateError(
            f"the inventory cannot be read: {type(error).__name__}", where=str(where), todo="create the inventory again"
        ) from None


# --- listing files ---


def _needed(columns: Iterable[str], where: Path) -> None:
    missing = sorted(set(_COLUMNS) - {"isDir"} - set(columns))
    if missing:
        raise EstateError(
            f"the listing has no column {', '.join(missing)}",
            where=str(where),
            todo=f"create a listing with the columns {', '.join(_COLUMNS)}",
        )


def _csv_listing(source: Path) -> Iterator[Item]:
    opener = gzip.open if source.suffix == ".gz" else open
    with opener(source, "rt", encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        _needed(reader.fieldnames or (), source)
        for row in reader:
            folder = (row.get("isDir") or "false").strip().lower() == "true"
            yield Item(row["path"], int(row["length"] or 0), int(row["modificationTime"]), folder)


def _parquet_listing(source: Path) -> Iterator[Item]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as file:
        _needed(file.schema_arrow.names, source)
        wanted = [name for name in _COLUMNS if name in file.schema_arrow.names]
        for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
            for row in batch.to_pylist():
                when = row["modificationTime"]
                modified = _ms(when) if isinstance(when, datetime) else int(when)
                yield Item(row["path"], int(row["length"] or 0), modified, bool(row.get("isDir")))


# --- S3 Inventory ---


def _s3_inventory(manifest: Path) -> tuple[Iterable[Item], datetime | None]:
    try:
        data = json.loads(manifest.read_text(encoding="utf-8"))
        schema, kind = data["fileSchema"], data["fileFormat"].upper()
        files = [(str(f["key"]), str(f["MD5checksum"])) for f in data["files"]]
        taken = datetime.fromtimestamp(int(data["creationTimestamp"]) / 1000, timezone.utc)
        bucket = str(data["sourceBucket"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise EstateError(
            "this is not a manifest of S3 Inventory",
            where=str(manifest),
            todo="name the manifest.json of one S3 inventory",
        ) from None
    if kind not in KINDS:
        raise EstateError(
            f"inventories in the format {kind} are not supported", where=str(manifest), todo="use CSV, ORC or Parquet"
        )
    found = [(_data_file(manifest, key), digest) for key, digest in files]
    return _guarded(_objects(found, kind, schema, bucket), manifest), taken


def _data_file(manifest: Path, key: str) -> Path:
    """A data file of an inventory that was copied here: under its whole key, under `data/`, or beside the manifest."""
    name = key.rsplit("/", 1)[-1]
    places = [parent / key for parent in manifest.parents]
    places += [manifest.parent.parent / "data" / name, manifest.parent / "data" / name, manifest.parent / name]
    for place in places:
        if place.is_file():
            return place
    raise EstateError(
        "a data file of the inventory is missing", where=name, todo="copy the whole inventory beside its manifest.json"
    )


def _objects(files: list[tuple[Path, str]], kind: str, schema: str, bucket: str) -> Iterator[Item]:
    for file, digest in files:
        if _md5(file) != digest:
            raise EstateError(
                "a data file of the inventory is damaged",
                where=file.name,
                todo="copy this file from the inventory again",
            )
        with file.open("rb") as stream:
            for row in rows(stream, kind, schema):
                # a noncurrent version or a delete marker is no file that an engine could see
                if _truth(row.get("islatest"), True) and not _truth(row.get("isdeletemarker"), False):
                    path = object_uri(row.get("bucket") or bucket, row["key"])
                    yield Item(path, int(row["size"] or 0), _ms(row["lastmodifieddate"]), path.endswith("/"))


def _md5(file: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _truth(value: Any, default: bool) -> bool:
    if value is None or value == "":
        return default
    return value if isinstance(value, bool) else str(value).lower() == "true"


def _ms(value: Any) -> int:
    return int(instant(str(value)).timestamp() * 1000)
