"""A key column that is filled from another source, too: a number there may be somebody else's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request

ESTATE = (
    declared("w", dict.fromkeys(("prod.staff", "prod.contractors", "prod.party"), "parquet"))
    + """\
  - name: employee
    source: prod.staff
    key: emp_id
    identifiers: [{column: mail, category: email}]
"""
)
FURTHER = "    tables: [{table: prod.contractors, key: con_id}]\n"
UNION = "INSERT OVERWRITE prod.party SELECT {mine} AS party_id FROM prod.staff UNION ALL SELECT {theirs} FROM prod.contractors;"
REQUEST = request("employee", "71234")


def planned(
    base: Path,
    mine: str = "emp_id",
    theirs: str = "con_id",
    more: str = "",
    first: int = 71234,
    before: str = "",
    jobs: str = UNION,
    estate: str = ESTATE,
    asked: str = REQUEST,
    beside: Mapping[str, list[str]] = MappingProxyType({}),
    mails: tuple[str, ...] = ("a@x.example", "c@x.example"),
) -> Any:
    staff = {"emp_id": [71234, 71235], "mail": [mails[0], "b@x.example"]}
    contractors = {"con_id": [first, 90001], "mail": [mails[1], "d@x.example"]}
    party = pa.concat_arrays([pa.array(staff[mine]), pa.array(contractors[theirs])])
    tables = {"staff": staff, "contractors": contractors, "party": {"party_id": party, **beside}}
    for name, columns in tables.items():
        (base / "w" / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), base / "w" / name / "part-0.parquet")
    (base / "pii-tracer.yaml").write_text(estate + more)
    (base / "jobs.sql").write_text(before + jobs.format(mine=mine, theirs=theirs))
    (base / "request.yaml").write_text(asked)
    (base / "policy.yaml").write_text("version: 1\n")
    called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json"))
    return json.loads((base / "p.plan.json").read_bytes())


@pytest.mark.parametrize("first", [71234, 71299])
def test_a_number_of_another_series_is_not_deleted_without_a_word(tmp_path: Path, first: int) -> None:
    """Also where no number stands in both today: it may on the day of the run."""
    made = planned(tmp_path, first=first)
    gap = next(g for g in made["gaps"] if g["kind"] == "foreign_keys")
    assert "party_id identifies the rows to delete, but is also filled from prod.contractors.con_id" in gap["reason"]
    assert not made["applyable"]


def test_a_table_that_is_told_to_be_of_the_same_persons_is_not_foreign(tmp_path: Path) -> None:
    assert [g for g in planned(tmp_path, more=FURTHER)["gaps"] if g["kind"] == "foreign_keys"] == []


def test_what_the_key_was_made_of_is_not_foreign(tmp_path: Path) -> None:
    loaded = "INSERT OVERWRITE prod.staff SELECT con_id AS emp_id, mail FROM prod.contractors;\n"
    assert [g for g in planned(tmp_path, before=loaded)["gaps"] if g["kind"] == "foreign_keys"] == []


def test_other_members_of_a_document_are_not_where_the_key_is(tmp_path: Path) -> None:
    packed = "to_json(named_struct('id', emp_id, 'bonus', con_id)) AS party_id"
    made = planned(tmp_path, jobs=f"INSERT OVERWRITE prod.party SELECT {packed} FROM prod.staff, prod.contractors;")
    assert [g for g in made["gaps"] if g["kind"] == "foreign_keys"] == []


def test_addresses_name_the_same_person_wherever_they_stand(tmp_path: Path) -> None:
    assert [g for g in planned(tmp_path, "mail", "mail")["gaps"] if g["kind"] == "foreign_keys"] == []


def test_an_identifier_that_another_source_fills_too_is_not_deleted_by_without_a_word(tmp_path: Path) -> None:
    """A supplier may have a customer's phone: his row would go with hers."""
    phones = ESTATE.replace("{column: mail, category: email}", "{column: emp_id, category: phone}")
    assert phones != ESTATE
    made = planned(
        tmp_path, estate=phones.replace("key: emp_id", "key: mail"), asked=request("employee", "a@x.example")
    )
    gap = next(g for g in made["gaps"] if g["kind"] == "foreign_keys")
    assert "party_id identifies the rows to delete, but is also filled from prod.contractors.con_id" in gap["reason"]


def test_a_column_that_a_join_makes_equal_to_the_key_is_not_foreign(tmp_path: Path) -> None:
    """The number of the other table is the person's wherever the row has the person."""
    join = "FROM prod.contractors c JOIN prod.staff s ON c.con_id = s.emp_id"
    mails = {"mail": ["a@x.example", "b@x.example", "", ""]}
    job = f"INSERT OVERWRITE prod.party SELECT c.con_id AS party_id, s.mail {join};"
    made = planned(tmp_path, jobs=job, beside=mails)
    party = next(copy for copy in made["copies"] if copy["table"] == "prod.party")
    assert [term["column"] for term in party["match"]["terms"]] == ["party_id"]
    assert [g for g in made["gaps"] if g["kind"] == "foreign_keys"] == []


ORDER, OTHER_ORDER = "20261101000000000071234", "20261101000000000090001"
DRAWN, OTHER_DRAWN = "5f0c7a0e-91d2-4c3b-8f54-0b6d1c2e9a77", "c2a4d9b1-3e77-4d0a-9b1c-7f2e5a6d8b90"
PADDED = "00000000-0000-0000-0000-000000071234"


@pytest.mark.parametrize(
    ("value", "other", "written", "gap"),
    [
        pytest.param(ORDER, OTHER_ORDER, "mail", True, id="a long number that counts"),
        pytest.param("Constantia Featherstonehaugh", "Bartholomew Cholmondeley", "mail", True, id="a long name"),
        pytest.param(PADDED, DRAWN, "mail", True, id="a number in the form of a UUID"),
        pytest.param(DRAWN, OTHER_DRAWN, "mail", False, id="a UUID"),
        pytest.param("9f86d081884c7d659a2feaa0c55ad015", OTHER_DRAWN, "mail", False, id="a digest"),
        pytest.param(DRAWN, OTHER_DRAWN, "substring(mail, 1, 8)", True, id="the beginning of a UUID"),
        pytest.param(ORDER, OTHER_ORDER, "sha2(mail, 256)", True, id="the digest of a number"),
    ],
)
def test_what_another_system_may_have_by_itself_is_foreign(
    tmp_path: Path, value: str, other: str, written: str, gap: bool
) -> None:
    """However long it is. `mail` is the key here."""
    estate = ESTATE.replace("key: emp_id", "key: mail").replace(
        "column: mail, category: email", "column: emp_id, category: phone"
    )
    made = planned(
        tmp_path,
        "mail",
        "mail",
        estate=estate,
        asked=request("employee", value),
        mails=(value, other),
        jobs=f"INSERT OVERWRITE prod.party SELECT {written} AS party_id FROM prod.staff UNION ALL SELECT mail FROM prod.contractors;",
    )
    assert bool([g for g in made["gaps"] if g["kind"] == "foreign_keys"]) is gap


@pytest.mark.parametrize(
    "through",
    [
        "CREATE VIEW prod.both AS {union};\n",
        "INSERT OVERWRITE prod.both {union};\n",
        "CREATE TEMPORARY VIEW both AS {union};\n",
    ],
)
def test_a_series_that_comes_in_on_the_way_is_foreign(tmp_path: Path, through: str) -> None:
    """A view has no rows to ask it about, and a table that was dropped has none any more."""
    union = UNION.format(mine="emp_id", theirs="con_id").partition("prod.party ")[2].rstrip(";")
    name = "both" if "TEMPORARY" in through else "prod.both"
    jobs = f"INSERT OVERWRITE prod.party SELECT party_id FROM {name};"
    gap = next(
        g
        for g in planned(tmp_path, before=through.format(union=union), jobs=jobs)["gaps"]
        if g["kind"] == "foreign_keys"
    )
    assert "party_id identifies the rows to delete, but is also filled from prod.contractors.con_id" in gap["reason"]


def foreign(made: Any) -> list[str]:
    return [gap["reason"] for gap in made["gaps"] if gap["kind"] == "foreign_keys"]


@pytest.mark.parametrize(
    "theirs",
    [
        "row_number() OVER (ORDER BY mail)",
        "71234",  # a constant that happens to be her number
    ],
)
def test_a_number_that_a_statement_makes_is_foreign(tmp_path: Path, theirs: str) -> None:
    """No edge tells of it."""
    (reason,) = foreign(planned(tmp_path, theirs="con_id", jobs=UNION.replace("{theirs}", theirs)))
    assert "is also filled from values that jobs.sql:1 generates" in reason


def test_counted_rows_of_persons_are_foreign_too(tmp_path: Path) -> None:
    """The second branch has the persons' own rows, under another number than theirs."""
    job = (
        "INSERT OVERWRITE prod.party SELECT emp_id AS party_id, mail FROM prod.staff"
        " UNION ALL SELECT row_number() OVER (ORDER BY mail), mail FROM prod.staff;"
    )
    mails = {"mail": ["a@x.example", "b@x.example", "a@x.example", "b@x.example"]}
    reasons = foreign(planned(tmp_path, jobs=job, beside=mails, first=1))
    assert any("values that jobs.sql:1 generates" in reason for reason in reasons)


def test_what_was_written_under_a_former_name_of_the_column_is_foreign(tmp_path: Path) -> None:
    jobs = (
        "INSERT INTO prod.party (pid) SELECT con_id AS pid FROM prod.contractors;\n"
        "ALTER TABLE prod.party RENAME COLUMN pid TO party_id;\n"
        "INSERT INTO prod.party SELECT emp_id AS party_id FROM prod.staff;"
    )
    assert foreign(planned(tmp_path, jobs=jobs))


@pytest.mark.parametrize(
    ("loaded", "theirs"),
    [
        pytest.param("con_id + 1000 AS emp_id, mail", "con_id", id="the key counts from elsewhere"),
        pytest.param("con_id AS emp_id, mail", "con_id + 1000", id="the copy counts from elsewhere"),
        pytest.param("5 AS emp_id, con_id AS mail", "con_id", id="it made another column of the source"),
    ],
)
def test_what_the_key_was_made_of_is_foreign_where_the_number_is_another(
    tmp_path: Path, loaded: str, theirs: str
) -> None:
    before = f"INSERT OVERWRITE prod.staff SELECT {loaded} FROM prod.contractors;\n"
    assert foreign(planned(tmp_path, before=before, jobs=UNION.replace("{theirs}", theirs)))


def test_a_column_of_their_own_for_the_other_numbers_closes_the_gap(tmp_path: Path) -> None:
    """What the gap advises."""
    jobs = (
        "INSERT OVERWRITE prod.party SELECT emp_id AS party_id, CAST(NULL AS BIGINT) AS con FROM prod.staff"
        " UNION ALL SELECT NULL, con_id FROM prod.contractors;"
    )
    made = planned(tmp_path, jobs=jobs, first=71299, beside={"con": [0, 0, 71299, 90001]})
    assert (made["gaps"], made["applyable"]) == ([], True)


def test_the_gap_says_what_to_type(tmp_path: Path) -> None:
    (reason,) = foreign(planned(tmp_path))
    assert "write {table: prod.contractors, key: con_id} under the subject's `tables`" in reason


def united(base: Path, *columns: str) -> list[str]:
    """A run without a text that unites both tables, and what it tells of each column of `party`."""
    told = {
        "party_id": [("staff", "emp_id"), ("contractors", "con_id")],
        "mail": [("staff", "mail"), ("contractors", "mail")],
    }

    def dataset(name: str) -> dict[str, Any]:
        return {"namespace": "file", "name": str(base / "w" / name)}

    fields = {
        column: {
            "inputFields": [
                {**dataset(table), "field": name, "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}]}
                for table, name in told[column]
                if (table, column) not in [tuple(one.split(".")) for one in columns]
            ]
        }
        for column in told
    }
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-11-01T00:00:00Z",
        "run": {"runId": "00000000-0000-0000-0000-000000000001"},
        "job": {"namespace": "n", "name": "unite", "facets": {}},
        "inputs": [dataset("staff"), dataset("contractors")],
        "outputs": [{**dataset("party"), "facets": {"columnLineage": {"fields": fields}}}],
    }
    (base / "e.ndjson").write_text(json.dumps(event))
    estate = ESTATE.replace("sql: [jobs.sql]", "events: [e.ndjson]")
    mails = {"mail": ["a@x.example", "b@x.example", "", ""]}
    return foreign(planned(base, estate=estate, beside=mails, first=71299))


def test_two_inputs_of_an_event_are_foreign_to_each_other(tmp_path: Path) -> None:
    (reason,) = united(tmp_path)
    assert "filled from prod.contractors.con_id" in reason


def test_a_branch_of_which_an_event_does_not_tell_the_key_is_foreign(tmp_path: Path) -> None:
    """It may have made the number itself."""
    (reason,) = united(tmp_path, "contractors.party_id")
    assert "a source that the job n:unite does not report" in reason
