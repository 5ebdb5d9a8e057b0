"""Two readings of an estate of ten thousand tables, the second with changes, and the page made of it.

    python -m tests.benchmarks.bench_readiness [--tables N] [--files N] [--out PAGE.html]

The estate is that of `plan_estate`: a million columns, an edge each, 50 schemas. Timed is all that a reading does with
what discovery and harvest found: opening the stored graph, following the persons, coverage, settings, comparison, trend
and report. Reading the estate's systems, and searching bytes for canaries, is not in it.

`--files N` measures the command with both in it, on N folders of one small CSV file each, a statement for each, and one
canary that arrives everywhere: twice, the second time with the scan ledger of the first.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import yaml

from pii_tracer.app.estate_readiness import trend_file
from pii_tracer.app.estate_readiness.new_reading import gather, readiness
from pii_tracer.app.settings import Settings
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lineage.graph.graph_file import load
from pii_tracer.lineage.harvest import Harvested, Summary
from pii_tracer.lineage.sources.dataset_descriptions import Notes
from pii_tracer.readiness.canaries import Arrival
from pii_tracer.readiness.readiness_reading import Readiness, assess
from reports.readiness.readiness_html import render_readiness_html
from tests.benchmarks import plan_estate
from tests.benchmarks.graph_engines import memory
from tests.cli.small import declared

LIMIT_S = 600.0
NOW = datetime(2026, 11, 27, tzinfo=timezone.utc)


def settings_of(folder: Path, source: plan_estate.Table) -> Settings:
    """An estate file with the source, and fifty owners."""
    place = {"name": source.name, "format": "iceberg", "location": source.path}
    estate = {
        "version": 1,
        "estate": "large",
        "environment": "local",
        "catalogs": {"lake": {"type": "declared", "tables": [place]}},
        "roots": ["/lakehouse/warehouse"],
        "lineage": {"sql": []},
        "subjects": [
            {
                "name": "person",
                "source": source.name,
                "key": "user_id",
                "identifiers": [{"column": "email", "category": "email"}],
            }
        ],
        "readiness": {"owners": {f"lake.area_{n:02d}.*": f"team {n:02d}" for n in range(50)}},
    }
    file = folder / "pii-tracer.yaml"
    file.write_text(yaml.safe_dump(estate, sort_keys=False))
    return Settings(file, folder / "state")


def changed(inventory: Inventory) -> Inventory:
    """Every hundredth table is gone, every thousandth has lost a column, every 70th was written."""
    tables = [
        state.model_copy(
            update={
                "snapshot": f"{state.snapshot}1" if number % 70 == 3 else state.snapshot,
                "columns": state.columns[:-1] if number % 1000 == 1 else state.columns,
            }
        )
        for number, state in enumerate(inventory.tables)
        if number % 100 != 99
    ]
    return inventory.model_copy(update={"tables": tuple(tables)})


def reading(settings: Settings, graph: Path, inventory: Inventory, at: datetime) -> Readiness:
    """One reading as the command takes it, behind discovery and harvest."""
    harvested = Harvested(load(graph), Summary(0, 0, 0, 0, 0, 0), Notes())
    with trend_file.alone(settings.state) as folder:
        before = trend_file.read(folder)
        given = gather(settings, settings.estate(), inventory, harvested, at, len(before.points) + 1)
        made, state = assess(given, before.last, before.points)
        trend_file.append(folder, before, made, state)
    return made


def on_files(number: int) -> dict[str, object]:
    """The whole command on real files: discovery, harvest, search for a canary."""
    canary = "8800112233445"
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        names = [f"app.t{n:05d}" for n in range(number)]
        for name in names:
            (folder / "w" / name[4:]).mkdir(parents=True)
            (folder / "w" / name[4:] / "part-0.csv").write_text(f"user_id,note\n4417700102031,x\n{canary},{name}\n")
        jobs = [f"INSERT OVERWRITE {b} SELECT user_id, note FROM {a};" for a, b in pairwise(names)]
        # chains of ten, as jobs hang together
        jobs = [job if n % 10 else job.replace(f"FROM app.t{n:05d}", "FROM app.t00000") for n, job in enumerate(jobs)]
        (folder / "jobs.sql").write_text("\n".join(jobs))
        estate = declared("w", dict.fromkeys(names, "csv")) + "  - {name: user, source: app.t00000, key: user_id}\n"
        planted = {"canaries": [{"name": "wren", "subject": "user", "key": "env:WREN"}]}
        (folder / "pii-tracer.yaml").write_text(estate + yaml.safe_dump({"readiness": planted}))
        os.environ["WREN"] = canary
        settings = Settings(folder / "pii-tracer.yaml", folder / "state")
        settings.key(create=True)
        seconds: dict[str, float] = {}
        for name, at in (("first", NOW), ("second", NOW + timedelta(days=1))):
            begin, used = time.perf_counter(), time.process_time()
            made = readiness(settings, as_of=at)
            seconds[f"{name}_s"] = round(time.perf_counter() - begin, 1)
            seconds[f"{name}_processor_s"] = round(time.process_time() - used, 1)
    arrived = made.canaries.canaries[0].count(Arrival.ARRIVED)
    kept = {"process_mib": round(memory("VmHWM")), "arrived": arrived, "score": made.score.points}
    return {"tables": number, **seconds, **kept}


def main() -> None:
    """Run, print the numbers as JSON, and fail where the limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--files", type=int, help="folders of real files in place of the large graph")
    parser.add_argument("--out", type=Path, help="keep the page here")
    given = parser.parse_args()
    if given.files:
        print(json.dumps(on_files(given.files), indent=2))
        return
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        known, graph = plan_estate.tables(given.tables), folder / "estate.graph"
        plan_estate.write(graph, given.tables)
        inventory = plan_estate.inventory(known)
        settings = settings_of(folder, known[0])
        begin = time.perf_counter()
        reading(settings, graph, inventory, NOW)
        first = time.perf_counter()
        second = reading(settings, graph, changed(inventory), NOW + timedelta(days=1))
        done = time.perf_counter()
        page = render_readiness_html(second)
        rendered = time.perf_counter()
        kept = sum(file.stat().st_size for file in (settings.state / trend_file.FOLDER).iterdir())
    if given.out:
        given.out.write_text(page)
    row = {
        "tables": given.tables,
        "first_s": round(first - begin, 2),
        "second_s": round(done - first, 2),
        "page_s": round(rendered - done, 2),
        "page_mb": round(len(page.encode()) / 1e6, 2),
        "state_mb": round(kept / 1e6, 2),
        "process_mib": round(memory("VmHWM")),
        "findings": len(second.findings),
        "score": second.score.points,
    }
    print(json.dumps(row, indent=2))
    if max(first - begin, done - first + rendered - done) > LIMIT_S:
        raise SystemExit("the limit is broken: 10 minutes for a reading")


if __name__ == "__main__":
    main()
