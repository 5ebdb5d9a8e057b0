"""The person in what a table says of itself: no step writes that, and planning says so before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.app.planning.catalog_text_search import telling_catalogs
from pii_tracer.app.settings import Settings
from pii_tracer.app.unplanned_places import catalog_texts_since
from pii_tracer.model.datasets import KeySet
from pii_tracer.review.plan_file import load_plan
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.verdicts import ByteVerdict
from tests.app.planning.test_others_rows import (
    HERS,
    JOBS,
    KEY,
    MAIL,
    NEIGHBOUR,
    OTHER,
    PHONE,
    estate,
    planned,
    table,
)
from tests.waivers import write_waivers

ROWS = (HERS, NEIGHBOUR, OTHER)
KIND = "table_text"


def delta(base: Path, comment: str = "", **options: Any) -> DeltaTable:
    rows = table(*ROWS)
    if comment:
        rows = rows.cast(pa.schema([field.with_metadata({"comment": comment}) for field in rows.schema]))
    write_deltalake(base / "lake" / "tickets", rows, mode="overwrite", schema_mode="overwrite", **options)
    return DeltaTable(base / "lake" / "tickets")


def reasons(base: Path) -> list[str]:
    gaps = planned(base)["gaps"]
    assert {g["kind"] for g in gaps} <= {KIND}
    return [g["reason"] for g in gaps]


@pytest.mark.parametrize("options", [{"description": f"complaints of {MAIL}"}, {"name": f"tickets of {KEY}"}])
def test_what_a_delta_table_is_called_and_said_to_be(tmp_path: Path, options: dict[str, Any]) -> None:
    base = estate(tmp_path)
    delta(base, **options)
    (reason,) = reasons(base)
    assert "name and comment" in reason


def test_properties_constraints_and_comments_of_a_delta_table(tmp_path: Path) -> None:
    base = estate(tmp_path)
    made = delta(base)
    made.alter.set_table_properties({"owner": MAIL.upper()}, raise_if_not_exists=False)
    (reason,) = reasons(base)
    assert "properties and constraints" in reason
    made.alter.set_table_properties({"owner": "the shop"}, raise_if_not_exists=False)
    assert reasons(base) == []  # what is left of it lies in the log, which the plan's steps clear
    made.alter.add_constraint({"not_her": f"email <> 'x{MAIL}'"})
    assert reasons(base) == []
    made.alter.add_constraint({"not_her_phone": f"note <> '{PHONE}'"})
    assert len(reasons(base)) == 1


def test_comments_of_a_delta_tables_columns(tmp_path: Path) -> None:
    base = estate(tmp_path)
    delta(base, f"as told by {PHONE}")
    (reason,) = reasons(base)
    assert "comments and defaults of columns" in reason
    delta(base, "as told by somebody")
    assert reasons(base) == []


def test_other_peoples_longer_values_are_no_gap(tmp_path: Path) -> None:
    base = estate(tmp_path)
    delta(base, "as told by P-551020", description="asha.rao@x.example.org")
    assert reasons(base) == []


def iceberg(base: Path, change: Callable[[Any], None]) -> Path:
    catalog = SqlCatalog("ice", uri=f"sqlite:///{base}/c.db", warehouse=f"file://{base}/lake")
    catalog.create_namespace("s")
    catalog.create_table("s.tickets", table(HERS).schema).append(table(*ROWS))
    change(catalog.load_table("s.tickets"))
    file = base / "pii-tracer.yaml"
    declared = "      - {name: s.tickets, format: delta, location: lake/tickets}\n"
    ice = "  ice: {type: iceberg-sql, uri: 'sqlite:///c.db', warehouse: lake}\n"
    file.write_text(file.read_text().replace(declared, ice))
    (base / "jobs.sql").write_text(JOBS.replace("s.tickets", "ice.s.tickets"))
    return base


def owned(made: Any) -> None:
    with made.transaction() as change:
        change.set_properties(owner=MAIL)


def told(made: Any) -> None:
    with made.update_schema() as change:
        change.update_column("note", doc=f"as told by {PHONE}")


def told_before(made: Any) -> None:
    told(made)
    with made.update_schema() as change:
        change.update_column("note", doc="as told")


@pytest.mark.parametrize(
    ("change", "places"),
    [
        (owned, ["properties and constraints"]),
        (told, ["names, comments and defaults of columns"]),
        (told_before, ["schemas that the metadata keeps of before"]),
        (lambda made: None, []),
    ],
)
def test_what_an_iceberg_table_says_of_itself(tmp_path: Path, change: Callable[[Any], None], places: list[str]) -> None:
    base = estate(tmp_path)
    (base / "lake" / "tickets").rmdir()
    found = reasons(iceberg(base, change))
    assert [place for place in places if place in " ".join(found)] == places
    assert len(found) == len(places)


def test_entries_in_the_footers_of_parquet_files(tmp_path: Path) -> None:
    """A rewrite keeps them, so that its step would refuse the file."""
    base = estate(tmp_path, "parquet")

    def exported(note: str) -> None:
        for name, row in (("a", HERS), ("b", OTHER)):
            told = table(row).replace_schema_metadata({"exported": note if name == "b" else "by a job"})
            pq.write_table(told, base / "lake" / "tickets" / f"{name}.parquet")

    exported(f"for {MAIL}")
    (reason,) = reasons(base)
    assert "its files' key-value metadata" in reason
    exported("for somebody")
    assert reasons(base) == []


def test_another_text_at_the_same_place_is_not_waived_with_the_first(tmp_path: Path) -> None:
    base = estate(tmp_path)
    delta(base, description=f"complaints of {MAIL}")
    words = "--waivers", str(write_waivers(base / "w.yaml", planned(base)["gaps"]))
    delta(base, description=f"complaints of {MAIL}")
    (gap,) = planned(base, *words)["gaps"]
    assert gap["waiver"]
    delta(base).alter.set_table_description(f"{MAIL} owes the shop")
    (gap,) = planned(base, *words)["gaps"]
    assert gap["waiver"] is None


def test_a_further_property_with_the_same_text_is_not_waived_with_the_first(tmp_path: Path) -> None:
    base = estate(tmp_path)
    made = delta(base)
    made.alter.set_table_properties({"owner": MAIL}, raise_if_not_exists=False)
    words = "--waivers", str(write_waivers(base / "w.yaml", planned(base)["gaps"]))
    made.alter.set_table_properties({"loaded": "today"}, raise_if_not_exists=False)
    (gap,) = planned(base, *words)["gaps"]
    assert gap["waiver"]
    made.alter.set_table_properties({"exported-for": MAIL}, raise_if_not_exists=False)
    (gap,) = planned(base, *words)["gaps"]
    assert gap["waiver"] is None


HER_MAIL = KeySet(name="person.email", origin="s.people.email", weak=False, values=(("subj_R", MAIL),))


def since(base: Path) -> list[ByteVerdict]:
    """What `verify` says of the catalogs' texts."""
    settings = Settings(estate_file=base / "pii-tracer.yaml", state=base / "state")
    found = telling_catalogs(settings.estate(), base, build_patterns((HER_MAIL,)), lambda told: None)
    plan = load_plan(base / "r.plan.json").plan
    return [*catalog_texts_since(plan, found, settings.key().marks)]


def namespace(base: Path) -> SqlCatalog:
    return SqlCatalog("ice", uri=f"sqlite:///{base}/c.db", warehouse=f"file://{base}/lake")


def test_a_text_that_came_after_the_plan_is_found_by_verification(tmp_path: Path) -> None:
    """A comment in a catalog that somebody wrote after planning was searched by nobody."""
    base = estate(tmp_path)
    (base / "lake" / "tickets").rmdir()
    assert reasons(iceberg(base, lambda made: None)) == []
    assert since(base) == []
    namespace(base).update_namespace_properties("s", updates={"steward": MAIL})
    [verdict] = since(base)
    assert [(r.where, r.form) for r in verdict.residue] == [("properties and comments", "text")]
    assert verdict.copy_id.startswith("(new) ")
    assert MAIL not in verdict.model_dump_json()


def test_a_waived_text_stays_and_another_one_beside_it_does_not(tmp_path: Path) -> None:
    base = estate(tmp_path)
    (base / "lake" / "tickets").rmdir()
    iceberg(base, lambda made: None)
    namespace(base).update_namespace_properties("s", updates={"steward": MAIL, "mail": f"to {MAIL}"})
    words = "--waivers", str(write_waivers(base / "w.yaml", planned(base)["gaps"]))
    assert planned(base, *words)["complete"]
    assert since(base) == []
    namespace(base).update_namespace_properties("s", removals={"steward"})
    assert since(base) == [], "less than was waived"
    namespace(base).update_namespace_properties("s", updates={"owner": f"of {MAIL}"})
    assert len(since(base)) == 1
    namespace(base).update_namespace_properties("s", removals={"owner", "mail"})
    assert since(base) == []


def test_each_of_two_waived_texts_stays_where_their_names_begin_alike(tmp_path: Path) -> None:
    """An id of a gap has the first letters of a long name."""
    base = estate(tmp_path)
    (base / "lake" / "tickets").rmdir()
    iceberg(base, lambda made: None)
    for end in ("a", "b"):
        namespace(base).create_namespace(f"{'n' * 90}{end}", {"steward": f"{MAIL} {end}"})
    words = "--waivers", str(write_waivers(base / "w.yaml", planned(base)["gaps"]))
    assert planned(base, *words)["complete"]
    assert since(base) == []
    namespace(base).update_namespace_properties(f"{'n' * 90}b", updates={"owner": f"of {MAIL}"})
    [verdict] = since(base)
    assert verdict.root.endswith("nb")


def test_a_waived_text_covers_no_table_whose_name_is_the_begin_of_the_others(tmp_path: Path) -> None:
    base = estate(tmp_path)
    (base / "lake" / "tickets").rmdir()
    iceberg(base, lambda made: None)
    for name in ("n", "n: m"):
        namespace(base).create_namespace(name, {"steward": MAIL})
    waived = [gap for gap in planned(base)["gaps"] if "n: m: ask" in gap["evidence"]]
    planned(base, "--waivers", str(write_waivers(base / "w.yaml", waived)))
    assert [verdict.root for verdict in since(base)] == ["catalog ice.n"]
