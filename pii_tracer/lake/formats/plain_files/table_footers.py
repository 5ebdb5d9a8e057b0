"""Which table format wrote a Parquet file, as its footer tells: such a file may be one of a table that nobody names."""

from __future__ import annotations

from pii_tracer.lake.formats.plain_files.data_file import StoredFile
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.model.datasets import Format

_OF_ARROW = "ARROW:schema"


def written_for(file: StoredFile) -> str | None:
    """The title of the table format whose writer made the file; None of any other writer, and of other files.

    Arrow writes the entries of a file that it read into the next one, beside one of its own: that is an export.
    """
    if file.format is not Format.PARQUET:
        return None
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.source) as opened:
        entries = {name.decode("utf-8", "replace") for name in opened.metadata.metadata or ()}
    if _OF_ARROW in entries:
        return None
    return next((kind.title for kind in table_formats() if not entries.isdisjoint(kind.footer_entries)), None)
