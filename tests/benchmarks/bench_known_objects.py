"""A lake in S3 that did not change, searched again with the scan ledger and without: processor time, bytes, requests.

200 Parquet objects in a bucket of the stand-in for S3, as planning and the verifier search a folder; then 12 objects with
wide columns, for one person after the other, with shapes. Each search runs in this process; the stand-in is another one.
Run: `make bench-objects`.
"""

from __future__ import annotations

import io
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.app.planning.s3_place_search import search_places, with_remote
from pii_tracer.app.s3_reading import look_at
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.hive_text.text_reading_rules import NO_TEXTS
from pii_tracer.model.locations import S3Location
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.search_workers import THREADS
from pii_tracer.scan.value_forms import Patterns, build_patterns
from sample_lineage import s3_standin
from tests.s3support import REGION, World, estate

OBJECTS = 200
ROWS = 7_200
NAMES = ("anita", "bela", "chandra", "dev", "esha", "farid", "gita", "hari", "indra", "jaya")
HER = "ipsita.nayak@mail.example"
HIM = "rahul.menon@mail.example"
MIB = 1 << 20
WIDE = 12
WIDE_ROWS = 12_000
SYLLABLES = [f"{first}{then}" for first in "bdfglmnprst" for then in "aeiou"]


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


def a_wide_object(number: int) -> bytes:
    """About 12 MiB, of which a number, an address and an instant are a small part; texts fill the rest."""
    drawn = Random(number)

    def text() -> str:
        return " ".join("".join(drawn.choices(SYLLABLES, k=drawn.randint(1, 3))) for _ in range(60))

    rows: dict[str, Any] = {
        "id": [number * WIDE_ROWS + n for n in range(WIDE_ROWS)],
        "email": [f"{drawn.choice(NAMES)}.{drawn.choice(NAMES)}{n}@mail.example" for n in range(WIDE_ROWS)],
        "at": pa.array([n * 10**9 for n in range(WIDE_ROWS)], pa.timestamp("us")),
        **{name: [text() for _ in range(WIDE_ROWS)] for name in ("subject", "body", "answer", "note")},
    }
    if number == WIDE // 2:
        rows["note"][7] = f"of {HER}"
    sink = io.BytesIO()
    pq.write_table(pa.table(rows), sink, compression="snappy", use_dictionary=False)
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
            f" {self.sent / MIB:8.2f} MiB in {self.whole:4} answers {self.requests:5} requests",
            flush=True,
        )
        return seen


def main() -> None:
    """Upload, then search with a ledger and without, twice each."""
    os.environ.update(s3_standin.demo_credentials())
    with tempfile.TemporaryDirectory() as folder:
        running = s3_standin.start(Path(folder))
        try:
            world = World(running.endpoint_url)
            _measured(world, Path(folder))
            _measured_wide(world, Path(folder))
        finally:
            s3_standin.stop(running)


class Lake:
    """A folder in a bucket, and a client that counts."""

    def __init__(self, world: World, base: Path, name: str, objects: Iterable[bytes]) -> None:
        self.bucket, size, count = world.new(name), 0, 0
        for data in objects:
            world.put(self.bucket, f"t/part-{count:05}.parquet", data)
            size, count = size + len(data), count + 1
        print(f"{count} objects, {size / MIB:.1f} MiB; load {os.getloadavg()[0]:.1f}")
        self.estate = estate(world.endpoint_url, roots=[f"s3://{self.bucket}/t"])
        self.counting, client = Counting(), s3_clients(self.estate)(REGION)
        client.meta.events.register("before-call.s3", self.counting.asked)
        client.meta.events.register("after-call.s3.GetObject", self.counting.answered)
        paths = EstatePaths(self.estate, base)
        self.inventory = with_remote(discover(self.estate, base), self.estate, paths, str)

    def searchers(self, file: Path | None, *, shapes: bool) -> LedgerSearchers:
        now = partial(datetime.now, timezone.utc)
        ledger = ScanLedger(file, b"k" * 32, now, print, with_shapes=shapes) if file else None
        return LedgerSearchers(ledger, THREADS)

    def planned(self, file: Path | None, who: str = HER, *, shapes: bool = False) -> Any:
        searchers = self.searchers(file, shapes=shapes)
        return search_places(self.inventory, self.estate, _patterns(who), False, str, searchers=searchers)

    def verified(self, file: Path | None, who: str = HER, *, shapes: bool = False) -> Any:
        place = S3Location(bucket=self.bucket, key="t")
        searchers = self.searchers(file, shapes=shapes)
        return look_at(self.estate, place, "t", _patterns(who), NO_TEXTS, searchers, alone=True)


def _patterns(who: str) -> Patterns:
    return build_patterns([KeySet(name="email", origin="email", weak=False, values=(("s", who),))])


def _measured(world: World, base: Path) -> None:
    lake = Lake(world, base, "lake", map(an_object, range(OBJECTS)))
    lake.planned(None)  # decoders are imported
    for name, file in (("without a ledger", None), ("with it", base / "ledger.sqlite")):
        plans = [
            lake.counting.row(f"planning {which}, {name}", partial(lake.planned, file)) for which in ("first", "again")
        ]
        verdict = lake.counting.row(f"verification, {name}", partial(lake.verified, file))
        assert repr(plans[0]) == repr(plans[1])
        assert verdict.residue
    print(f"ledger: {(base / 'ledger.sqlite').stat().st_size / 1024:.0f} KiB")


def _measured_wide(world: World, base: Path) -> None:
    """For one person, then for another, with a ledger; then the same with shapes."""
    lake = Lake(world, base, "wide", map(a_wide_object, range(WIDE)))
    seen = []
    for name, shapes in (("ledger", False), ("shapes", True)):
        file = base / f"{name}.sqlite"
        for person, who in (("first", HIM), ("second", HER)):
            look = partial(lake.planned, file, who, shapes=shapes)
            seen.append(repr(lake.counting.row(f"wide, {person} person, {name}", look)))
        look = partial(lake.verified, file, HER, shapes=shapes)
        assert lake.counting.row(f"wide, verification, {name}", look).residue
        print(f"{name}: {file.stat().st_size / 1024:.0f} KiB")
    assert seen[:2] == seen[2:]


if __name__ == "__main__":
    main()
