"""A first estate file made from what is there: catalogs, tables, and guesses of who the persons are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pii_tracer.app.estate_draft.given_places import Places, with_buckets
from pii_tracer.common import plugins
from pii_tracer.config.catalogs import GROUP, CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.base import NamedBy
from pii_tracer.lake.formats.registry import known_format, table_formats
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.errors import EstateError, LineageError, UsageError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import is_s3, object_uri, s3_location
from planners.draft.column_guesses import key_strength
from planners.draft.object_tables import tables_of
from planners.draft.subject_guesses import SampledTable, SubjectGuess, guess_subjects
from planners.draft.table_names import names_of

MOST_SAMPLED = 32 * 2**20
"""Bytes of a table's data files up to which its columns are looked into."""
MOST_VALUES = 5_000
"""Values of a column that are looked at."""
MOST_KEYS = 1_000_000
"""Values of a column that looks like a key: whether each stands once, and whose they are."""
_DEV = frozenset({"dev", "sandbox", "scratch", "playground"})
_TOP = 3
"""Parts of the path of a folder right below the top (`/data/lake`): what is around it is no root."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Draft:
    """What a first estate file says. declared: tables that no catalog names: name, format and place.

    warehouses: catalogs that folders of tables look like, by name. subjects: guesses, the most likely first.
    unread: tables whose columns were not looked into, as they are large or could not be read. placed: roots
    that nobody named, and where tables of the catalogs lie. uncompiled: dbt projects without a manifest.
    """

    estate: str
    places: Places
    declared: tuple[tuple[str, Format, str], ...]
    warehouses: Mapping[str, Mapping[str, str]]
    dev_roots: tuple[str, ...]
    subjects: tuple[SubjectGuess, ...]
    tables: int
    unread: tuple[str, ...]
    gaps: tuple[str, ...]
    placed: tuple[str, ...] = ()
    uncompiled: tuple[str, ...] = ()


def draft_estate(name: str, places: Places, base: Path, say: Say) -> Draft:
    """Look at what the places hold. base: the folder that the estate file will lie in.

    Raises:
        UsageError: a place lacks something that its catalog needs.
        EstateError: a place cannot be looked into.
    """
    warehouses: dict[str, dict[str, str]] = {}
    declared: list[tuple[str, Format, str]] = []
    found = _look(_estate(name, places, warehouses, declared), base, say)
    given, placed = places.roots, _roots_around(found, base)
    buckets = _buckets(found, places)
    if placed or buckets:
        places = with_buckets(replace(places, roots=[*places.roots, *placed]), buckets)
        found = _look(_estate(name, places, warehouses, declared), base, say)
    warehouses |= _warehouses(found, base)
    taken = [table.table for table in found.tables if table.table]
    unnamed = _unnamed(found, base)
    declared += [(named, unnamed[at], at) for at, named in names_of(unnamed, taken).items()]
    estate = _estate(name, places, warehouses, declared)
    found = _look(estate, base, say)
    paths = EstatePaths(estate, base)
    sampled, unread = _sampled(found, paths, say)
    return Draft(
        estate=name,
        places=places,
        declared=tuple(declared),
        warehouses=warehouses,
        dev_roots=_dev_roots(found, paths.roots, base),
        subjects=tuple(guess_subjects(sampled)),
        tables=len(found.tables),
        unread=unread,
        gaps=tuple(sorted({gap.kind.value for gap in found.gaps})),
        placed=tuple(root for root in places.roots if root not in given),
        uncompiled=tuple(project for project in places.lineage.get("dbt", ()) if not _is_compiled(base / project)),
    )


def _estate(
    name: str, places: Places, warehouses: Mapping[str, Mapping[str, str]], declared: Sequence[tuple[str, Format, str]]
) -> Estate:
    tables = [{"name": table, "format": kind.value, "location": at} for table, kind, at in declared]
    catalogs: dict[str, Any] = {**places.catalogs, **warehouses}
    catalogs["spark_catalog"] = {"type": CatalogType.DECLARED.value, "tables": tables}
    whole = {
        "version": 1,
        "estate": name,
        "environment": "local",
        "catalogs": catalogs,
        "roots": places.roots,
        "lineage": {},
        "subjects": [{"name": "person", "source": "not.known", "key": "id"}],
        **({"s3": places.s3} if places.s3 else {}),
    }
    try:
        return Estate.model_validate(whole)
    except ValidationError as error:
        said = "; ".join(str(item["msg"]).removeprefix("Value error, ") for item in error.errors(include_input=False))
        raise UsageError(said, where="--discover", todo="add `--warehouse`, or correct the place") from None


def _look(estate: Estate, base: Path, say: Say) -> Inventory:
    from pii_tracer.app.planning.plan_creation import take_inventory
    from pii_tracer.app.planning.s3_place_search import with_remote

    return with_remote(take_inventory(estate, base, say), estate, EstatePaths(estate, base), say)


def _warehouses(found: Inventory, base: Path) -> dict[str, dict[str, str]]:
    """Catalogs that name tables by their folders, for those that no catalog names and that look like it."""
    made: dict[str, dict[str, str]] = {}
    for table in found.tables:
        if table.table or table.remote:
            continue
        for name in plugins.names(GROUP):
            around = catalog_of(CatalogType(name)).warehouse_around(Path(table.location))
            entry = {"type": name, "warehouse": _written(around, base)} if around else None
            if entry and entry not in made.values():
                word = next(iter(names_of([entry["warehouse"]]).values())).rsplit(".", 1)[-1]
                made[word if word not in made else f"{word}_{len(made)}"] = entry
    return made


def _unnamed(found: Inventory, base: Path) -> dict[str, Format]:
    """Tables and folders with data that no catalog names, by their place as the estate file writes it."""
    unnamed = {
        _written(Path(table.location), base): table.format
        for table in found.tables
        if table.table is None and not table.remote and _can_be_declared(table)
    }
    marks: dict[str, Format | None] = {
        folder: one.name if one.erased_in_s3 is NamedBy.ESTATE_FILE else None
        for one in table_formats()
        for folder in one.metadata_folders
    }
    named = [str(place.location) for place in found.remote if place.tables]
    for place in found.remote:
        if place.tables:
            continue
        keys = [version.key for version in place.versions if version.latest and not version.delete_marker]
        for folder, kind in tables_of(keys, marks).items():
            at = object_uri(place.location.bucket, folder)
            if not any(at == other or at.startswith(f"{other}/") for other in named):
                unnamed[at] = kind
    return unnamed


def _can_be_declared(table: TableState) -> bool:
    adapter = known_format(table.format)
    return table.format in PLAIN or (adapter is not None and not adapter.registered_by_metadata)


def _roots_around(found: Inventory, base: Path) -> list[str]:
    """The folders of databases whose tables a catalog names beyond the roots; of several, the folder around them."""
    beyond = [Path(gap.evidence) for gap in found.gaps if gap.kind is GapKind.OUTSIDE_ROOTS]
    tables = {place if place.is_dir() else place.parent.parent for place in beyond if place.is_absolute()}
    databases = {table.parent if len(table.parts) > _TOP else table for table in tables if table.is_dir()}
    around = Counter(database.parent for database in databases)
    roots = {place.parent if around[place.parent] > 1 and len(place.parts) > _TOP else place for place in databases}
    return sorted(_written(root, base) for root in roots if not roots.intersection(root.parents))


def _buckets(found: Inventory, places: Places) -> list[str]:
    """The buckets in which catalogs name tables or partitions and nobody named a place: files of dropped tables, and
    what engines throw away, lie anywhere in them."""
    named = {s3_location(root).bucket for root in places.roots if is_s3(root)}
    partitions = (place for table in found.partitioned for place in table.elsewhere if is_s3(place))
    there = {s3_location(place).bucket for place in partitions}
    return sorted(({place.location.bucket for place in found.remote} | there) - named)


def _is_compiled(project: Path) -> bool:
    from pii_tracer.lineage.sources.dbt import manifest_of

    try:
        return manifest_of(project).exists()
    except LineageError:
        return False


def _dev_roots(found: Inventory, roots: Sequence[Path], base: Path) -> tuple[str, ...]:
    """The outermost folders below the roots that are called as development is."""
    called = set()
    for table in found.tables:
        if table.remote:
            continue
        place = Path(table.location)
        for folder in reversed(place.parents):  # the outermost first
            if folder.name.lower() in _DEV and any(root in folder.parents for root in roots):
                called.add(_written(folder, base))
                break
    return tuple(sorted(called))


def _written(place: Path, base: Path) -> str:
    return str(place.relative_to(base)) if place.is_relative_to(base) else str(place)


def _sampled(found: Inventory, paths: EstatePaths, say: Say) -> tuple[list[SampledTable], tuple[str, ...]]:
    """The tables with a name, with a sample of their values; and those that were not looked into."""
    from pii_tracer.lake.rows.current_rows import read_columns

    sampled, unread = [], []
    for table in found.tables:
        if table.table is None:
            continue
        kinds = {column.name: column.type for column in table.columns}
        columns = [name for name, kind in kinds.items() if _is_plain(kind)]
        sample: dict[str, Sequence[object]] = {}
        count = 0
        if columns and table.bytes <= MOST_SAMPLED:
            say(f"looking into {table.table}")
            try:
                rows = read_columns(table, columns, paths)
                count = rows.num_rows
                sample = {name: rows.column(name).slice(0, _most(name, kinds[name])).to_pylist() for name in columns}
            except (EstateError, OSError):
                unread.append(table.table)
        elif columns:
            unread.append(table.table)
        clone = table.clone_of is not None or table.same_files_as is not None or paths.is_dev(table.location)
        sampled.append(SampledTable(table.table, table.columns, sample, count, clone, table.in_objects))
    return sampled, tuple(sorted(unread))


def _most(name: str, kind: str) -> int:
    return MOST_KEYS if key_strength(name, kind) else MOST_VALUES


def _is_plain(kind: str) -> bool:
    return not any(mark in kind for mark in "<(") or kind.startswith(("decimal", "char", "varchar"))
