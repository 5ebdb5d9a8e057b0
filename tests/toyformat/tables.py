"""Toy tables on disk: written, read, and written again as a new version beside the old ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = ".toy"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Toy:
    """A table: its version of now, and the names and types of its columns."""

    folder: Path
    version: int
    columns: Mapping[str, str]

    @property
    def file(self) -> Path:
        """The file of the current rows."""
        return self.folder / f"rows-{self.version}.jsonl"

    @property
    def old_files(self) -> tuple[Path, ...]:
        """Files of former versions that are still there, sorted."""
        return tuple(sorted(path for path in self.folder.glob("rows-*.jsonl") if path != self.file))

    def rows(self) -> list[dict[str, Any]]:
        """The current rows."""
        return [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]


def open_toy(folder: Path) -> Toy:
    """The table in a folder. Raises OSError, ValueError, KeyError: its metadata cannot be read."""
    told = json.loads((folder / FOLDER / "table.json").read_text(encoding="utf-8"))
    return Toy(folder, told["version"], told["columns"])


def write_toy(folder: Path, rows: Iterable[Row], columns: Mapping[str, str]) -> Toy:
    """Write rows as a table's next version, its first one where there is none; older files stay."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    there = (folder / FOLDER / "table.json").exists()
    table = Toy(folder, open_toy(folder).version + 1 if there else 0, columns)
    table.file.write_text("".join(json.dumps(dict(row)) + "\n" for row in rows), encoding="utf-8")
    told = {"version": table.version, "columns": dict(columns)}
    (folder / FOLDER / "table.json").write_text(json.dumps(told), encoding="utf-8")
    return table
