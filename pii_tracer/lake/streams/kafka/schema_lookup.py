"""Schemas of a cluster's records, Avro and Protobuf: from files beside the estate file, else from its registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fastavro import parse_schema

from pii_tracer.config.kafka import KafkaCluster, RecordPart
from pii_tracer.lake.streams.kafka.protobuf_messages import Schema
from pii_tracer.lake.streams.kafka.protobuf_schemas import SchemaError, schema_of_set
from pii_tracer.lake.streams.kafka.records import Undecodable
from pii_tracer.lake.streams.kafka.schema_registry import SchemaRegistry
from pii_tracer.model.errors import EstateError

T = TypeVar("T")


class ClusterSchemas:
    """Parsed schemas, each asked for once, also where there is none. A schema under an id never changes."""

    def __init__(self, cluster: KafkaCluster, base: Path) -> None:
        self._base = base
        self._registry = SchemaRegistry(cluster.registry_url) if cluster.registry_url else None
        self._none: dict[object, str] = {}
        self._avro: dict[object, Any] = {}
        self._protobuf: dict[object, Schema] = {}

    def avro(self, part: RecordPart, schema_id: int | None) -> Any:
        """The writer's schema.

        Raises:
            Undecodable: nobody knows the id.
            EstateError: a schema file or the registry cannot be read.
        """
        return self._one(self._avro, part, schema_id, self._avro_file, SchemaRegistry.avro)

    def protobuf(self, part: RecordPart, schema_id: int | None) -> Schema:
        """The writer's schema.

        Raises:
            Undecodable: as `avro`, or what is registered cannot be put together.
            EstateError: as `avro`, or the file has not what the estate file names.
        """
        return self._one(
            self._protobuf, part, schema_id, lambda file: self._protobuf_file(part, file), SchemaRegistry.protobuf
        )

    def _one(
        self,
        known: dict[object, T],
        part: RecordPart,
        schema_id: int | None,
        from_file: Callable[[Path], T],
        from_registry: Callable[[SchemaRegistry, int], T],
    ) -> T:
        name = part.schema_file if schema_id is None else part.schema_ids.get(schema_id)
        if name is not None:
            if (name, part.message) not in known:
                known[name, part.message] = from_file(self._base / name)
            return known[name, part.message]
        if schema_id is None or self._registry is None:
            raise Undecodable("the schema of a record is not known")
        if (from_registry, schema_id) in self._none:
            raise Undecodable(self._none[from_registry, schema_id])
        if schema_id not in known:
            try:
                known[schema_id] = from_registry(self._registry, schema_id)
            except Undecodable as error:
                self._none[from_registry, schema_id] = str(error)
                raise
        return known[schema_id]

    def _avro_file(self, path: Path) -> Any:
        try:
            return parse_schema(json.loads(path.read_text(encoding="utf-8-sig")))
        except Exception as error:  # fastavro has errors of many kinds for a wrong schema
            raise EstateError(
                f"the Avro schema cannot be read: {type(error).__name__}", where=str(path), todo="correct the file"
            ) from None

    def _protobuf_file(self, part: RecordPart, path: Path) -> Schema:
        try:
            schema = schema_of_set(path.read_bytes())
        except (OSError, SchemaError) as error:
            why = str(error) if isinstance(error, SchemaError) else type(error).__name__
            todo = "write it with `protoc --include_imports --descriptor_set_out`"
            raise EstateError(f"the Protobuf schema cannot be read: {why}", where=str(path), todo=todo) from None
        for wrong in _lacking(part, schema):
            raise EstateError(f"the Protobuf schema {wrong}", where=str(path), todo="correct the topic's declaration")
        return schema


def _lacking(part: RecordPart, schema: Schema) -> list[str]:
    """What the estate file says of a schema file and is not so. A wrong path would find nobody in any record."""
    if part.message is None:
        several = "has more than one file that no other file imports, so message indexes are ambiguous"
        return [] if schema.indexes else [several]
    if part.message not in schema.messages:
        return [f"has no message {part.message}"]
    paths = [*part.places(), *(tuple(path.split(".")) for path in part.other)]
    return [
        f"has no single value at {'.'.join(path)} of {part.message}"
        for path in paths
        if not schema.has(part.message, path)
    ]
