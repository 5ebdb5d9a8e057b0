"""Airflow's home of a test session: settings by environment, before anything of Airflow is imported."""

from __future__ import annotations

import os
import tempfile

HOME = tempfile.mkdtemp(prefix="pii-tracer-airflow-")
os.environ.update(
    AIRFLOW_HOME=HOME,
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__DAGS_FOLDER=f"{HOME}/dags",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME}/airflow.db",
)
