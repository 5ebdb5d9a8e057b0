"""The small protocol between the runner and the executors: check, run, verify, probe.

An executor never decides what to do: the step's parameters and the copy say it. It reports facts (counts, snapshot
ids, hashes), never values of persons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step


class Progress(StrEnum):
    """What a probe found of a step that has an intent in the journal and no result."""

    NOT_STARTED = "not_started"
    PARTIAL = "partial"
    DONE = "done"


@dataclass(frozen=True)
class Outcome:
    """Facts of a step that ran, for the journal: JSON values only (snapshot ids, counts, hashes, versions).

    waiting_until: the step has begun something asynchronous and cannot end before this time. waits_for: in words that
    people are told, what it waits for; empty where the time alone says it.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    waiting_until: datetime | None = None
    waits_for: str = ""


class PartlyDone(RunError):
    """A batch failed in part. facts: as in `Outcome`, what is done all the same; they go into the journal, too."""

    def __init__(self, what: str, facts: dict[str, Any], *, where: str, todo: str) -> None:
        super().__init__(what, where=where, todo=todo)
        self.facts = facts


@dataclass(frozen=True)
class Check:
    """Whether a step's own postcondition holds, seen in the system itself and not in a return code."""

    ok: bool
    findings: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def none_left(cls, left: int, one: str, many: str, rest: str, facts: dict[str, Any] | None = None) -> Check:
        """Holds where nothing is left. one, many: what is left, for `counted`; rest: how the sentence ends."""
        return cls(not left, (f"{counted(left, one, many)} {rest}",) if left else (), facts or {})


class Executor(Protocol):
    """One adapter per system."""

    name: str

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` (or a subclass) when the step cannot run now: missing table, permission, wrong engine."""

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step. Safe to call again after a crash in the middle of it."""

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look at the system and tell whether the step's postcondition holds."""

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """After a crash: how far did the step come? Reads only."""
