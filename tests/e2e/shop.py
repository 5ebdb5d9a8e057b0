"""The shop: one table of people as a Parquet folder, and topics that carry its rows, as each test declares them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.streams.kafka.topics import discover_topics
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.cli.small import RECEIVED
from tests.kafkasupport import MAIL, USER, Broker
from tests.sparksession import small_spark

OTHERS = [(f"88000000{n:04}", f"by{n}@example.org") for n in range(6)]
PEOPLE = [*OTHERS, (USER, MAIL)]
NAMED = {"format": "json", "fields": {"user.id": "uid"}}


def cli(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def write(base: Path, broker: Broker, declared: list[dict[str, Any]]) -> None:
    """The table, the estate file with these topics, the policy and the request."""
    folder = base / "tables" / "users"
    folder.mkdir(parents=True)
    columns = {"uid": [u for u, _ in PEOPLE], "mail": [m for _, m in PEOPLE]}
    pq.write_table(pa.table(columns), folder / "part-0.parquet")
    table = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    mail = {"column": "mail", "category": "email"}
    estate = {
        "version": 1,
        "estate": "shop",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {"spark_catalog": {"type": "declared", "tables": [table]}},
        "roots": ["tables"],
        "lineage": {},
        "subjects": [{"name": "user", "source": "shop.users", "key": "uid", "identifiers": [mail]}],
        "writers": [{"job": "web", "stopped": True}],
        "kafka": [{"name": "main", "bootstrap": broker.bootstrap, "topics": declared}],
    }
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request = {
        "id": "SHOP-1",
        "law": "GDPR",
        "received": RECEIVED,
        "subject": {"type": "user", "key": USER},
    }
    (base / "request.yaml").write_text(yaml.safe_dump(request))


def plan_and_approve(base: Path) -> dict[str, int]:
    """`shop.plan.json`, signed; exit codes by command."""
    file = base / "shop.plan.json"
    words = ["--retention", "immediate", "--reason", "test", "--out", str(file), "--format", "json"]
    planned = cli(base, "plan", str(base / "request.yaml"), *words)
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(public).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--key"]
    return {"plan": planned, "approve": cli(base, "approve", str(file), *signed, str(base / "approver.pem"))}


def settings_of(base: Path) -> dict[str, list[str]]:
    """Every declared topic's settings in force."""
    states, _ = discover_topics(load_estate(base / "pii-tracer.yaml"), base)
    return {s.declared.name: [f"{k}={v}" for k, v in sorted(s.settings.items())] for s in states}
