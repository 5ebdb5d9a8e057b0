"""Hive's transactional tables: rows are deleted by HiveServer2, compactions are asked of the metastore.

https://hive.apache.org/docs/latest/user/hive-transactions/; what the naive DELETE leaves behind: docs/hazards.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from time import monotonic, sleep
from typing import Any, ClassVar

from executors.context import ExecutionContext
from executors.engine.match_sql import match_of
from executors.formats.hive_acid.compactions import ACTIVE, CLEANING, FAILED, Compactions
from executors.formats.hive_acid.hive_session import HiveSession
from executors.formats.hive_acid.key_files import KeyFiles, lines
from executors.sweep.table_folders import refusals
from pii_tracer.common.plurals import counted
from pii_tracer.config.catalogs import HiveServer2
from pii_tracer.config.hdfs import as_declared
from pii_tracer.lake.formats.hive_acid.folders import AcidFolder
from pii_tracer.lake.formats.hive_acid.key_folder_check import unusable
from pii_tracer.lake.formats.hive_acid.metastore_notes import AcidNotes
from pii_tracer.lake.formats.hive_acid.table_files import TableFiles
from pii_tracer.lake.formats.hive_acid.vocabulary import (
    HIVE_ACID_COMPACT,
    HIVE_ACID_DELETE_ROWS,
)
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.hdfs.webhdfs import client_at
from pii_tracer.model.datasets import FieldAccess, MatchTerm
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import hdfs_location, is_hdfs
from pii_tracer.model.number_keys import spelled
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

_UPTO = "write_ids_upto"
"""The fact of a compaction that says which folders it had to include: those with a write id up to this one."""
_MOST_TIMES = 3
"""So often a compaction of one partition is asked for, until the run parks."""
_FOUND = "rows_found"
"""The fact of a delete that says, for each of its conditions, how many rows it was about to take."""
_KEYS = "pii_tracer_keys"
_PLACE_OF_KEYS = "keys_folder"
"""The fact of a delete that says, before its keys are written, in which folder they will be."""


@dataclass(frozen=True)
class _Work:
    """What a step needs of its table."""

    files: TableFiles
    notes: AcidNotes
    compactions: Compactions
    server: HiveServer2


class HiveAcidExecutor:
    """Executor `hive_acid`. patience: so long a step waits for Hive before the run parks; look_again: until when."""

    name = "hive_acid"
    patience: ClassVar[timedelta] = timedelta(minutes=10)
    look_again: ClassVar[timedelta] = timedelta(minutes=10)
    poll_seconds: ClassVar[float] = 1.0

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when the table is none that Hive deletes rows of, or Hive cannot be asked to."""
        self._remove_keys(step)
        with self._table(step) as work:
            if step.action is not HIVE_ACID_DELETE_ROWS:
                return
            if why := work.files.obstacle(work.notes):
                raise RunError(why, where=step.parameters["location"], todo="then run `pii-tracer resume`")
            for term in match_of(copy).terms:
                _text(term)
                lines(term.key_set, spelled(self._ctx.keyring.key_set(term.key_set)))
            if why := unusable(self._ctx.estate, work.server.scratch):
                raise RunError(why, where=work.server.scratch, todo="then run `pii-tracer resume`")
            with HiveSession(work.notes.catalog, work.server) as session:
                session.run(f"DESCRIBE {work.notes.name}")

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step, or wait for Hive to do it."""
        self._remove_keys(step)
        with self._table(step) as work:
            if step.action is HIVE_ACID_DELETE_ROWS:
                return self._delete(step, copy, work)
            return self._compact(step, work) if step.action is HIVE_ACID_COMPACT else self._clean(step, work)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Ask Hive for the persons' rows, or look at the table's folders."""
        self._remove_keys(step)
        with self._table(step) as work:
            if step.action is HIVE_ACID_DELETE_ROWS:
                left = self._on_rows(step, copy, work, _count)
                self._same_place(step, work.compactions.notes())
                if any(files.left() for files in self._key_files(step)):
                    return Check(ok=False, findings=("the scratch folder still contains keys of persons",))
                return Check.none_left(left, "row of the person is", "rows of the person are", "left")
            upto = self._upto(step)
            if upto is None:
                return Check(ok=False, findings=("the compaction did not say which folders it includes",))
            wrong = _uncompacted if step.action is HIVE_ACID_COMPACT else _uncleaned
            left = len(wrong(work.files, upto))
            return Check.none_left(left, "partition has", "partitions have", "folders from before the compaction")

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """After a crash every step is run again: each leads to a state, and one that is reached stays."""
        return Progress.PARTIAL

    # -- keys in the scratch folder ----------------------------------------------------------------------------------

    def _key_files(self, step: Step) -> list[KeyFiles]:
        """All that a step has ever written, by its journal."""
        noted = {str(facts[_PLACE_OF_KEYS]) for facts in self._ctx.told(step.id) if _PLACE_OF_KEYS in facts}
        return [KeyFiles(self._ctx.estate, place) for place in sorted(noted)]

    def _remove_keys(self, step: Step) -> None:
        """Take away what a killed run has left, before anything else can fail."""
        for files in self._key_files(step):
            files.remove()

    # -- rows ----------------------------------------------------------------------------------------------------

    def _delete(self, step: Step, copy: Copy | None, work: _Work) -> Outcome:
        """What a killed run has deleted counts, too: each number is noted before its rows go."""
        noted = [list(facts[_FOUND]) for facts in self._ctx.told(step.id) if _FOUND in facts]
        most = [max(numbers) for numbers in zip_longest([0] * len(match_of(copy).terms), *noted, fillvalue=0)]

        def delete(session: HiveSession, table: str, conditions: list[str]) -> int:
            for at, one in enumerate(conditions):
                self._same_place(step, work.compactions.notes())
                found = _count(session, table, [one])
                most[at] = max(most[at], found)
                self._ctx.note(step.id, {_FOUND: list(most)})
                if found:
                    self._same_place(step, work.compactions.notes())
                    session.run(f"DELETE FROM {table} WHERE {one}")
            return sum(most)

        rows = self._on_rows(step, copy, work, delete)
        with refusals(step.parameters["location"]):
            after = TableFiles.of(work.files.root).snapshot
        return Outcome({"rows_deleted": rows, "snapshot_before": work.files.snapshot, "snapshot_after": after})

    def _on_rows(
        self, step: Step, copy: Copy | None, work: _Work, act: Callable[[HiveSession, str, list[str]], int]
    ) -> int:
        """Act on the persons' rows in a session that knows the keys. Each condition is of one column, since Hive takes
        no subqueries in an OR."""
        terms = match_of(copy).terms
        keys = {term.key_set: spelled(self._ctx.keyring.key_set(term.key_set)) for term in terms}
        files = KeyFiles.new(self._ctx.estate, work.server.scratch)
        self._ctx.note(step.id, {_PLACE_OF_KEYS: files.place})
        with files.holding(keys) as places, HiveSession(work.notes.catalog, work.server) as session:
            session.run(f"USE {work.notes.schema_name}")
            views = {name: f"{_KEYS}_{number}" for number, name in enumerate(sorted(places))}
            for name, view in views.items():
                session.run(
                    f"CREATE TEMPORARY EXTERNAL TABLE {view} (k STRING) STORED AS TEXTFILE LOCATION '{places[name]}'"
                )
            return act(
                session,
                work.notes.name,
                [f"{_text(t)} IN (SELECT CAST(unbase64(k) AS STRING) FROM {views[t.key_set]})" for t in terms],
            )

    # -- compaction and cleaning -----------------------------------------------------------------------------------

    def _compact(self, step: Step, work: _Work) -> Outcome:
        upto = max((f.last for p in work.files.partitions.values() for f in (*p.live, *p.old)), default=0)
        facts = {_UPTO: upto}
        self._ctx.note(step.id, facts)
        return self._until(
            step, work, lambda files: _uncompacted(files, upto), facts, "Hive's compactor to rewrite partitions"
        )

    def _clean(self, step: Step, work: _Work) -> Outcome:
        upto = self._upto(step)
        if upto is None:
            raise RunError("the compaction did not say which folders it includes", where=step.id, todo="plan again")
        waits = (
            "Hive's cleaner, which waits for readers of old folders, and runs only if hive.compactor.initiator.on is "
            "set"
        )
        return self._until(step, work, lambda files: _uncleaned(files, upto), {}, waits)

    def _until(
        self,
        step: Step,
        work: _Work,
        left_in: Callable[[TableFiles], list[str]],
        facts: dict[str, Any],
        waits: str,
    ) -> Outcome:
        """Wait until nothing is left, and ask for compactions where none is at work on a partition."""
        begun, files, asked = monotonic(), work.files, dict[str, int]()
        known = set(work.notes.partitions) if work.notes.partition_columns else {""}
        # a compaction that is over cannot make it better, but in cleaning it has still to be cleaned
        busy = ACTIVE if step.action is HIVE_ACID_COMPACT else ACTIVE | {CLEANING}
        while left := left_in(files):
            self._same_place(step, work.compactions.notes())
            newest = work.compactions.newest()
            for partition in left:
                state = newest[partition].state if partition in newest else ""
                times = asked.get(partition, 0)
                if state in FAILED and times:
                    raise RunError(
                        f"Hive could not compact a partition: its compaction has the state `{state}`",
                        where=step.parameters["location"],
                        todo=(
                            "find the reason with SHOW COMPACTIONS and in the metastore's log, then run `pii-tracer "
                            "resume`"
                        ),
                    )
                if partition not in known:
                    continue  # a folder of a statement at work, or of a partition that was dropped
                # one that was at work before may not include what was deleted since
                if (state in busy and (times or CLEANING in busy)) or times == _MOST_TIMES:
                    continue
                asked[partition] = times + 1
                work.compactions.start(partition)
            if monotonic() - begun > self.patience.total_seconds():
                states = sorted({newest[one].state if one in newest else "none" for one in left})
                what = f"{waits}: {counted(len(left), 'partition')} of the table, compactions: {', '.join(states)}"
                return Outcome(facts, waiting_until=self._ctx.now() + self.look_again, waits_for=what)
            sleep(self.poll_seconds)
            with refusals(step.parameters["location"]):
                files = TableFiles.of(files.root)
        return Outcome(facts | {"snapshot_before": work.files.snapshot, "snapshot_after": files.snapshot})

    def _upto(self, step: Step) -> int | None:
        """As the compaction of the table has noted it last; it is this step, or one that this step waits for."""
        for one in (step.id, *step.depends_on):
            noted = [int(facts[_UPTO]) for facts in self._ctx.told(one) if _UPTO in facts]
            if noted:
                return noted[-1]
        return None

    def _same_place(self, step: Step, notes: AcidNotes) -> None:
        """Raise `RunError` when the table of the name now has another folder, and so is not the one of the plan."""
        planned, now = hdfs_location(step.parameters["location"]), notes.location
        if not is_hdfs(now) or as_declared(self._ctx.estate.hdfs, hdfs_location(now)) != planned:
            raise RunError(
                "the folder of the table changed, as after DROP and CREATE, or RENAME",
                where=str(planned),
                todo="plan again",
            )

    @contextmanager
    def _table(self, step: Step) -> Iterator[_Work]:
        """A step's table as it is now, with who is asked about it.

        Raises:
            RunError: it is gone or another one, or the estate file does not say who deletes its rows.
        """
        parameters = step.parameters
        catalog = self._ctx.estate.catalogs.get(str(parameters.get("catalog")))
        if catalog is None or catalog.hiveserver2 is None:
            raise RunError(
                "no HiveServer2 is known for the table",
                where=parameters["location"],
                todo="add `hiveserver2` to its catalog in the estate file, then plan again",
            )
        place = hdfs_location(parameters["location"])
        compactions = Compactions(parameters["catalog"], catalog, parameters["database"], parameters["hive_table"])
        try:
            notes = compactions.notes()
            self._same_place(step, notes)
            with refusals(parameters["location"]):
                files = TableFiles.of(HdfsPath(client_at(self._ctx.estate, place), place.path))
            yield _Work(files, notes, compactions, catalog.hiveserver2)
        finally:
            compactions.close()


def _count(session: HiveSession, table: str, conditions: list[str]) -> int:
    """At least so many rows: one that several conditions find counts for each."""
    return sum(session.number(f"SELECT count(*) FROM {table} WHERE {one}") for one in conditions)


def _text(term: MatchTerm) -> str:
    """A key's column as text, for Hive.

    Raises:
        RunError: Hive does not compare such a key here.
    """
    if term.beside or not all(isinstance(access, FieldAccess) for access in term.access):
        raise RunError(f"Hive cannot compare the column `{term.label()}`", todo="waive the gap of this copy")
    parts = [term.column, *(access.name for access in term.access if isinstance(access, FieldAccess))]
    if any("`" in part for part in parts):
        raise RunError(f"Hive's SQL cannot write the name of the column `{term.label()}`", todo="rename it")
    return f"CAST({'.'.join(f'`{part}`' for part in parts)} AS STRING)"


def _uncompacted(files: TableFiles, upto: int) -> list[str]:
    """Partitions of which readers still read a folder from before, beside the base."""
    return [name for name, one in files.partitions.items() if _from_before(one.live, upto)]


def _uncleaned(files: TableFiles, upto: int) -> list[str]:
    """Partitions in which a folder from before is left, whether somebody reads it or not."""
    return [
        name
        for name, one in files.partitions.items()
        if _from_before((*one.live, *one.old), upto) or any(folder.kind == "base" for folder in one.old)
    ]


def _from_before(folders: tuple[AcidFolder, ...], upto: int) -> bool:
    return any(folder.kind != "base" and folder.first <= upto for folder in folders)
