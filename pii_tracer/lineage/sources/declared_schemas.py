"""Schemas that no event and no table tells: files of them, and the AWS Glue Data Catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pii_tracer.config.lineage import GlueDatabase
from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.lineage.sql.parse_lines import schemas_of
from pii_tracer.model.datasets import Column, DatasetId
from pii_tracer.model.errors import LineageError


@dataclass(frozen=True)
class Catalogued:
    """What a catalog knows: where its tables lie, and their columns, by the name Spark SQL calls them."""

    aliases: Mapping[str, DatasetId] = field(default_factory=dict)
    schemas: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)


def schema_files(places: Sequence[str], base: Path) -> dict[str, tuple[Column, ...]]:
    """Columns by table, from JSON files `{"table": ["column", {"name": …, "type": …}, …]}`.

    Raises:
        LineageError: a file is missing, or is not of that form.
    """
    found: dict[str, tuple[Column, ...]] = {}
    for place in places:
        for table, columns in _read(base / place).items():
            if table in found:
                raise LineageError(
                    f"two schema files list the columns of {table}", where=place, todo="keep one of the two"
                )
            found[table] = columns
    return found


def _read(file: Path) -> dict[str, tuple[Column, ...]]:
    form = 'write {"table": ["column", …]}'
    try:
        data = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise LineageError(
            f"the schema file cannot be read ({type(error).__name__})", where=str(file), todo=form
        ) from None
    if not isinstance(data, dict):
        raise LineageError("the schema file is not a JSON object", where=str(file), todo=form)
    found = {t: tuple(Column(name=n, type=k) for n, k in columns) for t, columns in schemas_of(data).items()}
    empty = next((t for t, columns in found.items() if not columns or not all(c.name for c in columns)), None)
    if empty is not None:
        raise LineageError(f"the columns of {empty} are not a list of names", where=str(file), todo=form)
    return found


def glue_tables(databases: Sequence[GlueDatabase]) -> Catalogued:
    """Tables of Glue databases. Credentials are found as boto3 finds them.

    Raises:
        LineageError: the catalog cannot be read; nothing is taken from it then.
    """
    from pii_tracer.lake.catalogs.glue.schemas import tables_of

    aliases: dict[str, DatasetId] = {}
    schemas: dict[str, tuple[Column, ...]] = {}
    named = Identities({})
    for database in databases:
        for table in tables_of(database):
            schemas[table.name] = table.columns
            if table.location:
                aliases[table.name] = named.of_path(table.location)
    return Catalogued(aliases, schemas)
