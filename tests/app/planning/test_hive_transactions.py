"""Folders of a transactional table of Hive's that no metastore names: to write their files again would break it."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import orc

from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request
from tests.hdfs.shop import MAIL, OTHERS, PERSON, USER, parquet

SUBJECT = """\
  - name: user
    source: shop.users
    key: uid
    identifiers: [{column: mail, category: email}]
    tables: [{table: shop.t, key: row.uid}]
"""
ROW = pa.struct([("uid", pa.string()), ("mail", pa.string())])


def acid(*people: tuple[str, str] | None) -> bytes:
    """A file as https://orc.apache.org/docs/acid.html describes it. None: a row that was deleted, which has no values."""
    rows = [dict(zip(("uid", "mail"), one, strict=True)) if one else None for one in people]
    deleted, numbers = [2 if one is None else 0 for one in people], list(range(len(people)))
    columns: dict[str, Sequence[Any]] = {
        "operation": pa.array(deleted, pa.int32()),
        "originalTransaction": pa.array([1] * len(rows), pa.int64()),
        "bucket": pa.array([536870912] * len(rows), pa.int32()),
        "rowId": pa.array(numbers, pa.int64()),
        "currentTransaction": pa.array([1] * len(rows), pa.int64()),
        "row": pa.array(rows, ROW),
    }
    sink = io.BytesIO()
    orc.write_table(pa.table(columns), sink)
    return sink.getvalue()


def planned(base: Path) -> dict[str, Any]:
    """A plan over three folders of a table, of which the estate file names one."""
    found = {
        "base_0000001": acid(OTHERS[0], PERSON),
        "delta_0000002_0000002_0000": acid(OTHERS[1]),
        "delete_delta_0000003_0000003_0000": acid(None),
    }
    for folder, data in found.items():
        (base / "w" / "t" / folder).mkdir(parents=True)
        (base / "w" / "t" / folder / "bucket_00000").write_bytes(data)
        (base / "w" / "t" / folder / "_orc_acid_version").write_bytes(b"2")
    (base / "w" / "users").mkdir()
    (base / "w" / "users" / "1.parquet").write_bytes(parquet(PERSON, *OTHERS))
    tables = {"shop.users": "parquet", "shop.t": "orc"}
    estate = (declared("w", tables) + SUBJECT).replace("w/t}", "w/t/base_0000001}")
    (base / "pii-tracer.yaml").write_text(estate)
    (base / "jobs.sql").write_text("SELECT 1;\n")
    (base / "request.yaml").write_text(request("user", USER))
    (base / "policy.yaml").write_text("version: 1\n")
    called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json"))
    return dict(json.loads((base / "p.plan.json").read_text()))


def test_such_files_are_never_written_again_as_bare_rows(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    gaps = {gap["dataset"]["name"].rpartition("/")[2]: gap for gap in plan["gaps"]}
    assert gaps.keys() == {"base_0000001"}, "in the others nobody is"
    assert gaps["base_0000001"]["kind"] == "cannot_be_proved"
    assert "COMPACT 'major'" in gaps["base_0000001"]["reason"]
    assert {copy["table"]: copy["strategy"] for copy in plan["copies"]} == {
        "shop.users": "delete_by_key",
        "shop.t": "blocked",
    }
    assert "c-shop.t" not in {step["copy"] for step in plan["steps"]}
    assert MAIL not in json.dumps(plan)
