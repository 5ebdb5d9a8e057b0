"""The graph in one file: versioned, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from pii_tracer.errors import LineageError
from pii_tracer.files import write_atomic
from pii_tracer.lineage.facts import Facts
from pii_tracer.lineage.graph import LineageGraph

FORMAT_VERSION = 1


def save(graph: LineageGraph, file: Path) -> None:
    """Write the graph; an equal graph gives an equal file."""
    text = json.dumps(
        {"format_version": FORMAT_VERSION, "digest": graph.digest(), "facts": graph.facts.model_dump(mode="json")},
        ensure_ascii=False,
        sort_keys=True,
    )
    write_atomic(file, (text + "\n").encode())


def load(file: Path) -> LineageGraph:
    """Read a graph.

    Raises:
        LineageError: no such file, broken, changed since, or of a version this program does not know.
    """
    again = "harvest again"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LineageError("there is no lineage graph yet", where=str(file), todo="run `pii-tracer harvest`") from None
    except (OSError, ValueError, RecursionError):
        raise LineageError("the lineage graph cannot be read", where=str(file), todo=again) from None
    version = content.get("format_version") if isinstance(content, dict) else None
    if not isinstance(version, int):
        raise LineageError("the file is not a lineage graph", where=str(file), todo=again)
    if version > FORMAT_VERSION:
        raise LineageError(
            f"the lineage graph has format {version}, this program knows up to {FORMAT_VERSION}",
            where=str(file),
            todo="use the newer pii-tracer, or harvest again",
        )
    try:
        graph = LineageGraph(Facts.model_validate(content.get("facts")))
    except ValidationError:
        raise LineageError("the lineage graph is broken", where=str(file), todo=again) from None
    if graph.digest() != content.get("digest"):
        raise LineageError("the lineage graph was changed after it was written", where=str(file), todo=again)
    return graph
