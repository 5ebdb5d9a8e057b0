"""A state folder that was moved, copied or put back is not gone on with, unless a person says that it is the run's."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from pii_tracer.app.execution.plan_run import start_run
from pii_tracer.app.execution.run_folder import RunFolder, folder_of
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode, Refused
from pii_tracer.run.lease import Lease
from tests.app.planning.test_nested_subject import called, estate


@pytest.fixture
def begun(tmp_path: Path) -> RunFolder:
    """A run that was let through the gate; its plan and approvals lie in the state folder."""
    base = tmp_path / "project"
    base.mkdir()
    estate(base)
    file = base / "state" / "plans" / "p.plan.json"
    assert called(base, "plan", str(base / "request.yaml"), "--out", str(file)) == 0
    assert called(base, "approve", str(file), "--approver", "a", "--role", "r", "--reason", "r", "--unsigned") == 0
    return start_run(Settings(base / "pii-tracer.yaml", base / "state"), file, None, [], None)


def refused(state: Path, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(["resume", name, "--state", str(state)]) == ExitCode.ERROR
    return capsys.readouterr().err


def test_what_lies_inside_the_state_is_written_down_from_there(begun: RunFolder) -> None:
    written = json.loads(begun.info_file.read_bytes())
    assert written["plan_file"] == "plans/p.plan.json"
    assert written["approvals"] == ["plans/p.approval-a.json"]
    assert written["estate_file"] == str(begun.state.parent / "pii-tracer.yaml")
    assert begun.info().plan_file == str(begun.state / "plans" / "p.plan.json")


def test_a_copy_is_refused_by_every_command_that_goes_by_it(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, copy = begun.path.name, tmp_path / "copy"
    shutil.copytree(begun.state, copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    told = refused(copy, name, capsys)
    assert "moved or copied" in told
    assert f"begun in {begun.state}" in told
    assert "--moved" in told
    for words in (["verify"], ["close", name], ["confirm", "s", "--evidence", "e", "--by", "b", "--role", "r"]):
        assert run([*words, "--state", str(copy), *(["--said", "s", "--run", name] if words[0] == "confirm" else [])])
    estate_file = str(begun.state.parent / "pii-tracer.yaml")
    again = ["apply", str(copy / "plans" / "p.plan.json"), "--estate", estate_file, "--state", str(copy)]
    assert run(again) == ExitCode.ERROR
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    assert begun.info().state == str(begun.state)


def test_a_copy_beside_the_run_is_not_taken_for_it_by_a_persons_word(begun: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(begun.state, tmp_path / "copy")
    copy = folder_of(tmp_path / "copy", begun.path.name)
    with pytest.raises(Refused, match="is still there"):
        copy.adopt()
    with pytest.raises(Refused, match="moved or copied"):
        copy.info()


def test_a_folder_that_was_put_back_from_a_copy_is_noticed(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(begun.path, tmp_path / "kept")
    begun.path.rename(tmp_path / "newer")
    shutil.copytree(tmp_path / "kept", begun.path)
    assert "put back from a copy" in refused(begun.state, begun.path.name, capsys)
    begun.adopt()
    assert begun.info().plan_id == begun.path.name


def test_a_state_that_was_moved_goes_on_with_what_lies_in_it(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, place = begun.path.name, tmp_path / "elsewhere"
    begun.state.rename(place)
    assert "moved or copied" in refused(place, name, capsys)
    moved = folder_of(place, name)
    moved.adopt()
    info = moved.info()
    assert info.plan_file == str(place / "plans" / "p.plan.json")
    assert info.estate_file == str(tmp_path / "project" / "pii-tracer.yaml")
    assert moved.settings().state == place


def test_a_project_that_was_moved_as_a_whole_takes_its_own_files(begun: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "project").rename(tmp_path / "other")
    moved = folder_of(tmp_path / "other" / "state", begun.path.name)
    moved.adopt()
    assert moved.info().estate_file == str(tmp_path / "other" / "pii-tracer.yaml")
    assert moved.info().policy_file == str(tmp_path / "other" / "policy.yaml")


def test_a_run_that_goes_on_is_not_moved(begun: RunFolder, tmp_path: Path) -> None:
    name = begun.path.name
    with Lease.acquire(begun.path, pid=os.getpid()):
        begun.state.rename(tmp_path / "elsewhere")
        with pytest.raises(Refused, match="is being run"):
            folder_of(tmp_path / "elsewhere", name).adopt()


def test_another_name_of_the_same_folder_is_no_move(begun: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(begun.state)
    folder = folder_of(tmp_path / "link", begun.path.name)
    assert folder.info().plan_file == begun.info().plan_file
    assert RunFolder(tmp_path / "link" / "runs" / begun.path.name).info().plan_id == begun.path.name


def test_resume_takes_the_word(begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What follows is stopped by the gate, so that no engine is needed: the approval is gone."""
    begun.state.rename(place := tmp_path / "elsewhere")
    (place / "plans" / "p.approval-a.json").unlink()
    capsys.readouterr()
    assert run(["resume", begun.path.name, "--state", str(place), "--moved"]) == ExitCode.NOT_APPROVED
    assert str(place / "plans") in capsys.readouterr().err
    assert folder_of(place, begun.path.name).info().state == str(place)


@pytest.mark.parametrize("how", ["closed", "over"])
def test_a_run_that_has_nothing_more_to_do_is_adopted_and_not_run(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    """Its sealed manifest is destroyed, or may be, and there is nothing to do for an engine."""
    begun.result.write_text(json.dumps({"state": "complete", "residue": []}))
    if how == "closed":
        begun.closed.write_text(json.dumps({"plan_id": begun.path.name, "closed_at": "2026-12-01T00:00:00+00:00"}))
    (begun.state / "plans" / "p.subjects.sealed").unlink()
    begun.state.rename(place := tmp_path / "elsewhere")
    moved = folder_of(place, begun.path.name)
    assert "--moved" in refused(place, begun.path.name, capsys)
    assert run(["resume", begun.path.name, "--state", str(place), "--moved"]) == 0
    told = capsys.readouterr().out
    assert "nothing was run" in told
    assert str(moved.path) in told
    assert moved.info().state == str(place)
    assert not moved.journal.exists()
    assert run(["resume", begun.path.name, "--state", str(place), "--moved", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"plan_id": begun.path.name, "adopted": str(moved.path)}
