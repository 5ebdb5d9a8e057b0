"""Which files of a bare folder are written again where they hold persons: one rule for planning and for the steps."""

from __future__ import annotations

from pathlib import PurePath

from pii_tracer.model.datasets import Format

_PACKED = ("", ".gz", ".zst", ".bz2", ".deflate", ".snappy")
ENDINGS = {
    Format.PARQUET: (".parquet",),
    Format.ORC: (".orc",),
    Format.AVRO: (".avro",),
    Format.CSV: tuple(f".csv{packed}" for packed in _PACKED),
    Format.JSON: tuple(f".{name}{packed}" for name in ("json", "jsonl", "ndjson") for packed in _PACKED),
}
"""How data files of a format are named."""


def is_rewritten(relative: PurePath, kind: Format) -> bool:
    """Whether a file is taken for data: what readers take for it, whatever its name ends in, and hidden files that are
    named as data. relative: its path below the folder.
    """
    return not is_hidden(relative) or relative.name.lower().endswith(ENDINGS[kind])


def is_hidden(relative: PurePath) -> bool:
    """Spark passes over names that begin with `_` or `.`, but for partition folders like `_day=1`."""
    return any(part[0] in "_." and "=" not in part for part in relative.parts)


def is_hidden_folder(name: str) -> bool:
    """Whether Spark passes over a folder: a partition's is hidden by a full stop alone
    (`HadoopFSUtils.shouldFilterOutPathName`)."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
