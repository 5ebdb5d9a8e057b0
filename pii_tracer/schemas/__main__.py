"""Write the schemas anew: `python -m pii_tracer.schemas`."""

from __future__ import annotations

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.schemas import ESTIMATE_SCHEMA, PLAN_SCHEMA, estimate_schema, plan_schema

write_atomic(PLAN_SCHEMA, plan_schema())
write_atomic(ESTIMATE_SCHEMA, estimate_schema())
