"""The published schema is current, and a plan that is written fits it."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from pii_tracer.schemas import PLAN_SCHEMA, plan_schema
from tests.reports.example import example_plan


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads(PLAN_SCHEMA.read_bytes())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_the_committed_schema_is_what_the_models_say() -> None:
    assert PLAN_SCHEMA.read_bytes() == plan_schema(), "run `python -m pii_tracer.schemas`"


def test_a_written_plan_fits(validator: Draft202012Validator) -> None:
    assert [e.message for e in validator.iter_errors(json.loads(example_plan().to_bytes()))] == []


@pytest.mark.parametrize("field", ["plan_id", "subjects_digest", "applyable", "steps", "totals"])
def test_a_plan_without_a_field_does_not_fit(validator: Draft202012Validator, field: str) -> None:
    data = json.loads(example_plan().to_bytes())
    del data[field]
    assert not validator.is_valid(data)


def test_unknown_fields_and_kinds_do_not_fit(validator: Draft202012Validator) -> None:
    data = json.loads(example_plan().to_bytes())
    assert not validator.is_valid({**data, "extra": 1})
    data["copies"][0]["kind"] = "SOMETHING"
    assert not validator.is_valid(data)
