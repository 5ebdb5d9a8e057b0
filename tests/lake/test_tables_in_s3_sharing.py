"""Which tables in S3 have files in common: by what each reads outside of its folder."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.erasable_s3_tables import _Sharing
from pii_tracer.lake.stores.s3.table_look_types import Looked
from pii_tracer.model.datasets import Format
from pii_tracer.model.locations import s3_location


def looked(place: str, *reads: str, **more: Any) -> Looked:
    table = RemoteTable(place, None, Format.PARQUET, s3_location(f"s3://b/{place}"), **more)
    return Looked(table, "x", [s3_location(f"s3://b/{read}") for read in reads])


@pytest.mark.parametrize(
    ("reads", "table", "partition"),
    [("t", True, True), ("t/x", True, True), ("", False, True), ("t2", False, False), ("other", False, False)],
)
def test_who_reads_files_of_a_folder(reads: str, table: bool, partition: bool) -> None:
    """A partition was taken out of a catalog's table by its place: it may be in a folder that others read from."""
    other = looked("o", reads)
    for one, shares in (
        (looked("t"), table),
        (looked("t", partitions_of=(s3_location("s3://b/p").dataset,)), partition),
    ):
        both = [one, other]
        sharing = _Sharing(both, [each.table for each in both])
        assert sharing.of(one) == (["the table o reads its files"] if shares else [])
        assert sharing.of(other) == (["it reads files of the table t"] if table else [])
