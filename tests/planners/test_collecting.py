"""The collector's rhythm while a plan is made: what stays is not looked at, neither inside nor at the end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from pii_tracer.common.gc_pause import lasting_objects


@pytest.fixture
def ran() -> Iterator[list[str]]:
    """How often the collector ran."""
    found: list[str] = []

    def told(phase: str, info: dict[str, Any]) -> None:
        found.append(phase)

    gc.callbacks.append(told)
    yield found
    gc.callbacks.remove(told)


def test_what_stays_is_looked_at_neither_inside_nor_at_the_end(ran: list[str]) -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    gc.collect()
    ran.clear()
    with lasting_objects():
        kept = [[number] for number in range(20 * before[0][0])]
    assert not ran
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
    assert any(made is kept[-1] for made in gc.get_objects(generation=2))


def test_an_error_leaves_the_collector_as_it_was() -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    with pytest.raises(ValueError, match="no plan"), lasting_objects():
        raise ValueError("no plan")
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
