"""A JSON file that is one document: the person's objects leave, and all others keep every byte."""

from __future__ import annotations

import gzip
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.json_text import json_rewrite
from executors.formats.plain_files.json_text.json_document import Document
from pii_tracer.lake.formats.plain_files.data_file import data_file
from pii_tracer.lake.formats.plain_files.json_types import Shape, rows
from pii_tracer.lake.formats.plain_files.rows import rows_of_file
from pii_tracer.model.datasets import Format, Match, MatchTerm
from pii_tracer.model.plan import HeldColumn, Mask
from pii_tracer.scan.rows.file_rows import rows_of
from pii_tracer.scan.rows.json_documents import LongDocumentError

BY_UID = Match(terms=(MatchTerm(column="uid", key_set="k", type="string"),))
KEYS = {"k": frozenset({"7"})}
MASK = Mask(columns=("uid", "note"), held=(HeldColumn(name="sum", holds=("h",), until=None),))
MINE = '{ "uid": "7",\n\t"note": "[{\\"}],", "sum": 1.50 }'
OTHER = '{"note": {"uid": "7"}, "uid": 8,\r\n "sum": 1e400}'
THIRD = '{"UID":"07"}'


def written(path: Path, mask: Mask | None = None) -> bytes:
    target = path.with_name("_new_" + path.name)
    json_rewrite.write(path, target, BY_UID, KEYS, mask)
    json_rewrite.compare(path, target, BY_UID, KEYS, mask)
    return target.read_bytes()


SPACE = st.text(" \t\r\n", max_size=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    objects=st.lists(st.sampled_from([MINE, OTHER, THIRD]), max_size=6),
    spaces=st.lists(SPACE, min_size=14, max_size=14),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_only_the_persons_objects_leave_an_array(
    tmp_path: Path, objects: list[str], spaces: list[str], mark: str
) -> None:
    around = iter(spaces)
    text = mark + next(around) + "[" + next(around)
    text += ",".join(f"{next(around)}{one}{next(around)}" for one in objects) + "]\n"
    path = tmp_path / "a.json"
    path.write_bytes(text.encode())
    theirs = [one for one in objects if one is not MINE]
    assert json_rewrite.survey(path, BY_UID, KEYS)[:2] == (len(objects), len(theirs))
    new = written(path)
    assert json.loads(new.decode("utf-8-sig")) == [json.loads(one) for one in theirs]
    at = 0
    for one in theirs:
        at = new.index(one.encode(), at) + len(one)
    assert len(theirs) < len(objects) or new == text.encode()
    read = list(rows_of(Format.JSON, "a.json", new))
    assert read == [json.loads(one) for one in theirs]


def test_one_object_over_many_lines_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(f"\n{MINE}\n")
    assert json_rewrite.survey(path, BY_UID, KEYS)[:2] == (1, 0)
    assert written(path) == b"\n[]\n", "still a document, without a row"
    path.write_text(OTHER)
    assert json_rewrite.survey(path, BY_UID, KEYS)[:2] == (1, 1)


def test_held_values_stay_in_an_object_of_a_document(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(f"[{OTHER},{MINE}]".encode()))
    new = gzip.decompress(written(path, MASK)).decode()
    assert new == f"[{OTHER},{MINE}]".replace('"uid": "7",\n', '"uid": null,\n').replace('"[{\\"}],"', "null")


@pytest.mark.parametrize(
    "text",
    [
        f"{OTHER}\n{OTHER}",
        f"[{THIRD}]\n[{THIRD}]",
        f"[{THIRD}, 1]",
        f"[{THIRD},]",
        f"[{THIRD} {THIRD}]",
        f"[{THIRD}",
        '[{"uid": 1, "uid": 2}]',
        f"[[{THIRD}]]",
        "[" * 100_000,
    ],
)
def test_what_is_not_one_document_of_objects_is_refused_by_all(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(RowsError):
        json_rewrite.survey(path, BY_UID, KEYS)
    with pytest.raises((ValueError, RecursionError)):
        Shape().read(io.BytesIO(text.encode()))


def test_planning_reads_the_rows_of_a_document(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(f"[{MINE},\n{OTHER}]")
    file = data_file(path)
    assert file is not None
    found: list[dict[str, Any]] = rows_of_file(file, ["uid", "sum"]).to_pylist()
    assert [(row["uid"], row["sum"]) for row in found] == [("7", 1.5), ("8", float("inf"))]
    shape = Shape()
    shape.read(io.BytesIO(b"[]"))
    assert rows(io.BytesIO(b"[]"), ["uid"], shape.types).num_rows == 0


def test_a_document_is_held_in_memory_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executors.formats.plain_files.json_text.json_document.MOST", 30)
    monkeypatch.setattr("pii_tracer.scan.rows.json_documents.MOST", 30)
    path = tmp_path / "a.json"
    path.write_text("[\n" + THIRD + "," + THIRD + "\n,{}]")
    with pytest.raises(RowsError, match="too large"):
        json_rewrite.survey(path, BY_UID, KEYS)
    with pytest.raises(LongDocumentError):
        list(rows_of(Format.JSON, "a.json", path.read_bytes()))


@pytest.mark.parametrize("content", [b'[{"uid": 7, "n": "\xe9"}]', b'{"uid": 1}\n{"uid": 7, "n": "\xe9"}\n'])
def test_what_is_no_utf_8_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(RowsError, match="not encoded in UTF-8"):
        json_rewrite.survey(path, BY_UID, KEYS)


@pytest.mark.parametrize("front", ["\ufeff", "\ufeff\ufeff", "\n\ufeff", "\ufeff \n"])
@pytest.mark.parametrize("content", ['[{"uid": 7}, {"uid": 8}]', '{"uid": 7}\n{"uid": 8}\n'])
def test_marks_before_the_first_object_are_passed_over_as_in_planning(front: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes((front + content).encode())
    assert list(rows_of(Format.JSON, "a.json", path.read_bytes())) == [{"uid": 7}, {"uid": 8}]
    assert json_rewrite.survey(path, BY_UID, KEYS)[:2] == (2, 1)


@pytest.mark.parametrize("blank", ["\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u3000"])
@pytest.mark.parametrize(
    "text", [f"#[{THIRD}]", f"[{THIRD}]#", f"[#{THIRD}]", f"#{THIRD}\n", f"{THIRD}\n#\n{THIRD}#\n"]
)
def test_what_is_no_blank_of_json_is_refused_by_all(text: str, blank: str, tmp_path: Path) -> None:
    """Spark reads a line with one as an object that is broken, which is a row of nulls."""
    path = tmp_path / "a.json"
    path.write_bytes(text.replace("#", blank).encode())
    file = data_file(path)
    assert file is not None
    with pytest.raises(RowsError):
        json_rewrite.survey(path, BY_UID, KEYS)
    for read in (lambda: rows_of_file(file, ["uid"]), lambda: list(rows_of(Format.JSON, "a.json", path.read_bytes()))):
        with pytest.raises(ValueError, match=r"JSON|Expecting|Extra"):
            read()


def test_what_stays_of_a_long_document_is_put_together_once() -> None:
    """The time grows with the document, and not with its square."""
    kept = []
    for number in (500, 4000):
        row, parts = '{"uid":8}'.ljust(2000), number * 2000
        spans = tuple((at, at + 2000, {"uid": 8}) for at in range(1, parts, 2001))
        document = Document("[" + ",".join([row] * len(spans)) + "]", spans, True)
        began = time.process_time()
        assert document.kept(lambda data, _: data) == document.text.encode()
        kept.append(time.process_time() - began)
    assert kept[1] < 30 * kept[0] + 0.1
