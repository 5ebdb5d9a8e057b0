"""Plans for a key of several columns: one person's rows, in which copies, and what is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.config.estate_file import load_estate
from pii_tracer.model.datasets import KeySet, MatchTerm
from pii_tracer.model.errors import ConfigError, ExitCode, ScanError
from pii_tracer.scan.value_forms import build_patterns
from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request

SUBJECT = """\
  - name: user
    source: app.users
    key: [tenant_id, user_id]
    identifiers: [{column: email, category: email}]
"""
USERS: Mapping[str, Sequence[Any]] = {
    "tenant_id": [4, 5, 4, 4, None],
    "user_id": [17, 17, 18, 17, 17],
    "email": ["asha@north.example", "ben@south.example", "chen@north.example", "asha@north.example", None],
}
ORDERS: Mapping[str, Sequence[Any]] = {"tenant_id": [4, 5, 5], "user_id": [17, 17, 18], "total": [1, 2, 3]}
LOGINS: Mapping[str, Sequence[Any]] = {"user_id": [17, 17, 18], "day": ["a", "b", "c"]}
VALUES = ("asha@", "ben@", "chen@", "1:42:17")
JOBS = "INSERT INTO app.orders SELECT tenant_id, user_id, 1 FROM app.users;\n"


def key(**columns: str) -> str:
    return json.dumps(columns)


def run(
    base: Path, asked: str, *words: str, more: str = "", jobs: str = JOBS, **tables: Mapping[str, Sequence[Any]]
) -> int:
    (base / "w").mkdir(exist_ok=True)
    every = {"users": USERS, **tables}
    for name, rows in every.items():
        write_deltalake(base / "w" / name, pa.table(dict(rows)), mode="overwrite")
    (base / "pii-tracer.yaml").write_text(declared("w", {f"app.{name}": "delta" for name in every}) + SUBJECT + more)
    (base / "jobs.sql").write_text(jobs)
    (base / "request.yaml").write_text(request("user", "KEY").replace("'KEY'", asked).replace("KEY", asked))
    (base / "policy.yaml").write_text("version: 1\n")
    return called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json"), *words)


def planned(base: Path, *words: str, **more: Any) -> dict[str, Any]:
    code = run(base, key(tenant_id="4", user_id="17"), *words, **more)
    text = (base / "p.plan.json").read_text()
    plan: dict[str, Any] = json.loads(text)
    assert code == (ExitCode.DONE if plan["complete"] else ExitCode.INCOMPLETE)
    assert not any(value in text for value in VALUES)
    return plan


def copies(plan: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {copy["table"]: copy for copy in plan["copies"] if copy["origin"] is None}


def test_one_persons_rows_are_planned_and_nobody_elses(tmp_path: Path) -> None:
    """By `user_id` alone they were four rows of three persons."""
    plan = planned(tmp_path, orders=ORDERS)
    assert (plan["gaps"], plan["complete"]) == ([], True)
    found = copies(plan)
    assert {name: copy["found"]["rows"] for name, copy in found.items()} == {"app.users": 2, "app.orders": 1}
    (term,) = found["app.orders"]["match"]["terms"]
    assert (term["column"], [part["column"] for part in term["beside"]]) == ("tenant_id", ["user_id"])
    assert term["key_set"] == "user.(tenant_id, user_id)"


def test_a_copy_is_never_clean_because_its_bytes_show_nobody(tmp_path: Path) -> None:
    """The orders of today are others': what is looked for in bytes could not have told either way."""
    others = {"tenant_id": [5], "user_id": [17], "total": [2]}
    assert copies(planned(tmp_path, orders=others))["app.orders"]["strategy"] == "delete_by_key"


def test_a_copy_that_lost_the_tenant_is_blocked_by_name(tmp_path: Path) -> None:
    plan = planned(tmp_path, logins=LOGINS, jobs="INSERT INTO app.logins SELECT user_id, 'x' FROM app.users;\n")
    assert copies(plan)["app.logins"]["strategy"] == "blocked"
    (gap,) = plan["gaps"]
    assert "user_id is copied here, but not tenant_id" in gap["evidence"]


def test_columns_of_the_key_that_no_lineage_explains_are_a_gap(tmp_path: Path) -> None:
    plan = planned(tmp_path, orders=ORDERS, jobs="SELECT 1;\n")
    (gap,) = plan["gaps"]
    assert (gap["kind"], gap["id"]) == ("key_of_several", "gap-key_of_several-user-app.orders")
    assert "tenant_id, user_id" in gap["reason"]


def test_a_further_table_has_the_same_columns(tmp_path: Path) -> None:
    more = "    tables: [{table: app.orders, key: [tenant_id, user_id]}]\n"
    plan = planned(tmp_path, more=more, orders=ORDERS, jobs="SELECT 1;\n")
    assert (plan["gaps"], copies(plan)["app.orders"]["found"]["rows"]) == ([], 1)


WRONG = {
    "one value": ("'17'", "the request leaves out tenant_id, user_id", "write `key: {tenant_id: '…', user_id: '…'}`"),
    "a column is missing": (key(user_id="17"), "leaves out tenant_id", "write `key:"),
    "a column too many": (
        key(tenant_id="4", user_id="17", shop="1"),
        "names 1 column that does not belong to it",
        "write",
    ),
    "a bare number": ("{tenant_id: 4, user_id: '17'}", "put the key in quotes", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_request_says_all_columns(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    asked, *words = WRONG[name]
    assert run(tmp_path, asked) not in (ExitCode.DONE, ExitCode.INCOMPLETE)
    told = " ".join(capfd.readouterr().err.split())
    assert all(word in told for word in words)


def test_a_person_of_another_tenant_is_not_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, key(tenant_id="5", user_id="18"), orders=ORDERS) not in (ExitCode.DONE, ExitCode.INCOMPLETE)
    assert "no row has this (tenant_id, user_id)" in " ".join(capfd.readouterr().err.split())


REFUSED = {
    "one column in brackets": ("[user_id]", "", "needs at least two different columns"),
    "a column twice": ("[user_id, USER_ID]", "", "needs at least two different columns"),
    "a column that is an identifier": ("[email, user_id]", "", "email must appear only once"),
    "other keys": ("[tenant_id, user_id]", "    other_keys: [{column: by, row: keep}]\n", "`other_keys` beside a key"),
    "a further table with one column": (
        "[tenant_id, user_id]",
        "    tables: [{table: app.orders, key: user_id}]\n",
        "the key of app.orders has 1 column, and the key of app.users has 2",
    ),
    "a canary": (
        "[tenant_id, user_id]",
        "readiness: {canaries: [{name: c, subject: user, key: 'env:CANARY'}]}\n",
        "the key of a canary's subject must have one column",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_takes_one_column_is_refused_with_the_estate_file(tmp_path: Path, name: str) -> None:
    columns, more, why = REFUSED[name]
    file = tmp_path / "pii-tracer.yaml"
    subject = SUBJECT.replace("[tenant_id, user_id]", columns)
    file.write_text(declared("w", {"app.users": "delta", "app.orders": "delta"}) + subject + more)
    with pytest.raises(ConfigError) as refusal:
        load_estate(file)
    assert why in refusal.value.what


def test_a_key_of_one_column_is_written_in_plans_as_before() -> None:
    term = MatchTerm(column="user_id", key_set="user.user_id", type="bigint")
    assert term.model_dump() == {"column": "user_id", "access": (), "key_set": "user.user_id", "type": "bigint"}
    assert "columns" not in KeySet(name="k", origin="k", weak=False, values=()).model_dump()


def test_no_bytes_are_searched_for_the_text_of_a_key() -> None:
    """`1:42:17` is a time of day in most logs."""
    whole = KeySet(
        name="user.(tenant_id, user_id)", origin="k", weak=False, values=(("p", "1:42:17"),), columns=("a", "b")
    )
    mail = KeySet(name="user.email", origin="email", weak=False, values=(("p", "asha@north.example"),))
    assert build_patterns([whole, mail]).mask("asha@north.example at 1:42:17").endswith(" at 1:42:17")
    with pytest.raises(ScanError, match="no values to search for"):
        build_patterns([whole])
