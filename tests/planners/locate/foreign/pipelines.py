"""Small pipelines with their rows: what the answer would delete, and which rows really are the person's.

Every row of the tables below says in `w` whose it is, and pipelines carry that along. The persons' numbers are those of
shops, orders and counted rows, too, so that a wrong key finds somebody.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, FieldAccess, JsonAccess
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.locate.foreign.mixed_origin_columns import foreign_keys
from planners.locate.identifier_traces import Trace
from planners.locate.key_location import Carriage, follow
from planners.locate.subject_survey import Survey, World, survey
from tests.lineage.harvesting import harvest
from tests.planners.estates import PERSON, columns, dataset

USERS: dict[str, tuple[str, ...]] = {
    "user_id": ("1", "2", "3"),
    "email": ("u1@x.example", "u2@x.example", "u3@x.example"),
    "phone": ("+101", "+102", "+103"),
    "order_id": ("11", "12", "13"),
}
TABLES = {
    "prod.users": "user_id bigint, email string, phone string, order_id bigint, manager_id bigint, city string, w string",
    "prod.shops": "shop_id bigint, name string, city string, contact string, w string",
    "prod.orders": "order_no bigint, cust bigint, note string, w string",
    "prod.visits": "user_id bigint, page string, w string",
}
_ROWS = """
CREATE SCHEMA prod;
CREATE TABLE prod.users (user_id BIGINT, email VARCHAR, phone VARCHAR, order_id BIGINT, manager_id BIGINT, city VARCHAR, w VARCHAR);
INSERT INTO prod.users VALUES (1, 'u1@x.example', '+101', 11, 2, 'Pune', 'p1'), (2, 'u2@x.example', '+102', 12, 3, 'Goa', 'p2'),
  (3, 'u3@x.example', '+103', 13, 1, 'Pune', 'p3');
CREATE TABLE prod.shops (shop_id BIGINT, name VARCHAR, city VARCHAR, contact VARCHAR, w VARCHAR);
INSERT INTO prod.shops VALUES (1, 's1', 'Pune', '+101', 's1'), (2, 's2', 'Goa', 'x', 's2'), (3, 's3', 'Pune', NULL, 's3'), (4, 's4', 'Goa', 'y', 's4');
CREATE TABLE prod.orders (order_no BIGINT, cust BIGINT, note VARCHAR, w VARCHAR);
INSERT INTO prod.orders VALUES (11, 1, 'Pune', 'p1'), (12, 2, 'Goa', 'p2'), (1, 3, 'x', 'p3'), (2, 9, 'Pune', 'p9');
CREATE TABLE prod.visits (user_id BIGINT, page VARCHAR, w VARCHAR);
INSERT INTO prod.visits VALUES (1, 'a', 'p1'), (2, 'b', 'p2'), (9, 'c', 'p9');
"""
_BETWEEN = ("prod.a", "prod.b", "prod.c", "prod.t", "prod.out", "prod.out2", "prod.stage")
_DELETED_BY = (Carries.KEY, Carries.COMPUTED_KEY, Carries.BRIDGE, Carries.IDENTIFIERS)
_OVERWRITE = re.compile(r"INSERT\s+OVERWRITE\s+(?:TABLE\s+)?(\S+)\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """What planning says of prod.out. doubts: why it deletes nothing without somebody's word."""

    carriage: Carriage | None
    doubts: tuple[str, ...]
    found: Survey

    @property
    def deletes(self) -> bool:
        return self.carriage is not None and self.carriage.carries in _DELETED_BY and not self.doubts

    @property
    def clean(self) -> bool:
        """Whether planning says that nothing of the person is in it."""
        return not self.doubts and (self.carriage is None or self.carriage.carries is Carries.NONE)

    def finds(self, row: Mapping[str, Any]) -> bool:
        """Whether the match finds a row."""
        named = {name.lower(): value for name, value in row.items()}
        return self.carriage is not None and any(
            _value(named.get(column.lower()), trace) in self._values(trace) for column, trace in self.carriage.terms
        )

    def _values(self, trace: Trace) -> set[str]:
        return {value for _, value in self.found.derived[trace.origin, trace.expression].keys.values}


def _value(value: Any, trace: Trace) -> str | None:
    for step in trace.access:
        if isinstance(step, JsonAccess) and value is not None:
            value = json.loads(value)
            for name in step.path:
                value = value.get(name) if isinstance(value, dict) else None
        elif isinstance(step, FieldAccess):
            value = value.get(step.name) if isinstance(value, dict) else None
    return None if value is None else str(value)


def harvested(sql: str, dialect: str = "spark", events: str = "", out: str = "") -> LineageGraph:
    """The graph of a script and of events. out: columns of prod.out, where a catalog shows them."""
    aliases = {name: dataset(name) for name in (*TABLES, *_BETWEEN)}
    known = TABLES | ({"prod.out": out} if out else {})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "job.sql").write_text(sql, encoding="utf-8")
        (Path(folder) / "events.ndjson").write_text(events, encoding="utf-8")
        sources = LineageSources(sql=("job.sql",), events=("events.ndjson",) if events else (), dialect=dialect)
        schemas = {name: columns(ddl) for name, ddl in known.items()}
        return harvest(sources, Path(folder), (), aliases, schemas)


def answered(graph: LineageGraph) -> Answer:
    """What planning says of prod.out, for the person with the number 1."""
    carriages = follow(graph, dataset("prod.users"), PERSON)
    keys = resolve(PERSON, SourceRows(USERS), [Wanted("R", "subj", "1")])
    found = survey(PERSON, dataset("prod.users"), carriages, keys)
    out = dataset("prod.out")
    carriage = carriages.get(out)
    doubts = [gap.kind.value for gap in graph.gaps]
    if carriage is not None:
        state = TableState(
            dataset=out, table="prod.out", location=out.name, format=DELTA, snapshot="1", columns=graph.columns(out)
        )
        world = World(graph, Inventory(tables=(state,)), {}, lambda _: False)
        doubts += ["mixed"] if carriage.mixed else []
        blind = [found.derived[trace.origin, trace.expression].blind for _, trace in carriage.terms]
        doubts += ["shared_identifier"] if blind and all(blind) else []
        doubts += [gap.kind.value for gap in foreign_keys(found, world, state, carriage)]
        doubts += [carriage.carries.value] if carriage.carries in (Carries.UNKNOWN, Carries.AGGREGATE) else []
    return Answer(carriage, tuple(dict.fromkeys(doubts)), found)


def rows_of(script: str) -> Iterator[dict[str, Any]]:
    """The rows of prod.out after a script in DuckDB's words."""
    engine = duckdb.connect()
    engine.execute(_ROWS)
    for statement in filter(None, map(str.strip, script.split(";"))):
        engine.execute(_OVERWRITE.sub(r"CREATE OR REPLACE TABLE \1 AS ", statement))
    found = engine.execute("SELECT * FROM prod.out")
    names = [column[0] for column in found.description or ()]
    return (dict(zip(names, row, strict=True)) for row in found.fetchall())
