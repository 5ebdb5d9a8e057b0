"""The estate file's `recipients`: others who got the data, and are told of its erasure (docs/recipients.md)."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from pydantic import Field, model_validator
from typing_extensions import Self

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.backups import Backup
from pii_tracer.config.subjects import Subject
from pii_tracer.model.datasets import Frozen


class How(StrEnum):
    """How a recipient is told. email: a text is written, and a person sends it."""

    FILE = "file"
    EMAIL = "email"
    WEBHOOK = "webhook"


class Recipient(Frozen):
    """A controller or processor that got data of the persons.

    of: the datasets that it gets, as Spark SQL names them, or their folders; all without any. folder: where notices and
    texts are put. url, token: of a webhook; token is the name of the variable with its bearer token. identifiers:
    `SUBJECT.COLUMN` of what the recipient needs to find the persons, and nothing else is passed on. confirm_days: how
    long it has to confirm, after it was told.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    of: tuple[str, ...] = ()
    how: How
    folder: str | None = Field(default=None, min_length=1)
    url: str | None = None
    token: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]*$")
    identifiers: tuple[str, ...] = Field(min_length=1)
    confirm_days: int = Field(default=30, ge=0, le=3650)

    @model_validator(mode="after")
    def _reached(self) -> Self:
        if self.how is not How.WEBHOOK:
            if self.folder is None or self.url or self.token:
                raise ValueError(f"a recipient with `how: {self.how}` needs `folder`; remove `url` and `token`")
        elif self.folder or self.url is None or self.token is None:
            raise ValueError("a recipient with `how: webhook` needs `url` and `token`; remove `folder`")
        elif not _is_safe(self.url):
            raise ValueError("the `url` of a webhook must begin with https:// and must not contain a user or password")
        return self


def _is_safe(url: str) -> bool:
    """Nothing of persons goes over the net in the clear; loopback is no net."""
    parts = urlsplit(url)
    if not parts.hostname or parts.username or parts.password:
        return False
    try:
        return parts.scheme == "https" or (parts.scheme == "http" and ipaddress.ip_address(parts.hostname).is_loopback)
    except ValueError:
        return False


def wrong_recipients(
    recipients: Iterable[Recipient], subjects: Iterable[Subject], backups: Iterable[Backup]
) -> str | None:
    """What is wrong between recipients, subjects and backups, or None. `confirm` knows a backup by its name, too."""
    known: Collection[str] = {
        f"{subject.name}.{column}"
        for subject in subjects
        for column in (
            *(() if subject.several_columns else (subject.key,)),
            *(one.column for one in subject.identifiers),
        )
    }
    others = {backup.name.lower() for backup in backups}
    names: set[str] = set()
    for one in recipients:
        if one.name.lower() in names:
            return f"two recipients have the name {one.name}"
        if one.name.lower() in others:
            return f"a backup and a recipient have the name {one.name}: `confirm` would not know which is meant"
        names.add(one.name.lower())
        if unknown := [name for name in one.identifiers if name not in known]:
            return f"the recipient {one.name} gets {unknown[0]}, which is no SUBJECT.COLUMN of a key or an identifier"
    return None
