"""What a table format needs of Spark, as the engine's modules ask for it. Nobody else knows the format.

An executor that is registered in `pii_tracer.format_executors` names its format's support in `spark_support`; one whose
format needs no Spark names none (docs/architecture.md, "Add a table format").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from executors.context import ExecutionContext
from executors.engine.rebuild_from_query import both
from executors.engine.sql_names import quote_table
from pii_tracer.config.estate_file import Estate, Spark
from pii_tracer.lake.catalogs.base import in_session_catalog
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from executors.sweep.format_sweep import FormatSweep
    from executors.sweep.sweep_stores import Store
    from pii_tracer.retention.sweep_rules import Target

Sharers = Sequence[Mapping[str, str | None]]
"""Tables that share files with the one at work, as planners write them into steps: `table` and `location`."""


@dataclass(frozen=True)
class Build:
    """What one Spark is started with for a format: Maven coordinates, extensions of its SQL, and settings."""

    packages: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    conf: tuple[tuple[str, str], ...] = ()


class SparkSupport:
    """One format on Spark. What is not said here is what a format of bare files needs: nothing.

    formats: whose tables these are. rank: where its extensions stand among the others'; Spark asks the last one first.
    builds: by the name of the profile; a format without any needs nothing and runs on every Spark. settings: what a
    session can be given after its engine was started. known_by_name: whether executors know its tables by their names;
    others they read by their places. in_catalogs: whether Spark finds its tables in the estate's catalogs by itself.
    conflicts: what names of errors hold when another writer has committed first. own_columns: how the names of columns
    begin that the engine keeps in every table. pinned_scans: how Spark's plans name a scan of its tables, if that must
    not stand in one plan with the write of another format's table.
    """

    formats: ClassVar[frozenset[Format]]
    rank: ClassVar[int] = 50
    builds: ClassVar[Mapping[str, Build]] = {}
    settings: ClassVar[Mapping[str, str]] = {}
    known_by_name: ClassVar[bool] = True
    in_catalogs: ClassVar[bool] = False
    conflicts: ClassVar[tuple[str, ...]] = ()
    own_columns: ClassVar[tuple[str, ...]] = ()
    pinned_scans: ClassVar[tuple[str, ...]] = ()

    def build(self, profile: str) -> Build:
        """What a Spark of this profile is started with; nothing where the format does not run on it."""
        return self.builds.get(profile, Build())

    def runs_on(self, profile: str) -> bool:
        """Whether there is a build of the format for a profile's Spark."""
        return not self.builds or profile in self.builds

    def source(self, kind: Format) -> str:
        """What Spark calls the format in `CREATE TABLE … USING`."""
        return kind.value

    def catalog_conf(self, estate: Estate, base: Path) -> Mapping[str, str]:
        """Settings of the estate's catalogs that Spark reads through this format. base: folder of the estate file."""
        return {}

    def catalog_packages(self, estate: Estate) -> Mapping[str, str]:
        """Jars that these catalogs need, as Maven coordinates, each with a class that it has to bring."""
        return {}

    def unfit(self, step: Step, spark: Spark) -> tuple[str, str] | None:
        """Why the estate's Spark cannot do a step, and what to do instead; None where it can."""
        return None

    def needs_jvm(self, step: Step) -> str | None:
        """Why a step cannot be done over Spark Connect; None where it can."""
        return None

    def known_name(self, table: str | None) -> str | None:
        """The name of a plan's table where the session knows the table by it: Spark finds it in a catalog of its own,
        or the session catalog was told of it, which has names of a schema and a table. None of all others."""
        return table if self.in_catalogs or (table is not None and in_session_catalog(table)) else None

    def place_name(self, location: str) -> str | None:
        """A table without a name, quoted for SQL; None where the format's tables need one."""
        return None

    def sql_name(self, table: str | None, location: str) -> str | None:
        """A table as SQL calls it, quoted: by its name where the session knows it, otherwise by its place."""
        known = self.known_name(table)
        return quote_table(known) if known else self.place_name(location)

    def set_reference(self, spark: SparkSession, table: str, ref: str, field: str, value: int) -> None:
        """Set what a branch or tag of a table keeps.

        Raises:
            RunError: the format has no branches or tags.
        """
        raise RunError("tables of this format have no branches or tags", where=table, todo="plan again")

    def rebuild_sides(self, ctx: ExecutionContext, step: Step) -> tuple[DataFrame, DataFrame]:
        """The table of a rebuild as it stands, and what its recorded query gives.

        Raises:
            RunError: the query's columns are not the table's, the table has no name, or the session cannot.
        """
        location = str(step.parameters.get("location"))
        name = self.sql_name(step.parameters.get("table"), location)
        if name is None:
            raise RunError(
                "the estate file has no name for this table",
                where=location,
                todo="declare the table in the estate file",
            )
        return both(ctx, name, step.parameters["sql"])

    def files_read(self, ctx: ExecutionContext, sharing: Sharers) -> set[str] | None:
        """Every file that these tables read now; None where the format's tables are not known to share files.

        Raises:
            RunError: one of them cannot be asked; nothing may be removed then.
        """
        return None

    def sweep(self, spark: SparkSession, target: Target, store: Store, now: datetime) -> FormatSweep:
        """The sweep of one table.

        Raises:
            RunError: tables of this format are not swept file by file.
        """
        raise RunError(
            f"{target.format} tables cannot be swept file by file yet",
            where=target.name,
            todo="exempt the table, with a reason",
        )
