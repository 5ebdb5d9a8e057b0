"""What the lease of a run does on every store that can hold it; a store's tests say how to reach an empty one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pii_tracer.lake.stores.base import ObjectStore
from pii_tracer.model.errors import Refused
from pii_tracer.run.journal import GENESIS, utc_now
from pii_tracer.run.store_lease import LeaseObject, StoreLease


@dataclass
class Told:
    """A journal as far as a lease sees it."""

    heads: list[str] = field(default_factory=lambda: [GENESIS])

    @property
    def head(self) -> str:
        return self.heads[-1]

    def holds(self, head: str) -> bool:
        return head in self.heads


@dataclass
class Watch:
    """A watcher's time: time passes only by looking, and something may happen in it."""

    meanwhile: Callable[[], None] = lambda: None
    now: float = 0.0
    slept: int = 0

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += 1
        self.meanwhile()

    def monotonic(self) -> float:
        return self.now


def take(place: LeaseObject, history: Told | None = None, watch: Watch | None = None, **more: Any) -> StoreLease:
    """A lease whose holder writes it only when told to."""
    watch = watch or Watch()
    more = {"beat_seconds": 1e6, **more}
    return StoreLease.acquire(place, history or Told(), utc_now, sleep=watch.sleep, monotonic=watch.monotonic, **more)


class LeaseKit:
    """One runner a plan, on one store."""

    @pytest.fixture
    def store(self) -> ObjectStore:
        raise NotImplementedError

    @pytest.fixture
    def place(self, store: ObjectStore) -> LeaseObject:
        return LeaseObject(store, "leases/plan-1.lease.json")

    def test_one_that_is_given_back_is_free_at_once(self, place: LeaseObject) -> None:
        watch = Watch()
        with take(place) as first:
            first.check()
        with take(place, watch=watch) as second:
            assert (first.token, second.token, second.took_over, watch.slept) == (1, 2, None, 0)
        assert {version.key for version in place.store.versions("leases/")} == {place.key}, "trial objects stay"

    def test_a_holder_that_gives_a_sign_keeps_it(self, place: LeaseObject) -> None:
        first = take(place)
        with pytest.raises(Refused, match="already being run by process"):
            take(place, watch=Watch(meanwhile=first.check))
        first.check()

    def test_a_silent_holder_is_overtaken_and_stops(self, place: LeaseObject) -> None:
        first = take(place)
        with take(place) as second:
            assert (second.token, second.took_over is not None) == (2, True)
            with pytest.raises(Refused, match="another runner now has the lease"):
                first.check()
            second.check()
        with pytest.raises(Refused, match="steps that this state folder does not know"):
            take(place, Told(["sha256:1"]))
