"""Delta's log as files: which checkpoint is complete, what lies below it, and which data files nobody references.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, sections "Checkpoints" and "Data Files".
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from executors.local import files_below

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)")
_VERSIONED = re.compile(r"\.?(\d{20})\.(?:json|crc|checkpoint.*|compacted.*|\d{20}\.compacted\.json)(?:\.crc)?")


def complete_checkpoint(folder: Path) -> int | None:
    """Version of the newest checkpoint of which every part is there."""
    parts: dict[int, dict[int, set[int]]] = {}
    whole: set[int] = set()
    for path in (folder / "_delta_log").iterdir():
        match = _CHECKPOINT.fullmatch(path.name)
        if not match:
            continue
        version = int(match[1])
        if match[2]:
            parts.setdefault(version, {}).setdefault(int(match[3]), set()).add(int(match[2]))
        elif all((folder / "_delta_log" / "_sidecars" / s).exists() for s in _sidecars_of(path)):
            whole.add(version)
    for version, groups in parts.items():
        if any(len(found) == total for total, found in groups.items()):
            whole.add(version)
    return max(whole, default=None)


def _sidecars_of(path: Path) -> set[str]:
    """Names of the sidecar files that a v2 checkpoint names; empty for the others."""
    if path.suffix == ".json":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        return {Path(row["sidecar"]["path"]).name for row in rows if "sidecar" in row}
    if "sidecar" not in pq.read_schema(path).names:
        return set()
    cells = pq.read_table(path, columns=["sidecar"]).column("sidecar").to_pylist()
    return {Path(cell["path"]).name for cell in cells if cell and cell.get("path")}


def files_below_checkpoint(folder: Path, version: int) -> list[Path]:
    """Log files older than a complete checkpoint, their hidden checksums, and sidecars that it does not name."""
    log = folder / "_delta_log"
    below = []
    for path in log.iterdir():
        match = _VERSIONED.fullmatch(path.name)
        if path.is_file() and match and int(match[1]) < version:
            below.append(path)
    sidecars = log / "_sidecars"
    if sidecars.is_dir():
        named: set[str] = set()
        for path in log.iterdir():
            match = _CHECKPOINT.fullmatch(path.name)
            if match and int(match[1]) >= version and not match[2]:
                named |= _sidecars_of(path)
        below += [p for p in sidecars.iterdir() if p.name.removeprefix(".").removesuffix(".crc") not in named]
    return sorted(below)


def unreferenced(folder: Path) -> list[str]:
    """Files outside the log that the current version does not reference; hidden checksums of live files stay.

    The folder is listed before the log is read: a file that a writer commits in between is then referenced.
    """
    there = [p for p in files_below(folder) if "_delta_log" not in p.relative_to(folder).parts]
    live = live_paths(folder)
    keep = live | {str(Path(p).with_name(f".{Path(p).name}.crc")) for p in live}
    return [str(p) for p in there if str(p) not in keep]


def live_adds(folder: Path) -> tuple[dict[str, Any], ...]:
    """The add actions of the current version, from the newest complete checkpoint and the commits after it."""
    live: dict[str, dict[str, Any]] = {}
    for action in _actions(folder):
        add, remove = action.get("add"), action.get("remove")
        if add and add.get("path"):
            live[add["path"]] = add
        elif remove and remove.get("path"):
            live.pop(remove["path"], None)
    return tuple(live.values())


def live_paths(folder: Path) -> set[str]:
    """Absolute paths of the data files and deletion vectors that the current version references inside the folder."""
    paths = {path for add in live_adds(folder) for path in (unquote(add["path"]), *_vector(add))}
    return {str(folder / path) for path in paths if ":" not in path.split("/")[0]}


def _vector(add: dict[str, Any]) -> set[str]:
    """The file of a deletion vector stored beside the data (storage type `u`: 20 characters of base85 UUID)."""
    vector = add.get("deletionVector")
    if not isinstance(vector, dict) or vector.get("storageType") != "u":
        return set()
    encoded = str(vector["pathOrInlineDv"])
    prefix, text = encoded[:-20], encoded[-20:]
    name = f"deletion_vector_{_uuid(text)}.bin"
    return {f"{prefix}/{name}" if prefix else name}


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def _uuid(text: str) -> str:
    number = b""
    for start in range(0, 20, 5):
        value = 0
        for character in text[start : start + 5]:
            value = value * 85 + _Z85.index(character)
        number += value.to_bytes(4, "big")
    digits = number.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _actions(folder: Path) -> list[dict[str, dict[str, Any]]]:
    """Add and remove actions in order: the newest complete checkpoint, then the commits after it."""
    log = folder / "_delta_log"
    start = complete_checkpoint(folder)
    actions: list[dict[str, dict[str, Any]]] = []
    if start is not None:
        for path in sorted(log.glob(f"{start:020}.checkpoint*")):
            if _CHECKPOINT.fullmatch(path.name) and path.suffix == ".parquet":
                actions += _checkpoint_adds(path)
                actions += [a for s in sorted(_sidecars_of(path)) for a in _checkpoint_adds(log / "_sidecars" / s)]
            elif _CHECKPOINT.fullmatch(path.name):
                actions += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
                actions += [a for s in sorted(_sidecars_of(path)) for a in _checkpoint_adds(log / "_sidecars" / s)]
    for path in sorted(log.glob("*.json")):
        if re.fullmatch(r"\d{20}\.json", path.name) and (start is None or int(path.name[:20]) > start):
            actions += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return actions


def _checkpoint_adds(path: Path) -> list[dict[str, dict[str, Any]]]:
    if "add" not in pq.read_schema(path).names:
        return []
    cells = pq.read_table(path, columns=["add"]).column("add").to_pylist()
    return [{"add": cell} for cell in cells if cell and cell.get("path")]
