"""A small reader of Delta's transaction log: JSON commits and checkpoints (classic, multi-part, v2 with sidecars).

It reads what discovery needs of any table, also of those whose reader features an engine's library refuses. Rules:
Delta transaction log protocol, https://github.com/delta-io/delta/blob/master/PROTOCOL.md
("Action Reconciliation", "Checkpoints", "Deletion Vectors").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic
from urllib.parse import unquote

from pii_tracer.lake.stores.s3.s3_path import Place, S3Path, file_of
from pii_tracer.model.errors import EstateError

LOG = "_delta_log"
_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[0-9a-f-]{36}))?"
                         r"\.(?P<form>parquet|json)$")  # fmt: skip
_ACTIONS = ("add", "remove", "metaData", "protocol", "sidecar")


@dataclass(frozen=True)
class LiveFile(Generic[Place]):
    """One data file of the current version. `rows` are those it holds physically, None without statistics."""

    path: Place
    external: bool
    size: int
    rows: int | None
    deleted_rows: int
    deletion_vector: bool
    partition: dict[str, str | None]


@dataclass(frozen=True)
class DeltaSnapshot(Generic[Place]):
    """The newest version of a table. `earliest` is the oldest version that can still be rebuilt from the log.

    name, comment: what the table is called in its log, and said to be. named: every data file that an action of the
    retained log adds or removes.
    """

    version: int
    earliest: int
    schema: dict[str, Any]
    partition_columns: tuple[str, ...]
    configuration: dict[str, str]
    reader_version: int
    features: frozenset[str]
    files: tuple[LiveFile[Place], ...]
    cloned_from: str | None
    name: str | None
    comment: str | None
    named: frozenset[Place]


@dataclass
class _State:
    adds: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    metadata: dict[str, Any] | None = None
    protocol: dict[str, Any] | None = None
    cloned_from: str | None = None
    named: set[str] = field(default_factory=set)

    def apply(self, actions: list[dict[str, Any]]) -> None:
        """One commit: a file is known by path and deletion vector, so removals may stand after additions."""
        for action in actions:
            if remove := action.get("remove"):
                self.adds.pop(_key(remove), None)
                self.named.add(remove["path"])
        for action in actions:
            if add := action.get("add"):
                self.adds[_key(add)] = add
                self.named.add(add["path"])
            self.metadata = action.get("metaData") or self.metadata
            self.protocol = action.get("protocol") or self.protocol
            info = action.get("commitInfo") or {}
            if info.get("operation") == "CLONE":
                self.cloned_from = str((info.get("operationParameters") or {}).get("source", "")) or None

    def described(self) -> dict[str, Any]:
        """The table's metadata. Raises ValueError where the log names none, or no protocol."""
        if self.metadata is None or self.protocol is None:
            raise ValueError("no metadata or protocol action")
        return self.metadata

    @property
    def reader_version(self) -> int:
        return int((self.protocol or {})["minReaderVersion"])

    @property
    def features(self) -> frozenset[str]:
        told = self.protocol or {}
        return frozenset([*(told.get("readerFeatures") or ()), *(told.get("writerFeatures") or ())])


def _key(action: dict[str, Any]) -> tuple[str, str]:
    vector = action.get("deletionVector")
    if not vector:
        return action["path"], ""
    return action["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def read_log(location: Place, *, history: bool = True) -> DeltaSnapshot[Place]:
    """The current version of the Delta table in a folder.

    history: commits below the checkpoint are read, too; else `cloned_from` and `named` are as the checkpoint has them,
    and a log of many commits costs no more than a short one.

    Raises:
        EstateError: no log, a hole between checkpoint and newest commit, damaged files.
    """
    try:
        return _read(location, history)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EstateError(
            f"the Delta log cannot be read: {type(error).__name__}",
            where=str(location / LOG),
            todo="repair or restore the table's log; nothing is known of the table until then",
        ) from None


def log_of(location: Path | S3Path) -> DeltaSnapshot[Any]:
    """As `read_log`, of a place whose kind is not known to the type checker."""
    if isinstance(location, S3Path):
        return read_log(location)
    return read_log(location)


def _read(location: Place, history: bool) -> DeltaSnapshot[Place]:
    log = location / LOG
    commits: dict[int, Place] = {}
    for path in log.iterdir():
        if _COMMIT.match(path.name):
            commits[int(path.name[:20])] = path
    checkpoints: dict[int, list[Place]] = _complete_checkpoints(log)
    version = max([*commits, *checkpoints])
    start = max(checkpoints, default=-1)
    state = _State()
    if start >= 0:
        state.apply(list(_checkpoint_actions(log, checkpoints[start])))
    for number in sorted(commits) if history else ():
        if number <= start:
            # older commits only tell where the table was cloned from and what it held; the checkpoint holds the rest
            old = _State()
            old.apply(list(_lines(commits[number])))
            state.cloned_from = state.cloned_from or old.cloned_from
            state.named |= old.named
    for number in range(start + 1, version + 1):
        state.apply(list(_lines(commits[number])))
    metadata = state.described()
    return DeltaSnapshot(
        version=version,
        earliest=_earliest(set(commits), set(checkpoints), version),
        schema=json.loads(metadata["schemaString"]),
        partition_columns=tuple(metadata.get("partitionColumns") or ()),
        configuration=_mapping(metadata.get("configuration")),
        reader_version=state.reader_version,
        features=state.features,
        files=tuple(sorted((_live(location, add) for add in state.adds.values()), key=lambda f: str(f.path))),
        cloned_from=state.cloned_from,
        name=metadata.get("name"),
        comment=metadata.get("description"),
        named=frozenset(_path_of(location, path) for path in state.named),
    )


def _earliest(commits: set[int], checkpoints: set[int], version: int) -> int:
    first = version
    while first in commits and first > 0:
        first -= 1
    bases = [c for c in checkpoints if c >= first]
    if first == 0 and 0 in commits:
        bases.append(0)
    return min(bases, default=version)


def _lines(path: Path | S3Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as stream:
        for line in stream:
            if line.strip():
                yield json.loads(line)


def _complete_checkpoints(log: Place) -> dict[int, list[Place]]:
    """Files of one complete checkpoint per version; incomplete multi-part ones do not count."""
    found: dict[int, list[Place]] = {}
    parts: dict[tuple[int, int], list[Place]] = {}
    for path in sorted(log.iterdir()):
        match = _CHECKPOINT.match(path.name)
        if not match:
            continue
        number = int(match[1])
        if match["parts"]:
            parts.setdefault((number, int(match["parts"])), []).append(path)
        else:
            found[number] = [path]
    for (number, wanted), paths in parts.items():
        if len(paths) == wanted:
            found.setdefault(number, paths)
    return found


def _checkpoint_actions(log: Place, files: list[Place]) -> Iterator[dict[str, Any]]:
    for path in files:
        actions = _lines(path) if path.suffix == ".json" else _rows(path)
        for action in actions:
            sidecar = action.get("sidecar")
            if sidecar:
                yield from _rows(_sidecar(log, sidecar["path"]))
            else:
                yield action


def _sidecar(log: Place, name: str) -> Place:
    if "/" not in name:
        return log / "_sidecars" / unquote(name)
    return file_of(log, name)


def _rows(path: Path | S3Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    with path.open("rb") as stream, pq.ParquetFile(stream) as file:
        wanted = [name for name in _ACTIONS if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=wanted, batch_size=10_000):
            yield from batch.to_pylist()


def _mapping(value: Any) -> dict[str, Any]:
    """A map of the log: an object in JSON, a list of pairs from Parquet."""
    return dict(value or {})


def _path_of(location: Place, written: str) -> Place:
    text = unquote(written)  # paths in the log are percent-encoded URIs
    absolute = text.startswith("/") or re.match(r"^[a-z][a-z0-9+.-]*:", text) is not None
    return file_of(location, written if written.startswith("file:") else text) if absolute else location / text


def _live(location: Place, add: dict[str, Any]) -> LiveFile[Place]:
    path = _path_of(location, add["path"])
    vector = add.get("deletionVector")
    stats = json.loads(add["stats"]) if add.get("stats") else {}
    return LiveFile(
        path=path,
        external=not path.resolve().is_relative_to(location.resolve()),
        size=int(add["size"]),
        rows=stats.get("numRecords"),
        deleted_rows=int(vector["cardinality"]) if vector else 0,
        deletion_vector=bool(vector),
        partition=_mapping(add.get("partitionValues")),
    )


def live_files(location: Place) -> tuple[LiveFile[Place], ...]:
    """Data files of the current version of a Delta table, sorted by path. Raises EstateError as `read_log`."""
    return read_log(location).files
