"""What an owner does about a refusal of AWS."""

from __future__ import annotations

import pytest

from pii_tracer.lake.aws_errors import remedy


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("403", "grant the account s3:GetObject"),
        ("AccessDenied", "grant the account s3:GetObject"),
        ("ExpiredToken", "get new ones"),
        ("InvalidAccessKeyId", "get new ones"),
        ("NoCredentialsError", "get new ones"),
        ("SlowDown", "again later"),
        ("ThrottlingException", "again later"),
        ("500", "the server does not answer this call"),
        ("InternalFailure", "the server does not answer this call"),
        ("OtherKindOfBucket", "a table bucket or a directory bucket"),
    ],
)
def test_a_refusal_says_what_to_do(code: str, word: str) -> None:
    assert word in remedy(code, "s3:GetObject")


def test_another_failure_says_nothing() -> None:
    assert remedy("NoSuchBucket", "s3:GetObject") == ""
