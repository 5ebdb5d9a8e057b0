"""What the sweep of one table asks of the table's format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from executors.sweep.sweep_stores import Store
from pii_tracer.retention.sweep_rules import Held, Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Freed:
    """Old versions that the table forgets, how many, and the sizes of files that become free so.

    held: branches and tags that keep others.
    """

    sizes: Mapping[str, int]
    versions: int
    held: tuple[Held, ...]


@dataclass(frozen=True)
class Judged:
    """What the engine and the table's metadata say of listed files.

    unneeded: by the engine, as it spells them. needed: by the table's metadata, as listings have them. known: of files,
    whether they are the table's own; the others are perhaps somebody's. removed: when each was removed from the table
    (ms since 1970), where that is told.
    """

    unneeded: Sequence[str]
    needed: frozenset[str]
    known: Callable[[str], bool]
    removed: Mapping[str, int]
    freed: Freed | None = None


class FormatSweep(ABC):
    """The sweep of one table by its format's own statements.

    sees_hidden: whether the engine itself passes over names that begin with `_`, and has to be told of all files.
    """

    sees_hidden: ClassVar[bool] = False

    def __init__(self, spark: SparkSession, target: Target, store: Store, now: datetime) -> None:
        self.spark, self.target, self.store, self.now = spark, target, store, now

    @abstractmethod
    def judge(self, view: str) -> Judged:
        """What could go of the files that a view lists. Nothing is changed.

        view: `path`, `length`, `isDir` and `modificationTime`.
        """

    def forget_versions(self) -> None:
        """Take old versions out of the table's metadata, with the files that they alone need."""
        raise NotImplementedError

    @abstractmethod
    def remove(self, view: str) -> None:
        """Have the engine remove the files of a view that it does not need. view: as in `judge`."""

    @abstractmethod
    def needed(self) -> frozenset[str]:
        """Files that the table's metadata names now."""

    def has_to_stand(self, path: str) -> bool:
        """Whether a file that the metadata names has to be there. Writers may remove older metadata files."""
        return True
