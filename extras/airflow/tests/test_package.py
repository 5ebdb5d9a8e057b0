"""What Airflow sees of the package: its entry point, its import time, its example DAGs."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from pii_tracer_airflow.provider import get_provider_info

HERE = Path(__file__).parents[1]
HEAVY = ("pyspark", "pyarrow", "boto3", "networkx", "sqlglot", "pii_tracer")


def loaded_by(code: str) -> list[str]:
    """Which heavy packages a fresh interpreter has after some code."""
    words = f"{code}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, cwd=HERE)
    return list(json.loads(run.stdout.splitlines()[-1].replace("'", '"')))


def test_a_dag_file_loads_nothing_heavy() -> None:
    assert loaded_by("import example_dags.pii_erasure") == []


def test_heavy_packages_are_seen() -> None:
    assert loaded_by("from pii_tracer.app import plan") != []


def test_an_approval_is_looked_at_without_spark() -> None:
    """The triggerer does it; it needs neither Spark's memory nor its start."""
    code = (
        "from pii_tracer_airflow.approval_state import PlanFiles, approval_state\n"
        "try: approval_state(PlanFiles('e.yaml', 's', 'p.plan.json', 't.yaml', None))\n"
        "except Exception as error: assert type(error).__name__ == 'ReviewError', error"
    )
    assert "pyspark" not in loaded_by(code)


def test_airflow_knows_the_provider() -> None:
    from airflow.providers_manager import ProvidersManager

    found = ProvidersManager().providers["pii-tracer-airflow"]
    assert found.version == importlib.metadata.version("pii-tracer-airflow")


def test_the_provider_keeps_airflows_schema_and_names_real_modules() -> None:
    import airflow

    info = get_provider_info()
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(info, schema)
    for kind in ("operators", "sensors", "triggers"):
        for module in info[kind][0]["python-modules"]:
            importlib.import_module(module)


@pytest.mark.parametrize("dag", ["erasure", "watch"])
def test_the_example_goes_through_airflows_serialization(dag: str) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    from example_dags import pii_erasure

    found = getattr(pii_erasure, dag)
    again = DagSerialization.from_dict(DagSerialization.to_dict(found))
    assert sorted(again.task_dict) == sorted(found.task_dict)
    if dag == "erasure":
        assert [again.task_dict[name].upstream_task_ids for name in ("approved", "apply", "verify")] == [
            {"plan"},
            {"approved", "plan"},
            {"apply", "plan"},
        ]
