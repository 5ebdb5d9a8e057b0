"""Installs the toy format as a package would: a distribution with entry points in a folder that Python looks into."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from pii_tracer.common import plugins
from pii_tracer.lake.formats import registry
from pii_tracer.verify.formats import registry as verifiers
from planners.formats import registry as planners

ENTRY_POINTS: Mapping[str, str] = {
    "pii_tracer.formats": "tests.toyformat.adapter:ToyFormat",
    "pii_tracer.format_planners": "tests.toyformat.planner:ToyPlanner",
    "pii_tracer.format_executors": "tests.toyformat.executor:ToyExecutor",
    "pii_tracer.format_verifiers": "tests.toyformat.table_reader:ToyReader",
}
"""What is registered under `toy`, by group."""

_CACHED = (
    plugins.registered,
    plugins.names,
    plugins.load,
    registry.table_formats,
    registry.format_of,
    registry.actions_with,
    registry.known_actions,
    registry.metadata_folders,
    planners.planner_of,
    planners.format_planners,
    planners.format_executors,
    planners.spark_executors,
    verifiers.reader_of,
)


def write_distribution(folder: Path) -> Path:
    """Write the distribution `toy` into a folder, which then belongs on the module search path. Its path."""
    info = folder / "toy-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n", encoding="utf-8")
    groups = (f"[{group}]\ntoy = {target}\n" for group, target in ENTRY_POINTS.items())
    (info / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
    return folder


@contextmanager
def toy_installed(folder: Path) -> Iterator[None]:
    """Within it the toy format is installed in this process. folder: an empty one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(write_distribution(folder)))
        _forget()
        yield
    _forget()


def _forget() -> None:
    importlib.invalidate_caches()
    for cached in _CACHED:
        cached.cache_clear()
