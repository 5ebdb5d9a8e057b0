"""Masked files against a model that is slow and plain: held cells and other people's rows stay, all else is NULL."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from executors.formats.plain_files import avro_rewrite, csv_rewrite, orc_rewrite, parquet_rewrite
from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.json_text import json_rewrite
from pii_tracer.model.datasets import Match, MatchTerm
from pii_tracer.model.number_keys import spellings
from tests.executors.engine.test_mask import mask
from tests.executors.world import BY_UID, EMAIL, UID

KEYS = {"uid": spellings([str(UID)]), "email": frozenset({EMAIL})}

VALUES: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
    "parquet": lambda: st.none() | st.text(max_size=4),
    "orc": lambda: st.none() | st.text(max_size=4),
    "avro": lambda: st.none() | st.text(max_size=4),
    "json": lambda: st.none() | st.text(max_size=4) | st.integers() | st.lists(st.text(max_size=2), max_size=2),
    "csv": lambda: st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=4),
}
MODULES: dict[str, Any] = {"orc": orc_rewrite, "avro": avro_rewrite, "json": json_rewrite, "csv": csv_rewrite}
FIELDS = ("uid", "mail", "a", "b", "c")
EITHER = Match(terms=(BY_UID.terms[0], MatchTerm(column="mail", key_set="email", type="string")))


def write_rows(kind: str, path: Path, made: list[dict[str, Any]]) -> None:
    schema = pa.schema([("uid", pa.int64()), *((name, pa.string()) for name in FIELDS[1:])])
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(made, schema), path, row_group_size=3)
    elif kind == "orc":
        orc.write_table(pa.Table.from_pylist(made, schema), path)
    elif kind == "avro":
        fields = [{"name": n, "type": ["null", "long" if n == "uid" else "string"]} for n in FIELDS]
        with path.open("wb") as stream:
            fastavro.writer(
                stream, {"type": "record", "name": "r", "fields": fields}, made, sync_interval=30, sync_marker=b"s" * 16
            )
    elif kind == "json":
        path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in made), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as text:
            writer = csv.DictWriter(text, FIELDS)
            writer.writeheader()
            writer.writerows(made)


def read_rows(kind: str, path: Path) -> list[dict[str, Any]]:
    if kind == "parquet":
        return pq.ParquetFile(path).read().to_pylist()  # type: ignore[no-any-return]
    if kind == "orc":
        return orc.read_table(path).to_pylist()  # type: ignore[no-any-return]
    if kind == "avro":
        with path.open("rb") as stream:
            return list(fastavro.reader(stream))  # type: ignore[arg-type]
    text = path.read_bytes().decode("utf-8")
    if kind == "json":
        return [json.loads(line) for line in text.split("\n") if line]
    return list(csv.DictReader(io.StringIO(text, newline="")))


@settings(max_examples=150, deadline=None)
@given(data=st.data(), kind=st.sampled_from(sorted(VALUES)))
def test_held_cells_and_other_rows_stay_and_all_else_is_null(
    data: st.DataObject, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cells = VALUES[kind]()
    one = st.fixed_dictionaries(
        {
            "uid": st.sampled_from([UID, 1, 2]),
            "mail": st.sampled_from([EMAIL, "b@example.net"]),
            **dict.fromkeys(FIELDS[2:], cells),
        }
    )
    made = data.draw(st.lists(one, max_size=8))
    held = (*sorted(data.draw(st.sets(st.sampled_from(FIELDS[1:]), min_size=1, max_size=3))), "uid")
    gone = tuple(name for name in FIELDS if name not in held)
    kept = mask(*gone, held=held)
    folder = tmp_path_factory.mktemp("model")
    path, target = folder / f"a.{kind}", folder / f"b.{kind}"
    write_rows(kind, path, made)
    before = read_rows(kind, path)
    null = "" if kind == "csv" else None
    mine = [row["uid"] == UID or row["mail"] == EMAIL for row in made]
    wanted = [
        {name: null if flag and name in gone else value for name, value in row.items()}
        for row, flag in zip(before, mine, strict=True)
    ]
    changed = sum(old != new for old, new in zip(before, wanted, strict=True))
    if kind == "parquet":
        old, new = (lambda **o: pq.ParquetFile(path, **o)), (lambda **o: pq.ParquetFile(target, **o))
        seen = parquet_rewrite.survey(old, EITHER, KEYS, frozenset(), kept)
        assert seen.before - seen.after == changed
        with target.open("w+b") as sink:
            parquet_rewrite.write(old, sink, EITHER, KEYS, kept)
        parquet_rewrite.compare(old, new, EITHER, KEYS, kept)
    elif made:
        rows_before, rows_after, _ = MODULES[kind].survey(path, EITHER, KEYS, kept)
        assert rows_before == len(made)
        # a quoted empty field of CSV is a text, and an empty one is NULL
        assert rows_before - rows_after == changed or kind == "csv"
        MODULES[kind].write(path, target, EITHER, KEYS, kept)
        MODULES[kind].compare(path, target, EITHER, KEYS, kept)
        if kind != "orc":
            assert MODULES[kind].survey(target, BY_UID, KEYS, kept)[1] == len(made)
    else:
        return
    assert read_rows(kind, target) == wanted


def test_what_was_written_is_compared_before_it_counts(tmp_path: Path) -> None:
    """A writer that loses a row, keeps too much, or takes what is held is found out."""
    made = [{"uid": UID if n == 3 else n, "mail": "m", "a": "1", "b": "2", "c": "3"} for n in range(6)]
    kept = mask("b", "c", held=("mail", "a"), found_by=("uid",))
    right = [r | ({"b": None, "c": None} if r["uid"] == UID else {}) for r in made]
    for kind in VALUES:
        path, target = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
        write_rows(kind, path, made)

        def compared(rows: list[dict[str, Any]], kind: str = kind, path: Path = path, target: Path = target) -> None:
            write_rows(kind, target, rows)
            if kind == "parquet":
                old, new = (lambda **o: pq.ParquetFile(path, **o)), (lambda **o: pq.ParquetFile(target, **o))
                parquet_rewrite.compare(old, new, BY_UID, KEYS, kept)
            else:
                MODULES[kind].compare(path, target, BY_UID, KEYS, kept)

        if kind != "csv":  # whose writer ends and quotes otherwise
            compared(right)
        for wrong in (
            made,
            right[:-1],
            [*right[:3], right[3] | {"a": None}, *right[4:]],
            [right[0] | {"b": None}, *right[1:]],
        ):
            with pytest.raises(RowsError):
                compared(wrong)
