"""The whole path where key and e-mail stand inside structs: nobody of the asked is left, and no struct of the others
is touched.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.cli.main import run
from pii_tracer.model.datasets import KeySet
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.e2e import guild
from tests.leaks import leaks

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

KINDS = ("member", "guest", "buyer")
VALUES = (
    *guild.MAILS,
    *guild.MAILS.values(),
    "+49 30 771199",
    hashlib.sha256(guild.MAILS[guild.GUEST].encode()).hexdigest(),
)
PATTERNS = build_patterns(
    [KeySet(name=f"v{n}", origin="v", weak=False, values=(("p", value),)) for n, value in enumerate(VALUES)]
)


@dataclass(frozen=True)
class Done:
    """What the runs left, one for each kind of person. survived: what `naive` saw."""

    base: Path
    plans: dict[str, dict[str, Any]]
    results: dict[str, dict[str, Any]]
    codes: dict[str, tuple[int, ...]]
    before: dict[str, list[str]]
    after: dict[str, list[str]]
    survived: dict[str, tuple[int, int]]


def cli(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def naive(base: Path, spark: Any) -> dict[str, tuple[int, int]]:
    """Rows seen, and files in which the member is read, after DELETE as everybody writes it on copies of the source."""
    spark.sql("CREATE DATABASE med.naive")
    frame = spark.table("med.guild.members")
    folder = base / "naive"
    frame.write.format("delta").save(str(folder / "delta"))
    frame.writeTo("med.naive.members").using("iceberg").tableProperty("write.delete.mode", "merge-on-read").create()
    found = {}
    for name, table in (("delta", f"delta.`{folder}/delta`"), ("iceberg", "med.naive.members")):
        spark.sql(f"DELETE FROM {table} WHERE who.no = '{guild.MEMBER}'")
        seen = spark.sql(f"SELECT * FROM {table} WHERE who.no = '{guild.MEMBER}'").count()
        place = folder / "delta" if name == "delta" else base / "warehouse" / "naive"
        found[name] = (seen, sum(bool(file.hits) for file in scan_tree(place, PATTERNS).files))
    spark.sql("DROP TABLE med.naive.members PURGE")
    spark.sql("DROP DATABASE med.naive")
    return found


def erase(base: Path, kind: str) -> tuple[int, ...]:
    """Plan, approve, apply and verify the request of one kind of person."""
    file, key = base / f"{kind}.plan.json", base / "approver.pem"
    words = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", str(file)]
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--key", str(key)]
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / f"{kind}.result.json")]
    return (
        cli(base, "plan", str(base / f"{kind}.yaml"), "--format", "json", *words),
        cli(base, "approve", str(file), *signed),
        cli(base, "apply", str(file), *trusted),
        cli(base, "verify", str(file)),
    )


@pytest.fixture(scope="module")
def done(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Done:
    base = tmp_path_factory.mktemp("guild")
    guild.build(base, spark)
    survived = naive(base, spark)
    before = guild.rows(base, spark)
    public = public_pem(generate(base / "approver.pem")).decode()
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public)]))
    codes = {kind: erase(base, kind) for kind in KINDS}
    plans = {kind: json.loads((base / f"{kind}.plan.json").read_text()) for kind in KINDS}
    results = {kind: json.loads((base / f"{kind}.result.json").read_text()) for kind in KINDS}
    return Done(base, plans, results, codes, before, guild.rows(base, spark), survived)


def test_every_command_ends_well(done: Done) -> None:
    assert done.codes == dict.fromkeys(KINDS, (0, 0, 0, 0))
    assert [(p["complete"], p["gaps"]) for p in done.plans.values()] == [(True, [])] * 3


def test_an_ordinary_delete_by_the_field_leaves_the_person_readable(done: Done) -> None:
    assert {name: seen for name, (seen, _) in done.survived.items()} == {"delta": 0, "iceberg": 0}
    assert all(files for _, files in done.survived.values())


def test_the_plan_tells_the_field_in_every_copy(done: Done) -> None:
    found = {}
    for copy in (copy for plan in done.plans.values() for copy in plan["copies"]):
        name = (copy["table"] or copy["location"]).replace("/", ".").rsplit(".", 1)[1]
        fields = [
            ".".join([t["column"], *(a["name"] for a in t["access"])]) for t in (copy["match"] or {}).get("terms", [])
        ]
        found[name] = (copy["kind"], copy["carries"], sorted(fields))
    assert found == {
        "members": ("SOURCE", "key", ["who.no"]),
        "mails": ("DERIVED", "key", ["member_no"]),
        "cards": ("DERIVED", "key", ["card.no"]),
        "cities": ("DERIVED", "aggregate", []),
        "guests": ("SOURCE", "key", ["guest_no"]),
        "letters": ("DERIVED", "identifiers", ["mail_hash"]),
        "stays": ("DERIVED", "identifiers", ["stay.person.email"]),
        "sales": ("SOURCE", "key", ["buyer.no"]),
        "invoices": ("DERIVED", "key", ["buyer_no"]),
        "boxes": ("DERIVED", "key", ["sold_to.no"]),
        "labels": ("DERIVED", "identifiers", ["mail"]),
    }


def test_the_result_claims_what_happened(done: Done) -> None:
    told = {
        kind: (
            r["state"],
            r["copies_total"],
            r["copies_erased"],
            r["residue"],
            r["bystander_rows_lost"],
            r["rows_erased"],
        )
        for kind, r in done.results.items()
    }
    assert told == {
        "member": ("complete", 4, 4, [], 0, 3),
        "guest": ("complete", 3, 3, [], 0, 6),
        "buyer": ("complete", 4, 4, [], 0, 4),
    }


def test_nobody_else_lost_a_row_or_a_field(done: Done) -> None:
    mine = {name: [row for row in table if any(v in row for v in VALUES)] for name, table in done.before.items()}
    for name, table in done.before.items():
        theirs = sorted(set(table) - {row for row in mine[name] if guild.MEMBER + "0" not in row})
        assert done.after[name] == theirs, name
        assert len(theirs) >= guild.OTHERS


def test_aggregates_are_those_without_the_member(done: Done, spark: Any) -> None:
    rows = spark.sql("SELECT city, members FROM med.guild.cities WHERE city = 'Bonn'").collect()
    assert [tuple(row) for row in rows] == [("Bonn", guild.OTHERS)]


def test_no_file_holds_a_value_of_the_persons(done: Done) -> None:
    """Looked for by the scanner, and again crudely in the raw bytes."""
    for folder in ("warehouse", "tables"):
        assert [file.path for file in scan_tree(done.base / folder, PATTERNS).files if file.hits or file.unread] == []
        for path in (p for p in (done.base / folder).rglob("*") if p.is_file()):
            data = path.read_bytes()
            assert not any(mail.encode(text) in data for mail in guild.MAILS.values() for text in ("utf-8", "cp1252"))


def test_nothing_that_the_run_left_names_the_persons(done: Done) -> None:
    left = [done.base / "state"]
    left += [path for kind in KINDS for path in done.base.glob(f"{kind}.*") if path.suffix != ".yaml"]
    for person in guild.PERSONS:
        assert leaks(person, left) == []
