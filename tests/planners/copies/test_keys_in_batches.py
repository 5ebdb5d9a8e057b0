"""A person's rows by keys of several columns, in lists and in maps, without Spark: each way of looking alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pii_tracer.model.datasets import (
    ElementAccess,
    FieldAccess,
    JsonAccess,
    KeyPart,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.keys_as_text import joined
from planners.copies import person_rows
from planners.copies.person_rows import (
    count_of_table,
    leaf,
    leaves,
    looked_at,
    padded,
    rows_together,
    texts_at,
    theirs,
    with_blanks,
    without_elements,
)
from planners.copies.scan_evidence import Padded

ELEMENT, KEY = (ElementAccess(name=name) for name in ("element", "key"))
UID = MatchTerm(column="uid", key_set="uid", type="string")
BOTH = MatchTerm(column="tenant", key_set="both", type="string", beside=(KeyPart(column="Uid", type="string"),))
IN_LIST = MatchTerm(column="tags", access=(ELEMENT,), key_set="uid", type="string")


def key_set(name: str, *values: str) -> KeySet:
    return KeySet(name=name, origin=name, weak=False, values=tuple(("s", value) for value in values))


KEYS = {"uid": key_set("uid", "u-1", "u-2"), "both": key_set("both", joined(("t-1", "ü-1")) or "")}


def marks(answer: pa.BooleanArray | None) -> list[bool] | None:
    return None if answer is None else answer.to_pylist()


def of(*terms: MatchTerm) -> Match:
    return Match(terms=terms)


def test_a_key_of_several_columns_is_compared_as_one() -> None:
    batch = pa.record_batch({"tenant": ["t-1", "t-1", "t-2", None], "uid": ["ü-1", "u-2", "ü-1", "ü-1"]})
    assert marks(theirs(batch, of(BOTH), KEYS)) == [True, False, False, False]
    assert theirs(batch.select(["tenant"]), of(BOTH), KEYS) is None
    assert [leaf(row, BOTH) for row in batch.to_pylist()] == ["3:t-13:ü-1", "3:t-13:u-2", "3:t-23:ü-1", None]


def test_blanks_behind_a_key_are_told_by_key_set_and_column() -> None:
    table = pa.table({"uid": ["u-1", "u-2 ", " u-2", "x "]})
    assert padded(table, of(UID), KEYS) == {Padded("uid", "uid", 1, alone=False)}
    assert padded(table.slice(1), of(UID), KEYS) == {Padded("uid", "uid", 1, alone=True)}
    assert padded(table.slice(2), of(UID), KEYS) == frozenset()
    assert padded(pa.table({"uid": [1.5]}), of(UID), {"uid": key_set("uid", "1.5")}) == frozenset()
    assert marks(with_blanks(table.to_batches()[0], of(UID), KEYS)) == [True, True, False, False]


def test_what_one_batch_shows_is_not_forgotten_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_rows, "_ROWS", 1)
    monkeypatch.setattr(person_rows, "_TIMES", 0)
    table = pa.table({"uid": ["u-1", "u-2 ", "u-1 ", "x"]})
    assert padded(table, of(UID), KEYS) == {Padded("uid", "uid", 2, alone=False)}
    assert padded(table.slice(1), of(UID), KEYS) == {Padded("uid", "uid", 2, alone=True)}
    assert padded(table.slice(2), of(UID), KEYS) == {Padded("uid", "uid", 1, alone=True)}


def test_a_row_that_another_term_finds_has_no_blanks_to_tell() -> None:
    other = MatchTerm(column="mail", key_set="uid", type="string")
    table = pa.table({"uid": ["u-1 ", "u-1 "], "mail": ["u-2", "x"]})
    assert padded(table, of(UID, other), KEYS) == {Padded("uid", "uid", 1, alone=True)}
    assert marks(with_blanks(table.to_batches()[0], of(UID, other), KEYS)) == [True, True]


def test_of_a_key_of_several_columns_blanks_on_either_side_and_accents_are_told_too() -> None:
    decomposed = "u\N{COMBINING DIAERESIS}-1"
    table = pa.table({"tenant": ["t-1 ", " t-1", "t-1", "t-1", "t-2"], "uid": ["ü-1", "ü-1", decomposed, "ü-1", "ü-1"]})
    told = padded(table, of(BOTH), KEYS)
    assert told == {Padded("both", name, 3, alone=False) for name in ("tenant", "Uid")}
    (alone, _) = padded(table.slice(0, 2), of(BOTH), KEYS)
    assert (alone.rows, alone.alone) == (2, True)
    # only blanks behind a part are what CHAR(n) adds
    (before, _) = padded(table.slice(1, 2), of(BOTH), KEYS)
    assert (before.rows, before.alone) == (2, False)
    assert marks(with_blanks(table.to_batches()[0], of(BOTH), KEYS)) == [True, False, False, True, False]


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.string())])
def test_a_row_is_theirs_by_any_element_of_its_list(kind: pa.DataType) -> None:
    batch = pa.record_batch({"tags": pa.array([["x", "u-1"], None, [], ["u-2", "u-2"], ["x"]], kind)})
    assert marks(theirs(batch, of(IN_LIST), KEYS)) == [True, False, False, True, False]
    assert count_of_table(pa.table(batch), of(IN_LIST), KEYS) == 2
    left = without_elements(batch, of(IN_LIST), KEYS)
    assert left is not None
    assert left.column(0).to_pylist() == [["x"], [], [], [], ["x"]]


def test_a_row_is_theirs_by_a_key_of_its_map_or_a_field_of_an_entry() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    batch = pa.record_batch({"n": [1, 2, 3], "tags": pa.array([[("u-1", 1), ("x", 2)], None, [("x", 3)]], kind)})
    by_key = of(MatchTerm(column="Tags", access=(KEY,), key_set="uid", type="string"))
    assert marks(theirs(batch, by_key, KEYS)) == [True, False, False]
    left = without_elements(batch, by_key, KEYS)
    assert left is not None
    assert left.column(0).to_pylist() == [1, 2, 3]
    assert left.column(1).to_pylist() == [[("x", 2)], [], [("x", 3)]]
    assert left.schema.names == ["n", "tags"]


def test_elements_that_only_spark_can_tell_are_not_told() -> None:
    assert theirs(pa.record_batch({"tags": ["u-1"]}), of(IN_LIST), KEYS) is None
    assert theirs(pa.record_batch({"other": ["u-1"]}), of(IN_LIST), KEYS) is None
    assert theirs(pa.record_batch({"tags": pa.array([[True]])}), of(IN_LIST), KEYS) is None
    assert without_elements(pa.record_batch({"tags": ["u-1"]}), of(IN_LIST), KEYS) is None
    assert without_elements(pa.record_batch({"uid": ["u-1"]}), of(UID), KEYS) is None


def test_lists_of_which_nobody_wrote_one_hold_nobody() -> None:
    batch = pa.record_batch({"tags": pa.nulls(2)})
    assert marks(theirs(batch, of(IN_LIST), KEYS)) == [False, False]
    left = without_elements(batch, of(IN_LIST), KEYS)
    assert left is not None
    assert left.equals(batch)
    assert marks(theirs(pa.record_batch({"tags": pa.array([], pa.list_(pa.string()))}), of(IN_LIST), KEYS)) == []


def test_each_of_several_lists_loses_its_own_elements() -> None:
    more = MatchTerm(column="more", access=(ELEMENT, FieldAccess(name="Id")), key_set="uid", type="string")
    batch = pa.record_batch({"none": pa.nulls(1), "tags": [["u-1", "x"]], "more": [[{"id": "y"}, {"id": "u-2"}]]})
    empty = MatchTerm(column="none", access=(ELEMENT,), key_set="uid", type="string")
    left = without_elements(batch, of(empty, IN_LIST, more), KEYS)
    assert left is not None
    assert (left["tags"].to_pylist(), left["more"].to_pylist()) == ([["x"]], [[{"id": "y"}]])


def test_the_texts_of_terms_of_one_column_are_told_where_all_can_be() -> None:
    batch = pa.record_batch({"uid": [1, 2], "tenant": ["a", "b"], "odd": [b"x", b"y"]})
    assert {t.column: texts.to_pylist() for t, texts in (looked_at(batch, of(UID, BOTH)) or {}).items()} == {
        "uid": ["1", "2"]
    }
    assert looked_at(batch, of(UID, MatchTerm(column="odd", key_set="uid", type="binary"))) is None
    odd = MatchTerm(column="uid", key_set="both", type="string", beside=(KeyPart(column="odd", type="binary"),))
    assert texts_at(batch, odd) is None
    nothing = texts_at(
        pa.record_batch({"uid": pa.nulls(2)}), of(UID).terms[0].model_copy(update={"access": (FieldAccess(name="x"),)})
    )
    assert nothing is not None
    assert nothing.to_pylist() == [None, None]


def test_batches_are_joined_where_arrow_compares_and_stay_apart_where_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def sizes(table: pa.Table, term: MatchTerm = UID) -> list[int]:
        return [batch.num_rows for batch in rows_together(table, of(term), KEYS)]

    texts = pa.concat_tables([pa.table({"uid": ["a"]})] * 5)
    assert sizes(texts) == [5]
    assert sizes(pa.concat_tables([pa.table({"uid": [b"a"]})] * 5)) == [1] * 5
    assert sizes(pa.concat_tables([pa.table({"tags": [["a"]]})] * 3), IN_LIST) == [3]
    assert sizes(pa.concat_tables([pa.table({"tags": ["a"]})] * 3), IN_LIST) == [1] * 3
    assert sizes(pa.concat_tables([pa.table({"uid": [1.5]})] * 3)) == [3]
    assert sizes(texts, BOTH) == [1] * 5
    monkeypatch.setattr(person_rows, "_ROWS", 3)
    monkeypatch.setattr(person_rows, "_TIMES", 1)
    assert sizes(texts) == [3, 2]
    monkeypatch.setattr(person_rows, "_TIMES", 2)
    assert sizes(texts) == [4, 1], "as many rows for each text that is wanted"
    assert sizes(pa.table({"uid": [b"a"] * 5})) == [3, 1, 1], "few at once where each is compared by itself"


def leaves_of(row: dict[str, Any], *access: Any) -> list[str]:
    return list(leaves(row, MatchTerm(column="c", access=access, key_set="uid", type="string")))


def test_the_values_of_a_row_one_by_one() -> None:
    assert leaves_of({"C": 7}) == ["7"]
    assert leaves_of({"c": None}) == []
    assert leaves_of({"C": 1, "c": 2}) == ["2"], "the column of this very name"
    assert leaves_of({"C": {"Id": "a"}}, FieldAccess(name="id")) == ["a"]
    assert leaves_of({"C": "a"}, FieldAccess(name="id")) == []
    assert leaves_of({"c": '{"a": {"b": 5}}'}, JsonAccess(path=("a", "b"))) == ["5"]
    for other in ('{"a": 5}', '{"x": 1}', "[1]", "no JSON", 5, None):
        assert leaves_of({"c": other}, JsonAccess(path=("a", "b"))) == []
    assert leaves_of({"c": ["a", None, "b"]}, ELEMENT) == ["a", "b"]
    assert leaves_of({"c": [("k", 1), ("l", 2)]}, KEY) == ["k", "l"]
    for other in ("text", b"bytes", None, 5):
        assert leaves_of({"c": other}, ELEMENT) == []
    assert list(leaves({"C": 1, "c ": 2}, MatchTerm(column="D", key_set="uid", type="string"))) == []
