"""Elements of lists as planning finds them by Arrow, as Spark would: in any case, and none behind a list that is NULL."""

from __future__ import annotations

import pyarrow as pa

from pii_tracer.model.datasets import ElementAccess, FieldAccess, KeySet, Match, MatchTerm
from planners.copies.person_rows import leaves, theirs, without_elements

ELEMENT = ElementAccess(name="element")
KEYS = {"uid": KeySet(name="uid", origin="t.uid", weak=False, values=(("s1", "11"),))}


def test_values_behind_a_list_that_is_null_are_in_no_row() -> None:
    """Arrow's list_flatten leaves them out, and its list_parent_indices does not: naively the next row is hers."""
    offsets, null = pa.array([0, 1, 3, 4, 6], pa.int32()), pa.array([False, True, False, False])
    lists = pa.ListArray.from_arrays(offsets, pa.array([10, 12, 13, 14, 15, 11]), mask=null)
    match = Match(terms=(MatchTerm(column="members", access=(ELEMENT,), key_set="uid", type="bigint"),))
    batch = pa.RecordBatch.from_arrays([lists], names=["members"])
    found = theirs(batch, match, KEYS)
    assert found is not None
    assert found.to_pylist() == [False, False, False, True]
    left = without_elements(batch, match, KEYS)
    assert left is not None
    assert left.column(0).to_pylist() == [[10], [], [14], [15]]


def test_fields_are_found_in_any_case() -> None:
    """As in `theirs`, and by Spark; of two that differ in case alone, neither."""
    way = (ELEMENT, FieldAccess(name="User_ID"))
    term = MatchTerm(column="Members", access=way, key_set="uid", type="bigint")
    assert list(leaves({"members": [{"user_id": 11}, {"USER_ID": 12}, None, {"user_ID": 1, "USER_id": 2}]}, term)) == [
        "11",
        "12",
    ]
