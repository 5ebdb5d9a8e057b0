"""From an estate and requests to a plan: harvest, discover, resolve keys, scan, build. All I/O of planning is here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.cli.settings import Settings
from pii_tracer.config import Estate, Request, Subject, file_digest
from pii_tracer.errors import ConfigError, EstateError, PlanError
from pii_tracer.estate.discover import discover
from pii_tracer.estate.paths import EstatePaths
from pii_tracer.estate.read import read_columns
from pii_tracer.inventory import Inventory, TableState
from pii_tracer.lineage.graph import LineageGraph
from pii_tracer.lineage.harvest import Summary, harvest_with_summary
from pii_tracer.lineage.store import save
from pii_tracer.model import KeySet, Match
from pii_tracer.plan import ErasurePlan, Waiver, digest_of
from pii_tracer.scan.forms import Patterns, build_patterns
from pii_tracer.scan.tree import scan_tree
from planners.build import Digests, PlanInputs, build_plan
from planners.carriage import follow
from planners.copies import match_of
from planners.evidence import Evidence
from planners.keys import SourceRows, Wanted, resolve
from planners.laws import law
from planners.rows import count_rows
from planners.schedule import Retention
from planners.survey import Survey, World, survey

Say = Callable[[str], None]
"""Progress of long work: one line of text each."""


@dataclass(frozen=True)
class Planned:
    """A plan with what lies beside it: the sealed manifest's bytes, the graph and the inventory it was made from."""

    plan: ErasurePlan
    sealed: bytes
    graph: LineageGraph
    summary: Summary
    inventory: Inventory


def take_inventory(estate: Estate, base: Path, say: Say) -> Inventory:
    """Everything that exists: tables and folders under the roots, declared archives with versions and replicas."""
    inventory = discover(estate, base)
    if estate.archives:
        from pii_tracer.estate.s3 import discover_archives, s3_clients

        say("reading buckets: versions, replication, lifecycle, locks")
        objects, gaps = discover_archives(estate, s3_clients(estate))
        inventory = inventory.model_copy(update={"objects": objects, "gaps": (*inventory.gaps, *gaps)})
    return inventory


def graph_file(settings: Settings) -> Path:
    """Where the harvested graph is kept."""
    return settings.state / "lineage.json"


def take_lineage(estate: Estate, base: Path, inventory: Inventory) -> tuple[LineageGraph, Summary]:
    """Events and SQL into the graph, names resolved by the estate's catalogs."""
    paths = EstatePaths(estate, base)
    schemas = {state.table: state.columns for state in inventory.tables if state.table}
    return harvest_with_summary(estate.lineage, base, estate.relocations, paths.aliases(), schemas)


def make_plan(
    settings: Settings,
    requests: Sequence[Request],
    as_of: datetime,
    retention: Retention,
    reason: str,
    planner: str,
    policy_file: Path,
    waivers: Mapping[str, Waiver],
    say: Say,
) -> Planned:
    """Make a plan for some requests.

    Raises:
        PlanError: no request, unknown subject or key, contradictions.
        EstateError: the source cannot be read.
    """
    if not requests:
        raise PlanError("there is no request to plan for", todo="name at least one request file")
    for request in requests:
        law(request.law, f"request {request.id}")
    estate, base = settings.estate(), settings.base
    paths = EstatePaths(estate, base)
    key = settings.key(create=estate.environment == "local")
    say("discovering what exists")
    inventory = take_inventory(estate, base, say)
    say("harvesting lineage")
    graph, summary = take_lineage(estate, base, inventory)
    save(graph, graph_file(settings))
    references = {r.id: key.reference(r.subject.type, r.subject.key) for r in requests}
    say("resolving the persons' keys from the source")
    surveys = [
        _survey(s, mine, estate, base, paths, inventory, graph, references) for s, mine in _by_subject(estate, requests)
    ]
    key_sets = tuple(k for s in surveys for k in s.key_sets.values())
    evidence = scan_estate(inventory, key_sets, say)
    evidence = count_persons(evidence, surveys, inventory, paths, say)
    sealed = key.seal(key_sets)
    plan = build_plan(
        PlanInputs(
            estate=estate,
            requests=requests,
            references=references,
            surveys=surveys,
            world=World(graph=graph, inventory=inventory, evidence=evidence, is_dev=paths.is_dev),
            digests=Digests(
                graph=graph.digest(),
                inventory=inventory.digest(),
                policy=file_digest(policy_file),
                subjects=digest_of(sealed),
                estate=file_digest(settings.estate_file),
            ),
            as_of=as_of,
            retention=retention,
            planned_by=planner,
            override_reason=reason,
            waivers=waivers,
        )
    )
    return Planned(plan=plan, sealed=sealed, graph=graph, summary=summary, inventory=inventory)


def _by_subject(estate: Estate, requests: Sequence[Request]) -> list[tuple[Subject, list[Request]]]:
    known = {s.name: s for s in estate.subjects}
    groups: dict[str, list[Request]] = {}
    for request in requests:
        if request.subject.type not in known:
            raise ConfigError(
                f"the estate declares no subject `{request.subject.type}`",
                where=f"request {request.id}",
                todo=f"use one of: {', '.join(sorted(known))}",
            )
        groups.setdefault(request.subject.type, []).append(request)
    return [(known[name], groups[name]) for name in sorted(groups)]


def _survey(
    subject: Subject,
    requests: Sequence[Request],
    estate: Estate,
    base: Path,
    paths: EstatePaths,
    inventory: Inventory,
    graph: LineageGraph,
    references: Mapping[str, str],
) -> Survey:
    source = paths.aliases().get(subject.source)
    state = next((s for s in inventory.tables if s.dataset == source), None)
    if source is None or state is None:
        raise EstateError(
            f"the source table {subject.source} of subject `{subject.name}` was not found",
            where="the estate file, `subjects`",
            todo="correct the name, or the catalog it lies in",
        )
    columns = [subject.key, *(i.column for i in subject.identifiers), *subject.record_keys]
    missing = sorted(set(columns) - {c.name for c in state.columns})
    if missing:
        raise ConfigError(
            f"{subject.source} has no column {', '.join(missing)}",
            where="the estate file, `subjects`",
            todo="correct key, identifiers or record_keys",
        )
    table = read_columns(state, columns, paths)
    rows = SourceRows({name: _texts(table.column(name).to_pylist()) for name in columns})
    wanted = [Wanted(r.id, references[r.id], r.subject.key) for r in requests]
    return survey(subject, source, follow(graph, source, subject), resolve(subject, rows, wanted))


def _texts(values: Sequence[Any]) -> list[str | None]:
    return [None if value is None else str(value) for value in values]


def scan_estate(inventory: Inventory, key_sets: tuple[KeySet, ...], say: Say) -> dict[str, Evidence]:
    """Decode every file of every table and folder and look for the persons."""
    patterns: Patterns = build_patterns(key_sets)
    weak = {k.name for k in key_sets if k.weak}
    evidence = {}
    for state in inventory.tables:
        say(f"looking for the persons in {state.table or state.location}")
        scan = scan_tree(Path(state.location), patterns)
        hits = [(hit.key_set, hit.column or hit.where) for file in scan.files for hit in file.hits]
        evidence[state.location] = Evidence(
            files=len(scan.files),
            files_with_person=sum(bool(file.hits) for file in scan.files),
            bytes=sum(file.size for file in scan.files if file.hits),
            strong=frozenset(name for name, _ in hits if name not in weak),
            weak=frozenset(where for name, where in hits if name in weak),
            unread=tuple(f"{file.path}: {reason}" for file in scan.files for reason in file.unread),
        )
    return evidence


def count_persons(
    evidence: Mapping[str, Evidence],
    surveys: Sequence[Survey],
    inventory: Inventory,
    paths: EstatePaths,
    say: Say,
) -> dict[str, Evidence]:
    """Add the number of the persons' current rows, where a table can be read without Spark."""
    result = dict(evidence)
    by_location = {s.location: s for s in inventory.tables}
    for found in surveys:
        for state in inventory.tables:
            match = match_of(found, state, by_location)
            if match is not None:
                rows = _rows(state, match, found.key_sets, paths)
                result[state.location] = replace(result[state.location], rows=rows)
    return result


def _rows(state: TableState, match: Match, key_sets: Mapping[str, KeySet], paths: EstatePaths) -> int | None:
    try:
        table = read_columns(state, sorted({t.column for t in match.terms}), paths)
    except EstateError:
        return None  # a reader that does not know the table's features; the plan says rows: null
    return count_rows(table.to_pylist(), match, key_sets)
