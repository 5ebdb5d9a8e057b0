"""SIGKILL while a person's key is destroyed: the resumed run ends the work, and nobody else's key is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pii_tracer.lake.formats.delta.vocabulary import DELTA_CLEAN_LOG, DELTA_DELETE_ROWS, DELTA_VACUUM
from pii_tracer.model.actions import Action
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.review.plan_file import load_plan
from pii_tracer.run.journal import Kind, Record
from tests.e2e import shredded
from tests.e2e.processes import history, run_until
from tests.e2e.shredded import OTHERS, PERSON, PHONE
from tests.leaks import Person, leaks
from tests.run.history import violations

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

KEYS, CALLS = "c-tel.keys", "c-tel.calls"


class Estate:
    """The telephony, planned and approved. before: everybody's wrapped keys."""

    def __init__(self, base: Path) -> None:
        self.base = base
        shredded.build(base)
        shredded.estate(base, backups=[])
        self.before = self.keys()
        self.first = DeltaTable(str(base / "tables" / "keys")).version()
        assert shredded.plan(base) == 0
        assert shredded.approve(base) == 0
        self.plan: ErasurePlan = load_plan(base / "p.plan.json").plan

    @property
    def records(self) -> tuple[Record, ...]:
        return history(self.base / "state" / "runs" / self.plan.plan_id / "journal.jsonl")

    def keys(self) -> dict[str, bytes]:
        table = pa.table(DeltaTable(str(self.base / "tables" / "keys")).to_pyarrow_table())
        return dict(zip(table.column("caller").to_pylist(), table.column("wrapped").to_pylist(), strict=True))

    def written(self, kind: Kind, copy: str, action: Action) -> bool:
        """Whether the journal has it; what comes at once after it may be there, too."""
        [step] = [s.id for s in self.plan.steps if s.copy_ == copy and s.action is action]
        return any(record.kind is kind and record.facts["step"] == step for record in self.records)


def deleted_and_not_told(at: Estate) -> bool:
    """Delta has committed the delete of the key, and nobody has written down that it did."""
    log = at.base / "tables" / "keys" / "_delta_log" / f"{at.first + 1:020}.json"
    return log.exists() and at.written(Kind.STEP_INTENT, KEYS, DELTA_DELETE_ROWS)


def waiting_for_readers(at: Estate) -> bool:
    """The run waits for the caches: it has said so, and the step has no result (other records may follow at once)."""
    [step] = [s.id for s in at.plan.steps if s.action is Action.KEY_AWAIT_CACHES]
    kinds = {record.kind for record in at.records if record.facts.get("step") == step}
    return Kind.STEP_WAITING in kinds and Kind.STEP_RESULT not in kinds


def at_step(kind: Kind, copy: str, action: Action) -> Callable[[Estate], bool]:
    return lambda at: at.written(kind, copy, action)


POINTS = {
    "the key's row is deleted, and the answer is lost": deleted_and_not_told,
    "while the key's files are swept": at_step(Kind.STEP_INTENT, KEYS, DELTA_VACUUM),
    "the key is gone, its history unchecked": at_step(Kind.STEP_RESULT, KEYS, DELTA_CLEAN_LOG),
    "while readers remember the key": waiting_for_readers,
    "while reading is tried": at_step(Kind.STEP_INTENT, CALLS, Action.KEY_TRY_TO_READ),
}


def test_a_key_is_destroyed_although_the_run_is_killed_again_and_again(tmp_path: Path) -> None:
    base = tmp_path / "telephony"
    base.mkdir()
    at = Estate(base)
    state, result = base / "state", base / "result.json"
    words = ["apply", str(base / "p.plan.json"), "--estate", str(base / "pii-tracer.yaml"), "--state", str(state)]
    words += ["--trusted", str(base / "approvers.yaml"), "--result", str(result)]
    for number, (name, point) in enumerate(POINTS.items()):
        died = run_until([*words, "--wait", "300"], tmp_path / str(number), lambda point=point: point(at))
        assert died.killed, (name, died)
        assert not result.exists() or json.loads(result.read_text())["state"] != "complete"
        found = at.keys()
        assert {p: k for p, k in found.items() if p != PERSON} == {p: k for p, k in at.before.items() if p != PERSON}
        words = ["resume", "--state", str(state)]
    last = run_until([*words, "--wait", "300", "--format", "json"], tmp_path / "last")
    assert last.code == 0, last
    done = json.loads(last.stdout)
    assert (done["state"], done["residue"], done["bystander_rows_lost"]) == ("complete", [], 0)
    assert at.keys() == {person: at.before[person] for person in OTHERS}
    assert shredded.numbers(base) == [None, None, *[n for n in OTHERS.values() for _ in range(2)]]
    table = DeltaTable(str(base / "tables" / "keys"))
    for version in range(table.version()):
        with pytest.raises(Exception, match=r"(?i)version|log|not found|no such"):
            pa.table(DeltaTable(str(base / "tables" / "keys"), version=version).to_pyarrow_table())
    # nobody's key opens what is left of the person: their wrapped key is in no file any more
    wrapped = at.before[PERSON]
    assert not [p for p in (base / "tables").rglob("*") if p.is_file() and wrapped in p.read_bytes()]
    assert violations(at.records, at.plan) == []
    assert (
        leaks(Person((PERSON, PHONE)), [tmp_path / "last.out", tmp_path / "last.err", state, *base.glob("p.*")]) == []
    )
