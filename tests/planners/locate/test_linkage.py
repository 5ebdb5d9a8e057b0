"""Where is the key? Real SQL through the parser to the answer, the awkward ways first."""

from __future__ import annotations

import pytest

from pii_tracer.config.subjects import SubjectTable
from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import (
    Edge,
    EdgeType,
    Evidence,
    Subtype,
)
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import (
    Carries,
    Column,
    ColumnId,
    DatasetId,
)
from planners.locate.key_location import Carriage, follow
from tests.planners.estates import PERSON, Case, carriage, dataset, graph_of, terms

KEY, COMPUTED, BRIDGE = Carries.KEY, Carries.COMPUTED_KEY, Carries.BRIDGE
IDENTIFIERS, AGGREGATE, UNKNOWN, NONE = Carries.IDENTIFIERS, Carries.AGGREGATE, Carries.UNKNOWN, Carries.NONE


INTO = "INSERT OVERWRITE prod.out "
SALTED = "SHA2(CONCAT('s3:', LOWER(TRIM(x))), 256)"

CASES = (
    Case("renamed", "SELECT user_id AS uid, amount FROM prod.users", KEY, ("uid = user_id",)),
    Case("cast", "SELECT CAST(user_id AS STRING) AS uid FROM prod.users", KEY, ("uid = CAST(x AS STRING)",)),
    Case("in a struct", "SELECT named_struct('id', user_id) AS who FROM prod.users", KEY, ("who.id = user_id",)),
    Case(
        "in nested JSON",
        "SELECT to_json(named_struct('u', named_struct('id', user_id))) AS body FROM prod.users",
        KEY,
        ("body.$.u.id = user_id",),
    ),
    Case(
        "in a struct beside a list of another identifier",
        "SELECT named_struct('id', user_id, 'mails', array(email)) AS who FROM prod.users",
        KEY,
        ("who.id = user_id",),
    ),
    Case(
        "in JSON beside a list of another identifier",
        "SELECT to_json(named_struct('id', user_id, 'mails', array(email))) AS body FROM prod.users",
        KEY,
        ("body.$.id = user_id",),
    ),
    Case("in a list of its own field alone", "SELECT named_struct('n', 1, 'ids', array(user_id)) AS who FROM prod.users", UNKNOWN),
    Case(
        "in a struct in one branch, in the list beside it in the other",
        "SELECT named_struct('id', user_id, 'mails', array('')) AS who FROM prod.users "
        "UNION ALL SELECT named_struct('id', 0, 'mails', array(email)) FROM prod.users",
        UNKNOWN,
    ),
    Case(
        "in a struct or in the list beside it, by a condition",
        "SELECT CASE WHEN amount > 9 THEN named_struct('id', user_id, 'mails', array('')) "
        "ELSE named_struct('id', 0, 'mails', array(email)) END AS who FROM prod.users",
        UNKNOWN,
    ),
    Case(
        "in one field of a struct in one branch, another identifier in another field in the other",
        "SELECT named_struct('id', user_id, 'mail', '') AS who FROM prod.users "
        "UNION ALL SELECT named_struct('id', 0, 'mail', email) FROM prod.users",
        IDENTIFIERS,
        ("who.mail = email", "who.id = user_id"),
    ),
    Case(
        "in one field of a struct in both branches",
        "SELECT named_struct('id', user_id, 'mail', '') AS who FROM prod.users "
        "UNION ALL SELECT named_struct('id', user_id, 'mail', email) FROM prod.users",
        KEY,
        ("who.id = user_id",),
    ),
    Case(
        "in one field of a struct or in another one, by a condition",
        "SELECT CASE WHEN amount > 9 THEN named_struct('id', user_id, 'mail', '') "
        "ELSE named_struct('id', 0, 'mail', email) END AS who FROM prod.users",
        UNKNOWN,
    ),
    Case(
        "in the same field of packed JSON, by a condition",
        "SELECT CASE WHEN amount > 9 THEN to_json(named_struct('id', user_id)) "
        "ELSE to_json(named_struct('n', 1, 'id', user_id)) END AS body FROM prod.users",
        KEY,
        ("body.$.id = user_id",),
    ),
    Case(
        "a field that a condition fills, beside a list",
        "SELECT named_struct('id', CASE WHEN amount > 9 THEN user_id ELSE 0 END, 'mails', array(email)) AS who FROM prod.users",
        UNKNOWN,
    ),
    Case("in an array", "SELECT array(user_id, manager_id) AS ids FROM prod.users", UNKNOWN),
    Case("in a map", "SELECT map('id', user_id) AS m FROM prod.users", UNKNOWN),
    Case("prefixed", "SELECT concat('u-', user_id) AS u FROM prod.users", COMPUTED, ("u = CONCAT('u-', x)",)),
    Case("prefixed with ||", "SELECT 'u-' || user_id AS u FROM prod.users", COMPUTED, ("u = 'u-' || x",)),
    Case(
        "salted hash of an identifier",
        "SELECT sha2(concat('s3:', lower(trim(email))), 256) AS h FROM prod.users",
        IDENTIFIERS,
        (f"h = {SALTED}",),
    ),
    Case("coalesced", "SELECT coalesce(user_id, manager_id) AS id FROM prod.users", KEY, ("id = user_id",)),
    Case(
        "hash of a coalesce",
        "SELECT md5(CAST(coalesce(user_id, 0) AS STRING)) AS h FROM prod.users",
        COMPUTED,
        ("h = MD5(CAST(x AS STRING))",),
    ),
    Case(
        "two expressions in two branches",
        "SELECT md5(email) AS h FROM prod.users UNION ALL SELECT sha1(email) FROM prod.users",
        IDENTIFIERS,
        ("h = MD5(x)", "h = SHA(x)"),
    ),
    Case(
        "two expressions in one CASE",
        "SELECT CASE WHEN amount > 9 THEN sha1(CAST(user_id AS STRING)) ELSE CAST(user_id AS STRING) END AS k "
        "FROM prod.users",
        COMPUTED,
        ("k = CAST(x AS STRING)", "k = SHA(CAST(x AS STRING))"),
    ),
    Case("the key in a partition column only", "SELECT amount, user_id AS part FROM prod.users", KEY, ("part = user_id",)),
    Case("bridge", "SELECT order_id, amount FROM prod.users", BRIDGE, ("order_id = order_id",)),
    Case("hashed bridge", "SELECT md5(order_id) AS o FROM prod.users", BRIDGE, ("o = MD5(x)",)),
    Case("grouped by the key", "SELECT user_id, sum(amount) s FROM prod.users GROUP BY user_id", KEY, ("user_id = user_id",)),
    Case(
        "latest identifiers of the grouped person",
        "SELECT user_id, max(phone) AS phone, collect_list(email) AS mails FROM prod.users GROUP BY user_id",
        KEY,
        ("user_id = user_id",),
    ),
    Case("max is a person's key", "SELECT city, max(user_id) AS top FROM prod.users GROUP BY city", KEY, ("top = user_id",), True),
    Case(
        "max is a person's key in a bucket of keys",
        "SELECT user_id % 2 AS bucket, max(user_id) AS top FROM prod.users GROUP BY user_id % 2",
        KEY,
        ("top = user_id",),
        True,
    ),
    Case(
        "max is a person's key in a bucket of keys, by its alias",
        "SELECT user_id % 2 AS bucket, max(user_id) AS top FROM prod.users GROUP BY bucket",
        KEY,
        ("top = user_id",),
        True,
    ),
    Case(
        "max is a person's key in a bucket of keys, out of a query inside",
        "SELECT b, max(user_id) AS top FROM (SELECT user_id % 2 AS b, user_id FROM prod.users) GROUP BY b",
        KEY,
        ("top = user_id",),
        True,
    ),
    Case(
        "subtotals over all persons",
        "SELECT user_id, max(phone) AS phone FROM prod.users GROUP BY user_id WITH ROLLUP",
        IDENTIFIERS,
        ("phone = phone", "user_id = user_id"),
        True,
    ),
    Case(
        "sets of groups",
        "SELECT user_id, city, max(phone) AS phone FROM prod.users GROUP BY user_id, city GROUPING SETS ((user_id), (city))",
        IDENTIFIERS,
        ("phone = phone", "user_id = user_id"),
        True,
    ),
    Case(
        "grouped by all that is no aggregate",
        "SELECT user_id, max(phone) AS phone FROM prod.users GROUP BY ALL",
        KEY,
        ("user_id = user_id",),
    ),
    Case(
        "grouped by the key under another name, out of a query inside",
        "SELECT uid, max(phone) AS phone FROM (SELECT user_id AS uid, phone FROM prod.users) x GROUP BY x.uid",
        KEY,
        ("uid = user_id",),
    ),
    Case(
        "grouped by the key out of a CTE and a join",
        "WITH c AS (SELECT CAST(u.user_id AS STRING) AS uid, u.phone FROM prod.users u"
        " JOIN prod.merchants m ON u.city = m.city) SELECT uid, max(phone) AS phone FROM c GROUP BY 1",
        KEY,
        ("uid = CAST(x AS STRING)",),
    ),
    Case(
        "grouped by the key, cast",
        "SELECT CAST(user_id AS STRING) AS id, max(phone) AS phone FROM prod.users GROUP BY CAST(user_id AS STRING)",
        KEY,
        ("id = CAST(x AS STRING)",),
    ),
    Case(
        "grouped by the key and a bucket of it",
        "SELECT user_id, user_id % 2 AS bucket, max(phone) AS phone FROM prod.users GROUP BY user_id, user_id % 2",
        KEY,
        ("user_id = user_id",),
    ),
    Case("min", "SELECT city, min(user_id) AS u FROM prod.users GROUP BY city", KEY, ("u = user_id",), True),
    Case("first", "SELECT city, first(email) AS e FROM prod.users GROUP BY city", IDENTIFIERS, ("e = email",), True),
    Case("last", "SELECT city, last(email, true) AS e FROM prod.users GROUP BY city", IDENTIFIERS, ("e = email",), True),
    Case("any_value", "SELECT any_value(phone) AS p FROM prod.users", IDENTIFIERS, ("p = phone",), True),
    Case("max_by", "SELECT city, max_by(user_id, amount) AS u FROM prod.users GROUP BY city", KEY, ("u = user_id",), True),
    Case(
        "grouped twice, the last time by city",
        "SELECT city, max(user_id) AS top FROM (SELECT user_id, city, sum(amount) s FROM prod.users "
        "GROUP BY user_id, city) GROUP BY city",
        KEY,
        ("top = user_id",),
        True,
    ),
    Case("collect_list", "SELECT city, collect_list(user_id) AS ids FROM prod.users GROUP BY city", UNKNOWN, (), True),
    Case("collect_set", "SELECT city, collect_set(user_id) AS ids FROM prod.users GROUP BY city", UNKNOWN, (), True),
    Case(
        "array_join",
        "SELECT city, array_join(collect_list(email), ',') AS mails FROM prod.users GROUP BY city",
        UNKNOWN,
        (),
        True,
    ),
    Case(
        "a list beside somebody's key",
        "SELECT user_id, collect_list(phone) OVER (PARTITION BY city) AS phones FROM prod.users",
        KEY,
        ("user_id = user_id",),
        True,
    ),
    Case(
        "the neighbour's key",
        "SELECT user_id, lag(user_id) OVER (PARTITION BY city ORDER BY paid_at) AS before FROM prod.users",
        KEY,
        ("before = user_id", "user_id = user_id"),
        True,
    ),
    Case(
        "the person's own row before",
        "SELECT user_id, lag(email) OVER (PARTITION BY user_id ORDER BY paid_at) AS before FROM prod.users",
        KEY,
        ("user_id = user_id",),
    ),
    Case("counted", "SELECT city, count(DISTINCT user_id) AS n FROM prod.users GROUP BY city", AGGREGATE),
    Case("counted without groups", "SELECT count(email) AS n FROM prod.users", AGGREGATE),
    Case("summed", "SELECT city, sum(amount) AS s FROM prod.users GROUP BY city", AGGREGATE),
    Case("masked", "SELECT mask(email) AS m FROM prod.users", UNKNOWN),
    Case("a user's function", "SELECT tokenise(user_id) AS t FROM prod.users", UNKNOWN),
    Case("a user's function of a maximum", "SELECT city, tok(max(user_id)) AS t FROM prod.users GROUP BY city", UNKNOWN, (), True),
    Case("joined with another column", "SELECT concat(email, city) AS e FROM prod.users", UNKNOWN),
    Case("rows without any key", "SELECT amount, city FROM prod.users", UNKNOWN),
    Case("only decides", "SELECT m.name FROM prod.merchants m WHERE EXISTS (SELECT 1 FROM prod.users u WHERE u.city = m.city)", NONE),
    Case(
        "the manager's phone in somebody's row",
        "SELECT e.user_id, m.phone AS manager_phone FROM prod.users e JOIN prod.users m ON e.manager_id = m.user_id",
        KEY,
        ("user_id = user_id",),
        True,
    ),
    Case(
        "the manager's key in somebody's row",
        "SELECT e.user_id, m.user_id AS boss FROM prod.users e LEFT JOIN prod.users m ON e.manager_id = m.user_id",
        KEY,
        ("boss = user_id", "user_id = user_id"),
        True,
    ),
    Case(
        "sender and receiver in one row",
        "SELECT t.transfer_id, s.user_id AS sender, r.user_id AS receiver FROM prod.transfers t "
        "JOIN prod.users s ON t.sender = s.user_id JOIN prod.users r ON t.receiver = r.user_id",
        KEY,
        ("receiver = user_id", "sender = user_id"),
        True,
    ),
    Case(
        "a self-join through a common table expression",
        "WITH w AS (SELECT user_id AS id, manager_id AS boss, phone FROM prod.users) "
        "SELECT a.id, b.phone FROM w a JOIN w b ON a.boss = b.id",
        KEY,
        ("id = user_id",),
        True,
    ),
    Case(
        "a self-join on the key",
        "SELECT a.user_id, a.amount, s.total FROM prod.users a "
        "JOIN (SELECT user_id, sum(amount) AS total FROM prod.users GROUP BY user_id) s ON a.user_id = s.user_id",
        KEY,
        ("user_id = user_id",),
    ),
    Case(
        "a self-join on the key, written with USING",
        "SELECT user_id, b.phone FROM prod.users a JOIN prod.users b USING (user_id)",
        KEY,
        ("user_id = user_id",),
    ),
    Case(
        "statistics of a city beside a person",
        "SELECT a.user_id, s.n FROM prod.users a JOIN (SELECT city, count(user_id) AS n FROM prod.users GROUP BY city) s "
        "ON a.city = s.city",
        KEY,
        ("user_id = user_id",),
    ),
    Case(
        "a manager only asked for",
        "SELECT e.user_id, e.amount FROM prod.users e JOIN prod.users m ON e.manager_id = m.user_id WHERE m.city = 'Goa'",
        KEY,
        ("user_id = user_id",),
    ),
    Case(
        "the manager's phone, looked up",
        "SELECT e.user_id, (SELECT first(m.phone) FROM prod.users m WHERE m.user_id = e.manager_id) AS p FROM prod.users e",
        KEY,
        ("user_id = user_id",),
        True,
    ),
    Case(
        "a neighbour's phone, by LATERAL",
        "SELECT e.user_id, l.phone FROM prod.users e, LATERAL (SELECT m.phone FROM prod.users m WHERE m.city = e.city) l",
        KEY,
        ("user_id = user_id",),
        True,
    ),
    Case(
        "pivoted by city",
        "SELECT * FROM (SELECT user_id, city, amount FROM prod.users) "
        "PIVOT (sum(amount) FOR city IN ('Pune' AS pune, 'Goa' AS goa))",
        KEY,
        ("user_id = user_id",),
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_how_a_table_carries_the_person(case: Case) -> None:
    found = carriage(INTO + case.sql)
    assert (found.carries, tuple(terms(found)), bool(found.mixed)) == (case.carries, case.terms, case.mixed), (
        found.reason
    )


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE prod.out SET email = b.email FROM prod.out b WHERE b.user_id = prod.out.manager_id",
        "MERGE INTO prod.out USING prod.out b ON b.user_id = prod.out.manager_id "
        "WHEN MATCHED THEN UPDATE SET email = b.email",
        "INSERT INTO prod.out SELECT a.user_id, a.manager_id, b.email FROM prod.out a JOIN prod.out b "
        "ON a.manager_id = b.user_id",
    ],
)
def test_a_value_of_another_row_of_the_same_table_is_anothers(change: str) -> None:
    """Naively the row is its own person's alone, and the manager's e-mail address stays in it."""
    made = (
        "CREATE TABLE prod.out (user_id BIGINT, manager_id BIGINT, email STRING);\n"
        "INSERT INTO prod.out SELECT user_id, manager_id, email FROM prod.users;\n"
    )
    assert not carriage(made).mixed
    assert "email" in carriage(made + change).mixed


def test_what_is_unknown_says_how_it_is_recorded_and_what_would_answer_it() -> None:
    found = carriage(INTO + "SELECT tokenise(user_id) AS t FROM prod.users")
    assert "t = TOKENISE(user_id)" in found.reason
    assert "rebuild" in found.closes


def test_a_key_that_one_branch_lacks_is_found_by_what_all_have() -> None:
    """The second branch has no key: deleting by the key alone would leave its rows."""
    found = carriage(
        INTO + "SELECT user_id AS id, phone FROM prod.users UNION ALL SELECT NULL AS id, phone FROM prod.users"
    )
    assert found.carries is Carries.IDENTIFIERS
    assert terms(found) == ["id = user_id", "phone = phone"]


def test_two_branches_with_the_key_need_nothing_else() -> None:
    sql = "INSERT OVERWRITE prod.a SELECT user_id, phone FROM prod.users;\n" + (
        INTO + "SELECT user_id, phone FROM prod.users UNION ALL SELECT user_id, phone FROM prod.a"
    )
    found = carriage(sql)
    assert found.carries is Carries.KEY
    assert terms(found) == ["user_id = user_id"]


def test_two_sources_of_which_one_has_no_key() -> None:
    sql = "INSERT OVERWRITE prod.a SELECT email, 0 AS user_id FROM prod.users;\n" + (
        INTO + "SELECT user_id AS id, email FROM prod.users UNION ALL SELECT user_id, email FROM prod.a"
    )
    found = carriage(sql)
    assert found.carries is Carries.IDENTIFIERS
    assert terms(found) == ["email = email", "id = user_id"]


def test_a_second_job_that_writes_without_the_key_is_covered_too() -> None:
    """Naively the table `carries the key`, and the second job's rows stay for ever."""
    sql = (
        "INSERT INTO prod.out SELECT user_id AS id, phone FROM prod.users;\n"
        "INSERT INTO prod.out SELECT NULL AS id, phone FROM prod.users;"
    )
    found = carriage(sql)
    assert found.carries is Carries.IDENTIFIERS
    assert terms(found) == ["id = user_id", "phone = phone"]


def test_a_second_job_that_hides_the_person_makes_the_table_unknown() -> None:
    sql = (
        "INSERT INTO prod.out SELECT CAST(user_id AS STRING) AS id FROM prod.users;\n"
        "INSERT INTO prod.out SELECT tokenise(user_id) AS id FROM prod.users;"
    )
    found = carriage(sql)
    assert found.carries is Carries.UNKNOWN
    assert "job.sql:2" in found.reason


def test_one_branch_of_a_case_that_hides_the_key_makes_the_table_unknown() -> None:
    sql = "SELECT CASE WHEN amount > 1 THEN CAST(user_id AS STRING) ELSE tokenise(user_id) END AS id FROM prod.users"
    assert carriage(INTO + sql).carries is Carries.UNKNOWN


def test_an_update_adds_no_rows() -> None:
    sql = "INSERT INTO prod.out SELECT user_id AS id, email FROM prod.users;\nUPDATE prod.out SET email = lower(email);"
    found = carriage(sql, tables={"prod.out": "id bigint, email string"})
    assert found.carries is Carries.KEY
    assert terms(found) == ["id = user_id"]


def test_a_merge_on_the_key_keeps_rows_apart_and_another_does_not() -> None:
    merge = (
        "INSERT INTO prod.out SELECT user_id AS id, city, phone FROM prod.users;\n"
        "MERGE INTO prod.out t USING prod.users s ON {on} WHEN MATCHED THEN UPDATE SET t.phone = s.phone;"
    )
    tables = {"prod.out": "id bigint, city string, phone string"}
    assert not carriage(merge.format(on="t.id = s.user_id"), tables=tables).mixed
    assert carriage(merge.format(on="t.city = s.city"), tables=tables).mixed


def test_a_full_join_leaves_no_side_out() -> None:
    sql = (
        "INSERT OVERWRITE prod.a SELECT user_id, phone FROM prod.users;\n"
        "INSERT OVERWRITE prod.out SELECT u.user_id, a.phone FROM prod.users u FULL JOIN prod.a a ON u.user_id = a.user_id"
    )
    found = carriage(sql)
    assert found.carries is Carries.IDENTIFIERS
    assert terms(found) == ["phone = phone", "user_id = user_id"]


def test_tables_that_feed_each_other_are_followed_until_nothing_changes() -> None:
    sql = (
        "INSERT INTO prod.a SELECT id FROM prod.b;\n"
        "INSERT INTO prod.b SELECT id FROM prod.c;\n"
        "INSERT INTO prod.c SELECT id FROM prod.a;\n"
        "INSERT INTO prod.c SELECT user_id AS id FROM prod.users;"
    )
    tables = {f"prod.{name}": "id bigint" for name in "abc"}
    assert [carriage(sql, f"prod.{name}", tables=tables).carries for name in "abc"] == [Carries.KEY] * 3


def test_a_circle_that_hashes_again_and_again_ends_unknown() -> None:
    sql = "INSERT INTO prod.a SELECT md5(h) AS h FROM prod.b;\nINSERT INTO prod.b SELECT h FROM prod.a;\n" + (
        "INSERT INTO prod.a SELECT md5(email) AS h FROM prod.users;"
    )
    tables = {"prod.a": "h string", "prod.b": "h string"}
    assert carriage(sql, "prod.b", tables=tables).carries is Carries.UNKNOWN


def test_names_in_another_case_are_the_same_columns() -> None:
    found = carriage("INSERT INTO prod.out SELECT USER_ID AS Uid FROM PROD.USERS", tables={"prod.out": "UID bigint"})
    assert terms(found) == ["UID = user_id"]


def test_hops_compose_from_table_to_table() -> None:
    sql = (
        "INSERT OVERWRITE prod.a SELECT regexp_replace(phone, '[^0-9]', '') AS p FROM prod.users;\n"
        "INSERT OVERWRITE prod.b SELECT named_struct('p', sha2(p, 256)) AS s FROM prod.a;\n"
        "INSERT OVERWRITE prod.out SELECT s.p AS h FROM prod.b;"
    )
    tables = {"prod.a": "p string", "prod.b": "s struct<p:string>"}
    assert terms(carriage(sql, tables=tables)) == ["h = SHA2(REGEXP_REPLACE(x, '[^0-9]', ''), 256)"]


def test_mixed_rows_stay_mixed_downstream() -> None:
    sql = (
        "INSERT OVERWRITE prod.a SELECT city, max(user_id) AS top FROM prod.users GROUP BY city;\n"
        "INSERT OVERWRITE prod.out SELECT top FROM prod.a;"
    )
    assert carriage(sql).mixed == ("top",)


def test_a_join_of_two_persons_stays_one_downstream() -> None:
    sql = (
        "INSERT OVERWRITE prod.a SELECT e.user_id, m.phone FROM prod.users e JOIN prod.users m"
        " ON e.manager_id = m.user_id;\n"
        "INSERT OVERWRITE prod.out SELECT user_id AS id, phone FROM prod.a;"
    )
    assert carriage(sql).mixed == ("id", "phone")


def test_an_update_in_place_changes_what_is_looked_for() -> None:
    """Looking for the address as it was would find nobody whose row was updated."""
    sql = "INSERT INTO prod.out SELECT email FROM prod.users;\nUPDATE prod.out SET email = lower(email);"
    assert terms(carriage(sql, tables={"prod.out": "email string"})) == ["email = LOWER(x)", "email = email"]


def test_an_update_in_place_that_hides_the_person_makes_the_table_unknown() -> None:
    sql = "INSERT INTO prod.out SELECT email FROM prod.users;\nUPDATE prod.out SET email = tok(email);"
    assert carriage(sql, tables={"prod.out": "email string"}).carries is Carries.UNKNOWN


def told_by_events(subtype: Subtype, *, masking: bool = False, column: str = "user_id") -> Carriage:
    """A graph that OpenLineage events made: kinds of edges, and no expressions."""
    source, target = dataset("prod.users"), dataset("prod.out")
    edge = Edge(
        source=ColumnId(dataset=source, column=column),
        target=ColumnId(dataset=target, column="c"),
        type=EdgeType.DIRECT,
        subtype=subtype,
        masking=masking,
        evidence=(Evidence(source="openlineage", where="run 1"),),
    )
    columns = {source: tuple(Column(name=n, type="string") for n in ("user_id", "email", "amount"))}
    facts = collect(columns=columns, edges=[edge], memberships=[], jobs=[], gaps=[], aliases={})
    return follow(LineageGraph(facts), source, PERSON)[target]


def test_events_alone_tell_an_identity() -> None:
    assert told_by_events(Subtype.IDENTITY).carries is KEY


@pytest.mark.parametrize("masking", [False, True])
def test_an_aggregate_that_only_events_tell_may_be_a_maximum_or_a_list(masking: bool) -> None:
    """`count(user_id)` and `sha1(max(user_id))` are the same edge: it must not pass for a count."""
    found = told_by_events(Subtype.AGGREGATION, masking=masking)
    assert found.carries is UNKNOWN
    assert found.mixed == ("c",)
    assert "SQL" in found.closes


def test_an_aggregate_of_something_else_is_an_aggregate() -> None:
    assert told_by_events(Subtype.AGGREGATION, column="amount").carries is AGGREGATE


def test_a_change_that_only_events_tell_is_unknown() -> None:
    assert told_by_events(Subtype.TRANSFORMATION, masking=True).carries is UNKNOWN


def test_a_value_looked_up_by_another_column_is_another_persons() -> None:
    sql = "SELECT e.user_id, (SELECT m.phone FROM prod.users m WHERE m.{by} = e.{to}) AS p FROM prod.users e"
    assert carriage(INTO + sql.format(by="user_id", to="manager_id")).mixed
    assert not carriage(INTO + sql.format(by="user_id", to="user_id")).mixed


BESIDE = (
    "INSERT INTO prod.trips SELECT e.trip_id, u.user_id, e.fare, e.city "
    "FROM ext.events e JOIN prod.users u ON u.user_id = e.who; "
)
BESIDE_TABLES = {
    "prod.trips": "trip_id bigint, user_id bigint, fare double, city string",
    "ext.events": "trip_id bigint, who bigint, fare double, city string",
    "ext.paid": "trip_id bigint, amount double",
    "ext.cities": "name string",
    "prod.mid": "trip_id bigint, fare double",
}


def beside(sql: str) -> Carriage:
    return carriage(BESIDE + sql, tables=BESIDE_TABLES)


def test_all_columns_of_a_row_that_names_the_person_are_the_persons() -> None:
    """The trip's number came from elsewhere, beside the key: whoever takes it on has rows of the person."""
    paid = "INSERT OVERWRITE prod.out SELECT t.trip_id, p.amount FROM prod.trips t JOIN ext.paid p USING (trip_id)"
    found = beside(paid)
    assert found.carries is UNKNOWN
    assert "no column that finds these rows" in found.reason
    further = beside(
        "INSERT OVERWRITE prod.mid SELECT trip_id, fare FROM prod.trips; "
        "INSERT OVERWRITE prod.out SELECT fare * 2 AS twice FROM prod.mid"
    )
    assert further.carries is UNKNOWN


def test_a_count_of_rows_that_name_the_person_is_an_aggregate() -> None:
    found = beside("INSERT OVERWRITE prod.out SELECT city, max(fare) AS top FROM prod.trips GROUP BY city")
    assert found.carries is AGGREGATE


def test_a_table_that_is_only_joined_takes_nothing() -> None:
    found = beside("INSERT OVERWRITE prod.out SELECT c.name FROM ext.cities c JOIN prod.trips t ON t.city = c.name")
    assert found.carries is NONE


TRIPS = SubjectTable(table="prod.trips", key="user_id", record_keys=("trip_id",))
KNOWN = PERSON.model_copy(update={"tables": (TRIPS,)})


def told(sql: str, table: str) -> Carriage:
    """With `prod.trips` told as a further table of the persons; nothing brings them there from the source."""
    graph = graph_of(sql, BESIDE_TABLES)
    return follow(graph, dataset("prod.users"), KNOWN, further={dataset("prod.trips"): TRIPS})[dataset(table)]


def test_a_further_table_is_erased_by_its_key_and_what_comes_of_it_through_its_record_keys() -> None:
    paid = "INSERT OVERWRITE prod.out SELECT t.trip_id, p.amount FROM prod.trips t JOIN ext.paid p USING (trip_id)"
    filled = "INSERT INTO prod.trips SELECT trip_id, who, fare, city FROM ext.events; "
    for sql in (paid, filled + paid):
        found = told(sql, "prod.trips")
        assert (found.carries, terms(found)) == (KEY, ["user_id = user_id"])
        assert "the estate file" in found.reason
        bridged = told(sql, "prod.out")
        assert (bridged.carries, terms(bridged)) == (BRIDGE, ["trip_id = prod.trips.trip_id"])
    hashed = "INSERT OVERWRITE prod.out SELECT sha2(CAST(trip_id AS STRING), 256) AS h, fare FROM prod.trips"
    assert told(hashed, "prod.out").carries is BRIDGE
    counted = "INSERT OVERWRITE prod.out SELECT city, count(*) AS n FROM prod.trips GROUP BY city"
    assert told(counted, "prod.out").carries is not NONE


def test_a_further_table_that_no_lineage_mentions_is_a_copy_all_the_same() -> None:
    graph = graph_of("INSERT OVERWRITE prod.out SELECT user_id FROM prod.users", BESIDE_TABLES)
    found = follow(graph, dataset("prod.users"), KNOWN, further={dataset("prod.trips"): TRIPS})
    assert found[dataset("prod.trips")].carries is KEY
    assert found[dataset("prod.out")].carries is KEY


def test_a_further_table_that_lineage_fills_too_keeps_both() -> None:
    """A job brings the persons in by their e-mail; the estate file says that every row has the key."""
    sql = "INSERT INTO prod.trips (trip_id, city) SELECT 1, email FROM prod.users"
    found = told(sql, "prod.trips")
    assert set(terms(found)) >= {"user_id = user_id", "city = email"}


def test_a_view_holds_nothing_and_is_seen_through() -> None:
    """No catalog knows it, and none has to; what reads it reads what is behind it."""
    sql = (
        "CREATE VIEW app.contacts AS SELECT user_id, email FROM prod.users; "
        "INSERT OVERWRITE prod.out SELECT email FROM app.contacts; "
        "CREATE MATERIALIZED VIEW app.stored AS SELECT email FROM prod.users"
    )
    graph = graph_of(sql)
    assert {g.dataset.name for g in graph.gaps if g.kind == "unresolved_name" and g.dataset} == {"app.stored"}
    found = follow(graph, dataset("prod.users"), PERSON)
    assert found[dataset("prod.out")].carries is IDENTIFIERS
    assert found[DatasetId(namespace=VIEW, name="app.contacts")].carries is KEY


def test_a_name_that_is_also_made_like_a_table_is_no_view() -> None:
    graph = graph_of(
        "CREATE VIEW app.x AS SELECT email FROM prod.users; CREATE TABLE app.x AS SELECT email FROM prod.users"
    )
    assert "unresolved_name" in {g.kind for g in graph.gaps}


RENAMED = (
    "CREATE TABLE prod.a AS SELECT user_id AS bk, phone AS tel, amount FROM prod.users",
    "CREATE TABLE prod.b AS SELECT CAST(bk AS STRING) AS ref, max(tel) AS tel FROM prod.a GROUP BY bk",
    "-- since then\nALTER TABLE prod.a RENAME COLUMN bk TO k2",
    "ALTER TABLE prod.a RENAME COLUMN K2 TO booking_ref",
    "CREATE TABLE prod.out AS SELECT booking_ref AS ref, amount FROM prod.a",
)
TODAY = {"prod.a": "Booking_Ref bigint, tel string, amount decimal(10,2)"}


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (2, 3, 4, 0, 1)], ids=["as it ran", "renamed in an earlier file"])
def test_a_renamed_column_has_the_name_that_the_table_has_today(order: tuple[int, ...]) -> None:
    """What was written under the former name, or read by it, is told of today's; the former one finds no row."""
    sql = ";\n".join(RENAMED[n] for n in order)
    assert terms(carriage(sql, "prod.a", tables=TODAY)) == ["Booking_Ref = user_id"]
    assert terms(carriage(sql, "prod.b", tables=TODAY)) == ["ref = CAST(x AS STRING)"]
    assert terms(carriage(sql, "prod.out", tables=TODAY)) == ["ref = user_id"]
    assert not carriage(sql, "prod.b", tables=TODAY).mixed


def test_a_former_name_stays_where_the_schema_has_it_or_is_not_known() -> None:
    """A schema that was read before the rename, and a column that was filled from another one and dropped."""
    older = {"prod.a": "bk bigint, tel string, amount decimal(10,2)"}
    assert "bk = user_id" in terms(carriage(";\n".join(RENAMED), "prod.a", tables=older))
    filled = f"{RENAMED[0]};\nALTER TABLE prod.a ADD COLUMN booking_ref bigint;\nUPDATE prod.a SET booking_ref = bk"
    assert "bk = user_id" in terms(carriage(filled, "prod.a", tables=TODAY))


def test_what_was_made_of_the_source_under_its_former_name_is_followed() -> None:
    found = carriage(
        "INSERT OVERWRITE prod.out SELECT email AS mail FROM prod.a;\nALTER TABLE prod.a RENAME TO prod.users"
    )
    assert terms(found) == ["mail = email"]


def test_a_renamed_key_of_the_source_is_followed_from_its_former_name() -> None:
    made = "CREATE TABLE prod.users (uid bigint, email string);\nCREATE TABLE prod.out AS SELECT uid AS ref FROM prod.users"
    graph = graph_of(f"{made};\nALTER TABLE prod.users RENAME COLUMN uid TO user_id")
    assert terms(follow(graph, dataset("prod.users"), PERSON)[dataset("prod.out")]) == ["ref = user_id"]
