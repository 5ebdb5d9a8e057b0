"""Where the bytes of erased rows survive in Hudi tables, and what removes them. Plans name these ids."""

from __future__ import annotations

from planners.hazards import Basis, hazard

_ENGINE = "hudi"
_TESTED = Basis.TESTED

HAZARDS = (
    hazard("H1", _ENGINE, "older file slices", "clean down to the newest version", _TESTED),
    hazard("H2", _ENGINE, "merge-on-read log blocks", "compact, then clean", _TESTED),
    hazard("H3", _ENGINE, "savepoints block the cleaner", "delete the savepoint, then clean", _TESTED),
    hazard(
        "H4",
        _ENGINE,
        "the metadata table: record index, column statistics",
        "drop and rebuild it after the clean",
        _TESTED,
    ),
    hazard(
        "H6",
        _ENGINE,
        "rows of a duplicate record key: one DELETE takes one of them, whoever's it is",
        "repeat the DELETE until none is left; refused where another's row has the key",
        _TESTED,
    ),
    hazard("H5", _ENGINE, "the archived timeline", "it holds no keys; verified, as no official purge exists", _TESTED),
    hazard(
        "H7",
        _ENGINE,
        "a savepoint that is restored in the middle of a run",
        "savepoints go first; the verification finds the rows; resume repeats the steps",
        _TESTED,
    ),
    hazard(
        "H8",
        _ENGINE,
        "file groups that clustering or INSERT OVERWRITE replaced",
        "clean down to the newest version",
        _TESTED,
    ),
    hazard(
        "H9",
        _ENGINE,
        "the timeline names the partitions that were written: their values, where a key is one",
        "blocked in the plan, with what the owner can do",
        _TESTED,
    ),
)
