"""The estate file's `hdfs`: a nameservice with its NameNodes, and other names of the same HDFS."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.config.hdfs import NameNode, as_declared, same_hdfs, wrong_hdfs
from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.model.locations import hdfs_location

ONE: dict[str, Any] = {"namenode": "hdfs://nn:8020", "webhdfs": "http://nn:9870", "user": "hdfs"}
PAIR = {**ONE, "namenode": "hdfs://bank", "webhdfs": ["http://nn1:9870/", "http://nn2:9870"]}
OLD = {**PAIR, "also": ["hdfs://NN1:8020", "hdfs://nn2:9000"]}


def declared(**told: Any) -> NameNode:
    return NameNode.model_validate(told)


def test_one_address_or_those_of_a_nameservice() -> None:
    one, pair = declared(**ONE), declared(**PAIR)
    assert (one.webhdfs, one.is_nameservice) == (("http://nn:9870",), False)
    assert (pair.webhdfs, pair.is_nameservice) == (("http://nn1:9870", "http://nn2:9870"), True)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({**PAIR, "namenode": "hdfs://bank:9000"}, "has no port"),
        ({**PAIR, "rpc": ["nn1:8020"]}, "as many addresses"),
        ({**PAIR, "rpc": ["nn1", "nn2"]}, "rpc"),
        ({**PAIR, "webhdfs": []}, "webhdfs"),
        ({**PAIR, "webhdfs": ["http://nn1:9870", "http://nn1:9870/"]}, "appears twice"),
        ({**PAIR, "block_pool": "CID-1"}, "block_pool"),
        ({**PAIR, "also": ["nn1:8020"]}, "also"),
    ],
)
def test_what_is_no_nameservice_is_refused(told: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        declared(**told)


def test_names_of_one_hdfs_are_one_place_everywhere() -> None:
    nodes = (declared(**OLD),)
    for name in ("nn1", "nn1:8020", "NN1", "nn2:9000", "bank"):
        assert str(as_declared(nodes, hdfs_location(f"hdfs://{name}/lake/t"))) == "hdfs://bank/lake/t"
    for other in ("hdfs://nn2/lake/t", "hdfs://nn1:9000/lake/t"):
        assert str(as_declared(nodes, hdfs_location(other))) == other


@pytest.mark.parametrize("written", ["hdfs://nn1:8020", "hdfs://nn1", "hdfs://bank", "hdfs://nn2:9000"])
def test_lineage_by_another_name_is_lineage_of_the_same_dataset(written: str) -> None:
    names = Identities({}, same=same_hdfs((declared(**OLD),)))
    assert names.normal(written, "/lake/t") == hdfs_location("hdfs://bank/lake/t").dataset


@pytest.mark.parametrize(
    ("told", "place", "why"),
    [
        ((OLD,), "hdfs://bank/lake", None),
        ((OLD,), "hdfs://nn1:8020/lake", "write the name that"),
        ((OLD,), "hdfs://nn3:8020/lake", "does not declare"),
        ((OLD, {**ONE, "namenode": "hdfs://nn1"}), "hdfs://bank/lake", "declared twice"),
        ((OLD, {**ONE, "also": ["hdfs://nn2:9000"]}), "hdfs://bank/lake", "declared twice"),
        (({**PAIR, "rpc": ["a:1", "b:1"]}, {**PAIR, "namenode": "hdfs://other"}), "hdfs://bank/lake", "for all, or"),
    ],
)
def test_one_name_means_one_hdfs(told: tuple[dict[str, Any], ...], place: str, why: str | None) -> None:
    found = wrong_hdfs(tuple(declared(**one) for one in told), (place,))
    assert found is None if why is None else why in str(found)
