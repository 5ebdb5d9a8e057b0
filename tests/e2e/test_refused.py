"""Folders that the run may not write into: the run stops there, says which, and loses nothing; mended, `resume` ends it.

Permissions do not bind root, and so neither Spark's process: `apply` runs in a process without the rights that exempt it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.test_meanwhile import Small, assert_repaired, small

__all__ = ["small"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

_BOUND = """
import ctypes, os, sys
for right in (1, 2, 3):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER: gone with the next program
    ctypes.CDLL(None).prctl(24, right, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""
_APPLY = """
import sys
from pathlib import Path
from pii_tracer.cli.main import run
from pii_tracer.run.journal import Journal, Kind

append, folder = Journal.append, Path(sys.argv[1])

def watching(self, kind, /, **facts):
    record = append(self, kind, **facts)
    if kind is Kind.STEP_VERIFIED and facts["step"].endswith("rewrite-manifests"):
        folder.chmod(0o555)
        try:
            (folder / "x").touch()
        except PermissionError:
            return record
        raise SystemExit("permissions do not bind this process")
    return record

Journal.append = watching
sys.exit(run(sys.argv[2:]))
"""


def test_what_may_not_be_written_is_named_and_resumed_when_it_is_mended(small: Small) -> None:
    """Iceberg's expiry passes over files that it may not remove, and says nothing."""
    data, extract = small.base / "warehouse" / "core" / "visits" / "data", small.base / "tables" / "extract"
    before = {path.name: path.read_bytes() for path in extract.iterdir() if path.is_file()}
    words = ["apply", "s.plan.json", "--estate", "pii-tracer.yaml", "--trusted", "approvers.yaml"]
    words += ["--state", "state", "--result", "result.json"]
    extract.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _BOUND, _APPLY, str(data), *words],
            cwd=small.base,
            env=None,
            capture_output=True,
            check=False,
            text=True,
        )
    finally:
        data.chmod(0o755)
        extract.chmod(0o755)
    told = done.stdout + done.stderr
    assert done.returncode == 7, told
    result = small.result()
    assert (result["state"], result["attestation"]) == ("partial", None)
    refused = [str(r.facts["reason"]) for r in small.records() if r.kind.value == "step_failed"]
    assert len(refused) == 2, refused
    assert all(
        reason.startswith("the operating system rejects the change: Permission denied (") for reason in refused
    ), refused
    assert {Path(reason.partition("(")[2]).parent for reason in refused} == {data, extract}
    assert "pii-tracer resume" in told
    assert {path.name: path.read_bytes() for path in extract.iterdir() if path.is_file()} == before
    assert_repaired(small)
