"""Shapes of a large query log parsed on Spark's executors. The results are those of `parse_here`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from pii_tracer.lake.rows.spark_frames import frame_of_rows, map_in_arrow
from pii_tracer.lineage.sources.query_log.shape_parsing import Parser, Query, Reading, parse_one
from pii_tracer.lineage.sources.table_candidates import Tables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_PER_TASK = 200
_ANSWER = msgspec.json.Decoder(Reading)


@contextmanager
def _workers_as_here(spark: SparkSession) -> Iterator[None]:
    """On this machine workers are this Python with this path; elsewhere they are what the cluster's settings say."""
    from pyspark.sql import SparkSession as Classic

    if not isinstance(spark, Classic) or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    context = spark.sparkContext
    if not (context.master or "").startswith("local"):
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

    def parse(queries: Sequence[Query], tables: Tables) -> Iterator[Reading]:
        if not queries:
            return
        from pyspark.sql.types import BinaryType, LongType, StructField, StructType

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow as arrow

            for batch in batches:
                texts = [Query(*text) for text in zip(*(batch.column(n).to_pylist() for n in (1, 2, 3)), strict=True)]
                answers = [msgspec.json.encode(parse_one(query, tables.of(query.text))) for query in texts]
                yield arrow.RecordBatch.from_arrays([batch.column(0), arrow.array(answers)], names=["n", "answer"])

        texts = [(n, q.text, q.dialect, q.database) for n, q in enumerate(queries)]
        slices = max(1, -(-len(texts) // _PER_TASK))
        kind = StructType([StructField("n", LongType()), StructField("answer", BinaryType())])
        with _workers_as_here(spark):
            frame = frame_of_rows(spark, texts, "n bigint, text string, dialect string, database string")
            # in order before the work: sorted afterwards, Spark would parse every text twice, once to draw samples
            shared = frame.repartitionByRange(slices, "n").sortWithinPartitions("n")
            answers = map_in_arrow(shared, work, kind).toLocalIterator()
            yield from (_ANSWER.decode(bytes(answer["answer"])) for answer in answers)

    return parse
