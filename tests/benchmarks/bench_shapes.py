"""A second, different person on a lake that did not change: processor time against the first person's.

A lake of Parquet (Snappy, as Spark writes it): wide tables with ids, names, addresses, amounts, times and free text. One
person is searched for with an empty ledger, then another one, whose values no search has seen. The peers, in the same run:
both without a ledger. Then the sample estate, and 10^6 drawn pairs of a cell and a person: what the shape of the cell's
column admits, against what the search finds in it. Run: `make bench-shapes`.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Collection, Sequence
from datetime import datetime, timezone
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.decode.arrow import search_leaf
from pii_tracer.scan.folder_scan import FileLook, scan_tree, walk_files
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import Reading, TreeScan
from pii_tracer.scan.incremental_search import KeptShapes, LedgerSearchers
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.search_workers import THREADS
from pii_tracer.scan.shapes.chunk_skipping import Shape
from pii_tracer.scan.shapes.chunk_value_tables import Place, TextShape, column_shape
from pii_tracer.scan.value_forms import Patterns
from sample_lineage.build import main as build_estate
from sample_lineage.people import PERSON, SECOND_PERSON, populate
from tests.scan import drawn_cells

PAIRS = 1_000_000
AT_ONCE = 8
"""So many persons a cell is compared with."""
FILES = 10
"""Of each table."""
ROWS = 200_000
"""Of a file."""
FIRST = 7_000_000_000
SYLLABLES = (
    "an",
    "bi",
    "cha",
    "dev",
    "es",
    "far",
    "gu",
    "ha",
    "is",
    "jo",
    "ka",
    "lu",
    "mi",
    "na",
    "om",
    "pri",
    "ra",
    "sa",
)
WORDS = (
    "parcel",
    "late",
    "refund",
    "asked",
    "for",
    "the",
    "door",
    "was",
    "open",
    "call",
    "again",
    "on",
    "monday",
    "invoice",
)
STATUS = ("open", "paid", "sent", "returned", "lost")


def names(draw: np.random.Generator, count: int) -> pa.Array:
    """Invented names of two to three syllables each."""
    parts = np.array(SYLLABLES)
    picked = parts[draw.integers(0, len(parts), (count, 5))]
    return pa.array([f"{a}{b}.{c}{d}{e}" for a, b, c, d, e in picked.tolist()])


def notes(draw: np.random.Generator, count: int) -> pa.Array:
    """Free text, some of it with an order's number."""
    words = np.array(WORDS)[draw.integers(0, len(WORDS), (count, 9))]
    numbers = draw.integers(0, 10**7, count)
    return pa.array([f"{' '.join(line)} ord-{n:07d}" for line, n in zip(words.tolist(), numbers.tolist(), strict=True)])


def customers(draw: np.random.Generator, first: int, rows: int, people: int) -> pa.Table:
    """Each person once."""
    called = names(draw, rows)
    ids = np.arange(first, first + rows)
    return pa.table(
        {
            "user_id": ids,
            "name": called,
            "email": pa.array(
                [f"{n}{i % 9973}@mail.example" for n, i in zip(called.to_pylist(), ids.tolist(), strict=True)]
            ),
            "phone": pa.array([f"+91 98{n:08d}" for n in draw.integers(0, 10**8, rows).tolist()]),
            "city": pa.array(np.array(WORDS)[draw.integers(0, len(WORDS), rows)]),
            "since": pa.array(draw.integers(18_000, 20_000, rows), pa.int32()).cast(pa.date32()),
            "seen_at": pa.array(draw.integers(1.6e15, 1.7e15, rows), pa.timestamp("us")),
            "note": notes(draw, rows),
        }
    )


def orders(draw: np.random.Generator, first: int, rows: int, people: int) -> pa.Table:
    """People of all files, and a dozen measures."""
    count = draw.integers(FIRST, FIRST + people, rows)
    return pa.table(
        {
            "order_id": np.arange(10 * first, 10 * first + rows),
            "user_id": count,
            "amount": draw.integers(100, 10**6, rows) / 100,
            "paid_at": pa.array(draw.integers(1.6e15, 1.7e15, rows), pa.timestamp("us")),
            "status": pa.array(np.array(STATUS)[draw.integers(0, len(STATUS), rows)]),
            "note": notes(draw, rows),
            **{f"measure_{n}": draw.normal(size=rows) for n in range(12)},
        }
    )


def events(draw: np.random.Generator, first: int, rows: int, people: int) -> pa.Table:
    """Clicks: digests, addresses of pages, and JSON."""
    numbers = draw.integers(0, 2**62, rows).tolist()
    return pa.table(
        {
            "event_id": pa.array([f"{n:016x}" for n in numbers]),
            "user_id": draw.integers(FIRST, FIRST + people, rows),
            "at": pa.array(draw.integers(1.6e15, 1.7e15, rows), pa.timestamp("us")),
            "page": pa.array([f"https://shop.example/item/{n % 50_000}?from=list" for n in numbers]),
            "payload": pa.array([f'{{"item": {n % 50_000}, "seconds": {n % 97}, "device": "phone"}}' for n in numbers]),
        }
    )


def make_lake(root: Path, files: int = FILES, rows: int = ROWS) -> list[list[str]]:
    """Write it; returns the values of two persons of it: number, address, phone. files: of each table; rows: of a file."""
    people = []
    for number in range(files):
        draw = np.random.default_rng(number)
        for name, make in (("customers", customers), ("orders", orders), ("events", events)):
            table = make(draw, FIRST + number * rows, rows, files * rows)
            (root / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(table, root / name / f"part-{number:05d}.snappy.parquet", compression="snappy")
            if name == "customers" and number < 2:
                row = table.slice(4_711, 1).to_pylist()[0]
                people.append([str(row["user_id"]), row["email"], row["phone"]])
    return people


def patterns_of(person: list[str]) -> Patterns:
    """All that is searched of a person."""
    return Patterns(
        KeySet(name=name, origin=f"customers.{name}", weak=name == "user_id", values=(("someone", value),))
        for name, value in zip(("user_id", "email", "phone"), person, strict=True)
        if value
    )


def search(root: Path, person: list[str], ledger: ScanLedger | None) -> tuple[float, list[TreeScan], Reading]:
    """Processor seconds, what was found in each folder, and what was read."""
    searchers, patterns = LedgerSearchers(ledger, THREADS), patterns_of(person)
    began = resource.getrusage(resource.RUSAGE_SELF)
    found = [scan_tree(folder, patterns, searchers=searchers) for folder in sorted(root.iterdir())]
    ended = resource.getrusage(resource.RUSAGE_SELF)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime, found, searchers.reading


def shape_of(column: pa.Array) -> Shape | None:
    """The shape of a column, as it is made while it is decoded."""
    if not pa.types.is_string(column.type):
        noted = column_shape(column.type, 1 << 10)
        if noted is None:
            return None
        noted.add(column)
        return noted.shape()
    text = TextShape(1 << 10)
    for cell in column.to_pylist():
        text.add(cell.encode("utf-8", "surrogatepass"))
    return text.shape()


def seen_in(column: pa.Array, patterns: Patterns) -> frozenset[str]:
    """The key sets of which the search finds a value in a column."""
    collector = Collector(patterns)
    search_leaf(column, collector, "data", "column")
    return collector.seen


def draw_pairs(count: int, seed: int = 7) -> tuple[int, int]:
    """How many pairs of a cell and a person were compared, and in how many the search found the person in the cell.

    Cells are drawn of the values of one of a few persons; one search tells of each of them.

    Raises:
        AssertionError: a shape leaves out a person whom the search finds.
    """
    draw, pairs, found = Random(seed), 0, 0
    while pairs < count:
        people = [drawn_cells.person(draw) for _ in range(AT_ONCE)]
        together, alone = drawn_cells.patterns_of(*people), [drawn_cells.patterns_of(person) for person in people]
        for _ in range(400):
            value = draw.choice(people)[0]
            is_number = draw.random() < 0.2
            column = drawn_cells.number(draw, value) if is_number else pa.array([drawn_cells.text(draw, value)])
            seen = seen_in(column, together)
            shape = shape_of(column)
            for name in seen:
                patterns = alone[int(name.removeprefix("key"))]
                # beside a tiny number every cell is looked at, which shows more of the others than is found of them alone
                if shape is not None and not patterns.sought.fits(shape) and seen_in(column, patterns):
                    raise AssertionError(f"a value is left out and found, near pair {pairs} of seed {seed}")
            pairs, found = pairs + len(people), found + len(seen)
    return pairs, found


def column_bytes(file: Path, places: Collection[Place] | None = None) -> int:
    """Bytes of column chunks in a file, of some or of all."""
    meta = pq.ParquetFile(file).metadata
    every = [(group, index) for group in range(meta.num_row_groups) for index in range(meta.num_columns)]
    wanted = every if places is None else places
    return sum(meta.row_group(group).column(index).total_compressed_size for group, index in wanted)


def left_out(root: Path, ledger: ScanLedger, persons: Sequence[Patterns]) -> str:
    """How much of the column chunks below a folder the last person's search leaves out, after those of the others."""
    for patterns in persons:
        kept = KeptShapes(ledger)
        whole = left = chunks = 0
        for name, file in walk_files(root):
            scan = FileLook(root, keeper=kept)((name, file), patterns)
            if scan.decoded_as == "parquet":
                places = kept.left.get(scan.sha256, frozenset())
                whole, left, chunks = (
                    whole + column_bytes(file),
                    left + column_bytes(file, places),
                    chunks + len(places),
                )
    return (
        f"{chunks} of {chunks + kept.reading.chunks} column chunks left out for the second customer, {left / whole:.0%} of"
        f" their {whole / 2**20:.0f} MiB"
    )


def estate_share(estate: Path, ledger: ScanLedger) -> str:
    """`left_out` of the sample estate, for its second customer."""
    users = {user.user_id: user for user in populate(datetime.now(timezone.utc)).users}
    people = [users[customer] for customer in (PERSON, SECOND_PERSON)]
    return left_out(estate, ledger, [patterns_of([str(user.user_id), user.pan, user.phone]) for user in people])


def tpcds_share(root: Path, ledger: ScanLedger, *, numbers: bool) -> str:
    """`left_out` of TPC-DS in Parquet. numbers: whether customers are searched by the numbers that the facts have, too."""
    file = root / "customer.parquet"
    rows = (
        pq.read_table(file, columns=["c_customer_sk", "c_customer_id", "c_email_address"]).slice(4_711, 2).to_pylist()
    )
    values = [list(map(str, row.values())) for row in rows]
    return left_out(root, ledger, [patterns_of(one) if numbers else patterns_of(["", *one[1:]]) for one in values])


def main() -> None:
    """Print the lines that docs/benchmarks.md shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tpcds", type=Path, help="only TPC-DS in Parquet, in this folder (`tpcgen-cli tpcds parquet`)"
    )
    folder = parser.parse_args().tpcds
    if folder is not None:
        with tempfile.TemporaryDirectory() as base:
            for numbers in (True, False):
                file = Path(base) / f"ledger-{numbers}.sqlite"
                ledger = ScanLedger(file, b"k" * 32, lambda: datetime.now(timezone.utc), print, with_shapes=True)
                print(
                    f"TPC-DS, numbers of customers {numbers}: {tpcds_share(folder, ledger, numbers=numbers)}",
                    flush=True,
                )
        return
    with tempfile.TemporaryDirectory() as base:
        built = Path(base) / "estate"
        build_estate([str(built)])
        ledger = ScanLedger(
            Path(base) / "ledger.sqlite", b"k" * 32, lambda: datetime.now(timezone.utc), print, with_shapes=True
        )
        print(f"sample estate: {estate_share(built, ledger)}")
    began = time.perf_counter()
    pairs, with_person = draw_pairs(PAIRS)
    print(
        f"{pairs:,} drawn pairs of a cell and a person: the search finds the person in {with_person:,}, none of which its"
        f" shape leaves out; {time.perf_counter() - began:.0f} s"
    )
    with tempfile.TemporaryDirectory() as base:
        root = Path(base) / "lake"
        people = make_lake(root)
        size = sum(file.stat().st_size for file in root.rglob("*.parquet")) / 2**20
        kept = Path(base) / "ledger.sqlite"
        ledger = ScanLedger(kept, b"k" * 32, lambda: datetime.now(timezone.utc), print, with_shapes=True)
        first_bare, _, _ = search(root, people[0], None)
        second_bare, bare, _ = search(root, people[1], None)
        first, _, _ = search(root, people[0], ledger)
        second, found, reading = search(root, people[1], ledger)
        if found != bare:
            raise AssertionError("shapes change what is found")
        print(
            f"{size:.0f} MiB in {3 * FILES} files, {reading.chunks + reading.left} column chunks;"
            f" shapes: {kept.stat().st_size / 2**20:.1f} MiB"
        )
        print(f"without a ledger: first person {first_bare:.2f} s, second {second_bare:.2f} s of processor time")
        print(f"with one: first person {first:.2f} s, second {second:.2f} s: {second / first:.2f} of the first,")
        print(
            f"{second / second_bare:.2f} of the second without; {reading.left} column chunks were left out by their shape"
        )


if __name__ == "__main__":
    main()
