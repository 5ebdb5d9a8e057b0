"""The shapes of one file's column chunks while it is searched: asked for where they are known, else written down."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.shapes.chunk_skipping import Shape, Sought
from pii_tracer.scan.shapes.chunk_value_tables import ColumnShape, Place, column_shape
from pii_tracer.scan.value_forms import Patterns


@dataclass
class FileShapes:
    """What is known, and becomes known, of the column chunks of a file.

    data: the file's bytes: of files within it nothing is known. opened: what is known of it, None where nothing is, so
    that it is written down. again: chunks that are decoded whatever their shape. made: what was written down; hollow:
    then, of chunks, the bytes of their pages at which nobody looks who leaves them out. decoded, left: chunks that were
    decoded, and those that were not, since none of the values fits in their shape.
    """

    data: memoryview
    sought: Sought
    opened: Callable[[], Mapping[Place, Shape] | None]
    again: Collection[Place] = ()
    made: dict[Place, Shape] = field(default_factory=dict)
    hollow: Mapping[Place, tuple[range, ...]] = field(default_factory=dict)
    decoded: int = 0
    left: frozenset[Place] = frozenset()

    @cached_property
    def _known(self) -> Mapping[Place, Shape] | None:
        return self.opened()

    @property
    def noting(self) -> bool:
        """Whether shapes are written down."""
        return self._known is None

    def leaves_out(self, place: Place) -> bool:
        """Whether a chunk surely holds none of the values."""
        shape = self._known.get(place) if self._known is not None and place not in self.again else None
        return shape is not None and not self.sought.fits(shape)

    def watched(
        self, batches: Iterable[pa.RecordBatch], columns: Mapping[str, tuple[Place, int]]
    ) -> Iterator[pa.RecordBatch]:
        """The batches of one row group; when all were drawn, its chunks that are no text are written down.

        columns: by name, the place of each chunk and its bytes in the file.
        """
        making: dict[str, ColumnShape | None] = {}
        for batch in batches:
            for name, (_, stored) in columns.items():
                array = batch.column(name)
                making.setdefault(name, column_shape(array.type, stored))
                if (column := making[name]) is not None:
                    column.add(array)
            yield batch
        for name, column in making.items():
            if column is not None and (shape := column.shape()) is not None:
                self.made[columns[name][0]] = shape


class ShapingCollector(Collector):
    """The collector of a file of which shapes are kept."""

    def __init__(self, patterns: Patterns, shapes: FileShapes) -> None:
        super().__init__(patterns)
        self.shapes = shapes


def shapes_in(collector: Collector, data: memoryview) -> FileShapes | None:
    """The shapes of the file that is searched, where some are kept and it is no file within another."""
    shapes = collector.shapes if isinstance(collector, ShapingCollector) else None
    return shapes if shapes is not None and shapes.data is data else None


class ShapeKeeper(Protocol):
    """Keeps the shapes of files."""

    def shapes_of(self, data: memoryview, digest: str, patterns: Patterns) -> FileShapes:
        """What is known of the file with these bytes, of which `digest` is the SHA-256."""

    def keep(self, shapes: FileShapes, scan: FileScan) -> None:
        """Take what became known while the file was searched."""
