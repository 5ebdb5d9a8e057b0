"""Where the bytes of erased rows survive in Delta tables, and what removes them. Plans name these ids."""

from __future__ import annotations

from planners.hazards import Basis, hazard

_ENGINE = "delta"
_TESTED = Basis.TESTED
_DOCUMENTED = Basis.DOCUMENTED

HAZARDS = (
    hazard(
        "D1",
        _ENGINE,
        "data files that older versions reference",
        "delete, then VACUUM after the retention window",
        _TESTED,
    ),
    hazard("D2", _ENGINE, "the Parquet file under a deletion vector", "REORG … APPLY (PURGE), then VACUUM", _TESTED),
    hazard(
        "D3",
        _ENGINE,
        "files kept by a VACUUM whose RETAIN was ignored",
        "VACUUM exactly what has waited long enough by the log (USING INVENTORY, RETAIN 0); look at the files",
        _TESTED,
    ),
    hazard(
        "D4",
        _ENGINE,
        "min/max statistics in _delta_log JSON and .crc",
        "remove log entries below a complete checkpoint",
        _TESTED,
    ),
    hazard(
        "D5",
        _ENGINE,
        "the literal of a DELETE in commitInfo",
        "delete by semi-join against a key view, never a literal",
        _TESTED,
    ),
    hazard(
        "D6", _ENGINE, "wide bounds of a live file under a deletion vector", "PURGE writes fresh statistics", _TESTED
    ),
    hazard("D7", _ENGINE, "_change_data of the change data feed", "VACUUM enters that folder", _TESTED),
    hazard(
        "D8",
        _ENGINE,
        "shallow clones: the source's files and their statistics",
        "erase the clone first, then the source",
        _TESTED,
    ),
    hazard("D10", _ENGINE, "hidden files that VACUUM skips", "sweep them separately", _TESTED),
    hazard(
        "D11",
        _ENGINE,
        "catalog-managed tables and UniForm: another master's commits or metadata",
        "blocked in the plan, with what the owner can do",
        _DOCUMENTED,
    ),
    hazard(
        "D12",
        _ENGINE,
        "a version restored in the middle of a run",
        "the verification finds it; resume repeats the steps; afterwards there is no version to restore",
        _TESTED,
    ),
    hazard(
        "D13",
        _ENGINE,
        "dropped columns: the cells stay in the files of everybody's rows",
        "REORG … APPLY (PURGE) writes those files again",
        _TESTED,
    ),
    hazard(
        "D14",
        _ENGINE,
        "symlink manifests: other engines go on reading files that VACUUM removes",
        "generate them again before the VACUUM",
        _TESTED,
    ),
    hazard(
        "D15",
        _ENGINE,
        "files that a running writer has written and not yet committed: VACUUM RETAIN 0 removes them",
        "while a writer is not stopped, files that no commit names stay for 24 hours",
        _TESTED,
    ),
    hazard(
        "D16",
        _ENGINE,
        "tombstones of removed files in every checkpoint: their partition values, until their retention is over",
        "a checkpoint while the table keeps no tombstones; its own setting is put back, and one more checkpoint",
        _TESTED,
    ),
    hazard(
        "D17",
        _ENGINE,
        "liquid clustering: REORG … APPLY (PURGE) and OPTIMIZE … FULL pass over whole cubes and their deletion vectors",
        "REORG while the table has no clustering columns; they are put back",
        _TESTED,
    ),
)
