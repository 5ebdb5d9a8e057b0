"""Lineage that events alone tell: what they leave open about persons stays a gap, also where the scan finds nothing.

No key, e-mail or anything else that is looked for stands in the tables made from the source: names and salted hashes do.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.cli.main import run
from tests.cli.small import declared, request

KEY, OTHER = "P-5510278", "P-6600193"
PEOPLE = {
    "cust": [KEY, OTHER],
    "email": ["mira@x.example", "tom@y.example"],
    "name": ["Mira Okafor", "Tom Tell"],
    "dob": ["1988-03-04", "1970-01-02"],
}
SUBJECT = """\
  - name: c
    source: db.people
    key: cust
    identifiers: [{column: email, category: email}]
"""
Fields = Mapping[str, Sequence[tuple[str, str, str]]]
"""By column: table, column and subtype of what goes into it."""


class Estate:
    """Tables in `lake`, and events about them; a table is named by its folder, unless `named` tells otherwise."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.events: list[dict[str, Any]] = []
        self.tables: dict[str, list[str]] = {}
        self.named: dict[str, dict[str, str]] = {}
        self.sql = "SELECT 1;\n"
        self.anonymisers: list[str] = []
        self.table("people", PEOPLE)

    def table(self, name: str, columns: Mapping[str, Any]) -> None:
        write_deltalake(self.base / "lake" / name, pa.table(dict(columns)))
        self.tables[name] = list(columns)

    def dataset(self, name: str, **facets: Any) -> dict[str, Any]:
        schema = {"fields": [{"name": c, "type": "string"} for c in self.tables.get(name, ())]}
        return {**self._id(name), "facets": {"schema": schema, **facets}}

    def _id(self, name: str) -> dict[str, str]:
        return self.named.get(name, {"namespace": "file", "name": str(self.base / "lake" / name)})

    def job(self, inputs: Sequence[str], output: str, fields: Fields | None = None, *, ended: str = "COMPLETE") -> None:
        """One run. fields: what it tells of columns; None where it has no facet for them."""
        facets = {} if fields is None else {"columnLineage": {"fields": {c: self._from(s) for c, s in fields.items()}}}
        self.say(
            f"make {output} {len(self.events)}",
            [self.dataset(i) for i in inputs],
            self.dataset(output, **facets),
            ended,
        )

    def _from(self, sources: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
        kinds = [(t, c, {"type": "DIRECT", "subtype": s, "masking": False}) for t, c, s in sources]
        return {"inputFields": [{**self._id(t), "field": c, "transformations": [kind]} for t, c, kind in kinds]}

    def say(self, job: str, inputs: Sequence[Any], output: Mapping[str, Any], ended: str = "COMPLETE") -> None:
        number = len(self.events)
        self.events.append(
            {
                "eventType": ended,
                "eventTime": f"2026-10-01T00:{number:02d}:00Z",
                "producer": "https://jobs.example",
                "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
                "run": {"runId": f"00000000-0000-0000-0000-{number:012d}"},
                "job": {"namespace": "jobs", "name": job},
                "inputs": list(inputs),
                "outputs": [output],
            }
        )

    def plan(self) -> dict[str, Any]:
        tables = {f"db.{name}": "delta" for name in self.tables}
        head = declared("lake", tables).replace("sql: [jobs.sql]", "sql: [jobs.sql], events: [events.ndjson]")
        (self.base / "pii-tracer.yaml").write_text(f"{head}{SUBJECT}anonymisers: {self.anonymisers}\n")
        (self.base / "jobs.sql").write_text(self.sql)
        (self.base / "events.ndjson").write_text("".join(json.dumps(e) + "\n" for e in self.events))
        (self.base / "policy.yaml").write_text("version: 1\n")
        (self.base / "request.yaml").write_text(request("c", KEY))
        words = ["--format", "json", "--out", str(self.base / "r.plan.json"), "--state", str(self.base / "state")]
        run(["plan", str(self.base / "request.yaml"), "--estate", str(self.base / "pii-tracer.yaml"), *words])
        made: dict[str, Any] = json.loads((self.base / "r.plan.json").read_text())
        return made

    def gaps(self) -> set[str]:
        return short(self.plan())


_ID = re.compile(r"gap-.+-(no_columns|unseen)(?:-[0-9a-f]{8})?")


def short(plan: Mapping[str, Any]) -> set[str]:
    """Each gap as the last part of its dataset's name, and what is missing: a long folder's name is cut in ids."""
    found = [Path(gap["dataset"]["name"]).name + "-" + _ID.sub(r"\1", gap["id"]) for gap in plan["gaps"]]
    assert len(set(found)) == len(found)
    return set(found)


@pytest.fixture
def lab(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


# --- events that tell tables and no columns ---

LETTERS = {"name": PEOPLE["name"], "dob": PEOPLE["dob"]}
NOTHING_TOLD: dict[str, tuple[Fields | None, str]] = {
    "no facet": (None, "COMPLETE"),
    "no fields": ({}, "COMPLETE"),
    "no inputs of the fields": ({"name": (), "dob": ()}, "COMPLETE"),
    "a run that failed": (None, "FAIL"),
}


@pytest.mark.parametrize(("fields", "ended"), NOTHING_TOLD.values(), ids=NOTHING_TOLD)
def test_what_persons_rows_went_into_is_a_gap_though_nothing_of_them_is_found(
    lab: Estate, fields: Fields | None, ended: str
) -> None:
    """A name and a birth date are nothing that the scan looks for: it settles nothing about them."""
    lab.table("letters", LETTERS)
    lab.job(["people"], "letters", fields, ended=ended)
    plan = lab.plan()
    assert short(plan) == {"letters-no_columns"}
    assert "only filters or joins" not in json.dumps(plan["examined"])


def test_a_dataset_that_says_itself_what_it_is_made_of_is_held_to_the_same(lab: Estate) -> None:
    lab.table("letters", LETTERS)
    inputs = [{**lab._id("people"), "type": "DATASET"}]
    lab.events.append(
        {
            "eventTime": "2026-10-01T00:00:00Z",
            "producer": "https://jobs.example",
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
            "dataset": lab.dataset("letters", lineage={"inputs": inputs, "fields": {"name": {"inputs": []}}}),
        }
    )
    assert lab.gaps() == {"letters-no_columns"}


def test_it_stays_a_gap_at_any_distance(lab: Estate) -> None:
    for name in ("raw", "letters"):
        lab.table(name, LETTERS)
    lab.job(["people"], "raw")
    lab.job(["raw"], "letters")
    assert lab.gaps() == {"letters-no_columns", "raw-no_columns"}


def test_what_is_made_of_it_row_by_row_is_a_gap_too(lab: Estate) -> None:
    lab.table("letters", LETTERS)
    lab.table("names", {"name": PEOPLE["name"]})
    lab.table("greetings", {"name": PEOPLE["name"]})
    lab.table("number", {"n": [2]})
    lab.job(["people"], "letters")
    lab.job(["letters"], "names", {"name": [("letters", "name", "IDENTITY")]})
    lab.job(["names"], "greetings", {"name": [("names", "name", "TRANSFORMATION")]})
    lab.job(["letters"], "number", {"n": [("letters", "name", "AGGREGATION")]})
    found = {"letters-no_columns", "names-unseen", "greetings-unseen"}
    assert lab.gaps() == found


def test_what_a_declared_anonymiser_ends_is_not_made_of_it(lab: Estate) -> None:
    lab.table("mixed", {"cust": ["P-9"], "email": ["x@x.example"]})
    lab.table("hidden", {"h": ["3f9ac1"]})
    lab.job(["people"], "mixed", {c: [("people", c, "IDENTITY")] for c in ("cust", "email")})
    lab.table("more", {"cust": ["P-8"]})
    lab.job(["people"], "more", {"cust": [("people", "cust", "IDENTITY")]})
    lab.job(["more"], "mixed")
    lab.job(["mixed"], "hidden", {"h": [("mixed", "email", "TRANSFORMATION")]})
    lab.anonymisers = ["db.hidden.h"]
    assert lab.gaps() == {"mixed-no_columns"}


def test_the_same_files_at_another_place_are_a_gap_too(lab: Estate) -> None:
    lab.table("letters", LETTERS)
    shutil.copytree(lab.base / "lake" / "letters", lab.base / "lake" / "letters_copy")
    lab.job(["people"], "letters")
    assert lab.gaps() == {"letters-no_columns", "letters_copy-unseen"}


def test_where_nothing_of_the_persons_leads_the_scan_settles_it(lab: Estate) -> None:
    shops = {"shop": ["Corner"], "town": ["Goa"]}
    for name in ("shops", "towns", "picked", "picked_towns"):
        lab.table(name, shops)
    lab.table("numbers", {"n": [2]})
    lab.job(["shops"], "towns")
    # a filter is no value: what the persons' rows only decided about holds nothing of them
    told = {name: [("shops", name, "IDENTITY")] for name in shops}
    lab.job(["shops", "people"], "picked", told)
    lab.events[-1]["outputs"][0]["facets"]["columnLineage"]["dataset"] = [
        {**lab.dataset("people"), "field": "cust", "transformations": [{"type": "INDIRECT", "subtype": "FILTER"}]}
    ]
    lab.job(["picked"], "picked_towns")
    assert lab.gaps() == set()


# --- inputs that are named by their table's name ---

SALTED = {"h": ["3f9ac1", "77d0be"]}
NAMES = {
    "a metastore": {"namespace": "hive://ms:9083", "name": "db.people"},
    "in capitals": {"namespace": "hive://ms:9083", "name": "DB.PEOPLE"},
    "no place": {"namespace": "file", "name": "db.people"},
    "with its catalog": {"namespace": "spark_catalog", "name": "spark_catalog.db.people"},
    "no namespace": {"namespace": "", "name": "db.people"},
    "its last name": {"namespace": "iceberg", "name": "people"},
}


def salted(lab: Estate, named: dict[str, str], table: str = "people", **facets: Any) -> None:
    """A salted hash of the e-mail out of a table under this name."""
    lab.table("salted", SALTED)
    lab.named[table] = named
    lab.job([table], "salted", {"h": [(table, "email", "TRANSFORMATION")]})
    lab.events[-1]["inputs"][0]["facets"] |= facets
    del lab.named[table]


@pytest.mark.parametrize("named", NAMES.values(), ids=NAMES)
def test_an_input_that_is_called_as_a_table_of_persons_is_a_gap(lab: Estate, named: dict[str, str]) -> None:
    salted(lab, named)
    (gap,) = lab.plan()["gaps"]
    assert gap["id"].endswith("-unresolved_name")
    assert named["name"] in gap["reason"]
    assert str(lab.base / "lake" / "people") in gap["reason"]


def test_a_place_that_a_symlink_calls_as_a_table_of_persons_is_a_gap(lab: Estate) -> None:
    link = {"identifiers": [{"namespace": "hive://ms:9083", "name": "db.people", "type": "TABLE"}]}
    salted(lab, {"namespace": "hdfs://nn:8020", "name": "/old/place/people"}, symlinks=link)
    (gap,) = lab.plan()["gaps"]
    assert gap["dataset"]["name"] == "/old/place/people"
    assert gap["id"].endswith("-unresolved_name")


def test_a_symlink_to_the_tables_place_tells_that_they_are_one(lab: Estate) -> None:
    link = {"identifiers": [{"namespace": "file", "name": str(lab.base / "lake" / "people"), "type": "LOCATION"}]}
    salted(lab, {"namespace": "hive://ms:9083", "name": "db.people"}, symlinks=link)
    assert [gap["id"] for gap in lab.plan()["gaps"]] == ["gap-no_way-db.salted"]


@pytest.mark.parametrize("names", [("People", "people"), ("people", "People")])
def test_names_that_may_be_one_table_are_a_gap_whichever_persons_come_to(lab: Estate, names: tuple[str, str]) -> None:
    written, read = ({"namespace": "postgres://h:5432", "name": f"d.s.{name}"} for name in names)
    lab.named["written"] = written
    lab.job(["people"], "written", {"email": [("people", "email", "IDENTITY")]})
    salted(lab, read)
    (gap,) = [gap for gap in lab.plan()["gaps"] if gap["id"].endswith("-unresolved_name")]
    assert written["name"] in gap["reason"]
    assert read["name"] in gap["reason"]


def test_a_view_told_by_sql_and_read_by_its_name_is_a_gap(lab: Estate) -> None:
    lab.sql = "CREATE VIEW db.v AS SELECT my_udf(email) AS email FROM db.people;\n"
    salted(lab, {"namespace": "hive://ms:9083", "name": "db.v"}, table="v")
    assert [gap["id"] for gap in lab.plan()["gaps"]] == ["gap-lineage-db.v-unresolved_name"]


@pytest.mark.parametrize(
    "named",
    [
        {"namespace": "hive://ms:9083", "name": "db.shops"},
        {"namespace": "hive://ms:9083", "name": "db.other"},
        {"namespace": "postgres://crm:5432", "name": "crm.db.people"},
        {"namespace": "kafka://broker:9092", "name": "people"},
    ],
)
def test_other_tables_and_other_systems_are_no_gap(lab: Estate, named: dict[str, str]) -> None:
    lab.table("shops", {"shop": ["Corner"]})
    salted(lab, named)
    assert lab.gaps() == set()


def test_what_a_table_was_loaded_from_may_have_its_name(lab: Estate) -> None:
    lab.named["landing"] = {"namespace": "sftp", "name": "db.people"}
    lab.job(["landing"], "people", {name: [("landing", name, "IDENTITY")] for name in PEOPLE})
    assert lab.gaps() == set()


# --- renamed tables ---


def renamed(lab: Estate, before: str, after: str) -> None:
    previous = {"lifecycleStateChange": "RENAME", "previousIdentifier": lab._id(before)}
    lab.say("rename", [], lab.dataset(after, lifecycleStateChange=previous))


def test_what_was_made_of_a_table_before_it_was_renamed_is_found(lab: Estate) -> None:
    lab.table("salted", SALTED)
    lab.job(["landing"], "people_v1", {"cust": [("landing", "id", "IDENTITY")]})
    lab.job(["people_v1"], "salted", {"h": [("people_v1", "email", "TRANSFORMATION")]})
    renamed(lab, "people_v1", "people")
    plan = lab.plan()
    (copy,) = (c for c in plan["copies"] if c["table"] == "db.salted")
    assert copy["carries"] == "unknown"
    assert [gap["id"] for gap in plan["gaps"]] == ["gap-no_way-db.salted"]


def test_the_former_name_is_no_gap_of_its_own(lab: Estate) -> None:
    renamed(lab, "people_v1", "people")
    assert lab.plan()["gaps"] == []


def test_what_was_made_of_a_copy_before_it_was_renamed_is_found(lab: Estate) -> None:
    lab.table("copy", {"cust": ["P-9"], "email": ["x@x.example"]})
    lab.table("salted", SALTED)
    lab.job(["people"], "copy", {c: [("people", c, "IDENTITY")] for c in ("cust", "email")})
    lab.job(["copy_v1"], "salted", {"h": [("copy_v1", "email", "TRANSFORMATION")]})
    renamed(lab, "copy_v1", "copy")
    assert [gap["id"] for gap in lab.plan()["gaps"]] == ["gap-no_way-db.salted"]


# --- what events say of columns ---


def test_a_masked_key_is_not_the_key(lab: Estate) -> None:
    lab.table("salted", SALTED)
    lab.job(["people"], "salted", {"h": [("people", "cust", "IDENTITY")]})
    told = lab.events[-1]["outputs"][0]["facets"]["columnLineage"]["fields"]["h"]["inputFields"][0]
    told["transformations"][0]["masking"] = True
    assert [gap["id"] for gap in lab.plan()["gaps"]] == ["gap-no_way-db.salted"]


def test_branches_of_a_union_that_hash_what_they_share_are_no_join(lab: Estate) -> None:
    lab.table("leads", {"email": ["q@y.example"]})
    lab.table("aud", {"cust": ["P-9"], "h": ["3f9ac1"]})
    lab.job(["people"], "leads", {"email": [("people", "email", "IDENTITY")]})
    both = [("people", "email", "TRANSFORMATION"), ("leads", "email", "TRANSFORMATION")]
    lab.job(["people", "leads"], "aud", {"cust": [("people", "cust", "IDENTITY")], "h": both})
    assert [gap["id"] for gap in lab.plan()["gaps"]] == ["gap-no_way-db.aud"]


@pytest.mark.parametrize("joined", [True, False])
def test_a_payer_and_a_payee_out_of_one_table_that_is_joined_twice(lab: Estate, joined: bool) -> None:
    """Her row with somebody else in it is nobody's to delete; one key written twice is hers."""
    lab.table(
        "transfers", {"payer": [KEY, OTHER], "payee": [OTHER, KEY]} if joined else {"payer": [KEY], "payee": [KEY]}
    )
    key = [("people", "cust", "IDENTITY")]
    fields = {column: lab._from(key) for column in ("payer", "payee")}
    join = {**lab._id("people"), "field": "cust", "transformations": [{"type": "INDIRECT", "subtype": "JOIN"}]}
    told = {"fields": fields, "dataset": [join]} if joined else {"fields": fields}
    lab.say("pay", [lab.dataset("people")], lab.dataset("transfers", columnLineage=told))
    (copy,) = [c for c in lab.plan()["copies"] if c["table"] == "db.transfers"]
    assert copy["strategy"] == ("blocked" if joined else "delete_by_key")
