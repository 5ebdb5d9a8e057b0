"""An e-mail address that another person's begins with, because the other's domain goes on: the other's present and hers
gone is clean, in every place that is decoded; where it may be hers with something behind it, it counts.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hits import FileScan, Form
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.boundaries.test_neighbours import DECODED, made
from tests.scan.support import parquet, scan

HERS, OTHERS = "lena@yahoo.example", "lena@yahoo.example.br"
KEYS = build_patterns([KeySet(name="email", origin="email", weak=False, values=(("s", HERS),))])


def seen(name: str, data: bytes) -> FileScan:
    result = scan(name, data, KEYS)
    assert not result.unread
    return result


def cells(*texts: str) -> bytes:
    return parquet(pa.table({"c": list(texts)}), compression="zstd", write_page_index=True)


# 16 characters of a bound are a matter of the file that it bounds: tests/scan/test_bounds.py
@pytest.mark.parametrize("place", DECODED)
@pytest.mark.parametrize(
    "others", [OTHERS, "lena@yahoo.example.com.au", "magda.lena@yahoo.example.co.uk", f"{HERS}.net"]
)
def test_red_with_her_address_green_with_one_whose_domain_goes_on(place: str, others: str) -> None:
    assert seen(*made(place, HERS, "{}")).hits
    # what a writer notes in an Avro file's head is bytes of any kind: nobody sees an end there
    assert [hit for hit in seen(*made(place, others, "{}")).hits if hit.where != "avro metadata"] == []
    assert seen(*made(place, f"{others}, {HERS}", "{}")).hits


COUNTS = [
    HERS,
    HERS.upper(),
    f"{HERS}.",
    f"{HERS}. Br",
    f"{HERS}.Br",
    f"{HERS}.BR",
    f"{HERS}.Then",
    f"{HERS}.then",
    f"{HERS}.br is hers",
    f"ask {HERS}.br",
    f"{HERS}.br.",
    f"{HERS}.br-Pune",
    f"{HERS}.br@home",
    f"{HERS}.bré",
    f"{HERS}m",
    f"{HERS}Pune",
    f"{HERS}-br",
    f"{HERS}.7",
    f"{HERS}.csv",
    f"{HERS}.md",
    f"{HERS}.json.br",
    f"{HERS}.tar.gz",
    f"docs/{HERS}.br",
    f"docs/{HERS}.br/a",
    f"{HERS}.in=\nvoice",
    f"{HERS}.br\\n",
    f"42-{OTHERS}",
    f"user_{OTHERS}",
    f"\\n{OTHERS}",
    f"%3C{OTHERS}",
    f"é{OTHERS}",
    f"{OTHERS},{HERS}",
    f"{OTHERS} {HERS}",
]


@pytest.mark.parametrize("text", COUNTS)
def test_what_still_counts_in_a_cell(text: str) -> None:
    assert seen("a.parquet", cells(text)).hits
    assert seen("a.parquet", cells(text, OTHERS)).hits


@pytest.mark.parametrize(
    "text",
    [
        f'"{OTHERS}"',
        f"Lena <{OTHERS}>",
        f"email={OTHERS}&next=1",
        f"email={OTHERS.replace('@', '%40')}&next=1",
        f"{HERS.upper()}.br",
        f"id:71,email:{OTHERS},x",
        '{"a": "{\\"b\\": \\"' + OTHERS + '\\"}"}',
    ],
)
def test_whole_values_of_others_do_not(text: str) -> None:
    assert seen("a.parquet", cells(text)).hits == ()


def test_bytes_in_which_nobody_sees_an_end_and_names_of_files_keep_counting() -> None:
    assert seen("a.txt", f"{OTHERS}\n".encode()).hits
    assert seen("a.parquet", parquet(pa.table({"c": [OTHERS.encode()]}))).hits
    assert seen(OTHERS, b"-").hits
    assert seen(f"mails/{OTHERS}", b"-").hits
    assert seen(f"email={OTHERS}/a.txt", b"-").hits == ()


@pytest.mark.parametrize(("her", "counts"), [("le@x.example", True), ("lee@x.example", False)])
def test_a_bound_that_may_be_cut_says_nothing_of_what_follows(her: str, counts: bool) -> None:
    """`le@x.example.com` has sixteen characters: it may stand for `le@x.example.comes on Monday`."""
    patterns = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", her),))])
    hits = scan(*made("iceberg manifest", f"{her}.com"), patterns).hits
    assert {hit.form for hit in hits} == ({Form.PREFIX} if counts else set())


PARTS = re.compile(
    r"(?:.*([=/]))? *((?:[a-z0-9]+[._+-])*[a-z]+\.?)?"
    + re.escape(HERS)
    + r"(\.com|(?:\.co|\.com)?\.(?!md)[a-z][a-z])? *\\*(?:([=/]).*)?"
)


def anothers(text: str) -> bool:
    """The slow model: each value in the text, parted from the next, is surely not hers."""
    for value in re.split(r"[\x01\t\n\r\"'(),:;<>\[\]{|}&]", text.lower()):
        if HERS in value:
            if re.search(r"=[0-9a-f]{2}", value):
                return False
            parts = PARTS.fullmatch(value)
            if value.count(HERS) > 1 or parts is None:
                return False
            left, head, tail, right = parts.groups()
            if not head and not tail:
                return False
            if tail and (left == "/" or right == "=" or (right == "/" and left != "=")):
                return False
    return True


@given(
    st.text('a1.-_+% \\é,="<d/', max_size=4),
    st.sampled_from(["", ".br", ".com", ".co.uk", ".Br", ".md", ".b", ".comm", "m", ".br.br", ".uk.co"]),
    st.text('a1.-_+% \\é,="<@d/', max_size=4),
)
@example("", ".br", "\\1")
@example("", ".br", "\\=")
@example("", ".br", "=\n")
@example("", ".br", "<=11")
def test_an_occurrence_counts_unless_each_is_a_part_of_a_whole_value_of_anothers(
    before: str, tail: str, behind: str
) -> None:
    text = before + HERS + tail + behind
    assert seen("a.parquet", cells(text)).hits or anothers(text), "hers was taken for another's"
