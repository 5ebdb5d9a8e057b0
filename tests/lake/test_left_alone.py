"""Tables in S3 that no step may touch after all: what else was told of their places stays told."""

from __future__ import annotations

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory, RemotePlace, TableState
from pii_tracer.lake.read_result import gap
from pii_tracer.lake.tables_in_s3_roots import left_alone
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import s3_location

AT = s3_location("s3://bucket/t")
TABLE = TableState(dataset=AT.dataset, table="lake.t", location=str(AT), format=DELTA, snapshot="0", columns=())


def test_a_gap_of_the_place_is_kept() -> None:
    twice = gap(AT.dataset, GapKind.REGISTERED_TWICE, "it has two names", str(AT))
    place = RemotePlace(location=AT, tables=("lake.t",), format=DELTA)
    found = left_alone(Inventory(tables=(TABLE,), gaps=(twice,), remote=(place,)), {str(AT): "somebody reads it"})
    assert (found.tables, found.remote[0].untreated) == ((), "somebody reads it")
    assert {one.kind for one in found.gaps} == {GapKind.REGISTERED_TWICE, GapKind.REMOTE_TABLE}
