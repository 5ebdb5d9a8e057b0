"""Long after the run: an erased person who is back in the source is found, and a hold that lapsed is said."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.app.erased_persons.returned_persons import elsewhere, finished
from pii_tracer.app.execution.run_folder import RunInfo, folder_of
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run
from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.read_result import gap
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Match, MatchTerm, Strategy
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import S3Location
from pii_tracer.model.plan import ErasurePlan, Exemption, HeldColumn, Mask, PlannedHold, digest_of
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.entries import Entry, EntryState
from pii_tracer.run.suppression_list import FILE, SuppressionList
from tests.proof.deletion_log.grouped import groups
from tests.review.plans import NOW, plan


class Estate:
    """A Delta table of users, erased from once."""

    def __init__(self, base: Path) -> None:
        self.base, self.state = base, base / "state"
        (base / "e.yaml").write_text(
            "version: 1\nestate: t\nenvironment: local\nroots: [w]\nlineage: {}\n"
            "catalogs: {session: {type: declared, tables: [{name: prod.users, format: delta, location: w/users}]}}\n"
            "subjects: [{name: user, source: prod.users, key: uid}]\n"
        )
        self.key = Settings(base / "e.yaml", self.state).key(create=True)
        self.users(1, 2, None)

    def users(self, *ids: int | None) -> None:
        write_deltalake(str(self.base / "w" / "users"), pa.table({"uid": pa.array(ids, pa.int64())}), mode="overwrite")

    def erased(self, uid: int, state: EntryState = EntryState.ERASED, dataset: str | None = None) -> None:
        entry = Entry(
            request_id="R",
            subject=self.key.reference("user", str(uid)),
            plan_id="plan-1",
            step_id="s",
            copy_id="c",
            dataset=dataset or f"file:{self.base / 'w' / 'users'}",
            format=DELTA,
            action=Action.VERIFY_COPY,
            state=state,
            run_at=NOW,
            tool_version="1",
            evidence="e",
        )
        DeletionLog(self.state / "deletion_log.sqlite", "t").append(groups([entry]))

    def ran(self, made: ErasurePlan, state: str = "complete", **more: Any) -> None:
        folder = folder_of(self.state, made.plan_id)
        file = self.base / f"{made.plan_id}.plan.json"
        file.write_bytes(made.to_bytes())
        folder.write_info(
            RunInfo(
                plan_id=made.plan_id,
                plan_digest=digest_of(made.to_bytes()),
                plan_file=str(file),
                estate_file=str(self.base / "e.yaml"),
                policy_file="p",
                approvals=(),
                trusted=None,
                state=str(self.state),
            )
        )
        write_atomic(folder.result, json.dumps({"state": state, **more}).encode())

    def recheck(self, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
        capsys.readouterr()
        options = ["--estate", str(self.base / "e.yaml"), "--state", str(self.state), "--format", "json"]
        code = run(["recheck", *options, *words])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


def test_who_is_back_is_found_and_named_by_reference_only(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    assert estate.recheck(capsys)[0] == 0
    estate.erased(8841302)
    assert estate.recheck(capsys) == (
        0,
        {"back": [], "due": [], "next": None, "look_again_on": None, "not_looked_at": []},
    )
    estate.users(1, 8841302)
    code, told = estate.recheck(capsys)
    assert code == 9
    assert [item["subject"] for item in told["back"]] == [estate.key.reference("user", "8841302")]
    assert "8841302" not in json.dumps(told).replace(told["back"][0]["subject"], "")


@pytest.mark.parametrize("changes", [{"state": EntryState.DEFERRED}, {"dataset": "file:/elsewhere"}])
def test_who_was_never_erased_from_the_source_is_not_back(
    estate: Estate, capsys: pytest.CaptureFixture[str], changes: dict[str, Any]
) -> None:
    estate.erased(1, **changes)
    assert estate.recheck(capsys)[0] == 0


def test_a_source_that_is_gone_is_an_error_and_no_all_clear(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    estate.erased(1)
    shutil.rmtree(estate.base / "w" / "users")
    assert estate.recheck(capsys)[0] == 1


LAPSES = datetime(2027, 1, 1, tzinfo=timezone.utc)


def held(plan_id: str, on: datetime | None, **changes: Any) -> ErasurePlan:
    return plan(plan_id=plan_id, totals=plan().totals.model_copy(update={"recheck_on": on}), **changes)


def test_a_hold_that_has_lapsed_is_due(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    estate.ran(held("plan-1", LAPSES))
    assert estate.recheck(capsys, "--as-of", "2026-12-31T00:00:00Z") == (
        0,
        {"back": [], "due": [], "next": LAPSES.isoformat(), "look_again_on": None, "not_looked_at": ["lake.c1"]},
    )
    there = ["--estate", str(estate.base / "e.yaml"), "--state", str(estate.state)]
    assert run(["recheck", *there, "--as-of", "2026-12-31T00:00:00Z"]) == 0
    said = capsys.readouterr().out
    assert "not looked at: lake.c1\n" in said  # its folder is not there: nobody knows who is where it went
    assert "nobody is back in what was looked at" in said
    code, told = estate.recheck(capsys, "--as-of", "2027-01-01T00:00:00Z")
    assert (code, [item["requests"] for item in told["due"]]) == (7, [["REQ-1"]])
    # what is not finished is no reason to rest, and a newer finished plan of the same person replaces the old one
    later = held("plan-2", None, created_at=NOW + timedelta(days=1))
    estate.ran(later, "partial")
    assert estate.recheck(capsys, "--as-of", "2027-01-01T00:00:00Z")[0] == 7
    estate.ran(later)
    assert estate.recheck(capsys, "--as-of", "2027-01-01T00:00:00Z")[0] == 0


def suppress(estate: Estate, uid: str, key_set: str = "user.uid", person: str = "subj_x") -> None:
    known = SuppressionList(estate.state / FILE, estate.key)
    known.extended([(key_set, person, uid)], plan_id="plan-1", since=NOW, recheck_on=NOW + timedelta(days=30))


def test_who_stands_again_in_a_table_that_is_no_source_is_found(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    """A RESTORE of a derived table brings the person back where no source shows it."""
    users = f"{estate.base / 'w' / 'users'}"
    term = MatchTerm(column="uid", key_set="user.uid", type="bigint")
    made = plan()
    copies = (made.copies[0].model_copy(update={"location": users, "match": Match(terms=(term,)), "origin": None}),)
    estate.ran(plan(copies=copies))
    suppress(estate, "8841302")
    code, told = estate.recheck(capsys, "--as-of", NOW.isoformat())
    assert (code, told["back"]) == (0, [])
    assert told["look_again_on"] == (NOW + timedelta(days=30)).isoformat()
    estate.users(1, 8841302)
    code, told = estate.recheck(capsys)
    assert code == 9
    assert [item["subject"] for item in told["back"]] == ["subj_x"]
    assert "8841302" not in json.dumps(told)


def test_a_run_that_left_one_person_open_erased_the_others(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    term = MatchTerm(column="uid", key_set="user.uid", type="bigint")
    first = plan().requests[0]
    asked = (first, first.model_copy(update={"id": "REQ-2", "subject": "subj_open"}))
    place = {"location": f"{estate.base / 'w' / 'users'}", "match": Match(terms=(term,)), "origin": None}
    copies = (plan().copies[0].model_copy(update=place),)
    made = held("plan-1", LAPSES, requests=asked, copies=copies)
    estate.ran(made, "partial", attestation="attestation.json", open_requests=["REQ-2"])
    suppress(estate, "8841302")
    estate.users(1, 8841302)
    code, told = estate.recheck(capsys, "--as-of", LAPSES.isoformat())
    assert (code, [item["subject"] for item in told["back"]]) == (9, ["subj_x"])
    assert [item["requests"] for item in told["due"]] == [["REQ-1"]]
    assert told["not_looked_at"] == []
    assert [request.id for made in finished(estate.state) for request in made.requests] == ["REQ-1"]


def test_a_table_in_s3_that_cannot_be_read_is_an_error_and_no_all_clear(estate: Estate) -> None:
    """It was erased from, and its bucket is not reached now: the erased persons may be back there."""
    term = MatchTerm(column="uid", key_set="user.uid", type="bigint")
    place = S3Location(bucket="lake", key="orders")
    known = SuppressionList(estate.state / FILE, estate.key)
    paths = EstatePaths(Settings(estate.base / "e.yaml", estate.state).estate(), estate.base)
    table = plan().copies[0].model_copy(update={"location": str(place), "match": Match(terms=(term,)), "origin": None})
    told = (gap(place.dataset, GapKind.UNREADABLE, "S3 does not return it: OSError", str(place)),)
    with pytest.raises(EstateError, match="whether erased persons are back"):
        elsewhere(known, [plan(copies=[table])], Inventory(tables=(), gaps=told), paths)
    assert elsewhere(known, [plan(copies=[table])], Inventory(tables=()), paths) == [], "nobody has it any more"


def test_another_plan_under_the_same_name_does_not_answer_for_the_run(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later plan was written over the file: it knows nothing of the tables that the finished one erased from."""
    term = MatchTerm(column="uid", key_set="user.uid", type="bigint")
    place = {"location": f"{estate.base / 'w' / 'users'}", "match": Match(terms=(term,)), "origin": None}
    made = plan(
        copies=(plan().copies[0].model_copy(update=place),),
    )
    estate.ran(made)
    suppress(estate, "8841302")
    estate.users(1, 8841302)
    assert estate.recheck(capsys)[0] == 9
    file = estate.base / f"{made.plan_id}.plan.json"
    there = ["--estate", str(estate.base / "e.yaml"), "--state", str(estate.state)]
    for change in (lambda: file.write_bytes(plan(copies=(), steps=()).to_bytes()), file.unlink):
        change()
        assert run(["recheck", *there]) == 2
        told = capsys.readouterr()
        assert "nobody is back" not in told.out
        assert "its file is missing or holds a different plan" in told.err
        assert "restore the plan file with the digest sha256:" in told.err
    kept = folder_of(estate.state, made.plan_id).evidence / "plan.json"
    write_atomic(kept, made.to_bytes())
    assert estate.recheck(capsys)[0] == 9, "the run keeps its own copy"
    write_atomic(kept, plan(copies=(), steps=()).to_bytes())
    assert estate.recheck(capsys)[0] == 2


def test_who_the_log_and_the_list_know_is_told_once(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    term = MatchTerm(column="uid", key_set="user.uid", type="bigint")
    made = plan()
    source = {"location": f"{estate.base / 'w' / 'users'}", "match": Match(terms=(term,)), "origin": None}
    estate.ran(
        plan(
            copies=(made.copies[0].model_copy(update=source | {"table": "prod.users"}),),
        )
    )
    estate.erased(8841302)
    known = SuppressionList(estate.state / FILE, estate.key)
    who = estate.key.reference("user", "8841302")
    known.extended([("user.uid", who, "8841302")], plan_id="plan-1", since=NOW, recheck_on=NOW + timedelta(days=30))
    estate.users(1, 8841302)
    assert [(b["subject"], b["source"]) for b in estate.recheck(capsys)[1]["back"]] == [(who, "prod.users")]


def test_a_masked_row_is_no_return_and_a_whole_one_is(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    """A hold keeps the key: that it stands there is right; what stands beside it again is not."""
    folder = estate.base / "w" / "held"
    folder.mkdir(parents=True)
    mask = Mask(columns=("note",), held=(HeldColumn(name="uid", holds=("h",), until=None),))
    term = MatchTerm(column="uid", key_set="user.uid", type="bigint")
    changes = {
        "location": str(folder),
        "match": Match(terms=(term,)),
        "origin": None,
        "mask": mask,
        "exemption": Exemption(holds=("h",), until=None),
    }
    hold = PlannedHold(
        id="h", kind="law", basis="b", citation="c", from_=NOW, until=None, approver="a", copies=(plan().copies[0].id,)
    )
    made = plan()
    copies = (made.copies[0].model_copy(update={**changes, "strategy": Strategy.MASK_COLUMNS}),)
    estate.ran(plan(copies=copies, holds=(hold,)))
    suppress(estate, "8841302")
    schema = pa.schema([("uid", pa.int64()), ("note", pa.string())])
    for note, code in ((None, 0), ("back", 9)):
        rows = pa.table({"uid": [1, 8841302], "note": ["x", note]}, schema=schema)
        pq.write_table(rows, folder / "a.parquet")
        assert estate.recheck(capsys)[0] == code, note


def test_each_plan_tells_by_what_its_own_persons_are_found_in_a_table(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later plan for somebody else finds rows of the same table by another column."""
    folder = estate.base / "w" / "contacts"
    folder.mkdir(parents=True)
    schema = pa.schema([("uid", pa.int64()), ("lead", pa.int64())])
    for number, (column, who) in enumerate([("uid", "8841302"), ("lead", "7711")]):
        suppress(estate, who, f"user.{column}", estate.key.reference("user", who))
        estate.ran(of_table(estate, folder, number, column, who))
    for row, code in (({"uid": 8841302, "lead": 1}, 9), ({"uid": 1, "lead": 7711}, 9), ({"uid": 7711, "lead": 1}, 0)):
        pq.write_table(pa.Table.from_pylist([row], schema=schema), folder / "a.parquet")
        assert estate.recheck(capsys)[0] == code, row


def test_whom_a_hold_keeps_in_a_table_is_not_back_there(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    """An earlier plan erased somebody else from it; the hold is about the second request alone."""
    folder = estate.base / "w" / "disputes"
    folder.mkdir(parents=True)
    erased = of_table(estate, folder, 0, "uid", "8841302")
    made = of_table(estate, folder, 1, "uid", "7711")
    hold = PlannedHold(
        id="h",
        kind="law",
        basis="b",
        citation="c",
        from_=NOW,
        until=None,
        approver="a",
        copies=(made.copies[0].id,),
    )
    kept = made.copies[0].model_copy(
        update={"match": None, "strategy": Strategy.EXEMPT, "exemption": Exemption(holds=("h",), until=None)}
    )
    held_one = plan(plan_id=made.plan_id, copies=(kept,), holds=(hold,), requests=made.requests)
    for one in (erased, held_one):
        estate.ran(one)
    for who in ("8841302", "7711"):
        suppress(estate, who, person=estate.key.reference("user", who))
    for uid, code in ((7711, 0), (8841302, 9)):
        pq.write_table(pa.table({"uid": pa.array([1, uid], pa.int64())}), folder / "a.parquet")
        assert estate.recheck(capsys)[0] == code, uid


def of_table(estate: Estate, folder: Path, number: int, column: str, who: str) -> ErasurePlan:
    """A plan for one person that finds rows of a table by one column; made a day after the one before."""
    made = plan()
    term = MatchTerm(column=column, key_set=f"user.{column}", type="bigint")
    place = {"location": str(folder), "match": Match(terms=(term,)), "origin": None}
    day = NOW + timedelta(days=number)
    asked = made.requests[0].model_copy(update={"subject": estate.key.reference("user", who)})
    return plan(
        plan_id=f"plan-{number}",
        copies=(made.copies[0].model_copy(update=place),),
        requests=(asked,),
        created_at=day,
    )


def ask(estate: Estate, capsys: pytest.CaptureFixture[str], values: str, *words: str) -> tuple[int, list[str]]:
    capsys.readouterr()
    file = estate.base / "values.txt"
    file.write_text(values)
    options = ["--estate", str(estate.base / "e.yaml"), "--state", str(estate.state), "--subject", "user"]
    code = run(["suppressed", str(file), *options, *words])
    return code, capsys.readouterr().out.splitlines()


def test_a_loader_asks_line_by_line(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(estate, capsys, "8841302\n7\n") == (0, ["free", "free"])
    suppress(estate, "8841302")
    assert ask(estate, capsys, "7\n8841302\n\n") == (9, ["free", "suppressed", "free"])
    assert ask(estate, capsys, "8841302\r\n", "--check") == (9, [])
    assert ask(estate, capsys, "7", "--check") == (0, [])
    assert ask(estate, capsys, "7", "--column", "phone") == (2, [])


def test_with_another_estate_key_nobody_is_called_free(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    listed = SuppressionList(estate.state / FILE, estate.key)
    listed.extended([("user.uid", "subj_1", "2")], plan_id="p", since=NOW, recheck_on=NOW)
    there = ["--estate", str(estate.base / "e.yaml"), "--state", str(estate.state)]
    lines = estate.base / "lines"
    lines.write_text("2\n")
    assert run(["suppressed", str(lines), "--subject", "user", *there]) == 9
    key = next(estate.state.rglob("estate.key"))
    key.chmod(0o600)
    key.write_bytes(bytes(len(key.read_bytes())))
    for words in (["suppressed", str(lines), "--subject", "user"], ["recheck"]):
        capsys.readouterr()
        assert run([*words, *there]) == 7
        told = capsys.readouterr()
        assert "made with a different estate key" in told.err
        assert "free" not in told.out


def test_who_is_back_inside_a_struct_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate = Estate(tmp_path)
    file = tmp_path / "e.yaml"
    file.write_text(file.read_text().replace("key: uid", "key: who.uid"))
    estate.erased(7)
    people = pa.table({"who": pa.array([{"uid": 2}, None, {"uid": 7}])})
    write_deltalake(str(tmp_path / "w" / "users"), people, mode="overwrite", schema_mode="overwrite")
    code, told = estate.recheck(capsys)
    assert (code, [b["subject"] for b in told["back"]]) == (9, [estate.key.reference("user", "7")])
