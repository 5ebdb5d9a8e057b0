"""Rows that are not the persons' and hold them: whose rows they are, and which copies they are a gap of."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import (
    Column,
    FieldAccess,
    JsonAccess,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.plan import ErasurePlan
from planners.copies import person_rows
from planners.copies.contradicted_rows import found_by_one_alone
from planners.copies.person_rows import count_of_table, padded, theirs
from planners.copies.scan_evidence import OthersRows
from tests.planners.copies.slow_rows import count_rows
from tests.planners.smalllake import Lake, hold

KEYS = {
    "id": KeySet(name="id", origin="uid", weak=False, values=(("s", "8841302"), ("s", "P-55102"), ("s", "2026-11-01")))
}


def found(column: Any, *access: FieldAccess | JsonAccess, name: str = "uid") -> list[bool] | None:
    match = Match(terms=(MatchTerm(column=name, access=access, key_set="id", type="string"),))
    answer = theirs(pa.record_batch({"UID": column}), match, KEYS)
    return None if answer is None else answer.to_pylist()


@pytest.mark.parametrize(
    ("values", "kind", "mine"),
    [
        (["P-55102", "P-551020", "p-55102", None], pa.string(), [True, False, False, False]),
        (["P-55102", "P-551020"], pa.string_view(), [True, False]),
        (["P-55102", "x", "P-55102"], pa.dictionary(pa.int8(), pa.large_string()), [True, False, True]),
        ([8841302, 88413020, None], pa.int64(), [True, False, False]),
        ([Decimal(8841302), Decimal(1)], pa.decimal128(20, 0), [True, False]),
        ([Decimal(8841302), Decimal("8841302.5")], pa.decimal128(20, 2), [True, False]),
        ([8841302.0, 8841302.5, 1e300, float("nan"), None], pa.float64(), [True, False, False, False, False]),
        ([8841302.0, 2.0**24], pa.float32(), [True, False]),
        (["8841302.0", "8841302.00", "8841302.5", "08841302"], pa.string(), [True, True, False, False]),
        ([date(2026, 11, 1), None], pa.date32(), [True, False]),
        ([None, None], pa.null(), [False, False]),
        ([None, None], pa.float64(), [False, False]),
    ],
)
def test_keys_are_compared_as_spark_casts_them_to_text(values: list[Any], kind: pa.DataType, mine: list[bool]) -> None:
    assert found(pa.array(values, kind)) == mine


@pytest.mark.parametrize("value", [datetime(2026, 11, 1), b"P-55102", True, ["P-55102"], {"a": "P-55102"}])
def test_what_spark_casts_in_its_own_way_is_not_told(value: Any) -> None:
    assert found(pa.array([value])) is None


def test_keys_inside_structs_and_json() -> None:
    structs = pa.array([{"Id": "P-55102"}, {"Id": "x"}, None])
    assert found(structs, FieldAccess(name="id")) == [True, False, False]
    assert found(structs, FieldAccess(name="other")) is None
    texts = pa.array(['{"a": {"id": 8841302}}', '{"a": {"id": "P-551020"}}', "no JSON", None])
    assert found(texts, JsonAccess(path=("a", "id"))) == [True, False, False, False]


def test_a_row_is_theirs_by_any_term_and_a_column_that_is_missing_or_stands_twice_tells_nothing() -> None:
    terms = tuple(MatchTerm(column=name, key_set="id", type="string") for name in ("a", "b"))
    batch = pa.record_batch({"a": ["P-55102", "x", "x"], "b": [None, "8841302", "x"]})
    answer = theirs(batch, Match(terms=terms), KEYS)
    assert answer is not None
    assert answer.to_pylist() == [True, True, False]
    assert theirs(batch.select(["a"]), Match(terms=terms), KEYS) is None
    assert theirs(pa.RecordBatch.from_arrays([batch["a"]] * 3, ["a", "b", "B"]), Match(terms=terms), KEYS) is None


CELLS = (
    st.sampled_from(("P-55102", "P-551020", "8841302", "8841302.0", "2026-11-01", "")),
    st.integers(8841300, 8841303),
    st.sampled_from((8841302.0, 8841302.5, 1e300)),
    st.sampled_from((date(2026, 11, 1), date(2026, 11, 2))),
    st.sampled_from((b"P-55102", b"x")),  # which Arrow does not compare
)


@settings(max_examples=40, deadline=None)
@given(st.tuples(*(st.lists(st.none() | cells, min_size=3, max_size=3) for cells in CELLS)))
def test_rows_are_counted_as_each_by_itself(columns: tuple[list[Any], ...]) -> None:
    table = pa.table({f"c{n}": values for n, values in enumerate(columns)})
    for names in (("c0", "c1"), ("c2", "c3"), ("c0", "c4")):
        match = Match(terms=tuple(MatchTerm(column=name, key_set="id", type="string") for name in names))
        expected = count_rows(table.to_pylist(), match, KEYS)
        for parts in (table, pa.concat_tables([table.slice(0, 1), table.slice(1)])):
            assert count_of_table(parts, match, KEYS) == expected
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(person_rows, "_ROWS", 1)
                patch.setattr(person_rows, "_TIMES", 0)
                assert count_of_table(parts, match, KEYS) == expected


def test_rows_are_compared_with_all_values_once_and_not_once_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow makes a table of the values at each call: of a hundred thousand persons that takes longer than the rows."""
    calls, is_in = list[int](), pc.is_in

    def counted(values: Any, value_set: Any) -> Any:
        calls.append(len(values))
        return is_in(values, value_set=value_set)

    monkeypatch.setattr(pc, "is_in", counted)
    table = pa.table({"uid": ["P-55102", "P-55103 ", "P-55102 "]})
    match = Match(terms=(MatchTerm(column="uid", key_set="id", type="string"),))
    for files in (1, 20):
        calls.clear()
        assert count_of_table(pa.concat_tables([table] * files), match, KEYS) == files
        assert [p.rows for p in padded(pa.concat_tables([table] * files), match, KEYS)] == [files]
        assert calls == [3 * files] * 3


def gaps(plan: ErasurePlan) -> list[tuple[str, str]]:
    return [(g.id, g.reason) for g in plan.gaps if g.kind == "others_rows"]


NOTES = {"/w/a": (OthersRows("note", 1_000, more=True), OthersRows("cc", 1))}


def test_each_column_of_a_copy_that_loses_rows_is_a_gap_of_its_own() -> None:
    made = Lake(others=NOTES).plan()
    assert gaps(made) == [
        (
            "gap-others_rows-prod.a-cc",
            "1 row that is not the persons' contains them in cc: the plan finds rows by uid, so this value would "
            "remain",
        ),
        (
            "gap-others_rows-prod.a-note",
            "1,000 or more rows that are not the persons' contain them in note: the plan finds rows by uid, so these "
            "values would remain",
        ),
    ]
    assert not made.complete
    assert not made.applyable


def test_columns_with_names_alike_are_never_waived_together() -> None:
    made = Lake(others={"/w/a": (OthersRows("größe", 1), OthersRows("gr??e", 2))}).plan()
    assert len({name for name, _ in gaps(made)}) == 2


def test_what_is_left_out_or_kept_is_no_gap() -> None:
    lake = Lake(others=NOTES)
    assert gaps(lake.plan(only=["prod.b"])) == []
    assert gaps(lake.plan(hold("prod.a"))) == []
    told = {"/w/a": (*NOTES["/w/a"], OthersRows("note.$.to", 2))}
    held = Lake(others=told, states={"a": _columns("uid", "note", "cc")}).plan(hold("prod.a", columns=["note"]))
    assert [name for name, _ in gaps(held)] == ["gap-others_rows-prod.a-cc"]


def _columns(*names: str) -> dict[str, Any]:
    return {"columns": tuple(Column(name=name, type="string") for name in names)}


def _rows(dev: bytes | None, mail: str = "brother@y.example") -> pa.Table:
    return pa.table({"phone": ["+919845012345"], "email": [mail], "dev": pa.array([dev], pa.binary())})


OF_THREE = {
    name: KeySet(name=name, origin=name, weak=False, values=(("s", value),))
    for name, value in (("phone", "+919845012345"), ("email", "a@x.example"), ("dev", "dev-1"))
}
THREE = Match(terms=tuple(MatchTerm(column=name, key_set=name, type="string") for name in OF_THREE))


def test_a_file_that_only_spark_can_compare_hides_nothing_in_another() -> None:
    """The second file has a key that Arrow does not compare as text; the first shows somebody else's mail."""
    table = pa.concat_tables([_rows(None), _rows(b"dev-9")])
    survey: Any = SimpleNamespace(key_sets=OF_THREE)
    assert [found.rows for found in found_by_one_alone(table, THREE, survey)] == [1]
    assert count_of_table(table, THREE, OF_THREE) == 2
    blank = pa.concat_tables([_rows(None, "a@x.example "), _rows(b"dev-9")])
    only = Match(terms=THREE.terms[1:])
    assert [found.rows for found in padded(blank, only, OF_THREE)] == [1]


def test_dictionaries_that_cannot_be_one_are_compared_each() -> None:
    narrow = [pa.array([f"{sign}{n}" for n in range(100)] + ["P-55102"]).dictionary_encode() for sign in "kq"]
    column = pa.chunked_array([array.cast(pa.dictionary(pa.int8(), pa.string())) for array in narrow])
    match = Match(terms=(MatchTerm(column="uid", key_set="id", type="string"),))
    assert count_of_table(pa.table({"uid": column}), match, KEYS) == 2
