"""AWS's own verifier comes to what ours comes to, over the trails that the tests build."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from pii_tracer.proof.cloudtrail.digest_chain import load_keys, read_trail
from tests.proof.aws import RSA_KEY, START, TrailWriter, keys_json, stamp
from tests.proof.aws_server import TRAIL, environment, serving
from tests.proof.cloudtrail.test_trail_chain import written


def aws() -> str:
    """The AWS CLI of this environment (package `awscli`), or one on the path."""
    beside = Path(sys.executable).with_name("aws")
    found = str(beside) if beside.exists() else shutil.which("aws")
    assert found, "the AWS CLI is not installed: `make setup` installs it"
    return found


def aws_accepts(folder: Path, home: Path) -> bool:
    """Whether `aws cloudtrail validate-logs` finds every digest and log file valid."""
    asked = ["--trail-arn", TRAIL, "--start-time", stamp(START), "--end-time", stamp(START + timedelta(hours=4))]
    with serving(folder) as url:
        told = {**os.environ, **environment(url, home)}
        done = subprocess.run(
            [aws(), "cloudtrail", "validate-logs", *asked], env=told, capture_output=True, text=True, check=False
        )
    assert "Results requested for" in done.stdout, done.stderr
    return done.returncode == 0 and "INVALID" not in done.stdout and "4/4 digest files valid" in done.stdout


def edit(old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(old, new)))

    return change


CASES: dict[str, tuple[Callable[[TrailWriter], Path] | None, Callable[[Path], None]]] = {
    "as it was written": (None, Path.unlink),
    "a changed log file": (lambda w: w.logs[0], edit(b"R0", b"R9")),
    "a changed digest": (lambda w: w.digests[1], edit(b"eu-west-1", b"eu-west-9")),
    "a missing log file": (lambda w: w.logs[1], Path.unlink),
    "a missing digest": (lambda w: w.digests[1], Path.unlink),
}


@pytest.mark.parametrize("name", CASES)
def test_both_verifiers_agree(tmp_path: Path, name: str) -> None:
    choose, change = CASES[name]
    (tmp_path / "trail").mkdir()
    writer = written(tmp_path / "trail")
    if choose:
        change(choose(writer))
    ours = not read_trail(tmp_path / "trail", load_keys(keys_json(RSA_KEY))).findings
    assert (ours, aws_accepts(tmp_path / "trail", tmp_path)) == (choose is None, choose is None)
