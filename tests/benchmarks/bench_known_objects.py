"""A lake in S3 that did not change, searched again with the scan ledger and without: processor time, bytes, requests.

200 Parquet objects in a bucket of the stand-in for S3, as planning and the verifier search a folder. Each search runs in
this process; the stand-in is another one. Run: `make bench-objects`.
"""

from __future__ import annotations

import io
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.app.planning.s3_place_search import search_places, with_remote
from pii_tracer.app.s3_tables_now import look_at
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.hive_text.text_places import NO_TEXTS
from pii_tracer.model.locations import S3Location
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.search_workers import THREADS
from pii_tracer.scan.value_forms import build_patterns
from sample_lineage import s3_standin
from tests.s3support import REGION, World, estate

OBJECTS = 200
ROWS = 7_200
NAMES = ("anita", "bela", "chandra", "dev", "esha", "farid", "gita", "hari", "indra", "jaya")
HER = "ipsita.nayak@mail.example"
MIB = 1 << 20


def an_object(number: int) -> bytes:
    """About 256 KiB."""
    drawn = Random(number)
    rows: dict[str, list[Any]] = {
        "id": [number * ROWS + n for n in range(ROWS)],
        "email": [f"{drawn.choice(NAMES)}.{drawn.choice(NAMES)}{n}@mail.example" for n in range(ROWS)],
        "amount": [drawn.random() for _ in range(ROWS)],
        "tax": [drawn.random() for _ in range(ROWS)],
    }
    if number == OBJECTS // 2:
        rows["email"][7] = HER
    sink = io.BytesIO()
    pq.write_table(pa.table(rows), sink, compression="snappy")
    return sink.getvalue()


@dataclass
class Counting:
    """What a client of S3 asked for, and what it was sent."""

    requests: int = 0
    sent: int = 0
    whole: int = 0

    def asked(self, **_: Any) -> None:
        self.requests += 1

    def answered(self, parsed: Any, **_: Any) -> None:
        size = int(parsed.get("ContentLength", 0))
        self.sent += size
        self.whole += size > 1

    def row(self, what: str, act: Callable[[], Any]) -> Any:
        self.requests = self.sent = self.whole = 0
        cpu, wall = time.process_time(), time.perf_counter()
        seen = act()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        print(
            f"{what:34} {cpu:6.2f} s of processor time {wall:6.2f} s"
            f" {self.sent / MIB:8.2f} MiB in {self.whole:4} objects {self.requests:5} requests",
            flush=True,
        )
        return seen


def main() -> None:
    """Upload, then search with a ledger and without, twice each."""
    os.environ.update(s3_standin.demo_credentials())
    with tempfile.TemporaryDirectory() as folder:
        running = s3_standin.start(Path(folder))
        try:
            _measured(World(running.endpoint_url), Path(folder))
        finally:
            s3_standin.stop(running)


def _measured(world: World, base: Path) -> None:
    bucket = world.new("lake")
    size = 0
    for number in range(OBJECTS):
        data = an_object(number)
        size += len(data)
        world.put(bucket, f"t/part-{number:05}.parquet", data)
    print(f"{OBJECTS} objects, {size / MIB:.1f} MiB; load {os.getloadavg()[0]:.1f}")
    given = estate(world.endpoint_url, roots=[f"s3://{bucket}/t"])
    patterns = build_patterns([KeySet(name="email", origin="email", weak=False, values=(("s", HER),))])
    counting, client = Counting(), s3_clients(given)(REGION)
    client.meta.events.register("before-call.s3", counting.asked)
    client.meta.events.register("after-call.s3.GetObject", counting.answered)
    inventory = with_remote(discover(given, base), given, EstatePaths(given, base), str)

    def searchers(file: Path | None) -> LedgerSearchers:
        ledger = ScanLedger(file, b"k" * 32, lambda: datetime.now(timezone.utc), print) if file else None
        return LedgerSearchers(ledger, THREADS)

    def planned(file: Path | None) -> Any:
        return search_places(inventory, given, patterns, False, str, searchers=searchers(file))

    def verified(file: Path | None) -> Any:
        place = S3Location(bucket=bucket, key="t")
        return look_at(given, place, "t", patterns, NO_TEXTS, searchers(file), alone=True)

    planned(None)  # decoders are imported
    for name, file in (("without a ledger", None), ("with it", base / "ledger.sqlite")):
        plans = [counting.row(f"planning {which}, {name}", partial(planned, file)) for which in ("first", "again")]
        verdict = counting.row(f"verification, {name}", partial(verified, file))
        assert repr(plans[0]) == repr(plans[1])
        assert verdict.residue
    print(f"ledger: {(base / 'ledger.sqlite').stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
