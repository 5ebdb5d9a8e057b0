"""What reading a table means that statements of the same script wrote: their sources, and the rows it had before."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pii_tracer.lineage.sql.relations import Relation, in_order, union, union_by_name
from pii_tracer.lineage.sql.statement_effects import Draft, Effect, StatementLineage

_MODE = re.compile(
    r"^\s*SET\s+`?spark\.sql\.sources\.partitionOverwriteMode`?\s*=\s*['\"]?(?P<mode>\w+)", re.IGNORECASE
)
_NO_ROWS = frozenset({Effect.DROP, Effect.DELETE, Effect.NONE})


def replaces_partitions(text: str, before: bool) -> bool:
    """Whether INSERT OVERWRITE leaves partitions that it has no rows for, after a statement. before: until then.

    https://spark.apache.org/docs/3.5.6/configuration.html#runtime-sql-configuration
    """
    found = _MODE.match(text)
    return before if found is None else found["mode"].lower() == "dynamic"


@dataclass(frozen=True)
class Intermediate:
    """What reading an intermediate result means. made: of a session's view, as of `JobRef.views`."""

    relation: Relation
    tables: tuple[str, ...]
    reasons: tuple[str, ...]
    made: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Before:
    """What a table was before a statement wrote it.

    base: its rows and columns when the script began. created: the script made it, so that there were none. stays: all
    rows that were there may still be there. order: its columns, where they are known in order.
    """

    seen: Intermediate | None
    base: Relation
    created: bool
    stays: bool
    order: tuple[str, ...]


def after(draft: Draft, made: StatementLineage, before: Before, *, whole: bool, branch: bool) -> Intermediate | None:
    """What reading the output means after a statement; None where it is as before. whole: no other rows are in it.
    branch: the statement may not have run.
    """
    if draft.effect in _NO_ROWS:
        return None
    fresh = draft.relation()
    if before.stays and before.seen is None:
        fresh = union_by_name(fresh, before.base)
    elif not whole and not before.created:
        fresh = _with_older_columns(before.base, fresh, stay=draft.effect is Effect.CHANGE)
    fresh = in_order(fresh, before.order)
    seen = before.seen
    if seen is None or (whole and not branch):
        relation = Relation(fresh.fields, fresh.rest, indirect=frozenset(made.indirect))
        own = (made.output or "").lower()
        texts = (*made.views, (own, made.sql)) if draft.effect is Effect.TEMPORARY else ()
        older = (made.output,) if before.stays and made.output is not None else ()
        return Intermediate(relation, tuple(dict.fromkeys((*made.inputs, *older))), made.reasons, texts)
    indirect = seen.relation.indirect | frozenset(made.indirect)
    by_position = draft.effect is Effect.APPEND and len(fresh.fields) == len(seen.relation.fields)
    both = (union if by_position else union_by_name)(seen.relation, fresh)
    return Intermediate(
        Relation(both.fields, both.rest, indirect=indirect),
        tuple(dict.fromkeys((*seen.tables, *made.inputs))),
        tuple(dict.fromkeys((*seen.reasons, *made.reasons))),
    )


def _with_older_columns(known: Relation, fresh: Relation, *, stay: bool) -> Relation:
    """A table that was there before has columns that this write does not mention. stay: rows that it leaves as
    they are have their values in those that it does.
    """
    if stay:
        return union_by_name(fresh, known)
    rest = () if known.fields or not fresh.fields or fresh.rest else (known,)
    older = (f for f in known.fields if fresh.known(f.name) is None)
    return Relation([*fresh.fields, *older], (*fresh.rest, *rest))
