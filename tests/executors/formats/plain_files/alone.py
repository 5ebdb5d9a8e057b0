"""A removal of rows without a plan: what of the execution context it needs, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from executors.formats.plain_files.arrow_match import NOTHING, Keys, KeySource
from executors.formats.plain_files.parquet_dictionaries import holds_nothing
from executors.formats.plain_files.row_removal import Kept, RowRemoval
from pii_tracer.model.datasets import Format, Match
from pii_tracer.model.plan import Copy


@dataclass(frozen=True)
class Alone:
    """others: columns of other systems' numbers. mail: another value of the person."""

    keyring: KeySource
    others: Mapping[str, frozenset[str]] = field(default_factory=dict)
    mail: str = "\0"

    def nobodys(self, copy: Copy | None) -> Mapping[str, frozenset[str]]:
        return self.others

    def holds(self, text: str) -> bool:
        return self.mail in text


def drop_rows(data: bytes, kind: Format, match: Match, keys: Keys, strong: frozenset[str], name: str = "") -> Kept:
    """What a removal makes of the bytes of one object, where no column is another system's."""
    return RowRemoval(kind, match, keys, strong, NOTHING, holds_nothing).kept(data, name)
