"""One stand-in for all tests of Azure Blob Storage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pii_tracer.lake.stores.azure import login
from tests.azure.blob_service import BlobService, blob_service
from tests.azure.blob_state import Account
from tests.azure.dfs_service import DfsService, dfs_service
from tests.azure.shared_key import KEY
from tests.sparksession import spark, spark_estate

__all__ = ["azure", "dfs", "engines", "running", "spark", "spark_estate"]


@pytest.fixture(scope="session")
def running() -> Iterator[BlobService]:
    with blob_service(Account()) as found:
        yield found


@pytest.fixture
def azure(running: BlobService, monkeypatch: pytest.MonkeyPatch) -> BlobService:
    monkeypatch.setenv(login.KEY, KEY)
    fresh = Account(page=3)
    for name in ("versioning", "soft_delete_days", "container_days", "hierarchical", "page", "faults", "containers"):
        setattr(running.account, name, getattr(fresh, name))
    running.account.gone, running.account.days = [], 0
    running.asked.clear()
    return running


@pytest.fixture(scope="session")
def engines(running: BlobService) -> Iterator[DfsService]:
    with dfs_service(running.account) as found:
        yield found


@pytest.fixture
def dfs(engines: DfsService) -> Iterator[DfsService]:
    engines.asked.clear()
    yield engines
    assert engines.unknown == []
