"""Requests as the store keeps them, and the states that they go through."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.laws import Ground


class RequestState(StrEnum):
    """Where a request stands.

    carried_over: a plan did not erase the person wholly (a hold, a run that left something, a person whom the source
    does not know); the reason says why.
    """

    RECEIVED = "received"
    PLANNED = "planned"
    CARRIED_OVER = "carried_over"
    ERASED = "erased"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


OPEN = (RequestState.RECEIVED, RequestState.PLANNED, RequestState.CARRIED_OVER)
"""States in which the person is still to be erased. A person has one request in such a state at most."""

ENDED = (RequestState.REFUSED, RequestState.WITHDRAWN)
"""States in which the person is not to be erased any more."""

PROGRAM = "pii-tracer"
"""Who changes a state that no person changes."""
PLANNED_BY = "planned by "
"""So the reason begins for which a request is in a plan, by the program's word; the plan's id follows."""


@dataclass(frozen=True)
class Incoming:
    """One request as it came in, judged and found right. Its key is the person's value: it goes nowhere but sealed.

    line: its line in the file, or its row. id: the one that it came with, or None. kind: of subject. noticed: when the
    person was told, where the law wants that before the erasure.
    """

    line: int
    id: str | None
    kind: str
    key: str
    law: str
    received: datetime
    verified: str
    ground: Ground = Ground.REQUEST
    noticed: datetime | None = None

    def __repr__(self) -> str:
        return f"Incoming(line {self.line})"


@dataclass(frozen=True)
class Stored:
    """One request of the store, without the person's value.

    law, received, due: of the receipt whose deadline is the earliest. plan: the last plan that it was in. begun: when
    a run of that plan began to touch data. holds: what kept the person's data when it was carried over. proof: what
    proves the erasure. repeats: the erased request of the same person before this one. receipts: how often it came in.
    ground: `inactivity` only where the person never asked. noticed: when they were told of the erasure. extended: when
    they were informed that the law's longer time is taken, where `due` is the end of that. kept: ids of the holds by
    which the plan keeps copies that the person asked to keep. first_begun: when a run of any plan began to touch data.
    """

    id: str
    kind: str
    law: str
    received: datetime
    due: datetime
    verified: str
    state: RequestState
    reason: str
    plan: str | None
    begun: datetime | None
    holds: tuple[str, ...]
    proof: str | None
    repeats: str | None
    ground: Ground
    noticed: datetime | None
    extended: datetime | None
    kept: tuple[str, ...]
    first_begun: datetime | None
    receipts: int


@dataclass(frozen=True)
class Receipt:
    """One time that a request came in. id: the one that it came with. file: keyed digest of the file, and its line."""

    id: str | None
    law: str
    received: datetime
    verified: str
    file: str
    line: int


@dataclass(frozen=True)
class Change:
    """One change of a request's state, as its history keeps it."""

    at: datetime
    state: RequestState
    by: str
    reason: str


@dataclass(frozen=True)
class LongerTime:
    """A deadline that was extended. law, received: of the receipt. informed: when the person was, and why."""

    law: str
    received: datetime
    informed: datetime
    at: datetime
    who: str
    reason: str


class Taken(StrEnum):
    """What became of a row that is right.

    joined: the person's open request has one more receipt. repeated: a new request of a person who was erased before.
    known: it was there already.
    """

    ADDED = "added"
    JOINED = "joined"
    REPEATED = "repeated"
    KNOWN = "known"


class NotTaken(Exception):
    """A row cannot be taken; the text says why and holds nothing of the row."""
