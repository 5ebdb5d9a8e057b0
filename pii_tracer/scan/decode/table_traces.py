"""What table formats leave in files beside the rows: their notes about files, and columns of their own.

A folder of this package declares a format's as `TRACES` in its module `traces`; another package registers them in the
entry-point group `pii_tracer.table_traces`.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import ClassVar, Protocol

from pii_tracer.common import plugins
from pii_tracer.scan import decode as own

GROUP = "pii_tracer.table_traces"


class Folder(Protocol):
    """A table's folder, wherever it lies."""

    def __truediv__(self, name: str, /) -> Folder: ...

    def read_text(self, encoding: str) -> str: ...


class TableTraces:
    """The traces of one format; what a format does not have it need not say.

    format: the format's name. makes_columns: whether `columns_made` reads something of a table's folder.
    own_folders: names of folders in which a table of the engine's own lies, whose rows are no rows of people.
    footer_columns: keys in Parquet footers under which a value of a column stands, with that column.
    """

    format: ClassVar[str]
    makes_columns: ClassVar[bool] = False
    own_folders: ClassVar[frozenset[str]] = frozenset()
    footer_columns: ClassVar[Mapping[bytes, str]] = {}

    def is_metadata(self, parts: Sequence[str]) -> bool:
        """Whether a file holds the engine's notes about files, by the parts of its path in the table's folder."""
        return False

    def columns_made(self, root: Folder) -> Mapping[str, Sequence[str]]:
        """Columns of the format's own, with the columns that each is made of. root: the table's folder."""
        return {}

    def names_files(self, parts: Sequence[str]) -> bool:
        """Whether a file may be one that names others, by the parts of its path: such a file is read each time."""
        return type(self).named_files is not TableTraces.named_files

    def named_files(self, parts: Sequence[str], data: memoryview) -> Iterator[str]:
        """Whole locations that a file of metadata names; files that are none of the format's name none.

        Raises:
            Exception: of many kinds, where the file is not what its place says.
        """
        return iter(())

    def told_path(self, text: str, parts: Sequence[str]) -> tuple[str, Sequence[str] | None] | None:
        """A path as metadata at `parts` writes it, in plain, and the folder it is told from: None where it is whole.

        None where the format writes no paths there in a way of its own.

        Raises:
            EstateError, ValueError: it is no path.
        """
        return None


@cache
def table_traces() -> tuple[TableTraces, ...]:
    """Those of every format that is known."""
    names = [f"{own.__name__}.{folder.name}.traces" for folder in pkgutil.iter_modules(own.__path__) if folder.ispkg]
    found = [importlib.import_module(name).TRACES for name in names if importlib.util.find_spec(name)]
    return (*found, *(plugins.load(GROUP, name) for name in plugins.names(GROUP)))
