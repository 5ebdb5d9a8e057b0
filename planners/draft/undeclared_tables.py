"""Tables in S3 that nobody names, by the keys of objects alone, and what to write so that they are erased."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from pii_tracer.lake.formats.base import NamedBy
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.lake.inventory import RemotePlace
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.locations import object_uri
from planners.draft.object_tables import tables_of
from planners.draft.table_names import names_of

_METADATA_FILE = ".metadata.json"


def tables_below(keys: Iterable[str]) -> dict[str, Format]:
    """Folders that are tables which an estate file can declare, or bare folders of files of one format."""
    marks = {
        folder: one.name if one.erased_in_s3 is NamedBy.ESTATE_FILE else None
        for one in table_formats()
        for folder in one.metadata_folders
    }
    return tables_of(keys, marks)


def undeclared_tables(
    place: RemotePlace, taken: Iterable[str], catalogs: Collection[str], masked: Callable[[str], str]
) -> tuple[str, ...]:
    """For each table in a root in S3 that nobody names, what to write; without those whose names hold a value.

    taken: names of tables that the estate has; catalogs: of its catalogs. masked: a text without values of persons.
    """
    if place.tables:
        return ()
    current = (version.key for version in place.versions if version.latest and not version.delete_marker)
    keys = {_like(key) for key in current}
    declared = {object_uri(place.location.bucket, folder): kind for folder, kind in tables_below(keys).items()}
    names = names_of(declared, taken, catalogs)
    lines = [
        f"{{name: {name}, format: {declared[at]}, location: '{at}'}}"
        for at, name in names.items()
        if at.isprintable() and "'" not in at
    ]
    lines += [f"{at}: its catalog, as it is {title}'s" for at, title in _of_catalogs(place, keys)]
    return tuple(line for line in lines if masked(line) == line)


def _of_catalogs(place: RemotePlace, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Tables of formats that a catalog has to name, with the format's title."""
    titles = {
        folder: one.title
        for one in table_formats()
        if one.erased_in_s3 is NamedBy.CATALOG and one.name not in PLAIN
        for folder in one.metadata_folders
    }
    found = {}
    for key in keys:
        *folders, name = key.split("/")
        if len(folders) > 1 and folders[-1] in titles and name.endswith(_METADATA_FILE):
            found[object_uri(place.location.bucket, "/".join(folders[:-1]))] = titles[folders[-1]]
    yield from sorted((at, title) for at, title in found.items() if at.isprintable())


def _like(key: str) -> str:
    """One key for all in a folder whose names begin and end alike: buckets have millions of objects."""
    folder, slash, name = key.rpartition("/")
    hidden = "_" if name.startswith(("_", ".")) else ""
    return f"{folder}{slash}{hidden}x.{'.'.join(name.rsplit('.', 2)[1:])}"
