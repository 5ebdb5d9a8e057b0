"""Delta's log as files: which checkpoint is complete, what lies below it, and which data files it names.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, sections "Checkpoints" and "Data Files".
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

from pii_tracer.errors import RunError

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


def live_adds(folder: Path) -> tuple[dict[str, Any], ...]:
    """The add actions of the current version, from the newest complete checkpoint and the commits after it.

    A logical file is its path and its deletion vector: a commit that marks rows removes (path, old vector) and adds
    (path, new vector), in any order (PROTOCOL.md, "Add File and Remove File").
    """
    live: dict[tuple[str, str], dict[str, Any]] = {}
    for action in _actions(folder):
        add, remove = action.get("add"), action.get("remove")
        if add and add.get("path"):
            live[_identity(add)] = add
        elif remove and remove.get("path"):
            live.pop(_identity(remove), None)
    return tuple(live.values())


def _identity(action: dict[str, Any]) -> tuple[str, str]:
    vector = action.get("deletionVector")
    if not isinstance(vector, dict) or not vector.get("storageType"):
        return str(action["path"]), ""
    return str(action["path"]), f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset') or 0}"


def live_paths(folder: Path) -> set[str]:
    """Absolute paths of the data files and deletion vectors that the current version references."""
    paths = {path for add in live_adds(folder) for path in (str(add["path"]), *_vector(add))}
    return {str(_resolved(folder, path)) for path in paths}


def is_absolute(path: str) -> bool:
    """Whether a path in the log is a URI or an absolute path, as shallow clones write them; others are relative."""
    return path.startswith("/") or ":" in path.split("/")[0]


def _resolved(folder: Path, path: str) -> Path | str:
    """A path of the log (a URI reference, so percent-encoded) as this machine names it."""
    if not is_absolute(path):
        return folder / unquote(path)
    parsed = urlparse(path)
    return Path(unquote(parsed.path)) if parsed.scheme in ("", "file") else path


def _vector(add: dict[str, Any]) -> set[str]:
    """The file of a deletion vector: `p` names it, `u` has 20 characters of base85 UUID; inline ones have none."""
    vector = add.get("deletionVector")
    if not isinstance(vector, dict):
        return set()
    encoded = str(vector.get("pathOrInlineDv"))
    if vector.get("storageType") == "p":
        return {encoded}
    if vector.get("storageType") != "u":
        return set()
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
    expected = 0 if start is None else start + 1
    for path in sorted(log.glob("*.json")):
        if not re.fullmatch(r"\d{20}\.json", path.name) or int(path.name[:20]) < expected:
            continue
        if int(path.name[:20]) != expected:
            raise RunError(f"the log has no version {expected}", where=str(log), todo="mend the table before erasing")
        actions += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        expected += 1
    return actions


def mentioned(folder: Path) -> dict[str, int]:
    """Absolute paths of every file that any log entry names -> when it was removed (ms since 1970), 0 where it was not.

    Removed files, change files and deletion vectors included, of all versions that the log still holds.
    """
    log = folder / "_delta_log"
    found: dict[str, int] = {}
    for path in (*log.glob("*.json"), *log.glob("*.parquet"), *(log / "_sidecars").glob("*.parquet")):
        for kind, action in _file_actions(path):
            at = int(action.get("deletionTimestamp") or 0) if kind == "remove" else 0
            for name in (str(action["path"]), *_vector(action)):
                place = str(_resolved(folder, name))
                found[place] = max(found.get(place, 0), at)
    return found


_FILE_ACTIONS = ("add", "remove", "cdc")


def _file_actions(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if path.suffix == ".json":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    else:
        columns = [name for name in _FILE_ACTIONS if name in pq.read_schema(path).names]
        rows = pq.read_table(path, columns=columns).to_pylist()
    for row in rows:
        for kind in _FILE_ACTIONS:
            if isinstance(row.get(kind), dict) and row[kind].get("path"):
                yield kind, row[kind]


def tombstones_with(folder: Path, values: Collection[str]) -> int:
    """How many removed files the newest complete checkpoint still names under one of these partition values.

    Tombstones stay in checkpoints until `delta.deletedFileRetentionDuration` is over (PROTOCOL.md, "Checkpoints"), each
    with its path and `partitionValues`.
    """
    log, version = folder / "_delta_log", complete_checkpoint(folder)
    heads = (
        [p for p in log.glob(f"{version:020}.checkpoint*") if _CHECKPOINT.fullmatch(p.name)]
        if version is not None
        else []
    )
    sidecars = {log / "_sidecars" / name for head in heads for name in _sidecars_of(head)}
    removes = [a for p in (*heads, *sidecars) for kind, a in _file_actions(p) if kind == "remove"]
    return sum(1 for r in removes if not set(dict(r.get("partitionValues") or {}).values()).isdisjoint(values))


def _checkpoint_adds(path: Path) -> list[dict[str, dict[str, Any]]]:
    if "add" not in pq.read_schema(path).names:
        return []
    cells = pq.read_table(path, columns=["add"]).column("add").to_pylist()
    return [{"add": cell} for cell in cells if cell and cell.get("path")]
