"""Numbers, days and texts in VARIANT's binary encoding, as Spark 4, Iceberg and Delta write it in columns of bytes."""

from __future__ import annotations

import io
import struct
import uuid
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.decode.cells import variant
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import avro, parquet, scan

KEY, TWIN, SHORT, TINY = 8841302211, 8841302212, 884130, 57
MAIL, OTHER, NAME = "asha.raovich@example.org", "asha.raovick@example.org", "Li Wu"
DAY, UUID = "1987-04-03", "6f1c2a3e-8d4b-4c5a-9e7f-0a1b2c3d4e5f"
VALUES = {"id": str(KEY), "mail": MAIL, "day": DAY, "uuid": UUID, "short": str(SHORT), "tiny": str(TINY), "who": NAME}
PATTERNS = build_patterns(
    [
        KeySet(name=f"c.{name}", origin=name, weak=name in ("short", "tiny"), values=(("s", value),))
        for name, value in VALUES.items()
    ]
)
Sizes = tuple[int, int, bool, bool]
"""Bytes of offsets and of numbers of fields, four bytes for the number of elements, and the last values first."""
PLAIN: Sizes = (1, 1, False, False)


def number(width: int, value: int) -> bytes:
    return bytes([{1: 3, 2: 4, 4: 5, 8: 6}[width] << 2]) + value.to_bytes(width, "little", signed=True)


def decimal(width: int, value: int, scale: int) -> bytes:
    return bytes([{4: 8, 8: 9, 16: 10}[width] << 2, scale]) + (value * 10**scale).to_bytes(width, "little", signed=True)


def long(kind: int, data: bytes) -> bytes:
    return bytes([kind << 2]) + len(data).to_bytes(4, "little") + data


def short(data: bytes) -> bytes:
    return bytes([len(data) << 2 | 1]) + data


def day(text: str) -> bytes:
    return b"\x2c" + (date.fromisoformat(text) - date(1970, 1, 1)).days.to_bytes(4, "little", signed=True)


def _fields(items: list[bytes], size: int, *, turned: bool) -> bytes:
    order = list(reversed(range(len(items)))) if turned else list(range(len(items)))
    starts, body = {}, b""
    for n in order:
        starts[n] = len(body)
        body += items[n]
    return b"".join(at.to_bytes(size, "little") for at in (*(starts[n] for n in range(len(items))), len(body))) + body


def array(items: list[bytes], sizes: Sizes = PLAIN) -> bytes:
    offset, _, large, turned = sizes
    count = len(items).to_bytes(4 if large else 1, "little")
    return bytes([(offset - 1 | large << 2) << 2 | 3]) + count + _fields(items, offset, turned=turned)


def obj(items: dict[int, bytes], sizes: Sizes = PLAIN) -> bytes:
    offset, ids, large, turned = sizes
    head = bytes([(offset - 1 | ids - 1 << 2 | large << 4) << 2 | 2]) + len(items).to_bytes(4 if large else 1, "little")
    numbers = b"".join(n.to_bytes(ids, "little") for n in items)
    return head + numbers + _fields(list(items.values()), offset, turned=turned)


def metadata(names: list[str], size: int = 1) -> bytes:
    ends, text = [0], b""
    for name in names:
        text += name.encode()
        ends.append(len(text))
    return bytes([size - 1 << 6 | 1]) + b"".join(n.to_bytes(size, "little") for n in (len(names), *ends)) + text


NAMES = metadata(["pad", "who"])

SCALARS: dict[str, tuple[str, Callable[[bool], bytes]]] = {
    "int8": ("tiny", lambda hers: number(1, TINY + (not hers))),
    "int16": ("tiny", lambda hers: number(2, TINY + (not hers))),
    "int32": ("short", lambda hers: number(4, SHORT + (not hers))),
    "int64": ("id", lambda hers: number(8, KEY if hers else TWIN)),
    "float": ("short", lambda hers: b"\x38" + struct.pack("<f", SHORT + (not hers))),
    "double": ("id", lambda hers: b"\x1c" + struct.pack("<d", KEY if hers else TWIN)),
    "decimal4": ("short", lambda hers: decimal(4, SHORT + (not hers), 2)),
    "decimal8": ("id", lambda hers: decimal(8, KEY if hers else TWIN, 3)),
    "decimal16": ("id", lambda hers: decimal(16, KEY if hers else TWIN, 20)),
    "date": ("day", lambda hers: day(DAY if hers else "1987-04-04")),
    "uuid": ("uuid", lambda hers: b"\x50" + uuid.UUID(UUID if hers else UUID[:-1] + "e").bytes),
    "binary": ("id", lambda hers: long(15, (KEY if hers else TWIN).to_bytes(8, "big"))),
    "string": ("mail", lambda hers: long(16, (MAIL if hers else OTHER).encode())),
    "short string": ("mail", lambda hers: short((MAIL if hers else OTHER).encode())),
    "weak string": ("short", lambda hers: short(str(SHORT + (not hers)).encode())),
    "other": ("id", lambda hers: number(8, KEY) if hers else b"\x30" + KEY.to_bytes(8, "little")),
}
"""By type: the key set, and hers or somebody else's. A moment of her number is nobody's."""


def column(rows: list[tuple[bytes, bytes] | None], *others: tuple[str, Any]) -> pa.Array:
    """A column of VARIANT. others: of the struct's fields."""
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.binary()), *((n, a.type) for n, a in others)])
    values = [None if row is None else {"metadata": row[0], "value": row[1]} for row in rows]
    made = pa.array(values, kind)
    children = [made.field("value"), made.field("metadata"), *(a for _, a in others)]
    return pa.StructArray.from_arrays(children, fields=list(kind)) if others else made


def found(rows: Any, *others: tuple[str, Any]) -> dict[str, set[str | None]]:
    """By key set, the columns that have it in their rows."""
    table = pa.table({"v": rows if isinstance(rows, pa.Array) else column(rows, *others)})
    result = scan("a.parquet", parquet(table), PATTERNS)
    assert not result.unread
    hits: dict[str, set[str | None]] = {}
    for hit in (h for h in result.hits if h.where == "data"):
        hits.setdefault(hit.key_set, set()).add(hit.column)
    return hits


@pytest.mark.parametrize("kind", SCALARS)
def test_every_type(kind: str) -> None:
    key_set, make = SCALARS[kind]
    assert found([(NAMES, make(True))])[f"c.{key_set}"] == {"v"}
    assert f"c.{key_set}" not in found([(NAMES, make(False))])
    inside = found([(NAMES, obj({1: array([make(True)])}))])
    assert inside[f"c.{key_set}"] == {"v.$.who"}


@given(
    kind=st.sampled_from(sorted(SCALARS)),
    steps=st.lists(
        st.tuples(
            st.booleans(),
            st.integers(0, 3),
            st.tuples(st.integers(2, 4), st.integers(1, 4), st.booleans(), st.booleans()),
        ),
        max_size=6,
    ),
    size=st.integers(1, 4),
)
def test_any_depth_and_any_sizes(kind: str, steps: list[tuple[bool, int, Sizes]], size: int) -> None:
    key_set, make = SCALARS[kind]
    for hers in (True, False):
        value, path = make(hers), ""
        for named, before, sizes in steps:
            pads = [number(1, -7)] * before
            value = obj({1: value, 0: array(pads)}, sizes) if named else array([*pads, value], sizes)
            path = ".who" + path if named else path
        hits = found([(metadata(["pad", "who"], size), value), None])
        assert hits.get(f"c.{key_set}") == ({f"v.${path}" if path else "v"} if hers else None)


def test_names_of_fields_are_data() -> None:
    assert found([(metadata([str(SHORT)]), obj({0: b"\0"}))])["c.short"] == {"v.$.(key)"}


def test_shredded_columns() -> None:
    """Fields with a type of their own are columns; what does not fit them stays encoded beside them."""
    typed = pa.array([{"who": {"value": number(8, KEY), "typed_value": None}}, {"who": {"typed_value": "Li Wu"}}])
    rows: list[tuple[bytes, bytes] | None] = [(NAMES, None), (NAMES, obj({0: number(4, SHORT)}))]  # type: ignore[list-item]
    hits = found(rows, ("typed_value", typed))
    assert hits["c.id"] == {"v.typed_value.who"}
    assert hits["c.who"] == {"v.typed_value.who.typed_value"}
    assert hits["c.short"] == {"v.$.pad"}
    listed = pa.array([[{"value": number(8, TWIN)}], [{"value": number(1, 1)}, {"value": obj({1: number(8, KEY)})}]])
    assert found(rows, ("typed_value", listed))["c.id"] == {"v.typed_value.$.who"}
    assert found([(NAMES, None)], ("typed_value", pa.array([KEY])))["c.id"] == {"v.typed_value"}  # type: ignore[list-item]


def annotated(file: bytes) -> bytes:
    """The file, with the column's group called VARIANT (`LogicalType` 16, in Thrift's compact protocol)."""
    size = int.from_bytes(file[-8:-4], "little")
    body, footer = file[: -8 - size], file[-8 - size : -8]
    group = b"\x18\x01v\x15\x04"
    assert footer.count(group + b"\0") == 1
    footer = footer.replace(group, group + b"\x5c\x0c\x20\x13\x01\0\0")
    return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_with_the_annotation() -> None:
    for key, expected in ((KEY, ["v.$.who"]), (TWIN, [])):
        file = annotated(parquet(pa.table({"v": column([(NAMES, obj({1: number(8, key)}))])}), store_schema=False))
        assert "Variant" in str(pq.ParquetFile(io.BytesIO(file)).schema)
        result = scan("a.parquet", file, PATTERNS)
        assert [h.column for h in result.hits] == expected
        assert not result.unread


def test_below_lists_and_in_other_formats(tmp_path: Path) -> None:
    hers, other = column([(NAMES, obj({1: number(8, KEY)}))]), column([(NAMES, obj({1: number(8, TWIN)}))])
    for rows, expected in ((hers, True), (other, False)):
        below = pa.ListArray.from_arrays(pa.array([0, 1]), rows)
        assert ("c.id" in found(below)) is expected
        orc.write_table(pa.table({"v": rows}), tmp_path / "a.orc")
        assert bool(scan("a.orc", (tmp_path / "a.orc").read_bytes(), PATTERNS).hits) is expected
        sink = io.BytesIO()
        feather.write_feather(pa.table({"v": rows}), sink, compression="zstd")
        assert bool(scan("a.feather", sink.getvalue(), PATTERNS).hits) is expected
        fields = [{"name": name, "type": "bytes"} for name in ("metadata", "value")]
        record = {"type": "record", "name": "v", "fields": fields}
        schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": record}]}
        file = avro(schema, [{"v": row} for row in rows.to_pylist()], codec="deflate")
        assert [h.column for h in scan("a.avro", file, PATTERNS).hits] == (["v.$.who"] if expected else [])


@pytest.mark.parametrize("of_struct", [True, False])
def test_below_nulls_of_arrow(of_struct: bool) -> None:
    """A writer that blanks a cell clears its bit, of the struct or of the value; the bytes stay."""
    blank = pa.py_buffer(b"\x02")
    for key in (KEY, TWIN):
        rows = column([(NAMES, number(8, key)), (NAMES, number(8, 5))])
        about, value = rows.field("metadata"), rows.field("value")
        if not of_struct:
            value = pa.Array.from_buffers(value.type, 2, [blank, *value.buffers()[1:]])
        masks = [blank if of_struct else None]
        rows = pa.Array.from_buffers(rows.type, 2, masks, children=[value, about])
        sink = io.BytesIO()
        feather.write_feather(pa.table({"v": rows}), sink, compression="uncompressed")
        hits = scan("a.feather", sink.getvalue(), PATTERNS).hits
        assert [(h.where, h.column) for h in hits] == ([("hidden cell", "v")] if key == KEY else [])


def test_a_text_is_counted_once() -> None:
    result = scan("a.parquet", parquet(pa.table({"v": column([(NAMES, obj({1: short(MAIL.encode())}))])})), PATTERNS)
    hits = [(hit.column, hit.count) for hit in result.hits if hit.where == "data"]
    assert hits == [("v.$.who", 1)]


def test_what_is_not_variant_is_searched_as_bytes() -> None:
    """Bytes under the same names that are no VARIANT, and bytes around a value."""
    assert found([(b"\x02about", b"xx" + MAIL.encode())])["c.mail"] == {"v.value"}
    assert found([(b"", MAIL.encode())])["c.mail"] == {"v.value"}
    assert found([(NAMES, number(1, 3) + MAIL.encode())])["c.mail"] == {"v.value"}


BROKEN = {
    "a type that is not known": b"\x54" + KEY.to_bytes(8, "little"),
    "cut": number(8, KEY)[:-1],
    "a text behind the end": bytes([16 << 2]) + b"\xff\xff\xff\xff",
    "many elements": b"\x13\xff\xff\xff\xff",
    "itself as its element": b"\x03\x01\x00\x00",
    "scale": b"\x20\x63" + KEY.to_bytes(8, "little"),
}


@pytest.mark.parametrize("value", BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_decoded_is_unverified(value: bytes) -> None:
    """Other values, in the same cell and in other rows, are found all the same."""
    rows = [(NAMES, array([number(8, KEY), value])), (NAMES, number(4, SHORT))]
    for made in (rows, [*rows, (NAMES, value)]):
        result = scan("a.parquet", parquet(pa.table({"v": column(made)})), PATTERNS)
        assert result.unread
        assert {"c.id", "c.short"} <= {hit.key_set for hit in result.hits}


def test_metadata_of_another_version_is_unverified() -> None:
    rows = [(NAMES, number(8, TWIN)), (b"\x02" + NAMES[1:], number(8, TWIN))]
    assert scan("a.parquet", parquet(pa.table({"v": column(rows)})), PATTERNS).unread


def test_values_inside_one_another_do_not_multiply() -> None:
    """Two elements that are the same bytes, in each of many layers: 2 ** 200 values in all."""
    value = number(8, KEY)
    for _ in range(200):
        value = b"\x0f\x02" + b"".join(n.to_bytes(4, "little") for n in (0, 0, len(value))) + value
    parts = list(variant.scalars(value, ()))
    assert len(parts) < len(value)
    assert parts[-1].kind is None


def test_deep_nesting_is_no_recursion() -> None:
    value = number(8, KEY)
    for _ in range(3000):
        value = obj({1: value}, (3, 1, False, False))
    (hit,) = scan("a.parquet", parquet(pa.table({"v": column([(NAMES, value)])})), PATTERNS).hits
    assert hit.key_set == "c.id"
    assert len(hit.column or "") < 1000


PICTURE = b"\x89PNG\r\n\x1a\n"


@given(st.binary(max_size=80), st.binary(max_size=12))
@example(b"", PICTURE)
@example(long(15, PICTURE), b"")
def test_any_bytes_are_taken(value: bytes, about: bytes) -> None:
    """An error of a decoder would be another reason than those of the same bytes in a column of bytes."""
    for names in (about, NAMES):
        result = scan("a.parquet", parquet(pa.table({"v": column([(names, value)])})), PATTERNS)
        parts = [part.value for part in variant.scalars(value, ()) if isinstance(part.value, bytes)]
        known = [name.encode("utf-8", "surrogateescape") for name in variant.names(names) or ()]
        plain = pa.array([value, names, *parts, *known], pa.binary())
        cells = scan("b.parquet", parquet(pa.table({"b": plain})), PATTERNS)
        assert set(result.unread) <= {variant.UNREAD, *cells.unread}


@given(st.integers(-(2**31), 2**31 - 1))
def test_any_day_is_taken(days: int) -> None:
    result = scan("a.parquet", parquet(pa.table({"v": column([(NAMES, b"\x2c" + struct.pack("<i", days))])})), PATTERNS)
    assert not result.unread
