"""Passing an erasure on to the recipients of the data (GDPR Art. 19; California Civil Code 1798.105(c)): each is told
once, however often this is called and wherever it was killed."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path

from pii_tracer.app.execution.run_folder import choose_run
from pii_tracer.app.execution.run_verification import now as clock
from pii_tracer.app.intake.planned_requests import gone_from
from pii_tracer.app.planning.plan_files import manifest_path
from pii_tracer.app.recipients.erased_data import Withheld, data_of, erased_by, why_nothing
from pii_tracer.app.recipients.notices import Rows, notice_of, rows_of
from pii_tracer.app.recipients.recipient_states import Told, read_told, telling, write_told
from pii_tracer.app.settings import Settings
from pii_tracer.common.atomic_files import sync_folder, write_atomic
from pii_tracer.common.http import NoAnswer, ask, bearer, patiently
from pii_tracer.config.passing_on.recipients import How, Recipient
from pii_tracer.intake.requests import ENDED
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import UsageError
from pii_tracer.review.sealed_person_values import KeyRing

_BUSY = frozenset({429, 500, 502, 503, 504})
_SECONDS = 30.0


@dataclass(frozen=True)
class Informed:
    """What became of one recipient. told: None where it was asked to erase nothing; `withheld` says why. now: whether
    it was told by this call. ended: requests of the plan of which it was not told by this call, since somebody withdrew
    or refused them."""

    recipient: str
    told: Told | None
    now: bool
    withheld: Withheld | None = None
    ended: tuple[str, ...] = ()


def inform(
    settings: Settings,
    run: str | None = None,
    *,
    now: Callable[[], datetime] = clock,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Informed]:
    """Tell each recipient of the estate file whom a run erases, and give each when it was told or could not be.

    A recipient that was told is passed over. Of one that a kill left half told the same notice is told again: a file
    stands there once, and a webhook knows the notice by its id. Where the notice would be another one, it gets another
    id.

    Raises:
        UsageError: there is no such run or recipient, the run has erased nothing yet, or it stopped.
        PlanError: the sealed manifest does not open.
        RunError: what is kept of a recipient cannot be read.
        JournalError: the run's journal was changed.
    """
    folder = choose_run(settings.state, run, unfinished=False)
    plan_file = Path(folder.info().plan_file)
    loaded, estate = folder.approved(), settings.estate()
    plan = loaded.plan
    if not estate.recipients:
        raise UsageError("the estate file names no recipients", where="recipients", todo="see docs/recipients.md")
    gone = gone_from(settings, plan)
    erased = erased_by(folder, loaded, goes_on=not gone)
    ended = tuple(name for name, state in gone.items() if state in ENDED)
    mine = {request.id for request in plan.requests}.difference(ended)
    keys: Mapping[str, KeySet] = {}
    with telling(folder):
        for one in estate.recipients:
            told, data = read_told(folder, one.name, loaded.digest), data_of(one, plan, erased)
            if told and told.at:
                yield Informed(one.name, told, False)
                continue
            if data is None:
                yield Informed(one.name, None, False, why_nothing(one, plan, erased))
                continue
            if mine and not keys:
                ring = KeyRing.open(manifest_path(plan_file), plan.subjects_digest, settings.key())
                keys = {key_set.name: key_set for key_set in ring.key_sets}
            rows, unnamed = rows_of(one, plan, mine, keys)
            told, notice = _next(
                one,
                told,
                loaded.digest,
                rows,
                unnamed,
                now(),
                partial(notice_of, one, estate=estate.estate, data=data, rows=rows),
            )
            write_told(folder, told)
            try:
                if one.folder:
                    _sweep(settings.base / one.folder, plan.plan_id)
                if rows:  # nobody is told of nobody
                    _tell(one, told, notice, settings.base, plan.plan_id, pause)
            except (NoAnswer, OSError) as error:
                why = str(error) if isinstance(error, NoAnswer) else f"cannot be written: {type(error).__name__}"
                told = told.model_copy(update={"problem": why})
            else:
                told = told.done(now(), one.confirm_days)
            write_told(folder, told)
            yield Informed(one.name, told, told.at is not None, ended=ended)


def _next(
    recipient: Recipient,
    before: Told | None,
    plan_digest: str,
    rows: Rows,
    unnamed: tuple[str, ...],
    at: datetime,
    notice_for: Callable[[Told], bytes],
) -> tuple[Told, bytes]:
    """What is told next: the notice of before where it would be the same again, or else one with an id of its own."""
    if before:
        again = before.model_copy(update={"how": recipient.how, "unnamed": unnamed, "problem": None})
        notice = notice_for(again)
        if sha256(notice).hexdigest() == before.sha256:
            return again, notice
    told = Told(
        recipient=recipient.name,
        how=recipient.how,
        plan_digest=plan_digest,
        notice=secrets.token_hex(16),
        sha256="",
        requests=tuple(row["request"] for row in rows),
        unnamed=unnamed,
        begun=at,
    )
    notice = notice_for(told)
    return told.model_copy(update={"sha256": sha256(notice).hexdigest()}), notice


def _sweep(folder: Path, plan_id: str) -> None:
    """Remove what a killed call left there of this run's notices. Nobody else writes them: the caller has the lock."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if (
                name.startswith(f".erasure-{plan_id}-")
                and name.endswith(".tmp")
                and entry.is_file(follow_symlinks=False)
            ):
                Path(entry.path).unlink(missing_ok=True)


def _tell(
    recipient: Recipient,
    told: Told,
    notice: bytes,
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
    token = os.environ.get(str(recipient.token))
    if not token:
        raise NoAnswer(f"the variable {recipient.token} with its token is not set", unsent=True)
    headers = {**bearer(token), "Content-Type": "application/json", "Idempotency-Key": told.notice}
    url = str(recipient.url)
    patiently(lambda: ask(url, seconds=_SECONDS, limit=None, body=notice, headers=headers), _BUSY, pause)
