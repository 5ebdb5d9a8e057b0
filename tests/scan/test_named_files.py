"""Which files a Delta log names in full: they can lie where nobody searches."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.scan.referenced_files import named_files

VECTOR = {
    "storageType": "p",
    "pathOrInlineDv": "s3://b/other/v%20.bin",
    "offset": 0,
    "sizeInBytes": 1,
    "cardinality": 1,
}
ACTIONS = [
    {"add": {"path": "day=a:/p.parquet"}},
    {"add": {"path": "a%3A/p.parquet"}},
    {"add": {"path": "s3a://b/x%20y%253A.parquet", "deletionVector": VECTOR}},
    {"remove": {"path": "file:/x%20y"}},
    {"cdc": {"path": "/c%25"}},
]
FULL = ["s3a://b/x y%3A.parquet", "s3://b/other/v .bin", "/x y", "/c%"]


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_files_that_a_delta_log_names_in_full(form: str) -> None:
    data = "\n".join(map(json.dumps, ACTIONS)).encode()
    name = f"{1:020}.json"
    if form == "parquet":
        sink = pa.BufferOutputStream()
        rows = [{kind: action.get(kind) for kind in ("add", "remove", "cdc")} for action in ACTIONS]
        pq.write_table(pa.Table.from_pylist(rows), sink)
        data, name = sink.getvalue().to_pybytes(), f"{1:020}.checkpoint.parquet"
    assert sorted(named_files(f"wh/t/_delta_log/{name}", memoryview(data))) == sorted(FULL)
    assert list(named_files(f"wh/t/{name}", memoryview(data))) == []
