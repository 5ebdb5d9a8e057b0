"""The small shop of `tests/hdfs/shop.py`, with its exports in a bucket of Cloud Storage."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.gcssupport import Gcs
from tests.hdfs import shop

BUCKET = "shop"


@dataclass
class Shop(shop.Shop):
    """exports: prefixes in the bucket that lineage leads to from the users. agreed: whether old versions may go alone."""

    gcs: Gcs = field(default_factory=Gcs)
    agreed: bool = False

    @classmethod
    def of(cls, gcs: Gcs, base: Path, **settings: Any) -> Shop:
        gcs.bucket(BUCKET, **settings)
        return cls(None, base, "", gcs=gcs)  # type: ignore[arg-type]

    def put(self, path: str, data: bytes, **resource: Any) -> str:
        self.gcs.put(BUCKET, path, data, **resource)
        return path

    def read(self, path: str) -> bytes:
        return self.gcs.live(BUCKET, path)

    def stored(self, *prefixes: str) -> list[dict[str, Any]]:
        """`object_stores` of the estate file."""
        agreed = {"deletable": {"owner": "Ann", "reason": "nobody needs it"}} if self.agreed else {}
        places = [{"prefix": prefix, **agreed} for prefix in prefixes or sorted(self.exports)]
        return [{"store": f"gs://{BUCKET}", "endpoint": self.gcs.endpoint, "anonymous": True, "places": places}]

    def _places(self) -> dict[str, Any]:
        return {"roots": ["tables"], "object_stores": self.stored()}

    def _dataset(self, folder: str) -> dict[str, str]:
        return {"namespace": f"gs://{BUCKET}", "name": folder}

    def export(self, folder: str, name: str, data: bytes, **resource: Any) -> str:
        if folder not in self.exports:
            self.exports.append(folder)
        return self.put(f"{folder}/{name}", data, **resource)

    def gaps(self, **more: Any) -> list[str]:
        """The ids of the gaps of a plan that nobody waived."""
        return [gap["id"] for gap in self.plan(**more)[1]["gaps"] if gap["waiver"] is None]

    def reasons(self, **more: Any) -> list[tuple[str, str]]:
        """Ids and reasons of all gaps."""
        return [(gap["id"], gap["reason"]) for gap in self.plan(**more)[1]["gaps"]]

    def steps(self) -> list[dict[str, Any]]:
        return list(json.loads(self.plan_file.read_text())["steps"])
