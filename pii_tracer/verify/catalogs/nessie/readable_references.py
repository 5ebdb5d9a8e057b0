"""The states of a table under Nessie: every reference that has it now, and every old commit that can still be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.lake.catalogs.default_table_format import NESSIE_TABLE
from pii_tracer.lake.catalogs.nessie.client import Content, NessieClient, Reference
from pii_tracer.lake.catalogs.nessie.tables import KINDS, table_name
from pii_tracer.model.errors import ScanError
from pii_tracer.model.locations import local_path
from pii_tracer.model.plan import Copy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NESSIE = "nessie"
"""The fact of a copy that names its catalog."""

Named = tuple[str, Callable[[], "DataFrame"], bool]
"""A state's name, what loads it, and whether it must be the same for other people after the run."""


def nessie_states(spark: SparkSession, copy: Copy) -> Iterator[Named]:
    """A copy that stands for one reference has only that state; the table's own has all of them.

    What the server says counts, not what the plan knew: a reference made since is a state too.

    Raises:
        EstateError: the server does not answer.
    """
    name, only = str(copy.facts[NESSIE]), copy.facts.get("ref")
    client, ref = _client(spark, name)
    default = ref or client.default_branch()
    seen: set[Path] = set()
    if only is None:
        yield "current", _load(spark, str(copy.table)), True
    references = client.references()
    for reference in references:
        title = f"{KINDS[reference.type].value} {reference.name}"
        for content in client.contents(reference):
            if not _of(content, copy):
                continue
            seen.add(_place(content))
            table = table_name(name, content.key, reference.name, default)
            # the table's own copy has read the reference that it is named by already
            if table != copy.table if only is None else title == f"{copy.facts['ref_kind']} {only}":
                yield title, _load(spark, table), True
    if only is None:
        yield from _commits(spark, name, client, references, copy, seen)


def _commits(
    spark: SparkSession,
    name: str,
    client: NessieClient,
    references: tuple[Reference, ...],
    copy: Copy,
    seen: set[Path],
) -> Iterator[Named]:
    """Old commits by their hash (`table@ref#hash`). One whose metadata file is gone reads nothing and is no state."""
    for reference, commit in client.commits(references):
        for content in commit.puts:
            place = _place(content) if _of(content, copy) else None
            if place is None or place in seen or not place.exists():
                continue
            seen.add(place)
            table = table_name(name, content.key, f"{reference.name}#{commit.hash}", "")
            yield f"commit {commit.hash[:16]} of {reference.name}", _load(spark, table), False


def _client(spark: SparkSession, name: str) -> tuple[NessieClient, str | None]:
    """From the session's own settings, which are what reads the tables."""
    prefix = f"spark.sql.catalog.{name}"
    ref = spark.conf.get(f"{prefix}.ref", "") or None
    uri, warehouse = spark.conf.get(f"{prefix}.uri"), spark.conf.get(f"{prefix}.warehouse")
    return NessieClient(name, Catalog(type=CatalogType.NESSIE, uri=uri, warehouse=warehouse, ref=ref)), ref


def _load(spark: SparkSession, table: str | None) -> Callable[[], DataFrame]:
    if table is None:
        raise ScanError("SQL cannot write the name of a reference of the table", todo="rename or delete the reference")
    quoted = ".".join("`" + part.replace("`", "``") + "`" for part in table.split("."))
    return lambda: spark.read.table(quoted)


def _of(content: Content, copy: Copy) -> bool:
    """Whether a content is the copy's table: by its place, since keys can be renamed."""
    if content.kind != NESSIE_TABLE or not content.metadata:
        return False
    return _place(content).is_relative_to(Path(copy.location))


def _place(content: Content) -> Path:
    return local_path(str(content.metadata)).resolve()
