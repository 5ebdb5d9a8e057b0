"""Rows that name two persons: a payment with payer and payee, a message, a user and who referred her."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request
from tests.planners.smalllake import hold
from tests.s3support import REGION, World, standin, world
from tests.waivers import write_waivers

__all__ = ["standin", "world"]

LONG = (5511223344, 5511223345, 5511223346)
SHORT = (71234, 71235, 71236)
SUBJECT = "  - name: user\n    source: app.users\n    key: user_id\n"
PAYER = "    tables: [{table: pay.transfers, key: payer_id}]\n"
BOTH = "{table: pay.transfers, key: payer_id, row: %s, other_keys: [{column: payee_id, row: %s%s}]}"
PAYEE = f"    tables: [{BOTH}]\n"
REFERRED = "    other_keys: [{column: referred_by, row: keep}]\n"


def planned(
    base: Path,
    more: str,
    keys: tuple[int, int, int] = LONG,
    *words: str,
    referred: bool = False,
    report: str = "",
    schema: pa.Schema | None = None,
    parts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Of each of two persons one payment goes to the other.

    more: of the subject. report: the job that writes one. parts: of the estate file.
    """
    one, two, three = keys
    (base / "w").mkdir(exist_ok=True)
    users = {"user_id": [one, two, three]} | ({"referred_by": [None, one, None]} if referred else {})
    write_deltalake(base / "w" / "users", pa.table(users))
    rows = {
        "payer_id": [one, two, three],
        "payee_id": [two, one, two],
        "payee_name": ["b", "Asha", "b"],
        "n": [7, 8, 9],
    }
    write_deltalake(base / "w" / "transfers", pa.table(rows, schema))
    tables = dict.fromkeys(("app.users", "pay.transfers"), "delta")
    if report:
        tables["pay.report"] = "delta"
        write_deltalake(base / "w" / "report", pa.table({"who": [two, one, two], "n": [7, 8, 9]}))
    (base / "pii-tracer.yaml").write_text(
        declared("w", tables) + SUBJECT + more + (yaml.safe_dump(parts) if parts else "")
    )
    (base / "jobs.sql").write_text(report or "SELECT 1;\n")
    (base / "request.yaml").write_text(request("user", str(one)))
    (base / "policy.yaml").write_text("version: 1\n")
    out = base / "p.plan.json"
    code = called(base, "plan", str(base / "request.yaml"), "--out", str(out), *words)
    plan: dict[str, Any] = json.loads(out.read_bytes())
    assert code == (ExitCode.DONE if plan["complete"] else ExitCode.INCOMPLETE)
    assert not any(str(key) in out.read_text() for key in LONG)
    return plan


def copy_of(plan: dict[str, Any], name: str) -> dict[str, Any]:
    return next(c for c in plan["copies"] if c["id"] == f"c-{name}")


def actions(plan: dict[str, Any], name: str) -> list[str]:
    return [s["action"] for s in plan["steps"] if s["copy"] == f"c-{name}"]


def columns(match: dict[str, Any] | None) -> list[str]:
    return [term["column"] for term in match["terms"]] if match else []


@pytest.mark.parametrize("keys", [LONG, SHORT])
@pytest.mark.parametrize(("more", "column"), [(PAYER, "payee_id"), ("", "referred_by")])
def test_a_second_key_that_nobody_told_is_a_gap(
    tmp_path: Path, keys: tuple[int, int, int], more: str, column: str
) -> None:
    """A short key was taken for another thing's number there, and the plan was complete."""
    plan = planned(tmp_path, more, keys, referred=column == "referred_by")
    (gap,) = (g for g in plan["gaps"] if column in g["reason"])
    assert gap["kind"] == "others_rows"
    assert "other_keys" in gap["evidence"]
    assert not plan["applyable"]


@pytest.mark.parametrize("said", ["", ", row: keep"])
def test_keys_of_which_nobody_says_whose_the_row_is_block(
    tmp_path: Path, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = f"    tables: [{{table: pay.transfers, key: payer_id, other_keys: [{{column: payee_id{said}}}]}}]\n"
    plan = planned(tmp_path, more)
    (gap,) = plan["gaps"]
    named = "payer_id" if said else "payer_id, payee_id"
    assert gap["kind"] == "several_persons"
    assert f"the estate file does not declare whose the row is when {named} names the person" in gap["reason"]
    assert "`row: delete`" in gap["reason"]
    assert copy_of(plan, "pay.transfers")["strategy"] == "blocked"
    assert actions(plan, "pay.transfers") == []
    waivers = write_waivers(tmp_path / "waivers.yaml", [gap])
    file = str(tmp_path / "p.plan.json")
    again = ("plan", str(tmp_path / "request.yaml"), "--out", file, "--waivers", str(waivers))
    assert called(tmp_path, *again) == ExitCode.DONE
    assert not json.loads(Path(file).read_bytes())["applyable"]
    capsys.readouterr()
    assert called(tmp_path, "check", file) == ExitCode.POLICY_DENIED
    assert "1 copy is blocked, and no waiver frees a copy: pay.transfers" in capsys.readouterr().out
    who = ("--approver", "B. Officer", "--role", "officer", "--reason", "r", "--unsigned")
    assert called(tmp_path, "approve", file, *who) == ExitCode.NOT_APPROVED
    told = capsys.readouterr().err
    assert "no waiver frees a copy: pay.transfers" in told
    assert "docs/gaps.md#blocked-copies" in told


@pytest.mark.parametrize("keys", [LONG, SHORT])
def test_the_payers_rows_go_and_the_payee_is_cleared(tmp_path: Path, keys: tuple[int, int, int]) -> None:
    plan = planned(tmp_path, PAYEE % ("delete", "keep", ", clears: [payee_name]"), keys)
    assert plan["complete"], plan["gaps"]
    copy = copy_of(plan, "pay.transfers")
    assert (copy["strategy"], columns(copy["match"])) == ("delete_by_key", ["payer_id"])
    (mention,) = copy["mentions"]
    assert columns(mention["match"]) == ["payee_id"]
    assert mention["mask"] == {"columns": ["payee_id", "payee_name"], "held": [], "found_by": ["payer_id", "n"]}
    assert actions(plan, "pay.transfers")[:2] == ["delta_mask_rows", "delta_delete_rows"]
    assert "payee_id, payee_name become NULL" in copy["reason"]
    assert copy["found"]["rows"] == 1


def test_rows_of_which_no_key_is_the_owner_all_stay(tmp_path: Path) -> None:
    plan = planned(tmp_path, PAYEE % ("keep", "keep", ""))
    copy = copy_of(plan, "pay.transfers")
    assert (copy["strategy"], copy["match"]) == ("clear_mentions", None)
    assert actions(plan, "pay.transfers")[:3] == ["delta_mask_rows", "delta_mask_rows", "delta_purge"]
    assert plan["applyable"]


def test_each_of_two_owners_takes_the_row_along(tmp_path: Path) -> None:
    copy = copy_of(planned(tmp_path, PAYEE % ("delete", "delete", "")), "pay.transfers")
    assert (columns(copy["match"]), copy["mentions"]) == (["payee_id", "payer_id"], [])
    assert copy["found"]["rows"] == 2


def test_who_referred_somebody_is_cleared_in_the_source(tmp_path: Path) -> None:
    plan = planned(tmp_path, REFERRED + PAYEE % ("delete", "keep", ""), referred=True)
    assert plan["complete"], plan["gaps"]
    copy = copy_of(plan, "app.users")
    assert (columns(copy["match"]), columns(copy["mentions"][0]["match"])) == (["user_id"], ["referred_by"])


def test_what_cannot_become_null_blocks(tmp_path: Path) -> None:
    names = ("payer_id", "payee_id", "payee_name", "n")
    kinds = [pa.field(n, pa.string() if n == "payee_name" else pa.int64(), n != "payee_id") for n in names]
    plan = planned(tmp_path, PAYEE % ("delete", "keep", ""), schema=pa.schema(kinds))
    (gap,) = plan["gaps"]
    assert gap["kind"] == "several_persons"
    assert "payee_id is NOT NULL: it cannot become NULL in kept rows" in gap["reason"]
    assert not plan["applyable"]


@pytest.mark.parametrize(
    ("jobs", "strategy"),
    [
        ("INSERT OVERWRITE pay.report SELECT payee_id AS who, n FROM pay.transfers;\n", "rebuild"),
        ("INSERT INTO pay.report SELECT payee_id AS who, n FROM pay.transfers;\n", "blocked"),
    ],
)
@pytest.mark.parametrize("fates", [("delete", "keep"), ("keep", "keep"), ("delete", "delete")])
def test_what_is_made_of_such_rows_is_never_deleted_by_one_of_the_keys(
    tmp_path: Path, jobs: str, strategy: str, fates: tuple[str, str]
) -> None:
    plan = planned(tmp_path, PAYEE % (*fates, ""), report=jobs)
    assert copy_of(plan, "pay.report")["strategy"] == strategy
    assert plan["applyable"] is (strategy == "rebuild")


def test_what_is_made_of_such_rows_can_be_told_in_the_same_way(tmp_path: Path) -> None:
    told = f"    tables: [{BOTH % ('delete', 'keep', '')}, {{table: pay.report, key: who, row: keep}}]\n"
    plan = planned(tmp_path, told, report="INSERT INTO pay.report SELECT payee_id AS who, n FROM pay.transfers;\n")
    assert copy_of(plan, "pay.report")["strategy"] == "clear_mentions"
    assert plan["complete"], plan["gaps"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            "    tables: [{table: t, key: a}, {table: t, key: b}]\n",
            "t: twice among the source and the further `tables` of user",
        ),
        (
            "    tables: [{table: t, key: a, other_keys: [{column: A, row: keep}]}]\n",
            "a must appear only once in `key`",
        ),
        ("    tables: [{table: t, key: a, other_keys: [{column: b, clears: [c]}]}]\n", "write `row: keep`"),
        ("    tables: [{table: t, key: a, row: keep, record_keys: [r]}]\n", "rows of t stay"),
        ("    other_keys: [{column: referred_by, row: delete}]\n", "belong to the person in `user_id`"),
        ("    other_keys: [{column: referred_by, row: perhaps}]\n", "'delete' or 'keep'"),
    ],
)
def test_what_the_estate_file_cannot_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, told: str
) -> None:
    (tmp_path / "pii-tracer.yaml").write_text(declared("w", {"app.users": "delta"}) + SUBJECT + more)
    (tmp_path / "w").mkdir()
    assert called(tmp_path, "inventory") == ExitCode.ERROR
    assert told in capsys.readouterr().err


def test_a_column_to_clear_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileNotFoundError):
        planned(tmp_path, PAYEE % ("delete", "keep", ", clears: [payee_mane]"))
    assert "pay.transfers has no column payee_mane" in capsys.readouterr().err


@pytest.mark.parametrize("whole", [False, True])
def test_archives_of_such_a_table_are_not_rewritten(tmp_path: Path, world: World, whole: bool) -> None:
    bucket = world.new("transfers")
    world.put(bucket, "t/a.parquet", b"x")
    archive = {"name": "old", "of": "pay.transfers", "bucket": bucket, "prefix": "t/", "format": "parquet"}
    archive |= {"delete_whole": "nobody needs them"} if whole else {}
    parts = {"s3": {"endpoint_url": world.endpoint_url, "region": REGION}, "archives": [archive]}
    plan = planned(tmp_path, PAYEE % ("delete", "keep", ""), parts=parts)
    (copy,) = (c for c in plan["copies"] if c["kind"] == "ARCHIVE")
    assert (copy["strategy"], copy["mentions"]) == ("delete_archives" if whole else "blocked", [])
    assert [g["kind"] for g in plan["gaps"]] == ([] if whole else ["several_persons"])


@pytest.mark.parametrize(("columns", "gaps"), [((), []), (("n",), ["hold_keeps_rest"])])
def test_a_hold_keeps_such_a_table_whole(tmp_path: Path, columns: tuple[str, ...], gaps: list[str]) -> None:
    parts = {"holds": [hold("pay.transfers", columns=list(columns))]}
    plan = planned(tmp_path, PAYEE % ("delete", "keep", ""), parts=parts)
    copy = copy_of(plan, "pay.transfers")
    assert (copy["strategy"], copy["match"], copy["mentions"]) == ("exempt", None, [])
    assert [g["kind"] for g in plan["gaps"]] == gaps
