"""Where the bytes of erased rows survive in Iceberg tables, and what removes them. Plans name these ids."""

from __future__ import annotations

from planners.hazards import Basis, hazard

_ENGINE = "iceberg"
_TESTED = Basis.TESTED

HAZARDS = (
    hazard("I1", _ENGINE, "older snapshots", "expire_snapshots", _TESTED),
    hazard(
        "I2",
        _ENGINE,
        "merge-on-read: the data file under a delete file",
        "rewrite_data_files with delete-file-threshold 1",
        _TESTED,
    ),
    hazard(
        "I3", _ENGINE, "a branch or tag that pins a snapshot", "rewrite or re-point the reference, then expire", _TESTED
    ),
    hazard("I4", _ENGINE, "bounds in manifests, cut to 16 characters", "expire the old manifests", _TESTED),
    hazard(
        "I4b",
        _ENGINE,
        "DELETED entries of live manifests, with bounds",
        "rewrite_manifests and an empty commit, then expire",
        _TESTED,
    ),
    hazard("I5", _ENGINE, "equality-delete files hold the key", "rewrite, drop the delete files, expire", _TESTED),
    hazard("I6", _ENGINE, "old metadata.json, orphan files", "trim the metadata log, remove orphan files", _TESTED),
    hazard("I7", _ENGINE, "tables that share files", "forget snapshots, sweep when no sharer reads them", _TESTED),
    hazard(
        "I8",
        _ENGINE,
        "a compaction that ignores delete files or raced them: the rows are back",
        "the verification finds them; resume repeats the steps",
        _TESTED,
    ),
    hazard("I9", _ENGINE, "format version 3: a deletion vector in a Puffin file only marks the row", "as I2", _TESTED),
)
