"""What a listing of blobs is asked behind its last entry, of services that do not know the question."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pii_tracer.lake.stores.azure.listed_blobs import listed


class Container:
    """One that lists everything whatever the question. Between two listings a writer is busy."""

    def __init__(self, writes: str) -> None:
        self.writes, self.listings = writes, 0
        self.blobs = {f"a{number}": "first" for number in range(3)}

    def list_blobs(self, **query: Any) -> Any:
        self.listings += 1
        if self.listings > 9:
            pytest.fail("it is asked for ever")
        if self.listings > 1:
            self.blobs[self.writes if self.writes in self.blobs else f"{self.writes}{self.listings}"] = "second"
        made = [
            SimpleNamespace(
                name=name, etag=tag, size=1, version_id=None, snapshot=None, deleted=False, deleted_time=None
            )
            for name, tag in sorted(self.blobs.items())
        ]
        return SimpleNamespace(by_page=lambda: iter([made]))


@pytest.mark.parametrize("writes", ["0new", "a0", "a2"])
def test_one_that_ignores_it_is_asked_once_more_and_tells_nothing_twice(writes: str) -> None:
    container = Container(writes)
    found = [(item.name, item.etag) for item in listed(cast(Any, container), "", "store", hierarchical=False)]
    assert found == [("a0", "first"), ("a1", "first"), ("a2", "first")]
    assert container.listings == 2
