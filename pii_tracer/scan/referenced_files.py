"""Which files the metadata of a table names, by their whole locations: they may lie beyond the table's folder."""

from __future__ import annotations

from collections.abc import Iterator

from pii_tracer.scan.decode.table_traces import table_traces


def names_files(key: str) -> bool:
    """Whether a file may name others, by its place: what it names is read from its bytes each time."""
    return any(traces.names_files(key.split("/")) for traces in table_traces())


def named_files(key: str, data: memoryview) -> Iterator[str]:
    """Locations that a file of metadata names: lists of files, and logs of what became of them.

    Names that are told from the table's own folder are left out. key: the file's place; other files name none.

    Raises:
        Exception: of many kinds, where the file is not what its place says; the scan says so of it, too.
    """
    for traces in table_traces():
        yield from traces.named_files(key.split("/"), data)
