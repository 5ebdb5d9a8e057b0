"""The metadata file of a table that is known by its folder: numbered files, of which the newest counts.

A number is taken by making its file where there is none (https://iceberg.apache.org/spec/#file-system-tables).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from executors.engine.local_files import TEMPORARY, let_in
from pii_tracer.common.atomic_files import sync_folder, write_atomic
from pii_tracer.model.errors import EstateError, RunError

_NUMBERED = re.compile(r"v(\d+)\.metadata\.json")
_HINT = "version-hint.text"


@dataclass(frozen=True)
class FolderPointer:
    """newest: gives the newest metadata file of the table's folder, or raises `EstateError`."""

    newest: Callable[[], Path]

    def current(self) -> str:
        """As `MetadataPointer.current`."""
        try:
            newest = self.newest()
        except EstateError as error:
            raise RunError(error.what, where=error.where, todo=error.todo) from None
        if _NUMBERED.fullmatch(newest.name) is None:
            raise RunError(
                "the name of the newest metadata file is not like v1.metadata.json, as in tables without a catalog",
                where=str(newest),
                todo=(
                    "unset write.metadata.compression-codec, or declare the table's catalog in the estate file; then "
                    "plan again"
                ),
            )
        return str(newest)

    def successor(self, current: str, unique: UUID) -> str:
        """The next number; there is no other name for it."""
        path = Path(current)
        number = _NUMBERED.fullmatch(path.name)
        return str(path.with_name(f"v{int(number[1]) + 1 if number else 1}.metadata.json"))

    def swap(self, current: str, successor: str, data: bytes) -> bool:
        """As `MetadataPointer.swap`. A link is made where no file is, and its file is whole from the start."""
        path = Path(successor)
        if self.current() != current:
            return False
        whole = path.with_name(f"{TEMPORARY}{path.name}")
        try:
            write_atomic(whole, data, mode=0o600)
            let_in(Path(current), whole)
            # what a writer left of a file of this name: Hadoop would refuse the new one by it
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            os.link(whole, path)
        except FileExistsError:
            return False
        finally:
            whole.unlink(missing_ok=True)
        path.with_name(f".{_HINT}.crc").unlink(missing_ok=True)
        write_atomic(path.with_name(_HINT), path.name.removeprefix("v").partition(".")[0].encode())
        sync_folder(path.parent)
        return True
