"""Declared backups in plans: copies that a person must treat, after everything in them is erased."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.config.backups import Backup, wrong_backups
from pii_tracer.model.datasets import Strategy
from planners.copies.scan_evidence import Evidence
from tests.planners.copies.test_keytables import KeyLake
from tests.planners.smalllake import NOW, Lake, hold, kinds, strategies
from tests.waivers import waivers_of

DUMP: dict[str, Any] = {
    "name": "nightly",
    "of": ["prod.a", "prod.users"],
    "owner": "database team",
    "location": "vault/nightly",
    "due_days": 14,
}


def test_a_backup_waits_for_everything_in_it_and_for_a_person() -> None:
    plan = Lake(backups=(DUMP,)).plan()
    backup = plan.copy_by_id("c-backup-nightly")
    assert (backup.kind.value, backup.strategy, backup.location) == ("BACKUP", Strategy.CONFIRM, "vault/nightly")
    assert {c.name for c in backup.columns} == {"uid"}
    (step,) = [s for s in plan.steps if s.copy_ == backup.id]
    assert (step.action.value, step.executor, step.irreversible) == ("backup_confirm", "people", True)
    assert {"c-prod.a/99-verify", "c-prod.users/99-verify"} <= set(step.depends_on)
    assert "c-prod.b/99-verify" not in step.depends_on
    assert step.parameters["owner"] == "database team"
    assert plan.totals.finish >= NOW + timedelta(days=14)
    assert plan.complete
    late = Lake(backups=({**DUMP, "due_days": 60},)).plan()
    assert "cannot be met" in late.schedules[0].notes[0]


def test_a_backup_of_nobody_in_the_plan_is_left_alone_and_an_unknown_dataset_is_a_gap() -> None:
    loose = Lake(loose=("c",), seen={"/w/c": Evidence(1, 0, 0)}, backups=({**DUMP, "of": ["prod.c"]},)).plan()
    assert "c-backup-nightly" not in strategies(loose)
    assert loose.complete
    lost = Lake(backups=({**DUMP, "of": ["prod.nowhere"]},)).plan()
    assert "backup_unmatched" in kinds(lost)
    assert not lost.complete


def test_who_looked_into_one_backup_for_one_person_waived_no_other() -> None:
    """It was waived for everybody, wherever the backup lay."""
    gone = {**DUMP, "of": ["prod.nowhere"]}
    words = waivers_of(Lake(backups=(gone,)).plan().gaps, NOW + timedelta(days=9))
    assert Lake(backups=(gone,)).plan(waivers=words).complete
    assert not Lake(backups=(gone,)).plan(ids=("Q",), waivers=words).complete
    for change in ({"location": "vault/weekly"}, {"owner": "another team"}):
        assert not Lake(backups=({**gone, **change},)).plan(waivers=words).complete


@pytest.mark.parametrize("name", ["vault/nightly", "nightly"])
def test_a_held_backup_is_exempt(name: str) -> None:
    plan = Lake(backups=(DUMP,)).plan(hold(name))
    assert strategies(plan)["c-backup-nightly"] == "exempt"
    assert not any(s.copy_ == "c-backup-nightly" for s in plan.steps)


def test_what_is_held_inside_a_backup_must_be_decided_by_somebody() -> None:
    plan = Lake(backups=(DUMP,)).plan(hold("prod.a"))
    assert "hold_in_backup" in kinds(plan)
    assert not plan.complete
    both = Lake(backups=(DUMP,)).plan(hold("prod.a", "vault/nightly"))
    assert "hold_in_backup" not in kinds(both)


def test_a_hold_on_a_backup_of_encrypted_data_holds_its_key() -> None:
    lake = KeyLake(backups=({**DUMP, "of": ["prod.calls"]},))
    plan = lake.plan()
    assert "only ciphertext" in plan.copy_by_id("c-backup-nightly").reason
    assert strategies(lake.plan(hold("nightly")))["c-prod.keys"] == "exempt"


def test_backups_that_contradict_each_other_are_refused() -> None:
    one = Backup.model_validate(DUMP)
    assert wrong_backups([one]) is None
    assert "one name" in (wrong_backups([one, one]) or "")
    assert "one location" in (wrong_backups([one, one.model_copy(update={"name": "weekly"})]) or "")
    with pytest.raises(ValidationError):
        Backup.model_validate({**DUMP, "of": []})
