"""dbt projects: the compiled SQL of `manifest.json`, with the columns of `catalog.json` beside it.

https://docs.getdbt.com/reference/artifacts/manifest-json and …/catalog-json, schema versions 4 to 12 (`compiled_sql`
until 6, `compiled_code` after).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import networkx as nx

from pii_tracer.common.plurals import counted
from pii_tracer.lineage.sources.dataset_descriptions import Tag
from pii_tracer.lineage.sources.evidence_merging import Proof, in_file
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.statement_facts import SPARK, Told, parsed
from pii_tracer.lineage.sql.known_dialects import known_dialect
from pii_tracer.lineage.sql.text.table_names import Names
from pii_tracer.model.datasets import Column
from pii_tracer.model.errors import LineageError
from pii_tracer.model.gap_kinds import LineageGapKind

_DIALECTS = {"sqlserver": "tsql", "synapse": "tsql", "fabric": "tsql", "fabricspark": "spark", "glue": "spark",
             "impala": "hive", "athena": "athena"}  # fmt: skip
"""Adapters whose SQL has another name; the others are called as their dialect."""

_TABLES = frozenset({"table", "incremental", "snapshot"})
_VIEWS = frozenset({"view", "materialized_view", "materializedview", "dynamic_table", "streaming_table"})
_QUOTES = str.maketrans("", "", '"`[]')


@dataclass
class Project:
    """A manifest on its way into the ledger. names: columns as the catalogs and `catalog.json` have them."""

    shown: str
    dialect: str
    nodes: Mapping[str, Mapping[str, Any]]
    sources: Mapping[str, Mapping[str, Any]]
    names: Names
    tags: list[Tag] = field(default_factory=list)

    def relation(self, node_id: str) -> str | None:
        """The name of a node's or source's table."""
        node = self.nodes.get(node_id) or self.sources.get(node_id) or {}
        return _unquoted(_text(node, "relation_name")) or None

    def proof(self, node_id: str) -> Proof:
        return in_file(f"{self.shown}, {node_id}", f"dbt {node_id}")


def manifest_of(place: Path) -> Path:
    """The manifest of a project folder, a target folder, or the file itself.

    Raises:
        LineageError: the folder has none.
    """
    if not place.is_dir():
        return place
    inside = [place / "manifest.json", place / "target" / "manifest.json"]
    found = next((f for f in inside if f.exists()), None)
    if found is None:
        todo = "run `dbt compile` in the project, or correct `lineage.dbt` in the estate file"
        raise LineageError("the dbt project has no manifest", where=str(inside[-1]), todo=todo)
    return found


def read_dbt(
    file: Path, shown: str, known: Mapping[str, Sequence[tuple[str, str]]], default: str, ledger: Ledger
) -> tuple[list[Told], list[Tag]]:
    """The statements of a manifest, upstream first. A file that cannot be read is a gap."""

    def unreadable(reason: str, closes: str) -> None:
        ledger.gap(None, LineageGapKind.UNREADABLE_DBT, reason, in_file(shown, "dbt"), closes)

    manifest = _json(file)
    nodes = _maps(manifest.get("nodes"))
    if not nodes:
        unreadable(
            "it is not a dbt manifest, or one without nodes",
            "run `dbt compile`, and correct the target folder in the estate file",
        )
        return [], []
    broken = len(manifest["nodes"]) - len(nodes)
    if broken:
        reason = f"{counted(broken, 'node of the manifest is', 'nodes of the manifest are')} not in the form of dbt"
        unreadable(reason, "recreate the manifest with `dbt compile`")
    catalog = file.with_name("catalog.json")
    columns = _catalog(_json(catalog))
    if not columns and catalog.exists():
        unreadable(
            "the catalog.json of the project contains no columns", "run `dbt docs generate`, or remove catalog.json"
        )
    for name, listed in columns.items():
        dataset = ledger.identities.of_table(name)
        if dataset is not None and not ledger.columns.get(dataset):
            ledger.columns[dataset] = tuple(Column(name=n, type=t) for n, t in listed)
    project = Project(
        shown, _dialect(manifest, shown, default, ledger), nodes, _maps(manifest.get("sources")),
        Names({**columns, **known}),
    )  # fmt: skip
    told = [one for node_id in _in_order(nodes) for one in _node(node_id, nodes[node_id], project, ledger)]
    for node_id, node in [*nodes.items(), *project.sources.items()]:
        _tags(node_id, node, project, ledger)
    return told, project.tags


def _json(file: Path) -> Mapping[str, Any]:
    try:
        value = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> dict[str, Mapping[str, Any]]:
    return {k: v for k, v in value.items() if isinstance(v, dict)} if isinstance(value, dict) else {}


def _map(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: Mapping[str, Any], *keys: str) -> str:
    """The first of some texts that is there."""
    return next((v for k in keys if isinstance(v := value.get(k), str) and v), "")


def _unquoted(relation: str) -> str:
    """`"db"."schema"."name"`, in whatever quotes, as dotted text."""
    return relation.translate(_QUOTES)


def _dialect(manifest: Mapping[str, Any], shown: str, default: str, ledger: Ledger) -> str:
    adapter = _text(_map(manifest, "metadata"), "adapter_type")
    try:
        return known_dialect(_DIALECTS.get(adapter, adapter)) if adapter else default
    except LineageError as error:
        ledger.gap(
            None,
            LineageGapKind.UNKNOWN_DIALECT,
            error.what,
            in_file(shown, "dbt"),
            "the tool reads its SQL in the estate's dialect",
        )
        return default


def _catalog(catalog: Mapping[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """Columns by `database.schema.name`, in their order."""
    found = {}
    for entry in [*_maps(catalog.get("nodes")).values(), *_maps(catalog.get("sources")).values()]:
        place = _map(entry, "metadata")
        name = ".".join(p for p in (_text(place, k) for k in ("database", "schema", "name")) if p)
        listed = sorted(_maps(entry.get("columns")).values(), key=_index)
        found[name] = [(_text(c, "name"), _text(c, "type").lower()) for c in listed]
    return found


def _index(column: Mapping[str, Any]) -> int:
    index = column.get("index")
    return index if isinstance(index, int) else 0


def _in_order(nodes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Upstream before downstream."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(sorted(nodes))
    graph.add_edges_from((name, above) for name in sorted(nodes) for above in _depends(nodes[name]) if above in nodes)
    return list(nx.dfs_postorder_nodes(graph))


def _depends(node: Mapping[str, Any]) -> list[str]:
    listed = _map(node, "depends_on").get("nodes")
    return sorted(d for d in listed if isinstance(d, str)) if isinstance(listed, list) else []


def _node(node_id: str, node: Mapping[str, Any], project: Project, ledger: Ledger) -> Iterator[Told]:
    kind, proof = _text(node, "resource_type"), project.proof(node_id)
    code, relation = _text(node, "compiled_code", "compiled_sql"), _text(node, "relation_name")
    config = _map(node, "config")
    made = _text(config, "materialized")
    if kind == "operation":
        yield from _plain_sql(code or _text(node, "raw_code", "raw_sql"), project, proof, ledger)
        return
    if kind == "test":  # its failures are rows of persons, where they are stored
        if not relation or not code:
            return
        made = "table"
    elif kind not in ("model", "snapshot") or made == "ephemeral":
        return  # ephemeral models stand within the compiled SQL of those that use them
    language = _text(node, "language") or "sql"
    if not relation or not code or language != "sql":
        _opaque(node_id, node, language if language != "sql" else "", project, ledger)
    else:
        # dbt inserts by name, so for tables that grow the columns count as those of a table made by the query
        verb = "VIEW" if made in _VIEWS else "TABLE"
        rebuild = made == "table" and kind == "model" and project.dialect in SPARK
        text = f"CREATE OR REPLACE {verb} {relation} AS\n{code}\n"
        for one in parsed(text, project.names, project.dialect, proof, ledger):
            yield Told(one, proof, rebuild=rebuild)
        if made not in _TABLES | _VIEWS:
            reason = f"the materialization `{made}` is not dbt's own, so its other writes are not known"
            ledger.gap(
                ledger.identities.of_table(_unquoted(relation)),
                LineageGapKind.SQL_PARTIAL,
                reason,
                proof,
                "declare its effects",
            )
    for hook in _hooks(config):
        yield from _plain_sql(hook, project, proof, ledger)


def _opaque(node_id: str, node: Mapping[str, Any], language: str, project: Project, ledger: Ledger) -> None:
    """A model whose code tells nothing here: what it reads is known from its dependencies."""
    proof = project.proof(node_id)
    above = [name for d in _above(node, project) if (name := project.relation(d))]
    inputs = frozenset(ledger.dataset(name, proof) for name in above)
    relation = project.relation(node_id)
    target = ledger.dataset(relation, proof) if relation else None
    if target is not None and inputs:
        ledger.job(proof.job, None, inputs, target, proof)
    if language:
        reason, closes = (f"the tool does not read its code, which is {language}"), "declare its effect on the columns"
    else:
        reason, closes = "the manifest has no compiled SQL of it", "run `dbt compile` for the whole project"
    reads = ", ".join(above) or "nothing that is known"
    ledger.gap(target, LineageGapKind.DBT_OPAQUE, f"dbt {node_id} reads {reads}: {reason}", proof, closes)


def _above(node: Mapping[str, Any], project: Project) -> Iterator[str]:
    """What a node reads, seen through ephemeral models."""
    stack, seen = _depends(node), set()
    while stack:
        node_id = stack.pop()
        if node_id in seen:
            continue
        seen.add(node_id)
        above = project.nodes.get(node_id, {})
        if _text(_map(above, "config"), "materialized") == "ephemeral":
            stack += _depends(above)
        else:
            yield node_id


def _hooks(config: Mapping[str, Any]) -> Iterator[str]:
    for key in ("pre-hook", "post-hook", "pre_hook", "post_hook"):
        listed = config.get(key)
        for hook in listed if isinstance(listed, list) else [listed]:
            text = _text(hook, "sql") if isinstance(hook, dict) else hook
            if isinstance(text, str) and text.strip():
                yield text


def _plain_sql(text: str, project: Project, proof: Proof, ledger: Ledger) -> Iterator[Told]:
    """Hooks and operations; the manifest holds them as they were written, so templates stay open."""
    if "{{" in text or "{%" in text:
        reason = "a hook or operation is a template, and the manifest does not contain its compiled SQL"
        ledger.gap(None, LineageGapKind.DBT_OPAQUE, reason, proof, "add the SQL that it runs")
        return
    for one in parsed(text, project.names, project.dialect, proof, ledger) if text.strip() else ():
        yield Told(one, proof, rebuild=False)


def _tags(node_id: str, node: Mapping[str, Any], project: Project, ledger: Ledger) -> None:
    """Tags and plain `meta` entries of tables and columns."""
    relation = project.relation(node_id)
    dataset = ledger.identities.of_table(relation) if relation else None
    if dataset is None:
        return
    entries = [(None, node), *((name, c) for name, c in _maps(node.get("columns")).items())]
    for column, entry in entries:
        listed = entry.get("tags")
        found = [(t, "true") for t in listed if isinstance(t, str)] if isinstance(listed, list) else []
        found += [(k, str(v).lower()) for k, v in _map(entry, "meta").items() if isinstance(v, str | bool | int)]
        project.tags += [Tag(dataset=dataset, field=column, key=k, value=v, source="DBT") for k, v in found if k]
