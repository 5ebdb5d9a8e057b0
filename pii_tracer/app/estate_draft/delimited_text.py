"""CSV whose cells no comma separates: a first estate file declares it with the options of Spark's reader."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import ValidationError

from pii_tracer.app.estate_draft.table_samples import bare_of, named_folders
from pii_tracer.app.estate_draft.unfinished_estate import Declared
from pii_tracer.config.catalogs import DeclaredTable
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.plain_files.data_file import StoredFile, decompressed
from pii_tracer.lake.formats.plain_files.rows import folder_files
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import text_of
from planners.draft.text_guesses import TextGuess, guess_text

MOST_FILES = 20
"""Files of a folder that are looked at."""
MOST_BYTES = 64 * 1024
"""Of each file."""


def text_options(
    estate: Estate, found: Inventory, declared: Declared, paths: EstatePaths
) -> dict[str, Mapping[str, Any]]:
    """What the estate file says of declared folders of CSV beside format and place, by their names."""
    names = {name for name, kind, _ in declared if kind is Format.CSV}
    made = dict[str, Mapping[str, Any]]()
    for state, files in _folders(estate, found, names, paths):
        try:
            guess = guess_text([_head(file) for file in files])
        except (EstateError, StoreError, OSError, UnicodeDecodeError):
            continue
        if guess and (entry := _entry(guess, state)):
            made[str(state.table)] = entry
    return made


def _folders(
    estate: Estate, found: Inventory, names: set[str], paths: EstatePaths
) -> Iterator[tuple[TableState, Sequence[StoredFile]]]:
    for state in found.tables:
        if state.table in names and state.format is Format.CSV and text_of(state.properties) is None:
            try:
                yield state, folder_files(state, paths)[:MOST_FILES]
            except (EstateError, OSError):
                continue
    for name, place in named_folders(estate, found):
        if name in names:
            bare = bare_of(estate, place)
            if not isinstance(bare, str):
                yield bare.state.model_copy(update={"table": name}), tuple(islice(bare.files, MOST_FILES))


def _head(file: StoredFile) -> str:
    """The first lines of a file, all of them whole.

    Raises:
        UnicodeDecodeError: it is no UTF-8.
    """
    with decompressed(file) as stream:
        data = stream.read(MOST_BYTES)
    if len(data) == MOST_BYTES:
        data = data[: data.rfind(b"\n") + 1]
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="").read()


def _entry(guess: TextGuess, state: TableState) -> Mapping[str, Any] | None:
    """None where an estate file cannot have it."""
    entry = {
        "options": {
            "sep": "\\t" if guess.separator == "\t" else guess.separator,
            "header": guess.header,
            **({"multiLine": True} if guess.multi_line else {}),
        },
        "columns": [{"name": name} for name in guess.columns],
        **({"partitions": list(state.partition_columns)} if state.partition_columns else {}),
    }
    try:
        DeclaredTable.model_validate({"name": state.table, "format": "csv", "location": "x", **entry})
    except ValidationError:
        return None
    return entry
