"""The whole path: plan, approve, apply, wait for the collector, resume, verify, attest; for the repository alone, which
needs no Spark, and with the table that it carries rows of.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pii_tracer.cli.main import run
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.lakefs.running import cli
from tests.lakefs.shop import KEY_PAIR, MAIL, OTHERS, PERSON, USER, Shop, build
from tests.lakefs.standin_api import serving
from tests.leaks import Person, leaks


def whole(test: Any) -> Any:
    """With Spark, and slow."""
    return pytest.mark.spark(pytest.mark.e2e(pytest.mark.slow(test)))


@dataclass(frozen=True)
class Done:
    """What the run left."""

    shop: Shop
    codes: dict[str, int]
    plan: dict[str, Any]
    result: dict[str, Any]
    rules: dict[str, Any] | None
    others: int
    left_while_waiting: int


HELD = {
    "id": "books",
    "kind": "retention_duty",
    "datasets": ["shop.users"],
    "basis": "tax law",
    "citation": "section 1",
    "from": "2020-01-01T00:00:00Z",
    "until": "2036-01-01T00:00:00Z",
    "approver": "Dr. Sen",
}


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """A plan for everything, whose table is held."""
    yield from _served(tmp_path_factory, holds=[HELD])


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """A plan for the repository only: it is never complete, since the table is left out."""
    yield from _served(tmp_path_factory, "--only", "lakefs://lake/shop")


@pytest.fixture(scope="module")
def done(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """A plan for everything."""
    yield from _served(tmp_path_factory)


def _served(tmp_path_factory: pytest.TempPathFactory, *words: str, **more: Any) -> Iterator[Done]:
    root, base = tmp_path_factory.mktemp("store"), tmp_path_factory.mktemp("estate")
    now = datetime.now(timezone.utc)
    with pytest.MonkeyPatch.context() as patched, serving(root, now) as lakefs:
        for name, value in KEY_PAIR.items():
            patched.setenv(name, value)
        shop = build(lakefs, base, root, now)
        shop.write(**more)
        yield _run(shop, *words)
        assert lakefs.violations == []


def _run(shop: Shop, *more: str) -> Done:
    rules, others = shop.repo.rules, len(shop.addresses(*OTHERS))
    base, file, codes = shop.base, shop.base / "shop.plan.json", {}
    words = ["--retention", "immediate", "--reason", "test", "--out", str(file), "--format", "json"]
    codes["plan"] = cli(shop, "plan", str(base / "request.yaml"), *words, *more)
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(public).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--key"]
    codes["approve"] = cli(shop, "approve", str(file), *signed, str(base / "approver.pem"))
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    codes["apply"] = cli(shop, "apply", str(file), *trusted)
    left = len(shop.addresses(PERSON))
    shop.lakefs.now = datetime.now(timezone.utc) + timedelta(minutes=1)
    shop.lakefs.collect(shop.repo)
    codes["apply again"] = cli(shop, "apply", str(file), *trusted)
    codes["verify"] = cli(shop, "verify", str(file))
    result = json.loads((base / "result.json").read_text())
    return Done(shop, codes, json.loads(file.read_text()), result, rules, others, left)


def test_a_repository_alone_waits_for_its_collector_and_is_erased(alone: Done) -> None:
    assert alone.codes == {"plan": 3, "approve": 0, "apply": 8, "apply again": 3, "verify": 3}
    assert alone.left_while_waiting == 4
    assert alone.shop.addresses(PERSON) == set()
    assert alone.shop.repo.rules == alone.rules
    assert alone.result["residue"] == []
    assert (alone.result["copies_total"], alone.result["copies_erased"]) == (1, 1)
    assert alone.result["bystander_rows_lost"] == 0
    assert leaks(Person((MAIL, USER)), [alone.shop.base / "state"]) == []


def test_where_the_table_is_held_the_repository_is_erased_and_attested(held: Done) -> None:
    assert held.codes == {"plan": 0, "approve": 0, "apply": 8, "apply again": 0, "verify": 0}
    assert held.result["state"] == "complete"
    assert (held.result["copies_total"], held.result["copies_erased"], held.result["copies_exempt"]) == (2, 1, 1)
    assert held.result["unverified"] == []
    assert held.result["bystander_rows_lost"] == 0
    assert held.result["rows_erased"] == 5
    assert held.shop.addresses(PERSON) == set()
    assert held.shop.repo.rules == held.rules
    key = str(held.shop.base / "state" / "keys" / "attest.pem.pub")
    assert run(["attest", "verify", held.result["attestation"], "--key", key]) == 0
    assert leaks(Person((MAIL, USER)), [held.shop.base / "state"]) == []


@whole
def test_every_command_ends_as_it_should(done: Done) -> None:
    assert done.codes == {"plan": 0, "approve": 0, "apply": 8, "apply again": 0, "verify": 0}


@whole
def test_the_person_is_gone_when_the_collector_has_run_and_not_before(done: Done) -> None:
    assert done.left_while_waiting == 4
    assert done.shop.addresses(PERSON) == set()
    assert done.shop.repo.rules == done.rules


@whole
def test_the_result_claims_what_happened(done: Done) -> None:
    assert done.result["state"] == "complete"
    assert (done.result["copies_total"], done.result["copies_erased"]) == (2, 2)
    assert done.result["residue"] == []
    assert done.result["unverified"] == []
    assert done.result["bystander_rows_lost"] == 0
    assert done.result["rows_erased"] == 1 + 5
    assert done.result["attestation"]


@whole
def test_nobody_else_is_missing(done: Done) -> None:
    shown = done.shop.repo.tree("dev")
    rows = b"".join(done.shop.lakefs.bytes_of(entry) for entry in shown.values())
    assert all(uid.encode() in rows for uid, _ in OTHERS)


@whole
def test_no_value_is_in_what_the_run_leaves(done: Done) -> None:
    assert list((done.shop.base / "state").rglob("journal.jsonl"))
    assert leaks(Person((MAIL, USER)), [done.shop.base / "state"]) == []
