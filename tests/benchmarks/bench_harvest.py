"""How fast events are harvested, and in how much memory: `python -m tests.benchmarks.bench_harvest [EVENTS] [JOBS]`.

Makes its events itself, the same ones each time: every job reads two tables and writes one of ten columns, in many
runs of START and COMPLETE, with SQL, column lineage, schemas, statistics and versions that change from run to run.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pii_tracer.config.lineage import LineageSources
from tests.lineage.harvesting import harvest_with_summary

COLUMNS = 10
_URL = "https://example.org/facet.json"


def _dataset(number: int, run: int, **facets: Any) -> dict[str, Any]:
    name = f"/lake/warehouse/prod/table_{number:05}"
    fields = [{"name": f"c{n}", "type": "string"} for n in range(COLUMNS)]
    own = {
        "schema": {"_producer": _URL, "_schemaURL": _URL, "fields": fields},
        "version": {"_producer": _URL, "_schemaURL": _URL, "datasetVersion": str(run)},
        "storage": {"_producer": _URL, "_schemaURL": _URL, "storageLayer": "iceberg", "fileFormat": "parquet"},
        "symlinks": {
            "_producer": _URL,
            "identifiers": [{"namespace": "hive://m", "name": f"prod.table_{number:05}", "type": "TABLE"}],
        },
    }
    return {"namespace": "file", "name": name, "facets": own | facets}


def _job(job: int, sources: tuple[int, int], target: int) -> dict[str, Any]:
    columns = ", ".join(f"coalesce(a.c{n}, b.c{n}) AS c{n}" for n in range(COLUMNS))
    sql = (
        f"INSERT OVERWRITE prod.table_{target:05} SELECT {columns} FROM prod.table_{sources[0]:05} a"
        f" JOIN prod.table_{sources[1]:05} b ON a.c0 = b.c0 WHERE a.c1 <> 'job {job}'"
    )
    return {"jobType": {"integration": "SPARK"}, "sql": {"query": sql, "dialect": "spark"}}


def _lineage(sources: tuple[int, int]) -> dict[str, Any]:
    fields = {}
    for n in range(COLUMNS):
        fields[f"c{n}"] = {
            "inputFields": [
                {
                    "namespace": "file",
                    "name": f"/lake/warehouse/prod/table_{s:05}",
                    "field": f"c{n}",
                    "transformations": [{"type": "DIRECT", "subtype": "IDENTITY", "description": "", "masking": False}],
                }
                for s in sources
            ]
        }
    return {"_producer": _URL, "_schemaURL": _URL, "fields": fields}


def events(count: int, jobs: int) -> Iterator[dict[str, Any]]:
    """START and COMPLETE of runs that take turns over the jobs."""
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    for number in range(count):
        run, kind = number // 2, ("START", "COMPLETE")[number % 2]
        job = run % jobs
        sources = (job, job // 2)
        outputs = [_dataset(jobs + job, run)]
        if kind == "COMPLETE":
            outputs[0]["facets"]["columnLineage"] = _lineage(sources)
            outputs[0]["outputFacets"] = {"outputStatistics": {"rowCount": run}}
        yield {
            "eventType": kind,
            "eventTime": (start + timedelta(seconds=number)).isoformat(),
            "producer": _URL,
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {"runId": str(uuid.UUID(int=run)), "facets": {"nominalTime": {"nominalStartTime": str(number)}}},
            "job": {"namespace": "bench", "name": f"job_{job:05}", "facets": _job(job, sources, jobs + job)},
            "inputs": [_dataset(s, run) for s in sources],
            "outputs": outputs,
        }


def main() -> None:
    """Write the events, harvest them, print the numbers."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.ndjson"
        with file.open("w", encoding="utf-8") as stream:
            for event in events(count, jobs):
                stream.write(json.dumps(event) + "\n")
        size = file.stat().st_size
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        begun = time.perf_counter()
        graph, summary = harvest_with_summary(LineageSources(events=("events.ndjson",)), Path(folder))
        took = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{summary.events} events ({size / 1e6:.0f} MB) of {jobs} jobs in {took:.1f} s: {count / took:.0f} events/s")
    print(f"peak RSS {peak:.0f} MB ({before:.0f} MB before), {len(graph.facts.edges)} edges, {summary.gaps} gaps")


if __name__ == "__main__":
    main()
