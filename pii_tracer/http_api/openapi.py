"""The OpenAPI document of the interface, made from the models and the table of routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from pii_tracer import __version__
from pii_tracer.http_api.models import Problem

_REFS = "#/components/schemas/{model}"


@dataclass(frozen=True)
class Parameter:
    """place: `path`, `query` or `header`."""

    name: str
    place: str
    text: str
    needed: bool = False


@dataclass(frozen=True)
class Operation:
    """One route as the document tells it. takes: the body; answers: by status; refuses: statuses of problems."""

    method: str
    path: str
    text: str
    takes: type[BaseModel] | None
    answers: dict[int, type[BaseModel]]
    refuses: tuple[int, ...]
    parameters: tuple[Parameter, ...] = ()


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document."""
    bodies = [(o.takes, "validation") for o in operations if o.takes]
    answers = [(model, "serialization") for o in operations for model in (*o.answers.values(), Problem)]
    _, schemas = models_json_schema([*bodies, *answers], ref_template=_REFS)  # type: ignore[list-item]
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        problems: dict[int, type[BaseModel]] = dict.fromkeys(one.refuses, Problem)
        told: dict[str, Any] = {
            "summary": one.text,
            "parameters": [
                {
                    "name": p.name,
                    "in": p.place,
                    "required": p.needed,
                    "description": p.text,
                    "schema": {"type": "string"},
                }
                for p in one.parameters
            ],
            "responses": {
                str(status): _content(HTTPStatus(status).phrase, model)
                for status, model in {**one.answers, **problems}.items()
            },
        }
        if one.takes:
            told["requestBody"] = {"required": True, **_content("", one.takes)}
        paths.setdefault(one.path, {})[one.method.lower()] = told
    return {
        "openapi": "3.1.0",
        "info": {"title": "pii-tracer requests", "version": __version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _content(text: str, model: type[BaseModel]) -> dict[str, Any]:
    told = {"content": {"application/json": {"schema": {"$ref": _REFS.format(model=model.__name__)}}}}
    return {"description": text, **told} if text else told
