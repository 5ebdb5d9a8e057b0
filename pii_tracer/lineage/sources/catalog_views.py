"""Views that catalogs have, with their queries: a job that reads one reads the tables behind it."""

from __future__ import annotations

from collections.abc import Sequence

from pii_tracer.lake.catalogs.base import CatalogView
from pii_tracer.lineage.sources.evidence import in_file
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.statement_facts import Told, parsed
from pii_tracer.lineage.sql.text.table_names import Names


def read_views(views: Sequence[CatalogView], ledger: Ledger) -> list[Told]:
    """The statements that make these views. Names in a query without a catalog or schema are those of where it was
    written. A query that cannot be read is a gap."""
    known = ledger.known_tables() if views else {}
    told = []
    for view in views:
        default_db, default_schema = ("", *view.written_in)[-2:]
        names = Names(known, default_db or None, default_schema or None)
        quoted = ".".join(f"`{part.replace('`', '``')}`" for part in view.name.split("."))
        proof = in_file(f"catalog {view.catalog}, view {view.name}", f"view {view.name}")
        statement = f"CREATE OR REPLACE VIEW {quoted} AS\n{view.query}\n"
        told += [Told(made, proof, rebuild=False) for made in parsed(statement, names, view.dialect, proof, ledger)]
    return told
