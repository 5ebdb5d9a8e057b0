"""A file larger than memory: what it takes to write one again, or to search it, does not follow the file's size.

Each runs in a process of its own, first on a file of 6 MB and then on one of 60 MB, and tells its peaks: of what it has
allocated (`RssAnon`), as the pages of a mapped file are the system's to take back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow import orc

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format
from pii_tracer.scan import folder_scan
from pii_tracer.scan.decode import dispatch
from pii_tracer.scan.value_forms import build_patterns
from tests.executors.world import EMAIL, UID, Keyring, Steps, context
from tests.sparksession import SparkEstate

MB = 1 << 20
SMALL, BIG = 6 * MB, 60 * MB
ALLOWED = 18 * MB
"""Of the 54 MB that the second file is larger by: allocators keep some of what was freed."""
FRUGAL = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "0",
    "MALLOC_MMAP_THRESHOLD_": str(MB // 16),
}
"""An allocator that gives back what is freed: left to itself, Arrow's kept 3 to 27 MB, by chance."""
_CELL, _BATCH = 4000, 250
_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "uid", "type": "long"},
        {"name": "email", "type": "string"},
        {"name": "note", "type": "string"},
    ],
}
ENDINGS = {
    "csv in gzip": ".csv.gz",
    "csv in deflate": ".csv.deflate",
    "csv in zstd": ".csv.zst",
    "json in gzip": ".json.gz",
    "avro": ".avro",
    "orc": ".orc",
    "parquet": ".parquet",
}


def rows(size: int) -> Iterator[list[dict[str, Any]]]:
    """In pieces; the person in the first and the last."""
    count = size // _CELL
    for start in range(0, count, _BATCH):
        mine = {start} if start == 0 or start + _BATCH >= count else set()
        yield [
            {
                "uid": UID if n in mine else n,
                "email": EMAIL if n in mine else f"b{n}@x.example",
                "note": f"{n:>{_CELL}}",
            }
            for n in range(start, min(start + _BATCH, count))
        ]


def write(path: Path, kind: str, size: int) -> None:
    path.parent.mkdir()
    if kind == "avro":
        with path.open("wb") as stream:
            fastavro.writer(stream, _SCHEMA, (row for piece in rows(size) for row in piece))
    elif kind == "orc":
        with orc.ORCWriter(str(path), stripe_size=MB) as writer:
            for piece in rows(size):
                writer.write(pa.Table.from_pylist(piece))
    elif kind == "parquet":
        with pq.ParquetWriter(path, pa.Table.from_pylist(next(rows(size))).schema, compression="none") as writer:
            for piece in rows(size):
                writer.write_table(pa.Table.from_pylist(piece))
    else:
        # packed and no smaller: a copy of the packed bytes must be seen as well
        packer: Any = zlib.compressobj(0, wbits=31 if path.suffix == ".gz" else 15)
        if path.suffix == ".zst":  # very much smaller, as it packs nothing in its lowest level, too
            packer = zstandard.ZstdCompressor().compressobj()
        with path.open("wb") as stream:
            for n, piece in enumerate(rows(size)):
                lines = [
                    ",".join(map(str, row.values())) if kind.startswith("csv") else json.dumps(row) for row in piece
                ]
                header = ["uid,email,note"] if kind.startswith("csv") and not n else []
                stream.write(packer.compress("".join(f"{line}\n" for line in (*header, *lines)).encode()))
            stream.write(packer.flush())


def rewrite(path: Path, kind: str) -> None:
    """What a step does, from its check to its verification."""
    fmt = kind.split()[0]
    estate = Estate(
        version=1,
        estate="memory",
        environment="local",
        catalogs={},
        roots=(),
        lineage=LineageSources(),
        subjects=(Subject(name="c", source="t", key="uid"),),
    )
    steps = Steps(context(SparkEstate(estate, path.parent)), "files", None, path.parent, Format(fmt))
    facts = steps.once(Action.FILES_REWRITE, format=fmt)
    assert facts["rows_deleted"] == 2, facts


def search(path: Path, kind: str) -> None:
    """What the verifier does with a file."""
    dispatch.BLOCK = folder_scan.WINDOW = MB  # so that files of these sizes are large ones
    found = folder_scan.scan_file(
        path.parent, path.name, path, build_patterns([Keyring.sets["uid"], Keyring.sets["email"]])
    )
    assert (found.unread, {hit.key_set for hit in found.hits}) == ((), {"uid", "email"}), found


def allocated() -> int:
    """Bytes that this process has in memory and no file behind."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) * 1024


def tell(act: str, kind: str, base: str) -> None:
    """In the process of its own: the peaks on the small file and on the big one, in bytes."""
    peaks = []
    for name in ("small", "big"):
        seen, over = [allocated()], threading.Event()

        def look(seen: list[int] = seen, over: threading.Event = over) -> None:
            while not over.wait(0.002):
                seen.append(allocated())

        looking = threading.Thread(target=look)
        looking.start()
        {"rewrite": rewrite, "search": search}[act](Path(base, name, f"part{ENDINGS[kind]}"), kind)
        over.set()
        looking.join()
        peaks.append(max(seen))
    print(*peaks)


@pytest.mark.parametrize(
    # CSV is parsed letter by letter, four times
    "kind",
    [pytest.param(kind, marks=pytest.mark.nightly if kind.startswith("csv") else ()) for kind in ENDINGS],
)
@pytest.mark.parametrize("act", ["rewrite", "search"])
def test_memory_does_not_follow_the_file(tmp_path: Path, act: str, kind: str) -> None:
    for name, size in (("small", SMALL), ("big", BIG)):
        write(tmp_path / name / f"part{ENDINGS[kind]}", kind, size)
    code = f"from tests.executors.formats.plain_files.test_files_memory import tell\ntell({act!r}, {kind!r}, {str(tmp_path)!r})"
    where = Path(__file__).parents[4]
    env = os.environ | FRUGAL
    done = subprocess.run([sys.executable, "-c", code], cwd=where, env=env, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    small, big = map(int, done.stdout.split())
    assert big - small < ALLOWED, f"{(big - small) / MB:.0f} MB more"
