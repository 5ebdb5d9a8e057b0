"""Reports of a review: no name from outside is markup, a command or a link; the command line ends with the right code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from sarif_pydantic import Sarif

from pii_tracer.cli.main import run
from pii_tracer.model.model_review import SUMMARIES, FindingKind, ModelReview, ReviewFinding, Severity
from reports.model_review.markdown_comment import render_markdown
from reports.model_review.sarif_report import render_sarif
from reports.model_review.text_and_json import render_annotations, render_json, render_text
from tests.model_review.repositories import Repo

ROOT = Path(__file__).parents[2]
EVIL = 'a`|</code>\n::error::x\u202e%0A[l](u){0}@all"];'


def finding(number: int = 0, **changes: object) -> ReviewFinding:
    given = {
        "kind": FindingKind.COPY_WITHOUT_KEY, "severity": Severity.ERROR, "file": f"m/{number}{EVIL}.sql", "line": 3, "table": EVIL,
        "message": f"{EVIL} goes", "todo": "Select the key.", "path": ("raw", EVIL), "because": (EVIL,),
    }  # fmt: skip
    return ReviewFinding.model_validate(given | changes)


def of(*findings: ReviewFinding) -> ModelReview:
    return ModelReview(base="b" * 40, head="working tree", subjects=(), compared=9, changed=(), findings=findings)


def test_names_from_outside_are_only_text() -> None:
    review = of(finding(), finding(1, waived=EVIL))
    for text in (render_text(review), render_annotations(review), render_markdown(review)):
        assert "\u202e" not in text
    assert all(line.startswith(("::error file=", "::notice file=")) for line in render_annotations(review).splitlines())
    table = [line for line in render_markdown(review).splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in table} == {6}
    assert "@all" not in render_markdown(review)
    assert 'n1["a#96;' in render_markdown(review)
    assert json.loads(render_json(review))["exit_code"] == 4


def test_sarif_holds_to_its_schema_and_suppresses_what_was_accepted() -> None:
    log = json.loads(render_sarif(of(finding(), finding(1, waived="because"), finding(2, file=""))))
    Sarif.model_validate(log)
    results = log["runs"][0]["results"]
    assert [result.get("suppressions", []) for result in results] == [
        [],
        [{"kind": "inSource", "justification": "because"}],
        [],
    ]
    assert "locations" not in results[2]
    assert [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]] == [kind.value for kind in SUMMARIES]


def test_a_comment_fits_and_keeps_denials() -> None:
    many = render_markdown(of(*(finding(n) for n in range(2000))))
    assert len(many.encode()) <= 60_000
    assert "more findings do not fit here" in many


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "r").put({"a.sql": "CREATE TABLE p (customer_id BIGINT, email STRING);\n"}).commit()
    return made.put({"b.sql": "CREATE TABLE q AS SELECT email FROM p;\n"})


def test_the_command(
    repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo.root)
    assert run(["review", "--base", "main"]) == 4
    assert capsys.readouterr().out.startswith("b.sql:1: denied: copy-without-key: email goes to q")
    for fmt in ("json", "markdown", "github", "sarif"):
        assert run(["review", "--base", "main", "--format", fmt, "--out", str(tmp_path / fmt)]) == 4
        assert (tmp_path / fmt).read_text().endswith("\n")
    repo.clean()
    assert run(["review", "--base", "main"]) == 0
    assert "Passed: nothing found (0 changed of 1 models and scripts)" in capsys.readouterr().out
    repo.put({"c.sql": "CREATE VIEW c AS SELECT email FROM p;\n"})
    assert run(["review", "--base", "main"]) == 0
    assert "(1 changed of 2 models and scripts; views, which hold no rows: 1)" in capsys.readouterr().out
    assert run(["review", "--base", "nowhere"]) == 2
    assert run(["review"]) == 2


def test_the_hook_and_the_action_call_the_command(repo: Repo) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    words = hook["entry"].split()
    done = subprocess.run(
        [sys.executable, "-m", "pii_tracer.cli.main", *words[1:], *hook["args"]],
        cwd=repo.root, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert (done.returncode, hook["pass_filenames"]) == (4, False), done.stderr
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    script = next(step["run"] for step in action["runs"]["steps"] if "pii-tracer review" in step.get("run", ""))
    assert "${{" not in script, "inputs reach the shell as variables alone"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "BASE": "main", "REPOSITORY": ".", "ESTATE": "", "LINEAGE": "", "DIALECT": "",
           "MANIFEST": "", "BASE_MANIFEST": "", "REPORTS": "reports", "GITHUB_STEP_SUMMARY": str(repo.root / "summary")}  # fmt: skip
    tool = repo.root / "bin" / "pii-tracer"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m pii_tracer.cli.main "$@"\n')
    tool.chmod(0o755)
    env["PATH"] = f"{tool.parent}:{env['PATH']}"
    ran = subprocess.run(
        ["bash", "-e", "-c", script], cwd=repo.root, capture_output=True, text=True, env=env, check=False
    )
    assert ran.returncode == 4, ran.stderr
    assert "::error file=b.sql,line=1" in ran.stdout
    assert "copy-without-key" in (repo.root / "summary").read_text()
    assert (repo.root / "reports" / "review.sarif").exists()
