"""A UUID is found as it is written elsewhere: without dashes, packed into sixteen bytes, in Parquet's and Iceberg's types."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, UUIDType

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_bytes, scan_tree
from pii_tracer.scan.hits import FileScan, Form, Hit
from pii_tracer.scan.value_forms import Patterns, build_patterns

HERS = UUID("6f1b2c3d-8a9e-4b7c-a1d2-0e3f4a5b6c7d")
OTHERS = tuple(UUID(int=HERS.int + n) for n in (-2, -1, 1, 256, 1 << 127))


def patterns(value: str = str(HERS)) -> Patterns:
    return build_patterns([KeySet(name="sid", origin="students.sid", weak=False, values=(("subj_1", value),))])


def parquet(*columns: pa.Array, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({f"c{n}": column for n, column in enumerate(columns)}), sink, **options)
    return sink.getvalue()


def data_hits(scan: FileScan) -> list[Hit]:
    return [hit for hit in scan.hits if hit.where == "data"]


@pytest.mark.parametrize(
    "written",
    [
        HERS.hex,
        HERS.hex.upper(),
        str(HERS).upper(),
        HERS.urn,
        f"{{{HERS}}}",
        base64.b64encode(HERS.bytes).decode(),
        base64.urlsafe_b64encode(HERS.bytes_le).decode().rstrip("="),
    ],
)
@pytest.mark.parametrize("known", [str(HERS), HERS.hex, HERS.hex.upper(), f"{{{HERS}}}"])
def test_every_way_to_write_it_is_found(written: str, known: str) -> None:
    assert scan_bytes("x.json", json.dumps({"who": written}).encode(), patterns(known)).strong
    assert scan_bytes("x.bin", b"\xff\0" + written.encode() + b"\0", patterns(known)).strong


@pytest.mark.parametrize(("kind", "nested"), [(pa.uuid(), 0), (pa.uuid(), 1), (pa.binary(16), 0), (pa.binary(), 0)])
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_columns_of_sixteen_bytes_are_compared(
    kind: pa.DataType, nested: int, compression: str, dictionary: bool
) -> None:
    def cells(*found: UUID) -> bytes:
        column = pa.array([u.bytes for u in found], kind)
        if nested:
            column = pa.ListArray.from_arrays(pa.array(range(len(found) + 1), pa.int32()), column)
        return parquet(column, compression=compression, use_dictionary=dictionary)

    assert {(h.form, h.column) for h in data_hits(scan_bytes("p.parquet", cells(HERS, *OTHERS), patterns()))} == {
        (Form.UUID, "c0")
    }
    assert scan_bytes("p.parquet", cells(*OTHERS), patterns()).hits == ()


def test_the_order_of_dotnet_is_known() -> None:
    column = pa.array([HERS.bytes_le, OTHERS[0].bytes_le], pa.binary(16))
    assert data_hits(scan_bytes("p.parquet", parquet(column), patterns()))


def test_iceberg_tells_it_in_rows_and_bounds(tmp_path: Path) -> None:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("edu")
    fields = (NestedField(1, "sid", UUIDType(), required=False), NestedField(2, "n", LongType(), required=False))
    table = catalog.create_table("edu.enrol", Schema(*fields))
    table.append(pa.Table.from_pylist([{"sid": HERS.bytes, "n": 1}], schema=table.schema().as_arrow()))
    found = scan_tree(tmp_path / "w", patterns())
    assert not found.unread
    places = {(hit.where, hit.column) for file in found.with_person for hit in file.hits}
    assert ("data", "sid") in places
    assert any("bound" in where and column == "sid" for where, column in places)


def test_a_key_that_is_no_uuid_has_no_such_form() -> None:
    digits = "12345678901234567890123456789012345678"
    assert scan_bytes("x", UUID(int=int(digits) % (1 << 128)).bytes, patterns(digits)).hits == ()


@given(st.uuids(), st.uuids(), st.binary(max_size=40), st.binary(max_size=40))
def test_sixteen_bytes_are_found_wherever_they_stand(hers: UUID, other: UUID, before: bytes, behind: bytes) -> None:
    assert patterns(str(hers)).raw(before + hers.bytes + behind)
    if hers.bytes not in before + other.bytes + behind and hers.bytes_le not in before + other.bytes + behind:
        assert not patterns(str(hers)).raw(before + other.bytes + behind)
