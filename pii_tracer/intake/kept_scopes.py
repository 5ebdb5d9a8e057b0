"""What persons asked to keep of their data: as the store has it, and as the holds that a plan is made with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.requests import OPEN
from pii_tracer.model.canonical_json import canonical, iso, parse_time
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.legal_holds import Hold, HoldKind
from pii_tracer.model.timestamps import Moment

_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_OPEN = ", ".join(f"'{state}'" for state in OPEN)
_MOST_NAMES = 100


def _sorted(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


_Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")
]
Names = Annotated[tuple[_Name, ...], Field(max_length=_MOST_NAMES), AfterValidator(_sorted)]
Datasets = Annotated[Names, Field(min_length=1)]


class Scope(Frozen):
    """What somebody asked to keep: datasets, named as in a hold; or only some columns or categories of them.

    until: when it is to be erased after all; None where it is to stay.
    """

    datasets: Datasets
    columns: Names = ()
    categories: Names = ()
    until: Moment | None = None

    @property
    def hold(self) -> str:
        """The id of the hold that keeps it: of letters alone, since a number in it could be somebody's key."""
        until = iso(self.until) if self.until else None
        told = canonical({**self.model_dump(mode="json", exclude={"until"}), "until": until})
        return "own-" + sha256(told).hexdigest()[:16].translate(_LETTERS)

    def ended(self, at: datetime) -> bool:
        """Whether it is to be kept no longer."""
        return self.until is not None and self.until <= at


@dataclass(frozen=True)
class Narrowing:
    """One time that a request was narrowed. asked: when its person asked for that. at, who, reason: of whoever wrote it
    down. lapsed: whether the person asked for everything again, later than that."""

    request: str
    scope: Scope
    asked: datetime
    at: datetime
    who: str
    reason: str
    lapsed: bool

    def in_force(self, at: datetime) -> bool:
        """Whether a plan of a day has to keep what it names."""
        return not self.lapsed and not self.scope.ended(at)


_NARROWINGS = (
    "SELECT n.request, n.scope, n.asked, n.at, n.who, n.reason,"
    " EXISTS (SELECT 1 FROM receipts e WHERE e.request = n.request AND e.received > n.asked) FROM narrowings n"
)


def narrowings_of(connection: Connection, request: str) -> tuple[Narrowing, ...]:
    """Each time that a request was narrowed, in the order in which its person asked for it."""
    rows = connection.execute(f"{_NARROWINGS} WHERE n.request = ? ORDER BY n.asked, n.hold", (request,))
    return tuple(map(_narrowing, rows))


def all_in_force(connection: Connection, at: datetime) -> dict[str, tuple[Narrowing, ...]]:
    """By open request, what a plan of a day has to keep."""
    query = f"{_NARROWINGS} JOIN requests r ON r.id = n.request WHERE r.state IN ({_OPEN}) ORDER BY n.asked, n.hold"
    found: dict[str, tuple[Narrowing, ...]] = {}
    for row in connection.execute(query):
        one = _narrowing(row)
        if one.in_force(at):
            found[one.request] = (*found.get(one.request, ()), one)
    return found


def keep_on(connection: Connection, person: str, request: str) -> None:
    """What a person asked to keep counts for a further request of hers, too, unless she asked for everything later.

    person: keyed reference.
    """
    connection.execute(
        "INSERT INTO narrowings (request, hold, asked, scope, at, who, reason)"
        " SELECT ?, n.hold, n.asked, n.scope, n.at, n.who, n.reason"
        " FROM narrowings n JOIN requests r ON r.id = n.request WHERE r.person = ? AND r.id != ?"
        " AND NOT EXISTS (SELECT 1 FROM receipts e JOIN requests o ON o.id = e.request"
        " WHERE o.person = r.person AND e.received > n.asked) ON CONFLICT DO NOTHING",
        (request, person, request),
    )


def scopes_of(narrowings: Iterable[Narrowing]) -> frozenset[str]:
    """The ids of the holds that keep what they name."""
    return frozenset(one.scope.hold for one in narrowings)


def own_holds(narrowings: Mapping[str, Sequence[Narrowing]], day: datetime) -> tuple[Hold, ...]:
    """The holds of a plan for some requests: one for each scope, of all who asked for it.

    day: that of the plan, on which each counts, also where the plan is made for a day of before.

    Who wrote it down, and why, stays in the store: these texts can name the person, and a plan is seen by everybody.
    """
    alike: dict[str, list[Narrowing]] = {}
    for mine in narrowings.values():
        for one in mine:
            alike.setdefault(one.scope.hold, []).append(one)
    return tuple(_hold(name, alike[name], day) for name in sorted(alike))


def _hold(name: str, narrowings: Sequence[Narrowing], day: datetime) -> Hold:
    scope = narrowings[0].scope
    told: dict[str, Any] = {"from": min(day, *(one.asked for one in narrowings)), "until": scope.until or "indefinite"}
    return Hold(
        id=name,
        kind=HoldKind.OWN_REQUEST,
        datasets=scope.datasets,
        columns=scope.columns,
        categories=scope.categories,
        requests=tuple(sorted({one.request for one in narrowings})),
        basis="the person's own request",
        citation="as the request store has it",
        approver="the person",
        **told,
    )


def _narrowing(row: tuple[Any, ...]) -> Narrowing:
    request, scope, asked, at, who, reason, lapsed = row
    return Narrowing(
        request=request,
        scope=Scope.model_validate_json(scope),
        asked=parse_time(asked),
        at=parse_time(at),
        who=who,
        reason=reason,
        lapsed=bool(lapsed),
    )
