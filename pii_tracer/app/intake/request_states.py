"""The requests of an estate: listed, shown, narrowed, withdrawn, refused, and given back by a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from pii_tracer.app.intake.request_store import due_by, existing_store
from pii_tracer.app.settings import Settings, moment
from pii_tracer.config.laws import laws_of
from pii_tracer.intake.deadline_extensions import extend
from pii_tracer.intake.kept_scopes import Narrowing, Wish
from pii_tracer.intake.narrowings import narrow
from pii_tracer.intake.request_databases.sqlite import FILE
from pii_tracer.intake.request_store import RequestStore
from pii_tracer.intake.requests import OPEN, Change, LongerTime, Receipt, RequestState, Stored
from pii_tracer.intake.row_rules import tells
from pii_tracer.intake.state_changes import Said, end, release
from pii_tracer.model.errors import UsageError


@dataclass(frozen=True)
class Shown:
    """One request with all that is known of it; never the person's value."""

    request: Stored
    receipts: tuple[Receipt, ...]
    changes: tuple[Change, ...]
    extensions: tuple[LongerTime, ...]
    narrowings: tuple[Narrowing, ...]


@dataclass(frozen=True)
class Ended:
    """A request that was withdrawn or refused. released: others of its plan, which wait for another one."""

    request: Stored
    released: tuple[str, ...]


def list_requests(
    settings: Settings,
    *,
    states: tuple[RequestState, ...] = (),
    due_before: datetime | None = None,
    after: str | None = None,
) -> Iterator[Stored]:
    """Requests, the one that is due first at the beginning. states: in these alone. due_before: due before that.
    after: the id of a request; those behind it.

    Raises:
        UsageError: there is no request of the id that is given.
        RequestError: the store cannot be used.
    """
    store = existing_store(settings)
    if store is None:
        return
    for request in store.requests(*states, after=store.find(after) if after else None):
        if due_before is not None and request.due >= due_before:
            return
        yield request


def count_requests(settings: Settings) -> dict[RequestState, int]:
    """How many requests are in each state. Raises as `list_requests`."""
    store = existing_store(settings)
    return store.counts() if store else dict.fromkeys(RequestState, 0)


def show_request(settings: Settings, name: str) -> Shown:
    """A request by its id, or by that of a further receipt.

    Raises:
        UsageError: there is none.
        RequestError: the store cannot be used.
    """
    store = _store(settings)
    request = store.find(name)
    return Shown(
        request,
        store.receipts(request.id),
        store.changes(request.id),
        store.extensions(request.id),
        store.narrowings(request.id),
    )


def withdraw_request(settings: Settings, name: str, *, by: str, reason: str, now: datetime | None = None) -> Ended:
    """The person takes the request back: nobody erases her by it.

    Raises:
        UsageError: there is none, it has ended, its erasure has begun, or a text holds the person's key.
        RequestError: the store cannot be used.
    """
    return _end(settings, name, RequestState.WITHDRAWN, by, reason, now)


def refuse_request(settings: Settings, name: str, *, by: str, reason: str, now: datetime | None = None) -> Ended:
    """The request is not granted. Raises as `withdraw_request`."""
    return _end(settings, name, RequestState.REFUSED, by, reason, now)


def extend_request(
    settings: Settings, name: str, *, informed: datetime, by: str, reason: str, now: datetime | None = None
) -> Stored:
    """Take the longer time that the request's law gives. informed: when the person was, with the reasons.

    A plan that the request is in keeps its deadline.

    Raises:
        UsageError: there is none, it has ended, its law has no longer time or it is taken already, the person was not
            informed in time, or a text holds the person's key.
        RequestError: the store cannot be used.
    """
    said = _said(by, reason, now)
    if informed > said.at:
        raise UsageError(
            "the date in --informed is in the future",
            where="--informed",
            todo="inform the person first, then give the date",
        )
    return extend(_store(settings), name, informed, due_by(laws_of(settings.estate().laws)), said)


def narrow_request(
    settings: Settings,
    name: str,
    wish: Wish,
    *,
    by: str,
    reason: str,
    asked: datetime | None = None,
    now: datetime | None = None,
) -> Stored:
    """The person keeps some data, or a wrong name of it is taken back. asked: when she asked for it; now, without one.
    The same wish of the same time once more changes nothing.

    Raises:
        UsageError: there is none, it has ended, it is in a plan, its erasure has begun, it came in later than that, the
            person asked for everything since, it never kept what is taken back, or a text holds the person's key.
        RequestError: the store cannot be used.
    """
    said = _said(by, reason, now)
    at = (asked or said.at).astimezone(timezone.utc).replace(microsecond=0)
    if at > said.at:
        raise UsageError(
            "the time in --asked is in the future", where="--asked", todo="write the time when the person asked"
        )
    store = _store(settings)
    _refuse_telling_names(store, name, wish.keep)
    return narrow(store, name, wish, at, said)


def others_of_key(settings: Settings, name: str) -> tuple[Stored, ...]:
    """Open requests of the same key as another kind of person: what the one keeps, these do not.

    Raises:
        UsageError: there is no such request, or it has ended.
        RequestError: the store cannot be used.
    """
    store = _store(settings)
    request = store.find(name)
    kinds = [subject.name for subject in settings.estate().subjects if subject.name != request.kind]
    key = store.key_of(request.id)
    found = (store.open_of(store.key.requester(kind, key)) for kind in kinds)
    return tuple(one for one in found if one is not None)


def _refuse_telling_names(store: RequestStore, name: str, names: tuple[str, ...]) -> None:
    """Raise `UsageError` where a name of what is kept holds the person's key, in whatever writing: plans show names."""
    from pii_tracer.app.planning.value_masking import told_in
    from pii_tracer.model.datasets import KeySet
    from pii_tracer.scan.forms.pattern_automaton import is_short
    from pii_tracer.scan.value_forms import Patterns

    request = store.find(name)
    if request.state not in OPEN:
        return
    key = store.key_of(request.id)
    keys = KeySet(name="key", origin="key", weak=is_short(key), values=(("person", key),))
    if told_in(names, Patterns([keys])) or any(tells(one, key) for one in names):
        raise UsageError(
            "a name in `--keep` contains the person's key, and every reader of the plan would see it",
            where="--keep",
            todo="name a parent folder; or rename the table or folder, then narrow the request",
        )


def release_plan(
    settings: Settings, plan: str, *, by: str, reason: str, now: datetime | None = None
) -> tuple[Stored, ...]:
    """Give a plan up: its requests wait for another one, and `apply` and `resume` refuse it.

    Raises:
        UsageError: no request is planned by it, or a text holds a person's key.
        RequestError: the store cannot be used.
    """
    return release(_store(settings), plan, _said(by, reason, now))


def _end(settings: Settings, name: str, state: RequestState, by: str, reason: str, now: datetime | None) -> Ended:
    return Ended(*end(_store(settings), name, state, _said(by, reason, now)))


def _said(by: str, reason: str, now: datetime | None) -> Said:
    if not by.strip() or not reason.strip():
        raise UsageError(
            "`--by` (the person who asks) and `--reason` are missing",
            where="--by, --reason",
            todo="give --by and --reason",
        )
    return Said(by, reason, now or moment(None))


def _store(settings: Settings) -> RequestStore:
    store = existing_store(settings)
    if store is None:
        raise UsageError(
            "there is no request store",
            where=str(settings.state / FILE),
            todo="run `pii-tracer requests add`, which makes it",
        )
    return store
