"""Taking a list of requests in: from a file into the request store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import chain, islice
from pathlib import Path

from pii_tracer.app.intake.request_store import due_by, store_of, taking
from pii_tracer.app.settings import Settings
from pii_tracer.config.laws import laws_of
from pii_tracer.intake.list_files import Form, Row, feed, rows
from pii_tracer.intake.request_databases.base import Connection
from pii_tracer.intake.request_intake import Intake
from pii_tracer.intake.requests import NotTaken, Taken
from pii_tracer.intake.row_rules import Rules
from pii_tracer.model.errors import RequestError

ROWS_AT_ONCE = 5_000
"""Rows of one transaction: what a crash loses of a list at most, until it is added again."""
MOST_TOLD = 1_000
"""Refused rows that a result names. All are told as they are met."""

Tell = Callable[[int, str], None]
"""Is told each row that is refused: its line, and why."""


@dataclass(frozen=True)
class Refusal:
    """A row that was not taken."""

    line: int
    reason: str


@dataclass(frozen=True)
class Added:
    """What became of a list. refused: how many rows were not taken; refusals: the first of them. widened: by request,
    the datasets that its person keeps no more, since she asked for everything."""

    file: str
    added: int
    joined: int
    repeated: int
    known: int
    refused: int
    refusals: tuple[Refusal, ...]
    widened: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class _Count:
    taken: dict[Taken, int] = field(default_factory=lambda: dict.fromkeys(Taken, 0))
    refused: int = 0
    refusals: list[Refusal] = field(default_factory=list)


def add_requests(
    settings: Settings,
    file: Path,
    *,
    form: Form | None = None,
    given: Mapping[str, str] | None = None,
    tell: Tell = lambda line, reason: None,
    now: datetime | None = None,
) -> Added:
    """Take the requests of a file in: one as YAML, or a list as CSV or Parquet. What is wrong is told, the rest taken.

    The same file again adds nothing; after a crash it adds what is missing. form: how a CSV or Parquet file is written.
    given: fields for rows that do not say them.

    Raises:
        RequestError: the file or the store cannot be read; or the file was changed meanwhile.
        ConfigError: estate file or request file cannot be read.
    """
    estate = settings.estate()
    laws = laws_of(estate.laws)
    rules = Rules(given or {}, frozenset(s.name for s in estate.subjects), laws, now or datetime.now(timezone.utc))
    store = store_of(settings)
    digest = store.key.file_digest()
    feed(file, digest)
    before = _seen(file)
    intake, count = Intake(store.key, digest.hexdigest()[:32], due_by(laws)), _Count()
    found = rows(file, form or Form())
    with taking(store) as connection:
        for first in found:
            with connection.transaction():
                _take(connection, chain((first,), islice(found, ROWS_AT_ONCE - 1)), rules, intake, count, tell)
    if _seen(file) != before:
        raise RequestError(
            "the list was changed while it was read",
            where=str(file),
            todo="add the list again: requests that were added already are not added twice",
        )
    taken = {name.value: number for name, number in count.taken.items()}
    refusals = tuple(count.refusals)
    return Added(file=str(file), **taken, refused=count.refused, refusals=refusals, widened=intake.widened)


def _take(connection: Connection, some: Iterable[Row], rules: Rules, intake: Intake, count: _Count, tell: Tell) -> None:
    for row in some:
        try:
            if row.wrong:
                raise NotTaken(row.wrong)
            count.taken[intake.take(connection, rules.judge(row.line, row.told))] += 1
        except NotTaken as why:
            count.refused += 1
            if len(count.refusals) < MOST_TOLD:
                count.refusals.append(Refusal(row.line, str(why)))
            tell(row.line, str(why))


def _seen(file: Path) -> tuple[int, int, int]:
    seen = file.stat()
    return seen.st_ino, seen.st_size, seen.st_mtime_ns
