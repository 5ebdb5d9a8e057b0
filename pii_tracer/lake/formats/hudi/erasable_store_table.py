"""Hudi tables in HDFS and object stores that steps can erase, by their timelines and file slices: all files lie in the
table's folder."""

from __future__ import annotations

from pii_tracer.lake.formats.hudi.properties import HUDI_BOOTSTRAPPED
from pii_tracer.lake.formats.hudi.store_copy import copied
from pii_tracer.lake.formats.hudi.table_state import hudi_properties, load_hudi, state_of
from pii_tracer.lake.stores.any_place import FolderPath
from pii_tracer.lake.stores.table_look_types import FolderAsked, Looked, TableLocation
from pii_tracer.model.errors import EstateError

BOOTSTRAPPED = (
    "it was bootstrapped, and reads files outside its folder. Ask its owner to rewrite it as a table that contains all"
    " of its rows, then plan again"
)
_NO_NAME = "Hudi's procedures need its name: declare the table in the estate file, then plan again"


def look_at_hudi(asked: FolderAsked) -> Looked:
    """A Hudi table, or why nothing is erased in it.

    Raises:
        EstateError: its properties, timeline or file slices cannot be read.
        OSError: the store refuses.
    """
    place = asked.place
    base = hudi_properties(place).get(HUDI_BOOTSTRAPPED, "")
    if base:
        return Looked(BOOTSTRAPPED, _read_from(place, base))
    if asked.name is None:
        return Looked(_NO_NAME)
    with copied(place) as copy:
        table = load_hudi(copy.folder, shown=str(place))
        return Looked(state_of(table, place, place.location.dataset, asked.name, copy.sizes.get))


def _read_from(place: FolderPath, base: str) -> frozenset[TableLocation]:
    """The place that a table was made of, where it lies in the same store."""
    try:
        return frozenset({place.placed(base).location})
    except EstateError:
        return frozenset()
