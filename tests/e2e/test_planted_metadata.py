"""What planning trusts its steps with is gone when they are done: everything that `taken` says, planted in one table.

The kit (`tests/kits/planted`) says of each place whether a step takes the value away, or a gap says that it stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.cli.main import run
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.cli.small import request
from tests.e2e import clinic
from tests.kits.planted import delta, files, iceberg
from tests.kits.planted.estate import HERS, KEY, MAIL, OTHERS, PEOPLE, Plant, Planted
from tests.sparksession import forget_tables, small_spark

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

_BREAKS = ("0 add.stats.minValues.cust", "0 add.stats.maxValues.cust")
"""A table whose log says that her row is not in its file: no engine finds it."""


def erased(base: Path, table: Mapping[str, Any], front: str) -> dict[str, Any]:
    """Plan without a gap, approve, apply; the result. table: of the estate file's catalogs."""
    estate = {
        "version": 1,
        "estate": "shop",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": table,
        "roots": ["lake", "warehouse"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [
            {
                "name": "customer",
                "source": "s.people",
                "key": "cust",
                "identifiers": [{"column": "email", "category": "email"}],
            }
        ],
    }
    (base / "warehouse").mkdir(exist_ok=True)
    forget_tables()
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    (base / "jobs.sql").write_text(f"INSERT INTO {front} (cust, note) SELECT cust, city FROM s.people;\n")
    (base / "request.yaml").write_text(request("customer", KEY))
    where = ["--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")]
    file, key = str(base / "r.plan.json"), base / "approver.pem"
    words = ["--format", "json", "--retention", "immediate", "--reason", "test: no writer", "--out", file]
    code = run(["plan", str(base / "request.yaml"), *words, *where])
    assert (code, json.loads(Path(file).read_text())["gaps"]) == (0, [])
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(generate(key)).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(key)]
    assert run(["approve", file, *signed, *where]) == 0
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    run(["apply", file, *where, *trusted])
    found: dict[str, Any] = json.loads((base / "result.json").read_text())
    return found


def taken(made: Planted, plants: Mapping[str, Plant], without: Iterable[str] = ()) -> list[Plant]:
    return [put for name, put in plants.items() if made.action(name) is not None and name not in without]


def people(base: Path) -> dict[str, Any]:
    from deltalake import write_deltalake

    write_deltalake(base / "lake" / "people", PEOPLE.append_column("city", PEOPLE["cust"]))
    return {"name": "s.people", "format": "delta", "location": "lake/people"}


def declared(*tables: Mapping[str, Any]) -> dict[str, Any]:
    return {"spark_catalog": {"type": "declared", "tables": list(tables)}}


def assert_gone(result: Mapping[str, Any]) -> None:
    assert [(r["file"], r["where"]) for r in result["residue"]] == []
    assert (result["state"], result["unverified"]) == ("complete", [])
    assert result["bystander_rows_lost"] == 0


def test_a_delta_table(spark: Any, tmp_path: Path) -> None:
    plants = delta.DELTA.every(tmp_path / "template")
    (tmp_path / "lake").mkdir()
    folder = delta.build(tmp_path, "t")
    for put in taken(delta.DELTA, plants, _BREAKS):
        put(folder)
    assert sum(MAIL.encode() in file.read_bytes() for file in folder.rglob("*") if file.is_file()) > 8
    told = {"name": "s.t", "format": "delta", "location": "lake/t"}
    assert_gone(erased(tmp_path, declared(people(tmp_path), told), "s.t"))


def test_an_iceberg_table(spark: Any, tmp_path: Path) -> None:
    clinic.use_catalog(tmp_path, spark)
    spark.sql("CREATE DATABASE IF NOT EXISTS med.core")
    for number, rows in enumerate((HERS, OTHERS)):
        frame = frame_of_rows(spark, [tuple(row.values()) for row in rows.to_pylist()], "cust string, note string")
        writer = frame.coalesce(1).writeTo("med.core.t")
        writer.append() if number else writer.using("iceberg").create()
    spark.sql("ALTER TABLE med.core.t CREATE BRANCH audit")
    spark.sql("ALTER TABLE med.core.t CREATE TAG q3")
    folder = tmp_path / "warehouse" / "core" / "t"
    plants = iceberg.plants(folder)
    for put in taken(iceberg.ICEBERG, plants):
        put(folder)
    spark.sql("REFRESH TABLE med.core.t")
    catalogs = declared(people_below(tmp_path)) | {"med": {"type": "iceberg-hadoop", "warehouse": "warehouse"}}
    assert_gone(erased(tmp_path, catalogs, "med.core.t"))


def people_below(base: Path) -> dict[str, Any]:
    (base / "lake").mkdir()
    return people(base)


@pytest.mark.parametrize("kind", ["parquet"])
def test_a_folder(spark: Any, tmp_path: Path, kind: str) -> None:
    made = files.planted(kind)
    plants = made.every(tmp_path / "template")
    (tmp_path / "lake").mkdir()
    folder = made.build(tmp_path, "t")
    for put in taken(made, plants):
        put(folder)
    told = {"name": "s.t", "format": kind, "location": "lake/t"}
    assert_gone(erased(tmp_path, declared(people(tmp_path), told), "s.t"))
