"""Lines that vCard, iCalendar and LDIF fold at any character: a value goes on behind a break and one blank."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.value_forms import Patterns, build_patterns

NUMBER = "4417700102"
CARD = "BEGIN:VCARD\nVERSION:3.0\nNOTE:she wrote {} again\nEND:VCARD\n"
TEXTS = {
    "card": CARD,
    "calendar": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:with {}\nEND:VEVENT\nEND:VCALENDAR\n",
    "ldif": "dn: cn=x,dc=mail\nhomePhone: {}\n\n",
}


def sought(value: str) -> Patterns:
    return build_patterns([KeySet(name="k", origin="t.k", weak=False, values=(("subj_1", value),))])


def found(name: str, data: bytes, value: str) -> bool:
    return bool(scan_bytes(name, data, sought(value)).strong)


@pytest.mark.parametrize("fold", ["\n ", "\r\n ", "\n\t"])
@pytest.mark.parametrize("value", [NUMBER, "P-55102", "+91 98450 12345"])
@pytest.mark.parametrize("kind", sorted(TEXTS))
@pytest.mark.parametrize("name", ["a.vcf", "a.txt"])
def test_a_value_is_found_wherever_its_line_is_folded(name: str, kind: str, value: str, fold: str) -> None:
    for at in range(1, len(value)):
        text = TEXTS[kind].format(f"{value[:at]}{fold}{value[at:]}").replace("\n", fold[:-1]).replace("\r\r", "\r")
        assert found(name, text.encode(), value), at


def test_one_that_is_folded_twice_and_joined_to_a_word_is_found() -> None:
    assert found("a.vcf", CARD.format("id4\n 41770010\n 2").encode(), NUMBER)


def test_a_folded_card_in_a_cell_is_found() -> None:
    data = io.BytesIO()
    pq.write_table(pa.table({"card": [CARD.format("4\n 417700102")]}), data)
    assert found("a.parquet", data.getvalue(), NUMBER)
    assert found("a.csv", ('n,card\n1,"' + CARD.format("4\n 417700102") + '"\n').encode(), NUMBER)


@pytest.mark.parametrize(
    "text", ["she paid 4\n 417700102 of them\n", CARD.format("4\n  417700102"), CARD.format("4\n417700102")]
)
def test_a_number_that_begins_another_line_is_none(text: str) -> None:
    assert not found("a.vcf", text.encode(), NUMBER)


def test_somebody_elses_longer_number_is_none() -> None:
    assert not found("a.vcf", CARD.format("4\n 4177001025").encode(), NUMBER)
