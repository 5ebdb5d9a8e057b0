"""Keys of several columns in the rows of a file, against a model that is slow and obviously right."""

from __future__ import annotations

import gzip
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from pii_tracer.model.datasets import PLAIN, FieldAccess, Format, JsonAccess, KeyPart, KeySet, Match, MatchTerm
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.hits import FileScan, Hit
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.value_forms import Patterns, build_patterns
from tests.kits import tenant_rows as rows_
from tests.kits.tenant_rows import MATCH, NAME, PERSONS, ROWS, Person, Ring, written

MAIL = KeySet(name="customer.email", origin="email", weak=False, values=(("p0", "asha@north.example"),))


def patterns(persons: set[Person], kind: Format, match: Match = MATCH) -> Patterns:
    return build_patterns([Ring(persons).keys, MAIL]).comparing(key_columns(match, kind=kind))


def seen(kind: Format, data: bytes, persons: set[Person], match: Match = MATCH, name: str = "part-0") -> FileScan:
    return scan_bytes(name, data, patterns(persons, kind, match))


def rows_in(scan: FileScan) -> int:
    assert scan.unread == ()
    assert {(hit.column, hit.where, hit.weak) for hit in scan.hits} <= {("(tenant_id, user_id)", "data", False)}
    return sum(hit.count for hit in scan.hits)


@pytest.mark.parametrize("kind", sorted(PLAIN))
@settings(max_examples=40, deadline=None)
@given(ROWS.filter(bool), PERSONS)
def test_as_many_rows_are_found_as_the_model_takes(
    kind: Format, rows: list[dict[str, Any]], persons: set[Person]
) -> None:
    gone = len(rows) - len(rows_.kept_by_model(rows, persons))
    assert rows_in(seen(kind, written(kind, rows), persons)) == gone


@pytest.mark.parametrize("kind", sorted(PLAIN))
def test_a_user_of_the_same_number_of_another_tenant_is_nobody(kind: Format) -> None:
    others = [{"tenant_id": "5", "user_id": 17}, {"tenant_id": "4", "user_id": 18}, {"tenant_id": "4", "user_id": None}]
    assert rows_in(seen(kind, written(kind, others), {("4", "17")})) == 0
    assert rows_in(seen(kind, written(kind, [*others, {"tenant_id": "4", "user_id": 17}]), {("4", "17")})) == 1


@pytest.mark.parametrize("kind", sorted(PLAIN))
def test_a_file_with_one_of_the_columns_is_unread(kind: Format) -> None:
    scan = seen(kind, rows_.older(kind), {("4", "17")})
    assert scan.unread == ("it has no tenant_id, so nobody knows whose its rows are",)
    assert {hit.key_set for hit in scan.hits} == {"customer.email"}, "and what its bytes show counts"


@pytest.mark.parametrize("kind", sorted(PLAIN - {Format.CSV, Format.JSON}))
def test_what_is_no_file_of_the_format_is_unread(kind: Format) -> None:
    scan = seen(kind, b"no file of rows", {("4", "17")})
    (why,) = scan.unread
    assert "its rows cannot be compared with keys of several columns" in why


def test_packed_and_in_another_encoding() -> None:
    data = "tenant_id,user_id\nné,17\n".encode("cp1252")
    persons = {("né", "17")}
    assert rows_in(seen(Format.CSV, data, persons)) == 1
    assert rows_in(seen(Format.CSV, gzip.compress(data), persons)) == 1


def test_names_in_any_case_and_numbers_with_a_fraction() -> None:
    assert rows_in(seen(Format.CSV, b"User_ID,TENANT_ID\n17.0,4\n", {("4", "17")})) == 1


def test_a_column_that_is_twice_in_a_file_is_unread() -> None:
    scan = seen(Format.CSV, b"tenant_id,user_id,USER_ID\n4,17,18\n", {("4", "17")})
    assert len(scan.unread) == 1


def test_fields_of_structs_and_members_of_json() -> None:
    user = KeyPart(column="body", access=(JsonAccess(path=("user", "id")),), type="string")
    tenant = MatchTerm(column="who", access=(FieldAccess(name="tenant"),), type="string", key_set=NAME, beside=(user,))
    match = Match(terms=(tenant,))
    made = pa.table({"who": [{"tenant": 4}, {"tenant": 5}, None], "body": ['{"user": {"id": 17}}'] * 3})
    scan = seen(Format.ORC, rows_.orc_of(made), {("4", "17")}, match)
    assert scan.hits == (
        Hit(key_set=NAME, form=scan.hits[0].form, where="data", column="(who.tenant, body.$.user.id)", count=1),
    )


def test_nothing_is_compared_where_no_key_has_several_columns_or_a_log_says_what_counts() -> None:
    one = Match(terms=(MatchTerm(column="user_id", type="bigint", key_set=NAME),))
    assert key_columns(one, kind=Format.PARQUET).rows is None
    assert key_columns(MATCH, kind=Format("delta")).rows is None
    assert key_columns(MATCH).rows is None
