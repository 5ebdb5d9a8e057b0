"""What a parsed statement, from whatever source, puts into the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from pii_tracer.lineage.dataset_names import VIEW, is_untold, plain_name, shorter_names
from pii_tracer.lineage.graph.edges import RENAME, Subtype
from pii_tracer.lineage.sources.evidence_merging import Proof
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.metadata_reads import (
    CLOSES,
    inspected,
    reason,
    taken,
)
from pii_tracer.lineage.sources.openlineage.own_names import NO_NAMES, OwnNames
from pii_tracer.lineage.sources.openlineage.run_merging import Run
from pii_tracer.lineage.sources.shared_global_views import is_shared
from pii_tracer.lineage.sql.sql_lineage import Script
from pii_tracer.lineage.sql.statement_effects import Effect, StatementLineage
from pii_tracer.lineage.sql.text.global_temp_views import is_global_view
from pii_tracer.lineage.sql.text.session_tables import makes_session_table
from pii_tracer.lineage.sql.text.table_names import Names
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.errors import LineageError
from pii_tracer.model.gap_kinds import LineageGapKind

_MOVES_DATA = frozenset({Effect.REPLACE, Effect.APPEND, Effect.CHANGE, Effect.VIEW, Effect.CLONE, Effect.RENAME})
_CHANGES = frozenset({Effect.APPEND, Effect.CHANGE})
_REBUILDS = frozenset({Effect.REPLACE, Effect.APPEND, Effect.VIEW, Effect.CLONE})
# what is not certain about a query or a temporary view counts where its outcome is written
_QUIET = frozenset({Effect.NONE, Effect.QUERY, Effect.TEMPORARY, Effect.SCHEMA, Effect.DROP, Effect.DELETE})

_READS = frozenset({Effect.NONE, Effect.QUERY, Effect.TEMPORARY})

SPARK = frozenset({"spark", "databricks"})
"""Dialects whose statements Spark can be given again; SQL of other engines means other things there."""


@dataclass(frozen=True)
class Told:
    """A statement with who tells it.

    texts: those it stands in, with their dialects, when runs tell it. failed: it never succeeded. rebuild: whether
    Spark can run it again to make the whole output anew. own: names that mean what its event names. filled: as of
    `JobRef`.
    """

    made: StatementLineage
    proof: Proof
    texts: tuple[tuple[str, str], ...] = ()
    failed: bool = False
    rebuild: bool = True
    own: OwnNames = NO_NAMES
    filled: tuple[tuple[str, str], ...] = ()

    @property
    def in_script(self) -> bool:
        """Whether what stands before it ran in its session: of a file, or of a text. Rows of a log are of several."""
        return bool(self.texts) or self.proof.runs == 0

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not complete; what a failed one did is not certain either."""
        return tuple(f"may have run (it failed): {r}" if self.failed else r for r in self.made.reasons)


def parsed(text: str, names: Names, dialect: str, proof: Proof, ledger: Ledger) -> list[StatementLineage]:
    """The statements of a text; one that cannot be cut into statements is a gap."""
    try:
        return Script(names, dialect).run(text)
    except LineageError as error:
        ledger.gap(None, LineageGapKind.UNREADABLE_SQL, error.what, proof, "correct the text or its dialect")
        return []


def locations(told: Iterable[Told], ledger: Ledger) -> None:
    """`CREATE TABLE … LOCATION` names a path, in every file.

    Of several tables whose paths the text does not tell, or that are at different partitions of one folder, nothing is
    learned: they would be one dataset.
    """
    known = ledger.identities
    placed = defaultdict[DatasetId, dict[str, set[str]]](dict)
    for one in told:
        place, name = one.made.location, one.made.output
        if place and name and one.made.effect is not Effect.TEMPORARY:
            placed[known.of_path(place)].setdefault(name, set()).add(str(known.folder(place) or place))
    for dataset, names in placed.items():
        places = set[str]().union(*names.values())
        same = len(places) == 1 or str(dataset) in places  # else each is at a partition of its own
        if len(names) == 1 or (same and not any(map(is_untold, places))):
            for name in names:
                known.learn(name, dataset)


def tables(told: Iterable[Told], ledger: Ledger) -> None:
    """A name under which a table was made, altered or dropped is that of a table, also where it looks like another
    one's branch.
    """
    for one in told:
        if one.made.output and (one.made.makes or one.made.effect in (Effect.SCHEMA, Effect.DROP)):
            ledger.identities.add_table(one.made.output)


def views(told: Iterable[Told], ledger: Ledger) -> None:
    """A name that statements only make a view of is a view, also where rows are written through it; one that is also
    made like a table, or written while the view is not there, may be a table.
    """
    effects: dict[str, set[Effect]] = defaultdict(set)
    for one in told:
        if one.made.output and one.made.effect in _MOVES_DATA:
            effects[one.made.output].add(one.made.effect)
    passing = _of_a_session(told)
    made = {one.made.output for one in told if one.made.output and makes_table(one.made)}
    tables = {plain_name(name) for name in made if ledger.identities.of_table(name) is None}
    doubtful = tables.union(_written_without_view(told), *map(shorter_names, tables))
    for name, known in effects.items():
        shown = Effect.VIEW in known and known <= {Effect.VIEW, Effect.APPEND, Effect.CHANGE}
        certain = shown and plain_name(name) not in doubtful and tables.isdisjoint(shorter_names(name))
        if (certain or name in passing) and ledger.identities.of_table(name) is None:
            ledger.identities.learn(name, DatasetId(namespace=VIEW, name=name.replace("`", "")))


def makes_table(made: StatementLineage) -> bool:
    """Whether a statement makes its output, and that is no view: also an empty table."""
    return made.makes and made.output is not None and made.effect not in (Effect.VIEW, Effect.TEMPORARY)


def _written_without_view(told: Iterable[Told]) -> set[str]:
    """Names that a statement writes to after the view was dropped or renamed, and before it is made again.

    A write before everything else counts by how it ends: files are not in the order in which they run. Rows of a log
    without times are in no order at all.
    """
    there: dict[str, bool] = {}
    early: set[str] = set()
    found: set[str] = set()
    timeless = {plain_name(one.made.output or "") for one in told if not (one.in_script or one.proof.first[0])}
    gone = {plain_name(one.made.output or "") for one in told if one.made.effect is Effect.DROP} & timeless
    for one in told:
        if one.made.effect is Effect.RENAME:
            there |= {plain_name(name): False for name in one.made.inputs}
        if one.made.output is None:
            continue
        name = plain_name(one.made.output)
        if one.made.effect in (Effect.VIEW, Effect.DROP):
            there[name] = one.made.effect is Effect.VIEW
        elif one.made.effect in (Effect.APPEND, Effect.CHANGE) and (name in gone or not there.get(name)):
            (found if name in there else early).add(name)
    return found | {name for name in early if not there.get(name, True)}


def _of_a_session(told: Iterable[Told]) -> set[str]:
    """Names of temporary tables: no bytes lie behind them once the session is over.

    Only where each job that uses the name makes such a table, and none makes another one: to others it means something
    else. Not of Spark, whose statements can be run again as they are. Nor of a query log where another statement
    writes the table: a log has each text once, and does not show in which of several sessions it ran.
    """
    made, other, used = (defaultdict[str, set[str]](set) for _ in range(3))
    for one in told:
        if one.made.output is not None and getattr(one.own.of(one.made.output), "namespace", None) == VIEW:
            other[one.made.output].add(one.proof.job)  # one of several that have the name
        if one.made.output is not None and one.made.effect is Effect.REPLACE:
            temporary = makes_session_table(one.made.sql) and not one.rebuild
            (made if temporary else other)[one.made.output].add(one.proof.job)
        elif one.made.output is not None and one.made.effect in _CHANGES and not one.in_script:
            other[one.made.output].add(one.proof.job)
        for name in {one.made.output, *one.made.read, *one.made.inputs} - {None}:
            used[str(name)].add(one.proof.job)
    return {name for name, jobs in made.items() if "." not in name and used[name] <= jobs and not other[name]}


def tell(told: Told, ledger: Ledger) -> None:
    """Edges, memberships, job and gaps of one statement."""
    made, proof = told.made, told.proof
    shared = is_shared(made, ledger)
    if made.output is None or (made.effect in _QUIET and not shared):
        known = told.own.of(made.output) if made.output is not None else None
        if known is None and made.output is not None:
            known = ledger.identities.of_rows(made.output, written=True)
        for why in told.reasons if made.effect not in (Effect.QUERY, Effect.TEMPORARY) else ():
            ledger.gap(known, LineageGapKind.SQL_OPAQUE, why, proof, "rewrite the statement, or declare its effects")
        if known is not None and (made.emptied or told.filled):  # no row comes in: those that are there change
            ledger.job(proof.job, None, frozenset(), known, proof, made.sql, filled=told.filled)
        return
    if made.effect not in _MOVES_DATA and not shared:
        return
    target = told.own.of(made.output) or ledger.dataset(made.output, proof, written=True)
    inputs = {table: told.own.of(table) or ledger.dataset(table, proof) for table in made.inputs}
    metadata = inspected(
        {*inputs, *(e.source[0] for e in made.edges), *(t for t, _, _ in made.indirect)}, ledger.identities
    )

    def source(table: str) -> DatasetId:
        return inputs.get(table) or told.own.of(table) or ledger.dataset(table, proof)

    for edge in made.edges:
        if "*" not in (edge.source[1], edge.target[1]) and edge.source[0] not in metadata:
            origin = ColumnId(dataset=source(edge.source[0]), column=edge.source[1])
            goal = ColumnId(dataset=target, column=edge.target[1])
            ledger.edge(origin, goal, edge.subtype, edge.masking, proof, edge.expression)
            if made.effect is Effect.RENAME:  # what was made of it under the old name was made of these rows
                ledger.edge(goal, origin, Subtype.IDENTITY, False, replace(proof, job=RENAME))
    for table, column, subtype in made.indirect:
        if table not in metadata:
            ledger.member(ColumnId(dataset=source(table), column=column), target, subtype, proof)
    sql = made.sql if _again(told, ledger) else None
    ledger.job(proof.job, sql, frozenset(inputs.values()), target, proof, made.sql, made.views, told.filled)
    lost = [(table, columns) for table in sorted(metadata) if (columns := taken(made, table))]
    if made.complete and not lost:
        for dataset in inputs.values():
            ledger.resolved[dataset, target].add(proof)
    kind = LineageGapKind.SQL_OPAQUE if made.opaque else LineageGapKind.SQL_PARTIAL
    for why in told.reasons:
        ledger.gap(target, kind, why, proof, "add the schemas of the tables that it reads")
    for table, columns in lost:
        ledger.gap(target, LineageGapKind.SQL_PARTIAL, reason(table, columns), proof, CLOSES)


def _again(told: Told, ledger: Ledger) -> bool:
    """Whether the statement, run by itself, writes its whole output anew: not one that needs a session's views or its
    USE, and not one that wrote to a branch.
    """
    made = told.made
    alone = set(made.read) <= {*made.inputs, made.output} and not any(map(is_global_view, made.inputs))
    whole = made.effect in _REBUILDS and made.output is not None and ledger.identities.part_of(made.output) is None
    return alone and whole and told.rebuild and not told.failed and not made.database


class Mended:
    """What runs leave open and statements explain."""

    def __init__(self, told: Iterable[Told], ledger: Ledger) -> None:
        self._whole: set[tuple[str, str]] = set()
        self._not_whole: set[tuple[str, str]] = set()
        self._writes: dict[tuple[str, str], set[DatasetId | None]] = defaultdict(set)
        self._names: dict[tuple[str, str], set[DatasetId | None]] = defaultdict(set)
        self._moves: dict[tuple[str, str], set[DatasetId | None]] = defaultdict(set)
        self._reading: dict[DatasetId, dict[tuple[frozenset[DatasetId | None], str | None], None]] = defaultdict(dict)
        for one in told:
            made = one.made
            (self._whole if made.complete else self._not_whole).update(one.texts)
            read = frozenset(one.own.of(t) or ledger.identities.of_rows(t) for t in (*made.inputs, *made.read))
            output = one.own.of(made.output) if made.output is not None else None
            if made.output is not None and output is None:
                output = ledger.identities.of_rows(made.output, written=True)
            for text in one.texts:
                self._writes[text].add(output if made.effect not in _READS else None)
                self._names[text] |= {*read, output}
                self._moves[text].add(output if made.effect in _MOVES_DATA else None)
                if made.filling.tends:
                    tended = one.own.of(made.filling.tends) or ledger.identities.of_rows(made.filling.tends)
                    self._writes[text].add(tended)
                    self._names[text].add(tended)
            if made.complete and made.effect in _MOVES_DATA:
                for dataset in read:
                    if dataset is not None:
                        self._reading[dataset][read, one.proof.job if one.texts else None] = None

    def __call__(self, run: Run, kin: Collection[str]) -> bool:
        """Whether a run without outputs is explained: by complete statements of its own that name all that it reads, or
        by one that reads the same datasets, which tells where the data went.

        kin: the jobs whose events explain the run. What others read and wrote is not what it did with that.
        """
        own = [text for text in run.sql if text in self._whole and text not in self._not_whole]
        named = frozenset[DatasetId | None]().union(*(self._names[text] for text in own))
        if own and run.inputs <= named:
            return True
        reading = self._reading.get(min(run.inputs), ())
        return any(run.inputs <= read and (job is None or job in kin) for read, job in reading)

    def whole(self, run: Run) -> bool:
        """Whether the run tells its SQL, and every statement of it is followed."""
        return bool(run.sql) and self._whole.issuperset(run.sql) and self._not_whole.isdisjoint(run.sql)

    def unwritten(self, run: Run) -> frozenset[DatasetId]:
        """The outputs of a run of which its SQL does not tell all that comes into them.

        A text explains what its statements write, and tables that it only tends (`OPTIMIZE t`); where rows came in, it
        has to bring some. `SELECT 1` is followed, and says nothing of a table.
        """
        if not self.whole(run):
            return run.outputs
        grown = (run.outputs & run.grown).difference(*(self._moves[text] for text in run.sql))
        return grown | (run.outputs - run.grown).difference(*(self._writes[text] for text in run.sql))
