"""Keys of several columns in a container of Azure: blobs, their snapshots and versions."""

from __future__ import annotations

from pathlib import Path

from tests.azure.blob_service import BlobService
from tests.azure.shop import Shop
from tests.kits.tenants_kit import BY_KEY, OTHERS, WRITERS, erased


def test_one_person_leaves_and_her_namesake_of_another_tenant_stays(azure: BlobService, tmp_path: Path) -> None:
    """A snapshot has her by the key alone; another blob's snapshot has nobody, and stays."""
    shop, write = Shop.on(azure, tmp_path, versioning=False, soft_delete_days=0), WRITERS["csv"]
    shop.export("out", "a.csv", write(BY_KEY, *OTHERS))
    shop.snapshot("out/a.csv")
    shop.export("out", "b.csv", write(*OTHERS))
    shop.snapshot("out/b.csv")
    erased(shop, 1, lambda: (shop.read("out/a.csv"), *shop.kept()), (write(*OTHERS), write(*OTHERS)))
