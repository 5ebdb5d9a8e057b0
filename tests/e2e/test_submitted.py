"""The whole path by `spark-submit`, whose Java runs before pii-tracer reads its estate file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from executors.engine.java_and_spark_paths import java_home
from executors.engine.version_profiles import installed_profile
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.plan_file import load_plan
from tests.e2e import clinic
from tests.e2e.crashes.test_kill import others, rows
from tests.e2e.processes import REPO
from tests.e2e.sparkcluster import cluster, cluster_conf, executors_worked
from tests.leaks import leaks
from tests.servers import spark_jars

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

PROGRAM = """import sys

from pii_tracer.cli.main import main

main(sys.argv[1:])
"""


def submitted(base: Path, words: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
    """What docs/stack.md says to do: a program of two lines, given to spark-submit, which joins its two outputs."""
    program = base / "erase.py"
    program.write_text(PROGRAM)
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_jars().parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(REPO),
    }
    environment |= {"JAVA_HOME": home} if (home := java_home()) else {}
    command = [str(spark_jars().parent / "bin" / "spark-submit"), *options, str(program), *words]
    return subprocess.run(command, env=environment, cwd=base, capture_output=True, text=True, check=False, timeout=600)


def test_jars_that_spark_submit_did_not_bring_are_named(spark: Any, tmp_path: Path) -> None:
    """Spark ignores `spark.jars.packages` then, and starts without the extensions: statements would fail one by one."""
    clinic.build(tmp_path, spark)
    before = rows(tmp_path)
    words = clinic.approve(tmp_path)
    done = submitted(tmp_path, words, "--master", "local[1]")
    assert done.returncode == ExitCode.PARTIAL
    assert "error: spark-submit was started without the jar of io.delta.sql.DeltaSparkSessionExtension" in done.stdout
    assert f"`--packages {','.join(installed_profile().packages)}`" in done.stdout
    assert "rebuild" not in done.stdout
    assert rows(tmp_path) == before


@pytest.mark.slow
@pytest.mark.nightly
def test_erased_on_a_cluster_by_spark_submit(spark: Any, tmp_path: Path) -> None:
    """The master is spark-submit's: the estate file names another."""
    base = tmp_path / "clinic"
    base.mkdir()
    clinic.build(base, spark)
    before = rows(base)
    for name in ("cluster", "events"):
        (tmp_path / name).mkdir()
    estate = yaml.safe_load((base / "pii-tracer.yaml").read_text())
    estate["spark"]["master"] = "local[1]"
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    words = clinic.approve(base)
    conf = cluster_conf(tmp_path / "events")
    with cluster(tmp_path / "cluster") as address:
        options = ["--master", address, "--packages", ",".join(installed_profile().packages)]
        options += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        done = submitted(base, words, *options)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "7/7 copies erased" in done.stdout
    assert others(rows(base)) == others(before)
    assert executors_worked(tmp_path / "cluster", tmp_path / "events")
    run = base / "state" / "runs" / load_plan(base / "clinic.plan.json").plan.plan_id
    assert (run / "attestation.json").exists()
    (tmp_path / "said").mkdir()
    (tmp_path / "said" / "log").write_text(done.stdout + done.stderr)
    places = [tmp_path / "cluster", tmp_path / "events", tmp_path / "said", base / "state"]
    assert leaks(clinic.PERSON, places) == []
