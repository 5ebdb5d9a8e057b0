"""Where is the key, when the source has it inside a struct? Real SQL through the parser to the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pii_tracer.config.kafka import Topic
from pii_tracer.config.keys import KeyTable
from pii_tracer.config.subjects import Identifier, Subject, SubjectTable
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory, TableState, TopicState
from pii_tracer.lineage.graph.canonical_facts import with_edges
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.column_paths import Spots, find_spot
from pii_tracer.model.datasets import (
    Carries,
    Column,
    ColumnId,
    DatasetId,
)
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.keys.crypto_shredding import declared_edges
from planners.locate.columns_without_identifiers import other_key_columns
from planners.locate.key_location import Carriage, follow
from planners.locate.subject_survey import survey
from planners.locate.tag_propagation import Witnesses
from planners.streams.kafka.topics import topic_match
from tests.planners.estates import Case, columns, dataset, graph_of, terms

KEY, COMPUTED, BRIDGE = Carries.KEY, Carries.COMPUTED_KEY, Carries.BRIDGE
IDENTIFIERS, AGGREGATE, UNKNOWN, NONE = Carries.IDENTIFIERS, Carries.AGGREGATE, Carries.UNKNOWN, Carries.NONE

PAYER = Subject(
    name="payer",
    source="prod.pays",
    key="payer.id",
    identifiers=(
        Identifier(column="contact.email", category="email"),
        Identifier(column="contact.home.phone", category="phone"),
    ),
    record_keys=("ref.pay_no",),
)
TABLES = {
    "prod.pays": "payer struct<id:bigint,kind:string>, id bigint,"
    " contact struct<email:string,city:string,home:struct<phone:string,zip:string>>,"
    " ref struct<pay_no:string,batch:string>, amount decimal(10,2), boss bigint, shop struct<id:bigint,name:string>",
    "prod.calls": "caller struct<id:bigint,line:string>, minutes int",
}
CALLS = SubjectTable(
    table="prod.calls", key="caller.id", identifiers=(Identifier(column="caller.line", category="phone"),)
)


def schema(table: str) -> tuple[Column, ...]:
    return columns(TABLES[table])


def spots(subject: Subject = PAYER) -> Spots:
    return {
        ColumnId(dataset=dataset(table), column=name): find_spot(name, schema(table), table)
        for table, known in subject.by_table
        for name in known.named
    }


def carriage(sql: str, table: str = "prod.out", subject: Subject = PAYER) -> Carriage:
    graph = graph_of(sql, TABLES)
    further = {dataset(t.table): t for t in subject.tables}
    return follow(graph, dataset(subject.source), subject, further=further, spots=spots(subject))[dataset(table)]


CASES = (
    Case("flattened", "SELECT payer.id AS pid, amount FROM prod.pays", KEY, ("pid = payer.id",)),
    Case("flattened under its table's name", "SELECT prod.pays.payer.id AS pid FROM prod.pays", KEY, ("pid = payer.id",)),
    Case("flattened under an alias", "SELECT p.contact.email FROM prod.pays p", IDENTIFIERS, ("email = contact.email",)),
    Case(
        "two levels down",
        "SELECT p.contact.home.phone AS ph FROM prod.pays p",
        IDENTIFIERS,
        ("ph = contact.home.phone",),
    ),
    Case("the struct whole", "SELECT payer, amount FROM prod.pays", KEY, ("payer.id = payer.id",)),
    Case(
        "the struct whole under another name",
        "SELECT contact AS c FROM prod.pays",
        IDENTIFIERS,
        ("c.email = contact.email", "c.home.phone = contact.home.phone"),
    ),
    Case("an inner struct", "SELECT contact.home AS h FROM prod.pays", IDENTIFIERS, ("h.phone = contact.home.phone",)),
    Case(
        "a struct around the struct",
        "SELECT named_struct('who', payer, 'n', amount) AS box FROM prod.pays",
        KEY,
        ("box.who.id = payer.id",),
    ),
    Case("packed", "SELECT to_json(contact) AS j FROM prod.pays", IDENTIFIERS, ("j.$.email = contact.email", "j.$.home.phone = contact.home.phone")),
    Case("hashed", "SELECT sha2(lower(contact.email), 256) AS h FROM prod.pays", IDENTIFIERS, ("h = SHA2(LOWER(x), 256)",)),
    Case("hashed key", "SELECT md5(CAST(payer.id AS STRING)) AS h FROM prod.pays", COMPUTED, ("h = MD5(CAST(x AS STRING))",)),
    Case("a field that is nobody's", "SELECT contact.city, payer.kind FROM prod.pays", UNKNOWN),
    Case("another struct's field of the same name", "SELECT shop.id AS pid, amount FROM prod.pays", UNKNOWN),
    Case("a column of the field's name", "SELECT id, amount FROM prod.pays", UNKNOWN),
    Case("a bridge", "SELECT ref.pay_no, amount FROM prod.pays", BRIDGE, ("pay_no = ref.pay_no",)),
    Case("counted", "SELECT shop.id AS shop, count(DISTINCT payer.id) AS n FROM prod.pays GROUP BY shop.id", AGGREGATE),
    Case("grouped by the key", "SELECT payer.id, sum(amount) s FROM prod.pays GROUP BY payer.id", KEY, ("id = payer.id",)),
    Case(
        "identifiers of the grouped person",
        "SELECT p.payer.id, max(p.contact.email) AS e FROM prod.pays p GROUP BY p.payer.id",
        KEY,
        ("id = payer.id",),
    ),
    Case(
        "identifiers of the person grouped by alias",
        "SELECT payer.id AS pid, max(contact.email) AS e FROM prod.pays GROUP BY pid",
        KEY,
        ("pid = payer.id",),
    ),
    Case(
        "identifiers of the person grouped by number",
        "SELECT payer.id AS pid, max(contact.email) AS e FROM prod.pays GROUP BY 1",
        KEY,
        ("pid = payer.id",),
    ),
    Case(
        "identifiers of the person grouped by the whole struct",
        "SELECT payer, max(contact.email) AS e FROM prod.pays GROUP BY payer",
        KEY,
        ("payer.id = payer.id",),
    ),
    Case(
        "identifiers of the person grouped in a query outside",
        "SELECT pid, max(mail) AS e FROM (SELECT payer.id AS pid, contact.email AS mail FROM prod.pays) GROUP BY pid",
        KEY,
        ("pid = payer.id",),
    ),
    Case(
        "identifiers of the person grouped by a field of the struct, in a query outside",
        "SELECT p.payer.id AS pid, max(p.contact.email) AS e FROM (SELECT payer, contact FROM prod.pays) p GROUP BY p.payer.id",
        KEY,
        ("pid = payer.id",),
    ),
    Case(
        "grouped by another field of the key's struct",
        "SELECT payer.kind, max(payer.id) AS top FROM prod.pays GROUP BY payer.kind",
        KEY,
        ("top = payer.id",),
        True,
    ),
    Case(
        "grouped by another struct's field of the key's name",
        "SELECT shop.id, max(contact.email) AS e FROM prod.pays GROUP BY shop.id",
        IDENTIFIERS,
        ("e = contact.email",),
        True,
    ),
    Case(
        "the person's own row before",
        "SELECT payer.id AS pid, lag(contact.email) OVER (PARTITION BY payer.id ORDER BY amount) AS e FROM prod.pays",
        KEY,
        ("pid = payer.id",),
    ),
    Case(
        "the neighbour's row before, by another field of the struct",
        "SELECT payer.id AS pid, lag(contact.email) OVER (PARTITION BY payer.kind ORDER BY amount) AS e FROM prod.pays",
        KEY,
        ("pid = payer.id",),
        True,
    ),
    Case(
        "the neighbour's row before, by another struct's field of the key's name",
        "SELECT payer.id AS pid, lag(contact.email) OVER (PARTITION BY shop.id ORDER BY amount) AS e FROM prod.pays",
        KEY,
        ("pid = payer.id",),
        True,
    ),
    Case(
        "the boss's mail in somebody's row",
        "SELECT e.payer.id AS pid, m.contact.email AS mail FROM prod.pays e JOIN prod.pays m ON e.boss = m.payer.id",
        KEY,
        ("pid = payer.id",),
        True,
    ),
    Case(
        "joined on the key of both",
        "SELECT e.payer.id AS pid, m.contact.email AS mail FROM prod.pays e JOIN prod.pays m ON e.payer.id = m.payer.id",
        KEY,
        ("pid = payer.id",),
    ),
    Case(
        "joined on another field of the key's struct",
        "SELECT e.payer.id AS pid, m.contact.email AS mail FROM prod.pays e JOIN prod.pays m"
        " ON e.payer.kind = m.payer.kind",
        KEY,
        ("pid = payer.id",),
        True,
    ),
    Case(
        "joined on the key through a CTE that flattens it",
        "WITH k AS (SELECT payer.id AS pid, contact FROM prod.pays)"
        " SELECT e.payer.id AS who, k.contact.email AS mail FROM prod.pays e JOIN k ON e.payer.id = k.pid",
        KEY,
        ("who = payer.id",),
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_the_answer_of_one_statement(case: Case) -> None:
    found = carriage(f"INSERT OVERWRITE prod.out {case.sql}")
    assert (found.carries, bool(found.mixed)) == (case.carries, case.mixed), found.reason
    told = terms(found)
    assert set(case.terms) <= set(told), told


def test_all_fields_of_a_struct_by_a_star() -> None:
    found = carriage("INSERT OVERWRITE prod.out SELECT contact.*, amount FROM prod.pays")
    assert terms(found) == ["email = contact.email", "home.phone = contact.home.phone"]


def test_a_value_that_is_set_in_a_field_stands_in_that_field() -> None:
    """The struct as a whole is no e-mail: compared with one, it would find nobody."""
    sql = (
        "INSERT OVERWRITE prod.out SELECT contact, amount FROM prod.pays;\n"
        "UPDATE prod.out SET contact.email = lower(contact.email);\n"
        "UPDATE prod.out o SET o.contact.home.phone = lower(o.contact.home.phone)"
    )
    assert set(terms(carriage(sql))) == {
        "contact.email = contact.email",
        "contact.email = LOWER(x)",
        "contact.home.phone = contact.home.phone",
        "contact.home.phone = LOWER(x)",
    }


def test_a_merge_sets_a_field() -> None:
    sql = (
        "MERGE INTO prod.out o USING (SELECT payer.id AS pid, contact FROM prod.pays) s ON o.pid = s.pid"
        " WHEN MATCHED THEN UPDATE SET o.box.mail = s.contact.email"
        " WHEN NOT MATCHED THEN INSERT (pid, box) VALUES (s.pid, named_struct('mail', s.contact.email))"
    )
    found = carriage(sql)
    assert "pid = payer.id" in terms(found)
    assert {(t.access[0].name, t.origin) for t in found.columns["box"].traces if t.access[0].kind == "field"} == {
        ("mail", "contact.email")
    }


def test_the_source_itself_is_found_by_the_field() -> None:
    found = carriage("INSERT OVERWRITE prod.out SELECT payer.id FROM prod.pays", "prod.pays")
    assert (found.carries, terms(found)) == (KEY, ["payer.id = payer.id"])
    assert set(found.columns) == {"payer", "contact", "ref"}


def test_two_hops_one_out_of_the_struct_and_one_into_another() -> None:
    sql = (
        "INSERT OVERWRITE prod.a SELECT payer.id AS pid, contact FROM prod.pays;\n"
        "INSERT OVERWRITE prod.out SELECT named_struct('k', pid) AS s, contact.home AS h FROM prod.a"
    )
    found = carriage(sql)
    assert terms(found) == ["s.k = payer.id"]
    assert {t.origin for t in found.columns["h"].traces} == {"contact.home.phone"}


def test_the_categories_of_a_struct_and_of_what_is_taken_out_of_it() -> None:
    sql = "INSERT OVERWRITE prod.out SELECT contact, contact.email AS mail, contact.city AS city FROM prod.pays"
    tags: Witnesses = carriage(sql).tags
    told = {name: sorted(str(w.tag) for w in found) for name, found in tags.items()}
    assert told == {"contact": ["email", "phone"], "mail": ["email"]}
    assert tags["mail"][0].origin.column == "contact.email"


def test_other_fields_of_the_struct_mean_something_else() -> None:
    found = carriage("INSERT OVERWRITE prod.out SELECT payer.id FROM prod.pays", "prod.pays")
    others = other_key_columns(found, schema("prod.pays"))
    assert {"payer.kind", "contact.city", "contact.home.zip", "ref.batch", "shop", "id", "amount"} <= set(others)
    assert not {"payer", "payer.id", "contact", "contact.home.phone", "ref"} & set(others)


def test_a_column_that_reads_like_a_member_is_not_explained_by_the_other_one() -> None:
    """`a.b` is a column with a key: a find in it must not pass for one in a member of `a`, which has none."""
    found = carriage("INSERT OVERWRITE prod.out SELECT payer.id AS `a.b`, amount AS a FROM prod.pays")
    made = (Column(name="a.b", type="bigint"), Column(name="a", type="decimal(10,2)"))
    assert other_key_columns(found, made) == ()
    assert other_key_columns(replace(found, columns={}), made) == ("a", "a.b")


def test_a_further_table_may_have_the_key_in_a_struct_too() -> None:
    subject = PAYER.model_copy(update={"tables": (CALLS,)})
    sql = "INSERT OVERWRITE prod.out SELECT caller.id AS who, caller.line AS line FROM prod.calls"
    found = carriage(sql, subject=subject)
    assert found.carries is KEY
    assert "who = payer.id" in terms(found)
    assert {t.origin for t in found.columns["line"].traces} == {"prod.calls.caller.line"}


# --- topics that carry rows of the table

TOPIC = DatasetId(namespace="kafka://broker:9092", name="pays")


@pytest.mark.parametrize(
    ("fields", "terms_"),
    [
        ({"who": "payer.id"}, ["value.$.who"]),
        ({"mail": "contact.email", "ph.no": "contact.home.phone"}, ["value.$.mail", "value.$.ph.no"]),
        ({"who": "payer"}, []),
        ({"who": "payer.kind"}, []),
    ],
)
def test_a_topic_names_the_fields_whose_values_it_carries(fields: dict[str, str], terms_: list[str]) -> None:
    source = dataset("prod.pays")
    names = {
        "payer.id": "990000000077",
        "contact.email": "a@x.example",
        "contact.home.phone": "+49 30 1",
        "ref.pay_no": "p-1",
    }
    rows = SourceRows({name: [value, "other"] for name, value in names.items()})
    keys = resolve(PAYER, rows, [Wanted("R", "subj", names["payer.id"])])
    found = survey(PAYER, source, follow(graph_of("", TABLES), source, PAYER, spots=spots()), keys)
    table = TableState(
        dataset=source,
        table="prod.pays",
        location="/w/pays",
        format=DELTA,
        snapshot="1",
        columns=schema("prod.pays"),
    )
    declared = Topic.model_validate({"name": "pays", "of": "prod.pays", "value": {"format": "json", "fields": fields}})
    state = TopicState(
        dataset=TOPIC, cluster="c", declared=declared, topic_id="1", settings={}, overrides={}, offsets=(), replicas=1
    )
    match = topic_match(found, state, Inventory(tables=(table,), topics=(state,)))
    assert [t.label() for t in (match.terms if match else ())] == terms_


# --- key tables


def test_a_key_table_is_told_by_the_field() -> None:
    """No job is known that fills it: the estate file says that its person column is the subject's key."""
    vault = TableState(
        dataset=dataset("prod.a"),
        table="prod.a",
        location="/w/prod/a",
        format=DELTA,
        snapshot="1",
        columns=columns("person bigint, wrapped binary"),
    )
    table = KeyTable.model_validate(
        {
            "name": "k",
            "subject": "payer",
            "table": "prod.a",
            "person_column": "person",
            "wrapped_column": "wrapped",
            "cache_seconds": 1,
            "wrapping": {"kind": "local", "file": "kek"},
            "encrypts": [{"dataset": "prod.b", "columns": ["c"], "key_column": "k"}],
        }
    )
    graph, source = graph_of("INSERT OVERWRITE prod.out SELECT payer.id FROM prod.pays", TABLES), dataset("prod.pays")
    origins = {"payer": (source, find_spot("payer.id", schema("prod.pays"), "prod.pays"))}
    made = LineageGraph(with_edges(graph.facts, declared_edges([table], [vault], graph, origins)))
    found = follow(made, source, PAYER, spots=spots())[vault.dataset]
    assert (found.carries, terms(found)) == (KEY, ["person = payer.id"])
