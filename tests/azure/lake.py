"""The small shop with tables in a container, which Spark reaches by the DFS endpoint of the stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from deltalake import DeltaTable

from tests.azure.blob_service import BlobService
from tests.azure.blob_state import State
from tests.azure.dfs_service import DfsService
from tests.azure.shop import CONTAINER, STORE, Shop
from tests.gcs import tables
from tests.sparksession import small_spark

_PLAIN_HTTP = {
    "spark.hadoop.fs.azure.always.use.https": "false",
    "spark.hadoop.fs.abfss.impl": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    # the other way knows `abfss` with TLS alone
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
}
"""What the driver needs to reach a stand-in without TLS."""


@dataclass
class Lake(Shop, tables.Lake):
    """dfs: the endpoint of the account's that engines use, too. waived: ids of gaps beside that of the shop."""

    waived: list[str] = field(default_factory=list)

    @classmethod
    def of_account(cls, service: BlobService, dfs: DfsService, base: Path, **settings: Any) -> Lake:
        """A shop in a new container of an account that is set so."""
        made = cls.on(service, base, **settings)
        made.dfs = dfs
        return made

    def spark(self) -> dict[str, Any]:
        """`spark` of the estate file."""
        assert self.dfs is not None
        return small_spark(_PLAIN_HTTP | {"spark.hadoop.fs.azure.abfs.endpoint": self.dfs.address})

    def write(self, **more: Any) -> None:
        super().write(**{"spark": self.spark(), **more})
        waiver = {"who": "Ann", "why": "looked at", "until": "2099-01-01T00:00:00Z"}
        with (self.base / "waivers.yaml").open("a") as waivers:
            waivers.write(yaml.safe_dump(dict.fromkeys(self.waived, waiver)) if self.waived else "")

    def holding(self, *texts: str) -> list[str]:
        """Every state of every path that has one of some texts in its bytes, in deleted directories too."""
        return sorted(name for name, state in self.states() if any(t.encode() in state.data for t in texts))

    def rows(self, folder: str) -> list[tuple[str, str]]:
        """What a reader of the table sees."""
        table = DeltaTable(f"{STORE}/{folder}", storage_options=self.store.reader_options()).to_pyarrow_table()
        return sorted((row["uid"], row["mail"]) for row in table.to_pylist())

    def states(self) -> Iterator[tuple[str, State]]:
        """Everything that the container keeps, with what lies in deleted directories."""
        assert self.service is not None
        for name, blob in self.service.account.container(CONTAINER).blobs.items():
            for state in (*([blob.current] if blob.current else []), *blob.past):
                yield name, state
                yield from state.inside.items()
