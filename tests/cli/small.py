"""What small estates on the command line have in common: declared tables in folders, one file of SQL, one request."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone


def declared(folder: str, tables: Mapping[str, str]) -> str:
    """An estate file up to its `subjects:`. tables: formats by `schema.name`; each lies in the folder, by its name."""
    lines = [
        f"      - {{name: {name}, format: {kind}, location: {folder}/{name.rpartition('.')[2]}}}\n"
        for name, kind in tables.items()
    ]
    head = (
        "version: 1\nestate: shop\nenvironment: local\ncatalogs:\n  spark_catalog:\n    type: declared\n    tables:\n"
    )
    return f"{head}{''.join(lines)}roots: [{folder}]\nlineage: {{sql: [jobs.sql]}}\nsubjects:\n"


RECEIVED = (datetime.now(timezone.utc) - timedelta(days=2)).isoformat(timespec="seconds")
"""When a request came in that is planned for now: a fixed day's deadline would be over one day, and its plan refused."""


def request(kind: str, key: str) -> str:
    """A request file for the person of this key."""
    return f"id: R-1\nlaw: GDPR\nreceived: {RECEIVED}\nsubject: {{type: {kind}, key: '{key}'}}\n"
