"""What looking at a table in a store gave, of whatever format."""

from __future__ import annotations

from dataclasses import dataclass

from pii_tracer.lake.read_result import Found
from pii_tracer.model.locations import HdfsLocation, ObjectLocation

TableLocation = HdfsLocation | ObjectLocation


@dataclass(frozen=True)
class Looked:
    """One table. result: its state, or why nothing is erased in it. reads: places outside of its folder in which files
    of it lie, or may lie."""

    result: Found | str
    reads: frozenset[TableLocation] = frozenset()
