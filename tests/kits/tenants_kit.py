"""A shop of two tenants that each count their users from 1, in any store: one person leaves, her namesake stays."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hdfs.shop import REFILLS, Shop
from tests.kits.tenant_rows import avro_rows, csv_rows, json_of, orc_of

Row = tuple[str | None, int | None, str | None]
COLUMNS = ("tenant", "uid", "mail")
MAIL = "asha.rao@north.example"
ASHA: Row = ("north", 7, MAIL)
BY_KEY: Row = ("north", 7, None)
"""Hers, and nothing but the key says so."""
OTHERS: tuple[Row, ...] = (
    ("south", 7, "ben.okoro@south.example"),
    ("north", 8, "chen.wei@north.example"),
    ("north", 77, None),
    (None, 7, None),
    ("north", None, None),
)
SUBJECT = {
    "name": "user",
    "source": "shop.users",
    "key": ["tenant", "uid"],
    "identifiers": [{"column": "mail", "category": "email"}],
}
ESTATE = {"subjects": [SUBJECT]}


def as_table(*rows: Row) -> pa.Table:
    kinds = pa.schema([("tenant", pa.string()), ("uid", pa.int64()), ("mail", pa.string())])
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], kinds)


def as_parquet(*rows: Row) -> bytes:
    sink = io.BytesIO()
    pq.write_table(as_table(*rows), sink)
    return sink.getvalue()


WRITERS: dict[str, Callable[..., bytes]] = {
    "parquet": as_parquet,
    "orc": lambda *rows: orc_of(as_table(*rows)),
    "avro": lambda *rows: avro_rows(as_table(*rows).to_pylist(), {"tenant": "string", "uid": "long", "mail": "string"}),
    "csv": lambda *rows: csv_rows(as_table(*rows).to_pylist(), COLUMNS),
    "json": lambda *rows: json_of(as_table(*rows).to_pylist()),
}


def opened(shop: Shop) -> None:
    """Make it a shop of tenants."""
    shop.users, shop.columns = as_parquet(ASHA, *OTHERS[:2]), COLUMNS
    shop.key = {"tenant": "north", "uid": "7"}


def waived(plan: dict[str, Any]) -> list[str]:
    """The gaps that nobody waived."""
    return [gap["id"] for gap in plan["gaps"] if gap["id"] != REFILLS and gap["waiver"] is None]


def erased(shop: Shop, rows: int, read: Callable[[], Sequence[bytes]], kept: Sequence[bytes], **more: Any) -> Any:
    """Plan, approve, apply and verify: she goes, everybody else's rows are as they were. Gives the plan."""
    opened(shop)
    code, plan = shop.plan(**ESTATE, **more)
    assert (code, waived(plan)) == (0, [])
    assert MAIL not in shop.plan_file.read_text()
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["state"]) == (0, "complete")
    assert (result["residue"], result["unverified"], result["bystander_rows_lost"]) == ([], [], 0)
    assert result["rows_erased"] == rows
    assert list(read()) == list(kept)
    assert shop.verify() == 0
    return plan
