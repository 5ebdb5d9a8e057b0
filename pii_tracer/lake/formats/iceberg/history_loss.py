"""What other people would lose when a table's history goes: columns below references, rows staged and not published.

Rules: Iceberg table spec, https://iceberg.apache.org/spec/ ("Schema Evolution", "Snapshots").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import StaticTable
    from pyiceberg.table.snapshots import Snapshot

_Fields = dict[int, tuple[str, Any]]

"""Kind of the gap for rows that write-audit-publish has staged and nobody has published."""

_UNKNOWN = "columns that the metadata no longer names"
_WAP, _PUBLISHED = "wap.id", "published-wap-id"
"""https://iceberg.apache.org/docs/latest/spark-configuration/#spark-sql-options,
org.apache.iceberg.SnapshotSummary (STAGED_WAP_ID_PROP, PUBLISHED_WAP_ID_PROP)."""


def lost_columns(table: StaticTable, snapshot_id: int) -> tuple[str, ...]:
    """Columns of a snapshot, nested fields too, that do not survive when it is written again with today's schema.

    By field id: a renamed column stays. A column of another type counts as well: its values would be others, unless
    the type was only widened, so that every value is the same in it. Where
    the snapshot does not name its schema, every schema that the table had counts, and so do fields that none of them
    has any more.
    """
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    schemas = table.metadata.schemas
    own = [s for s in schemas if snapshot is not None and s.schema_id == snapshot.schema_id]
    now = _fields(table.schema())
    lost = {
        name
        for schema in own or schemas
        for number, (name, kind) in _fields(schema).items()
        if _gone(now, number, kind)
    }
    if not own and len(now) < table.metadata.last_column_id:
        lost.add(_UNKNOWN)
    return tuple(sorted(lost))


def _gone(now: _Fields, number: int, kind: Any) -> bool:
    return number not in now or not _holds_all(now[number][1], kind)


def _holds_all(wide: Any, narrow: Any) -> bool:
    """Whether a type is another one or what Iceberg widens that to with every value as it is
    (https://iceberg.apache.org/spec/#schema-evolution): `date` to a timestamp and `unknown` to anything are not taken.
    """
    from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType

    if isinstance(wide, DecimalType) and isinstance(narrow, DecimalType):
        return wide.scale == narrow.scale and wide.precision >= narrow.precision
    return wide == narrow or (narrow, wide) in ((IntegerType(), LongType()), (FloatType(), DoubleType()))


def _fields(schema: Schema) -> _Fields:
    """Name and type of every field by its id; of structs, lists and maps only that they are one."""
    from pyiceberg.schema import index_by_id

    found: _Fields = {}
    for number, field in index_by_id(schema).items():
        kind = field.field_type
        name = schema.find_column_name(number) or field.name
        found[number] = (name, kind if kind.is_primitive else type(kind).__name__)
    return found


def staged_snapshots(table: StaticTable) -> tuple[str, ...]:
    """Ids of snapshots that write-audit-publish has staged, that no branch or tag reaches, and nobody published.

    The next expiry takes them away, with rows that are nowhere else.
    https://iceberg.apache.org/docs/latest/spark-procedures/#publish_changes
    """
    snapshots = {s.snapshot_id: s for s in table.metadata.snapshots}
    reached: set[int] = set()
    for ref in table.refs().values():
        at: int | None = ref.snapshot_id
        while at in snapshots and at not in reached:
            reached.add(at)
            at = snapshots[at].parent_snapshot_id
    published = {_told(snapshots[number], _PUBLISHED) for number in reached}
    return tuple(
        str(number)
        for number, snapshot in sorted(snapshots.items())
        if number not in reached and _told(snapshot, _WAP) is not None and _told(snapshot, _WAP) not in published
    )


def _told(snapshot: Snapshot, name: str) -> str | None:
    return snapshot.summary.additional_properties.get(name) if snapshot.summary else None
