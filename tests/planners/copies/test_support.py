"""Tables that no step may touch are blocked in the plan, with what their owner can do."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.delta.table_state import delta_state
from pii_tracer.lake.formats.delta.vocabulary import DELTA, DELTA_CLEAN_LOG, DELTA_PURGE
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import Column, DatasetId, Format
from pii_tracer.model.plan import ErasurePlan
from planners.copies.executor_support import astray, unsupported
from tests.planners.smalllake import Lake, kinds, touched

ESTATE = Estate.model_validate(
    {
        "version": 1,
        "estate": "t",
        "environment": "local",
        "catalogs": {},
        "roots": ["."],
        "lineage": {},
        "subjects": [{"name": "user", "source": "users", "key": "uid"}],
    }
)


def state_of(folder: Path) -> TableState:
    found = delta_state(folder, EstatePaths(ESTATE, folder.parent))
    assert found.state is not None
    return found.state


def change_last_commit(folder: Path, kind: str, change: dict[str, object]) -> None:
    path = folder / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if kind in action:
            action[kind].update(change)
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        (
            "metaData",
            {"configuration": {"delta.universalFormat.enabledFormats": "iceberg"}},
            "(UniForm). The metadata of that format retains bounds and file names, and only its own engine writes that metadata. Ask"
            " its owner to unset delta.universalFormat.enabledFormats and to remove only that metadata, not data files: all files in"
            " `metadata` of the table's folder",
        ),
        (
            "metaData",
            {"configuration": {"delta.universalFormat.enabledFormats": "iceberg, hudi"}},
            "all files in `.hoodie` and `metadata` of the table's folder",
        ),
        ("metaData", {"configuration": {"delta.universalFormat.enabledFormats": "other"}}, "not data files: all of it"),
        ("metaData", {"configuration": {"delta.appendOnly": "true"}}, "rejects every DELETE"),
        (
            "protocol",
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["catalogManaged"],
                "writerFeatures": ["catalogManaged"],
            },
            "its catalog commits",
        ),
        (
            "protocol",
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["catalogOwned-preview"],
                "writerFeatures": ["catalogOwned-preview"],
            },
            "its catalog commits",
        ),
    ],
)
def test_delta_tables_with_a_second_master_are_blocked(
    tmp_path: Path, kind: str, change: dict[str, object], told: str
) -> None:
    folder = tmp_path / "t"
    write_deltalake(folder, pa.table({"uid": [1, 2]}))
    assert unsupported(state_of(folder)) is None
    change_last_commit(folder, kind, change)
    assert told in (unsupported(state_of(folder)) or "")


def test_a_hudi_table_partitioned_by_a_key_is_blocked() -> None:
    """Its timeline names the partition (tests/executors/formats/hudi/test_hudi_indexes.py); by another column it is erased."""
    table = {"format": HUDI, "write_mode": "cow"}
    keyed = Lake(states={"a": table | {"partition_columns": ("Uid:simple", "day")}}).plan()
    assert not keyed.applyable
    assert [g.reason for g in keyed.gaps if "partitioned by a key of the person (uid)" in g.reason]
    assert "c-prod.a" not in touched(keyed)
    other = Lake(states={"a": table | {"partition_columns": ("day",)}}).plan()
    assert kinds(other) == []
    assert "c-prod.a" in touched(other)


def test_a_hudi_table_that_logs_its_changes_is_blocked() -> None:
    """A DELETE writes what it takes out into such a log (tests/executors/formats/hudi/test_hudi_cdc.py)."""
    table = {"format": HUDI, "write_mode": "cow"}
    made = Lake(states={"a": table | {"properties": {"hoodie.table.cdc.enabled": "true"}}}).plan()
    assert not made.applyable
    assert "c-prod.a" not in touched(made)
    assert [g.reason for g in made.gaps if "a Hudi table that logs its changes" in g.reason]
    assert Lake(states={"a": table | {"properties": {"hoodie.table.cdc.enabled": "false"}}}).plan().applyable


@pytest.mark.parametrize("version", [5, 6, 7, 8, 9])
def test_a_hudi_table_of_a_version_that_is_not_written_is_blocked(version: int) -> None:
    """Others keep their version (tests/executors/formats/hudi/test_hudi_versions.py)."""
    made = Lake(states={"a": {"format": HUDI, "write_mode": "cow", "format_version": version}}).plan()
    assert made.applyable == (version not in (5, 7))
    assert [g.reason for g in made.gaps if f"a Hudi table of version {version}," in g.reason] or made.applyable


def test_a_hudi_table_that_was_bootstrapped_is_blocked() -> None:
    """It reads another place's files by position (tests/executors/formats/hudi/test_hudi_bootstrap.py)."""
    table = {"format": HUDI, "write_mode": "cow", "properties": {"hoodie.bootstrap.base.path": "file:/w/old"}}
    made = Lake(states={"a": table}).plan()
    assert not made.applyable
    assert "c-prod.a" not in touched(made)
    assert [g.reason for g in made.gaps if "bootstrapped" in g.reason and "file:/w/old" in g.reason]


@pytest.mark.parametrize(
    ("indexes", "named"),
    [
        ("files,record_index,secondary_index_of_mail", "(of_mail)"),
        ("files, secondary_index_b,secondary_index_a", "(a, b)"),
        ("files,column_stats,record_index,expr_index_secondary_index_of", None),
    ],
)
def test_a_hudi_table_with_a_secondary_index_is_blocked(indexes: str, named: str | None) -> None:
    properties = {"hoodie.table.metadata.partitions": indexes}
    made = Lake(states={"a": {"format": HUDI, "write_mode": "mor", "properties": properties}}).plan()
    assert made.applyable == (named is None)
    assert [g for g in made.gaps if f"secondary index {named}" in g.reason and "DROP INDEX" in g.reason] or not named


def test_a_hudi_table_known_by_the_name_of_another_database_is_blocked() -> None:
    """Hudi's DELETE fails (`Config conflict`); tests/hdfs/test_hudi.py erases a table of another name in its database."""

    def planned(database: str) -> ErasurePlan:
        properties = {"hoodie.database.name": database, "hoodie.table.name": "t"}
        return Lake(states={"a": {"format": HUDI, "write_mode": "cow", "properties": properties}}).plan()

    other = planned("Sales")
    assert not other.applyable
    assert "c-prod.a" not in touched(other)
    assert [g.reason for g in other.gaps if "declare the table as Sales.a in the estate file" in g.reason]
    assert planned("Prod").applyable
    assert planned("").applyable


@pytest.mark.parametrize(
    ("name", "path", "blocked"),
    [
        ("write.data.path", "/elsewhere/a", True),
        ("write.object-storage.path", "s3://bucket/a", True),
        ("write.folder-storage.path", "abfs://store/a", True),
        ("write.data.path", "file:{location}/files", False),
        ("write.metadata.path", "/elsewhere/a", False),
    ],
)
def test_an_iceberg_table_whose_data_goes_elsewhere_is_blocked(name: str, path: str, blocked: bool) -> None:
    """Its files stayed in the other folder, which counted as somebody's copy of them."""
    plain = Lake(states={"a": {"format": ICEBERG}}).plan()
    (location,) = (copy.location for copy in plain.copies if copy.id == "c-prod.a")
    properties = {name: path.format(location=location)}
    made = Lake(states={"a": {"format": ICEBERG, "properties": properties}}).plan()
    assert plain.applyable
    assert made.applyable is not blocked
    assert ("c-prod.a" in touched(made)) is not blocked
    assert any(name in gap.reason for gap in made.gaps) is blocked


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("s3a://b/lake/t/files", True),
        ("s3://b/lake/t", True),
        ("s3://b/lake/t2", False),
        ("s3://c/lake/t", False),
        ("/t", False),
    ],
)
def test_where_the_data_of_an_iceberg_table_in_s3_goes(path: str, inside: bool) -> None:
    state = TableState(
        dataset=DatasetId(namespace="s3://b", name="lake/t"),
        table="lake.prod.t",
        location="s3://b/lake/t",
        format=ICEBERG,
        snapshot="1",
        columns=(),
        properties={"write.data.path": path},
    )
    assert (unsupported(state) is None) is inside


@pytest.mark.parametrize(("kind", "padded"), [("char(12)", True), ("array<char(2)>", True), ("varchar(12)", False)])
def test_a_delta_table_whose_key_is_padded_with_blanks_is_blocked(tmp_path: Path, kind: str, padded: bool) -> None:
    folder = tmp_path / "t"
    write_deltalake(folder, pa.table({"uid": ["K-1         "], "n": [1]}))
    log = folder / "_delta_log" / f"{0:020}.json"
    [metadata] = [a["metaData"] for a in map(json.loads, log.read_text().splitlines()) if "metaData" in a]
    schema = json.loads(metadata["schemaString"])
    schema["fields"][0]["metadata"] = {"__CHAR_VARCHAR_TYPE_STRING": kind}
    change_last_commit(folder, "metaData", {"schemaString": json.dumps(schema)})
    state = state_of(folder)
    assert state.padded == (("uid",) if padded else ())
    made = Lake(states={"a": {"columns": state.columns, "padded": state.padded}}).plan()
    assert made.applyable is not padded
    assert [g.reason for g in made.gaps if "its type is CHAR" in g.reason] == [g.reason for g in made.gaps]


def test_what_a_delta_table_needs_is_said_at_its_steps() -> None:
    plan = Lake(
        states={"a": {"partition_columns": ("UID",)}, "b": {"properties": {"delta.feature.clustering": "supported"}}}
    ).plan()
    told = {(s.copy_, s.action): set(s.hazards) for s in plan.steps}
    assert "D16" in told["c-prod.a", DELTA_CLEAN_LOG]
    assert "D17" in told["c-prod.b", DELTA_PURGE]
    assert "D16" not in told["c-prod.b", DELTA_CLEAN_LOG]
    assert "D17" not in told["c-prod.a", DELTA_PURGE]


@pytest.mark.parametrize("fmt", [Format.CSV, Format.JSON, Format.AVRO, Format.PARQUET, Format.ORC])
def test_a_bare_folder_whose_files_lack_the_key_column_is_blocked(fmt: Format) -> None:
    """By rows nothing could be found in it; the column's case does not matter, and an empty folder says nothing."""
    folder = {"format": fmt, "table": None}
    lacking = Lake(states={"a": folder | {"columns": (Column(name="uid;amount", type="string"),)}}).plan()
    assert not lacking.applyable
    (reason,) = [g.reason for g in lacking.gaps]
    assert reason.startswith("lineage says that uid is a key, and the files have no such column")
    assert ("another delimiter than a comma, or no header" in reason) == (fmt is Format.CSV)
    for columns in ((Column(name="UID", type="string"),), ()):
        assert Lake(states={"a": folder | {"columns": columns}}).plan().applyable


@pytest.mark.parametrize("first", ["17,a@x.example", "uid,mail,", "uid,mail,mail", "uid , mail", 'uid,"e-mail, home"'])
def test_a_key_in_csv_without_a_header_is_no_column_that_a_step_could_find(tmp_path: Path, first: str) -> None:
    """Lineage by position reaches what discovery calls `_c0`; the steps and the verification read names."""
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.csv").write_text(f"{first}\n18,b@x.example\n")
    (state,) = discover(ESTATE, tmp_path).tables
    assert state.columns[0].name == "_c0"
    assert "no step can distinguish the first line from a row" in (astray(state, [("_c0", ())]) or "")


def test_a_bare_folder_in_which_some_files_lack_the_key_column_is_blocked() -> None:
    folder = {"format": Format.PARQUET, "table": None, "columns": (Column(name="uid", type="string"),)}
    made = Lake(states={"a": folder | {"uneven": (("UID",), ("customer",))}}).plan()
    assert not made.applyable
    assert "not every file of the folder has this column" in made.gaps[0].reason
    assert Lake(states={"a": folder | {"uneven": (("note",),)}}).plan().applyable


@pytest.mark.parametrize("kind", ["time64[us]", "time32[ms]", "duration[ns]", "timestamp", "timestamp_ntz"])
def test_a_bare_folder_whose_key_is_a_time_is_blocked(kind: str) -> None:
    """No step compares such values; beside the key they are written again as they are. Text is text, however it looks."""
    folder = {"format": Format.PARQUET, "table": None}
    made = Lake(states={"a": folder | {"columns": (Column(name="uid", type=kind),)}}).plan()
    assert not made.applyable
    (reason,) = [g.reason for g in made.gaps]
    assert reason.startswith(f"lineage says that uid is a key, but no step compares values of its type {kind}")
    beside = (Column(name="uid", type="string"), Column(name="at", type=kind))
    assert Lake(states={"a": folder | {"columns": beside}}).plan().applyable
    text = {"format": Format.JSON, "table": None, "columns": (Column(name="uid", type=kind),)}
    assert Lake(states={"a": text}).plan().applyable


@pytest.mark.parametrize("fmt", [DELTA, ICEBERG, HUDI])
def test_a_table_without_the_key_column_is_blocked(fmt: Format) -> None:
    """Renamed or dropped since: its run would end with `a key column is missing`, and planning again gives the same."""
    table = {"format": fmt, "write_mode": "cow"}
    lacking = Lake(states={"a": table | {"columns": (Column(name="booking_ref", type="string"),)}}).plan()
    assert not lacking.applyable
    assert "c-prod.a" not in touched(lacking)
    (reason,) = [g.reason for g in lacking.gaps]
    assert reason.startswith("lineage says that uid is a key, and the table has no such column")
    assert "RENAME COLUMN" in reason
    for columns in ((Column(name="UID", type="string"),), ()):
        assert Lake(states={"a": table | {"columns": columns}}).plan().applyable


@pytest.mark.parametrize(
    ("entry", "writer"),
    [("iceberg.schema", "Iceberg"), ("hoodie_min_record_key", "Hudi"), ("org.apache.hudi.bloomfilter", "Hudi")],
)
def test_a_bare_folder_of_files_that_were_written_for_a_table_is_blocked(
    tmp_path: Path, entry: str, writer: str
) -> None:
    """The data folder of a table that no catalog of the estate names: files that are written again have another size
    than the table's metadata says, and its readers fail."""
    rows = pa.table({"uid": ["1", "2"]})
    folder = tmp_path / "letters"
    folder.mkdir()
    pq.write_table(rows, folder / "a.parquet")
    (plain,) = discover(ESTATE, tmp_path).tables
    assert unsupported(plain) is None
    pq.write_table(rows.replace_schema_metadata({entry: "{}"}), folder / "b.parquet")
    (exported,) = discover(ESTATE, tmp_path).tables
    assert unsupported(exported) is None, "Arrow keeps entries of what it read"
    with pq.ParquetWriter(folder / "b.parquet", rows.schema, store_schema=False) as writing:
        writing.write_table(rows)
        writing.add_key_value_metadata({entry: "{}"})
    (state,) = discover(ESTATE, tmp_path).tables
    assert f"{writer} wrote these files for a table" in (unsupported(state) or "")
    assert unsupported(state.model_copy(update={"same_files_as": "/lake/t"})) is None, "a copy of a table that is known"
