"""What a metastore says of the transactions of a table, and that rows are read only where it is clear which count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pii_tracer.lake.catalogs.hive.client import Metastore
from pii_tracer.lake.catalogs.hive.tables import _Walk
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.hive_acid.metastore_notes import IN_PROPERTIES, AcidNotes, Settled, settled
from pii_tracer.lake.formats.hive_acid.rows import data_files
from pii_tracer.lake.formats.hive_acid.vocabulary import HIVE_ACID
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.model.errors import EstateError
from tests.memoryhdfs import MemoryHdfs


class Answers:
    """A metastore with two aborted transactions and an open one."""

    def ask(self, method: str, *given: Any) -> Any:
        if method == "get_open_txns":
            return SimpleNamespace(open_txns=[7, 3, 5], abortedBits=bytes([0b011]), txn_high_water_mark=9)
        assert method == "get_valid_write_ids"
        assert given[0].validTxnList == "9:7:7:3,5"
        table = SimpleNamespace(invalidWriteIds=[4, 2], writeIdHighWaterMark=6)
        return SimpleNamespace(tblValidWriteIds=[table])


def test_what_is_open_or_was_aborted_or_came_later_does_not_count() -> None:
    found = settled(cast(Metastore, Answers()), "core", "t")
    assert found == Settled(write_ids_upto=6, write_ids=(2, 4), transactions_upto=9, transactions=(3, 5, 7))
    assert [number for number in range(1, 8) if found.counts(number, number)] == [1, 3, 5, 6]
    assert not found.counts(5, 7)
    assert [number for number in range(1, 12) if found.is_over(number)] == [1, 2, 4, 6, 8, 9]


def test_rows_are_not_read_where_a_base_lies_that_hive_does_not_read() -> None:
    hdfs = MemoryHdfs(files={"/t/base_5/bucket_00000": b"1", "/t/base_9/bucket_00000": b"1"})
    notes = AcidNotes(
        catalog="hms",
        database="core",
        table="t",
        location="hdfs://nn/t",
        columns=(),
        partition_columns=(),
        settled=Settled(write_ids_upto=8, transactions_upto=99),
    )
    place = HdfsPath(hdfs, "/t")
    state = TableState(
        dataset=place.location.dataset,
        location=str(place),
        format=HIVE_ACID,
        snapshot="",
        table="core.t",
        columns=(),
        properties={IN_PROPERTIES: notes.model_dump_json()},
    )
    paths = cast(EstatePaths, SimpleNamespace(place=lambda _: place))
    with pytest.raises(EstateError, match="is open, or was aborted"):
        data_files(state, paths)
    del hdfs.files["/t/base_9/bucket_00000"]
    assert [str(file) for file in data_files(state, paths)] == ["hdfs://nn/t/base_5/bucket_00000"]


class OneSilent:
    """A metastore that says nothing of the transactions of one of two tables."""

    silent = False

    def ask(self, method: str, *given: Any) -> Any:
        if method == "get_all_tables":
            return ["flat", "loud"]
        if method == "get_table_objects_by_name":
            return [self.table(name) for name in given[1]]
        if method == "get_valid_write_ids":
            if given[0].fullTableNames == ["core.flat"]:
                raise KeyError("flat")
            return Answers().ask(method, *given)
        return Answers().ask(method, *given) if method == "get_open_txns" else "false"

    def table(self, name: str) -> Any:
        storage = SimpleNamespace(
            inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
            location=f"hdfs://nn/{name}",
            storedAsSubDirectories=False,
            cols=[],
            serdeInfo=None,
        )
        return SimpleNamespace(
            dbName="core",
            tableName=name,
            parameters={"transactional": "true"},
            tableType="MANAGED_TABLE",
            partitionKeys=[],
            sd=storage,
        )


def test_a_table_that_the_metastore_does_not_describe_is_the_only_gap() -> None:
    walk = _Walk("hms", cast(Metastore, OneSilent()), erases=True)
    walk.database("core")
    listing = walk.listing()
    assert [entry.location for entry in listing.entries] == ["hdfs://nn/loud"]
    reasons = [gap.reason for gap in listing.gaps]
    assert "does not describe the transactional table (KeyError)" in " ".join(reasons)
    assert "the database cannot be listed" not in " ".join(reasons)
