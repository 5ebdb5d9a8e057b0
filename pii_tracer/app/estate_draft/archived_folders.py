"""Bare folders in S3 that are archives: their objects are in an archive class, or their bucket is replicated."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pii_tracer.app.estate_draft.provisional_estate import Declared
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import Inventory
from pii_tracer.model.datasets import PLAIN
from pii_tracer.model.locations import S3Location, is_s3, s3_location
from planners.draft.archive_guesses import ArchiveGuess, tables_of_archives


def guessed_archives(
    estate: Estate, found: Inventory, declared: Declared, source: str | None
) -> tuple[dict[str, ArchiveGuess], list[str]]:
    """By place, the folders among drafted tables that are archives of a table with their name; and notes of others.

    source: the table that may know the persons. Nothing is read but settings of buckets.
    """
    folders = {at: s3_location(at) for _, kind, at in declared if kind in PLAIN and is_s3(at)}
    if not folders:
        return {}, []
    tables = {name for name, _, at in declared if at not in folders} | {t.table for t in found.tables if t.table}
    tables -= {name for name, _, at in declared if at in folders}
    of = tables_of_archives({place.key for place in folders.values()}, tables, source)
    reasons = _reasons(estate, folders, of, _classes(found, folders))
    formats = {at: kind for _, kind, at in declared}
    made, names = dict[str, ArchiveGuess](), set[str]()
    for at, place in sorted(folders.items()):
        if place.key not in of or at not in reasons:
            continue
        base = name = place.key.rpartition("/")[2]
        number = 2
        while name in names:
            name, number = f"{base}-{number}", number + 1
        names.add(name)
        made[at] = ArchiveGuess(name, of[place.key], place.bucket, place.prefix, formats[at], reasons[at])
    notes = [
        f"{at} may be an archive ({why}): if it has old copies of a table, take it out of `tables` and declare it under"
        " `archives`"
        for at, why in reasons.items()
        if at not in made
    ]
    return made, notes


def _reasons(
    estate: Estate, folders: Mapping[str, S3Location], of: Mapping[str, str], classes: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Why folders may be archives, by place. Buckets are asked only for folders that have the name of a table."""
    from pii_tracer.lake.stores.s3.archive_versions import s3_clients
    from pii_tracer.lake.stores.s3.replicas import readable_replicas

    clients, reasons = s3_clients(estate), dict[str, str]()
    for at, place in folders.items():
        replicas = readable_replicas(clients, place.bucket, place.prefix) if place.key in of else []
        told = [f"objects in {name}" for name in sorted(classes.get(at, ()))]
        told += [f"replicated to {bucket}" for bucket in replicas]
        if told:
            reasons[at] = ", ".join(told)
    return reasons


def _classes(found: Inventory, folders: Mapping[str, S3Location]) -> dict[str, set[str]]:
    """The archive classes of current objects in folders, by place."""
    from pii_tracer.lake.stores.s3.archive_versions import ARCHIVED_CLASSES

    by_folder = {(place.bucket, place.key): at for at, place in folders.items()}
    classes: dict[str, set[str]] = {}
    for remote in found.remote:
        for version in remote.versions:
            if version.storage_class not in ARCHIVED_CLASSES or not version.latest:
                continue
            ends = (end for end, sign in enumerate(version.key) if sign == "/")
            for folder in ((remote.location.bucket, version.key[:end]) for end in ends):
                if folder in by_folder:
                    classes.setdefault(by_folder[folder], set()).add(version.storage_class)
    return classes
