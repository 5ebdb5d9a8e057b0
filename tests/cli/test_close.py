"""`close` destroys the values of a run that is over, and nothing that is still needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.execution import sealed_values_destruction
from pii_tracer.app.execution.plan_run import start_run
from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.execution.sealed_values_destruction import close_run
from pii_tracer.app.execution.verify_step import verdict_file
from pii_tracer.app.persons_apart.requests_left_open import places_of
from pii_tracer.app.proof.own_attestation import attested_persons
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.plan import digest_of
from pii_tracer.proof.attestation import Erased
from pii_tracer.proof.attestation_issuing import publish, stamp_of
from pii_tracer.proof.attestation_log import LOG_NAME, AttestationLog, log_line
from pii_tracer.proof.attester_keys import attester, public_file
from pii_tracer.review.trusted_keys import generate, load_private, public_pem
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.verify.verdicts import Bystanders, CopyVerdict
from tests.app.planning.test_nested_subject import called, estate
from tests.cli.small import RECEIVED
from tests.proof.attested import attest
from tests.proof.test_attestation import approved, nonces, proven

OVER = {"state": "complete", "residue": []}


@pytest.fixture
def begun(tmp_path: Path) -> RunFolder:
    """A run that was let through the gate; beside its plan another one for the same person, and a plan of old."""
    estate(tmp_path)
    for name in ("p", "q"):
        out = str(tmp_path / f"{name}.plan.json")
        assert called(tmp_path, "plan", str(tmp_path / "request.yaml"), "--out", out) == 0
    (tmp_path / "old.plan.json").write_text("{}")
    (tmp_path / "old.subjects.sealed").write_text("x")
    words = ["--approver", "asha", "--role", "dpo", "--reason", "r", "--unsigned"]
    assert called(tmp_path, "approve", str(tmp_path / "p.plan.json"), *words) == 0
    return start_run(
        Settings(tmp_path / "pii-tracer.yaml", tmp_path / "state"), tmp_path / "p.plan.json", None, [], None
    )


def close(folder: RunFolder, *words: str) -> int:
    return run(["close", folder.path.name, "--state", folder.info().state, *words])


def ended(folder: RunFolder, *, attested: bool = True, authority: str | None = None, **result: Any) -> None:
    """A run that verified all of its steps and came to a result. attested: over evidence that holds. authority: who
    stamped the attestation."""
    folder.result.write_text(json.dumps(result | {"attestation": "a"} if attested else result))
    loaded = folder.approved()
    journal = Journal.open(folder.journal)
    journal.append(Kind.RUN_STARTED, plan_id=loaded.plan.plan_id, plan_digest=loaded.digest)
    for step in loaded.plan.steps:
        journal.append(Kind.STEP_VERIFIED, step=step.id)
    journal.append(Kind.RUN_FINISHED, state="complete")
    if attested:
        given = replace(proven(folder.path), loaded=loaded, journal=folder.journal.read_bytes())
        copies = [copy.id for copy in loaded.plan.copies]
        gone = [Erased(copy_id=copy, uri=f"/lake/{copy}") for copy in copies]
        given = replace(given, approvals=[approved(loaded)], clean={*copies}, erased=gone, authority=authority)
        key, log = attester(None, folder.path, folder.state, local=True), AttestationLog(folder.state / LOG_NAME)
        publish(
            lambda history: attest(given, key, nonce=nonces(), history=history),
            folder.attestation,
            folder.evidence,
            log,
            loaded.plan.plan_id,
            (lambda _: b"stamp") if authority else None,
        )


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"state": "waiting", "waiting_until": "2026-12-01T00:00:00Z"},
        {"state": "partial", "residue": [{"copy": "c"}]},
        {"state": "partial", "left_out": ["c"], "failed": [{"step": "s"}]},
    ],
)
def test_a_run_that_is_not_over_keeps_its_values(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    if result:
        begun.result.write_text(json.dumps(result))
    assert close(begun) == ExitCode.USAGE
    assert "not over" in capsys.readouterr().err
    assert (tmp_path / "p.subjects.sealed").exists()
    assert not begun.closed.exists()


@pytest.mark.parametrize("result", [OVER, {"state": "partial", "left_out": ["c"]}])
def test_the_values_of_a_run_that_is_over_are_destroyed_once(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    ended(begun, **result)
    capsys.readouterr()
    assert close(begun, "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["destroyed"]
    assert told["others"] == [str(tmp_path / "q.subjects.sealed")]
    assert {p.name for p in tmp_path.glob("*.sealed")} == {"q.subjects.sealed", "old.subjects.sealed"}
    assert begun.closed_at() == told["closed_at"]
    assert close(begun, "--format", "json") == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["destroyed"], again["closed_at"]) == (False, told["closed_at"])
    assert close(begun) == 0
    assert f"was closed on {told['closed_at']}" in capsys.readouterr().out
    assert called(tmp_path, "verify", str(tmp_path / "p.plan.json")) == ExitCode.ERROR
    assert "until the request is closed" in capsys.readouterr().err
    run(["status", begun.path.name, "--state", begun.info().state])
    assert f"closed {told['closed_at']}" in capsys.readouterr().out


def test_a_run_whose_attestation_was_stamped_is_closed(begun: RunFolder) -> None:
    ended(begun, authority="https://tsa.example", **OVER)
    assert close(begun) == 0


def test_what_was_found_again_after_the_attestation_keeps_the_values(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later `resume` found the person in a place that is no copy: the old attestation and its evidence still hold."""
    (asked,) = begun.approved().plan.requests
    ended(begun, **OVER)
    assert attested_persons(begun) == {asked.subject}
    begun.result.write_text(json.dumps({"state": "partial", "residue": [1], "open_requests": [asked.id]}))
    assert places_of(begun) == {asked.subject: ()}
    assert close(begun) == ExitCode.USAGE
    assert "1 request of the run stays open" in capsys.readouterr().err
    assert (tmp_path / "p.subjects.sealed").exists()


def _another_result(folder: RunFolder) -> None:
    folder.result.write_text(json.dumps(OVER))


def _no_attestation(folder: RunFolder) -> None:
    ended(folder, attested=False, **OVER)


def _open_requests(folder: RunFolder) -> None:
    _another_result(folder)
    folder.result.write_text(json.dumps({"state": "partial", "residue": [{"copy": "c"}], "open_requests": ["zzz"]}))


def _a_verdict_of_harm(folder: RunFolder) -> None:
    """A run whose verdicts say that others lost rows never comes to its end: only an editor can have written this."""
    _no_attestation(folder)
    copy = folder.approved().plan.copies[0].id
    harmed = CopyVerdict(copy_id=copy, bystanders=Bystanders(copy_id=copy, lost=1, equal=False))
    verdict_file(folder.verdicts, copy).parent.mkdir(exist_ok=True)
    verdict_file(folder.verdicts, copy).write_text(harmed.model_dump_json())


def _a_changed_journal(folder: RunFolder) -> None:
    ended(folder, **OVER)
    folder.journal.write_bytes(folder.journal.read_bytes().replace(b"verified", b"Verified", 1))


def _changed_evidence(folder: RunFolder) -> None:
    ended(folder, **OVER)
    file = folder.evidence / "scope.jsonl"
    file.write_bytes(file.read_bytes() + b"{}\n")


def _an_attestation_without_its_stamp(folder: RunFolder) -> None:
    ended(folder, authority="https://tsa.example", **OVER)
    stamp_of(folder.attestation).unlink()


def _attested_again_since(folder: RunFolder) -> None:
    """Somebody puts the older attestation and its evidence back."""
    ended(folder, **OVER)
    log = AttestationLog(folder.state / LOG_NAME)
    with log.locked():
        log.append(log_line(b"a later one", folder.approved().plan.plan_id))


def _a_foreign_signature(folder: RunFolder) -> None:
    ended(folder, **OVER)
    generate(folder.path / "other.pem")
    public_file(folder.state).write_bytes(public_pem(load_private(folder.path / "other.pem").public_key()))


@pytest.mark.parametrize(
    "edited",
    [
        _another_result,
        _open_requests,
        _no_attestation,
        _a_verdict_of_harm,
        _a_changed_journal,
        _changed_evidence,
        _an_attestation_without_its_stamp,
        _attested_again_since,
        _a_foreign_signature,
    ],
)
def test_a_result_alone_closes_nothing(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], edited: Callable[[RunFolder], None]
) -> None:
    edited(begun)
    assert close(begun) != 0
    assert "Traceback" not in capsys.readouterr().err
    assert (tmp_path / "p.subjects.sealed").exists()
    assert begun.closed_at() is None


def test_the_manifest_of_a_plan_that_was_made_anew_stays(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(begun, **OVER)
    (tmp_path / "p.subjects.sealed").write_bytes(b"of a plan that was written over this one")
    assert close(begun) == ExitCode.USAGE
    assert "does not belong to the plan of this run" in capsys.readouterr().err
    assert (tmp_path / "p.subjects.sealed").exists()


def test_a_manifest_that_lies_elsewhere_is_not_said_to_be_destroyed(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(begun, **OVER)
    (tmp_path / "p.subjects.sealed").rename(tmp_path / "kept")
    assert close(begun) == ExitCode.USAGE
    assert "cannot be removed" in capsys.readouterr().err
    assert begun.closed_at() is None


def test_a_kill_after_the_values_went_lets_the_run_be_closed(
    begun: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can put back what is destroyed, so that the run could never be closed."""
    ended(begun, **OVER)

    def killed(manifest: Path) -> None:
        manifest.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sealed_values_destruction, "_remove", killed)
        with pytest.raises(KeyboardInterrupt):
            close_run(begun.state, begun.path.name)
    assert begun.closed_at() is None
    assert not (tmp_path / "p.subjects.sealed").exists()
    assert close(begun) == 0
    assert begun.closed_at() is not None
    assert "closing" not in json.loads(begun.closed.read_bytes())


def test_a_kill_before_the_values_went_destroys_them_the_next_time(
    begun: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(begun, **OVER)

    def killed(manifest: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sealed_values_destruction, "_remove", killed)
        with pytest.raises(KeyboardInterrupt):
            close_run(begun.state, begun.path.name)
    assert begun.closed_at() is None
    assert (tmp_path / "p.subjects.sealed").exists()
    assert close(begun) == 0
    assert not (tmp_path / "p.subjects.sealed").exists()


def test_a_run_is_told_by_its_own_plan_when_another_was_made_into_the_same_file(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", str(tmp_path / "request.yaml"), "--out", str(tmp_path / "p.plan.json")]
    assert called(tmp_path, *words, "--as-of", RECEIVED) == 0
    capsys.readouterr()
    assert run(["status", "--state", begun.info().state, "--format", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["plan_id"], told["steps"]) == (begun.path.name, None)


def test_a_plan_that_this_version_cannot_read_is_not_called_missing(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another version made it. Its bytes are those that were approved."""
    file = tmp_path / "p.plan.json"
    file.write_bytes(file.read_bytes().replace(b'"complete":', b'"whole":', 1))
    told = json.loads(begun.info_file.read_bytes()) | {"plan_digest": digest_of(file.read_bytes())}
    begun.info_file.write_text(json.dumps(told))
    answer = ["attest", "answer", begun.path.name, "--all", "--estate", str(tmp_path / "pii-tracer.yaml")]
    for command in (answer, ["close", begun.path.name]):
        assert run([*command, "--state", str(begun.state)]) != 0
        error = capsys.readouterr().err
        assert "the plan file is wrong at" in error, error
        assert "the version of pii-tracer that made the plan" in error
    assert run(["status", "--state", str(begun.state)]) == 0
    assert "an unknown number of steps" in capsys.readouterr().out


def test_a_run_whose_plan_is_gone_has_answered_nobody(begun: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """And it keeps nobody from finding out whom another run answered."""
    (asked,) = begun.approved().plan.requests
    ended(begun, attested=False, state="partial", open_requests=[asked.id])
    other = RunFolder(begun.path.parent / "plan-gone")
    other.path.mkdir()
    gone = json.loads(begun.info_file.read_bytes()) | {"plan_id": "plan-gone", "plan_file": "gone.plan.json"}
    other.info_file.write_text(json.dumps(gone))
    other.result.write_text(json.dumps({"state": "complete", "attestation": "a", "open_requests": []}))
    assert close(begun) == ExitCode.USAGE
    assert f"1 request of the run stays open, and the persons' values are needed to search for them: {asked.id}" in (
        capsys.readouterr().err
    )
