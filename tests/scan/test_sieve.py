"""The sieve may let too much through, and never too little."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.scan.pattern_prefilter import Sieve
from pii_tracer.scan.value_forms import SMALL
from tests.scan.support import PHONE, USER, scan

PATTERNS = st.lists(st.binary(min_size=4, max_size=40), min_size=1, max_size=30)
SIMILAR = st.lists(st.text("01 aB@", min_size=4, max_size=12).map(str.encode), min_size=1, max_size=30)


@given(st.data(), st.one_of(PATTERNS, SIMILAR), st.sampled_from([b"\0", b"01", b"aB@ 0", bytes(range(256))]))
def test_every_occurrence_holds_a_place(data: st.DataObject, patterns: list[bytes], filler: bytes) -> None:
    """At any position, in data of any kind, in either case, and in a view that begins anywhere."""
    sieve = Sieve(patterns)
    for _ in range(3):  # windows that were chosen for one kind of data have to do for the next
        wanted = data.draw(st.sampled_from(patterns))
        before = data.draw(st.integers(0, 300))
        content = (filler * 300)[:before] + data.draw(st.sampled_from([wanted, wanted.upper(), wanted.lower()]))
        content += (filler * 300)[: data.draw(st.integers(0, 20))]
        skip = data.draw(st.integers(0, before))
        places = sieve.places(memoryview(content)[skip:], "column")
        assert any(before <= place + skip < before + len(wanted) for place in places.tolist())


@pytest.mark.parametrize("size", [1 << 18, (1 << 18) + 3, 3 << 18])
def test_occurrences_on_the_borders_of_pieces(size: int) -> None:
    sieve = Sieve([b"Person-42"])
    for at in (0, 1, *range((1 << 18) - 9, (1 << 18) + 1), size - 9):
        if at + 9 <= size:
            content = bytearray(b"-" * size)
            content[at : at + 9] = b"pERSON-42"
            assert any(at <= place < at + 9 for place in sieve.places(content).tolist())


def test_common_beginnings_do_not_drown_the_sieve() -> None:
    """The rare part of a pattern is looked for: thousands of neighbours with the same beginning are passed over."""
    sieve = Sieve([b"customer-0000918273"])
    neighbours = b"".join(b"customer-%010d;" % (n * 37) for n in range(20_000))
    assert len(sieve.places(neighbours)) < 20


def test_a_pattern_of_three_bytes_is_too_short() -> None:
    sieve = Sieve([b"abc", b"a longer one"])
    assert sieve.blind
    with pytest.raises(ValueError, match="too short"):
        sieve.places(b"abc")


@given(st.integers(0, 3 * SMALL), st.booleans())
def test_a_person_in_a_large_text_is_found_wherever_they_stand(before: int, weak: bool) -> None:
    text = "." * before + f" {USER if weak else PHONE} " + "." * SMALL
    hits = scan("notes.log", text.encode()).hits
    assert {hit.key_set for hit in hits} == {"user_id" if weak else "phone"}
