"""Dates in headers are read in one place, in every form that servers write."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from executors.stores.s3.step_base import server_time
from pii_tracer.common.http_dates import http_date
from pii_tracer.lake.stores.s3.object_versions import Readability, readability

AT = datetime(1994, 11, 6, 8, 49, 37, tzinfo=timezone.utc)
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 -0000",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 14:19:37 +0530",
        "Sun, 06 Nov 1994 03:49:37 EST",
        "06 Nov 1994 08:49:37 UTC",
        "1994-11-06T08:49:37Z",
        "1994-11-06T14:19:37+05:30",
        ' "Sun, 06 Nov 1994 08:49:37 GMT" ',
    ],
)
def test_every_form_is_the_same_moment_in_utc(text: str) -> None:
    found = http_date(text)
    assert found == AT
    assert found is not None
    assert found.tzinfo is timezone.utc
    assert server_time({"ResponseMetadata": {"HTTPHeaders": {"date": text}}}, datetime.max) == AT
    if '"' not in text:
        head = {"StorageClass": "GLACIER", "Restore": f'ongoing-request="false", expiry-date="{text}"'}
        assert readability(head, AT) is Readability.ARCHIVED


@pytest.mark.parametrize(
    "text", ["", "soon", "Sun, 06 Nov 1994 08:49:37 IST", "Sun, 99 Nov 1994 08:49:37 GMT", None, 7]
)
def test_what_is_no_date_is_none_and_no_error(text: object) -> None:
    assert http_date(text) is None
    assert server_time({"ResponseMetadata": {"HTTPHeaders": {"date": text}}}, AT) == AT


def test_nobody_else_reads_dates_of_headers() -> None:
    folders = ("pii_tracer", "planners", "executors", "reports")
    found = [p for folder in folders for p in (ROOT / folder).rglob("*.py") if "parsedate" in p.read_text()]
    assert found == [ROOT / "pii_tracer" / "common" / "http_dates.py"]
