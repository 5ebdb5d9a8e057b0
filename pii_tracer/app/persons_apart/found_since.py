"""What `verify` found of a run's persons where the run had found nothing: it counts for all that is said later.

The file beside the journal is the run's only way to hear of it: the journal is written by the runner alone, which takes
it over when it goes on. The file is there from the run's begin on, as the journal's first record says, and is sealed
with the estate's key: one that was removed or edited is noticed. So is an old one that was put back: each has a number,
and the number of the newest is kept outside of the run's folder.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from pii_tracer.app.execution.run_folder import over
from pii_tracer.common.atomic_files import system_reason, write_atomic
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import Refused
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.open_requests import LEFT_OF
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.run_state import State
from pii_tracer.run.step_progress import BY_VERIFY, track
from pii_tracer.verify.persons_left import PersonsLeft
from pii_tracer.verify.verdicts import Residue, RunVerdict

FILE = "found.json"
_LOCK = ".found.lock"
NEWEST = "found"
"""The folder of the state folder that has the number of each run's newest file."""
KEPT = {"found_since": "numbered"}
"""What the record of a run's begin says of the file. Runs that earlier versions began have none, or one without a
seal."""
ANY_PLACE = "(any place)"
"""Stands for every place, copy or not, where the file is gone: a look that leaves nothing unread ends it."""
_NOT_KNOWN = "not known"
Seal = Callable[[bytes], str]
"""Makes a mark of a text with the estate's key."""
_Form = TypeVar("_Form", bound=Frozen)

Heard = Mapping[str | None, int]
"""By copy, None for what is no copy: how many records the run's journal had when the look there began."""


class FoundThere(Frozen):
    """What is known to be in one place. at: when the look that found it ended. residue: without persons. persons: keyed
    references of those whose it may be."""

    at: datetime
    residue: tuple[dict[str, str], ...]
    persons: tuple[str, ...]

    def and_(self, other: FoundThere) -> FoundThere:
        """Both together: looks that went on at the same time."""
        more = (one for one in other.residue if one not in self.residue)
        persons = tuple(sorted({*self.persons, *other.persons}))
        return FoundThere(at=max(self.at, other.at), residue=(*self.residue, *more), persons=persons)


class FoundSince(Frozen):
    """places: by place as verdicts name it, what was found and no later look has seen gone. open_requests: of those
    whose it may be, unless these are all: then the run itself is open. of_copies: by copy, keyed references of persons
    of whom any look found something since the journal heard of it. number: how often the file was written. seal: of
    all else.
    """

    at: datetime
    plan_digest: str
    places: dict[str, FoundThere] = {}
    open_requests: tuple[str, ...] = ()
    of_copies: dict[str, tuple[str, ...]] = {}
    number: int = 0
    seal: str = ""

    def sealed(self, seal: Seal) -> FoundSince:
        """With its seal."""
        bare = self.model_copy(update={"seal": ""})
        return bare.model_copy(update={"seal": seal(bare.model_dump_json().encode())})

    @property
    def residue(self) -> tuple[dict[str, str], ...]:
        """Of all places."""
        return tuple(one for there in self.places.values() for one in there.residue)

    def in_result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """The final object of the run, with what was found since. It names open requests only where the run has done
        all else: otherwise nobody can say of the others that they are erased."""
        if not self.places:
            return dict(result)
        before = list(result.get("residue") or ())
        known = [{name: told for name, told in one.items() if name != "foreseen"} for one in before]
        more = [one for one in self.residue if one not in known]
        named = {*(result.get("open_requests") or ()), *self.open_requests}
        still = sorted(named) if self.open_requests and over(result) else []
        state = State.PARTIAL.value if result.get("state") == State.COMPLETE else result.get("state")
        return {**result, "state": state, "residue": [*before, *more], "open_requests": still}

    def notes(self, plan: ErasurePlan) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the journal is told of it: as the verification of the copy would note it, by its step."""
        for step in plan.steps:
            if step.action is Action.VERIFY_COPY and step.copy_ in self.of_copies:
                yield step.id, {LEFT_OF: list(self.of_copies[step.copy_]), **BY_VERIFY, "at": iso(self.at)}


def found_by(
    loaded: LoadedPlan,
    records: Sequence[Record],
    verdict: RunVerdict,
    left: PersonsLeft,
    before: FoundSince | None,
    began: datetime,
    at: datetime,
    heard: Heard,
) -> FoundSince | None:
    """What is known after a look where the run of a plan had found nothing; None where no look found anything.

    A copy that the run had not verified before the look at it began may hold the persons. So may what is no copy, until
    the run is complete. What was found before stays, unless it was there before this look began and the look read its
    place as a whole and found nothing. began, at: when the look began and ended.
    """
    if not records:
        return before  # nobody can say how far the run is
    plan, everybody = loaded.plan, {request.subject for request in loaded.plan.requests}
    copies, done = {copy.id for copy in plan.copies}, _done(plan, records)
    clean = {place for place, seq in done.items() if seq < heard.get(place, 0)}
    residue = [r for r in verdict.residue if (r.copy_id if r.copy_id in copies else None) in clean]
    whose = {place: tuple(sorted(_persons_at(place, left, everybody))) for place in {r.copy_id for r in residue}}
    places = {
        place: FoundThere(at=at, residue=tuple(_told(r for r in residue if r.copy_id == place)), persons=persons)
        for place, persons in whose.items()
    }
    of_copies = {name: persons for name, persons in whose.items() if name in copies}
    gone = _clean(verdict, _verified_copies(plan))
    for place, there in (before.places if before else {}).items():
        if there.at >= began:
            places[place] = there.and_(places[place]) if place in places else there
        elif place not in places and place not in gone:
            places[place] = there
    for name, known in (before.of_copies if before else {}).items():
        of_copies[name] = tuple(sorted({*known, *of_copies.get(name, ())}))
    if not places and not of_copies:
        return None
    persons = {person for there in places.values() for person in there.persons}
    return FoundSince(
        at=at,
        plan_digest=loaded.digest,
        places=dict(sorted(places.items())),
        open_requests=tuple(sorted(r.id for r in plan.requests if r.subject in persons)) if persons < everybody else (),
        of_copies=dict(sorted(of_copies.items())),
    )


def unknown(loaded: LoadedPlan, began: datetime) -> FoundSince:
    """What is known where the file is gone: each copy that is verified, and any other place, may have been found to
    hold anybody, before a look that began then."""
    everybody = tuple(sorted({request.subject for request in loaded.plan.requests}))
    at, copies = began - timedelta(microseconds=1), sorted(_verified_copies(loaded.plan))
    nothing = {"file": _NOT_KNOWN, "where": _NOT_KNOWN, "form": _NOT_KNOWN}
    places = {
        place: FoundThere(at=at, residue=({"copy": place, **nothing},), persons=everybody)
        for place in (ANY_PLACE, *copies)
    }
    return FoundSince(at=at, plan_digest=loaded.digest, places=places, of_copies=dict.fromkeys(copies, everybody))


def nobody_knows(result: Mapping[str, Any]) -> bool:
    """Whether what was found since a run is lost, and no look has shown since what was left, by its final object."""
    return any(isinstance(one, Mapping) and one.get("where") == _NOT_KNOWN for one in result.get("residue") or ())


def overtaken(plan: ErasurePlan, records: Sequence[Record], verdict: RunVerdict, heard: Heard) -> frozenset[str | None]:
    """Where something was found by a look that began before the run was done there: it may have seen what the run
    erased meanwhile. By copy, None for what is no copy."""
    copies, done = {copy.id for copy in plan.copies}, _done(plan, records)
    found = {r.copy_id if r.copy_id in copies else None for r in verdict.residue}
    return frozenset(place for place in found if done.get(place, -1) >= heard.get(place, 0))


def _done(plan: ErasurePlan, records: Sequence[Record]) -> dict[str | None, int]:
    """By copy, None for what is no copy, the record of the run that says that nothing is left there."""
    tracks = track(records)
    done: dict[str | None, int] = {}
    for step in plan.steps:
        last = tracks[step.id].last if step.id in tracks and tracks[step.id].verified else None
        if step.action is Action.VERIFY_COPY and step.copy_ and last is not None:
            done[step.copy_] = last.seq
    for record in records:
        if record.kind is Kind.RUN_FINISHED and record.facts.get("state") == State.COMPLETE:
            done[None] = record.seq
    return done


def _verified_copies(plan: ErasurePlan) -> frozenset[str]:
    return frozenset(step.copy_ for step in plan.steps if step.action is Action.VERIFY_COPY and step.copy_)


def _clean(verdict: RunVerdict, copies: Collection[str]) -> frozenset[str]:
    """Places that were read as a whole, with nothing found. Two places may have one name: then both. copies: those that
    a look at everything has to tell of."""
    names = {one.copy_id for one in verdict.copies if one.bytes is not None or one.rows is not None}
    whole = {ANY_PLACE} if names.issuperset(copies) and not verdict.unverified else set()
    return frozenset((names - {one.copy_id for one in verdict.copies if one.residue or one.unverified}) | whole)


def _persons_at(place: str, left: PersonsLeft, everybody: Collection[str]) -> frozenset[str]:
    named = frozenset(person for person, places in left.places.items() if place in places)
    return named or frozenset(everybody)


def _told(residue: Iterable[Residue]) -> Iterator[dict[str, str]]:
    yield from (dict(pairs) for pairs in sorted({tuple(sorted(one.as_json().items())) for one in residue}))


class Newest(Frozen):
    """The number of the newest file that was written for a run. seal: of all else."""

    plan_digest: str
    number: int
    seal: str = ""

    def sealed(self, seal: Seal) -> Newest:
        """With its seal."""
        return self.model_copy(update={"seal": seal(f"newest {self.number} {self.plan_digest}".encode())})


@dataclass(frozen=True)
class FoundFile:
    """The file in the folder of a run. journals: the run's own, and the one in its evidence."""

    folder: Path
    journals: tuple[Path, ...]
    plan_digest: str

    @property
    def newest_file(self) -> Path:
        """Where the number of the newest one is kept: an old run folder that is put back does not bring it along."""
        return self.folder.parents[1] / NEWEST / f"{self.folder.name}.json"

    @property
    def is_lost(self) -> bool:
        """Whether there was one, which is gone, or of which nobody can say whether it is the newest."""
        return self._is_kept and not ((self.folder / FILE).exists() and self.newest_file.exists())

    @property
    def is_expected(self) -> bool:
        """Whether there is one, or was."""
        return self._is_kept or (self.folder / FILE).exists()

    def read(self, seal: Callable[[], Seal] | None) -> FoundSince | None:
        """What was found since the run; None where nothing was, or, of a run that has no sealed file, only of another
        plan.

        seal: asked where there is something to compare; None for looking only.

        Raises:
            Refused: it is gone, cannot be read, is not the newest, or was not written with this key or for this run:
                nothing may be said of the run then.
        """
        newest = self._read(self.newest_file, Newest)  # first: whoever writes meanwhile writes the file first
        found = self._read(self.folder / FILE, FoundSince)
        kept = self._is_told_of or newest is not None
        if found is None:
            if kept:
                raise self._refused("is gone: the file was removed")
            return None
        to_be_compared = seal is not None and (found.seal or kept)
        if seal and to_be_compared and not hmac.compare_digest(found.sealed(seal()).seal, found.seal):
            raise self._refused("was changed: its seal is not that of the estate's key")
        if found.plan_digest != self.plan_digest:
            if kept:
                raise self._refused("was replaced: the file is that of another run")
            return None
        if kept:
            self._refuse_old(found, newest, seal)
        return found if found.places or found.of_copies else None

    def _refuse_old(self, found: FoundSince, newest: Newest | None, seal: Callable[[], Seal] | None) -> None:
        where = f"may be old: the file with the number of the newest one, {self.newest_file},"
        if newest is None:
            raise self._refused(f"{where} is gone")
        sealed = seal is None or hmac.compare_digest(newest.sealed(seal()).seal, newest.seal)
        if not sealed or newest.plan_digest != self.plan_digest:
            raise self._refused(f"{where} was changed or replaced")
        if found.number < newest.number:
            raise self._refused("is old: a newer file was written since, which may contain more")

    def keep(self, found: FoundSince | None, seal: Seal) -> FoundSince:
        """Write it down, and give what stands there now. Raises `OSError` where that cannot be done."""
        told = found or FoundSince(at=datetime.now(timezone.utc), plan_digest=self.plan_digest)
        number = 1 + max(_number_in(self.folder / FILE), _number_in(self.newest_file))
        told = told.model_copy(update={"number": number}).sealed(seal)
        newest = Newest(plan_digest=self.plan_digest, number=number).sealed(seal)
        for file, content in ((self.folder / FILE, told), (self.newest_file, newest)):
            write_atomic(file, (content.model_dump_json(indent=2) + "\n").encode())
        return told

    def _read(self, file: Path, form: type[_Form]) -> _Form | None:
        """None where it is not there. Raises `Refused` where it cannot be read."""
        try:
            return form.model_validate_json(file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            why = system_reason(error) or "its content is not what this version writes"
            raise self._refused(f"cannot be read: {why} ({file.name})") from None

    def change(
        self, change: Callable[[FoundSince | None], FoundSince | None], seal: Seal, lost: FoundSince | None = None
    ) -> None:
        """Make of what was found what it is now, with nobody else at it.

        lost: what counts where the file is gone; without it, that is refused.

        Raises:
            Refused: what is there cannot be read.
            OSError: it cannot be written.
        """
        with found_locked(self.folder):
            gone = self.is_lost and lost is not None
            before = lost if gone else self.read(lambda: seal)
            found = change(before)
            if found != before or gone:
                self.keep(found, seal)

    @property
    def _is_kept(self) -> bool:
        """Whether there has to be one."""
        return self._is_told_of or self.newest_file.exists()

    @property
    def _is_told_of(self) -> bool:
        """Whether a journal says that there is one. Whether the journal is whole is asked elsewhere."""
        return any(KEPT.items() <= _begun(journal).items() for journal in self.journals)

    def _refused(self, why: str) -> Refused:
        return Refused(
            f"what `pii-tracer verify` found of the run's persons {why}",
            where=str(self.folder / FILE),
            todo="put the file back from its newest copy. If there is none, remove it, run `pii-tracer verify` with the"
            " run's plan, and do nothing else before that has ended. If the plan is gone, too, move the run's folder"
            f" out of `{self.folder.parent.name}`: nothing can be said of the run then",
        )


def _number_in(file: Path) -> int:
    """The number that a file says it has; 0 where it has none."""
    try:
        number = json.loads(file.read_bytes())["number"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return 0
    return number if type(number) is int else 0


def _begun(journal: Path) -> dict[str, Any]:
    """What the record of the run's begin says; nothing where there is none: the run has not begun.

    Raises:
        Refused: the journal cannot be read, or a record up to that one.
    """
    try:
        with journal.open("rb") as lines:
            whole = (line for line in lines if line.endswith(b"\n"))  # a torn last one was never told to anybody
            for record in map(json.loads, whole):
                if record["kind"] == Kind.RUN_STARTED:
                    return dict(record["facts"])
    except FileNotFoundError:
        pass
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        why = system_reason(error) or "a record is not what this version writes"
        raise Refused(
            "nobody can say whether `pii-tracer verify` found anything of the run's persons: the begin of the run's"
            f" journal cannot be read ({why})",
            where=str(journal),
            todo="make the journal readable, or restore it from its newest copy",
        ) from None
    return {}


@contextmanager
def found_locked(folder: Path) -> Iterator[None]:
    """Nobody else reads what was found to change it meanwhile. Raises `OSError` where that cannot be had."""
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
