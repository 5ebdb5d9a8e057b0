"""The YAML files of a dbt project: its settings, sources, and what is said of models and columns.

https://docs.getdbt.com/reference/dbt_project.yml, …/source-properties, …/model-properties
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import yaml

_PLAIN = re.compile(r"\w+")
_PII = frozenset({"pii", "personal_data", "personal-data"})


@dataclass
class Settings:
    """A project as its YAML files describe it. sources: relation by (source, table). models: settings by name."""

    folder: str
    name: str = ""
    folders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    by_folder: dict[str, Any] = field(default_factory=dict)
    sources: dict[tuple[str, str], str] = field(default_factory=dict)
    schemas: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    tagged: dict[str, tuple[str, ...]] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    snapshots: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of snapshots that stand in YAML: their file, and the relation as an expression."""
    hooks: tuple[str, ...] = ()
    problems: list[tuple[str, int, str]] = field(default_factory=list)

    def inside(self, path: str, kind: str) -> PurePosixPath | None:
        """The path below one of the project's folders of a kind; None where it is not there."""
        for folder in self.folders[kind]:
            place = PurePosixPath(self.folder, folder)
            if PurePosixPath(path).is_relative_to(place):
                return PurePosixPath(path).relative_to(place)
        return None


_FOLDERS = {
    "model-paths": ("models",), "macro-paths": ("macros",), "seed-paths": ("seeds",), "snapshot-paths": ("snapshots",),
    "test-paths": ("tests",), "analysis-paths": ("analyses",), "target-path": ("target",),
    "packages-install-path": ("dbt_packages",), "log-path": ("logs",),
}  # fmt: skip
_OLDER = {"model-paths": "source-paths", "seed-paths": "data-paths"}


def read_settings(path: str, text: str) -> Settings:
    """A project of its `dbt_project.yml`."""
    found = Settings(str(PurePosixPath(path).parent))
    data = _mapping(_yaml(path, text, found))
    found.name = str(data.get("name", ""))
    for kind, usual in _FOLDERS.items():
        given = data.get(kind, data.get(_OLDER.get(kind, ""), usual))
        found.folders[kind] = tuple(str(p) for p in ([given] if isinstance(given, str) else _list(given)))
    variables = _mapping(data.get("vars"))
    own = _mapping(variables.get(found.name))
    found.variables = {k: v for k, v in {**variables, **own}.items() if not isinstance(v, Mapping)}
    found.hooks = tuple(hook for key in ("on-run-start", "on-run-end") for hook in texts_of(data.get(key)))
    for kind in ("models", "seeds", "snapshots"):
        found.by_folder[kind] = _mapping(data.get(kind))
    return found


def read_properties(path: str, text: str, found: Settings) -> None:
    """Sources, models, seeds and snapshots of one properties file, into the project's settings."""
    data = _mapping(_yaml(path, text, found))
    for source in _mappings(data.get("sources")):
        for table in _mappings(source.get("tables")):
            identifier = str(table.get("identifier") or table.get("name"))
            parts = [source.get("database"), source.get("schema") or source.get("name"), identifier]
            named = [str(part) for part in parts if part]
            if not all(_PLAIN.fullmatch(part) for part in named):
                reason = (
                    f"the source {source.get('name')}.{table.get('name')} has a name that is not plain or is a template"
                )
                found.problems.append((path, line_of(text, identifier), reason))
                continue
            relation = ".".join(named)
            found.sources[str(source.get("name")), str(table.get("name"))] = relation
            _columns(relation, table, found)
    for kind in ("models", "seeds", "snapshots"):
        for model in _mappings(data.get(kind)):
            name = str(model.get("name"))
            own = {
                k: v for k, v in model.items() if k not in ("columns", "description", "tests", "data_tests", "config")
            }
            found.models[name] = {**own, **_mapping(model.get("config"))}
            _columns(name, model, found)
            if kind == "snapshots" and isinstance(model.get("relation"), str):
                found.snapshots[name] = (path, str(model["relation"]))


def texts_of(value: Any) -> tuple[str, ...]:
    """The SQL of hooks: one text, a list of them, or mappings with `sql`."""
    listed = value if isinstance(value, list) else [value]
    found = [hook.get("sql") if isinstance(hook, Mapping) else hook for hook in listed]
    return tuple(hook for hook in found if isinstance(hook, str) and hook.strip())


def line_of(text: str, word: str) -> int:
    """The first line (from 1) that has a word; 1 where none has."""
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)), 1)


def setting(project: Settings, kind: str, below: PurePosixPath, name: str) -> dict[str, Any]:
    """What `dbt_project.yml` and properties files say of a model: the more specific goes before."""
    said: dict[str, Any] = {}
    level: Any = project.by_folder[kind]
    for step in ("", project.name, *below.parent.parts, name):
        level = level if step == "" else _mapping(level).get(step)
        said |= {k.lstrip("+"): v for k, v in _mapping(level).items() if k.startswith("+") or k == "materialized"}
    return said | project.models.get(name, {})


def _columns(relation: str, entry: Mapping[str, Any], found: Settings) -> None:
    columns = [c for c in _mappings(entry.get("columns")) if isinstance(c.get("name"), str)]
    if columns:
        found.schemas[relation] = tuple((str(c["name"]), str(c.get("data_type") or "").lower()) for c in columns)
    tagged = tuple(str(c["name"]) for c in columns if _says_pii(c))
    if tagged:
        found.tagged[relation] = tagged


def _says_pii(column: Mapping[str, Any]) -> bool:
    config = _mapping(column.get("config"))
    tags = [*_list(column.get("tags")), *_list(config.get("tags"))]
    meta = {**_mapping(config.get("meta")), **_mapping(column.get("meta"))}
    said = {str(k).lower() for k, v in meta.items() if v not in (False, None, "", "false", "no", "none")}
    return bool(_PII & ({str(tag).lower() for tag in tags} | said))


def _yaml(path: str, text: str, found: Settings) -> Any:
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader without aliases
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        found.problems.append((path, mark.line + 1 if mark else 1, "the YAML does not parse"))
        return None


class _Loader(yaml.SafeLoader):
    """Without aliases: a few of them can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def _mapping(value: Any) -> Mapping[str, Any]:
    return {str(k): v for k, v in value.items()} if isinstance(value, Mapping) else {}


def _list(value: Any) -> Iterable[Any]:
    if isinstance(value, str):
        return (value,)
    return value if isinstance(value, list | tuple) else ()


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in _list(value) if isinstance(item, Mapping))
