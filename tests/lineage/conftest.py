from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Column, DatasetId
from tests.lineage.harvesting import harvest

PAYMENTS = DatasetId(namespace="file", name="/lakehouse/lake/prod/payments")
COPY = DatasetId(namespace="file", name="/lakehouse/delta/copy")
ALIASES = {"lake.prod.payments": PAYMENTS, "prod.copy": COPY}
SCHEMAS = {
    "lake.prod.payments": (Column(name="user_id", type="bigint"), Column(name="pan", type="string")),
    "prod.copy": (Column(name="uid", type="string"), Column(name="pan", type="string")),
}


def dataset(id_: DatasetId, **facets: Any) -> dict[str, Any]:
    return {"namespace": id_.namespace, "name": id_.name, "facets": facets}


def column_facet(**columns: tuple[DatasetId, str, str]) -> dict[str, Any]:
    return {
        "fields": {
            target: {
                "inputFields": [
                    {
                        "namespace": source.namespace,
                        "name": source.name,
                        "field": field,
                        "transformations": [{"type": "DIRECT", "subtype": subtype, "masking": False}],
                    }
                ]
            }
            for target, (source, field, subtype) in columns.items()
        }
    }


def event(run: str, kind: str, inputs: list[Any], outputs: list[Any], sql: str | None = None) -> dict[str, Any]:
    facets = {"sql": {"query": sql}} if sql else {}
    return {
        "eventType": kind,
        "eventTime": "2026-11-01T00:00:00Z",
        "run": {"runId": run},
        "job": {"namespace": "jobs", "name": f"job_{run}", "facets": facets},
        "inputs": inputs,
        "outputs": outputs,
    }


@pytest.fixture
def estate(tmp_path: Path) -> Callable[..., LineageGraph]:
    """Harvest these events and SQL texts."""

    def make(events: list[Any] | None = None, sql: dict[str, str] | None = None, raw: bytes = b"") -> LineageGraph:
        for name in ("events", "jobs"):
            (tmp_path / name).mkdir(exist_ok=True)
            for old in (tmp_path / name).iterdir():
                old.unlink()
        text = "".join(json.dumps(e) + "\n" for e in events or []).encode() + raw
        (tmp_path / "events" / "e.ndjson").write_bytes(text)
        for name, body in (sql or {}).items():
            (tmp_path / "jobs" / name).write_text(body)
        return harvest(LineageSources(events=("events",), sql=("jobs",)), tmp_path, (), ALIASES, SCHEMAS)

    return make
