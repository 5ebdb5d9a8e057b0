"""A plan that leaves copies out can be run to its end, and is never attested."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import ProofError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from tests.proof.attested import attest
from tests.proof.test_attestation import KEY, nonces, proven
from tests.review.plans import plan


def test_no_attestation_of_a_plan_that_leaves_copies_out(tmp_path: Path) -> None:
    assert attest(proven(tmp_path), KEY, nonce=nonces())
    left = Gap(id="g", dataset=DatasetId(namespace="file", name="/b"), kind=GapKind.LEFT_OUT, reason="r", evidence="e")
    partial = plan(gaps=[left], complete=False, applyable=True, only=("c1",))
    (tmp_path / "part").mkdir()
    with pytest.raises(ProofError, match="leaves copies out"):
        attest(proven(tmp_path / "part", partial), KEY, nonce=nonces())
