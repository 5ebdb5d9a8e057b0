"""Bare folders in S3: declared, their objects are written again without the person, and old versions deleted."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.model.errors import ExitCode
from planners.formats.base import BY_ITS_JOB
from tests.app.planning.test_lake_plan import copies, steps
from tests.app.planning.test_nested_subject import called
from tests.app.planning.test_remote import (
    MAIL,
    OTHERS,
    PEOPLE,
    PERSON,
    Shop,
    store,
)
from tests.storeservers import Store, signed
from tests.waivers import write_waivers

__all__ = ["signed", "store"]

FEED = "INSERT INTO shop.leads SELECT uid, mail FROM shop.people;\n"
ON = FEED + "INSERT INTO shop.calls SELECT uid, mail FROM shop.leads;\n"
CSV = f"uid,mail\n{PERSON},{MAIL}\n4417700103,b@x.example\n".encode()


_numbers = iter(range(1000))


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Shop:
    return Shop(tmp_path, store, f"bare-{next(_numbers)}", jobs=FEED)


def parquet(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return sink.getvalue()


def why(shop: Shop, folder: str) -> str:
    """Why nothing is erased in a folder: its gap."""
    reason: str = shop.gaps()[f"s3://{shop.bucket}/{folder}"]["reason"]
    return reason.partition("is not erased: ")[2].partition(";")[0]


def test_it_is_a_copy_of_its_name_with_all_versions(shop: Shop) -> None:
    folder = shop.bare("shop.leads", "parquet")
    shop.put(f"{folder}/1.parquet", parquet(PEOPLE))
    shop.put(f"{folder}/1.parquet", parquet(PEOPLE))
    shop.put(f"{folder}/_SUCCESS", b"")
    shop.put(f"{folder}2/1.parquet", parquet(PEOPLE))
    plan = shop.plan()
    assert plan["gaps"] == []
    current, old = (c for c in plan["copies"] if c["table"] == "shop.leads")
    assert (current["kind"], current["location"]) == ("ARCHIVE", f"s3://{shop.bucket}/{folder}/")
    assert (current["found"]["rows"], current["lineage"]) == (1, ["shop.people", "shop.leads"])
    assert (old["kind"], old["origin"]) == ("OBJECT_VERSION", current["id"])
    rewrite, delete, _ = steps_of(plan, current["id"])
    assert (rewrite["action"], delete["action"]) == ("s3_rewrite_archive", "s3_delete_versions")
    keys = {o["key"] for o in rewrite["parameters"]["objects"]}
    assert keys == {f"{folder}/1.parquet", f"{folder}/_SUCCESS"}
    [source] = [s["id"] for s in steps(plan, "shop.people") if s["action"] == "files_rewrite"]
    assert source in rewrite["depends_on"], "the job that fills it would bring the person back"


def steps_of(plan: dict[str, Any], copy: str) -> list[dict[str, Any]]:
    return [step for step in plan["steps"] if step["copy"] == copy]


def test_a_former_version_alone_makes_it_a_copy(shop: Shop) -> None:
    folder = shop.bare("shop.leads", "csv")
    shop.put(f"{folder}/1.csv", CSV)
    shop.put(f"{folder}/1.csv", b"uid,mail\n4417700103,b@x.example\n")
    plan = shop.plan()
    assert [c["kind"] for c in plan["copies"] if c["table"] == "shop.leads"] == ["ARCHIVE", "OBJECT_VERSION"]


def test_one_without_the_person_is_examined(shop: Shop) -> None:
    folder = shop.bare("shop.leads", "parquet")
    shop.put(f"{folder}/1.parquet", parquet(OTHERS))
    plan = shop.plan()
    assert (set(copies(plan)), plan["gaps"]) == ({"shop.people"}, [])
    [told] = [e for e in plan["examined"] if e["table"] == "shop.leads"]
    assert "every file was decoded, and no file contains data of the person" in told["reason"]


def test_what_is_made_of_it_waits_for_it(shop: Shop) -> None:
    shop.jobs = ON
    folder = shop.bare("shop.leads", "parquet")
    shop.put(f"{folder}/1.parquet", parquet(PEOPLE))
    place = shop.bare("shop.calls", "csv")
    shop.put(f"{place}/1.csv", CSV)
    plan = shop.plan()
    assert plan["gaps"] == []
    first = {c["table"]: steps_of(plan, c["id"])[0] for c in plan["copies"]}
    assert first["shop.leads"]["id"] in first["shop.calls"]["depends_on"]


def test_a_value_in_somebody_elses_row_is_told_before_the_run(shop: Shop) -> None:
    folder = shop.bare("shop.leads", "csv")
    shop.put(f"{folder}/1.csv", CSV + f'4417700104,"friend of {MAIL}"\n'.encode())
    kinds = {g["kind"]: g["reason"] for g in shop.plan()["gaps"]}
    assert set(kinds) == {"others_rows"}
    assert "1 row" in kinds["others_rows"]


@pytest.mark.parametrize(
    ("key", "body", "told"),
    [
        ("notes.csv", CSV, "it contains objects of different formats (csv)"),
        ("_metadata", b"PAR1", "1 object other than data files that engines read: bare/leads/_metadata"),
        ("old/1.parquet", parquet(PEOPLE), "read: bare/leads/old/1.parquet, in a folder that is not `column=value`"),
        ("2.parquet", b"PAR1 torn", "a parquet file cannot be read: ArrowInvalid"),
        ("2.parquet", parquet(pa.table({"n": [1]})), "files of this folder have no common column"),
    ],
)
def test_what_else_lies_there_keeps_it_from_being_written(shop: Shop, key: str, body: bytes, told: str) -> None:
    folder = shop.bare("shop.leads", "parquet")
    shop.put(f"{folder}/1.parquet", parquet(PEOPLE))
    shop.put(f"{folder}/{key}", body)
    assert told in why(shop, folder)


def test_one_that_no_lineage_explains_was_searched_and_is_no_archive(shop: Shop) -> None:
    shop.jobs = ""
    folder = shop.bare("shop.leads", "csv")
    shop.put(f"{folder}/1.csv", CSV)
    plan = shop.plan()
    assert [g["kind"] for g in plan["gaps"]] == ["unexpected_copy"]
    [told] = [item["reason"] for item in plan["examined"] if "leads" in item["reason"]]
    assert "contains the objects of shop.leads" in told
    assert told.endswith("and was searched together with it")


def test_one_that_is_not_there_yet(shop: Shop) -> None:
    folder = shop.bare("shop.leads", "parquet")
    assert why(shop, folder) == "it contains no data file"


def test_it_cannot_tell_who_the_persons_are(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shop.bare("shop.buyers", "parquet")
    shop.put(f"{folder}/1.parquet", parquet(PEOPLE))
    shop.write()
    file = shop.base / "pii-tracer.yaml"
    file.write_text(file.read_text().replace("source: shop.people,", "source: shop.buyers,"))
    assert called(shop.base, "plan", str(shop.base / "request.yaml")) == ExitCode.ERROR
    assert (
        "the table shop.buyers of subject `user` lies in S3, where its rows cannot be read" in capsys.readouterr().err
    )


def test_a_recorded_statement_does_not_write_one(shop: Shop) -> None:
    """Totals cannot be erased by rows, and nothing writes such a folder again as a whole."""
    shop.jobs = "INSERT OVERWRITE shop.leads SELECT count(uid) AS n, max(mail) AS latest FROM shop.people;\n"
    folder = shop.bare("shop.leads", "parquet")
    shop.put(f"{folder}/1.parquet", parquet(pa.table({"n": [3], "latest": [MAIL]})))
    plan = shop.plan()
    assert copies(plan)["shop.leads"]["strategy"] == "blocked"
    assert steps(plan, "shop.leads") == []
    assert {g["kind"]: g["reason"] for g in plan["gaps"]} == {
        "cannot_be_proved": f"rebuilding a bare parquet folder in S3 is not supported yet: {BY_ITS_JOB}"
    }


def test_no_column_of_rows_that_stay_is_cleared(shop: Shop) -> None:
    friends = PEOPLE.append_column("friend", pa.array([PERSON + 2, PERSON, PERSON + 1]))
    pq.write_table(friends, shop.base / "w" / "people" / "1.parquet")
    told = "{table: shop.leads, key: uid, row: delete, other_keys: [{column: friend, row: keep}]}"
    shop.subject += f", tables: [{told}]"
    shop.jobs = "INSERT INTO shop.leads SELECT uid, friend FROM shop.people;\n"
    folder = shop.bare("shop.leads", "parquet")
    shop.put(f"{folder}/1.parquet", parquet(friends.select(["uid", "friend"])))
    plan = shop.plan()
    assert copies(plan)["shop.leads"]["strategy"] == "blocked"
    [told] = [g["reason"] for g in plan["gaps"] if g["kind"] == "several_persons"]
    assert (
        "no step clears columns of kept rows in a bare folder in S3: friend. Declare `row: delete` for each key column"
        in told
    )


@pytest.mark.parametrize(
    ("query", "text", "offered"),
    [
        ("count(uid) AS n", "n\n7\n", True),
        ("length(mail) AS size, count(uid) AS n FROM shop.people GROUP BY length(mail)", "size,n\n7,7\n", False),
        ("max(mail) AS last, count(uid) AS n", f"last,n\n{MAIL},7\n", False),
        ("min(uid) AS first, count(uid) AS n", f"first,n\n{PERSON},7\n", False),
        ("concat_ws(' ', collect_list(mail)) AS mails", "mails\nb@x.example\n", False),
        ("count(uid) AS n", f"n\n7\n{PERSON}\n", False),
    ],
)
def test_only_aggregates_without_any_identifier_are_computed_again_by_their_owner(
    shop: Shop, query: str, text: str, offered: bool
) -> None:
    shop.jobs = f"INSERT OVERWRITE shop.leads SELECT {query}{'' if ' FROM ' in query else ' FROM shop.people'};\n"
    folder = shop.bare("shop.leads", "csv")
    shop.put(f"{folder}/1.csv", text.encode())
    plan = shop.plan()
    [copy] = [c for c in plan["copies"] if c["table"] == "shop.leads"]
    [gap] = [g for g in plan["gaps"] if g["id"] == "gap-no_way-shop.leads"]
    assert copy["strategy"] == "blocked"
    assert ("run the job of shop.leads again" in gap["reason"]) is offered
    waivers = write_waivers(shop.base / "w.yaml", plan["gaps"], task={"owner": "sales", "act": "run it again"})
    file = shop.base / "w.plan.json"
    called(shop.base, "plan", str(shop.base / "request.yaml"), "--out", str(file), "--waivers", str(waivers))
    [copy] = [c for c in json.loads(file.read_text())["copies"] if c["table"] == "shop.leads"]
    assert copy["strategy"] == ("recomputed" if offered else "blocked")
