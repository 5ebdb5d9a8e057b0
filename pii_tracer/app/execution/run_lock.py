"""The right to run a plan: the lock of its state folder and, if the estate names one, the lease in a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.settings import Settings
from pii_tracer.model.errors import PiiTracerError
from pii_tracer.run.journal import Clock, Journal, Kind
from pii_tracer.run.lease import Lease, who_runs
from pii_tracer.run.runner import Fence

if TYPE_CHECKING:
    from pii_tracer.run.store_lease import LeaseObject


@dataclass(frozen=True)
class Both:
    """Two leases that must both be held. The token is that of the farther one, which all machines count on."""

    near: Fence
    far: Fence

    @property
    def token(self) -> int:
        """The fencing token that goes into the journal."""
        return self.far.token

    def check(self) -> None:
        """Raise `Refused` when one of the two was lost."""
        self.near.check()
        self.far.check()


@contextmanager
def held(settings: Settings, folder: RunFolder, clock: Clock, *, take_over: bool) -> Iterator[tuple[Journal, Fence]]:
    """The run's journal, opened by its only writer, and what tells that it is still the only one.

    Raises:
        Refused: somebody else runs this plan, or nobody can tell.
        JournalError: the journal is broken.
    """
    with Lease.acquire(folder.path, clock, take_over=take_over) as near:
        journal = Journal.open(folder.journal, clock)
        place = lease_object(settings, folder.path.name)
        if place is None:
            yield journal, near
            return
        from pii_tracer.run.store_lease import StoreLease

        highest = max((int(r.facts["token"]) for r in journal.records if r.kind is Kind.LEASE), default=0)
        with StoreLease.acquire(place, journal, clock, token_above=highest) as far:
            yield journal, Both(near, far)


def held_by(settings: Settings, folder: RunFolder) -> str | None:
    """Who runs a plan, on this machine or by the lease in a store, in words; None where nobody does."""
    here = who_runs(folder.path)
    if here is not None:
        return here
    try:
        place = lease_object(settings, folder.path.name)
    except PiiTracerError as error:  # the estate file is not what it was
        return f"unknown: {error.what}"
    if place is None:
        return None
    from pii_tracer.run.store_lease import who_holds

    far = who_holds(place)
    return f"{far}, by the lease {place.name}" if far else None


def lease_object(settings: Settings, plan_id: str) -> LeaseObject | None:
    """The object that holds a plan's lease; None where the estate names no store for leases."""
    estate = settings.estate()
    if estate.lease is None:
        return None
    from pii_tracer.lake.stores.registry import store_at
    from pii_tracer.run.store_lease import LeaseObject

    store, prefix = store_at(estate, estate.lease)
    name = f"{plan_id}.lease.json"
    return LeaseObject(store, f"{prefix}/{name}" if prefix else name)
