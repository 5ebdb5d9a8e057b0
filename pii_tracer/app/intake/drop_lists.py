"""California's DROP: lists of hashed identifiers matched against the source, and the file that answers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.app.intake.request_lists import MOST_TOLD, ROWS_AT_ONCE, Refusal
from pii_tracer.app.intake.request_store import due_by, existing_store, store_of, taking
from pii_tracer.app.progress import SILENT, Shows
from pii_tracer.app.settings import Settings
from pii_tracer.config.laws import laws_of
from pii_tracer.intake.drop.answers import (
    DECIDED,
    Outcome,
    Status,
    answers,
    decide,
    outcome_of,
    put_back,
    record,
    undecided,
    withdrawn_with,
)
from pii_tracer.intake.drop.identifier_normalization import CATEGORIES, FORMS, digest_of
from pii_tracer.intake.drop.list_archive import REMOVED, WorkItem, lists_in, work_items
from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.request_databases.sqlite import FILE
from pii_tracer.intake.request_intake import Due, Intake
from pii_tracer.intake.requests import Incoming, NotTaken, RequestState
from pii_tracer.intake.state_changes import Said, end
from pii_tracer.model.errors import UsageError

if TYPE_CHECKING:
    from pii_tracer.config.subjects import Subject
    from pii_tracer.intake.request_store import RequestStore
    from pii_tracer.review.sealed_person_values import EstateKey

LAW = "DELETE-ACT"
"""Of every request that DROP brings."""
_DROP = "DROP"
Tell = Callable[[str, int, str], None]
"""Is told each line that is not taken: the file of the archive, its line, and why."""


@dataclass(frozen=True)
class Matched:
    """What became of an archive. skipped: lists that were left out, by name. kept: by request that somebody was matched
    to, the datasets that its person asked to keep. A row of DROP ends none of that: a person decides it."""

    file: str
    matched: int
    not_found: int
    shared: int
    removed: int
    known: int
    refused: int
    skipped: tuple[str, ...]
    refusals: tuple[Refusal, ...]
    kept: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Answered:
    """How many work items were answered with each status, and how many are still open."""

    deleted: int
    exempted: int
    opted_out: int
    not_found: int
    still_open: int


@dataclass
class _Count:
    found: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("matched", "not_found", "shared", "removed", "known", "refused"), 0)
    )
    refusals: list[Refusal] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    matched: set[str] = field(default_factory=set)


def add_drop(
    settings: Settings,
    file: Path,
    *,
    subject: str,
    received: datetime,
    columns: Mapping[str, str] | None = None,
    skip: Sequence[str] = (),
    tell: Tell = lambda file, line, reason: None,
    show: Shows = SILENT,
    now: datetime | None = None,
) -> Matched:
    """Match the lists of a DROP download against the source's current rows, and take in who is found.

    columns: the source's column of each list; without it the subject's only identifier of the list's category. skip:
    lists that are left out, and not answered. An identifier of several persons is nobody's: it is told, and stays open.
    The same archive again adds nothing, and looks again for those that were not found.

    Raises:
        UsageError: no such subject or column, a list that is neither matched here nor left out, a time to come.
        RequestError: archive or store cannot be read.
        ConfigError, EstateError: the source cannot be read.
    """
    now = now or datetime.now(timezone.utc)
    if received > now:
        raise UsageError(
            "the time in --received is in the future",
            where="--received",
            todo="write the time when the list was downloaded",
        )
    found = sorted({kind for kind in lists_in(file).values() if kind not in skip})
    unknown = [kind for kind in found if kind not in FORMS and kind != REMOVED]
    if unknown:
        raise UsageError(
            f"the list {unknown[0]} is not matched here, only {', '.join(FORMS)}",
            where=str(file),
            todo=f"leave the list out with `--skip-list {unknown[0]}`, and answer it outside pii-tracer",
        )
    estate = settings.estate()
    mine = next((one for one in estate.subjects if one.name == subject), None)
    if mine is None:
        raise UsageError("the estate file has no such subject", where="--subject", todo="name one of its `subjects`")
    chosen = {kind: _column(mine, kind, columns or {}) for kind in found if kind in FORMS}
    index = _index(settings, mine, chosen, show) if chosen else {}
    store, count = store_of(settings), _Count()
    taker = _Taker(store.key, subject, received, index, due_by(laws_of(estate.laws)))
    show.step(f"matching {', '.join(found)}")
    items = work_items(file, found)
    with taking(store) as connection:
        while batch := list(islice(items, ROWS_AT_ONCE)):
            with connection.transaction():
                for item in batch:
                    _take(connection, taker, item, count, tell)
    _withdraw(store, count.withdrawn, now)
    kept = {name: tuple(n.dataset for n in mine) for name, mine in store.kept().items() if name in count.matched}
    left_out, refusals = tuple(sorted({*skip})), tuple(count.refusals)
    return Matched(str(file), **count.found, skipped=left_out, refusals=refusals, kept=kept)


def write_answers(settings: Settings, out: Path) -> Answered:
    """Write the CSV that DROP takes (`Id`, `Status`) for all work items that can be answered now.

    Raises:
        UsageError: there is no request store.
        RequestError: the store cannot be used.
    """
    from pii_tracer.common.atomic_files import write_atomic

    store = _store(settings)
    counts = dict.fromkeys([*Status, None], 0)
    lines = ["Id,Status"]
    with store.connected() as connection:
        for name, status in answers(connection):
            counts[status] += 1
            if status is not None:
                lines.append(f"{name},{int(status)}")
    write_atomic(out, ("\n".join(lines) + "\n").encode())
    told = (Status.DELETED, Status.EXEMPTED, Status.OPTED_OUT, Status.NOT_FOUND, None)
    return Answered(*(counts[status] for status in told))


def undecided_items(settings: Settings) -> Iterator[str]:
    """The work items whose identifier several persons have, and of which nobody has decided. Raises as
    `write_answers`."""
    with _store(settings).connected() as connection:
        yield from undecided(connection)


def decide_items(
    settings: Settings, items: Sequence[str], *, status: str, by: str, reason: str, now: datetime | None = None
) -> int:
    """Record what a named person decided of work items whose identifier several persons have: all or none of them.

    status: one of `DECIDED`.

    Raises:
        UsageError: there is no request store or item, several persons do not have its identifier, or nobody is named.
        RequestError: the store cannot be used.
    """
    if not by.strip() or not reason.strip():
        raise UsageError(
            "`--by` (the person who decides) and `--reason` are missing",
            where="--by, --reason",
            todo="give --by and --reason",
        )
    at = now or datetime.now(timezone.utc)
    with _store(settings).writing() as connection:
        for name in dict.fromkeys(items):
            decide(connection, name, DECIDED[status], at, by, reason)
    return len(dict.fromkeys(items))


def _store(settings: Settings) -> RequestStore:
    store = existing_store(settings)
    if store is None:
        raise UsageError(
            "there is no request store",
            where=str(settings.state / FILE),
            todo="run `pii-tracer requests add-drop`, which makes it",
        )
    return store


def _column(subject: Subject, kind: str, named: Mapping[str, str]) -> str:
    if kind in named:
        return named[kind]
    fitting = [one.column for one in subject.identifiers if one.category == CATEGORIES[kind]]
    if len(fitting) != 1:
        raise UsageError(
            f"the list {kind} needs exactly one identifier of the category"
            f" {CATEGORIES[kind]}; the subject has {len(fitting)}",
            where=f"list {kind}",
            todo=f"name the column of {subject.source} with `--column {kind}=NAME`",
        )
    return fitting[0]


Index = Mapping[str, Mapping[bytes, str | None]]
"""By list: the key of the person with an identifier, by its digest; None where several persons have it."""


def _index(settings: Settings, subject: Subject, columns: Mapping[str, str], show: Shows) -> Index:
    from pii_tracer.app.planning.plan_creation import take_inventory
    from pii_tracer.app.planning.subject_sources import spots_of, table_of, texts_of
    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.lake.rows.current_rows import read_spots
    from pii_tracer.model.column_paths import spot_of

    if subject.several_columns:
        raise UsageError(
            f"the key of `{subject.name}` has several columns ({subject.key}), but the request store takes only keys "
            "of one column",
            todo="write a request file for each person, and plan these files with `pii-tracer plan`",
        )
    show.step(f"reading {subject.source}")
    estate, paths = settings.estate(), EstatePaths(settings.estate(), settings.base)
    states = {state.dataset: state for state in take_inventory(estate, settings.base, show.step, stored=False).tables}
    source = table_of(subject, subject.source, paths, states)
    spots = spots_of(subject, paths, states)
    wanted = {name: spot_of(spots, source.dataset, name) for name in {subject.key, *columns.values()}}
    rows = {name: texts_of(values) for name, values in read_spots(source, wanted, paths).items()}
    return {kind: _digests(rows[subject.key], rows[column], kind) for kind, column in columns.items()}


def _digests(keys: Sequence[str | None], values: Sequence[str | None], kind: str) -> dict[bytes, str | None]:
    form, found = FORMS[kind], dict[bytes, "str | None"]()
    for key, value in zip(keys, values, strict=True):
        if key is None or value is None or not (text := form(value)):
            continue
        at = digest_of(text)
        found[at] = key if found.get(at, key) == key else None
    return found


@dataclass(frozen=True)
class _Taker:
    key: EstateKey
    subject: str
    received: datetime
    index: Index
    due: Due

    def of(self, item: WorkItem) -> Intake:
        """A work item keeps its id for ever, in whatever download it comes: the receipt is known by it."""
        digest = self.key.file_digest()
        digest.update(item.id.encode())
        return Intake(self.key, digest.hexdigest()[:32], self.due)


def _take(connection: Connection, taker: _Taker, item: WorkItem, count: _Count, tell: Tell) -> None:
    if item.wrong:
        _refuse(item, item.wrong, count, tell)
        return
    before = outcome_of(connection, item.id)
    if item.list == REMOVED:
        outcome = Outcome.REMOVED
        record(connection, item.id, item.list, outcome)
        if request := withdrawn_with(connection, item.id):  # also of one that is known: that call may have been killed
            count.withdrawn.append(request)
        if before is outcome:
            count.found["known"] += 1
            return
    elif before not in (None, Outcome.NOT_FOUND):
        count.found["known"] += 1
        return
    else:
        mine = taker.index[item.list]
        key = mine.get(item.digest)
        outcome = Outcome.NOT_FOUND if item.digest not in mine else Outcome.MATCHED if key else Outcome.SHARED
        record(connection, item.id, item.list, outcome)  # first: who takes it in asks whether it is of DROP
        if key:
            incoming = Incoming(item.line, item.id, taker.subject, key, LAW, taker.received, "drop")
            intake = taker.of(item)
            try:
                intake.take(connection, incoming)
            except NotTaken as why:
                put_back(connection, item.id, item.list, before)
                _refuse(item, str(why), count, tell)
                return
            count.matched.add(intake.request_of(connection, incoming))
        if outcome is Outcome.SHARED:
            tell(
                item.file, item.line, f"several persons of the source have this identifier: `requests decide {item.id}`"
            )
    count.found[outcome.value] += 1


def _refuse(item: WorkItem, reason: str, count: _Count, tell: Tell) -> None:
    count.found["refused"] += 1
    if len(count.refusals) < MOST_TOLD:
        count.refusals.append(Refusal(item.line, reason))
    tell(item.file, item.line, reason)


def _withdraw(store: RequestStore, requests: Sequence[str], now: datetime) -> None:
    """What a consumer took back is not erased any more, unless its erasure has begun."""
    for name in dict.fromkeys(requests):
        try:
            end(store, name, RequestState.WITHDRAWN, Said(_DROP, "removed from the list by the consumer", now))
        except UsageError:
            continue  # it has ended, or its erasure has begun: the answer tells what became of it
