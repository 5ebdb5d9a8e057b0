"""Verification as a step of a run: its verdicts, and where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pii_tracer.app.persons_apart.residue_of_persons import ResidueOfPersons
from pii_tracer.app.verification import Verification
from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.common.plurals import counted
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.proof.attestation import AGAIN, READING
from pii_tracer.proof.open_requests import LEFT_OF, left_of_step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress
from pii_tracer.run.journal import Kind, Record
from pii_tracer.verify.verdicts import STILL_THERE, CopyVerdict, RunVerdict

Note = Callable[[str, Mapping[str, Any]], None]
"""Puts facts of a step into the journal before it answers."""
Noted = Callable[[str], frozenset[str]]
"""Whom the last such note of a step calls left, as the journal has it."""


class VerifyExecutor:
    """VERIFY_COPY as a step: the verdict goes into the run's folder, its numbers into the journal.

    What is left of some of the persons alone keeps nobody else from being erased: the step holds for the others, and a
    note in the journal says of whom it does not (keyed references).
    """

    name = "verify"

    def __init__(
        self,
        verification: Verification,
        folder: Path,
        note: Note = lambda step, facts: None,
        noted: Noted = lambda step: frozenset(),
    ) -> None:
        self._verification, self._folder, self._note, self._noted = verification, folder, note, noted
        self._whose = ResidueOfPersons(verification)

    def check(self, step: Step, copy: Copy | None) -> None:
        """Nothing can stand against looking."""

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Look, and write the verdict down."""
        if copy is None:
            raise ScanError("a verification without a copy", where=step.id, todo="make the plan again")
        if step.action is Action.NOTE_FILES:
            if held := [look for look in step.depends_on if self._noted(look)]:
                still = counted(len(held), "source still holds", "sources still hold")
                raise ScanError(
                    f"its files are not noted: {still} a person",
                    where=copy.location,
                    todo=f"erase what {held[0]} found there, then `pii-tracer resume` until this is noted",
                )
            return Outcome(self._verification.note_files(copy))
        verdict = self._whose.told_apart(copy, self._verification.look(copy))
        if verdict.residue or {*verdict.left_of} != self._noted(step.id):  # not the verdict file: a run may end between
            self._note(step.id, {LEFT_OF: list(verdict.left_of), "residue": len(verdict.residue)})
        write_atomic(verdict_file(self._folder, copy.id), verdict.model_dump_json(indent=1).encode())
        return Outcome(numbers_of(verdict))

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """The verdict must say: looked at, nothing found but of known persons, nothing unread, nobody else lost."""
        if copy is not None and step.action is Action.NOTE_FILES:
            return Check(self._verification.noted(copy) is not None, ("the journal has no note of its files",))
        verdict = read_verdict(self._folder, copy.id) if copy else None
        if verdict is None:
            return Check(False, ("there is no verdict",))
        held = [one for one in verdict.residue if one.where != STILL_THERE]
        old = len(verdict.residue) - len(held)
        findings = [f"{counted(len(held), 'place still holds', 'places still hold')} the person"] if held else []
        if old:
            findings.append(f"{counted(old, 'file is', 'files are')} there since before its sources were erased")
        if verdict.unverified:
            findings.append(
                f"{counted(len(verdict.unverified), 'place')} could not be verified: {verdict.unverified[0]}"
            )
        if verdict.bystanders and verdict.bystanders.finding:
            findings.append(verdict.bystanders.finding)
        return Check(verdict.erased or verdict.erased_of_others, tuple(findings), numbers_of(verdict))

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """Looking again harms nobody."""
        return Progress.NOT_STARTED

    def undone(self, step: Step, copy: Copy) -> str | None:
        """Why a verdict of this run holds no longer, or None. A copy that changed since is looked at again."""
        verdict = read_verdict(self._folder, copy.id)
        noted = self._noted(step.id)  # others than the verdict's if `verify` found them since
        if verdict is not None and {*verdict.left_of} == noted and not self._verification.changed(copy, verdict):
            return None
        self.run(step, copy)
        check = self.verify(step, copy)
        return None if check.ok else "changed since it was verified: " + "; ".join(check.findings)


def numbers_of(verdict: CopyVerdict) -> dict[str, Any]:
    """What the journal keeps of a verdict."""
    rows = verdict.rows.rows_left if verdict.rows else None
    lapsed = verdict.bystanders.lapsed if verdict.bystanders else 0
    again = verdict.bytes.again if verdict.bytes else None
    return {
        "files_decoded": verdict.files_decoded,
        "residue": len(verdict.residue),
        "unverified": len(verdict.unverified),
        "rows_left": rows,
        "bystander_rows_lost": verdict.bystanders.lost if verdict.bystanders else None,
        **({"left_by_retention": lapsed} if lapsed else {}),
        **({"persons_left": len(verdict.left_of)} if verdict.left_of else {}),
        **({AGAIN: again.model_dump()} if again else {}),
        **({READING: verdict.reading.model_dump(mode="json")} if verdict.reading else {}),
    }


def verdict_file(folder: Path, copy_id: str) -> Path:
    """Where the verdict of a copy is kept; ids hold only harmless characters (planners.step_drafts.slug)."""
    return folder / f"{copy_id}.json"


def read_verdict(folder: Path, copy_id: str) -> CopyVerdict | None:
    """The verdict of a copy, or None where there is none."""
    try:
        return CopyVerdict.model_validate_json(verdict_file(folder, copy_id).read_bytes())
    except OSError:
        return None


def read_verdicts(folder: Path, copies: Iterable[Copy]) -> RunVerdict:
    """All verdicts there are."""
    found = (read_verdict(folder, copy.id) for copy in copies)
    return RunVerdict(copies=tuple(v for v in found if v is not None))


def is_as_noted(folder: Path, plan: ErasurePlan, records: Sequence[Record]) -> bool:
    """Whether the verdicts say what the journal does, which is a chain: anybody can edit a verdict's file."""
    last = {str(r.facts.get("step")): r for r in records if r.kind in (Kind.STEP_VERIFIED, Kind.STEP_FAILED)}
    for step in plan.steps:
        if step.action is not Action.VERIFY_COPY or step.copy_ is None:
            continue
        verdict, record = read_verdict(folder, step.copy_), last.get(step.id)
        if left_of_step(records, step.id) != frozenset(verdict.left_of if verdict else ()):
            return False
        noted = record.facts.get("facts") if record and record.kind is Kind.STEP_VERIFIED else None
        said = numbers_of(verdict) if verdict else {}
        if verdict and noted is not None and any(said.get(name, 0) != noted.get(name, 0) for name in _NOTED):
            return False
    return True


_NOTED = ("residue", "unverified", "rows_left", "bystander_rows_lost", "persons_left", AGAIN)
