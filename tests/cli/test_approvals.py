"""Approvals lie beside the plan, one for each person and role; `drift` tells an estate file that was edited."""

from __future__ import annotations

import base64
import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pii_tracer.app.execution import plan_run
from pii_tracer.app.execution.approvals import approval_files
from pii_tracer.app.execution.run_folder import folder_of
from pii_tracer.app.review import plan_approval
from pii_tracer.app.settings import Settings
from pii_tracer.model.errors import ExitCode, NotApproved
from pii_tracer.model.plan import digest_of
from pii_tracer.review.approval import consume
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.run.journal import Journal, Kind
from tests.app.planning.test_nested_subject import called, estate


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """An estate with a plan that can be approved."""
    estate(tmp_path)
    assert called(tmp_path, "plan", str(tmp_path / "request.yaml"), "--out", str(tmp_path / "p.plan.json")) == 0
    public = public_pem(generate(tmp_path / "k.pem")).decode()
    (tmp_path / "approvers.yaml").write_bytes(trusted_yaml([("asha", "dpo", public)]))
    return tmp_path


def approve(base: Path, who: str, role: str, reason: str = "r", hours: str = "24") -> int:
    words = ["--approver", who, "--role", role, "--reason", reason, "--hours", hours, "--key", str(base / "k.pem")]
    return called(base, "approve", str(base / "p.plan.json"), *words)


def approvals(base: Path) -> dict[str, tuple[str, str, str]]:
    found = {}
    for path in base.glob("p.approval-*.json"):
        said = json.loads(base64.b64decode(json.loads(path.read_bytes())["payload"]))["predicate"]
        found[path.name] = (said["approver"], said["role"], said["reason"])
    return found


def test_the_same_person_signs_in_two_roles_and_both_stay(base: Path) -> None:
    assert approve(base, "Meera Iyer", "dpo") == 0
    assert approve(base, "Meera Iyer", "data owner") == 0
    assert approve(base, "Meera Iyer", "dpo", "again") == 0
    assert approvals(base) == {
        "p.approval-Meera-Iyer.json": ("Meera Iyer", "dpo", "again"),
        "p.approval-Meera-Iyer-data-owner.json": ("Meera Iyer", "data owner", "r"),
    }


def test_people_whose_names_make_one_file_name_do_not_replace_each_other(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert approve(base, "Meera Iyer", "dpo") == 0
    assert approve(base, "Meera-Iyer", "dpo") == 0
    assert len(approvals(base)) == 2
    capsys.readouterr()
    assert approve(base, "Meera/Iyer", "dpo") == approve(base, "Meera/Iyer", "dpo") == 0
    assert sorted(who for who, *_ in approvals(base).values()) == ["Meera Iyer", "Meera-Iyer", "Meera/Iyer"]


def test_a_local_estate_is_approved_without_a_key_and_production_is_not(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(base / "p.plan.json"), "--approver", "asha", "--role", "dpo", "--reason", "r", "--unsigned"]
    assert called(base, "approve", *words, "--key", str(base / "k.pem")) == ExitCode.USAGE
    assert not approvals(base)
    assert called(base, "approve", *words) == 0
    checked = ["check", str(base / "p.plan.json"), "--trusted", str(base / "approvers.yaml")]
    assert called(base, *checked) == 0
    file = base / "pii-tracer.yaml"
    file.write_text(file.read_text().replace("environment: local", "environment: production"))
    capsys.readouterr()
    assert called(base, *checked) != 0
    assert "not signed" in capsys.readouterr().err
    [path] = approval_files(base / "p.plan.json")
    path.unlink()
    assert called(base, "approve", *words) == ExitCode.USAGE
    assert "`environment` is `local`" in capsys.readouterr().err
    assert not approvals(base)


def test_names_in_another_script_have_a_file_each(base: Path) -> None:
    names = ["李雷", "韩梅梅", "王芳", "Ольга"]
    assert [approve(base, name, "dpo") for name in names] == [0] * 4
    assert sorted(who for who, *_ in approvals(base).values()) == sorted(names)


def test_the_approvals_of_a_plan_with_brackets_in_its_name_are_found(tmp_path: Path) -> None:
    (tmp_path / "REQ[1].approval-asha.json").write_text("{}")
    (tmp_path / "REQ1.approval-bala.json").write_text("{}")
    assert [p.name for p in approval_files(tmp_path / "REQ[1].plan.json")] == ["REQ[1].approval-asha.json"]


@pytest.mark.parametrize("place", ["reason", "role"])
def test_a_persons_value_is_not_signed(base: Path, capsys: pytest.CaptureFixture[str], place: str) -> None:
    value = re.search(r"key: *['\"]?([^'\"}\s]+)", (base / "request.yaml").read_text())
    assert value
    words = {"role": "dpo", "reason": "r"} | {place: f"erase {value[1]}"}
    assert approve(base, "asha", **words) == ExitCode.ERROR
    told = capsys.readouterr().err
    assert f"--{place}" in told
    assert value[1] not in told
    assert not approvals(base)


def test_every_value_is_looked_for_however_few_are_at_a_time(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plan_approval, "_TOGETHER", 1)
    monkeypatch.setattr(plan_approval, "_FEW", 0)
    plan = load_plan(base / "p.plan.json").plan
    ring = KeyRing.open(
        base / "p.subjects.sealed", plan.subjects_digest, Settings(base / "pii-tracer.yaml", base / "state").key()
    )
    values = {value for key_set in ring.key_sets for _, value in key_set.values}
    assert len(values) > 1
    for value in values:
        assert approve(base, "asha", "dpo", f"erase {value}") == ExitCode.ERROR, "one of them is signed"
    assert not approvals(base)
    assert approve(base, "asha", "dpo", "as agreed") == ExitCode.DONE


def test_an_approval_that_tells_a_persons_value_is_refused_where_the_approver_could_not_know(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Signed without the manifest at hand, it meets the key at `apply`."""
    value = re.search(r"key: *['\"]?([^'\"}\s]+)", (base / "request.yaml").read_text())
    assert value
    sealed = base / "p.subjects.sealed"
    sealed.rename(base / "aside")
    assert approve(base, "asha", "dpo", f"erase {value[1]}") == 0
    (base / "aside").rename(sealed)
    capsys.readouterr()
    trusted = ["--trusted", str(base / "approvers.yaml")]
    assert called(base, "apply", str(base / "p.plan.json"), *trusted) == ExitCode.ERROR
    told = capsys.readouterr().err
    assert "the text of an approval" in told
    assert value[1] not in told


@pytest.mark.parametrize("hours", ["0", "-3", "9999999999"])
def test_hours_that_no_approval_can_live_are_refused(
    base: Path, capsys: pytest.CaptureFixture[str], hours: str
) -> None:
    assert approve(base, "asha", "dpo", "r", hours) == ExitCode.USAGE
    assert "--hours" in capsys.readouterr().err
    assert not approvals(base)


def test_a_policy_cannot_let_an_approval_live_for_ever(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = base / "policy.yaml"
    policy.write_text("version: 1\nmax_approval_hours: 9999999999\n")
    assert approve(base, "asha", "dpo", "r", "9999999999") == ExitCode.ERROR
    assert "max_approval_hours" in capsys.readouterr().err


def test_an_approver_without_the_estate_s_key_can_sign(base: Path) -> None:
    (base / "p.subjects.sealed").unlink()
    assert approve(base, "asha", "dpo") == 0


def test_what_is_no_approval_is_not_replaced(base: Path) -> None:
    (base / "p.approval-Meera-Iyer.json").write_text("notes of mine")
    (base / "p.approval-Meera-Iyer-dpo.json").write_text('{"payload": 7}')
    assert approve(base, "Meera Iyer", "dpo") == ExitCode.NOT_APPROVED
    assert (base / "p.approval-Meera-Iyer.json").read_text() == "notes of mine"


def test_drift_tells_that_the_estate_file_was_edited(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drift = ["drift", str(base / "p.plan.json"), "--format", "json"]
    assert called(base, *drift) == 0
    with (base / "pii-tracer.yaml").open("a") as file:
        file.write("# a comment\n")
    capsys.readouterr()
    assert called(base, *drift) == ExitCode.DRIFT
    assert [(item["kind"], item["hard"]) for item in json.loads(capsys.readouterr().out)] == [("estate_file", True)]


def test_each_command_says_what_it_wrote_and_what_comes_next(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json")) == 0
    said = capsys.readouterr().err
    assert f"wrote {base / 'p.plan.json'}, with .md and .html" in said
    assert "p.subjects.sealed (the persons' values, encrypted)" in said
    assert called(base, "check", str(base / "p.plan.json")) == 0
    assert capsys.readouterr().out == f"no findings against {base / 'policy.yaml'}\n"
    assert approve(base, "asha", "dpo") == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [str(base / "p.approval-asha.json")], "for scripts: the path alone"
    assert f"next: `pii-tracer apply {base / 'p.plan.json'} --estate" in said.err
    assert "--trusted APPROVERS`" in said.err


def test_a_mark_that_an_approval_was_used_does_not_keep_it_alive(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark is a file with a name in it; only a journal shows that the run began, and with which approvals."""
    assert approve(base, "asha", "dpo") == 0
    loaded, state = load_plan(base / "p.plan.json"), base / "state"
    folder = folder_of(state, loaded.plan.plan_id)
    consume(state / "consumed", loaded.digest, folder.path.name)
    folder.path.mkdir(parents=True)
    Journal.open(folder.journal)
    folder.journal.touch()
    given = Settings(base / "pii-tracer.yaml", state), base / "p.plan.json", None, [], base / "approvers.yaml"
    monkeypatch.setattr(plan_run, "now", lambda: datetime.now(timezone.utc) + timedelta(hours=25))
    with pytest.raises(NotApproved, match="expired"):
        plan_run.start_run(*given)
    (signed,) = approval_files(base / "p.plan.json")
    journal, facts = Journal.open(folder.journal), {"approvals": [digest_of(signed.read_bytes())]}
    journal.append(Kind.RUN_STARTED, plan_id=loaded.plan.plan_id, plan_digest=loaded.digest, **facts)
    plan_run.start_run(*given)
    assert approve(base, "asha", "dpo", "signed again", "1") == 0
    with pytest.raises(NotApproved, match="expired"):
        plan_run.start_run(*given)
