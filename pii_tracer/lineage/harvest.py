"""Events and SQL into one graph. What either cannot tell is a gap; what both tell is told once, with both evidences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pii_tracer.config import LineageSources, Relocation
from pii_tracer.errors import LineageError
from pii_tracer.lineage.edges import Edge, EdgeType, Evidence, JobRef, LineageGap, Membership, Subtype
from pii_tracer.lineage.facts import collect
from pii_tracer.lineage.graph import LineageGraph
from pii_tracer.lineage.identity import UNRESOLVED, Identities
from pii_tracer.lineage.names import Names
from pii_tracer.lineage.openlineage import Events, Run, event_files, read_events
from pii_tracer.lineage.outcome import Effect, StatementLineage
from pii_tracer.lineage.sql import Script, known_dialect
from pii_tracer.model import Column, ColumnId, DatasetId

_MOVES_DATA = frozenset({Effect.REPLACE, Effect.APPEND, Effect.CHANGE, Effect.VIEW, Effect.CLONE, Effect.RENAME})
_REBUILDS = frozenset({Effect.REPLACE, Effect.APPEND, Effect.VIEW, Effect.CLONE})
# what is not certain about a query or a temporary view counts where its outcome is written
_QUIET = frozenset({Effect.NONE, Effect.QUERY, Effect.TEMPORARY, Effect.SCHEMA, Effect.DROP, Effect.DELETE})


@dataclass(frozen=True)
class Summary:
    """What a harvest read: events, and statements by how far they were resolved."""

    events: int
    statements: int
    resolved: int
    partial: int
    opaque: int
    gaps: int


@dataclass(frozen=True)
class Told:
    """A statement with where it was found; `job` and `at` when an event tells it."""

    made: StatementLineage
    where: str
    job: str
    at: str | None
    run: Run | None = None


@dataclass
class Harvest:
    """Facts on their way into the graph."""

    identities: Identities
    columns: dict[DatasetId, tuple[Column, ...]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)
    jobs: list[JobRef] = field(default_factory=list)
    gaps: list[LineageGap] = field(default_factory=list)

    def dataset(self, table: str, where: str) -> DatasetId:
        """The dataset of a table in SQL; a name that nothing explains is kept as such, with a gap."""
        found = self.identities.of_table(table)
        if found is not None:
            return found
        made = DatasetId(namespace=UNRESOLVED, name=table.replace("`", ""))
        self.gaps.append(
            LineageGap(
                dataset=made,
                kind="unresolved_name",
                reason=f"no catalog, symlink or path explains the table name {table}",
                evidence=where,
                closes="declare its catalog in the estate file",
            )
        )
        return made


Progress = Callable[[str], None]


def harvest(
    sources: LineageSources,
    base: Path,
    relocations: Iterable[Relocation] = (),
    aliases: Mapping[str, DatasetId] | None = None,
    schemas: Mapping[str, Sequence[Column]] | None = None,
    progress: Progress | None = None,
) -> LineageGraph:
    """The lineage graph of an estate.

    base: folder that relative paths of the sources start from. aliases: datasets by table name. schemas: columns by
    table name, as the catalogs show them now.

    Raises:
        LineageError: a source does not exist, or the dialect is not known.
    """
    return harvest_with_summary(sources, base, relocations, aliases, schemas, progress)[0]


def harvest_with_summary(
    sources: LineageSources,
    base: Path,
    relocations: Iterable[Relocation] = (),
    aliases: Mapping[str, DatasetId] | None = None,
    schemas: Mapping[str, Sequence[Column]] | None = None,
    progress: Progress | None = None,
) -> tuple[LineageGraph, Summary]:
    """As `harvest`, with the numbers of what was read."""
    say = progress or (lambda text: None)
    identities = Identities(aliases or {}, relocations, base)
    work = Harvest(identities)
    files = [(f, _shown(f, base)) for place in sources.events for f in event_files(_existing(base / place))]
    say(f"reading {len(files)} files of events")
    events = read_events(files, identities)
    _learn(work, events, schemas or {})
    scripts = [f for place in sources.sql for f in _sql_files(_existing(base / place))]
    say(f"reading {len(scripts)} files of SQL")
    told = _told(scripts, base, events, work, known_dialect(sources.dialect))
    for one in told:
        _locations(one, work)
    for one in told:
        _statement(one, work)
    for rename in sorted(events.renames, key=repr):
        _renamed(*rename, work)
    for run in events.runs.values():
        _run(run, work)
    for run in events.runs.values():
        _run_gaps(run, work, told)
    work.gaps += events.gaps
    facts = collect(work.edges, work.memberships, work.jobs, work.gaps, work.columns, identities.aliases)
    graph = LineageGraph(facts)
    return graph, _summary(events, told, graph)


def _existing(place: Path) -> Path:
    if not place.exists():
        raise LineageError(
            "a lineage source does not exist", where=str(place), todo="correct `lineage` in the estate file"
        )
    return place


def _shown(file: Path, base: Path) -> str:
    """Relative to the estate file where possible: evidence must not depend on the machine."""
    try:
        return file.resolve().relative_to(base.resolve()).as_posix()
    except ValueError:
        return file.name


def _sql_files(place: Path) -> list[Path]:
    return sorted(p for p in place.rglob("*.sql") if p.is_file()) if place.is_dir() else [place]


def _learn(work: Harvest, events: Events, schemas: Mapping[str, Sequence[Column]]) -> None:
    """Names and schemas: catalogs first, then what events say (the schema with most columns, whatever the order)."""
    for name in sorted(events.symlinks):
        targets = events.symlinks[name]
        if len(targets) == 1:
            work.identities.learn(name, next(iter(targets)))
    for dataset, versions in events.schemas.items():
        work.columns[dataset] = max(versions.values(), key=lambda columns: (len(columns), repr(columns)))
    for name, columns in schemas.items():
        known = work.identities.of_table(name)
        if known is not None:
            work.columns[known] = tuple(columns)


def _names(work: Harvest) -> Names:
    """Every known name of a table with its columns."""
    known: dict[str, list[tuple[str, str]]] = {}
    for alias, dataset in work.identities.aliases.items():
        if dataset in work.columns:
            known[alias] = [(c.name, c.type) for c in work.columns[dataset]]
    for dataset, columns in work.columns.items():
        if dataset.namespace == "file":
            for kind in ("delta", "parquet", "iceberg", "hudi", "orc", "path"):
                known[f"{kind}.`{dataset.name}`"] = [(c.name, c.type) for c in columns]
    return Names(known)


def _told(scripts: Sequence[Path], base: Path, events: Events, work: Harvest, dialect: str) -> list[Told]:
    names = _names(work)
    told: list[Told] = []
    for file in scripts:
        shown = _shown(file, base)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            work.gaps.append(_gap(None, "unreadable_sql", f"the file cannot be read ({type(error).__name__})", shown))
            continue
        for made in _run_sql(text, names, dialect, shown, work):
            told.append(Told(made, f"{shown}:{made.line}", file.stem, None))
    for run in sorted(events.runs.values(), key=lambda r: r.run):
        for text in sorted(run.sql):
            for made in _run_sql(text, names, "spark", run.where, work):
                told.append(Told(made, run.where, run.job, run.at or None, run))
    return told


def _run_sql(text: str, names: Names, dialect: str, where: str, work: Harvest) -> list[StatementLineage]:
    try:
        return Script(names, dialect).run(text)
    except LineageError as error:
        work.gaps.append(_gap(None, "unreadable_sql", error.what, where))
        return []


def _gap(dataset: DatasetId | None, kind: str, reason: str, evidence: str, closes: str = "") -> LineageGap:
    return LineageGap(dataset=dataset, kind=kind, reason=reason, evidence=evidence, closes=closes)


def _locations(told: Told, work: Harvest) -> None:
    """`CREATE TABLE … LOCATION` names a path."""
    if told.made.location and told.made.output and told.made.effect is not Effect.TEMPORARY:
        work.identities.learn(told.made.output, work.identities.of_path(told.made.location))


def _statement(told: Told, work: Harvest) -> None:
    made = told.made
    if made.output is None or made.effect in _QUIET:
        known = work.identities.of_table(made.output) if made.output is not None else None
        for reason in made.reasons if made.effect not in (Effect.QUERY, Effect.TEMPORARY) else ():
            work.gaps.append(
                _gap(known, "sql_opaque", reason, told.where, "rewrite the statement, or say what it does")
            )
        return
    if made.effect not in _MOVES_DATA:
        return
    target = work.dataset(made.output, told.where)
    proof = (Evidence(source="sql", where=told.where, job=told.job),)
    inputs = {table: work.dataset(table, told.where) for table in made.inputs}

    def source(table: str) -> DatasetId:
        return inputs.get(table) or work.dataset(table, told.where)

    for edge in made.edges:
        if "*" not in (edge.source[1], edge.target[1]):
            origin = ColumnId(dataset=source(edge.source[0]), column=edge.source[1])
            work.edges.append(
                Edge(
                    source=origin,
                    target=ColumnId(dataset=target, column=edge.target[1]),
                    type=edge.type,
                    subtype=edge.subtype,
                    masking=edge.masking,
                    expression=edge.expression,
                    evidence=proof,
                )
            )
    for table, column, subtype in made.indirect:
        origin = ColumnId(dataset=source(table), column=column)
        work.memberships.append(Membership(source=origin, target=target, subtype=subtype, evidence=proof))
    alone = set(made.read) <= set(made.inputs) | {made.output}
    work.jobs.append(
        JobRef(
            job=told.job,
            sql=made.sql if made.effect in _REBUILDS and alone else None,
            inputs=tuple(sorted(set(inputs.values()))),
            output=target,
            at=told.at,
            where=told.where,
        )
    )
    kind = "sql_opaque" if made.opaque else "sql_partial"
    work.gaps += [_gap(target, kind, r, told.where, "give the schemas of the tables it reads") for r in made.reasons]


def _renamed(old: DatasetId, new: DatasetId, where: str, work: Harvest) -> None:
    """Everything of the old dataset is the new one's."""
    columns = work.columns.get(new) or work.columns.get(old) or ()
    proof = (Evidence(source="openlineage", where=where),)
    for column in columns:
        work.edges.append(
            Edge(
                source=ColumnId(dataset=old, column=column.name),
                target=ColumnId(dataset=new, column=column.name),
                type=EdgeType.DIRECT,
                subtype=Subtype.IDENTITY,
                evidence=proof,
            )
        )
    work.jobs.append(JobRef(job="rename", sql=None, inputs=(old,), output=new, where=where))
    if not columns:
        work.gaps.append(
            _gap(new, "no_columns", f"{old} was renamed to it, and the columns of neither are known", where)
        )


def _run(run: Run, work: Harvest) -> None:
    work.edges += [e for e in run.edges if e.source != e.target]
    work.memberships += run.memberships
    for output in run.outputs:
        work.columns.setdefault(output, ())
        inputs = tuple(sorted(run.inputs - {output}))
        if not inputs:
            continue  # an empty table was made, or constants went in
        work.jobs.append(
            JobRef(job=run.job, sql=None, inputs=inputs, output=output, at=run.at or None, where=run.where)
        )
    for source in run.inputs:
        work.columns.setdefault(source, ())


def _run_gaps(run: Run, work: Harvest, told: Sequence[Told]) -> None:
    """What the run's events leave open, unless SQL says it."""
    if run.inputs and not run.outputs:
        if not _mended(run, work, told):
            work.gaps.append(
                _gap(
                    None,
                    "no_outputs",
                    f"job {run.job} read {', '.join(str(d) for d in sorted(run.inputs))} and its events name no output",
                    run.where,
                    "give the job's SQL, or declare what it writes",
                )
            )
        return
    linked = {(e.source.dataset, e.target.dataset) for e in work.edges}
    linked |= {(m.source.dataset, m.target) for m in work.memberships}
    for output in sorted(run.outputs - run.with_columns):
        missing = [d for d in sorted(run.inputs - {output}) if (d, output) not in linked]
        if missing:
            may = "may have written" if run.failed else "wrote"
            work.gaps.append(
                _gap(
                    output,
                    "no_columns",
                    f"job {run.job} {may} it from {', '.join(str(d) for d in missing)}, and no event tells the columns",
                    run.where,
                    "give the job's SQL",
                )
            )


def _mended(run: Run, work: Harvest, told: Sequence[Told]) -> bool:
    """A complete statement of the run itself, or one that reads the same datasets, tells where the data went."""
    for one in told:
        if not one.made.complete:
            continue
        if one.run is run and (one.made.output is not None or one.made.effect is Effect.NONE):
            return True
        read = {work.identities.of_table(t) for t in one.made.inputs}
        if one.made.effect in _MOVES_DATA and run.inputs <= read:
            return True
    return False


def _summary(events: Events, told: Sequence[Told], graph: LineageGraph) -> Summary:
    opaque = sum(t.made.opaque for t in told)
    partial = sum(not t.made.complete and not t.made.opaque for t in told)
    return Summary(
        events=events.read,
        statements=len(told),
        resolved=len(told) - opaque - partial,
        partial=partial,
        opaque=opaque,
        gaps=len(graph.gaps),
    )
