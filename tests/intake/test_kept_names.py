"""Names of what persons keep: what they mean, and to whom they apply."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.app.intake.planned_requests import begin_requests
from pii_tracer.app.settings import Settings
from pii_tracer.intake.kept_scopes import Wish
from pii_tracer.intake.request_databases.sqlite import FILE
from pii_tracer.intake.schema import MIGRATIONS
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import ExitCode
from tests.intake.places import NOW, ago, opened, took
from tests.intake.test_narrowings import narrowed, shop, strategies
from tests.intake.test_states import PERSONS, SAID, asked, called, made, states


@pytest.fixture
def settings(tmp_path: Path, database: str | None) -> Settings:
    return shop(tmp_path, database)


def test_a_name_of_two_places_is_refused_wherever_her_data_is(settings: Settings) -> None:
    write_deltalake(settings.base / "w" / "old" / "w" / "orders", pa.table({"x": [1]}))
    orders = "      - {name: app.orders, format: delta, location: w/orders}\n"
    old = orders.replace("app.orders", "app.old").replace("w/orders", "w/old/w/orders")
    settings.estate_file.write_text(settings.estate_file.read_text().replace(orders, orders + old))
    asked(settings, *PERSONS[:2])
    narrowed(settings, "R-1", "w/orders")
    found, _ = made(settings)
    assert (found.requests, "several places" in found.apart["R-1"]) == (("R-2",), True)


def test_a_table_in_another_case_is_the_same(settings: Settings) -> None:
    assert Wish(keep=("app.Orders", "APP.ORDERS", "w/Orders/", "w/Orders", "w/orders")).keep == (
        "APP.ORDERS",
        "w/Orders",
        "w/orders",
    )
    asked(settings, *PERSONS[:2])
    narrowed(settings)
    narrowed(settings, "R-1", "App.Orders")
    assert [one.dataset for one in opened(settings).kept()["R-1"]] == ["app.orders"]
    narrowed(settings, "R-2", "APP.ORDERS")
    found, plan = made(settings)
    assert (found.requests, strategies(plan)["app.orders"]) == (("R-1", "R-2"), Strategy.EXEMPT)
    [hold] = plan.holds
    [orders] = [copy for copy in plan.copies if copy.table == "app.orders"]
    assert orders.exemption is not None
    assert (hold.copies, orders.exemption.holds) == ((orders.id,), (hold.id,))
    assert called(settings, "requests", "release", plan.plan_id, *SAID) == ExitCode.DONE
    narrowed(settings, "R-2", take_back=["App.orders"])
    assert list(opened(settings).kept()) == ["R-1"]


def test_who_has_the_same_key_as_another_kind_is_named(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    member = "subjects:\n  - name: member\n    source: app.orders\n    key: user_id\n"
    settings.estate_file.write_text(settings.estate_file.read_text().replace("subjects:\n", member))
    asked(settings, *PERSONS[:2], days=[3, 3])
    took(settings, f"id,key,received,subject\nM-1,{PERSONS[0]},{ago(2)},member\n", "m.csv")
    for name, told in (("R-1", True), ("R-2", False)):
        assert called(settings, "requests", "narrow", name, "--keep", "app.orders", *SAID) == ExitCode.DONE
        assert ("M-1 has the same key as `member`" in capsys.readouterr().err) is told


def test_an_older_store_knows_whose_run_may_have_begun(tmp_path: Path) -> None:
    settings = shop(tmp_path)
    asked(settings, *PERSONS[:3])
    _, first = made(settings)
    begin_requests(settings, first, NOW)
    assert called(settings, "requests", "release", first.plan_id, *SAID) == ExitCode.DONE
    _, second = made(settings, carried_over=True, as_of=NOW + timedelta(hours=1))
    assert states(settings) == dict.fromkeys(("R-1", "R-2", "R-3"), "planned")
    took(settings, f"id,key,received\nR-4,{PERSONS[3]},{ago(1)}\n", "later.csv")
    with sqlite3.connect(settings.state / FILE) as connection:
        connection.execute("DROP TABLE narrowings")
        connection.execute("ALTER TABLE requests DROP COLUMN kept")
        connection.execute("ALTER TABLE requests DROP COLUMN first_begun")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) - 1}")
    begun = {one.id: one.first_begun is not None for one in opened(settings).requests()}
    assert begun == {"R-1": True, "R-2": True, "R-3": True, "R-4": False}
    assert second.plan_id != first.plan_id
