"""The invented person's values are of their columns' types: what a type cannot hold would be another question."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from pii_tracer.app.estate_readiness.invented_person_plan import _value
from planners.locate.sql.column_types import fits


@pytest.mark.parametrize(
    "kind",
    [
        *("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "double"),
        *("decimal(10,2)", "decimal(5,0)", "decimal(38,0)", "decimal(2,2)"),
    ],
)
def test_a_number_fits_into_its_column(kind: str) -> None:
    value = _value(kind, "phone")
    assert Decimal(value) == int(value)
    assert fits(value, kind)
    assert abs(int(value)) < {"tinyint": 2**7, "byte": 2**7, "smallint": 2**15, "short": 2**15}.get(kind, 10**38)
    if kind.startswith("int"):
        assert int(value) < 2**31


def test_what_is_no_number_is_of_its_type_too() -> None:
    assert date.fromisoformat(_value("date", "birth_date")).year < 1800
    assert datetime.fromisoformat(_value("timestamp", "")).year < 1800
    assert _value("boolean", "") == "true"
    assert bytes.fromhex(_value("binary", ""))
    assert _value("string", "email").endswith("@reading.invalid")
