"""Delta tables in a real HDFS: written here by delta-rs, and put there file by file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from tests.hdfs.shop import Shop

People = Sequence[tuple[str, str]]


def _rows(people: People) -> pa.Table:
    return pa.table({"uid": [uid for uid, _ in people], "mail": [mail for _, mail in people]})


def delta(
    shop: Shop,
    folder: str,
    *versions: People,
    known: bool = True,
    put: bool = True,
    again: bool = False,
    **options: Any,
) -> str:
    """A table of which each version after the first adds rows; its path. known: to lineage, as an export.

    put: whether it is put into HDFS. again: what it has beyond what lies there.
    """
    here = shop.base / "made" / folder
    before = set(here.rglob("*")) if again else set()
    for people in versions:
        write_deltalake(here, _rows(people), mode="append", **options)
    if known and folder not in shop.exports:
        shop.exports.append(folder)
    return put_all(shop, here, folder, before) if put else f"{shop.root}/{folder}"


def put_all(shop: Shop, here: Path, folder: str, without: Collection[Path] = ()) -> str:
    """A folder of this machine below the root; its path there. without: files that are left out."""
    for file in sorted(here.rglob("*")):
        if file.is_file() and file not in without:
            shop.put(f"{folder}/{file.relative_to(here).as_posix()}", file.read_bytes())
    return f"{shop.root}/{folder}"


def deleted(shop: Shop, folder: str, uid: str) -> None:
    """The naive way: a DELETE, before the table is put into HDFS."""
    DeltaTable(shop.base / "made" / folder).delete(f"uid = '{uid}'")


def files_of(shop: Shop, path: str) -> list[str]:
    """The paths of all files below a folder in HDFS."""
    below = HdfsPath(shop.hdfs.client(), path).below()
    return sorted(place.path for place, entry in below if entry.kind == "FILE")


def opened_to_all(shop: Shop, path: str) -> None:
    """Let everybody write a folder and what lies in it."""
    shop.hdfs.ask(path, "SETPERMISSION", permission="777")
    for place, entry in HdfsPath(shop.hdfs.client(), path).below():
        if entry.kind == "DIRECTORY":
            shop.hdfs.ask(place.path, "SETPERMISSION", permission="777")


def rows(shop: Shop, folder: str) -> list[dict[str, Any]]:
    """Of a Delta table, whose files are fetched from HDFS."""
    here = Path(mkdtemp(dir=shop.base))
    for path in files_of(shop, f"{shop.root}/{folder}"):
        file = here / path.removeprefix(f"{shop.root}/{folder}/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(shop.read(path))
    return list(DeltaTable(here).to_pyarrow_table().to_pylist())
