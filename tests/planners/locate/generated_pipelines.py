"""Pipelines put together from a seed, and what deleting by an answer does to their rows: a slow model in DuckDB.

A pipeline is run with and without one person. After a delete by the answer nothing may be there that the pipeline does
not make without the person's rows in the source, and everything that it makes where no table has the person. But for
rows that only the pipeline itself would bring: a table of nobody, whose outer join found the person, has NULL there;
and for rows that stay and would have NULL instead of a value of such a table.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import duckdb

from planners.locate.key_location import Carriage

OTHERS = {
    "prod.orders": "order_no string, cust bigint, note string, total decimal(10,2), at timestamp",
    "prod.emails": "mail string, owner bigint, kind string",
    "prod.visits": "user_id bigint, page string",
}
PERSONS = (101, 102, 103)
_DATA = """
CREATE SCHEMA prod;
CREATE TABLE prod.everybody (user_id BIGINT, email VARCHAR, phone VARCHAR, order_id VARCHAR, manager_id BIGINT,
  city VARCHAR, amount DECIMAL(10,2), paid_at TIMESTAMP, ds VARCHAR);
INSERT INTO prod.everybody SELECT 101 + n, 'u' || n || '@mail.example', '+9190000000' || n, 'o' || n || '-' || r,
  101 + (n + 1) % 4, CASE WHEN n % 2 = 0 THEN 'Pune' ELSE 'Goa' END, 10 * n + r, TIMESTAMP '2026-11-01 00:00:00', 'd'
  FROM range(4) p(n), range(2) q(r);
CREATE TABLE prod.all_orders (order_no VARCHAR, cust BIGINT, note VARCHAR, total DECIMAL(10,2), "at" TIMESTAMP);
INSERT INTO prod.all_orders VALUES ('n1', 101, 'Pune', 1, NULL), ('n2', 102, 'x', 2, NULL), ('n3', 102, 'Goa', 3, NULL),
  ('n4', 999, 'Pune', 4, NULL), ('n5', NULL, 'Goa', 5, NULL), ('n6', 104, 'o3-0', 6, NULL);
CREATE TABLE prod.all_emails (mail VARCHAR, owner BIGINT, kind VARCHAR);
INSERT INTO prod.all_emails VALUES ('u0@mail.example', 101, 'a'), ('u1@mail.example', 102, 'b'), ('w@mail.example', 998, 'a');
CREATE TABLE prod.all_visits (user_id BIGINT, page VARCHAR);
INSERT INTO prod.all_visits VALUES (101, 'Pune'), (103, 'Goa'), (104, 'z'), (997, 'Goa'), (NULL, 'y');
CREATE TABLE prod.merchants (merchant_id BIGINT, name VARCHAR, city VARCHAR);
INSERT INTO prod.merchants VALUES (1, 'm1', 'Pune'), (2, 'm2', 'Goa');
"""


_TABLES = (
    ("users", "everybody", "user_id"),
    ("orders", "all_orders", "cust"),
    ("emails", "all_emails", "owner"),
    ("visits", "all_visits", "user_id"),
)


@dataclass
class Maker:
    """Makes pipelines: each a list of statements, the last of which write prod.out."""

    random: random.Random
    before: list[str] = field(default_factory=list)

    def pipeline(self) -> list[str]:
        shape = self.random.choice(["plain"] * 3 + ["steps"] * 2 + ["changed", "merged"])
        query = self._query(self._users())
        if shape == "steps":
            first = self._select(["user_id", "email", "phone", "manager_id", "city", "amount", "order_id"])
            self.before.append(f"INSERT OVERWRITE prod.a {first}")
            query = self._query("prod.a u")
        made = [*self.before, f"INSERT OVERWRITE prod.out {query}"]
        if shape == "changed":
            column, value = self._changed()
            made = ["INSERT OVERWRITE prod.out SELECT user_id AS c0, email AS c1, city AS c2 FROM prod.users",
                    f"UPDATE prod.out SET {column} = {value}"]  # fmt: skip
        if shape == "merged":
            made = ["INSERT OVERWRITE prod.out SELECT o.cust AS c0, o.note AS c1, o.order_no AS c2 FROM prod.orders o WHERE o.cust < 103",
                    "MERGE INTO prod.out t USING (SELECT DISTINCT user_id, email, city FROM prod.users) s ON t.c0 = s.user_id "
                    + self.random.choice([
                        "WHEN MATCHED THEN UPDATE SET c1 = s.email",
                        "WHEN NOT MATCHED THEN INSERT (c0, c1, c2) VALUES (s.user_id, s.email, s.city)",
                        "WHEN NOT MATCHED THEN INSERT (c1, c2) VALUES (s.email, s.city)",
                        "WHEN MATCHED THEN UPDATE SET c2 = s.city WHEN NOT MATCHED THEN INSERT (c0, c2) VALUES (s.user_id, s.city)",
                    ])]  # fmt: skip
        return made

    def _changed(self) -> tuple[str, str]:
        return self.random.choice([
            ("c2", "upper(c1)"),
            ("c0", "c0 + 1000"),
            ("c1", "CASE WHEN c2 = 'Goa' THEN NULL ELSE c1 END"),
            ("c0", "CASE WHEN c2 = 'Goa' THEN NULL ELSE c0 END"),
            ("c2", "(SELECT max(u.phone) FROM prod.users u WHERE u.user_id = c0)"),
            ("c2", "(SELECT max(u.phone) FROM prod.users u WHERE u.manager_id = c0)"),
            ("c2", "(SELECT max(m.name) FROM prod.merchants m WHERE m.city = c2)"),
        ])  # fmt: skip

    def _users(self) -> str:
        return self.random.choice([
            "prod.users u", "prod.users u", "prod.users u",
            "(SELECT * FROM prod.users WHERE amount > 10) u",
            "(SELECT DISTINCT user_id, email, phone, manager_id, city, amount, order_id FROM prod.users) u",
        ])  # fmt: skip

    def _value(self, of: str = "u.") -> str:
        return self.random.choice(["{0}user_id", "{0}user_id", "{0}user_id", "CAST({0}user_id AS STRING)", "{0}email", "upper({0}email)",
            "md5({0}email)", "concat('u-', CAST({0}user_id AS STRING))", "{0}user_id + 1000000", "{0}city", "{0}amount", "{0}phone",
            "coalesce({0}user_id, {0}manager_id)", "{0}manager_id", "{0}order_id",
            "CASE WHEN {0}amount > 11 THEN {0}user_id END",
            "CAST({0}user_id AS DECIMAL(20,0))", "nullif({0}user_id, 102)", "coalesce({0}email, 'none')", "-{0}user_id",
            "CASE WHEN {0}city = 'Goa' THEN {0}email ELSE {0}phone END",
            "coalesce({0}manager_id, {0}user_id)", "CASE WHEN {0}city = 'Goa' THEN {0}user_id ELSE {0}manager_id END",
        ]).format(of)  # fmt: skip

    def _select(self, names: list[str]) -> str:
        where = self.random.choice(["", "", " WHERE u.amount > 10", " WHERE u.city = 'Goa'"])
        columns = [f"u.{n}" if self.random.random() < 0.85 else f"{self._value()} AS x_{n}" for n in names]
        kept = [
            c if " AS " not in c else c.split(" AS x_")[0] + f" AS {n}" for c, n in zip(columns, names, strict=True)
        ]
        kept = [k if not _typed(k, n) else f"u.{n}" for k, n in zip(kept, names, strict=True)]
        return f"SELECT {', '.join(kept)} FROM prod.users u{where}"

    def _query(self, users: str) -> str:
        kind = self.random.choice(["one", "one", "join", "join", "join", "union", "group", "lateral", "lookup", "self"])
        width = self.random.randint(1, 3)
        if kind == "union":
            a, b = (self._columns([self._text() for _ in range(width)]) for _ in range(2))
            other = self.random.choice(["prod.users u", "prod.orders u"])
            if other == "prod.orders u":
                b = self._columns(
                    [self.random.choice(["u.note", "u.order_no", "CAST(u.cust AS STRING)"]) for _ in range(width)]
                )
            return f"SELECT {a} FROM {users} UNION ALL SELECT {b} FROM {other}"
        if kind == "group":
            by = self.random.choice(["u.user_id", "u.email", "u.user_id, u.city", "CAST(u.user_id AS STRING)"])
            rest = self.random.choice(["sum(u.amount)", "max(u.phone)", "count(*)", "max(u.email)"])
            shown = self.random.choice([by.split(",")[0], by.split(",")[0], "max(u.user_id)"])
            return f"SELECT {shown} AS c0, {rest} AS c1 FROM {users} GROUP BY {by}"
        if kind == "join":
            return self._join(users, width)
        if kind == "self":
            on = self.random.choice(["u.user_id = v.user_id", "u.manager_id = v.user_id", "u.city = v.city"])
            side = self.random.choice(["", "LEFT "])
            values = [self.random.choice(["u.user_id", "u.email"]), *(self._value("v.") for _ in range(width))]
            return (
                f"SELECT {self._columns(values)} FROM {users} {side}JOIN (SELECT DISTINCT * FROM prod.users) v ON {on}"
            )
        if kind == "lateral":
            on = self.random.choice(["o.cust = u.user_id", "o.note = u.city"])
            values = [self.random.choice([self._value(), "l.order_no", "l.cust"]) for _ in range(width)]
            return f"SELECT {self._columns(values)} FROM {users}, LATERAL (SELECT o.order_no, o.cust FROM prod.orders o WHERE {on}) l"
        if kind == "lookup":
            inner = self.random.choice([
                "(SELECT max(o.order_no) FROM prod.orders o WHERE o.cust = u.user_id)",
                "(SELECT max(v.phone) FROM prod.users v WHERE v.user_id = u.user_id)",
                "(SELECT max(v.phone) FROM prod.users v WHERE v.user_id = u.manager_id)",
            ])  # fmt: skip
            return f"SELECT {self._columns([inner, *(self._value() for _ in range(width))])} FROM {users}"
        where = self.random.choice(["", "", " WHERE u.amount > 10", " WHERE u.user_id <> 102"])
        return f"SELECT {self.random.choice(['', '', 'DISTINCT '])}{self._columns([self._value() for _ in range(width)])} FROM {users}{where}"

    def _join(self, users: str, width: int) -> str:
        table, key = self.random.choice(
            [("orders", "cust"), ("orders", "cust"), ("emails", "owner"), ("visits", "user_id")]
        )
        on = self.random.choice([
            f"o.{key} = u.user_id", f"o.{key} = u.user_id", f"u.user_id = o.{key} AND u.amount > 10",
            f"CAST(o.{key} AS STRING) = CAST(u.user_id AS STRING)", f"o.{key} = u.manager_id",
            f"o.{key} = CAST(u.user_id AS BIGINT)", f"o.{key} = u.user_id OR u.city = 'Goa'",
            f"CAST(o.{key} AS DECIMAL(20,0)) = u.user_id",
        ])  # fmt: skip
        side = self.random.choice(["", "", "LEFT ", "RIGHT ", "FULL "])
        kind = {"orders": ["o.order_no", "o.note"], "emails": ["o.mail", "o.kind"], "visits": ["o.page"]}[table]
        values = [
            self.random.choice([self._value(), f"o.{key}", f"o.{key}", f"coalesce(o.{key}, u.user_id)", f"coalesce(u.user_id, o.{key})", *kind])
            for _ in range(width)
        ]  # fmt: skip
        first, second = (users, f"prod.{table} o") if self.random.random() < 0.5 else (f"prod.{table} o", users)
        return f"SELECT {self._columns(values)} FROM {first} {side}JOIN {second} ON {on}"

    def _text(self) -> str:
        return self.random.choice(["CAST(u.user_id AS STRING)", "u.email", "u.phone", "u.city", "'none'", "u.order_id"])

    @staticmethod
    def _columns(values: list[str]) -> str:
        return ", ".join(f"{value} AS c{number}" for number, value in enumerate(values))


_TEXTS = ("email", "phone", "city", "order_id")


def _typed(value: str, name: str) -> bool:
    """Whether a value is of another kind than the column that it would go into."""
    texts = any(word in value for word in ("email", "phone", "city", "order_id", "STRING", "concat", "md5", "upper"))
    return texts is not (name in _TEXTS)


class Rows:
    """Runs pipelines, and deletes by answers."""

    def __init__(self) -> None:
        self.engine = duckdb.connect()
        self.engine.execute(_DATA)

    def made(
        self, pipeline: list[str], without: int | None = None, *, tables: int = 1, users: bool = True
    ) -> list[dict[str, Any]]:
        """The rows of prod.out. tables: how many of the tables have no row of the person, the source first.

        users: whether the source has anybody.
        """
        for number, (name, whole, key) in enumerate(_TABLES):
            kept = "TRUE" if without is None or number >= tables else f"{key} IS DISTINCT FROM {without}"
            kept = kept if users or number else "FALSE"
            self.engine.execute(f"CREATE OR REPLACE VIEW prod.{name} AS SELECT * FROM prod.{whole} WHERE {kept}")
        for statement in pipeline:
            head, _, query = statement.partition(" SELECT ")
            if head.startswith("INSERT OVERWRITE "):
                statement = f"CREATE OR REPLACE TABLE {head.removeprefix('INSERT OVERWRITE ')} AS SELECT {query}"
            self.engine.execute(statement)
        found = self.engine.execute("SELECT * FROM prod.out")
        names = [d[0] for d in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def values(self, origin: str, expression: str, person: int) -> set[str]:
        """What stands for a person in a column that was made so."""
        text = f"SELECT DISTINCT CAST({expression} AS VARCHAR) FROM (SELECT {origin} AS x FROM prod.everybody WHERE user_id = {person})"
        return {row[0] for row in self.engine.execute(text).fetchall() if row[0] is not None}

    def difference(self, pipeline: list[str], terms: list[tuple[str, str, str]], person: int) -> tuple[int, int]:
        """How many rows a delete by the terms (column, origin, expression) leaves behind, and takes from others."""
        with_, rest = self.made(pipeline), _different(self.made(pipeline, without=person))
        others = _different(self.made(pipeline, without=person, tables=len(_TABLES)))
        wanted = [(column, self.values(origin, expression, person)) for column, origin, expression in terms]
        left = _different([r for r in with_ if not any(str(r[c]) in values for c, values in wanted)])
        taken = others - left
        if taken:
            nobodys = _different(self.made(pipeline, without=person, tables=len(_TABLES), users=False))
            taken -= nobodys - _different(with_)
        taken = {row for row in taken if not any(_blanked(row, kept) for kept in left - others)}
        return len(left - rest), len(taken)


Row = tuple[tuple[str, Any], ...]


def _different(rows: list[dict[str, Any]]) -> set[Row]:
    """Rows, each once: how often a row of others stands there can depend on the person."""
    return {tuple(sorted(row.items())) for row in rows}


def _blanked(row: Row, kept: Row) -> bool:
    """Whether a row is one that stays, but for values that a table of nobody has no more."""
    return all(value in (None, other) for (_, value), (_, other) in zip(row, kept, strict=True))


def terms_of(found: Carriage) -> list[tuple[str, str, str]]:
    return [(name, trace.origin, trace.expression) for name, trace in found.terms]
