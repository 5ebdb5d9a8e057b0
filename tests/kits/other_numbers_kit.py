"""Another system's numbers in a place of any store: with the owner's word they stay, without it nothing is clean."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hdfs.shop import MAIL, OTHERS, REFILLS, USER, Shop

REASON = "numbers of the fleet"
Row = tuple[str, str, str]
ROWS: tuple[Row, ...] = ((USER, MAIL, "1"), (*OTHERS[0], USER), (*OTHERS[1], "2"))
"""Key, mail, and the driver: of somebody else's row, the person's digits."""
STAY = ROWS[1:]
Write = Callable[..., bytes]


def as_csv(*rows: Row) -> bytes:
    return "".join(f"{','.join(row)}\n" for row in (("uid", "mail", "driver"), *rows)).encode()


def as_lines(*rows: Row) -> bytes:
    made = (f'{{"uid": "{uid}", "mail": "{mail}", "driver": {driver}}}\n' for uid, mail, driver in rows)
    return "".join(made).encode()


def as_parquet(*rows: Row) -> bytes:
    sink, columns = io.BytesIO(), [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(dict(zip(("uid", "mail", "driver"), columns, strict=True))), sink)
    return sink.getvalue()


WRITERS: dict[str, Write] = {"csv": as_csv, "json": as_lines, "parquet": as_parquet}


def said(table: str) -> list[dict[str, Any]]:
    """`subjects` of the estate file, with the word on a table's column."""
    return [
        {
            "name": "user",
            "source": "shop.users",
            "key": "uid",
            "identifiers": [{"column": "mail", "category": "email"}],
            "not_keys": [{"table": table, "column": "driver", "reason": REASON, "owner": "Ravi Nair"}],
        }
    ]


def waived(plan: dict[str, Any]) -> list[str]:
    """The gaps that nobody waived."""
    return [gap["id"] for gap in plan["gaps"] if gap["id"] != REFILLS and gap["waiver"] is None]


def erased_around(shop: Shop, read: Callable[[], bytes], kept: bytes, **estate: Any) -> dict[str, Any]:
    """Plan, approve, apply and verify with the word: the person goes, the number stays and is counted. Gives the plan."""
    code, plan = shop.plan(**estate)
    assert (code, waived(plan)) == (0, [])
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["state"]) == (0, "complete")
    assert (result["residue"], result["unverified"], result["bystander_rows_lost"]) == ([], [], 0)
    assert result["rows_erased"] == 1
    assert read() == kept
    assert {REASON} == {item["reason"] for item in result["not_keys"]}
    assert shop.verify() == 0
    return plan
