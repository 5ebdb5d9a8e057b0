"""One plan on a large estate, in a process of its own for its memory: everything but reading the estate's systems.

python -m tests.benchmarks.plan_run GRAPH TABLES REQUESTS
"""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pii_tracer.config.estate_file import Estate, Request
from pii_tracer.lineage.graph.graph_file import load
from pii_tracer.model.waivers import MarkKey
from planners.build import Digests, PlanInputs, build_plan
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.locate.key_location import follow
from planners.locate.subject_survey import World, survey
from planners.schedule.step_dates import Retention
from tests.benchmarks import plan_estate
from tests.benchmarks.graph_engines import memory

PERSONS = 100_000
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
ESTATE = {
    "version": 1,
    "estate": "large",
    "environment": "local",
    "catalogs": {},
    "roots": ["lakehouse"],
    "lineage": {},
    "subjects": [
        {
            "name": "person",
            "source": plan_estate.Table(0, "source", None, None).name,
            "key": "user_id",
            "identifiers": [
                {"column": "email", "category": "email"},
                {"column": "phone", "category": "phone"},
                {"column": "pan", "category": "national_id"},
            ],
        }
    ],
    "prices": {"spark_hour": 40.0, "scanned_gb": 0.4},
}


def rows() -> SourceRows:
    """The source's identifying columns."""
    return SourceRows(
        {
            "user_id": [f"{n + 9_000_000_000}" for n in range(PERSONS)],
            "email": [f"person{n}@example.com" for n in range(PERSONS)],
            "phone": [f"+9190{n:08d}" for n in range(PERSONS)],
            "pan": [f"ABCDE{n % 10000:04d}{chr(65 + n // 10000)}" for n in range(PERSONS)],
        }
    )


def loop() -> float:
    """The processor's seconds of ten million additions, to compare machines by, and how busy they are."""
    begin, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - begin


def measured(file: Path, number: int, asked: int) -> dict[str, Any]:
    """Seconds of each part and in all, and the most memory at any time."""
    known = plan_estate.tables(number)
    found, seen = plan_estate.inventory(known), plan_estate.evidence(known)
    estate, source, keys = Estate.model_validate(ESTATE), known[0].dataset, rows()
    requests = [
        Request.model_validate(
            {
                "id": f"REQ-{n:04d}",
                "law": ("DPDP", "GDPR", "CCPA")[n % 3],
                "received": NOW,
                "subject": {"type": "person", "key": f"{9_000_000_000 + n * min(7, PERSONS // asked)}"},
            }
        )
        for n in range(asked)
    ]
    references = {r.id: f"subj_{n:016x}" for n, r in enumerate(requests)}
    del known
    ready = memory("VmRSS")
    begin, busy = time.perf_counter(), time.process_time()
    graph = load(file)
    loaded = time.perf_counter()
    carriages = follow(graph, source, estate.subjects[0])
    followed = time.perf_counter()
    wanted = [Wanted(r.id, references[r.id], r.subject.key) for r in requests]
    surveyed = survey(estate.subjects[0], source, carriages, resolve(estate.subjects[0], keys, wanted))
    derived = time.perf_counter()
    plan = build_plan(
        PlanInputs(
            estate=estate,
            marks=MarkKey(bytes(32)),
            requests=requests,
            references=references,
            surveys=[surveyed],
            world=World(graph, found, seen, lambda _: False),
            digests=Digests(graph.digest(), found.digest(), "", "", ""),
            as_of=NOW,
            retention=Retention.RETAIN,
        )
    )
    built = time.perf_counter()
    size = len(plan.to_bytes())
    written = time.perf_counter()
    return {
        "tables": number,
        "columns": number * plan_estate.WIDE,
        "requests": asked,
        "copies": len(plan.copies),
        "steps": len(plan.steps),
        "gaps": len(plan.gaps),
        "plan_mb": size / 1e6,
        "load_s": loaded - begin,
        "follow_s": followed - loaded,
        "keys_s": derived - followed,
        "build_s": built - derived,
        "write_s": written - built,
        "total_s": written - begin,
        "cpu_s": time.process_time() - busy,
        "loop_s": loop(),
        "inventory_mib": ready,
        "process_mib": memory("VmHWM"),
    }


if __name__ == "__main__":
    print(json.dumps(measured(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
