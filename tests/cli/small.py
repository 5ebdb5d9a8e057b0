"""What small estates on the command line have in common: declared tables in folders, one file of SQL, one request."""

from __future__ import annotations

from collections.abc import Mapping


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


def request(kind: str, key: str) -> str:
    """A request file for the person of this key."""
    return f"id: R-1\nlaw: GDPR\nreceived: 2026-11-01T09:00:00+01:00\nsubject: {{type: {kind}, key: '{key}'}}\n"
