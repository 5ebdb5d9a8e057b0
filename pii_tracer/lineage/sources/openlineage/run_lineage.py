"""What runs of jobs put into the ledger, and what their events leave open."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable

from pii_tracer.lineage.graph.edges import RENAME, Subtype
from pii_tracer.lineage.sources.dataset_descriptions import Change
from pii_tracer.lineage.sources.evidence_merging import Proof
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.openlineage.events import Events
from pii_tracer.lineage.sources.openlineage.left_out_columns import LeftOut, LeftOutColumns
from pii_tracer.lineage.sources.openlineage.run_merging import Ended, Run
from pii_tracer.lineage.sources.openlineage.told_dataset_pairs import Kin, Kindred, ToldPairs
from pii_tracer.lineage.sources.statement_facts import Mended, Told
from pii_tracer.lineage.sql.statement_effects import Effect
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.gap_kinds import LineageGapKind

_SQL = "the job's SQL, or an event with its columns (docs/lineage-sources.md#jobs-whose-events-say-too-little)"
_INTO_PARTITION = re.compile(r"\bINSERT\s+(?:OVERWRITE|INTO)\b[^()';]*\bPARTITION\s*\(", re.IGNORECASE)
_MAY = {
    Ended.COMPLETE: "wrote it",
    Ended.FAILED: "may have written it (the run failed)",
    Ended.OPEN: "may have written it (no event says that the run ended)",
    Ended.DECLARED: "wrote it, according to an event",
}


def tell_run(run: Run, ledger: Ledger) -> None:
    """Edges, memberships and jobs."""
    for source, target, subtype, masking in run.edges:
        origin, goal = ledger.column(source), ledger.column(target)
        if (origin, goal) != (source, target) and subtype is Subtype.IDENTITY:  # of a part of the column alone
            subtype = Subtype.TRANSFORMATION
        if origin != goal:
            ledger.edge(origin, goal, subtype, masking, run.proof)
    for column, dataset, subtype in run.members:
        ledger.member(ledger.column(column), dataset, subtype, run.proof)
    for output in run.outputs:
        ledger.columns.setdefault(output, ())
        inputs = run.inputs - {output}
        if inputs:  # without them an empty table was made, or constants went in
            ledger.job(run.proof.job, None, inputs, output, run.proof)
        if made := tuple(sorted((c.column, "") for c in run.made if c.dataset == output)):
            ledger.job(run.proof.job, None, inputs, output, run.proof, filled=made)
    for dataset in run.inputs:
        ledger.columns.setdefault(dataset, ())


def tell_silent(events: Events, ledger: Ledger, mended: Mended, told: Iterable[Told]) -> None:
    """Jobs that write a dataset, of which no event names an input, and nothing tells what comes into its columns.

    A run that reads what it writes changes rows that are there. What runs as the steps of a job is told by these. So
    are rows that a statement takes in (MSCK), where a run or a statement is known to write them to the folder. A script
    that writes a partition by its name takes in what it wrote.
    """
    statements = list(told)
    put: set[DatasetId | None] = {output for run in events.runs for output in run.placed - run.kept}
    own: set[tuple[str, DatasetId | None]] = set()
    for one in statements:
        if one.made.effect in (Effect.REPLACE, Effect.APPEND) and "/" in (one.made.output or ""):
            put.add(_written(one, ledger))
        elif one.in_script and not one.failed and _INTO_PARTITION.search(one.made.sql):
            own.add((one.proof.job, _written(one, ledger)))
    for one in statements:
        output = _written(one, ledger) if one.made.filling.takes_in else None
        if output is not None and output not in put and (one.proof.job, output) not in own:
            ledger.job(f"{one.proof.job} (MSCK)", None, frozenset(), output, one.proof)
    steps = _steps(events, _writing(events.runs))
    for run in events.runs:
        if run.inputs:
            continue
        for output in mended.unwritten(run) - run.told - run.kept - steps[run.proof.job]:
            ledger.job(run.proof.job, None, frozenset(), output, run.proof)


def _written(one: Told, ledger: Ledger) -> DatasetId | None:
    name = one.made.output or ""
    return one.own.of(name) or ledger.identities.of_rows(name, written=True)


def tell_changes(changes: Iterable[Change], ledger: Ledger) -> None:
    """Everything of a renamed dataset is the new one's, and was the old one's. Whatever changed or was dropped stays a
    dataset.
    """
    for change in changes:
        ledger.columns.setdefault(change.dataset, ())
        if change.change == "RENAME" and change.previous is not None and change.previous != change.dataset:
            _renamed(change.previous, change.dataset, ledger)


def _renamed(old: DatasetId, new: DatasetId, ledger: Ledger) -> None:
    proof = Proof("openlineage", RENAME, (0, f"rename of {old}"), (0, f"rename of {old}"))
    columns = ledger.columns.get(new) or ledger.columns.get(old) or ()
    names = {column.name.lower() for column in ledger.columns.get(old) or columns}
    for column in columns:
        source, target = (ColumnId(dataset=d, column=column.name) for d in (old, new))
        ledger.edge(source, target, Subtype.IDENTITY, False, proof)
        if column.name.lower() in names:  # it was the same table: what was made of it then was made of these rows
            ledger.edge(target, source, Subtype.IDENTITY, False, proof)
    ledger.job(RENAME, None, frozenset({old}), new, proof)
    if not columns:
        reason = f"{old} was renamed to it, but the columns of both are unknown"
        ledger.gap(new, LineageGapKind.NO_COLUMNS, reason, proof, "add the columns of the table to a catalog")


def tell_gaps(events: Events, ledger: Ledger, mended: Mended) -> None:
    """What the events leave open, unless SQL, or other runs of the job, say it."""
    siblings = _writing(events.runs)
    jobs = frozenset(run.proof.job for run in events.runs)
    values, rows = (ToldPairs(ledger, jobs, by_rows=by_rows) for by_rows in (False, True))
    left_out, steps, kindred = LeftOutColumns(ledger), _steps(events, siblings), Kindred(events.notes.parents)
    for run in events.runs:
        unwritten = mended.unwritten(run) if run.unread else frozenset()
        if unwritten or (run.unread and not run.outputs and not mended.whole(run)):
            _not_read(run, sorted(unwritten), ledger)
        for dataset, reason in run.wrong:
            text = f"an event of {run.proof.job or 'a dataset'} does not follow the specification: {reason}"
            ledger.gap(
                dataset,
                LineageGapKind.MALFORMED_EVENT,
                text,
                run.proof,
                "correct the sender of these events, then harvest again",
            )
        kin = kindred.of(run.proof.job)
        if run.inputs and not run.outputs:
            if not _is_test(run) and not mended(run, kin) and not _known(run, siblings[run.proof.job]):
                _no_outputs(run, ledger)
            continue
        # columns can be told and leave out what was read through a function nobody sees into
        unseen = run.inputs - run.outputs
        for output in run.outputs:
            unseen = rows.untold(unseen, output, kin)
        for output in sorted(run.outputs):
            silent = unseen if output in run.told else values.untold(run.inputs, output, kin)
            silent = silent - {output} - _by_steps(output, steps[run.proof.job], values, kin)
            if silent:
                _no_columns(run, output, sorted(silent), ledger)
            elif output in run.told:
                for found in left_out.of(run, output):
                    _left_out(run, output, found, ledger)
            if run.code and not (run.inputs or run.sql or run.told or output in steps[run.proof.job]):
                _no_inputs(run, output, ledger)


def _steps(events: Events, writing: dict[str, list[Run]]) -> dict[str, set[DatasetId]]:
    """What the children of each job write: https://openlineage.io/docs/spec/facets/run-facets/parent_run."""
    found: dict[str, set[DatasetId]] = defaultdict(set)
    for one in events.notes.parents:
        for run in writing.get(one.job, ()):
            found[one.parent] |= run.outputs
    return found


def _by_steps(output: DatasetId, steps: Collection[DatasetId], values: ToldPairs, kin: Kin) -> set[DatasetId]:
    """What a dataset is made of by way of the steps of a job."""
    found: set[DatasetId] = set()
    left = [output] if output in steps else []
    while left:
        sources = values.into(left.pop(), kin) - found
        found |= sources
        left += (source for source in sources if source in steps)
    return found


def _writing(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Runs that name outputs, by job."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if run.outputs:
            found[run.proof.job].append(run)
    return found


def _known(run: Run, siblings: list[Run]) -> bool:
    """A run that broke off said what other runs of its job say first, and these all write the same datasets.

    A job that is only described is known once anybody names what it writes.
    """
    if run.ended in (Ended.COMPLETE, Ended.DECLARED):
        return run.ended is Ended.DECLARED and bool(siblings)
    return any(run.parts < s.parts for s in siblings) and len({s.outputs for s in siblings}) == 1


def _is_test(run: Run) -> bool:
    """A test, which writes no rows: one of dbt (job `project.….test`, four parts or more), or one whose inputs are all
    checked by what does nothing else (`is_checked`), and which completed. No code is told of it.
    """
    if run.inputs <= run.checked and not run.code and run.ended is Ended.COMPLETE:
        return True
    return run.proof.job.endswith(".test") and run.proof.job.count(".") >= 3 and not run.sql and not run.code


def _no_outputs(run: Run, ledger: Ledger) -> None:
    names = ", ".join(str(d) for d in sorted(run.inputs))
    reason = f"job {run.proof.job} read {names}, but its events name no output{_code(run)}"
    ledger.gap(None, LineageGapKind.NO_OUTPUTS, reason, run.proof, f"add {_SQL}")


def _no_columns(run: Run, output: DatasetId, missing: list[DatasetId], ledger: Ledger) -> None:
    names = ", ".join(map(str, missing))
    reason = f"job {run.proof.job} {_MAY[run.ended]} from {names}, but no event names the columns{_code(run)}"
    ledger.gap(output, LineageGapKind.NO_COLUMNS, reason, run.proof, f"add {_SQL}")


def _left_out(run: Run, output: DatasetId, found: LeftOut, ledger: Ledger) -> None:
    """Columns of which nothing is told, although others are: their producer did not see through."""
    which = "that may be its columns under other names" if found.renamed else "that both have"
    reason = (
        f"job {run.proof.job} {_MAY[run.ended]} from {found.source}, but its events leave out columns {which}: "
        f"{', '.join(found.columns)}"
    )
    ledger.gap(output, LineageGapKind.NO_COLUMNS, reason, run.proof, f"add {_SQL}")


def _not_read(run: Run, outputs: Collection[DatasetId], ledger: Ledger) -> None:
    what = " and ".join(run.unread)
    reason = f"the events of job {run.proof.job} report that the sender could not read {what}{_code(run)}"
    for output in outputs or (None,):
        ledger.gap(output, LineageGapKind.NO_COLUMNS, reason, run.proof, f"add {_SQL}")


def _no_inputs(run: Run, output: DatasetId, ledger: Ledger) -> None:
    reason = f"job {run.proof.job} {_MAY[run.ended]}, but no event names its inputs{_code(run)}"
    ledger.gap(output, LineageGapKind.NO_COLUMNS, reason, run.proof, f"add {_SQL}, or declare its inputs")


def _code(run: Run) -> str:
    return f"; its source code ({', '.join(run.code)}) is not read" if run.code else ""
