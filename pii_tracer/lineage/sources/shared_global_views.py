"""Global temporary views that one text makes and another one reads: sessions of one Spark application share them.

https://spark.apache.org/docs/latest/sql-ref-syntax-ddl-create-view.html. Within one text the script sees through them,
as through all views of a session.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sql.statement_effects import Effect, StatementLineage
from pii_tracer.lineage.sql.text.global_temp_views import is_global_view
from pii_tracer.model.datasets import DatasetId


def share(made: Collection[StatementLineage], ledger: Ledger) -> None:
    """Let every text read the global views that are made in one way; those made in several stay what nobody can tell.

    Other applications may call another view so. Taken for one, a row of somebody else's could be deleted by a key
    that its column holds in the other view only.
    """
    read = {table for one in made for table in one.inputs if is_global_view(table)}
    ways: dict[str, dict[object, str]] = defaultdict(dict)
    for one in made:
        if one.output in read and one.effect is not Effect.DROP:
            view = one.effect is Effect.TEMPORARY
            ways[one.output][(one.inputs, one.edges, one.indirect, one.reasons) if view else None] = one.sql
    for name, texts in ways.items():
        if None in texts or (len(texts) > 1 and len(set(texts.values())) > 1):
            ledger.ambiguous.add(name)
        elif ledger.identities.of_table(name) is None:
            ledger.identities.learn(name, DatasetId(namespace=VIEW, name=name))


def is_shared(made: StatementLineage, ledger: Ledger) -> bool:
    """Whether a statement makes a global view that other texts read."""
    if made.effect is not Effect.TEMPORARY or made.output is None or not is_global_view(made.output):
        return False
    known = ledger.identities.of_table(made.output)
    return known is not None and known.namespace == VIEW
