"""Statements that lineage was read from name the person: no step writes them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request
from tests.leaks import Person, leaks
from tests.waivers import write_waivers

MAIL, KEY = "asha.rao@mail.example", "4417700102"
PEOPLE = pa.table({"uid": [int(KEY), 4417700103], "mail": [MAIL, "b@x.example"]})
SUBJECT = "  - {name: user, source: app.users, key: uid, identifiers: [{column: mail, category: email}]}\n"
MAKES = "CREATE TABLE app.out USING parquet AS SELECT uid, mail FROM app.users WHERE {};\n"
WHOLE = {"type": "DIRECT", "subtype": "IDENTITY", "description": "", "masking": False}


def plan(base: Path, where: str) -> dict[str, Any]:
    (base / "w").mkdir()
    (base / "w" / "out").mkdir()
    write_deltalake(base / "w" / "users", PEOPLE)
    pq.write_table(PEOPLE, base / "w" / "out" / "1.parquet")
    (base / "pii-tracer.yaml").write_text(declared("w", {"app.users": "delta", "app.out": "parquet"}) + SUBJECT)
    (base / "request.yaml").write_text(request("user", KEY))
    (base / "policy.yaml").write_text("version: 1\n")
    return planned(base, where)


def planned(base: Path, where: str, *words: str) -> dict[str, Any]:
    (base / "jobs.sql").write_text(MAKES.format(where))
    assert called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json"), *words) in (0, 3)
    text = (base / "p.plan.json").read_text()
    assert MAIL not in text
    assert KEY not in text
    made: dict[str, Any] = json.loads(text)
    return made


@pytest.mark.parametrize("where", [f"mail = '{MAIL}'", f"uid = {KEY}", f"lower(mail) IN ('x', '{MAIL.upper()}')"])
def test_a_statement_that_names_the_person_is_a_gap(tmp_path: Path, where: str) -> None:
    (gap,) = plan(tmp_path, where)["gaps"]
    assert gap["kind"] == "lineage_text"
    assert "jobs.sql:1" in gap["evidence"]
    assert leaks(Person((MAIL, KEY)), [tmp_path / "state"]) == []


def test_a_name_in_the_lineage_that_is_a_value_is_a_gap(tmp_path: Path) -> None:
    """The graph keeps names, and a plan is closed without it."""
    plan(tmp_path, "mail <> ''")
    schema = {"fields": [{"name": "city", "type": "string"}]}
    source = {"namespace": "file", "name": "/x/in", "field": "city", "transformations": [WHOLE]}
    lineage = {"fields": {"city": {"inputFields": [source]}}}
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-11-01T00:00:00Z",
        "run": {"runId": "0190b2a4-6c1e-7f00-8000-000000000001"},
        "job": {"namespace": "n", "name": f"export {MAIL}"},
        "inputs": [{"namespace": "file", "name": "/x/in", "facets": {"schema": schema}}],
        "outputs": [{"namespace": "file", "name": "/x/out", "facets": {"schema": schema, "columnLineage": lineage}}],
    }
    (tmp_path / "events.ndjson").write_text(json.dumps(event) + "\n")
    estate = tmp_path / "pii-tracer.yaml"
    estate.write_text(estate.read_text().replace("lineage: {sql", "lineage: {events: [events.ndjson], sql"))
    gaps = [gap for gap in planned(tmp_path, "mail <> ''")["gaps"] if gap["kind"] == "lineage_text"]
    assert [gap["evidence"].partition(":")[0] for gap in gaps] == ["the name of a job, the evidence of a fact"]


@pytest.mark.parametrize("where", ["mail <> ''", "uid > 10000", "mail = 'somebody@else.example'"])
def test_other_literals_are_none(tmp_path: Path, where: str) -> None:
    assert plan(tmp_path, where)["gaps"] == []


def test_another_statement_at_the_same_place_is_not_waived_with_the_first(tmp_path: Path) -> None:
    """Who accepts a statement accepts what it says of the person, and not all that is written there later."""
    words = "--waivers", str(write_waivers(tmp_path / "w.yaml", plan(tmp_path, f"mail = '{MAIL}'")["gaps"]))
    (gap,) = planned(tmp_path, f"mail = '{MAIL}'", *words)["gaps"]
    assert gap["waiver"]
    (gap,) = planned(tmp_path, f"mail = '{MAIL}' AND mail <> 'owes the shop'", *words)["gaps"]
    assert gap["waiver"] is None
