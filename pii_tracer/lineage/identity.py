"""Which dataset a name means: OpenLineage names, paths in their many spellings, table names in SQL.

Naming follows https://openlineage.io/docs/spec/naming: local files are namespace `file` and an absolute path, objects
are `s3://bucket` and the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from pii_tracer.config import Relocation
from pii_tracer.lineage.names import PATH_FORMATS
from pii_tracer.model import DatasetId

UNRESOLVED = "unresolved"
"""Namespace of table names that nothing explains."""

_URI = re.compile(r"^(?P<scheme>[a-z][a-z0-9+.-]*):/{1,3}", re.IGNORECASE)
_PATH_TABLE = re.compile(rf"^(?:{'|'.join(sorted(PATH_FORMATS))}|path)\.`(?P<path>.+)`$", re.IGNORECASE | re.DOTALL)


class Identities:
    """Names to datasets. aliases are exact or end at a dot (`prod.payments` for `lake.prod.payments`)."""

    def __init__(
        self, aliases: Mapping[str, DatasetId], relocations: Iterable[Relocation] = (), base: Path | None = None
    ) -> None:
        self._moved = [(_moved(r.to, base), r.from_.rstrip("/")) for r in relocations]
        self._aliases: dict[str, DatasetId] = {}
        for name, dataset in aliases.items():
            self.learn(name, self.normal(dataset.namespace, dataset.name))

    def learn(self, name: str, dataset: DatasetId) -> None:
        """A further name; what is known first stays."""
        self._aliases.setdefault(_plain(name), dataset)

    @property
    def aliases(self) -> dict[str, DatasetId]:
        return dict(self._aliases)

    def normal(self, namespace: str, name: str) -> DatasetId:
        """One identity for all spellings of a path; other names stay as they are."""
        if namespace in ("file", "file:", "file://", "") and name.startswith("/"):
            return DatasetId(namespace="file", name=self._path(name))
        if namespace.startswith(("s3a://", "s3n://")):
            namespace = "s3://" + namespace[6:]
        if namespace.startswith("s3://"):
            return DatasetId(namespace=namespace.rstrip("/"), name=name.strip("/"))
        return DatasetId(namespace=namespace, name=name)

    def of_path(self, path: str) -> DatasetId:
        """The dataset of a path or URI."""
        found = _URI.match(path)
        scheme = found["scheme"].lower() if found else "file"
        if scheme == "file":
            return DatasetId(namespace="file", name=self._path(path[found.end() - 1 :] if found else path))
        bucket, _, key = path[found.end() if found else 0 :].partition("/")
        return self.normal(f"{scheme}://{bucket}", key)

    def _path(self, path: str) -> str:
        clean = "/" + "/".join(p for p in unquote(path).split("/") if p not in ("", "."))
        for here, there in self._moved:
            if clean == here or clean.startswith(here + "/"):
                return there + clean[len(here) :]
        return clean

    def of_table(self, name: str) -> DatasetId | None:
        """The dataset of a table name in SQL, or None when nothing, or more than one thing, explains it."""
        path = _PATH_TABLE.match(name)
        if path:
            return self.of_path(path["path"])
        plain = _plain(name)
        if plain in self._aliases:
            return self._aliases[plain]
        longer = {d for alias, d in self._aliases.items() if alias.endswith("." + plain)}
        if not longer:  # an alias without its catalog, as symlinks have it; never one whose catalog is known
            longer = {d for a, d in self._aliases.items() if plain.endswith("." + a) and not self._has_catalog(a)}
        return longer.pop() if len(longer) == 1 else None

    def _has_catalog(self, alias: str) -> bool:
        return any(other.endswith("." + alias) for other in self._aliases)


def _plain(name: str) -> str:
    return name.replace("`", "").strip().lower()


def _moved(to: str, base: Path | None) -> str:
    return str((base / to).resolve() if base is not None else Path(to)).rstrip("/")
