"""Two DAGs for one estate: erase who is due, once people have approved it; and look every morning whether all is well.

All workers that run these tasks, and the triggerer, see the same folder HOME. People approve with `pii-tracer approve`,
outside of Airflow: no task holds a key.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG

from pii_tracer_airflow.operators import (
    ApplyOperator,
    PlanDueOperator,
    ReadinessOperator,
    RecheckOperator,
    VerifyOperator,
)
from pii_tracer_airflow.sensors import ApprovalSensor

HOME = os.environ.get("PII_TRACER_HOME", "/srv/pii-tracer")
TRUSTED = f"{HOME}/trusted.yaml"
DEFAULTS = {
    "estate_file": f"{HOME}/pii-tracer.yaml",
    "state": f"{HOME}/.pii-tracer",
    "retries": 3,
    "retry_delay": timedelta(minutes=5),
}

with DAG(
    "pii_erasure",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    default_args=DEFAULTS,
) as erasure:
    planned = PlanDueOperator(task_id="plan", planner="Erasure pipeline")
    plan_file = planned.output["plan_file"]
    approved = ApprovalSensor(
        task_id="approved", plan_file=plan_file, trusted=TRUSTED, poke_interval=30, timeout=timedelta(days=7)
    )
    applied = ApplyOperator(task_id="apply", plan_file=plan_file, trusted=TRUSTED)
    verified = VerifyOperator(task_id="verify", plan_file=plan_file)
    planned >> approved >> applied >> verified

with DAG(
    "pii_watch",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    default_args=DEFAULTS,
) as watch:
    RecheckOperator(task_id="recheck")
    ReadinessOperator(task_id="readiness")
