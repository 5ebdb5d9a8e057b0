"""Tables whose catalog the session is not told of: statements go by their places, and nobody registers their names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from executors.engine import table_registration
from executors.formats.delta.executor import _table
from executors.formats.registry import support_of
from executors.sweep.table_retention_settings import _sql_name
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.base import in_session_catalog
from pii_tracer.lake.catalogs.registered_tables import Registered, Registry, RemoteTable
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.locations import s3_location
from pii_tracer.model.plan import Step
from pii_tracer.retention.setting_changes import Change

NAMED = [
    ("prod.orders", "`prod`.`orders`"),
    ("spark_catalog.prod.orders", "`spark_catalog`.`prod`.`orders`"),
    ("main.prod.orders", "delta.`/lake/orders`"),
    (None, "delta.`/lake/orders`"),
]


@pytest.mark.parametrize(("name", "called"), NAMED)
def test_statements_go_by_the_place_of_a_table_that_the_session_has_no_name_for(name: str | None, called: str) -> None:
    step = cast(Step, SimpleNamespace(parameters={"table": name, "location": "/lake/orders"}))
    assert _table(step) == called
    change = Change(table="t", location="/lake/orders", format=DELTA, setting="s", old=None, new="1")
    assert _sql_name(change, name) == called


def test_catalogs_that_the_session_has_keep_their_names() -> None:
    iceberg, delta = support_of(ICEBERG), support_of(DELTA)
    assert iceberg is not None
    assert delta is not None
    assert (iceberg.known_name("core.prod.orders"), delta.known_name("core.prod.orders")) == ("core.prod.orders", None)
    assert [in_session_catalog(name) for name in ("orders", "a.b", "spark_catalog.a.b", "c.a.b")] == [
        False,
        True,
        True,
        False,
    ]


def test_only_names_of_the_session_catalog_are_registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Beside a metastore whose tables the session is told of, another one's are left alone."""
    names = ("prod.orders", "main.prod.orders")
    tables = {tmp_path / name: Registered((name,), DELTA, tmp_path / name) for name in names}
    remote = tuple(RemoteTable(name, name, DELTA, s3_location(f"s3://bucket/{name}")) for name in names)
    told: list[str] = []
    conf = SimpleNamespace(get=lambda key, default: default, set=lambda key, value: None)
    monkeypatch.setattr(table_registration, "spark_catalogs", lambda estate: [SimpleNamespace(other_formats=True)])
    monkeypatch.setattr(
        table_registration, "EstatePaths", lambda *_: SimpleNamespace(registry=Registry(tables, remote))
    )
    monkeypatch.setattr(table_registration, "_register", lambda spark, name, *_: told.append(name))
    monkeypatch.setattr(table_registration, "_register_in_store", lambda spark, estate, name, *_: told.append(name))
    estate = cast(Estate, SimpleNamespace(catalogs={}))
    table_registration.register_tables(cast(Any, SimpleNamespace(conf=conf)), estate, tmp_path, stores={"s3"})
    assert told == ["prod.orders", "prod.orders"]
