"""Gaps that a named person accepts, and what somebody does about them."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

from pydantic import Field

from pii_tracer.model.datasets import Frozen, is_said
from pii_tracer.model.timestamps import Moment


class MarkKey:
    """Makes the marks by which a plan says what a gap shows, and which bytes its steps are for. Without the estate's
    key nobody can check a guess of what is in a file, or use a waiver of another estate. Never printed."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "MarkKey(…)"

    def of_file(self, place: object, digest: str) -> str:
        """What a gap says of a file that may stay when it is waived: 16 hex digits of HMAC-SHA256.

        place: dataset, or path as the gap shows it. digest: SHA-256 of the file's bytes, in hex.
        """
        return self._of("file", str(place), digest)[:16]

    def of_content(self, name: str, digest: str) -> str:
        """What a step of a plan says of the bytes of an object or file: HMAC-SHA256, in hex.

        name: its key, path or id. digest: any digest of its bytes, as text.
        """
        return self._of("content", name, digest)

    def of_gap(self, facts: str) -> str:
        """What a waiver names: `g` and 11 hex digits of HMAC-SHA256, so that YAML never takes it for a number."""
        return "g" + self._of("gap", facts)[:11]

    def of_places(self, table: str, places: Iterable[str]) -> str:
        """What a plan says of places of a table's partitions that it does not name: HMAC-SHA256, in hex."""
        return self._of("places", table, *places)

    def _of(self, *parts: str) -> str:
        told = "\0".join(parts).encode("utf-8", "surrogateescape")
        return hmac.new(self._secret, told, sha256).hexdigest()


class OwnerTask(Frozen):
    """What a person does by hand about a waived gap. It is a step of the plan, and the run waits for its confirmation.

    due_days: days that the owner has, from the moment when it can be done. before, after: copies (table, place or id)
    of which no step begins before it is done, or that it waits for.
    """

    owner: str = Field(min_length=1)
    act: str = Field(min_length=1)
    due_days: int = Field(default=7, ge=1, le=365)
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Waiver(Frozen):
    """A named person accepts a gap until a date. task: what somebody does about it meanwhile, where something is.

    of: `Gap.seen` of the gap that was accepted. A gap that shows something else is not waived.
    """

    who: str = Field(min_length=1)
    why: str = Field(min_length=1)
    until: Moment
    of: str = ""
    task: OwnerTask | None = None

    @property
    def unsaid(self) -> tuple[str, ...]:
        """The fields in which nothing stands that can be read: no new plan is made with such a waiver."""
        told = {"who": (self.who,), "why": (self.why,)} | (
            {"task": (self.task.owner, self.task.act)} if self.task else {}
        )
        return tuple(name for name, texts in told.items() if not all(map(is_said, texts)))
