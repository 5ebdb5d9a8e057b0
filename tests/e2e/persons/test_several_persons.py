"""Rows that name two persons, from plan to attestation: one's go, the other's stay without her, and nobody's are lost."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.cli.main import run
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import Copy
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.verify.row_checks import Verifier, compare
from tests.e2e import exchange
from tests.e2e.exchange import NAME, PERSON, THREE, TWO, USER
from tests.leaks import leaks

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]


@dataclass(frozen=True)
class Run:
    """What the run left."""

    base: Path
    codes: list[int]
    plan: dict[str, Any]
    result: dict[str, Any]


def cli(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


@pytest.fixture(scope="module")
def done(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    base = tmp_path_factory.mktemp("exchange")
    exchange.build(base, spark)
    for name in exchange.names():
        assert exchange.text(exchange.read(base, spark, name)) == exchange.text(exchange.rows(name)), name
    public = generate(base / "key.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
    file, result = base / "p.plan.json", base / "result.json"
    options = ["--retention", "immediate", "--reason", "test", "--out", str(file), "--format", "json"]
    codes = [cli(base, "plan", str(base / "request.yaml"), *options)]
    signed = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "key.pem")]
    codes.append(cli(base, "approve", str(file), *signed))
    codes.append(cli(base, "apply", str(file), "--trusted", str(base / "approvers.yaml"), "--result", str(result)))
    codes.append(cli(base, "verify", str(file)))
    plan = json.loads(file.read_text())
    assert codes == [0, 0, 0, 0], [plan["gaps"], json.loads(result.read_text()) if result.exists() else None]
    return Run(base, codes, plan, json.loads(result.read_text()))


@pytest.mark.parametrize("name", exchange.names())
def test_rows_of_the_person_are_gone_and_all_others_are_there(done: Run, spark: Any, name: str) -> None:
    assert exchange.text(exchange.read(done.base, spark, name)) == exchange.text(exchange.left(name))


@pytest.mark.parametrize("ref", ["branch_audit", "tag_q1"])
def test_branches_and_tags_are_treated_alike(done: Run, spark: Any, ref: str) -> None:
    found = exchange.read(done.base, spark, f"ex.core.gifts.{ref}")
    assert exchange.text(found) == exchange.text(exchange.left("ex.core.gifts"))


def test_who_was_referred_stays_and_by_whom_is_gone(done: Run, spark: Any) -> None:
    users = sorted(map(tuple, spark.table("app.users").collect()))
    assert users == [(TWO, None), (THREE, TWO)]


def test_the_result_says_it_and_claims_no_more(done: Run) -> None:
    result = done.result
    assert (result["state"], result["residue"], result["unverified"]) == ("complete", [], [])
    assert result["bystander_rows_lost"] == 0
    assert (result["copies_total"], result["copies_erased"], result["copies_exempt"]) == (
        *[len(exchange.names()) + 1] * 2,
        0,
    )
    strategies = {c["table"]: c["strategy"] for c in done.plan["copies"] if c["origin"] is None}
    owned = {"app.users", *exchange.OWNED}
    assert strategies == {n: "delete_by_key" if n in owned else "clear_mentions" for n in strategies}
    envelope = json.loads(Path(result["attestation"]).read_text())
    predicate = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    assert predicate["exceptions"] == []
    key = str(done.base / "state" / "keys" / "attest.pem.pub")
    assert run(["attest", "verify", result["attestation"], "--key", key]) == 0
    assert leaks(PERSON, [done.base / "state", *done.base.glob("p.plan*"), done.base / "result.json"]) == []


def test_nothing_of_the_person_is_in_any_file(done: Run) -> None:
    for path in (p for folder in ("tables", "warehouse") for p in (done.base / folder).rglob("*") if p.is_file()):
        assert USER.encode() not in path.read_bytes(), path
        assert NAME.encode() not in path.read_bytes(), path


def test_a_mention_that_comes_back_is_found(done: Run, spark: Any) -> None:
    """Last: it changes the table."""
    spark.sql(f"INSERT INTO pay.transfers VALUES (99, '{THREE}', '{USER}', 'x', 1)")
    assert cli(done.base, "verify", str(done.base / "p.plan.json")) == 9


@pytest.mark.parametrize(
    ("act", "lost", "equal"),
    [
        ("UPDATE {t} SET payee = NULL, name = NULL WHERE payee = 'U-1'", 0, True),
        ("UPDATE {t} SET payee = NULL WHERE payee = 'U-1'", 0, False),
        ("UPDATE {t} SET payee = NULL, name = NULL", 0, False),
        ("DELETE FROM {t} WHERE payee = 'U-1'", 1, False),
    ],
)
def test_the_verifier_counts_rows_that_stay(spark: Any, tmp_path: Path, act: str, lost: int, equal: bool) -> None:
    """The row of another person that named her has to be there, without her and what says more of her."""
    spark.sql("CREATE DATABASE IF NOT EXISTS pay")
    spark.sql("DROP TABLE IF EXISTS pay.counted")
    spark.sql(f"CREATE TABLE pay.counted (payer STRING, payee STRING, name STRING) USING delta LOCATION '{tmp_path}/t'")
    spark.sql("INSERT INTO pay.counted VALUES ('U-1', 'U-2', 'b'), ('U-2', 'U-1', 'a'), ('U-2', 'U-3', 'c')")
    keys = KeySet(name="user.id", origin="id", weak=False, values=(("subj", "U-1"),))

    def term(column: str) -> dict[str, Any]:
        return {"terms": [{"column": column, "key_set": "user.id", "type": "string"}]}

    mask = {"columns": ["payee", "name"], "held": [], "found_by": ["payer"]}
    copy = Copy.model_validate(
        {
            "id": "c",
            "kind": "DERIVED",
            "dataset": {"namespace": "file", "name": "t"},
            "table": "pay.counted",
            "location": f"{tmp_path}/t",
            "format": "delta",
            "carries": "key",
            "strategy": "delete_by_key",
            "columns": [],
            "lineage": [],
            "reason": "r",
            "match": term("payer"),
            "mentions": [{"match": term("payee"), "mask": mask}],
        }
    )
    verifier = Verifier(spark, [keys])
    before = verifier.baseline(copy)
    assert (before.states[0].rows_total, before.states[0].rows_person) == (3, 1)
    assert next(s.rows for s in verifier.rows(copy).states if s.state == "current") == 2
    spark.sql("DELETE FROM pay.counted WHERE payer = 'U-1'")
    spark.sql(act.format(t="pay.counted"))
    told = compare(before, verifier.baseline(copy, before))
    assert (told.lost, told.equal) == (lost, equal)


def test_closed_it_can_look_no_more_and_who_is_back_is_seen_all_the_same(done: Run) -> None:
    """The last test here: it destroys the values, after another one has brought the person back."""
    assert run(["close", "--state", str(done.base / "state")]) == 0
    assert not (done.base / "p.subjects.sealed").exists()
    assert cli(done.base, "verify", str(done.base / "p.plan.json")) == 1
    assert cli(done.base, "recheck") == 9
    assert run(["report", "--state", str(done.base / "state")]) == 0
