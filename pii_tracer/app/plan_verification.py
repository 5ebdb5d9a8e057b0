"""Looking for the persons of a plan again, in rows and in bytes. Believes no journal, but for which files were there
when the sources of a copy were erased that its owner computes again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from pii_tracer.app.execution.run_folder import choose_run, folder_of
from pii_tracer.app.execution.run_verification import noted_of
from pii_tracer.app.execution.verify_step import numbers_of
from pii_tracer.app.persons_apart.later_findings import FoundSince, found_by, overtaken, unknown
from pii_tracer.app.persons_apart.later_findings_file import FILE
from pii_tracer.app.persons_apart.residue_of_persons import ResidueOfPersons
from pii_tracer.app.progress import SILENT, Shows, with_facts
from pii_tracer.app.proof.deletion_log_check import log_fault
from pii_tracer.app.scan_ledger_file import ledger_of
from pii_tracer.app.settings import Settings, moment
from pii_tracer.app.verification import Verification
from pii_tracer.app.work_pace import PLACE, Pace
from pii_tracer.common.atomic_files import system_reason
from pii_tracer.common.work_facts import counts_in
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import ExitCode, Refused, UsageError
from pii_tracer.model.plan import HELD, Copy, ErasurePlan
from pii_tracer.proof.attestation import JOURNAL, recomputed_words
from pii_tracer.review.plan_file import LoadedPlan, load_plan
from pii_tracer.run.journal import GrowingJournal, Kind, Record, parse
from pii_tracer.scan.hits import Reading
from pii_tracer.verify.persons_left import NOBODY, PersonsLeft
from pii_tracer.verify.verdicts import ByteVerdict, CopyVerdict, RunVerdict


@dataclass(frozen=True)
class PlanVerification:
    """What a look for the persons of a plan found. left: of whom. unkept: why the plan's run will not know it."""

    plan: ErasurePlan
    verdict: RunVerdict
    reading: Reading = field(default_factory=Reading)
    left: PersonsLeft = NOBODY
    unkept: str | None = None
    log: str | None = None

    @property
    def open_requests(self) -> tuple[str, ...]:
        """Requests of persons of whom something is left; all of them where that may be anybody's."""
        return tuple(sorted(request.id for request in self.plan.requests if request.subject in self.left.persons))

    @property
    def exit_code(self) -> ExitCode:
        """9 for residue, 7 where something could not be looked at or kept, 3 for an incomplete plan, 0 otherwise."""
        if self.verdict.residue:
            return ExitCode.RESIDUE
        if self._unverified:
            return ExitCode.PARTIAL
        return ExitCode.DONE if self.plan.complete else ExitCode.INCOMPLETE

    @property
    def _unverified(self) -> tuple[str, ...]:
        return (*(fault for fault in (self.unkept, self.log) if fault), *self.verdict.unverified)

    @property
    def _computed_again(self) -> dict[str, str]:
        """Of each copy in which nobody was found and that its owner computed again: what was proved."""
        clean = set(self.verdict.erased)
        mine = {c.id for c in self.plan.copies if c.strategy is Strategy.RECOMPUTED and c.id in clean}
        looks = (copy for copy in self.verdict.copies if copy.copy_id in mine)
        return {copy.copy_id: recomputed_words(numbers_of(copy)) for copy in looks}

    def as_json(self) -> dict[str, Any]:
        """The final object (docs/commands.md)."""
        plan, verdict = self.plan, self.verdict
        residue = verdict.residue
        counted = [c for c in plan.copies if c.origin is None]
        again = self._computed_again
        erased = set(verdict.erased) - {c.id for c in plan.copies if c.strategy in HELD} - again.keys()
        return {
            "plan_id": plan.plan_id,
            "state": "complete" if plan.complete and not residue and not self._unverified else "partial",
            "copies_total": len(counted),
            "copies_erased": sum(c.id in erased for c in counted),
            "copies_confirmed": len(again),
            "copies_exempt": plan.totals.exempt,
            "computed_again": [{"copy": name, "proved": words} for name, words in again.items()],
            "residue": [r.as_json() for r in residue],
            "open_requests": list(self.open_requests),
            "unverified": list(self._unverified),
            "not_asked": list(verdict.not_asked),
            "reading": self.reading.model_dump(mode="json"),
            "rows_erased": None,
            "bystander_rows_lost": None,
            "waiting_until": None,
            "deletion_log": None,
            "attestation": None,
            "report": None,
        }


def verify(
    settings: Settings, plan_file: Path | None = None, *, read_all: bool = False, show: Shows = SILENT
) -> PlanVerification:
    """Look for the persons of a plan; without a plan file, for those of the newest run. Needs Spark for tables.

    Raises:
        UsageError: there is no run, or its plan file is missing or another one.
        PlanError: the sealed manifest does not open.
        Refused: what was found before cannot be read.
        ConfigError, EstateError: the estate cannot be read.
    """
    from executors.engine.spark_session import open_session
    from executors.stores.spark_connectors import stores_of
    from pii_tracer.app.execution.verify_step import numbers_of
    from pii_tracer.app.planning.plan_files import manifest_path
    from pii_tracer.review.sealed_person_values import KeyRing
    from reports.wording import copy_name

    digest = None
    if plan_file is None:
        folder = choose_run(settings.state, None, unfinished=False)
        settings, plan_file, digest = folder.settings(), Path(folder.info().plan_file), folder.info().plan_digest
        if folder.info().demo:
            from pii_tracer.app.demo import use_demo_credentials

            use_demo_credentials()
    if not plan_file.exists():
        raise UsageError("the plan file is missing", where=str(plan_file), todo="name it")
    loaded = load_plan(plan_file)
    if digest not in (None, loaded.digest):
        raise UsageError(
            "the plan file is not the one that was approved for the newest run",
            where=str(plan_file),
            todo="restore the approved plan file, or name the plan to verify",
        )
    plan, began = loaded.plan, datetime.now(timezone.utc)
    if not (folder := folder_of(settings.state, plan.plan_id)).found_file(loaded.digest).is_lost:
        folder.found_since()
    estate_key = settings.key()
    keyring = KeyRing.open(manifest_path(plan_file), plan.subjects_digest, estate_key)
    estate = settings.estate()
    journal = RunJournal(settings, loaded)
    verification = Verification(
        plan=plan,
        estate=estate,
        base=settings.base,
        keys=keyring.key_sets,
        marks=estate_key.marks,
        spark=lambda: open_session(estate, settings.base, stores=stores_of(plan)),
        now=lambda: moment(None),
        noted=lambda copy: noted_of(journal.records, plan, copy),
        warn=show.warn,
        ledger=None if read_all else ledger_of(settings, estate, show.warn),
    )
    watch = with_facts(show)
    watch.about({"estate": plan.estate, "plan_id": plan.plan_id})
    watch.stage("verify: rows and bytes")
    looks = Looks(verification, journal)
    # what a hold keeps is no residue, and nobody can look into a backup
    looked_at = [c for c in plan.copies if c.strategy not in (Strategy.EXEMPT, Strategy.CONFIRM)]
    pace = Pace([copy.found.bytes if copy.found else 0 for copy in looked_at], each=PLACE)
    for copy in looked_at:
        watch.step(copy.id, pace.next(), {"copy": copy_name(copy)})
        watch.over(counts_in(numbers_of(looks.look(copy))))
    show.step("datasets that are not copies")
    looks.look_elsewhere()
    while again := looks.overtaken():
        show.step("looking again where the run erased meanwhile")
        looks.look_again(again)
    left, whole, at = looks.left(), looks.verdict, datetime.now(timezone.utc)
    unkept = _keep(
        settings,
        loaded,
        began,
        lambda before: found_by(loaded, journal.records, whole, left, before, began, at, looks.heard),
    )
    log = log_fault(folder, plan.estate)
    for fault in (unkept, log):
        if fault:
            show.warn(fault)
    return PlanVerification(plan, whole, verification.whole_reading(), left, unkept, log)


class RunJournal:
    """The journal of a plan's run, which may go on meanwhile. Where it is gone or another plan's, the one in the run's
    evidence."""

    def __init__(self, settings: Settings, loaded: LoadedPlan) -> None:
        folder = folder_of(settings.state, loaded.plan.plan_id)
        self._own, self._evidence, self._digest = (
            GrowingJournal(folder.journal),
            folder.evidence / JOURNAL,
            loaded.digest,
        )
        self._plans: set[object] = set()
        self.records: tuple[Record, ...] = ()
        self.read()

    def read(self) -> tuple[Record, ...]:
        """Its records as of now; nothing where the run has not begun. Raises as `read_journal`."""
        new = self._own.read()
        from_begin = len(new) == len(self._own.records)
        self._plans = _plans(new) | (set() if from_begin else self._plans)
        self.records = self._own.records if self._plans == {self._digest} else self._attested
        return self.records

    @cached_property
    def _attested(self) -> tuple[Record, ...]:
        try:
            records, _ = parse(self._evidence.read_bytes(), str(self._evidence))
        except FileNotFoundError:
            return ()
        return records if _plans(records) == {self._digest} else ()


def _plans(records: Iterable[Record]) -> set[object]:
    return {record.facts.get("plan_digest") for record in records if record.kind is Kind.RUN_STARTED}


class Looks:
    """The looks of one `verify` at all places of a plan, and how far its run was at each."""

    def __init__(self, verification: Verification, journal: RunJournal) -> None:
        self.heard: dict[str | None, int] = {}
        self._verification, self._journal = verification, journal
        self._whose = ResidueOfPersons(verification)
        self._copies: dict[str, CopyVerdict] = {}
        self._elsewhere: tuple[ByteVerdict, ...] = ()

    def look(self, copy: Copy) -> CopyVerdict:
        """At a copy."""
        self.heard[copy.id] = len(self._journal.read())
        self._copies[copy.id] = self._whose.told_apart(copy, self._verification.look(copy))
        return self._copies[copy.id]

    def look_elsewhere(self) -> None:
        """At what is no copy."""
        self.heard[None] = len(self._journal.read())
        self._elsewhere = self._verification.elsewhere()

    def overtaken(self) -> frozenset[str | None]:
        """As `found_since.overtaken`, as of now."""
        return overtaken(self._verification.plan, self._journal.read(), self.verdict, self.heard)

    def look_again(self, places: Collection[str | None]) -> None:
        """At places of `overtaken`."""
        for copy in self._verification.plan.copies:
            if copy.id in places:
                self.look(copy)
        if None in places:
            self.look_elsewhere()

    def left(self) -> PersonsLeft:
        """Of whom something is left."""
        return self._whose.left(RunVerdict(copies=tuple(self._copies.values())), self._elsewhere)

    @property
    def verdict(self) -> RunVerdict:
        """Of all places, by the last look at each."""
        beside = (CopyVerdict(copy_id=one.copy_id, bytes=one) for one in self._elsewhere)
        return RunVerdict(copies=(*self._copies.values(), *beside))


def _keep(
    settings: Settings, loaded: LoadedPlan, began: datetime, change: Callable[[FoundSince | None], FoundSince | None]
) -> str | None:
    """Tell the plan's run what was found where it had found nothing, as far as it is known who wrote the journal; or
    say why that cannot be done. began: when the look did."""
    folder = folder_of(settings.state, loaded.plan.plan_id)
    try:
        if folder.recorded().plan_digest != loaded.digest:
            return None
    except UsageError:
        if not (_is_there(folder.info_file) or _is_there(folder.journal)):
            return None  # it has not begun
        return (
            f"{folder.info_file}: what the run was started with cannot be read, so the run does not know what was"
            " found now: make it readable or restore it, and verify again"
        )
    try:
        folder.found_file(loaded.digest).change(change, settings.key().found_mark, unknown(loaded, began))
    except (OSError, Refused) as error:
        why = error.what if isinstance(error, Refused) else system_reason(error) or type(error).__name__
        return (
            f"{folder.path / FILE}: what was found now cannot be kept there ({why}), so the run does not know it:"
            " make the folder writable, and verify again"
        )
    return None


def _is_there(file: Path) -> bool:
    """Whether a file is there; one of which nobody can say it counts as there."""
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True
