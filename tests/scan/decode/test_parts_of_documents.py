"""Which parts of a parsed document hold the persons: digests of these stay when the rest of the document changes."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.decode.table_metadata import digests_of_parts, walk
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.value_forms import build_patterns

MAIL, UID = "lena.virtanen@example.org", 4711
PATTERNS = build_patterns(
    (
        KeySet(name="customer.email", origin="email", weak=False, values=(("s", MAIL),)),
        KeySet(name="customer.uid", origin="uid", weak=True, values=(("s", str(UID)),)),
    )
)


def holds(document: Any) -> bool:
    collector = Collector(PATTERNS)
    walk(document, collector, "properties")
    return bool(collector.hits())


def parts(document: Any) -> set[str]:
    return set(digests_of_parts(document, holds))


BOUND = {"columnName": "uid", "minValue": 3, "maxValue": UID}
CASES: dict[str, tuple[Any, Any]] = {
    "a property": ({"steward": MAIL, "time": "1"}, {"time": "2", "rows": "9", "steward": MAIL}),
    "a name": ({MAIL: "1", "time": "1"}, {"time": "2", MAIL: "1"}),
    "a text in a list": ([{"n": 1}, [MAIL, "a"]], [["b", MAIL], {"n": 2}]),
    "the bound of a column": ([BOUND], [{"columnName": "day", "maxValue": 9}, BOUND | {"minValue": 2}]),
    "bounds by column": ({"minValues": {"uid": UID, "n": 1}}, {"minValues": {"n": 0, "uid": UID}}),
    "a partition": ([{"partition": {"uid": str(UID), "day": "1"}}], [{"partition": {"day": "2", "uid": str(UID)}}]),
    "a partition as pairs": ({"partition": [("uid", UID), ("n", 1)]}, {"partition": [("n", 2), ("uid", UID)]}),
    "a partition's bytes": ({"partition": {"at": [*MAIL.encode()], "n": 1}}, {"partition": {"at": [*MAIL.encode()]}}),
    "a query": ({"query": ["SELECT 1", f"WHERE uid = {UID}"]}, {"query": [f"WHERE uid = {UID}", "SELECT 2"]}),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_digests_stay_when_other_parts_or_the_order_change(before: Any, after: Any) -> None:
    assert parts(before) == parts(after) != set()


@pytest.mark.parametrize(("document", "_"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("added", CASES.values(), ids=CASES)
def test_each_further_part_with_a_value_has_a_digest_of_its_own(document: Any, _: Any, added: tuple[Any, Any]) -> None:
    """Whatever else of the document holds a value, and in whatever form."""
    assert parts([document, {"further": added[0]}]) > parts([document])


@pytest.mark.parametrize("other", [{"steward": f"{MAIL}, she left"}, {"owner": MAIL}, {"owners": {"steward": MAIL}}])
def test_another_text_and_the_text_under_another_name_have_another_digest(other: Any) -> None:
    assert parts({"steward": MAIL}).isdisjoint(parts(other))


def test_a_document_without_a_value_has_no_digest() -> None:
    assert parts([{"steward": "a", "n": str(UID)}, {"columnName": "n", "minValue": 3}, []]) == set()


def test_parts_that_hold_a_value_only_together_have_one_digest() -> None:
    def both(document: Any) -> bool:
        return all(name in str(document) for name in ("'c'", "'d'"))

    (one,) = digests_of_parts([{"a": 1, "b": {"d": 2, "c": 3}}, 7], both)
    assert [one] == list(digests_of_parts([8, {"b": {"c": 3, "d": 2}}], both))
