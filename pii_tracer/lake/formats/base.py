"""What the rest of the tool asks of a table format. An adapter answers it; nobody else knows the format.

A package registers an adapter in the entry-point group `pii_tracer.formats` under the format's name. Its steps, their
execution and its reader for the verifier stand in groups of their own: `pii_tracer.format_planners`,
`pii_tracer.format_executors` and `pii_tracer.format_verifiers` (docs/architecture.md, "Add a table format").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pii_tracer.model.actions import Action
from pii_tracer.model.identities import Format

if TYPE_CHECKING:
    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.lake.read_result import Found


class Role(Enum):
    """What an action does to a table, for rules that hold in every format."""

    ON_ROWS = auto()
    """Changes the rows of the current version: deletes, masks, or writes the table again."""
    COUNTS_ROWS = auto()
    """Counts the rows of persons that it took out."""
    REBUILDS = auto()
    """Writes the table again by its recorded query."""
    REWRITES_FILES = auto()
    """Writes data files or their lists again; a shallow clone must not read them any more."""
    LISTS_FILES_AGAIN = auto()
    """Writes the table's lists of files again, for every reference at once."""
    FORGETS_VERSIONS = auto()
    """Takes old versions out of the table's metadata."""
    REMOVES_FILES = auto()
    """Removes or replaces files that another table may read."""
    WAITS = auto()
    """Waits for something outside, and changes nothing."""


class TableFormat:
    """One format of tables in a lake: how to recognise and read it without Spark.

    name: as estate files and plans write it. title: as people write it.
    metadata_folders: names of the folders in a table's folder in which none of its data files lie.
    actions: what its steps do, each with its roles.
    """

    name: ClassVar[Format]
    title: ClassVar[str]
    metadata_folders: ClassVar[frozenset[str]] = frozenset()
    actions: ClassVar[Mapping[Action, frozenset[Role]]] = {}

    def is_table(self, folder: Path) -> bool:
        """Whether a folder is a table of this format, by what lies in it. One that cannot be listed raises OSError."""
        raise NotImplementedError

    def read_state(self, folder: Path, paths: EstatePaths) -> Found:
        """The table in a folder: schema, version, references, properties, and what could not be told.

        Raises:
            EstateError: its metadata cannot be read.
        """
        raise NotImplementedError

    # -- signs of a table in listings ----------------------------------------------------------------------------

    sign_folders: ClassVar[frozenset[str]] = frozenset()
    """Names of folders that lie in the folders of such tables and of no others."""
    sign_endings: ClassVar[tuple[str, ...]] = ()
    """How names of files end that lie in a metadata folder of such tables and nowhere else."""

    def owns_place(self, parts: tuple[str, ...]) -> bool:
        """Whether a place with the sign of a table belongs to the table around it. parts: its path below that table."""
        return parts[:1] != () and parts[0] in self.metadata_folders

    def listed_signs(self) -> tuple[str, ...]:
        """The signs as regular expressions of the end of a table's folder's path and of what follows it."""
        folders = tuple(f"{re.escape(name)}/" for name in sorted(self.sign_folders))
        ends = "|".join(map(re.escape, self.sign_endings))
        within = sorted(self.metadata_folders) if ends else ()
        return folders + tuple(f"{re.escape(name)}/[^/]*({ends})" for name in within)
