"""Keys that differ only in case, where the source has the other spelling as another person's: in a column by which the
plan deletes, a cell that is exactly the other's key is the other's. Every other spelling, and every other column, counts.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hits import Form
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.value_forms import Patterns, build_patterns
from tests.scan.support import parquet, scan
from tests.scan.test_whole_cells import PLACES, made, seen

SHORT, LONG, SIXTEEN = "asha", "aZ4tQ9xKw2", "aZ4tQ9xKw2aZ4tQ9"
COLUMNS = KeyColumns({"uid": ["uid"], "_hoodie_record_key": ["uid"]})


def knowing(hers: str, *others: str) -> Patterns:
    keys = KeySet(name="uid", origin="uid", weak=False, values=(("s", hers),), others=others)
    return build_patterns([keys]).comparing(COLUMNS)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("hers", [SHORT, LONG])
def test_the_others_alone_are_clean_and_the_person_is_found_beside_them(place: str, hers: str) -> None:
    others = [hers.title(), hers.upper()]
    keys = knowing(hers, *others)
    for here in (others, others[:1], others[1:]):
        assert [(hit.where, hit.form) for hit in seen(made(place, here), keys).hits] == []
    for here in ([hers], [hers, *others], [*others, hers], [f" {hers} ", *others]):
        assert seen(made(place, here), keys).hits, here


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("hers", [SHORT, LONG])
def test_a_spelling_that_nobody_has_counts(place: str, hers: str) -> None:
    others = hers.title(), hers.upper()
    assert seen(made(place, others), knowing(hers)).hits
    assert seen(made(place, others), knowing(hers, others[0])).hits
    assert seen(made(place, others), knowing(hers, others[1])).hits


@pytest.mark.parametrize("hers", [SHORT, LONG])
def test_what_is_no_whole_cell_of_a_key_column_counts(hers: str) -> None:
    other = hers.upper()
    keys = knowing(hers, other)
    for cell in (f"{other} ", f"{other}, x", f"{other}-Pune", f'"{other}"', f"{other}\\n", json.dumps({"a": other})):
        assert seen(("a.parquet", parquet(pa.table({"uid": [cell]}))), keys).hits, cell
    assert seen(("a.parquet", parquet(pa.table({"note": [other]}))), keys).hits
    assert seen(("a.parquet", parquet(pa.table({"uid": [{"uid": other}]}))), keys).hits
    assert seen(("a.parquet", parquet(pa.table({"uid": [other], "note": [other]}))), keys).hits
    assert seen(("a.parquet", parquet(pa.table({"uid": [other]}))), keys.comparing(KeyColumns({"uid": ["x"]}))).hits


def test_partition_folders() -> None:
    keys = knowing(LONG, LONG.upper())
    assert scan(f"t/uid={LONG.upper()}/a.txt", b"-", keys).hits == ()
    assert scan(f"t/uid={LONG}/a.txt", b"-", keys).hits
    assert scan(f"t/uid={LONG.lower()}/a.txt", b"-", keys).hits
    assert scan(f"t/who={LONG.upper()}/a.txt", b"-", keys).hits


def test_a_bound_that_may_be_cut_there_counts_as_a_prefix() -> None:
    """The file that it describes tells (tests/scan/test_bounds.py): sixteen characters may be all of the other's key."""
    keys = knowing(SIXTEEN, SIXTEEN.upper())
    hits = scan(*made("iceberg manifest", [SIXTEEN.upper()]), keys).hits
    assert {hit.form for hit in hits} == {Form.PREFIX}
    hits = scan(*made("iceberg manifest", [SIXTEEN]), keys).hits
    assert Form.TEXT in {hit.form for hit in hits}


AROUND = st.text("aA1 ,-_\"'", max_size=2)


@given(st.sampled_from([SHORT, LONG]), st.data(), AROUND, AROUND)
def test_an_own_spelling_is_never_somebody_elses(hers: str, data: st.DataObject, before: str, behind: str) -> None:
    turned = st.lists(st.booleans(), min_size=len(hers), max_size=len(hers))

    def spelled() -> str:
        return "".join(c.swapcase() if t else c for c, t in zip(hers, data.draw(turned), strict=True))

    others, mine = {spelled()} - {hers}, spelled()
    cell = before + mine + behind
    hits = seen(("a.parquet", parquet(pa.table({"uid": [cell, *others]}))), knowing(hers, *others)).hits
    longer = (before[-1:] + behind[:1]).strip(" ,-_\"'")
    assert hits or cell in others or longer


LONGER = ["asha-rao", "v. asha", "Asha_2", "asha@x.example"]


@pytest.mark.parametrize("place", PLACES)
def test_keys_of_others_in_which_hers_is_a_word_are_theirs(place: str) -> None:
    """The run of `asha` ended at its first step, since another user was called `asha-rao`."""
    keys = knowing(SHORT, *LONGER)
    assert [(hit.where, hit.form) for hit in seen(made(place, LONGER), keys).hits] == []
    assert seen(made(place, [*LONGER, SHORT]), keys).hits
    assert seen(made(place, [*LONGER, "asha-pune"]), keys).hits
    assert seen(made(place, LONGER), knowing(SHORT, *LONGER[1:])).hits
