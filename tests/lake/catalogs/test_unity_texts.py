"""What a Unity Catalog metastore itself keeps of persons: comments, properties, texts of views, tags."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pii_tracer.app.planning.catalog_text_search import telling_catalogs
from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import build_patterns
from planners.copies.scan_evidence import CatalogEvidence
from tests.lake.catalogs.test_catalogs import estate
from tests.unitysupport import Refusal, Unity, installed, serving, token

__all__ = ["installed", "token"]

pytestmark = pytest.mark.usefixtures("token")
EMAIL = "lena.virtanen@example.org"
PATTERNS = build_patterns(
    (
        KeySet(name="customer.email", origin="email", weak=False, values=(("s", EMAIL),)),
        KeySet(name="customer.uid", origin="uid", weak=True, values=(("s", "4711"),)),
    )
)


@pytest.fixture
def unity() -> Iterator[Unity]:
    with serving() as server:
        server.table("main.sales.clean", "file:///clean", comment="someone@example.org", properties={"n": "4711"})
        yield server


def telling(server: Unity) -> tuple[CatalogEvidence, ...]:
    return telling_catalogs(estate(uc=server.made()), Path(), PATTERNS, lambda _: None)


def test_what_the_metastore_keeps_beside_rows_is_searched(unity: Unity) -> None:
    unity.catalog("main", comment=f"ask {EMAIL}")
    unity.schema("main.sales", properties={"steward": EMAIL})
    unity.table("main.sales.noted", "file:///a", comment=f"ask {EMAIL}")
    unity.table("main.sales.owned", "file:///b", owner=EMAIL)
    unity.table("main.sales.props", "file:///c", properties={"requested-by": EMAIL})
    unity.table("main.sales.described", "file:///d", columns=[{"name": "mail", "comment": f"such as {EMAIL}"}])
    unity.table("main.sales.typed", "file:///e", columns=[{"name": "mail", "type_json": f'{{"comment":"{EMAIL}"}}'}])
    unity.table("main.sales.other", "file:///g", columns=[{"name": "amount", "comment": "such as 4711"}])
    unity.view("main.sales.seen", f"SELECT * FROM clean WHERE email = '{EMAIL}'")
    unity.volume("main.sales.drop", "file:///h", comment=EMAIL)
    unity.table("main.sales.tagged", "file:///i")
    unity.tags["tables", "main.sales.tagged"] = {"asked by": EMAIL}
    unity.tags["columns", "main.sales.clean.name"] = {EMAIL: ""}
    unity.tags["columns", "main.sales.other.amount"] = {"n": "4711"}
    found = telling(unity)
    assert {one.title: one.places for one in found} == {
        "catalog uc.main": ("properties and comments",),
        "catalog uc.main.sales": ("properties and comments",),
        "catalog uc.main.sales.noted": ("properties and comments",),
        "catalog uc.main.sales.owned": ("properties and comments",),
        "catalog uc.main.sales.props": ("properties and comments",),
        "catalog uc.main.sales.described": ("properties and comments",),
        "catalog uc.main.sales.typed": ("properties and comments",),
        "catalog uc.main.sales.seen": ("text of a view",),
        "catalog uc.main.sales.drop": ("properties and comments",),
        "catalog uc.main.sales.tagged": ("tags",),
        "catalog uc.main.sales.clean": ("tags",),
    }
    assert "COMMENT ON" in found[0].remedy
    assert [one.unread for one in found if one.unread] == []
    assert EMAIL not in str(found)


def test_a_name_that_is_a_value_is_masked(unity: Unity) -> None:
    unity.tables["main.sales.named"] = {**unity.tables["main.sales.clean"], "name": EMAIL.replace(".", "_")}
    unity.tables["main.sales.named"]["comment"] = EMAIL
    unity.schemas["main.sales"]["name"] = EMAIL
    unity.tables = {f"main.{EMAIL}.t": {**unity.tables["main.sales.named"], "schema_name": EMAIL}}
    unity.schemas = {f"main.{EMAIL}": unity.schemas["main.sales"]}
    found = telling(unity)
    assert len(found) == 2
    assert EMAIL not in str(found)


def test_a_server_without_tags_is_asked_for_them_once(unity: Unity) -> None:
    unity.databricks = False
    unity.table("main.sales.noted", "file:///a", comment=EMAIL)
    assert [one.title for one in telling(unity)] == ["catalog uc.main.sales.noted"]
    assert sum("entity-tag" in path for path in unity.asked) == 1


def test_what_is_refused_is_unread(unity: Unity, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Unity, kind: str, full_name: str) -> dict[str, object]:
        raise Refusal(403, "PERMISSION_DENIED")

    unity.catalog("away", catalog_type="FOREIGN_CATALOG")
    monkeypatch.setattr(Unity, "_tags", refused)
    unread = {one.title: one.unread for one in telling(unity)}
    assert set(unread) == {"catalog uc.main", "catalog uc.main.sales", "catalog uc.main.sales.clean"}
    assert "grant the account BROWSE on `main.sales.clean`" in str(unread["catalog uc.main.sales.clean"])


def test_what_may_only_be_browsed_is_unread(unity: Unity) -> None:
    unity.admin, unity.grants = False, {"main": {"BROWSE", "USE CATALOG"}, "main.sales": {"USE SCHEMA"}}
    assert [one.title for one in telling(unity) if one.unread] == ["catalog uc.main.sales.clean"]


def test_texts_of_a_server_that_does_not_answer_are_unread(unity: Unity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PII_TRACER_CATALOG_UC_TOKEN", "wrong")
    (one,) = telling(unity)
    assert (one.title, one.places, len(one.unread)) == ("catalog uc", (), 1)
