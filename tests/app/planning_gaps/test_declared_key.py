"""A key that `tables` declares and that finds nobody: the finding that it would silence is a gap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request

RIDER, MAIL = 7340219981, "asha.rao@mail.example"
UUIDS = ["8f14e45f-ceea-467f-a1d2-91b50a0c3a11", "c9f0f895-fb98-4ab9-a59f-1d7d4e2c7b22"]
RIDERS = pa.table({"rider_id": [RIDER, RIDER + 5], "rider_uuid": UUIDS, "mail": [MAIL, "b@x.example"]})
SUBJECT = """\
  - name: rider
    source: app.riders
    key: rider_id
    identifiers: [{column: mail, category: email}]
"""
NUMBERED = pa.table({"rider_uuid": UUIDS, "rider_no": [RIDER, RIDER + 5]})
IN_TEXT = pa.table({"rider_uuid": UUIDS, "body": [f"I am {MAIL}, call me", "nothing"]})
ALONE = pa.table({"rider_uuid": UUIDS})
NOBODY = pa.table({"rider_uuid": UUIDS[1:], "body": ["nothing"]})


def gaps(base: Path, tickets: pa.Table, entry: str) -> list[dict[str, Any]]:
    for name, rows in {"riders": RIDERS, "tickets": tickets}.items():
        (base / "w" / name).mkdir(parents=True)
        pq.write_table(rows, base / "w" / name / "1.parquet")
    subject = SUBJECT.replace("}]", "}, {column: rider_uuid, category: government_id}]") if "of:" in entry else SUBJECT
    tables = f"    tables: [{entry}]\n" if entry else ""
    estate = declared("w", {"app.riders": "parquet", "helpdesk.tickets": "parquet"}) + subject + tables
    (base / "pii-tracer.yaml").write_text(estate)
    (base / "jobs.sql").write_text("")
    (base / "request.yaml").write_text(request("rider", str(RIDER)))
    (base / "policy.yaml").write_text("version: 1\n")
    assert called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json")) in (0, 3)
    plan = json.loads((base / "p.plan.json").read_text())
    return [gap for gap in plan["gaps"] if "tickets" in str(gap)]


WRONG = "{table: helpdesk.tickets, key: rider_uuid}"


@pytest.mark.parametrize(
    ("tickets", "entry", "kinds"),
    [
        (NUMBERED, WRONG, ["declared_key", "others_rows"]),
        (IN_TEXT, WRONG, ["declared_key", "others_rows"]),
        (ALONE, WRONG, ["declared_key"]),
        (NOBODY, WRONG, ["declared_key"]),
        (ALONE, "{table: helpdesk.tickets, key: rider_uuid, of: rider_uuid}", []),
        (ALONE.slice(0, 0), WRONG, []),
        (NUMBERED, "", ["unexpected_copy"]),
        (NUMBERED, "{table: helpdesk.tickets, key: rider_no}", []),
    ],
)
def test_a_declared_key_that_finds_nobody_silences_nothing(
    tmp_path: Path, tickets: pa.Table, entry: str, kinds: list[str]
) -> None:
    assert sorted(gap["kind"] for gap in gaps(tmp_path, tickets, entry)) == kinds


def test_the_reason_says_how_much_was_looked_at(tmp_path: Path) -> None:
    (gap,) = gaps(tmp_path, NOBODY, WRONG)
    assert "the first values of rider_uuid contain no number" in gap["reason"]
