"""Discovery of topics on a real broker; what is missing, down or misnamed is a gap or an error, never silence."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest
from pydantic import ValidationError

from pii_tracer.lake.streams.kafka.topic_reading import client_settings, read_topic, result
from pii_tracer.lake.streams.kafka.topics import discover_topics
from pii_tracer.model.errors import EstateError
from tests.kafkasupport import USERS, Broker, broker, estate
from tests.servers import free_ports

__all__ = ["broker"]


def test_settings_partitions_and_offsets_are_seen(broker: Broker) -> None:
    name = broker.topic("seen", 2, cleanup_policy="compact", min_cleanable_dirty_ratio="0.3")
    broker.send(name, ("1", "a"), ("2", "b"), partition=1)
    (state,), gaps = discover_topics(estate(broker, name, USERS), Path())
    assert gaps == ()
    assert state.dataset.namespace == f"kafka://{broker.bootstrap}"
    assert state.dataset.name == name
    assert state.offsets == ((0, 0), (0, 2))
    assert state.compacted
    assert state.replicas == 1
    assert state.overrides == {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3"}
    assert state.settings["delete.retention.ms"] == "86400000"
    assert state.settings["log.segment.delete.delay.ms"] == "1000"


def test_a_fingerprint_changes_with_settings_and_identity_not_with_records(broker: Broker) -> None:
    name = broker.topic("print", cleanup_policy="compact")
    declared = estate(broker, name, USERS)
    first = discover_topics(declared, Path())[0][0].fingerprint()
    broker.send(name, ("1", "a"))
    assert discover_topics(declared, Path())[0][0].fingerprint() == first
    other = broker.topic("print", cleanup_policy="compact", segment_ms="1000")
    assert discover_topics(estate(broker, other, USERS), Path())[0][0].fingerprint() != first


def test_a_declared_topic_that_does_not_exist_is_a_gap(broker: Broker) -> None:
    topics, (gap,) = discover_topics(estate(broker, "nowhere", USERS), Path())
    assert topics == ()
    assert (gap.kind, gap.dataset.name if gap.dataset else "") == ("missing_topic", "nowhere")


def test_a_broker_that_is_down_is_a_gap_for_each_topic(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pii_tracer.lake.streams.kafka.topics.TIMEOUT", 1.0)
    (port,) = free_ports(1)
    down = Broker(f"127.0.0.1:{port}", broker.data, broker.process)
    topics, (gap,) = discover_topics(estate(down, "users", USERS), Path())
    assert topics == ()
    assert gap.kind == "kafka_cluster"


def test_a_topic_is_read_whole_or_not_at_all(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    name = broker.topic("whole", 2)
    broker.send(name, *[(None, str(n)) for n in range(50)], partition=0)
    broker.send(name, (None, "last"), partition=1)
    settings = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    assert [r.value for r in read_topic(settings, name, [0, 1])] == [*(str(n).encode() for n in range(50)), b"last"]
    monkeypatch.setattr("pii_tracer.lake.streams.kafka.topic_reading.TIMEOUT", 1.0)
    with pytest.raises(EstateError):
        list(read_topic(settings, name, [0, 1, 2]))


def test_credentials_come_from_a_file_beside_the_estate_and_win_over_nothing(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "kafka.properties").write_text("# ours\nclient.id=eraser\nbootstrap.servers=elsewhere:1\n")
    (cluster,) = estate(broker, "users", USERS).kafka
    settings = client_settings(cluster.model_copy(update={"properties_file": "kafka.properties"}), tmp_path)
    assert settings["client.id"] == "eraser"
    assert settings["bootstrap.servers"] == broker.bootstrap


@pytest.mark.parametrize(
    ("text", "message"), [(None, "cannot be read"), ("nonsense\n", "not `name=value`"), ("no.such=1\n", "was refused")]
)
def test_a_wrong_properties_file_is_told_without_its_content(
    broker: Broker, tmp_path: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / "p").write_text(text)
    made = estate(broker, "users", USERS)
    (cluster,) = made.kafka
    wrong = made.model_copy(update={"kafka": (cluster.model_copy(update={"properties_file": "p"}),)})
    topics, (gap,) = discover_topics(wrong, tmp_path)
    assert topics == ()
    assert message in gap.evidence


@pytest.mark.parametrize(
    "declared",
    [
        {"value": {"format": "string", "fields": {"a": "uid"}}},
        {"value": {"format": "json", "column": "uid"}},
        {"value": {"format": "xml"}},
        {"value": {"format": "json"}, "producers": ["nobody"]},
    ],
)
def test_declarations_that_contradict_themselves_are_refused(broker: Broker, declared: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        estate(broker, "users", declared)


def test_an_answer_that_never_comes_ends_in_time() -> None:
    with pytest.raises(EstateError, match="no answer in time"):
        result(Future(), "the settings", timeout=0.05)
