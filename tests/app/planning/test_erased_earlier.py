"""What an earlier run erased of a person is known to nobody: what only such values tell is a gap, never clean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.app.settings import Settings
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import ExitCode
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.entries import Entry, EntryState
from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request
from tests.proof.deletion_log.grouped import groups
from tests.review.plans import NOW

KEY, OTHER = "7123400981", "7123400982"
ESTATE = (
    declared("w", dict.fromkeys((f"prod.{t}" for t in ("staff", "tickets", "news", "notes", "mixed")), "parquet"))
    + """\
  - name: employee
    source: prod.staff
    key: emp_id
    identifiers: [{column: mail, category: email}]
    tables: [{table: prod.tickets, key: emp_id, record_keys: [ticket]}]
"""
)
JOBS = """\
INSERT OVERWRITE prod.news SELECT mail AS sent_to FROM prod.staff;
INSERT OVERWRITE prod.notes SELECT ticket, text FROM prod.tickets;
INSERT INTO prod.mixed SELECT emp_id, mail FROM prod.staff;
INSERT INTO prod.mixed SELECT NULL AS emp_id, mail FROM prod.staff;
"""


class Later:
    """A small estate some time after a run: what it erased is no longer in its tables, only in its log."""

    def __init__(self, base: Path) -> None:
        self.base = base
        (base / "pii-tracer.yaml").write_text(ESTATE)
        (base / "jobs.sql").write_text(JOBS)
        (base / "request.yaml").write_text(request("employee", KEY))
        (base / "policy.yaml").write_text("version: 1\n")
        self.settings = Settings(base / "pii-tracer.yaml", base / "state")
        self.subject = self.settings.key(create=True).reference("employee", KEY)
        self.table("staff", emp_id=[KEY, OTHER], mail=[None, "b@x.example"])
        self.table("tickets", emp_id=[OTHER], ticket=["TK-1003355"], text=["t"])
        self.table("news", sent_to=["a@x.example", "b@x.example"])
        self.table("notes", ticket=["TK-1063355", "TK-1003355"], text=["s", "t"])
        self.table("mixed", emp_id=[None, None, OTHER], mail=["a@x.example", "b@x.example", "b@x.example"])

    def table(self, name: str, **columns: Any) -> None:
        (self.base / "w" / name).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), self.base / "w" / name / "part-0.parquet")

    def logged(self, name: str, state: EntryState, plan: str = "plan-1") -> None:
        entry = Entry(
            request_id="R-1",
            subject=self.subject,
            plan_id=plan,
            step_id="" if state is EntryState.EXEMPT else f"c-{name}/99-verify",
            copy_id=f"c-{name}",
            dataset=f"file:{self.base / 'w' / name}",
            format=Format.PARQUET,
            action=None if state is EntryState.EXEMPT else Action.VERIFY_COPY,
            state=state,
            run_at=NOW,
            tool_version="1",
            evidence="e",
        )
        DeletionLog(self.base / "state" / "deletion_log.sqlite", "shop").append(groups([entry]))

    def plan(self, *words: str) -> tuple[int, Any]:
        out = self.base / "p.plan.json"
        code = called(self.base, "plan", str(self.base / "request.yaml"), "--out", str(out), *words)
        return code, json.loads(out.read_bytes())

    def named(self, *words: str) -> set[str]:
        """The datasets that the gap names; none where there is no gap."""
        code, made = self.plan(*words)
        gaps = [g for g in made["gaps"] if g["kind"] == "key_only"]
        assert code == (ExitCode.INCOMPLETE if gaps else 0)
        return {Path(place).name for g in gaps for place in g["evidence"].split(", ")}


@pytest.fixture
def later(tmp_path: Path) -> Later:
    return Later(tmp_path)


def test_who_was_never_erased_from_a_table_has_no_gap(later: Later) -> None:
    assert later.named() == set()


def test_a_source_that_a_hold_left_in_part(later: Later) -> None:
    """The address became NULL; the copies that only the address finds were held, and still have it."""
    later.logged("staff", EntryState.PARTIAL)
    later.logged("news", EntryState.EXEMPT)
    later.logged("mixed", EntryState.PARTIAL)
    assert later.named() == {"news", "mixed"}


def test_a_further_table_that_was_erased(later: Later) -> None:
    """The source was held as a whole, or left out; the notes are found through the tickets alone."""
    later.logged("tickets", EntryState.ERASED)
    later.logged("notes", EntryState.EXEMPT)
    assert later.named() == {"notes"}


@pytest.mark.parametrize("state", [EntryState.DEFERRED, EntryState.BLOCKED])
def test_a_run_that_did_not_end(later: Later, state: EntryState) -> None:
    """It took the rows out of the tickets and was stopped by drift; the same request is planned anew."""
    later.logged("tickets", state)
    assert later.named() == {"notes"}


def test_what_is_known_still_of_a_run_that_did_not_end(later: Later) -> None:
    later.table("tickets", emp_id=[KEY, OTHER], ticket=["TK-1063355", "TK-1003355"], text=["s", "t"])
    later.logged("tickets", EntryState.BLOCKED)
    assert later.named() == set()


def test_what_the_same_run_found_clean_is_not_named(later: Later) -> None:
    later.logged("staff", EntryState.PARTIAL)
    later.logged("news", EntryState.ERASED)
    assert later.named() == {"mixed"}


def test_what_another_run_found_clean_is_named(later: Later) -> None:
    """Since then a job may have filled it from what had the values still."""
    later.logged("news", EntryState.ERASED)
    later.logged("staff", EntryState.PARTIAL, plan="plan-2")
    assert later.named() == {"news", "mixed"}


def test_somebody_else_was_erased(later: Later) -> None:
    later.subject = later.settings.key().reference("employee", OTHER)
    later.logged("staff", EntryState.ERASED)
    assert later.named() == set()


def test_with_the_source_erased_rows_without_the_key_are_named_too(later: Later) -> None:
    """Some rows of `mixed` have the key, some the address alone: the key does not find them all."""
    later.table("staff", emp_id=[OTHER], mail=["b@x.example"])
    assert later.named("--source-erased") == {"news", "notes", "mixed"}
