"""Which names of datasets are one, and which could be, by a table of schemes.

Schemes are those of https://openlineage.io/docs/spec/naming. Names are one dataset only where a rule of their scheme
proves it. Producers of events write a name as the catalog has it, or as the SQL of a job has it, and do not say which:
`people` of Snowflake is the table "people" in the first case, and PEOPLE in the second. So a name can have several
meanings. Names that share one, and are not proved to be one dataset, are told as a gap (`may_be_one`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from pii_tracer.lineage.same_host import may_be_one_host, one_host, port, without_port

Key = tuple[str, str]
"""Namespace and name in the spelling that is compared, never shown."""

_TOKEN = re.compile(r'"[^"]*"|`[^`]*`|[^."`]+')
_DECORATOR = re.compile(r"(?:\$(?:\d{4}|\d{6}|\d{8}|\d{10}|__NULL__|__UNPARTITIONED__))?(?:@-?\d+)?$")
_SHARD = re.compile(r"_(?:\d{8}|\d{0,8}\*)$")
_NAMESPACE = re.compile(r"^(?P<scheme>[a-z][a-z0-9+.-]*)(?:://(?P<rest>.*)|:)?$", re.IGNORECASE | re.DOTALL)
_AZURE = re.compile(r"\.(?:blob|dfs)\.core\.", re.IGNORECASE)
_SLASHES = re.compile("/+")
_FILES = frozenset(("s3", "gs", "oss", "abfs", "hdfs", "viewfs", "file"))
_ATHENA = re.compile(r"awsathena://athena\.(?P<region>[^.]+)\.", re.IGNORECASE)
_GLUE = "arn:aws:glue:"
_GLUE_TABLE = re.compile(r"table/(?P<database>[^/]+)/(?P<table>[^/]+)")


def _plain(part: str) -> str:
    """A part of a name without its quotes."""
    return part[1:-1] if part[:1] in ('"', "`") else part


def _exact(part: str) -> frozenset[str]:
    """Capitals matter everywhere."""
    return frozenset({part})


def _lower(part: str) -> frozenset[str]:
    """Capitals matter nowhere, quotes or not."""
    return frozenset({_plain(part).lower()})


def _either(part: str) -> frozenset[str]:
    """Capitals matter or not, by a setting of the server that no event tells."""
    return frozenset({_plain(part), _plain(part).lower()})


def _folds_lower(part: str) -> frozenset[str]:
    """The catalog has names that SQL has without quotes in small letters, and others as they are."""
    return frozenset({_plain(part)}) if _plain(part) != part else frozenset({part, part.lower()})


def _folds_upper(part: str) -> frozenset[str]:
    """The catalog has names that SQL has without quotes in capitals, and others as they are."""
    return frozenset({_plain(part)}) if _plain(part) != part else frozenset({part, part.upper()})


@dataclass(frozen=True)
class Scheme:
    """How names of one scheme are compared.

    called: the scheme's first name. meanings: what a part of a name may be in the catalog. port: the default, 0 where
    none is.
    """

    called: str
    meanings: Callable[[str], frozenset[str]]
    port: int = 0


_SCHEMES = {
    "snowflake": Scheme("snowflake", _folds_upper),
    "oracle": Scheme("oracle", _folds_upper, 1521),
    "db2": Scheme("db2", _folds_upper, 50000),
    "postgres": Scheme("postgres", _folds_lower, 5432),
    "postgresql": Scheme("postgres", _folds_lower, 5432),
    "redshift": Scheme("redshift", _either, 5439),
    "mysql": Scheme("mysql", _either, 3306),
    "mariadb": Scheme("mysql", _either, 3306),
    "clickhouse": Scheme("clickhouse", _exact),
    "teradata": Scheme("teradata", _either, 1025),
    "cassandra": Scheme("cassandra", _folds_lower, 9042),
    "sqlserver": Scheme("mssql", _either, 1433),
    "mssql": Scheme("mssql", _either, 1433),
    "trino": Scheme("trino", _lower),
    "presto": Scheme("trino", _lower),
    "awsathena": Scheme("awsathena", _lower),
    "hive": Scheme("hive", _lower, 9083),
    "bigquery": Scheme("bigquery", _exact),
    "kafka": Scheme("kafka", _exact),
    "mongodb": Scheme("mongodb", _exact, 27017),
    "file": Scheme("file", _exact),
    "hdfs": Scheme("hdfs", _exact, 8020),
    "viewfs": Scheme("viewfs", _exact),
    "gs": Scheme("gs", _exact),
    "gcs": Scheme("gs", _exact),
    "s3": Scheme("s3", _exact),
    "s3a": Scheme("s3", _exact),
    "s3n": Scheme("s3", _exact),
    "oss": Scheme("oss", _exact),
    "abfs": Scheme("abfs", _exact),
    "abfss": Scheme("abfs", _exact),
    "wasb": Scheme("abfs", _exact),
    "wasbs": Scheme("abfs", _exact),
}
_WHOLE = 2
"""Dots in a table's name with its catalog and its schema."""
_CALLED = frozenset(scheme.called for scheme in _SCHEMES.values())


def key_of(namespace: str, name: str) -> Key:
    """The key of a name: names with one key are one dataset."""
    scheme, host = _split(namespace)
    place = f"{scheme.called}://{host}" if host is not None else scheme.called
    if scheme.called == "bigquery":
        return place, _DECORATOR.sub("", name)
    if scheme.meanings is _exact:
        return place, name
    return place, _TOKEN.sub(lambda found: _spelled(scheme, found[0]), name)


def rough_key(namespace: str, name: str) -> Key:
    """A key that all names share which could be one dataset. Names that share it need not be: see `may_be_one`."""
    scheme, host = _split(namespace)
    if scheme.called == "bigquery":
        return scheme.called, _SHARD.sub("", name).rpartition(".")[2]
    if glue := _in_glue(namespace, name):
        return glue
    if scheme.called in _FILES:
        where = "" if scheme.called in ("hdfs", "viewfs", "file") else f"{scheme.called}://{host}"
        return f"files {where}", _same_path(name)
    if scheme.called == "kafka":
        return scheme.called, name
    return "table", (_TOKEN.findall(_lowered(name)) or [name])[-1]


def may_be_one(one: Key, other: Key) -> bool:
    """Whether two keys could be those of one dataset."""
    if rough_key(*one) != rough_key(*other):
        return False
    if _in_glue(*one):  # of a table of Athena nothing tells the account
        return not one[0].startswith(_GLUE) or not other[0].startswith(_GLUE)
    (scheme, here), (another, there) = _split(one[0]), _split(other[0])
    if scheme.called != another.called:
        return _in_two_schemes(scheme, another, (here or "", one[1]), (there or "", other[1]))
    if scheme.called in _FILES:
        one_cluster = scheme.called == "hdfs" and port(here or "") == port(there or "")  # by another name
        return here == there or one_cluster or not (here and there)
    return may_be_one_host(scheme.called, here or "", there or "") and _names(scheme, one[1], other[1], here == there)


def _in_two_schemes(scheme: Scheme, another: Scheme, one: Key, other: Key) -> bool:
    """HDFS and a view of it; and a host's tables, or those of a catalog that has no host, by the name of a system that
    has no rule here.
    """
    if {scheme.called, another.called} == {"hdfs", "viewfs"}:
        return True
    here, there = without_port(one[0]).lower(), without_port(other[0]).lower()
    both_known = {scheme.called, another.called} <= _CALLED
    no_host = not (here and there) and one[1].count(".") >= _WHOLE
    return not both_known and (here == there != "" or no_host) and _lowered(one[1]) == _lowered(other[1])


def may_mean(namespace: str, written: str, name: str) -> bool:
    """Whether a name of SQL could be that of a part of a dataset's name, as far as capitals and quotes tell."""
    return not _split(namespace)[0].meanings(written).isdisjoint(_split(namespace)[0].meanings(name))


def capitals_matter(namespace: str) -> bool:
    """Whether names that differ in capitals alone are always those of two datasets."""
    return _split(namespace)[0].meanings is _exact


def sql_name(namespace: str, name: str) -> str:
    """What a table is called in SQL: `db.t` for `table/db/t` of Glue."""
    glue = _GLUE_TABLE.fullmatch(name) if namespace.startswith(_GLUE) else None
    return f"{glue['database']}.{glue['table']}" if glue else name


def _split(namespace: str) -> tuple[Scheme, str | None]:
    """The scheme and its host, or None. Of a scheme without a rule nobody knows whether capitals matter."""
    found = _NAMESPACE.match(namespace)
    if found is None:
        return Scheme(namespace, _lower if namespace.startswith(_GLUE) else _either), None
    scheme, host = _SCHEMES.get(found["scheme"].lower()), found["rest"]
    if scheme is None:
        return Scheme(found["scheme"], _either), host
    if host is None:
        return scheme, None
    host = one_host(host.rstrip("/"))
    if scheme.called == "abfs":  # one storage account has both names
        return scheme, _AZURE.sub(".core.", host)
    if scheme.port or scheme.meanings is not _exact:
        host = host.lower()
    if scheme.port and not (port(host) or "," in host or "/" in host):
        host = f"{host}:{scheme.port}"
    return scheme, host


def _in_glue(namespace: str, name: str) -> Key | None:
    """Region, and database and table, of a table in the Glue catalog, by its own name or that in Athena."""
    glue, athena = namespace.startswith(_GLUE), _ATHENA.match(namespace)
    plain = _lowered(sql_name(namespace, name))
    if glue:
        return f"glue {namespace.split(':')[3]}", plain
    if athena and plain.startswith("awsdatacatalog."):
        return f"glue {athena['region'].lower()}", plain.removeprefix("awsdatacatalog.")
    return None


def _lowered(name: str) -> str:
    return ".".join(_plain(part).lower() for part in _TOKEN.findall(name.strip()))


def _spelled(scheme: Scheme, part: str) -> str:
    """One spelling for all that has the same meanings. Quotes stay where they say something."""
    plain, meanings = _plain(part), scheme.meanings(part)
    if not plain or "." in plain or scheme.meanings(plain) != meanings:
        return part
    return next(iter(meanings)) if len(meanings) == 1 else plain


def _names(scheme: Scheme, one: str, other: str, one_host: bool) -> bool:
    if scheme.called == "bigquery":
        least = 1 + min(one.count("."), other.count("."))  # one leaves its project out
        one, other = (".".join(name.split(".")[-least:]) for name in (one, other))
        return one == other or _covers(one, other) or _covers(other, one)
    parts, others = _TOKEN.findall(one.strip()), _TOKEN.findall(other.strip())
    if len(parts) != len(others) and one_host and scheme.called in _SCHEMES:  # one leaves its database out
        least = min(len(parts), len(others))
        parts, others = parts[-least:], others[-least:]
    if scheme.meanings is _exact:
        return parts == others
    return len(parts) == len(others) and all(
        not scheme.meanings(a).isdisjoint(scheme.meanings(b)) for a, b in zip(parts, others, strict=True)
    )


def _same_path(name: str) -> str:
    """A path without what engines write in several ways: slashes, percent signs, blanks, composed letters."""
    return unicodedata.normalize("NFC", _SLASHES.sub("/", unquote(name)).strip("/ "))


def _covers(pattern: str, name: str) -> bool:
    """Whether a table with a wildcard (`t_*`) reads a shard."""
    return pattern.endswith("*") and name.startswith(pattern[:-1])
