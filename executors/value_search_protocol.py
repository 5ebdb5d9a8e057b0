"""What executors are given to look for persons' values in what they write: they have no search of their own, and share
none with who verifies. The command line hands it in (`pii_tracer.app.execution.executor_value_search`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pii_tracer.model.datasets import Format, KeySet, Match
from pii_tracer.model.errors import RunError
from pii_tracer.model.non_key_columns import NoKeys


@dataclass(frozen=True)
class Seen:
    """held: a value was found that stands for a person. unread: why something could not be searched."""

    held: bool
    unread: tuple[str, ...] = ()


class Finder(Protocol):
    """Looks for the values of some key sets, however they are written. Holds values: never printed, never stored.

    Short numbers can mean something else: they do not count in columns that are named by `others`.
    """

    def mask(self, text: str) -> str:
        """A text with a word in place of each value."""

    def in_text(self, text: str) -> bool:
        """Whether a text holds a value that cannot be mistaken."""

    def in_file(
        self, name: str, data: bytes, kind: Format, match: Match, others: Collection[str], no_keys: NoKeys
    ) -> Seen:
        """What a file holds. name: its ending tells what it is; match: how its rows of persons were found; no_keys: its
        columns of other systems' numbers.
        """

    def beside(self, answer: Mapping[str, Any], tags: Mapping[str, str], others: Collection[str]) -> Seen:
        """What stands beside an object's bytes. answer: of HeadObject or GetObject."""


Finds = Callable[[Iterable[KeySet]], Finder]


def finds_nothing(sets: Iterable[KeySet]) -> Finder:
    """In place of a search that nobody gave.

    Raises:
        RunError: always: what was not searched is not clean.
    """
    raise RunError("no value search is configured for this run", todo="start the run with `pii-tracer apply`")
