"""Requests that are narrowed: their persons keep some of their data, until they ask for everything again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pii_tracer.common.plurals import counted
from pii_tracer.intake.kept_scopes import FOR_EVERYTHING, MOST_KEPT, Wish, alike, narrowings_of, write_narrowing
from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.request_store import RequestStore, one
from pii_tracer.intake.requests import RequestState, Stored
from pii_tracer.intake.state_changes import Said, open_one, refuse_telling
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.errors import UsageError


def narrow(store: RequestStore, name: str, wish: Wish, asked: datetime, said: Said) -> Stored:
    """Keep what a person asked to keep, and no more what was a wrong name. asked: when; the same wish of the same time
    once more changes nothing.

    Raises:
        UsageError: there is none, it has ended, it is in a plan, its erasure has begun, the person asked for everything
            later than that, she never kept what is taken back, it is too much, or a text holds the person's key.
    """
    refuse_telling(store, name, said)
    if not (wish.keep or wish.take_back) or {*map(alike, wish.keep)} & {*map(alike, wish.take_back)}:
        raise UsageError(
            "no dataset is named, or a dataset is in both `--keep` and `--take-back`",
            where="--keep, --take-back",
            todo="name each dataset that the person keeps with `--keep`, and each wrong name with `--take-back`",
        )
    with store.writing() as connection:
        found = open_one(connection, name)
        known = narrowings_of(connection, found.id)
        kept = {alike(one.dataset): one for one in known if one.in_force}
        gone = [kept[name].dataset for name in map(alike, wish.take_back) if name in kept]
        new = [name for name in wish.keep if alike(name) not in kept]
        later = [kept[name].dataset for name in map(alike, wish.keep) if name in kept and asked > kept[name].asked]
        _refuse_unknown(found, wish.take_back, [one.dataset for one in known])
        if new:
            _refuse_late(found)
            _refuse_unasked(connection, found, asked)
        if gone:
            _refuse_bound(found)
        if len(kept) + len(new) - len(gone) > MOST_KEPT:
            raise UsageError(
                f"a person can keep {counted(MOST_KEPT, 'dataset')} at most, and the request {found.id} would keep "
                "more",
                where="--keep",
                todo="name a parent folder that contains several of them, or withdraw the request",
            )
        for keeps, datasets, moment in ((0, gone, said.at), (1, [*new, *later], asked)):
            for dataset in datasets:
                row = (found.id, dataset, keeps, iso(moment), iso(said.at), said.by, said.reason)
                write_narrowing(connection, row)
        return one(connection, found.id)


def _refuse_unknown(found: Stored, names: Sequence[str], known: Sequence[str]) -> None:
    if not {*map(alike, names)} <= {*map(alike, known)}:
        raise UsageError(
            f"the request {found.id} does not keep a dataset that `--take-back` names",
            where="--take-back",
            todo=f"run `pii-tracer requests show {found.id}` and use a name that it lists",
        )


def _refuse_late(found: Stored) -> None:
    if found.first_begun is not None:
        raise UsageError(
            f"the erasure of the request {found.id} has begun, and may already have erased the data to be kept",
            where=found.plan,
            todo="declare a hold with `requests` in the estate file for the data that is left, then plan again",
        )
    _refuse_bound(found)


def _refuse_bound(found: Stored) -> None:
    if found.state is RequestState.PLANNED or (found.plan is not None and found.begun is not None):
        raise UsageError(
            f"the request {found.id} is already in a plan, and a narrower request needs a new plan",
            where=found.plan,
            todo=f"run `pii-tracer requests release {found.plan}`, narrow the request, then plan again",
        )


def _refuse_unasked(connection: Connection, found: Stored, asked: datetime) -> None:
    query = (
        f"SELECT min(e.received), max(CASE WHEN {FOR_EVERYTHING} THEN e.received END) FROM receipts e"  # noqa: S608
        " WHERE e.request = ?"
    )
    first, last = connection.execute(query, (found.id,)).fetchone()
    if iso(asked) < first:
        raise UsageError(
            f"the request {found.id} was received after the time in `--asked`",
            where="--asked",
            todo="write the time when the person narrowed the request",
        )
    if last is not None and last > iso(asked):
        raise UsageError(
            f"after the time in `--asked`, the person of the request {found.id} asked again for the erasure of "
            "everything",
            where="--asked",
            todo="ask the person which request is valid; if it is the narrower one, give the time of this answer",
        )
