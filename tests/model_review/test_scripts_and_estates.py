"""Plain SQL and DDL beside dbt; estate file, harvested graph, manifests and waivers."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.graph.graph_file import save
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.lineage.projects.jinja_subset import macros_of, snapshots_of
from pii_tracer.lineage.projects.parts import conflict_line, essence
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import ConfigError, LineageError
from planners.model_review.waivers import waivers_of
from tests.model_review.dbt_project import ESTATE, write_project
from tests.model_review.repositories import Repo, brief

PEOPLE = "CREATE TABLE crm.people (customer_id BIGINT, email STRING, phone STRING, city STRING) USING delta;\n"
COPY = "CREATE TABLE crm.mail USING delta AS SELECT customer_id, email FROM crm.people;\n"


@pytest.fixture
def scripts(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo").put({"ddl/V1__people.sql": PEOPLE, "jobs/mail.sql": COPY}).commit()


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    file = tmp_path / "pii-tracer.yaml"
    file.write_text(ESTATE.replace("raw.customers", "crm.people").replace("raw.orders", "crm.orders"))
    return file


def test_statements_of_scripts_are_compared(scripts: Repo) -> None:
    scripts.put({"jobs/mail.sql": "-- who gets mail\n" + COPY.replace("customer_id, ", "")})
    assert brief(scripts.review()) == [("error", "key-dropped", "jobs/mail.sql", 2)]
    scripts.put({"jobs/mail.sql": COPY.replace("email", "email, rand() AS lot")})
    assert brief(scripts.review()) == []
    scripts.put({"jobs/mail.sql": COPY, "jobs/more.sql": "INSERT INTO crm.mail SELECT NULL, phone FROM crm.people;\n"})
    (found,) = [f for f in scripts.review().findings if f.severity.value == "error"]
    assert (found.kind.value, found.table) == ("key-dropped", "crm.mail"), "one of two statements has no key"
    scripts.put({"jobs/more.sql": "SELECT email FROM crm.people; -- a look\n"})
    assert brief(scripts.review()) == [], "a query writes nothing"


def test_a_script_may_read_what_a_later_one_makes(scripts: Repo) -> None:
    scripts.put(
        {
            "a_first.sql": "CREATE TABLE crm.z AS SELECT * FROM crm.late;\n",
            "late.sql": "CREATE TABLE crm.late AS SELECT email FROM crm.people;\n",
        }
    )
    assert [(k, f) for _, k, f, _ in brief(scripts.review())] == [
        ("copy-without-key", "a_first.sql"),
        ("copy-without-key", "late.sql"),
    ]


def test_statements_that_do_not_parse_or_are_partial(scripts: Repo) -> None:
    scripts.put({"jobs/odd.sql": "CREATE TABLE crm.odd AS\nSELECT * FROM crm.nobody_knows;\n"})
    assert brief(scripts.review()) == [("error", "lineage-lost", "jobs/odd.sql", 1)]
    scripts.put({"jobs/odd.sql": "SELEKT 1;\n"})
    assert brief(scripts.review()) == [("error", "lineage-lost", "jobs/odd.sql", 1)]
    scripts.put({"jobs/odd.sql": "CREATE TABLE crm.odd AS\nSELECT * FROM crm.nobody_knows;\n"}).commit()
    scripts.put({"jobs/odd.sql": "-- why\nCREATE TABLE crm.odd AS\nSELECT * FROM crm.nobody_knows;\n"})
    assert brief(scripts.review("HEAD")) == [], "a comment"
    scripts.put({"jobs/odd.sql": "CREATE TABLE crm.odd AS\nSELECT * FROM crm.nobody_knows WHERE a = 1;\n"})
    assert brief(scripts.review("HEAD")) == [("warning", "lineage-lost", "jobs/odd.sql", 1)], "it was so before"
    scripts.put({"jobs/odd.sql": ""})
    assert brief(scripts.review("HEAD")) == []


def test_a_new_table_with_persons_needs_a_class_where_the_estate_asks_for_them(scripts: Repo, estate: Path) -> None:
    new = "CREATE TABLE crm.calls AS SELECT customer_id, phone FROM crm.people;\n"
    scripts.put({"jobs/calls.sql": new})
    assert brief(scripts.review()) == []
    assert brief(scripts.review(estate_file=estate)) == [("error", "retention-class", "jobs/calls.sql", 1)]
    scripts.put({"jobs/calls.sql": new.replace(" AS", " TBLPROPERTIES ('pii-tracer.retention-class' = 'derived') AS")})
    assert brief(scripts.review(estate_file=estate)) == [("error", "retention-class", "jobs/calls.sql", 1)]
    scripts.put({"jobs/calls.sql": new.replace(" AS", " TBLPROPERTIES ('pii-tracer.retention-class' = 'pii') AS")})
    assert brief(scripts.review(estate_file=estate)) == []
    scripts.put({"jobs/calls.sql": "\nCREATE TABLE crm.leads (email STRING, note STRING);\n"})
    assert brief(scripts.review(estate_file=estate)) == [("error", "retention-class", "jobs/calls.sql", 2)]
    estate.write_text(estate.read_text() + "  tables: {crm.leads: pii}\n")
    assert brief(scripts.review(estate_file=estate)) == []


def test_a_waiver_is_shown_with_its_reason(scripts: Repo) -> None:
    dropped = COPY.replace("customer_id, ", "")
    scripts.put(
        {
            "jobs/mail.sql": "-- pii-tracer: accept key-dropped because the table is emptied each night (DPO-4)\n"
            + dropped
        }
    )
    found = scripts.review()
    assert brief(found) == [("accepted", "key-dropped", "jobs/mail.sql", 2)]
    assert found.findings[0].waived == "the table is emptied each night (DPO-4)"
    assert int(found.exit_code) == 0
    for comment in (
        "accept key-dropped",
        "accept key-dropped because",
        "accept everything because I say so",
        "accept unreadable because x y",
    ):
        scripts.put({"jobs/mail.sql": f"-- pii-tracer: {comment}\n{dropped}"})
        assert brief(scripts.review()) == [
            ("error", "key-dropped", "jobs/mail.sql", 2), ("warning", "waiver", "jobs/mail.sql", 1),
        ], comment  # fmt: skip
    scripts.put(
        {"jobs/mail.sql": dropped, "jobs/other.sql": "-- pii-tracer: accept key-dropped because another file\n"}
    )
    assert int(scripts.review().exit_code) == 4, "a waiver counts for its own file"


def test_nobody_to_follow_is_not_clean(tmp_path: Path, estate: Path) -> None:
    repo = Repo(tmp_path / "r").put({"a.sql": "CREATE TABLE a AS SELECT 1 AS b;\n"}).commit()
    assert brief(repo.review()) == [("error", "no-subject", "", 1)]
    assert brief(repo.review(estate_file=estate)) == [("error", "no-subject", "", 1)]


def test_a_harvested_graph_leads_to_tables_of_other_repositories(tmp_path: Path, estate: Path) -> None:
    (tmp_path / "ingest.sql").write_text(
        "CREATE TABLE lake.stage.contacts AS SELECT customer_id AS cid, email AS mail, plan FROM crm.people;"
    )
    aliases = {n: DatasetId(namespace="file", name=f"/lake/{n}") for n in ("crm.people", "lake.stage.contacts")}
    graph = harvest_all(LineageSources(sql=("ingest.sql",)), Given(tmp_path, aliases=aliases)).graph
    save(graph, tmp_path / "lineage.graph")
    repo = Repo(tmp_path / "r").put({"a.sql": "CREATE TABLE a AS SELECT cid, plan FROM stage.contacts;\n"}).commit()
    repo.put({"a.sql": "CREATE TABLE a AS SELECT mail, plan FROM stage.contacts;\n"})
    estate.write_text(estate.read_text().replace("retention:\n  pii_days: 7\n", ""))
    assert brief(repo.review(estate_file=estate)) == [
        ("error", "no-subject", "", 1),
        ("error", "copy-without-key", "a.sql", 1),
    ], "nobody knows what stage.contacts is"
    found = repo.review(estate_file=estate, lineage=tmp_path / "lineage.graph")
    assert brief(found) == [("error", "key-dropped", "a.sql", 1)]
    assert found.findings[0].path == ("/lake/crm.people", "/lake/lake.stage.contacts", "a")
    with pytest.raises(LineageError):
        repo.review(lineage=estate)


def test_a_manifest_tells_what_templates_become(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    write_project(repo.root, 8)
    repo.commit()
    new = "models/marts/new.sql"
    raw = "select {{ dbt_utils.star(ref('stg_customers_0')) }} from {{ ref('stg_customers_0') }}\n"
    repo.put({new: raw})
    manifest = tmp_path / "manifest.json"
    node = {"name": "new", "original_file_path": new, "raw_code": raw, "compiled_code": "select `email` from `w`.`shop`.`stg_customers_0`\n",
            "config": {"materialized": "table"}, "depends_on": {"nodes": ["model.shop.stg_customers_0"], "macros": []}}  # fmt: skip
    staged = {"name": "stg_customers_0", "relation_name": "`w`.`shop`.`stg_customers_0`"}
    manifest.write_text(
        json.dumps(
            {
                "metadata": {"project_name": "shop"},
                "nodes": {"model.shop.new": node, "model.shop.stg_customers_0": staged},
            }
        )
    )
    assert brief(repo.review()) == [("error", "lineage-lost", new, 1)]
    assert brief(repo.review(manifest=manifest)) == [("error", "copy-without-key", new, 1)]
    repo.put({new: raw + "where 1 = 1\n"})
    assert brief(repo.review(manifest=manifest)) == [("error", "lineage-lost", new, 1)], (
        "it was compiled from another text"
    )
    manifest.write_text("{}")
    with pytest.raises(LineageError, match="not a dbt manifest"):
        repo.review(manifest=manifest)
    with pytest.raises(ConfigError):
        repo.review(manifest=tmp_path / "gone.json")


def test_an_identifier_is_no_key_where_columns_are_not_known(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r").commit().put({"a.sql": "CREATE TABLE a AS SELECT email, plan FROM raw.leads;\n"})
    assert brief(repo.review()) == [("error", "copy-without-key", "a.sql", 1)]
    repo.put({"0.sql": "CREATE TABLE raw.leads (email STRING, plan STRING);\n"})
    assert brief(repo.review()) == [], "the e-mail address is all that there is"
    repo.put({"0.sql": "CREATE TABLE raw.leads (email STRING, plan STRING, lead_no BIGINT, customer_id BIGINT);\n"})
    assert brief(repo.review()) == [("error", "copy-without-key", "a.sql", 1)]


P = "FROM crm.people"
SHAPES = [
    (f"COPY INTO 's3://x/y' FROM (SELECT email {P}) FILE_FORMAT = (TYPE = CSV)", "error copy-without-key"),
    (f"INSERT OVERWRITE DIRECTORY '/x' USING csv SELECT email {P}", "error copy-without-key"),
    (f"CREATE MATERIALIZED VIEW crm.v AS SELECT email {P}", "error copy-without-key"),
    (f"CREATE VIEW crm.v AS SELECT email {P}", ""),
    (f"CREATE TEMPORARY VIEW v AS SELECT email {P};\nCREATE TABLE crm.f AS SELECT * FROM v", "error copy-without-key"),
    (f"CREATE TABLE crm.f AS SELECT c.customer_id, r.email {P} c JOIN crm.people r ON r.city = c.city", "error copy-without-key"),
    (f"CREATE TABLE crm.f AS SELECT concat(email, '|', phone) AS both {P}", "error copy-without-key"),
    (f"CREATE TABLE crm.f AS SELECT to_json(struct(customer_id, email)) AS doc {P}", ""),
    (f"CREATE TABLE crm.f AS SELECT sha2(CAST(customer_id AS STRING), 256) AS k, email {P}", ""),
    (f"CREATE TABLE crm.f AS SELECT left(CAST(customer_id AS STRING), 3) AS k, email {P}", "error copy-without-key error mask-not-recomputable"),
    (f"CREATE TABLE crm.f AS SELECT substr(CAST(customer_id AS STRING), 1, 3) AS k, city {P}", "error mask-not-recomputable"),
    (f"CREATE TABLE crm.f AS SELECT substr(CAST(customer_id AS STRING), 4) AS k, email {P}", ""),
    (f"CREATE TABLE crm.f AS SELECT customer_id, left(CAST(customer_id AS STRING), 3) AS part, email {P}", ""),
    (f"CREATE TABLE crm.f AS SELECT left(customer_id, 36) AS k, email {P}", ""),
    (f"CREATE TABLE crm.f AS SELECT sha2(left(CAST(customer_id AS STRING), 3), 256) AS k, email {P}", "error copy-without-key error mask-not-recomputable"),
    (f"CREATE TABLE crm.f AS SELECT md5(lower(email)) AS k, city {P}", "warning copy-without-key"),
    (f"CREATE TABLE crm.f AS SELECT sha2(concat(email, s.salt), 256) AS k {P} p CROSS JOIN crm.salts s", "error mask-not-recomputable"),
    (f"CREATE TABLE crm.f AS SELECT hash(current_timestamp(), email) AS k {P}", "error mask-not-recomputable"),
    (f"CREATE TABLE crm.f AS SELECT mask(email) AS k {P}", "error mask-not-recomputable"),
    (f"CREATE TABLE crm.f AS SELECT tokenise(customer_id) AS t {P}", "error mask-not-recomputable"),
    (f"CREATE TABLE crm.f AS SELECT city, max(email) AS e {P} GROUP BY city", "warning identifiers-in-aggregate"),
    (f"CREATE TABLE crm.f AS SELECT city, count(DISTINCT email) AS e {P} GROUP BY city", ""),
    (f"CREATE TABLE crm.f AS SELECT customer_id, email {P} UNION ALL SELECT NULL, email {P}", "error copy-without-key"),
    (f"CREATE TABLE crm.f AS SELECT CASE WHEN city = 'x' THEN customer_id END AS customer_id {P}", "error copy-without-key"),
    (f"CREATE TABLE crm.f AS SELECT city {P}", "warning copy-without-key"),
    ("CREATE TABLE crm.f SHALLOW CLONE crm.people", ""),
    (f"EXECUTE IMMEDIATE 'CREATE TABLE crm.f AS SELECT email {P}'", "error copy-without-key"),
    (f"CREATE TABLE crm.f AS SELECT customer_id, email {P};\nALTER TABLE crm.f DROP COLUMN customer_id", "error copy-without-key"),
    (f"INSERT INTO {{{{ params.table }}}} SELECT email {P}", "error lineage-lost"),
]  # fmt: skip


def test_shapes_of_statements(scripts: Repo) -> None:
    verdicts = {}
    for sql, _ in SHAPES:
        scripts.put({"jobs/new.sql": sql + ";\n"})
        verdicts[sql] = " ".join(dict.fromkeys(f"{level} {kind}" for level, kind, _, _ in brief(scripts.review())))
    assert verdicts == dict(SHAPES)


def test_an_anonymiser_of_the_estate_ends_a_person(scripts: Repo, estate: Path) -> None:
    scripts.put({"jobs/new.sql": "CREATE TABLE crm.f AS SELECT blur(email) AS area FROM crm.people;\n"})
    text = estate.read_text().replace("retention:\n  pii_days: 7\n", "")
    estate.write_text(text)
    assert brief(scripts.review(estate_file=estate)) == [("error", "mask-not-recomputable", "jobs/new.sql", 1)]
    for name in ("blur", "crm.f.area"):  # the base has no table crm.f
        estate.write_text(f"{text}anonymisers: [{name}, crm.people.gone]\n")
        assert brief(scripts.review(estate_file=estate)) == []


@pytest.mark.parametrize(
    "text",
    ["{% macro a() %}" * 200_000, "/*" * 1_000_000, "'\\\\" * 1_000_000, "<<<<<<< x\n" * 300_000, "-- pii-tracer: accept key-dropped " * 9 + " " * 1_000_000,
     "-- pii-tracer: accept x because y\n" * 50_000, "{% snapshot a %}" * 200_000, "`\"'" * 500_001],
    ids=range(8),
)  # fmt: skip
def test_no_text_takes_long_before_it_is_parsed(text: str) -> None:
    began = time.process_time()
    macros_of(text), snapshots_of(text), essence(text), conflict_line(text), list(waivers_of("f", text))
    assert time.process_time() - began < 5


def test_queries_that_read_a_column_twice_do_not_double_the_time(scripts: Repo) -> None:
    steps = [f"a{n} AS (SELECT concat(e, f) AS e, concat(f, e) AS f FROM a{n - 1})" for n in range(1, 60)]
    ctes = ", ".join([f"a0 AS (SELECT email AS e, phone AS f {P})", *steps])
    scripts.put({"jobs/new.sql": f"CREATE TABLE crm.f AS WITH {ctes} SELECT e FROM a59;\n"})
    began = time.process_time()
    assert {kind for _, kind, _, _ in brief(scripts.review())} == {"mask-not-recomputable"}
    assert time.process_time() - began < 5
