"""Passing an erasure on to the recipients of the data (GDPR Art. 19; California Civil Code 1798.105(c)): each is told
once, however often this is called and wherever it was killed."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pii_tracer.app.execution.run_folder import choose_run
from pii_tracer.app.execution.run_journal_facts import now as clock
from pii_tracer.app.intake.planned_requests import refuse_withdrawn
from pii_tracer.app.planning.plan_files import manifest_path
from pii_tracer.app.recipients.notices import notice_of, rows_of
from pii_tracer.app.recipients.told import Told, gets, read_told, telling, write_told
from pii_tracer.app.settings import Settings
from pii_tracer.common.atomic_files import sync_folder, write_atomic
from pii_tracer.common.http import NoAnswer, ask, bearer, patiently
from pii_tracer.config.passing_on.recipients import How, Recipient
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import UsageError
from pii_tracer.review.sealed_person_values import KeyRing

_BUSY = frozenset({429, 500, 502, 503, 504})
_SECONDS = 30.0


@dataclass(frozen=True)
class Informed:
    """What became of one recipient. told: None where the plan has nothing that it gets. now: whether it was told by
    this call."""

    recipient: str
    told: Told | None
    now: bool


def inform(
    settings: Settings,
    run: str | None = None,
    *,
    now: Callable[[], datetime] = clock,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Informed]:
    """Tell each recipient of the estate file whom a run erases, and give each when it was told or could not be.

    A recipient that was told is passed over. Of one that a kill left half told the same notice is told again: a file
    stands there once, and a webhook knows the notice by its id.

    Raises:
        UsageError: there is no such run or recipient, a token is missing, or the run was closed.
        PlanError: the sealed manifest does not open, or lacks what a recipient needs.
        Refused: a request of the plan was withdrawn.
        RunError: what is kept of a recipient cannot be read.
    """
    folder = choose_run(settings.state, run, unfinished=False)
    folder.info()
    loaded, estate = folder.approved(), settings.estate()
    plan = loaded.plan
    if not estate.recipients:
        raise UsageError("the estate file names no recipients", where="recipients", todo="see docs/recipients.md")
    refuse_withdrawn(settings, plan)
    keys: Mapping[str, KeySet] | None = None
    with telling(folder):
        for one in estate.recipients:
            told = read_told(folder, one.name, loaded.digest)
            if not gets(one, plan) or (told and told.at):
                yield Informed(one.name, told, False)
                continue
            if keys is None:
                manifest = manifest_path(Path(folder.info().plan_file))
                keys = {k.name: k for k in KeyRing.open(manifest, plan.subjects_digest, settings.key()).key_sets}
            token, rows = _token(one), rows_of(one, plan, keys)
            if told is None:
                told = Told(
                    recipient=one.name,
                    how=one.how,
                    plan_digest=loaded.digest,
                    notice=secrets.token_hex(16),
                    requests=tuple(row["request"] for row in rows),
                    begun=now(),
                )
            told = told.model_copy(update={"how": one.how, "problem": None})
            notice = notice_of(one, told, estate.estate, rows)
            write_told(folder, told)
            try:
                if rows:  # nobody is told of nobody
                    _tell(one, told, notice, token, settings.base, plan.plan_id, pause)
            except (NoAnswer, OSError) as error:
                why = str(error) if isinstance(error, NoAnswer) else f"cannot be written: {type(error).__name__}"
                told = told.model_copy(update={"problem": why})
            else:
                told = told.done(now(), one.confirm_days)
            write_told(folder, told)
            yield Informed(one.name, told, told.at is not None)


def _token(recipient: Recipient) -> str | None:
    if recipient.token is None:
        return None
    token = os.environ.get(recipient.token)
    if not token:
        raise UsageError(
            f"the token of the recipient {recipient.name} is not set", where=recipient.token, todo="set the variable"
        )
    return token


def _tell(
    recipient: Recipient,
    told: Told,
    notice: bytes,
    token: str | None,
    base: Path,
    plan_id: str,
    pause: Callable[[float], None],
) -> None:
    """Raises `NoAnswer` or `OSError` where it was not told."""
    if recipient.how is not How.WEBHOOK:
        place = base / str(recipient.folder)
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        ending = "txt" if recipient.how is How.EMAIL else "json"
        write_atomic(place / f"erasure-{plan_id}-{told.notice}.{ending}", notice, mode=0o600)
        sync_folder(place)
        return
    headers = {**bearer(token), "Content-Type": "application/json", "Idempotency-Key": told.notice}
    url = str(recipient.url)
    patiently(lambda: ask(url, seconds=_SECONDS, limit=None, body=notice, headers=headers), _BUSY, pause)
