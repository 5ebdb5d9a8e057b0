"""The request store of a state folder, and when its requests are due."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pii_tracer.app.settings import Settings
from pii_tracer.config.laws import Law
from pii_tracer.intake.request_store import FILE, RequestStore
from pii_tracer.intake.taking_in import Due


def store_of(settings: Settings) -> RequestStore:
    """The store, made where it is not there.

    Raises:
        RequestError: it cannot be used.
        PlanError: the estate key cannot be.
    """
    key = settings.key(create=settings.estate().environment == "local")
    return RequestStore(settings.state / FILE, key)


def existing_store(settings: Settings) -> RequestStore | None:
    """The store, or None where no request was ever taken in. Raises as `store_of`."""
    path: Path = settings.state / FILE
    return RequestStore(path, settings.key()) if path.exists() else None


def due_by(laws: Mapping[str, Law]) -> Due:
    """When a request must be done, by its law; to the second, in UTC."""
    from planners.schedule.erasure_requests import in_utc

    return lambda law, received: in_utc(laws[law].at(received).deadline.after(received))
