"""What a run keeps of each recipient: whether it was told, when, and until when it has to confirm; no value of anybody.

It lies in the run's folder, one file for each recipient. Its notice has one id for ever, by which a recipient knows a
notice that comes twice.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import AwareDatetime, ValidationError

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.recipients.erased_data import gets
from pii_tracer.common.atomic_files import sync_folder, write_atomic
from pii_tracer.config.passing_on.recipients import How, Recipient
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import ReviewError, RunError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.request_answers.answer import ToldRecipient
from pii_tracer.review.manual_step_confirmation import Confirmed, confirmation_file, read_confirmation
from pii_tracer.review.trusted_keys import load_trusted

_FOLDER = "recipients"
_STEP = "recipient/"


class Told(Frozen):
    """notice: its id, 128 random bits in hex. sha256: of the notice: one with other content
    gets another id. requests: ids of those that it tells of. unnamed: of those that it cannot tell of, since none of
    the recipient's identifiers is known of the person. begun: when telling began, which
    is the notice's date. at: when it was done; None where it was not, or nobody knows. problem: why not, at the last
    try."""

    recipient: str
    how: How
    plan_digest: str
    notice: str
    sha256: str
    requests: tuple[str, ...]
    unnamed: tuple[str, ...] = ()
    begun: AwareDatetime
    at: AwareDatetime | None = None
    confirm_by: AwareDatetime | None = None
    problem: str | None = None

    def done(self, at: datetime, days: int) -> Told:
        """It was told."""
        return self.model_copy(update={"at": at, "confirm_by": at + timedelta(days=days), "problem": None})


def step_of(recipient: str) -> str:
    """What a confirmation of a recipient names in the place of a step."""
    return _STEP + recipient


def _file(folder: RunFolder, recipient: str) -> Path:
    return folder.path / _FOLDER / f"{recipient}.json"


def read_told(folder: RunFolder, recipient: str, plan_digest: str) -> Told | None:
    """What is kept of a recipient; None where nobody began to tell it.

    Raises:
        RunError: it cannot be read, or is of another plan: it might be told twice.
    """
    path = _file(folder, recipient)
    try:
        found = Told.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        found = None
    if found is None or (found.recipient, found.plan_digest) != (recipient, plan_digest):
        raise RunError(
            "what the run keeps of a recipient cannot be read, or is of another plan",
            where=str(path),
            todo="put the file back from a backup; without it, the recipient would be informed a second time",
        )
    return found


def write_told(folder: RunFolder, told: Told) -> None:
    """Keep it, whole or not at all."""
    path = _file(folder, told.recipient)
    write_atomic(path, (told.model_dump_json(indent=2) + "\n").encode())
    sync_folder(path.parent)


@contextmanager
def telling(folder: RunFolder) -> Iterator[None]:
    """Nobody else tells recipients of this run meanwhile."""
    place = folder.path / _FOLDER
    place.mkdir(parents=True, exist_ok=True)
    handle = os.open(place / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


PassedOn = tuple[ToldRecipient, frozenset[str] | None]
"""A recipient, and the requests for which that can be said of it; None for all."""

_UNKNOWN = "it is not known whether it was informed"
_UNNAMED = "it was not informed of you: we have nothing by which it would find you"


def told_recipients(
    folder: RunFolder | None, plan: ErasurePlan, digest: str, recipients: Sequence[Recipient], now: datetime
) -> tuple[PassedOn, ...]:
    """What can be said of each recipient of the plan's data: told when, of whom, and confirmed by whom.

    What is kept of one and cannot be read keeps no answer back: it is not known then. A confirmation counts if a
    trusted person signed it for this plan and recipient, after it was told.
    """
    found: list[PassedOn] = []
    for one in recipients:
        if not gets(one, plan):
            continue
        base = ToldRecipient(name=one.name, how=one.how.value)
        try:
            told = read_told(folder, one.name, digest) if folder else None
        except RunError:
            found.append((base.model_copy(update={"problem": _UNKNOWN}), None))
            continue
        if folder is None or told is None or told.at is None:
            found.append((base, None))
            continue
        found.append((_passed(folder, told, now), frozenset(told.requests)))
        if told.unnamed:
            found.append((base.model_copy(update={"problem": _UNNAMED}), frozenset(told.unnamed)))
    return tuple(found)


def _passed(folder: RunFolder, told: Told, now: datetime) -> ToldRecipient:
    word = _word(folder, told.recipient, told.plan_digest, now)
    if word and told.at and word.said.confirmed_at < told.at:
        word = None
    return ToldRecipient(
        name=told.recipient,
        how=told.how.value,
        told_at=told.at,
        confirm_by=told.confirm_by,
        confirmed_at=word.said.confirmed_at if word else None,
        confirmed_by=f"{word.said.by}, {word.said.role}" if word else None,
        said=word.said.said if word else None,
        evidence=word.said.evidence_sha256 if word else None,
    )


def _word(folder: RunFolder, recipient: str, digest: str, now: datetime) -> Confirmed | None:
    """The confirmation of a recipient that holds; None where there is none."""
    step, trusted = step_of(recipient), folder.recorded().trusted
    try:
        envelope = confirmation_file(folder.confirmations, step).read_bytes()
        return read_confirmation(envelope, digest, step, load_trusted(Path(trusted)), now) if trusted else None
    except (OSError, ReviewError):
        return None
