"""The search for leaks finds what it is there to find, and nothing else."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.leaks import Person, leaks

MAIL = "Asha.Rao+list@clinic.example"
PERSON = Person((MAIL,), ("8841302",))


def parquet(data: bytes) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [data.decode()]}), sink, compression="zstd")
    return sink.getvalue()


def zipped(data: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.txt", data)
    return sink.getvalue()


@pytest.mark.parametrize(
    "form",
    [
        MAIL,
        MAIL.lower(),
        MAIL.upper(),
        quote(MAIL),
        quote(quote(MAIL)),
        MAIL.encode().hex(),
        *(base64.b64encode(b"x" * n + MAIL.encode() + b"y" * m).decode() for n in range(3) for m in range(3)),
        base64.b64encode(hashlib.sha256(MAIL.lower().encode()).digest()).decode(),
        hashlib.sha256(MAIL.lower().encode()).hexdigest(),
        hashlib.md5(MAIL.encode()).hexdigest(),
        hashlib.sha256(b"8841302").hexdigest(),
        "user 8841302 was erased",
        '{"id":8841302}',
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, parquet, zipped])
def test_every_form_is_found(tmp_path: Path, form: str, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "log").write_bytes(pack(f"before {form} behind".encode()))
    assert leaks(PERSON, [tmp_path])


def test_names_of_files_are_searched_and_sealed_files_are_not(tmp_path: Path) -> None:
    (tmp_path / f"{quote(MAIL)}.json").touch()
    assert leaks(PERSON, [tmp_path])
    (tmp_path / "wide").write_text(MAIL, encoding="utf-16")
    assert len(leaks(PERSON, [tmp_path])) == 2
    sealed = tmp_path / "sealed"
    sealed.mkdir()
    (sealed / "s.sealed").write_text(MAIL)
    assert leaks(PERSON, [sealed]) == []


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "q", "qq", "{", '{"a":'])
@pytest.mark.parametrize("offset", range(3))
def test_base64_is_found_wherever_it_begins(
    tmp_path: Path, encode: Callable[[bytes], bytes], before: str, offset: int
) -> None:
    (tmp_path / "log").write_text(before * 4 + encode(b"?" * offset + b"9850012345").decode())
    assert leaks(Person(("9850012345",)), [tmp_path])


@pytest.mark.parametrize("offset", range(3))
def test_a_part_of_a_value_in_base64_is_no_leak(tmp_path: Path, offset: int) -> None:
    (tmp_path / "log").write_bytes(base64.b64encode(b"?" * offset + b'{"sha256":"81500123f450012379850012"}'))
    assert leaks(Person(("9850012345",)), [tmp_path]) == []


@pytest.mark.parametrize("text", ["88413020", "18841302", "a8841302f", "1.8841302", "Rao@clinic.example", "hmac:0011"])
def test_what_is_somebody_elses_is_no_leak(tmp_path: Path, text: str) -> None:
    (tmp_path / "log").write_text(f"before {text} behind")
    assert leaks(PERSON, [tmp_path]) == []


def test_a_longer_value_of_somebody_else_is_no_leak_and_hides_none(tmp_path: Path) -> None:
    asha = Person((), ("asha@clinic.example",), ("asha@clinic.example.au",))
    log = tmp_path / "log"
    for text, found in (
        ("asha@clinic.example.au", False),
        ("asha@clinic.example", True),
        ("asha@clinic.example.aut", True),
    ):
        log.write_text(f"before {text} behind")
        assert (leaks(asha, [log]) != []) is found
    log.write_text("asha@clinic.example.au, asha@clinic.example")
    assert leaks(asha, [log]) != []
