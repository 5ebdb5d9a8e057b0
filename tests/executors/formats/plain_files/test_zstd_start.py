"""A file of zstd with a frame in front that has no content: planning refuses what the step does not read."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
import zstandard

from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.compression import codec_of
from pii_tracer.lake.formats.plain_files.data_file import data_file, text_file
from pii_tracer.lake.formats.plain_files.rows import rows_of_file
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import FileText, TextColumn
from pii_tracer.model.hive_text.spark_options import spark_layout

TEXT = FileText(columns=(TextColumn(name="uid", type="string"),), layout=spark_layout({"header": "true"}))
SKIPPED = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
CONTENT = {"a.csv.zst": b"uid\n7\n", "a.json.zst": b'{"uid": "7"}\n', "text.csv.zst": b"uid\n7\n"}


@pytest.mark.parametrize("name", CONTENT)
def test_of_files_and_of_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    packed = zstandard.ZstdCompressor().compress(CONTENT[name])
    for content, clear in ((packed, True), (SKIPPED + packed, False), (packed + SKIPPED, True)):
        path.write_bytes(content)
        file = text_file(path, TEXT) if name.startswith("text") else data_file(path)
        assert file is not None
        with nullcontext() if clear else pytest.raises(EstateError, match="zstd"):
            assert rows_of_file(file, ["uid"]).to_pydict() == {"uid": ["7"]}
        with nullcontext() if clear else pytest.raises(RowsError):
            assert codec_of(path) == "zstd"
