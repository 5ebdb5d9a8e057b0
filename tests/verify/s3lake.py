"""A Delta table in a bucket that keeps versions, written by delta-rs, and the verification of a plan with it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from pii_tracer.app.verification import Verification
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.model.datasets import (
    CopyKind,
    DatasetId,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.plan import Copy, ErasurePlan
from tests.s3support import REGION, World, estate
from tests.verify.conftest import a_copy
from tests.waivers import MARKS

MAIL, OTHER = "asha.rao@mail.example", "b@x.example"
KEYS = (KeySet(name="mail", origin="people.mail", weak=False, values=(("subj_1", MAIL),)),)
MATCH = Match(terms=(MatchTerm(column="mail", key_set="mail", type="string"),))


def no_spark() -> Any:
    raise AssertionError("bytes are verified without Spark")


def parquet(*mails: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"mail": list(mails), "n": list(range(len(mails)))}), sink)
    return sink.getvalue()


@dataclass
class Lake:
    """The table `sales.orders` in a bucket, without the person until one is planted."""

    world: World
    base: Path
    versioned: bool = True
    key: str = "wh/orders"
    bucket: str = field(init=False)

    def __post_init__(self) -> None:
        self.bucket = self.world.new("lake", versioned=self.versioned)
        self.write([OTHER, "c@x.example"])

    @property
    def client(self) -> Any:
        return self.world.client()

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    @property
    def options(self) -> dict[str, str]:
        place = {"AWS_ENDPOINT_URL": self.world.endpoint_url, "AWS_REGION": REGION}
        return {**place, "AWS_ALLOW_HTTP": "true", "AWS_CONDITIONAL_PUT": "etag"}

    def write(self, mails: list[str], mode: Any = "append", key: str | None = None, **more: Any) -> None:
        rows = pa.table({"mail": mails, "n": list(range(len(mails)))})
        place = f"s3://{self.bucket}/{key or self.key}"
        write_deltalake(place, rows, mode=mode, storage_options=self.options, **more)

    def put(self, name: str, body: bytes, **more: Any) -> None:
        """An object, told from the table's folder."""
        self.client.put_object(Bucket=self.bucket, Key=f"{self.key}/{name}", Body=body, **more)

    def hide(self, name: str) -> None:
        """A delete that names no version, as table formats delete."""
        self.client.delete_object(Bucket=self.bucket, Key=f"{self.key}/{name}")

    def versions(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        answer = self.client.list_object_versions(Bucket=self.bucket, Prefix=prefix or f"{self.key}/")
        yield from (*answer.get("Versions", ()), *answer.get("DeleteMarkers", ()))

    def clear(self) -> int:
        """Delete what is not current, markers last, and abort uploads: how many."""
        old = [v for v in self.versions() if not v["IsLatest"] or "Size" not in v]
        for item in old:
            self.client.delete_object(Bucket=self.bucket, Key=item["Key"], VersionId=item["VersionId"])
        return len(old)

    def commit(self, number: int, *actions: dict[str, Any]) -> None:
        body = "".join(json.dumps(action) + "\n" for action in actions).encode()
        self.put(f"_delta_log/{number:020}.json", body)

    def copy(self, **more: Any) -> Copy:
        place = DatasetId(namespace=f"s3://{self.bucket}", name=self.key)
        told = {"kind": CopyKind.SOURCE, "dataset": place, "facts": {"region": REGION}, "match": None, **more}
        return a_copy(DELTA, self.uri, "sales.orders", **told)

    def verification(self, *copies: Copy, spark: Any = no_spark, **more: Any) -> Verification:
        parts: dict[str, Any] = {"copies": copies, "examined": (), "gaps": (), "steps": (), **more}
        return Verification(
            plan=ErasurePlan.model_construct(**parts),
            estate=estate(self.world.endpoint_url),
            base=self.base,
            keys=KEYS,
            marks=MARKS,
            spark=spark,
            now=lambda: datetime.now(timezone.utc),
        )

    def seen(self, **more: Any) -> tuple[set[tuple[str, str]], tuple[str, ...]]:
        """(kind of file, where) of every residue, and what was not verified."""
        copy = self.copy(**more)
        found = self.verification(copy).look(copy).bytes
        assert found is not None
        assert MAIL not in found.model_dump_json()
        return {(kind_of(r.file), r.where) for r in found.residue}, found.unverified


def kind_of(path: str) -> str:
    """The folder that a file of the verdict lies in, or what it is called in the table's own."""
    name = path.partition("?versionId=")[0]
    assert name != path
    folder = name.rpartition("/")[0]
    return folder or name.rpartition(".")[2]
