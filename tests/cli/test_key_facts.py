"""Whose keys are whose, read from real key tables at planning: what others share is never deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
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
