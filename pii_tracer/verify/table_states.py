"""The states of a copy that Spark can read: the current one, every snapshot or version, every branch and tag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pii_tracer.lake.formats.registry import format_of
from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import Copy
from pii_tracer.verify.formats.base import State
from pii_tracer.verify.formats.registry import formats_in_s3, reader_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def states(spark: SparkSession, copy: Copy) -> Iterator[State]:
    """Every state of a copy, the current one first. A copy that stands for one branch or tag has only that state.

    Raises:
        ScanError: no installed package reads the format, or the copy cannot be read as it is told: without a name that
            the format needs, or a bare folder in S3.
    """
    reader = reader_of(copy.format)
    if copy.s3_table and not reader.reads_s3:
        titles = [format_of(name).title for name in formats_in_s3()]
        raise ScanError(
            f"rows of {copy.format} tables in S3 are not read",
            where=copy.table or copy.location,
            todo=f"plan again: only tables of {', '.join(titles)} are erased there as tables",
        )
    yield from reader.states(spark, copy)
