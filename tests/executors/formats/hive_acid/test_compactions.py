"""What the run does with Hive's answers: compactions that fail, tables that moved, and statements without an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest

from executors.context import ExecutionContext
from executors.formats.hive_acid import executor as executors
from executors.formats.hive_acid.compactions import Compaction
from executors.formats.hive_acid.executor import HiveAcidExecutor
from executors.formats.hive_acid.hive_session import HiveSession
from pii_tracer.config.catalogs import HiveServer2
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import NameNode
from pii_tracer.lake.formats.hive_acid.metastore_notes import AcidNotes, Settled
from pii_tracer.lake.formats.hive_acid.vocabulary import HIVE_ACID_COMPACT
from pii_tracer.model.datasets import Column
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import HdfsLocation
from pii_tracer.model.plan import Step
from tests.memoryhdfs import MemoryHdfs

NAME_NODE = NameNode(namenode="hdfs://nn", webhdfs="http://nn:9870", user="lake", also=("hdfs://old:8020",))
SERVER = HiveServer2(host="h", user="u", scratch="hdfs://nn/keys")
NOTES = AcidNotes(
    catalog="hms",
    database="core",
    table="t",
    location="hdfs://nn:8020/t",
    columns=(),
    partition_columns=(),
    settled=Settled(write_ids_upto=9, transactions_upto=9),
)


@dataclass
class Metastore:
    """One whose newest compactions have a state."""

    state: str
    now: AcidNotes = NOTES
    asked: list[str] = field(default_factory=list)

    def notes(self) -> AcidNotes:
        return self.now

    def newest(self) -> Mapping[str, Compaction]:
        return {"": Compaction(9, self.state), "day=1": Compaction(9, self.state)}

    def start(self, partition: str) -> None:
        self.asked.append(partition)

    def close(self) -> None:
        pass


Run = Callable[[Metastore, "list[str]"], Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a compaction of a table with these files in /t, which looks once."""
    monkeypatch.setattr(HiveAcidExecutor, "poll_seconds", 0)
    monkeypatch.setattr(HiveAcidExecutor, "patience", timedelta(0))

    def running(metastore: Metastore, files: list[str]) -> Any:
        hdfs = MemoryHdfs(files={f"/t/{path}": b"1" for path in files})

        def client(estate: Estate, place: HdfsLocation) -> MemoryHdfs:
            return hdfs

        monkeypatch.setattr(executors, "client_at", client)
        monkeypatch.setattr(executors, "Compactions", lambda *_: metastore)
        now = datetime(2026, 1, 1, tzinfo=timezone.utc)
        estate = SimpleNamespace(catalogs={"hms": SimpleNamespace(hiveserver2=SERVER)}, hdfs=(NAME_NODE,))
        ctx = SimpleNamespace(estate=estate, now=lambda: now, note=lambda *_: None, told=lambda _: [])
        where = {"location": "hdfs://nn/t", "catalog": "hms", "database": "core", "hive_table": "t"}
        step = SimpleNamespace(id="c/02", action=HIVE_ACID_COMPACT, parameters=where, depends_on=())
        return HiveAcidExecutor(cast(ExecutionContext, ctx)).run(cast(Step, step), None)

    return running


FILES = ["base_1/bucket_00000", "delete_delta_2_2_0/bucket_00000"]


@pytest.mark.parametrize("state", ["failed", "did not initiate", "refused", "aborted"])
def test_a_compaction_that_hive_refuses_ends_the_wait(run: Run, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    metastore = Metastore(state)
    assert state in run(metastore, FILES).waits_for, "it looked once"
    metastore.asked.clear()
    monkeypatch.setattr(HiveAcidExecutor, "patience", timedelta(days=1))
    with pytest.raises(RunError, match=f"has the state `{state}`"):
        run(metastore, FILES)
    assert metastore.asked == [""]


def test_a_folder_that_is_no_partition_is_never_compacted(run: Run) -> None:
    day = Column(name="day", type="string")
    notes = NOTES.model_copy(update={"partition_columns": (day,), "partitions": ("day=1",)})
    metastore = Metastore("succeeded", notes)
    run(metastore, ["day=1/delta_2_2_0/bucket_00000", "_tmp_1/delta_3_3_0/bucket_00000"])
    assert metastore.asked == ["day=1"]


def test_an_older_name_of_the_same_hdfs_is_the_same_folder(run: Run) -> None:
    metastore = Metastore("succeeded", NOTES.model_copy(update={"location": "hdfs://old/t"}))
    run(metastore, FILES)
    assert metastore.asked == [""]


@pytest.mark.parametrize("place", ["hdfs://nn/other/t", "hdfs://other/t", "file:/t"])
def test_a_table_of_the_name_in_another_folder_is_left_alone(run: Run, place: str) -> None:
    metastore = Metastore("succeeded", NOTES.model_copy(update={"location": place}))
    with pytest.raises(RunError, match="the folder of the table changed"):
        run(metastore, FILES)
    assert metastore.asked == []


@pytest.mark.parametrize("answer", [OSError("zq.person@example.net"), None])
def test_a_number_that_does_not_come_is_an_error_without_what_hive_says(
    monkeypatch: pytest.MonkeyPatch, answer: Exception | None
) -> None:
    def fetchone() -> None:
        if answer:
            raise answer

    session = HiveSession("hms", SERVER)
    monkeypatch.setattr(session, "_cursor", SimpleNamespace(execute=lambda _: None, fetchone=fetchone))
    with pytest.raises(RunError, match="Hive did not run a statement") as refused:
        session.number("SELECT count(*)")
    assert "zq" not in str(refused.value)
