"""A short number beside other values in one key set: it alone is weak, wherever they stand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import Patterns
from tests.scan.support import parquet, scan

CODE, SHORT = "K-88123-XYZ", "8841302"
MIXED = KeySet(name="customer.cust", origin="cust", weak=True, values=(("a", CODE), ("b", SHORT)))
PATTERNS = Patterns([MIXED])


def hits(cell: str | bytes | int, patterns: Patterns = PATTERNS) -> set[tuple[str, bool]]:
    found = scan("a.parquet", parquet(pa.table({"note": pa.array([cell])})), patterns)
    return {(hit.key_set, hit.weak) for hit in found.hits if hit.where == "data"}


@pytest.mark.parametrize("cell", [CODE, f"call {CODE} now", f"call {CODE} now".encode(), f'{{"who": "{CODE}"}}'])
def test_a_short_number_makes_no_other_value_weak(cell: str | bytes) -> None:
    assert hits(cell) == {("customer.cust", False)}


@pytest.mark.parametrize("cell", [SHORT, f"call {SHORT} now", f"call {SHORT} now".encode(), int(SHORT)])
def test_a_short_number_is_weak_beside_other_values(cell: str | bytes | int) -> None:
    assert hits(cell) == {("customer.cust", True)}


@pytest.mark.parametrize(
    ("cell", "found"),
    [("12345.0", {("customer.cust", False), ("customer.cust", True)}), ("call 12345 now", {("customer.cust", True)})],
)
def test_a_text_with_a_fraction_is_no_short_number(cell: str, found: set[tuple[str, bool]]) -> None:
    own = KeySet(name="customer.cust", origin="cust", weak=True, values=(("a", "12345"), ("a", "12345.0")))
    assert hits(cell, Patterns([own])) == found


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
@pytest.mark.parametrize("key", ["12345", "9845011111"])
def test_a_cell_that_is_both_is_left_out_once_for_each(name: str, key: str) -> None:
    """It counted twice, and was left out once."""
    weak = len(key) < 10
    own = KeySet(name="customer.cust", origin="cust", weak=weak, values=(("a", key), ("a", f"{key}.0")))
    rows = [f"{key}.0", "777.0", "778.0"]
    csv = "ref,note\n" + "".join(f"{row},b\n" for row in rows)
    data = csv if name == "a.csv" else "".join(f'{{"ref": {row}, "note": "b"}}\n' for row in rows)
    found = scan(name, data.encode(), Patterns([own]).leaving_out({"ref": {"customer.cust"}}))
    assert found.hits == ()
    assert {hit.key_set for hit in found.left} == {"customer.cust"}


def test_a_masked_name_shows_the_key_set() -> None:
    assert PATTERNS.mask(f"/lake/cust={SHORT}/a") == "/lake/cust=[customer.cust]/a"
