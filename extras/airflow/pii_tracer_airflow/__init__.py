"""Airflow operators for pii-tracer. They import nothing of it before a task runs, so that DAG files parse fast."""
