"""What verification asks of a table format: every state of a copy that can still be read, and its rows.

A package registers a reader in the entry-point group `pii_tracer.format_verifiers` under the format's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pii_tracer.model.plan import Copy


@dataclass(frozen=True)
class State:
    """One state: `load` gives its rows when called. kept: must be the same for other people after the run.

    loose: files without a schema (JSON, or no files at all): a column is there only as long as a row has a value in it.
    written: values are texts as somebody wrote them (CSV, JSON).
    """

    name: str
    load: Callable[[], DataFrame]
    kept: bool = False
    loose: bool = False
    written: bool = False


class TableReader:
    """Reads the tables of one format by Spark, for the verifier.

    reads_s3: whether tables in S3 are read, too; else a copy there is refused.
    """

    reads_s3: ClassVar[bool] = False

    def states(self, spark: SparkSession, copy: Copy) -> Iterator[State]:
        """Every state of a copy, the current one first: every old version, branch and tag that somebody could read.

        A copy that stands for one branch or tag has only that state.

        Raises:
            ScanError: the copy cannot be read as it is told.
        """
        raise NotImplementedError


def quoted_name(name: str) -> str:
    """A table's name, each part quoted for SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in name.split("."))


def quoted_path(location: str) -> str:
    """A path, quoted for SQL."""
    return "`" + location.replace("`", "``") + "`"
