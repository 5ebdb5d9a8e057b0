"""A trail fetched from its bucket is one that holds, and holds no more than the days that matter."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.config import Config

from pii_tracer.cli.main import run as command
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.cloudtrail.digest_chain import load_keys, read_trail
from pii_tracer.proof.cloudtrail.trail_download import KEYS_NAME, Fetched, fetch_trail
from tests.proof.aws import ACCOUNT, BUCKET, REGION, START
from tests.proof.aws_server import environment, serving
from tests.proof.cloudtrail.test_trail_chain import HOUR, written
from tests.proof.test_commands import add_run

END = START + 4 * HOUR


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "bucket"
    folder.mkdir()
    with serving(folder) as url:
        for name, value in environment(url, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield folder


def fetch(folder: Path, prefix: str = "", since: datetime = START, bucket: str = BUCKET) -> Fetched:
    s3 = boto3.client("s3", config=Config(s3={"addressing_style": "path"}))
    return fetch_trail(bucket, prefix, since, END, folder, s3, boto3.client("cloudtrail"))


@pytest.mark.parametrize("prefix", ["", "org/trails/"])
def test_what_was_fetched_holds(tmp_path: Path, bucket: Path, prefix: str) -> None:
    written(bucket, 6, prefix)
    assert fetch(tmp_path / "out", prefix) == Fetched(logs=5, digests=6, keys=1)
    trail = read_trail(tmp_path / "out", load_keys((tmp_path / "out" / KEYS_NAME).read_bytes()))
    assert (trail.findings, trail.notes) == ([], [])
    assert list(trail.spans.values()) == [(START, START + 6 * HOUR)]


def test_other_days_and_other_things_are_left_where_they_are(tmp_path: Path, bucket: Path) -> None:
    written(bucket)
    for day, service in (("2025/11/21", "CloudTrail"), ("2026/11/01", "CloudTrail-Digest"), ("2026/11/21", "Config")):
        path = bucket / "AWSLogs" / ACCOUNT / service / REGION / day / "x.json.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"{}"))
    fetch(tmp_path / "out")
    assert not list((tmp_path / "out").rglob("x.json.gz"))
    assert len(list((tmp_path / "out").rglob("*.json.gz"))) == 7


def test_refusals_are_told_and_an_empty_bucket_is_no_trail(tmp_path: Path, bucket: Path) -> None:
    with pytest.raises(ProofError, match="no digest file for the days"):
        fetch(tmp_path / "out")
    with pytest.raises(ProofError, match="AWS refuses: NoSuchBucket"):
        fetch(tmp_path / "out", bucket="another")
    assert not (tmp_path / "out").exists()


def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    listed = [{"Contents": [{"Key": "AWSLogs/../../stolen.json.gz"}]}]
    s3: Any = SimpleNamespace(get_paginator=lambda _: SimpleNamespace(paginate=lambda **_: listed))
    with pytest.raises(ProofError, match="not valid for a file"):
        fetch_trail(BUCKET, "", START, END, tmp_path / "out", s3, None)
    assert not list(tmp_path.rglob("stolen*"))


def test_the_command_fetches_the_days_of_the_run(
    tmp_path: Path, bucket: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "aws-config").write_text("[default]\ns3 =\n  addressing_style = path\n")
    run = add_run(tmp_path / "state", "plan-1")
    (run.path / "journal.jsonl").write_bytes((run.evidence / "journal.jsonl").read_bytes())
    written(bucket, 8)
    asked = ["attest", "trail", "plan-1", "--state", str(tmp_path / "state"), "--bucket", BUCKET, "--region", REGION]
    assert command(asked) == 0
    told = capsys.readouterr()
    assert "8 digests, 7 log files and 1 key" in told.err
    key = str(tmp_path / "state/keys/attest.pem.pub")
    verify = ["attest", "verify", str(run.attestation), "--key", key, "--format", "json", *told.out.split()]
    assert command(verify) == 1
    # the trail holds; it just does not know of the deletion
    assert [f["check"] for f in json.loads(capsys.readouterr().out)["findings"]] == ["unmatched_deletion"]
