"""Guesses of a first estate file: what columns hold, who the persons are, which folders are tables, what they are called."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.object_tables import tables_of
from pii_tracer.model.datasets import Column, Format
from planners.draft.column_guesses import category_of, key_strength, kind_of_person, may_tell_of_person, words_of
from planners.draft.draft_roots import development_roots
from planners.draft.place_split import cut_place
from planners.draft.subject_guesses import SampledTable, better_folder, guess_subjects
from planners.draft.table_names import names_of

MAILS = ["a@x.example", "b@x.example", None]
CATEGORIES = [
    ("email", "string", (), "email"),
    ("customerEmail", "string", (), "email"),
    ("E_MAIL", "varchar(80)", (), "email"),
    ("contact", "string", MAILS, "email"),
    ("contact", "string", ["a@x.example", "none", "none"], None),
    ("email_verified", "string", (), None),
    ("email", "boolean", (), None),
    ("email", "struct<a:string>", (), None),
    ("mobile", "bigint", (), "phone"),
    ("billing_phone_no", "string", (), "phone"),
    ("ring", "string", ["+44 20 7946 0001", "+44 20 7946 0002"], "phone"),
    ("order_no", "string", ["7946000123", "7946000124"], None),
    ("pan", "string", (), "national_id"),
    ("company", "string", (), None),
    ("panel", "string", (), None),
    ("aadhaar_ref", "string", (), "national_id"),
    ("iban", "string", (), "payment_account"),
    ("amount", "decimal(10,2)", (), None),
]


@pytest.mark.parametrize(("name", "kind", "sample", "category"), CATEGORIES)
def test_categories(name: str, kind: str, sample: list[object], category: str | None) -> None:
    found = category_of(name, kind, sample)
    assert (found.category if found else None) == category


@pytest.mark.parametrize(
    ("name", "kind", "strength"),
    [
        ("customer_id", "bigint", 2),
        ("CustomerID", "string", 2),
        ("uid", "int", 2),
        ("id", "bigint", 1),
        ("order_id", "bigint", 0),
        ("customer_id", "double", 0),
        ("customer_ids", "array<bigint>", 0),
    ],
)
def test_keys(name: str, kind: str, strength: int) -> None:
    assert key_strength(name, kind) == strength


def test_words_and_kinds() -> None:
    assert [words_of(n) for n in ("customerEMail", "USER_ID", "pan2", "x-y z")] == [
        "customer e mail",
        "user id",
        "pan 2",
        "x y z",
    ]
    assert [kind_of_person(*names) for names in (("cust_no", "a.b"), ("id", "crm.members"), ("id", "crm.rows"))] == [
        "customer",
        "member",
        "person",
    ]


def table(name: str, columns: dict[str, list[object]], **more: bool) -> SampledTable:
    kinds = {int: "bigint", str: "string", float: "double"}
    made = tuple(
        Column(name=c, type=kinds[type(next(v for v in values if v is not None))]) for c, values in columns.items()
    )
    return SampledTable(name, made, columns, len(next(iter(columns.values()))), **more)


def test_the_source_is_where_each_person_stands_once() -> None:
    users = {"user_id": [1, 2, 3], "email": ["a@x.example", "b@x.example", None], "phone": ["1", "2", "3"]}
    tables = [
        table("a.mails", {"user_id": [1, 1, 2], "email": ["a@x.example"] * 3, "phone": ["1", "1", "2"]}),
        table("b.copy", users, clone=True),
        table("crm.people", users),
        table("fleet.trips", {"USER_ID": [8, 9], "km": [1.0, 2.0]}),
        table("shop.orders", {"order_id": [5, 6], "userId": [1, 9]}),
        table("shop.things", {"id": [5, 6], "price": [1.0, 9.0]}),
    ]
    first, *others = guess_subjects(tables)
    assert (first.name, first.source, first.key, first.unique) == ("user", "crm.people", "user_id", True)
    assert {column: guess.category for column, guess in first.identifiers.items()} == {
        "email": "email",
        "phone": "phone",
    }
    assert [(f.table, f.key, f.shared) for f in first.further] == [
        ("a.mails", "user_id", 1.0),
        ("b.copy", "user_id", 1.0),
        ("fleet.trips", "USER_ID", 0.0),
        ("shop.orders", "userId", 0.5),
    ]
    assert [other.source for other in others] == ["a.mails"]
    assert guess_subjects(tables[3:]) == []


def test_a_part_of_the_values_tells_nothing_of_all() -> None:
    """Five thousand different numbers at the beginning are no proof that each stands once."""
    users = {"user_id": [1, 2], "email": ["a@x.example", "b@x.example"]}
    kinds = (Column(name="user_id", type="bigint"), Column(name="email", type="string"))
    orders = table("a.orders", {"user_id": [1], "total": [1.0]})
    [part] = guess_subjects([SampledTable("crm.people", kinds, users, 900), orders])
    assert (part.unique, part.further[0].shared) == (False, None)
    [whole] = guess_subjects([SampledTable("crm.people", kinds, users, 2), orders])
    assert (whole.unique, whole.further[0].shared) == (True, 1.0)


MARKS: dict[str, Format | None] = {"_delta_log": DELTA, "metadata": None}


def test_columns_with_the_sources_values_are_named_whatever_they_are_called() -> None:
    """By an identifier or by the key; not by small numbers, which every table has."""
    keys, mails = [10482000, 10482037], ["a@x.example", "b@x.example"]

    def table(name: str, sample: dict[str, list[object]]) -> SampledTable:
        kinds = {n: "bigint" if isinstance(v[0], int) else "string" for n, v in sample.items()}
        return SampledTable(name, tuple(Column(name=n, type=k) for n, k in kinds.items()), sample, 2)

    tables = [
        table("raw.users", {"user_id": [*keys], "email": [*mails], "age": [31, 44]}),
        table("raw.orders", {"user_id": [*keys], "mail": [*mails]}),
        table("raw.payments", {"payment_id": [31, 44], "payer_email": [mails[0], None]}),
        table("raw.referrals", {"referrer": [keys[0], keys[1]], "referred": [keys[1], keys[1]]}),
        table("raw.other", {"contact_email": ["c@x.example", "a@x.example"]}),
    ]
    guess = guess_subjects(tables)[0]
    assert [further.table for further in guess.further] == ["raw.orders"]
    assert [(m.table, m.column, m.of) for m in guess.mentioned] == [
        ("raw.payments", "payer_email", "email"),
        ("raw.referrals", "referrer", None),
        ("raw.referrals", "referred", None),
    ]
    teams = SampledTable("raw.teams", (), {}, 2, listed={"members.element.id": [*keys, keys[0]], "tags.element": ["a"]})
    (listed,) = guess_subjects([*tables, teams])[0].mentioned[3:4]
    assert (listed.table, listed.column, listed.of, listed.in_list) == ("raw.teams", "members.element.id", None, True)
    tables[0] = replace(tables[0], listed={"friends.element": [*keys]})
    tables[1] = replace(tables[1], listed={"shared_with.key": [*keys]})
    more = [(m.table, m.column) for m in guess_subjects(tables)[0].mentioned if m.in_list]
    assert more == [("raw.orders", "shared_with.key"), ("raw.users", "friends.element")]
    short = [table("a.users", {"user_id": [1, 2], "email": [*mails]}), table("a.b", {"rank": [1, 2]})]
    assert guess_subjects(short)[0].mentioned == ()


def test_tables_of_a_bucket() -> None:
    keys = [
        "lake/crm/users/_delta_log/00.json",
        "lake/crm/users/part-0.parquet",
        "lake/crm/users/_delta_log/_sidecars/x.parquet",
        "lake/ice/t/metadata/v1.metadata.json",
        "lake/ice/t/data/a.parquet",
        "exports/calls/day=1/c.csv.gz",
        "exports/calls/day=2/c.csv.gz",
        "exports/_SUCCESS",
        "mixed/a.csv",
        "mixed/b.parquet",
        "around/a.csv",
        "around/in/b.csv",
        "readme.txt",
        "top.csv",
    ]
    assert tables_of(keys, MARKS) == {
        "lake/crm/users": DELTA,
        "exports/calls": Format.CSV,
        "around/in": Format.CSV,
    }


@given(
    st.lists(st.sampled_from(["a", "b", "_delta_log", "metadata", "p=1", "x.parquet", "y.csv"]), max_size=5).map(
        "/".join
    )
)
def test_no_table_lies_in_another(key: str) -> None:
    found = tables_of([key, "a/b/_delta_log/0.json", "b/x.csv", f"b/{key}/z.csv"], MARKS)
    assert not [(one, two) for one in found for two in found if one != two and one.startswith(f"{two}/")]


@given(st.lists(st.text(max_size=12), unique=True, max_size=8))
def test_names_are_harmless_and_none_stands_twice(places: list[str]) -> None:
    names = names_of(places, ["lake.folder"])
    assert set(names) == set(places)
    assert len({name.lower() for name in names.values()} | {"lake.folder"}) == len(places) + 1
    tables = [{"name": name, "format": "delta", "location": f"at/{n}"} for n, name in enumerate(names.values())]
    whole = {"version": 1, "estate": "e", "environment": "local", "roots": [], "lineage": {}}
    subjects = [{"name": "p", "source": "a.b", "key": "c"}]
    catalogs = {"spark_catalog": {"type": "declared", "tables": tables}}
    Estate.model_validate({**whole, "subjects": subjects, "catalogs": catalogs})
    assert all(name.replace(".", "").replace("_", "").isalnum() and name.isascii() for name in names.values())


def people(name: str, keys: list[str], **more: bool) -> SampledTable:
    columns = (Column(name="uid", type="string"), Column(name="email", type="string"))
    sample = {"uid": keys, "email": [f"{key}@x.example" for key in keys]}
    return SampledTable(name, columns, sample, len(keys), **more)


def test_of_two_tables_of_persons_the_one_that_knows_more_is_the_source() -> None:
    few, many = people("crm.users", ["71", "72"]), people("shop.users", ["71", "72", "73"])
    assert [guess.source for guess in guess_subjects([few, many])] == ["shop.users", "crm.users"]


def test_a_folder_whose_keys_only_lineage_tells_is_no_source_and_is_named_as_such() -> None:
    folder = people("exports.users", ["71", "72", "73"], by_lineage=True)
    assert guess_subjects([folder]) == []
    [guess] = guess_subjects([folder, people("crm.users", ["71", "72"])])
    assert [(t.table, t.by_lineage, guess.mentioned) for t in guess.further] == [("exports.users", True, ())]


def cards(**more: bool) -> SampledTable:
    columns = (Column(name="account_id", type="string"), Column(name="phone", type="string"))
    sample = {
        "account_id": ["501", "501", "502"],
        "phone": ["+44 20 7946 0001", "+44 20 7946 0001", "+44 20 7946 0002"],
    }
    return SampledTable("pay.cards", columns, sample, 3, **more)


def test_no_worse_guess_is_made_where_the_table_of_the_persons_cannot_be_the_source() -> None:
    folder, other = people("core.customers", ["71", "72", "73"], by_lineage=True), cards()
    guessed = guess_subjects([folder, other])
    assert [guess.source for guess in guessed] == ["pay.cards"]
    better = better_folder([folder, other], guessed)
    assert better is not None
    assert (better.source, better.key, [*better.identifiers]) == ("core.customers", "uid", ["email"])
    assert better_folder([folder], []) is not None
    source = people("crm.users", ["71", "72", "73", "74"])
    assert better_folder([folder, source], guess_subjects([folder, source])) is None, "it has the source's key"
    assert better_folder([other], guess_subjects([other])) is None


KEYS = ("lake/a/x.csv", "lake/b/day=1/y.csv", "lake/old/gone.bin", "lake/README")
CUTS = [
    ("lake", KEYS, {"lake/a", "lake/b"}, ["lake/a", "lake/b", "lake/old"], ["lake/README"]),
    ("", KEYS, {"lake/a", "lake/b"}, ["lake/a", "lake/b", "lake/old"], ["lake/README"]),
    ("lake", KEYS, {"lake"}, ["lake"], []),
    ("lake", KEYS, set(), ["lake"], []),
    ("lake", (*KEYS, "lake/own.csv"), {"lake/a"}, ["lake"], []),
    ("lake", (), {"lake/named"}, ["lake/named"], []),
]


@pytest.mark.parametrize(("at", "keys", "folders", "places", "left"), CUTS)
def test_a_place_is_cut_into_folders_and_what_lies_beside_them_is_told(
    at: str, keys: tuple[str, ...], folders: set[str], places: list[str], left: list[str]
) -> None:
    cut = cut_place(at, keys, folders)
    assert (cut.places, cut.left) == (places, left)


@pytest.mark.parametrize("name", ["asha@x.example", "asha%40x.example", "uid=71234501", "+44 20 7946", "c_123456"])
def test_a_folder_that_may_tell_of_a_person_names_no_place(name: str) -> None:
    keys = [f"lake/users/{name}/a/x.csv", "lake/users/other/y.csv", "lake/calls/z.csv"]
    cut = cut_place("lake", keys, {f"lake/users/{name}/a", "lake/users/other", "lake/calls"})
    assert (cut.places, cut.whole) == (["lake/calls", "lake/users"], ["lake/users"])
    named = cut_place("lake", keys, {"lake/calls"}, {f"lake/users/{name}/a"})
    assert named.whole == [], "a catalog names it"


@pytest.mark.parametrize(
    "name", ["2024-01-15", "day=20240115", "202401", "run_2024-01-15T10-30-00", "2023-2024", "v1.2", "part-00001", "q3"]
)
def test_dates_and_small_numbers_tell_of_nobody(name: str) -> None:
    assert not may_tell_of_person(name)


def test_a_name_without_letters_ends() -> None:
    assert cut_place("", ["a/b.csv"], {"/x", "a"}).places == ["a"]


def test_many_folders_take_no_time_of_the_square_of_their_number() -> None:
    keys = [f"lake/{one:05}/{two}/x.csv" for one in range(10_000) for two in "ab"]
    began = time.process_time()
    folders = tables_of(keys, MARKS)
    assert len(cut_place("lake", keys, folders).places) == len(keys)
    assert time.process_time() - began < 5


PARTS = st.sampled_from(["a", "b", "lake", "x.csv", "day=1", ""])


@given(st.lists(st.lists(PARTS, min_size=1, max_size=4).map("/".join), max_size=12), st.data())
def test_every_key_lies_in_one_place_or_is_told(keys: list[str], data: st.DataObject) -> None:
    keys = [key for key in keys if not key.startswith("/") and key]
    folders = {key.rpartition("/")[0] for key in keys if "/" in key and "//" not in key}
    some = set(data.draw(st.lists(st.sampled_from(sorted(folders)), unique=True))) if folders else set()
    cut = cut_place("", keys, some)
    for key in keys:
        inside = [place for place in cut.places if not place or key.startswith(f"{place}/")]
        assert len(inside) + (key in cut.left) == 1, key


MANY = range(20)
KEYS_OF_MANY = [71001 + n for n in MANY]
UUIDS = [f"0b8a1abc-1a69-46c7-8da4-f9fc3c6da5{n:02}" for n in MANY]
MAILS_OF_MANY = [f"a{n}@x.example" for n in MANY]
NUMBERS = [
    ("ref", UUIDS, True),
    ("user_no", [50001 + n for n in MANY], True),
    ("driver_id", [50001 + n for n in MANY], False),
    ("tenant_uuid", UUIDS, False),
    ("household_uuid", UUIDS, False),
    ("spouse_user_id", [50001 + n for n in MANY], False),
    ("second_user_id", KEYS_OF_MANY[::-1], False),
    ("later_user_id", [*KEYS_OF_MANY[1:], 50001], False),
    ("ref", [*UUIDS[1:], None], False),
    ("ref", [*UUIDS[1:], UUIDS[1]], False),
    ("id", [50001 + n for n in MANY], False),
    ("user_no", [*MANY], False),
]


@pytest.mark.parametrize(("name", "numbers", "proposed"), NUMBERS)
def test_another_number_is_proposed_and_never_taken(name: str, numbers: list[object], proposed: bool) -> None:
    """Whether it is the same person's only its owner knows: by a driver's number other people's rows would go."""
    columns = {"user_id": [*KEYS_OF_MANY], "email": [*MAILS_OF_MANY], name: numbers}
    orders = table("shop.orders", {"n": [1], "buyer": [numbers[3]]})
    guess = guess_subjects([table("crm.people", columns), orders])[0]
    assert (guess.key, [*guess.identifiers], [*guess.others]) == ("user_id", ["email"], [name] * proposed)
    named = [(m.table, m.column, m.of) for m in guess.mentioned if m.of]
    assert named == [("shop.orders", "buyer", name)] * proposed
    few = {column: values[:19] for column, values in columns.items()}
    assert not guess_subjects([table("crm.people", few)])[0].others
    bare = {"id" if column == "user_id" else column: values for column, values in columns.items()}
    if name == "driver_id":
        assert not guess_subjects([table("crm.users", bare)])[0].others


def test_a_mail_of_somebody_else_is_not_taken() -> None:
    columns = {"user_id": [1, 2], "email": MAILS[:2], "spouse_email": MAILS[1::-1], "guardianPhone": ["1", "2"]}
    [guess] = guess_subjects([table("crm.people", columns)])
    assert (list(guess.identifiers), list(guess.others)) == (["email"], ["spouse_email", "guardianPhone"])


def test_who_stands_in_a_row_by_key_is_not_named_again_by_a_mail() -> None:
    """But whoever else is."""
    mails = ["a@x.example", "b@x.example", "c@x.example"]
    users = table("raw.users", {"user_id": [71001, 71002, 71003], "email": [*mails]})
    clicks = table("raw.clicks", {"who": [71001, 71003], "mail": [mails[0], mails[2]], "friend": [mails[1], mails[1]]})
    named = [(m.column, m.of) for m in guess_subjects([users, clicks])[0].mentioned]
    assert named == [("who", None), ("friend", "email")]


def test_folders_of_development_lie_in_stores_too() -> None:
    tables = [
        "lake/crm/a",
        "lake/DEV/b/sandbox/t",
        "s3://b/lake/dev/t",
        "hdfs://nn/x/dev/t",
        "gs://b/dev/t",
        "/o/dev/t",
    ]
    roots = ["lake", "s3://b/lake", "hdfs://nn/x/dev", "gs://b"]
    assert development_roots(tables, roots) == ("gs://b/dev", "hdfs://nn/x/dev", "lake/DEV", "s3://b/lake/dev")
    assert development_roots(["hdfs://nn/x/dev/t"], ["hdfs://nn/x/dev"]) == ()
    assert development_roots(["dev/t", "s3://b/dev/t"], ["."]) == ("dev",)
    assert development_roots(["lake/asha@x.example/dev/t"], ["lake"]) == (), "such a name is not written"


def test_a_number_in_another_language_is_a_key_where_each_mail_stands_once() -> None:
    mails = ["a@x.example", "b@x.example"]
    [found] = guess_subjects([table("crm.kunden", {"kunden_nr": [100200, 100201], "email": [*mails]})])
    assert (found.source, found.key, found.unique) == ("crm.kunden", "kunden_nr", True)
    assert guess_subjects([table("shop.bestellungen", {"bestell_nr": [1, 2], "email": mails[:1] * 2})]) == []
    assert guess_subjects([table("crm.kunden", {"umsatz": [100200, 100201], "email": [*mails]})]) == []
