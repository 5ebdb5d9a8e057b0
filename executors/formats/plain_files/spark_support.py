"""What folders of bare files need of Spark: nothing, but for a look at one that is going to be rebuilt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from executors.context import ExecutionContext
from executors.formats.base import SparkSupport
from executors.formats.plain_files.derived_folder_rebuild import FolderRebuild
from pii_tracer.model.datasets import Format
from pii_tracer.model.plan import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PlainFilesOnSpark(SparkSupport):
    """Executors read folders by their places: the names are for recorded statements."""

    formats = frozenset({Format.PARQUET, Format.ORC, Format.AVRO, Format.CSV, Format.JSON})
    known_by_name = False

    def rebuild_sides(self, ctx: ExecutionContext, step: Step) -> tuple[DataFrame, DataFrame]:
        """The folder, which has to be one that can be swapped whole, and the query's answer."""
        folder = FolderRebuild(ctx, step.parameters)
        folder.check()
        return folder.both()
