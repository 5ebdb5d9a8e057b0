"""Identities and vocabulary shared by every room: datasets, columns, keys, copies.

Frozen, without I/O, clock or Spark. Dataset naming follows OpenLineage (namespace and name):
https://openlineage.io/docs/spec/naming
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pii_tracer.common.open_vocabulary import OpenVocabulary, word
from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum


class Frozen(BaseModel):
    """Base of every model: immutable, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def is_said(text: str) -> bool:
    """Whether a name or a reason can be read: blanks and marks alone cannot."""
    return any(one.isalnum() for one in text)


def _said(text: str) -> str:
    if not is_said(text):
        raise ValueError("the text must contain a letter or a digit")
    return text


Said = Annotated[str, Field(min_length=1), AfterValidator(_said)]
"""Who answers for something, or why, in files that somebody writes. What is planned or signed already is read as it is:
a run that has begun by it has to go on."""


class DatasetId(Frozen):
    """A dataset as OpenLineage names it, e.g. namespace `file`, name `/lakehouse/warehouse/lake/prod/payments`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}:{self.name}"

    def __hash__(self) -> int:  # pydantic's own asks for every field by name: too slow for keys of large graphs
        return hash(self.name)  # few datasets have the name of another namespace's, and a string knows its hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetId) and self.name == other.name and self.namespace == other.namespace

    def __lt__(self, other: DatasetId) -> bool:
        return (self.namespace, self.name) < (other.namespace, other.name)


class UntoldRows(Frozen):
    """Rows of a table's partitions in a dataset, of which the catalog alone has the values of some columns.

    columns: these, in lower case, sorted.
    """

    dataset: DatasetId
    columns: tuple[str, ...]


class KnownPartitions(Frozen):
    """A table of a catalog whose folder did not show its partitions at planning.

    names: what people call it, its title first, masked where they hold a value of the persons; no two entries have the
    same. elsewhere: whether it has partitions outside of its folder. untold: where the plan knows a dataset with rows
    of it. no_keys: partition columns, in lower case, in which lineage led no key of the persons; any other may hold
    one. left: keyed digest of the places of partitions outside that stay a gap; None where there are none.
    """

    names: tuple[str, ...]
    elsewhere: bool
    untold: tuple[UntoldRows, ...]
    no_keys: tuple[str, ...] = ()
    left: str | None = None


class ColumnId(Frozen):
    """A top-level column of a dataset."""

    dataset: DatasetId
    column: str

    def __str__(self) -> str:
        return f"{self.dataset}.{self.column}"

    def __lt__(self, other: ColumnId) -> bool:
        return (self.dataset, self.column) < (other.dataset, other.column)


class Column(Frozen):
    """A column and its type as Spark SQL's DDL writes it (`bigint`, `struct<id:bigint,phone:string>`)."""

    name: str
    type: str


class Format(OpenVocabulary):
    """A storage format that a copy can have. Those of tables: `pii_tracer/lake/formats/*/vocabulary.py`."""

    __slots__ = ()
    PARQUET: ClassVar[Format] = word("parquet")
    ORC: ClassVar[Format] = word("orc")
    AVRO: ClassVar[Format] = word("avro")
    CSV: ClassVar[Format] = word("csv")
    JSON: ClassVar[Format] = word("json")
    KAFKA: ClassVar[Format] = word("kafka")
    STREAM_CHECKPOINT: ClassVar[Format] = word("stream_checkpoint")


PLAIN = frozenset({Format.PARQUET, Format.ORC, Format.AVRO, Format.CSV, Format.JSON})
"""Formats of files that no table's log names: whole files are written again without a person."""


class CopyKind(StrEnum):
    """What a copy is to the source (a stable interface)."""

    SOURCE = "SOURCE"
    DERIVED = "DERIVED"
    DEV_CLONE = "DEV_CLONE"
    REPLICA = "REPLICA"
    TABLE_HISTORY = "TABLE_HISTORY"
    OBJECT_VERSION = "OBJECT_VERSION"
    ARCHIVE = "ARCHIVE"
    TOPIC = "TOPIC"
    KEY = "KEY"
    BACKUP = "BACKUP"


class Carries(StrEnum):
    """How a copy carries the person (a stable interface)."""

    KEY = "key"
    COMPUTED_KEY = "computed_key"
    BRIDGE = "bridge"
    IDENTIFIERS = "identifiers"
    AGGREGATE = "aggregate"
    UNKNOWN = "unknown"
    NONE = "none"


class Strategy(StrEnum):
    """How the person leaves a copy."""

    DELETE_BY_KEY = "delete_by_key"
    DELETE_BY_COMPUTED_KEY = "delete_by_computed_key"
    DELETE_THROUGH_BRIDGE = "delete_through_bridge"
    DELETE_BY_IDENTIFIERS = "delete_by_identifiers"
    REBUILD = "rebuild"
    RECOMPUTED = "recomputed"
    REWRITE_REF = "rewrite_ref"
    RESTORE_REWRITE_ARCHIVE = "restore_rewrite_archive"
    DELETE_VERSIONS = "delete_versions"
    DELETE_ARCHIVES = "delete_archives"
    DESTROY_KEY = "destroy_key"
    CONFIRM = "confirm"
    TOMBSTONE = "tombstone"
    REWRITE_TOPIC = "rewrite_topic"
    DELETE_PREFIX = "delete_prefix"
    REWRITE_BRANCHES = "rewrite_branches"
    DELETE_KEPT = "delete_kept"
    LET_LAPSE = "let_lapse"
    CLEAR_MENTIONS = "clear_mentions"
    MASK_COLUMNS = "mask_columns"
    EXEMPT = "exempt"
    BLOCKED = "blocked"


BY_ROWS = frozenset(
    {
        Strategy.DELETE_BY_KEY,
        Strategy.DELETE_BY_COMPUTED_KEY,
        Strategy.DELETE_THROUGH_BRIDGE,
        Strategy.DELETE_BY_IDENTIFIERS,
        Strategy.CLEAR_MENTIONS,
    }
)
"""Strategies that find the persons' rows in a table and treat each by itself."""


class FieldAccess(Frozen):
    """One step into a struct."""

    kind: Literal["field"] = "field"
    name: str


class JsonAccess(Frozen):
    """One step into a string that holds JSON: a top-level member, and from there its members."""

    kind: Literal["json"] = "json"
    path: tuple[str, ...]


class ElementAccess(Frozen):
    """One step into a list, to each of its elements, or into a map, to each of its keys. name: as in Spark's DDL."""

    kind: Literal["element"] = "element"
    name: Literal["element", "key"]


Access = Annotated[FieldAccess | JsonAccess | ElementAccess, Field(discriminator="kind")]


def _is_empty(told: tuple[object, ...]) -> bool:
    """Of what only a key of several columns has: a key of one is written as in plans from before there were others."""
    return not told


def place_of(column: str, access: tuple[Access, ...]) -> str:
    """What the search of files calls a place in a column: the elements of a list are called as the list is."""
    return _label(column, tuple(s for s in access if not (isinstance(s, ElementAccess) and s.name == "element")))


def _label(column: str, way: tuple[Access, ...]) -> str:
    for access in way:
        column += ".$." + ".".join(access.path) if isinstance(access, JsonAccess) else f".{access.name}"
    return column


class KeyPart(Frozen):
    """Where in a row one column of a key is. `type` is the Spark SQL type of the leaf."""

    column: str
    access: tuple[Access, ...] = ()
    type: str

    def label(self) -> str:
        """`column.field`, `column.element` or `column.$.member`, for people."""
        return _label(self.column, self.access)

    @property
    def place(self) -> str:
        """As the search of files calls it."""
        return place_of(self.column, self.access)

    @property
    def within(self) -> ElementAccess | None:
        """The step into a list or a map; None where a row has no more than one such key."""
        return next((access for access in self.access if isinstance(access, ElementAccess)), None)


class MatchTerm(KeyPart):
    """Where in a row a key of the person is, and which set of keys to compare it with.

    Key values are compared as text after casting the leaf to string, so that a bigint key and its string copy are found
    alike. beside: of a key of several columns the others, in the key's order; the text is then all of theirs
    (`pii_tracer.model.keys_as_text`), and NULL in one of them matches nobody.
    """

    key_set: str
    beside: tuple[KeyPart, ...] = Field(default=(), exclude_if=_is_empty)

    @property
    def parts(self) -> tuple[KeyPart, ...]:
        """Every column of the key, in the key's order."""
        return (self, *self.beside)

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns that it looks at."""
        return tuple(part.column for part in self.parts)

    def label(self) -> str:
        """As of a part; of several columns `(tenant_id, user_id)`."""
        first = super().label()
        return f"({', '.join([first, *(part.label() for part in self.beside)])})" if self.beside else first


class Match(Frozen):
    """A row is the person's when any term matches."""

    terms: tuple[MatchTerm, ...]

    @property
    def lists(self) -> tuple[str, ...]:
        """The columns of which its terms look into the lists or maps."""
        return tuple(term.column for term in self.terms if term.within is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns that its terms look at, each once."""
        return tuple(dict.fromkeys(column for term in self.terms for column in term.columns))


WHOLE_NUMBER = r"^(-?(?:0|[1-9][0-9]*))\.0+$"
"""A whole number as text files have it where a column of numbers has gaps (pandas and Spark write it as a double)."""


Currency = Annotated[str, Field(pattern=r"^[A-Za-z$¢£¤¥₠-⃀]{1,8}$")]
"""Letters, or a currency's sign: it stands in reports beside every amount."""


class ShortNumbers(Frozen):
    """How many short numbers of a key set (`KeySet.weak`) stand in one place of a dataset. place: a column, as scans
    call it, or a kind of place without one.
    """

    key_set: str
    place: str
    count: int


class KeySet(Frozen):
    """Values of one kind that stand for the persons of a plan. Lives only in the sealed manifest and in memory.

    name: as in `MatchTerm.key_set`, e.g. `user_id` or `user_id|sha2(CAST(x AS STRING), 256)`.
    values: (subject reference, value as text), sorted.
    weak: some values are short digits, which can mean something else elsewhere (a merchant of the same number). Such a
    value counts only where lineage does not show another origin for the column; the others of the set count anywhere.
    others: keys of other people of the source that a search takes for one of the values, sorted: in another case, or
    with more words beside it.
    columns: of a key of several columns what its values are made of (`pii_tracer.model.keys_as_text`), in order. Such
    values stand in rows, and nowhere as bytes: nobody searches for them.
    """

    name: str
    origin: str
    expression: str | None = None
    weak: bool
    values: tuple[tuple[str, str], ...]
    others: tuple[str, ...] = ()
    columns: tuple[str, ...] = Field(default=(), exclude_if=_is_empty)

    def __repr__(self) -> str:
        return f"KeySet({self.name}, {counted(len(self.values), 'value')})"

    __str__ = __repr__
