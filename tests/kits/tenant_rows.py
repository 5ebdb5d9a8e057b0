"""Rows of many tenants that each count their users from 1, in every format, and a model of whose they are."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from pyarrow import orc

from pii_tracer.model.datasets import Format, KeyPart, KeySet, Match, MatchTerm
from pii_tracer.model.keys_as_text import joined, key_name

KEY = ("tenant_id", "user_id")
NAME = "customer." + key_name(KEY)
MATCH = Match(
    terms=(
        MatchTerm(column="tenant_id", type="string", key_set=NAME, beside=(KeyPart(column="user_id", type="bigint"),)),
    )
)

Person = tuple[str, str]

# few values, so that many rows share one part with a person and not the other
TENANTS = st.sampled_from(["4", "5", "44", "é:", "1:4", ""])
USERS = st.sampled_from([1, 4, 17, 44, 117])
ROWS = st.lists(st.fixed_dictionaries({"tenant_id": st.none() | TENANTS, "user_id": st.none() | USERS}), max_size=12)
PERSONS = st.sets(st.tuples(TENANTS.filter(bool), USERS.map(str)), min_size=1, max_size=3)


class Ring:
    def __init__(self, persons: set[Person]) -> None:
        values = tuple(sorted((f"p{n}", joined(person) or "") for n, person in enumerate(sorted(persons))))
        self.keys = KeySet(name=NAME, origin=key_name(KEY), weak=False, values=values, columns=KEY)

    def key_set(self, name: str) -> KeySet:
        assert name == NAME
        return self.keys


def kept_by_model(rows: list[dict[str, Any]], persons: set[Person]) -> list[dict[str, Any]]:
    """A row is a person's when both of its cells are that person's."""
    return [row for row in rows if not any((row["tenant_id"], str(row["user_id"])) == person for person in persons)]


def kept_by_columns(rows: list[dict[str, Any]], persons: set[Person]) -> list[dict[str, Any]]:
    """The wrong way: `tenant_id IN (…) AND user_id IN (…)`."""
    tenants, users = {t for t, _ in persons}, {u for _, u in persons}
    return [row for row in rows if not (row["tenant_id"] in tenants and str(row["user_id"]) in users)]


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([("tenant_id", pa.string()), ("user_id", pa.int64())]))


def parquet(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(table(rows), out, row_group_size=2)
    return out.getvalue()


def avro_rows(rows: list[dict[str, Any]], kinds: dict[str, str]) -> bytes:
    fields = [{"name": name, "type": ["null", kind]} for name, kind in kinds.items()]
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows, sync_interval=20)
    return out.getvalue()


def csv_rows(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def json_of(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def orc_of(made: pa.Table) -> bytes:
    out = io.BytesIO()
    orc.write_table(made, out)
    return out.getvalue()


def written(kind: Format, rows: list[dict[str, Any]]) -> bytes:
    if kind is Format.PARQUET:
        return parquet(rows)
    if kind is Format.ORC:
        return orc_of(table(rows))
    if kind is Format.AVRO:
        return avro_rows(rows, {"tenant_id": "string", "user_id": "long"})
    return csv_rows(rows, KEY) if kind is Format.CSV else json_of(rows)


def read(kind: Format, data: bytes) -> list[dict[str, Any]]:
    if kind is Format.PARQUET:
        return list(pq.read_table(io.BytesIO(data)).to_pylist())
    if kind is Format.ORC:
        return list(orc.ORCFile(io.BytesIO(data)).read().to_pylist())
    if kind is Format.AVRO:
        return [row for row in fastavro.reader(io.BytesIO(data)) if isinstance(row, dict)]
    if kind is Format.JSON:
        return [json.loads(line) for line in data.splitlines()]
    made = csv.DictReader(io.StringIO(data.decode(), newline=""))
    return [{"tenant_id": r["tenant_id"] or None, "user_id": int(r["user_id"]) if r["user_id"] else None} for r in made]


def as_kept(kind: Format, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as a format has them: to CSV an empty text is none at all."""
    return [row | {"tenant_id": row["tenant_id"] or None} for row in rows] if kind is Format.CSV else rows


OLDER = [{"user_id": 17, "email": "asha@north.example"}, {"user_id": 17, "email": None}]
"""Written before there were tenants: whose the second row is, nobody knows."""


def older(kind: Format) -> bytes:
    if kind in (Format.PARQUET, Format.ORC):
        made = pa.Table.from_pylist(OLDER)
        if kind is Format.ORC:
            return orc_of(made)
        out = io.BytesIO()
        pq.write_table(made, out)
        return out.getvalue()
    if kind is Format.AVRO:
        return avro_rows(OLDER, {"user_id": "long", "email": "string"})
    return csv_rows(OLDER, ("user_id", "email")) if kind is Format.CSV else json_of(OLDER)
