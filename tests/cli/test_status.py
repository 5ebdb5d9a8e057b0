"""What `status` says of a run that was killed, moved or lost its records, and of places that are none."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.execution.run_folder import RunFolder, RunInfo, folder_of
from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.plan import digest_of
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.lease import Lease
from tests.cli.small import declared, request
from tests.review.plans import plan

PLAN = plan()


@pytest.fixture
def begun(tmp_path: Path) -> RunFolder:
    (tmp_path / "e.yaml").write_text(
        declared("w", {"app.users": "delta"}) + "  - {name: u, source: app.users, key: k}\n"
    )
    (tmp_path / "p.plan.json").write_bytes(PLAN.to_bytes())
    folder = folder_of(tmp_path / "state", PLAN.plan_id)
    paths = {name: str(tmp_path / file) for name, file in (("plan_file", "p.plan.json"), ("estate_file", "e.yaml"))}
    digest = digest_of(PLAN.to_bytes())
    info = RunInfo(
        plan_id=PLAN.plan_id, plan_digest=digest, policy_file="p", approvals=(), trusted=None, state="", **paths
    )
    folder.write_info(info)
    journal = Journal.open(folder.journal)
    journal.append(Kind.RUN_STARTED, plan_digest=digest)
    journal.append(Kind.STEP_INTENT, step=PLAN.steps[0].id)
    return folder


def status(state: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, Any]:
    capsys.readouterr()
    assert run(["status", "--state", str(state)]) == 0
    text = capsys.readouterr().out
    assert run(["status", "--state", str(state), "--format", "json"]) == 0
    return text, json.loads(capsys.readouterr().out)[0]


def test_a_run_that_was_killed_says_how_to_go_on(begun: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    text, told = status(begun.state, capsys)
    assert "was killed or stopped in the middle" in text
    assert f"`pii-tracer resume {PLAN.plan_id} --state {begun.state}`" in text
    assert (told["killed"], told["state"], told["problem"], told["steps"]) == (
        True,
        "not finished",
        None,
        len(PLAN.steps),
    )


def test_a_run_that_goes_on_or_came_to_its_end_was_not_killed(
    begun: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    with Lease.acquire(begun.path):
        text, told = status(begun.state, capsys)
        assert not told["killed"]
        assert "killed" not in text
    Journal.open(begun.journal).append(Kind.RUN_FINISHED, state="waiting")
    assert not status(begun.state, capsys)[1]["killed"]


def test_a_journal_that_was_cut_is_told_and_the_rest_as_well(
    begun: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    begun.journal.write_bytes(begun.journal.read_bytes().splitlines(keepends=True)[0])
    text, told = status(begun.state, capsys)
    assert "cannot go on: the end of the journal is missing" in text
    assert "resume" not in text
    assert told["last"] is not None


def test_a_copy_is_told(begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(begun.state, tmp_path / "copy")
    text, told = status(tmp_path / "copy", capsys)
    assert "cannot go on: the state folder was moved or copied" in text
    assert (told["steps"], told["run_by"]) == (len(PLAN.steps), None)


@pytest.mark.parametrize("kind", ["file", "circle", "nowhere"])
def test_a_state_folder_that_is_none_is_an_error_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    state = tmp_path / "state"
    state.touch() if kind == "file" else state.symlink_to(state if kind == "circle" else tmp_path / "gone")
    for words in (["status"], ["resume"], ["recheck"]):
        assert run([*words, "--state", str(state)]) == ExitCode.USAGE
        assert "the state folder is not a folder" in capsys.readouterr().err
    assert run(["status", "--state", str(tmp_path / "none")]) == 0


@pytest.mark.parametrize("words", [["inventory"], ["harvest"], ["plan", "r.yaml"], ["check", "p.plan.json"]])
def test_an_estate_file_that_is_a_circle_of_links_is_an_error_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (tmp_path / "a.yaml").symlink_to(tmp_path / "b.yaml")
    (tmp_path / "b.yaml").symlink_to(tmp_path / "a.yaml")
    (tmp_path / "p.plan.json").write_bytes(PLAN.to_bytes())
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    (tmp_path / "r.yaml").write_text(request("u", "1"))
    named = [str(tmp_path / word) if "." in word else word for word in words]
    code = run([*named, "--estate", str(tmp_path / "a.yaml"), "--state", str(tmp_path / "state")])
    assert code == ExitCode.ERROR
    told = capsys.readouterr().err
    assert "unexpected" not in told
    assert "symbolic links" in told


def test_times_are_written_for_people_and_exact_for_machines(
    begun: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    text, told = status(begun.state, capsys)
    assert re.search(r" steps, last \d+ [A-Z][a-z]{2} \d{4} \d\d:\d\d UTC\n", text)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[0-9:.]+\+00:00", told["last"])
