"""A bare folder of aggregates: written again beside the old one from its erased source, and swapped by two renames.

Parquet and ORC, whose files carry their own schema. At every moment either the old folder or the new one is there
whole, under its name or under a hidden one beside it, from where the next run goes on.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executors.context import ExecutionContext
from executors.engine.local_files import files_below, let_in, local_path
from executors.engine.rebuild_from_query import answer, differences, rows_in
from pii_tracer.common.plurals import counted
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import read_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENDINGS = {Format.PARQUET: ".parquet", Format.ORC: ".orc"}
"""Formats that can be rebuilt, and what Spark's files of them end in."""


class FolderRebuild:
    """FILES_REBUILD. `parameters`: location, sql, format, codec, partition_columns."""

    def __init__(self, ctx: ExecutionContext, parameters: Mapping[str, Any]) -> None:
        self._ctx = ctx
        self._sql = str(parameters["sql"])
        self._format = Format(parameters["format"])
        self._codec = parameters.get("codec")
        self._partitions = tuple(parameters.get("partition_columns") or ())
        self._folder = local_path(parameters["location"])
        self._made = self._folder.with_name(f".{self._folder.name}.pii-tracer-new")
        self._old = self._folder.with_name(f".{self._folder.name}.pii-tracer-old")

    def check(self) -> None:
        """Raise `RunError` when the folder cannot be swapped whole: it is gone, or holds something else as well."""
        if self._format not in ENDINGS:
            raise RunError(f"rebuilding {self._format} files is not supported", todo="rebuild the folder by its job")
        folder = self._folder if self._folder.is_dir() else self._old
        if not folder.is_dir():
            raise RunError("the folder does not exist", where=str(self._folder), todo="plan again")
        strange = [p for p in files_below(folder) if not p.name.endswith(ENDINGS[self._format]) and not _spark(p)]
        if strange:
            raise RunError(
                f"the folder contains {counted(len(strange), 'file')} with a different format than {self._format}, "
                "which a rebuild would remove",
                where=str(strange[0]),
                todo="move these files away, then run `pii-tracer resume`",
            )

    def run(self) -> dict[str, Any]:
        """Write, compare names of columns, swap; facts have the rows before and after.

        Raises:
            RunError: the query's columns are not the folder's.
        """
        if not self._folder.exists():  # it died between the two renames: the old one is the whole one that is known
            self._old.rename(self._folder)
        for left in (self._made, self._old):
            shutil.rmtree(left, ignore_errors=True)
        have, made = self.both()
        typed = made.select(*[made[f.name].cast(f.dataType).alias(f.name) for f in have.schema.fields])
        before = rows_in(have)
        writer = typed.write.format(self._format.value).partitionBy(*self._partitions)
        if self._codec:
            writer = writer.option("compression", self._codec)
        writer.save(str(self._made))
        let_in(self._folder, self._made)
        self._folder.rename(self._old)
        self._made.rename(self._folder)
        shutil.rmtree(self._old)
        return {"rows_before": before, "rows_after": rows_in(self._read(self._folder))}

    def both(self) -> tuple[DataFrame, DataFrame]:
        """The folder's rows, and what its recorded query gives now.

        Raises:
            RunError: the query's columns are not the folder's.
        """
        have, made = self._read(self._folder), answer(self._ctx, self._sql)
        names = [name.lower() for name in have.columns]
        if sorted(names) != sorted(name.lower() for name in made.columns):
            raise RunError(
                f"the recorded query returns the columns {', '.join(made.columns)}, but the folder has "
                f"{', '.join(names)}",
                where=str(self._folder),
                todo="harvest the job's newest statement, then plan again",
            )
        return have, made

    def findings(self) -> list[str]:
        """What still stands against the folder being the query's answer."""
        if not self._folder.is_dir():
            return ["the folder does not exist"]
        left = [f"{p.name} is left" for p in (self._made, self._old) if p.exists()]
        return left + differences(answer(self._ctx, self._sql), self._read(self._folder))

    def _read(self, folder: Path) -> DataFrame:
        return self._ctx.spark.read.format(self._format.value).load(read_path(str(folder)))


def _spark(path: Path) -> bool:
    """The marker of a finished job, and Hadoop's hidden checksums."""
    return path.name == "_SUCCESS" or (path.name.startswith(".") and path.name.endswith(".crc"))
