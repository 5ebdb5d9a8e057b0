"""The whole path on tables of a Nessie catalog: a branch, a development clone as a branch, and a tag (hazard C2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.cli.main import run
from pii_tracer.model.datasets import KeySet
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.e2e import clubhouse
from tests.e2e.clubhouse import MEMBER, PHONE, REFERENCES
from tests.leaks import Person, leaks
from tests.nessiesupport import Nessie, serving

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

PERSON = build_patterns(
    [
        KeySet(name="no", origin="members.member_no", weak=False, values=(("subj_1", MEMBER),)),
        KeySet(name="phone", origin="members.phone", weak=False, values=(("subj_1", PHONE),)),
    ]
)
HERS, THEIRS = f"member_no = '{MEMBER}'", f"member_no <> '{MEMBER}'"


def residue(base: Path) -> set[str]:
    """Files of the warehouse in which the person stands, each decoded by its format."""
    return {file.path for file in scan_tree(base / "warehouse", PERSON).files if file.hits or file.unread}


def metadata(base: Path) -> set[Path]:
    return set((base / "warehouse").rglob("*.metadata.json"))


@dataclass
class Club:
    """The estate with its server; `cli` runs a command and keeps its exit code."""

    base: Path
    spark: Any
    server: Nessie
    codes: list[tuple[str, int]] = field(default_factory=list)

    def cli(self, *words: str) -> int:
        paths = ["--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")]
        code = run([*words, *paths])
        self.codes.append((words[0], code))
        return code

    @property
    def file(self) -> Path:
        return self.base / "club.plan.json"

    def plan(self) -> dict[str, Any]:
        reason = ["--retention", "immediate", "--reason", "test: no writer, no reader"]
        self.cli("plan", str(self.base / "request.yaml"), *reason, "--out", str(self.file))
        return dict(json.loads(self.file.read_text()))

    def approve(self) -> None:
        public = generate(self.base / "approver.pem")
        trusted = trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())])
        (self.base / "approvers.yaml").write_bytes(trusted)
        who = [
            "--approver",
            "Dr. Sen",
            "--role",
            "officer",
            "--reason",
            "right",
            "--key",
            str(self.base / "approver.pem"),
        ]
        self.cli("approve", str(self.file), *who)

    def apply(self) -> dict[str, Any]:
        result = self.base / "result.json"
        trusted = ["--trusted", str(self.base / "approvers.yaml")]
        self.cli("apply", str(self.file), *trusted, "--result", str(result))
        return dict(json.loads(result.read_text())) if result.exists() else {}

    def at(self) -> dict[str, tuple[str, str]]:
        """Every reference with its type and commit."""
        return {r["name"]: (r["type"], r["hash"]) for r in self.server.ask("GET", "/trees")["references"]}


@pytest.fixture(scope="module")
def club(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Club]:
    base = tmp_path_factory.mktemp("clubhouse")
    with serving(base) as server:
        clubhouse.build(base, spark, server)
        yield Club(base, spark, server)


@dataclass(frozen=True)
class Done:
    club: Club
    naive: dict[str, list[str]]
    plan: dict[str, Any]
    result: dict[str, Any]
    residue: tuple[set[str], set[str]]
    old: set[Path]
    others: tuple[dict[str, list[str]], dict[str, list[str]]]
    references: dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def done(club: Club) -> Done:
    club.spark.sql(f"DELETE FROM nes.core.visits WHERE {HERS}")  # as everybody does it
    naive = clubhouse.rows(club.spark, HERS)
    there, old, references = residue(club.base), metadata(club.base), club.at()
    before = clubhouse.rows(club.spark, THEIRS)
    plan = club.plan()
    club.approve()
    result = club.apply()
    club.cli("verify", str(club.file))
    # read now: a later test writes to the tables, and the tests may run in any order
    others = (before, clubhouse.rows(club.spark, THEIRS))
    return Done(club, naive, plan, result, (there, residue(club.base)), old, others, references)


def test_a_delete_on_main_leaves_the_person_on_every_other_reference(done: Done) -> None:
    assert done.naive["visits on main"] == []
    assert [len(done.naive[f"visits on {ref}"]) for ref in ("dev", "q1")] == [1, 1]
    assert {name.split("/")[1].split("_")[0] for name in done.residue[0]} == {"members", "visits"}


def test_every_command_ends_as_it_should(done: Done) -> None:
    assert done.club.codes[:4] == [("plan", 0), ("approve", 0), ("apply", 0), ("verify", 0)]


def test_the_plan_has_every_reference_of_both_tables(done: Done) -> None:
    assert done.plan["gaps"] == []
    assert {(c["table"], c["kind"], c["facts"].get("ref")) for c in done.plan["copies"]} == {
        ("nes.core.members", "SOURCE", None),
        ("nes.core.visits", "DERIVED", None),
        *((f"nes.core.{t}@{r}", "TABLE_HISTORY", r) for t in ("members", "visits") for r in ("dev", "q1")),
    }


def test_the_person_is_gone_on_all_references_and_nobody_else_lost_a_row(done: Done) -> None:
    assert clubhouse.rows(done.club.spark, HERS) == {
        f"{name} on {ref}": [] for name in ("members", "visits") for ref in REFERENCES
    }
    before, after = done.others
    assert after == before
    assert [len(rows) for rows in before.values()] == [4, 4, 3, 3, 3, 3]


def test_no_byte_is_left_and_old_commits_read_nothing(done: Done) -> None:
    assert done.residue[1] == set()
    assert done.result["state"] == "complete"
    assert (done.result["residue"], done.result["bystander_rows_lost"]) == ([], 0)
    assert not done.old & metadata(done.club.base)
    old = done.references["main"][1]
    with pytest.raises(Exception, match=r"NotFound|FileNotFound|does not exist"):
        done.club.spark.sql(f"SELECT * FROM nes.core.`members@main#{old}`").collect()


def test_references_stay_what_they_were_and_the_work_branch_is_gone(done: Done) -> None:
    kinds = {name: kind for name, (kind, _) in done.club.at().items()}
    assert kinds == {"main": "BRANCH", "dev": "BRANCH", "q1": "TAG"}
    assert done.club.at()["q1"] != done.references["q1"]


def test_the_tables_take_new_rows_on_both_branches(done: Done) -> None:
    for ref in ("main", "dev"):
        name = clubhouse.table("members", ref)
        done.club.spark.sql(f"INSERT INTO {name} VALUES ('M-100', '9850012399')")
        assert done.club.spark.table(name).where("member_no = 'M-100'").count() == 1


def test_no_value_of_the_member_is_in_what_the_run_leaves(done: Done) -> None:
    base = done.club.base
    assert leaks(Person((MEMBER, PHONE)), [base / "state", *base.glob("club.*"), base / "result.json"]) == []
