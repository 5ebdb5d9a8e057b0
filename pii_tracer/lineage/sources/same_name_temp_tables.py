"""Temporary tables of one name that several jobs, runs or parts of a script make, each in its own way.

A session sees its own table alone (https://www.postgresql.org/docs/current/sql-createtable.html). Taken for one table,
the ids of products that one job puts into `x` would count as the key of the persons whom another job puts into `x`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.sources.openlineage.own_names import OwnNames
from pii_tracer.lineage.sources.statement_facts import Told
from pii_tracer.lineage.sql.statement_effects import Effect, StatementLineage
from pii_tracer.lineage.sql.text.session_tables import makes_session_table
from pii_tracer.model.datasets import DatasetId

_MAKES = frozenset({Effect.REPLACE, Effect.SCHEMA, Effect.CLONE})
_Scope = tuple[str, object]
"""A job and the script in which its statement stands."""


@dataclass
class _Table:
    """One temporary table: who makes it, the statements that write it, and the positions of all that name it."""

    job: str
    ways: list[str] = field(default_factory=list)
    users: list[int] = field(default_factory=list)


def apart(told: Sequence[Told]) -> list[Told]:
    """The statements, in which each temporary table that shares its name with a different one has a name of its own.

    A statement of which nobody can tell which table it reads keeps the plain name, which then nothing explains: a gap.
    """
    made = {one.made.output for one in told if one.made.output and _is_make(one.made)}
    result = list(told)
    for name in sorted(made):
        tables = _tables(name, told)
        if len({tuple(dict.fromkeys(table.ways)) for table in tables}) < 2:
            continue
        for number, table in enumerate(tables, 1):
            plain = name.replace("`", "").replace('"', "").strip().lower()
            dataset = DatasetId(namespace=VIEW, name=f"{plain} ({number} of {table.job})")
            for at in table.users:
                one = result[at]
                if one.own.of(name) is None:
                    own = OwnNames((*one.own.names, (plain, dataset)))
                    result[at] = replace(one, own=own, rebuild=False)
    return result


def _tables(name: str, told: Sequence[Told]) -> list[_Table]:
    tables: list[_Table] = []
    now: dict[_Scope, _Table | None] = {}
    outside: list[int] = []
    of_job: dict[str, list[_Table]] = defaultdict(list)
    for at, one in enumerate(told):
        made, scope = one.made, (one.proof.job, one.texts)
        if name not in (made.output, *made.read, *made.inputs):
            continue
        if made.output == name and _is_make(made):
            table = _Table(one.proof.job)
            tables.append(table)
            of_job[one.proof.job].append(table)
            now[scope] = table
        current = now.get(scope)
        if current is None or not one.in_script:  # a log's sessions run at the same time
            if current is not None and made.output == name:
                current.ways.append(made.sql)
                current.users.append(at)
            elif scope not in now or current is not None:
                outside.append(at)
            continue
        current.users.append(at)
        if made.output == name and made.effect is not Effect.DROP:
            current.ways.append(made.sql)
        if made.output == name and made.effect is Effect.DROP:
            now[scope] = None
    for at in outside:  # another text of the job makes it
        candidates = of_job[told[at].proof.job]
        if candidates and len({tuple(table.ways) for table in candidates}) == 1:
            candidates[0].users.append(at)
    return tables


def _is_make(made: StatementLineage) -> bool:
    if made.output is None or made.effect not in _MAKES:
        return False
    named = made.output if made.makes or made.effect is Effect.REPLACE else ""
    return makes_session_table(made.sql, named)
