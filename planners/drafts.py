"""Steps before they are dated and priced: what the format rules write and the later rules complete."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pii_tracer.inventory import ObjectSet, TableState
from pii_tracer.plan import Action, Copy, Precondition
from planners.carriage import Carriage


@dataclass(frozen=True)
class Draft:
    """A step without dates. `after` names drafts (by id) that must have been verified before it starts.

    retained: the step removes old data and so waits for the retention window when time travel is kept.
    window: runs in the archive's off-peak window. restore: asynchronous restore in front of what follows.
    """

    id: str
    copy: str | None
    action: Action
    executor: str
    parameters: dict[str, Any]
    hazards: tuple[str, ...]
    irreversible: bool
    verification: str
    reason: str
    after: tuple[str, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    retained: bool = False
    window: bool = False
    restore: bool = False
    files: int = 0
    bytes: int = 0
    rows: int | None = None


@dataclass(frozen=True)
class CopyDraft:
    """A copy with what was known when it was recognised, and the drafts of its steps in order."""

    copy: Copy
    state: TableState | None = None
    objects: ObjectSet | None = None
    carriage: Carriage | None = None
    upstream: str | None = None
    rebuild_sql: str | None = None
    drafts: tuple[Draft, ...] = field(default=())


def slug(name: str) -> str:
    """A name from outside as a safe part of an id: letters, digits, `.`, `_`, `-`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")[:80] or "unnamed"


class StepWriter:
    """Collects the drafts of one copy; each comes after the one before it. `base` are parameters of every step."""

    @classmethod
    def of_table(cls, copy: Copy, executor: str) -> StepWriter:
        """For steps on a table or folder, which are told its name and location."""
        return cls(copy, executor, {"table": copy.table, "location": copy.location})

    def __init__(self, copy: Copy, executor: str, base: dict[str, Any]) -> None:
        self._copy = copy
        self._executor = executor
        self._base = base
        self.drafts: list[Draft] = []

    def add(
        self,
        action: Action,
        reason: str,
        *,
        hazards: tuple[str, ...] = (),
        verification: str,
        irreversible: bool = True,
        retained: bool = False,
        **parameters: Any,
    ) -> None:
        """Append a step."""
        number = len(self.drafts) + 1
        self.drafts.append(
            Draft(
                id=f"{self._copy.id}/{number:02d}-{action.value.replace('_', '-')}",
                copy=self._copy.id,
                action=action,
                executor=self._executor,
                parameters=self._base | parameters,
                hazards=hazards,
                irreversible=irreversible,
                verification=verification,
                reason=reason,
                after=(self.drafts[-1].id,) if self.drafts else (),
                retained=retained,
            )
        )
