"""An e-mail address that is the end of another person's: the other's present and hers gone is clean, in every place that
is decoded; where it may be hers joined to something, it counts.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.boundaries.test_neighbours import DECODED, made
from tests.scan.support import parquet, scan

HERS, OTHERS = "rao@x.example", "asha.rao@x.example"
KEYS = build_patterns([KeySet(name="email", origin="email", weak=False, values=(("s", HERS),))])


def seen(name: str, data: bytes) -> FileScan:
    result = scan(name, data, KEYS)
    assert not result.unread
    return result


@pytest.mark.parametrize("place", DECODED)
@pytest.mark.parametrize("others", [OTHERS, "brao@x.example", "k_m.asha.rao@x.example", "x7-asharao@x.example"])
def test_red_with_her_address_green_with_the_longer_one(place: str, others: str) -> None:
    assert seen(*made(place, HERS, "{}")).hits
    # what a writer notes in an Avro file's head is bytes of any kind: nobody sees an end there
    assert [hit for hit in seen(*made(place, others, "{}")).hits if hit.where != "avro metadata"] == []
    assert seen(*made(place, f"{others}, {HERS}", "{}")).hits


@pytest.mark.parametrize("place", DECODED)
def test_a_whole_value_says_nothing_of_a_sentence(place: str) -> None:
    """The sentence may end where her address begins, so it counts: unless no place in it holds the text."""
    if not place.startswith(("delta", "iceberg", "path")) and place != "ndjson":
        assert seen(*made(place, OTHERS, "ask {} first")).hits


COUNTS = [
    HERS,
    HERS.upper(),
    f"Rao <{HERS}>",
    f"42-{HERS}",
    f"user_{HERS}",
    f"user+{HERS}",
    f"C17{HERS}",
    f"C17.{HERS}",
    f"1.{HERS}",
    f"see the invoice.{HERS} asked",
    f"thanks.{HERS} asked",
    f"paid by card.{HERS}",
    f"é{HERS}",
    f"éasha.{HERS}",
    f"\\n{HERS}",
    f"\\u003c{HERS}",
    f"%3C{HERS}",
    f"%3C{HERS}".replace("@", "%40"),
    f"to=20{HERS}",
    f"=cd{HERS}",
    f"asha@{HERS}",
    f"{OTHERS},{HERS}",
    f"{'a' * 65}{HERS}",
    f"a..{HERS}",
]


@pytest.mark.parametrize("text", COUNTS)
def test_what_still_counts_in_a_cell(text: str) -> None:
    assert seen("a.parquet", parquet(pa.table({"c": [text]}))).hits
    assert seen("a.parquet", parquet(pa.table({"c": [text, OTHERS]}), compression="zstd")).hits


@pytest.mark.parametrize(
    "text",
    [
        f'"{OTHERS}"',
        f"Asha <{OTHERS}>",
        f"email={OTHERS}&next=1",
        f"email={OTHERS.replace('@', '%40')}&next=1",
        f"{OTHERS}, b{HERS}",
        f"id:7,email:{OTHERS}",
        '{"a": "{\\"b\\": \\"' + OTHERS + '\\"}"}',
    ],
)
def test_whole_values_of_others_do_not(text: str) -> None:
    assert seen("a.parquet", parquet(pa.table({"c": [text]}))).hits == ()


def test_bytes_in_which_nobody_sees_an_end_keep_counting() -> None:
    assert seen("a.txt", f"{OTHERS}\n".encode()).hits, "text without columns: fields by position may be joined"
    assert seen("a.parquet", parquet(pa.table({"c": [b"2" + b"-asha." + HERS.encode()]}))).hits
    assert seen("a.parquet", parquet(pa.table({"c": [OTHERS.encode()]}))).hits, "a length can look like a letter"
    plain = parquet(pa.table({"c": [OTHERS]}))
    footer = len(plain) - 8 - int.from_bytes(plain[-8:-4], "little")
    assert seen("a.parquet", plain[:footer] + b"\x07asha." + HERS.encode() + plain[footer:]).hits


SEPARATORS = "\x01\t\n\r\"'(),/:;<=>[]{|}&"


def longer(text: str) -> bool:
    """The slow model: the text is one of its values, each parted from the next, and none of them may be hers."""
    values = re.split(rf"[{re.escape(SEPARATORS)}]", text)
    # quoted-printable: what stands right behind such a byte
    if re.search(rf"=[0-9a-f]{{2}}[^{re.escape(SEPARATORS)}]*{re.escape(HERS)}", text, re.IGNORECASE):
        return False
    hers = [value.strip(" ").rstrip("\\").rstrip(" ") for value in values if HERS in value.lower()]
    return all(
        value.lower().count(HERS) == 1
        and re.fullmatch(rf"(?:[a-z0-9]+[._+-])*[a-z]+\.?{re.escape(HERS)}", value.lower())
        for value in hers
    )


@given(
    st.text('a1.-_+% \\é,="<d', max_size=6),
    st.text('a1.-_+% \\é,="<@', max_size=4),
    st.text('a1. ,"\\', max_size=2),
)
@example("", "a.", "")
@example("a.", ",", "")
@example("", "a", "\\1")
@example("", "a", '\\"')
@example("=11", "<a", "")
def test_an_occurrence_counts_unless_each_is_the_end_of_a_whole_value_of_anothers(
    first: str, before: str, behind: str
) -> None:
    text = first + before + HERS + behind
    hits = seen("a.parquet", parquet(pa.table({"c": [text]}))).hits
    assert bool(hits) or longer(text), "hers was taken for another's"


@given(st.from_regex(r"([a-z0-9]{1,5}[._+-]){0,3}[a-z]{1,8}\.?", fullmatch=True), st.sampled_from(["", '"', "'", ","]))
def test_longer_addresses_are_told(head: str, quote: str) -> None:
    assert seen("a.parquet", parquet(pa.table({"c": [f"{quote}{head}{HERS}{quote}"]}))).hits == ()
