"""Avro schemas of a cluster: from files beside the estate file, else from its schema registry."""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from fastavro import parse_schema

from pii_tracer.config import KafkaCluster, RecordPart
from pii_tracer.errors import EstateError
from pii_tracer.records import Undecodable

AUTH = "PII_TRACER_REGISTRY_AUTH"
_TIMEOUT = 15.0
_LARGEST = 4 * 1024**2


class ClusterSchemas:
    """Parsed schemas, each fetched once. A schema under an id never changes."""

    def __init__(self, cluster: KafkaCluster, base: Path) -> None:
        self._cluster = cluster
        self._base = base
        self._known: dict[int | str, Any] = {}

    def schema(self, part: RecordPart, schema_id: int | None) -> Any:
        """The writer's schema.

        Raises:
            Undecodable: nobody knows the id.
            EstateError: a schema file or the registry cannot be read.
        """
        name = part.schema_file if schema_id is None else part.schema_ids.get(schema_id)
        if name is not None:
            if name not in self._known:
                self._known[name] = self._file(name)
            return self._known[name]
        if schema_id is None or self._cluster.registry_url is None:
            raise Undecodable("the schema of a record is not known")
        if schema_id not in self._known:
            self._known[schema_id] = self._registered(schema_id)
        return self._known[schema_id]

    def _file(self, name: str) -> Any:
        path = self._base / name
        try:
            return parse_schema(json.loads(path.read_text(encoding="utf-8")))
        except Exception as error:  # fastavro has errors of many kinds for a wrong schema
            raise EstateError(
                f"the Avro schema cannot be read: {type(error).__name__}", where=str(path), todo="mend the file"
            ) from None

    def _registered(self, schema_id: int) -> Any:
        where = f"{(self._cluster.registry_url or '').rstrip('/')}/schemas/ids/{schema_id}"
        request = urllib.request.Request(where, headers=_headers())  # noqa: S310 (the estate file allows http(s) only)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
                found = json.loads(answer.read(_LARGEST))
            if found.get("references") or found.get("schemaType", "AVRO") != "AVRO":
                raise Undecodable("a registered schema is not Avro, or refers to others")
            return parse_schema(json.loads(found["schema"]))
        except Undecodable:
            raise
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise Undecodable("the registry does not know a schema id") from None
            todo = f"set {AUTH}" if error.code in (401, 403) else "see the registry's log"
            raise EstateError(f"the schema registry refused: HTTP {error.code}", where=where, todo=todo) from None
        except Exception as error:  # network and JSON errors, and fastavro's of many kinds
            raise EstateError(
                f"the schema registry cannot be read: {type(error).__name__}", where=where, todo="make it reachable"
            ) from None


def _headers() -> dict[str, str]:
    accept = {"Accept": "application/vnd.schemaregistry.v1+json"}
    user = os.environ.get(AUTH)
    return accept | ({"Authorization": "Basic " + base64.b64encode(user.encode()).decode()} if user else {})
