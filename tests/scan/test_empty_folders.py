"""A partition's folder whose last file is gone still has its value as its name: nobody's bytes, and the person."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.app.planning.test_others_rows import KEY, OTHER, estate, planned, table

PATTERNS = build_patterns(
    [
        KeySet(name="c.mail", origin="mail", weak=False, values=(("s", "asha@x.example"),)),
        KeySet(name="c.id", origin="id", weak=True, values=(("s", "4417"),)),
    ]
)


def found(base: Path) -> dict[str, list[tuple[str, bool]]]:
    return {f.path: [(h.where, h.weak) for h in f.hits] for f in scan_tree(base, PATTERNS).files}


@pytest.mark.parametrize("name", ["mail=asha@x.example", "mail=asha%40x.example/day=1", "a/asha@x.example"])
def test_the_name_of_an_empty_folder_is_searched(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    (hits,) = found(tmp_path).values()
    assert hits == [("file path", False)]


def test_a_short_key_counts_as_in_other_names(tmp_path: Path) -> None:
    (tmp_path / "id=4417").mkdir()
    assert list(found(tmp_path).values()) == [[("file path", True)]]


def test_other_empty_folders_are_nothing(tmp_path: Path) -> None:
    """Nor is a folder with a file below it, whose path is searched with the file's."""
    (tmp_path / "mail=bo@x.example").mkdir()
    (tmp_path / "mail=asha@x.example").mkdir()
    (tmp_path / "mail=asha@x.example" / "a.txt").write_text("x")
    (one,) = found(tmp_path)
    assert one.endswith("/a.txt")


def test_a_folder_that_is_looked_at_in_its_own_right_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "inner" / "mail=asha@x.example").mkdir(parents=True)
    assert scan_tree(tmp_path, PATTERNS, without=[tmp_path / "inner"]).files == ()


def test_an_empty_partition_of_a_copy_is_a_gap_before_the_run(tmp_path: Path) -> None:
    base = estate(tmp_path, "parquet")
    place = base / "lake" / "tickets"
    pq.write_table(table(OTHER), place / "a.parquet")
    assert planned(base)["gaps"] == []
    (place / f"owner={KEY}").mkdir()
    plan = planned(base)
    assert {gap["kind"] for gap in plan["gaps"]} == {"object_names"}
    assert KEY not in str(plan)
