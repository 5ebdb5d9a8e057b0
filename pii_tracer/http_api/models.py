"""What goes over HTTP: bodies that are taken, and answers. No answer has a field for a person's value."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from pii_tracer.config.laws import Ground
from pii_tracer.intake.requests import RequestState, Stored
from pii_tracer.model.datasets import Frozen

_Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class NewRequest(Frozen):
    """One request, with the fields that a row of a list has (docs/requests.md). received: now, if it is not said."""

    subject: str
    key: str
    law: str
    received: str | None = None
    verified: str | None = None
    id: str | None = None
    right: str | None = None
    ground: str | None = None
    noticed: str | None = None


class Withdrawal(Frozen):
    """Who takes a request back, and why; without anything of the person."""

    by: _Text
    reason: _Text


class RequestView(Frozen):
    """A request as it stands."""

    id: str
    subject: str
    law: str
    received: datetime
    due: datetime
    verified: str
    state: RequestState
    reason: str
    plan: str | None
    proof: str | None
    repeats: str | None
    ground: Ground
    noticed: datetime | None
    extended: datetime | None
    receipts: int

    @classmethod
    def of(cls, one: Stored) -> RequestView:
        """Of a request of the store."""
        told = {name: getattr(one, name) for name in cls.model_fields if name != "subject"}
        return cls(subject=one.kind, **told)


class TakenRequest(Frozen):
    """What became of a request that was sent. outcome: added, joined, repeated, or known."""

    outcome: str
    request: RequestView


class RequestList(Frozen):
    """Requests, the one that is due first at the beginning. next: the `after` of the next page; null on the last."""

    counts: dict[RequestState, int]
    requests: tuple[RequestView, ...]
    next: str | None


class WithdrawnRequest(Frozen):
    """released: other requests of a plan that is not to be applied any more."""

    id: str
    state: RequestState
    released: tuple[str, ...]


class Problem(Frozen):
    """Why something was not done. Nothing that was sent is repeated in it."""

    error: str = Field(min_length=1)
    todo: str | None = None
