"""What sources say about datasets beside lineage: tags, life cycle, where and in what they are stored."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.datasets import DatasetId, Frozen


class Tag(Frozen):
    """A tag of a dataset, or of one of its fields (https://openlineage.io/docs/spec/facets/dataset-facets/tags)."""

    dataset: DatasetId
    field: str | None
    key: str
    value: str
    source: str | None = None


class Change(Frozen):
    """A change of a dataset's life, told by `lifecycleStateChange`. at: when it was told last.

    CREATE, OVERWRITE, TRUNCATE, ALTER: the dataset is the same one; older versions of it can hold what was there.
    DROP: the name is gone, the files may live: it stays a dataset of the graph. RENAME: `previous` is its old name,
    and all of its columns go over; the old name stays a dataset too.
    """

    dataset: DatasetId
    change: str
    previous: DatasetId | None = None
    at: str | None = None


class Described(Frozen):
    """A facet that says where or in what a dataset is: `dataSource`, `catalog`, `storage`, `version`, as told last."""

    dataset: DatasetId
    facet: str
    content: tuple[tuple[str, str], ...]
    at: str | None = None


class Parent(Frozen):
    """A job that was started by another one."""

    job: str
    parent: str


class Notes(Frozen):
    """All of it, sorted."""

    tags: tuple[Tag, ...] = ()
    changes: tuple[Change, ...] = ()
    described: tuple[Described, ...] = ()
    parents: tuple[Parent, ...] = ()


def save_notes(notes: Notes, file: Path) -> None:
    """Write the notes whole or not at all."""
    write_atomic(file, (notes.model_dump_json(indent=1) + "\n").encode(), mode=0o600)
