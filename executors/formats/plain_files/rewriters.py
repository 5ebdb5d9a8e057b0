"""Which module writes which format of plain files again; Parquet's has an interface of its own (`parquet_rewrite`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from executors.formats.plain_files import avro_rewrite, csv_rewrite, orc_rewrite
from executors.formats.plain_files.json_text import json_rewrite
from pii_tracer.model.datasets import Format

MODULES: Mapping[Format, Any] = {
    Format.ORC: orc_rewrite,
    Format.AVRO: avro_rewrite,
    Format.CSV: csv_rewrite,
    Format.JSON: json_rewrite,
}
"""Each has `survey`, `write` and `compare`."""
