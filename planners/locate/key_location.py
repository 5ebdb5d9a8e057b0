"""Where is the key? For every dataset downstream of a source: the best way to find the persons' rows, or why not.

Every statement that brings persons into a dataset has to be covered: rows that one job writes with the key and another
without it are found only by what both of them write. A row that can name several people is nobody's to delete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pii_tracer.common.gc_pause import lasting_objects
from pii_tracer.config.subjects import Subject, SubjectTable
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.sql.text.literal_redaction import hidden
from pii_tracer.model.column_paths import Spots
from pii_tracer.model.datasets import Access, Carries, ColumnId, DatasetId, JsonAccess
from planners.locate.columns_in_other_rows import Strays, stray_columns
from planners.locate.composite_key_lineage import lacking, said, shared_values, ways_of, whole_terms
from planners.locate.edge_effects import Anonymisers
from planners.locate.identifier_traces import (
    ColumnCarriage,
    Contribution,
    Mentioned,
    Trace,
    what_is_done,
)
from planners.locate.identifier_walk import Walk
from planners.locate.match_completeness import (
    Covers,
    covering,
    hidden_since,
    parted,
    usable,
    without_key,
)
from planners.locate.sql.column_expressions import shown
from planners.locate.sql.spark_functions import is_plain
from planners.locate.tag_propagation import (
    Witnesses,
    further_tags,
    source_tags,
    spread,
)
from planners.locate.unkeyed_rows import Unkeyed

Terms = tuple[tuple[str, Trace], ...]

_REASONS = {
    Carries.KEY: "contains {key} itself",
    Carries.COMPUTED_KEY: "contains {key}, transformed by a known expression",
    Carries.BRIDGE: "reaches the person through row keys of the source",
    Carries.IDENTIFIERS: "contains other identifiers of the person",
}
_ROWS_WITHOUT_KEY = (
    "add the column that distinguishes such rows under `record_keys` of their table (subject, `tables`), rebuild the "
    "table from the erased tables, or let its job write the key"
)
_CLASSES = tuple(_REASONS)
"""Best first."""


@dataclass(frozen=True)
class Carriage:
    """How a dataset carries the persons of a source.

    terms: the traces whose rows are the persons'. hops: datasets on the way from the source. mixed: columns in which a
    person may stand in somebody else's row; then no row may be deleted by a key. closes: what would answer an unknown.
    tags: the categories of the columns, with their witnesses. mentions: columns that name persons in rows that are not
    theirs alone; these rows stay. declared: the estate file names the dataset among the subject's `tables`.
    joined_keys: columns of nobody's tables that a join makes equal to the person's key, and the column they go into.
    if_confirmed: what its word would make of it, where lineage cannot match all rows; the rows have to bear it out.
    """

    dataset: DatasetId
    carries: Carries
    terms: tuple[tuple[str, Trace], ...]
    columns: Mapping[str, ColumnCarriage]
    hops: tuple[DatasetId, ...]
    reason: str
    lost: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    closes: str = ""
    tags: Witnesses = field(default_factory=dict)
    mentions: tuple[Mentioned, ...] = ()
    declared: bool = False
    if_confirmed: Carriage | None = None
    joined_keys: frozenset[tuple[ColumnId, str]] = frozenset()

    @property
    def ways(self) -> tuple[tuple[str, tuple[Access, ...]], ...]:
        """The columns in which the persons are looked for, with the ways into them."""
        return tuple(way for term in self.found_in for way in ways_of(term))

    @property
    def found_in(self) -> Terms:
        """What tells the persons' rows, and what names them in rows of others."""
        return (*self.terms, *((m.column, m.trace) for m in self.mentions))

    @property
    def key_names(self) -> frozenset[str]:
        """The columns in which the persons are looked for, and as `column.field` the fields of these."""
        return frozenset(name for n, access in self.ways for name in (n, field_name(n, access)))


@lasting_objects()
def follow(
    graph: LineageGraph,
    source: DatasetId,
    subject: Subject,
    anonymisers: Anonymisers | None = None,
    tags: Mapping[ColumnId, str] | None = None,
    further: Mapping[DatasetId, SubjectTable] | None = None,
    spots: Spots | None = None,
) -> dict[DatasetId, Carriage]:
    """Carriage of every dataset downstream of the source, the source itself included, in topological order.

    tags: categories of other columns, as OpenLineage's tags tell them; what the subject declares goes before them.
    further: the datasets of the subject's further tables. spots: where names of the subject stand inside structs.
    """
    walk = Walk(graph, source, subject, anonymisers or Anonymisers(), tags or (), further, spots)
    walk.run()
    given = {**(tags or {}), **source_tags(subject, source), **further_tags(subject, further or {})}
    reached = spread(graph, given, walk.anonymisers, walk.edges, spots)
    parents: dict[DatasetId, DatasetId] = {}
    far = {source: 1}
    rows = without_key(walk)
    strays = stray_columns(walk, rows)
    result = {source: _classify(walk, source, (source,), rows[source], strays)}
    for dataset in walk.order:
        parents[dataset] = walk.nearest(dataset, far)
        hops = _hops(parents, source, dataset)
        far[dataset] = len(hops)
        result[dataset] = _classify(walk, dataset, hops, rows[dataset], strays)
    told = walk.told.keys() - {source}
    joined = walk.equal.explained
    return {
        d: replace(c, tags=reached.get(d, {}), declared=d in told, joined_keys=joined.get(d, frozenset()))
        for d, c in result.items()
    }


@dataclass(frozen=True)
class Answer:
    """How the rows of a contribution are found: by which class, and by which terms. None: some of them are not."""

    carries: Carries | None
    terms: Terms


def _classify(walk: Walk, dataset: DatasetId, hops: tuple[DatasetId, ...], rows: Unkeyed, strays: Strays) -> Carriage:
    """The carriage of one dataset."""
    columns, mentions = walk.columns[dataset], walk.mentions.get(dataset, ())
    if dataset in walk.several:
        return _as_told(walk, dataset, hops)
    lost = tuple(sorted({o for c in columns.values() for o in c.lost} | _uncomputable(columns)))
    parts, changes = parted(walk, dataset)
    mixed = {name for name, c in columns.items() if c.mixed}
    mixed |= {name for name in walk.names(dataset) if name.lower() in strays.columns.get(dataset, ())}
    answers = [_answer(walk, dataset, p, changes, rows) for p in parts]
    if dataset in walk.told:
        told = {name: c for name, c in walk.told[dataset].items() if _by(walk, dataset, c)}
        answers.append(_best(walk.subject, told, lambda name, access: True))
    elif not answers:
        hidden = hidden_since(changes, rows)
        answers.append(_best(walk.subject, columns, lambda name, access: name.lower() not in hidden))
    dark = [part.where for part, answer in zip(parts, answers, strict=False) if answer.carries is None]
    found = [a for a in answers if a.carries is not None]
    dark += [where for where in rows.others([*parts, *changes]) if where not in dark] if found else []
    if not found or dark:
        unmatched = _without_terms(walk, dataset, columns, hops, lost, tuple(sorted(mixed)), dark, bool(found))
        return replace(unmatched, if_confirmed=_declared(walk, dataset, columns, hops))
    carries = max((a.carries for a in found if a.carries), key=_CLASSES.index)
    named = {t for a in found for t in a.terms}
    named |= {t for p in changes for t in _all_terms(walk.subject, p.columns) if t[0] in {name for name, _ in named}}
    terms = tuple(sorted(named, key=lambda term: (term[0], _order(term[1]))))
    mixed |= shared_values(columns, {name for name, _ in terms}, walk.graph.columns(walk.source), walk.subject)
    mixed |= {way[0] for term in terms for way in ways_of(term) if strays.rivals.at(dataset, *way)}
    reason = f"{_REASONS[carries].format(key=walk.subject.key)}: {', '.join(map(said, terms[:3]))}"
    if dataset in walk.told and dataset != walk.source:
        reason += "; named by the estate file, under the subject's `tables`"
    if mixed:
        reason += f"; but a row can hold values of several people ({', '.join(sorted(mixed))})"
    reason += _mentioning(mentions)
    return Carriage(dataset, carries, terms, columns, hops, reason, lost, mixed=tuple(sorted(mixed)), mentions=mentions)


def _declared(
    walk: Walk, dataset: DatasetId, columns: Mapping[str, ColumnCarriage], hops: tuple[DatasetId, ...]
) -> Carriage | None:
    """What the estate file's key makes of a further table that lineage cannot match; None where a row can be several
    people's, or is added up from rows of several."""
    told = {name: c for name, c in walk.told.get(dataset, {}).items() if _by(walk, dataset, c)}
    added_up = walk.reach.comes(dataset)[1] or dataset in walk.rows_of_carriers[1]
    if dataset == walk.source or not told or added_up or any(c.mixed for c in columns.values()):
        return None
    best = _best(walk.subject, told, lambda name, access: True)
    if best.carries is None:
        return None
    names = ", ".join(name for name, _ in best.terms)
    reason = f"the estate file names {names} as its key, and the rows agree"
    return Carriage(dataset, best.carries, best.terms, columns, hops, reason, declared=True)


def _by(walk: Walk, dataset: DatasetId, column: ColumnCarriage) -> bool:
    """Whether a column may tell whose the rows of a declared table are: of one by another key than the subject's its
    key alone, since what else it has was looked up by that."""
    of = walk.keyed_by.get(dataset)
    return of is None or any(trace.origin == of for trace in column.traces)


def _as_told(walk: Walk, dataset: DatasetId, hops: tuple[DatasetId, ...]) -> Carriage:
    """The carriage of a further table of which the estate file tells more than one key: its word counts, whatever
    lineage says of whose the rows are."""
    told = {name: c for name, c in walk.told[dataset].items() if _by(walk, dataset, c)}
    terms, mentions = _best(walk.subject, told, lambda name, access: True).terms, walk.mentions[dataset]
    owners = ", ".join(name for name, _ in terms)
    key = walk.keyed_by.get(dataset) or walk.subject.key
    reason = f"contains {key} itself: {owners}" if owners else "no row belongs only to the person"
    reason += "; named by the estate file, under the subject's `tables`" + _mentioning(mentions)
    carries = Carries.IDENTIFIERS if walk.keyed_by.get(dataset) else Carries.KEY
    return Carriage(dataset, carries, terms, walk.columns[dataset], hops, reason, mentions=mentions)


def _mentioning(mentions: Sequence[Mentioned]) -> str:
    told = [m for m in mentions if m.said]
    lists = [field_name(m.column, m.trace.access) for m in told if m.in_list]
    cleared = [name for m in told for name in (*(() if m.in_list else (m.column,)), *m.clears)]
    return f"; if it names the person in somebody else's row, {what_is_done(lists, cleared)}" if told else ""


def _answer(
    walk: Walk, dataset: DatasetId, part: Contribution, changes: Sequence[Contribution], rows: Unkeyed
) -> Answer:
    """The best class that finds every row of a contribution; or all classes together; or none.

    changes: statements that may have changed the rows since; what they hide finds nobody any more.
    """
    since = hidden_since(changes, rows)
    covers = covering(walk, dataset, part, changes, rows)
    best = _best(walk.subject, part.columns, covers)
    if best.carries is not None:
        return best
    spread = _all_terms(walk.subject, part.columns)
    if not spread:
        return best
    hidden = (
        bool(walk.subject.several_columns)  # a branch with one column of the key has an identifier, and finds nobody
        or any(c.lost for c in part.columns.values())
        or bool(_uncomputable(part.columns))
        or not since.isdisjoint(name.lower() for name in part.columns)
        or any(trace.partial for _, trace in spread)
        or rows.all_bare(part)
    )
    if hidden:
        return best
    return Answer(_worst(walk.subject, spread), spread)


def _best(subject: Subject, columns: Mapping[str, ColumnCarriage], covers: Covers) -> Answer:
    """The best class in which one column finds all rows, with the other terms of this class and of better ones.

    A column that has the key in some rows plain and in others hashed finds them all by both of its expressions, and
    one that has the key in some rows and the e-mail in others by both of these.
    """
    terms = _all_terms(subject, columns)
    found: set[Carries] = set()
    for name, trace in terms:
        if all(covers(*way) for way in ways_of((name, trace))):
            found.add(_worst(subject, tuple(t for t in terms if t[0] == name and t[1].access == trace.access)))
    if not found:
        return Answer(None, ())
    carries = min(found, key=_CLASSES.index)
    upto = _CLASSES[: _CLASSES.index(carries) + 1]
    return Answer(carries, tuple(t for t in terms if _class(subject, t[1]) in upto))


def _worst(subject: Subject, terms: Terms) -> Carries:
    return max((_class(subject, trace) for _, trace in terms), key=_CLASSES.index)


def _all_terms(subject: Subject, columns: Mapping[str, ColumnCarriage]) -> Terms:
    found = [
        (name, trace)
        for name, column in sorted(columns.items())
        for trace in sorted(column.traces, key=_order)
        if usable(trace) and not trace.mention
    ]
    if not subject.several_columns:
        return tuple(found)
    key = subject.several_columns
    single = (term for term in found if term[1].origin not in key)
    return (*single, *whole_terms(found, subject.key, key))


def _class(subject: Subject, trace: Trace) -> Carries:
    if trace.origin == subject.key:
        return Carries.KEY if trace.beside or is_plain(trace.expression) else Carries.COMPUTED_KEY
    return Carries.BRIDGE if trace.origin in subject.row_keys else Carries.IDENTIFIERS


def _same(a: str, b: str) -> bool:
    return a.lower() == b.lower()


def _without_terms(
    walk: Walk,
    dataset: DatasetId,
    columns: Mapping[str, ColumnCarriage],
    hops: tuple[DatasetId, ...],
    lost: tuple[str, ...],
    mixed: tuple[str, ...],
    dark: list[str],
    others_found: bool,
) -> Carriage:
    """The carriage of a dataset in which not all rows can be found. dark: where those are written."""
    from_source, aggregated = walk.reach.comes(dataset)
    ended = sorted({o for c in columns.values() for o in c.ended})

    def answer(carries: Carries, reason: str, closes: str = "") -> Carriage:
        return Carriage(dataset, carries, (), columns, hops, reason, lost, mixed, closes)

    unmatched = f"the rows that {', '.join(dark[:3])} writes do not all have an identifier that a step can match"
    if others_found:
        return answer(Carries.UNKNOWN, unmatched, "rebuild the dataset, or let that job write the key")
    if missing := lacking(columns, walk.subject.several_columns):
        part = ", ".join(origin for origin in walk.subject.several_columns if origin not in missing)
        return answer(
            Carries.UNKNOWN,
            f"{part} is copied here, but not {', '.join(missing)}: alone it also names other people",
            f"rebuild the dataset from the erased source, or let its job also write {', '.join(missing)}",
        )
    if lost:
        how = "; ".join(_hidden(walk, dataset, columns)[:3])
        reason = f"{', '.join(lost)} is copied here, but through an expression that no step can compute"
        return answer(Carries.UNKNOWN, f"{reason}: {how}" if how else reason, _closes(walk, dataset))
    if ended:
        return answer(Carries.NONE, f"{', '.join(ended)} ends in a declared anonymiser")
    if dark:
        return answer(Carries.UNKNOWN, unmatched, "rebuild the dataset, or let that job write the key")
    statements = walk.statements.get(dataset, {}).values()
    spoken = bool(statements) and all(job.statement for job in walk.jobs[dataset])
    if aggregated or (from_source and spoken and all(one.adds_up for one in statements)):
        return answer(Carries.AGGREGATE, "contains aggregates with the person's data, but no key")
    if from_source:
        reason = "contains values of the source's rows without any key"
        return answer(Carries.UNKNOWN, reason, "rebuild it from the erased source, or let its job write the key")
    by_row, added_up = walk.rows_of_carriers
    if dataset in added_up:
        return answer(Carries.AGGREGATE, "contains aggregates of rows that name the person, but no key")
    if dataset in by_row:
        reason = "contains values from rows that name the person, but no column that finds these rows"
        return answer(Carries.UNKNOWN, reason, _ROWS_WITHOUT_KEY)
    if walk.graph.edges_into(dataset) or walk.graph.memberships_into(dataset):
        return answer(Carries.NONE, "the source only filters or joins its rows")
    return answer(Carries.NONE, "lineage leads here, but names no columns, so nobody knows which values were copied")


def _hidden(walk: Walk, dataset: DatasetId, columns: Mapping[str, ColumnCarriage]) -> list[str]:
    """`column = expression` of what cannot be matched, as recorded but for its literals."""
    found = []
    for name, column in sorted(columns.items()):
        found += [
            f"{name} = {shown(t.expression, t.origin)}" for t in sorted(column.traces, key=_order) if not usable(t)
        ]
        if column.lost:
            texts = {e.expression for e in walk.edges.get(dataset, ()) if _same(e.target.column, name) and e.expression}
            found += [f"{name} = {hidden(text)}" for text in sorted(texts)[:1]] or [f"{name}, expression not recorded"]
    return found


def _closes(walk: Walk, dataset: DatasetId) -> str:
    if any(e.expression is None and e.subtype is not Subtype.IDENTITY for e in walk.all_edges(dataset)):
        return "load the SQL of the job that writes the dataset, because events alone do not contain the expression"
    # a hash or a mask is pseudonymous, and so personal data still: no advice to declare it an anonymiser
    declare = "" if any(e.masking for e in walk.all_edges(dataset)) else " declare the function an anonymiser,"
    return f"rebuild the dataset from the erased source,{declare} or let its job also write the key"


def _uncomputable(columns: Mapping[str, ColumnCarriage]) -> set[str]:
    return {t.origin for c in columns.values() for t in c.traces if not usable(t)}


def _order(trace: Trace) -> tuple[str, str, str, bool, bool, bool, str]:
    beside = repr(trace.beside) if trace.beside else ""
    return (trace.origin, trace.expression, repr(trace.access), trace.mixed, trace.partial, trace.mention, beside)


def _hops(parents: Mapping[DatasetId, DatasetId], source: DatasetId, dataset: DatasetId) -> tuple[DatasetId, ...]:
    hops = [dataset]
    while hops[-1] != source and hops[-1] in parents and parents[hops[-1]] not in hops:
        hops.append(parents[hops[-1]])
    return tuple(reversed(hops))


def field_name(column: str, access: tuple[Access, ...]) -> str:
    """`column.field`, as the estate file names a place; of what lies in JSON the field that the JSON stands in."""
    return ".".join([column, *(step.name for step in access if not isinstance(step, JsonAccess))])
