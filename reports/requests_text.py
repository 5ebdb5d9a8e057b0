"""The request store for people and as JSON: ids, laws, dates and states, nothing of the persons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from enum import Enum
from typing import IO, Any, Protocol

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pii_tracer.common.plurals import counted
from pii_tracer.intake.kept_scopes import Narrowing
from pii_tracer.intake.requests import OPEN, Change, LongerTime, Receipt, RequestState, Stored
from reports.escape import visible


class AddedList(Protocol):
    """What became of a list (`pii_tracer.app.intake.request_lists.Added`)."""

    @property
    def file(self) -> str: ...
    @property
    def added(self) -> int: ...
    @property
    def joined(self) -> int: ...
    @property
    def repeated(self) -> int: ...
    @property
    def known(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def widened(self) -> Mapping[str, Sequence[str]]: ...


class PlannedRequests(Protocol):
    """What came of planning (`pii_tracer.app.intake.due_requests_plan.DuePlan`)."""

    @property
    def written(self) -> object: ...
    @property
    def requests(self) -> tuple[str, ...]: ...
    @property
    def marked(self) -> bool: ...
    @property
    def set_aside(self) -> Mapping[str, str]: ...
    @property
    def next_batch(self) -> datetime | None: ...
    @property
    def apart(self) -> Mapping[str, str]: ...


def added_lines(done: AddedList) -> Iterator[str]:
    """One line for one file, and one for each person who asked for everything and had kept data."""
    yield (
        f"{visible(done.file)}: {done.added} added, {done.joined} joined to an open request of the same person, "
        f"{done.repeated} for persons who were erased before, {done.known} already stored, {done.refused} rejected"
    )
    for request, datasets in done.widened.items():
        yield visible(f"{request} no longer keeps {', '.join(datasets)}, because the person asked to erase everything")


class MatchedLists(Protocol):
    """What became of an archive of DROP (`pii_tracer.app.intake.drop_lists.Matched`)."""

    @property
    def file(self) -> str: ...
    @property
    def matched(self) -> int: ...
    @property
    def not_found(self) -> int: ...
    @property
    def shared(self) -> int: ...
    @property
    def removed(self) -> int: ...
    @property
    def known(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def skipped(self) -> Sequence[str]: ...
    @property
    def kept(self) -> Mapping[str, Sequence[str]]: ...


class AnsweredItems(Protocol):
    """What was answered (`pii_tracer.app.intake.drop_lists.Answered`)."""

    @property
    def deleted(self) -> int: ...
    @property
    def exempted(self) -> int: ...
    @property
    def opted_out(self) -> int: ...
    @property
    def not_found(self) -> int: ...
    @property
    def still_open(self) -> int: ...


def matched_lines(done: MatchedLists) -> Iterator[str]:
    """What matching came to, and what persons keep nevertheless."""
    yield (
        f"{visible(done.file)}: {done.matched} matched, {done.not_found} not found, "
        f"{done.shared} that match several persons, "
        f"{done.removed} withdrawn, {done.known} already stored, {done.refused} rejected"
    )
    if done.skipped:
        yield f"skipped, without an answer to DROP: {', '.join(visible(name) for name in done.skipped)}"
    for request, datasets in done.kept.items():
        yield visible(
            f"{request} still keeps {', '.join(datasets)}. If the person registered with DROP after asking to keep a "
            f"dataset, run `pii-tracer requests narrow {request} --take-back` for that dataset"
        )


def answered_line(done: AnsweredItems) -> str:
    """One line for an answer."""
    return (
        f"{done.deleted} deleted, {done.exempted} exempted, {done.opted_out} opted out, {done.not_found} not found;"
        f" still open, so not in the file: {done.still_open}"
    )


def planned_lines(found: PlannedRequests) -> Iterator[str]:
    """What planning did with the store's requests."""
    for name, why in found.set_aside.items():
        yield f"{name} is not planned: {visible(why)}"
    for name, why in found.apart.items():
        yield f"{name} is carried over: {visible(why)}"
    if found.next_batch is not None:
        yield f"the policy does not allow a plan now: the next batch begins on {found.next_batch:%Y-%m-%d %H:%M} UTC"
    elif found.written is None:
        yield "no request waits for a plan"
    elif found.marked:
        yield f"{counted(len(found.requests), 'request is', 'requests are')} planned"
    else:
        yield (
            f"{counted(len(found.requests), 'request still waits', 'requests still wait')}: this plan cannot be applied"
        )


class LateRequest(Protocol):
    """A deadline that cannot be kept (`planners.schedule.batches.Late`)."""

    @property
    def id(self) -> str: ...
    @property
    def due(self) -> datetime: ...
    @property
    def reason(self) -> str: ...


class BatchOfRequests(Protocol):
    """What is planned together (`planners.schedule.batches.Batch`)."""

    @property
    def begins(self) -> datetime: ...
    @property
    def ends(self) -> datetime: ...
    @property
    def requests(self) -> Sequence[str]: ...
    @property
    def late(self) -> Sequence[LateRequest]: ...


class UnplannedRequest(Protocol):
    """A request that no batch takes (`pii_tracer.app.intake.due_requests_plan.Unplanned`)."""

    @property
    def id(self) -> str: ...
    @property
    def due(self) -> datetime: ...
    @property
    def reason(self) -> str: ...
    @property
    def held(self) -> bool: ...


def forecast_lines(batches: Sequence[BatchOfRequests], unplanned: Sequence[UnplannedRequest] = ()) -> Iterator[str]:
    """Each batch, each deadline that none of them keeps, and each request that is in none of them."""
    for batch in batches:
        yield (
            f"{batch.begins:%Y-%m-%d %H:%M} UTC: {counted(len(batch.requests), 'request')},"
            f" done on {batch.ends:%Y-%m-%d %H:%M}"
        )
        for late in batch.late:
            yield f"    {late.id}, due {late.due:%Y-%m-%d %H:%M}, will miss its deadline: {late.reason}"
    if unplanned:
        yield "in no batch:"
    for one in unplanned:
        yield f"    {one.id}, due {one.due:%Y-%m-%d %H:%M}, {'is held' if one.held else 'waits'}: {visible(one.reason)}"
    waiting, late_ones = (sum(map(len, of)) for of in ((b.requests for b in batches), (b.late for b in batches)))
    beside = f"; without a batch: {len(unplanned):,}" if unplanned else ""
    yield f"{counted(waiting, 'request waits', 'requests wait')}; missing the deadline: {late_ones:,}{beside}"


def print_requests(found: Sequence[Stored], counts: Mapping[RequestState, int], now: datetime, stream: IO[str]) -> None:
    """A table of requests, and how many there are in each state. now: what was due before it is overdue."""
    console = _console(stream)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0), show_edge=False)
    for name in ("id", "subject", "law", "received", "due", "state", "plan or reason"):
        table.add_column(name, overflow="fold", no_wrap=name in ("received", "due", "state"))
    for one in found:
        late = one.state in OPEN and one.due < now
        due = Text(f"{one.due:%Y-%m-%d}" + (" overdue" if late else ""), style="red" if late else "")
        why = one.plan if one.state is RequestState.PLANNED else one.reason or one.proof
        table.add_row(
            one.id, visible(one.kind), one.law, f"{one.received:%Y-%m-%d}", due, one.state, Text(visible(why or ""))
        )
    if found:
        console.print(table)
    console.print(", ".join(f"{number} {state}" for state, number in counts.items() if number) or "no requests")


class ShownRequest(Protocol):
    """All that is known of one request (`pii_tracer.app.intake.request_states.Shown`)."""

    @property
    def request(self) -> Stored: ...
    @property
    def receipts(self) -> Sequence[Receipt]: ...
    @property
    def changes(self) -> Sequence[Change]: ...
    @property
    def extensions(self) -> Sequence[LongerTime]: ...
    @property
    def narrowings(self) -> Sequence[Narrowing]: ...


def print_shown(shown: ShownRequest, stream: IO[str]) -> None:
    """One request, with its receipts, the deadlines that were extended, what is kept, and its history."""
    console = _console(stream)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for name, value in request_json(shown.request).items():
        if value:
            table.add_row(name, Text(visible(", ".join(value) if isinstance(value, list) else str(value))))
    console.print(table)
    for receipt in shown.receipts:
        came = f"received {receipt.received:%Y-%m-%d %H:%M} UTC under {receipt.law}"
        place = f", list {receipt.file[:8]}, line {receipt.line}"
        console.print(Text(came + place + (f", as {receipt.id}" if receipt.id else "")))
    for longer in shown.extensions:
        words = f"{longer.at:%Y-%m-%d %H:%M} UTC deadline under {longer.law} extended by {longer.who}: {longer.reason}"
        console.print(Text(visible(f"{words} (the person was informed on {longer.informed:%Y-%m-%d})")))
    for kept in shown.narrowings:
        what = f"narrowed by {kept.who}, keeps" if kept.keeps else f"narrowing withdrawn by {kept.who}:"
        words = f"{kept.at:%Y-%m-%d %H:%M} UTC {what} {kept.dataset}: {kept.reason}"
        if not kept.keeps:
            console.print(Text(visible(words)))
            continue
        later = "; later the person asked to erase everything" if kept.lapsed else ""
        later = "; withdrawn later" if kept.taken_back else later
        console.print(Text(visible(f"{words} (the person asked for it on {kept.asked:%Y-%m-%d}{later})")))
    for change in shown.changes:
        words = f"{change.at:%Y-%m-%d %H:%M} UTC {change.state} by {change.by}: {change.reason}"
        console.print(Text(visible(words)))


def request_json(one: Stored) -> dict[str, Any]:
    """One request as JSON tells it."""
    return {name: _plain(value) for name, value in asdict(one).items()}


def shown_json(shown: ShownRequest) -> dict[str, Any]:
    """One request with its receipts and its history as JSON tells them."""
    return {
        **request_json(shown.request),
        "receipts": _plainly(shown.receipts),
        "extensions": _plainly(shown.extensions),
        "narrowings": [{**_plainly([one])[0], "hold": one.hold} for one in shown.narrowings],
        "changes": _plainly(shown.changes),
    }


def narrowed_line(one: Stored, narrowings: Sequence[Narrowing]) -> str:
    """What `narrow` did."""
    kept = sorted({narrowing.dataset for narrowing in narrowings if narrowing.in_force})
    what = f"keeps {', '.join(kept)}; everything else is erased" if kept else "keeps nothing; everything is erased"
    return visible(f"{one.id} {what}, and its deadline stays {one.due:%Y-%m-%d}")


def ended_lines(one: Stored, released: Sequence[str], word: str) -> Iterator[str]:
    """What `withdraw` and `refuse` did."""
    yield f"{one.id} is {word}, and its stored identifier was deleted"
    if one.state is RequestState.PLANNED:
        yield (
            f"do not apply {one.plan} any more;"
            f" {counted(len(released), 'other request waits', 'other requests wait')} for another plan"
        )


def extended_line(one: Stored) -> str:
    """What `extend` did."""
    kept = f"; the deadline in {one.plan} does not change" if one.state is RequestState.PLANNED else ""
    other = "" if one.extended else f": the deadline of {one.law} was not extended"
    return f"{one.id} is due on {one.due:%Y-%m-%d %H:%M} UTC{other}{kept}"


def _plainly(items: Sequence[Receipt | Change | LongerTime | Narrowing]) -> list[dict[str, Any]]:
    return [{name: _plain(value) for name, value in asdict(item).items()} for item in items]


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _console(stream: IO[str]) -> Console:
    return Console(file=stream, highlight=False, markup=False)
