"""JSON Schemas of what others read: plans and estimates, generated from the models, and the facet of a run's events.

They are committed, so that a reader needs no Python. After a change of a model: `python -m pii_tracer.schemas`.
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from pii_tracer.model.estimate import Estimate
from pii_tracer.model.plan import ErasurePlan

PLAN_SCHEMA = Path(__file__).with_name("plan.schema.json")
ESTIMATE_SCHEMA = Path(__file__).with_name("estimate.schema.json")
ERASURE_FACET_SCHEMA = Path(__file__).with_name("ErasureRunFacet.json")


def plan_schema() -> bytes:
    """The schema of `NAME.plan.json`, in the dialect that pydantic writes (JSON Schema 2020-12), as sorted JSON.

    It describes a plan as it is written: every field is required, unknown ones are refused.
    """
    return schema_of(ErasurePlan)


def estimate_schema() -> bytes:
    """As `plan_schema`, of what `pii-tracer estimate --format json` prints."""
    return schema_of(Estimate)


def schema_of(model: type[BaseModel]) -> bytes:
    """The schema of a model as it is written."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(by_alias=True, mode="serialization"),
    }
    return (json.dumps(schema, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()
