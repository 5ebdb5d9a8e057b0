from __future__ import annotations

import gzip
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openlineage.client import event_v2, facet_v2
from openlineage.client.naming.dataset import AWSGlue
from openlineage.client.serde import Serde

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.harvest import Given, Harvested, harvest_all
from pii_tracer.model.datasets import ColumnId, DatasetId
from tests.lineage.conftest import ALIASES, COPY, PAYMENTS, SCHEMAS, column_facet, dataset, event

FACET = column_facet(uid=(PAYMENTS, "user_id", "TRANSFORMATION"), pan=(PAYMENTS, "pan", "IDENTITY"))
IN, OUT = [dataset(PAYMENTS)], [dataset(COPY, columnLineage=FACET)]
AT = "2026-11-01T10:00:00Z"


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Harvest these bytes, or these events one a line."""

    def make(events: list[Any] | bytes, name: str = "e.ndjson") -> Harvested:
        raw = events if isinstance(events, bytes) else "".join(json.dumps(e) + "\n" for e in events).encode()
        (tmp_path / name).write_bytes(raw)
        return harvest_all(LineageSources(events=(name,)), Given(tmp_path, aliases=ALIASES, schemas=SCHEMAS))

    return make


def arrows(found: Harvested, target: DatasetId = COPY) -> set[tuple[str, str, str]]:
    return {(e.source.column, e.target.column, str(e.subtype)) for e in found.graph.edges_into(target)}


EXPECTED = {("user_id", "uid", "TRANSFORMATION"), ("pan", "pan", "IDENTITY")}


# files


@pytest.mark.parametrize(
    "mangle",
    [
        lambda raw: b"\xef\xbb\xbf" + raw,
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: gzip.compress(raw),
        lambda raw: b"\n\n  \n" + raw,
        lambda raw: json.dumps([json.loads(line) for line in raw.splitlines()], indent=2).encode(),
        lambda raw: b"[" + raw.strip().replace(b"\n", b",\n") + b"]",
    ],
    ids=["bom", "crlf", "gzip under a plain name", "blank lines", "indented document", "list"],
)
def test_the_same_event_in_any_wrapping(read, mangle):
    raw = b"".join(json.dumps(event(run, "COMPLETE", IN, OUT)).encode() + b"\n" for run in ("1", "2"))
    found = read(mangle(raw))
    assert arrows(found) == EXPECTED
    assert found.graph.gaps == ()
    assert found.summary.events == 2


def test_a_file_of_one_indented_event(read):
    found = read(b"\xef\xbb\xbf" + json.dumps(event("1", "COMPLETE", IN, OUT), indent=2).encode())
    assert arrows(found) == EXPECTED
    assert found.graph.gaps == ()


def test_every_bad_line_is_told_and_the_rest_is_read(read):
    good = json.dumps(event("1", "COMPLETE", IN, OUT)).encode()
    found = read(good + b'\n{"a": NaN}\n[1, {}]\n"text"\n12\n\xff\xfe\n{"eventType"\n' + good)
    assert arrows(found) == EXPECTED
    bad = sorted((g.evidence, g.reason) for g in found.graph.gaps)
    assert [where for where, _ in bad] == [f"e.ndjson:{n}" for n in (2, 3, 3, 4, 5, 6, 7)]
    assert {g.kind for g in found.graph.gaps} == {"unreadable_event"}


def test_a_file_of_rubbish_does_not_fill_the_gaps(read):
    found = read(b"rubbish\n" * 5_000)
    assert len(found.graph.gaps) == 21
    assert any("4980 more lines" in g.reason and "line 5000" in g.reason for g in found.graph.gaps)


def test_a_line_of_five_megabytes_and_ten_thousand_columns(read):
    columns = {f"c{n}": (PAYMENTS, "pan", "IDENTITY") for n in range(10_000)}
    wide = event("1", "COMPLETE", IN, [dataset(COPY, columnLineage=column_facet(**columns), noise="x" * 5_000_000)])
    found = read([wide])
    assert len(arrows(found)) == 10_000


NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(NAME, NAME)
def test_any_name_survives(read, column, table):
    """Quotes, dots, Unicode, control characters."""
    source = DatasetId(namespace="db://x", name=table)
    facet = column_facet(**{column: (source, column + "'\"`.\n", "IDENTITY")})
    found = read([event("1", "COMPLETE", [dataset(source)], [dataset(COPY, columnLineage=facet)])])
    (edge,) = found.graph.edges_into(COPY)
    assert edge.source == ColumnId(dataset=source, column=column + "'\"`.\n")
    assert edge.target == ColumnId(dataset=COPY, column=column)


# wrong types


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"inputs": "lake.payments"}, "`inputs` is not a list"),
        ({"inputs": [1]}, "an entry of `inputs` is not an object"),
        ({"outputs": {"name": "x"}}, "`outputs` is not a list"),
        ({"inputs": [{"namespace": "file"}]}, "an input has no name"),
        ({"inputs": [{"namespace": 5, "name": "x"}]}, "`an input.namespace` is not a text"),
        ({"inputs": [dataset(PAYMENTS, schema={"fields": {"pan": "string"}})]}, "`schema.fields` is not a list"),
        ({"inputs": [dataset(PAYMENTS, schema={"fields": [{"name": 7}]})]}, "`schema.fields.name` is not a text"),
        ({"inputs": [dataset(PAYMENTS, schema="pan")]}, "`facets.schema` is not an object"),
        ({"outputs": [dataset(COPY, columnLineage={"fields": []})]}, "`columnLineage.fields` is not an object"),
        ({"outputs": [dataset(COPY, columnLineage={"fields": {"a": 1}})]}, "`columnLineage.fields entry` is not"),
        (
            {"outputs": [dataset(COPY, columnLineage={"fields": {"a": {"inputFields": [{"name": "x", "field": 3}]}}})]},
            "`inputFields.field` is not a text",
        ),
        (
            {"outputs": [dataset(COPY, lifecycleStateChange={"lifecycleStateChange": "RENAME"})]},
            "does not show the old name",
        ),
        ({"outputs": [dataset(COPY, symlinks={"identifiers": {"name": "x"}})]}, "`symlinks.identifiers` is not"),
        ({"eventTime": 12}, "`eventTime` is not a time"),
        ({"eventTime": "yesterday"}, "`eventTime` is not a time"),
        ({"run": {"runId": 12}}, "`run.runId` is not a text"),
        ({"job": {"namespace": "jobs", "name": ["x"]}}, "`job.name` is not a text"),
    ],
)
def test_a_wrong_type_is_a_gap(read, change, reason):
    found = read([event("1", "COMPLETE", IN, OUT) | change, event("2", "COMPLETE", IN, OUT)])
    assert any(g.kind == "malformed_event" and reason in g.reason for g in found.graph.gaps)
    assert arrows(found) == EXPECTED


def test_facets_that_nobody_knows_are_left_alone(read):
    assert read([event("1", "COMPLETE", [dataset(PAYMENTS, acme_quality=[1, "x"])], OUT)]).graph.gaps == ()


def test_a_deleted_facet_tells_nothing(read):
    gone = [dataset(COPY, columnLineage=FACET | {"_deleted": True})]
    assert [g.kind for g in read([event("1", "COMPLETE", IN, gone)]).graph.gaps] == ["no_columns"]


@pytest.mark.parametrize("line", ['{"job": 1}', '{"a": 1}', '{"job": {}, "run": []}', '{"dataset": {"facets": {}}}'])
def test_an_object_that_is_no_event_is_a_gap(read, line):
    (gap,) = read(line.encode()).graph.gaps
    assert (gap.kind, gap.evidence) == ("unreadable_event", "e.ndjson:1")


# kinds of events


def _json(made: Any) -> dict[str, Any]:
    return json.loads(Serde.to_json(made))


def _lineage(*fields: tuple[str, str, facet_v2.column_lineage_dataset.Transformation]) -> Any:
    column = facet_v2.column_lineage_dataset
    return column.ColumnLineageDatasetFacet(
        fields={
            target: column.Fields([column.InputField(PAYMENTS.namespace, PAYMENTS.name, source, [change])])
            for target, source, change in fields
        },
        dataset=[
            column.InputField(PAYMENTS.namespace, PAYMENTS.name, "city", [column.Transformation("INDIRECT", "FILTER")])
        ],
    )


IDENTITY = facet_v2.column_lineage_dataset.Transformation("DIRECT", "IDENTITY")
MASKED = facet_v2.column_lineage_dataset.Transformation("DIRECT", "TRANSFORMATION", "sha2", True)


def test_run_job_and_dataset_events_of_the_reference_client(read):
    facet = _lineage(("pan", "pan", IDENTITY), ("uid", "user_id", MASKED))
    source = event_v2.InputDataset(PAYMENTS.namespace, PAYMENTS.name)
    target = event_v2.OutputDataset(COPY.namespace, COPY.name, facets={"columnLineage": facet})
    job = event_v2.Job("jobs", "copy")
    run = event_v2.Run(str(uuid.UUID(int=1)))
    static = event_v2.StaticDataset(COPY.namespace, COPY.name, facets={"columnLineage": facet})
    kinds = {
        "run": event_v2.RunEvent(
            eventTime=AT, eventType=event_v2.RunState.COMPLETE, run=run, job=job, inputs=[source], outputs=[target]
        ),
        "job": event_v2.JobEvent(eventTime=AT, job=job, inputs=[source], outputs=[target]),
        "dataset": event_v2.DatasetEvent(eventTime=AT, dataset=static),
    }
    for kind, made in kinds.items():
        found = read([_json(made)])
        assert found.graph.gaps == (), kind
        assert arrows(found) == {("pan", "pan", "IDENTITY"), ("user_id", "uid", "TRANSFORMATION")}, kind
        assert {e.target.column: e.masking for e in found.graph.edges_into(COPY)} == {"pan": False, "uid": True}
        (member,) = found.graph.memberships_into(COPY)
        assert (member.source.column, member.subtype) == ("city", Subtype.FILTER)


def test_a_described_dataset_is_in_the_graph_and_nobody_writes_it(read):
    facts = {"schema": {"fields": [{"name": "a", "type": "long"}]}}
    found = read([{"eventTime": AT, "dataset": dataset(DatasetId(namespace="db", name="t"), **facts)}])
    assert found.graph.gaps == ()
    (known,) = [d for d in found.graph.datasets() if d.namespace == "db"]
    assert [(c.name, c.type) for c in found.graph.columns(known)] == [("a", "bigint")]
    assert found.graph.jobs_into(known) == ()


def test_a_described_job_without_outputs_is_a_gap_until_somebody_names_them(read):
    described = {"eventTime": AT, "job": {"namespace": "jobs", "name": "job_1"}, "inputs": IN}
    assert [g.kind for g in read([described]).graph.gaps] == ["no_outputs"]
    assert read([described, event("1", "COMPLETE", IN, OUT)]).graph.gaps == ()


def test_explicit_lineage_facets(read):
    entry = {
        "namespace": COPY.namespace,
        "name": COPY.name,
        "type": "DATASET",
        "inputs": [
            {**PAYMENTS.model_dump(), "type": "DATASET"},
            {**PAYMENTS.model_dump(), "type": "DATASET", "field": "city",
             "transformations": [{"type": "INDIRECT", "subtype": "JOIN"}]},
            {"type": "JOB", "namespace": "x", "name": "y"},
        ],
        "fields": {"pan": {"inputs": [{**PAYMENTS.model_dump(), "type": "DATASET", "field": "pan",
                                       "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}]}]}},
    }  # fmt: skip
    on_job = event("1", "COMPLETE", [], []) | {
        "job": {"namespace": "jobs", "name": "x", "facets": {"lineage": {"entries": [entry]}}}
    }
    on_dataset = event("1", "COMPLETE", [], [dataset(COPY, lineage=entry)])
    for made in (on_job, on_dataset):
        found = read([made])
        assert found.graph.gaps == ()
        assert arrows(found) == {("pan", "pan", "IDENTITY")}
        assert [(m.source.column, str(m.subtype)) for m in found.graph.memberships_into(COPY)] == [("city", "JOIN")]


def test_old_column_facets(read):
    def entry(kind: str | None) -> dict[str, Any]:
        told = {"inputFields": [{**PAYMENTS.model_dump(), "field": "pan"}]}
        return told | ({"transformationType": kind} if kind else {})

    facet = {"fields": {"a": entry("IDENTITY"), "b": entry("MASKED"), "c": entry(None)}}
    found = read([event("1", "COMPLETE", IN, [dataset(COPY, columnLineage=facet)])])
    assert {(e.target.column, str(e.subtype), e.masking) for e in found.graph.edges_into(COPY)} == {
        ("a", "IDENTITY", False), ("b", "TRANSFORMATION", True), ("c", "TRANSFORMATION", False),
    }  # fmt: skip


def test_a_whole_dataset_dependency_of_unknown_kind_is_kept(read):
    facet = {"fields": {}, "dataset": [{**PAYMENTS.model_dump(), "field": "city"}]}
    found = read([event("1", "COMPLETE", IN, [dataset(COPY, columnLineage=facet)])])
    assert [(m.source.column, str(m.subtype)) for m in found.graph.memberships_into(COPY)] == [("city", "FILTER")]


def test_rows_that_are_told_are_no_columns(read):
    """A filter is told and nothing else: what went through it is not."""
    facet = {"fields": {}, "dataset": [{**PAYMENTS.model_dump(), "field": "city"}]}
    (gap,) = read([event("1", "COMPLETE", IN, [dataset(COPY, columnLineage=facet)])]).graph.gaps
    assert (gap.kind, gap.dataset) == ("no_columns", COPY)
    counted = "INSERT INTO prod.copy SELECT 'n', 'x' FROM lake.prod.payments WHERE pan > 'a'"
    told = event("1", "COMPLETE", IN, [dataset(COPY, columnLineage=facet)], sql=counted)
    assert read([told]).graph.gaps == ()


def test_a_statement_that_carries_no_column_leaves_nothing_open(read):
    counted = "INSERT INTO prod.copy SELECT count(*), 'x' FROM lake.prod.payments"
    assert [g.kind for g in read([event("1", "COMPLETE", IN, [dataset(COPY)])]).graph.gaps] == ["no_columns"]
    found = read([event("1", "COMPLETE", IN, [dataset(COPY)], sql=counted)])
    assert found.graph.gaps == ()
    assert found.graph.downstream(PAYMENTS) == (COPY,)


def test_an_input_that_no_column_comes_from_is_a_gap(read):
    """Columns of one side of a join are told, the other side went through a function nobody sees into."""
    other = DatasetId(namespace="file", name="/other")
    second = DatasetId(namespace="file", name="/second")
    (gap,) = read([event("1", "COMPLETE", [*IN, dataset(other)], OUT)]).graph.gaps
    assert (gap.kind, gap.dataset) == ("no_columns", COPY)
    assert "/other" in gap.reason
    assert "payments" not in gap.reason
    apart = dataset(second, columnLineage=column_facet(a=(other, "a", "IDENTITY")))
    assert read([event("1", "COMPLETE", [*IN, dataset(other)], [*OUT, apart])]).graph.gaps == ()
    rows = FACET | {"dataset": [{**other.model_dump(), "field": "id", "transformations": [
        {"type": "INDIRECT", "subtype": "JOIN"}]}]}  # fmt: skip
    joined = [dataset(COPY, columnLineage=rows)]
    assert read([event("1", "COMPLETE", [*IN, dataset(other)], joined)]).graph.gaps == ()


# runs


def test_a_run_that_never_ended_counts_and_says_so(read):
    started = event("1", "START", IN, [dataset(COPY)])
    found = read([started])
    (gap,) = found.graph.gaps
    assert "no event says that the run ended" in gap.reason
    assert found.graph.downstream(PAYMENTS) == (COPY,)
    assert "the run failed" in read([started, event("1", "ABORT", IN, [])]).graph.gaps[0].reason


def test_a_run_that_broke_off_is_explained_by_the_others_of_its_job_only_if_they_agree(read):
    def of(run: str, kind: str, outputs: list[Any]) -> dict[str, Any]:
        return event(run, kind, IN, outputs) | {"job": {"namespace": "jobs", "name": "one"}}

    whole = [of("1", "START", []), of("1", "COMPLETE", OUT)]
    other = [dataset(PAYMENTS.model_copy(update={"name": "/else"}), columnLineage=FACET)]
    assert read([*whole, of("2", "START", [])]).graph.gaps == ()
    assert [g.kind for g in read([*whole, of("2", "START", []), of("3", "COMPLETE", other)]).graph.gaps] == [
        "no_outputs"
    ]
    assert [g.kind for g in read([*whole, of("2", "COMPLETE", [])]).graph.gaps] == ["no_outputs"]


def test_many_runs_are_one_evidence_whatever_the_order(read):
    runs = [
        event(f"r{n}", "COMPLETE", IN, OUT)
        | {"job": {"namespace": "jobs", "name": "nightly"}, "eventTime": f"2026-11-{n:02}T00:00:00.5+05:30"}
        for n in range(1, 11)
    ]
    found = read(runs)
    for edge in found.graph.edges_into(COPY):
        (evidence,) = edge.evidence
        assert (evidence.where, evidence.last, evidence.runs) == ("run r1", "run r10", 10)
        assert (evidence.job, evidence.at) == ("jobs:nightly", "2026-11-09T18:30:00.5Z")
    assert read(runs[::-1] + runs).graph.digest() == found.graph.digest()


def test_source_code(read):
    def of(language: str, text: str) -> dict[str, Any]:
        made = event("1", "COMPLETE", IN, [dataset(COPY)])
        made["job"]["facets"] = {"sourceCode": {"language": language, "sourceCode": text}}
        return made

    sql = read([of("SQL", "INSERT INTO prod.copy SELECT user_id, pan FROM lake.prod.payments")])
    assert ("pan", "pan", "IDENTITY") in arrows(sql)
    assert sql.graph.gaps == ()
    (gap,) = read([of("PYTHON", "df.write.save('x')")]).graph.gaps
    assert gap.kind == "no_columns"
    assert "its source code (PYTHON) is not read" in gap.reason


def test_the_dialect_of_the_sql_facet(read):
    made = event("1", "COMPLETE", [], [])
    text = 'INSERT INTO "prod"."copy" SELECT "pan" AS "pan", "user_id" FROM "lake"."prod"."payments"'
    made["job"]["facets"] = {"sql": {"query": text, "dialect": "snowflake"}}
    found = read([made])
    assert ("pan", "uid", "IDENTITY") in arrows(found)
    assert [j.sql for j in found.graph.jobs_into(COPY)] == [None], "Spark is never given another engine's SQL"
    made["job"]["facets"]["sql"]["dialect"] = "klingon"
    assert "unknown_dialect" in {g.kind for g in read([made]).graph.gaps}


# what is said about datasets


def test_tags_life_and_storage_are_noted(read):
    tags = facet_v2.tags_dataset
    facets = {
        "tags": tags.TagsDatasetFacet([
            tags.TagsDatasetFacetFields("pii", "true", "USER", "pan"), tags.TagsDatasetFacetFields("tier", "gold"),
        ]),
        "storage": facet_v2.storage_dataset.StorageDatasetFacet("iceberg", "parquet"),
        "lifecycleStateChange": facet_v2.lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(
            facet_v2.lifecycle_state_change_dataset.LifecycleStateChange.DROP
        ),
    }  # fmt: skip
    made = event_v2.RunEvent(
        eventTime=AT,
        eventType=event_v2.RunState.COMPLETE,
        run=event_v2.Run(
            str(uuid.UUID(int=1)),
            facets={
                "parent": facet_v2.parent_run.ParentRunFacet(
                    facet_v2.parent_run.Run(str(uuid.UUID(int=2))), facet_v2.parent_run.Job("jobs", "dag")
                )
            },
        ),
        job=event_v2.Job("jobs", "drop"),
        outputs=[event_v2.OutputDataset("file", "/lake/gone", facets=facets)],
    )
    found = read([_json(made)])
    gone = DatasetId(namespace="file", name="/lake/gone")
    assert {(t.field, t.key, t.value, t.source) for t in found.notes.tags} == {
        ("pan", "pii", "true", "USER"), (None, "tier", "gold", None),
    }  # fmt: skip
    assert [(c.dataset, c.change, c.at) for c in found.notes.changes] == [(gone, "DROP", AT)]
    assert [(d.facet, dict(d.content)) for d in found.notes.described] == [
        ("storage", {"storageLayer": "iceberg", "fileFormat": "parquet"})
    ]
    assert [(p.job, p.parent) for p in found.notes.parents] == [("jobs:drop", "jobs:dag")]
    assert gone in found.graph.datasets()


def test_a_table_and_its_place_are_one_dataset_whichever_an_event_names(read):
    """Some integrations name a table by catalog with a LOCATION symlink, others by place with a TABLE symlink."""
    glue = AWSGlue("ap-south-1", "123456789012", "prod", "copy")
    table = DatasetId(namespace=glue.get_namespace(), name=glue.get_name())
    place = DatasetId(namespace="s3://lake", name="prod/copy")
    last = DatasetId(namespace="file", name="/last")
    to_place = {"identifiers": [{"namespace": "s3a://lake", "name": "/prod/copy/", "type": "LOCATION"}]}
    by_table = dataset(table, symlinks=to_place, columnLineage=FACET)
    reads_place = event("2", "COMPLETE", [dataset(place)],
                        [dataset(last, columnLineage=column_facet(p=(place, "pan", "IDENTITY")))])  # fmt: skip
    found = read([event("1", "COMPLETE", IN, [by_table]), reads_place])
    assert found.graph.downstream(PAYMENTS) == (place, last)
    assert table not in found.graph.datasets()


def test_a_masked_value_is_never_the_same_value(read):
    """The specification: masking is true where the value is hidden on the way, whatever else is said of it."""
    facet = column_facet(uid=(PAYMENTS, "user_id", "IDENTITY"))
    facet["fields"]["uid"]["inputFields"][0]["transformations"][0]["masking"] = True
    found = read([event("1", "COMPLETE", IN, [dataset(COPY, columnLineage=facet)])])
    assert arrows(found) == {("user_id", "uid", "TRANSFORMATION")}


def test_rename_remembers_both(read):
    change = {"lifecycleStateChange": "RENAME", "previousIdentifier": PAYMENTS.model_dump()}
    new = DatasetId(namespace="file", name="/lakehouse/lake/prod/payments_old")
    found = read([event("1", "COMPLETE", [], [dataset(new, lifecycleStateChange=change)])])
    assert {PAYMENTS, new} <= set(found.graph.datasets())
    assert [(c.change, c.previous) for c in found.notes.changes] == [("RENAME", PAYMENTS)]


# order and repetition

MIXED = [
    event("1", "START", IN, [dataset(COPY)]),
    event("1", "RUNNING", IN, OUT),
    event("1", "COMPLETE", [], []),
    event("2", "START", IN, []) | {"job": {"namespace": "jobs", "name": "job_1"}},
    event("3", "FAIL", [dataset(COPY, schema={"fields": [{"name": "uid"}]})], [dataset(PAYMENTS)]),
    event("4", "COMPLETE", "broken", [dataset(COPY, schema={"fields": 3})]),
    {"eventTime": AT, "job": {"namespace": "jobs", "name": "job_1"}, "inputs": IN, "outputs": OUT},
    {"eventTime": AT, "dataset": dataset(COPY, tags={"tags": [{"key": "pii", "value": "x"}]})},
    event("5", "COMPLETE", [], [dataset(COPY, lifecycleStateChange={"lifecycleStateChange": "TRUNCATE"})]),
    event("6", "COMPLETE", IN, [], sql="INSERT INTO prod.copy SELECT user_id, pan FROM lake.prod.payments"),
    event("7", "COMPLETE", IN, OUT) | {"eventTime": "2026-11-05T00:00:00Z"},
    event("8", "START", [dataset(COPY)], [dataset(DatasetId(namespace="file", name="/silent"))]),
    event("8", "COMPLETE", [], []),
    event("9", "START", [dataset(COPY)], [dataset(DatasetId(namespace="file", name="/broken"))]),
    event("9", "ABORT", [], []),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.permutations(MIXED), st.lists(st.sampled_from(MIXED), max_size=6))
def test_order_and_repetition_change_nothing(read, order, again):
    once, shuffled = read(MIXED), read([*order, *again])
    assert shuffled.graph.digest() == once.graph.digest()
    assert shuffled.notes == once.notes


# schemas that changed


def _told(at: str, sql: str, columns: list[str]) -> dict[str, Any]:
    schema = {"fields": [{"name": c, "type": "string"} for c in columns]}
    return event(at, "COMPLETE", [dataset(PAYMENTS, schema=schema)], [], sql=sql) | {
        "eventTime": f"2026-11-{at}T00:00:00Z"
    }


def test_a_copy_made_before_a_column_was_dropped_still_has_it(read):
    """Today's catalog shows user_id and pan; when the copy was made there was a phone as well."""
    copied = "CREATE TABLE delta.`/copy` AS SELECT * FROM lake.prod.payments"
    copy = DatasetId(namespace="file", name="/copy")
    before = [_told("01", copied, ["user_id", "pan", "phone"])]
    after = _told("05", "INSERT INTO prod.copy SELECT * FROM lake.prod.payments", ["user_id", "pan"])
    naive = read([{**before[0], "inputs": []}, after])
    assert {target for _, target, _ in arrows(naive, copy)} == {"user_id", "pan"}
    found = read([*before, after])
    assert {target for _, target, _ in arrows(found, copy)} == {"user_id", "pan", "phone"}
    assert {source for source, _, _ in arrows(found)} == {"user_id", "pan"}, "what ran later never saw it"
    assert found.graph.gaps == ()


def test_a_statement_from_before_a_column_was_added_is_resolved_by_the_columns_of_its_time(read):
    """Three columns of today do not fit into two; they were two when it ran."""
    narrow = "INSERT INTO prod.copy SELECT * FROM delta.`/wide`"
    wide = DatasetId(namespace="file", name="/wide")

    def told(at: str, *columns: str, sql: str) -> dict[str, Any]:
        schema = {"fields": [{"name": c, "type": "string"} for c in columns]}
        return event(at, "COMPLETE", [dataset(wide, schema=schema)], [], sql=sql) | {
            "eventTime": f"2026-11-{at}T00:00:00Z"
        }

    later = told("09", "a", "b", "c", sql="SELECT count(*) FROM delta.`/wide`")
    assert "sql_opaque" in {g.kind for g in read([told("01", "a", "b", "c", sql=narrow), later]).graph.gaps}
    found = read([told("01", "a", "b", sql=narrow), later])
    assert found.graph.gaps == ()
    assert {(s, t) for s, t, _ in arrows(found)} == {("a", "uid"), ("b", "pan")}


def test_a_schema_cut_down_to_what_a_query_read_takes_nothing_away(read):
    copied = "CREATE TABLE delta.`/copy` AS SELECT * FROM lake.prod.payments"
    found = read([_told("01", copied, ["pan"]), _told("02", "SELECT 1", ["user_id", "pan"])])
    assert {t for _, t, _ in arrows(found, DatasetId(namespace="file", name="/copy"))} == {"user_id", "pan"}
