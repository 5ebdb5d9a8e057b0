"""CSV that is read by no more than its name only with care: cells are separated by other signs than commas, or the text
is no UTF-8. A first estate file declares it so.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pii_tracer.app.estate_draft.places_of_catalogs import written
from pii_tracer.app.estate_draft.provisional_estate import Declared
from pii_tracer.app.estate_draft.table_samples import MOST_SAMPLED, bare_of, named_folders
from pii_tracer.common.plurals import counted
from pii_tracer.config.catalogs import DeclaredTable, TextEncoding
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.plain_files.data_file import StoredFile, data_file, decompressed
from pii_tracer.lake.formats.plain_files.rows import folder_files
from pii_tracer.lake.inventory import ENCODING, Inventory, TableState
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import text_of
from planners.draft.csv_delimiter_guesses import TextGuess, guess_text, is_western
from planners.draft.subject_guesses import SampledTable

_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
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
            guess = guess_text([_head(file, state.properties.get(ENCODING) or "utf-8-sig") for file in files])
        except (EstateError, StoreError, OSError, UnicodeDecodeError):
            continue
        if guess and (entry := _entry(guess, state)):
            made[str(state.table)] = entry
    return made


def without_values(
    texts: Mapping[str, Mapping[str, Any]], sampled: Sequence[SampledTable]
) -> dict[str, Mapping[str, Any]]:
    """The options without those whose names of columns are values of a table: such a header is somebody's row."""
    named = {
        table: {column["name"].strip().casefold() for column in text.get("columns", ()) if text["options"]["header"]}
        for table, text in texts.items()
    }
    wanted, seen = frozenset[str]().union(*named.values()), set[str]()
    for table in sampled:
        for values in (*table.sample.values(), *table.listed.values()) if wanted else ():
            seen |= wanted.intersection(str(value).strip().casefold() for value in values)
    return {table: text for table, text in texts.items() if named[table].isdisjoint(seen)}


def windows_text(found: Inventory, base: Path, notes: list[str]) -> dict[str, TextEncoding]:
    """Folders of CSV on this machine that could not be read, as text of Windows is no UTF-8; by place. Of those that
    may be in this or in another encoding a note is made.
    """
    made, unsure = dict[str, TextEncoding](), set[Path]()
    for gap in found.gaps:
        path = Path(gap.evidence)
        if gap.kind is not GapKind.UNREADABLE or not path.is_absolute() or not path.is_file():
            continue
        file, folder = data_file(path), path.parent
        while "=" in folder.name:
            folder = folder.parent
        text = _text_of_windows(folder) if file and file.format is Format.CSV else None
        if text is not None and is_western(text):
            made[written(folder, base)] = TextEncoding.WINDOWS_1252
        elif text is not None:
            unsure.add(folder)
    if unsure:
        notes.append(
            f"{counted(len(unsure), 'folder')} of CSV that is not UTF-8, in an encoding that its letters do not show:"
            " declare it with its `encoding`. `pii-tracer inventory` says where"
        )
    return made


def _text_of_windows(folder: Path) -> str | None:
    """What is there, if no file is text in UTF-8, but for ASCII, and each can be text in Windows-1252."""
    files = [found for path in sorted(folder.rglob("*")) if path.is_file() and (found := data_file(path))]
    if any(file.format is not Format.CSV for file in files):
        return None
    texts, left = list[str](), MOST_SAMPLED
    try:
        for file in files:
            with decompressed(file) as stream:  # a small file may have much in it
                data = stream.read(left + 1)
            left -= len(data)
            if left < 0 or _NO_TEXT.search(data) or (_is_utf8(data) and not data.isascii()):
                return None
            texts.append(data.decode(TextEncoding.WINDOWS_1252.value))
    except (EstateError, OSError, UnicodeDecodeError):
        return None
    return "\n".join(texts)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


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


def _head(file: StoredFile, encoding: str) -> str:
    """The first lines of a file, all of them whole.

    Raises:
        UnicodeDecodeError: it is of another encoding.
    """
    with decompressed(file) as stream:
        data = stream.read(MOST_BYTES)
    if len(data) == MOST_BYTES:
        data = data[: data.rfind(b"\n") + 1]
    return io.TextIOWrapper(io.BytesIO(data), encoding=encoding, newline="").read()


def _entry(guess: TextGuess, state: TableState) -> Mapping[str, Any] | None:
    """None where an estate file cannot have it."""
    entry = {
        "options": {
            "sep": "\\t" if guess.separator == "\t" else guess.separator,
            "header": guess.header,
            **({"multiLine": True} if guess.multi_line else {}),
            **({"encoding": encoding} if (encoding := state.properties.get(ENCODING)) else {}),
        },
        "columns": [{"name": name} for name in guess.columns],
        **({"partitions": list(state.partition_columns)} if state.partition_columns else {}),
    }
    try:
        DeclaredTable.model_validate({"name": state.table, "format": "csv", "location": "x", **entry})
    except ValidationError:
        return None
    return entry
