"""Bare folders: the files that hold the person are written again, each swapped in whole.

Without the person's rows; or, where a hold keeps columns, with these rows and NULL in all else of them.

Parquet, ORC, Avro, CSV and JSON lines, with the codec they have. There is no delete in these formats (hazards F1,
F2b, F3). A file is read and written in pieces: row groups, stripes, blocks or lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq

from executors.context import ExecutionContext
from executors.engine.local_files import (
    TEMPORARY,
    files_below,
    local_path,
    refusal,
    refuse_nested,
    state_of,
    swap,
)
from executors.engine.mask_sql import mask_of, nobodys, treated
from executors.engine.match_sql import match_of
from executors.formats.files_read_by_others import read_by
from executors.formats.plain_files import parquet_rewrite, parquet_summary_files, sink_log
from executors.formats.plain_files.arrow_match import BY_HAND, Keys, KeySource, Nobodys, RowsError, keys_of
from executors.formats.plain_files.derived_folder_rebuild import FolderRebuild
from executors.formats.plain_files.hive_text import text_rewrite
from executors.formats.plain_files.parquet_dictionaries import Holds
from executors.formats.plain_files.parquet_surgery.rewriting import (
    Original,
    Persons,
    facts_of,
    read_back,
    scratch_beside,
    write_again,
)
from executors.formats.plain_files.rewriters import MODULES
from executors.formats.plain_files.row_masking import lasting
from executors.formats.plain_files.spark_support import PlainFilesOnSpark
from executors.sweep.table_folders import refusals
from pii_tracer.common.parquet_file_checks import is_encrypted_file
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.plain_files.data_file import file_sha256
from pii_tracer.lake.formats.plain_files.rewritten_files import ENDINGS, is_rewritten
from pii_tracer.lake.inventory import ENCODING, TableState
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format, Match
from pii_tracer.model.errors import RunError
from pii_tracer.model.hive_text.layout import TextTable, text_of
from pii_tracer.model.plan import Copy, Mask, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress
from pii_tracer.run.masked_place_names import shown_path, without_partition_values

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Task:
    """How rows are found in a step's files, and what becomes of them: they go, or stay by `mask`.

    options: how text is to be read. holds: whether a text has any value of the plan's persons in it. nobodys: columns
    of other systems' numbers. folder: of the table. text: of one whose columns a catalog names.
    """

    kind: Format
    match: Match
    keys: Keys
    strong: frozenset[str]
    mask: Mask | None
    options: Mapping[str, str]
    holds: Holds
    nobodys: Nobodys
    folder: Path
    text: TextTable | None = None

    def rewriting(self, path: Path) -> tuple[Any, Mapping[str, Any]]:
        """The module that writes a file again, and how its text is read there.

        Raises:
            RowsError: the catalog did not name the file's folder.
        """
        if self.text is None:
            return MODULES[self.kind], self.options
        text = self.text.of(path.parent.relative_to(self.folder))
        if text is None:
            raise RowsError("the folder of the file is not a partition of the table", todo="plan again")
        return text_rewrite, {"text": text, "name": path.name}


@dataclass(frozen=True)
class _Rows:
    """before: all rows of a file. after: those that stay as they are."""

    before: int
    after: int
    stale: bool = False

    @property
    def changed(self) -> bool:
        """Whether the file has to be written again."""
        return self.after != self.before or self.stale


class FilesExecutor:
    """FILES_REWRITE, FILES_MASK_ROWS and FILES_REBUILD.

    A crash leaves the old file (or folder) or the new one, never half of one.
    """

    name = "files"
    spark_support = PlainFilesOnSpark()

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` for formats that are not supported, folders that are not there, or tables inside one.

        A table's files are its log's: one that is written again in place is no longer what the log says.
        """
        with refusals(step.parameters["location"]):
            self._check(step)

    def _check(self, step: Step) -> None:
        if step.action is Action.FILES_REBUILD:
            FolderRebuild(self._ctx, step.parameters).check()
            return
        if step.action not in (Action.FILES_REWRITE, Action.FILES_MASK_ROWS) or _format(step) not in ENDINGS:
            raise RunError(
                f"{step.action} of {step.parameters.get('format')} files is not supported yet",
                where=step.parameters.get("location"),
                todo="let the folder's job rewrite it, then plan again",
            )
        if not local_path(step.parameters["location"]).is_dir():
            raise RunError("the folder does not exist", where=step.parameters["location"], todo="plan again")
        refuse_nested(local_path(step.parameters["location"]))
        sink_log.stale(local_path(step.parameters["location"]))
        parquet_summary_files.refuse_unreadable(local_path(step.parameters["location"]))

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Write every file that holds the person again; facts have the hashes before and after, and row counts."""
        with refusals(step.parameters["location"]):
            return self._run(step, copy)

    def _run(self, step: Step, copy: Copy | None) -> Outcome:
        if step.action is Action.FILES_REBUILD:
            return Outcome(FolderRebuild(self._ctx, step.parameters).run())
        rewritten: list[dict[str, Any]] = []
        folder, task = local_path(step.parameters["location"]), self._task(step, copy)
        for stale in self._leftovers(step):
            stale.unlink(missing_ok=True)
        spared = read_by(self._ctx, step.parameters.get("sharing", ()))
        # what stands against one file stands against all of them, before the first is touched
        before = {path: state_of(path) for path in self._files(step)}
        todo = {path: rows for path in before if (rows := _guarded(task, path, _survey)).changed}
        self._refuse_rows_without_owner(task, todo)
        for path in todo:
            if str(path) in spared:
                raise RunError(
                    "a table still reads this file, and a rewrite of the file would break that table",
                    where=shown_path(str(path.relative_to(folder))),
                    todo="erase that table first; if it was erased, check its branches and tags",
                )
        # before the first swap: readers that trust a summary must never meet files that it does not describe
        summaries = parquet_summary_files.remove_stale(folder, todo)
        for path, rows in todo.items():
            digest = file_sha256(path)
            made = _guarded(task, path, partial(_rewrite, before=before[path]))
            rewritten.append(
                {
                    "file": without_partition_values(str(path.relative_to(folder))),
                    "sha256_before": digest,
                    "sha256_after": file_sha256(path),
                    "rows_before": rows.before,
                    "rows_after": rows.before if task.mask else rows.after,
                    **made,
                }
            )
        changed = sum(rows.before - rows.after for rows in todo.values())
        facts = {"files": rewritten, "files_rewritten": len(rewritten)}
        facts |= {"rows_masked": changed} if task.mask else {"rows_deleted": changed}
        # also for files that an earlier session wrote, and died
        logs = sink_log.renew(folder)
        beside = {"sink_logs_rewritten": logs, "summaries_removed": summaries}
        return Outcome(facts | {name: count for name, count in beside.items() if count})

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Read every file again."""
        with refusals(step.parameters["location"]):
            return self._verify(step, copy)

    def _verify(self, step: Step, copy: Copy | None) -> Check:
        if step.action is Action.FILES_REBUILD:
            differs = FolderRebuild(self._ctx, step.parameters).findings()
            return Check(not differs, tuple(differs))
        task = self._task(step, copy)
        left = [path for path in self._files(step) if _guarded(task, path, _survey).changed]
        stale = [p.name for p in self._leftovers(step)]
        what = "values of the person in columns that are not kept" if task.mask else "the person"
        findings = [f"{counted(len(left), 'file still contains', 'files still contain')} {what}"] if left else []
        findings += [f"temporary file {s} is left" for s in stale]
        folder = local_path(step.parameters["location"])
        logs = sink_log.stale(folder)
        findings += [f"a file size in the streaming sink's log {log.name} differs from the file" for log in logs]
        if summaries := parquet_summary_files.stale(folder):
            findings.append(
                f"{counted(len(summaries), 'summary differs', 'summaries differ')} from the files (_metadata)"
            )
        return Check(not findings, tuple(findings))

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """After a crash: files that are done are not touched again."""
        if step.action is not Action.FILES_REBUILD and self._leftovers(step):
            return Progress.PARTIAL
        return Progress.DONE if self.verify(step, copy).ok else Progress.PARTIAL

    def _files(self, step: Step) -> list[Path]:
        return _data_files(local_path(step.parameters["location"]), _format(step), text_of(step.parameters))

    def _leftovers(self, step: Step) -> list[Path]:
        folder = local_path(step.parameters["location"])
        return [p for p in files_below(folder) if p.name.startswith(TEMPORARY)]

    def _task(self, step: Step, copy: Copy | None) -> _Task:
        copy = treated(step, copy)
        match = match_of(copy)
        keys, strong = keys_of(self._ctx.keyring, match)
        mask = mask_of(copy) if step.action is Action.FILES_MASK_ROWS else None
        nobodys = self._ctx.nobodys(copy)
        folder, text = local_path(step.parameters["location"]), text_of(step.parameters)
        how = (_options(step), self._ctx.holds, nobodys, folder, text)
        return _Task(_format(step), match, keys, strong, mask, *how)

    def _refuse_rows_without_owner(self, task: _Task, todo: Mapping[Path, _Rows]) -> None:
        """Rows that only a column finds which becomes NULL would be nobody's afterwards."""
        if task.mask is None or not task.mask.held:  # of a row that is somebody else's nobody looks for an owner
            return
        stays = lasting(task.match, task.mask)
        lost = 0
        for path, rows in todo.items():
            lost += rows.before - rows.after - _found(replace(task, match=stays), path)
        if lost:
            raise nobodys(lost, task.match, stays, "")


def rehearse(state: TableState, match: Match, source: KeySource, mask: Mask | None = None) -> None:
    """Read every file of a bare folder as the step will that writes it again, before anything is approved.

    mask: of rows that stay because they are other people's, too.

    Raises:
        RunError: as the step would, for the first file that it refuses.
    """
    folder, text = local_path(state.location), text_of(state.properties)
    encoding = state.properties.get(ENCODING)
    options = {"encoding": encoding} if encoding else {}
    # what is stale beside the rows is written again, and is no reason to refuse
    task = _Task(state.format, match, *keys_of(source, match), mask, options, lambda _: False, {}, folder, text)
    with refusals(state.location):
        for path in _data_files(folder, state.format, text):
            _guarded(task, path, _survey)


def _data_files(folder: Path, kind: Format, text: TextTable | None) -> list[Path]:
    """What readers take for data, whatever its name ends in, and hidden files that look like data.

    Of a text table only folders that the catalog names have rows; verification searches all others.
    """
    return [
        path
        for path in files_below(folder)
        if not path.name.startswith(TEMPORARY)
        and is_rewritten(path.relative_to(folder), kind)
        and (text is None or text.of(path.parent.relative_to(folder)))
    ]


def _guarded(task: _Task, path: Path, act: Callable[[_Task, Path], _T]) -> _T:
    """Do something with one file; the libraries' messages can quote data, so only their kind is told."""
    try:
        return act(task, path)
    except RunError as error:
        raise RunError(error.what, where=shown_path(str(path)), todo=error.todo) from None
    except Exception as error:
        if isinstance(error, OSError) and (refused := refusal(error, str(path))):
            raise refused from None
        what = f"the file cannot be read as {task.kind}: {type(error).__name__}"
        raise RunError(what, where=shown_path(str(path)), todo=BY_HAND) from None


def _format(step: Step) -> Format:
    return Format(step.parameters["format"])


def _options(step: Step) -> dict[str, str]:
    """How the text of a file is to be read, where the plan says it (CSV)."""
    encoding = step.parameters.get("encoding")
    return {"encoding": str(encoding)} if encoding else {}


def _survey(task: _Task, path: Path) -> _Rows:
    if not path.stat().st_size:  # what a writer leaves that dies at once; readers pass over it
        return _Rows(0, 0)
    if task.kind is Format.PARQUET:
        if is_encrypted_file(path):
            raise RowsError(parquet_rewrite.ENCRYPTED, todo=BY_HAND)
        seen = parquet_rewrite.survey(
            lambda **options: pq.ParquetFile(path, **options),
            task.match,
            task.keys,
            task.strong,
            task.mask,
            task.holds,
            task.nobodys,
        )
        return _Rows(seen.before, seen.after, seen.stale)
    module, options = task.rewriting(path)
    before, after, _ = module.survey(path, task.match, task.keys, task.mask, **options)
    return _Rows(before, after)


def _found(task: _Task, path: Path) -> int:
    """Rows of a file that hold more than what is kept, and are found by what is kept."""
    try:
        rows = _survey(task, path) if task.match.terms else _Rows(0, 0)
    except RowsError:  # the file was surveyed a moment ago, by more columns: none of those that stay is in it
        return 0
    return rows.before - rows.after


def _rewrite(task: _Task, path: Path, before: tuple[int, ...]) -> dict[str, Any]:
    """Write beside the file, read back, put in its place; how, for the journal. The temporary name starts with `_`:
    readers pass over it. before: the file's state when it was not yet surveyed."""
    told: dict[str, Any] = {}
    temporary = path.with_name(TEMPORARY + path.name)
    temporary.touch(mode=0o600)
    how = (task.match, task.keys, task.mask)
    if task.kind is Format.PARQUET:
        persons = Persons(task.match, task.keys, task.strong, task.mask, task.holds, task.nobodys)
        with Original.at(path) as old:
            with temporary.open("w+b") as sink:
                made = write_again(old, sink, lambda: scratch_beside(path), persons)
            with Original.at(temporary) as new:
                read_back(old, new, made, persons)
        told = facts_of(made)
    else:
        module, options = task.rewriting(path)
        module.write(path, temporary, *how, **options)
        module.compare(path, temporary, *how, **options)
    swap(path, temporary, before)
    return told
