"""What a step would refuse in a bare folder, or what stays unread there, is a gap of the plan and no failed run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.app.planning.test_others_rows import HERS, KEY, OTHER, WRITERS, Row, estate, planned
from tests.hdfs.shop import HELD
from tests.waivers import write_waivers

PDF = b"%PDF-1.7\n" + bytes(range(256))
"""A cell of a kind that the scan does not read for certain."""


def put(base: Path, kind: str, *rows: Row) -> None:
    WRITERS[kind](base / "lake" / "tickets" / f"part-0.{kind}", *rows)


def gaps(plan: dict[str, Any]) -> list[tuple[str, str]]:
    return [(gap["kind"], gap["reason"]) for gap in plan["gaps"]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_end_of_a_line_inside_a_field_of_the_persons_row(tmp_path: Path, end: str) -> None:
    """The source was erased, and the step for the copy stopped the run."""
    base = estate(tmp_path, "csv")
    put(base, "csv", {**OTHER, "note": f"a{end}b"}, HERS)
    assert planned(base)["gaps"] == []
    put(base, "csv", {"note": f"a{end}b", "cust": KEY}, {"note": "c", "cust": "P-3"})
    ((kind, reason),) = gaps(planned(base))
    assert kind == "unreadable"
    assert "a CSV record of the person continues over several lines" in reason
    assert "erase the person's rows in the object by hand" in reason


def test_a_file_of_which_a_part_is_unread(tmp_path: Path) -> None:
    """The verification could not call it clean, after everything else was erased."""
    base = estate(tmp_path, "parquet")
    file = base / "lake" / "tickets" / "part-0.parquet"
    pq.write_table(pa.table({"cust": [KEY, "P-3"], "doc": pa.array([b"a", b"b"], pa.binary())}), file)
    assert planned(base)["gaps"] == []
    pq.write_table(pa.table({"cust": [KEY, "P-3"], "doc": pa.array([b"a", PDF], pa.binary())}), file)
    (gap,) = planned(base)["gaps"]
    assert (gap["kind"], gap["id"]) == ("not_scanned", "gap-not_scanned-s.tickets")
    assert gap["reason"].startswith("1 file could not be decoded completely")
    assert "part-0.parquet" in gap["evidence"]
    waivers = write_waivers(base / "waivers.yaml", [gap])
    assert planned(base, "--waivers", str(waivers))["complete"]


def test_nothing_is_tried_of_what_a_hold_keeps(tmp_path: Path) -> None:
    """No step writes it, and nobody is asked to change it."""
    base = estate(tmp_path, "csv")
    put(base, "csv", {"note": "a\nb", "cust": KEY}, {"note": "c", "cust": "P-3"})
    assert [kind for kind, _ in gaps(planned(base))] == ["unreadable"]
    file = base / "pii-tracer.yaml"
    file.write_text(file.read_text() + yaml.safe_dump({"holds": [{**HELD, "datasets": ["s.tickets"]}]}))
    assert not {"unreadable", "not_scanned"} & {kind for kind, _ in gaps(planned(base))}
