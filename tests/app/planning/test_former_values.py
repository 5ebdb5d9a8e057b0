"""A person who was known by other values before: retained versions of the source tell them, and whose they are now."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from pii_tracer.cli.main import run
from planners.step_drafts import slug
from tests.cli.small import declared, request
from tests.lake.formerly import mapped
from tests.waivers import write_waivers

OLD, NEW, OTHER = "petra.alt@old.example", "petra.neu@new.example", "hans@x.example"
PHONES = ["+49 30 5550001", "+49 30 5550002", "+49 30 5550003"]
KEYS = ["K-30011", "K-30012", "K-300110"]
ESTATE = (
    declared("lake", dict.fromkeys(("s.src", "s.mail_hash", "s.calls"), "delta"))
    + """\
  - name: customer
    source: s.src
    key: cust
    identifiers: [{column: email, category: email}, {column: phone, category: phone}]
"""
)
JOBS = """\
INSERT INTO s.mail_hash SELECT sha2(lower(email), 256) AS mh, city FROM s.src;
INSERT INTO s.calls SELECT phone AS caller, city FROM s.src;
INSERT OVERWRITE DIRECTORY '{news}' USING parquet SELECT email AS to, city FROM s.src;
"""
REQUEST = request("customer", "K-30011")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The source, and what three jobs wrote from its first version."""
    mails, cities = [OLD, OTHER, "c@x.example"], ["A", "B", "C"]
    lake = tmp_path / "lake"
    write_deltalake(lake / "src", pa.table({"cust": KEYS, "email": mails, "phone": PHONES, "city": cities}))
    write_deltalake(
        lake / "mail_hash", pa.table({"mh": [sha256(m.encode()).hexdigest() for m in mails], "city": cities})
    )
    write_deltalake(lake / "calls", pa.table({"caller": PHONES, "city": cities}))
    (lake / "news").mkdir()
    pq.write_table(pa.table({"to": mails, "city": cities}), lake / "news" / "part-0.parquet")
    (tmp_path / "pii-tracer.yaml").write_text(ESTATE)
    (tmp_path / "jobs.sql").write_text(JOBS.format(news=lake / "news"))
    (tmp_path / "request.yaml").write_text(REQUEST)
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    return tmp_path


def sets(base: Path, column: str, value: str, key: str) -> None:
    DeltaTable(base / "lake" / "src").update(updates={column: f"'{value}'"}, predicate=f"cust = '{key}'")


def called(base: Path, *words: str) -> int:
    given = ["--format", "json", "--out", str(base / "r.plan.json"), "--estate", str(base / "pii-tracer.yaml")]
    return run(["plan", str(base / "request.yaml"), *given, "--state", str(base / "state"), *words])


def planned(base: Path, code: int, *words: str) -> dict[str, Any]:
    assert called(base, *words) == code
    text = (base / "r.plan.json").read_text()
    assert not any(value in text for value in (OLD, NEW, OTHER, *PHONES, KEYS[0]))
    plan: dict[str, Any] = json.loads(text)
    return plan


def rows(plan: dict[str, Any]) -> dict[str, int]:
    return {Path(c["location"]).name: c["found"]["rows"] for c in plan["copies"]}


def test_copies_that_know_only_a_former_value_are_found(base: Path) -> None:
    sets(base, "email", NEW, "K-30011")
    plan = planned(base, 0)
    assert rows(plan) == {"src": 1, "mail_hash": 1, "news": 1, "calls": 1}
    assert (plan["complete"], plan["gaps"]) == (True, [])


def test_a_value_that_was_given_to_somebody_else_is_a_gap_and_in_no_match(base: Path) -> None:
    sets(base, "phone", "+49 30 5559999", "K-30011")
    sets(base, "phone", PHONES[0], "K-30012")
    plan = planned(base, 3)
    assert "calls" not in rows(plan), "the row may be the new owner's"
    assert [(g["kind"], g["reason"]) for g in plan["gaps"]] == [
        (
            "former_value",
            "1 former value of phone cannot identify the person: somebody else has the same value, so the owner of "
            "such rows is unknown",
        )
    ]


def test_a_value_that_somebody_else_had_in_between_is_ambiguous_too(base: Path) -> None:
    sets(base, "phone", "+49 30 5559999", "K-30011")
    sets(base, "phone", PHONES[0], "K-30012")
    sets(base, "phone", "+49 30 5558888", "K-30012")
    assert [g["kind"] for g in planned(base, 3)["gaps"]] == ["former_value"]


def test_a_value_that_was_somebody_elses_before_is_shared(base: Path) -> None:
    sets(base, "phone", "+49 30 5558888", "K-30012")
    sets(base, "phone", PHONES[1], "K-30011")
    assert "shared_identifier" in {g["kind"] for g in planned(base, 3)["gaps"]}


def test_nothing_is_deleted_by_a_value_that_others_have_too(base: Path) -> None:
    """A household's phone: in a table that knows the person by it alone, the other's row is like hers."""
    sets(base, "phone", PHONES[0], "K-30012")
    plan = planned(base, 3)
    (said,) = [g["reason"] for g in plan["gaps"] if g["id"] == "gap-shared-customer-phone"]
    assert (
        "1 value of phone cannot identify the person: other people have the same value, or the value names nobody "
        "(`unknown`). The plan deletes and searches nothing by" in said
    )
    assert {g["id"] for g in plan["gaps"]} == {"gap-shared-customer-phone", "gap-shared-s.calls-caller"}
    assert "s.calls" not in {c["table"] for c in plan["copies"]}
    assert "s.calls" in {e["table"] for e in plan["examined"]}
    assert rows(plan)["src"] == 1
    waivers = write_waivers(base / "w.yaml", plan["gaps"])
    assert planned(base, 0, "--waivers", str(waivers))["applyable"]


def test_a_person_whose_row_was_deleted_is_known_from_the_versions(base: Path) -> None:
    DeltaTable(base / "lake" / "src").delete("cust = 'K-30011'")
    plan = planned(base, 0)
    assert rows(plan) == {"src": 0, "mail_hash": 1, "news": 1, "calls": 1}
    assert plan["gaps"] == []


def test_a_person_of_no_version_is_refused(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (base / "request.yaml").write_text(REQUEST.replace("K-30011", "K-99999"))
    assert called(base) == 1
    assert "s.src does not contain the person of request" in " ".join(capsys.readouterr().err.split())


def test_versions_whose_files_are_gone_are_passed_over(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets(base, "email", "b2@x.example", "K-30011")
    sets(base, "email", NEW, "K-30011")
    source = base / "lake" / "src"
    for uri in DeltaTable(source, version=0).file_uris():
        Path(uri).unlink()
    plan = planned(base, 0)
    assert "mail_hash" not in rows(plan), "nothing tells that value any more"
    assert "1 of 3 versions of s.src cannot be read any more" in " ".join(capsys.readouterr().err.split())


def test_a_former_value_under_a_column_that_was_renamed(base: Path) -> None:
    sets(base, "email", NEW, "K-30011")
    files = {name: name for name in ("cust", "phone", "city")}
    mapped(base / "lake" / "src", {**files, "email": "mail"}, {**files, "email": "email"})
    plan = planned(base, 0)
    assert (rows(plan)["mail_hash"], rows(plan)["news"], plan["gaps"]) == (1, 1, [])


def test_versions_that_are_there_and_cannot_be_read_are_a_gap(base: Path) -> None:
    source = base / "lake" / "src"
    (first,) = (Path(uri) for uri in DeltaTable(source).file_uris())
    sets(base, "email", NEW, "K-30011")
    first.write_bytes(b"PAR1 torn PAR1")
    plan = planned(base, 3)
    (gap,) = [g for g in plan["gaps"] if g["kind"] == "former_unread"]
    assert gap["id"] == f"gap-former_unread-customer-{slug(str(source))}"
    assert "1 of 2 versions of s.src could not be read, although the files exist" in gap["reason"]
    assert "would remain in 3 datasets" in gap["reason"]


def test_where_lineage_follows_the_key_alone_there_is_no_such_gap(base: Path) -> None:
    (base / "jobs.sql").write_text("INSERT INTO s.calls SELECT cust AS caller, city FROM s.src;")
    shutil.rmtree(base / "lake" / "calls")
    write_deltalake(base / "lake" / "calls", pa.table({"caller": KEYS, "city": ["A", "B", "C"]}))
    (first,) = (Path(uri) for uri in DeltaTable(base / "lake" / "src").file_uris())
    sets(base, "email", NEW, "K-30011")
    first.write_bytes(b"PAR1 torn PAR1")
    assert planned(base, 0)["gaps"] == []
