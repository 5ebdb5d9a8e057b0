"""Which rows a key of several columns finds, against a model that is slow and obviously right: a person is a tuple."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.row_removal import RowRemoval
from pii_tracer.model.datasets import PLAIN, FieldAccess, Format, KeyPart, Match, MatchTerm
from pii_tracer.model.keys_as_text import joined, split
from pii_tracer.model.number_keys import spelled
from planners.copies.person_rows import theirs
from tests.executors.formats.plain_files.alone import Alone
from tests.kits.tenant_rows import (
    MATCH,
    NAME,
    PERSONS,
    ROWS,
    Person,
    Ring,
    as_kept,
    kept_by_columns,
    kept_by_model,
    older,
    parquet,
    read,
    table,
    written,
)
from tests.planners.copies.slow_rows import count_rows


def removal(kind: Format, persons: set[Person], match: Match = MATCH) -> RowRemoval:
    return RowRemoval.of(Alone(Ring(persons)), None, match, kind)


@pytest.mark.parametrize("kind", sorted(PLAIN))
@settings(max_examples=40, deadline=None)
@given(ROWS.filter(bool), PERSONS)
def test_a_file_loses_the_rows_of_the_persons_and_no_others(
    kind: Format, rows: list[dict[str, Any]], persons: set[Person]
) -> None:
    data = written(kind, rows)
    kept = removal(kind, persons).kept(data)
    found = read(kind, kept.data if kept.data is not None else data)
    assert found == as_kept(kind, kept_by_model(rows, persons))


@settings(max_examples=60, deadline=None)
@given(ROWS, PERSONS)
def test_planning_counts_the_same_rows(rows: list[dict[str, Any]], persons: set[Person]) -> None:
    sets = {NAME: Ring(persons).keys}
    gone = len(rows) - len(kept_by_model(rows, persons))
    assert count_rows(rows, MATCH, sets) == gone
    batch = table(rows).combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table([]).schema)]
    marked = theirs(batch[0], MATCH, sets)
    assert marked is not None
    assert marked.true_count == gone


def test_two_lists_of_values_would_take_rows_of_others() -> None:
    """Of persons (4, 17) and (5, 1), the row (4, 1) is a third one's: the model that compares by columns takes it."""
    persons = {("4", "17"), ("5", "1")}
    rows = [{"tenant_id": t, "user_id": u} for t in ("4", "5") for u in (1, 17)]
    assert kept_by_columns(rows, persons) == []
    data = removal(Format.PARQUET, persons).kept(parquet(rows)).data
    assert data is not None
    assert pq.read_table(io.BytesIO(data)).to_pylist() == [
        {"tenant_id": "4", "user_id": 1},
        {"tenant_id": "5", "user_id": 17},
    ]


@pytest.mark.parametrize("kind", sorted(PLAIN))
@pytest.mark.parametrize("alone", [True, False], ids=["by the key alone", "by the e-mail, too"])
def test_a_file_with_one_of_the_columns_is_left_as_it_is(kind: Format, alone: bool) -> None:
    mail = MatchTerm(column="email", type="string", key_set=NAME)
    match = MATCH if alone else Match(terms=(*MATCH.terms, mail))
    with pytest.raises(RowsError, match="it has user_id but not tenant_id"):
        removal(kind, {("4", "17")}, match).kept(older(kind))


def test_fields_of_structs_are_columns_of_a_key() -> None:
    beside = KeyPart(column="who", access=(FieldAccess(name="user"),), type="bigint")
    match = Match(
        terms=(
            MatchTerm(
                column="who", access=(FieldAccess(name="tenant"),), type="string", key_set=NAME, beside=(beside,)
            ),
        )
    )
    rows = [{"who": {"tenant": "4", "user": 17}}, {"who": {"tenant": "5", "user": 17}}, {"who": None}]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    data = RowRemoval.of(Alone(Ring({("4", "17")})), None, match, Format.PARQUET).kept(out.getvalue()).data
    assert data is not None
    assert pq.read_table(io.BytesIO(data)).to_pylist() == rows[1:]


TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)


@given(st.lists(TEXTS, min_size=2, max_size=4), st.lists(TEXTS, min_size=2, max_size=4))
def test_no_two_keys_have_one_text(one: list[str], other: list[str]) -> None:
    assert (joined(one) == joined(other)) == (one == other)
    assert split(joined(one) or "") == tuple(one)


def test_whole_numbers_are_the_same_in_each_column() -> None:
    assert joined(["4.0", "17.00"]) in spelled(Ring({("4", "17")}).keys)
    assert joined(["4", None]) is None


def test_bounds_of_a_row_group_are_not_compared_with_the_text_of_a_key() -> None:
    """Numbers of which no bound holds `1:42:17`: the row group was passed over, and the person stayed."""
    part = KeyPart(column="user_id", type="bigint")
    match = Match(terms=(MatchTerm(column="tenant_id", type="bigint", key_set=NAME, beside=(part,)),))
    out = io.BytesIO()
    pq.write_table(pa.table({"tenant_id": [4, 4], "user_id": [17, 18]}), out)
    data = RowRemoval.of(Alone(Ring({("4", "17")})), None, match, Format.PARQUET).kept(out.getvalue()).data
    assert data is not None
    assert pq.read_table(io.BytesIO(data)).to_pylist() == [{"tenant_id": 4, "user_id": 18}]
