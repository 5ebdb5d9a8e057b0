"""Which dataset a name means: OpenLineage names, paths in their many spellings, table names in SQL.

Naming follows https://openlineage.io/docs/spec/naming: local files are namespace `file` and an absolute path, objects
are `s3://bucket` and the key.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from pii_tracer.config.estate_file import Relocation
from pii_tracer.config.lineage import SameDataset
from pii_tracer.lineage.name_spellings import specified
from pii_tracer.lineage.sql.text.global_temp_views import is_global_view
from pii_tracer.lineage.sql.text.names_inside_tables import Part, parts_of
from pii_tracer.lineage.sql.text.table_names import PATH_FORMATS
from pii_tracer.model.azure_location import azure_location, is_azure
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError

UNRESOLVED = "unresolved"
"""Namespace of table names that nothing explains."""
VIEW = "view"
"""Namespace of views: names of queries, behind which no bytes lie."""

_URI = re.compile(r"^(?P<scheme>[a-z][a-z0-9+.-]*):/{1,3}", re.IGNORECASE)
_PATH_TABLE = re.compile(rf"^(?:{'|'.join(sorted(PATH_FORMATS))}|path)\.`(?P<path>.+)`$", re.IGNORECASE | re.DOTALL)


STORES = ("s3://", "gs://", "gcs://", "abfss://", "abfs://", "wasbs://", "wasb://", "oss://")
"""Where a name is a key, without a slash before it."""
_PARTITION = re.compile(r"^[^=]+=")
_FIRST_PARTITION = re.compile(r"/[^/=]+=")
_WITHIN = re.compile(r"^[^=]+=|[*?\[{]")
"""A partition of a table (Hive's layout), or a pattern of paths within it."""
_FILE = re.compile(r"\.\w{1,10}$")
"""The name of a file, and of no folder."""
_PART = re.compile(
    r"^(?:part[-.]\d|\d{6}_\d|data_\d)|\.c\d{3}(?:\.|$)|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    re.IGNORECASE,
)
"""Names that writers make for the files of one dataset: they tell no datasets apart."""


_NOT_TOLD = re.compile(r"[$*?\[{<]|%\(")
"""What stands in a location for something that its text does not tell: a variable, or any of several folders."""


def is_untold(location: str) -> bool:
    """Whether a location has a variable or a pattern in it, so that its text does not tell a folder."""
    return _NOT_TOLD.search(location) is not None


def is_place(dataset: DatasetId) -> bool:
    """Whether a name is that of files: https://openlineage.io/docs/spec/naming."""
    return dataset.namespace == "file" or dataset.namespace.startswith((*STORES, "hdfs://"))


class Identities:
    """Names to datasets. aliases are exact or end at a dot (`prod.payments` for `lake.prod.payments`).

    same: names of one dataset, by the estate file.
    """

    def __init__(
        self,
        aliases: Mapping[str, DatasetId],
        relocations: Iterable[Relocation] = (),
        base: Path | None = None,
        same: Iterable[SameDataset] = (),
    ) -> None:
        self._same = {specified(s.from_, s.name or ""): specified(s.to, s.to_name or "") for s in same}
        self._moved = [(_moved(r.to, base), r.from_.rstrip("/")) for r in relocations]
        self._aliases: dict[str, DatasetId] = {}
        self._by_end: dict[str, set[DatasetId]] = defaultdict(set)  # datasets of longer aliases that end so
        self._tables: set[str] = set()
        self._roots: frozenset[DatasetId] = frozenset()
        declared = {name: self._spelled(d.namespace, d.name, exact=True) for name, d in aliases.items()}
        self._roots = frozenset(declared.values())
        for name, dataset in declared.items():
            self.learn(name, dataset)

    def learn(self, name: str, dataset: DatasetId) -> None:
        """A further name; what is known first stays."""
        plain = plain_name(name)
        if plain not in self._aliases:
            self._aliases[plain] = dataset
            for end in () if is_global_view(plain) else shorter_names(plain):  # no shorter name means such a view
                self._by_end[end].add(dataset)

    def add_table(self, name: str) -> None:
        """A table is known to have this name: it stands for nothing else, though nobody knows where the table is."""
        self._tables.add(plain_name(name))

    @property
    def roots(self) -> frozenset[DatasetId]:
        """The datasets that catalogs and folders of the estate tell."""
        return self._roots

    @property
    def aliases(self) -> dict[str, DatasetId]:
        return dict(self._aliases)

    def normal(self, namespace: str, name: str) -> DatasetId:
        """One identity for all spellings of a path, and for all partitions of a table; other names stay as they are.

        Jobs write `/lake/t/day=1` and read `/lake/t` or `/lake/t/*`: trailing segments `key=value` and patterns are
        left out, unless a catalog has a table right there. So are segments `key=value` around a file (`_of_file`).
        """
        full = self._spelled(namespace, name)
        if full in self._roots or not is_place(full):
            return full
        parts = full.name.split("/")
        if any(map(_PARTITION.search, parts[:-1])) and _is_file(parts[-1]):
            full = self._of_file(full, parts)
            parts = full.name.split("/")
        while len(parts) > 1 and parts[-2] and _WITHIN.search(parts[-1]) and full not in self._roots:
            parts.pop()
            full = full.model_copy(update={"name": "/".join(parts)})
        return full

    def _of_file(self, file: DatasetId, parts: list[str]) -> DatasetId:
        """The dataset of a file below partitions, whose values may be a person's: `/land/users.csv` for
        `/land/dt=1/users.csv`. A part is its folder's, and what lies in partitions of a known table is that table's.
        """
        around = (file.model_copy(update={"name": "/".join(parts[:n])}) for n in range(len(parts) - 1, 0, -1))
        table = next((folder for folder in around if folder in self._roots), None)
        known = len(table.name.split("/")) if table is not None else 0
        folders = [part for part in parts[known:-1] if not _PARTITION.search(part)]
        if table is not None and not folders:
            return table
        name = [] if _PART.search(parts[-1]) else parts[-1:]
        kept = file.model_copy(update={"name": "/".join([*parts[:known], *folders, *name])})
        if kept.name and kept not in self._roots:
            return kept
        masked = [f"{part.split('=')[0]}=" if _PARTITION.search(part) else part for part in parts[known:-1]]
        return file.model_copy(update={"name": "/".join([*parts[:known], *masked, *name])})

    def _spelled(self, namespace: str, name: str, *, exact: bool = False) -> DatasetId:
        namespace, name = specified(namespace, name)
        if self._same:
            namespace, name = self._same.get((namespace, name), (namespace, name))
            namespace = self._same.get(specified(namespace, ""), (namespace, ""))[0]
        if namespace in ("file", "file:", "file://", "") and name.startswith("/"):
            return DatasetId(namespace="file", name=self._path(name, exact))
        if namespace.startswith(("s3a://", "s3n://")):
            namespace = "s3://" + namespace[6:]
        if namespace.startswith("gcs://"):
            namespace = "gs://" + namespace[6:]
        if is_azure(namespace):
            namespace = _container(namespace)
        if namespace.startswith(STORES):
            return DatasetId(namespace=namespace.rstrip("/"), name=name.strip("/"))
        if namespace.startswith("hdfs://"):
            return DatasetId(namespace=namespace.rstrip("/"), name="/" + name.strip("/"))
        return DatasetId(namespace=namespace, name=name)

    def of_path(self, path: str) -> DatasetId:
        """The dataset of a path or URI."""
        return self.normal(*_parted(path))

    def folder(self, location: str) -> DatasetId | None:
        """The very folder that a location names, also that of a partition; None where the text does not tell it."""
        told = not is_untold(location) and (location.startswith("/") or _URI.match(location))
        return self._spelled(*_parted(location)) if told else None

    def without_partitions(self, path: str) -> str:
        """A path or URI without what stands at its end and says nothing of which dataset it is (`normal`). Of one
        that is in no store, nobody knows which do: it ends before the first.
        """
        meant = self.of_path(path)
        if meant.namespace == "file" or not is_place(meant):
            return path[: found.start()] if (found := _FIRST_PARTITION.search(path)) else path
        while _FIRST_PARTITION.search(path) and self.of_path(shorter := path.rstrip("/").rpartition("/")[0]) == meant:
            path = shorter
        key = _URI.sub("", path).partition("/")[2]
        masked = _FIRST_PARTITION.search(path) and key.strip("/") != meant.name.strip("/")
        return f"{meant.namespace}/{meant.name.strip('/')}" if masked else path

    def _path(self, path: str, exact: bool) -> str:
        """A path in one spelling. exact: as a file system says it, where `%41` is no `A`.

        Of other paths nobody knows whether they are percent-encoded: a table that is known just so is meant first.
        """
        written = self._placed(path)
        known = exact or DatasetId(namespace="file", name=written) in self._roots
        return written if known else self._placed(unquote(path))

    def _placed(self, path: str) -> str:
        clean = "/" + "/".join(p for p in path.split("/") if p not in ("", "."))
        for here, there in self._moved:
            if clean == here or clean.startswith(here + "/"):
                return there + clean[len(here) :]
        return clean

    def of_table(self, name: str) -> DatasetId | None:
        """The dataset of a table name in SQL, or None when nothing, or more than one thing, explains it."""
        path = _PATH_TABLE.match(name)
        if path:
            return self.of_path(path["path"])
        found = self._meant(plain_name(name))
        return next(iter(found)) if len(found) == 1 else None

    def _meant(self, plain: str) -> set[DatasetId]:
        """All that a name may mean."""
        if plain in self._aliases:
            return {self._aliases[plain]}
        longer = self._by_end.get(plain, set())
        if longer:
            return longer
        # an alias without its catalog, as symlinks have it; never one whose catalog is known, nor a session's view
        ends = (a for a in shorter_names(plain) if a in self._aliases and a not in self._by_end)
        return {self._aliases[a] for a in ends if not is_global_view(a)}

    def part_of(self, name: str) -> Part | None:
        """What of a known table a name stands for (`db.t.branch_audit`), where nothing itself is called so."""
        if plain_name(name) in self._tables or self._meant(plain_name(name)):
            return None
        tables = ((part, self.of_table(part.table)) for part in parts_of(name))
        return next((part for part, dataset in tables if dataset is not None and dataset.namespace != VIEW), None)

    def of_rows(self, name: str, *, written: bool = False) -> DatasetId | None:
        """The dataset whose rows a statement reads, or writes, under a name: also by a branch, a tag or a snapshot."""
        part = self.part_of(name)
        if part is None or part.metadata or (written and not part.writable):
            return self.of_table(name)
        return self.of_table(part.table)


def _parted(path: str) -> tuple[str, str]:
    """Namespace and name of a path or URI."""
    found = _URI.match(path)
    scheme = found["scheme"].lower() if found else "file"
    if scheme == "file":
        return "file", "/" + (path[found.end() :] if found else path)
    bucket, _, key = path[found.end() if found else 0 :].partition("/")
    return f"{scheme}://{bucket}", key


def _is_file(name: str) -> bool:
    """Whether the last segment of a path names a file: no partition, and no pattern."""
    return not _WITHIN.search(name) and bool(_FILE.search(name) or _PART.search(name))


def shorter_names(name: str) -> Iterator[str]:
    """What follows each dot of a name, as `plain_name` spells it."""
    plain = plain_name(name)
    at = plain.find(".")
    while at >= 0:
        yield plain[at + 1 :]
        at = plain.find(".", at + 1)


def plain_name(name: str) -> str:
    """A table's name in the one spelling in which names are compared."""
    return name.replace("`", "").strip().lower()


def _moved(to: str, base: Path | None) -> str:
    return str((base / to).resolve() if base is not None else Path(to)).rstrip("/")


def _container(namespace: str) -> str:
    """A container in its one spelling; what names none stays as it is."""
    try:
        return azure_location(namespace.rstrip("/")).store
    except EstateError:
        return namespace
