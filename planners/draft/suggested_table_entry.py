"""What to write of a table in S3 that needs a name, so that it is erased."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from pii_tracer.lake.formats.base import NamedBy
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import RemotePlace
from pii_tracer.lake.stores.s3.table_places import is_nameless
from planners.draft.table_names import names_of


def undeclared_table(
    place: RemotePlace, taken: Iterable[str], catalogs: Collection[str], masked: Callable[[str], str]
) -> str | None:
    """The line of the estate file that declares it; None of other places, and where the line would show a value.

    taken: names of tables that the estate has; catalogs: of its catalogs. masked: a text without values of persons.
    """
    at = str(place.location)
    if (
        place.format is None
        or not is_nameless(place)
        or format_of(place.format).erased_in_s3 is not NamedBy.ESTATE_FILE
    ):
        return None
    line = f"{{name: {names_of([at], taken, catalogs)[at]}, format: {place.format}, location: '{at}'}}"
    return line if at.isprintable() and "'" not in at and masked(line) == line else None
