"""What streaming queries leave: state that remembers the person (F5), and a log by which their output is read (F6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from executors.formats.plain_files import sink_log
from pii_tracer.app.planning.folder_search import scan_estate
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    DatasetId,
    Format,
    KeySet,
)
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Examined, Gap
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.scan.value_forms import build_patterns
from planners.copies.scan_evidence import Evidence
from planners.streams.streaming_checkpoints import streaming_state
from tests.executors.world import BY_UID, EMAIL, UID, Steps, context, residue
from tests.sparksession import SparkEstate

PERSON = build_patterns(
    [
        KeySet(name="email", origin="email", weak=False, values=(("s", EMAIL),)),
        KeySet(name="uid", origin="uid", weak=True, values=(("s", str(UID)),)),
    ]
)
SCHEMA = "id bigint, uid bigint, email string"


@pytest.fixture
def here(spark_estate: SparkEstate, tmp_path: Path) -> SparkEstate:
    return SparkEstate(spark_estate.estate, tmp_path)


def stream(spark: SparkSession, place: Path) -> Path:
    """A query that drops duplicates, in two batches; its output, with its checkpoint hidden in it."""
    source = place.with_name(place.name + "-landing")
    source.mkdir(parents=True)
    for batch in range(2):
        made = [{"id": n, "uid": 1000 + n, "email": f"b{n}@example.net"} for n in range(batch * 20, batch * 20 + 20)]
        made[7] |= {"uid": UID, "email": EMAIL} if batch else {}
        (source / f"{batch}.json").write_text("\n".join(map(json.dumps, made)))
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source))
    query = (
        read.dropDuplicates(["uid", "email"])
        .writeStream.format("parquet")
        .option("path", str(place))
        .option("checkpointLocation", str(place / "_checkpoints" / "q1"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    for path in source.iterdir():
        path.unlink()
    source.rmdir()
    return place


def read(spark: SparkSession, folder: Path) -> list[Any]:
    return sorted(tuple(row) for row in spark.read.parquet(str(folder)).collect())


@pytest.mark.spark
def test_the_output_of_a_stream_stays_readable_and_its_state_is_a_gap(
    spark: SparkSession, here: SparkEstate, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stream(spark, here.folder("out"))
    before = read(spark, folder)
    others = [row for row in before if row[1] != UID]
    assert len(before) == len(others) + 1
    naive(folder)
    with pytest.raises((Py4JJavaError, AnalysisException)):  # by its old size: no footer where there was one
        read(spark, folder)
    sink_log.renew(folder)  # as it was meant
    assert read(spark, folder) == others

    steps = Steps(context(here), "files", None, stream(spark, here.folder("again")), Format.PARQUET, BY_UID)
    rewrite = Action.FILES_REWRITE, {"format": "parquet"}
    with monkeypatch.context() as dying:  # after the file was swapped, before its log was
        dying.setattr(sink_log, "renew", _die)
        with pytest.raises(KeyboardInterrupt):
            steps.once(rewrite[0], **rewrite[1])
    assert steps.probe(rewrite[0], **rewrite[1]) is Progress.PARTIAL
    assert steps.all(rewrite)[Action.FILES_REWRITE]["sink_logs_rewritten"] == 1
    assert read(spark, steps.location) == others
    assert not [name for name in residue(steps.location) if not name.startswith("_checkpoints")]

    found = discover(here.estate, here.base)
    places = {Path(state.location).relative_to(here.base / "files").as_posix(): state for state in found.tables}
    assert set(places) == {"out", "again", "out/_checkpoints/q1", "again/_checkpoints/q1"}
    checkpoint = places["again/_checkpoints/q1"]
    assert (checkpoint.format, checkpoint.snapshot) == (Format.STREAM_CHECKPOINT, "1")
    assert checkpoint.files > 2
    assert not [gap for gap in found.gaps if gap.kind not in ("missing_root",)]
    seen = scan_estate(found, PERSON, Readings(), lambda _: None)
    assert seen[places["again"].location].strong == frozenset()
    told = streaming_state(checkpoint, seen[checkpoint.location])
    assert isinstance(told, Gap)
    assert (told.kind, told.evidence) == ("streaming_state", "found: email")


def _die(_: Path) -> int:
    raise KeyboardInterrupt


def naive(folder: Path) -> None:
    """The rows are taken out of the files, and that is all."""
    for file in folder.glob("*.parquet"):
        table = pq.read_table(file)
        pq.write_table(table.filter(pc.not_equal(table["uid"], UID)), file, compression="snappy")
        (folder / f".{file.name}.crc").unlink(missing_ok=True)


CHECKPOINT = TableState(
    dataset=DatasetId(namespace="file", name="/q1"),
    table=None,
    location="/q1",
    format=Format.STREAM_CHECKPOINT,
    snapshot="3",
    columns=(),
)


@pytest.mark.parametrize(
    ("seen", "evidence"),
    [
        (Evidence(4, 1, 9, strong=frozenset({"email"})), "found: email"),
        (Evidence(4, 1, 9, weak=frozenset({"streaming state"})), "its rows contain the same digits"),
        (Evidence(4, 0, 9, unread=("state/0/0/1.zip: no",)), "state/0/0/1.zip: no"),
        (None, "not scanned"),
    ],
)
def test_a_state_is_a_gap_unless_it_is_known_to_be_clean(seen: Evidence | None, evidence: str) -> None:
    told = streaming_state(CHECKPOINT, seen)
    assert isinstance(told, Gap)
    assert told.evidence == evidence


def test_a_clean_state_is_examined_and_digits_of_settings_are_nobodys() -> None:
    told = streaming_state(CHECKPOINT, Evidence(4, 0, 9, weak=frozenset({"text"})))
    assert isinstance(told, Examined)
    assert told.carries is Carries.NONE


@pytest.mark.parametrize("content", ["v2\n{}", "v1\n{]", "v1\n{}", 'v1\n{"path": 1, "size": 2}', "v1\n[]"])
def test_a_log_that_cannot_be_read_is_refused_before_anything_is_written(
    here: SparkEstate, tmp_path: Path, content: str
) -> None:
    folder = here.folder("sink")
    (folder / "_spark_metadata").mkdir(parents=True)
    (folder / "_spark_metadata" / "0").write_text(content)
    pq.write_table(pa.table({"uid": [UID]}), folder / "a.parquet")
    before = (folder / "a.parquet").read_bytes()
    steps = Steps(context(here), "files", None, folder, Format.PARQUET, BY_UID)
    with pytest.raises(RunError, match="log of the streaming query"):
        steps.once(Action.FILES_REWRITE, format="parquet")
    assert (folder / "a.parquet").read_bytes() == before


def test_only_what_lies_in_the_folder_is_renewed(tmp_path: Path) -> None:
    folder, log = tmp_path / "a b", tmp_path / "a b" / "_spark_metadata"
    log.mkdir(parents=True)
    (folder / "x%y.parquet").write_bytes(b"12345")
    (tmp_path / "other").write_bytes(b"12345")
    inside, gone = (folder / "x%y.parquet").as_uri(), (folder / "gone").as_uri()
    entries = [
        {"path": p, "size": 1, "action": "add"} for p in (inside, gone, (tmp_path / "other").as_uri(), "s3a://b/x")
    ]
    for name in ("0", "9.compact", ".0.crc", "notes"):
        (log / name).write_text("\n".join(["v1", *map(json.dumps, entries)]))
    assert [p.name for p in sink_log.stale(folder)] == ["0", "9.compact"]
    assert sink_log.renew(folder) == 2
    assert sink_log.stale(folder) == []
    assert sorted(p.name for p in log.iterdir()) == ["0", "9.compact", "notes"]
    version, *lines = (log / "9.compact").read_text().split("\n")
    assert version == "v1"
    assert [json.loads(line)["size"] for line in lines] == [5, 1, 1, 1]
