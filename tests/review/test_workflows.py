"""The ready workflows: valid YAML, valid shell, command lines that our own command line understands; and the review
steps really run on a small repository."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from pii_tracer.cli.main import cli, run
from pii_tracer.config.estate_file import file_digest
from pii_tracer.model.plan import Gap
from tests.review.plans import plan

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIuOuBgDCsm3iFq5a2nTnLFRJHzxWJyFQIQ+ZCEGAYjW"
PAGES = [ROOT / "docs" / "pull-requests.md"]


def scripts(file: Path) -> Iterator[str]:
    """Every shell script of a workflow."""
    document = yaml.safe_load(file.read_text())
    if "jobs" in document:
        yield from (step["run"] for job in document["jobs"].values() for step in job["steps"] if "run" in step)
        return
    for job in document.values():
        if isinstance(job, dict) and "script" in job:
            yield "\n".join(job["script"])


def command_lines(text: str) -> Iterator[list[str]]:
    """Every call of pii-tracer in a text, without what the shell does around it."""
    for line in text.replace("\\\n", " ").splitlines():
        for found in re.finditer(r"(?<![\w./-])pii-tracer (?=[a-z])", line):
            words = shlex.shlex(line[found.end() :].replace("`", ""), posix=True, punctuation_chars=True)
            words.commenters = "#"
            words.whitespace_split = True
            arguments = []
            for word in words:
                if set(word) <= set("();<>|&"):
                    break
                arguments.append(word)
            yield arguments


def parsed(arguments: list[str]) -> click.Context:
    command = cli.get_command(click.Context(cli), arguments[0])
    assert command is not None, arguments
    return command.make_context(arguments[0], list(arguments[1:]))


def test_there_are_workflows() -> None:
    assert [f.name for f in FILES] == [
        "github-apply.yml",
        "github-models.yml",
        "github-plan.yml",
        "github-review.yml",
        "gitlab-ci.yml",
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_the_scripts_are_valid_shell(file: Path) -> None:
    for script in scripts(file):
        done = subprocess.run(["bash", "-n"], input=script.encode(), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_every_command_line_is_understood(file: Path) -> None:
    lines = [line for script in scripts(file) for line in command_lines(script)]
    assert len(lines) >= 1
    for line in lines:
        parsed(line)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_command_line_of_the_pages_is_understood(page: Path) -> None:
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", page.read_text())
    lines = [line for block in blocks for line in command_lines(block)]
    assert lines
    for line in lines:
        parsed(line)


def test_a_wrong_command_line_is_found() -> None:
    (line,) = command_lines("pii-tracer check p.plan.json --no-such-option || true")
    with pytest.raises(click.UsageError):
        parsed(line)


@pytest.mark.parametrize("file", [f for f in FILES if f.name.startswith("github")], ids=lambda f: f.name)
def test_nothing_from_outside_is_pasted_into_a_script(file: Path) -> None:
    """An expression in a script is replaced before the shell reads it: values come through `env` instead."""
    assert not [script for script in scripts(file) if "${{" in script]


# --- the review steps, really run


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of a pull request (`head`) beside its base, and `pii-tracer` on the path."""
    base = tmp_path / "base"
    (tmp_path / "head" / "plans").mkdir(parents=True)
    (base / "plans").mkdir(parents=True)
    (base / "pii-tracer.yaml").write_text(
        "version: 1\nestate: t\nenvironment: production\ncatalogs: {}\nroots: [w]\nlineage: {}\n"
        "subjects: [{name: c, source: s, key: k}]\n"
    )
    (base / "policy.yaml").write_text("version: 1\nproduction_approvers: 1\n")
    shim = tmp_path / "bin" / "pii-tracer"
    shim.parent.mkdir()
    shim.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {sys.executable} -m pii_tracer.cli.main "$@"\n'
    )
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PII_TRACER_ESTATE", "base/pii-tracer.yaml")
    return tmp_path


def write(repository: Path, name: str, **changes: Any) -> Path:
    path = repository / name
    digest = file_digest(repository / "base" / "pii-tracer.yaml")
    path.write_bytes(plan(estate_digest=digest, **changes).to_bytes())
    return path


def review(repository: Path, job: str, step: str) -> subprocess.CompletedProcess[str]:
    document = yaml.safe_load((FOLDER / "github-review.yml").read_text())
    (script,) = [s["run"] for s in document["jobs"][job]["steps"] if s.get("name") == step]
    return subprocess.run(["bash", "-e", "-c", script], cwd=repository, capture_output=True, text=True, check=False)


def test_the_check_step_annotates_uploads_and_fails_as_the_plan_deserves(repository: Path) -> None:
    write(repository, "head/plans/same.plan.json", retention="immediate")
    (repository / "base/plans/same.plan.json").write_bytes((repository / "head/plans/same.plan.json").read_bytes())
    done = review(repository, "check", "check")
    assert (done.returncode, done.stdout) == (0, ""), "a plan that is the base's own is not looked at again"

    gap = Gap(id="g1", dataset=None, kind="unreadable", reason="r", evidence="e")
    write(repository, "base/plans/a b.plan.json")
    write(repository, "head/plans/a b.plan.json", gaps=[gap])
    done = review(repository, "check", "check")
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("::error file=plans/a b.plan.json,line=")
    assert '"ruleId": "gaps"' in (repository / "sarif" / "a b.sarif").read_text()
    assert "## ❌ Incomplete" in (repository / "comments" / "a b.md").read_text()
    assert "opened: r" in (repository / "comments" / "a b.diff.md").read_text()

    write(repository, "head/plans/a b.plan.json", retention="immediate")
    assert review(repository, "check", "check").returncode == 4


def test_the_approvals_step_is_green_when_these_very_bytes_are_signed(repository: Path) -> None:
    key = repository / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
    public = Path(f"{key}.pub").read_text().strip()
    (repository / "base" / "allowed_signers").write_text(f"asha {public} dpo\n")
    path = write(repository, "head/plans/p.plan.json")
    assert review(repository, "approved", "approvals").returncode == 4
    options = ["--estate", str(repository / "base" / "pii-tracer.yaml"), "--ssh-key", str(key)]
    assert run(["approve", str(path), *options, "--approver", "asha", "--role", "dpo", "--reason", "r"]) == 0
    # a key that the pull request brings along counts for nothing: the base's file is asked
    (repository / "head" / "allowed_signers").write_text("")
    done = review(repository, "approved", "approvals")
    assert done.returncode == 0, done.stdout + done.stderr
    path.write_bytes(path.read_bytes() + b"\n")
    assert review(repository, "approved", "approvals").returncode == 5


# --- the same for GitLab, in a merge request


@pytest.fixture
def merge_request(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a branch of its own; `pip` does nothing, and `curl` writes down what it was asked for."""
    for name, text in (("pip", ":"), ("curl", 'printf "%s\\n" "$@" >> "$CURLED"')):
        shim = repository / "bin" / name
        shim.write_text(f"#!/bin/sh\n{text}\n")
        shim.chmod(0o755)
    monkeypatch.delenv("PII_TRACER_ESTATE")
    for name, value in {
        "CURLED": str(repository / "curled"),
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_API_V4_URL": "http://localhost:9/api/v4",
        "CI_PROJECT_ID": "42",
        "PII_TRACER_BOT_TOKEN": "token",
    }.items():
        monkeypatch.setenv(name, value)
    clone = repository / "work" / "clone"
    clone.parent.mkdir()
    git(repository, "init", "--quiet", "--bare", "--initial-branch", "main", "origin.git")
    (repository / "base" / "allowed_signers").write_text(f"asha {PUBLIC} dpo\n")
    write(repository, "base/plans/old.plan.json", retention="immediate")
    git(repository / "base", "init", "--quiet", "--initial-branch", "main")
    commit(repository / "base", "base")
    git(repository / "base", "push", "--quiet", str(repository / "origin.git"), "main")
    git(repository, "clone", "--quiet", str(repository / "origin.git"), str(clone))
    git(clone, "switch", "--quiet", "-c", "erasure")
    # a policy that the merge request brings along counts for nothing
    (clone / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
    return clone


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", message)


def gitlab(clone: Path, job: str) -> subprocess.CompletedProcess[str]:
    script = "\n".join(yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text())[job]["script"])
    return subprocess.run(["bash", "-e", "-c", script], cwd=clone, capture_output=True, text=True, check=False)


def test_gitlab_checks_with_the_policy_of_the_target_branch(merge_request: Path, repository: Path) -> None:
    path = write(repository, "base/new.plan.json", retention="immediate")
    (merge_request / "plans" / "new.plan.json").write_bytes(path.read_bytes())
    commit(merge_request, "plan")
    done = gitlab(merge_request, "erasure:check")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "deny: immediate-retention" in done.stdout
    assert [p.name for p in sorted((merge_request / "reports").iterdir())] == ["new.md", "new.xml"]
    curled = (repository / "curled").read_text()
    assert "http://localhost:9/api/v4/projects/42/merge_requests/7/notes" in curled
    assert "body=<reports/new.md" in curled


def test_gitlab_is_red_until_somebody_has_approved(merge_request: Path, repository: Path) -> None:
    (merge_request / "plans" / "new.plan.json").write_bytes(write(repository, "base/new.plan.json").read_bytes())
    commit(merge_request, "plan")
    done = gitlab(merge_request, "erasure:approved")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "0 of 1 approvers have approved" in done.stdout


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_a_workflow_is_what_its_service_says_a_workflow_is(file: Path) -> None:
    """The published schemas of GitHub and GitLab, as `check-jsonschema` carries them."""
    schema = "vendor.github-workflows" if file.name.startswith("github") else "vendor.gitlab-ci"
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run([*words, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if schema == "vendor.github-workflows":
        broken = file.read_text().replace("runs-on:", "runs-upon:", 1).encode()
        refused = subprocess.run([*words, "-"], input=broken, capture_output=True, check=False)
        assert refused.returncode == 1
