"""JSON documents that stand one behind the other in a file, over any lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.decode import dispatch
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.rows.json_documents import documents_of
from pii_tracer.scan.value_forms import build_patterns

KEY = build_patterns([KeySet(name="no", origin="people.no", weak=True, values=(("subj_1", "7"),))])


@pytest.mark.parametrize(
    "content",
    [
        b'{\n"uid": 1}\n{\n"uid": 7}\n',
        b'{"uid": 1}\n{\n"uid": 7\n}\n',
        b'{"uid": 1}{"uid": 7}\n',
        b'{"uid": 1} [{"uid": 7}]',
        b'{"uid": 1, "a": {"b": 1}\n, "c": {"d": 2}}\n{"a": {"b": 1}\n,"uid": 7}\n',
        b'{"x": "}{"}\n{"y": "\\"{",\n"uid": 7}\n',
    ],
)
def test_a_short_key_is_found_in_every_document(content: bytes) -> None:
    assert [(hit.where, hit.column) for hit in scan_bytes("a.json", content, KEY).hits] == [("data", "uid")]


@pytest.mark.parametrize("content", [b'{"uid": 1}\n{"uid":\n7', b'{"uid": 1}\n[{"uid": 7\n,'])
def test_a_document_that_is_cut_off_is_not_clean_for_a_short_key(content: bytes) -> None:
    assert scan_bytes("a.json", content, KEY).unread


def test_a_document_over_the_end_of_a_block_is_not_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "BLOCK", 64)
    content = b'{"uid": 1}\n' * 5 + b'{\n"uid":\n7\n}\n' + b'{"uid": 1}\n' * 20
    assert scan_bytes("a.json", content, KEY).unread
    assert not scan_bytes("a.json", b'{"uid": 1}\n' * 40, KEY).unread


VALUES = st.recursive(
    st.sampled_from([0, "}{", '"', "\\", "[", "\n", None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab{"), inner, max_size=2),
)


@given(
    documents=st.lists(st.lists(VALUES, max_size=2) | st.dictionaries(st.just("a"), VALUES), min_size=2, max_size=4),
    indents=st.lists(st.sampled_from([None, 0, 2]), min_size=4, max_size=4),
    ends=st.lists(st.sampled_from(["", " ", "\n", "\r\n\n"]), min_size=4, max_size=4),
)
def test_a_text_of_documents_is_taken_apart(
    documents: list[object], indents: list[int | None], ends: list[str]
) -> None:
    text = "".join(
        json.dumps(one, indent=indent) + end for one, indent, end in zip(documents, indents, ends, strict=False)
    )
    found, whole = documents_of(text)
    assert whole
    assert [json.loads(one) for one in found if one.strip()] == documents


def test_lines_of_another_kind_stay_lines() -> None:
    text = "[INFO] a [b\n[1] c\n{no\nd\n"
    assert documents_of(text) == (text.split("\n")[:-1], True)
