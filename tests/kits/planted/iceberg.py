"""A value in each place of an Iceberg table's metadata file, manifests and manifest lists, and of its folder."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
from pyiceberg.catalog.sql import SqlCatalog

from tests.kits.planted.estate import (
    HERS,
    MAIL,
    OTHERS,
    Plant,
    Planted,
    Step,
    avro_rewritten,
    beside,
    leaves,
    overwritten,
    with_value,
)

CATALOG = "  ice: {type: iceberg-sql, uri: 'sqlite:///c.db', warehouse: lake}\n"
_NOTE = 2
_Records = list[Any]


def build(base: Path, name: str) -> Path:
    """A file with a row of hers, one of other people, a branch and a tag."""
    catalog = SqlCatalog("ice", uri=f"sqlite:///{base}/c.db", warehouse=f"file://{base}/lake")
    catalog.create_namespace_if_not_exists("s")
    made = catalog.create_table(
        f"s.{name}",
        HERS.schema,
        location=f"file://{base}/lake/{name}",
        properties={"a": "b"},
    )
    made.append(HERS)
    made.append(OTHERS, snapshot_properties={"x": "y"})
    head = made.current_snapshot().snapshot_id  # type: ignore[union-attr]
    with made.manage_snapshots() as change:
        change.create_branch(head, "audit")
        change.create_tag(head, "q3")
    return base / "lake" / name


def newest(folder: Path) -> Path:
    """The metadata file of now, whoever wrote it."""
    files = (folder / "metadata").glob("*.metadata.json")
    return max(files, key=lambda file: int(file.name.lstrip("v").partition(".")[0].partition("-")[0]))


def in_newest(path: tuple[Step, ...], folder: Path) -> None:
    file = newest(folder)
    overwritten(file, json.dumps(with_value(json.loads(file.read_text()), path)).encode())


def changed(change: Callable[[dict[str, Any]], None], folder: Path) -> None:
    """Write the metadata file of now again."""
    file = newest(folder)
    document = json.loads(file.read_text())
    change(document)
    overwritten(file, json.dumps(document).encode())


def _statistics(name: str, document: dict[str, Any]) -> None:
    blob = {
        "type": "apache-datasketches-theta-v1",
        "snapshot-id": document["current-snapshot-id"],
        "sequence-number": 2,
        "fields": [1],
        "properties": {"ndv": MAIL},
    }
    where = {
        "snapshot-id": document["current-snapshot-id"],
        "statistics-path": f"{document['location']}/metadata/{name}",
    }
    document["statistics"] = [
        {**where, "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": [blob]}
    ]


def _branch(document: dict[str, Any]) -> None:
    document["refs"][MAIL] = {"snapshot-id": document["current-snapshot-id"], "type": "branch"}


def _partition_field(document: dict[str, Any]) -> None:
    field = {"source-id": 2, "field-id": 1000, "transform": "truncate[9]", "name": MAIL}
    document["partition-specs"].append({"spec-id": 1, "fields": [field]})
    document["last-partition-id"] = 1000


def _former_schema(document: dict[str, Any]) -> None:
    old = json.loads(json.dumps(document["schemas"][0])) | {"schema-id": 7}
    old["fields"][1]["doc"] = f"as told by {MAIL}"
    document["schemas"].append(old)


def _column(document: dict[str, Any]) -> None:
    document["schemas"][0]["fields"][1]["doc"] = f"as told by {MAIL}"


def manifest_of(folder: Path, others: bool) -> Path:
    """The manifest that tells of the file of hers, or of that of other people."""
    for file in sorted((folder / "metadata").glob("*-m*.avro")):
        with file.open("rb") as stream:
            told = [bound for row in fastavro.reader(stream) for bound in row["data_file"]["lower_bounds"]]
        if any(bound["value"] == b"P-3" for bound in told) == others:
            return file
    raise AssertionError("no such manifest")


def in_manifest(others: bool, change: Callable[[_Records], None], folder: Path, **metadata: str) -> None:
    avro_rewritten(manifest_of(folder, others), change, **metadata)


def _bound(kind: str, records: _Records) -> None:
    for bound in records[0]["data_file"][kind]:
        if bound["key"] == _NOTE:
            bound["value"] = MAIL.encode()


def _key_metadata(records: _Records) -> None:
    records[0]["data_file"]["key_metadata"] = MAIL.encode()


def in_list(folder: Path) -> None:
    """An entry in the header of the current snapshot's manifest list."""
    document = json.loads(newest(folder).read_text())
    mine = next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])
    avro_rewritten(Path(mine["manifest-list"].removeprefix("file:")), lambda records: None, note=MAIL)


def puffin(name: str, folder: Path) -> None:
    """A statistics file without blobs."""
    footer = json.dumps({"blobs": [], "properties": {"created-by": MAIL}}).encode()
    data = b"PFA1PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1"
    (folder / "metadata" / name).write_bytes(data)


def crc_of_others(folder: Path) -> None:
    with manifest_of(folder, True).open("rb") as stream:
        file = next(iter(fastavro.reader(stream)))["data_file"]["file_path"]
    place = Path(file.removeprefix("file:"))
    beside(str(place.with_name(f".{place.name}.crc").relative_to(folder)), folder)


def plants(template: Path) -> Mapping[str, Plant]:
    document = json.loads(newest(template).read_text())
    found: dict[str, Plant] = {".".join(map(str, path)): partial(in_newest, path) for path in leaves(document)}
    found |= {
        "statistics": partial(changed, partial(_statistics, "s.stats")),
        "name of a branch": partial(changed, _branch),
        "name of a partition field": partial(changed, _partition_field),
        "comment of a column": partial(changed, _column),
        "comment of a former column": partial(changed, _former_schema),
        "header of a manifest list": in_list,
        "puffin": partial(puffin, "20261101_000000_00000_x-7d3f3c3e-6a53-4bd6-8b29-5a9b1b1f0c11.stats"),
        "crc of others": crc_of_others,
    }
    for whose, others in (("hers", False), ("others", True)):
        for kind in ("lower_bounds", "upper_bounds"):
            found[f"manifest of {whose} {kind}"] = partial(in_manifest, others, partial(_bound, kind))
        found[f"manifest of {whose} key_metadata"] = partial(in_manifest, others, _key_metadata)
        found[f"manifest of {whose} header"] = partial(in_manifest, others, lambda records: None, note=MAIL)
    for name in (
        "metadata/notes.txt",
        "metadata/x.metadata.json.tmp",
        "metadata/version-hint.text",
        "notes.txt",
        ".hidden/x",
        "data/_SUCCESS",
        "data/.gone.parquet.crc",
        "data/stray.parquet",
    ):
        found[f"file {name}"] = partial(beside, name)
    return found


ICEBERG = Planted(
    kind="iceberg",
    build=build,
    plants=plants,
    catalog=CATALOG,
    taken={
        r"snapshots\.\d\.(unheard_of|summary\.(?!operation).*)": "iceberg_expire_snapshots",
        r"snapshot-log\..*|refs\.\w+\.unheard_of": "iceberg_expire_snapshots",
        r"((schemas|partition-specs|sort-orders|metadata-log)\..*)?unheard_of": "iceberg_remove_orphans",
        r"statistics|puffin|header of a manifest list": "iceberg_remove_orphans",
        r"manifest of hers (lower_bounds|upper_bounds|key_metadata)": "iceberg_rewrite_manifests",
        r"manifest of hers header": "iceberg_rewrite_manifests",
        r"file data/_SUCCESS": "iceberg_remove_orphans",
    },
    refused=("name of a branch", r"schemas\.0\.fields\.1\.name"),
    quick=(
        "name of a partition field",
        "comment of a former column",
        "manifest of others lower_bounds",
        "manifest of others upper_bounds",
        "manifest of others key_metadata",
        "manifest of others header",
        "manifest of hers lower_bounds",
        "snapshots.1.summary.x",
        "file metadata/version-hint.text",
        "crc of others",
    ),
)
