"""A schema registry's HTTP interface
(https://docs.confluent.io/platform/current/schema-registry/develop/api.html), as far as records are read by it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

from fastavro import parse_schema

from pii_tracer.common.http import NoAnswer, ask, basic
from pii_tracer.lake.streams.kafka.protobuf_messages import Schema
from pii_tracer.lake.streams.kafka.protobuf_schemas import SchemaError, imports_of, schema_of_files
from pii_tracer.lake.streams.kafka.records import Undecodable
from pii_tracer.model.errors import EstateError

AUTH = "PII_TRACER_REGISTRY_AUTH"
_TIMEOUT = 15.0
_LARGEST = 4 * 1024**2
_ACCEPT = {"Accept": "application/vnd.schemaregistry.v1+json"}
_SERIALIZED = "format=serialized"

T = TypeVar("T")
_Source = tuple[str, int]
"""A subject and its version."""


class SchemaRegistry:
    """Asks one registry. Every method raises `Undecodable` for what it does not know or have in a form that is read
    here, and `EstateError` when it refuses or cannot be reached."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def avro(self, schema_id: int) -> Any:
        """The parsed Avro schema of an id."""
        return self._asked(f"schemas/ids/{schema_id}", _avro)

    def protobuf(self, schema_id: int) -> Schema:
        """The Protobuf schema of an id, with all that it refers to."""
        main = f"schema {schema_id}"
        found = self._asked(f"schemas/ids/{schema_id}?{_SERIALIZED}", _protobuf)
        files, came_from = {main: found[0]}, dict[str, _Source]()
        todo = [found]
        try:
            while todo:
                data, references = todo.pop()
                if any(came_from.setdefault(name, source) != source for name, source in references):
                    raise Undecodable("a registered schema refers to two versions of a file")
                for name in imports_of(data) & came_from.keys() - files.keys():
                    todo.append(self._asked(_version(*came_from[name]), _protobuf))
                    files[name] = todo[-1][0]
            return schema_of_files(files, main)
        except SchemaError:
            raise Undecodable(
                "a registered schema lacks imports: under `schema_ids`, name a descriptor set that contains them"
            ) from None

    def _asked(self, path: str, read: Callable[[Any], T]) -> T:
        where = f"{self._url}/{path}"
        try:
            headers = _ACCEPT | basic(os.environ.get(AUTH))
            return read(json.loads(ask(where, headers=headers, seconds=_TIMEOUT, limit=_LARGEST)))
        except Undecodable:
            raise
        except NoAnswer as error:
            if error.status == 404:
                raise Undecodable("the registry does not know a schema id") from None
            todo = f"set {AUTH}" if error.status in (401, 403) else "check the network, and the server's log"
            raise EstateError(f"the schema registry {error}", where=where, todo=todo) from None
        except Exception as error:  # JSON's, and fastavro's of many kinds
            raise EstateError(
                f"the schema registry cannot be read: {type(error).__name__}",
                where=where,
                todo="make the registry answer as its API says; its log has the reason",
            ) from None


def _avro(found: Any) -> Any:
    if found.get("references") or found.get("schemaType", "AVRO") != "AVRO":
        raise Undecodable("a registered schema is not Avro, or refers to others")
    return parse_schema(json.loads(found["schema"]))


def _protobuf(found: Any) -> tuple[bytes, list[tuple[str, _Source]]]:
    """A serialized `FileDescriptorProto`, and the files that it refers to with where they are registered."""
    if found.get("schemaType", "AVRO") != "PROTOBUF":
        raise Undecodable("a registered schema is not Protobuf")
    references = [(one["name"], (one["subject"], int(one["version"]))) for one in found.get("references") or ()]
    try:
        return base64.b64decode(found["schema"], validate=True), references
    except ValueError:  # the source text: a registry that does not know the format
        raise Undecodable(
            "the registry gives no descriptors for Protobuf: name a descriptor set under `schema_ids`"
        ) from None


def _version(subject: str, version: int) -> str:
    return f"subjects/{quote(subject, safe='')}/versions/{version}?{_SERIALIZED}&deleted=true"
