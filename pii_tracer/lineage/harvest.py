"""All sources of lineage into one graph. What none can tell is a gap; what several tell is told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pii_tracer.common.gc_pause import rare_collections
from pii_tracer.config.estate_file import Relocation
from pii_tracer.config.lineage import LineageSources
from pii_tracer.lake.catalogs.base import CatalogView
from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.sources.catalog_views import read_views
from pii_tracer.lineage.sources.dataset_descriptions import Notes, Tag
from pii_tracer.lineage.sources.dbt import manifest_of, read_dbt
from pii_tracer.lineage.sources.evidence_merging import in_file
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.filled_by_tables import filled_by_tables
from pii_tracer.lineage.sources.log_lines import files_of
from pii_tracer.lineage.sources.openlineage.events import Events, event_files, read_events
from pii_tracer.lineage.sources.openlineage.run_lineage import tell_changes, tell_gaps, tell_run, tell_silent
from pii_tracer.lineage.sources.openlineage.schema_history import Eras
from pii_tracer.lineage.sources.openlineage.sql_facets import told_by_events
from pii_tracer.lineage.sources.openlineage.unresolved_inputs import tell_names
from pii_tracer.lineage.sources.query_log.log_rows import log_files
from pii_tracer.lineage.sources.query_log.query_log_parsing import read_queries
from pii_tracer.lineage.sources.query_log.shape_parsing import Parser, parse_here
from pii_tracer.lineage.sources.same_name_temp_tables import apart
from pii_tracer.lineage.sources.shared_global_views import share
from pii_tracer.lineage.sources.shared_places import tell_shared
from pii_tracer.lineage.sources.statement_facts import (
    SPARK,
    Mended,
    Told,
    locations,
    parsed,
    tables,
    tell,
    views,
)
from pii_tracer.lineage.sources.unity.dataset_resolution import Listed
from pii_tracer.lineage.sources.unity.exported_files import export_files, read_export
from pii_tracer.lineage.sources.unity.flows import Flows
from pii_tracer.lineage.sources.unity.recorded_time import Frame, unrecorded
from pii_tracer.lineage.sources.unity.run_gaps import tell_noted
from pii_tracer.lineage.sources.unity.runs import Noted, unity_runs
from pii_tracer.lineage.sources.writes_through_views import defined, explained, tell_through
from pii_tracer.lineage.sql.known_dialects import known_dialect
from pii_tracer.lineage.sql.text.table_names import Names
from pii_tracer.model.datasets import Column, DatasetId
from pii_tracer.model.errors import LineageError
from pii_tracer.model.gap_kinds import LineageGapKind

Progress = Callable[[str], None]

_SQL = frozenset({".sql", ".hql", ".ddl"})


@dataclass(frozen=True)
class SourceRead:
    """How much of one source was read, from how many files."""

    source: str
    read: int
    unit: str
    files: int = 0


@dataclass(frozen=True)
class Summary:
    """What a harvest read: events, and statements by how far they were resolved; the same by source."""

    events: int
    statements: int
    resolved: int
    partial: int
    opaque: int
    gaps: int
    sources: tuple[SourceRead, ...] = ()


@dataclass(frozen=True)
class Harvested:
    """The graph, what was read, and what was said about datasets beside their lineage."""

    graph: LineageGraph
    summary: Summary
    notes: Notes


@dataclass(frozen=True)
class Given:
    """What a harvest starts from beside its sources.

    base: folder that relative paths of the sources start from. aliases: datasets by table name. schemas: columns by
    table name, as the catalogs show them now; loose: names of those whose order the files do not tell; declared: the
    same as schemas, from files and of views, where no table tells. views: of catalogs, with their queries. log: folder
    of the project's own event log. gaps and reads: of what was fetched into it. parser: what parses the texts of query
    logs. unity: rows of the system tables of each workspace, by its catalog. created: the tables and views that each
    catalog of the type `unity` lists, with when they were made (microseconds, 0 for unknown).
    """

    base: Path
    relocations: Iterable[Relocation] = ()
    aliases: Mapping[str, DatasetId] = field(default_factory=dict)
    schemas: Mapping[str, Sequence[Column]] = field(default_factory=dict)
    loose: frozenset[str] = frozenset()
    declared: Mapping[str, Sequence[Column]] = field(default_factory=dict)
    views: Sequence[CatalogView] = ()
    log: Path | None = None
    gaps: Sequence[LineageGap] = ()
    reads: Sequence[SourceRead] = ()
    progress: Progress = lambda text: None
    parser: Parser = parse_here
    unity: Mapping[str, Flows] = field(default_factory=dict)
    created: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@rare_collections()
def harvest_all(sources: LineageSources, given: Given) -> Harvested:
    """Read every source and make the graph. Reads only: what streams and services tell is in the event log.

    Raises:
        LineageError: a source does not exist, or a dialect is not known.
    """
    identities = Identities(given.aliases, given.relocations, given.base, sources.same)
    ledger = Ledger(identities)
    ledger.plain_gaps += given.gaps
    dialect = known_dialect(sources.dialect)
    reads = list(given.reads)
    events = _events(sources, given, identities, reads)
    _learn(ledger, events, given)
    names = Names(ledger.known_tables())
    told = _files(sources, given, dialect, names, ledger, reads)
    eras = Eras(ledger.known_tables(), events.schemas, ledger)
    told += told_by_events(events, dialect, names, eras, ledger)
    dbt, tags = _dbt(sources, given, dialect, ledger, reads)
    told += dbt
    told += _queries(sources, given, dialect, eras, ledger, reads)
    told += read_views(given.views, ledger)
    reads += [SourceRead("views of catalogs", len(given.views), "statements")] if given.views else []
    reads += _left_out(sources, given.base)
    told = apart(told)
    locations(told, ledger)
    tables(told, ledger)
    views(told, ledger)
    share([one.made for one in told], ledger)
    shown = defined(told, ledger)
    told = filled_by_tables(explained(told, shown, ledger), shown, ledger)
    for one in told:
        tell(one, ledger)
    tell_shared(told, ledger)
    tell_changes(events.notes.changes, ledger)
    for run in events.runs:
        tell_run(run, ledger)
    tell_through(told, shown, ledger)
    tell_names(events, ledger)
    mended = Mended(told, ledger)
    tell_silent(events, ledger, mended, told)
    tell_gaps(events, ledger, mended)
    tell_noted(_unity(sources, given, ledger, reads), ledger, mended)
    ledger.plain_gaps += events.gaps
    facts = collect(
        ledger.edges(), ledger.memberships(), ledger.jobs(), ledger.gaps(), ledger.columns, identities.aliases
    )
    graph = LineageGraph(facts)
    notes = events.notes.model_copy(update={"tags": tuple(sorted({*events.notes.tags, *tags}, key=repr))})
    return Harvested(graph, _summary(events, told, graph, reads), notes)


def existing(place: Path) -> Path:
    """The place, where there is one.

    Raises:
        LineageError: there is none.
    """
    if not place.exists():
        raise LineageError(
            "a lineage source does not exist", where=str(place), todo="correct `lineage` in the estate file"
        )
    return place


def shown(file: Path, base: Path) -> str:
    """Relative to the estate file where possible: evidence must not depend on the machine."""
    try:
        return file.resolve().relative_to(base.resolve()).as_posix()
    except ValueError:
        return file.name


def _events(sources: LineageSources, given: Given, identities: Identities, reads: list[SourceRead]) -> Events:
    """Event files and the project's own event log."""
    found = {place: event_files(existing(given.base / place)) for place in sources.events}
    if given.log is not None and given.log.is_dir():
        found["the event log"] = event_files(given.log)
    if count := sum(map(len, found.values())):
        given.progress(f"reading events: {count:,} {'file' if count == 1 else 'files'}")
    named = [(f, shown(f, given.base)) for files in found.values() for f in files]
    events = read_events(named, identities, given.progress)
    counts = iter(events.by_file)
    for place, files in found.items():
        reads.append(SourceRead(place, sum(next(counts) for _ in files), "events", len(files)))
    return events


def _left_out(sources: LineageSources, base: Path) -> Iterator[SourceRead]:
    """Files of folders whose names say that they hold something else: not read, and said so."""
    kinds: list[tuple[Callable[[Path], list[Path]], list[str]]] = [
        (event_files, list(sources.events)),
        (sql_files, list(sources.sql)),
        (log_files, [log.path for log in sources.queries]),
        (export_files, [place for one in sources.unity for place in (one.tables, one.columns) if place]),
    ]
    for read, places in kinds:
        for place in places:
            other = len(files_of(base / place)) - len(read(base / place))
            if other:
                yield SourceRead(place, other, "files with unknown endings, which were not read")


def _learn(ledger: Ledger, events: Events, given: Given) -> None:
    """Names and schemas: catalogs first, then what events say (the schema with most columns, whatever the order)."""
    for name in sorted(events.symlinks):
        targets = events.symlinks[name]
        if len(targets) == 1:
            ledger.identities.learn(name, next(iter(targets)))
    for dataset, versions in events.schemas.items():
        ledger.columns[dataset] = max(versions, key=lambda columns: (len(columns), repr(columns)))
    for name, columns in given.schemas.items():
        known = ledger.identities.of_table(name)
        if known is not None:
            if name in given.loose:
                columns = _ordered(ledger, given, name, known, columns)
            ledger.columns[known] = tuple(columns)
    ledger.declared = {name: [(c.name, c.type) for c in columns] for name, columns in given.declared.items()}
    for name, columns in given.declared.items():
        known = ledger.identities.of_table(name)
        if known is not None and not ledger.columns.get(known):
            ledger.columns[known] = tuple(columns)


def _ordered(
    ledger: Ledger, given: Given, name: str, dataset: DatasetId, columns: Sequence[Column]
) -> Sequence[Column]:
    """Columns of a folder whose files do not tell their order, as its owner declares or its writer told them."""
    for order in (given.declared.get(name, ()), ledger.columns.get(dataset, ())):
        if order and _same_names(order, columns):
            return order
    ledger.loose.add(dataset)
    return columns


def _same_names(one: Sequence[Column], other: Sequence[Column]) -> bool:
    return {c.name.lower() for c in one} == {c.name.lower() for c in other}


def sql_files(place: Path) -> list[Path]:
    """The SQL files of a file or folder, sorted."""
    return [f for f in files_of(place) if not place.is_dir() or f.suffix.lower() in _SQL]


def _files(
    sources: LineageSources, given: Given, dialect: str, names: Names, ledger: Ledger, reads: list[SourceRead]
) -> list[Told]:
    """Statements of SQL files. What one file creates, a later one knows."""
    files = [f for place in sources.sql for f in sql_files(existing(given.base / place))]
    if count := len(files):
        given.progress(f"reading SQL: {count:,} {'file' if count == 1 else 'files'}")
    told = []
    for file in files:
        name = shown(file, given.base)
        try:
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = f"the file cannot be read ({type(error).__name__})"
            ledger.gap(None, LineageGapKind.UNREADABLE_SQL, reason, in_file(name, file.stem), "correct the file")
            continue
        on_line: Counter[int] = Counter()
        for made in parsed(text, names, dialect, in_file(name, file.stem), ledger):
            on_line[made.line] += 1
            place = f"{name}:{made.line}" + (f" (statement {on_line[made.line]})" if on_line[made.line] > 1 else "")
            told.append(Told(made, in_file(place, file.stem), rebuild=dialect in SPARK))
    if sources.sql:
        reads.append(SourceRead(", ".join(sources.sql), len(told), "statements", len(files)))
    return told


def _dbt(
    sources: LineageSources, given: Given, dialect: str, ledger: Ledger, reads: list[SourceRead]
) -> tuple[list[Told], list[Tag]]:
    """Models, snapshots, stored test failures and hooks of dbt projects."""
    told: list[Told] = []
    tags: list[Tag] = []
    for number, place in enumerate(sources.dbt, 1):
        file = existing(manifest_of(existing(given.base / place)))
        name = shown(file, given.base)
        given.progress(f"reading dbt project {number} of {len(sources.dbt)}")
        made, more = read_dbt(file, name, ledger.known_tables(), dialect, ledger)
        reads.append(SourceRead(name, len(made), "statements"))
        told, tags = told + made, tags + more
    return told, tags


def _queries(
    sources: LineageSources, given: Given, dialect: str, eras: Eras, ledger: Ledger, reads: list[SourceRead]
) -> list[Told]:
    """Statements of query logs."""
    told: list[Told] = []
    for number, log in enumerate(sources.queries, 1):
        say = partial(_of_log, given.progress, f"query log {number} of {len(sources.queries)}")
        files = [(f, shown(f, given.base)) for f in log_files(existing(given.base / log.path))]
        known = ledger.known_tables()
        rows, made = read_queries(log, files, dialect, known, given.parser, eras, ledger, say)
        reads.append(SourceRead(log.path, rows, "rows", len(files)))
        told += made
    return told


def _unity(sources: LineageSources, given: Given, ledger: Ledger, reads: list[SourceRead]) -> list[Noted]:
    """What Databricks noted itself: of the workspaces that were asked, and of exported files.

    Sources of several metastores are looked at one by one: the rows of one say nothing of when another's begin.
    """
    runs: list[Noted] = []
    frames: list[tuple[Frame, Mapping[str, int]]] = []
    every = {name: at for made in given.created.values() for name, at in made.items()}
    for one in sources.unity:
        name, flows = one.tables or f"the lineage of the catalog {one.catalog}", Flows()
        if one.tables is None:
            flows = given.unity[str(one.catalog)]
            reads.append(SourceRead(name, flows.rows, "rows"))
        for place, of_columns in ((one.tables, False), (one.columns, True)):
            if place is not None:
                files = [(f, shown(f, given.base)) for f in export_files(existing(given.base / place))]
                before = flows.rows
                ledger.plain_gaps += read_export(files, flows, of_columns=of_columns)
                reads.append(SourceRead(place, flows.rows - before, "rows", len(files)))
        own = every if one.catalog is None else given.created.get(one.catalog, {})
        listed = Listed.of(own, sure=one.catalog is not None or len(given.created) == 1)
        runs += unity_runs(name, flows, ledger, listed, one.told_elsewhere)
        frames.append((Frame.of(name, flows), own))
    together = [([frame for frame, _ in frames], every)] if len(given.created) == 1 else [([f], c) for f, c in frames]
    for group, created in together if frames else ():
        ledger.plain_gaps += unrecorded(group, created, ledger)
    return runs


def _of_log(say: Callable[[str], None], log: str, text: str) -> None:
    """log: told by its number, for its path can be a person's key, and nobody knows the persons yet."""
    say(f"{log}: {text}")


def _summary(events: Events, told: Sequence[Told], graph: LineageGraph, reads: Sequence[SourceRead]) -> Summary:
    opaque = sum(t.made.opaque for t in told)
    partial = sum(not t.made.complete and not t.made.opaque for t in told)
    return Summary(
        events=events.read,
        statements=len(told),
        resolved=len(told) - opaque - partial,
        partial=partial,
        opaque=opaque,
        gaps=len(graph.gaps),
        sources=tuple(reads),
    )
