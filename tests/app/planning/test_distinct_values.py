"""The first distinct values of columns: a column with enough of them costs nothing more, but for JSON's members."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from pii_tracer.app.planning import short_number_columns as under_test
from pii_tracer.app.planning.short_number_columns import take_values


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 3, 4, None]),
        pa.array([1.5, 2.0, 3.0, 4.0]),
        pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("3.25")]),
        pa.array(["a", "b", "c", "d"]),
        pa.array([b"a", b"b", b"c"]),
        pa.array([b"ab", b"cd", b"ef"], pa.binary(2)),
        pa.array(["a", "b", "c"]).dictionary_encode(),
        pa.array(["a", "b", "c"], pa.string_view()),
    ],
    ids=lambda column: str(column.type),
)
def test_only_so_many_are_kept(column: pa.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "DISTINCT", 2)
    seen: dict[str, set[str]] = {}
    for _ in range(2):
        take_values(pa.record_batch({"Id": column}), seen)
    assert list(seen) == ["id"]
    assert len(seen["id"]) == 2


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("text", ['{"uid": 7}', ' \t["7"]', '{"a": [{"uid": "{}"}, {"uid": 7}]}'])
def test_members_count_behind_enough_texts(text: str, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "DISTINCT", 2)
    seen: dict[str, set[str]] = {}
    take_values(pa.record_batch({"note": pa.array(["a", "b", "c"])}), seen)
    take_values(pa.record_batch({"note": pa.array(["d", text]).cast(kind)}), seen)
    assert any("7" in values for label, values in seen.items() if label != "note")
