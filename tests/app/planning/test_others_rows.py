"""A value of the person in a row that is not hers: no step would delete it, and planning says so before anything runs."""

from __future__ import annotations

import csv
import json
import shutil
import string
import struct
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import orc
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.cli.main import run
from tests.cli.small import declared, request
from tests.waivers import write_waivers

KEY, MAIL, PHONE = "P-55102", "rao@x.example", "+91 98450 11122"
ESTATE = (
    declared("lake", {"s.people": "delta", "s.tickets": "FORMAT"})
    + """\
  - name: customer
    source: s.people
    key: cust
    identifiers: [{column: email, category: email}, {column: phone, category: phone}]
"""
)
JOBS = "INSERT INTO s.tickets (cust, email, note) SELECT cust, email, city AS note FROM s.people;\n"
REQUEST = request("customer", KEY)
PEOPLE = pa.table(
    {
        "cust": [KEY, "P-551020", "P-3"],
        "email": [MAIL, "asha.rao@x.example", "c@x.example"],
        "phone": [PHONE, "+91 98450 111223", "+91 98450 33333"],
        "city": ["Pune", "Goa", "Goa"],
    }
)
"""The person, a neighbour with longer keys, and somebody."""

Row = Mapping[str, Any]
HERS: Row = {"cust": KEY, "email": MAIL, "note": f"called {PHONE}, wrote {MAIL}"}
NEIGHBOUR: Row = {"cust": "P-551020", "email": "asha.rao@x.example", "note": "see P-551020"}
OTHER: Row = {"cust": "P-3", "email": "c@x.example", "note": "nothing"}
STRAY: Row = {"cust": "P-3", "email": "c@x.example", "note": f"referred by {MAIL}"}


def estate(base: Path, kind: str = "delta") -> Path:
    write_deltalake(base / "lake" / "people", PEOPLE)
    (base / "lake" / "tickets").mkdir()
    (base / "pii-tracer.yaml").write_text(ESTATE.replace("FORMAT", kind))
    (base / "jobs.sql").write_text(JOBS)
    (base / "request.yaml").write_text(REQUEST)
    (base / "policy.yaml").write_text("version: 1\n")
    return base


def table(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows])


def tickets(base: Path, *rows: Row, **options: Any) -> DeltaTable:
    place = base / "lake" / "tickets"
    write_deltalake(place, table(*rows), mode="append", **options)
    return DeltaTable(place)


def planned(base: Path, *words: str) -> dict[str, Any]:
    given = ["--format", "json", "--out", str(base / "r.plan.json"), "--estate", str(base / "pii-tracer.yaml")]
    code = run(["plan", str(base / "request.yaml"), *given, "--state", str(base / "state"), *words])
    text = (base / "r.plan.json").read_text()
    assert not any(value in text for value in (KEY, MAIL, PHONE, 'P-3"', "c@x.example"))
    plan: dict[str, Any] = json.loads(text)
    assert code == (0 if plan["complete"] else 3), plan["gaps"]
    return plan


def strays(plan: dict[str, Any]) -> list[str]:
    assert {g["kind"] for g in plan["gaps"]} <= {"others_rows"}
    return [g["id"] for g in plan["gaps"]]


def test_a_value_in_somebody_elses_row_is_a_gap_that_can_be_waived(tmp_path: Path) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, NEIGHBOUR, OTHER, STRAY, {**STRAY, "cust": "P-551020"})
    (gap,) = planned(base)["gaps"]
    assert (gap["id"], gap["kind"]) == ("gap-others_rows-s.tickets-note", "others_rows")
    assert gap["dataset"]["name"].endswith("/tickets")
    assert gap["reason"] == (
        "2 rows that are not the persons' contain them in note: the plan finds rows by cust, so these values would "
        "remain"
    )
    assert "residue" in gap["evidence"]
    waivers = write_waivers(base / "waivers.yaml", [gap])
    plan = planned(base, "--waivers", str(waivers))
    assert plan["complete"]
    assert plan["gaps"][0]["waiver"]["who"] == "Asha Rao"


def test_a_row_without_a_key_that_holds_the_person(tmp_path: Path) -> None:
    """A guest's order with her e-mail: nothing deletes it, and it makes the e-mail nobody else's."""
    base = estate(tmp_path)
    guest = {"cust": None, **{n: PEOPLE[n][0].as_py() for n in PEOPLE.column_names if n != "cust"}}
    write_deltalake(base / "lake" / "people", pa.Table.from_pylist([guest], PEOPLE.schema), mode="append")
    tickets(base, HERS, OTHER)
    found = strays(planned(base))
    assert found
    assert all(name.startswith("gap-others_rows-s.people-") for name in found)


def test_the_persons_own_rows_and_longer_keys_of_others_are_none(tmp_path: Path) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, {**HERS, "note": f"{KEY} again"}, NEIGHBOUR, OTHER)
    plan = planned(base)
    assert strays(plan) == []
    assert {c["table"]: c["found"]["rows"] for c in plan["copies"]} == {"s.people": 1, "s.tickets": 2}


def test_of_a_key_a_longer_word_in_the_key_column_is_anothers(tmp_path: Path) -> None:
    base = estate(tmp_path)
    file = base / "lake" / "people"
    people = pa.table({**{n: PEOPLE[n] for n in PEOPLE.column_names}, "cust": ["asha-k", "asha-ka", "P-3"]})
    shutil.rmtree(file)  # in its history another key had the same e-mail
    write_deltalake(file, people)
    (base / "request.yaml").write_text(REQUEST.replace(KEY, "asha-k"))
    tickets(base, {**HERS, "cust": "asha-k"}, {**OTHER, "cust": "asha-ka"})
    assert strays(planned(base)) == []


def test_an_element_of_a_list_in_anothers_row(tmp_path: Path) -> None:
    base = estate(tmp_path)
    rows = [{**HERS, "cc": [MAIL]}, {**OTHER, "cc": ["c@x.example", MAIL]}, {**NEIGHBOUR, "cc": [None, "d@x.example"]}]
    tickets(base, *rows)
    (gap,) = planned(base)["gaps"]
    assert (gap["id"], gap["reason"][:5]) == ("gap-others_rows-s.tickets-cc", "1 row")


def _csv(path: Path, *rows: Row) -> None:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _avro(path: Path, *rows: Row) -> None:
    fields = [{"name": name, "type": ["null", "string"]} for name in rows[0]]
    with path.open("wb") as stream:
        fastavro.writer(stream, {"type": "record", "name": "r", "fields": fields}, [dict(row) for row in rows])


WRITERS: dict[str, Callable[..., None]] = {
    "parquet": lambda path, *rows: pq.write_table(table(*rows), path),
    "orc": lambda path, *rows: orc.write_table(table(*rows), path),
    "avro": _avro,
    "csv": _csv,
    "json": lambda path, *rows: path.write_text("".join(json.dumps(row) + "\n" for row in rows)),
}


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_bare_folders_of_every_format(tmp_path: Path, kind: str) -> None:
    base = estate(tmp_path, kind)
    WRITERS[kind](base / "lake" / "tickets" / f"part-0.{kind}", HERS, NEIGHBOUR, OTHER)
    assert strays(planned(base)) == []
    WRITERS[kind](base / "lake" / "tickets" / f"part-1.{kind}", OTHER, STRAY, STRAY)
    (gap,) = planned(base)["gaps"]
    assert (gap["id"], gap["reason"][:6]) == ("gap-others_rows-s.tickets-note", "2 rows")


def by_folders(base: Path, column: str, *rows: Row) -> None:
    """One folder for each value of a column, which is in no file then."""
    for number, row in enumerate(rows):
        folder = base / "lake" / "tickets" / f"{column}={row[column]}"
        folder.mkdir()
        rest = {name: value for name, value in row.items() if name != column}
        pq.write_table(table(rest), folder / f"part-{number}.parquet")


def test_values_in_names_of_partition_folders(tmp_path: Path) -> None:
    """What is hers may stand in the name of the folder of somebody else's rows."""
    base = estate(tmp_path, "parquet")
    by_folders(base, "agent", {**HERS, "agent": "A-1"}, {**OTHER, "agent": KEY})
    assert strays(planned(base)) == ["gap-others_rows-s.tickets-agent"]


def test_names_of_folders_of_her_own_rows(tmp_path: Path) -> None:
    """F2: her rows go, the folder's name stays, and that is said before the run and not after it."""
    base = estate(tmp_path, "parquet")
    by_folders(base, "email", HERS, OTHER)
    (gap,) = planned(base)["gaps"]
    assert (gap["id"], gap["kind"]) == ("gap-object_names-s.tickets", "object_names")
    assert gap["reason"].startswith("names of files or folders contain values of the persons")
    by_folders(base, "note", OTHER)
    (again,) = planned(base)["gaps"]
    assert again["id"] == gap["id"]


def test_a_key_in_names_of_folders_alone(tmp_path: Path) -> None:
    """No file has the column by which its rows would be found, so that no step could begin."""
    base = estate(tmp_path, "parquet")
    by_folders(base, "cust", HERS, OTHER)
    plan = planned(base)
    (gap,) = plan["gaps"]
    assert (gap["kind"], plan["applyable"]) == ("cannot_be_proved", False)
    assert "partitioned by a key of the person (cust)" in gap["reason"]
    assert {c["strategy"] for c in plan["copies"] if c["table"] == "s.tickets"} == {"blocked"}


def delete_by_vector(place: Path, *rows: int) -> None:
    """Mark rows of the table's one file as deleted: https://github.com/delta-io/delta/blob/master/PROTOCOL.md,
    "Deletion Vector Format" (an inline one, in Z85: an array of one 32-bit Roaring bitmap)."""
    vector = struct.pack("<iqIIIHHI", 1681511377, 1, 0, 12346, 1, 0, len(rows) - 1, 16) + struct.pack("<2H", *rows)
    (words,) = [struct.unpack(f">{len(vector) // 4}I", vector)]
    text = "".join(_Z85[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))
    log = sorted((place / "_delta_log").glob("*.json"))
    (added,) = [a for line in log[-1].read_text().splitlines() for a in [json.loads(line).get("add")] if a]
    told = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(vector), "cardinality": len(rows)}
    removed = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}
    # delta-rs names `variantType` beside it, for which Spark 3.5 refuses the table
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol |= {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    actions = [{"protocol": protocol}, {"remove": removed}, {"add": {**added, "deletionVector": told}}]
    (log[-1].parent / f"{len(log):020}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))


_Z85 = string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"


def test_rows_that_a_deletion_vector_deletes_are_none(tmp_path: Path) -> None:
    base = estate(tmp_path)
    tickets(base, OTHER, STRAY, HERS, STRAY, configuration={"delta.enableDeletionVectors": "true"})
    delete_by_vector(base / "lake" / "tickets", 1, 3)
    plan = planned(base)
    assert strays(plan) == []
    assert {c["table"]: c["found"]["rows"] for c in plan["copies"]}["s.tickets"] == 1
    tickets(base, STRAY)
    (gap,) = planned(base)["gaps"]
    assert gap["reason"].startswith("1 row that is not the persons' contains")


def test_rows_far_behind_a_deletion_vector_are_looked_at(tmp_path: Path) -> None:
    """A vector tells nothing of the rows behind its end, and they are read in batches."""
    base = estate(tmp_path)
    rows = [OTHER, STRAY, HERS, STRAY, *[OTHER] * 70_000, STRAY]
    tickets(base, *rows, configuration={"delta.enableDeletionVectors": "true"})
    delete_by_vector(base / "lake" / "tickets", 1, 3)
    (gap,) = planned(base)["gaps"]
    assert gap["reason"].startswith("1 row that is not the persons' contains")


def test_rows_of_former_versions_are_none(tmp_path: Path) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, STRAY, OTHER).delete("note LIKE 'referred%'")
    assert strays(planned(base)) == []


def test_a_partition_column_of_a_delta_table(tmp_path: Path) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, STRAY, OTHER, partition_by=["cust"])
    (gap,) = planned(base)["gaps"]
    assert gap["reason"].startswith("1 row that is not")


def test_columns_that_came_later(tmp_path: Path) -> None:
    base = estate(tmp_path)
    tickets(base, HERS, STRAY)
    write_deltalake(base / "lake" / "tickets", table({**OTHER, "ref": MAIL}), mode="append", schema_mode="merge")
    assert strays(planned(base)) == ["gap-others_rows-s.tickets-note", "gap-others_rows-s.tickets-ref"]


def test_an_iceberg_table_whose_columns_changed_their_names(tmp_path: Path) -> None:
    """Its old files call the column `note` that is `remark` now; another one is called `note`."""
    base = estate(tmp_path)
    shutil.rmtree(base / "lake" / "tickets")
    catalog = SqlCatalog("ice", uri=f"sqlite:///{base}/c.db", warehouse=f"file://{base}/lake")
    catalog.create_namespace("s")
    made = catalog.create_table("s.tickets", table(HERS).schema)
    for rows in ((HERS, OTHER), (STRAY, STRAY)):
        made.append(table(*rows))
    with made.update_schema() as change:
        change.rename_column("note", "remark")
    with made.update_schema() as change:
        change.rename_column("cust", "note")
    file = base / "pii-tracer.yaml"
    declared = "      - {name: s.tickets, format: delta, location: lake/tickets}\n"
    ice = "  ice: {type: iceberg-sql, uri: 'sqlite:///c.db', warehouse: lake}\n"
    file.write_text(file.read_text().replace(declared, ice))
    (base / "jobs.sql").write_text("INSERT INTO ice.s.tickets (note, email) SELECT cust, email FROM s.people;\n")
    (gap,) = planned(base)["gaps"]
    assert gap["reason"].startswith(
        "2 rows that are not the persons' contain them in remark: the plan finds rows by note"
    )
    made.delete("email == 'c@x.example'")
    assert strays(planned(base)) == []


def test_a_delta_table_whose_columns_are_mapped(tmp_path: Path) -> None:
    base = estate(tmp_path)
    place = base / "lake" / "tickets"
    files = {"cust": "email", "email": "note", "note": "cust"}
    rows = [{**row, "email": "z@x.example"} for row in (HERS, OTHER, STRAY)]
    tickets(base, *({files[name]: value for name, value in row.items()} for row in rows))
    (log,) = (place / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (metadata,) = [a["metaData"] for a in actions if "metaData" in a]
    schema = json.loads(metadata["schemaString"])
    for number, (field, name) in enumerate(zip(schema["fields"], files, strict=True), 1):
        told = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
        field.update(metadata=told, name=name)
    metadata["schemaString"] = json.dumps(schema)
    metadata["configuration"] = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}
    (protocol,) = [a["protocol"] for a in actions if "protocol" in a]
    protocol.update(minReaderVersion=2, minWriterVersion=5)
    for name in ("readerFeatures", "writerFeatures"):
        protocol.pop(name, None)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    (gap,) = planned(base)["gaps"]
    assert gap["reason"].startswith("1 row that is not the persons' contains them in note")


def test_a_shallow_clone_reads_its_origins_files(tmp_path: Path) -> None:
    base = estate(tmp_path)
    place, clone = base / "lake" / "tickets", base / "lake" / "clone"
    tickets(base, HERS, STRAY)
    (log,) = (place / "_delta_log").glob("*.json")
    (clone / "_delta_log").mkdir(parents=True)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for added in (action["add"] for action in actions if "add" in action):
        added["path"] = (place / added["path"]).as_uri()
    (clone / "_delta_log" / log.name).write_text("".join(json.dumps(action) + "\n" for action in actions))
    tickets(base, STRAY)  # not the clone's
    (mine, its) = planned(base)["gaps"]
    assert (mine["id"], mine["reason"][:5]) == ("gap-others_rows-clone-note", "1 row")
    assert (its["id"], its["reason"][:6]) == ("gap-others_rows-s.tickets-note", "2 rows")


def test_where_only_spark_can_compare_the_keys_planning_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = estate(tmp_path)
    rows = [{**row, "cust": datetime(2026, 11, day, tzinfo=timezone.utc)} for day, row in enumerate((OTHER, STRAY), 1)]
    tickets(base, *rows)
    assert strays(planned(base)) == []
    told = " ".join(capsys.readouterr().err.split())
    assert "cannot find out whether rows of others in s.tickets hold the persons: only Spark can find out" in told
