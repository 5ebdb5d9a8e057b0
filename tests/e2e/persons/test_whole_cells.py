"""Text keys that begin or end others' keys: the persons are erased, the others keep every row, and nothing is residue."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.cli.main import run
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.cli.small import RECEIVED
from tests.executors.world import _decoded
from tests.sparksession import small_spark

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

PERSONS = ("ashakumar", "asha")
OTHERS = (
    *("ashakumari", "kashakumar", "ASHAKUMAR2", "ashak", "kasha", "ASHA2", "ashakumaré"),
    *("ashakumar-rao", "v. asha", "Asha_2"),
)

JOBS = """
CREATE TABLE IF NOT EXISTS guild.core.logins USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read') AS
SELECT handle, city FROM guild.core.people;

CREATE TABLE IF NOT EXISTS board.posts USING delta LOCATION '{base}/tables/posts' AS
SELECT handle AS author, city FROM guild.core.people;

INSERT OVERWRITE DIRECTORY '{base}/tables/export' USING parquet
SELECT handle, city FROM guild.core.people
"""
ESTATE = {
    "version": 1,
    "estate": "guild",
    "environment": "local",
    "spark": small_spark(),
    "catalogs": {
        "guild": {"type": "iceberg-hadoop", "warehouse": "warehouse"},
        "spark_catalog": {
            "type": "declared",
            "tables": [{"name": "board.posts", "format": "delta", "location": "tables/posts"}],
        },
    },
    "roots": ["warehouse", "tables"],
    "lineage": {"sql": ["jobs.sql"]},
    "subjects": [{"name": "member", "source": "guild.core.people", "key": "handle"}],
}
TABLES = {
    "people": "SELECT * FROM guild.core.people",
    "logins": "SELECT * FROM guild.core.logins",
    "posts": "SELECT author AS handle, city FROM board.posts",
    "export": "SELECT * FROM parquet.`{base}/tables/export`",
}


@dataclass(frozen=True)
class Done:
    """What the run left."""

    base: Path
    result: dict[str, Any]
    before: dict[str, list[tuple[str, str]]]
    after: dict[str, list[tuple[str, str]]]
    codes: dict[str, int]


def _cli(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def _build(base: Path, spark: Any) -> list[str]:
    """The tables, by the jobs that lineage is read from; returns the requests' files."""
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(ESTATE))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    (base / "jobs.sql").write_text(JOBS.format(base=base))
    requests = []
    for number, key in enumerate(PERSONS):
        request = {"id": f"GUILD-{number}", "law": "GDPR", "received": RECEIVED}
        path = base / f"request{number}.yaml"
        path.write_text(yaml.safe_dump({**request, "subject": {"type": "member", "key": key}}))
        requests.append(str(path))
    for name, value in {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": str(base / "warehouse"),
        ".cache-enabled": "false",
    }.items():
        spark.conf.set(f"spark.sql.catalog.guild{name}", value)
    spark._jsparkSession.sessionState().catalogManager().reset()
    for name in ("guild.core", "board"):
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {name}")
    spark.sql("DROP TABLE IF EXISTS board.posts")
    rows = [(handle, city) for handle in (*PERSONS, *OTHERS) for city in ("Pune", "Kochi")]
    frame_of_rows(spark, rows, "handle string, city string").coalesce(1).writeTo("guild.core.people").create()
    for statement in JOBS.format(base=base).split(";"):
        spark.sql(statement)
    # the others change too, so that their keys stand in statistics of files that come and go
    spark.sql("UPDATE guild.core.people SET city = 'Mysuru' WHERE handle = 'ashakumari' AND city = 'Pune'")
    spark.sql("UPDATE board.posts SET city = 'Mysuru' WHERE city = 'Pune' AND length(author) > 8")
    return requests


def _rows(base: Path, spark: Any) -> dict[str, list[tuple[str, str]]]:
    return {
        name: sorted((row["handle"], row["city"]) for row in spark.sql(query.format(base=base)).collect())
        for name, query in TABLES.items()
    }


@pytest.fixture(scope="module")
def done(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Done:
    base = tmp_path_factory.mktemp("guild")
    file = base / "guild.plan.json"
    requests = _build(base, spark)
    before, codes = _rows(base, spark), {}
    words = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", str(file)]
    codes["plan"] = _cli(base, "plan", *requests, "--format", "json", *words)
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(public).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--key"]
    codes["approve"] = _cli(base, "approve", str(file), *signed, str(base / "approver.pem"))
    codes["verify before"] = _cli(base, "verify", str(file))
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    codes["apply"] = _cli(base, "apply", str(file), *trusted)
    codes["verify"] = _cli(base, "verify", str(file))
    result = json.loads((base / "result.json").read_text())
    return Done(base, result, before, _rows(base, spark), codes)


def test_the_run_is_complete_and_nothing_is_residue(done: Done) -> None:
    assert done.result["residue"] == []
    assert done.result["state"] == "complete"
    assert (done.result["copies_total"], done.result["copies_erased"]) == (4, 4)
    assert done.result["bystander_rows_lost"] == 0
    assert done.result["rows_erased"] == 4 * 2 * len(PERSONS)
    before = done.codes.pop("verify before")
    assert before not in (0, None)
    assert done.codes == {"plan": 0, "approve": 0, "apply": 0, "verify": 0}


def test_the_others_keep_every_row(done: Done) -> None:
    for name, rows in done.before.items():
        assert done.after[name] == [row for row in rows if row[0] not in PERSONS], name
        assert {handle for handle, _ in done.after[name]} == set(OTHERS), name


def test_no_cell_and_no_byte_is_the_persons(done: Done) -> None:
    """A look of our own: the longer keys taken out, nothing like a person's is left."""
    looked = 0
    for folder in ("warehouse", "tables"):
        for path in (done.base / folder).rglob("*"):
            if path.is_file():
                data = b"\n".join(_decoded(path.read_bytes()))
                for other in sorted(OTHERS, key=len, reverse=True):
                    data = data.replace(other.encode(), b"").replace(other.encode("unicode_escape"), b"")
                assert b"ashakumar" not in data.lower(), path
                looked += 1
    assert looked > 10
