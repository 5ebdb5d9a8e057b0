"""What the search for many persons takes, and that it finds what a plain search for every pattern finds."""

from __future__ import annotations

import hashlib
import tracemalloc

import pytest
from ahocorasick_rs import BytesAhoCorasick
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.scan import pattern_prefilter
from pii_tracer.scan.forms import line_wraps
from pii_tracer.scan.forms.line_wraps import Borders
from pii_tracer.scan.forms.pattern_automaton import Automaton, beginnings
from pii_tracer.scan.hits import Form
from pii_tracer.scan.pattern_prefilter import Sieve

ALIKE = st.lists(st.text("ab", min_size=1, max_size=40).map(str.encode), min_size=1, max_size=25, unique=True)
ANY = st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=25, unique=True)


@given(st.data(), st.one_of(ALIKE, ANY))
def test_beginnings_find_what_whole_patterns_find(data: st.DataObject, patterns: list[bytes]) -> None:
    """Patterns within each other, with the same beginnings, cut off at the end of the data."""
    pieces = st.one_of(
        st.sampled_from(patterns), st.sampled_from(patterns).map(lambda p: p[:-1]), st.binary(max_size=3)
    )
    text = b"".join(data.draw(st.lists(pieces, max_size=12)))
    plain = BytesAhoCorasick(patterns).find_matches_as_indexes(text, overlapping=True)
    expected = sorted((end, start, patterns[n]) for n, start, end in plain)
    found = Automaton({p: ((p.hex(), Form.TEXT),) for p in patterns}).matches(text)
    assert [(end, start, bytes.fromhex(terms[0][0])) for terms, start, end in found] == expected


def test_states_grow_with_patterns_and_not_with_their_bytes() -> None:
    digests = [hashlib.sha512(b"%d" % n).hexdigest().encode() for n in range(500)]
    assert max(map(len, beginnings(digests))) == 12


@given(ALIKE)
def test_a_beginning_is_of_one_pattern_alone(patterns: list[bytes]) -> None:
    for pattern, beginning in zip(patterns, beginnings(patterns), strict=True):
        assert pattern.startswith(beginning)
        assert beginning == pattern or sum(p.startswith(beginning) for p in patterns) == 1


def test_windows_for_many_columns_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of twenty persons are 8 MiB a column, and a lake has thousands of columns."""
    monkeypatch.setattr(pattern_prefilter, "_ROOM", 32 << 20)
    sieve = Sieve([hashlib.sha256(b"%d" % n).digest() for n in range(16_000)])
    wanted = hashlib.sha256(b"77").digest()
    tracemalloc.start()
    try:
        for column in range(20):
            text = b"%d" % column * 2000 + wanted + b"." * 100
            assert any(0 <= at - text.index(wanted) < 32 for at in sieve.places(text, f"c{column}").tolist())
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 60 << 20


@given(st.data(), ALIKE, st.integers(1, 5))
def test_borders_know_every_break_of_every_pattern(data: st.DataObject, patterns: list[bytes], together: int) -> None:
    """However many patterns are made known at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_wraps, "_TOGETHER", together)
        borders = Borders(patterns)
    pattern = data.draw(st.sampled_from([p for p in patterns if len(p) > 3] or [b""]))
    if pattern:
        at = data.draw(st.integers(1, len(pattern) - 1))
        text = b"-- " + pattern[:at] + b"\n" + pattern[at:] + b" --"
        assert any(low <= 3 and high >= 4 + len(pattern) for low, high in borders.windows(text))


def test_what_lies_between_two_patterns_is_none() -> None:
    assert list(Borders([b"abcd", b"efgh"]).windows(b"-- cd\nef --")) == []
    assert list(Borders([b"abcd", b"efgh"]).windows(b"-- ab\ncd --")) != []
