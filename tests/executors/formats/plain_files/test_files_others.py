"""What others wrote in the lines of JSON and CSV stays as they wrote it, whatever a reader would make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from executors.formats.plain_files import csv_rewrite
from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.json_text import json_rewrite
from pii_tracer.model.datasets import Format
from pii_tracer.model.number_keys import spellings
from tests.executors.formats.plain_files.alone import drop_rows
from tests.executors.world import BY_UID, UID

KEYS = {"uid": spellings([str(UID)])}

JSON = [
    '{"uid": 1, "a": 1.10, "b": 1.0, "c": 1, "d": null}',
    '{"uid":"1001","a":"007","big":123456789012345678901234567890,"small":1e-400}',
    '{"uid":  1002 ,"day":"2024-01-01","n":[1,"x",null,{"z":1.0}],"a":true}',
    '{"uid":null,"e":"\\u00e9\\/", "f":"é"}',
    '{"other":1e9999999,"uid":1e9999999}',
    "",
    f'{{"uid":"0{UID}","a":-0.0}}',
    '{"uid":NaN,"a":-Infinity}',
]
JSON_MINE = [f'{{"uid":{UID},"a":{{"x":1}}}}', f'{{"uid":"{UID}"}}', f'{{"a":[],"uid":{UID}.0}}']
CSV = [
    "0001,007,1.10,,",
    '1,"007","","say ""hi""",  x ',
    '2,"two\nlines",null,NULL,NaN',
    f"0{UID},1e3,2024-01-01,\\N,",
    "",
]
CSV_MINE = [f"{UID},1,2,3,4", f'"{UID}","a,b","","","x\ny"']


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("module", "lines", "mine", "header"),
    [(json_rewrite, JSON, JSON_MINE, []), (csv_rewrite, CSV, CSV_MINE, ["uid,a,b,c,d"])],
)
def test_lines_of_others_keep_every_byte(
    tmp_path: Path, end: str, module: Any, lines: list[str], mine: list[str], header: list[str]
) -> None:
    path, target = tmp_path / "a", tmp_path / "b"
    mixed = [*header, *lines[:2], *mine, *lines[2:], mine[0], lines[0]]
    path.write_bytes((end.join(mixed) + end).encode())
    before, after, missing = module.survey(path, BY_UID, KEYS)
    assert (before - after, missing) == (len(mine) + 1, ())
    module.write(path, target, BY_UID, KEYS)
    module.compare(path, target, BY_UID, KEYS)
    assert target.read_bytes() == (end.join([*header, *lines, lines[0]]) + end).encode()


def test_files_whose_headers_differ_are_each_read_by_their_own(tmp_path: Path) -> None:
    for number, header in enumerate(("uid,a", "a,uid", "x,UID,a")):
        path, target = tmp_path / f"{number}", tmp_path / f"new{number}"
        mine, other = (
            ",".join({"uid": uid, "a": a}.get(n.lower(), "") for n in header.split(","))
            for uid, a in ((str(UID), "1"), ("1", str(UID)))
        )
        path.write_text(f"{header}\n{mine}\n{other}\n")
        csv_rewrite.write(path, target, BY_UID, KEYS)
        assert target.read_text() == f"{header}\n{other}\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quote_that_nobody_closed_takes_no_lines_of_others_along(tmp_path: Path, end: str) -> None:
    """By RFC 4180 the four lines are one record; a reader of lines sees rows of three others."""
    text = end.join(["uid,note", f'{UID},"5 inch', "1003,b", "1004,c", '1005,6"', "1006,d", ""])
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    with pytest.raises(RowsError, match="could be rows of other people"):
        csv_rewrite.survey(path, BY_UID, KEYS)
    with pytest.raises(RowsError, match="could be rows of other people"):
        drop_rows(text.encode(), Format.CSV, BY_UID, KEYS, frozenset())
    fine = text.replace("1003,b", "b").replace("1004,c", "c").replace('1005,6"', '6"')
    path.write_bytes(fine.encode())
    assert csv_rewrite.survey(path, BY_UID, KEYS) == (2, 1, ())
