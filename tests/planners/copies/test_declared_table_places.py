"""What archives, vaults, repositories and topics call a column of the table that they are of."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.config.kafka import Topic
from pii_tracer.lake.inventory import Inventory, ObjectSet, TopicState
from pii_tracer.lake.stores.glacier.vault_state import VaultState
from pii_tracer.lake.stores.lakefs.repository_state import LakefsState
from pii_tracer.model.datasets import DatasetId
from planners.copies.declared_table_places import carriers

PLACE = DatasetId(namespace="x://", name="y")
OF = type("Declared", (), {"of": "shop.trips", "location": "glacier://r/v"})()
MADE: dict[str, Any] = {
    "objects": ObjectSet.model_construct(dataset=PLACE, bucket="b", prefix="a/", of="shop.trips"),
    "vaults": VaultState.model_construct(dataset=PLACE, declared=OF),
    "lakefs": LakefsState.model_construct(dataset=PLACE, declared=OF),
}
OWN_TABLES = {"tables", "remote", "hdfs", "object_places", "partitioned", "gaps"}
"""Of the inventory: what is a table or a folder itself, and nothing that the estate file declares to be of a table."""


def called(state: Any, kind: str, column: str = "driver") -> list[tuple[str, ...]]:
    inventory = Inventory(tables=()).model_copy(update={kind: (state,)})
    found = list(carriers(inventory))
    assert {carrier.of for carrier in found} == {"shop.trips"}
    return [carrier.called(column, ("driver", "driver_old")) for carrier in found]


@pytest.mark.parametrize("kind", MADE)
def test_files_have_the_tables_own_names(kind: str) -> None:
    assert called(MADE[kind], kind) == [("driver", "driver_old")]


def test_every_place_of_the_inventory_is_a_table_or_known_to_be_of_one() -> None:
    """A new store that keeps rows of tables is added to `carriers`, or told here to be tables itself."""
    assert set(Inventory.model_fields) == OWN_TABLES | set(MADE) | {"topics", "texts"}  # `texts`: rules, not places


def topic(**part: Any) -> TopicState:
    declared = Topic.model_validate({"name": "t", "of": "shop.trips", **part})
    return TopicState.model_construct(dataset=PLACE, declared=declared)


JSON = {"format": "json", "fields": {"trip.driver": "Driver", "rider": "uid"}}
AVRO = {"format": "avro", "framed": True}


@pytest.mark.parametrize(
    ("part", "labels"),
    [
        ({"value": JSON}, ("value.$.trip.driver",)),
        ({"value": JSON, "key": {"format": "string", "column": "driver"}}, ("key", "value.$.trip.driver")),
        ({"value": {"format": "json", "fields": {"rider": "uid"}}}, ()),
        ({"value": {"format": "json", "fields": {"*": "driver"}}}, ()),
        ({"value": {**AVRO, "fields": {"driver": "driver"}}}, ("value.$.driver",)),
        ({"value": {**AVRO, "fields": {"by.key": "driver"}}}, ()),
        ({"value": {"format": "protobuf", "framed": True, "fields": {"driver": "driver"}}}, ()),
    ],
)
def test_records_have_the_declared_places_that_nothing_else_is_called(
    part: dict[str, Any], labels: tuple[str, ...]
) -> None:
    assert called(topic(**part), "topics") == [labels]
