"""What the planner asks of a table format. A format's planner answers it; nobody else knows the format.

A package registers a planner in the entry-point group `pii_tracer.format_planners` under the format's name, beside the
adapter that reads the format (`pii_tracer.lake.formats.base`). One class may plan for several formats.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from pii_tracer.lake.inventory import Ref, TableState
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import PlanError
from pii_tracer.model.plan import Precondition
from planners.copies.scan_evidence import PATH, Seen

BY_ITS_JOB = (
    "ask the table's owner to remove its data with all old versions, then plan again. Ask the owner to run its job "
    "after the erasure (docs/gaps.md#blocked-copies)"
)
"""The way out where no step writes a table again by its query."""

_DATA_FILES = (".parquet", ".orc", ".avro")

if TYPE_CHECKING:
    from planners.step_drafts import CopyDraft, Draft


class FormatPlanner:
    """How a person leaves the tables of a format, and what stands against it. A simple format only has `table_steps`.

    executors: names of the executors that its steps call.
    runs_on_spark: whether these executors are paid for as hours of Spark.
    keeps_column_order: Spark gives a table's columns in the order of its schema, partition columns among them.
    shares_files: a table may read data files of other tables' folders, and executors ask which those are (hazard I7).
    own_column_prefixes: how columns begin that the format adds to those of its writers.
    removes_elements: where its steps clear columns of rows that stay, they also remove elements of lists and maps.
    compares_whole_keys: its steps compare a key of several columns as one (`MatchTerm.parts`).
    overwrite_modes: settings of Spark by which INSERT OVERWRITE replaces single partitions, where one is `dynamic`.
    """

    executors: ClassVar[frozenset[str]] = frozenset()
    runs_on_spark: ClassVar[bool] = True
    keeps_column_order: ClassVar[bool] = False
    shares_files: ClassVar[bool] = False
    removes_elements: ClassVar[bool] = False
    compares_whole_keys: ClassVar[bool] = False
    own_column_prefixes: ClassVar[tuple[str, ...]] = ()
    overwrite_modes: ClassVar[tuple[str, ...]] = ()

    # --- steps ---

    def table_steps(self, item: CopyDraft) -> tuple[Draft, ...]:
        """The drafts by which the person leaves a table, in order: out of its rows, then out of what keeps old rows."""
        raise NotImplementedError

    def history(self, state: TableState) -> tuple[Ref, ...]:
        """The references of a table that become copies of their own; `table_steps` takes care of the others."""
        return state.refs

    def ref_steps(self, item: CopyDraft, kind: str, name: str) -> tuple[Draft, ...]:
        """The drafts by which the person leaves a reference. kind: a `RefKind`.

        Raises:
            PlanError: the format has no such references.
        """
        raise _no_references(item.copy.format)

    def ref_lapse_steps(self, item: CopyDraft, lapse: datetime, patience: timedelta) -> tuple[Draft, ...]:
        """A dated wait for a reference that the table's own maintenance removes. patience: how long after the date.

        Raises:
            PlanError: the format has no such references.
        """
        raise _no_references(item.copy.format)

    def readers(self, state: TableState) -> tuple[Precondition, ...]:
        """Who else reads the table's files: one that the plan does not know would be broken by its clean-up (D8, I7).

        And what is staged in it, which its clean-up takes away. Each kind is compared with the world by
        `pii_tracer.review.drift`.
        """
        sharers = sorted(other.location for other in state.sharing)
        return (Precondition(kind="sharing", target=state.location, expected="\n".join(sharers)),)

    # --- what stands against them: reasons for people, with what the owner can do ---

    def without_name(self, state: TableState) -> str | None:
        """Why a table cannot be addressed by any step; None where it can."""
        return None

    def unsupported(self, state: TableState, keys: Collection[str]) -> str | None:
        """Why a table cannot be erased by any step; None where one can. keys: columns with a key of the persons."""
        return None

    def no_rebuild(self, state: TableState) -> str | None:
        """Why no step writes a table again by its recorded query; None where one does."""
        return f"rebuilding a table of the format {state.format} is not supported yet: {BY_ITS_JOB}"

    def no_clearing(self, state: TableState) -> str | None:
        """Where single columns cannot become NULL in rows that stay; None where they can."""
        return f"the format {state.format}"

    def no_removing(self, state: TableState) -> str | None:
        """Where single elements of lists and maps cannot be removed from rows that stay; None where they can."""
        return self.no_clearing(state) if self.removes_elements else f"the format {state.format}"

    def no_mask(self, state: TableState) -> str | None:
        """Why a hold cannot keep single columns of a table; None where it can."""
        place = self.no_clearing(state)
        return place and f"single columns cannot be erased in {place} yet"

    def fixed_columns(self, state: TableState) -> Mapping[str, str]:
        """Columns (lower case) that cannot become NULL, and why, beside what the schema and the partitions tell."""
        return {}

    def missing_column(self, state: TableState) -> str:
        """What it means that lineage names a column, and the table has none of that name."""
        return (
            "the table has no such column: it was renamed or dropped. Add the statement (ALTER TABLE … RENAME "
            "COLUMN) to the lineage's SQL, or harvest the newest statement of the job that writes it, then plan again"
        )

    def unnamed_column(self, state: TableState, column: str) -> str | None:
        """Why a column is none of the table's own, whatever its schema says; None where it is."""
        return None

    def out_of_reach(self, way: Sequence[str], *, in_text: bool) -> str | None:
        """Why no step finds rows by a key; None where one does. way: the names down to it, or to the text with JSON
        in which it is (in_text)."""
        return None

    def incomparable(self, state: TableState, kind: str) -> bool:
        """Whether no step compares keys in columns of a type."""
        return False

    def unguarded(self, conf: Collection[str]) -> str | None:
        """Why rows of other writers of tables in S3 could be lost during a run; None where they cannot.

        conf: names of the settings of the estate's Spark sessions.
        """
        return None

    def second_reader(self, state: TableState, seen: Collection[Seen]) -> str:
        """What is to be said of files of another format that reads the table's files as well, and holds the persons.

        seen: every file of the table's folder in which the scan saw a value. Empty where there is none.
        """
        return ""

    def left_behind(self, item: CopyDraft, seen: Seen) -> str | None:
        """How the owner takes the person out of a file that no step of the copy writes again or removes.

        None where a step does. Asked of every file of the table's folder in which the scan saw a value, as verification
        will see it: a place that a format does not speak of is nobody's, and stays.
        """
        if item.rebuild_sql or seen.in_rows:
            return None
        return (
            "a file contains a value outside its rows, and no step for this format removes it: ask its owner to "
            "rewrite the file without the value, or to remove it"
        )

    def beyond_engine(self, state: TableState, profile: str) -> str | None:
        """What of a table the engine of a profile of Spark (`spark.profile`) does not know; None where it knows all."""
        return None

    # --- what is known of its tables and files ---

    def holds_texts(self, state: TableState) -> bool:
        """Whether values are stored as texts, whatever type their columns seem to have."""
        return False

    def is_log(self, path: str) -> bool:
        """Whether a path, by its name, is one of a table's own logs, which name its data files."""
        return False

    def text_remedies(self, name: Format) -> Mapping[str, str]:
        """How a text of the table's description leaves files of this format for good, by its kind of place
        (`pii_tracer.lake.table_descriptions`), where that takes more than a statement that changes the description.
        """
        return {}


def beside_rows(item: CopyDraft, seen: Seen) -> str | None:
    """As `FormatPlanner.left_behind`, of a data file of a table that a delete of rows writes again or not.

    A value that no row has (a dictionary's entry, a bound, a footer) is no row to be found by: the engine leaves the
    file alone. A checksum that holds a value is none, and stays beside a file that stays.
    """
    name = seen.file.rpartition("/")[2]
    if name.startswith(".") and name.endswith(".crc"):
        return "a hidden file named like a checksum, which contains text: ask its owner to remove it"
    if item.rebuild_sql or seen.in_rows or PATH in seen.places or not seen.file.endswith(_DATA_FILES):
        return None
    return (
        f"a data file contains a value that none of its rows has ({', '.join(sorted(seen.places))}), and a delete of "
        "rows does not remove it. Ask its owner to rewrite this file, with an UPDATE that sets one of its rows to "
        "its current value, or with a rewrite of its partition"
    )


def _no_references(name: Format) -> PlanError:
    return PlanError(
        f"no step erases a branch or tag of the table format `{name}`",
        todo="install a newer version of the package that adds the format, or drop the reference, then plan again",
    )
