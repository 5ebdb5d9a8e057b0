"""The person's address in the memo of somebody else's row: no step takes it away, so a plan has to say so."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hdfs.shop import MAIL, OTHERS, REFILLS, USER, Shop

Row = tuple[str, str, str]
MEMO = f"gift to {MAIL}"
ROWS: tuple[Row, ...] = ((USER, MAIL, "rent"), (*OTHERS[0], MEMO), (*OTHERS[1], "bread"))
NAMES = ("uid", "mail", "memo")


def as_csv(*rows: Row) -> bytes:
    return "".join(f"{','.join(row)}\n" for row in (NAMES, *rows)).encode()


def as_lines(*rows: Row) -> bytes:
    return "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows).encode()


def as_parquet(*rows: Row) -> bytes:
    sink, columns = io.BytesIO(), [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(dict(zip(NAMES, columns, strict=True))), sink)
    return sink.getvalue()


WRITERS: dict[str, Callable[..., bytes]] = {"csv": as_csv, "json": as_lines, "parquet": as_parquet}


def told_before_the_run(shop: Shop, kind: str) -> None:
    """The plan says of a folder in a partition how many rows of others would keep the person, and in which column."""
    write = WRITERS[kind]
    shop.export("out", f"day=1/a.{kind}", write(*ROWS))
    shop.export("out", f"day=2/b.{kind}", write((*OTHERS[2], "milk")))
    code, plan = shop.plan()
    [gap] = [gap for gap in plan["gaps"] if gap["id"] != REFILLS]
    assert (code, gap["kind"]) == (3, "others_rows")
    assert gap["reason"].startswith("1 row that is not the persons' contains them in memo: the plan finds rows by")
    assert MAIL not in json.dumps(plan)


def told_of_nobody(shop: Shop, kind: str) -> None:
    """The person's own row, whatever stands in it, is no row of others."""
    shop.export("out", f"a.{kind}", WRITERS[kind]((USER, MAIL, MEMO), *ROWS[2:]))
    code, plan = shop.plan()
    assert [gap["id"] for gap in plan["gaps"] if gap["id"] != REFILLS] == []
    assert code == 0
