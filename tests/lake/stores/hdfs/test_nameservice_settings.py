"""How engines are told of a nameservice, and what is said where nobody tells them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from executors.engine.session_settings import session_conf
from executors.stores.hdfs.spark_rights import refuse_unknown_nameservices
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import NameNode
from pii_tracer.lake.stores.hdfs.nameservice_settings import (
    reader_address,
    reader_settings,
    spark_settings,
    unknown_to_engines,
)
from pii_tracer.model.errors import Refused
from pii_tracer.model.locations import hdfs_location
from tests.hdfs.running import step_on
from tests.lake.catalogs.test_catalogs import estate

PLACE, HOST = hdfs_location("hdfs://bank/lake/t"), hdfs_location("hdfs://nn:8020/lake/t")
RPC = ["nn1.bank.example:8020", "nn2.bank.example:8020"]


def with_hdfs(spark_conf: dict[str, str] | None = None, **more: Any) -> Estate:
    one = {"namenode": "hdfs://nn:8020", "webhdfs": "http://nn:9870", "user": "hdfs"}
    pair = {"namenode": "hdfs://bank", "webhdfs": ["http://nn1:9870", "http://nn2:9870"], "user": "hdfs", **more}
    base = estate()
    spark = base.spark.model_copy(update={"conf": spark_conf or {}})
    nodes = tuple(map(NameNode.model_validate, (one, pair)))
    return base.model_copy(update={"hdfs": nodes, "spark": spark})


def test_the_addresses_of_the_estate_file_are_given_to_spark_and_to_the_reader(tmp_path: Path) -> None:
    told = with_hdfs(rpc=RPC)
    assert reader_settings(told) == {
        "dfs.nameservices": "bank",
        "dfs.ha.namenodes.bank": "nn1,nn2",
        "dfs.namenode.rpc-address.bank.nn1": RPC[0],
        "dfs.namenode.rpc-address.bank.nn2": RPC[1],
        "dfs.client.failover.proxy.provider.bank": (
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        ),
    }
    assert spark_settings(told) == {f"spark.hadoop.{name}": value for name, value in reader_settings(told).items()}
    assert session_conf(told, tmp_path).items() >= spark_settings(told).items()
    assert unknown_to_engines(told, PLACE, {}) == ""


def test_settings_of_spark_are_given_to_the_reader_too() -> None:
    told = with_hdfs({"spark.hadoop.dfs.ha.namenodes.bank": "a,b", "spark.sql.x": "1"})
    assert reader_settings(told) == {"dfs.ha.namenodes.bank": "a,b"}
    assert (spark_settings(told), unknown_to_engines(told, PLACE, {})) == ({}, "")


def test_hadoops_own_files_are_enough_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "hdfs-site.xml").write_text("<property><name> dfs.ha.namenodes.bank </name></property>")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "hdfs-site.xml").write_text("<property><name>dfs.ha.namenodes.bank2</name></property>")
    assert unknown_to_engines(with_hdfs(), PLACE, {"HADOOP_CONF_DIR": str(tmp_path)}) == ""
    for environ in ({}, {"HADOOP_CONF_DIR": str(tmp_path / "other")}, {"HADOOP_CONF_DIR": str(tmp_path / "none")}):
        assert "add `rpc`" in unknown_to_engines(with_hdfs(), PLACE, environ)


def test_a_host_needs_no_settings_and_a_nameservice_has_no_port() -> None:
    told = with_hdfs()
    assert unknown_to_engines(told, HOST, {}) == ""
    assert reader_address(told, HOST) == "hdfs://nn:8020/lake/t"
    assert reader_address(told, PLACE) == "hdfs://bank/lake/t"


def test_a_run_whose_engine_does_not_know_the_nameservice_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    steps = [step_on(str(PLACE), executor="delta"), step_on(str(HOST), executor="delta")]
    refuse_unknown_nameservices(with_hdfs(rpc=RPC), steps)
    refuse_unknown_nameservices(with_hdfs(), [*steps[1:], step_on(str(PLACE), executor="hdfs")])
    with pytest.raises(Refused, match="nameservice bank") as caught:
        refuse_unknown_nameservices(with_hdfs(), steps)
    assert "HADOOP_CONF_DIR" in str(caught.value.todo)
