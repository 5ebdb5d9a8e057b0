"""What Hudi leaves in files beside the rows: https://hudi.apache.org/learn/tech-specs-1point0/"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pii_tracer.scan.decode.table_traces import Folder, TableTraces

_FOLDER = ".hoodie"
_MADE_BY = {
    "_hoodie_record_key": "hoodie.table.recordkey.fields",
    "_hoodie_partition_path": "hoodie.table.partition.fields",
}


class HudiTraces(TableTraces):
    """Timelines, the metadata table, and meta columns. Base files keep their smallest and largest record key."""

    format = "hudi"
    makes_columns = True
    own_folders = frozenset({_FOLDER})
    footer_columns = {b"hoodie_min_record_key": "_hoodie_record_key", b"hoodie_max_record_key": "_hoodie_record_key"}

    def is_metadata(self, parts: Sequence[str]) -> bool:
        if _FOLDER in parts[:-1]:
            inside = parts[len(parts) - 1 - list(reversed(parts)).index(_FOLDER) :]
            return len(inside) <= 2 or inside[1] != "metadata"
        return parts[-1] == ".hoodie_partition_metadata"

    def columns_made(self, root: Folder) -> Mapping[str, Sequence[str]]:
        properties = _properties(root)
        return {
            column: fields
            for column, key in _MADE_BY.items()
            if (fields := [name.strip() for name in properties.get(key, "").split(",") if name.strip()])
        }


def _properties(root: Folder) -> Mapping[str, str]:
    try:
        text = (root / _FOLDER / "hoodie.properties").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, value in pairs}


TRACES = HudiTraces()
