"""Surgery against a slow model: the same rows as a whole rewrite, in any schema, and no byte of the person."""

from __future__ import annotations

import io
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from executors.formats.plain_files import parquet_rewrite
from executors.formats.plain_files.parquet_surgery.layout import Layout
from executors.formats.plain_files.parquet_surgery.recipe import Recipe
from pii_tracer.model.datasets import Format, Match, MatchTerm
from tests.executors.formats.plain_files.alone import drop_rows

MATCH = Match(terms=(MatchTerm(column="mail", key_set="mail", type="string"),))
_BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def mail(person: int) -> str:
    return f"p{person}.{'k' * person}@example.in"


def cells(kind: pa.DataType, person: int, row: int) -> Any:
    """A value that names its person wherever the type can."""
    if (person + row) % 5 == 4:
        return None
    if pa.types.is_dictionary(kind):
        return f"{mail(person)} {row % 2}"
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        text = f"{mail(person)} {row}"
        return text if pa.types.is_string(kind) else text.encode()
    if pa.types.is_map(kind):
        return [(f"k{i}", cells(kind.item_type, person, row + i)) for i in range(row % 3)]
    if pa.types.is_list(kind):
        return [cells(kind.value_type, person, row + i) for i in range(row % 4)]
    if pa.types.is_struct(kind):
        return {field.name: cells(field.type, person, row + i) for i, field in enumerate(kind)}
    if pa.types.is_decimal(kind):
        return Decimal(row - 7).scaleb(-2)
    if pa.types.is_timestamp(kind):
        return _BEGIN + timedelta(milliseconds=row * 997)
    if pa.types.is_floating(kind):
        return float("nan") if row % 3 == 0 else row / 3
    return row % 2 == 0 if pa.types.is_boolean(kind) else row - 3


LEAVES = st.sampled_from(
    [
        pa.string(),
        pa.binary(),
        pa.int32(),
        pa.int64(),
        pa.bool_(),
        pa.float64(),
        pa.decimal128(9, 2),
        pa.decimal128(30, 2),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ms"),
    ]
)
TYPES = st.one_of(
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            inner.map(pa.list_),
            inner.map(lambda kind: pa.map_(pa.string(), kind)),
            st.lists(inner, min_size=1, max_size=2).map(
                lambda kinds: pa.struct([(f"f{n}", kind) for n, kind in enumerate(kinds)])
            ),
        ),
        max_leaves=3,
    ),
    st.just(pa.dictionary(pa.int32(), pa.string())),
)


@st.composite
def files(draw: st.DrawFn) -> tuple[pa.Table, bytes, dict[str, Any]]:
    people = draw(st.lists(st.integers(0, 5), min_size=1, max_size=40))
    # the person's rows near each other, as time puts them
    people = sorted(people) if draw(st.booleans()) else people
    columns = {"mail": pa.array([mail(person) for person in people])}
    for number, kind in enumerate(draw(st.lists(TYPES, max_size=3))):
        values = [cells(kind, person, row) for row, person in enumerate(people)]
        columns[f"c{number}"] = pa.array(values, kind)
    table = pa.table(columns).replace_schema_metadata({b"job": b"nightly"} if draw(st.booleans()) else None)
    options = {
        "row_group_size": draw(st.integers(1, 12)),
        "compression": draw(st.sampled_from(["none", "zstd", "snappy"])),
        "write_page_index": draw(st.booleans()),
        "use_dictionary": draw(st.booleans()),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "write_page_checksum": draw(st.booleans()),
        "data_page_size": draw(st.sampled_from([20, 1 << 20])),
        "write_statistics": draw(st.booleans()),
        "bloom_filter_options": {"mail": {"ndv": 40}} if draw(st.booleans()) else None,
    }
    sink = io.BytesIO()
    pq.write_table(table, sink, write_batch_size=2, **options)
    try:
        pq.ParquetFile(io.BytesIO(sink.getvalue())).read(use_threads=False)
    except pa.ArrowInvalid:  # pages of version 2.0 with no booleans but those of empty lists: Arrow cannot read its own
        reject()
    return table, sink.getvalue(), options


def opened(data: bytes) -> Any:
    return lambda **options: pq.ParquetFile(io.BytesIO(data), **options)


@settings(deadline=None, max_examples=80)
@given(files(), st.integers(0, 5))
def test_rows_and_bytes(file: tuple[pa.Table, bytes, dict[str, Any]], person: int) -> None:
    table, data, options = file
    keys = {"mail": frozenset({mail(person)})}
    kept = drop_rows(data, Format.PARQUET, MATCH, keys, keys["mail"])
    mine = pc.equal(table.column("mail"), mail(person))
    assert kept.rows_before - kept.rows_after == pc.sum(mine).as_py()
    if not pc.any(mine).as_py():
        assert kept.data is None
        return
    assert kept.data is not None
    whole = io.BytesIO()
    parquet_rewrite.write(opened(data), whole, MATCH, keys)
    got, model = pq.read_table(io.BytesIO(kept.data)), pq.read_table(io.BytesIO(whole.getvalue()))
    # NaN is not equal to itself, and what prints alike is
    assert got.schema.equals(model.schema, check_metadata=True)
    assert got.to_pylist().__repr__() == model.to_pylist().__repr__()
    if options["compression"] == "none":
        assert mail(person).encode() not in kept.data
    size = options["row_group_size"]
    rows = mine.to_pylist()
    untouched = sum(not any(rows[at : at + size]) for at in range(0, len(rows), size))
    if untouched and not any(pa.types.is_dictionary(kind) for kind in table.schema.types):
        assert isinstance(kept.made, Recipe)
        assert len(kept.made.copied) == untouched
        layout = Layout.of(memoryview(kept.data))
        assert sum(group.rows for group in layout.groups) == kept.rows_after
        for group in layout.groups:
            for chunk in group.chunks:
                assert layout.pages(chunk)
                assert (chunk.offset_index is not None) == options["write_page_index"]
        filters = [group.chunks[0].bloom is not None for group in layout.groups]
        assert set(filters) <= {bool(options["bloom_filter_options"])}
