"""A Nessie catalog as Spark's, and the executor of tables that its branches and tags share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from executors.catalogs.base import CatalogOnSpark, warehouse
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import secret
from pii_tracer.run.executor_protocol import Executor

if TYPE_CHECKING:
    from executors.context import ExecutionContext


class NessieOnSpark(CatalogOnSpark):
    """https://iceberg.apache.org/docs/latest/nessie/"""

    with_secrets = True

    def options(self, name: str, catalog: Catalog, base: Path) -> Mapping[str, str]:
        token = secret(name, "TOKEN")
        bearer = {"authentication.type": "BEARER", "authentication.token": token} if token else {}
        return {
            "type": "nessie",
            "uri": str(catalog.uri),
            "warehouse": warehouse(str(catalog.warehouse), base),
            **({"ref": catalog.ref} if catalog.ref else {}),
            **bearer,
        }

    def executors(self, ctx: ExecutionContext) -> Iterable[Executor]:
        from executors.catalogs.nessie.executor import NessieExecutor

        return (NessieExecutor(ctx),)
