"""What persons asked to keep of their data: as the store has it, and as the holds that a plan is made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.requests import ENDED, OPEN
from pii_tracer.model.canonical_json import parse_time
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.legal_holds import Hold, HoldKind

_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_OPEN = ", ".join(f"'{state}'" for state in OPEN)
_ENDED = ", ".join(f"'{state}'" for state in ENDED)
MOST_KEPT = 20
"""Datasets that one person can keep."""


def alike(name: str) -> str:
    """The same for all names of one table, which is named without regard to case, or of one place."""
    return name.rstrip("/") if "/" in name else name.lower()


def _sorted(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({alike(name): name for name in sorted(names, reverse=True)}.values()))


_Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")
]
Names = Annotated[tuple[_Name, ...], Field(max_length=MOST_KEPT), AfterValidator(_sorted)]


class Wish(Frozen):
    """Datasets that somebody asked to keep, each whole and named as in a hold. take_back: names that were wrong."""

    keep: Names = ()
    take_back: Names = ()


@dataclass(frozen=True)
class Narrowing:
    """One dataset that somebody asked to keep, or that was taken back.

    keeps: False where it was taken back. asked: when its person asked for that. at, who, reason: of whoever wrote it
    down. lapsed: whether the person asked for everything again, later than that. taken_back: whether that was undone.
    """

    request: str
    dataset: str
    keeps: bool
    asked: datetime
    at: datetime
    who: str
    reason: str
    lapsed: bool
    taken_back: bool

    @property
    def hold(self) -> str:
        """The id of the hold that keeps it: of letters alone, since a number in it could be somebody's key."""
        return hold_of(self.dataset)

    @property
    def in_force(self) -> bool:
        """Whether a plan has to keep the dataset."""
        return self.keeps and not self.lapsed and not self.taken_back


def hold_of(dataset: str) -> str:
    """The id of the hold by which a dataset is kept."""
    return "own-" + sha256(alike(dataset).encode()).hexdigest()[:16].translate(_LETTERS)


WHOLLY_ERASED_SINCE = (
    "EXISTS (SELECT 1 FROM requests l WHERE l.person = r.person AND l.state = 'erased' AND l.kept = ''"
    " AND (l.id = r.id OR l.begun > r.begun))"
)
"""SQL: whether the person of a request `r` was erased completely by it, or since then."""
FOR_EVERYTHING = "e.ground = 'request' AND NOT EXISTS (SELECT 1 FROM work_items w WHERE w.id = e.id)"
"""SQL: whether a receipt `e` asks for everything. When a work item of DROP was registered, nobody knows."""
_NARROWINGS = (
    "SELECT n.request, n.dataset, n.keeps, n.asked, n.at, n.who, n.reason,"  # noqa: S608 (own words)
    f" EXISTS (SELECT 1 FROM receipts e WHERE e.request = n.request AND {FOR_EVERYTHING} AND e.received > n.asked),"
    " EXISTS (SELECT 1 FROM narrowings t WHERE t.request = n.request AND t.dataset = n.dataset AND t.keeps = 0"
    " AND t.seq > n.seq) FROM narrowings n"
)


def narrowings_of(connection: Connection, request: str) -> tuple[Narrowing, ...]:
    """What a request was narrowed to, and what was taken back, in the order in which its person asked for it."""
    rows = connection.execute(f"{_NARROWINGS} WHERE n.request = ? ORDER BY n.asked, n.seq", (request,))
    return tuple(map(_narrowing, rows))


def all_in_force(connection: Connection) -> dict[str, tuple[Narrowing, ...]]:
    """By open request, what a plan has to keep."""
    query = f"{_NARROWINGS} JOIN requests r ON r.id = n.request WHERE r.state IN ({_OPEN}) ORDER BY n.asked, n.seq"
    return _by_request(connection.execute(query))


def unlike_a_plan(connection: Connection, plan: str, keeps: frozenset[str]) -> list[str]:
    """Requests of a plan, no run of which has begun, whose persons ask to keep other data now. keeps: the ids of the
    holds of this kind that the plan was made with."""
    rows = connection.execute(f"{_NARROWINGS} JOIN requests r ON r.id = n.request WHERE r.plan = ?", (plan,))
    now = _by_request(rows)
    waiting = "SELECT id FROM requests WHERE plan = ? AND state = 'planned' AND begun IS NULL ORDER BY id"
    names = [str(name) for (name,) in connection.execute(waiting, (plan,))]
    return [name for name in names if holds_of(now.get(name, ())) != keeps]


def keeping(connection: Connection, person: str) -> str | None:
    """The request by which a person (keyed reference) keeps something: it is open, or it was answered so and nothing
    has erased the rest since then. None where there is none."""
    query = (
        f"SELECT r.id, r.state IN ({_OPEN}) FROM requests r WHERE r.person = ? AND (r.state IN ({_OPEN})"  # noqa: S608
        f" OR (r.state = 'erased' AND r.kept != '' AND NOT {WHOLLY_ERASED_SINCE})) ORDER BY r.received, r.id"
    )
    for name, is_open in connection.execute(query, (person,)).fetchall():
        if not is_open or any(one.in_force for one in narrowings_of(connection, name)):
            return str(name)
    return None


def keep_on(connection: Connection, person: str, request: str) -> None:
    """What a person asked to keep counts for a further request of hers, too, unless she asked for everything later.
    What came of requests that were withdrawn or refused counts in neither way.

    person: keyed reference.
    """
    query = (
        "SELECT DISTINCT n.dataset, n.asked, n.at, n.who, n.reason"  # noqa: S608 (own words)
        " FROM narrowings n JOIN requests r ON r.id = n.request WHERE r.person = ? AND r.id != ?"
        f" AND n.keeps = 1 AND r.state NOT IN ({_ENDED})"
        " AND NOT EXISTS (SELECT 1 FROM narrowings t JOIN requests q ON q.id = t.request WHERE q.person = r.person"
        f" AND q.state NOT IN ({_ENDED}) AND t.dataset = n.dataset AND t.keeps = 0 AND t.seq > n.seq)"
        " AND NOT EXISTS (SELECT 1 FROM receipts e JOIN requests o ON o.id = e.request WHERE o.person = r.person"
        f" AND o.state NOT IN ({_ENDED}) AND {FOR_EVERYTHING} AND e.received > n.asked) ORDER BY n.asked, n.dataset"
    )
    for dataset, *rest in connection.execute(query, (person, request)).fetchall():
        write_narrowing(connection, (request, dataset, 1, *rest))


def write_narrowing(connection: Connection, row: Sequence[object]) -> None:
    """Write one down: request, dataset, 1 or 0 (kept or taken back), asked, at, who, reason."""
    query = "INSERT INTO narrowings (request, dataset, keeps, asked, at, who, reason) VALUES (?, ?, ?, ?, ?, ?, ?)"
    connection.execute(query, tuple(row))


def holds_of(narrowings: Sequence[Narrowing]) -> frozenset[str]:
    """The ids of the holds that keep what is still to be kept."""
    return frozenset(one.hold for one in narrowings if one.in_force)


def own_holds(narrowings: Mapping[str, Sequence[Narrowing]], day: datetime) -> tuple[Hold, ...]:
    """The holds of a plan for some requests: one for each dataset, of all who keep it.

    day: that of the plan, on which each counts, also where the plan is made for a day of before.

    Who wrote it down, and why, stays in the store: these texts can name the person, and a plan is seen by everybody.
    """
    same: dict[str, list[Narrowing]] = {}
    for mine in narrowings.values():
        for one in mine:
            same.setdefault(one.hold, []).append(one)
    return tuple(sorted((_hold(name, same[name], day) for name in same), key=lambda hold: hold.datasets))


def _hold(name: str, narrowings: Sequence[Narrowing], day: datetime) -> Hold:
    told: dict[str, Any] = {"from": min(day, *(one.asked for one in narrowings)), "until": "indefinite"}
    return Hold(
        id=name,
        kind=HoldKind.OWN_REQUEST,
        datasets=tuple(sorted({one.dataset for one in narrowings})),
        requests=tuple(sorted({one.request for one in narrowings})),
        basis="the person's own request",
        citation="as the request store has it",
        approver="the person",
        **told,
    )


def _by_request(rows: Any) -> dict[str, tuple[Narrowing, ...]]:
    found: dict[str, tuple[Narrowing, ...]] = {}
    for one in map(_narrowing, rows):
        if one.in_force:
            found[one.request] = (*found.get(one.request, ()), one)
    return found


def _narrowing(row: tuple[Any, ...]) -> Narrowing:
    request, dataset, keeps, asked, at, who, reason, lapsed, taken_back = row
    return Narrowing(
        request=request,
        dataset=dataset,
        keeps=bool(keeps),
        asked=parse_time(asked),
        at=parse_time(at),
        who=who,
        reason=reason,
        lapsed=bool(lapsed),
        taken_back=bool(taken_back),
    )
