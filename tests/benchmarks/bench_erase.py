"""What an erasure costs, in ratios within one run. Exits 1 when a target is missed.

python -m tests.benchmarks.bench_erase [--only verify|batch|bytes|growth] [--format delta|iceberg|parquet] [--rows 25000]

The tables are small, so that all of it ends in minutes on two cores: ratios of time hold the fixed costs of Spark's
statements, which a large table does not feel. Bytes and files are exact at any size.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.erase_tables import EVERYWHERE, FIRST, Bench, Variant, estate, timed

FILES = 8
SEPARATE = 20
PEOPLE = 1_000
REPEATS = 7


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    measured: str
    target: str
    met: bool


def verify(folder: Path, rows: int) -> Iterator[Row]:
    """The byte scanner against pyarrow decoding the same files, both on all cores, each its best."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pii_tracer.model.datasets import KeySet
    from pii_tracer.scan.folder_scan import scan_tree
    from pii_tracer.scan.value_forms import build_patterns

    random = np.random.default_rng(7)
    folder.mkdir()
    for number in range(4):
        ids = random.integers(10**9, 2 * 10**9, rows)
        table = pa.table(
            {
                "txn_id": np.arange(number * rows, (number + 1) * rows),
                "user_id": ids,
                "phone": [f"+91 9{n:09d}" for n in random.integers(0, 10**9, rows)],
                "email": [f"user{n}@example.net" for n in ids],
                "amount": random.integers(1, 10**6, rows) / 100,
                "status": np.array(["PAID", "OPEN", "FAILED"])[random.integers(0, 3, rows)],
                "merchant": [f"shop {n}" for n in random.integers(0, 5_000, rows)],
                "created": pa.array(random.integers(16 * 10**14, 17 * 10**14, rows), pa.timestamp("us")),
                "note": [f"payment of order {n}" for n in random.integers(0, 10**8, rows)],
            }
        )
        pq.write_table(table, folder / f"{number}.parquet", compression="snappy")
    patterns = build_patterns(
        [
            KeySet(name="phone", origin="c", weak=False, values=tuple((f"s{n}", f"+91 97000 {n:05d}") for n in range(34))),
            KeySet(name="email", origin="c", weak=False, values=tuple((f"s{n}", f"p.{n}@example.org") for n in range(33))),
            KeySet(name="uid", origin="c", weak=True, values=tuple((f"s{n}", str(5382917346 + n)) for n in range(33))),
        ]
    )  # fmt: skip

    def decode(path: Path) -> None:
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches(batch_size=65_536, use_threads=False):
                pass

    def alone() -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(decode, sorted(folder.iterdir())))

    def scan() -> None:
        if scan_tree(folder, patterns).unread:
            raise SystemExit("a file was not read")

    times: dict[Callable[[], None], list[tuple[float, float]]] = {alone: [], scan: []}
    for _ in range(REPEATS):  # by turns: what else runs on the machine is then there for both
        for work, taken in times.items():
            used = time.process_time()
            taken.append((timed(work), time.process_time() - used))
    wall, cores = ([min(taken[index] for taken in times[work]) for work in (alone, scan)] for index in (0, 1))
    size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
    ratio = cores[0] / cores[1]
    measured = f"{ratio:.2f} of pyarrow's processor time ({wall[0] / wall[1]:.2f} of its wall clock), {size:.0f} MiB"
    yield Row("byte verifier, Parquet, 100 patterns", measured, ">= 0.70", ratio >= 0.7)


def batch(bench: Bench, rows: int, variants: Collection[Variant]) -> Iterator[Row]:
    """A thousand people at once against one, in the same files; and against deleting them one by one."""
    step = FILES * rows // PEOPLE
    people = [FIRST + number * step + 1 for number in range(PEOPLE - 1)]
    for number, variant in enumerate(v for v in (Variant.DELTA, Variant.ICEBERG_COW) if v in variants):
        bench.table(variant, f"warm{number}", FILES, rows).erase([EVERYWHERE])
        one = bench.table(variant, f"one{number}", FILES, rows).erase([EVERYWHERE])
        many = bench.table(variant, f"many{number}", FILES, rows).erase([EVERYWHERE, *people])
        ratio = many.total / one.total
        yield Row(f"{variant}: {PEOPLE} people / one", f"{ratio:.2f} ({many.total:.1f} s)", "<= 1.30", ratio <= 1.3)
        table = bench.table(variant, f"each{number}", FILES, rows)
        each = sum(table.delete_rows([person]) for person in people[:: len(people) // SEPARATE][:SEPARATE]) / SEPARATE
        times = each * PEOPLE / next(iter(many.seconds.values()))
        told = f"{times:.0f} x, from {SEPARATE} of {each:.2f} s"
        yield Row(f"{variant}: {PEOPLE} DELETEs / the batch's", told, ">= 50", times >= 50)


def rewritten(bench: Bench, rows: int, variants: Collection[Variant]) -> Iterator[Row]:
    """Bytes written against the bytes of the files that held the people: two of eight."""
    people = [FIRST + 11, FIRST + 3 * rows + 5, FIRST + 3 * rows + 6]
    for number, variant in enumerate(variants):
        cost = bench.table(variant, f"bytes{number}", FILES, rows).erase(people)
        ratio = cost.written / cost.held
        told = f"{ratio:.3f}, {cost.touched} of {cost.files} files"
        yield Row(f"{variant}: bytes written / held", told, "<= 1.10", ratio <= 1.1 and cost.touched == 2)


def growth(bench: Bench, rows: int, variants: Collection[Variant]) -> Iterator[Row]:
    """One person in one file of a table, and of one ten times as large."""
    for number, variant in enumerate(v for v in variants if v is not Variant.DELTA_VECTORS):
        costs = [
            bench.table(variant, f"grow{number}_{files}", files, rows).erase([FIRST + rows + 11])
            for files in (FILES // 2, FILES // 2 * 10)
        ]
        same = costs[0].touched == costs[1].touched and costs[1].written <= 1.1 * costs[0].written
        told = f"{costs[1].touched} file, {costs[1].written / costs[0].written:.2f} x bytes"
        told += f", {costs[1].total / costs[0].total:.2f} x time"
        yield Row(f"{variant}: table ten times as large", told, "same bytes", same)


def main() -> int:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["verify", "batch", "bytes", "growth"])
    parser.add_argument("--format", choices=["delta", "iceberg", "parquet"], help="only tables of this one")
    parser.add_argument(
        "--rows", type=int, default=25_000, help="in each file of the tables; twenty times as many for `verify`"
    )
    given = parser.parse_args()
    print(f"{'':48} {'measured':62} target", flush=True)
    met = True
    with tempfile.TemporaryDirectory() as name:
        for row in _rows(given.only, given.format, Path(name), given.rows):
            met &= row.met
            print(f"{row.what:48} {row.measured:62} {row.target:10} {'met' if row.met else 'MISSED'}", flush=True)
    return 0 if met else 1


def _rows(only: str | None, wanted: str | None, base: Path, rows: int) -> Iterator[Row]:
    if only in (None, "verify"):
        yield from verify(base / "verify", 20 * rows)
    if only == "verify":
        return
    from executors.engine.spark_session import open_session

    variants = [variant for variant in Variant if variant.startswith(wanted or "")]
    bench = Bench(open_session(estate(), base), estate(), base)
    try:
        for name, part in (("bytes", rewritten), ("growth", growth), ("batch", batch)):
            if only in (None, name):
                yield from part(bench, rows, variants)
    finally:
        bench.spark.stop()


if __name__ == "__main__":
    sys.exit(main())
