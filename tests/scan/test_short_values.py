"""A value of two to five signs is found as files escape it: a short key is not left behind for a quote in it."""

from __future__ import annotations

import csv
import html
import io
import json
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import name_tells
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import scan


def _csv(value: str) -> str:
    sink = io.StringIO()
    csv.writer(sink).writerows([["key", "n"], [value, "1"]])
    return sink.getvalue()


def _backslashes(value: str) -> str:
    return "key,n\n" + '"{}",1\n'.format(value.replace("\\", "\\\\").replace('"', '\\"'))


WRITTEN: dict[str, tuple[str, Callable[[str], str]]] = {
    "csv": ("a.csv", _csv),
    "csv with backslashes": ("a.csv", _backslashes),
    "text of a table": ("a", lambda value: "1;{};x\n".format(value.replace("\\", "\\\\").replace(";", "\\;"))),
    "text with commas": ("a.txt", lambda value: "1,{},x\n".format(value.replace(",", "\\,"))),
    "json lines": ("a.json", lambda value: json.dumps({"key": value}) + '\n{"key": "zz"}\n'),
    "xml": ("a.xml", lambda value: f"<a><key>{html.escape(value)}</key></a>"),
    "attribute": ("a.xml", lambda value: f'<a key="{html.escape(value)}"/>'),
    "sql": ("a.sql", lambda value: "INSERT INTO t VALUES ('{}', 1);".format(value.replace("'", "''"))),
    "url": ("a.log", lambda value: f"GET /a?key={urllib.parse.quote(value)}&n=1"),
}
_ENDS = st.sampled_from("bqBQéü")
SHORT = st.tuples(_ENDS, st.text(st.sampled_from("bq09\"'\\&<>;,%#éü -_"), max_size=3), _ENDS).map("".join)
"""Of letters that the texts around them do not have."""


@pytest.mark.parametrize("kind", WRITTEN)
@given(value=SHORT)
def test_a_short_value_is_found_as_files_escape_it(kind: str, value: str) -> None:
    name, written = WRITTEN[kind]
    for weak in (False, True):
        keys = KeySet(name="key", origin="key", weak=weak, values=(("subj_1", value),))
        assert scan(name, written(value).encode(), build_patterns([keys])).hits, (kind, weak)


@pytest.mark.parametrize("kind", WRITTEN)
@given(value=SHORT, other=SHORT)
def test_another_short_value_is_not(kind: str, value: str, other: str) -> None:
    letters, others = ("".join(filter(str.isalnum, one)).lower() for one in (value, other))
    assume(letters not in others)  # they may look alike
    name, written = WRITTEN[kind]
    keys = KeySet(name="key", origin="key", weak=False, values=(("subj_1", value),))
    assert not scan(name, written(other).encode(), build_patterns([keys])).hits


@pytest.mark.parametrize(
    ("value", "weak", "folder"),
    [
        *(("AB12", False, folder) for folder in ("cust=AB12", "cust=ab12")),
        *((value, False, f"cust={value}") for value in ("Rao", "a-b", "1e5")),
        ("A/1", False, "cust=A%2F1"),
        *(("8841302", True, folder) for folder in ("cust=8841302", "cust=08841302", "cust=8841302.0", "8841302")),
        ("471.0", True, "cust=471.0"),
        ("42", True, "cust=42.0"),
    ],
)
def test_a_short_value_is_found_in_the_name_of_a_folder(value: str, weak: bool, folder: str) -> None:
    """Where another key of the set is a short number, and where none is."""
    for beside in ((), (("subj_2", "7730911"),)):
        keys = KeySet(name="key", origin="key", weak=weak or bool(beside), values=(("subj_1", value), *beside))
        assert name_tells(f"lake/t/{folder}/part-0.parquet", build_patterns([keys])), beside


def test_numbers_in_names_of_files_are_nobodys() -> None:
    keys = KeySet(name="key", origin="key", weak=True, values=(("subj_1", "42"), ("subj_2", "8")))
    for path in ("part-00042-a.parquet", "day=042/x", "month=08/x", "42x/x", "000042_0"):
        assert not name_tells(path, build_patterns([keys])), path
