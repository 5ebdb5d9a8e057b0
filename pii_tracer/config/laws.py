"""What laws say of an erasure: deadline, notice, how long it stays on record, who must be told. Data, with sources.

The laws that the program brings along lie in `law_files/`, one file a law; an estate file adds its own by the same
format (`laws:`). Facts to work by, not legal advice.
"""

from __future__ import annotations

import calendar
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.strict_yaml import load_yaml
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import ConfigError

FOLDER = Path(__file__).parent / "law_files"


class Ground(StrEnum):
    """Why a person is erased: they asked for it, or their account was idle for as long as a law allows."""

    REQUEST = "request"
    INACTIVITY = "inactivity"


class Duty(Frozen):
    """What every rule has: where it stands. article: as plans and reports cite it. url: of the law's text."""

    article: str = Field(min_length=1)
    url: str = Field(pattern=r"^https://\S+$")


class Span(Duty):
    """A time in days or in months: one of them."""

    days: int = Field(default=0, ge=0, le=3650)
    months: int = Field(default=0, ge=0, le=120)

    @model_validator(mode="after")
    def _one(self) -> Span:
        if bool(self.days) == bool(self.months):
            raise ValueError("exactly one of `days` and `months` is needed")
        return self

    def after(self, moment: datetime) -> datetime:
        """When it ends. A month ends on the same day of the next month, or on its last day (Regulation (EEC, Euratom)
        No 1182/71, Art. 3(2)(c))."""
        if not self.months:
            return moment + timedelta(days=self.days)
        month = moment.month - 1 + self.months
        year, month = moment.year + month // 12, month % 12 + 1
        return moment.replace(year=year, month=month, day=min(moment.day, calendar.monthrange(year, month)[1]))


class Deadline(Span):
    """From receipt to the end of the erasure. statutory: false where the law names no number and this is practice."""

    statutory: bool = True


class Extension(Span):
    """How much later at most, once, and on what condition."""

    condition: str = Field(min_length=1)


class Notice(Duty):
    """The person is told so many hours before the erasure begins. grounds: of the erasures that it is asked for."""

    hours: int = Field(ge=1, le=24 * 365)
    grounds: tuple[Ground, ...] = Field(min_length=1)
    text: str = Field(min_length=1)


class KeepLog(Duty):
    """How long what was done is kept on record at least, from the day on which it was done."""

    days: int = Field(ge=1, le=36500)


class Told(Duty):
    """Somebody who must be told something. The program tells nobody: it reminds of it."""

    whom: str = Field(min_length=1)
    what: str = Field(min_length=1)


class Rules(Frozen):
    """A law as it stood from a day on."""

    since: date
    deadline: Deadline
    extension: Extension | None = None
    notice: Notice | None = None
    keep_log: KeepLog | None = None
    tell: tuple[Told, ...] = ()

    def due(self, received: datetime, extended: datetime | None = None) -> datetime:
        """When the erasure must be done. extended: when the person was informed that it takes the law's longer time.

        Raises:
            NotExtended: the law has no longer time, or the person was not informed of it within the first one.
        """
        end = self.deadline.after(received)
        if extended is None:
            return end
        if self.extension is None:
            raise NotExtended("the law has no longer time")
        if not received <= extended <= end:
            raise NotExtended(f"the person must be informed between {received:%Y-%m-%d} and {end:%Y-%m-%d}")
        return self.extension.after(end)

    def not_before(self, ground: Ground, noticed: datetime | None) -> datetime | None:
        """When an erasure may begin; None where nobody has to be told before it.

        Raises:
            NoticeMissing: the person has to be told, and nobody says when they were.
        """
        if self.notice is None or ground not in self.notice.grounds:
            return None
        if noticed is None:
            raise NoticeMissing(self.notice.hours)
        return noticed + timedelta(hours=self.notice.hours)


class NotExtended(Exception):
    """A deadline cannot be extended; the text says why."""


class NoticeMissing(Exception):
    """A person has to be told before the erasure, and nobody says when they were. hours: how long before."""

    def __init__(self, hours: int) -> None:
        super().__init__(f"the law wants the person informed {hours} hours before, and `noticed` does not say when")


class Law(Frozen):
    """One law. version: of the format. checked: when the rules were last compared with the law's text."""

    version: Literal[1]
    name: str = Field(pattern=r"^[A-Z][A-Z0-9-]{1,31}$")
    title: str = Field(min_length=1)
    checked: date
    rules: tuple[Rules, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _in_order(self) -> Law:
        since = [rule.since for rule in self.rules]
        if since != sorted(set(since)):
            raise ValueError("each of `rules` must begin after the previous one")
        return self

    def at(self, received: datetime) -> Rules:
        """The rules for a request: those in force on the day of its receipt, in UTC; the first ones before that."""
        day = received.astimezone(timezone.utc).date()
        return next((rule for rule in reversed(self.rules) if rule.since <= day), self.rules[0])


def double(laws: Sequence[Law]) -> str | None:
    """What is wrong with an estate's own laws: a name that stands twice, or is that of a law that comes along."""
    names = [law.name for law in laws]
    twice = next((name for name in names if names.count(name) > 1 or name in shipped()), None)
    return f"the law {twice} is there already: give yours a name of its own" if twice else None


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, Law]:
    """The laws that come along, by name.

    Raises:
        ConfigError: a file of the installation was damaged.
    """
    return {law.name: law for law in map(_read, sorted(FOLDER.glob("*.yaml")))}


def laws_of(own: Sequence[Law]) -> dict[str, Law]:
    """Every law that requests of an estate can name. own: those of the estate file."""
    return {**shipped(), **{law.name: law for law in own}}


def longest_log(laws: Mapping[str, Law]) -> timedelta:
    """How long a log is kept whose law nobody knows: as the strictest of all laws says."""
    days = [rule.keep_log.days for law in laws.values() for rule in law.rules if rule.keep_log]
    return timedelta(days=max(days, default=0))


def _read(path: Path) -> Law:
    try:
        return Law.model_validate(load_yaml(path, "law"))
    except ValidationError as error:
        raise ConfigError(
            f"the law file has {counted(error.error_count(), 'mistake')}",
            where=str(path),
            todo="install pii-tracer again, because this file belongs to its package",
        ) from None
