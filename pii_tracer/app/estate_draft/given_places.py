"""The places that somebody names for a first estate file, as the part of the file that says so."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pii_tracer.app.estate_draft.store_sections import Reach, name_nodes_of
from pii_tracer.common import plugins
from pii_tracer.config.catalogs import GROUP, CatalogType
from pii_tracer.lake.catalogs.base import TableCatalog
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.model.errors import EstateError, UsageError
from pii_tracer.model.locations import WEB_ADDRESS, hdfs_location, is_hdfs, is_object_place, is_s3, location_in_place

_AZURE = re.compile(r"https?://[^/]*\.(blob|dfs)\.core\.windows\.net(?![^:/])", re.IGNORECASE)
_SIGNED = re.compile(r"https?:.*[?#]|.*[?&]sig=", re.IGNORECASE | re.DOTALL)
"""An address that may have a signature or a token behind its path."""
_USER_INFO = re.compile(r"gs://[^/]*@", re.IGNORECASE)


@dataclass
class Places:
    """What was named. catalogs: as the estate file has them; roots: relative to its folder where they lie below it.
    lineage: files and folders by the kind of source, as the estate file has them. region: of S3, where it was given.

    hdfs, object_stores: the parts of the estate file of these names, by NameNode and by store. in_stores: places in
    object stores that were named. reach: how stores are reached, as far as that was given. relocations: as the estate
    file has them.
    """

    catalogs: dict[str, dict[str, Any]] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    s3: dict[str, str] | None = None
    lineage: dict[str, list[str]] = field(default_factory=dict)
    region: str | None = None
    hdfs: dict[str, dict[str, Any]] = field(default_factory=dict)
    object_stores: dict[str, dict[str, Any]] = field(default_factory=dict)
    in_stores: list[str] = field(default_factory=list)
    reach: Reach = field(default_factory=Reach)
    relocations: list[dict[str, str]] = field(default_factory=list)


def read_places(
    places: Sequence[str],
    base: Path,
    *,
    warehouse: str | None = None,
    region: str | None = None,
    lineage: Sequence[Path] = (),
    reach: Reach | None = None,
) -> Places:
    """Catalogs, roots and S3's region of the places. warehouse: of the catalogs that want one.

    lineage: folders or files with SQL, OpenLineage events, or a dbt project. reach: how HDFS and object stores are.

    A place is a folder, `s3://BUCKET/PREFIX`, `hdfs://HOST:PORT/PATH`, `gs://BUCKET/PREFIX`,
    `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX`, `thrift://HOST:PORT` (a Hive metastore), `glue:REGION`,
    `http(s)://…` (an Iceberg REST catalog; Nessie's where it ends in `/api/v2`, Unity Catalog's where it ends in
    `/api/2.1/unity-catalog`), or `sqlite:///FILE` or `postgresql://…` (Iceberg's SQL catalog).

    Raises:
        UsageError: a folder that is not there, a place of a kind that cannot be looked into, or S3 without a region.
    """
    found = Places(region=region, reach=reach or Reach())
    for place in places:
        _refuse_secrets(place)
        scheme = place.partition(":")[0].lower() if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", place) else ""
        if scheme in ("s3", "s3a"):
            found.roots.append("s3://" + place.split("://", 1)[-1].rstrip("/"))
        elif is_hdfs(place):
            found.roots.append(_in_place(place))
        elif is_object_place(place) or scheme == "gs":
            found.in_stores.append(_in_place(place))
        elif _AZURE.match(place):
            raise UsageError(
                "an address of Azure Storage must name the account and the container",
                where="--discover",
                todo="write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH",
            )
        elif catalog := _catalog_at(place):
            _add(found, *catalog, warehouse)
        elif scheme:
            raise UsageError(
                f"`--discover` cannot search a `{scheme}:` place",
                where="--discover",
                todo="if docs/estate-file.md lists this kind of place, write the place into the estate file",
            )
        else:
            found.roots.append(_folder(Path(place), base))
    in_aws = next((made["region"] for made in found.catalogs.values() if "region" in made), None)
    if in_aws or any(root.startswith("s3://") for root in found.roots) or str(warehouse).startswith("s3"):
        found.s3 = _s3(in_aws or region)
    if warehouse and not re.match(r"[a-z0-9+.-]+://", warehouse) and Path(warehouse).is_dir():
        found.roots.append(_folder(Path(warehouse), base))
    found.roots = list(dict.fromkeys(found.roots))
    found.hdfs = name_nodes_of({hdfs_location(root).name_node for root in found.roots if is_hdfs(root)}, found.reach)
    for source in lineage:
        found.lineage.setdefault(_kind_of_lineage(source), []).append(_from(source, base))
    return found


def with_roots(found: Places, roots: Sequence[str]) -> Places:
    """The places with roots that catalogs led to, on this machine or in S3 or HDFS, and how these are reached.

    Raises:
        UsageError: the region of S3 is not known, or how a NameNode is reached.
    """
    if not roots:
        return found
    s3 = found.s3 or (_s3(found.region) if any(map(is_s3, roots)) else None)
    name_nodes = {hdfs_location(root).name_node for root in (*found.roots, *roots) if is_hdfs(root)}
    hdfs = name_nodes_of(name_nodes, found.reach)
    return replace(found, roots=[*found.roots, *roots], s3=s3, hdfs=hdfs)


def _refuse_secrets(place: str) -> None:
    """Nothing of the text is repeated."""
    if _SIGNED.match(place):
        raise UsageError(
            "an address with `?` or `#` can hold a signature or a token, which no estate file may have",
            where="--discover",
            todo="write the address without `?` and `#`, and give tokens in the environment (docs/commands.md)",
        )
    if _USER_INFO.match(place):
        raise UsageError(
            "the address of the bucket must not contain a user", where="--discover", todo="write gs://BUCKET/PREFIX"
        )


def _kind_of_lineage(source: Path) -> str:
    if (source / "dbt_project.yml").exists() or source.name == "manifest.json":
        return "dbt"
    is_sql = source.suffix.lower() == ".sql" or (source.is_dir() and any(source.rglob("*.sql")))
    return "sql" if is_sql else "events"


def _catalog_at(place: str) -> tuple[CatalogType, TableCatalog, dict[str, str]] | None:
    for name in plugins.names(GROUP):
        adapter = catalog_of(CatalogType(name))
        if (given := adapter.drafted(place)) is not None:
            return CatalogType(name), adapter, given
    return None


def _add(found: Places, kind: CatalogType, adapter: TableCatalog, given: dict[str, str], warehouse: str | None) -> None:
    base = name = str(adapter.drafted_name)
    number = 2
    while name in found.catalogs:
        name, number = f"{base}{number}", number + 1
    wants = warehouse is not None and "warehouse" in adapter.needed | adapter.optional
    address = _aws_endpoint(kind.value) if "region" in given else {}
    found.catalogs[name] = {"type": kind.value, **given, **address, **({"warehouse": str(warehouse)} if wants else {})}


def _in_place(place: str) -> str:
    """A place in HDFS or in an object store, in the one spelling that it has in estate files."""
    try:
        return str(location_in_place(place))
    except EstateError as error:
        raise UsageError(error.what, where="--discover", todo=error.todo) from None


def _folder(folder: Path, base: Path) -> str:
    if not folder.is_dir():
        raise UsageError("there is no such folder", where=str(folder), todo="name a folder that is there")
    return _from(folder, base)


def _from(path: Path, base: Path) -> str:
    if not path.exists():
        raise UsageError("there is no such file or folder", where=str(path), todo="name one that is there")
    place = path.resolve()
    return str(place.relative_to(base.resolve())) if place.is_relative_to(base.resolve()) else str(place)


def _s3(region: str | None) -> dict[str, str]:
    """How S3 is reached, as the estate file has it."""
    return {"region": _region(region), **_aws_endpoint("s3")}


def _aws_endpoint(service: str) -> dict[str, str]:
    """The address of a service of AWS that the environment names, as the estate file has it.

    It stays in the file: a shell without the variable would ask AWS itself.
    """
    own = f"AWS_ENDPOINT_URL_{service.upper()}"
    endpoint = os.environ.get(own) or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint and not re.match(WEB_ADDRESS, endpoint):
        raise UsageError(
            f"the address of {service} must begin with http:// or https://, and must not contain a user or password",
            where=f"{own} or AWS_ENDPOINT_URL",
            todo="write only the address; give the credentials where boto3 reads them",
        )
    return {"endpoint_url": endpoint} if endpoint else {}


def _region(given: str | None) -> str:
    from pii_tracer.lake.stores.s3.clients import usual_region

    region = given or usual_region()
    if not region:
        raise UsageError("the region of S3 is not known", where="--discover", todo="add `--region`, or set AWS_REGION")
    return region
