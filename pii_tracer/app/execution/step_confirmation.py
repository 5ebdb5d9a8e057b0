"""A person says that a step was done which nobody here can look at."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from pii_tracer.model.datasets import is_said
from pii_tracer.model.errors import UsageError
from pii_tracer.model.timestamps import Moment

if TYPE_CHECKING:
    from pii_tracer.app.execution.run_folder import RunFolder

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Of a recipient, as the estate file has it."""
_TIME = "2026-11-21T10:00:00+05:30"


def confirm_step(
    state: Path,
    step: str,
    *,
    run: str | None = None,
    evidence: Path,
    name: str,
    role: str,
    said: str,
    began: str | None = None,
    key: Path | None = None,
    ssh_key: Path | None = None,
) -> Path:
    """Sign that a step (a backup by its name, a task by its gap) was done, or that a recipient (by its name) confirmed,
    and return the word's path.

    evidence: is only hashed. run: a plan id; without one, the newest run that is not complete. began: when the job
    began, of a task by which an owner computes tables again.

    Raises:
        UsageError: no such run or step, the evidence cannot be read or is empty, or the word cannot be read.
        ReviewError: the key cannot be read, is not trusted, or a value of the persons stands in the word.
    """
    from pii_tracer.app.execution.approvals import signing_key
    from pii_tracer.app.execution.run_folder import choose_run
    from pii_tracer.app.planning.value_masking import refuse_telling_word
    from pii_tracer.app.review.plan_approval import patterns_at_hand
    from pii_tracer.common.atomic_files import write_atomic
    from pii_tracer.model.actions import COMPUTES, CONFIRMED
    from pii_tracer.review import manual_step_confirmation
    from pii_tracer.review.plan_file import load_plan
    from pii_tracer.review.trusted_keys import load_trusted

    for option, text in (("--by", name), ("--role", role), ("--said", said)):
        if not is_said(text):
            raise UsageError("nothing that can be read is written here", where=option, todo="write it in words")
    folder = choose_run(state, run, unfinished=run is None)
    info = folder.info()
    loaded = load_plan(Path(info.plan_file))
    asked = [s for s in loaded.plan.steps if s.action in CONFIRMED]
    names = {s.id: (s.id, s.copy_, s.parameters.get("backup"), *s.parameters.get("gaps", ())) for s in asked}
    mine, told = [s.id for s in asked if step in names[s.id]], _recipient(folder, step, loaded.digest)
    if mine and told:
        raise UsageError(
            f"both a step of this plan and a recipient have the name {step}",
            where=loaded.plan.plan_id,
            todo=f"to confirm the step, use its id, {mine[0]}; to confirm the recipient, rename the recipient in the "
            "estate file and inform it again",
        )
    chosen = mine[0] if mine else told
    if chosen is None:
        raise UsageError(
            f"no step of this plan with the name {step} waits for a confirmation, and no recipient with this name "
            "was informed",
            where=loaded.plan.plan_id,
            todo=f"name one of: {', '.join(s.id for s in asked) or 'there is none'}; or `pii-tracer inform` first",
        )
    computes = any(s.id == chosen and s.parameters.get(COMPUTES) for s in asked)
    if computes is not (began is not None):
        raise UsageError(
            "in this task a job computes tables again, and the confirmation does not say when the job began"
            if computes
            else "`--began` applies only to a task in which a job computes tables again",
            where=chosen,
            todo=f"name the time with its zone, {_TIME}: `--began TIME`" if computes else "leave out `--began`",
        )
    if info.trusted is None:
        raise UsageError(
            "the run has no list of persons whose signature it trusts",
            todo="run `pii-tracer resume` with `--trusted FILE`",
        )
    try:
        shown = evidence.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the evidence file cannot be read: {error.strerror or type(error).__name__}",
            where=str(evidence),
            todo="name a readable file that shows that the step was done",
        ) from None
    if not shown:
        raise UsageError(
            "the evidence file is empty", where=str(evidence), todo="name a file that shows that the step was done"
        )
    at_hand = patterns_at_hand(folder.settings(), loaded.plan, Path(info.plan_file), (name, role, said))
    refuse_telling_word(name, role, said, at_hand)
    # to the microsecond: a word given in the second in which the erasure ended would otherwise seem older than it
    now = datetime.now(timezone.utc)
    word = manual_step_confirmation.Confirmation(
        plan_id=loaded.plan.plan_id,
        step=chosen,
        by=name,
        role=role,
        said=said,
        evidence_size=len(shown),
        evidence_sha256=hashlib.sha256(shown).hexdigest(),
        confirmed_at=now,
        began=_time(began) if began is not None else None,
    )
    envelope = manual_step_confirmation.confirm(loaded.digest, word, signing_key(key, ssh_key))
    # refused here and not in the run, where nobody stands by
    manual_step_confirmation.read_confirmation(envelope, loaded.digest, chosen, load_trusted(Path(info.trusted)), now)
    path = manual_step_confirmation.confirmation_file(folder.confirmations, chosen)
    write_atomic(path, envelope)
    return path


def _time(told: str) -> datetime:
    try:
        return TypeAdapter(Moment).validate_python(told)
    except ValidationError:
        raise UsageError("the time must have a time zone", where="--began", todo=f"write it like {_TIME}") from None


def _recipient(folder: RunFolder, name: str, plan_digest: str) -> str | None:
    """What the confirmation of a recipient names; None where none of this name was told."""
    from pii_tracer.app.recipients.recipient_states import read_told, step_of

    if not _NAME.fullmatch(name):
        return None
    told = read_told(folder, name, plan_digest)
    return step_of(name) if told and told.at else None
