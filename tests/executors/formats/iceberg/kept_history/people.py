"""Tables of a SQL catalog that PyIceberg makes, with a history, and a slow model of what each snapshot has to say."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType

from executors.context import ExecutionContext
from executors.formats.iceberg.kept_history.rewrite import HistoryRewrite
from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.formats.iceberg.history_files import History
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_REWRITE_HISTORY
from pii_tracer.model.datasets import Match, MatchTerm
from pii_tracer.model.locations import placed
from tests.executors.world import EMAIL, NOW, UID, Keyring, Steps

NAME = "core.eu.people"
KEY = 2
"""Field id of the column with the key, whatever it is called."""
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(KEY, "uid", LongType(), required=False),
    NestedField(3, "email", StringType(), required=False),
    NestedField(4, "region", StringType(), required=False),
    NestedField(5, "born", DateType(), required=False),
    NestedField(6, "score", DoubleType(), required=False),
)
PARTITIONED = {
    "whole": UNPARTITIONED_PARTITION_SPEC,
    "by region": PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "region")),
    "by key": PartitionSpec(
        PartitionField(4, 1000, IdentityTransform(), "region"), PartitionField(3, 1001, IdentityTransform(), "email")
    ),
}


@dataclass
class People:
    """A table `core.eu.people` below `base`, and the journal of the step that rewrites its history.

    fresh: whether it is made, or there already.
    """

    base: Path
    version: int = 2
    partitions: str = "whole"
    properties: Mapping[str, str] = field(default_factory=dict)
    journal: list[Mapping[str, Any]] = field(default_factory=list)
    fresh: bool = True

    def __post_init__(self) -> None:
        self.catalog = SqlCatalog("core", uri=f"sqlite:///{self.base}/core.db", warehouse=f"file://{self.base}/core")
        if not self.fresh:
            return
        self.catalog.create_namespace("eu")
        self.catalog.create_table(
            "eu.people",
            SCHEMA,
            partition_spec=PARTITIONED[self.partitions],
            properties={"format-version": str(self.version), **self.properties},
        )

    @property
    def table(self) -> Table:
        return self.catalog.load_table("eu.people")

    @property
    def folder(self) -> Path:
        return placed(self.table.location())

    @property
    def key(self) -> str:
        return self.table.schema().find_field(KEY).name

    def append(self, rows: Sequence[tuple[int, int | None, str | None]], branch: str = "main", **more: Any) -> int:
        """Rows of id, key and e-mail address. Returns the new snapshot's id."""
        table = self.table
        made = [
            {
                "id": n,
                self.key: uid,
                "email": email,
                "region": "north" if n % 2 else "south",
                "born": datetime.date(1990, 1, 1 + n % 28),
                "score": n / 3,
                **more,
            }
            for n, uid, email in rows
        ]
        table.append(pa.Table.from_pylist(made, schema=table.schema().as_arrow()), branch=branch)
        table.refresh()
        return table.refs()[branch].snapshot_id

    def tag(self, name: str, snapshot: int) -> None:
        self.table.manage_snapshots().create_tag(snapshot, name).commit()

    def branch(self, name: str, snapshot: int) -> None:
        self.table.manage_snapshots().create_branch(snapshot, name).commit()

    # -- the step -----------------------------------------------------------------------------------------------

    @property
    def estate(self) -> Estate:
        catalog = Catalog(type=CatalogType.ICEBERG_SQL, uri="sqlite:///core.db", warehouse="core")
        return Estate(
            version=1,
            estate="people",
            environment="local",
            catalogs={"core": catalog},
            roots=("core",),
            lineage=LineageSources(),
            subjects=(Subject(name="person", source=NAME, key="uid"),),
        )

    @property
    def context(self) -> ExecutionContext:
        return ExecutionContext(
            estate=self.estate,
            base=self.base,
            keyring=Keyring(),
            now=lambda: NOW,
            told=lambda step: tuple(self.journal),
            note=lambda step, facts: self.journal.append(dict(facts)),
        )

    def found_by(self, *columns: str) -> HistoryRewrite:
        """The step of a plan that finds the persons by some columns."""
        sets = {column: "email" if column == "email" else "uid" for column in columns}
        match = Match(terms=tuple(MatchTerm(column=c, key_set=name, type="string") for c, name in sets.items()))
        steps = Steps(self.context, "iceberg", NAME, self.folder, ICEBERG, match)
        return HistoryRewrite(self.context, steps.step(ICEBERG_REWRITE_HISTORY), steps.copy)

    @property
    def rewrite(self) -> HistoryRewrite:
        return self.found_by(self.key)

    def erase(self) -> dict[str, Any]:
        """Check, run and verify the step; returns its facts."""
        self.rewrite.check()
        facts = self.rewrite.run().facts
        seen = self.rewrite.verify()
        assert seen.ok, seen.findings
        assert str(UID) not in repr((facts, seen, self.journal))
        assert EMAIL not in repr((facts, seen, self.journal))
        return facts

    def sweep(self) -> None:
        """What the removal of orphans does: every file goes that the metadata does not need."""
        named = History.read(placed(self.table.metadata_location)).named
        for path in self.folder.rglob("*"):
            if path.is_file() and path.resolve() not in named:
                path.unlink()

    # -- the model ----------------------------------------------------------------------------------------------

    def told(self) -> dict[str, list[str]]:
        """Every state that can be read: snapshots, branches and tags, each by its own columns, as sorted rows."""
        table = self.table
        found = {}
        names = {f"snapshot {s.snapshot_id}": s.snapshot_id for s in table.metadata.snapshots}
        names |= {f"{ref.snapshot_ref_type.value} {name}": ref.snapshot_id for name, ref in table.refs().items()}
        for name, snapshot in names.items():
            rows = table.scan(snapshot_id=snapshot).to_arrow().to_pylist()
            found[name] = sorted(repr(sorted(row.items())) for row in rows)
        return found


def without(told: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Every state minus the person."""
    return {name: [row for row in rows if str(UID) not in row] for name, rows in told.items()}


def grown(people: People) -> People:
    """A history: appends, a delete, an overwrite, a tag and a branch, a column more and the key's column renamed."""
    people.append([(1, 1001, "b1@example.net"), (2, UID, EMAIL), (3, 1003, None), (12, 1012, "b12@example.net")])
    first = people.append([(4, 1004, "b4@example.net"), (5, 1005, "b5@example.net")])
    people.tag("q1", first)
    people.branch("dev", first)
    people.append([(6, UID, EMAIL), (7, None, "b7@example.net")], branch="dev")
    people.table.delete("id == 1")
    with people.table.update_schema() as update:
        update.rename_column("uid", "person_no")
        update.add_column("note", StringType())
    last = people.append([(8, UID, EMAIL), (9, 1009, "b9@example.net")], note="late")
    people.tag("alone", last)
    people.append([(20, UID, EMAIL)])
    people.table.delete("id > 3")
    people.append([(10, 1010, "b10@example.net")], note="after")
    return people


def brief(people: People) -> People:
    """A shorter one: the person in two snapshots, alone in a file, and below a tag."""
    first = people.append([(1, UID, EMAIL), (2, 1002, "b2@example.net"), (4, 1004, None)])
    people.tag("q1", first)
    people.append([(3, UID, EMAIL)])
    people.table.delete("id == 2")
    return people
