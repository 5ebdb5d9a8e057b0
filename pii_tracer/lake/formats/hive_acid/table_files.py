"""The files of a transactional table of Hive's, as they lie in its folder, and what stands against reading them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.hive_acid.folders import (
    BESIDE_ROWS,
    BUCKET,
    OF_COMPACTION,
    AcidFolder,
    Partition,
    acid_folder,
    by_partition,
)
from pii_tracer.lake.formats.hive_acid.metastore_notes import AcidNotes, Settled
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath


@dataclass(frozen=True)
class AcidFile:
    """A file of rows, or of numbers of deleted rows. partition: the folder of its partition, empty of a table without
    any."""

    place: HdfsPath
    partition: str
    folder: AcidFolder


@dataclass(frozen=True)
class TableFiles:
    """root: the table's folder. listed: every file by its path below that, with its size and when it was written."""

    root: HdfsPath
    listed: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, root: HdfsPath) -> TableFiles:
        """As they are now. Raises `OSError`: HDFS refuses."""
        front = f"{str(root).rstrip('/')}/"
        return cls(root, {path.removeprefix(front): (size, at) for path, size, at in root.walk()})

    @cached_property
    def partitions(self) -> Mapping[str, Partition]:
        """By the folder of each, empty of a table without any."""
        return by_partition({path.rpartition("/")[0] for path in self.listed})

    @property
    def snapshot(self) -> str:
        """Changes with every file that comes, goes or is written."""
        lines = (f"{path}\0{size}\0{at}\n" for path, (size, at) in sorted(self.listed.items()))
        return "sha256:" + hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()

    def live(self) -> Iterator[AcidFile]:
        """Files that readers of now read, sorted by their folders; empty ones have nothing."""
        lying: dict[str, list[str]] = {}
        for path, (size, _) in sorted(self.listed.items()):
            above, _, name = path.rpartition("/")
            if size and BUCKET.fullmatch(name):
                lying.setdefault(above, []).append(path)
        for partition, folders in self.partitions.items():
            for folder in folders.live:
                for path in lying.get("/".join(filter(None, (partition, folder.name))), ()):
                    yield AcidFile(self.root / path, partition, folder)

    def obstacle(self, notes: AcidNotes) -> str | None:
        """Why nobody knows which rows the table has, or where they go; None where that is clear."""
        if notes.recycles:
            return (
                "its metastore retains files that Hive's cleaner removes, for a replication (hive.repl.cm.enabled). "
                "No step removes these files. Ask the administrator to switch this setting off, then plan again"
            )
        strange = sum(not _is_known(path) for path in self.listed)
        if strange:
            return (
                f"it contains {counted(strange, 'file')} outside of Hive's bases and deltas, such as rows from before"
                " it was transactional. Ask its owner to run ALTER TABLE … COMPACT 'major', then plan again"
            )
        named = set(notes.partitions) if notes.partition_columns else {""}
        if not named.issuperset(self.partitions):
            return (
                "a folder in the table belongs to no partition of the metastore, so Hive neither reads nor compacts "
                "it. Ask the owner to remove the folder, or to add the partition (MSCK REPAIR TABLE), then plan again"
            )
        if any(one.twice for one in self.partitions.values()):
            return "a compaction is running or was interrupted: plan again when it is complete"
        if any(
            not self._counts(above, folder, notes.settled)
            for above, one in self.partitions.items()
            for folder in one.live
        ):
            return (
                "a transaction on the table is open, or was aborted. Wait until an open transaction ends. After an "
                "abort, run ALTER TABLE … COMPACT 'major'. Then plan again"
            )
        return None

    def _counts(self, partition: str, folder: AcidFolder, settled: Settled) -> bool:
        """Whether Hive's readers read a folder. What a compaction wrote has write ids that count, up to its last."""
        path = "/".join(filter(None, (partition, folder.name)))
        if folder.by is not None and not settled.is_over(folder.by):
            return False
        if folder.kind != "base":
            return settled.counts(folder.first, folder.last)
        compacted = folder.by is not None or f"{path}/{OF_COMPACTION}" in self.listed
        return folder.last <= settled.write_ids_upto if compacted else settled.counts(folder.last, folder.last)


def _is_known(path: str) -> bool:
    """Whether a file lies in a base or delta folder under a name of Hive's."""
    *_, above, name = ("", *path.split("/"))
    return acid_folder(above) is not None and (bool(BUCKET.fullmatch(name)) or name in BESIDE_ROWS)
