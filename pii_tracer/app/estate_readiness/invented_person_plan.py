"""The plan for an invented person, taken to be in every table that lineage leads to.

What stands against this plan stands against the plan for everybody, and no plan ends earlier. The rules are those of
planning (`planners.build`), so that a reading cannot forget one. Nothing is searched for the person.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path

from pii_tracer.app.estate_readiness.canary_search import Followed
from pii_tracer.app.planning.catalog_text_search import telling_catalogs
from pii_tracer.config.estate_file import Estate, Request
from pii_tracer.config.laws import Ground, Law
from pii_tracer.config.subjects import Subject, SubjectRef
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, DatasetId
from pii_tracer.model.keys_as_text import joined
from pii_tracer.model.plan import ErasurePlan, Gap
from pii_tracer.model.waivers import MarkKey
from pii_tracer.readiness.known_gaps import KNOWN, Knows
from pii_tracer.scan.value_forms import build_patterns
from planners.build import Digests, PlanInputs, build_plan
from planners.copies.match_key_resolution import Keys
from planners.copies.scan_evidence import CatalogEvidence, Evidence, HdfsEvidence, StoredEvidence
from planners.copies.table_match import carriage_of
from planners.keys.key_table_lineage import family_of, state_of
from planners.locate.sql.rebuild_statement import splits_partitions
from planners.locate.subject_survey import Survey, World, survey
from planners.schedule.step_dates import Retention
from planners.stores.place_gaps_and_copies import BY_KEY, remade_by_nobody

_REQUEST = "reading"


_WHOLE = {
    **dict.fromkeys(("tinyint", "byte"), 2),
    **dict.fromkeys(("smallint", "short"), 4),
    **dict.fromkeys(("int", "integer"), 9),
    **dict.fromkeys(("bigint", "long"), 15),
    **dict.fromkeys(("float", "real"), 7),
    "double": 15,
}
"""By type, the digits of a number that a column gives back as it is."""
_OTHERS: Mapping[str, Callable[[], str]] = {
    "uuid": lambda: str(uuid.uuid4()),
    "date": lambda: f"{1000 + secrets.randbelow(700)}-02-03",
    "timestamp": lambda: f"{1000 + secrets.randbelow(700)}-02-03 04:05:06",
    "timestamp_ntz": lambda: f"{1000 + secrets.randbelow(700)}-02-03 04:05:06",
    "timestamptz": lambda: f"{1000 + secrets.randbelow(700)}-02-03 04:05:06",
    "boolean": lambda: "true",
}


@dataclass(frozen=True)
class AnybodysPlan:
    """The plan for a person of one subject, and the gaps that it has for whomever it is made. laws: those by whose
    requests it begins and ends then."""

    followed: Followed
    plan: ErasurePlan
    gaps: tuple[Gap, ...]
    laws: tuple[str, ...]


def plans_for_anybody(
    estate: Estate,
    base: Path,
    inventory: Inventory,
    graph: LineageGraph,
    followed: Mapping[str, Followed],
    is_dev: Callable[[str], bool],
    laws: Mapping[str, Law],
    now: datetime,
    say: Callable[[str], None],
) -> Iterator[AnybodysPlan]:
    """A plan for each subject and each time of notice that the laws have.

    Raises:
        PlanError: as for every plan of this estate.
        EstateError: a catalog's client library is not installed.
    """
    states = {state.dataset: state for state in inventory.tables}
    surveys = {name: _survey(one, states) for name, one in followed.items()}
    key_sets = [key_set for found in surveys.values() for key_set in found.key_sets.values()]
    catalogs = telling_catalogs(estate, base, build_patterns(key_sets), say) if key_sets else ()
    for (name, found), alike in product(surveys.items(), _by_notice(laws, now)):
        law = min(alike, key=lambda one: laws[one].at(now).deadline.after(now))
        notice = laws[law].at(now).notice
        say(f"planning for anybody of {name}")
        world = _world(estate, inventory, graph, is_dev, found, catalogs)
        plan = build_plan(
            PlanInputs(
                estate=estate,
                requests=[
                    Request(
                        id=_REQUEST,
                        law=law,
                        received=now,
                        subject=SubjectRef(type=name, key=_REQUEST),
                        noticed=now if notice and Ground.REQUEST in notice.grounds else None,
                    )
                ],
                references={_REQUEST: _REQUEST},
                surveys=[found],
                world=world,
                digests=Digests("", "", "", "", ""),
                as_of=now,
                retention=Retention.RETAIN,
                marks=MarkKey(secrets.token_bytes(32)),
            )
        )
        asked = (gap for gap in plan.gaps if KNOWN[gap.kind] is Knows.ASKED)
        yield AnybodysPlan(followed[name], plan, (*asked, *_remade(found, inventory)), alike)


def _by_notice(laws: Mapping[str, Law], now: datetime) -> tuple[tuple[str, ...], ...]:
    """The laws after whose notice an erasure begins at the same time, together."""
    found: dict[int, list[str]] = {}
    for name in sorted(laws):
        notice = laws[name].at(now).notice
        hours = notice.hours if notice and Ground.REQUEST in notice.grounds else 0
        found.setdefault(hours, []).append(name)
    return tuple(map(tuple, found.values()))


def _survey(one: Followed, states: Mapping[DatasetId, TableState]) -> Survey:
    """With an invented value for every column that identifies the persons."""
    subject, source = one.subject, states.get(one.source)
    types = {column.name: column.type for column in source.columns} if source else {}
    traces = {trace.origin for carriage in one.carriages.values() for _, trace in carriage.found_in}
    told = {n.column: n.category for _, named in subject.by_table for n in named.identifiers}
    columns = {subject.key, *told, *subject.row_keys, *traces}
    base = {c: ((_REQUEST, _invented(subject, c, types.get(c, ""), told.get(c, ""))),) for c in sorted(columns)}
    keys = Keys(subject=subject, base=base, others=dict.fromkeys(columns, frozenset()))
    return survey(subject, one.source, one.carriages, keys)


def _invented(subject: Subject, column: str, type_: str, category: str) -> str:
    if column == subject.key and subject.several_columns:
        return joined([_value("", "") for _ in subject.several_columns]) or ""
    return _value(type_.lower(), category)


def _value(type_: str, category: str) -> str:
    """A value that nobody has, of the column's type."""
    name, _, size = type_.partition("(")
    if name in _OTHERS:
        return _OTHERS[name]()
    if name in _WHOLE:
        digits = _WHOLE[name]
    elif name in ("decimal", "numeric", "number"):
        whole, _, behind = size.rstrip(")").partition(",")
        digits = int(whole or 15) - int(behind or 0)
    elif category == "email":
        return f"{secrets.token_hex(12)}@reading.invalid"
    elif category == "phone":
        digits = 15
    else:
        return secrets.token_hex(16)
    return str(secrets.randbelow(9 * 10 ** (digits - 1)) + 10 ** (digits - 1)) if digits > 0 else "0"


def _world(
    estate: Estate,
    inventory: Inventory,
    graph: LineageGraph,
    is_dev: Callable[[str], bool],
    found: Survey,
    catalogs: tuple[CatalogEvidence, ...],
) -> World:
    """As a search would show it that could read everything, and met the person wherever lineage leads.

    Not of topics and repositories: what stands there only their records and objects tell.
    """
    by_location = {state.location: state for state in inventory.tables}
    named = (state_of(entry.dataset, inventory.tables) for table in estate.keys for entry in table.encrypts)
    sealed = {one.location for state in named if state for one in family_of(state, inventory.tables)}
    evidence = {}
    for state in inventory.tables:
        carriage, _ = carriage_of(found, state, by_location)
        there = carriage is not None and carriage.carries in BY_KEY and carriage.carries is not Carries.NONE
        keys = frozenset(found.key_sets) if there and state.location not in sealed else frozenset[str]()
        count = int(bool(keys))
        evidence[state.location] = Evidence(count, count, 0, strong=keys, rows=count, compared=True)
    there_hdfs, there_stored = {}, {}
    for folder in inventory.hdfs:
        if (at := str(folder.location)) in evidence:
            there_hdfs[at] = HdfsEvidence(1, strong=evidence[at].strong, state=by_location[at])
    for place in inventory.object_places:
        if (at := str(place.location)) in evidence:
            there_stored[at] = StoredEvidence(1, strong=evidence[at].strong, state=by_location[at])
    return World(
        graph=graph,
        inventory=inventory.model_copy(update={"topics": (), "lakefs": ()}),
        evidence=evidence,
        is_dev=is_dev,
        catalogs=catalogs,
        hdfs=there_hdfs,
        stored=there_stored,
        splits_partitions=splits_partitions(estate.spark.conf),
    )


def _remade(found: Survey, inventory: Inventory) -> Iterator[Gap]:
    """Bare folders in stores whose rows are made of the persons' without a key: no step makes them again there."""
    known = {state.location for state in inventory.tables}
    for store, places in (("HDFS", inventory.hdfs), ("an object store", inventory.object_places)):
        for place in places:
            carriage = found.carriages.get(place.location.dataset)
            if carriage and carriage.carries not in BY_KEY and str(place.location) not in known:
                yield remade_by_nobody(place.location, store, carriage.reason)
