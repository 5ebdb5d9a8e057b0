"""The catalogue of places where an erased person's bytes survive, as data. Plans name these ids.

basis: `tested` has a test in this repository that shows the survival and the remedy; `tried` was run by hand on the
versions in docs/stack.md; `documented` is read in the system's own documentation or source.
"""

from __future__ import annotations

from pii_tracer.enums import StrEnum
from pii_tracer.model import Frozen


class Engine(StrEnum):
    """The system a hazard belongs to."""

    DELTA = "delta"
    ICEBERG = "iceberg"
    HUDI = "hudi"
    FILES = "files"
    S3 = "s3"
    SPARK = "spark"
    CATALOG = "catalog"


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
        "RETAIN 0 with the check off; look at the files",
        _TRIED,
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
    _h("D6", _D, "wide bounds of a live file under a deletion vector", "PURGE writes fresh statistics", _DOC),
    _h("D7", _D, "_change_data of the change data feed", "VACUUM enters that folder", _TESTED),
    _h(
        "D8",
        _D,
        "shallow clones: the source's files and their statistics",
        "erase the clone first, then the source",
        _TESTED,
    ),
    _h("D10", _D, "hidden files that VACUUM skips", "sweep them separately", _TRIED),
    _h("D12", _D, "a version restored after the erasure", "scan again after every RESTORE", _DOC),
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
    _h("I5", _I, "equality-delete files hold the key", "rewrite, drop the delete files, expire", _DOC),
    _h("I6", _I, "old metadata.json, orphan files", "trim the metadata log, remove orphan files", _TESTED),
    _h("I7", _I, "tables that share files", "name the sharers before anything expires", _DOC),
    _h("H1", _H, "older file slices", "clean down to the newest version", _TESTED),
    _h("H2", _H, "merge-on-read log blocks", "compact, then clean", _TESTED),
    _h("H3", _H, "savepoints block the cleaner", "delete the savepoint, then clean", _TESTED),
    _h("H4", _H, "the metadata table: record index, column statistics", "drop and rebuild it after the clean", _TESTED),
    _h(
        "H6",
        _H,
        "rows of a duplicate record key, which one DELETE leaves",
        "repeat the DELETE until none is left",
        _TESTED,
    ),
    _h("H5", _H, "the archived timeline", "verify it; no official purge exists", _DOC),
    _h("F1", _F, "files without a table format: there is no delete", "rewrite the files that hold the person", _TESTED),
    _h("F2", _F, "identifiers in partition paths and object names", "rename or re-key; flagged at planning", _DOC),
    _h("F2b", _F, "the hidden .crc sibling of a rewritten file", "remove it with the old file", _TESTED),
    _h(
        "F3",
        _F,
        "footers: statistics, dictionaries, key-value metadata",
        "rewriting rewrites them; decode to verify",
        _TESTED,
    ),
    _h("F4", _F, "compressed pages that a raw search misses", "decode by format, then search", _TESTED),
    _h("S1", _S, "noncurrent versions behind a delete marker", "delete by version id", _TESTED),
    _h("S2", _S, "replicas: deletes of a version never replicate", "delete the versions in every destination", _TESTED),
    _h("S3", _S, "Object Lock and legal holds", "blocked until the date; shown in the plan", _DOC),
    _h("S4", _S, "Batch Operations has no delete", "DeleteObjects in batches of 1,000", _DOC),
    _h(
        "S5",
        _S,
        "archive classes: no rewrite in place",
        "restore, rewrite, archive again, delete old versions",
        _TESTED,
    ),
    _h("S7", _S, "unfinished multipart uploads", "list and abort", _DOC),
    _h("E1", Engine.SPARK, "event logs that hold SQL literals", "no value in SQL text, ever", _TESTED),
    _h("M1", Engine.CATALOG, "files of a dropped or renamed table", "discovery walks folders, not names", _DOC),
)

BY_ID = {hazard.id: hazard for hazard in CATALOGUE}
