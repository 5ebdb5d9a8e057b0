"""What a NameNode says of a file's blocks, and when that tells the file again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.stored_places.hdfs_files import held, identity_of
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.places import HdfsFile
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.parquet_decryption_keys import FileKeys
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.search_workers import THREADS
from tests.scan.drawn_cells import patterns_of

NAME_NODES = NameNodes(("http://n:1",))
FILE = HdfsFile("/a", 10, 1, 7)
BLOCK = {"blockPoolId": "BP-1", "blockId": 1, "generationStamp": 1001, "numBytes": 10}
FOUND = {"block": BLOCK, "isCorrupt": False, "storageTypes": ["DISK", "SSD"]}
TOLD = {"isUnderConstruction": False, "isLastBlockComplete": True, "fileLength": 10, "locatedBlocks": [FOUND]}


@dataclass(frozen=True)
class Answering(WebHdfs):
    """A NameNode that says this of each file."""

    answer: dict[str, Any] = field(default_factory=dict)

    def _asked(self, *args: Any, **more: Any) -> bytes:
        return json.dumps({"LocatedBlocks": self.answer, "FileStatus": self.answer}).encode()


def identity(**other: Any) -> str | None:
    return identity_of(Answering("hdfs://n", NAME_NODES, "hdfs", answer={**TOLD, **other}), FILE)


def test_finished_blocks_tell_a_file_again() -> None:
    assert identity() is not None
    assert identity() == identity()
    assert identity(locatedBlocks=[{**FOUND, "block": {**BLOCK, "generationStamp": 1002}}]) != identity()


@pytest.mark.parametrize(
    "other",
    [
        {"isUnderConstruction": True},
        {"isLastBlockComplete": False},
        {"isLastBlockComplete": None},
        {"fileLength": float("inf")},
        {"fileLength": float("nan")},
        {"locatedBlocks": None},
        {"locatedBlocks": [{**FOUND, "storageTypes": ["DISK", "PROVIDED"]}]},
        {"locatedBlocks": [{**FOUND, "storageTypes": "PROVIDED"}]},
        {"locatedBlocks": [{**FOUND, "isCorrupt": True}]},
        {"locatedBlocks": [{**FOUND, "block": {**BLOCK, "generationStamp": 0}}]},
        {"locatedBlocks": [{**FOUND, "block": {**BLOCK, "generationStamp": -1}}]},
        {"locatedBlocks": [{**FOUND, "block": {**BLOCK, "generationStamp": float("inf")}}]},
        {"locatedBlocks": [FOUND, {**FOUND, "block": {**BLOCK, "generationStamp": 0}}]},
    ],
)
def test_what_may_change_without_another_stamp_tells_nothing(other: dict[str, Any]) -> None:
    """Blocks that lie outside of HDFS, that are broken or not finished, and answers that are none."""
    assert identity(**other) is None


def test_files_that_are_never_remembered_are_not_asked_for(tmp_path: Path) -> None:
    """Metadata that names files is read each time, and so are encrypted files that are opened."""
    client = Answering("hdfs://n", NAME_NODES, "hdfs", answer=TOLD)
    ledger = ScanLedger(tmp_path / "ledger.sqlite", b"k" * 32, lambda: datetime(2026, 1, 1, tzinfo=timezone.utc), str)
    patterns = patterns_of(("asha.rao@mail.example", False))
    files, searchers = (FILE, FILE._replace(path="/b")), LedgerSearchers(ledger, THREADS)
    assert all(file.identity for file in held(client, files, searchers, patterns))
    some = held(client, files, searchers, patterns, lambda file: file.key == "/b")
    assert [file.identity is None for file in some] == [True, False]
    opening = patterns.opening(FileKeys({}))
    assert [file.identity for file in held(client, files, searchers, opening)] == [None, None]


@pytest.mark.parametrize("size", [float("inf"), float("nan"), None, "ten"])
def test_a_size_that_is_none_is_an_odd_answer(size: object) -> None:
    told = {"pathSuffix": "", "type": "FILE", "length": size, "modificationTime": 1, "fileId": 7}
    with pytest.raises(StoreError, match="does not follow the interface of WebHDFS"):
        Answering("hdfs://n", NAME_NODES, "hdfs", answer=told).status("/a")
