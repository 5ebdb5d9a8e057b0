"""Parsing of large query logs on Spark's executors. The results are those of `queries.parse_here`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from pii_tracer.lineage.outcome import StatementLineage
from pii_tracer.lineage.sources.queries import Parser, Query, parse_one
from pii_tracer.lineage.sources.tables import Tables

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_PER_TASK = 200
_ANSWER = msgspec.json.Decoder(list[StatementLineage] | str)


@contextmanager
def _workers_as_here(context: SparkContext) -> Iterator[None]:
    """On this machine workers are this Python with this path; on a cluster they are what its settings say."""
    if not (context.master or "").startswith("local") or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    before = context.pythonExec, context.environment.get("PYTHONPATH")
    context.pythonExec, context.environment["PYTHONPATH"] = sys.executable, os.pathsep.join(filter(None, sys.path))
    try:
        yield
    finally:
        context.pythonExec = before[0]
        context.environment.pop("PYTHONPATH")
        if before[1] is not None:
            context.environment["PYTHONPATH"] = before[1]


def parser_on(spark: SparkSession) -> Parser:
    """A parser that shares the texts out over a session. Executors need this package installed."""

    def parse(queries: Sequence[Query], tables: Tables) -> Iterator[list[StatementLineage] | str]:
        if not queries:
            return
        context = spark.sparkContext
        known = context.broadcast(tables)
        texts = [(q.text, q.dialect, q.database) for q in queries]

        def work(part: Iterable[tuple[str, str, str]]) -> Iterator[bytes]:
            for text in part:
                query = Query(*text)
                yield msgspec.json.encode(parse_one(query, known.value.of(query.text)))

        slices = max(1, -(-len(texts) // _PER_TASK))
        try:
            with _workers_as_here(context):
                answers = context.parallelize(texts, slices).mapPartitions(work).toLocalIterator()
                yield from (_ANSWER.decode(answer) for answer in answers)
        finally:
            known.destroy()

    return parse
