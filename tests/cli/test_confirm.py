"""`confirm` refuses at once what the run would not take."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from pii_tracer.app.execution.run_folder import RunInfo, folder_of
from pii_tracer.app.recipients.recipient_states import Told, write_told
from pii_tracer.cli.main import run
from pii_tracer.config.passing_on.recipients import How
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import digest_of
from pii_tracer.review.manual_step_confirmation import confirmation_file
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.sealed_person_values import load_estate_key
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.planners.smalllake import Lake
from tests.planners.test_recomputed_copies import lake, waived

DUMP = {"name": "nightly", "of": ["prod.a"], "owner": "dba", "location": "vault/nightly", "due_days": 7}
STEP = "c-backup-nightly/01-backup-confirm"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A run that has been started: its folder says with which plan and whom it trusts."""
    plan_file = tmp_path / "p.plan.json"
    plan_file.write_bytes(Lake(backups=(DUMP,)).plan().to_bytes())
    public = generate(tmp_path / "key.pem")
    (tmp_path / "trusted.yaml").write_bytes(trusted_yaml([("Meera Iyer", "dba", public_pem(public).decode())]))
    (tmp_path / "ticket.txt").write_text("done")
    _started(tmp_path, str(tmp_path / "trusted.yaml"))
    return tmp_path


def _started(base: Path, trusted: str | None) -> None:
    loaded = load_plan(base / "p.plan.json")
    info = RunInfo(
        plan_id=loaded.plan.plan_id,
        plan_digest=loaded.digest,
        plan_file=str(base / "p.plan.json"),
        estate_file=str(base / "pii-tracer.yaml"),
        policy_file=str(base / "policy.yaml"),
        approvals=(),
        trusted=trusted,
        state=str(base / "state"),
    )
    folder_of(base / "state", loaded.plan.plan_id).write_info(info)


def confirm(base: Path, step: str = "nightly", **changes: str) -> int:
    words = {
        "evidence": str(base / "ticket.txt"),
        "by": "Meera Iyer",
        "role": "dba",
        "said": "recovery points deleted",
        "key": str(base / "key.pem"),
        **changes,
    }
    options = [part for name, value in words.items() for part in (f"--{name}", value)]
    return run(["confirm", step, "--state", str(base / "state"), *options])


@pytest.mark.parametrize("name", ["nightly", STEP, "c-backup-nightly"])
def test_a_word_is_kept_beside_the_run(base: Path, name: str) -> None:
    assert confirm(base, name) == 0
    folder = folder_of(base / "state", load_plan(base / "p.plan.json").plan.plan_id)
    kept = confirmation_file(folder.confirmations, STEP).read_text()
    assert json.loads(kept)["signatures"]
    assert "ticket" not in kept


def test_a_step_that_waits_for_nobody_is_no_step_to_confirm(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert confirm(base, "c-prod.a/99-verify") == 2
    assert STEP in capsys.readouterr().err


@pytest.mark.parametrize("changes", [{"by": "Ravi"}, {"role": "auditor"}])
def test_nobody_confirms_under_another_name(base: Path, changes: dict[str, str]) -> None:
    assert confirm(base, **changes) == 5
    assert not list((base / "state").rglob("confirmations/*"))


@pytest.mark.parametrize("option", ["by", "role", "said"])
@pytest.mark.parametrize("text", ["", " ", "-", "\u200b", "👍"])
def test_nothing_that_can_be_read_is_nobodys_word(
    base: Path, capsys: pytest.CaptureFixture[str], option: str, text: str
) -> None:
    assert confirm(base, **{option: text}) == 2
    assert f"--{option}" in capsys.readouterr().err
    assert not list((base / "state").rglob("confirmations/*"))


def test_a_key_that_nobody_trusts_confirms_nothing(base: Path) -> None:
    generate(base / "other.pem")
    assert confirm(base, key=str(base / "other.pem")) == 5
    _started(base, None)
    assert confirm(base) == 2


def test_evidence_that_is_missing_or_empty_is_none(base: Path) -> None:
    assert confirm(base, evidence=str(base / "nowhere.txt")) == 2
    (base / "ticket.txt").write_text("")
    assert confirm(base) == 2


def test_a_word_given_in_the_second_in_which_the_erasure_ended_is_not_older_than_it(base: Path) -> None:
    ended = datetime.now(timezone.utc)
    assert confirm(base) == 0
    folder = folder_of(base / "state", load_plan(base / "p.plan.json").plan.plan_id)
    envelope = confirmation_file(folder.confirmations, STEP).read_bytes()
    statement = json.loads(base64.b64decode(json.loads(envelope)["payload"]))
    assert datetime.fromisoformat(statement["predicate"]["confirmed_at"].replace("Z", "+00:00")) >= ended


def test_a_word_that_names_the_person_is_not_signed(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Journal and attestation would repeat it."""
    (base / "pii-tracer.yaml").write_text("")
    key = load_estate_key(base / "state" / "keys" / "estate.key", create=True)
    values = (("subj_R", "asha@example.org"),)
    sealed = key.seal((KeySet(name="user.mail", origin="prod.a.mail", weak=False, values=values),))
    (base / "p.subjects.sealed").write_bytes(sealed)
    made = load_plan(base / "p.plan.json").plan.model_copy(update={"subjects_digest": digest_of(sealed)})
    (base / "p.plan.json").write_bytes(made.to_bytes())
    _started(base, str(base / "trusted.yaml"))
    assert confirm(base, said="deleted what held Asha@example.org") != 0
    told = capsys.readouterr()
    assert "--said" in told.err
    assert "asha" not in (told.out + told.err).lower()
    assert not list((base / "state").rglob("confirmations/*"))
    assert confirm(base) == 0


@pytest.mark.parametrize("name", ["nightly", "c-backup-nightly"])
def test_a_name_of_a_step_and_of_a_recipient_confirms_neither(
    base: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """As a run has it that was made before the estate file refused such names."""
    loaded = load_plan(base / "p.plan.json")
    now = datetime.now(timezone.utc)
    told = Told(
        recipient=name,
        how=How.FILE,
        plan_digest=loaded.digest,
        notice="0" * 32,
        sha256="",
        requests=("R-1",),
        begun=now,
        at=now,
    )
    write_told(folder_of(base / "state", loaded.plan.plan_id), told)
    assert confirm(base, name) == 2
    assert STEP in capsys.readouterr().err
    assert not list((base / "state").rglob("confirmations/*"))
    assert confirm(base, STEP) == 0


def test_when_a_job_began_is_said_of_a_task_that_computes_tables_again_and_of_nothing_else(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert confirm(base, began="2026-11-21T10:00:00Z") == 2
    assert "leave out `--began`" in capsys.readouterr().err
    plan = waived(lake())
    (base / "p.plan.json").write_bytes(plan.to_bytes())
    _started(base, str(base / "trusted.yaml"))
    assert confirm(base, "gap-no_way-prod.counts") == 2
    assert "`--began TIME`" in capsys.readouterr().err
    for wrong in ("yesterday", "2026-11-22T09:00:00", "1764000000"):
        assert confirm(base, "gap-no_way-prod.counts", began=wrong) == 2
        assert wrong not in capsys.readouterr().err
    assert confirm(base, "gap-no_way-prod.counts", began="2026-11-21T10:00:00+05:30") == 0
    (word,) = folder_of(base / "state", plan.plan_id).confirmations.iterdir()
    predicate = json.loads(base64.b64decode(json.loads(word.read_text())["payload"]))["predicate"]
    assert predicate["began"] == "2026-11-21T10:00:00+05:30"
