"""The catalogue of places where an erased person's bytes survive, as data. Plans name these ids.

basis: `tested` has a test in this repository that shows the survival and the remedy; `tried` was run by hand on the
versions in docs/stack.md; `documented` is read in the system's own documentation or source.
"""

from __future__ import annotations

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.identities import Frozen


class Engine(StrEnum):
    """The system a hazard belongs to."""

    DELTA = "delta"
    ICEBERG = "iceberg"
    HUDI = "hudi"
    FILES = "files"
    S3 = "s3"
    KAFKA = "kafka"
    KEYS = "keys"
    BACKUPS = "backups"
    SPARK = "spark"
    CATALOG = "catalog"
    LAKEFS = "lakefs"


class Basis(StrEnum):
    """How we know."""

    TESTED = "tested"
    TRIED = "tried"
    DOCUMENTED = "documented"


class Hazard(Frozen):
    """One place of survival and what removes the bytes from there."""

    id: str
    engine: Engine
    survives_in: str
    remedy: str
    basis: Basis


def _h(hazard_id: str, engine: Engine, survives_in: str, remedy: str, basis: Basis) -> Hazard:
    return Hazard(id=hazard_id, engine=engine, survives_in=survives_in, remedy=remedy, basis=basis)


_D, _I, _H, _F, _S = Engine.DELTA, Engine.ICEBERG, Engine.HUDI, Engine.FILES, Engine.S3
_TESTED, _TRIED, _DOC = Basis.TESTED, Basis.TRIED, Basis.DOCUMENTED

CATALOGUE: tuple[Hazard, ...] = (
    _h("D1", _D, "data files that older versions reference", "delete, then VACUUM after the retention window", _TESTED),
    _h("D2", _D, "the Parquet file under a deletion vector", "REORG … APPLY (PURGE), then VACUUM", _TESTED),
    _h(
        "D3",
        _D,
        "files kept by a VACUUM whose RETAIN was ignored",
        "VACUUM exactly what has waited long enough by the log (USING INVENTORY, RETAIN 0); look at the files",
        _TESTED,
    ),
    _h(
        "D4",
        _D,
        "min/max statistics in _delta_log JSON and .crc",
        "remove log entries below a complete checkpoint",
        _TESTED,
    ),
    _h(
        "D5",
        _D,
        "the literal of a DELETE in commitInfo",
        "delete by semi-join against a key view, never a literal",
        _TESTED,
    ),
    _h("D6", _D, "wide bounds of a live file under a deletion vector", "PURGE writes fresh statistics", _TESTED),
    _h("D7", _D, "_change_data of the change data feed", "VACUUM enters that folder", _TESTED),
    _h(
        "D8",
        _D,
        "shallow clones: the source's files and their statistics",
        "erase the clone first, then the source",
        _TESTED,
    ),
    _h("D10", _D, "hidden files that VACUUM skips", "sweep them separately", _TESTED),
    _h(
        "D11",
        _D,
        "catalog-managed tables and UniForm: another master's commits or metadata",
        "blocked in the plan, with what the owner can do",
        _DOC,
    ),
    _h(
        "D12",
        _D,
        "a version restored in the middle of a run",
        "the verification finds it; resume repeats the steps; afterwards there is no version to restore",
        _TESTED,
    ),
    _h(
        "D13",
        _D,
        "dropped columns: the cells stay in the files of everybody's rows",
        "REORG … APPLY (PURGE) writes those files again",
        _TESTED,
    ),
    _h(
        "D14",
        _D,
        "symlink manifests: other engines go on reading files that VACUUM removes",
        "generate them again before the VACUUM",
        _TESTED,
    ),
    _h(
        "D15",
        _D,
        "files that a running writer has written and not yet committed: VACUUM RETAIN 0 removes them",
        "while a writer is not stopped, files that no commit names stay for 24 hours",
        _TESTED,
    ),
    _h(
        "D16",
        _D,
        "tombstones of removed files in every checkpoint: their partition values, until their retention is over",
        "a checkpoint while the table keeps no tombstones; its own setting is put back, and one more checkpoint",
        _TESTED,
    ),
    _h(
        "D17",
        _D,
        "liquid clustering: REORG … APPLY (PURGE) and OPTIMIZE … FULL pass over whole cubes and their deletion vectors",
        "REORG while the table has no clustering columns; they are put back",
        _TESTED,
    ),
    _h("I1", _I, "older snapshots", "expire_snapshots", _TESTED),
    _h(
        "I2",
        _I,
        "merge-on-read: the data file under a delete file",
        "rewrite_data_files with delete-file-threshold 1",
        _TESTED,
    ),
    _h("I3", _I, "a branch or tag that pins a snapshot", "rewrite or re-point the reference, then expire", _TESTED),
    _h("I4", _I, "bounds in manifests, cut to 16 characters", "expire the old manifests", _TESTED),
    _h(
        "I4b",
        _I,
        "DELETED entries of live manifests, with bounds",
        "rewrite_manifests and an empty commit, then expire",
        _TESTED,
    ),
    _h("I5", _I, "equality-delete files hold the key", "rewrite, drop the delete files, expire", _TESTED),
    _h("I6", _I, "old metadata.json, orphan files", "trim the metadata log, remove orphan files", _TESTED),
    _h("I7", _I, "tables that share files", "forget snapshots, sweep when no sharer reads them", _TESTED),
    _h(
        "I8",
        _I,
        "a compaction that ignores delete files or raced them: the rows are back",
        "the verification finds them; resume repeats the steps",
        _TESTED,
    ),
    _h("I9", _I, "format version 3: a deletion vector in a Puffin file only marks the row", "as I2", _TESTED),
    _h("H1", _H, "older file slices", "clean down to the newest version", _TESTED),
    _h("H2", _H, "merge-on-read log blocks", "compact, then clean", _TESTED),
    _h("H3", _H, "savepoints block the cleaner", "delete the savepoint, then clean", _TESTED),
    _h("H4", _H, "the metadata table: record index, column statistics", "drop and rebuild it after the clean", _TESTED),
    _h(
        "H6",
        _H,
        "rows of a duplicate record key: one DELETE takes one of them, whoever's it is",
        "repeat the DELETE until none is left; refused where another's row has the key",
        _TESTED,
    ),
    _h("H5", _H, "the archived timeline", "it holds no keys; verified, as no official purge exists", _TESTED),
    _h(
        "H7",
        _H,
        "a savepoint that is restored in the middle of a run",
        "savepoints go first; the verification finds the rows; resume repeats the steps",
        _TESTED,
    ),
    _h(
        "H8",
        _H,
        "file groups that clustering or INSERT OVERWRITE replaced",
        "clean down to the newest version",
        _TESTED,
    ),
    _h(
        "H9",
        _H,
        "the timeline names the partitions that were written: their values, where a key is one",
        "blocked in the plan, with what the owner can do",
        _TESTED,
    ),
    _h("F1", _F, "files without a table format: there is no delete", "rewrite the files that hold the person", _TESTED),
    _h(
        "F2",
        _F,
        "identifiers in partition paths and object names",
        "a gap at planning; their owner renames, for no step does; what stays is residue",
        _TESTED,
    ),
    _h("F2b", _F, "the hidden .crc sibling of a rewritten file", "remove it with the old file", _TESTED),
    _h(
        "F3",
        _F,
        "footers: statistics, dictionaries, key-value metadata",
        "a rewrite makes bounds and dictionaries anew; where metadata holds a value, a gap; decode to verify",
        _TESTED,
    ),
    _h(
        "F3b",
        _F,
        "Parquet dictionary entries that no row uses: kept by writers of filtered, encoded columns",
        "write the file again with dictionaries of its rows; the scan reads dictionaries apart from rows",
        _TESTED,
    ),
    _h("F4", _F, "compressed pages that a raw search misses", "decode by format, then search", _TESTED),
    _h(
        "F5",
        Engine.SPARK,
        "the state of a streaming query: keys and aggregates of rows, in its checkpoint",
        "its owner lets the watermark drop it or begins a new checkpoint; a gap until no state holds the person",
        _TESTED,
    ),
    _h(
        "F6",
        _F,
        "the log of a streaming file sink: a file of another size than it names is lost to Spark's readers",
        "write the log's sizes again with the files",
        _TESTED,
    ),
    _h(
        "F7",
        _F,
        "the summary of a Parquet folder (_metadata): footers of all files, with their smallest and largest values",
        "remove it before the first file is written again; readers fall back to the files' footers",
        _TESTED,
    ),
    _h("S1", _S, "noncurrent versions behind a delete marker", "delete by version id", _TESTED),
    _h("S2", _S, "replicas: deletes of a version never replicate", "delete the versions in every destination", _TESTED),
    _h(
        "S3",
        _S,
        "Object Lock and legal holds",
        "a delete step of its own, not before the date; a legal hold is a gap",
        _TESTED,
    ),
    _h("S4", _S, "Batch Operations has no delete", "DeleteObjects in batches of 1,000", _DOC),
    _h(
        "S5",
        _S,
        "archive classes: no rewrite in place",
        "restore, rewrite, archive again, delete old versions",
        _TESTED,
    ),
    _h(
        "S6",
        _S,
        "Glacier vaults: archives have only ids, and a fetched one can be read on for a day after its deletion",
        "fetch, rewrite, delete by the inventory's ids; done when a later inventory does not list them",
        _TESTED,
    ),
    _h("S7", _S, "unfinished multipart uploads", "list and abort", _TESTED),
    _h("S8", _S, "inventories and access logs that name the objects", "the inventory says where they are", _DOC),
    _h(
        "K1",
        Engine.KAFKA,
        "the active segment of a compacted topic, and the key in a lingering tombstone",
        "tombstone, roll the segment by an aborted transaction, wait for the cleaner, read the log back",
        _TESTED,
    ),
    _h(
        "K2",
        Engine.KAFKA,
        "a topic that is not compacted: no record can be deleted by itself",
        "wait for retention where it ends in time; otherwise rewrite the topic without the person, or delete a prefix",
        _TESTED,
    ),
    _h(
        "K3",
        Engine.KAFKA,
        "a consumer that never saw the tombstone keeps the person in its own state",
        "tombstones leave only after every consumer group has read past them",
        _TESTED,
    ),
    _h(
        "K4",
        Engine.KAFKA,
        "follower replicas, which no client reads",
        "cleaned by the same settings, a minute longer; a gap to waive by name, since no run can see it",
        _TESTED,
    ),
    _h(
        "K5",
        Engine.KAFKA,
        "records before a partition's first offset, where DeleteRecords cut within a segment: it stays as a whole",
        "roll the segment, delete up to where it ended, wait until the broker has removed it",
        _TESTED,
    ),
    _h(
        "B1",
        Engine.BACKUPS,
        "backups that only their owner reaches, and what is restored from them later",
        "the owner acts, confirms it and names the evidence; look again after every restore",
        _DOC,
    ),
    _h(
        "X1",
        Engine.KEYS,
        "readers that opened a person's data key before it was destroyed",
        "not complete before the longest cache lifetime is over; then reading is tried",
        _TESTED,
    ),
    _h(
        "X2",
        Engine.KEYS,
        "a KMS key that is pending deletion, with its replicas and grants",
        "pending until KMS does not know it any more; a cancelled deletion fails the step",
        _TESTED,
    ),
    _h(
        "C1",
        Engine.LAKEFS,
        "commits of every branch, and of branches that are gone, for the longest retention of any that names an object",
        "rewrite every head, lower the rules as far as the deadline asks, wait for the collector, look, put them back",
        _TESTED,
    ),
    _h("E1", Engine.SPARK, "event logs that hold SQL literals", "no value in SQL text, ever", _TESTED),
    _h(
        "C2",
        Engine.CATALOG,
        "every branch, tag and old commit of a Nessie catalog reads files of its own time, and no engine removes any",
        "erase on every branch, move tags, then remove what no reference reaches",
        _TESTED,
    ),
    _h("M1", Engine.CATALOG, "files of a dropped or renamed table", "discovery walks folders, not names", _TESTED),
)
