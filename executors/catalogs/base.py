"""What a type of catalogs needs of Spark: options of the catalog, jars, and executors of its own.

The class is registered in `pii_tracer.catalog_executors`, under the same name as the type of catalogs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from executors.catalogs.metadata_pointer import MetadataPointer
from pii_tracer.config.catalogs import Catalog
from pii_tracer.config.estate_file import Estate
from pii_tracer.run.executor_protocol import Executor

if TYPE_CHECKING:
    from executors.context import ExecutionContext


class CatalogOnSpark:
    """One type of catalogs on Spark. What is not said here is what a catalog needs that Spark is not told of: nothing.

    with_secrets: whether options hold credentials, which Spark then must not show. aws_client: whether it is reached
    through AWS's own client. other_formats: whether it has tables of formats that Spark finds in no catalog by itself;
    the session is told of them, by their places.
    """

    with_secrets: ClassVar[bool] = False
    aws_client: ClassVar[bool] = False
    other_formats: ClassVar[bool] = False

    def options(self, name: str, catalog: Catalog, base: Path) -> Mapping[str, str]:
        """Options of `spark.sql.catalog.NAME`, without that prefix; none where Spark has no such catalog.

        name: its key in the estate file. base: folder of the estate file.
        """
        return {}

    def through_hadoop(self, estate: Estate) -> bool:
        """Whether Spark must reach the files of tables through Hadoop's file systems, as everything else does."""
        return False

    def drivers(self, catalog: Catalog) -> Mapping[str, str]:
        """Jars beside the table formats' that it needs, as Maven coordinates, each with a class that it brings."""
        return {}

    def metadata_pointer(
        self, name: str, catalog: Catalog, base: Path, parts: tuple[str, ...], newest: Callable[[], Path]
    ) -> MetadataPointer | None:
        """Which metadata file of an Iceberg table counts; None where the type of catalogs has no compare-and-swap.

        name: the catalog's key in the estate file. parts: namespace and table. newest: gives the newest
        metadata file of its folder, or raises `EstateError`.
        """
        return None

    def executors(self, ctx: ExecutionContext) -> Iterable[Executor]:
        """Executors of steps that only tables of such catalogs have."""
        return ()


def warehouse(text: str, base: Path) -> str:
    """A warehouse as Spark is told of it: a URI as it is, a folder with its whole path."""
    return text if ":/" in text else str(base / text)
