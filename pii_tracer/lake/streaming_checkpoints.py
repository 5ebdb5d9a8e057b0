"""What streaming queries of Spark leave beside their results: checkpoints with state, and the logs of file sinks."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.read_result import Found
from pii_tracer.model.datasets import Format

SINK_LOG = "_spark_metadata"
"""Folder in a streaming file sink's output: Spark reads the output by the files and sizes that it names."""


def is_checkpoint(path: Path) -> bool:
    """Whether a folder is a streaming query's checkpoint
    (https://spark.apache.org/docs/latest/structured-streaming-programming-guide.html, "Recovering from Failures")."""
    return (path / "metadata").is_file() and (path / "offsets").is_dir() and (path / "commits").is_dir()


def checkpoint_state(path: Path, paths: EstatePaths) -> Found:
    """A checkpoint as it is now. snapshot: the newest batch that the query committed."""
    batches = [int(p.name) for p in (path / "commits").iterdir() if p.name.isdecimal()]
    files = [p for p in (path / "state").rglob("*") if p.is_file()] if (path / "state").is_dir() else []
    return Found(
        TableState(
            dataset=paths.dataset_of(path),
            table=None,
            location=str(path),
            format=Format.STREAM_CHECKPOINT,
            snapshot=str(max(batches, default=-1)),
            columns=(),
            files=len(files),
            bytes=sum(p.stat().st_size for p in files),
        )
    )
