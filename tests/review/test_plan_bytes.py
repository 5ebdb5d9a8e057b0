"""A plan's bytes: what is signed is what the standard library would write, indented."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.review.plans import plan

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT


@given(st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner)))
def test_documents_are_indented_as_the_standard_library_does(value: object) -> None:
    document = json.dumps(value, sort_keys=True, ensure_ascii=False).encode()
    assert (
        msgspec.json.format(document, indent=2)
        == json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2).encode()
    )


def test_a_plans_bytes_are_sorted_indented_json_with_a_final_newline() -> None:
    made = plan()
    data = made.model_dump(mode="json", by_alias=True)
    assert made.to_bytes() == (json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()
