"""Any interleaving of receipts, narrowings, plans and runs: nobody keeps too little, and nothing is kept unasked."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pii_tracer.intake.kept_scopes import Wish, hold_of, holds_of
from pii_tracer.intake.narrowings import narrow
from pii_tracer.intake.request_databases.sqlite import SqliteFile
from pii_tracer.intake.request_intake import Intake
from pii_tracer.intake.request_store import RequestStore
from pii_tracer.intake.requests import Incoming, RequestState, Stored
from pii_tracer.intake.run_results import CameTo, settle
from pii_tracer.intake.state_changes import Said, begin, end, plan_them, release
from pii_tracer.model.errors import Refused, UsageError
from pii_tracer.review.sealed_person_values import KEY_BYTES, EstateKey

BEGIN = datetime(2026, 11, 1, tzinfo=timezone.utc)
DATASETS = ["app.orders", "app.visits"]


def due(law: str, received: datetime, extended: datetime | None = None) -> datetime:
    return received + timedelta(days=30)


class Person:
    """One person, each minute one event; some minutes lie between what she does and when it is written down.

    received: when she asked for everything. asked: what she asked to keep, and when. kept: by the last plan.
    """

    def __init__(self, store: RequestStore) -> None:
        self.store, self.minute = store, 0
        self.received: list[datetime] = []
        self.asked: list[tuple[str, datetime]] = []
        self.kept: frozenset[str] = frozenset()

    def now(self, before: int = 0) -> datetime:
        self.minute += 1
        return BEGIN + timedelta(minutes=max(self.minute - before, 0))

    def said(self) -> Said:
        return Said("Meera", "as agreed", self.now())

    def first(self, *states: RequestState) -> Stored | None:
        return next(self.store.requests(*states), None)

    def asks_for_everything(self, minutes: int) -> None:
        moment = self.now(minutes)
        row = Incoming(1, f"R-{self.minute}", "user", "4417700101", "GDPR", moment, "login")
        with self.store.writing() as connection:
            Intake(self.store.key, f"file {self.minute}", due).take(connection, row)
        self.received.append(moment)

    def asks_to_keep(self, minutes: int) -> None:
        found = self.first(RequestState.RECEIVED, RequestState.PLANNED)
        dataset, moment = DATASETS[minutes % 2], self.now(minutes)
        if found is not None:
            try:
                narrow(self.store, found.id, Wish(keep=(dataset,)), moment, self.said())
            except UsageError:
                return
            self.asked.append((hold_of(dataset), moment))

    def is_planned(self, minutes: int) -> None:
        found = self.first(RequestState.RECEIVED)
        if found is None:
            return
        at, last = self.now(), max(self.received)
        self.kept = holds_of(self.store.kept().get(found.id, ()))
        assert {hold for hold, asked in self.asked if asked >= last} <= self.kept, "more would be erased than she asked"
        plan_them(self.store, [found.id], f"plan-{self.minute}", at, self.kept, self.kept)

    def is_given_up(self, minutes: int) -> None:
        found = self.first(RequestState.PLANNED)
        if found is not None and minutes:
            release(self.store, str(found.plan), self.said())
        elif found is not None:
            end(self.store, found.id, RequestState.WITHDRAWN, self.said())
            self.received, self.asked = [], []

    def is_erased(self, minutes: int) -> None:
        found = self.first(RequestState.PLANNED)
        if found is None:
            return
        now = holds_of(self.store.kept().get(found.id, ()))
        try:
            begin(self.store, [found.id], str(found.plan), self.now(), self.kept)
        except Refused:
            assert now != self.kept
            release(self.store, str(found.plan), self.said())
            return
        assert now == self.kept
        if minutes % 2:
            self.asks_for_everything(minutes)
        settle(self.store, str(found.plan), lambda mine: CameTo(proofs={mine[0]: "proof"}, due=due), self.now())
        for receipt in self.store.receipts(found.id):
            mine = {hold for hold, asked in self.asked if asked >= receipt.received}
            assert self.kept <= mine, "who asked for everything is answered, and something of hers is kept"


EVERYTHING, KEEP, PLAN, ERASE = Person.asks_for_everything, Person.asks_to_keep, Person.is_planned, Person.is_erased
EVENTS = [EVERYTHING, KEEP, PLAN, ERASE, Person.is_given_up]
OLD_LETTER = [(EVERYTHING, 0), (KEEP, 0), (PLAN, 0), (ERASE, 0), (EVERYTHING, 5), (PLAN, 0)]
BETWEEN_TWO = [(EVERYTHING, 0), (KEEP, 0), (KEEP, 1), (PLAN, 0), (EVERYTHING, 4), (ERASE, 0), (PLAN, 0)]


@settings(deadline=None)
@given(events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 9)), min_size=10, max_size=25))
@example(events=OLD_LETTER)
@example(events=BETWEEN_TWO)
def test_she_keeps_what_she_asked_for_last_and_nothing_else(
    events: list[tuple[Callable[[Person, int], None], int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        person = Person(RequestStore(SqliteFile(Path(folder) / "r.sqlite"), EstateKey(bytes(KEY_BYTES))))
        for event, minutes in events:
            event(person, minutes)
