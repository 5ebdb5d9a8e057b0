"""`verify` says by what files with the bytes of an earlier search are known."""

from __future__ import annotations

import pytest

from pii_tracer.cli.verify_command import known_by
from pii_tracer.scan.hits import Reading


@pytest.mark.parametrize(
    ("before", "by_store", "told"),
    [
        (3, 0, "SHA-256"),
        (3, 1, "SHA-256: 2, by the store's version and ETag: 1"),
        (3, 3, "the store's version and ETag: 3"),
    ],
)
def test_what_files_are_known_by(before: int, by_store: int, told: str) -> None:
    assert known_by(Reading(before=before, by_store=by_store)) == told
