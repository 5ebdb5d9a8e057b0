"""What of the execution context a removal of rows needs, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from executors.formats.plain_files.arrow_match import KeySource
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
