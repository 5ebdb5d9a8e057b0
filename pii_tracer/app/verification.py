"""The verifier as the runner and the command line use it: a baseline before, a verdict for each copy after.

It stands here because it joins what may not know each other: the verifier, the estate's services and the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.app import vault_verification
from pii_tracer.app.other_people_counts import OBJECTS, counted_by_spark, counting_of, is_rewritten
from pii_tracer.app.persons_apart.values_by_person import PartOfPatterns, each_person, without_persons
from pii_tracer.app.stored_places.archive_objects import ArchiveObjects, Written
from pii_tracer.app.stored_places.file_write_marks import is_empty, place_of, written_files
from pii_tracer.app.work_pace import PLACE, Pace
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.keys.parquet_encryption.master_keys import file_keys
from pii_tracer.lake.stores.lakefs.repository_state import in_lakefs
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    CopyKind,
    DatasetId,
    KeySet,
    Strategy,
)
from pii_tracer.model.errors import EstateError, ScanError
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.locations import S3Location, in_place, is_hdfs
from pii_tracer.model.non_key_columns import no_keys_at
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.model.waivers import MarkKey
from pii_tracer.scan.folder_content_hashes import fingerprint
from pii_tracer.scan.hits import Reading
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.value_forms import Patterns, build_patterns
from pii_tracer.verify.byte_search import (
    verify_bytes,
    verify_objects,
    with_uploads,
)
from pii_tracer.verify.cluster_byte_search import searchers_of
from pii_tracer.verify.recomputation_evidence import Noted, compared, note_of
from pii_tracer.verify.refused_places import waived, with_refused
from pii_tracer.verify.row_checks import Verifier, compare
from pii_tracer.verify.stores.non_copies import other_files
from pii_tracer.verify.streams.kafka.retention_losses import compare_topic
from pii_tracer.verify.verdicts import (
    Baseline,
    Bystanders,
    ByteVerdict,
    CopyVerdict,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pii_tracer.verify.stores.lakefs.lakefs_objects import LakefsLook
    from pii_tracer.verify.stores.s3.rewritten_rows import RewrittenRows
    from pii_tracer.verify.stores.stored_files import PlaceLook
    from pii_tracer.verify.streams.kafka.topic_records import TopicLook


@dataclass
class Verification:
    """Looks at copies for one plan. spark: opens the session when rows are read. written, told: from the journal.

    marks: recognises the files that the plan's waivers are for.
    warn: is told where Spark's executors search no bytes though there is a cluster. ledger: what earlier scans found.
    noted: which files of a copy were there when its sources were erased, of a copy that its owner computes again.
    whole: the patterns of all persons, where this looks for a part of them, or for each apart (by_person).
    """

    plan: ErasurePlan
    estate: Estate
    base: Path
    keys: tuple[KeySet, ...]
    marks: MarkKey
    spark: Callable[[], SparkSession]
    now: Callable[[], datetime]
    written: Callable[[], Written] = dict
    told: Callable[[str], Sequence[Mapping[str, Any]]] = lambda step: ()
    noted: Callable[[Copy], Noted | None] = lambda copy: None
    baselines: dict[str, Baseline] = field(default_factory=dict)
    warn: Callable[[str], None] = lambda told: None
    ledger: ScanLedger | None = None
    whole: Patterns | None = None
    by_person: bool = False

    def __post_init__(self) -> None:
        self.searchers = LedgerSearchers(self.ledger, searchers_of(self.estate.spark, self.spark, self.warn))
        self._reading = Reading()
        self._rows: Verifier | None = None
        self.archives = ArchiveObjects(self.estate, self.plan, self.now, self.written)
        self._rewritten: dict[str, RewrittenRows] = {}
        if self.whole is None:
            self.patterns = build_patterns(self.keys, file_keys(self.estate.parquet_encryption, self.base))
        else:
            self.patterns = PartOfPatterns(each_person(self.keys) if self.by_person else self.keys, self.whole)

    def whole_reading(self) -> Reading:
        """How files came to be searched, of copies and of what is none."""
        self._take_reading()
        return self._reading

    def _take_reading(self) -> Reading:
        taken = self.searchers.take_reading()
        self._reading = self._reading.and_(taken)
        return taken

    def take_baselines(self, say: Callable[[str, str], None]) -> tuple[Baseline, ...]:
        """Count everybody else's rows before anything is touched. say: hears what is counted, and what is left.

        Raises:
            ScanError: a copy cannot be read; nothing has been touched.
        """
        asked = [(copy, told) for copy in self.plan.copies if (told := counting_of(copy))]
        pace = Pace([copy.found.bytes if copy.found else 0 for copy, _ in asked], each=PLACE)
        taken: dict[str, Baseline] = {}
        if any(counted_by_spark(copy) for copy, _ in asked):
            say("starting Spark, which fetches its jars where it never ran", "")
            self.spark()
        for copy, told in asked:
            say(told, pace.next())
            baseline: Baseline | None
            if counted_by_spark(copy):
                baseline = self._verifier().baseline(copy)
            elif copy.kind is CopyKind.TOPIC:
                baseline = self._topic(copy).baseline
            elif is_rewritten(copy):
                baseline = self._rewritten_before(copy)
            elif in_lakefs(copy.location):
                baseline = self._repository(copy).baseline
            else:
                baseline = self._place_files(copy).baseline
            if baseline:
                taken[baseline.copy_id] = baseline
        return tuple(taken.values())

    def look(self, copy: Copy) -> CopyVerdict:
        """The verdict for one copy. What cannot be looked at is unverified, never clean."""
        self._take_reading()  # of what is no copy
        verdict = self._looked(copy)
        reading = self._take_reading()
        return verdict.model_copy(update={"reading": reading}) if not reading.is_whole else verdict

    def note_files(self, copy: Copy) -> dict[str, Any]:
        """Marks of the files of a copy that are there now, for the journal.

        Raises:
            ScanError, EstateError: they cannot be listed, or none is there: put back later, they would pass for new.
        """
        files = written_files(self.estate, copy, self._patterns(copy), self.marks)
        if not files:
            raise ScanError(
                "no file with rows is there to note",
                where=copy.location,
                todo="put the table back where it was; if it was dropped, make a new plan",
            )
        return note_of(files, place_of(copy, self.marks), self.now())

    def _again(self, copy: Copy) -> CopyVerdict:
        """A copy that its owner computes again; one that is gone holds no counts."""
        noted = self.noted(copy)
        files = written_files(self.estate, copy, self._patterns(copy), self.marks, noted)
        if is_empty(self.estate, copy):
            seen = ByteVerdict(copy_id=copy.id, root=copy.location, files=())
        else:
            seen = self._bytes_and_rows(copy).bytes or ByteVerdict(copy_id=copy.id, root=copy.location, files=())
        return CopyVerdict(copy_id=copy.id, bytes=compared(seen, noted, files, place_of(copy, self.marks)))

    def _looked(self, copy: Copy) -> CopyVerdict:
        try:
            return self._again(copy) if copy.strategy is Strategy.RECOMPUTED else self._bytes_and_rows(copy)
        except (ScanError, EstateError) as error:
            unread = ByteVerdict(copy_id=copy.id, root=copy.location, files=(), unverified=(error.what,))
            return CopyVerdict(copy_id=copy.id, bytes=unread)

    def _bytes_and_rows(self, copy: Copy) -> CopyVerdict:
        if vault_verification.in_vault(copy):
            return CopyVerdict(copy_id=copy.id, bytes=vault_verification.look(self.plan, copy, self.told))
        if copy.kind in OBJECTS:
            shows, before = self.objects(copy), self.baselines.get(copy.id)
            after = self._rewritten_rows(copy).after(before) if before and self._compares(copy) else None
            others = compare(before, after) if before and after else None
            return CopyVerdict(copy_id=copy.id, bytes=shows, bystanders=others)
        if copy.kind is CopyKind.TOPIC:
            seen = self._topic(copy)
            before = self.baselines.get(copy.id)
            bystanders = self._beside(copy, before, seen.baseline) if before and seen.baseline else None
            return CopyVerdict(copy_id=copy.id, bytes=seen.bytes, rows=seen.rows, bystanders=bystanders)
        if in_lakefs(copy.location):
            shown = self._repository(copy)
            before = self.baselines.get(copy.id)
            others = compare(before, shown.baseline) if before else None
            return CopyVerdict(copy_id=copy.id, bytes=shown.bytes, rows=shown.rows, bystanders=others)
        if in_place(copy.location):
            found = self._place_files(copy)
            if copy.stored_table:
                return self._read(copy, found.bytes)
            before = self.baselines.get(copy.id)
            others = compare(before, found.baseline) if before and found.baseline else None
            return CopyVerdict(copy_id=copy.id, bytes=found.bytes, rows=found.rows, bystanders=others)
        if copy.kind is CopyKind.TABLE_HISTORY:
            # only the branch or tag; its bytes lie in the table's folder and belong to the table's verdict
            return CopyVerdict(copy_id=copy.id, rows=self._verifier().rows(copy))
        if place := copy.s3_table:
            return self._s3_table(copy, place)
        return self._read(copy, verify_bytes(copy, self._patterns(copy), Path(copy.location), searchers=self.searchers))

    def _patterns(self, copy: Copy) -> Patterns:
        """What is looked for in a copy, and in what hangs from a table in the same place."""
        return self.patterns_at(copy.dataset, copy.location)

    def patterns_at(self, *places: DatasetId | str) -> Patterns:
        """What is looked for at these places of one thing, without another system's numbers."""
        return self.patterns.leaving_out(no_keys_at(self.plan.not_keys, *places))

    def _s3_table(self, copy: Copy, place: S3Location) -> CopyVerdict:
        from pii_tracer.app.s3_reading import look

        return self._read(copy, look(self.estate, copy, place, self._patterns(copy), self.searchers))

    def _read(self, copy: Copy, scanned: ByteVerdict) -> CopyVerdict:
        """The rows besides; what the bytes showed counts, whatever Spark can read of the copy."""
        try:
            return self._with_rows(copy, scanned)
        except ScanError as error:
            unread = scanned.model_copy(update={"unverified": (*scanned.unverified, error.what)})
            return CopyVerdict(copy_id=copy.id, bytes=unread)

    def _with_rows(self, copy: Copy, scanned: ByteVerdict) -> CopyVerdict:
        if copy.places is None:
            return CopyVerdict(copy_id=copy.id, bytes=scanned)
        verifier = self._verifier()
        before = self.baselines.get(copy.id)
        bystanders = compare(before, verifier.baseline(copy, before)) if before else None
        return CopyVerdict(copy_id=copy.id, bytes=scanned, rows=verifier.rows(copy, before), bystanders=bystanders)

    def _verifier(self) -> Verifier:
        """The same for all copies, as long as the session is: what it knows of the keys is made once."""
        spark = self.spark()
        if self._rows is None or not self._rows.reads_through(spark):
            self._rows = Verifier(spark, self.keys)
        return self._rows

    def _topic(self, copy: Copy) -> TopicLook:
        from pii_tracer.app.topic_records import look

        return look(self.estate, self.base, copy, self._patterns(copy))

    def _beside(self, copy: Copy, before: Baseline, after: Baseline) -> Bystanders:
        """Everybody else's records of a topic, without what its own retention took meanwhile."""
        steps = [s.id for s in self.plan.steps if s.copy_ == copy.id and s.action is Action.KAFKA_REWRITE_TOPIC]
        told = [facts["copied_from"] for s in steps for facts in self.told(s) if "copied_from" in facts]
        return compare_topic(before, after, told[-1] if told else None, self.now())

    def _repository(self, copy: Copy) -> LakefsLook:
        from pii_tracer.app.lakefs_objects import look

        return look(self.estate, self.base, copy, self.patterns, self._patterns(copy), self.plan.plan_id)

    def _place_files(self, copy: Copy) -> PlaceLook:
        """A place of HDFS or of an object store."""
        from pii_tracer.app.stored_places import hdfs_reading as hdfs_places
        from pii_tracer.app.stored_places import object_reading as stored_places

        if is_hdfs(copy.location):
            return hdfs_places.look(self.estate, copy, self._patterns(copy), self.searchers)
        return stored_places.look(self.estate, copy, self._patterns(copy), self.searchers)

    def objects(self, copy: Copy) -> ByteVerdict:
        """The verdict on every version in a place of a bucket. Raises `ScanError`, `EstateError` where that fails."""
        with self.archives.bucket(copy):
            versions = self.archives.versions(copy)
            if copy.id in self.baselines and self._compares(copy):
                versions = self._rewritten_rows(copy).noticed(versions)
            verdict = verify_objects(copy, self._patterns(copy), versions, self.searchers, self.texts)
        uploads, refused = self.archives.uploads(copy)
        return with_refused(with_uploads(verdict, uploads), refused, waived(self.plan, copy.location))

    def _compares(self, copy: Copy) -> bool:
        """Whether rows of a copy in S3 are compared: not for some of the persons alone, as rows are those of all."""
        return self.whole is None and is_rewritten(copy)

    def _rewritten_before(self, copy: Copy) -> Baseline | None:
        """The rows of the objects in which the persons are found. What planning has searched is known to the ledger."""
        rows, reading = self._rewritten_rows(copy), self.searchers.reading
        names = {f"{self.patterns.mask(place[0])}?versionId={place[1]}": place for place in rows.planned}
        try:
            with self.archives.bucket(copy):
                versions = self.archives.chosen(copy, rows.planned)
                seen = verify_objects(copy, self._patterns(copy), versions, self.searchers, self.texts)
        except EstateError:  # the step meets it, too
            return None
        finally:
            self.searchers.reading = reading  # what was read for this is no part of a verdict
        holding = {names[residue.file] for residue in seen.residue if residue.file in names}
        return rows.before(self.archives.named(copy, holding))

    def _rewritten_rows(self, copy: Copy) -> RewrittenRows:
        from pii_tracer.verify.stores.s3.rewritten_rows import RewrittenRows, rewritten

        if copy.id not in self._rewritten:
            numbers = no_keys_at(self.plan.not_keys, copy.dataset, copy.location)
            whole = (self.whole or self.patterns).leaving_out(numbers)
            whole = whole.comparing(key_columns(copy.match, kind=copy.format))
            planned = rewritten(self.plan.steps, copy)
            self._rewritten[copy.id] = RewrittenRows(copy, planned, whole, self.marks, self.written)
        return self._rewritten[copy.id]

    @cached_property
    def texts(self) -> TextPlaces:
        """By what rules text is read, as the estate file and the catalogs say it."""
        return EstatePaths(self.estate, self.base).texts

    def changed(self, copy: Copy, verdict: CopyVerdict) -> bool:
        """Whether a copy's files or object versions are others than those that the verdict is about.

        Of a topic, a repository, or a copy that its owner computes again, only reading it again tells: it always counts
        as changed.

        Raises:
            ScanError, EstateError: they cannot be listed any more.
        """
        if verdict.bytes is None:
            return False  # a branch or tag: its bytes lie in the table's folder and belong to the table's verdict
        if copy.kind is CopyKind.TOPIC or in_lakefs(copy.location) or copy.strategy is Strategy.RECOMPUTED:
            return True
        if vault_verification.in_vault(copy):
            return vault_verification.changed(self.plan, copy, verdict.bytes)
        if in_place(copy.location):
            reading, now = self.searchers.reading, self._place_files(copy)
            self.searchers.reading = reading  # what was read for this is no part of a verdict
            return other_files(verdict.bytes, now.bytes)
        if place := copy.s3_table:
            from pii_tracer.app import s3_reading

            return s3_reading.changed(self.estate, copy, place, verdict.bytes, self.patterns)
        seen = {(file.path, file.sha256) for file in verdict.bytes.files}
        if copy.kind in OBJECTS:
            with self.archives.bucket(copy):
                names = {f"{self.patterns.mask(v.key)}?versionId={v.version_id}" for v in self.archives.versions(copy)}
            begun, _ = self.archives.uploads(copy)
            return (
                bool(begun) or names != {path for path, _ in seen} or any(n.endswith("versionId=null") for n in names)
            )
        return {(self.patterns.mask(f.path), f.sha256) for f in fingerprint(Path(copy.location))} != seen

    def elsewhere(self, only: Collection[str] | None = None) -> tuple[ByteVerdict, ...]:
        """What is no copy, looked at (`look_beside`)."""
        from pii_tracer.app.execution.non_copies import look_beside

        return look_beside(self, only)

    def of_each_person(self) -> Verification:
        """The same look at bytes, in which residue names the person whose it is. Rows are those of all."""
        return replace(self, whole=self.patterns, by_person=True, ledger=None)

    def without(self, persons: Collection[str]) -> Verification:
        """The same look for all but some persons (keyed references).

        Raises:
            ScanError: there is nobody else.
        """
        return replace(self, whole=self.patterns, keys=without_persons(self.keys, persons), ledger=None)
