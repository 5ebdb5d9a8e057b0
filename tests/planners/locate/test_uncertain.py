"""What is not certain is a gap that names itself, never an end of planning and never an all-clear."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Column, Strategy
from planners.copies.classification import Recognised, recognise
from planners.copies.derived_keys import derive
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.copies.scan_evidence import Evidence
from planners.locate.key_location import follow
from planners.locate.subject_survey import World, survey
from tests.planners.estates import PERSON, dataset, graph_of
from tests.planners.smalllake import Lake, kinds, strategies
from tests.planners.smalllake import dataset as lake_dataset

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
COLUMNS = ("user_id", "email", "phone", "order_id")
ODD = "\u1c8a9"
"""A letter whose case differs between versions of Java (Unicode 16)."""


def recognised(sql: str, columns: str, emails: list[str], seen: Evidence, asked: int = 1) -> Recognised:
    graph = graph_of(sql, {"prod.out": columns})
    texts = {name: [f"{name}-{n}-1234567890" for n in range(len(emails))] for name in COLUMNS} | {"email": emails}
    wanted = [Wanted(f"R{n}", f"subj{n}", f"user_id-{n}-1234567890") for n in range(asked)]
    found = survey(
        PERSON,
        dataset("prod.users"),
        follow(graph, dataset("prod.users"), PERSON),
        resolve(PERSON, SourceRows(texts), wanted),
    )
    tables = tuple(
        TableState(
            dataset=dataset(name),
            table=name,
            location=dataset(name).name,
            format=ICEBERG,
            snapshot="1",
            columns=tuple(Column(name=c, type="string") for c in names),
        )
        for name, names in (("prod.users", COLUMNS), ("prod.out", [c.split()[0] for c in columns.split(", ")]))
    )
    source = Evidence(files=1, files_with_person=1, bytes=1, strong=frozenset({"person.user_id"}))
    evidence = {tables[0].location: source, tables[1].location: seen}
    return recognise(found, World(graph, Inventory(tables=tables), evidence, lambda _: False))


CLEAN = Evidence(files=1, files_with_person=0, bytes=0)
FOUND = Evidence(files=1, files_with_person=1, bytes=1, strong=frozenset({"person.email"}))
BY_MAIL = "INSERT INTO prod.out SELECT lower(email) AS mail FROM prod.users;"


def test_the_letter_is_one_that_cannot_be_evaluated() -> None:
    keys = resolve(PERSON, SourceRows({n: [ODD] for n in COLUMNS}), [Wanted("R", "s", ODD)])
    made = derive(keys, "email", "lower(x)")
    assert (made.unsure, made.keys.values, made.blind) == (1, (), True)
    assert ODD not in made.why
    assert derive(keys, "email", "x").unsure == 0


def test_one_of_two_persons_uncertain_is_a_gap_beside_the_way_to_the_other() -> None:
    made = recognised(BY_MAIL, "mail string", ["a@x", ODD], FOUND, 2)
    copy = next(i.copy for i in made.items if i.copy.table == "prod.out")
    assert copy.strategy is Strategy.DELETE_BY_IDENTIFIERS
    assert copy.match is not None
    (gap,) = [g for g in made.gaps if g.kind == "value_not_certain"]
    assert "1 of the persons" in gap.reason
    assert ODD not in gap.model_dump_json()


def test_nobody_to_be_found_is_no_delete_and_no_all_clear() -> None:
    made = recognised(BY_MAIL, "mail string", [ODD], CLEAN)
    copy = next(i.copy for i in made.items if i.copy.table == "prod.out")
    assert (copy.strategy, copy.match) == (Strategy.BLOCKED, None)
    assert {g.kind for g in made.gaps if g.dataset == copy.dataset} == {"value_not_certain", "cannot_be_proved"}
    # the naive way: the same table with a person whose value is certain is examined and clear
    plain = recognised(BY_MAIL, "mail string", ["a@x"], CLEAN)
    assert [e.table for e in plain.examined] == ["prod.out"]


def rebuilt(**changes: Any) -> Lake:
    return Lake(
        copies={"a": Subtype.IDENTITY, "b": Subtype.AGGREGATION}, sql={"b": "INSERT OVERWRITE b SELECT 1"}, **changes
    )  # type: ignore[arg-type]


def test_a_rebuild_from_erased_sources_is_proved() -> None:
    made = rebuilt().plan()
    assert strategies(made)["c-prod.b"] == "rebuild"
    assert kinds(made) == []


@pytest.mark.parametrize(
    ("read", "words"), [("elsewhere", "was not searched"), ("b", "the table itself"), (None, "not recorded")]
)
def test_a_rebuild_that_reads_what_nobody_looked_at_is_a_gap(
    monkeypatch: pytest.MonkeyPatch, read: str | None, words: str
) -> None:
    lake = rebuilt()
    real = Lake._graph

    def graph(self: Lake) -> LineageGraph:
        made = real(self)
        jobs = tuple(
            j.model_copy(update={"inputs": (*(j.inputs if read else ()), *([lake_dataset(read)] if read else []))})
            if j.output == lake_dataset("b")
            else j
            for j in made.facts.jobs
        )
        return LineageGraph(made.facts.model_copy(update={"jobs": jobs}))

    monkeypatch.setattr(Lake, "_graph", graph)
    made = lake.plan()
    (gap,) = [g for g in made.gaps if g.kind == "rebuild_unproved"]
    assert words in gap.reason
    assert not made.complete
