"""An estate of the places that are known so far, by which the next ones are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pii_tracer.app.estate_draft.given_places import Places
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import UsageError

Say = Callable[[str], None]
Declared = Sequence[tuple[str, Format, str]]
"""Name, format and place of tables."""


def unfinished_estate(
    name: str,
    places: Places,
    warehouses: Mapping[str, Mapping[str, str]] | None = None,
    declared: Declared = (),
    dev_roots: Sequence[str] = (),
    texts: Mapping[str, Mapping[str, Any]] | None = None,
) -> Estate:
    """An estate that does not say yet who the persons are. declared: name, format and place of tables. texts: what is
    said of CSV beside that, by the table's name.

    Raises:
        UsageError: a place lacks something, or is written otherwise than estate files have it.
    """
    tables = [
        {"name": table, "format": kind.value, "location": at, **(texts or {}).get(table, {})}
        for table, kind, at in declared
    ]
    catalogs: dict[str, Any] = {**places.catalogs, **(warehouses or {})}
    catalogs["spark_catalog"] = {"type": CatalogType.DECLARED.value, "tables": tables}
    whole = {
        "version": 1,
        "estate": name,
        "environment": "local",
        "catalogs": catalogs,
        "roots": places.roots,
        "dev_roots": list(dev_roots),
        "relocations": places.relocations,
        "lineage": {},
        "subjects": [{"name": "person", "source": "not.known", "key": "id"}],
        **({"s3": places.s3} if places.s3 else {}),
        "hdfs": list(places.hdfs.values()),
        "object_stores": list(places.object_stores.values()),
    }
    try:
        return Estate.model_validate(whole)
    except ValidationError as error:
        said = "; ".join(str(item["msg"]).removeprefix("Value error, ") for item in error.errors(include_input=False))
        todo = "add `--warehouse`, or correct the place"
        if any(item["loc"][:1] in (("hdfs",), ("object_stores",)) for item in error.errors(include_input=False)):
            todo = "correct the place, `--webhdfs`, `--hdfs-user`, `--hdfs-ca` or `--endpoint`"
        raise UsageError(said, where="--discover", todo=todo) from None


def look(estate: Estate, base: Path, say: Say) -> Inventory:
    """What exists there."""
    from pii_tracer.app.planning.plan_creation import take_inventory
    from pii_tracer.app.planning.s3_place_search import with_remote

    return with_remote(take_inventory(estate, base, say), estate, EstatePaths(estate, base), say)
