"""Which parts of an estate file are not what they were when a run began; never what stands in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pii_tracer.config.estate_file import file_digest
from pii_tracer.model.errors import Drift

_CONF = "spark.conf"


def section_digests(estate_file: Path) -> dict[str, str]:
    """By the name of each part of the file; `spark.conf` counts by itself."""
    told: Any = yaml.safe_load(estate_file.read_bytes())
    parts = dict(told) if isinstance(told, dict) else {}
    if isinstance(parts.get("spark"), dict):
        spark = dict(parts.pop("spark"))
        parts |= {_CONF: spark.pop("conf", None) or {}, "spark": spark}
    whole = {str(name): json.dumps(part, sort_keys=True, default=str) for name, part in parts.items()}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in whole.items() if text != "{}"}


def refuse_changed_estate(estate_file: Path, digest: str, sections: Mapping[str, str]) -> None:
    """digest: of the file that was planned with. sections: of that file, where a run has begun; else empty.

    Raises:
        Drift: the file is another one.
    """
    if file_digest(estate_file) == digest:
        return
    what = "the estate file has changed since the plan was made"
    if not sections:
        raise Drift(what, where=str(estate_file), todo="plan again")
    try:
        now = section_digests(estate_file)
    except yaml.YAMLError:
        raise Drift(f"{what}, and is no YAML", where=str(estate_file), todo=_RESTORE) from None
    changed = sorted(name for name in {*now, *sections} if now.get(name) != sections.get(name))
    parts = f"in {', '.join(f'`{name}`' for name in changed)}" if changed else "in comments or layout only"
    todo = _SETTINGS if changed == [_CONF] else _RESTORE
    raise Drift(f"{what}: {parts}", where=str(estate_file), todo=todo)


_RESTORE = (
    "restore the estate file and run `pii-tracer resume`; or plan again: the new plan erases what this run has left"
)
_SETTINGS = (
    "restore the estate file, write the new settings into `spark-defaults.conf` in the folder that SPARK_CONF_DIR "
    "names, and run `pii-tracer resume`; or plan again"
)
