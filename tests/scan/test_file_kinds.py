"""Decoders and the traces of table formats are found without being named."""

from __future__ import annotations

from pii_tracer.scan.decode.file_kind import file_kinds
from pii_tracer.scan.decode.table_metadata import Role, role_of
from pii_tracer.scan.decode.table_traces import table_traces


def test_kinds_are_tried_in_their_order() -> None:
    assert [kind.name for kind in file_kinds()] == [
        "parquet",
        "orc",
        "avro",
        "hudi log",
        "puffin",
        "hfile",
        "arrow ipc",
        "npy",
        "pdf",
        "tar",
        "zip",
    ]


def test_every_format_with_a_log_has_traces() -> None:
    assert sorted(traces.format for traces in table_traces()) == ["delta", "hudi", "iceberg"]


def test_engine_metadata_is_told_by_its_place() -> None:
    engine = [
        "t/_delta_log/0.json",
        "t/metadata/v1.metadata.json",
        "t/.hoodie/a.commit",
        "t/p/.hoodie_partition_metadata",
    ]
    assert {role_of(path) for path in engine} == {Role.ENGINE}
    rows = ["t/a.parquet", "t/.hoodie/metadata/files/a.hfile", "t/metadata/a.avro"]
    assert {role_of(path) for path in rows} == {Role.DATA}
