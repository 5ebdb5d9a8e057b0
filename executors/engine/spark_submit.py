"""A process that `spark-submit` started: its Java runs before the estate file is read, so some of it is settled then.

https://spark.apache.org/docs/latest/submitting-applications.html: the master and the jars are spark-submit's to name.
`spark.jars.packages` of a session that a running Java gets is ignored without a word.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from pii_tracer.config.estate_file import Estate
from pii_tracer.model.errors import RunError

_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Where Spark's Java answers, in the environment of a program that spark-submit starts (pyspark/java_gateway.py)."""


def is_submitted() -> bool:
    """Whether spark-submit started this process."""
    return _GATEWAY in os.environ


def as_submitted(estate: Estate) -> Estate:
    """The estate with the master that spark-submit was given, which comes before the estate file's.

    An estate that names a Connect server keeps it: nothing then runs on the Spark of spark-submit.
    """
    if not is_submitted() or estate.spark.remote is not None:
        return estate
    master = _java().org.apache.spark.SparkConf().get("spark.master", estate.spark.master)
    return estate.model_copy(update={"spark": estate.spark.model_copy(update={"master": str(master)})})


def refuse_without_jars(classes: Iterable[str], packages: Sequence[str], excluded: Sequence[str]) -> None:
    """Classes of extensions and file systems that a session needs, and the Maven coordinates that bring them.

    excluded: what these ask for and nobody needs.

    Raises:
        RunError: spark-submit did not bring one of them.
    """
    missing = [name for name in classes if not _is_there(name)] if is_submitted() else []
    if missing:
        without = f" --exclude-packages {','.join(excluded)}" if excluded else ""
        raise RunError(
            f"spark-submit was started without the jar of {', '.join(missing)}",
            where="spark-submit",
            todo=(
                f"start spark-submit with `--packages {','.join(packages)}{without}`, or put these jars on the class "
                "path"
            ),
        )


def _is_there(name: str) -> bool:
    java = _java()
    try:
        java.org.apache.spark.util.Utils.classForName(name, False, False)
    except Exception:  # py4j's, around Java's ClassNotFoundException
        return False
    return True


def _java() -> Any:
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    return SparkContext._jvm
