"""Readiness: if somebody asked today, could you? One reading, compared with the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from pii_tracer.app.cost_estimate.estate_estimate import estimate
from pii_tracer.app.estate_readiness import trend_file
from pii_tracer.app.estate_readiness.byte_keepers import held, keepers
from pii_tracer.app.estate_readiness.canary_search import Followed, patterns_of, search
from pii_tracer.app.estate_readiness.estate_facts import Named, place_facts, table_facts
from pii_tracer.app.estate_readiness.invented_person_plan import plans_for_anybody
from pii_tracer.app.estate_readiness.lake_buckets import bucket_facts
from pii_tracer.app.estate_readiness.standing_gaps import standing_gaps
from pii_tracer.app.planning.plan_creation import take_inventory, take_lineage
from pii_tracer.app.planning.s3_place_search import with_remote
from pii_tracer.app.planning.subject_sources import dataset_of, further_tables, spots_of
from pii_tracer.app.progress import SILENT, Shows
from pii_tracer.app.scan_ledger_file import searchers_with_ledger
from pii_tracer.app.settings import Settings, moment
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.laws import laws_of
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lineage.harvest import Harvested
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.estimate import Estimate
from pii_tracer.readiness.estate_snapshot import EstateState
from pii_tracer.readiness.readiness_reading import Cost, Given, Readiness, assess
from pii_tracer.scan.search_workers import THREADS
from planners.locate.edge_effects import declared_anonymisers
from planners.locate.key_location import follow
from planners.locate.tag_propagation import column_tags


def readiness(
    settings: Settings, *, as_of: datetime | None = None, cost: bool = False, show: Shows = SILENT
) -> Readiness:
    """Take a reading, add it to the trend in the state folder, and return it. Nothing of the estate is changed.

    as_of: the time of the reading; now, if none is given. cost: estimate what erasing one person costs, too, from
    listings.

    Raises:
        ConfigError: the estate file cannot be read, or a canary's key is missing or too short.
        EstateError: a part of the estate cannot be looked at, or the files of earlier readings were altered.
        LineageError: a source of lineage cannot be read.
        PlanError: the estate key is missing, or a sealed key does not open with it.
        UsageError: another process takes a reading.
    """
    now, estate, base = as_of or moment(None), settings.estate(), settings.base
    with trend_file.alone(settings.state) as folder:
        before = trend_file.read(folder)
        paths = EstatePaths(estate, base)
        show.stage("inventory")
        inventory = with_remote(take_inventory(estate, base, show.step), estate, paths, show.step)
        show.stage("harvest")
        harvested = take_lineage(settings, estate, inventory, show.step)
        number = before.points[-1].number + 1 if before.points else 1
        given = gather(settings, estate, inventory, harvested, now, number, show)
        made, state = assess(given, before.last, before.points)
        trend_file.append(folder, before, made, state)
    return replace(made, cost=_cost(estimate(settings, persons=1, as_of=now, show=show))) if cost else made


def _cost(found: Estimate) -> Cost:
    cases = found.total
    return Cost(cases.low.cost, cases.expected.cost, cases.high.cost, found.currency, found.at_least)


def gather(
    settings: Settings,
    estate: Estate,
    inventory: Inventory,
    harvested: Harvested,
    now: datetime,
    number: int,
    show: Shows = SILENT,
) -> Given:
    """Put together what a reading is made from. Raises as `readiness`, but for the trend."""
    graph, paths = harvested.graph, EstatePaths(estate, settings.base)
    show.stage("lineage")
    followed = _follow(estate, inventory, harvested, paths, show.step)
    show.stage("canaries")
    canaries = patterns_of(settings, estate, inventory, paths, followed, show.step)
    named = Named(estate.readiness, canaries.mask)

    def say(name: str) -> None:
        show.step(canaries.mask(name))

    searchers = searchers_with_ledger(settings, estate, show.warn) if canaries.sought else THREADS
    searched = search(canaries, estate, inventory, graph, named, searchers, now, say)
    show.stage("readiness")
    aliases = paths.aliases
    names = [name for subject in estate.subjects for name, _ in subject.by_table]
    sources = frozenset(aliases[name] for name in names if name in aliases)
    tables = table_facts(inventory, graph, paths, sources, _keys(followed.values()), named)
    known, wanted = laws_of(estate.laws), estate.readiness.laws
    laws = {name: law for name, law in known.items() if not wanted or name in wanted}
    plans = tuple(
        plans_for_anybody(estate, settings.base, inventory, graph, followed, paths.is_dev, laws, now, show.step)
    )
    places = (*place_facts(inventory, named), *bucket_facts(estate, inventory, named))
    return Given(
        estate=estate.estate,
        now=now,
        state=EstateState(number, now.isoformat(), tables, places),
        gaps=standing_gaps(estate, inventory, graph, followed.values(), plans, paths, named),
        keepers=tuple(keepers(estate, inventory, plans, named, now)),
        held=tuple(held(estate, now)),
        laws=laws,
        canaries=searched,
    )


def _follow(
    estate: Estate, inventory: Inventory, harvested: Harvested, paths: EstatePaths, say: Callable[[str], None]
) -> dict[str, Followed]:
    """Every subject's persons through lineage, by the subject's name."""
    found = {}
    anonymisers, tags = declared_anonymisers(estate, harvested.graph), column_tags(harvested.notes.tags)
    states = {state.dataset: state for state in inventory.tables}
    for subject in estate.subjects:
        say(f"following {subject.name} from {subject.source}")
        source = dataset_of(subject, subject.source, paths, inventory)
        further, spots = further_tables(subject, paths, inventory), spots_of(subject, paths, states)
        carriages = follow(harvested.graph, source, subject, anonymisers, tags, further, spots)
        found[subject.name] = Followed(subject, source, carriages)
    return found


def _keys(followed: Iterable[Followed]) -> dict[DatasetId, frozenset[str]]:
    """By dataset, the columns that hold values of the subjects."""
    found: dict[DatasetId, frozenset[str]] = {}
    for one in followed:
        for dataset, carriage in one.carriages.items():
            columns = frozenset(name for name, column in carriage.columns.items() if column.traces or column.lost)
            found[dataset] = found.get(dataset, frozenset()) | columns
    return found
