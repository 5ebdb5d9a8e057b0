"""An engine that is killed shuts its connections first, and is gone a moment later: whoever asks then is told so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from executors.engine.retries import engine_error, on_conflict
from executors.engine.spark_session import open_session
from pii_tracer.model.errors import RunError
from tests.sparksession import SparkEstate

LOST = [
    ConnectionRefusedError(111, "Connection refused"),
    Py4JNetworkError("Answer from Java side is empty"),
    Py4JError("An error occurred while calling o12.sql"),  # what Py4J makes of a connection that broke meanwhile
]
SECONDS = 1.5


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In place of Java, a process that answers nothing more and will end."""
    process = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({SECONDS})"])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    yield
    process.wait()


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
@pytest.mark.usefixtures("dying")
def test_a_step_that_asks_while_the_engine_dies(error: Exception) -> None:
    def act() -> None:
        raise error

    with pytest.raises(RunError, match="the Java process of Spark ended during the work"):
        on_conflict(act)


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
@pytest.mark.usefixtures("dying")
def test_a_session_that_is_asked_for_while_the_engine_dies(
    error: Exception, spark_estate: SparkEstate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> None:
        raise error

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuse)
    with pytest.raises(RunError, match="the Java process of Spark ended during the work"):
        open_session(spark_estate.estate, spark_estate.base)


@pytest.mark.usefixtures("dying")
def test_an_engine_that_answers_with_an_error_is_not_waited_for() -> None:
    assert "the engine failed: ValueError" in str(engine_error(ValueError("no such column")))
