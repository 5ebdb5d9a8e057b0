"""Gaps that a named person accepts, and what somebody does about them."""

from __future__ import annotations

from pydantic import Field

from pii_tracer.model.datasets import Frozen
from pii_tracer.model.timestamps import Moment


def file_mark(sha256: str) -> str:
    """What a gap says of a file that may stay when it is waived. sha256: hex, of its bytes."""
    return sha256[:16]


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
