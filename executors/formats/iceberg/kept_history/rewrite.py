"""Every snapshot of a table without a person, with the id, time and name that it has (`iceberg_rewrite_history`).

New data files, manifests and manifest lists are written beside the old ones. Then one metadata file that names them
counts in place of the old one, by compare-and-swap in the table's catalog: readers see the old history or the new one.
A run that dies before has changed nothing that anybody reads; what it wrote is found by its name and goes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import UUID

from executors.catalogs.metadata_pointer import MetadataPointer
from executors.catalogs.registry import spark_catalog_of
from executors.context import ExecutionContext
from executors.engine.local_files import files_below
from executors.engine.match_sql import match_of
from executors.formats.iceberg.kept_history.data_files import Persons, metrics_of
from executors.formats.iceberg.kept_history.manifests import (
    Changes,
    NewManifest,
    Replacement,
    partition_summaries,
    rewritten_list,
    rewritten_manifest,
)
from executors.formats.iceberg.kept_history.new_files import NewFiles, is_left_over
from executors.formats.iceberg.kept_history.summary_counts import corrected, counts
from executors.formats.plain_files.arrow_match import keys_of
from executors.formats.plain_files.parquet_rewrite import Seen
from executors.formats.table_executor import name_of
from executors.sweep.table_folders import refusals
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.iceberg.history_files import Container, Entry, History, Listed
from pii_tracer.lake.formats.iceberg.history_rewrite_check import obstacles
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg, newest_metadata
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.locations import placed
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress
from pii_tracer.run.masked_place_names import shown_path

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable

_STATISTICS = ("statistics", "partition-statistics")
_NOTE = "metadata_file"


@dataclass(frozen=True)
class HistoryRewrite:
    """One ICEBERG_REWRITE_HISTORY step."""

    ctx: ExecutionContext
    step: Step
    copy: Copy | None

    # -- the executor's protocol ---------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise `RunError` where the history cannot be written again as a whole. Nothing is written before."""
        with refusals(self._folder):
            history = self._history()
            self._refuse(history)
            self._surveyed(history)

    def run(self) -> Outcome:
        """Write what holds the persons again, and have it count.

        Raises:
            RunError: something cannot be written as it was, or somebody else has committed meanwhile.
        """
        with refusals(self._folder):
            history = self._history()
            self._refuse(history)
            self._remove_left_overs(history)
            surveyed = self._surveyed(history)
            held = {path: seen for path, seen in surveyed.items() if seen.changes}
            dangling = _dangling(history)
            statistics = sum(len(history.document.get(kind) or ()) for kind in _STATISTICS)
            facts = {
                "snapshots": len(history.lists),
                "files_rewritten": sum(seen.after > 0 for seen in held.values()),
                "files_emptied": sum(not seen.after for seen in held.values()),
                "rows_deleted": sum(seen.before - seen.after for seen in held.values()),
                "statistics_dropped": statistics,
                "entries_of_lost_files_dropped": dangling,
            }
            if held or dangling or statistics:
                facts |= self._swapped(history, held)
            return Outcome(facts)

    def verify(self) -> Check:
        """Read every data file of every snapshot again, by what the catalog points at now."""
        with refusals(self._folder):
            history = self._history()
            self._refuse(history)
            left = sum(seen.changes for seen in self._surveyed(history).values())
            findings = [f"the person is still in {counted(left, 'data file')} of its snapshots"] if left else []
            if dangling := _dangling(history):
                findings.append(
                    f"manifests have {counted(dangling, 'entry', 'entries')} of deleted files that no snapshot reads"
                )
            findings += [f"the metadata names files of {kind}" for kind in _STATISTICS if history.document.get(kind)]
            findings += (
                [f"{counted(len(found), 'file')} remaining from an unfinished rewrite"]
                if (found := self._left_overs(history))
                else []
            )
            return Check(not findings, tuple(findings), {"snapshots": len(history.lists)})

    def probe(self) -> Progress:
        """After a crash: the swap has come, or nothing has changed for anybody."""
        return Progress.DONE if self.verify().ok else Progress.PARTIAL

    # -- what is there ---------------------------------------------------------------------------------------------

    @property
    def _folder(self) -> Path:
        return placed(self.step.parameters["location"])

    @cached_property
    def _pointer(self) -> MetadataPointer:
        name = name_of(
            self.step, "no catalog of the estate file has a name for this Iceberg table", "declare its catalog"
        )
        key, *parts = name.split(".")
        catalog = self.ctx.estate.catalogs.get(key)
        pointer = None
        if catalog is not None:
            adapter = spark_catalog_of(catalog.type)
            newest = partial(newest_metadata, self._folder)
            pointer = adapter.metadata_pointer(key, catalog, self.ctx.base, tuple(parts), newest)
        if pointer is None:
            raise RunError(
                "the table's catalog cannot replace its metadata file by compare-and-swap",
                where=name,
                todo="remove the table from `keep_history`, then plan again",
            )
        return pointer

    def _history(self) -> History:
        try:
            return History.read(placed(self._pointer.current()))
        except EstateError as error:
            raise RunError(error.what, where=error.where, todo=error.todo) from None

    def _refuse(self, history: History) -> None:
        found = list(obstacles(history, self._folder))
        if not history.metadata.resolve().is_relative_to(self._folder.resolve()):
            found.append("its metadata file is outside of its folder")
        planned = int(self.step.parameters.get("snapshots", 0))
        if len(history.lists) < planned:
            found.append(f"it has {counted(len(history.lists), 'snapshot')}, but had {planned} when the plan was made")
        if found:
            raise RunError(
                f"the table's history cannot be kept: {found[0]}",
                where=str(self._folder),
                todo="fix this, then plan again",
            )

    def _table(self, history: History) -> StaticTable:
        return load_iceberg(self._folder, history.metadata)

    def _persons(self, history: History) -> Persons:
        match = match_of(self.copy)
        keys, strong = keys_of(self.ctx.keyring, match)
        table = self._table(history)
        nobodys = self.ctx.nobodys(self.copy)
        return Persons(match, keys, strong, self.ctx.holds, table.schema(), table.properties, nobodys)

    def _surveyed(self, history: History) -> dict[Path, Seen]:
        persons = self._persons(history)
        return {path: persons.survey(path) for path in sorted(history.live)}

    def _left_overs(self, history: History) -> list[Path]:
        """New files of a run that died before its swap, or that was refused."""
        named = history.named
        found = [path for path in files_below(self._folder) if is_left_over(path) and path.resolve() not in named]
        current = history.metadata.resolve()
        noted = {placed(str(facts[_NOTE])) for facts in self.ctx.told(self.step.id) if _NOTE in facts}
        log = {placed(str(one["metadata-file"])) for one in history.document.get("metadata-log") or ()}
        return found + [path for path in noted if path.exists() and path.resolve() != current and path not in log]

    def _remove_left_overs(self, history: History) -> None:
        for path in self._left_overs(history):
            path.unlink(missing_ok=True)

    # -- what is written -------------------------------------------------------------------------------------------

    def _swapped(self, history: History, held: Mapping[Path, Seen]) -> dict[str, Any]:
        before = self._pointer.current()
        if placed(before) != history.metadata:
            raise self._overtaken()
        files = NewFiles(UUID(history.document["table-uuid"]), f"{self.step.id}\n{before}")
        unique = files.unique("metadata")
        successor = self._pointer.successor(before, unique)
        if str(unique) in successor:  # a numbered file is whole and counts, or is not there
            self.ctx.note(self.step.id, {_NOTE: successor})
        try:
            document, facts = self._written(history, files, held)
            taken = self._pointer.swap(before, successor, json.dumps(document).encode())
        except Exception:
            # a catalog that answers with an error may have taken it all the same
            if placed(self._pointer.current()) != placed(successor):
                files.discard()
            raise
        if not taken:
            files.discard()
            raise self._overtaken()
        return facts

    def _overtaken(self) -> RunError:
        return RunError(
            "a different writer committed to the table while its history was rewritten; the step changed nothing",
            where=str(self.step.parameters["table"]),
            todo="stop the writer, then run `pii-tracer resume`, which reads the history again",
        )

    def _written(
        self, history: History, files: NewFiles, held: Mapping[Path, Seen]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The new metadata file's document, when all that it names is written."""
        changes = Changes(self._data_files(history, files, held), frozenset(history.live))
        manifests = self._manifests(history, files, changes)
        snapshots, lists = [], 0
        for snapshot in history.document["snapshots"]:
            number = int(snapshot["snapshot-id"])
            listed = history.lists[number]
            if any(one.path in manifests for one in listed):
                snapshot, lists = self._snapshot(snapshot, listed, history, files, manifests), lists + 1
            snapshots.append(snapshot)
        document = {**history.document, "snapshots": snapshots, "last-updated-ms": self._now(history)}
        # the log's files name old files, and so do sketches and partition statistics, which hold values
        document |= {name: [] for name in ("metadata-log", *_STATISTICS) if name in document}
        return document, {"manifests_rewritten": len(manifests), "manifest_lists_rewritten": lists}

    def _now(self, history: History) -> int:
        return max(int(time.time() * 1000), int(history.document["last-updated-ms"]) + 1)

    def _data_files(self, history: History, files: NewFiles, held: Mapping[Path, Seen]) -> dict[Path, Replacement]:
        persons, found = self._persons(history), {}
        live = history.live
        for path, seen in held.items():
            new = placed(files.beside(live[path].text, ".parquet"))
            if not seen.after:
                found[path] = Replacement(new.name, None)
                continue

            def write(sink: IO[bytes], old: Path = path) -> None:
                persons.write(old, sink)

            files.put(path, new, write)
            measured = metrics_of(new, persons.properties)
            if measured.rows != seen.after:
                raise RunError(
                    "a rewritten data file has a wrong number of rows",
                    where=shown_path(str(new)),
                    todo="report this",
                )
            if persons.survey(new).changes:
                raise RunError(
                    "a snapshot has rows with a value of the person that the plan does not find",
                    where=shown_path(str(path)),
                    todo=(
                        "expire the snapshots that contain the value, or remove the table from `keep_history`; then "
                        "plan again"
                    ),
                )
            found[path] = Replacement(new.name, measured)
        return found

    def _manifests(self, history: History, files: NewFiles, changes: Changes) -> dict[Path, NewManifest | None]:
        found: dict[Path, NewManifest | None] = {}
        metadata = self._table(history)
        for listed in {one.path: one for each in history.lists.values() for one in each}.values():
            entries = history.manifests[listed.path]
            if not changes.touch(entries):
                continue
            after = tuple(entry for one in entries if (entry := changes.of(one)) is not None)
            if not after:
                found[listed.path] = None
                continue
            text, data = files.beside(listed.text, "-m0.avro"), rewritten_manifest(listed.path, changes, entries)
            files.put(listed.path, placed(text), _bytes(data))
            same = {one.partition for one in after} == {one.partition for one in entries}
            old = Container.read(listed.path)
            summaries = None if same else partition_summaries(metadata.io, metadata.metadata, old, text, listed.spec)
            found[listed.path] = NewManifest(text, len(data), after, summaries)
        return found

    def _snapshot(
        self,
        snapshot: Mapping[str, Any],
        listed: tuple[Listed, ...],
        history: History,
        files: NewFiles,
        manifests: Mapping[Path, NewManifest | None],
    ) -> dict[str, Any]:
        number, old = int(snapshot["snapshot-id"]), str(snapshot["manifest-list"])
        text = files.beside(old, "-list.avro")
        data = rewritten_list(placed(old), manifests)
        files.put(placed(old), placed(text), _bytes(data))
        changed = {**snapshot, "manifest-list": text}
        if snapshot.get("summary"):
            before = counts(_of_snapshot(listed, lambda one: history.manifests[one.path]), number)
            after = counts(_of_snapshot(listed, lambda one: _entries_now(one, history, manifests)), number)
            changed["summary"] = corrected(snapshot["summary"], before, after)
        return changed


def _bytes(data: bytes) -> Any:
    return lambda sink: sink.write(data)


def _dangling(history: History) -> int:
    """Entries of deleted files that no snapshot reads any more: their bounds are of nobody knows whom."""
    live = history.live
    return sum(entry.path not in live for entries in history.manifests.values() for entry in entries)


def _entries_now(one: Listed, history: History, manifests: Mapping[Path, NewManifest | None]) -> tuple[Entry, ...]:
    if one.path not in manifests:
        return history.manifests[one.path]
    new = manifests[one.path]
    return new.entries if new is not None else ()


def _of_snapshot(listed: tuple[Listed, ...], entries: Any) -> Iterator[Entry]:
    """Entries of all manifests of a snapshot, each with the snapshot that added or deleted its file."""
    for one in listed:
        for entry in entries(one):
            yield entry if entry.snapshot is not None else replace(entry, snapshot=one.added_by)
