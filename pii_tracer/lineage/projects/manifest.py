"""Compiled SQL of a dbt manifest, for models whose file and macros are those that it was compiled from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pii_tracer.lineage.projects.jinja_subset import Text
from pii_tracer.model.errors import LineageError

_QUOTES = str.maketrans("", "", '"`[]')


@dataclass(frozen=True)
class Compiled:
    """One node's compiled SQL, whose lines are those of the text, not of the template."""

    text: Text
    config: Mapping[str, Any]
    reads: tuple[str, ...]


class Manifest:
    """A manifest beside the files of its side."""

    def __init__(self, data: Mapping[str, Any], macros: str) -> None:
        """macros: all macro files of that side, in one text."""
        self._nodes = [n for n in _mapping(data.get("nodes")).values() if isinstance(n, Mapping)]
        self._relations = self._named(data)
        own = [m for m in _mapping(data.get("macros")).values() if isinstance(m, Mapping)]
        project = str(_mapping(data.get("metadata")).get("project_name", ""))
        self._stale = {
            f"macro.{project}.{m.get('name')}"
            for m in own
            if m.get("package_name") == project and str(m.get("macro_sql", "")).strip() not in macros
        }

    @classmethod
    def of(cls, raw: bytes, shown: str, macros: str) -> Manifest:
        """Read a manifest.

        Raises:
            LineageError: it is none.
        """
        try:
            data = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            data = None
        if not isinstance(data, dict) or not isinstance(data.get("nodes"), dict):
            raise LineageError("the file is not a dbt manifest", where=shown, todo="use the file of `dbt compile`")
        return cls(data, macros)

    def compiled(self, name: str, file: str, template: str) -> Compiled | None:
        """The compiled SQL of a model; None where the manifest was made from another text, or has none of it."""
        for node in self._nodes:
            raw, sql = node.get("raw_code"), node.get("compiled_code")
            same = node.get("name") == name and file.endswith(str(node.get("original_file_path", "?")))
            if not same or not isinstance(raw, str) or not isinstance(sql, str) or raw.strip() != template.strip():
                continue
            depends = _mapping(node.get("depends_on"))
            if self._stale & set(map(str, depends.get("macros") or ())):
                return None
            reads = tuple(self._relations[d][1] for d in depends.get("nodes") or () if d in self._relations)
            for relation, plain in self._relations.values():
                if relation:
                    sql = re.sub(rf"(?<![\w.]){re.escape(relation)}(?![\w.])", plain, sql)
            lines = _lines(template, sql)
            return Compiled(Text(sql, lines), _mapping(node.get("config")), reads)
        return None

    @staticmethod
    def _named(data: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """By node: its relation as compiled SQL writes it, and the name that it has here."""
        found = {}
        for key, node in {**_mapping(data.get("nodes")), **_mapping(data.get("sources"))}.items():
            if not isinstance(node, Mapping):
                continue
            relation = str(node.get("relation_name") or "")
            plain = relation.translate(_QUOTES) if str(key).startswith("source.") else str(node.get("name"))
            found[str(key)] = (relation, plain)
        return found


def _lines(template: str, sql: str) -> tuple[int, ...]:
    """The template's line of each line of the compiled text: the next one with the same words, else the one before."""
    written = [" ".join(line.split()) for line in template.splitlines()]
    result, at = [], 0
    for line in sql.split("\n"):
        plain = " ".join(line.split())
        if plain and plain in written[at:]:
            at = written.index(plain, at)
        result.append(at + 1)
    return tuple(result)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
