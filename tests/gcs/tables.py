"""Delta tables in the stand-in of Cloud Storage: written here by delta-rs, and put there file by file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.commands_apart import run_apart
from tests.gcs.shop import BUCKET, Shop
from tests.icebergstores import as_table

People = Sequence[tuple[str, str]]


def delta(
    shop: Shop,
    folder: str,
    *versions: People | pa.Table,
    known: bool = True,
    put: bool = True,
    again: bool = False,
    **options: Any,
) -> Path:
    """A table of which each version after the first adds rows; where it was made. known: to lineage, as an export.

    put: whether it is put into the bucket. again: what it has beyond what lies there.
    """
    here = shop.base / "made" / folder
    before = set(here.rglob("*")) if again else set[Path]()
    for people in versions:
        write_deltalake(here, as_table(people), mode="append", **options)
    if known and folder not in shop.exports:
        shop.exports.append(folder)
    if put:
        put_all(shop, here, folder, before)
    return here


def put_all(shop: Shop, here: Path, folder: str, without: Collection[Path] = ()) -> None:
    """A folder of this machine as objects. without: files that are left out."""
    for file in sorted(here.rglob("*")):
        if file.is_file() and file not in without:
            shop.put(f"{folder}/{file.relative_to(here).as_posix()}", file.read_bytes())


def deleted(shop: Shop, folder: str, uid: str) -> None:
    """The naive way: a DELETE, before the table is put into the bucket."""
    DeltaTable(shop.base / "made" / folder).delete(f"uid = '{uid}'")


def holding(shop: Shop, *texts: str) -> list[str]:
    """Every version of every object that has one of some texts in its bytes, whatever its state."""
    found = shop.gcs.there(shop.gcs.buckets[BUCKET])
    return sorted(f"{o['name']}@{o['generation']}" for o in found if any(t.encode() in o["data"] for t in texts))


def rows(shop: Shop, folder: str) -> list[tuple[str, str]]:
    """What a reader of the table sees."""
    options = shop.gcs.store(BUCKET).reader_options()
    table = DeltaTable(f"gs://{BUCKET}/{folder}", storage_options=options).to_pyarrow_table().to_pylist()
    return sorted((row["uid"], row["mail"]) for row in table)


@dataclass
class Lake(Shop):
    """A shop whose commands run in another process.

    delta-rs holds the interpreter while it reads, so that the stand-in here could not answer; and a session that is
    open already gets no connector. until: when a command is killed.
    """

    until: Callable[[], bool] = lambda: False

    def cli(self, *words: str) -> int:
        where = ["--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")]
        return run_apart([*words, *where], self.base / "apart.log", until=self.until)
