"""The verifier as the runner and the command line use it: a baseline before, a verdict for each copy after.

It stands here because it joins what may not know each other: the verifier, the estate's services and the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.config import Estate
from pii_tracer.errors import EstateError, ScanError
from pii_tracer.estate.paths import EstatePaths
from pii_tracer.files import write_atomic
from pii_tracer.model import CopyKind, KeySet
from pii_tracer.plan import Copy, ErasurePlan, Step
from pii_tracer.protocol import Check, Outcome, Progress
from pii_tracer.scan.forms import build_patterns
from pii_tracer.scan.tree import scan_tree
from pii_tracer.verify.bytes import verify_bytes, verify_objects
from pii_tracer.verify.rows import Verifier, compare
from pii_tracer.verify.verdict import Baseline, ByteVerdict, CopyVerdict, Residue, RunVerdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OBJECTS = {CopyKind.ARCHIVE, CopyKind.OBJECT_VERSION, CopyKind.REPLICA}
Written = Mapping[tuple[str, str], str]
"""SHA-256 (hex) of objects this run wrote, by key and version id."""


@dataclass
class Verification:
    """Looks at copies for one plan. spark: opens the session when rows are read. written: from the journal."""

    plan: ErasurePlan
    estate: Estate
    base: Path
    keys: tuple[KeySet, ...]
    spark: Callable[[], SparkSession]
    now: Callable[[], datetime]
    written: Callable[[], Written] = dict
    baselines: dict[str, Baseline] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.patterns = build_patterns(self.keys)

    def take_baselines(self, say: Callable[[str], None]) -> tuple[Baseline, ...]:
        """Count everybody else's rows before anything is touched.

        Raises:
            ScanError: a copy cannot be read; nothing has been touched.
        """
        verifier = Verifier(self.spark(), self.keys)
        found = []
        for copy in self.plan.copies:
            if copy.kind not in _OBJECTS and copy.kind is not CopyKind.TABLE_HISTORY and copy.match:
                say(f"counting everybody else's rows in {copy.table or Path(copy.location).name}")
                found.append(verifier.baseline(copy))
        self.baselines = {b.copy_id: b for b in found}
        return tuple(found)

    def look(self, copy: Copy) -> CopyVerdict:
        """The verdict for one copy. What cannot be looked at is unverified, never clean."""
        try:
            if copy.kind in _OBJECTS:
                return CopyVerdict(copy_id=copy.id, bytes=self._objects(copy))
            if copy.kind is CopyKind.TABLE_HISTORY:
                # only the branch or tag; its bytes lie in the table's folder and belong to the table's verdict
                return CopyVerdict(copy_id=copy.id, rows=Verifier(self.spark(), self.keys).rows(copy))
            return self._table(copy)
        except (ScanError, EstateError) as error:
            unread = ByteVerdict(copy_id=copy.id, root=copy.location, files=(), unverified=(error.what,))
            return CopyVerdict(copy_id=copy.id, bytes=unread)

    def _table(self, copy: Copy) -> CopyVerdict:
        scanned = verify_bytes(copy, self.patterns, Path(copy.location))
        if copy.match is None:
            return CopyVerdict(copy_id=copy.id, bytes=scanned)
        verifier = Verifier(self.spark(), self.keys)
        before = self.baselines.get(copy.id)
        bystanders = compare(before, verifier.baseline(copy)) if before else None
        return CopyVerdict(copy_id=copy.id, bytes=scanned, rows=verifier.rows(copy), bystanders=bystanders)

    def _objects(self, copy: Copy) -> ByteVerdict:
        from botocore.exceptions import BotoCoreError, ClientError

        from pii_tracer.estate.s3 import iter_version_bytes, s3_clients
        from pii_tracer.estate.s3_versions import error_code

        bucket, _, prefix = copy.location.removeprefix("s3://").partition("/")
        client = s3_clients(self.estate)(copy.facts.get("region"))
        versions = iter_version_bytes(client, bucket, prefix, self.now(), self.written())
        if copy.kind is CopyKind.ARCHIVE:
            versions = (v for v in versions if v.latest)
        elif copy.kind is CopyKind.OBJECT_VERSION:
            versions = (v for v in versions if not v.latest)
        try:
            return verify_objects(copy, self.patterns, versions)
        except (BotoCoreError, ClientError) as error:
            raise ScanError(
                f"the bucket cannot be listed: {error_code(error)}",
                where=copy.location,
                todo="make the bucket reachable, then verify again",
            ) from None

    def elsewhere(self) -> tuple[ByteVerdict, ...]:
        """Datasets that were examined and are no copies, looked at again: whoever was not there may have come.

        Short numbers do not count here: lineage connects no column of these datasets with the person.
        """
        paths = EstatePaths(self.estate, self.base)
        verdicts = []
        for item in self.plan.examined:
            place = paths.real_path(item.dataset)
            if place is None or not place.exists():
                continue
            name = f"(no copy) {item.table or item.dataset.name}"
            scanned = scan_tree(place, self.patterns)
            residue = tuple(
                Residue(copy_id=name, file=file.path, where=hit.column or hit.where, form=hit.form.value)
                for file in scanned.files
                for hit in file.strong
            )
            verdicts.append(ByteVerdict(copy_id=name, root=str(place), files=(), residue=residue))
        return tuple(verdicts)


class VerifyExecutor:
    """VERIFY_COPY as a step: the verdict goes into the run's folder, its numbers into the journal."""

    name = "verify"

    def __init__(self, verification: Verification, folder: Path) -> None:
        self._verification = verification
        self._folder = folder

    def check(self, step: Step, copy: Copy | None) -> None:
        """Nothing can stand against looking."""

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Look, and write the verdict down."""
        if copy is None:
            raise ScanError("a verification without a copy", where=step.id, todo="make the plan again")
        verdict = self._verification.look(copy)
        write_atomic(verdict_file(self._folder, copy.id), verdict.model_dump_json(indent=1).encode())
        return Outcome(_numbers(verdict))

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """The verdict must say: looked at, nothing found, nothing unread, nobody else lost."""
        verdict = read_verdict(self._folder, copy.id) if copy else None
        if verdict is None:
            return Check(False, ("there is no verdict",))
        findings = [f"{len(verdict.residue)} places still hold the person"] if verdict.residue else []
        if verdict.unverified:
            findings.append(f"{len(verdict.unverified)} could not be verified: {verdict.unverified[0]}")
        if verdict.bystanders and not (verdict.bystanders.equal and not verdict.bystanders.lost):
            findings.append(f"{verdict.bystanders.lost} rows of other people are gone or changed")
        return Check(verdict.erased, tuple(findings), _numbers(verdict))

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """Looking again harms nobody."""
        return Progress.NOT_STARTED


def _numbers(verdict: CopyVerdict) -> dict[str, Any]:
    rows = verdict.rows.rows_left if verdict.rows else None
    return {
        "files_decoded": len(verdict.bytes.files) if verdict.bytes else 0,
        "residue": len(verdict.residue),
        "unverified": len(verdict.unverified),
        "rows_left": rows,
        "bystander_rows_lost": verdict.bystanders.lost if verdict.bystanders else None,
    }


def verdict_file(folder: Path, copy_id: str) -> Path:
    """Where the verdict of a copy is kept; ids hold only harmless characters (planners.drafts.slug)."""
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
