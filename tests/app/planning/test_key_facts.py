"""Whose keys are whose, read from real key tables at planning: what others share is never deleted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.e2e import shredded
from tests.kmssupport import REGION, StrictKms, strict_kms


@pytest.fixture(scope="module")
def kms() -> Iterator[StrictKms]:
    with strict_kms() as running:
        yield running


def planned(base: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = shredded.plan(base)
    capsys.readouterr()
    return code, json.loads((base / "p.plan.json").read_text())


def rewrite(base: Path, **columns: list[Any]) -> None:
    """The key table with some columns replaced; one row for the person and one for each of the two others."""
    people = [shredded.PERSON, *shredded.OTHERS]
    table = {"caller": people, "kid": ["k0", "k1", "k2"], "wrapped": [b"w0", b"w1", b"w2"], **columns}
    write_deltalake(str(base / "tables" / "keys"), pa.table(table), mode="overwrite", schema_mode="overwrite")


@pytest.mark.parametrize("columns", [{"kid": ["k0", "k0", "k2"]}, {"wrapped": [b"w0", b"w1", b"w0"]}])
def test_a_data_key_that_somebody_else_has_too_is_a_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: dict[str, list[Any]]
) -> None:
    shredded.build(tmp_path)
    assert planned(tmp_path, capsys)[0] == 0
    rewrite(tmp_path, **columns)
    code, made = planned(tmp_path, capsys)
    assert code == 3
    assert "key_shared" in {g["kind"] for g in made["gaps"]}


def test_a_kms_key_of_the_persons_own_is_planned_and_one_that_others_use_never_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kms: StrictKms
) -> None:
    shredded.build(tmp_path)
    whole, mine, theirs = kms.key(), kms.key(), kms.key()
    wrapping = {"kind": "kms", "key_id": whole, "region": REGION, "endpoint_url": kms.endpoint}
    shredded.estate(tmp_path, keys=[{**shredded.KEYS, "wrapping": wrapping, "kms_key_column": "kms"}])

    def kms_steps(*names: str) -> list[str]:
        rewrite(tmp_path, kms=list(names))
        _, made = planned(tmp_path, capsys)
        shared = any(g["kind"] == "key_kms_shared" for g in made["gaps"])
        keys = [k for s in made["steps"] if s["action"] == "kms_schedule_deletion" for k in s["parameters"]["kms_keys"]]
        assert shared is not bool(keys)
        return keys

    assert kms_steps(mine, theirs, theirs) == [mine]
    assert kms_steps(mine.rsplit("/", 1)[1], theirs, theirs) == [mine]
    assert kms_steps(mine, mine.rsplit("/", 1)[1], theirs) == []
    assert kms_steps(whole, theirs, theirs) == []
    assert kms_steps(mine, "alias/anybody", theirs) == []


def calls(base: Path, **cells: bytes | str | None) -> pa.Table:
    """The encrypted calls with one more row for each key that is named: `none` for a row without a key."""
    table = pq.read_table(base / "tables" / "calls" / "part-0.parquet")
    rows = [
        {"kid": None if kid == "none" else kid, "number": cell.encode() if isinstance(cell, str) else cell}
        for kid, cell in cells.items()
    ]
    return pa.concat_tables([table, pa.Table.from_pylist([{**r, "city": "Pune"} for r in rows], schema=table.schema)])


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ({"k0": "Turmgasse 4, Pune"}, "contain plain text: 1 value in number"),
        ({"none": "Turmgasse 4, Pune"}, "contain plain text: 1 value in number"),
        ({"k0": b"\x01short"}, "contain plain text: 1 value in number"),
        ({"k1": "Hafenweg 9, Delhi"}, None),  # somebody else's
        ({"k0": None}, None),
    ],
)
def test_a_plain_value_among_the_ciphertext_is_a_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cells: dict[str, Any], found: str | None
) -> None:
    shredded.build(tmp_path)
    pq.write_table(calls(tmp_path, **cells), tmp_path / "tables" / "calls" / "part-0.parquet")
    code, made = planned(tmp_path, capsys)
    gaps = {g["id"]: g["reason"] for g in made["gaps"]}
    assert (code, set(gaps)) == ((3, {"gap-plain_cells-tel.calls"}) if found else (0, set()))
    assert all(found and found in reason for reason in gaps.values())
    assert "Turmgasse" not in json.dumps(made)


def test_a_plain_value_in_an_old_version_is_a_gap_and_so_is_a_file_that_does_not_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shredded.build(tmp_path)
    table, place = calls(tmp_path), tmp_path / "tables" / "calls"
    (place / "part-0.parquet").unlink()
    plain = pa.table({"kid": ["k0", "k1"], "number": ["Turmgasse 4, Pune", "Hafenweg 9, Delhi"], "city": ["Pune"] * 2})
    kinds = {**shredded.TABLES, "tel.calls": "delta"}
    declared = [{"name": n, "format": kind, "location": f"tables/{n.split('.')[1]}"} for n, kind in kinds.items()]
    shredded.estate(tmp_path, catalogs={"spark_catalog": {"type": "declared", "tables": declared}})

    def told(first: pa.Table) -> list[str]:
        shutil.rmtree(place)
        write_deltalake(str(place), first)
        write_deltalake(str(place), table, mode="overwrite", schema_mode="overwrite")
        return [g["reason"] for g in planned(tmp_path, capsys)[1]["gaps"] if g["kind"] == "plain_cells"]

    assert told(table) == []
    (reason,) = told(plain)
    assert "contain plain text: 1 value in number" in reason
    (reason,) = told(plain.rename_columns(["kid", "called", "city"]))
    assert "1 file could not be searched" in reason
