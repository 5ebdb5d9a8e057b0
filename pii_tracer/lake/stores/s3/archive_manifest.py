"""An archive's own manifest: which tables each of its objects holds, on the word of whoever wrote it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pii_tracer.model.errors import EstateError


def of_others(base: Path, manifest: str | None, of: str) -> Mapping[str, frozenset[str]]:
    """Names (archive ids of a vault, keys of a bucket) that hold other tables only, with these tables in lower case;
    what is not named can hold anybody.

    manifest: path from the estate file's folder to a JSON object of name -> list of tables; None: there is none.
    of: the table that the archive is of, compared in any case; a name that may be its own is no other table's.

    Raises:
        EstateError: the file is missing, or something else.
    """
    if manifest is None:
        return {}
    try:
        told = json.loads((base / manifest).read_bytes())
        tables = {str(name): frozenset(str(table).lower() for table in _listed(there)) for name, there in told.items()}
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        raise EstateError(
            "the manifest is not a JSON object of name -> list of tables, so the archive may contain every table",
            where=manifest,
            todo="correct the manifest, or remove it from the estate file",
        ) from None
    return {
        name: there
        for name, there in tables.items()
        if there and not any(_may_be(of.lower(), table) for table in there)
    }


def _may_be(of: str, table: str) -> bool:
    """Whether two names may mean one table: with or without catalog and namespace, or one of them as a folder."""
    if ("/" in of) is not ("/" in table):
        return True
    short, long = sorted((of.rstrip("/"), table.rstrip("/")), key=len)
    return long == short or long.endswith((f".{short}", f"/{short}"))


def _listed(there: object) -> list[object]:
    """A list as it is: the letters of a text are no tables."""
    if not isinstance(there, list):
        raise TypeError
    return there
