"""After a crash a step of a table is done when the look at the table finds nothing: the same look as after the step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executors.formats.registry import executor_classes
from executors.formats.table_executor import TableExecutor
from pii_tracer.lake.formats.hudi.vocabulary import HUDI_REBUILD_METADATA
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Progress
from tests.executors.world import Steps, context
from tests.sparksession import SparkEstate, spark_estate

__all__ = ["spark_estate"]

TABLES = sorted(name for name, made in executor_classes().items() if issubclass(made, TableExecutor))


def finding(*findings: str) -> Callable[[Step, Copy | None], list[str]]:
    return lambda step, copy: list(findings)


@pytest.mark.parametrize("name", TABLES)
def test_a_step_is_done_when_its_look_finds_nothing(name: str, spark_estate: SparkEstate, tmp_path: Path) -> None:
    kind = next(one.name for one in table_formats() if one.name.value == name)
    steps = Steps(context(spark_estate), name, "lake.a.t", tmp_path, kind)
    executor: Any = executor_classes()[name](steps.ctx)
    executor._newest = lambda step: None
    for action, (act, _) in executor._actions().items():
        for findings, progress in (((), Progress.DONE), (("2 rows of the person are left",), Progress.PARTIAL)):
            executor._work = {action: (act, finding(*findings))}
            assert executor.verify(steps.step(action), steps.copy).ok is (not findings)
            # the metadata table of Hudi is built again whatever it looks like
            expected = Progress.PARTIAL if action is HUDI_REBUILD_METADATA else progress
            assert executor.probe(steps.step(action), steps.copy) is expected, action
