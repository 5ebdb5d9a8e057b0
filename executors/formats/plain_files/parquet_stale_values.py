"""Values of a person that a Parquet file still has although no row is the person's: in bounds and dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from executors.formats.plain_files.arrow_match import Nobodys, resolve
from executors.formats.plain_files.parquet_dictionaries import Holds, stale_entries, unused_entries
from pii_tracer.common.texts_within import TextsWithin, Within
from pii_tracer.model.datasets import Access, ElementAccess, FieldAccess, MatchTerm
from pii_tracer.model.number_keys import without_fraction

_ONLY_ROWS = "parquet-mr "
"""Writers that make a dictionary of the rows they write, so that it holds nothing else (Spark, Hive, Trino's old one).

`DictionaryValuesWriter.java` in https://github.com/apache/parquet-java: an entry is added when a row has it."""

_ARROW = "parquet-cpp-arrow "
_SCHEMA = b"ARROW:schema"


@dataclass(frozen=True)
class StaleSearch:
    """Searches one file.

    strong: values that stand for the person wherever they are found. compared: as of `compared_leaves`; bounds of these
    are keys: there a longer word is somebody else's. within: the columns whose statistics and dictionaries
    count, None for all. holds: of texts, whether any value of hers is in them. nobodys: columns of which a bound or an
    entry that is exactly such a number is another system's, not hers.
    """

    opened: Callable[..., pq.ParquetFile]
    strong: frozenset[str]
    compared: Mapping[str, str]
    within: tuple[str, ...] | None
    holds: Holds
    nobodys: Nobodys

    def in_writer(self, source: pq.ParquetFile) -> bool:
        """Whether the name of the file's writer has a value."""
        return stand_in(self.strong, source.metadata.created_by or "")

    def anywhere(self, source: pq.ParquetFile) -> bool:
        """Whether any row group has a value in its bounds, or in a dictionary."""
        groups = range(source.num_row_groups)
        return any(self.in_bounds(source, groups)) or any(True for _ in self.in_dictionaries(source, groups))

    def in_bounds(self, source: pq.ParquetFile, groups: Iterable[int]) -> list[bool]:
        """Of each row group, whether its statistics have a value."""
        return [any(self._bound(column) for column in self._columns(source, group)) for group in groups]

    def in_dictionaries(self, source: pq.ParquetFile, groups: Iterable[int]) -> Iterator[int]:
        """The row groups that have a value in an entry of a dictionary, one by one."""
        if not (source.metadata.created_by or "").startswith(_ONLY_ROWS):
            taken = {group: self._encoded(source, group) for group in groups}
            left = {
                path: self.nobodys.get(self._label(path), frozenset()) for paths in taken.values() for path in paths
            }
            yield from stale_entries(self.opened, taken, self.strong, self.holds, left)

    def unused(self, source: pq.ParquetFile, groups: Sequence[int]) -> set[int]:
        """Row groups with entries of dictionaries that no row uses, or that may have some: whose these are, by whatever
        value, nobody can tell. Arrow writes all entries of a column of the type dictionary into every row group.
        """
        if (source.metadata.created_by or "").startswith(_ONLY_ROWS) or _made_of_rows(source):
            return set()
        meta = source.metadata
        found = {
            group
            for group in groups
            for number in range(meta.num_columns)
            if meta.row_group(group).column(number).has_dictionary_page and not _is_text(meta.schema.column(number))
        }
        texts = [meta.schema.column(n).path for n in range(meta.num_columns) if _is_text(meta.schema.column(n))]
        return found | unused_entries(self.opened, texts, [group for group in groups if group not in found])

    def counts(self, path: str) -> bool:
        """Whether a column, by its path, is one whose statistics and dictionaries count."""
        return self.within is None or _lies_in(path, self.within)

    def _label(self, path: str) -> str:
        return self.compared.get(path, path).lower()

    def _columns(self, source: pq.ParquetFile, group: int) -> list[Any]:
        meta = source.metadata
        columns = [meta.row_group(group).column(number) for number in range(meta.num_columns)]
        return [column for column in columns if self.counts(column.path_in_schema)]

    def _bound(self, column: Any) -> bool:
        if not column.is_stats_set or not column.statistics.has_min_max:
            return False
        word = column.path_in_schema in self.compared
        left = self.nobodys.get(self._label(column.path_in_schema), frozenset())
        both = (str(bound) for bound in (column.statistics.min, column.statistics.max))
        bounds = [bound for bound in both if without_fraction(bound.strip()) not in left]
        return any(stand_in(self.strong, bound, word=word) for bound in bounds)

    def _encoded(self, source: pq.ParquetFile, group: int) -> list[str]:
        columns = self._columns(source, group)
        return sorted({c.path_in_schema for c in columns if c.physical_type == "BYTE_ARRAY" and c.has_dictionary_page})


def compared_leaves(source: pq.ParquetFile, terms: Iterable[MatchTerm]) -> dict[str, str]:
    """By their paths, however a writer calls what is in lists and maps, the leaves of which whole values are compared
    with keys of one column; and the labels of their terms.
    """
    schema, found = source.schema_arrow, dict[str, str]()
    starts = [*accumulate((_leaves(kind) for kind in schema.types), initial=0)]
    for term in terms if starts[-1] == len(source.schema) else ():
        position = resolve(schema.names, term.column)
        if term.beside or position is None:
            continue
        leaf = _leaf(schema.types[position], term.access)
        if leaf is not None:
            found[source.schema.column(starts[position] + leaf).path] = term.label()
    return found


def _leaf(kind: pa.DataType, access: Sequence[Access]) -> int | None:
    """The number of a leaf among those of a type; None where something else is compared: a text's member, a struct."""
    number = 0
    for step in access:
        if isinstance(step, FieldAccess) and pa.types.is_struct(kind):
            position = resolve([field.name for field in kind], step.name)
            if position is None:
                return None
            number += sum(_leaves(field.type) for field in [*kind][:position])
            kind = kind.field(position).type
        elif isinstance(step, ElementAccess) and (pa.types.is_map(kind) or hasattr(kind, "value_field")):
            kind = kind.key_type if pa.types.is_map(kind) else kind.value_type
        else:
            return None
    return None if pa.types.is_nested(kind) else number


def _leaves(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _leaves(kind.storage_type)
    return sum(_leaves(kind.field(n).type) for n in range(kind.num_fields)) if pa.types.is_nested(kind) else 1


def _made_of_rows(source: pq.ParquetFile) -> bool:
    """Whether Arrow wrote the file, and no column was a dictionary: then each dictionary was made of the rows."""
    meta = source.metadata
    if not (meta.created_by or "").startswith(_ARROW) or _SCHEMA not in (meta.metadata or {}):
        return False
    return not any("dictionary<" in str(field.type) for field in source.schema_arrow)


def _is_text(column: Any) -> bool:
    return bool(column.physical_type == "BYTE_ARRAY" and column.logical_type.type != "DECIMAL")


def _lies_in(path: str, columns: tuple[str, ...]) -> bool:
    """Whether a leaf's path is one of some columns, or a member of it."""
    return any(path.lower() == c.lower() or path.lower().startswith(c.lower() + ".") for c in columns)


@lru_cache(maxsize=4)
def search_of(values: frozenset[str]) -> TextsWithin:
    """What finds some values in texts. There can be very many, and each file is asked several times."""
    return TextsWithin(values)


def stand_in(values: frozenset[str], text: str, *, word: bool = False) -> bool:
    """Whether one of some values stands in a text, and not only as the beginning of a longer number.

    word: nor inside of a longer word.
    """
    return any(not _is_longer(found, word=word) for found in search_of(values).found(text))


def _is_longer(found: Within, *, word: bool) -> bool:
    if found.text[-1].isdigit() and found.behind.isdigit():
        return True
    return word and any(map(str.isalpha, found.text)) and (found.behind.isalnum() or found.before.isalnum())
