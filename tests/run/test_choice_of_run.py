"""Which run `resume` goes on with when none is named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.execution.run_folder import RunInfo, choose_run, folder_of
from pii_tracer.app.execution.run_outputs import exit_code
from pii_tracer.model.errors import ExitCode, UsageError

OPEN: dict[str, Any] = {"failed": [], "never_started": [], "waiting_until": None, "residue": [], "unverified": []}
PART = {**OPEN, "state": "partial", "left_out": ["c2"]}
CUT = {**OPEN, "state": "partial", "left_out": [], "failed": [{"step": "a", "reason": "r", "next": None}]}


def a_run(state: Path, name: str, result: dict[str, Any] | None, age: int) -> None:
    folder = folder_of(state, name)
    paths = dict.fromkeys(("plan_digest", "plan_file", "estate_file", "policy_file", "state"), "x")
    folder.write_info(RunInfo(plan_id=name, approvals=(), trusted=None, **paths))
    os.utime(folder.info_file, (1e9 - age, 1e9 - age))
    if result is not None:
        folder.result.write_text(json.dumps(result))


def test_a_part_that_was_chosen_and_is_done_is_passed_over(tmp_path: Path) -> None:
    a_run(tmp_path, "plan-old", CUT, age=3)
    a_run(tmp_path, "plan-part", PART, age=2)
    a_run(tmp_path, "plan-whole", {**OPEN, "state": "complete", "left_out": []}, age=1)
    assert choose_run(tmp_path, None, unfinished=True).path.name == "plan-old"
    assert choose_run(tmp_path, None, unfinished=False).path.name == "plan-whole"
    assert choose_run(tmp_path, "plan-part", unfinished=False).path.name == "plan-part"


def test_a_run_that_is_done_for_all_but_some_persons_is_passed_over(tmp_path: Path) -> None:
    """They need a new plan: to go on with it again and again would keep an older run waiting."""
    result = {**OPEN, "state": "partial", "left_out": [], "residue": [{"copy": "c1"}], "open_requests": ["R-2"]}
    a_run(tmp_path, "plan-old", CUT, age=2)
    a_run(tmp_path, "plan-others", result, age=1)
    assert choose_run(tmp_path, None, unfinished=True).path.name == "plan-old"
    assert exit_code(result) is ExitCode.RESIDUE


@pytest.mark.parametrize(
    ("open_", "code"),
    [
        ({"failed": CUT["failed"]}, ExitCode.PARTIAL),
        ({"never_started": ["b"]}, ExitCode.PARTIAL),
        ({"waiting_until": "2026-12-01T00:00:00+00:00", "state": "waiting"}, ExitCode.WAITING),
        ({"residue": [{"copy": "c1"}]}, ExitCode.RESIDUE),
        ({"unverified": ["a file"]}, ExitCode.PARTIAL),
    ],
)
def test_a_part_with_anything_open_is_gone_on_with(tmp_path: Path, open_: dict[str, Any], code: ExitCode) -> None:
    a_run(tmp_path, "plan-part", {**PART, **open_}, age=1)
    assert choose_run(tmp_path, None, unfinished=True).path.name == "plan-part"
    assert exit_code({**PART, **open_}) is code


def test_a_run_that_died_before_its_result_is_gone_on_with(tmp_path: Path) -> None:
    a_run(tmp_path, "plan-dead", None, age=1)
    assert choose_run(tmp_path, None, unfinished=True).path.name == "plan-dead"


def test_when_nothing_is_left_it_says_so(tmp_path: Path) -> None:
    a_run(tmp_path, "plan-part", PART, age=1)
    with pytest.raises(UsageError, match="no unfinished run"):
        choose_run(tmp_path, None, unfinished=True)
    assert exit_code(PART) is ExitCode.INCOMPLETE
