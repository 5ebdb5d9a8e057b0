"""The search after a run against a full search, and the search on two executors against one.

The lake of `bench_shapes`, in more and smaller files. A person is searched for with an empty ledger, as planning does.
Then the files that hold the person are written again without the person's rows, as a run does, and the same is searched
for, as verification does. The peer, in the same run: a full search of the lake as it is then. Then the same lake is
searched by a cluster of Spark with one executor, and with two, of one core each. Run: `make bench-again`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.hits import TreeScan
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.verify.cluster_byte_search import Executors
from tests.benchmarks.bench_shapes import make_lake, patterns_of, search

FILES = 40
"""Of each table."""
ROWS = 50_000
"""Of a file."""
ROUNDS = 3


def erase(root: Path, found: list[TreeScan], number: int) -> int:
    """Write the files that hold the person without the person's rows; returns how many files."""
    files = [
        root / tree / scan.path
        for tree, part in zip(sorted(folder.name for folder in root.iterdir()), found, strict=True)
        for scan in part.files
        if scan.hits
    ]
    for file in files:
        table = pq.read_table(file)
        pq.write_table(table.filter(pc.not_equal(table["user_id"], number)), file, compression="snappy")
    return len(files)


def searched_by(executors: int, root: Path, person: list[str]) -> tuple[float, list[TreeScan]]:
    """The shortest time by the clock of a few rounds, the workers being warm, and what was found."""
    session = (
        SparkSession.builder.master(f"local-cluster[{executors},1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.pyspark.python", sys.executable)
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    try:
        searchers = LedgerSearchers(None, Executors(lambda: session, print))
        times, found = [], []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            found = [scan_tree(folder, patterns_of(person), searchers=searchers) for folder in sorted(root.iterdir())]
            times.append(time.perf_counter() - began)
        return min(times), found
    finally:
        session.stop()


def main() -> None:
    """Print the lines that docs/benchmarks.md shows."""
    with tempfile.TemporaryDirectory() as base:
        root = Path(base) / "lake"
        person, _ = make_lake(root, FILES, ROWS)
        size = sum(file.stat().st_size for file in root.rglob("*.parquet")) / 2**20
        ledger = ScanLedger(Path(base) / "ledger.sqlite", b"k" * 32, lambda: datetime.now(timezone.utc), print)
        first, found, _ = search(root, person, ledger)
        changed = erase(root, found, int(person[0]))
        after, left, reading = search(root, person, ledger)
        whole, bare, _ = search(root, person, None)
        if left != bare:
            raise AssertionError("the ledger changes what is found")
        if any(scan.hits for tree in left for scan in tree.files):
            raise AssertionError("the person is still there")
        print(f"{size:.0f} MiB in {3 * FILES} files; {changed} were written again: {changed / (3 * FILES):.1%}")
        print(
            f"search before the run {first:.2f} s; after it {after:.2f} s ({reading.now} files decoded); a full search"
            f" {whole:.2f} s of processor time: {after / whole:.2f} (target <= 0.10)"
        )
        one, by_one = searched_by(1, root, person)
        two, by_two = searched_by(2, root, person)
        if by_one != bare or by_two != bare:
            raise AssertionError("executors find something else")
        print(f"one executor {one:.1f} s, two {two:.1f} s by the clock: {two / one:.2f} (target <= 0.60)")


if __name__ == "__main__":
    main()
