"""A person's values in the bytes of a row group that no row of hers is in: page headers and column indexes.

What is found here may as well be somebody else's longer word; then one row group more is written again.
"""

from __future__ import annotations

from collections.abc import Collection

from executors.formats.plain_files.parquet_stale_values import StaleSearch, search_of
from executors.formats.plain_files.parquet_surgery.layout import Chunk, Layout, locations

_PATH = 3


class Traces:
    """Looks through row groups of one file by their bytes."""

    def __init__(self, layout: Layout, search: StaleSearch) -> None:
        self._layout = layout
        self._search = search
        self._values = search_of(search.strong)

    def in_indexes(self, groups: Collection[int]) -> set[int]:
        """Row groups with a value in a page's header or in an index of pages.

        Raises:
            Unsuited: the pages of one do not make up its column chunks, or an index points elsewhere.
        """
        return {n for n in groups if any(self._indexed(chunk) for chunk in self._layout.groups[n].chunks)}

    def _indexed(self, chunk: Chunk) -> bool:
        pages = self._layout.pages(chunk)
        locations(self._layout.data, chunk, pages)
        if not self._search.counts(b".".join(chunk.meta[_PATH][1][1]).decode("utf-8", "replace")):
            return False
        extents = [page.header for page in pages] + ([chunk.column_index] if chunk.column_index else [])
        return any(self._values.stand_in(self._bytes(extent)) for extent in extents)

    def _bytes(self, extent: range) -> bytes:
        return bytes(self._layout.data[extent.start : extent.stop])
