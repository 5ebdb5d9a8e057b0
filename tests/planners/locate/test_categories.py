"""Categories flow with values, change with masking and counting, and end only where the estate says so."""

from __future__ import annotations

import random

import pytest

from pii_tracer.config.estate_file import Estate
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.sources.dataset_descriptions import Tag
from pii_tracer.model.datasets import Carries, ColumnId
from pii_tracer.model.errors import ConfigError
from planners.locate.edge_effects import Anonymisers, declared_anonymisers
from planners.locate.key_location import follow
from planners.locate.tag_propagation import (
    Witness,
    column_tags,
    source_tags,
    spread,
)
from tests.planners.estates import PERSON, carriage, dataset, graph_of

INTO = "INSERT OVERWRITE prod.out "


def tags(sql: str, column: str, table: str = "prod.out", anonymisers: Anonymisers | None = None) -> list[str]:
    found = spread(graph_of(sql), source_tags(PERSON, dataset("prod.users")), anonymisers or Anonymisers())
    return [str(w.tag) for w in found.get(dataset(table), {}).get(column, ())]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("email", ["email"]),
        ("lower(email)", ["email"]),
        ("concat(email, '|', phone)", ["email", "phone"]),
        ("tokenise(email)", ["email"]),
        ("collect_list(email)", ["email"]),
        ("max(email)", ["email"]),
        ("sha2(email, 256)", ["email (pseudonymous)"]),
        ("md5(lower(trim(email)))", ["email (pseudonymous)"]),
        ("xxhash64(email)", ["email (pseudonymous)"]),
        ("crc32(email)", ["email (pseudonymous)"]),
        ("mask(email)", ["email (pseudonymous)"]),
        ("count(DISTINCT email)", ["email (aggregate)"]),
        ("regexp_replace(phone, '[^0-9]', '')", ["phone"]),
        ("named_struct('a', email, 'b', md5(phone))", ["email", "phone (pseudonymous)"]),
        ("CASE WHEN email = 'a' THEN 1 ELSE 0 END", []),
        ("amount", []),
    ],
)
def test_what_an_expression_makes_of_a_category(expression: str, expected: list[str]) -> None:
    assert tags(f"{INTO}SELECT {expression} AS c FROM prod.users", "c") == expected


def test_a_field_taken_out_of_a_struct_has_its_own_category_only() -> None:
    sql = (
        "INSERT OVERWRITE prod.a SELECT named_struct('e', email, 'p', md5(phone)) AS s FROM prod.users;\n"
        "INSERT OVERWRITE prod.out SELECT s.e AS c FROM prod.a;"
    )
    found = spread(
        graph_of(sql, {"prod.a": "s struct<e:string,p:string>"}),
        source_tags(PERSON, dataset("prod.users")),
        Anonymisers(),
    )
    assert [str(w.tag) for w in found[dataset("prod.out")]["c"]] == ["email"]


def test_a_pseudonym_stays_one_downstream_and_a_count_stays_a_count() -> None:
    sql = (
        "INSERT OVERWRITE prod.a SELECT md5(email) AS h, count(phone) AS n FROM prod.users GROUP BY email;\n"
        "INSERT OVERWRITE prod.out SELECT upper(h) AS c, n + 1 AS m FROM prod.a;"
    )
    assert tags(sql, "c") == ["email (pseudonymous)"]
    assert tags(sql, "m") == ["phone (aggregate)"]


def test_the_witness_is_the_shortest_path_and_then_the_first_by_name() -> None:
    sql = (
        "INSERT OVERWRITE prod.c SELECT email AS e FROM prod.users;\n"
        "INSERT OVERWRITE prod.b SELECT e FROM prod.c;\n"
        "INSERT INTO prod.out SELECT e FROM prod.b;\n"
        "INSERT INTO prod.out SELECT e FROM prod.c;\n"
    )
    witness = carriage(sql).tags["e"][0]
    assert [str(e.target.dataset.name) for e in witness.path] == ["/w/prod/c", "/w/prod/out"]
    assert witness.path[0].source == witness.origin == ColumnId(dataset=dataset("prod.users"), column="email")
    assert witness.path[-1].evidence[0].where == "job.sql:4"


def test_the_order_of_the_facts_does_not_matter() -> None:
    sql = (
        "INSERT OVERWRITE prod.a SELECT email AS e, phone FROM prod.users;\n"
        "INSERT OVERWRITE prod.b SELECT email AS e, phone FROM prod.users;\n"
        "INSERT OVERWRITE prod.out SELECT a.e, b.phone FROM prod.a a JOIN prod.b b ON a.e = b.e;"
    )
    facts = graph_of(sql).facts
    edges = list(facts.edges)
    random.Random(7).shuffle(edges)
    again = LineageGraph(
        collect(edges, facts.memberships, facts.jobs, facts.gaps, dict(facts.schemas), dict(facts.names))
    )

    def paths(graph: LineageGraph) -> dict[str, tuple[Witness, ...]]:
        return follow(graph, dataset("prod.users"), PERSON)[dataset("prod.out")].tags  # type: ignore[return-value]

    assert paths(again) == paths(graph_of(sql)) != {}


def test_a_tag_that_is_removed_at_the_source_is_gone_everywhere() -> None:
    sql = INTO + "SELECT email AS e, md5(phone) AS p FROM prod.users"
    without = PERSON.model_copy(update={"identifiers": PERSON.identifiers[1:]})
    assert sorted(carriage(sql).tags) == ["e", "p"]
    assert sorted(carriage(sql, subject=without).tags) == ["p"]


def test_a_circle_ends() -> None:
    sql = (
        "INSERT INTO prod.a SELECT upper(e) AS e FROM prod.b;\nINSERT INTO prod.b SELECT lower(e) AS e FROM prod.a;\n"
        + ("INSERT INTO prod.a SELECT email AS e FROM prod.users;")
    )
    assert tags(sql, "e", "prod.b") == ["email"]


def estate(*anonymisers: str) -> Estate:
    return Estate.model_validate(
        {
            "version": 1,
            "estate": "t",
            "environment": "local",
            "catalogs": {},
            "roots": ["w"],
            "lineage": {},
            "subjects": [{"name": "user", "source": "users", "key": "uid"}],
            "anonymisers": anonymisers,
        }
    )


@pytest.mark.parametrize("declared", ["k_anonymous", "prod.out.c", "OUT.C"])
def test_only_a_declared_anonymiser_ends_a_person(declared: str) -> None:
    sql = INTO + "SELECT k_anonymous(upper(email), city) AS c FROM prod.users"
    ends = declared_anonymisers(estate(declared), graph_of(sql))
    assert tags(sql, "c") == ["email"]
    assert tags(sql, "c", anonymisers=ends) == []
    assert carriage(sql).carries is Carries.UNKNOWN
    assert carriage(sql, anonymisers=ends).carries is Carries.NONE
    assert "anonymiser" in carriage(sql, anonymisers=ends).reason


def test_nobody_is_told_to_call_a_hash_an_anonymiser() -> None:
    """It is pseudonymous: whoever has the value finds the row again."""
    assert "anonymiser" in carriage(INTO + "SELECT k_anonymous(email) AS c FROM prod.users").closes
    told = carriage(INTO + "SELECT sha2(scrambled(email), 256) AS c FROM prod.users")
    assert told.carries is Carries.UNKNOWN
    assert "let its job also write the key" in told.closes
    assert "anonymiser" not in told.closes


def test_what_goes_past_the_anonymiser_stays() -> None:
    sql = INTO + "SELECT concat(k_anonymous(email), email) AS c FROM prod.users"
    ends = Anonymisers(functions=frozenset({"k_anonymous"}))
    assert tags(sql, "c", anonymisers=ends) == ["email"]
    assert carriage(sql, anonymisers=ends).carries is Carries.UNKNOWN


def test_an_anonymised_column_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        declared_anonymisers(estate("prod.users.nothing"), graph_of(INTO + "SELECT 1 AS c FROM prod.users"))


def test_tags_of_openlineage_go_along_as_well_and_the_subject_goes_before_them() -> None:
    def tag(table: str, field: str | None, key: str, value: str) -> Tag:
        return Tag(dataset=dataset(table), field=field, key=key, value=value)

    told = column_tags(
        [
            tag("prod.merchants", "name", "PII", "Owner_Name"),
            tag("prod.merchants", "city", "pii", "false"),
            tag("prod.merchants", "merchant_id", "team", "payments"),
            tag("prod.merchants", None, "pii", "true"),
            tag("prod.users", "email", "pii", "contact"),
            tag("prod.users", "city", "pii", "true"),
        ]
    )
    sql = (
        INTO
        + "SELECT u.user_id, md5(m.name) AS m, u.email, u.city FROM prod.users u JOIN prod.merchants m ON u.city = m.city"
    )
    found = follow(graph_of(sql), dataset("prod.users"), PERSON, tags=told)[dataset("prod.out")].tags
    assert {name: [str(w.tag) for w in held] for name, held in found.items()} == {
        "user_id": ["account_id"],
        "m": ["owner_name (pseudonymous)"],
        "email": ["email"],
        "city": ["pii"],
    }
