"""Plans for delimited text that a Hive metastore names: short numbers as keys, holds on columns, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.cli.main import run
from tests.cli.small import RECEIVED
from tests.hivesupport import TEXT, Hive, serving
from tests.hivetextsupport import LAZY
from tests.sparksession import small_spark

BARS = {"field.delim": "|", "escape.delim": "\\"}
JOBS = "INSERT INTO prod.visits SELECT uid, 41 AS score, note FROM prod.people;\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    with serving(tmp_path_factory.mktemp("hive")) as server:
        yield server


@pytest.fixture
def hive(running: Hive) -> Iterator[Hive]:
    with running.database("prod"):
        yield running


def planned(
    hive: Hive, base: Path, people: dict[str, str], visits: dict[str, str], skipped: Any = None, **more: Any
) -> dict[str, Any]:
    """The plan for the person 41; people, visits: the columns of the tables; skipped: lines of visits."""
    hive.table("prod.people", base / "wh" / "people", TEXT, serde=LAZY, options=BARS, columns=people)
    hive.table(
        "prod.visits", base / "wh" / "visits", TEXT, serde=LAZY, options=BARS, columns=visits, parameters=skipped or {}
    )
    estate = {
        "version": 1,
        "estate": "texts",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {"hms": {"type": "hive", "uri": hive.uri}},
        "roots": ["wh"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [{"name": "member", "source": "prod.people", "key": "uid"}],
        **more,
    }
    request = {"id": "R-1", "law": "GDPR", "received": RECEIVED, "subject": {"type": "member", "key": "41"}}
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    (base / "request.yaml").write_text(yaml.safe_dump(request))
    (base / "jobs.sql").write_text(JOBS)
    words = ["plan", str(base / "request.yaml"), "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "s")]
    words += ["--retention", "immediate", "--reason", "test: no writer, no reader"]
    run([*words, "--out", str(base / "x.plan.json")])
    found: dict[str, Any] = json.loads((base / "x.plan.json").read_text())
    return found


def put(folder: Path, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "000000_0").write_bytes(content)


PEOPLE = {"uid": "bigint", "note": "string"}
VISITS = {"uid": "int", "score": "int", "note": "string"}


def test_a_short_number_is_the_key_in_its_column_alone(hive: Hive, tmp_path: Path) -> None:
    """Scores of others are the same digits; zeros in front of the key are no other key."""
    put(tmp_path / "wh" / "people", b"41|hers\n42|a\n43|b\n")
    put(tmp_path / "wh" / "visits", b"041|7|x\n42|41|\\|y\n43|9|z\n")
    plan = planned(hive, tmp_path, PEOPLE, VISITS)
    assert [(gap["kind"], gap["reason"]) for gap in plan["gaps"]] == []
    found = {copy["table"]: copy for copy in plan["copies"]}
    assert {name: copy["strategy"] for name, copy in found.items()} == dict.fromkeys(
        ("prod.people", "prod.visits"), "delete_by_key"
    )
    assert found["prod.visits"]["found"]["rows"] == 1
    (step,) = (s for s in plan["steps"] if s["action"] == "files_rewrite" and s["copy"] == found["prod.visits"]["id"])
    assert "F8" in step["hazards"]


@pytest.mark.parametrize("kind", ["double", "decimal(10,0)", "timestamp", "binary", "array<int>"])
def test_a_key_of_a_type_that_no_step_compares_is_blocked(kind: str, hive: Hive, tmp_path: Path) -> None:
    put(tmp_path / "wh" / "people", b"41|hers\n42|a\n")
    put(tmp_path / "wh" / "visits", b"41|7|x\n42|8|y\n")
    plan = planned(hive, tmp_path, PEOPLE, VISITS | {"uid": kind})
    (copy,) = (copy for copy in plan["copies"] if copy["table"] == "prod.visits")
    assert copy["strategy"] == "blocked"
    assert f"of its type {kind}" in copy["reason"] + "".join(gap["reason"] for gap in plan["gaps"])


@pytest.mark.parametrize("name", ["skip.header.line.count", "skip.footer.line.count"])
def test_a_value_in_a_line_that_is_no_row_is_a_gap(name: str, hive: Hive, tmp_path: Path) -> None:
    """No step rewrites it: the run would end with residue. Short numbers count, too."""
    put(tmp_path / "wh" / "people", b"41|hers\n42|a\n")
    put(tmp_path / "wh" / "visits", b"41|7|x\n41|8|y\n42|8|y\n41|9|z\n")
    plan = planned(hive, tmp_path, PEOPLE, VISITS, skipped={name: "1"})
    (gap,) = (gap for gap in plan["gaps"] if gap["kind"] == "left_behind")
    assert "a header or footer" in gap["reason"]


def test_digits_in_another_form_are_a_gap(hive: Hive, tmp_path: Path) -> None:
    put(tmp_path / "wh" / "people", b"41|hers\n42|a\n")
    put(tmp_path / "wh" / "visits", b"41.0|7|x\n42|8|y\n")
    plan = planned(hive, tmp_path, PEOPLE, VISITS)
    assert "unreadable" in {gap["kind"] for gap in plan["gaps"]}
