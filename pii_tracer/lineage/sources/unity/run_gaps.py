"""What runs of a workspace put into the ledger, and what their rows leave open.

It is looked at by each run's own rows. What another source tells of the same datasets may be another job, so that it
closes nothing here; and these rows close nothing that events or SQL leave open: they are told after these.
"""

from __future__ import annotations

from collections.abc import Iterable

from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.openlineage.left_out_columns import LeftOutColumns
from pii_tracer.lineage.sources.openlineage.run_lineage import tell_run
from pii_tracer.lineage.sources.statement_facts import Mended
from pii_tracer.lineage.sources.unity.runs import Noted
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import LineageGapKind

_SQL = "add the job's SQL, and list the job under `told_elsewhere` of `lineage.unity`"


def tell_noted(noted: Iterable[Noted], ledger: Ledger, mended: Mended) -> None:
    """Edges, jobs and gaps."""
    for one in noted:
        if one.nothing_new:
            continue
        tell_run(one.run, ledger)
        for output in one.run.outputs:
            _written(one, output, ledger)
        if not one.run.outputs and not (one.by_word and mended(one.run, {one.run.proof.job})):
            reason = f"job {one.run.proof.job} read {_listed(one.run.inputs)}, but no row names a target"
            ledger.gap(None, LineageGapKind.NO_OUTPUTS, f"{reason}{_code(one)}", one.run.proof, _SQL)


def _written(one: Noted, output: DatasetId, ledger: Ledger) -> None:
    """A dataset that is read to be written tells nothing of rows that are new in it."""
    run = one.run
    inputs = run.inputs - {output}
    if not inputs:
        ledger.job(run.proof.job, None, frozenset(), output, run.proof)
        if run.code:
            _gap(one, output, "no row names its source", ledger)
    if one.unsourced:
        _gap(one, output, f"no row names the source of these columns: {', '.join(one.unsourced)}", ledger)
    if silent := inputs - one.told:
        _gap(one, output, f"no row names the columns that came from {_listed(silent)}", ledger)
        return
    own = Ledger(ledger.identities, ledger.columns)
    for source, target in (*((a, b) for a, b, *_ in run.edges), *one.elsewhere):
        own.edge(source, target, Subtype.TRANSFORMATION, False, run.proof)
    for found in LeftOutColumns(own).of(run, output):
        which = "that may be its columns under other names" if found.renamed else "that both have"
        _gap(one, output, f"its rows leave out columns of {found.source} {which}: {', '.join(found.columns)}", ledger)


def _gap(one: Noted, output: DatasetId, what: str, ledger: Ledger) -> None:
    reason = f"job {one.run.proof.job} wrote it, but {what}{_code(one)}"
    ledger.gap(output, LineageGapKind.NO_COLUMNS, reason, one.run.proof, _SQL)


def _listed(datasets: Iterable[DatasetId]) -> str:
    return ", ".join(map(str, sorted(datasets)))


def _code(one: Noted) -> str:
    return f"; its source code ({', '.join(one.run.code)}) is not read" if one.run.code else ""
