"""Whether the folder of a table of text tells the values of its partition (`column=value`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote

from pii_tracer.model.hive_text.columns import UnreadText


def refuse_other_values(folder: str, keys: Sequence[str], values: Sequence[str]) -> None:
    """Raise `UnreadText` where it does not. folder: below the table's. keys: its partition columns, in lower case."""
    parts = [part.partition("=") for part in PurePosixPath(folder).parts]
    if [unquote(name).lower() for name, _, _ in parts] != list(keys) or [unquote(v) for _, _, v in parts] != list(
        values
    ):
        raise UnreadText("the name of a partition's folder does not have the form `column=value`")
