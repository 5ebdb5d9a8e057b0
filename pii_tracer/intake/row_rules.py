"""What makes a row of a list a request. Reasons name the field that is wrong, and never hold what stands in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from pydantic import TypeAdapter, ValidationError

from pii_tracer.config.estate_file import REQUEST_ID
from pii_tracer.config.laws import Ground, Law, NoticeMissing
from pii_tracer.intake.requests import Incoming, NotTaken
from pii_tracer.model.timestamps import Moment

FIELDS = ("key", "id", "law", "received", "subject", "verified", "right", "ground", "noticed")
"""What a row can tell. The key has to stand in every row; the others can be given for all rows at once, but `id`."""
ERASURE = "erasure"
_ELSEWHERE = {
    "access": "a request for access",
    "rectification": "a request for rectification",
    "objection": "an objection",
    "portability": "a request for portability",
    "restriction": "a request for restriction",
}
_VERIFIED = re.compile(r"[A-Za-z][A-Za-z_-]{0,39}")
_ID = re.compile(REQUEST_ID)
_MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)
MOST_KEY = 1024
"""Characters of a key. A longer one is no identifier, but text that ran into the column."""


@dataclass(frozen=True)
class Rules:
    """What rows are judged by. given: fields for all rows that do not say them. subjects, laws: those that exist.

    now: of the clock; a request that is received after it would have more time than its law gives.
    """

    given: Mapping[str, str]
    subjects: frozenset[str]
    laws: Mapping[str, Law]
    now: datetime

    def judge(self, line: int, told: Mapping[str, str | None]) -> Incoming:
        """A row as a request.

        Raises:
            NotTaken: with the reason.
        """
        row = {**self.given, **{name: text for name, text in told.items() if text}}
        if any("\ufffd" in text for text in row.values()):
            raise NotTaken("the row contains bytes that are not valid in the file's encoding")
        self._is_erasure(row.get("right", ERASURE))
        key, name = row.get("key", ""), row.get("id")
        _is_key(key)
        if name is not None and not _ID.fullmatch(name):
            raise NotTaken("`id` must have at most 64 characters, only letters, digits, `.`, `_` and `-`")
        verified = row.get("verified", "")
        if verified and not _VERIFIED.fullmatch(verified):
            raise NotTaken(
                "`verified` must be one word of at most 40 letters, `-` and `_`; write how the person was verified, "
                "not the person's name"
            )
        if tells(name or "", key) or tells(verified, key):
            raise NotTaken(
                "`id` and `verified` must not contain the person's key, because everybody can see these fields"
            )
        kind = row.get("subject", "")
        if kind not in self.subjects:
            raise NotTaken("`subject` is not declared in the estate file" if kind else "`subject` is missing")
        if row.get("law", "") not in self.laws:
            raise NotTaken("`law` is not known" if row.get("law") else "`law` is missing")
        received = self._received(row.get("received", ""))
        ground, noticed = self._notice(row, received)
        return Incoming(line, name, kind, key, row["law"], received, verified, ground, noticed)

    def _is_erasure(self, right: str) -> None:
        if right == ERASURE:
            return
        what = _ELSEWHERE.get(right.strip().lower(), "something else than an erasure")
        raise NotTaken(
            f"`right` asks for {what}, but pii-tracer handles only erasures; answer the request outside pii-tracer"
        )

    def _notice(self, row: Mapping[str, str], received: datetime) -> tuple[Ground, datetime | None]:
        """Why the person is erased, and when they were told, which some laws want to be a time before."""
        told = row.get("ground", Ground.REQUEST)
        if told not in tuple(Ground):
            raise NotTaken(f"`ground` must be one of: {', '.join(Ground)}")
        ground, noticed = Ground(told), _moment("noticed", row["noticed"]) if row.get("noticed") else None
        if noticed and noticed > self.now:
            raise NotTaken("`noticed` must not be in the future, because the waiting time begins at this time")
        try:
            self.laws[row["law"]].at(received).not_before(ground, noticed)
        except NoticeMissing as missing:
            raise NotTaken(str(missing)) from None
        return ground, noticed

    def _received(self, text: str) -> datetime:
        if not text:
            raise NotTaken("`received` is missing")
        received = _moment("received", text)
        if received > self.now:
            raise NotTaken("`received` must not be in the future, because the deadline is counted from this time")
        if received.year < 1970:
            raise NotTaken("`received` must not be before 1970")
        return received


def _moment(field: str, text: str) -> datetime:
    try:
        return _MOMENT.validate_python(text).astimezone(timezone.utc).replace(microsecond=0)
    except (ValidationError, OverflowError):
        raise NotTaken(f"`{field}` must be a time with a time zone, such as 2026-11-21T10:00:00+05:30") from None


def _is_key(key: str) -> None:
    if not key.strip():
        raise NotTaken("`key` is empty")
    if len(key) > MOST_KEY:
        raise NotTaken(f"`key` must not be longer than {MOST_KEY} characters")
    if key != key.strip():
        raise NotTaken("`key` must not begin or end with a space")
    if not key.isprintable():
        raise NotTaken("`key` contains an invisible character; remove it")


def tells(text: str, key: str) -> bool:
    """Whether a text names the key, as a word of its own or joined by `_`, in any case."""
    text, key = text.casefold(), key.casefold()
    return key in text and re.search(rf"(?<![^\W_]){re.escape(key)}(?![^\W_])", text) is not None
