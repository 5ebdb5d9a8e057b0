"""Column lineage of SQL texts, without an estate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TextIO

from pii_tracer.model.errors import LineageError


def parse_file(file: Path, out: TextIO, dialect: str, schema_file: Path | None = None) -> None:
    """Write column lineage as JSON lines: of the statements of a .sql file, or of the requests of any other.

    Raises:
        LineageError: a file cannot be read.
    """
    from pii_tracer.lineage.sql.parse_lines import parse_lines

    text = _text(file)
    if file.suffix.lower() == ".sql":
        schemas = _schemas(schema_file) if schema_file else {}
        text = json.dumps({"id": file.name, "sql": text, "dialect": dialect, "schemas": schemas})
    parse_lines(text.splitlines(), out)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LineageError(
            f"the file cannot be read: {error}", where=str(file), todo="check the path and its encoding"
        ) from None


def _schemas(file: Path) -> dict[str, list[str]]:
    try:
        data = json.loads(_text(file))
        return {str(table): [str(column) for column in columns] for table, columns in data.items()}
    except (ValueError, AttributeError, TypeError):
        raise LineageError(
            "the schema file is not a JSON object of lists", where=str(file), todo='write {"table": ["column", …]}'
        ) from None
