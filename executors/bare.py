"""Which module writes which format of plain files again; Parquet's has an interface of its own (`parquet_rows`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from executors import bare_avro, bare_csv, bare_json, bare_orc
from pii_tracer.model.identities import Format

MODULES: Mapping[Format, Any] = {
    Format.ORC: bare_orc,
    Format.AVRO: bare_avro,
    Format.CSV: bare_csv,
    Format.JSON: bare_json,
}
"""Each has `survey`, `write` and `compare`."""
