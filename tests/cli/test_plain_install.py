"""What `pip install pii-tracer` brings is enough for all that is not named for an extra: nothing else may be imported.

The suite runs with every extra installed, so that a module which needs one of them shows nowhere else.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from packaging.requirements import Requirement

from tests.app.planning.test_key_of_several import SUBJECT, TENANTS
from tests.cli.small import declared, request

EXTRAS = ("spark", "kafka", "iceberg-log", "timestamp", "fast", "connect", "demo", "postgres", "serve", "telemetry")
OF_KAFKA = re.compile(r"kafka|\.app\.topic_records\Z")
OTHERS = {
    "pii_tracer.proof.rfc3161_timestamps",
    "pii_tracer.http_api.request_api",
    "pii_tracer.http_api.server",
    "pii_tracer.http_api.asgi_server",
    "pii_tracer.web.guard",
    "pii_tracer.web.application",
    "pii_tracer.web.server",
    "reports.watch.opentelemetry_spans",
}

WITHOUT = """
import importlib.abc, sys
class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any((name + ".").startswith(one + ".") for one in {blocked!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
"""
EVERYTHING = """
import importlib, json, pkgutil
missing = []
for top in ("pii_tracer", "planners", "executors", "reports"):
    for module in pkgutil.walk_packages(importlib.import_module(top).__path__, top + "."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError:
            missing.append(module.name)
print(json.dumps(missing))
"""


def required_by(name: str) -> list[Requirement]:
    return [Requirement(line) for line in importlib.metadata.requires(name) or ()]


def of_extras() -> list[str]:
    """Modules of distributions that only an extra asks for, as far as they can be told by their names."""
    wanted = required_by("pii-tracer")
    plain = {r.name for r in wanted if r.marker is None}
    # what these bring themselves is there as well, though an extra may name it, too
    plain |= {r.name for name in plain for r in required_by(name) if r.marker is None or r.marker.evaluate()}
    extra = {r.name for r in wanted if r.marker and any(r.marker.evaluate({"extra": e}) for e in EXTRAS)} - plain
    names = {"protobuf": "google.protobuf", "grpcio": "grpc", "grpcio-status": "grpc_status", "delta-spark": "delta"}
    assert {"confluent-kafka", "rfc3161-client", "moto", "pyspark"} <= extra
    # pip itself brings setuptools where it is needed; SQLAlchemy comes with pyiceberg's own extra, py4j with pyspark
    return sorted(
        {names.get(name, name.replace("-", "_")) for name in extra - {"setuptools", "pii-tracer"}}
        | {"sqlalchemy", "py4j"}
    )


def called(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = WITHOUT.format(blocked=of_extras()) + code
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_only_what_is_named_for_an_extra_needs_it(tmp_path: Path) -> None:
    """The client of AWS was an extra, and nothing could be planned without it."""
    done = called(EVERYTHING, tmp_path)
    assert done.returncode == 0, done.stderr
    missing = set(json.loads(done.stdout.splitlines()[-1]))
    assert {name for name in missing if not OF_KAFKA.search(name)} == OTHERS
    assert missing - OTHERS  # something is really blocked


def test_a_plan_is_made_without_any_extra(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    write_deltalake(tmp_path / "w" / "users", pa.table(dict(TENANTS)))
    (tmp_path / "pii-tracer.yaml").write_text(declared("w", {"app.users": "delta"}) + SUBJECT)
    (tmp_path / "jobs.sql").write_text("SELECT 1;\n")
    (tmp_path / "request.yaml").write_text(request("user", "8"))
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    code = """
from pii_tracer.cli.main import run
assert run(["init"]) == 0
assert run(["plan", "request.yaml", "--out", "p.plan.json"]) == 0
"""
    done = called(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "p.plan.json").read_bytes())["complete"]
