"""What a plan says of the contents of objects and files: nobody checks a guess by it."""

from __future__ import annotations

import pytest

from pii_tracer.model.waivers import MarkKey
from planners.content_digests import keyed
from tests.waivers import MARKS

SHORT = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize(
    ("name", "of"), [("sha256", "key"), ("etag", "key"), ("checksum", "path"), ("tree_hash", "id")]
)
def test_a_digest_is_keyed_wherever_it_is(name: str, of: str) -> None:
    one = {of: "a/b", name: SHORT, "size": 3}
    told = keyed({"location": "x", "files": [one], "of": {"inner": (one,)}}, MARKS)
    mark = MARKS.of_content("a/b", SHORT)
    assert told == {"location": "x", "files": [one | {name: mark}], "of": {"inner": [one | {name: mark}]}}
    assert len(mark) == 64


def test_the_mark_is_of_one_object_and_of_one_estate() -> None:
    marks = {keys.of_content(name, SHORT) for keys in (MARKS, MarkKey(b"another")) for name in ("a", "b")}
    assert len(marks) == 4


@pytest.mark.parametrize("nothing", [None, ""])
def test_what_a_store_does_not_say_stays_unsaid(nothing: str | None) -> None:
    assert keyed({"versions": [{"key": "a", "etag": nothing}]}, MARKS) == {"versions": [{"key": "a", "etag": nothing}]}


def test_a_digest_of_nothing_known_is_refused() -> None:
    with pytest.raises(KeyError):
        keyed({"sha256": SHORT}, MARKS)
