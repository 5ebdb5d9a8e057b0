"""Elements of lists and maps in files against a model that is slow and plain: the person's go, all else stays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from executors.formats.plain_files import orc_rewrite, parquet_rewrite
from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.parquet_surgery.rewriting import Original, Persons, read_back, write_again
from pii_tracer.model.datasets import Access, ElementAccess, FieldAccess, Match, MatchTerm
from pii_tracer.model.plan import Mask

HER, OTHER, THIRD = "u-771204", "u-771205", "u-9"
KEYS = {"user": frozenset({HER})}
ELEMENT, KEY = ElementAccess(name="element"), ElementAccess(name="key")
KINDS: dict[str, tuple[pa.DataType, tuple[Access, ...]]] = {
    "plain": (pa.list_(pa.string()), (ELEMENT,)),
    "large": (pa.large_list(pa.string()), (ELEMENT,)),
    "structs": (
        pa.list_(pa.struct([("who", pa.struct([("id", pa.string())])), ("tags", pa.list_(pa.string()))])),
        (ELEMENT, FieldAccess(name="who"), FieldAccess(name="id")),
    ),
    "map": (pa.map_(pa.string(), pa.list_(pa.int64())), (KEY,)),
}
WHO = st.sampled_from([HER, OTHER, THIRD])


def cells(kind: str, *, nobody: bool = True) -> st.SearchStrategy[Any]:
    """What a row may hold. nobody: also structs that are NULL in another one, which Arrow writes wrongly to ORC."""
    if kind == "map":
        return st.none() | st.dictionaries(WHO, st.none() | st.lists(st.integers(0, 9), max_size=2)).map(
            lambda made: list(made.items())
        )
    one: st.SearchStrategy[Any] = st.none() | WHO
    if kind == "structs":
        who = st.fixed_dictionaries({"id": one})
        who = st.none() | who if nobody else who
        one = st.none() | st.fixed_dictionaries(
            {"who": who, "tags": st.none() | st.lists(st.text(max_size=2), max_size=2)}
        )
    return st.none() | st.lists(one, max_size=4)


def names_her(kind: str, element: Any) -> bool:
    if kind == "map":
        return bool(element[0] == HER)
    if kind == "structs":
        return bool(element and element["who"] and element["who"]["id"] == HER)
    return bool(element == HER)


def told(kind: str) -> tuple[Match, Mask]:
    term = MatchTerm(column="Held", access=KINDS[kind][1], key_set="user", type="string")
    return Match(terms=(term,)), Mask(columns=("lead",), held=(), found_by=("id", "held"))


def table_of(kind: str, held: list[Any]) -> pa.Table:
    return _table(kind, held, ["x"] * len(held))


def left(kind: str, held: list[Any]) -> pa.Table:
    hers = [cell is not None and any(names_her(kind, one) for one in cell) for cell in held]
    stays = [None if cell is None else [one for one in cell if not names_her(kind, one)] for cell in held]
    leads = [None if mine else "x" for mine in hers]
    return _table(kind, stays, leads)


def _table(kind: str, held: list[Any], leads: list[Any]) -> pa.Table:
    columns = (pa.array(range(len(held)), pa.int64()), pa.array(held, KINDS[kind][0]), pa.array(leads, pa.string()))
    return pa.table(list(columns), names=["id", "held", "lead"])


@settings(max_examples=100, deadline=None)
@given(data=st.data(), kind=st.sampled_from(sorted(KINDS)))
def test_in_parquet_her_elements_go_and_all_else_stays(data: st.DataObject, kind: str) -> None:
    """Row group by row group: those without her are copied."""
    held = data.draw(st.lists(cells(kind), max_size=7))
    sink = io.BytesIO()
    pq.write_table(table_of(kind, held), sink, row_group_size=2)
    old, new = Original.in_memory(sink.getvalue()), io.BytesIO()
    match, mask = told(kind)
    wanted = left(kind, held)
    seen = parquet_rewrite.survey(old.opened, match, KEYS, frozenset({HER}), mask)
    assert seen.before - seen.after == wanted.column("lead").null_count
    assert not seen.stale
    persons = Persons(match, KEYS, frozenset({HER}), mask, lambda _: False, {})
    made = write_again(old, new, io.BytesIO, persons)
    again = Original.in_memory(new.getvalue())
    read_back(old, again, made, persons)
    assert pq.read_table(io.BytesIO(new.getvalue())).equals(wanted)
    assert HER.encode() not in new.getvalue()
    assert not parquet_rewrite.survey(again.opened, match, KEYS, frozenset({HER}), mask).changes


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=st.sampled_from(["plain", "structs", "map"]))
def test_in_orc_her_elements_go_and_all_else_stays(
    data: st.DataObject, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    held = data.draw(st.lists(cells(kind, nobody=False), min_size=1, max_size=7))
    folder = tmp_path_factory.mktemp("orc")
    old, new = folder / "old.orc", folder / "new.orc"
    orc.write_table(table_of(kind, held), old)
    match, mask = told(kind)
    orc_rewrite.write(old, new, match, KEYS, mask)
    orc_rewrite.compare(old, new, match, KEYS, mask)
    assert orc.read_table(new).to_pylist() == left(kind, held).to_pylist()
    before, after, _ = orc_rewrite.survey(old, match, KEYS, mask)
    assert before - after == left(kind, held).column("lead").null_count
    assert orc_rewrite.survey(new, match, KEYS, mask)[:2] == (before, before)


DICTIONARY = pa.dictionary(pa.int8(), pa.string())
ID, NAN = FieldAccess(name="id"), float("nan")
KEPT: list[tuple[pa.DataType, tuple[Access, ...], list[Any], Any]] = [
    (pa.list_(DICTIONARY), (ELEMENT,), [[OTHER, None], None, [HER, OTHER]], [OTHER]),
    (
        pa.list_(pa.struct([("id", DICTIONARY), ("n", pa.list_(pa.float64(), 1))])),
        (ELEMENT, ID),
        [[{"id": OTHER, "n": [NAN]}], [], [{"id": HER, "n": [NAN]}, None]],
        [None],
    ),
    (pa.map_(DICTIONARY, pa.int64()), (KEY,), [[(OTHER, 1)], None, [(HER, 1)]], []),
    (pa.struct([("id", DICTIONARY)]), (ID,), [{"id": OTHER}, None, {"id": HER}], ...),
]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(("kind", "access", "cells", "stays"), KEPT)
def test_in_dictionaries_of_lists_nothing_of_her_is_left(
    kind: pa.DataType, access: tuple[Access, ...], cells: list[Any], stays: Any, before: bool
) -> None:
    """before: Arrow deleted her row already, so that no row names her, and the dictionary does."""
    table, sink, new = pa.table({"held": pa.array(cells, kind)}), io.BytesIO(), io.BytesIO()
    pq.write_table(table.slice(0, 2) if before else table, sink)
    old = Original.in_memory(sink.getvalue())
    term = MatchTerm(column="held", access=access, key_set="user", type="string")
    mask = None if term.within is None else Mask(columns=(), held=(), found_by=("held",))
    how = (Match(terms=(term,)), KEYS, frozenset({HER}), mask)
    seen = parquet_rewrite.survey(old.opened, *how)
    assert (seen.before - seen.after, seen.stale) == ((0, True) if before else (1, False))
    persons = Persons(*how)
    made = write_again(old, new, io.BytesIO, persons)
    again = Original.in_memory(new.getvalue())
    read_back(old, again, made, persons)
    left = [*cells[:2], *([] if before or stays is ... else [stays])]
    assert repr(again.opened().read().column("held").to_pylist()) == repr(left)
    assert again.opened().schema_arrow == old.opened().schema_arrow
    assert HER.encode() not in new.getvalue()
    assert not parquet_rewrite.survey(again.opened, *how).changes


STRUCTS = pa.struct([("no", pa.int8()), ("who", pa.struct([("mail", pa.string())]))])
NAMED: list[tuple[Any, pa.DataType, tuple[Access, ...]]] = [
    (lambda who: [who], pa.list_(pa.string()), (ELEMENT,)),
    (
        lambda who: [{"no": 1, "who": {"mail": who}}],
        pa.list_(STRUCTS),
        (*KINDS["structs"][1][:2], FieldAccess(name="mail")),
    ),
    (lambda who: [(who, 1)], pa.map_(pa.string(), pa.int8()), (KEY,)),
    (lambda who: {"no": 1, "who": {"mail": who}}, STRUCTS, (FieldAccess(name="who"), FieldAccess(name="mail"))),
]


@pytest.mark.parametrize("compliant", [True, False])
@pytest.mark.parametrize(("cell", "kind", "access"), NAMED)
def test_whose_key_holds_hers_is_somebody_else(
    cell: Any, kind: pa.DataType, access: tuple[Access, ...], compliant: bool
) -> None:
    """Bounds and dictionaries of a list's elements are keys, too, whatever a writer calls them in the file."""
    table = pa.table({"held": pa.array([cell("joann@x.example"), cell("ANN@x.example")], kind)})
    sink = io.BytesIO()
    pq.write_table(table, sink, use_compliant_nested_type=compliant)
    opened = Original.in_memory(sink.getvalue()).opened
    term = MatchTerm(column="Held", access=access, key_set="user", type="string")
    mask = None if term.within is None else Mask(columns=(), held=(), found_by=("held",))

    def stale(key: str, left: dict[str, frozenset[str]]) -> bool:
        keys = {"user": frozenset({"none"})}
        return parquet_rewrite.survey(opened, Match(terms=(term,)), keys, frozenset({key}), mask, nobodys=left).stale

    assert not stale("ann@x.example", {})
    assert stale("ANN@x.example", {}), "as a dictionary has it that rows were taken from"
    assert not stale("ANN@x.example", {term.label().lower(): frozenset({"ANN@x.example"})})


@pytest.mark.parametrize("held", [pa.array(["a"]), pa.array([[["a"]]], pa.list_(pa.list_(pa.string())))])
def test_what_is_no_list_of_keys_is_refused(held: pa.Array) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [1], "held": held, "lead": ["x"]}), sink)
    match, mask = told("plain")
    with pytest.raises(RowsError):
        parquet_rewrite.survey(Original.in_memory(sink.getvalue()).opened, match, KEYS, frozenset({HER}), mask)


def test_a_row_with_a_list_is_never_removed_by_an_element(tmp_path: Path) -> None:
    table, (match, _) = table_of("plain", [[HER, OTHER]]), told("plain")
    sink = io.BytesIO()
    pq.write_table(table, sink)
    orc.write_table(table, tmp_path / "a.orc")
    with pytest.raises(RowsError, match="belong to all these persons"):
        parquet_rewrite.survey(Original.in_memory(sink.getvalue()).opened, match, KEYS, frozenset({HER}))
    with pytest.raises(RowsError, match="belong to all these persons"):
        orc_rewrite.survey(tmp_path / "a.orc", match, KEYS)
