"""A small lake in memory, planned without Spark: a source and tables that jobs write from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from pii_tracer.config.estate_file import Estate, Prices, Request
from pii_tracer.lake.catalog_only_partitions import PartitionedTable
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory, InventoryGap, ObjectSet, ObjectVersion, TableState, TopicState
from pii_tracer.lake.keys.key_facts import KeyFacts
from pii_tracer.lake.stores.glacier.vault_state import VaultState
from pii_tracer.lake.stores.hdfs.places import HdfsPlace
from pii_tracer.lineage.graph.canonical_facts import collect, with_edges
from pii_tracer.lineage.graph.edges import (
    Edge,
    EdgeType,
    JobRef,
    LineageGap,
    Subtype,
)
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.column_paths import Spot
from pii_tracer.model.datasets import Column, ColumnId, DatasetId
from pii_tracer.model.legal_holds import Hold, HoldKind
from pii_tracer.model.plan import Copy, ErasurePlan
from planners.build import Digests, PlanInputs, build_plan
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.copies.scan_evidence import (
    BesideEvidence,
    Evidence,
    HdfsEvidence,
    OthersRows,
    TopicEvidence,
)
from planners.keys.crypto_shredding import declared_edges
from planners.locate.key_location import follow
from planners.locate.subject_survey import World, survey
from planners.schedule.step_dates import Retention
from tests.waivers import MARKS

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
FAR = "2031-03-31T00:00:00+05:30"


def dataset(name: str) -> DatasetId:
    return DatasetId(namespace="file", name=f"/w/{name}")


def hold(*names: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": "H1",
        "kind": "retention_duty",
        "datasets": list(names),
        "basis": "PMLA 2002",
        "citation": "s. 12",
        "from": "2026-01-01T00:00:00+05:30",
        "until": FAR,
        "approver": "Meera Iyer, compliance",
        **changes,
    }


@dataclass
class Lake:
    """A source `users` and tables written from it; each is the source's key, or an aggregate.

    loose: tables that no lineage leads to. seen: evidence by location, where it is another than the person's key.
    reads: what the job of a table reads beside its input. dark: where lineage is not complete. mixed: copies into whose
    key another system's numbers go, too.
    """

    copies: dict[str, Subtype] = field(default_factory=lambda: {"a": Subtype.IDENTITY, "b": Subtype.IDENTITY})
    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    sql: dict[str, str] = field(default_factory=dict)
    reads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dark: tuple[LineageGap, ...] = ()
    mixed: tuple[str, ...] = ()
    objects: tuple[ObjectSet, ...] = ()
    topics: tuple[TopicState, ...] = ()
    vaults: tuple[VaultState, ...] = ()
    shared: bool = False
    loose: tuple[str, ...] = ()
    seen: dict[str, Evidence] = field(default_factory=dict)
    keys: tuple[dict[str, Any], ...] = ()
    backups: tuple[dict[str, Any], ...] = ()
    facts: dict[str, KeyFacts] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    beside: dict[str, BesideEvidence] = field(default_factory=dict)
    maintenance: tuple[dict[str, Any], ...] = ()
    writers: tuple[dict[str, Any], ...] = ()
    gaps: tuple[InventoryGap, ...] = ()
    others: dict[str, tuple[OthersRows, ...]] = field(default_factory=dict)
    partitioned: tuple[PartitionedTable, ...] = ()
    hdfs: dict[HdfsPlace, HdfsEvidence] = field(default_factory=dict)

    def plan(self, *holds: dict[str, Any], ids: Sequence[str] = ("R",), **changes: Any) -> ErasurePlan:
        prices, laws = changes.pop("prices", Prices()), changes.pop("laws", [])
        told = {name: changes.pop(name) for name in ("law", "noticed", "extended") if name in changes}
        estate = Estate.model_validate(
            {
                "prices": prices.model_dump(),
                "version": 1,
                "estate": "t",
                "environment": "local",
                "catalogs": {},
                "roots": ["w"],
                "lineage": {},
                "subjects": [{"name": "user", "source": "users", "key": "uid"}],
                "holds": [one for one in holds if one["kind"] != HoldKind.OWN_REQUEST],
                "laws": laws,
                "s3": {"region": "r"},
                "keys": list(self.keys),
                "backups": list(self.backups),
                "maintenance": list(self.maintenance),
                "writers": list(self.writers),
            }
        )
        # what persons asked to keep is in no estate file, and comes to a plan beside it
        own = (Hold.model_validate(one) for one in holds if one["kind"] == HoldKind.OWN_REQUEST)
        estate = estate.model_copy(update={"holds": (*estate.holds, *own)})
        tables = tuple(self._state(name) for name in ("users", *self.copies, *self.loose))
        graph, subject = self._graph(), estate.subjects[0]
        origins = {"user": (dataset("users"), Spot("uid"))}
        graph = LineageGraph(with_edges(graph.facts, declared_edges(estate.keys, tables, graph, origins)))
        values = [f"123456789{n}" for n in range(len(ids))]
        others = values if self.shared else []
        keys = resolve(
            subject,
            SourceRows({"uid": [*values, *others, "2"]}),
            [Wanted(i, f"subj_{i}", v) for i, v in zip(ids, values, strict=True)],
        )
        found = survey(subject, dataset("users"), follow(graph, dataset("users"), subject), keys)
        seen = Evidence(files=1, files_with_person=1, bytes=1, strong=frozenset({"user.uid"}))
        world = World(
            graph,
            Inventory(
                tables=tables,
                objects=self.objects,
                topics=self.topics,
                vaults=self.vaults,
                hdfs=tuple(self.hdfs),
                partitioned=self.partitioned,
                gaps=self.gaps,
            ),
            {t.location: self.seen.get(t.location, seen) for t in tables},
            lambda _: False,
            {("user", t.location): TopicEvidence(9, 2, 50, frozenset({"user.uid"})) for t in self.topics},
            keys=self.facts,
            named=self.named,
            beside=self.beside,
            others=self.others,
            hdfs={str(place.location): seen for place, seen in self.hdfs.items()},
        )
        requests = [
            Request.model_validate(
                {"id": i, "law": "GDPR", "received": NOW, "subject": {"type": "user", "key": v}, **told}
            )
            for i, v in zip(ids, values, strict=True)
        ]
        inputs = {
            "estate": estate,
            "requests": requests,
            "references": {i: f"subj_{i}" for i in ids},
            "surveys": [found],
            "world": world,
            "digests": Digests("", "", "", "", ""),
            "as_of": NOW,
            "retention": Retention.IMMEDIATE,
            "override_reason": "t",
            "marks": MARKS,
        }
        return build_plan(PlanInputs(**{**inputs, **changes}))  # type: ignore[arg-type]

    def _graph(self) -> LineageGraph:
        edges, jobs = [], []
        for name, subtype in self.copies.items():
            source = self.inputs.get(name, "users")
            told = [
                (source, column) for column in ("uid", "amount") if column == "amount" or subtype is Subtype.IDENTITY
            ]
            for origin, column in [*told, ("shops", "uid")] if name in self.mixed else told:
                edges.append(
                    Edge(
                        source=ColumnId(dataset=dataset(origin), column=column),
                        target=ColumnId(dataset=dataset(name), column=column),
                        type=EdgeType.DIRECT,
                        subtype=subtype,
                        masking=False,
                        expression=f"s.{column}" if subtype is Subtype.IDENTITY else "SUM(s.amount)",
                        evidence=(),
                    )
                )
            jobs.append(
                JobRef(
                    job=f"job_{name}",
                    sql=self.sql.get(name, f"INSERT INTO {name} SELECT 1"),
                    inputs=tuple(map(dataset, (source, *self.reads.get(name, ())))),
                    output=dataset(name),
                    at=None,
                    where="j:1",
                )
            )
        columns = {dataset("users"): tuple(Column(name=c, type="bigint") for c in ("uid", "amount"))}
        aliases = {name: dataset(name) for name in ("users", *self.copies)}
        return LineageGraph(
            collect(columns=columns, edges=edges, memberships=[], jobs=jobs, gaps=self.dark, aliases=aliases)
        )

    def _state(self, name: str) -> TableState:
        column = "uid" if self.copies.get(name, Subtype.IDENTITY) is Subtype.IDENTITY else "amount"
        fields: dict[str, Any] = {
            "dataset": dataset(name),
            "table": f"prod.{name}",
            "location": f"/w/{name}",
            "format": DELTA,
            "snapshot": "1",
            "columns": tuple(Column(name=c, type="bigint") for c in ("uid", "amount")[: 2 if name == "users" else 1])
            if column == "uid"
            else (Column(name="amount", type="bigint"),),
        }
        return TableState(**{**fields, **self.states.get(name, {})})


def strategies(plan: ErasurePlan) -> dict[str, str]:
    return {c.id: c.strategy.value for c in plan.copies}


def touched(plan: ErasurePlan) -> set[str]:
    return {s.copy_ for s in plan.steps if s.copy_}


def kinds(plan: ErasurePlan) -> list[str]:
    return [g.kind for g in plan.gaps]


def copy(plan: ErasurePlan, name: str) -> Copy:
    return plan.copy_by_id(f"c-prod.{name}")


def archive(**changes: Any) -> ObjectSet:
    version = ObjectVersion(key="p/x.parquet", version_id="1", latest=True, size=1, modified="2026-01-01")
    old = version.model_copy(update={"version_id": "0", "latest": False})
    fields: dict[str, Any] = {
        "dataset": DatasetId(namespace="s3://b", name="p"),
        "bucket": "b",
        "prefix": "p",
        "region": "r",
        "of": "prod.a",
        "versioned": True,
        "versions": (version, old),
    }
    return ObjectSet(**{**fields, **changes})
