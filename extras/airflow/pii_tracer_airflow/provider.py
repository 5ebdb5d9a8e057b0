"""What Airflow's list of providers shows of this package (entry point `apache_airflow_provider`)."""

from __future__ import annotations

from typing import Any

_NAME = "pii-tracer"


def get_provider_info() -> dict[str, Any]:
    """Package, operators, sensors and triggers, in the form of Airflow's `provider_info.schema.json`."""
    return {
        "package-name": "pii-tracer-airflow",
        "name": _NAME,
        "description": "Plan the erasure of persons in a lakehouse, wait for its approval, apply and verify it.",
        "integrations": [
            {
                "integration-name": _NAME,
                "external-doc-url": "https://github.com/pii-tracer/pii-tracer",
                "tags": ["service"],
            }
        ],
        "operators": [{"integration-name": _NAME, "python-modules": ["pii_tracer_airflow.operators"]}],
        "sensors": [{"integration-name": _NAME, "python-modules": ["pii_tracer_airflow.sensors"]}],
        "triggers": [{"integration-name": _NAME, "python-modules": ["pii_tracer_airflow.triggers"]}],
    }
