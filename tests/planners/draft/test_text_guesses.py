"""Guesses of how CSV is read, by its first lines and its letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planners.draft.csv_delimiter_guesses import TextGuess, guess_text, is_western

MAIL_CSV = "E-Mail;Straße;Umsatz\na@x.example;Weg 1;1,50\nb@x.example;Gasse 2, links;12,00\n"
TEXTS = [
    ([MAIL_CSV], TextGuess(";", True, ("E-Mail", "Straße", "Umsatz"), False)),
    ([MAIL_CSV, MAIL_CSV.replace("Umsatz", "Betrag")], None),
    (["B-1|a@x.example|Bonn, Ost\nB-2|b@x.example|Ulm, Nord\n"], TextGuess("|", False, ("_c0", "_c1", "_c2"), False)),
    (["id\tnote\n1\tx\n2\ty, z\n"], TextGuess("\t", True, ("id", "note"), False)),
    (['id;note\n1;"two\nlines"\n2;"y;z"\n'], TextGuess(";", True, ("id", "note"), True)),
    (["id,note\n1,a;b\n2,c;d\n"], None),
    (["id,note\n1,a\n2,c\n"], None),
    (["note\nsome; text\nmore\n"], None),
    (["Anna;Bonn\nPaul;Ulm\n"], None),
    (["a;b|c\n1;2|3\n"], None),
    (["a;b\n"], None),
    (["", "id;n\n1;2\n"], TextGuess(";", True, ("id", "n"), False)),
    (["a;A\n1;2\n3;4\n"], TextGuess(";", False, ("_c0", "_c1"), False)),
    ([""], None),
    (["u-7;Asha Rao;NULL\nu-8;Ben Kim;5\nu-9;Jo Li;7\n"], None),
    (["Asha Rao;mobile;unknown\nBen Kim;mail;2020-01-01\n"], None),
    (["Asha;mobile;pending\nBen;mail;5\n"], None),
    (["Asha;none;n/a\nBen;5;6\n"], None),
    (["c-123;id;mail\n5;6;a@x.example\n"], None),
    (["Asha Rao;unbekannt;keine\nBen Kim;1990-01-01;+49 30 1234567\nJo Li;1991-02-03;+49 30 7654321\n"], None),
    (["Asha Rao;kA;offen\nBen Kim;17;+49 30 1234567\nJo Li;18;+49 30 7654321\n"], None),
    (["Asha Rao;no date\nBen Kim;1990-01-01\nJo Li;1991-02-03\n"], None),
    (["Full Name;Date\nBen Kim;1990-01-01\nJo Li;1991-02-03\n"], TextGuess(";", True, ("Full Name", "Date"), False)),
    (["name;mail\nAsha Rao;none\nBen Kim;a@x.example\n"], TextGuess(";", True, ("name", "mail"), False)),
]


@pytest.mark.parametrize(("heads", "guess"), TEXTS)
def test_what_separates_cells_is_told_by_the_first_lines(heads: list[str], guess: TextGuess | None) -> None:
    """Where a first line may be somebody's row, its words name no columns: a draft has no values."""
    assert guess_text(heads) == guess


@given(st.lists(st.lists(st.text(max_size=4), min_size=1, max_size=4).map(";".join), max_size=4).map("\n".join))
def test_no_text_is_too_odd_to_be_looked_at(head: str) -> None:
    found = guess_text([head])
    assert found is None or len(found.columns) > 1


WRITTEN = [
    ("windows-1252", "id,note\n1,Grüße aus Köln – à bientôt, l’été\n2,Señor Muñoz\n", True),
    ("windows-1251", "id,full_name\n1,Анна Каренина\n2,Лев Толстой\n", False),
    ("windows-1253", "id,full_name\n1,Ελένη Παπαδοπούλου\n", False),
    ("windows-1254", "id,ad\n1,Yıldız Doğan\n2,Işıl Şahin\n", False),
    ("windows-1250", "id,name\n1,Wałęsa\n2,Zażółć\n3,Bąk\n", False),
]


@pytest.mark.parametrize(("encoding", "text", "western"), WRITTEN)
def test_whether_text_is_western_its_letters_tell(encoding: str, text: str, western: bool) -> None:
    assert is_western(text.encode(encoding).decode("windows-1252", "replace")) is western
