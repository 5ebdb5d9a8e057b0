"""What planning trusts its steps with is gone when they are done: everything that `taken` says, planted in one table
of each format, all in one estate.

The kit (`tests/kits/planted`) says of each place whether a step takes the value away, or a gap says that it stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
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


def erased(base: Path, catalogs: Mapping[str, Any], *tables: str) -> dict[str, Any]:
    """Plan without a gap, approve, apply; the result. catalogs: of the estate file. tables: which a job fills."""
    estate = {
        "version": 1,
        "estate": "shop",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": catalogs,
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
    forget_tables()
    jobs = (f"INSERT INTO {table} (cust, note) SELECT cust, city FROM s.people;\n" for table in tables)
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    (base / "jobs.sql").write_text("".join(jobs))
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


def plant(made: Planted, plants: Mapping[str, Plant], folder: Path, without: Iterable[str] = ()) -> None:
    """Plant all that a step takes away."""
    for name, put in plants.items():
        if made.action(name) is not None and name not in without:
            put(folder)


def iceberg_table(base: Path, spark: Any) -> None:
    clinic.use_catalog(base, spark)
    spark.sql("CREATE DATABASE IF NOT EXISTS med.core")
    for number, rows in enumerate((HERS, OTHERS)):
        frame = frame_of_rows(spark, [tuple(row.values()) for row in rows.to_pylist()], "cust string, note string")
        writer = frame.coalesce(1).writeTo("med.core.t")
        writer.append() if number else writer.using("iceberg").create()
    spark.sql("ALTER TABLE med.core.t CREATE BRANCH audit")
    spark.sql("ALTER TABLE med.core.t CREATE TAG q3")
    folder = base / "warehouse" / "core" / "t"
    plant(iceberg.ICEBERG, iceberg.plants(folder), folder)
    spark.sql("REFRESH TABLE med.core.t")


def test_everything_that_steps_take_away_is_gone(spark: Any, tmp_path: Path) -> None:
    lake, parquet = tmp_path / "lake", files.planted("parquet")
    (lake / "people").mkdir(parents=True)
    pq.write_table(PEOPLE.append_column("city", PEOPLE["cust"]), lake / "people" / "a.parquet")
    delta_folder = delta.build(tmp_path, "t")
    plant(delta.DELTA, delta.DELTA.every(tmp_path / "delta"), delta_folder, _BREAKS)
    assert sum(MAIL.encode() in file.read_bytes() for file in delta_folder.rglob("*") if file.is_file()) > 8
    plant(parquet, parquet.every(tmp_path / "parquet"), parquet.build(tmp_path, "f"))
    iceberg_table(tmp_path, spark)
    kinds = {"people": "parquet", "t": "delta", "f": "parquet"}
    told = [{"name": f"s.{name}", "format": kind, "location": f"lake/{name}"} for name, kind in kinds.items()]
    catalogs = {
        "spark_catalog": {"type": "declared", "tables": told},
        "med": {"type": "iceberg-hadoop", "warehouse": "warehouse"},
    }
    result = erased(tmp_path, catalogs, "s.t", "s.f", "med.core.t")
    assert [(r["file"], r["where"]) for r in result["residue"]] == []
    assert (result["state"], result["unverified"]) == ("complete", [])
    assert result["bystander_rows_lost"] == 0
