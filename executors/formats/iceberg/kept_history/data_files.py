"""One data file of a table's history without a person's rows, and what a manifest says of it then.

Columns are found by their field ids: a file keeps the names that columns had when it was written
(https://iceberg.apache.org/spec/#column-projection).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from executors.engine.local_files import refusal
from executors.formats.plain_files import parquet_rewrite
from executors.formats.plain_files.arrow_match import BY_HAND, Keys, Nobodys, RowsError
from executors.formats.plain_files.parquet_dictionaries import Holds
from executors.formats.plain_files.parquet_rewrite import Seen
from pii_tracer.common.parquet_file_checks import is_encrypted_file
from pii_tracer.model.datasets import Access, FieldAccess, KeyPart, Match, MatchTerm
from pii_tracer.model.errors import RunError
from pii_tracer.run.masked_place_names import shown_path

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

_T = TypeVar("_T")
_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class Persons:
    """How the persons' rows are found. now: the table's schema, whose names the match has. properties: the
    table's. nobodys: columns of other systems' numbers.
    """

    match: Match
    keys: Keys
    strong: frozenset[str]
    holds: Holds
    now: Schema
    properties: Mapping[str, str]
    nobodys: Nobodys

    def survey(self, path: Path) -> Seen:
        """Whether a file holds them.

        Raises:
            RunError: that cannot be told.
        """
        return _guarded(path, lambda: self._survey(path))

    def write(self, path: Path, sink: IO[bytes]) -> None:
        """Write a file's other rows, and read back what was written.

        Raises:
            RunError: it cannot be written as it was, or does not give back what was to stay.
        """
        _guarded(path, lambda: self._write(path, sink))

    def _survey(self, path: Path) -> Seen:
        if is_encrypted_file(path):
            raise RowsError(parquet_rewrite.ENCRYPTED, todo=BY_HAND)
        return parquet_rewrite.survey(
            lambda **options: pq.ParquetFile(path, **options),
            self._match_in(path),
            self.keys,
            self.strong,
            None,
            self.holds,
            self.nobodys,
        )

    def _write(self, path: Path, sink: IO[bytes]) -> None:
        match, written = self._match_in(path), Path(sink.name)
        parquet_rewrite.write(lambda **options: pq.ParquetFile(path, **options), sink, match, self.keys)
        sink.flush()
        parquet_rewrite.compare(
            lambda **options: pq.ParquetFile(path, **options),
            lambda **options: pq.ParquetFile(written, **options),
            match,
            self.keys,
        )

    def _match_in(self, path: Path) -> Match:
        fields = list(pq.read_schema(path))
        if not all(field.metadata and _ID in field.metadata for field in fields):
            raise RowsError(
                "a data file has no column ids (it was added to the table unchanged)",
                todo="rewrite the data file (rewrite_data_files), and expire the snapshots that reference it",
            )
        terms = [found for term in self.match.terms if (found := self._term_in(term, fields)) is not None]
        if not terms:
            raise RowsError(
                "a data file of a snapshot has none of the columns that find the persons",
                todo="expire the snapshots that name it, or remove the table from `keep_history`; then plan again",
            )
        return Match(terms=tuple(terms))

    def _term_in(self, term: MatchTerm, there: list[pa.Field]) -> MatchTerm | None:
        """A term with the names that a file has; None where it lacks a column."""
        places = [self._place_in(part, there) for part in term.parts]
        found = [place for place in places if place is not None]
        if len(found) < len(places):
            return None
        beside = [
            part.model_copy(update={"column": column, "access": access})
            for part, (column, access) in zip(term.beside, found[1:], strict=True)
        ]
        column, access = found[0]
        return term.model_copy(update={"column": column, "access": access, "beside": tuple(beside)})

    def _place_in(self, term: KeyPart, there: list[pa.Field]) -> tuple[str, tuple[Access, ...]] | None:
        now: tuple[NestedField, ...] = self.now.fields
        found = _same(term.column, now, there)
        if found is None:
            return None
        column, access = found[1].name, list[Access]()
        for step in term.access:
            if isinstance(step, FieldAccess):
                found = _same(step.name, *_fields_of(found))
                if found is None:
                    return None
                step = FieldAccess(name=found[1].name)
            access.append(step)
        return column, tuple(access)


def _same(name: str, now: tuple[NestedField, ...], there: list[pa.Field]) -> tuple[NestedField, pa.Field] | None:
    """A field of the table by its name of now, and the same field of a file by its id."""
    field = next((f for f in now if f.name == name), None) or next(
        (f for f in now if f.name.lower() == name.lower()), None
    )
    if field is None:
        raise RowsError(
            "the table has no column with the name by which the plan finds the persons", todo="make the plan again"
        )
    same = next((f for f in there if (f.metadata or {}).get(_ID) == str(field.field_id).encode()), None)
    return None if same is None else (field, same)


def _fields_of(at: tuple[NestedField, pa.Field]) -> tuple[tuple[NestedField, ...], list[pa.Field]]:
    kind = at[1].type
    return getattr(at[0].field_type, "fields", ()), [kind.field(i) for i in range(kind.num_fields)]


@dataclass(frozen=True)
class Metrics:
    """What a manifest says of a file. counts and bounds by field id; None where they are not known (they are optional).

    https://iceberg.apache.org/spec/#data-file-fields
    """

    rows: int
    size: int
    column_sizes: Mapping[int, int] | None
    value_counts: Mapping[int, int] | None
    null_counts: Mapping[int, int] | None
    lower: Mapping[int, bytes] | None
    upper: Mapping[int, bytes] | None
    splits: list[int] | None


def metrics_of(path: Path, properties: Mapping[str, str]) -> Metrics:
    """The metrics of a new file, from its footer.

    Raises:
        RunError: it cannot be read.
    """
    size = path.stat().st_size
    footer = _guarded(path, lambda: pq.read_metadata(path))
    try:
        told = _told(footer, properties)
    except Exception:  # types of other writers, of which PyIceberg takes no bounds: readers do without
        return Metrics(footer.num_rows, size, None, None, None, None, None, None)
    return Metrics(
        rows=footer.num_rows,
        size=size,
        column_sizes=told["column_sizes"],
        value_counts=told["value_counts"],
        null_counts=told["null_value_counts"],
        lower=told["lower_bounds"],
        upper=told["upper_bounds"],
        splits=told["split_offsets"],
    )


def _told(footer: pq.FileMetaData, properties: Mapping[str, str]) -> dict[str, Any]:
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
        pyarrow_to_schema,
    )

    schema = pyarrow_to_schema(footer.schema.to_arrow_schema())
    return data_file_statistics_from_parquet_metadata(
        footer, compute_statistics_plan(schema, dict(properties)), parquet_path_to_id_mapping(schema)
    ).to_serialized_dict()


def _guarded(path: Path, act: Callable[[], _T]) -> _T:
    """Do something with one file; the libraries' messages can quote data, so only their kind is told."""
    try:
        return act()
    except RunError as error:
        raise RunError(error.what, where=shown_path(str(path)), todo=error.todo) from None
    except Exception as error:
        if isinstance(error, OSError) and (refused := refusal(error, str(path))):
            raise refused from None
        what = f"the file cannot be read as Parquet: {type(error).__name__}"
        raise RunError(what, where=shown_path(str(path)), todo=BY_HAND) from None
