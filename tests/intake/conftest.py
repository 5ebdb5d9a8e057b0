"""Each test of the store runs on both databases, whatever it shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgressupport import server


@pytest.fixture(params=["file", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The URL of an empty PostgreSQL database, or None: the requests are in a file of the state folder."""
    if request.param == "file":
        yield None
        return
    with server().schema() as url:
        yield url
