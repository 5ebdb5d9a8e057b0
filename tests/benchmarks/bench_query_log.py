"""How fast a query log is harvested, and in how much memory: `python -m tests.benchmarks.bench_query_log [ROWS] [PROCESSES]`.

Makes its log itself, the same each time: one shape for ten rows (or `--shapes PERCENT`), every row with literals of its
own. Of the shapes 60 % are queries, 20 % change rows (INSERT … VALUES, UPDATE, DELETE), 20 % bring columns from one table to
another (INSERT … SELECT, MERGE). Three in a hundred of these write a literal into an expression, so that its rows are
told apart. `--plain` parses each text for itself, for comparison.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pii_tracer.config.lineage import LineageSources, QueryLog
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.lineage.sources.query_log import query_log_parsing
from pii_tracer.lineage.sources.query_log.parse_workers import parser_in
from pii_tracer.lineage.sources.query_log.statement_shapes import Shaped
from pii_tracer.model.datasets import Column, DatasetId

TABLES = 2_000
COLUMNS = 20


def statement(shape: int, n: int) -> str:
    """The statement of a shape with literals of a row."""
    source, other, target = (f"wh.t{(shape * k) % TABLES:04}" for k in (1, 7, 13))
    a, b, c = (f"c{(shape // TABLES * k + k) % COLUMNS}" for k in (1, 2, 3))
    alias = f"x{shape}"  # of one shape only
    kind = shape % 10
    if kind < 6:
        return (
            f"SELECT {alias}.{a}, count(*) AS n, max(o.{b}) AS m FROM {source} {alias} JOIN {other} o ON {alias}.c0 = o.c0"
            f" WHERE {alias}.{c} = 'customer {n}' AND o.c4 BETWEEN {n} AND {n + 9} AND o.c5 IN ({', '.join(map(str, range(n % 4 + 1)))})"
            f" GROUP BY {alias}.{a} ORDER BY n DESC LIMIT {n % 100 + 1}"
        )
    if kind == 6:
        rows = ", ".join(f"({n + k}, 'name {n}', 'mail{n}@shop.example')" for k in range(n % 3 + 1))
        return f"INSERT INTO {target} (c0, {a}, c1{shape}) VALUES {rows}"
    if kind == 7:
        verb = f"UPDATE {target} SET {a} = 'v{n}', {b} = {n}" if shape % 20 < 10 else f"DELETE FROM {target}"
        return f"{verb} WHERE c0 = {n} AND c1 <> 'x{shape}' OR {c} LIKE 'p{n}%' /* {shape} */ AND 1 = {n}"
    if kind == 8:
        salt = f"concat('{n % 7}-', {alias}.{b})" if shape % 300 == 8 else f"upper({alias}.{b})"
        return (
            f"INSERT INTO {target} SELECT {alias}.c0, {salt}, o.* FROM {source} {alias} JOIN (SELECT c1, c2, c3 FROM {other}"
            f" WHERE {a} >= '2026-01-{n % 28 + 1:02}' AND {c} <> 'no {n}') o ON o.c1 = {alias}.c1"
        )
    return (
        f"MERGE INTO {target} t USING (SELECT c0, upper({a}) AS u, {b} AS v{shape} FROM {source} WHERE {c} > {n}) {alias}"
        f" ON t.c0 = {alias}.c0 WHEN MATCHED AND t.c1 <> 'k{n}' THEN UPDATE SET c1 = {alias}.u, c2 = {alias}.v{shape}"
        f" WHEN NOT MATCHED THEN INSERT (c0, c1, c2) VALUES ({alias}.c0, {alias}.u, 'new {n}')"
    )


def rows(count: int, shapes: int) -> Iterator[dict[str, object]]:
    """Rows of the log: shapes take turns."""
    for n in range(count):
        yield {"sql": statement(n % shapes, n), "at": 1_780_000_000 + n, "state": "OK" if n % 50 else "FAILED"}


def main() -> None:
    """Write the log, harvest it, print the numbers."""
    ask = argparse.ArgumentParser()
    ask.add_argument("rows", type=int, nargs="?", default=1_000_000)
    ask.add_argument("processes", type=int, nargs="?", default=2)
    ask.add_argument("--shapes", type=float, default=10, help="shapes in a hundred rows")
    ask.add_argument("--plain", action="store_true", help="each text for itself")
    given = ask.parse_args()
    shapes = max(1, int(given.rows * given.shapes / 100))
    if given.plain:
        query_log_parsing.shape_of = lambda text: Shaped(text, ())
    names = [f"wh.t{n:04}" for n in range(TABLES)]
    columns = [Column(name=f"c{n}", type="string") for n in range(COLUMNS)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.jsonl"
        with file.open("w", encoding="utf-8") as stream:
            for row in rows(given.rows, shapes):
                stream.write(json.dumps(row) + "\n")
        size = file.stat().st_size
        log = QueryLog(path=file.name, time="at", status="state")
        begun = time.perf_counter()
        found = harvest_all(
            LineageSources(queries=(log,)),
            Given(
                Path(folder),
                aliases={name: DatasetId(namespace="file", name=f"/{name}") for name in names},
                schemas=dict.fromkeys(names, columns),
                parser=parser_in(given.processes),
                progress=lambda text: print(f"{time.perf_counter() - begun:7.1f} s {text}", flush=True),
            ),
        )
        took = time.perf_counter() - begun
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(one.ru_utime + one.ru_stime for one in (own, others))
    print(f"{given.rows} statements ({size / 1e6:.0f} MB), {shapes} shapes, {given.processes} processes")
    print(
        f"{took:.1f} s: {given.rows / took:.0f} statements/s; {cpu:.0f} s of processors ({given.rows / cpu:.0f} statements each)"
    )
    print(f"peak RSS {own.ru_maxrss / 1024:.0f} MiB, of a process that parses {others.ru_maxrss / 1024:.0f} MiB")
    print(f"{len(found.graph.facts.edges)} edges, {found.summary.gaps} gaps, digest {found.graph.digest()[:12]}")


if __name__ == "__main__":
    main()
