"""Bounds of column indexes, which parquet-mr cuts: somebody else's longer key stands anywhere in what is left of a cell."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hits import Hit
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import parquet, scan

HERS = "770000000001"
KEYS = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", HERS),))])
CUT = 64


def found(cell: str, *bounds: bytes) -> tuple[Hit, ...]:
    """What is found in a file with a cell, and with bounds that lie behind its pages as column indexes write them."""
    data = parquet(pa.table({"payload": [cell]}), write_statistics=False)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    index = b"".join(bytes([len(bound)]) + bound for bound in bounds)
    return scan("a.parquet", data[:footer] + index + data[footer:], KEYS).hits


def cell_of(key: str, end: int, lead: str = "x") -> str:
    """A cell in which her number would end so many bytes behind the start."""
    at = end - key.index(HERS) - len(HERS) - len(lead) - 1
    return lead + "y" * at + ":" + key + ',"city":"Bengaluru","amount":"12.50"' + "z" * CUT


@pytest.mark.parametrize("key", [f"3{HERS}", f"{HERS}9"])
@pytest.mark.parametrize("end", [20, CUT - 2, CUT - 1, CUT, CUT + 1])
def test_a_longer_key_in_the_cut_bounds_of_a_file_is_somebody_elses(key: str, end: int) -> None:
    cell = cell_of(key, end)
    least = cell.encode()[:CUT]
    greatest = least[:-1] + bytes([least[-1] + 1])
    assert found(cell, least, greatest) == ()


@pytest.mark.parametrize("end", [20, CUT - 2, CUT - 1, CUT])
def test_her_key_in_cut_bounds_counts_unless_the_very_cell_is_there(end: int) -> None:
    least = cell_of(HERS, end).encode()[:CUT]
    for other in (cell_of(f"3{HERS}", end), cell_of(f"{HERS}9", end, "w"), cell_of(f"{HERS}9", end + 1)):
        hits = found(other, least)
        assert [hit.where for hit in hits] == ["raw bytes"], other


def test_a_raised_byte_is_not_the_cells() -> None:
    """Raised, a number that ends with 0 becomes hers."""
    cell = cell_of(f"3{HERS}", CUT)
    assert found(cell, cell.encode()[:CUT]) == ()
    before = cell[: CUT - 1] + "0" + cell[CUT:]
    assert [hit.where for hit in found(before, cell.encode()[:CUT])] == ["raw bytes"]


@pytest.mark.parametrize("letter", ["é", "€", "𝔸"])
def test_bounds_are_cut_between_characters(letter: str) -> None:
    """So they are shorter than the others; the last byte of the last whole character is raised."""
    inside = len(letter.encode()) - 1
    lead = "x" * (CUT - inside - 6 - len(HERS)) + f":3{HERS},abc"
    cell = lead + letter + "z" * CUT
    least = lead.encode()
    assert len(least) == CUT - inside
    assert found(cell, least, least[:-1] + b"d") == ()
    assert found(cell, least[:-1]) != (), "nobody cuts there"
