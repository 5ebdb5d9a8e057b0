"""A third estate: calls whose numbers are encrypted under one key a caller, and a Delta table of wrapped keys."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from deltalake import DeltaTable, write_deltalake

from pii_tracer.cli.main import run
from pii_tracer.lake.keys.envelope.cells import Binding
from pii_tracer.lake.keys.envelope.columns import Keys, decrypt, encrypt
from pii_tracer.lake.keys.envelope.key_wrapping import LocalFile, Wrapper
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.cli.small import RECEIVED
from tests.sparksession import small_spark

PERSON, PHONE = "U-771204", "+919812345670"
OTHERS = {"U-880001": "+919800000001", "U-880002": "+919800000002"}
CALLS = Binding("tel.calls", "number")
KEYS = {
    "name": "callers",
    "subject": "caller",
    "table": "tel.keys",
    "person_column": "caller",
    "key_column": "kid",
    "wrapped_column": "wrapped",
    "cache_seconds": 3,
    "wrapping": {"kind": "local", "file": "kek"},
    "encrypts": [{"dataset": "tel.calls", "columns": ["number"], "key_column": "kid"}],
}
BACKUP = {
    "name": "vault",
    "of": ["tel.keys", "tel.users"],
    "owner": "platform team",
    "location": "vault/telephony",
    "due_days": 7,
}
TABLES = {"tel.users": "parquet", "tel.keys": "delta", "tel.calls": "parquet"}


def estate(base: Path, **changes: Any) -> None:
    declared = [
        {"name": name, "format": kind, "location": f"tables/{name.split('.')[1]}"} for name, kind in TABLES.items()
    ]
    subject = {"name": "caller", "source": "tel.users", "key": "caller"}
    content = {
        "version": 1,
        "estate": "telephony",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {"spark_catalog": {"type": "declared", "tables": declared}},
        "roots": ["tables"],
        "lineage": {},
        "subjects": [{**subject, "identifiers": [{"column": "phone", "category": "phone"}]}],
        "keys": [KEYS],
        "backups": [BACKUP],
        **changes,
    }
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(content))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request = {"id": "R-1", "law": "GDPR", "received": RECEIVED}
    (base / "request.yaml").write_text(yaml.safe_dump({**request, "subject": {"type": "caller", "key": PERSON}}))


def build(base: Path) -> None:
    """Write the tables without Spark. The key table is written in two commits: its first version is history."""
    path = base / "kek"
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    wrapper = Wrapper(LocalFile(str(path)), 60)
    people = {PERSON: PHONE, **OTHERS}
    kids = {person: f"k{n}" for n, person in enumerate(people)}
    wrapped = {kid: wrapper.new_key(kid) for kid in kids.values()}
    for name in ("users", "calls"):
        (base / "tables" / name).mkdir(parents=True)
    users = pa.table({"caller": list(people), "phone": list(people.values())})
    pq.write_table(users, base / "tables" / "users" / "part-0.parquet")
    keys = pa.table({"caller": list(people), "kid": list(kids.values()), "wrapped": list(wrapped.values())})
    write_deltalake(str(base / "tables" / "keys"), keys.slice(0, 2))
    write_deltalake(str(base / "tables" / "keys"), keys.slice(2), mode="append")
    rows = [(kids[p], number, city) for p, number in people.items() for city in ("Pune", "Delhi")]
    names = pa.array([kid for kid, _, _ in rows])
    opened = Keys.unwrapped(wrapped, wrapper)
    calls = pa.table(
        {
            "kid": names,
            "number": encrypt(pa.array([number for _, number, _ in rows]), names, CALLS, opened),
            "city": [city for _, _, city in rows],
        }
    )
    pq.write_table(calls, base / "tables" / "calls" / "part-0.parquet")
    estate(base)
    public = generate(base / "key.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))


def opened_keys(base: Path, version: int | None = None) -> Keys:
    """The data keys that the key table of now (or of a version) has, as a reader holds them in memory."""
    table = DeltaTable(str(base / "tables" / "keys"), version=version)
    keys = table.to_pyarrow_table() if hasattr(table, "to_pyarrow_table") else pa.table(table.to_table())
    wrapped = dict(zip(keys.column("kid").to_pylist(), keys.column("wrapped").to_pylist(), strict=True))
    return Keys.unwrapped(wrapped, Wrapper(LocalFile(str(base / "kek")), 60))


def numbers(base: Path, version: int | None = None, keys: Keys | None = None) -> list[str | None]:
    """The numbers of all calls, as a reader's keys open them: of now, of a version, or those that it remembers."""
    opened = keys or opened_keys(base, version)
    calls = pq.read_table(base / "tables" / "calls" / "part-0.parquet")
    kids, cells = (calls.column(name).combine_chunks() for name in ("kid", "number"))
    return [None if v is None else v.decode() for v in decrypt(cells, kids, CALLS, opened).to_pylist()]


def cli(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def plan(base: Path, *words: str) -> int:
    options = ["--retention", "immediate", "--reason", "test", "--out", str(base / "p.plan.json"), "--format", "json"]
    return cli(base, "plan", str(base / "request.yaml"), *options, *words)


def approve(base: Path) -> int:
    signed = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "key.pem")]
    return cli(base, "approve", str(base / "p.plan.json"), *signed)


def confirm(base: Path, name: str) -> int:
    (base / "ticket.txt").write_text("recovery points deleted, ticket 4711")
    words = ["--evidence", str(base / "ticket.txt"), "--by", name, "--role", "officer", "--said", "deleted"]
    return run(["confirm", "vault", "--state", str(base / "state"), *words, "--key", str(base / "key.pem")])
