"""What tells files that writers of tables left from files that somebody put into a table's folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

UUID = r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}"
"""In the name of every data file, deletion vector, delete file and manifest that Spark, delta-rs, PyIceberg, Flink and
Trino write."""
MARKS = re.compile(r"_SUCCESS$|_committed_|_started_|_pii_tracer_|.*\.crc$")
"""What committers of Spark and Databricks leave, and runs of ours that were killed; checksums."""

STAY = (
    "No step removes these files. Move files that somebody needs out of the folder, delete the others, then plan "
    "again. If all of them can remain, waive this gap"
)
"""Of files in a table's folder that may be somebody's, where a sweep leaves what is not named as the table's own."""
STAY_IN_S3 = (
    "No step removes these files, but steps delete their old versions together with the table's. Move files that "
    "somebody needs out of the folder, delete the others, then plan again. If all of them can remain, waive this gap"
)
"""Of files in a table's folder in S3 that may be somebody's."""


def has_bytes(path: Path) -> bool:
    """Whether a file is there and not empty."""
    return told(lambda: path.stat().st_size > 0)


def told(look: Callable[[], bool]) -> bool:
    """What a look tells; False where a writer or a sweep took the file meanwhile, or it refuses: the scan says that."""
    try:
        return look()
    except OSError:
        return False
