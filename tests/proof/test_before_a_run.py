"""A run that nobody could attest in the end is not begun."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from pii_tracer.app.execution.plan_run import start_run
from pii_tracer.app.settings import Settings
from pii_tracer.config.estate_file import file_digest
from pii_tracer.model.errors import ProofError
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.trusted_keys import public_pem, trusted_yaml
from tests.proof.test_attestation import APPROVER, KEY
from tests.review.plans import plan
from tests.review.test_review import approved


def test_without_the_attester_s_key_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estate = {
        "version": 1,
        "estate": "test",
        "environment": "production",
        "catalogs": {},
        "roots": [],
        "lineage": {},
        "subjects": [{"name": "user", "source": "users", "key": "id"}],
        "attestation_key": {"environment": "ATTEST_KEY"},
    }
    (tmp_path / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    policy = {"version": 1, "production_approvers": 1, "allow_immediate_retention": True}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    made = plan(estate_digest=file_digest(tmp_path / "pii-tracer.yaml"))
    file = tmp_path / "p.plan.json"
    file.write_bytes(made.to_bytes())
    now = datetime.now(timezone.utc)
    signed = approved(
        load_plan(file),
        APPROVER,
        now=now,
        expires=now + timedelta(hours=1),
        policy_digest=file_digest(tmp_path / "policy.yaml"),
    )
    (tmp_path / "p.approval-asha.json").write_bytes(signed)
    pem = public_pem(APPROVER.public_key()).decode()
    (tmp_path / "trusted.yaml").write_bytes(trusted_yaml([("asha", "dpo", pem)]))
    settings = Settings(tmp_path / "pii-tracer.yaml", tmp_path / "state")
    monkeypatch.delenv("ATTEST_KEY", raising=False)
    with pytest.raises(ProofError, match="variable with the attester's key"):
        start_run(settings, file, None, [], tmp_path / "trusted.yaml")
    assert not (tmp_path / "state" / "runs").exists()
    secret = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    monkeypatch.setenv("ATTEST_KEY", secret)
    assert start_run(settings, file, None, [], tmp_path / "trusted.yaml").info_file.exists()
