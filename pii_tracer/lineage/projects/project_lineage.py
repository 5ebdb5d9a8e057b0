"""Column lineage of one side of a repository, from its parts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pii_tracer.common.gc_pause import rare_collections
from pii_tracer.lineage.dataset_names import VIEW, Identities
from pii_tracer.lineage.graph.canonical_facts import Facts, collect
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.projects.parts import Part, PartKind, Parts
from pii_tracer.lineage.sources.evidence_merging import in_file
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.same_name_temp_tables import apart
from pii_tracer.lineage.sources.statement_facts import SPARK, Told, locations, tables, tell, views
from pii_tracer.lineage.sources.writes_through_views import defined, explained, tell_through
from pii_tracer.lineage.sql.sql_lineage import Script
from pii_tracer.lineage.sql.statement_effects import Effect, StatementLineage
from pii_tracer.lineage.sql.text.table_names import Names
from pii_tracer.model.datasets import Column, DatasetId
from pii_tracer.model.errors import LineageError

TABLE = "table"
"""Namespace of tables that nothing but their name is known of."""
_WITHOUT_ROWS = frozenset({Effect.QUERY, Effect.TEMPORARY})
_WRITES = frozenset(
    {Effect.REPLACE, Effect.APPEND, Effect.CHANGE, Effect.VIEW, Effect.CLONE, Effect.RENAME, Effect.SCHEMA}
)
_MOST_ROUNDS = 3


@dataclass(frozen=True)
class Known:
    """What is known from outside of the repository. upstream: a harvested graph, whose schemas and names count too."""

    dialect: str = "spark"
    schemas: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    upstream: LineageGraph | None = None


@dataclass(frozen=True)
class Written:
    """A statement that writes a dataset: by which part, and from which line of its file on."""

    part: Part
    made: StatementLineage
    line: int
    appended: bool

    @property
    def is_view(self) -> bool:
        return self.made.effect is Effect.VIEW


@dataclass(frozen=True)
class Unclear:
    """Why the lineage of a part is not complete. assumed: only the names of columns were not given."""

    line: int
    reason: str
    assumed: bool = False


@dataclass(frozen=True)
class SideLineage:
    """One side. written: what writes each dataset. unclear: by part's name. names: what names mean."""

    parts: Parts
    graph: LineageGraph
    written: Mapping[DatasetId, tuple[Written, ...]]
    unclear: Mapping[str, tuple[Unclear, ...]]
    names: Identities

    def part(self, name: str) -> Part | None:
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Part]:
        return {part.name: part for part in self.parts.parts}

    def outputs(self, name: str) -> tuple[DatasetId, ...]:
        """The datasets that a part writes."""
        return self._outputs.get(name, ())

    @cached_property
    def _outputs(self) -> dict[str, tuple[DatasetId, ...]]:
        found: dict[str, dict[DatasetId, None]] = {}
        for dataset, writers in self.written.items():
            for one in writers:
                found.setdefault(one.part.name, {})[dataset] = None
        return {name: tuple(datasets) for name, datasets in found.items()}

    def datasets_of(self, name: str) -> tuple[DatasetId, ...]:
        """What a part writes; of one that cannot be read the table of its name."""
        named = self.names.of_table(name)
        return (*self.outputs(name), *((named,) if named is not None else ()))


@dataclass
class _Reading:
    """Statements of parts, read with what is known of schemas so far. unread: of texts that cannot be cut."""

    names: Names
    dialect: str
    made: dict[str, list[tuple[int, list[StatementLineage]]]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    def read(self, part: Part) -> None:
        found = []
        self.unread.pop(part.name, None)
        for number, text in enumerate(part.texts):
            try:
                found.append((number, Script(self.names, self.dialect).run(_sql(part, text.sql))))
            except LineageError as error:
                self.unread[part.name] = error.what
        self.made[part.name] = found

    def incomplete(self) -> list[str]:
        return [name for name, found in self.made.items() if any(not one.complete for _, made in found for one in made)]


@rare_collections()
def side_lineage(parts: Parts, known: Known) -> SideLineage:
    """The lineage of all parts. What cannot be told is in `unclear`; nothing raises."""
    schemas = _schemas(parts, known)
    reading = _Reading(Names(dict(schemas)), known.dialect)
    ordered = _in_order(parts.parts)
    for part in ordered:
        reading.read(part)
    by_name = {part.name: part for part in ordered}
    before: set[str] = set()
    for _ in range(_MOST_ROUNDS):  # a script may read what a later one makes
        again = [n for n in reading.incomplete() if by_name[n].kind is PartKind.SCRIPT]
        if not again or set(again) == before:
            break
        before = set(again)
        for name in again:
            reading.read(by_name[name])
    told = [(part, line, one) for part in ordered for line, one in _told(part, reading, known.dialect)]
    told = [(part, line, one) for (part, line, _), one in zip(told, apart([one for *_, one in told]), strict=True)]
    created = {one.made.output for *_, one in told if one.made.output and one.made.effect is Effect.SCHEMA}
    schemas |= {
        name: found for name in sorted(created) if name not in schemas and (found := reading.names.columns(name))
    }
    ledger = _ledger(parts, schemas, known, [one for *_, one in told])
    statements = [one for *_, one in told]
    shown = defined(statements, ledger)
    for one in explained(statements, shown, ledger):
        tell(one, ledger)
    tell_through(statements, shown, ledger)
    for name, columns in schemas.items():
        dataset = ledger.identities.of_table(name)
        if dataset is not None and not ledger.columns.get(dataset):
            ledger.columns[dataset] = tuple(Column(name=n, type=t) for n, t in columns)
    facts = collect(
        ledger.edges(), ledger.memberships(), ledger.jobs(), ledger.gaps(), ledger.columns, ledger.identities.aliases
    )
    graph = LineageGraph(
        facts if known.upstream is None else _joined(facts, known.upstream, [one for *_, one in told], ledger)
    )
    written: dict[DatasetId, list[Written]] = {}
    for part, line, one in told:
        output = ledger.identities.of_rows(one.made.output, written=True) if one.made.output else None
        if output is not None and one.made.effect in _WRITES:
            appended = part.appended if part.kind is not PartKind.SCRIPT else one.made.effect is Effect.APPEND
            written.setdefault(output, []).append(Written(part, one.made, line, appended))
    unclear = {part.name: tuple(_unclear(part, reading)) for part in ordered}
    return SideLineage(
        parts,
        graph,
        {d: tuple(w) for d, w in written.items()},
        {n: u for n, u in unclear.items() if u},
        ledger.identities,
    )


def _sql(part: Part, text: str) -> str:
    """A model as the statement that dbt makes of it; its text begins on the second line."""
    if part.kind is PartKind.SCRIPT:
        return text
    return f"CREATE OR REPLACE {'VIEW' if part.kind is PartKind.VIEW else 'TABLE'} {part.name} AS\n{text}\n"


def _line(part: Part, number: int, made: StatementLineage) -> int:
    """Where a statement begins; of a model, its first line that says something."""
    text = part.texts[number]
    if part.kind is PartKind.SCRIPT:
        return text.line_of(made.line)
    return next((text.line_of(n) for n, line in enumerate(text.sql.split("\n"), 1) if line.strip()), 1)


def line_of_column(found: Written, column: str) -> int:
    """The line of the file where a written column stands; that of the statement where it is not written out."""
    word = re.compile(rf"(?<!\w){re.escape(column)}(?!\w)", re.IGNORECASE)
    for text in found.part.texts:
        lines = text.sql.split("\n")
        first, last = 0, len(lines)
        if found.part.kind is PartKind.SCRIPT:
            first = found.made.line - 1
            last = first + found.made.sql.count("\n") + 1
        hits = [n for n in range(first, min(last, len(lines))) if word.search(lines[n].split("--")[0])]
        aliased = [n for n in hits if re.search(rf"\bas\s+[`\"]?{re.escape(column)}\b", lines[n], re.IGNORECASE)]
        if hits:
            return text.line_of((aliased or hits)[0] + 1)
    return found.line


def _told(part: Part, reading: _Reading, dialect: str) -> Iterator[tuple[int, Told]]:
    """The statements of a part, with their line in its file; each has evidence of its own."""
    seen: Counter[int] = Counter()
    for number, statements in reading.made[part.name]:
        for made in statements:
            line = _line(part, number, made)
            seen[line] += 1
            where = f"{part.file}:{line}" + (f" ({seen[line]})" if seen[line] > 1 else "")
            again = part.kind is PartKind.SCRIPT and dialect in SPARK
            yield line, Told(made, in_file(where, part.name), rebuild=again)


def _unclear(part: Part, reading: _Reading) -> Iterator[Unclear]:
    if part.unread is not None:
        yield Unclear(part.unread_line, part.unread)
    if part.doubt is not None:
        yield Unclear(1, part.doubt)
    if part.name in reading.unread:
        yield Unclear(1, reading.unread[part.name])
    seen = set()
    for number, statements in reading.made[part.name]:
        for made in statements:
            for reason in made.reasons if made.effect not in _WITHOUT_ROWS else ():
                if reason not in seen:
                    seen.add(reason)
                    line = made.line if part.kind is PartKind.SCRIPT else max(1, made.line - 1)
                    yield Unclear(part.texts[number].line_of(line), reason, reason in made.assumed)


def _schemas(parts: Parts, known: Known) -> dict[str, tuple[tuple[str, str], ...]]:
    """Columns by table: of the repository's sources and seeds, and before them those from outside.

    What a properties file says of a model's columns is not its schema: it may leave some out.
    """
    models = {part.name for part in parts.parts}
    found = {name: columns for name, columns in parts.schemas.items() if name not in models}
    found |= {p.name: tuple((c, "") for c in p.columns) for p in parts.parts if p.columns}
    if known.upstream is not None:
        for name, dataset in known.upstream.aliases().items():
            columns = known.upstream.declared(dataset)
            if columns and name not in models:
                found[name] = tuple((c.name, c.type) for c in columns)
    return {**found, **{name: columns for name, columns in known.schemas.items() if name not in models}}


def _in_order(parts: Sequence[Part]) -> list[Part]:
    """Upstream before downstream by references; scripts after, by their paths, in which numbers count as numbers."""
    by_name = {part.name: part for part in parts}
    models = [part for part in sorted(parts, key=lambda p: p.name) if part.kind is not PartKind.SCRIPT]
    found: dict[str, Part] = {}
    for start in models:
        stack: list[tuple[Part, bool]] = [(start, False)]
        waiting: set[str] = set()
        while stack:
            part, done = stack.pop()
            if done:
                found.setdefault(part.name, part)
            elif part.name not in found and part.name not in waiting:
                waiting.add(part.name)
                stack.append((part, True))
                stack += [(by_name[name], False) for name in part.reads if name in by_name]
    scripts = sorted((p for p in parts if p.kind is PartKind.SCRIPT), key=lambda p: _natural(p.file))
    return [*found.values(), *scripts]


def _natural(path: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(p), "") if p.isdecimal() else (-1, p) for p in re.findall(r"[0-9]+|[^0-9]+", path))


def _ledger(parts: Parts, schemas: Iterable[str], known: Known, told: Sequence[Told]) -> Ledger:
    """A ledger in which every name of the repository means something."""
    identities = Identities(known.upstream.aliases() if known.upstream is not None else {})
    ledger = Ledger(identities)

    def learn(name: str, namespace: str = TABLE) -> None:
        if identities.of_table(name) is None:
            identities.learn(name, DatasetId(namespace=namespace, name=name.replace("`", "").lower()))

    for name in sorted({*known.tables, *schemas}, key=lambda n: (-n.count("."), n)):
        learn(name)
    for part in parts.parts:
        if part.kind is not PartKind.SCRIPT:
            learn(part.name, VIEW if part.kind is PartKind.VIEW else TABLE)
    locations(told, ledger)
    tables(told, ledger)
    views(told, ledger)
    written = [one.made.output for one in told if one.made.output and one.made.effect in _WRITES]
    read = [name for one in told for name in (*one.made.inputs, *one.made.read) if one.made.effect not in _WITHOUT_ROWS]
    for name in sorted({*written, *read}, key=lambda n: (-n.count("."), n)):
        if identities.part_of(name) is None:
            learn(name)
    return ledger


def _joined(facts: Facts, upstream: LineageGraph, told: Sequence[Told], ledger: Ledger) -> Facts:
    """The repository's facts, and those of the harvested graph that lead to what it reads.

    What the repository writes itself comes from the repository alone: the harvest knows it as it was.
    """
    of = ledger.identities
    own = {of.of_rows(one.made.output, written=True) for one in told if one.made.output}
    read = {of.of_rows(name) for one in told for name in one.made.inputs} - {None}
    reached = {
        above for dataset in read if dataset is not None for above in (dataset, *upstream.upstream(dataset))
    } - own
    return collect(
        edges=[*facts.edges, *(e for d in reached for e in upstream.edges_into(d))],
        memberships=[*facts.memberships, *(m for d in reached for m in upstream.memberships_into(d))],
        jobs=[*facts.jobs, *(j for d in reached for j in upstream.jobs_into(d))],
        gaps=facts.gaps,
        columns={**{d: upstream.declared(d) for d in reached if upstream.declared(d)}, **dict(facts.schemas)},
        aliases=dict(facts.names),
    )
