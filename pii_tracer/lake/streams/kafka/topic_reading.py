"""Clients for a cluster, and topics read from their beginning to their end. Every wait has an end."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer  # the builtin one only since Python 3.11
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from pii_tracer.config.kafka import KafkaCluster
from pii_tracer.lake.streams.kafka.records import Record
from pii_tracer.model.errors import EstateError

TIMEOUT = 15.0
"""Seconds that one request to a broker may take. A future without one would hang for ever."""

_SILENT = {"log_level": 0}  # errors come as exceptions; the library's own log goes to stderr between our lines
T = TypeVar("T")


def client_settings(cluster: KafkaCluster, base: Path) -> dict[str, Any]:
    """librdkafka settings of a cluster: its properties file (relative to `base`), then where it is.

    Raises:
        EstateError: the properties file cannot be read, or a line of it is not `name=value`.
    """
    settings: dict[str, Any] = {}
    if cluster.properties_file:
        path = base / cluster.properties_file
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError):
            raise EstateError(
                "the Kafka properties file cannot be read", where=str(path), todo="check the path and its permissions"
            ) from None
        for number, line in enumerate(lines, 1):
            name, separator, value = line.partition("=")
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            if not separator:
                raise EstateError(
                    "a line is not `name=value`", where=f"{path}, line {number}", todo="correct that line"
                )
            settings[name.strip()] = value.strip()
    return settings | {"bootstrap.servers": cluster.bootstrap, **_SILENT}


def admin_client(settings: dict[str, Any]) -> AdminClient:
    """An admin client. Raises `EstateError` when librdkafka refuses a setting."""
    try:
        return AdminClient(settings)
    except KafkaException as error:
        raise failed("a Kafka setting was refused", error, "correct the properties file") from None


def result(future: Future[T], what: str, timeout: float = TIMEOUT) -> T:
    """The answer of an admin call.

    Raises:
        EstateError: refused, or no answer in time.
    """
    try:
        return future.result(timeout)
    except KafkaException as error:
        raise failed(what, error) from None
    except NoAnswer:
        raise EstateError(f"{what}: no answer in time", todo="make the brokers reachable") from None


def failed(what: str, error: KafkaException, todo: str = "check the brokers, and the client's rights") -> EstateError:
    """A Kafka failure told by its code alone: the messages of brokers come from outside."""
    return EstateError(f"{what}: {code_of(error)}", todo=todo)


def code_of(error: KafkaException) -> str:
    """Name of the error's code, e.g. `TOPIC_AUTHORIZATION_FAILED`."""
    first = error.args[0] if error.args else None
    return first.name() if isinstance(first, KafkaError) else type(error).__name__


def read_topic(
    settings: dict[str, Any], topic: str, partitions: Sequence[int], *, committed: bool = False
) -> Generator[Record, None, None]:
    """All records of some partitions, from the first to the last one there is when reading begins.

    Records of open and aborted transactions come too (their bytes are there), unless `committed`. No group is joined
    and no offset committed.

    Raises:
        EstateError: the end was not reached, for whatever reason: a part of a topic is never taken for the whole.
    """
    isolation = "read_committed" if committed else "read_uncommitted"
    own = {
        "group.id": "pii-tracer-reader",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 100,  # the end of a partition is told by an empty fetch
        "auto.offset.reset": "error",
        "isolation.level": isolation,
    }
    try:
        consumer = Consumer(settings | own)
    except KafkaException as error:
        raise failed("a Kafka setting was refused", error, "correct the properties file") from None
    try:
        for partition in partitions:
            yield from _partition(consumer, topic, partition)
    except KafkaException as error:
        raise failed(f"the topic {topic} cannot be read", error) from None
    finally:
        consumer.close()


def _partition(consumer: Consumer, topic: str, partition: int) -> Iterator[Record]:
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT)
    if low == high:
        return
    consumer.assign([TopicPartition(topic, partition, low)])
    while True:
        message = consumer.poll(TIMEOUT)
        if message is None:
            raise EstateError(f"the topic {topic} stopped answering before its end", todo="check the brokers")
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            return
        if error is not None:
            raise KafkaException(error)
        if (message.offset() or 0) >= high:
            return
        yield _record(message)
        if (message.offset() or 0) == high - 1:
            return


def _record(message: Message) -> Record:
    _, timestamp = message.timestamp()
    headers = tuple((str(name), _bytes(value)) for name, value in _headers(message))
    return Record(message.partition() or 0, message.offset() or 0, timestamp, message.key(), message.value(), headers)


def _headers(message: Message) -> list[tuple[str, Any]]:
    found = message.headers() or []
    return list(found.items()) if isinstance(found, dict) else list(found)


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
