"""Pod templates and jobs for clusters: pods may do nothing but what a run needs; commands are understood; no second try."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from pii_tracer import __version__
from tests.container.dockerfile import ROOT
from tests.docs.test_examples import understood

FOLDER = ROOT / "docs" / "workflows"
PAGE = (ROOT / "docs" / "howto" / "run-on-a-cluster.md").read_text(encoding="utf-8")


def read(name: str) -> Any:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else yaml.safe_load(text)


def commands() -> dict[str, list[str]]:
    """By file, what pii-tracer is started with."""
    emr = read("emr-step.json")[0]["Args"]
    return {
        "emr-step.json": emr[emr.index("/opt/pii-tracer/erase.py") + 1 :],
        "dataproc-job.yaml": read("dataproc-job.yaml")["pysparkJob"]["args"],
        "databricks-job.json": read("databricks-job.json")["tasks"][0]["spark_python_task"]["parameters"],
    }


@pytest.mark.parametrize("name", sorted(commands()))
def test_a_job_has_a_command_that_is_understood(name: str) -> None:
    words = commands()[name]
    assert words[0] == "apply"
    understood(" ".join(["pii-tracer", *words]))
    assert name in PAGE


def test_no_job_is_tried_again() -> None:
    assert read("databricks-job.json")["tasks"][0]["max_retries"] == 0
    assert read("databricks-job.json")["max_concurrent_runs"] == 1
    assert read("dataproc-job.yaml")["scheduling"]["maxFailuresPerHour"] == 0
    assert read("emr-step.json")[0]["ActionOnFailure"] == "CONTINUE", "steps of EMR are tried once"


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_pods_are_confined_and_executors_have_no_key(role: str) -> None:
    name = f"spark-{role}-pod.yaml"
    pod = read(name)["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["automountServiceAccountToken"] is (role == "driver"), "the driver asks for executors"
    [own] = pod["containers"]
    assert own["name"] == f"spark-kubernetes-{role}"
    everything = [*pod.get("initContainers", ()), own]
    mounted = {mount["name"] for one in everything for mount in one["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    assert ("keys" in mounted) is (role == "driver")
    images = {one["image"] for one in everything if "image" in one}
    assert images <= {f"pii-tracer:{__version__}"}
    assert name in PAGE


def test_the_page_says_that_they_were_never_run() -> None:
    assert "**were never run**" in PAGE
    assert all(_says(name) for name in ("dataproc-job.yaml", "spark-driver-pod.yaml", "spark-executor-pod.yaml"))


def _says(name: str) -> bool:
    return "Untried." in (FOLDER / name).read_text(encoding="utf-8")
