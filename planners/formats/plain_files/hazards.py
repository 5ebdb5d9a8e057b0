"""Where the bytes of erased rows survive in files without a table format, and what removes them.

Plans name these ids.
"""

from __future__ import annotations

from planners.hazards import Basis, hazard

_ENGINE = "files"
_TESTED = Basis.TESTED

HAZARDS = (
    hazard(
        "F1",
        _ENGINE,
        "files without a table format: there is no delete",
        "rewrite the files that hold the person",
        _TESTED,
    ),
    hazard(
        "F2",
        _ENGINE,
        "identifiers in partition paths and object names",
        "a gap at planning; their owner renames, for no step does; what stays is residue",
        _TESTED,
    ),
    hazard("F2b", _ENGINE, "the hidden .crc sibling of a rewritten file", "remove it with the old file", _TESTED),
    hazard(
        "F3",
        _ENGINE,
        "footers: statistics, dictionaries, key-value metadata",
        "a rewrite makes bounds and dictionaries anew; where metadata holds a value, a gap; decode to verify",
        _TESTED,
    ),
    hazard(
        "F3b",
        _ENGINE,
        "Parquet dictionary entries that no row uses: kept by writers of filtered, encoded columns",
        "write the file again with dictionaries of its rows; the scan reads dictionaries apart from rows",
        _TESTED,
    ),
    hazard("F4", _ENGINE, "compressed pages that a raw search misses", "decode by format, then search", _TESTED),
    hazard(
        "F6",
        _ENGINE,
        "the log of a streaming file sink: a file of another size than it names is lost to Spark's readers",
        "write the log's sizes again with the files",
        _TESTED,
    ),
    hazard(
        "F7",
        _ENGINE,
        "the summary of a Parquet folder (_metadata): footers of all files, with their smallest and largest values",
        "remove it before the first file is written again; readers fall back to the files' footers",
        _TESTED,
    ),
)
