"""Which folders of a bucket may be archives of a table, by the names of both."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pii_tracer.model.datasets import Format
from planners.draft.table_names import word_of


@dataclass(frozen=True)
class ArchiveGuess:
    """A prefix of a bucket with old copies of a table. of: the table. why: what tells that it is an archive."""

    name: str
    of: str
    bucket: str
    prefix: str
    format: Format
    why: str


def tables_of_archives(keys: Iterable[str], tables: Collection[str], source: str | None = None) -> Mapping[str, str]:
    """The table that each key of a folder is an archive of: it is called as the folder, or one around it, is.

    Of several tables it is the source of the persons; otherwise nobody can tell.
    """
    found = {}
    for key in keys:
        for folder in reversed(key.strip("/").split("/")):
            named = [table for table in tables if table.rpartition(".")[2].lower() == word_of(folder)]
            if len(named) == 1 or source in named:
                found[key] = source if source in named and source is not None else named[0]
                break
    return found
