"""SQL through the harvest to carriage: a small estate whose subject is known from `prod.users`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Identifier, Subject
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, Column, DatasetId
from planners.locate.edge_effects import Anonymisers
from planners.locate.key_location import Carriage, follow
from tests.lineage.harvesting import harvest

PERSON = Subject(
    name="person",
    source="prod.users",
    key="user_id",
    identifiers=(Identifier(column="email", category="email"), Identifier(column="phone", category="phone")),
    record_keys=("order_id",),
)

TABLES: dict[str, str] = {
    "prod.users": "user_id bigint, email string, phone string, order_id string, manager_id bigint, city string,"
    " amount decimal(10,2), paid_at timestamp, ds string",
    "prod.merchants": "merchant_id bigint, name string, city string",
    "prod.transfers": "transfer_id string, sender bigint, receiver bigint, amount decimal(10,2)",
}


@dataclass(frozen=True)
class Case:
    """A statement and its answer. mixed: a row can name several people, so that none may be deleted by a key."""

    name: str
    sql: str
    carries: Carries
    terms: tuple[str, ...] = ()
    mixed: bool = False


def dataset(table: str) -> DatasetId:
    return DatasetId(namespace="file", name="/w/" + table.replace(".", "/"))


def columns(ddl: str) -> tuple[Column, ...]:
    """`name type, …`; commas inside a type's brackets belong to it."""
    parts, depth = [""], 0
    for sign in ddl:
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    pairs = (part.strip().split(" ", 1) for part in parts)
    return tuple(Column(name=name, type=kind) for name, kind in pairs)


def graph_of(sql: str, tables: Mapping[str, str] | None = None) -> LineageGraph:
    """The graph of a script; every table it mentions that is not one of TABLES is `prod.…` too."""
    known = TABLES | dict(tables or {})
    names = [*known, *(f"prod.{name}" for name in ("a", "b", "c", "out", "out2"))]
    aliases = {name: dataset(name) for name in names}
    schemas = {name: columns(ddl) for name, ddl in known.items()}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "job.sql").write_text(sql, encoding="utf-8")
        return harvest(LineageSources(sql=("job.sql",)), Path(folder), (), aliases, schemas)


def carriage(
    sql: str,
    table: str = "prod.out",
    subject: Subject = PERSON,
    tables: Mapping[str, str] | None = None,
    anonymisers: Anonymisers | None = None,
) -> Carriage:
    """The carriage of one table after a script."""
    graph = graph_of(sql, tables)
    assert not [g for g in graph.gaps if "column names of the query" not in g.reason], graph.gaps
    return follow(graph, dataset(subject.source), subject, anonymisers)[dataset(table)]


def terms(found: Carriage) -> list[str]:
    """`column[.access] = expression over the origin`, as a person would write it."""
    told = []
    for name, trace in found.terms:
        way = "".join(".$." + ".".join(a.path) if a.kind == "json" else f".{a.name}" for a in trace.access)
        told.append(
            f"{name}{way} = {trace.expression.replace('x', trace.origin) if trace.expression == 'x' else trace.expression}"
        )
    return told
