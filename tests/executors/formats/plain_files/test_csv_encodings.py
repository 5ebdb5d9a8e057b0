"""CSV in a declared encoding: the person is found by letters beyond ASCII, and all other records keep their bytes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from executors.formats.plain_files import csv_rewrite
from executors.formats.plain_files.arrow_match import RowsError
from pii_tracer.config.catalogs import TextEncoding
from pii_tracer.model.datasets import Match, MatchTerm
from pii_tracer.model.plan import HeldColumn, Mask

BY_NAME = Match(terms=(MatchTerm(column="größe", key_set="name", type="string"),))
NAME = "Zoë Nuñez"
KEYS = {"name": frozenset({NAME})}
HEADER = "größe,x\n"


def rewrite(path: Path, encoding: str) -> bytes:
    target = path.with_name("b-" + path.name)
    csv_rewrite.write(path, target, BY_NAME, KEYS, encoding=encoding)
    csv_rewrite.compare(path, target, BY_NAME, KEYS, encoding=encoding)
    return target.read_bytes()


@pytest.mark.parametrize("encoding", TextEncoding)
def test_every_byte_comes_back_as_it_was_and_ascii_is_ascii(encoding: TextEncoding) -> None:
    every = bytes(range(256))
    text = every.decode(encoding, "surrogateescape")
    assert text.encode(encoding, "surrogateescape") == every
    assert text[:128] == every[:128].decode("ascii")
    assert len(set(text)) == 256


_CELL = st.binary(max_size=8).map(lambda raw: raw.translate(None, b',"\r\n\\'))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    encoding=st.sampled_from(TextEncoding),
    rows=st.lists(st.tuples(st.one_of(st.none(), _CELL), _CELL), max_size=12),
    end=st.sampled_from([b"\n", b"\r\n"]),
)
def test_only_the_persons_records_leave(
    tmp_path: Path, encoding: TextEncoding, rows: list[tuple[bytes | None, bytes]], end: bytes
) -> None:
    """None stands for the person's name; other cells are any bytes, characters of the encoding or not."""
    mine = NAME.encode(encoding)
    rows = [row for row in rows if row[0] != mine]
    lines = [b",".join([mine if name is None else name, cell]) + end for name, cell in rows]
    path = tmp_path / "a.csv"
    header = HEADER.rstrip().encode(encoding) + end
    path.write_bytes(header + b"".join(lines))
    kept = [line for line, (name, _) in zip(lines, rows, strict=True) if name is not None]
    assert csv_rewrite.survey(path, BY_NAME, KEYS, encoding=encoding)[:2] == (len(lines), len(kept))
    assert rewrite(path, encoding) == header + b"".join(kept)


def test_quoted_cells_and_a_codec_stay(tmp_path: Path) -> None:
    others = 'Ångström,"zwei\nZeilen, „so“"\n'.encode("cp1252")
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(HEADER.encode("cp1252") + others + f'"{NAME}",2\n'.encode("cp1252")))
    assert gzip.decompress(rewrite(path, "windows-1252")) == HEADER.encode("cp1252") + others


def test_in_another_encoding_than_declared_nobody_is_taken_for_the_person(tmp_path: Path) -> None:
    """The name's bytes in UTF-8 are other letters here: the column is not found at all, and nothing is written."""
    path = tmp_path / "a.csv"
    path.write_bytes(HEADER.encode() + f"{NAME},2\n".encode())
    with pytest.raises(RowsError, match="no column of the match"):
        csv_rewrite.survey(path, BY_NAME, KEYS, encoding="windows-1252")


def test_where_a_hold_keeps_columns_their_bytes_stay(tmp_path: Path) -> None:
    head, other = "größe,x,ort\n".encode("cp1252"), b"\xc5ngstr\xf6m,\x81,M\xfcnchen\n"
    path, target = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_bytes(head + other + f"{NAME},".encode("cp1252") + b"\x81\xe9,K\xf6ln\n")
    held = tuple(HeldColumn(name=name, holds=("H1",), until=None) for name in ("größe", "x"))
    kept = Mask(columns=("ort",), held=held)
    assert csv_rewrite.survey(path, BY_NAME, KEYS, kept, "windows-1252")[:2] == (2, 1)
    csv_rewrite.write(path, target, BY_NAME, KEYS, kept, "windows-1252")
    csv_rewrite.compare(path, target, BY_NAME, KEYS, kept, "windows-1252")
    assert target.read_bytes() == head + other + f"{NAME},".encode("cp1252") + b"\x81\xe9,\n"
