"""One person in a large Parquet object: surgery on its row groups against a whole rewrite.

An object of 128 row groups in a server for S3 on this machine: MinIO where `make stores` built it, else the strict
stand-in (moto, one Python process). The person has three rows in one row group. The peer, in the same run: the object is
downloaded, every row group is decoded, written and read back, and the object is sent. Both read the object over HTTP and
check what they wrote. Run: `make bench-surgery`.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from executors.formats.plain_files import parquet_rewrite
from executors.stores.s3.executor import S3Executor
from executors.stores.s3.step_base import read, write_like
from pii_tracer.model.actions import Action
from tests import storeservers
from tests.s3support import MATCH, PERSON, PLAN, Context, World, estate, keyring, step

GROUPS = 128
BUCKET, KEY = "large", "archive/events.parquet"
WORDS = np.array(
    [
        "parcel",
        "late",
        "refund",
        "asked",
        "for",
        "the",
        "door",
        "was",
        "open",
        "call",
        "again",
        "on",
        "monday",
        "invoice",
        "paid",
        "twice",
    ]
)
_BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def row_group(number: int, rows: int, noise: np.random.Generator) -> pa.Table:
    """Ids, mail addresses, amounts, times, a status and free text, as an export of events has them."""
    users = noise.integers(10**9, 10**10, rows)
    if number == GROUPS // 2:
        users[[5, rows // 2, rows - 1]] = int(PERSON)
    words = WORDS[noise.integers(0, len(WORDS), (rows, 6))]
    notes = [" ".join(line) + f" {n}" for line, n in zip(words, noise.integers(0, 10**8, rows), strict=True)]
    base = _BEGIN + timedelta(hours=number)
    return pa.table(
        {
            "user_id": pa.array(users, pa.int64()),
            "mail": pa.array([f"u{user}@example.in" for user in users]),
            "amount": pa.array(noise.random(rows) * 1000),
            "at": pa.array(
                np.datetime64(base.replace(tzinfo=None), "us") + noise.integers(0, 3_600_000_000, rows),
                pa.timestamp("us", "UTC"),
            ),
            "status": pa.array(WORDS[noise.integers(0, 4, rows)]).cast(pa.string()),
            "note": pa.array(notes),
        }
    )


def made(megabytes: int) -> bytes:
    """An object of about so many MiB, Snappy as Spark writes it, with page indexes."""
    noise = np.random.default_rng(7)
    probe = io.BytesIO()
    pq.write_table(row_group(0, 20_000, noise), probe)
    rows = int(20_000 * megabytes * 1024**2 / GROUPS / len(probe.getvalue()))
    sink = io.BytesIO()
    first = row_group(0, rows, noise)
    with pq.ParquetWriter(sink, first.schema, write_page_index=True) as writer:
        for number in range(GROUPS):
            writer.write_table(row_group(number, rows, noise) if number else first, row_group_size=rows)
    return sink.getvalue()


class Counting:
    """A client that counts the bytes it sends, and the seconds in which the server writes: it copies, hashes, stores."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.sent = 0
        self.writing = 0.0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        def counted(**given: Any) -> Any:
            self.sent += len(given.get("Body", b""))
            began = time.perf_counter()
            answer = call(**given)
            self.writing += time.perf_counter() - began
            return answer

        return counted if name in _WRITES else call


_WRITES = ("put_object", "upload_part", "upload_part_copy", "complete_multipart_upload")


def surgery(world: World, client: Counting, old: dict[str, Any]) -> dict[str, Any]:
    """The step as a run does it."""
    parameters = {"bucket": BUCKET, "prefix": "archive/", "format": "parquet", "objects": [old], "plan_id": PLAN}
    executor = S3Executor(Context(estate(world.endpoint_url), keyring()), lambda region: client)
    asked = step(Action.S3_REWRITE_ARCHIVE, parameters | {"match": MATCH.model_dump()})
    fact: dict[str, Any] = executor.run(asked, None).facts["objects"][0]
    return fact


def whole(world: World, client: Counting, old: dict[str, Any]) -> dict[str, Any]:
    """Download, decode and write every row group, read back, send."""
    keys = {"user_id": frozenset({PERSON})}
    data, answer = read(client, BUCKET, KEY, old["version_id"])

    def opened(**options: Any) -> pq.ParquetFile:
        return pq.ParquetFile(io.BytesIO(data), **options)

    parquet_rewrite.survey(opened, MATCH, keys, keys["user_id"])
    sink = io.BytesIO()
    parquet_rewrite.write(opened, sink, MATCH, keys)
    new = sink.getvalue()
    parquet_rewrite.compare(opened, lambda **options: pq.ParquetFile(io.BytesIO(new), **options), MATCH, keys)
    return write_like(client, BUCKET, KEY, new, answer, PLAN, {})


def measured(name: str, way: Callable[..., dict[str, Any]], world: World, data: bytes) -> tuple[float, pa.Table]:
    """Seconds, and the rows of the new object without their texts."""
    old = world.put(BUCKET, KEY, data)
    client = Counting(world.client())
    began, busy = time.perf_counter(), time.process_time()
    fact = way(world, client, old)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    new = world.get(BUCKET, KEY)
    assert len(new) == fact["bytes"]
    told = ", ".join(f"{k}: {v}" for k, v in fact.items() if k.startswith(("row_groups", "written")))
    spent = f"{seconds:.1f} s, {client.writing:.1f} s of it the server writes; {busy:.1f} s of this process' processor"
    print(f"{name}: {spent}; {client.sent / 1024**2:.1f} MiB sent; {told}", flush=True)
    return seconds, pq.read_table(io.BytesIO(new))


def main() -> None:
    """Both ways, three times in turns; the shortest of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--times", type=int, default=3)
    built = storeservers.program("minio") is not None
    parser.add_argument("--server", choices=("minio", "stand-in"), default="minio" if built else "stand-in")
    options = parser.parse_args()
    serve = storeservers.minio if options.server == "minio" else storeservers.standin
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder) / "server") as server:
        os.environ |= storeservers.credentials()
        os.environ.pop("AWS_SESSION_TOKEN", None)
        world = World(server.endpoint_url)
        world.client().create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "ap-south-1"})
        data = made(options.megabytes)
        print(f"an object of {len(data) / 1024**2:.0f} MiB in {GROUPS} row groups; server: {options.server}")
        times: dict[str, list[float]] = {"surgery": [], "whole rewrite": []}
        for _ in range(options.times):
            found = [measured(n, way, world, data) for n, way in (("surgery", surgery), ("whole rewrite", whole))]
            for name, (seconds, _) in zip(times, found, strict=True):
                times[name].append(seconds)
            assert found[0][1].equals(found[1][1]), "the two ways give other rows"
        best = {name: min(taken) for name, taken in times.items()}
        ratio = best["whole rewrite"] / best["surgery"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(f"best: {best['surgery']:.1f} s against {best['whole rewrite']:.1f} s, {ratio:.1f} times as fast")
        print(f"peak memory of both: {peak:.1f} GiB")


if __name__ == "__main__":
    main()
