"""An estimate of an estate of ten million files: time and memory; and of real folders, by the walk that the command has.

    python -m tests.benchmarks.bench_estimate [--files N] [--places N] [--real N]

The large estate is simulated: a generator of places behind the protocol of the real listing (`Listing`), tables of two
formats, some with tags, bare folders, archives with old versions. Everything after the listing is timed. `--real N` writes
N empty files in folders of a thousand, as bare folders and as files of tables, and times the whole of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from pii_tracer.app.cost_estimate.estate_estimate import estimate
from pii_tracer.app.settings import Settings
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Ref, RefKind
from pii_tracer.lake.listing.listed_place import ListedFile, ListedPlace, Listing, PlaceKind
from pii_tracer.model.estimate import Estimate
from planners.estimate.arithmetic import MIB, Asked
from planners.estimate.whole_estimate import make_estimate
from reports.estimate_text import render_estimate_text
from tests.benchmarks.graph_engines import memory

LIMIT_S = 900.0
LIMIT_MIB = 4096
NOW = datetime(2026, 11, 28, tzinfo=timezone.utc)
TAGS = (Ref(name="eoy", kind=RefKind.TAG, at="1"),)
KINDS = (
    (PlaceKind.TABLE, DELTA, ()),
    (PlaceKind.TABLE, ICEBERG, ()),
    (PlaceKind.TABLE, ICEBERG, TAGS),
    (PlaceKind.FOLDER, None, ()),
    (PlaceKind.BUCKET_TABLE, DELTA, ()),
    (PlaceKind.ARCHIVE, None, ()),
)
YAML = (
    "version: 1\nestate: large\nenvironment: local\ncatalogs: {}\nroots: [w]\nlineage: {sql: []}\n"
    "prices: {currency: USD, spark_hour: 0.3, scanned_gb: 0.005, request_1000: 0.0004}\n"
    "subjects: [{name: user, source: app.users, key: user_id}]\n"
)


def simulated(files: int, places: int) -> Iterator[ListedPlace]:
    """Places of every kind with as many files each, of sizes that go up and down."""
    each, rest = divmod(files, places)
    for number in range(places):
        kind, name, references = KINDS[number % len(KINDS)]
        yield ListedPlace(
            f"t{number:06d}", f"/w/t{number:06d}", kind, _files(each + (number < rest), kind), name, references
        )


def _files(count: int, kind: PlaceKind) -> Iterator[ListedFile]:
    stored = kind in (PlaceKind.BUCKET_TABLE, PlaceKind.ARCHIVE)
    for number in range(count):
        size = 1_000 + number * 7_919_317 % 128_000_000
        if stored:
            yield ListedFile(size, True, number % 9 != 0, "STANDARD", "2026-01-01T00:00:00+00:00")
        else:
            yield ListedFile(size)


def of_simulated(files: int, places: int) -> Estimate:
    """The estimate of the simulated estate."""
    import yaml

    estate = Estate.model_validate(yaml.safe_load(YAML))
    asked = Asked(1000, 16, 0.001, 50 * MIB, estate.prices, NOW)
    return make_estimate(estate, Listing(simulated(files, places)), asked, measured=False)


def of_real(files: int) -> tuple[Estimate, float]:
    """The estimate of real folders and how long it took, without writing them."""
    with tempfile.TemporaryDirectory() as text:
        base = Path(text)
        (base / "pii-tracer.yaml").write_text(YAML)
        for number in range(files):
            folder = base / "w" / f"t{number // 1000:05d}"
            if number % 1000 == 0:
                (folder / "_delta_log" if number // 1000 % 2 else folder).mkdir(parents=True)
            (folder / f"part-{number:08d}.parquet").touch()
        begin = time.perf_counter()
        found = estimate(Settings(base / "pii-tracer.yaml", base / "state"), persons=1000, executors=16, rate=50)
        return found, time.perf_counter() - begin


def main() -> None:
    """Run, print the numbers as JSON, and fail where a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000_000)
    parser.add_argument("--places", type=int, default=10_000)
    parser.add_argument("--real", type=int, help="real files in place of the simulated estate")
    given = parser.parse_args()
    before = memory("VmHWM")
    begin = time.perf_counter()
    if given.real:
        found, seconds = of_real(given.real)
    else:
        found = of_simulated(given.files, given.places)
        seconds = time.perf_counter() - begin
    row = {
        "files": found.files,
        "places": found.places,
        "seconds": round(seconds, 1),
        "microseconds_a_file": round(seconds / found.files * 1e6, 2),
        "process_mib": round(memory("VmHWM")),
        "more_mib": round(memory("VmHWM") - before),
    }
    print(json.dumps(row, indent=2))
    print(render_estimate_text(found).partition("\n")[0])
    if seconds > LIMIT_S or memory("VmHWM") > LIMIT_MIB:
        raise SystemExit("a limit is broken: 15 minutes, 4 GiB")


if __name__ == "__main__":
    main()
