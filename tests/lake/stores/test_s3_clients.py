"""Clients of S3: made once for what an estate file says, and for whoever the process is just then."""

from __future__ import annotations

import pickle
from pathlib import Path

import boto3
import pytest

from pii_tracer.config.estate_file import S3
from pii_tracer.lake.stores.s3.clients import OtherKindOfBucket, clients_of

SETTINGS = S3(region="eu-west-1", endpoint_url="http://127.0.0.1:9")


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No session yet, and no credentials for one."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def log_in(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")


def key_of(settings: S3 = SETTINGS) -> str | None:
    """Whose name the next request would bear."""
    session_credentials = clients_of(settings)(None)._request_signer._credentials
    return session_credentials.access_key if session_credentials else None


def test_one_client_serves_all_who_ask_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    log_in(monkeypatch, "one")
    client = clients_of(SETTINGS)(None)
    assert clients_of(S3(region="eu-west-1", endpoint_url="http://127.0.0.1:9"))("eu-west-1") is client
    assert clients_of(SETTINGS)("us-east-1") is not client
    assert clients_of(S3(region="eu-west-1"))(None) is not client


def test_credentials_that_come_later_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_of() is None
    log_in(monkeypatch, "late")
    assert key_of() == "late"


def test_another_session_has_its_own_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    log_in(monkeypatch, "one")
    assert key_of() == "one"
    log_in(monkeypatch, "two")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.session.Session())
    assert key_of() == "two"


@pytest.mark.parametrize("bucket", ["people--use1-az4--x-s3", "63a8e430-6e0b-46f5--table-s3"])
def test_no_request_is_sent_to_buckets_of_other_kinds(monkeypatch: pytest.MonkeyPatch, bucket: str) -> None:
    """Also by a factory of another process: workers search places that a plan names."""
    log_in(monkeypatch, "one")
    sent: list[str] = []
    boto3.setup_default_session()
    assert boto3.DEFAULT_SESSION is not None
    boto3.DEFAULT_SESSION.events.register("before-send.s3", lambda request, **_: sent.append(request.url))
    client = pickle.loads(pickle.dumps(clients_of(SETTINGS)))(None)
    for ask in (client.get_bucket_location, client.list_object_versions, client.get_bucket_replication):
        with pytest.raises(OtherKindOfBucket):
            ask(Bucket=bucket)
    with pytest.raises(OtherKindOfBucket):
        client.put_object(Bucket=bucket, Key="k", Body=b"")
    assert sent == []
