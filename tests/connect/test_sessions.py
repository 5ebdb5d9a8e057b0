"""What a session on a Connect server is given, and what is refused before anything is changed."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from executors.engine.spark_connect import _compare, open_remote, refuse_without_jvm
from pii_tracer.config.estate_file import Spark
from pii_tracer.lake.formats.delta.log_files import settings_only
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_EXPIRE_SNAPSHOTS, ICEBERG_REMOVE_ORPHANS
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import Refused, RunError
from tests.connect.conftest import Cli, Server, shop
from tests.connect.shop import estate, write_estate


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"remote": "sc://h:1", "master": "local[2]"}, "remove `master`"),
        ({"remote": "sc://h:1/;token=abc"}, "must not contain a credential"),
        ({"remote": "sc://h:1", "profile": "4.1"}, "only with the profile 3.5"),
        ({"remote": "http://h:1"}, "pattern"),
    ],
)
def test_an_address_that_cannot_be_used_is_an_error_of_the_estate_file(settings: Any, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Spark(**settings)


def test_an_address_is_enough() -> None:
    assert Spark(remote="sc://spark.example:15002/;use_ssl=true").remote == "sc://spark.example:15002/;use_ssl=true"


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    with socket.socket() as deaf:  # it refuses connections, and nobody else gets its port meanwhile
        deaf.bind(("127.0.0.1", 0))
        with pytest.raises(RunError, match="does not answer"):
            open_remote(f"sc://127.0.0.1:{deaf.getsockname()[1]}", "3.5", {}, {})


def test_a_server_that_writes_an_event_log_is_refused() -> None:
    spark: Any = SimpleNamespace(conf={"spark.eventLog.enabled": "true"})
    with pytest.raises(RunError, match="writes an event log"):
        _compare(spark, {}, "sc://h:1")
    spark.conf.clear()
    _compare(spark, {}, "sc://h:1")


def step(action: Action, executor: str = "iceberg", **parameters: Any) -> Any:
    return SimpleNamespace(id="s", action=action, executor=executor, parameters=parameters)


def test_forgetting_snapshots_in_the_metadata_alone_is_refused() -> None:
    fine = [
        step(ICEBERG_EXPIRE_SNAPSHOTS, table="med.a"),
        step(ICEBERG_REMOVE_ORPHANS, table="med.a", sharing=[]),
    ]
    refuse_without_jvm("sc://h:1", fine)
    for other in (step(ICEBERG_EXPIRE_SNAPSHOTS, sharing=[]), step(ICEBERG_EXPIRE_SNAPSHOTS, "nessie")):
        refuse_without_jvm(None, [other])
        with pytest.raises(Refused, match="cannot be done over Spark Connect"):
            refuse_without_jvm("sc://h:1", [*fine, other])


def test_only_settings_may_stand_above_a_checkpoint(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{4:020}.json").write_text('{"commitInfo":{}}\n{"metaData":{}}\n')
    assert settings_only(tmp_path, 4, 3)
    assert settings_only(tmp_path, 4, 4)
    assert not settings_only(tmp_path, 4, 5)
    (log / f"{5:020}.json").write_text('{"commitInfo":{}}\n{"remove":{"path":"a"}}\n')
    assert not settings_only(tmp_path, 4, 5)
    assert settings_only(tmp_path, 6, 5)


@pytest.mark.spark
def test_doctor_looks_at_the_server_and_its_workers(server: Server, cli: Cli, tmp_path: Path) -> None:
    base = tmp_path / "shop"
    write_estate(base, server.address)
    found = {f["what"]: f for f in json.loads(cli(base, "doctor", "--format", "json").stdout)}
    assert [found[name]["level"] for name in ("Spark Connect", "Spark Connect workers")] == ["ok", "ok"]
    assert "Java" not in found


@pytest.mark.spark
def test_what_only_the_servers_owner_can_set_is_told(server: Server, cli: Cli, tmp_path: Path) -> None:
    base = tmp_path / "shop"
    write_estate(base, server.address)
    (base / "warehouse" / "x").mkdir()
    content = estate(server.address)
    for conf, told in (
        ({"spark.driver.memory": "1g"}, "does not let a session set spark.driver.memory"),
        (
            {"spark.redaction.regex": "(?i)mine"},
            "started without the value of spark.redaction.regex that this estate needs",
        ),
    ):
        content["spark"]["conf"] = conf
        (base / "other.yaml").write_text(yaml.safe_dump(content))
        ended = cli(base, "doctor", estate="other.yaml")
        assert (ended.code, told in ended.stdout) == (1, True), ended


@pytest.mark.spark
def test_a_declared_folder_of_partitions_has_its_rows_by_its_name(server: Server, tmp_path: Path) -> None:
    base = tmp_path / "shop"
    write_estate(base, server.address)
    assert shop("parted", base) == [4, 2]
