"""How a task ends that Airflow kills: first its Spark, then the work, so that the run's journal can be gone on with."""

from __future__ import annotations

import subprocess
import sys

_SECONDS = 3.0
"""For Spark to end by itself. Airflow kills a task five seconds after the first signal."""


class Stopped(BaseException):
    """The task was told to stop. No `Exception`: nothing on the way may take it for the failure of a step."""


def stop_spark() -> None:
    """End the Java process of this process' Spark, if it has one. What Spark works at does not outlive the task.

    A Spark Connect server is not ours to end: the statement that runs there comes to its own end.
    """
    pyspark = sys.modules.get("pyspark")
    gateway = pyspark.SparkContext._gateway if pyspark else None
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return
    process.terminate()
    try:
        process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
