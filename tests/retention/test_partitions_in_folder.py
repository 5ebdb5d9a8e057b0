"""A sweep leaves a folder alone in which partitions of another table have files: no log names these."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from pii_tracer.config.estate_file import RetentionClasses
from pii_tracer.lake.catalog_only_partitions import PartitionedTable
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.legal_holds import Hold
from pii_tracer.retention.settings_check import Table
from pii_tracer.retention.sweep_rules import targets
from tests.planners.smalllake import hold

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    ("place", "swept"), [("/w/a/day=1", False), ("/w/a2/day=1", True), ("/w/a", False), ("/w", False)]
)
def test_partitions_of_others_keep_a_table_from_being_swept(place: str, swept: bool, held: bool) -> None:
    holds = (Hold.model_validate(hold("db.t")),) if held else ()
    dataset = DatasetId(namespace="file", name="/w/a")
    state = TableState(dataset=dataset, table="db.a", location="/w/a", format=DELTA, snapshot="1", columns=())
    other = PartitionedTable(title="db.t", location="/w/t", dataset=None, elsewhere=(place,))
    rules = RetentionClasses(tables={"db.a": "pii"})
    table = Table(("db.a",), DELTA, {}, location="/w/a")
    found, skipped = targets(rules, holds, [table], Inventory(tables=(state,), partitioned=(other,)), NOW)
    assert [str(one.location) for one in found] == (["/w/a"] if swept else [])
    reasons = [one.reason for one in skipped]
    if swept:
        assert reasons == []
    elif held:
        assert reasons[0].endswith("on a table with partitions in or around this folder")
    else:
        assert reasons == ["its folder contains files of partitions of db.t, which a sweep would remove"]
