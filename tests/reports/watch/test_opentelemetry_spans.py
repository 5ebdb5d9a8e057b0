"""Spans as a real receiver gets them over HTTP; one that refuses, hangs or is away costs the work nothing."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.proto.trace.v1.trace_pb2 import Status as SpanStatus

from reports.watch import opentelemetry_spans
from reports.watch.command_watch import CommandWatch, wants_traces
from reports.watch.opentelemetry_spans import trace_of
from tests.otelsupport import Collector, attributes, served


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    yield from served(made)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("OTEL_")]:
        monkeypatch.delenv(name)


def work(command: str = "apply", run: str | None = "plan-1", code: int = 0) -> None:
    whole = CommandWatch()
    with whole.show(command) as watch:
        if run:
            watch.about({"plan_id": run, "run_id": run})
        watch.stage("apply: 2 steps")
        watch.step("1/2 delete rows · lake.t", "", {"step_id": "c1/1", "action": "iceberg_delete_rows"})
        watch.over({"rows_deleted": 5})
        watch.step("2/2 verify copy · lake.t", "", {"step_id": "c1/2"})
        watch.stop("failed: not there", {"state": "failed", "residue": 1})
    whole.end(code)


def by_name(spans: list[Span]) -> dict[str, Span]:
    return {span.name: span for span in spans}


def test_a_receiver_gets_the_command_its_stages_and_steps(
    collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    work(code=7)
    spans = by_name(collector.spans())
    root, stage = spans["pii-tracer apply"], spans["apply: 2 steps"]
    delete, look = spans["iceberg_delete_rows"], spans["2/2 verify copy · lake.t"]
    assert (root.parent_span_id, stage.parent_span_id, delete.parent_span_id) == (b"", root.span_id, stage.span_id)
    assert {s.trace_id for s in spans.values()} == {trace_of("plan-1").to_bytes(16, "big")}
    assert attributes(delete) == {
        "plan_id": "plan-1", "run_id": "plan-1", "step_id": "c1/1", "action": "iceberg_delete_rows",
        "rows_deleted": 5, "state": "done",
    }  # fmt: skip
    assert attributes(root) == {"command": "apply", "plan_id": "plan-1", "run_id": "plan-1", "exit_code": 7}
    assert (look.status.code, look.status.message) == (SpanStatus.STATUS_CODE_ERROR, "failed: not there")
    assert attributes(look)["residue"] == 1
    assert root.start_time_unix_nano <= stage.start_time_unix_nano <= delete.start_time_unix_nano
    assert delete.end_time_unix_nano <= look.start_time_unix_nano <= look.end_time_unix_nano
    assert look.end_time_unix_nano <= stage.end_time_unix_nano <= root.end_time_unix_nano
    resource = {a.key: a.value.string_value for a in collector.got[0].resource_spans[0].resource.attributes}
    assert resource["service.name"] == "pii-tracer"
    assert set(collector.asked) == {"/v1/traces"}
    assert "traces" not in capsys.readouterr().err


def test_a_resumed_run_adds_to_the_trace_of_the_run(collector: Collector) -> None:
    work()
    work("resume")
    work("plan", run=None)
    traces = {s.name: s.trace_id for s in collector.spans() if s.name.startswith("pii-tracer")}
    assert traces["pii-tracer apply"] == traces["pii-tracer resume"] != traces["pii-tracer plan"]


def test_the_name_of_the_service_is_the_users(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "erasure")
    work()
    resource = {a.key: a.value.string_value for a in collector.got[0].resource_spans[0].resource.attributes}
    assert resource["service.name"] == "erasure"


@pytest.mark.parametrize("status", [400, 403])
def test_a_receiver_that_refuses_is_one_warning(
    collector: Collector, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    collector.status = status
    work()
    told = capfd.readouterr().err
    assert told.count("traces are no longer sent") == 1
    assert len([line for line in told.splitlines() if line.lstrip().startswith("!")]) == 2, "and the step that failed"


def test_one_that_hangs_is_waited_for_only_so_long(
    collector: Collector, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opentelemetry_spans, "PATIENCE", 0.3)
    collector.answers.clear()
    begun = time.monotonic()
    work()
    assert time.monotonic() - begun < 3
    assert "traces are no longer sent: the collector takes longer" in capfd.readouterr().err


def test_one_that_is_away_is_one_warning(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
        monkeypatch.setattr(opentelemetry_spans, "PATIENCE", 0.3)
        work()
    assert capfd.readouterr().err.count("traces are no longer sent") == 1


def test_a_receiver_sends_the_spans_nowhere_else(collector: Collector, capfd: pytest.CaptureFixture[str]) -> None:
    for other in served(Collector()):
        collector.status, collector.location = 307, f"{other.url}/v1/traces"
        work()
        assert other.asked == []
    assert collector.asked
    assert "traces are no longer sent" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": ""}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_only_a_named_receiver_gets_spans(settings: dict[str, str], sent: bool) -> None:
    assert wants_traces(settings) is sent


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "the protocol is `grpc`"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "100000", "OpenTelemetry rejects its settings"),
    ],
)
def test_wrong_settings_stop_nothing(
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    name: str,
    value: str,
    told: str,
) -> None:
    monkeypatch.setenv(name, value)
    work()
    assert told in capfd.readouterr().err
    assert collector.asked == []


def test_without_the_extra_the_command_says_what_to_install(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "reports.watch.opentelemetry_spans", None)
    work()
    assert "install `pii-tracer[telemetry]`" in capfd.readouterr().err
    assert collector.asked == []


def test_an_installation_that_is_broken_is_one_warning(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Versions that do not fit together raise what they like, when they are imported."""
    import sys

    class Broken:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "reports.watch.opentelemetry_spans":
                raise TypeError("Descriptors cannot be created directly")

    monkeypatch.delitem(sys.modules, "reports.watch.opentelemetry_spans")
    monkeypatch.setattr(sys, "meta_path", [Broken, *sys.meta_path])
    work()
    assert capfd.readouterr().err.count("install `pii-tracer[telemetry]`") == 1
    assert collector.asked == []


def test_nothing_of_it_is_loaded_without_a_receiver(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom reports.watch.command_watch import CommandWatch\nCommandWatch().show('apply')\n"
        "assert not {'opentelemetry', 'requests'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
