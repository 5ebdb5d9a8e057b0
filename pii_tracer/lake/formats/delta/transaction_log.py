"""The state of a Delta table as its log tells it: JSON commits and checkpoints (classic, multi-part, v2 with sidecars).

The one reader for discovery, sweeps and executors, also of tables whose reader features an engine's library refuses.
Rules: Delta transaction log protocol, https://github.com/delta-io/delta/blob/master/PROTOCOL.md
("Action Reconciliation", "Checkpoints", "Deletion Vectors").
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from pii_tracer.lake.formats.delta.log_files import (
    LogFiles,
    Row,
    files_of,
    lines,
    placed,
    read_all,
    readable,
    rows,
    unreadable,
)
from pii_tracer.lake.formats.delta.log_paths import (
    FILE_ACTIONS,
    logical_file,
    vector_of,
    vector_path,
    written_by,
)
from pii_tracer.lake.stores.any_place import AnyPlace, Place
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.object_places.object_path import ObjectPath

PHYSICAL = "delta.columnMapping.physicalName"
_NAMED = frozenset({"name", "description", "schemaString", "partitionColumns", "configuration"})
_ACTIONS = ("add", "remove", "metaData", "protocol", "txn", "domainMetadata")


@dataclass(frozen=True)
class LiveFile(Generic[Place]):
    """One data file of the current version. `rows` are those it holds physically, None without statistics.

    vector: the file that its deletion vector lies in; None where it has none, or the log itself holds it.
    """

    path: Place
    vector: Place | None
    external: bool
    size: int
    rows: int | None
    deleted_rows: int
    deletion_vector: bool
    partition: dict[str, str | None]
    tags: dict[str, Any]


@dataclass(frozen=True)
class DeltaSnapshot(Generic[Place]):
    """The newest version of a table. `earliest` is the oldest version that can still be rebuilt from the log.

    name, comment: what the table is called in its log, and said to be. named: every file of data, changes and deletion
    vectors that an action of the retained log adds or removes. transactions: by a writer's id, when it last wrote (ms
    since 1970; None where the log does not say). domains: by name, what the table keeps for a feature or a tool.
    rest: of the `metaData` action, what is none of the above.
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
    transactions: dict[str, int | None]
    domains: dict[str, Any]
    rest: dict[str, Any]

    @property
    def needed(self) -> frozenset[str]:
        """Absolute paths, or places in S3, of the data files and deletion vectors of the current version."""
        return frozenset(str(path) for file in self.files for path in (file.path, file.vector) if path is not None)


@dataclass
class _State:
    adds: dict[tuple[str, str], Row] = field(default_factory=dict)
    metadata: Row | None = None
    protocol: Row | None = None
    cloned_from: str | None = None
    named: set[str] = field(default_factory=set)
    transactions: dict[str, int | None] = field(default_factory=dict)
    domains: dict[str, Any] = field(default_factory=dict)

    def apply(self, actions: list[Row]) -> None:
        """One commit: a file is known by path and deletion vector, so removals may stand after additions."""
        for action in actions:
            if remove := action.get("remove"):
                self.adds.pop(logical_file(remove), None)
        for action in actions:
            if add := action.get("add"):
                self.adds[logical_file(add)] = add
            for told in filter(None, map(action.get, FILE_ACTIONS)):
                self.named.update(written_by(told))
            self.metadata = action.get("metaData") or self.metadata
            self.protocol = action.get("protocol") or self.protocol
            if txn := action.get("txn"):
                self.transactions[txn["appId"]] = txn.get("lastUpdated")
            if domain := action.get("domainMetadata"):
                self.domains.pop(domain["domain"], None)
                if not domain.get("removed"):
                    self.domains[domain["domain"]] = domain.get("configuration")
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


def read_log(location: Place, *, history: bool = True) -> DeltaSnapshot[Place]:
    """The current version of the Delta table in a folder.

    history: commits below the checkpoint are read, too; else `cloned_from` and `named` are as the checkpoint has them,
    and a log of many commits costs no more than a short one.

    Raises:
        EstateError: no log, a hole between checkpoint and newest commit, damaged files.
    """
    try:
        with readable(location):
            return _read(location, history)
    except OSError as error:
        raise unreadable(location, error) from None


def log_of(location: AnyPlace, *, history: bool = True) -> DeltaSnapshot[Any]:
    """As `read_log`, of a place whose kind is not known to the type checker."""
    if isinstance(location, Path):
        return read_log(location, history=history)
    if isinstance(location, HdfsPath):
        return read_log(location, history=history)
    if isinstance(location, ObjectPath):
        return read_log(location, history=history)
    return read_log(location, history=history)


def live_adds(location: AnyPlace) -> tuple[list[Row], frozenset[str]]:
    """The `add` actions of the current version, as the log has them, and its names of the columns that they are
    partitioned by. Raises as `read_log`.
    """
    try:
        with readable(location):
            state, _ = _reconciled(files_of(location), history=False)
            told = state.described()
            mapped = {
                f["name"]: (f.get("metadata") or {}).get(PHYSICAL) for f in json.loads(told["schemaString"])["fields"]
            }
            names = tuple(told.get("partitionColumns") or ())
            return list(state.adds.values()), frozenset(mapped.get(name) or name for name in names)
    except OSError as error:
        raise unreadable(location, error) from None


def _reconciled(files: LogFiles[Place], *, history: bool) -> tuple[_State, int]:
    """What all actions come to, and the version that they make."""
    start: int
    checkpoint: list[Place]
    start, checkpoint = files.newest()
    # a checkpoint that is not whole tells that there was such a version
    version: int = max([*files.commits, *files.checkpoints])
    state = _State()
    state.apply([row for path in checkpoint for row in rows(path, _ACTIONS)])
    numbers = [*sorted(n for n in files.commits if history and n <= start), *range(start + 1, version + 1)]
    for number, actions in zip(numbers, read_all(lines, [files.commits[n] for n in numbers]), strict=True):
        if number > start:
            state.apply(actions)
            continue
        # older commits only tell where the table was cloned from and what it held; the checkpoint holds the rest
        old = _State()
        old.apply(actions)
        state.cloned_from = state.cloned_from or old.cloned_from
        state.named |= old.named
    return state, version


def _read(location: Place, history: bool) -> DeltaSnapshot[Place]:
    files: LogFiles[Place] = LogFiles(location)
    state, version = _reconciled(files, history=history)
    metadata = state.described()
    return DeltaSnapshot(
        version=version,
        earliest=_earliest(set(files.commits), {v for v, heads in files.checkpoints.items() if heads.whole}, version),
        schema=json.loads(metadata["schemaString"]),
        partition_columns=tuple(metadata.get("partitionColumns") or ()),
        configuration=_mapping(metadata.get("configuration")),
        reader_version=state.reader_version,
        features=state.features,
        files=_live_files(location, state),
        cloned_from=state.cloned_from,
        name=metadata.get("name"),
        comment=metadata.get("description"),
        named=frozenset(placed(location, path) for path in state.named),
        transactions=state.transactions,
        domains=state.domains,
        rest={name: value for name, value in metadata.items() if name not in _NAMED},
    )


def _earliest(commits: set[int], checkpoints: set[int], version: int) -> int:
    first = version
    while first in commits and first > 0:
        first -= 1
    bases = [c for c in checkpoints if c >= first]
    if first == 0 and 0 in commits:
        bases.append(0)
    return min(bases, default=version)


def _mapping(value: Any) -> dict[str, Any]:
    """A map of the log: an object in JSON, a list of pairs from Parquet."""
    return dict(value or {})


def _live_files(location: Place, state: _State) -> tuple[LiveFile[Place], ...]:
    real = location.resolve()
    files = (_live(location, real, add) for add in state.adds.values())
    return tuple(sorted(files, key=lambda file: str(file.path)))


def _live(location: Place, real: Place, add: Row) -> LiveFile[Place]:
    path, beside = placed(location, add["path"]), vector_path(add)
    vector = vector_of(add)
    stats = json.loads(add["stats"]) if add.get("stats") else {}
    return LiveFile(
        path=path,
        vector=placed(location, beside) if beside else None,
        external=not path.resolve().is_relative_to(real),
        size=int(add["size"]),
        rows=stats.get("numRecords"),
        deleted_rows=int(vector["cardinality"]) if vector else 0,
        deletion_vector=vector is not None,
        partition=_mapping(add.get("partitionValues")),
        tags=_mapping(add.get("tags")),
    )


def live_files(location: Place) -> tuple[LiveFile[Place], ...]:
    """Data files of the current version of a Delta table, sorted by path. Raises EstateError as `read_log`."""
    return read_log(location).files
