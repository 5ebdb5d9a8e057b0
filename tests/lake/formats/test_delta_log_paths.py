"""What Delta's log names: discovery, sweeps and executors have to mean the same files by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from executors.formats.delta import sweep_rules
from executors.formats.delta.table_sweep import logged
from pii_tracer.lake.formats.delta.log_files import placed
from pii_tracer.lake.formats.delta.transaction_log import live_files, read_log
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import S3Location
from tests.lake.formats.test_delta_log import (
    METADATA,
    PROTOCOL,
    add,
    checkpoint,
    commit,
    remove,
)

ENCODED = "ab^-aqEH.-t@S}K{vb[*k^"
"""The example of PROTOCOL.md, "Derived Fields": a random prefix, and the UUID below."""
BIN = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def vector(kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {"storageType": kind, "pathOrInlineDv": text, "sizeInBytes": 1, "cardinality": 1, **more}


def put(table: Path, *names: str) -> None:
    for name in names:
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).write_bytes(b"x")


def discovered(table: Path) -> set[str]:
    return {str(f.path.relative_to(table)) for f in live_files(table)}


def kept(table: Path) -> set[str]:
    """Files in a table's folder that the erasing sweep keeps."""
    swept = {f.path for f in sweep_rules.unreferenced(table)}
    there = (p for p in table.rglob("*") if p.is_file() and "_delta_log" not in p.parts)
    return {str(p.relative_to(table)) for p in there if str(p) not in swept}


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a%3Ab/p.parquet", "a:b/p.parquet"),  # no scheme, although it looks like one when it is decoded
        ("a%3A//b/p.parquet", "a:/b/p.parquet"),
        ("file%3A/p.parquet", "file:/p.parquet"),
        ("day=a%3Ab/p.parquet", "day=a:b/p.parquet"),
        ("day=a%253Ab/p.parquet", "day=a%3Ab/p.parquet"),  # as Spark names folders of partitions
        ("day=a:b/p.parquet", "day=a:b/p.parquet"),  # `day=a` can be no scheme (RFC 2396, 3.1)
        ("a%20b%25c.parquet", "a b%c.parquet"),
        ("a%2520b.parquet", "a%20b.parquet"),
        ("a+b;c=1.parquet", "a+b;c=1.parquet"),
    ],
)
def test_a_relative_path_is_decoded_once_and_lies_in_the_table(tmp_path: Path, written: str, name: str) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add(written))
    put(tmp_path, name, "left.parquet")
    (file,) = live_files(tmp_path)
    assert (file.path, file.external) == (tmp_path / name, False)
    assert kept(tmp_path) == {name}
    assert sweep_rules.missing(tmp_path) == []
    assert logged(tmp_path).live == {str(tmp_path / name)}


@pytest.mark.parametrize(
    "scheme", ["", "file:", "file://", "file://localhost", "FILE:"], ids=lambda scheme: scheme or "none"
)
@pytest.mark.parametrize("name", ["x y%z.parquet", "a:b;c=1#d?e.parquet", "ü.parquet"])
def test_an_absolute_path_is_decoded_once(tmp_path: Path, scheme: str, name: str) -> None:
    table = tmp_path / "t"
    commit(table, 0, PROTOCOL, METADATA, add(scheme + quote(str(tmp_path / name), safe="/;=:")), add("inner"))
    put(tmp_path, name, "t/inner")
    assert {f.path: f.external for f in live_files(table)} == {tmp_path / name: True, table / "inner": False}
    assert sweep_rules.missing(table) == []
    (tmp_path / name).unlink()
    assert sweep_rules.missing(table) == [str(tmp_path / name)]


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("a%3Ab/p%20q.parquet", "s3://b/wh/t/a:b/p q.parquet"),
        ("s3a://b/x%20y%253A.parquet", "s3://b/x y%3A.parquet"),
        ("S3N://other/x", "s3://other/x"),
        ("a//b/../c", "s3://b/wh/t/a//b/../c"),
    ],
)
def test_a_path_of_a_table_in_s3(written: str, place: str) -> None:
    client: Any = None
    assert str(placed(S3Path(S3Location(bucket="b", key="wh/t"), client), written)) == place


@pytest.mark.parametrize("written", ["/x", "file:/x", "gs://b/k", "a:b"])
def test_a_table_in_s3_names_no_file_elsewhere(written: str) -> None:
    client: Any = None
    with pytest.raises(EstateError):
        placed(S3Path(S3Location(bucket="b", key="wh/t"), client), written)


@pytest.mark.parametrize("written", ["gs://b/k", "abfss://c@a/k", "file://other/x", "x:y", "s3://b/k", "a%FFb"])
def test_a_place_that_cannot_be_told_is_an_error_for_everybody(tmp_path: Path, written: str) -> None:
    """Else a live file would be nobody's, and a sweep would take it."""
    commit(tmp_path, 0, PROTOCOL, METADATA, add(written), add("b"))
    put(tmp_path, "b")
    with pytest.raises(EstateError) as refused:
        read_log(tmp_path)
    assert refused.value.where == str(tmp_path / "_delta_log"), "not the file: its name can be a person's value"
    with pytest.raises(EstateError):
        sweep_rules.unreferenced(tmp_path)


@pytest.mark.parametrize("order", [1, -1], ids=["added first", "removed first"])
@pytest.mark.parametrize(("old", "new"), [({"offset": 0}, {}), ({}, {"offset": 0}), ({"offset": 0}, {"offset": 1})])
def test_a_vector_at_offset_0_is_not_one_without_an_offset(
    tmp_path: Path, old: dict[str, Any], new: dict[str, Any], order: int
) -> None:
    """PROTOCOL.md, "Derived Fields": `uniqueId` ends with the offset unless there is none."""
    first, second = vector("u", ENCODED, **old), vector("u", ENCODED, **new)
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a", deletionVector=first))
    commit(
        tmp_path,
        1,
        *[add("a", deletionVector={**second, "cardinality": 2}), remove("a", deletionVector=first)][::order],
    )
    put(tmp_path, "a", BIN)
    (file,) = live_files(tmp_path)
    assert file.deleted_rows == 2
    assert kept(tmp_path) == {"a", BIN}


def test_a_removal_without_an_offset_leaves_the_vector_at_0(tmp_path: Path) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a", deletionVector=vector("u", ENCODED, offset=0)))
    commit(tmp_path, 1, remove("a", deletionVector=vector("u", ENCODED)))
    put(tmp_path, "a", BIN)
    assert discovered(tmp_path) == {"a"}
    assert kept(tmp_path) == {"a", BIN}


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        ("u", ENCODED, BIN),
        ("u", ENCODED[2:], BIN.removeprefix("ab/")),
        ("p", "{place}/v%20%25%3A.bin", "v %:.bin"),
        ("p", "file:{place}/v%20%25%3A.bin", "v %:.bin"),
        ("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", None),
    ],
)
def test_the_file_of_a_vector_is_kept(tmp_path: Path, kind: str, text: str, name: str | None) -> None:
    told = vector(kind, text.replace("{place}", str(tmp_path)), **({} if kind == "i" else {"offset": 0}))
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a", deletionVector=told))
    needed = {"a", name} if name else {"a"}
    put(tmp_path, *needed, "deletion_vector_00000000-0000-0000-0000-000000000000.bin")
    assert live_files(tmp_path)[0].deletion_vector
    assert kept(tmp_path) == needed
    assert logged(tmp_path).live == {str(tmp_path / file) for file in needed}
    assert sweep_rules.missing(tmp_path) == []


@pytest.mark.parametrize(("kind", "text"), [("x", ENCODED), ("u", "ab"), ("u", "~" * 20)])
def test_a_vector_that_cannot_be_told_is_an_error_for_everybody(tmp_path: Path, kind: str, text: str) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a", deletionVector=vector(kind, text, offset=1)))
    put(tmp_path, "a", BIN)
    with pytest.raises(EstateError, match="Delta log cannot be read"):
        read_log(tmp_path)
    with pytest.raises(EstateError, match="Delta log cannot be read"):
        sweep_rules.unreferenced(tmp_path)


def test_a_line_ends_where_json_says(tmp_path: Path) -> None:
    """A line separator of Unicode can stand in a value as it is."""
    action = json.dumps(add("a", partitionValues={"city": "x\u2028y\x85z"}), ensure_ascii=False)
    commit(tmp_path, 0, PROTOCOL, METADATA)
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(action, encoding="utf-8")
    put(tmp_path, "a", "left")
    assert discovered(tmp_path) == kept(tmp_path) == {"a"}


def test_a_checkpoint_whose_sidecar_is_gone_does_not_count(tmp_path: Path) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a"), add("b"))
    commit(tmp_path, 1, remove("a"))
    sidecar = {"sidecar": {"path": "s%201.parquet", "sizeInBytes": 1, "modificationTime": 1}}
    head = tmp_path / "_delta_log" / f"{1:020}.checkpoint.{'0' * 8}-0000-0000-0000-{'0' * 12}.json"
    head.write_text("\n".join(map(json.dumps, (PROTOCOL, METADATA, sidecar))), encoding="utf-8")
    put(tmp_path, "a", "b", "c")
    assert discovered(tmp_path) == kept(tmp_path) == {"b"}
    checkpoint(tmp_path, "s 1", add("c"))
    (tmp_path / "_delta_log" / "_sidecars").mkdir()
    (tmp_path / "_delta_log" / "s 1.parquet").rename(tmp_path / "_delta_log" / "_sidecars" / "s 1.parquet")
    assert discovered(tmp_path) == kept(tmp_path) == {"c"}


def test_without_its_commits_an_incomplete_checkpoint_is_no_older_table(tmp_path: Path) -> None:
    commit(tmp_path, 0, PROTOCOL, METADATA, add("a"))
    checkpoint(tmp_path, f"{1:020}.checkpoint.{1:010}.{2:010}", PROTOCOL, METADATA, add("b"))
    with pytest.raises(EstateError, match="Delta log cannot be read"):
        read_log(tmp_path)
