"""Dated answers to the requests of a run or of a plan: signed, for the person, at whatever point the erasure stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.app.execution.run_folder import PROOFS, RunFolder, choose_run, folder_of
from pii_tracer.app.execution.run_verification import now as clock
from pii_tracer.app.execution.verify_step import is_as_noted, read_verdicts
from pii_tracer.app.proof.answers_without_run import answer_of, asked_for
from pii_tracer.app.proof.proof_check_inputs import attester_key, file_bytes
from pii_tracer.app.proof.run_certificate import HeldAttestation, held_attestation, refuse_unfinished
from pii_tracer.app.recipients.recipient_states import PassedOn, told_recipients
from pii_tracer.app.settings import Settings
from pii_tracer.config.estate_file import REQUEST_ID
from pii_tracer.model.canonical_json import parse_time
from pii_tracer.model.errors import PiiTracerError, ProofError, UsageError
from pii_tracer.model.plan import digest_of
from pii_tracer.proof.attestation import LIMITS, on_owners_word
from pii_tracer.proof.request_answers.answer import (
    AnswerItem,
    RequestAnswer,
    Standing,
    open_answer,
    outcome_of,
    seal_answer,
)
from pii_tracer.proof.request_answers.answer_rules import NOT_OVER, Proved, as_of, doubt_of, items_of
from pii_tracer.review.plan_file import LoadedPlan, load_plan
from pii_tracer.run.journal import Kind, Record, read_journal

if TYPE_CHECKING:
    from pii_tracer.model.planned_requests import PlannedRequest
    from pii_tracer.review import dsse

_ELSEWHERE = "places that are no copies of the person's data: a run searches them when all steps are done"


def write_answers(
    settings: Settings,
    run: str | None = None,
    *,
    request: str | None = None,
    key: Path | None = None,
    out: Path | None = None,
    pdf: bool = False,
    now: datetime | None = None,
) -> Iterator[Path]:
    """Write the answer to one request of a run (a plan's id, or a plan file whose run has not begun), or to all.

    Gives each file's path when it is there: the signed JSON, the page, and with `pdf` the page as PDF. out: the folder
    that they go to; `proofs/` of the run's folder without it. key: the attester's public key, with which the run's
    attestation is checked. Without a run, a request of the request store is answered by the last run that it was in, by
    a plan that was not begun, or by the store alone; and any other request by the newest run.

    Raises:
        UsageError: there is no such run, plan or request; or there is no run, and no folder to write to.
        RequestError: the request store cannot be used.
        ProofError: the attestation or its evidence does not hold, or nobody can sign.
        JournalError: the journal was changed, or is not whole.
        Refused: the run's folder was moved, copied or put back from a copy.
    """
    from pii_tracer.app.pdf import print_pdf
    from pii_tracer.common.atomic_files import write_atomic
    from pii_tracer.proof.attester_keys import attester
    from reports.run.answer import render_answer

    at = now or clock()
    folder, told = _answers(settings, run, request, key, at)
    target = out or (folder.path / PROOFS if folder else None)
    if target is None:
        raise UsageError(
            "a request without a run has no folder for the answer", where="--out", todo="name a folder with `--out`"
        )
    estate = settings.estate()
    signer = attester(estate.attestation_key, settings.base, settings.state, local=estate.environment == "local")
    for answer in told:
        signed = _new_file(target, f"answer-{answer.request}-{at:%Y%m%dT%H%M%SZ}")
        write_atomic(signed, seal_answer(answer, signer))
        yield signed
        page, name = render_answer(answer, signed.name), signed.name.removesuffix(".json")
        write_atomic(target / f"{name}.html", page.encode())
        yield target / f"{name}.html"
        if pdf:
            print_pdf(page, target / f"{name}.pdf")
            yield target / f"{name}.pdf"


def _answers(
    settings: Settings, run: str | None, request: str | None, key: Path | None, at: datetime
) -> tuple[RunFolder | None, Iterator[RequestAnswer]]:
    """The folder of the run that answers, if there is one, and the answers as they are asked for."""
    asked = asked_for(settings, request) if run is None and request is not None else None
    if asked:
        if asked.run is None:
            return None, iter((answer_of(settings, asked.request, at),))
        run, request = asked.run, asked.request.id
    stands = _stands(settings, run, key)
    chosen = [one for one in stands.loaded.plan.requests if request in (None, one.id)]
    if not chosen:
        raise UsageError(f"the plan has no request `{request}`", where=stands.loaded.plan.plan_id)
    if any(re.fullmatch(REQUEST_ID, one.id) is None for one in chosen):
        raise UsageError(
            "a request of the plan has an id that is not valid, so no file can be named after it",
            where=stands.loaded.plan.plan_id,
            todo="plan again: this file was changed, or pii-tracer did not make it",
        )
    recipients = settings.estate().recipients
    passed_on = told_recipients(stands.folder, stands.loaded.plan, stands.loaded.digest, recipients, at)
    return stands.folder, (stands.answer(one, at, passed_on) for one in chosen)


def _new_file(folder: Path, name: str) -> Path:
    """A JSON file of this name for one writer alone: an answer of the same second has a number behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        break
    return path


def read_answer(file: Path, keys: tuple[Path, ...]) -> RequestAnswer:
    """An answer whose signature holds.

    Raises:
        UsageError: a file is missing.
        ProofError, ReviewError: it is none, was changed, or no key that was given signed it.
    """
    public: list[dsse.PublicKey] = [attester_key(path) for path in keys]
    return open_answer(file_bytes(file), public)


def _stands(settings: Settings, run: str | None, key: Path | None) -> _Stands:
    if run is not None and run.endswith(".plan.json"):
        loaded = load_plan(Path(run))
        begun = folder_of(settings.state, loaded.plan.plan_id)
        if begun.path.exists():
            raise UsageError(
                "this plan has a run, and the plan file does not show the data that the run erased",
                where=run,
                todo=f"name the run: `pii-tracer attest answer {loaded.plan.plan_id}`",
            )
        return _Stands(None, loaded, (), None)
    folder = choose_run(settings.state, run, unfinished=False)
    folder.info()  # a copy knows nothing of what was found since
    loaded = folder.approved()
    records, torn = read_journal(folder.journal)
    if records and {r.facts.get("plan_digest") for r in records if r.kind is Kind.RUN_STARTED} != {loaded.digest}:
        raise ProofError(
            "the journal in the run folder belongs to another plan",
            where=str(folder.journal),
            todo="restore the file that belongs to this run",
        )
    held = held_attestation(folder, key, None) if folder.attestation.exists() else None
    if held and held.statement["predicate"]["plan"]["digest"] != loaded.digest:
        raise ProofError(
            "the attestation in the run folder belongs to another plan",
            where=str(folder.attestation),
            todo="restore the file that belongs to this run",
        )
    return _Stands(folder, loaded, records, held, torn=bool(torn))


@dataclass(frozen=True)
class _Stands:
    """How a run stands. What is the same for all of its persons is found once."""

    folder: RunFolder | None
    loaded: LoadedPlan
    records: tuple[Record, ...]
    held: HeldAttestation | None
    torn: bool = False

    def answer(self, request: PlannedRequest, at: datetime, passed_on: tuple[PassedOn, ...]) -> RequestAnswer:
        """The answer to one request of the plan."""
        held = self.held if self._is_attested(request) else None
        proved = self._attested if held else self._unattested
        doubt = self._doubt_attested if held else self._doubt_unattested
        items = self._items(proved, request.subject, doubt, attested=held is not None)
        items = tuple(as_of(item, at, approved=self.folder is not None) for item in items)
        outcome = outcome_of(items, attested=held is not None and doubt is None)
        claims = held.statement["predicate"] if held else None
        return RequestAnswer(
            request=request.id,
            subject=request.subject,
            law=request.law,
            received=request.received,
            deadline=request.deadline,
            plan_id=self.loaded.plan.plan_id,
            plan_digest=self.loaded.digest,
            at=at,
            outcome=outcome,
            doubt=doubt if any(item.standing is Standing.UNCONFIRMED for item in items) else None,
            items=items,
            recipients=tuple(told for told, of in passed_on if of is None or request.id in of),
            attestation=digest_of(held.envelope) if held else None,
            journal=self.records[-1].hash if self.records else None,
            searched=parse_time(claims["scope"]["at"]) if claims else None,
            not_proved=tuple(claims["not_proved"])
            if claims
            else (*LIMITS, *on_owners_word(self.loaded.plan), _ELSEWHERE),
        )

    def _items(self, proved: Proved, subject: str, doubt: str | None, *, attested: bool) -> tuple[AnswerItem, ...]:
        if any(subject in persons for persons in proved.left_of.values()):
            return tuple(items_of(proved, subject, doubt))
        return self._usual_attested if attested else self._usual_unattested

    @cached_property
    def _usual_attested(self) -> tuple[AnswerItem, ...]:
        return tuple(items_of(self._attested, "", self._doubt_attested))

    @cached_property
    def _usual_unattested(self) -> tuple[AnswerItem, ...]:
        return tuple(items_of(self._unattested, "", self._doubt_unattested))

    def _is_attested(self, request: PlannedRequest) -> bool:
        return self._others_over and (request.id, request.subject, request.law) in self._answered

    @cached_property
    def _answered(self) -> frozenset[tuple[str, str, str]]:
        """Whom the attestation is about, without those whom the last look at the run left open."""
        still = frozenset(self._result.get("open_requests") or ())
        return frozenset(one for one in self.held.about.requests if one[0] not in still) if self.held else frozenset()

    @cached_property
    def _others_over(self) -> bool:
        """Whether a certificate is not refused for the requests that the run leaves not open."""
        if self.folder is None or self.torn or not self._answered:
            return False
        if "attestation" in self._result and self._result["attestation"] is None:
            return False
        try:
            refuse_unfinished(self.folder, self._result, min(self._answered)[0])
        except PiiTracerError:
            return False
        return True

    @cached_property
    def _result(self) -> dict[str, Any]:
        return (self.folder.last_result() if self.folder else None) or {}

    @cached_property
    def _attested(self) -> Proved:
        claims = self.held.statement["predicate"] if self.held else None
        return Proved(self.loaded.plan, self.records, claims=claims)

    @cached_property
    def _unattested(self) -> Proved:
        plan = self.loaded.plan
        if self.folder is None:
            return Proved(plan)
        verdict = read_verdicts(self.folder.verdicts, plan.copies)
        return Proved(
            plan,
            self.records,
            clean=frozenset((*verdict.erased, *verdict.erased_of_others)),
            left_of={copy.copy_id: frozenset(copy.left_of) for copy in verdict.copies if copy.left_of},
            residue=bool(verdict.residue),
            unread=bool(verdict.unverified),
            contradicted=not is_as_noted(self.folder.verdicts, plan, self.records),
            result=self._result,
        )

    @cached_property
    def _doubt_attested(self) -> str | None:
        return doubt_of(self._attested)

    @cached_property
    def _doubt_unattested(self) -> str | None:
        return NOT_OVER if self.torn else doubt_of(self._unattested)
