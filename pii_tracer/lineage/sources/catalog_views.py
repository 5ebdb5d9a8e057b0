"""Views that catalogs have, with their queries: a job that reads one reads the tables behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from pii_tracer.lake.catalogs.base import CatalogView
from pii_tracer.lineage.sources.evidence_merging import Proof, in_file
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.statement_facts import Told, parsed
from pii_tracer.lineage.sql.statement_effects import StatementLineage
from pii_tracer.lineage.sql.text.table_names import Names


def read_views(views: Sequence[CatalogView], ledger: Ledger) -> list[Told]:
    """The statements that make these views. Names in a query without a catalog or schema are those of where it was
    written. A query that cannot be read is a gap."""
    known = ledger.known_tables() if views else {}
    told = []
    for view in views:
        proof = in_file(f"catalog {view.catalog}, view {view.name}", f"view {view.name}")
        told += [Told(made, proof, rebuild=False) for made in _statements(view, known, proof, ledger)]
    return told


def _statements(
    view: CatalogView, known: Mapping[str, Sequence[tuple[str, str]]], proof: Proof, ledger: Ledger
) -> list[StatementLineage]:
    """The statement that makes a view. Catalogs keep the query as it was written, and names that `CREATE VIEW v (…)`
    gave to its columns beside it: they count where the query's own names are others."""
    default_db, default_schema = ("", *view.written_in)[-2:]

    def quoted(name: str) -> str:
        return exp.to_identifier(name, quoted=True).sql(view.dialect)

    def read(columns: str) -> list[StatementLineage]:
        names = Names(known, default_db or None, default_schema or None)
        target = ".".join(map(quoted, view.name.split(".")))
        return parsed(
            f"CREATE OR REPLACE VIEW {target}{columns} AS\n{view.query}\n", names, view.dialect, proof, ledger
        )

    made = read("")
    own = [column.lower() for one in made for column in one.columns]
    given = [column.name.lower() for column in view.columns]
    # a query's star can have more columns by now than the view has
    if made and own != given and (len(own) == len(given) or not set(given) <= set(own)):
        return read(f" ({', '.join(quoted(column.name) for column in view.columns)})")
    return made
