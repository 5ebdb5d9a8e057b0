"""Persons in branches and in metadata of Iceberg tables, as plans see them."""

from __future__ import annotations

import pytest

from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.gaps.unexplained_rows import unseen
from planners.locate.key_location import follow
from planners.locate.subject_survey import survey
from tests.planners.estates import PERSON, carriage, dataset, graph_of, terms

TEXTS = {"user_id": ["4711-user"], "email": ["a@x.example"], "phone": ["+4911122233"], "order_id": ["order-1"]}


def dark(sql: str) -> set[str]:
    """Tables into which persons' rows may have gone unseen."""
    graph = graph_of(sql)
    keys = resolve(PERSON, SourceRows(TEXTS), [Wanted("R", "subj", "4711-user")])
    found = survey(PERSON, dataset("prod.users"), follow(graph, dataset("prod.users"), PERSON), keys)
    return {d.name for d in unseen(found, graph)}


@pytest.mark.parametrize("name", ["prod.users.branch_audit", "prod.users.tag_v1", "prod.users.`tag_v1.0`"])
def test_a_copy_out_of_a_branch_is_erased_by_the_persons_key(name: str) -> None:
    sql = f"CREATE TABLE prod.out AS SELECT CAST(user_id AS STRING) AS ref, amount FROM {name}"
    assert terms(carriage(sql)) == ["ref = CAST(x AS STRING)"]


def test_rows_that_come_by_a_branch_are_the_tables() -> None:
    sql = "CREATE TABLE prod.a AS SELECT 1 AS n; INSERT INTO prod.a.branch_x SELECT user_id AS n FROM prod.users"
    assert terms(carriage(sql, "prod.a")) == ["n = user_id"]


def test_a_union_with_a_branch_leaves_no_row_without_a_key() -> None:
    sql = (
        "CREATE TABLE prod.out AS SELECT user_id AS ref FROM prod.users"
        " UNION ALL SELECT user_id AS ref FROM prod.users.branch_audit"
    )
    assert terms(carriage(sql)) == ["ref = user_id"]
    assert not carriage(sql).mixed


def test_what_took_values_out_of_metadata_is_not_settled_by_a_scan() -> None:
    """Bounds are cut off: what is looked for is not found, though a name stands there."""
    bounds = "CREATE TABLE prod.out AS SELECT readable_metrics.email.upper_bound AS x FROM prod.users.files"
    assert dark(bounds) == {dataset("prod.out").name}
    assert dark(f"{bounds}; CREATE TABLE prod.out2 AS SELECT x FROM prod.out") == {
        dataset("prod.out").name,
        dataset("prod.out2").name,
    }
    assert dark("CREATE TABLE prod.out AS SELECT sum(record_count) AS n FROM prod.users.files") == set()
    assert dark("CREATE TABLE prod.out AS SELECT * FROM prod.users.history") == set()


def test_a_global_view_of_another_text_leads_to_the_persons_key() -> None:
    """Within one text it is seen through; here it is read before it is made, as from another one."""
    sql = (
        "CREATE TABLE prod.out AS SELECT user_id AS ref FROM global_temp.v;"
        "CREATE GLOBAL TEMPORARY VIEW v AS SELECT user_id FROM prod.users"
    )
    assert terms(carriage(sql)) == ["ref = user_id"]
