"""A key that is unique within a tenant alone: a request for one person would take everybody's of that number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request
from tests.waivers import write_waivers

SUBJECT = """\
  - name: user
    source: app.users
    key: user_id
    identifiers: [{column: email, category: email}, {column: phone, category: phone}]
"""
TENANTS: Mapping[str, Sequence[Any]] = {
    "tenant_id": ["north", "south", "north"],
    "user_id": [7, 7, 8],
    "email": ["asha@north.example", "ben@south.example", "chen@north.example"],
    "phone": ["+91 98450 11111", "+44 20 7946 0000", "+91 98450 33333"],
}
VALUES = ("asha@", "ben@", "chen@", "rao@", "+91 98450", "+44 20")
"""How the persons' values begin, each with a character that no digest has: five digits alone stand in one by chance."""


def planned(base: Path, rows: Mapping[str, Sequence[Any]], *words: str, key: str = "7") -> dict[str, Any]:
    (base / "w").mkdir(exist_ok=True)
    write_deltalake(base / "w" / "users", pa.table(dict(rows)), mode="overwrite")
    (base / "pii-tracer.yaml").write_text(declared("w", {"app.users": "delta"}) + SUBJECT)
    (base / "jobs.sql").write_text("SELECT 1;\n")
    (base / "request.yaml").write_text(request("user", key))
    (base / "policy.yaml").write_text("version: 1\n")
    out = base / "p.plan.json"
    code = called(base, "plan", str(base / "request.yaml"), "--out", str(out), *words)
    text = out.read_text()
    plan: dict[str, Any] = json.loads(text)
    assert code == (ExitCode.DONE if plan["complete"] else ExitCode.INCOMPLETE)
    assert not any(value in text for value in VALUES)
    return plan


def test_two_tenants_persons_of_one_number_are_a_gap(tmp_path: Path) -> None:
    """Such a plan was complete, and deleted the rows of both."""
    plan = planned(tmp_path, TENANTS)
    (copy,) = (c for c in plan["copies"] if c["origin"] is None)
    assert copy["found"]["rows"] == 2  # of two persons: what the gap is about
    (gap,) = plan["gaps"]
    assert (gap["id"], gap["kind"]) == ("gap-key_of_several-user-R-1", "key_of_several")
    assert not plan["applyable"]
    assert "the key of R-1 is in 2 rows of app.users, which look like 2 persons" in gap["reason"]
    assert "in email, phone" in gap["reason"]


def test_a_named_person_may_waive_it(tmp_path: Path) -> None:
    waivers = write_waivers(tmp_path / "waivers.yaml", planned(tmp_path, TENANTS)["gaps"])
    plan = planned(tmp_path, TENANTS, "--waivers", str(waivers))
    assert (plan["complete"], plan["applyable"]) == (True, True)


def test_one_persons_row_is_no_gap(tmp_path: Path) -> None:
    assert planned(tmp_path, TENANTS, key="8")["gaps"] == []


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(
            {
                "email": ["asha@x.example", "Asha@X.example ", "rao@x.example", "ben@x.example"],
                "phone": ["+91 98450 11111", "+91 98450 22222", "+91 98450 22222", "+44 20 7946 0000"],
            },
            id="a dimension in which phone and e-mail were changed, one after the other",
        ),
        pytest.param(
            {
                "email": ["asha@x.example", None, "", "ben@x.example"],
                "phone": [None, "+91 98450 11111", "", "+44 20 7946 0000"],
            },
            id="rows that say too little",
        ),
    ],
)
def test_rows_of_one_person_are_no_gap(tmp_path: Path, rows: Mapping[str, Sequence[Any]]) -> None:
    plan = planned(tmp_path, {"user_id": [7, 7, 7, 8], **rows})
    assert (plan["complete"], plan["gaps"]) == (True, [])


def test_what_a_key_had_in_former_versions_does_not_count(tmp_path: Path) -> None:
    """A number that was given to somebody else is a matter of former values."""
    planned(tmp_path, {**TENANTS, "user_id": [7, 9, 8]})
    plan = planned(tmp_path, {**TENANTS, "user_id": [9, 7, 8]})
    assert "key_of_several" not in [gap["kind"] for gap in plan["gaps"]]


def test_each_request_of_a_batch_has_a_gap_of_its_own(tmp_path: Path) -> None:
    rows = {"user_id": [7, 9, 8, 7, 9], "email": [f"{n}@x.example" for n in "abcde"], "phone": [None] * 4 + ["1"]}
    more = []
    for number, key in ((3, 8), (2, 9)):
        more.append(str(tmp_path / f"r{number}.yaml"))
        Path(more[-1]).write_text(request("user", str(key)).replace("R-1", f"R-{number}"))
    gaps = planned(tmp_path, rows, *more)["gaps"]
    assert [gap["id"] for gap in gaps] == ["gap-key_of_several-user-R-1", "gap-key_of_several-user-R-2"]
    assert ["in email connects" in gap["reason"] for gap in gaps] == [True, True]


def test_rows_of_a_further_table_may_differ(tmp_path: Path) -> None:
    """Each order of a person may go to another address."""
    (tmp_path / "w").mkdir()
    orders = {"user_id": [8, 8], "email": ["rao@one.example", "rao@two.example"]}
    write_deltalake(tmp_path / "w" / "orders", pa.table(orders))
    subject = f"{SUBJECT}    tables: [{{table: app.orders, key: user_id, identifiers: [{{column: email, category: email}}]}}]\n"
    estate = tmp_path / "pii-tracer.yaml"
    planned(tmp_path, TENANTS, key="8")
    estate.write_text(declared("w", dict.fromkeys(("app.users", "app.orders"), "delta")) + subject)
    out = tmp_path / "q.plan.json"
    assert called(tmp_path, "plan", str(tmp_path / "request.yaml"), "--out", str(out)) == ExitCode.DONE
    assert json.loads(out.read_bytes())["gaps"] == []
