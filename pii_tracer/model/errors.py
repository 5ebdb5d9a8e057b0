"""One root error, one family per stage.

Every message says what happened; `where` names the file, line, table or object; `todo` says what to do next.
No message ever holds a person's value: raise with the name of the column or key set, not with its content.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line (a stable interface, see docs/commands.md)."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    INCOMPLETE = 3
    POLICY_DENIED = 4
    NOT_APPROVED = 5
    DRIFT = 6
    PARTIAL = 7
    WAITING = 8
    RESIDUE = 9


class PiiTracerError(Exception):
    """Root of all errors that a user can meet."""

    exit_code: ExitCode = ExitCode.ERROR

    def __init__(self, what: str, *, where: str | None = None, todo: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.todo = todo

    def __str__(self) -> str:
        parts = [self.what]
        if self.where:
            parts.append(f"  where: {self.where}")
        if self.todo:
            parts.append(f"  next:  {self.todo}")
        return "\n".join(parts)


class ConfigError(PiiTracerError):
    """The estate, request or policy file is wrong."""


class UsageError(PiiTracerError):
    """The command line was called in a way that cannot work."""

    exit_code = ExitCode.USAGE


class Interrupted(PiiTracerError):
    """Somebody stopped a run that had begun; it can be resumed."""

    exit_code = ExitCode.PARTIAL


class LineageError(PiiTracerError):
    """Events or SQL could not be read at all (a statement that could not be resolved is a gap, not an error)."""


class EstateError(PiiTracerError):
    """A catalog, table or store could not be read during discovery."""


class RequestError(PiiTracerError):
    """The request store cannot be used, or a list of requests cannot be read."""


class ScanError(PiiTracerError):
    """The byte scanner was asked something it cannot answer."""


class PlanError(PiiTracerError):
    """No plan could be made from these inputs."""


class PersonsUnknown(PlanError):
    """No version of the source knows some persons. requests: the ids of theirs, sorted."""

    def __init__(self, what: str, *, where: str, todo: str, requests: tuple[str, ...]) -> None:
        super().__init__(what, where=where, todo=todo)
        self.requests = requests


class PersonsApart(PlanError):
    """Something of some persons alone stands against a plan for all. reasons: by request, why it is planned apart."""

    def __init__(
        self, what: str, *, where: str | None = None, todo: str | None = None, reasons: Mapping[str, str]
    ) -> None:
        super().__init__(what, where=where, todo=todo)
        self.reasons = reasons


class PlanIncomplete(PlanError):
    """The plan has gaps that nobody waived."""

    exit_code = ExitCode.INCOMPLETE


class ReviewError(PiiTracerError):
    """Plan file, approval or policy could not be read."""


class PolicyDenied(ReviewError):
    """A policy rule refuses the plan."""

    exit_code = ExitCode.POLICY_DENIED


class NotApproved(ReviewError):
    """Approval missing, invalid, expired, consumed, or for other bytes."""

    exit_code = ExitCode.NOT_APPROVED


class Drift(ReviewError):
    """The world is not what the plan was made for."""

    exit_code = ExitCode.DRIFT


class RunError(PiiTracerError):
    """A step failed; the journal says what was done. The run can be resumed."""

    exit_code = ExitCode.PARTIAL


class Refused(RunError):
    """Nothing was started: another runner holds the plan, or the installation is not ours."""

    exit_code = ExitCode.ERROR


class Waiting(RunError):
    """A step waits for a restore, a retention window or an off-peak window. until: when it can go on, if known."""

    exit_code = ExitCode.WAITING

    def __init__(
        self, what: str, *, where: str | None = None, todo: str | None = None, until: datetime | None = None
    ) -> None:
        super().__init__(what, where=where, todo=todo)
        self.until = until


class JournalError(RunError):
    """The journal is broken (not merely torn at its end)."""

    exit_code = ExitCode.ERROR


class ResidueFound(PiiTracerError):
    """The verifier found the person after erasure."""

    exit_code = ExitCode.RESIDUE


class ShredError(PiiTracerError):
    """A person's key or a cell under it cannot be made, opened or destroyed."""


class ProofError(PiiTracerError):
    """An attestation or its evidence does not hold."""
