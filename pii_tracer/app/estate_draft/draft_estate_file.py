"""A first estate file made from what is there: catalogs, tables, and guesses of who the persons are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pii_tracer.app.estate_draft.archived_folders import guessed_archives
from pii_tracer.app.estate_draft.catalog_names import by_jobs, by_themselves, refuse_silent, renamed
from pii_tracer.app.estate_draft.delimited_text import text_options, windows_text, without_values
from pii_tracer.app.estate_draft.given_places import Places, with_roots
from pii_tracer.app.estate_draft.lineage_of_draft import DraftLineage, read_lineage
from pii_tracer.app.estate_draft.places_in_stores import refuse_unseen, unseen, with_object_stores
from pii_tracer.app.estate_draft.places_of_catalogs import (
    folders_in_stores,
    in_object_stores,
    roots_of_catalogs,
    written,
)
from pii_tracer.app.estate_draft.provisional_estate import Declared, Say, look, unfinished_estate
from pii_tracer.app.estate_draft.store_sections import refuse_unknown, refuse_unused
from pii_tracer.app.estate_draft.table_samples import sampled_tables
from pii_tracer.app.estate_draft.unnamed_tables import lacking_catalogs, unnamed_tables, without_persons
from pii_tracer.common import plugins
from pii_tracer.common.plurals import counted
from pii_tracer.config.catalogs import GROUP, CatalogType
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.hdfs.places import HdfsKind
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.errors import LineageError
from pii_tracer.model.locations import object_location
from planners.draft.archive_guesses import ArchiveGuess
from planners.draft.column_guesses import may_tell_of_person
from planners.draft.draft_roots import development_roots
from planners.draft.lineage_hints import writers_of
from planners.draft.names_that_are_values import without_telling_names
from planners.draft.subject_guesses import SubjectGuess, better_folder, guess_subjects
from planners.draft.table_names import names_of

_AGREED = frozenset({HdfsKind.SNAPSHOT, HdfsKind.TEMPORARY})


@dataclass(frozen=True)
class Draft:
    """What a first estate file says. declared: tables that no catalog names: name, format and place. texts: how CSV
    among them is read, by name, where no comma separates its cells.

    warehouses: catalogs that folders of tables look like, by name. subjects: guesses, the most likely first.
    unread: tables whose columns were not looked into, as they are large or could not be read. placed: roots
    that nobody named, and where tables of the catalogs lie. uncompiled: dbt projects without a manifest.
    deletable: by NameNode, paths of snapshots and of jobs' left-overs, which owners have to agree to lose.
    archives: prefixes of buckets with old copies of tables. writers: jobs that the lineage names.
    notes: what else somebody has to look at.
    """

    estate: str
    places: Places
    declared: tuple[tuple[str, Format, str], ...]
    texts: Mapping[str, Mapping[str, Any]]
    warehouses: Mapping[str, Mapping[str, str]]
    dev_roots: tuple[str, ...]
    subjects: tuple[SubjectGuess, ...]
    tables: int
    unread: tuple[str, ...]
    gaps: tuple[str, ...]
    placed: tuple[str, ...] = ()
    uncompiled: tuple[str, ...] = ()
    deletable: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    archives: tuple[ArchiveGuess, ...] = ()
    writers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def draft_estate(name: str, places: Places, base: Path, say: Say) -> Draft:
    """Look at what the places hold. base: the folder that the estate file will lie in.

    Raises:
        UsageError: a place lacks something that its catalog or store needs, or is not there.
        EstateError: a place cannot be looked into.
        LineageError: a source of the lineage cannot be read.
    """
    given, notes = places.roots, list[str]()
    places, found = _seen(name, places, base, say, notes)
    warehouses = _warehouses(found, base)
    encodings = windows_text(found, base, notes)
    there = {**unnamed_tables(found, base), **dict.fromkeys(encodings, Format.CSV)}
    unnamed = without_persons(there, (*places.roots, *places.in_stores))
    if apart := len(there) - len(unnamed):
        notes.append(
            f"{counted(apart, 'table')} in folders whose names look like mails, phones or numbers of persons: declare"
            " them at places without such names"
        )
    notes += lacking_catalogs(found, (*places.roots, *places.in_stores))
    uncompiled = tuple(project for project in places.lineage.get("dbt", ()) if not _is_compiled(base / project))
    lineage, declared = _named(name, places, warehouses, unnamed, uncompiled, found, base, say)
    if warehouses and lineage.unknown:
        found = look(unfinished_estate(name, places, warehouses), base, say)
    if called := by_jobs(lineage, found, {**places.catalogs, **warehouses}, base):
        places = replace(places, catalogs=renamed(places.catalogs, called, [*warehouses], notes))
        warehouses = renamed(warehouses, called, [*places.catalogs], notes)
        found = look(unfinished_estate(name, places, warehouses), base, say)
        lineage, declared = _named(name, places, warehouses, unnamed, uncompiled, found, base, say)
    places = lineage.places
    dev_roots = development_roots({*there, *_places_of(found, base)}, _all_roots(places, warehouses))
    texts: dict[str, Mapping[str, Any]] = {
        table: {"encoding": encodings[at].value} for table, _, at in declared if at in encodings
    }
    estate = unfinished_estate(name, places, warehouses, declared, dev_roots, texts)
    found, paths = look(estate, base, say), EstatePaths(estate, base)
    options = text_options(estate, found, declared, paths)
    if options:
        estate = unfinished_estate(name, places, warehouses, declared, dev_roots, texts | options)
        found, paths = look(estate, base, say), EstatePaths(estate, base)
    sampled, unread = sampled_tables(estate, found, paths, say)
    harmless = without_values(options, sampled)
    texts |= harmless
    if len(harmless) < len(options):
        estate = unfinished_estate(name, places, warehouses, declared, dev_roots, texts)
        found, paths = look(estate, base, say), EstatePaths(estate, base)
        sampled, unread = sampled_tables(estate, found, paths, say)
    sampled, telling = without_telling_names(sampled)
    if telling:
        notes.append(
            f"{counted(telling, 'column')} or fields of files whose names look like values of persons: the draft names"
            " none of them. Say in `tables` which tables have the persons; `pii-tracer inventory` shows the tables"
        )
    flows = lineage.of_tables(found, declared, paths, base)
    subjects = guess_subjects(sampled, flows)
    if folder := better_folder(sampled, subjects, flows):
        subjects = []
        notes.append(_no_source(folder))
    archives, further = guessed_archives(estate, found, declared, subjects[0].source if subjects else None)
    notes += further
    keyed = {table.table for table in subjects[0].further} | {subjects[0].source} if subjects else set[str]()
    writers = _writers(lineage, notes)
    return Draft(
        estate=name,
        places=places,
        declared=tuple(
            (table, kind, at)
            for table, kind, at in declared
            if at not in archives
            and not (kind in PLAIN and table not in {*keyed, *texts} and lineage.knows_by_place(at, table, paths, base))
        ),
        texts=texts,
        warehouses=warehouses,
        dev_roots=dev_roots,
        subjects=tuple(subjects),
        tables=_count(found),
        unread=unread,
        gaps=tuple(sorted({gap.kind.value for gap in found.gaps})),
        placed=tuple(root for root in places.roots if root not in given),
        uncompiled=uncompiled,
        deletable=_deletable(found),
        archives=tuple(archives.values()),
        writers=writers,
        notes=tuple(notes),
    )


def _no_source(folder: SubjectGuess) -> str:
    columns = ", ".join((folder.key, *folder.identifiers))
    return (
        f"{folder.source} looks like the table of the persons ({columns}), but a folder of files in HDFS or an object "
        "store cannot be the source of a draft. So the draft guesses no source: under `subjects`, name a table that "
        "has these persons"
    )


def _seen(name: str, places: Places, base: Path, say: Say, notes: list[str]) -> tuple[Places, Inventory]:
    """The places with those that they lead to, and what is there."""
    refuse_unused([*places.in_stores, *places.catalogs], places.reach)
    refuse_unseen(name, places)
    unfinished_estate(name, places)  # which refuses entries that lack something
    places = replace(places, catalogs=renamed(places.catalogs, by_themselves(places.catalogs, base), (), notes))
    found = look(unfinished_estate(name, places), base, say)
    refuse_silent(found, places)
    placed, registered = roots_of_catalogs(found, places, base), in_object_stores(found)
    folders = folders_in_stores(found)
    if placed or registered or folders or places.in_stores:
        places = with_roots(places, placed)
        notes += unseen(name, places, placed)
        places, further = with_object_stores(name, places, registered, folders, say)
        notes += further
        found = look(unfinished_estate(name, places), base, say)
    refuse_unknown(places.hdfs, places.reach)
    refuse_unused(places.object_stores, places.reach)
    return places, found


def _named(
    name: str,
    places: Places,
    warehouses: Mapping[str, Mapping[str, str]],
    unnamed: Mapping[str, Format],
    uncompiled: Sequence[str],
    found: Inventory,
    base: Path,
    say: Say,
) -> tuple[DraftLineage, Declared]:
    """The lineage, and the tables that no catalog names: as jobs call them, otherwise by their folders."""
    catalogs = {*places.catalogs, *warehouses}
    taken = [table.table for table in found.tables if table.table]
    declared = [(table, unnamed[at], at) for at, table in names_of(unnamed, taken, catalogs).items()]
    lineage = read_lineage(name, places, warehouses, declared, found, base, say, uncompiled)
    if called := lineage.called(name, declared, base):
        names = names_of(unnamed, taken, catalogs, called)
        declared = [(table, unnamed[at], at) for at, table in names.items()]
    return lineage, declared


def _writers(lineage: DraftLineage, notes: list[str]) -> tuple[str, ...]:
    """The jobs of the lineage, without names that may tell of a person, which are noted."""
    jobs = writers_of(lineage.graph.facts.jobs) if lineage.graph is not None else []
    shown = tuple(job for job in jobs if not may_tell_of_person(job))
    if apart := len(jobs) - len(shown):
        notes.append(
            f"{counted(apart, 'job')} whose names look like mails, phones or numbers of persons: name them under"
            " `writers` by other names"
        )
    return shown


def _count(found: Inventory) -> int:
    """Of tables, and of folders with data."""
    tables = {table.location for table in found.tables}
    there = {str(place.location) for place in found.hdfs if place.kind in (HdfsKind.TABLE, HdfsKind.FOLDER)}
    return len(tables | there | {str(place.location) for place in found.object_places})


def _places_of(found: Inventory, base: Path) -> Iterator[str]:
    """Where tables and folders with data lie, as the estate file writes it."""
    for table in found.tables:
        yield table.location if table.remote else written(Path(table.location), base)
    yield from (str(place.location) for place in found.hdfs if place.kind in (HdfsKind.TABLE, HdfsKind.FOLDER))
    yield from (str(place.location) for place in found.object_places)


def _all_roots(places: Places, warehouses: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Roots, and places in object stores. A store in which nobody named a place is one."""
    named = {object_location(place).store for place in places.in_stores}
    whole = (store for store in places.object_stores if store not in named)
    return [*places.roots, *(entry["warehouse"] for entry in warehouses.values()), *places.in_stores, *whole]


def _deletable(found: Inventory) -> dict[str, tuple[str, ...]]:
    made: dict[str, tuple[str, ...]] = {}
    for place in found.hdfs:
        if place.kind in _AGREED:
            name_node = place.location.name_node
            made[name_node] = (*made.get(name_node, ()), place.location.path)
    return made


def _warehouses(found: Inventory, base: Path) -> dict[str, dict[str, str]]:
    """Catalogs that name tables by their folders, for those that no catalog names and that look like it."""
    made: dict[str, dict[str, str]] = {}
    for table in found.tables:
        if table.table or table.remote:
            continue
        for name in plugins.names(GROUP):
            around = catalog_of(CatalogType(name)).warehouse_around(Path(table.location))
            entry = {"type": name, "warehouse": written(around, base)} if around else None
            if entry and entry not in made.values():
                word = next(iter(names_of([entry["warehouse"]]).values())).rsplit(".", 1)[-1]
                made[word if word not in made else f"{word}_{len(made)}"] = entry
    return made


def _is_compiled(project: Path) -> bool:
    from pii_tracer.lineage.sources.dbt import manifest_of

    try:
        return manifest_of(project).exists()
    except LineageError:
        return False
