"""The estate file names the Spark it was written for; another one that happens to be installed is told, not tried."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from executors.engine import spark_session, version_profiles
from executors.engine.session_settings import session_conf, wanted_packages
from executors.engine.spark_capability_check import refuse_unfit
from executors.engine.spark_session import fetching_conf
from executors.engine.version_profiles import (
    PROFILES,
    SPARK_4_1,
    Profile,
    installed_profile,
    profile_of,
)
from pii_tracer.config.estate_file import Spark
from pii_tracer.lake.formats.delta.vocabulary import DELTA_PURGE
from pii_tracer.lake.formats.hudi.vocabulary import HUDI, HUDI_CLEAN
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import Refused, RunError
from pii_tracer.model.plan import Step
from tests.s3support import estate


def test_the_installed_spark_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert profile_of(installed_profile().name) is installed_profile()
    monkeypatch.setattr(version_profiles, "_version", lambda: "4.1.7")
    assert profile_of("4.1") is SPARK_4_1
    with pytest.raises(RunError, match=r"requires Spark 3\.5, but pyspark 4\.1 is installed"):
        profile_of("3.5")
    monkeypatch.setattr(version_profiles, "_version", lambda: "4.10.0")
    with pytest.raises(RunError, match=r"pyspark 4\.10\.0 is not supported"):
        installed_profile()


def test_hudi_runs_where_its_bundle_exists() -> None:
    assert [name for name, p in PROFILES.items() if p.opens(HUDI)] == ["3.5"]
    clean, other = (
        Step.model_construct(id="s", action=action, executor=name, parameters={"location": "s3://b/t"})
        for action, name in ((HUDI_CLEAN, "hudi"), (Action.FILES_REWRITE, "files"))
    )
    refuse_unfit(Spark(profile="3.5"), [clean])
    refuse_unfit(Spark(profile="4.1"), [other])
    with pytest.raises(Refused, match=r"Hudi does not support Spark 4\.1") as refused:
        refuse_unfit(Spark(profile="4.1"), [other, clean])
    assert refused.value.where == "s s3://b/t"


def test_delta_on_a_cluster_of_4_1_is_refused_before_its_rows_are_deleted() -> None:
    given = {"executor": "x", "parameters": {"table": "a.b"}}
    purge, other = (Step.model_construct(id="s", action=a, **given) for a in (DELTA_PURGE, Action.FILES_REWRITE))
    cluster = Spark(profile="4.1", master="spark://h:7077")
    for fine in (Spark(profile="4.1"), Spark(profile="3.5", master="spark://h:7077"), Spark(remote="sc://h:1")):
        refuse_unfit(fine, [other, purge])
    refuse_unfit(cluster, [other])
    with pytest.raises(Refused, match="REORG") as refused:
        refuse_unfit(cluster, [other, purge])
    assert refused.value.where == "s a.b"


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_a_session_that_fetches_jars_is_told_which(profile: Profile) -> None:
    told = fetching_conf(profile, wanted_packages(profile, None, ()))
    assert told["spark.jars.packages"].split(",") == list(profile.packages)
    assert "spark.local.dir" in told
    assert "spark.jars" not in told
    with_s3 = fetching_conf(profile, wanted_packages(profile, None, ["s3"]), [Path("/a.jar"), Path("/b.jar")])
    assert set(profile.s3a) < set(with_s3["spark.jars.packages"].split(","))
    assert with_s3.get("spark.jars.excludes", "") == ",".join(profile.excluded)
    assert with_s3["spark.jars"] == "/a.jar,/b.jar"


def test_a_local_spark_waits_for_no_host_with_its_blocks(tmp_path: Path) -> None:
    """It would never be offered another: a statement over tables in HDFS would not end."""
    name = version_profiles.installed_profile().name
    told = {
        master: session_conf(estate("http://127.0.0.1:9", spark={"profile": name, "master": master}), tmp_path)
        for master in ("local[2]", "spark://here:7077")
    }
    assert told["local[2]"]["spark.locality.wait"] == "0s"
    assert "spark.locality.wait" not in told["spark://here:7077"]


def test_who_fetches_jars_does_so_alone_and_who_knows_them_starts_beside_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_session, "_is_running", lambda: False)
    conf = {"spark.jars.ivy": str(tmp_path), "spark.jars.packages": "a:b:1"}

    def free(how: int) -> bool:
        with (tmp_path / ".pii-tracer.lock").open() as lock:
            try:
                fcntl.flock(lock, how | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    with pytest.raises(ValueError, match="not there"), spark_session._fetching_alone(installed_profile(), conf):
        raise ValueError("not there")  # a start that failed has fetched nothing for sure
    with spark_session._fetching_alone(installed_profile(), conf):
        assert not free(fcntl.LOCK_SH)
    with spark_session._fetching_alone(installed_profile(), conf):
        assert free(fcntl.LOCK_SH)
        assert not free(fcntl.LOCK_EX)
    with spark_session._fetching_alone(installed_profile(), conf | {"spark.jars.packages": "a:b:2"}):
        assert not free(fcntl.LOCK_SH)
