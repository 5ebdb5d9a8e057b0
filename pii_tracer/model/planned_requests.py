"""The requests of a plan. Many are packed by columns, so that the plan of a hundred thousand persons stays small.

The file tells in the open how many there are, by law, and their first and last dates. The rest is compressed.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Annotated, Any

import msgspec
from pydantic import BeforeValidator, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from pii_tracer.model.datasets import Frozen

LISTED = 1_000
"""So many requests are listed one by one."""
_MOST_OF_ONE = 2048
"""Bytes of a request; what unpacks to more is no plan's."""
_SEEN = (("received", "first_received", min), ("received", "last_received", max), ("deadline", "first_deadline", min))
_DATES = ("received", "deadline", "not_before", "extended")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
"""In UTC, so that dates sort as their texts do without the last letter."""

_Columns = dict[str, list[str | None]]


def packed(requests: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]] | dict[str, Any]:
    """Requests as a plan file has them: a list of a few, one object of many."""
    if len(requests) <= LISTED:
        return list(requests)
    columns = {name: [request[name] for request in requests] for name in requests[0]}
    for name in _DATES:
        columns[name] = [None if date is None else _in_utc(date) for date in columns[name]]
    data = zlib.compress(msgspec.json.encode(columns, order="sorted"), 9)
    return {**_summary(columns), "packed": base64.b64encode(data).decode()}


def _in_utc(date: str) -> str:
    there = datetime.fromisoformat(date.replace("Z", "+00:00")).astimezone(timezone.utc)
    return there.isoformat().replace("+00:00", "Z")


def _summary(columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    dates = {shown: choose(columns[name], key=lambda date: date[:-1]) for name, shown, choose in _SEEN}
    return {"count": len(columns["id"]), "laws": dict(sorted(Counter(columns["law"]).items())), **dates}


def unpacked(requests: object) -> object:
    """The list of the requests of a plan file. Anything else than packed ones is given back.

    Raises:
        ValueError: they cannot be unpacked, or are not what the file says in the open.
    """
    if not isinstance(requests, dict):
        return requests
    try:
        columns = _columns(requests["packed"], requests["count"])
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        said = _summary(columns)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, zlib.error, msgspec.DecodeError):
        raise ValueError("the packed requests cannot be read") from None
    shown = {name: value for name, value in requests.items() if name != "packed"}
    if said != shown or len(rows) <= LISTED:
        raise ValueError("the packed requests differ from their summary in the plan")
    return rows


def _columns(text: str, count: int) -> _Columns:
    """The columns, with every date as this module writes it. count: the number of requests that the file names."""
    if type(count) is not int:
        raise TypeError("the number of requests is not an integer")
    stream = zlib.decompressobj()
    content = stream.decompress(base64.b64decode(text, validate=True), max(1, count) * _MOST_OF_ONE)
    if not stream.eof or stream.unused_data:
        raise ValueError("not one whole stream")
    columns = msgspec.json.decode(content, type=_Columns)
    dates = (date for name in _DATES for date in columns.get(name, ()) if date is not None)
    if not all(map(_DATE.fullmatch, dates)):
        raise ValueError("a date in another form")
    return columns


def schema(listed: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of both ways, from that of the list."""
    date = {"type": "string", "format": "date-time"}
    return {
        "anyOf": [
            listed,
            {
                "type": "object",
                "description": f"More than {LISTED} requests: `packed` is base64 of zlib of a JSON object of columns.",
                "properties": {
                    "count": {"type": "integer", "exclusiveMinimum": LISTED},
                    "laws": {"type": "object", "additionalProperties": {"type": "integer"}},
                    **{shown: date for _, shown, _ in _SEEN},
                    "packed": {"type": "string"},
                },
                "required": ["count", "laws", *(shown for _, shown, _ in _SEEN), "packed"],
                "additionalProperties": False,
            },
        ],
    }


class PlannedRequest(Frozen):
    """One erasure request in the plan: keyed reference only.

    not_before: when the notice that its law wants has run, and the erasure may begin; None where none is wanted.
    extended: when the person was informed that the law's longer time is taken; the deadline is then that of it.
    """

    id: str
    subject: str
    law: str
    citation: str
    received: datetime
    deadline: datetime
    not_before: datetime | None = None
    extended: datetime | None = None


class _EitherWay:
    """Tells the schema of both ways in which a plan file has requests."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return schema(handler(core))


Requests = Annotated[tuple[PlannedRequest, ...], BeforeValidator(unpacked), _EitherWay]
"""In a plan file a list, or packed where there are many."""
