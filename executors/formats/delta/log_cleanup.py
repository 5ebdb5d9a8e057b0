"""Delta's log as files: which checkpoint is complete, what lies below it, and which data files it names.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, sections "Checkpoints" and "Data Files".
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

from executors.sweep.table_folders import files_in, named, read_all
from pii_tracer.lake.stores.s3.s3_path import AnyPlace, S3Path, opened
from pii_tracer.model.errors import RunError

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)")
_COMMIT = re.compile(r"\d{20}\.json")
_VERSIONED = re.compile(r"\.?(\d{20})\.(?:json|crc|checkpoint.*|compacted.*|\d{20}\.compacted\.json)(?:\.crc)?")


def complete_checkpoint(folder: AnyPlace) -> int | None:
    """Version of the newest checkpoint of which every part is there."""
    log = folder / "_delta_log"
    found: dict[int, list[AnyPlace]] = {}
    for path in files_in(log):
        if match := _CHECKPOINT.fullmatch(path.name):
            found.setdefault(int(match[1]), []).append(path)
    for version in sorted(found, reverse=True):
        if _is_complete(log, found[version]):
            return version
    return None


def _is_complete(log: AnyPlace, heads: list[AnyPlace]) -> bool:
    """Whether one of a version's checkpoints is whole, of those in several parts and those that name sidecars."""
    parts: dict[str, set[str]] = {}
    for path in heads:
        match = _CHECKPOINT.fullmatch(path.name)
        if match and match[2]:
            parts.setdefault(match[3], set()).add(match[2])
        else:
            needed = _sidecars_of(path)
            if not needed or needed <= {sidecar.name for sidecar in _sidecars_in(log)}:
                return True
    return any(len(there) == int(total) for total, there in parts.items())


def _sidecars_in(log: AnyPlace) -> list[AnyPlace]:
    try:
        return files_in(log / "_sidecars")
    except FileNotFoundError:
        return []


def _sidecars_of(path: AnyPlace) -> set[str]:
    """Names of the sidecar files that a v2 checkpoint names; empty for the others."""
    if path.suffix == ".json":
        return {_name(row["sidecar"]["path"]) for row in _lines(path) if "sidecar" in row}
    return {_name(cell["path"]) for cell in _cells(path, "sidecar")}


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _lines(path: AnyPlace) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _cells(path: AnyPlace, column: str) -> list[dict[str, Any]]:
    """The actions of one kind in a checkpoint's file that name a file."""
    with opened(path) as stream, pq.ParquetFile(stream) as file:
        if column not in file.schema_arrow.names:
            return []
        cells = file.read(columns=[column]).column(column).to_pylist()
    return [cell for cell in cells if cell and cell.get("path")]


def files_below_checkpoint(folder: AnyPlace, version: int) -> list[AnyPlace]:
    """Log files older than a complete checkpoint, their hidden checksums, and sidecars that it does not name."""
    log = folder / "_delta_log"
    there = files_in(log)
    matches = [(path, _VERSIONED.fullmatch(path.name)) for path in there]
    below = [path for path, match in matches if match and int(match[1]) < version]
    sidecars = _sidecars_in(log)
    if sidecars:
        kept: set[str] = set()
        for path in there:
            match = _CHECKPOINT.fullmatch(path.name)
            if match and int(match[1]) >= version and not match[2]:
                kept |= _sidecars_of(path)
        below += [p for p in sidecars if p.name.removeprefix(".").removesuffix(".crc") not in kept]
    return sorted(below, key=str)


def live_adds(folder: AnyPlace) -> tuple[dict[str, Any], ...]:
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


def live_paths(folder: AnyPlace) -> set[str]:
    """Absolute paths, or places in S3, of the data files and deletion vectors that the current version references."""
    paths = {path for add in live_adds(folder) for path in (str(add["path"]), *_vector(add))}
    return {_resolved(folder, path) for path in paths}


def is_absolute(path: str) -> bool:
    """Whether a path in the log is a URI or an absolute path, as shallow clones write them; others are relative."""
    return path.startswith("/") or ":" in path.split("/")[0]


def _resolved(folder: AnyPlace, path: str) -> str:
    """A path of the log (a URI reference, so percent-encoded) as listings of the table's place have it."""
    if not is_absolute(path):
        return str(folder / unquote(path))
    if isinstance(folder, S3Path):
        return named(folder, unquote(path))
    parsed = urlparse(path)
    return str(Path(unquote(parsed.path))) if parsed.scheme in ("", "file") else path


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


def _actions(folder: AnyPlace) -> list[dict[str, dict[str, Any]]]:
    """Add and remove actions in order: the newest complete checkpoint, then the commits after it."""
    log = folder / "_delta_log"
    start = complete_checkpoint(folder)
    actions: list[dict[str, dict[str, Any]]] = []
    for path in _heads(log, start):
        actions += [{"add": cell} for cell in _cells(path, "add")] if path.suffix == ".parquet" else _lines(path)
        for name in sorted(_sidecars_of(path)):
            actions += [{"add": cell} for cell in _cells(log / "_sidecars" / name, "add")]
    expected = 0 if start is None else start + 1
    commits = [p for p in files_in(log) if _COMMIT.fullmatch(p.name) and int(p.name[:20]) >= expected]
    for path, lines in zip(commits, read_all(_lines, commits), strict=True):
        if int(path.name[:20]) != expected:
            raise RunError(f"the log has no version {expected}", where=str(log), todo="mend the table before erasing")
        actions += lines
        expected += 1
    return actions


def _heads(log: AnyPlace, version: int | None) -> list[AnyPlace]:
    """The files of one version's checkpoints, without sidecars."""
    matches = ((path, _CHECKPOINT.fullmatch(path.name)) for path in files_in(log) if version is not None)
    return [path for path, match in matches if match and int(match[1]) == version]


def mentioned(folder: AnyPlace) -> dict[str, int]:
    """Absolute paths, or places in S3, of every file that any log entry names -> when it was removed (ms since 1970), 0
    where it was not.

    Removed files, change files and deletion vectors included, of all versions that the log still holds.
    """
    log = folder / "_delta_log"
    paths = [p for p in files_in(log) if p.suffix in (".json", ".parquet")]
    paths += [p for p in _sidecars_in(log) if p.suffix == ".parquet"]
    found: dict[str, int] = {}
    for actions in read_all(_file_actions, paths):
        for kind, action in actions:
            at = int(action.get("deletionTimestamp") or 0) if kind == "remove" else 0
            for name in (str(action["path"]), *_vector(action)):
                place = _resolved(folder, name)
                found[place] = max(found.get(place, 0), at)
    return found


_FILE_ACTIONS = ("add", "remove", "cdc")


def _file_actions(path: AnyPlace) -> list[tuple[str, dict[str, Any]]]:
    if path.suffix == ".json":
        rows = _lines(path)
        return [(k, r[k]) for r in rows for k in _FILE_ACTIONS if isinstance(r.get(k), dict) and r[k].get("path")]
    return [(kind, cell) for kind in _FILE_ACTIONS for cell in _cells(path, kind)]


def tombstones_with(folder: AnyPlace, values: Collection[str]) -> int:
    """How many removed files the newest complete checkpoint still names under one of these partition values.

    Tombstones stay in checkpoints until `delta.deletedFileRetentionDuration` is over (PROTOCOL.md, "Checkpoints"), each
    with its path and `partitionValues`.
    """
    log = folder / "_delta_log"
    heads = _heads(log, complete_checkpoint(folder))
    sidecars = [log / "_sidecars" / name for name in sorted({name for head in heads for name in _sidecars_of(head)})]
    removes = [a for p in (*heads, *sidecars) for kind, a in _file_actions(p) if kind == "remove"]
    return sum(1 for r in removes if not set(dict(r.get("partitionValues") or {}).values()).isdisjoint(values))
