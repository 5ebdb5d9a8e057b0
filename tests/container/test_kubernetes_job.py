"""The Job for Kubernetes: a pod that may do nothing but what a run needs, in this version, with a command that is understood."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from pii_tracer import __version__
from tests.container.dockerfile import DOCKERFILE, ROOT, instructions
from tests.docs.test_examples import understood

JOB: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "workflows" / "kubernetes-job.yaml").read_text(encoding="utf-8"))


def of(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """Schema of an object with these keys and no others."""
    return {
        "type": "object",
        "properties": required | optional,
        "required": list(required),
        "additionalProperties": False,
    }


def some(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1}


TEXT = {"type": "string", "minLength": 1}
QUANTITY = {"type": "string", "pattern": r"^\d+(m|Mi|Gi)?$"}
AMOUNTS = of({"cpu": QUANTITY, "memory": QUANTITY, "ephemeral-storage": QUANTITY})
CONTAINER = of(
    {
        "name": {"type": "string", "pattern": r"^[a-z][a-z0-9-]*$"},
        "image": {"type": "string", "pattern": r":\d+\.\d+\.\d+$"},
        "resources": of({"requests": AMOUNTS, "limits": AMOUNTS}),
        "securityContext": of(
            {
                "allowPrivilegeEscalation": {"const": False},
                "readOnlyRootFilesystem": {"const": True},
                "runAsNonRoot": {"const": True},
                "capabilities": of({"drop": {"const": ["ALL"]}}),
            }
        ),
        "volumeMounts": some(
            of({"name": TEXT, "mountPath": {"type": "string", "pattern": "^/"}}, readOnly={"const": True})
        ),
    },
    command=some(TEXT),
    args=some(TEXT),
    workingDir=TEXT,
    env=some(of({"name": TEXT, "value": TEXT})),
)
EMPTY = of({"sizeLimit": QUANTITY}, medium={"const": "Memory"})
VOLUME = {
    "oneOf": [
        of({"name": TEXT, "persistentVolumeClaim": of({"claimName": TEXT})}),
        # 288: 0440 in octal
        of({"name": TEXT, "secret": of({"secretName": TEXT, "defaultMode": {"type": "integer", "maximum": 288}})}),
        of({"name": TEXT, "emptyDir": EMPTY}),
    ]
}
NUMBER = {"type": "integer", "minimum": 1}
POD = of(
    {
        "restartPolicy": {"const": "Never"},
        "automountServiceAccountToken": {"const": False},
        "enableServiceLinks": {"const": False},
        "securityContext": of(
            {
                "runAsNonRoot": {"const": True},
                "runAsUser": NUMBER,
                "runAsGroup": NUMBER,
                "fsGroup": NUMBER,
                "seccompProfile": of({"type": {"const": "RuntimeDefault"}}),
            }
        ),
        "initContainers": some(CONTAINER),
        "containers": some(CONTAINER),
        "volumes": some(VOLUME),
    }
)
SCHEMA = of(
    {
        "apiVersion": {"const": "batch/v1"},
        "kind": {"const": "Job"},
        "metadata": of({"name": TEXT}),
        "spec": of(
            {"backoffLimit": {"const": 0}, "activeDeadlineSeconds": NUMBER, "template": of({"spec": POD})},
        ),
    }
)
"""The part of https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/ that the Job may use."""


def containers(job: dict[str, Any]) -> list[dict[str, Any]]:
    pod = job["spec"]["template"]["spec"]
    return [*pod["initContainers"], *pod["containers"]]


def faults(job: dict[str, Any]) -> list[str]:
    found = [error.message for error in Draft202012Validator(SCHEMA).iter_errors(job)]
    if found:
        return found
    volumes = {volume["name"] for volume in job["spec"]["template"]["spec"]["volumes"]}
    mounted = {mount["name"] for one in containers(job) for mount in one["volumeMounts"]}
    return [f"{name}: mounted or declared, not both" for name in sorted(volumes ^ mounted)]


def test_the_job_is_confined() -> None:
    assert faults(JOB) == []


def pod(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize(
    "loosen",
    [
        lambda job: pod(job)["securityContext"].update(runAsUser=0),
        lambda job: pod(job)["securityContext"].pop("runAsNonRoot"),
        lambda job: pod(job).update(automountServiceAccountToken=True),
        lambda job: pod(job).pop("automountServiceAccountToken"),
        lambda job: pod(job).update(hostNetwork=True),
        lambda job: pod(job)["containers"][0].pop("resources"),
        lambda job: pod(job)["containers"][0]["resources"]["limits"].pop("memory"),
        lambda job: pod(job)["containers"][0]["securityContext"].update(readOnlyRootFilesystem=False),
        lambda job: pod(job)["initContainers"][0]["securityContext"].update(privileged=True),
        lambda job: pod(job)["containers"][0].update(image="pii-tracer:latest"),
        lambda job: pod(job)["volumes"].append({"name": "host", "hostPath": {"path": "/"}}),
        lambda job: pod(job)["volumes"].pop(),
        lambda job: job["spec"].update(backoffLimit=3),
    ],
)
def test_a_looser_job_is_refused(loosen: Callable[[dict[str, Any]], Any]) -> None:
    job = copy.deepcopy(JOB)
    loosen(job)
    assert faults(job) != []


def test_the_job_s_image_user_and_command_are_those_of_this_version() -> None:
    assert {one["image"] for one in containers(JOB)} == {f"pii-tracer:{__version__}"}
    user = [one.value for one in instructions(DOCKERFILE.read_text(encoding="utf-8")) if one.name == "USER"][-1]
    context = pod(JOB)["securityContext"]
    assert f"{context['runAsUser']}:{context['runAsGroup']}" == user
    for one in pod(JOB)["containers"]:
        understood(" ".join(["pii-tracer", *one["args"]]))


def test_the_page_names_this_version() -> None:
    page = (ROOT / "docs" / "howto" / "run-in-a-container.md").read_text(encoding="utf-8")
    assert set(re.findall(r"pii-tracer:(\d+\.\d+\.\d+)", page)) == {__version__}
