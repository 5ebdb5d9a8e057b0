"""New tables with persons, and the retention class that they need."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pii_tracer.config.estate_file import RetentionClasses
from pii_tracer.lineage.projects.parts import PartKind
from pii_tracer.lineage.projects.project_lineage import SideLineage
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import LineageError
from pii_tracer.model.model_review import FindingKind, ReviewFinding, Severity
from pii_tracer.retention.ddl_tables import created
from pii_tracer.retention.retention_classes import class_of
from planners.model_review.verdicts import Comparison, stored_in


@dataclass(frozen=True)
class Declared:
    """What DDL says of a table: its properties, its columns, and the line of its creation."""

    settings: Mapping[str, str]
    columns: tuple[str, ...]
    line: int


def ddl_of(side: SideLineage, dialect: str, catalogs: Collection[str]) -> dict[DatasetId, Declared]:
    """The tables that the scripts of a side create, as they leave them. What does not parse is a finding elsewhere."""
    scripts = [p for p in side.parts.parts if p.kind is PartKind.SCRIPT and p.texts]
    found: dict[DatasetId, Declared] = {}
    for part in scripts:
        try:
            made = created([(part.file, part.texts[0].sql)], dialect, catalogs)
        except LineageError:
            continue
        for one in made:
            dataset = side.names.of_table(one.written) or side.names.of_table(one.table)
            if one.unread is None and dataset is not None:
                found[dataset] = Declared(one.properties, one.columns, part.texts[0].line_of(one.line))
    return found


def retention_findings(
    both: Comparison,
    held: Mapping[DatasetId, frozenset[str]],
    ddl: Mapping[DatasetId, Declared],
    rules: RetentionClasses,
    names: frozenset[str],
) -> Iterator[ReviewFinding]:
    """New tables with persons and no class that fits. held: columns of persons by dataset, as lineage tells them.

    names: of columns that mean a person wherever they are created, in lower case.
    """
    for dataset, own in both.head.written.items():
        stored = [one for one in own if not one.is_view]
        if not stored or stored_in(both.base, dataset):
            continue
        told = ddl.get(dataset)
        columns = {c for one in stored for c in one.made.columns} | set(told.columns if told else ())
        personal = sorted(held.get(dataset, frozenset()) | {c for c in columns if c.lower() in names})
        if not personal:
            continue
        settings = {**(told.settings if told else {}), **{k: v for one in stored for k, v in one.part.settings.items()}}
        found = class_of(rules, (dataset.name, *both.head.graph.aliases_of(dataset)), settings, personal)
        if found.explicit and not found.wrong:
            continue
        why = found.wrong or f"it contains {', '.join(personal[:4])}, but has no class"
        yield ReviewFinding(
            kind=FindingKind.RETENTION_CLASS,
            severity=Severity.ERROR,
            file=stored[0].part.file,
            line=told.line if told else stored[0].line,
            table=dataset.name,
            message=f"{dataset.name} is a new table without a fitting retention class: {why}.",
            todo=(
                "Name its class under `retention.tables` of the estate file, or in the table property "
                "'pii-tracer.retention-class'."
            ),
            columns=tuple(personal),
        )
