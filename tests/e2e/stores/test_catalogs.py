"""The whole path on tables of an Iceberg SQL catalog and an Iceberg REST catalog (Iceberg's own server)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.cli.main import run
from pii_tracer.model.datasets import KeySet
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.e2e import ledger
from tests.leaks import Person, leaks
from tests.restsupport import serving

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

PERSON = build_patterns(
    [
        KeySet(name="no", origin="members.member_no", weak=False, values=(("subj_1", ledger.MEMBER),)),
        KeySet(name="phone", origin="members.phone", weak=False, values=(("subj_1", ledger.PHONE),)),
    ]
)


def residue(base: Path) -> set[str]:
    """Files of both warehouses in which the person stands, each decoded by its format."""
    return {
        f"{folder}/{file.path}"
        for folder in ("desk", "warehouse")
        for file in scan_tree(base / folder, PERSON).files
        if file.hits or file.unread
    }


def metadata(base: Path) -> set[Path]:
    return {p for folder in ("desk", "warehouse") for p in (base / folder).rglob("*.metadata.json")}


@dataclass(frozen=True)
class Done:
    base: Path
    codes: dict[str, int]
    plan: dict[str, Any]
    result: dict[str, Any]
    residue: tuple[set[str], set[str]]
    metadata: set[Path]
    before: dict[str, list[str]]
    after: dict[str, list[str]]


@pytest.fixture(scope="module")
def done(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    base = tmp_path_factory.mktemp("ledger")
    with serving(base) as server:
        ledger.build(base, spark, server.uri)
        before, there, old = ledger.others(spark), residue(base), metadata(base)
        file, codes = base / "ledger.plan.json", {}

        def cli(*words: str) -> None:
            paths = ["--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")]
            codes[words[0]] = run([*words, *paths])

        reason = ["--retention", "immediate", "--reason", "test: no writer, no reader"]
        cli("plan", str(base / "request.yaml"), *reason, "--out", str(file))
        public = generate(base / "approver.pem")
        (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
        signed = [
            "--approver",
            "Dr. Sen",
            "--role",
            "officer",
            "--reason",
            "right",
            "--key",
            str(base / "approver.pem"),
        ]
        cli("approve", str(file), *signed)
        cli("apply", str(file), "--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json"))
        cli("verify", str(file))
        yield Done(
            base=base,
            codes=codes,
            plan=json.loads(file.read_text()),
            result=json.loads((base / "result.json").read_text()),
            residue=(there, residue(base)),
            metadata=old,
            before=before,
            after=ledger.others(spark),
        )


def test_every_command_ends_as_it_should(done: Done) -> None:
    assert done.codes == {"plan": 0, "approve": 0, "apply": 0, "verify": 0}


def test_the_plan_has_every_table_by_its_name(done: Done) -> None:
    assert done.plan["gaps"] == []
    assert {(c["table"], c["kind"]) for c in done.plan["copies"]} == {
        ("desk.core.members", "SOURCE"),
        ("desk.core.members", "TABLE_HISTORY"),
        ("desk.core.calls", "DERIVED"),
        ("club.eu.visits", "DERIVED"),
        ("club.eu.visits", "TABLE_HISTORY"),
    }


def test_no_byte_is_left_and_nobody_else_lost_a_row(done: Done) -> None:
    assert {"desk", "warehouse"} == {name.split("/")[0] for name in done.residue[0]}
    assert done.residue[1] == set()
    assert done.after == done.before
    assert done.result["state"] == "complete"
    assert (done.result["residue"], done.result["bystander_rows_lost"]) == ([], 0)


def test_old_metadata_files_are_swept(done: Done) -> None:
    assert done.metadata
    assert not done.metadata & metadata(done.base)


def test_no_value_of_the_member_is_in_what_the_run_leaves(done: Done) -> None:
    member = Person((ledger.MEMBER, ledger.PHONE))
    assert leaks(member, [done.base / "state", *done.base.glob("ledger.*"), done.base / "result.json"]) == []
