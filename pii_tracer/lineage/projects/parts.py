"""What a repository defines: tables, views and scripts, each with its file, as texts from which lineage is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lineage.projects.jinja_subset import Text


class PartKind(StrEnum):
    """What a part is. SCRIPT: a file of SQL statements. VIEW: nothing of its own is stored."""

    TABLE = "table"
    INCREMENTAL = "incremental"
    SNAPSHOT = "snapshot"
    VIEW = "view"
    SEED = "seed"
    SCRIPT = "script"


@dataclass(frozen=True)
class RepositoryFile:
    """A file of one side. text: None where it cannot be read, and then `unread` says why. digest: of its bytes."""

    path: str
    digest: str
    text: str | None = None
    unread: str | None = None


@dataclass(frozen=True)
class Part:
    """One table or view of a dbt project, or one script.

    name: as SQL calls it; the path of a script. texts: all that it can become. unread: why there is none, with its
    line; broken: it is the file's fault. fingerprint: everything it is made from, so that equal ones are unchanged.
    reads: of dbt, what it refers to. appended: rows are only ever added. settings: its table properties. columns:
    declared ones. doubt: why its texts are not all that it does.
    """

    name: str
    file: str
    kind: PartKind
    fingerprint: str
    texts: tuple[Text, ...] = ()
    unread: str | None = None
    unread_line: int = 1
    broken: bool = False
    reads: tuple[str, ...] = ()
    appended: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    doubt: str | None = None


@dataclass(frozen=True)
class Parts:
    """One side of a repository. schemas: declared columns (name, type) of sources. tagged: columns whose `meta` or tags
    say `pii`, by table. problems: files that are not read, with the reason and the line."""

    parts: tuple[Part, ...]
    schemas: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    tagged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problems: tuple[tuple[str, int, str], ...] = ()


_CONFLICT = re.compile(r"^(<<<<<<<|>>>>>>>)( |$)|^=======$", re.MULTILINE)
_BLANKS = re.compile(
    r"""('(?:[^'\\]|\\.?|'')*(?:'|\Z)|"[^"]*(?:"|\Z)|`[^`]*(?:`|\Z))|(?:--[^\n]*|/\*(?!\+).*?(?:\*/|\Z)|\s+)+""",
    re.DOTALL,
)
"""What is quoted, and what says nothing. What nobody closes goes to the end, so that no text takes long."""


def conflict_line(text: str) -> int | None:
    """The line of a merge conflict's first marker, from 1."""
    marks = list(islice(_CONFLICT.finditer(text), 2))
    return text.count("\n", 0, marks[0].start()) + 1 if len(marks) > 1 else None


def essence(sql: str) -> str:
    """A text without comments, and with one blank for each white space outside of quotes. Hints stay."""
    return _BLANKS.sub(lambda m: m[1] or " ", sql).strip()
