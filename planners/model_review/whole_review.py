"""Both sides of a repository into one review: every kind of person followed, every rule asked, waivers applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pii_tracer.config.estate_file import Estate
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.projects.parts import Parts
from pii_tracer.lineage.projects.project_lineage import Known, side_lineage
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.errors import ConfigError
from pii_tracer.model.model_review import FindingKind, ModelReview, ReviewedSubject, ReviewFinding, Severity
from planners.locate.edge_effects import Anonymisers, declared_anonymisers
from planners.model_review.holdings import holdings
from planners.model_review.retention import ddl_of, retention_findings
from planners.model_review.subject_selection import Followed, declared, guessed
from planners.model_review.verdicts import Comparison, seed_findings, statement_findings, table_findings
from planners.model_review.waivers import accepted, waivers_of


@dataclass(frozen=True)
class Sides:
    """What is compared. base_name, head_name: as reports call them. texts: of the head's files, for waivers."""

    base_name: str
    head_name: str
    base: Parts
    head: Parts
    texts: Mapping[str, str]


def whole_review(sides: Sides, known: Known, estate: Estate | None) -> ModelReview:
    """The review. Persons of sources that neither the estate nor its lineage explains are guessed from names."""
    both = Comparison(side_lineage(sides.base, known), side_lineage(sides.head, known))
    two = (both.head, both.base)
    told = declared(estate.subjects, two, known.upstream) if estate is not None else []
    followed = [*told, *guessed(two, told, known.upstream)]
    names = frozenset(name.lower() for name in _names(followed, estate))
    found: list[ReviewFinding] = []
    held: dict[DatasetId, frozenset[str]] = {}
    for one in followed:
        base, head = (holdings(s.graph, one, _anonymisers(estate, s.graph)) for s in (both.base, both.head))
        found += table_findings(both, base, head, one.subject.key)
        for dataset, holding in head.items():
            held[dataset] = held.get(dataset, frozenset()) | holding.identifiers | frozenset(holding.keys)
    found += statement_findings(both)
    found += seed_findings(both, names)
    if estate is not None and "retention" in estate.model_fields_set:
        ddl = ddl_of(both.head, known.dialect, estate.catalogs)
        found += retention_findings(both, held, ddl, estate.retention, names)
    if not (followed if estate is None else told):
        found.append(_nobody(estate))
    waivers = {file: tuple(waivers_of(file, text)) for file, text in sides.texts.items() if "pii-tracer" in text}
    unique = {(f.kind, f.file, f.table, f.columns): f for f in reversed(found)}
    return ModelReview(
        base=sides.base_name,
        head=sides.head_name,
        subjects=tuple(
            ReviewedSubject(name=f.subject.name, source=f.source.name, key=f.subject.key, guessed=f.guessed)
            for f in followed
        ),
        compared=len(sides.head.parts),
        changed=tuple(sorted({part.file for part in sides.head.parts if part.name in both.changed})),
        views=_views(both),
        findings=accepted(unique.values(), {file: found for file, found in waivers.items() if found}),
    )


def _anonymisers(estate: Estate | None, graph: LineageGraph) -> Anonymisers:
    """The estate's anonymisers that this side has. A column that it lacks ends nobody."""
    functions: set[str] = set()
    columns: set[ColumnId] = set()
    if estate is None:
        return Anonymisers()
    for name in estate.anonymisers:
        try:
            found = declared_anonymisers(estate.model_copy(update={"anonymisers": (name,)}), graph)
        except ConfigError:
            continue
        functions |= found.functions
        columns |= found.columns
    return Anonymisers(functions=frozenset(functions), columns=frozenset(columns))


def _views(both: Comparison) -> tuple[str, ...]:
    """Files of changed parts that write views alone."""
    writes: dict[str, list[bool]] = {}
    for written in both.head.written.values():
        for one in written:
            if one.part.name in both.changed:
                writes.setdefault(one.part.file, []).append(one.is_view)
    return tuple(sorted(file for file, are in writes.items() if all(are)))


def _names(followed: Iterable[Followed], estate: Estate | None) -> Iterable[str]:
    """Names of columns that mean a person in any table."""
    for one in followed:
        for _, told in one.subject.by_table:
            yield from (name.rpartition(".")[2] for name in told.personal)
    if estate is not None:
        yield from estate.retention.pii_columns


def _nobody(estate: Estate | None) -> ReviewFinding:
    why = (
        "no statement of the repository or the lineage reads a table of the estate's subjects"
        if estate is not None
        else "no source here has columns that name a key and an identifier of persons"
    )
    return ReviewFinding(
        kind=FindingKind.NO_SUBJECT,
        severity=Severity.ERROR,
        file="",
        line=1,
        table="",
        message=f"The review followed no person: {why}.",
        todo="Add --estate with the subjects, and --lineage with their graph, or the columns of the sources.",
    )
