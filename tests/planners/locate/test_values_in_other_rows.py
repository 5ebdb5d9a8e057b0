"""Values of one person's row in rows of others: whoever deletes by the key of these rows leaves them there."""

from __future__ import annotations

import pytest

from pii_tracer.config.subjects import Identifier, Subject, SubjectTable
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import Edge, EdgeType, Evidence, JobRef, Membership, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, Column, ColumnId
from planners.locate.key_location import Carriage, follow
from tests.planners.estates import dataset, graph_of

TABLES = {
    "prod.people": "id bigint, name string, mail string, city string, ref_id bigint, amount decimal(10,2), seen timestamp",
    "prod.orders": "order_id bigint, cust bigint, note string, total decimal(10,2)",
    "prod.places": "city string, region string",
}
SUBJECT = Subject(
    name="person",
    source="prod.people",
    key="id",
    identifiers=(Identifier(column="mail", category="email"),),
    tables=(SubjectTable(table="prod.orders", key="cust", record_keys=("order_id",)),),
)

OTHERS = {
    "the first of a city": "SELECT id, first_value(name) OVER (PARTITION BY city ORDER BY id) AS x FROM prod.people",
    "the greatest of a city": "SELECT id, max(name) OVER (PARTITION BY city) AS x FROM prod.people",
    "a list of a city": "SELECT id, collect_list(name) OVER (PARTITION BY city) AS x FROM prod.people",
    "the row before": "SELECT id, lag(name) OVER (ORDER BY seen) AS x FROM prod.people",
    "since the row before": "SELECT id, seen - lag(seen) OVER (ORDER BY seen) AS x FROM prod.people",
    "a window by its name": "SELECT id, last(name) OVER w AS x FROM prod.people WINDOW w AS (PARTITION BY city)",
    "a window in a query inside": "WITH c AS (SELECT id, nth_value(name, 2) OVER (PARTITION BY city ORDER BY id) AS x"
    " FROM prod.people) SELECT id, upper(x) AS x FROM c",
    "a window in a struct": "SELECT id, named_struct('x', first(name) OVER (PARTITION BY city)) AS x FROM prod.people",
    "a join by a city": "SELECT o.cust, p.name AS x FROM prod.orders o JOIN prod.people p ON p.city = o.note",
    "a join, columns without their tables": "SELECT cust, name AS x FROM prod.orders JOIN prod.people ON city = note",
    "a join with a query that shows no key": "SELECT o.cust, p.x FROM prod.orders o"
    " JOIN (SELECT city, name AS x FROM prod.people) p ON p.city = o.note",
    "a join with all": "SELECT o.cust, m.x FROM prod.orders o CROSS JOIN (SELECT max(name) AS x FROM prod.people) m",
    "a join by inequality": "SELECT a.id, b.name AS x FROM prod.people a JOIN prod.people b ON a.amount > b.amount",
    "the referrer's order": "SELECT a.id, o.total AS x FROM prod.people a JOIN prod.orders o ON o.cust = a.ref_id",
    "a city's greatest, joined": "SELECT p.id, m.x FROM prod.people p"
    " JOIN (SELECT city, max(name) AS x FROM prod.people GROUP BY city) m ON m.city = p.city",
    "a city's names by a function of the user, joined": "SELECT p.id, m.x FROM prod.people p"
    " JOIN (SELECT city, all_names(name) AS x FROM prod.people GROUP BY city) m ON m.city = p.city",
    "looked up by a city": "SELECT o.cust, (SELECT max(p.name) FROM prod.people p WHERE p.city = o.note) AS x"
    " FROM prod.orders o",
    "a LATERAL query": "SELECT o.cust, l.x FROM prod.orders o, LATERAL (SELECT p.name AS x FROM prod.people p"
    " WHERE p.city = o.note) l",
}

OWN = {
    "the person's own rows": "SELECT id, first_value(name) OVER (PARTITION BY id ORDER BY seen) AS x FROM prod.people",
    "her own rows, by the window's name": "SELECT id, last(name) OVER w AS x FROM prod.people WINDOW w AS (PARTITION BY id)",
    "numbers of rows": "SELECT id, row_number() OVER (PARTITION BY city ORDER BY seen) AS x FROM prod.people",
    "totals": "SELECT id, amount / sum(amount) OVER (PARTITION BY city) AS x FROM prod.people",
    "the newest row of each": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY seen DESC) AS n"
    " FROM prod.people) WHERE n = 1",
    "a join by the key": "SELECT o.*, p.name AS x FROM prod.orders o LEFT JOIN prod.people p ON o.cust = p.id",
    "a join by hashes of the key": "SELECT o.cust, p.name AS x FROM prod.orders o JOIN prod.people p"
    " ON sha2(CAST(o.cust AS STRING), 256) = sha2(CAST(p.id AS STRING), 256)",
    "her greatest, joined": "SELECT p.id, m.x FROM prod.people p"
    " JOIN (SELECT cust, max(note) AS x FROM prod.orders GROUP BY cust) m ON m.cust = p.id",
    "looked up by the key": "SELECT p.id, (SELECT max(o.note) FROM prod.orders o WHERE o.cust = p.id) AS x FROM prod.people p",
    "a city's number of rows, joined": "SELECT p.id, m.n FROM prod.people p"
    " JOIN (SELECT city, count(*) AS n FROM prod.people GROUP BY city) m ON m.city = p.city",
    "a city's newest row": "SELECT a.* FROM prod.people a JOIN (SELECT city, max(seen) AS s FROM prod.people GROUP BY city) b"
    " ON a.city = b.city AND a.seen = b.s",
    "what the join compares": "SELECT o.cust, p.city AS x FROM prod.orders o JOIN prod.people p ON p.city = o.note",
    "a table of nobody": "SELECT p.id, d.region AS x FROM prod.people p JOIN prod.places d ON d.city = p.city",
    "grouped twice by the key": "SELECT id, max(m) AS x FROM (SELECT id, city, max(name) AS m FROM prod.people"
    " GROUP BY id, city) GROUP BY id",
    "only asked for": "SELECT id, name AS x FROM prod.people WHERE seen > (SELECT max(seen) FROM prod.people)",
    "a WITH before the INSERT": "WITH a AS (SELECT id, name FROM prod.people), b AS (SELECT cust, max(total) AS m FROM"
    " prod.orders GROUP BY cust) INSERT OVERWRITE prod.out SELECT a.id, a.name, b.m FROM a LEFT JOIN b ON b.cust = a.id",
}


def told(sql: str, table: str = "prod.out") -> Carriage:
    further = {dataset(one.table): one for one in SUBJECT.tables}
    return follow(graph_of(sql, TABLES), dataset("prod.people"), SUBJECT, further=further)[dataset(table)]


def written(sql: str) -> str:
    return sql if "INSERT" in sql else "INSERT OVERWRITE prod.out " + sql


@pytest.mark.parametrize("sql", OTHERS.values(), ids=OTHERS.keys())
def test_a_value_of_somebody_else_makes_rows_nobodys_to_delete(sql: str) -> None:
    found = told(written(sql))
    assert found.carries is Carries.KEY
    assert found.mixed


@pytest.mark.parametrize("sql", OWN.values(), ids=OWN.keys())
def test_what_is_the_persons_own_or_nobodys_is_deleted_by_the_key(sql: str) -> None:
    found = told(written(sql))
    assert (found.carries, found.mixed) == (Carries.KEY, ())


CHANGES = {
    "MERGE by a city": "MERGE INTO prod.a t USING prod.people s ON t.x = s.city WHEN MATCHED THEN UPDATE SET t.x = s.name",
    "UPDATE by a city": "UPDATE prod.a SET x = (SELECT p.name FROM prod.people p WHERE p.city = x)",
    "UPDATE of all": "UPDATE prod.a SET x = (SELECT max(name) FROM prod.people)",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("between", [" ", "\n"])
def test_a_statement_that_changes_rows_puts_it_there_as_well(change: str, between: str) -> None:
    """On one line with the statement that fills the table, too."""
    assert told(
        f"CREATE TABLE prod.a AS SELECT cust, note AS x FROM prod.orders;{between}{change}", "prod.a"
    ).mixed == ("x",)


def test_a_change_by_the_key_puts_nothing_of_others_there() -> None:
    change = "UPDATE prod.a SET x = (SELECT p.name FROM prod.people p WHERE p.id = cust)"
    assert told(f"CREATE TABLE prod.a AS SELECT cust, note AS x FROM prod.orders;\n{change}", "prod.a").mixed == ()


@pytest.mark.parametrize(("shown", "mixed"), [("id, x", ("x",)), ("id, x.x AS x", ("x",)), ("id", ())])
def test_it_stays_so_downstream_in_the_columns_that_it_goes_into(shown: str, mixed: tuple[str, ...]) -> None:
    first = OTHERS["a window in a struct"]
    assert told(f"CREATE TABLE prod.a AS {first};\nINSERT OVERWRITE prod.out SELECT {shown} FROM prod.a").mixed == mixed


def test_a_view_of_the_session_hides_it_not() -> None:
    view = f"CREATE TEMP VIEW v AS {OTHERS['the first of a city']};\n"
    assert told(view + "INSERT OVERWRITE prod.out SELECT id, x FROM v").mixed == ("x",)


def test_a_table_without_the_key_on_the_way_hides_it_not() -> None:
    sql = (
        "CREATE TABLE prod.a AS SELECT city, name FROM prod.people;\n"
        "INSERT OVERWRITE prod.out SELECT o.cust, a.name AS x FROM prod.orders o JOIN prod.a a ON a.city = o.note"
    )
    assert told(sql).mixed == ("x",)


@pytest.mark.parametrize(("grouped", "mixed"), [("city", ("x",)), ("id", ())])
def test_of_events_alone_an_aggregate_counts_unless_the_key_groups_it(grouped: str, mixed: tuple[str, ...]) -> None:
    source, target = dataset("prod.people"), dataset("prod.out")
    run = (Evidence(source="openlineage", where="events:1", job="daily"),)

    def edge(name: str, into: str, subtype: Subtype) -> Edge:
        begin, end = ColumnId(dataset=source, column=name), ColumnId(dataset=target, column=into)
        return Edge(source=begin, target=end, type=EdgeType.DIRECT, subtype=subtype, masking=False, evidence=run)

    edges = [edge("id", "id", Subtype.IDENTITY), edge("name", "x", Subtype.AGGREGATION)]
    by = Membership(
        source=ColumnId(dataset=source, column=grouped), target=target, subtype=Subtype.GROUP_BY, evidence=run
    )
    columns = {source: tuple(Column(name=n, type="string") for n in ("id", "name", "mail", "city"))}
    facts = collect(
        columns=columns,
        edges=edges,
        memberships=[by],
        jobs=[JobRef(job="daily", sql=None, inputs=(source,), output=target)],
        gaps=[],
        aliases={},
    )
    assert follow(LineageGraph(facts), source, SUBJECT)[target].mixed == mixed
