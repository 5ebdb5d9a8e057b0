"""What `verify` found of a run's persons where the run had found nothing: it counts for all that is said later.

The file beside the journal is the run's only way to hear of it: the journal is written by the runner alone, which takes
it over when it goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.open_requests import LEFT_OF
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.run_state import State
from pii_tracer.run.step_progress import track
from pii_tracer.verify.persons_left import PersonsLeft
from pii_tracer.verify.verdicts import Residue, RunVerdict

FILE = "found.json"


class FoundSince(Frozen):
    """residue: what the last look found, without persons. open_requests: of those whose it may be, unless these are
    all: then the run itself is open. of_copies: by copy, keyed references of persons of whom any look found something
    since the journal heard of it.
    """

    at: datetime
    plan_digest: str
    residue: tuple[dict[str, str], ...] = ()
    open_requests: tuple[str, ...] = ()
    of_copies: dict[str, tuple[str, ...]] = {}

    def in_result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """The final object of the run, with what was found since."""
        if not self.residue:
            return dict(result)
        before = list(result.get("residue") or ())
        more = [one for one in self.residue if one not in before]
        still = sorted({*(result.get("open_requests") or ()), *self.open_requests})
        state = State.PARTIAL.value if result.get("state") == State.COMPLETE else result.get("state")
        return {**result, "state": state, "residue": [*before, *more], "open_requests": still}

    def notes(self, plan: ErasurePlan) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the journal is told of it: as the verification of the copy would note it, by its step."""
        for step in plan.steps:
            if step.action is Action.VERIFY_COPY and step.copy_ in self.of_copies:
                yield step.id, {LEFT_OF: list(self.of_copies[step.copy_]), "found_by": "verify", "at": iso(self.at)}


def found_by(
    loaded: LoadedPlan,
    records: Sequence[Record],
    verdict: RunVerdict,
    left: PersonsLeft,
    before: FoundSince | None,
    at: datetime,
) -> FoundSince | None:
    """What a look found where the run of a plan had found nothing; None where neither this one nor an earlier one did.

    A copy that the run has not verified yet may hold the persons. So may what is no copy, until the run is complete.
    """
    plan, everybody = loaded.plan, {request.subject for request in loaded.plan.requests}
    tracks, copies = track(records), {copy.id for copy in plan.copies}
    looks = {s.copy_ for s in plan.steps if s.action is Action.VERIFY_COPY and s.id in tracks and tracks[s.id].verified}
    done = bool(records) and records[-1].kind is Kind.RUN_FINISHED and records[-1].facts.get("state") == State.COMPLETE
    residue = [r for r in verdict.residue if (r.copy_id in looks if r.copy_id in copies else done)]
    whose = {place: _persons_at(place, left, everybody) for place in {r.copy_id for r in residue}}
    of_copies = {name: tuple(sorted(persons)) for name, persons in whose.items() if name in copies}
    for name, known in (before.of_copies if before else {}).items():
        of_copies[name] = tuple(sorted({*known, *of_copies.get(name, ())}))
    if not residue and not of_copies:
        return None
    persons = frozenset[str]().union(*whose.values())
    return FoundSince(
        at=at,
        plan_digest=loaded.digest,
        residue=tuple(_told(residue)),
        open_requests=tuple(sorted(r.id for r in plan.requests if r.subject in persons)) if persons < everybody else (),
        of_copies=dict(sorted(of_copies.items())),
    )


def _persons_at(place: str, left: PersonsLeft, everybody: Collection[str]) -> frozenset[str]:
    named = frozenset(person for person, places in left.places.items() if place in places)
    return named or frozenset(everybody)


def _told(residue: Iterable[Residue]) -> Iterator[dict[str, str]]:
    yield from (dict(pairs) for pairs in sorted({tuple(sorted(one.as_json().items())) for one in residue}))


def read_found(folder: Path, plan_digest: str) -> FoundSince | None:
    """What was found since the run in this folder; None where nothing was, or only of a run of another plan."""
    try:
        found = FoundSince.model_validate_json((folder / FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    return found if found.plan_digest == plan_digest else None


def keep_found(folder: Path, found: FoundSince | None) -> None:
    """Write it down. Raises `OSError` where that cannot be done."""
    if found is None:
        (folder / FILE).unlink(missing_ok=True)
    else:
        write_atomic(folder / FILE, (found.model_dump_json(indent=2) + "\n").encode())
