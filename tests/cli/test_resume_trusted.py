"""`resume` takes `--trusted` as `apply` does: a run goes on when the file of trusted keys lies elsewhere by now."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.app.execution.plan_run import start_run, trust
from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.app.planning.test_nested_subject import called, estate


def keys_of(base: Path, name: str) -> bytes:
    return trusted_yaml([("asha", "dpo", public_pem(generate(base / name)).decode())])


@pytest.fixture
def begun(tmp_path: Path) -> RunFolder:
    """A run that was let through the gate and has done nothing yet; then its file of trusted keys was moved."""
    estate(tmp_path)
    assert called(tmp_path, "plan", str(tmp_path / "request.yaml"), "--out", str(tmp_path / "p.plan.json")) == 0
    (tmp_path / "approvers.yaml").write_bytes(keys_of(tmp_path, "k.pem"))
    words = ["--approver", "asha", "--role", "dpo", "--reason", "r", "--key", str(tmp_path / "k.pem")]
    assert called(tmp_path, "approve", str(tmp_path / "p.plan.json"), *words) == 0
    settings = Settings(tmp_path / "pii-tracer.yaml", tmp_path / "state")
    folder = start_run(settings, tmp_path / "p.plan.json", None, [], tmp_path / "approvers.yaml")
    (tmp_path / "approvers.yaml").rename(tmp_path / "moved.yaml")
    return folder


def resume(folder: RunFolder, trusted: Path) -> int:
    return run(["resume", folder.path.name, "--state", folder.info().state, "--trusted", str(trusted)])


def test_keys_by_which_the_approval_does_not_hold_change_nothing(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "others.yaml").write_bytes(keys_of(tmp_path, "other.pem"))
    before = begun.info()
    assert resume(begun, tmp_path / "others.yaml") == ExitCode.NOT_APPROVED, capsys.readouterr().err
    assert resume(begun, tmp_path / "nowhere.yaml") == ExitCode.ERROR
    assert begun.info() == before


def test_the_file_that_was_moved_counts_from_then_on(begun: RunFolder, tmp_path: Path) -> None:
    trust(begun, tmp_path / "moved.yaml")
    assert begun.info().trusted == str((tmp_path / "moved.yaml").resolve())
