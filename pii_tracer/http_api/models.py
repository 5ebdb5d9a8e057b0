"""What goes over HTTP: bodies that are taken, and answers. No answer has a field for a person's value."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from pii_tracer.config.laws import Ground
from pii_tracer.intake.kept_scopes import Narrowing, Wish
from pii_tracer.intake.requests import RequestState, Stored
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.timestamps import Moment

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


class NarrowedTo(Wish):
    """What the person keeps: whole datasets, as a hold names them. take_back: names that were wrong. asked: when the
    person asked for it. by, reason: as of a withdrawal."""

    asked: Moment
    by: _Text
    reason: _Text

    def wish(self) -> Wish:
        """What is kept, and what is not any more."""
        return Wish(keep=self.keep, take_back=self.take_back)


class NarrowingView(Frozen):
    """One dataset that the person asked to keep. lapsed: the person asked for everything later than that. taken_back:
    the name was wrong."""

    keep: str
    asked: datetime
    lapsed: bool
    taken_back: bool


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
        told = {name: getattr(one, name) for name in RequestView.model_fields if name != "subject"}
        return RequestView(subject=one.kind, **told)


class ShownRequest(RequestView):
    """A request, with what its person keeps."""

    narrowings: tuple[NarrowingView, ...]

    @classmethod
    def shown(cls, one: Stored, narrowings: Sequence[Narrowing]) -> ShownRequest:
        """Of a request of the store, and each time that it was narrowed."""
        found = tuple(
            NarrowingView(keep=n.dataset, asked=n.asked, lapsed=n.lapsed, taken_back=n.taken_back)
            for n in narrowings
            if n.keeps
        )
        return cls(**RequestView.of(one).model_dump(), narrowings=found)


class TakenRequest(Frozen):
    """What became of a request that was sent. outcome: added, joined, repeated, or known. widened: datasets that the
    person keeps no more, since she asked for everything."""

    outcome: str
    request: RequestView
    widened: tuple[str, ...]


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
