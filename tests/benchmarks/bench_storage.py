"""Object versions: how fast they are deleted beside what the server can take, and in what memory a million are listed.

    python -m tests.benchmarks.bench_storage [--json] [--objects N] [--listed N]

`make bench-storage` runs all of it: some minutes on two cores. Deletes go to versitygw where `make stores` has built
it, to the stand-in otherwise; a loop of bare DeleteObjects is the measure. The million versions come from a server
that only lists, so that nobody has to write them first.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests import storeservers

PREFIX = "archive/"
_PAGE = 1000
_TARGET_PER_SECOND = 3000
_TARGET_RATIO = 0.8
_TARGET_MIB = 400
_ROUNDS = 3
_AT_ONCE = 4


def deletes(objects: int) -> dict[str, Any]:
    """Objects a second: the executor's deletes, and a bare loop, in turns on the same server; the best of three each.

    The step lists the versions before it deletes them, to see what may go; that is in `step_per_s` alone.
    """
    from executors.stores.s3.executor import S3Executor
    from pii_tracer.model.actions import Action
    from tests.s3support import Context, estate, keyring, step

    os.environ.update(storeservers.credentials())
    with tempfile.TemporaryDirectory() as folder, storeservers.versioned(Path(folder) / "store") as store:
        client = store.client()
        client.create_bucket(Bucket="bench")
        client.put_bucket_versioning(Bucket="bench", VersioningConfiguration={"Status": "Enabled"})
        timed = _Timed(client)
        executor = S3Executor(Context(estate(store.endpoint_url), keyring()), lambda region: timed)
        bare_times, delete_times, step_times = [], [], []
        for _ in range(_ROUNDS):
            listed = _written(client, objects)
            started = time.perf_counter()
            _bare(client, listed)
            bare_times.append(time.perf_counter() - started)
            versions = [{"key": key, "version_id": version} for key, version in _written(client, objects)]
            work = step(Action.S3_DELETE_VERSIONS, {"bucket": "bench", "versions": versions})
            started = time.perf_counter()
            executor.run(work, None)
            step_times.append(time.perf_counter() - started)
            delete_times.append(timed.ended - timed.begun)
            timed.begun = 0.0
        left = client.list_object_versions(Bucket="bench")
        if left.get("Versions") or left.get("DeleteMarkers"):
            raise SystemExit("versions are left")
    bare, ours, step_rate = (objects / min(times) for times in (bare_times, delete_times, step_times))
    rates = {"bare_per_s": bare, "deletes_per_s": ours, "ratio": ours / bare, "step_per_s": step_rate}
    return {"server": store.kind, "objects": objects, **rates}


class _Timed:
    """A client that notes when the first DeleteObjects began and the last one ended."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.begun = self.ended = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def delete_objects(self, **request: Any) -> Any:
        self.begun = self.begun or time.perf_counter()
        answer = self._client.delete_objects(**request)
        self.ended = time.perf_counter()
        return answer


def _bare(client: Any, listed: list[tuple[str, str]]) -> None:
    """As many calls at once as the step makes, and nothing else."""

    def call(first: int) -> None:
        batch = [{"Key": key, "VersionId": version} for key, version in listed[first : first + _PAGE]]
        client.delete_objects(Bucket="bench", Delete={"Objects": batch})

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(call, range(0, len(listed), _PAGE)))


def _written(client: Any, objects: int) -> list[tuple[str, str]]:
    def put(number: int) -> tuple[str, str]:
        key = f"{PREFIX}{number // 4:06d}"
        return key, client.put_object(Bucket="bench", Key=key, Body=b"x")["VersionId"]

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(put, range(objects)))


def listing(versions: int) -> dict[str, Any]:
    """Memory and time of discovering so many versions, in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_storage", "--list-only", str(versions)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _list_only(versions: int) -> None:
    from pii_tracer.lake.stores.s3.archive_versions import discover_archives
    from tests.s3support import estate

    archive = {"name": "a", "of": "t", "bucket": "bench", "prefix": PREFIX, "format": "parquet"}
    server = _Server(versions)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started = time.perf_counter()
    [found], _ = discover_archives(estate("http://127.0.0.1:9", [archive]), lambda region: server, Path())
    seconds = time.perf_counter() - started
    if len(found.versions) != versions:
        raise SystemExit(f"{len(found.versions)} versions were listed")
    walked = time.perf_counter()
    holders = sum(1 for version in found.versions if version.latest)
    walked = time.perf_counter() - walked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row = {"versions": versions, "mib": peak, "before_mib": before, "seconds": seconds, "walk_seconds": walked}
    print(json.dumps(row | {"latest": holders}))


class _Server:
    """Answers as boto3 gives them, page after page, and keeps nothing."""

    def __init__(self, versions: int) -> None:
        self._versions = versions

    def get_bucket_location(self, **_: Any) -> dict[str, Any]:
        return {"LocationConstraint": "ap-south-1"}

    def get_bucket_versioning(self, **_: Any) -> dict[str, Any]:
        return {"Status": "Enabled"}

    def __getattr__(self, name: str) -> Any:
        from botocore.exceptions import ClientError

        def none(**_: Any) -> None:
            raise ClientError({"Error": {"Code": "NotImplemented"}}, name)

        return none

    def list_object_versions(self, KeyMarker: str = "", **_: Any) -> dict[str, Any]:
        from datetime import datetime, timedelta, timezone

        begin = datetime(2024, 1, 1, tzinfo=timezone.utc)
        first = int(KeyMarker.rpartition("part-")[2].partition("-")[0]) + 1 if KeyMarker else 0
        found = [
            {
                "Key": f"{PREFIX}dt={n // 5000:04d}/part-{n:08d}-{os.urandom(4).hex()}.snappy.parquet",
                "VersionId": os.urandom(16).hex(),
                "IsLatest": n % 4 == 0,
                "Size": n,
                "ETag": f'"{os.urandom(16).hex()}"',
                "StorageClass": "GLACIER",
                "LastModified": begin + timedelta(seconds=n),
            }
            for n in range(first, min(first + _PAGE, self._versions))
        ]
        more = first + _PAGE < self._versions
        return {"Versions": found, "IsTruncated": more, "NextKeyMarker": found[-1]["Key"] if more else ""}


def main() -> None:
    """Run, and print lines or JSON; ends with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--objects", type=int, default=4000)
    parser.add_argument("--listed", type=int, default=1_000_000)
    parser.add_argument("--list-only", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.list_only:
        _list_only(options.list_only)
        return
    listed, deleted = listing(options.listed), deletes(options.objects)
    wanted = min(_TARGET_PER_SECOND, _TARGET_RATIO * deleted["bare_per_s"])
    small, fast = listed["mib"] <= _TARGET_MIB, deleted["deletes_per_s"] >= wanted
    if options.json:
        print(json.dumps({"listing": listed, "deletes": deleted}, indent=1))
    else:
        print(
            f"listed   {listed['versions']:>9,} versions in {listed['seconds']:.1f} s, {listed['mib']:.0f} MiB"
            f" ({listed['before_mib']:.0f} before), walked in {listed['walk_seconds']:.1f} s; at most {_TARGET_MIB} MiB:"
            f" {_met(small)}"
        )
        print(
            f"deleted  {deleted['objects']:>9,} versions on {deleted['server']}: {deleted['deletes_per_s']:,.0f}/s,"
            f" bare DeleteObjects {deleted['bare_per_s']:,.0f}/s, ratio {deleted['ratio']:.2f}"
            f" (the step with the listing before it {deleted['step_per_s']:,.0f}/s);"
            f" at least {wanted:,.0f}/s ({_TARGET_PER_SECOND:,}, or {_TARGET_RATIO} of bare where that is less):"
            f" {_met(fast)}"
        )
    if not (fast and small):
        raise SystemExit(1)


def _met(there: bool) -> str:
    return "met" if there else "missed"


if __name__ == "__main__":
    main()
