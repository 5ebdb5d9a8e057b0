"""A small production estate: users as a Parquet folder, a job that copies their addresses, two trusted approvers."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from pii_tracer.app import Settings, add_requests, approve
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml

KEY, MAIL = "8841302771", "asha.verma@north.example"
"""The person's values. They may be in the estate's own files, and nowhere else."""
OTHERS = {"8841302001": "bo@south.example", "8841302002": "chen@south.example", "8841302003": "dele@south.example"}
APPROVERS = {"meera": ("Meera Iyer", "data protection officer"), "ben": ("Ben Okafor", "data owner")}
SPARK = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}


def write_estate(home: Path, *, backups: bool = False) -> Settings:
    """Tables, estate file, policy, keys; and one request in the request store."""
    people = {KEY: MAIL, **OTHERS}
    _write_table(home / "lake" / "users", {"uid": list(people), "mail": list(people.values())})
    _write_table(home / "lake" / "mails", {"uid": list(people), "mail": list(people.values())})
    tables = [{"name": f"app.{name}", "format": "parquet", "location": f"lake/{name}"} for name in ("users", "mails")]
    mail = {"column": "mail", "category": "email"}
    estate: dict[str, Any] = {
        "version": 1,
        "estate": "small",
        "environment": "production",
        "spark": {"master": "local[1]", "conf": SPARK},
        "catalogs": {"spark_catalog": {"type": "declared", "tables": tables}},
        "roots": ["lake"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [{"name": "user", "source": "app.users", "key": "uid", "identifiers": [mail]}],
        "writers": [{"job": "copy", "stopped": True}],
    }
    if backups:
        vault = {"name": "vault", "of": ["app.users", "app.mails"], "owner": "platform", "location": "a vault"}
        estate["backups"] = [{**vault, "due_days": 1}]
    (home / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (home / "jobs.sql").write_text("INSERT OVERWRITE app.mails SELECT uid, mail FROM app.users;\n")
    (home / "policy.yaml").write_text("version: 1\n")
    settings = Settings(home / "pii-tracer.yaml", home / ".pii-tracer")
    keys = settings.state / "keys"
    keys.mkdir(parents=True)
    generate(keys / "attest.pem")
    settings.key(create=True)
    people_of = [(*who, public_pem(generate(home / f"{name}.pem")).decode()) for name, who in APPROVERS.items()]
    (home / "trusted.yaml").write_bytes(trusted_yaml(people_of))
    return settings


def add_request(settings: Settings) -> None:
    """The person asks."""
    received = (datetime.now(timezone.utc) - timedelta(days=2)).isoformat(timespec="seconds")
    rows = settings.base / "today.csv"
    rows.write_text(f"id,key\nR-1,{KEY}\n")
    added = add_requests(settings, rows, given={"subject": "user", "law": "GDPR", "received": received})
    assert (added.added, added.refusals) == (1, ())
    rows.unlink()


def sign(settings: Settings, plan_file: str | Path, name: str) -> Path:
    """One of the approvers agrees."""
    approver, role = APPROVERS[name]
    key = settings.base / f"{name}.pem"
    return approve(settings, Path(plan_file), approver=approver, role=role, reason="R-1", key=key)


def users(home: Path) -> list[str]:
    """The keys that are left in both tables."""
    return sorted(
        str(key) for table in ("users", "mails") for key in pq.read_table(home / "lake" / table)["uid"].to_pylist()
    )


def add_copy(home: Path) -> None:
    """A job that nobody knows of writes the person down again, after the plan was made."""
    _write_table(home / "lake" / "export", {"uid": [KEY], "mail": [MAIL]})


def add_back(home: Path) -> None:
    """A backup brings the person back into the source."""
    pq.write_table(pa.table({"uid": [KEY], "mail": [MAIL]}), home / "lake" / "users" / "part-9.parquet")


def _write_table(folder: Path, columns: dict[str, list[str]]) -> None:
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "part-0.parquet")
