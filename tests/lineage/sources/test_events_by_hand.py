"""Events that people write for jobs whose own events say too little, as docs/lineage-sources.md shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.harvest import Given, Harvested, harvest_all
from pii_tracer.model.datasets import DatasetId
from tests.docs.prose import ROOT

PAGE = (ROOT / "docs" / "lineage-sources.md").read_text(encoding="utf-8")
BY_SQL, COLUMNS = (
    json.loads(block)
    for block in re.findall(r"(?ms)^```json\n(.*?)^```", PAGE.split("## Jobs whose events say")[1])[:2]
)
CDR = DatasetId(namespace="s3://my-lake", name="network/cdr")


def by_columns() -> dict[str, Any]:
    """The same event with columns of the output in place of SQL."""
    (output,) = BY_SQL["outputs"]
    return {**BY_SQL, "job": {**BY_SQL["job"], "facets": {}}, "outputs": [{**output, "facets": COLUMNS}]}


def read(folder: Path, *events: dict[str, Any]) -> Harvested:
    (folder / "events.ndjson").write_text("".join(json.dumps(event) + "\n" for event in events))
    return harvest_all(LineageSources(events=("events.ndjson",)), Given(folder, aliases={"network.cdr": CDR}))


@pytest.mark.parametrize(
    ("outputs", "gap", "written"),
    [(True, "no_columns", BY_SQL), (True, "no_columns", by_columns()), (False, "no_outputs", BY_SQL)],
)
def test_an_event_by_hand_says_what_the_jobs_own_did_not(
    tmp_path: Path, outputs: bool, gap: str, written: dict[str, Any]
) -> None:
    own = {name: BY_SQL[name] for name in ("eventTime", "producer", "inputs")} | {
        "eventType": "COMPLETE",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "0191a1b2-0000-7000-8000-000000000001"},
        "job": {**BY_SQL["job"], "facets": {}},
        "outputs": BY_SQL["outputs"] if outputs else [],
    }
    alone = read(tmp_path, own).graph
    assert [g.kind for g in alone.gaps] == [gap]
    assert "docs/lineage-sources.md#jobs-whose-events-say-too-little" in alone.gaps[0].closes
    graph = read(tmp_path, own, written).graph
    assert graph.gaps == ()
    assert "a_number" in {edge.target.column for edge in graph.edges_into(CDR)}
