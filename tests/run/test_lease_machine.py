"""Any interleaving of runners on one lease in a store, with answers lost: who was overtaken never passes again."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pii_tracer.model.errors import Refused
from pii_tracer.run.journal import utc_now
from pii_tracer.run.store_lease import LeaseObject, StoreLease
from tests.kits.lease_kit import Told, Watch
from tests.kits.memory_store import MemoryStore


class Leases(RuleBasedStateMachine):
    """passed: the tokens under which a runner was told that it holds the lease, in order."""

    @initialize()
    def start(self) -> None:
        self.store = MemoryStore()
        self.place = LeaseObject(self.store, "plan.lease.json")
        self.history = Told()
        self.leases: list[StoreLease] = []
        self.passed: list[int] = []

    @rule(alive=st.booleans(), which=st.integers(0, 5), lost=st.none() | st.booleans())
    def acquire(self, alive: bool, which: int, lost: bool | None) -> None:
        """Somebody wants it; the one who is watched gives a sign, or is silent."""
        held = self.leases[which % len(self.leases)] if self.leases else None
        sign = (lambda: self._check(held)) if alive and held is not None else (lambda: None)
        watch = Watch(meanwhile=sign)
        self.store.faults.lost = [] if lost is None else [lost]
        try:
            lease = StoreLease.acquire(
                self.place, self.history, utc_now, beat_seconds=1e6, sleep=watch.sleep, monotonic=watch.monotonic
            )
        except Refused:
            return
        finally:
            self.store.faults.lost = []
        self.leases.append(lease)
        self.passed.append(lease.token)

    @rule(which=st.integers(0, 5), lost=st.none() | st.booleans())
    def check(self, which: int, lost: bool | None) -> None:
        if self.leases:
            self.store.faults.lost = [] if lost is None else [lost]
            self._check(self.leases[which % len(self.leases)])
            self.store.faults.lost = []

    def _check(self, lease: StoreLease) -> None:
        try:
            lease.check()
        except Refused:
            return
        self.passed.append(lease.token)

    @rule(which=st.integers(0, 5), lost=st.none() | st.booleans())
    def release(self, which: int, lost: bool | None) -> None:
        if self.leases:
            self.store.faults.lost = [] if lost is None else [lost]
            self.leases[which % len(self.leases)].release()
            self.store.faults.lost = []

    @rule(head=st.text("abc", min_size=1, max_size=3))
    def written(self, head: str) -> None:
        self.history.heads.append(head)

    @invariant()
    def who_was_overtaken_never_passes_again(self) -> None:
        if hasattr(self, "passed"):
            assert self.passed == sorted(self.passed)

    @invariant()
    def no_two_have_one_token(self) -> None:
        if hasattr(self, "leases"):
            tokens = [lease.token for lease in self.leases]
            assert len(set(tokens)) == len(tokens)

    def teardown(self) -> None:
        for lease in getattr(self, "leases", ()):
            lease.release()


Leases.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestLeases = Leases.TestCase
