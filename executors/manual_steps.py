"""The executor of steps that only a person can do: waits until somebody trusted confirmed it, and claims no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from pii_tracer.model.actions import COMPUTES
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.errors import ReviewError, RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.review.manual_step_confirmation import (
    Confirmation,
    Confirmed,
    confirmation_file,
    read_confirmation,
)
from pii_tracer.review.trusted_keys import Approver
from pii_tracer.run.executor_protocol import Check, Outcome, Progress


class PeopleExecutor:
    """Executor `people`.

    folder: where confirmations of this run lie. verified_at: when the steps before a step were over. refuse: raises
    `ReviewError` where a word holds what must not be written down.
    """

    name = "people"

    def __init__(
        self,
        folder: Path,
        plan_digest: str,
        trusted: Sequence[Approver],
        now: Callable[[], datetime],
        verified_at: Callable[[str], datetime | None],
        refuse: Callable[[Confirmation], None] = lambda said: None,
    ) -> None:
        self._folder, self._digest, self._trusted = folder, plan_digest, trusted
        self._now, self._verified_at, self._refuse = now, verified_at, refuse

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` where nobody is trusted: no confirmation could count."""
        if not self._trusted:
            raise RunError(
                "a person must confirm this step, but the run has no list of trusted persons",
                where=step.id,
                todo="run `pii-tracer apply` with `--trusted FILE`",
            )

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Take the confirmation, or wait for it until it is due; a resumed run looks again at once."""
        found = self._found(step)
        if found is None or self._too_early(step, found):
            owner, due = step.parameters["owner"], self._due(step)
            facts = {"waits_for": owner, "due": due.isoformat(), "overdue": due <= self._now()}
            if found is not None:
                facts["confirmed_too_early"] = found.said.confirmed_at.isoformat()
            return Outcome(
                facts,
                waiting_until=max(due, self._now() + timedelta(days=1)),
                waits_for=f"{owner}: {step.parameters['act']}, {self._how(step)}",
            )
        said = found.said
        began = {"began": iso(said.began)} if said.began else {}
        return Outcome(
            {
                "confirmed_by": said.by,
                "role": said.role,
                "said": said.said,
                "confirmed_at": said.confirmed_at.isoformat(),
                "evidence_sha256": said.evidence_sha256,
                "confirmation": found.digest,
                **began,
            }
        )

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Whether the confirmation is there and holds. The backup itself is out of reach."""
        found = self._found(step)
        if found is None:
            return Check(False, ("nobody has confirmed the step",))
        if self._too_early(step, found):
            what = "its job began" if step.parameters.get(COMPUTES) else "it was confirmed"
            return Check(False, (f"{what} before the previous steps ended: confirm again",))
        return Check(True, facts={"confirmed_by": found.said.by, "looked_at": False})

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """Looking for the confirmation again harms nobody, and its facts belong into the journal."""
        return Progress.NOT_STARTED

    def _how(self, step: Step) -> str:
        over = self._over(step)
        if not step.parameters.get(COMPUTES) or over is None:
            return f"then `pii-tracer confirm {step.id}`"
        return f"in a run that begins after {iso(over)}, then run `pii-tracer confirm {step.id} --began TIME`"

    def _over(self, step: Step) -> datetime | None:
        """When the last of the steps before it was over."""
        return max((at for at in map(self._verified_at, step.depends_on) if at is not None), default=None)

    def _too_early(self, step: Step, found: Confirmed) -> bool:
        """Whether a backup made after the word was given may still hold the person, or a job that began before its
        sources were erased may have read them."""
        over, said = self._over(step), found.said
        if step.parameters.get(COMPUTES) and (said.began is None or over is None or said.began < over):
            return True
        return over is not None and said.confirmed_at < over

    def _due(self, step: Step) -> datetime:
        return (self._over(step) or step.earliest_start) + timedelta(days=int(step.parameters["due_days"]))

    def _found(self, step: Step) -> Confirmed | None:
        try:
            envelope = confirmation_file(self._folder, step.id).read_bytes()
        except FileNotFoundError:
            return None
        try:
            found = read_confirmation(envelope, self._digest, step.id, self._trusted, self._now())
            self._refuse(found.said)
        except ReviewError as error:
            raise RunError(error.what, where=step.id, todo=error.todo) from None
        return found
