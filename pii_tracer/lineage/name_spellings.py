"""Names of datasets that producers write in another form than the specification has, in the specification's form.

The forms are those of https://openlineage.io/docs/spec/naming. What is put into one form here names one dataset by the
rules of its system: a JDBC address and its database, brackets of SQL Server, a bucket's web address, a path of DBFS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, unquote

from pii_tracer.model.azure_location import azure_location, is_azure
from pii_tracer.model.errors import EstateError

Spelled = tuple[str, str]
"""Namespace and name."""

_URL = re.compile(r"^(?P<scheme>[a-z][a-z0-9+.-]*):/{0,3}(?P<rest>.*)$", re.IGNORECASE | re.DOTALL)
_ORACLE = re.compile(r"^oracle:thin:@(?://)?(?P<host>[^/:]+(?::\d+)?)[:/](?P<service>[^/?]+)$", re.IGNORECASE)
_PARTS: Mapping[str, int] = {
    **dict.fromkeys(("postgres", "postgresql", "redshift", "mssql", "sqlserver", "oracle", "db2", "snowflake"), 3),
    **dict.fromkeys(("trino", "presto"), 3),
    **dict.fromkeys(("mysql", "mariadb", "clickhouse", "teradata", "cassandra", "mongodb", "hive"), 2),
}
"""Parts of a table's name in each system that is reached at a host."""
_OPTIONS = ("database", "databasename", "db", "schema", "currentschema")
_REDSHIFT = re.compile(r"^(?P<cluster>[^.]+)\.[^.]+\.(?P<region>[a-z0-9-]+)\.redshift\.amazonaws\.com", re.IGNORECASE)
_BUCKET = re.compile(r"^(?P<bucket>.+)\.s3[.-](?:[a-z0-9-]+\.)?amazonaws\.com(?:\.cn)?$", re.IGNORECASE)
_S3_WEB = re.compile(r"^s3[.-](?:[a-z0-9-]+\.)?amazonaws\.com(?:\.cn)?$", re.IGNORECASE)
_STORES = frozenset(("s3", "s3a", "s3n", "gs", "gcs", "oss"))
_ADDRESSES = frozenset(("s3", "s3a", "s3n", "gs", "abfss", "abfs", "hdfs"))
_LEGACY_BIGQUERY = re.compile(r"^(?P<project>[^:.]+):(?P<table>[^.:]+\.[^.:]+)$")
_BUCKET_AND_KEY = re.compile(r"^[a-z0-9][a-z0-9._-]{2,62}/.")
_TABLE = re.compile(r"^[^/.]+\.[^/.]+$")
_BRACKETS = re.compile(r'\[([^\]"]*)\]')
_HTTPS_PORT = re.compile(r":443(?=/|$)")


def specified(namespace: str, name: str) -> Spelled:
    """A name in the form of the specification; as it is, where it has another form, or already this one."""
    if namespace.lower().startswith("jdbc:"):
        namespace = namespace[5:]
    if oracle := _ORACLE.match(namespace):
        namespace = f"oracle://{oracle['host']}/{oracle['service']}"
    store, is_address, _ = name.partition("://")
    if name.lower().startswith("file:/") or (is_address and store.lower() in _ADDRESSES):
        return _of_uri(namespace, name)
    found = _URL.match(namespace)
    scheme, rest = (found["scheme"].lower(), found["rest"]) if found else (namespace.lower(), "")
    if scheme in _PARTS and found:
        return _of_database(scheme, rest, name)
    if scheme in _STORES and not rest and _BUCKET_AND_KEY.match(name):
        return _of_store(f"{scheme}://", name)
    if namespace.startswith("arn:aws:glue:") and _TABLE.match(name):
        return namespace, "table/" + name.replace(".", "/")
    if scheme == "bigquery" and not rest:
        plain = name.replace("`", "")
        return "bigquery", _LEGACY_BIGQUERY.sub(r"\g<project>.\g<table>", plain)
    if scheme == "dbfs" and not rest:
        return "dbfs", "/" + name.removeprefix("dbfs:").strip("/")
    if scheme in ("awsathena", "azurecosmos", "azurekusto"):
        return _HTTPS_PORT.sub("", namespace), name
    if scheme in ("http", "https"):
        return _of_web(namespace, rest, name)
    if rest and (is_azure(namespace) or scheme in (*_STORES, "hdfs", "viewfs")):
        return _of_store(namespace, name)
    return namespace, name


def _of_uri(namespace: str, name: str) -> Spelled:
    """A name that is a whole address, whatever stands in front of it."""
    scheme, _, rest = name.partition(":")
    if scheme.lower() == "file":
        return "file", "/" + rest.lstrip("/")
    store, _, path = rest.removeprefix("//").partition("/")
    if namespace.rstrip("/").lower() not in ("", scheme.lower(), f"{scheme.lower()}:", f"{scheme}://{store}".lower()):
        return namespace, name
    return f"{scheme.lower()}://{store}", path


def _of_store(namespace: str, name: str) -> Spelled:
    """A namespace that goes on into the store, or names none: the path belongs to the name, the store does not."""
    scheme, _, rest = namespace.partition("://")
    if not rest:
        rest, name = name.split("/", 1)
    store, _, path = rest.partition("/")
    if scheme.lower().startswith("s3") and (bucket := _BUCKET.match(store)):
        store = bucket["bucket"]
    path = path.strip("/")
    if path and not name.strip("/").startswith(f"{path}/"):
        name = f"{path}/{name.lstrip('/')}"
    return f"{scheme}://{store}", name


def _of_web(namespace: str, rest: str, name: str) -> Spelled:
    """Objects by their web address."""
    host, _, path = rest.partition("/")
    inside = "/".join(part.strip("/") for part in (path, name) if part.strip("/"))
    if is_azure(namespace):
        try:
            place = azure_location(f"https://{host}/{inside}")
        except EstateError:
            return namespace, name
        return place.store, place.path
    if bucket := _BUCKET.match(host):
        return _store("s3", bucket["bucket"]), unquote(inside)
    if (_S3_WEB.match(host) or host.lower() == "storage.googleapis.com") and "/" in inside:
        store, _, key = inside.partition("/")
        return _store("s3" if _S3_WEB.match(host) else "gs", store), unquote(key)
    return namespace, name


def _store(scheme: str, name: str) -> str:
    return f"{scheme}://{name}"


def _of_database(scheme: str, rest: str, name: str) -> Spelled:
    """A host's table. What an address says of database and schema belongs to the name; users and options go."""
    rest, _, query = rest.partition("?")
    rest, _, options = rest.partition(";")
    authority, _, path = rest.partition("/")
    host = authority.rpartition("@")[2]
    told = {key.lower(): value for key, value in (*parse_qsl(query), *parse_qsl(options, separator=";"))}
    before = [part for part in path.split("/") if part] or [told[key] for key in _OPTIONS if told.get(key)]
    if scheme in ("mssql", "sqlserver"):
        name = _BRACKETS.sub(r'"\1"', name)
    if scheme == "hive":
        name = name.removeprefix("spark_catalog.")
        before = before or ["default"]
    if scheme in ("postgres", "postgresql") and _REDSHIFT.match(host):
        scheme = "redshift"
    if scheme == "redshift":
        host = _REDSHIFT.sub(r"\g<cluster>.\g<region>", host)
    if scheme == "snowflake":
        host = host.lower().removesuffix(".snowflakecomputing.com").replace("_", "-")
    return f"{scheme}://{host}", _placed(before, name, _PARTS[scheme])


def _placed(before: Sequence[str], name: str, parts: int) -> str:
    """A name behind its database and schema, where it does not say them itself."""
    if "/" in name or not before or name.count(".") + 1 + len(before) > parts:
        return name
    return ".".join((*before, name))
