"""A hold on some columns of CSV and JSON lines: what is held, and everybody else's lines, stay character for character."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from executors.formats.plain_files.compression import writing
from pii_tracer.model.datasets import Format
from tests.executors.engine.test_mask import mask
from tests.executors.formats.plain_files.test_files_formats import plain
from tests.executors.formats.plain_files.test_files_mask import (
    here,
    masked,
    refused,
    run,
)
from tests.executors.world import EMAIL, UID
from tests.sparksession import SparkEstate

__all__ = ["here"]

# --- CSV


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.zst", "a.csv.snappy"])
def test_csv(here: SparkEstate, name: str) -> None:
    """Others' records byte for byte, held fields as they stand, the rest empty: NULL for who reads it."""
    folder = here.folder("csv")
    folder.mkdir()
    text = (
        "\ufeffid,uid,email,amount,note\r\n"
        '1,1001,b1@example.net,"1,5","two\nlines"\r\n'
        f'2,"{UID}","{EMAIL}","1,""50""","my\nnote, with ""quotes"""\r\n'
        "\r\n"
        f"4,{UID},,007,\r\n"
        f'5,{UID},"",,x'
    )
    codec = {".gz": "gzip", ".zst": "zstd", ".snappy": "snappy"}.get(Path(name).suffix, "plain")
    with writing(folder / name, codec) as stream:
        stream.write(text.encode())
    steps = masked(here, folder, Format.CSV, mask("id", "email", "note", held=("amount",), found_by=("uid",)))
    assert not steps.bytes().clean
    assert run(steps)["rows_masked"] == 3
    assert plain(folder / name).decode() == (
        "\ufeffid,uid,email,amount,note\r\n"
        '1,1001,b1@example.net,"1,5","two\nlines"\r\n'
        f',"{UID}",,"1,""50""",\r\n'
        "\r\n"
        f",{UID},,007,\r\n"
        f",{UID},,,"
    )
    assert steps.bytes().clean, steps.bytes()


def test_csv_with_spark_escapes(here: SparkEstate) -> None:
    folder = here.folder("spark")
    folder.mkdir()
    text = f'uid,email,amount\n{UID},"say \\"hi, you\\"","a \\"b, c\\""\n5,"x \\"y\\" z",2\n'
    (folder / "a.csv").write_text(text)
    steps = masked(here, folder, Format.CSV, mask("email", held=("amount",), found_by=("uid",)))
    run(steps)
    assert (folder / "a.csv").read_text() == f'uid,email,amount\n{UID},,"a \\"b, c\\""\n5,"x \\"y\\" z",2\n'
    assert steps.bytes().clean, steps.bytes()


def test_a_csv_field_with_a_quote_inside_is_taken_apart_as_it_was_read(here: SparkEstate) -> None:
    folder = here.folder("quote")
    folder.mkdir()
    (folder / "a.csv").write_text(f'uid,email,amount\n{UID},5" pipe,a"b,"\n'.replace(',"\n', "\n"))
    run(masked(here, folder, Format.CSV, mask("email", held=("amount",), found_by=("uid",))))
    assert (folder / "a.csv").read_text() == f'uid,email,amount\n{UID},,a"b\n'


def test_a_csv_record_that_would_be_read_otherwise_is_refused(here: SparkEstate) -> None:
    """The last field ends with a newline that a backslash escapes, and it looks like the record's end."""
    folder = here.folder("escaped")
    folder.mkdir()
    (folder / "a.csv").write_text(f'uid,email,amount\n5,"x \\"y\\" z",2\n{UID},m,x\\\n\n')
    kept = mask("email", held=("amount",), found_by=("uid",))
    refused(masked(here, folder, Format.CSV, kept), "cannot be parsed reliably")


# --- JSON lines


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst", ".bz2"])
def test_json_lines(here: SparkEstate, suffix: str) -> None:
    folder = here.folder("json")
    folder.mkdir()
    text = (
        '{"uid": 5, "email": "b@example.net", "amount": 1.50}\n'
        f' {{ "uid" :{UID}.0, "email":"{EMAIL}" , "amount": 1.50e1, "id": {{"a": [1, {{"b": "}}"}}]}} }} \r\n'
        "\n"
        f'{{"amount": 12345678901234567890.10, "Id": null, "UID": {UID}}}\n'
        f'{{"uid":"{UID}","em\\u0061il":"x\\"}}","amount":null}}'
    )
    codec = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2"}.get(suffix, "plain")
    with writing(folder / f"a.json{suffix}", codec) as stream:
        stream.write(text.encode())
    steps = masked(here, folder, Format.JSON)
    assert run(steps)["rows_masked"] == 2
    assert plain(folder / f"a.json{suffix}").decode() == (
        '{"uid": 5, "email": "b@example.net", "amount": 1.50}\n'
        f' {{ "uid" :{UID}.0, "email":null , "amount": 1.50e1, "id": null }} \r\n'
        "\n"
        f'{{"amount": 12345678901234567890.10, "Id": null, "UID": {UID}}}\n'
        f'{{"uid":"{UID}","em\\u0061il":null,"amount":null}}'
    )


def test_json_lines_are_verified(here: SparkEstate) -> None:
    folder = here.folder("json")
    folder.mkdir()
    made = [{"uid": UID if n == 3 else n, "email": f"b{n}@example.net", "amount": n} for n in range(6)]
    (folder / "a.json").write_text("".join(json.dumps(r) + "\n" for r in made))
    steps = masked(here, folder, Format.JSON)
    assert [r.form for r in steps.bytes().residue] == ["row"]
    run(steps)
    assert steps.bytes().clean, steps.bytes()
