"""From an estate and requests to a plan: harvest, discover, resolve keys, scan, build. All I/O of planning is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from executors.engine.spark_capability_check import refuse_unfit
from pii_tracer.app.persons_apart.gaps_by_person import Search, own_gaps, refuse_telling, searched_apart, with_persons
from pii_tracer.app.persons_apart.requests_left_open import (
    expressions_of_then,
    known_by,
    left_open,
    with_unsearched,
    with_values_of_then,
)
from pii_tracer.app.persons_apart.values_by_person import ValuesByPerson
from pii_tracer.app.planning.catalog_text_search import telling_catalogs
from pii_tracer.app.planning.confirmed_keys import confirmed
from pii_tracer.app.planning.earlier_erasures import erased_earlier
from pii_tracer.app.planning.folder_search import scan_estate
from pii_tracer.app.planning.key_table_facts import key_facts
from pii_tracer.app.planning.lineage_text_search import telling_jobs
from pii_tracer.app.planning.not_keys_check import other_numbers
from pii_tracer.app.planning.person_counts import count_persons
from pii_tracer.app.planning.s3_place_search import search_places, with_lake, with_remote
from pii_tracer.app.planning.short_number_columns import key_digits, unread_digits
from pii_tracer.app.planning.stored_tables import with_stored_tables
from pii_tracer.app.planning.subject_sources import dataset_of, further_tables, keys_of, spots_of
from pii_tracer.app.planning.table_description_search import telling_descriptions
from pii_tracer.app.planning.unmatched_rows.refused_rewrites import with_refused
from pii_tracer.app.planning.unmatched_rows.remaining_values import others_rows
from pii_tracer.app.planning.value_masking import (
    early_progress,
    masked_paths,
    masked_progress,
    refuse_telling_texts,
    telling_beside,
    telling_objects,
    without_telling_partitions,
)
from pii_tracer.app.scan_ledger_file import searchers_with_ledger
from pii_tracer.app.settings import Settings
from pii_tracer.app.stored_places.erasable_bare_folders import named_tables
from pii_tracer.app.stored_places.hdfs_search import search_hdfs
from pii_tracer.app.stored_places.object_search import search_object_places
from pii_tracer.app.streams_and_repositories import read_repositories, read_topics
from pii_tracer.config.estate_file import (
    Archive,
    Estate,
    Request,
    file_digest,
)
from pii_tracer.config.hdfs import same_hdfs
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.keys.parquet_encryption.master_keys import file_keys
from pii_tracer.lake.read_result import in_order
from pii_tracer.lake.tables_in_s3_roots import left_alone, without_telling
from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.lineage.graph.canonical_facts import with_edges
from pii_tracer.lineage.graph.graph_file import save
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.harvest import Given, Harvested, SourceRead, Summary, harvest_all
from pii_tracer.lineage.sources.query_log.parse_workers import cores, parser_in
from pii_tracer.lineage.sources.query_log.shape_parsing import Parser
from pii_tracer.model.column_paths import spot_of
from pii_tracer.model.errors import ConfigError, EstateError
from pii_tracer.model.legal_holds import Hold
from pii_tracer.model.locations import s3_location
from pii_tracer.model.plan import ErasurePlan, digest_of
from pii_tracer.model.waivers import Waiver
from pii_tracer.review.sealed_person_values import EstateKey
from pii_tracer.scan.value_forms import build_patterns
from planners.build import Digests, PlanInputs, build_plan
from planners.copies.composite_key_match import WholeKeys
from planners.copies.match_key_resolution import Wanted
from planners.keys.crypto_shredding import declared_edges
from planners.locate.edge_effects import declared_anonymisers
from planners.locate.key_location import follow
from planners.locate.sql.rebuild_statement import splits_partitions
from planners.locate.subject_survey import Survey, World, survey
from planners.locate.tag_propagation import column_tags
from planners.schedule.erasure_requests import planned_requests
from planners.schedule.step_dates import Retention

Say = Callable[[str], None]
"""Progress of long work: one line of text each."""


@dataclass(frozen=True)
class Planned:
    """A plan with what lies beside it: the sealed manifest's bytes, the graph and the inventory it was made from.

    own_gaps: by request, the kinds of gaps that come from its person alone, where that was asked.
    """

    plan: ErasurePlan
    sealed: bytes
    graph: LineageGraph
    summary: Summary
    inventory: Inventory
    own_gaps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def take_inventory(estate: Estate, base: Path, say: Say, *, stored: bool = True) -> Inventory:
    """Everything that exists: tables and folders under the roots, declared archives with versions and replicas.

    stored: whether buckets are asked for archives and for what is treated as they are, bare folders in S3.
    """
    say("discovering what exists")
    inventory = with_lake(with_stored_tables(discover(estate, base), estate), estate, EstatePaths(estate, base))
    archives = (*estate.archives, *_bare_in_s3(inventory)) if stored else ()
    if archives:
        from pii_tracer.lake.stores.s3.archive_versions import discover_archives, s3_clients

        say("reading buckets: versions, replication, lifecycle, locks")
        whole = estate.model_copy(update={"archives": archives})
        objects, gaps = discover_archives(whole, s3_clients(estate), base, say)
        inventory = inventory.model_copy(update={"objects": objects, "gaps": (*inventory.gaps, *gaps)})
    if estate.vaults:
        from pii_tracer.lake.stores.glacier.vault_discovery import discover_vaults

        say("reading the newest inventories of vaults")
        vaults, vault_gaps = discover_vaults(estate.vaults, base, datetime.now(timezone.utc))
        inventory = inventory.model_copy(update={"vaults": vaults, "gaps": (*inventory.gaps, *vault_gaps)})
    if estate.kafka:
        if not (find_spec("confluent_kafka") and find_spec("google") and find_spec("google.protobuf")):
            raise EstateError(
                "the estate file declares Kafka, and its client is missing", todo="pip install 'pii-tracer[kafka]'"
            )
        from pii_tracer.lake.streams.kafka.topics import discover_topics

        say("reading Kafka topics: settings, partitions, offsets")
        topics, topic_gaps = discover_topics(estate, base)
        inventory = inventory.model_copy(update={"topics": topics, "gaps": (*inventory.gaps, *topic_gaps)})
    if estate.lakefs:
        from pii_tracer.lake.stores.lakefs.repository_discovery import discover_lakefs

        say("reading lakeFS repositories: branches, commits, rules, objects")
        repositories, lakefs_gaps = discover_lakefs(estate, base)
        inventory = inventory.model_copy(update={"lakefs": repositories, "gaps": (*inventory.gaps, *lakefs_gaps)})
    return inventory


def _bare_in_s3(inventory: Inventory) -> Iterator[Archive]:
    """Bare folders in S3: their objects are written again, and old versions deleted, as those of archives."""
    for state in inventory.tables:
        if state.in_objects:
            place = s3_location(state.location)
            name = state.table or state.location
            yield Archive(name=name, of=name, bucket=place.bucket, prefix=place.prefix, format=state.format)


def graph_file(settings: Settings) -> Path:
    """Where the harvested graph is kept."""
    return settings.state / "lineage.graph"


def event_log(settings: Settings) -> Path:
    """Folder of the project's own event log, which `receive`, Kafka topics and services fill."""
    return settings.state / "lineage" / "events"


def take_lineage(
    settings: Settings, estate: Estate, inventory: Inventory, say: Say, parser: Parser | None = None
) -> Harvested:
    """Every lineage source into the graph, names resolved by the estate's catalogs; parser: for query logs, by default
    in as many processes as this machine has cores."""
    from pii_tracer.lineage.sources.declared_schemas import glue_tables, schema_files
    from pii_tracer.lineage.sources.openlineage.event_fetching import gather, sources_of
    from pii_tracer.lineage.sources.unity.fetching import fetch_unity

    base, log = settings.base, event_log(settings)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    fetched = gather(sources_of(estate.lineage, base), log, now, say)
    glue = glue_tables(estate.lineage.glue)
    paths = EstatePaths(estate, base)
    aliases = {**glue.aliases, **paths.aliases}
    same = (*estate.lineage.same, *same_hdfs(estate.hdfs))  # with the names that `hdfs` gives to one HDFS
    plain = Identities(aliases, estate.relocations, base, same).without_partitions
    noted = fetch_unity(estate.lineage.unity, estate.catalogs, log.with_name("unity"), now, say, plain)
    views = paths.registry.views
    named = [state for state in named_tables(estate, inventory, views=bool(views)) if state.table]
    given = Given(
        base=base,
        relocations=estate.relocations,
        aliases=aliases,
        schemas={**glue.schemas, **{str(state.table): state.columns for state in named}},
        loose=frozenset(str(state.table) for state in named if state.loose),
        declared={**{v.name: v.columns for v in views if v.columns}, **schema_files(estate.lineage.schemas, base)},
        views=views,
        log=log,
        gaps=(*fetched.gaps, *noted.gaps),
        reads=[SourceRead(name, count, "events fetched") for name, count in fetched.reads],
        progress=say,
        parser=parser or parser_in(cores()),
        unity=noted.flows,
        created=paths.registry.created,
    )
    harvested = harvest_all(estate.lineage.model_copy(update={"same": same}), given)
    return replace(harvested, graph=_with_key_tables(harvested.graph, estate, inventory, paths))


def _with_key_tables(graph: LineageGraph, estate: Estate, inventory: Inventory, paths: EstatePaths) -> LineageGraph:
    """What the estate file says about key tables, as lineage: no job needs to be known that fills them."""
    aliases, states = paths.aliases, {state.dataset: state for state in inventory.tables}
    origins = {
        s.name: (dataset, spot_of(spots_of(s, paths, states), dataset, s.key))
        for s in estate.subjects
        if estate.keys and not s.several_columns and (dataset := aliases.get(s.source))
    }
    edges = declared_edges(estate.keys, inventory.tables, graph, origins)
    return LineageGraph(with_edges(graph.facts, edges)) if edges else graph


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
    only: Sequence[str] = (),
    weekly_budget: float | None = None,
    *,
    source_erased: bool = False,
    out: Path | None = None,
    by_person: bool = False,
    kept: Sequence[Hold] = (),
) -> Planned:
    """Make a plan for some requests.

    only: for these copies, tables or places of them. weekly_budget: most that erasing may cost a week. source_erased:
    an earlier run has erased the persons' rows in the source; what is left is planned for. out: the plan file's name.
    by_person: find out whose the gaps are. kept: what persons asked to keep, beside the estate file's holds.

    Raises:
        PlanError: no request, unknown subject or key, contradictions.
        EstateError: the source cannot be read.
    """
    estate, base = settings.estate(), settings.base
    estate = estate.model_copy(update={"holds": (*estate.holds, *kept)})
    paths = EstatePaths(estate, base)
    key = settings.key(create=estate.environment == "local")
    asked = [(r, r.subject.of(subject, r.id)) for subject, mine in _by_subject(estate, requests) for r in mine]
    references = {r.id: key.reference(r.subject.type, value) for r, value in asked}
    planned_requests(requests, references, estate.laws, as_of)  # before the long work
    early = early_progress(say, requests)
    inventory = with_remote(take_inventory(estate, base, early), estate, paths, early)
    early("harvesting lineage")
    harvested = take_lineage(settings, estate, inventory, early)
    graph, summary = harvested.graph, harvested.summary
    save(graph, graph_file(settings))
    early("resolving the persons' keys from the source")
    readings = Readings()
    surveys = [
        _survey(s, mine, estate, settings, key, paths, inventory, readings, harvested, references, early, source_erased)
        for s, mine in _by_subject(estate, requests)
    ]
    # in the order in which they are sealed: what is found now is then known again by who verifies
    key_sets = tuple(sorted((k for s in surveys for k in s.key_sets.values()), key=lambda k: k.name))
    patterns = build_patterns(key_sets, file_keys(estate.parquet_encryption, base))
    say = masked_progress(say, patterns)
    refuse_telling_texts(requests, reason, planner, waivers, patterns, out, kept)
    inventory = without_telling(inventory, patterns.mask)
    inventory = without_telling_partitions(inventory, paths.registry.remote, patterns)
    numbers = other_numbers(surveys, graph, inventory, estate, paths, say)
    short, whole = any(k.weak for k in key_sets), WholeKeys.of(surveys, inventory)
    searchers = searchers_with_ledger(settings, estate, say)
    searched = search_places(inventory, estate, patterns, short, say, numbers, whole, searchers)
    inventory = left_alone(inventory, searched.why)
    hdfs = search_hdfs(inventory, estate, patterns, short, say, numbers, whole, searchers)
    tables = {state.location for state in inventory.tables}
    stored = search_object_places(inventory, estate, patterns, as_of, say, numbers, whole, searchers)
    folders = {p: s.evidence for found in (hdfs, stored) for p, s in found.items() if s.evidence and p not in tables}
    there = {p: s.evidence for found in (hdfs, stored) for p, s in found.items() if s.evidence and p in tables}
    scanned = scan_estate(inventory, patterns, readings, say, searchers, numbers, paths.real_path)
    evidence = {**scanned, **searched.tables, **there}
    surveys = confirmed(surveys, evidence, inventory, paths, partial(numbers.at, patterns), say)
    evidence = count_persons(evidence, surveys, inventory, paths, readings, say)
    digits = key_digits(evidence, surveys, graph, inventory, paths, readings, say)
    seen_there = {place: seen.state for found in (hdfs, stored) for place, seen in found.items()}
    bare = tuple(filter(None, map(seen_there.__getitem__, folders)))
    sealed = key.seal(key_sets)
    of_each = ValuesByPerson(key_sets, patterns.file_keys)
    owners, patterns_at = of_each if by_person else None, partial(numbers.at, patterns)
    states = (*inventory.tables, *bare)
    others = others_rows(evidence | folders, surveys, states, paths, patterns_at, readings, say, digits, owners)
    digits |= unread_digits(folders, surveys, graph, bare)
    described = telling_descriptions(evidence, inventory, paths, patterns, readings, say)
    # what planning could not read stands beside what discovery could not
    known = inventory.model_copy(update={"gaps": in_order({*inventory.gaps, *readings.gaps})})
    inputs = PlanInputs(
        estate=estate,
        requests=requests,
        references=references,
        surveys=surveys,
        world=World(
            graph=graph,
            inventory=known,
            evidence=evidence | folders,
            is_dev=paths.is_dev,
            topics=read_topics(estate, base, inventory, surveys, numbers, say),
            lakefs=read_repositories(estate, base, inventory, surveys, numbers, say),
            keys=key_facts(estate, surveys, inventory, paths, say),
            named=telling_objects(inventory, patterns),
            beside=telling_beside(estate, inventory, patterns),
            masked=masked_paths(known, patterns),
            splits_partitions=splits_partitions(estate.spark.conf),
            others=others,
            digits=digits,
            described=described,
            catalogs=telling_catalogs(estate, base, patterns, say),
            jobs=telling_jobs(graph, patterns),
            not_keys=numbers.columns,
            untaken=numbers.gaps,
            remote=searched.places,
            hdfs=hdfs,
            stored=stored,
        ),
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
        only=only,
        weekly_budget=weekly_budget,
        marks=key.marks,
    )
    plan = build_plan(inputs)
    if refused := with_refused(plan, inputs, base, say):
        inputs, plan = refused, build_plan(refused)
    refuse_telling(plan, inputs, patterns, owners)
    apart = searched_apart(plan, inputs, Search(of_each, numbers, say)) if by_person or len(asked) > 1 else {}
    if apart:
        inputs = with_persons(inputs, apart)
        plan = build_plan(inputs)
    refuse_unfit(estate.spark, plan.steps)
    own = own_gaps(plan, inputs, apart) if by_person and not plan.complete else {}
    return Planned(plan=plan, sealed=sealed, graph=graph, summary=summary, inventory=inventory, own_gaps=own)


def _by_subject(estate: Estate, requests: Sequence[Request]) -> list[tuple[Subject, list[Request]]]:
    known = {s.name: s for s in estate.subjects}
    groups: dict[str, list[Request]] = {}
    for request in requests:
        if request.subject.type not in known:
            raise ConfigError(
                "the estate declares no subject of the request's `type`",
                where=f"request {request.id}",
                todo=f"use one of: {', '.join(sorted(known))}",
            )
        groups.setdefault(request.subject.type, []).append(request)
    return [(known[name], groups[name]) for name in sorted(groups)]


def _survey(
    subject: Subject,
    requests: Sequence[Request],
    estate: Estate,
    settings: Settings,
    key: EstateKey,
    paths: EstatePaths,
    inventory: Inventory,
    readings: Readings,
    harvested: Harvested,
    references: Mapping[str, str],
    say: Say,
    source_erased: bool,
) -> Survey:
    source = dataset_of(subject, subject.source, paths, inventory)
    wanted = [Wanted(r.id, references[r.id], r.subject.of(subject, r.id)) for r in requests]
    keys = keys_of(subject, wanted, paths, inventory, readings, say, source_erased=source_erased)
    before = left_open(settings.state, key, {person.reference for person in wanted})
    keys = with_values_of_then(keys, wanted, before)
    earlier = erased_earlier(settings, subject, wanted, keys, paths.aliases, known_by(before))
    keys = replace(keys, earlier=earlier)
    graph, tags = harvested.graph, column_tags(harvested.notes.tags)
    further = further_tables(subject, paths, inventory)
    spots = spots_of(subject, paths, {table.dataset: table for table in inventory.tables})
    carriages = follow(graph, source, subject, declared_anonymisers(estate, graph), tags, further, spots)
    return with_unsearched(survey(subject, source, carriages, keys, expressions_of_then(before)), wanted, before)
